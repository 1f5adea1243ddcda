"""Flipped reports against enumeration of sums and of records, reference values and simulation."""

import functools
import itertools
import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shufflebounds._engines.bits import records as _record_pair
from shufflebounds.shuffle import ClearReports, FlippedReports, ShuffledBits, flipped_reports
from tests.fuzz.compositions import best
from tests.oracles import assert_encloses, coin, hockey_stick, logarithm, multiset, power, rational, references, total
from tests.strategies import slow, thinned


def record(held, bins, flip):
    """Return the distribution of one flipped record of a user in bin `held`; `held` is None for a uniform dummy report."""
    if held is None:
        law = {}
        for other in range(bins):
            for shown, p in record(other, bins, flip).items():
                law[shown] = law.get(shown, 0) + p / bins
        return law
    q = Fraction(flip)
    return {
        shown: math.prod(1 - q if bit == (j == held) else q for j, bit in enumerate(shown))
        for shown in itertools.product((0, 1), repeat=bins)
    }


def sums(data, bins, flip):
    """Return the distribution of the sums of all records."""
    law = {(0,) * bins: Fraction(1)}
    for held in data:
        law = total(law, record(held, bins, flip))
    return law


def shuffled(data, bins, flip):
    """Return the distribution of the multiset of all records."""
    law = {}
    for drawn in itertools.product(*(record(held, bins, flip).items() for held in data)):
        key = multiset([shown for shown, _ in drawn])
        law[key] = law.get(key, 0) + math.prod(p for _, p in drawn)
    return law


def worst(law, users, fakes, bins, flip, factor, *, known=False):
    """Return the largest hockey-stick divergence over all datasets, including known dummies, and both orders."""
    pairs = every_pair(law, users, fakes, bins, flip, known)
    return max(hockey_stick(*order, factor) for pair in pairs for order in (pair, pair[::-1]))


@functools.cache
def every_pair(law, users, fakes, bins, flip, known):
    """Return the distributions with the target in bin 0 and in bin 1, for all datasets; they serve every eps."""
    rest = [None] * fakes if not known else []
    return [
        tuple(law([target, *others, *rest], bins, flip) for target in range(2))
        for others in itertools.combinations_with_replacement(range(bins), users - 1 + (fakes if known else 0))
    ]


@pytest.mark.parametrize("eps", [0.0, 0.3, 1.0, 2.0])
@pytest.mark.parametrize(
    ("users", "fakes", "bins", "flip", "fake"),
    [
        (1, 0, 2, 0.25, "known"),
        (3, 0, 3, 0.2, "known"),
        slow(5, 0, 3, 0.125, "known"),
        (4, 0, 2, 0.2, "known"),
        (2, 2, 3, 0.25, "known"),
        (1, 3, 2, 0.1, "uniform"),
        (3, 1, 2, 0.3, "uniform"),
        (2, 4, 2, 0.2, "uniform"),
    ],
)
def test_sums_over_every_dataset(users, fakes, bins, flip, fake, eps):
    exact = worst(sums, users, fakes, bins, flip, rational(eps), known=fake == "known")
    assert_encloses(FlippedReports(users, fakes, bins, flip, view="sums", fake=fake), eps, exact, apart=3e-9)


@pytest.mark.slow
@pytest.mark.parametrize("distance", [1e-9, 2.0**-53])
@pytest.mark.parametrize(("users", "fakes", "fake"), [(5, 0, "known"), (2, 3, "known"), (1, 0, "known"), (2, 2, "uniform")])
def test_sums_over_every_dataset_with_flip_probabilities_near_a_half(users, fakes, fake, distance):
    # All likelihood ratios are within 8 `distance` of 1.
    flip = 0.5 - distance
    for eps in (0.0, distance, 2.3 * distance, 7.9 * distance, 8 * distance * (1 - 1e-9)):
        exact = worst(sums, users, fakes, 2, flip, rational(eps), known=fake == "known")
        protocol = FlippedReports(users, fakes, 2, flip, view="sums", fake=fake)
        if fake == "known":
            assert_encloses(protocol, eps, exact, apart=1e-8)
        else:
            # the search among uniform dummies has errors of 4e-12 in delta; the bound of known dummies is within a factor of 20
            low, high = protocol.log_delta(eps, bound="lower"), protocol.log_delta(eps)
            assert low <= logarithm(exact) <= high
            assert high == -math.inf or high - low < 1 or high < logarithm(exact) + 3


