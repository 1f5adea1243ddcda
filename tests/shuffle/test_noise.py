"""Binomial noise against enumeration and reference values; symmetry and monotonicity of delta."""

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shufflebounds import DominatingPair
from shufflebounds.shuffle import BinomialNoise
from tests.errors import distance, log_of, reference, to_decimal
from tests.oracles import binomial_masses, hockey_stick
from tests.strategies import thinned


def hockey_sticks(n, p, e):
    """Return the hockey-stick divergences of (B, B+1) and (B+1, B) at e = e^eps, given as a fraction."""
    pmf = [Fraction(0), *binomial_masses(n, p), Fraction(0)]
    return hockey_stick(pmf[1:], pmf, e), hockey_stick(pmf, pmf[1:], e)


@pytest.mark.parametrize("p", [0.5, 0.125, 0.9375, 2.0**-20, 0.3])
@pytest.mark.parametrize("n", thinned(range(13), 3))
def test_small_n_by_enumeration(n, p):
    noise = BinomialNoise(n, p)
    pair, mirror = noise.pairs()
    for eps in (0.0, 2.0**-40, 0.125, math.log(2), 1.0, 3.0, 20.0):
        # e^eps is computed to 60 digits as a fraction.
        import mpmath

        with mpmath.workdps(60):
            e = Fraction(mpmath.nstr(mpmath.exp(mpmath.mpf(eps)), 55))
        exact = hockey_sticks(n, Fraction(p), e)
        for side, value in zip((pair, mirror, noise), (*exact, max(exact))):
            lower, upper = side.log_delta(eps, bound="lower"), side.log_delta(eps)
            log_exact = log_of(value)
            assert to_decimal(lower) <= log_exact + to_decimal("1e-50"), (side, eps)
            assert log_exact <= to_decimal(upper) + to_decimal("1e-50"), (side, eps)
            assert upper - lower < 1e-12 + 64 * math.ulp(lower)


@pytest.mark.parametrize("log_tail", [-3.0, -20.0, -1e6])
@pytest.mark.parametrize(("n", "p"), thinned([(1, 0.5), (60, 0.5), (60, 0.125), (300, 0.03125)], 2))
def test_outcomes_of_a_composition_by_enumeration(n, p, log_tail):
    levels = [hockey_sticks(n, Fraction(p), Fraction(2) ** k) for k in range(-1, 6)]
    for pair, exact in zip(BinomialNoise(n, p).pairs(), zip(*levels)):
        outcomes = pair._pair_info().losses.window(log_tail)
        lower, upper = outcomes.log_delta(np.log(2.0) * np.arange(-1.0, 6.0))
        exact = np.array([float(log_of(value)) if value else -math.inf for value in exact])
        assert np.all(lower <= exact + 1e-15)
        assert np.all(exact <= upper + 1e-15)
        # Only truncated outcomes leave a gap.
        truncated = math.exp(outcomes.log_lost)
        assert np.all(np.exp(upper) - np.exp(lower) <= 2 * truncated + 1e-11)
        assert (truncated == 0) == (outcomes.loss.size == n)


def test_both_orders_are_equal_for_fair_bits():
    noise = BinomialNoise(50, 0.5)
    pair, mirror = noise.pairs()
    for eps in (0.0, 0.3, 1.0, 2.5):
        assert pair.log_delta(eps) == pytest.approx(mirror.log_delta(eps), rel=1e-14)


@pytest.mark.parametrize(
    "case",
    [v for v in reference("shuffled-bits") if v["id"].startswith("shuffled-bits/s003.shift.delta")],
    ids=lambda v: v["id"][14:],
)
def test_reference_delta_at_published_noise(case):
    # Rounding the decimal noise probability changes log delta by about n * 1e-16 times its slope.
    given_ = case["params"]
    published = 50 * math.log(2 / float(given_["delta"])) / (given_["n"] * float(given_["eps"]) ** 2)
    noise = BinomialNoise(given_["n"], published)
    exact = log_of(case["value"])
    slope = abs(float(exact)) / published
    rounding = 4 * slope * math.ulp(published) + 1e-12
    lower, upper = noise.log_delta(float(given_["eps"]), bound="lower"), noise.log_delta(float(given_["eps"]))
    assert distance((lower + upper) / 2, exact) < 1e-11 + rounding
    assert lower < upper < lower + 1e-10


