"""A randomizer whose outputs are real numbers, given by the distribution functions and densities of its inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import permutations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shufflebounds._base import validate as _validate
from shufflebounds._base.caches import cached_property, kept
from shufflebounds._base.docs import with_passages
from shufflebounds._base.evidence import Evidence, Status
from shufflebounds._base.limits import BLOCK, FIRST_TAIL, LARGEST_EXPONENT, SAFE_EXPONENT
from shufflebounds._base.types import ULP, FloatArray, IntervalArray
from shufflebounds._engines.datasets.cases import DatasetLaws
from shufflebounds._engines.datasets.matrix import MatrixDatasets
from shufflebounds._engines.excess.excess_law import PairLaws
from shufflebounds._engines.inputs.density_cells import Cells, Densities, Tails
from shufflebounds._engines.inputs.density_rows import lower_rows, upper_rows
from shufflebounds._engines.inputs.interval import checked, matrix_laws
from shufflebounds._losses.release import SINGLE, DominatingPairInfo, Sampling
from shufflebounds.mechanisms._base import LocalRandomizer
from shufflebounds.profile import DominatingPair

__all__ = ["DensityRandomizer"]

Function = Callable[[Any, Any], Any]

MOST_INPUTS = 16
"""Largest number of inputs. All ordered pairs are evaluated, and the upper bound has an output for each cell and input."""

CLOSE = 2.0**-26
"""The search for the output at which a log likelihood ratio crosses eps ends at this distance of the ratio from eps. The distance
times the probability of the outputs within it is added to the upper bound. Raised: wider bounds. Lowered: longer run time."""

MOST_LOST = 2.0**-28
"""Largest truncated probability at which the bound over all datasets is computed. The truncated probability is added to delta and
to the errors of likelihood ratios. Raised: the bound is also computed in cases in which it is not below the other bounds.
Lowered: the bound is computed in fewer cases."""

LOG_SMALLEST = math.log(np.finfo(float).smallest_normal)
"""Log of the least double with full precision, -708.4."""

SEARCHED = 600
"""Number of cells times number of inputs in the bound over all datasets. Raised: longer run time. Lowered: less tight bounds."""


@with_passages
@dataclass(frozen=True, repr=False)
class DensityRandomizer(LocalRandomizer):
    r"""A randomizer of finitely many inputs whose output is a real number, given by vectorized functions.

    .. math:: \delta(\varepsilon) = \max_{x \ne x'} \int \bigl(p_x(y) - e^\varepsilon p_{x'}(y)\bigr)_+\, dy

    Parameters
    ----------
    cdf, pdf : callable
        ``cdf(y, x)`` and ``pdf(y, x)`` of an array of outputs y and one input x: the cumulative distribution function and the
        density of the output of input x, as arrays of the shape of y.
    inputs : sequence of float
        The users' possible values x, 2 to 16 different numbers.
    breakpoints : sequence of float
        Increasing outputs; the first and the last are the smallest and the largest output, and may be infinite. **Between
        neighbouring breakpoints the log likelihood ratio ln(pdf(y, x)/pdf(y, x')) of any two inputs must be continuous and monotone
        in y**: list every output at which a ratio has an extremum or a jump. The condition is checked at a few hundred outputs,
        which does not prove it.
    sf : callable, optional
        ``sf(y, x)``, the survival function 1 - cdf with a small relative error. Without it, probabilities at the upper end of the
        outputs are computed as 1 - cdf, and the upper bound of delta stays above about 1e-11.
    limits : (array_like or None, array_like or None)
        For the first and for the last breakpoint: one number for each input, the limit of ln pdf(y, x), up to an additive constant
        that is the same for all inputs. The limits are needed if pdf(y, x) is 0 there or the breakpoint is infinite. Without them
        (None) the bounds assume that an output near this breakpoint may reveal the input, and there is no pure budget.
    accuracy : float
        A number in [1e-16, 1e-6] that bounds the errors of `cdf`, `pdf` and `sf`: a value v may have an error of
        accuracy v (1 + abs(ln v)).

    Notes
    -----
    Neighbours: the input is replaced by any other. The functions must be exact up to `accuracy`; discretizing a density by hand
    gives a lower bound only.

    **Local guarantee.** Between breakpoints the outputs with :math:`p_x > e^\varepsilon p_{x'}` form an interval. The ends of these
    intervals are found by bisection, and delta is computed from `cdf` and `sf` at the ends, with an error of about `accuracy` times
    the probabilities.

    **After a shuffle.** The outputs are divided into cells, whose probabilities are differences of `cdf` or `sf`. On each cell
    a likelihood ratio lies between its values at the two ends.

    - For lower bounds the analyst sees only the cell of the output, which is a post-processing.
    - For upper bounds a cell of a randomizer of k inputs is replaced by k outputs, which reveal more: the original output can be
      drawn from them. For two inputs the likelihood ratios of these outputs are the values at the two ends, for more inputs the
      corners of a simplex that contains all ratios in the cell.

    So the upper and the lower bound are valid, and so is the bound over all datasets (docs/theorems/worst-dataset). The gap
    between the two decreases with the square of the width of the cells.

    No estimate is defined. :meth:`randomize` inverts `cdf` by bisection.

    Examples
    --------
    A value 0 or 1 tilts the density on [0, 1]: p_0(y) = 3/2 - y, p_1(y) = 1/2 + y.

    >>> from shufflebounds.mechanisms import DensityRandomizer
    >>> tilted = DensityRandomizer(
    ...     cdf=lambda y, x: y + (x - 0.5) * y * (y - 1), pdf=lambda y, x: 1 + (x - 0.5) * (2 * y - 1),
    ...     inputs=(0, 1), breakpoints=(0, 1))
    >>> print(f"{tilted.delta(0.0):.12f} {tilted.epsilon(0.0):.12f}")
    0.250000000000 1.098612288668
    >>> central = tilted.shuffled(1000)
    >>> print(f"{central.epsilon(1e-6, bound='lower'):.4f} {central.epsilon(1e-6):.4f}")
    0.0713 0.0714
    """

    cdf: Function
    pdf: Function
    inputs: tuple[float, ...]
    breakpoints: tuple[float, ...]
    sf: Function | None = field(default=None, kw_only=True)
    limits: tuple[Any, Any] = field(default=(None, None), kw_only=True)
    accuracy: float = field(default=16 * ULP, kw_only=True)

    _assumed: ClassVar[tuple[Evidence, ...]] = (
        Evidence("the functions are exact up to `accuracy`, and likelihood ratios are monotone between breakpoints, as given",
                 Status.OPEN, "shufflebounds.mechanisms.DensityRandomizer"),)
    """Claims about the functions, on which the local bounds and the bounds after a shuffle rest."""
    theorem: ClassVar[str] = "exact for the densities: the largest hockey-stick divergence of two inputs"
    neighbours: ClassVar[str] = "replace the user's input; the analyst sees the output"

    def __post_init__(self) -> None:
        for name in ("cdf", "pdf", "sf"):
            function = getattr(self, name)
            if not callable(function) and not (name == "sf" and function is None):
                raise TypeError(f"{name}={_validate.short_repr(function)} must be a function of an array y and one input x, such "
                                "as lambda y, x: scipy.stats.norm.cdf(y, x)")
        inputs = _validate.real_array("inputs", self.inputs)
        if inputs.ndim != 1 or not 2 <= inputs.size <= MOST_INPUTS or np.unique(inputs).size < inputs.size:
            raise ValueError(f"inputs={_validate.short_repr(self.inputs)} must hold 2 to {MOST_INPUTS} different numbers")
        points = _validate.floats("breakpoints", self.breakpoints, "a number, or -inf or inf at the ends")
        if points.ndim != 1 or points.size < 2 or not (np.diff(points) > 0).all() or not np.isfinite(points[1:-1]).all():
            raise ValueError(f"breakpoints={_validate.short_repr(self.breakpoints)} must hold at least two increasing numbers, the "
                             "first and the last of which are the ends of the outputs")
        _validate.real_field(self, "accuracy", 1e-16, 1e-6)
        object.__setattr__(self, "inputs", tuple(inputs.tolist()))
        object.__setattr__(self, "breakpoints", tuple(points.tolist()))
        object.__setattr__(self, "limits", self._checked_limits())
        # The cells for the local guarantee are made in the constructor, so that invalid functions raise ValueError here.
        self._check_between()

    def _checked_limits(self) -> tuple[tuple[float, ...] | None, tuple[float, ...] | None]:
        """Return the limits of the log densities at both ends."""
        given = self.limits
        if not isinstance(given, tuple | list) or len(given) != 2:
            raise ValueError(f"limits={_validate.short_repr(given)} must be a pair: the limits at the first breakpoint and at the "
                             "last, None where they are not given")
        limits: list[tuple[float, ...] | None] = []
        for limit in given:
            if limit is None:
                limits.append(None)
                continue
            logs = _validate.real_array("limits", limit)
            if logs.shape != (len(self.inputs),):
                raise ValueError(f"limits has an entry of shape {logs.shape}: it must be ({len(self.inputs)},), one for each input")
            limits.append(tuple(logs.tolist()))
        return limits[0], limits[1]

    def __repr__(self) -> str:
        return f"DensityRandomizer(<{len(self.inputs)} inputs, {len(self.breakpoints)} breakpoints>)"

    @cached_property
    def _densities(self) -> Densities:
        return Densities(self.cdf, self.pdf, self.sf, self.inputs, self.accuracy)

    def _cells(self, count: int, log_cut: float) -> Cells:
        """Return about `count` cells, and further cells of probability at most e^log_cut at ends where a ratio is unknown."""
        left, right = (None if limit is None else np.array(limit) for limit in self.limits)
        return Cells.of(self._densities, np.array(self.breakpoints), (left, right), count, log_cut)

    @cached_property
    def _coarse(self) -> Cells:
        """Cells for the local guarantee; within a cell the crossing of a ratio and eps is found by bisection."""
        return self._cells(32 * (len(self.breakpoints) - 1), -SAFE_EXPONENT)

    def _check_between(self) -> None:
        """Evaluate the likelihood ratios at random outputs in the cells, which raises ValueError where one is not monotone."""
        cells = self._coarse
        with np.errstate(invalid="ignore"):
            inside = np.isfinite(cells.left) & np.isfinite(cells.right) & (cells.right - cells.left > 4 * ULP * np.abs(cells.left))
        at = cells.left[inside] + np.random.default_rng(0).random(int(inside.sum())) * (cells.right - cells.left)[inside]
        cells.divided(self._densities, inside, at)
        upper_rows(self._densities, cells)

    def claims(self, eps: float, *, upper: bool) -> Iterable[Evidence]:
        yield from super().claims(eps, upper=upper)
        yield from self._assumed

    def pairs(self) -> tuple[DominatingPair, ...]:
        return tuple(_DensityPair(self, i, j) for i, j in permutations(range(len(self.inputs)), 2))

    @property
    def _inputs(self) -> int:
        return len(self.inputs)

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(f"{value:g}" for value in self.inputs)

    @cached_property
    def _places(self) -> list[tuple[int, int]]:
        return list(permutations(range(len(self.inputs)), 2))

    @kept(4)
    def _laws(self, cells: int, log_cut: float) -> tuple[PairLaws, ...]:
        # For the upper bound every pair (cell, input) is one output of a dominating randomizer.
        whole = self._cells(max(1, cells // len(self.inputs)), log_cut)
        rows, revealed, error = upper_rows(self._densities, whole)
        above = np.concatenate([rows, np.diag(revealed)[:, revealed > 0]], axis=1)
        below, miss = lower_rows(self._densities, whole)
        over = matrix_laws(above, self._places, names=self._names, error=error)
        under = matrix_laws(below, self._places, names=self._names, error=miss)
        return tuple(PairLaws(one.inputs, one.upper, partial(getattr, other, "lower"), one.symmetric, one.attained)
                     for one, other in zip(over, under))

    def excess_laws(self, cells: int = 800, log_cut: float = FIRST_TAIL) -> tuple[PairLaws, ...]:
        return self._laws(*checked(cells, log_cut))

    @cached_property
    def _datasets(self) -> MatrixDatasets | None:
        rows, revealed, error = upper_rows(self._densities, self._cells(SEARCHED // len(self.inputs), FIRST_TAIL))
        # Outputs that some input cannot produce are omitted. Dividing by the probability of the remaining outputs changes the
        # likelihood ratios, so the relative error increases.
        certain = rows.min(axis=0) > 0
        revealed = revealed + rows[:, ~certain].sum(axis=1)
        lost = float(revealed.max())
        if lost > MOST_LOST:
            return None
        datasets = MatrixDatasets(rows[:, certain] / (1 - revealed)[:, None], error + 2 * lost, lost)
        return datasets if datasets.offered else None

    def dataset_laws(self) -> DatasetLaws | None:
        return self._datasets.laws() if self._datasets is not None else None

    def randomize(self, values: ArrayLike, rng: Any = None) -> FloatArray:
        """Return one output for each input, in the order of the users, who may be divided among several calls.

        Parameters
        ----------
        values : array_like of float, shape (users,)
            The users' inputs, each one of `inputs`.
        {rng}

        Returns
        -------
        ndarray, shape (users,)

        {raises: If an entry of `values` is none of the inputs, or `rng` is no source of randomness.}
        """
        given = np.empty(0) if np.shape(values) == (0,) else _validate.real_array("values", values)
        if given.ndim != 1:
            raise ValueError(f"values has shape {given.shape}: it must be one-dimensional, one input for each user")
        _validate.every_entry("values", given, np.isin(given, self.inputs), f"one of inputs={_validate.short_repr(self.inputs)}")
        level = _validate.generator(rng).random(given.size)
        out = np.empty(given.size)
        for x in np.unique(given):
            out[given == x] = self._quantiles(float(x), level[given == x])
        return out

    def _quantiles(self, x: float, level: FloatArray) -> FloatArray:
        """Return the outputs of one input up to which the distribution function is at most the level, by bisection."""
        edges = np.append(self._coarse.left, self._coarse.right[-1])
        below = np.append(self._coarse.tails_left[0], self._coarse.tails_right[0][:, -1:], axis=1)[self.inputs.index(x)]
        place = np.clip(np.searchsorted(below, level, side="right") - 1, 0, edges.size - 2)
        largest = 1e300
        low, high = np.maximum(edges[place], -largest), np.minimum(edges[place + 1], largest)
        for _ in range(1100):
            middle = low + (high - low) / 2
            if not ((low < middle) & (middle < high)).any():
                break
            over = np.asarray(self.cdf(middle, x)) > level
            low, high = np.where(over, low, middle), np.where(over, middle, high)
        return np.asarray(high)

    @property
    def local_eps(self) -> float:
        """The pure budget of the randomizer in nats, rounded up; inf if a likelihood ratio is unbounded or unknown."""
        return self._pure_epsilon()


@dataclass(frozen=True, eq=False)
class _DensityPair(DominatingPair):
    """The densities of two inputs of a randomizer, given by their indices."""

    randomizer: DensityRandomizer
    first: int
    second: int

    def reverse(self) -> _DensityPair:
        return _DensityPair(self.randomizer, self.second, self.first)

    def describe(self) -> DominatingPairInfo:
        densities = _TwoDensities(self.randomizer, self.first, self.second)
        # A value of delta takes several calls of the density, tens of microseconds each.
        return DominatingPairInfo(densities.log_delta, densities.pure, sampling=Sampling(effort=5e-5), attained=SINGLE)


class _TwoDensities:
    """The densities of two inputs in the cells of a randomizer."""

    def __init__(self, randomizer: DensityRandomizer, first: int, second: int) -> None:
        self.randomizer, self.first, self.second = randomizer, first, second

    @cached_property
    def _ratios(self) -> tuple[FloatArray, FloatArray]:
        """The log likelihood ratios at the left and the right ends of the cells; NaN if unknown, or if both densities are 0."""
        cells = self.randomizer._coarse
        with np.errstate(invalid="ignore"):
            left, right = (logs[self.first] - logs[self.second] for logs in (cells.log_left, cells.log_right))
        return left, right

    @cached_property
    def _slack(self) -> FloatArray:
        """Bounds of the errors of the log likelihood ratios in the cells."""
        cells, both = self.randomizer._coarse, [self.first, self.second]
        size = np.abs(np.concatenate([cells.log_left[both], cells.log_right[both]]))
        largest = np.where(np.isfinite(size), size, 0.0).max(axis=0)
        return np.asarray((2 * self.randomizer.accuracy + 4 * ULP) * (1 + largest))

    @cached_property
    def pure(self) -> float:
        """Upper bound of the log likelihood ratios, inf if there is none."""
        cells = self.randomizer._coarse
        both = np.stack([cells.log_left[[self.first, self.second]], cells.log_right[[self.first, self.second]]])
        mass = cells.masses(self.randomizer._densities)[0]
        # Cells in which the first input has probability 0, and density 0 at both ends, contribute nothing.
        seen = ~((both[:, 0] == -np.inf).all(axis=0) & (mass[self.first] == 0))
        ratios = np.stack(self._ratios)[:, seen]
        if np.isnan(ratios).any() or (ratios == np.inf).any():
            return math.inf
        return float((ratios + self._slack[seen]).max(initial=-np.inf))

    def log_delta(self, eps: FloatArray) -> IntervalArray:
        """Return bounds of the log divergence of the pair at each eps."""
        parts = [self._some_log_delta(eps[i : i + BLOCK // 64]) for i in range(0, eps.size, BLOCK // 64)]
        return IntervalArray(*(np.concatenate(side) for side in zip(*parts))) if parts else IntervalArray(eps, eps)

    def _some_log_delta(self, eps: FloatArray) -> IntervalArray:
        randomizer, cells = self.randomizer, self.randomizer._coarse
        mass, miss = cells.masses(randomizer._densities)
        (p, q), (p_miss, q_miss) = (table[[self.first, self.second]] for table in (mass, miss))
        # Above LARGEST_EXPONENT e^eps would overflow. delta decreases in eps, so the upper bound at LARGEST_EXPONENT is valid.
        near = np.minimum(eps, LARGEST_EXPONENT)
        ratio = np.exp(near)
        # Outputs are counted if the computed log ratio is at least eps - slack, so that none of a ratio above eps is omitted. Where
        # the computed log ratio is below eps + slack, p - e^eps q is at least -4 slack p, which is added to the upper bound.
        slack = self._slack
        left, right = (one[None, :] - near[:, None] + slack for one in self._ratios)
        unknown = np.isnan(self._ratios[0] + self._ratios[1]) & (p + p_miss > 0)
        full, crossed = (left >= 0) & (right >= 0), ((left > 0) & (right < 0)) | ((left < 0) & (right > 0))
        gain = full @ p - ratio * (full @ q)
        error = full @ p_miss + ratio * (full @ q_miss) + 4 * ULP * (full @ p + ratio * (full @ q))
        low, high = gain - error, gain + error + (full & (np.minimum(left, right) < 2 * slack)) @ (4 * slack * (p + p_miss))
        # If the ratio in a cell is unknown, the lower bound treats the cell as a single output, and the upper bound is the
        # probability of the cell under the first input.
        alone = np.maximum((p - p_miss)[unknown] - ratio[:, None] * (q + q_miss)[unknown], 0.0)
        low, high = low + alone.sum(axis=1), high + (p + p_miss)[unknown].sum()
        which, cell = np.nonzero(crossed)
        if which.size:
            below, above = self._parts(near[which], cell, left[which, cell], right[which, cell])
            np.add.at(low, which, below)
            np.add.at(high, which, above)
        with np.errstate(divide="ignore"):
            lower, upper = np.log(np.maximum(low, 0.0)), np.log(np.maximum(high, 0.0))
        beyond = eps >= self.pure
        return IntervalArray(np.where(beyond | (near < eps), -np.inf, lower), np.where(beyond, -np.inf, np.minimum(upper, 0.0)))

    def _parts(self, eps: FloatArray, cell: NDArray[np.intp], left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return bounds of the integral of the positive part of p - e^eps q over cells in which the ratio crosses e^eps.

        `left` and `right` are the values of ln(p/q) - eps + slack at the ends of the cells; one of them is positive.
        """
        densities, cells, both = self.randomizer._densities, self.randomizer._coarse, [self.first, self.second]
        slack = self._slack[cell]
        points, excess = self._crossings(eps - slack, cell, left, right)
        falls = left > 0
        inner, outer = (np.where(falls, points[i], points[1 - i]) for i in (0, 1))
        edges = [_pair(side, both, cell) for side in (cells.tails_left, cells.tails_right)]

        def tails_at(y: FloatArray) -> Tails:
            # At an infinite end the functions need not be defined.
            finite = np.isfinite(y)
            inside, ends = _pair(densities.tails(np.where(finite, y, 0.0)), both), [np.where(y < 0, *pair) for pair in zip(*edges)]
            return np.where(finite, inside[0], ends[0]), np.where(finite, inside[1], ends[1])

        tails = [tails_at(y) for y in (inner, outer)]

        def between(one: Tails, other: Tails) -> tuple[FloatArray, FloatArray]:
            left, right = ((np.where(falls, a, b), np.where(falls, c, d)) for (a, c), (b, d) in ((one, other), (other, one)))
            return densities.between(left, right)

        start = tuple(np.where(falls, a, b) for a, b in zip(*edges))
        mass, miss = between((start[0], start[1]), tails[0])
        rest, rest_miss = between(*tails)
        ratio = np.exp(eps)
        gain, error = mass[0] - ratio * mass[1], miss[0] + ratio * miss[1] + 4 * ULP * (mass[0] + ratio * mass[1])
        # Between the two outputs of `_crossings`, p - e^eps q is at most p (1 - e^-excess) <= p min(excess, 1). Before the inner
        # output it is at least -4 slack p.
        above = error + 4 * slack * mass[0] + (rest[0] + rest_miss[0]) * np.minimum(excess, 1.0)
        return np.maximum(gain - error, 0.0), np.maximum(gain, 0.0) + above

    def _crossings(self, eps: FloatArray, cell: NDArray[np.intp], left: FloatArray,
                   right: FloatArray) -> tuple[tuple[FloatArray, FloatArray], FloatArray]:
        """Return for each cell two outputs between which ln(p/q) crosses eps, and the larger distance of ln(p/q) from eps at them.

        The steps are those of the Illinois method, or of bisection if ln(p/q) is not finite at an end. An output at which both
        densities underflow is none of the two; ln(p/q) may cross eps on either side of it.
        """
        densities, cells = self.randomizer._densities, self.randomizer._coarse
        start, end = cells.left[cell], cells.right[cell]
        # A cell without end is mapped to the interval [0, 1).
        unit = 1 + np.where(np.isfinite(start), np.abs(start), np.where(np.isfinite(end), np.abs(end), 0.0))

        def output(t: FloatArray) -> FloatArray:
            with np.errstate(divide="ignore", invalid="ignore"):
                endless = np.where(np.isfinite(start), start + unit * t / (1 - t), end - unit * (1 - t) / t)
                return np.where(np.isfinite(end - start), start + t * (end - start), endless)

        low, high = np.zeros(cell.size), np.ones(cell.size)
        # Densities underflow near an infinite end; `floor` and `roof` are the last outputs at which they were found to do so.
        floor, roof = low, high
        upward = np.isfinite(start) & ~np.isfinite(end)
        weights, values = [left.copy(), right.copy()], [left.copy(), right.copy()]
        last = np.zeros(cell.size)
        for step in range(100):
            apart = np.maximum(np.abs(values[0]), np.abs(values[1]))
            first, final = np.maximum(low, floor), np.minimum(high, roof)
            middle = first + (final - first) / 2
            if not ((apart > CLOSE) & (first < middle) & (middle < final)).any():
                break
            with np.errstate(invalid="ignore", over="ignore"):
                chosen = low + (high - low) * (weights[0] / (weights[0] - weights[1]))
            at = np.where(np.isfinite(chosen) & (first < chosen) & (chosen < final) & (step % 4 < 3), chosen, middle)
            logs = densities.log_pdf(output(at))
            with np.errstate(invalid="ignore"):
                above = logs[self.first] - logs[self.second] - eps
            # Logarithms of subnormal densities are inaccurate.
            subnormal = ((logs > -np.inf) & (logs < LOG_SMALLEST))[[self.first, self.second]].any(axis=0)
            known = ~(np.isnan(above) | subnormal)
            floor, roof = np.where(~known & ~upward, at, floor), np.where(~known & upward, at, roof)
            before = known & ((above > 0) == (left > 0))
            for side, moved in ((0, before), (1, known & ~before)):
                # The value at an end that did not move in two steps is halved.
                still = known & ~moved & (last == (1 if side == 0 else -1))
                weights[side] = np.where(moved, above, np.where(still, weights[side] / 2, weights[side]))
                values[side] = np.where(moved, above, values[side])
            low, high = np.where(before, at, low), np.where(known & ~before, at, high)
            last = np.where(known, np.where(before, -1.0, 1.0), last)
        return (output(low), output(high)), np.maximum(np.abs(values[0]), np.abs(values[1]))


def _pair(tails: Tails, both: list[int], cell: Any = slice(None)) -> Tails:
    """Return the tails of two inputs at some cells."""
    return tails[0][both][:, cell], tails[1][both][:, cell]
