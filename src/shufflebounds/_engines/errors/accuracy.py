"""The distribution of the error of an estimate, for protocols and frequency oracles.

For a given dataset the tails are exact up to rounding, as tails of sums of independent bits. For the worst dataset they are bounded
above and below.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import numpy as np

from shufflebounds._base import validate as _validate
from shufflebounds._base.caches import Kept
from shufflebounds._base.calls import explained
from shufflebounds._base.docs import with_passages
from shufflebounds._base.limits import TABLE_SIZE
from shufflebounds._base.search import bracket
from shufflebounds._base.types import ULP, Bound, FloatArray, Interval, probability
from shufflebounds._base.validate import MAX_COUNT
from shufflebounds._core._binomial import binom_logcdf, binom_logsf
from shufflebounds._core._blocks import PoissonBinomialPMF
from shufflebounds._engines.errors.worst_count import largest_tail

Of = Literal["bin", "any"]
"""The error of one bin that is chosen beforehand, or the largest error of any bin."""


class Histogram(NamedTuple):
    """The different numbers of users in a bin (`totals`), and for each number how many bins have it (`bins`)."""

    totals: tuple[int, ...]
    bins: tuple[int, ...]


COUNTED = 2**33
"""Largest count for which quantiles include the rounding of the estimate, for protocols that do not know the number of users. It
exceeds the world population. Raised: quantiles increase by 1e-16 times this number. Lowered: quantiles are valid for smaller counts
only."""

_OUTSIDE: Kept[tuple[Any, ...], Interval] = Kept(TABLE_SIZE, lambda _: 100)
"""Cache of bounds of log Pr[S >= above or S <= below]; the key has the bits, above and below. The bounds for the worst dataset need
up to 512 entries. An entry and its key take at most 100 doubles."""


@explained
@with_passages
class ErrorLaw(ABC):
    """Base class for the distribution of the error, estimate minus exact value.

    ``_error(a, truth)`` returns bounds of log Pr[|error| > a] for one bin and the given truth, or for the worst dataset if `truth`
    is None. ``_any_error`` returns such bounds for the largest error of any bin. A protocol that estimates one number has one bin.
    """

    @property
    @abstractmethod
    def variance(self) -> float:
        """Variance of the estimate."""

    @abstractmethod
    def _error(self, a: Fraction, truth: Any) -> Interval: ...

    def _many(self) -> int:
        """Return the number of bins that are estimated."""
        return 1

    def _even(self) -> Any:
        """Return the dataset with the users spread evenly over the bins, as an argument `truth` of `_error`."""
        return None

    def _even_quantile(self, beta: float) -> float:
        """Return the upper quantile of the largest error of any bin if the users are spread evenly over the bins."""
        return self._quantile(beta, self._even(), "any", True)

    def _mean_square(self, truth: Any) -> float:
        """Return the mean squared error, averaged over all bins, for a dataset as in `_error`; if `truth` is None, a bound that is
        valid for every dataset.
        """
        return self.variance

    def _check_users(self, users: int | None) -> None:
        """Raise ValueError if `users` is given and is not the number of users of the class."""
        own = getattr(self, "users", None)
        if users is not None and _validate.integer("users", users, 1) != own and own is not None:
            raise ValueError(f"users={users} must be {own}, as in the protocol, or left out")

    def _any_error(self, a: Fraction, truth: Any) -> Interval:
        low, high = self._error(a, truth)
        return Interval(low, min(0.0, high + math.log(self._many()) * (1 + ULP)))

    def _checked_truth(self, truth: Any) -> Any:
        if truth is not None:
            raise ValueError(f"truth={truth!r} must be None: the error of {type(self).__name__} is the same for every dataset")
        return None

    def _scale(self) -> float:
        """Return a positive number of about the size of a typical error; the searches for quantiles start there."""
        return 1.0

    @abstractmethod
    def _rounding(self, a: Fraction, truth: Any) -> float:
        """Return an upper bound of the rounding error of `estimate` at every outcome whose exact error is at most a."""

    def error_tail(
        self, a: float, truth: Any = None, *, users: int | None = None, of: Of = "bin", bound: Bound = "upper"
    ) -> float:
        r"""Return a bound of the probability that the absolute error of the estimate is larger than `a`.

        Parameters
        ----------
        a : float
            Error that is exceeded, finite and >= 0, in the units of the estimate.
        truth : optional
            The dataset, or None, the default, for the worst dataset. For a count: the number of users who have the value. For a
            histogram: the numbers of users in all bins, array_like of shape (bins,), or one number: the number of users in the bin
            (``of="bin"``), or the largest number of users in any bin (``of="any"``). For a sum: the numbers of all users.
        users : int, optional
            Number of users. It may be omitted for protocols, which have it as a parameter.
        of : {"bin", "any"}
            The error of one bin that is chosen beforehand, or the largest error of any bin. Both are equal if one number is
            estimated.
        bound : {"upper", "lower"}
            "upper" is never below the exact probability, "lower" never above.

        Returns
        -------
        float
            The chosen bound of :math:`\Pr[|\text{estimate} - \text{truth}| > a]`. For a given dataset the gap is about a relative
            1e-12.

        {raises: If `a` is negative or not finite, `truth` is no dataset of this mechanism, or `of` or `bound` is unknown.}

        Notes
        -----
        Parameters are doubles, hence rational numbers: the counts at which the error exceeds `a` are found in exact arithmetic, and
        their probability is the sum of an upper and a lower tail of a binomial or Poisson-binomial distribution. An estimate that
        is a count minus a constant, such as m/d of m dummy reports in d bins, has the constant as :meth:`estimate` subtracts it,
        rounded to a double. Where the exact error equals `a`, the estimate in floating point may exceed it by rounding;
        :meth:`error_quantile` includes this rounding.
        For ``of="any"`` the upper bound is the union bound, unless the class states a better one, and the lower bound is that of
        one bin.
        """
        upper = _validate.upper_side(bound)
        a = _validate.real("a", a, 0)
        self._check_users(users)
        _validate.choice("of", of, ("bin", "any"))
        return self._tail(Fraction(a), self._dataset(truth, of), of, upper)

    def _dataset(self, truth: Any, of: str) -> Any:
        """Return the dataset in the form of `_error`, or raise ValueError."""
        with of_truth():
            checked, bins = self._checked_truth(truth), self._many()
        if of == "any" and bins > 1 and isinstance(checked, int) and checked * bins < self._held:  # type: ignore[attr-defined]
            held = self._held  # type: ignore[attr-defined]
            raise ValueError(f"truth={checked} with of='any' is the largest number of users in any bin: it must be at least "
                             f"{-(-held // bins)}, because {held} users are in {bins} bins; or pass the numbers of all bins")
        return checked

    def _tail(self, a: Fraction, truth: Any, of: str, upper: bool) -> float:
        sides = self._error(a, truth) if of == "bin" or self._many() == 1 else self._any_error(a, truth)
        return float(probability(min(0.0, sides[upper]), upper))

    def error_quantile(
        self, beta: float, truth: Any = None, *, users: int | None = None, of: Of = "bin", bound: Bound = "upper"
    ) -> float:
        """Return a bound of the error that is exceeded with probability at most `beta`.

        Parameters
        ----------
        beta : float
            Probability of a larger error, in (0, 1). A value above 1/2 draws a UserWarning: it may be meant as a confidence.
        truth, users : optional
            As in :meth:`error_tail`.
        of : {"bin", "any"}
            As in :meth:`error_tail`.
        bound : {"upper", "lower"}
            "upper": a number that the error of the computed estimate exceeds with probability at most `beta`. "lower": one that
            it exceeds with a larger probability, or 0.

        Returns
        -------
        float
            In the units of the estimate.

        {raises: If `beta` lies outside (0, 1), `truth` is no dataset of this mechanism, or `of` or `bound` is unknown.}

        Notes
        -----
        The upper bound is the smallest a at which the upper bound of :meth:`error_tail`, at a minus the rounding error of
        ``estimate``, is at most `beta`. The lower bound is the largest a at which the lower bound of :meth:`error_tail`, at a
        plus this rounding error, exceeds `beta`. Both are found by bisection, to a relative accuracy of 1e-12. The rounding
        error matters because the error in exact arithmetic equals its quantile with positive probability. If the number of
        users is unknown, the rounding error is that for counts up to 2**33.
        """
        upper = _validate.upper_side(bound)
        beta = _validate.failure(beta)
        self._check_users(users)
        _validate.choice("of", of, ("bin", "any"))
        return self._quantile(beta, self._dataset(truth, of), of, upper)

    def _quantile(self, beta: float, dataset: Any, of: str, upper: bool) -> float:
        """Return the quantile for a dataset in the form of `_error`."""

        def exceeded(a: float) -> bool:
            rounding = Fraction(self._rounding(Fraction(a), dataset))
            reach = Fraction(a) - rounding if upper else Fraction(a) + rounding
            return reach < 0 or self._tail(reach, dataset, of, upper) > beta

        if not exceeded(0.0):
            return 0.0
        low, high = bracket(lambda a: not exceeded(a), 0.0, self._scale(), rtol=1e-12)
        if not upper:
            return low
        short = float(f"{high:.10g}")
        return short if low < short < high and not exceeded(short) else high


    def mean_squared_error(self, truth: Any = None, *, users: int | None = None) -> float:
        r"""Return the mean squared error of the estimate; for a histogram it is averaged over all bins.

        Parameters
        ----------
        truth : optional
            The dataset as in :meth:`error_tail`, where one number of users stands for one bin. None, the default, for every
            dataset.
        users : int, optional
            As in :meth:`error_tail`.

        Returns
        -------
        float
            :math:`\frac1d \sum_{j=1}^d \mathbb{E}(\text{estimate}_j - \text{truth}_j)^2` over the d bins, in squared units of the
            estimate, with a relative error below 1e-9. Its root is the root mean squared error. Unless the class states otherwise,
            the result is the same for every dataset. If it is not, the result for None is that of the worst dataset.

        {raises: If `truth` is no dataset of this mechanism, or `users` is not the number of users.}
        """
        self._check_users(users)
        return self._mean_square(self._checked_truth(truth))


@contextmanager
def of_truth() -> Iterator[None]:
    """Extend the message of a ValueError about `truth`: confidence intervals are returned by `interval`."""
    try:
        yield
    except ValueError as problem:
        raise ValueError(f"{problem}. The truth is a dataset, not an estimate: interval(counts=...) has confidence intervals for "
                         "the counts of messages") from None


def shift_rounding(shift: float, largest: int) -> float:
    """Return an upper bound of the rounding error of the difference count - shift, for counts and a shift up to `largest`."""
    return 0.0 if Fraction(shift).denominator * largest <= MAX_COUNT else ULP / 2 * largest


class CountErrorLaw(ErrorLaw):
    """The distribution of the error of a count; a dataset is given by the number of users who have each of the values.

    ``_one_error(a, held)`` returns bounds of log Pr[|error| > a] for a value that `held` users have; if `held` is None, for the
    worst number of users. ``_one_mean_square(held)`` returns the mean squared error for such a value; if `held` is None, a bound of
    the mean of this error over all values.
    """

    users: int

    @abstractmethod
    def _one_error(self, a: Fraction, held: int | None) -> Interval: ...

    def _one_mean_square(self, held: int | None) -> float:
        return self.variance

    @property
    def _held(self) -> int:
        """The sum over all values of the number of users who have the value; it is `users` if each user has one value."""
        return self.users

    def _mean_square(self, truth: int | Histogram | None) -> float:
        if not isinstance(truth, Histogram):
            return self._one_mean_square(truth)
        return math.fsum(self._one_mean_square(total) * bins for total, bins in zip(*truth)) / sum(truth.bins)

    def _checked_truth(self, truth: Any) -> int | Histogram | None:
        if truth is None:
            return None
        if np.ndim(truth) == 0 or self._many() == 1:
            return _validate.integer("truth", truth, 0, self.users)
        counts = _validate.counts("truth", truth, self.users, self._many())
        if counts.sum() != self._held:
            wanted = f"users={self.users}" if self._held == self.users else f"{self._held // self.users} times users={self.users}"
            raise ValueError(f"truth sums to {_validate.format_value(float(counts.sum()))}: it must sum to {wanted}")
        totals, bins = np.unique(counts.astype(np.int64), return_counts=True)
        return Histogram(tuple(totals.tolist()), tuple(bins.tolist()))

    def _even(self) -> Histogram:
        each, more = divmod(self._held, self._many())
        parts = [(each, self._many() - more), (each + 1, more)]
        return Histogram(*zip(*(part for part in parts if part[1])))

    def _error(self, a: Fraction, truth: int | Histogram | None) -> Interval:
        if not isinstance(truth, Histogram):
            return self._one_error(a, truth)
        sides = [self._one_error(a, total) for total in truth.totals]
        return Interval(max(low for low, _ in sides), max(high for _, high in sides))

    def _any_error(self, a: Fraction, truth: int | Histogram | None) -> Interval:
        if not isinstance(truth, Histogram):
            return self._largest_error(a, truth)
        sides = [self._one_error(a, total) for total in truth.totals]
        # Union bound
        high = float(np.logaddexp.reduce([side.upper + math.log(bins) for side, bins in zip(sides, truth.bins)]))
        return Interval(max(low for low, _ in sides), min(0.0, high * (1 - 8 * ULP)))

    def _largest_error(self, a: Fraction, largest: int | None) -> Interval:
        """Return bounds of log Pr[|error| > a for any bin] over all histograms, or those whose largest bin has `largest` users."""
        lower, high = self._one_error(a, None)
        lower = lower if largest is None else self._one_error(a, largest).lower
        return Interval(lower, min(0.0, high + math.log(self._many()) * (1 + ULP)))


def log_exceeded(
    one: FloatArray, zero: FloatArray, counts: FloatArray, center: Fraction, width: Fraction, *, rounding: float = 0.0
) -> Interval:
    """Return bounds of log Pr[|S - center| > width], where S is a sum of independent bits in groups and `center` its exact mean.

    The bits have probabilities `one` of 1 and `zero` = 1 - one of 0. The smaller of `one` and `zero` has a relative error of at
    most `rounding`.
    """
    if width < 0:
        return Interval(0.0, 0.0)
    # |S - center| > width means S >= `above` or S <= `below`, with `above` = floor(center + width) + 1 and `below` = ceil(center -
    # width) - 1, computed in integers.
    (mean, parts), (reach, pieces) = center.as_integer_ratio(), width.as_integer_ratio()
    above = (mean * pieces + reach * parts) // (parts * pieces) + 1
    below = -((reach * parts - mean * pieces) // (parts * pieces)) - 1
    if counts.size > 3:
        return _log_outside(one, zero, counts, center, above, below, rounding)
    # The tails of up to three groups of bits, which protocols that count need, are cached, because a search for a quantile
    # repeats most of them.
    key = (one.tobytes(), zero.tobytes(), counts.tobytes(), center.as_integer_ratio(), above, below, rounding)
    return _OUTSIDE.of(key, lambda: _log_outside(one, zero, counts, center, above, below, rounding))


def _log_outside(
    one: FloatArray, zero: FloatArray, counts: FloatArray, center: Fraction, above: int, below: int, rounding: float
) -> Interval:
    """Return bounds of log Pr[S >= above or S <= below], with S and the other arguments as in `log_exceeded`."""
    sides = [log_tail(one, zero, counts, center, k, upper, rounding) for k, upper in ((above, True), (below, False))]
    return Interval(*(min(0.0, float(np.logaddexp(*logs))) for logs in zip(*sides)))


def log_tail(
    one: FloatArray, zero: FloatArray, counts: FloatArray, center: Fraction | float, k: int, upper: bool, rounding: float = 0.0
) -> Interval:
    """Return bounds of log Pr[S >= k] if `upper`, otherwise of log Pr[S <= k], with S and the other arguments as in
    `log_exceeded`.
    """
    value, error = _tail(one, zero, counts, k, upper)
    if rounding and value > -math.inf:
        # A relative error of at most `rounding` of the bits' probabilities changes their log-odds by at most e = 2 `rounding`. This
        # changes the log of the tail by at most e times the distance of E[S | S in the tail] from the mean E S.
        spread = math.sqrt(float((counts * one) @ zero))
        error += 2 * rounding * (abs(float(k - center)) + 10 * spread + 10)
    return Interval(value - error, value + error)


def _tail(one: FloatArray, zero: FloatArray, counts: FloatArray, k: int, upper: bool) -> tuple[float, float]:
    """Return log Pr[S >= k] if `upper`, otherwise log Pr[S <= k], and a bound of the relative error of the probability.

    S is the sum of independent bits, given in groups as in `log_exceeded`.
    """
    certain = int(counts[zero == 0].sum())
    used = (counts > 0) & (one > 0) & (zero > 0)
    one, zero, counts = one[used], zero[used], counts[used]
    k -= certain
    trials = int(counts.sum())
    if (k <= 0) if upper else (k >= trials):
        return 0.0, 0.0
    if (k > trials) if upper else (k < 0):
        return -math.inf, 0.0
    if counts.size == 1:
        if one[0] <= zero[0]:
            value = float(binom_logsf(k - 1, trials, one[0]) if upper else binom_logcdf(k, trials, one[0]))
        else:
            value = float(binom_logcdf(trials - k, trials, zero[0]) if upper else binom_logsf(trials - k - 1, trials, zero[0]))
        return value, 1e-13 + 8 * ULP * abs(value)
    law = PoissonBinomialPMF(np.ascontiguousarray(one), np.ascontiguousarray(counts), np.ascontiguousarray(zero))
    if k == (trials if upper else 0):
        value = law.edge(upper)
        return value, 1e-14 + 8 * ULP * abs(value)
    # The error that the kernel returns is that of the sum; the logarithm and its exponential have rounding errors of their own.
    value, error = law.tail(float(k), upper)
    return value, error + 8 * ULP * (1 + abs(value))


def bits_exceeded(
    users: int, flip: float, width: Fraction, ones: int | None,
    extra: tuple[float, float, int, Fraction] = (0.0, 1.0, 0, Fraction(0)), *, rounding: float = 0.0, most: int | None = None,
) -> Interval:
    """Return bounds of log Pr[|S - E S| > width], where S is the sum of the users' flipped bits and of `extra` bits.

    `ones` of the users' bits are 1 before flipping; None means the worst number, among the numbers up to `most` if it is given.
    The bits `extra` do not depend on the dataset; they are given by their probabilities of 1 and of 0, their number, and the
    exact mean of each.
    """
    q, shift = Fraction(flip), extra[2] * extra[3]
    probs = np.array([1 - flip, flip, extra[0]]), np.array([flip, 1 - flip, extra[1]])

    def exceeded(holders: int, others: int, reach: Fraction) -> Interval:
        center = Fraction(holders * (q.denominator - q.numerator) + others * q.numerator, q.denominator) + shift
        counts = np.array([holders, others, extra[2]], dtype=np.float64)
        return log_exceeded(*probs, counts, center, reach, rounding=rounding)

    if ones is not None:
        return exceeded(ones, users - ones, width)
    # Without the bits `extra`, exchanging 0 and 1 in the dataset changes the sign of the error. So datasets with at most users // 2
    # ones suffice.
    last = users if extra[2] else users // 2
    lower, upper = largest_tail(users, exceeded, flip * (1 - flip), width, last if most is None else min(last, most))
    return Interval(lower, upper if extra[2] else min(upper, log_chernoff(users, 0, flip, float(width) * (1 - 1e-15))))


def log_chernoff(fixed: int, free: int, flip: float, width: float) -> float:
    """Return Chernoff's upper bound of log Pr[|S - E S| > width].

    S is a sum of `fixed` bits that are 1 with probability flip or 1 - flip, and of `free` bits that are 1 with any probabilities
    between flip and 1 - flip.
    """
    if flip == 0 and free == 0:
        return -math.inf
    if width <= 0:
        return 0.0
    # Chernoff's bound is valid for every tilt; the best tilt is close to width / variance.
    variance = fixed * flip * (1 - flip) + free / 4
    tilt = np.minimum(np.geomspace(0.2, 50, 600) * min(width / variance if variance > 0 else math.inf, 1e300), 600.0)
    # `bias` is the probability p between flip and 1 - flip that maximizes cumulant(p), which is log E e^(tilt (bit - p)).
    bias = np.clip(np.where(tilt < 1e-3, 0.5 - tilt / 12, 1 / tilt - 1 / np.expm1(tilt)), flip, 1 - flip)

    def cumulant(prob: FloatArray | float) -> FloatArray:
        return np.log1p(prob * np.expm1(tilt)) - prob * tilt

    rounding = 8 * ULP * tilt * (fixed * flip + free + width)
    # For flip <= 1/2, cumulant(flip) >= cumulant(1 - flip). So cumulant(flip) is an upper bound for every fixed bit.
    exponent = fixed * cumulant(flip) + free * cumulant(bias) - tilt * width + rounding
    return min(0.0, float(exponent.min()) * (1 - 1e-9) + math.log(2))
