"""tradeoff, gdp_mu and rdp of every profile, against enumeration in fractions, closed forms and reference values."""

import json
import math
import pickle
import random
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import ClassVar

import mpmath
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from shufflebounds import DominatingPair, PrivacyProfile, Tradeoff
from shufflebounds.mechanisms import FiniteRandomizer, GeometricMechanism, KaryResponse, LaplaceMechanism, RandomizedResponse
from shufflebounds.profile.extend import Attained, DominatingPairInfo, IntervalArray, Reverse, Sampling
from shufflebounds.sampling import RandomAllocation
from shufflebounds.shuffle import (
    BinomialNoise,
    Clones,
    GeometricDummies,
    PersonalizedBits,
    PersonalizedClones,
    ShuffledBits,
    StrongerClones,
)
from shufflebounds.tradeoff import renyi_divergence
from tests.oracles import ALPHAS, at, convolved, hull, logs, thresholds
from tests.oracles import binomial_masses as binomial
from tests.strategies import laws, slow, thinned

GRID = np.linspace(0, 1, 401)
VERTICES = [
    entry for entry in json.loads((Path(__file__).parents[1] / "reference" / "clones-and-personalised.json").read_text())
    if entry["quantity"].startswith("tradeoff_vertex")
]  # fmt: skip


def bit_laws(users, flip, ones):
    """Return the distributions of the sum for the target's bit 0 and 1, as fractions."""
    q = Fraction(flip)
    others = convolved(binomial(ones, 1 - q), binomial(users - 1 - ones, q))
    return convolved(others, [1 - q, q]), convolved(others, [q, 1 - q])


def encloses(profile, boundaries, slack, alphas=ALPHAS):
    """Assert that the convex hull of the exact curves is between the profile's two curves, each at most `slack` from it."""
    below, above = profile.tradeoff(), profile.tradeoff(bound="upper")
    convex = hull({point for boundary in boundaries for point in boundary})
    for alpha in alphas:
        exact = at(convex, alpha)
        assert below.beta(float(alpha)) <= exact + Fraction(1, 10**15)
        assert below.beta(float(alpha)) >= exact - Fraction(slack)
        assert above.beta(float(alpha)) >= exact - Fraction(1, 10**15)
        assert above.beta(float(alpha)) <= exact + Fraction(slack)


@pytest.mark.parametrize("flip", [2.0**-10, 0.125, 0.25, 0.4375])
@pytest.mark.parametrize("users", thinned([1, 2, 4, slow(6)], 2))
def test_all_data_of_few_users(users, flip):
    pairs = [bit_laws(users, flip, ones) for ones in range(users)]
    boundaries = [thresholds(*order) for p, q in pairs for order in ((p, q), (q, p))]
    encloses(ShuffledBits(users, flip), boundaries, 1e-11)
    for ones in range(users):
        p, q = pairs[ones]
        encloses(ShuffledBits(users, flip, ones=ones), [thresholds(p, q), thresholds(q, p)], 1e-11)


def test_specified_curve_of_all_data():
    # The values are those of the specification, section "shuffled-bits 1.2".
    alpha = np.array([0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9])
    exact = [0.98703653215428264, 0.93912303670532137, 0.88204837138048275, 0.71908970144508449, 0.46297848233691371,
             0.22093098946450352, 0.08410198832951997]  # fmt: skip
    # The infimum of the curves over all datasets is not convex; its convex hull is smaller by up to 6e-5.
    flips = [scipy.stats.binom.pmf(np.arange(m + 1), m, 0.29) for m in range(100)]
    points = set()
    for ones in range(100):
        others = np.convolve(flips[ones][::-1], flips[99 - ones])
        zero, one = np.convolve(others, [0.71, 0.29]), np.convolve(others, [0.29, 0.71])
        alpha_beta = [(float(zero[k:].sum()), float(one[:k].sum())) for k in range(102)]
        points |= {*alpha_beta, *((beta, a) for a, beta in alpha_beta)}
    convex = hull(points)
    hulled = [at(convex, a) for a in alpha]
    assert all(0 <= above - below < 1e-4 for above, below in zip(exact, hulled))
    bits = ShuffledBits.boolean_sum(100, 58)
    above, below = bits.tradeoff(bound="upper").beta(alpha), bits.tradeoff().beta(alpha)
    np.testing.assert_allclose(above, hulled, atol=1e-10, rtol=0)
    np.testing.assert_allclose(below, hulled, atol=1e-10, rtol=0)
    assert (below <= above).all()


