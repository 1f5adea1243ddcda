"""Shuffled batches: an upper bound of delta of one epoch, for every dimension and adaptive gradients.

The theorem and its proof are in docs/theorems/shuffled-batches. Start with `epoch`, which has the bound of the theorem. `weights`
has the mean excess of the weights of the records, and `dominating_law` the distribution whose sums bound delta, and approximations
of these sums.
"""
