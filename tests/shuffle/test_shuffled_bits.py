"""Shuffled bits against enumeration, the reference values and the monotonicity of the exact delta."""

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from shufflebounds import DominatingPair
from shufflebounds.mechanisms import RandomizedResponse
from shufflebounds.shuffle import ShuffledBits
from tests.oracles import at, hockey_stick, hull, log_odds, logarithm, rational, thresholds, with_bit
from tests.strategies import slow, thinned

REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "shuffled-bits.json").read_text())


def both_directions(chances, flip, factor):
    """Return H(P0 || P1) and H(P1 || P0) for other bits that are 1 with the probabilities `chances`."""
    law = [Fraction(1)]
    for chance in chances:
        law = with_bit(law, chance)
    zero, one = with_bit(law, flip), with_bit(law, 1 - flip)
    return hockey_stick(zero, one, factor), hockey_stick(one, zero, factor)


@pytest.mark.parametrize("eps", thinned([0.0, 0.1, 0.5, 1.0, 2.5], 3))
@pytest.mark.parametrize("flip", [1e-6, 0.01, 0.125, 0.3, 0.4375])
def test_every_dataset_of_up_to_twelve_users(flip, eps):
    q, factor = Fraction(flip), rational(eps)
    for users in (1, 2, 3, 5, 8, 12):
        worst = Fraction(0)
        for ones in range(users):
            exact = max(both_directions([1 - q] * ones + [q] * (users - 1 - ones), q, factor))
            worst = max(worst, exact)
            mechanism = ShuffledBits(users, flip, ones=ones)
            lower, upper = (mechanism.log_delta(eps, bound=side) for side in ("lower", "upper"))
            true = logarithm(exact)
            assert lower <= true <= upper
            assert upper == lower == -math.inf or upper - lower <= 1e-10
        for side in ("lower", "upper"):
            value = ShuffledBits(users, flip).log_delta(eps, bound=side)
            true = logarithm(worst)
            assert value <= true if side == "lower" else value >= true
            assert true == -mpmath.inf or abs(value - true) < 2e-9


@pytest.mark.parametrize(
    "entry",
    [
        x
        for x in REFERENCE
        if x["id"].startswith("shuffled-bits/s001.delta") and ("H(P0||P1)" in x["quantity"] or "H(P1||P0)" in x["quantity"])
    ],
    ids=lambda x: x["id"],
)
def test_reference_pairs(entry):
    p = entry["params"]
    mechanism = ShuffledBits(p["n"], float(p["q"]))
    pair = mechanism.pair(p.get("m", 0))
    pair = pair.reverse() if "H(P1||P0)" in entry["quantity"] else pair
    true = mpmath.log(mpmath.mpf(entry["value"]))
    # Rounding the decimal q and eps to doubles changes the logarithm by a few 1e-14.
    assert pair.log_delta(float(p["eps"]), bound="lower") - 1e-13 <= true <= pair.log_delta(float(p["eps"])) + 1e-13
    assert abs(pair.log_delta(float(p["eps"])) - true) < 5e-12


@pytest.mark.parametrize("entry", [x for x in REFERENCE if "delta_exact.n100.lam58" in x["id"]], ids=lambda x: x["id"])
def test_reference_worst_case(entry):
    p = entry["params"]
    mechanism, eps, true = ShuffledBits.boolean_sum(p["n"], p["lam"]), float(p["eps"]), float(entry["value"])
    assert mechanism.delta(eps, bound="lower") <= true * (1 + 1e-13)
    assert true * (1 - 1e-13) <= mechanism.delta(eps) <= true * (1 + 1e-8)


def test_the_worst_dataset_is_not_all_zeros():
    # For a million users and the flip probability of a reference entry, delta is larger by 1.8 % for m = 1466 ones than for no
    # ones.
    mechanism = ShuffledBits(10**6, 5.7017637389136647e-5)
    assert mechanism.delta(1.0, bound="lower") > 1.0176e-9 > ShuffledBits(10**6, mechanism.flip, ones=0).delta(1.0)
    assert mechanism.delta(1.0) < 1.001 * mechanism.delta(1.0, bound="lower") * (1 + 1e-6)


