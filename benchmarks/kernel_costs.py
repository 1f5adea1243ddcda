"""Times in docs/numerics.md: ``python benchmarks/kernel_costs.py`` prints them, ``--record`` writes them to results/.

Each section is a table of the page, written into the page from the newest results/kernels-*.json by docs/tables.py.
A cell is the smallest CPU time of up to seven calls, so that other load affects it little. For an array it is divided by the number
of elements. Gaps of bounds of curves are next to their times. The script takes about a minute.
"""

import math
import sys
import time

import numpy as np
from keeping import keep
from scipy import special

from shufflebounds import composition, selection, shuffle, tails, tradeoff
from shufflebounds._core import _losses, _tradeoff
from shufflebounds.mechanisms import KaryResponse

ELEMENTS = 10**5
RNG = np.random.default_rng(5)


def seconds(job, most=0.7):
    """Return the smallest CPU time of up to seven calls, which together take at most about 0.7 s after the first."""
    job()
    found = []
    while len(found) < 7 and (not found or sum(found) + found[-1] < most):
        start = time.process_time()
        job()
        found.append(time.process_time() - start)
    return min(found)


def small(job):
    """Return the same time for a call that takes microseconds."""
    return seconds(lambda: [job() for _ in range(200)]) / 200


def shown(taken):
    """Return seconds as text with two digits and a unit."""
    units = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))
    unit, scale = next((pair for pair in units if taken >= 0.95 * pair[1]), units[-1])
    return f"{float(f'{taken / scale:.2g}'):g} {unit}"


def array(function, *arguments):
    """Return the time per element of a function for arrays."""
    return shown(seconds(lambda: function(*arguments)) / ELEMENTS)


def binomial():
    """Return the rows of probabilities and tails in ns per element, near the mean and anywhere."""
    rows = []
    for n in (30, 10**3, 10**6, 10**9, 2**53):
        sigma = math.sqrt(n * 0.21)
        near = np.clip(np.floor(0.3 * n + sigma * RNG.uniform(-8, 8, ELEMENTS)), 0, n)
        far = np.floor(RNG.uniform(0, n, ELEMENTS))
        rows.append([f"{n:.0e}".replace("e+0", "e").replace("e+", "e") if 30 < n < 2**53 else "2^53" if n > 30 else "30",
                     *(array(f, k, float(n), 0.3) for f in (tails.binom_logpmf, tails.binom_logsf) for k in (near, far))])
    return ["n", "pmf near", "pmf far", "tail near", "tail far"], rows


def limits():
    """Return the machine's times for a memory access, a division, a logarithm and a sort per element, and times of kernels."""
    size = 10**7
    a, b, out = RNG.random(size), RNG.random(size), np.empty(size)
    n = np.floor(10 ** RNG.uniform(1, 6, ELEMENTS))
    mixed = np.clip(np.floor(0.3 * n + np.sqrt(0.21 * n) * RNG.uniform(-6, 6, ELEMENTS)), 0, n - 1)
    near = np.floor(3e5 + 458 * RNG.uniform(-6, 6, ELEMENTS))
    x, y = a[:ELEMENTS], b[:ELEMENTS]

    def long(job):
        return shown(seconds(job) / size)

    rows = [
        ["read a double of 80 MB (`sum`)", long(a.sum)],
        ["read two, write one (`add`)", long(lambda: np.add(a, b, out=out))],
        *([f"`numpy.{f.__name__}` within the cache", array(f, *(x, y)[: f.nin])]
          for f in (np.divide, np.sqrt, np.exp, np.log, np.log1p, np.sin)),
        ["`numpy.logaddexp`: `exp` and `log1p` of the C library", array(np.logaddexp, x, y)],
        ["`binom_logpmf` near the mode, n = 1e6", array(tails.binom_logpmf, near, 1e6, 0.3)],
        ["`binom_logsf` near the mode, n = 1e6", array(tails.binom_logsf, near, 1e6, 0.3)],
        ["`binom_logsf` within 6 standard deviations, n from 10 to 1e6", array(tails.binom_logsf, mixed, n, 0.3)],
        ["`numpy.sort` of doubles", array(np.sort, x)],
        ["indices that sort likelihood ratios", array(_tradeoff.ratio_argsort, x, y)],
        ["`poisson_binom_logsf` near the mean, for each of 1e6 bits",
         shown(seconds(lambda: tails.poisson_binom_logsf(5.01e5, a[: 10**6])) / 10**6)],
    ]
    return ["operation on an element", "CPU time"], rows


