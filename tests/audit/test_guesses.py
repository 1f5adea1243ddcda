"""Guesses about the canaries of one run, against linear programs over all mechanisms, fractions and the specification."""

import itertools
import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from scipy import optimize, sparse, stats

from shufflebounds import Tradeoff, audit
from shufflebounds.audit.guesses import certificate, log_success
from shufflebounds.audit.refuted import rounded_up
from shufflebounds.mechanisms import GaussianMechanism, RandomizedResponse
from shufflebounds.profile import DominatingPair
from shufflebounds.shuffle import ShuffledBits
from tests.strategies import slow, thinned

EPS = [  # right, guesses, canaries, delta, eps
    (75, 100, 100, 1e-4, 0.7015179364), (75, 100, 1000, 1e-4, 0.6951260176), (75, 100, 100, 0.0, 0.7022139309),
    (1439, 1510, 10**5, 1e-5, 2.8028377528), (9820, 10**4, 10**4, 1e-5, 3.8743633742), (700, 1000, 1000, 0.0, 0.7320108624),
    (80, 100, 100, 0.0, 0.9583920453),
]


@pytest.mark.parametrize(("right", "guesses", "canaries", "delta", "eps"), thinned(EPS, 3))
def test_eps_of_the_specification(right, guesses, canaries, delta, eps):
    found = audit.one_run(right, guesses, canaries=canaries)
    assert round(found.epsilon(delta), 10) == eps
    assert math.isclose(found.p_value(Tradeoff.approximate(eps, delta)), 0.05, rel_tol=1e-8)


def probability(right, guesses, canaries, eps, delta):
    log_delta = np.array([math.log(delta) if delta else -math.inf])
    return math.exp(log_success(right, guesses, canaries, np.array([eps]), log_delta)[0])


def attained(right, guesses, canaries, ratio, delta):
    """Return, in fractions, the success of the mechanism that the proof constructs, with e^eps = `ratio`."""
    r, k, d = guesses, guesses - right, Fraction(canaries) * delta / guesses
    total = [sum(math.comb(r, h) * ratio ** (j - h) for h in range(j + 1)) for j in range(r + 1)]
    near = min(d / math.comb(r - 1, k), 1 / Fraction(total[k]))
    far = (1 - total[k] * near) / total[r]
    p = [ratio ** (r - h) * far + (ratio ** (k - h) * near if h <= k else 0) for h in range(r + 1)]
    assert sum(math.comb(r, h) * p[h] for h in range(r + 1)) == 1
    assert sum(math.comb(r - 1, h) * max(0, p[h] - ratio * p[h + 1]) for h in range(r)) <= d
    return sum(math.comb(r, h) * p[h] for h in range(k + 1))


@pytest.mark.parametrize(("guesses", "canaries"), thinned([(1, 1), (2, 2), (3, 7), (6, 6), (25, 100)], 3))
@pytest.mark.parametrize("ratio", [1, 3, 40])
def test_the_bound_is_attained(guesses, canaries, ratio):
    for right, delta in itertools.product(range(1, guesses + 1), (Fraction(0), Fraction(1, 10**6), Fraction(1, 50))):
        exact = float(attained(right, guesses, canaries, ratio, delta))
        assert math.isclose(probability(right, guesses, canaries, math.log(ratio), float(delta)), exact, rel_tol=1e-12)


def test_the_counterexample_to_the_published_bound():
    assert attained(1, 2, 2, 3, Fraction(1, 100)) == Fraction(301, 320)
    assert math.isclose(probability(1, 2, 2, math.log(3), 0.01), 301 / 320, rel_tol=1e-14)