@pytest.mark.slow
@given(users=st.integers(1, 2**53), flip=st.floats(1e-12, 0.5), share=st.floats(0, 1), eps=st.floats(0, 20))
@settings(max_examples=80, deadline=None)
def test_symmetry_and_monotonicity(users, flip, share, eps):
    ones = min(int(share * users), users - 1)
    mechanism = ShuffledBits(users, flip, ones=ones)
    lower, upper = mechanism.log_delta(eps, bound="lower"), mechanism.log_delta(eps)
    assert lower <= upper <= 0
    # Exchanging 0 and 1 does not change delta. A larger eps, more users and more flips do not increase it.
    assert ShuffledBits(users, flip, ones=users - 1 - ones).log_delta(eps, bound="lower") <= upper
    assert mechanism.log_delta(eps + 0.1, bound="lower") <= upper
    if users < 2**53:
        assert ShuffledBits(users + 1, flip, ones=ones).log_delta(eps, bound="lower") <= upper
    assert ShuffledBits(users, min(0.5, 1.5 * flip), ones=ones).log_delta(eps, bound="lower") <= upper


@given(users=st.integers(2, 10**6), flip=st.floats(1e-6, 0.5), eps=st.floats(0, 3), data=st.data())
@settings(max_examples=25, deadline=None)
def test_no_dataset_exceeds_the_worst_case(users, flip, eps, data):
    ones = data.draw(st.integers(0, users - 1))
    assert ShuffledBits(users, flip, ones=ones).log_delta(eps, bound="lower") <= ShuffledBits(users, flip).log_delta(eps)


def test_edges():
    assert ShuffledBits(10, 0.0).delta(5.0) == 1.0
    assert ShuffledBits(10, 0.0).epsilon(0.5, bound="lower") == math.inf
    assert ShuffledBits(10, 0.5).delta(0.0) == 0.0
    assert ShuffledBits(10, 0.1).epsilon(0.0) >= math.log(9)
    assert ShuffledBits(10, 0.1).delta(math.log(9) + 1e-12) == 0.0
    assert ShuffledBits(1, 0.25).delta(0.0, bound="lower") <= 0.5 <= ShuffledBits(1, 0.25).delta(0.0)


@pytest.mark.parametrize(
    ("users", "eps", "delta"),
    [(1000, 0.5, 1e-6), (10**6, 1.0, 1e-9), (10**9, 0.1, 1e-10), (7, 2.0, 1e-3), (1, 1.0, 1e-3), (10, 0.0, 1e-6)],
)
def test_calibration_meets_its_target(users, eps, delta):
    mechanism = ShuffledBits.calibrate(users=users, eps=eps, delta=delta)
    assert mechanism.delta(eps) <= delta
    assert ShuffledBits(users, mechanism.flip * (1 - 1e-6)).delta(eps) > delta * (1 - 2e-3)


@pytest.mark.parametrize("entry", [x for x in REFERENCE if x["id"].startswith("shuffled-bits/s001.qmin0")], ids=lambda x: x["id"])
def test_calibrated_flip_is_at_least_that_for_all_zeros(entry):
    p = entry["params"]
    flip = ShuffledBits.calibrate(users=p["n"], eps=float(p["eps"]), delta=float(p["delta"])).flip
    assert float(entry["value"]) * (1 - 1e-12) <= flip <= 1.01 * float(entry["value"])


def test_pairs_are_dominating_pairs():
    first, second = ShuffledBits(9, 0.2, ones=3).pairs()
    assert isinstance(first, DominatingPair)
    assert first.reverse() == second
    assert second.reverse() == first
    with pytest.raises(TypeError, match="not given by a list"):
        ShuffledBits(9, 0.2).pairs()


