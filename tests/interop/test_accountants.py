"""Accountants for other libraries: dp-accounting's own test cases, both bounds, and the interface of Opacus."""

import math
import sys
import types
from pathlib import Path

import pytest

dp_accounting = pytest.importorskip("dp_accounting")

import attr  # noqa: E402
import mpmath  # noqa: E402
import numpy as np  # noqa: E402
from dp_accounting import dp_event  # noqa: E402
from dp_accounting.pld import PLDAccountant  # noqa: E402
from scipy import optimize, stats  # noqa: E402

from shufflebounds.composition import zcdp_to_dp  # noqa: E402
from shufflebounds.interop import opacus  # noqa: E402
from shufflebounds.interop.dp_accountant import (  # noqa: E402
    ProfileDpEvent,
    RandomAllocationDpEvent,
    Relation,
    ShuffleAccountant,
    ShuffledDpEvent,
)
from shufflebounds.mechanisms import DiscreteGaussianMechanism, GaussianMechanism, RandomizedResponse  # noqa: E402
from shufflebounds.profile import DominatingPair  # noqa: E402
from shufflebounds.sampling import RandomAllocation, ShuffledBatches  # noqa: E402
from shufflebounds.shuffle import StrongerClones  # noqa: E402
from tests.strategies import slow, thinned  # noqa: E402


def test_dp_accounting_own_cases():
    """The abstract test of accountants of dp-accounting passes with this library's accountant."""
    import unittest

    from dp_accounting import privacy_accountant_test

    class Case(privacy_accountant_test.PrivacyAccountantTest):
        def _make_test_accountants(self):
            return [ShuffleAccountant(relation, bound=bound) for relation in Relation for bound in ("upper", "lower")]

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Case).run(result)
    assert result.testsRun > 8
    assert result.wasSuccessful(), result.errors + result.failures
    assert not result.skipped


@pytest.mark.parametrize(
    ("relation", "event", "count"),
    [
        (Relation.ADD_OR_REMOVE_ONE, dp_event.GaussianDpEvent(2.0), 3),
        (Relation.REPLACE_ONE, dp_event.GaussianDpEvent(4.0), 2),
        (Relation.ADD_OR_REMOVE_ONE, dp_event.LaplaceDpEvent(2.0), 4),
        (Relation.ADD_OR_REMOVE_ONE, dp_event.DiscreteLaplaceDpEvent(0.5, 2), 3),
        (Relation.REPLACE_ONE, dp_event.RandomizedResponseDpEvent(0.5, 4), 1),
        (Relation.REPLACE_SPECIAL, dp_event.RandomizedResponseDpEvent(0.5, 4), 1),
        slow(Relation.ADD_OR_REMOVE_ONE, dp_event.PoissonSampledDpEvent(0.125, dp_event.GaussianDpEvent(2.0)), 8),
        (Relation.ADD_OR_REMOVE_ONE, dp_event.PoissonSampledDpEvent(0.125, dp_event.LaplaceDpEvent(1.0)), 8),
        slow(
            Relation.ADD_OR_REMOVE_ONE, dp_event.ComposedDpEvent([dp_event.GaussianDpEvent(3.0), dp_event.LaplaceDpEvent(3.0)]), 2
        ),
    ],
)
def test_near_the_pld_accountant(relation, event, count):
    ours, theirs = ShuffleAccountant(relation), PLDAccountant(relation)
    assert ours.supports(event)
    ours.compose(event, count)
    theirs.compose(event, count)
    low, high = ours.get_epsilon(1e-4, bound="lower"), ours.get_epsilon(1e-4)
    assert low <= high
    # The other library's result is an upper bound with an error of at most one grid step, 1e-4, per release.
    assert low - 1e-9 <= theirs.get_epsilon(1e-4) <= high + 2e-4 * count * 2
    assert ours.get_delta(high) <= 1e-4


def test_randomized_response_counts_every_release():
    """This library's accountant composes the event `count` times; dp-accounting 0.6 composes it once, whatever the count is."""
    event = dp_event.RandomizedResponseDpEvent(0.5, 4)
    ours = ShuffleAccountant(Relation.REPLACE_ONE).compose(event, 3)
    assert ours.get_epsilon(0.0) == pytest.approx(3 * math.log(5), rel=1e-12)


