"""Sums of randomized bits, with a given dataset of the other users and over all of them.

Start with `given_bits`. `all_datasets` and `two_counts` search for the worst dataset, `blocks` does so for compositions. `records`,
`record_tests` and `two_bins` belong to flipped reports, `personal_sum` to users with budgets of their own.
"""
