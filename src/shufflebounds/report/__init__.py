"""Presentation of results: the statement in sentences, figures and tables.

This package imports `profile` and below; no module below imports it at its top.
"""
