"""The largest delta of a shuffled randomizer over every dataset of the other users (docs/theorems/worst-dataset).

Start with `worst`, the theorem with its error term. `largest_sum` bounds the main term by Lemma H, and `pair_weights` has the
weights of the error term. `cases` declares the distributions that a randomizer states for the theorem, and `matrix` has those of a
matrix. `weighted_labels` serves users with different randomizers. `every` enumerates the datasets of few users, and `boxes`
searches those of more users; `enumerated` and `largest_message` have lower bounds for given datasets.
"""
