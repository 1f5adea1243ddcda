"""What every room of the package uses: the type of its arrays, an ulp, and the two sides of a number."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "EXP_SLACK", "ULP", "Between", "Bound", "FloatArray", "Sides", "at_each", "largest", "plain", "probability",
    "typed_as",
]

_Function = TypeVar("_Function", bound=Callable[..., Any])

FloatArray = NDArray[np.float64]

Bound = Literal["upper", "lower"]
"""The side of the exact value on which an answer lies."""

ULP = float(np.finfo(float).eps)
"""An ulp of 1: the distance to the next double, 2**-52. The kernels count in units of roundoff, half of it."""

EXP_SLACK = 4 * ULP
"""Relative error of an exponential or a logarithm of the C library, with room to spare."""


class Sides(NamedTuple):
    """A lower and an upper bound of the same numbers; unpacks like the bare pair, and the bool `upper` is the place of a side."""

    lower: FloatArray
    upper: FloatArray

    def alone(self) -> Between:
        """Return the bounds of the one number there is."""
        return Between(float(self.lower[0]), float(self.upper[0]))


class Between(NamedTuple):
    """A lower and an upper bound of one number; unpacks like the bare pair."""

    lower: float
    upper: float


def typed_as(_: _Function) -> Callable[[Callable[..., Any]], _Function]:
    """Tell type checkers that a function has the overloads of this one, whose parameters it has."""
    return lambda function: function  # type: ignore[return-value]


def plain(values: FloatArray) -> FloatArray | float:
    """Return a single number as a float, an array as it is."""
    return values if values.ndim else float(values)


def at_each(enclose: Callable[[float], Between], eps: FloatArray) -> Sides:
    """Return the sides at each eps of what is known at one."""
    sides = [enclose(e) for e in eps.tolist()]
    return Sides(np.array([lower for lower, _ in sides]), np.array([upper for _, upper in sides]))


def largest(several: Iterable[Sides]) -> Sides:
    """Return the sides of the largest of several numbers, entry by entry."""
    return Sides(*(np.max(side, axis=0) for side in zip(*several)))


def probability(log_value: FloatArray | float, upper: bool, slack: float = EXP_SLACK) -> FloatArray | float:
    """Return the exponential on the named side, in [0, 1]; from above a positive number is never 0."""
    value = np.asarray(log_value)
    if upper:
        out = np.where(value == -np.inf, 0.0, np.nextafter(np.exp(value) * (1 + slack), np.inf))
    else:
        out = np.nextafter(np.exp(value) * (1 - slack), -np.inf)
    out = np.clip(out, 0.0, 1.0)
    return plain(out)
