"""Accountants for other libraries: dp-accounting's own test cases, both bounds, and the interface of Opacus."""

import math
import sys
import types
from pathlib import Path

import pytest

dp_accounting = pytest.importorskip("dp_accounting")

import attr  # noqa: E402
from dp_accounting import dp_event  # noqa: E402
from dp_accounting.pld import PLDAccountant  # noqa: E402

from shufflebounds.interop import opacus  # noqa: E402
from shufflebounds.interop.dp_accountant import (  # noqa: E402
    ProfileDpEvent,
    RandomAllocationDpEvent,
    Relation,
    ShuffleAccountant,
    ShuffledDpEvent,
)
from shufflebounds.mechanisms import GaussianMechanism, RandomizedResponse  # noqa: E402
from shufflebounds.sampling import RandomAllocation  # noqa: E402
from shufflebounds.shuffle import StrongerClones  # noqa: E402
from tests.strategies import slow  # noqa: E402


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
        (Relation.ADD_OR_REMOVE_ONE, dp_event.ZCDpEvent(1.0)),
    ],
)
def test_other_adjacency_relations_are_refused(relation, event):
    accountant = ShuffleAccountant(relation)
    assert not accountant.supports(event)
    with pytest.raises(dp_accounting.UnsupportedEventError):
        accountant.compose(event)
    assert accountant.profile is None


@attr.s(frozen=True, auto_attribs=True)
class EpsilonDeltaDpEvent(dp_event.DpEvent):
    """The event as defined in releases of dp-accounting after 0.6; the installed release may not define it."""

    epsilon: float
    delta: float


@pytest.mark.parametrize(("event", "named"), [
    (dp_event.GaussianDpEvent(-1.0), "noise_multiplier=-1 must be finite and >= 0"),
    (dp_event.LaplaceDpEvent(-2.0), "noise_multiplier=-2 must be finite and >= 0"),
    (dp_event.GaussianDpEvent(math.nan), "noise_multiplier=nan"),
    (dp_event.DiscreteLaplaceDpEvent(-1.0, 1), "noise_parameter=-1 must be finite and >= 0"),
    (dp_event.DiscreteLaplaceDpEvent(1.0, -1), "sensitivity=-1"),
    (dp_event.RandomizedResponseDpEvent(1.5, 4), r"noise_parameter=1.5 must be in \[0, 1\]"),
    (dp_event.RandomizedResponseDpEvent(0.5, 0), "num_buckets=0"),
    (dp_event.PoissonSampledDpEvent(0.5, dp_event.GaussianDpEvent(-1.0)), "noise_multiplier=-1 must be finite and >= 0"),
    (dp_event.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0, 2.0], [0.5, 0.25, 0.25]), "at most one value other than 0"),
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
