"""Functions for arrays: they return the results of the classes, are valid bounds, and release the interpreter lock."""

import itertools
import math
import os
import signal
import threading

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shufflebounds import shuffle
from tests.strategies import thinned

CLASSES = {False: shuffle.Clones, True: shuffle.StrongerClones}
USERS = st.integers(1, 2**53) | st.floats(0, 36).map(lambda x: max(1, int(math.exp(x))))
BUDGET = st.floats(1e-3, 20) | st.floats(-690, 6.5).map(math.exp)
DELTA = st.floats(-690, 0).map(math.exp) | st.sampled_from([0.0, 5e-324, 1e-300, 0.5, 1.0])


@given(USERS, BUDGET, DELTA, st.booleans())
def test_epsilon_is_verified_and_the_class_agrees(users, local_eps, delta, stronger):
    kind = CLASSES[stronger](users, local_eps)
    upper, lower = (shuffle.clones_epsilons(users, local_eps, delta, stronger=stronger, bound=side) for side in ("upper", "lower"))
    assert kind.epsilon(delta) == upper
    assert kind.epsilon(delta, bound="lower") == lower
    assert 0 <= lower <= upper <= local_eps
    assert kind.delta(upper) <= delta
    if lower > 0:
        assert kind.delta(lower, bound="lower") >= delta * (1 - 4e-15)
    if upper < local_eps and lower > 0 and delta > 1e-250:
        # The two bounds of eps differ by a relative 1e-9 and by at most (gap of the bounds of log delta)/(slope of log delta).
        flat = kind.log_delta(upper * 0.999) - kind.log_delta(upper)
        gap = kind.log_delta(upper) - kind.log_delta(upper, bound="lower")
        assert upper - lower <= upper * (1e-9 + 0.01 * gap / max(flat, 1e-300))


@given(USERS, BUDGET, st.floats(0, 1.2), st.booleans())
def test_log_delta_is_that_of_the_class(users, local_eps, share, stronger):
    eps = local_eps * share
    kind = CLASSES[stronger](users, local_eps)
    sides = [shuffle.clones_log_deltas(users, local_eps, eps, stronger=stronger, bound=side) for side in ("lower", "upper")]
    assert sides == [kind.log_delta(eps, bound="lower"), kind.log_delta(eps)]
    assert sides[0] <= sides[1] <= 0


def test_broadcasting():
    users, local, delta = np.array([[10], [10**5], [10**9]]), np.array([0.5, 2.0]), 1e-6
    eps = shuffle.clones_epsilons(users, local, delta)
    assert eps.shape == (3, 2)
    for (i, n), (j, b) in itertools.product(enumerate(users[:, 0]), enumerate(local)):
        assert eps[i, j] == shuffle.StrongerClones(int(n), float(b)).epsilon(delta)
    assert shuffle.clones_log_deltas(users, local, eps).shape == (3, 2)
    assert isinstance(shuffle.clones_epsilons(10, 1.0, 0.1), float)


def edge_of_one(users, local_eps, eps, rate):
    """Return delta with mpmath for eps close to the budget, where only messages that all equal the target's contribute."""
    with mpmath.workdps(60):
        e0, e = mpmath.mpf(local_eps), mpmath.mpf(eps)
        return -mpmath.expm1(e - e0) / (1 + mpmath.exp(-e0)) * (1 - rate(e0) / 2) ** (users - 1)


@pytest.mark.parametrize("users", [1, 2, 3, 100])
@pytest.mark.parametrize("local_eps", thinned([1e-300, 1e-12, math.log(3), 8.0, 40.0, 700.0], 2))
def test_the_edge_of_the_budget(users, local_eps):
    # eps is one of the next doubles below the budget, where any rounding error of the budget changes delta.
    eps = local_eps
    for _ in range(3):
        eps = math.nextafter(eps, 0)
        for kind, rate in ((shuffle.Clones, lambda e: mpmath.exp(-e)), (shuffle.StrongerClones, lambda e: 2 / (mpmath.exp(e) + 1))):
            exact = edge_of_one(users, local_eps, eps, rate)
            clones = kind(users, local_eps)
            assert clones.delta(eps, bound="lower") <= exact <= clones.delta(eps)
            assert clones.log_delta(eps) - clones.log_delta(eps, bound="lower") < 1e-12


def test_a_corner_of_the_parameters_that_once_failed():
    for clones in (shuffle.StrongerClones(100, 700.0), shuffle.Clones(2, 700.0)):
        assert clones.delta(699.9999999999999) == pytest.approx(1.1368683772161e-13, rel=1e-12)


@pytest.mark.parametrize("users", [10**7, 10**12, 2**53])
@pytest.mark.parametrize("local_eps", thinned([1e-300, 1e-8, 0.1, 1.0, 8.0, 30.0, 700.0], 3))
@pytest.mark.parametrize("delta", [1e-9, 1e-300])
def test_any_number_of_users(users, local_eps, delta):
    clones = shuffle.StrongerClones(users, local_eps)
    upper, lower = clones.epsilon(delta), clones.epsilon(delta, bound="lower")
    assert clones.delta(upper) <= delta
    assert upper - lower <= 1e-9 * upper
    if lower > 0:
        assert clones.delta(lower, bound="lower") >= delta * (1 - 1e-15)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((0, 1.0, 0.1), "users=0"), ((2.5, 1.0, 0.1), "users holds 2.5"), ((10, 0.0, 0.1), "local_eps=0"),
        ((10, 701.0, 0.1), "local_eps=701"),
        ((10, math.nan, 0.1), "local_eps=nan"), ((10, 1.0, 1.5), "delta=1.5"), (([], 1.0, 0.1), "users"),
        (([1, 2, 3], [1.0, 2.0], 0.1), "broadcast"), ((2**53 + 2, 1.0, 0.1), "users"), (("x", 1.0, 0.1), "users"),
    ],
)
def test_bad_input(arguments, name):
    with pytest.raises(ValueError, match=name):
        shuffle.clones_epsilons(*arguments)


def test_bad_choices():
    with pytest.raises(ValueError, match="bound"):
        shuffle.clones_epsilons(10, 1.0, 0.1, bound="both")
    with pytest.raises(ValueError, match="stronger=1"):
        shuffle.clones_epsilons(10, 1.0, 0.1, stronger=1)
    with pytest.raises(ValueError, match="eps=-1"):
        shuffle.clones_log_deltas(10, 1.0, -1.0)


@pytest.mark.slow
def test_another_thread_makes_progress():
    seen, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            seen[0] += 1

    other = threading.Thread(target=count)
    other.start()
    try:
        before = seen[0]
        # long enough that a loaded machine runs the other thread, too
        shuffle.clones_epsilons(np.full(10**4, 10**6), 1.0, 1e-9)
        assert seen[0] > before + 1000
    finally:
        stop.set()
        other.join()


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_an_interrupt_is_answered():
    # Without the interrupt, a million deployments would take a minute.
    timer = threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        shuffle.clones_epsilons(np.full(10**6, 10**6), 1.0, 1e-9)
    timer.join()
