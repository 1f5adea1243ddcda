"""The privacy profile of every mechanism with a given zero-concentrated guarantee."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shufflebounds._base import validate as _validate
from shufflebounds._base.types import SLACK, ULP, FloatArray, IntervalArray
from shufflebounds._losses.closed_forms import ClosedForms
from shufflebounds._losses.release import DominatingPairInfo, Releases, Sampling
from shufflebounds.profile.profile import PrivacyProfile

__all__ = ["Concentrated"]


@dataclass(frozen=True)
class Concentrated(PrivacyProfile):
    r"""An upper bound for every mechanism whose Renyi divergence of order a is at most xi + rho a, for all a > 1.

    .. math:: \delta(\varepsilon) \le \min_{a > 1} \frac{1}{a} \Bigl(1 - \frac{1}{a}\Bigr)^{a-1} e^{(a-1)(\xi + \rho a -
    \varepsilon)}

    Parameters
    ----------
    rho : float
        Slope of the divergence, in [0, 1e6].
    xi : float
        Intercept, in [0, 1e6].

    Notes
    -----
    The lower bound is 0, because the mechanism is not known. In a composition the parameters xi and rho are added.

    References
    ----------
    Canonne, C., Kamath, G., Steinke, T. The discrete Gaussian for differential privacy, 2020, Proposition 12.
    """

    rho: float
    xi: float = 0.0

    theorem: ClassVar[str] = (
        "upper bound for every mechanism with this zero-concentrated guarantee (Canonne, Kamath, Steinke 2020, Proposition 12)")
    neighbours: ClassVar[str] = "those of the zero-concentrated guarantee"
    relation: ClassVar[str] = "either"

    def __post_init__(self) -> None:
        _validate.real_field(self, "rho", 0, 1e6)
        _validate.real_field(self, "xi", 0, 1e6)

    def describe(self) -> DominatingPairInfo:
        pair = self.closed_forms()
        # A minimum of convex functions need not be convex.
        return DominatingPairInfo(pair.log_delta, pair.pure, sampling=Sampling(convex=False),
                                  releases=Releases(((self.rho, self.xi), _product)))

    def closed_forms(self) -> _Divergences:
        return _Divergences(self.rho, self.xi)


class _Divergences(ClosedForms):
    """Upper bounds for every pair whose Renyi divergence of order a is at most xi + rho a for all a > 1."""

    __slots__ = ("rho", "xi")

    def __init__(self, rho: float, xi: float) -> None:
        self.rho, self.xi = rho, xi

    @property
    def pure(self) -> float:
        """Upper bound of the losses."""
        return self.xi if self.rho == 0 else math.inf

    def log_delta(self, eps: FloatArray) -> IntervalArray:
        # The log of the bound is convex in x = a - 1. The best x is found by bisection in log x; every x gives a valid bound.
        low, high = np.full(eps.size, -40.0), np.full(eps.size, 80.0)
        for _ in range(60):
            middle = (low + high) / 2
            x = np.exp(middle)
            rises = (2 * x + 1) * self.rho + self.xi - eps - np.log1p(1 / x) >= 0
            low, high = np.where(rises, low, middle), np.where(rises, middle, high)
        x = np.exp(high)
        parts = [x * (self.xi + self.rho * (1 + x)), -x * eps, -x * np.log1p(1 / x), -np.log1p(x)]
        upper = np.sum(parts, axis=0) + SLACK * np.sum(np.abs(parts), axis=0)
        return IntervalArray(np.full(eps.size, -np.inf), np.where(eps >= self.pure, -np.inf, np.minimum(upper, 0.0)))

    def renyi(self, orders: FloatArray, upper: bool) -> FloatArray:
        if not upper:
            return np.zeros(orders.size)
        with np.errstate(invalid="ignore"):
            value = (self.xi + np.where(self.rho == 0, 0.0, self.rho * orders)) * (1 + 4 * ULP)
        return np.asarray(value)


def _product(parts: Sequence[tuple[tuple[float, float], int]]) -> DominatingPairInfo:
    """Return the information about a composition: the parameters of all releases add up."""
    rho, xi = (math.fsum(times * one[i] for one, times in parts) * (1 + 4 * ULP) for i in (0, 1))
    return Concentrated(rho, xi)._pair_info()
