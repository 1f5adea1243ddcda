r"""How one user's message splits into clones of the target's two laws: the rates r_i of the families that share a randomizer.

For a target with output laws :math:`R_0, R_1` (likelihood ratio at most :math:`e^{\varepsilon_1}`) and others with laws
:math:`R_i(x)`, every valid split bounds delta(eps) by scale * delta_clone(eps; rates) + tail. Three are used:

S1      :math:`r_i = \inf_{x,z} R_i/(R_0+R_1)`, scale 1.
S2      the part where :math:`R_0 = R_1` is revealed: :math:`r_i = T \inf R_i/|R_0-R_1|`, scale
        :math:`\lambda = T (e^{\varepsilon_1}+1)/(e^{\varepsilon_1}-1)`, T the total variation of the target's pair.
window  both laws restricted to a set G of mass kappa: :math:`r_i = \kappa \inf_G R_i/(R_0+R_1)`, scale kappa, and what the pair
        leaks outside G as the tail; or, never smaller, :math:`\kappa\,\frac{p}{p+1} \inf_G R_i/\max(R_0,R_1)`, p the largest ratio
        of R_0 and R_1 in G.

Every method takes an interval [low, high] of target budgets and answers for all targets in it at once: largest weight, scale and
tail, smallest rates (delta is non-increasing in each rate and non-decreasing in the target's local budget, by post-processing).
With low = high it is the bound of one target. As a function of the other user's own budget b every rate is a minimum of functions
whose logarithms are concave (b e^(-b), b e^(-b^2 t), 1/(e^b + k - 1), a constant, nothing beyond the target's budget), and b times
a falling function: so is the whole, and over a range of budgets it is smallest at one of the ends.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from shufflebounds._scipy import log_ndtr, ndtri_exp
from shufflebounds._types import FloatArray

__all__ = ["Family", "Gaussian", "Laplace", "RandomizedResponse", "Terms"]

ROUNDING = 1e-13
"""Relative rounding of a rate that takes many operations; taken off, so that the rate stays valid."""


MOST_OUTSIDE = -1.25
"""No window leaves more outside, as a logarithm."""

Real = float | FloatArray


class Terms(NamedTuple):
    """What a decomposition says of the target: delta <= e^log_scale delta_clone + e^log_tail. Of several windows, arrays."""

    local_eps: Real
    log_scale: Real = 0.0
    log_tail: Real = -math.inf
    reach: Real = math.inf


class Family(ABC):
    """One randomizer with a budget for every user; a larger budget is less private."""

    windowed: ClassVar[bool] = False
    ends: ClassVar[bool] = False
    """Whether the rates of `kinds` are 0 beyond the target's budget."""
    single_seconds: ClassVar[float] = 1e-3
    """Measured seconds of one log delta of one target user, for predictions."""
    effort: ClassVar[float] = 1.5e-3
    """Relative cost of one log delta over all users, as in `DominatingPairInfo`.

    It decides how many values a composition evaluates.
    """
    value_seconds: ClassVar[tuple[float, float]] = 1.5e-3, 0.5
    """Measured seconds of one log delta over 1e4 users among many values, and those that the first value takes in addition."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """The decompositions without a window."""
        return ()

    def terms(self, kind: str, low: float, high: float) -> Terms:
        """Return what a decomposition without a window says of targets in [low, high]."""
        raise self._lacks(f"decomposition {kind}")

    def rates(self, kind: str, low: float, high: float, budgets: FloatArray) -> FloatArray:
        """Return its rates for users of these budgets."""
        raise self._lacks(f"decomposition {kind}")

    def most_outside(self, low: float, eps: float) -> float:
        """Return the largest log_mass that any window can leave outside, in a search for the best."""
        return MOST_OUTSIDE

    def window(self, log_mass: Real, low: float, high: float, eps: float) -> Terms:
        """Return the terms of the window that leaves about e^log_mass of the target's law outside, on one side."""
        raise self._lacks("window")

    def window_rates(self, reach: Real, low: float, high: float, budgets: FloatArray) -> FloatArray:
        """Return the rates of the window of that reach; of several windows, a column of reaches, in a row each."""
        raise self._lacks("window")

    def _lacks(self, what: str) -> TypeError:
        """Return the error of asking for what `kinds` and `windowed` do not list."""
        return TypeError(f"{type(self).__name__} has no {what}")

    @abstractmethod
    def pure_epsilon(self, budget: float) -> float:
        """Return the local pure epsilon of a budget, or inf."""

    def log_local(self, budget: float, eps: float) -> float:
        """Return an upper bound of the target's log delta without shuffling, where no decomposition is below it anyway."""
        return 0.0