def test_protocol_on_data():
    rng = np.random.default_rng(7)
    mechanism = ShuffledBits(2000, 0.1)
    data = np.r_[np.ones(700), np.zeros(1300)]
    estimates = [mechanism.estimate(mechanism.randomize(data, rng)) for _ in range(400)]
    assert abs(np.mean(estimates) - 700) < 5 * math.sqrt(mechanism.variance / 400)
    assert 0.8 < np.var(estimates) / mechanism.variance < 1.25
    assert mechanism.variance == pytest.approx(2000 * 0.1 * 0.9 / 0.64)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"users": 0, "flip": 0.1}, "users=0"),
        ({"users": 10.5, "flip": 0.1}, "users=10.5"),
        ({"users": 2**53 + 1, "flip": 0.1}, "users=9007199254740993"),
        ({"users": 10, "flip": 0.6}, "flip=0.6"),
        ({"users": 10, "flip": -0.1}, "flip=-0.1"),
        ({"users": 10, "flip": math.nan}, "flip=nan"),
        ({"users": 10, "flip": "x"}, "flip='x'"),
        ({"users": 10, "flip": [0.1, 0.2]}, "flip must be a single number"),
        ({"users": 10, "flip": 0.1, "ones": 10}, "ones=10"),
        ({"users": 10, "flip": 0.1, "ones": "best"}, "ones='best'"),
    ],
)
def test_bad_input(arguments, named):
    with pytest.raises(ValueError, match=named.replace("[", r"\[")):
        ShuffledBits(**arguments)


def test_bad_data():
    mechanism = ShuffledBits(3, 0.1)
    for values, named in [([0, 1, 0, 1], "values has 4 entries"), ([0, 1, 2], "values holds 2"), ([0, 1, 0.5], "values holds 0.5"),
                          (1, "values has shape"), ([0, -1], "values holds -1")]:
        with pytest.raises(ValueError, match=named):
            mechanism.randomize(values)
    with pytest.raises(ValueError, match=r"flip=0\.5"):
        ShuffledBits(3, 0.5).estimate([0, 1, 1])


@pytest.mark.parametrize("flip", [5e-324, 1e-310, 1e-300])
def test_tiny_flip_probabilities(flip):
    pair = ShuffledBits(10**6, flip).pair(5)
    assert pair.delta([0.0, 1.0, 600.0]).tolist() == [1.0, 1.0, 1.0]
    # The local budget is ln(1/flip) up to rounding. If all bits are 0 and none is flipped, delta is 1 - e^(eps - ln(1/flip)).
    local, zeros = -math.log(flip), ShuffledBits(10**6, flip).pair(0)
    assert zeros.delta(local - 1) >= 1 - math.exp(-1)
    assert zeros.delta(650.0, bound="lower") >= 1 - math.exp(650 - local) - 1e-12
    assert pair.delta(local * (1 + 1e-12)) == 0.0


@pytest.mark.parametrize("flip", [0.0164878136304006, 0.17955068485443584, 0.31120504405507154, 0.25])
@pytest.mark.parametrize("nudge", thinned([-1e-8, -1e-16, 0.0, 1e-16, 1e-12], 3))
def test_a_tie_of_two_thresholds(flip, nudge):
    # With one other user, the sum of the other bits is 0 or 1. At this e^eps both values are optimal thresholds (a tie).
    q, eps = Fraction(flip), math.log((flip + (1 - flip) ** 2 / flip) / (2 * (1 - flip))) * (1 + nudge)
    pair, law = ShuffledBits(2, flip).pair(1), with_bit([Fraction(1)], 1 - q)
    exact = logarithm(hockey_stick(with_bit(law, q), with_bit(law, 1 - q), rational(eps)))
    assert pair.log_delta(eps, bound="lower") <= exact <= pair.log_delta(eps)


@pytest.mark.parametrize(("users", "flip"), [(8, 0.014173739232655677), (8, 0.12136998752879384), (8, 0.25), (300, 0.3)])
def test_an_ulp_before_the_local_budget(users, flip):
    with mpmath.workdps(60):
        local = mpmath.log((1 - mpmath.mpf(flip)) / mpmath.mpf(flip))
    mechanism, q = ShuffledBits(users, flip, ones=0), Fraction(flip)
    for eps in (float(local) * (1 + k * 2.0**-53) for k in (-64, -8, -2, -1, 0, 1)):
        law = [Fraction(1)]
        for _ in range(users - 1 if users < 10 else 0):
            law = with_bit(law, q)
        if users < 10 and eps < local:
            exact = hockey_stick(with_bit(law, q), with_bit(law, 1 - q), rational(eps))
            assert logarithm(exact) <= mechanism.log_delta(eps)
        # Delta does not increase with eps, up to the rounding of the local budget.
        assert mechanism.log_delta(eps) <= max(mechanism.log_delta(eps * (1 - 1e-12)) + 1e-9, -700)
    assert mechanism.epsilon(0.0) >= local


