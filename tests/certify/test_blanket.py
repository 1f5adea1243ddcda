"""The mean positive part of a sum in interval arithmetic: against sums in rational arithmetic, and against the stated bounds."""

import math
from fractions import Fraction

import pytest

from shufflebounds import CertificateGap, InfeasibleError, mechanisms, shuffle
from shufflebounds.certify import blanket
from shufflebounds.certify.balls import flint

pytest.importorskip("flint")

LAWS = [
    [(Fraction(3, 2), Fraction(1, 8)), (Fraction(-7, 4), Fraction(1, 8)), (Fraction(-1, 8), Fraction(1, 2))],
    [(Fraction(1, 64), Fraction(1, 2)), (Fraction(-1, 4), Fraction(1, 2))],
    [(Fraction(40), Fraction(1, 1024)), (Fraction(-1, 16), Fraction(1023, 1024))],
]


def exact(law, users):
    """Return Phi_n by convolution in rational arithmetic."""
    sums = {Fraction(0): Fraction(1)}
    rest = 1 - sum(p for _, p in law)
    for _ in range(users):
        more = {}
        for total, chance in sums.items():
            for x, p in [*law, (Fraction(0), rest)]:
                more[total + x] = more.get(total + x, 0) + chance * p
        sums = more
    return sum(total * chance for total, chance in sums.items() if total > 0) / users


def balls(law):
    ball, quotient = flint().arb, flint().fmpq
    law = [tuple(ball(quotient(v.numerator, v.denominator)) for v in one) for one in law]
    return law, (1 - sum((p for _, p in law), ball(0))).max(ball(0))


def holds(ball, value):
    return flint().arb(flint().fmpq(value.numerator, value.denominator)) in ball


@pytest.fixture(autouse=True)
def precision():
    before = flint().ctx.prec
    flint().ctx.prec = 200
    yield
    flint().ctx.prec = before


@pytest.mark.slow
@pytest.mark.parametrize("users", [1, 25])
@pytest.mark.parametrize("law", LAWS)
def test_both_ways_contain_the_sum_in_rational_arithmetic(law, users):
    known, value = balls(law), exact(law, users)
    contour = blanket.contour(known[0], users, known[1])
    assert holds(contour, value)
    assert contour.rel_accuracy_bits() > 10
    assert holds(blanket.enumerated(known[0], users, known[1]), value)


def test_a_probability_that_may_be_zero_is_not_taken_as_zero():
    """The outcomes with X = 0 were left out if the ball of their probability had 0 in it."""
    ball, law = flint().arb, [(Fraction(1), Fraction(1, 2)), (Fraction(-1), Fraction(1, 2) - Fraction(1, 2**10))]
    known, value = balls(law), exact(law, 3)
    assert holds(blanket.enumerated(known[0], 3, ball(2.0**-11, 2.0**-11)), value)
    alone, others = blanket.values_of([(ball(1), ball(0), ball(0, 1e-30)), (ball(1), ball(2), ball(0, 1e-30))], ball(1))
    assert others == []
    assert alone.lower() <= -1
    assert alone.upper() >= 1


@pytest.mark.slow
def test_a_likely_sum_of_zero_does_not_widen_the_upper_bound():
    # P(S = 0) is above 0.97, and the smoothing adds eta/sqrt(2 pi) times this to T.
    law = [(Fraction(1), Fraction(1, 1000)), (Fraction(-1, 2), Fraction(1, 500))]
    known, value = balls(law), exact(law, 10)
    contour = blanket.contour(known[0], 10, known[1], digits=blanket.FEW_DIGITS)
    assert holds(contour, value)
    assert 0 <= float(contour.upper()) / value - 1 < 1e-4


