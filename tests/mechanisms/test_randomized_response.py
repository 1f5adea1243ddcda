"""Randomized response against enumeration, reference values and other pure mechanisms, whose delta is at most its own."""

import itertools
import math
from fractions import Fraction
from itertools import combinations_with_replacement, permutations

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shufflebounds.mechanisms import RandomizedResponse
from shufflebounds.shuffle import ShuffledBits, StrongerClones
from tests.errors import reference, relative, survey_cases
from tests.mechanisms import exact
from tests.oracles import assert_sides_and_monotone
from tests.strategies import thinned

EPS = (1e-12, 2.0**-10, 0.1, 1.0, math.log(3), 7.5, 40.0, 700.0)


def laws(eps):
    e = exact.exponential(eps)
    with mp.workdps(exact.DIGITS):
        return {0: e / (1 + e), 1: 1 / (1 + e)}, {0: 1 / (1 + e), 1: e / (1 + e)}


@pytest.mark.parametrize("eps", EPS)
def test_delta_by_enumeration(eps):
    response = RandomizedResponse(eps)
    p, q = laws(eps)
    for asked in (0.0, eps / 3, eps * (1 - 2.0**-40), math.nextafter(eps, 0)):
        value = exact.log(exact.hockey_stick(p, q, exact.exponential(asked)))
        lower, upper = response.log_delta(asked, bound="lower"), response.log_delta(asked)
        assert lower <= value <= upper
        assert upper - lower < 4e-15 * (1 + abs(lower))
    assert response.log_delta(eps) == response.log_delta(eps + 1) == -math.inf
    assert response.epsilon(0.0) == eps


@pytest.mark.parametrize("eps", thinned(EPS, 3))
@pytest.mark.parametrize("order", [1, 1 + 2.0**-30, 1.5, 2, 32, 1e4, math.inf])
def test_rdp_by_enumeration(eps, order):
    value = exact.renyi(*laws(eps), order)
    response = RandomizedResponse(eps)
    lower, upper = response.rdp(order, bound="lower"), response.rdp(order)
    assert lower <= value * (1 + 1e-15)
    assert upper >= value * (1 - 1e-15)
    assert upper - lower < 2e-14 * value


QUANTITIES = {
    "s4_rr_delta": lambda v: RandomizedResponse(float(v["eps"])).delta(float(v["eps_prime"])),
    "s4_rr_var": lambda v: RandomizedResponse(float(v["eps"])).estimator_variance([0.0]),
    "s4_rdp_rr": lambda v: RandomizedResponse(float(v["eps"])).rdp(float(v["alpha"])),
    "s4_kl_rr": lambda v: RandomizedResponse(float(v["eps"])).rdp(1),
    "s4_onebit": lambda v: RandomizedResponse(v["eps"], v["m"]).error_bound(v["n"], float(v["delta"])),
}


@pytest.mark.parametrize(("answer", "case"), survey_cases(QUANTITIES))
def test_reference(answer, case):
    assert relative(answer(case["params"]), case["value"]) < 1e-13


def test_warner():
    warner = next(v for v in reference("survey") if v["id"].endswith("s4_warner_eps"))
    response = RandomizedResponse(float(warner["value"]))
    assert response.prob([0.0, 1.0]) == pytest.approx([0.25, 0.75], rel=1e-15)


def test_local_sample_size():
    # The smallest number of users for which Hoeffding's error is at most alpha, with the survey's formula corrected.
    case = next(v for v in reference("survey") if v["id"].endswith("s4_n_local_hoeffding"))
    n = float(case["value"])
    at = [RandomizedResponse(1.0).error_bound(m, 0.05) for m in (math.floor(n), math.ceil(n))]
    assert at[1] <= 0.01 <= at[0]


