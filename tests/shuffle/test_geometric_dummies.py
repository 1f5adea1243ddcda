"""Dummy reports whose numbers are drawn for each bin, against enumeration of both distributions in exact fractions."""

import itertools
import math
import random
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from shufflebounds import InfeasibleError
from shufflebounds.shuffle import ClearReports, GeometricDummies
from tests.oracles import assert_encloses, assert_error_tail, binomial, hockey_stick, rational, total
from tests.strategies import thinned

MOST = 16
"""Largest number of dummy reports that is enumerated. Larger ones belong to one class of likelihood ratios, whose mass is exact."""

pytestmark = pytest.mark.filterwarnings("ignore:shift=")


def law(dummies, most=MOST):
    """Return the distribution of the number of dummy reports up to `most`, which is the class of all larger numbers, too."""
    left, right, s = Fraction(dummies.left), Fraction(dummies.right), dummies.shift
    masses = {j: left ** (s - j) if j < s else right ** (j - s) for j in range(most)}
    masses[most] = right ** (most - s) / (1 - right)
    norm = sum(masses.values())
    return {j: mass / norm for j, mass in masses.items()}


def delta(dummies, eps, users=0):
    """Return the largest delta over the datasets with up to `users` others in the two bins, by enumeration of both counts."""
    keep, one = Fraction(dummies.keep), {}
    free, worst = law(dummies), Fraction(0)
    for h in range(users + 1):
        # One report more moves the mass of the last class into itself.
        for target in (0, 1):
            one[h, target] = {}
            for k, p in total(free, binomial(h + target, keep)).items():
                one[h, target][min(k, MOST)] = one[h, target].get(min(k, MOST), 0) + p
    for a, b in itertools.product(range(users + 1), repeat=2):
        first, second = ({(x, y): p * q for x, p in one[a, i].items() for y, q in one[b, 1 - i].items()} for i in (1, 0))
        worst = max(worst, hockey_stick(first, second, rational(eps)))
    return worst


def drawn(r):
    shift = r.randint(0, 6)
    return GeometricDummies(3, shift, r.choice([r.randint(1, 60) / 64, 0.0 if r.random() < 0.3 else 0.5]), r.randint(1, 48) / 64,
                            r.choice([1.0, 1.0, r.randint(1, 63) / 64]))


@pytest.mark.parametrize("seed", thinned(range(12), 2))
def test_nine_terms_by_enumeration_of_both_counts(seed):
    dummies, r = drawn(random.Random(seed)), random.Random(seed)
    w, u = np.exp(dummies._log_masses), np.exp(dummies._log_ratios)
    for eps in (0.0, 0.3, r.uniform(0, 3), 20.0):
        nine = math.fsum(w[i] * w[j] * max(u[i] - math.exp(eps) * u[j], 0) for i in range(3) for j in range(3))
        exact = delta(dummies, eps)
        assert dummies.delta(eps) == pytest.approx(nine, rel=1e-12, abs=1e-300)
        if exact:
            assert_encloses(dummies, eps, exact, apart=1e-13)
        else:
            assert dummies.delta(eps, bound="lower") == 0


@pytest.mark.slow
@pytest.mark.parametrize("keep", [0.25, 0.75, 1.0])
def test_other_users_in_the_two_bins_do_not_increase_delta(keep):
    dummies = GeometricDummies(3, 2, 0.5, 0.375, keep)
    for eps in (0.0, 0.7, 1.5):
        exact = delta(dummies, eps, users=2)
        assert exact == delta(dummies, eps)
        assert_encloses(dummies, eps, exact, apart=1e-13)


@pytest.mark.parametrize(("eps", "target", "shift", "mean", "deviation", "reached"), [
    (1.0, 1e-6, 25, 25.000039, 2.7989881132, 9.1272819438e-07), (0.5, 1e-9, 75, 75.000000, 5.6421479075, 8.9461204028e-10),
    (2.0, 1e-6, 14, 14.000003, 1.3569425547, 3.8426377379e-07),
])
def test_calibrated_table(eps, target, shift, mean, deviation, reached):
    dummies = GeometricDummies.calibrate(bins=20, eps=eps, delta=target)
    assert dummies.shift == shift
    assert dummies.dummies_per_bin == pytest.approx(mean, rel=1e-7)
    assert dummies.variance**0.5 == pytest.approx(deviation, rel=1e-9)
    assert dummies.delta(eps) == pytest.approx(reached, rel=1e-9)
    assert dummies.epsilon(target) <= eps
    fewer = GeometricDummies(20, shift - 1, dummies.left, dummies.right)
    assert fewer.delta(eps, bound="lower") > target
    # With as few bins, fixed numbers of uniform dummy reports need more of them and have a larger error.
    clear = ClearReports.calibrate(bins=20, eps=eps, delta=target)
    assert clear.variance**0.5 > 2 * deviation
    assert clear.fakes / 20 > 1.2 * mean