@pytest.mark.parametrize("flip", [0.06836894533060553, 0.39001121096147023, 0.4397536561156647])
def test_the_pure_budget_is_not_rounded_down(flip):
    with mpmath.workdps(40):
        local = mpmath.log((1 - mpmath.mpf(flip)) / mpmath.mpf(flip))
        assert mpmath.mpf(ShuffledBits(5, flip).epsilon(0.0)) >= local


@pytest.mark.parametrize("flip", [2e-7, 1e-10, 0.3])
def test_curve_over_all_data_of_small_flips(flip):
    # The exact value is computed in fractions, at a level halfway between two vertices of the worst curve.
    mechanism, q = ShuffledBits(6, flip), Fraction(flip)
    levels = [Fraction(x) for x in (flip, 2.5 * flip, 0.2)]
    points = set()
    for ones in range(6):
        law = [Fraction(1)]
        for chance in [1 - q] * ones + [q] * (5 - ones):
            law = with_bit(law, chance)
        zero, one = with_bit(law, q), with_bit(law, 1 - q)
        for p0, p1 in ((zero[::-1], one[::-1]), (one, zero)):
            points.update(thresholds(p0, p1))
    convex = hull(points)
    for level in levels:
        exact = at(convex, level)
        assert Fraction(mechanism.tradeoff(bound="upper").beta(float(level))) >= exact * (1 - Fraction(1, 10**15))
        assert Fraction(mechanism.tradeoff().beta(float(level))) <= exact * (1 + Fraction(1, 10**15))


@pytest.mark.parametrize("eps", [1e5, 1e308])
def test_calibration_beyond_the_local_budget_of_every_flip(eps):
    mechanism = ShuffledBits.calibrate(users=1000, eps=eps, delta=1e-3)
    assert 0 < mechanism.flip < 1e-300
    assert mechanism.delta(eps) <= 1e-3


@pytest.mark.parametrize(("users", "fakes", "flip"), [(1, 3, 0.2), (3, 2, 0.1), (4, 4, 0.2), (4, 5, 0.3), (6, 20, 0.02)])
def test_dummies_are_zeros_that_are_flipped(users, fakes, flip):
    def law(chances):
        out = np.array([1.0])
        for p in chances:
            out = np.convolve(out, [1 - p, p])
        return out

    for eps in (0.0, 0.8):
        truths = []
        for ones in range(users):
            others = [1 - flip] * ones + [flip] * (users - 1 - ones + fakes)
            zero, one = law([*others, flip]), law([*others, 1 - flip])
            truths.append(max(np.maximum(a - math.exp(eps) * b, 0).sum() for a, b in ((zero, one), (one, zero))))
            known = ShuffledBits(users, flip, ones, fakes=fakes)
            assert known.delta(eps) == pytest.approx(truths[-1], rel=1e-11, abs=1e-15)
        worst = ShuffledBits(users, flip, fakes=fakes)
        assert worst.delta(eps, bound="lower") <= max(truths) * (1 + 1e-11)
        assert worst.delta(eps) == pytest.approx(max(truths), rel=1e-6, abs=1e-15)


@pytest.mark.slow
def test_dummies_are_sent_and_subtracted_from_the_estimate():
    bits = ShuffledBits(100, 0.1, fakes=50)
    assert repr(bits) == "ShuffledBits(users=100, flip=0.1, ones='worst', fakes=50)"
    values = (np.arange(100) < 30).astype(int)
    rng = np.random.default_rng(1)
    estimates = [bits.estimate(np.r_[bits.randomize(values, rng), bits.dummies(rng)]) for _ in range(60)]
    assert bits.dummies(1).shape == (bits.fakes,)
    assert np.mean(estimates) == pytest.approx(30, abs=5 * math.sqrt(bits.variance / 60))
    assert bits.variance == pytest.approx(150 * 0.09 / 0.64)
    assert bits.error_quantile(0.05, bound="lower") <= bits.error_quantile(0.05) <= 3 * math.sqrt(bits.variance)


