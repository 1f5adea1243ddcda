"""Certificates that are refused: sums that are too large, hypotheses that do not hold, balls that prove nothing."""

import math
from fractions import Fraction

import mpmath as mp
import pytest

from shufflebounds import InfeasibleError, mechanisms, sampling, shuffle
from shufflebounds.certify import blanket, by_definition, clones_window, confirms, outcomes_of, sampled_gaussians
from shufflebounds.certify._shuffle import _matrix
from shufflebounds.certify.balls import flint
from tests.strategies import slow, thinned

pytest.importorskip("flint")


@pytest.fixture(autouse=True)
def precision():
    before, flint().ctx.prec = flint().ctx.prec, 600
    with mp.workdps(60):
        yield
    flint().ctx.prec = before


def test_only_a_ball_around_0_proves_that_delta_is_0():
    ball = flint().arb
    assert confirms(ball(0), -math.inf, "upper", 1e-9)
    assert confirms(ball(0, 1e-30), -math.inf, "upper", 1e-9)
    assert not confirms(ball(1e-3, 1e-3), -math.inf, "upper", 1e-9)
    assert not confirms(ball(1e-30), -math.inf, "upper", 1e-9)


def test_every_number_in_a_ball_must_keep_the_stated_bound():
    ball, stated = flint().arb, math.log(1e-3)
    assert confirms(ball(-1e-3), stated, "upper")
    assert confirms(ball(0, 0.5e-3), stated, "upper")
    assert not confirms(ball(0, 2e-3), stated, "upper")
    assert confirms(ball(3e-3, 1e-3), stated, "lower")
    assert not confirms(ball(3e-3, 2.5e-3), stated, "lower")
    assert not confirms(ball(3e-3, 4e-3), stated, "lower")


@pytest.mark.parametrize("kinds", thinned([1, 2, 3, 30, 70], 3))
@pytest.mark.parametrize("times", [0, 1, 50, 200, 2**53])
def test_numbers_of_multisets(kinds, times):
    for number, exact in ((by_definition.multisets(kinds, times),
                           math.comb(times + kinds - 1, times) if min(kinds, times) < 64 else None),
                          (blanket.phi_answers(kinds, times, abs)[0].operations,
                           5 * math.comb(times + kinds, kinds) if min(kinds, times) < 63 else None)):
        if exact is not None and exact < 10**300:
            assert number == pytest.approx(exact, rel=1e-12)
        else:
            assert number == math.inf or number > 1e18


def test_sums_of_more_kinds_than_the_depth_of_a_recursion():
    values = [Fraction(k - 1000, 2**10) for k in range(2000)]
    law = [(flint().arb(flint().fmpq(x.numerator, x.denominator)), flint().arb(2.0**-11)) for x in values]
    exact = sum(max(x, Fraction(0)) for x in values) / 2**11
    assert flint().arb(flint().fmpq(exact.numerator, exact.denominator)) in blanket.enumerated(law, 1, flint().arb(48 * 2.0**-11))


def test_reports_of_many_bins_are_refused_before_any_work():
    with pytest.raises(InfeasibleError, match="is the limit"):
        shuffle.FlippedReports(100, 100, 20, 0.2, view="records").certify(0.1)


def test_the_datasets_of_many_users_are_not_listed():
    # A list of 2**53 numbers of ones has no place in the memory.
    for protocol in (shuffle.ShuffledBits(2**53, 0.1), mechanisms.RandomizedResponse(1.0).shuffled(2**50)):
        with pytest.raises(InfeasibleError, match="is the limit"):
            protocol.certify(0.1)


@pytest.mark.slow
def test_samples_of_a_composition():
    # Two releases of sigma = 2 are one of mu = sqrt(1/2).
    twice, mu, rate = mechanisms.GaussianMechanism(2.0).self_compose(2), mp.sqrt(mp.mpf(1) / 2), mp.mpf(0.25)

    def normal(factor):
        eps = mp.log(factor)
        return mp.ncdf(mu / 2 - eps / mu) - factor * mp.ncdf(-mu / 2 - eps / mu)

    for eps in (0.1, 0.6):
        removed = rate * normal(1 + (mp.exp(eps) - 1) / rate)
        for profile in (sampling.WithoutReplacement(twice, 8, 2), sampling.SampledPair(twice, 0.25, True)):
            ball = profile.certify(eps)
            assert abs(mp.mpf(ball.mid().str(40, radius=False)) - removed) <= mp.mpf(ball.rad().str(40, radius=False))
            assert ball.rel_accuracy_bits() > 25
        left = 1 - mp.exp(eps) * (1 - rate)
        ball, added = sampling.SampledPair(twice, 0.25, False).certify(eps), max(0, left) * normal(mp.exp(eps) * rate / abs(left))
        assert abs(mp.mpf(ball.mid().str(40, radius=False)) - added) <= mp.mpf(ball.rad().str(40, radius=False))