@dataclass(frozen=True)
class RandomizedResponse(Family):
    """K-ary randomized response: the true category with chance e^eps/(e^eps + k - 1), any other with 1/(e^eps + k - 1)."""

    categories: int

    @property
    def kinds(self) -> tuple[str, ...]:
        # of a bit both are the same
        return ("S1", "S2") if self.categories > 2 else ("S1",)

    def pure_epsilon(self, budget: float) -> float:
        return budget

    def terms(self, kind: str, low: float, high: float) -> Terms:
        scale = math.log1p(math.exp(-high)) - math.log1p((self.categories - 1) * math.exp(-high)) if kind == "S2" else 0.0
        return Terms(high, min(scale, 0.0))

    def rates(self, kind: str, low: float, high: float, budgets: FloatArray) -> FloatArray:
        x = np.exp(-budgets)
        rates: FloatArray = x / (1 + (self.categories - 1) * x)
        if kind == "S1":
            y = math.exp(-high)
            rates *= (1 + (self.categories - 1) * y) / (1 + y)
        return np.minimum(rates, 0.5)


@dataclass(frozen=True)
class Laplace(Family):
    """Laplace noise of scale 1/eps on a value in [0, 1], not clipped afterwards.

    On z <= 0 and z >= 1 the log ratio R_i/(R_0+R_1) moves at the rate eps_i - eps_1, on [0, 1] it is concave: for
    eps_i <= eps_1 it is smallest at z = 0, x_i = 1; for eps_i > eps_1 it tends to 0 in the tails, so S1 and S2 give rate 0 and
    only a window [-T, 1+T] counts such users, with the ratio at z = -T, x_i = 1.
    """

    windowed: ClassVar[bool] = True
    ends: ClassVar[bool] = True
    effort: ClassVar[float] = 7.5e-3
    value_seconds: ClassVar[tuple[float, float]] = 7.5e-3, 2.0

    @property
    def kinds(self) -> tuple[str, ...]:
        return "S1", "S2"

    def pure_epsilon(self, budget: float) -> float:
        return budget

    def terms(self, kind: str, low: float, high: float) -> Terms:
        return Terms(high, 0.0 if kind == "S1" else math.log(max(_revealed(low), _revealed(high))))

    def rates(self, kind: str, low: float, high: float, budgets: FloatArray) -> FloatArray:
        rates = np.where(budgets <= low, budgets * np.exp(-budgets), 0.0)
        rates *= 1 / (high * (1 + math.exp(-high)))
        if kind == "S2":
            least = -2 * math.log(math.sqrt(2) - 1)
            rates *= _revealed(min(max(least, low), high))
        return np.minimum(rates, 0.5)

    def window(self, log_mass: Real, low: float, high: float, eps: float) -> Terms:
        reach = (-log_mass - math.log(2)) / low
        outside = 0.5 * np.exp(-high * reach) * (1 + math.exp(-high))
        leak = -math.expm1(min(eps - high, 0.0))
        tail = -low * reach + (1e-13 * (1 + low * reach) - math.log(2) + (math.log(leak) if leak > 0 else -math.inf))
        return Terms(high, np.log1p(-outside), tail, reach)

    def window_rates(self, reach: Real, low: float, high: float, budgets: FloatArray) -> FloatArray:
        with np.errstate(under="ignore"):
            kappa = 1 - 0.5 * np.exp(-low * reach) * (1 + math.exp(-low))
            rates: FloatArray = budgets * np.exp(-budgets - np.maximum(budgets - low, 0) * reach)
        rates *= kappa * (1 - ROUNDING) / (high * (1 + math.exp(-high)))
        return np.minimum(rates, 0.5)


def _revealed(budget: float) -> float:
    """Return the scale of S2 for Laplace noise."""
    return (1 + math.exp(-budget)) / (1 + math.exp(-budget / 2))


