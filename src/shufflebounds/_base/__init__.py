"""What every folder may use: types, validation, searches, caches, numbers that several modules share. Imports only `_core`.

Start with `types` (what a bound is), then `validate` (what is checked), `limits` (the shared numbers) and `crossing` (from delta to
eps).
"""
