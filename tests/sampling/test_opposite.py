"""A replaced record of sampled Gaussian noise whose old and new contributions are opposite."""

import math

import mpmath as mp
import numpy as np
import pytest

from shufflebounds.mechanisms import GaussianMechanism, LaplaceMechanism
from shufflebounds.sampling import ReplaceOne
from shufflebounds.sampling._opposite import OppositeContributions, opposite


def exact(sigma, rate, eps):
    """Return log delta of one step: the best test is a threshold of the output."""
    with mp.workdps(40):
        rate, factor = mp.mpf(rate), mp.exp(mp.mpf(eps))

        def gain(c):
            none, more, less = (mp.erfc((c - mean) / (sigma * mp.sqrt(2))) / 2 for mean in (0, 1, -1))
            return (1 - rate) * (1 - factor) * none + rate * more - factor * rate * less

        best = max((mp.mpf(i) / 10 for i in range(-50, 200)), key=gain)
        best = max((best + mp.mpf(i) / 200 for i in range(-20, 21)), key=gain)
        return float(mp.log(max(gain(best + mp.mpf(i) / 4000) for i in range(-20, 21))))


@pytest.mark.parametrize(("sigma", "rate", "eps"), [(1.0, 0.01, 0.0), (1.0, 0.01, 0.5), (2.0, 0.3, 0.2), (0.8, 0.001, 2.0)])
def test_one_step_is_the_threshold_test(sigma, rate, eps):
    value = OppositeContributions(GaussianMechanism(sigma), rate).log_delta(eps, bound="lower")
    assert exact(sigma, rate, eps) - 1e-3 <= value <= exact(sigma, rate, eps) + 1e-9


@pytest.mark.parametrize(("sigma", "rate", "times", "delta", "eps"), [
    (1.0, 0.01, 100, 1e-5, 0.8951), (1.0, 0.01, 1000, 1e-5, 2.8434), (2.0, 0.01, 1000, 1e-6, 1.3745), (1.0, 0.1, 100, 1e-5, 10.516),
])
def test_compositions_have_the_lower_bound_of_opposite_contributions(sigma, rate, times, delta, eps):
    # The values are those of an independent implementation, a convolution by FFT.
    replaced = ReplaceOne(GaussianMechanism(sigma).subsampled(rate).self_compose(times))
    lower = replaced.epsilon(delta, bound="lower")
    assert lower == pytest.approx(eps, rel=1e-4)
    assert replaced.log_delta(lower, bound="lower") == pytest.approx(math.log(delta), abs=1e-3)
    assert lower <= replaced.epsilon(delta)


def test_releases_of_a_replaced_record_use_the_pair_too():
    one = ReplaceOne(GaussianMechanism(1.0).subsampled(0.01))
    assert one.self_compose(100).epsilon(1e-5, bound="lower") == pytest.approx(0.8951, rel=1e-3)
    assert (one.rdp([2.0, 8.0], bound="lower") <= one.rdp([2.0, 8.0])).all()


def test_other_profiles_have_no_such_pair():
    assert opposite(LaplaceMechanism(1.0).subsampled(0.1)) is None
    assert opposite(GaussianMechanism(1.0).subsampled(0.1).compose(LaplaceMechanism(1.0).subsampled(0.1))) is None
    pair = OppositeContributions(GaussianMechanism(1.0), 1.0)
    # With rate 1 the two normal distributions are 2 apart.
    eps = np.array([0.0, 1.0])
    assert pair.log_delta(eps, bound="lower") == pytest.approx(GaussianMechanism(0.5).log_delta(eps), abs=1e-5)