@dataclass(frozen=True)
class Gaussian(Family):
    r"""Gaussian noise on a value in [0, 1]; the budget is 1/sigma.

    The window is G = [1/2-T, 1/2+T], where the target's laws have the ratio :math:`p = e^{T a^2}` at most. With b = 1/sigma_i,
    a = 1/sigma_1, z = 1/2 - t and x_i = 1 (the worst value, and by symmetry t >= 0 the worst side),

    .. math:: \log c_i = \min_{0 \le t \le T} \log\frac{R_i}{\max(R_0, R_1)}
        = \log\frac{b}{a} + \min_{0 \le t \le T} \left(-\tfrac12 b^2 (t+\tfrac12)^2 + \tfrac12 a^2 (t-\tfrac12)^2\right),

    and the rate is :math:`\kappa\,c_i\,p/(p+1)` (docs/theorems/stronger-clones, users of different budgets).
    """

    windowed: ClassVar[bool] = True
    single_seconds: ClassVar[float] = 9e-3
    effort: ClassVar[float] = 0.2
    value_seconds: ClassVar[tuple[float, float]] = 0.2, 0.0

    def pure_epsilon(self, budget: float) -> float:
        return math.inf

    def log_local(self, budget: float, eps: float) -> float:
        first, second = (float(log_ndtr(side * budget / 2 - eps / budget)) for side in (1, -1))
        gap = second + eps - first
        if not gap < -1e-9:
            return 0.0
        loss = -math.expm1(gap)
        return min(0.0, first + math.log(loss) + 1e-13 * (2 + abs(first) + abs(eps)) * (1 + 1 / loss))

    def most_outside(self, low: float, eps: float) -> float:
        return min(MOST_OUTSIDE, float(log_ndtr(low / 2 - eps / low)))

    def window(self, log_mass: Real, low: float, high: float, eps: float) -> Terms:
        # beyond reach = eps sigma^2 alone the tail bound holds: inside, the ratio must be able to exceed e^eps
        reach = np.maximum(0.5 - ndtri_exp(log_mass) / low, eps / low**2 * (1 + 1e-15))
        near, far = (reach - 0.5), (reach + 0.5)
        first, kept, left = log_ndtr(-np.stack([near * low, near * high, far * high]))
        loss = -np.expm1(np.minimum(eps + left - first, 0.0))
        with np.errstate(divide="ignore"):
            tail = first + np.log(loss) + 1e-13 * (2 + np.abs(first)) * (1 + 1 / loss)
        tail = np.where(loss > 0, tail, -math.inf)
        return Terms(reach * high**2, np.log1p(-np.exp(kept) - np.exp(left)), tail, reach)

    def window_rates(self, reach: Real, low: float, high: float, budgets: FloatArray) -> FloatArray:
        kappa = np.log1p(-np.exp(log_ndtr(-(reach - 0.5) * low)) - np.exp(log_ndtr(-(reach + 0.5) * low)))
        # max(R_0, R_1) at a target in [low, high] is at most high/low times its value at low
        depth = least_log_ratio(low, budgets, reach)
        # p/(p + 1) with the largest ratio p of the target's laws inside
        most = -np.log1p(np.exp(-reach * high * high))
        with np.errstate(under="ignore"):
            rates: FloatArray = np.exp(depth + (kappa + most + math.log(1 / high))) * budgets
        return np.minimum(rates * (1 - ROUNDING * (1 + reach * reach * low * low)), 0.5)


def least_log_ratio(a: float, b: FloatArray, reach: Real) -> FloatArray:
    """Return the minimum over 0 <= t <= reach of the logarithm of the ratio of two densities without their factors a and b.

    It is -b^2 (t + 1/2)^2/2 + a^2 (t - 1/2)^2/2: the input of the other user farthest from the output, and the target's nearest.
    """
    def ratio(t: Real) -> FloatArray:
        return np.asarray(0.5 * (a * (t - 0.5)) ** 2 - 0.5 * (b * (t + 0.5)) ** 2)

    bend = (a - b) * (a + b)
    lowest = np.where(bend > 0, (a * a + b * b) / (2 * np.where(bend > 0, bend, 1.0)), reach)
    return np.minimum(ratio(0.0), ratio(np.minimum(lowest, reach)))
