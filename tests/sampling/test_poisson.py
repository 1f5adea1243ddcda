"""Poisson sampling against quadrature, enumeration and dp-accounting; batches without replacement against enumeration."""

import itertools
import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shufflebounds import DominatingPair
from shufflebounds.mechanisms import (
    DiscreteGaussianMechanism,
    FiniteRandomizer,
    GaussianMechanism,
    GeometricMechanism,
    KaryResponse,
    LaplaceMechanism,
    RandomizedResponse,
)
from shufflebounds.sampling import RandomAllocation, ReplaceOne, SampledPair, Subsampled, WithoutReplacement
from shufflebounds.sampling.without_replacement import both_orders, three_laws
from shufflebounds.shuffle import BinomialNoise, ShuffledBits
from tests.strategies import slow, thinned


def between(profile, eps, exact, rtol=1e-9):
    """Assert that the bounds contain the exact value, with a relative gap of at most rtol."""
    low, high = profile.delta(eps, bound="lower"), profile.delta(eps)
    assert low <= exact <= high
    assert high - low <= rtol * exact


def mixture_hockey_stick(p, q_law, rate, eps, removed, points):
    """Return the divergence of (mixture, Q) or (Q, mixture) of two densities, by quadrature between the kinks."""
    weight = mp.e**eps

    def gap(y):
        mixed = (1 - rate) * q_law(y) + rate * p(y)
        first, second = (mixed, q_law(y)) if removed else (q_law(y), mixed)
        return first - weight * second

    roots = [-mp.inf, *points, mp.inf]
    total = mp.mpf(0)
    for left, right in itertools.pairwise(roots):
        total += mp.quad(lambda y: max(gap(y), 0), [left, right])
    return total


@pytest.mark.parametrize("removed", [True, False])
@pytest.mark.parametrize(("sigma", "rate", "eps"), thinned(
    [(1.0, 0.25, 0.0), (1.0, 0.01, 0.004), (0.5, 0.5, 0.3), slow(3.0, 0.125, 0.05)], 2))
def test_gaussian_against_quadrature(sigma, rate, eps, removed):
    with mp.workdps(30):
        q, s, e = mp.mpf(rate), mp.mpf(sigma), mp.mpf(eps)
        # The likelihood ratio crosses e^eps at one point.
        level = (mp.e**e - (1 - q)) / q if removed else (mp.e**-e - (1 - q)) / q
        kink = s * s * mp.log(level) + mp.mpf(1) / 2 if level > 0 else mp.mpf(0)
        exact = mixture_hockey_stick(lambda y: mp.npdf(y, 1, s), lambda y: mp.npdf(y, 0, s), q, e, removed, [kink])
    between(SampledPair(GaussianMechanism(sigma), rate, removed), eps, float(exact))


@pytest.mark.parametrize("removed", [True, False])
@pytest.mark.parametrize(("scale", "rate", "eps"), thinned([(1.0, 0.25, 0.0), (0.5, 0.5, 0.25), (2.0, 0.0625, 0.01)], 2))
def test_laplace_against_quadrature(scale, rate, eps, removed):
    with mp.workdps(30):
        q, b, e = mp.mpf(rate), mp.mpf(scale), mp.mpf(eps)
        level = (mp.e**e - (1 - q)) / q if removed else (mp.e**-e - (1 - q)) / q
        kink = min(max((b * mp.log(level) + 1) / 2, 0), 1) if level > 0 else mp.mpf(0)
        exact = mixture_hockey_stick(
            lambda y: mp.e ** (-abs(y - 1) / b) / (2 * b),
            lambda y: mp.e ** (-abs(y) / b) / (2 * b),
            q, e, removed, sorted({mp.mpf(0), kink, mp.mpf(1)}),
        )
    between(SampledPair(LaplaceMechanism(scale), rate, removed), eps, float(exact))


def enumerated(first, second, times, weight):
    """Return the exact divergence of two product distributions of Fractions."""
    total = Fraction(0)
    for outcome in itertools.product(range(len(first)), repeat=times):
        p = math.prod(first[i] for i in outcome)
        q = math.prod(second[i] for i in outcome)
        total += max(p - weight * q, 0)
    return total


