"""One mechanism with several names has one answer: eps of all names agrees to 0.1 %, and the lower bounds do, too."""

import itertools
import math

import numpy as np
import pytest

from shufflebounds import mechanisms as m
from shufflebounds import sampling
from shufflebounds import shuffle as s
from tests.strategies import slow, thinned

DELTA = 1e-6


def flipped_bits(users, eps0):
    flip = 1 / (math.exp(eps0) + 1)
    return [s.ShuffledBits(users, flip), m.RandomizedResponse(eps0).shuffled(users), m.KaryResponse(2, eps0).shuffled(users),
            m.FiniteRandomizer([[1 - flip, flip], [flip, 1 - flip]]).shuffled(users), s.PersonalizedBits(np.full(users, eps0)),
            s.PersonalizedBits([eps0], counts=[users], target=0), s.RealSum(users, 2 * users * flip, 1),
            s.PersonalizedClones.randomized_response([eps0, eps0], 2, counts=[users - 1, 1])]


def matrix_of_words(bins, p, q):
    """The matrix of unary encoding."""
    words = np.array(list(itertools.product((0, 1), repeat=bins)))
    rates = np.where(np.eye(bins, dtype=bool), p, q)
    return m.FiniteRandomizer(np.where(words, rates[:, None, :], 1 - rates[:, None, :]).prod(axis=2))


def rare_bits(users, eps0, participation):
    flip = 1 / (math.exp(eps0) + 1)
    sent = np.array([[1 - flip, flip, 0], [flip, 1 - flip, 0]]) * participation + np.array([0, 0, 1 - participation])
    return [m.FiniteRandomizer(sent).shuffled(users),
            *(one.shuffled(users, participation) for one in (m.RandomizedResponse(eps0), m.KaryResponse(2, eps0),
                                                             m.SubsetSelection(2, eps0, 1)))]


def words(bins, p, q, users):
    return [matrix_of_words(bins, p, q).shuffled(users), m.UnaryEncoding(bins, p, q).shuffled(users)]


def filters(bits, f, users, participation=1.0):
    return [matrix_of_words(bits, 1 - f / 2, f / 2).shuffled(users, participation),
            m.Rappor(f, bits=bits).shuffled(users, participation)]


def parities(users, eps0):
    low = math.exp(-eps0)
    codes = np.array([[1, low, 1, low], [1, 1, low, low], [1, low, low, 1]]) / (2 + 2 * low)
    return [m.FiniteRandomizer(codes[:bins]).shuffled(users) for bins in (2, 3)], [
        m.HadamardResponse(bins, eps0).shuffled(users) for bins in (2, 3)]


def hashes(users, eps0, buckets):
    """Two bins, whose hashes are equal or not."""
    low, hit = math.exp(-eps0), 1 / buckets
    masses = np.array([hit**2, hit * (1 - hit), hit * (1 - hit), (1 - hit) ** 2])
    rows = masses * np.array([[1, 1, low, low], [1, low, 1, low]])
    return [m.FiniteRandomizer(rows / rows.sum(axis=1, keepdims=True)).shuffled(users),
            m.LocalHashing(2, eps0, buckets).shuffled(users)]


def matrix_of_lifted_sets(inside, eps0):
    """The matrix of outputs that are e^eps0 times as likely for the inputs whose row of `inside` is 1 there."""
    rows = np.where(inside, 1.0, math.exp(-eps0))
    return m.FiniteRandomizer(rows / rows.sum(axis=1, keepdims=True))


def matrix_of_sets(bins, eps0, size):
    return matrix_of_lifted_sets([[x in one for one in itertools.combinations(range(bins), size)] for x in range(bins)], eps0)


def matrix_of_parities(bins, eps0):
    words = range(1 << bins.bit_length())
    return matrix_of_lifted_sets([[(word & x).bit_count() % 2 == 0 for word in words] for x in range(1, bins + 1)], eps0)


def matrix_of_hashes(bins, eps0, buckets):
    functions = list(itertools.product(range(buckets), repeat=(bins - 1).bit_length()))
    return matrix_of_lifted_sets([[sum(a for i, a in enumerate(one) if x >> i & 1) % buckets == bucket for one in functions
                                   for bucket in range(buckets)] for x in range(bins)], eps0)


