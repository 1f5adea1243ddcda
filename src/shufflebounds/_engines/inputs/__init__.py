"""Distributions of X for noise on numbers and vectors and for densities, reduced to finitely many values.

Start with `interval`, where the target's inputs are the two ends; `interval_kinds` covers every pair and every other user's input
for the bound over all datasets, `gaussian_blocks` its blocks of four, `vector_kinds` noise on vectors, and `listed` users who have
one of finitely many values. `density_cells` and `density_rows` serve randomizers given by densities. `heights` reduces the values
of X where there are many outputs, and `integer_mu` bounds mu of discrete Gaussian noise.
"""
