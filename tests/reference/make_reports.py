"""Computes the values of reports.json: questions from public reports about other programs, with their right answers.

    python tests/reference/make_reports.py

Prints the ids whose stored value is not the computed one. `source` names the report, `call` asks the same of this library, and
`side` says which answers are right: "exact" within the tolerance, "upper" for an upper bound that is at most the tolerance above
the value, "at least" for a bound that must not be below it. The values in STATED are those of another program or of a longer
computation.
"""

import json
import math
from fractions import Fraction
from pathlib import Path

import mpmath as mp
import numpy as np

HERE = Path(__file__).parent
STATED = {"tf-privacy-71", "kind-hashing-14", "wicg-734-1e8", "evaluatingdpml-500", "evaluatingdpml-1000"}
"""Epsilon and noise of compositions of sampled Gaussians (dp-accounting), and enumerations that take minutes."""


def binomial_cdf(k, n, p):
    """Return log Pr[Bin(n, p) <= k], 1 minus the shorter tail if it is the shorter one."""
    q, p = 1 - Fraction(p), Fraction(p)
    if n - k < k:
        upper = sum(math.comb(n, j) * p**j * q ** (n - j) for j in range(k + 1, n + 1))
        return mp.log1p(-mp.mpf(upper.numerator) / upper.denominator)
    with mp.workdps(80):
        one = mp.mpf(p.numerator) / p.denominator
        mass, total = (1 - one) ** n, mp.mpf(0)
        for j in range(k + 1):
            total += mass
            mass *= (n - j) * one / ((j + 1) * (1 - one))
        return mp.log(total)


def negative_binomial(k, successes, p, upper):
    """Return the log probability of at most, or of more than, k failures before the given number of successes."""
    p = mp.mpf(p)
    terms, mass = (range(k + 1, k + 4000) if upper else range(k + 1)), None
    total = mp.mpf(0)
    for j in terms:
        mass = mp.binomial(j + successes - 1, j) * p**successes * (1 - p) ** j if mass is None else mass * (
            (j + successes - 1) * (1 - p) / j)
        total += mass
    return mp.log(total)


def poisson_binomial(k, chances):
    """Return the log probability of k ones, by products of polynomials with exact coefficients."""
    law = [Fraction(1)]
    for p in map(Fraction, chances):
        law = [(law[j] if j < len(law) else 0) * (1 - p) + (law[j - 1] * p if j else 0) for j in range(len(law) + 1)]
    return mp.log(mp.mpf(law[k].numerator) / law[k].denominator)


def poisson(k, mean, upper):
    counts = range(k + 1, k + 500) if upper else range(k + 1)
    return mp.log(mp.fsum(mp.exp(-mean + j * mp.log(mean) - mp.loggamma(j + 1)) for j in counts))


def gaussian_delta(sigma, eps):
    sigma, eps = mp.mpf(sigma), mp.mpf(eps)
    return mp.ncdf(1 / (2 * sigma) - eps * sigma) - mp.exp(eps) * mp.ncdf(-1 / (2 * sigma) - eps * sigma)


def third_value(own, other, users, eps, most, rest=None):
    """Return delta if every other message is in one of two classes, with probability `other` each.

    The target's message is in the first and in the second class with probabilities `own`, for the target's first value. With
    `rest`, a third class has these probabilities of the target's and of another message, and a number of values.
    """
    high, low = own
    counts = [np.arange(most), np.arange(most), np.arange(rest[2] if rest else 1)]
    a, b, c = np.meshgrid(*counts, indexing="ij")
    total, left = a + b + c, 1 - 2 * other - (rest[1] if rest else 0.0)
    falling = np.concatenate([[0.0], np.cumsum(np.log(users - 1 - np.arange(int(total.max()))))])
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, int(total.max()) + 1)))])
    masses = np.exp(falling[total] - log_factorial[a] - log_factorial[b] - log_factorial[c] + (a + b) * math.log(other)
                    + (c * math.log(rest[1]) if rest else 0) + (users - 1 - total) * math.log1p(left - 1))

    def after(axis):
        return np.pad(masses, [(int(i == axis), 0) for i in range(3)])[tuple(slice(size.size) for size in counts)]

    shared = (rest[0] * after(2) if rest else 0) + (1 - high - low - (rest[0] if rest else 0)) * masses
    first, second = after(0), after(1)
    return np.maximum(high * first + low * second + shared - math.exp(eps) * (low * first + high * second + shared), 0).sum()


