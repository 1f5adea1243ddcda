"""The sections of compare.py, one family in each file; a section is a function that returns the rows of a table."""
