"""Times of Poisson-binomial probabilities and tails, against fast-poibin (divide and conquer by FFT, numba) in the same run."""

import statistics
import time

import numpy as np
import pytest

from shufflebounds.tails.poisson_binomial import poisson_binom_logsf, poisson_binom_window

SIZES = (10**3, 10**4, 10**5, 10**6)


def probabilities(n):
    return np.random.default_rng(12345).random(n)


def _medians(functions, rounds):
    """Return the median seconds of each function.

    Calls of the functions alternate in rounds of four, so that other load affects all functions alike. The first call of the four
    is not counted, because the other function has just emptied the caches.
    """
    times = [[] for _ in functions]
    for _ in range(rounds):
        for function, record in zip(functions, times):
            function()
            for _ in range(3):
                start = time.perf_counter()
                function()
                record.append(time.perf_counter() - start)
    return [statistics.median(record) for record in times]


def compare_poisson_binomial(sizes=SIZES, rounds=5):
    """Return rows (n, seconds of poisson_binom_window, seconds of fast_poibin.PoiBin, their ratio) from one run.

    The window contains all but exp(-50) of the mass at either end, as logarithms with relative accuracy; PoiBin contains every
    probability with absolute accuracy.
    """
    from fast_poibin import PoiBin

    rows = []
    for n in sizes:
        p = probabilities(n)
        ours, theirs = _medians([lambda p=p: poisson_binom_window(p), lambda p=p: PoiBin(p)], rounds)
        rows.append((n, ours, theirs, theirs / ours))
    return rows


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.benchmark(group="poisson-binomial window")
def test_window(benchmark, n):
    p = probabilities(n)
    benchmark(poisson_binom_window, p)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.benchmark(group="poisson-binomial window")
def test_fast_poibin(benchmark, n):
    PoiBin = pytest.importorskip("fast_poibin").PoiBin
    p = probabilities(n)
    benchmark.pedantic(PoiBin, (p,), rounds=3, warmup_rounds=1)


@pytest.mark.parametrize("n", [10**4, 10**6])
@pytest.mark.benchmark(group="poisson-binomial deep tail")
def test_tail(benchmark, n):
    p = probabilities(n)
    k = round(p.sum() + 30 * np.sqrt(p @ (1 - p)))
    benchmark(poisson_binom_logsf, k, p)


@pytest.mark.benchmark(group="poisson-binomial deep tail")
def test_tail_of_two_groups(benchmark):
    p, counts = np.array([0.3, 0.1]), np.array([4e8, 6e8])
    k = round(counts @ p + 30 * np.sqrt(counts @ (p * (1 - p))))
    benchmark(poisson_binom_logsf, k, p, counts)


if __name__ == "__main__":
    for row in compare_poisson_binomial():
        print(f"n = {row[0]:>8}   {1e3 * row[1]:10.3f} ms   fast-poibin {1e3 * row[2]:10.3f} ms   ratio {row[3]:8.1f}")
