"""The clone bounds: shuffled messages compared with a sum over those users whose message could be the target's.

Start with `law`, the distribution of the number of clones; `families` has the rates of randomizers, `population`, `bins` and
`blanket` users with different budgets.
"""
