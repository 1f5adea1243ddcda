"""The lower bound of delta is that of the best dataset listed, also where messages of the target's kind are rarer than one."""

import math
from random import Random

import numpy as np
import pytest

from shufflebounds.mechanisms import (
    DiscreteGaussianMechanism,
    FiniteRandomizer,
    GaussianMechanism,
    HadamardResponse,
    KaryResponse,
    LaplaceMechanism,
    LocalHashing,
    PrivUnit,
    Rappor,
    SubsetSelection,
    UnaryEncoding,
)
from shufflebounds.shuffle import shuffled_log_deltas
from tests.strategies import slow


@pytest.mark.parametrize("delta", [3.6106e-7, 5.539e-6])
def test_the_lower_bound_reaches_delta_at_the_lower_eps(delta):
    shuffled = DiscreteGaussianMechanism(2.0).shuffled(1000)
    eps = shuffled.epsilon(delta, bound="lower")
    assert math.log(delta) <= shuffled.log_delta(eps, bound="lower") <= math.log(delta) + 1e-4


def counted(target, other, n):
    """Return a function eps -> log delta by enumeration of the numbers of messages of a few rare kinds.

    `target` has the probabilities of the rare kinds under the target's two inputs, `other` those of the messages of every other
    user. All other messages are equally likely under the target's two inputs; they count as one kind, which is post-processing.
    """
    # More messages of a rare kind than these have a probability below e^-45.
    most = [math.ceil(8 + n * q + 10 * math.sqrt(n * q + 1)) for q in other]
    counts = np.indices([top + 1 for top in most])
    whole = counts.sum(axis=0)
    fall = np.concatenate([[0.0], np.cumsum(np.log(np.maximum(n - 1 - np.arange(whole.max()), 1)))])
    logs = np.where(whole < n, fall[whole] + (n - 1 - whole) * math.log1p(-sum(other)), -np.inf)
    for number, q in zip(counts, other):
        logs += number * math.log(q) - np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, number.max() + 1)))])[number]
    mass = np.exp(logs)
    assert mass.sum() == pytest.approx(1, abs=1e-9)
    sent = []
    for place in range(len(other)):
        moved = np.zeros_like(mass)
        moved[tuple(slice(1, None) if i == place else slice(None) for i in range(len(other)))] = np.delete(mass, -1, place)
        sent.append(moved)
    both = [(1 - sum(row)) * mass + sum(p * one for p, one in zip(row, sent)) for row in target]
    return lambda eps: math.log(max(np.maximum(both[0] - math.exp(eps) * both[1], 0).sum(), 1e-300))


def third_bin(k, eps0, n):
    """K-ary response; all other users are in a third bin. The kinds: the target's two bins, and all bins but these three."""
    low, high = 1 / (math.exp(eps0) + k - 1), 1 / (1 + (k - 1) * math.exp(-eps0))
    rest = (k - 3) * low
    return counted([(high, low, rest), (low, high, rest)], (low, low, rest), n)


def two_kinds(own, n):
    """The kinds that tell the target's inputs apart have the probabilities `own` for the target, and the smaller one for others."""
    return counted([own, own[::-1]], (own[1], own[1]), n)


def half(eps0):
    """Messages that tell two inputs apart, with one true bit of two: a parity, or a hash of two values with budget eps0."""
    return 0.5 / (1 + math.exp(-eps0)), 0.5 / (1 + math.exp(eps0))


RARE = [
    ("k-ary", 2925, 14.0, 10**5, 1e-9), ("k-ary", 50, 9.0, 300, 0.78), ("Hadamard", 300, 14.0, 10**5, 1e-9),
    ("unary", 100, 14.0, 10**5, 1e-6),
    slow("k-ary", 2925, 14.0, 10**6, 1e-9), slow("hashing", 300, 14.0, 10**5, 1e-6), slow("k-ary", 2925, 8.0, 300, 0.4),
    slow("k-ary", 2925, 12.0, 10**4, 1e-3), slow("Hadamard", 300, 8.0, 10**4, 1e-3), slow("Hadamard", 300, 16.0, 300, 0.4),
]
NAMES = {
    "k-ary": KaryResponse, "Hadamard": HadamardResponse, "hashing": LocalHashing,
    "unary": lambda k, eps0: UnaryEncoding(k, 0.5, 1 / (math.exp(eps0) + 1)),
}


@pytest.mark.parametrize(("name", "k", "eps0", "users", "delta"), RARE)
def test_rare_messages_reach_the_enumerated_dataset(name, k, eps0, users, delta):
    """Reports with large budgets, such as browsers' reports of events, which are 2925-ary response with the budget 14."""
    exact = third_bin(k, eps0, users) if name == "k-ary" else two_kinds(half(eps0), users)
    shuffled = NAMES[name](k, eps0).shuffled(users)
    lower, upper = (shuffled.epsilon(delta, bound=bound) for bound in ("lower", "upper"))
    assert exact(upper) <= math.log(delta) + 1e-9
    # Some messages of the unary encoding and of hashing are left out in `two_kinds`, with a probability of e^-14.
    assert exact(lower) <= math.log(delta) + 1e-5


