"""Published bounds of the boolean sum, of flipped bits and of zsum: reference values, and counterexamples in fractions."""

import json
import math
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtri

from shufflebounds import published
from shufflebounds.shuffle import BinomialNoise, ShuffledBits, ShuffledHistogram, ZeroSum
from shufflebounds.tails import binom_logcdf, binom_logpmf, binom_logsf
from tests.oracles import hockey_stick
from tests.strategies import thinned

REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "shuffled-bits.json").read_text())


def entries(*beginnings):
    """Return the reference values whose ids have one of the prefixes, with their parameters as numbers."""
    found = []
    for entry in REFERENCE:
        name = entry["id"].removeprefix("shuffled-bits/")
        if name.startswith(beginnings):
            given = {key: float(value) for key, value in entry["params"].items() if key not in ("note", "argmax_m")}
            found.append(pytest.param(given, float(entry["value"]), id=name))
    assert found
    return found


def users(given):
    return int(given["n"])


def case(given):
    return users(given), given["eps"], given["delta"]


# --- the published numbers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("given", "value"), entries("s000.f_thm2.", "s000.f_step."))
def test_theorem_2(given, value):
    assert published.chen_long_tradeoff(users(given), given["lam"], given["alpha"]) == pytest.approx(value, rel=1e-10)


@pytest.mark.parametrize(("given", "value"), entries("s000.delta_thm2."))
def test_the_pair_of_theorem_2(given, value):
    assert published.chen_long_delta(users(given), given["lam"], given["eps"]) == pytest.approx(value, rel=1e-10)


def test_the_curve_of_theorem_2_at_its_ends():
    assert published.chen_long_tradeoff(100, 58, 0.0) == pytest.approx(1 - 0.71**100, rel=1e-13)
    assert published.chen_long_tradeoff(100, 58, 1.0) == 0
    assert published.chen_long_tradeoff(1, 0.5, 0.5) == 0


@pytest.mark.parametrize(("given", "value"), entries("s000.mu_pub_interiorknots."))
def test_corollaries_3_2_and_3_3(given, value):
    mu = published.chen_long_mu_interior(users(given), given["lam"])
    assert mu == pytest.approx(value, rel=1e-10)
    assert published.chen_long_mu_real_sum(users(given), given["lam"], 10) == pytest.approx(math.sqrt(10) * value, rel=1e-10)
    assert published.chen_long_mu(users(given), given["lam"]) == math.inf
    # Taken literally, the published curve is below 1 at alpha = 0.
    assert published.chen_long_tradeoff(users(given), given["lam"], 0.0) < 1


@pytest.mark.parametrize(("given", "value"), entries("s000.C1."))
def test_claim_c_1(given, value):
    assert published.cheu2019_fixed_set(int(given["H"]), given["delta"]) == pytest.approx(value, rel=1e-10)


def test_claim_c_1_of_the_spec():
    assert published.cheu2019_fixed_set(50, 0.01) == pytest.approx(1.0845801181608072024906445, rel=1e-10)
    assert published.cheu2019_fixed_set(1000, 1e-9) == pytest.approx(0.6103815312798784145869432, rel=1e-10)
    with pytest.raises(ValueError, match=r"coins=50 must be > 8 ln\(4/delta\)"):
        published.cheu2019_fixed_set(50, 0.007)


@pytest.mark.parametrize(("given", "value"), entries("s000.cheu."))
def test_the_boolean_sum_of_cheu_et_al(given, value):
    assert published.cheu2019_boolean_sum(users(given), given["lam"], given["delta"]) == pytest.approx(value, rel=1e-10)


@pytest.mark.parametrize(("given", "value"), thinned(entries("s001.q436."), 3))
def test_4_36(given, value):
    assert published.zhilyaev_flip_zeros(*case(given)) == pytest.approx(value, rel=1e-10)


@pytest.mark.parametrize(("given", "value"), thinned(entries("s001.q448."), 3))
def test_4_48(given, value):
    assert published.zhilyaev_flip(*case(given)) == pytest.approx(value, rel=1e-10)


@pytest.mark.parametrize(("given", "value"), entries("s001.nq448."))
def test_4_48_times_n(given, value):
    assert 10**5 * published.zhilyaev_flip(10**5, given["eps"], given["delta"]) == pytest.approx(value, rel=1e-10)


