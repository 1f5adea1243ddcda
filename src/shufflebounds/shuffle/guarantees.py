"""Guarantees for users with personalized budgets: upper bounds by clones, and datasets that attain the lower bounds.

`OfOneUser` is the guarantee for one target user, `OfEveryUser` the guarantee for the worst target user. Both are made by the
constructors of `PersonalizedClones`, and `PersonalizedBits` uses their clone bounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from shufflebounds._base import validate as _validate
from shufflebounds._base.caches import cached_property
from shufflebounds._base.crossing import Curve
from shufflebounds._base.evidence import Evidence, Status, bound_lines
from shufflebounds._base.limits import COMPARED, FEW, SAME_LOG, SEARCH_GAP
from shufflebounds._base.types import ULP, EqualByKey, FloatArray, IntervalArray, at_each, consistent
from shufflebounds._engines.clones.attained import attained_pairs
from shufflebounds._engines.clones.clone_families import RandomizedResponseFamily
from shufflebounds._engines.clones.population import Population, SearchBox
from shufflebounds._losses.closed_forms import ClosedForms
from shufflebounds._losses.curves import Staged, convex_hull
from shufflebounds._losses.release import Attained, DominatingPairInfo, Sampling, never
from shufflebounds.mechanisms.noise.gaussian import GaussianMechanism
from shufflebounds.mechanisms.oracles.kary_response import KaryResponse
from shufflebounds.profile import DominatingPair, PrivacyProfile
from shufflebounds.profile.between import Between
from shufflebounds.shuffle.shuffled import Shuffled
from shufflebounds.tradeoff import Tradeoff

__all__ = ["BetweenBudgets", "CloneBound", "OfEveryUser", "OfOneUser", "users_of_each"]


def users_of_each(name: str, values: FloatArray, counts: ArrayLike, low: int) -> FloatArray:
    """Return the validated numbers of users, at least `low`, with each of `values` (the argument called `name`)."""
    users = _validate.real_array("counts", counts, low, _validate.MAX_COUNT)
    if users.shape != values.shape:
        raise ValueError(f"counts has shape {users.shape}, {name} {values.shape}: they must agree")
    if (users != np.floor(users)).any():
        raise ValueError(f"counts holds {users[users != np.floor(users)][0]:.17g}: every entry must be a whole number")
    if users.sum() > _validate.MAX_COUNT:
        raise ValueError(f"counts sums to {users.sum():.17g}: there may be at most 2**53 users")
    return users


class _OneUser(ClosedForms):
    """The clone bounds of the user with this index."""

    def __init__(self, population: Population, index: int, place: int | None) -> None:
        # `place` is the index of the target's budget among the distinct budgets, or None for every user.
        self.population, self.index, self.place = population, index, place
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
        Compositions use the dominating pair of the convex hull of the bound. (P, Q) and (Q, P) have the same delta for this pair,
        so one of them is enough.
        """
        return len(self.population.family.kinds) == 1 and not self.population.family.windowed and not self.close

    @cached_property
    def equal(self) -> tuple[Shuffled, ...]:
        """Protocols of responses with equal budgets; for each, the largest delta over all datasets bounds delta. () for noise.

        A response with a small budget is a mixture of responses to all values with a larger budget, and delta is jointly convex.
        So delta is at most the largest delta if all users have the largest budget. It is also at most that of the users with at
        most the target's budget, because the messages of the others do not depend on the target's value.
        """
        most = self.population.budgets.size - 1
        places = sorted({most if self.place is None else self.place, most})
        return tuple(self._responses(place, place) for place in places) if self._of_responses else ()

    @cached_property
    def least(self) -> Shuffled | None:
        """Responses with the least budget: their largest delta over all datasets is a lower bound; None for noise.

        The reason is that of `equal`.
        """
        return self._responses(0, self.population.budgets.size - 1) if self._of_responses else None

    @property
    def _of_responses(self) -> bool:
        return isinstance(self.population.family, RandomizedResponseFamily)

    def _responses(self, place: int, last: int) -> Shuffled:
        """Return the protocol of the users whose budgets have the indices 0..last, if all had the budget with index `place`."""
        family, users = self.population.family, int(self.population.counts[: last + 1].sum())
        assert isinstance(family, RandomizedResponseFamily)
        with _validate.quiet():
            return Shuffled(KaryResponse(family.categories, float(self.population.budgets[place])), users)

    @cached_property
    def close(self) -> tuple[Shuffled, ...]:
        """The protocols of `equal` if a bound of theirs is the smallest at one of a few eps, otherwise (). Curves and compositions
        use only these, since the minimum of several bounds is not convex and is interpolated less closely.
        """
        eps = np.exp2(-np.arange(1.0, 9.0)) * self.pure if self.equal else np.zeros(0)
        clones = at_each(lambda e: self.population.single(e, self.index), eps).upper
        return self.equal if any((one._log_side(eps, upper=True) < clones).any() for one in self.equal) else ()

    def log_delta(self, eps: FloatArray) -> IntervalArray:
        return self._single(eps, self.equal)

    def _single(self, eps: FloatArray, equal: tuple[Shuffled, ...]) -> IntervalArray:
        return self._smaller(eps, at_each(lambda e: self.population.single(e, self.index), eps), equal)

    def method(self, eps: float) -> list[str]:
        worst = self.index if self.place is not None else self.population.every(eps, self.index)[2]
        computed, omitted = self.population.compared(eps, worst)
        if self.population.rounds:
            computed["privacy blanket of rounded budgets"] = self.population.rounded_blanket(eps, self.place)
        for one in self.equal:
            name = f"responses of {one.users} users with the budget {one.randomizer.local_eps:.9g}"  # type: ignore[attr-defined]
            computed[name] = one._log_side_at(eps, upper=True)
        parameter = "budget" if self.pure < math.inf else "1/sigma"
        return [f"method: the smallest bound of the target with {parameter} = {self.population.budgets[worst]:.9g}",
                *bound_lines(computed, upper=True, omitted={
                    f"the clone decomposition {kind}": "which is larger by an estimate" for kind in omitted})]

    def _smaller(self, eps: FloatArray, sides: IntervalArray, equal: tuple[Shuffled, ...]) -> IntervalArray:
        """Return the bounds `sides`, or those of equal or of rounded budgets (by the privacy blanket) if these are smaller."""
        others = [one._log_side(eps, upper=True) for one in equal]
        if self.population.rounds:
            others.append(np.array([self.population.rounded_blanket(e, self.place) for e in eps.tolist()]))
        return IntervalArray(*(np.min([side, *others], axis=0) for side in sides)) if others else sides

    def _least(self, curve: Curve) -> Curve:
        """Return the smaller one of an approximation of the clone bounds and of the bounds of equal budgets."""
        def log_delta(eps: float) -> float:
            return min(curve.log_delta(eps), *(one._log_side_at(eps, upper=True) for one in self.equal))

        return replace(curve, log_delta=log_delta) if self.equal else curve

    def mixture(self) -> tuple[tuple[PrivacyProfile, ...], float]:
        # delta is at most that of the target's own message, because all messages together are a post-processing of this message.
        return ((GaussianMechanism(1.0, self.budget * (1 + 4 * ULP)),) if self.pure == math.inf else ()), 1.0

    def rough(self, upper: bool) -> Curve | None:
        # If budgets are rounded, the bound is that of the privacy blanket, which the clone bounds are too large to approximate.
        rough = self.population.exact and not self.population.rounds
        return self._least(self.population.rough_single(self.index)) if rough else None

    def described(self) -> DominatingPairInfo:
        """Return the description of the pair whose divergence is the bound; neighbours need not attain it."""
        # A table of the privacy blanket takes about a microsecond for each of its cells. With large tables, fewer eps are
        # evaluated.
        effort = max(0.1 if self.population.rounds else 5e-3, self.table_effort)
        # If the bound is convex in e^eps, interpolation meets a small tolerance with few values of eps, in .04 s for 20 users.
        sampling = Sampling(effort, 0.1 if effort < 0.05 else 0.3, 2e-6 if self.convex else None, self.convex)
        return DominatingPairInfo(lambda eps: self._single(eps, self.close), self.pure, sampling=sampling)


