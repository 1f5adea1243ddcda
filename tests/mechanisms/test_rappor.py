"""RAPPOR against sums over all 2^k reports in fractions."""

import functools
import itertools
import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shufflebounds.mechanisms import RandomizedResponse, Rappor
from shufflebounds.shuffle import Clones
from tests.mechanisms import exact
from tests.oracles import assert_sides_and_monotone
from tests.strategies import slow, thinned

CASES = [
    (0.5, 0.75, 0.5, 1, 2), (0.5, 0.75, 0.5, 2, 4), (0.25, 1.0, 0.0, 2, 6), slow(0.75, 0.875, 0.125, 3, 6),
    (0.5, 0.75, 0.25, 3, 4), (0.5, 1.0, 0.5, 2, 3), (0.125, 0.5, 0.0, 2, 5), (0.0, 0.75, 0.25, 2, 4),
]


def reports(f, p, q, held):
    """Return the exact distribution of a report of a filter with these bits, by both randomization steps."""
    f, p, q = Fraction(f), Fraction(p), Fraction(q)
    law = {}
    for seen in itertools.product((0, 1), repeat=len(held)):
        mass = Fraction(1)
        for bit, y in zip(held, seen):
            permanent = {bit: 1 - f + f / 2, 1 - bit: f / 2}
            one = permanent[1] * p + permanent[0] * q
            mass *= one if y else 1 - one
        law[seen] = mass
    return law


def neighbours(hashes, bits):
    """Return the filters of all values, as vectors of bits."""
    return [tuple(int(i in held) for i in range(bits)) for held in itertools.combinations(range(bits), hashes)]


def as_long(law):
    with mp.workdps(exact.DIGITS):
        return {y: mp.mpf(v.numerator) / v.denominator for y, v in law.items()}


@pytest.mark.parametrize(("f", "p", "q", "hashes", "bits"), thinned(CASES, 3))
def test_every_report(f, p, q, hashes, bits):
    report = Rappor(f, p, q, hashes, bits)
    values = neighbours(hashes, bits)
    # By symmetry, one of the two values can be fixed.
    first, *others = [as_long(reports(f, p, q, held)) for held in values]
    worst = max(max(v / other[y] for y, v in first.items()) for other in others)
    assert report.eps_instantaneous == pytest.approx(float(mp.log(worst)), rel=1e-14)
    assert mp.log(worst) <= report.epsilon(0.0)
    eps = report.eps_instantaneous
    for asked in (0.0, eps / 5, eps / 2, eps * 0.9):
        e = exact.exponential(asked)
        value = exact.log(max(max(exact.hockey_stick(first, other, e), exact.hockey_stick(other, first, e)) for other in others))
        lower, upper = report.log_delta(asked, bound="lower"), report.log_delta(asked)
        assert lower <= value <= upper
        assert upper - lower < 1e-12
    assert report.log_delta(eps) == -math.inf
    for order in (1, 1.5, 4):
        value = max(exact.renyi(first, other, order) for other in others)
        assert report.rdp(order, bound="lower") <= value <= report.rdp(order)


@pytest.mark.parametrize(("f", "hashes", "bits"), thinned([(0.5, 1, 3), (0.25, 2, 5), (0.75, 2, 3), (0.5, 3, 6)], 2))
def test_permanent_bits(f, hashes, bits):
    first, *others = [reports(f, 1, 0, held) for held in neighbours(hashes, bits)]
    worst = max(max(v / other[y] for y, v in first.items()) for other in others)
    report = Rappor(f, 0.75, 0.5, hashes, bits)
    assert report.eps_permanent == pytest.approx(math.log(worst), rel=1e-14)
    assert Rappor(f, hashes=hashes, bits=bits).eps_instantaneous == pytest.approx(report.eps_permanent, rel=1e-14)
    assert report.eps_instantaneous < report.eps_permanent


def test_one_bit_is_randomized_response_twice():
    # Two values that set one bit each differ in two randomized bits.
    report = Rappor(f=0.5)
    each = RandomizedResponse(math.log(3))
    assert report.eps_permanent == pytest.approx(2 * each.eps, rel=1e-14)
    assert report.rdp(3.0) == pytest.approx(2 * each.rdp(3.0), rel=1e-11)