@pytest.mark.slow
def test_events_of_this_library():
    accountant = ShuffleAccountant(Relation.REPLACE_ONE).compose(ShuffledDpEvent(1.0, 10**4))
    assert accountant.get_delta(0.05) == StrongerClones(10**4, 1.0).delta(0.05)
    accountant = ShuffleAccountant(Relation.REPLACE_ONE).compose(ProfileDpEvent(RandomizedResponse(1.0)))
    assert accountant.get_epsilon(0.0) == pytest.approx(1.0, rel=1e-14)
    event = RandomAllocationDpEvent(dp_event.GaussianDpEvent(2.0), 50)
    accountant = ShuffleAccountant(bound="lower").compose(event)
    exact = RandomAllocation(GaussianMechanism(2.0), 50)
    assert exact.delta(0.25, bound="lower") == accountant.get_delta(0.25) <= accountant.get_delta(0.25, bound="upper")
    assert accountant.get_delta(math.inf, bound="upper") < 1e-20


@pytest.mark.parametrize(
    ("relation", "event"),
    [
        (Relation.ADD_OR_REMOVE_ONE, ShuffledDpEvent(1.0, 100)),
        (Relation.ADD_OR_REMOVE_ONE, dp_event.RandomizedResponseDpEvent(0.5, 4)),
        (Relation.REPLACE_ONE, dp_event.PoissonSampledDpEvent(0.5, dp_event.GaussianDpEvent(1.0))),
        (Relation.REPLACE_ONE, RandomAllocationDpEvent(dp_event.GaussianDpEvent(1.0), 10)),
        (Relation.ADD_OR_REMOVE_ONE, dp_event.SampledWithoutReplacementDpEvent(10, 5, dp_event.GaussianDpEvent(1.0))),
        (Relation.ADD_OR_REMOVE_ONE, ProfileDpEvent(ShuffledBatches(GaussianMechanism(1.0), 10))),
        (Relation.REPLACE_ONE, ProfileDpEvent(ShuffledBatches(GaussianMechanism(1.0), 10))),
        (Relation.REPLACE_SPECIAL, ShuffledDpEvent(1.0, 100)),
    ],
)
def test_other_adjacency_relations_are_refused(relation, event):
    accountant = ShuffleAccountant(relation)
    assert not accountant.supports(event)
    with pytest.raises(dp_accounting.UnsupportedEventError):
        accountant.compose(event)
    assert accountant.profile is None


@pytest.mark.slow
def test_a_zeroed_record_is_one_that_a_special_value_replaces():
    epoch = ShuffledBatches(GaussianMechanism(1.0), 10)
    accountant = ShuffleAccountant(Relation.REPLACE_SPECIAL).compose(ProfileDpEvent(epoch))
    assert accountant.get_epsilon(1e-5) == pytest.approx(epoch.epsilon(1e-5), rel=1e-6)


@attr.s(frozen=True, auto_attribs=True)
class EpsilonDeltaDpEvent(dp_event.DpEvent):
    """The event as defined in releases of dp-accounting after 0.6; the installed release may not define it."""

    epsilon: float
    delta: float


@attr.s(frozen=True, auto_attribs=True)
class DiscreteGaussianDpEvent(dp_event.DpEvent):
    """As EpsilonDeltaDpEvent, an event of later releases."""

    sigma: float
    sensitivity: float = 1.0
    dimension: int | None = None


@attr.s(frozen=True, auto_attribs=True)
class ExponentialMechanismDpEvent(dp_event.DpEvent):
    """As EpsilonDeltaDpEvent, an event of later releases."""

    epsilon: float


@attr.s(frozen=True, auto_attribs=True)
class PermuteAndFlipDpEvent(dp_event.DpEvent):
    """As EpsilonDeltaDpEvent, an event of later releases."""

    epsilon: float


@attr.s(frozen=True, auto_attribs=True)
class TruncatedSubsampledGaussianDpEvent(dp_event.DpEvent):
    """As EpsilonDeltaDpEvent, an event of later releases."""

    dataset_size: int
    sampling_probability: float
    truncated_batch_size: int
    noise_multiplier: float