def closed():
    """Return times per element of the incomplete gamma and beta functions and of the hypergeometric tail."""
    a = np.full(ELEMENTS, 1e4)
    near, far = a + 100 * RNG.uniform(-4, 4, ELEMENTS), a * RNG.uniform(0.3, 3, ELEMENTS)
    x_near, x_far = 0.5 + 0.02 * RNG.uniform(-1, 1, ELEMENTS), RNG.uniform(0.01, 0.99, ELEMENTS)
    k_near, k_far = np.floor(2.5e5 + 250 * RNG.uniform(-6, 6, ELEMENTS)), np.floor(RNG.uniform(0, 5e5, ELEMENTS))
    rows = [
        ["`log_gammaincc`", array(tails.log_gammaincc, a, near), array(tails.log_gammaincc, a, far),
         array(special.gammaincc, a, near), array(special.gammaincc, a, far)],
        ["`log_betainc`", array(tails.log_betainc, a, a, x_near), array(tails.log_betainc, a, a, x_far),
         array(special.betainc, a, a, x_near), array(special.betainc, a, a, x_far)],
        ["`hypergeom_logsf`, 5e5 of 1e6", *(array(tails.hypergeom_logsf, k, 10**6, 5 * 10**5, 5 * 10**5) for k in (k_near, k_far)),
         "", ""],
    ]
    return ["function", "near its mode", "far", "SciPy's, near", "far"], rows


def shift():
    """Return the times of delta and epsilon of binomial noise."""
    noise = shuffle.BinomialNoise(10**6, 0.5)
    return ["`BinomialNoise(10**6, .5)`", "CPU time"], [
        ["`log_delta(.02)`", shown(small(lambda: noise.log_delta(0.02)))],
        ["`epsilon(1e-8)`", shown(small(lambda: noise.epsilon(1e-8)))],
        ["`calibrate(.1, 1e-8)`", shown(small(lambda: shuffle.BinomialNoise.calibrate(eps=0.1, delta=1e-8)))],
    ]


def clones():
    """Return the times of delta and epsilon of the clone bound."""
    rows = []
    for users, local in ((10**6, 4.0), (10**9, 8.0), (10**12, 4.0), (10**12, 1.0)):
        bound = shuffle.StrongerClones(users, local)
        eps = bound.epsilon(1e-8)
        name = f"{users:.0e}, {local:g}".replace("e+0", "e").replace("e+", "e")
        one, root = (lambda b=bound, e=eps: b.log_delta(e)), (lambda b=bound: b.epsilon(1e-8))
        rows.append([name, shown(small(one)), shown(small(root))])
    return ["users, local eps", "one `log_delta`", "`epsilon(1e-8)`"], rows


def bits_sum():
    """Return the times of all probabilities and of tails of sums of different bits."""
    rows = []
    for n in (10**3, 10**4, 10**5, 10**6):
        p = RNG.random(n)
        k = int(1.2 * p.sum())
        rows.append([f"1e{round(math.log10(n))}", shown(seconds(lambda p=p: tails.poisson_binom_window(p))),
                     shown(seconds(lambda p=p, k=k: tails.poisson_binom_logsf(k, p)))])
    two = (np.array([0.3, 0.01]), np.array([10**12, 10**12]))
    rows.append(["two groups of 1e12 trials", "", shown(small(lambda: tails.poisson_binom_logsf(3.2e11, *two)))])
    return ["n distinct probabilities", "`poisson_binom_window`", "`poisson_binom_logsf` at 1.2 times the mean"], rows


def shuffled_bits():
    """Return the times of shuffled bits for a given dataset and for all datasets."""
    flip = 1 / (math.exp(4.0) + 1)
    known, every = shuffle.ShuffledBits(10**6, flip, ones=0), shuffle.ShuffledBits(10**6, flip)
    eps = every.epsilon(1e-8)
    return ["1e6 users, local budget 4", "dataset of zeros", "worst dataset"], [
        ["`delta(eps)`", shown(small(lambda: known.delta(eps))), shown(seconds(lambda: every.delta(eps)))],
        ["`epsilon(1e-8)`", shown(small(lambda: known.epsilon(1e-8))), shown(seconds(lambda: every.epsilon(1e-8)))],
        ["`calibrate(10**6, 1, 1e-8)`", "",
         shown(seconds(lambda: shuffle.ShuffledBits.calibrate(users=10**6, eps=1.0, delta=1e-8)))],
    ]


