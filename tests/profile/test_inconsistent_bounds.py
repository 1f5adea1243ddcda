"""A lower bound above the upper bound of the same number raises an error that names the object, the question and both bounds."""

import copy
import math
import pickle

import numpy as np
import pytest

from shufflebounds import InconsistentBoundsError, cli, mechanisms, shuffle
from shufflebounds.profile import PrivacyProfile
from shufflebounds.profile.extend import ClosedForms, DominatingPairInfo, IntervalArray
from shufflebounds.profile.two_orders import TwoOrders


class Inverted(PrivacyProfile):
    """Gaussian noise whose bounds of log delta are exchanged and `apart` from each other."""

    def __init__(self, apart):
        self.apart, self.noise = apart, mechanisms.GaussianMechanism(2.0)

    def __repr__(self):
        return f"Inverted(apart={self.apart})"

    def describe(self):
        return DominatingPairInfo(self.bounds)

    def bounds(self, eps):
        value = self.noise._log_delta(eps).upper
        return IntervalArray(value + self.apart, value - self.apart)


VIEWS = {
    "log_delta": lambda one: one.log_delta([0.1, 0.5]),
    "lower log_delta": lambda one: one.log_delta(0.5, bound="lower"),
    "delta": lambda one: one.delta(0.5),
    "epsilon": lambda one: one.epsilon(1e-6),
    "loss_tail": lambda one: one.loss_tail(0.5),
    "tradeoff": lambda one: one.tradeoff(),
    "gdp_mu": lambda one: one.gdp_mu(),
    "rdp": lambda one: one.rdp(2.0),
    "composition": lambda one: one.self_compose(2).log_delta(0.5),
    "statement": lambda one: one.statement(delta=1e-6),
}


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_of_inverted_bounds_raises(view):
    with pytest.raises(InconsistentBoundsError, match=r"Inverted\(apart=0\.001\).* of log delta at eps=.*please report") as caught:
        VIEWS[view](Inverted(1e-3))
    assert caught.value.lower == pytest.approx(caught.value.upper + 2e-3, rel=1e-9)


def test_an_inversion_by_rounding_is_removed():
    one = Inverted(1e-15)
    assert one.log_delta(0.5, bound="lower") == one.log_delta(0.5) < one._log_delta(np.array([0.5])).lower[0]


class Given(PrivacyProfile):
    """A profile with the given bounds of log delta and of the tail of the loss at .25, and of mu."""

    def __init__(self, lower, upper):
        self.given = lower, upper

    def describe(self):
        return DominatingPairInfo(lambda eps: self.at(eps, -0.1))

    def at(self, eps, elsewhere):
        return IntervalArray(*(np.where(eps == 0.25, side, elsewhere) for side in self.given))

    def closed_forms(self):
        return OfGiven(self)


class OfGiven(ClosedForms):
    def __init__(self, profile):
        self.profile = profile

    def loss_tail(self, eps, upper):
        return self.profile.at(eps, 0.9)

    def mu(self, upper):
        return self.profile.given[upper]


@pytest.mark.parametrize(("method", "question", "lower", "upper", "raises"), [
    ("log_delta", "log delta at eps=0.25", -1.0, -1.0 - 1e-13, False),
    ("log_delta", "log delta at eps=0.25", -1.0, -1.0 - 1e-11, True),
    ("log_delta", "log delta at eps=0.25", -1e5, -1e5 - 1e-9, False),
    ("log_delta", "log delta at eps=0.25", -800.0, -math.inf, True),
    # Rounding errors of probabilities are relative.
    ("loss_tail", "the tail of the loss above eps=0.25", 1e-30, 0.9e-30, True),
    ("loss_tail", "the tail of the loss above eps=0.25", 1e-30, 1e-30 * (1 - 1e-14), False),
    ("gdp_mu", "mu", math.inf, 2.0, True),
])
def test_what_counts_as_rounding(method, question, lower, upper, raises):
    for at in ([()] if method == "gdp_mu" else [(0.25,), ([0.5, 0.25],)]):
        ask = getattr(Given(lower, upper), method)
        # The second bound is compared with the first one.
        if raises:
            with pytest.raises(InconsistentBoundsError) as caught:
                ask(*at), ask(*at, bound="lower")
            assert caught.value.args == (question, lower, upper)
        else:
            assert np.all(ask(*at) >= ask(*at, bound="lower"))


