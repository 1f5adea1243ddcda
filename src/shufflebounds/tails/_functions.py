"""Codes for what a kernel computes: the pmf, the upper tail or the lower tail of a distribution on the integers.

The module also validates the argument k.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import ArrayLike

from shufflebounds._base import validate as _validate
from shufflebounds._base.types import FloatArray

__all__ = ["Kind", "checked_k"]


class Kind(IntEnum):
    """The function that a kernel computes.

    The values are the codes of the kernel; the codes of the two tails differ only in sign.
    """

    PMF = 0
    UPPER = 1
    LOWER = -1


def checked_k(k: ArrayLike) -> FloatArray:
    """Return k as an array of floats; raise ValueError if an entry is no real number."""
    values = _validate.floats("k", k, "a real number")
    if np.isnan(values).any():
        raise ValueError("k has a NaN: every k must be a real number")
    return values
