"""Selection against all permutations, quadrature and simulation; sparse vector against its exact failure probability."""

import itertools
import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st

from shufflebounds import composition
from shufflebounds.selection import (
    SVTScales,
    selection_error,
    selection_log_probs,
    selection_probs,
    svt_accuracy,
    svt_rdp,
    svt_scales,
)
from tests.errors import reference
from tests.strategies import slow, thinned

SURVEY = {x["id"].removeprefix("survey/s4_"): x for x in reference("survey")}
NOISES = ("gumbel", "laplace", "exponential")


def value(key):
    return float(SURVEY[key]["value"])


def by_permutations(s):
    """Return the probabilities of permute-and-flip by its definition: in a random order, take item i with probability s_i.

    The result is exact for rational s with maximum 1.
    """
    out = [Fraction(0)] * len(s)
    for order in itertools.permutations(range(len(s))):
        left = Fraction(1)
        for i in order:
            out[i] += left * s[i]
            left *= 1 - s[i]
    return [x / math.factorial(len(s)) for x in out]


def by_quadrature(y, digits=60):
    """Return the probability that y_i + Laplace(1) is the largest, for each i, from the defining integral."""
    with mp.workdps(digits):
        y = [mp.mpf(float(a)) for a in y]
        ends = sorted(set(y))
        points = [-mp.inf, ends[0] - 20]
        for a, b in itertools.pairwise([*ends, ends[-1] + 30]):
            pieces = int((b - a) // 4) + 1
            points += [a + (b - a) * i / pieces for i in range(pieces)]
        points += [ends[-1] + 30, mp.inf]

        def cdf(x):
            return mp.exp(x) / 2 if x < 0 else 1 - mp.exp(-x) / 2

        return [
            mp.quad(lambda x, i=i: mp.exp(-abs(x - y[i])) / 2 * mp.fprod(cdf(x - b) for j, b in enumerate(y) if j != i), points)
            for i in range(len(y))
        ]


@pytest.mark.parametrize(
    "s",
    [
        [Fraction(1), Fraction(1, 2)],
        [Fraction(1), Fraction(1), Fraction(1, 8), Fraction(1, 2)],
        [Fraction(1), Fraction(3, 4), Fraction(3, 4), Fraction(1, 2), Fraction(1, 64), Fraction(1, 2)],
        [Fraction(1)] * 7,
        slow([Fraction(1), Fraction(1, 3), Fraction(1, 5), Fraction(1, 9), Fraction(7, 8), Fraction(15, 16), Fraction(1, 2**40)]),
    ],
)
def test_one_sided_noise_against_all_permutations(s):
    scores = [math.log(x) for x in s]
    got = selection_probs(scores, 2.0, noise="exponential")
    for a, b in zip(got, by_permutations(s), strict=True):
        assert a == pytest.approx(float(b), rel=2e-14)


@pytest.mark.slow
@pytest.mark.parametrize("y", [[0, 0], [0, -0.5, -0.5, -7, -7.25], [0, -60, 0, -0.001]])
def test_laplace_noise_against_quadrature(y):
    got = selection_log_probs(y, 2.0, noise="laplace")
    for a, b in zip(got, by_quadrature(y), strict=True):
        assert a == pytest.approx(float(mp.log(b)), rel=1e-14, abs=2e-14)


def test_reference():
    probs = selection_probs([0, 1, 2], 2.0, noise="laplace")
    assert probs[1] == pytest.approx(value("rnm_lap_012_1"), rel=1e-14)
    assert probs[2] == pytest.approx(value("rnm_lap_012_2"), rel=1e-14)
    for i in (0, 2):
        got = selection_probs([0, 1, 2.5, 2], 1.4, noise="exponential")[i]
        assert got == pytest.approx(value(f"onesided_{i}"), rel=1e-14)
    assert selection_probs([0, 5], 2.0)[0] == pytest.approx(value("em_two_item"), rel=1e-14)
    # The scores change in opposite directions, (1, 11) against (0, 12), under the noise for monotone scores.
    one, other = (selection_log_probs(s, 1.0, monotone=True, noise="laplace") for s in ([0.0, 12.0], [1.0, 11.0]))
    assert max(abs(one - other)) == pytest.approx(value("rnm_loss_nonmono"), rel=1e-13)


def test_two_candidates_in_closed_form():
    for t in (1e-8, 0.3, 5.0, 700.0, 1e5):
        laplace = -t + math.log1p(t / 2) - math.log(2)
        assert selection_log_probs([0, t], 2.0, noise="laplace")[0] == pytest.approx(laplace, rel=1e-14)
        assert selection_log_probs([0, t], 2.0, noise="exponential")[0] == pytest.approx(-t - math.log(2), rel=1e-14)
        assert selection_log_probs([0, t], 2.0)[0] == pytest.approx(-t - math.log1p(math.exp(-t)), rel=1e-14)


@pytest.mark.slow
@given(
    st.lists(st.one_of(st.integers(-5, 5), st.floats(-40, 40)), min_size=1, max_size=30),
    st.floats(0.01, 20),
    st.sampled_from(NOISES),
)
@settings(max_examples=25)
def test_probabilities_are_positive_and_sum_to_one(scores, eps, noise):
    probs = selection_probs(scores, eps, noise=noise)
    assert math.fsum(probs) == pytest.approx(1, abs=1e-12)
    assert (np.diff(probs[np.argsort(scores)]) >= -1e-13).all()
    shifted = selection_probs(np.array(scores) * 2.0 + 8, eps / 2, noise=noise)
    assert shifted == pytest.approx(probs, rel=1e-9, abs=1e-300)
    doubled = selection_probs(scores, 2 * eps, sensitivity=4.0, monotone=True, noise=noise)
    assert doubled == pytest.approx(probs, rel=1e-12)


@pytest.mark.slow
@given(st.lists(st.floats(-5, 5), min_size=2, max_size=6), st.lists(st.floats(-1, 1), min_size=6, max_size=6), st.floats(0.1, 3))
@settings(max_examples=25)
def test_privacy(scores, moves, eps):
    for noise in NOISES:
        other = np.array(scores) + moves[: len(scores)]
        loss = selection_log_probs(scores, eps, noise=noise) - selection_log_probs(other, eps, noise=noise)
        assert abs(loss).max() <= eps * (1 + 1e-9)
        # All scores increase by at most 1, so half of the noise suffices.
        rise = np.array(scores) + np.abs(moves[: len(scores)])
        before, after = (selection_log_probs(s, eps, noise=noise, monotone=True) for s in (scores, rise))
        loss = before - after
        assert abs(loss).max() <= eps * (1 + 1e-9)


@pytest.mark.slow
def test_thousands_of_candidates():
    rng = np.random.default_rng(3)
    scores = rng.exponential(3, 3000)
    for noise in NOISES:
        assert math.fsum(selection_probs(scores, 2.0, noise=noise)) == pytest.approx(1, abs=1e-12)
        assert selection_probs(np.zeros(10**6), 2.0, noise=noise)[0] == pytest.approx(1e-6, rel=1e-12)
        # There are a thousand equal candidates, and one with a far smaller score.
        many = selection_log_probs(np.append(np.zeros(1000), -50.0), 2.0, noise=noise)
        assert many[0] == pytest.approx(-math.log(1000), rel=1e-12)
    # The single candidate, whose weight is s, has probability s int (1-t)^1000 dt.
    assert many[-1] == pytest.approx(-50 - math.log(1001), rel=1e-14)
    spread = selection_probs(np.arange(2000) * 0.01, 2.0, noise="laplace")
    assert math.fsum(spread) == pytest.approx(1, abs=1e-12)


def test_simulation():
    rng = np.random.default_rng(5)
    scores, eps, n = np.array([0.0, 1.0, 1.5]), 1.0, 400_000
    for noise, draw in (("gumbel", rng.gumbel), ("laplace", rng.laplace), ("exponential", rng.exponential)):
        picked = (scores + draw(scale=2 / eps, size=(n, 3))).argmax(axis=1)
        share = np.bincount(picked, minlength=3) / n
        assert abs(share - selection_probs(scores, eps, noise=noise)).max() < 5 * math.sqrt(0.25 / n)


@pytest.mark.parametrize("candidates", thinned([5, 1000, 3e200, math.nextafter(1.9, 2), math.nextafter(1.3, 2)], 3))
@pytest.mark.parametrize("beta", [5e-324, 0.05, 0.7, 1 - 2**-53])
@pytest.mark.parametrize("optimal", [1, 1.3, 1.9])
def test_selection_error_is_its_formula_rounded_up(candidates, beta, optimal):
    if optimal > candidates:
        return
    with mp.workdps(400):
        exact = 2 / mp.mpf(0.7) * (mp.log(mp.mpf(candidates) / mp.mpf(optimal)) - mp.log(mp.mpf(beta)))
        assert exact <= selection_error(candidates, 0.7, beta, optimal=optimal) <= exact * (1 + 3e-15)


@given(st.lists(st.floats(0, 8), min_size=2, max_size=12), st.floats(0.2, 4), st.floats(0.01, 0.5))
@settings(max_examples=25)
def test_selection_error_holds(scores, eps, beta):
    scores = np.array(scores)
    margin = selection_error(len(scores), eps, beta, optimal=int((scores == scores.max()).sum()))
    for noise in ("gumbel", "exponential"):
        probs = selection_probs(scores, eps, noise=noise)
        assert probs[scores <= scores.max() - margin].sum() <= beta * (1 + 1e-12)
    # The error of one-sided noise is at most that of Gumbel noise.
    ranked = np.argsort(scores)
    gumbel, flip = (np.cumsum(selection_probs(scores, eps, noise=n)[ranked]) for n in ("gumbel", "exponential"))
    assert (flip <= gumbel * (1 + 1e-12)).all()


# The following tests are for sparse vector.


def failure_law(scales, k, alpha, digits=30):
    """Return Pr[max |T| + max |V| > alpha, or some |A| > alpha] by adaptive quadrature.

    T is the noise of the thresholds, V that of the k queries, and A that of the released answers.
    """
    with mp.workdps(digits):
        s, q, c = mp.mpf(scales.threshold), mp.mpf(scales.query), scales.cutoff
        alpha = mp.mpf(alpha)

        def integrand(u):
            density = c / s * mp.exp(-u / s) * (1 - mp.exp(-u / s)) ** (c - 1)
            return density * -mp.expm1(k * mp.log1p(-mp.exp(-(alpha - u) / q)))

        points = [alpha * i / 24 for i in range(24)] + [alpha * (1 - mp.mpf(10) ** -12)]
        out = mp.quad(integrand, points) + 1 - (1 - mp.exp(-alpha / s)) ** c
        if scales.answer is not None:
            out += (1 - out) * (1 - (1 - mp.exp(-alpha / mp.mpf(scales.answer))) ** c)
        return out


def test_sparse_vector_reference():
    scales = svt_scales(1.0)
    assert svt_accuracy(scales, 10, 0.05) == pytest.approx(value("at_alpha_tight_10"), rel=1e-11)
    assert svt_accuracy(scales, 1000, 0.01) == pytest.approx(value("at_alpha_tight_1000"), rel=1e-11)
    assert svt_accuracy(scales, 10, 0.05, method="union") == pytest.approx(value("at_alpha_10"), rel=1e-14)
    union = {"method": "union"}
    assert svt_accuracy(svt_scales(1.0, 0.0, 5), 1000, 0.05, **union) == pytest.approx(value("sparse_alpha_pure"), rel=1e-14)
    closed = svt_scales(1.0, 1e-6, 5, method="advanced")
    assert svt_accuracy(closed, 1000, 0.05, **union) == pytest.approx(value("sparse_alpha_delta"), rel=1e-14)
    numeric = svt_scales(1.0, 0.0, 5, numeric=True)
    assert svt_accuracy(numeric, 1000, 0.05, **union) == pytest.approx(value("numsparse_alpha_pure"), rel=1e-14)
    numeric = svt_scales(1.0, 1e-6, 1, numeric=True, method="advanced")
    assert svt_accuracy(numeric, 10, 0.05, **union) == pytest.approx(value("ns_alpha_fixed"), rel=1e-14)


def test_union_bound_where_the_threshold_has_the_larger_noise():
    # Each of the 2 x 3 noises, of the threshold and of the queries in three runs, exceeds its bound with probability beta/6.
    found = svt_accuracy(SVTScales(20.0, 1.0, None, 3), 10, 0.05, method="union")
    assert found == pytest.approx(2 * 20 * math.log(6 / 0.05), rel=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scales", "k", "beta"),
    [
        (SVTScales(2.0, 4.0, None, 1), 10**6, 1e-9),
        (SVTScales(3.0, 1.0, None, 7), 50, 0.01),
        (SVTScales(1.0, 2.0, 6.0, 4), 20, 0.01),
    ],
)
def test_accuracy_is_the_root_of_the_failure_law(scales, k, beta):
    alpha = svt_accuracy(scales, k, beta)
    assert failure_law(scales, k, alpha) <= beta
    assert failure_law(scales, k, alpha * (1 - 1e-10)) > beta * (1 - 1e-9)
    assert failure_law(scales, k, alpha * (1 - 1e-10)) > failure_law(scales, k, alpha)
    assert alpha <= svt_accuracy(scales, k, beta, method="union")


def test_failure_law_by_simulation():
    rng = np.random.default_rng(11)
    scales, k, n = svt_scales(1.0, 0.0, 3, numeric=True), 20, 40_000
    alpha = svt_accuracy(scales, k, 0.1)
    threshold = abs(rng.laplace(scale=scales.threshold, size=(n, 3))).max(axis=1)
    query = abs(rng.laplace(scale=scales.query, size=(n, k))).max(axis=1)
    answer = abs(rng.laplace(scale=scales.answer, size=(n, 3))).max(axis=1)
    failed = ((threshold + query > alpha) | (answer > alpha)).mean()
    assert abs(failed - 0.1) < 5 * math.sqrt(0.09 / n)


@pytest.mark.slow
@given(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3), st.integers(1, 10**6), st.integers(1, 50), st.floats(-600, -0.01))
@settings(max_examples=25)
def test_accuracy_of_any_scales(wide, narrow, k, c, log_beta):
    beta = math.exp(log_beta)
    alpha = svt_accuracy(SVTScales(wide, narrow, None, c), k, beta)
    # The quantile is at least that of each noise alone, and at most that of the union bound.
    alone = max(wide * -math.log(-math.expm1(math.log1p(-beta) / c)), narrow * -math.log(-math.expm1(math.log1p(-beta) / k)))
    assert alone * (1 - 1e-9) <= alpha <= svt_accuracy(SVTScales(wide, narrow, None, c), k, beta, method="union")


