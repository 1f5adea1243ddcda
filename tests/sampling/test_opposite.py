"""A replaced record of sampled noise whose old and new contributions are opposite, and of sampled finite randomizers."""

import functools
import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

from shufflebounds.mechanisms import (
    DiscreteGaussianMechanism,
    FiniteRandomizer,
    GaussianMechanism,
    GeometricMechanism,
    KaryResponse,
    LaplaceMechanism,
    RandomizedResponse,
)
from shufflebounds.profile import Composition
from shufflebounds.profile.extend import IntegerNoise
from shufflebounds.sampling import ReplaceOne, Subsampled
from tests.oracles import hockey_stick
from tests.strategies import slow, thinned


@functools.cache
def exact(sigma, rate, eps):
    """Return log delta of one step: the best test is a threshold of the output."""
    with mp.workdps(40):
        rate, factor = mp.mpf(rate), mp.exp(mp.mpf(eps))

        def gain(c):
            none, more, less = (mp.erfc((c - mean) / (sigma * mp.sqrt(2))) / 2 for mean in (0, 1, -1))
            return (1 - rate) * (1 - factor) * none + rate * more - factor * rate * less

        best = max((mp.mpf(i) / 10 for i in range(-50, 200)), key=gain)
        best = max((best + mp.mpf(i) / 200 for i in range(-20, 21)), key=gain)
        return float(mp.log(max(gain(best + mp.mpf(i) / 4000) for i in range(-20, 21))))


@pytest.mark.parametrize(("sigma", "rate", "eps"), thinned(
    [(1.0, 0.01, 0.0), (1.0, 0.01, 0.5), (2.0, 0.3, 0.2), (0.8, 0.001, 2.0)], 2))
def test_one_step_is_the_threshold_test(sigma, rate, eps):
    value = ReplaceOne(GaussianMechanism(sigma).subsampled(rate)).log_delta(eps, bound="lower")
    assert exact(sigma, rate, eps) - 1e-3 <= value <= exact(sigma, rate, eps) + 1e-9


@pytest.mark.parametrize(("sigma", "rate", "times", "delta", "eps"), [
    slow(1.0, 0.01, 100, 1e-5, 0.8951), (2.0, 0.01, 1000, 1e-6, 1.3745),
])
def test_compositions_have_the_lower_bound_of_opposite_contributions(sigma, rate, times, delta, eps):
    # The values are those of an independent implementation, a convolution by FFT.
    replaced = ReplaceOne(GaussianMechanism(sigma).subsampled(rate).self_compose(times))
    lower = replaced.epsilon(delta, bound="lower")
    assert lower == pytest.approx(eps, rel=1e-4)
    assert replaced.log_delta(lower, bound="lower") == pytest.approx(math.log(delta), abs=1e-3)
    assert lower <= replaced.epsilon(delta)


def test_releases_of_a_replaced_record_use_the_pair_too():
    one = ReplaceOne(GaussianMechanism(1.0).subsampled(0.01))
    assert one.self_compose(100).epsilon(1e-5, bound="lower") == pytest.approx(0.8951, rel=1e-3)
    assert (one.rdp([2.0, 8.0], bound="lower") <= one.rdp([2.0, 8.0])).all()


@dataclass(frozen=True)
class TwoModes(IntegerNoise):
    """Noise with the modes -4 and 4."""

    def _log_pmf(self, k):
        return np.logaddexp(-((k - 4.0) ** 2) / 4, -((k + 4.0) ** 2) / 4) - math.log(4 * math.sqrt(math.pi))

    def _log_cdf(self, k):
        return np.zeros_like(k)

    def _log_sf(self, k):
        return np.zeros_like(k)


def test_other_profiles_have_no_such_pair():
    gaussian = GaussianMechanism(1.0).subsampled(0.1)
    for other in (TwoModes(), GeometricMechanism(1.0, bound=5), GeometricMechanism(1.0, sensitivity=2**20),
                  FiniteRandomizer(np.random.default_rng(0).dirichlet(np.ones(3), 5))):
        sampled = Subsampled(other, 0.1)
        for profile in (sampled, gaussian.compose(sampled)):
            with pytest.raises(TypeError, match="list of pairs"):
                ReplaceOne(profile).pairs()


