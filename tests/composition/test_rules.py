"""Composition rules against enumeration, exact fractions, quadrature and another library."""

import functools
import itertools
import math
import random
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shufflebounds import composition
from shufflebounds.composition import (
    compose_dp,
    composition_delta,
    composition_log_delta,
    group_privacy,
    rdp_to_dp,
    zcdp_to_dp,
)
from shufflebounds.composition.budgets import BudgetSum
from shufflebounds.profile import DominatingPair
from shufflebounds.tails import binom_logcdf
from tests.errors import reference
from tests.strategies import slow

SURVEY = {x["id"].removeprefix("survey/s4_"): x for x in reference("survey")}


def value(key):
    return float(SURVEY[key]["value"])


def enumerated(eps, delta, total):
    """Return delta of the composition of the worst mechanisms (see `outcomes`), by enumeration with 50 digits."""
    with mp.workdps(50):
        goal = mp.exp(mp.mpf(total))
        return mp.fsum(max(mp.mpf(0), p - goal * q) for p, q in outcomes(tuple(eps), tuple(delta)))


@functools.cache
def outcomes(eps, delta):
    """Return the probabilities of every joint outcome of the worst (eps, delta)-private mechanisms for both inputs, with 50 digits.

    Such a mechanism reveals its input with probability delta, and otherwise applies randomized response with budget eps.
    """
    laws = []
    for e, d in zip(map(mp.mpf, eps), map(mp.mpf, delta), strict=True):
        chance = (1 - d) / (1 + mp.exp(e))
        laws.append(((d, mp.mpf(0)), (mp.mpf(0), d), (chance * mp.exp(e), chance), (chance, chance * mp.exp(e))))
    return [tuple(map(mp.fprod, zip(*outcome, strict=True))) for outcome in itertools.product(*laws)]


def enumerated_pure(eps, total):
    """Return delta* by enumeration of all signs, with 60 digits, for exactly the given doubles."""
    with mp.workdps(60):
        out = mp.mpf(0)
        for signs in itertools.product((1, -1), repeat=len(eps)):
            loss = sum((s * Fraction(e) for s, e in zip(signs, eps, strict=True)), Fraction(0)) - Fraction(total)
            if loss > 0:
                gap = mp.mpf(loss.numerator) / loss.denominator
                weights = (1 / (1 + mp.exp(-s * mp.mpf(e))) for s, e in zip(signs, eps, strict=True))
                out += mp.fprod(weights) * -mp.expm1(-gap)
        return out


def sides(eps, delta, total, k=None):
    return [composition_log_delta(eps, delta, total, k=k, bound=b) for b in ("lower", "upper")]


@pytest.mark.parametrize("key", ["mv_0", "mv_1.2", "mv_1.9"])
def test_unequal_reference(key):
    eps, delta = [0.1, 0.2, 0.3, 0.5, 0.8], [1e-6, 1e-7, 1e-8, 1e-6, 1e-9]
    got = composition_delta(eps, delta, float(SURVEY[key]["params"]["eps_g"]))
    assert got == pytest.approx(value(key), rel=1e-11)
    assert got >= value(key) * (1 - 1e-15)


def test_equal_reference():
    for key, k, eps, slack in (
        ("compopt_100_.1_1e-6", 100, 0.1, 1e-6),
        ("compopt_10_1_1e-5", 10, 1.0, 1e-5),
        ("compopt_1000_.01_1e-9", 1000, 0.01, 1e-9),
        ("compopt_20_.5_1e-3", 20, 0.5, 1e-3),
    ):
        assert compose_dp(eps, 0.0, slack, k=k).eps == pytest.approx(value(key), rel=1e-11)
    # delta_g = 0.01 in the reference includes the deltas of the mechanisms.
    parts = 1 - math.prod(1 - d for d in [1e-6, 1e-7, 1e-8, 1e-6, 1e-9])
    slack = 1 - (1 - 0.01) / (1 - parts)
    got = compose_dp([0.1, 0.2, 0.3, 0.5, 0.8], [1e-6, 1e-7, 1e-8, 1e-6, 1e-9], slack)
    assert got.eps == pytest.approx(value("mv_eps"), rel=1e-11)
    assert got.delta == pytest.approx(0.01, rel=1e-12)


