"""The table of docs/sweeps.md: results per second of the functions for arrays, on one thread and with ``threads=2``.

``python benchmarks/deployment_costs.py`` prints the table; ``--record`` writes it to results/, from which the page reads it. The
last columns do not depend on other load: the fraction f of a call's CPU time outside of the compiled loop, during which the
interpreter lock is held, and the largest possible gain of two threads, 2/(1 + f). If a measured gain is smaller, the cause is the
machine: processors that share units, or other programs.
"""

import contextlib
import os
import sys
import time
from functools import partial
from unittest import mock

import numpy as np
from keeping import keep

from shufflebounds._core import _clones, _deployments
from shufflebounds._engines.excess import packed as _compiled_laws
from shufflebounds.mechanisms import KaryResponse
from shufflebounds.shuffle import binomial_noise_epsilons, clones_epsilons, shuffled_epsilons


def fastest(job):
    """Return the smallest of five wall times of the job."""
    taken = []
    for _ in range(5):
        start = time.perf_counter()
        job()
        taken.append(time.perf_counter() - start)
    return min(taken)


def under_lock(job, owner, name):
    """Return the fraction of a call's CPU time outside of the function owner.name, whose loop releases the interpreter lock.

    The smallest of five measured fractions is returned.
    """
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
    """A wrapper of `_deployments.LawTable` that adds up the time of `run`; the methods of the class itself cannot be replaced."""

    def __init__(self, *arguments):
        self.laws = _deployments.LawTable(*arguments)

    def run(self, *arguments):
        """Run the compiled loop, and measure its time."""
        return self.laws.run(*arguments)


def arrays():
    """Return results per second on one thread and with threads=2, with real-time priority if the system allows it."""
    rng, count = np.random.default_rng(1), 4000
    users, delta = np.floor(10 ** rng.uniform(3, 8, count)), 10 ** -rng.uniform(5, 12, count)
    local, prob = rng.uniform(0.1, 6, count), rng.uniform(0.05, 0.95, count)
    few = np.floor(10 ** rng.uniform(6, 8, 2000))
    jobs = {
        "`clones_epsilons`, 1e3 to 1e8 users": (count, partial(clones_epsilons, users, local, delta)),
        "`binomial_noise_epsilons`, 1e3 to 1e8 trials": (count, partial(binomial_noise_epsilons, users, prob, delta)),
        "`shuffled_epsilons`, 10-ary response, 1e6 to 1e8 users": (
            few.size, partial(shuffled_epsilons, KaryResponse(10, 1.0), few, 1e-8)),
    }
    loops = [(_clones, "clones_epsilons"), (_deployments, "binomial_noise_epsilons"), (TimedLaws, "run")]
    rows = []
    for (name, (size, job)), loop in zip(jobs.items(), loops, strict=True):
        job()
        one, two = fastest(job), fastest(partial(job, threads=2))
        with mock.patch.object(_compiled_laws, "_deployments", mock.Mock(LawTable=TimedLaws)):
            share = under_lock(job, *loop)
        rows.append([name, f"{size / one:,.0f}", f"{size / two:,.0f}", f"{one / two:.2f}", f"{100 * share:.2g} %",
                     f"{2 / (1 + share):.2f}"])
    header = ["answers a second", "one thread", "`threads=2`", "ratio", "under the lock", "attainable ratio"]
    return {"header": header, "rows": rows}


def main(words):
    """Print the table, and store it with --record."""
    # With real-time priority, other programs on the machine are not measured, too.
    with contextlib.suppress(AttributeError, PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    table = arrays()
    for cells in (table["header"], *table["rows"]):
        print(" | ".join(cells))
    if "--record" in words:
        keep("deployments", {"tables": {"deployments": table}})


if __name__ == "__main__":
    main(sys.argv[1:])
