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
from shufflebounds._losses.release import SINGLE, DominatingPairInfo, Sampling
from shufflebounds._losses.samples import FULL_DETAIL, SampledProfile
from shufflebounds.mechanisms.noise.gaussian import GaussianMechanism
from shufflebounds.profile import PrivacyProfile

__all__ = ["OfEveryUser", "OfOneUser"]


@dataclass(frozen=True, eq=False)
class _Guarantee(EqualByKey, PrivacyProfile):
    """Base class of the guarantees of one user and of all users; it has their fields, equality and repr."""

    population: Population
    description: str
    parameters: dict[str, Any]
    target: int | None

    neighbours: ClassVar[str] = (
        "replace one user's input, every user keeping budget and randomizer; the analyst sees the shuffled messages"
    )

    def _pair_info(self) -> DominatingPairInfo:
        # The bound is a minimum of bounds that are convex in e^eps, and need not be convex itself: between two values of eps it is
        # only known to decrease. Compositions use the dominating pair of its convex hull. This pair is symmetric, so one of (P, Q)
        # and (Q, P) suffices.
        family = self.population.family
        # A table of the blanket takes about a microsecond for each of its cells. With large tables, fewer eps are evaluated.
        effort = max(5e-3, self._table_effort)
        return replace(
            super()._pair_info(), attained=SINGLE,
            sampling=Sampling(effort, 0.1 if effort < 0.05 else 0.3, convex=len(family.kinds) == 1 and not family.windowed),
        )

    @property
    def _table_effort(self) -> float:
        """Effort of one table of the privacy blanket (see `Sampling`), in proportion to its number of cells."""
        return 3e-6 * self.population.blanket_cells

    @property
    def _largest_budget(self) -> float:
        """The largest budget of the users whose guarantee this is."""
        return float(self.population.budgets[-1])

    def _pure_epsilon(self) -> float:
        return self.population.family.pure_epsilon(self._largest_budget)

    def _mixture(self) -> tuple[tuple[PrivacyProfile, ...], float]:
        # delta is at most that of the target's own message: all messages together are a post-processing of it.
        if self._pure_epsilon() < math.inf:
            return (), 1.0
        return (GaussianMechanism(1.0, self._largest_budget * (1 + 4 * ULP)),), 1.0

    def _gdp_mu(self, upper: bool) -> float:
        if upper or self._pure_epsilon() < math.inf:
            return super()._gdp_mu(upper)
        # Every sample of delta gives a lower bound of mu. The largest bounds are those at small delta, where they change little.
        return gdp_mu(*self._samples(FULL_DETAIL / 2), 0.0, 0).lower

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

    def _log_delta(self, eps: FloatArray) -> IntervalArray:
        return at_each(lambda e: self.population.single(e, self.index), eps)

    @property
    def _largest_budget(self) -> float:
        return float(self.population.budgets[self.index])

    def _rough(self, upper: bool) -> Curve | None:
        return self.population.rough_single(self.index) if self.population.exact else None


@dataclass(frozen=True, eq=False, repr=False)
class OfEveryUser(_Guarantee):
    """The guarantee of every user if every user has a personalized budget; `PersonalizedClones` has the definitions."""

    theorem: ClassVar[str] = (
        "upper bound of every user's loss, proven for the named family (noise: for the user's values 0 and 1): "
        "the maximum over all users (none assumed to be the worst) "
        "of the smallest of the clone decompositions S1, S2 and window and, for k-ary randomized response, the privacy blanket"
    )

    def _pair_info(self) -> DominatingPairInfo:
        family = self.population.family
        # With few distinct budgets no bins are used (`population.exact` is 0). The search over targets then does not reuse results
        # of another eps, and takes about four times as long.
        searches = 1 if self.population.exact else 4
        known = super()._pair_info()
        # If the bound is convex in e^eps, interpolation meets the default tolerance with few values of eps, so a smaller tolerance
        # is affordable.
        gap = 2e-5 if known.sampling.convex else None
        # A curve or a composition evaluates many eps. With `coarse=True`, even a single target is evaluated with bins of budgets,
        # which takes less time.
        sampling = Sampling(max(searches * family.effort, 4 * self._table_effort), 0.3, gap, known.sampling.convex)
        return replace(known, hockey_stick=partial(self._largest, coarse=True), sampling=sampling)

    def _guess(self) -> int:
        """Return the index of the target at which every search starts: the target with the largest budget.

        The index does not depend on earlier calls, so that no answer depends on them.
        """
        return self.population.budgets.size - 1

    def _log_delta(self, eps: FloatArray) -> IntervalArray:
        return self._largest(eps, coarse=False)

    def _largest(self, eps: FloatArray, *, coarse: bool) -> IntervalArray:
        """Return bounds of the largest log delta over all users at each eps.

        If `coarse`, even single targets are evaluated with bins of budgets, which takes less time and leaves a larger gap.
        """
        out, best = np.empty((2, eps.size)), self._guess()
        # The search at the next larger eps starts from the decompositions that gave the bounds of all targets at the last eps. With
        # few distinct budgets, where no bins are used, each search starts anew: it takes little time, and its bounds are tighter.
        frontier: list[SearchBox] | None = [] if self.population.exact else None
        rough = coarse and frontier is not None
        for i in np.argsort(eps):
            out[0, i], out[1, i], best = self.population.every(float(eps[i]), best, frontier=frontier, coarse=rough)
        return IntervalArray(out[0], out[1])

    def _gdp_mu(self, upper: bool) -> float:
        if upper or self._pure_epsilon() < math.inf or self.population.budgets.size <= FEW:
            return super()._gdp_mu(upper)
        # A lower bound needs no search over all users, because the delta of every user is a lower bound of the largest one.
        samples = SampledProfile(self._likely, math.inf, FULL_DETAIL / 2, convex=False)
        return gdp_mu(samples, samples, 0.0, 0).lower

    def _likely(self, eps: FloatArray) -> IntervalArray:
        """Return bounds of log delta at each eps for a user chosen by estimates; the upper bounds are valid for this user only."""
        def larger(at: float) -> Interval:
            # Estimates may be wrong at small delta, where the user with the largest budget is the worst.
            return max(self.population.single(at, i) for i in {self.population.likely(at), self._guess()})

        return at_each(larger, eps)

    def worst_user(self, eps: float) -> float:
        """Return the budget of the user with the largest lower bound of delta at eps among the users that the search evaluated.

        A user with Gaussian noise is identified by 1/sigma.
        """
        *_, best = self.population.every(float(eps), self._guess())
        return float(self.population.budgets[best])

    def _rough(self, upper: bool) -> Curve | None:
        # The search starts at the user with the largest budget, who is often the worst.
        start = best = self._guess()
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
