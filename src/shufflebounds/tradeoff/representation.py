"""Base class of the representations of a trade-off function, and functions that the representations share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np

from shufflebounds._base.crossing import Curve, crossing
from shufflebounds._base.limits import LARGEST_EXPONENT
from shufflebounds._base.scipy_functions import erfcx, log_ndtr, ndtri_exp
from shufflebounds._base.search import expand_bracket
from shufflebounds._base.types import ULP, FloatArray

__all__ = ["Representation", "log1mexp", "log_quantile", "upward"]


class Representation(ABC):
    """A trade-off function f, given by a formula or by breakpoints.

    Arguments of the methods are 1-D float arrays that the caller has checked.
    """

    side: int = 0
    """1 for values above the exact curve, -1 for values below it, 0 for values as computed."""

    @abstractmethod
    def log_beta(self, x: FloatArray) -> FloatArray:
        """Return log f(e^x), x <= 0 or -inf."""

    @abstractmethod
    def log_delta(self, eps: FloatArray) -> FloatArray:
        """Return the log of delta(eps) = sup_alpha (1 - f(alpha) - e^eps alpha) for finite eps, which may be negative."""

    @abstractmethod
    def gdp_mu(self) -> float:
        """Return an upper bound of the smallest mu with G_mu <= f; inf if G_mu <= f for no mu.

        G_mu is the curve of Gaussian noise.
        """

    def epsilon(self, delta: FloatArray) -> FloatArray:
        """Return an eps >= 0 at which the evaluated delta(eps) is at most delta in [0, 1]; inf if no such eps exists."""
        return np.array([self._epsilon(d) for d in delta.tolist()])

    def _epsilon(self, delta: float) -> float:
        """Return `epsilon` for one delta, by a root search."""
        if delta == 0:
            return math.inf
        target = math.log(delta) * (1 + 4 * ULP) - 32 * ULP if delta < 1 else 0.0
        curve = Curve(lambda eps: min(float(self.log_delta(np.array([eps]))[0]), 0.0), cap=1e300, rtol=4 * ULP)
        return crossing(curve, target, upper=True)

    def inverse(self) -> Representation:
        """Return T(Q, P), the inverse of f; the default is for symmetric curves, which are their own inverse."""
        return self

    def symmetrized(self) -> Representation:
        """Return the greatest convex function below both f and its inverse."""
        return self

    def convex_hull(self) -> Representation:
        """Return the greatest convex function at or below f."""
        return self

    def knots(self) -> tuple[FloatArray, FloatArray]:
        """Return log alpha and log beta of the breakpoints."""
        raise AttributeError(f"{self!r} is not piecewise linear: it has no knots")


def upward(form: Representation, eps: float, log_delta: float) -> float:
    """Return a number at or above eps at which the evaluated log delta is at most `log_delta`; eps is raised by growing steps."""
    return expand_bracket(eps, lambda at: form.log_delta(np.array([at]))[0] <= log_delta, ULP * max(eps, 1e-290), math.inf)


def log1mexp(x: FloatArray) -> FloatArray:
    """Return log(1 - e^x) for x <= 0."""
    with np.errstate(divide="ignore"):
        return np.where(x > -0.6931471805599453, np.log(-np.expm1(x)), np.log1p(-np.exp(x)))


def log_quantile(x: FloatArray, rest: FloatArray) -> FloatArray:
    """Return the normal quantile z of e^x, given x and rest = log(1 - e^x); the error is below 1e-15 max(1, |z|).

    The quantile is computed from the smaller one of e^x and e^rest.
    """
    small = np.minimum(x, rest)
    z = np.asarray(ndtri_exp(small))
    deep = (small < -LARGEST_EXPONENT) & (small > -1e300)
    if deep.any():
        # For such x, SciPy's ndtri_exp has errors up to 5e-13, which one Newton step with Mills' ratio removes.
        z[deep] -= (log_ndtr(z[deep]) - small[deep]) * math.sqrt(math.pi / 2) * erfcx(-z[deep] / math.sqrt(2))
    return np.where(x <= rest, z, -z)
