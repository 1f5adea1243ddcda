"""Logarithms of hypergeometric tails against exact fractions, and for large populations against sums in python-flint."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest

pytest.importorskip("flint")

import flint
from flint import arb

from shufflebounds._core import _hypergeom
from tests.errors import log_of
from tests.strategies import thinned

LOGPMF, LOGCDF, LOGSF = _hypergeom.hypergeom_logpmf, _hypergeom.hypergeom_logcdf, _hypergeom.hypergeom_logsf


def allowed(exact, other=0.0):
    """Return the allowed error of a logarithm: 1e-13 of the probability, 4 ulp, and the error of a smaller other tail."""
    return 1e-13 * min(1.0, abs(exact)) + 4 * math.ulp(exact) + (abs(exact) * 4 * math.ulp(other) if exact > -0.69 else 0)


def log_fraction(x):
    return float(log_of(x)) if x else -math.inf


def test_every_tail_of_small_populations():
    rng = random.Random(1)
    for _ in range(60):
        total = rng.randint(1, 40)
        marked, draws = rng.randint(0, total), rng.randint(0, total)
        ways = [math.comb(marked, k) * math.comb(total - marked, draws - k) if draws >= k else 0 for k in range(marked + 1)]
        every = sum(ways)
        for k in range(-1, marked + 2):
            pmf = Fraction(ways[k], every) if 0 <= k <= marked else Fraction(0)
            cdf = Fraction(sum(ways[: max(k + 1, 0)]), every)
            for got, exact, other in ((LOGPMF, pmf, 1 - pmf), (LOGCDF, cdf, 1 - cdf), (LOGSF, 1 - cdf, cdf)):
                value = float(got(k, total, marked, draws))
                if exact in (0, 1):
                    assert value == log_fraction(exact)
                else:
                    assert abs(value - log_fraction(exact)) <= allowed(log_fraction(exact), log_fraction(other))


def exact_logs(k, total, marked, draws):
    """Return log Pr[X = k], and the log of the smaller of Pr[X <= k] and Pr[X > k] with whether that is Pr[X <= k]."""
    flint.ctx.prec = 220

    def log_choose(n, r):
        return (arb(n) + 1).lgamma() - (arb(r) + 1).lgamma() - (arb(n - r) + 1).lgamma()

    pmf = log_choose(marked, k) + log_choose(total - marked, draws - k) - log_choose(total, draws)
    upper = (k + 1) * total >= marked * draws
    term = sum_ = arb(1)
    if not upper:
        while k > 0 and not term < arb(2) ** -100 * sum_:
            term *= arb(k * (total - marked - draws + k)) / arb((marked - k + 1) * (draws - k + 1))
            sum_ += term
            k -= 1
        return pmf, pmf + sum_.log(), False
    sum_ = arb(0)
    while not term < arb(2) ** -100 * sum_:
        term *= arb((marked - k) * (draws - k)) / arb((k + 1) * (total - marked - draws + k + 1))
        sum_ += term
        k += 1
        if k >= marked:
            break
    return pmf, pmf + sum_.log(), True


def points(seed, count, widest):
    rng = random.Random(seed)
    while count:
        total = round(math.exp(rng.uniform(5, math.log(2**53))))
        marked, draws = (round(math.exp(rng.uniform(0, math.log(total)))) for _ in range(2))
        if rng.random() < 0.5:
            marked = total - marked
        mean = Fraction(marked * draws, total)
        sigma = math.sqrt(float(mean) * (1 - marked / total) * (1 - draws / total))
        k = math.floor(mean + round(rng.gauss(0, 1) * rng.choice([1, 5, 30]) * sigma))
        if sigma < widest and max(0, draws - total + marked) < k < min(marked, draws) - 1:
            count -= 1
            yield k, total, marked, draws


@pytest.mark.parametrize("seed", thinned(range(4), 2))
def test_against_sums_of_neighbours(seed):
    wide = 0
    for k, total, marked, draws in points(seed, 12, 1500.0):
        pmf, small, upper = (v if isinstance(v, bool) else float(v.mid()) for v in exact_logs(k, total, marked, draws))
        assert abs(LOGPMF(k, total, marked, draws) - pmf) <= 1e-13 + 4 * math.ulp(pmf)
        got = (LOGSF if upper else LOGCDF)(k, total, marked, draws)
        assert abs(got - small) <= allowed(small), (k, total, marked, draws)
        wide += 1
    assert wide == 12


@pytest.mark.parametrize("total", [30_000, 10**6, 10**9, 10**12, 2**53])
@pytest.mark.parametrize(("part", "drawn"), thinned([(0.5, 0.5), (0.01, 0.02), (0.001, 0.99), (0.9, 0.9), (1e-3, 0.3)], 2))
def test_neighbouring_tails_differ_by_the_probability_between_them(total, part, drawn):
    # The points cross the limits of every method: expansions of three orders, sums, plain and double-double deviances.
    marked, draws = math.floor(part * total), math.floor(drawn * total)
    mean, sigma = marked * draws / total, math.sqrt(marked * drawn * (1 - part) * (1 - drawn))
    steps = np.concatenate([np.linspace(-9, 9, 400), np.linspace(-0.3, 0.3, 400) * min(sigma, 1e6)])
    low, high = max(0, draws - total + marked), min(marked, draws)
    k = np.unique(np.clip(np.floor(mean + steps * sigma), low + 1, high - 1))
    mass = LOGPMF(k, total, marked, draws)
    for tail, with_k, without_k in ((LOGSF, k - 1, k), (LOGCDF, k, k - 1)):
        whole, rest = tail(with_k, total, marked, draws), tail(without_k, total, marked, draws)
        scale = 1e-13 * np.minimum(1, np.abs(whole)) + 8 * np.spacing(np.abs(np.minimum(rest, mass)))
        assert np.all(np.abs(np.logaddexp(rest, mass) - whole) <= scale)


def test_the_largest_population_is_symmetric_and_close_to_normal():
    total, half = 2**53, 2**52
    sigma = math.sqrt(half / 8)
    centre = 2**51
    for z in (0.0, 1.0, 3.0):
        k = float(centre + math.floor(z * sigma))
        upper, lower = LOGSF(k - 1, total, half, half), LOGCDF(2 * centre - k, total, half, half)
        assert upper == pytest.approx(lower, abs=1e-13)
        assert math.exp(upper) == pytest.approx(math.erfc((k - 0.5 - centre) / sigma / math.sqrt(2)) / 2, rel=1e-6)


def test_outside_the_domain():
    for bad in ((1, 10, 11, 5), (1, 10, 5, 11), (1, 10.5, 5, 5), (1, 10, 5, -1), (math.nan, 10, 5, 5), (1, 2.0**54, 5, 5)):
        for f in (LOGPMF, LOGCDF, LOGSF):
            assert math.isnan(f(*bad))
    assert LOGPMF(1.5, 10, 5, 5) == -math.inf
    assert np.array_equal(LOGCDF([1.5, -1, 7], 10, 5, 5), [LOGCDF(1, 10, 5, 5), -math.inf, 0])


@pytest.mark.parametrize(("total", "left"), [(1517, 1), (336357, 2), (7410357, 1165), (2**53, 1), (2**53, 3)])
def test_one_marked_item_drawn_with_probability_close_to_one(total, left):
    # Pr[X = 0] is left/total. It was once computed as 1 minus a tail close to 1, with errors up to 4e-11.
    exact = math.log(left) - math.log(total)
    assert abs(_hypergeom.hypergeom_logcdf(0, total, 1, total - left) - exact) < 1e-13
    assert abs(_hypergeom.hypergeom_logpmf(0, total, 1, total - left) - exact) < 1e-13
    assert _hypergeom.hypergeom_logsf(0, total, 1, total - left) == pytest.approx(math.log1p(-left / total), rel=1e-13, abs=0)
