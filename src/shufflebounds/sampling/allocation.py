"""Random allocation (balls and bins): the privacy profile of training in which each record enters one of t random steps.

The analysis follows Chua et al. (2024), and Feldman and Shenfeld (2025) if a record enters several steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Self

import numpy as np

from shufflebounds._base import validate as _validate
from shufflebounds._base.caches import cached_property, kept
from shufflebounds._base.crossing import Curve
from shufflebounds._base.evidence import bound_lines, format_bound
from shufflebounds._base.limits import CACHED_ANSWERS, COMPARED, MOST_ITEMS, SAME_LOG, SEARCH_GAP
from shufflebounds._base.types import EXP_SLACK, SLACK, ULP, FloatArray, Interval, IntervalArray, consistent
from shufflebounds._engines.allocation.listed import ListedAllocation
from shufflebounds._engines.allocation.moments import LARGEST_ORDER, allocation_renyi, allocation_renyis
from shufflebounds._engines.allocation.multisets import counted_allocation
from shufflebounds._engines.allocation.stop_loss import Allocation
from shufflebounds._engines.excess.evaluation import HEAVY, Effort
from shufflebounds._losses.atoms import LossAtoms
from shufflebounds._losses.closed_forms import ClosedForms
from shufflebounds._losses.release import SINGLE, Attained, CurveBounds, DominatingPairInfo, Losses, Releases, Sampling
from shufflebounds._losses.renyi import log_levels
from shufflebounds.profile import Composition, DominatingPair, PrivacyProfile
from shufflebounds.profile.between import Between
from shufflebounds.profile.product import CURVE_DEPTH
from shufflebounds.profile.profile import KnownPair, OutcomePair, largest_of, outcome_info
from shufflebounds.sampling._of_mechanism import OfMechanismForms, OfPresence
from shufflebounds.sampling._several import AdditiveBound, PairOfTests, StepTests
from shufflebounds.sampling.poisson import SampledPair, Subsampled

__all__ = ["AllocationPair", "RandomAllocation"]

_ONE = "exact for random allocation to one step (balls and bins; Chua et al. 2024; Feldman, Shenfeld 2025)"
_COUNTED = "exact: the numbers of steps with each outcome are enumerated, or every step uses the record"
_BLOCKS, _ADDITIVE = "blocks of steps with one chosen step each", "a sum over the steps"
_SEVERAL = f"upper bound by {_BLOCKS} (Feldman, Shenfeld 2025) or, for a removed record, by {_ADDITIVE}"
_TESTS = "delta of tests by sums over the steps, or of the output of one step"
_RATIOS, _ALONE = "the sum of the likelihood ratios of all steps", "one step that uses the record"
_RENYI = "the Renyi divergences of whole orders"
"""What the bounds rest on, and the names of bounds in the lines of `explain`; docs/theorems/random-allocation has the proofs."""


class _OneForms(OfMechanismForms):
    """Bounds for one chosen step, by the distribution of the sum of the likelihood ratios in `engine`."""

    def __init__(self, mechanism: PrivacyProfile, steps: int, removed: bool, engine: Allocation | ListedAllocation) -> None:
        # The pair (P-bar, Q^t) of t steps is the average over i of the pairs that differ in step i only.
        self.one_step = mechanism if removed else mechanism.reverse()
        super().__init__(mechanism, (self.one_step,))
        self.steps, self.removed, self.engine, self.pure = steps, removed, engine, self.one_step._pure_epsilon()

    def log_delta(self, eps: FloatArray) -> IntervalArray:
        return self._bounded(self.engine.remove if self.removed else self.engine.add, eps)

    def at_most(self, eps: FloatArray) -> FloatArray:
        """Return a rough upper bound of log delta for an added record, which takes less time; inf if there is none."""
        return np.full(eps.size, np.inf) if isinstance(self.engine, Allocation) else self.engine.add_at_most(eps)

    def sampled(self, eps: FloatArray) -> IntervalArray:
        """Return bounds of log delta for interpolation between many values; they take less time if outcomes are enumerated."""
        engine = self.engine
        if isinstance(engine, Allocation):
            return self.log_delta(eps)
        return self._bounded(partial(engine.remove if self.removed else engine.add, effort=Effort.SAMPLED), eps)

    def _bounded(self, kernel: Callable[[FloatArray], IntervalArray], eps: FloatArray) -> IntervalArray:
        """Return the bounds of `kernel` at the eps below the pure budget."""
        lower, upper = np.full(eps.size, -np.inf), np.full(eps.size, -np.inf)
        # The average of the likelihood ratios is between the smallest and the largest ratio of one step, so delta is 0 at eps >=
        # the pure budget of one step.
        within = eps < self.pure
        if within.any():
            sides = kernel(eps[within])
            # By joint convexity delta is at most that of one step. The kernels truncate masses, so their bounds of a small delta
            # may be larger than that bound.
            high = np.minimum(sides[1], self.one_step._log_side(eps[within], upper=True))
            deep = high - sides[0] > 1
            if self.removed and deep.any():
                high[deep] = np.minimum(high[deep], self._by_renyi(eps[within][deep]))
            lower[within], upper[within] = sides[0], high
        return consistent(IntervalArray(lower, upper), "log delta of one direction at eps={!r}", eps)

    def _by_renyi(self, eps: FloatArray) -> FloatArray:
        """Return Chernoff's bound of log delta at each eps for a removed record, from the divergences of whole Renyi orders."""
        # The terms are at most LARGEST_ORDER times eps or a Renyi divergence D, so their rounding errors are far below a relative
        # 1e-9 of eps or D.
        return np.asarray(log_levels(*self._levels, eps[:, None]).min(axis=1) + SAME_LOG * (1 + eps))

    def method(self, eps: float) -> list[str]:
        if not eps < self.pure:
            return [f"method: delta is 0 from the pure budget {self.pure:.12g} of one step on"]
        point = np.array([eps])
        lower, upper = (float(bound[0]) for bound in (self.engine.remove if self.removed else self.engine.add)(point))
        above = {_RATIOS: upper, _ALONE: self.one_step._log_side_at(eps, upper=True)}
        omitted = {}
        if self.removed and min(above.values()) - lower > 1:
            above[_RENYI] = float(self._by_renyi(point)[0])
        else:
            omitted[_RENYI] = "because the gap of log delta is below 1" if self.removed else "because the record is added"
        return [f"method: above by {min(above, key=above.__getitem__)}; below by {_RATIOS}",
                *bound_lines(above, upper=True, omitted=omitted), *bound_lines({_RATIOS: lower}, upper=False)]

    @cached_property
    def _levels(self) -> tuple[FloatArray, FloatArray]:
        """Whole Renyi orders, and upper bounds of the divergences of these orders for a removed record."""
        # The run time grows with the third power of the largest order; an order twice as large takes 0.1 s.
        orders = np.unique(np.round(np.geomspace(2.0, LARGEST_ORDER / 2, COMPARED)))
        return orders, allocation_renyis([round(order) for order in orders.tolist()], self.steps,
                                         self.mechanism._rdp(np.arange(2.0, orders[-1] + 1), True), upper=True)

    def renyi(self, orders: FloatArray, upper: bool) -> FloatArray | None:
        # If the record is removed, the divergences of whole Renyi orders have a closed form, which gives bounds for all orders.
        # If values of delta take long, the bounds from samples of delta have a gap of SEARCH_GAP or more; then the bounds from
        # whole orders are used if their gap is at most twice SEARCH_GAP.
        if not self.removed:
            return None
        lower, above = np.array([self._between(order) for order in orders.tolist()]).T
        close = SAME_LOG if isinstance(self.engine, Allocation) else 2 * SEARCH_GAP
        return np.asarray(np.where(above - lower <= close * lower, above if upper else lower, np.nan))

    def renyi_limit(self, orders: FloatArray, upper: bool) -> FloatArray:
        limit = super().renyi_limit(orders, upper)
        if not self.removed:
            return limit
        bound = np.array([self._between(order)[upper] for order in orders.tolist()])
        return np.asarray(np.minimum(limit, bound) if upper else np.maximum(limit, bound))

    def _between(self, order: float) -> Interval:
        """Return bounds of the Renyi divergence for a removed record, from those of the nearest whole Renyi orders."""
        low = math.floor(min(order, LARGEST_ORDER))
        part = order - low
        if part == 0 and low > 1:
            return Interval(self._whole(low, False), self._whole(low, True))
        if order > LARGEST_ORDER:
            return Interval(self._beyond(order), math.inf)
        if not order > 1:
            return Interval(0.0, math.inf)
        # (a - 1) D_a is convex in a, and 0 at a = 1. So it is at most the chord between the two nearest whole orders, and at least
        # the lines through two whole orders on either side.
        (first, below, above, last), (_, most, more, _) = (
            [(a - 1) * self._whole(a, side) if 1 < a <= LARGEST_ORDER else 0.0 if a <= 1 else math.inf for a, side in zip(
                range(low - 1, low + 3), sides)] for sides in ((True, False, False, True), (True, True, True, True)))
        if below == math.inf:
            return Interval(math.inf, math.inf)
        # If the divergence of the next whole order is infinite, the line through it gives no bound.
        line = above - (1 - part) * (last - above) if last < math.inf else 0.0
        rounding = 8 * ULP * (first + below + (above if last < math.inf else 0.0))
        lower = max(0.0, below + part * (below - first), line) - rounding
        chord = most + part * (more - most) if more < math.inf else math.inf
        return Interval(max(lower, 0.0) / (order - 1) * (1 - SLACK), chord / (order - 1) * (1 + SLACK))

    def _beyond(self, order: float) -> float:
        """Return a lower bound of the Renyi divergence of an order above LARGEST_ORDER for a removed record."""
        # (a - 1) D_a is convex in a, so it is above the line through the two largest whole orders; and D_a increases with a.
        most = LARGEST_ORDER - 1
        known, first = self._whole(most + 1, False), self._whole(most, True)
        if not max(known, first) < math.inf:
            return known
        slope = (most * known - (most - 1) * first) - 8 * ULP * most * (known + first)
        return max(known, (slope + most / (order - 1) * (known - slope)) * (1 - SLACK))

    @kept(CACHED_ANSWERS)
    def _whole(self, order: int, upper: bool) -> float:
        """Return a bound of the Renyi divergence of a whole Renyi order for a removed record, from the divergences of one step."""
        return allocation_renyi(order, self.steps, self.mechanism._rdp(np.arange(2.0, order + 1), upper), upper=upper)

    def last_positive(self, pure: float) -> float | None:
        # If one step has no pure budget, the t steps have none, and delta is positive even beyond the eps that the kernels support.
        return pure if self.mechanism._last_positive(math.inf) == pure == math.inf else None