SHIFTS = {"H_{e^eps}(Bin||Bin+1)": 0, "H_{e^eps}(Bin+1||Bin)": 1}


@pytest.mark.parametrize("case", [v for v in reference("shuffled-bits") if v["quantity"] in SHIFTS], ids=lambda v: v["id"][14:])
def test_reference_both_directions(case):
    given_ = case["params"]
    pair = BinomialNoise(given_["n"], float(given_["gamma"])).pairs()[SHIFTS[case["quantity"]]]
    eps = float(given_["eps"])
    exact, lower, upper = log_of(case["value"]), pair.log_delta(eps, bound="lower"), pair.log_delta(eps)
    allowed = 1e-12 if exact > log_of("1e-30") else 1e-11
    assert distance((lower + upper) / 2, exact) < allowed
    assert upper - lower < 4 * allowed
    # Rounding each decimal changes it by a relative 2**-54, and log delta by at most 1e3 times that.
    assert float(to_decimal(lower) - exact) < 5e-13
    assert float(exact - to_decimal(upper)) < 5e-13


def test_half_and_shift_by_one_reference():
    cases = [v for v in reference("shuffled-bits") if v["quantity"].startswith("exact hockey stick Bin(50,1/2)")]
    assert len(cases) == 8
    for v in cases:
        eps = v["params"].get("eps")
        value = BinomialNoise(50, 0.5).log_delta(float(eps))
        assert distance(value, log_of(v["value"])) < 1e-12, v


@pytest.mark.parametrize(
    ("n", "eps", "printed"), [(10**4, 0.01, 3.97564421e-3), (10**4, 0.1, 1.143193366e-9), (10**6, 0.01, 1.07477643e-10)]
)
def test_published_values(n, eps, printed):
    assert BinomialNoise(n, 0.5).delta(eps) == pytest.approx(printed, rel=1e-8)


@pytest.mark.parametrize(
    ("n", "eps", "mantissa", "exponent"),
    [(10**9, 0.01, 2.47, -5438), (10**6, 0.1, 2.17, -549), (10**4, 1.0, 9.06, -488)],
)
def test_published_tiny_values(n, eps, mantissa, exponent):
    expected = math.log(mantissa) + exponent * math.log(10)
    assert BinomialNoise(n, 0.5).log_delta(eps) == pytest.approx(expected, abs=0.005 / mantissa * 1.01)


@pytest.mark.parametrize("eps", thinned([0.01, 0.03, 0.1, 1.0, 8.0], 3))
@pytest.mark.parametrize(("n", "p"), [(2**53, 0.5), (2**53, 0.125), (10**14, 0.75)])
def test_smallest_deltas_by_direct_sums(n, p, eps):
    flint = pytest.importorskip("flint")
    from flint import arb

    old, flint.ctx.prec = flint.ctx.prec, 400
    try:
        pair, mirror = BinomialNoise(n, p).pairs()
        for side, (a, b) in ((pair, (p, 1 - p)), (mirror, (1 - p, p))):
            # The pair (B+1, B) at p is the pair (B, B+1) at 1 - p.
            e, ball_a, ball_b = arb(eps).exp(), arb(a), arb(b)
            k = int(((n + 1) * ball_a / (ball_a + e * ball_b)).floor().unique_fmpz())
            log_pmf = (
                arb(n + 1).lgamma() - arb(k + 1).lgamma() - arb(n - k + 1).lgamma() + k * ball_a.log() + (n - k) * ball_b.log()
            )
            total, t = arb(0), arb(1)
            while k >= 0:
                after = t * k * ball_b / ((n - k + 1) * ball_a)
                total += t - e * after
                if t < arb(2) ** -90:
                    break
                t, k = after, k - 1
            exact = to_decimal((log_pmf + total.log()).str(40, radius=False))
            lower, upper = side.log_delta(eps, bound="lower"), side.log_delta(eps)
            assert to_decimal(lower) <= exact <= to_decimal(upper)
            assert upper - lower < 1e-12 * abs(lower)
    finally:
        flint.ctx.prec = old


