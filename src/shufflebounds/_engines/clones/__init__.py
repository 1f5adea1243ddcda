"""The clone bounds: shuffled messages compared with a sum over those users whose message could be the target's.

All of them are for users with different budgets. Start with `population`, which has the bound for one target user and for the
worst; `law` is the sum over the number of clones, `families` the rates of randomizers, and `bins` merges users with similar
budgets. `blanket` and `blanket_table` compute the privacy blanket of k-ary randomized response instead.
"""
