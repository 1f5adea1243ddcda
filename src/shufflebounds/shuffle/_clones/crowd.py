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
from shufflebounds._search import Interval, halves, maximum
from shufflebounds._types import Between, FloatArray
from shufflebounds.composing.kept import Kept
from shufflebounds.profile._budget import Budget
from shufflebounds.shuffle._clones.blanket import blanket_shares, log_blanket_delta, too_large
from shufflebounds.shuffle._clones.families import Family, RandomizedResponse, Terms
from shufflebounds.shuffle._clones.law import CloneLaw, log_clone_delta, log_estimates

__all__ = ["TOLERANCE", "Crowd", "Held"]

TOLERANCE = 1e-3
"""How far apart the sides over all users may stay in log delta, down to 1e-20; below, a twentieth of it for a unit of log delta."""

SKETCH = 2**7
"""Groups in an estimate."""

LEVELS = (2**10, 2**14, 2**17)
"""Groups on the levels of the search over targets."""

MAX_EVALUATIONS = 20000

MEMORY = 2**23
"""Rates kept for another eps."""

NOBODY = 1e-6
"""Of so small a chance that anybody hides the target, next to nothing can be made."""


class Held(NamedTuple):
    """What bounds all targets of a block: a decomposition on a level of grouping, or the smallest of all where none is named.

    `nearby` is the mass at which windows of the block's halves are looked for.
    """

    block: Interval
    level: int
    kind: str
    log_mass: float
    nearby: float


class _Level(NamedTuple):
    """The budgets in groups of neighbours. A group counts as its less useful end, which rounds every rate down."""

    starts: Any
    low: FloatArray
    high: FloatArray
    counts: FloatArray


