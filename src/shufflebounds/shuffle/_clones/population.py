"""All users with their budgets: bounds of one target's loss, or of every target's in a range, and the search for the worst."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from shufflebounds._cached import cached_property
from shufflebounds._search import IntRange, halves, maximum
from shufflebounds._types import FloatArray, Interval
from shufflebounds.composing.kept import Kept
from shufflebounds.profile._budget import Budget
from shufflebounds.shuffle._clones.bins import Bins
from shufflebounds.shuffle._clones.blanket import blanket_shares, log_blanket_delta, too_large
from shufflebounds.shuffle._clones.families import Family, RandomizedResponse, Terms
from shufflebounds.shuffle._clones.law import CloneLaw, log_clone_delta, log_estimates

__all__ = ["TOLERANCE", "Population", "SearchBox"]

TOLERANCE = 1e-3
"""How far apart the sides over all users may stay in log delta, down to 1e-20; below, a twentieth of it for a unit of log delta."""

SKETCH = 2**6
"""Groups in an estimate."""

BINS = (2**9, 2**11, 2**13)
"""Bins of budgets on the levels of the search over targets; the last level has one for each distinct budget."""

FEW = 8
"""So few targets are all looked at."""

GROWTH = 1.6
INNER: FloatArray = np.array([k / 7 for k in range(1, 7)])
FAR: FloatArray = np.array([0.125 * GROWTH**k for k in range(10)])
NEARBY = np.array([1.8, 1.3, 1.0, 0.8, 0.6])
"""Masses outside a window that are tried at a time, as logarithms: so far below the most, or in units of a good one nearby."""

CLOSE, ALIKE = 0.125, 1e-3
"""The mass outside a window is sought to so much of its logarithm, or until nothing beside it is worse by so much in log delta."""

BESIDE = 0.375
"""How far beside it a mass that estimates chose is compared."""

LIKELY = 0.1
"""Estimates are compared to so much."""

MAX_EVALUATIONS = 20000

MEMORY = 2**23
"""Rates kept for another eps."""

NOBODY = 1e-6
"""Of so small a chance that anybody hides the target, next to nothing can be made."""


class SearchBox(NamedTuple):
    """What bounds all targets of a block: a decomposition on a level of grouping, or the smallest of all where none is named.

    `nearby` is the mass at which windows of the block's halves are looked for; `common` says that it is that of the worst target,
    and so another one at another eps.
    """

    block: IntRange
    level: int
    kind: str
    log_mass: float
    nearby: float
    common: bool = False


@dataclass
class Population:
    """All users: distinct budgets in increasing order, how many hold each, and the family they share."""

    family: Family
    budgets: FloatArray
    counts: FloatArray
    laws: Kept[Any, CloneLaw] = field(default_factory=lambda: Kept(MEMORY, _size))

    def __post_init__(self) -> None:
        size = self.budgets.size
        windowed = self.family.windowed
        self.bins = [Bins.of(self.budgets, self.counts, many, windowed=windowed) for many in BINS if size > 2 * many]
        self.exact = len(self.bins)
        self.sketch = Bins.of(self.budgets, self.counts, min(SKETCH, size), windowed=windowed)

    def _clones(self, kind: str, terms: Terms, level: int, i: int, j: int, upper: bool) -> CloneLaw:
        """Return the clones among the users other than a target in i..j, in bins from one side where the level is not exact."""
        low, high = float(self.budgets[i]), float(self.budgets[j])

        def rates(budgets: FloatArray) -> FloatArray:
            if kind == "window":
                return self.family.window_rates(terms.reach, low, high, budgets)
            return self.family.rates(kind, low, high, budgets)

        if level == self.exact:
            own = rates(self.budgets)
            counts = self.counts.copy()
            # taking out the best of them is the worst case
            counts[i + int(np.argmax(own[i : j + 1]))] -= 1
            return CloneLaw(own, counts)
        bins = self.bins[level]
        if self.family.ends and kind != "window":
            bins, j = bins.upto(i, self.budgets, self.counts), i
        if not upper:
            return bins.rounded_up(rates, i, low)
        return bins.rounded_down(rates, i, j, low if i == j else None)

    def _law(self, kind: str, terms: Terms, level: int, i: int, j: int, upper: bool) -> CloneLaw:
        """Return `_clones`, kept for another eps."""
        key = (kind, terms.reach, level, i, j, upper or level == self.exact)
        return self.laws.of(key, lambda: self._clones(kind, terms, level, i, j, upper))

    def _terms(self, kind: str, eps: float, i: int, j: int, log_mass: float) -> Terms:
        low, high = float(self.budgets[i]), float(self.budgets[j])
        terms = self.family.window(log_mass, low, high, eps) if kind == "window" else self.family.terms(kind, low, high)
        return Terms(*map(float, terms))

    def value(
        self, kind: str, eps: float, level: int, i: int, j: int, log_mass: float = 0.0, *, both: bool = True
    ) -> Interval:
        """Return bounds of one decomposition's log delta for every target in i..j; the lower one of several says nothing."""
        terms = self._terms(kind, eps, i, j, log_mass)
        budget = Budget(float(terms.local_eps))
        lower, upper = log_clone_delta(self._law(kind, terms, level, i, j, True), budget, eps)
        if level != self.exact:
            lower = log_clone_delta(self._law(kind, terms, level, i, j, False), budget, eps)[0] if both and i == j else -math.inf
        return Interval(_total(lower, terms), min(_total(upper, terms), 0.0))

    def estimate(self, kind: str, eps: float, i: int, j: int, log_mass: float = 0.0) -> float:
        """Return about what `value` says: good for a choice among bounds, no bound itself."""
        if kind == "window":
            return float(self._of_windows(eps, i, j, np.array([log_mass]))[0])
        low, high = float(self.budgets[i]), float(self.budgets[j])
        terms = self.family.terms(kind, low, high)
        return float(self._estimates(self.family.rates(kind, low, high, self.sketch.middle)[None], terms, eps, i, j)[0])

    def _of_windows(self, eps: float, i: int, j: int, masses: FloatArray) -> FloatArray:
        """Return `estimate` for windows that leave these masses outside, all in one pass."""
        low, high = float(self.budgets[i]), float(self.budgets[j])
        terms = self.family.window(masses, low, high, eps)
        rates = self.family.window_rates(np.reshape(terms.reach, (-1, 1)), low, high, self.sketch.middle)
        return self._estimates(rates, terms, eps, i, j)

    def _estimates(self, rates: FloatArray, terms: Terms, eps: float, i: int, j: int) -> FloatArray:
        taken = rates[:, self.sketch.place(i) : self.sketch.place(j) + 1].max(axis=1)
        local = np.broadcast_to(terms.local_eps, taken.shape)
        return np.logaddexp(log_estimates(rates, self.sketch.counts, taken, local, eps) + terms.log_scale, terms.log_tail)

    def _about(self, eps: float, i: int, nearby: float | None) -> float:
        """Return the least estimate of target i."""
        guesses = [self.estimate(kind, eps, i, i) for kind in self.family.kinds]
        if self.family.windowed:
            guesses.append(self.estimate("window", eps, i, i, self._log_mass(eps, i, i, nearby, rough=True)))
        return min(guesses)

    def _useful_window(self, i: int) -> bool:
        # a pure family needs the window only for users of larger budget
        pure = self.family.pure_epsilon(float(self.budgets[i])) < math.inf
        return self.family.windowed and not (pure and i == self.budgets.size - 1)

    def _log_mass(self, eps: float, i: int, j: int, start: float | None = None, *, rough: bool = False) -> float:
        """Return the mass to leave outside the window of targets i..j: any gives a bound, this one nearly the smallest.

        Rough: one of those that are tried first.
        """
        low, masses, values = float(self.budgets[i]), np.empty(0), np.empty(0)
        # few budgets are quick to search closely
        alike = ALIKE if self.exact else ALIKE / 1000

        def look(more: FloatArray) -> None:
            nonlocal masses, values
            more = more[more < -0.7]
            masses, values = np.append(masses, more), np.append(values, self._of_windows(eps, i, j, more))
            order = np.argsort(masses)
            masses, values = masses[order], values[order]

        if start is not None:
            look(start * NEARBY)
        # a mass that was good nearby is taken where those on both sides of it are worse
        most, further = self.family.most_outside(low, eps), FAR
        found = masses.size > 2 and 0 < int(np.argmin(values)) < masses.size - 1
        while not found:
            look(most - further)
            further = further * (FAR[-1] / FAR[0] * GROWTH)
            least = float(values.min())
            # a smaller mass outside no longer changes the sum
            found = values[0] > least + 1e-9 or masses[0] < max(2 * least - 20, -1e6)
        while True:
            # among equally good masses the largest: blocks with users of larger budgets start from it
            best = int(np.flatnonzero(values <= values.min() + 1e-9)[-1])
            left, right = masses[max(best - 1, 0)], masses[min(best + 1, masses.size - 1)]
            beside = max(values[max(best - 1, 0)], values[min(best + 1, masses.size - 1)])
            if rough or right - left < CLOSE or beside <= values[best] + alike:
                # few different ones, so that laws serve again at another eps
                return min(round(float(masses[best]) / CLOSE) * CLOSE, -0.7)
            inner = float(left) + float(right - left) * INNER
            look(inner[~np.isin(inner, masses)])

    def _polished(self, eps: float, i: int, log_mass: float) -> float:
        """Return the best mass beside the one of estimates for target i, by bounds; closely for few budgets, which are quick."""
        log_mass = self._least_beside(eps, i, log_mass, BESIDE, CLOSE)
        return log_mass if self.exact else self._least_beside(eps, i, log_mass, BESIDE / 4, CLOSE / 32)

    def _least_beside(self, eps: float, i: int, log_mass: float, far: float, unit: float) -> float:
        """Return the least of the parabola through the bounds of three masses so far apart, in such units."""
        masses = log_mass + far * np.array([-1.0, 0.0, 1.0])
        values = [self.value("window", eps, 0, i, i, mass, both=False)[1] for mass in masses.tolist() if mass < -0.7]
        if len(values) == 3 and min(values) > -math.inf:
            left, middle, right = values
            bend = left - 2 * middle + right
            if bend > 0:
                least = 0.5 * far * (left - right) / bend
                return float(log_mass + unit * round(min(max(least, -2 * far), 2 * far) / unit))
        return float(masses[int(np.argmin(values))]) if values else log_mass

    def candidates(self, eps: float, i: int) -> list[tuple[str, float]]:
        """Return the decompositions of target i that may be the smallest, with the windows' masses."""
        kinds: list[tuple[str, float]] = [(kind, 0.0) for kind in self.family.kinds]
        if self._useful_window(i):
            kinds.append(("window", self._polished(eps, i, self._log_mass(eps, i, i))))
        if not self.exact or len(kinds) == 1:
            return kinds
        # only what may be the smallest is evaluated in full
        guesses = [self.estimate(kind, eps, i, i, mass) for kind, mass in kinds]
        near = min(guesses) + 1.0
        kinds = [kind for kind, guess in zip(kinds, guesses) if guess <= near]
        if len(kinds) == 1:
            return kinds
        values = [self.value(kind, eps, 0, i, i, mass, both=False)[1] for kind, mass in kinds]
        near = min(values)
        near = near + 0.02 * max(1.0, -near / 10) if near > -math.inf else near
        return [kind for kind, value in zip(kinds, values) if value <= near]

    def single(self, eps: float, i: int, apart: float = 0.0) -> Interval:
        """Return bounds of the smallest proven log delta of target i, in bins where these leave the sides close enough."""
        if self._nobody_else(i):
            # no window hides anything: what the target leaks alone
            local = self.family.log_local(float(self.budgets[i]), eps)
            return Interval(local - 1e-12 * (1 - local), local)
        candidates = self.candidates(eps, i)
        for level in range(0 if apart else self.exact, self.exact + 1):
            sides = [self.value(kind, eps, level, i, i, mass) for kind, mass in candidates]
            if max((upper - lower for lower, upper in sides if upper > -math.inf), default=0.0) <= apart:
                break
        blanket = self._blanket(eps, i, i, min(upper for _, upper in sides))
        sides += [blanket] if blanket else []
        local = self.family.log_local(float(self.budgets[i]), eps)
        sides += [Interval(local - 1e-12 * (1 - local), local)] if local < 0 else []
        return min(sides, key=lambda pair: pair[1])

    def _nobody_else(self, i: int) -> bool:
        """Whether target i is the only user, of a family without a pure budget."""
        return float(self.counts.sum()) == 1 and self.family.pure_epsilon(float(self.budgets[i])) == math.inf

    def _blanket(self, eps: float, i: int, j: int, best: float) -> Interval | None:
        if not isinstance(self.family, RandomizedResponse) or self.family.categories == 2:
            return None
        shares, log_others = self._shares
        log_none = float(log_others.sum() - log_others[i] / self.counts[i])
        if log_none > -NOBODY:
            # hardly anybody hides the target: above, nobody does; below, the cases in which nobody does
            local = self.family.log_local(float(self.budgets[j]), eps)
            return Interval(local + log_none - 1e-12 * (1 - local), local)
        counts = self.counts.copy()
        counts[i] -= 1
        if eps < self.budgets[j] and too_large(shares, counts):
            return None
        return log_blanket_delta(self.budgets, counts, self.family.categories, float(self.budgets[j]), eps, best)

    @cached_property
    def _shares(self) -> tuple[FloatArray, FloatArray]:
        """The chance of every group's users to send a message whatever they hold, and the log of that of none in the group."""
        assert isinstance(self.family, RandomizedResponse)
        shares = blanket_shares(self.budgets, self.family.categories)
        return shares, self.counts * np.log1p(-np.minimum(shares, 1 - 1e-16))

    def _bound(
        self, eps: float, level: int, i: int, j: int, log_mass: float, enough: float, hint: float = 0.0
    ) -> tuple[float, SearchBox]:
        """Return an upper bound of the smallest proven log delta of every target in i..j, and where it comes from.

        It stops improving once the bound is at most `enough`. The hint is the mass outside the window of the worst target.
        """
        if i == j and level == self.exact:
            return self.single(eps, i)[1], SearchBox((i, j), level, "", 0.0, log_mass)
        best, first, mass = (self.family.log_local(float(self.budgets[j]), eps), ("", 0.0)), True, log_mass
        if hint not in (0.0, log_mass) and log_mass < 0:
            # the mass of the worst target serves those like it; all of them are then compared at one
            own, other = self._of_windows(eps, i, j, np.array([log_mass, hint]))
            mass = hint if other <= own + 0.5 * LIKELY else log_mass
        # what served targets nearby is often enough
        while best[0] > enough:
            kinds: list[tuple[str, float]] = [(kind, 0.0) for kind in self.family.kinds if first]
            if self.family.windowed and mass < 0:
                kinds.append(("window", mass))
            guesses = [self.estimate(kind, eps, i, j, mass) for kind, mass in kinds] if len(kinds) > 1 else [0.0]
            near = min(guesses) + 1.0
            for guess, (kind, tried) in sorted(zip(guesses, kinds)):
                if best[0] > enough and guess <= near:
                    best = min(best, (self.value(kind, eps, level, i, j, tried, both=False)[1], (kind, tried)))
            if not (first and self.family.windowed):
                break
            first, mass, last = False, self._log_mass(eps, i, j, log_mass), mass
            if mass == last:
                break
        if best[0] > enough:
            blanket = self._blanket(eps, i, j, best[0])
            best = min(best, (blanket[1], ("", 0.0))) if blanket else best
        chosen = best[1][1] if best[1][0] == "window" else mass
        return best[0], SearchBox((i, j), level, *best[1], chosen, chosen == hint)

    def _again(self, eps: float, held: SearchBox, enough: float, hint: float) -> float:
        """Return the bound of a block by what bounded it at another eps."""
        if held.kind:
            return self.value(held.kind, eps, held.level, *held.block, held.log_mass, both=False)[1]
        return self._bound(eps, held.level, *held.block, held.nearby, enough, hint)[0]

    def every(
        self, eps: float, guess: int, tolerance: float = TOLERANCE, frontier: list[SearchBox] | None = None, *,
        coarse: bool = False, goal: float = math.inf,
    ) -> tuple[float, float, int]:
        """Return bounds of the largest log delta over all targets, and a target that attains the lower one.

        One search on each level of bins: what a coarser one leaves above the bound of the worst target is searched on the next.
        The frontier is what bounded all targets at an eps nearby, or empty, and becomes what does at this one. Coarse: the targets'
        own sides, too, are no closer than the tolerance asks. Where an end of the range is worse than the guess and beyond the
        goal, nothing else is looked at: the upper bound is that of any law.
        """
        if self.budgets.size <= FEW:
            sides = [self.single(eps, i) for i in range(self.budgets.size)]
            best = max(range(len(sides)), key=lambda i: sides[i].lower)
            return sides[best].lower, max(upper for _, upper in sides), best
        own = tolerance / 4 if coarse else 0.0
        best, (lower, upper) = guess, self.single(eps, guess, own)
        if self._nobody_else(guess):
            return lower, upper, guess

        def meet(target: int) -> None:
            nonlocal best, lower, upper
            if self._about(eps, target, None) < lower - 10 * LIKELY:
                return
            if self.single(eps, target, tolerance / 4)[1] > lower:
                sides = self.single(eps, target, own)
                if sides[0] > lower:
                    best, (lower, upper) = target, sides

        for end in {0, self.budgets.size - 1} - {guess}:
            meet(end)
        if best != guess and lower > goal:
            return lower, 0.0, best
        frontier = [] if frontier is None else frontier
        hint = dict(self.candidates(eps, best)).get("window", 0.0)
        frontier[:] = [held._replace(log_mass=hint, nearby=hint) if held.common else held for held in frontier]
        pruned, notes, blocks = self._start(eps, upper + tolerance / 2 * max(1.0, -lower / 20), frontier, hint)
        left, top = MAX_EVALUATIONS // 2, -math.inf

        def split(block: IntRange) -> list[IntRange]:
            # what a level's bins do not tell apart is left to the next one
            bins = self.bins[level] if level < self.exact else None
            pieces = halves(block) if bins is None or bins.place(block[0]) < bins.place(block[1]) else []
            notes.update((piece, notes[block]._replace(block=piece)) for piece in pieces)
            return pieces

        for level in range(self.exact + 1 if blocks else 0):
            slack = tolerance * max(1.0, -lower / 20) if lower > -math.inf else 0.0
            margin = slack if level == self.exact else slack / 2
            known = self._bound(eps, level, best, best, notes[blocks[0]].nearby, -math.inf, hint)[0]
            likely = self._about(eps, best, notes[blocks[0]].nearby) - LIKELY
            measure = partial(self._measured, eps, level, notes, likely, hint)
            # no closer than the bins can tell
            near = margin if level == self.exact else max(margin, known - upper)
            found = maximum(blocks, measure, split, tolerance=partial(_same, near), known=known, most=left)
            left -= found.measured
            if found.best is not None:
                meet(sum(found.best) // 2)
            top = max([bound for bound, _ in found.left])
            if top <= upper + slack or left <= 0:
                frontier += [notes[block] for _, block in found.left]
                break
            low = [(bound, block) for bound, block in found.left if bound <= upper + margin]
            frontier += [notes[block] for _, block in low]
            pruned = max([pruned, *(bound for bound, _ in low)])
            blocks = [block for bound, block in found.left if bound > upper + margin]
        else:
            frontier += [notes[block] for block in blocks]
        return lower, max(upper, pruned, top), best

    def _start(
        self, eps: float, enough: float, frontier: list[SearchBox], hint: float
    ) -> tuple[float, dict[IntRange, SearchBox], list[IntRange]]:
        """Return the bound of the blocks that the frontier serves, all that it keeps, and the other blocks with a note of each."""
        if frontier:
            bounds = [self._again(eps, held, enough, hint) for held in frontier]
            failing = [held for bound, held in zip(bounds, frontier) if bound > enough]
            frontier[:] = [held for bound, held in zip(bounds, frontier) if bound <= enough]
            return max([bound for bound in bounds if bound <= enough], default=-math.inf), *_noted(failing)
        edges = np.unique(np.linspace(0, self.budgets.size, min(self.budgets.size, 8) + 1).astype(int))
        return -math.inf, *_noted([SearchBox((int(a), int(b) - 1), 0, "", hint, hint) for a, b in pairwise(edges)])

    def _measured(
        self, eps: float, level: int, notes: dict[IntRange, SearchBox], likely: float, hint: float, blocks: Sequence[IntRange],
        enough: float,
    ) -> list[tuple[float, float, float]]:
        """Return for each block of targets, on a level of grouping, the bound of all and of one, twice.

        That one is the target itself where there is no other, or the one in the middle of the block of largest bound, if its
        estimate is at least the likely one.
        """
        bounds = []
        for block in blocks:
            bound, notes[block] = self._bound(eps, level, *block, notes[block].nearby, enough, hint)
            bounds.append(bound)
        values = [bound if i == j else -math.inf for bound, (i, j) in zip(bounds, blocks)]
        place = int(np.argmax(bounds))
        i, j = blocks[place]
        if i < j and bounds[place] > enough:
            middle = (i + j) // 2
            if self._about(eps, middle, notes[i, j].nearby) >= likely:
                values[place] = self._bound(eps, level, middle, middle, notes[i, j].nearby, enough, hint)[0]
        return list(zip(values, values, bounds))


def _size(law: CloneLaw) -> int:
    return law.rates.size + 1000


def _noted(several: list[SearchBox]) -> tuple[dict[IntRange, SearchBox], list[IntRange]]:
    """Return the blocks, each with its note."""
    return {held.block: held for held in several}, [held.block for held in several]


def _same(margin: float, best: float) -> float:
    """Return the margin, whatever the best value."""
    return margin


def _total(log_delta: float, terms: Terms) -> float:
    """Return log(scale delta + tail)."""
    return float(np.logaddexp(log_delta + terms.log_scale, terms.log_tail))