class _EveryUser(_OneUser):
    """The bounds of the maximum over all users.

    Every search starts at the user with the largest budget, who is often the worst. As this start does not depend on earlier calls,
    neither do the results.
    """

    def __init__(self, population: Population) -> None:
        super().__init__(population, population.budgets.size - 1, None)

    def log_delta(self, eps: FloatArray) -> IntervalArray:
        return self.largest(eps, coarse=False)

    def largest(self, eps: FloatArray, *, coarse: bool) -> IntervalArray:
        """Return bounds of the largest log delta over all users at each eps.

        If `coarse`, the budgets of the other users are put into bins even for a single target, which takes less time and leaves a
        larger gap.
        """
        out, best = np.empty((2, eps.size)), self.index
        # The search at the next larger eps starts from the decompositions with which all targets were bounded at the last eps.
        frontier: list[SearchBox] = []
        rough = coarse and self.population.exact > 0
        for i in np.argsort(eps):
            if len(frontier) > COMPARED:
                # To bound all boxes (`SearchBox`) of the last search would take longer than a new search.
                frontier.clear()
            out[0, i], out[1, i], best = self.population.every(float(eps[i]), best, frontier=frontier, coarse=rough)
        return self._smaller(eps, IntervalArray(out[0], out[1]), self.close if coarse else self.equal)

    def rough(self, upper: bool) -> Curve | None:
        if self.population.rounds:
            return None
        start = best = self.index
        # With many budgets, the search over users leaves a gap of log delta of up to SEARCH_GAP. A tolerance of eps below
        # 1e-4 SEARCH_GAP would take longer without a tighter bound.
        settles = 1e-4 * SEARCH_GAP if self.population.budgets.size > COMPARED else SAME_LOG
        one = replace(self.population.rough_single(start), settles=settles)
        if not self.population.exact:
            return self._least(one) if self.population.budgets.size > FEW else None
        frontier: list[SearchBox] = []

        def log_delta(eps: float) -> float:
            nonlocal best
            # The rough curve may have a 50 times larger tolerance. Each search starts from the decompositions of the last eps.
            _, above, best = self.population.every(eps, best, 50 * SEARCH_GAP, frontier, coarse=True)
            return min(0.0, above)

        return self._least(Curve(log_delta, one, rtol=1e-4, settles=settles))

    def described(self) -> DominatingPairInfo:
        # With few distinct budgets no bins are used (`population.exact` is 0). The search over targets then reuses no results of
        # another eps, and takes about four times as long.
        searches = 1 if self.population.exact else 4
        # If the bound is convex in e^eps, interpolation meets the default tolerance with few values of eps, so a smaller tolerance
        # does not take too long.
        gap = 2e-5 if self.convex else None
        # A curve or a composition evaluates many eps. With `coarse=True`, even a single target is evaluated with bins of budgets,
        # which takes less time.
        effort = max(0.1 if self.population.rounds else searches * self.population.family.effort, 4 * self.table_effort)
        sampling = Sampling(effort, 0.3, gap, self.convex)
        return DominatingPairInfo(lambda eps: self.largest(eps, coarse=True), self.pure, sampling=sampling)


