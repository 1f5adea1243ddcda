"""Random allocation: a record takes part in one random step of t.

Start with `stop_loss`, which bounds the mean of t likelihood ratios in the convex order; `ratios` gives the ratio of a step, `sums`
adds distributions, `listed` takes mechanisms with enumerated outcomes, and `moments` has Renyi divergences.
"""
