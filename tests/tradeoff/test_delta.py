"""Delta, epsilon, mu, convex hulls and symmetrization of curves of discrete distributions, against fractions and mpmath."""

import math
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_ndtr, logsumexp

from shufflebounds import Tradeoff
from shufflebounds.tails import binom_logpmf
from shufflebounds.tradeoff import hockey_stick, log_hockey_stick, max_divergence
from tests import oracles
from tests.oracles import ALPHAS, at, convolved, hull, logs, thresholds
from tests.oracles import binomial_masses as binomial
from tests.strategies import laws

EPS = [-2.0, -0.5, 0.0, 0.1, 0.7, 1.0, 3.0, 20.0]


def exact_divergence(p, q, eps):
    """Return the sum of max(0, p - e^eps q) of two lists of fractions, or of logarithms in double precision, as an mpf."""
    to = lambda x: mpmath.mpf(x.numerator) / x.denominator if isinstance(x, Fraction) else mpmath.exp(mpmath.mpf(x))  # noqa: E731
    return oracles.hockey_stick(map(to, p), map(to, q), mpmath.exp(mpmath.mpf(eps)))


@given(laws())
def test_delta_belongs_to_the_pair(pq):
    p, q = pq
    f = Tradeoff.from_pmfs(logs(p), logs(q))
    with mpmath.workdps(40):
        exact = [float(exact_divergence(q, p, e)) for e in EPS]
    np.testing.assert_allclose(f.delta(EPS), exact, rtol=0, atol=1e-14)
    np.testing.assert_allclose(hockey_stick(logs(q), logs(p), EPS[::-1]), exact[::-1], rtol=0, atol=1e-14)
    assert (np.diff(f.delta(EPS)) <= 0).all()
    # Single values of eps give the same results as an array.
    assert [f.delta(e) for e in EPS] == pytest.approx(f.delta(EPS).tolist(), rel=1e-14, abs=1e-300)
    # The dual formula is the supremum over all levels.
    grid = np.exp(f.knots[0])
    for e in EPS:
        dual = (1 - f.beta(np.minimum(grid, 1)) - math.exp(e) * grid).max()
        assert f.delta(e) == pytest.approx(dual, abs=1e-14 * math.exp(max(e, 0)))


def test_delta_of_the_shifted_binomial():
    # The values are those of spec/shuffled-bits.md, section 1.2: n = 100, lambda = 58, in the worse order.
    law = binom_logpmf(np.arange(101), 100, 0.29)
    f = Tradeoff.from_pmfs(np.append(-np.inf, law), np.append(law, -np.inf))
    exact = {
        0.05: 0.067149900215742521, 0.1: 0.050161267748961175, 0.2: 0.025956632808583821, 0.4: 0.0051414373378242481,
        0.5: 0.0019532898876988305, 0.9: 2.5607291462624802e-5, 1.0: 7.5734098615708117e-6,
    }  # fmt: skip
    eps = list(exact)
    value = np.maximum(f.delta(eps), f.inverse().delta(eps))
    np.testing.assert_allclose(value, list(exact.values()), rtol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("depth", [1.0, 30.0, 1e3, 1e5])
def test_sweep_is_relatively_accurate(depth):
    rng = np.random.default_rng(int(depth))
    x, y = (log - logsumexp(log) for log in (-depth * rng.random(300), -depth * rng.random(300)))
    eps = np.concatenate([depth * rng.uniform(-1, 1, 40), [0.0, depth, -depth], (x - y)[::50] - 1e-3])
    value = log_hockey_stick(x, y, eps)
    with mpmath.workdps(60):
        for e, v in zip(eps, value):
            exact = exact_divergence(x, y, e)
            if exact == 0:
                assert v == -math.inf
                continue
            # The losses are rounded, so the tolerance includes the outcomes whose loss is slightly above eps.
            near = min((a for a in (x - y) - e if a > 0), default=1.0)
            slack = 2.3e-16 * (4 * max(1, abs(float(mpmath.log(exact)))) + depth / min(1.0, near))
            assert abs(mpmath.mpf(v) - mpmath.log(exact)) <= slack


def test_sweep_corners():
    one = np.zeros(1)
    assert log_hockey_stick(one, one, np.array([1.0, 0.0, -math.log(2)])).tolist() == [
        -math.inf, -math.inf, pytest.approx(-math.log(2)),
    ]  # fmt: skip
    # Forty thousand thresholds are evaluated at the single atom whose loss is positive.
    eps, p, q = np.linspace(0.0, 10.0, 40001), math.exp(-1), math.exp(-21)
    np.testing.assert_allclose(hockey_stick(np.log([p, 1 - p]), np.log([q, 1 - q]), eps), p - np.exp(eps) * q, rtol=1e-14)


@given(laws(), st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1e-300, 2.0**-20, 0.5, 1.0])))
def test_epsilon_is_the_inverse(pq, delta):
    p, q = pq
    f = Tradeoff.from_pmfs(logs(p), logs(q))
    eps = f.epsilon(delta)
    apart = sum(b for a, b in zip(p, q) if not a)
    if math.isinf(eps):
        assert delta <= float(apart) * (1 + 1e-13)
        return
    assert eps >= 0
    assert f.delta(eps) <= delta
    with mpmath.workdps(40):
        # The distributions are given by rounded logarithms.
        assert exact_divergence(q, p, eps + 1e-13) <= delta + 1e-14
        if eps > 1e-9 and delta > 1e-12:
            assert exact_divergence(q, p, eps * (1 - 1e-9)) > delta * (1 - 1e-12) - 1e-14
    # By definition, the reference value is that of the best set of outcomes.
    exact = 0.0
    for s in product((0, 1), repeat=len(p)):
        heavy, light = sum(b for b, r in zip(q, s) if r), sum(a for a, r in zip(p, s) if r)
        if heavy > delta and light:
            exact = max(exact, math.log((heavy - Fraction(delta)) / light))
    if delta > 1e-10 and abs(float(apart) - delta) > 1e-9:
        assert eps == pytest.approx(exact, rel=1e-9, abs=1e-9)
    assert max_divergence(logs(q), logs(p), delta) == eps


