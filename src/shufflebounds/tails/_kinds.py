"""The three functions of a distribution on the integers, by which the kernels are called, and the check of their argument k."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import ArrayLike

from shufflebounds import _validate
from shufflebounds._types import FloatArray

__all__ = ["Kind", "checked_k"]


class Kind(IntEnum):
    """A function of a distribution; the numbers are codes of the kernels, and the tails have opposite ones."""

    PMF = 0
    UPPER = 1
    LOWER = -1


def checked_k(k: ArrayLike) -> FloatArray:
    """Return k as an array of floats; raise ValueError if an entry is no real number."""
    values = _validate.floats("k", k, "a real number")
    if np.isnan(values).any():
        raise ValueError("k has a NaN: every k must be a real number")
    return values
