"""Bounds as the papers print them, each with its verdict: for comparison and plots only, nothing else imports this package.

Each name is a :class:`PrintedBound`: call it with the paper's parameters to get the printed number; ``verdict`` says whether
that number may be relied on, ``reason`` why, ``reference`` where it is printed, and ``counterexample()`` gives the printed number
and the truth side by side where the formula is false.
"""

from shufflebounds.published._printed import Counterexample, PrintedBound
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
from shufflebounds.published.survey import (
    das2022_above_threshold_eps,
    das2022_gaussian_sigma,
    das2022_hoeffding,
    das2022_numeric_sparse_accuracy,
    das2022_numeric_sparse_answer,
    das2022_numeric_sparse_eps,
    das2022_numeric_sparse_scale,
    das2022_point_rounding,
    das2022_triangle_delta,
)
from shufflebounds.published.survey_histograms import (
    das2022_laplace_max_square,
    das2022_point_sum_tradeoff,
    das2022_sparse_gaussian_eps,
    das2022_sparse_moment,
    das2022_sum_error,
    das2022_synthetic_rho,
)

__all__ = [
    "Counterexample",
    "PrintedBound",
    "clones_apple",
    "clones_closed_form",
    "das2022_above_threshold_eps",
    "das2022_gaussian_sigma",
    "das2022_hoeffding",
    "das2022_laplace_max_square",
    "das2022_numeric_sparse_accuracy",
    "das2022_numeric_sparse_answer",
    "das2022_numeric_sparse_eps",
    "das2022_numeric_sparse_scale",
    "das2022_point_rounding",
    "das2022_point_sum_tradeoff",
    "das2022_sparse_gaussian_eps",
    "das2022_sparse_moment",
    "das2022_sum_error",
    "das2022_synthetic_rho",
    "das2022_triangle_delta",
    "liu2024_delta",
    "liu2024_gaussian_rate",
    "liu2024_laplace_rate",
    "liu2024_rr_rate",
    "liu2024_weight_gaussian",
    "liu2024_weight_laplace",
    "liu2024_weight_rr",
    "stronger_clones_closed_form",
]
