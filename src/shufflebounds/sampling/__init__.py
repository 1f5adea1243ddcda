"""Mechanisms on a random part of the data: Poisson sampling, sampling without replacement, random allocation, shuffled batches.

The guarantee depends on the adjacency relation: a dataset with a record is compared with one without it (add or remove one record),
or with one in which another record takes its place (replace one record). No class changes the relation unless the caller asks for
it.
"""

# This package imports only modules of its row in docs/architecture.md and of the rows below.
# Start with `poisson`, which that page follows to the kernel.

from typing import TYPE_CHECKING

from shufflebounds._base.lazy import lazily

if TYPE_CHECKING:
    # Each name is repeated after "as", by which type checkers know that it is public.
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
