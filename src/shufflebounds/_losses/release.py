"""The description of a dominating pair (P, Q), :class:`DominatingPairInfo`.

Each profile describes its pair in this form: bounds of the hockey-stick divergence, enumerated outcomes if there are few, the pure
budget, and the run time of a value. Trade-off functions, Renyi divergences and compositions are computed from this description.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shufflebounds._base.caches import cached_property, kept
from shufflebounds._base.limits import CACHED_ANSWERS, FIRST_TAIL, TABLE_SIZE
from shufflebounds._base.progress import tick
from shufflebounds._base.types import ULP, FloatArray, IntervalArray, consistent
from shufflebounds._losses.atoms import ALONE, GridPLD, LossAtoms, grid
from shufflebounds._losses.blocks import Blocks
from shufflebounds._losses.interpolation import connect_the_dots, optimistic_pld, pessimistic_pld, reach, supporting_lines
from shufflebounds._losses.sampled_profile import FIRST_SCALE, INTERPOLATED, HockeyStickBounds, SampledProfile, alone
from shufflebounds._losses.transform import LossTransform
from shufflebounds.tradeoff.convex import distinct

__all__ = [
    "MOST_GRID_EFFORT", "MOST_VALUE_EFFORT", "SINGLE", "Attained", "CurveBounds", "DominatingPairInfo", "Losses",
    "Releases", "Remembered", "Reverse", "Sampling", "Scale", "groups_alike", "never",
]

MOST_GRID_EFFORT = 0.5
"""Largest total effort (`Sampling.effort`) of the values on a grid; above it, the divergence is sampled at few losses instead.