@dataclass
class Crowd:
    """All users: distinct budgets in increasing order, how many hold each, and the family they share."""

    family: Family
    budgets: FloatArray
    counts: FloatArray
    laws: Kept[Any, CloneLaw] = field(default_factory=lambda: Kept(MEMORY, _size))

    def __post_init__(self) -> None:
        self.levels = [self._grouped(size) for size in LEVELS if self.budgets.size > size]
        self.levels.append(_Level(np.arange(self.budgets.size), self.budgets, self.budgets, self.counts))
        self.exact = len(self.levels) - 1
        self.sketch = self.levels[-1]
        if self.budgets.size > SKETCH:
            group = self._grouped(SKETCH)
            middle = (group.low + group.high) / 2
            self.sketch = group._replace(low=middle, high=middle)

    def _grouped(self, size: int) -> _Level:
        starts = np.arange(size) * self.budgets.size // size
        ends = np.append(starts[1:], self.budgets.size) - 1
        return _Level(starts, self.budgets[starts], self.budgets[ends], np.add.reduceat(self.counts, starts))

    def _clones(self, kind: str, terms: Terms, group: _Level, i: int, j: int) -> CloneLaw:
        """Return the clones among the users other than a target in i..j."""
        low, high = float(self.budgets[i]), float(self.budgets[j])

        def rates(budgets: FloatArray) -> FloatArray:
            if kind == "window":
                return self.family.window_rates(terms.reach, low, high, budgets)
            return self.family.rates(kind, low, high, budgets)

        least = rates(group.low)
        if group.high is not group.low:
            least = np.minimum(least, rates(group.high))
        # the target is one of the users of groups first..last; taking out the best of them is the worst case
        first, last = np.searchsorted(group.starts, [i, j], side="right") - 1
        counts = group.counts.copy()
        counts[first + int(np.argmax(least[first : last + 1]))] -= 1
        return CloneLaw(least, counts)

    def _law(self, kind: str, terms: Terms, level: int, i: int, j: int) -> CloneLaw:
        """Return `_clones`, kept for another eps."""
        return self.laws.of((kind, terms.reach, level, i, j), lambda: self._clones(kind, terms, self.levels[level], i, j))

    def _terms(self, kind: str, eps: float, i: int, j: int, log_mass: float) -> Terms:
        low, high = float(self.budgets[i]), float(self.budgets[j])
        return self.family.window(log_mass, low, high, eps) if kind == "window" else self.family.terms(kind, low, high)

    def value(self, kind: str, eps: float, level: int, i: int, j: int, log_mass: float = 0.0) -> Between:
        """Return bounds of one decomposition's log delta for every target in i..j."""
        terms = self._terms(kind, eps, i, j, log_mass)
        law = self._law(kind, terms, level, i, j)
        sides = log_clone_delta(law, Budget(terms.local_eps), eps)
        lower, upper = (_total(side, terms) for side in sides)
        return Between(lower, min(upper, 0.0))

    def estimate(self, kind: str, eps: float, i: int, j: int, log_mass: float = 0.0) -> float:
        """Return about what `value` says: good for a choice among bounds, no bound itself."""
        low, high = float(self.budgets[i]), float(self.budgets[j])
        if kind == "window":
            return self._of_windows(eps, i, j, [log_mass])[0]
        terms = self.family.terms(kind, low, high)
        return self._estimates(self.family.rates(kind, low, high, self.sketch.low)[None], [terms], eps, i, j)[0]

    def _of_windows(self, eps: float, i: int, j: int, masses: Sequence[float]) -> list[float]:
        """Return `estimate` for windows that leave these masses outside, all in one pass."""
        low, high = float(self.budgets[i]), float(self.budgets[j])
        several = [self.family.window(mass, low, high, eps) for mass in masses]
        reaches = np.array([[terms.reach] for terms in several])
        return self._estimates(self.family.window_rates(reaches, low, high, self.sketch.low), several, eps, i, j)

    def _estimates(self, rates: FloatArray, several: Sequence[Terms], eps: float, i: int, j: int) -> list[float]:
        first, last = np.searchsorted(self.sketch.starts, [i, j], side="right") - 1
        logs = log_estimates(rates, self.sketch.counts, rates[:, first : last + 1].max(axis=1),
                             [Budget(terms.local_eps) for terms in several], eps)
        return [_total(value, terms) for value, terms in zip(logs, several)]

    def _useful_window(self, i: int) -> bool:
        # a pure family needs the window only for users of larger budget
        pure = self.family.pure_epsilon(float(self.budgets[i])) < math.inf
        return self.family.windowed and not (pure and i == self.budgets.size - 1)

    def _log_mass(self, eps: float, i: int, j: int, start: float | None = None) -> float:
        """Return the mass to leave outside the window of targets i..j: any gives a bound, this one nearly the smallest."""
        values: dict[float, float] = {}

        def look(masses: Sequence[float]) -> None:
            fresh = [mass for mass in masses if mass not in values]
            allowed = [mass for mass in fresh if mass < -0.7]
            values.update(dict.fromkeys(fresh, math.inf))
            if allowed:
                values.update(zip(allowed, self._of_windows(eps, i, j, allowed)))

        if start is not None:
            look([2 * start, 1.25 * start, start, 0.8 * start, 0.5 * start])
        # a mass that was good nearby is taken where those on both sides of it are worse
        near = start is not None and min(values, key=values.__getitem__) not in (2 * start, 0.5 * start)
        trials = [-1.25]
        while not near:
            trials = [trials[-1] * 1.6 ** (k + 1) for k in range(8)]
            look(trials)
            least = min(values.values())
            # a smaller mass outside no longer changes the sum
            if values[trials[-1]] > least + 1e-9 or trials[-1] < max(2 * least - 20, -1e6):
                break
        # among equally good masses the largest: blocks with users of larger budgets start from it
        least = min(values.values())
        best = max(mass for mass, value in values.items() if value <= least + 1e-9)
        best = 0.5 * round(2 * best)
        step = max(1.0, 2.0 ** math.floor(math.log2(abs(best) / 4 + 1)))
        while True:
            around = [best + step * part for part in (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0)]
            look(around)
            moved = min(around, key=values.__getitem__)
            if values[moved] >= values[best] - 1e-12:
                if step <= 1.0:
                    return best
                step = max(1.0, step / 4)
            best = moved if values[moved] < values[best] - 1e-12 else best

    def candidates(self, eps: float, i: int) -> list[tuple[str, float]]:
        """Return the decompositions of target i that may be the smallest, with the windows' masses."""
        kinds: list[tuple[str, float]] = [(kind, 0.0) for kind in self.family.kinds]
        if self._useful_window(i):
            kinds.append(("window", self._log_mass(eps, i, i)))
        if not self.exact or len(kinds) == 1:
            return kinds
        # only what may be the smallest is evaluated in full
        guesses = [self.estimate(kind, eps, i, i, mass) for kind, mass in kinds]
        near = min(guesses) + 1.0
        kinds = [kind for kind, guess in zip(kinds, guesses) if guess <= near]
        if len(kinds) == 1:
            return kinds
        values = [self.value(kind, eps, 0, i, i, mass)[1] for kind, mass in kinds]
        near = min(values)
        near = near + 0.02 * max(1.0, -near / 10) if near > -math.inf else near
        return [kind for kind, value in zip(kinds, values) if value <= near]

    def single(self, eps: float, i: int) -> Between:
        """Return bounds of the smallest proven log delta of target i."""
        if self._nobody_else(i):
            # no window hides anything: what the target leaks alone
            local = self.family.log_local(float(self.budgets[i]), eps)
            return Between(local - 1e-12 * (1 - local), local)
        sides = [self.value(kind, eps, self.exact, i, i, mass) for kind, mass in self.candidates(eps, i)]
        blanket = self._blanket(eps, i, i, min(upper for _, upper in sides))
        sides += [blanket] if blanket else []
        local = self.family.log_local(float(self.budgets[i]), eps)
        sides += [Between(local - 1e-12 * (1 - local), local)] if local < 0 else []
        return min(sides, key=lambda pair: pair[1])

    def _nobody_else(self, i: int) -> bool:
        """Whether target i is the only user, of a family without a pure budget."""
        return float(self.counts.sum()) == 1 and self.family.pure_epsilon(float(self.budgets[i])) == math.inf

    def _blanket(self, eps: float, i: int, j: int, best: float) -> Between | None:
        if not isinstance(self.family, RandomizedResponse) or self.family.categories == 2:
            return None
        shares, log_others = self._shares
        log_none = float(log_others.sum() - log_others[i] / self.counts[i])
        if log_none > -NOBODY:
            # hardly anybody hides the target: above, nobody does; below, the cases in which nobody does
            local = self.family.log_local(float(self.budgets[j]), eps)
            return Between(local + log_none - 1e-12 * (1 - local), local)
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

    def _bound(self, eps: float, level: int, i: int, j: int, log_mass: float, enough: float) -> tuple[float, Held]:
        """Return an upper bound of the smallest proven log delta of every target in i..j, and where it comes from.

        It stops improving once the bound is at most `enough`.
        """
        if i == j and level == self.exact:
            return self.single(eps, i)[1], Held((i, j), level, "", 0.0, log_mass)
        kinds: list[tuple[str, float]] = [(kind, 0.0) for kind in self.family.kinds]
        if self.family.windowed:
            log_mass = self._log_mass(eps, i, j, log_mass)
            kinds.append(("window", log_mass))
        guesses = [self.estimate(kind, eps, i, j, mass) for kind, mass in kinds]
        best, near = (self.family.log_local(float(self.budgets[j]), eps), ("", 0.0)), min(guesses) + 1.0
        for guess, (kind, mass) in sorted(zip(guesses, kinds)):
            if best[0] > enough and guess <= near:
                best = min(best, (self.value(kind, eps, level, i, j, mass)[1], (kind, mass)))
        if best[0] > enough:
            blanket = self._blanket(eps, i, j, best[0])
            best = min(best, (blanket[1], ("", 0.0))) if blanket else best
        return best[0], Held((i, j), level, *best[1], log_mass)

    def _again(self, eps: float, held: Held, enough: float) -> float:
        """Return the bound of a block by what bounded it at another eps."""
        if held.kind:
            return self.value(held.kind, eps, held.level, *held.block, held.log_mass)[1]
        return self._bound(eps, held.level, *held.block, held.nearby, enough)[0]

    def every(
        self, eps: float, guess: int, tolerance: float = TOLERANCE, frontier: list[Held] | None = None
    ) -> tuple[float, float, int]:
        """Return bounds of the largest log delta over all targets, and a target that attains the lower one.

        One search on each level of grouping: what a coarser one leaves above the bound of the worst target is searched on the next.
        The frontier is what bounded all targets at an eps nearby, or empty, and becomes what does at this one.
        """
        size = self.budgets.size
        best, (lower, upper) = guess, self.single(eps, guess)
        if self._nobody_else(guess):
            return lower, upper, guess
        for end in {0, size - 1} - {guess}:
            sides = self.single(eps, end)
            if sides[0] > lower:
                best, (lower, upper) = end, sides
        frontier = [] if frontier is None else frontier
        pruned, notes, blocks = self._start(eps, best, upper + tolerance / 2, frontier)
        left, top = MAX_EVALUATIONS // 2, -math.inf

        def split(block: Interval) -> list[Interval]:
            pieces = halves(block)
            notes.update((piece, notes[block]._replace(block=piece)) for piece in pieces)
            return pieces

        for level in range(self.exact + 1 if blocks else 0):
            slack = tolerance * max(1.0, -lower / 20) if lower > -math.inf else 0.0
            margin = slack if level == self.exact else slack / 2
            known = self._bound(eps, level, best, best, notes[blocks[0]].nearby, -math.inf)[0]
            measure = partial(self._measured, eps, level, notes)
            found = maximum(blocks, measure, split, tolerance=partial(_same, margin), known=known, most=left)
            left -= found.measured
            if found.best is not None:
                middle = sum(found.best) // 2
                sides = self.single(eps, middle)
                if sides[0] > lower:
                    best, (lower, upper) = middle, sides
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
        self, eps: float, best: int, enough: float, frontier: list[Held]
    ) -> tuple[float, dict[Interval, Held], list[Interval]]:
        """Return the bound of the blocks that the frontier serves, all that it keeps, and the other blocks with a note of each."""
        if frontier:
            bounds = [self._again(eps, held, enough) for held in frontier]
            failing = [held for bound, held in zip(bounds, frontier) if bound > enough]
            frontier[:] = [held for bound, held in zip(bounds, frontier) if bound <= enough]
            return max([bound for bound in bounds if bound <= enough], default=-math.inf), *_noted(failing)
        mass = self._log_mass(eps, best, best) if self.family.windowed else 0.0
        edges = np.unique(np.linspace(0, self.budgets.size, min(self.budgets.size, 8) + 1).astype(int))
        return -math.inf, *_noted([Held((int(a), int(b) - 1), 0, "", mass, mass) for a, b in pairwise(edges)])

    def _measured(
        self, eps: float, level: int, notes: dict[Interval, Held], blocks: Sequence[Interval], enough: float
    ) -> list[tuple[float, float, float]]:
        """Return for each block of targets, on a level of grouping, the bound of all and of one, twice.

        That one is the target itself where there is no other, or the one in the middle of the block of largest bound.
        """
        bounds = []
        for block in blocks:
            bound, notes[block] = self._bound(eps, level, *block, notes[block].nearby, enough)
            bounds.append(bound)
        values = [bound if i == j else -math.inf for bound, (i, j) in zip(bounds, blocks)]
        place = int(np.argmax(bounds))
        i, j = blocks[place]
        if i < j and bounds[place] > enough:
            middle = (i + j) // 2
            values[place] = self._bound(eps, level, middle, middle, notes[i, j].nearby, enough)[0]
        return list(zip(values, values, bounds))


def _size(law: CloneLaw) -> int:
    return law.rates.size + 1000


def _noted(several: list[Held]) -> tuple[dict[Interval, Held], list[Interval]]:
    """Return the blocks, each with its note."""
    return {held.block: held for held in several}, [held.block for held in several]


def _same(margin: float, best: float) -> float:
    """Return the margin, whatever the best value."""
    return margin


def _total(log_delta: float, terms: Terms) -> float:
    """Return log(scale delta + tail)."""
    total = log_delta + terms.log_scale
    return float(np.logaddexp(total, terms.log_tail)) if terms.log_tail > -math.inf else total
