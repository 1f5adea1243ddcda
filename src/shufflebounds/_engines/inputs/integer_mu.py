"""Bounds of mu of discrete Gaussian noise: the least mu such that the release is mu-Gaussian differentially private.

**A formula for mu.** Let S_k = Pr[X >= k] and t_k = -Phi^{-1}(S_k), where X has probabilities e^(-k^2/(2 sigma^2))/Z. The trade-off
function of (X, X + d) is linear between the points (S_k, 1 - S_(k-d)). A Gaussian trade-off function G is convex. So if G is at
most the trade-off function of (X, X + d) at these points, it is so everywhere. Hence

    mu = max over k of t_k - t_(k-d).

Each t_k - t_(k-d) is the sum of the differences t_j - t_(j-1) over the window j = k-d+1..k. As t_(1-k) = -t_k, only k >= (d + 1)/2
matter. The library uses the smaller of two upper bounds of this maximum.

**First bound: enumeration.** All windows with k <= K + d are enumerated. For the other windows, in which j > K + 1, steps 1 and 2
bound t_j - t_(j-1) by a function R(j), and step 3 shows that R decreases. Write y = j - 1, u = (j - 1/2)/sigma^2, and L = -log S.

1. *The slope of t.* As a function of L, t has the slope m(t) = (1 - Phi(t))/phi(t), Mills' ratio, which decreases and is at most
   1/t. So t_j - t_(j-1) <= (L_j - L_(j-1))/t_(j-1).
2. *Numerator and denominator.*

   - L_j - L_(j-1) = log(1 + p_(j-1)/S_j) <= log(1 + p_(j-1)/p_j) <= u + e^-u;
   - L_(j-1) >= A = y^2/(2 sigma^2) + log Z + log(1 - e^-u), because the probabilities decrease at least geometrically;
   - t^2 >= F = B^2 - 2 log(B + 1) - log(2 pi) with B = sqrt(2 A), because m(t) >= 1/(t + 1) and 1 - Phi(t) <= e^(-t^2/2).

   Hence R(j) = (u + e^-u)/sqrt(F).
3. *R decreases for y >= max(30 sigma^2, 4 sigma^2 log Z) and y >= 1.* The logarithm of u + e^-u has a slope of at most
   1/(sigma^2 u) = 1/(y + 1/2), and log sqrt(F) has at least the slope (y/sigma^2)(1 - 1/B^2)/F with F <= y^2/sigma^2 + 2 log Z -
   log(2 pi) - 2 log(B + 1). So it suffices that

       (y/sigma^2) (y + 1/2) (1 - 1/B^2) >= y^2/sigma^2 + 2 log Z - log(2 pi) - 2 log(B + 1).

   The left side is at least y^2/sigma^2 + y/(2 sigma^2) - (1 + 1/(2 y)) (1 + 1e-9), because log Z >= 0 and u >= 30. So the
   inequality follows from y/(2 sigma^2) >= 2 log Z and from log(2 pi) + 2 log(B + 1) >= 5, where B >= 5 because A >= 15.

**Second bound: post-processing of normal noise.** The release is nearly a post-processing W of a normal variable Y, whose mu is
known. Let Y be normal with mean theta and variance sigma^2 - tau^2, and let W given Y = y have probabilities proportional to
e^(-(k-y)^2/(2 tau^2)).

1. *W is distributed nearly as X + theta.* By Poisson summation the normalizing sums differ from tau sqrt(2 pi) by a factor in
   [1 - rho, 1 + rho] with rho = 2 sum of e^(-2 (pi tau m)^2) over m >= 1. So the probabilities of W are those of X + theta up to a
   factor whose logarithm is at most eta = -log(1 - rho) + rho.
2. *mu of W* is at most d/sqrt(sigma^2 - tau^2), that of Y.
3. *The difference.* A change of the logarithms of p and 1 - p by at most eta moves Phi^{-1}(p) by at most 2 m(0) eta = sqrt(2 pi)
   eta (one half of it on either side of p = 1/2). Each t_k - t_(k-d) is a difference of two quantiles, so
   mu <= d/sqrt(sigma^2 - tau^2) + 2 sqrt(2 pi) eta, for every tau.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from shufflebounds._base.limits import TABLE_SIZE
from shufflebounds._base.scipy_functions import erfinv
from shufflebounds._base.types import SLACK, ULP, FloatArray, Interval
from shufflebounds.tradeoff.closed_curves import QUANTILE_ERROR
from shufflebounds.tradeoff.representation import log1mexp, log_quantile

__all__ = ["mu_bounds"]


def mu_bounds(sigma: float, shift: int, log_total: float, log_tail: Callable[[float], tuple[float, float]]) -> Interval:
    """Return bounds of mu for discrete Gaussian noise and its shift.

    `log_total` is log Z, and `log_tail` returns bounds of log S_k (module docstring). The relative gap is below 1e-9 while
    30 sigma^2 outcomes fit a table (sigma up to 186). For larger sigma it is below 2e-5 and decreases roughly as 1/sigma^2.
    """
    # `last` is K (module docstring). For K >= 1000 and K >= 2 shift, R(K + 1) is close to its limit 1/sigma. The differences t_j -
    # t_(j-1) with the smallest j exceed this limit.
    last = math.ceil(max(1000, 2 * shift, 30 * sigma**2, 4 * sigma**2 * log_total))
    above = _smoothed(sigma, shift)
    if last + shift <= TABLE_SIZE:
        low, high = _of_windows(sigma, shift, log_total, last)
        return Interval(low, min(above, max(high, shift * _windows_beyond(sigma, log_total, last + 1.0))))
    # The lower bound uses the middle window alone, where t_k - t_(k-d) = t_k + t_(d+1-k).
    k = (shift + 1) // 2
    ends = sum(_lowest_quantile(end, sigma, log_total, log_tail) for end in (k, shift + 1 - k))
    return Interval(ends * (1 - SLACK), above)


def _lowest_quantile(k: int, sigma: float, log_total: float, log_tail: Callable[[float], tuple[float, float]]) -> float:
    """Return a lower bound of t_k for k >= 1."""
    if k > sigma:
        return float(_quantiles(np.array([log_tail(float(k))[1]]), -1)[0])
    # For small k, t is computed from Pr[|X| < k]: S_k is close to 1/2, and a small error of log S_k would be a large relative error
    # of t.
    inside = 2 * float(np.exp(-0.5 * (np.arange(1.0, k) / sigma) ** 2 - log_total).sum()) + math.exp(-log_total)
    return math.sqrt(2) * float(erfinv(inside * (1 - (k + 32) * ULP))) * (1 - SLACK)


def _of_windows(sigma: float, shift: int, log_total: float, last: int) -> Interval:
    """Return bounds of the maximum of t_k - t_(k-shift) (module docstring) over (shift + 1)/2 <= k <= last + shift."""
    # The sums include `extra` further terms, so that a bound of the terms that are still omitted is negligible in every S_k.
    extra = math.ceil(12 * sigma) + 2
    j = np.arange(last + shift + extra + 1.0)
    exponent = 0.5 * (j / sigma) ** 2
    log_tails = np.logaddexp.accumulate(-exponent[::-1])[::-1]
    # Terms beyond the last one decrease at least geometrically.
    log_lost = -exponent[-1] - (j[-1] + 0.5) / sigma**2 - math.log(-math.expm1(-(j[-1] + 0.5) / sigma**2))
    j, exponent, log_tails = j[1 : last + shift + 1], exponent[1 : last + shift + 1], log_tails[1 : last + shift + 1]
    # Each addition in `accumulate` has an error of a few ulp of the logarithm. In a later sum, this error is smaller by the ratio
    # of the two sums. So each sum has the errors of about `terms` additions.
    terms = 2 + np.minimum(1.3 * sigma, sigma**2 / j)
    error = 4 * ULP * (exponent + log_total + 2) * terms
    below = _quantiles(log_tails - log_total + error + np.exp(log_lost - log_tails), -1)
    above = _quantiles(log_tails - log_total - error, 1)
    # By symmetry the values for k = 1 - shift, ..., 0 are those for k = shift, ..., 1 with the opposite sign.
    lows = np.concatenate([-above[shift - 1 :: -1], below])
    highs = np.concatenate([-below[shift - 1 :: -1], above])
    first = (shift + 1) // 2
    end, start = slice(first + shift - 1, None), slice(first - 1, last + shift)
    return Interval(float((lows[end] - highs[start]).max()), float((highs[end] - lows[start]).max()))


def _quantiles(log_tails: FloatArray, side: int) -> FloatArray:
    """Return a lower (side -1) or an upper (side 1) bound of t_k = -Phi^{-1}(S_k), given log S_k for k >= 1, where t_k >= 0."""
    log_tails = np.minimum(log_tails, -math.log(2))
    t = -log_quantile(log_tails, log1mexp(log_tails))
    return np.maximum(t + side * QUANTILE_ERROR * (1 + t), 0.0)


def _windows_beyond(sigma: float, log_total: float, j: float) -> float:
    """Return R(j) of the module docstring, which is at least every difference t_i - t_(i-1) with i >= j."""
    u = (j - 0.5) / sigma**2
    a = ((j - 1) / sigma) ** 2 / 2 + log_total + math.log1p(-math.exp(-u))
    b = math.sqrt(2 * a)
    return (u + math.exp(-u)) / math.sqrt(2 * a - 2 * math.log(b + 1) - math.log(2 * math.pi)) * (1 + SLACK)


def _smoothed(sigma: float, shift: int) -> float:
    """Return the upper bound of mu by post-processing of normal noise, at the best of several tau; inf if sigma is too small."""
    # `exponent` is 2 (pi tau)^2 in rho (module docstring): below 5 the term with eta exceeds 0.13, and at 40 this term is below the
    # rounding of mu.
    exponent = np.linspace(5.0, 45.0, 400)
    variance = sigma**2 - exponent / (2 * math.pi**2)
    exponent, variance = exponent[variance > 0], variance[variance > 0]
    rho = 2 * np.exp(-exponent) * (1 + 2 * np.exp(-3 * exponent))
    eta = rho - np.log1p(-rho)
    values = shift / np.sqrt(variance) + 2 * math.sqrt(2 * math.pi) * eta
    return float(values.min(initial=math.inf)) * (1 + SLACK)
