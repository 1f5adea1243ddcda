"""The kernel's search over all datasets, against enumeration in fractions and against the value of every dataset."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shufflebounds._core import _bits, _worst_bits
from shufflebounds.shuffle import ShuffledBits
from tests.oracles import binomial, hockey_stick, log_odds, logarithm, rational, total
from tests.strategies import slow, thinned


def exact(others, fakes, width, flip, eps):
    """Return the largest hockey-stick divergence over all datasets and both directions."""
    q, factor = Fraction(flip), rational(eps)
    values = []
    for ones in range(others + 1):
        rest = total(binomial(ones, 1 - q), binomial(others + fakes - ones, q))
        zero, one = (total(rest, binomial(width, chance)) for chance in (q, 1 - q))
        values += [hockey_stick(zero, one, factor), hockey_stick(one, zero, factor)]
    return max(values)


@given(
    others=st.integers(0, 6), fakes=st.integers(0, 3), width=st.integers(1, 3), flip=st.floats(0.01, 0.45), share=st.floats(0, 0.98)
)
def test_bounds_contain_the_worst_case_dataset(others, fakes, width, flip, share):
    if width > 1 or others == 0:
        # Dummy reports are tested for width 1 and at least one other user only.
        fakes = 0
    budget = log_odds(flip)
    eps = np.array([share * width * float(budget) * (1 - 2.0**-53)])
    gap = np.array([float(budget - eps[0])])
    low, high = _worst_bits.worst_log_delta(others, fakes, width, flip, eps, gap)
    value = logarithm(exact(others, fakes, width, flip, float(eps[0])))
    assert float(low[0]) - 1e-12 <= value <= float(high[0]) + 1e-12
    assert high[0] - low[0] <= 1.1e-9 or low[0] == -math.inf


@pytest.mark.parametrize(("users", "flip"), [(3000, 0.01), (2000, 0.25)])
def test_no_dataset_exceeds_the_upper_bound(users, flip):
    bits = ShuffledBits(users, flip)
    eps = np.array([0.1, 0.5 * bits.epsilon(1e-6)])
    low, high = bits._log_delta(eps)
    each = np.array([bits.pair(ones)._log_delta(eps)[0] for ones in range(0, users, 37)])
    assert (each.max(axis=0) <= high).all()
    assert (high - low <= 1e-3).all()


def bounds_and_largest_values(others, fakes, flip, eps):
    """Return the bounds of the search, and the largest lower and upper bound of log delta of any dataset."""
    gap = float(log_odds(flip) - eps)
    low, high = _worst_bits.worst_log_delta(others, fakes, 1, flip, np.array([eps]), np.array([gap]))
    ones = np.arange(others + 1.0)
    zeros = others + fakes - ones
    sides = [_bits.shuffled_bits_log_delta(*data, flip, eps, gap) for data in ((ones, zeros), (zeros, ones))]
    return low[0], high[0], *np.max(sides, axis=(0, 2))


@pytest.mark.parametrize(
    ("others", "fakes", "flip", "eps"),
    thinned([(1300, 0, 0.4, 0.2), (2000, 500, 0.3, 0.02), (9000, 0, 0.12, 0.1), (9000, 20000, 0.05, 0.3), slow(20000, 0, 0.2, 0.0),
     slow(20000, 0, 0.45, 1e-3),
     # In these two the terms that shorter intervals do not reduce decide the upper bound, by 1.1e-4 and 1.9e-5.
     (2776, 1556, 0.016003, 0.0), (2127, 1586, 0.0434, 0.0)], 2),
)
def test_the_expansion_around_a_dataset_bounds_every_dataset(others, fakes, flip, eps):
    low, high, least, most = bounds_and_largest_values(others, fakes, flip, eps)
    assert least <= high <= most + 1e-3
    assert high - 1e-3 <= low <= most


@pytest.mark.parametrize(
    ("others", "fakes", "flip", "eps"),
    thinned([(3000, 50, 0.499, 1e-3), (2500, 0, 0.003, 0.7), (5000, 0, 0.02, 0.15), (1800, 4000, 0.2, 0.6),
     slow(20000, 300, 1e-3, 0.5), slow(20000, 0, 0.3, 0.02), slow(15000, 10, 1e-4, 6.0)], 2),
)
def test_bounds_of_short_intervals_are_close_to_the_worst_dataset(others, fakes, flip, eps):
    low, high, least, most = bounds_and_largest_values(others, fakes, flip, eps)
    assert least <= high <= most + 1.1e-9
    assert least - 1.1e-9 <= low <= most


def test_a_search_with_a_tolerance_of_many_dummy_reports():
    # The bounds of intervals were computed to 6e-4 and compared with 2e-4, so that every dataset was visited, which took 5 s.
    others, fakes, flip, eps = 18_661_353, 67_743_813, 1.3962440368647007e-06, np.zeros(1)
    low, high = _worst_bits.worst_log_delta(others, fakes, 1, flip, eps, np.array([float(log_odds(flip))]), 1e-9)
    assert 0 <= high[0] - low[0] < 7e-4


@pytest.mark.parametrize(
    ("users", "fakes", "flip", "delta"),
    thinned([(1500, 0, 0.35, 1e-3), (3000, 0, 0.1, 1e-9), (2500, 3000, 0.2, 1e-30), slow(5000, 100, 0.003, 1e-5),
     slow(8000, 0, 1e-5, 0.01)], 2),
)
def test_the_datasets_meet_delta_at_eps(users, fakes, flip, delta):
    bits = ShuffledBits(users, flip, fakes=fakes)
    ones = np.arange(float(users))
    zeros = bits._bits - 1 - ones
    for bound, eps in ((bound, bits.epsilon(delta, bound=bound)) for bound in ("upper", "lower")):
        gap = float(log_odds(flip) - eps)
        low, high = _bits.shuffled_bits_log_delta(np.append(ones, zeros), np.append(zeros, ones), flip, eps, gap)
        least, most = low.max(), high.max()
        assert least - 1e-3 <= math.log(delta) <= most + 1e-3
        assert least <= math.log(delta) if bound == "upper" else math.log(delta) <= most


@pytest.mark.parametrize(("others", "fakes", "flip", "eps"), [(3500000, 11800, 0.00113, 0.0375), (2700000, 10000, 0.00117, 0.0405)])
def test_between_the_ends_of_an_interval_the_bound_is_above_both(others, fakes, flip, eps):
    # The expansion gives the upper bound at the ends of an interval of datasets. In between, its logarithm is up to 1.4e-4 larger.
    gap = float(log_odds(flip) - eps)
    low, high = _worst_bits.worst_log_delta(others, fakes, 1, flip, np.array([eps]), np.array([gap]))
    ones = np.arange(400.0)
    zeros = others + fakes - ones
    sides = [_bits.shuffled_bits_log_delta(*data, flip, eps, gap) for data in ((ones, zeros), (zeros, ones))]
    least, most = np.max(sides, axis=(0, 2))
    assert least <= high[0] <= most + 1e-4
    assert low[0] <= high[0]


@pytest.mark.parametrize(
    ("others", "flip", "eps"), [(10**6, 0.25, 2e-4), (10**6, 0.25, 2e-3), (6226669090889807, 1.59459e-07, 2.3209e-4)]
)
def test_all_datasets_are_one_interval(others, flip, eps):
    # Without the expansion the gap is about 0.6e-3.
    gap = np.array([float(log_odds(flip) - eps)])
    low, high = _worst_bits.worst_log_delta(others, 0, 1, flip, np.array([eps]), gap)
    assert 0 <= high[0] - low[0] < 2e-5


@pytest.mark.parametrize(
    ("ones", "zeros", "width", "flip", "eps"),
    [(286, 16, 2, 2.0**-10, 13.25), slow(286, 16, 4, 2.0**-8, 22.0)],
)
def test_the_best_threshold_is_found_far_from_the_mean(ones, zeros, width, flip, eps):
    # Steps along the slope at the mean did not reach the threshold: the upper bound of log delta was 677 and 102 too small.
    low, high = _worst_bits.sum_log_delta(ones, zeros, width, flip, np.array([eps]))
    q, factor = Fraction(flip), rational(eps)
    rest = total(binomial(ones, 1 - q), binomial(zeros, q))
    value = logarithm(hockey_stick(total(rest, binomial(width, q)), total(rest, binomial(width, 1 - q)), factor))
    assert float(low[0]) <= value <= float(high[0])


@pytest.mark.parametrize(
    ("ones", "zeros", "width", "flip"),
    thinned([(54, 0, 5, 2.0**-24), (52, 23, 4, 2.0**-31), (19, 0, 2, 2.0**-31), (10, 0, 5, 2.0**-15), (0, 60, 2, 0.5 - 1e-14),
     (19, 0, 2, 0.5 - 2.0**-54), (0, 30, 4, 0.5 - 1e-9), (0, 0, 3, 0.5 - 1e-6), (4, 3, 3, 0.5 - 1e-4)], 2),
)
def test_thresholds_that_rounding_cannot_tell_apart(ones, zeros, width, flip):
    # At a likelihood ratio two thresholds are equally good, and near 1/2 rounding hides many. The upper bound paid for the value of
    # P at the lower threshold; far from the mean, the next value of P may be 10^10 times as large.
    q = Fraction(flip)
    rest = total(binomial(ones, 1 - q), binomial(zeros, q))
    pair = [total(rest, binomial(width, chance)) for chance in (q, 1 - q)]
    losses = [float(logarithm(pair[0][k] / pair[1][k])) for k in sorted(pair[0])]
    losses = [loss for loss in losses if loss > 0]
    losses = losses[:: len(losses) // 8 + 1]
    eps = np.array(sorted({e for loss in losses for e in (loss, math.nextafter(loss, 0), math.nextafter(loss, math.inf))}))
    eps = eps[eps < width * float(log_odds(flip)) * (1 - 1e-9)]
    low, high = _worst_bits.sum_log_delta(ones, zeros, width, flip, eps)
    for e, least, most in zip(eps.tolist(), low.tolist(), high.tolist()):
        assert least <= logarithm(hockey_stick(*pair, rational(e))) <= most
    if width * (1 - 2 * flip) < 1e-8:
        assert (high - low < 1e-4).all()


@pytest.mark.slow
@pytest.mark.parametrize("delta", [1e-9, 5e-324])
def test_all_datasets_of_2_53_users_with_a_small_delta(delta):
    # All datasets have nearly the same delta, but the bound of an interval of datasets is close to it only if the interval has at
    # most 1e-6 of all numbers of ones. At log delta = -744, a search for a gap of 1e-3 would need a million values.
    bits, known = ShuffledBits(2**53, 0.25), ShuffledBits(2**53, 0.25, ones=0)
    eps = known.epsilon(delta)
    low, high = bits.log_delta(eps, bound="lower"), bits.log_delta(eps)
    assert low - 1e-9 <= known.log_delta(eps) <= high
    assert high - low <= max(1e-3, -1e-5 * high)
