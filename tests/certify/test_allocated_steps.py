"""Random allocation to several steps in interval arithmetic, against closed forms and against a sum over all outcomes."""

import contextlib
import itertools
import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

from shufflebounds import InfeasibleError, mechanisms, sampling
from shufflebounds.certify import _allocation, compositions
from shufflebounds.certify.balls import flint
from shufflebounds.profile import DominatingPair
from shufflebounds.sampling._several import AdditiveBound
from tests.certify.test_allocated_gaussian import exact, put
from tests.strategies import slow

pytest.importorskip("flint")


@pytest.fixture(autouse=True)
def precision():
    before, flint().ctx.prec = flint().ctx.prec, 200
    with mp.workdps(30):
        yield
    flint().ctx.prec = before


def normal(mu, eps):
    return float(mp.ncdf(mu / 2 - eps / mu) - mp.exp(eps) * mp.ncdf(-mu / 2 - eps / mu))


@pytest.mark.parametrize("fine", [slow(0.05), slow(0.3)])
def test_the_lattice_of_one_and_two_steps(monkeypatch, fine):
    monkeypatch.setattr(_allocation, "FINE", (fine, fine))
    mu, e = mp.mpf(1), mp.exp(mp.mpf(1) / 2)
    for steps in (1, 2):
        value = _allocation._lattice(mechanisms.GaussianMechanism(1.0), steps, 2.5, round(1000 * fine))
        for eps, removed in ((0.5, True), (0.5, False)):
            c = steps * e if removed else steps / e
            known = exact(steps, mu, eps, removed)
            known = (known - 1 + e) * steps if removed else known * steps / e
            ball = value(flint().arb(steps) * flint().arb(0.5 if removed else -0.5).exp())
            assert known <= mp.mpf(float(ball.upper())) <= known * (1 + (0.02 if fine < 0.1 else 0.5) * fine), c
    one = _allocation._lattice(mechanisms.GaussianMechanism(1.0), 1, 2.5, round(1000 * fine))
    for c in (0.0, 0.001, 0.25, 1.0, 3.7, 11.5):
        ball = one(flint().arb(c))
        assert float(put(mp.mpf(c), mu)) <= float(ball.upper()) + 1e-15
        # A ball of several numbers contains the values at all of them.
        around = one(flint().arb(c + 0.1, 0.1))
        assert ball.upper() >= around.lower()
        assert one(flint().arb(c + 0.2)).lower() <= around.upper()


@pytest.mark.slow
@pytest.mark.parametrize("removed", [True, False])
def test_tests_of_two_steps_are_at_most_the_exact_value(removed):
    # If both steps use the record, the pair is that of normal noise with mu = sqrt(2).
    pair, eps = sampling.allocation._SeveralPair(mechanisms.GaussianMechanism(1.0), 2, removed, 2), 0.7
    for rate, fine in ((0.05, 0.2), (0.05, 3.0), (0.4, 0.02), (0.4, 3.0), (0.9, 0.2)):
        ball = _allocation._tested(pair, rate, fine, flint().arb(eps).exp())
        assert float(ball.lower()) <= normal(mp.sqrt(2), eps)
    best = _allocation._tested(pair, 0.5, 0.1, flint().arb(eps).exp())
    assert float(best.lower()) > 0.95 * normal(mp.sqrt(2), eps)


@pytest.mark.slow
def test_tests_of_one_step_of_two():
    pair, eps = sampling.AllocationPair(mechanisms.GaussianMechanism(1.0), 2), 0.3
    pair.__dict__["chosen"] = 1
    known = float(exact(2, mp.mpf(1), eps, True))
    for rate in (0.02, 0.6):
        ball = _allocation._tested(pair, rate, 0.1, flint().arb(eps).exp())
        assert 0.95 * known < float(ball.lower()) <= known


def divergence(p, q, steps, chosen, eps):
    """Return delta of a removed record by a sum over all outcomes of all steps, in rational probabilities."""
    sets = list(itertools.combinations(range(steps), chosen))
    total = mp.mpf(0)
    for y in itertools.product(range(len(p)), repeat=steps):
        with_record = sum(math.prod((p if i in s else q)[k] for i, k in enumerate(y)) for s in sets) / len(sets)
        without = math.prod(q[k] for k in y)
        total += max(mp.mpf(0), mp.mpf(with_record.numerator) / with_record.denominator
                     - mp.exp(eps) * mp.mpf(without.numerator) / without.denominator)
    return float(total)


@pytest.mark.parametrize(("steps", "chosen", "eps"), [(4, 3, 0.4), slow(6, 2, 0.7), slow(6, 4, 1.3)])
def test_the_bound_by_a_sum_of_few_outcomes_is_at_least_the_exact_value(steps, chosen, eps):
    p, q = ([Fraction(n, 10) for n in law] for law in ((6, 3, 1), (2, 3, 5)))
    pair = DominatingPair.from_pmfs(*(np.log([float(x) for x in law]) for law in (p, q)))
    way = sampling.allocation._SeveralPair(pair, steps, True, chosen)
    known, stated = divergence(p, q, steps, chosen, eps), way._forms.sum_bound.log_delta(eps, way._forms.blocks.log_delta(eps))
    ball = _allocation._by_sum(way, flint().arb(eps).exp(), near=math.log(known), tilt=3.0)
    assert math.log(known) <= float(ball.upper().log()) <= stated + 0.01


