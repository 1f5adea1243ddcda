"""The smallest noise for a target: it meets the target, a thousandth less does not, and closed forms agree."""

import math
from dataclasses import dataclass

import pytest
from scipy.special import ndtri

from shufflebounds import InfeasibleError
from shufflebounds.composition import least_noise
from shufflebounds.mechanisms import DiscreteGaussianMechanism, GaussianMechanism, GeometricMechanism, LaplaceMechanism
from shufflebounds.profile.calibration import Goal, goal_of, least_of_goal
from shufflebounds.sampling import RandomAllocation, ReplaceOne, WithoutReplacement
from tests.strategies import slow


def poisson(sigma, rate, steps):
    return GaussianMechanism(sigma).subsampled(rate).self_compose(steps)


RELEASES = {
    "ten discrete": (lambda x: DiscreteGaussianMechanism(x).self_compose(10), 1.0, 1e-6, 13.3599260168),
    "ten geometric": (lambda x: GeometricMechanism(1 / x).self_compose(10), 1.0, 1e-6, 9.9937486135),
    "ten Laplace": (lambda x: LaplaceMechanism(x).self_compose(10), 1.0, 1e-6, 9.9898009732),
    "Gaussian, eps 1e4": (GaussianMechanism, 1e4, 1e-6, 0.0073123607),
    "weights": (lambda x: GaussianMechanism(x).compose(LaplaceMechanism(3 * x)), 1.0, 1e-6, 4.4026380656),
    "Poisson, eps 500": (lambda x: poisson(x, 0.02, 1500), 500.0, 1e-5, 0.1996795364),
    "fixed batches": (lambda x: WithoutReplacement(GaussianMechanism(x, 2.0), 1000, 10).self_compose(100), 2.0, 1e-5, 1.4882111898),
    "Poisson, eps 1e4": (lambda x: poisson(x, 0.5, 10), 1e4, 1e-6, 0.0228443073),
    "allocation": (lambda x: RandomAllocation(GaussianMechanism(x), 100).self_compose(10), 2.0, 1e-5, 0.9275134602),
    "replaced": (lambda x: ReplaceOne(poisson(x, 0.01, 100)), 1.0, 1e-5, 0.9530616480),
}
"""Releases with eps, delta and the smallest noise found by another search (to a relative 1e-5)."""
QUICK = ("ten discrete", "ten geometric", "Gaussian, eps 1e4")
LONG = ("allocation", "replaced")


@pytest.mark.filterwarnings("ignore:eps=")
@pytest.mark.parametrize("name", [name if name in QUICK else slow(name) for name in RELEASES if name not in LONG])
def test_it_meets_the_target_and_less_noise_does_not(name):
    release, eps, delta, expected = RELEASES[name]
    found = least_noise(release, eps=eps, delta=delta, rtol=1e-5, near=1.3 * expected)
    assert found == pytest.approx(expected, rel=3e-5)
    assert release(found).delta(eps) <= delta
    assert release(found).epsilon(delta) <= eps
    assert release(0.999 * found).epsilon(delta, bound="lower") > eps


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_the_noise_of_long_searches(name):
    release, eps, delta, expected = RELEASES[name]
    found = least_noise(release, eps=eps, delta=delta, rtol=1e-3, near=1.1 * expected)
    assert found == pytest.approx(expected, rel=2e-3)
    assert release(found).epsilon(delta) <= eps
    assert release(0.999 * expected).epsilon(delta, bound="lower") > eps


@pytest.mark.parametrize("advantage", [1e-6, 0.1, 0.9])
def test_the_advantage_of_gaussian_noise_is_its_formula(advantage):
    # delta(0) = 2 Phi(mu/2) - 1 with mu = 1/sigma.
    expected = 1 / (2 * float(ndtri((1 + advantage) / 2)))
    found = least_noise(GaussianMechanism, advantage=advantage)
    assert expected * (1 - 1e-9) <= found <= expected * (1 + 3e-6)
    assert GaussianMechanism(found).tradeoff().advantage() <= advantage * (1 + 1e-9)


@pytest.mark.parametrize(("fpr", "fnr"), [
    (0.05, 0.9), (1e-6, 0.999), (0.5, 0.01), (0.5, 1e-20), (1e-20, 0.5), (1e-20, 1e-20), (0.9, 1e-100)])
def test_the_error_rates_of_gaussian_noise_are_its_formula(fpr, fnr):
    expected = -1 / float(ndtri(fnr) + ndtri(fpr))
    found = least_noise(GaussianMechanism, fpr=fpr, fnr=fnr)
    assert expected * (1 - 1e-7) <= found <= expected * (1 + 3e-6)
    assert GaussianMechanism(found).tradeoff().beta(fpr) >= fnr


def test_the_start_of_the_search_does_not_matter():
    one, other = (least_noise(LaplaceMechanism, eps=1.0, delta=1e-6, near=near) for near in (1e-3, 1e5))
    assert one == pytest.approx(other, rel=2e-6)


def test_wrong_arguments_say_what_to_pass():
    with pytest.raises(ValueError, match="pass one target: eps and delta, or advantage, or fpr and fnr"):
        least_noise(GaussianMechanism, eps=1.0)
    with pytest.raises(ValueError, match="pass one target"):
        least_noise(GaussianMechanism, eps=1.0, delta=1e-6, advantage=0.1)
    with pytest.raises(ValueError, match=r"fpr=0.5 and fnr=0.6 have the sum 1.1, which must be below 1"):
        least_noise(GaussianMechanism, fpr=0.5, fnr=0.6)
    with pytest.raises(TypeError, match="must be a function of the noise x"):
        least_noise(GaussianMechanism(1.0), advantage=0.1)
    with pytest.raises(TypeError, match=r"release\(1\) is 1.0: it must return a profile"):
        least_noise(lambda x: x, advantage=0.1)
    for wrong in ({"eps": 0.0, "delta": 1e-6}, {"advantage": 1.0}, {"advantage": math.nan}, {"fpr": 0.0, "fnr": 0.5}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))}="):
            least_noise(GaussianMechanism, **wrong)
    with pytest.raises(InfeasibleError, match=r"no x up to e\^80 meets the advantage 0.01"):
        least_noise(lambda x: GaussianMechanism(1.0), advantage=0.01)


@dataclass(frozen=True)
class LogDelta:
    """A profile of which only log delta is asked."""

    value: float

    def log_delta(self, eps):
        return self.value


def test_a_delta_of_one_misses_the_target_and_a_delta_of_zero_meets_it():
    excess = goal_of(1.0, 1e-6).excess
    assert excess(LogDelta(0.0)) > 0
    assert excess(LogDelta(-0.0)) > 0
    assert excess(LogDelta(-13.0)) > 0 > excess(LogDelta(-14.0))
    assert excess(LogDelta(-math.inf)) < 0


def test_a_target_that_every_noise_seems_to_meet():
    """`excess` says that every x meets the target, and `met`, which decides, does so from 1e6 on, or never."""
    goal = Goal("the target", lambda profile: -1.0, lambda profile: profile.sigma > 1e6)

    def release(x):
        return GaussianMechanism(min(max(x, 1e-6), 1e9))

    assert least_of_goal(release, goal, 1.0, 1e-3) > 1e6
    with pytest.raises(InfeasibleError, match=r"no x up to e\^80 meets the target"):
        least_of_goal(release, goal._replace(met=lambda profile: False), 1.0, 1e-3)
