"""Every accuracy number of every protocol, oracle and noise against a simulation of its own `estimate`.

Counts are drawn from the definition of each protocol, so that a repetition takes as long for 10**12 users as for a hundred.
"""

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

from shufflebounds import mechanisms as m
from shufflebounds import shuffle
from shufflebounds.tails import binom_logcdf
from tests.mechanisms import listing
from tests.strategies import thinned

REPETITIONS = 350
CLOSE = 5.0
"""Tolerance in standard deviations of the simulated number: a probability of 6e-7 for each comparison."""


@dataclass
class Case:
    """A protocol or oracle, the numbers of users with each value that it estimates, and a function that draws counts.

    `users` is None if the errors do not depend on the dataset and the estimate needs no number of users.
    """

    law: Any
    truth: Any
    draw: Any
    users: int | None

    def errors(self, rng, **options):
        """Return the errors of all repetitions, shape (repetitions, values)."""
        counts = self.draw(rng, self.law, self.truth)
        counts = counts.reshape(REPETITIONS, -1) if counts.ndim > 1 else counts
        estimates = [self.law.estimate(counts=row, users=self.users, **options) for row in counts]
        return np.array(estimates).reshape(REPETITIONS, -1) - self.truth


def of_rows(rng, rows, truth):
    """Return how often each output is sent if truth[x] users have the input x, whose outputs have the probabilities rows[x]."""
    return sum(rng.multinomial(users, np.array(row) / sum(row), size=REPETITIONS) for users, row in zip(truth, rows))


@cache
def listed(law):
    """Return the probabilities of all messages for each value, and the counts of each message."""
    return listing.matrix(law), np.array([law.aggregate(listing.sent(law, [message])) for message in listing.messages(law)])


def oracle(rng, law, truth):
    rows, counts = listed(law)
    return of_rows(rng, rows, truth) @ counts


def dummies(rng, law):
    return rng.multinomial(law.fakes, np.full(law.bins, 1 / law.bins), size=REPETITIONS)


def drawn(rng, law):
    return np.array([law._drawn(rng) for _ in range(REPETITIONS)])


def reports(rng, law, truth):
    held = truth + dummies(rng, law)
    return rng.binomial(held, 1 - law.flip) + rng.binomial(law.users + law.fakes - held, law.flip)


def copies(rng, law, truth):
    return truth + law.users - rng.binomial(law.users, law.gamma, size=(REPETITIONS, truth.size)).reshape(
        (REPETITIONS, -1) if isinstance(law, shuffle.ShuffledHistogram) else REPETITIONS)


def bits(rng, law, truth):
    ones, draws = int(truth[0]), REPETITIONS
    return rng.binomial(ones, 1 - law.flip, draws) + rng.binomial(law.users + law.fakes - ones, law.flip, draws)


def filters(rng, law, truth):
    own, _, other, _, _ = law._support_probabilities()
    users = int(truth.sum()) // law.hashes
    return rng.binomial(truth, own, (REPETITIONS, truth.size)) + rng.binomial(users - truth, other, (REPETITIONS, truth.size))


def noisy(rng, law, truth):
    return truth + rng.binomial(law.trials, law.prob, REPETITIONS)


