"""Shuffled batches: an upper bound of delta of one epoch, for every dimension and adaptive gradients.

The theorem and its proof are in docs/theorems/shuffled-batches. `weights` has the tail of the weights of the records,
`dominating_law` the distribution whose sums bound delta, and approximations of these sums, and `epoch`, where to start, the bound
of the theorem.
"""