def laws(mechanism):
    """Return the distributions P and Q of a mechanism with enumerated outcomes, as Fractions."""
    listed = mechanism._pair_info().atoms
    p = [Fraction(math.exp(x)) for x in listed.log_p]
    q = [Fraction(math.exp(x - loss)) for x, loss in zip(listed.log_p, listed.loss)]
    return [x / sum(p) for x in p], [x / sum(q) for x in q]


@pytest.mark.parametrize("removed", [True, False])
@pytest.mark.parametrize("mechanism", [RandomizedResponse(1.5), GeometricMechanism(1.0, sensitivity=2)], ids=repr)
@pytest.mark.parametrize(("rate", "times"), thinned([(0.25, 1), (0.25, 4), (0.03125, 3), (0.9375, 2), (1.0, 3)], 2))
def test_discrete_composition_against_enumeration(mechanism, rate, times, removed):
    p, q = laws(mechanism)
    mixed = [(1 - Fraction(rate)) * b + Fraction(rate) * a for a, b in zip(p, q)]
    first, second = (mixed, q) if removed else (q, mixed)
    profile = SampledPair(mechanism, rate, removed).self_compose(times)
    for eps in (0.0, 0.0625, 0.25, 1.0):
        exact = float(enumerated(first, second, times, Fraction(math.exp(eps))))
        low, high = profile.delta(eps, bound="lower"), profile.delta(eps)
        assert low * (1 - 1e-12) <= exact <= high * (1 + 1e-12) + 1e-300
        # The losses of three or more atoms are not on one grid, so the bounds have a gap.
        assert high - low <= 1e-3 * exact + 1e-15


@pytest.mark.slow
def test_gaussian_twice_against_quadrature():
    pair, other = GaussianMechanism(1.0).subsampled(0.25).pairs()
    with mp.workdps(20):
        q, e = mp.mpf("0.25"), mp.mpf("0.5")

        def mixed(y):
            return (1 - q) * mp.npdf(y) + q * mp.npdf(y, 1, 1)

        def at(y):
            # Given the first output, delta is that of the second release at eps minus the loss of the first.
            left = e - mp.log(mixed(y) / mp.npdf(y))
            kink = mp.log((mp.e**left - (1 - q)) / q) + 0.5 if mp.e**left > 1 - q else -mp.inf
            return mixed(y) * ((1 - q) * mp.ncdf(-kink) + q * mp.ncdf(1 - kink) - mp.e**left * mp.ncdf(-kink))

        edge = mp.log((mp.e**e / (1 - q) - (1 - q)) / q) + 0.5
        exact = float(mp.quad(at, [-12, -4, 0, 2, edge, 6, 14]))
    between(pair.self_compose(2), 0.5, exact, 1e-4)
    assert other.self_compose(2).delta(0.5) < exact


@pytest.mark.parametrize(
    ("sigma", "rate", "times", "delta", "interval"),
    [
        pytest.param(1.0, 0.01, 1000, 1e-5, (1.828216, 1.828242), marks=pytest.mark.slow),
        pytest.param(1.0, 0.01, 10_000, 1e-5, (6.187600, 6.187750), marks=pytest.mark.slow),
        pytest.param(0.8, 0.004, 5000, 1e-6, (2.907134, 2.907297), marks=pytest.mark.slow),
    ],
)
def test_training_runs(sigma, rate, times, delta, interval):
    training = GaussianMechanism(sigma).subsampled(rate).self_compose(times)
    low, high = training.epsilon(delta, bound="lower"), training.epsilon(delta)
    assert interval[0] <= low <= high <= interval[1]
    assert high - low < 1e-4


@pytest.mark.slow
def test_dp_accounting_agrees():
    pytest.importorskip("dp_accounting")
    from dp_accounting.pld import privacy_loss_distribution as pld

    training = GaussianMechanism(1.0).subsampled(0.03125).self_compose(64)
    sides = {}
    for pessimistic in (True, False):
        theirs = pld.from_gaussian_mechanism(
            1.0, sampling_prob=0.03125, pessimistic_estimate=pessimistic, value_discretization_interval=1e-3
        ).self_compose(64)
        sides[pessimistic] = theirs.get_epsilon_for_delta(1e-5)
    assert sides[False] <= training.epsilon(1e-5)
    assert training.epsilon(1e-5, bound="lower") <= sides[True]


