"""Every function with ``threads=`` returns the same bits for every number of threads; errors and interrupts end all threads."""

import os
import signal
import threading

import numpy as np
import pytest

from shufflebounds import shuffle, tails
from shufflebounds.mechanisms import GaussianMechanism, KaryResponse
from tests.strategies import slow

RNG = np.random.default_rng(4)
USERS = np.floor(10.0 ** RNG.uniform(1, 12, 300))
LOCAL = RNG.uniform(0.1, 8, 300)
DELTA = 10.0 ** RNG.uniform(-12, -3, 300)
FEW = np.array([2, 3, 10, 10**3, 10**6, 10**9])
ROWS = [RNG.random(size) for size in (1, 5, 700, 3000, 40_000)]

KINDS = [KaryResponse(4, 1.0), KaryResponse(3, 2.0)]

CALLS = {
    "clones_epsilons": lambda **kw: shuffle.clones_epsilons(USERS, LOCAL, DELTA, **kw),
    "clones_log_deltas": lambda **kw: shuffle.clones_log_deltas(USERS, LOCAL, LOCAL / 9, bound="lower", **kw),
    "binomial_noise_epsilons": lambda **kw: shuffle.binomial_noise_epsilons(USERS, 0.3, DELTA, **kw),
    "binomial_noise_log_deltas": lambda **kw: shuffle.binomial_noise_log_deltas(USERS, 0.3, 1 / LOCAL, bound="lower", **kw),
    "shuffled_epsilons": lambda **kw: shuffle.shuffled_epsilons(KINDS, FEW[:, None], 0.01, **kw),
    "shuffled_epsilons of heavy tails": lambda **kw: shuffle.shuffled_epsilons(GaussianMechanism(0.5), FEW[[1, 3]], 1e-6, **kw),
    "shuffled_epsilons of all datasets": lambda **kw: shuffle.shuffled_epsilons(KaryResponse(3, 1.0), FEW, 0.01, bound="lower",
                                                                                **kw),
    "shuffled_log_deltas": lambda **kw: shuffle.shuffled_log_deltas(KaryResponse(4, 1.0), FEW, [[0.1], [0.5], [2.0]], **kw),
    "poisson_binom_logpmf": lambda **kw: tails.poisson_binom_logpmf([0, 1, 2, 1500, 20_000], ROWS, **kw),
    "poisson_binom_logcdf": lambda **kw: tails.poisson_binom_logcdf([0, 1, 2, 1500, 20_000], ROWS, **kw),
    "poisson_binom_logsf": lambda **kw: tails.poisson_binom_logsf([0, 1, 2, 1500, 20_000], ROWS, **kw),
    "poisson_binom_window": lambda **kw: tails.poisson_binom_window(ROWS[-1], log_tail=-400.0, **kw)[1],
    "poisson_binom_window of equal p": lambda **kw: tails.poisson_binom_window([0.25, 0.5], [10**9, 10**8], **kw)[1],
}


@pytest.mark.parametrize("name", [slow(name) if name == "shuffled_epsilons of heavy tails" else name for name in CALLS])
def test_the_number_of_threads_does_not_change_a_bit(name):
    alone = np.asarray(CALLS[name]())
    for threads in (2, 5):
        assert np.asarray(CALLS[name](threads=threads)).tobytes() == alone.tobytes()


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_number_of_threads_is_refused(name):
    for threads in [0, -1, 2.0, 2**16, "2", None]:
        with pytest.raises(ValueError, match="threads="):
            CALLS[name](threads=threads)


def test_slices_cover_every_row_once():
    whole = shuffle.clones_log_deltas(USERS, LOCAL, LOCAL / 9)
    for rows in (1, 15, 63, 64, 65, 127, 128, 129):
        found = shuffle.clones_log_deltas(USERS[:rows], LOCAL[:rows], LOCAL[:rows] / 9, threads=2)
        assert found.tobytes() == whole[:rows].tobytes()


class Row:
    """Probabilities that `job` returns for `part` when they are read, by default (1/4, 1/2)."""

    ndim, shape = 1, (2,)

    def __init__(self, job, part):
        self.job, self.part = job, part

    def __array__(self, dtype=None, copy=None):
        return np.array(self.job(self.part) or [0.25, 0.5])


def call_each(job, parts, threads):
    """Call `job` with 0, ..., parts - 1, each in the computation of a row of its own after the first row."""
    rows = [np.array([0.5]), *(Row(job, part) for part in range(parts))]
    found = tails.poisson_binom_logcdf(0, rows, threads=threads)
    assert np.exp(found) == pytest.approx(np.append(0.5, np.full(parts, 0.375)), rel=1e-14)


def test_several_threads_run():
    both = threading.Barrier(2, timeout=60)
    call_each(lambda part: both.wait() and None, 2, 2)
    assert not both.broken


@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_is_raised_and_no_further_part_is_begun(threads):
    begun = []

    def job(part):
        begun.append(part)
        return [0.5, 5.0] if part == 5 else None

    with pytest.raises(ValueError, match="p holds 5"):
        call_each(job, 5000, threads)
    assert len(begun) < 5000


@pytest.mark.skipif(os.name == "nt", reason="os.kill ends the process there")
def test_an_interrupt_ends_all_threads():
    begun = []

    def job(part):
        begun.append(part)
        if part == 5:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        call_each(job, 20_000, 2)
    assert len(begun) < 20_000
    assert threading.active_count() < 20
