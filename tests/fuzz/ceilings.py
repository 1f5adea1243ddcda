"""Calls that must stay within resource limits; test_ceilings runs them in a separate process with a memory limit and an alarm."""

import resource
import signal
import sys

import numpy as np

from shufflebounds import composition, mechanisms, selection, shuffle, tails

KNOWN = {"view": "sums", "fake": "known"}

QUICK = {
    "one Gaussian user": lambda: shuffle.PersonalizedClones.gaussian([0.03]).epsilon(1e-3),
    "a Gaussian user who hides nobody": lambda: shuffle.PersonalizedClones.gaussian([1.0, 1e6]).epsilon(1e-300),
    "bits of no budget": lambda: shuffle.PersonalizedBits([1e-300] * 2, bits=[0, 0]).epsilon(1e-300),
    "scales of a subnormal budget": lambda: selection.svt_scales(5e-324, 0.01, 2),
    "Laplace budgets of 1e5 users": lambda: shuffle.PersonalizedClones.laplace(np.linspace(1, 8, 10**5)).log_delta(0.1),
    "mu of 2**53 clones": lambda: shuffle.StrongerClones(2**53, 4.0).gdp_mu(),
    "curve of 2**53 clones": lambda: shuffle.StrongerClones(2**53, 4.0).tradeoff(),
    "1e5 budgets composed": lambda: composition.compose_dp(np.linspace(0.001, 0.1, 10**5), 1e-9, 1e-6),
    "1e6 tails of 2**53 bits": lambda: tails.poisson_binom_logcdf(np.arange(1e6), [0.5], [2**53]),
    "a window of 2**53 bits": lambda: tails.poisson_binom_window([0.5], [2**53]),
    "messages of 2**53 bins": lambda: shuffle.FlippedReports(2, 1, 2**53, 0.1, view="sums").randomize([0, 1], 1),
    "messages of 2**53 fakes": lambda: shuffle.ClearReports(2**53, 4).dummies(1),
    "a wide geometric law": lambda: mechanisms.GeometricMechanism(1.0, 1, 2**50).self_compose(10**9).epsilon(1e-6),
    "2**53 releases": lambda: shuffle.BinomialNoise(2**53, 0.5).self_compose(2**53).epsilon(1e-6),
}
"""Calls that take one or two seconds together."""

LONGER = {
    "a wide real sum": lambda: shuffle.RealSum(2**33, 2.0**30, 2**20).epsilon(1e-6),
    "1e9 known fakes": lambda: shuffle.FlippedReports(100, 10**9, 1000, 0.1, **KNOWN).epsilon(1e-12),
    "sums of 1e6 users": lambda: shuffle.FlippedReports(10**6, 10, 5, 0.125, view="sums").epsilon(1e-6),
    "a bound for 2**20 shifts": lambda: mechanisms.GeometricMechanism.from_dp(eps=1.0, delta=1e-6, sensitivity=2**20),
    "two real sums of rare flips": lambda: shuffle.RealSum(100, 1e-6, 4).self_compose(2).epsilon(1e-6),
    "oracles at extremes": lambda: shuffle.compare_at(users=10**6, bins=100, eps=50.0, delta=1e-300),
}
"""Calls that take several seconds each."""


def main(names, gigabytes, seconds):
    import scipy.fft
    import scipy.linalg  # noqa: F401

    with open("/proc/self/status") as status:
        used = 1024 * int(next(line.split()[1] for line in status if line.startswith("VmSize")))
    resource.setrlimit(resource.RLIMIT_AS, (used + int(gigabytes * 2**30),) * 2)
    # The limit is on the CPU time of this process, so that other processes do not matter.
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    signal.alarm(20 * seconds)
    for name in names or QUICK:
        try:
            answer = " ".join(str({**QUICK, **LONGER}[name]()).split())
            print(f"{name}: answered {answer[:80]}", flush=True)
        except ValueError as refusal:
            print(f"{name}: refused {str(refusal)[:200]}", flush=True)


if __name__ == "__main__":
    main(sys.argv[3:], float(sys.argv[1]), int(sys.argv[2]))
