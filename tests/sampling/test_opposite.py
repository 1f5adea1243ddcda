"""A replaced record of sampled Gaussian noise whose old and new contributions are opposite."""

import math

import mpmath as mp
import numpy as np
import pytest

from shufflebounds.mechanisms import GaussianMechanism, LaplaceMechanism
from shufflebounds.sampling import ReplaceOne
from shufflebounds.sampling._opposite import OppositeContributions, opposite
from tests.strategies import slow


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


@pytest.mark.parametrize(("sigma", "rate", "eps"), [
    (1.0, 0.01, 0.0), (1.0, 0.01, 0.5), (2.0, 0.3, 0.2), (0.8, 0.001, 2.0), (0.1, 0.01, 5.0), (0.3, 1.0, 3.0), (50.0, 0.01, 1e-4),
])
def test_split_cells_bound_the_threshold_test_from_above(sigma, rate, eps):
    found = OppositeContributions(GaussianMechanism(sigma), rate, spread=True).log_delta(eps)
    assert exact(sigma, rate, eps) <= found <= exact(sigma, rate, eps) + 2e-3


@pytest.mark.parametrize("seed", range(4))
def test_no_contributions_are_worse_than_opposite_ones(seed):
    rng = np.random.default_rng(seed)
    sigma, rate, eps = math.exp(rng.uniform(-1, 1)), 10.0 ** rng.uniform(-2, -0.1), rng.uniform(0, 1)
    largest = OppositeContributions(GaussianMechanism(sigma), rate, spread=True).delta(eps)
    x, y = np.meshgrid(*2 * [np.arange(-8 * sigma, 8 * sigma, sigma / 16)])

    def normal(mean):
        return np.exp(-0.5 * ((x - mean[0]) ** 2 + (y - mean[1]) ** 2) / sigma**2) / 16**2 / (2 * math.pi)

    # Vectors of length at most 1 in the plane, some of them with one sign.
    for _ in range(40):
        angles, sizes = rng.choice([0, math.pi, rng.uniform(0, 7)], 2), rng.choice([1.0, rng.uniform(0, 1)], 2)
        old, new = (size * np.array([math.cos(angle), math.sin(angle)]) for size, angle in zip(sizes, angles))
        parts = (1 - rate) * (1 - math.exp(eps)) * normal((0, 0)) + rate * normal(old) - math.exp(eps) * rate * normal(new)
        # The sum is an integral by the midpoint rule, with an error of about 1e-3 of the part where the integrand is cut at 0.
        assert np.maximum(parts, 0).sum() <= largest * 1.01 + 1e-9


@pytest.mark.parametrize(("sigma", "rate", "times", "delta"), [
    (1.0, 0.01, 1000, 1e-5), slow(2.0, 0.01, 1000, 1e-6), slow(1.0, 0.1, 100, 1e-5),
])
def test_both_bounds_of_a_replaced_record_meet(sigma, rate, times, delta):
    replaced = ReplaceOne(GaussianMechanism(sigma).subsampled(rate).self_compose(times))
    lower, upper = replaced.epsilon(delta, bound="lower"), replaced.epsilon(delta)
    assert lower <= upper <= lower * 1.001
    assert replaced.log_delta(upper) <= math.log(delta) + 1e-6


def test_releases_of_a_replaced_record_are_those_of_opposite_contributions():
    training = GaussianMechanism(1.0).subsampled(0.01)
    apart, together = ReplaceOne(training).self_compose(30), ReplaceOne(training.self_compose(30))
    for delta in (1e-4, 1e-8):
        lower, upper = (apart.epsilon(delta, bound=bound) for bound in ("lower", "upper"))
        assert lower <= upper <= lower * 1.001
        assert lower <= together.epsilon(delta)
        assert together.epsilon(delta, bound="lower") <= upper


@pytest.mark.parametrize("rate", [0.01, 0.3])
def test_both_orders_of_a_replaced_record_enclose_the_exact_value(rate):
    # Compositions and curves of the profile start from what it states about both orders.
    known, eps = ReplaceOne(GaussianMechanism(1.0).subsampled(rate))._pair_info(), np.array([0.1, 0.5, 1.0])
    values = np.array([exact(1.0, rate, e) for e in eps.tolist()])
    for lower, upper in (known.hockey_stick(eps), known.back.hockey_stick(eps)):
        # `exact` takes the best of thresholds that are 1/4000 apart, which is at most 1e-7 too small.
        assert (lower <= values + 1e-7).all()
        assert (values <= upper).all()


@pytest.mark.parametrize(("sigma", "rate"), [(1.0, 0.01), (4.0, 0.9), (0.5, 0.3)])
def test_a_replaced_record_has_no_pure_budget(sigma, rate):
    replaced = ReplaceOne(GaussianMechanism(sigma).subsampled(rate))
    assert replaced.epsilon(0.0) == replaced.self_compose(2).epsilon(0.0) == math.inf
    for eps in (30.0, 300.0, 3000.0):
        assert -math.inf < replaced.log_delta(eps)
        assert replaced.log_delta(eps, bound="lower") <= replaced.log_delta(eps)
    assert replaced.loss_tail(300.0) > 0
