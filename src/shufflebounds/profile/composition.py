"""Compositions: the privacy profile of several mechanisms that are released on the same data, with both bounds.

This module chooses the distributions to compose for each bound and for each adjacency relation; `_engines.compose` composes them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from shufflebounds._base import validate as _validate
from shufflebounds._base.caches import cached_property
from shufflebounds._base.calls import class_given
from shufflebounds._base.crossing import Curve
from shufflebounds._base.docs import with_passages
from shufflebounds._base.progress import announced
from shufflebounds._base.types import EXP_SLACK, FloatArray, IntervalArray, consistent
from shufflebounds._engines.compose.composer import Composer
from shufflebounds._engines.compose.grid import LOOSE
from shufflebounds._engines.compose.released import Released, matched
from shufflebounds._losses.atoms import LossAtoms, union_probability
from shufflebounds._losses.curves import SKETCH, Staged, convex_hull, repeated_mu
from shufflebounds._losses.release import SINGLE, CurveBounds, DominatingPairInfo, Losses, Reverse, Sampling
from shufflebounds.profile.profile import PrivacyProfile
from shufflebounds.tradeoff import Tradeoff
from shufflebounds.tradeoff.closed_curves import GaussianCurve

__all__ = ["Composition"]

CURVE_DEPTH = 26.0
"""The trade-off function of a composition has breakpoints down to delta = e^(-CURVE_DEPTH**2/2) = 1e-147. Smaller delta would need
more grids. Raised: longer run time. Lowered: a less tight curve at small alpha."""

@with_passages
@dataclass(frozen=True)
class Composition(PrivacyProfile):
    r"""Several mechanisms released on the same data, each with fresh randomness.

    .. math:: \delta(\varepsilon) = H_{e^\varepsilon}\left( \prod_j P_j^{r_j} \,\|\, \prod_j Q_j^{r_j} \right)

    Made by :meth:`PrivacyProfile.compose` and :meth:`PrivacyProfile.self_compose`.

    Parameters
    ----------
    factors : sequence of (PrivacyProfile, int)
        The mechanisms, each with its number of releases. Compositions among them are expanded, and equal mechanisms are combined.
    rtol : float
        The grid is refined until the relative gap of eps is at most rtol, or it has about 2**20 points, or a finer grid does not
        reduce the gap; in [1e-12, 0.1]. A smaller rtol does not give wider bounds.

    Notes
    -----
    Pairs. A :class:`DominatingPair` is composed in the order given. Mechanisms with add/remove adjacency are composed for the added
    and for the removed record, and the larger delta counts. Any other profile is a maximum over several pairs, at least both orders
    of its neighbours, and an adversary may choose the pair of each release after seeing earlier results. If the pairs are
    enumerated and there are at most a few hundred releases, the bounds are those of the best such strategy. For flipped bits, whose
    datasets are too many to enumerate, the upper bound chooses among blocks of datasets and the lower bound among two datasets.
    In all other cases the upper bound uses, for every release, the maximum of delta over the pairs at each eps, and the lower bound
    the same entry of ``pairs()`` in all releases. If no pairs are known, the lower bound repeats one test in every release; the
    slope of delta at eps gives its probabilities.

    Method. See :doc:`/composition`: losses on a grid, exponentially tilted to eps and convolved by FFT. Errors are relative to
    delta, however small it is. Losses on a common lattice, such as those of randomized response, are exact, and so are compositions
    of Gaussian noise alone. A mechanism with expensive delta is evaluated at a few hundred eps, placed where they matter most. For
    too many pure releases, about 1e10, the upper bound uses the Gaussian guarantees of the releases and the lower bound a single
    release. Gaussian noise on Poisson samples needs no grid: its moment generating function is inverted along a contour in the
    complex plane. Where this fails because records are rarely sampled, and where a grid would be too long, sums over all pairs of
    outcomes are reduced to losses whose distance is proportional to the loss. Clone bounds of one budget whose numbers of users
    differ by a relative rtol/4 or less share one distribution: that of the fewest users for the upper bound, of the most users for
    the lower one.

    For an rtol below 1e-6 the gap is that of the finest grid. Measured at delta = 1e-6, it is 1e-9 to 1e-7 for Laplace noise and
    for samples of noise, 1e-6 for counts, and 1e-5 where records are rarely sampled. Where delta of a factor has a larger gap, as
    for random allocation and most shuffled randomizers, this gap remains.

    Trade-off functions have breakpoints down to delta = e**-338, on a coarser grid. If smaller delta decides mu, its upper bound is
    the root of the sum of the squares of the factors' mu.

    References
    ----------
    Doroshenko, V. et al. Connect the Dots: Tighter Discrete Approximations of Privacy Loss Distributions. PoPETs 2022.

    Koskela, A., Jälkö, J., Honkela, A. Computing Tight Differential Privacy Guarantees Using FFT. AISTATS 2020.

    Examples
    --------
    >>> from shufflebounds.shuffle import BinomialNoise
    >>> BinomialNoise(10**4, 0.5).self_compose(3).compose(BinomialNoise(10**4, 0.5))
    Composition(factors=((BinomialNoise(trials=10000, prob=0.5), 4),), rtol=1e-05)
    """

    factors: tuple[tuple[PrivacyProfile, int], ...]
    rtol: float = 1e-5
    _reverse_of: Composition | None = field(default=None, init=False, repr=False, compare=False)

    _prepares: ClassVar[bool] = True
    _with_choice: ClassVar[bool] = True
    _deepest: ClassVar[float] = -math.inf

    def __post_init__(self) -> None:
        _validate.real_field(self, "rtol", 1e-12, 0.1)
        flat: list[tuple[PrivacyProfile, int]] = []
        for profile, times in self.factors:
            count = _validate.integer("times", times, 1)
            if not isinstance(profile, PrivacyProfile):
                advice = ("; pass several profiles as arguments, compose(p, q)" if isinstance(profile, list | tuple) else
                          class_given(profile))
                raise TypeError(f"{_validate.short_repr(profile)} must be a PrivacyProfile to be composed{advice}")
            parts = profile.factors if isinstance(profile, Composition) else ((profile, 1),)
            for part, number in parts:
                # `place` is the index of an equal factor, or the end of the list if there is none.
                place = next((i for i, (other, _) in enumerate(flat) if part is other or part == other), len(flat))
                before = sum(times for _, times in flat[place : place + 1])
                flat[place : place + 1] = [(part, _validate.integer("times", before + number * count, 1))]
        if not flat:
            raise ValueError("factors must not be empty: give at least one mechanism")
        object.__setattr__(self, "factors", tuple(flat))
        self._check_relations()

    def _check_relations(self) -> None:
        """Raise ValueError if the factors have different neighbouring relations."""
        kinds: dict[str, PrivacyProfile] = {}
        for profile, _ in self.factors:
            kinds.setdefault(profile.relation, profile)
        if "add-remove" in kinds and "replace-one" in kinds:
            raise ValueError(
                f"the guarantee of {kinds['add-remove']!r} is for datasets with or without a record, that of "
                f"{kinds['replace-one']!r} for a record replaced by another: no composition holds for both. Convert the first by "
                "sampling.ReplaceOne(...), which replaces by removing and adding, or give both for the same neighbours"
            )
        loose = next((p for p, _ in self.factors if p.reverse() is not p and p._pair_info().attained.single), None)
        two_ways = next((p for p, _ in self.factors if p._adjacencies()), None)
        if loose is not None and two_ways is not None:
            raise ValueError(f"{loose!r} is one ordered pair, {two_ways!r} stands for both orders: compose the pair with one entry "
                             "of the pairs() of the other, in the same order")

    @property
    def theorem(self) -> str:  # type: ignore[override]
        """What is proven about the composition, and about each factor."""
        parts = dict.fromkeys(profile.theorem for profile, _ in self.factors)
        return ("composition: each release is represented by a pair of distributions that dominates all of its neighbouring data, "
                "and these pairs are multiplied. The releases: " + "; ".join(parts))

    @property
    def neighbours(self) -> str:  # type: ignore[override]
        """The neighbouring relations of the factors."""
        return "; ".join(dict.fromkeys(profile.neighbours for profile, _ in self.factors)) + " (all on the same data)"

    @property
    def relation(self) -> str:  # type: ignore[override]
        """The neighbouring relation that all factors share."""
        return next((profile.relation for profile, _ in self.factors if profile.relation != "either"), "either")

    @cached_property
    def _by_adjacency(self) -> tuple[Composition, ...]:
        """The compositions for a removed and for an added record, or () if no factor distinguishes them."""
        both = [(profile._adjacencies(), profile, times) for profile, times in self.factors]
        if not any(ways for ways, _, _ in both):
            return ()
        removed, added = (
            Composition(tuple((ways[i] if ways else profile, times) for ways, profile, times in both), self.rtol) for i in (0, 1)
        )
        # The compositions for (P, Q) and for (Q, P) share their caches.
        return removed, removed._reversed if removed._reversed == added else added

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        # Cached distributions are not pickled.
        return type(self), (self.factors, self.rtol)

    @cached_property
    def _released(self) -> Released:
        return Released([(profile._pair_info(), times) for profile, times in self.factors], self.rtol)

    @property
    def _above(self) -> tuple[tuple[DominatingPairInfo, int], ...]:
        return self._released.above

    @cached_property
    def _composer(self) -> Composer:
        return self._released.composer(self.rtol, with_choice=self._with_choice, deepest=self._deepest)

    @cached_property
    def _loose(self) -> Composer | None:
        """A composer on a coarse grid, for the first steps of a search; None if it is not faster."""
        if self.rtol >= LOOSE or self._is_one:
            return None
        loose = self._released.composer(LOOSE, with_choice=False)
        return loose if loose.steps.first > 2 * self._composer.steps.first else None

    @property
    def _sketch_step(self) -> float:
        """Distance, in sqrt(-2 log delta), of the first samples of delta for the trade-off curve at one level alpha.

        The distance is smaller if the lower bound of delta comes from other distributions than the upper bound. More samples near
        one level then do not close the gap, so refinement ends early; more first samples improve the curve's lower bound.
        """
        return SKETCH if all(way._composer.tight for way in self._by_adjacency or (self,)) else 0.1

    @np.errstate(all="ignore")
    def explain(self, eps: float) -> str:
        """Describe in a few lines how the bounds at one eps are computed.

        Parameters
        ----------
        eps : float
            Privacy loss in nats, finite and >= 0.

        Returns
        -------
        str
            The factors, the two bounds of log delta, the method, the grid of losses and the truncation.

        {raises: If `eps` is negative or not finite.}

        Examples
        --------
        >>> from shufflebounds.shuffle import BinomialNoise
        >>> print(BinomialNoise(10**4, 0.5).self_compose(100).explain(0.8).splitlines()[2])
        method: losses on a grid, composed by one tilted Fourier transform from above and one from below
        """
        eps = _validate.real("eps", eps, 0)
        lower, upper = (float(self.log_delta(eps, bound=bound)) for bound in ("lower", "upper"))
        releases = ", ".join(f"{times} x {profile!r}" for profile, times in self.factors)
        lines = [f"releases: {releases}", f"log delta({eps:g}) lies in [{lower:.12g}, {upper:.12g}]"]
        if self._by_adjacency:
            worse = max(self._by_adjacency, key=lambda way: way._log_side_at(eps, upper=True))
            place = self._by_adjacency.index(worse)
            lines.append(f"adjacency: add/remove; the larger of both, with the record {('removed', 'added')[place]}")
            return "\n".join([*lines, *worse.explain(eps).splitlines()[2:]])
        return "\n".join([*lines, *self._method(eps)])

    def _method(self, eps: float) -> list[str]:
        """Return the lines of `explain` about the method."""
        if self._is_one:
            whole = "a single release" if self.factors[0][1] == 1 == len(self.factors) else "all releases as one release"
            return [f"method: {whole}, by its own bounds"]
        if self._enumerated is not None:
            return [f"method: all {self._enumerated.loss.size} outcomes of all releases are enumerated"]
        if eps >= self._pure_epsilon():
            return [f"method: the sum of the pure budgets is {self._pure_epsilon():.12g}, and delta is 0 from there on"]
        if self._by_gaussian_rule:
            return [f"method: more releases than a grid can resolve; Gaussian guarantees above (mu = {self._gaussian_rule:.6g}), "
                    "a single release below"]
        return self._composer.method(eps)

    def _epsilon(self, delta: float, upper: bool) -> float:
        if 0 < delta < 1 and self._pure_epsilon() == math.inf and not self._without_grid:
            # A grid at large eps takes long, so a test without a grid comes first. If one release has a positive delta at
            # eps = 2 end, the best test at this eps has probability below e^(-2 end) under Q. Repeated in every release, the test
            # may show that delta of the composition exceeds the target at `end`, where the search ends.
            end = 1e6 * self._eps_scale()
            gains = ((profile._log_side_at(2 * end, upper=False), times) for profile, times in self.factors)
            # A profile defined by a user may return NaN outside of its range; then nothing is concluded.
            if any(gain > -math.inf and union_probability([(gain, times)]) > math.log(delta) + 1e-9 for gain, times in gains):
                return math.inf
        with announced("composition"):
            return super()._epsilon(delta, upper)

    def _log_delta(self, eps: FloatArray) -> IntervalArray:
        with announced("composition"):
            return self._composed(eps)

    def _log_side(self, eps: FloatArray, *, upper: bool) -> FloatArray:
        with announced("composition"):
            return consistent(self._composed(eps, floors=not upper), "log delta at eps={!r}", eps)[upper]

    def _composed(self, eps: FloatArray, *, floors: bool = True, composer: Composer | None = None) -> IntervalArray:
        """Return both bounds of log delta.

        Without `floors` the profiles in `_floors` are not evaluated, and the lower bound may be smaller. `composer` is that of the
        composition by default; another composer gives less tight bounds.
        """
        if self._by_adjacency:
            return _larger(self._by_adjacency, eps, floors)
        if self._is_one:
            ((known, times), *others) = self.factors
            return known._pair_info().hockey_stick(eps) if times == 1 and not others else self._above[0][0].hockey_stick(eps)
        pure = self._pure_epsilon()
        if self._enumerated is not None:
            lower, upper = self._enumerated.log_delta(eps)
            return IntervalArray(np.where(eps < pure, lower, -np.inf), np.where(eps < pure, upper, -np.inf))
        lower, upper = np.full(eps.size, -np.inf), np.full(eps.size, -np.inf)
        within = eps < pure
        if self._by_gaussian_rule:
            # Too many releases for a grid: each is dominated by a Gaussian mechanism, and these compose in closed form.
            value = GaussianCurve(self._gaussian_rule).log_delta(eps * (1 - EXP_SLACK))
            # The assumed relative error of this log delta is 1e-6.
            upper[within] = np.minimum(value + 1e-6 * (1 + np.abs(value)), 0.0)[within]
        else:
            for i in np.flatnonzero(within):
                lower[i], upper[i] = (composer or self._composer).bounds(float(eps[i]))
        if floors:
            for floor, quick in self._floors:
                # A factor whose bound takes long is evaluated only where the bounds of the composition have a gap.
                at = np.flatnonzero((upper - lower > self.rtol) | quick)
                if at.size:
                    lower[at] = np.maximum(lower[at], floor._log_side(eps[at], upper=False))
        return consistent(IntervalArray(lower, upper), "log delta at eps={!r}", eps)

    @cached_property
    def _by_gaussian_rule(self) -> bool:
        """Whether the losses of one release are too small for a grid, so that the Gaussian that dominates each release is used.

        delta of a Gaussian mechanism is computed for mu up to 1e6.
        """
        resolved = self._pure_epsilon() == math.inf or self._composer.needs_no_grid or not self._composer.steps.coarse
        return not resolved and self._gaussian_rule <= 1e6

    @cached_property
    def _floors(self) -> list[tuple[PrivacyProfile, bool]]:
        """Profiles whose delta is at most that of the composition: its factors, and the releases whose losses the grid resolves.

        The second entry of each pair says whether a value takes little time.

        If many losses are smaller than a step of the grid, rounding them may reduce the lower bound by more than omitting them.
        """
        # An empty `releases` means that the releases of this factor are combined with those of another factor.
        large = tuple(factor for factor, (_, releases) in zip(self.factors, self._released.pairs)
                      if not releases or any(self._composer.steps.resolves(pair) for pair, _ in releases))
        some = [Composition(large, self.rtol)] if 0 < len(large) < len(self.factors) else []
        every = [*some, *(profile for profile, _ in self.factors)]
        return [(profile, not profile._pair_info().sampling.expensive) for profile in every]

    def _roughly(self, eps: FloatArray) -> FloatArray:
        """Return an upper bound of log delta that takes less time than `_log_delta` and is less tight."""
        if self._is_one or not self._composer.needs_no_grid:
            return self._composed(eps, floors=False, composer=self._loose).upper
        return np.array([self._composer.roughly(at) if at < self._pure_epsilon() else -math.inf for at in eps.tolist()])

    def _closer(self, eps: FloatArray) -> FloatArray:
        """Return upper bounds of log delta that are closer than `_roughly` where records are rarely sampled."""
        known = None if self._is_one or self._composer.sums is None else self._composer
        if known is None:
            return np.zeros(eps.size)
        return np.array([known.once(at) if at < self._pure_epsilon() else -math.inf for at in eps.tolist()])

    @cached_property
    def _enumerated(self) -> LossAtoms | None:
        """The joint outcomes of all releases if they are few; None on a lattice, where the grid is exact anyway."""
        return None if self._composer.steps.lattice is not None else self._all_outcomes

    @cached_property
    def _all_outcomes(self) -> LossAtoms | None:
        """The joint outcomes of all releases if they are few, otherwise None; a trade-off function uses them even on a lattice."""
        if not all(known.attained.single and known.losses.listed and not known.releases.parts for known, _ in self._released.pairs):
            return None
        product = LossAtoms.product([(known.atoms, times) for known, times in self._above if known.atoms])
        return product if product and product.log_lost == -math.inf else None

    def reverse(self) -> Composition:
        return self._reversed

    @cached_property
    def _reversed(self) -> Composition:
        """The composition of the pairs in the other order, which is this one if all of them are symmetric."""
        if self._reverse_of is not None:
            return self._reverse_of
        opposite: tuple[tuple[Any, int], ...] = tuple((profile.reverse(), times) for profile, times in self.factors)
        if all(there is here for (there, _), (here, _) in zip(opposite, self.factors)):
            return self
        reverse = Composition(opposite, self.rtol)
        object.__setattr__(reverse, "_reverse_of", self)
        return reverse

    def _pair_info(self) -> DominatingPairInfo:
        opposite = self.reverse()
        # A curve ends at CURVE_DEPTH, because smaller delta would need another grid for every value. With two adjacencies the curve
        # follows from the larger delta of both, which is the same for (P, Q) and (Q, P).
        curve = CurveBounds(self._curve_log_delta, opposite._curve_log_delta, CURVE_DEPTH)
        known = DominatingPairInfo(self._log_delta, self._pure_epsilon(), sampling=Sampling(spacing=self._spacing, curve=curve))
        if not self._by_adjacency and self._all_outcomes:
            known = replace(known, attained=SINGLE, losses=Losses(lambda log_tail: self._all_outcomes))
        if self._by_adjacency or opposite is self:
            return known
        return replace(known, reverse=Reverse(opposite._log_delta, opposite._pure_epsilon()))

    @property
    def _spacing(self) -> float:
        """Distance of the samples of delta for a trade-off function (see `Sampling`)."""
        return max(0.02, *(known.sampling.spacing for known, _ in self._above))

    @cached_property
    def _coarse(self) -> Composition:
        """The same composition on a coarser grid, which is accurate enough for the breakpoints of a trade-off function."""
        return _CurveComposition(self.factors, min(0.1, 10 * self.rtol))

    def _curve_log_delta(self, eps: FloatArray) -> IntervalArray:
        """Return bounds of log delta on the coarser grid; of a record added and a record removed, the larger delta counts."""
        ways = tuple(way._coarse for way in self._by_adjacency)
        return _larger(ways, eps) if ways else self._coarse._log_delta(eps)

    def _eps_scale(self) -> float:
        pure = self._pure_epsilon()
        scale = math.fsum(times * profile._eps_scale() for profile, times in self.factors)
        return max(scale, 1e-6 * pure) if pure < math.inf else scale

    @property
    def _is_one(self) -> bool:
        """Whether there is a single release. Its own bounds are tighter than those on a grid."""
        single = len(self.factors) == 1 and self.factors[0][1] == 1
        return single or (len(self._above) == 1 and self._above[0][1] == 1)

    @cached_property
    def _without_grid(self) -> tuple[Composer, ...]:
        """The composer for each adjacency, or () if either needs a grid."""
        ways = self._by_adjacency or (self,)
        possible = all(not way._is_one and way._composer.needs_no_grid for way in ways)
        return tuple(way._composer for way in ways) if possible else ()

    def _rough(self, upper: bool) -> Curve | None:
        composers = self._without_grid
        if composers:
            normal = Curve(lambda eps: max(one.normal_estimate(eps) for one in composers), rtol=0.05)
            estimate = Curve(lambda eps: max(one.estimate(eps) for one in composers), normal, rtol=1e-3)
            # `jumps` is False, because the saddle-point approximation may be too large by many orders of magnitude if records are
            # rarely sampled. `settles`: the gap of the bounds is rarely below 1e-3 rtol, and a search to a far smaller tolerance
            # would follow rounding errors.
            return Curve(partial(_largest_once, composers), estimate, rtol=1e-3, settles=1e-4 * self.rtol, jumps=False)
        if self._by_adjacency:
            return _largest([way._rough(upper) for way in self._by_adjacency])
        if self._is_one:
            return None
        estimate = Curve(self._composer.estimate, rtol=1e-3)
        if self._composer.chooses:
            # Each new adaptive strategy takes up to two seconds, so that the search should need few of them.
            return Curve(lambda eps: min(0.0, self._composer.without_choice(eps)), estimate, rtol=0.1 * LOOSE)
        if self._loose is None:
            return estimate
        return Curve(lambda eps: min(0.0, float(self._roughly(np.array([eps]))[0])), estimate, rtol=0.1 * LOOSE)

    @cached_property
    def _gaussian_rule(self) -> float:
        """An upper bound of mu of the composition: the root of the sum of the squares of the factors' mu."""
        parts = ((profile._gdp_mu(True), times) for profile, times in self.factors)
        return math.sqrt(math.fsum(times * mu * mu for mu, times in parts)) * (1 + EXP_SLACK)

    def _tradeoff(self, upper: bool) -> Tradeoff:
        ways = self._by_adjacency or (self,)
        if all(way._all_outcomes for way in ways):
            return convex_hull([super(Composition, way)._tradeoff(upper) for way in ways])
        return Tradeoff(Staged(self._staged, self._spacing, max(self._spacing, self._sketch_step), upper=upper))

    def _gdp_mu(self, upper: bool) -> float:
        if self._by_adjacency:
            if not upper:
                # As for Renyi divergences: if the pairs for one direction give no lower bound, mu is at least that of each release.
                value = max(way._gdp_mu(False) for way in self._by_adjacency)
                return value or max(profile._gdp_mu(False) for profile, _ in self.factors)
            # mu is at most the Gaussian rule. If the rule for one adjacency is at most mu of the other, its curve is not needed.
            largest = 0.0
            for way in sorted(self._by_adjacency, key=lambda way: way._pure_epsilon(), reverse=True):
                if way._gaussian_rule > largest:
                    largest = max(largest, way._gdp_mu(True))
            return largest
        if all(known.releases.gdp_adds for known, _ in self._above):
            squares = (times * profile._gdp_mu(upper) ** 2 for profile, times in self.factors)
            return math.sqrt(math.fsum(squares)) * (1 + EXP_SLACK if upper else 1 - EXP_SLACK)
        if not upper and not self._all_outcomes:
            alone = (repeated_mu(profile._tradeoff(True), times) for profile, times in self.factors
                     if profile._pair_info().sampling.convex)
            return max([super()._gdp_mu(upper), *alone, *(profile._gdp_mu(upper) for profile, _ in self.factors)])
        if self._all_outcomes:
            return super()._gdp_mu(upper)
        rule = self._gaussian_rule
        return min(rule, super()._gdp_mu(upper)) if self._pure_epsilon() < math.inf else rule

    def _rdp(self, orders: FloatArray, upper: bool) -> FloatArray:
        if self._by_adjacency:
            value = np.max([way._rdp(orders, upper) for way in self._by_adjacency], axis=0)
            # The pairs for one direction may have no lower bound; the composition has at least the divergence of each release.
            if not upper and not value.all():
                value = np.max([value, *(profile._rdp(orders, False) for profile, _ in self.factors)], axis=0)
            return np.asarray(value)
        if upper:
            total = np.sum([times * profile._rdp(orders, True) for profile, times in self.factors], axis=0)
            return np.asarray(total * (1 + EXP_SLACK))
        # Divergences of ordered pairs add. A lower bound needs a fixed pair of datasets. Of several mechanisms with several pairs,
        # only one certainly attains its best pair in every release.
        sure, single, several = np.zeros(orders.size), np.zeros(orders.size), []
        for profile, times in self.factors:
            known = profile._pair_info()
            if known.attained.single:
                sure = sure + times * profile._rdp(orders, False)
            else:
                single = np.maximum(single, times * profile._rdp(orders, False))
                several.append((profile._attained, times))
        for i in matched([len(pairs) for pairs, _ in several]) if len(several) > 1 else ():
            # The pairs with the same index are combined. Other combinations are not tried: they could only raise this lower bound.
            total = np.sum([times * pairs[min(i, len(pairs) - 1)]._rdp(orders, False) for pairs, times in several], axis=0)
            single = np.maximum(single, total)
        return np.asarray((sure + single) * (1 - EXP_SLACK))

    def _last_positive(self, pure: float) -> float:
        if pure < math.inf:
            return super()._last_positive(pure)
        # delta of a composition is at least that of each factor.
        return max(profile._last_positive(profile._pure_epsilon()) for profile, _ in self.factors)

    def _pure_epsilon(self) -> float:
        return self._budget

    @cached_property
    def _budget(self) -> float:
        if self._by_adjacency:
            return max(way._pure_epsilon() for way in self._by_adjacency)
        total = math.fsum(times * profile._pure_epsilon() for profile, times in self.factors)
        return math.nextafter(total * (1 + EXP_SLACK), math.inf) if total > 0 else 0.0


