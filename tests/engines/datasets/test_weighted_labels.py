"""Theorem w of docs/theorems/weighted-labels in rational arithmetic, and its bound for bits against every dataset."""

import itertools
import math
from fractions import Fraction as F
from random import Random

import numpy as np
import pytest

from shufflebounds._engines.bits.records import enumerated
from shufflebounds._engines.datasets.cases import FiniteCases
from shufflebounds._engines.datasets.weighted_labels import Norms, WeightedLabels
from shufflebounds.shuffle import FlippedReports, PersonalizedBits
from tests.strategies import slow, thinned


def times(*laws):
    """Return the distribution of the number of 1s, for signed measures on numbers of 1s."""
    out = [F(1)]
    for law in laws:
        out = [sum(out[i] * law[k - i] for i in range(len(out)) if 0 <= k - i < len(law)) for k in range(len(out) + len(law) - 1)]
    return out


def squared(a, b):
    """Return (R_a - R_b)^2 of two laws on one bit."""
    gap = [x - y for x, y in zip(a, b)]
    return times(gap, gap)


def plus(*terms):
    """Return the sum of signed measures."""
    return [sum(values) for values in zip(*terms, strict=True)]


def scaled(factor, law):
    """Return a multiple of a signed measure."""
    return [factor * x for x in law]


def random_laws(r, count):
    """Return laws of one bit and weights."""
    chances = [F(r.randint(1, 19), 20) for _ in range(count)]
    return [[1 - x, x] for x in chances], [F(r.randint(1, 9)) for _ in range(count)]


def exchanged(laws, weights):
    """Return both sides of the identity of one exchange: the mixture over labels, and D_N with its correction."""
    total, square = sum(weights), sum(v * v for v in weights)
    z = total * total + square
    left = [F(0)] * (len(laws) + 1)
    for a, v in enumerate(weights):
        doubled, labels = [*laws, laws[a]], [*weights, v]
        for j, label in enumerate(labels):
            share = v * (total + v) / z * label / (total + v)
            left = plus(left, scaled(share, times(*doubled[:j], *doubled[j + 1 :])))
    right = times(*laws)
    for a, j in itertools.combinations(range(len(laws)), 2):
        rest = [laws[i] for i in range(len(laws)) if i not in (a, j)]
        right = plus(right, scaled(weights[a] * weights[j] / z, times(*rest, squared(laws[a], laws[j]))))
    return left, right


@pytest.mark.parametrize("seed", range(12))
def test_one_exchange_with_weights_is_an_identity(seed):
    r = Random(seed)
    left, right = exchanged(*random_laws(r, r.randint(2, 6)))
    assert left == right


@pytest.mark.parametrize("seed", range(8))
def test_labels_only_increase_the_divergence(seed):
    r = Random(100 + seed)
    laws, weights = random_laws(r, r.randint(2, 5))
    (first, second), _ = random_laws(r, 2)
    factor = F(r.randint(10, 30), 10)
    moved = [x - factor * y for x, y in zip(first, second)]
    total = sum(weights)
    mixture = [F(0)] * (len(laws) + 1)
    for j, v in enumerate(weights):
        mixture = plus(mixture, scaled(v / total, times(*laws[:j], *laws[j + 1 :], moved)))
    # The multiset of bits is their number of 1s.
    divergence = sum(max(x, F(0)) for x in mixture)
    bound = F(0)
    for seen in itertools.product((0, 1), repeat=len(laws)):
        chance = math.prod(law[y] for law, y in zip(laws, seen))
        bound += chance * max(sum(v * moved[y] / law[y] for v, law, y in zip(weights, laws, seen)), F(0))
    assert divergence <= bound / total