MATRIX = [[0.4, 0.3, 0.1, 0.2], [0, 0.5, 0.25, 0.25], [0.2, 0.2, 0.2, 0.4], [0.7, 0.1, 0.1, 0.1]]
HISTOGRAMS = {
    "ShuffledHistogram": (lambda n: shuffle.ShuffledHistogram(n, 4, min(0.3, 30 / n)), copies),
    "ShuffledHistogram, much noise": (lambda n: shuffle.ShuffledHistogram(n, 4, 0.4), copies),
    "ClearReports": (lambda n: shuffle.ClearReports(40 + n // 10, 4), lambda rng, law, truth: truth + dummies(rng, law)),
    "GeometricDummies": (lambda n: shuffle.GeometricDummies(4, 12, 0.5, 0.6), lambda rng, law, truth: truth + drawn(rng, law)),
    "FlippedReports, sums": (lambda n: shuffle.FlippedReports(n, n // 3, 4, 0.2, view="sums"), reports),
    "FlippedReports, records": (lambda n: shuffle.FlippedReports(n, 0, 4, 30 / (100 + n), view="records"), reports),
    "KaryResponse": (lambda n: m.KaryResponse(4, 2.0), oracle),
    "SubsetSelection": (lambda n: m.SubsetSelection(4, 1.0, 2), oracle),
    "LocalHashing": (lambda n: m.LocalHashing(4, 1.0, 3), oracle),
    "HadamardResponse": (lambda n: m.HadamardResponse(4, 3.0), oracle),
    "UnaryEncoding": (lambda n: m.UnaryEncoding.optimized(4, 2.0), oracle),
    "FiniteRandomizer": (lambda n: m.FiniteRandomizer(MATRIX), lambda rng, law, truth: of_rows(rng, MATRIX, truth)),
}
SIZES = {"small": [1, 7, 30, 62], "large": [10**6, 3 * 10**5, 10**12, 2000]}
NUMBERS = {
    "ShuffledBits": (lambda n: shuffle.ShuffledBits(n, min(0.4, 100 / n), fakes=17), bits),
    "ZeroSum": (lambda n: shuffle.ZeroSum(n, min(0.5, 30 / n)), copies),
}


def cases():
    for name, (build, draw) in HISTOGRAMS.items():
        for size, truth in SIZES.items():
            yield f"{name}, {size}", Case(build(sum(truth)), np.array(truth), draw, sum(truth))
    for name, (build, draw) in NUMBERS.items():
        for users, ones in ((50, 3), (50, 45), (10**5, 31), (10**5, 60), (10**12, 33)):
            yield f"{name}, {ones} of {users}", Case(build(users), np.array([ones]), draw, users)
    for users in (12, 1000, 10**12):
        # Every user has three of the six bits; the first one is that of all users.
        truth = np.array([users, users // 2, users - users // 2, 0, users // 3, users - users // 3])
        yield f"Rappor, {users}", Case(m.Rappor(0.02, 0.5, 0.01, hashes=3, bits=6), truth, filters, users)
        yield f"BinomialNoise, {users}", Case(shuffle.BinomialNoise(users, 0.3), np.array([7]), noisy, None)


CASES = dict(cases())


def close(values, expected):
    """Assert that the mean of independent values is the expected one, and return its tolerance."""
    slack = CLOSE * values.std() / math.sqrt(values.size) + 1e-9 * abs(expected)
    assert abs(values.mean() - expected) <= slack, (values.mean(), expected, slack)
    return slack


def slack_of(prob):
    """Return the tolerance for the share of the repetitions in which an event of this probability happens."""
    return CLOSE * math.sqrt(prob * (1 - prob) / REPETITIONS) + CLOSE / REPETITIONS


@pytest.mark.parametrize("name", thinned(CASES, 2))
def test_errors_of_the_simulated_estimate(name):
    case = CASES[name]
    law, truth, users = case.law, case.truth, case.users
    errors = case.errors(np.random.default_rng(len(name)))
    given = {} if users is None else {"users": users, "truth": truth if truth.size > 1 else int(truth[0])}

    squares = (errors**2).mean(axis=1)
    slack = close(squares, law.mean_squared_error(**given))
    assert squares.mean() <= law.mean_squared_error(users=given.get("users")) + slack
    if hasattr(law, "rmse"):
        close(squares, law.rmse(users) ** 2)
    if isinstance(law, shuffle.ZeroSum | shuffle.ShuffledHistogram):
        close((case.errors(np.random.default_rng(2), raw=True) ** 2).mean(axis=1), law.variance)
    elif not callable(law.variance):
        close(squares, law.variance)
    else:
        for column, variance in zip(errors.T, law.variance(truth) if name.startswith("Finite") else law.variance(truth, users)):
            close(column**2, variance)

    exact = not isinstance(law, m.FiniteRandomizer)
    for j, column in enumerate(errors.T):
        own = {**given, "truth": int(truth[j])} if users is not None and exact else given
        upper = law.error_quantile(0.2, **own)
        assert (np.abs(column) > upper).mean() <= min(0.2, law.error_tail(upper, **own)) + slack_of(0.2)
        assert (np.abs(column) > 0.8 * upper).mean() <= law.error_tail(0.8 * upper, **own) + slack_of(0.2)
        if exact:
            lower, tail = law.error_quantile(0.2, bound="lower", **own), law.error_tail(0.8 * upper, bound="lower", **own)
            assert lower == 0 or (np.abs(column) >= lower).mean() >= 0.2 - slack_of(0.2)
            assert (np.abs(column) > 0.8 * upper).mean() >= tail - slack_of(tail)
    largest = np.abs(errors).max(axis=1)
    for beta in (0.5, 0.05):
        assert (largest > law.error_quantile(beta, of="any", **given)).mean() <= beta + slack_of(beta)


INTERVALS = 60
"""Number of repetitions for confidence intervals."""


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_confidence_intervals_contain_the_truth(name):
    case = CASES[name]
    counts = case.draw(np.random.default_rng(len(name)), case.law, case.truth)[:INTERVALS]
    for of, confidence in (("bin", 0.7), ("any", 0.7), ("any", 0.99)):
        covered = []
        for row in counts:
            lower, upper = case.law.interval(counts=row, users=case.users, confidence=confidence, of=of)
            assert np.all(lower <= upper)
            assert case.users is None or np.all((lower >= 0) & (upper <= case.users))
            covered.append((case.truth >= lower) & (case.truth <= upper))
        covered = np.array(covered).reshape(INTERVALS, -1)
        for number in covered.sum(axis=0) if of == "bin" else [covered.all(axis=1).sum()]:
            # The hypothesis that the coverage is at least `confidence` is not refuted at level 1e-6.
            assert binom_logcdf(number, INTERVALS, confidence) > math.log(1e-6), (name, of, confidence, number)


@pytest.mark.parametrize("name", thinned(
    [name for name in CASES if name.endswith(", small") or "of 50" in name or name == "Rappor, 12"], 2))
def test_errors_for_every_dataset_hold_for_the_simulated_one(name):
    case = CASES[name]
    errors = np.abs(case.errors(np.random.default_rng(len(name))))
    given = {"users": case.users}
    for of, seen in (("bin", errors[:, 0]), ("bin", errors[:, -1]), ("any", errors.max(axis=1))):
        quantile = case.law.error_quantile(0.2, of=of, **given)
        assert (seen > quantile).mean() <= 0.2 + slack_of(0.2)
        assert (seen > quantile / 2).mean() <= case.law.error_tail(quantile / 2, of=of, **given) + slack_of(0.5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Rappor, 12", "Rappor, 1000"])
def test_any_bit_of_a_filter_counts_the_users_of_all_hashes(name):
    """Every user sets three of the bits. The errors were once those of a histogram whose counts sum to the number of users."""
    case = CASES[name]
    law, users = case.law, case.users
    # Three bits are those of all users, whose errors are independent and the largest ones.
    worst = np.array([users] * 3 + [0] * 3)
    largest = np.abs(Case(law, worst, filters, users).errors(np.random.default_rng(5))).max(axis=1)
    for truth in (None, worst, users):
        assert (largest > law.error_quantile(0.05, truth, users=users, of="any")).mean() <= 0.05 + slack_of(0.05)
    with pytest.raises(ValueError, match=f"it must sum to 3 times users={users}"):
        law.error_quantile(0.05, [users, 0, 0, 0, 0, 0], users=users)


@pytest.mark.parametrize(("users", "flip"), [(40, 0.2), (10**4, 0.01), (10**12, 0.3)])
@pytest.mark.parametrize("numbers", thinned([[0.0], [0.5], [0.3, 0.75]], 2))
def test_errors_of_a_sum_of_numbers(users, flip, numbers):
    law, draws, rng = shuffle.RealSum(users, 2 * users * flip, 3), 2 * REPETITIONS, np.random.default_rng(users)
    of_each = np.array([users - users // 3, users // 3][: len(numbers)])
    of_each[0] += users - of_each.sum()
    whole, part = np.divmod(np.array(numbers) * 3, 1)
    ones = (whole * of_each).sum() + rng.binomial(of_each, part, size=(draws, len(numbers))).sum(axis=1)
    seen = rng.binomial(ones.astype(int), 1 - flip) + rng.binomial(3 * users - ones.astype(int), flip)
    exact = float(np.dot(numbers, of_each))
    errors = np.array([law.estimate(counts=one) for one in seen.tolist()]) - exact
    assert (errors**2).mean() <= law.variance * (1 + CLOSE * math.sqrt(2 / draws))
    assert law.mean_squared_error() == law.variance
    if users <= 10**4:
        values = np.repeat(numbers, of_each)
        close(errors**2, law.mean_squared_error(values))
        quantile = law.error_quantile(0.2, values)
        assert abs((np.abs(errors) > quantile * 0.99).mean() - law.error_tail(quantile * 0.99, values)) <= slack_of(0.2)
    assert (np.abs(errors) > law.error_quantile(0.05)).mean() <= 0.05 + slack_of(0.05)


@pytest.mark.parametrize(("build", "scales"), [
    (lambda scale: m.GaussianMechanism(scale), (0.1, 3.0, 1e6)), (lambda scale: m.LaplaceMechanism(scale), (0.1, 3.0, 1e6)),
    (lambda scale: m.GeometricMechanism(1 / scale), (0.1, 3.0, 1e6)),
    (lambda scale: m.DiscreteGaussianMechanism(scale), (0.5, 3.0, 1e4)),
], ids=["normal", "Laplace", "geometric", "discrete normal"])
def test_errors_of_noise(build, scales):
    for scale in scales:
        noise = build(scale)
        errors = noise.estimate(noise.randomize(np.full((REPETITIONS, 20), 12), rng=3)) - 12.0
        close(errors.ravel() ** 2, noise.variance)
        for k in (1, 20):
            largest, quantile = np.abs(errors[:, :k]).max(axis=1), noise.error_quantile(0.2, k)
            assert (largest > quantile).mean() <= 0.2 + slack_of(0.2)
            assert abs((largest > 0.7 * quantile).mean() - noise.error_tail(0.7 * quantile, k)) <= slack_of(0.5)


@pytest.mark.parametrize("users", [30, 3000, 10**6])
def test_errors_of_a_mean_of_bits_and_of_vectors(users):
    rng = np.random.default_rng(users)
    coin, ones = m.RandomizedResponse(1.5, upper=2.0), users // 3
    seen = rng.binomial(ones, coin.prob(2.0), REPETITIONS) + rng.binomial(users - ones, coin.prob(0.0), REPETITIONS)
    errors = np.array([coin.estimate(counts=int(one), users=users) for one in seen]) - 2 * ones / users
    close(errors**2, coin.estimator_variance(np.repeat([2.0, 0.0], [ones, users - ones])))
    assert (np.abs(errors) > coin.error_bound(users, 0.2)).mean() <= 0.2
    if users == 3000:
        unit = m.PrivUnit(3, 4.0)
        values = np.tile([0.6, 0.0, 0.8], (users, 1))
        distances = np.linalg.norm([unit.estimate(unit.randomize(values, rng)) - values[0] for _ in range(100)], axis=1)
        close(distances**2, unit.variance / users)
        assert (distances > unit.error_quantile(0.2, users=users)).mean() <= 0.2
