"""Certificates for users with personalized budgets: rates, datasets and intervals from their definitions."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest

from shufflebounds import shuffle
from shufflebounds.certify import bounds_of, personalized
from shufflebounds.certify.balls import certified, flint
from shufflebounds.shuffle import PersonalizedClones
from tests.strategies import slow

pytest.importorskip("flint")

PROFILES = [
    PersonalizedClones.laplace([0.5, 1.0, 2.0], counts=[5, 6, 4]), PersonalizedClones.laplace([0.5, 1.0, 2.0] * 4, target=1),
    PersonalizedClones.gaussian([1.0, 2.0], counts=[12, 10]), PersonalizedClones.gaussian([0.7, 3.0, 1.5], target=2),
    PersonalizedClones.randomized_response([0.5, 1.0, 2.0] * 5, 4), PersonalizedClones.randomized_response([3.0, 0.2], 3, target=0),
]


@pytest.fixture(autouse=True)
def precision():
    before, flint().ctx.prec = flint().ctx.prec, 150
    with mp.workdps(40):
        yield
    flint().ctx.prec = before


def clone_delta(rates, odds, factor):
    """Return delta of the clone pair by its definition: every number of clones, every number of first messages."""
    law = [mp.mpf(1)]
    for rate in rates:
        law = [a * (1 - 2 * rate) + b * 2 * rate for a, b in zip([*law, mp.mpf(0)], [mp.mpf(0), *law])]
    w, total = odds / (odds + 1), mp.mpf(0)
    for c, p in enumerate(law):
        row = [0, *(mp.binomial(c, k) / mp.mpf(2) ** c for k in range(c + 1)), 0]
        gain, loss = w - factor * (1 - w), factor * w - (1 - w)
        total += p * mp.fsum(max(mp.mpf(0), gain * a - loss * b) for a, b in itertools.pairwise(row))
    return total


def laplace(b, z, x):
    return b / 2 * np.exp(-b * np.abs(z - x))


def gaussian(b, z, x):
    return b / math.sqrt(2 * math.pi) * np.exp(-((b * (z - x)) ** 2) / 2)


def smallest(ratio, places):
    """Return the smallest ratio over the outputs at `places` and the values 0, 1/8, ..., 1 of another user."""
    return min(float(np.min(ratio(places, x))) for x in np.linspace(0, 1, 9))


@pytest.mark.parametrize("b", [0.6, 1.0, 1.7])
def test_bounds_of_laplace_noise(b):
    users, reach, factor, odds = [0.6, 1.0, 1.4], 1.5, mp.exp(mp.mpf(0.25)), mp.exp(mp.mpf(b))
    far, near = np.linspace(-40, 41, 16_201), np.linspace(-reach, 1 + reach, 8_001)

    def both(z, sign):
        return np.abs(laplace(b, z, 0.0) + sign * laplace(b, z, 1.0)) + 1e-300

    slow = [c for c in users if c <= b]
    plain, revealed = ([smallest(lambda z, x, c=c, sign=sign: laplace(c, z, x) / both(z, sign), far) for c in slow]
                       for sign in (1, -1))
    inside = 1 - mp.exp(-b * reach) * (1 + 1 / odds) / 2
    window = [float(inside) * smallest(lambda z, x, c=c: laplace(c, z, x) / both(z, 1), near) for c in users]
    distance = 1 - mp.exp(mp.mpf(-b) / 2)
    scale = distance * (odds + 1) / (odds - 1)
    tail = mp.exp(-b * reach) / 2 * max(mp.mpf(0), 1 - factor / odds)
    exact = [clone_delta([min(0.5, r) for r in plain], odds, factor),
             scale * clone_delta([min(0.5, float(distance) * r) for r in revealed], odds, factor),
             inside * clone_delta(window, odds, factor) + tail]
    arb = flint().arb
    balls = personalized._laplace(arb(b), [(arb(c), 1) for c in users], reach, arb(0.25).exp())
    # Rates of a grid are at least the infimum, and the worst outputs are points of the grid.
    assert [float(ball) for ball in balls] == pytest.approx([float(value) for value in exact], rel=1e-12)


@pytest.mark.parametrize("b", [0.6, 1.0, 1.7])
def test_bounds_of_gaussian_noise(b):
    users, reach, factor, normal = [0.6, 1.0, 1.4], 2.0, mp.exp(mp.mpf(0.25)), mp.ncdf
    z = np.linspace(0.5 - reach, 0.5 + reach, 40_001)
    inside = normal(b * (reach + 0.5)) - normal(b * (0.5 - reach))
    p = mp.exp(mp.mpf(reach) * b**2)
    rates = [float(inside * p / (p + 1)) * smallest(
        lambda z, x, c=c: gaussian(c, z, x) / np.maximum(gaussian(b, z, 0.0), gaussian(b, z, 1.0)), z) for c in users]
    tail = normal(b * (0.5 - reach)) - factor * normal(b * (-0.5 - reach))
    local = normal(b / mp.mpf(2) - mp.mpf(0.25) / b) - factor * normal(-b / mp.mpf(2) - mp.mpf(0.25) / b)
    exact = [local, inside * clone_delta(rates, p, factor) + max(mp.mpf(0), tail)]
    arb = flint().arb
    balls = personalized._gaussian(arb(b), [(arb(c), 1) for c in users], reach, arb(0.25).exp())
    assert [float(ball) for ball in balls] == pytest.approx([float(value) for value in exact], rel=1e-7)


def messages(budgets, values, categories):
    """Return the distribution of the histogram of k-ary responses, by enumeration of all messages."""
    law = {}
    for sent in itertools.product(range(categories), repeat=len(values)):
        p = mp.fprod((mp.exp(b) if y == x else 1) / (mp.exp(b) + categories - 1) for b, x, y in zip(budgets, values, sent))
        seen = tuple(sent.count(y) for y in range(categories))
        law[seen] = law.get(seen, mp.mpf(0)) + p
    return law


@pytest.mark.parametrize("budgets", [[0.4, 1.0, 2.0], slow([2.5, 0.3, 0.3, 1.0])])
def test_every_dataset_of_few_users_of_kary_response(budgets):
    profile, exact = [mp.mpf(b) for b in budgets], {}
    for eps in (0.0, 0.5):
        factor, largest, third = mp.exp(mp.mpf(eps)), mp.mpf(0), mp.mpf(0)
        for target in range(len(budgets)):
            for rest in itertools.product(range(3), repeat=len(budgets) - 1):
                laws = [messages(profile, [*rest[:target], x, *rest[target:]], 3) for x in (0, 1)]
                value = mp.fsum(max(mp.mpf(0), laws[0][y] - factor * laws[1][y]) for y in laws[0])
                largest = max(largest, value)
                third = max(third, value) if set(rest) == {2} else third
        exact[eps] = largest, third
    guarantee = PersonalizedClones.randomized_response(budgets, 3)
    for eps, (largest, third) in exact.items():
        upper, lower = (guarantee.certify(eps, bound=bound) for bound in ("upper", "lower"))
        assert float(upper.upper()) >= largest * (1 - mp.mpf(1e-12))
        # The numbers of messages with three values are known from two of them, so the test loses nothing.
        assert float(lower) == pytest.approx(float(third), rel=1e-12)


@pytest.mark.parametrize("ends", [(0.8, math.inf), (-0.3, math.inf), (0.4, 1.75), (-2.0, 3.5)])
@pytest.mark.parametrize("name", ["laplace", "gaussian"])
def test_the_number_of_messages_in_one_interval(name, ends):
    budgets, factor = [0.5, 1.0, 2.0], mp.exp(mp.mpf(0.1))
    profile = PersonalizedClones.laplace(budgets, target=1) if name == "laplace" else PersonalizedClones.gaussian(
        [1 / b for b in budgets], target=1)
    ways = list(bounds_of(profile)(0.1, False))

    def above(b, y):
        if name == "gaussian":
            return mp.erfc(b * y / mp.sqrt(2)) / 2
        return mp.exp(-b * y) / 2 if y > 0 else 1 - mp.exp(b * y) / 2

    def inside(b, x):
        return above(b, mp.mpf(ends[0]) - x) - (above(b, mp.mpf(ends[1]) - x) if ends[1] < math.inf else 0)

    laws = []
    for x in (0, 1):
        chances = [inside(0.5, 0), inside(1.0, x), inside(2.0, 0)]
        law = {}
        for sent in itertools.product((0, 1), repeat=3):
            law[sum(sent)] = law.get(sum(sent), 0) + mp.fprod(c if y else 1 - c for c, y in zip(chances, sent))
        laws.append(law)
    exact = max(mp.fsum(max(mp.mpf(0), one[k] - factor * other[k]) for k in range(4)) for one, other in (laws, laws[::-1]))
    assert ways
    found = ways[0].value.func(flint().arb(0.1).exp(), i=1, ends=ends)
    assert float(found) == pytest.approx(float(exact), rel=1e-14)


@pytest.mark.parametrize("profile", PROFILES, ids=repr)
@pytest.mark.parametrize("eps", [0.0, 0.1, 0.45])
def test_both_stated_bounds_are_certified(profile, eps):
    upper, lower = (profile.certify(eps, bound=bound) for bound in ("upper", "lower"))
    assert lower.lower() <= upper.upper()
    with pytest.raises(TypeError, match="pass bound="):
        profile.certify(eps)


@pytest.mark.parametrize("profile", PROFILES[:4], ids=repr)
@pytest.mark.parametrize("scale", [0.3, 0.8, 1.3, 4.0])
def test_other_windows_and_intervals_are_valid(profile, scale, monkeypatch):
    below, above = (profile.delta(0.1, bound=bound) for bound in ("lower", "upper"))
    reach, intervals = personalized._reach, personalized.intervals
    monkeypatch.setattr(personalized, "_reach", lambda *given: scale * reach(*given))
    monkeypatch.setattr(personalized, "intervals", lambda *given: [(scale * one, scale * end) for one, end in intervals(*given)])
    for answer in bounds_of(profile)(0.1, True):
        assert float(certified(answer, 0.1, 15, 10.0).upper()) >= max(below, above * 0.999)
    for answer in bounds_of(profile)(0.1, False):
        assert float(certified(answer, 0.1, 15, 10.0).lower()) <= above


def test_users_whose_rates_are_given():
    rates, counts, odds = [0.1, 0.25, 0.4], [2, 3, 1], mp.mpf(4)
    ball = PersonalizedClones(0.2, rates, 0.75, counts).certify(0.3)
    exact = 0.75 * clone_delta([mp.mpf(r) for r, many in zip(rates, counts) for _ in range(many)], odds, mp.exp(mp.mpf(0.3)))
    assert float(ball) == pytest.approx(float(exact), rel=1e-14)


def test_many_budgets_are_refused_before_any_work():
    profile = shuffle.PersonalizedClones.gaussian(np.linspace(1, 4, 3000))
    for bound in ("upper", "lower"):
        with pytest.raises(ValueError, match="is the limit"):
            profile.certify(0.1, bound=bound)
