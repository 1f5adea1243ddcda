"""Shuffled randomized response with one bit per user: bounds of its delta, for a given dataset and for the worst one.

The module also has the base class of all protocols whose users flip their bits.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from heapq import heappush, heapreplace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from shufflebounds._base import validate as _validate
from shufflebounds._base.caches import cached_property
from shufflebounds._base.crossing import Curve
from shufflebounds._base.docs import with_passages
from shufflebounds._base.limits import ALL_OUTCOMES, COMPARED, LARGEST_EXPONENT, MANY, SEARCH_GAP
from shufflebounds._base.quadrature import capped_exp
from shufflebounds._base.types import ULP, FloatArray, Interval, IntervalArray
from shufflebounds._core import _worst_bits
from shufflebounds._engines.bits import all_datasets as _all_data
from shufflebounds._engines.bits.bit_blocks import blocks_of_ones
from shufflebounds._engines.bits.curve_of_sum import MOST_LISTED, atoms_of_sum, curve_of_sum
from shufflebounds._engines.bits.given_bits import bit_sides, flipped_bits, middle_losses
from shufflebounds._engines.bits.largest_tail import largest_tails
from shufflebounds._engines.bits.total import TotalOfBits
from shufflebounds._engines.errors.accuracy import CountErrorLaw, ErrorLaw, bits_exceeded
from shufflebounds._engines.errors.counted import Counted, Counts, Estimate, SumOfBits
from shufflebounds._engines.errors.intervals import CountIntervals, CountLaw, tail_of_bits
from shufflebounds._losses.atoms import LossAtoms
from shufflebounds._losses.budget import log_odds
from shufflebounds._losses.closed_forms import ClosedForms
from shufflebounds._losses.curves import convex_hull
from shufflebounds._losses.release import SINGLE, Attained, CurveBounds, DominatingPairInfo, Losses, Releases, Sampling
from shufflebounds.profile import Composition, DominatingPair, PrivacyProfile
from shufflebounds.profile.between import Between
from shufflebounds.profile.calibration import least_parameter, one_of_releases
from shufflebounds.profile.chain import GroupInfo
from shufflebounds.profile.profile import GivenCurve, KnownPair
from shufflebounds.shuffle.absent import AbsentUsers
from shufflebounds.tradeoff import Tradeoff

__all__ = ["BitPair", "FlippedProtocol", "IndependentSums", "ShuffledBits", "repeated"]


class FlippedProtocol(Counted[Counts, Estimate], PrivacyProfile, ErrorLaw):
    """A protocol whose users flip each of their bits with probability `flip`."""

    users: int
    flip: float

    @property
    def _fixed_users(self) -> int:
        return self.users

    def _scale(self) -> float:
        return math.sqrt(self.variance) + 1 / (1 - 2 * self.flip)

    @property
    @abstractmethod
    def _reports(self) -> int:
        """Number n of reports of users and dummies; the estimate and the number it subtracts are at most n/(1 - 2 flip)."""

    def _rounding(self, a: Fraction, truth: Any) -> float:
        # Without noise, all numbers in the estimate are whole. Otherwise the estimate takes up to seven operations, whose errors
        # total at most 3 ULP of _reports/(1 - 2 flip); the fourth ULP covers the errors of the sum of the users' numbers.
        return 0.0 if self.variance == 0 else 4 * ULP * self._reports / (1 - 2 * self.flip)

    def _informative(self) -> None:
        if self.flip == 0.5:
            raise ValueError("flip=0.5 must be < 0.5 for an estimate: the messages do not depend on the data")


class IndependentSums(ClosedForms):
    """Results of a protocol whose output is a function of `times` independent sums, each distributed as the sum of the protocol
    `one`. For other protocols `one` is None.

    If `exact`, the output is the sums themselves, and one pair of neighbours is the worst for all sums at once; the Renyi
    divergences are then exactly `times` those of one sum. `pure` is the pure budget of the protocol.
    """

    def __init__(self, one: PrivacyProfile | None, times: int, exact: bool, pure: float) -> None:
        self.one, self.times, self.exact, self.pure = one, times, exact, pure

    def _total(self, one: PrivacyProfile, orders: FloatArray, upper: bool) -> FloatArray:
        return np.asarray(self.times * one._rdp(orders, upper) * (1 + 2 * ULP if upper else 1 - 2 * ULP))

    def renyi(self, orders: FloatArray, upper: bool) -> FloatArray | None:
        if self.one is None or not self.exact:
            return None
        value = self._total(self.one, orders, upper)
        return np.minimum(value, self.pure) if upper else value

    def renyi_limit(self, orders: FloatArray, upper: bool) -> FloatArray:
        # The lower bound must be that of a pair that neighbours attain.
        return super().renyi_limit(orders, upper) if self.one is None or not upper else self._total(self.one, orders, True)

    def mu_limit(self) -> float:
        # The squares of mu add for independent outputs (Dong, Roth and Su 2022, Corollary 2).
        return math.inf if self.one is None else math.sqrt(self.times) * self.one._gdp_mu(True) * (1 + 4 * ULP)

    def last_positive(self, pure: float) -> float | None:
        # If the bits of all reports are those of one of the target's two inputs, the likelihood ratio of the inputs is e to the
        # budget, for every dataset. So delta is positive for every smaller eps.
        return pure * (1 - 2 * ULP)


class ComposedSums(IndependentSums, Between):
    """Results for `times` sums, each distributed as the sum of `column`, if the target's bit may change in all of them.

    The lower bounds are those of the composition of the pair in which all other users' bits are 0. The upper bounds are those of
    the composition of the largest delta of one sum over all datasets.
    """

    def __init__(self, column: ShuffledBits, times: int, pure: float) -> None:
        # One pair of neighbours is the worst for all columns at once: in every column the other users' bits have the worst number
        # of ones, and all bits of the target change in the same direction.
        IndependentSums.__init__(self, column if column.flip < 0.5 else None, times, True, pure)
        self.column = column
        # With a smaller rtol, the gap would be mainly due to the different datasets of the two compositions.
        below, above = (Composition(((one, times),), rtol=0.1 * SEARCH_GAP) for one in (column.pair(0), column))
        Between.__init__(self, below, above, pure)

    # Samples of the delta of all sums give tighter curves and mu than those of the composition.
    tradeoff, mu = ClosedForms.tradeoff, ClosedForms.mu

    def epsilon(self, delta: float, upper: bool) -> float | None:
        return super().epsilon(delta, upper) if delta else None

    def releases(self) -> Releases:
        """Return the description of the pair that a composition of several releases uses."""
        return Releases(parts=((self.column._pair_info(), self.times),))

    def attained(self) -> Attained:
        """Return the pairs for lower bounds, in which all other users' bits are 0."""
        return Attained(pairs=repeated(self.column.pair(0), self.times))