def test_discrete_gaussian_noise():
    exact = DiscreteGaussianMechanism(2.0, 1).self_compose(3)
    one = ShuffleAccountant().compose(DiscreteGaussianDpEvent(2.0, 1, 1), 3)
    assert one.get_epsilon(1e-5) == exact.epsilon(1e-5)
    assert one.get_epsilon(1e-5, bound="lower") == exact.epsilon(1e-5, bound="lower")
    assert ShuffleAccountant(Relation.REPLACE_ONE).compose(DiscreteGaussianDpEvent(2.0, 1, 1)).get_delta(
        1.0) == DiscreteGaussianMechanism(2.0, 2).delta(1.0)
    # In several dimensions the zero-concentrated guarantee counts: 4.011322 is the value of RdpAccountant, on its grid of orders.
    several = ShuffleAccountant().compose(DiscreteGaussianDpEvent(2.0), 3)
    assert one.get_epsilon(1e-5) < several.get_epsilon(1e-5) == pytest.approx(zcdp_to_dp(3 / 8, delta=1e-5)[0], rel=1e-12)
    assert 4.0113 < several.get_epsilon(1e-5) < 4.011322
    assert several.get_epsilon(1e-5, bound="lower") == 0
    sampled = ShuffleAccountant().compose(dp_event.PoissonSampledDpEvent(0.125, DiscreteGaussianDpEvent(2.0, 1, 1)), 4)
    assert sampled.get_epsilon(1e-5) == DiscreteGaussianMechanism(2.0, 1).subsampled(0.125).self_compose(4).epsilon(1e-5)
    assert ShuffleAccountant().compose(DiscreteGaussianDpEvent(2.0, 0.5, 1)).get_epsilon(1e-5) == 0
    assert ShuffleAccountant().compose(DiscreteGaussianDpEvent(2.0, 0)).get_epsilon(1e-5) == 0
    assert ShuffleAccountant().compose(DiscreteGaussianDpEvent(0.0)).get_epsilon(1e-5) == math.inf


def concentrated(rho, xi=0.0):
    return ShuffleAccountant().compose(dp_event.ZCDpEvent(rho, xi)).profile


def test_each_family_of_releases_is_one_release():
    whole = GaussianMechanism(5.0)
    for part in (concentrated(0.05), GaussianMechanism(6.0, 2.0), concentrated(0.1, 0.25)):
        whole = whole.compose(part)
    alone = GaussianMechanism(1 / math.sqrt(1 / 25 + 4 / 36)).compose(concentrated(0.15, 0.25))
    assert whole.epsilon(1e-6) == pytest.approx(alone.epsilon(1e-6), rel=1e-9)


@pytest.mark.parametrize("relation", thinned(list(Relation), 2))
def test_zero_concentrated_guarantees_add_up(relation):
    accountant = ShuffleAccountant(relation).compose(dp_event.ZCDpEvent(0.05), 2).compose(dp_event.ZCDpEvent(0.1, 0.25))
    accountant.compose(dp_event.ZCDpEvent(0.0, 0.0))
    for delta in (1e-3, 1e-9):
        assert accountant.get_epsilon(delta) == pytest.approx(zcdp_to_dp(0.2, delta=delta, xi=0.25)[0], rel=1e-10)
        assert accountant.get_epsilon(delta) >= zcdp_to_dp(0.2, delta=delta, xi=0.25)[0] * (1 - 1e-12)
    assert len(accountant.profile.factors) == 1
    assert accountant.profile.rdp(3.0) == pytest.approx(0.25 + 0.6, rel=1e-12)
    # Gaussian noise has this guarantee with rho = 1/(2 sigma^2), and a smaller delta.
    noise = GaussianMechanism(2.0)
    for eps in (0.0, 0.5, 3.0):
        assert noise.log_delta(eps) < concentrated(1 / 8).log_delta(eps) <= 0
    pure = ShuffleAccountant(relation).compose(dp_event.ZCDpEvent(0.0, 0.5), 2)
    assert pure.get_epsilon(0.0) == pytest.approx(1.0, rel=1e-12)
    with_noise = ShuffleAccountant(relation).compose(dp_event.ZCDpEvent(0.05)).compose(dp_event.GaussianDpEvent(2.0))
    assert with_noise.get_epsilon(1e-5, bound="lower") <= with_noise.get_epsilon(1e-5)
    assert with_noise.get_epsilon(1e-5) > ShuffleAccountant(relation).compose(dp_event.GaussianDpEvent(2.0)).get_epsilon(1e-5)