@pytest.mark.parametrize(
    ("users", "lam", "mu"),
    thinned([
        (10, 5, 0.49332160204639977), (20, 10, 0.34417871166182044), (60, 6, 1.1326497842672891),
        (100, 58, 0.11138848355996431), (100, 20, 0.48840569063278988),
    ], 3),
)  # fmt: skip
def test_specified_mu(users, lam, mu):
    # The values are those of the specification, section "shuffled-bits 1.3".
    bits = ShuffledBits.boolean_sum(users, lam)
    lower, upper = bits.gdp_mu(bound="lower"), bits.gdp_mu()
    assert lower <= mu <= upper
    assert upper - lower < 1e-10
    # The pair attains mu. Its bounds come from sampled values of delta, as for every profile.
    pair = bits.pair(0)
    assert pair.gdp_mu(bound="lower") <= mu * (1 + 1e-14)
    assert pair.gdp_mu() == pytest.approx(mu, rel=2e-7)
    assert pair.gdp_mu() >= mu * (1 - 1e-14)


@pytest.mark.slow
def test_specified_mu_of_known_data():
    bits = ShuffledBits.boolean_sum(1000, 500)
    mu = 0.04643208968324907579137979
    assert bits.pair(0).gdp_mu(bound="lower") <= mu <= bits.pair(0).gdp_mu()
    assert bits.pair(0).gdp_mu() == pytest.approx(mu, rel=2e-7)
    assert bits.gdp_mu() >= mu


def clone_laws(users, local_eps, rate):
    """Return the two distributions of (number of clones, number of ones), with 50 digits."""
    with mpmath.workdps(60):
        e = mpmath.exp(mpmath.mpf(local_eps))
        chance = Fraction(int(rate(e) * 10**50), 10**50)
        w = Fraction(int(10**50 / (e + 1)), 10**50)
    p, q = [], []
    for c, weight in enumerate(binomial(users - 1, chance)):
        a = binomial(c, Fraction(1, 2))
        p += [weight * x for x in convolved(a, [w, 1 - w])]
        q += [weight * x for x in convolved(a, [1 - w, w])]
    return p, q


@dataclass(frozen=True)
class Sampled(PrivacyProfile):
    """A profile that states its values of delta alone, so that its curve, mu and divergences follow from samples of delta."""

    known: PrivacyProfile
    pure: float = math.inf

    theorem: ClassVar[str] = "exact"
    neighbours: ClassVar[str] = "as before"

    def describe(self):
        if not isinstance(self.known, DominatingPair):
            return DominatingPairInfo(self.bounds, self.pure)
        back = Reverse(Sampled(self.known.reverse()).bounds)
        return DominatingPairInfo(self.bounds, self.pure, back, attained=Attained(single=True))

    def bounds(self, eps):
        return IntervalArray(*(np.asarray(self.known.log_delta(eps, bound=bound)) for bound in ("lower", "upper")))


