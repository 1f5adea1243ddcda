"""The clone bounds in interval arithmetic: against the definition in mpmath, and against the stated bounds for many users."""

import itertools
import math

import mpmath as mp
import pytest

from shufflebounds import shuffle
from shufflebounds.certify import clones_window
from shufflebounds.certify.balls import flint

pytest.importorskip("flint")

BELOW_ONE = math.nextafter(1.0, 0)


def exact(users, local_eps, eps, stronger):
    """Return delta by its definition: every number of clones, every number of first messages."""
    odds, factor = mp.exp(local_eps), mp.exp(eps)
    p, w = 2 / (odds + 1) if stronger else 1 / odds, odds / (odds + 1)
    total = mp.mpf(0)
    for c in range(users):
        row = [0, *(mp.binomial(c, k) / mp.mpf(2) ** c for k in range(c + 1)), 0]
        here = mp.fsum(max(mp.mpf(0), (w - factor * (1 - w)) * a + (1 - w - factor * w) * b) for a, b in itertools.pairwise(row))
        total += mp.binomial(users - 1, c) * p**c * (1 - p) ** (users - 1 - c) * here
    return total


def contains(ball, value):
    middle, radius = (mp.mpf(x.str(80, radius=False)) for x in (ball.mid(), ball.rad()))
    return abs(middle - value) <= radius + abs(value) * mp.mpf(10) ** -70


@pytest.mark.parametrize(("users", "local_eps", "eps"), [
    # The share of the best test is within an ulp of 1 next to the budget, where a rounded share would skip the best test.
    (1, 1.0, BELOW_ONE), (2, 1.0, BELOW_ONE), (3, 1.0, BELOW_ONE), (2, 40.0, 39.0), (30, 1.5, 0.0),
    (30, 1.5, 0.7), (25, 1e-3, 5e-4),
])
@pytest.mark.parametrize("stronger", [False, True])
def test_the_window_contains_the_definition(users, local_eps, eps, stronger):
    with mp.workdps(90):
        protocol = (shuffle.StrongerClones if stronger else shuffle.Clones)(users, local_eps)
        ball, value = protocol.certify(eps, digits=20), exact(users, local_eps, eps, stronger)
        assert contains(ball, value)
        assert ball.rel_accuracy_bits() > 66


def test_every_window_is_valid(monkeypatch):
    with mp.workdps(90):
        odds = flint().arb(1).exp()

        def pair(factor):
            return 2 / (odds + 1), *clones_window.divergence_weights(odds, factor)

        value = exact(40, 1.0, 0.5, True)
        for low, high in ((0, 39), (15, 25), (20, 20), (0, 3), (36, 39)):
            monkeypatch.setattr(clones_window, "clone_window", lambda *given, ends=(low, high): (30.0, *ends))
            assert contains(clones_window.binomial_window(39, pair, flint().arb(0.5).exp()), value)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [shuffle.Clones, shuffle.StrongerClones])
def test_many_users(kind):
    for users, local_eps in ((30_000, 0.5), (10**6, 4.0), (10**7, 6.0)):
        for delta in (1e-6, 1e-150):
            protocol = kind(users, local_eps)
            eps = protocol.epsilon(delta)
            ball = protocol.certify(eps, bound="upper")
            assert ball.rel_accuracy_bits() > 50
            assert protocol.log_delta(eps, bound="lower") <= ball.log() <= protocol.log_delta(eps)