def test_epsilon_of_arrays_and_ends():
    f = Tradeoff.from_pmfs(np.log([0.5, 0.3, 0.2]), np.log([0.2, 0.3, 0.5]))
    deltas = np.array([[0.0, 1e-3], [0.25, 1.0]])
    assert f.epsilon(deltas).shape == (2, 2)
    assert f.epsilon(0.0) == pytest.approx(math.log(2.5), rel=1e-14)
    assert f.epsilon(0.0) >= math.log(2.5)
    assert f.epsilon(1.0) == 0 == f.epsilon(0.31)
    assert f.epsilon(0.2) == pytest.approx(math.log((0.5 - 0.2) / 0.2), rel=1e-13)
    apart = Tradeoff.from_pmfs(np.log([0.5, 0.5, 1e-300]), [-np.inf, np.log(0.5), np.log(0.5)])
    assert apart.epsilon([0.0, 1e-3, 0.5, 0.6]).tolist()[2:] == [pytest.approx(0.0, abs=1e-13), 0.0]
    assert Tradeoff.from_pmfs([0.0, -np.inf], [-np.inf, 0.0]).epsilon([0.5, 1.0]).tolist() == [math.inf, 0.0]


def test_epsilon_deep():
    f = Tradeoff.from_pmfs([-1e5, 0.0], [0.0, -1e5])
    assert f.epsilon(0.25) == pytest.approx(1e5 + math.log(0.75), rel=1e-15)
    assert 1e5 <= f.epsilon(1e-300) <= 1e5 * (1 + 1e-14)
    assert f.log_delta(f.epsilon(1e-9)) <= math.log(1e-9)


@pytest.mark.parametrize(
    ("users", "lam", "mu"),
    [
        (10, 5, 0.49332160204639977), (20, 10, 0.34417871166182044), (60, 6, 1.1326497842672891), (100, 58, 0.11138848355996432),
        (100, 20, 0.48840569063278988),
    ],
)  # fmt: skip
def test_mu_of_the_boolean_sum(users, lam, mu):
    # The values are those of spec/shuffled-bits.md, section 1.3; in the worst dataset all other bits are 0.
    q = Fraction(lam, 2 * users)
    others = binomial(users - 1, q)
    p0, p1 = logs(convolved(others, [1 - q, q])), logs(convolved(others, [q, 1 - q]))
    f = Tradeoff.from_pmfs(p1, p0)
    assert f.gdp_mu() == pytest.approx(mu, rel=1e-10)
    assert f.gdp_mu() >= mu
    # The Gaussian curve of this mu is at or below the curve, and that of a slightly smaller mu is not.
    alpha = np.exp(f.knots[0])
    assert (Tradeoff.gaussian(f.gdp_mu()).beta(np.minimum(alpha, 1)) <= np.exp(f.knots[1]) + 1e-15).all()
    assert f.inverse().gdp_mu() == pytest.approx(mu, rel=1e-10)


