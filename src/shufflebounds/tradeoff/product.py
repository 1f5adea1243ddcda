"""The curve of two independent pairs together."""

from __future__ import annotations

import math

import numpy as np

from shufflebounds._types import ULP, FloatArray
from shufflebounds.tradeoff.closed import Gaussian
from shufflebounds.tradeoff.piecewise import Piecewise
from shufflebounds.tradeoff.representation import Representation

__all__ = ["MOST_PRODUCTS", "product"]

MOST_PRODUCTS = 2**22


def product(first: Representation, second: Representation) -> Representation:
    """Return the form of the product, or raise ValueError where none is at hand."""
    if isinstance(first, Gaussian) and isinstance(second, Gaussian):
        # two bounds on one side are one of the product, a larger mu below
        side = first.side if first.side == second.side else 0
        return Gaussian(math.hypot(first.mu, second.mu) * (1 - side * 4 * ULP), side)
    if not (isinstance(first, Piecewise) and isinstance(second, Piecewise)):
        raise ValueError(f"other={second!r} and {first!r} must both be Gaussian or both piecewise linear")
    laws = [_laws(form.hull) for form in (first, second)]
    size = laws[0][0].size * laws[1][0].size
    if size > MOST_PRODUCTS:
        raise ValueError(f"other={second!r} and {first!r} have {size} products of segments: they must have at most {MOST_PRODUCTS}")
    return Piecewise.of(*(np.minimum(np.add.outer(one, two).ravel(), 0.0) for one, two in zip(*laws)))


def _laws(form: Piecewise) -> tuple[FloatArray, FloatArray]:
    """Return two laws with that curve: an outcome a segment, and those that only one of them can give."""
    assert form.atoms is not None
    lost_p, lost_q = form.points[1, -1], form.points[3, 0]
    return np.append(form.atoms[0], [lost_p, -np.inf]), np.append(form.atoms[1], [-np.inf, lost_q])
