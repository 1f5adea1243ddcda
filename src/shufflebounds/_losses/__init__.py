"""One release as a distribution of privacy losses: enumerated outcomes, curves, divergences, tails. Imports `tradeoff` and below.

Start with `atoms` (enumerated outcomes under both distributions, and losses on a grid), then `release` (what a composition may
know of one release) and `samples` (values of delta between which it is interpolated). `curves`, `renyi` and `loss_tail` follow
from delta; `interpolation` makes a distribution of losses of it. `blocks` are sets of datasets, `transform` is the moment
generating function of a loss. `tilted_sum` and `sum_test` have sums on a grid, `lattice` and `window` such grids and where they
end, `budget` the difference from a pure budget.
"""
