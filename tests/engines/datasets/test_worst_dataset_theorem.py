"""Every inequality of docs/theorems/worst-dataset.md for random randomizers, in fractions.

The distribution of a multiset of messages is a homogeneous polynomial with one variable for each output, stored as
{numbers of messages of each output: coefficient}; independent users multiply their polynomials.
"""

import itertools
import math
import random
from collections import Counter
from fractions import Fraction

import pytest

from tests.strategies import slow


def times(one, other):
    out = Counter()
    for a, p in one.items():
        for b, q in other.items():
            out[tuple(map(sum, zip(a, b)))] += p * q
    return out


def plus(*terms):
    out = Counter()
    for factor, poly in terms:
        for key, value in poly.items():
            out[key] += factor * value
    return out


def paired(test, poly):
    """Return the expectation of a test that is 1 on a given set of multisets and 0 elsewhere."""
    return sum((value for key, value in poly.items() if key in test), Fraction(0))


class Protocol:
    """A random matrix of probabilities with the target's inputs 0 and 1, and a number E."""

    def __init__(self, rng, inputs, outputs, users, ratio, excess):
        self.users, self.E = users, excess
        weights = [[Fraction(rng.choice([1, ratio, Fraction(rng.randint(10, 10 * ratio), 10)])) for _ in range(outputs)]
                   for _ in range(inputs)]
        self.rows = [[w / sum(row) for w in row] for row in weights]
        self.minorant = [min(column) for column in zip(*self.rows)]
        self.g = sum(self.minorant)
        self.b = [p / self.g for p in self.minorant]
        self.d = [p - excess * q for p, q in zip(self.rows[0], self.rows[1])]
        self.ratio = max(p / q for a, b in itertools.permutations(self.rows, 2) for p, q in zip(a, b))

    def poly(self, row):
        return Counter({tuple(int(y == z) for z in range(len(row))): p for y, p in enumerate(row)})

    def law(self, counts):
        out = Counter({(0,) * len(self.b): Fraction(1)})
        for row, count in zip(self.rows, counts):
            for _ in range(count):
                out = times(out, self.poly(row))
        return out

    def kappa(self, a, j):
        return [p - q for p, q in zip(self.rows[a], self.rows[j])]

    def norm(self, signed):
        """Return the squared norm of a signed measure: the sum of signed^2/m."""
        return sum(u * u / m for u, m in zip(signed, self.minorant))

    def best_test(self, counts):
        return {key for key, value in times(self.law(counts), self.poly(self.d)).items() if value > 0}

    def labelled(self, counts):
        """Return G_M = E (X_1 + ... + X_n)_+ / n by enumerating the multisets of messages of each label."""
        sums = Counter({Fraction(0): Fraction(1)})
        for row, count in zip(self.rows, counts):
            for _ in range(count):
                new = Counter()
                for total, p in sums.items():
                    for d, q in zip(self.d, row):
                        new[total + d / q] += p * q
                sums = new
        return sum(max(total, 0) * p for total, p in sums.items()) / sum(counts)

    def compositions(self, users):
        return [c for c in itertools.product(range(users + 1), repeat=len(self.rows)) if sum(c) == users]

    def radius(self):
        """Return an upper bound of r^2: the largest squared distance from the mean of the rows."""
        centre = [sum(column) / len(self.rows) for column in zip(*self.rows)]
        return max(self.norm([p - c for p, c in zip(row, centre)]) for row in self.rows)

    def moment(self, k):
        """Return the square of l_{2k+1}, the factor of the error term of order k."""
        n, excess = self.users, self.E - 1
        big = self.norm([d + excess * b for d, b in zip(self.d, self.b)])
        return (Fraction(math.factorial(2 * k + 1), math.perm(n, 2 * k + 1)) * big
                + Fraction(math.factorial(2 * k), math.perm(n - 1, 2 * k)) * excess * excess)


def moved(counts, *changes):
    out = list(counts)
    for place, by in changes:
        out[place] += by
    return tuple(out)


def draws(counts, pairs):
    """Yield (probability, tuple of pairs of inputs, composition of the rest) for users drawn without replacement."""
    if not pairs:
        yield Fraction(1), (), counts
        return
    total = sum(counts)
    for a, j in itertools.product(range(len(counts)), repeat=2):
        chance = Fraction(counts[a] * (counts[j] - (a == j)), total * (total - 1))
        if chance > 0:
            for p, rest, left in draws(moved(counts, (a, -1), (j, -1)), pairs - 1):
                yield chance * p, ((a, j), *rest), left


def omegas(pairs, kind):
    if kind == "product":
        return [Fraction(math.comb(pairs, k), pairs**k) for k in range(pairs + 1)]
    return [Fraction(1)] * (int(kind) + 1)


