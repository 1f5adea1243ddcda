"""The quantiles of errors hold for the estimates as they are computed, in doubles, also where the exact error is the quantile."""

import math
from fractions import Fraction

import numpy as np
import pytest

from shufflebounds import mechanisms
from shufflebounds.shuffle import BinomialNoise, ClearReports, FlippedReports, RealSum, ShuffledBits, ShuffledHistogram, ZeroSum


class Counted:
    """A protocol whose estimate depends on one count: the law of the error, the estimate and the exact error of each count.

    `estimate(s)` is the estimate of the library for the count s, `error(s)` the exact error, and `largest` the largest count.
    """

    def __init__(self, law, truth, total, estimate, center, gap, largest):
        self.law, self.truth, self.total, self.estimate, self.largest = law, truth, total, estimate, largest
        self.center, self.gap = Fraction(center), Fraction(gap)

    def error(self, s):
        zero = isinstance(self.law, (ZeroSum, ShuffledHistogram)) and s <= self.law.users
        return (0 if zero else (s - self.center) / self.gap) - Fraction(self.total)

    def exceeds(self, s, q):
        return abs(self.estimate(s) - float(self.total)) > q


def drawn(rng):
    """Return one protocol of every class with a random dataset."""
    users = int(10 ** rng.uniform(1, 5))
    held, flip = int(rng.integers(0, users + 1)), float(10 ** rng.uniform(-3, -0.4))
    fakes, bins, bits = int(rng.integers(0, 1000)), int(rng.integers(2, 6)), int(rng.integers(1, 9))
    q, reports = Fraction(flip), users + fakes
    yield Counted(b := ShuffledBits(users, flip), held, held, lambda s: b.estimate(counts=s), users * q, 1 - 2 * q, users)
    yield Counted(d := ShuffledBits(users, flip, fakes=fakes), held, held, lambda s: d.estimate(counts=s), reports * q,
                  1 - 2 * q, reports)

    x = rng.choice(rng.random(20), users)
    for view in ("total", "columns"):
        numbers = RealSum(users, 2 * users * flip, bits, view=view)
        at = Fraction(numbers.flip)

        def of_sum(s, numbers=numbers):
            columns = np.diff(np.linspace(0, s, bits + 1).astype(int))
            return numbers.estimate(counts=columns if numbers.view == "columns" else s)

        yield Counted(numbers, x, sum(map(Fraction, x)), of_sum, users * bits * at, bits * (1 - 2 * at), users * bits)

    for fake in ("uniform", "known"):
        sums = FlippedReports(users, fakes, bins, flip, view="sums", fake=fake)
        yield Counted(sums, held, held, lambda s, sums=sums: sums.estimate(counts=np.full(bins, s))[0],
                      reports * q + Fraction(fakes, bins) * (1 - 2 * q), 1 - 2 * q, reports)
    records = FlippedReports(users % 100 + 1, fakes, bins, flip, view="records")
    count = records.users + fakes
    yield Counted(records, 1, 1, lambda s: records.estimate(counts=np.full(bins, s))[0],
                  count * q + Fraction(fakes, bins) * (1 - 2 * q), 1 - 2 * q, count)

    clear = ClearReports(1000 + fakes, 7)
    yield Counted(clear, None, 3000, lambda s: clear._estimated(np.array([s]), 1)[0], Fraction(1000 + fakes, 7), 1,
                  10**4)
    noise = BinomialNoise(users, flip)
    yield Counted(noise, None, 10**9, noise.estimate, users * q, 1, 10**9 + users)
    gamma = min(0.5, flip)
    zero, cells = ZeroSum(users, gamma), ShuffledHistogram(users, 2, gamma)
    shift = users - users * Fraction(gamma)
    yield Counted(zero, held, held, lambda s: zero.estimate(counts=s), shift, 1, 2 * users)
    yield Counted(cells, held, held, lambda s: cells.estimate(counts=[s, s])[0], shift, 1, 2 * users)

    for oracle in (mechanisms.KaryResponse(bins, 1.3), mechanisms.UnaryEncoding.optimized(bins, 1.1),
                   mechanisms.SubsetSelection(bins + 3, 0.9), mechanisms.LocalHashing(bins, 0.7), mechanisms.Rappor(0.3),
                   mechanisms.HadamardResponse(bins, 2.0), mechanisms.KaryResponse(10**9, 1.0)):
        law = oracle.errors(users)
        _, _, other, _, gap = law.probabilities

        def of_support(s, oracle=oracle):
            return float(oracle._from_support(np.array(s), users))

        yield Counted(law, held, held, of_support, users * Fraction(other), gap, users)


def probability(case, q, bound):
    """Return a bound of the probability that the error of the estimate in doubles exceeds q."""
    # The estimate increases with the count, so the counts whose estimates exceed q in either direction begin beside these two.
    edges = [math.floor(case.center + case.gap * (Fraction(case.total) + sign * Fraction(q))) for sign in (1, -1)]
    near = {s for edge in edges for s in range(edge - 2, edge + 4) if 0 <= s <= case.largest}
    least = min((abs(case.error(s)) for s in near if case.exceeds(s, q)), default=None)
    # All outcomes whose exact error is at least `least` exceed q, and no outcome has an error just below `least`.
    return 0.0 if least is None else case.law.error_tail(max(float(least) * (1 - 1e-11) - 1e-9, 0.0), case.truth, bound=bound)


@pytest.mark.parametrize("seed", [2, pytest.param(range(3, 6), marks=pytest.mark.slow)])
def test_computed_estimates_exceed_the_quantile_with_at_most_the_stated_probability(seed):
    for one in seed if isinstance(seed, range) else [seed]:
        rng = np.random.default_rng(one)
        beta = float(rng.choice([0.01, 0.05, 0.25]))
        for case in drawn(rng):
            upper, lower = (case.law.error_quantile(beta, case.truth, bound=bound) for bound in ("upper", "lower"))
            about = one, type(case.law), case.law.users if hasattr(case.law, "users") else case.law, beta
            assert probability(case, upper, "lower") <= beta, about
            assert lower == 0 or probability(case, lower, "upper") >= beta, about


def test_estimates_without_rounding_have_the_quantiles_of_the_exact_error():
    assert BinomialNoise(80, 0.5).error_quantile(0.05) == 9.0
    assert ClearReports(4000, 8).error_quantile(0.05) % 1 == 0
    assert ZeroSum(64, 0.25).error_quantile(0.05, 40) % 1 == 0
    assert ShuffledBits(100, 0.0).error_quantile(0.05) == 0
    assert ShuffledHistogram(101, 3, 0.1).error_quantile(0.05, 0) == 0


@pytest.mark.parametrize("gap", [0.25, 2.0**-20, 2.0**-40])
def test_the_bias_of_weights_that_solve_a_nearly_singular_matrix_is_part_of_the_quantile(gap):
    # The weights are doubles, so the mean of the estimate is not exactly the number of users with a value.
    matrix = mechanisms.FiniteRandomizer([[1 - 1 / 3, 1 / 3], [1 - (1 / 3 + gap), 1 / 3 + gap]])
    weights = [[Fraction(float(w)) for w in row] for row in matrix._weights]
    for value, row in enumerate(matrix.matrix):
        masses = [Fraction(p) / sum(map(Fraction, row)) for p in row]
        for x in (0, 1):
            bias = sum(p * w[x] for p, w in zip(masses, weights)) - (x == value)
            assert 1000 * abs(bias) <= matrix._rounding(1000) <= 1e-4 * matrix.error_quantile(0.5, users=1000)