@dataclass(frozen=True)
class BitPair(DominatingPair):
    """The distributions of the sum if the target's bit is 0 (P) and if it is 1 (Q); the two are exchanged if `reversed`.

    `ones` and `zeros` are the numbers of the other users' bits with these values.
    """

    ones: int
    zeros: int
    flip: float
    reversed: bool = False

    def reverse(self) -> Self:
        return type(self)(self.ones, self.zeros, self.flip, not self.reversed)

    @property
    def _data(self) -> tuple[int, int]:
        """The numbers of ones and zeros among the other users' bits; for the reversed pair (Q, P) the two are exchanged."""
        return (self.zeros, self.ones) if self.reversed else (self.ones, self.zeros)

    def describe(self) -> DominatingPairInfo:
        (ones, zeros), flip = self._data, self.flip

        def listed(log_tail: float) -> LossAtoms | None:
            bit = math.log1p(-flip), math.log(flip)
            return atoms_of_sum(*flipped_bits(ones, zeros, flip), bit, bit[::-1], ALL_OUTCOMES)

        losses = Losses(listed if self.ones + self.zeros <= MOST_LISTED and 0 < flip < 0.5 else None,
                        partial(middle_losses, ones, zeros, flip), unbounded=flip == 0)
        return DominatingPairInfo(partial(bit_sides, float(ones), float(zeros), flip), log_odds(flip).above,
                                  sampling=Sampling(spacing=0.005), losses=losses, attained=SINGLE)

    def closed_forms(self) -> GivenCurve:
        return GivenCurve(partial(_curve, self.ones, self.zeros, self.flip, self.reversed))


