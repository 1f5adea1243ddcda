"""Privacy losses on a grid: discretised from above and below, tilted, composed. Arrays in, arrays out.

One release is a law of losses. From above, the values of its hockey stick at the grid points are connected by straight lines
(listed outcomes are split over two points, which is the same thing); from below, shares of neighbouring outcomes are merged
until their loss is a grid point, and of a density beside atoms what lies about it. Both are of second order in the grid. The
laws are tilted so that the composed mean lies at eps, folded on a window and raised to their powers by FFT; what rounding, the
window and the unlisted tails may do is added above and taken off below.
"""

from typing import TYPE_CHECKING

from shufflebounds._lazy import lazily
from shufflebounds.composing.blocks import Blocks
from shufflebounds.composing.loss_atoms import GridPLD, LossAtoms, TooLongError
from shufflebounds.composing.pair_info import MOST_VALUE_EFFORT, DominatingPairInfo
from shufflebounds.composing.progress import Cost, announced
from shufflebounds.composing.sampled_profile import SampledProfile

if TYPE_CHECKING:
    from shufflebounds.composing.composer import Account, AdaptiveChoice, Composer
    from shufflebounds.composing.product import Product

__all__ = [
    "MOST_VALUE_EFFORT", "Account", "LossAtoms", "Blocks", "Composer", "Cost", "AdaptiveChoice", "DominatingPairInfo", "GridPLD",
    "Product", "SampledProfile", "TooLongError", "announced",
]

# a single release needs neither
_HOMES = {
    "Account": "shufflebounds.composing.composer",
    "Composer": "shufflebounds.composing.composer",
    "AdaptiveChoice": "shufflebounds.composing.composer",
    "Product": "shufflebounds.composing.product",
}
__getattr__, __dir__ = lazily(__name__, _HOMES)