@pytest.mark.parametrize("eps", [0.25, 1.0, 3.0])
def test_estimate_is_unbiased_and_its_variance_exact(eps):
    response = RandomizedResponse(eps, upper=8.0)
    values = [0.0, 8.0, 3.0, 6.5]
    chances = [Fraction(float(c)) for c in response.prob(values)]
    mean = square = Fraction(0)
    for outcome in itertools.product((0, 1), repeat=len(values)):
        weight = math.prod(c if y else 1 - c for c, y in zip(chances, outcome))
        estimate = Fraction(response.estimate(outcome))
        mean += weight * estimate
        square += weight * estimate**2
    assert float(mean) == pytest.approx(np.mean(values), rel=1e-13)
    assert float(square - mean**2) == pytest.approx(response.estimator_variance(values), rel=1e-12)
    assert response.estimator_variance([0.0, 8.0]) == pytest.approx(response.variance / 2, rel=1e-14)


@pytest.mark.parametrize(("n", "beta"), [(50, 0.1), (200, 0.05)])
def test_error_bound_holds_exactly(n, beta):
    response = RandomizedResponse(1.0)
    bound = response.error_bound(n, beta)
    c = response.prob(1.0)
    miss = sum(math.comb(n, y) * c**y * (1 - c) ** (n - y) for y in range(n + 1)
               if abs(response.estimate(counts=y, users=n) - 1) > bound)
    assert 0 < miss <= beta


def test_randomize():
    response = RandomizedResponse(1.0, upper=2.0)
    values = np.repeat([0.0, 0.5, 2.0], 40000).reshape(3, 40000)
    bits = response.randomize(values, rng=7)
    assert bits.shape == values.shape
    assert set(np.unique(bits)) == {0, 1}
    for row, chance in zip(bits, response.prob(values[:, 0])):
        assert abs(row.mean() - chance) < 4.5 * math.sqrt(chance * (1 - chance) / 40000)
    assert (response.randomize(values, rng=7) == bits).all()


def test_curve():
    response = RandomizedResponse(1.25)
    for bound in ("lower", "upper"):
        f = response.tradeoff(bound=bound)
        alpha = np.array([0.0, 0.01, 0.2, 0.5, 0.9])
        line = np.maximum(1 - math.exp(1.25) * alpha, math.exp(-1.25) * (1 - alpha))
        assert f.beta(alpha) == pytest.approx(line, rel=1e-13)
    assert response.tradeoff().log_delta(0.5) == pytest.approx(response.log_delta(0.5), rel=1e-13)


def test_shuffled():
    # Every dataset of 4 users with the values 0, 1/2 and 1 is enumerated. The budget is ln 3, so a bit is 1 with probability 1/4,
    # 1/2 or 3/4.
    quarter = Fraction(1, 4)
    factor = Fraction(3, 2)
    largest = Fraction(0)
    for others in combinations_with_replacement((quarter, 2 * quarter, 3 * quarter), 3):
        law = [Fraction(1)]
        for one in others:
            law = [(1 - one) * a + one * b for a, b in zip([*law, 0], [0, *law])]
        for p, q in permutations((quarter, 2 * quarter, 3 * quarter), 2):
            first, second = ([(1 - one) * a + one * b for a, b in zip([*law, 0], [0, *law])] for one in (p, q))
            largest = max(largest, sum(max(a - factor * b, 0) for a, b in zip(first, second)))
    shuffled = RandomizedResponse(math.log(3)).shuffled(4)
    assert shuffled.delta(math.log(1.5), bound="lower") == pytest.approx(float(largest), rel=1e-13)
    assert shuffled.delta(math.log(1.5)) == pytest.approx(float(largest), rel=1e-13)


def test_shuffled_bits_are_closer_than_the_clones():
    for users in (5000, 10**6):
        low, high = (RandomizedResponse(4.0).shuffled(users).epsilon(1e-8, bound=bound) for bound in ("lower", "upper"))
        bits = ShuffledBits(users, 1 / (math.exp(4.0) + 1))
        # Both intervals contain the same eps; the flip probability is rounded down for one bound and up for the other.
        assert low <= bits.epsilon(1e-8)
        assert bits.epsilon(1e-8, bound="lower") <= high
        assert high - low <= 1.2e-3 * high
        assert high < 0.95 * StrongerClones(users, 4.0).epsilon(1e-8)


