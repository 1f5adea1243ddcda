"""Exact distributions, hockey-stick divergences and curves in fractions, with which tests compare.

A distribution (`law`) is a list of masses or a dictionary {outcome: mass}.
"""

import itertools
import json
import math
from collections import Counter, defaultdict
from fractions import Fraction
from functools import cache
from itertools import pairwise, product
from pathlib import Path

import mpmath
import numpy as np

REFERENCE = {
    entry["id"].removeprefix("shuffled-bits/"): entry
    for entry in json.loads((Path(__file__).parent / "reference" / "shuffled-bits.json").read_text())
}


def references(prefix):
    """Return the reference entries whose id starts with `prefix`."""
    found = [entry for name, entry in REFERENCE.items() if name.startswith(prefix)]
    assert found, prefix
    return found


def rational(eps):
    """Return a fraction close to e^eps; its error of 1e-40 is far below all tolerances."""
    with mpmath.workdps(60):
        return Fraction(int(mpmath.exp(mpmath.mpf(eps)) * 10**45), 10**45)


LONG = mpmath.mp.clone()
LONG.dps = 50


def log_odds(chance):
    """Return ln((1 - chance)/chance), the budget of a bit that is flipped with this probability, in 50 digits."""
    return LONG.log((1 - LONG.mpf(chance)) / chance)


def logs(masses):
    """Return the logarithms of a list of masses."""
    return np.array([math.log(m) if m else -math.inf for m in masses])


def completed(values, mass):
    """Return arrays of values and log masses with the remaining probability at the value 0; `mass` are masses as exact doubles."""
    rest = 1 - sum(map(Fraction, np.asarray(mass).tolist()))
    assert rest > -1e-15
    values, log_mass = np.asarray(values, dtype=float), np.log(mass)
    return (np.append(values, 0.0), np.append(log_mass, math.log(rest))) if rest > 1e-15 else (values, log_mass)


def total(law, other):
    """Return the distribution of the sum of two independent values, which are numbers or tuples."""
    out = defaultdict(Fraction)
    for (a, p), (b, q) in itertools.product(law.items(), other.items()):
        out[tuple(map(sum, zip(a, b))) if isinstance(a, tuple) else a + b] += p * q
    return out


def power(law, times, zero=0):
    """Return the distribution of the sum of `times` independent values."""
    out = {zero: Fraction(1)}
    for _ in range(times):
        out = total(out, law)
    return out


def coin(p):
    """Return the distribution of one bit that is 1 with probability p."""
    return {1: Fraction(p), 0: 1 - Fraction(p)}


def binomial(n, p):
    """Return the distribution Bin(n, p)."""
    return dict(enumerate(binomial_masses(n, Fraction(p))))


def binomial_masses(n, p):
    """Return the masses of Bin(n, p) on 0..n."""
    return [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]


def convolved(a, b):
    """Return the masses of the sum of two independent integers, each given by its masses from 0 on."""
    out = [Fraction(0)] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            out[i + j] += x * y
    return out


def with_bit(law, chance):
    """Return the masses of a sum with one more bit, which is 1 with probability `chance`."""
    return convolved(law, [1 - chance, chance])


@cache
def tails_of_bits(others, flip, eps):
    """Return the probability of a loss above eps, target's bit 0 against 1, for each number of ones among the other bits.

    A second list has the same probabilities with those of the next larger sum added.
    """
    q, factor, out, further = Fraction(flip), rational(eps), [], []
    for ones in range(others + 1):
        law = [Fraction(1)]
        for chance in [1 - q] * ones + [q] * (others - ones):
            law = with_bit(law, chance)
        zero, one = with_bit(law, q), with_bit(law, 1 - q)
        count = sum(a > factor * b for a, b in zip(zero, one))
        out.append(sum(zero[:count]))
        further.append(sum(zero[: count + 1]))
    return out, further


def hockey_stick(first, second, factor):
    """Return the sum of max(0, first - factor * second) over the outcomes of two distributions of fractions or of mpf."""
    pairs = ((p, second.get(x, 0)) for x, p in first.items()) if isinstance(first, dict) else zip(first, second)
    return sum(max(0, p - factor * q) for p, q in pairs)


def log_hockey_stick(first, second, eps):
    """Return the log of the hockey-stick divergence at e^eps of two lists of fractions or doubles, to 40 digits."""
    return logarithm(hockey_stick(map(Fraction, first), map(Fraction, second), rational(eps)))


def hockey_stick_of_losses(log_p, loss, eps, rest=-math.inf):
    """Return the hockey-stick divergence of a distribution of losses, with mass e^rest at infinite loss, to 50 digits."""
    mp = LONG
    total = mp.exp(mp.mpf(rest)) if rest > -math.inf else mp.mpf(0)
    for a, x in zip(map(float, log_p), map(float, loss)):
        if a > -math.inf and x > eps:
            total -= mp.exp(mp.mpf(a)) * mp.expm1(mp.mpf(eps) - mp.mpf(x))
    return total