@pytest.mark.parametrize("local_eps", thinned([0.25, 1.0, 4.0], 2))
@pytest.mark.parametrize("users", [1, 3, slow(5)])
def test_vertices_of_clones(users, local_eps):
    for clones, rate in ((Clones, lambda e: 1 / e), (StrongerClones, lambda e: 2 / (e + 1))):
        profile = clones(users, local_eps)
        p, q = clone_laws(users, local_eps, rate)
        boundary = thresholds(p, q)
        encloses(profile, [boundary], 1e-11)
        exact = Tradeoff.from_pmfs(logs(p), logs(q)).gdp_mu()
        assert profile.gdp_mu(bound="lower") <= exact * (1 + 1e-13)
        assert profile.gdp_mu() >= exact * (1 - 1e-13)
        assert profile.gdp_mu() == pytest.approx(exact, rel=1e-6)
        # The bounds of the general method contain the exact value, too.
        encloses(Sampled(profile, local_eps), [boundary], 2e-3)


def vertices():
    """Yield the class, the parameters n and eps of a reference entry, and alpha and beta of one vertex."""
    found = {}
    for entry in VERTICES:
        key = entry["params"]["family"], entry["params"]["n"], entry["params"]["eps"]
        found.setdefault(key, {})["alpha" if "alpha" in entry["quantity"] else "beta"] = float(entry["value"])
    return [(*key, value["alpha"], value["beta"]) for key, value in found.items() if len(value) == 2]


@pytest.mark.parametrize(("family", "n", "eps", "alpha", "beta"), vertices())
def test_vertices_of_personal_clones(family, n, eps, alpha, beta):
    i = np.arange(n - 1)
    if "mod" in family:
        budgets, own = 0.5 + 0.15 * ((7 * i) % 11), 2.0
    else:
        start, slope, own = {"0.5": (0.5, 1.5, 2.0), "0.0": (0.05, 0.95, 1.0), "1+3": (1.0, 3.0, 4.0)}[family.split("=")[1][:3]]
        budgets = start + slope * i / (n - 1)
    clones = PersonalizedClones(1 / (math.exp(own) + 1), 1 / (np.exp(budgets) + 1))
    below, above = clones.tradeoff().beta(alpha), clones.tradeoff(bound="upper").beta(alpha)
    assert below <= beta + 1e-13
    assert above >= beta - 1e-13
    assert above - below < 2e-3 * clones.delta(0.0) + 1e-4 * (n == 8)


@pytest.mark.slow
@settings(deadline=None)
@given(laws())
def test_samples_enclose_listed_laws(pq):
    p, q = pq
    rows = FiniteRandomizer([[float(x) for x in law] for law in pq])
    boundaries = [thresholds(p, q), thresholds(q, p)]
    # Where only one law has mass, finitely many samples may leave any gap.
    encloses(Sampled(rows, rows.epsilon(0.0)), boundaries, 1)
    exact = Tradeoff.from_pmfs(logs(p), logs(q)).gdp_mu()
    for profile in (Sampled(rows), Sampled(rows, rows.epsilon(0.0)), DominatingPair.from_pmfs(logs(p), logs(q))):
        lower, upper = (profile.gdp_mu(bound=bound) for bound in ("lower", "upper"))
        assert upper >= exact * (1 - 1e-12) - 1e-13
        if exact < math.inf:
            assert lower <= exact * (1 + 1e-12) + 1e-13


@pytest.mark.slow
@settings(deadline=None)
@given(laws(), st.sampled_from([1.0, 1.5, 2.0, 8.0, 64.0]))
def test_renyi_of_listed_laws(pq, order):
    p, q = pq
    pair = DominatingPair.from_pmfs(logs(p), logs(q))
    exact = renyi_divergence(logs(p), logs(q), order)
    assert pair.rdp(order, bound="lower") <= exact * (1 + 1e-15)
    assert pair.rdp(order) >= exact
    profile = Sampled(pair, pair.epsilon(0.0))
    lower, upper = profile.rdp(order, bound="lower"), profile.rdp(order)
    assert upper >= exact * (1 - 1e-11) - 1e-12
    if exact < math.inf:
        assert lower <= exact * (1 + 1e-11) + 1e-12
    if 1e-3 < exact < math.inf and upper < math.inf:
        assert upper - lower < 0.01 * exact


