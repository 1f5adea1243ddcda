"""Sums of randomized bits: delta for a given dataset of the other users, and the largest delta over all datasets.

Start with `given_bits`, the delta for one dataset. `all_datasets` and `two_counts` find the largest delta over datasets, `total`
that of a person with several bits, and `largest_tail` the largest probability over datasets that the loss exceeds eps. `bit_blocks`
has sets of datasets for compositions, and `curve_of_sum` the trade-off curve for one dataset. `records`, `record_tests` and
`two_bins` are for records of flipped bits and for histograms, `mixed_sum` is for histograms of a random number of users, and
`personal_sum` for users with personalized budgets.
"""
