"""Privacy filters: an analyst who chooses each mechanism by earlier results, enumerated, stays within the budget."""

import math
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.special import log_ndtr

from shufflebounds import DominatingPair
from shufflebounds.composition import Ledger, rdp_to_dp, zcdp_to_dp
from shufflebounds.mechanisms import GaussianMechanism, KaryResponse, LaplaceMechanism, RandomizedResponse
from tests.strategies import thinned

PAGE = Path(__file__).parents[2] / "docs" / "composition.md"
FILTERS = [{"filter": "gdp"}, {"filter": "rdp"}, {"filter": "rdp", "order": 30.0}]


def gaussian_delta(sigma, eps):
    """Return delta of Gaussian noise (Balle, Wang 2018, Theorem 8)."""
    first, second = log_ndtr(0.5 / sigma - eps * sigma), eps + log_ndtr(-0.5 / sigma - eps * sigma)
    return np.exp(first) - np.exp(second)


def most_noise_that_fits(ledger):
    """Return the least sigma that the ledger affords, to a relative 1e-9."""
    low, high = 1e-2, 1e3
    while high > low * (1 + 1e-9):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if ledger.affords(GaussianMechanism(middle)) else (middle, high)
    return high


def delta_of_a_choice_by_the_first_result(ledger, eps, first, sigma=None):
    """Return delta if Gaussian noise follows the likely result of randomized response, and a rare disclosure the other one."""
    p = 1 / (1 + math.exp(-first))
    ledger.spend(RandomizedResponse(first))
    sigma = sigma or most_noise_that_fits(ledger)
    assert ledger.affords(GaussianMechanism(sigma))
    noise = float(gaussian_delta(sigma, eps - first))
    rare = 0.0
    for hidden in (0.0, 1e-30, 1e-9, 3e-7):
        # The value is published with probability .99e-6; with probability `hidden` the other value is published instead.
        disclosed = np.array([0.99e-6, 1 - 0.99e-6 - hidden, hidden])
        with np.errstate(divide="ignore"):
            pair = DominatingPair.from_pmfs(np.log(disclosed), np.log(disclosed[::-1]))
        if ledger.affords(pair):
            rare = max(rare, np.maximum(disclosed - math.exp(eps + first) * disclosed[::-1], 0.0).sum())
    return p * noise + (1 - p) * max(rare, float(gaussian_delta(sigma, eps + first)))


@pytest.mark.slow
def test_without_a_filter_a_choice_by_results_exceeds_the_budget():
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    sigma, stated = map(float, re.search(r"`GaussianMechanism\(([\d.]+)\)`.*?at least ([\d.]+e-6)", text).groups())
    assert delta_of_a_choice_by_the_first_result(Ledger(1.0, 1e-6), 1.0, 0.3, sigma) > stated > 1e-6


@pytest.mark.parametrize("keywords", thinned(FILTERS, 2), ids=str)
def test_with_a_filter_the_same_choice_stays_within_the_budget(keywords):
    assert delta_of_a_choice_by_the_first_result(Ledger(1.0, 1e-6, **keywords), 1.0, 0.1) <= 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "keywords"), list(enumerate(FILTERS)), ids=str)
def test_every_strategy_stays_within_the_budget(keywords, seed):
    """The best strategy is the recursion of docs/theorems/adaptive-composition, with the choices that the ledger allows.

    At most two of five random mechanisms with two outcomes are followed by the most Gaussian noise that still fits.
    """
    rng, eps, delta = np.random.default_rng(seed), 0.3, 1e-3
    laws = []
    for size in (0.02, 0.05, 0.1, 0.2, 0.5):
        high, loss = rng.uniform(0.002, 0.5), size * rng.uniform(1, 3)
        p = np.array([high, 1 - high])
        q = np.array([high * math.exp(-loss), 1 - high * math.exp(-loss)])
        laws.append((p, q) if rng.random() < 0.5 else (q, p))
    pairs = [DominatingPair.from_pmfs(np.log(p), np.log(q)) for p, q in laws]

    def spent(chosen):
        ledger = Ledger(eps, delta, **keywords)
        for i in chosen:
            ledger.spend(pairs[i])
        return ledger

    @cache
    def affords(chosen, i):
        return spent(chosen).affords(pairs[i])

    @cache
    def noise(chosen):
        return most_noise_that_fits(spent(chosen))

    def best(log_e, chosen):
        found = np.maximum(-np.expm1(np.minimum(log_e, 0.0)), gaussian_delta(noise(chosen), log_e))
        for i, (p, q) in enumerate(laws):
            if len(chosen) < 2 and affords(chosen, i):
                after = tuple(sorted((*chosen, i)))
                found = np.maximum(found, p @ np.array([best(log_e - loss, after) for loss in np.log(p / q)]))
        return found

    (reached,) = best(np.array([eps]), ())
    assert {affords((), i) for i in range(len(laws))} == {True, False}
    assert 0.1 * delta < reached <= delta * (1 + 1e-9)