@pytest.mark.parametrize(("eps", "delta", "trials"), [(1.0, 1e-6, 80), (0.1, 1e-8, 8451)])
def test_calibrations(eps, delta, trials):
    noise = BinomialNoise.calibrate(eps=eps, delta=delta)
    assert noise == BinomialNoise(trials, 0.5)
    assert noise.delta(eps) <= delta < BinomialNoise(trials - 1, 0.5).delta(eps, bound="lower")


@pytest.mark.filterwarnings("ignore:delta=")
@given(st.floats(0.01, 3), st.floats(-30, -1), st.sampled_from([0.5, 0.25, 0.01, 0.9]))
def test_calibrate_meets_its_target_and_fewer_trials_do_not(eps, log10_delta, prob):
    delta = 10.0**log10_delta
    noise = BinomialNoise.calibrate(eps=eps, delta=delta, prob=prob)
    assert noise.delta(eps) <= delta
    assert noise.trials == 0 or BinomialNoise(noise.trials - 1, prob).delta(eps) > delta


def test_calibrate_at_the_ends():
    with pytest.raises(ValueError, match=r"delta=1e-300 cannot be met at eps=0"):
        BinomialNoise.calibrate(eps=0.0, delta=1e-300)


probabilities = st.one_of(st.floats(1e-9, 1 - 1e-9), st.sampled_from([0.5, 1e-300, 5e-324, 1 - 2.0**-53]))
noises = st.builds(BinomialNoise, st.one_of(st.integers(0, 60), st.integers(0, 2**53)), probabilities)


@given(noises, st.floats(0, 50), st.floats(0, 5))
def test_delta_falls_with_eps_and_trials(noise, eps, more):
    assert noise.log_delta(eps, bound="lower") <= noise.log_delta(eps) <= 0
    assert noise.log_delta(eps + more, bound="lower") <= noise.log_delta(eps)
    larger = dataclasses.replace(noise, trials=min(noise.trials + 3, 2**53))
    assert larger.log_delta(eps, bound="lower") <= noise.log_delta(eps)


@given(noises, st.floats(0, 700))
def test_mechanism_is_the_larger_of_its_pairs(noise, eps):
    pairs = noise.pairs()
    for bound in ("lower", "upper"):
        assert noise.log_delta(eps, bound=bound) == max(pair.log_delta(eps, bound=bound) for pair in pairs)
    # The outcomes 0 and n + 1 have an infinite likelihood ratio.
    floor = noise.trials * max(math.log1p(-noise.prob), math.log(noise.prob))
    assert noise.log_delta(eps) >= floor - 1e-12 - 8 * math.ulp(floor)


@given(noises)
def test_reverse_twice_is_the_same(noise):
    for pair in noise.pairs():
        assert isinstance(pair, DominatingPair)
        assert pair.reverse() != pair
        assert pair.reverse().reverse() == pair
    assert noise.pairs()[0].reverse() == noise.pairs()[1]


@given(
    st.builds(BinomialNoise, st.integers(0, 10**6), st.floats(0.001, 0.999)),
    st.one_of(st.floats(-323, 0), st.floats(-1, 0)),
)
def test_epsilon_is_an_upper_or_a_lower_bound(noise, log10_delta):
    delta = 10.0**log10_delta
    upper, lower = noise.epsilon(delta), noise.epsilon(delta, bound="lower")
    assert lower <= upper
    if math.isfinite(upper):
        assert noise.delta(upper) <= delta
        assert noise.log_delta(upper) <= math.log(delta)
    if lower > 0 and math.isfinite(lower):
        assert noise.delta(lower, bound="lower") >= delta


def test_no_pure_privacy():
    noise = BinomialNoise(10, 0.5)
    assert noise.epsilon(0.0) == math.inf
    assert noise.epsilon(0.0, bound="lower") == math.inf
    # The two end points have mass 2**-10 each.
    assert noise.epsilon(0.9 * 2.0**-10) == math.inf
    assert noise.epsilon(1.0) == 0


def test_randomize_and_estimate():
    noise = BinomialNoise(40, 0.25)
    counts = np.arange(12).reshape(3, 4)
    released = noise.randomize(counts, rng=5)
    assert released.shape == counts.shape
    assert released.dtype == np.int64
    assert ((released >= counts) & (released <= counts + 40)).all()
    assert (noise.randomize(counts, rng=5) == released).all()
    assert (noise.randomize(counts, np.random.default_rng(5)) == released).all()
    assert noise.estimate(10) == 0
    assert noise.estimate(released).tolist() == (released - 10).tolist()
    assert noise.variance == 7.5