@pytest.mark.parametrize("total", [0.0, 0.3, 1.0, 1.9, 2.6])
@pytest.mark.parametrize(
    ("eps", "delta"),
    [([0.5] * 5, [0.01] * 5), ([0.1, 0.7, 0.7, 1.2], [0.0, 0.1, 0.02, 1e-9]), ([2.0, 0.0, 0.25], [0.0, 0.3, 0.0])],
)
def test_all_outcomes_of_the_worst_mechanisms(eps, delta, total):
    exact = enumerated(eps, delta, total)
    low, high = sides(eps, delta, total)
    if exact == 0:
        assert low == high == -math.inf
        return
    exact = mp.log(exact)
    assert low <= exact <= high
    assert high - low < 1e-11 * max(1, abs(high))


@pytest.mark.slow
@given(st.lists(st.sampled_from([0.125, 0.25, 0.5, 1.0, 0.1, 3.0, 1e-3]), min_size=1, max_size=9), st.floats(0, 1))
@settings(max_examples=25)
def test_every_sign(eps, part):
    total = part * sum(eps)
    exact = enumerated_pure(eps, total)
    low, high = sides(eps, 0.0, total)
    if exact == 0:
        assert low == -math.inf
        return
    assert low <= mp.log(exact) <= high


def test_equal_budgets_against_exact_rationals():
    # With e^eps = 3 and e^total = 3^j every probability is a fraction.
    for k in (1, 2, 7, 30):
        for j in range(k):
            exact = sum(
                Fraction(math.comb(k, m) * 3**m, 4**k) * max(Fraction(0), 1 - Fraction(3) ** (j - (2 * m - k)))
                for m in range(k + 1)
            )
            low, high = (composition_delta(math.log(3), 0.0, j * math.log(3), k=k, bound=b) for b in ("lower", "upper"))
            # Rounding ln 3 changes delta by about 1e-16 times its slope.
            assert low * (1 - 1e-12) <= exact <= high * (1 + 1e-12)
            assert high - low < 1e-10 * high


