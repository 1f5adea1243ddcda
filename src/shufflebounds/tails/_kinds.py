"""The three functions of a distribution on the integers, by which the kernels are called."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["Kind"]


class Kind(IntEnum):
    """A function of a distribution; the numbers are codes of the kernels, and the tails have opposite ones."""

    PMF = 0
    UPPER = 1
    LOWER = -1
