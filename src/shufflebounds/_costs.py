"""Measured costs, from which run times are predicted. They may be measured anew at any time, with one exception.

The exception: the costs of shuffled randomizers (`ExcessLaw.seconds`) also decide how many values of delta a curve, a divergence or
a composition takes. With other numbers these bounds would move and remain valid. No other answer depends on a cost.

The times are CPU seconds of one thread on the machine that ``benchmarks/results`` names, with warm caches and without imports. A
table entry is the total time of a computation divided by the number of its units. On a machine that is twice as slow, all of them
double. An entry that is too low announces a long computation late; one that is too high announces a short one.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["BYTES", "SECONDS", "VALUES"]

SECONDS: Mapping[str, float] = MappingProxyType({
    # One pair of outcomes in the sums of a composition of rarely sampled records, for one of two directions.
    "pair of outcomes": 1e-9,
    # The first value of delta of a composition by Fourier inversion; a further value, and one on a grid whose transforms are known.
    "first value by inversion": 0.003,
    "value by inversion": 5e-4,
    "value on a grid": 1e-3,
    # The first value of a composition on a grid, which needs at least one transform; the first value if all losses lie on one
    # lattice; and the transforms for a further group of neighbouring eps.
    "first value on a grid": 0.05,
    "first value on a lattice": 0.015,
    "transforms": 0.02,
    # One grid point of one release, and one point of a transform of an adaptive strategy.
    "grid point": 3e-6,
    "point of an adaptive strategy": 1.5e-8,
    # One operation of `certify` in interval arithmetic (Arb balls of 128 bits).
    "ball operation": 5e-7,
    # All values of a release whose divergence takes little time.
    "cheap release": 0.02,
    # The distributions of losses of a Poisson-subsampled mechanism on a long grid, for one direction (a record added or removed).
    "distributions of a direction": 0.2,
    # Both bounds of one value of delta of a shuffled randomizer, by the distribution of X: of light tails, and of heavy tails,
    # which take longer for up to 1024 users; with outputs that identify the target; of more than 1024 atoms; and of more than 64
    # atoms for up to 40 users, where only ten of them count. The search over datasets of one value, for up to 1024 users and for
    # more. Second moments of thousands of distributions.
    "value of a sum": 4e-4,
    "value of a sum, one atom": 1e-5,
    "value with heavy tails": 4e-3,
    "value with heavy tails, one atom": 2.5e-5,
    "value with heavy tails, fewer users": 0.01,
    "value of identified targets": 2.5e-4,
    "value of merged atoms": 0.05,
    "value for few users, one atom and user": 6e-6,
    "second moment, one atom": 1e-7,
    "search over datasets of few users": 0.05,
    "search over datasets of few users, heavy tails": 0.1,
    "search over datasets": 4e-3,
    "search over datasets, one atom": 1e-5,
    # All published bounds of amplification for one number of users, local budget and delta.
    "published bounds of a row": 0.2,
    # One cell of the table of a privacy blanket with personalized budgets, for about two tables a value.
    "cell of a blanket": 1.4e-6,
    # One value of a sum in the curves of all blocks of datasets; the curves of two blocks of target users.
    "sum of a block of datasets": 9e-7,
    "curves of two blocks of targets": 0.6,
})
"""Measured CPU seconds of one unit of each kind of computation."""

BYTES: Mapping[str, int] = MappingProxyType({
    "inversion": 2**27,
    # The values, the spectrum, its powers, and the logarithms of their sizes.
    "point of a transform": 72,
    # One value of delta without composition. Measured: 26 to 45 MB, more only for 10**7 users with personalized budgets.
    "value": 2**26,
})
"""Largest memory in bytes of each kind of computation."""

VALUES: Mapping[str, int] = MappingProxyType({
    # Values of delta that share the transforms around one eps.
    "transforms": 8,
    # Values of delta that share one table of sums over all pairs of outcomes.
    "table of sums": 15,
    # Points of a transform of an adaptive strategy, for one release.
    "adaptive strategy": 200_000,
    # Values of eps at which an expensive divergence is sampled: to find the range of its losses, and for its curve if it is convex.
    "range of a release": 40,
    "sampled release": 200,
    # Values of delta in a search for one bound of eps, and in the searches for both. Values for one tail probability of the loss,
    # from forty secants on each side of it, or from fewer if values are expensive. Values for one level of a trade-off curve, and
    # for a Renyi divergence with a relative gap of 1e-6.
    "epsilon": 12,
    "both bounds of epsilon": 40,
    "loss tail": 82,
    "loss tail, expensive": 30,
    "refined curve": 12,
    "renyi divergence": 3000,
    "mu of a shuffled randomizer": 80,
    # Values for the lower bound of mu of a guarantee without pure budget.
    "mu without pure budget": 45,
})
"""Typical numbers of values that a computation evaluates, as counted in runs."""
