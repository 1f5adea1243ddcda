"""Distributions of X for noise on an interval and for densities, reduced to finitely many cells.

Start with `interval`; `interval_kinds` covers every input for the bound over all datasets, `gaussian_blocks` its blocks of four,
`density_cells` and `density_rows` randomizers given by densities, `listed` lists of inputs.
"""