def test_the_contributions_of_all_records_are_twice_the_sensitivity_apart():
    noise, eps = GaussianMechanism(1.0), np.array([0.0, 1.0])
    found = ReplaceOne(noise.subsampled(1.0)).log_delta(eps, bound="lower")
    assert found == pytest.approx(GaussianMechanism(0.5).log_delta(eps), abs=1e-5)


@pytest.mark.parametrize(("sigma", "rate", "eps"), [
    (1.0, 0.01, 0.0), (1.0, 0.01, 0.5), (2.0, 0.3, 0.2), (0.8, 0.001, 2.0), (0.1, 0.01, 5.0), (0.3, 1.0, 3.0), (50.0, 0.01, 1e-4),
])
def test_split_cells_bound_the_threshold_test_from_above(sigma, rate, eps):
    found = ReplaceOne(GaussianMechanism(sigma).subsampled(rate)).log_delta(eps)
    assert exact(sigma, rate, eps) <= found <= exact(sigma, rate, eps) + 2e-3


@pytest.mark.parametrize("seed", thinned(range(4), 2))
def test_no_contributions_are_worse_than_opposite_ones(seed):
    rng = np.random.default_rng(seed)
    sigma, rate, eps = math.exp(rng.uniform(-1, 1)), 10.0 ** rng.uniform(-2, -0.1), rng.uniform(0, 1)
    largest = ReplaceOne(GaussianMechanism(sigma).subsampled(rate)).delta(eps)
    x, y = np.meshgrid(*2 * [np.arange(-8 * sigma, 8 * sigma, sigma / 16)])

    def normal(mean):
        return np.exp(-0.5 * ((x - mean[0]) ** 2 + (y - mean[1]) ** 2) / sigma**2) / 16**2 / (2 * math.pi)

    # Vectors of length at most 1 in the plane, some of them with one sign.
    for _ in range(40):
        angles, sizes = rng.choice([0, math.pi, rng.uniform(0, 7)], 2), rng.choice([1.0, rng.uniform(0, 1)], 2)
        old, new = (size * np.array([math.cos(angle), math.sin(angle)]) for size, angle in zip(sizes, angles))
        parts = (1 - rate) * (1 - math.exp(eps)) * normal((0, 0)) + rate * normal(old) - math.exp(eps) * rate * normal(new)
        # The sum is an integral by the midpoint rule, with an error of about 1e-3 of the part where the integrand is cut at 0.
        assert np.maximum(parts, 0).sum() <= largest * 1.01 + 1e-9


@pytest.mark.parametrize(("sigma", "rate", "times", "delta"), [
    (1.0, 0.01, 1000, 1e-5), slow(2.0, 0.01, 1000, 1e-6), slow(1.0, 0.1, 100, 1e-5),
])
def test_both_bounds_of_a_replaced_record_meet(sigma, rate, times, delta):
    replaced = ReplaceOne(GaussianMechanism(sigma).subsampled(rate).self_compose(times))
    lower, upper = replaced.epsilon(delta, bound="lower"), replaced.epsilon(delta)
    assert lower <= upper <= lower * 1.001
    assert replaced.log_delta(upper) <= math.log(delta) + 1e-6


@pytest.mark.slow
def test_releases_of_a_replaced_record_are_those_of_opposite_contributions():
    training = GaussianMechanism(1.0).subsampled(0.01)
    apart, together = ReplaceOne(training).self_compose(30), ReplaceOne(training.self_compose(30))
    for delta in (1e-4, 1e-8):
        lower, upper = (apart.epsilon(delta, bound=bound) for bound in ("lower", "upper"))
        assert lower <= upper <= lower * 1.001
        assert lower <= together.epsilon(delta)
        assert together.epsilon(delta, bound="lower") <= upper


