"""Closed-form upper bounds of the tails of sums: Chernoff, Hoeffding and bounded differences."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from shufflebounds._base import validate as _validate
from shufflebounds._base.docs import with_passages
from shufflebounds._base.types import SLACK, FloatArray, plain
from shufflebounds._core._special import deviance

__all__ = ["bounded_difference_logsf", "chernoff_logsf"]


@with_passages
def chernoff_logsf(
    k: ArrayLike, n: ArrayLike, mean: ArrayLike, *, method: Literal["kl", "hoeffding", "multiplicative"] = "kl"
) -> float | FloatArray:
    r"""Upper bound of :math:`\ln \Pr[S \ge k]` for a sum S of n independent variables in [0, 1] of average `mean`.

    .. math:: -n\,\mathrm{KL}(k/n \,\|\, \mu) \;\text{(kl)}, \qquad -2n(k/n-\mu)^2 \;\text{(hoeffding)}, \qquad
        -\frac{n\mu e^2}{2+e},\; e = \frac{k}{n\mu} - 1 \;\text{(multiplicative)}

    This bounds the probability of k **or more**, while the functions ``binom_logsf`` etc. return that of **more** than k.

    Parameters
    ----------
    k : array_like of float
        Value of the sum, any real number.
    n : array_like of float
        Number of variables, 1 to 2**53.
    mean : array_like of float
        Average :math:`\mu` of the expectations, in [0, 1].
    method : {"kl", "hoeffding", "multiplicative"}
        "kl" is the smallest of the three bounds.

    Returns
    -------
    float or ndarray
        Upper bounds of the natural logarithm, of the shape to which the arguments broadcast; 0 where k <= n mean, -inf where k > n.
        For a bound of the lower tail :math:`\Pr[S \le k]`, pass n - k, n and 1 - mean.

    {raises}

    Notes
    -----
    If the distribution is known, use its exact tail, :func:`binom_logsf` or :func:`poisson_binom_logsf`. For a binomial
    distribution and a k well above the mean, this tail is smaller by a factor of about :math:`\sqrt{2\pi k (1 - k/n)}`.

    References
    ----------
    .. [1] W. Hoeffding, "Probability inequalities for sums of bounded random variables", JASA 58 (1963), Theorem 1.
    .. [2] M. Mitzenmacher, E. Upfal, "Probability and computing", 2005, Theorem 4.4,
       from which the multiplicative form follows.

    Examples
    --------
    >>> from shufflebounds import tails
    >>> for method in ("kl", "hoeffding", "multiplicative"):
    ...     print(method, round(tails.chernoff_logsf(60, 10**6, 1e-5, method=method), 6))
    kl -57.506818
    hoeffding -0.005
    multiplicative -35.714286
    >>> print("exact", round(float(tails.binom_logsf(59, 10**6, 1e-5)), 6))
    exact -60.295861
    """
    _validate.choice("method", method, ("kl", "hoeffding", "multiplicative"))
    values = _validate.real_array("k", k)
    trials = _validate.real_array("n", n, 1, _validate.MAX_COUNT)
    _validate.every_entry("n", trials, trials % 1 == 0, "an integer")
    mu = _validate.real_array("mean", mean, 0, 1)
    try:
        values, trials, mu = np.broadcast_arrays(values, trials, mu)
    except ValueError:
        raise ValueError(f"k, n and mean have shapes {np.shape(k)}, {np.shape(n)}, {np.shape(mean)}: they must broadcast") from None
    expected = trials * mu
    # Lowering k by a few ulp enlarges the event S >= k and covers the rounding error of the product n mean. At k = n the bound is n
    # ln(mean). It is computed without k - n mean, so k need not be lowered.
    whole = (values == trials) & (method == "kl")
    safe = np.where(whole, values, values - np.abs(values) * 2.0**-51)
    beyond = (safe > expected) & (values <= trials)
    x, count, m = safe[beyond], trials[beyond], expected[beyond]
    with np.errstate(divide="ignore", invalid="ignore"):
        if method == "hoeffding":
            exponent = 2 * (x - m) ** 2 / count
        elif method == "multiplicative":
            exponent = (x - m) ** 2 / (x + m)
        else:
            # A mean m below 1e-290 is raised to 1e-290, so that x / m is finite. The bound increases with the mean, so it remains
            # valid.
            m = np.where(m > 0, np.maximum(m, 1e-290), m)
            apart = np.where(x > m, _deviance(x, m) + _deviance(count - x, count - m), 0.0)
            exponent = np.where(whole[beyond], -count * np.log(mu[beyond]), apart)
    out = np.where(values > trials, -np.inf, 0.0)
    # the exponents have a relative error below 2^-48
    out[beyond] = -exponent * (1 - SLACK)
    return plain(out)


def _deviance(x: FloatArray, m: FloatArray) -> FloatArray:
    """Return x ln(x/m) - x + m at x, m >= 0."""
    inside = m > 0
    return np.where(inside, deviance(x, np.where(inside, m, 1.0)), np.where(x > 0, np.inf, 0.0))


@with_passages
def bounded_difference_logsf(t: ArrayLike, widths: ArrayLike) -> float | FloatArray:
    r"""Upper bound of :math:`\ln \Pr[f - \mathbb{E} f \ge t]` for a function f of independent variables with bounded differences.

    .. math:: -\frac{2 t^2}{\sum_i w_i^2}

    The bound holds if f is a sum of independent variables, the i-th in an interval of length :math:`w_i` (Hoeffding); a function
    that changes by at most :math:`w_i` with its i-th argument (McDiarmid); or the last value of a martingale whose i-th step lies,
    given the past, in an interval of length :math:`w_i` (Azuma). A privacy loss in [-eps, eps] has width 2 eps.

    Parameters
    ----------
    t : array_like of float
        Deviation, >= 0. The probability of a deviation of t **or more** is bounded.
    widths : array_like of float, shape (n,)
        The lengths :math:`w_i`, each >= 0.

    Returns
    -------
    float or ndarray
        Upper bounds of the natural logarithm of the probability, of the shape of t; -inf where all widths are 0 and t > 0.

    {raises}

    References
    ----------
    .. [1] C. McDiarmid, "On the method of bounded differences", Surveys in Combinatorics, 1989, Lemma 1.2 and Theorem 6.7.

    Examples
    --------
    >>> import numpy as np
    >>> from shufflebounds import tails
    >>> round(tails.bounded_difference_logsf(100.0, np.ones(1000)), 9)
    -20.0
    """
    array = _validate.real_array("t", t, 0)
    lengths = np.atleast_1d(_validate.real_array("widths", widths, 0))
    if lengths.ndim != 1:
        raise ValueError(f"widths has shape {lengths.shape}: it must be one-dimensional")
    top = float(lengths.max())
    if top == 0:
        out = np.where(array > 0, -np.inf, 0.0)
    else:
        # widths are divided by the largest one, so that no square overflows
        with np.errstate(over="ignore"):
            scaled = array / top
            out = -2 * scaled * scaled / float(((lengths / top) ** 2).sum()) * (1 - SLACK)
        # the exact exponent is finite; an overflow to -inf would not be a valid upper bound
        out = np.maximum(out, -np.finfo(float).max)
    return plain(out)


def bernstein(variance: float, depth: float) -> float:
    """Return w such that Pr[S - E S >= w] and Pr[S - E S <= -w] are at most e^-depth, for a sum S of independent bits.

    `variance` is the variance of S.
    """
    return depth / 3 + math.sqrt(depth * depth / 9 + 2 * variance * depth)


def binomial_range(trials: float, prob: float, log_tail: float) -> tuple[int, int]:
    """Return a range (first, last) outside of which Bin(trials, prob) has at most the mass e^log_tail (Bernstein's inequality)."""
    prob = min(prob, 1.0)
    width = bernstein(trials * prob * (1 - prob), -log_tail + math.log(2)) if 0 < prob < 1 else 0.0
    return max(0, math.floor(trials * prob - width)), int(min(trials, math.ceil(trials * prob + width)))
