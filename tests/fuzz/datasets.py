"""The upper bound over all datasets against the exact maximum over every dataset, for random and adversarial small matrices.

RAPPOR and PrivUnit, whose bounds are computed without a matrix, are compared with the matrices of some of their inputs. For noise
on an interval the bound is compared with delta of random datasets if the analyst sees only in which of three intervals each message
is. The exact value comes from products of polynomials with positive terms in double precision. For few users `Shuffled` enumerates
all datasets; here the bound is evaluated without this enumeration, so that the theorem itself is tested. Every dataset of the other
users is one question.
"""

import itertools
import math
import random
from collections import Counter

import numpy as np

from shufflebounds import mechanisms
from shufflebounds._engines.datasets.worst import WorstDataset

__all__ = ["attack"]

ROUNDING = 1e-9
"""Allowed relative error of the exact values, and of the sum of a row, which is 1 up to rounding."""


def rows_of(r):
    """Return random rows: general, nearly equal, with tiny entries, with one large entry, or with two equal rows."""
    inputs, outputs = r.choice([(2, 2), (2, 2), (3, 2), (2, 3), (4, 2), (3, 3)])
    kind = r.choice(["plain", "plain", "near", "tiny", "peaked", "equal"])
    base = [r.uniform(0.1, 1) for _ in range(outputs)]
    rows = []
    for _ in range(inputs):
        if kind == "near":
            row = [p * (1 + r.uniform(-1, 1) * 10 ** r.uniform(-6, -1)) for p in base]
        elif kind == "tiny":
            row = [p * 10 ** r.uniform(-8, 0) if r.random() < 0.4 else p for p in base]
        elif kind == "peaked":
            row = [math.exp(r.uniform(-3, 3)) for _ in range(outputs)]
        else:
            row = [r.uniform(0.05, 1) for _ in range(outputs)]
        rows.append(row)
    if kind == "equal":
        rows[1] = list(rows[0])
    table = np.array(rows)
    return kind, table / table.sum(axis=1, keepdims=True)


def power(row, count):
    """Return the distribution of the numbers of each output except the first, for `count` messages with distribution `row`."""
    law = np.ones((1,) * (len(row) - 1))
    for _ in range(count):
        law = times(law, row)
    return law


def times(law, row):
    out = np.zeros([size + 1 for size in law.shape])
    out[tuple(slice(0, size) for size in law.shape)] += row[0] * law
    for axis, chance in enumerate(row[1:]):
        out[tuple(slice(int(i == axis), size + int(i == axis)) for i, size in enumerate(law.shape))] += chance * law
    return out


def product(first, second):
    """Return the distribution of the sum of two independent vectors."""
    out = np.zeros([a + b - 1 for a, b in zip(first.shape, second.shape)])
    for index, chance in np.ndenumerate(first):
        if chance:
            out[tuple(slice(i, i + size) for i, size in zip(index, second.shape))] += chance * second
    return out


def worst(rows, users, factors):
    """Return the largest delta over all datasets of the other users, and the number of these datasets.

    The delta is for each ordered pair of the target's inputs and each factor e^eps.
    """
    inputs = len(rows)
    powers = [[power(row, count) for count in range(users)] for row in rows]
    found = Counter()
    compositions = 0
    for cuts in itertools.combinations(range(users + inputs - 2), inputs - 1):
        ends = (-1, *cuts, users + inputs - 2)
        counts = [b - a - 1 for a, b in itertools.pairwise(ends)]
        law = powers[0][counts[0]]
        for x in range(1, inputs):
            law = product(law, powers[x][counts[x]]) if counts[x] else law
        compositions += 1
        laws = [times(law, row) for row in rows]
        for place, (i, j) in enumerate(itertools.permutations(range(inputs), 2)):
            for factor in factors:
                value = float(np.maximum(laws[i] - factor * laws[j], 0).sum())
                found[place, factor] = max(found[place, factor], value)
    return found, compositions


def family(r):
    """Return the name and an instance of RAPPOR or PrivUnit, and the matrix of the probabilities of its outputs for some inputs."""
    if r.random() < 0.5:
        q = r.uniform(0.05, 0.6)
        report = mechanisms.Rappor(r.uniform(0, 0.7), r.uniform(q + 0.1, 0.95), q, 1, 3)
        one, _, other, _, _ = report._support_probabilities()
        words = np.array(list(itertools.product((0, 1), repeat=3)))
        chances = np.where(np.eye(3), one, other)
        return "RAPPOR", report, np.where(words, chances[:, None, :], 1 - chances[:, None, :]).prod(axis=2)
    # The vectors are at equal angles on a circle, and the caps consist of whole cells of the circle.
    cells, arc = r.choice([(5, 2), (7, 3), (8, 3), (8, 4)])
    local_eps = r.uniform(0.05, 1.5)
    held = r.sample(range(cells), 3)
    lifted = (np.arange(cells)[None, :] - np.array(held)[:, None]) % cells < arc
    rows = np.where(lifted, math.exp(local_eps), 1.0)
    return "PrivUnit", mechanisms.PrivUnit(2, local_eps, arc / cells), rows / rows.sum(axis=1, keepdims=True)


