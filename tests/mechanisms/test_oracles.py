"""Frequency oracles against the enumeration of all their messages."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from shufflebounds.mechanisms import (
    HadamardResponse,
    KaryResponse,
    LocalHashing,
    RandomizedResponse,
    SubsetSelection,
    UnaryEncoding,
)
from shufflebounds.tradeoff import hockey_stick, renyi_divergence
from tests.mechanisms import listing

every = pytest.mark.parametrize("mechanism", listing.SMALL, ids=repr)


def atoms(law):
    """Return the distribution of (a, b) = (R_0/m, R_1/m) as {(a, b): mass}, equal pairs merged, without the atom a = b = 0."""
    out = {}
    for m, a, b in zip(np.exp(law.log_mass), np.exp(law.log_a), np.exp(law.log_b)):
        key = (round(a, 9), round(b, 9))
        out[key] = out.get(key, 0.0) + m
    return out


def from_columns(r0, r1, base):
    """Return the same dictionary as `atoms` from columns of masses."""
    out = {}
    for x, y, m in zip(r0, r1, base):
        key = (round(x / m, 9), round(y / m, 9))
        out[key] = out.get(key, 0.0) + m
    return out


def same(first, second):
    assert first.keys() == second.keys()
    for key, mass in first.items():
        assert mass == pytest.approx(second[key], rel=1e-12)


@every
def test_local_profile(mechanism):
    rows = listing.matrix(mechanism)
    with np.errstate(divide="ignore"):
        logs = np.log(rows)
    eps0 = mechanism.local_eps
    pairs = list(itertools.permutations(range(mechanism.bins), 2))
    for share in (0.0, 0.3, 0.9):
        value = max(hockey_stick(logs[i], logs[j], share * eps0) for i, j in pairs)
        assert mechanism.delta(share * eps0) == pytest.approx(value, rel=1e-10)
        assert mechanism.delta(share * eps0, bound="lower") <= value * (1 + 1e-12)
    # For an encoding given by probabilities, the budget is rounded.
    assert mechanism.delta(mechanism.epsilon(0.0)) == 0
    assert eps0 <= mechanism.epsilon(0.0) <= eps0 * (1 + 4e-15)
    assert mechanism.epsilon(0.0) == pytest.approx(eps0, rel=1e-14)
    for order in (1.0, 2.0, 5.0):
        value = max(renyi_divergence(logs[i], logs[j], order) for i, j in pairs)
        assert mechanism.rdp(order) == pytest.approx(value, rel=1e-9)
    assert mechanism.tradeoff().delta(eps0 / 2) == pytest.approx(mechanism.delta(eps0 / 2), rel=1e-11)


@every
def test_laws_of_the_excess(mechanism):
    rows = listing.matrix(mechanism)
    (laws,) = mechanism.excess_laws()
    same(atoms(laws.upper), from_columns(rows[0], rows[1], rows.min(axis=0)))
    pairs = list(itertools.permutations(range(mechanism.bins), 2))
    for text, law in laws.lower:
        first, second = "first" in text, "second" in text
        found = atoms(law)
        assert sum(found.values()) == pytest.approx(1, rel=1e-12)
        # The distribution is that of some pair of inputs, and of some value of the other users that fits the description.
        fits = []
        for i, j in pairs:
            for x in ([i] if first else [j] if second else set(range(mechanism.bins)) - {i, j}):
                columns = from_columns(rows[i], rows[j], rows[x])
                fits.append(columns.keys() == found.keys() and all(abs(columns[key] - found[key]) < 1e-12 for key in found))
        assert any(fits), text


@every
def test_simulation(mechanism):
    rows = listing.matrix(mechanism)
    listed = {y: i for i, y in enumerate(listing.messages(mechanism))}
    n = 8_000
    for x in {0, 1, mechanism.bins - 1}:
        drawn = mechanism.randomize([x] * n, rng=x + 7)
        seen, counts = np.unique(drawn.reshape(n, -1), axis=0, return_counts=True)
        found = np.zeros(len(listed))
        found[[listed[tuple(int(v) for v in y)] for y in seen]] = counts
        expected = n * rows[x]
        kept = expected > 5
        statistic = ((found - expected)[kept] ** 2 / expected[kept]).sum()
        # The tolerance is six standard deviations of the chi-square statistic.
        assert statistic < kept.sum() + 6 * math.sqrt(2 * kept.sum()) + 10


@every
def test_estimate_is_unbiased_and_its_variance_exact(mechanism):
    rows, listed, k = listing.matrix(mechanism), listing.messages(mechanism), mechanism.bins
    # One user suffices, because estimates are sums over independent users.
    each = np.array([mechanism.estimate(listing.sent(mechanism, [y])) for y in listed])
    mean = rows @ each
    assert mean == pytest.approx(np.eye(k), abs=1e-12)
    variance = rows @ each**2 - mean**2
    for held in (0, 1):
        at = variance[np.eye(k) == held]
        assert mechanism.variance(held, 1) == pytest.approx(at[0], rel=1e-11)
        assert at == pytest.approx(np.full(at.shape, at[0]), rel=1e-10)
    assert mechanism.rmse(7) ** 2 == pytest.approx(7 * variance.mean(), rel=1e-11)
    # Counting many messages at once gives the same result as counting them one by one.
    rng = np.random.default_rng(3)
    many = mechanism.randomize(rng.integers(0, k, 40_000), rng)
    single = sum(mechanism.estimate(many[i : i + 1]) for i in range(50))
    assert mechanism.estimate(many[:50]) == pytest.approx(single, rel=1e-9, abs=1e-9)
    counts = mechanism.aggregate(many)
    assert mechanism.estimate(counts=counts, users=40_000) == pytest.approx(mechanism.estimate(many), rel=1e-12)


def test_small_sets_of_many_bins_are_uniform():
    selection, users = SubsetSelection(70, 1.0, 4), 60_000
    sets = selection.randomize(np.full(users, 13), rng=8)
    assert (np.diff(sets, axis=1) > 0).all()
    assert sets.min() >= 0
    assert sets.max() < 70
    own, _, other, _, _ = selection._support_probabilities()
    counts = np.bincount(sets.ravel(), minlength=70)
    chance = np.where(np.arange(70) == 13, own, other)
    assert (np.abs(counts - users * chance) < 5 * np.sqrt(users * chance)).all()
    # A set has four bins. If the user's bin 13 is one of them (probability `own`), the other three are a uniform sample of the
    # other 69 bins, otherwise all four are; `together` is the expected number of sets that contain both of two given other bins.
    together = users * (own * 3 * 2 + (1 - own) * 4 * 3) / (69 * 68)
    pairs = [((sets == i).any(axis=1) & (sets == j).any(axis=1)).sum() for i, j in ((0, 1), (20, 60), (68, 69))]
    assert (np.abs(np.array(pairs) - together) < 5 * math.sqrt(together)).all()


@pytest.mark.parametrize("mechanism", [
    KaryResponse(3, 1.0), SubsetSelection(4, 1.0, 2), UnaryEncoding(3, 0.5, 0.25), UnaryEncoding(3, 0.95, 0.4),
], ids=repr)
def test_error_tail_by_enumeration(mechanism):
    n, (own, _, other, _, gap) = 7, mechanism._support_probabilities()

    def tail(held, a):
        total = 0.0
        for i in range(held + 1):
            for j in range(n - held + 1):
                if abs((i + j - n * other) / gap - held) > a:
                    total += (math.comb(held, i) * own**i * (1 - own) ** (held - i)
                              * math.comb(n - held, j) * other**j * (1 - other) ** (n - held - j))
        return total

    errors = mechanism.errors(n)
    for a in (0.71, 2.9, 5.3):
        for held in (0, 3, 7):
            assert errors.error_tail(a, held) == pytest.approx(tail(held, a), rel=1e-9)
        worst = max(tail(held, a) for held in range(n + 1))
        assert errors.error_tail(a) == pytest.approx(worst, rel=1e-9)
        # The quantile of the largest error over all bins is between that of one bin and the union bound for the worst histogram.
        tails = [tail(held, a) for held in range(n + 1)]
        unions = {counts: sum(tails[held] for held in counts)
                  for counts in itertools.product(range(n + 1), repeat=mechanism.bins) if sum(counts) == n}
        union = max(unions.values())
        assert errors.error_tail(a, of="any", bound="lower") <= worst
        assert min(1, union) <= errors.error_tail(a, of="any") * (1 + 1e-9)
        assert errors.error_tail(a, of="any") <= min(1, mechanism.bins * worst) * (1 + 1e-9)
        for counts in ((n, *[0] * (mechanism.bins - 1)), tuple(np.bincount(np.arange(n) % mechanism.bins).tolist())):
            assert errors.error_tail(a, counts, of="any") == pytest.approx(min(1, unions[counts]), rel=1e-9)
            assert errors.error_tail(a, counts) == pytest.approx(max(tails[held] for held in counts), rel=1e-9)
        # If users who have a value cause less error in its bin than other users do, a union bound with the largest number of users
        # in many bins is too small.
        for largest in range(-(-n // mechanism.bins), n + 1):
            of_largest = max(value for counts, value in unions.items() if max(counts) == largest)
            assert min(1, of_largest) <= errors.error_tail(a, largest, of="any") * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("held", [300, 2000])
def test_error_quantile_of_many_users_holds_for_all_data(held):
    mechanism = LocalHashing(50, 1.0)
    one, any_bin = (mechanism.error_quantile(0.05, users=2000, of=of) for of in ("bin", "any"))
    assert mechanism.error_quantile(0.05, held, users=2000) <= one <= any_bin
    assert one >= 1.95 * math.sqrt(mechanism.variance(0, 2000))
    assert mechanism.error_quantile(0.05, users=2000, bound="lower") <= one
    assert mechanism.error_quantile(0.05, held, users=2000, of="any") >= mechanism.error_quantile(0.05, held, users=2000)


@given(k=st.integers(2, 10**6), eps0=st.floats(1e-6, 700))
@settings(max_examples=25, deadline=None)
def test_default_sizes_are_better_than_neighbouring_sizes(k, eps0):
    chosen = SubsetSelection(k, eps0)
    for other in {max(1, chosen.size - 1), min(k - 1, chosen.size + 1)}:
        assert chosen.variance(0, 1) <= SubsetSelection(k, eps0, other).variance(0, 1) * (1 + 1e-9)
    hashing = LocalHashing(k, eps0)
    for other in {max(2, hashing.buckets - 1), min(2**30, hashing.buckets + 1)}:
        assert hashing.variance(0, 1) <= LocalHashing(k, eps0, other).variance(0, 1) * (1 + 1e-9)


@given(k=st.integers(2, 10**6), eps0=st.floats(1e-9, 700), kind=st.sampled_from([KaryResponse, SubsetSelection, LocalHashing,
                                                                                   HadamardResponse]))
@settings(max_examples=25, deadline=None)
def test_masses_of_every_size(k, eps0, kind):
    mechanism = kind(k, eps0)
    low, middle, top = mechanism._log_masses()
    assert math.exp(low) + math.exp(middle) + math.exp(top) == pytest.approx(1, rel=1e-12)
    assert mechanism.delta(0.0, bound="lower") <= mechanism.delta(0.0) <= 1
    (laws,) = mechanism.excess_laws()
    # R_0 and R_1 have total mass 1 for every measure m.
    for law in (laws.upper, *(law for _, law in laws.lower)):
        assert np.exp(law.log_mass).sum() <= 1 + 1e-12
        for height in (law.log_a, law.log_b):
            assert np.exp(law.log_mass + height).sum() == pytest.approx(1, rel=1e-11)


def test_three_buckets_are_independent():
    # Under the base distribution, the bucket is the hash of a given bin with probability 1/3, of both of two bins with 1/9, and of
    # all of three with 1/27.
    hashing = LocalHashing(8, 1.0, 3)
    hits = np.array([[listing.weight(hashing, y, x) > 1 for y in listing.messages(hashing)] for x in range(8)])
    for x, y, z in itertools.combinations(range(8), 3):
        assert (hits[x] & hits[y]).sum() * 9 == (hits[x] & hits[y] & hits[z]).sum() * 27 == hits.shape[1]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: KaryResponse(1, 1.0), "bins=1"),
        (lambda: KaryResponse(3, 0.0), "local_eps=0"),
        (lambda: KaryResponse(3, 1.0).randomize([3]), "values holds 3"),
        (lambda: KaryResponse(3, 1.0).estimate([]), "messages must not be empty"),
        (lambda: KaryResponse(3, 1.0).variance(5, 4), "held=5"),
        (lambda: KaryResponse(3, 1.0).error_quantile(0.05, users=0), "users=0"),
        (lambda: KaryResponse(3, 1.0).error_quantile(0.05, users=5, of="all"), "of='all'"),
        (lambda: KaryResponse(3, 1.0).estimate(counts=[5, 0, 0], users=4), "counts are those of 5 users, not of users=4"),
        (lambda: SubsetSelection(3, 1.0, 3), "size=3"),
        (lambda: SubsetSelection(5, 1.0, 2).estimate([[1, 1]]), "does not rise"),
        (lambda: SubsetSelection(5, 1.0, 2).estimate([1, 2]), "messages has shape"),
        (lambda: LocalHashing(5, 1.0, 1), "buckets=1"),
        (lambda: LocalHashing(5, 1.0, 3).estimate([[0, 1, 2, 3]]), "messages holds 3"),
        (lambda: LocalHashing(5, 1.0, 3).estimate([[0, 1]]), "messages has shape"),
        (lambda: HadamardResponse(2**25, 1.0), "bins=33554432"),
        (lambda: HadamardResponse(3, 1.0).estimate([4]), "messages holds 4"),
        (lambda: UnaryEncoding(3, 0.25, 0.5), "q=0.5"),
        (lambda: UnaryEncoding(3, 1.0, 0.5), "p=1"),
        (lambda: UnaryEncoding(3, 1 - 2.0**-53, 1e-300), "local budget"),
        (lambda: UnaryEncoding(3, 0.5, 0.25).estimate([[0, 1, 2]]), "messages holds 2"),
    ],
)
def test_bad_input(call, text):
    with pytest.raises(ValueError, match=text):
        call()


@pytest.mark.parametrize(("bins", "eps", "users", "a"), [
    (12, 4.0, 60, 5.46), (3, 3.0, 17, 1.24), (3, 3.0, 17, 6.11), (5, 2.0, 30, 5.53), (5, 2.0, 30, 5.31),
])
def test_the_error_of_any_bin_is_bounded_by_the_highest_chord(bins, eps, users, a):
    # The counts of all bins have the mean users/bins. So their tails sum to at most `bins` times the concave envelope of the tail
    # at this mean: the highest chord between counts on both sides of it, or the highest tail to its left.
    own, other = math.exp(eps) / (math.exp(eps) + bins - 1), 1 / (math.exp(eps) + bins - 1)
    x, tails = np.arange(users + 1), []
    for holders in x:
        law = np.convolve(binom.pmf(x[:holders + 1], holders, own), binom.pmf(x[:users - holders + 1], users - holders, other))
        error = (x - holders * own - (users - holders) * other) / (own - other)
        tails.append(law[abs(error) > a].sum())
    tails, mean = np.array(tails), users / bins
    left, right = x <= mean, x > mean
    share = (mean - x[left][:, None]) / (x[right] - x[left][:, None])
    chords = (1 - share) * tails[left][:, None] + share * tails[right]
    exact = bins * max(tails[left].max(), chords.max())
    assert exact <= KaryResponse(bins, eps).error_tail(a, users=users, of="any") < exact * (1 + 1e-11)


def test_errors_at_a_budget_whose_half_is_zero():
    assert RandomizedResponse(5e-324).error_bound(1, 0.05) == math.inf
    assert KaryResponse(100, 5e-324).rmse(1) == math.inf
