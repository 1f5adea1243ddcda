r"""Bounds of the Renyi divergences of a pair from its hockey-stick divergences in both orders.

.. math:: \mathrm{E}_Q[(P/Q)^a] = 1 + a (a-1) \int_0^\infty e^{(a-1)t} H_{e^t}(P\|Q) + e^{-at} H_{e^t}(Q\|P)\,dt

This is the integral of an f-divergence over hockey-stick divergences (I. Sason, S. Verdu, f-divergence inequalities, 2016) with f =
x^a. For a = 1 the integral is the Kullback-Leibler divergence. All terms are positive, so small divergences have a small relative
error. Between samples H is bounded above and below by straight lines in e^t.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from functools import cache, partial
from typing import Protocol

import numpy as np

from shufflebounds._base.limits import COMPUTED_ERROR, LARGEST_EXPONENT
from shufflebounds._base.quadrature import STEEPEST
from shufflebounds._base.types import ULP, FloatArray, Interval
from shufflebounds._losses.sampled_profile import INTERPOLATED, SampledProfile, alone

__all__ = ["enough_fall", "log_levels", "mixture_renyi", "mixture_tail", "renyi", "upper_renyi"]

Tail = Callable[[float, float], float]
"""Returns, given (power, start), an upper bound of the log of the integral of e^(power t) H_(e^t)(P||Q) over t > start."""


class KnownUpper(Protocol):
    """An upper bound of H whose integral is known for some orders."""

    def level(self, order: float, eps: float) -> float:
        """Return an approximation of the log of this upper bound at eps, or -inf if :meth:`log_rest` cannot integrate it."""

    def log_rest(self, order: int, start: float) -> float:
        """Return an upper bound of the log of the integral in the module docstring over t > start, for this bound of H."""


FEW_VALUES = 256
"""If at most this number of values of delta may be evaluated, the intervals with the largest gaps are divided first. Raised: less
tight bounds, because small gaps are not divided. Lowered: few values are spread over negligible gaps."""


_SHARE, _MOST_SHARE = 1 / 16, 2.0
"""If upper bounds alone are sampled, interpolation may add this fraction of the gap between the upper and the lower bound of the
divergence, but at most 2 rtol. Raised: less tight bounds. Lowered: more samples."""


def _beyond(samples: SampledProfile, power: float, tail: Tail | None) -> float:
    """Return an upper bound of the log of the integral of e^(power t) H_(e^t) over all t beyond the last sample."""
    last, start = float(samples.high[-1]), float(samples.eps[-1])
    if last == -math.inf:
        return -math.inf
    if power < 0:
        return last + power * start - math.log(-power)
    if tail is None:
        return math.inf
    # H does not increase with eps. So the last sample bounds H up to any larger eps, and `tail` bounds the integral beyond that
    # eps.
    rest = tail(power, start)
    for end in (start * 2.0 ** np.arange(0.25, 10, 0.25)).tolist():
        constant = last + power * end + math.log(end - start) if end > start else math.inf
        if constant >= rest:
            break
        rest = min(rest, float(np.logaddexp(constant, tail(power, end))) + COMPUTED_ERROR)
    return rest


def renyi(own: SampledProfile, reverse: SampledProfile, order: float, upper: bool, rtol: float, most: int,
          tail: Tail | None = None, cap: float = math.inf) -> Interval:
    """Return bounds of D_order(P||Q) from samples of H(P||Q) (`own`) and of H(Q||P) (`reverse`).

    Samples are added until the relative gap is at most rtol, or until `most` are evaluated. If `upper` is true, an infinite upper
    bound is returned without adding samples. `tail` bounds the integral beyond the last sample if H(P||Q) is positive at every eps.
    `cap` is another upper bound of the divergence, for a caller that needs no lower bound: no samples are added if no upper bound
    from them can be below `cap` by more than a relative rtol.
    """
    powers = order - 1, -order
    sides = ((own, powers[0]), (reverse, powers[1])) if own is not reverse else ((own, powers[0]), (own, powers[1]))
    while True:
        parts = [s.integrals(reverse if s is own else own, power) for s, power in sides]
        low = np.logaddexp(parts[0][0], parts[1][0])
        high = np.logaddexp(parts[0][1], parts[1][1])
        beyond = max(_beyond(s, power, tail) for s, power in sides)
        if upper and beyond == math.inf:
            return Interval(0.0, math.inf)
        if tail is not None and beyond > high + math.log(rtol) and own.evaluations < most:
            farther = _end(tail, powers[0], float(own.eps[-1]), float(low) + math.log(rtol) - 1)
            if farther is not None:
                own.add(np.array([farther]))
                continue
        if high == -math.inf or high - low <= rtol or (cap < math.inf and _least_upper(own, reverse, order) >= cap * (1 - rtol)):
            break
        wanted = 0
        share = max(sum(part[2].size for part in parts), 1)
        # `fixed` is the part of the gap that more samples do not reduce.
        fixed = float(np.logaddexp.reduce(np.concatenate([part[3] for part in parts]), initial=-np.inf))
        gaps = [part[2] for part in parts]
        if own is reverse:
            gaps = [np.logaddexp(*gaps)]
        for (samples, _), gap in zip(sides, gaps):
            if samples.evaluations >= most:
                continue
            allowed = max(max(low, high - 50) + math.log(rtol / 2), fixed + math.log(INTERPOLATED)) - math.log(share)
            width = np.diff(samples.eps)
            if most <= FEW_VALUES:
                # If only a few values of delta may be evaluated, first divide the intervals with gaps above e^-4 times the largest
                # gap.
                allowed = max(allowed, float(max(part.max(initial=-math.inf) for part in gaps)) - 4.0)
            open_ = (gap > allowed) & (width > 1e-12 * samples.eps[1:])
            with np.errstate(invalid="ignore"):
                fall, loss_error = -np.diff(samples.high), samples.high - samples.low
                own_gap = np.maximum(loss_error[:-1], loss_error[1:])
                # If losses are unbounded, each delta takes longer: log delta may then fall by sqrt(own_gap)/4 over an interval,
                # even if this exceeds the 0.1 of `enough_fall`. If at most FEW_VALUES/4 values may be evaluated, log delta may
                # fall by d = sqrt(own_gap): linear interpolation then widens the relative gap by up to d^2/8 = own_gap/8.
                enough = enough_fall(own_gap)
                part = 1.0 if 4 * most <= FEW_VALUES else 0.25
                enough = enough if tail is None else np.maximum(enough, part * np.sqrt(own_gap))
                # `ends` marks the interval in which the lower bound falls to 0. It is divided until its relative width is at most
                # 1e-3.
                ends = (samples.low[:-1] > -np.inf) & (samples.low[1:] == -np.inf) & (width > 1e-3 * samples.eps[1:])
                # Divide intervals in which the integrand for H(P||Q) or that for H(Q||P) changes by more than the quadrature
                # permits (STEEPEST).
                open_ &= (order * width > STEEPEST) | ~(fall < enough) | ends
            before = samples.evaluations
            middle = 0.5 * (samples.eps[:-1] + samples.eps[1:])[open_]
            samples.add(middle)
            wanted += samples.evaluations - before
        if wanted == 0:
            break
    most_logs = float(np.logaddexp(high, beyond + math.log(2))) + COMPUTED_ERROR
    lower, upper_bound = _divergence(order, float(low) - COMPUTED_ERROR) * (1 - 4e-16), _divergence(order, most_logs) * (1 + 4e-16)
    # Upper bounds of delta need not be convex in e^eps. `upper_bound` is computed from their convex hull, and may be below `lower`.
    return Interval(min(lower, upper_bound), upper_bound)


def _least_upper(own: SampledProfile, reverse: SampledProfile, order: float) -> float:
    """Return the Renyi divergence computed from lines below the given upper bounds of H.

    With more samples, no upper bound of the Renyi divergence is smaller than this.
    """
    one, other = alone(own, reverse, True)
    return _divergence(order, float(np.logaddexp(one.integrals(other, order - 1)[0], other.integrals(one, -order)[0])))


def upper_renyi(samples: SampledProfile, order: float, rtol: float, most: int, tail: Tail | None, lower: float,
                other: KnownUpper | None = None, cap: float = math.inf) -> float:
    """Return an upper bound of the larger one of D_order(P||Q) and D_order(Q||P) from samples of upper bounds of H.

    Samples are added as in `renyi`, one or a few at a time, until the error of the interpolation is small compared with the gap
    between the result and `lower`. `lower` is a lower bound of the divergence, or -inf. `other` is another upper bound of H: beyond
    the first eps at which it is as small as the samples, the integral of `other` is used. `cap` is another upper bound of the
    divergence: no samples are added if no upper bound from them can be below `cap` by more than a relative rtol.
    """
    level = None if other is None else cache(partial(other.level, order))
    with np.errstate(all="ignore"):
        log_least = float(np.log(np.expm1((order - 1) * lower) / (order * (order - 1)) if order > 1 else lower))
    while True:
        hull = samples.alone(True)
        eps, high, size = hull.eps.tolist(), hull.high.tolist(), hull.eps.size
        if level is not None:
            size = 1 + bisect_left(range(size - 1), True, 1, key=lambda i: -math.inf < level(eps[i]) <= high[i] + rtol)
        hull.eps, hull.low, hull.high = hull.eps[:size], hull.low[:size], hull.high[:size]
        own, reverse = (hull.integrals(hull, power) for power in (order - 1, -order))
        log_sum, gap = float(np.logaddexp(own[1], reverse[1])), np.logaddexp(own[2], reverse[2])
        beyond, end = float(np.logaddexp(_beyond(hull, order - 1, tail), _beyond(hull, -order, tail))), float(hull.eps[-1])
        settled = size < len(eps)
        if settled and other is not None:
            beyond = min(beyond, other.log_rest(int(order), end))
        if beyond == math.inf:
            return math.inf
        share = max(1.0, min(_SHARE * (log_sum - log_least) / rtol, _MOST_SHARE)) if log_least > -math.inf else 1.0
        gap = np.exp(gap - log_sum)
        if samples.evaluations >= most or log_sum == -math.inf:
            break
        # The integrals of lines below the given bounds of H: no samples reduce the bound of the divergence below this.
        if cap < math.inf and _divergence(order, float(np.logaddexp(own[0], reverse[0]))) >= cap * (1 - rtol):
            break
        if not settled and beyond > log_sum + math.log(share * rtol / 4) and 2 * end < LARGEST_EXPONENT:
            samples.add(np.array([2 * end]))
            continue
        # If an interval is divided into k parts, its gap becomes about 1/k^2 of the former gap. The total number of parts is the
        # smallest if k is proportional to the cube root of the gap of the interval. The linear interpolation has an error of less
        # than half of the gap.
        parts = np.minimum(np.round(np.cbrt(gap) * math.sqrt(np.cbrt(gap).sum() / (2 * share * rtol)) + 0.1), 4.0)
        open_ = (parts > 1) & (np.diff(hull.eps) > 1e-12 * hull.eps[1:])
        if gap.sum() <= 2 * share * rtol or not open_.any():
            break
        # The logarithm of the integrand may fall by any number, at the pure budget by infinity. An interval over which it falls by
        # more than 12 is divided again in a later round.
        falls = np.clip(-np.diff(hull.high) - (order - 1) * np.diff(hull.eps), 1e-6, 12.0)
        samples.add(np.concatenate([_divided(*one) for one in zip(
            hull.eps[:-1][open_].tolist(), hull.eps[1:][open_].tolist(), falls[open_].tolist(), parts[open_].tolist())]))
    return _divergence(order, float(np.logaddexp(log_sum, beyond)) + COMPUTED_ERROR) * (1 + 4e-16)


def _divided(left: float, right: float, fall: float, parts: float) -> FloatArray:
    """Return points that divide an interval for linear interpolation of a function that falls exponentially.

    The function falls by a factor of e^-fall over the interval.

    Their density is proportional to the cube root of the second derivative.
    """
    share = np.arange(1, parts) / parts
    return left - (right - left) * 3 / fall * np.log1p(share * math.expm1(-fall / 3))


def least_divergence(samples: SampledProfile, orders: FloatArray) -> FloatArray:
    r"""Return lower bounds of the largest Renyi divergence over several pairs, from samples of lower bounds of their largest H.

    .. math:: D_a \ge t + \frac{\log (a H_{e^t}) - (a-1) \log(1 - 1/a)}{a - 1}, \qquad D_a \ge D_1 \ge 2 H_1^2,

    The first inequality is that of `log_levels`, solved for the divergence; the last one is that of Pinsker. At every t some pair
    attains the largest H, so the inequalities hold for the largest divergences, too.
    """
    seen = samples.low > -np.inf
    with np.errstate(all="ignore"):
        step = (orders - 1)[:, None]
        value = samples.eps[seen] + (samples.low[seen] - COMPUTED_ERROR + np.log1p(step) - step * np.log(step / (step + 1))) / step
    total = 2 * math.exp(2 * samples.low[0]) * (1 - COMPUTED_ERROR)
    return np.asarray(np.maximum(np.max(np.where(step > 0, value, 0.0), axis=1, initial=0.0), total))


def enough_fall(own_gap: FloatArray) -> FloatArray:
    """Return a decrease of log delta; more samples do not help in an interval over which log delta decreases by less.

    If log delta decreases by d, a straight line in e^eps between the ends exceeds delta by a fraction of up to d^2/8. The permitted
    fraction is 0.125 %, or 1/4 of `own_gap` (the relative gap of the bounds of delta themselves), whichever is smaller.
    """
    return np.minimum(np.sqrt(2 * own_gap), 0.1)


def _end(tail: Tail, power: float, start: float, little: float) -> float | None:
    """Return an eps beyond which the integral bounded by `tail` is at most e^little, found by doubling; None if above 700."""
    end = max(2 * start, 1.0)
    while tail(power, end) > little:
        end *= 2
        if end > LARGEST_EXPONENT:
            return None
    return end


def log_levels(orders: FloatArray, divergences: FloatArray, eps: float | FloatArray) -> FloatArray:
    r"""Return upper bounds of log H at eps, one for each order b > 1, given the Renyi divergences of these orders.

    .. math:: H_{e^t} \le \frac{1}{b} \Bigl(1 - \frac1b\Bigr)^{b-1} e^{(b-1)(D_b - t)},

    Proof: for the likelihood ratio x = P/Q, the function :math:`(1 - e^t/x)_+ x^{1-b}` is largest at x = e^t b/(b - 1).
    """
    return np.asarray((orders - 1) * (np.log1p(-1 / orders) + divergences - eps) - np.log(orders))


def mixture_tail(power: float, start: float, orders: FloatArray, divergences: FloatArray, rate: float) -> float:
    """Return an upper bound of the log of the integral of e^(power t) H_(e^t) over t > start for a mixture (see `mixture_renyi`).

    By the joint convexity of the hockey-stick divergence, H of the mixture is at most q = `rate` times the bound of `log_levels`.
    The smallest bound over the given orders b > power + 1 is used.
    """
    with np.errstate(all="ignore"):
        step = orders - 1
        value = math.log(rate) + log_levels(orders, divergences, start) + power * start
        value = np.where(step > power, value - np.log(step - power), np.inf)
    return float(np.nanmin(value)) + COMPUTED_ERROR


def _divergence(order: float, total: float) -> float:
    """Return the Renyi divergence of the given order, computed from the log of the integral in the module docstring."""
    if total == -math.inf:
        return 0.0
    if order == 1:
        return math.exp(total) if total < 709 else math.inf
    return float(np.logaddexp(0.0, math.log(order) + math.log(order - 1) + total)) / (order - 1)


def mixture_renyi(orders: FloatArray, divergences: FloatArray, rate: float) -> FloatArray:
    r"""Return an upper bound of the Renyi divergences of :math:`(q P + (1-q) R, q Q + (1-q) R)`, given those of (P, Q).

    .. math:: D_a \le \frac{1}{a-1} \log\bigl(1 - q + q\, e^{(a-1) D_a(P \| Q)}\bigr), \qquad D_1 \le q\, D_1(P \| Q),

    These inequalities hold for every distribution R, because :math:`\sum_y P^a Q^{1-a}` and the Kullback-Leibler divergence are
    jointly convex. For order inf the divergence of (P, Q) itself is returned.
    """
    step = orders - 1
    with np.errstate(all="ignore"):
        grown = step * divergences
        near = np.log1p(rate * np.expm1(np.minimum(grown, LARGEST_EXPONENT)))
        # The argument log(rate) + grown has an absolute error of a few ulp of |log(rate)| + grown; a bound of it is added.
        far = np.logaddexp(math.log1p(-rate) if rate < 1 else -math.inf, math.log(rate) + grown)
        far = far + 8 * ULP * (grown - math.log(rate))
        value = np.where(step == 0, rate * divergences, np.where(grown < LARGEST_EXPONENT, near, far) / step)
        value = np.where(np.isinf(orders) | np.isinf(divergences), divergences, np.minimum(value, divergences))
    return np.asarray(value * (1 + 16 * ULP))
