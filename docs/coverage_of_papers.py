"""What of the five papers is here, item by item: the name that answers it and the test that checks it.

A line is: item | what it says | names within shufflebounds, or a figure | tests. An empty name says that the item is a definition in
words or a statement about orders of growth, which the note explains. The page is generated from these lines, and generation fails
where a name or a test does not exist.
"""

# ruff: noqa: E501
import ast
import importlib
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PAPERS = {
    "Chen and Long, *Distributed Gaussian differential privacy via shuffling*": """
Definitions 2.1, 2.2 | (eps, delta)-privacy, the trade-off function | PrivacyProfile.delta, Tradeoff.from_pmfs | tradeoff/test_curve.py::test_every_test_of_listed_laws
Definition 2.3 | f-differential privacy | PrivacyProfile.tradeoff | profile/test_curves.py::test_sides_of_every_profile
Definition 2.4 | Gaussian differential privacy | Tradeoff.gaussian, PrivacyProfile.gdp_mu | tradeoff/test_closed_curves.py::test_gaussian_beta
Corollary 2.5 | delta(eps) of a mu-private mechanism | Tradeoff.gaussian, mechanisms.GaussianMechanism | mechanisms/test_gaussian.py::test_delta_in_multiple_precision
Definition 2.6 | tensor product of two curves | Tradeoff.tensor | tradeoff/test_tensor.py::test_listed_laws
Theorem 1 | composition | PrivacyProfile.compose | engines/compose/test_composer.py::test_products_of_small_pairs
Algorithm 1 | shuffled sum of bits | shuffle.ShuffledBits.boolean_sum | shuffle/test_shuffled_bits.py::test_every_dataset_of_up_to_twelve_users
Definition 3.1 | the compound binomial | tails.compound_binom_logpmf | tails/test_compound_binomial.py::test_exact_small
Theorem 2 | trade-off function of the boolean sum: false | published.chen_long_tradeoff, published.chen_long_delta | published/test_published_sums.py::test_theorem_2_fails_at_a_breakpoint, published/test_published_sums.py::test_theorem_2_fails_as_eps_and_delta
Corollary 3.2 | Gaussian parameter mu of the boolean sum: infinite | published.chen_long_mu, published.chen_long_mu_interior | published/test_published_sums.py::test_corollary_3_2_fails_for_interior_breakpoints
Theorem 3 | trade-off function of the real sum | shuffle.RealSum | shuffle/test_sums.py::test_columns_of_the_specification
Algorithms 2, 3 | encoder and protocol of a real sum | shuffle.RealSum.randomize, shuffle.RealSum.estimate | shuffle/test_sums.py::test_protocol_on_data
Corollary 3.3 | Gaussian parameter mu of the real sum | published.chen_long_mu_real_sum | published/test_published_sums.py::test_corollaries_3_2_and_3_3
Figure 1 | trade-off functions of the boolean and the real sum | figure:bits, figure:reals | docs/test_figures.py::test_every_figure_stands_in_a_page
Algorithms 4, 5 | C_lambda and C_H: a count with binomial noise | shuffle.BinomialNoise | shuffle/test_noise.py::test_small_n_by_enumeration
Lemma B.3 | post-processing | shuffle.StrongerClones | shuffle/test_clones.py::test_delta_falls_with_users
Appendix C | delta of C_H after Cheu et al. | published.cheu2019_fixed_set, published.cheu2019_boolean_sum | published/test_published_sums.py::test_claim_c_1, published/test_published_sums.py::test_the_boolean_sum_of_cheu_et_al
Figure 2 | trade-off function of C_H | figure:noise | docs/test_figures.py::test_composed_noise_is_the_product_of_its_laws
""",
    "Zhilyaev, *Shuffled bits and fake records*": """
Definition, (2.2) | pointwise privacy: Pr[loss > eps] <= delta | PrivacyProfile.loss_tail, tradeoff.loss_tail | profile/test_loss.py::test_bits_by_their_law_and_bounds_for_all_data
Proposition 2.1 | pointwise privacy implies (eps, delta) | PrivacyProfile.loss_tail | profile/test_loss.py::test_listed_losses
Proposition 2.2 | the set S with the largest P(S) - e^eps Q(S) | tradeoff.hockey_stick | tradeoff/test_divergences.py::test_max_divergence_of_sets
Proposition 2.3 | the converse of Proposition 2.1: false | published.zhilyaev_pointwise | published/test_published_sums.py::test_the_converse_of_proposition_2_3_fails
Proposition 3.1 | more users do not increase delta | shuffle.ShuffledBits | shuffle/test_shuffled_bits.py::test_symmetry_and_monotonicity
Corollary 4.1, Lemma 4.1 | the privacy loss decreases with the sum | shuffle.ShuffledBits.pair | shuffle/test_shuffled_bits.py::test_pairs_are_dominating_pairs
Lemma 4.2, (4.10) | exact delta of a dataset: false coefficient | published.zhilyaev_lemma, shuffle.ShuffledBits | published/test_published_sums.py::test_lemma_4_2_has_the_wrong_coefficient
Proposition 4.1, Corollary 4.2 | all zeros are the worst dataset of one direction, not of both | shuffle.ShuffledBits | shuffle/test_shuffled_bits.py::test_the_worst_dataset_is_not_all_zeros
(4.36), Lemma 4.3 | flip probability for all zeros | published.zhilyaev_flip_zeros | published/test_published_sums.py::test_4_36
(4.40) | flip probability for the right tail: false | published.zhilyaev_flip_right | published/test_context.py::test_the_right_tail_is_proven_for_small_distances_only
Corollaries 4.3, 4.4, 4.5 | the same with 0 and 1 exchanged | shuffle.ShuffledBits.pair | shuffle/test_shuffled_bits.py::test_symmetry_and_monotonicity
Propositions 4.2, 4.3 | Chernoff bounds of one dataset hold for all | tails.chernoff_logsf | tails/test_concentration.py::test_above_the_poisson_binomial
Proposition 4.4, (4.46) | tail for any dataset: false beyond t = 1 | published.zhilyaev_tail_relative | published/test_published_sums.py::test_tails_beyond_their_range
(4.47) | the same in units of n q | published.zhilyaev_tail | published/test_published_sums.py::test_tails
Proposition 4.5, (4.48) | flip probability for any dataset | published.zhilyaev_flip, shuffle.ShuffledBits.calibrate | published/test_published_sums.py::test_4_48
(4.55), (4.56) | the same by solving an inequality | published.zhilyaev_flip_root | published/test_published_sums.py::test_4_48_from_the_root
(4.57) to (4.60), section 4.3 | estimate and its standard deviation | shuffle.ShuffledBits.estimate, shuffle.ShuffledBits.variance | shuffle/test_shuffled_bits.py::test_protocol_on_data
Section 4.4, (4.61) | dummy bits | shuffle.ShuffledBits.calibrate | shuffle/test_shuffled_bits.py::test_dummies_are_zeros_that_are_flipped, shuffle/test_shuffled_bits.py::test_dummies_reduce_the_flip_probability_but_not_the_error
(4.62) | standard deviation, without a square root: false | published.zhilyaev_deviation | published/test_published_sums.py::test_4_62_lacks_a_root
Section 5.1, (5.1) to (5.10) | unrandomized reports among dummy records | shuffle.ClearReports, published.zhilyaev_fakes_per_bin | shuffle/test_clear_reports.py::test_every_dataset_by_enumeration, published/test_published_reports.py::test_5_10_has_no_violation_on_a_grid
Proposition 5.1, (5.12), (5.16) | dummy records and flipped bits: false for shuffled records | published.zhilyaev_flip_records, published.zhilyaev_flip_sums | published/test_published_reports.py::test_proposition_5_1_is_false_for_records
(5.17) to (5.21) | estimate of a bin and its standard deviation | shuffle.FlippedReports.estimate | shuffle/test_flipped_reports.py::test_protocol_on_data
Section 5.3, (5.22) to (5.26) | flip probability for fewer dummy records than bins | published.zhilyaev_flip_fakes | published/test_published_reports.py::test_5_16
Lemmas 6.1, 8.2 | a ratio of sums lies between its ratios | tradeoff.max_divergence | tradeoff/test_divergences.py::test_max_divergence_of_sets
Section 7, (7.1) to (7.4), Lemma 7.1, Proposition 7.1 | recurrences of probabilities and their ratio: exact, unstable | tails.poisson_binom_window | tails/test_poisson_binomial.py::test_small_laws_against_fractions
Lemma 8.1, section 8 | the privacy loss decreases with the sum of records | shuffle.FlippedReports | shuffle/test_flipped_reports.py::test_sums_over_every_dataset
""",
    "Liu et al., *Enhanced privacy bound for shuffle model with personalized privacy*": """
Definitions 1, 2 | central and local privacy | PrivacyProfile.delta | profile/test_profile.py::test_listed_pairs_by_fractions
Equations (1), (2) | clones with one budget | shuffle.Clones, shuffle.StrongerClones | shuffle/test_clones.py::test_small_n_by_enumeration
Section 3.2.1, equation (3) | weight of the target: false for noise | published.liu2024_weight_laplace, published.liu2024_weight_gaussian, published.liu2024_weight_rr | published/test_published_personalized.py::test_the_published_laplace_weight_is_too_large
Section 3.2.2, equation (4) | rates of the other users: false for noise | published.liu2024_laplace_rate, published.liu2024_gaussian_rate, published.liu2024_rr_rate | published/test_published_personalized.py::test_the_published_rates_are_too_large
Figure 2 | the areas that are used as rates | figure:areas | published/test_published_personalized.py::test_areas_against_quadrature
Figure 3 | rates over the value and over the budget | figure:areas | published/test_published_personalized.py::test_areas_against_quadrature
Theorem 1 | trade-off function: false | published.liu2024_tradeoff, shuffle.PersonalizedClones.tradeoff | published/test_context.py::test_the_published_curve_exceeds_perfect_privacy
Theorem 2, equation (5) | delta: false | published.liu2024_delta, shuffle.PersonalizedClones | published/test_published_personalized.py::test_theorem_2_with_sums_from_zero_is_an_upper_bound
Theorem 2, t as an infimum | delta with the t as published: false | published.liu2024_delta_literal | published/test_context.py::test_the_published_infimum_by_every_t
Table 1 | settings of the experiments | figure:budgets | docs/test_figures.py::test_every_figure_stands_in_a_page
Figure 4 | eps over users, without the curves of CCC and LZX, whose formulas the paper does not give | figure:budgets | docs/test_figures.py::test_every_figure_stands_in_a_page
Table 2 | delta at five eps, without the rows of CCC and LZX | published.liu2024_delta | published/test_published_personalized.py::test_table_2_is_reproduced_by_the_printed_formula
""",
    "Balcer and Cheu, *Separating local and shuffled differential privacy via histograms*": """
Theorems 1.1 to 1.3 | informal forms of 3.2, 3.3 and 4.1 | shuffle.ShuffledHistogram | shuffle/test_histogram.py::test_every_dataset_of_few_users
Table 1 | orders of growth of histograms | published.balcer_cheu_table, figure:histogram | published/test_context.py::test_orders_of_table_1
Section 1.2 | one message per user: (eps + ln n, delta)-local privacy | published.balcer_cheu_local_eps | published/test_context.py::test_one_message_shuffled_is_local_privacy
Definitions 2.1 to 2.5 | central, local and shuffled privacy | PrivacyProfile.delta | profile/test_profile.py::test_listed_pairs_by_fractions
Definitions 2.6, 2.7 | error of a sum, simultaneous error | shuffle.ZeroSum.error_quantile, shuffle.ShuffledHistogram.error_quantile | shuffle/test_histogram.py::test_simultaneous_error
Figure 1 | zsum | shuffle.ZeroSum | shuffle/test_zero_sum.py::test_every_dataset_of_few_users
Theorem 3.1 | privacy and error of zsum | published.balcer_cheu_gamma, published.balcer_cheu_delta, published.balcer_cheu_error | published/test_published_sums.py::test_zsum_has_at_most_the_published_delta, published/test_published_sums.py::test_the_error_of_zsum
Figure 2 | the histogram | shuffle.ShuffledHistogram | shuffle/test_histogram.py::test_protocol_on_data
Theorem 3.2 | privacy and error of the histogram | published.balcer_cheu_histogram_delta, published.balcer_cheu_histogram_error | published/test_published_sums.py::test_the_histogram_has_at_most_the_published_delta, published/test_published_sums.py::test_the_error_of_the_histogram
Definition 3.3, Claim 3.4 | support identification | shuffle.samples.support_identification, shuffle.samples.printed_support_samples | shuffle/test_samples.py::test_support_is_found
Definitions 3.5, 3.6, Table 2 | pointer chasing and jumping | shuffle.samples.pointer_chasing, shuffle.samples.pointer_jumping | shuffle/test_samples.py::test_calibrated_sizes_meet_both_targets
Theorem 4.1, Claims 4.2 to 4.4 | pure privacy of one message is local privacy | shuffle.ShuffledBits.epsilon | shuffle/test_shuffled_bits.py::test_the_pure_budget_is_not_rounded_down
Definition A.1, Lemmas A.2, A.3, Corollary A.4 | smooth distributions | published.balcer_cheu_smooth | published/test_published_sums.py::test_smoothness
""",
    "Das, *Differential privacy: ideas, concepts and advances*": """
Theorem 2.1 | additive Chernoff bound | tails.chernoff_logsf | tails/test_concentration.py::test_above_the_poisson_binomial
Theorem 2.2 | multiplicative Chernoff bound: false | published.das2022_chernoff, tails.chernoff_logsf | published/test_survey.py::test_verdicts
Theorem 2.3 | Hoeffding's bound: false without independence | published.das2022_hoeffding, tails.bounded_difference_logsf | published/test_survey.py::test_hoeffding
Theorem 2.4 | Stirling's formula | tails.binom_logpmf | core/test_binomial.py
Theorem 2.5 | Azuma's inequality | tails.bounded_difference_logsf | tails/test_concentration.py::test_bounded_differences
Definitions 3.1 to 3.4 | mechanisms, the simplex, norms | histograms.project_simplex | test_histograms.py::test_projection_against_active_sets
Definition 3.5 | differential privacy | PrivacyProfile.delta | profile/test_profile.py::test_listed_pairs_by_fractions
Definition 3.6 | privacy loss | tradeoff.privacy_losses | profile/test_loss.py::test_listed_losses
Section 3.4.3 | triangle inequality: false | published.das2022_triangle_delta | published/test_survey.py::test_verdicts
Proposition 3.7 | post-processing | shuffle.StrongerClones | shuffle/test_clones.py::test_delta_falls_with_users
Theorem 3.8 | group privacy | composition.group_privacy | composition/test_rules.py::test_group_privacy_is_attained
Theorems 3.9 to 3.13 | simple composition | composition.compose_dp | composition/test_rules.py::test_optimal_is_confirmed_and_below_the_closed_forms
Figures 1, 2 | densities of the noise | figure:mechanisms | docs/test_figures.py::test_every_figure_stands_in_a_page
Algorithm 1, Proposition 4.1 | the Laplace mechanism | mechanisms.LaplaceMechanism | mechanisms/test_laplace.py::test_delta_by_quadrature
Theorem 4.2 | accuracy of the Laplace mechanism | mechanisms.LaplaceMechanism.error_quantile | mechanisms/test_laplace.py::test_quantile_against_the_union_bound
Algorithm 2, Theorem 4.3 | report noisy max | selection.selection_probs | selection/test_selection.py::test_laplace_noise_against_quadrature
Algorithm 3 | the Gaussian mechanism: false for large eps | published.das2022_gaussian_sigma, mechanisms.GaussianMechanism.from_dp | published/test_survey.py::test_gaussian_sigma
Algorithm 4, Theorem 4.4 | the exponential mechanism | selection.selection_probs | selection/test_selection.py::test_privacy
Section 4.1.2 | the exponential mechanism as the Laplace mechanism: false by a factor of 2 | published.das2022_exponential_scale | published/test_survey.py::test_verdicts
Theorem 4.5, Corollary 4.6 | accuracy of the exponential mechanism | selection.selection_error | selection/test_selection.py::test_selection_error_holds
Theorem 4.7 | one-sided noisy arg-max | selection.selection_probs | selection/test_selection.py::test_one_sided_noise_against_all_permutations
Section 4.1.3 | randomized response | mechanisms.RandomizedResponse | mechanisms/test_randomized_response.py::test_delta_by_enumeration
Definitions 5.1 to 5.3 | KL and max divergence, statistical distance | tradeoff.renyi_divergence, tradeoff.max_divergence, tradeoff.hockey_stick | tradeoff/test_divergences.py::test_renyi, tradeoff/test_divergences.py::test_max_divergence_of_sets
Lemma 5.4 | delta as distance to a close distribution; item 2 false | published.das2022_close_distributions, tradeoff.hockey_stick | published/test_context.py::test_the_close_laws_of_the_lemma
Lemma 5.5 | KL of a pure mechanism | mechanisms.RandomizedResponse.rdp | mechanisms/test_randomized_response.py::test_dominates_every_pure_mechanism
Definitions 5.6, 5.7, Theorem 5.8 | advanced composition | composition.compose_dp, composition.composition_delta | composition/test_rules.py::test_advanced_closed_form
Theorem 5.9 | the same with deltas | composition.compose_dp, composition.composition_log_delta | composition/test_rules.py::test_equal_budgets_against_exact_rationals
Algorithm 5, Theorem 6.1 | AboveThreshold: does not halt, false | published.das2022_above_threshold_eps, selection.SparseVector | published/test_survey.py::test_above_threshold, selection/test_stream.py::test_a_run_halts_after_cutoff_answers
Definition 6.2, Theorem 6.3 | accuracy of AboveThreshold | selection.svt_accuracy | selection/test_selection.py::test_accuracy_is_the_root_of_the_failure_law
Algorithm 6, Theorem 6.4 | Sparse | selection.svt_scales, selection.SparseVector | selection/test_selection.py::test_optimal_scales_are_private_and_no_smaller_ones_are
Theorem 6.5 | accuracy of Sparse | selection.svt_accuracy | selection/test_selection.py::test_sparse_vector_reference
Algorithm 7, Theorem 6.6 | NumericSparse: misprints | published.das2022_numeric_sparse_eps, published.das2022_numeric_sparse_answer, published.das2022_numeric_sparse_scale, selection.SparseVector | published/test_survey.py::test_numeric_sparse, selection/test_stream.py::test_numbers_are_released_with_independent_noise
Definition 6.7, Theorem 6.8 | accuracy of NumericSparse: false | published.das2022_numeric_sparse_accuracy, selection.svt_accuracy | published/test_survey.py::test_numeric_sparse
Algorithm 8, Theorem 6.9 | SmallDB | selection.small_db | selection/test_small_db.py::test_no_replaced_record_changes_a_chance_by_more_than_eps
Theorems 6.10 to 6.12 | accuracy of SmallDB | selection.small_db_error, published.das2022_small_db_error, published.das2022_small_db_cube | selection/test_small_db.py::test_the_error_is_at_most_its_bound
Definition 7.1 | local privacy | mechanisms.PureLocal | engines/inputs/test_excess_laws.py::test_pure_budgets_are_exact
Definitions 7.2, 7.3, Theorem 7.9 | condensed local privacy, memoisation | | in words only
Section 7.2 | central against local: a mean error stated as a bound, false | published.das2022_mean_error, mechanisms.RandomizedResponse.error_bound | published/test_survey.py::test_verdicts, mechanisms/test_randomized_response.py::test_local_sample_size
Theorem 7.4 | RAPPOR | mechanisms.Rappor | mechanisms/test_rappor.py::test_every_report
Lemma 7.5 | privacy of one-bit means | mechanisms.RandomizedResponse | mechanisms/test_randomized_response.py::test_delta_by_enumeration
Lemma 7.6, Theorem 7.7 | error of one-bit means | mechanisms.RandomizedResponse.error_bound | mechanisms/test_randomized_response.py::test_error_bound_holds_exactly
Section 7.4.3, Lemma 7.8 | rounding at a point: biased, false | published.das2022_point_rounding | published/test_survey.py::test_point_rounding
Definitions 8.1, 8.2, Theorem 8.3 | Renyi divergence and privacy | tradeoff.renyi_divergence, PrivacyProfile.rdp | profile/test_curves.py::test_renyi_of_listed_laws
Theorems 8.4, 8.8 | from Renyi to (eps, delta) | composition.rdp_to_dp | composition/test_rules.py::test_conversion_at_one_order_is_attained
Theorems 8.5, 8.6 | monotone in the order; additive | tradeoff.renyi_divergence | tradeoff/test_divergences.py::test_renyi_adds_up_and_rises
Theorem 8.7 | advanced composition: n in place of k, false | published.das2022_advanced_composition | published/test_survey.py::test_verdicts
Definition 8.9, Theorems 8.10 to 8.13 | concentrated privacy | composition.zcdp_to_dp | composition/test_rules.py::test_best_order_of_zcdp
Theorem 8.14 | from pure to concentrated | mechanisms.RandomizedResponse.rdp | mechanisms/test_randomized_response.py::test_rdp_by_enumeration
Definition 8.15 | the Gaussian mechanism with given rho | mechanisms.GaussianMechanism.from_rho | mechanisms/test_gaussian.py::test_from_rho
Definitions 9.1, 9.2 | disjoint queries and their sum | histograms.point_error_lower_bound | test_histograms.py::test_the_inequality_of_the_theorem
Theorem 9.3, items 1 and 2 | lower bound of the error of a histogram: false for fractions k | published.das2022_point_sum_tradeoff, histograms.point_error_lower_bound | published/test_survey.py::test_tradeoff, test_histograms.py::test_the_inequality_of_the_theorem
Theorem 9.3, item 3 | the same for concentrated privacy | histograms.point_error_lower_bound_zcdp | test_histograms.py::test_the_bound_of_concentrated_privacy_is_the_best_of_every_t
Lemma 9.4 | mean of the largest squared noise: false | published.das2022_laplace_max_square | published/test_survey.py::test_largest_square
Lemma 9.5 | projection onto the simplex | histograms.project_simplex | test_histograms.py::test_projection_against_active_sets
Theorem 9.6 | histograms that attain the bound of Theorem 9.3: items 2 and 3 false | published.das2022_synthetic_rho, published.das2022_sum_error, mechanisms.GeometricMechanism, mechanisms.DiscreteGaussianMechanism | published/test_survey.py::test_moment_and_sum, mechanisms/test_geometric.py::test_truncated_by_enumeration
Lemma 9.7 | from pure to Renyi | mechanisms.RandomizedResponse.rdp | mechanisms/test_randomized_response.py::test_rdp_by_enumeration
Definition 9.8, Algorithm 9 | generalised sparse vector | selection.SparseVector | selection/test_stream.py::test_gaussian_noise_and_the_threshold_that_is_kept
Theorem 9.9 | Renyi privacy of generalised sparse vector | selection.svt_rdp | selection/test_selection.py::test_renyi_bound_against_the_outputs
Definition 9.10, Theorem 9.11 | non-negative queries: the moment is false | published.das2022_sparse_moment, selection.svt_log_moment | published/test_survey.py::test_moment_and_sum, selection/test_stream.py::test_the_length_by_another_quadrature
Theorem 9.12 | Renyi privacy with several answers | selection.svt_rdp, published.das2022_sparse_gaussian_eps | selection/test_selection.py::test_renyi_forms, published/test_survey.py::test_gaussian_sparse_vector
Algorithm 10, Theorems 9.13, 9.14 | sparse vector in stages | selection.svt_stages_epsilon | selection/test_stream.py::test_stages_are_at_most_the_smaller_of_both_bounds
""",
}