def test_dummies_reduce_the_flip_probability_but_not_the_error():
    few, many = (ShuffledBits.calibrate(users=20, eps=1.0, delta=1e-6, fakes=fakes) for fakes in (0, 200))
    assert many.delta(1.0) <= 1e-6
    assert many.flip < few.flip
    # Zhilyaev, section 4.4, states the contrary.
    assert many.variance > few.variance


@pytest.mark.parametrize("users", [10**12, 10**14, 2**53])
def test_rare_flips_of_many_users_up_to_the_budget(users):
    # A dataset in the middle has a log delta below -1e14 here, which is lost in rounding errors; its upper bound was near 0.
    flip = 5 / users
    shares = np.array([0.01, 0.5, 0.8, 0.9, 0.99, 1 - 1e-9])
    eps = shares * float(log_odds(flip))
    with mpmath.workdps(60):
        q, n = mpmath.mpf(flip), users - 1
        masses = [(1 - q) ** n]
        for k in range(60):
            masses.append(masses[-1] * (n - k) / (k + 1) * q / (1 - q))
        exact = []
        for e in map(mpmath.mpf, eps.tolist()):
            values = [(1 - q - q * mpmath.exp(e)) * masses[k] - mpmath.expm1(e) * sum(masses[:k]) for k in range(60)]
            exact.append(float(mpmath.log(max(values))))
    given, worst = ShuffledBits(users, flip, ones=0), ShuffledBits(users, flip)
    assert (given.log_delta(eps, bound="lower") <= exact).all()
    assert (given.log_delta(eps) >= exact).all()
    assert given.log_delta(eps) == pytest.approx(exact, rel=0, abs=1e-12)
    assert (worst.log_delta(eps) >= exact).all()
    assert (worst.log_delta(eps) - worst.log_delta(eps, bound="lower") < 1e-3).all()
    # the upper bound of eps was 11 % above the lower one for 10**15 users and delta .0065
    assert (np.diff(worst.log_delta(eps)) < 0).all()


def test_a_search_for_eps_that_meets_delta_exactly():
    # The search just below the pure budget returned a bracket of length 0, by which it then divided.
    bits, delta = ShuffledBits(14, 0.49999999999999867, fakes=1), 5.933299420966827e-21
    assert bits.delta(bits.epsilon(delta)) <= delta


def test_few_ones_remain_of_many_after_tilting():
    # 663 ones are expected, 2 after tilting: the change of the mean had an error of 1e-13, which the bound left out, and the
    # difference in the formula of delta enlarges it 300 times.
    users, flip, eps = 339525713806962, 1.953041844321945e-12, 5.801961979089106
    with mpmath.workdps(60):
        q, e, n = mpmath.mpf(flip), mpmath.mpf(eps), users - 1
        masses = [(1 - q) ** n * (q / (1 - q)) ** k * mpmath.binomial(n, k) for k in range(20)]
        exact = mpmath.log(max((1 - q - q * mpmath.exp(e)) * masses[k] - mpmath.expm1(e) * sum(masses[:k]) for k in range(20)))
        bits = ShuffledBits(users, flip, ones=0)
        assert bits.log_delta(eps, bound="lower") <= exact <= bits.log_delta(eps)


@pytest.mark.parametrize(("users", "fakes"), [(1025, 0), (2358, 0), (2358, 10), (10**5, 0)])
@pytest.mark.parametrize("delta", [1e-9, 1.1398781783397431e-06, 1e-5])
def test_eps_next_to_the_budget_is_at_most_that_of_one_message(users, fakes, delta):
    flip = 3.1001358786830034e-06
    with mpmath.workdps(40):
        alone = float(mpmath.log((1 - mpmath.mpf(flip) - mpmath.mpf(delta)) / mpmath.mpf(flip)))
    assert ShuffledBits(users, flip, fakes=fakes).epsilon(delta) <= alone * (1 + 1e-14)


