"""The clone bounds: a user whose message could be the target's is a clone, and delta is a sum over the number of clones.

All these bounds allow personalized budgets. Start with `population`, which has the bound for one target user and for the worst one.
`law` is the sum over the number of clones, `clone_families` has the probabilities (rates) with which randomizers send clones, and
`bins` merges users with similar budgets. `kary_blanket` and `blanket_table` compute the privacy blanket of k-ary randomized
response. `attained` has datasets for lower bounds. `clone_pair` is the bound if all users have one budget.
"""
