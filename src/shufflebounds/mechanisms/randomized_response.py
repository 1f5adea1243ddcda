"""Randomized response: one bit that is sent unchanged with probability e^eps/(1 + e^eps)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shufflebounds._base import validate as _validate
from shufflebounds._base.docs import with_passages
from shufflebounds._base.limits import COMPUTED_ERROR, LARGEST_EXPONENT, SAFE_EXPONENT
from shufflebounds._base.types import ULP, FloatArray, Interval, IntervalArray, plain
from shufflebounds._engines.bits.given_bits import flip_probability
from shufflebounds._engines.errors.accuracy import Of
from shufflebounds._engines.errors.counted import SumOfBits
from shufflebounds._engines.errors.intervals import CountIntervals, Ends, around
from shufflebounds._losses.atoms import InputRows
from shufflebounds._losses.closed_forms import ClosedForms
from shufflebounds._losses.release import DominatingPairInfo
from shufflebounds.mechanisms._base import shift_by_error
from shufflebounds.mechanisms.oracles._two_level import Shares, TwoLevel
from shufflebounds.mechanisms.oracles.kary_response import KaryResponse

__all__ = ["RandomizedResponse"]


class _Bit(ClosedForms):
    """A bit and its opposite, each flipped with probability 1/(1 + e^budget)."""

    __slots__ = ("budget",)

    def __init__(self, budget: float) -> None:
        self.budget = budget

    def log_delta(self, eps: FloatArray) -> IntervalArray:
        below = eps < self.budget
        value = np.log(-np.expm1(np.where(below, eps, 0.0) - self.budget)) - math.log1p(math.exp(-self.budget))
        error = 4 * ULP * (1 + np.abs(value))
        return IntervalArray(np.where(below, value - error, -np.inf), np.where(below, value + error, -np.inf))

    def renyi(self, orders: FloatArray, upper: bool) -> FloatArray:
        step = orders - 1
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            # This form has no cancellation for orders close to 1 or small eps.
            rate = -np.expm1(-orders * self.budget) / (1 + math.exp(-self.budget))
            grown = step * self.budget
            near = np.log1p(np.expm1(np.minimum(grown, SAFE_EXPONENT)) * rate) / step
            far = self.budget + np.log(rate) / step
            value = np.where(step == 0, self.budget * rate, np.where(grown < SAFE_EXPONENT, near, far))
        return shift_by_error(value, 32 * ULP, upper)


@with_passages
@dataclass(frozen=True)
class RandomizedResponse(CountIntervals, SumOfBits, TwoLevel):
    r"""One randomized bit of a value in [0, upper]; the least private of all pure eps-DP mechanisms.

    .. math::
        \Pr[Y = 1 \mid x] = \frac{1}{e^{\varepsilon}+1} + \frac{x}{m} \tanh\frac{\varepsilon}{2}, \qquad
        \delta(\varepsilon') = \frac{(e^{\varepsilon} - e^{\varepsilon'})_+}{1 + e^{\varepsilon}}

    Parameters
    ----------
    eps : float
        Budget in nats, in (0, 700].
    upper : float
        The largest value m > 0; 1 for a bit.

    Notes
    -----
    Neighbours: the value is replaced by any other in [0, upper]. For values 0 and 1 this is Warner's randomized response (for eps =
    ln 3 the answer is true with probability 3/4); with values in between it is the one-bit mean of Ding et al.

    The pair of output distributions at 0 and `upper` dominates every pair of neighbouring output distributions of **any** eps-DP
    mechanism (Kairouz, Oh and Viswanath 2015). Its delta, Renyi divergences, trade-off function and composition are therefore the
    best bounds that hold for all eps-DP mechanisms: use this class if only the budget is known.

    Renyi divergences are exact: :math:`\frac{1}{a-1} \ln \frac{\cosh((a - 1/2)\,\varepsilon)}{\cosh(\varepsilon/2)}`.

    **Estimate.** Values and messages have any shape. A message is a bit, int64, drawn by comparing its probability with a uniform
    multiple of 2**-53. For eps above 37 a flip is less likely than 2**-53, so the drawn bits do not have this probability. With the
    number Y of ones, the estimate of the mean of the n users' values is

    .. math:: \frac{m}{n} \, \frac{Y (e^\varepsilon + 1) - n}{e^\varepsilon - 1}.

    :meth:`shuffled` has the bounds of :class:`~shufflebounds.shuffle.ShuffledBits` with flip = 1/(e^eps + 1), over all datasets:
    the bit of a value in between is a mixture of the bits of 0 and of `upper`.

    References
    ----------
    Warner, S. L. Randomized response: a survey technique for eliminating evasive answer bias, 1965.

    Ding, B., Kulkarni, J., Yekhanin, S. Collecting telemetry data privately, 2017, section 3.

    Kairouz, P., Oh, S., Viswanath, P. The composition theorem for differential privacy, 2015, Theorem 3.3.

    Examples
    --------
    >>> from shufflebounds.mechanisms import RandomizedResponse
    >>> warner = RandomizedResponse(eps=1.0986122886681098)
    >>> round(warner.prob(1.0), 12), round(warner.prob(0.0), 12)
    (0.75, 0.25)
    >>> round(warner.delta(0.0), 12), round(warner.rdp(2.0), 12)
    (0.5, 0.847297860387)
    >>> RandomizedResponse(4.0).shuffled(10**6)
    Shuffled(randomizer=RandomizedResponse(eps=4.0, upper=1.0), users=1000000, participation=1.0)
    """

    eps: float
    upper: float = 1.0

    theorem: ClassVar[str] = "exact for randomized response; upper bound for every eps-DP mechanism (Kairouz, Oh, Viswanath 2015)"
    lower_theorem: ClassVar[str] = "exact for randomized response; another eps-DP mechanism may have a smaller delta"
    neighbours: ClassVar[str] = "replace the user's value; the analyst sees the one bit"

    def __post_init__(self) -> None:
        _validate.real_field(self, "eps", 0, LARGEST_EXPONENT, open_low=True)
        _validate.real_field(self, "upper", 0, open_low=True)

    def describe(self) -> DominatingPairInfo:
        return replace(super().describe(), hockey_stick=self.closed_forms().log_delta)

    def closed_forms(self) -> _Bit:
        return _Bit(self.eps)

    @property
    def local_eps(self) -> float:  # type: ignore[override]
        """Budget in nats, `eps`."""
        return self.eps

    @property
    def _flip(self) -> Interval:
        """Bounds of the flip probability. A value in [0, upper] is rounded at random to 0 or `upper` before its bit is flipped."""
        return flip_probability(self.eps)

    def _shares(self) -> Shares:
        return Shares(0.5, 0.0, 0.0)

    @property
    def _twin(self) -> KaryResponse:
        return KaryResponse(2, self.eps)

    @property
    def _input_rows(self) -> InputRows:
        return self._rows_of_labels(2)

    @property
    def message_bits(self) -> int:
        """Length of one message in bits."""
        return 1

    def prob(self, values: ArrayLike) -> float | FloatArray:
        """Return the probability that the bit is 1, for each value.

        Parameters
        ----------
        values : float or array_like
            In [0, upper], any shape.

        Returns
        -------
        float or ndarray
            Of the shape of `values`.

        {raises: If `values` is empty or leaves [0, upper].}
        """
        return plain(self._prob(self._in_range(values)))

    def _prob(self, values: FloatArray) -> FloatArray:
        share = values / self.upper
        # A sum of positive terms has no cancellation at either end of the range.
        return np.asarray((share + (1 - share) * math.exp(-self.eps)) / (1 + math.exp(-self.eps)))

    def _checked_values(self, values: ArrayLike) -> NDArray[Any]:
        return np.empty(0) if np.shape(values) == (0,) else self._in_range(values)

    def _in_range(self, values: ArrayLike) -> FloatArray:
        """Return the validated values; False and True are 0 and `upper`."""
        if np.asarray(values).dtype.kind == "b":
            values = np.multiply(values, self.upper)
        return _validate.real_array("values", values, 0, self.upper)

    def _messages(self, values: NDArray[Any], source: np.random.Generator) -> NDArray[np.int64]:
        return (source.random(values.shape) < self._prob(values)).astype(np.int64)

    def _one_each(self, name: str, array: NDArray[np.int8]) -> NDArray[np.int8]:
        # Values and bits may have any shape.
        return array

    def _number(self, messages: NDArray[Any]) -> int:
        return messages.size

    def _estimated(self, counts: int, users: int) -> float:
        return float(self.upper * (0.5 + (counts / users - 0.5) / math.tanh(self.eps / 2)))

    @property
    def variance(self) -> float:
        r"""Variance :math:`m^2/(4 \sinh^2(\varepsilon/2))` of one user's estimate, for a value 0 or m = `upper`.

        The variance of the estimated mean of n such users is this variance divided by n.
        """
        # The variance is the square of m/(2 sinh(eps/2)), in a form that overflows only if the variance does.
        root = self.upper * math.exp(-self.eps / 2) / -math.expm1(-self.eps)
        return root * root

    def estimator_variance(self, values: ArrayLike) -> float:
        r"""Variance of :meth:`estimate` given the values of all users.

        .. math:: \frac{1}{n^2} \sum_i \Bigl(\frac{m^2}{4 \sinh^2(\varepsilon/2)} + x_i (m - x_i)\Bigr), \qquad m = \mathrm{upper}

        Parameters
        ----------
        values : array_like, shape (n,)
            The users' values x_i, in [0, upper].

        Returns
        -------
        float
            At most :math:`m^2 \coth^2(\varepsilon/2)/(4n)`.

        {raises: If `values` is empty, not 1-D, or leaves [0, upper].}
        """
        array = _validate.real_array("values", values, 0, self.upper)
        if array.ndim != 1:
            raise ValueError(f"values must be 1-D, one entry a user, got shape {array.shape}")
        return float((self.variance + array * (self.upper - array)).sum()) / array.size**2

    def _interval(self, seen: int, users: int, beta: float, of: Of) -> Ends:
        # The margin covers the rounding of the estimate.
        reach = self.error_bound(users, beta) * (1 + COMPUTED_ERROR)
        return around(self._estimated(seen, users), reach, self.upper)

    def error_bound(self, n: int, beta: float) -> float:
        r"""Return an upper bound of the error of :meth:`estimate` that holds with probability 1 - beta (Hoeffding).

        .. math:: m \coth(\varepsilon/2) \sqrt{\ln(2/\beta) / (2n)}, \qquad m = \mathrm{upper}

        Parameters
        ----------
        n : int
            Number of users.
        beta : float
            Probability of a larger error, in (0, 1].

        Returns
        -------
        float
            In the units of the values; the bound holds for every dataset.

        {raises}

        Examples
        --------
        >>> from shufflebounds.mechanisms import RandomizedResponse
        >>> round(RandomizedResponse(1.0, upper=10.0).error_bound(1000, 0.05), 9)
        0.929351792
        """
        n = _validate.integer("n", n, 1)
        beta = _validate.real("beta", beta, 0, 1, open_low=True)
        half = math.tanh(self.eps / 2)
        return self.upper / half * math.sqrt((math.log(2) - math.log(beta)) / (2 * n)) if half else math.inf
