"""The protocol of docs/extending.md, executed from the page: the code is short, its bounds are valid, and every method works."""

import math
import pickle
import re
from dataclasses import dataclass
from pathlib import Path

import mpmath
import numpy as np
import pytest

from shufflebounds import PrivacyProfile
from shufflebounds.mechanisms import RandomizedResponse
from shufflebounds.profile import DominatingPair
from shufflebounds.profile.extend import DominatingPairInfo, IntervalArray
from tests.strategies import thinned

PAGE = (Path(__file__).parents[2] / "docs" / "extending.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def lines():
    block = PAGE.split("```pycon")[1].split("```")[0]
    return [line[4:] for line in block.splitlines() if line.startswith((">>>", "..."))]


@pytest.fixture(scope="module")
def protocol(lines):
    names = {"__name__": __name__}
    exec("\n".join(lines), names)
    return names["PoissonCount"]


def test_it_is_short(lines):
    written = [line for line in lines if line.strip()]
    assert len(written) < 40
    assert f"The whole protocol, {len(written)} lines" in PAGE


@pytest.mark.parametrize("rate", [0.25, 3.0, 40.0])
@pytest.mark.parametrize("eps", thinned([0.0, 0.3, 1.0, 2.5], 2))
def test_sides_enclose_the_sum_over_all_outcomes(protocol, rate, eps):
    mp = mpmath.mp.clone()
    mp.dps = 40
    pmf = [mp.mpf(0), *(mp.exp(-mp.mpf(rate)) * mp.mpf(rate) ** k / mp.factorial(k) for k in range(400))]
    factor = mp.exp(mp.mpf(eps))
    hockey_sticks = [
        mp.fsum(max(mp.mpf(0), p - factor * q) for p, q in zip(first, second))
        for first, second in ((pmf, pmf[1:]), (pmf[1:], pmf))
    ]
    exact = mp.log(max(hockey_sticks))
    profile = protocol(rate)
    lower, upper = (profile.log_delta(eps, bound=side) for side in ("lower", "upper"))
    assert lower <= exact <= upper
    assert upper - lower < 1e-9 * (1 - lower)


@dataclass(frozen=True)
class Response(PrivacyProfile):
    """Randomized response in seven lines, defined by delta only."""

    budget: float

    def describe(self):
        return DominatingPairInfo(self.bounds)

    def bounds(self, eps):
        value = np.log(np.maximum(-np.expm1(eps - self.budget), 0.0)) - math.log1p(math.exp(-self.budget))
        slack = np.where(value > -np.inf, 1e-14 * (1 - value), 0.0)
        return IntervalArray(value - slack, value + slack)


@dataclass(frozen=True)
class Listed(PrivacyProfile):
    """The same mechanism, defined by its outcomes."""

    budget: float

    def pairs(self):
        law = np.array([0.0, -self.budget]) - math.log1p(math.exp(-self.budget))
        return (DominatingPair.from_pmfs(law, law[::-1]),)


SEVEN = [Response(1.0), Listed(1.0)]


@pytest.mark.parametrize("profile", SEVEN, ids=lambda p: type(p).__name__)
def test_seven_lines_answer_everything(profile):
    known = RandomizedResponse(1.0)
    for ask in (
        lambda one, side: one.delta(0.5, bound=side),
        lambda one, side: one.epsilon(1e-6, bound=side),
        lambda one, side: one.epsilon(0.0, bound=side),
        lambda one, side: -one.tradeoff(bound="lower" if side == "upper" else "upper").beta(0.05),
        lambda one, side: one.gdp_mu(bound=side),
        lambda one, side: one.rdp(2.0, bound=side),
        lambda one, side: one.rdp(math.inf, bound=side),
        lambda one, side: one.self_compose(10).epsilon(1e-6, bound=side),
        lambda one, side: one.compose(one).epsilon(1e-6, bound=side),
    ):
        assert ask(profile, "lower") <= ask(known, "upper")
        assert ask(known, "lower") <= ask(profile, "upper")
    assert profile == pickle.loads(pickle.dumps(profile))
    assert "not stated" in profile._repr_html_()
    assert "1e-12" in profile._repr_html_()
    with pytest.raises(TypeError, match="not a class of this library"):
        profile.to_dict()


def test_no_pure_budget_is_claimed_that_was_not_said():
    # The pure budget is not known, so inf is returned. In double precision, delta vanishes at eps = 1.
    assert SEVEN[0].epsilon(0.0) == math.inf
    assert 1 - 1e-9 < SEVEN[0].epsilon(0.0, bound="lower") <= 1
    assert 1 - 1e-9 < SEVEN[0].rdp(math.inf, bound="lower") <= 1


def test_one_listed_pair_composes_exactly():
    ten, known = Listed(1.0).self_compose(10), RandomizedResponse(1.0).self_compose(10)
    lower, upper = (ten.epsilon(1e-6, bound=side) for side in ("lower", "upper"))
    assert upper - lower < 1e-9 * upper
    assert lower <= known.epsilon(1e-6)
    assert known.epsilon(1e-6, bound="lower") <= upper


@dataclass(frozen=True)
class OneOrder(PrivacyProfile):
    """A pair that does not list its other order, in which delta is smaller at every eps."""

    def pairs(self):
        return (DominatingPair.from_pmfs(np.log([0.2, 0.8]), np.log([0.1, 0.9])),)


def test_an_order_that_is_smaller_alone_counts_beside_the_other():
    # If two releases are in opposite orders, one joint outcome has the probabilities .18 and .08 under P and Q, one has .08 and
    # .18, and two carry no information.
    assert OneOrder().self_compose(2).delta(math.log(1.9)) >= 0.18 - 1.9 * 0.08
    # If both are in the same order, only the outcome with .04 and .01 contributes.
    assert OneOrder().self_compose(2).delta(math.log(1.9), bound="lower") >= (0.04 - 1.9 * 0.01) * (1 - 1e-3)


@pytest.mark.slow
def test_it_answers_everything(protocol):
    profile = protocol.calibrate(eps=0.7, delta=1e-5)
    assert profile.delta(0.7) <= 1e-5
    assert 0.7 * (1 - 1e-6) < profile.epsilon(1e-5) <= 0.7
    assert profile == protocol(profile.rate)
    assert re.fullmatch(r"PoissonCount\(rate=[\d.]+\)", repr(profile))
    assert profile.tradeoff().beta(0.1) <= 0.9
    assert profile.rdp(2.0) == math.inf
    week = profile.self_compose(7)
    assert profile.epsilon(1e-6, bound="lower") <= week.epsilon(1e-6, bound="lower") <= week.epsilon(1e-6)
    with pytest.raises(ValueError, match="rate=-1 must be in"):
        protocol(-1.0)
