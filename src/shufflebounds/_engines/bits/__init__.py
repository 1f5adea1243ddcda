"""Sums of randomized bits, with a given dataset of the other users and over all of them.

Start with `given_bits`, the delta for one dataset. `all_datasets` and `two_counts` find the largest delta over datasets. `blocks`
are sets of datasets for compositions, and `curve_of_sum` has the trade-off curve of one dataset. `records`, `record_tests` and
`two_bins` serve records of flipped bits and histograms, `mixed_sum` histograms of a random number of users, and `personal_sum`
users with personalized budgets.
"""
