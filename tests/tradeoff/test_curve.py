"""Trade-off functions against an enumeration of all tests in fractions, and their general properties."""

import math
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest
from hypothesis import given

from shufflebounds import DominatingPair, Tradeoff
from shufflebounds.shuffle import PersonalizedBits, ShuffledBits
from shufflebounds.tails import binom_logpmf
from tests.oracles import ALPHAS, at, convolved, every_test, logs, thresholds
from tests.oracles import binomial_masses as binomial
from tests.strategies import laws, thinned


def check_laws(f, slack=1e-14):
    """Assert the properties of every trade-off function."""
    alpha, beta = (np.exp(k) for k in f.knots)
    assert not any(k.flags.writeable for k in f.knots)
    assert f.knots[0][0] == -math.inf == f.knots[1][-1]
    assert 0 <= f.beta(0.0) <= 1
    assert f.beta(1.0) <= slack
    grid = np.linspace(0, 1, 101)
    values = f.beta(grid)
    assert (np.diff(values) <= 0).all()
    assert (values <= 1 - grid + slack).all()
    assert (values[:-2] + values[2:] - 2 * values[1:-1] >= -4 * slack).all()
    assert (np.diff(alpha) >= 0).all()
    assert (np.diff(beta) <= 0).all()
    back = f.inverse().inverse()
    assert all(np.array_equal(a, b) for a, b in zip(back.knots, f.knots))
    assert f.inverse().advantage() == pytest.approx(f.advantage(), abs=1e-11)
    assert f.advantage() == pytest.approx(max((1 - alpha - beta).max(), 0), abs=1e-12)


@pytest.mark.slow
@given(laws())
def test_every_test_of_listed_laws(pq):
    p, q = pq
    f = Tradeoff.from_pmfs(logs(p), logs(q))
    boundary = every_test(p, q)
    for alpha in ALPHAS:
        assert abs(f.beta(float(alpha)) - at(boundary, Fraction(float(alpha)))) <= 1e-13
    assert f.advantage() == pytest.approx(float(sum(max(0, y - x) for x, y in zip(p, q))), abs=1e-14)
    check_laws(f)
    # The curve of the profile is a lower bound, below that of the lists by at most the rounding of their logarithms.
    below, above = (DominatingPair.from_pmfs(logs(p), logs(q)).tradeoff(bound=bound) for bound in ("lower", "upper"))
    grid = [float(alpha) for alpha in ALPHAS]
    assert (below.beta(grid) <= f.beta(grid)).all()
    assert (f.beta(grid) <= above.beta(grid)).all()
    assert (above.beta(grid) - below.beta(grid) <= 1e-12).all()


@pytest.mark.slow
@given(laws(), laws(2))
def test_thresholds_are_every_test(pq, rs):
    # The faster reference, which is used for larger distributions, is compared with the slower one.
    first = [a * b for a, b in product(pq[0][:4], rs[0])]
    second = [a * b for a, b in product(pq[1][:4], rs[1])]
    a, b = every_test(first, second), thresholds(first, second)
    for alpha in ALPHAS:
        if alpha <= sum(first):
            assert at(a, alpha) == at(b, alpha)


@pytest.mark.parametrize(
    ("p", "q", "alpha", "beta"),
    [
        ([1, 0], [0, 1], 0.0, 0.0),
        ([1], [1], 0.25, 0.75),
        ([0.5, 0.5, 0], [0.5, 0, 0.5], 0.0, 0.5),
        ([0.5, 0.5, 0], [0.5, 0, 0.5], 0.25, 0.25),
        ([0.25] * 4, [0.25] * 4, 0.4, 0.6),
        ([0, 0.5, 0, 0.5], [0.5, 0, 0.5, 0], 0.0, 0.0),
    ],
)
def test_corners(p, q, alpha, beta):
    with np.errstate(divide="ignore"):
        f = Tradeoff.from_pmfs(np.log(p), np.log(q))
    assert f.beta(alpha) == pytest.approx(beta, abs=1e-15)
    check_laws(f)


@pytest.mark.parametrize(
    ("alpha", "beta"),
    [
        (0.01, 0.981589369826), (0.05, 0.921161294593), (0.1, 0.853897776822), (0.25, 0.674184396684),
        (0.5, 0.413621339658), (0.75, 0.187085126127), (0.9, 0.067745068720),
    ],
)  # fmt: skip
def test_binomial_shift(alpha, beta):
    law = binom_logpmf(np.arange(101), 100, 0.29)
    f = Tradeoff.from_pmfs(np.append(-np.inf, law), np.append(law, -np.inf))
    assert f.beta(alpha) == pytest.approx(beta, abs=1e-11)


def test_worst_data_of_the_published_figure():
    # The values are those of spec/shuffled-bits.md, section 1.2: the infimum over all datasets and both orders.
    alpha = np.array([0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9])
    exact = [0.98703653215428264, 0.93912303670532137, 0.88204837138048275, 0.71908970144508449, 0.46297848233691371,
             0.22093098946450352, 0.08410198832951997]  # fmt: skip
    bits = ShuffledBits(100, 0.29)
    curves = [c for m in range(100) for c in (bits.pair(m).tradeoff(), bits.pair(m).reverse().tradeoff())]
    least = np.min([c.beta(alpha) for c in curves], axis=0)
    np.testing.assert_allclose(least, exact, rtol=1e-11)
    assert (least <= exact).all()


