"""The trade-off function, mu, Renyi divergences and the reverse of compositions, against enumerated products."""

import math
from dataclasses import dataclass

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr, ndtr, ndtri

from shufflebounds import DominatingPair, Tradeoff
from shufflebounds._engines.compose.composer import Composer
from shufflebounds.mechanisms import GaussianMechanism, LaplaceMechanism, RandomizedResponse
from shufflebounds.profile import Composition
from shufflebounds.profile.extend import Attained, DominatingPairInfo, IntervalArray, Sampling
from shufflebounds.shuffle import BinomialNoise, ShuffledBits
from shufflebounds.tradeoff import renyi_divergence
from tests.engines.compose.test_composer import listed, product
from tests.oracles import logs
from tests.strategies import laws, thinned

ALPHA = np.linspace(0, 1, 41)[1:-1]


def skewed():
    """Return a pair whose two orders have different divergences."""
    return DominatingPair.from_pmfs(np.log([0.7, 0.2, 0.1]), np.log([0.85, 0.05, 0.1]))


@pytest.mark.parametrize("times", [1, 2, 4])
@pytest.mark.parametrize("backwards", [False, True])
def test_curve_of_an_ordered_product(times, backwards):
    pair = skewed().reverse() if backwards else skewed()
    p, q = product(*[(np.exp(pair.log_p), np.exp(pair.log_q))] * times)
    exact = Tradeoff.from_pmfs(np.log(p), np.log(q)).beta(ALPHA)
    many = pair.self_compose(times)
    assert (many.tradeoff().beta(ALPHA) <= exact + 1e-12).all()
    assert (many.tradeoff(bound="upper").beta(ALPHA) >= exact - 1e-12).all()
    assert np.abs(many.tradeoff().beta(ALPHA) - exact).max() < 0.02


@pytest.mark.slow
@settings(max_examples=15)
@given(laws(), laws())
def test_curves_of_products_of_any_pairs(first, second):
    p, q = product(first, second)
    exact = Tradeoff.from_pmfs(logs(p), logs(q)).beta(ALPHA)
    both = listed(first).compose(listed(second))
    assert (both.tradeoff().beta(ALPHA) <= exact + 1e-9).all()
    assert (both.tradeoff(bound="upper").beta(ALPHA) >= exact - 1e-9).all()


@dataclass(frozen=True)
class Shift(DominatingPair):
    """Normal noise with mean 0 against mean mu, of which the library knows delta only, so that it composes on a grid."""

    mu: float

    def reverse(self):
        return self

    def describe(self):
        return DominatingPairInfo(self.bounds, attained=Attained(single=True))

    def bounds(self, eps):
        first, second = log_ndtr(self.mu / 2 - eps / self.mu), eps + log_ndtr(-self.mu / 2 - eps / self.mu)
        value = first + np.log(-np.expm1(second - first))
        return IntervalArray(value - 1e-9 * (1 - value), value + 1e-9 * (1 - value))


@pytest.mark.parametrize("alpha", thinned([1e-12, 1e-4, 0.05, 0.4, 0.95], 2))
def test_one_level_of_a_composed_curve_needs_few_values(alpha, monkeypatch):
    asked = []
    bounds = Composer.bounds
    monkeypatch.setattr(Composer, "bounds", lambda self, eps: asked.append(eps) or bounds(self, eps))
    many = Shift(0.25).self_compose(16)
    low, high = many.tradeoff().beta(alpha), many.tradeoff(bound="upper").beta(alpha)
    exact = float(ndtr(-ndtri(alpha) - 1))
    assert low <= exact <= high
    assert high - low <= 1e-3 * min(exact, 1 - exact)
    assert len(asked) <= 80


def test_curve_of_both_adjacencies_is_below_both():
    many = RandomizedResponse(1.0).subsampled(0.3).self_compose(3)
    keep = math.e / (1 + math.e)
    first, second = np.array([keep, 1 - keep]), 0.3 * np.array([1 - keep, keep]) + 0.7 * np.array([keep, 1 - keep])
    p, q = product((first, second), (first, second), (first, second))
    exact = Tradeoff.from_pmfs(np.log(p), np.log(q))
    hull = np.minimum(exact.beta(ALPHA), exact.inverse().beta(ALPHA))
    # The greatest convex function at or below both curves touches each of them at some alpha.
    gap = hull - many.tradeoff().beta(ALPHA)
    assert gap.min() >= -1e-12
    assert gap.min() < 1e-9
    assert np.abs(many.tradeoff().beta(ALPHA) - many.tradeoff(bound="upper").beta(ALPHA)).max() < 1e-9


def test_curve_of_sampled_gaussians_needs_few_values(monkeypatch):
    asked = []
    bounds = Composer.bounds
    monkeypatch.setattr(Composer, "bounds", lambda self, eps: asked.append(eps) or bounds(self, eps))
    many = GaussianMechanism(1.0).subsampled(0.01).self_compose(10)
    low, high = many.tradeoff().beta(0.05), many.tradeoff(bound="upper").beta(0.05)
    # The curve is at least every line 1 - delta - e^eps alpha, and at most the smallest of their upper bounds.
    lines = [1 - many.delta(eps) - math.exp(eps) * 0.05 for eps in (0.001, 0.01, 0.02, 0.05, 0.1)]
    assert max(lines) <= high
    assert low <= 0.95
    assert 0 <= high - low <= 1e-6
    assert len(asked) <= 120


