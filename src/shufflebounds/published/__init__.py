"""Bounds as the papers print them, each with its verdict: for comparison and plots only, nothing else imports this package.

Each name is a :class:`PrintedBound`: call it with the paper's parameters to get the printed number; ``verdict`` says whether
that number may be relied on, ``reason`` why, ``reference`` where it is printed, ``side`` which side of the truth it claims.
``counterexample()`` gives the printed number and the truth side by side where the formula is false, ``comparison()`` in a setting
that somebody might use. :func:`bounds` lists them all.
"""

from shufflebounds.published._printed import Comparison, Counterexample, PrintedBound, bounds
from shufflebounds.published.clones import clones_apple, clones_closed_form, stronger_clones_closed_form
from shufflebounds.published.personalized import (
    liu2024_delta,
    liu2024_gaussian_rate,
    liu2024_laplace_rate,
    liu2024_rr_rate,
    liu2024_weight_gaussian,
    liu2024_weight_laplace,
    liu2024_weight_rr,
)

__all__ = [
    "Comparison",
    "Counterexample",
    "PrintedBound",
    "bounds",
    "clones_apple",
    "clones_closed_form",
    "liu2024_delta",
    "liu2024_gaussian_rate",
    "liu2024_laplace_rate",
    "liu2024_rr_rate",
    "liu2024_weight_gaussian",
    "liu2024_weight_laplace",
    "liu2024_weight_rr",
    "stronger_clones_closed_form",
]