def test_mu_of_the_boolean_sum_of_a_thousand():
    q = mpmath.mpf(1) / 4
    with mpmath.workdps(40):
        law = [mpmath.binomial(999, k) * q**k * (1 - q) ** (999 - k) for k in range(1000)]
        p0 = [float(mpmath.log(a * (1 - q) + b * q)) for a, b in zip([*law, 0], [0, *law])]
        p1 = [float(mpmath.log(a * q + b * (1 - q))) for a, b in zip([*law, 0], [0, *law])]
    assert Tradeoff.from_pmfs(p1, p0).gdp_mu() == pytest.approx(0.04643208968324907579, rel=1e-10)


@pytest.mark.slow
def test_mu_resolves_both_tails():
    # For two normal distributions on a lattice, mu is the difference of the means, for tails of any length.
    for deep in (8.0, 30.0, 120.0):
        x = np.linspace(-deep, deep, 401)
        laws = [-0.5 * (x - m) ** 2 for m in (0.0, 0.5)]
        laws = [law - np.logaddexp.reduce(law) for law in laws]
        f = Tradeoff.from_pmfs(*laws)
        with mpmath.workdps(30):
            # The breakpoints in both tails are compared with sums in multiple precision.
            mass = [[mpmath.exp(mpmath.mpf(v)) for v in law] for law in laws]
            mass = [[v / mpmath.fsum(law) for v in law] for law in mass]
            best = -mpmath.inf
            for i in (3, 50, 200, 350, 397):
                below, above = ([mpmath.fsum(part) for part in (law[:i], law[i:])] for law in mass)
                best = max(best, -_quantile(below[1], below[0]) - _quantile(above[0], above[1]))
        assert f.gdp_mu() >= float(best) - 1e-14 * deep
        assert f.gdp_mu() == pytest.approx(max(float(best), 0.5), abs=0.02 * deep)


def _quantile(v, rest):
    """Return the normal quantile of v = 1 - rest in multiple precision, computed from the smaller of the two."""
    low = min(v, rest)
    far = -2 * mpmath.log(low)
    z = -mpmath.sqrt(max(far - mpmath.log(2 * mpmath.pi * max(far, 1)), mpmath.mpf("0.01")))
    for _ in range(60):
        tail = mpmath.erfc(-z / mpmath.sqrt(2)) / 2
        step = (mpmath.log(tail) - mpmath.log(low)) * tail / mpmath.npdf(z)
        z -= step
        if abs(step) < mpmath.mpf(10) ** -20:
            break
    return z if v <= rest else -z


def test_mu_where_supports_differ():
    law = binom_logpmf(np.arange(101), 100, 0.29)
    shifted = Tradeoff.from_pmfs(np.append(-np.inf, law), np.append(law, -np.inf))
    assert shifted.gdp_mu() == math.inf
    assert Tradeoff.from_pmfs(np.log([0.5, 0.5]), [0.0, -np.inf]).gdp_mu() == math.inf
    assert Tradeoff.from_pmfs([0.0], [0.0]).gdp_mu() == 0
    assert Tradeoff.from_pmfs(np.log([0.25] * 4), np.log([0.25] * 4)).gdp_mu() == pytest.approx(0.0, abs=1e-14)
    assert Tradeoff.from_knots([-np.inf, 0.0], [0.0, -np.inf]).gdp_mu() == 0
    assert Tradeoff.from_knots([-1.0], [-1.0]).gdp_mu() == math.inf


points = st.lists(st.tuples(st.integers(0, 2**12), st.integers(0, 2**12)), min_size=1, max_size=12)


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "beta"), [
    ([0, 0.2, 0.5, 1], [1, 0.5, 0, 0]), ([0, 0, 0.5, 1], [1, 0.5, 0.1, 0]), ([0, 0.5, 1], [1, 0, 0]),
])
def test_mu_where_several_knots_have_an_error_of_zero(alpha, beta):
    with np.errstate(divide="ignore"):
        f = Tradeoff.from_knots(np.log(alpha), np.log(beta))
    assert f.gdp_mu() == f.convex_hull().gdp_mu() == math.inf