def fewest_pairs(ratio, kind):
    """Return the smallest s for which the theorem proves W >= 0; `ratio` is at least e^eps0."""
    cosh = (ratio + 1 / ratio) / 2
    if kind == "product":
        return max(1, math.ceil(cosh - 1))
    if kind == "0":
        return 0
    q, s = (cosh - 1) ** 2 / cosh, 2
    while s - 1 < q or (s - 1 + q) ** 2 > 4 * s * (s - 1 - q):
        s += 1
    return s


def drawn_law(protocol, pairs, gamma, omega):
    """Return W, the polynomial that replaces the product of the rows of the drawn users."""
    s, out = len(pairs), Counter()
    plain = [times(protocol.poly(protocol.rows[a]), protocol.poly(protocol.rows[j])) for a, j in pairs]
    squares = [times(*[protocol.poly(protocol.kappa(a, j))] * 2) for a, j in pairs]
    for k in range(len(omega)):
        for chosen in itertools.combinations(range(s), k):
            term = Counter({(0,) * len(protocol.b): omega[k] * (-gamma) ** k / math.comb(s, k)})
            for i in range(s):
                term = times(term, squares[i] if i in chosen else plain[i])
            out = plus((1, out), (1, term))
    return out


def random_protocol(rng, users, kind, most_pairs):
    while True:
        inputs, outputs = rng.choice([(2, 2), (2, 3), (3, 2), (3, 3)])
        excess = rng.choice([Fraction(1), Fraction(11, 10), Fraction(3, 2)])
        protocol = Protocol(rng, inputs, outputs, users, rng.choice([2, 4, 8]), excess)
        pairs = fewest_pairs(protocol.ratio, kind)
        if pairs <= most_pairs:
            return protocol, pairs


QUESTIONS = [(seed, users, kind) for seed, (users, kind) in enumerate([(5, "0"), (5, "product"), (7, "product"), (7, "2")] * 3)]


@pytest.mark.parametrize(("seed", "users", "kind"), [
    *(pytest.param(*q) for q in QUESTIONS[:3]), *(slow(*q) for q in QUESTIONS[3:])])
