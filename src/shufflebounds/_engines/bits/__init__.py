"""Sums of randomized bits, with a given dataset of the other users and over all of them.

Start with `given_bits`. `all_datasets` and `two_counts` find the largest delta over datasets; `blocks` are sets of datasets for
compositions, and `curve_of_sum` has the trade-off curve of one dataset. `records`, `record_tests` and `two_bins` belong to records
of flipped bits and to histograms, `mixed_sum` to histograms of a random number of users, `personal_sum` to users with budgets of
their own.
"""
