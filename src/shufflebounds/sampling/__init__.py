"""Mechanisms on a random part of the data: Poisson sampling, sampling without replacement, random allocation, shuffled batches.

The guarantee depends on the adjacency relation: neighbouring datasets differ by adding or removing one record, or by replacing one
record by another. Only :class:`ReplaceOne` changes the relation of a guarantee.
"""

# This package imports only modules of its own row and of lower rows in the diagram of docs/architecture.md. Start with `poisson`;
# that page follows a call from there to the kernel.

from typing import TYPE_CHECKING

from shufflebounds._base.lazy import lazily

if TYPE_CHECKING:
    # The repetition of each name after "as" tells type checkers that the name is public.
    from shufflebounds.sampling.allocation import AllocationPair as AllocationPair
    from shufflebounds.sampling.allocation import RandomAllocation as RandomAllocation
    from shufflebounds.sampling.poisson import SampledPair as SampledPair
    from shufflebounds.sampling.poisson import Subsampled as Subsampled
    from shufflebounds.sampling.replace import ReplaceOne as ReplaceOne
    from shufflebounds.sampling.shuffled_batches import ShuffledBatches as ShuffledBatches
    from shufflebounds.sampling.without_replacement import WithoutReplacement as WithoutReplacement

_HOMES = {
    **dict.fromkeys(("AllocationPair", "RandomAllocation"), "shufflebounds.sampling.allocation"),
    **dict.fromkeys(("SampledPair", "Subsampled"), "shufflebounds.sampling.poisson"),
    "ReplaceOne": "shufflebounds.sampling.replace",
    "WithoutReplacement": "shufflebounds.sampling.without_replacement",
    "ShuffledBatches": "shufflebounds.sampling.shuffled_batches",
}
__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazily(__name__, _HOMES)
