"""Calibrated noise of DP-SGD: it meets the target, a smaller sigma does not, and dp-accounting agrees."""

import pytest

from shufflebounds.mechanisms import GaussianMechanism
from tests.strategies import slow


@pytest.mark.parametrize(("rate", "steps", "eps", "delta"), [
    (0.01, 1, 1.0, 1e-6),
    slow(1.0, 10, 1.0, 1e-5),
    slow(0.01, 1000, 8.0, 1e-5),
    slow(0.02, 1500, 1e3, 1e-5), slow(1.0, 10**8, 1e4, 1e-6),
])
def test_it_meets_the_target_and_less_noise_does_not(rate, steps, eps, delta):
    noise = GaussianMechanism.from_training(rate=rate, steps=steps, eps=eps, delta=delta)
    whole = noise.subsampled(rate).self_compose(steps)
    assert whole.delta(eps) <= delta
    assert whole.epsilon(delta) <= eps
    less = GaussianMechanism(noise.sigma * (1 - 3e-4)).subsampled(rate).self_compose(steps)
    assert less.epsilon(delta, bound="lower") > eps


@pytest.mark.parametrize("target", [{"advantage": 0.1}, slow({"fpr": 0.01, "fnr": 0.9}), slow({"fpr": 0.5, "fnr": 0.4})],
                         ids=str)
def test_targets_by_risk(target):
    noise = GaussianMechanism.from_training(rate=0.01, steps=1000, **target)
    enough, less = (GaussianMechanism(noise.sigma * ratio).subsampled(0.01).self_compose(1000) for ratio in (1, 1 - 3e-4))
    if "advantage" in target:
        assert enough.delta(0.0) <= target["advantage"] < less.delta(0.0, bound="lower")
    else:
        # The lower trade-off function is the guarantee; the upper one shows that less noise misses the target.
        at, least = target["fpr"], target["fnr"]
        assert enough.tradeoff().beta(at) >= least > less.tradeoff(bound="upper").beta(at)


@pytest.mark.slow
def test_without_sampling_it_is_the_analytic_calibration():
    # Ten releases with noise sigma are equivalent to one release with sigma/sqrt(10).
    whole = GaussianMechanism.from_training(rate=1.0, steps=10, eps=2.0, delta=1e-7)
    one = GaussianMechanism.from_dp(eps=2.0, delta=1e-7)
    assert whole.sigma / 10**0.5 == pytest.approx(one.sigma, rel=3e-4)
    assert whole.sigma / 10**0.5 >= one.sigma * (1 - 1e-10)


@pytest.mark.slow
def test_dp_accounting_finds_the_same_noise():
    dp_accounting = pytest.importorskip("dp_accounting")
    from dp_accounting.pld import PLDAccountant

    def training(sigma):
        step = dp_accounting.PoissonSampledDpEvent(0.05, dp_accounting.GaussianDpEvent(sigma))
        return dp_accounting.SelfComposedDpEvent(step, 200)

    theirs = dp_accounting.calibrate_dp_mechanism(
        PLDAccountant, training, 2.0, 1e-5, dp_accounting.ExplicitBracketInterval(0.5, 5.0), tol=1e-4)
    assert GaussianMechanism.from_training(rate=0.05, steps=200, eps=2.0, delta=1e-5).sigma == pytest.approx(theirs, rel=1e-3)


@pytest.mark.parametrize(("name", "value"), [
    ("rate", 0.0), ("rate", 1.5), ("steps", 0), ("steps", 1.5), ("eps", 0.0), ("eps", 1e5), ("delta", 0.0)])
def test_arguments_out_of_range_are_named(name, value):
    given = {"rate": 0.1, "steps": 10, "eps": 1.0, "delta": 1e-5, name: value}
    with pytest.raises(ValueError, match=f"{name}="):
        GaussianMechanism.from_training(**given)


@pytest.mark.parametrize("target", [{}, {"eps": 1.0}, {"eps": 1.0, "delta": 1e-5, "advantage": 0.1}, {"fpr": 0.1}], ids=str)
def test_one_target_is_given(target):
    with pytest.raises(ValueError, match="pass one target: eps and delta, or advantage, or fpr and fnr"):
        GaussianMechanism.from_training(rate=0.1, steps=10, **target)