ORACLES = {
    "sets of 3 of 4": (m.SubsetSelection(4, 3.0, 3), matrix_of_sets(4, 3.0, 3)),
    "sets of 2 of 5": (m.SubsetSelection(5, 3.0, 2), matrix_of_sets(5, 3.0, 2)),
    "4 parities": (m.HadamardResponse(4, 3.0), matrix_of_parities(4, 3.0)),
    "7 parities": (m.HadamardResponse(7, 2.0), matrix_of_parities(7, 2.0)),
    "4 hashes": (m.LocalHashing(4, 4.0, 3), matrix_of_hashes(4, 4.0, 3)),
    "5 hashes": (m.LocalHashing(5, 3.0, 2), matrix_of_hashes(5, 3.0, 2)),
    "words of 4 bits": (m.UnaryEncoding(4, 0.9, 0.7), matrix_of_words(4, 0.9, 0.7)),
}


def several_budgets(users):
    budgets = np.linspace(0.5, 2.0, users)
    return [s.PersonalizedBits(budgets), s.PersonalizedClones.randomized_response(budgets, 2),
            s.PersonalizedBits(budgets, counts=np.ones(users))]


def kary_response(users, eps0):
    matrix = ((math.exp(eps0) - 1) * np.eye(4) + 1) / (math.exp(eps0) + 3)
    return [m.KaryResponse(4, eps0).shuffled(users), m.FiniteRandomizer(matrix).shuffled(users),
            s.PersonalizedClones.randomized_response(np.full(9, eps0), 4, counts=[users - 8] + [1] * 8),
            m.SubsetSelection(4, eps0, 1).shuffled(users)]


def laplace(users, scale):
    return [m.LaplaceMechanism(scale).shuffled(users), s.PersonalizedClones.laplace([1 / scale], counts=[users])]


def gaussian(users, sigma):
    return [m.GaussianMechanism(sigma).shuffled(users), s.PersonalizedClones.gaussian([sigma], counts=[users])]


def records(users, flip):
    return [s.FlippedReports(users, 0, 8, flip, view="records"), m.Rappor(2 * flip, bits=8).shuffled(users),
            m.UnaryEncoding(8, 1 - flip, flip).shuffled(users)]


def sums(users, flip):
    return [s.FlippedReports(users, 0, 10, flip, view="sums"), s.ShuffledBits(users, flip).self_compose(2),
            s.FlippedReports(users - 5, 5, 10, flip, view="sums", fake="known"),
            s.RealSum(users, 2 * users * flip, 2, view="columns")]


TWINS = {
    "flipped bits, 1000": lambda: flipped_bits(1000, 1.0), "flipped bits, 1e6": lambda: flipped_bits(10**6, 4.0),
    "bits of several budgets": lambda: several_budgets(2000),
    "4-ary response, 1000": lambda: kary_response(1000, 1.0), "4-ary response, 1e6": lambda: kary_response(10**6, 4.0),
    "Laplace, 1000": lambda: laplace(1000, 1.0), "Laplace, 1e5": lambda: laplace(10**5, 0.7),
    "normal, 1000": lambda: gaussian(1000, 1.0), "normal, 1e5": lambda: gaussian(10**5, 0.7),
    "zero sum": lambda: [s.ZeroSum(10**4, 0.01), s.BinomialNoise(10**4, 0.01), s.ShuffledHistogram(10**4, 10, 0.01).one_bin],
    "records, 1e4": lambda: records(10**4, 0.25), "records, 1e6": lambda: records(10**6, 0.05),
    "sums, 1e4": lambda: sums(10**4, 0.1), "sums, 1e5": lambda: sums(10**5, 0.1), "sums, 1e9": lambda: sums(10**9, 0.3),
    "all of ten": lambda: [sampling.RandomAllocation(m.GaussianMechanism(1.0), 10, 10), m.GaussianMechanism(1.0).self_compose(10)],
    "one of one": lambda: [sampling.RandomAllocation(m.GaussianMechanism(1.0), 1), m.GaussianMechanism(1.0)],
    "a sampled bit": lambda: [m.RandomizedResponse(1.0).subsampled(0.1),
                              max(m.RandomizedResponse(1.0).subsampled(0.1).pairs(), key=lambda pair: pair.epsilon(DELTA))],
    "sampled noise": lambda: [m.GaussianMechanism(1.0).subsampled(0.1).self_compose(100),
                              sampling.SampledPair(m.GaussianMechanism(1.0), 0.1, removed=True).self_compose(100)],
    "all randomizers of a budget": lambda: [m.PureLocal(2.0).shuffled(10**4), s.StrongerClones(10**4, 2.0),
                                            m.RatioBounded(math.exp(2.0), math.tanh(1.0), math.exp(2.0)).shuffled(10**4)],
    "rare bits, 30": lambda: rare_bits(30, 1.0, 0.4), "rare bits, 1e4": lambda: rare_bits(10**4, 2.0, 0.5),
    "rare bits, 2e8": lambda: rare_bits(2 * 10**8, 9.4, 0.44), "two words, 29": lambda: words(2, 0.4, 0.1, 29),
    "two words, 118": lambda: words(2, 0.8348, 0.1525, 118), "two words, 5055": lambda: words(2, 0.726, 0.0131, 5055),
    "three words": lambda: words(3, 0.725, 0.2775, 92), "filter of two bits": lambda: filters(2, 0.279, 204),
    "filter of four bits": lambda: filters(4, 0.396, 83), "rare filters": lambda: filters(3, 0.708, 16, 0.375),
    "parities of two bins": lambda: [kind[0] for kind in parities(47, 2.676)],
    "parities of three bins": lambda: [kind[1] for kind in parities(500, 2.0)],
    "hashes of two bins": lambda: hashes(94, 3.294, 28), "sets of three bins": lambda: [
        m.SubsetSelection(3, 2.0, 2).shuffled(6), m.FiniteRandomizer(
            (np.ones((3, 3)) + (math.exp(-2.0) - 1) * np.eye(3)) / (2 + math.exp(-2.0))).shuffled(6)],
    "clear reports of two bins": lambda: [s.ClearReports(1000, 2), s.BinomialNoise(1000, 0.5)],
}
SLOW = {"all of ten", "normal, 1000", "normal, 1e5", "sums, 1e4", "sums, 1e5", "sums, 1e9", "bits of several budgets",
        "two words, 118", "Laplace, 1000", "filter of two bits", "filter of four bits", "rare filters", "hashes of two bins"}
