"""Interval arithmetic with gradients over many boxes at once, for proofs that a function is positive."""

from __future__ import annotations

import numpy as np


def product(a_low, a_high, b_low, b_high):
    """Return the smallest and the largest value of the product of two intervals."""
    corners = np.stack([a_low * b_low, a_low * b_high, a_high * b_low, a_high * b_high])
    return corners.min(axis=0), corners.max(axis=0)


class Ranges:
    """Ranges of a function and of its partial derivatives over boxes: row 0 is the function, the others are the derivatives."""

    def __init__(self, low, high):
        self.low, self.high = low, high

    @classmethod
    def variables(cls, lows, highs):
        """Return the coordinates of the boxes as functions on the boxes."""
        found = []
        for place, (low, high) in enumerate(zip(lows, highs)):
            rows = np.zeros((2, len(lows) + 1, low.size))
            rows[:, 0] = low, high
            rows[:, place + 1] = 1.0
            found.append(cls(*rows))
        return found

    def __add__(self, other):
        if isinstance(other, Ranges):
            return Ranges(self.low + other.low, self.high + other.high)
        low, high = self.low.copy(), self.high.copy()
        low[0] += other
        high[0] += other
        return Ranges(low, high)

    __radd__ = __add__

    def __neg__(self):
        return Ranges(-self.high, -self.low)

    def __sub__(self, other):
        return self + -other

    def __rsub__(self, other):
        return -self + other

    def __mul__(self, other):
        if not isinstance(other, Ranges):
            return Ranges(np.minimum(self.low * other, self.high * other), np.maximum(self.low * other, self.high * other))
        low, high = product(self.low[0], self.high[0], other.low, other.high)
        more = product(other.low[0], other.high[0], self.low[1:], self.high[1:])
        low[1:] += more[0]
        high[1:] += more[1]
        return Ranges(low, high)

    __rmul__ = __mul__

    def mapped(self, value, slope):
        """Return g(self) for a monotone function g, from the ranges of g and of its derivative."""
        low, high = product(*slope, self.low[1:], self.high[1:])
        return Ranges(np.vstack([value[0], low]), np.vstack([value[1], high]))

    def inverse(self):
        """Return 1/self for a positive function."""
        return self.mapped((1 / self.high[0], 1 / self.low[0]), (-(self.low[0] ** -2), -(self.high[0] ** -2)))

    def sqrt(self):
        """Return the square root of a nonnegative function."""
        low, high = np.sqrt(self.low[0]), np.sqrt(self.high[0])
        return self.mapped((low, high), (0.5 / high, 0.5 / low))

    def exp(self):
        """Return the exponential of self."""
        values = np.exp(self.low[0]), np.exp(self.high[0])
        return self.mapped(values, values)