@pytest.mark.parametrize("rate", [0.01, slow(0.3)])
def test_both_orders_of_a_replaced_record_enclose_the_exact_value(rate):
    # Compositions and curves of the profile start from what it states about both orders.
    known, eps = ReplaceOne(GaussianMechanism(1.0).subsampled(rate))._pair_info(), np.array([0.1, 0.5, 1.0])
    values = np.array([exact(1.0, rate, e) for e in eps.tolist()])
    for lower, upper in (known.hockey_stick(eps), known.back.hockey_stick(eps)):
        # `exact` takes the best of thresholds that are 1/4000 apart, which is at most 1e-7 too small.
        assert (lower <= values + 1e-7).all()
        assert (values <= upper).all()


@pytest.mark.parametrize(("sigma", "rate"), [(1.0, 0.01), (4.0, 0.9), (0.5, 0.3)])
def test_a_replaced_record_has_no_pure_budget(sigma, rate):
    replaced = ReplaceOne(GaussianMechanism(sigma).subsampled(rate))
    assert replaced.epsilon(0.0) == replaced.self_compose(2).epsilon(0.0) == math.inf
    for eps in (30.0, 300.0, 3000.0):
        assert -math.inf < replaced.log_delta(eps)
        assert replaced.log_delta(eps, bound="lower") <= replaced.log_delta(eps)
    assert replaced.loss_tail(300.0) > 0


def laplace(scale, rate, eps, steps=4000):
    """Return delta of opposite contributions of Laplace noise: the best test is a threshold of the output."""
    def tail(c, mean):
        z = (c - mean) / mp.mpf(scale)
        return mp.exp(-z) / 2 if z > 0 else 1 - mp.exp(z) / 2

    def gain(c):
        factor = mp.exp(mp.mpf(eps))
        return (1 - rate) * (1 - factor) * tail(c, 0) + rate * tail(c, 1) - factor * rate * tail(c, -1)

    with mp.workdps(30):
        rate = mp.mpf(rate)
        best = max((mp.mpf(i) / 20 for i in range(-60, 61)), key=gain)
        return max(gain(best + mp.mpf(i) / steps) for i in range(-200, 201))


@pytest.mark.parametrize(("scale", "rate", "eps"), [
    (1.0, 0.1, 0.1), (2.0, 0.01, 0.01), (1.0, 0.5, 0.5), (0.2, 0.3, 2.0), (30.0, 1.0, 0.01), (1.0, 1e-12, 1e-13),
])
def test_laplace_noise_is_the_threshold_test(scale, rate, eps):
    # The lower bound was that of a removal, .01312 for .02945 in the first case, and 0 in the second.
    replaced = ReplaceOne(LaplaceMechanism(scale).subsampled(rate))
    exact = laplace(scale, rate, eps)
    low, high = replaced.delta(eps, bound="lower"), replaced.delta(eps)
    assert low <= exact * (1 + 1e-6)
    assert exact <= high <= low * (1 + 1e-3)


def whole_numbers(kind, delta, reach):
    """Return noise on whole numbers of a kind, and the probabilities of noise plus a for -delta <= a <= delta."""
    k = range(-reach - delta, reach + delta + 1)
    if kind == "geometric":
        mechanism = GeometricMechanism(0.8, sensitivity=delta)
        ratio = mp.exp(-mp.mpf(0.8) / delta)
        law = [(1 - ratio) / (1 + ratio) * ratio ** abs(x) for x in k]
    else:
        mechanism = DiscreteGaussianMechanism(1.5, sensitivity=delta)
        law = [mp.exp(-mp.mpf(x * x) / (2 * mp.mpf(1.5) ** 2)) for x in k]
        law = [x / mp.fsum(law) for x in law]
    return mechanism, {a: [mp.mpf(0)] * (delta + a) + law + [mp.mpf(0)] * (delta - a) for a in range(-delta, delta + 1)}