@pytest.mark.parametrize(("f", "p", "q"), [(0.5, 0.75, 0.5), (0.25, 1.0, 0.0), (0.875, 0.9, 0.2)])
def test_estimate_is_unbiased_and_its_variance_exact(f, p, q):
    report = Rappor(f, p, q)
    one, _, other, _, _ = (Fraction(c) for c in report._support_probabilities())
    n, t = 6, 2
    mean = square = Fraction(0)
    for seen in itertools.product((0, 1), repeat=n):
        weight = math.prod((c if y else 1 - c) for y, c in zip(seen, [one] * t + [other] * (n - t)))
        estimate = Fraction(report.estimate(counts=sum(seen), users=n).item())
        mean += weight * estimate
        square += weight * estimate**2
    assert float(mean) == pytest.approx(t, rel=1e-13)
    assert float(square - mean**2) == pytest.approx(report.variance(t, n), rel=1e-12)


def test_randomize_in_one_step_and_in_two():
    report = Rappor(0.5, 0.75, 0.25, hashes=2)
    held = np.tile([1, 0, 0, 1, 0], (60000, 1))
    rng = np.random.default_rng(17)
    twice = Rappor(0.0, 0.75, 0.25, hashes=2).randomize(Rappor(0.5, hashes=2).randomize(held, rng), rng)
    for seen in (report.randomize(held, rng=17), twice):
        assert seen.shape == held.shape
        estimates = report.estimate(seen)
        for t, found in zip(60000 * held[0], estimates):
            assert abs(found - t) < 4.5 * math.sqrt(report.variance(t, 60000))


def test_curve():
    report = Rappor(0.5, 0.75, 0.25, hashes=2)
    below, above = report.tradeoff(), report.tradeoff(bound="upper")
    alpha = np.linspace(0.001, 0.999, 50)
    assert (below.beta(alpha) <= above.beta(alpha) * (1 + 1e-13)).all()
    assert below.beta(alpha) == pytest.approx(above.beta(alpha), rel=1e-12)
    for eps in (0.0, 0.3, 1.0):
        assert below.log_delta(eps) == pytest.approx(report.log_delta(eps), rel=1e-11)


def test_shuffled():
    report = Rappor(0.5, 0.75, 0.5, hashes=2)
    shuffled = report.shuffled(10**5)
    assert shuffled.epsilon(1e-8, bound="lower") <= shuffled.epsilon(1e-8) < Clones(10**5, report.eps_instantaneous).epsilon(1e-8)


@given(f=st.floats(0, 0.999), p=st.floats(0.01, 1), share=st.floats(0, 0.999), hashes=st.integers(1, 30),
       asked=st.floats(0, 50), more=st.floats(0, 3))
def test_sides_and_monotone(f, p, share, hashes, asked, more):
    if f < 1e-9 or p - p * share < 1e-12:
        return
    report = Rappor(f, p, p * share, hashes)
    assert_sides_and_monotone(report, asked, more)
    # The budget of one report is at most that of any number of reports.
    assert report.eps_instantaneous <= report.eps_permanent * (1 + 1e-12)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: Rappor(1.0), "f=1"),
        (lambda: Rappor(0.5, 0.25, 0.5), r"q=0.5 must be in \[0, 0.25\).* exchange the values"),
        (lambda: Rappor(0.0), "f=0 needs 0 < q and p < 1"),
        (lambda: Rappor(0.5, hashes=0), "hashes=0"),
        (lambda: Rappor(0.5, hashes=3, bits=3), "bits=3"),
        (lambda: Rappor(0.5).randomize([2]), "values holds 2|values=2"),
        (lambda: Rappor(0.5).estimate(counts=5, users=4), "counts holds 5: every entry must be at most 4, with users=4"),
        (lambda: Rappor(0.5).variance(5, 4), "held=5"),
    ],
)
def test_bad_input(call, text):
    with pytest.raises(ValueError, match=text):
        call()


@pytest.mark.parametrize("hashes", [1, 3])
@pytest.mark.parametrize(("f", "p", "q"), [
    (0.5, 0.75, 0.5), (1 - 2.0**-40, 0.75, 0.5), (1 - 2.0**-20, 1.0, 0.0), (2.0**-40, 1.0, 0.0)
])
def test_renyi_divergence_of_close_and_far_reports(f, p, q, hashes):
    report = Rappor(f, p, q, hashes)
    with mp.workdps(exact.DIGITS):
        one, other = (mp.mpf(hit) * (1 - mp.mpf(f) / 2) + mp.mpf(miss) * f / 2 for hit, miss in ((p, q), (q, p)))
        bits = ({1: one, 0: 1 - one}, {1: other, 0: 1 - other})
        for order in (1.0, 1.5, 30.0):
            power = mp.mpf(order)
            value = mp.mpf(0)
            for a, b in (bits, bits[::-1]):
                if order == 1:
                    value += mp.fsum(v * mp.log(v / b[y]) for y, v in a.items())
                else:
                    value += mp.log(mp.fsum(b[y] * (v / b[y]) ** power for y, v in a.items())) / (power - 1)
            lower, upper = report.rdp(order, bound="lower"), report.rdp(order)
            assert lower <= hashes * value <= upper
            assert upper - lower < 3e-12 * upper