class CloneBound(PrivacyProfile):
    """The profile whose delta is the clone bound of one user, or of every user if `index` is None."""

    theorem: ClassVar[str] = ("the smallest of several clone decompositions and, for k-ary response, the privacy blanket and "
                              "the bound of the largest budget (docs/personalized)")

    def __init__(self, population: Population, index: int | None) -> None:
        self.forms = _EveryUser(population) if index is None else _OneUser(population, index, index)

    def describe(self) -> DominatingPairInfo:
        return self.forms.described()

    def closed_forms(self) -> _OneUser:
        return self.forms


class BetweenBudgets(Between):
    """The clone bound `above`, and the larger one of two lower bounds: that of `below` and that of the least budget.

    The bounds of the largest budget (`close`) are evaluated for mu and for Renyi divergences, too: those of `above` are integrals
    of samples of the smallest bound of delta, and are less tight.
    """

    def __init__(self, below: PrivacyProfile, above: CloneBound, pure: float) -> None:
        super().__init__(below, above, pure)
        self.least, self.forms = above.forms.least, above.forms

    def further(self, eps: float, upper: bool) -> dict[str, float]:
        if upper or self.least is None:
            return {}
        named = {"equal values of all other users": self.sides[False], "the least budget of all users": self.least}
        return {name: one._log_side_at(eps, upper=False) for name, one in named.items()}

    def side(self, eps: FloatArray, upper: bool) -> FloatArray:
        bound = super().side(eps, upper)
        return bound if upper or self.least is None else np.maximum(bound, self.least._log_side(eps, upper=False))

    def epsilon(self, delta: float, upper: bool) -> float | None:
        bound = super().epsilon(delta, upper)
        return bound if upper or self.least is None or bound is None else max(bound, self.least._epsilon(delta, False))

    def tradeoff(self, upper: bool, log_tail: float = -100.0) -> Tradeoff | None:
        curve = super().tradeoff(upper, log_tail)
        # An upper curve follows from lower bounds of delta. A curve in stages is not merged: its samples are made only at the
        # levels that are needed.
        if not upper or self.least is None or curve is None or isinstance(curve._form, Staged):
            return curve
        return convex_hull([curve, self.least._tradeoff(True)])

    def mu(self, upper: bool) -> float | None:
        bound = super().mu(upper)
        if upper and bound is not None:
            return min([bound, *(one._gdp_mu(True) for one in self.forms.close)])
        return bound if upper or self.least is None or bound is None else max(bound, self.least._gdp_mu(False))

    def renyi(self, orders: FloatArray, upper: bool) -> FloatArray | None:
        bound = super().renyi(orders, upper)
        if upper and bound is not None:
            for one in self.forms.close:
                bound = np.minimum(bound, one._rdp(orders, True))
        return bound if upper or self.least is None or bound is None else np.maximum(bound, self.least._rdp(orders, False))