@pytest.mark.parametrize(("kind", "reach"), [("geometric", 220), ("discrete normal", 18)])
@pytest.mark.parametrize(("delta", "rate", "eps"), thinned([(1, 0.1, 0.05), (3, 0.1, 0.15), (2, 1.0, 0.7), (3, 0.01, 0.0)], 2))
def test_whole_number_noise_by_enumeration(kind, reach, delta, rate, eps):
    with mp.workdps(40):
        mechanism, laws = whole_numbers(kind, delta, reach)
        factor, q = mp.exp(mp.mpf(eps)), mp.mpf(rate)
        mixed = {a: [(1 - q) * x + q * y for x, y in zip(laws[0], law)] for a, law in laws.items()}
        exact = hockey_stick(mixed[delta], mixed[-delta], factor)
        # No other contributions are worse.
        for a, b in itertools.permutations(laws, 2):
            assert hockey_stick(mixed[a], mixed[b], factor) <= exact * (1 + mp.mpf("1e-30"))
        replaced = ReplaceOne(Subsampled(mechanism, rate))
        low, high = replaced.delta(eps, bound="lower"), replaced.delta(eps)
        assert low <= exact * (1 + mp.mpf("1e-20"))
        assert exact * (1 - mp.mpf("1e-20")) <= high <= low * (1 + 1e-10)


@pytest.mark.parametrize("mechanism", [GeometricMechanism(0.8, 3), LaplaceMechanism(1.5), slow(DiscreteGaussianMechanism(1.5, 3))])
def test_two_releases_of_noise(mechanism):
    twice = ReplaceOne(Subsampled(mechanism, 0.1).self_compose(2))
    assert twice.epsilon(1e-3, bound="lower") <= twice.epsilon(1e-3) <= twice.epsilon(1e-3, bound="lower") * (1 + 1e-3)


def triples(rows, rate):
    """Return the pairs of distributions of a replaced record: the record is absent from the sample with value z."""
    q, found = mp.mpf(rate), []
    for z, (x, y) in itertools.product(range(len(rows)), itertools.permutations(range(len(rows)), 2)):
        found.append(tuple([(1 - q) * a + q * b for a, b in zip(rows[z], rows[i])] for i in (x, y)))
    return found


def kary(bins, budget):
    same = mp.exp(mp.mpf(budget))
    return [[(same if x == y else 1) / (same + bins - 1) for y in range(bins)] for x in range(bins)]


def given(*rows):
    return lambda: [[mp.mpf(x) for x in row] for row in rows]


ZEROS, ALIKE = ([0.5, 0.5, 0.0], [0.25, 0.5, 0.25], [0.0, 0.25, 0.75]), ([0.5, 0.5], [0.5 + 2.0**-40, 0.5 - 2.0**-40])
ONE_ZERO = [0.5, 0.5], [0.0, 1.0]

# A mechanism, a function that returns its rows with the precision in use, and a rate.
FINITE = {
    "two outputs": (RandomizedResponse(0.59), lambda: kary(2, 0.59), 4.4e-5),
    "far below an ulp": (RandomizedResponse(1e-9), lambda: kary(2, 1e-9), 1e-30),
    "two bins": (KaryResponse(2, 1.5), lambda: kary(2, 1.5), 0.3),
    "three bins": (KaryResponse(3, 1.5), lambda: kary(3, 1.5), 0.3),
    "six bins": (KaryResponse(6, 0.7), lambda: kary(6, 0.7), 0.01),
    "not sampled": (KaryResponse(4, 0.7), lambda: kary(4, 0.7), 1.0),
    "zeros": (FiniteRandomizer(ZEROS), given(*ZEROS), 0.125),
    "one zero": (FiniteRandomizer(ONE_ZERO), given(*ONE_ZERO), 0.5),
    "alike": (FiniteRandomizer(ALIKE), given(*ALIKE), 2.0**-30),
}


