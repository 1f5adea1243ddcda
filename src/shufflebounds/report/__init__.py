"""Presentation of results: the statement in sentences, figures and tables.

This package imports `answers` and lower rows in the diagram of docs/architecture.md.
"""
