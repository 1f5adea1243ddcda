"""The sections of compare.py, a family a file. Each is a function that returns rows of a table."""