@pytest.mark.parametrize(("users", "fakes", "bins", "flip"), [(2, 2, 3, 0.2), slow(2, 1, 4, 0.125), (1, 3, 3, 0.1)])
def test_sums_of_more_bins_among_uniform_dummies_are_within_the_bounds(users, fakes, bins, flip):
    mechanism = FlippedReports(users, fakes, bins, flip, view="sums")
    for eps in (0.0, 0.3, 1.0, 2.0):
        exact = worst(sums, users, fakes, bins, flip, rational(eps))
        assert_encloses(mechanism, eps, exact, apart=2.5)


def test_the_sums_of_other_bins_are_informative_among_uniform_dummies():
    # The sum of the third bin depends on the number of dummy reports outside of the first two bins.
    exact, two = (worst(law, 2, 2, 3, 0.2, rational(1.0)) for law in (sums, lambda *a: first_two(sums(*a))))
    assert exact > two
    assert FlippedReports(2, 2, 3, 0.2, view="sums").delta(1.0, bound="lower") == pytest.approx(float(two), rel=1e-9)


def first_two(law):
    """Return the distribution of the first two sums."""
    out = {}
    for seen, p in law.items():
        out[seen[:2]] = out.get(seen[:2], 0) + p
    return out


@pytest.mark.parametrize(
    ("users", "fakes", "bins", "flip", "eps"), [slow(3, 2, 3, 0.125, 0.5), (4, 1, 4, 0.25, 0.0), slow(2, 3, 3, 0.25, 1.0)]
)
def test_two_releases_among_uniform_dummies_use_the_sums_of_both_bins(users, fakes, bins, flip, eps):
    # All other users are in the target's bin. Either order of the pair may be chosen for the second release.
    laws = [first_two(sums([target] + [0] * (users - 1) + [None] * fakes, bins, flip)) for target in (0, 1)]
    pairs = [[(law[seen], other[seen]) for seen in law] for law, other in (laws, laws[::-1])]
    factor = rational(eps)
    plain, adaptive = max(best([[pair], [pair]], factor) for pair in pairs), best([pairs, pairs], factor)
    twice = FlippedReports(users, fakes, bins, flip, view="sums").self_compose(2)
    lower = twice.delta(eps, bound="lower")
    assert plain * Fraction(9999, 10000) <= Fraction(lower) <= adaptive
    assert adaptive <= twice.delta(eps)



@pytest.mark.parametrize("eps", thinned([0.0, 0.3, 1.0, 2.0], 2))
@pytest.mark.parametrize(
    ("users", "fakes", "flip", "fake"),
    [(1, 0, 0.25, "known"), (3, 0, 0.2, "uniform"), (4, 0, 0.125, "known"), (2, 2, 0.2, "uniform"), (2, 1, 0.3, "known")],
)
def test_records_of_two_bins_over_every_dataset(users, fakes, flip, fake, eps):
    exact = worst(shuffled, users, fakes, 2, flip, rational(eps), known=fake == "known")
    assert_encloses(FlippedReports(users, fakes, 2, flip, view="records", fake=fake), eps, exact, apart=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("users", "fakes", "bins", "flip", "fake"),
    [(3, 0, 3, 0.2, "uniform"), (2, 1, 3, 0.3, "uniform"), (1, 2, 3, 0.25, "uniform"), (2, 1, 3, 0.25, "known")],
)
def test_records_of_more_bins_are_within_the_bounds(users, fakes, bins, flip, fake):
    mechanism = FlippedReports(users, fakes, bins, flip, view="records", fake=fake)
    for eps in (0.0, 0.5, 1.5):
        exact = worst(shuffled, users, fakes, bins, flip, rational(eps), known=fake == "known")
        assert_encloses(mechanism, eps, exact, apart=math.inf)


