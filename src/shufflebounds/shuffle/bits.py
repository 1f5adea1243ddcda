"""Shuffled randomized response on one bit a user: exact for the protocol, for known data and for the worst."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shufflebounds import _validate
from shufflebounds._core import _worst
from shufflebounds._docs import with_passages
from shufflebounds._types import FloatArray, Interval, IntervalArray
from shufflebounds.composing import DominatingPairInfo
from shufflebounds.profile import DominatingPair
from shufflebounds.profile._budget import log_odds
from shufflebounds.profile.calibration import least_parameter
from shufflebounds.profile.curves import convex_hull
from shufflebounds.profile.roots import NEAR_RTOL, solve
from shufflebounds.shuffle import _all_data
from shufflebounds.shuffle._accuracy import bits_exceeded
from shufflebounds.shuffle._data_blocks import blocks_of_ones
from shufflebounds.shuffle._known_bits import BitPair, bit_sides, middle_losses
from shufflebounds.shuffle._protocol import ShuffleProtocol
from shufflebounds.shuffle.clones import MAX_LOCAL_EPS
from shufflebounds.tradeoff import Tradeoff

__all__ = ["ShuffledBits"]


@with_passages
@dataclass(frozen=True)
class ShuffledBits(ShuffleProtocol):
    r"""Every user flips their bit with probability q; the analyst sees the shuffled bits, that is their sum.

    With W the law of the other users' sum when m of them hold 1, :math:`\mathrm{Bin}(m, 1-q) + \mathrm{Bin}(n-1-m, q)`,

    .. math::
        \delta_m(\varepsilon) = \max_k\; (p - q e^\varepsilon)\, W(k) - (e^\varepsilon - 1) \Pr[W < k], \qquad p = 1 - q,

    for the target at 0 against 1; the other direction is the same with n - 1 - m ones.

    Parameters
    ----------
    users : int
        Number n of users, the target's included, 1 to 2**53.
    flip : float
        Probability q of flipping, in [0, 1/2].
    ones : int or "worst"
        How many of the other n - 1 users hold 1, or "worst": the maximum over all data.
    fakes : int
        Number k of fake zeros that are flipped and shuffled like the others, users + fakes at most 2**53: W then is
        :math:`\mathrm{Bin}(m, 1-q) + \mathrm{Bin}(n+k-1-m, q)`, and a smaller q serves.

    Notes
    -----
    Neighbours: one user's bit is replaced. Exact for the protocol. For known data both sides are a relative
    1e-12 apart (in deep tails :math:`10^{-13} |\log\delta|`, and :math:`\delta(\varepsilon) = 0` exactly from
    :math:`\varepsilon = \ln(p/q)` on). The worst data is seldom m = 0 exactly: ``ones="worst"`` is a branch and bound over
    all m, by the monotonicity :math:`\delta_{n}(m + j) \le \delta_{n-B}(m)`, :math:`0 \le j \le B`
    (more users are post-processing), which leaves the sides at most a relative 1e-3 apart in delta, and 1e-9 up to 1024
    users.

    Trade-off curve over all datasets: up to 1024 users every m is listed, and both bounds of :meth:`tradeoff` are within 1e-12 of
    the convex hull of their curves; mu is the maximum over all m and thresholds, to 1e-11. Beyond, what
    is proven for all data follows from the upper delta at some hundred eps (its log to 2e-4, and 2e-3 beyond 1e7 users), and what
    can be attained from five data sets: the curves are then up to 1e-2 of the advantage apart (3e-2 beyond 1e7 users), mu up to
    a relative 1e-2 and Renyi divergences a relative 1e-2 to 3e-2.

    The users' values are bits, one a user; messages are int8, users + fakes of them in random order. The estimate of the number
    of ones is :math:`(\sum y - (n+k)q)/(1 - 2q)`. Its error depends on the number of ones among all users, which
    :meth:`error_tail` takes as `truth`. Over all data it is exact up to 512 users. Beyond, blocks of data are bounded at their
    left end, with the users that differ summed apart (Bernstein's inequality), or all by Chernoff's bound: the upper 95 %
    quantile is then 15 to 50 % too large, most where the variance is below some hundreds, and the quantile at 1e-6 is 10 to 17
    % too large.

    References
    ----------
    Zhilyaev, M. Shuffled bits and fake records, sections 3 and 4: Lemma 4.2 (its coefficient corrected), Proposition 3.1; fakes:
    section 4.4.

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
        "exact for the protocol: hockey stick of the sum of flipped bits, for the given data or the maximum over all data "
        "(Zhilyaev, Lemma 4.2 corrected and Proposition 3.1)"
    )
    neighbours: ClassVar[str] = "replace one user's bit; the analyst sees the shuffled bits"

    def __post_init__(self) -> None:
        _validate.integer_field(self, "users", 1)
        _validate.real_field(self, "flip", 0, 0.5)
        if isinstance(self.ones, str):
            if self.ones != "worst":
                raise ValueError(f"ones={self.ones!r} must be 'worst' or an integer in 0..{self.users - 1}")
        else:
            _validate.integer_field(self, "ones", 0, self.users - 1)
        _validate.integer_field(self, "fakes", 0, _validate.MAX_COUNT - self.users)

    def __repr__(self) -> str:
        fakes = f", fakes={self.fakes}" if self.fakes else ""
        return f"{type(self).__name__}(users={self.users}, flip={self.flip}, ones={self.ones!r}{fakes})"

    @property
    def _bits(self) -> int:
        """Bits in the shuffle."""
        return self.users + self.fakes

    @classmethod
    def boolean_sum(cls, users: int, lam: float) -> Self:
        r"""Return the boolean-sum mechanism of Chen and Long: flip = lam/(2 users).

        Parameters
        ----------
        users : int
            Number n of users, 1 to 2**53.
        lam : float
            Expected number :math:`\lambda` of random bits among the n, in [0, n].

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
        """Return the sum with the target at 0 against the target at 1, `ones` of the others holding 1.

        Parameters
        ----------
        ones : int
            How many of the other users hold 1, 0 to users - 1.

        Returns
        -------
        DominatingPair
            Exact for these data; its `reverse` is the other direction.

        {raises: If `ones` lies outside its range.}
        """
        ones = _validate.integer("ones", ones, 0, self.users - 1)
        return BitPair(ones, self._bits - 1 - ones, self.flip)

    def pairs(self) -> tuple[DominatingPair, ...]:
        # the worst data is a maximum over 2 n pairs, of which `pair` gives any one
        if self.ones == "worst":
            return super().pairs()
        pair = self.pair(self.ones)
        return pair, pair.reverse()

    def _pair_info(self) -> DominatingPairInfo:
        known = super()._pair_info()
        if self.ones != "worst":
            lattice = partial(middle_losses, self.ones, self._bits - 1 - self.ones, self.flip)
            return replace(known, single=2 * self.ones == self._bits - 1, spacing=0.12, lattice=lattice)
        # some hundred eps for a curve, each a search over the data of up to 1/loose evaluations where all data are nearly alike
        spacing, effort = (0.12, 2e-3) if self._bits <= 10**7 else (0.3, 2e-2)
        # each search grows with the number of users, as measured over 1e3 to 1e7
        setup = 0.8 * max(0.0, math.log10(self._bits / 1e3)) if self._bits else 0.0
        return replace(
            known, spacing=spacing, effort=effort, setup=setup, curve_hockey_stick=lambda eps: self._worst_sides(eps, self._loose),
            blocks=blocks_of_ones(self._bits - 1, 1, self.flip),
        )

    def _attained_pairs(self) -> tuple[DominatingPair, ...]:
        if self.ones != "worst":
            return self.pairs()
        pair = self.pair(0)
        return pair, pair.reverse()

    def _log_delta(self, eps: FloatArray) -> IntervalArray:
        if self.ones != "worst":
            # both directions in one call: the second is the first with 0 and 1 exchanged
            data = np.array([[self.ones], [self._bits - 1 - self.ones]], dtype=np.float64)
            lower, upper = bit_sides(data, data[::-1], self.flip, eps)
            return IntervalArray(lower.max(axis=0), upper.max(axis=0))
        return self._worst_sides(eps, 0.0)

    def _near(self, log_delta: float) -> float | None:
        if self.ones != "worst" or self.flip in (0, 0.5):
            return None
        data = np.array([0.0, self._bits - 1.0])

        def one_end(eps: float) -> float:
            # all others at 0: nearly the worst data, in a thousandth of the time that all data take
            return min(0.0, float(bit_sides(data, data[::-1], self.flip, np.full(2, eps)).upper.max()))

        return solve(one_end, log_delta, self._pure_epsilon(), upper=True, rtol=NEAR_RTOL)

    def _rough_sides(self, eps: FloatArray) -> IntervalArray:
        """Return bounds of log delta over all data, farther apart for many users and in some milliseconds an eps."""
        return self._worst_sides(eps, 0.0 if self._bits <= 10**4 else self._loose)

    @property
    def _loose(self) -> float:
        """How far apart the sides may stay where hundreds are asked for."""
        return 2e-4 if self._bits <= 10**7 else 2e-3

    def _worst_sides(self, eps: FloatArray, loose: float) -> IntervalArray:
        """Enclose the maximum over all data; without fakes the mirror direction of m is the first direction of n - 1 - m."""
        budget = log_odds(self.flip)
        if self.flip in (0, 0.5):
            return bit_sides(0.0, self._bits - 1.0, self.flip, eps)
        # as in bit_sides: e^eps must stay a double
        near = np.minimum(eps, MAX_LOCAL_EPS)
        inside = np.asarray(budget.less(near)) > 0
        lower, upper = np.full(eps.size, -np.inf), np.full(eps.size, -np.inf)
        found = _worst.worst_log_delta(
            self.users - 1, self.fakes, 1, self.flip, near[inside], np.asarray(budget.less(near[inside])), loose
        )
        lower[inside], upper[inside] = found
        return IntervalArray(np.where(near == eps, lower, -np.inf), np.where(budget.less(eps) > 0, upper, -np.inf))

    def _listed(self) -> bool:
        """Whether the laws of all data can be listed."""
        return self._bits <= _all_data.MOST_USERS and not self.fakes

    def _tried(self) -> list[DominatingPair]:
        """Return pairs of some data, one of them nearly the worst: that has few ones where eps > 0, and half ones at eps = 0."""
        others = self.users - 1
        return [self.pair(ones) for ones in sorted({int(others * part) for part in (0.0, 1e-3, 0.01, 0.1, 0.5)})]

    def _tradeoff(self, upper: bool) -> Tradeoff:
        if self.ones != "worst" or self.flip in (0, 0.5):
            return super()._tradeoff(upper)
        if self._listed():
            return _all_data.curve_of_all(self.users, self.flip, upper)
        if not upper:
            return super()._tradeoff(upper)
        curves = [pair._tradeoff(True) for pair in self._tried()]
        return convex_hull([*curves, *(curve.inverse() for curve in curves)])

    def _gdp_mu(self, upper: bool) -> float:
        if self.flip == 0:
            return math.inf
        if self.ones != "worst" or self.flip == 0.5:
            return super()._gdp_mu(upper)
        return super()._gdp_mu(upper) if upper else max(pair._gdp_mu(upper) for pair in self._tried())

    def _rdp(self, orders: FloatArray, upper: bool) -> FloatArray:
        if self.flip == 0:
            return np.full(orders.size, math.inf)
        if self.ones != "worst" or self.flip == 0.5:
            return super()._rdp(orders, upper)
        if self._listed():
            finite = np.minimum(orders, 1e6)
            value = _all_data.renyi_of_all(self.users, self.flip, finite, upper)
            pure = self._pure_epsilon() if upper else self._last_positive(self._pure_epsilon())
            return np.where(orders <= 1e6, value, pure if upper else np.where(orders == math.inf, pure, value))
        if upper:
            return super()._rdp(orders, upper)
        values = [side._rdp(orders, upper) for pair in self._tried() for side in (pair, pair.reverse())]
        return np.asarray(np.max(values, axis=0))

    def _pure_epsilon(self) -> float:
        return log_odds(self.flip).above

    @classmethod
    def calibrate(cls, users: int, *, eps: float, delta: float, fakes: int = 0) -> Self:
        """Return the mechanism with the smallest flip whose upper delta at `eps`, over all data, is at most `delta`.

        Parameters
        ----------
        {users}
        {target}
        fakes : int
            Number of fake zeros, >= 0: the more, the less each bit need be flipped.

        Returns
        -------
        ShuffledBits
            The target holds at the returned flip, evaluated there; a relative 1e-3 less delta would be met nearby (the
            tolerance of the worst case).

        {raises}

        Notes
        -----
        More flipping is post-processing: delta does not increase with `flip`, and at 1/2 it is 0, so every target can be met.

        Examples
        --------
        >>> from shufflebounds import shuffle
        >>> bits = shuffle.ShuffledBits.calibrate(10**6, eps=1.0, delta=1e-9)
        >>> bits.delta(1.0) <= 1e-9, round(bits.users * bits.flip, 2)
        (True, 57.07)

        Fakes let each bit be flipped less, but there are more bits to flip: the deviation of the count does not shrink.

        >>> for k in (0, 100, 1000):
        ...     bits = shuffle.ShuffledBits.calibrate(20, eps=1.0, delta=1e-6, fakes=k)
        ...     print(f"{bits.flip:.4f} {bits.variance ** 0.5:.2f}")
        0.2688 4.29
        0.1542 5.72
        0.0302 5.81
        """
        users = _validate.integer("users", users, 1)
        fakes = _validate.integer("fakes", fakes, 0, _validate.MAX_COUNT - users)
        eps, delta = _validate.target(eps, delta)
        # at this flip the local guarantee alone suffices
        high = min(0.5, (1 + 1e-12) / (1 + math.exp(min(eps, 700.0))))
        # no clone at all with probability (1 - 2 q)^(n-1): below this flip delta is out of reach
        low = min(0.25 * -math.expm1(math.log(delta) / 2) / (users + fakes), high / 2)
        flip = least_parameter(lambda flip: cls(users, flip, fakes=fakes), low, high, eps, delta)
        return cls(users, flip, fakes=fakes)

    def randomize(self, values: ArrayLike, rng: Any = None) -> NDArray[np.int8]:
        bits = _validate.zeros_and_ones("values", values, (self.users,), "one bit a user")
        source = _validate.generator(rng)
        messages = np.concatenate([bits.astype(np.int8), np.zeros(self.fakes, dtype=np.int8)])
        messages ^= source.random(self._bits) < self.flip
        source.shuffle(messages)
        return messages

    def estimate(self, messages: ArrayLike) -> float:
        bits = _validate.zeros_and_ones("messages", messages, (self._bits,), "one bit a user, and the fakes")
        self._informative()
        return float((bits.sum() - self._bits * self.flip) / (1 - 2 * self.flip))

    @property
    def variance(self) -> float:
        r"""Variance of :meth:`estimate`, :math:`(n + k) q (1-q)/(1-2q)^2`, whatever the data."""
        self._informative()
        return self._bits * self.flip * (1 - self.flip) / (1 - 2 * self.flip) ** 2

    def messages_per_user(self) -> float:
        """Return how many messages there are per user: one bit, and the share of the fakes."""
        return self._bits / self.users

    def _checked_truth(self, truth: Any) -> int | None:
        return None if truth is None else _validate.integer("truth", truth, 0, self.users)

    def _error(self, a: Fraction, truth: int | None) -> Interval:
        self._informative()
        width = a * (1 - 2 * Fraction(self.flip))
        if not self.fakes:
            return bits_exceeded(self.users, self.flip, width, truth)
        fakes = (self.flip, 1 - self.flip, self.fakes, Fraction(self.flip))
        lower, upper = bits_exceeded(self.users, self.flip, width, truth, fakes)
        # another bound: with fakes taken for users the data include those whose fakes are 0, and that search is tighter
        return Interval(lower, upper if truth is not None else min(upper, bits_exceeded(self._bits, self.flip, width, None).upper))

    def _scale(self) -> float:
        return math.sqrt(self.variance) + 1 / (1 - 2 * self.flip)

    def _informative(self) -> None:
        if self.flip == 0.5:
            raise ValueError("flip=0.5 must be < 0.5 for an estimate: the messages say nothing of the data")