@given(
    st.floats(1e-3, 1.0),
    st.floats(0.0, 3.0),
    st.sampled_from([GaussianMechanism(1.0), LaplaceMechanism(0.5), RandomizedResponse(2.0)]),
)
@settings(max_examples=25, deadline=None)
def test_sampling_only_helps(rate, eps, mechanism):
    """Delta of both directions is at most rate times the mechanism's delta, and that of an addition at most that of a removal."""
    remove, add = mechanism.subsampled(rate).pairs()
    assert remove.delta(eps) <= mechanism.delta(eps) * (1 + 1e-12) + 1e-300
    assert add.delta(eps) <= remove.delta(eps) * (1 + 1e-9) + 1e-300
    assert remove.delta(eps) <= rate * mechanism.delta(eps) * (1 + 1e-12) + 1e-300
    assert add.reverse() == remove
    assert remove.reverse() == add


def test_enumerated_distribution_agrees_with_the_formula():
    mechanism = DiscreteGaussianMechanism(1.0)
    for pair in mechanism.subsampled(0.125).pairs():
        listed = pair._pair_info().atoms
        for eps in (0.0, 0.05, 0.11):
            gain = np.exp(listed.log_p) * np.maximum(-np.expm1(eps - listed.loss), 0)
            assert float(gain.sum()) == pytest.approx(pair.delta(eps), rel=1e-11, abs=1e-14)


def test_rate_one_is_the_mechanism():
    for mechanism in (GaussianMechanism(1.0), LaplaceMechanism(1.0), RandomizedResponse(1.0)):
        for pair in mechanism.subsampled(1.0).pairs():
            np.testing.assert_allclose(pair.delta([0.0, 0.5, 2.0]), mechanism.delta([0.0, 0.5, 2.0]), rtol=1e-12)


def test_pure_budgets():
    remove, add = RandomizedResponse(1.0).subsampled(0.25).pairs()
    assert remove.epsilon(0.0) == pytest.approx(math.log1p(0.25 * math.expm1(1.0)), rel=1e-14)
    assert add.epsilon(0.0) == pytest.approx(-math.log1p(-0.25 * -math.expm1(-1.0)), rel=1e-14)
    remove, add = GaussianMechanism(1.0).subsampled(0.25).pairs()
    assert remove.epsilon(0.0) == math.inf
    assert add.epsilon(0.0) == pytest.approx(-math.log1p(-0.25), rel=1e-14)


def test_pairs_that_are_not_symmetric():
    p, q = np.array([0.5, 0.25, 0.25]), np.array([0.125, 0.125, 0.75])
    base = DominatingPair.from_pmfs(np.log(p), np.log(q))
    mixed = 0.75 * q + 0.25 * p
    remove, add = Subsampled(base, 0.25).pairs()
    for eps in (0.0, 0.1, 0.3):
        assert remove.delta(eps) == pytest.approx(np.maximum(mixed - math.exp(eps) * q, 0).sum(), abs=1e-14)
        assert add.delta(eps) == pytest.approx(np.maximum(q - math.exp(eps) * mixed, 0).sum(), abs=1e-14)


# The following tests are for sampling without replacement.


@pytest.mark.parametrize(("records", "batch"), [(4, 1), (4, 3), (5, 5)])
def test_batches_by_brute_force(records, batch):
    """Randomized response on the parity of the batch has a delta below the bound.

    The mechanism that reveals the batch attains the bound.
    """
    local = RandomizedResponse(1.0)
    keep = Fraction(math.exp(1.0)) / (1 + Fraction(math.exp(1.0)))
    bound = WithoutReplacement(local, records, batch)

    def law(data, of):
        out = [Fraction(0), Fraction(0)]
        drawn = list(itertools.combinations(range(records), batch))
        for subset in drawn:
            bit = of([data[i] for i in subset])
            out[bit] += keep / len(drawn)
            out[1 - bit] += (1 - keep) / len(drawn)
        return out

    for eps in (0.0, 0.2, 0.5):
        weight = Fraction(math.exp(eps))
        worst = Fraction(0)
        for of in (max, min, lambda seen: sum(seen) % 2):
            for data in itertools.product((0, 1), repeat=records):
                p, q = law(data, of), law((1 - data[0], *data[1:]), of)
                worst = max(worst, sum(max(a - weight * b, 0) for a, b in zip(p, q)))
        assert float(worst) <= bound.delta(eps) * (1 + 1e-12)
    # The maximum of the batch is 1 if and only if the batch contains the one record that is not 0.
    p, q = law((1, *[0] * (records - 1)), max), law((0,) * records, max)
    exact = float(sum(max(a - Fraction(math.exp(0.2)) * b, 0) for a, b in zip(p, q)))
    between(bound, 0.2, exact)