@pytest.mark.parametrize("interval", [(-5.0, 0.0), (1.0, 0.0), (1.0, 0.2), (2.0, 2.0), (math.nan, math.inf)])
def test_an_interval_of_v_that_is_no_interval_of_sums_gives_no_false_bound(interval, monkeypatch):
    monkeypatch.setattr(AdditiveBound, "interval", lambda *given: interval)
    p, q, eps = *([Fraction(n, 10) for n in law] for law in ((6, 3, 1), (2, 3, 5))), 0.7
    pair = DominatingPair.from_pmfs(*(np.log([float(x) for x in law]) for law in (p, q)))
    way = sampling.allocation._SeveralPair(pair, 4, True, 2)
    known = divergence(p, q, 4, 2, eps)
    for log_z in (-3.0, 0.0, 2.0):
        monkeypatch.setattr(AdditiveBound, "parameters", lambda *given, log_z=log_z: (log_z, -5.0))
        with contextlib.suppress(ValueError, ArithmeticError):
            assert not _allocation._by_sum(way, flint().arb(eps).exp(), near=math.log(known), tilt=3.0).upper() < known


@pytest.mark.parametrize("eps", [slow(2.0), slow(6.0)])
def test_the_bound_by_a_sum_of_noise_is_close_to_the_stated_one(eps):
    pair = sampling.allocation._SeveralPair(mechanisms.GaussianMechanism(1.5), 7, True, 5)
    stated, later = (pair._forms.sum_bound.log_delta(at, pair._forms.blocks.log_delta(at)) for at in (eps, eps + 0.01))
    ball = _allocation._by_sum(pair, flint().arb(eps).exp(), near=stated, tilt=100 * (stated - later))
    assert pair.log_delta(eps, bound="lower") <= float(ball.upper().log()) <= stated + _allocation.TOLERANCE


@pytest.mark.parametrize(("mechanism", "steps", "eps"), [
    (mechanisms.LaplaceMechanism(2.0), 9, 0.6), slow(mechanisms.KaryResponse(3, 1.0), 300, 0.2),
    slow(mechanisms.DiscreteGaussianMechanism(1.0), 8, 0.8)])
def test_tests_of_other_steps(mechanism, steps, eps):
    profile = sampling.RandomAllocation(mechanism, steps, 3)
    lower, upper = (profile.log_delta(eps, bound=bound) for bound in ("lower", "upper"))
    assert lower - _allocation.TOLERANCE <= float(profile.certify(eps, bound="lower").lower().log()) <= upper


@pytest.mark.slow
def test_delta_is_0_at_the_sum_of_the_pure_budgets():
    profile = sampling.RandomAllocation(mechanisms.LaplaceMechanism(2.0), 40, 4)
    ball = profile.certify(2.0, bound="upper")
    assert ball.contains(0)
    assert float(ball.upper()) < 1e-20


def test_every_step_is_a_composition():
    profile, eps = sampling.RandomAllocation(mechanisms.GaussianMechanism(1.0), 2, 2), 0.7
    upper, lower = (profile.certify(eps, bound=bound) for bound in ("upper", "lower"))
    known = normal(mp.sqrt(2), eps)
    assert float(lower.lower()) <= known <= float(upper.upper()) <= known * math.exp(_allocation.TOLERANCE)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [mechanisms.GaussianMechanism(2.0), mechanisms.LaplaceMechanism(2.0)], ids=repr)
def test_two_epochs_of_several_steps_are_not_those_of_one_step(noise):
    both = sampling.RandomAllocation(noise, 20, 5).self_compose(2)
    with pytest.raises(TypeError, match="no certified digits"):
        both.certify(0.5, bound="upper")


@pytest.mark.slow
def test_lower_bounds_of_several_epochs_need_delta_itself():
    # On a lattice delta of one epoch is an upper bound, which was positive above the pure budget.
    epochs = sampling.RandomAllocation(mechanisms.LaplaceMechanism(2.0), 5).self_compose(2)
    assert epochs.certify(0.3, bound="upper").upper() >= epochs.delta(0.3, bound="lower")
    with pytest.raises(TypeError, match="too few digits to be composed"):
        epochs.certify(0.3, bound="lower")


def test_two_epochs_of_several_steps_with_few_outcomes():
    p, q = ([Fraction(n, 10) for n in law] for law in ((7, 3), (4, 6)))
    pair = DominatingPair.from_pmfs(*(np.log([float(x) for x in law]) for law in (p, q)))
    both, sets = sampling.RandomAllocation(pair, 3, 2).self_compose(2), list(itertools.combinations(range(3), 2))
    outputs = list(itertools.product(range(2), repeat=3))
    removed = [sum(math.prod((p if i in s else q)[k] for i, k in enumerate(y)) for s in sets) / 3 for y in outputs]
    added, e = [math.prod(q[k] for k in y) for y in outputs], Fraction(math.exp(0.2))
    known = max(sum(max(one[y] * one[x] - e * other[y] * other[x], 0) for y, x in itertools.product(range(8), repeat=2))
                for one, other in ((removed, added), (added, removed)))
    assert known <= float(both.certify(0.2, bound="upper").upper()) <= known * math.exp(compositions.TOLERANCE)


@pytest.mark.slow
@pytest.mark.parametrize("profile", [sampling.RandomAllocation(mechanisms.GaussianMechanism(1.0), 20, 3)], ids=repr)
def test_stated_bounds_of_several_steps(profile):
    eps = profile.epsilon(1e-3)
    lower, upper = (profile.log_delta(eps, bound=bound) for bound in ("lower", "upper"))
    assert lower <= float(profile.certify(eps, bound="upper").upper().log()) <= upper + _allocation.TOLERANCE
    assert lower - _allocation.TOLERANCE <= float(profile.certify(eps, bound="lower").lower().log()) <= upper


def test_long_lattices_are_refused():
    with pytest.raises(InfeasibleError, match="at most 65536"):
        _allocation._lattice(mechanisms.GaussianMechanism(1.0), 10**6, 2.0, 200)