@pytest.mark.parametrize(("users", "flip", "fakes", "eps"), [
    (8911476, 1.432287952250457e-07, 4, 5.6796911778180235), (2807575, 0.1276661938384003, 1, 1.4324923810341677),
    (324996, 0.00010726924102138508, 2, 0.11966079202860982), (17939, 0.0008952349964379688, 1, 0.12631369050278415),
    (8802514, 0.0005747725417343719, 5, 1.0), (441263, 0.0010314488200965962, 6, 0.0624789391052899),
])
def test_dummy_zeros_do_not_raise_the_upper_bound(users, flip, fakes, eps):
    before, after = (ShuffledBits(users, flip, fakes=number) for number in (0, fakes))
    log_delta = before.log_delta(eps)
    assert after.log_delta(eps) <= log_delta + 1e-9 * max(1.0, -1e-3 * log_delta)
    delta = math.exp(max(log_delta, -600.0))
    assert after.epsilon(delta) <= before.epsilon(delta) * (1 + 1e-9)


def test_the_search_for_eps_does_not_end_at_the_budget():
    # A step of the search ended 1.6e-8 before the budget 6.24. The slope there is so steep that the crossing seemed to be near.
    bits, delta = ShuffledBits(8653, 0.0019391022980128957), 0.0012245512887911212
    assert bits.delta(bits.epsilon(delta) - 1e-5) > delta


@pytest.mark.parametrize(("users", "flip", "delta"), [
    (10**15, 5e-15, 0.0066), (588621982, 6.807128333269002e-10, 0.66), (10233905, 2.5828509827565362e-08, 0.767),
    (92581, 4.594112605584905e-05, 0.0142), (10**5, 2.4e-4, 1e-4), (10**5, 2.6e-4, 1e-4),
])
def test_the_bounds_of_eps_with_few_flips_are_where_those_of_delta_cross(users, flip, delta):
    bits = ShuffledBits(users, flip)
    upper, lower = bits.epsilon(delta), bits.epsilon(delta, bound="lower")
    assert bits.delta(upper * (1 - 1e-4)) > delta
    assert bits.delta(lower * (1 + 1e-4), bound="lower") < delta


@pytest.mark.parametrize(("users", "flip", "fakes", "less", "more"), [
    (2029, 0.003740777185251146, 0, 1.1585350858543299e-09, 1.3463470528859065e-09),
    (4785, 0.0006818896013643534, 110, 6.175808387447335e-08, 1.0406983000661625e-07),
    (1152873369, 1.0690407530064703e-08, 0, 2.1500309604163182e-11, 3.947431150645707e-11),
])
def test_eps_next_to_the_budget_falls_with_delta(users, flip, fakes, less, more):
    bits = ShuffledBits(users, flip, fakes=fakes)
    assert bits.epsilon(more) < bits.epsilon(less)


@pytest.mark.parametrize(("users", "flip", "fakes", "less", "more"), [
    (3141065, 4.0220378885959227e-08, 0, 0.283, 0.444), (1072, 1.2057263632192636e-05, 813, 0.302, 0.5878989876832754),
    (1801, 9.746179210156483e-06, 0, 0.08873465249297184, 0.11682168371183996),
    (324834, 9.848122816524894e-06, 2994, 1.5586788565800018, 1.574265645145802),
    (43068, 3.2841035363609366e-05, 0, 0.9068759539531248, 0.915944713492656),
])
def test_log_delta_falls_with_eps_if_bits_are_rarely_flipped(users, flip, fakes, less, more):
    # The tolerance of the search over datasets is 6e-4; log delta falls by less.
    bits = ShuffledBits(users, flip, fakes=fakes)
    assert bits.log_delta(more) < bits.log_delta(less)


