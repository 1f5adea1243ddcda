"""Estimates from counts of messages, and bounds of the quantiles of their errors.

Start with `counted`, the methods of every randomizer and protocol that estimates. `accuracy` has the distribution of an error,
`count_errors` that of an estimated count, `worst_count` the largest tail of this error over the number of users who have the value,
and `intervals` confidence intervals of that number.
"""
