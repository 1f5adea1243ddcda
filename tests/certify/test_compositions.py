"""Certificates of compositions, against every adaptive strategy in mpmath, closed forms and quadrature."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest

from shufflebounds import CertificateGap, InfeasibleError, mechanisms, shuffle
from shufflebounds.certify import bounds_of, compositions
from shufflebounds.certify.balls import certified, flint
from shufflebounds.composition import from_dict
from shufflebounds.profile import Composition
from shufflebounds.profile.profile import DominatingPair
from tests.strategies import slow

pytest.importorskip("flint")

MATRIX = ((0.5, 0.25, 0.25), (0.25, 0.5, 0.25))


@pytest.fixture(autouse=True)
def precision():
    with mp.workdps(40):
        yield


def both_orders(outcomes):
    return [outcomes, [(q, p) for p, q in outcomes]]


def binomial(trials, prob):
    return [math.comb(trials, k) * mp.mpf(prob) ** k * (1 - mp.mpf(prob)) ** (trials - k) for k in range(trials + 1)]


def moved(trials, prob):
    law = binomial(trials, prob)
    return both_orders(list(zip([*law, mp.mpf(0)], [mp.mpf(0), *law])))


def convolved(first, second):
    out = [mp.mpf(0)] * (len(first) + len(second) - 1)
    for (i, p), (j, q) in itertools.product(enumerate(first), enumerate(second)):
        out[i + j] += p * q
    return out


def bits(users, flip, datasets):
    """Return the pairs of shuffled bits for all numbers of ones of the other users in `datasets`."""
    pairs = []
    for ones in datasets:
        others = convolved(binomial(ones, 1 - mp.mpf(flip)), binomial(users - 1 - ones, flip))
        zero, one = (convolved(others, binomial(1, p)) for p in (flip, 1 - mp.mpf(flip)))
        pairs += both_orders(list(zip(zero, one)))
    return pairs


def clones(users, local_eps):
    rate, w = 2 / (mp.exp(local_eps) + 1), mp.exp(local_eps) / (mp.exp(local_eps) + 1)
    out = []
    for c, weight in enumerate(binomial(users - 1, rate)):
        coin = binomial(c, 0.5)
        stay, more = [*coin, mp.mpf(0)], [mp.mpf(0), *coin]
        out += [(weight * (w * a + (1 - w) * b), weight * ((1 - w) * a + w * b)) for a, b in zip(stay, more)]
    return out


def best(releases, p, q):
    """Return the largest divergence over all orders of the releases and choices of pairs, for masses p and e^eps q so far."""
    if not releases:
        return max(p - q, mp.mpf(0))
    values = []
    for i, pairs in enumerate(releases):
        rest = releases[:i] + releases[i + 1:]
        values += [sum(best(rest, p * a, q * b) for a, b in outcomes) for outcomes in pairs]
    return max(values)


CASES = [
    ([(shuffle.BinomialNoise(3, 0.3), 2)], lambda: [moved(3, 0.3)] * 2),
    ([(shuffle.BinomialNoise(4, 0.5), 3)], lambda: [moved(4, 0.5)[:1]] * 3),
    ([(shuffle.ShuffledBits(3, 0.25), 2)], lambda: [bits(3, 0.25, range(3))] * 2),
    ([(shuffle.ShuffledBits(3, 0.25, ones=1), 1), (shuffle.BinomialNoise(1, 0.75), 1), (mechanisms.KaryResponse(2, 0.5), 1)],
     lambda: [bits(3, 0.25, [1]), moved(1, 0.75), *[[[(p, 1 - p), (1 - p, p)]] for p in [1 / (1 + mp.exp(mp.mpf(-0.5)))]]]),
    ([(mechanisms.FiniteRandomizer(MATRIX), 3)], lambda: [both_orders([tuple(map(mp.mpf, pair)) for pair in zip(*MATRIX)])] * 3),
]


@pytest.mark.parametrize(("factors", "releases", "eps"), [
    (*case, 0.9) for case in CASES] + [slow(*case, 0.0) if i == 3 else (*case, 0.0) for i, case in enumerate(CASES)])
def test_every_adaptive_strategy(factors, releases, eps):
    profile, exact = Composition(factors), best(releases(), mp.mpf(1), mp.exp(mp.mpf(eps)))
    ball = profile.certify(eps, digits=20)
    assert abs(mp.mpf(ball.mid().str(40, radius=False)) - exact) <= 1e-19 * exact
    for bound in ("upper", "lower"):
        assert profile.certify(eps, bound=bound).contains(ball)


def test_outcomes_in_the_order_of_their_ratios():
    ball = flint().arb
    # Two equal ratios, an outcome of P alone and one of Q alone.
    pair = [(0.25, 0.125), (0.125, 0.0), (0.0, 0.25), (0.125, 0.0625), (0.5, 0.5625)]
    listed = compositions.Listed([(ball(p), ball(q)) for p, q in pair])
    for factor in (0.0, 0.5, 8 / 9, 1.0, 2.0, 3.0):
        exact = sum(max(p - factor * q, 0) for p, q in pair)
        assert abs(float(listed.value(ball(factor))) - exact) < 1e-15
    with pytest.raises(ArithmeticError):
        listed.value(ball(0, 0.5))
    # A ratio that is not known adds an interval.
    unknown = [(ball(0.25), ball(0.5, 0.5)), (ball(0, 0.125), ball(0))]
    vague = compositions.Listed([(ball(0.5), ball(0.25)), *unknown, (ball(0), ball(0))])
    for p, q in itertools.product((0.0, 0.125), (0.0, 0.5, 1.0)):
        assert vague.value(ball(1.5)).contains(ball(0.5 - 1.5 * 0.25 + max(0.25 - 1.5 * q, 0) + p))


def noise_and_laplace(eps, sigma, scale):
    """Return delta of N(0, sigma^2) and Laplace noise of sensitivity 1, by the divergence of the former at every output."""

    def normal(loss):
        mu = 1 / mp.mpf(sigma)
        return mp.ncdf(mu / 2 - loss / mu) - mp.exp(loss) * mp.ncdf(-mu / 2 - loss / mu)

    def part(y):
        return mp.exp(-abs(y) / scale) / (2 * scale) * normal(eps - (abs(y - 1) - abs(y)) / scale)

    return mp.quad(part, [-mp.inf, 0, 1, mp.inf])


LATTICES = [
    (mechanisms.GaussianMechanism(3.0).compose(mechanisms.LaplaceMechanism(2.0)), 0.9, lambda: noise_and_laplace(0.9, 3.0, 2.0)),
    (shuffle.StrongerClones(6, 1.0).self_compose(2), 0.7, lambda: best([[clones(6, 1.0)]] * 2, mp.mpf(1), mp.exp(mp.mpf(0.7)))),
    (shuffle.BinomialNoise(30, 0.5).compose(shuffle.StrongerClones(4, 0.5)), 0.4,
     lambda: best([moved(30, 0.5)[:1], [clones(4, 0.5)]], mp.mpf(1), mp.exp(mp.mpf(0.4)))),
]


@pytest.mark.parametrize(("profile", "eps", "exact"), [slow(*LATTICES[0]), *LATTICES[1:]])
def test_bounds_on_a_lattice(profile, eps, exact):
    exact = exact()
    if profile is LATTICES[0][0]:
        with pytest.raises(TypeError, match="pass bound="):
            profile.certify(eps)
    else:
        assert abs(float(profile.certify(eps)) / exact - 1) < 1e-12
    for answer in compositions.on_lattice(profile, eps, True):
        assert exact * (1 - mp.mpf(1e-12)) <= float(certified(answer, eps, 15, 10.0).upper()) <= exact * mp.mpf(1.021)
    for answer in compositions.on_lattice(profile, eps, False):
        assert exact * (1 + mp.mpf(1e-12)) >= float(certified(answer, eps, 15, 10.0).lower()) >= exact / mp.mpf(1.021)


@pytest.mark.parametrize(("profile", "eps", "exact"), [slow(*LATTICES[0]), *LATTICES[1:]])
@pytest.mark.parametrize(("coarser", "reach"), [(3.0, 0.3), (40.0, 1.0)])
def test_every_lattice_gives_bounds(profile, eps, exact, coarser, reach, monkeypatch):
    exact = float(exact())
    monkeypatch.setattr(compositions, "TOLERANCE", coarser * compositions.TOLERANCE)
    for part in {type(part) for part, _ in profile.factors}:
        monkeypatch.setattr(part, "_epsilon", lambda self, delta, upper, before=part._epsilon: reach * before(self, delta, upper))
    for upper in (True, False):
        for answer in bounds_of(profile)(eps, upper):
            ball = certified(answer, eps, 15, 10.0)
            assert float(ball.upper()) >= exact * (1 - 1e-12) if upper else float(ball.lower()) <= exact * (1 + 1e-12)


def test_a_pair_in_one_order():
    listed = [(0.5, 0.125), (0.25, 0.5), (0.25, 0.375)]
    pair, y = DominatingPair.from_pmfs(*np.log(list(zip(*listed)))), np.linspace(-40, 41, 81_001)
    a, b = (np.exp(-abs(y - x) / 2) / 4 * 1e-3 for x in (0, 1))
    for profile, outcomes in ((pair, listed), (pair.reverse(), both_orders(listed)[1])):
        composed = profile.compose(mechanisms.LaplaceMechanism(2.0))
        # The sum over cells of width .001 of Laplace noise is a lower bound, up to the error of the rule.
        value = sum(float(np.maximum(p * a - math.exp(0.6) * q * b, 0.0).sum()) for p, q in outcomes)
        for bound, way in (("upper", 1), ("lower", -1)):
            ball = composed.certify(0.6, bound=bound)
            assert -1e-4 <= way * (float(ball) / value - 1) <= 0.021


@pytest.mark.slow
def test_sampled_noise_has_both_directions():
    profile = mechanisms.LaplaceMechanism(1.0).subsampled(0.1).self_compose(10)
    eps = profile.epsilon(1e-6)
    for bound in ("upper", "lower"):
        assert abs(float(profile.certify(eps, bound=bound).log()) - profile.log_delta(eps, bound=bound)) < 0.021


@pytest.mark.slow
@pytest.mark.parametrize("profile", [
    shuffle.StrongerClones(10**4, 2.0).compose(mechanisms.GaussianMechanism(3.0)),
    shuffle.BinomialNoise(400, 0.5).compose(shuffle.ShuffledBits(200, 0.2), mechanisms.LaplaceMechanism(4.0)),
])
def test_stated_bounds_are_confirmed(profile):
    eps = profile.epsilon(1e-12)
    assert profile.certify(eps, bound="upper").upper() <= 1e-12 * math.exp(0.0201)
    assert float(profile.certify(eps, bound="lower").lower().log()) >= profile.log_delta(eps, bound="lower") - 0.0201


def test_too_many_outcomes_are_refused():
    with pytest.raises(InfeasibleError, match="ball operations"):
        shuffle.BinomialNoise(3000, 0.5).self_compose(4).certify(0.1)
    with pytest.raises(TypeError, match="two bounds"):
        mechanisms.KaryResponse(4, 1.0).shuffled(100).compose(mechanisms.LaplaceMechanism(1.0)).certify(0.1, bound="upper")
    with pytest.raises(CertificateGap):
        # The choice of the dataset after the earlier results gives less than the largest delta of all datasets at every eps.
        shuffle.ShuffledBits(20, 0.2).self_compose(3).certify(0.9, bound="upper")


@pytest.mark.parametrize("protocol", [shuffle.RealSum(4, 2.0, 2, view="columns"), slow(shuffle.RealSum(3, 1.5, 3, view="columns"))])
def test_several_columns(protocol):
    # Every column is a release of shuffled bits, whose dataset may depend on the columns before.
    users, flip, times = protocol.users, protocol.flip, protocol.bits
    one = bits(users, flip, range(users))
    for eps in (0.0, 0.6):
        factor = mp.exp(mp.mpf(eps))
        upper, lower = (float(protocol.certify(eps, bound=bound)) for bound in ("upper", "lower"))
        assert abs(upper / best([one] * times, mp.mpf(1), factor) - 1) < 1e-12
        assert lower <= upper
        assert math.log(lower) >= protocol.log_delta(eps, bound="lower") - 1e-9
    with pytest.raises(TypeError, match="pass bound="):
        protocol.certify(0.5)


@pytest.mark.slow
def test_two_releases_of_clones_of_many_users():
    composed = shuffle.StrongerClones(200, 1.0).self_compose(2)
    for eps in (0.1, 0.5):
        ball = composed.certify(eps)
        assert ball.rel_accuracy_bits() > 49
        assert composed.log_delta(eps, bound="lower") <= float(ball.log()) <= composed.log_delta(eps)


@pytest.mark.parametrize("p", [(0.2, 0.299, 0.3, 0.2), (0.1, 0.3, 0.3, 0.2999)])
def test_losses_of_another_program_are_not_put_on_a_lattice(p):
    """Their masses need not sum to 1: the bounds on a lattice were 0.416 below 0.344, and 0.437 above 0.460."""
    losses = from_dict({"profile": "from_dp_accounting", "log_p": [math.log(x) for x in p],
                        "log_q": [math.log(x) - loss for x, loss in zip(p, (-1.0, -0.2, 0.3, 1.1))], "forward": True})
    both = Composition(((losses, 2), (mechanisms.GaussianMechanism(1.5), 1)))
    for bound in ("lower", "upper"):
        with pytest.raises(TypeError, match="another program"):
            both.certify(0.0, bound=bound)