@pytest.mark.parametrize("name", FINITE)
def test_finite_randomizers_by_enumeration(name):
    with mp.workdps(120):
        mechanism, rows, rate = FINITE[name]
        replaced, listed = ReplaceOne(Subsampled(mechanism, rate)), triples(rows(), rate)
        pure = max((mp.log(a / b) if b else mp.inf for p, q in listed for a, b in zip(p, q) if a), default=0)
        assert pure <= replaced.epsilon(0.0)
        assert replaced.epsilon(0.0) <= pure * (1 + 1e-12)
        top = 2.0 if pure == mp.inf else float(pure)
        for eps in (0.0, 0.1 * top, 0.5 * top, 0.9 * top):
            exact = max(hockey_stick(p, q, mp.exp(mp.mpf(eps))) for p, q in listed)
            assert replaced.delta(eps, bound="lower") <= exact <= replaced.delta(eps)
            assert replaced.delta(eps) <= exact * (1 + 1e-10)
        for order in (1.5, 8.0):
            exact = max(mp.log(mp.fsum(a**order * b ** (1 - mp.mpf(order)) for a, b in zip(p, q) if a)) / (order - 1)
                        if all(b or not a for a, b in zip(p, q)) else mp.inf for p, q in listed)
            assert replaced.rdp(order, bound="lower") <= exact * (1 + 1e-12)
            assert exact <= replaced.rdp(order) <= exact * (1 + 1e-9)
    # At rates far below an ulp the two curves agree up to rounding.
    assert replaced.tradeoff().beta(0.05) == pytest.approx(replaced.tradeoff(bound="upper").beta(0.05), rel=1e-9)


def test_every_pair_of_a_randomizer_with_zeros():
    # Where the message of a value has probability 0, the ratio to the message of the fixed value is infinite, the loss finite.
    with mp.workdps(60):
        mechanism, rows, rate = FINITE["zeros"]
        matrix = rows()
        pairs = ReplaceOne(Subsampled(mechanism, rate)).pairs()
        assert len(pairs) > 1
        for pair in pairs:
            fixed, old, new = pair.triple
            p, q = ([(1 - rate) * a + rate * b for a, b in zip(matrix[fixed], matrix[x])] for x in (old, new))
            for eps in (0.0, 0.05, 0.1):
                exact = hockey_stick(p, q, mp.exp(mp.mpf(eps)))
                assert pair.delta(eps, bound="lower") <= exact <= pair.delta(eps) <= exact * (1 + 1e-10)


@pytest.mark.parametrize("name", ["three bins", "zeros", "one zero"])
def test_two_releases_of_finite_randomizers_choose_among_all_pairs(name):
    with mp.workdps(30):
        mechanism, rows, rate = FINITE[name]
        listed, factor = triples(rows(), rate), mp.exp(mp.mpf(0.5))
        # In each release, another old and new value may be reported.
        exact = max(hockey_stick([a * b for a in p for b in r], [a * b for a in q for b in s], factor)
                    for (p, q), (r, s) in itertools.product(listed, repeat=2))
        one = Subsampled(mechanism, rate)
        for both in (ReplaceOne(one.self_compose(2)), ReplaceOne(one).self_compose(2)):
            assert both.delta(0.5, bound="lower") <= exact <= both.delta(0.5) <= exact * 1.02


@pytest.mark.slow
def test_different_noises_compose():
    noises = LaplaceMechanism(3.0).subsampled(0.2), GeometricMechanism(0.5).subsampled(0.1)
    training = GaussianMechanism(2.0).subsampled(0.1).compose(*noises)
    replaced = ReplaceOne(training)
    lower, upper = replaced.epsilon(1e-4, bound="lower"), replaced.epsilon(1e-4)
    assert training.epsilon(1e-4) < lower <= upper <= lower * 1.001