def test_printed_kov_form():
    # The theorem of Kairouz, Oh and Viswanath gives the pairs ((k - 2i) eps, delta_i), in which delta_i is a sum; it is computed
    # with 60 digits here.
    k, eps = 25, 0.3
    with mp.workdps(60):
        e = mp.mpf(eps)
        for i in range(1, k // 2 + 1):
            exact = sum(
                mp.binomial(k, m) * (mp.exp((k - m) * e) - mp.exp((k - 2 * i + m) * e)) for m in range(i)
            ) / (1 + mp.exp(e)) ** k
            got = composition_log_delta(eps, 0.0, float((k - 2 * i) * e), k=k)
            assert got == pytest.approx(float(mp.log(exact)), rel=1e-11, abs=1e-11)


@pytest.mark.parametrize(
    ("k", "eps", "total"),
    [(10**6, 0.1, 10_000.0), slow(10**6, 1e-3, 0.0), (10**5, 0.01, 900.0), (3000, 2.0, 5999.5), (10**6, 1e-3, 800.0)]
)
def test_windows_of_large_groups(k, eps, total):
    with mp.workdps(40):
        e, exact = mp.mpf(eps), mp.mpf(0)
        # The terms are summed from the first positive one up. The ratio of neighbouring probabilities is a rational function of
        # e^eps.
        start = k - int(mp.floor((k - mp.mpf(total) / e) / 2))
        start += int((2 * start - k) * e <= mp.mpf(total))
        m, log_term = start, None
        log_term = (
            mp.loggamma(k + 1) - mp.loggamma(m + 1) - mp.loggamma(k - m + 1) + m * e - k * mp.log1p(mp.exp(e))
        )
        term, ratio = mp.exp(log_term), mp.exp(e)
        while m <= k:
            part = term * -mp.expm1(mp.mpf(total) - (2 * m - k) * e)
            exact += part
            if part < exact * mp.mpf(10) ** -25 and m > k / 2 + k * eps / 4:
                break
            term *= ratio * (k - m) / (m + 1)
            m += 1
        exact = mp.log(exact)
    low, high = sides(eps, 0.0, total, k=k)
    assert low <= exact <= high
    # In the extreme tail, the rounding of 1/(1 + e^eps) is the largest error.
    assert high - low < 1e-11 + 1e-13 * abs(high) + 1e-15 * k


@pytest.mark.slow
def test_more_than_ten_billion_mechanisms():
    # Only a part of the outcomes that matter is enumerated. The reference is the difference of two binomial tails, of which
    # delta = 1e-6 is not much smaller.
    k, eps = 38_015_017_683, 2.4e-4
    total = compose_dp(eps, 0.0, 1e-6, k=k).eps
    assert total < compose_dp(eps, 0.0, 1e-6, k=k, method="advanced").eps
    for e in (total, total - 20):
        last = math.ceil((k - e / eps) / 2) - 1
        first, second = (float(binom_logcdf(last, k, 1 / (1 + math.exp(way * eps)))) for way in (1, -1))
        exact = math.log(math.exp(first) - math.exp(e + second))
        low, high = sides(eps, 0.0, e, k=k)
        assert low - 1e-9 <= exact <= high + 1e-9
        assert high - low < 0.01


@pytest.mark.slow
def test_halves_agree_with_one_group():
    # The same distribution is given as one budget, as two budgets that differ by 1e-13 (truncated), and as forty distinct budgets
    # (enumerated).
    one = sides(1e-3, 0.0, 4.0, k=2 * 10**6)
    two = sides([1e-3, 1e-3 * (1 + 1e-13)], 0.0, 4.0, k=[10**6, 10**6])
    assert two == pytest.approx(one, rel=1e-9)
    eps = np.linspace(0.4, 0.4 * (1 + 1e-12), 36)
    assert sides(eps, 0.0, 5.0) == pytest.approx(sides(0.4, 0.0, 5.0, k=36), rel=1e-9)


def test_grid_encloses_the_exact_law():
    # A sum with too many outcomes is composed on a grid. These budgets are evaluated both by enumeration and on a grid.
    eps, total = np.linspace(0.05, 1.0, 26), 11.0
    law = BudgetSum(eps, np.ones(26, dtype=np.int64))
    low, high = law.log_excess(total)
    grid_low, grid_high = law._on_a_grid(total)
    assert grid_low <= low <= high <= grid_high
    assert grid_high - grid_low < 1e-3
    # Three large groups have budgets that are multiples of 0.1.
    three = sides([0.1, 0.2, 0.3], 0.0, 9000.0, k=[10**5] * 3)
    assert three[1] - three[0] < 1e-6
    with mp.workdps(30):
        # The upper limit is Chernoff's bound. The lower limit is the saddle-point approximation, reduced by a factor.
        theta, (k, e) = mp.mpf(0), (10**5, [mp.mpf(x) for x in (0.1, 0.2, 0.3)])
        theta = mp.findroot(lambda t: k * sum(x * mp.tanh((t + 0.5) * x) for x in e) - 9000, 0.1)
        rate = k * sum(mp.log(mp.cosh((theta + 0.5) * x) / mp.cosh(x / 2)) for x in e) - 9000 * theta
        var = k * sum(x**2 / mp.cosh((theta + 0.5) * x) ** 2 for x in e)
        saddle = rate - mp.log(theta * (1 + theta)) - mp.log(2 * mp.pi * var) / 2
    assert three[1] <= rate
    assert three[0] == pytest.approx(float(saddle), abs=0.5)


def test_agrees_with_composed_profiles():
    def response(eps):
        log_p = np.array([0.0, -eps]) - math.log1p(math.exp(-eps))
        return DominatingPair.from_pmfs(log_p, log_p[::-1].copy())

    for k, eps, total in ((100, 0.1, 4.77), (30, 0.5, 8.0)):
        profile = response(eps).self_compose(k)
        low, high = sides(eps, 0.0, total, k=k)
        assert profile.log_delta(total, bound="lower") <= high
        assert low <= profile.log_delta(total)
        assert profile.log_delta(total) == pytest.approx(high, abs=1e-4)
    mixed = response(0.1).self_compose(20).compose(response(0.5), response(0.3))
    low, high = sides([0.1, 0.5, 0.3], 0.0, 1.5, k=[20, 1, 1])
    assert mixed.log_delta(1.5, bound="lower") <= high
    assert low <= mixed.log_delta(1.5)
    assert mixed.log_delta(1.5) == pytest.approx(high, abs=1e-3)


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.floats(0, 3), st.floats(0, 0.5), st.integers(0, 40)), min_size=1, max_size=3),
    st.floats(0, 20), st.floats(0, 5),
)
@settings(max_examples=25)
def test_shape(mechanisms, total, more):
    eps, delta, k = (list(x) for x in zip(*mechanisms, strict=True))
    low, high = sides(eps, delta, total, k=k)
    assert low <= high <= 0
    # delta* decreases in the total eps and increases in the budget of each mechanism.
    assert composition_log_delta(eps, delta, total + more, k=k, bound="lower") <= high
    assert composition_log_delta([e + 0.1 for e in eps], delta, total, k=k) >= low
    # An additional mechanism does not decrease delta.
    assert composition_log_delta([*eps, 0.3], [*delta, 0.0], total, k=[*k, 1]) >= low


