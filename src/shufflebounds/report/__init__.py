"""Presentation of results: the statement in sentences, figures and tables.

This package imports `profile` and lower rows in the diagram of docs/architecture.md, which import this package only inside
functions.
"""