@pytest.mark.parametrize("order", [1.0, 1.25, slow(7.5), 40.0])
@pytest.mark.parametrize(
    ("users", "flip", "ones"),
    [(1, 0.25, 0), (12, 0.125, 3), (60, 0.3, 59), (120, 0.02, 60), slow(400, 0.02, 200)],
)
def test_renyi_by_direct_sums(users, flip, ones, order):
    with mpmath.workdps(50):
        q = mpmath.mpf(flip)
        parts = [[mpmath.binomial(n, k) * x**k * (1 - x) ** (n - k) for k in range(n + 1)]
                 for n, x in ((ones, 1 - q), (users - 1 - ones, q))]  # fmt: skip
        scale = mpmath.mpf(2) ** 400
        whole = [[int(x * scale) for x in part] for part in parts]
        others = [0] * users
        for i, x in enumerate(whole[0]):
            for j, y in enumerate(whole[1]):
                others[i + j] += x * y
        total = sum(others)
        others = [mpmath.mpf(x) / total for x in others]
        zero = [(1 - q) * a + q * b for a, b in zip([*others, mpmath.mpf(0)], [mpmath.mpf(0), *others])]
        one = [q * a + (1 - q) * b for a, b in zip([*others, mpmath.mpf(0)], [mpmath.mpf(0), *others])]
        exact = -mpmath.inf
        for p, r in ((zero, one), (one, zero)):
            shared = [(a, b) for a, b in zip(p, r) if a and b]
            if order == 1:
                value = mpmath.fsum(a * mpmath.log(a / b) for a, b in shared)
            else:
                value = mpmath.log(mpmath.fsum(a**order * b ** (1 - order) for a, b in shared)) / (order - 1)
            exact = max(exact, value)
        exact = float(exact)
    bits = ShuffledBits(users, flip, ones=ones)
    lower, upper = bits.rdp(order, bound="lower"), bits.rdp(order)
    assert lower <= exact * (1 + 1e-15)
    assert exact <= upper * (1 + 1e-15)
    assert upper - lower <= 2e-6 * exact
    if users <= 300:
        assert ShuffledBits(users, flip).rdp(order) >= lower


@dataclass(frozen=True)
class Shift(PrivacyProfile):
    """The Gaussian mechanism, for which every quantity has a closed form."""

    mu: float

    theorem: ClassVar[str] = "exact"
    neighbours: ClassVar[str] = "shift by mu"

    def describe(self):
        return DominatingPairInfo(self.bounds, attained=Attained(single=True))

    def bounds(self, eps):
        value = np.asarray(Tradeoff.gaussian(self.mu).log_delta(eps))
        slack = 1e-14 * (1 + np.abs(value))
        return value - slack, value + slack


@pytest.mark.parametrize("mu", [1e-3, 0.25, 1.0, 4.0])
def test_gaussian_limit(mu):
    profile, exact = Shift(mu), Tradeoff.gaussian(mu)
    below, above = profile.tradeoff(), profile.tradeoff(bound="upper")
    for log_alpha in (-300.0, -30.0, -3.0, -0.5, -1e-3, -1e-9):
        value = exact.log_beta(log_alpha)
        assert below.log_beta(log_alpha) <= value + 1e-14
        assert above.log_beta(log_alpha) >= value - 1e-14
        if log_alpha > -40:
            assert above.beta(math.exp(log_alpha)) - below.beta(math.exp(log_alpha)) < 1e-3 * profile.delta(0.0)
    assert profile.gdp_mu(bound="lower") == pytest.approx(mu, rel=1e-4)
    assert profile.gdp_mu(bound="lower") <= mu * (1 + 1e-12)
    # Finitely many values of delta give no finite upper bound.
    assert profile.gdp_mu() == math.inf
    for order in (1.0, 2.0, 5.0):
        lower = profile.rdp(order, bound="lower")
        assert lower <= order * mu * mu / 2 * (1 + 1e-13)
        assert lower == pytest.approx(order * mu * mu / 2, rel=1e-5)


