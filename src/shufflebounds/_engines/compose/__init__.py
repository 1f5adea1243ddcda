"""The composition of independent releases: the distribution of the sum of their privacy losses.

The loss of one release is moved to a grid in two ways. The upper bound interpolates the hockey-stick divergence linearly between
grid points ("connect the dots"); for enumerated outcomes this splits each mass over the two nearest points. The lower bound merges
neighbouring outcomes so that their mean loss is a grid point. Either bound has an error of second order in the grid step. The
distributions are exponentially tilted so that the mean of the composition is near eps, and convolved by FFT on a finite range. The
errors from rounding, from the finite range and from truncated tails are added to the upper bound and subtracted from the lower
bound.

Start with `composer`, which chooses among five engines and combines their bounds; `released` makes the composer from the pairs of a
composition. The engines are `inversion`, which needs the moment generating function of each loss instead of a grid
(`gaussian_transform` has that of Gaussian noise); `pair_sums`, for losses that are large with a small probability; `grid`, which
refines grids of losses; and two that bound an adversary who chooses the pair of each release after seeing the earlier losses,
`enumerated_choice` for few sequences of outcomes and `adaptive` on a grid. `steps` chooses the grids, `grid_product` convolves on
them, and `repeated` composes releases if only their delta(eps) is known.
"""