@pytest.mark.parametrize("event", [ExponentialMechanismDpEvent(0.5), PermuteAndFlipDpEvent(0.5)])
def test_events_that_count_as_any_pure_mechanism(event):
    accountant = ShuffleAccountant().compose(event, 4)
    assert accountant.get_epsilon(0.0) == pytest.approx(2.0, rel=1e-12)
    assert accountant.get_epsilon(1e-5) == pytest.approx(RandomizedResponse(0.5).self_compose(4).epsilon(1e-5), rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("sensitivities", "chances"), [([0.0, 1.0, 2.0], [0.2, 0.6, 0.2]), ([1.0, 2.0], [0.5, 0.5])])
def test_mixtures_of_several_sensitivities(sensitivities, chances):
    accountant = ShuffleAccountant().compose(dp_event.MixtureOfGaussiansDpEvent(1.5, sensitivities, chances))
    for eps in (0.0, 0.7, 2.0):
        # The likelihood ratio increases, so the best tests are thresholds, found on a fine grid.
        y = np.linspace(-15, 20, 700_001)
        upper = sum(p * stats.norm.sf((y - c) / 1.5) for c, p in zip(sensitivities, chances))
        lower = sum(p * stats.norm.cdf((y - c) / 1.5) for c, p in zip(sensitivities, chances))
        removed = (upper - math.exp(eps) * stats.norm.sf(y / 1.5)).max()
        added = (stats.norm.cdf(y / 1.5) - math.exp(eps) * lower).max()
        low, high = (accountant.get_delta(eps, bound=side) for side in ("lower", "upper"))
        assert low - 1e-9 <= max(removed, added) <= high + 1e-12
        assert high - low < 1e-10
    sampled = dp_event.PoissonSampledDpEvent(0.5, dp_event.MixtureOfGaussiansDpEvent(1.5, sensitivities, chances))
    assert ShuffleAccountant().compose(sampled).get_delta(0.5) < accountant.get_delta(0.5)


@pytest.mark.slow
def test_composed_mixtures_at_small_delta():
    # delta of two releases is at least that of one; below, the lower bound was above the upper one.
    event = dp_event.MixtureOfGaussiansDpEvent(8.153397767375731, [0.0, 1.0, 2.0], [0.6308543437988785, 0.2544988808608053,
                                                                                   0.11464677534031611])
    one, two = (ShuffleAccountant().compose(event, count).profile for count in (1, 2))
    assert one.log_delta(1.5, bound="lower") < two.log_delta(1.5, bound="lower") <= two.log_delta(1.5) < -70


@pytest.mark.slow
def test_composed_mixtures_near_the_pld_accountant():
    event = dp_event.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0, 2.0], [0.2, 0.6, 0.2])
    ours, theirs = (one.compose(event, 3) for one in (ShuffleAccountant(), PLDAccountant(value_discretization_interval=1e-3)))
    low, high = (ours.get_epsilon(1e-5, bound=side) for side in ("lower", "upper"))
    assert low - 1e-9 <= theirs.get_epsilon(1e-5) <= high + 6e-4
    assert high < low * (1 + 1e-4)


@pytest.mark.parametrize("delta", [0.0, slow(1e-12), 0.3])
def test_the_pair_of_an_approximate_guarantee_is_not_below_it(delta):
    for eps in (10 ** np.random.default_rng(1).uniform(-8, 1, 60)).tolist():
        accountant = ShuffleAccountant().compose(EpsilonDeltaDpEvent(eps, delta))
        assert accountant.get_epsilon(delta) >= eps
        below = math.nextafter(eps, 0.0)
        with mpmath.workdps(30):
            kept = (1 - mpmath.mpf(delta)) / (1 + mpmath.exp(-mpmath.mpf(eps)))
            assert accountant.get_delta(below) >= delta - kept * mpmath.expm1(mpmath.mpf(below) - mpmath.mpf(eps))


