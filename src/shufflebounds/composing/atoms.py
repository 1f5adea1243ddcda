"""Laws of losses: outcomes as they are listed, and as they stand on a grid."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shufflebounds._core import _losses, _tradeoff
from shufflebounds._types import UNIT, FloatArray, Sides

__all__ = ["Atoms", "Law", "TooLongError", "grid"]

MERGED = 64 * UNIT
"""Error of a merged loss: the rounding of the balance at its grid point."""

MOST_LISTED = 2**25
"""No law has more points on its grid."""


class TooLongError(ValueError):
    """A law or a transform would have too many points; the message has its size."""


def grid(anchor: float, step: float, index: NDArray[np.int64]) -> FloatArray:
    """Return the grid points with these indices."""
    return np.asarray(anchor + step * index, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Law:
    """Masses under P of the losses anchor + step (first + i); under Q they are e^-loss of that.

    Upwards, a release is dominated by the law with every mass times e^slack and every loss plus blur; downwards it
    dominates the law with every mass times e^-slack and every loss minus blur. log_rest is the mass of infinite loss.
    """

    anchor: float
    step: float
    first: int
    log_p: FloatArray
    log_rest: float
    slack: float
    blur: float

    @property
    def losses(self) -> FloatArray:
        """The grid points."""
        return grid(self.anchor, self.step, self.first + np.arange(self.log_p.size))


@dataclass(frozen=True, eq=False)
class Atoms:
    """Outcomes by mass under P and loss, rising; log_rest of infinite loss, log_lost not listed at all.

    slack bounds the relative error of the masses under P, blur the error of the losses.
    """

    log_p: FloatArray
    loss: FloatArray
    log_rest: float
    log_lost: float
    slack: float
    blur: float

    @classmethod
    def of(cls, log_p: FloatArray, log_q: FloatArray, *, log_lost: float = -math.inf, error: float = 0.0) -> Atoms:
        """Return the outcomes of two listed laws, whose logarithms are off by at most `error`."""
        seen = log_p > -np.inf
        log_p, log_q = log_p[seen], log_q[seen]
        endless = log_q == -np.inf
        log_rest = float(np.logaddexp.reduce(log_p[endless], initial=-np.inf))
        log_p, loss = log_p[~endless], log_p[~endless] - log_q[~endless]
        order = np.argsort(loss, kind="stable")
        size = float(np.abs(log_p).max(initial=0.0))
        blur = 2 * error + UNIT * float(np.abs(loss).max(initial=0.0))
        return cls(log_p[order], loss[order], log_rest, log_lost, error + UNIT * (8 + size), blur)

    def log_delta(self, eps: FloatArray) -> Sides:
        r"""Return both sides of the log hockey stick :math:`\sum_y \max(0, P(y) - e^\varepsilon Q(y))` at each eps."""
        falling = self.log_p[::-1].copy(), (self.log_p - self.loss)[::-1].copy()
        size = max(float(np.abs(law[law > -np.inf]).max(initial=0.0)) for law in falling)
        slack = self.slack + UNIT * (16 + 2 * size + self.loss.size)
        # the loss that the kernel reads off the two logarithms is rounded again
        blur = self.blur + 4 * UNIT * size
        order = np.argsort(-eps, kind="stable")
        sides = []
        for outward, rest in ((1, self.log_rest), (-1, float(np.logaddexp(self.log_rest, self.log_lost)))):
            out = np.empty_like(eps)
            out[order] = _tradeoff.log_hockey_stick(*falling, eps[order] + outward * (blur + UNIT * np.abs(eps[order])))
            sides.append(np.logaddexp(out, rest) - outward * (slack + UNIT * (8 + np.abs(np.maximum(out, -1e300)))))
        return Sides(sides[0], np.where(np.isneginf(sides[1]), -np.inf, np.minimum(sides[1], 0.0)))

    def law(self, anchor: float, step: float, *, upper: bool) -> Law:
        """Return the law on the grid that dominates the outcomes, or one that they dominate."""
        snap = 64 * UNIT * max(float(np.abs(self.loss).max(initial=0.0)), abs(anchor))
        nearest = anchor + step * np.round((self.loss - anchor) / step)
        loss = np.where(np.abs(self.loss - nearest) <= snap, nearest, self.loss)
        first, size = _span(loss, anchor, step)
        if size > MOST_LISTED:
            raise TooLongError(
                f"the composition needs {size} points for the losses of one release, more than {MOST_LISTED}: its scale is far "
                "below that of its losses"
            )
        shape = _losses.split if upper else _losses.merge
        log_p = shape(self.log_p, loss, anchor, step, first, size)
        rest = float(np.logaddexp(self.log_rest, self.log_lost)) if upper else self.log_rest
        return Law(anchor, step, first, log_p, rest, self.slack, self.blur + 1.25 * snap + MERGED)


def _span(loss: FloatArray, anchor: float, step: float) -> tuple[int, int]:
    """The first grid index at or below all losses, and how many reach the last from there."""
    if not loss.size:
        return 0, 1
    first = math.floor((loss[0] - anchor) / step)
    while anchor + step * first > loss[0]:
        first -= 1
    last = math.ceil((loss[-1] - anchor) / step)
    while anchor + step * last < loss[-1]:
        last += 1
    return first, last - first + 1