def test_arrays_and_scalars():
    totals = np.array([[0.0, 1.0], [2.0, 50.0]])
    table = composition_delta(0.5, 1e-6, totals, k=10)
    assert table.shape == (2, 2)
    assert table[1, 1] == pytest.approx(-math.expm1(10 * math.log1p(-1e-6)), rel=1e-14)
    for t, d in zip(totals.ravel(), table.ravel(), strict=True):
        assert composition_delta([0.5] * 10, [1e-6] * 10, float(t)) == d
    assert isinstance(composition_delta(0.5, 0.0, 1.0), float)
    assert composition_delta(0.5, 1.0, 3.0) == 1.0
    assert composition_delta(0.5, 0.0, 5.0, k=10) == 0.0
    assert composition_delta(700.0, 0.0, 0.0) == 1.0
    assert 0 < composition_delta(0.01, 0.0, 900.0, k=10**5) < 1e-300


@pytest.mark.slow
@given(st.floats(1e-3, 2), st.integers(1, 400), st.floats(-60, -1), st.floats(0, 1e-3))
@settings(max_examples=25)
def test_optimal_is_confirmed_and_below_the_closed_forms(eps, k, log_slack, delta):
    slack = math.exp(log_slack)
    best, advanced, basic = (compose_dp(eps, delta, slack, k=k, method=m) for m in ("optimal", "advanced", "basic"))
    assert best.eps <= min(advanced.eps, basic.eps)
    assert composition_delta(eps, 0.0, best.eps, k=k) <= slack * (1 + 1e-13)
    assert composition_delta(eps, delta, best.eps, k=k) <= best.delta * (1 + 1e-13)
    if 0 < best.eps < basic.eps:
        assert composition_delta(eps, 0.0, best.eps * (1 - 1e-9), k=k, bound="lower") > slack * (1 - 1e-6)
    assert best.delta == advanced.delta
    assert basic.delta <= k * delta * (1 + 1e-11)


@pytest.mark.slow
def test_beyond_the_search():
    got = compose_dp(0.1, 0.0, 1e-6, k=10**9).eps
    assert 10**8 * math.tanh(0.05) < got <= compose_dp(0.1, 0.0, 1e-6, k=10**9, method="advanced").eps