def curves():
    """Return the times of curves of a million atoms, and of curves of sums of bits."""
    n = 10**6
    log_p, log_q = (RNG.normal(0, 1, n) for _ in range(2))
    log_p, log_q = (law - np.logaddexp.reduce(law) for law in (log_p, log_q))
    order = np.argsort(log_p - log_q)
    in_order = log_p[order], log_q[order]
    eps = np.linspace(0, 3, 1000)
    rows = [
        ["a curve of 1e6 atoms in any order", shown(seconds(lambda: tradeoff.Tradeoff.from_pmfs(log_p, log_q)))],
        ["the same, the likelihood ratio monotone", shown(seconds(lambda: tradeoff.Tradeoff.from_pmfs(*in_order)))],
        ["`hockey_stick` of these atoms at 1000 eps", shown(seconds(lambda: tradeoff.hockey_stick(log_p, log_q, eps)))],
    ]
    for users in (100, 10**4, 10**6):
        pair = shuffle.ShuffledBits(users, 0.25, ones=0).pair(0)
        atoms = len(pair.tradeoff().knots[0])
        rows.append([f"`ShuffledBits({users}, .25).pair(0).tradeoff()`, {atoms} breakpoints", shown(seconds(pair.tradeoff))])
    curve, alpha = pair.tradeoff(), RNG.random(ELEMENTS)
    rows.append(["`beta` of the last curve, for each of 1e5 alpha", array(curve.beta, alpha)])
    return ["call", "CPU time"], rows


def profiles():
    """Return, for curves that follow from values of delta, the gap of the bounds and the time of the lower curve."""
    cases = {
        "`ShuffledBits(10**6, .25, ones=0)`": shuffle.ShuffledBits(10**6, 0.25, ones=0),
        "`ShuffledBits(10**12, .25, ones=0)`": shuffle.ShuffledBits(10**12, 0.25, ones=0),
        "`BinomialNoise(2**53, .5)`": shuffle.BinomialNoise(2**53, 0.5),
        "`StrongerClones(10**4, 2)`": shuffle.StrongerClones(10**4, 2.0),
        "`StrongerClones(10**6, 4)`": shuffle.StrongerClones(10**6, 4.0),
        "`StrongerClones(10**9, 4)`": shuffle.StrongerClones(10**9, 4.0),
        "`StrongerClones(10**12, 4)`": shuffle.StrongerClones(10**12, 4.0),
        "`ShuffledBits(10**4, .25)`, worst dataset": shuffle.ShuffledBits(10**4, 0.25),
        "`ShuffledBits(10**6, .25)`, worst dataset": shuffle.ShuffledBits(10**6, 0.25),
    }
    alpha = np.linspace(0.001, 0.999, 999)
    rows = []
    for name, profile in cases.items():
        start = time.process_time()
        low = profile.tradeoff()
        taken = time.process_time() - start
        high = profile.tradeoff(bound="upper")
        eps = profile.epsilon(1e-6)
        gaps = [
            float(np.max(high.beta(alpha) - low.beta(alpha))) / low.advantage(),
            abs(float(low.log_delta(eps)) - float(high.log_delta(eps))),
            ratio(profile.gdp_mu(), profile.gdp_mu(bound="lower")),
            ratio(profile.rdp(8.0), profile.rdp(8.0, bound="lower")),
        ]
        rows.append([name, *(f"{gap:.0e}".replace("e-0", "e-") if math.isfinite(gap) else "inf" for gap in gaps), shown(taken)])
    return ["mechanism", "curve", "log delta", "mu", "$D_8$", "time of the curve"], rows


def ratio(upper, lower):
    """Return the gap of two bounds, relative to the lower one."""
    return upper / lower - 1 if math.isfinite(upper) else math.inf


def grid():
    """Return the time per outcome of the kernels of privacy losses."""
    loss = np.sort(RNG.normal(0.02, 0.2, ELEMENTS))
    log_p = np.full(ELEMENTS, -math.log(ELEMENTS))
    rows = []
    for step, number in ((0.3 / ELEMENTS, "one"), (1e-3, "a hundred")):
        first = math.floor(loss[0] / step)
        size = math.ceil(loss[-1] / step) + 1 - first
        rows += [[f"{name}, each loss, about {number} at a grid point", array(f, log_p, loss, 0.0, step, first, size)]
                 for name, f in (("split", _losses.split), ("merge", _losses.merge))]
    mass = np.exp(log_p)
    return ["step", "CPU time"], [
        ["hockey-stick divergence at each loss", array(_losses.law_hockey_stick, loss, log_p, -math.inf)],
        ["hockey-stick divergence at each point of a grid, from tilted masses", array(_losses.tilted_excess, mass, 0.5, 1e-3, 1.0)],
        *rows,
    ]