def test_the_error_survives_a_pickle():
    error = InconsistentBoundsError("mu", 2.0, 1.0)
    error.source = "GaussianMechanism(sigma=1.0)"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert "GaussianMechanism(sigma=1.0): the lower bound 2.0 of mu exceeds the upper bound 1.0" in str(error)


class Underrated(mechanisms.KaryResponse):
    """Randomized response that states the privacy blanket of a smaller budget."""

    def excess_laws(self, *args, **kwargs):
        pair = copy.copy(super().excess_laws(*args, **kwargs)[0])
        pair.attained, pair.upper = False, mechanisms.KaryResponse(self.bins, 0.8).excess_laws(*args, **kwargs)[0].upper
        return (pair,)


@pytest.mark.parametrize("first", ["lower", "upper"])
def test_bounds_that_are_computed_one_at_a_time_are_compared(first):
    protocol = shuffle.Shuffled(Underrated(10, 1.0), 1000)
    protocol.log_delta([0.02, 0.05], bound=first)
    second = "upper" if first == "lower" else "lower"
    assert math.isfinite(protocol.log_delta(0.03, bound=second))
    with pytest.raises(InconsistentBoundsError, match=r"Shuffled\(randomizer=Underrated.*users=1000.*at eps=0\.05"):
        protocol.log_delta(0.05, bound=second)


@pytest.mark.parametrize(("method", "argument", "words"), [
    ("epsilon", (1e-6,), "epsilon at delta=1e-06"), ("rdp", (4.0,), r"Renyi divergence of order 4\.0"), ("gdp_mu", (), "of mu"),
])
def test_answers_of_closed_forms_are_compared(monkeypatch, method, argument, words):
    noise = mechanisms.GaussianMechanism(1.0)
    right = getattr(type(noise), f"_{method}")

    def wrong(self, *given):
        value = right(self, *given)
        return value if given[-1] else value * 1.001

    monkeypatch.setattr(type(noise), f"_{method}", wrong)
    getattr(noise, method)(*argument)
    with pytest.raises(InconsistentBoundsError, match=words):
        getattr(noise, method)(*argument, bound="lower")


@pytest.mark.parametrize(("method", "argument", "private", "words"), [
    ("epsilon", ([1e-3, 1e-6],), "_epsilons", "a bound of epsilon at delta=1e-06 is NaN"),
    ("rdp", ([2.0, 4.0],), "_rdp", "a bound of the Renyi divergence of order 4.0 is NaN"),
    ("loss_tail", ([0.5, 1.0],), "_loss_tail", "a bound of the tail of the loss above eps=1.0 is NaN"),
    ("gdp_mu", (), "_gdp_mu", "a bound of mu is NaN"),
])
@pytest.mark.parametrize("bound", ["lower", "upper"])
def test_no_answer_is_nan(monkeypatch, method, argument, private, words, bound):
    noise = mechanisms.GaussianMechanism(1.0)
    wrong = np.array([0.1, math.nan])
    wrong = {"_gdp_mu": math.nan, "_loss_tail": IntervalArray(wrong, wrong)}.get(private, wrong)
    monkeypatch.setattr(type(noise), private, lambda self, *given: wrong)
    with pytest.raises(InconsistentBoundsError, match=r"^GaussianMechanism\(sigma=1.0.*: " + words + ".*report it") as caught:
        getattr(noise, method)(*argument, bound=bound)
    assert math.isnan(caught.value.upper if bound == "upper" else caught.value.lower)


def test_two_orders_of_composition_and_groups_are_compared():
    large, small = mechanisms.GaussianMechanism(1.0), mechanisms.GaussianMechanism(2.0)
    at = np.array([0.5])
    with pytest.raises(InconsistentBoundsError, match=r"log delta at eps=0\.5"):
        TwoOrders(each=small, whole=large).log_delta(at)
    assert TwoOrders(each=large, whole=small).log_delta(at).alone() == pytest.approx([small.log_delta(0.5)] * 2)


def test_the_command_prints_the_error(monkeypatch, capsys):
    wrong = IntervalArray(np.array([-1.0]), np.array([-2.0]))
    monkeypatch.setattr(mechanisms.LaplaceMechanism, "_log_delta", lambda self, eps: wrong)
    assert cli.main(["delta", "laplace", "--scale", "2", "--eps", "0.1"]) == 1
    assert "shufflebounds: LaplaceMechanism(scale=2.0" in capsys.readouterr().err