def best_of_all_mechanisms(guesses, canaries, right, eps, delta):
    """Return the largest probability by a linear program over all mechanisms that output guesses."""
    secrets = list(itertools.product((0, 1), repeat=canaries))
    tickets = [t for t in itertools.product((-1, 0, 1), repeat=canaries) if sum(g >= 0 for g in t) == guesses]
    pairs = [(i, j) for i, j in itertools.permutations(range(len(secrets)), 2)
             if sum(a != b for a, b in zip(secrets[i], secrets[j])) == 1]
    n, many = len(secrets), len(tickets)
    size = (n + len(pairs)) * many
    hits = np.array([[sum(a == b for a, b in zip(s, t)) >= right for t in tickets] for s in secrets]).ravel()
    matrix, limit, row = sparse.lil_matrix((len(pairs) * (many + 1), size)), np.zeros(len(pairs) * (many + 1)), 0
    for place, (i, j) in enumerate(pairs):
        start = (n + place) * many
        for t in range(many):
            matrix[row, i * many + t], matrix[row, j * many + t], matrix[row, start + t] = 1, -math.exp(eps), -1
            row += 1
        matrix[row, start : start + many], limit[row], row = 1, delta, row + 1
    total = sparse.kron(sparse.eye(n), np.ones((1, many)))
    total = sparse.hstack([total, sparse.csr_matrix((n, len(pairs) * many))]).tocsr()
    goal = np.concatenate([hits / -float(n), np.zeros(len(pairs) * many)])
    return -optimize.linprog(goal, A_ub=matrix.tocsr(), b_ub=limit, A_eq=total, b_eq=np.ones(n), method="highs").fun


@pytest.mark.slow
@pytest.mark.parametrize(("canaries", "guesses"), [(1, 1), (2, 2), (3, 2)])
def test_no_mechanism_does_better(canaries, guesses):
    for right, eps, delta in itertools.product(range(1, guesses + 1), (0.0, 1.5), (0.0, 0.01, 0.1)):
        best = best_of_all_mechanisms(guesses, canaries, right, eps, delta)
        assert abs(best - probability(right, guesses, canaries, eps, delta)) < 1e-8


CERTIFIED = [  # mu, right, guesses, canaries, largest eps, number of eps, certified bound, value of the recursion of 2410.22235
    (1.0, 18, 20, 20, 6.0, 61, 0.1879602799, 0.21886), (1.0, 20, 20, 20, 6.0, 61, 0.0390812360, 0.03903),
    (0.5, 24, 30, 30, 3.0, 61, 0.0902348158, 0.10772), (1.0, 80, 100, 100, 5.0, 51, 0.3732005170, 0.47093),
]


@pytest.mark.slow
@pytest.mark.parametrize(("mu", "right", "guesses", "canaries", "top", "many", "bound", "recursion"), CERTIFIED)
def test_certificates(mu, right, guesses, canaries, top, many, bound, recursion):
    eps = np.linspace(0, top, many)
    delta, sizes = np.asarray(GaussianMechanism(1 / mu).delta(eps)), (right, guesses, canaries)
    rng = np.random.default_rng(3)
    for _ in range(50):
        multipliers = rng.random((many, guesses)) * rng.random() ** 6
        assert certificate(multipliers, eps, delta, *sizes) >= bound - 1e-9
    # Guessing by the sign of a Gaussian for each canary attains a lower bound of every valid p-value.
    reached = stats.binom.sf(right - 1, guesses, stats.norm.cdf(mu / 2))
    answer = audit.one_run(right, guesses, canaries=canaries).p_value(GaussianMechanism(1 / mu))
    assert reached <= answer <= min(bound, recursion) * 1.001


@pytest.mark.slow
def test_gaussian_claims():
    found = audit.one_run(18, 20)
    mu = found.gdp_mu()
    assert 0.5957 < mu < 0.6
    assert found.p_value(GaussianMechanism(1 / mu)) <= 0.05 * (1 + 1e-9)
    assert found.p_value(GaussianMechanism(1 / (1.01 * mu))) > 0.05
    assert audit.one_run(0, 5).gdp_mu() == 0.0