@pytest.mark.parametrize("numeric", [False, True])
@pytest.mark.parametrize(("eps", "delta", "cutoff"), [(1.0, 1e-6, 50), (0.1, 1e-9, 1), (8.0, 1e-5, 200)])
def test_optimal_scales_are_private_and_no_smaller_ones_are(eps, delta, cutoff, numeric):
    scales = svt_scales(eps, delta, cutoff, numeric=numeric)
    assert scales.query == 2 * scales.threshold

    def total(factor, bound):
        budgets = [2 / scales.threshold * factor] + ([1 / scales.answer * factor] if numeric else [])
        return composition.composition_delta(budgets, 0.0, eps, k=[cutoff] * len(budgets), bound=bound)

    assert total(1, "upper") <= delta * (1 + 1e-12)
    assert total(1 + 1e-9, "lower") > delta * (1 - 1e-9)
    if numeric:
        assert scales.answer == 4 * scales.threshold
    pure = svt_scales(eps, 0.0, cutoff, numeric=numeric)
    assert scales.threshold < pure.threshold


def test_pure_scales():
    assert svt_scales(0.5, 0.0, 3) == (12.0, 24.0, None, 3)
    got = svt_scales(1.0, 0.0, 2, numeric=True)
    assert got[:3] == pytest.approx((4.5, 9.0, 18.0), rel=1e-15)
    with pytest.raises(ValueError, match="does not confirm"):
        svt_scales(120.0, 1e-5, 1000, method="advanced")


