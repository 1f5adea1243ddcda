"""What every room of the package uses: the type of its arrays, the roundoff unit, and the two sides of a number."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["EXP_SLACK", "SIDES", "UNIT", "Bound", "FloatArray", "Sides"]

FloatArray = NDArray[np.float64]

Bound = Literal["upper", "lower"]
"""The side of the exact value on which an answer lies."""

SIDES = ("lower", "upper")
"""The two bounds, in the order in which every function returns them."""

UNIT = float(np.finfo(float).eps)
"""Distance from 1 to the next double, 2**-52."""

EXP_SLACK = 4 * UNIT
"""Relative error of an exponential or a logarithm of the C library, with room to spare."""


class Sides(NamedTuple):
    """A lower and an upper bound of the same numbers; unpacks like the bare pair."""

    lower: FloatArray
    upper: FloatArray