def test_expansion_and_each_term(seed, users, kind):
    rng = random.Random(seed)
    protocol, s = random_protocol(rng, users, kind, (users - 3) // 2)
    n, left = users, users - 2 * s
    gamma, omega = Fraction(left - 2, 2 * left), omegas(s, kind)
    d, radius = protocol.poly(protocol.d), protocol.radius()
    largest = max(protocol.labelled(c) for c in protocol.compositions(left))
    for counts in rng.sample(protocol.compositions(n - 1), 2):
        test = protocol.best_test(counts)
        exact = times(protocol.law(counts), d)
        listed = list(draws(counts, s))
        # T is the distribution with one exchange among the remaining users and with W for the drawn users.
        smoothed = Counter()
        for p, pairs, rest in listed:
            law = drawn_law(protocol, pairs, gamma, omega)
            assert min(law.values()) >= 0
            assert sum(law.values()) == 1
            terms = [(Fraction(1), protocol.law(rest))]
            total = Fraction(0)
            for a, j in itertools.combinations(range(len(rest)), 2):
                weight = Fraction(rest[a] * rest[j], left * (left - 1))
                if weight:
                    square = times(*[protocol.poly(protocol.kappa(a, j))] * 2)
                    terms.append((weight, times(protocol.law(moved(rest, (a, -1), (j, -1))), square)))
                    total += weight * protocol.norm(protocol.kappa(a, j))
            assert total <= radius
            smoothed = plus((1, smoothed), (p, times(plus(*terms), law)))
        value = paired(test, times(smoothed, d))
        assert value <= largest
        # D_N - T is exactly the sum of the terms of order k.
        difference, error = plus((1, protocol.law(counts)), (-1, smoothed)), 0.0
        padded = [*omega, Fraction(0)]
        for k in range(1, len(padded)):
            jump = padded[k - 1] - padded[k]
            theta, mass = Counter(), Fraction(0)
            for p, pairs, rest in draws(counts, k):
                term = protocol.law(rest)
                for a, j in pairs:
                    term = times(term, times(*[protocol.poly(protocol.kappa(a, j))] * 2))
                theta = plus((1, theta), (p, term))
                size = math.prod((protocol.norm(protocol.kappa(a, j)) for a, j in pairs), start=Fraction(1))
                mass += p * size
                hidden = protocol.law(rest)
                for _ in range(2 * k + 1):
                    hidden = times(hidden, protocol.poly(protocol.b))
                mu = paired(test, hidden)
                # This is the Cauchy-Schwarz inequality for one term, with mu (1 - mu) instead of mu.
                assert paired(test, times(term, d)) ** 2 <= mu * (1 - mu) * size**2 * protocol.moment(k)
            difference = plus((1, difference), (-((-gamma) ** k) * jump, theta))
            assert gamma**k * mass <= radius**k
            error += float(abs(jump) * radius**k) * 0.5 * math.sqrt(protocol.moment(k))
        assert not any(difference.values())
        assert float(paired(test, exact)) <= float(largest) + error * (1 + 1e-12)


@pytest.mark.parametrize("seed", [*range(3), *(slow(seed) for seed in range(3, 5))])
def test_labels_and_one_exchange(seed):
    rng = random.Random(seed)
    n = rng.choice([3, 4, 5])
    protocol, _ = random_protocol(rng, n, "0", 0)
    d = protocol.poly(protocol.d)
    for counts in rng.sample(protocol.compositions(n), 3):
        terms = [(Fraction(count, n), protocol.law(moved(counts, (j, -1)))) for j, count in enumerate(counts) if count]
        divergence = sum(max(value, 0) for value in times(plus(*terms), d).values())
        assert divergence <= protocol.labelled(counts)
    for counts in rng.sample(protocol.compositions(n - 1), 3):
        exchanged = [
            (Fraction(count * (counts[j] + (a == j)), n * (n - 1)), protocol.law(moved(counts, (a, 1), (j, -1))))
            for a, count in enumerate(counts) for j in range(len(counts)) if count * (counts[j] + (a == j))]
        squares = [
            (Fraction(counts[a] * counts[j], n * (n - 1)),
             times(protocol.law(moved(counts, (a, -1), (j, -1))), times(*[protocol.poly(protocol.kappa(a, j))] * 2)))
            for a, j in itertools.combinations(range(len(counts)), 2) if counts[a] * counts[j]]
        assert not any(plus((1, plus(*exchanged)), (-1, protocol.law(counts)), *((-w, square) for w, square in squares)).values())


@pytest.mark.parametrize("seed", [*range(3), *(slow(seed) for seed in range(3, 5))])
def test_probability_of_the_best_test(seed):
    rng = random.Random(1000 + seed)
    n = rng.choice([3, 4, 5])
    protocol, _ = random_protocol(rng, n, "0", 0)
    protocol.E = max(protocol.E, Fraction(11, 10))
    for counts in rng.sample(protocol.compositions(n - 1), 2):
        test, others = protocol.best_test(counts), protocol.law(counts)
        first, second = (times(others, protocol.poly(row)) for row in protocol.rows[:2])
        assert paired(test, second) <= paired(test, first) / protocol.E
        for smaller in (Fraction(1), (1 + protocol.E) / 2):
            divergence = sum(max(p - smaller * second[key], 0) for key, p in first.items())
            assert paired(test, first) <= divergence / (1 - smaller / protocol.E)
        for factor in (Fraction(1), Fraction(3, 2)):
            # The user with input x sends a message with distribution b instead of row x.
            x = next(x for x, count in enumerate(counts) if count)
            rest = times(protocol.law(moved(counts, (x, -1))), protocol.poly(protocol.rows[0]))
            blanket = blanket_value(protocol, protocol.b, protocol.rows[x], factor, n)
            before, after = (paired(test, times(rest, protocol.poly(row))) for row in (protocol.rows[x], protocol.b))
            assert after <= factor * before + blanket


def blanket_value(protocol, one, other, factor, users):
    """Return the privacy blanket of the hockey-stick divergence of two distributions of one user's message."""
    kinds = [((p - factor * q) / m, m) for p, q, m in zip(one, other, protocol.minorant)] + [(Fraction(0), 1 - protocol.g)]
    sums = Counter({Fraction(0): Fraction(1)})
    for _ in range(users):
        new = Counter()
        for total, p in sums.items():
            for x, q in kinds:
                new[total + x] += p * q
        sums = new
    return sum(max(total, 0) * p for total, p in sums.items()) / users


def test_fewest_pairs_are_enough_at_every_corner():
    for ratio in (Fraction(11, 10), Fraction(3), Fraction(6), Fraction(20), Fraction(55)):
        cosh = (ratio + 1 / ratio) / 2
        tau = 2 * (cosh - 1)
        for kind in ("product", "2"):
            s = fewest_pairs(ratio, kind)
            for high in range(s + 1):
                # `value` is W divided by the product of the rows, if `high` pairs have t = tau, its largest value, and the other
                # pairs have t = -tau/cosh, its smallest value (the proof of W >= 0).
                value = Fraction(0)
                for k, omega in enumerate(omegas(s, kind)):
                    value += omega * Fraction(-1, 2) ** k / math.comb(s, k) * sum(
                        math.comb(high, i) * math.comb(s - high, k - i) * tau**i * (-tau / cosh) ** (k - i) for i in range(k + 1))
                assert value >= 0