class _SeveralForms(_OneForms):
    """Bounds for several chosen steps: upper bounds by blocks with one chosen step each, lower bounds by tests."""

    def __init__(
        self, mechanism: PrivacyProfile, steps: int, removed: bool, chosen: int, block: AllocationPair, tested: PairOfTests
    ) -> None:
        super().__init__(mechanism, steps, removed, block._engine)
        self.parts = (Composition(((self.one_step, chosen),)),)
        self.chosen, self.block, self.tested = chosen, block, tested
        # Only the upper bound of this composition is used. The composition takes less time without lower bounds of its factors
        # (single=False), but then evaluates an expensive delta at fewer eps. So these lower bounds are kept if delta is expensive.
        info = block._pair_info()
        info = replace(info, attained=Attained(single=info.sampling.expensive))
        self.blocks = Composition(((KnownPair(info), chosen),))
        self.pure = self.blocks._pure_epsilon()

    @cached_property
    def sum_bound(self) -> AdditiveBound:
        return AdditiveBound(self.mechanism._pair_info(), self.steps, self.chosen)

    def log_delta(self, eps: FloatArray) -> IntervalArray:
        return consistent(IntervalArray(*(self.side(eps, upper) for upper in (False, True))), "log delta at eps={!r}", eps)

    def side(self, eps: FloatArray, upper: bool) -> FloatArray:
        if not upper:
            return np.maximum(self.tested._log_side(eps, upper=False), self.alone._log_side(eps, upper=False))
        bound = self.blocks._log_side(eps, upper=True)
        if self.removed:
            bound = np.array([min(value, self.sum_bound.log_delta(at, value)) if value > -math.inf else value
                              for at, value in zip(eps.tolist(), bound.tolist())])
        return bound

    def method(self, eps: float) -> list[str]:
        above = {_BLOCKS: self.blocks._log_side_at(eps, upper=True)}
        if self.removed and above[_BLOCKS] > -math.inf:
            above[_ADDITIVE] = self.sum_bound.log_delta(eps, above[_BLOCKS])
        omitted = {} if _ADDITIVE in above else {_ADDITIVE: "which needs a removed record and a positive delta"}
        below = {"tests by sums over the steps": self.tested._log_side_at(eps, upper=False),
                 "the output of one step": self.alone._log_side_at(eps, upper=False)}
        return [f"method: above by {min(above, key=above.__getitem__)}; below by {max(below, key=below.__getitem__)}",
                *bound_lines(above, upper=True, omitted=omitted), *bound_lines(below, upper=False)]

    @cached_property
    def alone(self) -> PrivacyProfile:
        """The output of one step, which uses the record with probability k/t."""
        # For the lower bound the rate is rounded down: sampling at a smaller rate only decreases delta.
        return SampledPair(self.mechanism, self.chosen / self.steps * (1 - 2 * ULP), self.removed)

    def sampled(self, eps: FloatArray) -> IntervalArray:
        upper = self.blocks._log_side(eps, upper=True)
        return consistent(IntervalArray(self.side(eps, False), upper), "log delta at eps={!r}", eps)

    def at_most(self, eps: FloatArray) -> FloatArray:
        return self.blocks._product.roughly(eps)

    def renyi(self, orders: FloatArray, upper: bool) -> FloatArray | None:
        if not upper:
            divergence = self.tested._rdp(orders, False)
            # The tests omit rare outputs, which determine the divergence of order inf; so the divergence of one step is used,
            # too.
            return np.where(orders == np.inf, np.maximum(divergence, self.alone._rdp(np.array([np.inf]), False)), divergence)
        return np.minimum(self.renyi_limit(orders, True), self.chosen * self.block._rdp(orders, True) * (1 + EXP_SLACK))

    # The chords between whole orders hold for one chosen step only.
    renyi_limit = OfMechanismForms.renyi_limit

    def mu(self, upper: bool) -> float | None:
        limit = self.mechanism._closed.mu_in_tails
        # The argument in `OfMechanismForms.mu` also holds for the sum of the outputs of the steps that the record enters.
        return limit if limit is None else self.mu_limit() if upper else math.sqrt(self.chosen) * limit * (1 - SLACK)

    def last_positive(self, pure: float) -> float | None:
        return (self.blocks if pure < math.inf else self.block)._last_positive(pure)


