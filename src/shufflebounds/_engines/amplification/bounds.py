r"""Lower and upper bounds of delta and of eps of a shuffled randomizer (privacy amplification by shuffling).

.. math:: \delta(\varepsilon) = \frac1n\, \mathbb{E}(X_1 + \cdots + X_n)_+, \qquad X = (R_0 - e^\varepsilon R_1)/m

R_0 and R_1 are the output distributions of the target's two inputs, m is that of another user, and the X_i are independent copies
of X under m (`excess.excess_law`). This module combines the bounds of `upper`, `lower`, `local` and `small_delta`, and searches for
eps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial

import numpy as np

from shufflebounds._base.caches import cached_property
from shufflebounds._base.crossing import Curve, eps_at, last_positive, rough_eps
from shufflebounds._base.evidence import bound_lines, format_bound
from shufflebounds._base.limits import COMPARED, FEW, MANY, SEARCH_GAP
from shufflebounds._base.progress import tick
from shufflebounds._base.types import FloatArray, IntervalArray, consistent
from shufflebounds._core._clones import clone_rate
from shufflebounds._core._deployments import LawTable
from shufflebounds._engines.amplification.attained_pairs import attained_pairs
from shufflebounds._engines.amplification.local import FARTHEST, LocalGuarantee
from shufflebounds._engines.amplification.lower import LowerBounds
from shufflebounds._engines.amplification.randomizer_laws import Distributions
from shufflebounds._engines.amplification.small_delta import SmallDelta
from shufflebounds._engines.amplification.upper import EVERY, MESSAGE, UpperBounds
from shufflebounds._engines.clones.clone_pair import ClonePair
from shufflebounds._engines.datasets.enumerated import MixedData
from shufflebounds._engines.excess.evaluation import Effort
from shufflebounds._engines.excess.excess_law import ExcessLaw, log_phis, packed, quick
from shufflebounds._engines.excess.packed import epsilons
from shufflebounds._losses.release import SINGLE, Attained, CurveBounds, DominatingPairInfo, Losses, Sampling

__all__ = ["Bounds"]


_LITTLE_CUT = 8.0
"""The `margin` of `SmallDelta.improved` for samples: a truncated mass below e^-8 delta adds less than 0.1 % to delta."""


_CLOSE, _CLOSE_OF_CELLS, _CLOSE_OF_FEW = 1e-10, 1e-5, 2e-5
"""Relative tolerances of eps at which a search ends: in general; if the upper bound divides pairs and inputs into cells, where it
is smooth in eps only up to about 1e-5 in log delta; and for few users, where a gap of 1e-3 in log delta is common and a value takes
up to 1 s. Lowered: more values, whose differences are below the gap of the bounds. Raised: less accurate eps."""

_ROUGHLY = 1e-2
"""Relative tolerance of eps for a search with a normal approximation, which only starts the search with the bound itself. A tenth
of this tolerance is used for the closer approximation over all datasets. Raised: more values of the bound. Lowered: more values of
the approximation."""


class Bounds:
    """Lower and upper bounds of delta and of eps for one number of users; `bits` is an argument of `UpperBounds`."""

    def __init__(self, laws: Distributions, users: int, local: LocalGuarantee, bits: Callable[[float], float] | None) -> None:
        self._laws, self._users, self._local = laws, users, local
        data = None if laws.thinned_matrix is None else MixedData(laws.thinned_matrix, users)
        self.mixed = data if data is not None and data.listed else None
        self.upper = UpperBounds(laws, users, self.mixed, bits)
        self.lower = LowerBounds(laws, users, self.mixed)
        self.two_users = laws.two_users if users == 2 else None
        budget = laws.clones_budget
        self._clones = None if budget is None else ClonePair(float(users), clone_rate(budget, True), budget)
        self.small_delta = SmallDelta(laws, users, local) if laws.deepest_cut > -math.inf and self.two_users is None else None

    @property
    def unbounded(self) -> bool:
        """Whether the privacy loss is known to be unbounded."""
        return self._local.unbounded

    def side(self, eps: FloatArray, *, upper: bool, effort: Effort = Effort.FINE) -> FloatArray:
        """Return the upper or the lower bound of log delta at each eps."""
        return self._side(eps, upper, effort, self.small_delta if effort is Effort.FINE else None)

    def _side(self, eps: FloatArray, upper: bool, effort: Effort, small_delta: SmallDelta | None) -> FloatArray:
        bound = self._together(eps, upper, effort)
        if small_delta is not None:
            bound = small_delta.improved(eps, bound, upper=upper)
        if upper and self._clones is not None:
            # The same privacy blanket, whose gap in log delta is 1e-9 instead of 2e-7.
            inside = eps < self._local.pure
            bound[inside] = np.fmin(bound[inside], self._clones.log_delta(eps[inside]).upper)
        return self._local.capped(eps, bound) if upper else bound

    def _together(self, eps: FloatArray, upper: bool, effort: Effort) -> FloatArray:
        """Return the bounds of log delta that follow from the distributions of X, by one kernel call for all eps if possible."""
        if self.two_users is not None:
            return self.two_users.log_delta(eps, upper)
        one_by_one = partial(self._local.evaluated, partial((self.upper if upper else self.lower).log_delta, effort=effort))
        laws, together = self._quick[upper], self._packed[upper]
        if laws is None or together is None:
            return one_by_one(eps)
        out, inside = np.full(eps.shape, -np.inf), eps < self._local.pure

        def otherwise(left: FloatArray) -> IntervalArray:
            alone = one_by_one(left)
            return IntervalArray(alone, alone)

        out[inside] = log_phis(laws, together, eps[inside], self._users, effort, otherwise)[upper]
        tick()
        return np.asarray(np.minimum(out, 0.0))

    @cached_property
    def _quick(self) -> tuple[list[ExcessLaw] | None, list[ExcessLaw] | None]:
        """The distributions of X for the lower and for the upper bound, or None if the kernel alone does not give the bounds."""
        below, above = (laws if laws is not None and quick(laws, self._users) else None
                        for laws in map(self.kernel_laws, (False, True)))
        return below, above

    @cached_property
    def _packed(self) -> tuple[LawTable | None, LawTable | None]:
        below, above = (None if laws is None else _packed(laws) for laws in self._quick)
        return below, above

    def argument(self, eps: float) -> str:
        """Return the name of the upper bound at one eps."""
        if self.two_users is not None:
            return EVERY
        point = np.array([eps])
        # `alone` is the bound by the target's message alone, and `stated` the upper bound of log delta. At small delta `stated` may
        # be smaller, because fewer outputs are truncated for it.
        alone, stated = (float(values[0]) for values in (self._local.log_delta(point), self.side(point, upper=True)))
        return self.upper.argument(eps, alone=alone if alone <= stated else math.inf)

    def method(self, eps: float) -> list[str]:
        """Return the lines of `explain`: what gives each bound, what else was computed, and what was not, with the reason."""
        data = self.lower.dataset(eps)
        if self.two_users is not None:
            return [f"method: above by {EVERY}; below by one dataset: {data}"]
        computed, omitted = self.upper.compared(eps)
        computed[MESSAGE] = float(self._local.log_delta(np.array([eps]))[0])
        used = self.argument(eps)
        below = self.lower.compared(eps)
        lower, upper = (float(side[0]) for side in self.log_delta(np.array([eps])))
        if upper < min(computed.values()) - SEARCH_GAP:
            computed[f"{used}, with fewer outputs truncated"] = upper
        if lower > below.setdefault(data, lower) + SEARCH_GAP:
            below[f"{data}, with fewer outputs truncated"] = lower
        return [f"method: above by {used}; below by one dataset: {data}",
                *bound_lines(computed, upper=True, omitted=omitted),
                *(f"  at least {format_bound(value, upper=False, digits=9)} if {text}"
                  for text, value in sorted(below.items(), key=lambda one: -one[1]))]

    def log_delta(self, eps: FloatArray) -> IntervalArray:
        """Return bounds of log delta at each eps."""
        return IntervalArray(self.side(eps, upper=False), self.side(eps, upper=True))

    def _sampled(self, eps: FloatArray) -> IntervalArray:
        """Return bounds of log delta with a larger gap in less time, for results that need many values of delta."""
        return IntervalArray(*(self.side(eps, upper=upper, effort=Effort.SAMPLED) for upper in (False, True)))

    def _sampled_deep(self, eps: FloatArray) -> IntervalArray:
        """Return the bounds of `_sampled`, improved at small delta."""
        assert self.small_delta is not None
        lower, upper = self._sampled(eps)
        sides = IntervalArray(self.small_delta.improved(eps, lower, upper=False), self.small_delta.improved(eps, upper, upper=True))
        return consistent(sides, "log delta at eps={!r}", eps)

    def _sampled_above(self, eps: FloatArray) -> IntervalArray:
        """Return the upper bound of `_sampled` as both ends of an interval, improved where truncation adds 0.03 % to delta."""
        above = self.side(eps, upper=True, effort=Effort.SAMPLED)
        if self.small_delta is not None:
            above = self.small_delta.improved(eps, above, upper=True, margin=_LITTLE_CUT)
        return IntervalArray(above, above)

    def epsilons(self, deltas: FloatArray, upper: bool) -> FloatArray:
        """Return the bound of eps at each delta."""
        laws = None if self.small_delta is not None else self.kernel_laws(upper)
        if laws is None:
            return np.array([self.epsilon(delta, upper) for delta in deltas.tolist()])
        size, lost = deltas.size, max(law.lost for law in laws)
        bound = epsilons(_packed(laws), np.zeros(size, np.intp), np.full(size, self._users), deltas, upper)
        for i, (delta, eps) in enumerate(zip(deltas.tolist(), bound.tolist())):
            # The kernel's result is final unless outputs that identify the target, or the local guarantee, change it.
            if delta == 0 or lost > 0 or (upper and eps > 0 and not self._local.exceeds(eps, math.log(delta))):
                bound[i] = self.epsilon(delta, upper)
        return bound if self._clones is None or not upper else np.array([
            self._clones_if_smaller(delta, eps) for delta, eps in zip(deltas.tolist(), bound.tolist())])

    def epsilon(self, delta: float, upper: bool) -> float:
        """Return the bound of eps at one delta."""
        bound, two = self._epsilon(delta, upper), self.upper.two_users if upper and self._users > 2 else None
        if two is not None and 0 < bound < math.inf and two.log_delta(np.array([bound]), True)[0] <= math.log(delta):
            # The bound for two users is small enough, too. The search for it has a smaller tolerance.
            bound = min(bound, Bounds(self._laws, 2, self._local, None).epsilon(delta, True))
        return self._clones_if_smaller(delta, bound) if upper else bound

    def _clones_if_smaller(self, delta: float, bound: float) -> float:
        """Return the smaller one of an upper bound of eps and that of the clones, if they are known."""
        return bound if self._clones is None or delta == 0 else min(bound, self._clones.epsilon(delta, True))

    def _epsilon(self, delta: float, upper: bool) -> float:
        small_delta = self.small_delta
        if delta == 0 and (upper or self.unbounded):
            return self._local.pure
        if small_delta is None or not 0 < delta < math.exp(small_delta.limit):
            return self._searched(delta, upper, small_delta)
        if not upper:
            return max(self._searched(delta, False, small_delta), small_delta.lower_epsilon(delta))
        deep = small_delta.upper_epsilon(delta, self.epsilon(delta, False))
        deep = min(deep, self._local.epsilon(delta, deep))
        return deep if small_delta.decides(math.log(delta)) else min(deep, self._searched(delta, True, None))

    def _searched(self, delta: float, upper: bool, small_delta: SmallDelta | None) -> float:
        """Return the bound of eps at one delta, for bounds of delta by `_side`."""
        laws = self.kernel_laws(upper)
        if any(law.lost > delta for law in (self._laws.above if upper else self._below)):
            bound = math.inf
        elif laws is None:
            bound = self._crossing(delta, upper, small_delta)
        else:
            bound = float(epsilons(_packed(laws), [0], [self._users], [delta], upper)[0])
        if not upper or bound == 0 or self._local.exceeds(bound, math.log(delta)):
            return bound
        if (laws is not None or bound == math.inf) and self._local.excess(min(bound, FARTHEST), math.log(delta)) < 0:
            # The local guarantee alone meets delta at a smaller eps.
            bound = self._crossing(delta, True, small_delta)
        return min(bound, self._local.epsilon(delta, bound))

    def _crossing(self, delta: float, upper: bool, small_delta: SmallDelta | None) -> float:
        """Return the eps at which the bound of `_side` equals delta, by a search that evaluates one eps after another."""
        pure, rough = self._local.pure, self._rough(upper)

        def log_delta(eps: float) -> float:
            return float(self._side(np.array([eps]), upper, Effort.FINE, small_delta)[0])

        if delta == 0:
            return pure if upper else last_positive(log_delta, pure)
        cells = upper and self.upper.has_cells
        # If the privacy blanket is the smallest bound, a search with this bound alone takes less time and has a smaller
        # tolerance.
        alone = cache(lambda: self._of_blanket._searched(delta, True, small_delta))
        if cells and rough is not None:
            rough = replace(rough, log_delta=cache(rough.log_delta))
            if (self.upper.of_blanket_at(rough_eps(rough, delta, upper=True, pure=pure), search=False)
                    and self.upper.of_blanket_at(alone())):
                return alone()
        bound = eps_at(log_delta, delta, upper=upper, rough=rough, pure=pure)
        return min(bound, alone()) if cells and self.upper.of_blanket_at(bound) else bound

    @cached_property
    def _of_blanket(self) -> Bounds:
        """These bounds without the upper bound over all datasets (docs/theorems/worst-dataset)."""
        return Bounds(self._laws.blanket_only, self._users, self._local, None)

    @cached_property
    def _below(self) -> list[ExcessLaw]:
        return [law for _, _, law in self._laws.below]

    def kernel_laws(self, upper: bool) -> list[ExcessLaw] | None:
        """Return the distributions of X whose largest Phi_n(X) (`excess.excess_law`) is the bound.

        The result is None if the bound has another form, or if one of these distributions takes a long time.
        """
        if self.two_users is not None:
            return None
        if upper:
            if not self.upper.of_blanket:
                return None
            laws = [pair.upper for pair in self._laws.pairs]
        elif self.mixed is not None or not 0 < len(self._below) <= COMPARED:
            return None
        else:
            laws = self._below
        return None if self._adds_few or any(law.expensive or law.one_decides(self._users) for law in laws) else laws

    @cached_property
    def _adds_few(self) -> bool:
        """Whether the kernel would be slow, because there are few users and a density has too many outcomes to be enumerated."""
        return any(law.adds_few(self._users) for law in self._laws.above)

    def _rough(self, upper: bool) -> Curve | None:
        """Return a curve close to log delta, for the search for eps."""
        if self.two_users is not None:
            return None
        laws = [pair.upper for pair in self._laws.pairs] if upper else self._below
        close = _CLOSE_OF_FEW if self._adds_few else _CLOSE
        one_decides = any(law.one_decides(self._users) for law in laws[:FEW])
        expensive = self._adds_few or one_decides or any(law.expensive for law in laws[:FEW])
        near = None
        if 0 < len(laws) <= FEW:
            parted = self._adds_few or one_decides
            near = Curve(lambda eps: min(0.0, max(law.approximate_log_phi(eps, self._users, parted) for law in laws)),
                         rtol=_ROUGHLY, settles=close if expensive else 0.0, jumps=False)
        if upper and self.upper.may_be_exact:
            # The worst of the datasets that the randomizer lists is most often the worst of all, or close to it. A short search
            # over datasets shows whether the long one is likely to find this.
            below = Curve(partial(self.lower.log_delta, effort=Effort.SAMPLED), near, rtol=_ROUGHLY)
            return Curve(lambda eps: float(self.side(np.array([eps]), upper=True, effort=Effort.SAMPLED)[0]), below, rtol=_ROUGHLY,
                         settles=close)
        if not upper or not self.upper.has_search:
            return Curve(lambda eps: min(0.0, float(self.side(np.array([eps]), upper=upper, effort=Effort.SAMPLED)[0])), near,
                         rtol=close, settles=close) if self._adds_few else near
        if self.upper.over_datasets is not None:
            datasets = self.upper.over_datasets
            near = Curve(datasets.approximate_log_delta, rtol=0.1 * _ROUGHLY, settles=close, jumps=False)
            if not datasets.has_cells:
                return near
            if self.upper.heavy and 0 < len(self._below) <= FEW:
                # If rare messages dominate, `approximate_log_delta`, which assumes a normal sum, is far too small; so it is not
                # used alone.
                near = replace(near, log_delta=lambda eps: min(0.0, max(datasets.approximate_log_delta(eps), *(
                    law.approximate_log_phi(eps, self._users, True) for law in self._below))))
            close = max(close, _CLOSE_OF_CELLS)
        # The rough curve omits pairs and inputs that are rarely the worst. The search for eps evaluates the exact curve only near
        # the crossing of the rough one, usually once.
        return Curve(self.upper.without_search, near, rtol=close, settles=close)

    @cached_property
    def pair_info(self) -> DominatingPairInfo:
        """The description of the maximum over all pairs of neighbouring datasets (`DominatingPairInfo`)."""
        pairs, deep = self._laws.pairs, None if self.small_delta is None else self._sampled_deep
        info = DominatingPairInfo(self._sampled, self._local.pure)
        if len(pairs) == 1 and pairs[0].symmetric and pairs[0].attained:
            return replace(info, attained=SINGLE, sampling=Sampling(1e-3, 0.2, curve=CurveBounds(self.log_delta), deep=deep))
        # A value of delta takes milliseconds, and its bounds leave a gap, so curves use a coarse grid of eps. The grid is coarser
        # for densities, whose X has more atoms.
        if self.two_users is not None:
            attained = Attained(pairs=attained_pairs(self._laws, self._users, 0.25))
            return replace(info, sampling=Sampling(5e-3, 0.25), attained=attained)
        spacing = 0.25 if max(law.log_mass.size for law in self._laws.above) < COMPARED else 0.5
        # `above` is given if a value of the upper bound takes 0.1 s or more. Then only the upper bound is computed, at eps that are
        # chosen one after the other, when a Renyi divergence is computed from samples of delta.
        above = self._sampled_above if self.upper.has_cells else None
        # A value of a small delta takes a long time. So `scale`, the first eps at which delta is evaluated, is reduced until delta
        # there is likely above e^-40 times its value at eps = 0.
        scale, rough = Sampling().scale, partial(self._laws.above[0].approximate_log_phi, users=self._users, parted=True)
        while deep is not None and scale > 1e-300 and rough(scale) < rough(0.0) - 40:
            scale /= 4
        return replace(
            info, sampling=Sampling(self._effort(spacing), spacing, deep=deep, above=above, scale=scale),
            # The loss is unbounded if some output can be sent only by the target, and only under one of its two inputs.
            losses=Losses(unbounded=any(law.lost > 0 for law in self._below)),
            attained=Attained(pairs=attained_pairs(self._laws, self._users, spacing)),
        )

    def _effort(self, spacing: float) -> float:
        """Return a bound of the run time of one value of delta, like `ExcessLaw.effort`, for all distributions together."""
        above = [pair.upper for pair in self._laws.pairs]
        # On average, two of the distributions for lower bounds are evaluated at each eps.
        effort = sum(law.effort(self._users) for law in above + self._below[:2])
        fixed = 2e-3
        if self.upper.has_search:
            heavy = any(law.heavy for law in above + self._below)
            effort += ((0.1 if heavy else 0.05) if self._users <= MANY else 4e-3) + above[0].log_mass.size * 1e-5
            # A value takes longer for distributions with many atoms, and about 0.1 s if inputs are divided into cells.
            fixed = 0.1 if self.upper.has_cells else 1e-2 if spacing < 0.5 else 5e-2
        return max(fixed, effort + sum(law.log_mass.size for law in self._below) * 1e-7)


def _packed(laws: list[ExcessLaw]) -> LawTable:
    """Return distributions in the format of the compiled kernel; the result for a single distribution is cached."""
    return laws[0]._alone if len(laws) == 1 else packed([laws])
