"""The theorem of docs/theorems/stronger-clones.md for random adaptive protocols, over all datasets and both orders."""

import itertools
import math
import random
from fractions import Fraction

import pytest

from shufflebounds import shuffle
from shufflebounds.mechanisms import KaryResponse
from tests.strategies import thinned


def random_tree(rng, users, inputs, most):
    """Return a random adaptive protocol: {previous bits: rows of message probabilities}, likelihood ratios at most `most`."""
    tree = {}
    for depth in range(users):
        for before in itertools.product((0, 1), repeat=depth):
            # Half of the rows are extreme, so that the largest likelihood ratio is attained.
            edge = Fraction(1, 1 + most)
            rows = []
            for _ in range(inputs):
                p = rng.choice([edge, 1 - edge]) if rng.random() < 0.5 else edge + (1 - 2 * edge) * Fraction(rng.randint(0, 8), 8)
                rows.append((p, 1 - p))
            tree[before] = rows
    return tree


def transcript(tree, data):
    """Return the distribution of the messages for a randomly permuted dataset."""
    users = len(data)
    law = {}
    for z in itertools.product((0, 1), repeat=users):
        law[z] = sum(
            (math.prod((tree[z[:i]][x][z[i]] for i, x in enumerate(order)), start=Fraction(1))
             for order in itertools.permutations(data)), Fraction(0)) / math.factorial(users)
    return law


@pytest.mark.parametrize("seed", thinned(range(6), 2))
def test_adaptive_protocols_are_below_the_bound(seed):
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


@pytest.mark.parametrize(("users", "eps0", "eps"), [(3, 1.1, 0.4), (100, 1.0, 0.2), (10**6, 4.0, 0.045)])
def test_it_is_the_blanket_of_binary_response_and_above_its_exact_value(users, eps0, eps):
    clones = shuffle.StrongerClones(users, eps0)
    binary = shuffle.Shuffled(KaryResponse(2, eps0), users)
    blanket = binary.randomizer.excess_laws()[0].upper
    assert math.exp(blanket.log_phi_side(eps, users, upper=True)) == pytest.approx(clones.delta(eps), rel=1e-5)
    assert binary.delta(eps) <= clones.delta(eps) * (1 + 1e-5)
    exact = shuffle.ShuffledBits(users, 1 / (1 + math.exp(eps0)))
    assert exact.delta(eps, bound="lower") <= clones.delta(eps)
    assert binary.delta(eps, bound="lower") <= exact.delta(eps) * (1 + 1e-9)