@pytest.mark.slow
def test_every_witness_gives_valid_bounds_and_others_are_refused():
    law, rest = balls(LAWS[0])
    value, found = exact(LAWS[0], 12), blanket.witness(law, 12, blanket.DIGITS)
    rough = found._replace(eta=30 * found.eta, last=found.last // 30)
    for change in ({}, {"theta": 1.3 * rough.theta}, {"theta": 0.5 * rough.theta}, {"y": 0.4 * rough.y}, {"t": 1.01 * rough.theta},
                   {"eta": 3 * rough.eta}, {"last": rough.last // 4}):
        assert holds(blanket.contour(law, 12, rest, rough._replace(**change)), value)
    for change in ({"theta": -found.theta}, {"t": 0.9 * found.theta}, {"y": -found.y}, {"eta": 0.0}, {"last": 0}, {"y": math.nan}):
        with pytest.raises(ArithmeticError, match="witness"):
            blanket.contour(law, 12, rest, found._replace(**change))


def test_no_value_is_positive():
    law, rest = balls([(Fraction(-1, 2), Fraction(1, 2))])
    assert blanket.contour(law, 10, rest) == 0


@pytest.mark.slow
@pytest.mark.parametrize("protocol", [
    mechanisms.KaryResponse(10, 1.0).shuffled(10**4, 0.5), mechanisms.LocalHashing(100, 1.0).shuffled(50),
    mechanisms.PureLocal(1.0).shuffled(1000), mechanisms.RandomizedResponse(1.0).shuffled(60),
    mechanisms.FiniteRandomizer(((0.7, 0.3), (0.4, 0.6))).shuffled(100),
    mechanisms.LocalHashing(4, 4.0, 3).shuffled(300), mechanisms.UnaryEncoding(5, 0.95, 0.8).shuffled(30),
    mechanisms.SubsetSelection(4, 3.0, 3).shuffled(6),
    mechanisms.FiniteRandomizer(((0.5, 0.5, 0.0), (0.0, 0.25, 0.75))).shuffled(3),
], ids=repr)
def test_both_stated_bounds_are_certified(protocol):
    # A third of the bounds are those of the privacy blanket; the others are by the arguments that are the smallest there.
    eps = min(protocol.epsilon(1e-6), 1.0)
    for bound in ("upper", "lower"):
        ball, stated = protocol.certify(eps, bound=bound), protocol.log_delta(eps, bound=bound)
        assert abs(float(ball.log().mid()) - stated) < 3e-5


@pytest.mark.slow
def test_a_bound_that_is_not_reached_raises_both_numbers(monkeypatch):
    protocol = mechanisms.FiniteRandomizer(((0.7, 0.3), (0.4, 0.6))).shuffled(20)
    stated = {bound: protocol.log_delta(0.3, bound=bound) for bound in ("upper", "lower")}
    for bound, move in (("upper", -0.01), ("lower", 0.01)):
        monkeypatch.setattr(shuffle.Shuffled, "log_delta", lambda self, eps, bound, to=stated[bound] + move: to)
        with pytest.raises(CertificateGap, match=f"the {bound} bound of log delta is stated as") as caught:
            protocol.certify(0.3, bound=bound)
        assert caught.value.stated == stated[bound] + move
        assert caught.value.certified == pytest.approx(stated[bound], abs=1e-6)


def test_the_class_that_was_asked_and_the_limit_of_time_are_named():
    composed = shuffle.StrongerClones(10**4, 2.0).compose(mechanisms.GaussianMechanism(3.0))
    with pytest.raises(TypeError, match="Composition has no certified digits"):
        composed.certify(0.5)
    with pytest.raises(TypeError, match="Shuffled has no certified digits: it has two bounds, so pass bound='upper'"):
        mechanisms.LocalHashing(100, 1.0).shuffled(50).certify(0.5)
    with pytest.raises(InfeasibleError, match=r"seconds=1e-06 is the limit"):
        mechanisms.KaryResponse(5, 1.0).certify(0.3, seconds=1e-6)


@pytest.mark.parametrize("randomizer", [
    mechanisms.LocalHashing(100, 1.0, 2), mechanisms.SubsetSelection(20, 1.5), mechanisms.HadamardResponse(30, 1.0),
    mechanisms.UnaryEncoding(4, 0.8, 0.1), mechanisms.RandomizedResponse(1.0), mechanisms.RatioBounded(3.0, 0.25, 3.0),
    mechanisms.PureLocal(1.0),
], ids=repr)
def test_one_report(randomizer):
    for eps in (0.0, 0.4):
        ball = randomizer.certify(eps, digits=30)
        assert randomizer.delta(eps, bound="lower") <= ball <= randomizer.delta(eps)
        assert ball.rel_accuracy_bits() > 90
