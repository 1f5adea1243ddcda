"""Hockey stick of a sum of flipped bits between r zeros and r ones of its target."""

from __future__ import annotations

import math

import numpy as np

from shufflebounds._core._blocks import Lattice
from shufflebounds._types import UNIT


class _Law:
    """The sum of so many flipped ones and zeros."""

    def __init__(self, ones: int, zeros: int, flip: float) -> None:
        chances, counts = np.array([1 - flip, flip]), np.array([ones, zeros], dtype=np.float64)
        held = counts > 0
        self.trials = ones + zeros
        self.lattice = Lattice(chances[held], counts[held], chances[::-1][held].copy())

    def log_pmf(self, k: int) -> tuple[float, float]:
        if k in (0, self.trials):
            value = self.lattice.edge(k > 0)
            return value, 1e-14 + 8 * UNIT * abs(value)
        _, value, error = self.lattice.point(float(k), k > self.lattice.mean)
        return value, error

    def log_cdf(self, k: int) -> tuple[float, float]:
        if k == 0:
            return self.log_pmf(0)
        return self.lattice.tail(float(k), False) if k < self.trials else (0.0, 0.0)


def log_delta(ones: int, zeros: int, width: int, flip: float, eps: float) -> tuple[float, float]:
    """Return bounds of log H(P || Q) at eps < width ln((1-flip)/flip), 0 < flip < 1/2.

    P and Q: `ones` and `zeros` other bits, and `width` of the target's, all 0 under P and all 1 under Q. P/Q falls with the
    sum, so H = Pr_P[S <= k] - e^eps Pr_Q[S <= k] for the last k with P(k) > e^eps Q(k). The two tails differ by about the
    distance in sigmas over the shift in sigmas; their errors are taken over that difference.
    """
    first, second = _Law(ones, zeros + width, flip), _Law(ones + width, zeros, flip)

    def gain(k: int) -> tuple[float, float]:
        (log_p, error), (log_q, other) = first.log_pmf(k), second.log_pmf(k)
        return log_p - log_q - eps, error + other + 4 * UNIT * (abs(log_p) + abs(log_q) + eps)

    # gain falls in k, from positive at 0 to negative at the last
    low, high, slope = 0, first.trials, width * (1 - 2 * flip) / max(first.lattice.var, 0.25)
    k = math.floor(first.lattice.mean + 0.5 * width * (1 - 2 * flip) - eps / slope)
    for _ in range(200):
        if high - low <= 1:
            break
        k = min(max(k, low + 1), high - 1)
        value, _ = gain(k)
        if value > 0:
            low = k
        else:
            high = k
        # the next guess by the local slope, a little beyond, so that both ends close in
        k += math.floor(value / slope) + (1 if value > 0 else 0)
        if not low < k < high:
            k = (low + high) // 2 if high - low > 4 else low + 1
    k = low
    (log_f, f_error), (log_g, g_error) = first.log_cdf(k), second.log_cdf(k)
    log_p, p_error = first.log_pmf(k)
    ratio = math.exp(min(log_g + eps - log_f, 0.0))
    f_error += 4 * UNIT * (abs(log_f) + 4)
    g_error += 4 * UNIT * (abs(log_g) + eps + 4)
    # a threshold misjudged at a tie costs its mass times the error of the ratio there
    tie = 8 * (p_error + 8 * UNIT * (abs(log_p) + eps + 1)) * math.exp(min(log_p - log_f, 0.0))
    error = f_error + g_error * ratio + tie
    value = -math.expm1(min(log_g + eps - log_f, 0.0))
    lower = log_f + math.log(value - error) if value > error else -math.inf
    return lower, log_f + math.log(value + error)