class _AttainedPair(DominatingPair):
    """A pair that neighbours attain, and its reverse."""

    def __init__(self, info: DominatingPairInfo, other: DominatingPairInfo) -> None:
        self.info, self.other = info, other

    def reverse(self) -> _AttainedPair:
        return self if self.info is self.other else _AttainedPair(self.other, self.info)

    def describe(self) -> DominatingPairInfo:
        return self.info


class _LargestLoss(ClosedForms):
    """The largest loss of a target is that of one message: every message may have the largest likelihood ratio in favour of the
    same value. It is the pure budget, or infinite for Gaussian noise.
    """

    def last_positive(self, pure: float) -> float | None:
        return pure * (1 - 4 * ULP)


class _Datasets(PrivacyProfile):
    """The largest divergence of pairs that neighbours attain, for some targets and some datasets."""

    theorem: ClassVar[str] = "the largest divergence of some datasets"

    def __init__(self, population: Population, places: list[int]) -> None:
        self.population, self.places = population, places

    @cached_property
    def listed(self) -> tuple[DominatingPair, ...]:
        """Pairs (P, Q) and (Q, P); those of the first target come first."""
        pairs = [_AttainedPair(*both) for place in self.places for both in attained_pairs(self.population, place)]
        return tuple({id(order.info): order for pair in pairs for order in (pair, pair.reverse())}.values())

    def pairs(self) -> tuple[DominatingPair, ...]:
        return self.listed

    def describe(self) -> DominatingPairInfo:
        return super().describe() if self.listed else DominatingPairInfo(never, 0.0)

    def closed_forms(self) -> _LargestLoss:
        return _LargestLoss()