class _EveryStep(Between):
    """Results of a composition of all steps, each of which uses the record."""

    def __init__(self, one_step: PrivacyProfile, steps: int) -> None:
        whole = Composition(((one_step, steps),))
        super().__init__(whole, whole, whole._pure_epsilon())
        self.whole, self.parts = whole, ((one_step._pair_info(), steps),)

    def sampled(self, eps: FloatArray) -> IntervalArray:
        return self.log_delta(eps)

    def at_most(self, eps: FloatArray) -> FloatArray:
        return np.full(eps.size, np.inf)

    def last_positive(self, pure: float) -> float | None:
        return self.whole._last_positive(pure)

    def described(self) -> DominatingPairInfo:
        return replace(self.whole.describe(), attained=SINGLE, releases=Releases(parts=self.parts))


class _EpochForms(OfMechanismForms):
    """Bounds for a removed or an added record, whose pairs are `ways`."""

    def __init__(self, mechanism: PrivacyProfile, steps: int, chosen: int, ways: tuple[AllocationPair, AllocationPair]) -> None:
        super().__init__(mechanism)
        self.steps, self.chosen, self.ways = steps, chosen, ways

    def log_delta(self, eps: FloatArray) -> IntervalArray:
        return self.largest(eps, Effort.FINE)

    def side(self, eps: FloatArray, upper: bool) -> FloatArray | None:
        # For several chosen steps, the two bounds come from different distributions.
        if self.chosen == 1:
            return None
        remove, add = self.ways
        larger = np.array(remove._log_side(eps, upper=upper))
        # As in `largest`, added records are evaluated only where they may matter. For lower bounds they are always evaluated,
        # because the tests take less time than the rough upper bound.
        wanted = add._forms.at_most(eps) > larger if upper else np.full(eps.size, True)
        if wanted.any():
            larger[wanted] = np.maximum(larger[wanted], add._log_side(eps[wanted], upper=upper))
        return larger

    def method(self, eps: float) -> list[str]:
        remove, add = self.ways
        lines = ["method: the larger delta of a removed and of an added record"]
        lines += [line.replace("method:", "record removed:", 1) for line in remove._forms.method(eps)]
        rough = float(add._forms.at_most(np.array([eps]))[0])
        if rough > remove._log_side_at(eps, upper=False):
            return lines + [line.replace("method:", "record added:", 1) for line in add._forms.method(eps)]
        return [*lines, f"record added: not computed, because a rough upper bound of log delta is "
                f"{format_bound(rough, upper=True, digits=9)}"]

    def rough(self, upper: bool) -> Curve | None:
        if self.mechanism._normal_mu is None:
            return None
        # With Poisson sampling at this rate, a record enters `chosen` steps on average.
        return Subsampled(self.mechanism, self.chosen / self.steps).self_compose(self.steps)._rough(upper)

    def largest(self, eps: FloatArray, effort: Effort) -> IntervalArray:
        """Return bounds of the larger log delta of both directions (record removed, record added)."""
        remove, add = (pair._forms for pair in self.ways)
        one, other = (forms.log_delta if effort is Effort.FINE else forms.sampled for forms in (remove, add))
        both = one(eps)
        # An added record is not evaluated where a rough upper bound of its delta is below delta of a removed record.
        wanted = add.at_most(eps) > both.lower
        if wanted.any():
            low, high = other(eps[wanted])
            both.lower[wanted], both.upper[wanted] = np.maximum(both.lower[wanted], low), np.maximum(both.upper[wanted], high)
        return both

    def renyi(self, orders: FloatArray, upper: bool) -> FloatArray | None:
        return np.asarray(np.max([pair._rdp(orders, upper) for pair in self.ways], axis=0))

    def mu(self, upper: bool) -> float | None:
        if self.chosen == 1 or self.mechanism._closed.mu_in_tails is None:
            return super().mu(upper)
        # The base class returns mu of the mechanism, which is that of one step only; here a record enters several steps.
        return max(pair._gdp_mu(upper) for pair in self.ways)

    def mixture(self) -> tuple[tuple[PrivacyProfile, ...], float]:
        # The pair of an epoch is the average, over all sets of `chosen` steps, of the pairs that differ only in the steps of the
        # set.
        sides = self.mechanism, self.mechanism.reverse()
        return tuple(Composition(((side, self.chosen),)) for side in {id(side): side for side in sides}.values()), 1.0

    def last_positive(self, pure: float) -> float | None:
        return max(way._last_positive(pure) for way in self.ways)

    @property
    def eps_scale(self) -> float:
        # As for a composition, eps grows with the number of steps that a record enters: for 10**7 steps it exceeds a million times
        # that of one step.
        return self.chosen * super().eps_scale