@pytest.mark.slow
def test_the_way_back():
    pair = skewed()
    many = pair.self_compose(3)
    back = many.reverse()
    assert back == pair.reverse().self_compose(3)
    eps = np.linspace(0, 0.5, 6)
    distribution = pytest.importorskip("dp_accounting") and many.to_dp_accounting(1e-3)
    both = np.maximum(many.delta(eps, bound="lower"), back.delta(eps, bound="lower"))
    assert (np.array(distribution.get_delta_for_epsilon(eps)) >= both).all()
    symmetric = GaussianMechanism(2.0).self_compose(3)
    assert symmetric.reverse() is symmetric


@pytest.mark.slow
@settings(max_examples=25)
@given(laws(), laws(), st.sampled_from([1.0, 1.5, 2.0, 7.0, math.inf]))
def test_renyi_divergences_add(first, second, order):
    p, q = (logs(side) for side in product(first, second))
    exact = renyi_divergence(p, q, order)
    both = listed(first).compose(listed(second))
    lower, upper = both.rdp(order, bound="lower"), both.rdp(order)
    assert lower <= exact * (1 + 1e-9) + 1e-9
    assert exact <= upper * (1 + 1e-9) + 1e-9
    assert exact == math.inf or upper - lower < 1e-6 * (1 + exact)


def test_divergence_of_gaussians_and_laplace():
    many = GaussianMechanism(3.0).self_compose(9).compose(RandomizedResponse(0.5))
    one = RandomizedResponse(0.5)
    for side in ("lower", "upper"):
        assert many.rdp(4.0, bound=side) == pytest.approx(2.0 + one.rdp(4.0), rel=1e-9)
    many = LaplaceMechanism(5.0).self_compose(7)
    assert many.rdp(2.0, bound="lower") <= 7 * LaplaceMechanism(5.0).rdp(2.0, bound="lower") <= many.rdp(2.0)


@pytest.mark.slow
def test_mu_by_the_root_of_squares():
    many = GaussianMechanism(10.0).self_compose(36).compose(GaussianMechanism(2.0))
    exact = math.sqrt(0.36 + 0.25)
    assert exact <= many.gdp_mu() < exact * (1 + 1e-12)
    assert many.gdp_mu(bound="lower") <= exact
    bits = ShuffledBits(50, 0.2, ones=10)
    assert bits.gdp_mu(bound="lower") <= bits.self_compose(2).gdp_mu() <= math.sqrt(2) * bits.gdp_mu() * (1 + 1e-12)
    assert BinomialNoise(100, 0.5).self_compose(2).gdp_mu() == math.inf


def test_a_composition_of_compositions():
    inner = Composition(((skewed(), 2),))
    assert inner.self_compose(3) == skewed().self_compose(6)


@pytest.mark.parametrize("sigma", [0.7, 1.0, 3.0])
def test_the_lower_chain_starts_with_the_slope_of_the_other_direction(sigma):
    """The first vertex of the piecewise linear lower bound of delta(E) is the intersection of two lines.

    The right line passes through the first two samples with eps > 0, and the left line through E = 1 and E = e^-t, where t is the
    first of them and delta(e^-t) = 1 - e^-t + e^-t delta(e^t), because Gaussian noise has the same divergence in both directions.
    """
    noise = GaussianMechanism(sigma)
    samples, _ = DominatingPairInfo(lambda eps: IntervalArray(*(noise.log_delta(eps, bound=bound) for bound in ("lower", "upper"))),
                                    sampling=Sampling(0.02)).samples(-60.0)
    eps, log_low = samples.below(samples)

    def delta(t):
        shift = 1 / (2 * sigma)
        return mpmath.ncdf(shift - t * sigma) - mpmath.exp(t) * mpmath.ncdf(-shift - t * sigma)

    with mpmath.workdps(30):
        first, second = (mpmath.mpf(float(t)) for t in samples.eps[1:3])
        before = mpmath.exp(-first)
        left = (delta(mpmath.mpf(0)) - (1 - before + before * delta(first))) / (1 - before)
        right = (delta(second) - delta(first)) / (mpmath.exp(second) - mpmath.exp(first))
        # The vertex solves delta(0) + left (E - 1) = delta(first) + right (E - e^first).
        at = (delta(first) - right * mpmath.exp(first) - delta(mpmath.mpf(0)) + left) / (left - right)
        value = delta(mpmath.mpf(0)) + left * (at - 1)
    assert eps[1] == pytest.approx(float(mpmath.log(at)), rel=1e-6)
    assert log_low[1] == pytest.approx(float(mpmath.log(value)), rel=1e-9)
    assert log_low[1] < mpmath.log(delta(mpmath.mpf(float(eps[1]))))
