r"""Cells of the outputs of densities, on which the likelihood ratio of any two inputs is between its values at the cell's two ends.

R_x has the density p_x, for finitely many inputs x. Between two neighbouring breakpoints the log likelihood ratio of any two inputs
is monotone in the output y, so on a cell between them each ratio is between its values at the ends of the cell. The probabilities
of cells are differences of distribution functions.

At the first or last possible output a ratio may be unknown or unbounded. The cell next to this output is divided until its
probability is negligible.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shufflebounds._base import validate as _validate
from shufflebounds._base.limits import TINY
from shufflebounds._base.types import ULP, FloatArray

__all__ = ["Cells", "Densities", "Function", "Tails"]

Function = Callable[[FloatArray, float], FloatArray]
"""A vectorized function of outputs y and one input x."""

Tails = tuple[FloatArray, FloatArray]
"""Probabilities of outputs up to some points and above them, each of shape (inputs, points)."""

LOG_LEAST = math.log(5e-324)
"""Log of the least positive double, -744.4."""

RARER = 5.0
"""Log of the factor by which a division reduces the probability of a cell next to an end. Raised: fewer cells, with a larger range
of likelihood ratios, which are divided again later. Lowered: more rounds."""


@dataclass(frozen=True, eq=False)
class Densities:
    """The functions of the output for finitely many inputs, evaluated and checked.

    Parameters
    ----------
    cdf, pdf : callable
        Distribution function and density.
    sf : callable, optional
        Survival function; None for 1 - cdf.
    inputs : tuple of float
        The inputs.
    accuracy : float
        The relative error of a function value v is at most `accuracy` times 1 + abs(log v).
    """

    cdf: Function
    pdf: Function
    sf: Function | None
    inputs: tuple[float, ...]
    accuracy: float

    def _values(self, name: str, function: Function, y: FloatArray, high: float) -> FloatArray:
        """Return the values for all inputs, shape (inputs, y.size), or raise ValueError if the function returns an invalid one."""
        rows = []
        for x in self.inputs:
            with np.errstate(all="ignore"):
                row = np.asarray(function(y, x), dtype=np.float64)
            if row.shape != y.shape:
                raise ValueError(f"{name}(y, x) has shape {row.shape} for y of shape {y.shape} and x={x:g}: it must be vectorized, "
                                 "with one value for each entry of y")
            bad = ~((row >= 0) & (row <= high))
            if bad.any():
                at, value = (_validate.format_value(float(one[bad][0])) for one in (y, row))
                raise ValueError(f"{name}({at}, {x:g}) is {value}: it must be {'in [0, 1]' if high < math.inf else '>= 0'}")
            rows.append(row)
        return np.array(rows)

    def log_pdf(self, y: FloatArray) -> FloatArray:
        """Return the log densities, shape (inputs, y.size).

        If all densities at an output are 0, or one is infinite, likelihood ratios are undetermined, and the column of this output
        is NaN.
        """
        with np.errstate(divide="ignore"):
            logs = np.log(self._values("pdf", self.pdf, y, math.inf))
        unknown = (logs == -np.inf).all(axis=0) | (logs == np.inf).any(axis=0)
        return np.where(unknown, np.nan, logs)

    def tails(self, y: FloatArray) -> Tails:
        """Return the probabilities of outputs up to y and above y."""
        most = 1 + 2 * self.accuracy
        below = self._values("cdf", self.cdf, y, most)
        return below, np.maximum(1 - below, 0.0) if self.sf is None else self._values("sf", self.sf, y, most)

    def between(self, left: Tails, right: Tails) -> tuple[FloatArray, FloatArray]:
        """Return the probabilities of outputs between two points, given their tails, and bounds of the absolute errors.

        The probability is the difference of the tails below the two points, or of the tails above them, whichever tails are
        smaller. If the median lies between the points, the probability is 1 minus the two outer tails.
        """
        (below, above), (below_right, above_right) = left, right
        lower, upper = below_right <= 0.5, above <= 0.5
        mass = np.where(lower, below_right - below, np.where(upper, above - above_right, 1 - below - above_right))
        both = self.error(below) + self.error(above_right)
        error = np.where(lower, self.error(below_right), np.where(upper, self.error(above), both))
        # Without a survival function, 1 - cdf has the absolute error of cdf.
        middle = ULP + (0.0 if self.sf else self.accuracy)
        error = error + np.where(lower, 0.0, np.where(upper & (self.sf is not None), 0.0, middle))
        return np.maximum(mass, 0.0), error

    def error(self, value: FloatArray) -> FloatArray:
        """Return a bound of the absolute error of a computed probability or density."""
        return np.asarray(self.accuracy * value * (1 + np.abs(np.log(np.maximum(value, TINY)))))


@dataclass(frozen=True, eq=False)
class Cells:
    """Neighbouring cells of the outputs, in increasing order; arrays over inputs have the shape (inputs, cells).

    Parameters
    ----------
    left, right : ndarray, shape (cells,)
        The ends.
    log_left, log_right : ndarray
        Log densities just inside the ends. At each end they may be shifted by the same constant for all inputs. NaN where no
        likelihood ratio is known.
    tails_left, tails_right : Tails
        The tails at the ends.
    piece : ndarray, shape (cells,)
        Index of the last breakpoint at or to the left of the left end of the cell.
    """

    left: FloatArray
    right: FloatArray
    log_left: FloatArray
    log_right: FloatArray
    tails_left: Tails
    tails_right: Tails
    piece: NDArray[np.intp]

    @classmethod
    def pieces(cls, densities: Densities, points: FloatArray, limits: tuple[FloatArray | None, FloatArray | None]) -> Cells:
        """Return one cell for each piece between neighbouring breakpoints.

        `limits` has the log densities at the first and the last point, up to a constant that all inputs share. If an entry is None,
        the densities at this point are evaluated.
        """
        inputs = len(densities.inputs)
        tails = np.zeros((inputs, points.size)), np.zeros((inputs, points.size))
        finite = np.isfinite(points)
        for tail, values in zip(tails, densities.tails(points[finite])):
            tail[:, finite] = values
        tails[0][:, points == np.inf] = tails[1][:, points == -np.inf] = 1.0
        for name, tail, place, word in (("cdf", tails[0], -1, "last"), ("cdf", tails[1], 0, "first")):
            off = np.abs(tail[:, place] - 1)
            if off.max() > 1e-9:
                x, end = densities.inputs[int(off.argmax())], _validate.format_value(float(points[place]))
                raise ValueError(f"{name}({end}, {x:g}) is {1 - tail[:, place][off.argmax()] if place == 0 else off.max():g} "
                                 f"at the {word} of breakpoints: all outputs must lie between the first and the last one")
        inside = [np.full((inputs, points.size - 1), np.nan) for _ in range(2)]
        for logs, ends, toward in ((inside[0], points[:-1], np.inf), (inside[1], points[1:], -np.inf)):
            bounded = np.isfinite(ends)
            logs[:, bounded] = densities.log_pdf(np.nextafter(ends[bounded], toward))
        for logs, limit, place in zip(inside, limits, (0, -1)):
            if limit is not None:
                logs[:, place] = limit
        starts, stops = ((tails[0][:, part], tails[1][:, part]) for part in (slice(None, -1), slice(1, None)))
        return cls(points[:-1], points[1:], inside[0], inside[1], starts, stops, np.arange(points.size - 1))

    def masses(self, densities: Densities) -> tuple[FloatArray, FloatArray]:
        """Return the probabilities of the cells, and bounds of their absolute errors."""
        return densities.between(self.tails_left, self.tails_right)

    @property
    def ranges(self) -> FloatArray:
        """Largest change of a log likelihood ratio over each cell; inf where it is unbounded or unknown."""
        absent = (self.log_left == -np.inf) & (self.log_right == -np.inf)
        with np.errstate(invalid="ignore"):
            change = np.where(absent, 0.0, self.log_right - self.log_left)
        low = np.where(absent, np.inf, change).min(axis=0)
        high = np.where(absent, -np.inf, change).max(axis=0)
        finite = np.isfinite(change).all(axis=0) & (low <= high)
        with np.errstate(invalid="ignore"):
            return np.where(finite, high - low, np.inf)

    def divided(self, densities: Densities, which: NDArray[np.bool_], at: FloatArray) -> Cells:
        """Return the cells, those in `which` divided at the points `at`; raise ValueError if a ratio is not monotone."""
        logs, tails = densities.log_pdf(at), densities.tails(at)
        self._check_monotone(densities, which, at, logs)
        places = np.flatnonzero(which)

        def with_left(old: FloatArray, new: FloatArray) -> FloatArray:
            return np.insert(old, places + 1, new, axis=-1)

        def with_right(old: FloatArray, new: FloatArray) -> FloatArray:
            return np.insert(old, places, new, axis=-1)

        return Cells(with_left(self.left, at), with_right(self.right, at), with_left(self.log_left, logs),
                     with_right(self.log_right, logs), (with_left(self.tails_left[0], tails[0]), with_left(self.tails_left[1],
                     tails[1])), (with_right(self.tails_right[0], tails[0]), with_right(self.tails_right[1], tails[1])),
                     np.insert(self.piece, places, self.piece[places]))

    def _check_monotone(self, densities: Densities, which: NDArray[np.bool_], at: FloatArray, logs: FloatArray) -> None:
        """Raise ValueError if a log likelihood ratio at a point is not between its values at the ends of the cell of this point."""
        left, right = self.log_left[:, which], self.log_right[:, which]
        with np.errstate(invalid="ignore"):
            up, on = logs - left, right - logs
            slack = 4 * (densities.accuracy + ULP) * (1 + (np.abs(logs) + np.abs(left) + np.abs(right)).max(axis=0))
            # The absolute rounding error of a subnormal density is the least positive double.
            slack += 4 * np.exp(LOG_LEAST - np.minimum(np.minimum(logs, left), right)).max(axis=0)
            # The entries [a, b] are the changes of the log ratio of inputs a and b, from the left end of a cell to the point and
            # from the point to the right end.
            first, second = up[:, None] - up[None, :], on[:, None] - on[None, :]
            turns = (first * second < 0) & (np.minimum(np.abs(first), np.abs(second)) > slack)
        if turns.any():
            a, b, place = np.argwhere(turns)[0]
            x, other, y = densities.inputs[a], densities.inputs[b], _validate.format_value(float(at[place]))
            low, high = (_validate.format_value(float(end[which][place])) for end in (self.left, self.right))
            raise ValueError(f"pdf(y, {x:g})/pdf(y, {other:g}) is not monotone for y from {low} to {high}, see y={y}: add to "
                             "breakpoints every output at which the ratio of two inputs turns or jumps")

    @classmethod
    def of(cls, densities: Densities, points: FloatArray, limits: tuple[FloatArray | None, FloatArray | None], count: int,
           log_cut: float) -> Cells:
        """Return about `count` cells with known ratios; the other cells, next to the ends, have probabilities below e^log_cut.

        Cells are divided in decreasing order of probability times squared range of the log ratio.
        """
        cells = cls.pieces(densities, points, limits)
        negligible = math.exp(log_cut)
        while True:
            mass, error = cells.masses(densities)
            probable = (mass + error).max(axis=0)
            ranges = cells.ranges
            middle = _middles(densities, cells, np.isinf(ranges))
            divisible = (cells.left < middle) & (middle < cells.right)
            # A cell next to an end is not divided further if, for every input, its probability is at most twice the error of this
            # probability.
            ends = np.isinf(ranges) & (probable > negligible) & (mass > 2 * error).any(axis=0) & divisible
            inner = np.isfinite(ranges) & divisible
            # Let p be the largest and q the smallest probability of a cell over the inputs, and r the range of the log ratio in the
            # cell. The cell increases the variance of X by about r^2 p + r^2 p^2/q. `costs` gives the same weight to both terms.
            plain = np.where(inner, probable * np.where(inner, ranges, 0.0) ** 2, 0.0)
            skewed = plain * probable / np.where(mass > error, mass, np.inf).min(axis=0)
            costs = plain / max(plain.sum(), TINY) + skewed / max(skewed.sum(), TINY)
            which = ends
            if not ends.any():
                spare = count - int(np.isfinite(ranges).sum())
                if spare <= 0 or not costs.max(initial=0.0) > 0:
                    return cells
                which = costs > costs.max() / 16
                if which.sum() > spare:
                    which = np.zeros(costs.size, dtype=bool)
                    which[np.argsort(-costs)[:spare]] = True
            cells = cells.divided(densities, which, middle[which])


def _middles(densities: Densities, cells: Cells, unknown: NDArray[np.bool_]) -> FloatArray:
    """Return a point in each cell at which to divide it: the middle, or a point nearer to an end at which no ratio is known.

    The point near such an end divides the cell at a fraction e^-RARER of its width. In an unbounded cell, about e^-RARER of the
    probability lies beyond the point.
    """
    finite = np.isfinite(cells.left) & np.isfinite(cells.right)
    with np.errstate(invalid="ignore"):
        width = cells.right - cells.left
        share = np.full(width.size, 0.5)
        absent = (cells.log_left == -np.inf) & (cells.log_right == -np.inf)
        share[unknown & ~(np.isfinite(cells.log_left) | absent).all(axis=0)] = math.exp(-RARER)
        share[unknown & ~(np.isfinite(cells.log_right) | absent).all(axis=0)] = -math.expm1(-RARER)
        middle = np.where(share < 0.6, cells.left + share * width, cells.right - (1 - share) * width)
    for place in np.flatnonzero(~finite).tolist():
        middle[place] = _beyond(densities, float(cells.left[place]), float(cells.right[place]))
    return np.asarray(middle)


def _beyond(densities: Densities, left: float, right: float) -> float:
    """Return a point beyond which about e^-RARER of the probability of an unbounded interval lies, for the input under which it is
    most likely.
    """
    if not math.isfinite(left) and not math.isfinite(right):
        # Any point with positive probability on both sides suffices.
        start, side = 0.0, 1 if densities.tails(np.zeros(1))[1].max() > 0.5 else -1
        if min(tail.max() for tail in densities.tails(np.zeros(1))) > 1e-3:
            return 0.0
    else:
        start, side = (left, 1) if math.isfinite(left) else (right, -1)

    def log_rest(y: float) -> float:
        rest = float(densities.tails(np.array([y]))[side > 0].max())
        return math.log(rest) if rest > 0 else -math.inf

    whole = log_rest(start)
    if whole == -math.inf:
        return math.nan
    step, low = abs(start) or 1.0, 0.0
    high = math.inf
    for _ in range(2100):
        rest = log_rest(start + side * step) - whole
        if -2 * RARER <= rest <= -0.4 * RARER:
            break
        low, high = (step, high) if rest > -RARER else (low, step)
        step = 2 * step if high == math.inf else (0.5 * high if low == 0 else 0.5 * (low + high))
        if (high < math.inf and high - low <= 4 * ULP * high) or not math.isfinite(start + side * step):
            break
    return start + side * step
