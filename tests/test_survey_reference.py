"""Every value of the survey's reference file that a public function computes, to a relative 1e-11."""

import math
from fractions import Fraction

import numpy as np
import pytest

from shufflebounds import composition, histograms, mechanisms, published, selection, tails, tradeoff
from tests.errors import reference, relative

P, Q = (np.log(np.array(law) / 20) for law in ((1, 4, 5, 10), (6, 6, 4, 4)))
BUDGETS = [0.1, 0.2, 0.3, 0.5, 0.8]
FAILURES = [1e-6, 1e-7, 1e-8, 1e-6, 1e-9]


def number(case, name):
    value = Fraction(str(case["params"][name]))
    return value.numerator if value.denominator == 1 else float(value)


def gaussian(rho):
    return mechanisms.GaussianMechanism.from_rho(rho)


def tight(queries, beta):
    return selection.svt_accuracy(selection.svt_scales(1.0), queries, beta)


def union(queries, beta, **how):
    return selection.svt_accuracy(selection.svt_scales(1.0, **how), queries, beta, method="union")


# For each prefix of an id, the function that computes the value; the longest matching prefix is used.
SERVED = {
    "t22_exact": lambda _: math.exp(tails.binom_logsf(2, 100, 0.01)),
    "binom_logsf": lambda c: float(tails.binom_logsf(number(c, "k") - 1, number(c, "n"), number(c, "p"))),
    "hoeffding": lambda c: tails.chernoff_logsf(number(c, "k"), number(c, "n"), number(c, "p"), method="hoeffding"),
    "chernoff_kl": lambda c: tails.chernoff_logsf(number(c, "k"), number(c, "n"), number(c, "p")),
    "poibin_sf_20": lambda c: math.exp(tails.poisson_binom_logsf(number(c, "k") - 1, np.arange(1, 21) / 40)),
    "rr_var": lambda c: mechanisms.RandomizedResponse(number(c, "eps")).variance,
    "rr_delta": lambda c: mechanisms.RandomizedResponse(number(c, "eps")).delta(number(c, "eps_prime")),
    "lap_delta": lambda c: mechanisms.LaplaceMechanism(1.0, number(c, "eps0")).delta(number(c, "eps")),
    "lap_tradeoff": lambda c: mechanisms.LaplaceMechanism(1.0).tradeoff().beta(number(c, "alpha")),
    "rnm_loss_nonmono": lambda _: float(np.subtract(*(
        selection.selection_log_probs(scores, 1.0, monotone=True, noise="laplace")[0] for scores in ([1, 11], [0, 12])))),
    "rnm_lap_012": lambda c: selection.selection_probs([0, 1, 2], 1.0, monotone=True, noise="laplace")[c["params"]["i"]],
    "onesided": lambda c: selection.selection_probs([0, 1, 2.5, 2], 0.7, monotone=True, noise="exponential")[c["params"]["i"]],
    "em_two_item": lambda c: selection.selection_probs([0, number(c, "c")], number(c, "eps"))[0],
    "gauss_delta": lambda c: mechanisms.GaussianMechanism(1.0, number(c, "mu")).delta(number(c, "eps")),
    "gauss_logdelta": lambda c: mechanisms.GaussianMechanism(1.0, number(c, "mu")).log_delta(number(c, "eps")),
    "gdp_tradeoff": lambda c: mechanisms.GaussianMechanism(1.0, number(c, "mu")).tradeoff().beta(number(c, "alpha")),
    "gauss_sigma": lambda c: mechanisms.GaussianMechanism.from_dp(eps=number(c, "eps"), delta=number(c, "delta")).sigma,
    "gauss_eps": lambda c: gaussian(number(c, "rho")).epsilon(number(c, "delta")),
    "gauss_classic_": lambda c: published.das2022_gaussian_sigma(number(c, "eps"), number(c, "delta")),
    "kl_rr": lambda c: mechanisms.RandomizedResponse(number(c, "eps")).rdp(1),
    "rdp_rr": lambda c: mechanisms.RandomizedResponse(number(c, "eps")).rdp(number(c, "alpha")),
    "rdp_lap": lambda c: mechanisms.LaplaceMechanism(number(c, "b")).rdp(number(c, "alpha")),
    "compopt": lambda c: composition.compose_dp(number(c, "eps"), 0.0, number(c, "delta"), k=number(c, "k")).eps,
    # The additional failure probability s is chosen such that the total 1 - (1 - s) prod (1 - delta_i) is 0.01.
    "mv_eps": lambda _: composition.compose_dp(BUDGETS, FAILURES, 1 - 0.99 / float(np.prod(1 - np.array(FAILURES)))).eps,
    # As doubles, the budgets add up to slightly more than 1.9.
    "mv_": lambda c: composition.composition_delta(BUDGETS, FAILURES, number(c, "eps_g") + 4e-16),
    "at_alpha_": lambda c: union(number(c, "k"), number(c, "beta")),
    "at_alpha_tight": lambda c: tight(number(c, "k"), number(c, "beta")),
    "sparse_alpha_delta": lambda c: union(
        number(c, "k"), number(c, "beta"), delta=number(c, "delta"), cutoff=number(c, "c"), method="advanced"),
    "sparse_alpha_pure": lambda c: union(number(c, "k"), number(c, "beta"), cutoff=number(c, "c")),
    "numsparse_alpha_pure": lambda c: union(number(c, "k"), number(c, "beta"), cutoff=number(c, "c"), numeric=True),
    "ns_alpha_fixed": lambda c: union(
        number(c, "k"), number(c, "beta"), delta=number(c, "delta"), cutoff=number(c, "c"), method="advanced", numeric=True),
    "onebit_err": lambda c: mechanisms.RandomizedResponse(number(c, "eps"), upper=number(c, "m")).error_bound(
        number(c, "n"), number(c, "delta")),
    "renyi_discrete": lambda c: tradeoff.renyi_divergence(P, Q, number(c, "alpha")),
    "kl_discrete": lambda _: tradeoff.renyi_divergence(P, Q, 1),
    "tv_discrete": lambda _: tradeoff.hockey_stick(P, Q, 0.0),
    "hs_discrete": lambda c: tradeoff.hockey_stick(P, Q, number(c, "eps")),
    "zcdp_cks": lambda c: composition.zcdp_to_dp(number(c, "rho"), delta=number(c, "delta"))[0],
    "cks_example": lambda c: composition.rdp_to_dp(4, 0.7, delta=1e-5)[0],
    "mironov_example": lambda c: composition.rdp_to_dp(4, 0.7, delta=1e-5, method="mironov")[0],
    "dgeo_var": lambda c: mechanisms.GeometricMechanism(number(c, "eps")).variance,
    "dgauss_var": lambda c: mechanisms.DiscreteGaussianMechanism(math.sqrt(1 / (2 * number(c, "rho")))).variance,
    "tdgeo_delta": lambda c: mechanisms.GeometricMechanism(0.5, bound=number(c, "B")).delta(0.5),
    "tdgeo_minB": lambda _: mechanisms.GeometricMechanism.from_dp(eps=0.5, delta=5e-7).bound,
    "svt_g_rdp": lambda c: selection.svt_rdp(
        8, mechanisms.GaussianMechanism(10.0).rdp, mechanisms.GaussianMechanism(20.0, 2.0).rdp, cutoff=5, max_queries=100),
}
SERVED |= {
    "lapmax2_100": lambda _: published.das2022_laplace_max_square.counterexample().truth,
    "svt_moment_T0": lambda _: published.das2022_sparse_moment.counterexample().truth,
}