@pytest.mark.parametrize(("records", "batch"), [(4, 1), (4, 4)])
def test_batches_of_one_ordered_pair_cover_both_orders(records, batch):
    """The mechanism with the distribution P for batches with the record, and Q for others, and the one with P and Q exchanged."""
    p, q, rate = np.array([0.5, 0.5, 0.0]), np.array([0.25, 0.25, 0.5]), batch / records
    with np.errstate(divide="ignore"):
        pair = DominatingPair.from_pmfs(np.log(p), np.log(q))
    for one in (pair, pair.reverse()):
        bound = WithoutReplacement(one, records, batch)
        for eps in (0.0, 0.1, 0.5):
            exact = max(np.maximum((1 - rate) * b + rate * a - math.exp(eps) * b, 0).sum() for a, b in ((p, q), (q, p)))
            between(bound, eps, exact)
        for side in ("lower", "upper"):
            # The lower bound of mu was about 34 for batches of one record.
            assert bound.epsilon(0.0, bound=side) == bound.gdp_mu(bound=side) == bound.rdp(2.0, bound=side) == math.inf
        twice = bound.self_compose(2)
        assert twice.delta(0.5, bound="lower") <= twice.delta(0.5)
        assert twice.delta(0.5) >= bound.delta(0.5)


@pytest.mark.slow
def test_composed_batches_have_valid_bounds():
    step = WithoutReplacement(GaussianMechanism(2.0, 2.0), 1000, 20)
    many = step.self_compose(50)
    assert many.epsilon(1e-6, bound="lower") <= many.epsilon(1e-6)
    assert many.epsilon(1e-6, bound="lower") > step.epsilon(1e-6)


# The following tests are for the relations of neighbouring datasets.


@pytest.mark.parametrize("mechanism", [GaussianMechanism(2.0, 2.0), GaussianMechanism(0.7), LaplaceMechanism(1.0)], ids=repr)
def test_both_orders_at_once(mechanism):
    """The six divergences between three distributions are at most delta; the pair is close to the bound in both orders."""
    laws = three_laws(mechanism)
    eps = np.array([0.0, 0.01, 0.1, 0.3, 0.7, 1.0, 2.0])
    bound = mechanism.delta(eps)
    for p, q in itertools.permutations(laws, 2):
        assert p.sum() == pytest.approx(1.0, abs=1e-12)
        assert all(np.maximum(p - math.exp(e) * q, 0).sum() <= b * (1 + 1e-9) for e, b in zip(eps, bound))
    sampled = WithoutReplacement(mechanism, 1000, 10)
    pair = both_orders(mechanism, 0.01)
    for one in (pair, pair.reverse()):
        assert (one.delta(eps / 20) <= sampled.delta(eps / 20) * (1 + 1e-9)).all()
        assert one.delta(0.02) >= 0.9 * sampled.delta(0.02)


def test_composed_batches_have_a_small_gap():
    many = WithoutReplacement(GaussianMechanism(2.0, 2.0), 10**5, 1000).self_compose(1000)
    low, high = many.epsilon(1e-6, bound="lower"), many.epsilon(1e-6)
    assert low <= high <= 1.01 * low


def test_adjacency_relations_cannot_be_mixed():
    sampled, shuffled = GaussianMechanism(1.0).subsampled(0.5), ShuffledBits(100, 0.25)
    assert (sampled.relation, shuffled.relation, GaussianMechanism(1.0).relation) == ("add-remove", "replace-one", "either")
    with pytest.raises(ValueError, match="ReplaceOne"):
        sampled.compose(shuffled)
    assert sampled.compose(GaussianMechanism(1.0)).relation == "add-remove"
    assert shuffled.compose(BinomialNoise(100, 0.5)).relation == "replace-one"
    assert GaussianMechanism(1.0).self_compose(2).relation == "either"
    with pytest.raises(ValueError, match="replacement"):
        WithoutReplacement(sampled, 10, 5)
    with pytest.raises(ValueError, match="pairs"):
        sampled.compose(DominatingPair.from_pmfs([0.0], [0.0]))
    assert ReplaceOne(sampled).compose(shuffled).relation == "replace-one"


