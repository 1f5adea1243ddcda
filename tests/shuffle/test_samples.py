"""Sample sizes of support identification and similar problems, against reference values and simulation."""

import itertools
import math

import mpmath
import numpy as np
import pytest

from shufflebounds.shuffle import samples
from tests.oracles import binomial, references


@pytest.mark.parametrize("entry", references("s003.supp.n"), ids=lambda e: e["id"])
def test_published_sizes(entry):
    p = entry["params"]
    assert samples.printed_support_samples(p["h"], eps=float(p["eps"]), delta=float(p["delta"])) == int(float(entry["value"]))


@pytest.mark.slow
@pytest.mark.parametrize(("support", "eps", "delta"), [(1, 1.0, 1e-6), (2, 0.5, 1e-6), (10, 1.0, 1e-9)])
def test_calibrated_sizes_meet_both_targets(support, eps, delta):
    size = samples.support_identification(support, eps=eps, delta=delta, bins=64)
    assert size.protocol.delta(eps) <= delta
    assert size.failure <= 0.01
    assert size.users < samples.printed_support_samples(support, eps=eps, delta=delta) / 10


def test_failure_is_the_exact_union_bound():
    for users, gamma, support in ((6, 0.25, 3), (9, 0.5, 2), (5, 0.125, 4)):
        held, zeros = binomial(users, 1 / support), binomial(users, gamma)
        exact = float(sum(p * q for x, p in held.items() for y, q in zeros.items() if x <= y))
        assert samples._log_missed(users, gamma, support) == pytest.approx(math.log(exact), abs=1e-10)
        assert samples._log_missed(users, gamma, support) >= math.log(exact) - 1e-14


def test_failure_with_a_rounded_share_is_above_the_closed_form():
    # X and Y have the same distribution, so Pr[X <= Y] = (1 + Pr[X = Y])/2, and Pr[X = Y] = C(2n, n)/4^n.
    users = 10**6
    with mpmath.workdps(30):
        exact = mpmath.log((1 + mpmath.binomial(2 * users, users) / mpmath.mpf(4) ** users) / 2)
        above = float(samples._log_missed(users, 0.5, 2) - exact)
    # An error of one ulp in 1/support changes the result by up to 2 ulp n/support = 2.2e-10.
    assert 0 <= above < 5e-10


@pytest.mark.slow
def test_support_is_found():
    size = samples.support_identification(4, eps=1.0, delta=1e-6, bins=30, failure=0.05)
    rng = np.random.default_rng(5)
    support = np.array([3, 11, 12, 29])
    found = 0
    for _ in range(400):
        estimate = size.protocol.estimate(size.protocol.randomize(rng.choice(support, size.users), rng))
        assert set(estimate.nonzero()[0]) <= set(support)
        found += set(estimate.nonzero()[0]) == set(support)
    assert 1 - found / 400 < size.failure + 5 * math.sqrt(size.failure / 400)


@pytest.mark.slow
def test_domains():
    assert samples.pointer_chasing(4, eps=1.0, delta=1e-6).bins == 48
    assert samples.pointer_jumping(3, 2, eps=1.0, delta=1e-6).bins == 3 + 27
    assert samples.pointer_jumping(16, 3, eps=1.0, delta=1e-6).users == samples.support_identification(3, eps=1.0, delta=1e-6).users


@pytest.mark.slow
def test_two_permutations_are_found():
    rng = np.random.default_rng(0)
    orders = list(itertools.permutations(range(4)))
    domain = list(itertools.product((1, 2), orders))
    size = samples.pointer_chasing(4, eps=1.0, delta=1e-6)
    assert size.bins == len(domain)
    pair = [(1, orders[10]), (2, orders[17])]
    messages = size.protocol.randomize(rng.choice([domain.index(value) for value in pair], size.users), rng)
    assert [domain[j] for j in size.protocol.estimate(messages).nonzero()[0]] == pair


@pytest.mark.slow
def test_the_levels_of_a_random_tree_are_found():
    """Every value is the labels of one level of a tree; the labels that the protocol finds give the path through the tree."""
    branching, height = 2, 3
    rng = np.random.default_rng(0)
    levels = [list(itertools.product(range(branching), repeat=branching**i)) for i in range(height)]
    domain = [(i, labels) for i, level in enumerate(levels) for labels in level]
    size = samples.pointer_jumping(branching, height, eps=1.0, delta=1e-6)
    assert size.bins == len(domain)
    tree = [level[int(rng.integers(len(level)))] for level in levels]
    values = rng.choice([domain.index(pair) for pair in enumerate(tree)], size.users)
    messages = size.protocol.randomize(values, rng)
    found = dict(domain[j] for j in size.protocol.estimate(messages).nonzero()[0])
    assert found == dict(enumerate(tree))


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: samples.support_identification(0, eps=1.0, delta=1e-4), "support=0"),
        (lambda: samples.support_identification(3, eps=0.0, delta=1e-4), "eps=0"),
        (lambda: samples.support_identification(3, eps=1.0, delta=0.0), "delta=0"),
        (lambda: samples.support_identification(3, eps=1.0, delta=1e-4, bins=2), "bins=2"),
        (lambda: samples.printed_support_samples(3, eps=1.5, delta=0.1), r"eps=1\.5"),
        (lambda: samples.pointer_chasing(0, eps=1.0, delta=1e-4), "length=0"),
        (lambda: samples.pointer_jumping(100, 6, eps=1.0, delta=1e-4), "height=6 must be smaller"),
    ],
)
def test_bad_input(call, named):
    with pytest.raises(ValueError, match=named):
        call()