@pytest.mark.parametrize(("given", "value"), entries("s001.nq448_refined."))
def test_4_48_from_the_root(given, value):
    assert 10**5 * published.zhilyaev_flip_root(10**5, given["eps"], given["delta"]) == pytest.approx(value, rel=1e-10)


@pytest.mark.parametrize(("given", "value"), entries("s003.gamma_pub."))
def test_gamma_of_theorem_3_1(given, value):
    assert published.balcer_cheu_gamma(*case(given)) == pytest.approx(value, rel=1e-10)


@pytest.mark.parametrize(("given", "value"), entries("s003.alpha_pub."))
def test_error_of_theorem_3_1(given, value):
    assert published.balcer_cheu_error(*case(given), given["beta"]) == pytest.approx(value, rel=1e-10)


# --- the exact numbers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "digits"),
    [
        ("chen_long_tradeoff", 0.93912303670532136619584341, 1e-10),
        ("chen_long_delta", 5.32237256764e-5, 1e-10),
        ("chen_long_mu", 0.11138848355996431501576725, 1e-10),
        ("chen_long_mu_interior", 0.11138848355996431501576725, 1e-10),
        ("zhilyaev_flip_zeros", 3.4064963521480065380223e-5, 1e-10),
        ("zhilyaev_lemma", 5.2469206176621748725503588644077e-9, 1e-10),
        ("balcer_cheu_gamma", 34.0679e-6, 1e-5),
        ("balcer_cheu_error", 2989e-5, 1e-10),
    ],
)
def test_exact_values(name, value, digits):
    assert getattr(published, name).comparison().exact == pytest.approx(value, rel=digits)


# --- counterexamples, in fractions ----------------------------------------------------------------------------------------------


def law(n, ones, q):
    """Return the distribution of the sum of n flipped bits, of which `ones` are set, by enumeration."""
    chances = [1 - q] * ones + [q] * (n - ones)
    out = [Fraction(0)] * (n + 1)
    for bits in product((0, 1), repeat=n):
        out[sum(bits)] += math.prod((c if b else 1 - c for b, c in zip(bits, chances)), start=Fraction(1))
    return out


def test_theorem_2_fails_at_a_breakpoint():
    q = Fraction(1, 10)
    zero, one = law(5, 0, q), law(5, 1, q)
    alpha, beta = 1 - zero[0], one[0]
    shown = published.chen_long_tradeoff.counterexample()
    assert (float(alpha), float(beta)) == (0.40951, 0.06561)
    assert shown.truth == pytest.approx(float(beta), rel=1e-12)
    # F(0) = 0.59049 is at least alpha, so the published value is 1 - F(1).
    assert shown.printed == pytest.approx(float(1 - zero[0] - zero[1]), rel=1e-12)
    assert beta < 1 - zero[0] - zero[1]


def test_theorem_2_fails_as_eps_and_delta():
    q = Fraction(1, 10)
    truth = hockey_stick(law(8, 4, q), law(8, 5, q), 1)
    claim = max(law(8, 0, q)[0], law(8, 0, q)[8])
    noise = law(8, 0, q)
    assert hockey_stick([*noise, 0], [0, *noise], 1) == max(noise)
    assert claim == max(noise) == Fraction(9, 10) ** 8
    shown = published.chen_long_delta.counterexample()
    assert truth == Fraction(1100943, 2500000)
    assert truth > claim
    assert shown.truth == pytest.approx(float(truth), rel=1e-9)
    assert shown.printed == pytest.approx(float(claim), rel=1e-9)


def test_corollary_3_2_fails_for_interior_breakpoints():
    q = Fraction(1, 10)
    zero, one = law(5, 0, q), law(5, 1, q)
    # The test with alpha = 1 - zero[0] and beta = one[0] shows that a valid mu is at least Phi^-1(1 - alpha) - Phi^-1(beta).
    least = ndtri(float(zero[0])) - ndtri(float(one[0]))
    knots = [float(sum(zero[k + 1 :])) for k in range(5)]
    claim = max(ndtri(a) - ndtri(b) for a, b in pairwise(knots))
    shown = published.chen_long_mu_interior.counterexample()
    assert shown.printed == pytest.approx(claim, rel=1e-12)
    assert shown.truth == pytest.approx(least, rel=1e-12)
    assert claim < 1.2 < 1.7 < least
    assert published.chen_long_mu_real_sum.counterexample().truth == shown.truth