def _curve(ones: int, zeros: int, flip: float, reverse: bool, upper: bool, log_tail: float) -> Tradeoff | None:
    log_flip = math.log(flip) if flip else -math.inf
    curve = curve_of_sum(*flipped_bits(ones, zeros, flip), log_flip, math.log1p(-flip), log_tail, upper=upper)
    return curve.inverse() if curve is not None and reverse else curve


def repeated(pair: DominatingPair, times: int) -> tuple[DominatingPairInfo, ...]:
    """Return descriptions of (P, Q) and of (Q, P) for `times` independent sums with the same target."""
    both = pair._pair_info(), pair.reverse()._pair_info()
    return tuple(replace(one, releases=Releases(parts=((one, times),))) for one in both)


def group_of_columns(others: int, size: int, flip: float, columns: int) -> GroupInfo:
    """Return the description of a group that changes `size` bits of every column; all other bits are 0."""
    if not 0 < flip < 0.5:
        return GroupInfo()
    extremes = TotalOfBits(others, size, flip).extremes
    return GroupInfo(attained=lambda: tuple(KnownPair(one).self_compose(columns).describe() for one in extremes))


def _either_order(ones: int, zeros: int, flip: float, eps: FloatArray) -> IntervalArray:
    """Return bounds of the larger log delta of (P, Q) and (Q, P)."""
    # One call gives bounds for both directions, because (Q, P) is (P, Q) with 0 and 1 exchanged in all bits.
    data = np.array([[ones], [zeros]], dtype=np.float64)
    lower, upper = bit_sides(data, data[::-1], flip, eps)
    return IntervalArray(lower.max(axis=0), upper.max(axis=0))


def _worst_sides(users: int, fakes: int, flip: float, tolerance: float, eps: FloatArray) -> IntervalArray:
    """Return bounds of the maximum of log delta over all datasets; their gap is about `tolerance` plus the error of the kernel.

    Without dummy zeros, the pair (Q, P) for m ones is the pair (P, Q) for n - 1 - m ones, with 0 and 1 exchanged. So the maximum
    over m covers both directions.
    """
    budget = log_odds(flip)
    if flip in (0, 0.5):
        return bit_sides(0.0, users + fakes - 1.0, flip, eps)
    # As in `bit_sides`, e^eps must not overflow.
    near = np.minimum(eps, LARGEST_EXPONENT)
    inside = np.asarray(budget.less(near)) > 0
    lower, upper = np.full(eps.size, -np.inf), np.full(eps.size, -np.inf)
    bounds = _worst_bits.worst_log_delta(users - 1, fakes, 1, flip, near[inside], np.asarray(budget.less(near[inside])), tolerance)
    lower[inside], upper[inside] = bounds
    return IntervalArray(np.where(near == eps, lower, -np.inf), np.where(budget.less(eps) > 0, upper, -np.inf))


