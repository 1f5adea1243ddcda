"""mu of discrete Gaussian noise against the enumerated trade-off function in high precision, and both of its upper bounds."""

import math

import mpmath as mp
import pytest

from shufflebounds._engines.inputs import integer_mu as _integer_mu
from shufflebounds.mechanisms import DiscreteGaussianMechanism, GaussianMechanism
from tests.strategies import slow, thinned


def quantiles(sigma, last):
    """Return t with t[k] = -Phi^{-1}(Pr[X >= k]) for k = 1..last, by Newton's method on log Pr."""
    sigma, t = mp.mpf(sigma), {}
    end = last + math.ceil(20 * sigma) + 20
    terms = [mp.exp(-mp.mpf(j) ** 2 / (2 * sigma**2)) for j in range(end)]
    total, tail = 2 * mp.fsum(terms) - 1, mp.mpf(0)
    for j in range(end - 1, 0, -1):
        tail += terms[j] / total
        if j > last:
            continue
        goal = mp.log(tail)
        z = mp.sqrt(-2 * goal) if goal < -2 else mp.mpf("0.5")
        step = mp.mpf(1)
        while abs(step) > mp.mpf(10) ** -30:
            above = mp.erfc(z / mp.sqrt(2)) / 2
            step = (mp.log(above) - goal) * above / mp.npdf(z)
            z += step
        t[j] = z
    return t


def windows(sigma, shift, last):
    """Return the differences t[k] - t[k - shift], whose maximum is mu; t[1 - k] = -t[k]."""
    t = quantiles(sigma, last + shift)
    for k in range((shift + 1) // 2, last + shift + 1):
        start = k - shift
        yield t[k] - (t[start] if start > 0 else -t[1 - start])


@pytest.mark.parametrize(
    ("sigma", "shift", "last"),
    thinned([
        (0.05, 3, 10), (0.3, 1, 40), (0.3, 7, 40), (1.0, 1, 80), (1.0, 3, 60), (1.7, 2, 60), slow(3.3, 5, 200),
        slow(10.0, 1, 120), slow(10.0, 40, 120),
    ], 3),
)
def test_mu_by_enumeration(sigma, shift, last):
    with mp.workdps(50):
        noise, mu = DiscreteGaussianMechanism(sigma, shift), max(windows(sigma, shift, last))
        lower, upper = noise.gdp_mu(bound="lower"), noise.gdp_mu()
        assert lower <= mu <= upper
        assert upper - lower < 1e-11 * mu


@pytest.mark.parametrize("sigma", thinned([0.2, 0.7, 1.0, 2.0], 2))
def test_differences_far_out_are_below_their_bound(sigma):
    with mp.workdps(50):
        log_total = DiscreteGaussianMechanism(sigma)._pair.log_total
        first = math.ceil(max(1.0, 30 * sigma**2, 4 * sigma**2 * log_total))
        t = quantiles(sigma, first + 12)
        bounds = [_integer_mu._windows_beyond(sigma, log_total, float(j)) for j in range(first + 1, first + 12)]
        assert bounds == sorted(bounds, reverse=True)
        for j, bound in zip(range(first + 1, first + 12), bounds, strict=True):
            assert t[j] - t[j - 1] <= bound < 1.4 * (t[j] - t[j - 1])


@pytest.mark.parametrize(("sigma", "shift"), [(0.6, 1), (1.0, 1), (1.0, 4), (2.0, 1), (5.0, 3)])
def test_the_bound_by_post_processing_is_above_mu(sigma, shift):
    above = _integer_mu._smoothed(sigma, shift)
    assert DiscreteGaussianMechanism(sigma, shift).gdp_mu() <= above < 3 * shift / sigma


@pytest.mark.parametrize(("sigma", "shift"), [(190.0, 1), (190.0, 1000), (1e3, 2), (1e4, 1), (1e5, 1), slow(1e5, 9999)])
def test_mu_of_large_noise(sigma, shift):
    with mp.workdps(30):
        s = mp.mpf(sigma)
        total = s * mp.sqrt(2 * mp.pi)
        # t[k] = sqrt(2) erfinv(Pr[|X| < k]) is the normal quantile at k. mu is t[k] + t[shift + 1 - k] with k = (shift + 1)//2.
        ends = {(shift + 1) // 2, shift + 1 - (shift + 1) // 2}
        mu = mp.mpf(0)
        for k in ends:
            inside = (1 + 2 * mp.fsum(mp.exp(-mp.mpf(j) ** 2 / (2 * s * s)) for j in range(1, k))) / total
            mu += mp.sqrt(2) * mp.erfinv(inside) * (2 if len(ends) == 1 else 1)
        noise = DiscreteGaussianMechanism(sigma, shift)
        lower, upper = noise.gdp_mu(bound="lower"), noise.gdp_mu()
        assert lower <= mu * (1 + 1e-15)
        assert mu <= upper
        assert upper - lower < 3e-5 * mu * (190 / sigma) ** 2 + 1e-10 * mu
    # The discrete distribution is close to the normal one.
    assert upper == pytest.approx(GaussianMechanism(sigma, sensitivity=shift).gdp_mu(), rel=1e-4)


def test_mu_is_finite_after_sampling_shuffling_and_composition():
    noise = DiscreteGaussianMechanism(2.0)
    mu = noise.gdp_mu()
    assert noise.subsampled(0.1).gdp_mu() == mu
    shuffled = noise.shuffled(100)
    assert 0.5 - 1e-15 <= shuffled.gdp_mu(bound="lower") <= 0.5
    assert shuffled.gdp_mu() == mu
    many = noise.self_compose(10)
    assert many.gdp_mu(bound="lower") <= many.gdp_mu() <= math.sqrt(10) * mu * (1 + 1e-12)


def test_mu_of_shuffled_discrete_noise_is_approached_in_the_tails():
    shuffled = DiscreteGaussianMechanism(2.0).shuffled(100)
    with mp.workdps(30):
        # The test rejects if some message exceeds 3999; all other users have input 0. In this extreme tail a probability is the
        # sum of the users' probabilities, and a normal quantile is sqrt(-2 log p) with a relative error of about 1e-3.
        masses = [mp.exp(-mp.mpf(k) ** 2 / 8) for k in range(3999, 4040)]
        level, power = 100 * mp.fsum(masses[1:]), mp.fsum(masses) + 99 * mp.fsum(masses[1:])
        mu = shuffled.gdp_mu(bound="lower")
        assert abs(mp.sqrt(-2 * mp.log(level)) - mp.sqrt(-2 * mp.log(power)) - mu) < 5e-3