def test_advanced_closed_form():
    got = compose_dp(0.1, 1e-9, 1e-6, k=100, method="advanced")
    with mp.workdps(30):
        exact = mp.mpf("0.1") * mp.sqrt(200 * mp.log(10**6)) + 10 * mp.tanh(mp.mpf("0.05"))
        assert got.eps == pytest.approx(float(exact), rel=1e-13)
        printed = mp.mpf("0.01") * mp.sqrt(2000 * mp.log(10**9)) + 10 * mp.expm1(mp.mpf("0.01"))
    assert float(printed) == pytest.approx(value("compadv_1000_.01_1e-9"), rel=1e-13)
    assert compose_dp(0.01, 0.0, 1e-9, k=1000, method="advanced").eps < value("compadv_1000_.01_1e-9")
    unequal = compose_dp([0.3, 0.1], 0.0, 1e-6, k=[2, 5], method="advanced")
    assert unequal.eps == compose_dp([0.3, 0.3, 0.1, 0.1, 0.1, 0.1, 0.1], 0.0, 1e-6, method="advanced").eps


def test_group_privacy_is_attained():
    # The bound is attained at eps = ln 2 by an outcome of probability P_i = delta (2^i - 1) at the values i = 0, ..., m.
    for m in (2, 3, 4):
        eps, delta = math.log(2), Fraction(1, 64)
        got = group_privacy(eps, float(delta), m)
        exact = delta * (2**m - 1)
        assert got.delta >= exact
        assert got.delta == pytest.approx(float(exact), rel=1e-13)
        assert got.eps == pytest.approx(m * eps, rel=1e-15)
        # Neighbouring values satisfy P_(i+1) <= e^eps P_i + delta with equality.
        leak = [delta * (2**i - 1) for i in range(m + 1)]
        assert all(leak[i + 1] == 2 * leak[i] + delta for i in range(m))
        assert leak[m] - 2**m * leak[0] == exact
    assert group_privacy(0.1, 1e-9, 1) == (0.1, 1e-9)
    assert group_privacy(0.0, 1e-9, 5).delta == pytest.approx(5e-9, rel=1e-13)
    assert group_privacy(700.0, 1e-300, 5).delta == 1.0
    assert group_privacy(1e-12, 1e-9, 1000).delta == pytest.approx(1e-6, rel=1e-9)
    assert group_privacy(3.0, 0.0, 10**6).delta == 0.0


def test_renyi_reference():
    assert rdp_to_dp(4, 0.7, delta=1e-5)[0] == pytest.approx(value("cks_example"), rel=1e-13)
    assert rdp_to_dp(4, 0.7, delta=1e-5, method="mironov")[0] == pytest.approx(value("mironov_example"), rel=1e-13)
    assert zcdp_to_dp(0.01, delta=1e-6)[0] == pytest.approx(value("zcdp_cks_.01_1e-6"), rel=1e-13)
    assert zcdp_to_dp(0.001, delta=1e-3)[0] == pytest.approx(value("zcdp_cks_.001_1e-3"), rel=1e-13)
    for rho, delta, key in ((0.5, 1e-5, ".5_1e-5"), (0.01, 1e-6, ".01_1e-6"), (0.001, 1e-3, ".001_1e-3")):
        mine = zcdp_to_dp(rho, delta=delta)[0]
        assert value("gauss_eps_" + key) < mine < value("zcdp_basic_" + key)


