"""Certificates by the definition, against enumerations of every report of every user in mpmath."""

import itertools
import math

import mpmath as mp
import pytest

from shufflebounds import mechanisms, shuffle
from tests.certify.test_certify import assert_certified
from tests.strategies import slow, thinned

pytest.importorskip("flint")


def stick(p, q, eps):
    """Return the hockey-stick divergence of two dictionaries of probabilities."""
    return mp.fsum(max(mp.mpf(0), p.get(key, 0) - mp.exp(eps) * q.get(key, 0)) for key in {*p, *q})


def merged(laws, seen):
    """Return the law of what is seen of one output of each law."""
    out = {}
    for outputs in itertools.product(*(law.items() for law in laws)):
        key = seen([output for output, _ in outputs])
        out[key] = out.get(key, 0) + mp.fprod(p for _, p in outputs)
    return out


def ones(p):
    return {0: 1 - mp.mpf(p), 1: mp.mpf(p)}


def columns(outputs):
    return tuple(map(sum, zip(*outputs)))


def records(outputs):
    return tuple(sorted(outputs))


def report(chances):
    """Return the law of independent bits."""
    return merged([ones(p) for p in chances], tuple)


def one_hot(bins, flip):
    return [report([1 - mp.mpf(flip) if j == x else flip for j in range(bins)]) for x in range(bins)]


def worst(rows, others, seen, eps, extra=()):
    """Return the largest divergence over all inputs of the other users and ordered pairs of the target's inputs."""
    found = []
    for data in itertools.combinations_with_replacement(range(len(rows)), others):
        laws = [merged([row, *(rows[x] for x in data), *extra], seen) for row in rows]
        found += [stick(p, q, eps) for p, q in itertools.permutations(laws, 2)]
    return max(found)


@pytest.fixture(autouse=True)
def precision():
    with mp.workdps(60):
        yield


def shifted(weight, shift, size):
    total = mp.fsum(weight(k) for k in range(-size, size + 1))
    p = {k: weight(k) / total for k in range(-size, size + 1)}
    return p, {k + shift: value for k, value in p.items()}


@pytest.mark.parametrize("eps", thinned([0.0, 0.3, 4.0], 2))
def test_noise_on_integers(eps):
    p, q = shifted(lambda k: mp.exp(-mp.mpf(k) ** 2 / (2 * mp.mpf(1.3) ** 2)), 2, 40)
    assert_certified(mechanisms.DiscreteGaussianMechanism(1.3, 2), eps, stick(p, q, eps))
    ratio = mp.exp(-mp.mpf(0.9) / 3)
    clipped = {}
    for k in range(-1200, 1201):
        place = max(-4, min(4, k))
        clipped[place] = clipped.get(place, 0) + (1 - ratio) / (1 + ratio) * ratio ** abs(k)
    exact = max(stick(clipped, {k + s: v for k, v in clipped.items()}, eps) for s in (1, 2, 3))
    assert_certified(mechanisms.GeometricMechanism(0.9, 3, 4), eps, exact)


def test_dummy_zeros_among_flipped_bits():
    # Dummies are zeros in every dataset, so the one with few ones is not a mirror image of one with many.
    rows, hidden, flip = [ones(0.25), ones(0.75)], ones(0.25), shuffle.ShuffledBits(2, 0.25, fakes=3)
    for eps in (0, 0.3):
        assert float(flip.certify(eps)) == pytest.approx(float(worst(rows, 1, sum, eps, [hidden] * 3)), rel=1e-13)



@pytest.mark.parametrize("eps", [0.2, 0.7])
def test_one_report_of_bits_and_vectors(eps):
    f, p, q = map(mp.mpf, (0.5, 0.75, 0.25))
    one, other = p - f * (p - q) / 2, q + f * (p - q) / 2
    first, second = report([one, one, other, other]), report([other, other, one, one])
    assert_certified(mechanisms.Rappor(0.5, 0.75, 0.25, 2), eps, stick(first, second, eps))
    # Two opposite caps of measure c have the ratio e^eps0.
    c, odds = mp.mpf(0.1), mp.exp(mp.mpf(1.5))
    assert_certified(mechanisms.PrivUnit(5, 1.5, 0.1), eps, c * (odds - mp.exp(eps)) / (1 + c * (odds - 1)))
    mu = 2 / mp.mpf(3)
    normal = mp.ncdf(mu / 2 - eps / mu) - mp.exp(eps) * mp.ncdf(-mu / 2 - eps / mu)
    assert_certified(mechanisms.GaussianVector(3.0, 4, "sphere"), eps, normal)
    exact = [stick(*[merged([ones(t), ones(0.8), ones(0.8), ones(0.2)], sum) for t in order], eps)
             for order in ((0.2, 0.8), (0.8, 0.2))]
    flip = shuffle.ShuffledBits(4, 0.2, ones=2)
    for pair, value in zip((flip.pair(2), flip.pair(2).reverse()), exact, strict=True):
        assert abs(mp.mpf(pair.certify(eps, digits=20).str(40, radius=False)) - value) < 1e-16


