"""Renyi divergences of random allocation of whole orders, against enumeration and the multinomial formula in mpmath."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest

from shufflebounds.mechanisms import GaussianMechanism, KaryResponse, LaplaceMechanism
from shufflebounds.profile import DominatingPair
from shufflebounds.sampling import AllocationPair, RandomAllocation
from tests.strategies import slow, thinned


def multinomial(order, steps, divergences):
    """Return the divergence of order a over t steps from a! [x^a] (sum_k M_k (x/t)^k/k!)^t, by repeated squaring of the series.

    M_k = e^((k - 1) D_k) are moments of one step, and `divergences` are its D_2, ..., D_a.
    """
    moments = [mp.mpf(1), mp.mpf(1), *(mp.exp((k - 1) * mp.mpf(d)) for k, d in enumerate(divergences, 2))]
    series = [m / mp.factorial(k) / mp.mpf(steps) ** k for k, m in enumerate(moments)]

    def times(p, q):
        return [mp.fsum(p[i] * q[n - i] for i in range(n + 1)) for n in range(order + 1)]

    out, left = [mp.mpf(1), *[mp.mpf(0)] * order], steps
    while left:
        out = times(out, series) if left & 1 else out
        left >>= 1
        series = times(series, series) if left else series
    return mp.log(out[order] * mp.factorial(order)) / (order - 1)


@pytest.mark.parametrize(
    ("order", "steps", "sigma"),
    [(2, 1, 0.7), (3, 2, 1.0), (2, 5, 1.0), (7, 3, 0.5), (8, 451, 1.3), (5, 10**7, 2.0), (24, 10, 0.3), slow(64, 10**7, 0.5),
     slow(40, 1000, 6.0)],
)
def test_gaussian_noise_against_the_multinomial_formula(order, steps, sigma):
    pair = AllocationPair(GaussianMechanism(sigma), steps, removed=True)
    with mp.workdps(60):
        exact = multinomial(order, steps, np.arange(2.0, order + 1) / (2 * sigma**2))
        low, high = (pair.rdp(order, bound=bound) for bound in ("lower", "upper"))
        assert low <= exact <= high
        assert high - low < 1e-10 * exact


def test_largest_order_is_that_of_a_composition_with_all_steps_alike():
    # With one step the formula returns the divergence of the step itself.
    pair = AllocationPair(GaussianMechanism(math.sqrt(50)), 1)
    low, high = (pair.rdp(256, bound=bound) for bound in ("lower", "upper"))
    assert low <= 2.56 <= high
    assert high - low < 1e-9 * high


def test_tiny_delta_is_bounded_by_the_best_of_several_orders():
    # E max(0, L - e^eps) of a likelihood ratio L is at most (1 - 1/a)^(a - 1) e^(-(a - 1) eps)/a times its moment of order a.
    sigma, steps, eps = 1.5, 300, np.array([5.5, 9.0])
    orders, power = np.arange(2.0, 41.0), np.array([1.0])
    k = np.arange(41.0)
    factorials = np.cumprod(np.maximum(k, 1.0))
    for _ in range(steps):
        power = np.convolve(power, np.exp(k * (k - 1) / (2 * sigma**2)) / factorials / steps**k)[:41]
    moments = (factorials * power)[2:]
    bounds = np.log(moments / orders) + (orders - 1) * (np.log(1 - 1 / orders) - eps[:, None])
    exact, found = bounds.min(axis=1), AllocationPair(GaussianMechanism(sigma), steps).log_delta(eps)
    assert (exact <= found).all()
    assert (found <= exact + 1e-7).all()


@pytest.mark.parametrize("steps", [1, 2, 3, 4])
@pytest.mark.parametrize("order", thinned([2.0, 3.0, 5.0, 2.5, 1.4], 3))
def test_a_pair_that_is_not_symmetric_by_enumeration(steps, order):
    p, q = (0.5, 0.3, 0.15, 0.05), (0.25, 0.25, 0.25, 0.25)
    pair = AllocationPair(DominatingPair.from_pmfs([math.log(x) for x in p], [math.log(x) for x in q]), steps)
    with mp.workdps(30):
        total = mp.mpf(0)
        for outputs in itertools.product(range(4), repeat=steps):
            without = mp.fprod(mp.mpf(q[y]) for y in outputs)
            average = mp.fsum(mp.mpf(p[y]) / mp.mpf(q[y]) for y in outputs) / steps
            total += without * average**order
        exact = mp.log(total) / (mp.mpf(order) - 1)
        low, high = pair.rdp(order, bound="lower"), pair.rdp(order)
        assert low * (1 - 1e-14) <= exact <= high * (1 + 1e-14)
        assert high - low < (1e-12 if order == round(order) else 5e-3) * exact


@pytest.mark.parametrize("mechanism", [slow(GaussianMechanism(1.2)), LaplaceMechanism(1.5), KaryResponse(2, 0.8)])
def test_closed_form_agrees_with_samples_of_delta(mechanism):
    pair = AllocationPair(mechanism, 30)
    orders = np.array([2.0, 3.0, 5.0])
    low, high = (pair._sampled_rdp(orders, upper) for upper in (False, True))
    assert (low <= pair.rdp(orders) * (1 + 1e-12)).all()
    assert (pair.rdp(orders, bound="lower") <= high).all()


@pytest.mark.slow
def test_divergences_do_not_decrease_between_orders():
    pair = AllocationPair(GaussianMechanism(1.0), 500)
    values = [pair.rdp(order) for order in (2.0, 5.0, 5.5, 6.0, 12.0, 12.5, 13.0)]
    assert values == sorted(values)
    # The samples of delta end at e^-75, so they bound the divergence of order 64 only by 32, that of one step.
    assert 0.9 * pair.rdp(64.0) < pair.rdp(64.0, bound="lower") < 30
    assert RandomAllocation(GaussianMechanism(1.0), 500).rdp(64.0) == pair.rdp(64.0)


def test_an_infinite_divergence_of_a_step_is_infinite():
    pair = DominatingPair.from_pmfs([math.log(0.5), math.log(0.5)], [0.0, -math.inf])
    assert AllocationPair(pair, 10).rdp(3.0) == AllocationPair(pair, 10).rdp(3.0, bound="lower") == math.inf


@pytest.mark.slow
def test_several_chosen_steps_have_the_divergences_of_their_composition():
    epoch = RandomAllocation(GaussianMechanism(1.0), 100, 4)
    block = AllocationPair(GaussianMechanism(1.0), 25)
    directions = RandomAllocation(GaussianMechanism(1.0), 100, 4)._adjacencies()
    order = 3.0
    # An earlier version returned 2 * order, the divergence of four releases without sampling.
    assert epoch.rdp(order) == pytest.approx(4 * block.rdp(order), rel=1e-12)
    assert epoch.rdp(order, bound="lower") == max(one.rdp(order, bound="lower") for one in directions)
    three = epoch.self_compose(3)
    assert epoch.rdp(order, bound="lower") <= three.rdp(order, bound="lower") <= three.rdp(order)
    # The lower bound of an epoch is the divergence of a fixed pair of distributions, so those of several epochs add up.
    assert three.rdp(order, bound="lower") == pytest.approx(3 * epoch.rdp(order, bound="lower"), rel=1e-9)
    # The noise of an epoch in which all four steps are known has mu = 2.
    assert epoch.gdp_mu(bound="lower") == pytest.approx(2.0, rel=1e-9)
    assert three.gdp_mu() == pytest.approx(math.sqrt(12.0), rel=1e-9)


def test_mu_of_several_steps_in_either_direction_is_that_of_the_sum():
    for pair in RandomAllocation(GaussianMechanism(1.0), 100, 4)._adjacencies():
        assert 2 - 1e-9 <= pair.gdp_mu(bound="lower") <= 2 <= pair.gdp_mu()


@pytest.mark.parametrize("order", [1.5, 2.0, 2.5, 3.0, 3.5, 300.5])
def test_an_outcome_that_only_the_record_produces_makes_divergences_infinite(order):
    pair = DominatingPair.from_pmfs(np.log([0.5, 0.4, 0.1]), [math.log(0.5), math.log(0.5), -math.inf])
    # With 20,000 steps the numbers of outcomes are not enumerated.
    for one in (AllocationPair(pair, 3), AllocationPair(pair, 20_000), RandomAllocation(pair, 3)):
        assert one.rdp(order) == one.rdp(order, bound="lower") == math.inf
    for bounds in (AllocationPair(pair, 20_000)._forms._between(order), AllocationPair(pair, 3)._forms._between(order)):
        assert not np.isnan(bounds).any()
        assert bounds.upper == math.inf


@pytest.mark.parametrize("finite", [1, 2, 3, 4])
def test_orders_between_finite_and_infinite_divergences(monkeypatch, finite):
    # (a - 1) D_a is 0.1 a (a - 1) up to this order, and infinite beyond.
    forms = AllocationPair(GaussianMechanism(1.0), 5)._forms
    monkeypatch.setattr(type(forms), "_whole", lambda self, order, upper: 0.1 * order if order <= finite else math.inf)
    for order in (1.2, 1.7, 2.3, 2.5, 3.5, 4.5):
        lower, upper = forms._between(order)
        assert 0 <= lower <= upper
        assert lower <= 0.1 * order * (1 + 1e-12) or order > finite
        assert upper >= 0.1 * order
