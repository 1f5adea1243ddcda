"""Lattices (equally spaced numbers) that contain all losses of enumerated outcomes.

If all losses lie on such a lattice, a composition on a grid with the points of the lattice is exact up to rounding and needs no
refinement.
"""

from __future__ import annotations

import math

import numpy as np

from shufflebounds._base.types import FloatArray
from shufflebounds._losses.atoms import LossAtoms

__all__ = ["common_step", "own_lattice"]


def common_step(gaps: FloatArray) -> float | None:
    """Return the largest step such that all given gaps are multiples of it, up to rounding.

    The result is None if the step is smaller than 1/4096 of the largest gap, or if there are more than 4096 gaps.
    """
    gaps = gaps[gaps > 0]
    if not gaps.size or gaps.size > 4096:
        return None
    tiny = 1e-12 * float(gaps[-1])
    step = float(gaps[0])
    for gap in gaps:
        rest = float(gap)
        while rest > tiny:
            step, rest = rest, math.fmod(step, rest)
            rest = min(rest, step - rest) if rest > tiny else 0.0
        if step < float(gaps[-1]) / 4096:
            return None
    # The remainders of the Euclidean algorithm accumulate rounding errors, so the step is computed again from the largest gap.
    return float(gaps[-1]) / round(float(gaps[-1]) / step)


def own_lattice(listed: LossAtoms | None) -> tuple[float, float] | None:
    """Return the loss of the most probable outcome, and the distance from it to the nearest other loss."""
    if listed is None or not listed.loss.size:
        return None
    place = int(np.argmax(listed.log_p))
    gaps = np.diff(listed.loss[max(place - 1, 0) : place + 2])
    gaps = gaps[gaps > 0]
    return float(listed.loss[place]), float(gaps.min()) if gaps.size else 0.0
