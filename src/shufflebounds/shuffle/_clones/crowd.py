"""All users with their budgets: bounds of one target's loss, or of every target's in a range, and the search for the worst."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from shufflebounds._search import Interval, halves, maximum
from shufflebounds._types import FloatArray
from shufflebounds.profile._budget import Budget
from shufflebounds.shuffle._clones.blanket import blanket_shares, log_blanket_delta
from shufflebounds.shuffle._clones.families import Family, RandomizedResponse, Terms
from shufflebounds.shuffle._clones.law import CloneLaw, log_clone_delta, log_estimate

__all__ = ["TOLERANCE", "Crowd"]

TOLERANCE = 1e-3
"""How far apart the sides over all users may stay in log delta, down to 1e-20; below, a twentieth of it for a unit of log delta."""

SKETCH = 2**7
"""Groups in an estimate."""

LEVELS = (2**10, 2**14, 2**17)
"""Groups on the levels of the search over targets."""

MAX_EVALUATIONS = 20000

MEMORY = 2**23
"""Rates kept for another eps."""

Pair = tuple[float, float]


NOBODY = 1e-6
"""Of so small a chance that anybody hides the target, next to nothing can be made."""


class _Level(NamedTuple):
    """The budgets in groups of neighbours; a group counts as its less useful end, so that every rate is rounded down."""

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
    laws: OrderedDict[Any, CloneLaw] = field(default_factory=OrderedDict)
    held: int = 0

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
        """Return `_clones`, kept for another eps where it is the law of one target."""
        key = (kind, terms.reach, level, i)
        law = self.laws.get(key) if i == j else None
        if law is not None:
            self.laws.move_to_end(key)
            return law
        law = self._clones(kind, terms, self.levels[level], i, j)
        if i == j:
            self.laws[key] = law
            self.held += law.rates.size + 1000
            while self.held > MEMORY and len(self.laws) > 2:
                self.held -= self.laws.popitem(last=False)[1].rates.size + 1000
        return law

    def _terms(self, kind: str, eps: float, i: int, j: int, log_mass: float) -> Terms:
        low, high = float(self.budgets[i]), float(self.budgets[j])
        return self.family.window(log_mass, low, high, eps) if kind == "window" else self.family.terms(kind, low, high)

    def value(self, kind: str, eps: float, level: int, i: int, j: int, log_mass: float = 0.0) -> Pair:
        """Return bounds of one decomposition's log delta for every target in i..j."""
        terms = self._terms(kind, eps, i, j, log_mass)
        law = self._law(kind, terms, level, i, j)
        sides = log_clone_delta(law, Budget(terms.local_eps), eps)
        lower, upper = (_total(side, terms) for side in sides)
        return lower, min(upper, 0.0)

    def estimate(self, kind: str, eps: float, i: int, j: int, log_mass: float = 0.0) -> float:
        """Return `value`, roughly: to choose among bounds, never as one."""
        terms = self._terms(kind, eps, i, j, log_mass)
        return _total(log_estimate(self._clones(kind, terms, self.sketch, i, j), Budget(terms.local_eps), eps), terms)

    def _useful_window(self, i: int) -> bool:
        # a pure family needs the window only for users of larger budget
        pure = self.family.pure_epsilon(float(self.budgets[i])) < math.inf
        return self.family.windowed and not (pure and i == self.budgets.size - 1)

    def _log_mass(self, eps: float, i: int, j: int, start: float | None = None) -> float:
        """Return a good mass to leave outside the window of targets i..j: any mass gives a bound, this one nearly the smallest."""
        values: dict[float, float] = {}

        def at(log_mass: float) -> float:
            if log_mass not in values:
                values[log_mass] = self.estimate("window", eps, i, j, log_mass) if log_mass < -0.7 else math.inf
            return values[log_mass]

        if start is None:
            best, trial, worse = -2.0, -4.0, 0
            while worse < 2 and trial > -1e6:
                # of masses that say the same the largest: blocks with users of larger budgets start from it
                worse = worse + 1 if at(trial) > at(best) - 1e-9 else 0
                best = min(trial, best, key=at)
                trial *= 1.6
            best = float(round(best))
            step = max(1.0, 2.0 ** math.floor(math.log2(abs(best) / 4 + 1)))
        else:
            best, step = start, 2.0
        while step >= 0.5:
            moved = min((best - step, best + step), key=at)
            if at(moved) < at(best) - 1e-12:
                best = moved
            else:
                step /= 2
        return best

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

    def single(self, eps: float, i: int) -> Pair:
        """Return bounds of the smallest proven log delta of target i."""
        if self._nobody_else(i):
            # no window hides anything: what the target leaks alone
            local = self.family.log_local(float(self.budgets[i]), eps)
            return local - 1e-12 * (1 - local), local
        sides = [self.value(kind, eps, self.exact, i, i, mass) for kind, mass in self.candidates(eps, i)]
        blanket = self._blanket(eps, i, i, min(upper for _, upper in sides))
        sides += [blanket] if blanket else []
        local = self.family.log_local(float(self.budgets[i]), eps)
        sides += [(local - 1e-12 * (1 - local), local)] if local < 0 else []
        return min(sides, key=lambda pair: pair[1])

    def _nobody_else(self, i: int) -> bool:
        """Whether target i is the only user, of a family without a pure budget."""
        return float(self.counts.sum()) == 1 and self.family.pure_epsilon(float(self.budgets[i])) == math.inf

    def _blanket(self, eps: float, i: int, j: int, best: float) -> Pair | None:
        if not isinstance(self.family, RandomizedResponse) or self.family.categories == 2:
            return None
        counts = self.counts.copy()
        counts[i] -= 1
        log_none = float(counts @ np.log1p(-np.minimum(blanket_shares(self.budgets, self.family.categories), 1 - 1e-16)))
        if log_none > -NOBODY:
            # hardly anybody sends a message that hides the target: it is as if alone, or in that share of all cases at least
            local = self.family.log_local(float(self.budgets[j]), eps)
            return local + log_none - 1e-12 * (1 - local), local
        return log_blanket_delta(self.budgets, counts, self.family.categories, float(self.budgets[j]), eps, best)

    def _bound(self, eps: float, level: int, i: int, j: int, log_mass: float, enough: float) -> tuple[float, float]:
        """Return an upper bound of the smallest proven log delta of every target in i..j, and the mass it left outside.

        It stops improving once the bound is at most `enough`.
        """
        if i == j and level == self.exact:
            return self.single(eps, i)[1], log_mass
        kinds: list[tuple[str, float]] = [(kind, 0.0) for kind in self.family.kinds]
        if self.family.windowed:
            log_mass = self._log_mass(eps, i, j, log_mass)
            kinds.append(("window", log_mass))
        guesses = [self.estimate(kind, eps, i, j, mass) for kind, mass in kinds]
        best, near = self.family.log_local(float(self.budgets[j]), eps), min(guesses) + 1.0
        for guess, (kind, mass) in sorted(zip(guesses, kinds)):
            if best > enough and guess <= near:
                best = min(best, self.value(kind, eps, level, i, j, mass)[1])
        if best > enough:
            blanket = self._blanket(eps, i, j, best)
            best = min(best, blanket[1]) if blanket else best
        return best, log_mass

    def every(self, eps: float, guess: int, tolerance: float = TOLERANCE) -> tuple[float, float, int]:
        """Return bounds of the largest log delta over all targets, and a target that attains the lower one.

        One search on each level of grouping: what a coarser one leaves above the bound of the worst target is searched on the next.
        """
        size = self.budgets.size
        best, (lower, upper) = guess, self.single(eps, guess)
        if self._nobody_else(guess):
            return lower, upper, guess
        for end in {0, size - 1} - {guess}:
            sides = self.single(eps, end)
            if sides[0] > lower:
                best, (lower, upper) = end, sides
        mass = self._log_mass(eps, best, best) if self.family.windowed else 0.0
        edges = np.unique(np.linspace(0, size, min(size, 8) + 1).astype(int))
        blocks = [(int(a), int(b) - 1) for a, b in pairwise(edges)]
        masses = dict.fromkeys(blocks, mass)
        pruned, left = -math.inf, MAX_EVALUATIONS // 2

        def split(block: Interval) -> list[Interval]:
            pieces = halves(block)
            masses.update(dict.fromkeys(pieces, masses[block]))
            return pieces

        for level in range(self.exact + 1):
            slack = tolerance * max(1.0, -lower / 20) if lower > -math.inf else 0.0
            margin = slack if level == self.exact else slack / 2
            known = self._bound(eps, level, best, best, mass, -math.inf)[0]
            measure = partial(self._measured, eps, level, masses)
            found = maximum(blocks, measure, split, tolerance=partial(_same, margin), known=known, most=left)
            left -= found.measured
            if found.best is not None:
                middle = sum(found.best) // 2
                sides = self.single(eps, middle)
                if sides[0] > lower:
                    best, (lower, upper) = middle, sides
            top = max([bound for bound, _ in found.left])
            if top <= upper + slack or left <= 0:
                break
            blocks = [block for bound, block in found.left if bound > upper + margin]
            pruned = max([pruned, *(bound for bound, _ in found.left if bound <= upper + margin)])
        return lower, max(upper, pruned, top), best

    def _measured(
        self, eps: float, level: int, masses: dict[Interval, float], blocks: Sequence[Interval], enough: float
    ) -> list[tuple[float, float, float]]:
        """Return for each block of targets, on a level of grouping, the bound of all and of one, twice.

        That one is the target itself where there is no other, or the one in the middle of the block of largest bound.
        """
        bounds = []
        for block in blocks:
            bound, masses[block] = self._bound(eps, level, *block, masses[block], enough)
            bounds.append(bound)
        values = [bound if i == j else -math.inf for bound, (i, j) in zip(bounds, blocks)]
        place = int(np.argmax(bounds))
        i, j = blocks[place]
        if i < j and bounds[place] > enough:
            middle = (i + j) // 2
            values[place] = self._bound(eps, level, middle, middle, masses[i, j], enough)[0]
        return list(zip(values, values, bounds))


def _same(margin: float, best: float) -> float:
    """Return the margin, whatever the best value."""
    return margin


def _total(log_delta: float, terms: Terms) -> float:
    """Return log(scale delta + tail)."""
    total = log_delta + terms.log_scale
    return float(np.logaddexp(total, terms.log_tail)) if terms.log_tail > -math.inf else total