@dataclass(frozen=True)
class AllocationPair(OfPresence, DominatingPair):
    r"""The outputs of `steps` steps, of which one uniformly random step used the record, against those of steps without the record.

    .. math:: \bar P = \frac1t \sum_{i=1}^t Q^{i-1} P\, Q^{t-i}: \quad H_E(\bar P \| Q^t) =
        \frac1t\, \mathbb{E} \Bigl(\sum_i L_i - t E\Bigr)_+ + p_\infty \;\text{(remove)}, \qquad H_E(Q^t \| \bar P) =
        \frac{E}{t}\, \mathbb{E} \Bigl(\frac{t}{E} - \sum_i L_i\Bigr)_+ \;\text{(add)}.

    P and Q are the distributions of the output of a step with and without the record, t is `steps`, :math:`H_E` is the hockey-stick
    divergence at :math:`E = e^\varepsilon`, and :math:`(x)_+ = \max(0, x)`. The expectations are over independent outputs
    :math:`y_i` of distribution Q; :math:`L_i = P(y_i)/Q(y_i)` is the likelihood ratio of step i. The number :math:`p_\infty` is the
    mass of P on outputs that are impossible under Q, 0 for Gaussian and Laplace noise.

    Parameters
    ----------
    mechanism : PrivacyProfile
        One step, with or without the record: Gaussian or Laplace noise, or a mechanism with one dominating pair of enumerated
        outcomes.
    steps : int
        Number t of steps, 1 to 10**7.
    removed : bool
        True for the first formula (remove), False for the second (add).

    Notes
    -----
    The bounds of delta differ by numerical errors only. If a step has few outcomes, the numbers of steps with each outcome are
    enumerated, up to 2**14 combinations: for example 16,383 steps of two outcomes or 179 steps of three.

    Otherwise the distribution of :math:`L_i` is moved to the points of a grid. For the upper bound, the mass between two points is
    divided between them, so that the expectation of no convex function of :math:`L_i` decreases. For the lower bound, masses are
    merged at grid points, so that no such expectation increases. The distribution of :math:`\sum_i L_i` is a convolution power by
    FFT, with a bound of its errors. The relative gap of the bounds of delta is about 1e-3; measured for sigma 0.5 to 1 and 1000 or
    1e6 steps it is below 1e-2 down to delta = 1e-12.

    If the record is removed, the Renyi divergences of the whole orders 2 to 256 are exact: they follow from those of one step
    (Feldman and Shenfeld 2025, cited in :class:`RandomAllocation`). The nearest whole orders bound those of other orders below
    256. For every order, and also if the record is added, values of delta at many eps give bounds, and the divergence of one step
    is an upper bound.

    Examples
    --------
    >>> from shufflebounds.mechanisms import GaussianMechanism
    >>> from shufflebounds.sampling import AllocationPair
    >>> pair = AllocationPair(GaussianMechanism(2.0), steps=100)
    >>> print(f"{pair.delta(0.1, bound='lower'):.5f} {pair.delta(0.1):.5f}")
    0.00067 0.00067
    """

    steps: int
    removed: bool = True

    theorem: ClassVar[str] = _ONE
    proof: ClassVar[str] = "docs/theorems/random-allocation"
    neighbours: ClassVar[str] = "remove the record (removed=True) or add it"

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.integer_field(self, "steps", 1, MOST_ITEMS)
        self._listed()

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        # The transforms are not pickled; a copy computes them again.
        return type(self), (self.mechanism, self.steps, self.removed)

    def reverse(self) -> Self:
        # The reversed pair shares the engine, because it has the same distribution of L and the same transforms.
        other = type(self)(self.mechanism, self.steps, not self.removed)
        if self._counted is None:
            other.__dict__["_engine"] = self._engine
        else:
            other.__dict__["_counted"] = self._counted.reversed()
        return other

    def _listed(self) -> tuple[LossAtoms, float] | None:
        """Return the outcomes of (P, Q) and the log mass under Q of outcomes not enumerated, or None for Gaussian or Laplace noise.

        Raise TypeError for other mechanisms that do not enumerate their outcomes.
        """
        if self.mechanism._ratios is not None:
            return None
        info = self.mechanism._pair_info()
        opposite = self.mechanism.reverse()
        atoms, reverse = info.atoms, opposite._pair_info().atoms
        log_lost = None if atoms is None or reverse is None else atoms.log_lost_other(reverse, symmetric=opposite is self.mechanism)
        if not info.attained.single or atoms is None or log_lost is None:
            raise TypeError(f"{self.mechanism!r} does not enumerate its outcomes: random allocation needs Gaussian or Laplace "
                            "noise, or a mechanism of one pair with enumerated outcomes")
        return atoms, log_lost

    _chosen: ClassVar[int] = 1

    @cached_property
    def _counted(self) -> LossAtoms | None:
        """The joint outcomes (how often each outcome occurs in all steps), if they are few and known; otherwise None."""
        listed = self._listed()
        # A pair that is given by lists has no other description than its outcomes, so they are used even if some mass is lost. If
        # another mechanism truncates outcomes, its divergences are evaluated instead.
        if listed is None or (listed[0].log_lost > -math.inf and not isinstance(self.mechanism, OutcomePair)):
            return None
        counted = counted_allocation(listed[0], self.steps, self._chosen)
        return counted.reversed() if counted and not self.removed else counted

    @cached_property
    def _engine(self) -> Allocation | ListedAllocation:
        ratios = self.mechanism._ratios
        if ratios is not None:
            return Allocation(ratios, self.steps)
        listed = self._listed()
        assert listed is not None
        return ListedAllocation(*listed, self.steps)

    @cached_property
    def _every_step(self) -> _EveryStep | None:
        """The results if every step uses the record; otherwise None."""
        one_step = self.mechanism if self.removed else self.mechanism.reverse()
        return _EveryStep(one_step, self.steps) if self._chosen == self.steps else None

    @cached_property
    def _forms(self) -> _OneForms | _EveryStep:
        return self._every_step or _OneForms(self.mechanism, self.steps, self.removed, self._engine)

    def closed_forms(self) -> ClosedForms:
        return super().closed_forms() if self._counted else self._forms

    def describe(self) -> DominatingPairInfo:
        if self._counted:
            pure = (self.mechanism if self.removed else self.mechanism.reverse())._pure_epsilon()
            return outcome_info(self._counted, self._chosen * pure * (1 if self._chosen == 1 else 1 + ULP))
        return self._described_by_sums() if self._every_step is None else self._every_step.described()

    def _described_by_sums(self) -> DominatingPairInfo:
        forms, listed = self._forms, self._listed()
        # `reveals`: some outputs are possible only with the record. (If `removed` is False, P and Q are exchanged.) A trade-off
        # function evaluates delta at few eps (`spacing`), because most values of eps need a new transform.
        reveals = listed is not None and (listed[0].log_rest if self.removed else listed[0].log_other) > -math.inf
        curve = CurveBounds(forms.sampled, self.reverse()._forms.sampled)
        # With few steps and outcomes, the kernel enumerates the sums, so a trade-off function can use delta itself instead of the
        # rougher bounds `curve`.
        few = listed is not None and self.steps <= COMPARED
        info = DominatingPairInfo(forms.log_delta, forms.pure, sampling=Sampling(spacing=0.1, curve=None if few else curve),
                                   losses=Losses(unbounded=reveals), attained=SINGLE)
        loss = np.empty(0) if listed is None else listed[0].loss
        if float(np.abs(loss).max(initial=0.0)) <= math.log(HEAVY) and loss.size <= COMPARED:
            return info
        # With heavy tails or many outcomes a value of delta takes up to 0.1 s, and up to 1 s for a delta below
        # e^(-CURVE_DEPTH^2/2).
        return replace(info, hockey_stick=forms.sampled, sampling=Sampling(3e-3, 0.1, curve=curve._replace(depth=CURVE_DEPTH)))


