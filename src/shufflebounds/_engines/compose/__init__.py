"""The composition of independent releases: the distribution of the sum of their privacy losses.

One release is discretized on a grid in two ways. The upper bound interpolates the hockey-stick divergence linearly between grid
points ("connect the dots"); for enumerated outcomes this splits each mass over the two nearest points. The lower bound merges the
masses of neighbouring outcomes whose mean loss is a grid point. The error of both is of second order in the step. The distributions
are exponentially tilted so that the mean of the composition is near eps, and convolved by FFT on a finite window. Errors of
rounding, of the window and of truncated tails are added to the upper bound and subtracted from the lower bound.

Start with `grid`, which chooses the method; `steps` chooses the grid, `released` the distributions, and `grid_product` convolves on
the grid. `inversion` needs the moment generating functions of the losses (`gaussian_transform`), `pair_sums` serves rare large
losses. `adaptive` bounds an adversary who chooses the pair of each release after seeing the earlier losses, and `repeated` composes
a release of which only delta(eps) is known.
"""