def gaussian(sigma, sensitivity=1.0):
    return lambda a: a * sensitivity**2 / (2 * sigma**2)


def test_renyi_reference():
    got = svt_rdp(8, gaussian(10), gaussian(20, 2), cutoff=5, max_queries=100)
    assert got == pytest.approx(value("svt_g_rdp"), rel=1e-12)
    # For two queries, threshold noise 1, query noise 2 and order 3, the exact divergence is below the bound.
    assert svt_rdp(3, gaussian(1), gaussian(2, 2), max_queries=2) > value("svt_gauss_D3")


@pytest.mark.parametrize("cutoff", [1, 2])
@pytest.mark.parametrize("order", thinned([1.5, 3.0, 12.0], 2))
def test_renyi_bound_against_the_outputs(order, cutoff):
    """Gaussian sparse vector on three queries without resampling: the probability of every output is computed by quadrature."""
    s1, s2, k = 0.8, 1.1, 3
    x, w = np.polynomial.hermite_e.hermegauss(80)
    normal = scipy.special.ndtr

    def chances(q):
        out = []
        for pattern in itertools.product((0, 1), repeat=k):
            # An output ends after the last allowed answer, so patterns that agree up to there are one output.
            stop = next((i + 1 for i in range(k) if sum(pattern[: i + 1]) == cutoff), k)
            if any(pattern[stop:]):
                continue
            below = normal((x[:, None] * s1 - np.array(q[:stop])) / s2)
            parts = np.where(np.array(pattern[:stop]) == 1, 1 - below, below)
            out.append(float((w * parts.prod(axis=1)).sum() / w.sum()))
        return np.array(out)

    worst = 0.0
    for q in itertools.product((-1.0, 0.0, 1.0), repeat=k):
        for moves in itertools.product((-1.0, 1.0), repeat=k):
            p, r = chances(q), chances(np.array(q) + moves)
            assert p.sum() == pytest.approx(1, abs=1e-9)
            worst = max(worst, math.log(float((p**order * r ** (1 - order)).sum())) / (order - 1))
    bound = svt_rdp(order, gaussian(s1), gaussian(s2, 2), cutoff=cutoff, max_queries=k)
    assert 0 < worst <= bound


