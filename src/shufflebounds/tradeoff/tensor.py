"""The trade-off function of a product of two pairs of distributions."""

from __future__ import annotations

import math

import numpy as np

from shufflebounds._base.limits import LARGE_TABLE_SIZE
from shufflebounds._base.types import ULP, FloatArray
from shufflebounds.tradeoff.closed_curves import GaussianCurve
from shufflebounds.tradeoff.piecewise import Piecewise, prune
from shufflebounds.tradeoff.representation import Representation, log1mexp

__all__ = ["tensor_product"]


def tensor_product(first: Representation, second: Representation) -> Representation:
    """Return the trade-off function of the product; raise ValueError unless both curves are Gaussian or both piecewise linear."""
    # The product of two upper curves is an upper curve, and that of two lower curves is a lower curve. A curve of side 0 is exact
    # up to rounding, so its product with a bound is a bound of the same kind.
    side = int(np.sign(first.side + second.side))
    if isinstance(first, GaussianCurve) and isinstance(second, GaussianCurve):
        # A larger mu gives a lower curve, so mu is rounded down for an upper curve and up for a lower curve.
        return GaussianCurve(math.hypot(first.mu, second.mu) * (1 - side * 4 * ULP), side)
    if not (isinstance(first, Piecewise) and isinstance(second, Piecewise)):
        raise ValueError(f"other={second!r} and {first!r} must both be Gaussian or both piecewise linear")
    laws = [_with_lost_mass(form.hull) for form in (first, second)]
    size = laws[0][0].size * laws[1][0].size
    if size > LARGE_TABLE_SIZE:
        most = f"they must have at most {LARGE_TABLE_SIZE}"
        raise ValueError(f"other={second!r} and {first!r} have {size} products of segments: {most}")
    product = Piecewise.of(*(np.minimum(np.add.outer(one, two).ravel(), 0.0) for one, two in zip(*laws)))
    return _moved(product.points, side) if side else product


def _moved(points: FloatArray, side: int) -> Piecewise:
    """Return the curve through points whose alpha and beta are raised (side 1) or lowered (side -1) by their rounding errors.

    A test of the product rejects one of the first j_i segments of the second curve if the first one is in its segment i, with j_i
    decreasing in i. So alpha is the sum of alpha_i (alpha'_j_i - alpha'_j_(i+1)), a sum of positive terms: relative errors of the
    alphas of the two curves cause no larger relative error of alpha. This also applies to 1 - alpha, beta and 1 - beta.
    """
    out = points.copy()
    for level, rest in (out[:2], out[2:]):
        # Of the level and its complement, the smaller one is moved, and the larger one is computed from it.
        by_level = level <= rest
        for row, sign in ((level, side), (rest, -side)):
            row += np.where(row > -np.inf, sign * ULP * (64 + 16 * np.abs(np.maximum(row, -1e300))), 0.0)
        level[~by_level], rest[by_level] = log1mexp(rest[~by_level]), log1mexp(level[by_level])
    out = np.minimum(out, 0.0)
    # Rounding may put neighbouring points out of order where the two ranges meet.
    for row, (rises, up) in enumerate(((True, side > 0), (False, side < 0), (False, side > 0), (True, side < 0))):
        turn = 1 if rises == up else -1
        out[row] = (np.maximum if up else np.minimum).accumulate(out[row, ::turn])[::turn]
    return prune(out, side)


def _with_lost_mass(form: Piecewise) -> tuple[FloatArray, FloatArray]:
    """Return log probabilities of two distributions P and Q whose trade-off function is this curve.

    Each segment of the curve becomes one outcome. Two further outcomes are possible under P only and under Q only.
    """
    assert form.atoms is not None
    lost_p, lost_q = form.points[1, -1], form.points[3, 0]
    return np.append(form.atoms[0], [lost_p, -np.inf]), np.append(form.atoms[1], [-np.inf, lost_q])
