"""The largest delta of a shuffled randomizer over every dataset of the other users (docs/theorems/worst-dataset).

Start with `worst`, the theorem with its error term. `largest_sum` evaluates the main term by Lemma H, `pair_weights` the weights of
the proof. `cases` declares the distributions that a randomizer states for the theorem, and `matrix` has those of a matrix.
`weighted_labels` serves users with different randomizers. `every` enumerates the datasets of few users; `enumerated` and
`largest_message` have lower bounds for given datasets.
"""
