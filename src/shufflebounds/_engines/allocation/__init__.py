"""Random allocation: each record takes part in one of t steps, chosen uniformly at random.

Start with `stop_loss`, which bounds delta by the distribution of a sum of t likelihood ratios. `ratios` has the distribution of the
likelihood ratio of one step, `grid_sums` the distribution of a sum of such ratios, `listed` is for mechanisms with enumerated
outcomes, `multisets` enumerates the numbers of outcomes if there are few, and `moments` computes Renyi divergences.
"""
