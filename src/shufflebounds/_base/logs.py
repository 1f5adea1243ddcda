"""Sums and exponentials of logarithms as single numbers."""

from __future__ import annotations

import math

import numpy as np

from shufflebounds._base.limits import LARGEST_EXPONENT
from shufflebounds._base.types import FloatArray

__all__ = ["capped_exp", "log_sum"]


def log_sum(logs: FloatArray) -> float:
    """Return the log of the sum of the exponentials; -inf for no terms."""
    top = float(logs.max(initial=-math.inf))
    return top + math.log(float(np.exp(logs - top).sum())) if -math.inf < top < math.inf else top


def capped_exp(exponent: float) -> float:
    """Return e^exponent, or e^LARGEST_EXPONENT if the exponent is larger; for error bounds, which are useless at that size."""
    return math.exp(min(exponent, LARGEST_EXPONENT))
