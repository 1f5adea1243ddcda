"""Both bounds of small protocols against the exact maximum over every dataset, by enumeration of the messages.

The protocols are flipped records of two and three bins, with and without uniform dummies; RAPPOR filters of up to four bits; bits
of users with budgets in three groups; and random allocation to two of up to five steps. Every question is one protocol, one eps and
one dataset.
"""

import itertools
import math
import random
from collections import Counter

import numpy as np

from shufflebounds import mechanisms, sampling, shuffle

__all__ = ["attack"]

ROUNDING = 1e-9
"""Allowed relative error of the exact values."""


def bits(chances):
    """Return the probabilities of all reports of independent bits."""
    shown = np.array(list(itertools.product((0, 1), repeat=len(chances))))
    return np.where(shown == 1, chances, 1 - np.asarray(chances)).prod(axis=1)


def multisets(laws):
    """Return the probabilities of all multisets of messages, one from each law, as a dictionary of counts."""
    out = {(0,) * len(laws[0]): 1.0}
    for law in laws:
        more = {}
        for seen, chance in out.items():
            for y, p in enumerate(law):
                key = (*seen[:y], seen[y] + 1, *seen[y + 1 :])
                more[key] = more.get(key, 0.0) + chance * p
        out = more
    return np.array(list(out.values()))


def largest(rows, others, rest, grid):
    """Return the largest delta at each eps over all inputs of `others` users and ordered pairs of the target, and their number."""
    best, tried = np.zeros(len(grid)), 0
    for data in itertools.combinations_with_replacement(range(len(rows)), others):
        fixed = [rows[x] for x in data] + rest
        laws = [multisets([row, *fixed]) for row in rows]
        for first, second in itertools.permutations(laws, 2):
            for i, eps in enumerate(grid):
                best[i] = max(best[i], np.maximum(first - math.exp(eps) * second, 0).sum())
                tried += 1
    return best, tried


def merged(rows):
    """Return the rows with proportional columns added, so that there are fewer multisets."""
    kinds = {}
    for column in np.array(rows).T:
        kinds.setdefault(tuple(np.round(column / column.max(), 12)), []).append(column)
    return list(np.array([np.sum(columns, axis=0) for columns in kinds.values()]).T)


def records(r):
    """Return flipped records, with the exact maximum."""
    bins, flip = r.choice([2, 3, 3]), r.uniform(0.05, 0.45)
    users = r.randint(2, 7 if bins == 2 else 4)
    fakes = r.choice([0, 0, 1, 2]) if bins == 2 or users < 4 else 0
    rows = [bits([1 - flip if i == x else flip for i in range(bins)]) for x in range(bins)]
    every = merged([*rows, np.mean(rows, axis=0)])
    grid = [r.uniform(0, 2 * math.log((1 - flip) / flip)) for _ in range(3)]
    protocol = shuffle.FlippedReports(users, fakes, bins, flip, view="records")
    return protocol, grid, largest(every[:-1], users - 1, [every[-1]] * fakes, grid)


def rappor(r):
    """Return a small RAPPOR filter, with the exact maximum."""
    hashes, size = r.choice([(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)])
    f, p, q = r.uniform(0.1, 0.9), r.uniform(0.6, 1), r.uniform(0, 0.4)
    one, other = p - f * (p - q) / 2, q + f * (p - q) / 2
    users = r.randint(2, 3 if size == 4 else 4)
    values = itertools.combinations(range(size), hashes)
    rows = merged([bits([one if i in value else other for i in range(size)]) for value in values])
    randomizer = mechanisms.Rappor(f, p, q, hashes, size)
    grid = [r.uniform(0, randomizer.eps_instantaneous) for _ in range(3)]
    return randomizer.shuffled(users), grid, largest(rows, users - 1, [], grid)


def budgets(r):
    """Return bits of users with budgets in three groups, with the exact maximum over the bits of every group."""
    values, counts = sorted(r.uniform(0.1, 2.0) for _ in range(3)), [r.randint(3, 25) for _ in range(3)]
    everyone = np.append(np.repeat(values, counts), r.choice(values))
    grid = [r.uniform(0, 0.6) * float(everyone[-1]) for _ in range(3)]
    keep = 1 / (1 + np.exp(-np.array(values)))
    target = 1 / (1 + math.exp(-float(everyone[-1])))
    best, tried = np.zeros(len(grid)), 0
    powers = [[_sums(p, high, count - high) for high in range(count + 1)] for p, count in zip(keep, counts)]
    for high in itertools.product(*(range(0, count + 1, max(1, count // 5)) for count in counts)):
        law = np.convolve(np.convolve(powers[0][high[0]], powers[1][high[1]]), powers[2][high[2]])
        first, second = np.convolve(law, [target, 1 - target]), np.convolve(law, [1 - target, target])
        for i, eps in enumerate(grid):
            more = math.exp(eps)
            best[i] = max(best[i], np.maximum(first - more * second, 0).sum(), np.maximum(second - more * first, 0).sum())
            tried += 1
    return shuffle.PersonalizedBits(everyone, target=everyone.size - 1), grid, (best, tried)


def _sums(keep, high, low):
    """Return the distribution of the sum of `high` bits that are 1 and `low` bits that are 0, each kept with this probability."""
    out = np.ones(1)
    for chance in [keep] * high + [1 - keep] * low:
        out = np.convolve(out, [1 - chance, chance])
    return out


def allocation(r):
    """Return random allocation to two of up to five steps of k-ary response, with the exact value of both directions."""
    steps, kinds = r.randint(3, 5), r.choice([2, 3])
    mechanism = mechanisms.KaryResponse(kinds, r.uniform(0.3, 2.0))
    first = 1 / (1 + (kinds - 1) * math.exp(-mechanism.local_eps))
    rest = (1 - first) / (kinds - 1)
    p, q = np.full(kinds, rest), np.full(kinds, rest)
    p[0] = q[1] = first
    chosen = list(itertools.combinations(range(steps), 2))
    seen = np.array(list(itertools.product(range(kinds), repeat=steps)))
    without = q[seen].prod(axis=1)
    within = sum(np.where(np.isin(np.arange(steps), sets), p[seen], q[seen]).prod(axis=1) for sets in chosen) / len(chosen)
    grid = [r.uniform(0, 1.5) * mechanism.local_eps for _ in range(3)]
    best = [max(np.maximum(a - math.exp(eps) * b, 0).sum() for a, b in ((within, without), (without, within))) for eps in grid]
    return sampling.RandomAllocation(mechanism, steps, chosen=2), grid, (np.array(best), 2 * len(grid))


KINDS = {"records": records, "rappor": rappor, "budgets": budgets, "allocation": allocation}


def attack(seed, cases, late=lambda: False, only=None):
    """Return the number of questions of each kind, and descriptions of violations."""
    r, tried, found = random.Random(seed), Counter(), []
    kinds = [kind for kind in KINDS if only is None or only in kind]
    for case in itertools.count():
        if late() or (cases is not None and case >= cases):
            break
        kind = kinds[case % len(kinds)]
        protocol, grid, (exact, questions) = KINDS[kind](r)
        tried[kind] += questions
        for eps, value in zip(grid, exact.tolist()):
            lower, upper = protocol.delta(eps, bound="lower"), protocol.delta(eps)
            if lower > value * (1 + ROUNDING) + 1e-14 or upper < value * (1 - ROUNDING) - 1e-14:
                found.append(f"{protocol!r}, eps={eps!r}: {value} is not in {lower} .. {upper}")
    return tried, found