@given(
    st.lists(st.tuples(st.floats(1.02, 500), st.floats(1e-6, 30)), min_size=1, max_size=6),
    st.floats(-40, -0.01), st.floats(0, 20),
)
def test_renyi_against_dp_accounting(table, log_delta, eps):
    from dp_accounting.rdp import rdp_privacy_accountant as other

    orders, rdp = (np.array(x) for x in zip(*table, strict=True))
    delta = math.exp(log_delta)
    got, order = rdp_to_dp(orders, rdp, delta=delta)
    theirs = float(other.compute_epsilon(orders, rdp, delta)[0])
    # dp-accounting also uses that the divergence bounds the total variation, which gives eps = 0 for large delta.
    assert got == pytest.approx(theirs, rel=1e-9, abs=1e-12) or theirs < got
    if theirs > 0:
        assert got == pytest.approx(theirs, rel=1e-9, abs=1e-12)
    assert order in orders
    assert got <= rdp_to_dp(orders, rdp, delta=delta, method="mironov")[0] * (1 + 1e-12)
    back = rdp_to_dp(orders, rdp, eps=eps)[0]
    assert float(other.compute_delta(orders, rdp, eps)[0]) <= back * (1 + 1e-9)
    with mp.workdps(40):
        exact = min(
            mp.exp((a - 1) * (mp.mpf(r) - mp.mpf(eps) + mp.log1p(-1 / mp.mpf(a)))) / a for a, r in zip(orders, rdp, strict=True)
        )
        assert min(1, exact) <= back
        assert back <= max(min(mp.mpf(1), exact) * (1 + mp.mpf(10) ** -9), mp.mpf(10) ** -323)


def test_an_order_with_an_infinite_divergence_is_left_out():
    for goal in ({"delta": 1e-5}, {"eps": 2.0}):
        assert rdp_to_dp([2.0, 4.0, 64.0], [math.inf, 0.7, math.inf], **goal) == rdp_to_dp(4.0, 0.7, **goal)


def test_conversion_at_one_order_is_attained():
    # At delta = 1/a, the two-point pair with P(1) = 1 - delta and Q(1) = e^-eps P(1) has exactly this Renyi divergence.
    a, eps = 5.0, 1.3
    delta = 1 / a
    with mp.workdps(40):
        rho = mp.mpf(eps) - mp.log1p(-1 / mp.mpf(a)) + (mp.log(delta) + mp.log(a)) / (a - 1)
    assert rdp_to_dp(a, float(rho), delta=delta)[0] == pytest.approx(eps, rel=1e-14)


@given(st.floats(-12, 3), st.floats(-80, -0.1), st.floats(0, 3))
@settings(max_examples=25)
def test_best_order_of_zcdp(log_rho, log_delta, xi):
    rho, delta = math.exp(log_rho), math.exp(log_delta)
    eps, order = zcdp_to_dp(rho, delta=delta, xi=xi)
    orders = 1 + np.geomspace(1e-4, 1e6, 4000)
    assert eps <= rdp_to_dp(orders, xi + rho * orders, delta=delta)[0] * (1 + 1e-12)
    assert order > 1
    back, _ = zcdp_to_dp(rho, eps=eps, xi=xi)
    assert back <= delta * (1 + 1e-6)
    assert zcdp_to_dp(rho, eps=eps + 0.1, xi=xi)[0] <= rdp_to_dp(orders, xi + rho * orders, eps=eps + 0.1)[0] * (1 + 1e-9)


