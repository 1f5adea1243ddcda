"""Renyi divergences of shuffled randomizers against the largest over all datasets; compositions add those of one dataset."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest

from shufflebounds.mechanisms import FiniteRandomizer, GaussianMechanism, KaryResponse, LaplaceMechanism
from shufflebounds.profile import PrivacyProfile
from shufflebounds.profile.extend import DominatingPairInfo
from shufflebounds.sampling import AllocationPair, WithoutReplacement
from shufflebounds.shuffle import FlippedReports, PersonalizedBits, RealSum, Shuffled
from tests.strategies import slow

ORDERS = [1.0, 1.0001, 1.5, 2.0, 8.0, 40.0]


def renyi(p, q, order):
    """Return the Renyi divergence of two distributions with the same support, in multiple precision."""
    with mp.workdps(40):
        if order == 1:
            return float(mp.fsum(x * mp.log(x / q[k]) for k, x in p.items()))
        a = mp.mpf(order)
        return float(mp.log(mp.fsum(x**a * q[k] ** (1 - a) for k, x in p.items())) / (a - 1))


def shuffled_laws(rows, data, participation):
    """Return the distributions of the numbers of messages of each kind, one for each input of the target, as dicts."""
    full = [[participation * p for p in row] + [1 - participation] * (participation < 1) for row in rows]
    law = {(0,) * len(full[0]): mp.mpf(1)}

    def joined(law, row):
        out = {}
        for key, mass in law.items():
            for y, p in enumerate(row):
                more = (*key[:y], key[y] + 1, *key[y + 1 :])
                out[more] = out.get(more, 0) + mass * mp.mpf(p)
        return out

    with mp.workdps(40):
        for x in data:
            law = joined(law, full[x])
        return [joined(law, row) for row in full]


def largest(rows, users, participation, order):
    """Return the largest divergence over all datasets and ordered pairs of the target's inputs."""
    best = 0.0
    for data in itertools.combinations_with_replacement(range(len(rows)), users - 1):
        laws = shuffled_laws(rows, data, participation)
        best = max([best, *(renyi(p, q, order) for p, q in itertools.permutations(laws, 2))])
    return best


def random_rows(rng, inputs, outputs):
    """Return a stochastic matrix of multiples of 2**-30, with rows at a random distance."""
    base = rng.dirichlet(np.ones(outputs) * 2)
    rows = base * np.exp(rng.choice([1e-4, 0.1, 2]) * rng.uniform(-1, 1, (inputs, outputs)))
    rows = np.round(rows / rows.sum(axis=1, keepdims=True) * 2**30) / 2**30
    rows[:, 0] = 1 - rows[:, 1:].sum(axis=1)
    return rows.tolist() if rows.min() > 1e-6 else random_rows(rng, inputs, outputs)


@pytest.mark.parametrize("seed", [1, 2, 3, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 7))])
def test_enumerated_datasets_have_both_bounds_of_the_largest_divergence(seed):
    rng = np.random.default_rng(seed)
    rows = random_rows(rng, int(rng.integers(2, 4)), int(rng.integers(2, 4)))
    users, participation = int(rng.integers(2, 5)), float(rng.choice([1.0, 0.5, 0.0625]))
    protocol = Shuffled(FiniteRandomizer(rows), users, participation)
    lower, upper = (protocol.rdp(ORDERS, bound=bound) for bound in ("lower", "upper"))
    for order, low, high in zip(ORDERS, lower, upper):
        exact = largest(rows, users, participation, order)
        assert low <= exact * (1 + 1e-14), (rows, users, participation, order)
        assert exact <= high * (1 + 1e-14), (rows, users, participation, order)
        assert high - low <= 1e-9 * exact + 1e-15, (rows, users, participation, order)


@pytest.mark.parametrize("rows", [
    [[0.9970282316207886, 0.0029717683792114258], [0.9970282278954983, 0.0029717721045017242]],
    [[0.5, 0.5 - 2.0**-30, 2.0**-30], [0.5 + 2.0**-40, 0.5 - 2.0**-30 - 2.0**-40, 2.0**-30]],
])
def test_a_huge_order_has_the_largest_loss_of_nearly_equal_rows(rows):
    # The largest loss of one message of each user is that of the shuffled messages of equal users.
    with mp.workdps(60):
        loss = max(mp.log(mp.mpf(x) / mp.mpf(y)) for p, q in itertools.permutations(rows, 2) for x, y in zip(p, q))
        for users in (2, 3):
            protocol = FiniteRandomizer(rows).shuffled(users)
            assert protocol.rdp(1e300, bound="lower") <= loss <= protocol.rdp(1e300)


def test_a_matrix_for_which_no_dataset_has_the_divergence_of_the_largest_delta():
    protocol = Shuffled(FiniteRandomizer([[0.25, 0.75], [0.5, 0.5]]), 2)
    assert protocol.rdp(2.0, bound="lower") == pytest.approx(0.15415, abs=1e-5)
    assert protocol.rdp(2.0) == pytest.approx(0.15415, abs=1e-5)
    composed = protocol.self_compose(3)
    for bound in ("lower", "upper"):
        assert composed.rdp(2.0, bound=bound) == pytest.approx(3 * protocol.rdp(2.0), rel=1e-9)
    assert protocol.rdp([math.inf, 2.0]).tolist() == [protocol.epsilon(0.0), protocol.rdp(2.0)]


