"""How run time grows: ``python benchmarks/growth.py`` prints exponents; ``--record`` writes the times to results/.

A family is one call for a range of sizes: users n, releases r, number of probabilities, or digits of delta. Its exponent is
the least-squares slope of log time over log size in the upper half of the range, where constant parts of the time matter less.
Times are CPU seconds of the process, the smallest of a few calls, so that other load affects them little.
"""

import sys
import time

import numpy as np
from keeping import keep

from shufflebounds import tails
from shufflebounds.mechanisms import KaryResponse
from shufflebounds.shuffle import BinomialNoise, ClearReports, ShuffledBits, StrongerClones

BUDGET = 0.4
"""CPU time in seconds that the calls of one size may take, after the first call."""

USERS = [10**k for k in range(3, 16, 2)]
RELEASES = [1, 4, 16, 64, 256, 1024, 4096]
GROUPS = [10**3, 3 * 10**3, 10**4, 3 * 10**4, 10**5, 3 * 10**5, 10**6]
DIGITS = [3, 6, 12, 25, 50, 100, 200, 300]

FAMILIES = {
    "users n": {
        "stronger clones, eps": (USERS, lambda n: StrongerClones(n, 1.0).epsilon(1e-9)),
        "clear reports, eps": (USERS, lambda n: ClearReports(n, 100).epsilon(1e-9)),
        "k-ary response shuffled, eps": (USERS[:4], lambda n: KaryResponse(10, 1.0).shuffled(n).epsilon(1e-9)),
        "binomial noise, eps": (USERS, lambda n: BinomialNoise(n, 0.5).epsilon(1e-9)),
        "shuffled bits, eps": (USERS[:4], lambda n: ShuffledBits(n, 0.25).epsilon(1e-9)),
        "binomial tail": (USERS, lambda n: tails.binom_logsf(n // 2 + 1, n, 0.5)),
    },
    "releases r": {
        "binomial noise, eps": (RELEASES, lambda r: BinomialNoise(10**4, 0.5).self_compose(r).epsilon(1e-6)),
        "stronger clones, eps": (RELEASES, lambda r: StrongerClones(10**6, 4.0).self_compose(r).epsilon(1e-6)),
    },
    "different probabilities": {
        "one Poisson-binomial tail": (
            GROUPS, lambda m: tails.poisson_binom_logsf(int(0.5 * m + 2 * m**0.5), np.linspace(0.1, 0.9, m))),
        "Poisson-binomial window": (GROUPS, lambda m: tails.poisson_binom_window(np.linspace(0.1, 0.9, m))),
    },
    "digits of 1/delta": {
        "stronger clones, eps, n = 1e4": (DIGITS, lambda d: StrongerClones(10**4, 1.0).epsilon(10.0**-d)),
        "stronger clones, eps, n = 1e9": (DIGITS, lambda d: StrongerClones(10**9, 1.0).epsilon(10.0**-d)),
        "noise, 100 releases, eps": (DIGITS, lambda d: BinomialNoise(10**4, 0.5).self_compose(100).epsilon(10.0**-d)),
    },
}


def seconds(job, size):
    """Return the smallest CPU time of at most 30 calls of the job."""
    job(size)
    found = []
    while not found or (sum(found) < BUDGET and len(found) < 30):
        start = time.process_time()
        job(size)
        found.append(time.process_time() - start)
    return min(found)


def exponent(sizes, taken):
    """Return the least-squares slope of log time over log size, over the upper half of the sizes."""
    half = len(sizes) // 2
    return float(np.polyfit(np.log(sizes[half:]), np.log(taken[half:]), 1)[0])


def measured():
    """Return sizes, seconds and exponent by axis and family."""
    out = {}
    for axis, families in FAMILIES.items():
        out[axis] = {}
        for name, (sizes, job) in families.items():
            taken = [seconds(job, size) for size in sizes]
            out[axis][name] = {"sizes": sizes, "seconds": taken, "exponent": round(exponent(sizes, taken), 2)}
    return out


def main(arguments):
    """Print the table, and store it with --record."""
    found = measured()
    for axis, families in found.items():
        for name, row in families.items():
            print(f"{axis:<24} {name:<32} {row['exponent']:>6.2f}   {row['seconds'][0]:.2e} .. {row['seconds'][-1]:.2e} s"
                  f"   {row['sizes'][0]:.0e} .. {row['sizes'][-1]:.0e}", flush=True)
    if "--record" in arguments:
        keep("growth", {"growth": found})


if __name__ == "__main__":
    main(sys.argv[1:])
