"""Kernels of privacy losses against mpmath, and the inequalities that make their results upper or lower bounds."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shufflebounds._core import _losses
from shufflebounds._engines.compose.grid_product import Product
from shufflebounds.profile.extend import DominatingPairInfo, LossAtoms, Reverse
from shufflebounds.shuffle import BinomialNoise
from tests.oracles import LONG as mp
from tests.oracles import hockey_stick_of_losses as hockey_stick
from tests.strategies import outcomes, thinned


@pytest.mark.slow
@given(outcomes(), st.sampled_from([1 / 16, 0.3, 0.011]), st.floats(-0.1, 0.1))
def test_split_dominates_and_merge_is_dominated(law, step, anchor):
    log_p, loss = law
    first = math.floor((loss[0] - anchor) / step) - 1
    size = math.ceil((loss[-1] - anchor) / step) + 2 - first
    grid = anchor + step * (first + np.arange(size))
    above = _losses.split(log_p, loss, anchor, step, first, size)
    below = _losses.merge(log_p, loss, anchor, step, first, size)
    for eps in (*np.linspace(-2.3, 2.3, 14), *loss[:3]):
        exact = hockey_stick(log_p, loss, eps)
        assert hockey_stick(above, grid, eps) >= exact * (1 - mp.mpf(10) ** -13) - mp.mpf(10) ** -60
        # The exact value is taken at a slightly smaller eps, because a merged loss has the rounding error of its cell's mean.
        assert hockey_stick(below, grid, eps) <= hockey_stick(log_p, loss, eps - 1e-13) * (1 + mp.mpf(10) ** -13)
    # Splitting atoms over grid points keeps the total mass under both distributions.
    assert abs(np.logaddexp.reduce(above)) < 1e-13
    assert abs(np.logaddexp.reduce(above - grid) - np.logaddexp.reduce(log_p - loss)) < 1e-12
    assert np.logaddexp.reduce(below) < 1e-13


def test_merge_is_of_second_order():
    loss = np.sort(np.random.default_rng(5).normal(0.02, 0.2, 20_000))
    log_p = np.full(loss.size, -math.log(loss.size))
    lost = []
    for step in (0.02, 0.01):
        first = math.floor(loss[0] / step)
        size = math.ceil(loss[-1] / step) + 1 - first
        below = np.exp(_losses.merge(log_p, loss, 0.0, step, first, size))
        grid = step * (first + np.arange(size))
        assert abs(below.sum() - 1) < 1e-12
        # The mean of e^-loss is kept, except at the last grid point.
        assert abs(below @ np.exp(-grid) - np.exp(-loss).mean()) < 1e-4 * step
        lost.append(loss.var() - (below @ grid**2 - (below @ grid) ** 2))
    assert 0 < lost[1] < lost[0] < 0.02**2
    assert lost[1] < 0.45 * lost[0]


@pytest.mark.slow
@given(outcomes(), st.floats(-30, -1))
def test_hockey_stick_of_a_distribution(law, rest):
    log_p, loss = law
    loss, place = np.unique(loss, return_index=True)
    log_p = log_p[place]
    for log_rest in (rest, -math.inf):
        for value, eps in zip(_losses.law_hockey_stick(loss, log_p, log_rest), loss):
            exact = hockey_stick(log_p, loss, eps, log_rest)
            if exact == 0:
                assert value == -math.inf
            else:
                assert abs(value - float(mp.log(exact))) < 4 * 2.3e-16 * max(1, abs(float(mp.log(exact)))) * 4


@pytest.mark.slow
def test_hockey_stick_in_the_extreme_tail():
    loss = np.arange(-50, 51) / 16
    log_p = -(np.arange(101) - 50.0) ** 2 * 2
    for value, eps in zip(_losses.law_hockey_stick(loss, log_p, -math.inf), loss[:-1]):
        exact = float(mp.log(hockey_stick(log_p, loss, eps)))
        assert abs(value - exact) < 1e-15 * 8 * max(1, abs(exact))


@pytest.mark.parametrize("theta", [0.5, 3.0])
def test_tilted_stop_loss(theta):
    step = 0.125
    values = step * np.arange(-8, 9)
    p = np.exp(-(values**2))
    tail, excess = _losses.tilted_excess(p * np.exp(theta * values), theta, step, 0.0)
    for i, x in enumerate(values):
        assert tail[i] * math.exp(-theta * x) == pytest.approx(math.fsum(p[i:]), rel=1e-13)
        exact = math.fsum(p * np.maximum(values - x, 0))
        assert excess[i] * math.exp(-theta * x) == pytest.approx(exact, rel=1e-13, abs=1e-300)


def test_tilted_hockey_stick():
    step, theta = 0.125, 3.0
    loss = step * np.arange(-8, 9)
    p = np.exp(-loss**2)
    tail, hockey_sticks = _losses.tilted_excess(p * np.exp(theta * loss), theta, step, 1.0)
    for i, x in enumerate(loss):
        assert tail[i] * math.exp(-(theta + 1) * x) == pytest.approx((p * np.exp(-loss))[i:].sum(), rel=1e-13)
        exact = float(hockey_stick(np.log(p), loss, x))
        assert hockey_sticks[i] * math.exp(-theta * x) == pytest.approx(exact, rel=1e-13, abs=1e-300)


@pytest.mark.parametrize(("size", "rate"), thinned([(1, 0.3), (7, -2.0), (300, 0.1), (1500, -0.01), (1500, 3.0)], 2))
def test_tilted_moments(size, rate):
    rng = np.random.default_rng(size)
    logs, place = rng.uniform(-50, 0, size), np.cumsum(rng.integers(1, 4, size)).astype(float) - 20
    terms = [mp.exp(mp.mpf(a) + mp.mpf(rate) * mp.mpf(x)) for a, x in zip(logs, place)]
    total = mp.fsum(terms)
    mean = mp.fsum(w * mp.mpf(x) for w, x in zip(terms, place)) / total
    variance = mp.fsum(w * (mp.mpf(x) - mean) ** 2 for w, x in zip(terms, place)) / total
    got = _losses.tilted_moments(logs, place, rate)
    # an exponent is rounded twice
    error = 4e-16 * float(np.max(np.abs(logs) + np.abs(rate * place))) + 1e-14
    assert abs(got[0] - mp.log(total)) <= error
    assert abs(got[1] - mean) <= error * max(abs(place))
    assert abs(got[2] - variance) <= 3 * error * float(variance) + 1e-13


def test_balanced_moments_are_those_of_the_recursion():
    rng = np.random.default_rng(3)
    size = 200
    mass, inside, free = rng.random(size), rng.random(size), rng.random(size) < 0.1
    moments = _losses.balanced(mass, inside, 1 - inside, free.view(np.uint8), size - 1)
    assert moments[0] == 0
    for k, (before, after) in enumerate(itertools.pairwise(moments)):
        if not free[k]:
            left, right = before / inside[k], after / (1 - inside[k])
            assert left + right == pytest.approx(max(mass[k], left), rel=1e-14)
        else:
            assert after == (0.0 if free[k + 1] else pytest.approx(inside[k + 1] * mass[k + 1] / 2, rel=1e-14))
    backwards = (array[::-1] for array in (mass, inside, 1 - inside, free.view(np.uint8)))
    copies = (array[::-1].copy() for array in (mass, inside, 1 - inside, free.view(np.uint8)))
    assert _losses.balanced(*backwards, 50).tolist() == _losses.balanced(*copies, 50).tolist()
    with pytest.raises(ValueError, match="same number"):
        _losses.balanced(mass, inside, inside[1:], free.view(np.uint8), 3)
    with pytest.raises(ValueError, match="more than `last`"):
        _losses.balanced(mass, inside, 1 - inside, free.view(np.uint8), size)


def test_tilted_excess_of_part_of_a_circle():
    # 24 numbers with few bits, so that every order of the points gives the same sums up to rounding.
    mass = np.arange(1.0, 25.0)
    for turn, first, stop in itertools.product((0, 5, 23), (0, 7), (7, 20, 24)):
        whole = _losses.tilted_excess(np.roll(mass, -turn), 0.5, 0.25, 1.0)
        part = _losses.tilted_excess(mass, 0.5, 0.25, 1.0, turn, first, stop)
        for one, other in zip(whole, part):
            assert np.array_equal(one[first:stop], other)


@pytest.mark.parametrize("times", [(10,), (1, 7), (1000, 3, 64)])
def test_multiplied_spectra(times):
    draws = np.random.default_rng(sum(times))
    stage = 2.0**-40
    size = np.exp(-draws.uniform(0, 40 / max(times), (len(times), 300)))
    size[:, ::3] *= np.exp(-draws.uniform(0, 40, 100))
    spectra = size * np.exp(1j * draws.uniform(0, 6.28, size.shape))
    exact = [mp.fprod(mp.mpc(complex(z)) ** t for z, t in zip(column, times)) for column in spectra.T]
    most = [mp.fprod((abs(mp.mpc(complex(z))) + stage) ** t for z, t in zip(column, times)) for column in spectra.T]
    product = np.ascontiguousarray(spectra)
    error, kept, lost = _losses.multiplied(product, np.array(times), stage)
    dropped = product[0] == 0
    assert 0 < np.count_nonzero(dropped) < 300
    assert max(top for top, none in zip(most, dropped) if none) <= mp.exp(-60) * (1 + 1e-9)
    assert lost == pytest.approx(float(mp.fsum(top for top, none in zip(most, dropped) if none)), rel=1e-9)
    assert kept == pytest.approx(float(mp.fsum(top for top, none in zip(most, dropped) if not none)), rel=1e-11)
    for one, value, none in zip(exact, product[0], dropped):
        assert none or abs(value - one) <= 4 * 2.2e-16 * sum(times) * abs(one)
    # The products of all values that are at most `stage` away differ by at most top - |exact| at each frequency.
    apart = float(mp.fsum(top - abs(one) for top, one, none in zip(most, exact, dropped) if not none))
    assert apart * (1 - 1e-9) <= error <= apart * (1 + 1e-6) + 1e-20
    with pytest.raises(ValueError, match="need the same number"):
        _losses.multiplied(product, np.ones(9, dtype=np.int64), stage)


def test_blocks_of_negligible_products_are_dropped_within_their_bound():
    spectra = np.full((2, 1000), 1.0 + 0j)
    spectra[:, 256:] = np.exp(-np.random.default_rng(4).uniform(1.0, 3.0, (2, 744)))
    most = mp.fsum(((mp.mpf(abs(x)) + mp.mpf(1e-12)) ** 100 * (mp.mpf(abs(y)) + mp.mpf(1e-12)) ** 20) for x, y in spectra.T[256:])
    product = spectra.copy()
    _, kept, lost = _losses.multiplied(product, np.array([100, 20]), 1e-12)
    assert (product[0] != 0).tolist() == [True] * 256 + [False] * 744
    assert kept == pytest.approx(256, rel=1e-9)
    assert most <= lost <= 744 * mp.exp(-120) * (1 + 1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(("trials", "step"), [(6, 0.05), (50, 0.003), (50, 0.4)])
def test_grid_bounds_from_values_of_delta(trials, step):
    # The divergence of the upper distribution is an upper bound, and that of the lower distribution is a lower bound. Both are
    # compared with the exact divergence.
    for pair in BinomialNoise(trials, 0.25).pairs():
        mass = [mp.binomial(trials, k) * mp.mpf(3) ** (trials - k) / mp.mpf(4) ** trials for k in range(trials + 1)]
        p, q = ([*mass, mp.mpf(0)], [mp.mpf(0), *mass])
        if pair.shifted_first:
            p, q = q, p
        reverse = pair.reverse()
        info = DominatingPairInfo(pair._log_delta, reverse=Reverse(reverse._log_delta, math.inf))
        low, law = (info.law(0.0, step, -60.0, None, upper=upper) for upper in (False, True))
        assert law.slack < 1e-11
        assert low.slack < 1e-9
        for eps in np.linspace(-4, 7, 45):
            exact = mp.fsum(max(mp.mpf(0), a - mp.exp(mp.mpf(float(eps))) * b) for a, b in zip(p, q))
            above = hockey_stick(law.log_p + law.slack, law.losses + law.loss_error, eps, law.log_rest + law.slack)
            below = hockey_stick(low.log_p - low.slack, low.losses - low.loss_error, eps, low.log_rest)
            assert below <= exact <= above
            if step < 0.01:
                assert above - below < mp.mpf("1e-4")


def test_product_of_enumerated_distributions():
    rng = np.random.default_rng(3)
    laws = []
    for _ in range(2):
        p, q = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(4))
        laws.append((p, q))
    for times in ([1, 1], [2, 1], [3, 2]):
        p, q = np.ones(1), np.ones(1)
        for (a, b), r in zip(laws, times):
            for _ in range(r):
                p, q = np.outer(p, a).ravel(), np.outer(q, b).ravel()
        for upper in (True, False):
            shaped = [LossAtoms.of(np.log(a), np.log(b)).law(0.0, 1e-3, upper=upper) for a, b in laws]
            found = Product(shaped, times, upper=upper)
            for eps in (0.0, 0.25, 0.5, 1.0):
                exact = math.log(np.maximum(p - math.exp(eps) * q, 0).sum())
                value, _ = found.log_delta(eps)
                assert (value >= exact - 1e-13) if upper else (value <= exact + 1e-13)
                assert abs(value - exact) < 0.02


@pytest.mark.parametrize(("outcomes", "times"), thinned([(2, 13), (2, 16_000), (6, 15), (3, 170)], 2))
def test_error_bound_of_multinomial_coefficients(outcomes, times):
    # With masses of 1 the log masses of the repeated distribution are the log coefficients alone. The sum of the losses, which are
    # powers of times + 1, has the numbers of all outcomes but the first as its digits.
    loss = np.append(0.0, (times + 1.0) ** np.arange(outcomes - 1))
    repeated = LossAtoms.product([(LossAtoms(np.zeros(outcomes), loss, -np.inf, -np.inf, -np.inf, 0.0, 0.0), times)])
    assert repeated.slack <= 2.0**-52 * (times + 70) * math.lgamma(times + 1)
    assert repeated.loss.size == math.comb(times + outcomes - 1, times)
    for row in np.linspace(0, repeated.loss.size - 1, 40, dtype=int).tolist():
        counts = [int(repeated.loss[row]) // (times + 1) ** digit % (times + 1) for digit in range(outcomes - 1)]
        exact = mp.loggamma(times + 1) - sum(mp.loggamma(count + 1) for count in [times - sum(counts), *counts])
        assert abs(repeated.log_p[row] - exact) <= repeated.slack


@pytest.mark.parametrize("eps", [0.1, 2.0, 20.0, 45.0])
def test_losses_far_from_the_others(eps):
    loss, times = np.array([-30.0, -0.05, 0.06, 30.0]), 3
    p = np.array([5e-14, 0.5, 0.4999, 1e-4])
    atoms = LossAtoms(np.log(p), loss, -math.inf, -math.inf, -math.inf, 0.0, 0.0)
    exact = mp.mpf(0)
    for index in itertools.product(range(4), repeat=times):
        total = sum(mp.mpf(float(loss[i])) for i in index)
        if total > eps:
            exact += mp.fprod(mp.mpf(float(p[i])) for i in index) * -mp.expm1(eps - total)
    # All losses are grid points. The lower bound omits the smallest loss.
    laws = [atoms.law(0.0, 0.01, upper=upper) for upper in (False, True)]
    low, high = (Product([law], [times], upper=upper).log_delta(eps)[0] for upper, law in enumerate(laws))
    assert laws[0].losses == pytest.approx(loss[1:], rel=1e-14)
    assert low <= mp.log(exact) <= high
    assert high - low < 1e-6
