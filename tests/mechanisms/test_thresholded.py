"""Counts that are released above a threshold, against enumeration of the releases for all pairs of small counts."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest

from shufflebounds.mechanisms import GaussianMechanism, GeometricMechanism, ThresholdedCount
from tests.mechanisms import exact
from tests.oracles import assert_sides_and_monotone
from tests.strategies import slow, thinned


def released(count, threshold, noise):
    """Return the distribution of the release: None, or the noisy count."""
    if count == 0:
        return {None: mp.mpf(1)}
    out = {None: mp.mpf(0)}
    for k, p in noise.items():
        y = count + k if count + k >= threshold else None
        out[y] = out.get(y, mp.mpf(0)) + p
    return out


@pytest.mark.parametrize(("eps", "sensitivity", "bound", "threshold"), thinned([
    (1.0, 1, None, 2), (1.0, 1, None, 6), (0.7, 1, 4, 4), slow(2.0, 3, None, 5), (1.0, 1, 3, 9), (3.0, 2, None, 4),
], 2))
def test_every_pair_of_counts_by_enumeration(eps, sensitivity, bound, threshold):
    mechanism = GeometricMechanism(eps, sensitivity, bound).thresholded(threshold)
    # The noise is cut off where the rest is far below all tolerances.
    reach = bound or int(90 * sensitivity / eps)
    noise = exact.geometric(eps, sensitivity, bound or reach)
    far = threshold + reach + 1
    laws = {count: released(count, threshold, noise) for count in [*range(2 * sensitivity + 2), far, far + sensitivity]}
    neighbours = [(a, b) for a, b in itertools.permutations(laws, 2) if abs(a - b) <= sensitivity]
    for asked in (0.0, 0.3, eps / 2, eps * 0.99, 1.5 * eps, 4.0):
        factor = exact.exponential(asked)
        value = max(exact.hockey_stick(laws[a], {**dict.fromkeys(laws[a], mp.mpf(0)), **laws[b]}, factor) for a, b in neighbours)
        lower, upper = (float(mechanism.delta(asked, bound=side)) for side in ("lower", "upper"))
        assert lower * (1 - 1e-13) <= value <= upper * (1 + 1e-13) + mp.mpf(10) ** -35
        assert upper - lower <= 1e-12 * upper


def test_delta_is_half_an_error_tail_where_the_noise_has_none():
    noise = GeometricMechanism(0.5)
    for threshold in (2, 10, 300):
        counts = noise.thresholded(threshold)
        assert counts.delta(0.5) == pytest.approx(noise.error_tail(threshold - 2) / 2, rel=1e-12)
        assert counts.delta(0.2) == pytest.approx(max(noise.delta(0.2), noise.error_tail(threshold - 2) / 2), rel=1e-12)
    threshold = 2 + int(noise.error_quantile(2e-9))
    assert noise.thresholded(threshold).delta(0.5) <= 1e-9 < noise.thresholded(threshold - 1).delta(0.5, bound="lower")


def test_clipped_noise_never_releases_a_new_key_above_its_bound():
    clipped = GeometricMechanism(1.0, 1, 8)
    assert clipped.thresholded(10).log_delta(1.0) == pytest.approx(clipped.log_delta(1.0), rel=1e-13)
    assert clipped.thresholded(9).delta(30.0) >= math.exp(-8) / (1 + math.exp(-1)) * (1 - 1e-12)


@pytest.mark.slow
def test_several_releases_by_adaptive_enumeration():
    mechanism = GeometricMechanism(0.8).thresholded(5)
    q, new = math.exp(-0.8), math.exp(mechanism._log_released)
    # Masses of the first dataset and likelihood ratios: the noise on two large counts, and a key that one dataset alone has.
    pairs = [[(1 / (1 + q), 1 / q), (q / (1 + q), q)], [(1 - new, 1 - new), (new, math.inf)], [(1.0, 1 / (1 - new))]]

    def largest(releases, factor):
        """Return the largest divergence if the adversary chooses the pair of each release after the results of earlier ones."""
        if releases == 0 or factor == 0:
            return max(0.0, 1 - factor)
        return max(sum(p * largest(releases - 1, factor / ratio) for p, ratio in pair) for pair in pairs)

    for times, eps in ((1, 0.3), (2, 0.5), (2, 1.0), (3, 1.0), (5, 2.0)):
        lower, upper = (float(mechanism.self_compose(times).delta(eps, bound=side)) for side in ("lower", "upper"))
        value = largest(times, math.exp(eps))
        assert lower * (1 - 1e-9) <= value <= upper * (1 + 1e-9), (times, eps)
        assert upper <= 1.2 * value


def test_randomize_releases_positive_counts_that_reach_the_threshold():
    mechanism = GeometricMechanism(1.0).thresholded(6)
    shown = mechanism.randomize(np.repeat([[0], [1], [5], [50]], 40_000, axis=1), rng=3)
    assert shown.dtype == np.int64
    assert not shown[0].any()
    assert ((shown == 0) | (shown >= 6)).all()
    for count, row in ((1, shown[1]), (5, shown[2])):
        chance = mechanism.noise.error_tail(6 - count - 1) / 2
        assert abs((row > 0).mean() - chance) < 5 * math.sqrt(chance / 40_000)
    assert (shown[3] > 0).all()


@pytest.mark.parametrize("threshold", [2, 7, 40, 2**50])
def test_sides_and_monotone(threshold):
    for asked, more in ((0.0, 0.1), (0.9, 0.2), (5.0, 1.0)):
        assert_sides_and_monotone(GeometricMechanism(1.0).thresholded(threshold), asked, more)


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: GeometricMechanism(1.0).thresholded(1), ValueError, "threshold=1 must be an integer in 2"),
    (lambda: GeometricMechanism(1.0, 4).thresholded(4), ValueError, "threshold=4 must be an integer in 5"),
    (lambda: GeometricMechanism(1.0, 2, 9).thresholded(12), ValueError, "has a bound: its sensitivity must be 1"),
    (lambda: ThresholdedCount(GaussianMechanism(1.0), 9), TypeError, "must be a GeometricMechanism"),
    (lambda: GeometricMechanism(1.0).thresholded(5).randomize([-1]), ValueError, "values holds -1"),
])
def test_bad_input(call, error, text):
    with pytest.raises(error, match=text):
        call()
