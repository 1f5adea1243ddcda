r"""Clone decompositions of three families of randomizers with personalized budgets: the rate r_i of every other user.

The target's message has distribution :math:`R_0` or :math:`R_1`, whose likelihood ratio is at most :math:`e^{\varepsilon_1}`, the
target's budget being :math:`\varepsilon_1`. The message of another user i has distribution :math:`R_i(x)` for input x. User i sends
a clone, a message from :math:`R_0` or from :math:`R_1`, with probability :math:`r_i` each. Every valid decomposition bounds
delta(eps) by scale * delta_clone(eps; rates) + tail. Three are used:

S1      :math:`r_i = \inf_{x,z} R_i/(R_0+R_1)`, scale 1.
S2      the common part of :math:`R_0` and :math:`R_1` is revealed: :math:`r_i = T \inf R_i/|R_0-R_1|`, scale
        :math:`\lambda = T (e^{\varepsilon_1}+1)/(e^{\varepsilon_1}-1)`, where T is the total variation distance of R_0 and R_1.
window  R_0 and R_1 are restricted to a set G of mass kappa: :math:`r_i = \kappa \inf_G R_i/(R_0+R_1)`, scale kappa, and the
        hockey-stick divergence outside G is the tail. A second choice of the rates, which is never smaller, is
        :math:`r_i = \kappa\,\frac{p}{p+1} \inf_G R_i/\max(R_0,R_1)`, where p is the largest ratio of R_0 and R_1 in G.

Every method takes an interval [low, high] of target budgets and returns values that are valid for all targets in it: the largest
local eps, scale and tail, and the smallest rates. These values give an upper bound for every such target, because delta does not
increase in any rate and, by post-processing, does not decrease in the target's local budget. With low = high the values are those
of one target.

As a function of the other user's own budget b, every rate is a minimum of log-concave functions (b e^(-b), b e^(-b^2 t),
1/(e^b + k - 1), a constant, or 0 beyond the target's budget), each of which is b times a decreasing function. So log r is concave,
r(b)/b decreases, and over a range of budgets the rate is smallest at one of the ends.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from shufflebounds._base.limits import SQUARABLE
from shufflebounds._base.scipy_functions import erf, log_ndtr, ndtr, ndtri_exp
from shufflebounds._base.types import FloatArray, Interval
from shufflebounds._core import _clones
from shufflebounds._core._gaussian import gaussian_log_delta

__all__ = ["Family", "GaussianFamily", "LaplaceFamily", "RandomizedResponseFamily", "Terms"]

ROUNDING = 1e-13
"""Upper bound of the relative rounding error of a computed rate. Rates are decreased by this number, because only smaller rates
are valid."""


MOST_OUTSIDE = -1.25
"""Largest log mass outside a window that the search for the best window tries. Raised: longer run time for windows that are rarely
the best."""

Real = float | FloatArray


class Terms(NamedTuple):
    """The bound delta <= e^log_scale delta_clone + e^log_tail for a target user, where delta_clone is the clone bound with the
    local budget `local_eps`.

    For the bound of a window, `reach` is the T of this window (`LaplaceFamily`, `GaussianFamily`), in units of the output.
    For several windows the fields are arrays.
    """

    local_eps: Real
    log_scale: Real = 0.0
    log_tail: Real = -math.inf
    reach: Real = math.inf


class Family:
    """A family of local randomizers, one for each budget; a larger budget means less privacy."""

    windowed: ClassVar[bool] = False
    ends: ClassVar[bool] = False
    """Whether the rates of the decompositions `kinds` are 0 for users with a larger budget than the target."""
    effort: ClassVar[float] = 1.5e-3
    """Relative run time of one log delta over all users, as in `Sampling`.

    The larger this number, the fewer values of a profile a composition evaluates.
    """

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of the decompositions without a window."""
        return ()

    def terms(self, kind: str, low: float, high: float) -> Terms:
        """Return the terms of the decomposition `kind`, without a window, valid for all targets with budgets in [low, high]."""
        raise NotImplementedError

    def rates(self, kind: str, low: float, high: float, budgets: FloatArray) -> FloatArray:
        """Return the rates of the decomposition `kind` for other users with these budgets."""
        raise NotImplementedError

    def most_outside(self, low: float, eps: float) -> float:
        """Return the largest log mass outside a window that the search for the best window tries, for eps and budgets >= low."""
        return MOST_OUTSIDE

    def window(self, log_mass: Real, low: float, high: float, eps: float) -> Terms:
        """Return the terms of the window beyond which one tail of the target's distribution has a mass of about e^log_mass."""
        raise NotImplementedError

    def window_rates(self, reach: Real, low: float, high: float, budgets: FloatArray) -> FloatArray:
        """Return the rates in the window with parameter T = `reach`; for a column of reaches, one row of rates each."""
        raise NotImplementedError

    def between(self, budgets: Real, start: Real, end: Real) -> tuple[FloatArray, FloatArray]:
        """Return the probabilities that the noise is outside and inside of (start, end]; the arguments are broadcast.

        If `end` is inf, or if end > 0 and end - start >= end/40, relative errors are at most ROUNDING, and at most 3 ROUNDING for
        probabilities below 1e-65.
        """
        raise NotImplementedError

    def pure_epsilon(self, budget: float) -> float:
        """Return the pure eps of the randomizer with this budget: the budget itself, or inf for Gaussian noise."""
        return budget

    def log_local(self, budget: float, eps: float) -> Interval:
        """Return bounds of the target's log delta without shuffling.

        In families whose clone bound is never above the local delta, these bounds are not needed; -inf and 0 are returned.
        """
        return Interval(-math.inf, 0.0)


