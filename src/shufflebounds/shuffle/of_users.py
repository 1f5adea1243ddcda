"""Privacy profiles for personalized budgets, of one target user or of all users: the smallest of the proven clone bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from shufflebounds._base.crossing import Curve
from shufflebounds._base.limits import COMPARED, FEW, SAME_LOG, SEARCH_GAP
from shufflebounds._base.types import ULP, EqualByKey, FloatArray, Interval, IntervalArray, at_each
from shufflebounds._engines.clones.population import Population, SearchBox
from shufflebounds._losses.curves import gdp_mu
from shufflebounds._losses.release import SINGLE, ClosedForms, DominatingPairInfo, Sampling
from shufflebounds._losses.samples import FULL_DETAIL, SampledProfile
from shufflebounds.mechanisms.noise.gaussian import GaussianMechanism
from shufflebounds.profile import PrivacyProfile
from shufflebounds.profile.pair import Described

__all__ = ["OfEveryUser", "OfOneUser"]


class _OneUser(ClosedForms):
    """The bounds of the user with this index."""

    def __init__(self, population: Population, index: int) -> None:
        self.population, self.index = population, index
        self.budget = float(population.budgets[index])
        self.pure = population.family.pure_epsilon(self.budget)

    @property
    def table_effort(self) -> float:
        """Effort of one table of the privacy blanket (see `Sampling`), in proportion to its number of cells."""
        return 3e-6 * self.population.blanket_cells

    @property
    def convex(self) -> bool:
        """Whether the bound is convex in e^eps.

        The minimum of several convex bounds need not be convex; between two values of eps it is only known to decrease.
        Compositions use the dominating pair of its convex hull. This pair is symmetric, so one of (P, Q) and (Q, P) suffices.
        """
        return len(self.population.family.kinds) == 1 and not self.population.family.windowed

    def log_delta(self, eps: FloatArray) -> IntervalArray:
        return at_each(lambda e: self.population.single(e, self.index), eps)

    def mixture(self) -> tuple[tuple[PrivacyProfile, ...], float]:
        # delta is at most that of the target's own message: all messages together are a post-processing of it.
        return ((GaussianMechanism(1.0, self.budget * (1 + 4 * ULP)),) if self.pure == math.inf else ()), 1.0

    def mu(self, upper: bool) -> float | None:
        if upper or self.pure < math.inf:
            return None
        # Every sample of delta gives a lower bound of mu. The largest bounds are those at small delta, where they change little.
        samples = self._samples()
        return gdp_mu(samples, samples, 0.0, 0).lower

    def _samples(self) -> SampledProfile:
        return SampledProfile(self.log_delta, math.inf, FULL_DETAIL / 2, convex=self.convex)

    def rough(self, upper: bool) -> Curve | None:
        return self.population.rough_single(self.index) if self.population.exact else None


class _EveryUser(_OneUser):
    """The bounds of the maximum over all users. Every search starts at the user with the largest budget, who is often the worst.

    This user does not depend on earlier calls, so that no answer depends on them.
    """

    def __init__(self, population: Population) -> None:
        super().__init__(population, population.budgets.size - 1)

    def log_delta(self, eps: FloatArray) -> IntervalArray:
        return self.largest(eps, coarse=False)

    def largest(self, eps: FloatArray, *, coarse: bool) -> IntervalArray:
        """Return bounds of the largest log delta over all users at each eps.

        If `coarse`, even single targets are evaluated with bins of budgets, which takes less time and leaves a larger gap.
        """
        out, best = np.empty((2, eps.size)), self.index
        # The search at the next larger eps starts from the decompositions that gave the bounds of all targets at the last eps. With
        # few distinct budgets, where no bins are used, each search starts anew: it takes little time, and its bounds are tighter.
        frontier: list[SearchBox] | None = [] if self.population.exact else None
        rough = coarse and frontier is not None
        for i in np.argsort(eps):
            out[0, i], out[1, i], best = self.population.every(float(eps[i]), best, frontier=frontier, coarse=rough)
        return IntervalArray(out[0], out[1])

    def _samples(self) -> SampledProfile:
        if self.population.budgets.size <= FEW:
            return SampledProfile(partial(self.largest, coarse=True), math.inf, FULL_DETAIL / 2, convex=self.convex)
        # A lower bound needs no search over all users, because the delta of every user is a lower bound of the largest one.
        return SampledProfile(self._likely, math.inf, FULL_DETAIL / 2, convex=False)

    def _likely(self, eps: FloatArray) -> IntervalArray:
        """Return bounds of log delta at each eps for a user chosen by estimates; the upper bounds are valid for this user only."""
        def larger(at: float) -> Interval:
            # Estimates may be wrong at small delta, where the user with the largest budget is the worst.
            return max(self.population.single(at, i) for i in {self.population.likely(at), self.index})

        return at_each(larger, eps)

    def rough(self, upper: bool) -> Curve | None:
        start = best = self.index
        # With many budgets, the search over users leaves a gap of log delta of up to SEARCH_GAP. A tolerance of eps below a
        # ten-thousandth of this gap would take longer without a tighter answer.
        settles = 1e-4 * SEARCH_GAP if self.population.budgets.size > COMPARED else SAME_LOG
        one = replace(self.population.rough_single(start), settles=settles)
        if not self.population.exact:
            return one if self.population.budgets.size > FEW else None
        frontier: list[SearchBox] = []

        def log_delta(eps: float) -> float:
            nonlocal best
            # The rough curve may have a 50 times larger tolerance. Each search starts from the decompositions of the last eps.
            _, above, best = self.population.every(eps, best, 50 * SEARCH_GAP, frontier, coarse=True)
            return min(0.0, above)

        return Curve(log_delta, one, rtol=1e-4, settles=settles)


@dataclass(frozen=True, eq=False)
class _Guarantee(EqualByKey, Described):
    """Base class of the guarantees of one user and of all users: the fields, equality and repr that both classes share."""

    population: Population
    description: str
    parameters: dict[str, Any]
    target: int | None

    neighbours: ClassVar[str] = (
        "replace one user's input, every user keeping budget and randomizer; the analyst sees the shuffled messages"
    )

    @property
    def users(self) -> int:
        """Number of users, the target included."""
        return int(self.population.counts.sum())

    def _key(self) -> tuple[Any, ...]:
        budgets, counts = self.population.budgets.tobytes(), self.population.counts.tobytes()
        return type(self), self.population.family, self.target, budgets, counts

    def __repr__(self) -> str:
        budgets = self.population.budgets
        shown = [f"<{self.users} users, {budgets.size} distinct>"]
        shown += [f"{name}={value!r}" for name, value in self.parameters.items()]
        return f"PersonalizedClones.{self.description}({', '.join(shown)}, target={self.target})"


@dataclass(frozen=True, eq=False, repr=False)
class OfOneUser(_Guarantee):
    """The guarantee of one user if every user has a personalized budget; `PersonalizedClones` has the definitions."""

    index: int = 0

    theorem: ClassVar[str] = (
        "upper bound of one user's loss, proven for the named family (noise: for the user's values 0 and 1): "
        "the smallest of the clone decompositions S1, S2 and window "
        "(after Feldman, McMillan, Talwar 2023, with personal rates) and, for k-ary randomized response, the privacy blanket "
        "(after Balle, Bell, Gascon, Nissim 2019)"
    )

    def describe(self) -> DominatingPairInfo:
        user = self.closed_forms()
        # A table of the blanket takes about a microsecond for each of its cells. With large tables, fewer eps are evaluated.
        effort = max(5e-3, user.table_effort)
        return DominatingPairInfo(user.log_delta, user.pure, attained=SINGLE,
                                  sampling=Sampling(effort, 0.1 if effort < 0.05 else 0.3, convex=user.convex))

    def closed_forms(self) -> _OneUser:
        return _OneUser(self.population, self.index)


@dataclass(frozen=True, eq=False, repr=False)
class OfEveryUser(_Guarantee):
    """The guarantee of every user if every user has a personalized budget; `PersonalizedClones` has the definitions."""

    theorem: ClassVar[str] = (
        "upper bound of every user's loss, proven for the named family (noise: for the user's values 0 and 1): "
        "the maximum over all users (none assumed to be the worst) "
        "of the smallest of the clone decompositions S1, S2 and window and, for k-ary randomized response, the privacy blanket"
    )

    def describe(self) -> DominatingPairInfo:
        users = self.closed_forms()
        # With few distinct budgets no bins are used (`population.exact` is 0). The search over targets then does not reuse results
        # of another eps, and takes about four times as long.
        searches = 1 if self.population.exact else 4
        # If the bound is convex in e^eps, interpolation meets the default tolerance with few values of eps, so a smaller tolerance
        # is affordable.
        gap = 2e-5 if users.convex else None
        # A curve or a composition evaluates many eps. With `coarse=True`, even a single target is evaluated with bins of budgets,
        # which takes less time.
        sampling = Sampling(max(searches * self.population.family.effort, 4 * users.table_effort), 0.3, gap, users.convex)
        return DominatingPairInfo(partial(users.largest, coarse=True), users.pure, sampling=sampling, attained=SINGLE)

    def closed_forms(self) -> _EveryUser:
        return _EveryUser(self.population)

    def worst_user(self, eps: float) -> float:
        """Return the budget of the user with the largest lower bound of delta at eps among the users that the search evaluated.

        A user with Gaussian noise is identified by 1/sigma.
        """
        *_, best = self.population.every(float(eps), self.closed_forms().index)
        return float(self.population.budgets[best])
