"""Exact privacy accounting for the shuffle model."""