@pytest.mark.parametrize("eps", [1.0, 20.0, 34.0, 36.0, 37.0, 40.0, 60.0, 300.0, 1e4])
def test_one_line_of_a_large_budget(eps):
    """The two lines meet within an ulp of the alpha where the first of them is 0."""
    f, known = Tradeoff.from_log_delta([eps], [-math.inf]), Tradeoff.randomized_response(eps)
    at = np.array([-2 * eps, -eps - 1e-9, -eps + 1e-9, -eps / 2, -1e-9])
    below, exact = f.log_beta(at), known.log_beta(at)
    assert (below <= exact + 4e-15 * np.abs(exact)).all()
    # The vertex is rounded by 1e-14 eps at most, which moves the two levels next to it.
    assert (below > exact - 1e-12 * eps)[[0, 3, 4]].all()
    assert known.gdp_mu() * (1 - 1e-14) <= f.gdp_mu() < known.gdp_mu() * (1 + 1e-6)


@given(points)
def test_hull_of_knots(raw):
    # The curve is a staircase through random points on or below the diagonal.
    inside = sorted({(min(x, 2**12 - y), y) for x, y in raw})
    xs = [Fraction(x, 2**12) for x, _ in inside]
    ys = sorted((Fraction(y, 2**12) for _, y in inside), reverse=True)
    kept = [(x, y) for x, y in zip(xs, ys) if x + y <= 1]
    if not kept:
        return
    xs, ys = zip(*kept)
    f = Tradeoff.from_knots(logs(xs), logs(ys))
    g = f.convex_hull()
    exact = hull({(Fraction(0), ys[0]), *kept, (xs[-1], Fraction(0)), (Fraction(1), Fraction(0))})
    for alpha in ALPHAS:
        x = float(alpha)
        assert abs(g.beta(x) - at(exact, Fraction(x))) <= 1e-13
        assert g.beta(x) <= f.beta(x) + 1e-13
    assert g.convex_hull() == g
    values = g.beta(np.linspace(0, 1, 33))
    assert (values[:-2] + values[2:] - 2 * values[1:-1] >= -1e-13).all()
    np.testing.assert_allclose(f.delta(EPS), g.delta(EPS), rtol=1e-13)
    with mpmath.workdps(30):
        for e in EPS:
            best = max(1 - mpmath.mpf(y.numerator) / y.denominator - mpmath.exp(e) * x.numerator / x.denominator for x, y in exact)
            assert f.delta(e) == pytest.approx(float(max(best, 0)), abs=1e-13)


@pytest.mark.parametrize("depth", [40.0, 300.0, 690.0])
def test_hull_resolves_both_ends(depth):
    # The curve is convex, with breakpoints on the Gaussian curve in both extreme tails, where alpha or beta differs from 1 by
    # e^-depth.
    z = np.linspace(-math.sqrt(2 * depth), math.sqrt(2 * depth), 41)
    alpha, beta = log_ndtr(z), log_ndtr(-z - 1)
    chain = lambda b: Tradeoff.from_knots(np.concatenate([[-np.inf], alpha, [0.0]]), np.concatenate([[0.0], b, [-np.inf]]))  # noqa: E731
    assert chain(beta).convex_hull().knots[0].size == 43
    for i in (2, 38):
        # A breakpoint above the line through its neighbours is removed; one below it removes its neighbours.
        high, low = beta.copy(), beta.copy()
        high[i] = beta[i - 1]
        low[i] = beta[i + 2]
        assert np.setdiff1d(alpha, chain(high).convex_hull().knots[0]).tolist() == [alpha[i]]
        gone = np.setdiff1d(alpha, chain(np.minimum.accumulate(low)).convex_hull().knots[0])
        assert alpha[i] not in gone
        assert alpha[i + 1] in gone


def test_hull_of_the_least_over_data():
    # The case is that of spec/shuffled-bits.md, section 0.4: n = 5, q = 1/5. The minimum over datasets is not convex at alpha =
    # .15008.
    q = Fraction(1, 5)
    curves = []
    for ones in range(5):
        others = convolved(binomial(ones, 1 - q), binomial(4 - ones, q))
        p0, p1 = logs(convolved(others, [1 - q, q])), logs(convolved(others, [q, 1 - q]))
        curves += [Tradeoff.from_pmfs(p0, p1), Tradeoff.from_pmfs(p1, p0)]
    least = lambda a: min(c.beta(a) for c in curves)  # noqa: E731
    assert least(0.15008) == pytest.approx(0.60416, abs=1e-5)
    alpha = np.unique(np.exp(np.concatenate([c.knots[0] for c in curves])))
    alpha = np.append(alpha[alpha < 1], 1.0)
    with np.errstate(divide="ignore"):
        f = Tradeoff.from_knots(np.log(alpha), np.log([least(a) for a in alpha]))
    g = f.convex_hull()
    assert g.beta(0.15008) < 0.604
    for e in (0.0, 0.5, 1.0):
        worst = max(c.delta(e) for c in curves)
        assert g.delta(e) == pytest.approx(worst, abs=1e-13)
        assert f.delta(e) == pytest.approx(worst, abs=1e-13)