def allocated(p, q, steps, chosen):
    """Return the two distributions of the outcomes of all steps, of which `chosen` random ones use the record or none does.

    `p` and `q` are the masses of one step with and without the record, as fractions or mpf.
    """
    sets, first, second = list(itertools.combinations(range(steps), chosen)), [], []
    for outcomes in product(range(len(p)), repeat=steps):
        first.append(sum(math.prod((p if i in used else q)[y] for i, y in enumerate(outcomes)) for used in sets) / len(sets))
        second.append(math.prod(q[y] for y in outcomes))
    return first, second


def worse(first, second, factor):
    """Return the larger hockey-stick divergence of (first, second) and (second, first)."""
    return max(hockey_stick(first, second, factor), hockey_stick(second, first, factor))


def messages(*rows):
    """Return {counts: probability} of the multiset of independent messages, one message for each row of probabilities."""
    law = {(0,) * len(rows[0]): Fraction(1)}
    for row in rows:
        out = {}
        for counts, chance in law.items():
            for y, p in enumerate(row):
                if p:
                    key = (*counts[:y], counts[y] + 1, *counts[y + 1:])
                    out[key] = out.get(key, 0) + chance * p
        law = out
    return law


def multiset(records):
    """Return a hashable form of the records that does not depend on their order."""
    return tuple(sorted(Counter(records).items()))


def logarithm(value):
    """Return the log of a fraction to 40 digits."""
    with mpmath.workdps(40):
        return mpmath.log(mpmath.mpf(value.numerator) / value.denominator) if value else -mpmath.inf


def assert_encloses(profile, eps, exact, *, apart):
    """Assert that the bounds of log delta contain the exact value, a fraction, and that their gap is at most `apart`."""
    true = logarithm(exact)
    lower, upper = (profile.log_delta(eps, bound=side) for side in ("lower", "upper"))
    assert lower <= true + mpmath.mpf("1e-30"), (profile, eps, lower, true, upper)
    assert true <= upper + mpmath.mpf("1e-30"), (profile, eps, lower, true, upper)
    assert lower == upper == -math.inf or upper - lower <= apart, (profile, eps, lower, true, upper)


def assert_sides_and_monotone(profile, eps, more):
    """Assert that the lower bounds of log delta at eps and at eps + more are at most the upper one at eps."""
    lower, upper = profile.log_delta(eps, bound="lower"), profile.log_delta(eps)
    assert lower <= upper <= 0
    assert profile.log_delta(eps + more, bound="lower") <= upper
    return lower, upper


def assert_error_tail(profile, errors, truth, points, *, apart=1e-10):
    """Assert that the bounds of error_tail contain the exact tails of the distribution {error: probability} at the points."""
    for a in points:
        exact = sum((p for e, p in errors.items() if abs(e) > Fraction(a)), Fraction(0))
        lower, upper = (profile.error_tail(a, truth, bound=side) for side in ("lower", "upper"))
        assert Fraction(lower) <= exact <= Fraction(upper) + (Fraction(1, 10**15) if exact == 1 else 0), (profile, a)
        assert upper - lower <= apart * float(exact) + 1e-300


ALPHAS = [Fraction(k, 16) for k in range(17)] + [Fraction(1, 10**6), Fraction(1, 10**12)]


def every_test(p, q):
    """Return the lower convex boundary of (alpha, beta) over all subsets of atoms as rejection regions."""
    points = {(Fraction(1), Fraction(0))}
    for region in product((False, True), repeat=len(p)):
        points.add((sum(x for x, r in zip(p, region) if r), sum(x for x, r in zip(q, region) if not r)))
    return hull(points)


def thresholds(p, q):
    """Return the same boundary by the lemma of Neyman and Pearson, for distributions with too many atoms for all tests."""
    order = sorted((i for i in range(len(p)) if p[i] or q[i]), key=lambda i: (p[i] != 0, p[i] / q[i] if q[i] else math.inf))
    points, alpha, beta = [], Fraction(0), sum(q)
    for i in order:
        points.append((alpha, beta))
        alpha, beta = alpha + p[i], beta - q[i]
    return hull({*points, (alpha, beta)})


def hull(points):
    """Return the lower convex boundary of points."""
    best = {}
    for x, y in points:
        best[x] = min(y, best.get(x, y))
    out = []
    for x, y in sorted(best.items()):
        while len(out) > 1 and (out[-1][1] - out[-2][1]) * (x - out[-2][0]) >= (y - out[-2][1]) * (out[-1][0] - out[-2][0]):
            out.pop()
        out.append((x, y))
    return out


def at(boundary, alpha):
    """Return the exact height of the boundary at one alpha."""
    for (x0, y0), (x1, y1) in pairwise(boundary):
        if x0 <= alpha <= x1:
            return y0 + (y1 - y0) * (alpha - x0) / (x1 - x0)
    return boundary[-1][1]
