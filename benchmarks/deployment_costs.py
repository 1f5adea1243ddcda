"""The tables of docs/benchmarks.md and docs/sweeps.md: calibration at a billion users, and arrays of deployments on two threads.

``python benchmarks/deployment_costs.py`` prints them; ``--record`` keeps them in results/, from where the pages draw them.
"""

import contextlib
import os
import sys
import threading
import time

import numpy as np
from bench_calibrate import CASES
from keeping import keep
from measuring import duration

from shufflebounds.mechanisms import KaryResponse
from shufflebounds.shuffle import clones_epsilon, noise_epsilon, shuffled_epsilon


def calibration():
    """CPU time of every protocol's calibration at (1, 1e-9), the least of three."""
    rows = []
    for name, build in CASES.items():
        kind, _, view = name.partition(", ")
        cells = [f"`{kind}`" + (f", {view}" if view else "")]
        for users in (10**9, 10**12):
            taken = []
            for _ in range(3):
                start = time.process_time()
                build(users)
                taken.append(time.process_time() - start)
            cells.append(duration(min(taken)))
        rows.append(cells)
    return {"header": ["calibrate", "1e9 users", "1e12 users"], "rows": rows}


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
    rows = []
    for name, (size, job) in jobs.items():
        job()
        one, two = at_once(job, 1), at_once(job, 2)
        rows.append([name, f"{size / one:,.0f}", f"{2 * size / two:,.0f}", f"{2 * one / two:.2f}"])
    return {"header": ["answers a second", "one thread", "two threads", "ratio"], "rows": rows}


def main(words):
    """Print both tables."""
    # other programs on the machine would be measured too
    with contextlib.suppress(AttributeError, PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    tables = {"deployments": arrays()}
    with contextlib.suppress(AttributeError, PermissionError):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    tables["calibration"] = calibration()
    for table in tables.values():
        for cells in (table["header"], *table["rows"]):
            print(" | ".join(cells))
    if "--record" in words:
        keep("deployments", {"tables": tables})


if __name__ == "__main__":
    main(sys.argv[1:])
