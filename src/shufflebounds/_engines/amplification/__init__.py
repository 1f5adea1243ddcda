"""Lower and upper bounds of delta and of eps of the shuffled messages of users with one randomizer.

Start with `bounds`, which calls the other modules and searches for eps. `randomizer_laws` has what is known about the randomizer,
`upper` the smallest of the upper bounds for every dataset, `lower` the largest delta of given datasets, and `local` the guarantee
of one message alone. `small_delta` improves the lower and the upper bound at small delta, where the truncation of outputs matters.
`attained_pairs` has the pairs of distributions for lower bounds of compositions, `group_tests` a test for a person with several
messages, and `two_users` the largest delta over all datasets of two users with Gaussian noise.
"""