PROFILES = [
    ShuffledBits(1, 0.25),
    ShuffledBits(30, 0.1),
    ShuffledBits(30, 0.5),
    slow(ShuffledBits(5000, 0.05)),
    ShuffledBits(5000, 0.05, ones=17),
    slow(ShuffledBits(10**9, 0.05, ones=17)),
    Clones(100, 1.0),
    StrongerClones(10**5, 2.0),
    BinomialNoise(40, 0.25),
    BinomialNoise(0, 0.25),
    PersonalizedBits(np.linspace(0.5, 2, 40), bits=np.arange(40) % 2, target=7),
    PersonalizedBits(np.linspace(0.5, 2, 40), target=7),
    PersonalizedBits([0.5, 1.0, 2.0], bits=[0, 1, 0]),
    PersonalizedBits([0.0, 1.0, 0.0], bits=[0, 1, 0], target=0),
    ShuffledBits(10, 1e-310),
    Clones(10, 600.0),
    StrongerClones(10**4, 1e-9),
    PersonalizedClones(0.1, np.linspace(0.05, 0.5, 100)),
    slow(PersonalizedClones.laplace(np.linspace(0.5, 2, 30), target=3)),
    slow(PersonalizedClones.randomized_response(np.linspace(0.5, 2, 30), 3, target=3)),
    DominatingPair.from_pmfs(np.log([0.1, 0.2, 0.3, 0.4]), np.log([0.3, 0.3, 0.2, 0.2])),
]


@pytest.mark.parametrize("profile", thinned(PROFILES, 2), ids=repr)
def test_sides_of_every_profile(profile):
    below, above = profile.tradeoff(), profile.tradeoff(bound="upper")
    low, high = below.beta(GRID), above.beta(GRID)
    assert (low <= high + 1e-15).all()
    assert (low <= 1 - GRID + 1e-15).all()
    assert (high <= 1 - GRID + 1e-11).all()
    # The lower curve is convex. Its delta is at least the profile's lower bound; that of the upper curve is at most the upper one.
    assert (low[:-2] + low[2:] - 2 * low[1:-1] >= -1e-14).all()
    reverse = profile.reverse() if isinstance(profile, DominatingPair) else profile
    for eps in (0.0, 0.01, 0.1, 0.5, 1.0):
        # A minimum of several bounds need not be convex in e^eps, but the delta of a curve is convex.
        convex = profile._pair_info().sampling.convex
        assert not convex or below.delta(eps) >= reverse.delta(eps, bound="lower") * (1 - 1e-10) - 1e-14
        assert above.delta(eps) <= reverse.delta(eps) * (1 + 1e-10) + 1e-12
    assert profile.gdp_mu(bound="lower") <= profile.gdp_mu()
    orders = np.array([1.0, 1.5, 2.0, 8.0, np.inf])
    lower, upper = profile.rdp(orders, bound="lower"), profile.rdp(orders)
    assert (lower <= upper).all()
    assert (upper[1:] >= lower[:-1] * (1 - 1e-9)).all()
    assert (upper <= profile._pure_epsilon() * (1 + 1e-12)).all()


@pytest.mark.slow
@settings(deadline=None, max_examples=15)
@given(st.integers(1, 40), st.floats(0.01, 0.49), st.floats(0.05, 3.0))
def test_fewer_flips_and_larger_budgets_lose_privacy(users, flip, local_eps):
    more = ShuffledBits(users, flip / 2).tradeoff(), StrongerClones(users, 1.5 * local_eps).tradeoff()
    less = ShuffledBits(users, flip).tradeoff(bound="upper"), StrongerClones(users, local_eps).tradeoff(bound="upper")
    for a, b in zip(more, less):
        assert (a.beta(GRID) <= b.beta(GRID) + 1e-15).all()
    assert ShuffledBits(users, flip / 2).gdp_mu() >= ShuffledBits(users, flip).gdp_mu(bound="lower")