@pytest.mark.slow
@given(laws())
def test_symmetrized(pq):
    f = Tradeoff.from_pmfs(logs(pq[0]), logs(pq[1]))
    g = f.symmetrized()
    forward, backward = thresholds(*pq), thresholds(*pq[::-1])
    exact = hull({*forward, *backward})
    for alpha in ALPHAS:
        x = float(alpha)
        assert abs(g.beta(x) - at(exact, Fraction(x))) <= 1e-13
        assert g.inverse().beta(x) == pytest.approx(g.beta(x), abs=1e-13)
    np.testing.assert_allclose(g.delta(EPS[2:]), np.maximum(f.delta(EPS[2:]), f.inverse().delta(EPS[2:])), rtol=0, atol=1e-13)


def test_symmetrized_where_the_slope_is_steep_beyond_the_diagonal():
    # The result is at most f and its inverse, on whichever side of the diagonal the slope of f is -1.
    f = Tradeoff.from_pmfs(np.log([0.99, 0.01]), np.log([0.5, 0.5]))
    for g in (f.symmetrized(), f.inverse().symmetrized()):
        assert g.knots[0].size == 4
        np.testing.assert_allclose(np.exp(g.knots[0]), [0, 0.01, 0.5, 1], atol=1e-15)
        np.testing.assert_allclose(np.exp(g.knots[1]), [1, 0.5, 0.01, 0], atol=1e-15)


def test_levels_near_one_have_their_own_logarithms():
    # f <= 1 - alpha must hold at alpha = 1 - e^-1000 as well as at 1/2.
    x = np.linspace(-60, 60, 4001)
    law = lambda m: -0.5 * (x - m) ** 2 - np.logaddexp.reduce(-0.5 * (x - m) ** 2)  # noqa: E731
    f = Tradeoff.from_pmfs(law(0.0), law(2.0))
    rest = np.array([-2.0, -30.0, -50.0, -300.0, -700.0])
    log_alpha = -np.exp(rest)
    value = f.log_beta(log_alpha)
    assert (value <= rest).all()
    exact = Tradeoff.gaussian(2.0).log_beta(log_alpha)
    np.testing.assert_allclose(value, exact, rtol=2e-3)


def test_from_knots():
    f = Tradeoff.from_knots(np.log([0.1, 0.5]), np.log([0.5, 0.1]))
    assert f.beta([0.0, 0.1, 0.3, 0.499, 0.51, 1.0]).round(12).tolist() == [0.5, 0.5, 0.3, 0.101, 0.0, 0.0]
    assert f.delta(0.0) == pytest.approx(0.5)
    assert f.delta(50.0) == pytest.approx(0.5)
    assert repr(f) == "Tradeoff(<4 breakpoints>)"
    assert f == Tradeoff.from_knots(*f.knots)
    assert hash(f) == hash(Tradeoff.from_knots(*f.knots))
    assert f != Tradeoff.gaussian(1.0)
    assert f.inverse().beta(0.3) == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Tradeoff.from_knots([-1.0, -2.0], [-1.0, -2.0]), "log_alpha falls from -1 to -2 at entry 1"),
        (lambda: Tradeoff.from_knots([-2.0, -1.0], [-2.0, -1.0]), "log_beta rises from -2 to -1"),
        (lambda: Tradeoff.from_knots([-2.0, -1.0], [-2.0]), "log_beta has shape"),
        (lambda: Tradeoff.from_knots([[-2.0]], [[-2.0]]), "must be 1-D"),
        (lambda: Tradeoff.from_knots([], []), "log_alpha must not be empty"),
        (lambda: Tradeoff.from_knots([math.nan], [-1.0]), "log_alpha holds nan"),
        (lambda: Tradeoff.from_knots([-0.1], [-0.1]), "alpha \\+ beta must be <= 1"),
        (lambda: Tradeoff.from_knots([0.5], [-1.0]), "log_alpha holds 0.5"),
        (lambda: Tradeoff.gaussian(1.0).delta(math.inf), "eps=inf"),
        (lambda: Tradeoff.gaussian(1.0).delta([]), "eps must not be empty"),
        (lambda: Tradeoff.gaussian(1.0).epsilon(1.5), "delta=1.5"),
        (lambda: Tradeoff.gaussian(1.0).epsilon(math.nan), "delta=nan"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
