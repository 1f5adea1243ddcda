"""The base class of privacy profiles, from which all mechanisms, protocols and compositions derive.

A subclass gives bounds of log delta(eps). The base class derives eps(delta), trade-off functions, Gaussian mu, Renyi divergences
and compositions. Every number is an upper or a lower bound of the exact value.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, overload

import numpy as np
from numpy.typing import ArrayLike

from shufflebounds._base import validate as _validate
from shufflebounds._base.caches import Kept, cached_property, kept, uncached
from shufflebounds._base.calls import class_given
from shufflebounds._base.docs import with_passages
from shufflebounds._base.limits import CACHED_ANSWERS, LARGEST_EXPONENT
from shufflebounds._base.progress import announced
from shufflebounds._base.types import EXP_SLACK, Bound, FloatArray, Interval, IntervalArray, consistent, largest, plain
from shufflebounds._losses.atoms import LossAtoms
from shufflebounds._losses.closed_forms import ClosedForms
from shufflebounds._losses.curves import Staged, convex_hull, curve, gdp_mu, mu_of_knots, sketch_step
from shufflebounds._losses.loss_tail import loss_tail
from shufflebounds._losses.release import Attained, CurveBounds, DominatingPairInfo, Reverse
from shufflebounds._losses.renyi import Tail, least_divergence, renyi, upper_renyi
from shufflebounds._losses.samples import STAGES, HockeyStickBounds, SampledProfile
from shufflebounds.profile.export import ExportMixin
from shufflebounds.tradeoff import Tradeoff
from shufflebounds.tradeoff.piecewise import Piecewise

if TYPE_CHECKING:
    from shufflebounds.profile.composition import Composition
    from shufflebounds.profile.pair import DominatingPair

__all__ = ["PrivacyProfile"]


@with_passages
class PrivacyProfile(ExportMixin):
    r"""A privacy profile, the function :math:`\delta(\varepsilon)` of a mechanism, with an upper and a lower bound.

    .. math:: \delta(\varepsilon) = \max_{(P, Q)} \sum_y \max(0, P(y) - e^\varepsilon Q(y))

    over the ordered pairs of output distributions (P, Q) of neighbouring inputs. A subclass states what it is by
    :meth:`describe`, and by :meth:`closed_forms` if it has any; all other methods are derived from them.

    Attributes
    ----------
    theorem : str
        What is proven, and where; one line.
    neighbours : str
        The neighbouring relation of the guarantee; one line.
    relation : {"replace-one", "add-remove", "either"}
        The kind of this relation. "either": neighbours' values differ by at most the sensitivity, which covers any relation, as for
        noise on a sum. Composing "replace-one" with "add-remove" raises an error.
    """

    theorem: ClassVar[str] = "not stated"
    neighbours: ClassVar[str] = "not stated"
    relation: ClassVar[str] = "replace-one"

    # Cached values that are computed from the parameters are not pickled.
    __getstate__ = uncached

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return ordered pairs (P, Q) of distributions such that `delta` is the maximum of their hockey-stick divergences.

        Returns
        -------
        tuple of DominatingPair
            One entry for every ordered pair.

        Raises
        ------
        TypeError
            If the guarantee is not a maximum over listed pairs.
        """
        raise TypeError(f"{type(self).__name__} is not given by a list of pairs")

    def _listed_pairs(self) -> tuple[DominatingPair, ...]:
        """Return the pairs, or an empty tuple if they are not enumerated, or if the only one is the profile itself."""
        if type(self).pairs is PrivacyProfile.pairs:
            return ()
        try:
            listed = self.pairs()
        except TypeError:
            return ()
        return () if any(pair is self for pair in listed) else listed

    def describe(self) -> DominatingPairInfo:
        """Return the pair of distributions of this mechanism: bounds of its divergence, and what a composition may use.

        Returns
        -------
        DominatingPairInfo
            By default, the largest divergence of :meth:`pairs`.
        """
        pairs, own = self._listed_pairs(), type(self)
        if pairs:
            return largest_of(pairs)
        if own._log_delta is PrivacyProfile._log_delta:
            raise TypeError(f"{own.__name__} has no bounds of delta: define describe(), or list pairs()")
        # A class of another package may still define the private methods that were its interface before `describe`.
        bounded = own._pure_epsilon is not PrivacyProfile._pure_epsilon
        return DominatingPairInfo(self._log_delta, self._pure_epsilon() if bounded else math.inf)

    def _pair_info(self) -> DominatingPairInfo:
        """Return a new description with the divergence of (Q, P).

        A composition caches values of the pair in its own copy, which is freed with it.
        """
        known, other = self.describe(), self.reverse()
        if known.reverse or other is self:
            return known
        back = other.describe()
        return replace(known, reverse=Reverse(back.hockey_stick, back.pure))

    def reverse(self) -> PrivacyProfile:
        """Return the guarantee with both datasets of every pair of neighbours exchanged.

        Returns
        -------
        PrivacyProfile
            The profile itself if its guarantee covers both orders, as that of every mechanism in this package does. For a
            :class:`~shufflebounds.profile.DominatingPair` (P, Q) it is the pair (Q, P), and for a composition that of the
            reversed factors.
        """
        return self

    def _adjacencies(self) -> tuple[PrivacyProfile, ...]:
        """Return the guarantees for a removed and for an added record, or an empty tuple if one guarantee covers both.

        In all releases of a composition, the same one of the two neighbouring datasets has the record.
        """
        return self._described.profiles if self._described.attained.directed else ()

    def _loss_tail(self, eps: FloatArray, upper: bool) -> IntervalArray:
        pairs = self._listed_pairs()
        if pairs:
            return largest(pair._loss_tail(eps, upper) for pair in pairs)

        below, above = (partial(self._known_side, upper=side) for side in (False, True))
        known = self._pair_info()
        single = known.attained.single and known.sampling.convex
        if not known.sampling.expensive:
            return loss_tail(below, above, eps, single)

        def roughly(at: FloatArray) -> FloatArray:
            return self._within_range(at, known.quicker(at).upper, upper=True)

        both = self._tails.of((eps.tobytes(), True), lambda: loss_tail(below, above, eps, single, roughly))
        # If delta underflows at every eps, the lower bounds of the tails are 0.
        if upper or not both.lower.any():
            return both
        return self._tails.of((eps.tobytes(), False), lambda: loss_tail(below, above, eps, single, roughly, both.upper))

    @cached_property
    def _tails(self) -> Kept[tuple[bytes, bool], IntervalArray]:
        """Cache of both bounds of the tail of the privacy loss, for the last arrays of eps."""
        return Kept(16)

    @kept(CACHED_ANSWERS)
    def _staged(self, step: float, stage: int) -> tuple[SampledProfile, SampledProfile]:
        """Return samples of H(Q||P) and of H(P||Q) that are `step` apart, down to the delta of a stage (see STAGES).

        The samples are cached; copy them before adding more.
        """
        if not stage:
            return self._samples(step, first_stage=True)
        forward, own = self._staged(step, stage - 1)
        deeper = own.extended(step, stage)
        return deeper if forward is own else forward.extended(step, stage), deeper

    def _growing(self, *, first_stage: bool = False) -> tuple[SampledProfile, SampledProfile]:
        """Return copies of samples of H(Q||P) and of H(P||Q), to be refined for mu or a Renyi divergence.

        With `first_stage` the refinement starts without samples at small delta.
        """
        known = self._pair_info()
        if first_stage and known.sampling.deep is not None:
            own = self._first_samples(known.sampling.deep).copy()
            return own, own
        spacing = known.sampling.spacing
        if not (known.sampling.expensive or known.sampling.curve):
            return self._samples(max(spacing, 0.05), deep_reverse=not first_stage)
        # With pure privacy the refinement adds samples at small delta where they are needed, so that the first stage suffices.
        bounded = max(known.pure, 0.0 if known.reverse is None else known.reverse.pure) < math.inf
        first_stage = (first_stage or bounded) and spacing >= 0.1
        forward, own = self._staged(max(spacing, 0.05), 0 if first_stage else len(STAGES) - 1)
        mine = own.copy()
        return (mine if forward is own else forward.copy()), mine

    @kept(CACHED_ANSWERS)
    def _first_samples(self, sides: HockeyStickBounds) -> SampledProfile:
        """Return samples down to the delta of the first stage (see STAGES), for both orders of the pair; copy them before use."""
        known = self._pair_info()
        return SampledProfile(sides, known.pure, max(known.sampling.spacing, 0.05), convex=known.sampling.convex, first_stage=True,
                              scale=known.sampling.scale)

    def _samples(
        self, step: float, *, first_stage: bool = False, deep_reverse: bool = True
    ) -> tuple[SampledProfile, SampledProfile]:
        """Return samples of H(Q||P) and of H(P||Q) that are `step` apart, for the dominating pair (P, Q) of this profile.

        With `first_stage` they extend only down to the delta of the first stage (see STAGES). Without `deep_reverse` those of
        H(Q||P) end where it is below e^-32 times its value at eps = 0: beyond, the weight e^(-order eps) makes the contribution to
        the integral of a Renyi divergence small.
        """
        known = self._pair_info()
        sides = known.sampling.curve or CurveBounds(known.hockey_stick)
        sampled = partial(SampledProfile, step=step, convex=known.sampling.convex, first_stage=first_stage,
                          scale=known.sampling.scale)
        own = sampled(sides.hockey_stick, known.pure, depth=sides.depth)
        if known.reverse is None:
            return own, own
        depth = sides.depth if deep_reverse or own.high[0] == -math.inf else math.sqrt(64 - 2 * float(own.high[0]))
        return sampled(sides.reverse or known.reverse.hockey_stick, known.reverse.pure, depth=depth), own

    def _effort(self, rtol: float, most: int) -> tuple[float, int]:
        """Return the relative gap at which the refinement of mu or of a Renyi divergence ends, and the largest number of values.

        `rtol` and `most` are those of a profile whose values take little time.
        """
        sampling = self._pair_info().sampling
        if sampling.spacing < 0.1:
            return rtol, most
        gap = 0.01 * sampling.spacing if sampling.refined_gap is None else sampling.refined_gap
        # If one value is a search over datasets that takes about a second, fewer values are evaluated.
        return max(rtol, gap), 2**8 if sampling.effort < 0.1 else 2**6

    @np.errstate(all="ignore")
    def tradeoff(self, *, bound: Bound = "lower") -> Tradeoff:
        r"""Return a bound of the trade-off function that is equivalent to delta(eps).

        .. math:: f(\alpha) = \sup_{\varepsilon \ge 0} \max\{1 - \delta(\varepsilon) - e^\varepsilon \alpha,\;
            e^{-\varepsilon}(1 - \delta(\varepsilon) - \alpha)\}

        f is the greatest convex function at or below :math:`T(P, Q)` for every ordered pair (P, Q) of neighbours.

        Parameters
        ----------
        bound : {"lower", "upper"}
            "lower", the guarantee: nowhere above f. "upper": nowhere below f.

        Returns
        -------
        Tradeoff
            Convex. At every eps, the delta of the lower curve is at least that of the mechanism, and the delta of the upper curve
            at most that. The infimum of the pairs' curves need not be convex: at some levels alpha no single pair of
            neighbours then attains :math:`f(\alpha)`.

        {raises: If `bound` is neither word.}

        Notes
        -----
        The lower bound is the supremum of the lines given by the upper delta at some hundred eps. The upper bound uses that f is
        convex, with the lines through neighbouring values. Unless the class states otherwise, the deltas of the two bounds have a
        relative gap of about :math:`10^{-4} |\log\delta|`, or that of :meth:`delta` itself if it is larger. For
        :math:`\alpha < e^{-50}` the gap is larger, and f(0) is exact for pure privacy only.

        {dong2022: section 2}

        Examples
        --------
        >>> from shufflebounds import shuffle
        >>> clones = shuffle.StrongerClones(users=10**6, local_eps=4.0)
        >>> below, above = clones.tradeoff(), clones.tradeoff(bound="upper")
        >>> print(f"{below.beta(0.05):.7f}", bool(below.beta(0.05) <= above.beta(0.05)))
        0.9489427 True
        """
        upper = _validate.upper_side(bound)
        with announced("tradeoff"):
            return self._tradeoff(upper)

    def _outcomes(self) -> LossAtoms | None:
        """Return the outcomes of the dominating pair of this profile if all are enumerated; otherwise None."""
        known = self._pair_info()
        return known.atoms if known.attained.single and known.losses.listed else None

    def _knots(self, upper: bool) -> FloatArray | None:
        """Return the exact breakpoints of the curve, rounded conservatively; None if the outcomes are not enumerated."""
        atoms = self._outcomes()
        return atoms.knots(upper=upper) if atoms else None

    def _tradeoff(self, upper: bool) -> Tradeoff:
        """Return an upper or a lower bound of the exact trade-off curve."""
        found = self._closed.tradeoff_of_outcomes(upper)
        if found is not None:
            return found
        knots = self._knots(upper)
        if knots is not None:
            return Tradeoff(Piecewise(knots, None))
        pairs, sampling = self._listed_pairs(), self._pair_info().sampling
        if pairs and sampling.curve is None:
            return convex_hull([pair._tradeoff(upper) for pair in pairs])
        if sampling.expensive or sampling.curve:
            return Tradeoff(Staged(self._staged, sampling.spacing, sketch_step(sampling), upper=upper))
        return curve(*self._samples(sampling.spacing), upper=upper)

    @np.errstate(all="ignore")
    def gdp_mu(self, *, bound: Bound = "upper") -> float:
        r"""Return the least :math:`\mu` for which the mechanism is :math:`\mu`-Gaussian differentially private.

        .. math:: \mu = \sup_\alpha\; \Phi^{-1}(1 - \alpha) - \Phi^{-1}(f(\alpha))

        Parameters
        ----------
        bound : {"upper", "lower"}
            Whether the result is an upper or a lower bound of the exact value.

        Returns
        -------
        float
            inf if the supports of a pair differ, because no Gaussian curve is at or below the pair's curve. Without pure privacy,
            values of delta prove no finite upper bound. The upper bound of a sampled, allocated or shuffled mechanism is then that
            of the mechanism itself, and other upper bounds are inf.

        {raises: If `bound` is neither word.}

        Notes
        -----
        A Gaussian curve is convex, so mu of a piecewise linear curve is attained at one of its corners. The two curves of
        :meth:`tradeoff` are refined where they determine mu, until the relative gap is 1e-7 or that of delta.

        {dong2022: section 2}

        Examples
        --------
        >>> from shufflebounds import shuffle
        >>> print(f"{shuffle.ShuffledBits(users=100, flip=0.29).gdp_mu():.9f}")
        0.111388484
        >>> shuffle.BinomialNoise(trials=100, prob=0.5).gdp_mu()
        inf
        """
        upper = _validate.upper_side(bound)
        with announced("gdp_mu"):
            value = self._gdp_mu(upper)
        return float(self._compared("mu", np.zeros(1), np.array([value]), upper)[0])

    def _gdp_mu(self, upper: bool) -> float:
        """Return an upper or a lower bound of mu."""
        found = self._closed.mu(upper)
        if found is not None:
            return found
        if self._pair_info().losses.unbounded or self.reverse()._pair_info().losses.unbounded:
            return math.inf
        knots = self._knots(not upper)
        if knots is not None:
            return mu_of_knots(knots, upper=upper)
        pairs = self._listed_pairs()
        if pairs:
            return max(pair._gdp_mu(upper) for pair in pairs)
        cap = self._closed.mu_limit() if upper else math.inf
        if cap < math.inf and self._pure_epsilon() == math.inf:
            # The samples of delta end at a positive delta, so they prove no finite upper bound of mu.
            return cap
        return min(cap, self._mu_bounds[upper])

    @cached_property
    def _mu_bounds(self) -> Interval:
        """Bounds of mu from values of delta alone."""
        lower, upper = gdp_mu(*self._growing(), *self._effort(1e-7, 1500), self._closed.mu_limit())
        return consistent(IntervalArray(np.array([lower]), np.array([upper])), "mu", np.zeros(1)).alone()

    @cached_property
    def _divergences(self) -> Kept[tuple[bytes, bool], list[Interval]]:
        """Cache of bounds of Renyi divergences from values of delta alone, for the last lists of orders."""
        return Kept(16)

    def _divergences_of(self, orders: FloatArray, upper: bool) -> list[Interval]:
        """Return bounds of the Renyi divergences of these finite orders; if `upper`, the lower ones may be trivial."""
        tail = self._closed.tail() if self._pure_epsilon() == math.inf else None
        # One refinement of the samples gives both bounds. Whether the upper bound is infinite is decided before.
        infinite = {a: upper and self._pure_epsilon() == math.inf and (tail is None or tail(a - 1, LARGEST_EXPONENT) == math.inf)
                    for a in sorted(orders.tolist())}

        def found() -> list[Interval]:
            if self._pair_info().sampling.above is not None:
                return self._upper_divergences(orders, infinite, tail)
            reverse, own = self._growing(first_stage=tail is not None)
            rtol, most = self._effort(1e-6, 2**13)
            placed, known = (own.evaluations, reverse.evaluations), {}
            # The lower bound of a profile that is not a single pair does not use these samples (`_sampled_rdp`).
            caps = (self._closed.renyi_limit(np.array(list(infinite)), True) if not self._pair_info().attained.single else
                    np.full(len(infinite), np.inf))
            # The samples of one order are used for the next order, too, and each order may add as many samples as if it were the
            # only one. Orders are processed in increasing order, so that the result does not depend on their order in the list.
            for (a, beyond), cap in zip(infinite.items(), caps.tolist()):
                own.evaluations, reverse.evaluations = placed
                known[a] = renyi(own, reverse, a, beyond, rtol, most, tail, cap)
            return [known[a] for a in orders.tolist()]

        return self._divergences.of((orders.tobytes(), any(infinite.values())), found)

    def _upper_divergences(self, orders: FloatArray, infinite: dict[float, bool], tail: Tail | None) -> list[Interval]:
        """Return the upper bounds of `_divergences_of`, from samples of upper bounds alone; the lower ones are trivial."""
        above, known = self._pair_info().sampling.above, {}
        assert above is not None
        alone, (rtol, most) = self._first_samples(above).copy(), self._effort(1e-6, 2**13)
        placed, least = alone.evaluations, self._closed.renyi_limit(np.array(list(infinite)), False)
        for (a, beyond), below in zip(infinite.items(), least.tolist()):
            alone.evaluations = placed
            known[a] = Interval(0.0, math.inf if beyond else upper_renyi(alone, a, rtol, most, tail, below,
                                                                         self._closed.known_upper()))
        return [known[a] for a in orders.tolist()]

    @overload
    def rdp(self, order: float, *, bound: Bound = ...) -> float: ...
    @overload
    def rdp(self, order: ArrayLike, *, bound: Bound = ...) -> float | FloatArray: ...
    @np.errstate(all="ignore")
    def rdp(self, order: ArrayLike, *, bound: Bound = "upper") -> float | FloatArray:
        r"""Return the Renyi divergence of the worst pair, the larger one of both orders (P, Q) and (Q, P).

        For a :class:`~shufflebounds.profile.DominatingPair` only its own order counts.

        .. math:: D_a(P \| Q) = \frac{1}{a-1} \log \sum_y P(y)^a Q(y)^{1-a}

        Parameters
        ----------
        order : float or array_like
            Order a >= 1; 1 is the Kullback-Leibler divergence, inf the maximal divergence (pure differential privacy).
        bound : {"upper", "lower"}
            Whether the result is an upper or a lower bound. If the pairs are not enumerated, the upper bound is the divergence of a
            hypothetical pair whose profile is delta, which is at least that of every pair of neighbours. The lower bound is the
            largest divergence of one or more pairs that neighbours attain.

        Returns
        -------
        float or ndarray
            In nats, of the shape of `order`; inf if the supports of a pair differ. An upper bound is inf, too, if no finite bound
            can be proven.

        {raises: If `order` is below 1, NaN or empty, or `bound` is neither word.}

        Notes
        -----
        The divergence D is computed from :math:`e^{(a-1)D} = 1 + a(a-1) \int_0^\infty (e^{(a-1)t} + e^{-at})\, \delta(t)\, dt`,
        with delta bounded by straight lines in :math:`e^t` between adaptively chosen t; all terms are positive. The relative gap is
        1e-6, or that of delta. Without pure privacy, the integral beyond the largest t is bounded for sampled, allocated and
        shuffled mechanisms. By joint convexity their delta is at most that of the mechanism itself, which the Renyi divergences of
        higher orders bound. So their upper bounds are finite where those of the mechanism are.

        References
        ----------
        Sason, I., Verdu, S. f-divergence inequalities, 2016 (the integral).

        Mironov, I. Renyi differential privacy, 2017.

        Examples
        --------
        >>> from shufflebounds import shuffle
        >>> bits = shuffle.ShuffledBits(users=100, flip=0.25, ones=0)
        >>> [f"{v:.5f}" for v in bits.rdp([1, 2, 8])]
        ['0.00674', '0.01361', '0.05768']
        """
        upper = _validate.upper_side(bound)
        array = _validate.orders("order", order)
        with announced("rdp"):
            value = self._compared("the Renyi divergence of order {!r}", array.ravel(), self._rdp(array.ravel(), upper), upper)
        return plain(value.reshape(array.shape))

    def _rdp(self, orders: FloatArray, upper: bool) -> FloatArray:
        """Return upper or lower bounds of the largest divergences, for orders in [1, inf]."""
        found = self._closed.renyi(orders, upper)
        missing = np.isnan(found) if found is not None else np.full(orders.size, True)
        if found is None or missing.all():
            found = self._sampled_rdp(orders, upper)
        elif missing.any():
            found[missing] = self._sampled_rdp(orders[missing], upper)
        if not upper and missing.any():
            found[missing] = np.maximum(found[missing], self._closed.renyi_limit(orders[missing], False))
        return found

    def _sampled_rdp(self, orders: FloatArray, upper: bool) -> FloatArray:
        """Return the bounds of `_rdp` that follow from outcomes, pairs and values of delta."""
        if self._pair_info().losses.unbounded:
            return np.full(orders.size, np.inf)
        atoms = self._outcomes()
        if atoms and (atoms.log_lost == -math.inf or not upper):
            value = atoms.renyi(orders, upper=upper)
            return np.minimum(value, self._pure_epsilon()) if upper else value
        pairs = self._listed_pairs()
        if pairs:
            return np.asarray(np.max([pair._rdp(orders, upper) for pair in pairs], axis=0))
        pure, finite = self._pure_epsilon(), orders < math.inf
        # The divergence of order inf is the largest loss. For a lower bound it needs a search.
        value = np.full(orders.size, pure if upper or finite.all() else self._last_positive(pure))
        single = self._pair_info().attained.single
        if not upper and not single and self._attained:
            # A profile that is not `single` is a maximum over pairs at each eps. The divergence that follows from it is an upper
            # bound of that of every pair, and may exceed all of them.
            found = np.max([pair._rdp(orders, False) for pair in self._attained], axis=0)
            return np.asarray(np.where(finite, found, np.maximum(found, value)))
        if not finite.any():
            return value
        if upper:
            value[finite] = np.minimum([bounds.upper for bounds in self._divergences_of(orders[finite], upper)], pure)
            return np.minimum(value, self._closed.renyi_limit(orders, True))
        value[finite] = ([bounds.lower for bounds in self._divergences_of(orders[finite], upper)] if single
                         else least_divergence(self._growing(first_stage=True)[1], orders[finite]))
        return value

    @cached_property
    def _attained(self) -> tuple[PrivacyProfile, ...]:
        """Profiles of ordered pairs that neighbours attain, for a guarantee that is not a single pair."""
        known = self._pair_info()
        return known.profiles or self._listed_pairs() or tuple(KnownPair(one) for one in known.attained.pairs)

    def compose(self, *others: PrivacyProfile, rtol: float = 1e-5) -> Composition:
        """Return the profile of the composition of this mechanism with others, all released on the same data.

        Parameters
        ----------
        *others : PrivacyProfile
            Mechanisms with independent randomness; each may be chosen after seeing the earlier releases.
        rtol : float
            The grid of losses is refined until the relative gap of eps is at most rtol, or it has about 2**20 points;
            in [1e-12, 0.1].

        Returns
        -------
        Composition
            With an upper and a lower bound.

        Raises
        ------
        TypeError
            If one of the others is not a profile.
        ValueError
            If `rtol` lies outside its range. Methods of the result raise it if a transform would need more than 2**22 points; the
            message states its size.

        Examples
        --------
        >>> from shufflebounds.shuffle import BinomialNoise
        >>> both = BinomialNoise(10**4, 0.5).compose(BinomialNoise(10**6, 0.5))
        >>> print(f"{both.epsilon(1e-6):.4f} {both.epsilon(1e-6, bound='lower'):.4f}")
        0.0714 0.0714
        """
        from shufflebounds.profile.composition import Composition

        return Composition(((self, 1), *((other, 1) for other in others)), rtol)

    def self_compose(self, times: int, *, rtol: float = 1e-5) -> Composition:
        """Return the profile of `times` releases of this mechanism.

        Parameters
        ----------
        times : int
            Number of releases, 1 to 2**53.
        rtol : float
            As for :meth:`compose`.

        Returns
        -------
        Composition
            With an upper and a lower bound.

        {raises}

        Examples
        --------
        >>> from shufflebounds.shuffle import BinomialNoise
        >>> many = BinomialNoise(10**4, 0.5).self_compose(100)
        >>> print(f"{many.epsilon(1e-6):.5f} {many.epsilon(1e-6, bound='lower'):.5f}")
        0.83412 0.83412
        """
        from shufflebounds.profile.composition import Composition

        return Composition(((self, times),), rtol)