@pytest.mark.parametrize(("users", "bins", "flip", "lower", "upper"), [
    (10**3, 10, 0.25, 0.3095, 0.3125), (10**4, 10, 0.25, 0.08996, 0.09004), (10**6, 10, 0.25, 0.007452, 0.007455),
    (10**4, 2, 0.25, 0.07651, 0.07659), (10**5, 10, 0.1, 0.12532, 0.12544),
])
def test_records_are_reports_of_rappor(users, bins, flip, lower, upper):
    # The values are those of an independent implementation (a sum over a contour for the upper bound).
    protocol = FlippedReports(users, 0, bins, flip, view="records")
    assert protocol.epsilon(1e-6, bound="lower") == pytest.approx(lower, rel=2e-4)
    assert protocol.epsilon(1e-6) <= upper
    known = FlippedReports(users - 5, 5, bins, flip, view="records", fake="known")
    assert known.epsilon(1e-6) == protocol.epsilon(1e-6)


def test_few_records_of_two_and_three_bins_are_exact():
    # Log delta is largest for the dataset in which all other users are in the third bin, here with q = 1/4.
    protocol = FlippedReports(5, 0, 3, 0.25, view="records")
    assert protocol.log_delta(0.5) == pytest.approx(-1.3884, abs=5e-5)
    assert protocol.log_delta(0.5, bound="lower") == pytest.approx(protocol.log_delta(0.5), abs=1e-9)
    assert protocol.log_delta(1.0) == pytest.approx(-1.977, abs=5e-4)


@pytest.mark.parametrize(("fakes", "lower"), [(10**3, 0.0779), (10**4, 0.0441), slow(10**5, 0.01552)])
def test_records_among_uniform_dummies_are_tested_by_a_sum_of_scores(fakes, lower):
    assert FlippedReports(10**4, fakes, 10, 0.25, view="records").epsilon(1e-6, bound="lower") >= lower


@pytest.mark.parametrize(
    ("users", "fakes", "bins", "flip"), thinned([(3, 1, 3, 0.2), (2, 2, 2, 0.25), slow(3, 2, 3, 0.125), slow(2, 1, 4, 0.2)], 2)
)
def test_the_tests_of_scores_are_below_the_exact_value_of_their_dataset(users, fakes, bins, flip):
    data = [2 if bins > 2 else 0] * (users - 1) + [None] * fakes
    first, second = (shuffled([target, *data], bins, flip) for target in (0, 1))
    for eps in (0.0, 0.3, 1.0):
        exact = hockey_stick(first, second, rational(eps))
        found = FlippedReports(users, fakes, bins, flip, view="records").log_delta(eps, bound="lower")
        assert math.log(exact) - 0.1 <= found <= math.log(exact)


@pytest.mark.parametrize("eps", [0.0, 650.0, 690.0])
@pytest.mark.parametrize("view", ["sums", "records"])
def test_lower_bounds_where_a_flip_is_below_an_ulp(view, eps):
    # The two values of the target's record differ by at most p^2 - e^eps q^2; without dummies the sums do, too.
    flip = mp.mpf(1e-150)
    protocol = FlippedReports(100, 5, 2, 1e-150, view=view)
    exact = mp.log((1 - flip) ** 2 - mp.exp(mp.mpf(eps)) * flip**2)
    assert protocol.log_delta(eps, bound="lower") <= exact + 1e-9


