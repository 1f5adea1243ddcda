"""Composition of privacy losses on a grid.

One release is a distribution of privacy losses, discretised on a grid in two ways. The upper bound interpolates the hockey-stick
divergence linearly between grid points ("connect the dots"); for enumerated outcomes this splits each mass over the two nearest
points. The lower bound merges masses of neighbouring outcomes until their loss is a grid point. Both have an error of second order
in the step. The distributions are exponentially tilted so that the mean of the composition is near eps, and convolved by FFT on a
finite window. Errors of rounding, of the window and of truncated tails are added to the upper bound and subtracted from the lower
bound.
"""

from typing import TYPE_CHECKING

from shufflebounds._lazy import lazily
from shufflebounds._progress import Cost, announced
from shufflebounds.composing.blocks import Blocks
from shufflebounds.composing.loss_atoms import GridPLD, LossAtoms, TooLongError
from shufflebounds.composing.pair_info import MOST_VALUE_EFFORT, CurveBounds, DominatingPairInfo
from shufflebounds.composing.sampled_profile import SampledProfile

if TYPE_CHECKING:
    from shufflebounds.composing.composer import Account, AdaptiveChoice, Composer
    from shufflebounds.composing.product import Product

__all__ = [
    "MOST_VALUE_EFFORT", "Account", "LossAtoms", "Blocks", "Composer", "CurveBounds", "Cost", "AdaptiveChoice",
    "DominatingPairInfo", "GridPLD", "Product", "SampledProfile", "TooLongError", "announced",
]

# Imported on first use: a single release needs none of them.
_HOMES = {
    "Account": "shufflebounds.composing.composer",
    "Composer": "shufflebounds.composing.composer",
    "AdaptiveChoice": "shufflebounds.composing.composer",
    "Product": "shufflebounds.composing.product",
}
__getattr__, __dir__ = lazily(__name__, _HOMES)