UNSERVED = {
    "t22_correct": "a weakening of the multiplicative form that chernoff_logsf has",
    "stirling_gap_10": "lgamma answers",
    "warner_eps": "a parameter: RandomizedResponse(ln 3) is Warner's question",
    "lap_acc_union": "a union bound; error_quantile is exact",
    "gauss_classical_fail_eps": "a root of the comparison that das2022_gaussian_sigma makes",
    "dinf_delta_example": "max divergence with slack: epsilon(delta) of DominatingPair, tested with the pairs",
    "kl_lemma55": "a weakening of rdp(1)",
    "compadv_": "the printed advanced composition; compose_dp has a smaller one",
    "ns_fail_prob": "what the printed accuracy leaves out; svt_accuracy counts it",
    "smalldb_612": "SmallDB is an example in the documentation",
    "n_central": "a sample size in one line",
    "n_local_hoeffding": "the inverse of error_bound, in the number of users",
    "zcdp_basic": "a closed form above zcdp_to_dp",
    "lapmax_100": "the harmonic number",
    "abowd_upper_C2": "a mechanism's mean squared error; the library has the lower bound",
    "svt_gauss": "a single small run by enumeration, not a bound",
}


def name_of(case):
    return case["id"].removeprefix("survey/s4_")


def beginning(case):
    return max((word for word in [*SERVED, *UNSERVED] if name_of(case).startswith(word)), key=len, default=None)


def test_every_value_has_its_place():
    cases = reference("survey")
    assert [name_of(case) for case in cases if beginning(case) is None] == []
    assert {beginning(case) for case in cases} == SERVED.keys() | UNSERVED.keys()


@pytest.mark.parametrize("case", [case for case in reference("survey") if beginning(case) in SERVED], ids=name_of)
def test_value(case):
    assert relative(SERVED[beginning(case)](case), case["value"]) < 1e-11


def test_the_projection_beside_its_lemma():
    # The file has no value for Lemma 9.5.
    assert histograms.project_simplex([3.0, 1.0, -2.0], 2.0).tolist() == [2.0, 0.0, 0.0]