def largest_of(pairs: tuple[DominatingPair, ...], *, directed: bool = False) -> DominatingPairInfo:
    """Describe the maximum over several pairs; if `directed`, of those for a removed and for an added record."""
    if len(pairs) == 1 and pairs[0]._mirrored():
        # One pair suffices only if (Q, P) has the same delta as (P, Q): otherwise an adversary could choose the order in each
        # release.
        return pairs[0]._pair_info()
    attained = Attained(all_pairs=not directed, profiles=lambda: pairs, directed=directed)
    return DominatingPairInfo(partial(_largest, pairs), max(pair._pure_epsilon() for pair in pairs), attained=attained)


def _largest(pairs: tuple[DominatingPair, ...], eps: FloatArray) -> IntervalArray:
    return largest(pair._log_delta(eps) for pair in pairs)


class KnownPair(PrivacyProfile):
    """The profile of one pair of neighbours that is described by a `DominatingPairInfo`."""

    def __init__(self, known: DominatingPairInfo) -> None:
        self._known = known

    def describe(self) -> DominatingPairInfo:
        return self._known

    def closed_forms(self) -> ClosedForms:
        return _Factors(self._known.releases.parts)


class _Factors(ClosedForms):
    """Closed forms of a product: the Renyi divergences of its factors add."""

    __slots__ = ("parts",)

    def __init__(self, parts: tuple[tuple[DominatingPairInfo, int], ...]) -> None:
        self.parts = parts

    def renyi(self, orders: FloatArray, upper: bool) -> FloatArray | None:
        factors = [times * KnownPair(factor)._rdp(orders, upper) for factor, times in self.parts]
        return np.asarray(np.sum(factors, axis=0)) * (1 - EXP_SLACK) if factors else None


def checked_profile(name: str, value: object) -> PrivacyProfile:
    """Return the argument called `name`, or raise TypeError if it is not a profile."""
    if not isinstance(value, PrivacyProfile):
        given = class_given(value)
        shown = "" if given else f"={_validate.short_repr(value)}"
        raise TypeError(f"{name}{shown} must be a PrivacyProfile{given}")
    return value