@pytest.mark.parametrize("rows", [[[1e-9, 1 - 1e-9], [0.6, 0.4]], slow([[0.3, 0.7], [0.6, 0.4]])])
def test_divergences_of_many_enumerated_users(rows):
    # 600 users have outcomes of probability 1e-5000. With the other users' inputs all equal, the divergence of the count of ones
    # follows from binomial tails.
    users, order = 600, 3.0
    protocol = Shuffled(FiniteRandomizer(rows), users)
    low, high = protocol.rdp(order, bound="lower"), protocol.rdp(order)
    found = []
    with mp.workdps(30):
        for x in (0, 1):
            zero, one = map(mp.mpf, rows[x])
            law = [mp.binomial(users - 1, k) * one**k * zero ** (users - 1 - k) for k in range(users)]
            padded = [mp.mpf(0), *law, mp.mpf(0)]
            laws = [{k: row[0] * padded[k + 1] + row[1] * padded[k] for k in range(users + 1)} for row in rows]
            found += [renyi(p, q, order) for p, q in itertools.permutations(laws, 2)]
    assert max(found) <= high * (1 + 1e-12)
    assert low <= high <= low * (1 + 1e-9)


@pytest.mark.parametrize("profile", [
    pytest.param(Shuffled(FiniteRandomizer([[0.25, 0.75], [0.5, 0.5]]), 5000), marks=pytest.mark.slow),
    pytest.param(Shuffled(FiniteRandomizer([[0.2, 0.3, 0.5], [0.3, 0.5, 0.2], [0.4, 0.3, 0.3]]), 200, 0.5), marks=pytest.mark.slow),
    Shuffled(KaryResponse(5, 1.0), 3000),
    pytest.param(Shuffled(LaplaceMechanism(1.0), 20), marks=pytest.mark.slow),
    PersonalizedBits(np.array([0.5, 1.0, 2.0, 1.5])),
    PersonalizedBits(np.array([0.5, 1.0, 2.0, 1.5]), bits=[0, 1, 1, 0]),
    FlippedReports(20, 3, 4, 0.2, view="records"),
    FlippedReports(20, 3, 4, 0.2, view="sums"),
    FlippedReports(8, 0, 3, 0.2, view="sums"),
    RealSum(6, 2.0, 2),
    RealSum(6, 2.0, 2, view="columns"),
    WithoutReplacement(LaplaceMechanism(2.0), 10, 3),
    WithoutReplacement(FiniteRandomizer([[0.2, 0.3, 0.5], [0.3, 0.5, 0.2], [0.4, 0.3, 0.3]]), 10, 3),
], ids=repr)
def test_the_lower_bound_is_attained_and_below_the_upper_one(profile):
    lower, upper = (profile.rdp(ORDERS, bound=bound) for bound in ("lower", "upper"))
    assert (lower <= upper).all()
    assert (lower > 0).all()
    assert (np.diff(lower) >= -1e-12).all()
    composed = profile.self_compose(4)
    assert (composed.rdp(ORDERS, bound="lower") >= lower * (1 - 1e-12)).all()
    assert (composed.rdp(ORDERS, bound="lower") <= composed.rdp(ORDERS)).all()


class Largest(PrivacyProfile):
    """The maximum of the deltas of two lists of outcomes, without information on pairs."""

    def __init__(self, *pairs):
        self.several = pairs

    def describe(self):
        return DominatingPairInfo(self.bounds, max(pair._pure_epsilon() for pair in self.several))

    def bounds(self, eps):
        sides = [pair._log_delta(eps) for pair in self.several]
        return type(sides[0])(*np.max(sides, axis=0))


def test_a_profile_without_pairs_has_a_lower_bound_that_some_pair_attains():
    first, second = FiniteRandomizer([[0.5, 0.5], [0.25, 0.75]]), FiniteRandomizer([[0.01, 0.99], [0.001, 0.999]])
    whole = Largest(first, second)
    exact = np.maximum(first.rdp(ORDERS), second.rdp(ORDERS))
    assert (whole.rdp(ORDERS, bound="lower") <= exact).all()
    assert (whole.rdp(ORDERS) >= exact).all()
    assert (whole.rdp(ORDERS, bound="lower") >= 0.2 * exact).all()


@pytest.mark.parametrize(("profile", "wider"), [
    (AllocationPair(GaussianMechanism(2.0), 10, False), 1e-3),
    (Shuffled(GaussianMechanism(2.0), 40), 1e-2),
], ids=["pair", "shuffled"])
@pytest.mark.slow
def test_a_list_of_orders_has_the_bounds_of_each_order(profile, wider):
    orders = [2.0, 16.0]
    fresh = type(profile)(*profile.__reduce__()[1])
    several, single = fresh.rdp(orders), np.array([profile.rdp(order) for order in orders])
    # The samples of one order serve the next one, so that bounds of several orders are at most slightly wider.
    assert (several <= single * (1 + wider)).all()
    assert several[::-1].tolist() == fresh.rdp(orders[::-1]).tolist()


@pytest.mark.parametrize("protocol", [FlippedReports(60, 10, 3, 0.2, view="records", fake="known"),
                                      FlippedReports(500, 40, 5, 0.1, view="records")])
def test_the_largest_loss_is_at_least_that_of_a_listed_pair(protocol):
    # The search from the budget downwards stops at lower bounds of delta that are 0.
    largest = protocol.rdp(math.inf, bound="lower")
    assert 0.9 < largest <= protocol.epsilon(0.0)
    lists = [one.atoms for one in protocol._pair_info().attained.pairs if one.atoms is not None]
    assert all(largest >= float(atoms.renyi(np.array([math.inf]), upper=False)[0]) for atoms in lists)
