"""Presentation of results: the statement in sentences, figures and tables.

It imports `profile` and below; nothing below imports it at the top of a module.
"""