class Item(NamedTuple):
    """A line of the page."""

    item: str
    says: str
    names: tuple[str, ...]
    tests: tuple[str, ...]
    note: str


def items(text: str) -> list[Item]:
    """Return the lines of a paper."""
    found = []
    for line in text.strip().splitlines():
        item, says, names, tests = (part.strip() for part in line.split(" |"))
        if names:
            found.append(Item(item, says, tuple(names.split(", ")), tuple(tests.split(", ")), ""))
        else:
            found.append(Item(item, says, (), (), tests))
    return found


def checked(name: str) -> str:
    """Return how the page shows a name; LookupError where it does not exist."""
    kind, _, figure = name.partition(":")
    if kind == "figure":
        if not (ROOT / "docs" / "_static" / "figures" / f"{figure}.svg").exists():
            raise LookupError(f"no figure {figure}")
        shown = [page for page in ("published", "randomizers") if f"figures/{figure}.svg" in _text(page)]
        if not shown:
            raise LookupError(f"figure {figure} is on none of the pages")
        return f"[figure `{figure}`]({shown[0]}.md)"
    found, *rest = (importlib.import_module("shufflebounds"), *name.split("."))
    path = "shufflebounds"
    for part in rest:
        path += f".{part}"
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = importlib.import_module(path)
            except ImportError:
                raise LookupError(f"no name {name}") from None
    return f"`{name}`"