@pytest.mark.slow
def test_shuffled_curves_and_compositions():
    shuffled, bits = RandomizedResponse(2.0).shuffled(12), ShuffledBits(12, 1 / (math.exp(2.0) + 1))
    for ask in (
        lambda one, bound: one.rdp(2.0, bound=bound), lambda one, bound: one.gdp_mu(bound=bound),
        lambda one, bound: one.self_compose(3).epsilon(1e-6, bound=bound),
    ):
        assert ask(shuffled, "lower") <= ask(bits, "upper") * (1 + 1e-12)
        assert ask(bits, "lower") <= ask(shuffled, "upper") * (1 + 1e-12)
        assert ask(shuffled, "upper") <= ask(bits, "upper") * (1 + 1e-5)
    low, high = (shuffled.tradeoff(bound=bound).beta(0.05) for bound in ("lower", "upper"))
    assert bits.tradeoff().beta(0.05) == pytest.approx(low, rel=1e-9)
    assert low <= high


@pytest.mark.parametrize("budget", [1e-14, 1e-7, 40.0, 699.0])
def test_shuffled_at_extreme_budgets(budget):
    low, high = (RandomizedResponse(budget).shuffled(50).delta(budget / 2, bound=bound) for bound in ("lower", "upper"))
    assert 0 < low <= high <= min(1.0, RandomizedResponse(budget).delta(budget / 2) * (1 + 1e-12))


@given(eps=st.floats(1e-6, 700), asked=st.floats(0, 800), more=st.floats(0, 5))
def test_sides_and_monotone(eps, asked, more):
    response = RandomizedResponse(eps)
    assert_sides_and_monotone(response, asked, more)


@given(
    eps=st.floats(0.05, 5), asked=st.floats(0, 5), order=st.floats(1, 50),
    raw=st.lists(st.tuples(st.floats(0.01, 1), st.floats(0, 1)), min_size=2, max_size=6),
)
def test_dominates_every_pure_mechanism(eps, asked, order, raw):
    # The pairs of distributions are random, with ratios between e^-eps and e^eps.
    from shufflebounds.tradeoff import log_hockey_stick, renyi_divergence

    weight = np.array([w for w, _ in raw])
    tilt = np.array([t for _, t in raw]) - 0.5
    p, q = weight * np.exp(eps * tilt / 2), weight * np.exp(-eps * tilt / 2)
    p, q = np.log(p / p.sum()), np.log(q / q.sum())
    assert np.abs(p - q).max() <= eps * (1 + 1e-12)
    response = RandomizedResponse(eps)
    assert log_hockey_stick(p, q, asked) <= response.log_delta(asked) + 1e-9 or log_hockey_stick(p, q, asked) < -35
    assert renyi_divergence(p, q, order) <= response.rdp(order) * (1 + 1e-12) + 1e-15


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: RandomizedResponse(0.0), r"eps=0 must be in \(0, 700\]"),
        (lambda: RandomizedResponse(701.0), "eps=701"),
        (lambda: RandomizedResponse(1.0, 0.0), "upper=0 must be finite and > 0"),
        (lambda: RandomizedResponse(1.0).prob(1.5), r"values=1.5 must be in \[0, 1\]"),
        (lambda: RandomizedResponse(1.0).estimate(counts=11, users=10), "counts holds 11"),
        (lambda: RandomizedResponse(1.0).estimate(counts=1, users=0), "users=0"),
        (lambda: RandomizedResponse(1.0).error_bound(10, 0.0), "beta=0"),
        (lambda: RandomizedResponse(1.0).estimator_variance([[0.5]]), "values must be 1-D"),
        (lambda: RandomizedResponse(1.0).shuffled(0), "users=0"),
        (lambda: RandomizedResponse(1.0).rdp(0.5), "order=0.5"),
        (lambda: RandomizedResponse(1.0).tradeoff(bound="both"), "bound='both'"),
    ],
)
def test_bad_input(call, text):
    with pytest.raises(ValueError, match=text):
        call()


