"""Guarantees of one user, or of every user, among users whose budgets differ: the smallest of the proven bounds."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np

from shufflebounds._search import Interval, halves, maximum
from shufflebounds._types import Bound, FloatArray
from shufflebounds.composing import Knowledge
from shufflebounds.profile import PrivacyProfile
from shufflebounds.profile._budget import Budget
from shufflebounds.profile.roots import solve
from shufflebounds.shuffle._clones.blanket import log_blanket_delta
from shufflebounds.shuffle._clones.families import Family, RandomizedResponse, Terms
from shufflebounds.shuffle._clones.law import CloneLaw, log_clone_delta, log_estimate

__all__ = ["Crowd", "OfEveryUser", "OfOneUser"]

TOLERANCE = 1e-3        # relative, in delta, down to 1e-20; of log delta it is a twentieth of that, below
SKETCH = 2**7           # groups in an estimate
LEVELS = (2**10, 2**14, 2**17)
MAX_EVALUATIONS = 20000
MEMORY = 2**23          # rates kept for another eps
Pair = tuple[float, float]


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
                worse = worse + 1 if at(trial) > at(best) else 0
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
        sides = [self.value(kind, eps, self.exact, i, i, mass) for kind, mass in self.candidates(eps, i)]
        blanket = self._blanket(eps, i, i, min(upper for _, upper in sides))
        sides += [blanket] if blanket else []
        local = self.family.log_local(float(self.budgets[i]), eps)
        sides += [(local - 1e-12 * (1 - local), local)] if local < 0 else []
        return min(sides, key=lambda pair: pair[1])

    def _blanket(self, eps: float, i: int, j: int, best: float) -> Pair | None:
        if not isinstance(self.family, RandomizedResponse) or self.family.categories == 2:
            return None
        counts = self.counts.copy()
        counts[i] -= 1
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


def _just_below(delta: float) -> float:
    """Return log delta, less what the rounding of the exponential may add."""
    return math.log(delta) * (1 + 4e-16) - 4e-15


def _total(log_delta: float, terms: Terms) -> float:
    """Return log(scale delta + tail)."""
    total = log_delta + terms.log_scale
    return float(np.logaddexp(total, terms.log_tail)) if terms.log_tail > -math.inf else total


@dataclass(frozen=True, eq=False)
class _Guarantee(PrivacyProfile):
    """What the two guarantees share: the parameters, equality and the repr."""

    crowd: Crowd
    description: str
    parameters: dict[str, Any]
    target: int | None

    neighbours: ClassVar[str] = (
        "replace one user's input, every user keeping budget and randomizer; the analyst sees the shuffled messages"
    )

    def _knowledge(self) -> Knowledge:
        # a minimum of convex bounds is not convex
        return replace(super()._knowledge(), convex=False, spacing=0.1, seconds=5e-3)

    @property
    def users(self) -> int:
        """Number of users, the target included."""
        return int(self.crowd.counts.sum())

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Guarantee)
            and isinstance(other, type(self))
            and (self.crowd.family, self.target) == (other.crowd.family, other.target)
            and np.array_equal(self.crowd.budgets, other.crowd.budgets)
            and np.array_equal(self.crowd.counts, other.crowd.counts)
        )

    def __hash__(self) -> int:
        return hash((type(self), self.crowd.family, self.target, self.crowd.budgets.tobytes(), self.crowd.counts.tobytes()))

    def __repr__(self) -> str:
        budgets = self.crowd.budgets
        shown = [f"<{self.users} users, {budgets.size} distinct>"]
        shown += [f"{name}={value!r}" for name, value in self.parameters.items()]
        return f"PersonalizedClones.{self.description}({', '.join(shown)}, target={self.target})"


@dataclass(frozen=True, eq=False, repr=False)
class OfOneUser(_Guarantee):
    """The guarantee of one user among users with their own budgets; see PersonalizedClones."""

    index: int = 0

    theorem: ClassVar[str] = (
        "upper bound of one user's loss, proven for the named family: the smallest of the clone decompositions S1, S2 and window "
        "(after Feldman, McMillan, Talwar 2023, with personal rates) and, for k-ary randomized response, the privacy blanket "
        "(after Balle, Bell, Gascon, Nissim 2019)"
    )

    def _log_delta(self, eps: FloatArray) -> tuple[FloatArray, FloatArray]:
        sides = np.array([self.crowd.single(float(e), self.index) for e in eps])
        return sides[:, 0], sides[:, 1]

    def _pure_epsilon(self) -> float:
        return self.crowd.family.pure_epsilon(float(self.crowd.budgets[self.index]))

    def _epsilon(self, delta: float, bound: Bound) -> float:
        crowd, i = self.crowd, self.index
        if not crowd.exact or delta in (0, 1):
            return super()._epsilon(delta, bound)
        # a solve with grouped budgets names the decomposition; its clones are then counted once for all eps
        upper = bound == "upper"
        target = _just_below(delta) if upper else float(np.nextafter(math.log(delta), np.inf))
        pure = self._pure_epsilon()

        def at(eps: float, level: int, one: tuple[str, float]) -> float:
            return crowd.value(one[0], eps, level, i, i, one[1])[1 if level == 0 else upper]

        def grouped(eps: float) -> float:
            return min(at(eps, 0, one) for one in crowd.candidates(eps, i))

        about = solve(grouped, target, pure, upper=True)
        if about >= pure:
            return super()._epsilon(delta, bound)
        eps, chosen = about, None
        for _ in range(3):
            best = min(crowd.candidates(eps, i), key=partial(at, eps, 0))
            if best == chosen:
                break
            chosen = best
            eps = solve(partial(at, level=crowd.exact, one=best), target, pure, upper=upper)
        step = 1e-13 * eps
        while (crowd.single(eps, i)[1] > target) if upper else (eps > 0 and crowd.single(eps, i)[0] < target):
            eps = eps + step if upper else max(0.0, eps - step)
            step *= 4
            if upper and eps >= pure:
                return pure
        return eps


@dataclass(frozen=True, eq=False, repr=False)
class OfEveryUser(_Guarantee):
    """The guarantee of every user among users with their own budgets; see PersonalizedClones."""

    theorem: ClassVar[str] = (
        "upper bound of every user's loss, proven for the named family: the maximum over all users (none assumed to be the worst) "
        "of the smallest of the clone decompositions S1, S2 and window and, for k-ary randomized response, the privacy blanket"
    )

    _seen: list[int] = field(default_factory=list, init=False)

    def _knowledge(self) -> Knowledge:
        return replace(super()._knowledge(), spacing=0.3, seconds=0.3)

    def _pure_epsilon(self) -> float:
        return self.crowd.family.pure_epsilon(float(self.crowd.budgets[-1]))

    def _guess(self) -> int:
        return self._seen[-1] if self._seen else self.crowd.budgets.size - 1

    def _log_delta(self, eps: FloatArray) -> tuple[FloatArray, FloatArray]:
        out = np.empty((2, eps.size))
        for i, e in enumerate(eps):
            out[0, i], out[1, i], best = self.crowd.every(float(e), self._guess())
            self._seen[:] = [best]
        return out[0], out[1]

    def worst_user(self, eps: float) -> float:
        """Return the budget of the user whose bound of delta at eps is the largest that the search met."""
        *_, best = self.crowd.every(float(eps), self._guess())
        return float(self.crowd.budgets[best])

    def _of(self, index: int) -> OfOneUser:
        return OfOneUser(self.crowd, self.description, self.parameters, index, index)

    def _epsilon(self, delta: float, bound: Bound) -> float:
        """Return the largest eps(delta) of the worst users met, moved outward until the bound of all users is met."""
        if delta in (0, 1):
            return super()._epsilon(delta, bound)
        goal = _just_below(delta)
        best, tolerance = self._guess(), 50 * TOLERANCE
        eps, tried = -1.0, set()
        while True:
            if best not in tried:
                tried.add(best)
                eps = max(eps, self._of(best)._epsilon(delta, bound))
                if eps >= self._pure_epsilon():
                    return eps
            _, upper, best = self.crowd.every(eps, best, tolerance)
            if best in tried:
                if tolerance > TOLERANCE:
                    tolerance = TOLERANCE
                    continue
                break
        self._seen[:] = [best]
        if bound == "lower":
            return eps
        # the search over users is tight to its tolerance only: the slope is that of the worst user
        reach = 1e-4 * eps + 1e-12
        pure = self._pure_epsilon()
        while upper > goal:
            here, there = (self.crowd.single(e, best)[1] for e in (eps, eps + reach))
            slope = max((here - there) / reach, 1e-300)
            eps += max(1.02 * (upper - goal) / slope, 1e-13 * eps)
            if eps >= pure:
                return pure
            _, upper, best = self.crowd.every(eps, best)
        return eps