Raised: longer run time. Lowered: a wider gap of the bounds.
"""

MOST_VALUE_EFFORT = 1e-4
"""Largest effort (`Sampling.effort`) of one value; above it, the divergence is sampled at few losses, even if the grid is short.
Raised: longer run time. Lowered: a larger gap."""

Hint = tuple[float, float] | None
_Table = tuple[FloatArray, IntervalArray]

_NOTHING: _Table = (np.array([np.inf]), IntervalArray(np.array([-np.inf]), np.array([-np.inf])))
"""Empty cache. The entry eps = inf is a sentinel, so that searchsorted always returns a valid index."""


@dataclass(frozen=True)
class Scale:
    """Range (`low`, `high`), mean and variance of the privacy losses of a pair, up to a truncated mass.

    `apart` is the median gap between the upper and the lower bound of log delta.
    """

    low: float
    high: float
    mean: float
    var: float
    apart: float = 0.0

    @classmethod
    def of(cls, atoms: LossAtoms, low: float, high: float, apart: float = 0.0) -> Scale:
        """Return range, mean and variance of the losses of enumerated outcomes; losses outside of low..high are ignored."""
        inside = (atoms.loss >= low - 0.01 * abs(low)) & (atoms.loss <= high + 0.01 * abs(high))
        p, x = np.exp(atoms.log_p[inside]), atoms.loss[inside]
        mean = float(p @ x)
        return cls(low, high, mean, float(p @ (x - mean) ** 2), apart)


class Remembered:
    """A hockey-stick divergence with a cache of its values.

    The upper and the lower bound of a composition need the divergence at the same grid points, and so do different truncation
    ranges.
    """

    def __init__(self, hockey_stick: HockeyStickBounds, effort: float) -> None:
        # `_piece` is the number of values that one call evaluates. With more values, a call shares more work. With fewer, Ctrl-C
        # stops the run earlier.
        self._hockey_stick, self._piece = hockey_stick, max(32, int(0.2 / effort))
        self._table = _NOTHING

    @classmethod
    def of(cls, hockey_stick: HockeyStickBounds, effort: float) -> Remembered:
        """Return the divergence with a cache of its values; a divergence that has a cache is returned unchanged."""
        return hockey_stick if isinstance(hockey_stick, Remembered) else cls(hockey_stick, effort)

    def above(self, eps: FloatArray) -> FloatArray:
        """Return upper bounds from cached values: the divergence at an eps is at most the divergence at any smaller eps."""
        points, sides = self._table
        return np.append(0.0, sides.upper)[np.searchsorted(points, eps, side="right")]

    def __call__(self, eps: FloatArray) -> IntervalArray:
        # Other threads may read the table at the same time, so it is replaced as a whole and never changed.
        points, sides = self._table if self._table[0].size < TABLE_SIZE else _NOTHING
        place = np.searchsorted(points, eps)
        missing = points[place] != eps
        if missing.any():
            fresh = np.unique(eps[missing])
            for i in range(0, fresh.size, self._piece):
                part = fresh[i : i + self._piece]
                place, values = np.searchsorted(points, part), consistent(self._hockey_stick(part), "log delta at eps={!r}", part)
                sides = IntervalArray(*(np.insert(old, place, new) for old, new in zip(sides, values)))
                points, sides = self._table = np.insert(points, place, part), sides
                tick()
            place = np.searchsorted(points, eps)
        return IntervalArray(sides.lower[place], sides.upper[place])


def never(eps: FloatArray) -> IntervalArray:
    """Return both bounds of the log divergence of two equal distributions, -inf at every eps."""
    nothing = np.full(eps.shape, -np.inf)
    return IntervalArray(nothing, nothing.copy())


class CurveBounds(NamedTuple):
    """Functions that bound both hockey-stick divergences, and are sampled for a trade-off function.

    `reverse` has the bounds for the pair (Q, P), or is None if (Q, P) has the same divergence as (P, Q). The samples end at delta =
    e^(-depth^2/2); by default, `depth` is the last entry of :data:`STAGES`.
    """

    hockey_stick: HockeyStickBounds
    reverse: HockeyStickBounds | None = None
    depth: float | None = None


class Sampling(NamedTuple):
    """How the hockey-stick divergence of a pair is sampled.

    Attributes
    ----------
    effort : float
        Relative run time of one value of the hockey-stick divergence, 1 for a search over datasets and 1e-6 for a closed form. The
        number of evaluated values depends on `effort`. Therefore `effort` is fixed for each class of profiles, not measured.
    spacing : float
        Distance between the values of eps at which a trade-off function samples delta, as a difference of sqrt(-2 log delta);
        larger if a value of delta is expensive.
    refined_gap : float, optional
        Relative gap at which the refinement of mu or of a Renyi divergence ends if `spacing` is at least 0.1; by default 1 % of
        `spacing`.
    convex : bool
        Whether the exact function between the bounds is convex in e^eps; it is not if it is itself a minimum of bounds.
    curve : CurveBounds, optional
        Cheaper bounds of the divergences, accurate enough for a trade-off function. If `curve` is given, or if a value is
        expensive, the computations of a trade-off function, of mu and of a Renyi divergence sample delta in stages, and only at the
        eps that they need.
    deep : callable, optional
        Bounds of the divergence that take longer than `hockey_stick` and are tight at far smaller delta.
    above : callable, optional
        Returns only the upper bound of the divergence at each eps. It is used for a pair that neighbours need not attain.
    scale : float
        The first eps of the search for the scale of eps.
    """

    effort: float = 1e-6
    spacing: float = 0.01
    refined_gap: float | None = None
    convex: bool = True
    curve: CurveBounds | None = None
    deep: HockeyStickBounds | None = None
    above: HockeyStickBounds | None = None
    scale: float = FIRST_SCALE

    @property
    def expensive(self) -> bool:
        """Whether one value takes so long that the divergence is sampled at few eps instead of at every grid point."""
        return self.effort > MOST_VALUE_EFFORT


class Losses(NamedTuple):
    """Properties of the privacy losses of a pair, in addition to its divergences.

    Attributes
    ----------
    listed : callable, optional
        Returns the outcomes, given the log of the mass that may be truncated on either side.
    lattice : tuple of two floats, optional, or a function that returns it
        Offset and spacing of a lattice (equally spaced numbers) near which the losses with the most mass lie.
    on_lattice : bool
        Whether all losses lie on that lattice.
    density : callable, optional
        Returns the outcomes of a lower bound, given offset and step of a grid. The continuous part of the losses is merged at the
        grid points. This function is needed if the losses are a mixture of atoms and a density, because the divergence alone does
        not separate the two.
    transform : LossTransform, optional
        The moment generating function of the loss of (P, Q) at complex arguments, if it is known. A composition of such pairs
        inverts it along a contour and needs no grid.
    unbounded : bool
        Whether an outcome is known to be possible under only one of P and Q.
    window : callable, optional
        Returns the outcomes to be moved to a grid, down to a truncated mass of e^log_tail. `window` may be given although `listed`
        is None because there are too many outcomes for other purposes.
    unmatched : callable, optional
        Given if the divergences of (P, Q) and of (Q, P) are rounded one by one, as those of another program, so that
        H_E(P||Q) = 1 - E + E H_{1/E}(Q||P) does not hold. Returns the eps >= 0 between which the divergence of (P, Q) is linear in
        e^eps, and those of (Q, P); None if they are not enumerated.
    """

    listed: Callable[[float], LossAtoms | None] | None = None
    lattice: Hint | Callable[[], Hint] = None
    on_lattice: bool = False
    density: Callable[[float, float], LossAtoms] | None = None
    transform: LossTransform | None = None
    unbounded: bool = False
    window: Callable[[float], LossAtoms] | None = None
    unmatched: Callable[[], tuple[FloatArray, FloatArray] | None] | None = None


class Reverse(NamedTuple):
    """The pair (Q, P): bounds of its log hockey-stick divergence, and an upper bound of its losses, inf if unknown."""

    hockey_stick: HockeyStickBounds
    pure: float = math.inf


class Attained(NamedTuple):
    """The pairs of distributions that some neighbouring datasets attain. A composition of such pairs gives a lower bound.

    Attributes
    ----------
    single : bool
        Whether two neighbouring datasets attain the described pair itself.
    pairs : tuple of DominatingPairInfo
        Pairs that neighbouring datasets attain, if the described pair is not one of them.
    profiles : callable, optional
        Returns profiles of the attained pairs, with their closed forms; used in place of `pairs`.
    all_pairs : bool
        Whether every pair of neighbours is dominated by one of `pairs`, and an adversary may choose another pair in each release.
    directed : bool
        Whether `profiles` are two: one for a removed record and one for an added record. In all releases, the same one of the two
        neighbouring datasets has the record.
    blocks : callable, optional
        Returns blocks of datasets, or None. Blocks are needed if there are too many datasets to enumerate and the worst dataset
        depends on eps. The divergence of the described pair is then expensive, and is the maximum of those of (P, Q) and of (Q, P).
    """

    single: bool = False
    pairs: tuple[DominatingPairInfo, ...] = ()
    all_pairs: bool = False
    blocks: Callable[[], Blocks | None] | None = None
    profiles: Callable[[], tuple[Any, ...]] | None = None
    directed: bool = False


SINGLE = Attained(single=True)
"""For a pair that two neighbouring datasets attain."""


class Releases(NamedTuple):
    """Properties of the products of a pair with itself and with other pairs.

    Attributes
    ----------
    power : tuple of a parameter and a callable, optional
        A parameter of the pair, and a function that returns the description of a product of pairs, given a list of (parameter,
        number of releases). It may be called for pairs that have this function in common.
    ordered : tuple of a family and a number, optional
        Of two symmetric pairs of the same family, the one with the smaller number dominates the other one.
    parts : tuple of (DominatingPairInfo, int)
        The factors, with their multiplicities, if the pair is a product of independent pairs or is dominated by such a product.
        Compositions use the factors.
    gdp_adds : bool
        Whether the upper (lower) bound of mu of a composition of such pairs is sqrt(mu_1^2 + mu_2^2 + ...) of their upper (lower)
        bounds.
    epsilon : callable, optional
        Returns, for a delta in (0, 1), the upper or the lower bound of eps of this pair without a search in Python.
    """

    power: tuple[Any, Callable[[Sequence[tuple[Any, int]]], DominatingPairInfo]] | None = None
    ordered: tuple[Hashable, float] | None = None
    parts: tuple[tuple[DominatingPairInfo, int], ...] = ()
    gdp_adds: bool = False
    epsilon: Callable[[float, bool], float] | None = None


@dataclass(eq=False)
class DominatingPairInfo:
    """The description of an ordered pair (P, Q), or of the maximum over all pairs of neighbours in both orders.

    Parameters
    ----------
    hockey_stick : callable
        Lower and upper bound of the log hockey-stick divergence of (P, Q) at each eps >= 0.
    pure : float
        Upper bound of the losses of (P, Q); inf if unknown.
    reverse : Reverse, optional
        The divergence and the losses of (Q, P); None if the divergence is that of (P, Q).
    sampling : Sampling
        How the divergence is sampled: the run time of a value, and the distance of the samples.
    losses : Losses
        Outcomes, a lattice, a density or a transform of the losses.
    attained : Attained
        The pairs that neighbouring datasets attain.
    releases : Releases
        Products of such pairs in closed form, and factors of the pair.
    """

    hockey_stick: HockeyStickBounds
    pure: float = math.inf
    reverse: Reverse | None = None
    sampling: Sampling = field(default=Sampling())
    losses: Losses = field(default=Losses())
    attained: Attained = field(default=Attained())
    releases: Releases = field(default=Releases())

    @property
    def back(self) -> Reverse:
        """The pair (Q, P)."""
        return self.reverse or Reverse(self.hockey_stick)

    @property
    def below(self) -> tuple[DominatingPairInfo, ...]:
        """The pairs that neighbouring datasets attain, whose compositions are lower bounds."""
        return (self,) if self.attained.single else self._attained_pairs

    @cached_property
    def profiles(self) -> tuple[Any, ...]:
        """Profiles of pairs that neighbouring datasets attain, if they are known."""
        return self.attained.profiles() if self.attained.profiles else ()

    @cached_property
    def blocks(self) -> Blocks | None:
        """The blocks of datasets among which an adaptive adversary chooses, or None."""
        return self.attained.blocks() if self.attained.blocks else None

    @property
    def quicker(self) -> HockeyStickBounds:
        """Bounds of the divergence that are less expensive than `hockey_stick`, or as expensive, and may be less tight."""
        return (self.sampling.curve or self).hockey_stick

    @cached_property
    def _attained_pairs(self) -> tuple[DominatingPairInfo, ...]:
        return self.attained.pairs or tuple(pair for one in self.profiles for pair in one._pair_info().below)

    @property
    def choices(self) -> int:
        """Number of pairs among which an adaptive adversary chooses; 0 if there is no choice.

        Every pair of neighbours is dominated by one of these pairs.
        """
        if self.attained.single or self.releases.parts:
            return 0
        pairs, blocks = self._attained_pairs, self.blocks
        # The run time of an adaptive strategy grows with the number of choices.
        several = len(pairs) if self.attained.all_pairs and 1 < len(pairs) <= 8 else 0
        return blocks.count if blocks else several

    def times(self, number: int) -> tuple[tuple[DominatingPairInfo, int], ...]:
        """Return independent pairs with their multiplicities; the pair of `number` releases is their product.

        If the described pair has factors (`Releases.parts`), these are returned. Otherwise the result is the product of the
        releases in closed form, or, if none is known, the described pair with the multiplicity `number`.
        """
        power, parts = self.releases.power, self.releases.parts
        if parts:
            return tuple(pair for part, count in parts for pair in part.times(count * number))
        if power is None or number == 1:
            return ((self, number),)
        parameter, product = power
        return ((product([(parameter, number)]), 1),)

    def to(self, other: DominatingPairInfo) -> DominatingPairInfo:
        """Return this symmetric pair, which dominates `other`, with bounds that hold for every pair of the family between the two.

        The order of the pairs is that of `Releases.ordered`.
        """
        assert self.attained.single
        assert (self.reverse, self.losses.listed, self.losses.density) == (None, None, None)

        def hockey_stick(eps: FloatArray) -> IntervalArray:
            return IntervalArray(other.hockey_stick(eps).lower, self.hockey_stick(eps).upper)

        return replace(self, hockey_stick=hockey_stick)

    @cached_property
    def atoms(self) -> LossAtoms | None:
        """The outcomes, or None if they are unknown. The truncated mass is negligible at ordinary values of delta."""
        return self.losses.listed(2 * FIRST_TAIL) if self.losses.listed else None

    @cached_property
    def hint(self) -> Hint:
        """Offset and spacing of the lattice near which the losses with the most mass lie; None if unknown."""
        lattice = self.losses.lattice
        return lattice() if callable(lattice) else lattice

    @property
    def aligned(self) -> bool:
        """Whether all atoms lie on one lattice, as is always possible for at most two atoms."""
        return self.losses.density is not None or (self.atoms is not None and (self.losses.on_lattice or self.atoms.loss.size <= 2))

    @cached_property
    def hockey_sticks(self) -> tuple[Remembered, Remembered]:
        """Bounds of the divergences of (P, Q) and of (Q, P), with caches of their values."""
        first = Remembered.of(self.hockey_stick, self.sampling.effort)
        return first, first if self.reverse is None else Remembered.of(self.reverse.hockey_stick, self.sampling.effort)

    @kept(CACHED_ANSWERS)
    def scale(self, log_tail: float) -> Scale:
        """Return range, mean and variance of the losses, with a truncated mass of e^log_tail."""
        if (atoms := self.losses.window(log_tail) if self.atoms is None and self.losses.window else self.atoms) is not None:
            x = atoms.loss
            return Scale.of(atoms, float(x[0]), float(x[-1])) if x.size else Scale(0.0, 0.0, 0.0, 0.0)
        if self.pure <= 0:
            # P and Q are equal.
            return Scale(0.0, 0.0, 0.0, 0.0)
        if self.sampling.expensive:
            own, reverse = self.samples(log_tail)
            held = [side.eps[side.high > -np.inf] for side in (own, reverse)]
            low, high = (float(eps[-1]) if eps.size else 0.0 for eps in held[::-1])
            return Scale.of(_enclosed(own, reverse, upper=True), -low, high)
        forward, back = self.hockey_sticks
        high = reach(forward, log_tail, self.pure)
        low = high if self.reverse is None else reach(back, FIRST_TAIL, self.back.pure)
        near = np.geomspace(1e-6, 1, 120)
        right, left = high * near, low * near
        while True:
            values = forward(right)
            # If the range of losses is long, the losses may vary by less than the distance of two neighbouring eps. If the last
            # distance is above 64, intervals longer than 1 are halved while the mass in them (the decrease of delta) contributes
            # more than 1 % of the variance.
            width, middle = np.diff(right), 0.5 * (right[1:] + right[:-1])
            fall = -np.diff(np.exp(values.upper))
            var = float(fall @ (middle - fall @ middle) ** 2)
            wide = (width > 1) & (fall * width**2 > 0.01 * (1 + var))
            if not (high * (1 - near[-2]) > 64 and wide.any()):
                break
            right = np.union1d(right, middle[wide])
        both = IntervalArray(*np.concatenate([values, back(left)], axis=1))
        lower, upper = consistent(both, "log delta at eps={!r}", np.concatenate([right, left]))
        apart = upper[lower > -np.inf] - lower[lower > -np.inf]
        # Without a lower bound at any of these eps, the losses of the upper bound are used.
        interpolated = supporting_lines if apart.size else connect_the_dots
        rough = interpolated(np.concatenate([-left[::-1], [0.0], right]), forward, back)
        return Scale.of(rough, -low, high, float(np.median(apart)) if apart.size else 0.0)

    @kept(CACHED_ANSWERS)
    def samples(self, log_tail: float) -> tuple[SampledProfile, SampledProfile]:
        """Return samples of the divergences of (P, Q) and of (Q, P) at a few eps, those of (P, Q) down to a divergence of
        e^log_tail.

        The samples of (Q, P) end at the divergence e^FIRST_TAIL. This bounds the mass under Q of the losses below -eps, where eps
        is that of the last sample. The mass of these losses under P is smaller still.
        """
        own, back = self.hockey_sticks
        first = SampledProfile(own, self.pure, 0.6, depth=math.sqrt(-2 * log_tail))
        if self.reverse is None:
            return first, first
        return first, SampledProfile(back, self.reverse.pure, 0.6, depth=math.sqrt(-2 * FIRST_TAIL))

    def exhausted(self, log_tail: float) -> bool:
        """Whether the samples for a truncated mass of e^log_tail end at a delta above e^log_tail.

        This happens if the bound of delta does not decrease further at larger eps.
        """
        sampled = self.sampling.expensive and self.atoms is None and not self.losses.window
        return sampled and float(self.samples(log_tail)[0].high[-1]) > log_tail

    def refined(self, log_tail: float, theta: float, goal: float) -> tuple[SampledProfile, SampledProfile]:
        r"""Return samples of both divergences, refined until the bounds of :math:`K(\theta)` differ by at most `goal`.

        :math:`K(\theta) = \log \mathrm{E} e^{\theta L}` is the cumulant generating function of the loss L. For a composition that
        is computed with the exponential tilt theta, an error :math:`\Delta K` changes eps by about :math:`\Delta K/\theta`. The
        intervals with the largest gap between interpolation and supporting lines are halved until the gap is below `goal` or the
        allowed number of samples is reached. If the divergence is not convex, its lower bound between samples follows from
        monotonicity alone.
        """
        own, back = (side.copy() for side in self.samples(log_tail))
        own, back = (own, own) if self.reverse is None else (own, back)
        for side in (own, back):
            side.convex = self.sampling.convex
        # E e^(theta L) - 1 is theta (theta + 1) times the sum of two integrals over t > 0: of e^(theta t) times the divergence of
        # (P, Q) at eps = t, and of e^(-(theta + 1) t) times that of (Q, P).
        log_weight = math.log(theta * (theta + 1)) if theta > 0 else -math.inf

        def integrals(own: SampledProfile, back: SampledProfile) -> tuple[list[float], list[FloatArray], list[FloatArray]]:
            parts = [one.integrals(other, power) for one, other, power in ((own, back, theta), (back, own, -(theta + 1)))]
            gaps, held = [part[2] for part in parts], [part[3] for part in parts]
            gaps, held = ([np.logaddexp(*gaps)], [np.logaddexp(*held)]) if own is back else (gaps, held)
            return [part[1] for part in parts], gaps, held

        # Fewer than 64 values of the divergence would not resolve the range of the losses.
        most = int(min(2**12, max(64, 2 * MOST_GRID_EFFORT / self.sampling.effort)))
        while True:
            whole, gaps, held = integrals(own, back)
            # `held` has, for each interval, the part of the gap that is due to the gap of the bounds at the samples. More samples
            # do not reduce these parts, so a total gap of up to 1.5 times the sum of `held` is accepted. For shuffled bits, 1.1
            # instead of 1.5 takes twice as long and reduces the gap of a composition by 3 %.
            spare, smallest = math.log(1.5), -math.inf
            fixed = float(np.logaddexp.reduce(np.concatenate(held)))
            if fixed > float(np.logaddexp.reduce(whole)) + math.log(0.01):
                # If the sum of `held` (the gap that more samples do not reduce) exceeds 1 % of the integral, refine for the upper
                # bound alone: the upper bounds at the samples are then treated as exact. The refinement ends when the interpolation
                # adds less than the fraction INTERPOLATED of `held`.
                smallest = fixed + math.log(INTERPOLATED)
                whole, gaps, held = integrals(*alone(own, back, True))
            log_moment = float(np.logaddexp.reduce([0.0, *(log_weight + part for part in whole)]))
            kept = float(np.logaddexp.reduce(np.concatenate(held))) + spare
            allowed = max(math.log(goal) + log_moment - math.log1p(theta), kept, smallest)
            total = float(np.logaddexp.reduce(np.concatenate(gaps)))
            room = most - own.evaluations - (0 if own is back else back.evaluations)
            if total <= allowed or room <= 0:
                return own, back
            each = allowed - math.log(2 * sum(gap.size for gap in gaps))
            grown = 0
            for gap, own_part, side in zip(gaps, held, (own, back)):
                wide = (np.diff(side.eps) > 1e-9 * side.eps[1:]) & (gap > own_part + spare)
                worst = np.argsort(np.where(wide, -gap, np.inf))[:room]
                worst = worst[(gap[worst] > each) & wide[worst]]
                before = side.evaluations
                side.add(0.5 * (side.eps[worst] + side.eps[worst + 1]))
                grown += side.evaluations - before
            if not grown:
                return own, back

    def sparing(self, step: float, log_tail: float) -> bool:
        """Whether the divergence is sampled at few losses instead of at every grid point."""
        if self.atoms is not None or self.losses.window or (self.losses.density is not None and not self.sampling.expensive):
            return False
        scale = self.scale(log_tail)
        # `_index` evaluates at most about TABLE_SIZE/4 breakpoints, because on a long grid their distances are larger.
        values = min((scale.high - scale.low) / step, TABLE_SIZE // 4)
        return self.sampling.expensive or values * self.sampling.effort > MOST_GRID_EFFORT

    def spacing(self, log_tail: float) -> float:
        """Return the distance between breakpoints of the divergence near the mean loss; 0 stands for the step of the grid.

        A smaller distance would not improve the bounds: the interpolation error would be less than the gap of the bounds at a
        breakpoint.
        """
        scale = self.scale(log_tail)
        return math.sqrt(8 * scale.apart * scale.var)

    def _index(self, anchor: float, step: float, log_tail: float) -> NDArray[np.int64]:
        """Return the indices of the grid points at which the divergence is evaluated (the breakpoints of its interpolation)."""
        scale, stride = self.scale(log_tail), max(1, round(self.spacing(log_tail) / step))
        first, last = math.floor((scale.low - anchor) / step) - 1, math.ceil((scale.high - anchor) / step) + 1
        first, last = min(first, math.floor(-anchor / step) - 2), max(last, math.ceil(-anchor / step) + 2)
        center = round((scale.mean - anchor) / step)
        # The `near` breakpoints on either side of the mean are `stride` grid steps apart. They extend to 12 standard deviations,
        # and there are at least 1000 of them. The tails have little mass. There the distance of the breakpoints grows in proportion
        # to the distance from the mean, so that there are at most about TABLE_SIZE/4 breakpoints.
        near = min(max(12 * math.sqrt(scale.var) / (step * stride), 1000.0), TABLE_SIZE / 12)
        away = max(last - center, center - first) / stride
        growth = np.exp(np.arange(1, 2 + near * max(0.0, math.log(away / near))) / near) if away > near else np.empty(0)
        steps = stride * _without_repeats(np.round(np.append(np.arange(0, math.ceil(near)), near * growth)).astype(np.int64))
        index = np.concatenate([center - steps[::-1], center + steps])
        # The ends of the range may be atoms, which are breakpoints.
        ends = [first + np.arange(4), last - np.arange(4)]
        index = _without_repeats(np.sort(np.concatenate([index[(index > first) & (index < last)], *ends]), kind="stable"))
        join = round(-anchor / step)
        if min(np.count_nonzero(index > join), np.count_nonzero(index < join)) < 2:
            # The divergences of (P, Q) and (Q, P) join at eps = 0, and each of the two needs two points beyond it.
            index = np.union1d(index, join + np.arange(-2, 3))
        return index

    def law(
        self, anchor: float, step: float, log_tail: float, placed: tuple[SampledProfile, SampledProfile] | None, *, upper: bool
    ) -> GridPLD:
        """Return a distribution on the grid that dominates the pair if `upper` is true, and is dominated by the pair otherwise.

        `placed` are samples of the divergences of (P, Q) and (Q, P), or None if the divergences are evaluated on the grid.
        """
        if self.atoms is not None:
            atoms = self.atoms
        elif self.losses.window:
            atoms = self.losses.window(log_tail)
        elif self.losses.density is not None and not upper:
            atoms = self.losses.density(anchor, step)
        elif placed is not None:
            atoms = _enclosed(*placed, upper=upper)
        else:
            knots = grid(anchor, step, self._index(anchor, step, log_tail))
            # The divergences of (P, Q) and (Q, P) join at the first knot at or above 0. If all losses are far smaller than a step,
            # this must be the knot at 0, which rounding may have moved to a negative number.
            knots[np.abs(knots) <= 64 * ULP * step] = 0.0
            atoms = (connect_the_dots if upper else supporting_lines)(knots, *self.hockey_sticks)
        return atoms.law(anchor, step, upper=upper)


def groups_alike(pairs: Sequence[DominatingPairInfo], rtol: float) -> list[list[int]]:
    """Return groups of at least two pairs of one family whose `Releases.ordered` numbers differ by at most a relative `rtol`.

    Pairs of a family differ only in this number, for example the number of users. A group is the list of the
    indices of its pairs in `pairs`, in increasing order of the number.
    """
    groups: dict[tuple[Hashable, float], list[int]] = {}
    first: dict[Hashable, float] = {}
    ordered = [(one.releases.ordered, i) for i, one in enumerate(pairs)]
    listed = [(pair[1], i, pair[0]) for pair, i in ordered if pair is not None]
    for number, i, family in sorted(listed, key=lambda entry: entry[:2]):
        if not number <= first.get(family, -math.inf) * (1 + rtol):
            first[family] = number
        groups.setdefault((family, first[family]), []).append(i)
    return [places for places in groups.values() if len(places) > 1]


def _without_repeats(rising: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the distinct numbers of a non-decreasing array."""
    return np.asarray(rising[np.append(True, np.diff(rising) > 0)])


