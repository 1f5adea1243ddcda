"""A randomizer with finitely many inputs and outputs, given by its matrix of probabilities."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shufflebounds._base import validate as _validate
from shufflebounds._base.caches import cached_property
from shufflebounds._base.docs import with_passages
from shufflebounds._base.limits import COMPARED, LARGEST_EXPONENT, TABLE_SIZE
from shufflebounds._base.types import ULP, FloatArray, Interval, IntervalArray, largest
from shufflebounds._engines.errors.accuracy import Of
from shufflebounds._engines.errors.counted import CountsOfLabels
from shufflebounds._engines.errors.intervals import CountIntervals, Ends, around
from shufflebounds._engines.inputs.few_outputs import FewOutputs
from shufflebounds._losses.atoms import InputRows, log_ratios
from shufflebounds._losses.closed_forms import ClosedForms
from shufflebounds.mechanisms._base import LocalRandomizer
from shufflebounds.mechanisms.oracles._counts import stated_users
from shufflebounds.profile import DominatingPair
from shufflebounds.profile.profile import MassPair

__all__ = ["FiniteRandomizer"]


class _ClosestRows(ClosedForms):
    """The largest delta of all pairs of rows of a matrix; bounds are computed only for pairs with nearly this delta."""

    __slots__ = ("_pairs", "_rows")

    def __init__(self, rows: FloatArray, pairs: tuple[DominatingPair, ...]) -> None:
        self._rows, self._pairs = rows, pairs

    def log_delta(self, eps: FloatArray) -> IntervalArray | None:
        if (eps > LARGEST_EXPONENT).any():
            return None
        close = np.zeros(2 * (len(self._rows),), dtype=np.bool_)
        for factor in np.exp(eps).tolist():
            deltas = np.array([np.maximum(row - factor * self._rows, 0.0).sum(axis=1) for row in self._rows])
            close |= deltas >= deltas.max() * (1 - 1e-9) - 1e-12
        places = np.flatnonzero(close[~np.eye(len(self._rows), dtype=np.bool_)])
        return largest(self._pairs[place]._log_delta(eps) for place in places.tolist())


@with_passages
@dataclass(frozen=True, repr=False)
class FiniteRandomizer(FewOutputs, CountIntervals, CountsOfLabels, LocalRandomizer):
    r"""A randomizer given by its matrix of probabilities: one row for each input, one column for each output.

    .. math:: \delta(\varepsilon) = \max_{x \ne x'} \sum_y \bigl(R_{x y} - e^\varepsilon R_{x' y}\bigr)_+

    Parameters
    ----------
    matrix : array_like, shape (inputs, outputs)
        Probabilities; each row sums to 1 within 1e-12. 2 to 64 inputs, 1 to 2**20 outputs.

    Notes
    -----
    Neighbours: the input is replaced by any other.

    The users' values are the inputs 0..inputs - 1; a message is the index 0..outputs - 1 of a column, int64. :meth:`estimate`
    returns the number of users with each input, and needs a matrix of linearly independent rows; its argument `counts` is how often
    each output was sent. Among all unbiased estimates that are linear in the counts, this one has the smallest variance for every
    input if the users are spread evenly over the inputs.

    References
    ----------
    Kairouz, P., Oh, S., Viswanath, P. Extremal mechanisms for local differential privacy, 2016, section 2.

    Examples
    --------
    >>> from shufflebounds.mechanisms import FiniteRandomizer
    >>> survey = FiniteRandomizer([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]])
    >>> round(survey.delta(0.0), 12), round(survey.epsilon(0.0), 12)
    (0.25, 0.69314718056)
    >>> messages = survey.randomize([0] * 900 + [2] * 100, rng=1)
    >>> counts = survey.aggregate(messages)
    >>> survey.estimate(counts=counts).round().tolist() == (4 * (counts - 250.0)).round().tolist()
    True
    """

    matrix: tuple[tuple[float, ...], ...]

    theorem: ClassVar[str] = "exact for the randomizer: the largest hockey-stick divergence of two rows"
    neighbours: ClassVar[str] = "replace the user's input; the analyst sees the output"

    def __post_init__(self) -> None:
        rows = _validate.real_array("matrix", self.matrix, 0)
        # The number of inputs is limited to 64, because all ordered pairs of inputs are evaluated.
        if rows.ndim != 2 or not 2 <= rows.shape[0] <= 64 or rows.shape[1] > 2**20:
            raise ValueError(f"matrix has shape {rows.shape}: it must be (inputs, outputs), 2 to 64 inputs, at most 2**20 outputs")
        totals = np.array([math.fsum(row) for row in rows])
        wrong = np.abs(totals - 1) > 1e-12
        if wrong.any():
            i = int(np.argmax(wrong))
            if np.abs(rows.sum(axis=0) - 1).max() <= 1e-9:
                advice = "the columns do: are rows and columns exchanged? A row has the probabilities of the outputs of one input"
            else:
                what = "rounded probabilities" if np.abs(totals - 1).max() <= 1e-3 else "counts or weights"
                advice = f"if these are {what}, pass matrix / matrix.sum(axis=1, keepdims=True), a NumPy array"
            raise ValueError(f"matrix has the sum {totals[i]:.17g} in row {i}: each row must sum to 1 within 1e-12; {advice}")
        object.__setattr__(self, "matrix", tuple(tuple(row) for row in rows.tolist()))

    def __repr__(self) -> str:
        return f"FiniteRandomizer(<{len(self.matrix)} inputs, {len(self.matrix[0])} outputs>)"

    @cached_property
    def _rows(self) -> FloatArray:
        return np.array(self.matrix)

    @property
    def _input_rows(self) -> InputRows | None:
        rows = np.array(self.matrix)
        if len(rows) ** 3 * rows.shape[1] > TABLE_SIZE:
            return None
        # As for `MassPair`, the differences of the sums of rows from 1, and from each other, count as errors.
        excess = [math.fsum([*row, -1.0]) for row in self.matrix]
        errors = 2 * max(map(abs, excess)), 2 * (max(excess) - min(excess))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return InputRows(np.log(rows), log_ratios(rows[None, :, :], rows[:, None, :]), *errors)

    def pairs(self) -> tuple[DominatingPair, ...]:
        return self._all_pairs

    @cached_property
    def _all_pairs(self) -> tuple[DominatingPair, ...]:
        return tuple(MassPair(first, second) for first, second in permutations(self.matrix, 2))

    def closed_forms(self) -> ClosedForms:
        return _ClosestRows(self._rows, self._all_pairs) if len(self._all_pairs) > COMPARED else ClosedForms()

    @property
    def _flip(self) -> Interval | None:
        """Bounds of the flip probability, if the matrix is that of randomized response of one bit."""
        if self._rows.shape != (2, 2) or self.matrix[0] != self.matrix[1][::-1]:
            return None
        flip, missing = min(self.matrix[0]), abs(math.fsum([*self.matrix[0], -1.0]))
        return Interval(max(0.0, flip - missing), min(0.5, flip + missing))

    @property
    def message_bits(self) -> float:
        """Length of one message in bits, the logarithm of the number of outputs."""
        return math.log2(len(self.matrix[0]))

    @property
    def _labels(self) -> int:
        return len(self.matrix[0])

    def _checked_values(self, values: ArrayLike) -> NDArray[np.int64]:
        return _validate.labels("values", values, len(self.matrix))

    def _messages(self, values: NDArray[Any], source: np.random.Generator) -> NDArray[np.int64]:
        out = np.empty(values.size, dtype=np.int64)
        for x in np.flatnonzero(np.bincount(values, minlength=len(self.matrix))):
            at = np.flatnonzero(values == x)
            law = np.cumsum(self._rows[x])
            possible = np.flatnonzero(self._rows[x])
            # Rounding may place a draw beyond the sum of the row; the last possible output is returned then.
            drawn = np.searchsorted(law, source.random(at.size) * law[-1], side="right")
            out[at] = np.minimum(drawn, possible[-1])
        return out

    def _estimated(self, counts: NDArray[np.int64], users: int) -> FloatArray:
        return np.asarray(counts @ self._weights)

    @cached_property
    def _weights(self) -> FloatArray:
        """The contribution of a message with each output to the estimate of each input, shape (outputs, inputs)."""
        rows = self._rows
        mean = rows.mean(axis=0)
        seen = mean > 0
        root = np.sqrt(mean[seen])
        if np.linalg.matrix_rank(rows) < len(rows):
            raise ValueError("matrix has dependent rows: its inputs cannot be distinguished, so no estimate is unbiased")
        weights = np.zeros(rows.shape[::-1])
        # These weights have the least variance if all inputs are equally frequent. The error of a QR decomposition is proportional
        # to the condition number of the rows; that of the normal equations would be proportional to its square.
        basis, triangle = np.linalg.qr((rows[:, seen] / root).T)
        weights[seen] = np.linalg.solve(triangle, basis.T).T / root[:, None]
        return weights

    def variance(self, held: ArrayLike) -> FloatArray:
        """Variance of :meth:`estimate` for each input.

        Parameters
        ----------
        held : array_like of int, shape (inputs,)
            Number of users with each input.

        Returns
        -------
        ndarray, shape (inputs,)

        {raises: If `held` has another shape or contains anything but counts, or the rows of the matrix are dependent.}
        """
        counts = _validate.counts("held", held, _validate.MAX_COUNT, len(self.matrix))
        return np.asarray(counts @ self._variances)

    @property
    def _variances(self) -> FloatArray:
        """The variance of the contribution of one user with each input (rows) to the estimate of each input (columns)."""
        return np.asarray(np.maximum(self._rows @ self._weights**2 - (self._rows @ self._weights) ** 2, 0.0))

    def error_quantile(
        self, beta: float, truth: ArrayLike | None = None, *, users: int | None = None, of: Of = "bin"
    ) -> float:
        r"""Return a number that the absolute error of :meth:`estimate` exceeds with probability at most beta.

        For the input x, Chernoff's bound is

        .. math:: \max_\pm \min_{\theta > 0} \frac{1}{\theta} \Bigl(\sum_z n_z \ln \mathbb{E}_z\, e^{\pm\theta (w_x(Y) - [x = z])}
            + \ln\frac{2}{\beta}\Bigr)

        Here w_x(y) is the contribution of output y to the estimate of input x, n_z users have the input z, and Y is the output of
        one of them. Without `truth` the sum over z is replaced by the number of users times the largest of the logarithms. A bound
        of the rounding error of the estimate is added; it is large only if rows of the matrix are nearly dependent.

        Parameters
        ----------
        beta : float
            Probability of a larger error, in (0, 1).
        truth : array_like of int, shape (inputs,), optional
            Number of users with each input, or None, the default, for every dataset.
        users : int, optional
            Number of users. It may be left out if `truth` is given.
        of : {"bin", "any"}
            The error of one input that is chosen beforehand (the bound is for the worst one), or the largest error of any input.

        Returns
        -------
        float
            An upper bound of the quantile, as a number of users.

        {raises: If an argument lies outside its range, or the rows of the matrix are dependent.}

        Examples
        --------
        >>> from shufflebounds.mechanisms import FiniteRandomizer
        >>> survey = FiniteRandomizer([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]])
        >>> print(f"{survey.error_quantile(0.05, users=1000):.0f}")
        172
        """
        beta = _validate.failure(beta)
        total, held = self._dataset(truth, users)
        inputs = len(self.matrix) if _validate.choice("of", of, ("bin", "any")) == "any" else 1
        depth = math.log(2 * inputs / beta)

        def reached(x: int, side: int) -> float:
            thetas, logs, most = self._cumulants(x, side, total, held, lambda variance: math.sqrt(2 * depth / variance))
            return min(most, float(((logs + depth) / thetas).min(initial=math.inf)))

        return max(reached(x, side) for x in range(len(self.matrix)) for side in (-1, 1)) * (1 + 1e-9) + self._rounding(total)

    def _interval(self, seen: NDArray[np.int64], users: int, beta: float, of: Of) -> Ends:
        return around(self._estimated(seen, users), self.error_quantile(beta, users=users, of=of), float(users))

    def error_tail(self, a: float, truth: ArrayLike | None = None, *, users: int | None = None, of: Of = "bin") -> float:
        r"""Return an upper bound of the probability that the absolute error of :meth:`estimate` is larger than `a`.

        .. math:: \sum_\pm \min_{\theta > 0}
            \exp\Bigl(\sum_z n_z \ln \mathbb{E}_z\, e^{\pm\theta (w_x(Y) - [x = z])} - \theta a\Bigr)

        with the notation of :meth:`error_quantile` (Chernoff's bound).

        Parameters
        ----------
        a : float
            Error as a number of users, finite and >= 0.
        truth, users, of
            As in :meth:`error_quantile`.

        Returns
        -------
        float
            If `of` is "bin", the bound for the worst input; if `of` is "any", the sum of the bounds of all inputs. At most 1.

        {raises: If an argument lies outside its range, or the rows of the matrix are dependent.}

        Examples
        --------
        >>> from shufflebounds.mechanisms import FiniteRandomizer
        >>> survey = FiniteRandomizer([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]])
        >>> print(f"{survey.error_tail(172.0, users=1000):.3f}")
        0.049
        """
        a = _validate.real("a", a, 0)
        total, held = self._dataset(truth, users)
        several = _validate.choice("of", of, ("bin", "any")) == "any"
        reach = a * (1 - 1e-9) - self._rounding(total)
        if not reach > 0:
            return 1.0

        def tail(x: int, side: int) -> float:
            thetas, logs, most = self._cumulants(x, side, total, held, lambda variance: reach / variance)
            return math.exp((logs - thetas * reach).min(initial=0.0)) if reach < most else 0.0

        tails = [tail(x, -1) + tail(x, 1) for x in range(len(self.matrix))]
        return min(1.0, math.fsum(tails) if several else max(tails))

    def mean_squared_error(self, truth: ArrayLike | None = None, *, users: int | None = None) -> float:
        """Return the mean squared error of :meth:`estimate`, averaged over all inputs.

        Parameters
        ----------
        truth, users
            As in :meth:`error_quantile`. If `truth` is None, the result is for the worst dataset, in which all users have one
            input.

        Returns
        -------
        float
            In users squared.

        {raises: If an argument lies outside its range, or the rows of the matrix are dependent.}

        Examples
        --------
        >>> from shufflebounds.mechanisms import FiniteRandomizer
        >>> survey = FiniteRandomizer([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]])
        >>> print(f"{survey.mean_squared_error(users=1000):.3f}")
        3333.333
        """
        total, held = self._dataset(truth, users)
        each = self._variances.mean(axis=1)
        return float(total * each.max() if held is None else held @ each)

    def _dataset(self, truth: ArrayLike | None, users: int | None) -> tuple[int, FloatArray | None]:
        """Return the validated number of users, and the numbers of users with each input, or None for the worst dataset."""
        total = stated_users(users, truth)
        if truth is None:
            return total, None
        if np.ndim(truth) == 0:
            raise ValueError(f"truth={truth} must be None or a histogram of shape ({len(self.matrix)},): the error of an "
                             "estimate depends on the numbers of users with all inputs")
        held = _validate.counts("truth", truth, total, len(self.matrix))
        if held.sum() != total:
            raise ValueError(f"truth sums to {_validate.format_value(float(held.sum()))}: it must sum to users={total}")
        return total, held

    def _rounding(self, users: int) -> float:
        """Return an upper bound of the error of `estimate` from rounding the weights (a bias) and the sum."""
        bias = np.abs(self._rows @ self._weights - np.eye(len(self.matrix))).max()
        return users * float(bias + 3 * ULP * self._weights.shape[0] * np.abs(self._weights).max())

    def _cumulants(
        self, x: int, side: int, users: int, held: FloatArray | None, near: Callable[[float], float]
    ) -> tuple[FloatArray, FloatArray, float]:
        """Return a list of theta, K(theta) for each, and the largest error of the estimate for input x in one direction.

        K is the sum of the log moment generating functions of the users' errors, for the numbers `held` of users with each input,
        or for the worst numbers. Every theta gives a valid Chernoff bound. ``near(variance)`` returns a nearly best theta for an
        upper bound of the variance of the sum of the errors; the list ranges from 1/16 to 2 times this theta.
        """
        rows = self._rows
        gain = side * (self._weights[None, :, x] - (np.arange(len(rows)) == x)[:, None])
        gain = np.where(rows > 0, gain, 0.0)
        spread = max(float((rows * gain * gain).sum(axis=1).max()), 1e-300)
        thetas, sums = near(users * spread) * 2.0 ** np.linspace(-4, 1, 41), []
        for theta in thetas.tolist():
            up = theta * gain
            if up.max() > 500:
                break
            # The mean of u = theta * gain is 0, so K is the log of 1 + E(e^u - 1 - u), which has no cancellation.
            change = np.where(np.abs(up) < 1e-3, up * up * (0.5 + up / 6 + up * up / 24 * 1.01), np.expm1(up) - up)
            logs = np.log1p((rows * change).sum(axis=1))
            sums.append(float(held @ logs if held is not None else users * logs.max()))
        return thetas[: len(sums)], np.array(sums), users * float(gain.max())
