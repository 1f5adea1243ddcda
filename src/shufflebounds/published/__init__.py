"""Bounds as the papers print them, each with its verdict: for comparison and plots only, nothing else imports this package.

Each name is a :class:`PrintedBound`: call it with the paper's parameters to get the printed number; ``verdict`` says whether
that number may be relied on, ``reason`` why, ``reference`` where it is printed, ``side`` which side of the truth it claims.
``counterexample()`` gives the printed number and the truth side by side where the formula is false, ``comparison()`` in a setting
that somebody might use. :func:`bounds` lists them all.
"""

from shufflebounds.published._printed import Comparison, Counterexample, PrintedBound, bounds
from shufflebounds.published.balcer_cheu import (
    balcer_cheu_delta,
    balcer_cheu_error,
    balcer_cheu_gamma,
    balcer_cheu_histogram_delta,
    balcer_cheu_histogram_error,
    balcer_cheu_smooth,
)
from shufflebounds.published.balcer_cheu_context import HistogramRow, balcer_cheu_local_eps, balcer_cheu_table
from shufflebounds.published.chen_long import (
    chen_long_delta,
    chen_long_mu,
    chen_long_mu_interior,
    chen_long_mu_real_sum,
    chen_long_tradeoff,
)
from shufflebounds.published.cheu import cheu2019_boolean_sum, cheu2019_fixed_set
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
from shufflebounds.published.personalized_curve import liu2024_delta_literal, liu2024_tradeoff
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
from shufflebounds.published.survey_basics import (
    das2022_advanced_composition,
    das2022_census_ages,
    das2022_census_left,
    das2022_chernoff,
    das2022_close_laws,
    das2022_exponential_scale,
    das2022_mean_error,
    das2022_small_db_cube,
    das2022_small_db_error,
)
from shufflebounds.published.survey_histograms import (
    das2022_laplace_max_square,
    das2022_point_sum_tradeoff,
    das2022_sparse_gaussian_eps,
    das2022_sparse_moment,
    das2022_sum_error,
    das2022_synthetic_rho,
)
from shufflebounds.published.zhilyaev import (
    zhilyaev_deviation,
    zhilyaev_flip,
    zhilyaev_flip_right,
    zhilyaev_flip_root,
    zhilyaev_flip_zeros,
)
from shufflebounds.published.zhilyaev_reports import (
    zhilyaev_fakes_per_bin,
    zhilyaev_flip_fakes,
    zhilyaev_flip_records,
    zhilyaev_flip_sums,
)
from shufflebounds.published.zhilyaev_sums import zhilyaev_lemma, zhilyaev_pointwise, zhilyaev_tail, zhilyaev_tail_relative

__all__ = [
    "Comparison",
    "Counterexample",
    "HistogramRow",
    "PrintedBound",
    "bounds",
    "balcer_cheu_delta",
    "balcer_cheu_error",
    "balcer_cheu_gamma",
    "balcer_cheu_histogram_delta",
    "balcer_cheu_histogram_error",
    "balcer_cheu_local_eps",
    "balcer_cheu_smooth",
    "balcer_cheu_table",
    "chen_long_delta",
    "chen_long_mu",
    "chen_long_mu_interior",
    "chen_long_mu_real_sum",
    "chen_long_tradeoff",
    "cheu2019_boolean_sum",
    "cheu2019_fixed_set",
    "clones_apple",
    "clones_closed_form",
    "das2022_above_threshold_eps",
    "das2022_advanced_composition",
    "das2022_census_ages",
    "das2022_census_left",
    "das2022_chernoff",
    "das2022_close_laws",
    "das2022_exponential_scale",
    "das2022_gaussian_sigma",
    "das2022_hoeffding",
    "das2022_laplace_max_square",
    "das2022_mean_error",
    "das2022_numeric_sparse_accuracy",
    "das2022_numeric_sparse_answer",
    "das2022_numeric_sparse_eps",
    "das2022_numeric_sparse_scale",
    "das2022_point_rounding",
    "das2022_point_sum_tradeoff",
    "das2022_small_db_cube",
    "das2022_small_db_error",
    "das2022_sparse_gaussian_eps",
    "das2022_sparse_moment",
    "das2022_sum_error",
    "das2022_synthetic_rho",
    "das2022_triangle_delta",
    "liu2024_delta",
    "liu2024_delta_literal",
    "liu2024_gaussian_rate",
    "liu2024_laplace_rate",
    "liu2024_rr_rate",
    "liu2024_tradeoff",
    "liu2024_weight_gaussian",
    "liu2024_weight_laplace",
    "liu2024_weight_rr",
    "stronger_clones_closed_form",
    "zhilyaev_deviation",
    "zhilyaev_fakes_per_bin",
    "zhilyaev_flip",
    "zhilyaev_flip_fakes",
    "zhilyaev_flip_records",
    "zhilyaev_flip_right",
    "zhilyaev_flip_root",
    "zhilyaev_flip_sums",
    "zhilyaev_flip_zeros",
    "zhilyaev_lemma",
    "zhilyaev_pointwise",
    "zhilyaev_tail",
    "zhilyaev_tail_relative",
]
