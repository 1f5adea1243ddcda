r"""Distributions of X for noise on an interval, for every pair of the target's inputs and every input of another user.

R_x is the distribution of x + noise, x in [0, L], and :math:`X^{ab}_x = (R_a - e^\varepsilon R_b)/R_x` under R_x. Three steps, all
proved in docs/theorems/worst-dataset, reduce a continuum of pairs and inputs to finitely many distributions:

- **Families.** For log-concave noise and x between a and b, the pair (0, L) has a larger X in the convex order. For other x, the
  pairs (a, L) and (L, b) with x = 0 suffice if the noise is self-decomposable, such as Gaussian and Laplace noise. Noise on the
  integers needs all pairs (a, b) with x = 0; other x follow by shifts and reflection.
- **Cells.** On a cell of inputs, R_x is a mixture of a few functions of the outputs, up to a factor or a term of high order in the
  width of the cell. The functions are equal or close to R_x for x at the two ends of the cell.
- **Bins.** The outputs are divided into bins, on which R_a/R_x and R_b/R_x are monotone and have known means. X on a bin is
  replaced by two atoms at the ends of an interval that contains its values, with the same mean.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shufflebounds._base.caches import Kept, cached_property
from shufflebounds._base.limits import CACHED_ANSWERS, COMPUTED_ERROR, LARGEST_EXPONENT, MANY, TINY
from shufflebounds._base.quadrature import log_normal_masses
from shufflebounds._base.scipy_functions import log_ndtr, ndtri_exp
from shufflebounds._base.types import ULP, FloatArray
from shufflebounds._core import _sum_bound
from shufflebounds._engines.datasets.cases import Cases, Cell, DatasetLaws, FiniteCases, LawTable
from shufflebounds._engines.excess.excess_law import ExcessLaw
from shufflebounds._engines.inputs.interval import BLUR

__all__ = [
    "DiscreteGaussianNoise", "GaussianNoise", "GeometricNoise", "IntervalCases", "IntervalNoise", "LaplaceNoise",
    "gaussian_ratio_tail",
    "interval_datasets",
]

_BIN = 0.035
"""Width of a bin of outputs in standard deviations of Gaussian noise. Doubling it adds .001 to log delta."""

_LEVEL = 16.0
"""Truncated masses are e^-16, e^-32, ...: bins are cached for these values. Raised: fewer tables with more bins."""

_GRID = (128, 1.6, 6, 0.25)
"""The cells of inputs have the width L/128 at both ends, and grow by the factor 1.6 up to L/6, but at most to .25 standard
deviations or scales. A cell of width h near the worst input has the effect of about h^2/8 fewer users, relative to n."""

_WIDEST = 0.25
"""The first cells of pairs have a width of at most _WIDEST/L, but at least L/16 and at most L/4, except near the worst pair. L is
in the unit of the noise. Raised: cells are divided more often. Lowered: more cells, and larger tables."""

_FARTHEST = 39.0
"""Outputs farther than this from the interval, in standard deviations, are omitted: their mass is below e^-LARGEST_EXPONENT."""

_NEAR = (0.0, 0.3, 0.94, 0.97, 1.0)
"""Inputs x, relative to L, for which the pairs (L, x) are evaluated first. More values: cells are divided less often."""


_Ratio = Callable[[float], FloatArray]


class Bins(NamedTuple):
    """Bins of outputs: their ends; for noise on the integers also the first output of each bin, and one past the last output."""

    left: FloatArray
    right: FloatArray
    starts: NDArray[np.intp] | None = None


class _Function(NamedTuple):
    """A function f of outputs: in each bin, the mean of f under R_0, and the smallest and the largest value of f, as rows.

    `joined` is a slice of bins of which only the mean of f over all these bins together is known; the means in `values` agree with
    it.
    """

    values: FloatArray
    joined: slice = slice(0, 0)


class IntervalNoise(ABC):
    """Symmetric log-concave noise on inputs in [0, length]; a subclass chooses the unit of inputs and outputs.

    Attributes
    ----------
    length : float
        The length L of the interval of inputs.
    unit : float
        Distance of neighbouring inputs; 0 if all real numbers of the interval are inputs. Noise on all real numbers must be
        self-decomposable: for every alpha in (0, 1), its distribution is that of alpha times the noise plus other independent
        noise.
    order : int
        The error of the bounds of R_x in a cell of inputs of width h is proportional to h^order.
    narrow : float
        Width of the first cell of pairs beside the worst pair, relative to the length. Each further cell is twice as wide. Raised:
        these cells are divided more often. Lowered: more cells.
    """

    length: float
    unit: float
    order: int
    narrow: float

    @property
    def error(self) -> float:
        """Bound of the relative errors of probabilities and of likelihood ratios."""
        return BLUR + 8 * ULP * self.length

    @abstractmethod
    def bins(self, level: int) -> Bins:
        """Return the bins. Outputs of a probability of about e^(-_LEVEL level) beyond each end of the interval may be in no bin."""

    @abstractmethod
    def log_masses(self, bins: Bins, x: float) -> FloatArray:
        """Return the logs of the probabilities of the bins under R_x."""

    @abstractmethod
    def log_ratio(self, first: FloatArray | float, second: float, y: FloatArray) -> FloatArray:
        """Return log(R_first(y)/R_second(y))."""

    def beyond(self, bins: Bins, x: float) -> float:
        """Return an upper bound of the probability, for the input x, of outputs that are in no bin."""
        return 0.0

    @abstractmethod
    def below(self, bins: Bins, low: float, high: float) -> FloatArray | float:
        """Return f for each bin: the distribution R_x for any x in [low, high] is at least f times a mixture of R_low and
        R_high.
        """

    def between(self, bins: Bins, low: float, high: float, ratio: _Ratio, *, upper: bool) -> list[_Function]:
        """Return functions f_0, f_1, ... of outputs whose weighted means bound R_x/R_0 from above, for low <= x <= high.

        R_x is the distribution of the output for the input x. For every x there are weights of sum 1, the same for all outputs,
        such that R_x/R_0 is at most the mean of the f_i with these weights; without `upper`, at least this mean. ``ratio(x)``
        returns the values of R_x/R_0.
        """
        first, last = ratio(low), ratio(high)
        if high - low <= 1.5 * self.unit:
            return [_Function(first)] if low == high else [_Function(first), _Function(last)]
        return self._between(bins, low, high, first, last, upper)

    @abstractmethod
    def _between(self, bins: Bins, low: float, high: float, first: FloatArray, last: FloatArray, upper: bool) -> list[_Function]:
        """Return the result of :meth:`between` for low < high, given the values of R_low/R_0 and R_high/R_0."""


class _Normal(IntervalNoise):
    """Noise whose log density is a multiple of the square of the distance; the unit is the standard deviation sigma."""

    order, narrow = 4, 2.0**-5

    @property
    def error(self) -> float:
        # Inputs and outputs have a relative error of a few ulp. Moving an input by h changes the log likelihood of an output at the
        # distance z by about z h, and z is at most `length` + _FARTHEST.
        return BLUR + 8 * ULP * (self.length + _FARTHEST) ** 2

    def log_ratio(self, first: FloatArray | float, second: float, y: FloatArray) -> FloatArray:
        return np.asarray((first - second) * (y - 0.5 * (first + second)))

    def below(self, bins: Bins, low: float, high: float) -> FloatArray | float:
        if high - low <= 1.5 * self.unit:
            return 1.0
        middle = 0.5 * (low + high)
        farthest = np.maximum(np.abs(bins.left - middle), np.abs(bins.right - middle))
        return np.asarray(np.exp(-(((high - low) * farthest) ** 2) / 8))

    @abstractmethod
    def slopes(self, bins: Bins, x: float, log_unit: FloatArray) -> FloatArray:
        """Return the integral of (y - x) R_x(dy) over each bin, in units of e^log_unit."""

    def _between(self, bins: Bins, low: float, high: float, first: FloatArray, last: FloatArray, upper: bool) -> list[_Function]:
        # As a function of x, f(x) = R_x/R_0 has the derivatives (y - x) f(x) and He_4(y - x) f(x), the first and the fourth one.
        # The cubic Hermite interpolation of f has the Bernstein coefficients f(low), f(low) + w f'(low)/3, f(high) - w f'(high)/3
        # and f(high), w = high - low, and an error of at most w^4/384 times the largest fourth derivative.
        third, sign, log_unit, rows = (high - low) / 3, 1 if upper else -1, self.log_masses(bins, 0.0), []
        for x, step, (mean, _, highest) in ((low, third, first), (high, -third, last)):
            # As a function of y, (1 + step (y - x)) R_x/R_0 is monotone below one output and above it.
            y = np.stack([bins.left, bins.right, np.clip(x - 1 / step - 1 / max(x, TINY), bins.left, bins.right)])
            values = (1 + step * (y - x)) * np.exp(self.log_ratio(x, 0.0, y))
            error = 3 * sign * self.error * (1 + third * np.abs(y - x).max(axis=0)) * highest
            rows.append(np.stack([mean + step * self.slopes(bins, x, log_unit), values.min(axis=0), values.max(axis=0)]) + error)
        lowest, highest = bins.left - high, bins.right - low
        squares = np.maximum(np.maximum(lowest, -highest), 0.0) ** 2, np.maximum(np.abs(lowest), np.abs(highest)) ** 2
        # He_4(z) = v^2 - 6 v + 3 with v = z^2 is convex in v.
        fourth = [v**2 - 6 * v + 3 for v in (*squares, np.clip(3.0, *squares))]
        rest = np.maximum(np.maximum(fourth[0], fourth[1]) if upper else -fourth[2], 0.0)
        rest *= (high - low) ** 4 / 384 * np.exp(self.log_ratio(np.clip(bins.right, low, high), 0.0, bins.right)) * (1 + self.error)
        return [_Function(values + sign * rest) for values in (first, *rows, last)]


@dataclass(frozen=True)
class GaussianNoise(_Normal):
    """Gaussian noise of standard deviation 1."""

    length: float
    unit: float = 0.0

    def bins(self, level: int) -> Bins:
        end = float(-ndtri_exp(-_LEVEL * level)) + 1e-9
        number = math.ceil((self.length + 2 * end) * max(1.0, self.length) / _BIN)
        edges = np.linspace(-end, self.length + end, number + 1)
        return Bins(edges[:-1], edges[1:])

    def log_masses(self, bins: Bins, x: float) -> FloatArray:
        return log_normal_masses(np.append(bins.left, bins.right[-1]), x, 1.0)

    def slopes(self, bins: Bins, x: float, log_unit: FloatArray) -> FloatArray:
        left, right = bins.left - x, bins.right - x
        fall = -np.expm1(-0.5 * (right - left) * (right + left))
        return np.asarray(np.exp(-0.5 * left**2 - log_unit) * fall / math.sqrt(2 * math.pi))

    def beyond(self, bins: Bins, x: float) -> float:
        return float(np.exp(log_ndtr(np.array([bins.left[0] - x, x - bins.right[-1]]))).sum()) * (1 + COMPUTED_ERROR)


@dataclass(frozen=True)
class DiscreteGaussianNoise(_Normal):
    """Discrete Gaussian noise: outputs and inputs are multiples of `unit` = 1/sigma, and the largest mass is e^-log_total."""

    length: float
    unit: float
    log_total: float

    def bins(self, level: int) -> Bins:
        last = math.ceil(math.sqrt(2 * _LEVEL * level) / self.unit)
        return _grouped(-last, round(self.length / self.unit) + last, self.unit)

    def log_masses(self, bins: Bins, x: float) -> FloatArray:
        assert bins.starts is not None
        logs = -0.5 * (np.arange(bins.starts[0], bins.starts[-1]) * self.unit - x) ** 2 - self.log_total
        return np.asarray(np.logaddexp.reduceat(logs, bins.starts[:-1] - bins.starts[0]))

    def slopes(self, bins: Bins, x: float, log_unit: FloatArray) -> FloatArray:
        assert bins.starts is not None
        z = np.arange(bins.starts[0], bins.starts[-1]) * self.unit - x
        parts = z * np.exp(-0.5 * z**2 - self.log_total - np.repeat(log_unit, np.diff(bins.starts)))
        return np.asarray(np.add.reduceat(parts, bins.starts[:-1] - bins.starts[0]))

    def beyond(self, bins: Bins, x: float) -> float:
        assert bins.starts is not None
        # From one output to the next, masses decrease at least by a factor q = e^(-unit * distance). So their sum is at most the
        # first mass divided by 1 - q.
        total = 0.0
        for distance in (x - self.unit * (bins.starts[0] - 1), self.unit * bins.starts[-1] - x):
            total += math.exp(-0.5 * distance**2 - self.log_total) / -math.expm1(-self.unit * distance)
        return total * (1 + COMPUTED_ERROR)


def gaussian_ratio_tail(length: float, t: FloatArray) -> FloatArray:
    """Return, for Gaussian noise and inputs a, j at most `length` apart, a bound of the probability under R_a of R_a > t R_j."""
    return np.asarray(np.exp(log_ndtr(0.5 * length - np.log(t) / length)) * (1 + COMPUTED_ERROR))


class _Exponential(IntervalNoise):
    """Laplace or geometric noise: the log density is a constant minus the distance of input and output, in units of the scale."""

    order, narrow = 2, 2.0**-8

    def log_ratio(self, first: FloatArray | float, second: float, y: FloatArray) -> FloatArray:
        return np.asarray(np.abs(y - second) - np.abs(y - first))

    def below(self, bins: Bins, low: float, high: float) -> FloatArray | float:
        return 1.0 if high - low <= 1.5 * self.unit else (1 - 4 * ULP) / math.cosh(0.5 * (high - low))

    def _between(self, bins: Bins, low: float, high: float, first: FloatArray, last: FloatArray, upper: bool) -> list[_Function]:
        # For low < x < high, R_x is a weighted mean of four distributions: R_low, R_high, and (1 - kappa) R_end + kappa B for both
        # ends. B is a distribution on the outputs in the cell. How B is spread over these outputs depends on x, so only its total
        # over the cell is used.
        kappa = 2 * math.sinh(0.25 * (high - low)) ** 2 / math.cosh(0.5 * (high - low))
        (inside,), more = np.nonzero(self._inside(bins, low, high)), np.zeros_like(first)
        part = slice(int(inside[0]), int(inside[-1]) + 1)
        more[0, part] = kappa / np.exp(self.log_masses(bins, 0.0)[part]).sum()
        more[2, part] = 2 * math.tanh(0.25 * (high - low)) * (1 + 8 * ULP) * np.exp(np.minimum(bins.right[part], high))
        return [_Function(first), _Function(last), *(_Function((1 - kappa) * values + more, part) for values in (first, last))]

    @abstractmethod
    def _inside(self, bins: Bins, low: float, high: float) -> NDArray[np.bool_]:
        """Return which bins have outputs between low and high."""


@dataclass(frozen=True)
class LaplaceNoise(_Exponential):
    """Laplace noise of scale 1. The first and the last bin are the outputs outside of [0, length], where ratios are constant."""

    length: float
    unit: float = 0.0

    def bins(self, level: int) -> Bins:
        edges = np.linspace(0.0, self.length, min(max(math.ceil(100 * self.length), 64), 512) + 1)
        return Bins(np.insert(edges, 0, 0.0), np.append(edges, self.length))

    def log_masses(self, bins: Bins, x: float) -> FloatArray:
        # The part of a bin below x is from `left` to `below`, the part above x from `above` to `right`.
        left, right = np.minimum(bins.left, x), np.maximum(bins.right, x)
        above, below = np.maximum(bins.left, x), np.minimum(bins.right, x)
        out = 0.5 * (np.exp(below - x) * -np.expm1(np.minimum(left - below, 0.0))
                     + np.exp(x - above) * -np.expm1(np.minimum(above - right, 0.0)))
        out[0], out[-1] = 0.5 * math.exp(-x), 0.5 * math.exp(x - self.length)
        return np.asarray(np.log(out))

    def _inside(self, bins: Bins, low: float, high: float) -> NDArray[np.bool_]:
        return np.asarray((bins.right > low) & (bins.left < high))


@dataclass(frozen=True)
class GeometricNoise(_Exponential):
    """Two-sided geometric noise: inputs are 0, unit, ..., length, and outputs outside count as the nearest end."""

    length: float
    unit: float

    def bins(self, level: int) -> Bins:
        return _grouped(0, round(self.length / self.unit), self.unit)

    def log_masses(self, bins: Bins, x: float) -> FloatArray:
        assert bins.starts is not None
        share = np.full(int(bins.starts[-1]), -math.expm1(-self.unit))
        share[[0, -1]] = 1.0
        logs = np.log(share / (1 + math.exp(-self.unit))) - np.abs(np.arange(share.size) * self.unit - x)
        return np.asarray(np.logaddexp.reduceat(logs, bins.starts[:-1]))

    def _inside(self, bins: Bins, low: float, high: float) -> NDArray[np.bool_]:
        assert bins.starts is not None
        return np.asarray((bins.starts[1:] > round(low / self.unit) + 1) & (bins.starts[:-1] < round(high / self.unit)))


def _joined(table: FloatArray, first: slice, second: slice) -> FloatArray:
    """Return a row of `_Bounds` with the bins of each slice merged into one bin; slices that overlap are merged into one."""
    one, other = sorted([(first.start, first.stop), (second.start, second.stop)])
    for start, stop in [(one[0], max(one[1], other[1]))] if other[0] < one[1] else [one, other]:
        if stop > start + 1:
            part = table[:, start:stop]
            weights, joined = part[0] / part[0].sum(), part[:, 0].copy()
            for row in (1, 4):
                joined[row : row + 3] = weights @ part[row], part[row + 1].min(), part[row + 2].max()
            joined[0] = part[0].sum()
            table[:, start:stop], table[0, start + 1 : stop] = joined[:, None], 0.0
            table[0, start] = joined[0]
    return table


def _grouped(first: int, last: int, unit: float) -> Bins:
    """Return at most MANY bins of neighbouring outputs first * unit, ..., last * unit."""
    starts = np.append(np.arange(first, last + 1, -(-(last - first + 1) // MANY)), last + 1)
    return Bins(starts[:-1] * unit, (starts[1:] - 1) * unit, starts)


class _Bounds(NamedTuple):
    """Bounds of a = R_a/R_x and b = R_b/R_x for several triples of inputs (a, b, x); X = a - e^eps b follows for every eps.

    `tables` has for each triple and bin: the mass under R_x; the mean, smallest and largest value of a; the same of b. Its shape is
    (7, triples, bins). `beyond` bounds the contribution of omitted outputs to delta.
    """

    tables: FloatArray
    beyond: float

    @classmethod
    def of(cls, rows: Sequence[_Bounds]) -> _Bounds:
        """Return the bounds of several distributions in one table."""
        return cls(np.concatenate([row.tables for row in rows], axis=1), max(row.beyond for row in rows))


@dataclass(frozen=True, eq=False)
class IntervalCases(Cases):
    """The distributions of X for noise on an interval.

    `inputs` are the values that users may have, increasing from 0 to the length of the interval; they are empty if all are
    possible. Each user sends a message with probability `share`.
    """

    noise: IntervalNoise
    inputs: tuple[float, ...] = ()
    share: float = 1.0

    @property
    def blur(self) -> float:
        return self.noise.error

    def thinned(self, share: float) -> IntervalCases:
        return replace(self, share=self.share * share)

    @cached_property
    def _known(self) -> Kept[tuple[object, ...], Any]:
        """A cache of bins, masses, and bounds of a and b, which do not depend on eps.

        A search at one eps evaluates up to several hundred cells, with an entry of 0.1 MB for each, and the search at the next eps
        evaluates them in the same order. A smaller cache would drop each entry before its next use.
        """
        return Kept(8 * CACHED_ANSWERS)

    def laws(self, eps: float, log_cut: float) -> LawTable:
        # Most often the worst case is the pair (0, L) with an end of the interval as the other user's input.
        level = self._level(log_cut)
        return self._atoms(self._known.of(("ends", level), lambda: self._of_inputs(level, ends=True)), eps)

    def cells(self) -> Sequence[Cell]:
        length, unit = self.noise.length, self.noise.unit
        if len(self.inputs) == 2 or (unit and length <= 1.5 * unit):
            return ()
        inputs = _Cell(self, "inputs", partial(self._of_inputs, ends=False), lambda loss: ())
        if unit:
            return self._pairs((0.0, length), (0.0, length)), inputs
        # All cells are evaluated together, and separately only if their bound is too large.
        edges, width = [0.0], length * self.noise.narrow
        while edges[-1] + width < length:
            edges.append(edges[-1] + width)
            width = min(2 * width, length / 4, max(length / 16, _WIDEST / length))
        end, parts = (length, length), [*pairwise([*edges, length])]
        return self._together([*(self._pairs(part, end) for part in parts), *(self._pairs(end, part) for part in parts), inputs]),

    def _together(self, cells: Sequence[_Cell]) -> _Cell:
        """Return one cell that bounds several cells together; its two halves bound the two halves of the list."""
        middle = len(cells) // 2
        return cells[0] if len(cells) == 1 else _Cell(
            self, tuple(cell.name for cell in cells), lambda level: _Bounds.of([cell.bounds(level) for cell in cells]),
            lambda loss: [self._together(cells[:middle]), self._together(cells[middle:])])

    def _pairs(self, first: tuple[float, float], second: tuple[float, float]) -> _Cell:
        """Return the cell with the target's inputs a in the interval `first` and b in `second`, and the other user's input 0."""
        return _Cell(self, (first, second), partial(self._of_pairs, first, second), partial(self._divided, first, second))

    def _of_pairs(self, first: tuple[float, float], second: tuple[float, float], level: int) -> _Bounds:
        bins, ratio = self._bins(level), partial(self._ratio, level, base=0.0)
        above, below = (self.noise.between(bins, *one, ratio, upper=upper) for one, upper in ((first, True), (second, False)))
        mass = np.exp(self._log_masses(level, 0.0))[None]
        rows = [_joined(np.concatenate([mass, a.values, b.values]), a.joined, b.joined) for a in above for b in below]
        return _Bounds(np.stack(rows, axis=1), sum(self.noise.beyond(bins, a) for a in set(first)))

    def _divided(self, first: tuple[float, float], second: tuple[float, float], loss: float) -> Sequence[Cell]:
        wide = max((0, 1), key=lambda i: (first, second)[i][1] - (first, second)[i][0])
        low, high = (first, second)[wide]
        if high - low <= max(1.5 * self.noise.unit, (8 * loss) ** (1 / self.noise.order)):
            return ()
        middle = self._rounded(0.5 * (low + high))
        return [self._pairs(*((part, second) if wide == 0 else (first, part))) for part in ((low, middle), (middle, high))]

    @staticmethod
    def _level(log_cut: float) -> int:
        return math.ceil(min(max(-log_cut, 1.0), LARGEST_EXPONENT) / _LEVEL)

    def _bins(self, level: int) -> Bins:
        bins: Bins = self._known.of(("bins", level), lambda: self.noise.bins(level))
        return bins

    def _log_masses(self, level: int, x: float) -> FloatArray:
        masses: FloatArray = self._known.of((level, x), lambda: self.noise.log_masses(self._bins(level), x))
        return masses

    def _of_inputs(self, level: int, *, ends: bool) -> _Bounds:
        """Return bounds for the target's inputs 0 and L. The other user's input is 0 or L if `ends`, otherwise between 0 and L."""
        bins, places, length = self._bins(level), self.inputs or self._grid, self.noise.length
        factors = [1.0 if self.inputs else self.noise.below(bins, low, high) for low, high in pairwise(places)]
        smaller = [np.minimum(one, other) for one, other in zip([factors[0], *factors], [*factors, factors[-1]])]
        chosen = [i for i in range(len(places)) if (0 < i < len(places) - 1) != ends]
        rows = [self._bounds(level, 0.0, length, places[i], weight=smaller[i]) for i in chosen]
        if ends and self.cells():
            # If X has no large values, the target's inputs with the largest bound may be nearly equal.
            rows += [self._bounds(level, length, self._rounded(length * part), 0.0) for part in _NEAR]
        return _Bounds.of(rows)

    @cached_property
    def _grid(self) -> tuple[float, ...]:
        """The ends of the cells of other users' inputs."""
        parts, growth, most, widest = _GRID
        length = self.noise.length
        half, width = [0.0], length / parts
        while half[-1] + width < 0.5 * length:
            half.append(half[-1] + width)
            width = min(width * growth, length / most, widest)
        half.append(0.5 * length)
        return tuple(sorted({self._rounded(x) for x in (*half, *(length - x for x in half))}))

    def _rounded(self, x: float) -> float:
        """Return the possible input that is nearest to x."""
        unit = self.noise.unit
        return round(x / unit) * unit if unit else x

    def _ratio(self, level: int, x: float, base: float) -> FloatArray:
        """Return, as rows, the mean under R_base of the likelihood ratio R_x/R_base in each bin, its smallest and its largest
        value.
        """
        bins = self._bins(level)
        ends = [np.exp(self.noise.log_ratio(x, base, y)) for y in (bins.left, bins.right)]
        mean = np.exp(self._log_masses(level, x) - self._log_masses(level, base))
        return np.stack([mean, np.minimum(*ends), np.maximum(*ends)])

    def _bounds(self, level: int, a: float, b: float, x: float, weight: FloatArray | float = 1.0) -> _Bounds:
        """Return bounds of a = R_a/(w R_x) and b = R_b/(w R_x) under w R_x, with w = `weight`."""
        mass = np.exp(self._log_masses(level, x)) * weight
        rows = [self._ratio(level, place, x) * (1.0 / weight) for place in (a, b)]
        return _Bounds(np.concatenate([mass[None], *rows])[:, None], self.noise.beyond(self._bins(level), a))

    def _atoms(self, bounds: _Bounds, eps: float) -> LawTable:
        """Return two atoms for each bin and distribution. X is increased by the errors of masses and ratios, at most `blur`."""
        up, down, cut = 1 + self.blur, math.exp(eps) * (1 - self.blur), bounds.beyond * self.share
        # "No message" is an output that is equally likely for every input.
        atoms = _sum_bound.bin_atoms(bounds.tables, up, down, self.share, -math.expm1(eps))
        return LawTable(*atoms, math.log(cut) if cut > 0 else -math.inf)