class _CurveComposition(Composition):
    """A composition for the breakpoints of a trade-off function, without adaptive choice.

    For log delta below -120 the curve uses only an upper bound, by inversion: a grid would take seconds for each eps, and for alpha
    below e^-50 the two bounds of the curve have a large gap in any case.
    """

    _with_choice: ClassVar[bool] = False
    _deepest: ClassVar[float] = -120.0


def _largest(curves: Sequence[Curve | None]) -> Curve | None:
    """Return the largest of several curves, with the largest of their rough curves; None if one of them is None."""
    known = [curve for curve in curves if curve is not None]
    if len(known) < len(curves):
        return None
    return replace(known[0], log_delta=lambda eps: max(curve.log_delta(eps) for curve in known),
                   rough=_largest([curve.rough for curve in known]))


def _largest_once(composers: Sequence[Composer], eps: float) -> float:
    """Return an approximation of the largest log divergence at eps, without a grid."""
    largest = -math.inf
    bounds = [(one.roughly(eps), one) for one in composers]
    for bound, one in sorted(bounds, key=lambda pair: -pair[0]):
        if bound > largest:
            largest = max(largest, one.once(eps))
    return largest


def _larger(ways: Sequence[Composition], eps: FloatArray, floors: bool = True) -> IntervalArray:
    """Return bounds of the larger log delta of the compositions `ways`, one for each adjacency (record added, record removed).

    If a rough bound shows which one is larger, the other one is not computed accurately.
    """
    rough = [way._roughly(eps) for way in ways]
    lower, upper = np.full(eps.size, -np.inf), np.full(eps.size, -np.inf)
    for smaller in (False, True):
        for way, own, other in zip(ways, rough, rough[::-1]):
            wanted = (own < other) & (own > lower) if smaller else own >= other
            if smaller and wanted.any():
                wanted[wanted] = way._closer(eps[wanted]) > lower[wanted]
            if wanted.any():
                low, high = way._composed(eps[wanted], floors=floors)
                lower[wanted], upper[wanted] = np.maximum(lower[wanted], low), np.maximum(upper[wanted], high)
    return IntervalArray(lower, upper)