def test_blanket_is_an_upper_bound_for_two_enumerated_bins():
    from shufflebounds._engines.bits import records as _record_pair

    for users, fakes, flip in ((6, 0, 0.2), (12, 0, 0.3), (5, 7, 0.25), (20, 4, 0.4)):
        for eps in (0.0, 0.3, 1.0, 1.4):
            low = _record_pair.enumerated(users - 1, fakes, flip, eps)[0]
            assert low <= _record_pair.blanket_bound(_record_pair.blanket(users - 1, fakes, 2, flip), flip, eps)
            assert low <= _record_pair.local(flip, eps)
            assert _record_pair.projected(users - 1, fakes, 2, flip, eps) <= _record_pair.enumerated(users - 1, fakes, flip, eps)[1]


def test_proposition_is_false_for_records():
    # For three users, q = 1/5 and E = 2, delta is 6839/15625 for records and 1024/3125 for sums.
    for view, exact in (("records", Fraction(6839, 15625)), ("sums", Fraction(1024, 3125))):
        assert_encloses(FlippedReports(3, 0, 2, 0.2, view=view), math.log(2), exact, apart=1e-9)
    # This is the published flip probability of (5.16) for n = 10**4, eps = 1 and delta = 1e-6.
    assert FlippedReports(10**4, 0, 2, 0.0305, view="sums").delta(1.0) < 1e-28
    assert FlippedReports(10**4, 0, 2, 0.0305, view="records").delta(1.0, bound="lower") > 1.8e-3


@pytest.mark.parametrize("entry", references("s001.record_level"), ids=lambda e: e["id"])
def test_reference_records_of_one_dataset(entry):
    p, exact = entry["params"], float(entry["value"])
    mechanism = FlippedReports(p["n"], 0, 2, float(p["q"]), view="records")
    # The reference value is for one dataset, so the maximum is at least this value.
    assert mechanism.delta(float(p["eps"])) >= exact
    assert mechanism.delta(float(p["eps"]), bound="lower") == pytest.approx(exact, rel=1e-3)


@pytest.mark.parametrize("entry", references("s001.fakeflip.sums"), ids=lambda e: e["id"])
def test_reference_sums_among_uniform_dummies(entry):
    p, exact = entry["params"], float(entry["value"])
    mechanism = FlippedReports(p["n"], p["m"], p["d"], float(Fraction(p["q"])), view="sums")
    eps = math.log(float(Fraction(p["E"])))
    # The reference value is for the sums of two bins, which determine delta only if there are no other bins.
    assert mechanism.delta(eps, bound="lower") == pytest.approx(exact, rel=2e-10)
    assert mechanism.delta(eps) >= exact
    if p["d"] == 2:
        assert mechanism.delta(eps) == pytest.approx(exact, rel=2e-10)


def test_all_others_in_the_bin_that_the_target_leaves_are_the_worse_dataset():
    # For n = 6, q = 1/5 and e^eps = 3, delta is .12670 for this dataset, and .10114 if no other user is in the target's bins.
    mechanism = FlippedReports(6, 0, 3, 0.2, view="sums")
    assert mechanism.delta(math.log(3)) == pytest.approx(0.12670, abs=5e-6)
    # The flip probability 42.649/n is calibrated for the dataset with no other user in the target's bins. It is too small for this
    # dataset.
    assert FlippedReports(10**6, 0, 100, 42.649e-6, view="sums").delta(1.0, bound="lower") > 4.7e-6


@pytest.mark.slow
@given(
    users=st.integers(1, 10**7),
    fakes=st.integers(0, 10**6),
    bins=st.integers(2, 10**4),
    flip=st.floats(1e-4, 0.3),
    eps=st.floats(0, 1.5),
    view=st.sampled_from(["sums", "records"]),
)
@settings(max_examples=6, deadline=None)
def test_symmetry_and_monotonicity(users, fakes, bins, flip, eps, view):
    users = min(users, max(1, int(300 / flip)))
    fakes = min(fakes, int(300 / flip))
    known, uniform = (FlippedReports(users, fakes, bins, flip, view=view, fake=fake) for fake in ("known", "uniform"))
    for mechanism in (known, uniform):
        assert mechanism.log_delta(eps, bound="lower") <= mechanism.log_delta(eps) <= 0
    assert uniform.log_delta(eps, bound="lower") <= known.log_delta(eps)
    assert uniform.log_delta(eps) <= ClearReports(fakes, bins).log_delta(eps)


