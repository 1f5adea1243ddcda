"""What every folder may use: types, validation, searches, caches, numbers that several modules share. Imports only `_core`.

Start with `types` (what a bound is) and `evidence` (what it rests on), then `validate` (what is checked), `limits` (the shared
numbers) and `crossing` (from delta to eps). `search` has roots and maxima, `convex_order` distributions with fewer values,
`quadrature` integrals. `caches`, `threads` and `progress` serve long computations; `calls` and `docs` are for public functions,
`lazy` and `scipy_functions` for a fast import.
"""

# The version of the library; pyproject.toml, CITATION.cff and the recipe state the same one.
__version__ = "0.1.0"
