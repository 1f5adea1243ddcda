"""The trade-off function of a product of two pairs of distributions."""

from __future__ import annotations

import math

import numpy as np

from shufflebounds._base.limits import LARGE_TABLE_SIZE
from shufflebounds._base.types import ULP, FloatArray
from shufflebounds.tradeoff.closed_curves import GaussianCurve
from shufflebounds.tradeoff.piecewise import Piecewise
from shufflebounds.tradeoff.representation import Representation

__all__ = ["tensor_product"]


def tensor_product(first: Representation, second: Representation) -> Representation:
    """Return the trade-off function of the product; raise ValueError unless both curves are Gaussian or both piecewise linear."""
    if isinstance(first, GaussianCurve) and isinstance(second, GaussianCurve):
        # The product of two upper curves is an upper curve, and that of two lower curves is a lower curve. A larger mu gives a
        # lower curve, so mu is rounded down for an upper curve and up for a lower curve.
        side = first.side if first.side == second.side else 0
        return GaussianCurve(math.hypot(first.mu, second.mu) * (1 - side * 4 * ULP), side)
    if not (isinstance(first, Piecewise) and isinstance(second, Piecewise)):
        raise ValueError(f"other={second!r} and {first!r} must both be Gaussian or both piecewise linear")
    laws = [_with_lost_mass(form.hull) for form in (first, second)]
    size = laws[0][0].size * laws[1][0].size
    if size > LARGE_TABLE_SIZE:
        most = f"they must have at most {LARGE_TABLE_SIZE}"
        raise ValueError(f"other={second!r} and {first!r} have {size} products of segments: {most}")
    return Piecewise.of(*(np.minimum(np.add.outer(one, two).ravel(), 0.0) for one, two in zip(*laws)))


def _with_lost_mass(form: Piecewise) -> tuple[FloatArray, FloatArray]:
    """Return log probabilities of two distributions P and Q whose trade-off function is this curve.

    Each segment of the curve becomes one outcome. Two further outcomes are possible under P only and under Q only.
    """
    assert form.atoms is not None
    lost_p, lost_q = form.points[1, -1], form.points[3, 0]
    return np.append(form.atoms[0], [lost_p, -np.inf]), np.append(form.atoms[1], [-np.inf, lost_q])
