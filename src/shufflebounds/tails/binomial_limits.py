"""Confidence limits of a binomial proportion from the logarithms of its tails, for error probabilities of any size."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shufflebounds._base import validate as _validate
from shufflebounds._base.docs import with_passages
from shufflebounds._base.limits import COMPUTED_ERROR
from shufflebounds._base.types import FloatArray, plain
from shufflebounds._core._binomial import binom_logcdf, binom_logsf

__all__ = ["clopper_pearson"]


@with_passages
def clopper_pearson(
    successes: ArrayLike, trials: ArrayLike, *, log_alpha: ArrayLike
) -> tuple[FloatArray | float, FloatArray | float]:
    r"""Return the Clopper-Pearson confidence limits of a success probability.

    .. math:: \Pr[\mathrm{Bin}(n, p_{\text{low}}) \ge k] = \alpha/2, \qquad \Pr[\mathrm{Bin}(n, p_{\text{high}}) \le k] = \alpha/2

    Parameters
    ----------
    successes : int or array_like
        Number k of successes, 0 to n.
    trials : int or array_like
        Number n of trials, 1 to 2**53.
    log_alpha : float or array_like
        Natural logarithm of the error probability alpha of both limits together, finite and < 0; alpha itself may be far below the
        least double. The three arguments broadcast against each other.

    Returns
    -------
    low, high : float or ndarray
        The limits, rounded conservatively: the returned interval contains the exact interval. low is 0 if k = 0, and high is 1 if k
        = n.

    {raises: If an argument lies outside its range, or k exceeds n.}

    Notes
    -----
    The limits are found by bisection with :func:`binom_logsf` and :func:`binom_logcdf`. They are within a relative 1e-11 of the
    exact limits, or one spacing of the doubles next to 1.

    References
    ----------
    Clopper, C. J., Pearson, E. S. The use of confidence or fiducial limits illustrated in the case of the binomial.
    Biometrika 26, 1934.

    Examples
    --------
    >>> from math import log
    >>> from shufflebounds import tails
    >>> low, high = tails.clopper_pearson(3, 100, log_alpha=log(0.05))
    >>> print(f"{low:.9f} {high:.9f}")
    0.006229972 0.085176053
    >>> low, high = tails.clopper_pearson(3, 100, log_alpha=-1000.0)
    >>> print(f"{low:.6e} {high:.9f}")
    2.503760e-147 0.999970763
    """
    k = _validate.whole_array("successes", successes, 0).astype(np.float64)
    n = _validate.whole_array("trials", trials, 1).astype(np.float64)
    level = _validate.real_array("log_alpha", log_alpha, high=0, open_high=True)
    k, n, level = np.broadcast_arrays(k, n, level - math.log(2))
    if (k > n).any():
        at = np.argmax((k > n).ravel())
        raise ValueError(f"successes holds {k.flat[at]:.0f}: it must be at most trials, {n.flat[at]:.0f}")
    # Pr[at least k successes] increases with p. Pr[at most k successes] is Pr[at least n - k failures], which increases with 1 - p.
    low = _limit(k, n, level, up=False)
    high = _limit(n - k, n, level, up=True)
    return plain(low), plain(high)


def _limit(k: FloatArray, n: FloatArray, level: FloatArray, *, up: bool) -> FloatArray:
    """Return the p at which log Pr[at least k successes] is `level`, rounded down; if `up`, return 1 minus this p, rounded up."""
    half = np.full(k.shape, 0.5)
    # Both log p and log(1 - p) are searched. The root p is computed from log p if p is below 1/2, otherwise from log(1 - p).
    small = np.asarray(binom_logsf(k - 1, n, half)) >= level
    first = _halved(lambda p: np.asarray(binom_logsf(k - 1, n, p)) <= level, k.shape)
    # Pr[Bin(n, p) >= k] = Pr[Bin(n, q) <= n - k] for q = 1 - p
    other = _halved(lambda q: np.asarray(binom_logcdf(n - k, n, q)) > level, k.shape)
    with np.errstate(under="ignore"):
        # a root below the least positive double is rounded down to 0
        p_small = np.where(first[0] > math.ulp(0.0), np.nextafter(first[0] * (1 - COMPUTED_ERROR), 0.0), 0.0)
        q_large = np.minimum(np.nextafter(other[1] * (1 + COMPUTED_ERROR), 1.0), 1.0)
    if up:
        value = np.where(small, np.nextafter(1 - p_small, 2.0), q_large)
        return np.where(k == 0, 1.0, np.minimum(value, 1.0))
    return np.where(k == 0, 0.0, np.where(small, p_small, np.maximum(np.nextafter(1 - q_large, -1.0), 0.0)))


def _halved(below: Callable[[FloatArray], NDArray[np.bool_]], shape: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
    """Return p < p' in (0, 1/2] on either side of the number at which the condition `below` changes from true to false.

    `below` is true at p, or p is the smallest positive double. The logarithms of p and p' are neighbouring doubles.
    """
    low, high = np.full(shape, math.log(math.ulp(0.0))), np.full(shape, math.log(0.5))
    # 70 halvings reduce the initial width of 744 nats to less than half an ulp of log p
    for _ in range(70):
        middle = 0.5 * (low + high)
        holds = below(np.exp(middle))
        low, high = np.where(holds, middle, low), np.where(holds, high, middle)
    return np.exp(low), np.exp(high)