def optimal():
    """Return the times of optimal composition."""
    def many(budgets, k=None):
        return shown(seconds(lambda: composition.composition_delta(budgets, 0.0, 1.0, k=k)))

    return ["`composition_delta(eps, 0, 1.0)`", "CPU time"], [
        ["1000 mechanisms of budget 0.01", many(0.01, 1000)],
        ["1e6 mechanisms of budget 3e-4", many(3e-4, 10**6)],
        ["1e10 mechanisms of budget 3e-6", many(3e-6, 10**10)],
        ["30 mechanisms of different budgets", many(list(np.linspace(0.05, 0.15, 30)))],
        ["40 mechanisms of different budgets", many(list(np.linspace(0.05, 0.15, 40)))],
    ]


def arg_max():
    """Return the times of the distribution of a noisy arg-max."""
    scores = RNG.normal(0, 10, 3000)
    return ["`selection_probs` of 3000 candidates", "CPU time"], [
        [noise, shown(seconds(lambda noise=noise: selection.selection_probs(scores, 1.0, noise=noise)))]
        for noise in ("gumbel", "exponential", "laplace")
    ]


def calibrations():
    """Return the times of calibrations for a billion users and more."""
    cases = {
        "`ZeroSum`": lambda n: shuffle.ZeroSum.calibrate(users=n, eps=1.0, delta=1e-9),
        "`StrongerClones`: the local budget": lambda n: shuffle.StrongerClones.calibrate(eps=1.0, delta=1e-9, users=n),
        "`FlippedReports`, 100 bins, `view=\"records\"`": lambda n: shuffle.FlippedReports.calibrate(
            users=n, bins=100, eps=1.0, delta=1e-9, view="records"),
        "`ShuffledBits`": lambda n: shuffle.ShuffledBits.calibrate(users=n, eps=1.0, delta=1e-9),
        "`ShuffledHistogram`, 1000 bins": lambda n: shuffle.ShuffledHistogram.calibrate(users=n, bins=1000, eps=1.0, delta=1e-9),
        "`RealSum`, 16 bits": lambda n: shuffle.RealSum.calibrate(users=n, bits=16, eps=1.0, delta=1e-9),
        "`FlippedReports`, 10 bins, `view=\"sums\"`": lambda n: shuffle.FlippedReports.calibrate(
            users=n, bins=10, eps=1.0, delta=1e-9, view="sums"),
        "`Shuffled(KaryResponse(10, eps), n)`: the local budget": lambda n: shuffle.Shuffled.calibrate(
            lambda eps: KaryResponse(10, eps), eps=1.0, delta=1e-9, users=n),
        "`ClearReports`, a million bins at (0.1, 1e-9)": lambda n: shuffle.ClearReports.calibrate(bins=10**6, eps=0.1, delta=1e-9),
        "`BinomialNoise` at (1e-4, 1e-9)": lambda n: shuffle.BinomialNoise.calibrate(eps=1e-4, delta=1e-9),
    }
    free = list(cases)[-2:]
    return ["calibrate", "1e9 users", "1e12 users"], [
        [name, shown(seconds(lambda job=job: job(10**9))), "same" if name in free else shown(seconds(lambda job=job: job(10**12)))]
        for name, job in cases.items()
    ]


SECTIONS = {function.__name__: function for function in (
    limits, binomial, closed, shift, clones, bits_sum, shuffled_bits, curves, profiles, grid, optimal, arg_max, calibrations)}


def main():
    """Print every section, or the named ones, and store them with --record."""
    chosen = [word for word in sys.argv[1:] if word != "--record"]
    tables = {}
    for name, section in SECTIONS.items():
        if not chosen or name in chosen:
            header, rows = section()
            tables[name] = {"header": header, "rows": rows}
            print(name, *(" | ".join(row) for row in [header, *rows]), "", sep="\n", flush=True)
    if "--record" in sys.argv:
        keep("kernels", {"tables": tables})


if __name__ == "__main__":
    main()
