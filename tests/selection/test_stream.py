"""Runs of sparse vector: when they end, how often they err, and the privacy of the stages."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import log_ndtr

from shufflebounds.composition import rdp_to_dp
from shufflebounds.selection import SparseVector, SVTScales, svt_accuracy, svt_log_moment, svt_rdp, svt_scales, svt_stages_epsilon


def test_a_run_halts_after_cutoff_answers():
    stream = SparseVector(0.0, svt_scales(700.0, cutoff=2), rng=1)
    assert stream.run([1, -1, 1, 1, 1]) == [True, False, True]
    assert stream.halted
    with pytest.raises(RuntimeError, match="has halted"):
        stream.ask(1.0)
    short = SparseVector(0.0, svt_scales(700.0, cutoff=5), max_queries=2, rng=1)
    assert short.run([1, 1, 1]) == [True, True]


def test_numbers_are_released_with_independent_noise():
    stream = SparseVector(0.0, svt_scales(700.0, cutoff=100, numeric=True), rng=1)
    answers = stream.run([5.0] * 100)
    assert all(answer is not True and abs(answer - 5) < 10 for answer in answers)
    assert len(set(answers)) == 100


@pytest.mark.slow
def test_frequency_of_errors_is_the_exact_probability():
    scales, runs, queries = svt_scales(1.0), 4000, 3
    alpha = svt_accuracy(scales, queries, 0.2)
    rng = np.random.default_rng(2)
    # All queries are alpha below the threshold, so an answer "above" is wrong.
    wrong = sum(any(SparseVector(alpha, scales, rng=rng).run([0.0] * queries)) for _ in range(runs))
    assert wrong / runs <= 0.2 + 5 * math.sqrt(0.2 * 0.8 / runs)


def test_gaussian_noise_and_the_threshold_that_is_kept():
    scales = SVTScales(1.0, 2.0, None, 10**6)
    kept = SparseVector(0.0, scales, noise="gaussian", resample=False, rng=5)
    fresh = SparseVector(0.0, scales, noise="gaussian", resample=True, rng=5)
    level = kept._level
    kept.run([100.0] * 10)
    fresh.run([100.0] * 10)
    assert kept._level == level != fresh._level


@pytest.mark.parametrize(("name", "value"), [("sensitivity", 0.0), ("noise", "cauchy"), ("max_queries", 0)])
def test_bad_arguments_are_named(name, value):
    with pytest.raises(ValueError, match=name):
        SparseVector(0.0, svt_scales(1.0), **{name: value})
    with pytest.raises(ValueError, match="scales"):
        SparseVector(0.0, (1.0, 2.0, None, 1))


@pytest.mark.parametrize(("threshold", "one", "two", "moment"), [
    (0.0, 1.0, 3**0.5, 2.0), (5.0, 1.0, 2.0, 3.0), (-3.0, 2.0, 9.0, 1.0),
    # The integral was once truncated at z = 25, three standard deviations above its mode, and the bound was too small by .09.
    (-0.02, 0.56, 8.75, 187.0),
])
def test_the_length_by_another_quadrature(threshold, one, two, moment):
    def log_term(z):
        return -z * z / 2 - math.log(2 * math.pi) / 2 - moment * log_ndtr(-(threshold + one * z) / two)

    truth = math.log(quad(lambda z: math.exp(log_term(z)), -12, 60, limit=400, points=[0, 3, 6, 12])[0])
    assert truth - 1e-8 <= svt_log_moment(threshold, one, two, moment) <= truth + 1e-8
    with pytest.raises(ValueError, match="moment"):
        svt_log_moment(threshold, one, two, (two / one) ** 2)


def test_stages_are_at_most_the_smaller_of_both_bounds():
    def stage(order):
        return svt_rdp(order, lambda a: a / 800, lambda a: a / 800, cutoff=2, max_queries=20)

    orders = np.linspace(1.05, 200, 500)
    found = svt_stages_epsilon(stage, 10, 1e-6)
    assert found <= rdp_to_dp(orders, [10 * stage(a) for a in orders], delta=1e-6)[0] * (1 + 1e-3)
    assert svt_stages_epsilon(stage, 1, 1e-6) < found < svt_stages_epsilon(stage, 20, 1e-6)
    with pytest.raises(ValueError, match="finite at some order"):
        svt_stages_epsilon(lambda a: math.inf, 2, 1e-6)