FORMULAS = (s.StrongerClones, m.RatioBounded)
"""Bounds of all randomizers with some property; their lower bounds are those of a formula, which no randomizer need attain."""


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in TWINS])
def test_all_names_have_the_same_eps(name):
    profiles = TWINS[name]()
    upper = [profile.epsilon(DELTA) for profile in profiles]
    attained = [one for one in profiles if not isinstance(getattr(one, "randomizer", one), FORMULAS)]
    lower = [profile.epsilon(DELTA, bound="lower") for profile in attained]
    assert max(upper) <= min(upper) * 1.001
    assert max(lower) <= min(lower) * 1.001
    assert max(lower) <= min(upper)


@pytest.mark.parametrize(("name", "users"), [
    *itertools.product(ORACLES, (2, 3)), ("sets of 3 of 4", 10), slow("sets of 3 of 4", 30), ("4 parities", 9),
    slow("4 hashes", 300), slow("words of 4 bits", 10),
])
def test_oracles_of_few_bins_have_the_delta_of_their_matrix(name, users):
    """With four bins or more, delta of few users was up to e^9.6 times as large as that of the matrix."""
    one, matrix = (randomizer.shuffled(users) for randomizer in ORACLES[name])
    for eps in (0.1 * one.randomizer.local_eps, 0.9 * one.randomizer.local_eps):
        for bound in ("lower", "upper"):
            assert one.log_delta(eps, bound=bound) == pytest.approx(matrix.log_delta(eps, bound=bound), abs=1e-4)


@pytest.mark.parametrize("oracle", [m.UnaryEncoding(2**20, 1 - 1e-8, 1 - 1e-7), slow(m.UnaryEncoding(6, 1 - 1e-15, 1 - 1e-14)),
                                    m.UnaryEncoding(2**20, 0.5, 1e-300), slow(m.LocalHashing(2**30, 1.0, 2**30))], ids=repr)
def test_extreme_shares_of_outputs_in_all_lifted_sets(oracle):
    protocol = oracle.shuffled(1000)
    for eps in (0.0, 0.3 * oracle.local_eps):
        assert protocol.log_delta(eps, bound="lower") <= protocol.log_delta(eps) <= oracle.log_delta(eps) + 1e-9