def compare_family(r, tried, found):
    """Compare the bound of one random RAPPOR or PrivUnit with the largest known delta of a matrix of its inputs."""
    kind, randomizer, rows = family(r)
    # For 8 users every dataset is enumerated.
    users = r.choice([8, 8, r.randint(100, 5000)])
    matrix = mechanisms.FiniteRandomizer(rows).shuffled(users)
    bound = WorstDataset(randomizer.dataset_laws(), users)
    for eps in (0.0, *(randomizer.epsilon(0.0) * min(1.0, 6 / math.sqrt(users)) * r.random() for _ in range(2))):
        tried[kind] += math.comb(users + 1, 2) if users == 8 else 1
        truth, upper = matrix.log_delta(eps, bound="lower"), bound.log_delta(eps)
        if upper < truth - ROUNDING and truth > -600:
            found.append(f"{randomizer!r}, users={users}, eps={eps!r}: {upper} < {truth}: {rows.tolist()}")


def interval_row(noise, x, edges):
    """Return the probabilities that the message of input x is below, between and above the two edges."""
    if isinstance(noise, mechanisms.GaussianMechanism):
        below = [0.5 * math.erfc((x - y) / noise.sigma / math.sqrt(2)) for y in edges]
    elif isinstance(noise, mechanisms.LaplaceMechanism):
        below = [0.5 * math.exp((y - x) / noise.scale) if y < x else 1 - 0.5 * math.exp((x - y) / noise.scale) for y in edges]
    else:
        k = np.arange(-400.0, 401.0)
        mass = (np.exp(-noise.eps / noise.sensitivity * abs(k - x)) if isinstance(noise, mechanisms.GeometricMechanism)
                else np.exp(-0.5 * ((k - x) / noise.sigma) ** 2))
        below = [mass[k < y].sum() / mass.sum() for y in edges]
    return [below[0], below[1] - below[0], 1 - below[1]]


def compare_interval(r, tried, found):
    """Compare the bound of one random noise on an interval with random datasets of few users."""
    noise = r.choice([
        lambda: mechanisms.GaussianMechanism(r.uniform(0.5, 3)), lambda: mechanisms.LaplaceMechanism(r.uniform(0.25, 3)),
        lambda: mechanisms.GeometricMechanism(r.uniform(0.2, 4), r.randint(2, 9)),
        lambda: mechanisms.DiscreteGaussianMechanism(r.uniform(0.8, 4), r.randint(1, 4)),
    ])()
    users = r.choice([8, 12, r.randint(9, 60)])
    data = noise.dataset_laws()
    if data is None:
        return
    bound, top = WorstDataset(data, users), noise.sensitivity
    values = (r.uniform(0, top), r.uniform(0, top)) if r.random() < 0.4 else (0.0, top)
    grid = [0.0, r.uniform(0, 0.3), 10 ** r.uniform(-2, 0.3)]
    upper = [bound.log_delta(eps) for eps in grid]
    for _ in range(20):
        held = r.choice([[r.choice((0.0, top))] * (users - 1), [r.choice((0.0, top)) for _ in range(users - 1)],
                         [r.uniform(0, top) for _ in range(users - 1)], [r.uniform(0, top)] * (users - 1)])
        if isinstance(top, int):
            held, values = [float(round(x)) for x in held], tuple(float(round(x)) for x in values)
        edges = sorted(r.uniform(-1.5, 2.5) * top for _ in range(2))
        law = np.ones((1, 1))
        for x in held:
            law = times(law, interval_row(noise, x, edges))
        first, second = (times(law, interval_row(noise, x, edges)) for x in values)
        for eps, most in zip(grid, upper):
            tried["interval"] += 2
            for one, other in ((first, second), (second, first)):
                truth = float(np.maximum(one - math.exp(eps) * other, 0).sum())
                if math.exp(most) < truth * (1 - ROUNDING) - 1e-13:
                    found.append(f"{noise!r}, users={users}, eps={eps!r}: {math.exp(most)} < {truth}: {values} {edges} {held}")


def attack(seed, cases=None, late=lambda: False):
    """Return the numbers of datasets by kind of matrix, and the upper bounds that were below the exact value."""
    r, tried, found = random.Random(seed), Counter(), []
    for case in itertools.count():
        if case == cases or late():
            return tried, found
        if case % 6 == 5:
            compare_family(r, tried, found)
            continue
        if case % 6 == 4:
            compare_interval(r, tried, found)
            continue
        kind, rows = rows_of(r)
        inputs, outputs = rows.shape
        most = {(2, 2): 80, (3, 2): 16, (2, 3): 20, (4, 2): 11, (3, 3): 10}[inputs, outputs]
        users = r.choice([most, r.randint(8, most), r.randint(8, most)])
        randomizer = mechanisms.FiniteRandomizer(rows)
        budget = randomizer.epsilon(0.0)
        if not 0 < budget < 30:
            continue
        scale = min(budget, 4 * budget / math.sqrt(users))
        grid = [0.0, scale * r.random() ** 2, scale * r.random(), scale * 10 ** r.uniform(-3, 0)]
        exact, compositions = worst(rows, users, [math.exp(eps) for eps in grid])
        protocol = randomizer.shuffled(users)
        for eps, lower, upper in zip(grid, *(protocol.log_delta(grid, bound=bound) for bound in ("lower", "upper"))):
            tried["both bounds"] += 1
            if lower > upper:
                found.append(f"users={users}, eps={eps!r}: lower {lower} > upper {upper}: {rows.tolist()}")
        data = randomizer.dataset_laws()
        if data is None:
            continue
        bound = WorstDataset(data, users)
        for eps in grid:
            tried[kind] += compositions * inputs * (inputs - 1)
            truth = max(exact[place, math.exp(eps)] for place in range(inputs * (inputs - 1)))
            upper = bound.log_delta(eps)
            if math.exp(upper) < truth * (1 - ROUNDING) - 1e-15:
                found.append(f"users={users}, eps={eps!r}: {math.exp(upper)} < {truth}: {rows.tolist()}")