@pytest.mark.slow
def test_claims_of_every_kind():
    found = audit.one_run(75, 100, canaries=200, relation=None)
    # A pure claim is tested at its own eps, where delta is 0.
    assert math.isclose(found.p_value(RandomizedResponse(0.7)), stats.binom.sf(74, 100, 1 / (1 + math.exp(-0.7))), rel_tol=1e-9)
    pair = DominatingPair.from_pmfs(np.log([0.5, 0.5]), np.log([0.05, 0.95]))
    assert found.p_value(pair) == found.p_value(pair.reverse()) > 0.99
    with pytest.raises(ValueError, match="'replace-one' neighbours"):
        audit.one_run(75, 100).p_value(ShuffledBits(10, 0.3))
    assert 0 < audit.one_run(75, 100, canaries=200, relation="replace-one").p_value(ShuffledBits(30, 0.4)) < 0.05


def test_the_ends():
    assert audit.one_run(0, 5).epsilon(0.1) == 0.0
    assert audit.one_run(0, 5).p_value(Tradeoff.gaussian(1.0)) == 1.0
    for guesses in (3, 16, 10**9):
        eps = audit.one_run(guesses, guesses).epsilon()
        exact = -math.log(math.expm1(-math.log(0.05) / guesses))
        assert math.isclose(eps, max(exact, 0.0), rel_tol=1e-10)
    assert audit.one_run(5, 5, canaries=10**6).epsilon(1e-3) == 0.0
    tiny = audit.one_run(9900, 10**4, log_alpha=-300 * math.log(10))
    assert 0 < tiny.epsilon() < audit.one_run(9900, 10**4).epsilon()
    assert math.isclose(tiny.log_p_value(Tradeoff.randomized_response(tiny.epsilon())), tiny.log_alpha, rel_tol=1e-9)
    assert 0.4 < audit.one_run(6 * 10**8, 10**9).epsilon(1e-12) < math.log(1.5)
    for call, text in [
        (lambda: audit.one_run(6, 5), "right=6 must be at most guesses=5"),
        (lambda: audit.one_run(5, 5, canaries=4), "guesses=5 must be at most canaries=4"),
        (lambda: audit.one_run(1, 5, confidence=0.0), "confidence=0"),
    ]:
        with pytest.raises(ValueError, match=text):
            call()


@pytest.mark.parametrize("wrong", [0, 1, 10, 1000])
def test_tiny_delta_and_p_values_of_very_many_guesses(wrong):
    """The slack of the logarithms, 44 for a probability of e^-6e15, hid that (0, delta) is refuted, so eps was 0."""
    guesses = 2**53
    found = audit.one_run(guesses - wrong, guesses, log_alpha=-20 * math.log(10))
    assert math.isclose(found.epsilon(1e-30), found.epsilon(), rel_tol=1e-6)
    # For few wrong guesses their number is nearly a Poisson variable: the mean at which it is at most `wrong` with probability
    # 1e-20 is half of a quantile of the chi-squared distribution.
    mean = stats.chi2.isf(1e-20, 2 * (wrong + 1)) / 2
    assert math.isclose(found.epsilon(), math.log(guesses / mean - 1), rel_tol=1e-9)


@pytest.mark.parametrize("wrong", [0, 3, 400, slow(900)])
def test_the_ratio_of_a_tail_and_its_last_term(wrong):
    guesses, log_delta = 2000, -9.0
    for eps in (0.0, 0.2, 1.0, 4.0):
        with mp.workdps(60):
            chance = 1 / (1 + mp.exp(mp.mpf(eps)))
            masses = [mp.binomial(guesses, h) * chance**h * (1 - chance) ** (guesses - h) for h in range(wrong + 1)]
            beta = mp.fsum(masses)
            exact = mp.log(beta + mp.exp(log_delta) * guesses / (guesses - wrong) * beta * (1 - beta) / masses[-1])
        found = float(log_success(guesses - wrong, guesses, guesses, np.array([eps]), np.array([log_delta]))[0])
        assert float(min(exact, 0)) <= rounded_up(found) <= float(min(exact, 0)) * (1 - 1e-10) + 1e-10