def test_replace_one_bounds_a_replaced_record():
    """A record with value +1 is replaced by one with value -1: the divergence of the two Gaussian mixtures, by quadrature."""
    sampled = GaussianMechanism(1.0).subsampled(0.25)
    bound = ReplaceOne(sampled)
    y = np.linspace(-12, 12, 200_001)
    density = np.exp(-y * y / 2), np.exp(-((y - 1) ** 2) / 2), np.exp(-((y + 1) ** 2) / 2)
    p, q = (0.75 * density[0] + 0.25 * d for d in density[1:])
    for eps in (0.0, 0.1, 0.5):
        exact = np.maximum(p - math.exp(eps) * q, 0).sum() * (y[1] - y[0]) / math.sqrt(2 * math.pi)
        # The quadrature has a relative error of about 1e-9, because the integrand has a kink.
        assert exact <= bound.delta(eps) * (1 + 1e-8)
        assert 0 < bound.delta(eps, bound="lower") <= exact * (1 + 1e-8)
    # At eps = 0 the divergence is 0.25 times the distance of the two noises.
    assert bound.delta(0.0, bound="lower") <= 0.25 * math.erf(1 / math.sqrt(2)) <= bound.delta(0.0)
    with pytest.raises(ValueError, match="already covers the replacement"):
        ReplaceOne(bound)


def test_two_releases_of_a_replaced_record_are_bounded():
    """The record of the last test in two releases, by quadrature; the lower bound removes the record in both releases."""
    one = GaussianMechanism(1.0).subsampled(0.25)
    both, removed = ReplaceOne(one).self_compose(2), one.self_compose(2)
    y = np.linspace(-9, 9, 2001)
    density = np.exp(-y * y / 2), np.exp(-((y - 1) ** 2) / 2), np.exp(-((y + 1) ** 2) / 2)
    p, q = ((0.75 * density[0] + 0.25 * d) * (y[1] - y[0]) / math.sqrt(2 * math.pi) for d in density[1:])
    for eps in (0.1, 0.5, 1.0):
        exact = np.maximum(np.outer(p, p) - math.exp(eps) * np.outer(q, q), 0).sum()
        low, high = both.delta(eps, bound="lower"), both.delta(eps)
        assert 0.99 * removed.delta(eps, bound="lower") <= low <= exact <= high


@pytest.mark.parametrize("rate", [0.0, -0.1, 1.5, math.nan, "x"])
def test_bad_rates(rate):
    with pytest.raises(ValueError, match="rate="):
        GaussianMechanism(1.0).subsampled(rate)


def test_bad_mechanisms():
    for make in (lambda m: Subsampled(m, 0.5), lambda m: SampledPair(m, 0.5), lambda m: WithoutReplacement(m, 5, 2), ReplaceOne):
        with pytest.raises(TypeError, match="PrivacyProfile"):
            make("gaussian")
    with pytest.raises(ValueError, match="batch="):
        WithoutReplacement(GaussianMechanism(1.0), 5, 6)


def test_the_budget_of_a_sample_of_nearly_all_keeps_its_digits():
    # Both terms of 1 - q + q e^-eps are far below an ulp of 1.
    sample = SampledPair(KaryResponse(895278, 29.99999999999999), 0.9999999999999997, False)
    with mp.workdps(50):
        rate, local = mp.mpf(sample.rate), mp.mpf(29.99999999999999)
        exact = -mp.log(1 - rate + rate * mp.exp(-local))
        assert exact <= sample.epsilon(0.0) <= exact * (1 + mp.mpf("1e-14"))


