"""Renyi divergences of the privacy blanket, against enumeration in multiple precision."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest

from shufflebounds._engines.excess.blanket_moments import BlanketRenyi
from shufflebounds._engines.excess.excess_law import ExcessLaw
from shufflebounds.mechanisms import DiscreteGaussianMechanism, GaussianMechanism
from tests.strategies import slow, thinned

LOSSES, MASSES = [0.5, 2.0, 6.0], [0.125, 0.0625, 2.0**-12]
"""Losses of the messages for which the first input is more likely, and their masses under m. The others are mirror images."""

REST = 1 - 2 * sum(MASSES)


def sums_of(users, masses=MASSES):
    """Return (A, B, probability), the sums of a and b over all users, by the multinomial distribution."""
    kinds = [(mp.exp(x), mp.mpf(1), mp.mpf(p)) for x, p in zip(LOSSES, masses)]
    kinds += [(b, a, p) for a, b, p in kinds] + [(mp.mpf(0), mp.mpf(0), 1 - 2 * mp.fsum(mp.mpf(p) for p in masses))]
    for chosen in itertools.combinations_with_replacement(range(len(kinds)), users):
        counts = [chosen.count(i) for i in range(len(kinds))]
        weight = mp.factorial(users) / mp.fprod(mp.factorial(c) for c in counts)
        a, b = (mp.fsum(counts[i] * kinds[i][side] for i in range(len(kinds))) for side in (0, 1))
        yield a, b, weight * mp.fprod(kinds[i][2] ** counts[i] for i in range(len(kinds)))


def enumerated(users, order):
    """Return the divergence of (A, B)."""
    with mp.workdps(40):
        total = mp.mpf(0)
        for a, b, p in sums_of(users):
            if b:
                total += p * (a * mp.log(a / b) if order == 1 else a**order * b ** (1 - order))
        return float(total / users if order == 1 else mp.log(total / users) / (order - 1))


def one_message(orders):
    """Return upper bounds of the divergences of one message: the moments of a over the messages with a > 1."""
    moments = np.exp(np.outer(orders, LOSSES)) @ MASSES
    return np.log(moments + 1) / np.maximum(orders - 1, 1e-9)


@pytest.mark.parametrize("users", [2, slow(3), slow(5)])
def test_whole_orders_are_those_of_the_enumerated_sums(users):
    zero = np.zeros(3)
    law = ExcessLaw(np.log(MASSES + MASSES), np.append(LOSSES, zero), np.append(zero, LOSSES), math.log(REST))
    orders = np.arange(2.0, users + 2)
    found = BlanketRenyi(law, users, one_message).divergences(orders)
    assert enumerated(users, 1) <= BlanketRenyi(law, users, one_message).divergences(np.ones(1))[0]
    for order, value in zip(orders.astype(int).tolist(), found.tolist()):
        exact = enumerated(users, order)
        assert exact <= value, (users, order)
        # The sums B vary much among few users, so that chords of the logarithm of F are less tight.
        assert (order - 1) * (value - exact) <= 0.01, (users, order)


@pytest.mark.parametrize("users", [2, 4])
@pytest.mark.parametrize("start", [0.05, 0.5, 1.5])
@pytest.mark.parametrize("order", thinned([2, 3, 5], 2))
def test_the_integral_beyond_an_eps_is_that_of_the_enumerated_sums(users, start, order):
    # the probabilities of all messages under the first input add up to 1
    masses = np.array(MASSES) / (np.exp(LOSSES) + 1).dot(MASSES)
    zero = np.zeros(3)
    law = ExcessLaw(np.log([*masses, *masses]), np.append(LOSSES, zero), np.append(zero, LOSSES), math.log1p(-2 * masses.sum()))
    k, exact, whole = order, mp.mpf(0), mp.mpf(0)
    with mp.workdps(40):
        for a, b, p in sums_of(users, masses.tolist()):
            whole += p * (a**k * b ** (1 - k) - a) / (k * (k - 1) * users) if b else 0
            if a > b * mp.exp(start):
                # the integrals of e^((k-1)t) (a - e^t b) and of e^(-kt) (a - e^t b) over start < t < log(a/b)
                for first, second in ((k - 1, k), (-k, 1 - k)):
                    parts = [x * ((a / b) ** power - mp.exp(power * start)) / power for x, power in ((a, first), (b, second))]
                    exact += p * (parts[0] - parts[1]) / users
        log_exact = float(mp.log(exact))
    blanket = BlanketRenyi(law, users, one_message)
    if order <= users + 1:
        assert blanket.level(order, start) > -math.inf
        found = blanket.log_rest(order, start)
        assert log_exact <= found, (users, start, order)
        # what is lost is a fraction of the whole integral
        assert math.exp(found) - float(exact) <= 0.01 * float(whole)


def test_one_user_has_the_divergence_of_one_message():
    noise = GaussianMechanism(1.0)
    (pair,) = noise.excess_laws()
    found = BlanketRenyi(pair.upper, 1, lambda orders: noise._rdp(orders, True)).divergences(np.array([1.0, 1.5, 2.0, math.inf]))
    assert 0.5 <= found[0] <= 0.5 * (1 + 1e-12)
    assert found[2] <= 1.0 * (1 + 1e-12)
    assert found[3] == math.inf


@pytest.mark.parametrize(("sigma", "users", "order", "most"), [
    # The first two upper values are estimates by another method, with one large jump split off.
    slow(1.0, 10**4, 20, 0.793), (1.0, 10**4, 32, 6.795), slow(2.0, 10**4, 128, 6.80), slow(0.3, 10**5, 8, 33.1),
])
def test_large_orders_of_shuffled_gaussian_noise_meet(sigma, users, order, most):
    shuffled = GaussianMechanism(sigma).shuffled(users)
    least = order / (2 * sigma**2) - math.log(users)
    assert least - 1e-9 <= shuffled.rdp(order, bound="lower") <= shuffled.rdp(order) <= most


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "users"), [
    (GaussianMechanism(0.7), 30), (DiscreteGaussianMechanism(2.0, 3), 1000),
], ids=repr)
def test_order_one_is_below_larger_orders_and_above_the_largest_message(noise, users):
    shuffled = noise.shuffled(users)
    assert 0 < shuffled.rdp(1.0, bound="lower") <= shuffled.rdp(1.0) <= shuffled.rdp(1.001) * (1 + 1e-9)


@pytest.mark.parametrize("noise", [GaussianMechanism(1.0), slow(DiscreteGaussianMechanism(1.0))], ids=repr)
def test_divergences_grow_with_the_order_without_a_jump(noise):
    shuffled = noise.shuffled(10**4)
    orders = np.array([200.0, 255.5, 256.0, 256.5, 257.0, 258.0, 300.0, 1e3, 1e6])
    upper = shuffled._closed.renyi_limit(orders, True)
    assert (np.diff(upper) > 0).all()
    assert (np.diff(upper)[1:5] < 1).all()
    assert (upper <= noise.rdp(orders) * (1 + 1e-12)).all()
    assert (upper >= noise.rdp(orders) - math.log(10**4)).all()


@pytest.mark.slow
def test_the_known_integral_gives_no_larger_divergence(monkeypatch):
    shuffled = [GaussianMechanism(1.0).shuffled(50) for _ in range(2)]
    found = shuffled[0].rdp(6.0)
    assert shuffled[0].rdp(6.0, bound="lower") <= found
    # without it, values of delta are evaluated up to a large eps, and those between them are bounded by interpolation
    monkeypatch.setattr(BlanketRenyi, "level", lambda *_: -math.inf)
    sampled = shuffled[1].rdp(6.0)
    assert 0.97 * sampled <= found <= sampled * (1 + 1e-3)
