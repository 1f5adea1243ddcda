"""The sections of compare.py, one family per file. Each is a function that returns rows of a table."""