@pytest.mark.parametrize("sigma", [0.001, slow(0.03), slow(0.06), 0.1])
def test_a_record_that_is_always_sampled_and_hardly_hidden(sigma):
    # Every record is in the sample, so the replacement is that of one normal number by one 2 away.
    replaced = ReplaceOne(GaussianMechanism(sigma).subsampled(1.0))
    for eps in (0.0, 1.0, 1.5 / sigma**2, 3.0 / sigma**2):
        with mp.workdps(40):
            mu, e = 2 / mp.mpf(sigma), mp.mpf(eps)
            delta = mp.ncdf(mu / 2 - e / mu) - mp.exp(e) * mp.ncdf(-mu / 2 - e / mu)
            exact = float(mp.log(delta))
        lower, upper = (replaced.log_delta(eps, bound=bound) for bound in ("lower", "upper"))
        assert lower <= exact + 1e-15
        assert exact <= upper <= 0
    assert 0 <= replaced.epsilon(1e-3, bound="lower") <= replaced.epsilon(1e-3)


@pytest.mark.parametrize(("noise", "doubled"), [
    (GaussianMechanism(1.0), GaussianMechanism(0.5)), (LaplaceMechanism(2.0), LaplaceMechanism(1.0)),
    (DiscreteGaussianMechanism(1.0), DiscreteGaussianMechanism(1.0, 2)), (GeometricMechanism(1.0), GeometricMechanism(2.0, 2)),
    slow(GaussianMechanism(3.0).compose(LaplaceMechanism(2.0)), GaussianMechanism(1.5).compose(LaplaceMechanism(1.0))),
    (GaussianMechanism(1.0).self_compose(5), GaussianMechanism(0.5).self_compose(5)),
], ids=repr)
@pytest.mark.parametrize("rate", [None, 1.0])
def test_a_replacement_without_sampling_moves_the_sum_by_twice_the_sensitivity(noise, doubled, rate):
    if rate is not None and isinstance(noise, Composition):
        sampled = [(part.subsampled(rate), times) for part, times in noise.factors]
        replaced = ReplaceOne(Composition(tuple(sampled)))
    else:
        replaced = ReplaceOne(noise if rate is None else noise.subsampled(rate))
    for bound in ("lower", "upper"):
        for eps in (0.0, 0.7, 1.9):
            assert replaced.log_delta(eps, bound=bound) == pytest.approx(doubled.log_delta(eps, bound=bound), rel=1e-9)
        assert replaced.epsilon(1e-5, bound=bound) == pytest.approx(doubled.epsilon(1e-5, bound=bound), rel=1e-7)
        assert replaced.rdp(2.0, bound=bound) == pytest.approx(doubled.rdp(2.0, bound=bound), rel=1e-9)
        assert replaced.gdp_mu(bound=bound) == pytest.approx(doubled.gdp_mu(bound=bound), rel=1e-6)


def test_the_lower_bound_of_replaced_values_without_a_pure_budget_is_attained():
    # The lower bound took the largest delta of all pairs of values at each eps for that of one pair, and exceeded the exact delta.
    rows = [[Fraction(x, 16) for x in row] for row in ([2, 3, 0, 11], [6, 2, 2, 6])]
    rate = Fraction(1, 16)
    pairs = []
    for fixed, old, new in itertools.product((0, 1), repeat=3):
        one, other = ([(1 - rate) * a + rate * b for a, b in zip(rows[fixed], rows[x])] for x in (old, new))
        pairs += [list(zip(one, other))] if old != new else []

    def best(releases, p, q):
        """Return the largest divergence, if the pair of each release is chosen after the outcomes of those before it."""
        if not releases:
            return max(p - q, Fraction(0))
        return max(sum(best(releases - 1, p * a, q * b) for a, b in pair) for pair in pairs)

    one = ReplaceOne(FiniteRandomizer([[float(x) for x in row] for row in rows]).subsampled(float(rate)))
    for releases in (1, 2, 3):
        many = one.self_compose(releases)
        for eps in (0.0, 0.02, 0.1):
            exact = float(best(releases, Fraction(1), Fraction(math.exp(eps))))
            assert many.delta(eps, bound="lower") <= exact * (1 + 1e-12)
            assert exact * (1 - 1e-12) <= many.delta(eps)
            assert many.delta(eps) <= many.delta(eps, bound="lower") * 1.001
