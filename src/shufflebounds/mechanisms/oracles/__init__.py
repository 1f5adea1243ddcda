"""Frequency oracles: local randomizers of one value of a finite set, with unbiased estimates of its counts.

Start with `_two_level`, the class of randomizers to which most oracles belong, and `_counts`, the estimates of all of them.
"""
