"""Kernels called at once from several threads give the very same bits as serially."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event, Thread

import numpy as np
import pytest

from shufflebounds import tails
from shufflebounds._core import _binomial, _compound, _special
from shufflebounds.shuffle import BinomialNoise, Clones, StrongerClones

THREADS = 4


def points():
    rng = np.random.default_rng(9)
    n = np.floor(np.exp(rng.uniform(0, 36, 20_000)))
    p = rng.random(20_000)
    k = np.clip(np.round(n * p + 5 * rng.normal(size=n.size) * np.sqrt(n * p * (1 - p))), 0, n)
    return k, n, p


K, N, P = points()
JOBS = {
    "logpmf": lambda: tails.binom_logpmf(K, N, P),
    "logcdf": lambda: tails.binom_logcdf(K, N, P),
    "logsf": lambda: tails.binom_logsf(K, N, P),
    "shift": lambda: np.array(_binomial.shift_log_delta(N, P, 0.1, 0.0)),
    "mills": lambda: _special.mills_ratio(K),
    "sweep": lambda: np.array(_compound.log_sign_excess(np.arange(1.0, 300.0), 0.5, 0.25, 0.75)),
    "weighted": lambda: np.array(_compound.log_weighted_excess(0.0, -np.abs(np.sin(np.arange(3000.0))), 0.25, 0.75)),
    "clones": lambda: np.array([kind(10**5, 3.0).log_delta(np.linspace(0, 3, 30)) for kind in (Clones, StrongerClones)]),
    "epsilon": lambda: np.array(StrongerClones(10**5, 3.0).epsilon([1e-3, 1e-6, 1e-9])),
    "calibrate": lambda: np.array(BinomialNoise.calibrate(0.3, 1e-7).trials),
}


@pytest.mark.parametrize("job", JOBS)
def test_same_bits(job):
    serial = np.asarray(JOBS[job]()).tobytes()
    start = Barrier(THREADS)

    def run(_):
        start.wait()
        return [np.asarray(JOBS[job]()).tobytes() for _ in range(3)]

    with ThreadPoolExecutor(THREADS) as pool:
        for answers in pool.map(run, range(THREADS)):
            assert answers == [serial] * 3


def test_different_jobs_at_once():
    serial = {name: np.asarray(job()).tobytes() for name, job in JOBS.items()}
    with ThreadPoolExecutor(THREADS) as pool:
        futures = [(name, pool.submit(JOBS[name])) for _ in range(2) for name in JOBS]
        for name, future in futures:
            assert np.asarray(future.result()).tobytes() == serial[name], name


def test_a_long_call_of_a_slow_kernel_leaves_alone_the_lock_of_others():
    # NumPy gives it up above 500 elements, and a busy thread takes it: to release it here would end the interpreter, a child's
    code = """
import threading
import numpy as np
from shufflebounds._core import _binomial
n, p, done = np.full(600, 1e12), np.linspace(1e-9, 0.5, 600), threading.Event()
def busy():
    while not done.is_set():
        pass
def calls():
    for _ in range(200):
        _binomial.shift_log_delta(n, p, 0.1, 0.0)
callers = [threading.Thread(target=calls) for _ in range(3)]
other = threading.Thread(target=busy)
for thread in (other, *callers):
    thread.start()
for thread in callers:
    thread.join()
done.set()
"""
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_a_short_call_of_a_slow_kernel_leaves_the_lock():
    # NumPy keeps it below 500 elements; each of these takes milliseconds, and a call that kept it would let no tick through
    ticks, done = [], Event()

    def tick():
        while not done.wait(1e-3):
            ticks.append(None)

    thread = Thread(target=tick)
    thread.start()
    def during():
        before = len(ticks)
        _compound.log_sign_sweep(np.full(40, 1e8), 0.5, 0.25, 0.75)
        return len(ticks) - before

    # on a busy machine the other thread may not get its turn in the first
    left = any(during() >= 3 for _ in range(20))
    done.set()
    thread.join()
    assert left
