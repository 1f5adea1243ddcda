"""Certificates of shuffled Gaussian noise on an interval: cells and constants against quadrature, and both stated bounds."""

import itertools
import math
from functools import cache

import numpy as np
import pytest

from shufflebounds import mechanisms
from shufflebounds.certify import interval_noise as certified
from shufflebounds.certify.balls import flint
from shufflebounds.certify.worst_dataset import LemmaH
from tests.strategies import thinned

pytest.importorskip("flint")

GRID = np.linspace(-12.0, 14.0, 200_001)


@cache
def normal(x):
    return np.exp(-((GRID - x) ** 2) / 2) / math.sqrt(2 * math.pi)


def integral(values):
    # the values at both ends are negligible
    return float(values.sum()) * (GRID[1] - GRID[0])


def excess(a, b, x, factor, c):
    """Return E(X - c)_+ for X = (R_a - E R_b)/R_x under R_x, by quadrature."""
    return integral(np.maximum(normal(a) - factor * normal(b) - c * normal(x), 0.0))


def of_law(law, c):
    """Return E(X - c)_+ of a distribution of finitely many values; the remaining mass is at 0."""
    rest = 1 - sum(float(p) for _, p in law)
    return sum(float(p) * max(float(x) - c, 0.0) for x, p in law) + rest * max(-c, 0.0)


@pytest.fixture
def noise():
    before = flint().ctx.prec
    flint().ctx.prec = 110
    yield certified.IntervalBound(flint().arb(1.2), 6.0, 1.0, 1000, -10.0)
    flint().ctx.prec = before


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(("low", "width", "eps"), thinned([(0.0, 0.1, 0.2), (0.55, 0.3, 0.0), (1.1, 0.1, 0.2)], 2))
def test_cells_are_larger_in_the_convex_order(noise, eps, first, low, width):
    ball, length, factor = flint().arb, 1.2, math.exp(eps)
    laws = list(noise.cell(ball(low), ball(width), ball(eps).exp(), first=first))
    for t in (0.0, 0.3, 0.9):
        place = low + t * width
        a, b, x = (place, length, 0.0) if first else (0.0, place, length)
        weights = [(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3]
        for c in (-2.0, -0.3, 0.0, 0.2, 1.0, 4.0):
            exact, bound = excess(a, b, x, factor, c), sum(w * of_law(law, c) for w, law in zip(weights, laws, strict=True))
            assert exact <= bound + 1e-9 + float(noise.beyond)
            # The cells and the bins are narrow enough to be of use.
            assert bound <= exact + (1e-2 if width > 0.2 else 4e-3)


@pytest.mark.parametrize(("low", "eps"), thinned([(0.0, 0.2), (0.6, 0.0), (1.15, 0.2)], 2))
def test_inputs_between_the_ends_are_covered(noise, eps, low):
    ball, length, width, factor = flint().arb, 1.2, 0.05, math.exp(eps)
    ends = [noise.law_a(ball(low) + shift, ball(width), ball(eps).exp()) for shift in (0, ball(width))]
    for t in (0.0, 0.4, 1.0):
        for c in (-2.0, -0.3, 0.0, 0.2, 1.0, 4.0):
            exact, bound = excess(0.0, length, low + t * width, factor, c), (1 - t) * of_law(ends[0], c) + t * of_law(ends[1], c)
            assert exact <= bound + 1e-9 + float(noise.beyond)
            assert bound <= exact + 2e-3


def test_cells_that_are_too_wide_are_still_bounds(noise):
    ball = flint().arb
    laws = list(noise.cell(ball(0), ball(1.2), ball(1), first=True))
    assert excess(0.6, 1.2, 0.0, 1.0, 0.5) <= max(of_law(law, 0.5) for law in laws)


@pytest.mark.parametrize("share", [1.0, 0.4])
def test_constants_are_those_of_the_definitions(share):
    length, factor = 0.8, math.exp(0.3)
    bound = certified.IntervalBound(flint().arb(length), 6.0, share, 1000, -10.0)
    first, second = normal(0.0), normal(length)
    least = np.minimum(first, second)
    mass = 1 - share + share * integral(least)
    assert float(bound._mass) == pytest.approx(mass, rel=1e-9)
    assert float(bound._distance) == pytest.approx(share * integral((first - second) ** 2 / least) / 4, rel=1e-6)
    shift = (factor - 1) / mass
    spread = share * integral((first - factor * second + shift * least) ** 2 / least) + (1 - share) * (1 - factor + shift) ** 2
    assert float(bound.spread(flint().arb(0.3).exp())) == pytest.approx(spread, rel=1e-6)
    (law,) = bound.ratios()
    assert float(sum(p for _, p in law)) == pytest.approx(mass, rel=1e-6)
    assert float(sum(p * x for x, p in law)) == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize("length", thinned([0.4, 1.0, 2.0], 2))
def test_the_negative_part_is_that_of_a_direct_sum(length):
    bound = certified.IntervalBound(flint().arb(length), 6.0, 1.0, 1000, -10.0)
    rng, height = np.random.default_rng(5), 4.0
    ratios = np.exp(length**2 / 2 + length * rng.normal(size=(2, 400_000))) / height - 1
    w, other = ratios[:, (ratios > 0).all(axis=0)]
    direct = float((np.maximum(w * other - 1 + height**-2, 0) / ((1 + w) * (1 + other))).sum()) / 400_000 / 3
    signed = float(bound.signed(certified.Weights(3, 0.0, np.empty(0))))
    assert 0.5 * ((1 + 2 * direct) ** 3 - 1) * 0.9 - 1e-6 <= signed < 0.5 * ((1 + 2 * direct) ** 3 - 1) * 1.5 + 1e-4


@pytest.mark.slow
def test_terms_of_lemma_h_are_bounds_of_the_direct_sum(noise):
    law = noise.law_a(flint().arb(0.3), flint().arb(0.05), flint().arb(0.02).exp())
    choices = certified.chosen([law], 400)
    x, p = np.array([(float(x), float(p)) for x, p in law]).T
    t = choices.step * np.arange(-4000, 4001)
    phi = 1 - p.sum() + np.array([(p * np.exp((choices.theta + 1j * one) * x)).sum() for one in t[4000:4400]])
    square = choices.theta**2 + t**2
    weights = np.exp(choices.smoothing / 2 * (choices.theta**2 - t**2)) / square
    direct = weights[4000] * abs(phi[0]) ** 400 + 2 * float((weights[4001:4400] * abs(phi[1:]) ** 400).sum())
    lemma = LemmaH(choices)
    value = float(lemma.value(law)) / (choices.step / (2 * math.pi))
    assert direct <= value <= direct * (1 + 1e-3)
    assert float(lemma.value(law, enough=1e9)) > float(lemma.value(law))
    assert lemma.value(law, enough=lemma.value(law) * 1.01) < lemma.value(law) * 1.01


PROTOCOLS = [(2.0, 1.0, 300, 1.0, 1e-3), (3.0, 2.0, 10**4, 0.5, 1e-6)]


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "sensitivity", "users", "share", "delta"), PROTOCOLS)
def test_both_bounds_are_certified(sigma, sensitivity, users, share, delta):
    protocol = mechanisms.GaussianMechanism(sigma, sensitivity).shuffled(users, share)
    eps = protocol.epsilon(delta)
    upper, lower = (protocol.certify(eps, bound=bound, seconds=60) for bound in ("upper", "lower"))
    sides = [protocol.log_delta(eps, bound=bound) for bound in ("lower", "upper")]
    assert sides[0] <= float(upper.upper().log()) <= sides[1] + certified.TOLERANCE
    assert sides[0] - certified.TOLERANCE <= float(lower.lower().log()) <= sides[1]