@dataclass(frozen=True)
class RandomAllocation(OfPresence):
    r"""Training by random allocation: in each epoch every record enters `chosen` of `steps` steps, drawn uniformly.

    .. math:: \delta(\varepsilon) = \max\{H_E(\bar P \| Q^t),\; H_E(Q^t \| \bar P)\}, \qquad
        \bar P = \frac1t \sum_{i=1}^t Q^{i-1} P\, Q^{t-i}

    This is the formula for one chosen step, with t = `steps`. P and Q are the output distributions of a step with and without the
    record, and :math:`H_E` is the hockey-stick divergence at :math:`E = e^\varepsilon`.

    Parameters
    ----------
    mechanism : PrivacyProfile
        One step, with or without the record: ``GaussianMechanism(sigma)`` for DP-SGD with noise multiplier sigma.
    steps : int
        Number t of steps, 1 to 10**7. With N records and batches of about b records, t is N/b.
    chosen : int
        Number k of steps that a record enters, 1 to `steps`.

    Notes
    -----
    Adjacency: **add or remove** one record. A step may depend on the outputs of earlier steps.

    Delta of a removed and of an added record is exact for chosen = 1 (:class:`AllocationPair`), and for any `chosen` if the
    mechanism has few outcomes: the numbers of steps with each outcome are enumerated. For other mechanisms and chosen = k > 1:

    - The lower bound is delta of the best of several tests. A test compares :math:`\sum_i \log(1 + \lambda (L_i - 1))` with a
      threshold, where :math:`L_i = P(y_i)/Q(y_i)` is the likelihood ratio of the output :math:`y_i` of step i, and
      :math:`\lambda < k/t`. These tests are also used for compositions of several epochs.
    - One upper bound is that of k blocks of floor(t/k) steps with one chosen step each (Feldman, Shenfeld 2025).
    - For a removed record there is a second upper bound, from a product with one factor for each step, which bounds the likelihood
      ratio of the epoch except for rare outputs. One epoch uses the smaller bound, a composition of several epochs the bound by
      blocks.

    :doc:`/theorems/random-allocation` has the proofs.

    At delta = 1e-6 the two bounds of eps differ by less than 1 % for t >= 1000 steps of Gaussian noise with sigma >= 1, and by
    up to 3 % otherwise; the gap decreases as t grows.

    Shuffling the records and cutting them into batches of fixed size is *not* random allocation, because there the batches of the
    other records depend on the batch of this record: use :class:`ShuffledBatches`.

    References
    ----------
    Chua, L., Ghazi, B., Harrison, C., Leeman, E., Kamath, P., Kumar, R., Manurangsi, P., Sinha, A., Zhang, C. Balls-and-bins
    sampling for DP-SGD. arXiv 2412.16802, 2024.

    Feldman, V., Shenfeld, M. Privacy amplification by random allocation. arXiv 2502.08202, 2025.

    Examples
    --------
    >>> from shufflebounds.mechanisms import GaussianMechanism
    >>> from shufflebounds.sampling import RandomAllocation
    >>> epoch = RandomAllocation(GaussianMechanism(sigma=1.0), steps=1000)
    >>> print(f"{epoch.delta(0.2, bound='lower'):.3e} {epoch.delta(0.2):.3e}")
    2.037e-07 2.037e-07
    """

    steps: int
    chosen: int = 1

    _prepares: ClassVar[bool] = True
    proof: ClassVar[str] = "docs/theorems/random-allocation"
    neighbours: ClassVar[str] = "add or remove one record, which enters `chosen` of the steps, drawn uniformly"

    def __post_init__(self) -> None:
        pair = AllocationPair(self.mechanism, self.steps)
        object.__setattr__(self, "steps", pair.steps)
        _validate.integer_field(self, "chosen", 1, self.steps)

    @property
    def theorem(self) -> str:  # type: ignore[override]
        """What is proven for the upper bound, or for both bounds."""
        return _ONE if self.chosen == 1 else _COUNTED if self._exact else _SEVERAL

    @property
    def lower_theorem(self) -> str:  # type: ignore[override]
        """What is proven for the lower bound; "" if `theorem` is about both bounds."""
        return "" if self._exact else _TESTS

    @property
    def _exact(self) -> bool:
        return self.chosen in (1, self.steps) or self._counted

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.mechanism, self.steps, self.chosen)

    def pairs(self) -> tuple[DominatingPair, ...]:
        if not self._exact:
            raise TypeError(f"{self!r} is bounded by a composition and has no list of pairs: pass chosen=1, or a mechanism of few "
                            "outcomes, for exact pairs")
        return self._ways

    @cached_property
    def _ways(self) -> tuple[AllocationPair, AllocationPair]:
        remove = (AllocationPair(self.mechanism, self.steps) if self.chosen == 1
                  else _SeveralPair(self.mechanism, self.steps, True, self.chosen))
        return remove, remove.reverse()

    @property
    def _counted(self) -> bool:
        """Whether the distributions of both pairs are enumerated."""
        return self._ways[0]._counted is not None

    def closed_forms(self) -> ClosedForms:
        return super().closed_forms() if self._counted else self._epoch

    @property
    def _epoch(self) -> _EpochForms:
        return _EpochForms(self.mechanism, self.steps, self.chosen, self._ways)

    def describe(self) -> DominatingPairInfo:
        if self._counted:
            return largest_of(self._ways, directed=True)
        one = self._ways[0].describe().sampling
        # A few values of the larger delta take less time than the whole trade-off functions of both directions.
        largest = partial(self._epoch.largest, effort=Effort.SAMPLED)
        sampling = one._replace(curve=one.curve and one.curve._replace(hockey_stick=largest, reverse=None))
        return replace(largest_of(self._ways, directed=True), sampling=sampling)