@pytest.mark.parametrize("seed", thinned(range(6), 3))
def test_the_first_order_of_the_expansion_vanishes(seed):
    """D_N - T has terms of two and more replaced pairs only, with the beta of the theorem, for s = 1 drawn pair."""
    r = Random(200 + seed)
    laws, weights = random_laws(r, r.randint(4, 6))
    n = len(laws)
    pairs = list(itertools.combinations(range(n), 2))

    def left(*gone):
        return [i for i in range(n) if i not in gone]

    def share(p, kept):
        total, square = (sum(weights[i] ** k for i in kept) for k in (1, 2))
        return weights[p[0]] * weights[p[1]] / (total**2 + square)

    # beta_p = E[w_p(N'); p not drawn]/Pr[p drawn], over the uniformly drawn pair.
    beta = {p: sum(share(p, left(*q)) for q in pairs if not set(p) & set(q)) for p in pairs}
    least = sum(weights) - 2 * max(weights)
    for p in pairs if least > 0 else ():
        assert beta[p] <= weights[p[0]] * weights[p[1]] * (n - 2) * (n - 3) / (2 * least**2)
    total, later = [F(0)] * (n + 1), [F(0)] * (n + 1)
    for q in pairs:
        kept = left(*q)
        correction = scaled(-beta[q], squared(laws[q[0]], laws[q[1]]))
        drawn = plus(times(laws[q[0]], laws[q[1]]), correction)
        _, main = exchanged([laws[i] for i in kept], [weights[i] for i in kept])
        total = plus(total, scaled(F(1, len(pairs)), times(main, drawn)))
        for p in itertools.combinations(kept, 2):
            rest = times(*(laws[i] for i in kept if i not in p), squared(laws[p[0]], laws[p[1]]), correction)
            later = plus(later, scaled(share(p, kept) / len(pairs), rest))
    assert plus(total, scaled(-1, later)) == times(*laws)


def exact(budgets, counts, ones, target, eps):
    """Return delta if `ones` of the users of each budget have the bit 1, the larger one of both orders of the target's bits."""
    law = np.ones(1)
    for budget, count, high in zip(budgets, counts, ones):
        keep = 1 / (1 + math.exp(-budget))
        for bit in [1] * high + [0] * (count - high):
            law = np.convolve(law, [1 - keep, keep] if bit else [keep, 1 - keep])
    keep = 1 / (1 + math.exp(-target))
    first, second = np.convolve(law, [keep, 1 - keep]), np.convolve(law, [1 - keep, keep])
    return max(np.maximum(x - math.exp(eps) * y, 0).sum() for x, y in ((first, second), (second, first)))


