"""Both bounds of delta and of eps of the shuffled messages of users with one randomizer (privacy amplification by shuffling).

Start with `bounds`, which puts the others together and searches for eps. `distributions` has what is known about the randomizer,
`upper` the smallest of the bounds for every dataset, `lower` the largest one of given datasets, and `local` the guarantee of one
message alone. `small_delta` improves both bounds where outputs are truncated, and `attained_pairs` has the pairs of distributions
for lower bounds of compositions. The bounds themselves come from excess/ and datasets/.
"""