@dataclass(frozen=True)
class _SeveralPair(AllocationPair):
    """The outputs of t steps, of which `chosen` random steps used the record, against t steps without the record, or reversed.

    If there are few joint outcomes, they are enumerated. Otherwise the upper bound is that of a composition of `chosen` blocks of
    steps, or of a sum over the steps, and the lower bound is from tests.
    """

    chosen: int = 2

    theorem: ClassVar[str] = f"exact for few outcomes, otherwise: {_SEVERAL}"
    lower_theorem: ClassVar[str] = f"exact for few outcomes, otherwise: {_TESTS}"

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.mechanism, self.steps, self.removed, self.chosen)

    def reverse(self) -> Self:
        other = type(self)(self.mechanism, self.steps, not self.removed, self.chosen)
        if self._counted is None:
            other.__dict__.update(_block=self._block.reverse(), _tested=self._tested.reverse())
        else:
            other.__dict__["_counted"] = self._counted.reversed()
        return other

    @property
    def _chosen(self) -> int:  # type: ignore[override]
        return self.chosen

    @cached_property
    def _block(self) -> AllocationPair:
        return AllocationPair(self.mechanism, self.steps // self.chosen, self.removed)

    @cached_property
    def _tested(self) -> PairOfTests:
        return PairOfTests(StepTests(self._block._engine, self.steps, self.chosen), self.removed)

    @cached_property
    def _forms(self) -> _SeveralForms | _EveryStep:
        return self._every_step or _SeveralForms(self.mechanism, self.steps, self.removed, self.chosen, self._block, self._tested)

    def _described_by_sums(self) -> DominatingPairInfo:
        forms, parts = self._forms, ((self._block._pair_info(), self.chosen),)
        curve = CurveBounds(forms.sampled, self.reverse()._forms.sampled, CURVE_DEPTH)
        return DominatingPairInfo(
            forms.log_delta, forms.pure, sampling=Sampling(3e-3, 0.1, curve=curve),
            attained=Attained(profiles=lambda: (self._tested,)), releases=Releases(parts=parts),
        )
