"""What a profile knows of its pair of laws: the one object that curves, Renyi divergences and compositions are derived from."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shufflebounds._cached import cached_property
from shufflebounds._types import FloatArray, IntervalArray
from shufflebounds.composing.blocks import Blocks
from shufflebounds.composing.interpolation import connect_the_dots, optimistic_pld, pessimistic_pld, reach, supporting_lines
from shufflebounds.composing.loss_atoms import GridPLD, LossAtoms, grid
from shufflebounds.composing.progress import tick
from shufflebounds.composing.sampled_profile import HockeyStickBounds, SampledProfile
from shufflebounds.tradeoff.convex import distinct

__all__ = ["FIRST_TAIL", "GRID_VALUE_SECONDS", "DominatingPairInfo", "Scale"]

FIRST_TAIL = -60.0
"""Logarithm of the mass above the losses that are looked at first."""

MOST_KNOTS = 2**18
"""No grid has many more knots: finer ones take them wider apart in the tails."""

DENSE, LEAST_DENSE = 12.0, 1000.0
"""Within so many standard deviations of the mean, and so many points, there is a knot at every grid point."""

GRID_BUDGET_SECONDS = 0.5
"""Effort of a whole grid above which values are placed one by one: a larger one takes longer, a smaller one widens the gap."""

GRID_VALUE_SECONDS = 1e-4
"""Effort of one value above which it is never evaluated at every grid point, however few there are."""

MOST_VALUES = 2**12
"""Values placed one by one, at most."""

BASE_SECONDS = 0.02
"""Measured seconds for all values of a release whose values are cheap; it enters predictions only."""

ENOUGH_VALUES = 400
"""About so many values serve where chords and crossing lines enclose what is between them."""

FEWEST_VALUES, FIRST_VALUES = 64, 40
"""Values placed one by one, at least, and those that tell the scale of the losses."""

PIECE, LEAST_PIECE = 0.2, 32
"""Effort of the values that are evaluated in one call, and their least number: more of them share work, but delay Ctrl-C."""

BESIDE, BESIDE_DEAR, DEAR = 1.1, 1.5, 0.01
"""Values are placed until the interpolation error is at most BESIDE times the gap of the values themselves, or BESIDE_DEAR times
where the effort of one is above DEAR. Larger factors widen the gap of a composition; smaller ones evaluate more values."""

LITTLE = 0.01
"""The same, as a share of what is integrated: where the sides are further apart, the upper one is all that counts."""

MOST_CHOICES = 8
"""Pairs of which one is chosen anew for every release, at most."""

MOST_REMEMBERED = 2**18
"""Values of a hockey stick kept before all are left out for new ones."""

HEAVY, HEAVY_STEPS = 0.9, 4.0
"""A distribution of which this mass lies within this number of grid steps of its median has its grid start at that mass. With more
steps grids move that resolve the distribution anyway; with fewer, the mean misses what merging moves to the grid point."""

Hint = tuple[float, float] | None
_Table = tuple[FloatArray, IntervalArray]

_NOTHING: _Table = (np.array([np.inf]), IntervalArray(np.array([-np.inf]), np.array([-np.inf])))
"""No answer yet; the end makes every search find a place."""


@dataclass(frozen=True)
class Scale:
    """The lowest and the highest loss that matter, mean, variance, the gap of the bounds of log delta, and the outcomes."""

    low: float
    high: float
    mean: float
    var: float
    apart: float = 0.0
    masses: FloatArray = field(default_factory=lambda: np.empty(0), compare=False)
    losses: FloatArray = field(default_factory=lambda: np.empty(0), compare=False)

    @classmethod
    def of(cls, atoms: LossAtoms, low: float, high: float, apart: float = 0.0) -> Scale:
        """Return the moments of the outcomes between; what stands far beyond is an infinite loss."""
        inside = (atoms.loss >= low - 0.01 * abs(low)) & (atoms.loss <= high + 0.01 * abs(high))
        p, x = np.exp(atoms.log_p[inside]), atoms.loss[inside]
        mean = float(p @ x)
        return cls(low, high, mean, float(p @ (x - mean) ** 2), apart, p, x)

    def heavy(self, step: float) -> float | None:
        """Return the mean of the losses within HEAVY_STEPS steps of the median; None where these have less mass than HEAVY."""
        if not self.losses.size:
            return None
        sums = np.cumsum(self.masses)
        median = self.losses[np.searchsorted(sums, 0.5 * sums[-1])]
        near = np.abs(self.losses - median) <= HEAVY_STEPS * step
        mass = float(self.masses[near].sum())
        return float(self.masses[near] @ self.losses[near]) / mass if mass >= HEAVY * sums[-1] > 0 else None


class _Remembered:
    """A stick that keeps its answers: a law is asked for from both sides, and for several depths, on one grid."""

    def __init__(self, hockey_stick: HockeyStickBounds, effort: float) -> None:
        self._hockey_stick, self._piece = hockey_stick, max(LEAST_PIECE, int(PIECE / effort))
        self._table = _NOTHING

    def __call__(self, eps: FloatArray) -> IntervalArray:
        # another thread may ask at once: the table is replaced as a whole
        known, sides = self._table if self._table[0].size < MOST_REMEMBERED else _NOTHING
        place = np.searchsorted(known, eps)
        missing = known[place] != eps
        if missing.any():
            fresh = np.unique(eps[missing])
            for i in range(0, fresh.size, self._piece):
                known, sides = self._table = self._grown(known, sides, fresh[i : i + self._piece])
                tick()
            place = np.searchsorted(known, eps)
        return IntervalArray(sides.lower[place], sides.upper[place])

    def _grown(self, known: FloatArray, sides: IntervalArray, fresh: FloatArray) -> _Table:
        place = np.searchsorted(known, fresh)
        lower, upper = self._hockey_stick(fresh)
        merged = IntervalArray(np.insert(sides.lower, place, lower), np.insert(sides.upper, place, upper))
        return np.insert(known, place, fresh), merged


@dataclass(frozen=True, eq=False)
class DominatingPairInfo:
    """What is known of an ordered pair (P, Q), or of the larger of both orders of all pairs of neighbours.

    Parameters
    ----------
    stick : callable
        Lower and upper log hockey stick of (P, Q) at each eps >= 0.
    reverse : callable, optional
        The same of (Q, P); None where it is equal.
    pure, reverse_pure : float
        No loss of that order lies above; inf if that is not known.
    effort : float
        Relative cost of one value of the hockey-stick divergence, 1 for a search over datasets and 1e-6 for a closed form. It
        decides how many values are evaluated, so it is a property of the class and no measurement.
    setup : float
        Measured seconds of work before the first values. It enters predictions only, and may be measured anew at any time.
    seconds : float, optional
        Measured seconds of one value among many, where they differ from `effort`. It enters predictions only.
    spacing : float
        How far apart delta is sampled for a curve, in normal quantiles: further where a value costs more.
    single : bool
        Whether neighbours realise this very pair: then it composes from below as well.
    attained : tuple of DominatingPairInfo
        Single pairs that neighbours realise, where this is none.
    all_attained : bool
        Whether every pair of neighbours is dominated by one of the realised pairs.
    blocks : Blocks, optional
        Blocks of all neighbours, where these are too many to be listed and their worst depends on eps; the stick is then that of
        both orders, and dear.
    convex : bool
        Whether the hockey stick is convex, rather than a minimum of several bounds.
    curve_stick : callable, optional
        A cheaper enclosure of the hockey stick, close enough for curves.
    unbounded_loss : bool
        Whether some outcome is known to be possible under one law only.
    listed : callable, optional
        Given the logarithm of the mass that may be left out on a side, the outcomes themselves.
    lattice : tuple of two floats, optional, or a function that returns it
        Anchor and spacing of a lattice near which the heaviest losses lie.
    on_lattice : bool
        Whether all listed losses lie on that lattice.
    density : callable, optional
        Given anchor and step of a grid, the outcomes with those of a density merged into one around every grid point: what
        bounds from below where atoms stand beside a density, and delta cannot tell them apart.
    power : callable, optional
        Given a number of releases, what is known of their product.
    parts : tuple of (DominatingPairInfo, int)
        Where the pair is a product of independent pairs, or is dominated by one: these, and how often each. What is composed is
        composed of them.
    """

    hockey_stick: HockeyStickBounds
    reverse: HockeyStickBounds | None = None
    pure: float = math.inf
    reverse_pure: float = math.inf
    effort: float = 1e-6
    setup: float = 0.0
    seconds: float | None = None
    spacing: float = 0.01
    single: bool = False
    attained: tuple[DominatingPairInfo, ...] = ()
    all_attained: bool = False
    blocks: Blocks | None = None
    convex: bool = True
    curve_hockey_stick: HockeyStickBounds | None = None
    unbounded_loss: bool = False
    listed: Callable[[float], LossAtoms | None] | None = None
    lattice: Hint | Callable[[], Hint] = None
    on_lattice: bool = False
    density: Callable[[float, float], LossAtoms] | None = None
    power: Callable[[int], DominatingPairInfo] | None = None
    parts: tuple[tuple[DominatingPairInfo, int], ...] = ()

    @property
    def back(self) -> HockeyStickBounds:
        """The hockey stick of the other order."""
        return self.reverse or self.hockey_stick

    @property
    def below(self) -> tuple[DominatingPairInfo, ...]:
        """Single pairs that neighbours realise."""
        return (self,) if self.single else self.attained

    @property
    def choices(self) -> int:
        """How many pairs there are of which one, chosen anew for every release, is at least as bad as any neighbours; 0 if one."""
        if self.single or self.parts:
            return 0
        several = len(self.attained) if self.all_attained and 1 < len(self.attained) <= MOST_CHOICES else 0
        return self.blocks.count if self.blocks else several

    def times(self, number: int) -> tuple[tuple[DominatingPairInfo, int], ...]:
        """Return what composes like that many releases: fewer where their product is known, the parts of each where it has any."""
        if self.parts:
            return tuple(pair for part, count in self.parts for pair in part.times(count * number))
        return ((self.power(number), 1) if self.power and number > 1 else (self, number),)

    @cached_property
    def atoms(self) -> LossAtoms | None:
        """The outcomes down to a mass that no composition at an ordinary delta can see."""
        return self.listed(2 * FIRST_TAIL) if self.listed else None

    @cached_property
    def hint(self) -> Hint:
        """Anchor and spacing of what a grid should hit."""
        return self.lattice() if callable(self.lattice) else self.lattice

    @property
    def aligned(self) -> bool:
        """Whether all atoms lie on one lattice."""
        return self.density is not None or (self.atoms is not None and (self.on_lattice or self.atoms.loss.size <= 2))

    @cached_property
    def _hockey_sticks(self) -> tuple[HockeyStickBounds, HockeyStickBounds]:
        first = _Remembered(self.hockey_stick, self.effort)
        return first, first if self.reverse is None else _Remembered(self.reverse, self.effort)

    @property
    def _dear(self) -> bool:
        return self.effort > GRID_VALUE_SECONDS

    @property
    def _beside(self) -> float:
        return math.log(BESIDE if self.effort <= DEAR else BESIDE_DEAR)

    @property
    def _most_values(self) -> int:
        return int(min(MOST_VALUES, max(FEWEST_VALUES, 2 * GRID_BUDGET_SECONDS / self.effort)))

    @property
    def predicted(self) -> float:
        """Predicted seconds of one value."""
        return self.effort if self.seconds is None else self.seconds

    @property
    def expected(self) -> float:
        """About how many seconds a composition spends on values of this."""
        if self.atoms is not None or not self._dear:
            return BASE_SECONDS + self.setup
        values = FIRST_VALUES + (min(self._most_values, ENOUGH_VALUES) if self.convex else self._most_values)
        return self.setup + values * self.predicted * (1 if self.reverse is None else 2)

    @cached_property
    def _scales(self) -> dict[float, Scale]:
        return {}

    @cached_property
    def _started(self) -> dict[float, tuple[SampledProfile, SampledProfile]]:
        return {}

    def scale(self, log_tail: float) -> Scale:
        """Return where the losses lie, down to that mass."""
        if log_tail not in self._scales:
            self._scales[log_tail] = self._scale(log_tail)
        return self._scales[log_tail]

    def _scale(self, log_tail: float) -> Scale:
        if self.atoms is not None:
            x = self.atoms.loss
            return Scale.of(self.atoms, float(x[0]), float(x[-1])) if x.size else Scale(0.0, 0.0, 0.0, 0.0)
        if self.pure <= 0:
            # no loss at all
            return Scale(0.0, 0.0, 0.0, 0.0)
        if self._dear:
            own, reverse = self.samples(log_tail)
            held = [side.eps[side.high > -np.inf] for side in (own, reverse)]
            low, high = (float(eps[-1]) if eps.size else 0.0 for eps in held[::-1])
            return Scale.of(_enclosed(own, reverse, upper=True), -low, high)
        high = reach(self.hockey_stick, log_tail, min(self.pure, 1e5))
        low = high if self.reverse is None else reach(self.back, FIRST_TAIL, 1e5)
        near = np.geomspace(1e-6, 1, 120)
        index = np.concatenate([-low * near[::-1], [0.0], high * near])
        right, left = self.hockey_stick(high * near), self.back(low * near)
        lower, upper = np.concatenate([right[0], left[0]]), np.concatenate([right[1], left[1]])
        apart = upper[lower > -np.inf] - lower[lower > -np.inf]
        rough = supporting_lines(index, self.hockey_stick, self.back)
        return Scale.of(rough, -low, high, float(np.median(apart)) if apart.size else 0.0)

    def samples(self, log_tail: float) -> tuple[SampledProfile, SampledProfile]:
        """Return few values of both orders, down to that mass."""
        if log_tail not in self._started:
            own, back = self._hockey_sticks
            depth = math.sqrt(-2 * log_tail)
            first = SampledProfile(own, self.pure, 0.6, depth=depth)
            second = first if self.reverse is None else SampledProfile(back, self.reverse_pure, 0.6, depth=depth)
            self._started[log_tail] = first, second
        return self._started[log_tail]

    def refined(self, log_tail: float, theta: float, goal: float) -> tuple[SampledProfile, SampledProfile]:
        r"""Return values so close that the two sides of :math:`K(\theta)`, the log moments of the loss, are near each other.

        A composition moves by about :math:`\Delta K/\theta` in eps, its laws tilted by theta. The values are halved where their
        chords and crossing lines leave most between them, until that is below `goal` or enough has been spent. Where the hockey
        stick is not convex the lower side is known by monotonicity alone.
        """
        own, back = (side.copy() for side in self.samples(log_tail))
        own, back = (own, own) if self.reverse is None else (own, back)
        for side in (own, back):
            side.convex = self.convex
        sides = ((own, back, theta), (back, own, -(theta + 1)))
        most = self._most_values
        while True:
            parts = [side.integrals(other, power) for side, other, power in sides]
            # E e^(theta loss) = 1 + theta (theta + 1) times the integrals
            log_weight = math.log(theta * (theta + 1)) if theta > 0 else -math.inf
            log_moment = float(np.logaddexp.reduce([0.0, *(log_weight + part[1] for part in parts)]))
            gaps, held = [part[2] for part in parts], [part[3] for part in parts]
            gaps, held = ([np.logaddexp(*gaps)], [np.logaddexp(*held)]) if own is back else (gaps, held)
            # where the sides of the values themselves are apart by little, that is no reason for more values
            whole = float(np.logaddexp.reduce([part[1] for part in parts]))
            if float(np.logaddexp.reduce(np.concatenate(held))) > whole + math.log(LITTLE):
                held = [np.full(part.size, -np.inf) for part in held]
            kept = float(np.logaddexp.reduce(np.concatenate(held))) + self._beside
            allowed = max(math.log(goal) + log_moment - math.log1p(theta), kept)
            total = float(np.logaddexp.reduce(np.concatenate(gaps)))
            room = most - own.evaluations - (0 if own is back else back.evaluations)
            if total <= allowed or room <= 0:
                return own, back
            each = allowed - math.log(2 * sum(gap.size for gap in gaps))
            grown = 0
            for gap, least, side in zip(gaps, held, (own, back)):
                wide = (np.diff(side.eps) > 1e-9 * side.eps[1:]) & (gap > least + self._beside)
                worst = np.argsort(np.where(wide, -gap, np.inf))[:room]
                worst = worst[(gap[worst] > each) & wide[worst]]
                before = side.evaluations
                side.add(0.5 * (side.eps[worst] + side.eps[worst + 1]))
                grown += side.evaluations - before
            if not grown:
                return own, back

    def sparing(self, step: float, log_tail: float) -> bool:
        """Whether values are placed one by one, instead of at every grid point."""
        if self.atoms is not None or (self.density is not None and not self._dear):
            return False
        scale = self.scale(log_tail)
        # on a wider grid the knots lie further apart, so their number is limited
        values = min((scale.high - scale.low) / step, MOST_KNOTS)
        return self._dear or values * self.effort > GRID_BUDGET_SECONDS

    def _index(self, anchor: float, step: float, log_tail: float) -> NDArray[np.int64]:
        """Grid points at which the hockey stick is asked for."""
        scale = self.scale(log_tail)
        # knots closer than the accuracy of the values would follow their errors
        stride = max(1, round(math.sqrt(8 * scale.apart * scale.var) / step))
        first, last = math.floor((scale.low - anchor) / step) - 1, math.ceil((scale.high - anchor) / step) + 1
        first, last = min(first, math.floor(-anchor / step) - 2), max(last, math.ceil(-anchor / step) + 2)
        center = round((scale.mean - anchor) / step)
        # knots are uniform about the mean; in the tails, which have little mass, their distance grows with that from the mean
        near = min(max(DENSE * math.sqrt(scale.var) / (step * stride), LEAST_DENSE), MOST_KNOTS / 3)
        away = max(last - center, center - first) / stride
        growth = np.exp(np.arange(1, 2 + near * max(0.0, math.log(away / near))) / near) if away > near else np.empty(0)
        steps = stride * _distinct(np.round(np.append(np.arange(0, math.ceil(near)), near * growth)).astype(np.int64))
        index = np.concatenate([center - steps[::-1], center + steps])
        # the ends may be atoms, with a kink there
        ends = [first + np.arange(4), last - np.arange(4)]
        index = _distinct(np.sort(np.concatenate([index[(index > first) & (index < last)], *ends]), kind="stable"))
        join = round(-anchor / step)
        if min(np.count_nonzero(index > join), np.count_nonzero(index < join)) < 2:
            # the two directions join at eps = 0, and each needs two points
            index = np.union1d(index, join + np.arange(-2, 3))
        return index

    def law(
        self, anchor: float, step: float, log_tail: float, placed: tuple[SampledProfile, SampledProfile] | None, *, upper: bool
    ) -> GridPLD:
        """Return the law on the grid, from above or from below; of the values placed one by one, where there are such."""
        if self.atoms is not None:
            atoms = self.atoms
        elif self.density is not None and not upper:
            atoms = self.density(anchor, step)
        elif placed is not None:
            atoms = _enclosed(*placed, upper=upper)
        else:
            knots = grid(anchor, step, self._index(anchor, step, log_tail))
            atoms = (connect_the_dots if upper else supporting_lines)(knots, *self._hockey_sticks)
        return atoms.law(anchor, step, upper=upper)


def _distinct(rising: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rising numbers, each once."""
    return np.asarray(rising[np.append(True, np.diff(rising) > 0)])


def _enclosed(own: SampledProfile, back: SampledProfile, *, upper: bool) -> LossAtoms:
    """Return outcomes whose hockey stick connects the upper values of both orders, or the hull of what lies below them."""
    chains = [(side.eps, side.high) if upper else side.below(other) for side, other in ((own, back), (back, own))]
    (x, y), (u, v) = (distinct(*chain) for chain in chains)
    if not upper:
        # the last lines may end earlier, but not in infinity
        x[-1], u[-1] = min(x[-1], x[-2] + 10.0) if x.size > 1 else x[-1], min(u[-1], u[-2] + 10.0) if u.size > 1 else u[-1]
    # at E = 1 both orders have one value
    y[0] = v[0] = (min if upper else max)(y[0], v[0])
    return (pessimistic_pld if upper else optimistic_pld)((x, y), (u, v))
