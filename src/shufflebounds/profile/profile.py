"""The base class of privacy profiles, from which all mechanisms, protocols and compositions derive.

A subclass provides bounds of log delta(eps). The base class derives eps(delta), trade-off functions, Gaussian mu, Renyi divergences
and compositions. Every number is an upper or a lower bound of the exact value.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Self, overload

import numpy as np
from numpy.typing import ArrayLike

from shufflebounds._base import validate as _validate
from shufflebounds._base.caches import cached_property, uncached
from shufflebounds._base.calls import class_given
from shufflebounds._base.docs import with_passages
from shufflebounds._base.evidence import ROUNDING, Evidence, theorem
from shufflebounds._base.limits import MOST_PEOPLE
from shufflebounds._base.progress import announced
from shufflebounds._base.types import EXP_SLACK, ULP, Bound, FloatArray, IntervalArray, largest, plain
from shufflebounds._engines.allocation.ratios import Ratios
from shufflebounds._engines.inputs.noise_outputs import NoiseOutputs
from shufflebounds._losses.atoms import InputRows, LossAtoms
from shufflebounds._losses.closed_forms import ClosedForms
from shufflebounds._losses.complete_lists import CompleteLists, complete_lists
from shufflebounds._losses.curves import breakpoints
from shufflebounds._losses.release import SINGLE, Attained, DominatingPairInfo, Losses, Sampling
from shufflebounds.profile.between import Between
from shufflebounds.profile.chain import Chain, GroupInfo
from shufflebounds.profile.export import ExportMixin
from shufflebounds.profile.product import Product, flattened
from shufflebounds.profile.two_orders import TwoOrders
from shufflebounds.tradeoff import Tradeoff
from shufflebounds.tradeoff.piecewise import Piecewise

__all__ = ["Composition", "DominatingPair", "GivenCurve", "Group", "KnownPair", "MassPair", "OutcomePair", "PrivacyProfile"]

CHANGES = {"replace-one": "a record replaced by another", "add-remove": "datasets with or without a record",
           "zeroed": "a record that counts as zero"}
"""The kinds of neighbouring relations in words."""


@with_passages
class PrivacyProfile(ExportMixin):
    r"""A privacy profile, the function :math:`\delta(\varepsilon)` of a mechanism, with an upper and a lower bound.

    .. math:: \delta(\varepsilon) = \max_{(P, Q)} \sum_y \max(0, P(y) - e^\varepsilon Q(y))

    The maximum is over the ordered pairs of output distributions (P, Q) of neighbouring inputs. A subclass implements
    :meth:`describe`, and :meth:`closed_forms` if it has closed forms; all other methods are derived from these two.

    Attributes
    ----------
    theorem : str
        One line: what is proven for the upper bound, or for both bounds.
    lower_theorem : str
        One line: what is proven for the lower bound; "" if `theorem` is about both bounds.
    proof : str
        The page or file with the proof; "" if the docstring of the class has the proof or its reference.
    neighbours : str
        One line: the neighbouring relation of the guarantee.
    relation : {"replace-one", "add-remove", "zeroed", "either"}
        The kind of this relation. "zeroed": one dataset has a zero in place of the record. "either": the values of neighbours
        differ by at most the sensitivity, as for noise on a sum; this covers "replace-one" and "add-remove". Composing guarantees
        of two different kinds raises an error unless one of the two is "either".
    """

    theorem: ClassVar[str] = "not stated"
    lower_theorem: ClassVar[str] = ""
    proof: ClassVar[str] = ""
    neighbours: ClassVar[str] = "not stated"
    relation: ClassVar[str] = "replace-one"

    _covers_absence: ClassVar[bool] = False
    """Whether a guarantee for replaced values covers the absence of a record."""
    _covers_many: ClassVar[bool] = False
    """Whether the guarantee is for a class of mechanisms. The lower bound is then that of the worst mechanism of the class; other
    mechanisms of the class may have a smaller eps."""

    @property
    def _people(self) -> int:
        """Number of records that change between neighbours."""
        return 1

    @property
    def _limited_to(self) -> str:
        """The only dataset or person for which the guarantee holds, in words; "" if it holds for every dataset and every person."""
        return ""

    @property
    def _normal_mu(self) -> float | None:
        """Mu if the mechanism is normal noise on a number, otherwise None."""
        return None

    @property
    def _ratios(self) -> Ratios | None:
        """The distribution of the likelihood ratio of Gaussian or Laplace noise, otherwise None."""
        return None

    @property
    def _noise_outputs(self) -> NoiseOutputs | None:
        """The outputs of symmetric log-concave noise. None for other mechanisms, or if there are too many outputs."""
        return None

    @property
    def _input_rows(self) -> InputRows | None:
        """The rows of a finite randomizer for enough inputs: more inputs yield the same pairs, up to permutations of the outputs.

        None if there are too many rows, or if the randomizer is not finite.
        """
        return None

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
        """Return the profiles of the pairs, or () if the pairs are not enumerated or the only pair is the profile itself."""
        if type(self).pairs is PrivacyProfile.pairs:
            return ()
        try:
            listed = self.pairs()
        except TypeError:
            return ()
        return () if any(pair is self for pair in listed) else listed

    def describe(self) -> DominatingPairInfo:
        """Return bounds of delta and properties of the losses; all other methods are derived from them.

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
        # A class of another package may define the private methods in place of `describe`.
        bounded = own._pure_epsilon is not PrivacyProfile._pure_epsilon
        return DominatingPairInfo(self._log_delta, self._pure_epsilon() if bounded else math.inf)

    def describe_group(self, size: int) -> GroupInfo:
        """Return properties of groups of `size` records, for :meth:`for_group`.

        Parameters
        ----------
        size : int
            Number of records that change, at least 2.

        Returns
        -------
        GroupInfo
            By default an empty description. Then the records of the group change one after the other for the upper bound, and the
            lower bound is that of one record.
        """
        return GroupInfo()

    def reverse(self) -> PrivacyProfile:
        """Return the guarantee with both datasets of every pair of neighbours exchanged.

        Returns
        -------
        PrivacyProfile
            The profile itself if its guarantee covers both orders, as the guarantee of every mechanism in this package does. For a
            :class:`~shufflebounds.profile.DominatingPair` (P, Q) the result is the pair (Q, P), and for a composition the
            composition of the reversed factors.
        """
        return self

    @np.errstate(all="ignore")
    def tradeoff(self, *, bound: Bound = "lower") -> Tradeoff:
        r"""Return a bound of the trade-off function that is equivalent to delta(eps).

        .. math:: f(\alpha) = \sup_{\varepsilon \ge 0} \max\{1 - \delta(\varepsilon) - e^\varepsilon \alpha,\;
            e^{-\varepsilon}(1 - \delta(\varepsilon) - \alpha)\}

        Let :math:`T(P, Q)(\alpha)` be the least probability of a type II error of a test of P against Q whose probability of a type
        I error is at most :math:`\alpha`. Then f is the greatest convex function at or below :math:`T(P, Q)` for every ordered pair
        (P, Q) of neighbours. For one ordered pair (P, Q) and for compositions of such pairs, f is :math:`T(P, Q)`, and the first
        delta in the formula is that of :meth:`reverse`.

        Parameters
        ----------
        bound : {"lower", "upper"}
            "lower" returns the guarantee, a curve that is nowhere above f; "upper" returns a curve that is nowhere below f.

        Returns
        -------
        Tradeoff
            A convex curve. At every eps, delta of the lower curve is at least that of the mechanism, and delta of the upper curve
            is at most that of the mechanism, up to the rounding error of the curve's method `delta`: a relative 1e-13, or an
            absolute 4e-16 if this is larger. For one ordered pair, this delta is that of :meth:`reverse`.

        {raises: If `bound` is another word.}

        Notes
        -----
        The lower bound of f is the supremum of the lines given by upper bounds of delta at several hundred eps. The upper bound of
        f needs a lower bound of delta between these eps: as delta is convex in :math:`e^\varepsilon`, a line through two
        neighbouring values of delta is a lower bound outside of the interval between them. Unless the class states otherwise, delta
        of the lower and of the upper curve have a relative gap of about :math:`10^{-4} |\log\delta|`, or the gap of :meth:`delta`
        itself if this is larger. For :math:`\alpha < e^{-50}` the gap is larger, and f(0) is exact for pure privacy only. At some
        :math:`\alpha`, f may be below the curve of every pair of neighbours, because the infimum of these curves need not be
        convex.

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

    @np.errstate(all="ignore")
    def gdp_mu(self, *, bound: Bound = "upper") -> float:
        r"""Return the least :math:`\mu` for which the mechanism is :math:`\mu`-Gaussian differentially private.

        .. math:: \mu = \sup_\alpha\; \Phi^{-1}(1 - \alpha) - \Phi^{-1}(f(\alpha))

        Here f is the trade-off function of :meth:`tradeoff`, and :math:`\Phi` the standard normal distribution function.

        Parameters
        ----------
        bound : {"upper", "lower"}
            Whether the result is an upper or a lower bound of the exact value.

        Returns
        -------
        float
            The bound of mu. It is inf if P and Q of a pair have different supports, because no Gaussian curve is at or below the
            curve of this pair. If the mechanism is not eps-private for any finite eps, values of delta give no finite upper bound.
            Then a finite upper bound is known for Gaussian and discrete Gaussian noise, for groups and compositions of such noise,
            and for sampled, allocated or shuffled mechanisms (that of the mechanism itself). Otherwise the upper bound is inf.

        {raises: If `bound` is another word.}

        Notes
        -----
        A Gaussian curve is convex, so mu of a piecewise linear curve is attained at one of its corners. Both curves of
        :meth:`tradeoff` are refined where they determine mu, until the relative gap of mu is 1e-7, or is due to the gap of delta.

        Rare events may determine mu. For Gaussian noise on Poisson samples, mu is :math:`\sqrt{\text{steps}}/\sigma` at every
        sampling rate, because of the event that every sample contains the record. For such mechanisms, :meth:`tradeoff` is more
        informative than mu.

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

    @overload
    def rdp(self, order: float, *, bound: Bound = ...) -> float: ...
    @overload
    def rdp(self, order: ArrayLike, *, bound: Bound = ...) -> float | FloatArray: ...
    @np.errstate(all="ignore")
    def rdp(self, order: ArrayLike, *, bound: Bound = "upper") -> float | FloatArray:
        r"""Return the largest Renyi divergence of the output distributions P and Q of two neighbours.

        .. math:: D_a(P \| Q) = \frac{1}{a-1} \log \sum_y P(y)^a Q(y)^{1-a}

        Both (P, Q) and (Q, P) count, except for a :class:`~shufflebounds.profile.DominatingPair`, which has one order.

        Parameters
        ----------
        order : float or array_like
            Order a >= 1; 1 is the Kullback-Leibler divergence, inf the maximal divergence (pure differential privacy).
        bound : {"upper", "lower"}
            Whether the result is an upper or a lower bound. If the pairs are not enumerated, the upper bound is the divergence of a
            hypothetical pair with the delta of the mechanism, which is at least the divergence of every pair of neighbours. The
            lower bound is the largest divergence of one or more pairs that neighbours attain.

        Returns
        -------
        float or ndarray
            The bound in nats, of the shape of `order`; inf if P and Q of a pair have different supports. An upper bound is also inf
            if no finite bound can be proven.

        {raises: If `order` is below 1, NaN or empty, or `bound` is another word.}

        Notes
        -----
        The divergence D is computed from :math:`e^{(a-1)D} = 1 + a(a-1) \int_0^\infty (e^{(a-1)t} + e^{-at})\, \delta(t)\, dt`,
        with delta bounded by straight lines in :math:`e^t` between adaptively chosen t; all terms are positive. The relative gap of
        the divergence is 1e-6, unless the gap of delta is larger. Without pure privacy the integral extends to infinity, and the
        upper bound is inf if its part beyond the last t is not bounded. For sampling, random allocation and shuffles of a
        mechanism, the Renyi divergences of higher orders of this mechanism bound this part.

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

    @cached_property
    def _attained(self) -> tuple[PrivacyProfile, ...]:
        """Profiles of ordered pairs that neighbouring datasets attain, if the guarantee is not that of a single pair."""
        info = self._pair_info()
        return info.profiles or self._listed_pairs() or tuple(KnownPair(one) for one in info.attained.pairs)

    def compose(self, *others: PrivacyProfile, rtol: float = 1e-5) -> Composition:
        """Return the profile of the composition of this mechanism with others, all released on the same data.

        Parameters
        ----------
        *others : PrivacyProfile
            Mechanisms with independent randomness. Their guarantees must be fixed in advance; their sequence, and what each
            computes, may depend on earlier results. If the guarantees depend on earlier results, use a
            :class:`~shufflebounds.composition.Ledger` with a filter.
        rtol : float
            Relative gap between the bounds of eps, in [1e-12, 0.1], as for :class:`~shufflebounds.profile.Composition`.

        Returns
        -------
        Composition
            With an upper and a lower bound.

        Raises
        ------
        TypeError
            If one of `others` is not a profile.
        ValueError
            If `rtol` lies outside its range. Methods of the result raise ValueError if a Fourier transform would need more than
            2**22 points; the message states the number.

        Examples
        --------
        >>> from shufflebounds.shuffle import BinomialNoise
        >>> both = BinomialNoise(10**4, 0.5).compose(BinomialNoise(10**6, 0.5))
        >>> print(f"{both.epsilon(1e-6):.4f} {both.epsilon(1e-6, bound='lower'):.4f}")
        0.0714 0.0714
        """
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
        return Composition(((self, times),), rtol)

    def for_group(self, size: int) -> Group:
        """Return the guarantee for a person who sends up to `size` messages, or for `size` people at once.

        Parameters
        ----------
        size : int
            Number of messages or people, 1 to 2**20, at most the number of users.

        Returns
        -------
        Group
            The guarantee, with an upper and a lower bound; see the class for the proof. For several releases call `for_group` of
            their composition: ``profile.self_compose(3).for_group(10)``.

        Raises
        ------
        ValueError
            If `size` lies outside its range, or the guarantee is for one dataset, one user or one ordered pair only.

        Examples
        --------
        >>> from shufflebounds.mechanisms import GaussianMechanism
        >>> person = GaussianMechanism(5.0).for_group(10)
        >>> person.epsilon(1e-6) == GaussianMechanism(0.5).epsilon(1e-6)
        True
        """
        return Group(self, size)


def largest_of(pairs: tuple[DominatingPair, ...], *, directed: bool = False) -> DominatingPairInfo:
    """Describe the maximum over several pairs. If `directed`, there are two pairs: for a removed and for an added record."""
    if len(pairs) == 1 and pairs[0]._mirrored():
        # One pair suffices only if (Q, P) has the same delta as (P, Q): otherwise an adversary could choose the order in each
        # release.
        return pairs[0]._pair_info()
    attained = Attained(all_pairs=not directed, profiles=lambda: pairs, directed=directed)
    matched = not directed or pairs[0].reverse() == pairs[1]
    return DominatingPairInfo(partial(_largest, pairs), max(pair._pure_epsilon() for pair in pairs), attained=attained,
                              losses=Losses() if matched else Losses(unmatched=partial(_breakpoints, pairs)))


def _breakpoints(pairs: tuple[DominatingPair, ...]) -> tuple[FloatArray, FloatArray] | None:
    """Return the eps of the breakpoints of the largest delta of both pairs, for both orders; None if they are not enumerated."""
    eps = breakpoints([pair._pair_info().atoms for pair in pairs])
    return eps if eps is None else (eps, eps)


def _largest(pairs: tuple[DominatingPair, ...], eps: FloatArray) -> IntervalArray:
    return largest(pair._log_delta(eps) for pair in pairs)


class KnownPair(PrivacyProfile):
    """The profile of one pair of neighbours that is described by a `DominatingPairInfo`."""

    def __init__(self, info: DominatingPairInfo) -> None:
        self._known = info

    def pairs(self) -> tuple[DominatingPair, ...]:
        return (self._known.profiles if self._known.attained.all_pairs else ()) or super().pairs()

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


def by_adjacency(profile: PrivacyProfile) -> tuple[PrivacyProfile, ...]:
    """Return the guarantees for a removed and for an added record, or () if a single guarantee covers both."""
    return profile._by_adjacency if isinstance(profile, Composition) else profile._adjacencies()


def of_one_record(name: str, value: object) -> PrivacyProfile:
    """Return the argument called `name`, or raise an error if it is not a profile, or is the guarantee for a group."""
    profile = checked_profile(name, value)
    if profile._people > 1:
        raise ValueError(f"{name}={_validate.short_repr(profile)} is a guarantee for groups of {profile._people}: pass that of one "
                         f"record, and call for_group({profile._people}) of the result")
    return profile


class GivenCurve(ClosedForms):
    """Closed forms of a profile that has only one: its trade-off function, returned by `curve` for `upper` and `log_tail`."""

    __slots__ = ("curve",)

    def __init__(self, curve: Callable[[bool, float], Tradeoff | None]) -> None:
        self.curve = curve

    def tradeoff(self, upper: bool, log_tail: float = -100.0) -> Tradeoff | None:
        return self.curve(upper, log_tail)


@with_passages
class DominatingPair(PrivacyProfile):
    r"""One ordered pair of output distributions (P, Q), whose delta is :math:`\sum_y \max(0, P(y) - e^\varepsilon Q(y))`."""

    theorem: ClassVar[str] = "exact hockey stick of the pair"
    neighbours: ClassVar[str] = "P against Q, in this order"
    relation: ClassVar[str] = "either"

    @abstractmethod
    def reverse(self) -> DominatingPair:
        """Return the pair in the other order.

        Returns
        -------
        DominatingPair
            The pair (Q, P).
        """

    def _mirrored(self) -> bool:
        """Return whether (Q, P) is known to have the same delta as (P, Q)."""
        return bool(self.reverse() == self)

    def pairs(self) -> tuple[DominatingPair, ...]:
        return (self,)

    @np.errstate(all="ignore")
    def tradeoff(self, *, bound: Bound = "lower", log_tail: float = -100.0) -> Tradeoff:
        r"""Return a bound of the trade-off function :math:`T(P, Q)` of tests of P against Q.

        .. math:: T(P, Q)(\alpha) = \sup_{\varepsilon \ge 0} \max\{1 - H_{e^\varepsilon}(Q \| P) - e^\varepsilon \alpha,\;
            e^{-\varepsilon}(1 - H_{e^\varepsilon}(P \| Q) - \alpha)\}

        Here :math:`\alpha` is the probability under P that the test rejects P, :math:`H_{e^\varepsilon}(P \| Q)` is delta(eps) of
        this pair (P, Q), and :math:`H_{e^\varepsilon}(Q \| P)` is delta(eps) of the pair (Q, P) that :meth:`reverse` returns.

        Parameters
        ----------
        bound : {"lower", "upper"}
            "lower" returns a curve that is nowhere above T(P, Q), "upper" one that is nowhere below.
        log_tail : float
            Natural logarithm of the mass that may be truncated at each end of the range of outcomes, in [-1e6, -1]. Enumerated
            distributions are not truncated.

        Returns
        -------
        Tradeoff
            The curve. For at most 2**17 outcomes every breakpoint is computed, and only truncation and rounding separate the two
            bounds: the lower curve uses decreased masses under P and under Q, and the upper curve increased masses (for a sum of
            bits by a relative 1e-12). For more than 2**17 outcomes only selected breakpoints are computed. At the same eps, delta
            of the lower and of the upper curve then differ by about a relative :math:`10^{-4} |\log\delta|`.

        {raises: If `bound` is another word, or `log_tail` lies outside its range.}

        Examples
        --------
        >>> from shufflebounds import shuffle
        >>> curve = shuffle.ShuffledBits(users=100, flip=0.29).pair(0).tradeoff()
        >>> print(f"{curve.beta(0.05):.9f}")
        0.940223229
        """
        upper = _validate.upper_side(bound)
        curve = self._closed.tradeoff(upper, _validate.real("log_tail", log_tail, -1e6, -1))
        return self._tradeoff(upper) if curve is None else curve

    @staticmethod
    def from_pmfs(log_p: ArrayLike, log_q: ArrayLike) -> DominatingPair:
        r"""Return the pair of two distributions given as lists of log probabilities of the same outcomes.

        Parameters
        ----------
        log_p, log_q : array_like, shape (atoms,)
            Natural logarithms of the probabilities, -inf for an impossible outcome. The probabilities of each list sum to 1 within
            1e-9. A list whose sum is above 1, or differs from 1 by less than 1e-15 per entry, is divided by its sum. If the sum is
            smaller, mass is missing, and the bounds hold for every pair that assigns it to further outcomes. The upper bound counts
            the missing mass of P as infinite loss. :meth:`certify` assigns the missing mass of both lists to one further outcome,
            for which delta is smallest.

        Returns
        -------
        DominatingPair
            The pair (P, Q); :meth:`reverse` returns (Q, P).

        {raises: If the shapes differ, an entry is NaN or positive, or a list does not sum to 1.}

        Examples
        --------
        >>> import numpy as np
        >>> from shufflebounds.profile import DominatingPair
        >>> pair = DominatingPair.from_pmfs(np.log([0.75, 0.25]), np.log([0.25, 0.75]))
        >>> round(pair.delta(0.0), 12), round(pair.epsilon(0.0) / float(np.log(3)), 12)
        (0.5, 1.0)
        """
        first, second = _validate.log_pmfs(log_p, log_q)
        return _ListedPair(tuple(first.tolist()), tuple(second.tolist()))


class OutcomePair(DominatingPair):
    """A pair of distributions with finitely many outcomes, all of which are enumerated."""

    _prepares: ClassVar[bool] = True

    @property
    @abstractmethod
    def _atoms(self) -> LossAtoms:
        """The outcomes of (P, Q)."""

    def describe(self) -> DominatingPairInfo:
        return outcome_info(self._atoms)


def outcome_info(atoms: LossAtoms, pure: float = math.inf) -> DominatingPairInfo:
    """Describe the pair that has these outcomes; `pure` is another upper bound of its finite losses."""
    bounded = max(atoms.log_rest, atoms.log_lost) == -math.inf
    pure = min(pure, float(atoms.moved(1).max(initial=0.0))) if bounded else math.inf
    return DominatingPairInfo(partial(_log_delta, atoms, pure), pure, losses=Losses(lambda log_tail: atoms), attained=SINGLE)


def _log_delta(atoms: LossAtoms, pure: float, eps: FloatArray) -> IntervalArray:
    lower, upper = atoms.log_delta(eps)
    return IntervalArray(np.where(eps >= pure, -np.inf, lower), np.where(eps >= pure, -np.inf, upper))


@dataclass(frozen=True, repr=False)
class MassPair(OutcomePair):
    """A pair given by two lists of probabilities.

    The probabilities are taken as exact, except that the difference of their sum from 1 counts as an error.

    Storing logarithms would lose the differences of nearly equal probabilities.
    """

    p: tuple[float, ...]
    q: tuple[float, ...]

    def __repr__(self) -> str:
        return f"DominatingPair(<{len(self.p)} probabilities>)"

    def reverse(self) -> Self:
        return type(self)(self.q, self.p)

    def _mirrored(self) -> bool:
        return sorted(zip(self.p, self.q)) == sorted(zip(self.q, self.p))

    @cached_property
    def _atoms(self) -> LossAtoms:
        atoms = LossAtoms.of_masses(np.array(self.p), np.array(self.q))
        # As in `complete_lists`, the difference of each sum from 1, and the difference of the two sums, count as errors.
        mass_error = max(abs(math.fsum([*law, -1.0])) for law in (self.p, self.q))
        loss_error = abs(math.fsum([*self.p, *(-x for x in self.q)]))
        return replace(atoms, slack=atoms.slack + 2 * mass_error, loss_error=atoms.loss_error + 2 * loss_error)


@dataclass(frozen=True, repr=False)
class _ListedPair(OutcomePair):
    log_p: tuple[float, ...]
    log_q: tuple[float, ...]

    _covers_many: ClassVar[bool] = True
    _saved_as: ClassVar[tuple[str, Callable[..., DominatingPair]]] = "DominatingPair", DominatingPair.from_pmfs

    def __repr__(self) -> str:
        return f"DominatingPair.from_pmfs(<{len(self.log_p)} atoms>)"

    def reverse(self) -> Self:
        return type(self)(self.log_q, self.log_p)

    def _mirrored(self) -> bool:
        return sorted(zip(self.log_p, self.log_q)) == sorted(zip(self.log_q, self.log_p))

    @cached_property
    def _complete(self) -> CompleteLists:
        return complete_lists(np.array(self.log_p), np.array(self.log_q))

    @cached_property
    def _atoms(self) -> LossAtoms:
        lists = self._complete
        atoms = LossAtoms.of(lists.log_p, lists.log_q, log_lost=lists.log_lost)
        return replace(atoms, slack=atoms.slack + lists.mass_error, loss_error=atoms.loss_error + lists.loss_error)

    def closed_forms(self) -> ClosedForms:
        lists = self._complete
        if lists.log_lost == -math.inf:
            return ClosedForms()
        # The missing mass is omitted from both errors alpha and beta of a test, which lowers the curve.
        atoms = LossAtoms.of(lists.log_p, lists.log_q)
        rest, other = (float(np.logaddexp(mass, lists.log_lost)) for mass in (atoms.log_rest, atoms.log_other))
        knots = replace(atoms, log_rest=rest, log_other=other).knots(upper=False)
        assert knots is not None
        return GivenCurve(lambda upper, log_tail: None if upper else Tradeoff(Piecewise(knots, None, side=-1)))


@with_passages
@dataclass(frozen=True)
class Composition(PrivacyProfile):
    r"""Several mechanisms released on the same data, each with fresh randomness.

    .. math:: \delta(\varepsilon) = H_{e^\varepsilon}\left( \prod_j P_j^{r_j} \,\|\, \prod_j Q_j^{r_j} \right)

    Here :math:`P_j` and :math:`Q_j` are the output distributions of mechanism j for two neighbouring datasets, :math:`r_j` is its
    number of releases, and :math:`H_E(P \| Q) = \sum_y \max(0, P(y) - E\, Q(y))` is the hockey-stick divergence.

    Made by :meth:`PrivacyProfile.compose` and :meth:`PrivacyProfile.self_compose`.

    Parameters
    ----------
    factors : sequence of (PrivacyProfile, int)
        The mechanisms, each with its number of releases. Compositions among them are expanded, and equal mechanisms are combined.
    rtol : float
        Relative gap between the bounds of eps, in [1e-12, 0.1]. The grid of losses is refined until this gap is reached, the grid
        has about 2**20 points, or a finer grid does not reduce the gap. A smaller rtol does not give wider bounds.

    Notes
    -----
    Pairs. A :class:`DominatingPair` is composed as (P, Q), in this order. Mechanisms with add/remove adjacency are composed once
    for an added and once for a removed record; delta is the larger of the two results. Any other profile is a maximum over
    several pairs, at least (P, Q) and (Q, P), and an adversary may choose the pair of each release after seeing earlier results:

    - If the pairs are enumerated and there are at most a few hundred releases, the bounds are those of the adversary's best
      strategy.
    - Flipped bits have too many datasets to enumerate. For the upper bound the adversary chooses among blocks of datasets (those
      whose numbers of ones lie in one interval), and for the lower bound between two datasets.
    - In all other cases, the upper bound uses for every release the maximum of delta over the pairs, at each eps. The lower bound
      uses the same entry of ``pairs()`` in all releases. If no pairs are known, the lower bound repeats one test in every release.
      The probabilities of the results of this test follow from delta(eps) and its slope.

    Method (:doc:`/composition`). The losses of each release are rounded to a grid. Their distributions are exponentially tilted
    such that the mean of the sum of all losses is near eps, and convolved by FFT. Errors are relative to delta, however small it
    is. Compositions are exact if all losses lie on a common lattice, such as those of randomized response, or if all mechanisms are
    Gaussian noise. Other cases:

    - If delta of a mechanism takes long to compute, it is evaluated at a few hundred eps and interpolated. New eps are placed where
      the gap between both bounds of the interpolation is largest.
    - If there are too many releases for a grid, about 1e10, and all have pure privacy, the upper bound uses the Gaussian parameter
      mu of each release, and the lower bound a single release.
    - Gaussian noise on Poisson samples needs no grid: its moment generating function is inverted along a contour in the
      complex plane.
    - Where this inversion fails because records are rarely sampled, or where a grid would be too long, the sums of all pairs of
      losses are formed and reduced to fewer losses.
    - For a group there are two upper bounds, and the smaller one is used. One composes the bounds of the group of every release.
      The other composes the releases for one record, and lets the records of the group change one after the other.
    - Clone bounds with the same budget share one distribution if their numbers of users differ by a relative rtol/4 or less.

    For an rtol below 1e-6, the relative gap of eps is that of the finest grid, measured as 1e-9 to 1e-5 at delta = 1e-6. If delta
    of a factor has a larger gap, as for random allocation and most shuffled randomizers, this larger gap remains.

    The breakpoints of a trade-off function are computed on a coarser grid, from values of delta down to e**-338. If smaller values
    of delta would determine mu, its upper bound is the square root of the sum of mu^2 over all releases.

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

    _prepares: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _validate.real_field(self, "rtol", 1e-12, 0.1)
        checked: list[tuple[PrivacyProfile, int]] = []
        for profile, times in self.factors:
            count = _validate.integer("times", times, 1)
            if not isinstance(profile, PrivacyProfile):
                advice = ("; pass several profiles as arguments, compose(p, q)" if isinstance(profile, list | tuple) else
                          class_given(profile))
                raise TypeError(f"{_validate.short_repr(profile)} must be a PrivacyProfile to be composed{advice}")
            checked.append((profile, count))
        if not checked:
            raise ValueError("factors must not be empty: give at least one mechanism")
        object.__setattr__(self, "factors", flattened(checked))
        self._check_relations()

    def _check_relations(self) -> None:
        """Raise ValueError if the factors have different neighbouring relations."""
        kinds: dict[str, PrivacyProfile] = {}
        for profile, _ in self.factors:
            kinds.setdefault(profile.relation, profile)
        kinds.pop("either", None)
        if len(kinds) > 1:
            # `first` is not "replace-one", so that it can be converted.
            first, *_, last = (kinds[kind] for kind in ("add-remove", "zeroed", "replace-one") if kind in kinds)
            raise ValueError(
                f"the guarantee of {first!r} is for {CHANGES[first.relation]}, that of {last!r} for {CHANGES[last.relation]}: no "
                "composition holds for both. Convert to a replaced record by sampling.ReplaceOne(...), which replaces it by two "
                "such changes, or give both for the same neighbours"
            )
        sizes = {profile._people: profile for profile, _ in self.factors}
        if len(sizes) > 1:
            (one, first), (other, second), *_ = sorted(sizes.items(), key=lambda item: item[0])
            raise ValueError(f"the guarantee of {first!r} is for groups of {one}, that of {second!r} for groups of {other}: no "
                             "composition holds for both. Compose first, and call for_group(size) of the composition")
        loose = next((p for p, _ in self.factors if p.reverse() is not p and p._pair_info().attained.single), None)
        two_ways = next((p for p, _ in self.factors if p._adjacencies()), None)
        if loose is not None and two_ways is not None:
            raise ValueError(f"{loose!r} is one ordered pair, {two_ways!r} stands for both orders: compose the pair with one entry "
                             "of the pairs() of the other, in the same order")

    @property
    def theorem(self) -> str:  # type: ignore[override]
        """The theorems for the composition and for each factor."""
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

    @property
    def _people(self) -> int:
        return self.factors[0][0]._people

    def describe_group(self, size: int) -> GroupInfo:
        described = [(part.describe_group(size), times) for part, times in self.factors]
        if any(info.below is None for info, _ in described):
            return GroupInfo()
        below = Composition(tuple((info.below, times) for info, times in described), self.rtol)
        if all(info.below is info.above for info, _ in described):
            return GroupInfo.of(below)
        return GroupInfo(below, Composition(tuple((info.above, times) for info, times in described), self.rtol))

    @classmethod
    def _of(cls, product: Product) -> Composition:
        """Return the composition of these factors, which shares the caches of the product."""
        made = cls(product.factors, product.rtol)
        object.__setattr__(made, "_product", product)
        return made

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        # Cached distributions are not pickled.
        return type(self), (self.factors, self.rtol)

    def describe(self) -> DominatingPairInfo:
        return self._product.describe()

    def closed_forms(self) -> ClosedForms:
        whole = self._whole_group
        return self._product if whole is None else TwoOrders(_OfGroups(self.factors, self.rtol), whole)

    @cached_property
    def _whole_group(self) -> Group | None:
        """The group of the composition for one record, if the releases are groups of one size and the bounds of some are chains."""
        groups = [(part, times) for part, times in self.factors if isinstance(part, Group) and part.size > 1]
        # A group of a composition of groups has as many people as another group of a different size.
        sizes = {part.size for part, _ in groups}
        if len(groups) < len(self.factors) or len(sizes) > 1 or all(part._known.above is not None for part, _ in groups):
            return None
        inner = tuple((part.profile, times) for part, times in groups)
        return Composition(inner, self.rtol).for_group(*sizes)

    @cached_property
    def _product(self) -> Product:
        # Releases that reveal nothing change no number. The losses of another program may be positive in one order only.
        revealing = tuple(factor for factor in self.factors
                          if factor[0]._pure_epsilon() > 0 or factor[0].reverse()._pure_epsilon() > 0)
        return Product(revealing or self.factors[:1], self.rtol)

    @cached_property
    def _by_adjacency(self) -> tuple[Composition, ...]:
        """The compositions for a removed and for an added record, or () if every factor has the same guarantee for both."""
        return tuple(map(self._of, self._product.ways))

    def reverse(self) -> Composition:
        return self._reversed

    @cached_property
    def _reversed(self) -> Composition:
        """The composition of the reversed pairs, which is this composition itself if all pairs are symmetric."""
        return self if self._product.reverse is self._product else self._of(self._product.reverse)

    def claims(self, eps: float, *, upper: bool) -> Iterable[Evidence]:
        yield theorem("products of dominating pairs dominate adaptive compositions" if upper else
                      "a product of pairs that the releases dominate, or one release alone, has at most the delta of all releases",
                      "docs/theorems/adaptive-composition")
        if upper and self._product.by_rules(eps):
            yield theorem("Renyi divergences of releases add, and so do the squares of their mu; either bounds delta",
                          "shufflebounds._losses.renyi.log_levels")
        if upper and (whole := self._whole_group) is not None:
            yield from whole.claims(eps, upper=True)
        # The composition uses delta of its factors at all eps. For each factor, only the claims at eps = 0 and at the given eps are
        # listed.
        for profile, _ in self.factors:
            for at in (0.0, eps):
                yield from profile.claims(at, upper=upper)