@pytest.mark.parametrize(
    "pair",
    [BinomialNoise(2**53, 0.5).pairs()[0], BinomialNoise(10**15, 1e-9).pairs()[1], ShuffledBits(10**12, 0.1).pair(0),
     ShuffledBits(2**53, 0.25).pair(2**51)],
)  # fmt: skip
def test_more_atoms_than_can_be_listed(pair):
    below, above = pair.tradeoff(), pair.tradeoff(bound="upper")
    assert below.knots[0].size < 10**5
    low, high = below.beta(GRID), above.beta(GRID)
    assert (low <= high).all()
    # The gap is relative to the advantage delta(0), by which the curve differs from 1 - alpha.
    assert (high - low).max() < 2e-3 * pair.delta(0.0)
    for eps in np.array([0.5, 2.0, 4.0]) * pair.epsilon(1e-3):
        lower, upper = above.log_delta(eps), below.log_delta(eps)
        exact = pair.reverse().log_delta(eps)
        assert lower <= exact + 1e-9
        assert upper >= exact - 1e-9
        assert upper - lower < 1e-3 * (1 - exact)


@pytest.mark.parametrize(
    ("profile", "eps"),
    [(Clones(400, 1.0), 0.3), (BinomialNoise(5000, 0.5), 0.1), (ShuffledBits(200, 0.2, ones=5), 1.0), (ShuffledBits(60, 0.1), 2.0)],
)  # fmt: skip
def test_small_delta_of_a_curve(profile, eps):
    """Errors of masses are relative to both errors of a test and to their complements, however small delta is."""
    exact = math.log(float(profile.certify(eps).mid()))
    upper, lower = (profile.tradeoff(bound=bound).log_delta(eps) for bound in ("lower", "upper"))
    assert lower <= exact <= upper
    assert upper - lower < 2e-8


