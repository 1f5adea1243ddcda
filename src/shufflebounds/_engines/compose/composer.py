"""The choice among the engines of a composition, and the combination of their bounds, for `profile.Composition`.

The engines `Inversion`, `PairSums`, `EnumeratedChoice`, `Grid` and `Adaptive` are tried in the order of `Composer.engines`, until
the bounds of one meet the tolerance. If the integral of `Inversion` would be too long, its upper bound is Chernoff's bound. Before
any engine is tried, `profile/product.py` checks whether a composition has few enough outcomes to be enumerated, or is determined
by one release.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from typing import ClassVar, NamedTuple, Protocol

from shufflebounds._base.caches import Kept, cached_property
from shufflebounds._base.evidence import format_bound
from shufflebounds._base.limits import BLOCK, FIRST_TAIL, LOG_TINY, LOOSE, NEGLIGIBLE
from shufflebounds._base.types import Interval
from shufflebounds._engines.compose.adaptive import Adaptive, AdaptiveChoice
from shufflebounds._engines.compose.enumerated_choice import EnumeratedChoice
from shufflebounds._engines.compose.grid import Grid
from shufflebounds._engines.compose.inversion import LONGEST, Inversion, normal_estimate
from shufflebounds._engines.compose.pair_sums import PairSums
from shufflebounds._engines.compose.steps import GridSteps, Releases

__all__ = ["Composer", "Engine"]


class Engine(Protocol):
    """A method that bounds the hockey-stick divergence of a composition; `name` is the name of the method in explanations."""

    name: ClassVar[str]

    def bounds(self, eps: float) -> tuple[Interval, bool]:
        """Return bounds of log delta at eps, and whether no other engine would make them much tighter."""

    def method(self, eps: float) -> list[str]:
        """Return the lines of :meth:`Composition.explain` about the method."""


FEW_RELEASES, BESIDE_SUMS = 32, (2e7, 1e8)
"""Largest length of an integral (`LONGEST`) if sums over all pairs of outcomes are possible, for up to FEW_RELEASES releases and
for more: from this length on, the sums take less time, as measured on one machine. For an `rtol` below `PairSums.finest` this
length grows with 1/`rtol`. Raised: integrals that take longer than the sums. Lowered: the reverse."""

SHARING = 4.0
"""Ratio of the ends of an interval of eps that uses the same nodes of the rough sums in `once`. Raised: tables with more nodes.
Lowered: a search for eps makes more tables."""


class _Answer(NamedTuple):
    """Bounds of log delta, and the engines that were tried, each with its bounds; after the last engine no other was needed."""

    bounds: Interval
    tried: tuple[tuple[Engine, Interval], ...]


class Composer:
    """Lower and upper bound of the hockey-stick divergence of a composition.

    The bounds depend on eps alone and not on earlier calls: grids are refined anew for every eps, and the losses at which an
    expensive distribution is sampled depend on a fixed interval that contains eps (`Grid.middle`).

    Parameters
    ----------
    upper : sequence of (DominatingPairInfo, int)
        Distributions whose composition is an upper bound, each with its number of releases.
    lower : sequence of sequences of (DominatingPairInfo, int)
        Compositions, each of which is a lower bound.
    rtol : float
        The grid is refined until the gap of log delta corresponds to a relative change of eps of at most rtol.
    free : AdaptiveChoice, optional
        A mechanism whose pair may change from release to release. The bounds are then those of the best adaptive strategy.
    tested : sequence of (DominatingPairInfo, int)
        Mechanisms for the lower bound if `lower` is empty: the best test of one release is repeated in every release (`repeated`).
        The distributions in `upper` give no lower bound, because neighbouring datasets need not attain them.
    deepest : float
        If log delta is below this number, only an upper bound is computed, by inversion, and the lower bound is -inf. A trade-off
        function sets this number, because its points end at a smallest delta.
    """

    def __init__(
        self,
        upper: Releases,
        lower: Sequence[Releases],
        rtol: float,
        free: AdaptiveChoice | None = None,
        tested: Releases = (),
        deepest: float = -math.inf,
    ) -> None:
        self._upper, self._lower, self._rtol, self._free, self._tested = upper, lower, rtol, free, tested
        self._deepest = deepest
        # BLOCK entries take about 3 MB.
        self._known: Kept[float, _Answer] = Kept(BLOCK)
        self._lock, self._process = threading.RLock(), os.getpid()
        # `tight` states whether one of the lower bounds is for the same distributions as the upper bound. If none is, the lower and
        # the upper bound differ on every grid.
        self.tight = any(all(a is b for (a, _), (b, _) in zip(upper, side)) for side in lower)
        self.steps = GridSteps(upper, [pair for side in lower for pair in side], self.tight, rtol)

    @cached_property
    def inversion(self) -> Inversion | None:
        """The inversion of the moment generating function of the total loss.

        The value is None if the moment generating function is not known for every release, or if no lower bound is for the
        composition that gives the upper bound.
        """
        releases = [(release.losses.transform, r) for release, r in self._upper if release.losses.transform is not None]
        if not self.tight or len(releases) < len(self._upper):
            return None
        # Unless rtol is far below `PairSums.finest`, sums over all pairs of outcomes take less time than a long integral.
        beside = BESIDE_SUMS[self.steps.count > FEW_RELEASES] * self.steps.rtol / self._rtol
        inversion = Inversion(releases, self._rtol, min(beside if PairSums.possible(self._upper) else math.inf, LONGEST))
        return inversion if inversion.possible else None

    @cached_property
    def sums(self) -> PairSums | None:
        """Sums over all pairs of outcomes, used if inversion fails or a grid is too long or inaccurate; None if impossible."""
        if not self.tight or self.steps.lattice is not None or not PairSums.possible(self._upper) or not self.steps.spread > 0:
            return None
        return PairSums(self._upper, min(self._rtol, 0.1 * LOOSE), self.steps.spread)

    @cached_property
    def _sums_roughly(self) -> PairSums | None:
        return None if self.sums is None else PairSums(self._upper, LOOSE, self.steps.spread, ratio=SHARING)

    @cached_property
    def grid(self) -> Grid:
        """The composition on grids."""
        sums = self.sums if self.inversion is None else None
        return Grid(self._upper, self._lower, self._tested, self._rtol, self.steps, sums, tight=self.tight)

    @cached_property
    def needs_no_grid(self) -> bool:
        """Whether no grid is needed: the bounds come from inversion or sums over all pairs of outcomes, unless delta is tiny.

        Sums are used if no grid of TABLE_SIZE points is both long enough for the largest loss and fine enough, or if the values on
        the grid take longer than the sums (`Grid.is_long`).
        """
        if self.inversion is not None or self.sums is None:
            return self.inversion is not None
        return self.steps.accurate(self.steps.rtol) < self.steps.shortest or self.grid.is_long(FIRST_TAIL)

    @cached_property
    def _adaptive(self) -> Adaptive | None:
        return None if self._free is None else Adaptive(self.grid, self._free)

    @cached_property
    def _enumerated(self) -> EnumeratedChoice | None:
        return None if self._free is None else EnumeratedChoice.of(self._upper, self._free)

    def engines(self) -> Iterator[Engine]:
        """Yield the engines in the order in which they are tried; each is made when it is needed."""
        if self.needs_no_grid:
            if self.inversion is not None:
                yield self.inversion
            if self.sums is not None:
                yield self.sums
        if self._enumerated is not None:
            yield self._enumerated
        yield self.grid
        if self._adaptive is not None:
            yield self._adaptive

    def bounds(self, eps: float) -> Interval:
        """Return a lower and an upper bound of the log hockey-stick divergence of the composition at eps."""
        return self._answer(eps).bounds

    def method(self, eps: float) -> list[str]:
        """Return the lines of :meth:`Composition.explain` about the method."""
        tried = self._answer(eps).tried
        last = tried[-1][0]
        lines = [f"  tried: {engine.name}, log delta in [{format_bound(low, upper=False, digits=9)}, "
                 f"{format_bound(high, upper=True, digits=9)}]" for engine, (low, high) in tried]
        others = (
            (Inversion, self.inversion, "which needs this function for every release, and pairs that neighbours attain"),
            (PairSums, self.sums, f"which need 2 to {PairSums.most} cheap releases of one pair each, whose losses are no lattice"),
            (EnumeratedChoice, self._enumerated, "which needs an adaptive choice and few outcomes"),
            (Grid, self.grid, ""),
            (Adaptive, self._adaptive, "because every release has one pair, or its pairs are not enumerated"),
        )
        lines += [f"  not used: {kind.name}, {needed if one is None else 'because the tried bounds suffice'}"
                  for kind, one, needed in others if all(one is not engine for engine, _ in tried)]
        return [*last.method(eps if last is self.inversion else min(eps, self.steps.farthest)), *lines]

    def _answer(self, eps: float) -> _Answer:
        if self._process != os.getpid():
            # After a fork the lock may be held by a thread that does not exist in this process, so a new lock is made.
            self._lock, self._process = threading.RLock(), os.getpid()
        with self._lock:
            return self._known.of(eps, partial(self._combined, eps))

    def _combined(self, eps: float) -> _Answer:
        """Return the best bounds of the engines that are tried."""
        if self.inversion is not None and self.roughly(eps) < self._deepest:
            rough = Interval(-math.inf, self.roughly(eps))
            return _Answer(rough, ((self.inversion, rough),))
        best, tried = Interval(-math.inf, 0.0), list[tuple[Engine, Interval]]()
        for engine in self.engines():
            if engine is not self.inversion and eps > self.steps.farthest:
                # All engines but inversion are used up to eps = `farthest`. As delta decreases in eps, the upper bound at
                # `farthest` is valid.
                (_, high), others = self._answer(self.steps.farthest)
                return _Answer(Interval(best.lower, min(high, best.upper)), (*tried, *others))
            (low, high), enough = engine.bounds(eps)
            tried.append((engine, Interval(low, high)))
            # In this order of the arguments, NaN counts as no bound.
            best = Interval(max(best.lower, low), min(best.upper, high))
            # Sums over pairs give no lower bound if delta is below about 1e-290 e^eps. Then a grid gives a lower bound, unless
            # delta itself is tiny and the grid too long.
            deep = best.lower > -math.inf or best.upper < LOG_TINY + NEGLIGIBLE
            if enough or best.upper < self._deepest or (engine is self.sums and deep and self.grid.is_long(self.grid.tail(eps))):
                break
        return _Answer(best, tuple(tried))

    def once(self, eps: float) -> float:
        """Return an upper bound of log delta at eps, without a grid: tighter than `roughly`, and in less time than `bounds`."""
        value, close = (0.0, False) if self.inversion is None else self.inversion.log_delta_once(eps)
        if close or self._sums_roughly is None or eps > self.steps.farthest:
            return value
        return min(value, self._sums_roughly.bounds(eps)[0].upper)

    def normal_estimate(self, eps: float) -> float:
        """Return an estimate of log delta at eps in little time; the estimate may be wrong by orders of magnitude."""
        if self.inversion is not None:
            return self.inversion.normal_estimate(eps)
        return normal_estimate(eps, self.steps.mean, self.steps.spread)

    def roughly(self, eps: float) -> float:
        """Return an upper bound of log delta in little time, without a grid."""
        return 0.0 if self.inversion is None else self.inversion.chernoff(eps)

    @property
    def chooses(self) -> bool:
        """Whether the bounds are those of an adversary who may choose the pair of each release after all earlier results."""
        return self._free is not None and bool(self._free.pairs)

    def without_choice(self, eps: float) -> float:
        """Return a lower bound of log delta at eps, without adaptive choice, in less time than :meth:`bounds`."""
        with self._lock:
            return self.grid.bounds(min(eps, self.steps.farthest))[0].lower

    def estimate(self, eps: float) -> float:
        """Return an estimate of log delta at eps: by the saddle point or, without inversion, for a Gaussian total loss.

        The estimate is 0 if all losses are 0.
        """
        return self.normal_estimate(eps) if self.inversion is None else self.inversion.estimate(eps)