@pytest.mark.parametrize("eps0", [1e-300, 1e-5, 0.3, 40.0, 700.0])
@pytest.mark.parametrize("users", [1, 2, 50])
def test_extreme_budgets_of_users_with_one_budget(eps0, users):
    """The range of the constructors is that of several budgets, and the answers are those of the exact budget."""
    profiles = [s.PersonalizedBits([eps0], counts=[users]), s.PersonalizedClones.randomized_response([eps0] * users, 3),
                s.PersonalizedClones.laplace([eps0], counts=[users])]
    for profile in profiles:
        assert profile.epsilon(0.0) == eps0
        assert profile.log_delta(eps0) == -math.inf
        assert profile.log_delta(eps0 * (1 - 1e-9)) > -math.inf


@pytest.mark.parametrize(("noise", "users", "participation"), [
    (m.GeometricMechanism(1.0, 1, 3), 12, 0.1), (m.GeometricMechanism(0.5, 1, 25), 5, 1.0),
    (m.GeometricMechanism(2.0, 4, 20), 3, 1.0), (m.GeometricMechanism(1.0, 2, 5), 5, 0.5),
    slow(m.GeometricMechanism(0.56, 1, 1), 50, 1.0),
], ids=repr)
def test_clipped_counts_of_few_users_are_a_finite_matrix(noise, users, participation):
    k = np.arange(-noise.bound, noise.bound + 1)
    rate = noise.eps / noise.sensitivity
    masses = np.exp(-rate * abs(k)) * np.where(abs(k) == noise.bound, 1, -math.expm1(-rate)) / (1 + math.exp(-rate))
    shifts = range(noise.sensitivity + 1)
    rows = np.array([np.concatenate([np.zeros(x), masses, np.zeros(noise.sensitivity - x)]) for x in shifts])
    matrix = m.FiniteRandomizer(rows / rows.sum(axis=1, keepdims=True))
    one, other = noise.shuffled(users, participation), matrix.shuffled(users, participation)
    for eps in (0.0, 0.3 * noise.eps, 0.9 * noise.eps):
        for bound in ("lower", "upper"):
            assert one.log_delta(eps, bound=bound) == pytest.approx(other.log_delta(eps, bound=bound), rel=1e-9)
    delta = 0.5 * (one.delta(0.0) + one.delta(2 * noise.eps))
    assert one.epsilon(delta) == pytest.approx(other.epsilon(delta), rel=1e-7)


@pytest.mark.parametrize("epochs", [1, 3])
def test_one_batch_of_all_records_is_one_release_of_the_noise(epochs):
    noise = m.GaussianMechanism(0.5)
    one, other = sampling.ShuffledBatches(noise, 1, 10).self_compose(epochs), noise.self_compose(epochs)
    for bound in ("lower", "upper"):
        assert one.log_delta(5.0, bound=bound) == other.log_delta(5.0, bound=bound)
        assert one.rdp(2.0, bound=bound) == pytest.approx(4.0 * epochs, rel=1e-12)
        assert one.loss_tail(5.0, bound=bound) == other.loss_tail(5.0, bound=bound)


@pytest.mark.parametrize("mechanism", [
    m.GaussianMechanism(1.0), m.LaplaceMechanism(0.5), m.KaryResponse(3, 1.0),
    m.FiniteRandomizer([[0.1, 0.5, 0.4, 0.0], [0.0, 0.4, 0.5, 0.1]]),
], ids=repr)
def test_a_batch_of_all_records_is_the_mechanism(mechanism):
    """The upper bound of the loss tail at eps = 1 was twice as large as that of the matrix."""
    one = sampling.WithoutReplacement(mechanism, 7, 7)
    for bound in ("lower", "upper"):
        assert one.gdp_mu(bound=bound) == mechanism.gdp_mu(bound=bound)
        assert list(one.rdp([1.0, 2.0, math.inf], bound=bound)) == list(mechanism.rdp([1.0, 2.0, math.inf], bound=bound))
        for eps in (0.1, 0.9, 1.9):
            assert one.loss_tail(eps, bound=bound) == mechanism.loss_tail(eps, bound=bound)
            assert one.log_delta(eps, bound=bound) == pytest.approx(mechanism.log_delta(eps, bound=bound), rel=1e-12)