@pytest.mark.parametrize("level", [0.0, 1e-300, 1e-30, 1e-20, 1e-17, 1e-16, 1e-12, 1 - 1e-12, 1 - 2**-53, 1.0])
def test_power_at_levels_at_which_the_other_error_rounds_to_0_or_1(level):
    accountant = ShuffleAccountant().compose(dp_event.GaussianDpEvent(2.0), 4)
    with mpmath.workdps(30):
        # Four releases with mu = 1/2 each have mu = 1.
        quantile = mpmath.mpf(float(stats.norm.isf(level)))
        exact = mpmath.ncdf(1 - quantile) if 0 < level < 1 else mpmath.mpf(level)
        low, high = (accountant.get_true_positive_rates(level, bound=side) for side in ("lower", "upper"))
        assert low * (1 - 1e-12) <= exact <= high * (1 + 1e-12)
    if 0 < level < 1:
        low, high = (accountant.get_gdp_parameter_estimate([level], bound=side) for side in ("lower", "upper"))
        assert 0 <= low <= 1 <= high
        assert level < 1e-299 or high - low < 1e-4


def test_power_of_tests_and_mu():
    accountant = ShuffleAccountant().compose(dp_event.GaussianDpEvent(2.0), 4)
    levels = np.array([0.01, 0.1, 0.5])
    exact = stats.norm.sf(stats.norm.isf(levels) - 1.0)
    for side, sign in (("lower", -1), ("upper", 1)):
        power = accountant.get_true_positive_rates(levels, bound=side)
        assert (sign * (power - exact) >= -1e-12).all()
        assert power == pytest.approx(exact, rel=1e-3)
        assert sign * (accountant.get_gdp_parameter_estimate(bound=side) - 1.0) >= -1e-12
        assert accountant.get_gdp_parameter_estimate(levels, bound=side) == pytest.approx(1.0, rel=2e-3)
    assert isinstance(accountant.get_true_positive_rates(0.1), float)
    assert accountant.get_true_positive_rates(0.1, np.logspace(-6, 0)) == accountant.get_true_positive_rates(0.1)
    assert ShuffleAccountant().get_true_positive_rates(0.5) == 0.5
    assert ShuffleAccountant().get_gdp_parameter_estimate() == 0
    lost = ShuffleAccountant().compose(dp_event.NonPrivateDpEvent())
    assert lost.get_true_positive_rates([0.1, 0.2]).tolist() == [1, 1]
    assert lost.get_gdp_parameter_estimate() == math.inf
    assert ShuffleAccountant().compose(EpsilonDeltaDpEvent(1.0, 1e-3)).get_gdp_parameter_estimate() == math.inf
    with pytest.raises(ValueError, match="false_positive_rates=2"):
        accountant.get_true_positive_rates(2.0)


def test_mu_at_the_smallest_level():
    # Power and level are multiples of 5e-324, the smallest double; the exact power is 1.97 of them.
    accountant = ShuffleAccountant(Relation.REPLACE_ONE).compose(dp_event.GaussianDpEvent(300.0), 7)
    low, high = (accountant.get_gdp_parameter_estimate([5e-324], bound=bound) for bound in ("lower", "upper"))
    assert low <= 2 * math.sqrt(7) / 300 <= high
    assert accountant.get_true_positive_rates(5e-324, bound="lower") == 5e-324


@pytest.mark.parametrize(("sigma", "rate", "level"), [(0.1, 0.5, 0.1), (1.0, 0.3, 0.4), (0.5, 0.01, 0.8)])
def test_power_is_that_of_one_order_of_the_datasets(sigma, rate, level):
    # The null hypothesis is N(0, sigma^2), the alternative has the mean 1 with the probability `rate`; or in the other order.
    event = dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(sigma))
    added = (1 - rate) * level + rate * stats.norm.sf(stats.norm.isf(level) - 1 / sigma)

    def excess(x):
        return (1 - rate) * stats.norm.cdf(x) + rate * stats.norm.cdf(x - 1 / sigma) - level

    exact = max(added, stats.norm.cdf(optimize.brentq(excess, -40.0, 40.0, xtol=1e-13)))
    accountant = ShuffleAccountant().compose(event)
    low, high = (accountant.get_true_positive_rates(level, bound=bound) for bound in ("lower", "upper"))
    assert low * (1 - 1e-12) <= exact <= high * (1 + 1e-12)
    assert high - low < 1e-3


