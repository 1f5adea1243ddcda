"""Mechanisms on a random part of the data: Poisson sampling, sampling without replacement, random allocation.

Neighbours matter here. A record that enters by chance is compared with one that is not there at all (add or remove one record), or
with another one in its place (replace one record); the two are never mixed without being asked to.
"""

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
