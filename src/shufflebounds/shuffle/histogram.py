"""A histogram whose estimate is exactly 0 for empty bins: the protocol zsum of Balcer and Cheu in every bin."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shufflebounds._base import validate as _validate
from shufflebounds._base.caches import cached_property
from shufflebounds._base.docs import with_passages
from shufflebounds._base.types import ULP, FloatArray, Interval, IntervalArray, at_each
from shufflebounds._core._binomial import binom_logpmf, shift_log_delta
from shufflebounds._engines.bits.mixed_sum import at_any_eps, enclose_sum
from shufflebounds._engines.errors.accuracy import CountErrorLaw, Histogram
from shufflebounds._engines.errors.counted import CountsOfColumns, bernoulli
from shufflebounds._engines.errors.intervals import CountIntervals, CountLaw
from shufflebounds._losses.atoms import union_probability
from shufflebounds._losses.release import SINGLE, DominatingPairInfo, Losses, Releases, Sampling, never
from shufflebounds._losses.sum_test import attained_by, certain, moved
from shufflebounds.profile.calibration import one_of_releases
from shufflebounds.profile.chain import GroupInfo
from shufflebounds.profile.profile import PrivacyProfile
from shufflebounds.shuffle.absent import AbsentUsers
from shufflebounds.shuffle.noise import BinomialNoise
from shufflebounds.shuffle.zero_sum import ZeroSum, log_missed, smallest_gamma

__all__ = ["ShuffledHistogram"]


def _log_delta(n: float, gamma: float, eps: float) -> Interval:
    """Return bounds of log delta at one eps, for n users and two or more bins."""

    def one_bin(reverse: float, at: FloatArray) -> IntervalArray:
        value, error = shift_log_delta(n, gamma, at, reverse)
        return IntervalArray(value - error, value + error)

    def value(i: FloatArray) -> IntervalArray:
        with np.errstate(divide="ignore"):
            loss = np.log((i + 1) / (n - i)) + math.log1p(-gamma) - math.log(gamma)
        slack = 4 * ULP * (np.abs(np.where(loss < np.inf, loss, 0)) + eps - math.log(gamma) + 1)
        return at_any_eps(lambda at: one_bin(0.0, at), lambda at: one_bin(1.0, at), eps - loss, slack)

    return enclose_sum(lambda i: binom_logpmf(i, n, gamma), math.floor((n + 1) * gamma), 0.0, n, value)


@with_passages
@dataclass(frozen=True, repr=False)
class ShuffledHistogram(CountIntervals, CountsOfColumns, PrivacyProfile, CountErrorLaw, AbsentUsers):
    r"""A histogram of users' bins by :class:`ZeroSum` in every bin; the estimates of empty bins are exactly 0.

    Every user sends the name of their bin. In addition, every user sends the name of each bin with probability :math:`1-\gamma`,
    independently. The analyst sees how often each name was sent. If a user's bin is replaced, the numbers of the two bins change by
    one. Let B and B' be the numbers of users who do not send the names of these bins in addition. With the hockey-stick divergence
    H,

    .. math:: \delta(\varepsilon) = H_{e^\varepsilon}\bigl((B+1, B') \,\|\, (B, B'+1)\bigr), \qquad
        B, B' \sim \mathrm{Bin}(n, \gamma) \text{ independent.}

    Parameters
    ----------
    users : int
        Number n of users, 1 to 2**53.
    bins : int
        Number d of bins, 1 to 2**53. With one bin delta is 0.
    gamma : float
        Probability :math:`\gamma` with which a user does not send the name of a bin in addition, in (0, 1/2].
    {absent}

    Notes
    -----
    Neighbours: one user's bin is replaced. delta is exact for the protocol and every dataset, and equal for (P, Q) and (Q, P). It
    is computed as a mean over the number of one of the two bins: given this number, delta is that of :math:`(B', B'+1)` at
    :math:`\varepsilon` minus the privacy loss of the number. The gap is a relative 1e-11 of delta, or 1e-2 if the number has more
    than 2**16 likely values (:math:`n\gamma` above about 1e7). The published bound adds the (eps, delta) of two bins; this (2 eps,
    2 delta) is valid, but larger by orders of magnitude in delta.

    The users' values are bins 0..d - 1. Messages are given as rows, int8: how often a user sends each name, 0, 1 or 2 times.
    The argument `counts` of :meth:`estimate` is how often each name was sent by all users, which is what the analyst sees.

    **Error of the worst bin.** The errors e_j of the bins are independent: :math:`\Pr[\max_j |e_j| > a] = 1 - \prod_j (1 -
    \Pr[|e_j| > a])`. In a bin with :math:`\lfloor a \rfloor + 1` users, the worst number, an estimate of 0 is an error above
    a. Over all datasets, the upper bound assumes that as many bins as possible have this number of users, and that the other
    bins have at most a users. The lower bound is that of one such histogram.

    **Mean squared error.** :meth:`mean_squared_error` averages over the bins. Without `truth` it returns the error of one bin with
    the worst number of users, which is the average if all bins have this number, and otherwise an upper bound.

    {balcer2020: Figure 2, Theorem 3.2}

    Examples
    --------
    >>> from shufflebounds import shuffle
    >>> protocol = shuffle.ShuffledHistogram.calibrate(users=10**5, bins=50, eps=1.0, delta=1e-6)
    >>> protocol.delta(1.0) <= 1e-6
    True
    >>> counts = protocol.simulate([3] * 70_000 + [8] * 30_000, rng=1)
    >>> protocol.estimate(counts=counts).nonzero()[0].tolist()
    [3, 8]
    """

    users: int
    bins: int
    gamma: float

    theorem: ClassVar[str] = "exact for the protocol: two shifted binomials, in opposite directions"
    neighbours: ClassVar[str] = "replace one user's bin; the analyst sees the number of messages of each name"
    _most: ClassVar[int] = 2

    def __post_init__(self) -> None:
        _validate.integer_field(self, "users", 1)
        _validate.integer_field(self, "bins", 1)
        _validate.real_field(self, "gamma", 0, 0.5, open_low=True)
        self._check_absent(self.users)

    @cached_property
    def one_bin(self) -> ZeroSum:
        """The protocol of one bin."""
        return ZeroSum(self.users, self.gamma, colluding=self.colluding, missing=self.missing)

    def describe(self) -> DominatingPairInfo:
        if self.bins == 1:
            return DominatingPairInfo(never, 0.0, None, Sampling(2e-3), attained=SINGLE)
        # The dominating pair is a product of two independent counts, which change in opposite directions.
        parts = tuple((pair._pair_info(), 1) for pair in BinomialNoise(self.users, self.gamma).pairs())
        hockey_stick = partial(at_each, partial(_log_delta, float(self.users), self.gamma))
        # The loss is unbounded, because a count of users + 1 in a bin is possible for only one of two neighbours.
        losses = Losses(unbounded=True)
        return DominatingPairInfo(hockey_stick, math.inf, None, Sampling(2e-3), losses, SINGLE, Releases(parts=parts))

    def describe_group(self, size: int) -> GroupInfo:
        # All users of the group move from one bin to another. The test is the difference of the two counts.
        if self.bins == 1:
            return GroupInfo()
        zero, one = math.log(self.gamma), math.log1p(-self.gamma)
        noise = certain((0, 1), (zero, one), self.users), certain((-1, 0), (one, zero), self.users)
        return GroupInfo(attained=lambda: attained_by([moved(float(size), noise)]))

    @classmethod
    def calibrate(cls, *, users: int, bins: int, eps: float, delta: float, releases: int = 1, devices: int = 1,
                  colluding: int = 0, missing: int = 0) -> Self:
        """Return the mechanism with the smallest gamma that the search finds; its upper delta at `eps` is at most `delta`.

        Parameters
        ----------
        {users}
        bins : int
            Number of bins, 2 to 2**53.
        {target}
        {releases}
        {absent}

        Returns
        -------
        ShuffledHistogram
            Its gamma has the properties that :meth:`ZeroSum.calibrate` states; the exceptions are the same, too.

        Examples
        --------
        >>> from shufflebounds import shuffle
        >>> protocol = shuffle.ShuffledHistogram.calibrate(users=10**6, bins=100, eps=1.0, delta=1e-9)
        >>> print(f"{protocol.users * protocol.gamma:.2f}")
        72.06
        """
        if (releases, devices) != (1, 1):
            return one_of_releases(partial(cls.calibrate, users=users, bins=bins, colluding=colluding, missing=missing), releases,
                                   devices, eps=eps, delta=delta)
        users = _validate.integer("users", users, 1)
        bins = _validate.integer("bins", bins, 2)
        eps, delta = _validate.target(eps, delta)
        absent = {"colluding": colluding, "missing": missing}
        # The gamma that one bin needs is a lower bound of the result. The gamma of one bin at eps/2 and delta/2 is an upper
        # bound.
        try:
            with _validate.quiet():
                low = ZeroSum.calibrate(users=users, eps=eps, delta=delta, **absent).gamma * (1 - 1e-3)
                high = min(0.5, ZeroSum.calibrate(users=users, eps=eps / 2, delta=delta / 2, **absent).gamma * (1 + 1e-3))
        except _validate.InfeasibleError:
            low, high = None, 0.5
        with _validate.quiet():
            gamma = smallest_gamma(lambda count, gamma: cls(count, bins, gamma, **absent), users, eps, delta, low, high)
            return cls(users, bins, gamma, **absent)

    @property
    def _fixed_users(self) -> int:
        return self.users

    def _messages(self, values: NDArray[Any], source: np.random.Generator) -> NDArray[np.int8]:
        copies = (~bernoulli(source, (values.size, self.bins), self.gamma)).view(np.int8)
        copies[np.arange(values.size), values] += 1
        return copies

    def _simulated(self, values: NDArray[Any], source: np.random.Generator) -> NDArray[np.int64]:
        zeros = source.binomial(self.users, self.gamma, size=self.bins)
        return np.asarray(np.bincount(values, minlength=self.bins) + self.users - zeros)

    def estimate(
        self, messages: ArrayLike | None = None, *, counts: ArrayLike | None = None, users: int | None = None, raw: bool = False
    ) -> FloatArray:
        r"""Return the estimated number of users in each bin: :math:`y_j - n(1-\gamma)` where y_j > n, and 0 otherwise.

        Parameters
        ----------
        messages : array_like of int, shape (users, bins), optional
            Number of copies of each name that each user sent, 0, 1 or 2.
        counts : array_like of int, shape (bins,), optional
            In place of messages: the number y_j of messages that name each bin, which is what the analyst sees.
        users : int, optional
            Number of users whose messages arrived, from ``users - missing`` to `users` of the protocol; all by default.
        raw : bool
            Return :math:`y_j - n(1-\gamma)` for all bins. This estimate is unbiased and has the variance :attr:`variance`, but
            is not 0 for empty bins.

        Returns
        -------
        ndarray, shape (bins,)

        {raises: If not exactly one of `messages` and `counts` is given, or the protocol cannot produce its values.}
        """
        seen, sent = self._read(messages, counts, users)
        value = self._estimated(seen, sent)
        return value if raw else np.where(seen > sent, value, 0.0)

    def _estimated(self, counts: NDArray[np.int64], users: int) -> FloatArray:
        return np.asarray(counts - users + users * self.gamma)

    @property
    def variance(self) -> float:
        r"""Variance :math:`n\gamma(1-\gamma)` of the estimate of one bin with ``raw=True``, for n users and every dataset."""
        return self.one_bin.variance

    def _count_law(self, users: int) -> CountLaw:
        return self.one_bin._count_law(users)

    def messages_per_user(self) -> float:
        r"""Return the mean number of messages of a user, :math:`1 + d(1-\gamma)`; the largest is d + 1."""
        return 1 + self.bins * (1 - self.gamma)

    def _one_mean_square(self, held: int | None) -> float:
        return self.one_bin._one_mean_square(held)

    def _one_error(self, a: Fraction, held: int | None) -> Interval:
        totals = [min(math.floor(a) + 1, self.users), max(min(math.floor(a), self.users), 1)] if held is None else [held]
        sides = [log_missed(self.users, self.gamma, total, a) for total in totals if total]
        if not sides:
            # The estimate of an empty bin has no error.
            return Interval(-math.inf, -math.inf)
        return Interval(max(low for low, _ in sides) - 1e-13, min(0.0, max(high for _, high in sides) + 1e-13))

    def _rounding(self, a: Fraction, truth: int | Histogram | None) -> float:
        return self.one_bin._rounding(a, truth if isinstance(truth, int) else None)

    def _any_error(self, a: Fraction, truth: int | Histogram | None) -> Interval:
        if not isinstance(truth, Histogram):
            return self._largest_error(a, truth)
        sides = [self._one_error(a, total) for total in truth.totals]
        low, high = (union_probability([(side[i], count) for side, count in zip(sides, truth.bins)]) for i in (0, 1))
        return Interval(low - 1e-13, min(0.0, high + 1e-13))

    def _largest_error(self, a: Fraction, largest: int | None) -> Interval:
        most = self.users if largest is None else largest
        worst = min(math.floor(a) + 1, most)
        # `full` is the largest possible number of bins with `worst` users each, and `left` is the number of users left.
        full = min(self.bins, self.users // worst)
        left = self.users - full * worst
        others = min(self.bins, self.users) - full
        at_worst, at_most = (log_missed(self.users, self.gamma, total, a) for total in (worst, max(worst - 1, 1)))
        upper = union_probability([(at_worst[1], full), (at_most[1], others)])
        if largest is not None:
            lower = self._one_error(a, largest).lower
            return Interval(lower - 1e-13, min(0.0, upper + 1e-13))
        # The remaining users are all in one more bin, or, if there is none, in one of the full bins.
        in_full = worst if left and full == self.bins else 0
        rest, alone = log_missed(self.users, self.gamma, in_full + left, a).lower, full - 1 if in_full else full
        lower = union_probability([(at_worst[0], alone), (rest, 1 if left else 0)])
        return Interval(lower - 1e-13, min(0.0, upper + 1e-13))

    def _scale(self) -> float:
        return self.users * self.gamma + 1