def test_shares_and_kept_reports():
    goal = {"bins": 20, "eps": 1.0, "delta": 1e-6}
    less = GeometricDummies.calibrate(**goal, share=0.6)
    assert (round(less.dummies_per_bin, 1), round(less.variance**0.5, 3)) == (21.8, 2.977)
    most = GeometricDummies.calibrate(**goal, keep=0.99)
    assert round(most.mean_squared_error(1000) ** 0.5, 2) == 4.23
    # From 1 - e^(-eps/2) on downwards the guarantee is pure, without a shift.
    pure = GeometricDummies.calibrate(**goal, keep=-math.expm1(-0.5))
    assert (pure.shift, pure.left, pure.delta(1.0)) == (0, 0.0, 0.0)
    assert pure.epsilon(0.0) <= 1.0
    assert pure.right == pytest.approx(1 / (1 + math.exp(0.5)), rel=1e-9)
    assert round(pure.dummies_per_bin, 4) == 0.6065
    assert (round(pure.variance**0.5, 3), round(pure.mean_squared_error(1000) ** 0.5, 1)) == (2.509, 39.3)


@pytest.mark.filterwarnings("ignore:delta=|eps=")
@pytest.mark.parametrize(("eps", "target", "keep", "share"), [
    (0.1, 1e-12, 1.0, 0.5), (1.0, 1e-300, 1.0, 0.5), (3.0, 0.2, 1.0, 0.1), (1.0, 1e-6, 0.7, 0.05), (6.0, 1e-3, 0.999, 0.01),
    (50.0, 1e-30, 1.0, 0.9), (50.0, 1e-30, 0.9999, 0.9), (0.5, 1e-9, 0.3, 0.8), (1e-3, 1e-9, 1.0, 0.5), (2.0, 0.05, 0.9, 0.02),
])
def test_the_shift_is_the_smallest_one(eps, target, keep, share):
    found = GeometricDummies.calibrate(bins=9, eps=eps, delta=target, keep=keep, share=share)
    assert found.delta(eps) <= target
    assert found.epsilon(target) <= eps
    smaller = {0, 1, found.shift // 2, found.shift - 2, found.shift - 1}
    for shift in sorted(smaller & set(range(found.shift))):
        less = GeometricDummies(9, shift, found.left if shift else 0.0, found.right, keep)
        assert less.delta(eps, bound="lower") > target


@pytest.mark.slow
@pytest.mark.parametrize(("releases", "target", "deviation", "mean", "clear"), [
    (12, 1e-9, 33.8, 479, 26.3), (365, 1e-6, 166, 1760, 111),
])
def test_over_many_releases_clear_reports_are_more_accurate(releases, target, deviation, mean, clear):
    dummies = GeometricDummies.calibrate(bins=20, eps=1.0, delta=target, releases=releases)
    assert dummies.variance**0.5 == pytest.approx(deviation, rel=3e-3)
    assert dummies.dummies_per_bin == pytest.approx(mean, rel=3e-3)
    assert dummies.self_compose(releases).epsilon(target) <= 1.0
    others = ClearReports.calibrate(bins=20, eps=1.0, delta=target, releases=releases)
    assert others.variance**0.5 == pytest.approx(clear, rel=3e-3)
    assert others.fakes / 20 > 1.5 * mean


@pytest.mark.parametrize("arguments", [(2, 0.5, 0.375), (2, 0.5, 0.375, 0.75), (0, 0.0, 0.25, 0.5)])
def test_several_releases_by_enumeration(arguments):
    dummies = GeometricDummies(3, *arguments)
    w, u = ([Fraction(x) for x in np.exp(logs)] for logs in (dummies._log_masses, dummies._log_ratios))
    one = {(i, j): (w[i] * w[j] * u[i], w[i] * w[j] * u[j]) for i in range(3) for j in range(3)}
    for eps in (0.0, 0.9, 2.0):
        factor, exact = rational(eps), Fraction(0)
        for (p, q), (x, y) in itertools.product(one.values(), repeat=2):
            exact += max(Fraction(0), p * x - factor * q * y)
        lower, upper = (float(dummies.self_compose(2).delta(eps, bound=side)) for side in ("lower", "upper"))
        assert lower * (1 - 1e-12) <= float(exact) <= upper * (1 + 1e-12)
        assert upper - lower < 1e-4 * upper


@pytest.mark.parametrize("arguments", [(4, 0.5, 0.25), (0, 0.5, 0.75), (3, 0.0, 0.125), (1, 0.875, 0.5)])
def test_moments_and_error_tails(arguments):
    dummies = GeometricDummies(5, *arguments)
    free = law(dummies, 700)
    mean = sum(k * p for k, p in free.items())
    assert dummies.dummies_per_bin == pytest.approx(float(mean), rel=1e-13)
    assert dummies.variance == pytest.approx(float(sum((k - mean) ** 2 * p for k, p in free.items())), rel=1e-12)
    errors = {k - Fraction(dummies.dummies_per_bin): p for k, p in free.items()}
    assert_error_tail(dummies, errors, None, [0, 0.5, 1, 2.5, 3, 9, 60])
    for a in (0.5, 2.5, 9.0):
        one = sum(p for error, p in errors.items() if abs(error) > a)
        assert dummies.error_tail(a, of="any") == pytest.approx(float(1 - (1 - one) ** 5), rel=1e-11)


@pytest.mark.parametrize("arguments", [(4, 0.5, 0.25, 0.75), (0, 0.0, 0.5, 0.25), (3, 0.0, 0.125, 0.5), (2, 0.75, 0.5, 0.96875)])
@pytest.mark.parametrize("held", thinned([0, 1, 6, 30], 2))
def test_error_tails_where_reports_are_discarded(arguments, held):
    dummies = GeometricDummies(5, *arguments)
    keep = Fraction(dummies.keep)
    counts = total(law(dummies, 150), binomial(held, keep))
    errors = {(k - Fraction(dummies.dummies_per_bin)) / keep - held: p for k, p in counts.items()}
    assert dummies.mean_squared_error(held) == pytest.approx(float(sum(e**2 * p for e, p in errors.items())), rel=1e-9)
    assert_error_tail(dummies, errors, held, [0, 0.5, 1, 2.5, 3, 9, 40])


def test_error_tails_of_many_users_by_simulation():
    dummies, rng = GeometricDummies.calibrate(bins=4, eps=1.0, delta=1e-6, keep=0.9), np.random.default_rng(7)
    held = [10**12, 2000, 0, 10**6]
    errors = np.array([dummies.estimate(counts=rng.binomial(held, dummies.keep) + dummies._drawn(rng)) - held for _ in range(3000)])
    for j, one in enumerate(held):
        a = 0.999 * dummies.error_quantile(0.1, one)
        assert abs((np.abs(errors[:, j]) > a).mean() - dummies.error_tail(a, one)) < 5 * math.sqrt(0.1 / 3000)
    largest = dummies.error_quantile(0.1, held, of="any")
    assert ((np.abs(errors) > largest).any(axis=1)).mean() < 0.1 + 5 * math.sqrt(0.1 / 3000)


def test_the_drawn_numbers_have_the_stated_distribution():
    dummies = GeometricDummies(400_000, 6, 0.5, 0.4)
    numbers = np.bincount(dummies._drawn(np.random.default_rng(3)), minlength=20) / dummies.bins
    for k, p in law(dummies).items():
        assert abs((numbers[k] if k < numbers.size else 0) - float(p)) < 5 * math.sqrt(float(p) / dummies.bins) + 1e-5


def test_protocol_in_parts():
    dummies = GeometricDummies.calibrate(bins=6, eps=1.0, delta=1e-6)
    held = np.array([0, 10, 20, 30, 40, 100])
    data, rng = np.repeat(np.arange(6), held), np.random.default_rng(4)
    errors = []
    for _ in range(1000):
        parts = [dummies.aggregate(dummies.randomize(part, rng)) for part in np.array_split(data, 3)]
        errors.append(dummies.estimate(counts=sum(parts) + dummies.aggregate(dummies.dummies(rng))) - held)
    errors = np.array(errors)
    assert (np.abs(errors.mean(axis=0)) < 5 * math.sqrt(dummies.variance / 1000)).all()
    assert errors.var(axis=0) == pytest.approx(np.full(6, dummies.variance), rel=0.3)
    assert dummies.messages_per_user(200) == pytest.approx(1 + 6 * 25 / 200, rel=1e-5)


@pytest.mark.parametrize("arguments", [(10, 1, 0.5, 0.915877816075801, 0.011924348717343646), (2, 0, 0.0, 0.9, 1e-12),
                                       (3, 2, 1 - 2.0**-50, 0.75, 0.999), (3, 2, 2.0**-60, 2.0**-70, 0.25)])
def test_losses_are_accurate_next_to_the_pure_budget(arguments):
    dummies = GeometricDummies(*arguments)
    with mpmath.workdps(60):
        keep, right = mpmath.mpf(dummies.keep), mpmath.mpf(dummies.right)
        pure = mpmath.log((1 - keep + keep / right) / (1 - keep))
        assert pure <= dummies.epsilon(0.0) <= pure * (1 + 1e-14)
        assert dummies.log_delta(float(pure) * (1 - 1e-13), bound="lower") > -math.inf


def test_one_bin_hides_its_users():
    assert GeometricDummies(1, 0, 0.0, 0.5).delta(0.0) == 0
    assert GeometricDummies(1, 0, 0.0, 0.5).epsilon(0.0) == 0


def test_a_bin_without_dummy_reports_draws_a_warning():
    with pytest.warns(UserWarning, match=r"shift=1 leaves a bin without dummy reports with probability 0\.2, and the bin then"):
        GeometricDummies(10, 1, 0.5, 0.5)


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: GeometricDummies(0, 9, 0.5, 0.5), ValueError, "bins=0"),
    (lambda: GeometricDummies(3, -1, 0.5, 0.5), ValueError, r"shift=-1 must be an integer in 0\.\.1048576"),
    (lambda: GeometricDummies(3, 9, 1.0, 0.5), ValueError, r"left=1 must be in \[0, 1\)"),
    (lambda: GeometricDummies(3, 9, 0.5, 0.0), ValueError, r"right=0 must be in \(0, 1\)"),
    (lambda: GeometricDummies(3, 9, 0.5, 0.5, 0.0), ValueError, r"keep=0 must be in \[1e-12, 1\]"),
    (lambda: GeometricDummies.calibrate(bins=1, eps=1.0, delta=1e-6), ValueError, "bins=1"),
    (lambda: GeometricDummies.calibrate(bins=3, eps=0.0, delta=1e-6), ValueError, "eps=0 must be"),
    (lambda: GeometricDummies.calibrate(bins=3, eps=1.0, delta=1e-6, share=1.0), ValueError, r"share=1 must be in \(0, 1\)"),
    (lambda: GeometricDummies.calibrate(bins=3, eps=1e-6, delta=1e-12), InfeasibleError, r"eps=1e-06: shift=2\*\*20 gives delta="),
    (lambda: GeometricDummies(3, 40, 0.5, 0.5).dummies(number=3), ValueError, "number=3 must be left out"),
    (lambda: GeometricDummies(2**40, 40, 0.5, 0.5).dummies(), InfeasibleError, "call simulate"),
    (lambda: GeometricDummies(3, 40, 0.5, 0.5, 0.9).error_quantile(0.05), ValueError, r"truth=None: with keep=0\.9"),
    (lambda: GeometricDummies(3, 40, 0.5, 0.5, 0.9).error_quantile(0.05, 7, of="any"), ValueError, "truth=7 with of='any'"),
    (lambda: GeometricDummies(3, 40, 0.5, 0.5).error_tail(1.0, [1, 2]), ValueError, "truth has shape"),
    (lambda: GeometricDummies(3, 40, 0.5, 0.5).estimate([4]), ValueError, "messages holds 4"),
])
def test_bad_input(call, error, text):
    with pytest.raises(error, match=text):
        call()