@dataclass(frozen=True)
class RandomizedResponseFamily(Family):
    """K-ary randomized response: the true category with probability e^eps/(e^eps + k - 1), any other with 1/(e^eps + k - 1)."""

    categories: int

    @property
    def kinds(self) -> tuple[str, ...]:
        # For k = 2 categories both decompositions are the same.
        return ("S1", "S2") if self.categories > 2 else ("S1",)

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
class LaplaceFamily(Family):
    """Laplace noise of scale 1/eps on a value in [0, 1], not clipped afterwards.

    Write z for the output, and x_i and eps_i for the value and the budget of the other user; eps_1 is the target's budget. The
    logarithm of R_i/(R_0+R_1) has slope +-(eps_i - eps_1) for z <= 0 and z >= 1, and is concave on [0, 1]. For eps_i <= eps_1 the
    ratio is smallest at z = 0 and x_i = 1. For eps_i > eps_1 the ratio tends to 0 in the tails, so that S1 and S2 have rate 0. A
    window [-T, 1+T] has a positive rate for such users: the ratio at z = -T and x_i = 1.
    """

    windowed: ClassVar[bool] = True
    ends: ClassVar[bool] = True
    effort: ClassVar[float] = 7.5e-3

    @property
    def kinds(self) -> tuple[str, ...]:
        return "S1", "S2"

    def terms(self, kind: str, low: float, high: float) -> Terms:
        return Terms(high, 0.0 if kind == "S1" else math.log(max(_revealed(low), _revealed(high))))

    def rates(self, kind: str, low: float, high: float, budgets: FloatArray) -> FloatArray:
        rates = np.where(budgets <= low, budgets * np.exp(-budgets), 0.0)
        rates *= 1 / (high * (1 + math.exp(-high)))
        if kind == "S2":
            turn = -2 * math.log(math.sqrt(2) - 1)
            rates *= _revealed(min(max(turn, low), high))
        return np.minimum(rates, 0.5)

    def between(self, budgets: Real, start: Real, end: Real) -> tuple[FloatArray, FloatArray]:
        low, high = 0.5 * np.exp(-budgets * np.abs(start)), 0.5 * np.exp(-budgets * end)
        # The difference of two tails on the same side of 0 would lose accuracy by cancellation.
        right = low * -np.expm1(-budgets * (end - start)), 1 - low + high
        around = -0.5 * (np.expm1(budgets * np.minimum(start, 0)) + np.expm1(-budgets * end)), low + high
        inside, outside = (np.where(np.less(start, 0), *both) for both in zip(around, right))
        return outside, inside

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
    """Return the scale lambda of the decomposition S2 (module docstring) for Laplace noise of scale 1/budget."""
    return (1 + math.exp(-budget)) / (1 + math.exp(-budget / 2))


@dataclass(frozen=True)
class GaussianFamily(Family):
    r"""Gaussian noise on a value in [0, 1]; the budget is 1/sigma.

    The window is G = [1/2-T, 1/2+T], where the ratio of R_0 and R_1 is at most :math:`p = e^{T a^2}`. Let b = 1/sigma_i and
    a = 1/sigma_1. Over inputs and over outputs in G, R_i/max(R_0, R_1) has its minimum c_i at x_i = 1 and an output z = 1/2 - t,
    t >= 0. So

    .. math:: \log c_i = \min_{0 \le t \le T} \log\frac{R_i}{\max(R_0, R_1)}
        = \log\frac{b}{a} + \min_{0 \le t \le T} \left(-\tfrac12 b^2 (t+\tfrac12)^2 + \tfrac12 a^2 (t-\tfrac12)^2\right),

    and the rate is :math:`\kappa\,c_i\,p/(p+1)` (docs/theorems/stronger-clones, users of different budgets).
    """

    windowed: ClassVar[bool] = True
    effort: ClassVar[float] = 0.2

    def pure_epsilon(self, budget: float) -> float:
        return math.inf

    def between(self, budgets: Real, start: Real, end: Real) -> tuple[FloatArray, FloatArray]:
        low, high = budgets * start, budgets * end
        outside = ndtr(low) + ndtr(-high)
        # Near 0, where the tails are nearly equal, their difference would lose accuracy by cancellation; that of erf does not.
        inside = np.where(low < 1, 0.5 * (erf(math.sqrt(0.5) * high) - erf(math.sqrt(0.5) * low)), ndtr(-low) - ndtr(-high))
        return np.asarray(outside), inside

    def log_local(self, budget: float, eps: float) -> Interval:
        value, error = map(float, gaussian_log_delta(1.0, budget, eps))
        return Interval(value - error, max(min(value + error, 0.0), -(SQUARABLE**2)))

    def most_outside(self, low: float, eps: float) -> float:
        return min(MOST_OUTSIDE, max(float(log_ndtr(low / 2 - eps / low)), -(SQUARABLE**2)))

    def window(self, log_mass: Real, low: float, high: float, eps: float) -> Terms:
        reach = np.maximum(0.5 - ndtri_exp(log_mass) / low, eps / low**2 * (1 + 1e-15))
        local, scale, tail = _clones.gaussian_terms(low, high, eps, np.ravel(reach)).reshape(3, *np.shape(reach))
        return Terms(local, scale, tail, reach)

    def window_rates(self, reach: Real, low: float, high: float, budgets: FloatArray) -> FloatArray:
        rates = _clones.gaussian_rates(low, high, budgets, np.ravel(reach), ROUNDING)
        return rates if np.ndim(reach) else rates[0]