@pytest.mark.parametrize("eps", [0.0, 0.5])
def test_shifted_counts(eps):
    users, gamma = 6, 0.3
    count = merged([ones(gamma)] * users, sum)
    more = {k + 1: p for k, p in count.items()}
    assert_certified(shuffle.ZeroSum(users, gamma), eps, max(stick(count, more, eps), stick(more, count, eps)))
    pair = [{(a, b): x * y for a, x in one.items() for b, y in two.items()} for one, two in ((more, count), (count, more))]
    assert_certified(shuffle.ShuffledHistogram(users, 3, gamma), eps, stick(*pair, eps))
    for bins in (2, 5):
        total = mp.mpf(0)
        for n in range(8):
            half = {k: mp.binomial(n, k) / 2**n for k in range(n + 1)}
            chance = mp.binomial(7, n) * (mp.mpf(2) / bins) ** n * (1 - mp.mpf(2) / bins) ** (7 - n)
            total += chance * stick({k + 1: p for k, p in half.items()}, half, eps)
        assert_certified(shuffle.ClearReports(7, bins), eps, total)


@pytest.mark.parametrize("eps", [0.0, 0.5])
@pytest.mark.filterwarnings("ignore:shift=")
@pytest.mark.parametrize("keep", [1.0, 0.25])
def test_geometric_dummies(keep, eps):
    shift, left, right = 3, mp.mpf(1) / 4, mp.mpf(1) / 8
    free = {j: left ** (shift - j) if j < shift else right ** (j - shift) for j in range(60)}
    free = {j: mass / mp.fsum(free.values()) for j, mass in free.items()}
    more = merged([free, ones(keep)], sum)
    pair = [{(a, b): x * y for a, x in one.items() for b, y in two.items()} for one, two in ((more, free), (free, more))]
    assert_certified(shuffle.GeometricDummies(4, 3, 0.25, 0.125, keep), eps, stick(*pair, eps))


@pytest.mark.parametrize("eps", [0.0, 1.0])
@pytest.mark.parametrize("threshold", [2, 9])
def test_thresholded_counts(threshold, eps):
    q = mp.exp(-1)
    noise = {k: (1 - q) / (1 + q) * q ** abs(k) for k in range(-200, 201)}
    new = {None: mp.fsum(p for k, p in noise.items() if k + 1 < threshold),
           **{k + 1: p for k, p in noise.items() if k + 1 >= threshold}}
    exact = max(stick(noise, {k + 1: p for k, p in noise.items()}, eps), stick(new, {None: mp.mpf(1)}, eps))
    assert_certified(mechanisms.GeometricMechanism(1.0).thresholded(threshold), eps, exact)


def test_sums_of_several_bits():
    flip = mp.mpf(2) / 8
    rows = [merged([ones(flip)] * 2, sum), merged([ones(1 - flip)] * 2, sum)]
    found = []
    for bits in range(7):
        others = [ones(1 - flip)] * bits + [ones(flip)] * (6 - bits)
        p, q = (merged([row, *others], sum) for row in rows)
        found += [stick(p, q, 0.6), stick(q, p, 0.6)]
    assert_certified(shuffle.RealSum(4, 2.0, 2), 0.6, max(found))


@pytest.mark.parametrize(("users", "fakes", "bins", "view", "fake"), [
    slow(3, 0, 3, "sums", "uniform"), slow(2, 1, 3, "records", "known"), (2, 1, 3, "sums", "known"),
    slow(2, 1, 3, "records", "uniform"), (2, 2, 2, "sums", "uniform"),
])
def test_flipped_reports_of_few_users(users, fakes, bins, view, fake):
    rows, others = one_hot(bins, 0.2), users - 1 + (fakes if fake == "known" else 0)
    hidden = {key: mp.fsum(row[key] for row in rows) / bins for key in rows[0]}
    exact = worst(rows, others, columns if view == "sums" else records, 0.4, [hidden] * (fakes if fake == "uniform" else 0))
    protocol = shuffle.FlippedReports(users, fakes, bins, 0.2, view=view, fake=fake)
    ball = protocol.certify(0.4, digits=20)
    assert abs(mp.mpf(ball.str(40, radius=False)) - exact) < exact * 1e-15
    # Both bounds are valid, although they need not be equal.
    assert protocol.delta(0.4, bound="lower") <= exact <= protocol.delta(0.4)


