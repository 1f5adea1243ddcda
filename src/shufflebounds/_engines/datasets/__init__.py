"""The largest delta of a shuffled randomizer over every dataset of the other users (docs/theorems/worst-dataset).

Start with `worst`, the theorem with its error term; `largest_sum` evaluates its main term by Lemma H, `laws` declares what a
randomizer states for it, `matrix` does so for matrices. `pair_weights` computes the weights of its proof. `weighted_labels` serves
users with different randomizers.
`every` enumerates the datasets of few users; `enumerated` and `largest_message` have lower bounds for given datasets.
"""