@dataclass(frozen=True, eq=False)
class _Cell(Cell):
    """A cell. `name` identifies it, ``computed(level)`` returns bounds of a and b, and ``parts(loss)`` its halves."""

    cases: IntervalCases
    name: object
    computed: Callable[[int], _Bounds]
    parts: Callable[[float], Sequence[Cell]]

    def bounds(self, level: int) -> _Bounds:
        bounds: _Bounds = self.cases._known.of((level, self.name), lambda: self.computed(level))
        return bounds

    def laws(self, eps: float, log_cut: float) -> LawTable:
        return self.cases._atoms(self.bounds(self.cases._level(log_cut)), eps)

    def halves(self, loss: float) -> Sequence[Cell]:
        return self.parts(loss)


def interval_datasets(noise: IntervalNoise, blanket: ExcessLaw, local_eps: float, ratio_tail: Callable[[FloatArray], FloatArray],
                      inputs: Sequence[float] = (), log_left_out: float = -math.inf, cut_norm: float = 0.0) -> DatasetLaws | None:
    """Return the `DatasetLaws` for the upper bound over all datasets, or None if the privacy blanket has almost no mass.

    Parameters
    ----------
    blanket : ExcessLaw
        The distribution of (R_0/m, R_L/m) under m = min(R_0, R_L), where L is the length of the interval. X of the pair (0, L) is
        proven to be the largest in the convex order.
    local_eps, ratio_tail, cut_norm
        As for `DatasetLaws`.
    inputs : sequence of float
        The values that users may have, as distances from the first one; empty if all are possible.
    log_left_out : float
        Log of the mass of m at outputs that are not among the atoms of `blanket`.
    """
    blankets = FiniteCases.of([blanket], noise.error)
    mass = math.fsum(np.exp(blankets.log_mass))
    if mass < COMPUTED_ERROR:
        return None
    log_g = math.log(mass)
    # By Lemma R of docs/theorems/worst-dataset, all R_x are in a ball with the squared radius |R_0 - R_L|^2/4 in L^2(1/m), and |R_0
    # - R_L|^2 is the second moment of X at eps = 0.
    distance = 0.25 * (blankets.variance + cut_norm) * (1 + COMPUTED_ERROR)
    ratios = FiniteCases(blankets.log_mass, np.zeros_like(blankets.log_a), blankets.log_a - 2 * BLUR, blankets.starts,
                          ((np.array([log_left_out]), np.array([-np.inf])),), noise.error)
    cases = IntervalCases(noise, tuple(float(x) for x in inputs))
    return DatasetLaws(blankets, cases, ratios, log_g, distance, local_eps, ratio_tail, cut_norm)