def test_tiny_probabilities_of_bits():
    report = Rappor(1e-300, hashes=512)
    assert report.eps_instantaneous == pytest.approx(1024 * math.log(2e300), rel=1e-14)
    assert 1 - 1e-9 < report.delta(0.0, bound="lower") <= report.delta(0.0) <= 1
    with pytest.raises(ValueError, match=r"f=1e-310 with p=1, q=0: every probability of a bit"):
        Rappor(1e-310)


def test_mu_for_a_tiny_probability():
    mechanism = Rappor(0.5, p=1e-300)
    assert 0 <= mechanism.gdp_mu(bound="lower") <= mechanism.gdp_mu() < 1.0


@pytest.mark.parametrize(("f", "p", "q", "hashes", "bits"), [
    (0.5, 0.75, 0.5, 1, 3), (0.5, 0.75, 0.5, 2, 4), (0.25, 1.0, 0.0, 2, 3),
])
def test_laws_of_the_excess_against_all_reports(f, p, q, hashes, bits):
    report = Rappor(f, p, q, hashes, bits)
    values = neighbours(hashes, bits)
    laws = [np.array([float(v) for v in reports(f, p, q, held).values()]) for held in values]
    (found,) = report.excess_laws()
    least = np.min(laws, axis=0)
    pairs = [(a, b) for (x, a), (y, b) in itertools.permutations(zip(values, laws), 2)
             if sum(i != j for i, j in zip(x, y)) == 2 * report._differ]

    def sums(r0, r1, base, e):
        x = np.append((r0 - e * r1) / base, 0.0)
        mass = np.append(base, max(0.0, 1 - base.sum()))
        return (np.maximum(x[:, None] + x, 0) * mass[:, None] * mass).sum() / 2

    def listed(law, eps):
        return sums(np.exp(law.log_mass + law.log_a), np.exp(law.log_mass + law.log_b), np.exp(law.log_mass), math.exp(eps))

    for eps in (0.1, 0.7):
        # The upper bound uses a smaller blanket m than `least`, the minimum over all values, so it is larger. The lower bounds are
        # those of datasets in which all other users have the same value.
        assert listed(found.upper, eps) >= max(sums(a, b, least, math.exp(eps)) for a, b in pairs) * (1 - 1e-12)
        exact = np.array([sums(a, b, x, math.exp(eps)) for a, b in pairs for x in laws])
        lower = [listed(law, eps) for _, law in found.lower]
        assert all(np.abs(exact - value).min() <= 1e-12 * value for value in lower)
        assert max(lower) == pytest.approx(exact.max(), rel=1e-12)


@pytest.mark.slow
def test_a_filter_of_few_bits_is_the_complement_of_one_with_fewer_hashes():
    # Zeros and ones are exchanged: p* becomes 1 - q*, and q* becomes 1 - p*.
    few, many = Rappor(0.5, 0.75, 0.25, 100, 150), Rappor(0.5, 0.75, 0.25, 50, 150)
    for n, delta in ((10**5, 1e-6), (10**8, 1e-9)):
        for bound in ("lower", "upper"):
            assert few.shuffled(n).epsilon(delta, bound=bound) == many.shuffled(n).epsilon(delta, bound=bound)
    few, many = Rappor(0.5, 0.75, 0.5, 3, 4), Rappor(0.0, 0.4375, 0.3125, 1, 4)
    eps = few.shuffled(10**4).epsilon(1e-6)
    assert eps == pytest.approx(many.shuffled(10**4).epsilon(1e-6), rel=1e-9)
    assert few.shuffled(10**4).epsilon(1e-6, bound="lower") >= eps / 1.001


