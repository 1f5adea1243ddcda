"""Composition of privacy losses on a grid.

One release is a distribution of privacy losses, discretised on a grid in two ways. The upper bound interpolates the hockey-stick
divergence linearly between grid points ("connect the dots"); for enumerated outcomes this splits each mass over the two nearest
points. The lower bound merges masses of neighbouring outcomes until their loss is a grid point. Both have an error of second order
in the step. The distributions are exponentially tilted so that the mean of the composition is near eps, and convolved by FFT on a
finite window. Errors of rounding, of the window and of truncated tails are added to the upper bound and subtracted from the lower
bound.
"""

from shufflebounds._losses.blocks import Blocks
from shufflebounds._losses.atoms import GridPLD, LossAtoms, TooLongError
from shufflebounds._losses.release import MOST_VALUE_EFFORT, CurveBounds, DominatingPairInfo
from shufflebounds._losses.samples import SampledProfile

# The modules `composer` and `product` are not imported here, because a single release needs neither.
__all__ = [
    "MOST_VALUE_EFFORT", "Blocks", "CurveBounds", "DominatingPairInfo", "GridPLD", "LossAtoms", "SampledProfile", "TooLongError",
]