@pytest.mark.parametrize("right", range(4))
def test_different_canaries(right):
    """Every outcome of independent randomized responses is enumerated."""
    eps, rates = [0.5, 1.5, 1.0], [0.5, 0.2, 0.7]
    for shares in ([0.5] * 3, rates):
        q = [s * math.exp(e) / (s * math.exp(e) + 1 - s) for e, s in zip(eps, shares)]
        exact = sum(math.prod(p if hit else 1 - p for p, hit in zip(q, hits)) for hits in itertools.product((0, 1), repeat=3)
                    if sum(hits) >= right)
        assert math.isclose(math.exp(audit.canaries(right, eps, rates=shares)), exact, rel_tol=3e-12)


def test_canaries_of_the_specification():
    assert abs(audit.canaries(3, [1, 2, 0.5, 1]) + 0.320228000738) < 2e-12
    assert abs(audit.canaries(700, [0.5] * 500 + [1.0] * 500) + 2.8114441517) < 1e-10
    assert math.isclose(audit.canaries(3, [1.0] * 4), stats.binom.logsf(2, 4, 1 / (1 + math.exp(-1))), rel_tol=1e-11)
    for arguments in ((5, [1.0] * 4), (1, [-1.0]), (1, [1.0, 2.0])):
        with pytest.raises(ValueError, match=r"right|eps|rates"):
            audit.canaries(*arguments, rates=[0.5] * 3)


@pytest.mark.parametrize("right", [1061, 1063, 1065, 1080, 1090])
def test_subnormal_p_values_are_rounded_up(right):
    # All guesses are right with probability q^right.
    with mp.workdps(30):
        exact = (1 / (1 + mp.exp(mp.mpf(-0.01)))) ** right
        assert exact <= mp.mpf(audit.one_run(right, right).p_value(Tradeoff.approximate(0.01, 0.0)))


@pytest.mark.slow
def test_p_values_that_are_small_differences_of_large_logarithms_are_rounded_up():
    """Against mpmath: beta, 1 - beta and the probability of exactly v right guesses by sums of 60 digits."""
    right, guesses, eps, log_delta = 1600, 4000, 1e-3, -4.0
    with mp.workdps(60):
        wrong = 1 / (1 + mp.exp(eps))
        masses = [mp.binomial(guesses, h) * wrong**h * (1 - wrong) ** (guesses - h) for h in range(guesses - right, guesses + 1)]
        rest = mp.fsum(masses[1:])
        exact = mp.log(1 - rest + mp.exp(log_delta) * guesses / right * (1 - rest) * rest / masses[0])
    found = rounded_up(float(log_success(right, guesses, guesses, np.array([eps]), np.array([log_delta]))[0]))
    assert float(min(exact, 0)) <= found
    # The one-sided tail of one run: beta is e^-160 and the other term e^-9.
    right, log_delta = 2560, -12.0
    with mp.workdps(60):
        beta = mp.fsum(mp.binomial(guesses, h) * wrong**h * (1 - wrong) ** (guesses - h) for h in range(guesses - right + 1))
        one = mp.binomial(guesses, right) * wrong ** (guesses - right) * (1 - wrong) ** right
        exact = float(mp.log(beta + mp.exp(log_delta) * guesses / right * beta * (1 - beta) / one))
    found = rounded_up(float(log_success(right, guesses, guesses, np.array([eps]), np.array([log_delta]))[0]))
    assert exact <= found <= exact + 1e-9


def test_canaries_with_budgets_that_overflow():
    # A guess about a canary of a budget above 700 may always be right.
    assert audit.canaries(3, [1.0, 800.0, 1e4], rates=[0.5, 1e-300, 1 - 1e-16]) == pytest.approx(math.log(1 / (1 + math.exp(-1))))
    assert audit.canaries(1, [1e5], rates=1e-300) == 0.0
    assert audit.canaries(1, [700.0], rates=1 - 1e-16) == 0.0
