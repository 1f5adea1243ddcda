"""Predicted costs against the counted numbers of values of delta and of grid points."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.special import log_ndtr

from shufflebounds import mechanisms, shuffle
from shufflebounds._types import IntervalArray
from shufflebounds.composing import SampledProfile
from shufflebounds.composing.composer import Composer
from shufflebounds.profile import DominatingPair

FACTOR = 3.5
"""Largest allowed ratio of the predicted and the counted number."""

QUESTIONS = {
    "delta": lambda profile: profile.delta(1.0),
    "epsilon": lambda profile: profile.epsilon(1e-6),
    "loss_tail": lambda profile: profile.loss_tail(0.2),
    "tradeoff": lambda profile: profile.tradeoff().beta(0.05),
    "gdp_mu": lambda profile: profile.gdp_mu(),
    "rdp": lambda profile: profile.rdp(8.0),
}

PROFILES = {
    "flipped reports": lambda: shuffle.FlippedReports(2000, 0, 2, 0.02, view="sums"),
    "k-ary response": lambda: mechanisms.KaryResponse(10, 2.0).shuffled(10**4),
    "histogram": lambda: shuffle.ShuffledHistogram(10**5, 500, 4e-4),
}

COMPOSITIONS = {
    "clones": lambda: shuffle.StrongerClones(10**5, 3.0).self_compose(30),
    "binomial noise": lambda: shuffle.BinomialNoise(10**4, 0.5).self_compose(30),
    "sampled training": lambda: mechanisms.GaussianMechanism(1.0).subsampled(0.01).self_compose(30),
}


def close(predicted, counted):
    return counted <= FACTOR * predicted + 3 and predicted <= FACTOR * counted + 3


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("question", ["tradeoff", "rdp"])
def test_samples_of_a_profile(name, question, monkeypatch):
    counted = []
    add = SampledProfile.add

    def counting(self, eps):
        before = self.evaluations
        add(self, eps)
        counted.append(self.evaluations - before)

    monkeypatch.setattr(SampledProfile, "add", counting)
    profile = PROFILES[name]()
    cost = profile.cost(of=question)
    QUESTIONS[question](profile)
    assert close(cost.values, sum(counted))
    assert 0 <= cost.seconds < 60


@pytest.mark.parametrize("name", COMPOSITIONS)
@pytest.mark.parametrize("question", ["delta", "epsilon", "loss_tail", "tradeoff", "rdp"])
def test_values_of_a_composition(name, question, monkeypatch):
    counted = []
    bounds = Composer._bounds
    monkeypatch.setattr(Composer, "_bounds", lambda self, eps: counted.append(eps) or bounds(self, eps))
    many = COMPOSITIONS[name]()
    predicted = many.cost(of=question).values
    assert not counted
    QUESTIONS[question](many)
    assert close(predicted, len(counted))


@dataclass(frozen=True)
class Shift(DominatingPair):
    """Normal noise of mean 0 against mean 1/4, which counts the grid points at which delta is evaluated."""

    counted: list

    def reverse(self):
        return self

    def _log_delta(self, eps):
        self.counted.append(eps.size)
        first, second = log_ndtr(0.125 - 4 * eps), eps + log_ndtr(-0.125 - 4 * eps)
        value = first + np.log(-np.expm1(second - first))
        return IntervalArray(value - 1e-9 * (1 - value), value + 1e-9 * (1 - value))


@pytest.mark.parametrize("log_delta", [-14.0, -200.0])
def test_grid_points_for_small_delta(log_delta):
    counted = []
    many = Shift(counted).self_compose(16)
    predicted = many._composer.grid_values(log_delta)
    # For N(1, 1) against N(0, 1), log delta is about -(eps - 1/2)^2/2.
    eps = 0.5 + math.sqrt(-2 * log_delta)
    counted.clear()
    many.log_delta(eps)
    # The pair is symmetric, so both orders share the values.
    assert 0.5 * sum(counted) <= predicted <= 4 * sum(counted)


def test_smaller_delta_costs_more():
    many = Shift([]).self_compose(16)
    usual, tiny = many.cost(), many.cost(1e-280)
    assert tiny.seconds > usual.seconds
    assert many._composer.grid_values(math.log(1e-280)) > many._composer.grid_values(math.log(1e-6))
    # This delta is below the smallest double.
    assert many.cost(0.0).seconds >= tiny.seconds


def test_only_enumerated_outcomes_are_free():
    assert mechanisms.RandomizedResponse(1.0).cost(of="tradeoff").values == 0
    assert mechanisms.GaussianMechanism(1.0).subsampled(0.01).self_compose(10).cost(of="rdp").values == 0


@pytest.mark.parametrize(("arguments", "named"), [
    ({"delta": -0.1}, "delta=-0.1"), ({"delta": 2.0}, "delta=2"), ({"of": "mu"}, "of='mu'"), ({"of": None}, "of=None"),
])
def test_refusals(arguments, named):
    with pytest.raises(ValueError, match=named):
        shuffle.BinomialNoise(100, 0.5).cost(**arguments)
