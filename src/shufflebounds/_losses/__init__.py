"""The privacy losses of one release: enumerated outcomes, trade-off curves, divergences, tails. Imports `tradeoff` and below.

Start with `atoms` (enumerated outcomes under both distributions, and losses on a grid), then `release` (the properties of one
release that a composition uses), `closed_forms` (results that need neither a search nor samples) and `sampled_profile` (bounds of
delta at selected eps, and between them). `complete_lists` is for lists of masses whose sums are 1 only approximately. `curves`,
`renyi` and `loss_tail` compute other quantities from delta, and `interpolation` computes a distribution of losses from delta.
`blocks` has sets of datasets, `transform` the moment generating function of a loss. `tilted_sum` and `sum_test` compute sums on a
grid, `lattice` finds a grid that contains all losses, and `window` finds the range to which a sum is truncated. `budget` has the
difference between a pure budget and eps.
"""
