"""Non-negative histograms with a given sum: a projection, and lower bounds of the error of every mechanism."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shufflebounds._base import validate as _validate
from shufflebounds._base.docs import with_passages
from shufflebounds._base.limits import LARGEST, LARGEST_EXPONENT
from shufflebounds._base.types import SLACK
from shufflebounds._base.validate import MAX_COUNT

__all__ = ["point_error_lower_bound", "point_error_lower_bound_zcdp", "project_simplex"]


@with_passages
def project_simplex(r: ArrayLike, total: float) -> NDArray[np.float64]:
    r"""The nearest non-negative vector with a given sum.

    .. math:: \arg\min_{t \ge 0,\ \sum t_i = \text{total}} \sum_i (t_i - r_i)^2 = \bigl(\max(0, r_i - g)\bigr)_i

    The number g is the one for which the entries of the result add up to `total`.

    Parameters
    ----------
    r : array_like of float, shape (d,)
        Noisy counts, each with an absolute value of at most 1e300.
    total : float
        The sum, in [0, 1e300].

    Returns
    -------
    ndarray, shape (d,)
        The projection of `r`. Its sum is `total`, up to the rounding error of the largest \|r_i\|. The projection is
        post-processing of `r`: it does not weaken the guarantee of `r` if `total` is public or the output of a private mechanism.

    {raises}

    Notes
    -----
    The run time is O(d log d), for sorting.

    References
    ----------
    .. [1] J. Abowd et al., "An uncertainty principle is a price of privacy-preserving microdata", NeurIPS 2021, the lemma on
       constrained non-negative least squares.
    .. [2] J. Duchi et al., "Efficient projections onto the l1-ball for learning in high dimensions", ICML 2008.

    Examples
    --------
    >>> from shufflebounds.histograms import project_simplex
    >>> project_simplex([5.0, -1.0, 2.0, 0.5], 6.0).tolist()
    [4.5, 0.0, 1.5, 0.0]
    """
    array = _validate.real_array("r", r, -LARGEST, LARGEST)
    if array.ndim != 1:
        raise ValueError(f"r has shape {array.shape}: it must be one-dimensional")
    total = _validate.real("total", total, 0, LARGEST)
    if total == 0:
        return np.zeros_like(array)
    top = float(array.max())
    # The largest entry is subtracted from all entries, so that a common offset does not cause cancellation in the sums.
    fall = np.sort(array - top)[::-1]
    sums = np.cumsum(fall)
    sizes = np.arange(1, array.size + 1)
    # The n-th largest entry of the result is positive if and only if fall[n - 1] > (sums[n - 1] - total)/n; n = 1 satisfies this.
    support = int(np.flatnonzero(fall * sizes > sums - total)[-1]) + 1
    shift = (math.fsum(fall[:support].tolist()) - total) / support
    return np.maximum(array - top - shift, 0.0)


@with_passages
def point_error_lower_bound(d: int, eps: float, delta: float, sum_rmse: float) -> float:
    r"""A lower bound of the error in the cells of a private non-negative histogram that has an accurate sum.

    For every dataset, let the root mean squared error of every cell be at most C, and that of the sum at most D. Then, for every
    integer t,

    .. math:: C \ge \frac{t\,((d-1) B_t - 1) - 2D}{2 (1 + (d-1) B_t)}, \qquad
        B_t = \frac{e^{-2\varepsilon t}}{4} - \delta\,\frac{1 - e^{-2\varepsilon t}}{e^\varepsilon - 1}.

    Parameters
    ----------
    d : int
        Number of cells, 2 to 2**53.
    eps : float
        Budget in nats, in (0, 700]. Neighbouring datasets differ in one added or removed record.
    delta : float
        Failure probability, in [0, 1].
    sum_rmse : float
        Root mean squared error D of the sum of all cells, >= 0.

    Returns
    -------
    float
        Lower bound of C, at least 0: for every mechanism that releases a non-negative histogram there are a dataset and a cell
        whose error is at least this number.

    {raises}

    Notes
    -----
    The right-hand side first increases and then decreases with t, so its maximum over t is found by bisection. The published
    theorem states the bound for every real t. Its proof changes t records, so t must be an integer; for other t the statement is
    false. The proof uses a dataset with at least t records.

    References
    ----------
    .. [1] J. Abowd et al., "An uncertainty principle is a price of privacy-preserving microdata", NeurIPS 2021, the theorem on
       lower bounds, items 1 and 2; the factor of delta in :math:`B_t` is the exact one of group privacy instead of the published
       1/eps.

    Examples
    --------
    If the sum of a million cells is exact at eps = 0.1, some cell has a root mean squared error of at least 21. With Laplace noise
    in each cell, and a sum that is not exact, the error is 14:

    >>> from shufflebounds.histograms import point_error_lower_bound
    >>> round(point_error_lower_bound(10**6, 0.1, 0.0, 0.0), 2)
    21.33
    """
    cells = _validate.integer("d", d, 2)
    eps = _validate.real("eps", eps, 0, LARGEST_EXPONENT, open_low=True)
    delta = _validate.real("delta", delta, 0, 1)
    error = _validate.real("sum_rmse", sum_rmse, 0)

    def chance(t: int) -> float:
        kept = math.exp(-2 * eps * t) / 4
        lost = -delta * math.expm1(-2 * eps * t) / math.expm1(eps)
        # The result is rounded down by a bound of the rounding errors of both terms of the difference and of eps t.
        return kept - lost - (kept * (1 + eps * t) + lost) * 4 * SLACK

    return _most_error(chance, cells, error, math.log(cells) / (2 * eps))


@with_passages
def point_error_lower_bound_zcdp(d: int, rho: float, sum_rmse: float) -> float:
    r"""The lower bound of :func:`point_error_lower_bound` for concentrated differential privacy.

    As :func:`point_error_lower_bound`, with

    .. math:: B_t = \exp\Bigl(-\bigl(\sqrt{\ln 4} + 2t\sqrt\rho\bigr)^2\Bigr).

    Parameters
    ----------
    d : int
        Number of cells, 2 to 2**53.
    rho : float
        Parameter of zero-concentrated privacy, in (0, 700]. Neighbouring datasets differ in one added or removed record.
    sum_rmse : float
        Root mean squared error D of the sum of all cells, >= 0.

    Returns
    -------
    float
        Lower bound of C, the root mean squared error of a cell, at least 0.

    {raises}

    Notes
    -----
    The published theorem gives orders of growth only; the formula is derived here, by changing one step of the proof for pure
    privacy. Consider two datasets that differ in 2t records. The Renyi divergence of order a between the outputs for them is
    at most :math:`4 t^2 \rho a`. If an event has the probability 1/4 for one dataset, its probability for the other dataset is
    at least :math:`\exp(-\frac{a}{a-1}\ln 4 - 4t^2\rho a)`. The maximum of this bound over the orders a is :math:`B_t`. The
    remaining steps are the same.

    References
    ----------
    .. [1] J. Abowd et al., "An uncertainty principle is a price of privacy-preserving microdata", NeurIPS 2021, the theorem on
       lower bounds, item 3.

    Examples
    --------
    >>> from shufflebounds.histograms import point_error_lower_bound_zcdp
    >>> round(point_error_lower_bound_zcdp(10**6, 1e-4, 0.0), 2)
    47.96
    """
    cells = _validate.integer("d", d, 2)
    rho = _validate.real("rho", rho, 0, LARGEST_EXPONENT, open_low=True)
    error = _validate.real("sum_rmse", sum_rmse, 0)

    def chance(t: int) -> float:
        power = (math.sqrt(math.log(4)) + 2 * t * math.sqrt(rho)) ** 2
        return math.exp(-power * (1 + 4 * SLACK)) * (1 - 4 * SLACK)

    return _most_error(chance, cells, error, math.sqrt(math.log(cells) / rho) / 2)


def _most_error(chance: Callable[[int], float], cells: int, error: float, high: float) -> float:
    """Return the largest lower bound of C over 1 <= t <= high; `chance(t)` is :math:`B_t` and `error` is D."""
    def bound(t: int) -> float:
        gain = (cells - 1) * chance(t)
        return (t * (gain - 1) - 2 * error - 4 * SLACK * (t * (gain + 1) + 2 * error)) / (2 * (1 + gain)) if gain > 1 else -math.inf

    # The bound increases in t, then decreases.
    best = bisect_left(range(2 + math.ceil(min(MAX_COUNT, high))), True, lo=1, key=lambda t: bound(t) >= bound(t + 1))
    return max(0.0, bound(best))