def test_edges():
    assert FlippedReports(10, 0, 3, 0.0, view="sums").delta(5.0) == 1.0
    assert FlippedReports(10, 50, 3, 0.0, view="records").delta(0.5) == ClearReports(50, 3).delta(0.5)
    assert FlippedReports(10, 0, 3, 0.5, view="records").delta(0.0) == 0.0
    assert FlippedReports(10, 0, 3, 0.2, view="records").delta(2 * math.log(4) + 1e-12) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("users", "bins", "fakes", "view", "eps", "delta"),
    [(10**6, 1000, 0, "sums", 1.0, 1e-6), (10**4, 10, 0, "records", 1.0, 1e-6), (50, 5, 40, "sums", 0.7, 1e-3)],
)
def test_calibration_meets_its_target(users, bins, fakes, view, eps, delta):
    mechanism = FlippedReports.calibrate(users=users, bins=bins, eps=eps, delta=delta, fakes=fakes, view=view)
    assert mechanism.delta(eps) <= delta
    less = FlippedReports(users, fakes, bins, mechanism.flip * (1 - 1e-2), view=view)
    assert less.delta(eps) > delta
    assert FlippedReports.calibrate(users=10, bins=100, eps=1.0, delta=1e-6, fakes=4261, view="sums").flip == 0


@pytest.mark.slow
@pytest.mark.parametrize("view", ["sums", "records"])
def test_protocol_on_data(view):
    mechanism = FlippedReports(200, 60, 5, 0.1, view=view)
    rng = np.random.default_rng(9)
    data = np.repeat(np.arange(5), [0, 20, 40, 60, 80])
    errors = np.array([mechanism.estimate(counts=mechanism.simulate(data, rng)) for _ in range(3000)]) - np.bincount(data)
    assert (np.abs(errors.mean(axis=0)) < 5 * math.sqrt(mechanism.variance / 3000)).all()
    assert errors.var(axis=0) == pytest.approx(np.full(5, mechanism.variance), rel=0.15)
    for held, error in zip((0, 20, 40, 60, 80), errors.T):
        tail = mechanism.error_tail(10, held)
        assert abs(np.mean(np.abs(error) > 10) - tail) < 5 * math.sqrt(tail / 3000)
        assert mechanism.error_tail(10) >= tail * (1 - 1e-9)


