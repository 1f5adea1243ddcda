"""Delta of random allocation from the stop-loss transform E max(0, S - K): S is a sum of t likelihood ratios, K any level.

Each record enters one of t steps at random. The likelihood ratio of a step is dP/dQ at its output, where P and Q are the
distributions of the output with and without the record. In S, all outputs have the distribution Q.

Small ratios are placed on a grid, and the distribution of their sum is computed by FFT. Ratios above the grid (large ratios) matter
for noise with sigma below 1. For each number j of large ratios, the distribution of their sum is stored in cells of a logarithmic
grid. For each cell, the stop-loss transform of the small ratios is evaluated at K minus the sum of the large ratios.

For the upper bound every ratio is replaced by one that is larger in the convex order, for the lower bound by a smaller one. The sum
of independent ratios then becomes larger or smaller in the convex order, too, and max(0, S - K) is convex in S.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shufflebounds._base.caches import Kept, cached_property, kept
from shufflebounds._base.convex_order import grid_spread, largest_charge, merged, shares, to_nodes
from shufflebounds._base.limits import CACHED_ANSWERS, NEGLIGIBLE_ROUGHLY, ON_GRID, SAFE_EXPONENT
from shufflebounds._base.types import ULP, FloatArray, IntervalArray, consistent
from shufflebounds._base.validate import InfeasibleError
from shufflebounds._core._binomial import binom_logsf
from shufflebounds._engines.allocation.grid_sums import GridLaw, StopLoss, contracted
from shufflebounds._engines.allocation.ratios import Ratios
from shufflebounds._losses.tilted_sum import LEAST_TILT

__all__ = ["Allocation"]

POINTS = 2**15
"""Largest number of points of the grid of small ratios. Raised: tighter bounds in more time."""

FINE = 0.02
"""Spacing of the grid of small ratios, in standard deviations of one ratio, for at most 10**6 steps of training (see `_fine`).
Lowered: tighter bounds in more time."""

CUT = -75.0
"""Log of the mass under P of the largest ratios, which the upper bound counts as infinite if they exceed e^FITTING. Sums of j large
ratios are evaluated only if the probability of j or more large ratios is at least e^CUT. Raised: a larger gap at small delta.
Lowered: wider cells, as their number is fixed, and more sums."""

FITTING = 2.0
"""Loss of one step up to which ratios are never counted as infinite, unless their mass is below e^LOWER_CUT. Raised: smaller deltas
have tight bounds, but at 3 the bounds of tiny deltas become useless for 2 steps and sigma = 8, because an exponential tilt that
moves the mean of the sum moves most mass to the few largest ratios. Lowered: less tight upper bounds below e^CUT."""

LOWER_CUT = -300.0
"""Log of the mass under Q of the smallest ratios, which are merged into one point. Raised: less tight bounds for delta below this
mass. Lowered: longer grids."""

LARGEST_LOSS = 353.0
"""Largest loss of one step of noise. Raised: squares of ratios overflow (above e^709.8). Lowered: fewer scales of noise are
accepted."""

BIG_CELLS, MOST_BIG = 300, 12
"""Number of cells of the logarithmic grid for sums of large ratios, and the smallest number j of large ratios whose sum is not
evaluated. Instead, the probability of j or more large ratios is added to the upper bound. Raised: tighter bounds in more time."""

ROUNDING = 512 * ULP
"""Relative error of an atom, or of the mean of a cell, for which the lower bound is charged. Lowered: the charge would be below the
error of quotients of masses. Raised: less tight bounds for ratios of one step that are all within about 1e-8 of 1."""

NARROW = 1e-8
"""Length of the range of losses below which no sum is evaluated. Raised: noise of a smaller scale has only the bound of one step.
Lowered: the errors of the mean ratios of cells, about 1e-12, would not be far below the step of the grid."""


class _Grid(NamedTuple):
    """The grid of small ratios: its first point, step and size."""

    anchor: float
    step: float
    size: int

    @property
    def top(self) -> float:
        return self.anchor + self.step * (self.size - 1)

    @property
    def tolerance(self) -> float:
        """Largest distance from a grid point at which a ratio counts as that point, which covers the rounding of ratios."""
        return max(ON_GRID * self.step, ROUNDING * self.top)


@dataclass(frozen=True, eq=False)
class _Side:
    """A distribution of a ratio for the upper or for the lower bound: small ratios on a grid, large ones as a list of atoms."""

    small: GridLaw
    big: tuple[FloatArray, FloatArray]  # Values of the large likelihood ratios, and their masses under Q.


class Allocation:
    """Hockey-stick divergences, in both directions, between Q^t (no step uses the record) and the average (a random step does).

    The divergences are computed from `law`, the distribution of the likelihood ratio dP/dQ of one step.
    """

    def __init__(self, law: Ratios, steps: int) -> None:
        self.law, self.steps = law, steps
        self._sums: Kept[tuple[bool, int], StopLoss] = Kept(2 * MOST_BIG)
        self._lows: Kept[int, tuple[StopLoss, StopLoss]] = Kept(CACHED_ANSWERS)

    @cached_property
    def loss_range(self) -> tuple[float, float]:
        """The range of losses ln(dP/dQ): below it ratios are merged (LOWER_CUT), above it they count as infinite (CUT, FITTING)."""
        low, high = self.law.low, self.law.high
        if not math.isfinite(high):
            low = -_first(lambda size: self.law.tail_q(-size)[0] <= LOWER_CUT)
            high = max(self._rare(CUT), min(self._rare(LOWER_CUT), FITTING))
        if high > LARGEST_LOSS:
            raise InfeasibleError(f"random allocation: likelihood ratios of one step exceed e^{LARGEST_LOSS:.0f}, so that one step "
                                  "nearly identifies the record; noise must be larger")
        return low, high

    def _rare(self, log_mass: float) -> float:
        """Return a loss such that the larger losses have less than this log mass under P."""
        return _first(lambda size: self.law.tail_p(size)[1] < log_mass)

    def _unknown(self, eps: FloatArray) -> IntervalArray | None:
        """Return the bounds -inf and 0 of each log delta if the ratios are too close to 1, or None."""
        low, high = self.loss_range
        return IntervalArray(np.full(eps.size, -np.inf), np.zeros(eps.size)) if high - low < NARROW else None

    @cached_property
    def _rough(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The upper ends, the masses under Q and the mean ratios of 8000 cells, from which the grids are chosen."""
        low, high = self.loss_range
        edges = np.linspace(low - 1e-9 * (high - low), high, 8001)
        q, p, _ = self.law.cells(edges)
        value = np.exp(edges[1:])
        return value, q, np.where(q > 0, p / np.where(q > 0, q, 1.0), value)

    @property
    def _fine(self) -> float:
        """The grid spacing in standard deviations of one ratio: FINE for at most 10**6 steps of training.

        For more steps the spacing grows like the square root of their number, as the standard deviation of the sum does.
        """
        return FINE * max(1.0, math.sqrt(self.steps) / 1000)

    @cached_property
    def _grid(self) -> _Grid:
        """The grid of small ratios for a removed record, and for an added record at small eps (`_regimes`)."""
        value, q, ratio = self._rough
        # Ratios close to 1 have a small variance, so moments about 1 are used.
        away = ratio - 1
        mass, first, second = (np.cumsum(x) for x in (q, q * away, q * away * away))
        deviation = np.sqrt(np.maximum(second - first * first / np.maximum(mass, 1e-300), 0.0))
        fine = self._fine
        fits = value - math.exp(self.loss_range[0]) <= POINTS * fine * deviation
        top = value[int(np.flatnonzero(fits)[-1])] if fits.any() else value[-1]
        return self._laid(top, fine * float(deviation[np.searchsorted(value, top)]))

    def _laid(self, top: float, step: float) -> _Grid:
        """Return a grid from the smallest ratio to `top`; it starts at 0 if the smallest ratio is below 100 steps of the grid.

        The step of the grid is close to `step`, or larger if the grid would otherwise have more than about POINTS points.
        """
        anchor = math.exp(self.loss_range[0])
        step = max(step, (top - anchor) / POINTS)
        if self.law.loss.size:
            # The step is adjusted so that both ends, which may be atoms, are grid points.
            size = max(1, math.ceil((top - anchor) / step))
            return _Grid(anchor, (top - anchor) / size, size + 1)
        anchor = 0.0 if anchor < 100 * step else anchor
        return _Grid(anchor, step, math.ceil((top - anchor) / step) + 1)

    @cached_property
    def _regimes(self) -> tuple[tuple[float, _Grid], ...]:
        """The grids for an added record, each with the smallest eps for which it is used.

        For large eps only sums far below their mean matter. The ratios in these sums are small, so the grid has a smaller range and
        a finer spacing. Each of up to 24 grids belongs to one exponential tilt, twice the tilt of the grid before. A grid ends
        where the tilted probability that any of the t ratios lies above its end is at most 1e-16.
        """
        value, q, ratio = self._rough
        out = [(-math.inf, self._grid)]
        theta = LEAST_TILT / (self._grid.step / FINE)
        while theta * value[0] < 1 and len(out) < 24:
            weight = q * np.exp(-theta * ratio)
            total = float(weight.sum())
            mean = float(weight @ ratio) / total
            deviation = math.sqrt(float(weight @ (ratio - mean) ** 2) / total)
            beyond = self.steps * np.cumsum(weight[::-1])[::-1] / total
            top = float(value[min(int(np.count_nonzero(beyond > 1e-16)), value.size - 1)])
            if not mean > 0 or not top < self._grid.top or self.law.loss.size:
                break
            out.append((-math.log(mean), self._laid(top, self._fine * deviation)))
            theta *= 2
        return tuple(out)

    def _lower_anchor(self, grid: _Grid) -> float:
        """Return the first grid point for the lower bound: the mean of all ratios below the second point, by which they are
        replaced. If their mass under Q is below e^LOWER_CUT, the lower bound omits them instead (see `_lower`).
        """
        anchor, step, _ = grid
        if self.law.loss.size:
            return anchor
        # Bisection for the log of the second grid point, which is one step above the mean of the ratios below it. The first lower
        # end is log(step): as ratios are positive, this point is at most one step above that mean. The interval has a length of
        # about 7 for a grid that starts at 0, so after 56 bisections its ends are neighbouring doubles.
        low, high = math.log(step) - 1e-12, math.log(anchor + 1000 * step)
        for _ in range(56):
            middle = (low + high) / 2
            q, p, _ = self.law.cells(np.array([-1e3, middle]))
            near = q[0] < math.exp(LOWER_CUT) or math.exp(middle) - float(p[0] / q[0]) < step
            low, high = (middle, high) if near else (low, middle)
        return math.exp(low) - step

    def _cells(self, points: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return for the cells between points the masses of the density under Q, the mean ratios, and an error bound.

        The first cell starts at 0. Atoms are not included. The third array bounds the relative errors of the masses under Q and
        under P.
        """
        with np.errstate(divide="ignore"):
            edges = np.log(points)
        edges[0] = -1e3
        smooth = Ratios(np.empty(0), np.empty(0), np.empty(0), self.law.tail_q, self.law.tail_p, self.law.low, self.law.high)
        q, p, mass_error = smooth.cells(edges)
        with np.errstate(divide="ignore", invalid="ignore"):
            means = np.where(q > 0, p / q, points[:-1])
        return q, np.clip(means, points[:-1], points[1:]), mass_error

    @cached_property
    def upper(self) -> _Side:
        """A distribution that is larger in the convex order than the distribution of a ratio, for the upper bound."""
        return self._upper(self._grid, mirrored=False)

    @cached_property
    def lower(self) -> _Side:
        """A distribution that is smaller in the increasing convex order than the distribution of a ratio, for the lower bound."""
        return self._lower(self._grid, mirrored=False)

    def _upper(self, grid: _Grid, *, mirrored: bool) -> _Side:
        """Return a distribution that is larger in the increasing convex order than the distribution of the ratio.

        If `mirrored`, the distribution of the negative of the result is larger in this order than that of the negative of the
        ratio.
        """
        anchor, step, size = grid
        points = anchor + step * np.arange(size, dtype=np.float64)
        q, means, mass_error = self._cells(points)
        mass = q * (1 + mass_error)
        error = (-4 if mirrored else 4) * mass_error * points[1:]
        out = to_nodes(mass, mass * shares(means + error, points[:-1], points[1:]))
        place = np.exp(self.law.loss)
        inside = place <= points[-1] + grid.tolerance
        places = (np.minimum(place[inside], points[-1]) - anchor) / step
        atoms = grid_spread(places, self.law.q[inside] * (1 + 64 * ULP), 0, size)
        return _Side(GridLaw(anchor, step, out + atoms), self._big(float(points[-1]), grid.tolerance, upper=True))

    def _lower(self, grid: _Grid, *, mirrored: bool) -> _Side:
        """Return a distribution that is smaller in the increasing convex order than the distribution of the ratio.

        If `mirrored`, the result is smaller in the increasing convex order than the distribution of the negative of the ratio.
        """
        _, step, size = grid
        anchor = self._lower_anchor(grid)
        points = anchor + step * np.arange(size, dtype=np.float64)
        q, means, mass_error = self._cells(points)
        mass = q * (1 - mass_error)
        # The mean of the first cell may be below the first grid point if the mass is so small (`_lower_anchor`).
        mass[0] = mass[0] if mass[0] >= math.exp(LOWER_CUT) else 0.0
        means = np.clip(means * (1 + (4 if mirrored else -4) * mass_error), points[:-1], points[1:])
        value = np.exp(self.law.loss)
        inside = value <= points[-1] + grid.tolerance
        # Only the two ends of the range of ratios are atoms, and they are grid points (`_laid`).
        near = np.round((value[inside] - anchor) / step)
        assert (np.abs(value[inside] - points[near.astype(np.intp)]) <= grid.tolerance).all()
        atoms = np.bincount(near.astype(np.intp), weights=self.law.q[inside] * (1 - 64 * ULP), minlength=size)
        if mirrored:
            law = contracted(-float(points[-1]), step, mass[::-1], -means[::-1])
            return _Side(GridLaw(law.anchor, step, law.mass + atoms[::-1]), (np.empty(0), np.empty(0)))
        law = contracted(anchor, step, mass, means)
        return _Side(GridLaw(anchor, step, law.mass + atoms), self._big(float(points[-1]), grid.tolerance, upper=False))

    def _big(self, start: float, tolerance: float, *, upper: bool) -> tuple[FloatArray, FloatArray]:
        """Return values and masses under Q of the ratios above `start`, the end of the grid."""
        high = self.loss_range[1]
        first = math.log(start)
        # An atom at the end of the range is a grid point already if it is within the tolerance of the last one.
        if not high > first * (1 + 1e-12) or (self.law.loss.size and math.exp(high) <= start + tolerance):
            return np.empty(0), np.empty(0)
        edges = np.linspace(first, high, BIG_CELLS + 1)
        q, p, mass_error = self.law.cells(edges)
        held = q > 0
        return _condensed(np.exp(edges), q, np.where(held, p / np.where(held, q, 1.0), 0.0), mass_error, upper)

    def _sum(self, times: int, *, upper: bool) -> StopLoss:
        """Return the stop-loss transform of the sum of `times` small ratios, as an upper or as a lower bound."""
        side = self.upper if upper else self.lower
        return self._sums.of((upper, times), lambda: StopLoss(side.small, times, upper=upper))

    def _low_sums(self, regime: int) -> tuple[StopLoss, StopLoss]:
        """Return a lower and an upper bound of the stop-loss transform of minus the sum of the ratios of all steps.

        The grid is the entry of `_regimes` with index `regime`.
        """
        grid = self._regimes[regime][1]
        side = self._upper(grid, mirrored=True)
        above = side.small.reversed()
        # The upper bound counts a large ratio as the last grid point, and the lower bound omits it.
        above.mass[0] += float(side.big[1].sum())
        below = self._lower(grid, mirrored=True).small
        return StopLoss(below, self.steps, upper=False), StopLoss(above, self.steps, upper=True)

    def remove(self, eps: FloatArray) -> IntervalArray:
        """Return bounds, at each eps >= 0, of the log divergence of all outputs with the record from those without it."""
        if (trivial := self._unknown(eps)) is not None:
            return trivial
        # At most 256 levels are evaluated at once, which limits the memory.
        parts = np.split(eps, range(256, eps.size, 256))
        lower, upper = (np.concatenate([self._remove(part, upper=upper) for part in parts]) for upper in (False, True))
        return IntervalArray(lower, upper)

    def _remove(self, eps: FloatArray, *, upper: bool) -> FloatArray:
        t, sign = self.steps, 1 if upper else -1
        levels = t * np.exp(np.minimum(eps, SAFE_EXPONENT)) * (1 - sign * 8 * ULP)
        if not upper:
            levels = levels + t * self._grid.tolerance
        # `alone` approximates log delta: the log probability that one ratio alone makes the sum large enough. Contributions to
        # delta below e^(alone - NEGLIGIBLE_ROUGHLY) need not be accurate.
        alone = self.law.log_p_above(np.log1p(t * np.expm1(np.minimum(eps, SAFE_EXPONENT))))
        floor = np.maximum(alone, CUT) + math.log(t) - NEGLIGIBLE_ROUGHLY
        # For each eps and number j of large ratios, about BIG_CELLS levels are evaluated, down to `floor`. The sum of t small
        # ratios is evaluated at one level for each eps only, which takes little time. So the floor `lowest` of this sum is lower
        # than `floor`. `cut` is the log mass under P of the ratios above the range.
        cut = self.law.log_p_above(np.array([self.loss_range[1]]))
        lowest = np.maximum(alone, cut + CUT) + math.log(t) - NEGLIGIBLE_ROUGHLY
        out = self._sum(t, upper=upper).log_stop_loss(levels, floor=lowest)
        rest = np.full(eps.size, -np.inf)
        side = self.upper if upper else self.lower
        if side.big[1].size:
            # `several` is the log of a bound of the contribution of sums with at least one large ratio. Its first term, `above`, is
            # for a large ratio in the step that uses the record, and its second term for a large ratio in another step.
            above = float(self.law.log_p_above(np.log(side.small.values[-1:]))[0])
            several = float(np.logaddexp(above, _more(t, float(side.big[1].sum()), 1)))
            # If the contribution of sums with large ratios is below e^-8 delta, the upper bound adds its bound e^`several`, and the
            # lower bound omits it.
            few = several < out - math.log(t) - 8
            rest[few] = several
            if not few.all():
                out[~few], rest[~few] = self._with_large(levels[~few], floor[~few], out[~few], above, upper=upper)
        out = out - math.log(t)
        if upper:
            # Let A be the sum of the ratios above the range, and B that of the ratios in the range. At a level K, E(A + B - K)+ is
            # at most E(A) + E(B - K)+. `cut` is the log of E(A)/t, which is the mass of a ratio above the range under P. The
            # computed E(B - K)+ lacks the event that a ratio is above the range. Its probability under Q is at most t e^CUT,
            # because such a ratio has less mass under Q than under P. Under this event B has fewer terms and a smaller E(B - K)+.
            # So a fraction of at most t e^CUT < 1e-25 is missing, and the 64 ulp added below cover it.
            out = np.logaddexp(out, np.logaddexp(cut, rest))
        # The logarithms of both sums are rounded to an ulp of their size.
        return np.minimum(out + sign * ULP * (64 + 4 * np.abs(np.maximum(out, -1e4))), 0.0)

    @kept(2)
    def _large_sums(self, *, upper: bool) -> tuple[list[tuple[int, FloatArray, FloatArray]], float, float]:
        """Return a list of (j, values, log masses) of the sums of j < k large ratios, and two log probabilities.

        k is the smallest number of large ratios that is not enumerated. The masses include the factor C(t, j) for t steps. The two
        probabilities are that of at least k and that of at least k - 1 large ratios among the t - 1 steps that do not use the
        record.
        """
        t, sign = self.steps, 1 if upper else -1
        values, mass = (self.upper if upper else self.lower).big
        chance = float(mass.sum())
        held, weight = np.zeros(1), np.ones(1)
        listed: list[tuple[int, FloatArray, FloatArray]] = []
        for j in range(1, min(MOST_BIG, t) + 1):
            if _more(t, chance, j) < CUT or j == MOST_BIG:
                return listed, _more(t, chance, j), _more(t, chance, j - 1)
            sums, both = np.add.outer(held, values).ravel(), np.multiply.outer(weight, mass).ravel()
            edges = np.exp(np.linspace(math.log(sums.min()) - 1e-12, math.log(sums.max()) + 1e-12, BIG_CELLS + 1))
            # Sums in one cell are merged to their mean (`_condensed`).
            means, q = merged(sums, both, edges)
            held, weight = _condensed(edges, q, means, np.full(q.size, largest_charge(sums, edges)), upper)
            ways = math.lgamma(t + 1) - math.lgamma(j + 1) - math.lgamma(t - j + 1)
            ways += sign * 1e-13 * (1 + math.lgamma(t + 1))
            with np.errstate(divide="ignore"):
                listed.append((j, held, ways + np.log(weight)))
        return listed, -math.inf, -math.inf

    def _with_large(
        self, levels: FloatArray, floor: FloatArray, out: FloatArray, above: float, *, upper: bool
    ) -> tuple[FloatArray, float]:
        """Return the log stop-loss transform including sums with large ratios, and the log probability of too many large ratios.

        Too many means more large ratios than :meth:`_large_sums` enumerates; the second result is an upper bound of its log
        probability with the record. `above` is the log probability under P of a large ratio, `out` the log stop-loss transform of
        sums without large ratios.
        """
        t = self.steps
        large, rest, last = self._large_sums(upper=upper)
        rest = float(np.logaddexp(rest, above + last))
        total = np.zeros(levels.size)
        # Several numbers j of large ratios may use the same sum of small ratios (`_shared`). All levels of this sum are evaluated
        # together, so that they share Fourier transforms.
        for count, group in itertools.groupby(large, lambda part: self._shared(part[0], upper=upper)):
            small = self._sum(count, upper=upper) if count else None
            low, value, slope = small.line if small else (0.0, 0.0, 1.0)
            parts = []
            for j, held, log_mass in group:
                shift, more = self._moved(count - (t - j), upper=upper)
                mass = np.exp(log_mass + more)
                # `held` has the sums of large ratios in increasing order. Subtracting held[first] or a larger sum moves the level
                # to at most `low`, where the stop-loss transform is a line in the level. So two suffix sums, of the masses and of
                # the masses times distances, replace a sum over these entries.
                edge = levels + shift - low
                first = np.searchsorted(held, edge)
                tail = np.append(np.cumsum(mass[::-1])[::-1], 0.0)
                moment = np.append(np.cumsum((np.diff(held) * tail[1:-1])[::-1])[::-1], [0.0, 0.0])
                away = np.append(held, held[-1])[first] - edge
                total += value * tail[first] + slope * (moment[first] + away * tail[first])
                if small is None:
                    continue
                # Subtracting an entry of `held` before the index `start` leaves a level so high that the stop-loss transform is
                # below e^limit. The upper bound uses e^limit there, and the lower bound 0.
                limit = floor - float(np.max(log_mass + more))
                start = np.minimum(np.searchsorted(held, levels + shift - small.reach(limit)), first)
                total += (tail[0] - tail[start]) * np.exp(limit) if upper else 0.0
                owner = np.repeat(np.arange(levels.size), first - start)
                cell = np.arange(owner.size) + np.repeat(first - np.cumsum(first - start), first - start)
                parts.append((owner, levels[owner] + shift - held[cell], (log_mass + more)[cell]))
            if small:
                owner, left, logs = (np.concatenate(part) for part in zip(*parts))
                inner = small.log_stop_loss(left, floor=floor[owner] - logs)
                total += np.bincount(owner, np.exp(inner + logs), minlength=levels.size)
        # `error` covers the rounding of two logs of at most 800 in absolute value, and the rounding of sums of positive terms.
        error = ULP * (1000 + sum(held.size for _, held, _ in large))
        with np.errstate(divide="ignore"):
            return np.logaddexp(out, np.log(total) + (error if upper else -error)), rest

    def _shared(self, large: int, *, upper: bool) -> int:
        """Return the number of small ratios whose sum, corrected by `_moved`, replaces the sum of t - `large` small ratios.

        So several values of `large` share one sum. The replacement changes the variance of the sum by at most a tenth of the change
        due to the grid.
        """
        most = max(1, math.floor(self.steps * self._fine**2 / 60))
        return max(self.steps - (large // most if upper else -(-large // most)) * most, 0)

    def _moved(self, more: int, *, upper: bool) -> tuple[float, float]:
        r"""Return (shift of the level, log of a factor) with which the stop-loss transform for n ratios bounds that for n - `more`.

        Let m be the mean and q the total mass of a small ratio. By Jensen's inequality the stop-loss transform of the sum of n - r
        ratios at the level K is at most :math:`q^{-r} \mathrm{E} (S_n - K - r m)_+`, and for r < 0 it is at least this number.
        """
        if not more:
            return 0.0, 0.0
        law, slack = (self.upper if upper else self.lower).small, abs(more) * 1e-12
        total = float(law.mass.sum())
        return more * float(law.mass @ law.values) / total * (1 - 1e-12), -more * math.log(total) + (slack if upper else -slack)

    def add(self, eps: FloatArray) -> IntervalArray:
        """Return bounds, at each eps >= 0, of the log divergence of all outputs without the record from those with it."""
        if (trivial := self._unknown(eps)) is not None:
            return trivial
        lower, upper = np.empty_like(eps), np.empty_like(eps)
        regimes = np.searchsorted([start for start, _ in self._regimes], eps) - 1
        for regime in np.unique(regimes).tolist():
            held = regimes == regime
            lower[held], upper[held] = self._add(eps[held], regime)
        return IntervalArray(lower, upper)

    def _add(self, eps: FloatArray, regime: int) -> IntervalArray:
        t = self.steps
        weight = eps - math.log(t)
        shift = t * self._regimes[regime][1].tolerance
        levels, floor = -t * np.exp(-np.minimum(eps, SAFE_EXPONENT)), LOWER_CUT + math.log(t) - NEGLIGIBLE_ROUGHLY
        below, above = self._lows.of(regime, partial(self._low_sums, regime))
        upper = above.log_stop_loss(levels * (1 + 8 * ULP), floor=floor)
        lower = below.log_stop_loss(levels * (1 - 8 * ULP) + shift, floor=floor)
        lost = LOWER_CUT + 1 + math.log(t) if not math.isfinite(self.law.low) else -math.inf
        error = ULP * (64 + 4 * np.abs(weight))
        # H(Q^t || average) counts only outputs with an average ratio below e^-eps. Then all t ratios are below t e^-eps. So the log
        # of the probability that t independent ratios are all below t e^-eps, `capped`, is an upper bound at every eps.
        capped = t * self.law.log_q_below(math.log(t) - eps + 64 * ULP * (1 + eps))
        high = np.minimum(np.logaddexp(weight + upper + error, lost), capped)
        return consistent(IntervalArray(weight + lower - error, high), "log delta of an added record at eps={!r}", eps)


def _first(beyond: Callable[[FloatArray], NDArray[np.bool_]]) -> float:
    """Return the smallest size for which the condition `beyond` holds, rounded up by less than 1e-4 of it, or inf if there is none.

    Sizes between the smallest loss of noise that the library accepts and SAFE_EXPONENT are tried.
    """
    sizes = np.geomspace(1e-13, SAFE_EXPONENT, 1000)
    for _ in range(2):
        found = beyond(sizes)
        if not found.any():
            return math.inf
        place = int(np.argmax(found))
        sizes = np.linspace(sizes[max(place - 1, 0)], sizes[place], 1000)
    return float(sizes[int(np.argmax(beyond(sizes)))])


def _more(trials: int, chance: float, count: int) -> float:
    """Return the log probability that at least `count` of trials - 1 independent events of probability `chance` occur."""
    if count > trials - 1:
        return -math.inf
    return float(binom_logsf(float(count - 1), float(trials - 1), min(chance, 1.0))) if count > 0 else 0.0


def _condensed(
    edges: FloatArray, q: FloatArray, means: FloatArray, mass_error: FloatArray, upper: bool
) -> tuple[FloatArray, FloatArray]:
    """Return values and masses of a discrete distribution of large ratios, given the masses `q` and mean ratios of cells.

    The cells are the intervals between `edges`. For the lower bound, the mass of each cell is placed at its mean. For the upper
    bound, it is split between the ends of the cell such that the mean stays the same. `mass_error` bounds the relative errors of
    masses and means.
    """
    held = q > 0
    if not upper:
        values = np.clip(means * (1 - 4 * mass_error), edges[:-1], edges[1:])
        return values[held], (q * (1 - mass_error))[held]
    mass = q * (1 + mass_error)
    out = to_nodes(mass, mass * shares(means * (1 + 4 * mass_error), edges[:-1], edges[1:]))
    return edges[out > 0], out[out > 0]