@pytest.mark.parametrize(("noise", "steps", "epochs"), [
    (m.LaplaceMechanism(0.5), 1, 1), (m.GaussianMechanism(0.5), 5, 1), slow(m.LaplaceMechanism(3.0), 2, 3),
    (m.KaryResponse(3, 0.35), 1, 2),
], ids=repr)
def test_a_record_in_every_step_has_the_composition_of_all_steps(noise, steps, epochs):
    one, other = sampling.RandomAllocation(noise, steps, steps), noise.self_compose(steps * epochs)
    one = one.self_compose(epochs) if epochs > 1 else one
    for bound in ("lower", "upper"):
        for eps in (0.1, 1.0, 1.9):
            assert one.log_delta(eps, bound=bound) == pytest.approx(other.log_delta(eps, bound=bound), rel=1e-9)
            assert one.loss_tail(eps, bound=bound) == pytest.approx(other.loss_tail(eps, bound=bound), rel=1e-3)
        assert one.rdp(2.0, bound=bound) == pytest.approx(other.rdp(2.0, bound=bound), rel=1e-6)
        assert one.gdp_mu(bound=bound) == pytest.approx(other.gdp_mu(bound=bound), rel=1e-4)


@pytest.mark.parametrize("randomizer", [
    m.GaussianMechanism(1.0), m.DiscreteGaussianMechanism(0.3), m.LaplaceMechanism(0.6), slow(m.GaussianVector(1.0, 2)),
    m.GeometricMechanism(1.0, 2, 3), m.KaryResponse(4, 2.0), m.FiniteRandomizer(((0.5, 0.3, 0.2), (0.2, 0.5, 0.3))),
    m.RandomizedResponse(1.0),
], ids=repr)
def test_the_only_message_has_the_guarantee_of_the_randomizer(randomizer):
    one = s.Shuffled(randomizer, 4, colluding=2, missing=1)
    for bound in ("lower", "upper"):
        for eps in (0.0, 0.4, 0.9):
            assert one.log_delta(eps, bound=bound) == randomizer.log_delta(eps, bound=bound)
        assert one.loss_tail(0.4, bound=bound) == randomizer.loss_tail(0.4, bound=bound)
        assert [one.epsilon(delta, bound=bound) for delta in (0.0, 0.01)] == [
            randomizer.epsilon(delta, bound=bound) for delta in (0.0, 0.01)]
        assert list(one.rdp([1.0, 2.0], bound=bound)) == list(randomizer.rdp([1.0, 2.0], bound=bound))
        assert one.gdp_mu(bound=bound) == randomizer.gdp_mu(bound=bound)
    assert one.argument(0.4) == "one message alone"
    assert s.shuffled_log_deltas(randomizer, [1, 2], 0.4)[0] == randomizer.log_delta(0.4)


@pytest.mark.parametrize("clones", [s.Clones, s.StrongerClones])
def test_clone_bounds_of_one_user_are_the_local_guarantee(clones):
    one, other = clones(3, 20.0, colluding=1, missing=1), m.KaryResponse(2, 20.0)
    for bound in ("lower", "upper"):
        assert one.log_delta(15.0, bound=bound) == pytest.approx(other.log_delta(15.0, bound=bound), rel=1e-11)
        assert one.gdp_mu(bound=bound) == pytest.approx(other.gdp_mu(bound=bound), rel=1e-9)
        several = [profile.self_compose(5).log_delta(99.98, bound=bound) for profile in (one, other)]
        assert several[0] == pytest.approx(several[1], rel=1e-9)


@pytest.mark.parametrize("users", [2, 5, 40, slow(100)])
@pytest.mark.parametrize("eps0", thinned([1.0, 10.0, 20.0], 2))
def test_mu_of_bits_is_that_of_their_matrix(users, eps0):
    flip = 1 / (1 + math.exp(eps0))
    pairs = [s.ShuffledBits(users, flip).pair(ones) for ones in range(users)]
    largest = max(one.gdp_mu() for pair in pairs for one in (pair, pair.reverse()))
    for bits in (s.ShuffledBits(users, flip), m.RandomizedResponse(eps0).shuffled(users)):
        assert largest * (1 - 1e-9) <= bits.gdp_mu() <= largest * (1 + 1e-6)


@pytest.mark.parametrize(("users", "fakes", "eps0"), thinned(
    [(65, 0, 15.0), (1000, 0, 20.0), (200, 50, 12.0), slow(300, 0, 0.1)], 2))
def test_mu_of_hundreds_of_bits_is_that_of_a_dataset(users, fakes, eps0):
    """The upper bound was up to 12 % larger."""
    bits = s.ShuffledBits(users, 1 / (1 + math.exp(eps0)), fakes=fakes)
    largest = max(bits.pair(ones).gdp_mu() for ones in {0, 1, users // 4, users // 3, users // 2, users - 1})
    assert largest * (1 - 1e-9) <= bits.gdp_mu() <= largest * 1.001