def exact_tail(users, flip, eps, fakes=0):
    """The largest probability over all datasets that the loss exceeds eps, in exact rationals."""
    bits = {0: [1 - flip, flip], 1: [flip, 1 - flip]}

    def convolved(one, other):
        out = [Fraction(0)] * (len(one) + len(other) - 1)
        for (i, a), (j, b) in itertools.product(enumerate(one), enumerate(other)):
            out[i + j] += a * b
        return out

    best = 0
    for ones in range(users):
        law = [Fraction(1)]
        for i in range(users - 1 + fakes):
            law = convolved(law, bits[int(i < ones)])
        for target in (0, 1):
            p, q = convolved(law, bits[target]), convolved(law, bits[1 - target])
            best = max(best, sum(a for a, b in zip(p, q) if a > Fraction(math.exp(eps)) * b))
    return best


@pytest.mark.parametrize(("users", "flip"), [(1, 0.25), (2, 0.25), (6, 0.125), (6, 2.0**-40), (9, 0.4375)])
def test_tails_over_all_datasets_are_exact(users, flip):
    """The upper bound was twice the lower one, for five users at a third of the budget."""
    protocol, budget = ShuffledBits(users, flip), math.log((1 - flip) / flip)
    twin = RandomizedResponse(budget).shuffled(users)
    for share in (1e-3, 0.1, 0.31, 0.77, 0.99, 1.01):
        exact = float(exact_tail(users, Fraction(flip), share * budget))
        for one in (protocol, twin):
            lower, upper = (one.loss_tail(share * budget, bound=bound) for bound in ("lower", "upper"))
            assert lower <= upper
            assert (lower, upper) == pytest.approx((exact, exact), rel=1e-9, abs=1e-290)
            # The budget of the twin is rounded.
            assert one is twin or lower <= exact <= upper


@pytest.mark.parametrize(("users", "fakes"), [(1, 1), (3, 2), (2, 3), (4, 4), (1, 6), (2, 5)])
def test_tails_with_dummy_zeros(users, fakes):
    protocol = ShuffledBits(users, 0.25, fakes=fakes)
    for eps in (0.01, 0.3, 0.6, 1.0):
        exact = float(exact_tail(users, Fraction(1, 4), eps, fakes))
        assert protocol.loss_tail(eps, bound="lower") <= exact * (1 + 1e-12)
        assert exact * (1 - 1e-12) <= protocol.loss_tail(eps)
        assert protocol.loss_tail(eps) == pytest.approx(exact, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("users", "flip", "eps"), thinned([
    (1500, 0.01, 0.7), (1500, 0.01, 2.5), (1300, 0.2, 0.15), (1300, 0.2, 0.3),
], 2))
def test_tails_over_all_datasets_of_many_users(users, flip, eps):
    """Sums over all outcomes of every dataset: the upper bound was 2.7 to 4.8 times the lower one."""
    flips = [binom.pmf(np.arange(count + 1), count, flip) for count in range(users)]
    best = 0.0
    for ones in range(users):
        law = np.convolve(flips[ones][::-1], flips[users - 1 - ones])
        zero, one = (np.convolve(law, bit) for bit in ([1 - flip, flip], [flip, 1 - flip]))
        best = max(best, zero[zero > math.exp(eps) * one].sum())
    lower, upper = (ShuffledBits(users, flip).loss_tail(eps, bound=bound) for bound in ("lower", "upper"))
    assert (lower, upper) == pytest.approx((best, best), rel=1e-9)
    twin = RandomizedResponse(math.log1p(-flip) - math.log(flip)).shuffled(users)
    assert twin.loss_tail(eps) == pytest.approx(best, rel=1e-6)
    assert twin.loss_tail(eps, bound="lower") == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize(("users", "flip", "eps"), [
    (10**5, 0.01, 0.05), (10**6, 5.7e-5, 1.0), (10**6, 0.1, 0.005), (10**9, 1e-3, 0.004), (2**53, 1e-14, 0.7),
])
def test_tails_of_many_users_are_at_least_those_of_equal_bits(users, flip, eps):
    """The other users' bits are all 0 or all 1, and the probabilities are computed in 40 digits."""
    lower, upper = (ShuffledBits(users, flip).loss_tail(eps, bound=bound) for bound in ("lower", "upper"))
    assert lower <= upper <= 1.13 * lower
    with mpmath.workdps(40):
        others, q, gain = users - 1, mpmath.mpf(flip), mpmath.exp(eps)
        rho = (1 - q - q * gain) / ((1 - q) * gain - q)
        for chance in (q, 1 - q):
            # W(k - 1)/W(k) = k (1 - c)/((N + 1 - k) c) is below rho if k is below a number that is not an integer.
            odds = chance / (1 - chance)
            k = int(mpmath.floor(rho * odds * (others + 1) / (1 + rho * odds)))
            mass = mpmath.exp(mpmath.loggamma(others + 1) - mpmath.loggamma(k + 1) - mpmath.loggamma(others - k + 1)
                              + k * mpmath.log(chance) + (others - k) * mpmath.log(1 - chance))
            tail = (1 - q) * mass
            while k > 0 and mass > 1e-20 * tail:
                mass *= k / (odds * (others + 1 - k))
                tail += mass
                k -= 1
            assert tail <= upper
            # Few of the other users' bits are 1 in the worst dataset.
            assert tail >= 0.3 * lower or chance > q


