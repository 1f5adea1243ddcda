"""Hockey-stick divergences of releases with rare large losses, computed as sums over all pairs of outcomes.

If a record is sampled with a small probability, almost every loss is tiny, and a few large losses decide delta. A grid that
resolves both is too long, and no exponential tilt moves the mean of the total loss to eps. Here the losses of one release are moved
to nodes whose distance is proportional to the loss, and smaller near eps. The sums of the losses of two releases, over all pairs of
their outcomes, are moved to such nodes again, and so on for four releases and more. The number of these steps grows with the
logarithm of the number of releases.

The divergence is the expectation of a convex, decreasing function of e^-loss (`_base.convex_order`). For the upper bound, the mass
of a cell between two nodes is moved to these nodes such that the mean of e^-loss does not increase; this does not decrease the
divergence. For the lower bound, the mass is moved to one loss inside the cell such that this mean does not decrease; this does not
increase the divergence. All terms are positive, so small divergences have a small relative error.

Outcomes, and products of the masses of two outcomes, are truncated if their mass is below FAINTEST; in one sum there are fewer than
1e15 of them. Means of the loss in cells with a mass below 1e-300 are inaccurate. To cover both errors, every sum of an upper bound
adds TINY to the mass of infinite loss. TINY exceeds the total mass under P of these outcomes and cells. In delta the masses under Q
have the weight e^eps, so there is no lower bound if the upper bound is below TINY e^eps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np

from shufflebounds._base.caches import Kept
from shufflebounds._base.convex_order import rising, to_nodes
from shufflebounds._base.limits import CACHED_BYTES, LARGEST_EXPONENT, LOG_TINY, NEGLIGIBLE, NEGLIGIBLE_ROUGHLY, TINY
from shufflebounds._base.progress import tick
from shufflebounds._base.types import ULP, FloatArray, Interval, IntervalArray, consistent
from shufflebounds._core import _cell_sums
from shufflebounds._losses.atoms import LossAtoms
from shufflebounds._losses.interpolation import connect_the_dots, reach, supporting_lines
from shufflebounds._losses.release import DominatingPairInfo

__all__ = ["PairSums"]

SPACING = 0.5
"""Distance of neighbouring nodes near eps, in units of loss * sqrt(rtol), for r >= 32 releases. For r < 32 the distance is smaller
by the factor (r/32)^(1/4), because fewer sums are needed. Outside the range around eps the distance of neighbouring nodes is five
times as large, and above `_Placed.large` 25 times. The gap of eps is about rtol for 32 releases, and up to 50 times rtol for
thousands of releases if small losses matter. Lowered: tighter bounds; the run time grows with the square of the number of nodes."""

FAINTEST = 1e-306
"""Mass under P below which an outcome is truncated; 1e15 such outcomes have a total mass below TINY. Raised: TINY would not cover
their total mass. Lowered: sums take up to 13 times as long, because products of masses are subnormal."""


class _Losses(NamedTuple):
    """The outcomes of an upper or a lower bound: increasing finite losses, their masses under P and Q, and P(infinite loss)."""

    loss: FloatArray
    p: FloatArray
    q: FloatArray
    rest: float

    @classmethod
    def of(cls, atoms: LossAtoms, *, upper: bool) -> _Losses:
        """Return the outcomes with losses and masses changed by their errors such that delta is larger (`upper`) or smaller."""
        way = 1 if upper else -1
        # The exponentials have an error of at most 4 ulp.
        p = np.exp(atoms.log_p + way * atoms.slack) * (1 + way * 4 * ULP)
        rest = math.exp(np.logaddexp(atoms.log_rest, atoms.log_lost) + 8 * ULP) + TINY if upper else 0.0
        return cls.held(np.maximum.accumulate(atoms.moved(way)), p, rest, upper=upper)

    @classmethod
    def held(cls, loss: FloatArray, p: FloatArray, rest: float, *, upper: bool) -> _Losses:
        """Return the outcomes with the given losses and masses under P; for an upper bound the caller adds TINY to `rest`, the mass
        of infinite loss.

        Two kinds of outcomes are truncated: those with a mass below FAINTEST under P, and those with a loss below
        -LARGEST_EXPONENT, for which e^-loss would overflow. The mass under P of the latter is at most e^-LARGEST_EXPONENT. The
        total mass of all truncated outcomes under P is below TINY.
        """
        seen = (p > FAINTEST) & (loss > -LARGEST_EXPONENT)
        loss, p = loss[seen], p[seen]
        return cls(loss, p, p * np.exp(-loss) * (1 + (-8 if upper else 8) * ULP), rest)


class PairSums:
    """Lower and upper bounds of the hockey-stick divergence of up to `most` releases.

    The rounding errors of masses add about 1e-12 to the gap of log delta for every release. The nodes depend on a fixed interval
    that contains eps, so the bounds at one eps do not depend on earlier calls.

    Parameters
    ----------
    releases : sequence of (DominatingPairInfo, int)
        The ordered pairs, each attained by neighbouring datasets, and how often each is released.
    rtol : float
        The largest relative gap between the bounds of eps that the composition accepts. An rtol below `finest` has the same effect
        as `finest`.
    scale : float
        The standard deviation of the sum of all losses; an eps below this number has the nodes of eps = `scale`.
    ratio : float, optional
        All eps in an interval [a, `ratio` a] have the same nodes. With a larger ratio a table has more nodes, and serves more eps.
    """

    name: ClassVar[str] = "sums over all pairs of outcomes"

    most: ClassVar[int] = 10**6
    finest: ClassVar[float] = 1e-5

    def __init__(
        self, releases: Sequence[tuple[DominatingPairInfo, int]], rtol: float, scale: float, ratio: float = 2.0
    ) -> None:
        self._releases, self._scale, self._ratio = releases, max(scale, 1e-300), ratio
        count = sum(times for _, times in releases)
        self._spacing = SPACING * math.sqrt(max(rtol, self.finest)) * min(count / 32, 1.0) ** 0.25
        self._tables: Kept[int, tuple[_Table, _Table]] = Kept(CACHED_BYTES, lambda both: both[0].bytes + both[1].bytes)

    @classmethod
    def possible(cls, releases: Sequence[tuple[DominatingPairInfo, int]]) -> bool:
        """Return whether there are 2 to `most` releases, each of one pair (P, Q) whose divergence takes little time to evaluate."""
        single = all(pair.attained.single and pair.sampling.convex and not pair.sampling.expensive for pair, _ in releases)
        return single and 1 < sum(times for _, times in releases) <= cls.most

    def method(self, eps: float) -> list[str]:
        """Return the lines of :meth:`Composition.explain` about the method."""
        return ["method: sums over all pairs of outcomes, at losses whose distance is proportional to the loss"]

    def bounds(self, eps: float) -> tuple[Interval, bool]:
        """Return both bounds of the log divergence at eps, and whether the lower bound is larger than -inf.

        The lower bound is -inf if delta is about TINY e^eps or below, where TINY is the size of the truncated masses.
        """
        place = math.ceil(math.log(max(eps, self._scale)) / math.log(self._ratio))
        below, above = self._tables.of(place, partial(self._made, self._ratio**place))
        low, high = below.log_delta(eps), above.log_delta(eps)
        if high <= LOG_TINY + eps:
            return Interval(-math.inf, high), False
        both = consistent(IntervalArray(np.array([low]), np.array([high])), "log delta at eps={!r}", np.array([eps]))
        return both.alone(), low > -math.inf

    def _made(self, eps: float) -> tuple[_Table, _Table]:
        """Return the tables of the lower and of the upper bound for the interval of eps that ends at `eps`."""
        count = sum(times for _, times in self._releases)
        # delta of the composition is at least that of each release.
        lower = max(float(pair.hockey_sticks[0](np.array([eps])).lower[0]) for pair, _ in self._releases)
        tail = max(lower - NEGLIGIBLE_ROUGHLY - math.log(count), LOG_TINY - NEGLIGIBLE)
        ends = [[reach(side, tail, pure) for pure, side in zip((pair.pure, pair.back.pure), pair.hockey_sticks)]
                for pair, _ in self._releases]
        # Splitting the loss of a release between two nodes near 0 adds at most the square of the distance of these nodes to the
        # variance. Every release adds this error, so for more than 1000 releases the distance decreases like 1/sqrt(number of
        # releases).
        unit = 2e-3 * eps / self._ratio / math.sqrt(max(count / 1000, 1.0))
        placed = _Placed(unit, eps / (5 * self._ratio), 1.6 * eps, max(1.6 * eps, 10 * self._scale), self._spacing)
        nodes = placed.nodes(max(low for _, low in ends), max(high for high, _ in ends))
        below, above = (
            _Table([_single(pair, nodes, placed, upper=upper) for pair, _ in self._releases],
                   tuple(times for _, times in self._releases), placed, upper=upper)
            for upper in (False, True)
        )
        return below, above


class _Placed(NamedTuple):
    """The placement of the nodes of a grid of losses.

    Below `unit` the nodes are evenly spaced. Between `first` and `last`, a range around eps, they are densest: neighbouring nodes
    differ by the factor e^spacing. Outside this range their relative distance is about 5 times as large, and above `large`, where
    losses contribute little to delta, 25 times.
    """

    unit: float
    first: float
    last: float
    large: float
    spacing: float

    def nodes(self, low: float, high: float) -> FloatArray:
        """Return nodes from -low to high, evenly spaced near 0."""
        unit, first, last, large, spacing = self
        both = rising(unit, max(low, large), 5 * spacing)
        near, far = (np.exp(np.arange(math.log(start), math.log(end), step))
                     for start, end, step in ((first, last, spacing), (large, max(high, large), 25 * spacing)))
        nodes = np.concatenate([both[(both > -low) & (both <= large)], near, far])
        return np.unique(np.concatenate([nodes[nodes < high], [-low, high]]))


def _single(pair: DominatingPairInfo, nodes: FloatArray, placed: _Placed, *, upper: bool) -> _Losses:
    """Return the outcomes of one release for an upper or a lower bound.

    If the outcomes are enumerated, they are merged only if there are more of them than nodes. Otherwise their masses follow from
    the hockey-stick divergences at the nodes.
    """
    if pair.atoms is None:
        shape = connect_the_dots if upper else supporting_lines
        return _Losses.of(shape(nodes, *pair.hockey_sticks), upper=upper)
    one = _Losses.of(pair.atoms, upper=upper)
    if one.loss.size <= nodes.size:
        return one
    return _sum(one, _Losses(np.zeros(1), np.ones(1), np.ones(1), 0.0), placed, upper=upper)


class _Table:
    """A bound of the divergence of a composition, whose releases are divided into two groups.

    `_product` adds the losses within each group and moves the sums to nodes. `log_delta` adds every sum of the first group to every
    sum of the second group, and does not move these sums to nodes.
    """

    def __init__(self, single: Sequence[_Losses], times: tuple[int, ...], placed: _Placed, *, upper: bool) -> None:
        self._placed, self._upper, self._known = placed, upper, dict[tuple[int, ...], _Losses]()
        for i, one in enumerate(single):
            self._known[tuple(int(j == i) for j in range(len(single)))] = one
        self._first, self._second = (self._product(part) for part in _halves(times))
        # `_p` and `_q` are suffix sums of the masses of the second group; the last entry is the empty sum.
        self._p, self._q = (np.append(np.cumsum(mass[::-1])[::-1], 0.0) for mass in (self._second.p, self._second.q))

    @property
    def bytes(self) -> int:
        """Bytes of the arrays."""
        return sum(one.loss.nbytes + one.p.nbytes + one.q.nbytes for one in self._known.values())

    def _product(self, times: tuple[int, ...]) -> _Losses:
        """Return the outcomes whose losses are the sums for times[i] releases of each kind i."""
        if times not in self._known:
            first, second = (self._product(part) for part in _halves(times))
            self._known[times] = _sum(first, second, self._placed, upper=self._upper)
            tick()
        return self._known[times]

    def log_delta(self, eps: float) -> float:
        """Return the bound of the log divergence at eps."""
        (loss, p, _, rest), way = self._first, 1 if self._upper else -1
        level = eps - loss
        # The upper bound subtracts twice the rounding error of `level`, so it includes losses that may be above the exact level.
        near = level - ULP * (eps + np.abs(loss)) if self._upper else level
        place = np.searchsorted(self._second.loss, near, side="right")
        tail, lost = self._p[place], np.exp(np.minimum(level, LARGEST_EXPONENT)) * self._q[place]
        if not self._upper:
            tail = np.where(level < LARGEST_EXPONENT, tail, 0.0)
        # `tail` is the mass under P of the losses above `level` in the second group, and `lost` their mass under Q times e^`level`.
        # `error` covers two errors of `tail` - `lost`. As sums of masses, both have a relative error of an ulp for each term. The
        # rounding error of `level`, an ulp of eps + |loss|, causes a relative error of the same size in `lost`, and `lost` is at
        # most `tail`.
        error = ULP * (2 * self._second.loss.size + 16 + 4 * (eps + np.abs(loss))) * tail
        value = float(p @ np.maximum(tail - lost + way * error, 0.0)) * (1 + way * ULP * (loss.size + 8))
        value += rest + self._second.rest if self._upper else 0.0
        return min(0.0, math.log(value) + way * 2 * ULP * (1 + abs(math.log(value)))) if value > 0 else -math.inf


def _halves(times: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Split the numbers of releases into two vectors, neither of them 0, that add up to `times`.

    If there is one kind of release, the number of releases is split into the highest power of two and the rest. Then most sums have
    two equal summands, and such a sum takes half the time. If there are several kinds, every odd number is split into 1 and an even
    number. Powers of two, and even numbers of several kinds, are halved. So a table needs at most two sums for each binary digit of
    a number of releases.
    """
    top = 1 << (max(times).bit_length() - 1)
    part = tuple(number % 2 if len(times) > 1 else number & top for number in times)
    if top == 1:
        part = tuple(int(i == times.index(1)) for i in range(len(times)))
    elif part == times or not any(part):
        part = tuple(number // 2 for number in times)
    return tuple(number - one for number, one in zip(times, part)), part


def _sum(first: _Losses, second: _Losses, placed: _Placed, *, upper: bool) -> _Losses:
    """Return an upper or a lower bound of the sum of two independent losses, moved to nodes or to one loss in each cell."""
    rest = (first.rest + second.rest) * (1 + 4 * ULP) + TINY
    if not first.loss.size or not second.loss.size:
        # All losses of one summand are infinite, so every sum is infinite.
        return _Losses(np.empty(0), np.empty(0), np.empty(0), rest)
    low, high = first.loss[0] + second.loss[0], first.loss[-1] + second.loss[-1]
    nodes = placed.nodes(max(-low, 0.0) * (1 + 1e-9) + 1e-300, max(high, placed.large) * (1 + 1e-9))
    if first is second:
        # If both summands are the same distribution, each pair of different outcomes occurs twice.
        below = np.arange(first.p.size)
        p, moment = np.add(_cell_sums.cell_sums(first.loss, first.p, first.loss, 2 * first.p, nodes, upper, None, below, FAINTEST),
                           _cell_sums.cell_sums(2 * first.loss, first.p**2, np.zeros(1), np.ones(1), nodes, upper))
    else:
        p, moment = _cell_sums.cell_sums(first.loss, first.p, second.loss, second.p, nodes, upper, cut=FAINTEST)
    gap = np.diff(nodes)
    # A cell from a to a + gap has the mass p and the mean loss a + mean. `charge` covers the rounding errors of `p`, of `moment`,
    # and of the operations below. The function f(loss) = 1 - e^(a - loss) is concave. The mean of f over the cell is at most f at
    # the mean loss (Jensen's inequality; used for the upper bound), and at least `lean`, the chord of f over the cell at the mean
    # loss (used for the lower bound).
    charge = ULP * (2 * (first.loss.size + second.loss.size) + 32 + 16 * max(-low, high))
    mean = np.clip(moment / np.where(p > 0, p, 1.0) * (1 + (charge if upper else -charge)), 0.0, gap)
    width = -np.expm1(-gap)
    if upper:
        p = to_nodes(p * (1 + charge), p * (1 + charge) * np.minimum(-np.expm1(-mean) / width * (1 + 8 * ULP), 1.0))
        loss = nodes
    else:
        lean = mean / gap * width * (1 - 8 * ULP)
        with np.errstate(divide="ignore"):
            p, loss = p * (1 - charge), np.minimum(nodes[:-1] - np.log1p(-lean) * (1 - 8 * ULP), nodes[1:])
    return _Losses.held(loss, p, rest, upper=upper)