def test_the_gaussian_filter_admits_as_much_gaussian_noise_as_a_fixed_list():
    ledger = Ledger(1.0, 1e-6, filter="gdp")
    ledger.spend(GaussianMechanism(10.0), times=3)
    sigma = most_noise_that_fits(ledger)
    total = 1 / math.sqrt(3 / 100 + 1 / sigma**2)
    assert gaussian_delta(total, 1.0) <= 1e-6 * (1 + 1e-9)
    assert gaussian_delta(total * (1 - 1e-9), 1.0) > 1e-6
    ledger.spend(GaussianMechanism(sigma))
    assert ledger.spent == pytest.approx(1.0, rel=1e-9)
    assert ledger.spent <= 1.0


def test_the_renyi_filter_adds_divergences_of_its_order():
    """The divergence of Gaussian noise of order a is a/(2 sigma^2), that of Laplace noise Mironov's closed form (2017)."""
    order, scale = 20.0, 50.0
    ledger = Ledger(1.0, 1e-6, filter="rdp", order=order)
    ledger.spend(LaplaceMechanism(scale), times=2)
    weights = order / (2 * order - 1), (order - 1) / (2 * order - 1)
    laplace = math.log(weights[0] * math.exp((order - 1) / scale) + weights[1] * math.exp(-order / scale)) / (order - 1)
    assert ledger.spent == pytest.approx(rdp_to_dp(order, 2 * laplace, delta=1e-6)[0], rel=1e-12)


def test_the_default_order_is_the_best_for_gaussian_noise():
    def noise(order):
        return most_noise_that_fits(Ledger(1.0, 1e-6, filter="rdp", order=order))

    order = Ledger(1.0, 1e-6, filter="rdp").order
    assert noise(order) < min(noise(0.98 * order), noise(1.02 * order))
    # It is the noise of zero-concentrated privacy at its best order.
    assert zcdp_to_dp(0.5 / noise(order) ** 2, delta=1e-6)[0] == pytest.approx(1.0, rel=1e-9)


def test_what_a_filter_cannot_add_is_refused():
    with np.errstate(divide="ignore"):
        disclosure = DominatingPair.from_pmfs(np.log([1e-9, 1 - 1e-9]), np.log([0.0, 1.0]))
    for keywords in FILTERS:
        assert not Ledger(1.0, 1e-6, **keywords).affords(disclosure)
    assert Ledger(1.0, 1e-6).affords(disclosure)


def test_a_filter_keeps_the_relation_of_the_neighbours():
    for keywords in FILTERS:
        ledger = Ledger(1.0, 1e-6, **keywords)
        ledger.spend(KaryResponse(3, 0.05))
        with pytest.raises(ValueError, match="record replaced"):
            ledger.affords(GaussianMechanism(50.0).subsampled(0.1))


@pytest.mark.parametrize(("eps", "delta"), [(1.0, 5e-324), (1.0, 1e-322), (3.0, 5e-324)])
def test_the_gaussian_filter_rounds_subnormal_delta_up(eps, delta):
    ledger = Ledger(eps, delta, filter="gdp")
    sigma = most_noise_that_fits(ledger) * (1 + 1e-9)
    log_delta = log_ndtr(0.5 / sigma - eps * sigma) + math.log1p(-math.exp(eps + log_ndtr(-0.5 / sigma - eps * sigma)
                                                                          - log_ndtr(0.5 / sigma - eps * sigma)))
    assert log_delta <= math.log(delta)
    assert ledger.spend(GaussianMechanism(sigma)) <= eps