@pytest.mark.parametrize(("budgets", "counts", "eps"), [
    ((0.3, 0.8), (150, 150), 0.2), ((0.1, 1.0), (300, 60), 0.3), slow((0.4, 0.7, 1.1), (100, 100, 80), 0.25),
    slow((0.2, 0.5, 1.5), (60, 80, 100), 0.4),
])
def test_bits_of_every_dataset_are_below_the_bound(budgets, counts, eps):
    labels = WeightedLabels.of_bits(budgets[-1], np.array(budgets), np.array(counts, dtype=float))
    steps = [range(0, count + 1, max(1, count // 4)) for count in counts]
    worst = max(exact(budgets, counts, ones, budgets[-1], eps) for ones in itertools.product(*steps))
    # For few users the error term may be larger than the main term, which alone is no bound.
    assert math.log(worst) <= labels.log_delta(eps)
    assert math.log(worst) - 0.05 <= labels._log_main(eps)[0] <= math.log(worst) + 0.15


def test_the_terms_of_the_bound():
    # Values of an independent implementation: groups (.5, 1, 2) of (3000, 3000, 3999) other users, target 2, eps .06.
    labels = WeightedLabels.of_bits(2.0, np.array([0.5, 1.0, 2.0]), np.array([3000.0, 3000.0, 3999.0]))
    assert labels._choices == (0, 2)
    assert labels._log_main(0.06) == pytest.approx([-12.6335481, -12.6298542], abs=5e-4)
    assert labels._log_error(0.06, 2) == pytest.approx(-19.458, abs=5e-3)
    assert labels._left(2) / labels._total == pytest.approx(0.999451796, rel=1e-8)


@pytest.mark.parametrize(("users", "lower", "most"), [slow(10**4, 0.06572, 1.003), slow(10**5, 0.01878, 1.002)])
@pytest.mark.parametrize("every", [False, slow(True)])
def test_both_bounds_of_personal_budgets_meet(users, lower, most, every):
    mechanism = PersonalizedBits(np.linspace(0.5, 2, users), target=None if every else users - 1)
    upper = mechanism.epsilon(1e-6)
    if not every:
        assert mechanism.epsilon(1e-6, bound="lower") == pytest.approx(lower, abs=1e-5)
    assert lower - 1e-5 <= upper <= most * lower
    assert mechanism.delta(upper) <= 1e-6 * (1 + 1e-6)


@pytest.mark.parametrize(("others", "fakes", "flip", "eps"), [(60, 30, 0.3, 0.3), slow(40, 60, 0.35, 0.2), slow(100, 10, 0.4, 0.1)])
def test_records_of_every_dataset_are_below_the_bound(others, fakes, flip, eps):
    exact = enumerated(others, fakes, flip, eps)
    labels = WeightedLabels.of_records(others, fakes, 2, flip)
    assert exact.lower <= labels.log_delta(eps)
    # The main term with no drawn pair is near the exact value, and at least it for these cases.
    assert exact.lower <= labels._log_main(eps)[0] <= exact.upper + 0.35


def records(bins, flip):
    """Return the laws of a record over all bits, in rational arithmetic: one for each bin, and that of a uniform dummy."""
    seen = list(itertools.product((0, 1), repeat=bins))
    laws = [[math.prod(flip if bit != (x == place) else 1 - flip for place, bit in enumerate(bits)) for bits in seen]
            for x in range(bins)]
    return [*laws, [sum(column) / bins for column in zip(*laws)]]


@pytest.mark.parametrize(("bins", "flip"), [(2, F(1, 4)), (3, F(2, 5)), (5, F(1, 10))])
def test_the_laws_of_records_are_those_of_all_bits(bins, flip):
    laws = records(bins, flip)
    labels = WeightedLabels.of_records(200, 100, bins, float(flip))
    found = labels.cases.laws(0.3, 0.0)
    # The last law is that of a dummy; those before it are of users in the first bin, the second bin and another one.
    for place, law in enumerate([*laws[: min(bins, 3)], laws[-1]]):
        part = slice(*found.starts[place : place + 2])
        exact = [(float(x), (float(a) - math.exp(0.3) * float(b)) / float(x)) for a, b, x in zip(laws[0], laws[1], law)]
        for level in np.linspace(-3, 3, 13):
            stop = sum(x * max(value - level, 0.0) for x, value in exact)
            assert found.mass[part] @ np.maximum(found.values[part] - level, 0) == pytest.approx(stop, abs=1e-11)
    ratios = [[max(max(x / y, y / x) for x, y in zip(a, b)) for b in laws] for a in laws]
    spread = [[float((max(row[j] for row in rows for j in places) - 1) ** 2 / max(row[j] for row in rows for j in places))
               for places in (range(bins), [bins])] for rows in (ratios[:bins], ratios[bins:])]
    assert labels.spread == pytest.approx(np.array(spread), rel=1e-9)
    empty = [math.prod(flip if bit else 1 - flip for bit in bits) for bits in itertools.product((0, 1), repeat=bins)]
    assert all(labels.blanket[0] * b <= float(x) * (1 + 1e-12) for law in laws for x, b in zip(law, map(float, empty)))
    gaps = [[x - b for x, b in zip(law, empty)] for law in laws]
    norm = [[float(sum(x * y / b for x, y, b in zip(one, other, empty))) for one in gaps] for other in gaps]
    assert labels.norms.square == pytest.approx(norm[0][0]) == norm[1][1]
    assert labels.norms.product == pytest.approx(norm[0][1], abs=1e-12)
    assert labels.norms.distance >= max(norm[i][i] for i in range(len(laws))) * (1 - 1e-12)


@pytest.mark.parametrize(("fakes", "eps"), thinned([(10**3, 0.0806), (10**4, 0.0466), (10**5, 0.0159)], 2))
def test_records_among_uniform_dummies(fakes, eps):
    # The upper eps of an independent implementation of the main term alone are .0802, .0465 and .0158, the lower ones .0780, .0441
    # and .0155.
    protocol = FlippedReports(10**4, fakes, 10, 0.25, view="records")
    assert protocol.delta(eps) <= 1e-6 < protocol.delta(eps * 0.99)
    assert protocol.epsilon(1e-6) <= 1.06 * protocol.epsilon(1e-6, bound="lower")


def test_main_term_of_records_with_equal_weights():
    # Values of an independent implementation: flip .25, 10 bins, 1e4 users, 1e3 dummies, eps .09, s = 4.
    labels = WeightedLabels.of_records(9999, 1000, 10, 0.25)
    vars(labels)["_weight"] = np.ones(2)
    assert labels._choices == (0, 4)
    assert labels._log_main(0.09)[1] == pytest.approx(-15.0638458741, abs=5e-4)


def test_no_bound_without_a_blanket_of_every_law():
    """Six users, eps = 0: the target sends 1 or 0, one other user sends 0, four send a fair bit. delta is .375 by enumeration.

    With g_i = 0 for the user who sends 0, the formula of theorem w gives .332 for equal weights, and .246 for those of the engine.
    """
    fair = np.convolve([0.5, 0.5], [0.5, 0.5])
    sums = np.convolve(fair, fair)
    delta = np.maximum(np.append(0.0, sums) - np.append(sums, 0.0), 0.0).sum()
    assert delta == 0.375
    log_2, none = math.log(2), -math.inf
    cases = FiniteCases(np.array([0.0, -log_2, -log_2]), np.array([none, none, log_2]), np.array([0.0, log_2, none]),
                        np.array([0, 1, 3]), error=1e-15)
    apart = np.array([[0.0, math.inf], [math.inf, 0.0]])
    blanket, norms = np.array([0.0, 1.0]), Norms(0.25, 1.0, -1.0)
    labels = WeightedLabels(np.array([1.0, 4.0]), cases, np.array([0, 1]), apart, blanket, norms, True)
    error = math.exp(labels._log_error(0.0, 0))
    assert math.exp(labels._log_main(0.0)[0]) + error < 0.25
    # G_M with equal weights: X is -1 for the law (1, 0), and 2 or -2 for a fair bit.
    main = max(sum(max(sum(seen), 0) for seen in itertools.product(*[[2, -2]] * (4 + fair), *[[-1]] * (2 - fair))) / 2 ** (4 + fair)
               for fair in (0, 1)) / 6
    assert round(main + error, 3) == 0.332
    assert labels.log_delta(0.0) == 0.0 >= math.log(delta)


@pytest.mark.parametrize("pairs", [0, 1, 3])
def test_a_number_of_pairs_needs_enough_users(pairs):
    """The mean of the g_i without the 2s + 2 largest of n - 1 needs n >= 2s + 4."""
    for users, finite in ((2 * pairs + 3, False), (2 * pairs + 4, True)):
        labels = WeightedLabels.of_bits(1.0, np.array([0.5, 1.0]), np.array([1.0, users - 2.0]))
        assert (labels._log_error(0.1, pairs) < math.inf) is finite


def test_few_or_extreme_records_have_no_bound():
    for others, fakes, bins, flip in ((0, 20, 5, 0.2), (20, 0, 5, 0.2), (5, 5, 5, 0.2), (20, 20, 2000, 0.2), (20, 20, 5, 0.5),
                                      (20, 20, 5, 1e-4)):
        assert WeightedLabels.of_records(others, fakes, bins, flip) is None
    for bins, flip in ((2, 0.499999), (1024, 0.01), (3, 0.003)):
        labels = WeightedLabels.of_records(30, 20, bins, flip)
        assert all(labels.log_delta(eps) <= 0 for eps in (0.0, 0.5, 11.9, 500.0))


def test_extreme_budgets_and_eps():
    for budgets in (np.zeros(50), np.full(50, 700.0), np.append(np.zeros(49), 700.0), np.append(np.full(49, 1e-9), 1.0)):
        for eps in (0.0, 0.5, 600.0):
            mechanism = PersonalizedBits(budgets)
            assert mechanism.log_delta(eps, bound="lower") <= mechanism.log_delta(eps) <= 0
