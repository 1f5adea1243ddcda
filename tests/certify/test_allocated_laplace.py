"""Random allocation of Laplace noise in interval arithmetic, against closed forms and a quadrature in mpmath."""

import math

import mpmath as mp
import pytest

from shufflebounds import mechanisms, sampling
from shufflebounds.certify.balls import flint
from tests.strategies import slow, thinned

pytest.importorskip("flint")


@pytest.fixture(autouse=True)
def precision():
    before = flint().ctx.prec
    with mp.workdps(30):
        yield
    flint().ctx.prec = before


def one_step(scale, c, removed):
    """Return E (L - c)_+, or E (c - L)_+ if the record is added, for the likelihood ratio L without the record."""
    e0 = 1 / mp.mpf(scale)
    atoms = [(mp.exp(-e0), mp.mpf(1) / 2), (mp.exp(e0), mp.exp(-e0) / 2)]
    sign = 1 if removed else -1
    low, high = (max(mp.exp(-e0), min(mp.exp(e0), c)) for _ in range(2))
    # The density of L between its ends is u^(-3/2) e^(-e0/2)/4.
    first, last = (low, mp.exp(e0)) if removed else (mp.exp(-e0), high)
    scaled = mp.exp(-e0 / 2) / 4
    inside = scaled * (2 * (mp.sqrt(last) - mp.sqrt(first)) - c * 2 * (1 / mp.sqrt(first) - 1 / mp.sqrt(last)))
    return mp.fsum(p * max(mp.mpf(0), sign * (x - c)) for x, p in atoms) + sign * inside


def exact(scale, steps, eps, removed):
    e, e0 = mp.exp(mp.mpf(eps)), 1 / mp.mpf(scale)
    c = steps * e if removed else steps / e
    if steps == 1:
        value = one_step(scale, c, removed)
    else:
        atoms = [(mp.exp(-e0), mp.mpf(1) / 2), (mp.exp(e0), mp.exp(-e0) / 2)]
        kinks = sorted(x for x in (c - mp.exp(e0), c - mp.exp(-e0)) if mp.exp(-e0) < x < mp.exp(e0))
        ends = [mp.exp(-e0), *kinks, mp.exp(e0)]
        value = mp.quad(lambda u: u ** (-1.5) * one_step(scale, c - u, removed), ends) * mp.exp(-e0 / 2) / 4
        value += mp.fsum(p * one_step(scale, c - x, removed) for x, p in atoms)
    return value / steps * (1 if removed else e)


@pytest.mark.parametrize("removed", [True, False])
@pytest.mark.parametrize(("scale", "steps"), thinned([(1.0, 1), (0.4, 1), (0.4, 2), slow(1.0, 2), slow(3.0, 2)], 3))
def test_one_and_two_steps(scale, steps, removed):
    pair = sampling.AllocationPair(mechanisms.LaplaceMechanism(scale), steps, removed)
    for eps in (0.0, 0.3 / scale):
        value, ball = exact(scale, steps, eps, removed), pair.certify(eps)
        assert float(ball.lower()) <= float(value) * (1 + 1e-14)
        assert float(ball.upper()) >= float(value) * (1 - 1e-14)
        assert float(ball.rad()) < 1e-3 * value
        if steps == 1:
            assert value == pytest.approx(1 - math.exp((eps - 1 / scale) / 2), rel=1e-14)


@pytest.mark.parametrize("removed", [True, False])
def test_the_ball_of_two_steps_is_between_the_bounds(removed):
    pair = sampling.AllocationPair(mechanisms.LaplaceMechanism(0.7), 2, removed)
    ball, (below, above) = pair.certify(0.4), (pair.delta(0.4, bound=bound) for bound in ("lower", "upper"))
    assert float(ball.lower()) <= exact(0.7, 2, 0.4, removed) <= float(ball.upper())
    assert float(ball.lower()) <= above
    assert float(ball.upper()) >= below
    # The bounds by means and by two values of each cell differ.
    assert 0 < float(ball.rad()) < 1e-3 * above


@pytest.mark.parametrize(("scale", "steps"), [slow(1.0, 3), slow(0.5, 20), slow(3.0, 200)])
def test_stated_bounds(scale, steps):
    profile = sampling.RandomAllocation(mechanisms.LaplaceMechanism(scale), steps)
    for eps in (0.0, 0.3 / scale):
        ball = profile.certify(eps)
        below, above = (profile.log_delta(eps, bound=bound) for bound in ("lower", "upper"))
        assert float(ball.lower().log()) <= above
        assert float(ball.upper().log()) >= below
        assert float(ball.rad()) < 1e-3 * float(ball)
        assert profile.certify(eps, bound="upper").upper().log() <= above + 0.02


def test_beyond_the_budget_delta_is_0():
    pair = sampling.AllocationPair(mechanisms.LaplaceMechanism(0.5), 20)
    for bound in ("upper", "lower"):
        assert pair.certify(2.5, bound=bound).contains(0)
