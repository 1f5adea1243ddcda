"""Trade-off functions, mu and Renyi divergences, computed from outcomes or from samples of delta."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from shufflebounds._base.caches import Kept, cached_property, kept
from shufflebounds._base.limits import CACHED_ANSWERS, LARGEST_EXPONENT
from shufflebounds._base.types import FloatArray, Interval, IntervalArray, consistent
from shufflebounds._losses.atoms import LossAtoms
from shufflebounds._losses.closed_forms import ClosedForms
from shufflebounds._losses.curves import Staged, curve, curve_of_breakpoints, gdp_mu, mu_of_knots, sketch_step
from shufflebounds._losses.release import CurveBounds, DominatingPairInfo
from shufflebounds._losses.renyi import Tail, least_divergence, renyi, upper_renyi
from shufflebounds._losses.sampled_profile import STAGES, HockeyStickBounds, SampledProfile
from shufflebounds.tradeoff import Tradeoff
from shufflebounds.tradeoff.piecewise import Piecewise

__all__ = ["Samples"]


LARGEST_RISE = 1e11
"""Largest product of a Renyi order and the pure budget for which the lower bound of the divergence is computed from samples.
Raised: less tight lower bounds for larger orders, as samples are at least a relative 1e-12 apart. Lowered: the lower bound for
larger orders is a relative log(1/p)/LARGEST_RISE below the pure budget, where p is the probability of the largest loss."""


class Samples:
    """Outcomes and samples of the divergences H(P||Q) and H(Q||P) of a pair, cached for several results.

    `beside` has further valid bounds.
    """

    def __init__(self, info: DominatingPairInfo, beside: ClosedForms | None = None) -> None:
        self.info, self.beside = info, beside or ClosedForms()

    @property
    def outcomes(self) -> LossAtoms | None:
        """The outcomes of the pair if all are enumerated."""
        return self.info.atoms if self.info.attained.single and self.info.losses.listed else None

    @kept(CACHED_ANSWERS)
    def staged(self, step: float, stage: int) -> tuple[SampledProfile, SampledProfile]:
        """Return samples of H(Q||P) and of H(P||Q) that are `step` apart, down to the smallest delta of a stage (see STAGES).

        The samples are cached; copy them before adding more.
        """
        if not stage:
            return self._apart(step, first_stage=True)
        forward, own = self.staged(step, stage - 1)
        deeper = own.extended(step, stage)
        return deeper if forward is own else forward.extended(step, stage), deeper

    def _growing(self, *, first_stage: bool = False) -> tuple[SampledProfile, SampledProfile]:
        """Return copies of the samples of H(Q||P) and of H(P||Q), to which samples for mu or a Renyi divergence can be added.

        With `first_stage` the refinement starts without samples at small delta.
        """
        info = self.info
        if first_stage and info.sampling.deep is not None:
            own = self._first(info.sampling.deep).copy()
            return own, own
        spacing = info.sampling.spacing
        if not (info.sampling.expensive or info.sampling.curve):
            return self._apart(max(spacing, 0.05), deep_reverse=not first_stage)
        # With pure privacy the refinement itself adds samples at the small delta that it needs, so the first stage suffices.
        bounded = max(info.pure, 0.0 if info.reverse is None else info.reverse.pure) < math.inf
        first_stage = (first_stage or bounded) and spacing >= 0.1
        forward, own = self.staged(max(spacing, 0.05), 0 if first_stage else len(STAGES) - 1)
        mine = own.copy()
        return (mine if forward is own else forward.copy()), mine

    @kept(CACHED_ANSWERS)
    def _first(self, sides: HockeyStickBounds) -> SampledProfile:
        """Return samples of both orders of the pair, down to the smallest delta of the first stage (see STAGES).

        They are cached, so copy them before adding samples.
        """
        info = self.info
        return SampledProfile(sides, info.pure, max(info.sampling.spacing, 0.05), convex=info.sampling.convex, first_stage=True,
                              scale=info.sampling.scale, matched=info.losses.unmatched is None)

    def _apart(
        self, step: float, *, first_stage: bool = False, deep_reverse: bool = True
    ) -> tuple[SampledProfile, SampledProfile]:
        """Return samples of H(Q||P) and of H(P||Q) that are `step` apart.

        With `first_stage` the samples extend only down to the smallest delta of the first stage (see STAGES). Without
        `deep_reverse` the samples of H(Q||P) end at the eps where H(Q||P) is below e^-32 times its value at 0: in the integral for
        a Renyi divergence, larger eps have a small weight e^(-order eps).
        """
        info = self.info
        sides = info.sampling.curve or CurveBounds(info.hockey_stick)
        sampled = partial(SampledProfile, step=step, convex=info.sampling.convex, first_stage=first_stage,
                          scale=info.sampling.scale, matched=info.losses.unmatched is None)
        own = sampled(sides.hockey_stick, info.pure, depth=sides.depth)
        if info.reverse is None:
            return own, own
        depth = sides.depth if deep_reverse or own.high[0] == -math.inf else math.sqrt(64 - 2 * float(own.high[0]))
        return sampled(sides.reverse or info.reverse.hockey_stick, info.reverse.pure, depth=depth), own

    def _effort(self, rtol: float, most: int) -> tuple[float, int]:
        """Return the relative gap at which a refinement ends, and the largest number of values of delta.

        The results are `rtol` and `most` if delta is fast to evaluate.
        """
        sampling = self.info.sampling
        if sampling.spacing < 0.1:
            return rtol, most
        gap = 0.01 * sampling.spacing if sampling.refined_gap is None else sampling.refined_gap
        # If one value of delta is a search over datasets that takes about a second, fewer values are evaluated.
        return max(rtol, gap), 2**8 if sampling.effort < 0.1 else 2**6

    def _knots(self, upper: bool) -> FloatArray | None:
        """Return the exact breakpoints of the curve, rounded conservatively, or None if the outcomes are not enumerated."""
        if (unmatched := self.info.losses.unmatched) is not None:
            breakpoints, reverse = unmatched(), self.info.reverse or self.info
            if breakpoints is None:
                return None
            return curve_of_breakpoints(reverse.hockey_stick, self.info.hockey_stick, breakpoints, upper=upper).points
        atoms = self.outcomes
        return atoms.knots(upper=upper) if atoms else None

    def exact_curve(self, upper: bool) -> Tradeoff | None:
        """Return the curve of the outcomes, or None if they are not enumerated."""
        knots = self._knots(upper)
        return None if knots is None else Tradeoff(Piecewise(knots, None, side=1 if upper else -1))

    def exact_mu(self, upper: bool) -> float | None:
        """Return mu of the outcomes, or None if they are not enumerated."""
        knots = self._knots(not upper)
        return None if knots is None else mu_of_knots(knots, upper=upper)

    def curve(self, upper: bool) -> Tradeoff:
        """Return a bound of the trade-off function."""
        sampling = self.info.sampling
        if sampling.expensive or sampling.curve:
            return Tradeoff(Staged(self.staged, sampling.spacing, sketch_step(sampling), upper=upper))
        return curve(*self._apart(sampling.spacing), upper=upper)

    def mu(self, upper: bool) -> float:
        """Return a bound of mu."""
        cap = self.beside.mu_limit() if upper else math.inf
        if cap < math.inf and self.info.pure == math.inf:
            # The samples end at a positive delta, so no finite upper bound of mu follows from them.
            return cap
        pure = max(self.info.pure, 0.0 if self.info.reverse is None else self.info.reverse.pure)
        if upper and pure < math.inf:
            # Among all pairs with this pure budget, randomized response has the lowest curve. If the budget is above about 30, the
            # curve of the samples may reach 0 by rounding, so that its mu is infinite.
            cap = min(cap, Tradeoff.randomized_response(pure).gdp_mu())
        return min(cap, self._mu[upper])

    @cached_property
    def _mu(self) -> Interval:
        lower, upper = gdp_mu(*self._growing(), *self._effort(1e-7, 1500), self.beside.mu_limit())
        return consistent(IntervalArray(np.array([lower]), np.array([upper])), "mu", np.zeros(1)).alone()

    def renyi(self, orders: FloatArray, upper: bool) -> FloatArray:
        """Return bounds of the Renyi divergences of these finite orders."""
        if upper:
            return np.minimum([bounds.upper for bounds in self._divergences(orders, upper)], self.info.pure)
        if not self.info.attained.single:
            return least_divergence(self._growing(first_stage=True)[1], orders)
        # Renyi divergences do not decrease with the order. For larger orders the lower bound from samples becomes less tight, as
        # the integrand changes by a large factor between neighbouring doubles.
        reached = np.minimum(orders, max(1.0, LARGEST_RISE / self.info.pure)) if 0 < self.info.pure < math.inf else orders
        return np.array([bounds.lower for bounds in self._divergences(reached, upper)])

    @cached_property
    def _known(self) -> Kept[tuple[bytes, bool], list[Interval]]:
        """Cache of bounds of Renyi divergences that follow from values of delta alone, for the last lists of orders."""
        return Kept(16)

    def _divergences(self, orders: FloatArray, upper: bool) -> list[Interval]:
        """Return bounds of the Renyi divergences of these finite orders. If `upper`, the lower bounds may be trivial."""
        tail = self.beside.tail() if self.info.pure == math.inf else None
        # One refinement of the samples gives both bounds. Whether the upper bound is infinite has been decided before.
        infinite = {a: upper and self.info.pure == math.inf and (tail is None or tail(a - 1, LARGEST_EXPONENT) == math.inf)
                    for a in sorted(orders.tolist())}

        def computed() -> list[Interval]:
            if self.info.sampling.above is not None:
                return self._upper_divergences(orders, infinite, tail)
            reverse, own = self._growing(first_stage=tail is not None)
            rtol, most = self._effort(1e-6, 2**13)
            placed, bounds = (own.evaluations, reverse.evaluations), {}
            # If the profile is not that of a single pair, the lower bound does not use these samples (see `renyi`).
            caps = np.full(len(infinite), np.inf)
            if not self.info.attained.single:
                caps = self.beside.renyi_limit(np.array(list(infinite)), True)
            # The samples for one Renyi order are used for the next order, too. Each order may add as many samples as if it were the
            # only one. The orders are sorted, so that the result does not depend on their places in the list.
            for (a, beyond), cap in zip(infinite.items(), caps.tolist()):
                own.evaluations, reverse.evaluations = placed
                bounds[a] = renyi(own, reverse, a, beyond, rtol, most, tail, cap)
            return [bounds[a] for a in orders.tolist()]

        return self._known.of((orders.tobytes(), any(infinite.values())), computed)

    def _upper_divergences(self, orders: FloatArray, infinite: dict[float, bool], tail: Tail | None) -> list[Interval]:
        """Return upper bounds of the Renyi divergences from samples of upper bounds of delta, with trivial lower bounds."""
        above, bounds = self.info.sampling.above, {}
        assert above is not None
        samples, (rtol, most) = self._first(above).copy(), self._effort(1e-6, 2**13)
        placed, limits = samples.evaluations, [self.beside.renyi_limit(np.array(list(infinite)), upper) for upper in (False, True)]
        for (a, beyond), below, cap in zip(infinite.items(), *(limit.tolist() for limit in limits)):
            samples.evaluations = placed
            upper = math.inf if beyond else upper_renyi(samples, a, rtol, most, tail, below, self.beside.known_upper(), cap)
            bounds[a] = Interval(0.0, upper)
        return [bounds[a] for a in orders.tolist()]
