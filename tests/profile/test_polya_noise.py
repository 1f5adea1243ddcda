"""Negative binomial noise: a protocol defined outside of the package, as in docs/extending.md, in less than fifty lines."""

import inspect
import math
from dataclasses import dataclass

import mpmath
import numpy as np
import pytest

from shufflebounds import tails
from shufflebounds.profile.extend import IntegerNoise, least_parameter, real_field, target
from shufflebounds.shuffle import BinomialNoise
from tests.strategies import thinned


@dataclass(frozen=True)
class PolyaNoise(IntegerNoise):
    """A count released with negative binomial noise, to which users can contribute independent parts.

    Parameters
    ----------
    shape : float
        Number of failures r, in [1e-3, 1e6]; it may be shared out among the users.
    prob : float
        Success probability, in (0, 1): the larger it is, the smaller the noise.
    """

    shape: float
    prob: float

    def __post_init__(self):
        real_field(self, "shape", 1e-3, 1e6)
        real_field(self, "prob", 1e-6, 1 - 1e-6)

    def _log_pmf(self, k):
        return tails.nbinom_logpmf(k, self.shape, self.prob)

    def _log_cdf(self, k):
        return tails.nbinom_logcdf(k, self.shape, self.prob)

    def _log_sf(self, k):
        return tails.nbinom_logsf(k, self.shape, self.prob)

    @classmethod
    def calibrate(cls, shape, *, eps, delta):
        """Return the noise with the largest success probability that meets the target."""
        eps, delta = target(eps, delta)
        return cls(shape, 1 - least_parameter(lambda rest: cls(shape, 1 - rest), 1e-3, 0.999, eps, delta))


def exact(noise, eps, shifted_first):
    """Return the hockey-stick divergence by a sum over all outcomes with 40 digits."""
    with mpmath.workdps(40):
        shape, prob = mpmath.mpf(noise.shape), mpmath.mpf(noise.prob)
        pmf = [prob**shape]
        while len(pmf) < 60 or pmf[-1] > mpmath.mpf(10) ** -60:
            pmf.append(pmf[-1] * (len(pmf) - 1 + shape) / len(pmf) * (1 - prob))
        plain, shifted = [*pmf, mpmath.mpf(0)], [mpmath.mpf(0), *pmf]
        first, second = (shifted, plain) if shifted_first else (plain, shifted)
        return mpmath.fsum(max(mpmath.mpf(0), p - mpmath.exp(eps) * q) for p, q in zip(first, second))


def test_it_is_short():
    assert len([line for line in inspect.getsource(PolyaNoise).splitlines() if line.strip()]) <= 50


@pytest.mark.parametrize("noise", [PolyaNoise(0.5, 0.3), PolyaNoise(3.0, 0.2), PolyaNoise(20.0, 0.7)])
@pytest.mark.parametrize("eps", thinned([0.0, 0.2, 1.0], 2))
def test_both_bounds_enclose_the_sum_over_all_outcomes(noise, eps):
    with mpmath.workdps(40):
        value = mpmath.log(max(exact(noise, eps, order) for order in (False, True)))
        lower, upper = noise.log_delta(eps, bound="lower"), noise.log_delta(eps)
        assert lower <= value <= upper
        assert upper - lower < 1e-8


@pytest.mark.slow
def test_compositions_are_tight_and_enclose_a_product():
    noise = PolyaNoise(2.0, 0.6)
    many = noise.self_compose(30)
    lower, upper = many.epsilon(1e-2, bound="lower"), many.epsilon(1e-2)
    assert lower <= upper
    twice = noise.self_compose(2)
    pmf = np.exp(tails.nbinom_logpmf(np.arange(200.0), 2.0, 0.6))
    plain, shifted = np.append(pmf, 0.0), np.append(0.0, pmf)
    for eps in (0.3, 1.0):
        # The order may change after the first outcome.
        value = sum(
            max(np.maximum(p * a - math.exp(eps) * q * b, 0).sum() for a, b in ((plain, shifted), (shifted, plain)))
            for p, q in zip(plain, shifted)
        )
        assert twice.delta(eps, bound="lower") <= value * (1 + 1e-9)
        assert value <= twice.delta(eps) * (1 + 1e-9)
        assert twice.delta(eps) <= twice.delta(eps, bound="lower") * (1 + 1e-3)


def test_bad_parameters_are_refused():
    with pytest.raises(ValueError, match="shape="):
        PolyaNoise(0.0, 0.5)


@pytest.mark.slow
def test_it_is_calibrated():
    noise = PolyaNoise.calibrate(5.0, eps=1.0, delta=1e-4)
    assert noise.delta(1.0) <= 1e-4 < PolyaNoise(5.0, noise.prob * 1.001).delta(1.0)


@dataclass(frozen=True)
class Centred(IntegerNoise):
    """Binomial noise minus its mean, which may be negative."""

    trials: int

    def _log_pmf(self, k):
        return tails.binom_logpmf(k + self.trials // 2, self.trials, 0.5)

    def _log_cdf(self, k):
        return tails.binom_logcdf(k + self.trials // 2, self.trials, 0.5)

    def _log_sf(self, k):
        return tails.binom_logsf(k + self.trials // 2, self.trials, 0.5)


@pytest.mark.parametrize("eps", [0.0, 0.1, 2.0])
def test_noise_may_be_negative(eps):
    same = BinomialNoise(1000, 0.5)
    assert Centred(1000).log_delta(eps) == pytest.approx(same.log_delta(eps), rel=1e-8)
    assert Centred(1000).log_delta(eps, bound="lower") <= same.log_delta(eps)


@pytest.mark.parametrize("prob", [0.05, 0.4, 0.95])
@pytest.mark.parametrize("log_tail", [-3.0, -8.0, -14.0, -20.0])
def test_the_listed_outcomes_miss_no_more_mass_than_is_charged(prob, log_tail):
    plain, shifted, log_lost = PolyaNoise(3.5, prob)._window(1, log_tail)
    assert plain.size == shifted.size
    for masses in (plain, shifted):
        assert 1 - math.fsum(np.exp(masses)) <= math.exp(log_lost) * (1 + 1e-6)
