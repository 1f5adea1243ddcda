"""Mechanisms on a random part of the data: Poisson sampling, sampling without replacement, random allocation.

The guarantee depends on the adjacency relation: a dataset with a record is compared with one without it (add or remove one record),
or with one in which another record takes its place (replace one record). No class changes the relation unless the caller asks for
it.
"""

# Imports its row of docs/architecture.md and below. Start with `poisson`, which that page follows to the kernel.

from shufflebounds.sampling.allocation import AllocationPair, RandomAllocation
from shufflebounds.sampling.poisson import SampledPair, Subsampled
from shufflebounds.sampling.replace import ReplaceOne
from shufflebounds.sampling.shuffled_batches import shuffled_sgd_delta
from shufflebounds.sampling.without_replacement import WithoutReplacement

__all__ = [
    "AllocationPair",
    "RandomAllocation",
    "ReplaceOne",
    "SampledPair",
    "Subsampled",
    "WithoutReplacement",
    "shuffled_sgd_delta",
]
