"""Guarantees of one user, or of every user, among users whose budgets differ: the smallest of the proven bounds."""

from __future__ import annotations

import heapq
import math
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from shufflebounds.profile import Bound, FloatArray, PrivacyProfile
from shufflebounds.shuffle._blanket import log_blanket_delta
from shufflebounds.shuffle._clone_law import CloneLaw, log_clone_delta
from shufflebounds.shuffle._decompositions import Family, RandomizedResponse, Terms

__all__ = ["Crowd", "OfEveryUser", "OfOneUser"]

TOLERANCE = 1e-3        # relative, in delta, down to 1e-20; of log delta it is a twentieth of that, below
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
    masses: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.levels = [self._grouped(size) for size in LEVELS if size < self.budgets.size]
        self.levels.append(_Level(np.arange(self.budgets.size), self.budgets, self.budgets, self.counts))
        self.exact = len(self.levels) - 1

    def _grouped(self, size: int) -> _Level:
        starts = np.arange(size) * self.budgets.size // size
        ends = np.append(starts[1:], self.budgets.size) - 1
        return _Level(starts, self.budgets[starts], self.budgets[ends], np.add.reduceat(self.counts, starts))

    def _law(self, key: tuple[Any, ...], terms: Terms, level: int, i: int, j: int) -> CloneLaw:
        """Return the clones among the users other than a target in i..j."""
        law = self.laws.get(key)
        if law is not None:
            self.laws.move_to_end(key)
            return law
        kind, group = key[0], self.levels[level]
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
        law = CloneLaw(least, counts)
        self.laws[key] = law
        while sum(kept.rates.size + 500 for kept in self.laws.values()) > MEMORY and len(self.laws) > 2:
            self.laws.popitem(last=False)
        return law

    def value(self, kind: str, eps: float, level: int, i: int, j: int, log_mass: float = 0.0) -> Pair:
        """Return bounds of one decomposition's log delta for every target in i..j."""
        low, high = float(self.budgets[i]), float(self.budgets[j])
        windowed = kind == "window"
        terms = self.family.window(log_mass, low, high, eps) if windowed else self.family.terms(kind, low, high)
        law = self._law((kind, terms.reach, level, i, j), terms, level, i, j)
        lower, upper = log_clone_delta(law, terms.local_eps, eps)
        lower, upper = lower + terms.log_scale, upper + terms.log_scale
        if terms.log_tail > -math.inf:
            lower, upper = (float(np.logaddexp(side, terms.log_tail)) for side in (lower, upper))
        return lower, min(upper, 0.0)

    def _useful_window(self, i: int) -> bool:
        # a pure family needs the window only for users of larger budget
        pure = self.family.pure_epsilon(float(self.budgets[i])) < math.inf
        return self.family.windowed and not (pure and i == self.budgets.size - 1)

    def _log_mass(self, eps: float, i: int) -> float:
        """Return a good mass to leave outside the window of target i: any mass gives a bound, this one nearly the smallest."""
        values: dict[float, float] = {}

        def at(log_mass: float) -> float:
            if log_mass not in values:
                values[log_mass] = self.value("window", eps, 0, i, i, log_mass)[1] if log_mass < -0.7 else 0.0
            return values[log_mass]

        best = self.masses.get(i)
        if best is None:
            best, trial, worse = -2.0, -4.0, 0
            while worse < 2 and trial > -1e5:
                worse = 0 if at(trial) < at(best) else worse + 1
                best = min(best, trial, key=at)
                trial *= 1.6
            best = round(best)
            step = max(1.0, 2.0 ** math.floor(math.log2(abs(best) / 4 + 1)))
        else:
            step = 2.0
        while step >= 0.5:
            moved = min((best - step, best + step), key=at)
            if at(moved) < at(best) - 1e-12:
                best = moved
                continue
            step /= 2
        self.masses[i] = best
        return best

    def single(self, eps: float, i: int) -> Pair:
        """Return bounds of the smallest proven log delta of target i."""
        kinds: list[tuple[str, float]] = [(kind, 0.0) for kind in self.family.kinds]
        if self._useful_window(i):
            kinds.append(("window", self._log_mass(eps, i)))
        rough = [self.value(kind, eps, 0, i, i, mass) for kind, mass in kinds]
        best = min(upper for _, upper in rough)
        if self.exact and best > -math.inf:
            # grouping costs less than this: only what may be the smallest is evaluated in full
            near = best + 0.02 * max(1.0, -best / 10)
            rough = [self.value(kind, eps, self.exact, i, i, mass)
                     for (kind, mass), (_, upper) in zip(kinds, rough) if upper <= near]
        blanket = self._blanket(eps, i, i, min(upper for _, upper in rough))
        rough += [blanket] if blanket else []
        return min(lower for lower, _ in rough), min(upper for _, upper in rough)

    def _blanket(self, eps: float, i: int, j: int, best: float) -> Pair | None:
        if not isinstance(self.family, RandomizedResponse) or self.family.categories == 2:
            return None
        counts = self.counts.copy()
        counts[i] -= 1
        return log_blanket_delta(self.budgets, counts, self.family.categories, float(self.budgets[j]), eps, best)

    def bound(self, eps: float, level: int, i: int, j: int, log_mass: float | None) -> float:
        """Return an upper bound of the smallest proven log delta of every target in i..j."""
        values = [self.value(kind, eps, level, i, j)[1] for kind in self.family.kinds]
        if log_mass is not None:
            values.append(self.value("window", eps, level, i, j, log_mass)[1])
        best = min(values)
        blanket = self._blanket(eps, i, j, best)
        return min(best, blanket[1]) if blanket else best

    def every(self, eps: float, guess: int, tolerance: float = TOLERANCE) -> tuple[float, float, int]:
        """Return bounds of the largest log delta over all targets, and a target that attains the lower one."""
        size = self.budgets.size
        best, (lower, upper) = guess, self.single(eps, guess)
        for end in (0, size - 1):
            sides = self.single(eps, end)
            if sides[0] > lower:
                best, (lower, upper) = end, sides
        edges = np.unique(np.linspace(0, size, min(size, 8) + 1).astype(int))
        frontier = [(int(a), int(b) - 1) for a, b in zip(edges[:-1], edges[1:])]
        pruned = -math.inf
        evaluations = 0
        for level in range(self.exact + 1):
            slack = tolerance * max(1.0, -lower / 20) if lower > -math.inf else 0.0
            mass = self._log_mass(eps, best) if self.family.windowed else None
            soft = self.bound(eps, level, best, best, mass)
            soft_best = best
            heap = [(-self.bound(eps, level, i, j, mass), i, j) for i, j in frontier]
            heapq.heapify(heap)
            while -heap[0][0] > soft + slack / 2 and evaluations < MAX_EVALUATIONS:
                value, i, j = heap[0]
                if i == j:
                    soft, soft_best = -value, i
                    continue
                heapq.heappop(heap)
                middle = (i + j) // 2
                for a, b in ((i, middle), (middle + 1, j)):
                    # at most the bound of the whole interval, whichever rounding served there
                    heapq.heappush(heap, (-min(-value, self.bound(eps, level, a, b, mass)), a, b))
                trial = self.bound(eps, level, middle, middle, mass)
                evaluations += 3
                if trial > soft:
                    soft, soft_best = trial, middle
            if soft_best != best:
                sides = self.single(eps, soft_best)
                if sides[0] > lower:
                    best, (lower, upper) = soft_best, sides
            top = -heap[0][0]
            if top <= upper + slack or evaluations >= MAX_EVALUATIONS:
                break
            frontier = [(i, j) for value, i, j in heap if -value > upper + slack / 2]
            pruned = max([pruned, *(-value for value, _, _ in heap if -value <= upper + slack / 2)])
        return lower, max(upper, pruned, top), best