def test_error_tail_and_variance_of_one_bin():
    users, fakes, bins, flip, held = 4, 3, 4, 0.125, 1
    mechanism = FlippedReports(users, fakes, bins, flip, view="sums")
    q, share = Fraction(flip), Fraction(1, bins)
    law = total(power(coin(1 - q), held), power(coin(q), users - held))
    law = total(law, power(coin(share * (1 - q) + (1 - share) * q), fakes))
    errors = {s: (s - (users + fakes) * q) / (1 - 2 * q) - Fraction(fakes, bins) - held for s in law}
    assert mechanism.variance == pytest.approx(float(sum(p * errors[s] ** 2 for s, p in law.items())), rel=1e-12)
    for a in (0, 0.5, 1, 2, 3.5):
        exact = sum((p for s, p in law.items() if abs(errors[s]) > Fraction(a)), Fraction(0))
        low, high = (mechanism.error_tail(a, held, bound=side) for side in ("lower", "upper"))
        assert low * (1 - 1e-14) <= exact <= high * (1 + 1e-14)
        assert high - low <= 1e-9


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: FlippedReports(0, 0, 2, 0.1, view="sums"), "users=0"),
        (lambda: FlippedReports(1, -1, 2, 0.1, view="sums"), "fakes=-1"),
        (lambda: FlippedReports(1, 0, 1, 0.1, view="sums"), "bins=1"),
        (lambda: FlippedReports(1, 0, 2, 0.6, view="sums"), r"flip=0\.6"),
        (lambda: FlippedReports(1, 0, 2, 0.1, view="bits"), "view='bits'"),
        (lambda: FlippedReports(1, 0, 2, 0.1, view="sums", fake="none"), "fake='none'"),
        (lambda: FlippedReports(2**53, 1, 2, 0.1, view="sums"), "users=9007199254740992 plus fakes=1"),
        (lambda: FlippedReports(2, 0, 2, 0.1, view="sums").simulate([0]), "values has 1 entries"),
        (lambda: FlippedReports(2, 0, 2, 0.1, view="sums").randomize([0, 1, 1]), "values has 3 entries"),
        (lambda: FlippedReports(2, 0, 2, 0.1, view="sums").estimate(counts=[3, 0]), "counts holds 3"),
        (lambda: FlippedReports(2, 0, 2, 0.1, view="sums").estimate([3, 0]), "messages has shape"),
        (lambda: FlippedReports(2, 0, 2, 0.5, view="sums").estimate(counts=[1, 1]), r"flip=0\.5"),
        (lambda: FlippedReports(2, 0, 2, 0.1, view="sums").error_tail(1, 3), "truth=3"),
    ],
)
def test_bad_input(call, named):
    with pytest.raises(ValueError, match=named):
        call()


def test_the_view_must_be_named():
    with pytest.raises(TypeError, match="view"):
        FlippedReports(1, 0, 2, 0.1)


@pytest.mark.parametrize("fake", ["known", "uniform"])
@pytest.mark.parametrize("eps", [0.0, 1.0, 700.0])
def test_tiny_flip_probabilities_without_warnings(fake, eps):
    mechanism = FlippedReports(1000, 1, 2**53, 1e-300, view="sums", fake=fake)
    assert 0 <= mechanism.delta(eps, bound="lower") <= mechanism.delta(eps) <= 1
    assert mechanism.delta(eps) > 1 - 1e-9


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("view", ["sums", "records"])
def test_few_dummies_are_no_mistake_because_bits_are_flipped(view):
    # The warning of ClearReports, that a bin without dummy reports shows a user, is about exact reports.
    mechanism = FlippedReports(10, 1, 3, 0.1, view=view)
    assert 0 < mechanism.delta(1.0, bound="lower") <= mechanism.delta(1.0) < 1
    assert mechanism.clear.fakes == 1


@pytest.mark.slow
@pytest.mark.parametrize(("users", "flip", "eps"), [(10**7, 0.1, 1.0), (10**8, 0.1, 0.01), (10**9, 0.01, 0.5)])
def test_sums_of_many_users_have_bounds(users, flip, eps):
    sums = FlippedReports(users, 0, 4, flip, view="sums")
    lower, upper = sums.log_delta(eps, bound="lower"), sums.log_delta(eps)
    one_bin = ShuffledBits(users, flip, ones=0).log_delta(eps, bound="lower")
    assert -math.inf < one_bin <= upper
    assert -math.inf < lower <= upper < -100


@pytest.mark.slow
def test_sums_wider_than_tables_over_all_data():
    wide = FlippedReports(10**9, 2**43 - 10**9, 2, 1e-3, view="sums", fake="known")
    lower, upper = wide.log_delta(1e-6, bound="lower"), wide.log_delta(1e-6)
    assert ShuffledBits(2**43, 1e-3, ones=0).log_delta(1e-6, bound="lower") - 1e-9 <= upper
    assert -math.inf < lower <= upper < 0


