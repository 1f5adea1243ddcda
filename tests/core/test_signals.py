"""Ctrl-C interrupts a long call of a kernel."""

import os
import signal
import threading

import numpy as np
import pytest

from shufflebounds import shuffle, tails
from shufflebounds._core import _blocks, _special

LONG = {
    # Without an interrupt each of these calls takes minutes.
    "compound": lambda: tails.compound_binom_logsf(np.arange(100_000), 0, np.full(16_384, -14 * np.log(2)), 0.3),
    "poisson-binomial": lambda: [tails.poisson_binom_window(np.linspace(1e-3, 0.9, 200_000), log_tail=-1e4) for _ in range(1000)],
    "ufunc": lambda: tails.binom_logsf(np.broadcast_to(5.0, 10**8), 10.0, 0.3),
    "ufunc in small loops": lambda: tails.binom_logsf(np.arange(5, 10**6 + 5)[:, None], np.arange(100), 0.3),
    "ufunc that converts": lambda: _special.log_add_exp(np.broadcast_to(np.int16(5), 10**9), 0.0),
    "clones": lambda: shuffle.clones_log_deltas(np.full(10**6, 10**6), 1.0, 0.005),
}


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("job", LONG)
def test_an_interrupt_ends_the_call(job):
    timer = threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        LONG[job]()
    timer.join()


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_signals_are_handled_within_one_tail_of_millions_of_probabilities():
    law, heard = _blocks.PoissonBinomialPMF(np.linspace(0.01, 0.99, 4_300_000)), []
    k = (law.mean + 12 * law.var**0.5) // 1
    truth = law.tail(k, True)
    before = signal.signal(signal.SIGALRM, lambda *_: heard.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
        law.tail(k, True)
        # A single signal could be handled only after the call, so several are sent.
        assert len(heard) > 2
        signal.setitimer(signal.ITIMER_REAL, 0, 0)
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.005, 0)
        with pytest.raises(KeyboardInterrupt):
            law.tail(k, True)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0, 0)
        signal.signal(signal.SIGALRM, before)
    assert law.tail(k, True) == truth