@pytest.mark.parametrize(("event", "named"), [
    (DiscreteGaussianDpEvent(-1.0), "sigma=-1 must be finite and >= 0"),
    (dp_event.ZCDpEvent(-1.0), "rho=-1 must be finite and >= 0"),
    (ExponentialMechanismDpEvent(-1.0), "epsilon=-1"),
    (TruncatedSubsampledGaussianDpEvent(100, 0.1, 20, 2.0), r"is not supported: .* pass ProfileDpEvent\(profile\)"),
    (dp_event.GaussianDpEvent(-1.0), "noise_multiplier=-1 must be finite and >= 0"),
    (dp_event.LaplaceDpEvent(-2.0), "noise_multiplier=-2 must be finite and >= 0"),
    (dp_event.GaussianDpEvent(math.nan), "noise_multiplier=nan"),
    (dp_event.DiscreteLaplaceDpEvent(-1.0, 1), "noise_parameter=-1 must be finite and >= 0"),
    (dp_event.DiscreteLaplaceDpEvent(1.0, -1), "sensitivity=-1"),
    (dp_event.RandomizedResponseDpEvent(1.5, 4), r"noise_parameter=1.5 must be in \[0, 1\]"),
    (dp_event.RandomizedResponseDpEvent(0.5, 0), "num_buckets=0"),
    (dp_event.PoissonSampledDpEvent(0.5, dp_event.GaussianDpEvent(-1.0)), "noise_multiplier=-1 must be finite and >= 0"),
    (dp_event.SingleEpochTreeAggregationDpEvent(1.0, 10), r"is not supported: .* pass ProfileDpEvent\(profile\)"),
    (dp_event.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0], [0.5, 0.4]), "sum to 1"),
    (EpsilonDeltaDpEvent(-1.0, 0.0), "epsilon=-1"),
])
def test_invalid_events_are_refused_with_a_message(event, named):
    relation = Relation.REPLACE_SPECIAL
    with pytest.raises(dp_accounting.UnsupportedEventError, match=named):
        ShuffleAccountant(relation).compose(event)


@pytest.mark.parametrize("event", [dp_event.DiscreteLaplaceDpEvent(1.0, 0), EpsilonDeltaDpEvent(0.0, 0.0),
                                   dp_event.MixtureOfGaussiansDpEvent(1.0, [0.0], [1.0])])
def test_events_that_do_not_depend_on_the_data(event):
    assert ShuffleAccountant().compose(event, 3).get_epsilon(0.0) == 0


@pytest.mark.parametrize("event", [dp_event.GaussianDpEvent(0), dp_event.LaplaceDpEvent(0), dp_event.DiscreteLaplaceDpEvent(0, 1),
                                   EpsilonDeltaDpEvent(1.0, 1.0)])
def test_events_without_privacy(event):
    assert ShuffleAccountant().compose(event).get_epsilon(1e-5) == math.inf


@pytest.mark.parametrize("relation", list(Relation))
def test_a_stated_guarantee_is_met_with_equality(relation):
    accountant = ShuffleAccountant(relation).compose(EpsilonDeltaDpEvent(0.5, 1e-3))
    assert accountant.get_delta(0.5) == pytest.approx(1e-3, rel=1e-12)
    # For eps between 0 and eps0, delta(eps) is delta + (1 - delta)(e^eps0 - e^eps)/(1 + e^eps0).
    rest = (1 - 1e-3) * (math.exp(0.5) - math.exp(0.2)) / (1 + math.exp(0.5))
    assert accountant.get_delta(0.2) == pytest.approx(1e-3 + rest, rel=1e-12)
    # For two events the reference is the optimal composition theorem (Kairouz, Oh, Viswanath 2015) at twice eps0.
    accountant.compose(EpsilonDeltaDpEvent(0.5, 1e-3))
    assert accountant.get_delta(1.0) == pytest.approx(1 - (1 - 1e-3) ** 2, rel=1e-9)


@pytest.mark.slow
def test_mixtures_with_one_sensitivity_are_poisson_samples():
    mixture = dp_event.MixtureOfGaussiansDpEvent(2.0, [0.0, 3.0], [0.9, 0.1])
    ours = ShuffleAccountant().compose(mixture, 2)
    exact = GaussianMechanism(2.0, 3.0).subsampled(0.1).self_compose(2)
    assert ours.get_epsilon(1e-5) == pytest.approx(exact.epsilon(1e-5), rel=1e-6)
    assert ours.get_epsilon(1e-5) >= exact.epsilon(1e-5, bound="lower")