@dataclass(frozen=True, eq=False)
class _Guarantee(PrivacyProfile):
    """What the two guarantees share: the parameters, equality and the repr."""

    crowd: Crowd
    description: str
    parameters: dict[str, Any]
    target: int | None

    neighbours: ClassVar[str] = "replace one user's input, every user keeping budget and randomizer; the analyst sees the shuffled messages"

    @property
    def users(self) -> int:
        """Number of users, the target included."""
        return int(self.crowd.counts.sum())

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is type(self)
            and isinstance(other, _Guarantee)
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


@dataclass(frozen=True, eq=False, repr=False)
class OfEveryUser(_Guarantee):
    """The guarantee of every user among users with their own budgets; see PersonalizedClones."""

    theorem: ClassVar[str] = (
        "upper bound of every user's loss, proven for the named family: the maximum over all users (none assumed to be the worst) "
        "of the smallest of the clone decompositions S1, S2 and window and, for k-ary randomized response, the privacy blanket"
    )

    _seen: list[int] = field(default_factory=list, init=False)

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
        goal = float(np.nextafter(math.log(delta), -np.inf))
        best, tolerance = self._guess(), 50 * TOLERANCE
        eps, tried = -1.0, set()
        while True:
            if best not in tried:
                tried.add(best)
                eps = max(eps, self._of(best)._epsilon(delta, bound))
            lower, upper, best = self.crowd.every(eps, best, tolerance)
            if best in tried:
                if tolerance > TOLERANCE:
                    tolerance = TOLERANCE
                    continue
                break
        self._seen[:] = [best]
        if bound == "lower":
            return eps
        step = 1e-6 * eps + 1e-12
        while upper > goal:
            pure = self._pure_epsilon()
            if eps + step >= pure:
                return pure
            trial = self.crowd.every(eps + step, best)
            slope = (upper - trial[1]) / step
            eps, upper, best = eps + step, trial[1], trial[2]
            step = max(1.05 * (upper - goal) / slope, 1e-12 * eps) if slope > 0 else 4 * step
        return eps
