"""How the answers of a profile are found, before it is known how profiles are combined: imports `_engines` and rows below it.

Start with `bounded_profile` (delta, eps and the tail of the loss from bounds of log delta), then `answering` (the ways to each
answer, in their order) and `sampled_answers` (answers from samples of delta).
"""