def test_lemma_4_2_has_the_wrong_coefficient():
    q, ratio = Fraction(1, 5), Fraction(3, 2)
    others = law(4, 0, q)
    truth = hockey_stick(law(5, 0, q), law(5, 1, q), ratio)
    below = [sum(others[: k + 1]) for k in range(5)]
    claim = max((2 * (1 - q) * ratio - 1) * others[k] - (ratio - 1) * below[k] for k in range(5))
    corrected = max(((1 - q) * ratio - q) * others[k] - (ratio - 1) * below[k] for k in range(5))
    assert truth == corrected == Fraction(128, 625)
    assert claim == Fraction(1152, 3125)
    shown = published.zhilyaev_lemma.counterexample()
    assert (shown.printed, shown.truth) == (pytest.approx(float(claim), rel=1e-12), pytest.approx(float(truth), rel=1e-12))


@pytest.mark.parametrize(("n", "ones", "q"), [(1, 0, 0.3), (4, 2, 0.1), (6, 5, 0.25)])
def test_lemma_4_2_as_printed(n, ones, q):
    others = law(n - 1, ones, Fraction(q)) if n > 1 else [Fraction(1)]
    ratio = Fraction(math.exp(0.4))
    coefficient = 2 * (1 - Fraction(q)) * ratio - 1
    claim = max(coefficient * others[k] - (ratio - 1) * sum(others[: k + 1]) for k in range(n))
    assert published.zhilyaev_lemma(n, q, 0.4, ones) == pytest.approx(float(claim), rel=1e-12)


def test_the_converse_of_proposition_2_3_fails():
    # For one bit with q = 1/4 and e^eps = 2, the loss is ln 3 with probability 3/4.
    shown = published.zhilyaev_pointwise.counterexample()
    assert (shown.printed, shown.truth) == (pytest.approx(1 / 4, rel=1e-12), pytest.approx(3 / 4, rel=1e-12))
    q, ratio = Fraction(1, 10), Fraction(3, 2)
    zero, one = law(6, 0, q), law(6, 1, q)
    above = max(sum(a for a, b in zip(p, r) if a > ratio * b) for p, r in ((zero, one), (one, zero)))
    assert published.zhilyaev_pointwise(6, 0.1, math.log(1.5)) < above
    for looser in (1.6, 2.0, 4.0):
        far = max(sum(a for a, b in zip(p, r) if a > looser * b) for p, r in ((zero, one), (one, zero)))
        assert far <= published.zhilyaev_pointwise(6, 0.1, math.log(1.5)) / (1 - 1.5 / looser)


def test_4_62_lacks_a_root():
    n, eps, delta = 10**4, 1.0, 1e-6
    q = published.zhilyaev_flip(n, eps, delta)
    printed = published.zhilyaev_deviation(n, eps, delta)
    assert printed == pytest.approx(math.sqrt(1 - q) / (1 - 2 * q) * (n * q), rel=1e-12)
    assert published.zhilyaev_deviation.counterexample().truth == pytest.approx(math.sqrt(n * q * (1 - q)) / (1 - 2 * q), rel=1e-12)
    with pytest.raises(ValueError, match="too few"):
        published.zhilyaev_deviation(100, eps, delta)


# --- unproven, without a violation on a grid ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", thinned([2, 3, 5, 12, 40, 200, 3000], 3))
@pytest.mark.parametrize("eps", [0.3, 1.0, 2.5, 5.0])
def test_flips_of_section_4_have_no_violation_on_a_grid(n, eps):
    for delta in (0.9, 0.3, 0.05, 1e-3, 1e-7):
        for flip, ones in (
            (published.zhilyaev_flip_zeros, 0),
            (published.zhilyaev_flip, "worst"),
            (published.zhilyaev_flip_root, "worst"),
        ):
            q = flip(n, eps, delta)
            if q < 0.5:
                assert ShuffledBits(n, q, ones=ones).delta(eps) <= delta


@pytest.mark.parametrize("n", [40, 100, 400, 5000])
def test_the_boolean_sum_of_cheu_et_al_has_no_violation_on_a_grid(n):
    for delta in (1.0, 0.5, 0.1, 1e-3, 1e-8):
        least = 14 * math.log(4 / delta)
        for lam in np.geomspace(least, n, 5) * (1 + 1e-12) if least < n else []:
            if lam < n:
                eps = published.cheu2019_boolean_sum(n, lam, delta)
                assert ShuffledBits.boolean_sum(n, lam).delta(eps) <= delta


