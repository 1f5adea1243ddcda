"""Renyi divergences and mu of Gaussian noise on a Poisson sample."""

import math

import pytest
from mpmath import mp, mpf

from shufflebounds.mechanisms import GaussianMechanism
from shufflebounds.sampling import SampledPair
from tests.strategies import thinned


def exact_renyi(mu: float, rate: float, order: int) -> mpf:
    """Return the binomial sum of Mironov, Talwar, Zhang (2019), section 3.3, for a removed record and an integer order."""
    m, q = mpf(mu), mpf(rate)
    terms = (mp.binomial(order, k) * (1 - q) ** (order - k) * q**k * mp.expm1(k * (k - 1) * m * m / 2) for k in range(order + 1))
    return mp.log1p(mp.fsum(terms)) / (order - 1)


def integral_renyi(mu: float, rate: float, order: float, removed: bool) -> mpf:
    """Return the divergence of any order >= 1 by quadrature; all terms are positive, so small divergences are accurate, too."""
    m, q, a = mpf(mu), mpf(rate), mpf(order if removed else 1 - order)

    def term(x: mpf) -> mpf:
        gain = q * mp.expm1(m * x - m * m / 2)
        log = mp.log1p(gain)
        if order == 1:
            return mp.npdf(x) * ((1 + gain) * log - gain if removed else gain - log)
        return mp.npdf(x) * (mp.expm1(a * log) - a * gain)

    ends = [mpf(-14) + k * (28 + max(0, a) * m) / 10 for k in range(11)]
    total = mp.quad(term, ends)
    return total if order == 1 else mp.log1p(total) / (mpf(order) - 1)


@pytest.mark.parametrize(("sigma", "rate"), thinned([(1.0, 0.01), (0.4, 1e-4), (7.5, 0.41), (30.0, 1e-9), (1.0, 0.999)], 3))
@pytest.mark.parametrize("order", [2, 3, 8, 60])
def test_integer_orders_are_the_binomial_sum(sigma, rate, order):
    pair = SampledPair(GaussianMechanism(sigma), rate)
    with mp.workdps(60):
        exact = exact_renyi(1 / mpf(sigma), rate, order)
        low, high = pair.rdp(order, bound="lower"), pair.rdp(order)
        assert low <= exact <= high
        assert high - low <= 1e-10 * exact


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sigma", "rate", "order", "removed"),
    [
        (1.0, 0.01, 1.0, True),
        pytest.param(1.0, 0.01, 1.0, False, marks=pytest.mark.slow),
        pytest.param(0.5, 0.9, 1.0, False, marks=pytest.mark.slow),
        pytest.param(2.0, 1e-6, 1 + 1e-9, False, marks=pytest.mark.slow),
        pytest.param(0.7, 0.3, 40.0, False, marks=pytest.mark.slow),
    ],
)
def test_other_orders_are_the_integral(sigma, rate, order, removed):
    pair = SampledPair(GaussianMechanism(sigma), rate, removed)
    with mp.workdps(40):
        exact = integral_renyi(1 / mpf(sigma), rate, order, removed)
        low, high = pair.rdp(order, bound="lower"), pair.rdp(order)
        assert low <= exact <= high
        assert high - low <= 1e-9 * exact


def test_divergences_add_over_steps():
    training = GaussianMechanism(1.0).subsampled(0.01).self_compose(1000)
    with mp.workdps(40):
        exact = 1000 * exact_renyi(1.0, 0.01, 8)
        assert training.rdp(8, bound="lower") <= exact <= training.rdp(8)
    assert training.rdp(8) <= 0.8936440


def test_largest_order_is_the_pure_budget():
    remove, add = GaussianMechanism(2.0).subsampled(0.2).pairs()
    assert remove.rdp(math.inf) == remove.rdp(math.inf, bound="lower") == math.inf
    assert add.rdp(math.inf, bound="lower") <= -math.log1p(-0.2) * (1 + 1e-15)
    assert -math.log1p(-0.2) * (1 - 1e-15) <= add.rdp(math.inf) < -math.log1p(-0.2) * (1 + 1e-14)


@pytest.mark.parametrize(("sigma", "rate", "times"), [(1.0, 0.01, 1000), (3.0, 1e-5, 7), (0.6, 0.5, 1)])
def test_mu_is_that_of_the_noise(sigma, rate, times):
    training = GaussianMechanism(sigma).subsampled(rate).self_compose(times)
    low, high = training.gdp_mu(bound="lower"), training.gdp_mu()
    with mp.workdps(60):
        whole = mp.sqrt(times) / mpf(sigma)
        assert low <= whole <= high
        # The test that the sum of all results is at least `level` has a power of at least P(the record is in every batch) P(normal
        # >= level - whole). For large z, log P(normal >= z) is between -z^2/2 - log(z + 1/z) and -z^2/2 - log z, both without the
        # constant log sqrt(2 pi).
        level = mpf(10) ** 15
        z = level - whole
        log_power = times * mp.log(mpf(rate)) - z * z / 2 - mp.log(z + 1 / z)
        quantile = mp.sqrt(-2 * log_power)
        attained = level - quantile
        assert low >= attained * (1 - mpf("1e-10"))
        assert attained >= whole * (1 - mpf("1e-9"))
    assert high <= low * (1 + 1e-14)