class _WorstBits(ClosedForms):
    """Results for the maximum over all datasets of the other users' bits, if 0 < flip < 1/2."""

    def __init__(self, users: int, fakes: int, flip: float) -> None:
        self.users, self.fakes, self.flip, self.others = users, fakes, flip, users + fakes - 1
        self.listed = users + fakes <= MANY and not fakes
        """Whether the distributions for all datasets are enumerated."""

    def rough(self, upper: bool) -> Curve | None:
        data = np.array([0.0, self.others])

        def value(eps: float) -> float:
            return min(0.0, float(bit_sides(data, self.others - data, self.flip, np.full(1, eps))[upper].max()))

        return Curve(value, rtol=2e-3)

    def epsilon(self, delta: float, upper: bool) -> float | None:
        budget = log_odds(self.flip)
        if self.users <= MANY or delta == 0 or not budget.above < LARGEST_EXPONENT:
            return None
        pure = budget.above if upper else budget.below
        searched = _worst_bits.worst_epsilon(self.users - 1, self.fakes, self.flip, budget.head, budget.rest, pure, delta, upper)
        if not upper:
            return searched
        # The messages of all users are a post-processing of the target's own message, whose delta is 1 - q - e^eps q. For eps close
        # to the budget this delta is the smaller bound, because the search for eps has a relative tolerance of 1e-10.
        alone = pure + math.log1p(-min(delta / (1 - self.flip), 1.0)) if delta < 1 - 2 * self.flip else 0.0
        return min(searched, pure, max(0.0, alone + 8 * ULP * (1 + pure)))

    def _pair(self, ones: int) -> BitPair:
        return BitPair(ones, self.others - ones, self.flip)

    def tradeoff(self, upper: bool, log_tail: float = -100.0) -> Tradeoff | None:
        if self.listed:
            return _all_data.curve_of_all(self.users, self.flip, upper)
        if not upper:
            return None
        # In five datasets, 0, 0.1, 1, 10 and 50 % of the other users' bits are 1. At every eps one of them is close to the worst
        # dataset, which has few ones for large eps, and as many ones as zeros at eps = 0.
        tried = sorted({int((self.users - 1) * part) for part in (0.0, 1e-3, 0.01, 0.1, 0.5)})
        curves = [self._pair(ones)._tradeoff(True) for ones in tried]
        return convex_hull([*curves, *(curve.inverse() for curve in curves)])

    def mu(self, upper: bool) -> float | None:
        # In 120 random protocols, the dataset without ones had the largest mu and Renyi divergences of the five datasets above.
        return None if upper else self._pair(0)._gdp_mu(False)

    def mu_limit(self) -> float:
        return self._largest_mu

    @cached_property
    def _largest_mu(self) -> float:
        """An upper bound of mu of all datasets, exact for up to COMPARED users; inf for more than MANY.

        The event that all bits are equal may determine mu, although its probability is below all sampled values of delta.
        """
        if self.others > MANY:
            return math.inf

        def bounded(first: int, last: int) -> tuple[float, int, int]:
            # More users are a post-processing. So mu of first..last ones is at most that of `first` ones and as many zeros as there
            # are with `last` ones.
            return -BitPair(first, self.others - last, self.flip)._gdp_mu(True), first, last

        # Without dummy reports, mu is the same for m ones and for m zeros among the other users' bits.
        blocks = [bounded(0, self.users - 1 if self.fakes else self.others // 2)]
        for _ in range(COMPARED):
            _, first, last = blocks[0]
            if first == last:
                break
            middle = (first + last) // 2
            heapreplace(blocks, bounded(first, middle))
            heappush(blocks, bounded(middle + 1, last))
        return -blocks[0][0]

    def loss_tail(self, eps: FloatArray, upper: bool) -> IntervalArray | None:
        return largest_tails(self.users, self.fakes, self.flip, eps)

    def renyi(self, orders: FloatArray, upper: bool) -> FloatArray | None:
        if not self.listed:
            return None
        value = _all_data.renyi_of_all(self.users, self.flip, np.minimum(orders, 1e6), upper)
        return np.where(orders <= 1e6, value, log_odds(self.flip).above) if upper else np.where(orders < math.inf, value, math.nan)


@with_passages
@dataclass(frozen=True)
class ShuffledBits(CountIntervals, SumOfBits, FlippedProtocol[int, float], CountErrorLaw, AbsentUsers):
    r"""Every user's bit is flipped with probability q; the analyst sees the shuffled bits, that is their sum.

    Let m of the other n - 1 users' bits be 1, and let W be the sum of these users' flipped bits, distributed as
    :math:`\mathrm{Bin}(m, 1-q) + \mathrm{Bin}(n-1-m, q)`. Then

    .. math::
        \delta_m(\varepsilon) = \max_j\; (p - q e^\varepsilon) \Pr[W = j] - (e^\varepsilon - 1) \Pr[W < j], \qquad p = 1 - q.

    The formula is the divergence of (P, Q), the distributions of the sum for the target's bits 0 and 1; the best test is that the
    sum is at most j. The divergence of (Q, P) has n - 1 - m in place of m.

    Parameters
    ----------
    users : int
        Number n of users, the target's included, 1 to 2**53.
    flip : float
        Probability q of flipping, in [0, 1/2].
    ones : int or "worst"
        Number m of ones among the other n - 1 users' bits, or "worst": the maximum over all datasets.
    fakes : int
        Number k of dummy zeros that are flipped and shuffled like the users' bits; users + fakes is at most 2**53. W is then
        :math:`\mathrm{Bin}(m, 1-q) + \mathrm{Bin}(n+k-1-m, q)`, and a smaller q meets the same target. Up to n dummy zeros, the
        largest delta of all datasets is that of n + k users without dummy zeros.
    {absent}

    Notes
    -----
    Neighbours: one user's bit is replaced. delta of the protocol lies between the lower and the upper bound. For a given dataset
    their gap in log delta was at most 1e-13 for delta > 1/e and :math:`3 \cdot 10^{-11} |\log\delta|` for smaller delta, in
    200,000 random cases with a flip probability of 1e-10 to 0.49; if log delta is below -1e11 there may be no lower bound. delta
    is exactly 0 for :math:`\varepsilon \ge \ln(p/q)`.

    The worst dataset usually has a few ones, not m = 0: ``ones="worst"`` searches all m by branch and bound. A block of B + 1
    values of m is bounded by one value, because adding B users is post-processing: with :math:`\delta_{n,m}` for n users and m
    ones, :math:`\delta_{n,m+i} \le \delta_{n-B,m}` for :math:`0 \le i \le B`. The gap in log delta is at most 1e-9 up to 1024
    users, and in most cases for more users. If most datasets have nearly the same delta, as at eps near 0, the gap may be larger:
    at most 3e-4 in 25,000 random cases, and at most :math:`10^{-5} |\log\delta|` for extremely small delta.

    **Trade-off function, mu and Renyi divergences over all datasets** (:meth:`tradeoff`, :meth:`gdp_mu`, :meth:`rdp`). Up to 1024
    users every m is enumerated: the lower and the upper curve of :meth:`tradeoff` are within 1e-12 of the convex hull of the
    trade-off functions for all m, and mu has a gap of 1e-11.

    For more users, the guarantee for every dataset is computed from the upper delta at about a hundred values of eps. The bound
    from the other direction is that of given datasets: of five datasets with 0 to 50 % of ones for trade-off functions, of the
    dataset without ones for mu and Renyi divergences. The gap is at most 1e-2 of the advantage max(1 - alpha - beta) in trade-off
    functions, or 3e-2 above 1e7 users; a relative 1e-2 in mu; and a relative 1e-2 to 3e-2 in Renyi divergences.

    **Estimate.** The users' values are bits, and so are the messages, int8. The argument `counts` of :meth:`estimate` is
    the number y of ones among the n + k messages. The estimate of the number of ones among the users is :math:`(y - (n+k)q)/(1 -
    2q)`. Its error depends on this number, which :meth:`error_tail` takes as `truth`. The largest tail over all datasets is exact
    up to 512 users.

    For more users, the upper bound of this tail is the smaller of two: Chernoff's bound, and the bound of a search over blocks
    of datasets, which uses Bernstein's inequality for the bits in which the datasets of a block differ. The upper bound of the
    error that is exceeded with probability 5 % is then 15 to 50 % too large, with the larger excess for variances below a few
    hundred; for a probability of 1e-6 it is 10 to 17 % too large.

    References
    ----------
    Zhilyaev, M. Shuffled bits and fake records, sections 3 and 4: Lemma 4.2 (with its coefficient corrected), Proposition 3.1;
    dummy zeros: section 4.4.

    Chen, L., Long, Y. Distributed Gaussian differential privacy via shuffling, Algorithm 1.

    Examples
    --------
    >>> from shufflebounds import shuffle
    >>> bits = shuffle.ShuffledBits(users=10**6, flip=5e-5, ones=0)
    >>> print(f"{bits.delta(1.0):.9e}")
    8.717683114e-09
    >>> worst = shuffle.ShuffledBits(users=10**6, flip=5.7017637389136647e-5)
    >>> print(f"{worst.delta(1.0, bound='lower'):.4e}")
    1.0177e-09
    """

    users: int
    flip: float
    ones: int | Literal["worst"] = "worst"
    fakes: int = 0

    theorem: ClassVar[str] = (
        "exact for the protocol: hockey-stick divergence of the sum of bits, for the given dataset or the maximum over all "
        "(Zhilyaev, Lemma 4.2 corrected and Proposition 3.1)"
    )
    @property
    def neighbours(self) -> str:  # type: ignore[override]
        """The relation of neighbours, and the dataset of the other users if the guarantee is for one dataset only."""
        only = "" if self.ones == "worst" else f" where exactly {self.ones} of the other users' bits are 1"
        return f"replace one user's bit{only}; the analyst sees the shuffled bits"

    def __post_init__(self) -> None:
        _validate.integer_field(self, "users", 1)
        _validate.real_field(self, "flip", 0, 0.5)
        if isinstance(self.ones, str):
            if self.ones != "worst":
                raise ValueError(f"ones={self.ones!r} must be 'worst' or an integer in 0..{self.users - 1}")
        else:
            _validate.integer_field(self, "ones", 0, self.users - 1)
        _validate.integer_field(self, "fakes", 0, _validate.MAX_COUNT - self.users)
        self._check_absent(self.users)
        if self._absent() and self.ones != "worst":
            raise ValueError(f"ones={self.ones} must be 'worst' if users collude or are missing, whose bits are not known")

    def __repr__(self) -> str:
        fakes = f", fakes={self.fakes}" if self.fakes else ""
        return f"{type(self).__name__}(users={self.users}, flip={self.flip}, ones={self.ones!r}{fakes}{self._absent()})"

    @property
    def _bits(self) -> int:
        """Number of bits in the shuffle: users and dummy zeros."""
        return self.users + self.fakes

    _reports = _bits

    @classmethod
    def boolean_sum(cls, users: int, lam: float) -> Self:
        r"""Return the boolean-sum mechanism of Chen and Long: flip = lam/(2 users).

        Parameters
        ----------
        users : int
            Number n of users, 1 to 2**53.
        lam : float
            :math:`\lambda` in [0, n]: each bit is random with probability :math:`\lambda/n`, and otherwise the user's.

        Returns
        -------
        ShuffledBits

        {raises}

        Examples
        --------
        >>> from shufflebounds import shuffle
        >>> shuffle.ShuffledBits.boolean_sum(100, 58)
        ShuffledBits(users=100, flip=0.29, ones='worst')
        """
        users = _validate.integer("users", users, 1)
        lam = _validate.real("lam", lam, 0, users)
        return cls(users, lam / (2 * users))

    def pair(self, ones: int) -> DominatingPair:
        """Return the pair (P, Q) of distributions of the sum for the target's bits 0 and 1, for a given dataset of the other users.

        Parameters
        ----------
        ones : int
            Number of ones among the other users' bits, 0 to users - 1.

        Returns
        -------
        DominatingPair
            The pair, exact for this dataset; its `reverse` is (Q, P).

        {raises: If `ones` lies outside its range.}
        """
        ones = _validate.integer("ones", ones, 0, self.users - 1)
        return BitPair(ones, self._bits - 1 - ones, self.flip)

    def pairs(self) -> tuple[DominatingPair, ...]:
        # For ones="worst" delta is a maximum over 2 n pairs, which are not listed here; `pair` returns each of them.
        if self.ones == "worst":
            return super().pairs()
        pair = self.pair(self.ones)
        return pair, pair.reverse()

    def describe(self) -> DominatingPairInfo:
        bits, pure, unbounded = self._bits, log_odds(self.flip).above, self.flip == 0
        if self.ones != "worst":
            data, pairs = (self.ones, bits - 1 - self.ones, self.flip), self.pairs()
            return DominatingPairInfo(
                partial(_either_order, *data), pure, sampling=Sampling(spacing=0.12),
                losses=Losses(lattice=partial(middle_losses, *data), unbounded=unbounded),
                attained=Attained(2 * self.ones == bits - 1, all_pairs=True, profiles=lambda: pairs),
            )
        pair = self.pair(0)
        # A curve takes about a hundred eps, so a gap of up to 2e-4 in log delta is permitted there.
        sampling = Sampling(2e-3, 0.12, curve=CurveBounds(partial(self._sides, 2e-4)))
        attained = Attained(blocks=partial(blocks_of_ones, bits - 1, 1, self.flip), profiles=lambda: (pair, pair.reverse()))
        return DominatingPairInfo(partial(self._sides, 0.0), pure, None, sampling, Losses(unbounded=unbounded), attained)

    def closed_forms(self) -> ClosedForms:
        given = self.ones != "worst" or self.flip in (0, 0.5)
        return ClosedForms() if given else _WorstBits(*self._searched, self.flip)

    @property
    def _limited_to(self) -> str:
        return "" if self.ones == "worst" else f"the datasets with ones={self.ones}"

    def describe_group(self, size: int) -> GroupInfo:
        person = TotalOfBits(self._bits - size, size, self.flip)
        if not self.fakes:
            return GroupInfo.of(KnownPair(person.described()))
        return GroupInfo(attained=lambda: person.extremes if 0 < self.flip < 0.5 else ())

    @property
    def _searched(self) -> tuple[int, int]:
        """Numbers of users and of dummy zeros of a protocol with the same pairs (P, Q) over all datasets.

        Let N = n + k - 1. The pairs (P, Q) have m = 0..n-1 ones. With 0 and 1 exchanged in all bits, the pairs (Q, P) are the pairs
        (P, Q) of m = k..N ones. Up to n dummy zeros these are all m = 0..N, as for n + k users.
        """
        return (self._bits, 0) if self.fakes <= self.users else (self.users, self.fakes)

    @property
    def _sides(self) -> Callable[[float, FloatArray], IntervalArray]:
        """A function of the search's tolerance and of eps that returns bounds of log delta over all datasets."""
        return partial(_worst_sides, *self._searched, self.flip)

    @classmethod
    def calibrate(cls, users: int, *, eps: float, delta: float, fakes: int = 0, releases: int = 1, devices: int = 1,
                  colluding: int = 0, missing: int = 0) -> Self:
        """Return the mechanism with the smallest flip probability whose upper delta at `eps`, over all data, is at most `delta`.

        Parameters
        ----------
        {users}
        {target}
        fakes : int
            Number of dummy zeros, >= 0. More of them permit a smaller flip probability.
        {releases}
        {absent}

        Returns
        -------
        ShuffledBits
            Its upper delta at `eps` was evaluated and is at most `delta`. Where the gap of log delta over all datasets is above
            1e-9 (notes of the class), a slightly smaller flip probability may also meet the target.

        {raises}

        Notes
        -----
        More flipping is post-processing: delta does not increase with `flip`, and at 1/2 it is 0, so every target can be met.

        Examples
        --------
        >>> from shufflebounds import shuffle
        >>> bits = shuffle.ShuffledBits.calibrate(users=10**6, eps=1.0, delta=1e-9)
        >>> bits.delta(1.0) <= 1e-9, round(bits.users * bits.flip, 2)
        (True, 57.06)

        With dummy zeros each bit is flipped with a smaller probability, but there are more bits: the standard deviation of the
        count does not decrease.

        >>> for k in (0, 100, 1000):
        ...     bits = shuffle.ShuffledBits.calibrate(users=20, eps=1.0, delta=1e-6, fakes=k)
        ...     print(f"{bits.flip:.4f} {bits.variance ** 0.5:.2f}")
        0.2688 4.29
        0.1542 5.72
        0.0302 5.81
        """
        if (releases, devices) != (1, 1):
            return one_of_releases(partial(cls.calibrate, users=users, fakes=fakes, colluding=colluding, missing=missing),
                                   releases, devices, eps=eps, delta=delta)
        users = _validate.integer("users", users, 1)
        fakes = _validate.integer("fakes", fakes, 0, _validate.MAX_COUNT - users)
        eps, delta = _validate.target(eps, delta)
        # At this flip probability the local guarantee alone meets the target.
        high = min(0.5, (1 + 1e-12) / (1 + capped_exp(eps)))
        # The search starts between `low` and `high`. A bit is replaced by a fair coin with probability 2 q. With probability
        # (1 - 2 q)^(n-1) no other bit is replaced, and only the target's own flip protects the target. So, unless delta is close
        # to 1, no flip probability below `low` meets the target.
        low = min(0.25 * -math.expm1(math.log(delta) / 2) / (users + fakes), high / 2)
        build = partial(cls, users, fakes=fakes, colluding=colluding, missing=missing)
        return build(least_parameter(build, low, high, eps, delta))

    @property
    def _dummies(self) -> int:
        return self.fakes

    def _messages(self, values: NDArray[Any], source: np.random.Generator) -> NDArray[np.int8]:
        return np.asarray(values ^ (source.random(values.size) < self.flip))

    def _dummy_messages(self, number: int, source: np.random.Generator) -> NDArray[np.int8]:
        return self._messages(np.zeros(number, dtype=np.int8), source)

    def _simulated(self, values: NDArray[Any], source: np.random.Generator) -> int:
        ones = self._added(values)
        return int(source.binomial(ones, 1 - self.flip) + source.binomial(self._bits - ones, self.flip))

    def _estimated(self, counts: int, users: int) -> float:
        self._informative()
        return float((counts - (users + self.fakes) * self.flip) / (1 - 2 * self.flip))

    @property
    def variance(self) -> float:
        r"""Variance of :meth:`estimate` for every dataset, :math:`(n + k) q (1-q)/(1-2q)^2`; k is `fakes` and q is `flip`."""
        self._informative()
        return self._bits * self.flip * (1 - self.flip) / (1 - 2 * self.flip) ** 2

    def _count_law(self, users: int) -> CountLaw:
        one, zero = (1 - self.flip, self.flip), (self.flip, 1 - self.flip)
        return CountLaw(tail_of_bits(users, one, zero, (*zero, self.fakes)), self._scale(), users)

    def messages_per_user(self) -> float:
        """Return the number of messages per user: 1 + fakes/users."""
        return self._bits / self.users

    def _one_error(self, a: Fraction, held: int | None) -> Interval:
        self._informative()
        width = a * (1 - 2 * Fraction(self.flip))
        if not self.fakes:
            return bits_exceeded(self.users, self.flip, width, held)
        fakes = (self.flip, 1 - self.flip, self.fakes, Fraction(self.flip))
        lower, upper = bits_exceeded(self.users, self.flip, width, held, fakes)
        # A second upper bound treats the dummy zeros as further users with arbitrary bits. It covers more datasets than the
        # protocol has, but the search has a smaller tolerance.
        return Interval(lower, upper if held is not None else min(upper, bits_exceeded(self._bits, self.flip, width, None).upper))
