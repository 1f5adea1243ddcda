"""What one call may take: run by test_ceilings in a process of its own, under a memory limit and an alarm."""

import resource
import signal
import sys

import numpy as np

from shufflebounds import composition, mechanisms, selection, shuffle, tails

CALLS = {
    "one Gaussian user": lambda: shuffle.PersonalizedClones.gaussian([0.03]).epsilon(1e-3),
    "bits of no budget": lambda: shuffle.PersonalizedBits([1e-300] * 2, bits=[0, 0]).epsilon(1e-300),
    "scales of a subnormal budget": lambda: selection.svt_scales(5e-324, 0.01, 2),
    "Laplace budgets of 1e5 users": lambda: shuffle.PersonalizedClones.laplace(np.linspace(1, 8, 10**5)).log_delta(0.1),
    "mu of 2**53 clones": lambda: shuffle.StrongerClones(2**53, 4.0).gdp_mu(),
    "curve of 2**53 clones": lambda: shuffle.StrongerClones(2**53, 4.0).tradeoff(),
    "a wide real sum": lambda: shuffle.RealSum(2**33, 2.0**30, 2**20).epsilon(1e-6),
    "1e9 known fakes": lambda: shuffle.FlippedReports(100, 10**9, 1000, 0.1, view="sums", fake="known").epsilon(1e-12),
    "1e7 tails of 2**53 bits": lambda: tails.poisson_binom_logcdf(np.arange(1e7), [0.5], [2**53]),
    "1e5 budgets composed": lambda: composition.compose_dp(np.linspace(0.001, 0.1, 10**5), 1e-9, 1e-6),
    "a window of 2**53 bits": lambda: tails.poisson_binom_window([0.5], [2**53]),
    "sums of 1e6 users": lambda: shuffle.FlippedReports(10**6, 10, 5, 0.125, view="sums").delta(0.1),
    "messages of 2**53 bins": lambda: shuffle.FlippedReports(2, 1, 2**53, 0.1, view="sums").randomize([0, 1], 1),
    "messages of 2**53 fakes": lambda: shuffle.ClearReports(2**53, 4).randomize([0, 1], 1),
    "2**53 releases": lambda: shuffle.BinomialNoise(2**53, 0.5).self_compose(2**53).epsilon(1e-6),
    "a wide geometric law": lambda: mechanisms.GeometricMechanism(1.0, 1, 2**50).self_compose(10**9).epsilon(1e-6),
}


def main(name, gigabytes, seconds):
    import scipy.fft
    import scipy.linalg
    import scipy.optimize  # noqa: F401

    with open("/proc/self/status") as status:
        used = 1024 * int(next(line.split()[1] for line in status if line.startswith("VmSize")))
    resource.setrlimit(resource.RLIMIT_AS, (used + int(gigabytes * 2**30),) * 2)
    signal.alarm(seconds)
    try:
        print(f"answered {str(CALLS[name]())[:80]}")
    except ValueError as refusal:
        print(f"refused {str(refusal)[:200]}")


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
