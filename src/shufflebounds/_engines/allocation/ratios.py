"""The distribution of the likelihood ratio L = dP/dQ of Gaussian or Laplace noise, for random allocation.

`Ratios` gives the masses under P and Q of arbitrary intervals of the loss ln L, with bounds of their errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from shufflebounds._base.scipy_functions import log_ndtr
from shufflebounds._base.types import ULP, FloatArray

__all__ = ["Ratios", "gaussian_ratios", "laplace_ratios", "smaller_tails"]

Tail = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""A function that returns log Pr[loss <= x] and log Pr[loss > x] for an array of x."""


@dataclass(frozen=True, eq=False)
class Ratios:
    """The distribution of the loss ln L under Q and under P: a discrete part (the atoms) and a part with a density.

    Parameters
    ----------
    loss, q, p : ndarray
        The atoms: losses, masses under Q and masses under P.
    tail_q, tail_p : callable
        Log tails of the density under Q and under P.
    low, high : float
        Smallest and largest loss of the density, or -inf and inf if the losses are unbounded.
    """

    loss: FloatArray
    q: FloatArray
    p: FloatArray
    tail_q: Tail
    tail_p: Tail
    low: float
    high: float

    def cells(self, edges: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the masses under Q and P of losses in (edges[i], edges[i + 1]], and a bound of the relative error of each."""
        q, mass_error = _between(self.tail_q, edges)
        p, other = _between(self.tail_p, edges)
        mass_error = np.maximum(mass_error, other)
        if self.loss.size:
            place = np.searchsorted(edges, self.loss, side="left") - 1
            kept = (place >= 0) & (place < q.size)
            q = q + np.bincount(place[kept], weights=self.q[kept], minlength=q.size)
            p = p + np.bincount(place[kept], weights=self.p[kept], minlength=q.size)
        return q, p, np.minimum(mass_error + 64 * ULP, 1.0)

    def log_p_above(self, loss: FloatArray) -> FloatArray:
        """Return an upper bound of the log mass under P of losses above `loss`."""
        order = np.argsort(self.loss)
        with np.errstate(divide="ignore"):
            held = np.log(np.append(np.cumsum(self.p[order][::-1])[::-1], 0.0))
        out = held[np.searchsorted(self.loss[order], loss, side="right")]
        return np.asarray(np.logaddexp(out, self.tail_p(loss)[1]) + 64 * ULP)

    def log_q_below(self, loss: FloatArray) -> FloatArray:
        """Return an upper bound of the log mass under Q of losses of at most `loss`."""
        order = np.argsort(self.loss)
        with np.errstate(divide="ignore"):
            held = np.log(np.append(0.0, np.cumsum(self.q[order])))
        out = held[np.searchsorted(self.loss[order], loss, side="right")]
        return np.asarray(np.minimum(np.logaddexp(out, self.tail_q(loss)[0]) + 64 * ULP, 0.0))


def smaller_tails(below: FloatArray, above: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return for each interval between edges the logs of two tails that differ by the mass of the interval, the smaller one first.

    `below` and `above` are the lower and the upper log tails at the edges. For each interval the function returns either the two
    lower tails at its ends or the two upper tails, whichever are smaller, because their difference has less cancellation.
    """
    left = below[1:] < above[1:]
    return np.where(left, below[:-1], above[1:]), np.where(left, below[1:], above[:-1])


def _between(tail: Tail, edges: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the masses of the density between neighbouring edges, and a bound of the relative error of each."""
    low, high = smaller_tails(*tail(edges))
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.minimum(low - high, 0.0)
        part = np.where(high > -np.inf, -np.expm1(ratio), 0.0)
        mass = np.where(part > 0, np.exp(high) * part, 0.0)
        # An error x of `low` changes the mass by x e^low, and an error of `high` changes it by x e^high.
        size = np.where(np.isfinite(low), np.abs(low) * np.exp(ratio), 0.0) + np.where(np.isfinite(high), np.abs(high), 0.0)
        return mass, np.where(part > 0, ULP * (16 + 4 * size) / part, 0.0)


def gaussian_ratios(mu: float) -> Ratios:
    """Return the loss distributions of N(mu, 1) against N(0, 1)."""
    def shifted(sign: float) -> Tail:
        def tail(loss: FloatArray) -> tuple[FloatArray, FloatArray]:
            z = (loss - sign * mu * mu / 2) / mu
            return log_ndtr(z), log_ndtr(-z)

        return tail

    none = np.empty(0)
    return Ratios(none, none, none, shifted(-1), shifted(1), -math.inf, math.inf)


def laplace_ratios(pure: float) -> Ratios:
    """Return the loss distributions of Laplace noise with the pure budget `pure`."""
    def inner(swap: bool) -> Tail:
        def tail(loss: FloatArray) -> tuple[FloatArray, FloatArray]:
            # For |l| < pure (the largest loss of Laplace noise), the loss has the density e^(-(l + pure)/2)/4 at l under Q, and the
            # same density at -l under P.
            x = np.clip(-loss if swap else loss, -pure, pure)
            with np.errstate(divide="ignore"):
                below = np.log(-np.expm1(-(x + pure) / 2)) - math.log(2)
                above = -(x + pure) / 2 + np.log(-np.expm1((x - pure) / 2)) - math.log(2)
            return (above, below) if swap else (below, above)

        return tail

    atoms = np.array([-pure, pure])
    q = np.array([0.5, 0.5 * math.exp(-pure)])
    return Ratios(atoms, q, q[::-1].copy(), inner(False), inner(True), -pure, pure)
