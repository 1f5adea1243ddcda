r"""Bounds of the Renyi divergences of a pair from its hockey-stick divergences in both orders.

.. math:: \mathrm{E}_Q[(P/Q)^a] = 1 + a (a-1) \int_0^\infty e^{(a-1)t} H_{e^t}(P\|Q) + e^{-at} H_{e^t}(Q\|P)\,dt

This is the integral of an f-divergence over hockey-stick divergences (I. Sason, S. Verdu, f-divergence inequalities, 2016) with
f = x^a; for a = 1 the integral is the divergence itself. All terms are positive, so small divergences have a small relative error.
Between samples H is bounded above and below by straight lines in e^t.
"""

from __future__ import annotations

import math

import numpy as np

from shufflebounds._limits import COMPUTED_ERROR
from shufflebounds._quadrature import STEEPEST
from shufflebounds._types import ULP, FloatArray, Interval
from shufflebounds.composing.sampled_profile import SampledProfile

__all__ = ["mixture_renyi", "renyi"]

FEW_VALUES = 256
"""If at most this number of values of delta may be evaluated, the intervals with the largest gaps are divided first. Raised: larger
gaps if more values of an expensive divergence may be evaluated. Lowered: a few values are spread over gaps that do not matter."""


def _beyond(samples: SampledProfile, power: float) -> float:
    """Return an upper bound of the log of the integral of e^(power t) H_(e^t) over all t beyond the last sample."""
    if samples.high[-1] == -math.inf:
        return -math.inf
    return float(samples.high[-1]) + power * float(samples.eps[-1]) - math.log(-power) if power < 0 else math.inf


def renyi(own: SampledProfile, reverse: SampledProfile, order: float, upper: bool, rtol: float, most: int) -> Interval:
    """Return bounds of D_order(P||Q) from samples of H(P||Q) (`own`) and of H(Q||P) (`reverse`).

    Samples are added until the relative gap is at most rtol or `most` are evaluated. With `upper`, an infinite upper bound is
    returned without adding samples.
    """
    powers = order - 1, -order
    sides = ((own, powers[0]), (reverse, powers[1])) if own is not reverse else ((own, powers[0]), (own, powers[1]))
    while True:
        parts = [s.integrals(reverse if s is own else own, power) for s, power in sides]
        low = np.logaddexp(parts[0][0], parts[1][0])
        high = np.logaddexp(parts[0][1], parts[1][1])
        beyond = max(_beyond(s, power) for s, power in sides)
        if upper and beyond == math.inf:
            return Interval(0.0, math.inf)
        if high == -math.inf or high - low <= rtol:
            break
        wanted = 0
        share = max(sum(part[2].size for part in parts), 1)
        gaps = [part[2] for part in parts]
        if own is reverse:
            gaps = [np.logaddexp(*gaps)]
        for (samples, power), gap in zip(sides, gaps):
            if samples.evaluations >= most:
                continue
            allowed = max(low, high - 50) + math.log(rtol / 2 / share)
            width = np.diff(samples.eps)
            if most <= FEW_VALUES:
                # If only a few values may be evaluated, the intervals whose gaps exceed e^-4 times the largest gap are divided
                # first.
                allowed = max(allowed, float(max(part.max(initial=-math.inf) for part in gaps)) - 4.0)
            open_ = (gap > allowed) & (width > 1e-12 * samples.eps[1:])
            steepest = order if own is reverse else max(abs(power), 1.0)
            # If the gap of delta itself is as large as the decrease of delta over the interval, more samples do not help.
            with np.errstate(invalid="ignore"):
                fall, loss_error = -np.diff(samples.high), samples.high - samples.low
                # Straight lines in e^eps exceed delta by up to the square of the fall of log delta, divided by 8: 0.1 % for 0.1.
                # With a smaller fall more values of delta are evaluated.
                enough = np.minimum(4 * np.maximum(loss_error[:-1], loss_error[1:]), 0.1)
                # The lower bound becomes 0 somewhere in this interval, which is divided down to a relative width of 1e-3.
                ends = (samples.low[:-1] > -np.inf) & (samples.low[1:] == -np.inf) & (width > 1e-3 * samples.eps[1:])
                open_ &= (steepest * width > STEEPEST) | ~(fall < enough) | ends
            before = samples.evaluations
            middle = 0.5 * (samples.eps[:-1] + samples.eps[1:])[open_]
            samples.add(middle)
            wanted += samples.evaluations - before
        if wanted == 0:
            break
    most_logs = float(np.logaddexp(high, beyond + math.log(2))) + COMPUTED_ERROR
    return Interval(_divergence(order, float(low) - COMPUTED_ERROR) * (1 - 4e-16), _divergence(order, most_logs) * (1 + 4e-16))


def _divergence(order: float, total: float) -> float:
    """Return the Renyi divergence of this order, given the log of the integral in the module docstring."""
    if total == -math.inf:
        return 0.0
    if order == 1:
        return math.exp(total) if total < 709 else math.inf
    return float(np.logaddexp(0.0, math.log(order) + math.log(order - 1) + total)) / (order - 1)


def mixture_renyi(orders: FloatArray, divergences: FloatArray, rate: float) -> FloatArray:
    r"""Return an upper bound of the Renyi divergences of :math:`(q P + (1-q) R, q Q + (1-q) R)`, given those of (P, Q).

    .. math:: D_a \le \frac{1}{a-1} \log\bigl(1 - q + q\, e^{(a-1) D_a(P \| Q)}\bigr), \qquad D_1 \le q\, D_1(P \| Q),

    for every R, as :math:`\sum_y P^a Q^{1-a}` and the Kullback-Leibler divergence are jointly convex. R may be P or Q. For order
    inf the divergence of (P, Q) itself is returned.
    """
    step = orders - 1
    with np.errstate(all="ignore"):
        grown = step * divergences
        near = np.log1p(rate * np.expm1(np.minimum(grown, 700.0)))
        # Both terms of the sum have absolute errors of a few ulp, which are added.
        far = np.logaddexp(math.log1p(-rate) if rate < 1 else -math.inf, math.log(rate) + grown)
        far = far + 8 * ULP * (grown - math.log(rate))
        value = np.where(step == 0, rate * divergences, np.where(grown < 700, near, far) / step)
        value = np.where(np.isinf(orders) | np.isinf(divergences), divergences, np.minimum(value, divergences))
    return np.asarray(value * (1 + 16 * ULP))
