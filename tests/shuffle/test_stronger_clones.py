"""The theorem of docs/theorems/stronger-clones.md on random adaptive protocols, all data and orders listed."""

import itertools
import math
import random
from fractions import Fraction

import pytest

from shufflebounds import shuffle


def random_tree(rng, users, inputs, most):
    """Return {messages before: rows} with binary messages, each likelihood ratio at most `most`."""
    tree = {}
    for depth in range(users):
        for before in itertools.product((0, 1), repeat=depth):
            # extreme rows half of the time, where the ratios are attained
            edge = Fraction(1, 1 + most)
            rows = []
            for _ in range(inputs):
                p = rng.choice([edge, 1 - edge]) if rng.random() < 0.5 else edge + (1 - 2 * edge) * Fraction(rng.randint(0, 8), 8)
                rows.append((p, 1 - p))
            tree[before] = rows
    return tree


def transcript(tree, data):
    """Return the law of the messages where the data are permuted at random."""
    users = len(data)
    law = {}
    for z in itertools.product((0, 1), repeat=users):
        law[z] = sum(
            (math.prod((tree[z[:i]][x][z[i]] for i, x in enumerate(order)), start=Fraction(1))
             for order in itertools.permutations(data)), Fraction(0)) / math.factorial(users)
    return law


@pytest.mark.parametrize("seed", range(40))
def test_adaptive_trees_stay_below(seed):
    rng = random.Random(seed)
    users, inputs = rng.choice([(2, 2), (2, 3), (3, 2), (3, 3)])
    most = Fraction(rng.choice([3, 4, 6, 12]), 2)
    tree = random_tree(rng, users, inputs, most)
    clones = shuffle.StrongerClones(users, math.log(most) * (1 + 1e-15))
    for step in (0, 2, 5):
        factor = 1 + (most - 1) * Fraction(step, 7)
        bound = clones.delta(math.log(factor)) * (1 + 1e-11) + 1e-15
        for others in itertools.combinations_with_replacement(range(inputs), users - 1):
            for first, second in itertools.permutations(range(inputs), 2):
                p, q = transcript(tree, (first, *others)), transcript(tree, (second, *others))
                assert float(sum(max(Fraction(0), p[z] - factor * q[z]) for z in p)) <= bound


def test_binary_response_attains_it():
    most, users, factor = Fraction(3), 3, Fraction(3, 2)
    keep = most / (most + 1)
    rows = [(keep, 1 - keep), (1 - keep, keep)]
    tree = {before: rows for depth in range(users) for before in itertools.product((0, 1), repeat=depth)}
    worst = Fraction(0)
    for others in itertools.combinations_with_replacement((0, 1), users - 1):
        p, q = ({}, {})
        for law, target in ((p, 0), (q, 1)):
            for z, chance in transcript(tree, (target, *others)).items():
                law[sum(z)] = law.get(sum(z), 0) + chance
        worst = max(worst, sum(max(Fraction(0), p[s] - factor * q[s]) for s in p))
    bound = shuffle.StrongerClones(users, math.log(3)).delta(math.log(1.5))
    assert float(worst) <= bound * (1 + 1e-12)
    assert float(worst) == pytest.approx(bound, rel=0.35)