@pytest.mark.parametrize(("users", "flip"), [(300, 0.27), slow(1024, 1e-12), slow(1024, 0.3)])
def test_tails_of_pairs_are_at_most_those_of_all_datasets(users, flip):
    protocol = ShuffledBits(users, flip)
    eps = protocol.epsilon(1e-3) * np.array([0.3, 0.9, 1.5])
    lower, upper = (protocol.loss_tail(eps, bound=bound) for bound in ("lower", "upper"))
    assert lower == pytest.approx(upper, rel=1e-9, abs=1e-290)
    pairs = [protocol.pair(ones) for ones in (0, 1, users // 4, users // 2, users - 1)]
    assert all((pair.loss_tail(eps, bound="lower") <= upper * (1 + 1e-12)).all() for pair in pairs)


@pytest.mark.parametrize(
    ("users", "fakes", "flip", "delta", "step"),
    thinned([
        (995_345, 15, 0.0007111048411852222, 0.007880568129026704, {"fakes": 44}),
        (31_726_661, 748_635, 2.221466699752142e-06, 1.9861373482880322e-11, {"fakes": 748_641}),
        (18_117, 0, 0.006986872873986918, 7.503142502703937e-07, {"flip": 0.006986877524489463}),
        (11_274, 3, 0.00636362092360049, 2.070566215232403e-05, {"flip": 0.006363648601047939}),
        (3_014_535, 4, 3.418032490399672e-05, 1.0421002355400147e-07, {"users": 3_014_536}),
        (1_859_836, 83, 0.0012759865205115544, 0.0003515644740205396, {"fakes": 96}),
        (49_153, 8, 0.003650510787849116, 0.006726959051426161, {"flip": 0.0036507202986568733}),
        (6_401_855, 7, 3.518717018488012e-05, 6.975479206804814e-05, {"fakes": 22}),
    ], 1),
)
def test_bounds_over_all_datasets_do_not_rise_along_a_small_step(users, fakes, flip, delta, step):
    # The search stopped within 6e-4 of the worst case in log delta, which is more than these steps change.
    before = {"users": users, "fakes": fakes, "flip": flip}
    bits, after = ShuffledBits(**before), ShuffledBits(**{**before, **step})
    eps = bits.epsilon(delta)
    assert after.epsilon(delta) <= eps * (1 + 1e-9)
    assert after.log_delta(eps) <= bits.log_delta(eps) + 1e-9
    assert eps <= bits.epsilon(delta, bound="lower") * (1 + 1e-9)


@pytest.mark.parametrize(
    ("users", "flip", "eps"),
    thinned([(10**9, 1e-8, 1.5), (10**6, 2.0**-10, 0.1), (300_000, 0.25, 0.01), (10**5, 0.4, 0.05), (10**5, 0.4999, 1e-4),
     (2_000_000, 1e-5, 7.0)], 1),
)
def test_log_delta_over_all_datasets_is_known_to_1e_9(users, flip, eps):
    bits = ShuffledBits(users, flip)
    assert bits.log_delta(eps) - bits.log_delta(eps, bound="lower") <= 1.1e-9
