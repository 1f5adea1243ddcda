"""Random allocation: each record takes part in one of t steps, chosen uniformly at random.

Start with `stop_loss`, which bounds delta by the distribution of a sum of t likelihood ratios. `ratios` has the distribution of the
likelihood ratio of one step, and `grid_sums` that of a sum of such ratios. `listed` is for mechanisms with enumerated outcomes. If
there are few outcomes, `multisets` enumerates how often each was seen in all steps. `moments` computes Renyi divergences.
"""