def test_the_pair_of_one_bin_attains_its_sum_in_both_orders():
    others, fakes, bins, flip, eps = 5, 3, 4, 0.25, 0.25
    shown = (1 - Fraction(flip)) / bins + (1 - Fraction(1, bins)) * Fraction(flip)
    rest = total(power(coin(Fraction(flip)), others), power(coin(shown), fakes))
    zero, one = (total(rest, coin(chance)) for chance in (Fraction(flip), 1 - Fraction(flip)))
    values = [pair.hockey_stick(np.array([eps])).alone() for pair in _record_pair.one_bin_pairs(others, fakes, bins, flip)]
    exact = sorted(math.log(hockey_stick(*order, rational(eps))) for order in ((zero, one), (one, zero)))
    for (lower, upper), value in zip(sorted(values), exact, strict=True):
        assert value - 1e-9 <= lower <= value + 1e-14
        assert value - 1e-14 <= upper <= value + 1e-9


@pytest.mark.slow
def test_bounds_for_curves_do_not_rise_where_tables_end():
    # Below log delta = -540 there are no tables, and few datasets are evaluated. The delta at a smaller eps is then the better
    # upper bound.
    protocol = FlippedReports(30_000, 0, 32, 0.04, view="sums", fake="uniform")
    lower, upper = protocol._closed.roughly(np.array([0.1, 1.0, 2.0, 3.3, 5.0]))
    assert np.all(np.diff(upper) <= 0)
    assert np.all(lower <= upper)
    assert upper[3] < -400


@pytest.mark.parametrize(
    ("others", "fakes", "bins", "flip"), [(40, 0, 2, 0.3), (25, 60, 7, 0.05), (300, 0, 2, 0.02), (1, 500, 20, 0.4)]
)
def test_the_best_number_of_records_is_found_near_the_saddle_point(others, fakes, bins, flip):
    q, p = flip, 1 - flip
    shown = (p * p + q * q) / bins + (1 - 2 / bins) * p * q
    masses = np.ones(1)
    for one, count in ((q * q, others), (shown, fakes)):
        for _ in range(count):
            masses = np.convolve(masses, [1 - one, one])
    sums = np.cumsum(masses)
    for eps in (0.0, 0.02, 0.1, 0.5, 1.0):
        below = np.append(0.0, sums[:-1])
        gains = (1 - q * q) * sums + q * q * below - math.exp(eps) * ((1 - p * p) * sums + p * p * below)
        found = _record_pair.projected(others, fakes, bins, flip, eps)
        best = math.log(gains.max()) if gains.max() > 1e-12 else -math.inf
        assert found == pytest.approx(best, abs=1e-9) if best > -math.inf else found < -25


def test_merged_outcomes_are_a_close_lower_bound():
    # With 1e8 users the sum has more values than outcomes are kept (2**12): neighbouring values are merged.
    pair = _record_pair.projected_pair(10**8 - 1, 0, 2, 0.2)
    assert pair.atoms.loss.size <= 2**12 + 1
    eps = np.array([0.0, 1e-4, 3e-4])
    merged = pair.atoms.log_delta(eps)
    single = [_record_pair.projected(10**8 - 1, 0, 2, 0.2, at) for at in eps.tolist()]
    assert (merged.lower <= single).all()
    assert merged.lower == pytest.approx(single, abs=0.02)


def test_several_releases_of_records_have_a_lower_bound_above_that_of_one():
    protocol = FlippedReports(10**6, 0, 5, 0.3, view="records")
    many = protocol.self_compose(30)
    one, lower, upper = protocol.epsilon(1e-6, bound="lower"), many.epsilon(1e-6, bound="lower"), many.epsilon(1e-6)
    assert 4 * one < lower < upper < 3 * lower


def test_sums_are_searched_only_below_the_bound_without_flips(monkeypatch):
    protocol = FlippedReports(10**4, 10**6, 100, 1e-3, view="sums")
    clear = ClearReports(10**6, 100)
    high = clear._log_side_at(0.02, upper=True)
    assert protocol.log_delta(0.02) <= high
    searched = []
    monkeypatch.setattr("shufflebounds._engines.bits.two_counts.maximize_over_two_counts", lambda *args: searched.append(args))
    assert FlippedReports(10**4, 10**6, 100, 1e-3, view="sums").log_delta(0.02) == high
    assert not searched


