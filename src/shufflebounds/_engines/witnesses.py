"""Witnesses for the certificates: free numbers of a theorem, near the best ones, computed in doubles.

Each choice of these numbers gives valid bounds, so the certificates do not rely on this module. Distributions are lists of values
with their probabilities, in any type of numbers that has a conversion to float.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, SupportsFloat, TypeAlias

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from shufflebounds._base.types import FloatArray
from shufflebounds._engines.datasets.largest_sum import NODES, SMOOTHING, SPREAD, SumChoices

__all__ = ["Witness", "chosen", "clone_window", "sampled_tilt", "witness"]

TILTS = 1.1, 1.2, 1.4, 1.7, 2.2, 3.0
"""Values of t/theta that are tried for a sum."""

LATER_TILTS = 1.03, 1.06, 1.1, 1.15, 1.2, 1.3, 1.5, 2.0, 3.0
"""Values of t/theta that are tried for a composition."""

Law: TypeAlias = Sequence[tuple[SupportsFloat, SupportsFloat]]


class Witness(NamedTuple):
    """The free numbers of `certify.blanket`: theta, t, y = 2 pi/D, eta and the last node."""

    theta: float
    t: float
    y: float
    eta: float
    last: int


def _floats(law: Law) -> FloatArray:
    """Return the values and their probabilities as the rows of an array."""
    return np.array([(float(x), float(p)) for x, p in law]).T


def _saddle(laws: Sequence[FloatArray], users: int, ends: tuple[float, float]) -> tuple[float, Callable[[float], float]]:
    """Return theta near the best one, between e^ends, and the largest log of phi^n of several distributions."""

    def log_phi(t: float) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            return max(users * math.log1p(float(p @ np.expm1(t * x))) for x, p in laws)

    return math.exp(minimize_scalar(lambda s: log_phi(math.exp(s)) - 2 * s, bounds=ends, method="bounded").x), log_phi


def witness(law: Law, users: int, digits: float, size: float | None = None) -> Witness:
    """Return the witness of `certify.blanket` for a smoothing term of this number of digits.

    `size` is a guess of log E S_+; without it, T is assumed to be about its largest term, which is too large for heavy tails.
    """
    x, p = _floats(law)
    big = float(x.max())
    theta, log_phi = _saddle([np.array([x, p])], users, (math.log(1e-9 / big), math.log(600 / big)))
    scale, small = log_phi(theta) - 2 * math.log(theta) if size is None else size, math.log(10) * digits + 3
    eta = math.sqrt(2) * 10 ** (-digits / 2) / theta
    # The terms j > 0, and the terms j < 0, are about a fraction e^-small of T.
    most = math.log(users * float(p @ np.abs(x)) + 1)
    behind, t = min(((small + log_phi(t) - scale - math.log(t)) / (t - theta), t) for t in (theta * more for more in TILTS))
    y = max((small - scale + most) / theta, behind)
    return Witness(theta, t, y, eta, math.ceil(math.sqrt(2 * (small + 10)) / eta * y / (2 * math.pi)))


def chosen(laws: Sequence[Law], users: int) -> SumChoices:
    """Return a witness of Lemma H that is good for some of the distributions `laws` of X."""
    floats = [_floats(law) for law in laws]
    variance = users * max(float(p @ x**2 - (p @ x) ** 2) for x, p in floats)
    theta, _ = _saddle(floats, users, (-0.5 * math.log(variance) - 4, -0.5 * math.log(variance) + 4))
    return SumChoices(users, theta, 2 * math.pi / (SPREAD * math.sqrt(variance)), SMOOTHING * variance, NODES)


def sampled_tilt(
    parts: Sequence[tuple[float, float, float, int]], eps: float, removed: bool, small: float
) -> tuple[float, float, float]:
    """Return theta near the saddle point, log of the term m = 0, and t > theta, for `certify.sampled_gaussians`.

    Each part has sigma, the sensitivity, the rate of the sample and the number of releases.
    """

    def log_g(sigma: float, q: float, a: float) -> float:
        if q == 1:
            return (a * a - a) / (2 * sigma**2)
        step, far = min(sigma, sigma**2) / 4, 9 * sigma
        x = np.arange(math.floor(-far / step), math.ceil((max(a, 0) + far) / step)) * step
        log_v = np.logaddexp(math.log1p(-q), math.log(q) + (x - 0.5) / sigma**2)
        return float(logsumexp(a * log_v - x**2 / (2 * sigma**2))) + math.log(step / (sigma * math.sqrt(2 * math.pi)))

    def moment(theta: float) -> float:
        return sum(k * log_g(s / d, q, theta + 1 if removed else -theta) for s, d, q, k in parts) - theta * eps

    found = minimize_scalar(lambda s: moment(math.exp(s)) - s - math.log1p(math.exp(s)), bounds=(-3.0, 6.0), method="bounded")
    theta, log_size = math.exp(float(found.x)), float(found.fun)
    more = min((theta * f for f in LATER_TILTS), key=lambda t: (small - log_size + moment(t)) / (t - theta))
    return theta, log_size, more


def clone_window(n: int, p: float, share: float, bits: int) -> tuple[float, int, int]:
    """Return about -log delta, and the window of the number of clones, Bin(n, p), for `certify.clones_window`."""
    if p >= 1:
        return n * math.log(2), n, n
    rate = math.log(2) + (share * math.log(share) + (1 - share) * math.log1p(-share) if share < 1 else 0.0)
    depth = -n * math.log1p(p * math.expm1(-rate))
    wide = math.sqrt(2 * (depth + 0.7 * bits) * n * p * (1 - p)) + depth + 0.7 * bits
    return depth, max(0, math.floor(n * p - wide)), min(n, math.ceil(n * p + wide))