def test_estimate_is_unbiased_with_the_stated_variance():
    noise = BinomialNoise(40, 0.25)
    estimates = noise.estimate(noise.randomize(np.full(200_000, 3), rng=11))
    standard_error = math.sqrt(7.5 / 200_000)
    assert abs(estimates.mean() - 3) < 5 * standard_error
    assert estimates.var() == pytest.approx(7.5, rel=0.03)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("trials", -1),
        ("trials", 1.5),
        ("trials", math.nan),
        ("trials", "3"),
        ("trials", None),
        ("trials", False),
        ("trials", 2**53 + 1),
        ("trials", [3]),
        ("prob", 0),
        ("prob", 1),
        ("prob", -0.1),
        ("prob", math.nan),
        ("prob", "0.5"),
        ("prob", None),
        ("prob", [0.5]),
        ("prob", True),
    ],
)
def test_bad_parameters(field, value):
    with pytest.raises(ValueError, match=rf"^{field}\b.*(integer in 0..2\*\*53|in \(0, 1\)|single number)"):
        BinomialNoise(**({"trials": 5, "prob": 0.5} | {field: value}))


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((-1.0, 1e-4), "eps"),
        ((math.nan, 1e-4), "eps"),
        (("1", 1e-4), "eps"),
        ((1.0, 0.0), "delta"),
        ((1.0, 1.0), "delta"),
        ((1.0, 1.5), "delta"),
        ((1.0, None), "delta"),
        ((1.0, 1e-4, 0.0), "prob"),
        ((1.0, 1e-4, 1.0), "prob"),
    ],
)
def test_bad_calibrations(arguments, name):
    with pytest.raises(ValueError, match=rf"^{name}\b"):
        BinomialNoise.calibrate(**dict(zip(("eps", "delta", "prob"), arguments)))


@pytest.mark.parametrize("values", [[], [0.5], [math.nan], "3", None, [[math.inf]], [1, None]])
def test_bad_counts(values):
    with pytest.raises(ValueError, match=r"^values"):
        BinomialNoise(5, 0.5).randomize(values)


@pytest.mark.parametrize("rng", ["a", -1, 1.5])
def test_bad_generators(rng):
    with pytest.raises(ValueError, match=r"^rng"):
        BinomialNoise(5, 0.5).randomize([1], rng=rng)


@pytest.mark.parametrize("messages", [[], [math.nan], "x", [math.inf], None])
def test_bad_messages(messages):
    with pytest.raises(ValueError, match=r"^messages"):
        BinomialNoise(5, 0.5).estimate(messages)


@pytest.mark.parametrize(("trials", "prob"), [(0, 0.5), (1, 0.25), (7, 0.5), (12, 0.125), (50, 0.5)])
def test_trade_off_curve_is_at_or_below_the_exact_one(trials, prob):
    p = Fraction(prob)
    law = [math.comb(trials, i) * p**i * (1 - p) ** (trials - i) for i in range(trials + 1)]
    for pair, chance in zip(BinomialNoise(trials, prob).pairs(), (law, law[::-1])):
        curve = pair.tradeoff()
        # For B against B + 1 the likelihood ratio decreases with the count, so the best test rejects large counts.
        alpha, missed = Fraction(0), Fraction(1) - chance[-1]
        for k in range(trials, 0, -1):
            alpha += chance[k]
            missed -= chance[k - 1]
            beta = curve.beta(float(alpha))
            assert beta <= float(missed) + 1e-15
            assert beta == pytest.approx(float(missed), abs=1e-12)
        assert curve.beta(0.0) == pytest.approx(float(1 - chance[-1]), abs=1e-12)


def test_a_whole_run_and_no_dummy_reports():
    noise = BinomialNoise(20, 0.25)
    assert noise.simulate([100, 200], rng=1).tolist() == noise.randomize([100, 200], rng=1).tolist()
    assert noise.simulate(100, rng=1) == noise.randomize(100, rng=1)
    assert noise.dummies(rng=1).shape == (0,)