@pytest.mark.slow
def test_other_witnesses_give_valid_bounds(monkeypatch):
    protocol = mechanisms.GaussianMechanism(2.0).shuffled(1000)
    kept, lower = certified.chosen, protocol.log_delta(0.06, bound="lower")
    for change in ({"theta": 0.7, "step": 1.3}, {"theta": 1.4, "step": 1.0, "users": 10**6}):
        def other(laws, users, change=change):
            found = kept(laws, users)
            return found._replace(theta=found.theta * change["theta"], step=found.step * change["step"],
                                  users=change.get("users", users))

        monkeypatch.setattr(certified, "chosen", other)
        found = certified.interval_every_dataset(protocol, 0.06).value(flint().arb(0.06).exp())
        assert lower <= float(found.upper().log())


@pytest.mark.parametrize("listed", [(), (0.0, 0.3, 0.8)])
def test_the_main_term_covers_every_family_and_the_whole_interval(monkeypatch, listed):
    noise = certified.IntervalBound(flint().arb(0.8), 2.0, 1.0, 1000, -10.0, [flint().arb(x) for x in listed])
    law, places, cells = [(flint().arb(1), flint().arb(0.5))], [], []

    def law_a(g, h, factor):
        places.append(float(g))
        return law

    def cell(g, h, factor, first):
        cells.append((first, float(g), float(h)))
        return [law]

    def value(self, *_, **__):
        # The bound of wide cells is too large, so that they are divided.
        return flint().arb(1 if cells and cells[-1][2] > 0.8 / certified.CELLS / 3 else 0.1)

    monkeypatch.setattr(noise, "law_a", law_a)
    monkeypatch.setattr(noise, "cell", cell)
    monkeypatch.setattr(LemmaH, "value", value)
    noise.main(flint().arb(1), certified.chosen([law], 1000))
    cells = [one for one in cells if one[2] < 0.8 / certified.CELLS / 3]
    steps = np.diff(sorted({round(one, 12) for one in places}))
    assert (min(places), max(places)) == (0.0, 0.8)
    if listed:
        assert set(listed) <= set(places)
    else:
        assert steps.max() <= 0.8 / (4 * certified.CELLS) * (1 + 1e-9)
    for first in (True, False):
        parts = sorted((g, g + h) for one, g, h in cells if one is first)
        assert parts[0][0] == 0.0
        assert parts[-1][1] == pytest.approx(0.8)
        assert all(before[1] == pytest.approx(after[0]) for before, after in itertools.pairwise(parts))


@pytest.mark.slow
def test_the_pairs_of_users_are_removed_from_the_main_term(monkeypatch):
    protocol, given = mechanisms.GaussianMechanism(2.0).shuffled(1000), []
    weights = certified.IntervalBound.weights

    def chosen(self, *before):
        given.append(weights(self, *before))
        return given[-1]

    def main(self, factor, sums):
        assert sums.users == 1000 - 2 * given[-1].pairs
        return flint().arb(1)

    monkeypatch.setattr(certified.IntervalBound, "weights", chosen)
    monkeypatch.setattr(certified.IntervalBound, "main", main)
    certified.interval_every_dataset(protocol, 0.06).value(flint().arb(0.06).exp())
    assert given
    assert all(one.pairs > 0 for one in given)
