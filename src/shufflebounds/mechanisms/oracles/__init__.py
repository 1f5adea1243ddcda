"""Frequency oracles: local randomizers of one value of a finite set, with unbiased estimates of its counts.

Start with `_two_level`, the outputs of two probabilities that most of them have, and `_counts`, their estimates.
"""