def test_zcdp_limits():
    assert zcdp_to_dp(0.0, eps=0.0) == (0.0, math.inf)
    assert zcdp_to_dp(0.0, eps=0.05, xi=0.1)[0] == pytest.approx(-math.expm1(-0.05), rel=1e-12)
    assert zcdp_to_dp(0.0, delta=1e-5)[0] == 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: composition_delta(-0.1, 0.0, 1.0), r"eps=-0\.1 must be in \[0, 700\]"),
        (lambda: composition_delta([[0.1]], 0.0, 1.0), "one-dimensional"),
        (lambda: composition_delta(0.1, 1.5, 1.0), r"delta=1\.5"),
        (lambda: composition_delta([0.1, 0.2], [0.0] * 3, 1.0), "delta has shape"),
        (lambda: composition_delta(0.1, 0.0, 1.0, k=1.5), r"k holds 1\.5"),
        (lambda: composition_delta(0.1, 0.0, 1.0, k=2**37), r"k=1\.37439e\+11|k=137438953472"),
        (lambda: composition_delta([0.1, 0.2], 0.0, 1.0, k=2**36), r"must not exceed 2\*\*36"),
        (lambda: composition_delta(0.1, 0.0, -1.0), "eps_total=-1"),
        (lambda: composition_delta(0.1, 0.0, 1.0, bound="exact"), "bound='exact'"),
        (lambda: compose_dp(0.1, 0.0, 0.0, method="advanced"), "slack=0"),
        (lambda: compose_dp(0.1, 0.0, 0.1, method="best"), "method='best'"),
        (lambda: group_privacy(0.1, 0.0, 0), "size=0"),
        (lambda: rdp_to_dp([2.0], [0.1, 0.2], delta=0.1), "rdp has shape"),
        (lambda: rdp_to_dp([2.0, 3.0], [math.inf, math.inf], delta=0.1), "rdp is inf at every order"),
        (lambda: rdp_to_dp([2.0, 3.0], [math.inf, math.nan], delta=0.1), "rdp holds nan"),
        (lambda: rdp_to_dp(1.0, 0.1, delta=0.1), "orders=1"),
        (lambda: rdp_to_dp(2.0, 0.1), "exactly one"),
        (lambda: rdp_to_dp(2.0, 0.1, delta=0.1, eps=1.0), "exactly one"),
        (lambda: zcdp_to_dp(-1.0, delta=0.1), "rho=-1"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_public_names():
    assert set(composition.__all__) == {
        "Guarantee", "calibrate_releases", "compose_dp", "composition_delta", "composition_log_delta", "group_privacy",
        "least_noise", "rdp_to_dp",
        "zcdp_to_dp", "BudgetExceededError", "Ledger", "LedgerError", "from_dict", "to_dict",
    }


@pytest.mark.filterwarnings("error")
def test_conversions_at_the_ends_of_their_ranges():
    # (rho, xi) = (0, 0) is perfect privacy: eps at the best order is 0.
    assert zcdp_to_dp(0.0, delta=1e-300)[0] < 1e-290
    assert zcdp_to_dp(0.0, delta=5e-324)[0] < 1e-290
    for rho in (1e-300, 1.0, 1e6):
        assert 0 < zcdp_to_dp(rho, eps=1e300)[0] < 1e-300
    assert rdp_to_dp(1e300, 1e300, eps=1.0)[0] == 1.0
    assert 0 < rdp_to_dp(1e300, 1.0, eps=1e300)[0] < 1e-300


def test_orders_near_one_are_rounded_up():
    """For an order a near 1 the rounding of 1/a exceeded the margin: eps was too small by up to 6e-10 of it."""
    draws = random.Random(1)
    with mp.workdps(50):
        for _ in range(400):
            order = 1 + 10 ** draws.uniform(-12, 0)
            a, delta = mp.mpf(order), math.exp((1 - order) * draws.uniform(0.1, 5))
            if delta < 1:
                exact = 30 + mp.log(1 - 1 / a) - (mp.log(mp.mpf(delta)) + mp.log(a)) / (a - 1)
                assert max(exact, 0) <= rdp_to_dp(order, 30.0, delta=delta)[0] <= max(exact, 0) * (1 + 1e-12) + 1e-12


@pytest.mark.parametrize("rho", [slow(1.0), slow(25.0), 30.0, 40.0])
@pytest.mark.parametrize("rest", [slow(1e-6), 1e-9, slow(1e-11), 1e-13])
def test_zero_concentrated_privacy_at_a_delta_near_one(rho, rest):
    delta = 1 - rest
    with mp.workdps(40):
        log_delta = mp.log(mp.mpf(delta))
        exact = min(rho * (1 + x) + mp.log(x / (1 + x)) - (log_delta + mp.log1p(x)) / x
                    for x in (mp.mpf(10) ** (mp.mpf(k) / 200) for k in range(-3000, -1000)))
    assert zcdp_to_dp(rho, delta=delta)[0] <= max(float(exact), 0) * (1 + 1e-4) + 1e-9
