"""The table of docs/sweeps.md: answers a second of the array functions, on one thread and on two.

``python benchmarks/deployment_costs.py`` prints it; ``--record`` keeps it in results/, from where the page draws it.

What a busy machine does not spoil stands beside it: the share f of a call's CPU time outside the compiled loop, that is under the
interpreter's lock, and what two threads can gain by it, 2/(1 + f). A ratio below that is the machine's: processors that share their
units, or other programs.
"""

import contextlib
import os
import sys
import threading
import time
from unittest import mock

import numpy as np
from keeping import keep

from shufflebounds._core import _clones, _deployments
from shufflebounds.mechanisms import KaryResponse
from shufflebounds.shuffle import _compiled_laws, clones_epsilon, noise_epsilon, shuffled_epsilon


def at_once(job, threads):
    """Return the least of five wall times of so many threads that each do the job."""
    taken = []
    for _ in range(5):
        crew = [threading.Thread(target=job) for _ in range(threads)]
        start = time.perf_counter()
        for one in crew:
            one.start()
        for one in crew:
            one.join()
        taken.append(time.perf_counter() - start)
    return min(taken)


def under_lock(job, owner, name):
    """Return the share of a call's CPU time outside owner.name, the function whose loop is without the lock; the least of five."""
    inner, shares = getattr(owner, name), []

    def timed(*arguments):
        start = time.thread_time()
        try:
            return inner(*arguments)
        finally:
            within.append(time.thread_time() - start)

    setattr(owner, name, timed)
    try:
        for _ in range(5):
            within = []
            start = time.thread_time()
            job()
            shares.append(1 - sum(within) / (time.thread_time() - start))
    finally:
        setattr(owner, name, inner)
    return min(shares)


class TimedLaws:
    """Stands for `_deployments.Laws`, whose methods cannot be replaced."""

    def __init__(self, *arguments):
        self.laws = _deployments.Laws(*arguments)

    def run(self, *arguments):
        """Run the compiled loop."""
        return self.laws.run(*arguments)


def arrays():
    """Answers a second on one thread and on two, bursts of real-time priority where the system allows that."""
    rng, count = np.random.default_rng(1), 4000
    users, delta = np.floor(10 ** rng.uniform(3, 8, count)), 10 ** -rng.uniform(5, 12, count)
    local, prob = rng.uniform(0.1, 6, count), rng.uniform(0.05, 0.95, count)
    few = np.floor(10 ** rng.uniform(6, 8, 150))
    jobs = {
        "`clones_epsilon`, 1e3 to 1e8 users": (count, lambda: clones_epsilon(users, local, delta)),
        "`noise_epsilon`, 1e3 to 1e8 trials": (count, lambda: noise_epsilon(users, prob, delta)),
        "`shuffled_epsilon`, 10-ary response, 1e6 to 1e8 users": (
            few.size, lambda: shuffled_epsilon(KaryResponse(10, 1.0), few, 1e-8)),
    }
    loops = [(_clones, "clones_epsilon"), (_deployments, "noise_epsilon"), (TimedLaws, "run")]
    rows = []
    for (name, (size, job)), loop in zip(jobs.items(), loops, strict=True):
        job()
        one, two = at_once(job, 1), at_once(job, 2)
        with mock.patch.object(_compiled_laws, "_deployments", mock.Mock(Laws=TimedLaws)):
            share = under_lock(job, *loop)
        rows.append([name, f"{size / one:,.0f}", f"{2 * size / two:,.0f}", f"{2 * one / two:.2f}", f"{100 * share:.2g} %",
                     f"{2 / (1 + share):.2f}"])
    header = ["answers a second", "one thread", "two threads", "ratio", "under the lock", "attainable ratio"]
    return {"header": header, "rows": rows}


def main(words):
    """Print the table."""
    # other programs on the machine would be measured too
    with contextlib.suppress(AttributeError, PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    table = arrays()
    for cells in (table["header"], *table["rows"]):
        print(" | ".join(cells))
    if "--record" in words:
        keep("deployments", {"tables": {"deployments": table}})


if __name__ == "__main__":
    main(sys.argv[1:])
