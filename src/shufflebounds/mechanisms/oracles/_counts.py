"""Base classes of frequency oracles, which estimate how many users have each value.

A message supports some of the values. The estimate of the number of users with a value is a linear function of the number of
messages that support the value, and is unbiased.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shufflebounds._base import validate as _validate
from shufflebounds._base.caches import cached_property
from shufflebounds._base.calls import explained
from shufflebounds._base.docs import with_passages
from shufflebounds._base.limits import FEW, LARGEST_EXPONENT, SQUARABLE
from shufflebounds._base.types import ULP, Bound, FloatArray, plain
from shufflebounds._engines.errors.accuracy import Of, of_truth
from shufflebounds._engines.errors.count_errors import CountErrors, SupportProbabilities
from shufflebounds._engines.errors.intervals import CountIntervals, CountLaw, tail_of_bits
from shufflebounds._engines.inputs.few_outputs import FewOutputs
from shufflebounds.mechanisms.oracles._two_level import Others, TwoLevel

__all__ = ["CountEstimate", "FrequencyOracle", "independent_patterns", "stated_users"]

LISTED_BINS = 3
"""Largest number of bins for which every bound of shuffled messages uses the matrix of the messages. For more bins it serves only
the enumeration of all datasets of few users. Raised to 4: up to 10 s for one eps, which becomes smaller by up to 0.6 %.
Lowered: eps up to twice as large."""

LEAST_BUDGET = 1e-4
"""Smallest local budget for which the matrix of the messages is used. Lowered: less tight bounds, because the rounding errors of
the matrix grow relative to the differences of its rows."""


def _of_users(name: str, value: ArrayLike, users: int) -> tuple[int, FloatArray]:
    """Return the validated number of users and the array `value` of numbers in 0..users; `name` is used in messages."""
    users = _validate.integer("users", users, 1)
    return users, _validate.real_array(name, value, 0, users)


@explained
@with_passages
class CountEstimate(CountIntervals):
    r"""An estimate of the number of users with each value, from the number c of the n messages that support the value.

    .. math:: t = \frac{c - n q}{p - q}

    A message supports the user's value with probability p, and any other value with probability q.
    """

    @abstractmethod
    def _support_probabilities(self) -> SupportProbabilities:
        """Return the probabilities that a message supports a value."""

    def _estimated(self, counts: NDArray[np.int64], users: int) -> FloatArray:
        return np.asarray(self._from_support(self._support(counts), users))

    def _from_support(self, support: NDArray[np.int64], users: int) -> FloatArray:
        """Return the estimate from the number of messages that support a value."""
        _, _, other, _, gap = self._support_probabilities()
        return np.asarray((support - other * users) / gap)

    def _count_law(self, users: int) -> CountLaw:
        own, not_own, other, not_other, _ = self._support_probabilities()
        tail = tail_of_bits(users, (own, not_own), (other, not_other), rounding=8 * ULP)
        return CountLaw(tail, self.errors(users)._scale(), users)

    def variance(self, held: ArrayLike, users: int) -> float | FloatArray:
        r"""Variance of :meth:`estimate` for a value that `held` of the users have.

        .. math:: \frac{t\, p (1 - p) + (n - t)\, q (1 - q)}{(p - q)^2}

        Here p and q are the probabilities that a message supports the user's value, and that it supports any other value.

        Parameters
        ----------
        held : float or array_like
            Number t of users with the value, 0 to users.
        users : int
            Number n of users.

        Returns
        -------
        float or ndarray
            Of the shape of `held`.

        {raises: If `users` is no positive integer or `held` leaves 0..users.}
        """
        users, t = _of_users("held", held, users)
        own, not_own, other, not_other, gap = self._support_probabilities()
        # For tiny budgets the variance overflows to infinity.
        with np.errstate(divide="ignore", over="ignore"):
            out = (t * own * not_own + (users - t) * other * not_other) / gap**2
        return plain(out)

    def errors(self, users: int) -> CountErrors:
        """Return the distribution of the errors of the estimates for `users` users.

        Parameters
        ----------
        {users}

        Returns
        -------
        CountErrors
            An object with the methods `error_tail`, `error_quantile` and `mean_squared_error`.

        {raises: If `users` lies outside its range.}
        """
        users = _validate.integer("users", users, 1)
        return CountErrors(self._support_probabilities(), users, self._values(), self._values_of_one())

    def _values(self) -> int:
        """Return the number of values that are estimated."""
        return 1

    def _values_of_one(self) -> int:
        """Return the number of values that one user has (1, or the number of bits that a user sets)."""
        return 1

    def _errors(self, users: int | None, truth: ArrayLike | None) -> CountErrors:
        """Return the distribution of the errors of the counts, for `users` users or those of the histogram `truth`."""
        return self.errors(stated_users(users, truth, self._values_of_one()))

    def error_tail(
        self, a: float, truth: ArrayLike | None = None, *, users: int | None = None, of: Of = "bin", bound: Bound = "upper"
    ) -> float:
        r"""Return a bound of the probability that the absolute error of an estimated count is larger than `a`.

        Parameters
        ----------
        a : float
            Error as a number of users, finite and >= 0.
        truth, users, of, bound
            As in :meth:`error_quantile`.

        Returns
        -------
        float
            The chosen bound of :math:`\Pr[|\text{estimate} - \text{truth}| > a]`.

        {raises}

        Examples
        --------
        >>> from shufflebounds.mechanisms import KaryResponse
        >>> print(f"{KaryResponse(20, 5.69).error_tail(60.0, users=200_000):.4f}")
        0.7827
        """
        return self._errors(users, truth).error_tail(a, truth, of=of, bound=bound)

    def mean_squared_error(self, truth: ArrayLike | None = None, *, users: int | None = None) -> float:
        r"""Return the mean squared error of :meth:`estimate`, averaged over all values, for `users` users.

        .. math:: \frac{n}{k} \, \frac{p(1-p) + (k-1)\, q(1-q)}{(p-q)^2}

        Here n is `users`, k is the number of values, and p and q are the probabilities of :meth:`variance`.

        Parameters
        ----------
        truth, users
            As in :meth:`error_quantile`. If `truth` is one number, the error is that of one value, which this number of users has.

        Returns
        -------
        float
            In users squared. The average over k values is the same for every dataset, so `truth` changes the result only if it is
            a single number. The formula is for users who have one value each. If each user has h of the k values (the bits of a
            RAPPOR filter), the factors 1 and k - 1 in the numerator become h and k - h. For a RAPPOR filter without `bits`, where
            one bit is estimated, the result is that for the worst dataset.

        {raises}

        Examples
        --------
        >>> from shufflebounds.mechanisms import KaryResponse
        >>> print(f"{KaryResponse(10, 2.0).mean_squared_error(users=4000):.3f}")
        2008.847
        """
        return self._errors(users, truth).mean_squared_error(truth)

    def error_quantile(
        self, beta: float, truth: ArrayLike | None = None, *, users: int | None = None, of: Of = "bin", bound: Bound = "upper"
    ) -> float:
        """Return a bound of the error of an estimated count that is exceeded with probability at most `beta`.

        Parameters
        ----------
        beta : float
            Probability of a larger error, in (0, 1).
        truth : int or array_like of int, optional
            The dataset; None, the default, stands for the worst one. Either the numbers of users with each value, of shape (bins,),
            or one number: the number of users with the value (``of="bin"``), or the largest number of users with any value
            (``of="any"``). For :class:`Rappor` the values are the bits of the filter, of which every user sets `hashes`.
        users : int, optional
            Number of users. It may be left out if `truth` is a histogram.
        of : {"bin", "any"}
            The error of one value that is chosen beforehand, or the largest error of any value.
        bound : {"upper", "lower"}
            "upper" is never below the exact quantile, "lower" never above.

        Returns
        -------
        float
            The error as a number of users.

        {raises}

        Notes
        -----
        The number of messages that support a value is a sum of two binomial variables, evaluated exactly. For ``of="any"`` the
        upper bound is a union bound over the values.
        """
        return self._errors(users, truth).error_quantile(beta, truth, of=of, bound=bound)


def stated_users(users: int | None, truth: ArrayLike | None, each: int = 1) -> int:
    """Return `users` if given, otherwise the number of users of the histogram `truth`, which counts every user `each` times."""
    if users is not None:
        return _validate.integer("users", users, 1)
    if truth is None or np.ndim(truth) == 0:
        raise ValueError(f"users=None: pass the number of users, such as error_quantile(0.05, users=10**5); "
                         f"truth={_validate.short_repr(truth)} is no histogram, which would determine it")
    with of_truth():
        total = int(_validate.whole_array("truth", truth, 0).sum())
    return _validate.integer("users", -(-total // each), 1)


def independent_patterns(bins: int, hit: Fraction) -> dict[tuple[bool, ...], Fraction]:
    """Return `FrequencyOracle._patterns` for independent lifted sets, each of mass `hit` under the base distribution B."""
    return {inside: math.prod([hit if one else 1 - hit for one in inside], start=Fraction(1))
            for inside in product([True, False], repeat=bins)}


@with_passages
class FrequencyOracle(CountEstimate, TwoLevel):
    """A two-level randomizer of one of `bins` values, with an estimate of the histogram from the messages."""

    bins: int

    def _check(self, most_bins: int = _validate.MAX_COUNT) -> None:
        """Validate the number of bins and the local budget."""
        _validate.integer_field(self, "bins", 2, most_bins)
        _validate.local_budget_field(self, "local_eps", LARGEST_EXPONENT)

    def _check_size(self, name: str, near: int, low: int, high: int) -> None:
        """Validate the field `name`, a size in low..high.

        If the field is None, it becomes `near` or near + 1, whichever has the smaller variance for a bin with few users.
        """
        if getattr(self, name) is None:
            tried = sorted({min(max(size, low), high) for size in (near, near + 1)})
            family: Any = type(self)
            best = min(tried, key=lambda size: float(family(self.bins, self.local_eps, size).variance(0, 1)))
            object.__setattr__(self, name, best)
        _validate.integer_field(self, name, low, high)

    def _patterns(self) -> dict[tuple[bool, ...], Fraction]:
        """Return the classes of outputs and their masses under the base distribution B, for at most FEW bins.

        The key of a class has one entry for each bin: whether the outputs of the class are in the lifted set of this bin. The
        result is empty if the classes are not known.
        """
        return {}

    def _inverse_odds(self) -> Fraction:
        """Return e^-local_eps."""
        return Fraction(math.exp(-self.local_eps))

    @cached_property
    def _twin(self) -> FrequencyOracle | FewOutputs:
        """The oracle as a matrix of probabilities if there are few bins, for tighter bounds; otherwise the oracle itself."""
        matrix = self._listed if self.bins <= LISTED_BINS else None
        return self if matrix is None else FewOutputs(matrix, 8 * ULP)

    def _matrix(self) -> FloatArray | None:
        """Return the probabilities of the classes of outputs, for the enumeration of all datasets of few users, or None."""
        return self._listed

    @cached_property
    def _listed(self) -> FloatArray | None:
        classes = self._patterns() if self.bins <= FEW and self.local_eps >= LEAST_BUDGET else {}
        if not classes:
            return None
        low, rows = self._inverse_odds(), []
        for x in range(self.bins):
            row = [mass * (1 if inside[x] else low) for inside, mass in classes.items()]
            total = sum(row)
            rows.append([float(p / total) for p in row])
        matrix = np.array(rows)
        # The product of two smaller probabilities would underflow.
        return None if matrix.min() < SQUARABLE**-0.5 else matrix

    @property
    def _inputs(self) -> int:
        return self.bins

    def _kinds(self) -> tuple[Others, ...] | None:
        # A permutation of the inputs other than the target's two only permutes the outputs, so X (`ExcessLaw`) has the same
        # distribution for all of these inputs.
        return (*self._targets(), *self._others())

    def _independent(self, hit: float, miss: float) -> tuple[Others, ...]:
        """Return the dataset in which all other users have a third value.

        The lifted set of the third value has the mass `hit` = 1 - `miss` under the base distribution B, and is independent of the
        lifted sets of the target's two values.
        """
        one, both, neither = self._shares()
        inside, outside = ((part * one, part * one, part * both, part * neither) for part in (hit, miss))
        return (Others("every other user has a third value", inside, outside),) if self.bins > 2 else ()

    @property
    @abstractmethod
    def message_bits(self) -> float:
        """Length of one message in bits."""

    def _support_probabilities(self) -> SupportProbabilities:
        one, both, neither = self._shares()
        base = math.exp(self._log_base())
        lifted = math.exp(self._log_base() + self.local_eps)
        gap = one * lifted * -math.expm1(-self.local_eps)
        return SupportProbabilities((one + both) * lifted, (one + neither) * base, both * lifted + one * base,
                       one * lifted + neither * base, gap)

    def _values(self) -> int:
        return self.bins

    @property
    def _count_shape(self) -> tuple[int, ...]:
        return (self.bins,)

    def _checked_values(self, values: ArrayLike) -> NDArray[np.int64]:
        return _validate.labels("values", values, self.bins)

    def rmse(self, users: int) -> float:
        r"""Square root of the mean squared error over all bins, which is the same for every dataset.

        .. math:: \sqrt{\frac{n}{k} \, \frac{p(1-p) + (k-1)\, q(1-q)}{(p-q)^2}}

        Here k is the number of bins, and p and q are as in :meth:`variance`.

        Parameters
        ----------
        users : int
            Number n of users.

        Returns
        -------
        float

        {raises: If `users` is no positive integer.}
        """
        # The mean squared error may overflow although its root does not.
        users = _validate.integer("users", users, 1)
        own, not_own, other, not_other, gap = self._support_probabilities()
        root = math.sqrt(users * (own * not_own / self.bins + (1 - 1 / self.bins) * other * not_other))
        return root / gap if gap else math.inf
