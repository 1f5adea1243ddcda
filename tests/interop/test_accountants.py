"""The accountants that other libraries call: dp-accounting's own cases, both sides, and Opacus' interface."""

import math
import sys
import types

import pytest

dp_accounting = pytest.importorskip("dp_accounting")

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
    """Its abstract test of accountants, with ours in it."""
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
    # theirs is pessimistic, by its grid of 1e-4 a release at most
    assert low - 1e-9 <= theirs.get_epsilon(1e-4) <= high + 2e-4 * count * 2
    assert ours.get_delta(high) <= 1e-4


def test_randomized_response_counts_every_release():
    """Version 0.6 of dp-accounting composes the event once, whatever the count."""
    event = dp_event.RandomizedResponseDpEvent(0.5, 4)
    ours = ShuffleAccountant(Relation.REPLACE_ONE).compose(event, 3)
    assert ours.get_epsilon(0.0) == pytest.approx(3 * math.log(5), rel=1e-12)


@pytest.mark.slow
def test_our_events():
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
def test_other_neighbours_are_refused(relation, event):
    accountant = ShuffleAccountant(relation)
    assert not accountant.supports(event)
    with pytest.raises(dp_accounting.UnsupportedEventError):
        accountant.compose(event)
    assert accountant.profile is None


def test_calibration_by_dp_accounting():
    sigma = dp_accounting.calibrate_dp_mechanism(
        ShuffleAccountant, dp_event.GaussianDpEvent, 1.0, 1e-5, dp_accounting.ExplicitBracketInterval(1.0, 10.0), tol=1e-6
    )
    assert sigma == pytest.approx(GaussianMechanism.from_dp(eps=1.0, delta=1e-5).sigma, abs=2e-6)


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