@dataclass(frozen=True, eq=False, repr=False)
class _Guarantee(EqualByKey, PrivacyProfile):
    """Base class of the guarantees of one user and of all users."""

    population: Population
    description: str
    parameters: dict[str, Any]
    target: int | None
    index: int | None = None

    lower_theorem: ClassVar[str] = ("delta of a dataset with equal values of the other users or, for k-ary randomized response, of "
                                    "the least budget")

    @property
    def neighbours(self) -> str:  # type: ignore[override]
        """The neighbouring relation, with the target if the guarantee is for one target only."""
        who = "one user's" if self.index is None else "the target's"
        return f"replace {who} input, every user keeping budget and randomizer; the analyst sees the shuffled messages"

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

    def claims(self, eps: float, *, upper: bool) -> Iterable[Evidence]:
        yield from super().claims(eps, upper=upper)
        if upper and self.description != "randomized_response":
            yield Evidence("two values between 0 and 1 of the target have no larger delta than 0 and 1", Status.OPEN,
                           "docs/personalized")

    def describe(self) -> DominatingPairInfo:
        below, info = self._below, CloneBound(self.population, self.index).describe()

        def above_alone(eps: FloatArray) -> IntervalArray:
            high = info.hockey_stick(eps).upper
            return IntervalArray(high, high)

        def hockey_stick(eps: FloatArray) -> IntervalArray:
            low, high = below._log_side(eps, upper=False), info.hockey_stick(eps).upper
            return consistent(IntervalArray(low, high), "log delta at eps={!r}", eps)

        # A composition uses only the first pair (P, Q) and its reverse. For many users and for small eps this pair gives the
        # largest lower bound.
        return replace(info, hockey_stick=hockey_stick, sampling=info.sampling._replace(above=above_alone),
                       attained=Attained(profiles=lambda: below.listed[:2]))

    def closed_forms(self) -> Between:
        above = CloneBound(self.population, self.index)
        return BetweenBudgets(self._below, above, above.forms.pure)

    @cached_property
    def _below(self) -> _Datasets:
        """The lower bounds, for the target or for the users with the largest and with the smallest budget."""
        return _Datasets(self.population, [self.population.budgets.size - 1, 0] if self.index is None else [self.index])


@dataclass(frozen=True, eq=False, repr=False)
class OfOneUser(_Guarantee):
    """The guarantee of one user if every user has a personalized budget; `PersonalizedClones` has the definitions."""

    theorem: ClassVar[str] = (
        "upper bound of one user's loss, proven for the named family (noise: for the user's values 0 and 1): "
        "the smallest of the clone decompositions S1, S2 and window "
        "(after Feldman, McMillan, Talwar 2023, with personal rates) and, for k-ary randomized response, the privacy blanket "
        "(after Balle, Bell, Gascon, Nissim 2019) and the bound of the largest budget (docs/personalized)"
    )

    @property
    def _limited_to(self) -> str:
        return "one user"


@dataclass(frozen=True, eq=False, repr=False)
class OfEveryUser(_Guarantee):
    """The guarantee of every user if every user has a personalized budget; `PersonalizedClones` has the definitions."""

    theorem: ClassVar[str] = (
        "upper bound of every user's loss, proven for the named family (noise: for the user's values 0 and 1): "
        "the maximum over all users (none assumed to be the worst) "
        "of the smallest of the clone decompositions S1, S2 and window and, for k-ary randomized response, the privacy blanket "
        "and the bound of the largest budget (docs/personalized)"
    )