@pytest.mark.parametrize(("profile", "words"), [
    (sampling.RandomAllocation(mechanisms.GeometricMechanism(600.0, 3), 10**5), "at most 600000 are tried"),
    (sampling.RandomAllocation(mechanisms.GaussianMechanism(0.05), 10), "noise must be larger"),
], ids=repr)
def test_extreme_parameters_are_refused(profile, words):
    with pytest.raises(InfeasibleError, match=words):
        profile.certify(1.0)


def test_limits_of_the_sums_are_of_one_kind(monkeypatch):
    noise = mechanisms.GaussianMechanism(2.0)
    monkeypatch.setattr(sampled_gaussians, "MOST_BITS", 50)
    with pytest.raises(InfeasibleError, match="at most 50"):
        noise.self_compose(3).compose(noise.subsampled(0.1)).certify(0.3)
    monkeypatch.setattr(clones_window, "MOST_COUNTS", 5)
    with pytest.raises(InfeasibleError, match="at most 5"):
        shuffle.StrongerClones(1000, 1.0).certify(0.2)
    monkeypatch.setattr(blanket, "NODES", 5)
    with pytest.raises(InfeasibleError, match="at most 5"):
        mechanisms.KaryResponse(10, 1.0).shuffled(10**4).certify(0.02, bound="lower")


class FaultyResponse(mechanisms.RandomizedResponse):
    # Certificates are those of classes of the library.
    __module__ = mechanisms.RandomizedResponse.__module__


@outcomes_of.of("FaultyResponse")
def _(mechanism):
    raise TypeError("a fault")


def test_a_fault_is_not_taken_for_a_missing_certificate():
    with pytest.raises(TypeError, match="a fault"):
        sampling.RandomAllocation(FaultyResponse(1.0), 3, 2).certify(0.1)


def bits_delta(users, flip, eps):
    """Return delta of shuffled bits by its definition, in rational arithmetic."""
    factor, found = Fraction(math.exp(eps)), []
    for ones in range(users):
        law = {0: Fraction(1)}
        for bit in [1] * ones + [0] * (users - 1 - ones):
            p = 1 - flip if bit else flip
            law = {k: law.get(k, 0) * (1 - p) + law.get(k - 1, 0) * p for k in range(len(law) + 1)}
        for p, q in ((1 - flip, flip), (flip, 1 - flip)):
            found.append(sum(max(Fraction(0), law.get(k, 0) * (1 - p) + law.get(k - 1, 0) * p
                                 - factor * (law.get(k, 0) * (1 - q) + law.get(k - 1, 0) * q)) for k in range(users + 1)))
    return max(found)


@pytest.mark.parametrize("rows", [((0.7000000000000002, 0.3), (0.3, 0.7000000000000002)), slow(((0.7, 0.3), (0.3, 0.7)))])
def test_rows_that_do_not_sum_to_1_are_between_both_flips(rows):
    protocol, (most, least) = mechanisms.FiniteRandomizer(rows).shuffled(4), map(Fraction, rows[0])
    assert most + least != 1
    values = [bits_delta(4, flip, 0.0) for flip in (least, 1 - most)]
    for bound in (None, "upper", "lower"):
        ball = protocol.certify(0.0, bound=bound, digits=30)
        for value in values:
            assert flint().arb(flint().fmpq(value.numerator, value.denominator)) in ball
        assert protocol.delta(0.0, bound="lower") <= min(values) <= max(values) <= protocol.delta(0.0)
    exact = mechanisms.FiniteRandomizer([[0.75, 0.25], [0.25, 0.75]]).shuffled(4).certify(0.0, digits=30)
    assert exact.rel_accuracy_bits() > 99


def test_a_protocol_of_more_users_is_no_upper_bound():
    protocol = mechanisms.FiniteRandomizer(((0.5, 0.25, 0.25), (0.25, 0.25, 0.5))).shuffled(150)
    with pytest.raises(ArithmeticError, match="151 users"):
        _matrix(protocol, 151, 1.0).value(flint().arb(2))
    with pytest.raises(ArithmeticError, match=r"participation 0\.5"):
        _matrix(protocol._of_users(100), 50, 0.5).value(flint().arb(2))


@pytest.mark.parametrize(("users", "counts"), [(0, []), (3, [(1, 0)]), (3, [(3, -1)]), (3, [(1, 1, 1)])])
def test_datasets_of_another_number_of_users_are_refused(users, counts):
    protocol, datasets = mechanisms.FiniteRandomizer(((0.7, 0.3), (0.4, 0.6))).shuffled(3), [(one, (0, 1)) for one in counts]
    for every in (False, True):
        with pytest.raises((ArithmeticError, ValueError)):
            _matrix(protocol, users, 1.0, datasets, every=every).value(flint().arb(1.1))