@pytest.mark.parametrize(("bins", "users", "share"), [slow(3, 4, 1.0), slow(4, 3, 1.0), (5, 2, 0.5)])
def test_every_dataset_of_kary_response(bins, users, share):
    protocol, odds = mechanisms.KaryResponse(bins, 0.8).shuffled(users, share), mp.exp(mp.mpf(0.8))
    # With participation, the output `bins` is that of no message.
    rows = [{**{y: share * (odds if y == x else 1) / (odds + bins - 1) for y in range(bins)}, bins: mp.mpf(1 - share)}
            for x in range(bins)]
    for eps in (0.0, 0.4):
        assert_certified(protocol, eps, worst(rows, users - 1, records, eps))


def test_every_dataset_of_subset_selection():
    """A message is a set of two of three bins; sets with the user's bin have the larger probability."""
    protocol, odds = mechanisms.SubsetSelection(3, 2.0, 2).shuffled(4), mp.exp(2)
    rows = [{chosen: (odds if x in chosen else 1) / (2 * odds + 1) for chosen in itertools.combinations(range(3), 2)}
            for x in range(3)]
    assert_certified(protocol, 0.5, worst(rows, 3, records, 0.5))


@pytest.mark.parametrize(("users", "eps", "seconds"), thinned([(8, 1.0, 1.0), (15, 2.7, 10.0)], 2))
def test_datasets_of_bins_that_are_alike_are_listed_up_to_their_order(users, eps, seconds):
    """All datasets would take twice the time for 8 users, and those of the search nine times the time for 15 users."""
    ball = mechanisms.SubsetSelection(4, 3.0, 3).shuffled(users).certify(eps, bound="upper", seconds=seconds)
    assert ball.rel_accuracy_bits() > 40


@pytest.mark.slow
def test_eight_bins_are_enumerated_up_to_their_order():
    protocol = mechanisms.KaryResponse(8, 1.0).shuffled(3)
    assert protocol.argument(0.3) == "every dataset"
    assert protocol.log_delta(0.3, bound="lower") <= float(protocol.certify(0.3).log()) <= protocol.log_delta(0.3)


def test_personalized_bits_of_every_dataset():
    budgets, found = (0.5, 1.0, 2.0), []
    kept = [mp.exp(b) / (1 + mp.exp(b)) for b in budgets]
    for target in range(3):
        rest = [kept[i] for i in range(3) if i != target]
        for data in itertools.product((0, 1), repeat=2):
            others = [ones(k if bit else 1 - k) for k, bit in zip(rest, data, strict=True)]
            p, q = (merged([ones(chance), *others], sum) for chance in (kept[target], 1 - kept[target]))
            found += [stick(p, q, 0.3), stick(q, p, 0.3)]
    assert_certified(shuffle.PersonalizedBits(budgets), 0.3, max(found))


@pytest.mark.parametrize(("protocol", "eps"), [
    (shuffle.PersonalizedBits([0.5, 1.0, 2.0], counts=[10, 10, 10]), 1.2),
    (shuffle.PersonalizedBits([1.8, 2.0], counts=[30, 30], target=0), 0.4), (shuffle.PersonalizedBits([1.0] * 30), 0.3),
    slow(shuffle.FlippedReports(60, 10, 3, 0.2, view="records", fake="known"), 1.6),
])
def test_bounds_of_more_users_are_certified(protocol, eps):
    upper, lower = (protocol.certify(eps, bound=bound) for bound in ("upper", "lower"))
    assert lower.lower() <= upper.upper()


def test_the_bounds_of_personalized_bits_hold_for_enumerated_datasets():
    # One user more than are enumerated; the clone bound, and all bits 0, instead of every dataset.
    protocol = shuffle.PersonalizedBits([0.5, 1.5], counts=[12, 5], target=1)
    given = [shuffle.PersonalizedBits([0.5, 0.5, 1.5, 1.5], bits=[0, 1, 0, 1], counts=[12 - k, k, 5 - j, j], target=2)
             for k in (1, 6, 11) for j in (1, 4)]
    largest = max(float(one.certify(0.6).lower()) for one in given)
    assert largest <= float(protocol.certify(0.6, bound="upper").upper())


