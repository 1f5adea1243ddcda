"""Base classes of the mechanisms: local randomizers and additive noise, with a few numerical helpers."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shufflebounds._base import search as _search
from shufflebounds._base import validate as _validate
from shufflebounds._base.docs import with_passages
from shufflebounds._base.limits import FIRST_TAIL, LARGEST_EXPONENT, NEGLIGIBLE
from shufflebounds._base.types import FloatArray, plain
from shufflebounds._engines.datasets.cases import DatasetLaws
from shufflebounds._engines.excess.excess_law import PairLaws
from shufflebounds._engines.inputs.listed_inputs import ListedInputs, named, several_values
from shufflebounds.profile import PrivacyProfile
from shufflebounds.profile.chain import GroupInfo

if TYPE_CHECKING:
    from shufflebounds.sampling.poisson import Subsampled
    from shufflebounds.shuffle.shuffled import Shuffled

__all__ = [
    "AdditiveNoise", "LocalRandomizer", "RealNoise", "exact_product", "exp_remainder", "next_float", "ratio", "shift_by_error",
]


def ratio(name: str, over: str, numerator: float, denominator: float, high: float = 1e6) -> tuple[float, float]:
    """Return numerator/denominator as a double-double, or raise ValueError if it lies outside [1e-12, high]."""
    value = numerator / denominator
    if not 1e-12 <= value <= high:
        raise ValueError(f"{over}={denominator:g} with {name}={numerator:g}: {name}/{over} must be in [1e-12, {high:g}]")
    top, top_power = math.frexp(numerator)
    low, low_power = math.frexp(denominator)
    head = top / low
    # Both numbers are scaled to integers of 53 bits, so that the remainder of the division is exact.
    first, second = int(math.ldexp(top, 53)), int(math.ldexp(low, 53))
    part, power = head.as_integer_ratio()
    rest = (first * power - part * second) / (second * power)
    return math.ldexp(head, top_power - low_power), math.ldexp(rest, top_power - low_power)


def exact_product(a: Any, b: Any) -> tuple[Any, Any]:
    """Return a * b as a double-double (Dekker's algorithm), which does not overflow for a, b below 1e150."""
    p = a * b
    split = 134217729.0
    a_high = a * split - (a * split - a)
    b_high = b * split - (b * split - b)
    a_low, b_low = a - a_high, b - b_high
    return p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low


def _multiplied(value: float, times: int, upper: bool) -> float:
    """Return a product of a number and a whole number, rounded up or down; a product of whole numbers is exact."""
    if isinstance(value, int):
        return value * times
    rounded, exact = value * times, Fraction(value) * times
    inexact = rounded < exact if upper else rounded > exact
    return math.nextafter(rounded, math.inf if upper else 0.0) if inexact else rounded


def shift_by_error(value: FloatArray, error: float, upper: bool) -> FloatArray:
    """Return nonnegative values increased (upper) or decreased by their relative error; the results are bounds."""
    return np.asarray(value * (1 + error if upper else 1 - error))


def next_float(value: float, upper: bool) -> float:
    """Return the next double below a parameter if `upper`, and the next double above it otherwise.

    At this double, a trade-off function that decreases in the parameter is an upper or a lower bound.
    """
    return math.nextafter(value, 0.0 if upper else math.inf)


def exp_remainder(x: FloatArray) -> FloatArray:
    """Return (e^x - 1 - x)/x^2 with a small relative error at every x."""
    small = np.abs(x) < 0.5
    y = np.where(small, x, 0.0)
    series = np.full(np.shape(y), 0.5)
    term = series.copy()
    for n in range(3, 18):
        term = term * y / n
        series = series + term
    z = np.where(small | ~np.isfinite(x), 1.0, x)
    direct = np.where(x == -np.inf, 0.0, (np.expm1(z) - z) / (z * z))
    return np.asarray(np.where(small, series, direct))


@with_passages
class LocalRandomizer(PrivacyProfile):
    """A mechanism that each user can run on their own value before a shuffle."""

    _covers_absence: ClassVar[bool] = True

    def excess_laws(self, cells: int = 800, log_cut: float = FIRST_TAIL) -> tuple[PairLaws, ...]:
        """Return the distributions of X for :meth:`shuffled`, one entry for each ordered pair of inputs, up to symmetry.

        X is the privacy-amplification random variable (R_0 - e^eps R_1)/m of :class:`~shufflebounds.shuffle.Shuffled`: R_0 and R_1
        are the output distributions of the two inputs, and m is the privacy blanket or the output distribution of another input.

        Parameters
        ----------
        cells : int
            Approximate number of cells into which a density is discretized, 1 to 2**20; finite randomizers ignore it.
        log_cut : float
            Logarithm of the mass of the outputs that the computation may truncate if losses are unbounded, in [-700, 0].

        Returns
        -------
        tuple of PairLaws
            One entry for every ordered pair, up to symmetry; a single one if a worst pair is known.

        Raises
        ------
        TypeError
            If the distributions are not known for this mechanism.
        ValueError
            If an argument lies outside its range, or the distribution overflows or has too many outcomes.
        """
        raise TypeError(f"{type(self).__name__} has no known distributions of X: its shuffled messages have no bounds")

    def dataset_laws(self) -> DatasetLaws | None:
        """Return the distributions for the bound of docs/theorems/worst-dataset, or None if there is no such bound."""
        return None

    def shuffled(self, users: int, participation: float = 1.0, inputs: tuple[float, ...] | None = None) -> Shuffled:
        """Return the guarantee of the shuffled messages of users who each run this mechanism.

        Parameters
        ----------
        users : int
            Number of users, 1 to 2**53, including the target.
        participation : float
            Probability in [1e-12, 1] with which each user sends a message.
        inputs : sequence of float, optional
            For Laplace and Gaussian noise: the values that users may have, as for :class:`~shufflebounds.shuffle.Shuffled`.

        Returns
        -------
        Shuffled
            Its upper bound is valid for every dataset; its lower bound is that of the worst dataset found. Without `inputs`, the
            values of additive noise are in an interval of length `sensitivity`, whose two ends are the target's inputs. A finite
            local budget must be at most 700, which the methods of the result check.

        {raises}
        """
        # The import is here because sampled mechanisms need none of the modules of shuffled ones.
        from shufflebounds.shuffle.shuffled import Shuffled

        return Shuffled(self, users, participation, inputs)

    def subsampled(self, rate: float) -> Subsampled:
        """Return the profile of this mechanism on a Poisson sample.

        Parameters
        ----------
        rate : float
            Probability of each record to be in the sample, independently of the others, in [1e-100, 1].

        Returns
        -------
        Subsampled
            For add/remove adjacency; delta is exact in both directions.

        {raises: If `rate` lies outside its range.}
        """
        from shufflebounds.sampling.poisson import Subsampled

        return Subsampled(self, rate)

    def _local_budget(self) -> float:
        """Return the pure local budget, or raise an error if it is infinite or above 700."""
        local_eps = self._pure_epsilon()
        if local_eps == math.inf:
            raise TypeError(
                f"{self!r} has no pure local budget, and the clone bounds are proven for pure local randomizers only"
            )
        if local_eps > LARGEST_EXPONENT:
            raise ValueError(f"{self!r} has the local budget {local_eps:g}: clone bounds need at most {LARGEST_EXPONENT:g}")
        return local_eps


@with_passages
class AdditiveNoise(LocalRandomizer):
    """A value plus symmetric noise with mean zero."""

    whole: ClassVar[bool] = False
    relation: ClassVar[str] = "either"

    _scaled: ClassVar[tuple[str, ...]] = ("sensitivity",)
    """Parameters that are multiplied by the number of people of a group; the noise stays the same."""

    def describe_group(self, size: int) -> GroupInfo:
        # The values differ by `size` times the sensitivity; if this product is not a double, it is rounded down and up.
        given = {name: getattr(self, name) for name in self._scaled}
        try:
            low, high = ({name: _multiplied(value, size, upper) for name, value in given.items()} for upper in (False, True))
            with _validate.quiet():
                below: Any = replace(self, **low)  # type: ignore[type-var]
                return GroupInfo(below, below if low == high else replace(self, **high))  # type: ignore[type-var]
        except (ValueError, OverflowError):
            # The class does not accept a sensitivity of this size, or the sensitivity is not a double.
            return GroupInfo()

    @abstractmethod
    def _noise(self, rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[Any]:
        """Return an array of independent noise."""

    @abstractmethod
    def _log_tail(self, t: float) -> float:
        """Return log Pr[|noise| > t] for one t >= 0; for whole-number noise, t is a whole number."""

    @abstractmethod
    def _near_quantile(self, log_prob: float) -> float:
        """Return t such that _log_tail(t) is approximately log_prob; the search for the quantile starts at this t."""

    @property
    @abstractmethod
    def variance(self) -> float:
        """Variance of the noise, which is that of :meth:`estimate`."""

    def randomize(self, values: ArrayLike, rng: Any = None) -> NDArray[Any]:
        """Return the values with independent noise added to each.

        Parameters
        ----------
        values : array_like
            Values to release, any shape; whole numbers if the noise is.
        {rng}

        Returns
        -------
        ndarray
            Of the shape of `values`.

        {raises: If `values` is empty, not finite or, for whole-number noise, not whole, or `rng` is no generator.}
        """
        array: NDArray[Any] = (_validate.whole_array if self.whole else _validate.real_array)("values", values)
        return np.asarray(array + self._noise(_validate.generator(rng), array.shape))

    def estimate(self, messages: ArrayLike) -> float | FloatArray:
        """Return the released values, which are unbiased estimates of the values, because the noise has mean zero.

        Parameters
        ----------
        messages : array_like
            Released values, any shape.

        Returns
        -------
        float or ndarray
            Of the shape of `messages`.

        {raises: If `messages` is empty or not finite.}
        """
        return plain(_validate.real_array("messages", messages))

    def error_tail(self, t: float, k: int = 1) -> float:
        r"""Return the probability that the largest of k errors exceeds t: :math:`1 - (1 - \Pr[|Y| > t])^k` for the noise Y.

        Parameters
        ----------
        t : float
            Size of the error, >= 0.
        k : int
            Number of values released with independent noise.

        Returns
        -------
        float
            The probability p; if p is above 1e-300 its relative error is below 1e-14 (1 - log p).

        {raises}
        """
        t = _validate.real("t", t, 0)
        k = _validate.integer("k", k, 1)
        return self._error_tail(math.floor(t) if self.whole else t, k)

    def _error_tail(self, t: float, k: int) -> float:
        log_each = min(0.0, self._log_tail(t))
        if log_each < -NEGLIGIBLE:
            # 1 - (1 - p)^k differs from 1 - e^(-k p) by a relative p/2 at most. The product k p is formed in logarithms, because p
            # may underflow.
            return -math.expm1(-math.exp(log_each + math.log(k)))
        each = math.exp(log_each)
        return 1.0 if each == 1 else abs(math.expm1(k * math.log1p(-each)))

    def error_quantile(self, beta: float, k: int = 1) -> float:
        r"""Return the smallest t such that, with probability at least 1 - beta, all k errors are at most t.

        For the noise Y this condition is

        .. math:: \Pr[|Y| > t] \le 1 - (1 - \beta)^{1/k}.

        Parameters
        ----------
        beta : float
            Probability that some error is larger, in (0, 1).
        k : int
            Number of values released with independent noise.

        Returns
        -------
        float
            The smallest double, up to a few ulp, at which :meth:`error_tail` is at most `beta`. The exact probability of a larger
            error is at most beta (1 + 1e-14 (1 - log beta)). The result is a whole number if the noise is.

        {raises}
        """
        beta = _validate.failure(beta)
        k = _validate.integer("k", k, 1)
        log_all = math.log1p(-beta) / k
        large = log_all < -math.exp(-NEGLIGIBLE)
        log_each = math.log(-math.expm1(log_all)) if large else math.log(-math.log1p(-beta)) - math.log(k)
        near = max(0.0, self._near_quantile(log_each))
        if self.whole:
            t = max(0, round(near) - 1)
            while t > 0 and self._error_tail(t - 1, k) <= beta:
                t -= 1
            while self._error_tail(t, k) > beta:
                t += 1
            return float(t)
        # The inverse has rounding errors, so t is increased until the evaluated tail is at most beta.
        return _search.expand_bracket(near, lambda reach: self._error_tail(reach, k) <= beta, math.ulp(near), math.inf)


class RealNoise(AdditiveNoise):
    """A value in an interval plus noise with a density."""

    sensitivity: float

    @abstractmethod
    def dataset_laws(self, inputs: tuple[float, ...] = ()) -> DatasetLaws | None:
        """Return the `DatasetLaws` of the interval, or of the given inputs, or None."""

    @abstractmethod
    def _cells(self, places: FloatArray) -> tuple[FloatArray, float]:
        """Return the probabilities of cells of the output (`ListedInputs.below`) for inputs at increasing distances from the first.

        The second value bounds the relative error of the likelihood ratios of two inputs. The last input is `sensitivity` from the
        first.
        """

    def with_inputs(self, inputs: tuple[float, ...]) -> ListedInputs:
        """Return the distributions of X (:meth:`excess_laws`) for users whose value is one of the given values.

        :class:`~shufflebounds.shuffle.Shuffled` calls this method for its argument `inputs`.

        Parameters
        ----------
        inputs : tuple of float
            Increasing values in an interval of length `sensitivity`.

        Returns
        -------
        ListedInputs
            The distributions for the upper and the lower bound.

        Raises
        ------
        ValueError
            If there are fewer than two different values, or they are further apart than `sensitivity`.
        """
        inputs = several_values(inputs)
        apart = replace(self, sensitivity=inputs[-1] - inputs[0])  # type: ignore[type-var]
        below, error = apart._cells(np.array(inputs) - inputs[0])
        return ListedInputs(named(inputs, self.sensitivity), apart, below, inputs, error)