class _OfGroups(Composition):
    """A composition of groups with the bounds that follow from those of each group alone."""

    @property
    def _whole_group(self) -> None:
        return None


@with_passages
@dataclass(frozen=True)
class Group(PrivacyProfile):
    r"""The guarantee for a person who sends up to k messages, or for k people at once; made by ``profile.for_group(k)``.

    .. math:: \delta_k(\varepsilon) \le \min_{\varepsilon_1 + \cdots + \varepsilon_k = \varepsilon}\;
        \sum_{j=1}^k e^{\varepsilon_1 + \cdots + \varepsilon_{j-1}}\, \delta(\varepsilon_j)

    Here :math:`\delta` is that of `profile`, and :math:`\delta_k` that of the group.

    Parameters
    ----------
    profile : PrivacyProfile
        A guarantee for every dataset and for one message, or for one person.
    size : int
        Number k of messages or people, 1 to 2**20, and at most the number of users of `profile`.

    Notes
    -----
    Neighbouring datasets differ in up to k records, and each changes as one record does for `profile`. The collection must enforce
    k, because nothing in shuffled messages shows who sent them. All messages of one shuffle are hidden by the same noise, which
    must hide k changes at once. ``self_compose(k)`` does not cover this case: it is for k shuffles with independent noise.

    The bounds are **exact** for normal, Laplace, discrete normal and geometric noise (k times the sensitivity),
    :class:`BinomialNoise <shufflebounds.shuffle.BinomialNoise>` and :class:`ZeroSum <shufflebounds.shuffle.ZeroSum>` (noise
    shifted by k), :class:`ShuffledBits <shufflebounds.shuffle.ShuffledBits>` without dummy zeros, the total of a :class:`RealSum
    <shufflebounds.shuffle.RealSum>`, and compositions of them. Proofs: :doc:`/composition`.

    **In all other cases** the upper bound is the formula above: the records change one after the other, and :math:`\varepsilon_j`
    is the part of eps for the j-th change. Every split of eps into k parts gives a valid bound. For mechanisms of at most 128
    distinct losses and k <= 64 the best split is used. Otherwise the split is one whose bound is close to the smallest one; for k >
    64 the changes form 64 blocks, each with equal :math:`\varepsilon_j`. The lower bound is that of one message or, if this is
    larger, that of a test of k messages that all change from one value to another (for shuffled randomizers, clone bounds, clear
    reports and histograms).

    References
    ----------
    Dong, J., Roth, A., Su, W. J. Gaussian differential privacy. JRSS B 2022, Theorem 2.14 (the chain of trade-off functions).

    Examples
    --------
    >>> from shufflebounds.shuffle import ShuffledBits
    >>> bits = ShuffledBits(users=10**4, flip=0.25)
    >>> person = bits.for_group(10)
    >>> print(f"{bits.epsilon(1e-6):.4f} {person.epsilon(1e-6):.4f}")
    0.0399 0.4706
    """

    profile: PrivacyProfile
    size: int

    def __post_init__(self) -> None:
        checked_profile("profile", self.profile)
        _validate.integer_field(self, "size", 1, MOST_PEOPLE)
        if isinstance(self.profile, Group):
            # A group of groups is a group.
            inner = self.profile
            object.__setattr__(self, "profile", inner.profile)
            object.__setattr__(self, "size", _validate.integer("size", self.size * inner.size, 1, MOST_PEOPLE))
        for part, _ in getattr(self.profile, "factors", ((self.profile, 1),)):
            only = "one ordered pair (P, Q)" if isinstance(part, DominatingPair) else part._limited_to
            if only:
                raise ValueError(f"profile={_validate.short_repr(part)} is a guarantee for {only}: a group needs one for every "
                                 "dataset and every person")
            users = getattr(part, "_hiding", getattr(part, "users", None))
            if users is not None and self.size > users:
                raise ValueError(f"size={self.size} must be at most users={users}, the number of messages of {part!r}")

    @property
    def theorem(self) -> str:  # type: ignore[override]
        """The theorems for the group and for one record."""
        return f"{self._how(upper=True)}. One record: {self.profile.theorem}"

    def _how(self, *, upper: bool) -> str:
        """Return the theorem for the group, given the bounds for one record."""
        if self._known.above is not None:
            return "exact for the group: the pair of distributions in which all of its records change"
        return ("group privacy with a chosen split of eps, one record after the other" if upper else
                "the larger delta of one record and of datasets in which all records of the group change in the same way")

    @property
    def neighbours(self) -> str:  # type: ignore[override]
        """The neighbouring relation of one record, and the size of the group."""
        changes, seen, view = self.profile.neighbours.partition("; the analyst sees ")
        return f"{changes}, up to {self.size} times in one dataset (for one person or several){seen}{view}"

    @property
    def relation(self) -> str:  # type: ignore[override]
        """The neighbouring relation of one record."""
        return self.profile.relation

    @property
    def _people(self) -> int:
        return self.size * self.profile._people

    def for_group(self, size: int) -> Group:
        return Group(self, size)

    @cached_property
    def _known(self) -> GroupInfo:
        return GroupInfo.of(self.profile) if self.size == 1 else self.profile.describe_group(self.size)

    @property
    def _pure(self) -> float:
        return self.size * self.profile._pure_epsilon() * (1 + 2 * ULP)

    def pairs(self) -> tuple[DominatingPair, ...]:
        below, above, _ = self._known
        return above.pairs() if above is not None and above is below else super().pairs()

    def closed_forms(self) -> ClosedForms:
        below, above, _ = self._known
        if above is not None:
            return Between(below, above, min(self._pure, above._pure_epsilon()))
        return Chain(self.profile, self.size, self._pure, partial(_attained_by_group, self.profile, self.size))

    def describe(self) -> DominatingPairInfo:
        forms = self._closed
        if self._known.above is not None and self._known.above is self._known.below:
            info: DominatingPairInfo = self._known.above._pair_info()
            return info
        one = self.profile._pair_info()
        if isinstance(forms, Between):
            below, above = (side._pair_info() for side in forms.sides)
            return DominatingPairInfo(forms.log_delta, forms.pure, sampling=above.sampling, losses=above.losses,
                                      attained=Attained(pairs=below.below))
        assert isinstance(forms, Chain)
        effort = max(1e-3, one.sampling.effort * forms.counts.size)
        sampling = Sampling(effort, max(0.1, one.sampling.spacing), convex=False)
        return DominatingPairInfo(forms.log_delta, forms.pure, sampling=sampling, attained=Attained(profiles=lambda: forms.ways))

    def claims(self, eps: float, *, upper: bool) -> Iterable[Evidence]:
        yield theorem(self._how(upper=upper), "docs/composition")
        yield ROUNDING
        # The upper bound splits eps into parts of about eps/size.
        for at in (0.0, eps / self.size) if upper else (eps,):
            yield from self.profile.claims(at, upper=upper)


def _attained_by_group(profile: PrivacyProfile, size: int) -> tuple[PrivacyProfile, ...]:
    """Return profiles whose lower bounds are valid for a group of `size` records, in addition to that of one record."""
    if isinstance(profile, Composition):
        groups = tuple((part.for_group(size), times) for part, times in profile.factors)
        return (_OfGroups(groups, profile.rtol),)
    return tuple(map(KnownPair, profile.describe_group(size).attained()))
