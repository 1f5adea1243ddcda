"""Distributions of X (`ExcessLaw`) for noise on numbers and vectors and for densities, reduced to finitely many values.

Start with `interval`, where the target's inputs are the two ends of an interval. For the bound over all datasets, `interval_cases`
covers every pair of inputs and every other user's input, `gaussian_blocks` the matching in blocks of four users, and `vector_cases`
noise on vectors. `listed_inputs` serves users who have one of finitely many values, `density_cells` and `density_rows` randomizers
given by densities. `reduced_laws` reduces the values of X if there are many outputs, and `sphere_blanket` has the privacy
blanket of Gaussian noise on the sphere. `integer_mu` bounds mu of discrete Gaussian noise. `few_outputs` serves randomizers with a
small matrix. `noise_outputs` lists outputs of symmetric noise for a record that is replaced.
"""
