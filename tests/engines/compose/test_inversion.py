"""Compositions of Gaussian noise on a Poisson sample, by inverting the moment generating function of the loss."""

import math

import numpy as np
import pytest
from mpmath import mp, mpf

from shufflebounds._engines.compose.gaussian_transform import SampledGaussian
from shufflebounds._engines.compose.inversion import Inversion
from shufflebounds.mechanisms import GaussianMechanism
from shufflebounds.sampling import SampledPair


def moment(mu: float, rate: float, order: float) -> mpf:
    """Return E (1 - q + q e^(mu X - mu^2/2))^order for a standard normal X, by quadrature with mpmath."""
    m, q = mpf(mu), mpf(rate)
    top = max(0.0, order * mu)
    ends = np.linspace(-12 + min(0.0, order * mu), 12 + top, 9).tolist()
    return mp.quad(lambda x: mp.npdf(x) * (1 - q + q * mp.exp(m * x - m * m / 2)) ** mpf(order), ends)


def log_delta_of_two(sigma: float, rate: float, removed: bool, eps: float) -> mpf:
    """Return log delta of two releases: the integral, over the first output, of the closed form for the second."""
    mu, q = 1 / mpf(sigma), mpf(rate)

    def tail(x: mpf) -> mpf:
        return mp.erfc(x / mp.sqrt(2)) / 2

    def ratio(x: mpf) -> mpf:
        return 1 - q + q * mp.exp(mu * x - mu * mu / 2)

    def excess(level: mpf) -> mpf:
        # This is E max(0, ratio - level) if the record is not in the dataset.
        if level <= 1 - q:
            return 1 - level
        x = (mp.log((level - 1 + q) / q) + mu * mu / 2) / mu
        return q * tail(x - mu) - (level - 1 + q) * tail(x)

    def lack(level: mpf) -> mpf:
        # This is E max(0, level - ratio).
        if level <= 1 - q:
            return mpf(0)
        x = (mp.log((level - 1 + q) / q) + mu * mu / 2) / mu
        return (level - 1 + q) * tail(-x) - q * tail(mu - x)

    level = mp.exp(mpf(eps))
    ends = [-9, -6, -4, -2, 0, 1, 2, 3, 4, 5, 6, 8, 10, 9 + 2 * mu]
    # The integrand has a kink where the argument of the closed form changes its sign.
    for kink in ([level / (1 - q)] if removed else [1 / level / (1 - q)]):
        if kink > 1 - q:
            ends.append((mp.log((kink - 1 + q) / q) + mu * mu / 2) / mu)
    ends = sorted(end for end in ends if -9 <= end <= 9 + 2 * mu)
    if removed:
        return mp.log(mp.quad(lambda x: mp.npdf(x) * ratio(x) * excess(level / ratio(x)), ends))
    return mp.log(mp.quad(lambda x: mp.npdf(x) * level * ratio(x) * lack(1 / level / ratio(x)), ends))


@pytest.mark.parametrize("removed", [True, False])
@pytest.mark.parametrize(("sigma", "times"), [(0.7, 1), (3.0, 2), (1.5, 37), (20.0, 10**6)])
def test_without_sampling_the_composition_is_one_gaussian(sigma, times, removed):
    whole = GaussianMechanism(sigma / math.sqrt(times))
    inversion = Inversion([(SampledGaussian(1 / sigma, 1.0, removed), times)], 1e-5)
    for log_delta in (-1.0, -14.0, -200.0):
        eps = whole.epsilon(math.exp(log_delta))
        (low, high), account = inversion.log_delta(eps)
        # sigma/sqrt(times) is rounded, which changes log delta by about eps times its derivative.
        rounding = 1e-15 * (10 + 4 * abs(log_delta))
        assert low <= whole.log_delta(eps) + rounding
        assert whole.log_delta(eps, bound="lower") - rounding <= high
        assert account is not None
        assert high - low < 1e-5 * max(1.0, account.tilt * eps)
        assert inversion.chernoff(eps) > high


@pytest.mark.parametrize(
    ("sigma", "rate", "removed", "eps"),
    [
        pytest.param(1.0, 0.01, True, 0.42, id="removed"),
        pytest.param(0.6, 0.3, False, 0.4, id="added"),
        pytest.param(1.0, 1e-3, True, 0.05, id="rare", marks=pytest.mark.slow),
        pytest.param(3.0, 0.1, False, 0.05, id="large_sigma_added", marks=pytest.mark.slow),
    ],
)
def test_two_releases_are_those_of_an_integral(sigma, rate, removed, eps):
    with mp.workdps(25):
        exact = float(log_delta_of_two(sigma, rate, removed, eps))
    two = SampledPair(GaussianMechanism(sigma), rate, removed).self_compose(2)
    low, high = two.log_delta(eps, bound="lower"), two.log_delta(eps)
    assert low <= exact + 1e-14 * abs(exact)
    assert exact - 1e-14 * abs(exact) <= high
    assert high - low < 1e-5
    assert "contour" in two.explain(eps) or "sums over all pairs of outcomes" in two.explain(eps)