@pytest.mark.parametrize(("budget", "rate", "removed"), [
    (30.0, 1e-100, True), (130.0, 1e-100, True), (35.0, 1e-20, True), (699.0, 0.3, True), (40.0, 0.999, False),
])
def test_budgets_of_rare_samples_do_not_cancel(budget, rate, removed):
    with mp.workdps(400):
        exact = abs(mp.log(1 - mp.mpf(rate) + mp.mpf(rate) * mp.exp(mp.mpf(budget if removed else -budget))))
    pair = SampledPair(RandomizedResponse(budget), rate, removed)
    assert exact <= pair.epsilon(0.0) <= exact * (1 + 1e-14)
    assert exact * (1 - 1e-12) <= pair.epsilon(0.0, bound="lower") <= exact


def test_releases_of_a_rare_sample_have_positive_delta():
    # All losses but one are about as large as the rate. A rounding error once removed one term, and delta was 0.
    many = SampledPair(KaryResponse(3, 30.0), 1e-100, True).self_compose(2)
    assert many.log_delta(1e-311, bound="lower") <= -229.5653621188449773871 <= many.log_delta(1e-311)


@pytest.mark.parametrize("inner", [
    slow(GaussianMechanism(0.8).subsampled(0.5)), FiniteRandomizer([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]]).subsampled(0.5),
])
def test_a_sample_of_a_sample_is_a_sample_at_the_product_of_the_rates(inner):
    twice, once = Subsampled(inner.mechanism, 0.1), Subsampled(inner, 0.2)
    eps = np.array([0.0, 0.02, 0.05, 0.1, 0.5])
    for nested, plain in zip(once.pairs(), twice.pairs()):
        assert (nested.delta(eps, bound="lower") <= plain.delta(eps)).all()
        assert (plain.delta(eps, bound="lower") <= nested.delta(eps)).all()
        np.testing.assert_allclose(nested.delta(eps), plain.delta(eps), rtol=1e-9, atol=1e-15)
    for at in (0.1, 0.3):
        assert once.self_compose(3).delta(at) == pytest.approx(twice.self_compose(3).delta(at), rel=1e-5)


def test_a_sample_of_an_allocation_has_the_divergences_of_each_direction():
    allocation, rate, eps = RandomAllocation(GaussianMechanism(0.8), 5), 0.3, 0.05
    (removed, added), ratio = allocation.pairs(), math.exp(eps)
    share = 1 - ratio * (1 - rate)
    for bound in ("lower", "upper"):
        exact = [rate * removed.delta(math.log1p((ratio - 1) / rate), bound=bound),
                 share * added.delta(math.log(ratio * rate / share), bound=bound)]
        found = [pair.delta(eps, bound=bound) for pair in Subsampled(allocation, rate).pairs()]
        assert found == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("rate", [1e-100, 1e-60, 1e-30, 1e-20, 1e-17, 1e-10])
def test_a_rarely_sampled_release_does_not_hide_the_loss_of_others(rate):
    # At the rates from 1e-30 on the upper bound was 0: rounding lost all of the divergence of the rare release, and the factor that
    # covers rounding was infinite. The rare release has several pairs, so that its losses are not enumerated.
    rare = FiniteRandomizer([[0.3125, 0.453125, 0.234375], [0.375, 0.125, 0.5], [0.421875, 0.453125, 0.125]]).subsampled(rate)
    eps0, often = 2.1, 4e-4
    both = rare.compose(RandomizedResponse(eps0).subsampled(often), RandomizedResponse(eps0).subsampled(often))
    grid = np.array([0.0, 1e-4, 1e-3, 2e-3, 0.004])
    # Without the rare release: all four outcomes, for a removed and for an added record.
    truth = 1 / (1 + math.exp(-eps0))
    absent, present = np.array([1 - truth, truth]), np.array([truth, 1 - truth])
    mixed = (1 - often) * absent + often * present
    laws = np.outer(mixed, mixed).ravel(), np.outer(absent, absent).ravel()
    alone = np.max([np.maximum(p - np.exp(grid)[:, None] * q, 0).sum(axis=1) for p, q in (laws, laws[::-1])], axis=0)
    # The rare release has a total variation of at most its rate.
    lower, upper = (both.delta(grid, bound=bound) for bound in ("lower", "upper"))
    assert (alone * (1 - 1e-9) <= upper).all()
    assert (upper <= alone * (1 + 1e-6) + 2 * rate).all()
    assert (alone * (1 - 1e-6) <= lower).all()
    assert (lower <= upper).all()