# --- proven ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("coins", [12, 50, 400, 10**5])
def test_claim_c_1_is_an_upper_bound(coins):
    for delta in (1.0, 0.5, 1e-2, 1e-6, 1e-12):
        if coins > 8 * math.log(4 / delta):
            assert BinomialNoise(coins, 0.5).delta(published.cheu2019_fixed_set(coins, delta)) <= delta / 2


def tail(n, ones, q, distance):
    """Return Pr[|s - mean| > distance] by convolution, and the mean of the sum s of n flipped bits, of which `ones` are 1."""
    kept, flipped = binom_logpmf(np.arange(ones + 1), ones, 1 - q), binom_logpmf(np.arange(n - ones + 1), n - ones, q)
    s = np.convolve(np.exp(kept), np.exp(flipped))
    mean = ones * (1 - q) + (n - ones) * q
    return s[np.abs(np.arange(n + 1) - mean) > distance * (1 + 1e-12)].sum(), mean


@pytest.mark.parametrize("n", [5, 30, 200])
@pytest.mark.parametrize("q", [0.01, 0.1, 0.3, 0.5])
def test_tails(n, q):
    for ones, t in product((0, 1, n // 3, n // 2, n), (0.1, 0.4, 0.8, 1.0, 1.5)):
        mean = tail(n, ones, q, 0)[1]
        if t <= 1:
            assert tail(n, ones, q, t * mean)[0] <= published.zhilyaev_tail_relative(n, q, t)
        assert tail(n, ones, q, t * n * q)[0] <= published.zhilyaev_tail(n, q, t)


def test_tails_beyond_their_range():
    n, q, t = 4000, 0.01, 3.0
    assert tail(n, 0, q, t * n * q)[0] > 2 * math.exp(-t * t * n * q / 3)
    with pytest.raises(ValueError, match=r"distance=3 must be in \(0, 1\.5\]"):
        published.zhilyaev_tail(n, q, t)
    case = published.zhilyaev_tail_relative.counterexample()
    assert case.truth == pytest.approx(tail(1000, 0, 0.03, 90)[0], rel=1e-9)
    assert case.truth > 10 * case.printed


@pytest.mark.parametrize("n", [2000, 10**5, 10**9])
@pytest.mark.parametrize("eps", [0.1, 0.5, 1.0])
def test_zsum_has_at_most_the_published_delta(n, eps):
    for delta in (0.5, 1e-3, 1e-9):
        gamma = published.balcer_cheu_gamma(n, eps, delta)
        if gamma <= 0.5:
            assert published.balcer_cheu_delta(n, gamma, eps) == pytest.approx(delta, rel=1e-9)
            assert BinomialNoise(n, gamma).delta(eps) <= delta


@pytest.mark.parametrize(("n", "gamma"), [(80, 0.5), (2000, 0.2), (10**5, 0.3)])
def test_the_histogram_has_at_most_the_published_delta(n, gamma):
    for eps in (0.2, 0.6, 1.2, 2.0):
        claim = published.balcer_cheu_histogram_delta(n, gamma, eps)
        assert claim == pytest.approx(4 * math.exp(-gamma * eps**2 * n / 200), rel=1e-12)
        assert ShuffledHistogram(n, 10, gamma).delta(eps) <= claim


@pytest.mark.parametrize(("n", "gamma"), [(40, 0.5), (40, 0.2), (300, 0.05), (400, 0.3)])
def test_smoothness(n, gamma):
    log_mass = binom_logpmf(np.arange(n + 1), n, gamma)
    # At these levels no likelihood ratio equals e^(k eps).
    for alpha in (0.11, 0.31, 0.62, 0.87):
        eps = math.log((1 + alpha) / (1 - alpha))
        worst = 0.0
        for k in range(1, max(1, int(alpha * gamma * n / 2)) + 1):
            gone = np.full(k, -np.inf)
            for near in (np.append(log_mass[k:], gone), np.append(gone, log_mass[:-k])):
                worst = max(worst, np.exp(log_mass[log_mass - near >= k * eps]).sum())
            if k == 1:
                assert worst == pytest.approx(published.balcer_cheu._ratio_above(n, gamma, eps), rel=1e-9)
        if alpha * gamma * n / 2 >= 1:
            assert worst <= published.balcer_cheu_smooth(n, gamma, alpha)


def failures(n, gamma, counts, a):
    """Return Pr[error > a] of zsum for each number of ones in `counts`, by enumeration of Y, the number of noise bits that are 0.

    If Y is at least the number of ones, the estimate is 0.
    """
    y = np.arange(n + 1)
    mass = np.exp(binom_logpmf(y, n, gamma))
    missed = np.abs(y - n * gamma) / n
    return np.array([mass[np.where(y >= count, count / n, missed) > a].sum() for count in counts])


@pytest.mark.parametrize(("n", "eps", "delta", "beta"), [(2000, 1.0, 1e-6, 0.05), (3000, 1.0, 1e-8, 0.5), (2500, 0.9, 1e-4, 1e-4)])
def test_the_error_of_zsum(n, eps, delta, beta):
    alpha = published.balcer_cheu_error(n, eps, delta, beta)
    gamma = published.balcer_cheu_gamma(n, eps, delta)
    least = round(ZeroSum(n, gamma).error_quantile(beta), 6) / n
    counts = sorted({*range(0, n + 1, 9), *(round(n * least) + i for i in range(-3, 4)), round(n * alpha) + 1})
    assert failures(n, gamma, counts, alpha).max() <= beta
    assert failures(n, gamma, counts, least).max() <= beta < failures(n, gamma, counts, least - 0.5 / n).max()
    assert least <= alpha
    with pytest.raises(ValueError, match="beta"):
        published.balcer_cheu_error(n, eps, delta, delta**26)
    with pytest.raises(ValueError, match="users=1000 must be >="):
        published.balcer_cheu_error(1000, eps, delta, beta)


def test_the_error_of_the_histogram():
    n, eps, delta, beta = 10**5, 0.5, 1e-6, 0.05
    gamma = published.balcer_cheu_gamma(n, eps, delta)
    alpha = published.balcer_cheu_histogram_error(n, eps, delta, beta)
    assert alpha == pytest.approx(published.balcer_cheu_error(n, eps, delta, beta / n), rel=1e-14)
    count = math.floor(n * alpha) + 1
    hidden = math.exp(binom_logsf(count - 1, n, gamma))
    assert 1 - (1 - hidden) ** (n // count) <= beta
    compared = published.balcer_cheu_histogram_error.comparison()
    count = round(n * compared.exact) + 1
    assert 1 - math.exp((n // count) * binom_logcdf(count - 1, n, gamma)) <= beta
    count -= 1
    assert 1 - math.exp((n // count) * binom_logcdf(count - 1, n, gamma)) > beta


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: published.chen_long_tradeoff(0, 1, 0.5), "users"),
        (lambda: published.chen_long_tradeoff(10, 10, 0.5), "lam"),
        (lambda: published.chen_long_tradeoff(10, 1, 1.5), "alpha"),
        (lambda: published.chen_long_delta(10, 1, -1), "eps"),
        (lambda: published.chen_long_mu(10, 0), "lam"),
        (lambda: published.chen_long_mu_interior(1, 0.5), "users"),
        (lambda: published.chen_long_mu_real_sum(10, 1, 0), "bits"),
        (lambda: published.cheu2019_fixed_set(50, 0), "delta"),
        (lambda: published.cheu2019_boolean_sum(100, 10, 0.1), "lam"),
        (lambda: published.zhilyaev_flip(100, 0, 0.1), "eps"),
        (lambda: published.zhilyaev_flip_zeros(0, 1, 0.1), "users"),
        (lambda: published.zhilyaev_flip_root(10, 1, 2), "delta"),
        (lambda: published.zhilyaev_lemma(10, 0.6, 1), "flip"),
        (lambda: published.zhilyaev_pointwise(10, 0.1, 1, 10), "ones"),
        (lambda: published.balcer_cheu_gamma(100, 1.5, 0.1), "eps"),
        (lambda: published.balcer_cheu_delta(100, 0.6, 0.1), "gamma"),
        (lambda: published.balcer_cheu_smooth(100, 0.5, 1), "alpha"),
    ],
)
def test_bad_input(call, word):
    with pytest.raises(ValueError, match=rf"^{word}"):
        call()