def test_renyi_forms():
    def laplace(eps):
        return lambda a: eps if a == math.inf else float(
            np.logaddexp(math.log(a / (2 * a - 1)) + (a - 1) * eps, math.log((a - 1) / (2 * a - 1)) - a * eps) / (a - 1)
        )

    # The bound is that for pure privacy, or that by the number of outputs if it is smaller.
    assert svt_rdp(2.0, gaussian(1), laplace(0.5)) == pytest.approx(1.0 + 0.5, rel=1e-12)
    assert svt_rdp(2.0, gaussian(1), laplace(0.5), cutoff=3, resample=True) == pytest.approx(3 + 1.5, rel=1e-12)
    counted = 0.25 + 50 * 4 / 162 + math.log(8) / 49
    assert svt_rdp(50.0, gaussian(10), gaussian(9, 2), max_queries=7) == pytest.approx(counted, rel=1e-12)
    # The bound uses moments of the length: first the supremum of its mean, and then its second moment.
    base = svt_rdp(4.0, gaussian(3), gaussian(5, 2), log_moment=math.log(6))
    assert base == pytest.approx(4 / 18 + 16 / 50 + math.log(6) / 3, rel=1e-12)
    second = svt_rdp(4.0, gaussian(3), gaussian(5, 2), log_moment=2 * math.log(6), moment=2.0)
    assert second == pytest.approx(7 / 18 + 16 / 50 + math.log(6) / 3, rel=1e-12)
    printed = (4 - 1 + 0.5) / 3 * gaussian(3)(8.0) + 16 / 50 + math.log(6) / 3
    assert second < printed
    assert svt_rdp(2.0, gaussian(1), gaussian(1), cutoff=9, max_queries=5) <= 1 + 9 + 5 * math.log(2) + 1e-9
    assert svt_rdp(2.0, gaussian(1), gaussian(1), cutoff=3000, max_queries=10**4) >= 3001 + math.log(math.comb(10**4, 3000))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: selection_probs([], 1.0), "scores must not be empty"),
        (lambda: selection_probs([[1.0]], 1.0), "one-dimensional"),
        (lambda: selection_probs([1.0], 0.0), "eps=0"),
        (lambda: selection_probs([1.0, math.nan], 1.0), "scores holds nan"),
        (lambda: selection_probs([1.0], 1.0, noise="cauchy"), "noise='cauchy'"),
        (lambda: selection_probs([0.0, 1e12], 1.0, noise="laplace"), "times the noise scale apart"),
        (lambda: selection_error(0.5, 1.0, 0.1), r"candidates=0\.5"),
        (lambda: selection_error(5, 1.0, 0.1, optimal=6), "optimal=6"),
        (lambda: svt_scales(1.0, 1.0), "delta=1"),
        (lambda: svt_scales(1.0, cutoff=0), "cutoff=0"),
        (lambda: svt_accuracy(SVTScales(0.0, 1.0, None, 1), 5, 0.1), r"scales\.threshold=0"),
        (lambda: svt_accuracy(svt_scales(1.0), 0, 0.1), "n_queries=0"),
        (lambda: svt_rdp(1.0, gaussian(1), gaussian(1), max_queries=3), "order=1"),
        (lambda: svt_rdp(2.0, gaussian(1), gaussian(1), cutoff=2, log_moment=0.0), "cutoff=2"),
        (lambda: svt_rdp(2.0, gaussian(1), gaussian(1)), "not finite"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("noise", ["gumbel", "laplace", "exponential"])
def test_scores_at_the_ends_of_their_range(noise):
    assert selection_probs([5.0, 5.0], 700.0, sensitivity=1e-308, noise=noise) == pytest.approx([0.5, 0.5], rel=1e-15)
    for scores in ([0.0, 1e300], [-1e308, 1e308]):
        with pytest.raises(ValueError, match="times the noise scale apart: they must be within 1e"):
            selection_probs(scores, 1.0, sensitivity=1e-300, noise=noise)


@pytest.mark.parametrize("numeric", [False, True])
@pytest.mark.parametrize("delta", [1e-300, 1e-6, 1 - 2.0**-53])
def test_budgets_at_the_end_of_the_range(delta, numeric):
    scales = svt_scales(700.0, delta, numeric=numeric)
    # The budget of one run is 2/threshold, which is at most 700.
    assert 2 / 700 <= scales.threshold <= 2 / 700 * 1.126


@pytest.mark.parametrize("monotone", [math.nan, "no", None, 1])
def test_monotone_is_true_or_false(monotone):
    with pytest.raises(ValueError, match=r"monotone=.* must be True or False"):
        selection_probs([0.0, 1.0], 1.0, monotone=monotone)


@pytest.mark.parametrize("answer", [math.nan, -1.0, None, "x"])
def test_invalid_divergences_are_refused(answer):
    with pytest.raises(ValueError, match=r"rdp_threshold\(2\)=.* must be a number >= 0, or inf"):
        svt_rdp(2.0, lambda _: answer, lambda a: a, max_queries=3)


def test_arguments_of_sparse_vector_of_another_kind():
    with pytest.raises(ValueError, match=r"scales=1.0 must be SVTScales"):
        svt_accuracy(1.0, 10, 0.1)
    with pytest.raises(ValueError, match=r"rdp_query=3.0 must be a function"):
        svt_rdp(2.0, lambda a: a, 3.0, max_queries=3)
    with pytest.raises(ValueError, match=r"moment=nan must be"):
        svt_rdp(2.0, lambda a: a, lambda a: a, log_moment=1.0, moment=math.nan)


def _exact_log_probability(scores, rate, i):
    """Return log Pr[score i is the largest after Laplace noise], as a sum of exponentials on each interval between scores."""
    levels = [mp.mpf(x) * mp.mpf(rate) for x in scores]
    edges = [-mp.inf, *sorted(levels), mp.inf]
    total = mp.mpf(0)
    for low, high in itertools.pairwise(edges):
        # The integrand is the sum of the terms factor * e^(power * y), stored as {power: factor}.
        terms = {0: mp.mpf(1)}
        for j, level in enumerate(levels):
            below = high <= level
            if j == i:
                other = {1: mp.exp(-level) / 2} if below else {-1: mp.exp(level) / 2}
            else:
                other = {1: mp.exp(-level) / 2} if below else {0: mp.mpf(1), -1: -mp.exp(level) / 2}
            product = {}
            for (a, x), (b, y) in itertools.product(terms.items(), other.items()):
                product[a + b] = product.get(a + b, mp.mpf(0)) + x * y
            terms = {power: factor for power, factor in product.items() if factor != 0}
        for power, factor in terms.items():
            ends = [0 if mp.isinf(y) else mp.exp(power * y) for y in (low, high)]
            total += factor * (high - low if power == 0 else (ends[1] - ends[0]) / power)
    return mp.log(total)


def test_laplace_scores_far_apart_against_a_closed_form():
    # For the first candidate, an independent quadrature gave -150.91555495828.
    scores, eps = [-261.6020994342484, 8624.580599772537, 0.0], 0.017392150060485962
    got = selection_log_probs(scores, eps, monotone=True, noise="laplace")
    with mp.workdps(200):
        for i, value in enumerate(got):
            exact = _exact_log_probability(scores, eps, i)
            assert abs(value - exact) <= 1e-13 + 4e-16 * abs(exact)