@pytest.mark.parametrize(("report", "users", "least"), [
    # Other users whose value has no bit in common with the target's two: eps(1e-6) by a program that does not use the package.
    (Rappor(0.5), 10**4, 0.08996), (Rappor(0.5, hashes=2), 10**4, 0.26834), (Rappor(0.5, hashes=2), 10**5, 0.07857),
    (Rappor(0.5, hashes=2), 10**3, 0.8774), (Rappor(0.5, 0.75, 0.5, 4), 10**4, 0.02861),
    (Rappor(0.5, 0.75, 0.5, 8), 10**4, 0.05190), (Rappor(0.5, 0.75, 0.5, 8), 10**5, 0.01496),
])
def test_values_without_common_bits_give_the_lower_bound(report, users, least):
    shuffled = report.shuffled(users)
    eps = shuffled.epsilon(1e-6, bound="lower")
    assert eps == pytest.approx(least, abs=6e-6 if least < 0.5 else 6e-5)
    assert shuffled.data(eps) == "every other user has 0 bits of the target's first value and 0 of the second"


def largest_deltas(report, users, factors):
    """Return the largest delta over all datasets for each factor e^eps, by sums over all messages."""
    values = neighbours(report.hashes, report.bits)
    laws = [np.array([float(v) for v in reports(report.f, report.p, report.q, held).values()]) for held in values]
    found = np.zeros(len(factors))
    for others in itertools.combinations_with_replacement(range(len(values)), users - 1):
        shuffled = []
        for law in laws:
            rows = [laws[x] for x in others] + [law]
            orders = list(itertools.permutations(range(users)))
            shuffled.append(sum(functools.reduce(np.multiply.outer, [rows[i] for i in order]) for order in orders) / len(orders))
        for first, second in itertools.permutations(shuffled, 2):
            found = np.maximum(found, [np.maximum(first - factor * second, 0.0).sum() for factor in factors])
    return found


@pytest.mark.parametrize(("f", "p", "q", "hashes", "bits", "users"), thinned([
    (0.5, 1.0, 0.0, 1, 3, 3), (0.5, 0.75, 0.25, 1, 4, 2), (0.5, 0.75, 0.5, 3, 4, 2), (0.25, 1.0, 0.0, 2, 3, 3),
    *(pytest.param(*case, marks=pytest.mark.slow) for case in [
        (0.5, 1.0, 0.0, 2, 4, 2), (0.5, 0.9, 0.6, 1, 4, 3), (0.3, 0.75, 0.25, 2, 4, 3), (0.1, 0.5, 0.0, 3, 4, 3)]),
], 2))
def test_every_dataset(f, p, q, hashes, bits, users):
    report = Rappor(f, p, q, hashes, bits)
    eps = report.eps_instantaneous * np.array([0.0, 0.02, 0.1, 0.2, 0.4, 0.6, 0.8, 0.95])
    exact = largest_deltas(report, users, np.exp(eps))
    shuffled = report.shuffled(users)
    lower, upper = shuffled.delta(eps, bound="lower"), shuffled.delta(eps)
    assert (lower <= exact * (1 + 1e-9) + 1e-14).all()
    assert (exact <= upper * (1 + 1e-9) + 1e-14).all()
    # One of the datasets that are listed is about the worst.
    assert (lower >= 0.9 * exact - 1e-14).all()


def test_many_hashes_are_reduced_to_fewer_nodes(monkeypatch):
    report = Rappor(0.9, 0.6, 0.4, hashes=20)
    exact = report.excess_laws()[0].upper
    monkeypatch.setattr("shufflebounds.mechanisms.oracles.rappor.MANY", 10)
    monkeypatch.setattr("shufflebounds.mechanisms.oracles.rappor._NODES", 8)
    coarse = report.excess_laws()[0].upper
    assert coarse.log_mass.size == 64 < exact.log_mass.size == 441
    assert (coarse.log_a - coarse.log_b).max() == pytest.approx((exact.log_a - exact.log_b).max(), rel=1e-15)
    for law in (exact, coarse):
        for height in (law.log_a, law.log_b):
            assert np.exp(law.log_mass + height).sum() == pytest.approx(1, rel=1e-12)
    for eps in (0.1, 1.0):
        for threshold in (-2.0, -0.5, 0.0, 0.5, 2.0, 8.0):
            above = [float((np.exp(law.log_mass) * np.maximum(law.values(eps) - threshold, 0)).sum()) for law in (exact, coarse)]
            assert above[0] * (1 - 1e-12) <= above[1] <= above[0] * 1.1 + 0.01