@pytest.mark.slow
def test_normal_limit_of_many_users():
    # The other users' sum is approximately normal: mu is (1 - 2 q)/sqrt(n q (1 - q)) to first order, and D_a is a mu^2/2.
    users, flip = 10**12, 0.1
    bits = ShuffledBits(users, flip, ones=users // 2)
    mu = (1 - 2 * flip) / math.sqrt(users * flip * (1 - flip))
    for order in (1.0, 2.0, 30.0):
        assert bits.rdp(order, bound="lower") == pytest.approx(order * mu * mu / 2, rel=1e-4)
        assert bits.rdp(order) == pytest.approx(order * mu * mu / 2, rel=1e-4)
    centre = bits.tradeoff().beta(0.5)
    assert 0.5 - centre == pytest.approx(mu / math.sqrt(2 * math.pi), rel=1e-3)


def test_different_supports():
    for profile in (BinomialNoise(10**6, 0.5), BinomialNoise(0, 0.1), ShuffledBits(9, 0.0), ShuffledBits(9, 0.0, ones=3)):
        assert profile.gdp_mu() == profile.gdp_mu(bound="lower") == math.inf
        assert profile.rdp([1.0, 2.0]).tolist() == profile.rdp([1.0, 2.0], bound="lower").tolist() == [math.inf] * 2


def test_missing_mass_counts_on_both_sides():
    # Missing mass counts as one additional outcome, or as one for each distribution.
    p, q = np.array([0.25, 0.75 - 5e-10]), np.array([0.75, 0.25 - 5e-10])
    pair = DominatingPair.from_pmfs(np.log(p), np.log(q))
    for rest in ([[5e-10], [5e-10]], [[5e-10, 0.0], [0.0, 5e-10]]):
        with np.errstate(divide="ignore"):
            exact = Tradeoff.from_pmfs(*(np.log(np.append(law, more)) for law, more in zip((p, q), rest)))
        assert (pair.tradeoff().beta(GRID) <= exact.beta(GRID) + 1e-15).all()
        assert (pair.tradeoff(bound="upper").beta(GRID) >= exact.beta(GRID) - 1e-15).all()
    assert pair.gdp_mu() == math.inf


def test_perfect_privacy():
    bits = ShuffledBits(50, 0.5)
    assert bits.gdp_mu() == bits.rdp(3.0) == bits.rdp(math.inf) == 0
    np.testing.assert_allclose(bits.tradeoff().beta(GRID), 1 - GRID, atol=1e-15)


def test_everyone_of_few_users():
    budgets, bits = [math.log(3), math.log(5), math.log(9)], [0, 1, 1]
    profile = PersonalizedBits(budgets, bits=bits)
    flips = [Fraction(1, 4), Fraction(1, 6), Fraction(1, 10)]
    boundaries = []
    for target in range(3):
        pair = []
        for own in (0, 1):
            law = [Fraction(1)]
            for i, flip in enumerate(flips):
                one = 1 - flip if (own if i == target else bits[i]) else flip
                law = convolved(law, [1 - one, one])
            pair.append(law)
        boundaries += [thresholds(*pair), thresholds(*pair[::-1])]
    convex = hull({point for boundary in boundaries for point in boundary})
    below, above = profile.tradeoff(), profile.tradeoff(bound="upper")
    for alpha in ALPHAS:
        assert below.beta(float(alpha)) <= at(convex, alpha) + 1e-14
        assert above.beta(float(alpha)) >= at(convex, alpha) - 1e-14


@pytest.mark.parametrize("profile", [
    ShuffledBits(6, 0.125), ShuffledBits(2000, 0.125), FiniteRandomizer([[0.9, 0.1, 0.0], [0.0, 0.5, 0.5], [0.2, 0.2, 0.6]]),
    GeometricMechanism(0.4, 3, 2), GeometricMechanism(0.1, bound=3).subsampled(0.2), KaryResponse(3, 0.5).shuffled(4),
    BinomialNoise(20, 0.2), RandomAllocation(LaplaceMechanism(2.0), 5), ShuffledBits(20, 0.25).self_compose(2),
], ids=repr)  # fmt: skip
def test_both_curves_of_every_class_are_convex_and_have_its_delta(profile):
    """`tradeoff` has one meaning for every class: the convex curve with the delta of the profile."""
    below, above = profile.tradeoff(), profile.tradeoff(bound="upper")
    for curve_ in (below, above):
        steps = np.linspace(0, 1, 129)
        values = curve_.beta(steps)
        assert (values[1:-1] <= (values[:-2] + values[2:]) / 2 + 1e-14).all()
    for eps in (0.0, 0.01, 0.3, 1.0):
        assert below.delta(eps) >= profile.delta(eps, bound="lower") * (1 - 1e-12) - 1e-15
        assert above.delta(eps) <= profile.delta(eps) * (1 + 1e-12) + 1e-15


@pytest.mark.slow
def test_curves_of_a_total_budget_whose_exponential_overflows():
    many = LaplaceMechanism(0.1).subsampled(1e-3).self_compose(300)
    alpha = np.array([1e-3, 0.05, 0.3, 0.8])
    low, high = (many.tradeoff(bound=bound).beta(alpha) for bound in ("lower", "upper"))
    assert (low <= high).all()
    assert (high <= low * (1 + 1e-3)).all()
    # the test at the likelihood ratio of eps is one of those that the curve bounds
    assert (high >= 1 - many.delta(0.5) - math.exp(0.5) * alpha - 1e-12).all()


@pytest.mark.parametrize("profile", PROFILES[:2] + PROFILES[-1:], ids=repr)
def test_bad_input_is_named(profile):
    for call, message in (
        (lambda: profile.tradeoff(bound="best"), "bound='best'"),
        (lambda: profile.gdp_mu(bound="best"), "bound='best'"),
        (lambda: profile.rdp(2.0, bound="best"), "bound='best'"),
        (lambda: profile.rdp(0.5), "order=0.5"),
        (lambda: profile.rdp([2.0, math.nan]), "order holds nan"),
        (lambda: profile.rdp([]), "order must not be empty"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    assert profile.rdp([[2.0, 3.0]]).shape == (1, 2)
    assert isinstance(profile.rdp(2), float)


@dataclass(frozen=True)
class Least(PrivacyProfile):
    """The smaller of two deltas, which is not convex in e^eps."""

    theorem: ClassVar[str] = "exact"
    neighbours: ClassVar[str] = "either"

    def describe(self):
        return DominatingPairInfo(self.bounds, 0.6, sampling=Sampling(convex=False))

    def bounds(self, eps):
        value = np.minimum(Tradeoff.randomized_response(0.6).log_delta(eps), Tradeoff.gaussian(0.2).log_delta(eps))
        return IntervalArray(value, value)


@pytest.mark.slow
def test_mu_of_a_curve_that_is_not_convex_follows_from_single_values():
    profile = Least()
    lower, upper = profile.gdp_mu(bound="lower"), profile.gdp_mu()
    # mu of every single value on a dense grid, by bisection.
    grid = np.linspace(0, 0.599, 400)
    known = profile.log_delta(grid)
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if (Tradeoff.gaussian(middle).log_delta(grid) >= known).all() else (middle, high)
    assert lower <= high * (1 + 1e-9)
    assert upper >= lower > 0.99 * high


def _exact_beta(p, q, alpha):
    """Return T(P, Q)(alpha) of two lists of fractions, by the lemma of Neyman and Pearson."""
    left, power = alpha, Fraction(0)
    for a, b in sorted(zip(p, q), key=lambda pair: pair[1] / pair[0], reverse=True):
        part = min(a, left)
        left, power = left - part, power + b * part / a
    return 1 - power


def test_a_bound_of_beta_is_never_on_the_wrong_side_of_the_exact_value():
    # The breakpoints were rounded conservatively, but the interpolation between them was not: 1 of 10 bounds was wrong by an ulp.
    r = random.Random(5)
    for _ in range(40):
        shift, left, right = r.choice([0, 1, 2, 5]), r.choice([r.random(), 1 - 10 ** r.uniform(-12, -1)]), r.uniform(0.01, 0.99)
        dummies = GeometricDummies(2, shift, left, right, keep := r.choice([0.5, 0.25, 1 - 2.0**-20, 2.0**-20]))
        one, two, b = Fraction(left), Fraction(right), Fraction(keep)
        absent = [one ** (shift - j) for j in range(shift + 1)] + [two / (1 - two)]
        absent = [mass / sum(absent) for mass in absent]
        present = [(1 - b) * mass for mass in absent]
        for j in range(shift):
            present[j + 1] += b * absent[j]
        # The last entry has the numbers above the shift together; one more report moves the number `shift` there.
        present[-1] += b * (absent[-2] + absent[-1])
        p, q = ([x * y for x in first for y in second] for first, second in ((present, absent), (absent, present)))
        curves = [dummies.tradeoff(bound=bound) for bound in ("lower", "upper")]
        for alpha in (r.random(), r.random() ** 8, 10 ** r.uniform(-18, 0), 1 - 10 ** r.uniform(-12, 0)):
            lower, upper = (Fraction(curve.beta(alpha)) for curve in curves)
            exact = _exact_beta(p, q, Fraction(alpha))
            assert lower <= exact <= upper
            assert upper - lower <= exact * Fraction(1, 10**12) + Fraction(1, 2**48)


def test_a_pickled_curve_has_the_same_values():
    for profile in (BinomialNoise(20, 0.3), RandomizedResponse(1.0), GeometricDummies(2, 5, 0.5, 0.5, 0.5)):
        for bound in ("lower", "upper"):
            curve = profile.tradeoff(bound=bound)
            alpha = np.linspace(0.01, 0.99, 40)
            assert pickle.loads(pickle.dumps(curve)).beta(alpha).tolist() == curve.beta(alpha).tolist()