def _enclosed(own: SampledProfile, back: SampledProfile, *, upper: bool) -> LossAtoms:
    """Return a distribution whose divergence is an upper (or lower) bound of the divergence of the pair.

    `own` has samples of the divergence of (P, Q), and `back` has samples of the divergence of (Q, P). The upper bound interpolates
    the upper bounds at the samples; the lower bound is the lower convex hull of the supporting lines (`SampledProfile.below`).
    """
    chains = [(side.eps, side.high) if upper else side.below(other) for side, other in ((own, back), (back, own))]
    (x, y), (u, v) = (distinct(*chain) for chain in chains)
    if not upper:
        # The last loss is the eps at which the supporting line beyond the last sample reaches zero, and may be large. A grid
        # extends to the last loss unless this loss is isolated (ALONE). So the last loss is limited to 10 above the last sample, or
        # to 2 ALONE above it if it is isolated.
        for eps in (x, u):
            if eps.size > 1:
                eps[-1] = min(eps[-1], eps[-2] + (2 * ALONE if eps[-1] - eps[-2] > ALONE else 10.0))
    # At eps = 0 the divergences of (P, Q) and (Q, P) are equal, so the tighter one of their two bounds is used for both.
    y[0] = v[0] = (min if upper else max)(y[0], v[0])
    return (pessimistic_pld if upper else optimistic_pld)((x, y), (u, v))
