"""Trade-off functions that are given by formulas: those of Gaussian noise and of Laplace noise (Dong, Roth and Su 2022)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shufflebounds._base.scipy_functions import erfcx, erfinv, exprel, log_ndtr, ndtri_exp
from shufflebounds._base.types import SLACK, ULP, FloatArray
from shufflebounds.tradeoff.representation import Representation, log1mexp, log_quantile

__all__ = ["QUANTILE_ERROR", "GaussianCurve", "LaplaceCurve"]

QUANTILE_ERROR = 4e-15
"""Assumed relative error of normal quantiles computed from logarithms: ten times the measured error. Raised: less tight curves.
Lowered: a less accurate C library could make a curve invalid."""


def _double_exponential() -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights of double exponential quadrature on (0, inf), for integrands that decay at infinity.

    The nodes are s = exp(pi/2 sinh(t)) at equally spaced t.
    """
    t = np.linspace(-3.6, 1.75, 102)
    s = np.exp(math.pi / 2 * np.sinh(t))
    return s, math.pi / 2 * np.cosh(t) * s * (t[1] - t[0])


_NODES, _WEIGHTS = _double_exponential()


@dataclass(frozen=True, repr=False)
class GaussianCurve(Representation):
    """The trade-off function of N(0, 1) and N(mu, 1).

    `side` is 0 for computed values without rounding, 1 for values above the exact curve, and -1 for values below it. The delta of a
    curve below the exact curve is above the exact delta.
    """

    mu: float
    side: int = 0

    def __repr__(self) -> str:
        return f"gaussian({self.mu})"

    def log_beta(self, x: FloatArray) -> FloatArray:
        rest = log1mexp(x)
        quantile = log_quantile(x, rest)
        if self.side:
            quantile = quantile - self.side * QUANTILE_ERROR * np.where(np.isfinite(quantile), 1 + np.abs(quantile) + self.mu, 0.0)
        with np.errstate(invalid="ignore"):
            value = np.minimum(log_ndtr(-quantile - self.mu), rest)
        return _conservative(value, self.side, 16 * ULP)

    def log_delta(self, eps: FloatArray) -> FloatArray:
        value = self._log_delta(eps)
        if self.side:
            value = np.where(value > -np.inf, value - self.side * (20 + self.mu) * ULP * (1 + np.abs(value)), value)
        return np.minimum(value, 0.0)

    def _log_delta(self, eps: FloatArray) -> FloatArray:
        # The curve is symmetric, so delta(eps) = (1 - e^eps) + e^eps delta(-eps). For eps < 0 the quadrature would be inaccurate,
        # but both terms of this sum are positive.
        value = self._log_delta_above(np.abs(eps))
        return np.where(eps < 0, np.logaddexp(log1mexp(np.minimum(eps, 0.0)), eps + value), value)

    def _log_delta_above(self, eps: FloatArray) -> FloatArray:
        """Return log delta for eps >= 0."""
        mu = self.mu
        if mu == 0:
            return np.full(eps.shape, -np.inf)
        with np.errstate(over="ignore"):
            x, y = eps / mu - mu / 2, eps / mu + mu / 2
        tail = log_ndtr(-x)
        log_gap = np.empty_like(x)
        # delta = Phi(-x) (1 - m(y)/m(x)), where m is Mills' ratio of the normal distribution, and `log_gap` is the log of 1 -
        # m(y)/m(x). The difference 1 - m(y)/m(x) cancels if mu is small, or if x is so large that m(y) and m(x) agree in all
        # digits.
        close = (mu < 0.5) | (x > 1e8 * mu)
        close &= tail > -np.inf
        log_gap[close] = _log_mills_gap(x[close], mu)
        far = ~close
        xf, yf = x[far], y[far]
        with np.errstate(over="ignore", invalid="ignore", under="ignore", divide="ignore"):
            ratio = np.where(xf > -30, erfcx(yf / math.sqrt(2)) / erfcx(np.maximum(xf, -30.0) / math.sqrt(2)),
                             np.exp(eps[far] + log_ndtr(-yf) - tail[far]))
            log_gap[far] = np.where(tail[far] > -np.inf, np.log1p(-ratio), 0.0)
        return np.asarray(np.minimum(tail + log_gap, 0.0))

    def gdp_mu(self) -> float:
        return self.mu


def _conservative(log_beta: FloatArray, side: int, error: float) -> FloatArray:
    """Return the logarithms moved up (side 1) or down (side -1) by a relative error bound; negative logarithms stay negative."""
    return np.asarray(log_beta * (1 - side * error)) if side else log_beta


def _log_mills_gap(x: FloatArray, mu: float) -> FloatArray:
    """Return log(1 - m(x + mu)/m(x)) for Mills' ratio m.

    m(x) - m(x + mu) is the integral over s > 0 of the positive function e^(-s^2/2 - x s) (1 - e^(-mu s)).
    """
    scale = 1 / np.maximum(1.0, x)
    s = _NODES * scale[:, None]
    with np.errstate(under="ignore"):
        # 1 - e^(-mu s) is computed as mu s exprel(-mu s). The factor mu, which may be tiny, is added as log(mu) at the end.
        gap = (np.exp(-s * (s / 2 + x[:, None])) * s * exprel(-mu * s)) @ _WEIGHTS * scale
    return np.asarray(np.log(gap / (math.sqrt(math.pi / 2) * erfcx(x / math.sqrt(2)))) + math.log(mu))


@dataclass(frozen=True, repr=False)
class LaplaceCurve(Representation):
    """The trade-off function of Laplace noise of scale 1 against its shift by eps; `side` as for :class:`GaussianCurve`."""

    eps: float
    side: int = 0

    def __repr__(self) -> str:
        return f"laplace({self.eps})"

    def log_beta(self, x: FloatArray) -> FloatArray:
        e = self.eps
        low, high = x < -e - math.log(2), x > -math.log(2)
        rest = log1mexp(x)
        if self.side:
            # Account for the rounding of the sums of x and e.
            x = x - self.side * 4 * ULP * (1 + np.where(x > -np.inf, np.abs(x), 0.0) + e)
        value = np.where(low, log1mexp(np.minimum(x + e, 0.0)), np.where(high, rest - e, -e - x - math.log(4)))
        return np.minimum(_conservative(np.minimum(value, rest), self.side, 16 * ULP), 0.0)

    def log_delta(self, eps: FloatArray) -> FloatArray:
        e = self.eps - self.side * 4 * ULP * (self.eps + np.abs(eps))
        value = log1mexp(np.minimum(np.where(eps < -e, eps, (eps - e) / 2), 0.0))
        return np.asarray(_conservative(value, -self.side, 16 * ULP))

    def _epsilon(self, delta: float) -> float:
        # For Laplace noise with local eps `self.eps`, delta = 1 - e^((eps - self.eps)/2). This equation is solved for eps, and
        # bounds of the rounding errors of the logarithm and of the sum are added.
        eps = self.eps + 2 * math.log1p(-delta) if delta < 1 else 0.0
        return max(0.0, eps + (4 * ULP * (self.eps - eps + self.eps) if delta else 0.0))

    def gdp_mu(self) -> float:
        # mu is the largest sum of the normal quantiles of 1 - alpha and 1 - beta on the curve. It is attained at alpha = beta =
        # e^(-eps/2)/2. Near 1/2, the inverse error function is more accurate than the quantile of a logarithm.
        small = self.eps < 1
        mu = math.sqrt(8) * erfinv(-math.expm1(-self.eps / 2)) if small else -2 * ndtri_exp(-self.eps / 2 - math.log(2))
        return float(mu) * (1 + SLACK)
