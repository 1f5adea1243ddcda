"""Computes the values of randomizers.json: small matrices by enumeration of fractions, k-ary response by sums over counts.

    python tests/reference/make_randomizers.py [part of an id] [--write]

The blanket bound is (1/n) E(X_1 + ... + X_n)_+ of X = (R_0 - E R_1)/m with the largest m below every row; the exact values are
hockey-stick divergences of histograms of the messages. The script takes about three minutes, most of it for k-ary response. eps and
local_eps are the doubles closest to the decimals.
"""

import itertools
import math
import sys
from fractions import Fraction
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from arbs import arb, ball, binomial_run, main


def matrix_of(params):
    """Return the rows of the matrix as tuples of fractions."""
    return tuple(tuple(Fraction(x) for x in row) for row in params["matrix"])


def sum_law(atoms, times):
    """Return the distribution of a sum of independent copies of a distribution {value: mass}."""
    law = {Fraction(0): Fraction(1)}
    for _ in range(times):
        after = {}
        for (x, a), (y, b) in itertools.product(law.items(), atoms.items()):
            after[x + y] = after.get(x + y, 0) + a * b
        law = after
    return law


def blanket(params):
    """Return the largest blanket bound over ordered pairs of inputs.

    Outputs with m = 0 add their divergence.
    """
    rows, users, e = matrix_of(params), params["users"], Fraction(params["e_eps"])
    least = [min(column) for column in zip(*rows, strict=True)]
    best = Fraction(0)
    for r0, r1 in itertools.permutations(rows, 2):
        atoms = {Fraction(0): 1 - sum(least)}
        outside = Fraction(0)
        for m, a, b in zip(least, r0, r1, strict=True):
            if m:
                x = (a - e * b) / m
                atoms[x] = atoms.get(x, 0) + m
            else:
                outside += max(a - e * b, 0)
        value = sum((x * mass for x, mass in sum_law(atoms, users).items() if x > 0), Fraction(0)) / users
        best = max(best, value + outside)
    return ball(min(best, 1))


@cache
def histogram_law(rows):
    """Return the distribution of the histogram of messages, one message from each row."""
    law = {(0,) * len(rows[0]): Fraction(1)}
    for row in rows:
        after = {}
        for counts, mass in law.items():
            for y, chance in enumerate(row):
                if chance:
                    cell = (*counts[:y], counts[y] + 1, *counts[y + 1 :])
                    after[cell] = after.get(cell, 0) + mass * chance
        law = after
    return law


def histogram_hockey_stick(r0, r1, others, e):
    """Return the hockey-stick divergence of the two histograms."""
    p, q = histogram_law((*others, r0)), histogram_law((*others, r1))
    return sum((max(mass - e * q.get(cell, 0), Fraction(0)) for cell, mass in p.items()), Fraction(0))


def truth(params, same=False):
    """Return the largest delta over ordered pairs and datasets; with `same`, over datasets whose other users all have one input."""
    rows, e = matrix_of(params), Fraction(params["e_eps"])
    others = params["users"] - 1
    data = [(row,) * others for row in rows] if same else itertools.combinations_with_replacement(rows, others)
    return ball(max(histogram_hockey_stick(r0, r1, rest, e) for rest in data for r0, r1 in itertools.permutations(rows, 2)))


def kary(params, same):
    """Return delta of k-ary response by sums over counts.

    With E = e^eps and E0 = e^local_eps, a message that is drawn from the blanket adds E0 - E to the sum if it has the first value,
    1 - E E0 if it has the second, and 1 - E otherwise; another message adds 0. The blanket has mass k/(E0+k-1)
    and is uniform over the values. If all other users have the third value (`same`), m is the row of that value instead.
    """
    n, k = params["users"], params["bins"]
    e0, e = ball(float(params["local_eps"])).exp(), ball(float(params["eps"])).exp()
    base = 1 / (e0 + k - 1)
    # In its own row, the third value has e0 times the base mass, and X is (1-e)/e0 there.
    up, down, rest = e0 - e, 1 - e * e0, 1 - e
    groups = [(base * (k - 3), rest), (base * e0, rest / e0)] if same else [(base * (k - 2), rest)]
    low, high = counts_window(n, base)
    both = binomial_run(n, 2 * base, 2 * low, 2 * high)
    total = arb(0)
    for s, weight in enumerate(both, 2 * low):
        halves = binomial_run(s, arb(1) / 2, max(0, s - high), min(s, high))
        left = n - s
        law = rest_law(left, [(mass / (1 - 2 * base), value) for mass, value in groups])
        sums = positive_parts(law)
        inner = arb(0)
        for n0, half in enumerate(halves, max(0, s - high)):
            level = n0 * up + (s - n0) * down
            if level > 0:
                inner += half * sums(level)
        total += weight * inner
    return total / n


def counts_window(n, p):
    """Return the counts within 13 standard deviations of the mean, and a few more."""
    mean = n * float(p.mid())
    spread = 13 * math.sqrt(mean) + 25
    return max(0, math.floor(mean - spread)), math.ceil(mean + spread)


def rest_law(n, groups):
    """Return the sums of X over the n messages without the first and the second value, in decreasing order, and their masses.

    A group has the probability of a message and the value of X for it.
    """
    if len(groups) == 1:
        mass, value = groups[0]
        low, high = window_of(n, mass)
        return [(j * value, w) for j, w in enumerate(binomial_run(n, mass, low, high), low)]
    # Of the n messages, i have the third value, and n - i one of the remaining values.
    (plain, x), (third, y) = groups
    if not plain > 0:
        return [(n * y, arb(1))]
    low, high = window_of(n, third)
    run = list(enumerate(binomial_run(n, third, low, high), low))
    return [((n - i) * x + i * y, w) for i, w in reversed(run)]


def window_of(n, p):
    mean, sd = n * float(p.mid()), math.sqrt(n * float(p.mid()) * (1 - float(p.mid())))
    return max(0, math.floor(mean - 14 * sd - 20)), min(n, math.ceil(mean + 14 * sd + 20))


def positive_parts(law):
    """Return the function that maps a level to E(level + value)_+ for a distribution with decreasing values."""
    masses, means, values = [arb(0)], [arb(0)], []
    for value, mass in law:
        masses.append(masses[-1] + mass)
        means.append(means[-1] + mass * value)
        values.append(float(value.mid()))

    def part(level):
        low, high = 0, len(values)
        x = float(level.mid())
        while low < high:
            half = (low + high) // 2
            low, high = (half + 1, high) if values[half] + x > 0 else (low, half)
        return level * masses[low] + means[low]

    return part


def value(case):
    """Return the recomputed value of a case."""
    params, kind = case["params"], case["id"].rsplit("-", 1)[1]
    if "bins" in params:
        return kary(params, kind == "same")
    return blanket(params) if kind == "upper" else truth(params, kind == "same")


if __name__ == "__main__":
    main("randomizers", value)