def test_a_sample_of_several_gaussian_events():
    thrice = dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(2.0), 3)
    several = dp_event.ComposedDpEvent([thrice, dp_event.GaussianDpEvent(1.0)])
    ours = ShuffleAccountant().compose(dp_event.PoissonSampledDpEvent(0.25, several))
    sigma = 1 / math.sqrt(3 / 4 + 1)
    assert ours.get_epsilon(1e-5) == pytest.approx(GaussianMechanism(sigma).subsampled(0.25).epsilon(1e-5), rel=1e-9)
    mixed = dp_event.ComposedDpEvent([dp_event.GaussianDpEvent(1.0), dp_event.LaplaceDpEvent(1.0)])
    with pytest.raises(dp_accounting.UnsupportedEventError, match="one of Gaussian events"):
        ShuffleAccountant().compose(dp_event.PoissonSampledDpEvent(0.25, mixed))


@pytest.mark.slow
def test_the_gap_of_the_bounds_is_reported():
    accountant = ShuffleAccountant(Relation.REPLACE_ONE)
    assert accountant.gap(1e-5) == 0
    accountant.compose(dp_event.SampledWithoutReplacementDpEvent(1000, 10, dp_event.GaussianDpEvent(4.0)), 10)
    low, high = accountant.get_epsilon(1e-5, bound="lower"), accountant.get_epsilon(1e-5)
    assert accountant.gap(1e-5) == high / low - 1 > 1e-5
    accountant.compose(dp_event.NonPrivateDpEvent())
    assert accountant.gap(1e-5) == 0


def test_calibration_by_dp_accounting():
    sigma = dp_accounting.calibrate_dp_mechanism(
        ShuffleAccountant, dp_event.GaussianDpEvent, 1.0, 1e-5, dp_accounting.ExplicitBracketInterval(1.0, 10.0), tol=1e-6
    )
    assert sigma == pytest.approx(GaussianMechanism.from_dp(eps=1.0, delta=1e-5).sigma, abs=2e-6)


@pytest.mark.slow
def test_the_table_of_suites_in_the_documentation():
    from tests.interop import peer_suites

    page = (Path(__file__).parents[2] / "docs" / "interop.md").read_text(encoding="utf-8")
    for name in peer_suites.SUITES:
        assert peer_suites.row(name, *peer_suites.run(name)) in page


@pytest.mark.slow
def test_opacus_interface(monkeypatch):
    accountant = opacus.OpacusAccountant()
    assert accountant.get_epsilon(1e-5) == 0
    hook = accountant.get_optimizer_hook_fn(0.125)
    for _ in range(3):
        hook(types.SimpleNamespace(noise_multiplier=2.0, accumulated_iterations=1))
    accountant.step(noise_multiplier=1.5, sample_rate=0.25)
    assert accountant.history == [(2.0, 0.125, 3), (1.5, 0.25, 1)]
    assert len(accountant) == 4
    upper = accountant.get_epsilon(1e-5)
    assert accountant.get_epsilon(1e-5, bound="lower") <= upper
    fresh = opacus.OpacusAccountant()
    fresh.load_state_dict(accountant.state_dict())
    assert fresh.get_epsilon(1e-5) == upper
    for bad in ({}, {"history": []}, {"history": [], "mechanism": "rdp"}, {"history": [(0, 1, 1)], "mechanism": "shufflebounds"}):
        with pytest.raises(ValueError, match=r"state_dict|sigma"):
            fresh.load_state_dict(bad)
    assert len(fresh) == 4
    known = {}
    registry = types.ModuleType("opacus.accountants.registry")
    registry.register_accountant = known.__setitem__
    for name in ("opacus", "opacus.accountants"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, "opacus.accountants.registry", registry)
    opacus.register()
    assert known == {"shufflebounds": opacus.OpacusAccountant}


def exact_response(noise, bins, eps):
    """Return delta of a response that is replaced by a uniform one with probability `noise`, in 50 digits."""
    other = mpmath.mpf(noise) / bins
    return max(mpmath.mpf(0), 1 - mpmath.mpf(noise) + other - mpmath.exp(mpmath.mpf(eps)) * other)