@pytest.mark.parametrize("flip", [0.0, 2.0**-20, 0.125, 0.3, 0.5])
@pytest.mark.parametrize(("users", "ones"), thinned([(1, 0), (2, 1), (5, 0), (7, 6), (9, 4)], 3))
def test_bits_of_few_users(users, ones, flip):
    q = Fraction(flip)
    others = convolved(binomial(ones, 1 - q), binomial(users - 1 - ones, q))
    p0, p1 = convolved(others, [1 - q, q]), convolved(others, [q, 1 - q])
    pair = ShuffledBits(users, flip).pair(ones)
    for f, (p, r) in ((pair.tradeoff(), (p0, p1)), (pair.reverse().tradeoff(), (p1, p0))):
        boundary = thresholds(p, r)
        for alpha in ALPHAS:
            value, exact = f.beta(float(alpha)), at(boundary, Fraction(float(alpha)))
            assert value <= exact
            assert value >= exact - Fraction(1, 10**12)
        check_laws(f, 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("log_tail", [-100.0, -15.0])
def test_bits_of_many_users_never_above(log_tail):
    # For more than 1000 users the truncated distribution is computed in blocks.
    flip, users, ones = Fraction(1, 16), 1200, 500
    with mpmath.workdps(60):
        kept = [[mpmath.mpf(x.numerator) / x.denominator for x in binomial(n, f)]
                for n, f in ((ones, 1 - flip), (users - 1 - ones, flip))]  # fmt: skip
        scale = mpmath.mpf(10) ** 400
        whole = [[int(x * scale) for x in law] for law in kept]
    size = len(whole[0]) + len(whole[1]) + 1
    others = [0] * (size - 1)
    # The numbers are integers with 400 decimal places, and all terms are rounded down.
    for i, x in enumerate(whole[0]):
        if x > 10**300:
            for j, y in enumerate(whole[1]):
                if y > 10**300:
                    others[i + j] += x * y
    total = sum(others)
    p0 = [Fraction(15 * a + b, 16 * total) for a, b in zip([*others, 0], [0, *others])]
    p1 = [Fraction(a + 15 * b, 16 * total) for a, b in zip([*others, 0], [0, *others])]
    boundary = thresholds(p0, p1)
    f = ShuffledBits(users, 1 / 16).pair(ones).tradeoff(log_tail=log_tail)
    for alpha in (0.0, 1e-12, 1e-6, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.9, 0.999):
        exact = at(boundary, Fraction(alpha))
        assert f.beta(alpha) <= exact
        assert f.beta(alpha) >= exact - Fraction(17 * math.exp(log_tail) + 4e-12)


def test_shallow_windows_lie_below_deep_ones():
    pair = ShuffledBits(10**6, 5e-5).pair(999)
    alpha = np.linspace(0, 1, 201)
    deep = pair.tradeoff(log_tail=-300).beta(alpha)
    for log_tail in (-100.0, -20.0, -5.0, -1.0):
        shallow = pair.tradeoff(log_tail=log_tail).beta(alpha)
        assert (shallow <= deep + 1e-11).all()
        assert (shallow >= deep - 2.1 * math.exp(log_tail) / 5e-5 - 1e-11).all()


def test_budgets_of_their_own():
    budgets, bits = [0.5, 3.0, 1.0, 2.0, 30.0], [0, 1, 1, 0, 1]
    mechanism = PersonalizedBits(budgets, bits=bits, target=2)
    with mpmath.workdps(40):
        flips = [1 / (mpmath.exp(mpmath.mpf(b)) + 1) for b in budgets]
        exact = []
        for own in (0, 1):
            law = [mpmath.mpf(1)]
            for i, flip in enumerate(flips):
                one = 1 - flip if (own if i == 2 else bits[i]) else flip
                law = [a * (1 - one) + b * one for a, b in zip([*law, 0], [0, *law])]
            exact.append([Fraction(int(x * 10**60), 10**60) for x in law])
    for f, boundary in (
        (mechanism.pair().tradeoff(), thresholds(*exact)),
        (mechanism.pair().reverse().tradeoff(), thresholds(*exact[::-1])),
    ):
        for alpha in ALPHAS:
            value, wanted = f.beta(float(alpha)), at(boundary, Fraction(float(alpha)))
            assert wanted - Fraction(1, 10**12) <= value <= wanted
        check_laws(f, 1e-12)


def test_equal_budgets_are_equal_flips():
    budget = math.log(3)
    first = PersonalizedBits([budget] * 50, bits=[1] * 20 + [0] * 30, target=49).pair().tradeoff()
    second = ShuffledBits(50, 0.25).pair(20).tradeoff()
    np.testing.assert_allclose(first.knots[0][1:], second.knots[0][1:], atol=1e-12, rtol=1e-14)


@pytest.mark.parametrize(
    "pair",
    [
        DominatingPair.from_pmfs(np.log([0.1, 0.2, 0.3, 0.4]), np.log([0.3, 0.3, 0.2, 0.2])),
        ShuffledBits(1000, 0.02).pair(3),
        ShuffledBits(1000, 0.02).pair(900).reverse(),
        PersonalizedBits(np.linspace(0.5, 2, 40), bits=np.arange(40) % 2, target=7).pair(),
    ],
    ids=["listed", "bits", "reversed", "personalized"],
)
def test_delta_from_the_knots(pair):
    # The tests of T(P, Q) reject P: max 1 - beta - e^eps alpha is the hockey-stick divergence of (Q, P), the reversed pair.
    alpha, beta = (np.exp(k) for k in pair.tradeoff().knots)
    for eps in (0.0, 0.1, 0.5, 1.0):
        assert max(1 - beta - math.exp(eps) * alpha) == pytest.approx(pair.reverse().delta(eps), abs=1e-12)
    assert pair.tradeoff().advantage() == pytest.approx(pair.delta(0.0), abs=1e-12)


def test_deep_levels():
    f = Tradeoff.from_pmfs([-1e5, 0.0], [0.0, -1e5])
    assert f.log_beta(-1e5) == -1e5
    assert f.log_beta(-1e5 - math.log(2)) == pytest.approx(-math.log(2), abs=1e-10)
    assert f.log_beta([[-np.inf, -2e5], [-1e5 - 1e-6, 0.0]]).shape == (2, 2)
    assert f.log_beta(-np.inf) == 0
    assert f.log_beta(0) == -np.inf
    assert f.log_beta(math.log1p(-1e-9)) == pytest.approx(-1e5 + math.log(1e-9), rel=1e-12)
    # Two normal distributions on a lattice have both tails down to a log mass of -1e5.
    x = np.arange(-40000, 40001) * 0.01
    law = lambda mean: -0.5 * (x - mean) ** 2 - 0.5 * math.log(2 * math.pi) + math.log(0.01)  # noqa: E731
    g = Tradeoff.from_pmfs(law(0.0), law(1.0))
    for k in (-350.0, -100.0, -10.0, 3.0, 10.0, 100.0, 350.0):
        # The test rejects if x > k; both errors are values of Phi, at the middle of a cell.
        i = x.size - 1 - int(np.searchsorted(x, k - 0.001))
        with mpmath.workdps(30):
            alpha = float(mpmath.log(mpmath.ncdf(-(x[-i - 1] + mpmath.mpf("0.005")))))
            beta = float(mpmath.log(mpmath.ncdf(x[-i - 1] + mpmath.mpf("0.005") - 1)))
        assert g.knots[0][i] == pytest.approx(alpha, rel=1e-4, abs=1e-3)
        assert g.knots[1][i] == pytest.approx(beta, rel=1e-4, abs=1e-3)
    check_laws(g)


def test_the_order_of_the_outcomes_does_not_matter():
    p, q = np.log([0.2, 0.3, 0.5]), np.log([0.5, 0.3, 0.2])
    curves = [Tradeoff.from_pmfs(p[o], q[o]) for o in ([0, 1, 2], [2, 1, 0], [1, 2, 0])]
    for c in curves[1:]:
        np.testing.assert_array_equal(c.knots[0], curves[0].knots[0])


def test_the_curve_keeps_its_own_arrays():
    p, q = np.log([0.25, 0.75]), np.log([0.75, 0.25])
    f = Tradeoff.from_pmfs(p, q)
    p[:], q[:] = 0, 0
    assert f.advantage() == pytest.approx(0.5)
    assert repr(f) == "Tradeoff(<3 breakpoints>)"
    with pytest.raises(ValueError):
        f.knots[0][0] = 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: Tradeoff.from_pmfs([0.0], [0.0, -1.0]), "log_q"),
        (lambda f: Tradeoff.from_pmfs([math.nan], [0.0]), "log_p holds nan"),
        (lambda f: Tradeoff.from_pmfs([0.5], [0.0]), "log_p holds 0.5"),
        (lambda f: Tradeoff.from_pmfs([0.0], [-1.0]), "log_q sums to"),
        (lambda f: Tradeoff.from_pmfs([], []), "log_p must be a non-empty"),
        (lambda f: Tradeoff.from_pmfs("a", [0.0]), "log_p='a'"),
        (lambda f: f.beta(1.5), r"alpha=1.5 must be in \[0, 1\]"),
        (lambda f: f.beta([0.5, math.nan]), "alpha holds nan"),
        (lambda f: f.beta([]), "alpha must not be empty"),
        (lambda f: f.log_beta(0.5), "log_alpha=0.5"),
        (lambda f: f.log_beta([math.nan, -1.0]), "log_alpha holds nan"),
        (lambda f: f.log_beta("x"), "log_alpha='x'"),
        (lambda f: ShuffledBits(10, 0.1).pair(0).tradeoff(log_tail=0.0), "log_tail=0"),
        (lambda f: DominatingPair.from_pmfs([0.0], [0.0]).tradeoff(log_tail=-math.inf), "log_tail=-inf"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call(Tradeoff.from_pmfs([0.0], [0.0]))
