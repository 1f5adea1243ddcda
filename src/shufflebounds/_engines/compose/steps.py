"""The grids of losses for a composition: the step of the first grid, and the offset of the grid of each release."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from shufflebounds._base.caches import cached_property
from shufflebounds._base.limits import FIRST_TAIL, LARGE_TABLE_SIZE, MOST_ENUMERATED, ON_GRID, SQUARABLE, TABLE_SIZE
from shufflebounds._engines.compose.pair_sums import PairSums
from shufflebounds._losses.lattice import common_step, own_lattice
from shufflebounds._losses.release import MOST_GRID_EFFORT, DominatingPairInfo
from shufflebounds._losses.tilted_sum import SHALLOWEST

__all__ = ["FIRST_POINTS", "GridSteps", "Releases"]

Releases = Sequence[tuple[DominatingPairInfo, int]]
"""Distributions of losses, each with its number of releases."""

FIRST_POINTS = 2**16
"""Smallest number of points of the first grid, if the divergence is fast to evaluate at these points; twice as many if the losses
have a preferred spacing (`GridSteps._hint`). Raised: longer run time of every composition. Lowered: more refinements."""


class GridSteps:
    """The steps of the grids, in nats, which follow from the sizes of the losses of all releases.

    Parameters
    ----------
    upper, lower : Releases
        The distributions of the upper bound, and those of all lower bounds.
    tight : bool
        Whether some lower bound is composed of the distributions of the upper bound.
    rtol : float
        Grids are refined until the relative gap between the bounds of eps is at most this number.
    """

    def __init__(self, upper: Releases, lower: Releases, tight: bool, rtol: float) -> None:
        self._upper, self._lower, self._tight, self._rtol = upper, lower, tight, rtol
        self.count = sum(r for _, r in upper)

    @cached_property
    def mean(self) -> float:
        """Mean of the total loss."""
        return sum(r * release.scale(FIRST_TAIL).mean for release, r in self._upper)

    @cached_property
    def spread(self) -> float:
        """Standard deviation of the total loss."""
        return math.sqrt(sum(r * release.scale(FIRST_TAIL).var for release, r in self._upper))

    @cached_property
    def farthest(self) -> float:
        """The largest eps that is evaluated on a grid: 1e6 times the largest total loss.

        The largest loss of a release is its pure budget, or the loss above which a mass of e^FIRST_TAIL is truncated. For larger
        eps the rounding errors of grid points are too large, and the square of eps may overflow.
        """
        losses = sum(r * release.scale(FIRST_TAIL).high for release, r in self._upper)
        pure = sum(r * release.pure for release, r in self._upper)
        return min(1e6 * max(1.0, losses, pure if pure < math.inf else 0.0), SQUARABLE)

    @cached_property
    def lattice(self) -> float | None:
        """The spacing of a lattice that contains all losses exactly, or None if there is none or it is too fine."""
        listed = [release.atoms for release, _ in (*self._upper, *self._lower)]
        if any(one is None for one in listed):
            return None
        gaps = np.unique(np.concatenate([np.diff(one.loss) for one in listed if one is not None]))
        return common_step(gaps)

    @cached_property
    def first(self) -> float:
        """The step of the first grid, in nats. Finer grids divide it by powers of two."""
        if self.lattice is not None:
            return self.lattice
        hints = [hint for release, _ in self._upper if (hint := self._hint(release))]
        spacings = [spacing for _, spacing in hints if spacing > 0]
        if not self.spread > 0:
            return 1.0
        step = self.accurate(self.rtol)
        if not self._tight:
            # If the upper bound and all lower bounds have different distributions, this difference causes a much larger gap than
            # the grid does.
            step *= 8
        # At the default rtol of 1e-5, the step is reduced further as long as the grid takes little time: until 20 standard
        # deviations have FIRST_POINTS grid points, or the evaluation of delta at the grid points takes half of MOST_GRID_EFFORT.
        # For a larger rtol, as for a trade-off function, the first grid is coarser.
        spans = ((release.scale(FIRST_TAIL), release.sampling.effort) for release, _ in self._upper)
        efforts = sum((scale.high - scale.low) * effort for scale, effort in spans)
        coarser = math.sqrt(max(self._rtol / 1e-5, 1.0))
        step = min(step, coarser * max(20 * self.spread / FIRST_POINTS, 2 * efforts / MOST_GRID_EFFORT))
        if spacings:
            # If losses lie on a lattice, the errors at its points do not average out. So the step may be half as large, with 2
            # FIRST_POINTS points, for which a transform is fast, too.
            step = min(step, coarser * 10 * self.spread / FIRST_POINTS)
        return self._fitted(max(step, 40 * self.spread / TABLE_SIZE, self.shortest, self.useful))

    @cached_property
    def useful(self) -> float:
        """The step below which a finer grid does not help: a quarter of the distance between breakpoints of the divergence.

        The distance is that of `DominatingPairInfo.spacing`. The error of the grid is proportional to the square of its step, so a
        grid with the step `useful` adds 1/16 of the error that the breakpoints cause. If no lower bound has the distributions of
        the upper bound, the result is 0 (no limit): then `PairSums` cannot be used in place of a finer grid.
        """
        return min(release.spacing(FIRST_TAIL) for release, _ in self._upper) / 4 if self._tight else 0.0

    @property
    def rtol(self) -> float:
        """The caller's rtol, but at least `PairSums.finest`.

        If the caller's rtol is below `PairSums.finest`, the first grid is the same as at `PairSums.finest`, and is then refined. So
        a smaller rtol never gives wider bounds.
        """
        return max(self._rtol, PairSums.finest)

    def accurate(self, rtol: float) -> float:
        """Return the grid step with which the grid changes either bound of eps by about a relative rtol/20.

        The grid changes the variance of a release by about step^2/6 in either bound. The relative change of eps is half of the
        relative change of the total variance.
        """
        return math.sqrt(0.6 * rtol * self.spread**2 / self.count)

    @property
    def shortest(self) -> float:
        """The shortest step of a grid on which no loss is more than TABLE_SIZE steps away from 0.

        The losses of all lower bounds are included, because the losses of the upper bound may have variance 0 while those of a
        lower bound do not.
        """
        scales = [release.scale(FIRST_TAIL) for release, _ in (*self._upper, *(() if self._tight else self._lower))]
        return max(max(abs(scale.low), abs(scale.high)) for scale in scales) / TABLE_SIZE

    def _fitted(self, step: float) -> float:
        """Return a grid step, at most `step`, for which the losses that `_hint` selects are on or near grid points."""
        hints = [(release, hint[1], r) for release, r in self._upper if (hint := self._hint(release)) and hint[1] >= step]
        if not hints:
            return step
        base = max(spacing for _, spacing, _ in hints)
        others = [(spacing, r) for release, spacing, r in hints if spacing < base and release.aligned]
        fewest = math.ceil(base / step * (1 - ON_GRID))
        tried = base / (fewest + np.arange(1 + min(fewest // 2 + 8, MOST_ENUMERATED) if others else 1))
        cost = np.zeros(tried.size)
        for spacing, r in others:
            # Moving an atom by the distance `away * tried` to the grid changes the mean. To keep the mean, some mass of another
            # atom is moved by one `spacing` of the release. Together these moves add the product of the distance and `spacing` to
            # the variance.
            away = np.abs(spacing / tried - np.round(spacing / tried))
            cost += r * spacing * tried * np.where(away > ON_GRID, away, 0.0)
        return float(tried[np.argmin(cost)])

    def anchor(self, release: DominatingPairInfo, step: float) -> float:
        """Return the offset of the grid of a release: the losses with the largest masses are then on or just above grid points.

        The lower bound merges a loss below a grid point with larger losses until their mean is the grid point. A loss slightly
        above a grid point is merged with smaller losses or rounded down (`_losses.merge`).
        """
        hint = self._hint(release)
        if hint is None:
            return 0.0
        anchor, spacing = hint
        if release.aligned and spacing >= step and spacing / step - round(spacing / step) > ON_GRID:
            anchor -= spacing
        return anchor - step * round(anchor / step)

    @staticmethod
    def _hint(release: DominatingPairInfo) -> tuple[float, float] | None:
        """Return (offset, spacing) such that the losses offset + spacing j should be grid points, or None if there is no choice.

        Normally these losses are the lattice of all losses of the release; or the offset is the most probable loss, and the spacing
        is its distance from the nearest other loss. If neither is known, and the loss has the same distribution for (P, Q) and for
        (Q, P), the result is (eps0, 2 eps0), because the losses eps0 and -eps0 may be atoms. Here eps0 is the pure budget of the
        release, which must be at most 30 standard deviations.
        """
        hint = release.hint or own_lattice(release.atoms)
        if hint is None and release.reverse is None and release.pure <= 30 * math.sqrt(release.scale(FIRST_TAIL).var):
            return release.pure, 2 * release.pure
        return hint

    @cached_property
    def fitting(self) -> float:
        """The number of steps of `first` per point of the longest transform, if the total loss is taken as Gaussian.

        If the result is above 1, grids are coarser than `first`.
        """
        return 2 * math.sqrt(2 * SHALLOWEST) * self.spread / (self.first * LARGE_TABLE_SIZE)

    @cached_property
    def coarse(self) -> bool:
        """Whether the bounds are useless because the step is much larger than the spread of many releases.

        A loss much smaller than the step is split between two grid points, which adds about the product of the loss and the step to
        the variance. `coarse` is true if the variance added in all releases is more than four times their own variance. On a
        lattice of all losses nothing is added, unless the transform would be too long; then the step is a multiple of `first`.
        """
        step = self.first if self.lattice is None else self.first * 2.0 ** max(0, math.ceil(math.log2(max(self.fitting, 1.0))))
        if self.lattice == step:
            return False
        sizes = ((r, math.sqrt(release.scale(FIRST_TAIL).var)) for release, r in self._upper)
        return step * sum(r * size for r, size in sizes if size < 0.25 * step) > 4 * self.spread**2

    def resolves(self, release: DominatingPairInfo) -> bool:
        """Return True if losses lie on a lattice, or the loss's standard deviation is at least the first step."""
        return self.lattice is not None or math.sqrt(release.scale(FIRST_TAIL).var) >= self.first
