"""A sum of bits whose estimate is exactly 0 if all bits are 0: the protocol zsum of Balcer and Cheu."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shufflebounds._base import validate as _validate
from shufflebounds._base.caches import cached_property
from shufflebounds._base.docs import with_passages
from shufflebounds._base.types import ULP, Interval
from shufflebounds._core._binomial import binom_logcdf, binom_logpmf, binom_logsf
from shufflebounds._engines.errors.accuracy import CountErrorLaw, shift_rounding
from shufflebounds._engines.errors.counted import SumOfBits
from shufflebounds._engines.errors.intervals import CountIntervals, CountLaw, tail_of_bits
from shufflebounds.profile import DominatingPair, PrivacyProfile
from shufflebounds.profile.calibration import least_count, least_parameter, meets, one_of_releases
from shufflebounds.profile.chain import GroupInfo
from shufflebounds.shuffle.absent import AbsentUsers
from shufflebounds.shuffle.noise import BinomialNoise

__all__ = ["ZeroSum"]


@with_passages
@dataclass(frozen=True, repr=False)
class ZeroSum(CountIntervals, SumOfBits, PrivacyProfile, CountErrorLaw, AbsentUsers):
    r"""Every user sends one message for a bit 1 and one for a noise bit 1; the estimated sum is exactly 0 if all bits are 0.

    All messages are equal. User i sends :math:`x_i + z_i` of them, with the bit :math:`x_i` and the noise bit :math:`z_i \sim
    \mathrm{Ber}(1-\gamma)`. The analyst sees their number, :math:`y = \sum x_i + n - B`, where B is the number of noise bits that
    are 0, and estimates the sum of the users' bits by :math:`y - n(1-\gamma)` if y > n, and by 0 otherwise. With the hockey-stick
    divergence H,

    .. math:: \delta(\varepsilon) = \max\{H_{e^\varepsilon}(B \,\|\, B+1),\; H_{e^\varepsilon}(B+1 \,\|\, B)\}, \qquad
        B \sim \mathrm{Bin}(n, \gamma)

    Parameters
    ----------
    users : int
        Number n of users, 1 to 2**53.
    gamma : float
        Probability :math:`\gamma` of a zero noise bit, in (0, 1/2].
    {absent}

    Notes
    -----
    Neighbours: one user's bit is replaced. delta is exact for the protocol and every dataset: the noise is that of
    :class:`BinomialNoise` with n trials. delta is not monotone in gamma: it oscillates by up to a relative 4e-4 at n = 1000.

    The users' values are bits. Messages are given as the number that each user sends, int8: 0, 1 or 2. The argument `counts` of
    :meth:`estimate` is y.

    **Error.** Let S be the sum of the users' bits, which :meth:`error_tail` takes as `truth`; then y = n + S - B. If B < S, the
    estimate is :math:`S + n\gamma - B`, with the error :math:`n\gamma - B`. Otherwise the estimate is 0, with the error -S. The
    probability of an error above a is largest for :math:`S = \lfloor a \rfloor + 1`: for a larger S an estimate of 0 is less
    likely, and for a smaller S an estimate of 0 has an error of at most a. The mean squared error is largest for one S between
    :math:`n\gamma/2` and a few standard deviations above :math:`n\gamma`; it is up to about :math:`(n\gamma)^2`.

    {balcer2020: Figure 1, Theorem 3.1}

    Examples
    --------
    >>> from shufflebounds import shuffle
    >>> protocol = shuffle.ZeroSum.calibrate(users=10**6, eps=1.0, delta=1e-6)
    >>> print(f"{protocol.users * protocol.gamma:.4f}")
    34.0679
    >>> protocol.estimate(protocol.randomize([0] * 10**6, rng=1))
    0.0
    >>> protocol.error_quantile(0.05) < 50
    True
    """

    users: int
    gamma: float

    theorem: ClassVar[str] = (
        "exact for the protocol: the larger hockey-stick divergence, of both orders, of Bin(users, gamma) and its shift by one"
    )
    neighbours: ClassVar[str] = "replace one user's bit; the analyst sees the number of messages"
    _most: ClassVar[int] = 2

    def __post_init__(self) -> None:
        _validate.integer_field(self, "users", 1)
        _validate.real_field(self, "gamma", 0, 0.5, open_low=True)
        self._check_absent(self.users)

    @cached_property
    def noise(self) -> BinomialNoise:
        """Binomial noise with the same delta: the number of zero noise bits, which determines the number of messages."""
        return BinomialNoise(self._hiding, self.gamma)

    def pairs(self) -> tuple[DominatingPair, ...]:
        return self.noise.pairs()

    def describe_group(self, size: int) -> GroupInfo:
        return self.noise.describe_group(size)

    @classmethod
    def calibrate(cls, users: int, *, eps: float, delta: float, releases: int = 1, devices: int = 1,
                  colluding: int = 0, missing: int = 0) -> Self:
        """Return the mechanism with the smallest gamma that the search finds; its upper delta at `eps` is at most `delta`.

        Parameters
        ----------
        {users}
        {target}
        {releases}
        {absent}

        Returns
        -------
        ZeroSum
            Its upper delta at `eps` was evaluated and is at most `delta`; just below its gamma the upper delta exceeds `delta`.
            Since delta oscillates in gamma, a somewhat smaller gamma may meet the target, too.

        {raises}
        InfeasibleError
            If gamma = 1/2, the largest noise, does not meet the target; the message states a number of users that is enough (a
            ValueError).

        Examples
        --------
        >>> from shufflebounds import shuffle
        >>> shuffle.ZeroSum.calibrate(users=10**4, eps=0.1, delta=1e-9)
        Traceback (most recent call last):
            ...
        shufflebounds.InfeasibleError: delta=1e-09 cannot be met at eps=0.1 with users=10000: gamma=0.5 ...
        """
        if (releases, devices) != (1, 1):
            return one_of_releases(partial(cls.calibrate, users=users, colluding=colluding, missing=missing), releases, devices,
                                   eps=eps, delta=delta)
        users = _validate.integer("users", users, 1)
        build = partial(cls, colluding=colluding, missing=missing)
        return build(users, smallest_gamma(build, users, eps, delta))

    @property
    def _fixed_users(self) -> int:
        return self.users

    def _messages(self, values: NDArray[Any], source: np.random.Generator) -> NDArray[np.int8]:
        return np.asarray(values + (source.random(values.size) >= self.gamma), dtype=np.int8)

    def _simulated(self, values: NDArray[Any], source: np.random.Generator) -> int:
        return self._added(values) + self.users - int(source.binomial(self.users, self.gamma))

    def estimate(
        self, messages: ArrayLike | None = None, *, counts: ArrayLike | None = None, users: int | None = None, raw: bool = False
    ) -> float:
        r"""Return the estimate of the number of ones: :math:`y - n(1-\gamma)` if y > n, and 0 otherwise.

        Parameters
        ----------
        messages : array_like of int, optional
            Number of copies that each user sent, 0, 1 or 2.
        counts : int, optional
            In place of messages: their number y, which is what the analyst sees, from 0 to twice the number of users.
        users : int, optional
            Number of users whose messages arrived, from ``users - missing`` to `users` of the protocol; all by default.
        raw : bool
            Return :math:`y - n(1-\gamma)` for every y. This estimate is unbiased and has the variance :attr:`variance`, but is
            not 0 if all bits are 0.

        Returns
        -------
        float

        {raises: If not exactly one of `messages` and `counts` is given, or the protocol cannot produce its values.}
        """
        seen, sent = self._read(messages, counts, users)
        return self._estimated(seen, sent) if raw or seen > sent else 0.0

    def _estimated(self, counts: int, users: int) -> float:
        return float(counts - users + users * self.gamma)

    @property
    def variance(self) -> float:
        r"""Variance :math:`n\gamma(1-\gamma)` of the estimate with ``raw=True``, for n users and every dataset."""
        return self.users * self.gamma * (1 - self.gamma)

    def _count_law(self, users: int) -> CountLaw:
        # Each user whose message arrived sent one noise bit.
        noise = 1 - self.gamma, self.gamma, users
        return CountLaw(tail_of_bits(users, (1.0, 0.0), (0.0, 1.0), noise), math.sqrt(self.variance) + 1, users)

    def messages_per_user(self) -> float:
        r"""Return the mean number of messages of a user with bit 1, :math:`2-\gamma`; no user sends more than 2."""
        return 2 - self.gamma

    def _one_mean_square(self, held: int | None) -> float:
        return missed_square(self.users, self.gamma, worst_total(self.users, self.gamma) if held is None else held)

    def _one_error(self, a: Fraction, held: int | None) -> Interval:
        worst = min(math.floor(a) + 1, self.users) if held is None else held
        return log_missed(self.users, self.gamma, worst, a)

    def _rounding(self, a: Fraction, truth: Any) -> float:
        # Without ones the estimate is exactly 0.
        return 0.0 if truth == 0 else shift_rounding(self.users * self.gamma, 2 * self.users)

    def _scale(self) -> float:
        return self.users * self.gamma + 1


def log_missed(users: int, gamma: float, total: int, a: Fraction) -> Interval:
    """Return bounds of log Pr[|error| > a] if the sum of the users' bits is S = `total`.

    With the number Y ~ Bin(n, gamma) of zero noise bits, n = `users`, the probability is Pr[Y < S, |Y - n gamma| > a], plus
    Pr[Y >= S] if S > a.
    """
    # `mean`, which is n gamma, is rounded as in the estimate.
    mean = Fraction(users * gamma)
    below = math.ceil(mean - a) - 1
    if total > a:
        above = min(math.floor(mean + a) + 1, total)
        if above <= below + 1:
            return Interval(0.0, 0.0)
        value = float(np.logaddexp(binom_logcdf(below, users, gamma), binom_logsf(above - 1, users, gamma)))
    else:
        # For S <= a, no outcome has both Y > n gamma + a and Y < S, so only Y < n gamma - a contributes.
        value = float(binom_logcdf(min(below, total - 1), users, gamma))
    error = 2e-13 + 8 * ULP * abs(value) if value > -math.inf else 0.0
    return Interval(value - error, min(0.0, value + error))


def missed_square(users: int, gamma: float, total: int) -> float:
    r"""Return the mean squared error of the estimate for the sum S = `total`, with Y and n as in `log_missed`.

    Let mu = n gamma, F the cumulative distribution function of Y, and b(k) = Pr[Y = k]. The mean squared error is

    .. math:: \mathbb{E}[(\mu - Y)^2; Y < S] + S^2 \Pr[Y \ge S]
        = \mu(1-\gamma) F(S-1) + (1-\gamma)\, S\, b(S) (\mu + \gamma - S) + S^2 \Pr[Y \ge S].
    """
    if total == 0:
        return 0.0
    mean = users * gamma
    below, at, above = (math.exp(binom(float(k), float(users), gamma)) for binom, k in
                        ((binom_logcdf, total - 1), (binom_logpmf, total), (binom_logsf, total - 1)))
    return mean * (1 - gamma) * below + (1 - gamma) * total * at * (mean + gamma - total) + float(total) * total * above


def worst_total(users: int, gamma: float) -> int:
    r"""Return the sum S with the largest mean squared error f(S) of the estimate.

    With the notation of `missed_square`, :math:`f(S+1) - f(S) = b(S)(\mu^2 - 2\mu S) + (2S+1) \Pr[Y > S]`. This difference is
    positive for S up to mu/2. Beyond, it has the sign of :math:`(2S+1)/(2S-\mu) \cdot \Pr[Y > S]/b(S) - \mu`, where both factors
    decrease in S, because binomial masses are log-concave. So f increases up to the S where the sign changes, and then decreases.
    """
    mean = users * gamma

    def rises(total: int) -> bool:
        if 2 * total <= mean:
            return True
        more = math.log1p((1 + mean) / (2 * total - mean)) + float(binom_logsf(float(total), float(users), gamma))
        return more > math.log(mean) + float(binom_logpmf(float(total), float(users), gamma))

    return bisect_left(range(users), True, key=lambda total: not rises(total))


def smallest_gamma(
    build: Callable[[int, float], PrivacyProfile],
    users: int,
    eps: float,
    delta: float,
    low: float | None = None,
    high: float = 0.5,
) -> float:
    """Return the smallest gamma that the search finds; ``build(users, gamma)`` was evaluated and meets the target.

    The search starts in low..high.
    """
    eps, delta = _validate.target(eps, delta)

    if high == 0.5 and not meets(build(users, 0.5), eps, delta):
        most = build(users, 0.5)
        users_needed = least_count(lambda count: build(count, 0.5), eps, delta, low=users, guess=2 * users)
        would = f"{users_needed} users would do" if users_needed else "nor will more users"
        raise _validate.InfeasibleError(
            f"delta={delta:g} cannot be met at eps={eps:g} with users={users}: gamma=0.5 gives "
            f"delta={most.delta(eps):.3g}, or eps={most.epsilon(delta):.3g}; {would}"
        )

    def at(gamma: float) -> PrivacyProfile:
        return build(users, gamma)

    # With probability (1 - gamma)^n no noise bit is 0, and delta is at least this probability. So no gamma below `low` meets the
    # target.
    low = min(-math.expm1(math.log(delta) / users), 0.25) / 2 if low is None else low
    gamma = least_parameter(at, low, high, eps, delta)
    # Delta oscillates in gamma, so `high` may miss the target slightly.
    return gamma if gamma < high or meets(at(high), eps, delta) else least_parameter(at, high, 0.5, eps, delta)