@pytest.mark.parametrize("protocol", [
    FlippedReports(100, 1, 10**9, 0.49999, view="sums"), FlippedReports(10**6, 0, 10, 0.25, view="sums"),
    FlippedReports(50, 0, 3, 0.1, view="records"),
])  # fmt: skip
def test_smallest_pure_budget_without_a_search(protocol):
    # If every report is one in the first bin and zero in the second, the likelihood ratio of the target is e to the budget.
    odds = 1 / Fraction(protocol.flip) - 1
    with mp.workdps(50):
        budget = 2 * mp.log(mp.mpf(odds.numerator) / odds.denominator)
    assert budget * (1 - 1e-15) <= protocol.epsilon(0.0, bound="lower") <= budget


@pytest.mark.slow
def test_one_bound_of_sums_without_tables_does_not_need_the_other():
    flipped = FlippedReports(10**4, 0, 100, 0.0376, view="sums")
    sums = flipped._closed._twice
    both, composed = sums.log_delta(np.array([6.0])), sums.sides
    for upper, word in enumerate(("lower", "upper")):
        # Without the other composition, an attempt to compute the other bound would raise an error.
        sums.__dict__["composed"] = tuple(one if at == upper else None for at, one in enumerate(composed))
        assert flipped.log_delta(6.0, bound=word) == both[upper][0] < -600


@pytest.mark.parametrize(("view", "users", "fakes", "flip", "eps"), [
    ("records", 22, 2, 0.14708519072458232, 3.5152954439362434), ("records", 4, 20, 0.2, 2.0),
    ("sums", 126, 2, 0.147, 1.0), slow("sums", 64, 64, 0.1, 1.0),
])
def test_more_reports_than_are_searched_have_no_larger_bound(view, users, fakes, flip, eps):
    """One more user or dummy report is post-processing; log delta rose by up to 7."""
    before = FlippedReports(users, fakes, 2, flip, view=view).log_delta(eps)
    for more in ((1, 0), (0, 1), (20, 3)):
        after = FlippedReports(users + more[0], fakes + more[1], 2, flip, view=view)
        assert after.log_delta(eps, bound="lower") <= after.log_delta(eps) <= before


@pytest.mark.parametrize(("users", "bins", "flip", "eps"), [(200, 3, 0.3, 0.8), slow(10**6, 100, 0.3, 0.01)])
def test_records_of_dummies_in_unknown_bins_reveal_no_more_than_in_known_ones(users, bins, flip, eps):
    """Delta is convex, so it is at most a mean over the bins; log delta of 10^6 users and dummies was -31, with known bins -49."""
    for fakes in (1, users):
        known, unknown = (FlippedReports(users, fakes, bins, flip, view="records", fake=fake) for fake in ("known", "uniform"))
        assert unknown.log_delta(eps, bound="lower") <= unknown.log_delta(eps) <= known.log_delta(eps)


@pytest.mark.parametrize("view", ["records", "sums"])
def test_delta_of_fewer_reports_is_an_upper_bound(view, monkeypatch):
    """If fewer reports are searched, the bound is not below delta over all datasets of all reports."""
    for users, fakes, flip, eps in ((14, 1, 0.2, 0.6), (5, 9, 0.1, 1.5), (3, 17, 0.3, 0.1), (16, 4, 0.4, 0.3)):
        exact = FlippedReports(users, fakes, 2, flip, view=view).log_delta(eps, bound="lower")
        with monkeypatch.context() as patched:
            patched.setattr(_record_pair, "ENUMERATED", 10)
            patched.setattr(flipped_reports, "SEARCHED", 10)
            bound = FlippedReports(users, fakes, 2, flip, view=view).log_delta(eps)
        assert exact <= bound
