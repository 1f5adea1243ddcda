"""Types and constants that every subpackage uses: arrays of floats, an ulp, and pairs of a lower and an upper bound."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from shufflebounds._base.limits import COMPUTED_ERROR
from shufflebounds._base.progress import tick

__all__ = [
    "EXP_SLACK", "SLACK", "ULP", "Bound", "EqualByKey", "FloatArray", "InconsistentBoundsError", "Interval", "IntervalArray",
    "at_each", "consistent", "largest", "plain", "probability", "typed_as",
]

_Function = TypeVar("_Function", bound=Callable[..., Any])

FloatArray = NDArray[np.float64]

Bound = Literal["upper", "lower"]
"""Whether a result is an upper or a lower bound of the exact value."""

ULP = float(np.finfo(float).eps)
"""The distance from 1 to the next double, 2**-52. The kernels use the unit of roundoff instead, which is half of it."""

EXP_SLACK = 4 * ULP
"""Assumed relative error of exp and log of the C library, 4 ulp; glibc documents errors of at most 1 ulp.

A smaller value could make a bound invalid on a less accurate C library; a larger value makes every bound less tight. If it changes,
change CROSSING_SLACK in src/_core/crossing.h, too. Other modules write margins for exp, log and further operations as multiples of
ULP.
"""

SLACK = 16 * ULP
"""Relative margin for the rounding of up to 16 operations on positive numbers, or of the logarithm of such a result.

A smaller value could make a bound invalid; a larger value makes every bound less tight.
"""


class EqualByKey:
    """Equality and hash by a key, for objects with arrays, because a comparison of two arrays yields an array."""

    def _key(self) -> tuple[Any, ...]:
        """Return a key that is the same for equal objects, with arrays as bytes."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


class IntervalArray(NamedTuple):
    """Arrays of lower and upper bounds of the same numbers, as a tuple: ``sides[upper]`` with a bool selects one of the arrays."""

    lower: FloatArray
    upper: FloatArray

    def alone(self) -> Interval:
        """Return the bounds of the first number; used for arrays of length 1."""
        return Interval(float(self.lower[0]), float(self.upper[0]))


class Interval(NamedTuple):
    """A lower and an upper bound of one number, as a tuple."""

    lower: float
    upper: float


class InconsistentBoundsError(ArithmeticError):
    """A lower bound exceeds the upper bound of the same number by more than rounding, or is NaN: an error of this library.

    At least one of the two bounds is wrong, so neither is returned.

    Attributes
    ----------
    source : str
        The object whose method was called: its class and parameters.
    question : str
        The number that is bounded, with its argument.
    lower, upper : float
        The two bounds; an unknown one is infinite.
    """

    __module__ = "shufflebounds"

    def __init__(self, question: str, lower: float, upper: float) -> None:
        super().__init__(question, lower, upper)
        self.source, self.question, self.lower, self.upper = "", question, lower, upper

    def __str__(self) -> str:
        owner = f"{self.source}: " if self.source else ""
        if self.lower != self.lower or self.upper != self.upper:
            return (f"{owner}a bound of {self.question} is NaN. This is an error of shufflebounds: please report it with this "
                    "message")
        return (f"{owner}the lower bound {self.lower!r} of {self.question} exceeds the upper bound {self.upper!r}. At least one of "
                "them is wrong, so use neither. This is an error of shufflebounds: please report it with this message")


def consistent(bounds: IntervalArray, question: str, at: FloatArray) -> IntervalArray:
    """Return bounds of several numbers, or raise InconsistentBoundsError if a lower bound exceeds its upper bound beyond rounding.

    A lower bound that exceeds its upper bound by rounding is replaced by the upper bound.

    Parameters
    ----------
    bounds : IntervalArray
        NaN counts as no bound.
    question : str
        What is bounded, with a place for the argument, such as "log delta at eps={!r}"; logarithms start with "log".
    at : ndarray
        The argument for each number.
    """
    lower, upper = bounds
    if lower.item() > upper.item() if lower.size == 1 else (lower > upper).any():
        above = lower > upper
        # Rounding may invert two bounds of one exact value. The permitted excess is relative to the value, or to 1 + |log value|
        # for logarithms.
        size = np.where(np.isfinite(upper), np.abs(upper), 0.0) + question.startswith("log")
        above &= ~(lower - upper <= COMPUTED_ERROR * size)
        for place in np.flatnonzero(above)[:1].tolist():
            raise InconsistentBoundsError(question.format(float(at[place])), float(lower[place]), float(upper[place]))
        return IntervalArray(np.minimum(lower, upper), upper)
    return bounds


def typed_as(_: _Function) -> Callable[[Callable[..., Any]], _Function]:
    """Return a decorator for type checkers: it gives a function the type of the argument, including its overloads."""
    return lambda function: function  # type: ignore[return-value]


def plain(values: FloatArray) -> FloatArray | float:
    """Return an array of dimension 0 as a float, and any other array unchanged."""
    return values if values.ndim else float(values)


def at_each(enclose: Callable[[float], Interval], eps: FloatArray) -> IntervalArray:
    """Return the bounds that the function `enclose` of a single eps gives at each entry of an array."""
    sides = []
    for e in eps.tolist():
        sides.append(enclose(e))
        tick()
    return IntervalArray(np.array([lower for lower, _ in sides]), np.array([upper for _, upper in sides]))


def largest(several: Iterable[IntervalArray]) -> IntervalArray:
    """Return bounds of the maximum of several numbers, entry by entry."""
    return IntervalArray(*(np.max(side, axis=0) for side in zip(*several)))


def probability(log_value: FloatArray | float, upper: bool, slack: float = EXP_SLACK) -> FloatArray | float:
    """Return an upper or a lower bound of exp(log_value), clipped to [0, 1]; an upper bound is 0 only if log_value is -inf."""
    value = np.asarray(log_value)
    if upper:
        out = np.where(value == -np.inf, 0.0, np.nextafter(np.exp(value) * (1 + slack), np.inf))
    else:
        out = np.nextafter(np.exp(value) * (1 - slack), -np.inf)
    out = np.clip(out, 0.0, 1.0)
    return plain(out)
