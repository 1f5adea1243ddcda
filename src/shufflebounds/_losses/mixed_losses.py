"""The privacy loss of a mechanism whose record is sampled with probability q, from the loss of the mechanism."""

from __future__ import annotations

import numpy as np

from shufflebounds._base.limits import LARGEST_EXPONENT
from shufflebounds._base.types import FloatArray

__all__ = ["mixed_losses"]


def mixed_losses(loss: FloatArray, rate: float) -> FloatArray:
    """Return log(1 - rate + rate e^loss), with a relative error of at most 8 ulp."""
    if rate == 1:
        return loss
    gain = rate * np.expm1(np.minimum(loss, LARGEST_EXPONENT))
    # For a negative loss, the argument of the log is a sum of positive terms, which has no cancellation.
    low = np.log((1 - rate) + rate * np.exp(np.minimum(loss, 0.0)))
    # For losses above 700, e^loss overflows; the result is loss + log(rate), plus a term of at most (1 - rate)/rate e^-700.
    far = loss + np.log(rate + (1 - rate) * np.exp(-np.maximum(loss, LARGEST_EXPONENT)))
    return np.asarray(np.where(loss >= LARGEST_EXPONENT, far, np.where(gain < -0.5, low, np.log1p(np.maximum(gain, -0.5)))))
