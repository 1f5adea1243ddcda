"""The profile: what every mechanism answers, each number with a named side of the truth."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, overload

import numpy as np
from numpy.typing import ArrayLike

from shufflebounds import _validate
from shufflebounds._cached import cached_property, uncached
from shufflebounds._docs import with_passages
from shufflebounds._late import late
from shufflebounds._progress import announced
from shufflebounds._types import Bound, FloatArray, Interval, IntervalArray, largest, plain
from shufflebounds.composing import DominatingPairInfo, LossAtoms, SampledProfile
from shufflebounds.composing.kept import Kept
from shufflebounds.composing.sampled_profile import STAGES
from shufflebounds.profile.curves import SKETCH, Staged, convex_hull, curve, gdp_mu, mu_of_knots
from shufflebounds.profile.export import ExportMixin
from shufflebounds.profile.loss import loss_tail
from shufflebounds.profile.renyi import mixture_renyi, renyi
from shufflebounds.tradeoff import Tradeoff
from shufflebounds.tradeoff.piecewise import Piecewise

if TYPE_CHECKING:
    from shufflebounds.profile.composed import Composition
    from shufflebounds.profile.pair import DominatingPair

__all__ = ["PrivacyProfile"]


@with_passages
class PrivacyProfile(ExportMixin):
    r"""A privacy profile, the function :math:`\delta(\varepsilon)` of a mechanism, enclosed on both sides.

    .. math:: \delta(\varepsilon) = \max_{(P, Q)} \sum_y \max(0, P(y) - e^\varepsilon Q(y))

    over the ordered pairs of output laws (P, Q) on neighbouring inputs. A subclass answers one question, ``_log_delta``;
    everything else follows from it here.

    Attributes
    ----------
    theorem : str
        What is proven, and where; one line.
    neighbours : str
        The neighbour relation of the guarantee; one line.
    relation : {"replace-one", "add-remove", "either"}
        What kind of relation that is. "either": neighbouring values, whatever makes them neighbours, as for noise on a sum.
        Compositions refuse to mix the first two.
    """

    theorem: ClassVar[str] = "not stated"
    neighbours: ClassVar[str] = "not stated"
    relation: ClassVar[str] = "replace-one"

    def __getstate__(self) -> dict[str, object]:
        # what is computed from the parameters is not pickled
        return uncached(self)

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return the ordered pairs (P, Q) whose hockey sticks have `delta` as their maximum.

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
        """Return the pairs, or none where there is no list of them."""
        try:
            return self.pairs()
        except TypeError:
            return ()

    def _pair_info(self) -> DominatingPairInfo:
        """Return what is known of the pair that this profile stands for; a class that knows more overrides this."""
        pairs = self._listed_pairs()
        if len(pairs) == 1 and pairs[0]._mirrored() and not self._adjacencies():
            # the one pair is all there is to know. If its other order differed, releases could go either way
            return pairs[0]._pair_info()
        attained = tuple(one for pair in self._attained_pairs() for one in pair._pair_info().below)
        # all pairs of neighbours are listed, and which of two comes first may change from release to release
        all_attained = len(attained) == len(pairs) > 0 and not self._adjacencies()
        return DominatingPairInfo(self._log_delta, pure=self._pure_epsilon(), attained=attained, all_attained=all_attained)

    def _attained_pairs(self) -> tuple[DominatingPair, ...]:
        """Return ordered pairs that neighbours realise: what composes from below where the guarantee is no single pair."""
        return self._listed_pairs()

    def _opposite(self) -> PrivacyProfile:
        return self

    def _adjacencies(self) -> tuple[PrivacyProfile, ...]:
        """Return the guarantee when a record is removed, and when it is added; none where one serves both.

        Which of two neighbours has the record stays the same from release to release, so a composition goes one way throughout.
        """
        return ()

    def _mixture(self) -> tuple[tuple[PrivacyProfile, ...], float] | None:
        """Return guarantees (the worst of which counts) and a rate q, if this mechanism is a mixture of what they cover.

        Every pair of neighbours must yield a mixture of pairs :math:`(q P + (1-q) R, q Q + (1-q) R)`, or a post-processing
        of it, where one of the guarantees covers (P, Q) and R is any distribution. The Renyi divergences and mu of the mechanism
        are then at most those of (P, Q), which are finite for Gaussian noise.
        """
        return None

    def _mixture_rdp(self, orders: FloatArray) -> FloatArray:
        """Return the upper bounds of Renyi divergences by joint convexity; inf where the mechanism is no mixture."""
        mixture = self._mixture()
        if mixture is None:
            return np.full(orders.size, np.inf)
        parts, rate = mixture
        return mixture_renyi(orders, np.asarray(np.max([part._rdp(orders, True) for part in parts], axis=0)), rate)

    def _mixture_mu(self) -> float:
        """Return the upper bound of mu by joint convexity; inf where the mechanism is no mixture."""
        mixture = self._mixture()
        return math.inf if mixture is None else max(part._gdp_mu(True) for part in mixture[0])

    def _seconds(self) -> float:
        return self._pair_info().predicted

    def _loss_tail(self, eps: FloatArray) -> IntervalArray:
        pairs = self._listed_pairs()
        if pairs:
            return largest(pair._loss_tail(eps) for pair in pairs)

        def lower(at: FloatArray) -> FloatArray:
            return self._known_side(at, upper=False)

        def upper(at: FloatArray) -> FloatArray:
            return self._known_side(at, upper=True)

        known = self._pair_info()
        single = known.single and known.convex
        if not known.expensive:
            return loss_tail(lower, upper, eps, single)
        return self._tails.of(eps.tobytes(), lambda: loss_tail(lower, upper, eps, single, expensive=True))

    @cached_property
    def _tails(self) -> Kept[bytes, IntervalArray]:
        """Both bounds of the tail of the loss at the latest arrays of eps."""
        return Kept(16)

    @cached_property
    def _stages(self) -> dict[tuple[float, int], tuple[SampledProfile, SampledProfile]]:
        return {}

    def _staged(self, step: float, stage: int) -> tuple[SampledProfile, SampledProfile]:
        """Return samples of H(Q||P) and of H(P||Q), `step` apart down to the depth of a stage; copy them before adding some."""
        if (step, stage) in self._stages:
            return self._stages[step, stage]
        if stage:
            forward, own = self._staged(step, stage - 1)
            deeper = own.extended(step, stage)
            pair = deeper if forward is own else forward.extended(step, stage), deeper
        else:
            pair = self._first_samples(step)
        return self._stages.setdefault((step, stage), pair)

    def _first_samples(self, step: float) -> tuple[SampledProfile, SampledProfile]:
        """Return samples of H(Q||P) and of H(P||Q), `step` apart, of the first stage."""
        known = self._pair_info()
        sides = known.curve_hockey_stick or known.hockey_stick
        own = SampledProfile(sides, known.pure, step, convex=known.convex, first_stage=True)
        if known.reverse is None:
            return own, own
        return SampledProfile(known.reverse, known.reverse_pure, step, convex=known.convex, first_stage=True), own

    @property
    def _sketch(self) -> float:
        """Distance of the samples, in quantiles of delta, where more are added as a question needs them."""
        known = self._pair_info()
        # a lower bound that is not convex is only monotone between samples, so its gap is proportional to their distance
        return max(known.spacing, SKETCH) if known.convex else 0.5 * known.spacing

    def _growing(self) -> tuple[SampledProfile, SampledProfile]:
        """Return samples of H(Q||P) and of H(P||Q) to be refined until they show mu or a Renyi divergence."""
        known = self._pair_info()
        if not known.expensive:
            return self._samples(0.05)
        # with pure privacy the refinement itself goes as deep as it has to; with few values none is spent at tiny delta in advance
        bounded = max(known.pure, 0.0 if known.reverse is None else known.reverse_pure) < math.inf
        forward, own = self._staged(max(known.spacing, 0.05), 0 if bounded and known.spacing >= 0.1 else len(STAGES) - 1)
        mine = own.copy()
        return (mine if forward is own else forward.copy()), mine

    def _samples(self, least_step: float = 0.0) -> tuple[SampledProfile, SampledProfile]:
        """Return samples of H(Q||P) and of H(P||Q), for the pair (P, Q) that the guarantee stands for."""
        known = self._pair_info()
        step = max(known.spacing, least_step)
        own = SampledProfile(known.curve_hockey_stick or known.hockey_stick, known.pure, step, convex=known.convex)
        return own if known.reverse is None else SampledProfile(known.reverse, known.reverse_pure, step, convex=known.convex), own

    def _effort(self, rtol: float, most: int) -> tuple[float, int]:
        """Return the distance between sides of mu or of a Renyi divergence at which refinement ends, and the most evaluations."""
        known = self._pair_info()
        if known.spacing < 0.1:
            return rtol, most
        # a search over datasets of a second leaves time for fewer values
        return 0.01 * known.spacing, 2**8 if known.effort < 0.1 else 2**6

    @np.errstate(all="ignore")
    def tradeoff(self, *, bound: Bound = "lower") -> Tradeoff:
        r"""Return a bound of the trade-off function that belongs to delta, the same in every class.

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
            Convex. The delta of the lower curve is at least that of the mechanism at every eps, and the delta of the upper curve
            at most that. The infimum of the pairs' curves need not be convex: at some levels alpha no single pair of
            neighbours then attains :math:`f(\alpha)`.

        {raises: If `bound` is neither word.}

        Notes
        -----
        Lines of the upper delta at some hundred eps enclose f from below; from above its convexity does, with the lines through
        neighbouring values. Where no class says otherwise, the deltas of the two sides are about
        a relative :math:`10^{-4} |\log\delta|` apart, or as far as those of :meth:`delta` itself; beyond
        :math:`\alpha = e^{-50}` the sides part further, and f(0) is met where there is pure privacy only.

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
        """Return the outcomes of the pair that this profile stands for, where all are listed."""
        known = self._pair_info()
        return known.atoms if known.single and known.listed else None

    def _knots(self, upper: bool) -> FloatArray | None:
        """Return the exact knots of the curve, moved to the side by what rounding did; None where outcomes are not listed."""
        atoms = self._outcomes()
        return atoms.knots(upper=upper) if atoms else None

    def _tradeoff(self, upper: bool) -> Tradeoff:
        """Return a curve nowhere below the exact one, or nowhere above it."""
        knots = self._knots(upper)
        if knots is not None:
            return Tradeoff(Piecewise(knots, None))
        pairs = self._listed_pairs()
        if pairs:
            return convex_hull([pair._tradeoff(upper) for pair in pairs])
        known = self._pair_info()
        if known.expensive:
            return Tradeoff(Staged(self._staged, known.spacing, self._sketch, upper=upper))
        return curve(*self._samples(), upper=upper)

    @np.errstate(all="ignore")
    def gdp_mu(self, *, bound: Bound = "upper") -> float:
        r"""Return the least :math:`\mu` for which the mechanism is :math:`\mu`-Gaussian differentially private.

        .. math:: \mu = \sup_\alpha\; \Phi^{-1}(1 - \alpha) - \Phi^{-1}(f(\alpha))

        Parameters
        ----------
        bound : {"upper", "lower"}
            The side of the exact value on which the answer lies.

        Returns
        -------
        float
            inf where the supports of a pair differ: no Gaussian curve lies below then. Without pure privacy delta proves no finite
            upper bound: that of a sampled, allocated or shuffled mechanism is then the one of the mechanism, others are inf.

        {raises: If `bound` is neither word.}

        Notes
        -----
        A Gaussian curve is convex, so the corners of a piecewise linear curve decide. The two curves of :meth:`tradeoff` are
        refined where they leave mu open, until the sides are a relative 1e-7 apart, where delta is that well known.

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
            return self._gdp_mu(upper)

    def _gdp_mu(self, upper: bool) -> float:
        """Return mu, from above or below."""
        if self._pair_info().unbounded_loss:
            return math.inf
        knots = self._knots(not upper)
        if knots is not None:
            return mu_of_knots(knots, upper=upper)
        pairs = self._listed_pairs()
        if pairs:
            return max(pair._gdp_mu(upper) for pair in pairs)
        cap = self._mixture_mu() if upper else math.inf
        if cap < math.inf and self._pure_epsilon() == math.inf:
            # delta is known to a finite depth only, which shows no finite mu
            return cap
        return min(cap, self._mu_bounds[upper])

    @cached_property
    def _mu_bounds(self) -> Interval:
        """Bounds of mu from values of delta alone."""
        return gdp_mu(*self._growing(), *self._effort(1e-7, 1500))

    @cached_property
    def _divergences(self) -> Kept[tuple[bytes, bool], list[Interval]]:
        """Bounds of Renyi divergences from values of delta alone, for the latest lists of orders."""
        return Kept(16)

    def _divergences_of(self, orders: FloatArray, upper: bool) -> list[Interval]:
        """Return bounds of the divergences of these finite orders; only the upper one is needed if `upper`."""
        def found() -> list[Interval]:
            reverse, own = self._growing()
            rtol, most = self._effort(1e-6, 2**13)
            return [renyi(own, reverse, a, upper, rtol, most) for a in orders.tolist()]

        # with pure privacy both bounds come from one refinement
        return self._divergences.of((orders.tobytes(), upper and self._pure_epsilon() == math.inf), found)

    @overload
    def rdp(self, order: float, *, bound: Bound = ...) -> float: ...
    @overload
    def rdp(self, order: ArrayLike, *, bound: Bound = ...) -> float | FloatArray: ...
    @np.errstate(all="ignore")
    def rdp(self, order: ArrayLike, *, bound: Bound = "upper") -> float | FloatArray:
        r"""Return the Renyi divergence of the worst pair, in both orders; a :class:`DominatingPair` answers in its own.

        .. math:: D_a(P \| Q) = \frac{1}{a-1} \log \sum_y P(y)^a Q(y)^{1-a}

        Parameters
        ----------
        order : float or array_like
            a >= 1: 1 asks for the Kullback-Leibler divergence, inf for the maximal one (pure differential privacy).
        bound : {"upper", "lower"}
            The side of the exact value on which the answer lies. Where the pairs are not listed the value is that of one pair with
            the whole of delta as its profile, which is at least that of any pair of the mechanism.

        Returns
        -------
        float or ndarray
            In nats, of the shape of `order`; inf where the supports of a pair differ, and as an upper bound where nothing finite
            can be proven.

        {raises: If `order` is below 1, NaN or empty, or `bound` is neither word.}

        Notes
        -----
        :math:`e^{(a-1)D} = 1 + a(a-1) \int_0^\infty (e^{(a-1)t} + e^{-at})\, \delta(t)\, dt`, with delta enclosed by straight
        lines in :math:`e^t` between adaptively chosen t: all terms are positive. The sides are a relative 1e-6 apart, or as far
        as those of delta. Without pure privacy delta proves nothing finite from above. The upper bound of a sampled, allocated or
        shuffled mechanism is then that of the mechanism, by the joint convexity of the divergence.

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
            value = self._rdp(array.ravel(), upper).reshape(array.shape)
        return plain(value)

    def _rdp(self, orders: FloatArray, upper: bool) -> FloatArray:
        """Return the largest divergences, from above or below; orders in [1, inf]."""
        if self._pair_info().unbounded_loss:
            return np.full(orders.size, np.inf)
        atoms = self._outcomes()
        if atoms and (atoms.log_lost == -math.inf or not upper):
            value = atoms.renyi(orders, upper=upper)
            return np.minimum(value, self._pure_epsilon()) if upper else value
        pairs = self._listed_pairs()
        if pairs:
            return np.asarray(np.max([pair._rdp(orders, upper) for pair in pairs], axis=0))
        pure = self._pure_epsilon()
        # only the order inf needs the search for the largest loss
        largest = pure if upper or not np.any(orders == np.inf) else self._last_positive(pure)
        if np.all(orders == np.inf):
            return np.full(orders.size, largest)
        single = self._pair_info().single
        # the divergence of the whole of delta, which is finite with pure privacy, may exceed the mixture's bound: so may the
        # lower bound, which is then lowered to it
        capped = upper if single else pure == math.inf
        cap = self._mixture_rdp(orders) if capped else np.full(orders.size, np.inf)
        if upper and pure == math.inf and np.all(cap < math.inf):
            return cap
        value = np.full(orders.size, largest)
        finite = orders < math.inf
        value[finite] = [bounds[upper] for bounds in self._divergences_of(orders[finite], upper)]
        value = np.minimum(value, cap)
        return np.minimum(value, largest) if upper else value

    def compose(self, *others: PrivacyProfile, rtol: float = 1e-5) -> Composition:
        """Return the profile of this mechanism and the others, all released.

        Parameters
        ----------
        *others : PrivacyProfile
            Mechanisms with fresh randomness of their own; each may be chosen in view of the releases before it.
        rtol : float
            The grid of losses is refined until the two sides of eps are so close in relative terms, or it holds some 2**20 points;
            in [1e-12, 0.1].

        Returns
        -------
        Composition
            Enclosed on both sides.

        Raises
        ------
        TypeError
            If one of the others is not a profile.
        ValueError
            If `rtol` lies outside its range. From the questions asked of the result: if no transform within 2**22 points would
            do, with its size.

        Examples
        --------
        >>> from shufflebounds.shuffle import BinomialNoise
        >>> both = BinomialNoise(10**4, 0.5).compose(BinomialNoise(10**6, 0.5))
        >>> print(f"{both.epsilon(1e-6):.4f} {both.epsilon(1e-6, bound='lower'):.4f}")
        0.0714 0.0714
        """
        composed: Composition = late("Composition")(((self, 1), *((other, 1) for other in others)), rtol)
        return composed

    def self_compose(self, times: int, *, rtol: float = 1e-5) -> Composition:
        """Return the profile of that many releases of this mechanism.

        Parameters
        ----------
        times : int
            Number of releases, 1 to 2**53.
        rtol : float
            As for :meth:`compose`.

        Returns
        -------
        Composition
            Enclosed on both sides.

        {raises}

        Examples
        --------
        >>> from shufflebounds.shuffle import BinomialNoise
        >>> many = BinomialNoise(10**4, 0.5).self_compose(100)
        >>> print(f"{many.epsilon(1e-6):.5f} {many.epsilon(1e-6, bound='lower'):.5f}")
        0.83412 0.83412
        """
        composed: Composition = late("Composition")(((self, times),), rtol)
        return composed


def checked_profile(name: str, value: object) -> PrivacyProfile:
    """Return the argument of that name, or raise TypeError where it is no profile."""
    if not isinstance(value, PrivacyProfile):
        raise TypeError(f"{name}={value!r} must be a PrivacyProfile")
    return value
