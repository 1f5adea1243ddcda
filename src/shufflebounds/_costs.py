"""Measured costs. They only predict what a computation takes; no answer depends on them, and they may be measured anew at any time.

The times are CPU seconds of one thread on the machine that ``benchmarks/results`` names, with warm caches and without imports. A
table entry is the total time of a computation divided by the number of its units. On a machine that is twice as slow, all of them
double. An entry that is too low announces a long computation late; one that is too high announces a short one.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["BYTES", "SECONDS", "VALUES"]

SECONDS: Mapping[str, float] = MappingProxyType({
    # one value of delta of a composition
    "value by inversion": 0.004,
    "value on a grid": 1e-3,
    # the first value of a composition, at least one transform; if its losses lie on one lattice; the transforms around one eps
    "first value on a grid": 0.05,
    "first value on a lattice": 0.015,
    "transforms": 0.02,
    # one grid point of one release, and one point of a transform of an adaptive strategy
    "grid point": 3e-6,
    "point of an adaptive strategy": 1.5e-8,
    # all values of a release whose divergence is cheap
    "cheap release": 0.02,
    # the distributions of one direction of a Poisson-subsampled mechanism, whose grids are long
    "distributions of a direction": 2.0,
})
"""CPU seconds."""

BYTES: Mapping[str, int] = MappingProxyType({
    "inversion": 2**27,
    # values, spectrum, its powers, and logarithms of their sizes
    "point of a transform": 72,
    # one value of delta without composition: measured 26 to 45 MB, more only for 10**7 users with budgets of their own
    "value": 2**26,
})
"""Largest memory."""

VALUES: Mapping[str, int] = MappingProxyType({
    # values of delta that share the transforms around one eps
    "transforms": 8,
    # points of a transform of an adaptive strategy, for one release
    "adaptive strategy": 200_000,
    # values at which an expensive divergence is sampled: for the range of its losses, and in all if it is convex
    "range of a release": 40,
    "sampled release": 400,
    # values of delta in a search for eps, and in the searches for both bounds of it; for the tail of the loss, with forty secants
    # on either side (fewer where values are expensive); in the refinement of a curve at one level; and for a Renyi divergence with
    # a relative gap of 1e-6
    "epsilon": 12,
    "both bounds of epsilon": 40,
    "loss tail": 82,
    "loss tail, expensive": 30,
    "refined curve": 12,
    "renyi divergence": 3000,
})
"""Numbers of values, as counted."""