def test_eps_of_reports_of_events():
    # 10.271037 is that of the enumerated dataset of which all other users are in a third bin.
    shuffled = KaryResponse(2925, 14.0).shuffled(10**5)
    assert shuffled.epsilon(1e-9, bound="lower") == pytest.approx(10.271037, abs=1e-6)
    assert 10.271037 <= shuffled.epsilon(1e-9) <= 10.2711
    assert "third value" in shuffled.data(10.0)


def oracles(r, eps0):
    k = r.choice([3, 10, 50, 300, 2925])
    return r.choice([
        lambda: KaryResponse(k, eps0), lambda: SubsetSelection(k, eps0), lambda: LocalHashing(k, eps0),
        lambda: HadamardResponse(k, eps0), lambda: UnaryEncoding(min(k, 100), 0.5, 1 / (math.exp(eps0) + 1)),
        lambda: UnaryEncoding.optimized(min(k, 100), eps0), lambda: Rappor(2 / (1 + math.exp(eps0 / 4)), hashes=2),
        lambda: PrivUnit(16, eps0),
    ])()


def matrices(r, eps0):
    rng = np.random.default_rng(r.randrange(2**32))
    rows = rng.dirichlet(10.0 ** rng.uniform(-1, 0.7) * np.ones(r.randint(3, 6)), r.randint(3, 7))
    rows = np.maximum(rows, math.exp(-eps0))
    return FiniteRandomizer(rows / rows.sum(axis=1, keepdims=True))


@pytest.mark.parametrize(("seed", "count", "budgets", "users", "draw"), [
    slow(1, 3, (5, 10), (100, 3000), oracles), (2, 1, (5, 10), (100, 3000), matrices),
    slow(3, 20, (2, 11), (1000, 10**5), oracles), slow(5, 20, (8, 16), (10, 10**6), oracles),
    slow(6, 6, (2, 12), (30, 10**6), matrices),
])
def test_no_dataset_of_the_list_is_better(seed, count, budgets, users, draw):
    r = Random(seed)
    for _ in range(count):
        randomizer = draw(r, r.uniform(*budgets))
        n = round(math.exp(r.uniform(*map(math.log, users))))
        shuffled = randomizer.shuffled(n)
        eps = r.random() * shuffled._bounds._local.pure
        laws = [law for _, _, law in shuffled._bounds.lower._laws.below]
        best = max(law.log_phi_side(eps, n, upper=False) for law in laws)
        assert shuffled.log_delta(eps, bound="lower") >= best - 1e-6 * (1 + abs(best)), (randomizer, n, eps)


def some_law(r):
    """Return a distribution of X with a few large values, and one of noise now and then."""
    if r.random() < 0.2:
        return r.choice([GaussianMechanism, LaplaceMechanism])(math.exp(r.uniform(-1, 2))).excess_laws()[0].upper
    size, depth = r.randint(2, 6), r.choice([3, 10, 30])
    base, own, other = (np.exp([-depth * r.random() for _ in range(size)]) for _ in range(3))
    # Other users have the third input.
    return FiniteRandomizer([row / row.sum() for row in (own, other, base)]).excess_laws()[0].lower[2][1]


@pytest.mark.parametrize(("seed", "count"), [(1, 20), slow(2, 150)])
def test_the_bound_that_skips_distributions_is_an_upper_bound(seed, count):
    r = Random(seed)
    for _ in range(count):
        law, n, eps = some_law(r), round(10 ** r.uniform(0.5, 9)), r.choice([0.0, r.random(), 8 * r.random()])
        assert law.most_log_phi(eps, n) >= law.log_phi_side(eps, n, upper=False) - 1e-9


def test_the_bound_that_skips_distributions_is_close_for_many_users():
    # The distance of Chernoff's bound from a normal sum is log(theta sd sqrt(2 pi)/e), about 1.5 here.
    law = KaryResponse(10, 2.0).excess_laws()[0].upper
    for n in (10**6, 10**9):
        eps = KaryResponse(10, 2.0).shuffled(n).epsilon(1e-6)
        value = law.log_phi_side(eps, n, upper=True)
        assert value <= law.most_log_phi(eps, n) <= value + 0.1


@pytest.mark.parametrize("seed", range(3))
def test_the_kernel_skips_smaller_distributions_only(seed):
    rows = np.exp(-np.random.default_rng(seed).uniform(0, (3, 10, 30)[seed], (3, 4)))
    randomizer, eps = FiniteRandomizer(rows / rows.sum(axis=1, keepdims=True)), np.array([0.0, 0.3, 1.0])
    together = shuffled_log_deltas(randomizer, 128, eps, bound="lower", method="blanket")
    single = [law.log_phi(eps, 128).lower for pair in randomizer.excess_laws() for _, law in pair.lower]
    assert np.abs(together - np.max(single, axis=0)).max() < 1e-9