def test_known_records_are_reports_of_rappor():
    flip = 0.3
    records = shuffle.FlippedReports(3, 1, 2, flip, view="records", fake="known").certify(0.4)
    assert records.overlaps(mechanisms.Rappor(2 * flip, bits=2).shuffled(4).certify(0.4))


def test_too_many_datasets_are_refused():
    with pytest.raises(TypeError, match="PersonalizedBits has no certified digits: only the datasets of few users"):
        shuffle.PersonalizedBits([1.0] * 30).certify(0.3)
    with pytest.raises(ValueError, match="seconds=10 is the limit"):
        shuffle.FlippedReports(30, 3, 3, 0.2, view="records").certify(0.3)
    assert math.isfinite(shuffle.ClearReports(3, 1).certify(0.2))


@pytest.mark.parametrize(("dimension", "cap", "orthogonal"), [(2, 0.02, True), (2, 0.24, True), (2, 0.26, False), (3, 0.14, True)])
def test_other_users_with_orthogonal_vectors(dimension, cap, orthogonal):
    # The caps of three orthogonal or opposite vectors are disjoint if their angle is below 45 degrees.
    measure = mp.betainc(mp.mpf(dimension - 1) / 2, 0.5, 0, 0.5, regularized=True) / 2
    assert (cap < measure) == orthogonal
    c, odds = mp.mpf(cap), mp.exp(0.5)
    base = {0: c, 1: c, 2: c, 3: 1 - 3 * c}
    rows = [{y: p * (odds if y == x else 1) / (1 + c * (odds - 1)) for y, p in base.items()} for x in range(3)]
    protocol = mechanisms.PrivUnit(dimension, 0.5, cap).shuffled(3)
    p, q = (merged([row, rows[2], rows[2]], records) for row in rows[:2])
    if orthogonal:
        ball = protocol.certify(0.05, bound="lower")
        assert protocol.data(0.05) == "every other user has a vector at right angles"
        assert abs(mp.mpf(ball.str(30, radius=False)) - stick(p, q, mp.mpf(0.05))) < 1e-13
    else:
        assert "right angles" not in protocol.data(0.05)


@pytest.mark.parametrize(("users", "fakes", "bins", "eps"), [(4, 30, 21, 0.4), slow(5, 45, 23, 0.3)])
def test_clones_of_records_among_dummy_reports(users, fakes, bins, eps):
    flip = mp.mpf(0.2)
    protocol, same = shuffle.FlippedReports(users, fakes, bins, 0.2, view="records"), flip**2 + (1 - flip) ** 2
    shown = 2 * (same / bins + (1 - mp.mpf(2) / bins) * flip**2)
    odds, factor, total = (1 / flip - 1) ** 2, mp.exp(mp.mpf(eps)), mp.mpf(0)
    for c in range(users + fakes):
        number = mp.fsum(mp.binomial(users - 1, i) * (2 * flip**2) ** i * (1 - 2 * flip**2) ** (users - 1 - i)
                         * mp.binomial(fakes, c - i) * shown ** (c - i) * (1 - shown) ** (fakes - c + i)
                         for i in range(max(0, c - fakes), min(c, users - 1) + 1))
        # The first message is sent by k of the c clones and the target.
        first, second = ([mp.binomial(c, k - x) / mp.mpf(2) ** c if 0 <= k - x <= c else 0 for k in range(c + 2)] for x in (1, 0))
        total += number * mp.fsum(max(mp.mpf(0), (odds - factor) * a - (factor * odds - 1) * b) for a, b in zip(first, second))
    exact, ball = same * total / (odds + 1), protocol.certify(eps, bound="upper")
    assert abs(mp.mpf(ball.mid().str(40, radius=False)) / exact - 1) < 1e-12
    assert protocol.log_delta(eps, bound="lower") <= mp.log(exact) <= protocol.log_delta(eps) + 1e-9


@pytest.mark.slow
def test_the_bound_by_fewer_reports_is_certified():
    protocol = shuffle.FlippedReports(300, 2, 2, 0.147, view="records")
    assert float(protocol.certify(3.4, bound="upper").mid()) == pytest.approx(protocol.delta(3.4), rel=1e-9)