def solved(delta, target, top):
    low, high = 0.0, top
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if delta(middle) > target else (low, middle)
    return low


def response(users, most, rest):
    size = math.exp(14.0) + 2924
    return solved(lambda eps: third_value((math.exp(14.0) / size, 1 / size), 1 / size, users, eps, most,
                                          (2922 / size, 2922 / size, rest)), 1e-9, 14.0)


def hadamard(users, eps=None):
    kept = 1 / (1 + math.exp(-14.0))
    own = kept / 2, (1 - kept) / 2
    if eps is not None:
        return math.log(third_value(own, own[1], users, eps, 60))
    return solved(lambda at: third_value(own, own[1], users, at, 60), 1e-9, 14.0)


VALUES = {
    "jstat-34": lambda: binomial_cdf(21, 22, 0.3),
    "scipy-user-36000": lambda: binomial_cdf(250, 36000, 0.00625),
    "scipy-13365b": lambda: negative_binomial(5, 200, 0.01, False),
    "scipy-6682": lambda: negative_binomial(250, 50, 32 / 63, True),
    "statrs-171": lambda: negative_binomial(2321, 269, 0.0405, False),
    "stan-2031": lambda: mp.log(mp.mpf(1e-18)),
    "stan-3377": lambda: 19 * mp.log(1 - mp.mpf(0.865169)),
    "smile-878b": lambda: poisson(300, 500, False),
    "scipy-24074-1": lambda: mp.log(0.5),
    "scipy-24074-2": lambda: mp.log(0.5),
    # For tiny shapes a and b the incomplete beta function is b/(a + b) in the middle, up to a relative error of their size.
    "scipy-22682": lambda: mp.log(mp.mpf(1e-21) / (mp.mpf(1e-20) + mp.mpf(1e-21))),
    "poibin-4": lambda: poisson_binomial(5, [0.0807254, 0.00795338, 0.03428723, 0.90139239, 0.00823136]),
    "distributions-1198": lambda: poisson_binomial(2, [0.7783589698124916, 0.3834391762747395, 0.22510654784967066,
                                                      0.45799457994579945, 0.6509354928790841]),
    "scipy-1883": lambda: poisson(10000, 2, True),
    "autodp-39-1": lambda: mp.findroot(lambda sigma: mp.log(gaussian_delta(sigma, 1)) - mp.log(mp.mpf(1e-6)), (4.2, 4.3)),
    "programming-dp-45": lambda: gaussian_delta(0.4844805262605389, 10),
    # The delta at eps = 0, the rate times the total variation distance, is below the target.
    "tf-privacy-166": lambda: 0,
    "tf-privacy-166-tv": lambda: mp.mpf(105 / 100000) * gaussian_delta(1, 0),
    # One hundred releases have a total variation distance of at most 100 times .01 times .383.
    "opacus-585": lambda: 0,
    "opendp-621": lambda: 0,
    "opendp-2922": lambda: mp.exp(-4) / (1 + mp.exp(-1)),
    "opendp-2911-em": lambda: 1 / (1 + mp.exp(-2)),
    "opendp-1279": lambda: 2 * mp.log(3),
    "opendp-1126": lambda: 1 - mp.mpf(1e-3) - mp.e * mp.mpf(0.01),
    "wicg-734-1e5": lambda: response(10**5, 22, 480),
    "wicg-734-1e4": lambda: response(10**4, 16, 120),
    "kind-hadamard-14": lambda: hadamard(10**5),
    "kind-hadamard-14-1e4": lambda: hadamard(10**4),
    "kind-hadamard-14-delta": lambda: hadamard(10**5, 2.6),
}


def agrees(case):
    """Return whether the stored value is the computed one, to 8 digits (tails: 20 digits)."""
    with mp.workdps(60):
        exact, stored = mp.mpf(VALUES[case["id"]]()), mp.mpf(case["expected"])
        digits = 20 if case["call"].startswith("tails") and case["id"] not in ("scipy-22682",) else 8
        return abs(stored - exact) <= abs(exact) * mp.mpf(10) ** -digits


if __name__ == "__main__":
    for case in json.loads((HERE / "reports.json").read_text()):
        if case["id"] not in STATED and not agrees(case):
            print(case["id"], case["expected"], VALUES[case["id"]]())
