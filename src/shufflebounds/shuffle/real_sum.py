"""A sum of real numbers by shuffled bits: every user encodes a number in r bits and flips each bit at random."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shufflebounds._base import validate as _validate
from shufflebounds._base.caches import cached_property
from shufflebounds._base.docs import with_passages
from shufflebounds._base.quadrature import capped_exp
from shufflebounds._base.types import ULP, FloatArray, Interval, IntervalArray, consistent
from shufflebounds._engines.bits.total import TotalOfBits
from shufflebounds._engines.errors.accuracy import Of, log_chernoff, log_exceeded
from shufflebounds._engines.errors.counted import bernoulli, message_rows
from shufflebounds._engines.errors.intervals import CountIntervals, Ends, around
from shufflebounds._losses.closed_forms import ClosedForms
from shufflebounds._losses.release import DominatingPairInfo, Sampling
from shufflebounds.profile.between import Between
from shufflebounds.profile.calibration import least_parameter, meets, one_of_releases, rough_parameter
from shufflebounds.profile.chain import GroupInfo
from shufflebounds.profile.profile import KnownPair
from shufflebounds.shuffle.absent import AbsentUsers
from shufflebounds.shuffle.bits import ComposedSums, FlippedProtocol, ShuffledBits, group_of_columns

__all__ = ["RealSum"]


@with_passages
@dataclass(frozen=True, repr=False)
class RealSum(CountIntervals, FlippedProtocol[int | NDArray[np.int64], float], AbsentUsers):
    r"""Each of n users encodes a number x in [0, 1] in r bits of expected mean x, and flips each bit with probability lam/(2 n).

    The encoder sets the first :math:`\mu - 1` bits, where :math:`\mu = \lceil x r \rceil`, and bit :math:`\mu` with
    probability :math:`x r - \mu + 1` (for x = 0 no bit). The analyst sees all n r flipped bits shuffled together, that is their
    total. With ``view="columns"`` there are r shuffles: the first bits of all users, the second bits, and so on.

    For the total, let M of the other users' (n-1) r bits be 1 before flipping, and let :math:`S_M` be the sum of these bits after
    flipping. With the hockey-stick divergence H,

    .. math::
        \delta(\varepsilon) = \max_M H_{e^\varepsilon}(S_M + \mathrm{Bin}(r, q) \,\|\, S_M + \mathrm{Bin}(r, p)),
        \qquad q = \tfrac{\lambda}{2n}, \; p = 1 - q.

    Parameters
    ----------
    users : int
        Number n of users, 1 to 2**53.
    lam : float
        :math:`\lambda` in [0, users]. A flip with probability :math:`\lambda/(2n)` is the same as a random bit in place of the
        user's with probability :math:`\lambda/n`, so in every column :math:`\lambda` bits are random in the mean. The guarantee is
        for the probability :attr:`flip`, which is lam/(2 n) rounded to a double, and which :meth:`randomize` uses.
    bits : int
        Number r of bits of each user, 1 to 2**20; users * bits is at most 2**53.
    view : {"total", "columns"}
        What the analyst sees.
    {absent}

    Notes
    -----
    Neighbours: one user's number is replaced.

    **Total**: the formula is the largest delta over all datasets. If k of the target's bits are 1, the distributions of the total
    for different k have monotone likelihood ratios. So the best tests are thresholds, and for every M the worst pair is k = 0
    against k = r; random encodings are mixtures over k.

    The worst M is found by branch and bound as in :class:`ShuffledBits`, and the upper and the lower bound of log delta differ by
    at most

    - 1e-9 for up to 1024 bits of all users;
    - 1e-3, or 1e-5 \|log delta\| if that is larger, for up to 2**32 bits;
    - the gap for 2**32 bits plus 2e-4 (1 + \|log delta\|) for more bits.

    **Columns**: the encodings of 0 and 1 differ in all r columns, those of other pairs of numbers in fewer. The upper bound is that
    of the composition of r columns, each with its largest delta over all datasets at every eps. The lower bound is that of the
    composition of r columns in which all other users' bits are 0. The Renyi divergences are r times those of one column,
    ``ShuffledBits(users, flip)``; :meth:`gdp_mu` is at most sqrt(r) times that of one column.

    With one bit the protocol is :class:`ShuffledBits`.

    The users' values are numbers in [0, 1]. Messages are rows of r bits, int8, for either view. The argument `counts` of
    :meth:`estimate` is the number of ones among all bits, an int; with ``view="columns"``, in each column, int64 of shape (bits,).

    `truth` in :meth:`error_tail` is the array of the users' numbers. Without `truth`, the upper bound of the error's tail is
    Chernoff's. The lower bound is then the larger tail of two datasets: all numbers are 0, or all are 1/(2 r), whose encoding has
    the largest variance.

    {chen_long: Algorithms 2 and 3}

    Examples
    --------
    >>> import numpy as np
    >>> from shufflebounds import shuffle
    >>> protocol = shuffle.RealSum(users=10, lam=5, bits=3)
    >>> print(f"{protocol.delta(1.0):.9f}")
    0.037046210
    >>> protocol = shuffle.RealSum.calibrate(users=10**4, bits=8, eps=1.0, delta=1e-6)
    >>> x = np.linspace(0, 1, 10**4)
    >>> error = protocol.estimate(counts=protocol.simulate(x, rng=1)) - x.sum()
    >>> bool(abs(error) < protocol.error_quantile(1e-6, x))
    True
    """

    users: int
    lam: float
    bits: int
    view: Literal["total", "columns"] = field(default="total", kw_only=True)

    @property
    def theorem(self) -> str:  # type: ignore[override]
        """What is proven for the upper bound, or for both bounds."""
        return ("exact for the protocol: the maximum over all datasets" if self._of_total else
                "a composition of the columns, each with its worst dataset")

    @property
    def lower_theorem(self) -> str:  # type: ignore[override]
        """What is proven for the lower bound; "" if `theorem` is about both bounds."""
        return "" if self._of_total else "delta of the columns of one dataset"

    @property
    def _of_total(self) -> bool:
        """Whether delta is that of the total, which is also the only column if there is one bit for each user."""
        return self.view == "total" or self.bits == 1 or self.flip == 0

    @property
    def neighbours(self) -> str:  # type: ignore[override]
        """The relation of neighbours, and what the analyst sees; the guarantee for the total does not hold for the columns."""
        seen = "the total of the shuffled bits" if self.view == "total" else "the total of every column of shuffled bits"
        return f"replace one user's number; the analyst sees {seen}"

    def __post_init__(self) -> None:
        _validate.integer_field(self, "users", 1)
        _validate.real_field(self, "lam", 0, self.users)
        _validate.integer_field(self, "bits", 1, 2**20)
        if self.users * self.bits > _validate.MAX_COUNT:
            raise ValueError(f"users={self.users} times bits={self.bits} must be at most 2**53")
        _validate.choice("view", self.view, ("total", "columns"))
        self._check_absent(self.users)

    @cached_property
    def flip(self) -> float:
        r"""Probability :math:`q = \lambda/(2n)` of flipping a bit."""
        return self.lam / (2 * self.users)

    @cached_property
    def _remaining(self) -> Self:
        if not self._absent():
            return self
        return self._with(users=self._hiding, lam=min(2 * self.flip * self._hiding, self._hiding), colluding=0, missing=0)

    def _with(self, **fields: Any) -> Self:
        """Return the protocol with other fields and the same probability of flipping."""
        other = replace(self, **fields)
        # The new lam/(2 users) may be rounded differently. For a flip probability near 1/2, one ulp may change delta by any factor.
        vars(other)["flip"] = self.flip
        return other

    @property
    def column(self) -> ShuffledBits:
        """The protocol of a single column."""
        return ShuffledBits(self.users, self.flip, colluding=self.colluding, missing=self.missing)

    def describe(self) -> DominatingPairInfo:
        column, total, forms = self.column, self._total, self._closed
        if self.bits == 1:
            return column.describe()
        if not isinstance(forms, ComposedSums):
            return total.described()
        # The grid of eps is coarse: every eps needs a composition.
        info = DominatingPairInfo(forms.log_delta, total.pure, sampling=Sampling(0.5, 0.6))
        return replace(info, releases=forms.releases(), attained=forms.attained()) if 0 < total.pure < math.inf else info

    def closed_forms(self) -> ClosedForms:
        # With one bit for each user, the protocol is a single column.
        if self.bits == 1:
            return Between(self.column, self.column, self._total.pure)
        if self._of_total:
            return self._total
        return ComposedSums(self.column, self.bits, self._total.pure)

    @property
    def _total(self) -> TotalOfBits:
        return TotalOfBits((self.users - 1) * self.bits, self.bits, self.flip)

    def describe_group(self, size: int) -> GroupInfo:
        if self.view == "columns" and self.bits > 1:
            return group_of_columns(self.users - size, size, self.flip, self.bits)
        return GroupInfo.of(KnownPair(TotalOfBits((self.users - size) * self.bits, size * self.bits, self.flip).described()))

    @classmethod
    def calibrate(
        cls, *, users: int, bits: int, eps: float, delta: float, view: Literal["total", "columns"] = "total", releases: int = 1,
        devices: int = 1, colluding: int = 0, missing: int = 0,
    ) -> Self:
        """Return the mechanism with the smallest lam whose upper delta at `eps`, over all datasets, is at most `delta`.

        Parameters
        ----------
        {users}
        bits : int
            Number of bits of each user, 1 to 2**20.
        {target}
        view : {"total", "columns"}
            What the analyst sees.
        {releases}
        {absent}

        Returns
        -------
        RealSum
            Its upper delta at `eps` was evaluated and is at most `delta`. With ``view="columns"`` and several bits, lam exceeds the
            smallest number by up to a relative 1e-6, which is much in delta where eps is just below the pure budget.

        {raises}

        Notes
        -----
        More flipping is post-processing, and for lam = users the messages are independent of the data, so every target can be met.

        Examples
        --------
        >>> from shufflebounds import shuffle
        >>> protocol = shuffle.RealSum.calibrate(users=10**6, bits=10, eps=1.0, delta=1e-6)
        >>> protocol.delta(1.0) <= 1e-6, round(protocol.lam)
        (True, 381)
        """
        if (releases, devices) != (1, 1):
            return one_of_releases(partial(cls.calibrate, users=users, bits=bits, view=view, colluding=colluding, missing=missing),
                                   releases, devices, eps=eps, delta=delta)
        whole = cls(users, 0.0, bits, view=view, colluding=colluding, missing=missing)
        eps, delta = _validate.target(eps, delta)
        # At this lam the local guarantee alone meets the target.
        high = min(1.0, 2 * (1 + 1e-12) / (1 + capped_exp(eps / whole.bits))) * whole.users

        def build(lam: float) -> RealSum:
            return replace(whole, lam=lam)

        low = min(-math.expm1(math.log(delta) / 2) / whole.bits, high / 2)
        if view == "columns" and whole.bits > 1:
            # The total is a function of the columns, so the lam calibrated for the total is a lower bound of the lam for the
            # columns. A rough value is enough, because only a search starts there, so epsilon(delta) is not evaluated.
            total = replace(whole, view="total")
            low = min(rough_parameter(lambda lam: replace(total, lam=lam), low, high, eps, delta, 5e-4) * (1 - 3e-3), high / 2)
            near = 1.2 * low
            high = near if near < high and meets(build(near), eps, delta) else high
            return replace(whole, lam=least_parameter(build, low, high, eps, delta, 1e-6))
        return replace(whole, lam=least_parameter(build, low, high, eps, delta))

    def encode(self, values: ArrayLike, rng: Any = None) -> NDArray[np.int64]:
        r"""Return for each user how many of the r bits are 1 before flipping; the bits that are 1 come first.

        Parameters
        ----------
        values : array_like, shape (users,)
            The users' numbers, in [0, 1].
        {rng}

        Returns
        -------
        ndarray of int64, shape (users,)
            Either :math:`\mu - 1` or :math:`\mu = \lceil x r \rceil`, with the mean x r.

        {raises: If `values` has another shape or leaves [0, 1], or `rng` is no generator.}
        """
        return self._encoded(self._checked_values(values), _validate.generator(rng))

    def _encoded(self, values: FloatArray, source: np.random.Generator) -> NDArray[np.int64]:
        numbers = values * self.bits
        whole = np.floor(numbers)
        return np.asarray(whole.astype(np.int64) + (source.random(values.size) < numbers - whole))

    @property
    def _count_shape(self) -> tuple[int, ...]:
        return (self.bits,) if self.view == "columns" else ()

    @property
    def _message_bytes(self) -> int:
        return self.bits

    def _checked_values(self, values: ArrayLike) -> FloatArray:
        numbers = np.empty(0) if np.shape(values) == (0,) else _validate.real_array("values", values, 0, 1)
        if numbers.ndim != 1:
            raise ValueError(f"values has shape {numbers.shape}: it must be one-dimensional, one number for each user")
        return numbers

    def _messages(self, values: NDArray[Any], source: np.random.Generator) -> NDArray[np.int8]:
        encoded = self._encoded(values, source)
        bits = np.arange(self.bits) < encoded[:, None]
        return np.asarray(bits ^ bernoulli(source, bits.shape, self.flip)).view(np.int8)

    def _checked_messages(self, messages: ArrayLike) -> NDArray[np.int8]:
        return _validate.bits("messages", message_rows(messages, self.bits, "user"))

    def _added(self, messages: NDArray[Any]) -> int | NDArray[np.int64]:
        sums = messages.sum(axis=0, dtype=np.int64)
        return sums if self.view == "columns" else int(sums.sum())

    def _largest_count(self, messages: int) -> int:
        return messages if self.view == "columns" else messages * self.bits

    def _simulated(self, values: NDArray[Any], source: np.random.Generator) -> int | NDArray[np.int64]:
        # `set_bits` has the number of users with at least j bits set, for j = 1, ..., bits.
        set_bits = self.users - np.cumsum(np.bincount(self._encoded(values, source), minlength=self.bits + 1))[:-1]
        seen: NDArray[np.int64] = source.binomial(set_bits, 1 - self.flip) + source.binomial(self.users - set_bits, self.flip)
        return seen if self.view == "columns" else int(seen.sum())

    def estimate(
        self, messages: ArrayLike | None = None, *, counts: ArrayLike | None = None, users: int | None = None, clip: bool = False
    ) -> float:
        r"""Return the unbiased estimate of the sum, :math:`(y - n r q)/(r (1 - 2 q))` with y the number of ones.

        Parameters
        ----------
        messages : array_like of 0 and 1, shape (users, bits), optional
            The flipped bits of all users.
        counts : int, or array_like of int, shape (bits,), optional
            In place of messages: the number of ones that the analyst sees, in total or by columns.
        users : int, optional
            Number of users whose messages arrived, from ``users - missing`` to `users` of the protocol; all by default.
        clip : bool
            Clip the estimate to [0, users], which biases it.

        Returns
        -------
        float

        {raises: If not exactly one of `messages` and `counts` is given, if its values cannot occur, or if lam = users.}
        """
        value = self._estimated(*self._read(messages, counts, users))
        return min(max(value, 0.0), float(self.users)) if clip else value

    def _estimated(self, counts: int | NDArray[np.int64], users: int) -> float:
        self._informative()
        return (float(np.sum(counts)) - users * self.bits * self.flip) / (self.bits * (1 - 2 * self.flip))

    @property
    def variance(self) -> float:
        r"""Variance of :meth:`estimate` without clipping, for the worst dataset: :math:`n q (1-q)/(r (1-2q)^2) + n/(4 r^2)`.

        Here n is `users`, r is `bits` and q is :attr:`flip`. The second term is the largest variance of the encoding; it is 0
        for datasets in which x r is an integer for every number x.
        """
        return self._flips_variance + self.users / (4 * self.bits**2)

    @property
    def _flips_variance(self) -> float:
        """The variance of the estimate for given encodings."""
        self._informative()
        return self.users * self.flip * (1 - self.flip) / (self.bits * (1 - 2 * self.flip) ** 2)

    def messages_per_user(self) -> float:
        """Return the number of messages of each user, which is the number of bits."""
        return float(self.bits)

    @property
    def _reports(self) -> int:
        return self.users

    def _interval(self, seen: Any, users: int, beta: float, of: Of) -> Ends:
        arrived = self._with(users=users, lam=min(2 * self.flip * users, users), colluding=0, missing=0)
        return around(self._estimated(seen, users), arrived.error_quantile(beta), float(users))

    def _checked_truth(self, truth: Any) -> FloatArray | None:
        if truth is None:
            return None
        numbers = _validate.real_array("truth", truth, 0, 1)
        if numbers.shape != (self.users,):
            raise ValueError(f"truth has shape {numbers.shape}: it must be ({self.users},), one number for each user")
        return numbers

    def _mean_square(self, truth: FloatArray | None) -> float:
        if truth is None:
            return self.variance
        part = truth * self.bits % 1
        return self._flips_variance + math.fsum(part * (1 - part)) / self.bits**2

    def _error(self, a: Fraction, truth: FloatArray | None) -> Interval:
        self._informative()
        width = a * self.bits * (1 - 2 * Fraction(self.flip))
        if truth is not None:
            numbers, users = np.unique(truth, return_counts=True)
            return self._known(numbers, users.astype(np.float64), width)
        all_users = np.array([float(self.users)])
        lower = max(self._known(np.array([x]), all_users, width).lower for x in (0.0, 0.5 / self.bits))
        # Chernoff's bound is for independent bits: one bit of every user is 1 with a probability between flip and 1 - flip, and
        # every other bit with probability flip or 1 - flip.
        fixed = self.users * (self.bits - 1)
        upper = log_chernoff(fixed, self.users, self.flip, float(width) * (1 - 1e-15))
        return consistent(IntervalArray(np.array([lower]), np.array([upper])), "log Pr[error > {!r}]", np.array([float(a)])).alone()

    def _known(self, numbers: FloatArray, users: FloatArray, width: Fraction) -> Interval:
        """Return bounds of log Pr[|y - E y| > width], where y is the number of ones that the analyst sees.

        `users[i]` users have the number `numbers[i]`.
        """
        q = self.flip
        scaled = numbers * self.bits
        whole = np.minimum(np.floor(scaled), self.bits - 1)
        part = scaled - whole
        ones = float(whole @ users)
        one = np.concatenate([[1 - q, q], q + part * (1 - 2 * q)])
        zero = np.concatenate([[q, 1 - q], (1 - q) - part * (1 - 2 * q)])
        zero[2:][part == 1] = q
        counts = np.concatenate([[ones, self.users * (self.bits - 1) - ones], users])
        exact = sum((Fraction(x) * int(c) for x, c in zip(numbers, users)), Fraction(0)) if numbers.size <= 4096 else None
        total = exact if exact is not None else Fraction(math.fsum(numbers * users))
        center = self.users * self.bits * Fraction(q) + total * self.bits * (1 - 2 * Fraction(q))
        # `rounding` covers the rounding of x r, and `loss_error` the rounding of a sum of more than 4096 distinct numbers.
        rounding = 0.0 if np.isin(part, (0.0, 1.0)).all() else 4 * ULP * self.bits / max(q, ULP)
        loss_error = Fraction(0) if exact is not None else Fraction(8 * ULP * float(center))
        law = one, zero, counts, center
        low = log_exceeded(*law, width + loss_error, rounding=rounding).lower
        high = log_exceeded(*law, width - loss_error, rounding=rounding).upper
        return Interval(low, high)

    def _informative(self) -> None:
        if self.flip == 0.5:
            raise ValueError(f"lam={self.lam:g} must be < users={self.users} for an estimate: messages do not depend on the data")
