"""Times of compositions: upper and lower bound of eps, for a new object in every call."""

import pytest

from shufflebounds.shuffle import BinomialNoise, ShuffledBits, StrongerClones


@pytest.mark.parametrize("delta", [1e-6, 1e-50, 1e-130])
@pytest.mark.parametrize("times", [10, 100, 1000])
def test_binomial_noise(benchmark, times, delta):
    def both():
        many = BinomialNoise(10**4, 0.5).self_compose(times)
        return many.epsilon(delta, bound="lower"), many.epsilon(delta)

    lower, upper = benchmark(both)
    assert lower <= upper <= lower * (1 + 1e-5)


@pytest.mark.parametrize(
    "one", [BinomialNoise(10**9, 0.5), StrongerClones(10**6, 4.0), ShuffledBits(10**4, 0.2, ones=3000)], ids=str
)
def test_hundred_releases(benchmark, one):
    assert benchmark(lambda: one.self_compose(100).epsilon(1e-6)) > 0