@pytest.mark.parametrize(("mu", "rate", "removed", "theta"), [
    (1.0, 0.01, True, 4.0),
    (0.3, 1e-6, False, 700.0),
    pytest.param(2.5, 0.9, False, 3.0, marks=pytest.mark.slow),
    pytest.param(4.0, 1e-3, True, 2.5, marks=pytest.mark.slow),
])
def test_cumulants_are_those_of_an_integral(mu, rate, removed, theta):
    tilted = SampledGaussian(mu, rate, removed).tilted(theta)
    with mp.workdps(40):
        exact = mp.log(moment(mu, rate, theta + 1 if removed else -theta))
        assert abs(mpf(tilted.scale) - exact) <= tilted.error
    # Cumulants close to 0 have a small relative error, too.
    assert tilted.error <= 1e-11 * abs(tilted.scale) + 1e-15


@pytest.mark.parametrize("removed", [True, False])
@pytest.mark.parametrize("mu", [0.1, 1.0, 5.0])
def test_spectrum_of_an_unsampled_gaussian(mu, removed):
    # Without sampling, E e^(z L) = e^(z (z + 1) mu^2/2).
    theta, spacing = 1.7, 0.3 / mu
    tilted = SampledGaussian(mu, 1.0, removed).tilted(theta)
    differences, error = tilted.spectrum(spacing, 150)
    z = theta + 1j * spacing * np.arange(150)
    exact = np.expm1(z * (z + 1) * mu * mu / 2 - tilted.scale)
    assert np.all(np.abs(differences - exact) <= error + 1e-14)
    assert error.max() < 1e-10


@pytest.mark.parametrize(
    ("mu", "rate", "removed", "theta"),
    [(1.0, 0.01, True, 4.0), (1.0, 0.01, False, 30.0), (2.0, 1e-4, True, 1.0), (0.3, 0.5, False, 9.0), (3.0, 1.0, True, 0.5)],
)
def test_decay_bounds_all_larger_frequencies(mu, rate, removed, theta):
    tilted = SampledGaussian(mu, rate, removed).tilted(theta)
    spacing = 0.02 / (mu * rate)
    differences, error = tilted.spectrum(spacing, 3000)
    size = np.abs(1 + differences) - error
    last = 0.0
    for place in (1, 10, 40, 150, 700):
        decay = tilted.decay(spacing * place)
        assert decay <= last
        assert math.exp(decay) >= size[place:].max()
        last = decay
    # The bound is not the trivial one, 0.
    assert last < -0.1


def test_results_do_not_depend_on_earlier_ones():
    def fresh() -> Inversion:
        return Inversion([(SampledGaussian(1.0, 0.02, True), 50), (SampledGaussian(0.5, 0.1, True), 5)], 1e-4)

    several = fresh()
    eps = [0.3, 2.0, 1.2, 0.31, 1.21]
    answers = [several.log_delta(at) for at in eps]
    assert [fresh().log_delta(at) for at in eps] == answers


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "rate", "times", "eps"), [(1.0, 0.01, 100, 0.95), (0.5, 0.05, 20, 7.0)])
@pytest.mark.parametrize("removed", [True, False])
def test_inversion_and_grid_agree(sigma, rate, times, eps, removed):
    composition = SampledPair(GaussianMechanism(sigma), rate, removed).self_compose(times)
    pure = composition.epsilon(0.0)
    if pure < math.inf:
        eps = 0.2 * pure
    composer = composition._product.composer
    low, high = composer.bounds(eps)
    below, above = composer.grid.bounds(eps)[0]
    assert low <= above
    assert below <= high
    assert high - low <= above - below


@pytest.mark.slow
def test_extreme_parameters_have_valid_bounds():
    # The cases have sigma from 1e-6 to 1e9, rates down to 1e-100, 2**53 releases and eps up to 1e300.
    cases = [(1e-6, 0.5, 3, 1.0), (1e9, 1e-100, 2**53, 1e-3), (1.0, 1e-100, 10, 1e-30), (0.02, 0.9, 2, 1e300)]
    for sigma, rate, times, eps in cases:
        for removed in (True, False):
            inversion = Inversion([(SampledGaussian(1 / sigma, rate, removed), times)], 1e-3)
            assert inversion.possible == (sigma > 1e-6)
            if inversion.possible:
                (low, high), _ = inversion.log_delta(eps)
                assert low <= high <= 0
