"""Guarantees of one user, or of every user, among users whose budgets differ: the smallest of the proven bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from shufflebounds._types import FloatArray, Sides, at_each
from shufflebounds.composing import Knowledge
from shufflebounds.profile import PrivacyProfile
from shufflebounds.profile.roots import solve
from shufflebounds.shuffle._clones.crowd import TOLERANCE, Crowd, Held

__all__ = ["OfEveryUser", "OfOneUser"]


def _just_below(delta: float) -> float:
    """Return log delta, less what the rounding of the exponential may add."""
    return math.log(delta) * (1 + 4e-16) - 4e-15


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
        # a minimum of convex bounds is not convex, nor is what windows of any width leave: between two values it is known to fall,
        # no more; what composes is the pair of its convex hull, the same in both orders
        family = self.crowd.family
        return replace(
            super()._knowledge(), single=True, convex=len(family.kinds) == 1 and not family.windowed, spacing=0.1, effort=5e-3,
            seconds=family.single_seconds
        )

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
        "upper bound of one user's loss, proven for the named family (noise: for the user's values 0 and 1): "
        "the smallest of the clone decompositions S1, S2 and window "
        "(after Feldman, McMillan, Talwar 2023, with personal rates) and, for k-ary randomized response, the privacy blanket "
        "(after Balle, Bell, Gascon, Nissim 2019)"
    )

    def _log_delta(self, eps: FloatArray) -> Sides:
        return at_each(lambda e: self.crowd.single(e, self.index), eps)

    def _pure_epsilon(self) -> float:
        return self.crowd.family.pure_epsilon(float(self.crowd.budgets[self.index]))

    def _grouped(self, target: float) -> float:
        """Return an eps at which the bound of the log delta with grouped budgets is about the target."""
        crowd, i = self.crowd, self.index

        def log_delta(eps: float) -> float:
            return min(crowd.value(kind, eps, 0, i, i, mass, both=False)[1] for kind, mass in crowd.candidates(eps, i))

        return solve(log_delta, target, self._pure_epsilon(), upper=True, rtol=1e-4)

    def _epsilon(self, delta: float, upper: bool) -> float:
        crowd, i = self.crowd, self.index
        if not crowd.exact or delta in (0, 1):
            return super()._epsilon(delta, upper)
        # a solve with grouped budgets names the decomposition; its clones are then counted once for all eps
        target = _just_below(delta) if upper else float(np.nextafter(math.log(delta), np.inf))
        pure = self._pure_epsilon()

        def at(eps: float, level: int, one: tuple[str, float]) -> float:
            return crowd.value(one[0], eps, level, i, i, one[1])[1 if level == 0 else upper]

        eps, chosen = self._grouped(target), None
        if eps >= pure:
            return super()._epsilon(delta, upper)
        for _ in range(3):
            best = min(crowd.candidates(eps, i), key=partial(at, eps, 0))
            if best == chosen:
                break
            chosen = best
            eps = solve(partial(at, level=crowd.exact, one=best), target, pure, upper=upper, near=eps)
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
        "upper bound of every user's loss, proven for the named family (noise: for the user's values 0 and 1): "
        "the maximum over all users (none assumed to be the worst) "
        "of the smallest of the clone decompositions S1, S2 and window and, for k-ary randomized response, the privacy blanket"
    )

    def _knowledge(self) -> Knowledge:
        family = self.crowd.family
        seconds, setup = family.value_seconds
        # few different budgets are searched anew at every eps
        searches = 1 if self.crowd.exact else 4
        # many values find the worst user among bins of budgets, too
        return replace(super()._knowledge(), stick=partial(self._largest, coarse=True), spacing=0.3,
                       effort=searches * family.effort, setup=setup, seconds=searches * seconds)

    def _effort(self, rtol: float, most: int) -> tuple[float, int]:
        coarse, few = super()._effort(rtol, most)
        # where values are convex the sides meet soon, which is no reason to stop there
        return (max(rtol, 2e-5), few) if self._knowledge().convex else (coarse, few)

    def _pure_epsilon(self) -> float:
        return self.crowd.family.pure_epsilon(float(self.crowd.budgets[-1]))

    def _guess(self) -> int:
        # always the same, so that an answer does not depend on what was asked before
        return self.crowd.budgets.size - 1

    def _log_delta(self, eps: FloatArray) -> Sides:
        return self._largest(eps, coarse=False)

    def _largest(self, eps: FloatArray, *, coarse: bool) -> Sides:
        out, best = np.empty((2, eps.size)), self._guess()
        frontier: list[Held] = []
        # neighbours in eps have nearly the same frontier; few users are quickly searched anew, and the bounds come out tighter
        for i in np.argsort(eps):
            held = frontier if self.crowd.exact else None
            out[0, i], out[1, i], best = self.crowd.every(float(eps[i]), best, frontier=held, coarse=coarse and held is not None)
        return Sides(out[0], out[1])

    def worst_user(self, eps: float) -> float:
        """Return the budget of the user whose bound of delta at eps is the largest that the search met."""
        *_, best = self.crowd.every(float(eps), self._guess())
        return float(self.crowd.budgets[best])

    def _of(self, index: int) -> OfOneUser:
        return OfOneUser(self.crowd, self.description, self.parameters, index, index)

    def _epsilon(self, delta: float, upper: bool) -> float:
        """Return the largest eps(delta) of the worst users met, moved outward until the bound of all users is met."""
        if delta in (0, 1):
            return super()._epsilon(delta, upper)
        goal = _just_below(delta)
        best, tolerance = self._guess(), 50 * TOLERANCE
        eps, tried = -1.0, set()
        frontier: list[Held] | None = [] if self.crowd.exact else None
        # of many users, those who are not the worst after all are looked at with grouped budgets only
        rough = self.crowd.exact > 0
        while True:
            endless = False
            if best not in tried:
                tried.add(best)
                one = self._of(best)
                eps = max(eps, one._grouped(goal) if rough else one._epsilon(delta, upper))
                endless = eps >= self._pure_epsilon()
            if not endless:
                _, above, best = self.crowd.every(eps, best, tolerance, frontier, goal=goal)
                if best not in tried:
                    continue
            if rough:
                # the same again with the budgets as they are
                eps, rough = -1.0, False
                tried.clear()
            elif endless:
                return eps
            elif tolerance > TOLERANCE:
                tolerance = TOLERANCE
            else:
                break
        if not upper:
            return eps
        # the search over users is tight to its tolerance only: the slope is that of the worst user
        reach = 1e-4 * eps + 1e-12
        pure = self._pure_epsilon()
        while above > goal:
            here, there = (self.crowd.single(e, best, math.inf)[1] for e in (eps, eps + reach))
            slope = max((here - there) / reach, 1e-300)
            # where delta hardly falls any more its slope says little
            eps += min(max(1.02 * (above - goal) / slope, 1e-13 * eps), eps + 1)
            if eps >= min(pure, 1e12):
                return pure
            _, above, best = self.crowd.every(eps, best, frontier=frontier)
        return eps