def exact_laplace(noise, shift, eps):
    """Return delta of discrete Laplace noise with parameter `noise` and of the noise shifted by `shift`, in 50 digits."""
    def mass(x):
        return mpmath.tanh(mpmath.mpf(noise) / 2) * mpmath.exp(-mpmath.mpf(noise) * abs(x))

    ratio = mpmath.exp(mpmath.mpf(eps))
    # The likelihood ratio is the same for all outputs up to 0.
    first = (1 - ratio * mpmath.exp(-mpmath.mpf(noise) * shift)) / (1 + mpmath.exp(-mpmath.mpf(noise)))
    return max(mpmath.mpf(0), first) + mpmath.fsum(max(mpmath.mpf(0), mass(x) - ratio * mass(x - shift)) for x in range(1, shift))


def exact_sampled_gaussian(rate, mu, eps):
    """Return the larger delta of adding and of removing a record, in 50 digits."""
    rate, mu, ratio = mpmath.mpf(rate), mpmath.mpf(mu), mpmath.exp(mpmath.mpf(eps))
    removed, added = ((mpmath.log((r - 1 + rate) / rate) + mu**2 / 2) / mu if r > 1 - rate else None for r in (ratio, 1 / ratio))
    values = [(1 - rate) * mpmath.ncdf(-removed) + rate * mpmath.ncdf(mu - removed) - ratio * mpmath.ncdf(-removed)]
    if added is not None:
        values.append(mpmath.ncdf(added) - ratio * ((1 - rate) * mpmath.ncdf(added) + rate * mpmath.ncdf(added - mu)))
    return max(values)


NEAR = 1 - 1e-13
COMPOSED = dp_event.ComposedDpEvent([dp_event.GaussianDpEvent(3.0), dp_event.GaussianDpEvent(2.0)])


@pytest.mark.parametrize(
    ("relation", "event", "exact", "grid"),
    [
        *((Relation.REPLACE_ONE, dp_event.RandomizedResponseDpEvent(noise, bins),
           lambda eps, noise=noise, bins=bins: exact_response(noise, bins, eps),
           (0.0, 1.0, math.log1p((1 - noise) * bins / noise) * NEAR))
          for noise, bins in ((0.25553262775740804, 5), (0.28009623259596517, 36), (1.0121542775940418e-12, 36))),
        *((Relation.ADD_OR_REMOVE_ONE, dp_event.DiscreteLaplaceDpEvent(noise, shift),
           lambda eps, noise=noise, shift=shift: exact_laplace(noise, shift, eps), (0.0, 0.1, noise * shift * NEAR))
          for noise, shift in ((0.6531514958428303, 6), (5.228041502883429, 7), (0.1, 3))),
        *((Relation.ADD_OR_REMOVE_ONE, dp_event.MixtureOfGaussiansDpEvent(sigma, [0.0, 1.0], [1 - rate, rate]),
           lambda eps, sigma=sigma, rate=rate: exact_sampled_gaussian(rate, 1 / mpmath.mpf(sigma), eps), (0.0, rate / sigma))
          for sigma, rate in ((75.10328655056858, 0.007634959747587446), (18.574879767277878, 0.6993448158987554), (1.0, 0.25))),
        (Relation.ADD_OR_REMOVE_ONE, dp_event.PoissonSampledDpEvent(0.25, COMPOSED),
         lambda eps: exact_sampled_gaussian(0.25, mpmath.sqrt(mpmath.mpf(13)) / 6, eps), (0.0, 0.125, 0.5)),
    ],
)
def test_bounds_hold_where_a_parameter_is_rounded(relation, event, exact, grid):
    accountant = ShuffleAccountant(relation).compose(event)
    with mpmath.workdps(50):
        for eps in grid:
            assert accountant.get_delta(eps, bound="lower") <= exact(eps) <= accountant.get_delta(eps)


def test_the_lower_bound_at_infinite_eps():
    # Gaussian noise has no infinite loss, although delta(1e6) is nearly 1 here.
    noise = ShuffleAccountant().compose(dp_event.GaussianDpEvent(1e-4))
    assert noise.get_delta(1e6, bound="lower") > 0.9
    assert noise.get_delta(math.inf, bound="lower") == 0
    revealing = DominatingPair.from_pmfs(np.log([0.25, 0.75]), [-math.inf, 0.0])
    failing = ShuffleAccountant().compose(ProfileDpEvent(revealing))
    assert failing.get_delta(math.inf, bound="lower") == pytest.approx(0.25, rel=1e-9)
    assert failing.get_delta(math.inf) == pytest.approx(0.25, rel=1e-9)
