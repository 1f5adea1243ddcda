"""Distributions of X for noise on numbers and vectors and for densities, reduced to finitely many values.

Start with `interval`, where the target's inputs are the two ends of an interval. For the bound over all datasets, `interval_kinds`
covers every pair of inputs and every other user's input, `gaussian_blocks` the matching in blocks of four users, and `vector_kinds`
noise on vectors. `listed` serves users who have one of finitely many values, `density_cells` and `density_rows` randomizers given
by densities. `heights` reduces the values of X if there are many outputs, and `integer_mu` bounds mu of discrete Gaussian noise.
"""
