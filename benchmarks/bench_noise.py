"""Times of binomial noise: delta(eps) and calibration."""

import pytest

from shufflebounds.shuffle import BinomialNoise


@pytest.mark.parametrize("trials", [10**2, 10**4, 10**6, 10**9, 2**53])
def test_log_delta(benchmark, trials):
    assert benchmark(BinomialNoise(trials, 0.5).log_delta, 0.01) < 0


@pytest.mark.parametrize(("eps", "delta", "trials"), [(1.0, 1e-6, 80), (0.1, 1e-8, 8451)])
def test_calibrate(benchmark, eps, delta, trials):
    assert benchmark(BinomialNoise.calibrate, eps=eps, delta=delta).trials == trials