@cache
def _text(page: str) -> str:
    return (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")


@cache
def _functions(file: Path) -> frozenset[str]:
    return frozenset(node.name for node in ast.parse(file.read_text(encoding="utf-8")).body if isinstance(node, ast.FunctionDef))


def exists(test: str) -> str:
    """Return the test as the page shows it; LookupError where there is none."""
    file, _, function = test.partition("::")
    path = ROOT / "tests" / file
    if not path.exists() or (function and function not in _functions(path)):
        raise LookupError(f"no test {test}")
    words = function.removeprefix("test_").replace("_", " ")
    # words, which wrap where a column is narrow
    return f"{words} *({file.removesuffix('.py')})*" if words else f"*({file.removesuffix('.py')})*"


def page() -> str:
    """Return the tables of all papers, each folded under its title; LookupError where a name or a test does not exist."""
    parts = []
    for paper, text in PAPERS.items():
        lines = items(text)
        title = re.sub(r"\*(.*?)\*", r"<em>\1</em>", paper)
        parts += [f"<details><summary>{title}</summary>", "",
                  "| item, and what it says | answered by | checked by the test |", "|---|---|---|"]
        for line in lines:
            names = "<br>".join(checked(name) for name in line.names) or f"{line.note}"
            tests = "<br>".join(exists(test) for test in line.tests)
            parts.append(f"| **{line.item}** {line.says} | {names} | {tests} |")
        parts += ["", "</details>", ""]
    return "\n".join(parts)
