"""Prints the tables of measured errors in the headers of the kernels.

    python tests/reference/measure_errors.py lattice [trials]      one kernel, or several
    python tests/reference/measure_errors.py                       all of them, about ten minutes

The library must be importable. References are computed by other methods: python-flint at 200 to 512 bits, sums of fractions, Gauss
quadrature (make_binomial.py), direct sums (make_clones.py). Inputs are random doubles from a fixed seed, exactly representable.
tests/core/test_measured.py compares the headers with a quick run of this script.
"""

import math
import random
import sys
from fractions import Fraction
from pathlib import Path

import flint
import numpy as np
from flint import arb

sys.path[:0] = [str(Path(__file__).resolve().parents[2])]

from shufflebounds._core import _binomial, _gaussian, _special  # noqa: E402
from shufflebounds.shuffle import Clones, StrongerClones  # noqa: E402
from tests.reference import make_binomial, make_clones, measure_gamma, measure_sums  # noqa: E402


def ulps(actual, exact):
    """Return |actual - exact| in ulp of the exact value."""
    value = float(exact.mid())
    if math.isinf(value) or math.isnan(value):
        return 0.0 if actual == value else math.inf
    return float(abs(arb(float(actual)) - exact).mid() / arb(math.ulp(value)))


def log_uniform(rng, low, high):
    """Return a random double between low and high, whose logarithm is uniform."""
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def special(rng, trials):
    """Yield the rows of the table in _special.pyx, in ulp of the result."""
    flint.ctx.prec = 200

    def log1pmx(x):
        flint.ctx.prec = 2400 if abs(x) < 1e-30 else 300
        value = arb(x).log1p() - arb(x)
        flint.ctx.prec = 200
        return value

    xs = [
        rng.choice(
            (
                log_uniform(rng, 1e-150, 1e300),
                -log_uniform(rng, 1e-150, 1),
                rng.uniform(-0.999, 3),
                -1 + log_uniform(rng, 1e-15, 0.5),
            )
        )
        for _ in range(trials)
    ]
    xs = [x for x in xs if x > -1]
    yield "log1pmx (-1, 1e300], |x| >= 1e-150", 1, [ulps(y, log1pmx(x)) for x, y in zip(xs, _special.log1pmx(xs))]
    xs = [-log_uniform(rng, 1e-300, 700) if rng.random() < 0.5 else -rng.uniform(0, 3) for _ in range(trials)]
    yield "log1mexp [-700, -1e-300]", 1, [
        ulps(y, (-(arb(x).expm1())).log() if x > -40 else (-(arb(x).exp())).log1p()) for x, y in zip(xs, _special.log1mexp(xs))]
    xs = [float(rng.randint(1, 60) if rng.random() < 0.3 else round(log_uniform(rng, 1, 2**53))) for _ in range(trials)]

    def stirling(n):
        flint.ctx.prec = 320
        n = arb(n)
        value = (n + 1).lgamma() - (n + 0.5) * n.log() + n - (2 * arb.pi()).log() / 2
        flint.ctx.prec = 200
        return value

    yield "stirling_error 1..2**53", 1, [ulps(y, stirling(x)) for x, y in zip(xs, _special.stirling_error(xs))]
    xs = [log_uniform(rng, 1e-20, 1e300) if rng.random() < 0.5 else rng.uniform(0, 40) for _ in range(trials)]

    def mills(x):
        if x > 1e20:
            return 1 / arb(x)
        flint.ctx.prec = 400
        x = arb(x)
        # The reference value of e^(x^2/2) erfc(x/sqrt 2) is U(1/2, 1/2, x^2/2)/sqrt(pi).
        value = (x * x / 2).hypgeom_u(arb(1) / 2, arb(1) / 2) / arb(2).sqrt()
        flint.ctx.prec = 200
        return value

    yield "mills_ratio [0, 1e300]", 1, [ulps(y, mills(x)) for x, y in zip(xs, _special.mills_ratio(xs))]
    pairs = []
    for _ in range(trials):
        m = log_uniform(rng, 1e-3, 2**53)
        x = rng.choice(
            (
                log_uniform(rng, 1e-3, 2**53),
                m * (1 + rng.gauss(0, 1) * 10 ** rng.uniform(-12, -0.5)),
                m * rng.uniform(0.3, 3),
            )
        )
        if x > 0:
            pairs.append((x, m))

    def deviance(x, m):
        flint.ctx.prec = 500
        value = arb(x) * (arb(x) / arb(m)).log() - arb(x) + arb(m)
        flint.ctx.prec = 200
        return value

    x, m = np.array(pairs).T
    exact = [deviance(*pair) for pair in pairs]
    yield "deviance x, m in [1e-3, 2**53]", 1, [
        ulps(y, e) for y, e, a, b in zip(_special.deviance(x, m), exact, x, m) if Fraction(a) - Fraction(b) == Fraction(a - b)]


def tail_ratio(module, rng, trials):
    """Return relative errors of Pr[X >= k]/Pr[X = k], computed through the C interface."""
    ratio = []
    for _ in range(trials):
        k, n, p = binomial_point(rng)
        if k < 1 or Fraction(k) < (n + 1) * Fraction(p) or p < 2.0**-830:
            continue
        q = 1 - Fraction(p)
        q_hi = float(q)
        got = module.binom_tail_ratio(k, n, p, 0.0, q_hi, float(q - Fraction(q_hi)))
        balls = make_binomial.arb_of(p), make_binomial.arb_of(q)
        exact = (make_binomial.log_tail(k, n, *balls) - make_binomial.log_pmf(k, n, *balls)).exp()
        ratio.append(float((abs(arb(got) - exact) / exact).mid()))
    return ratio


def about(rng, m, least):
    """Return a random number: log-uniform in [least, 2**53], or m times a factor in [0.3, 3], or m with a tiny relative change."""
    return rng.choice(
        (log_uniform(rng, least, 2**53), m * rng.uniform(0.3, 3), m * (1 + rng.gauss(0, 1) * 10 ** rng.uniform(-14, -1)))
    )


def outside(rng, trials):
    """Yield the rows of the double-double functions and of the binomial tail ratio, which are called through the C interface."""
    import tempfile

    from tests.core.extending import build

    with tempfile.TemporaryDirectory() as folder:
        module = build(Path(folder))
        flint.ctx.prec = 400
        errors, near = [], []
        for _ in range(trials):
            m = log_uniform(rng, 1e-270, 2**53)
            x = about(rng, m, 1e-270)
            m_lo = m * 2.0**-54 * rng.uniform(-1, 1)
            if x <= 0 or not 2.0**-1000 < x / m < 2.0**1000:
                continue
            hi, lo = module.log_ratio(x, m, m_lo)
            exact = (arb(x) / (arb(m) + arb(m_lo))).log()
            error = arb(hi) + arb(lo) - exact
            (errors if abs(x / m - 1) > 0.0625 else near).append(
                float(abs(error / exact if abs(x / m - 1) > 0.0625 else error).mid())
            )
        yield "log_ratio 1e-270 <= m, x <= 2**53, relative", None, errors
        yield "log_ratio |x/m - 1| <= 1/16, absolute", None, near
        high, both = [], []
        for _ in range(trials):
            m = log_uniform(rng, 1e-3, 2**53)
            x = about(rng, m, 1e-3)
            if x <= 0 or x == m:
                continue
            m_lo = m * 2.0**-54 * rng.uniform(-1, 1)
            gap = Fraction(x) - Fraction(m) - Fraction(m_lo)
            d = float(gap)
            d_lo = float(gap - Fraction(d))
            hi, lo = module.deviance_dd(x, m, m_lo, d, d_lo)
            mean = arb(m) + arb(m_lo)
            exact = arb(x) * (arb(x) / mean).log() - arb(x) + mean
            if exact < 32:
                continue
            high.append(ulps(hi, exact))
            both.append(float(abs((arb(hi) + arb(lo) - exact) / exact).mid()))
        yield "deviance_dd x, m in [1e-3, 2**53], deviance > 32, ulp", None, high
        yield "deviance_dd hi + lo, the same, relative", None, both
        yield "binomial tail ratio, relative", None, tail_ratio(module, rng, trials)


def binomial_point(rng):
    """Return random k, n, p: n is log-uniform, p near 0, near 1 or between, and k near the mean, anywhere, or at an end."""
    n = round(log_uniform(rng, 1, 2**53))
    p = rng.choice((rng.random(), math.exp(rng.uniform(-45, 0)), 1 - math.exp(rng.uniform(-36, 0)), math.exp(rng.uniform(-740, 0))))
    p = min(max(p, 5e-324), 1 - 2.0**-53)
    z = rng.choice((1, 6, 40)) * rng.gauss(0, 1)
    k = round(n * p + z * math.sqrt(n * p * (1 - p))) + rng.randint(-1, 1)
    if rng.random() < 0.1:
        k = rng.choice((0, 1, n - 1, n, rng.randint(0, n)))
    return min(max(k, 0), n), n, p


def binomial(rng, trials):
    """Yield the rows of _binomial.pyx: errors of log p divided by the larger one of ulp(log p) and 2**-53."""
    flint.ctx.prec = 400
    pmf, small, large = [], [], []

    def unit(log_p):
        return max(math.ulp(log_p), 2.0**-53)

    def error(actual, exact):
        return float((abs(arb(float(actual)) - exact) / unit(float(exact.mid()))).mid())

    for _ in range(trials):
        k, n, p = binomial_point(rng)
        exact = make_binomial.exact_logs(k, n, p)
        names = (_binomial.binom_logpmf, _binomial.binom_logcdf, _binomial.binom_logsf)
        got = [float(f(k, n, p)) for f in names]
        pmf.append(error(got[0], exact[0]))
        if k == n:
            continue
        low, high = (1, 2) if exact[1] < exact[2] else (2, 1)
        small.append(error(got[low], exact[low]))
        if float(exact[high].mid()) > -0.69 and float(abs(exact[high]).mid()) > 1e-290:
            large.append(float((abs(arb(got[high]) - exact[high]) / abs(exact[high])).mid()) / unit(float(exact[low].mid())))
    yield "logpmf n 1..2**53, p any double, k anywhere", 1, pmf
    yield "smaller the same", 1, small
    yield "larger log p > -0.69, of log p, in the smaller's unit", 1, large


def compound(rng, trials):
    """Yield the rows of _compound.pyx: errors of the middle of the bounds of log delta, relative to delta, and the gap."""
    bands = {"delta >= 1e-30": (-69.1, 0), "1e-30 > delta >= 1e-300": (-690.8, -69.1), "below": (-math.inf, -690.8)}
    errors, gaps = {b: [] for b in bands}, {b: [] for b in bands}
    for _ in range(trials):
        kind = rng.choice((Clones, StrongerClones))
        users = round(log_uniform(rng, 1, 3e4))
        eps0 = rng.uniform(0.1, 6)
        eps = eps0 * rng.choice((rng.random(), rng.random() ** 3, 1 - rng.random() ** 4))
        mechanism = kind(users, eps0)
        exact = make_clones.log_delta(users, eps0, eps, kind is StrongerClones)
        lower, upper = mechanism.log_delta(eps, bound="lower"), mechanism.log_delta(eps)
        if not exact.is_finite():
            continue
        assert arb(lower) <= exact + arb(2) ** -150, (mechanism, eps)
        assert arb(upper) >= exact - arb(2) ** -150, (mechanism, eps)
        value = float(exact.mid())
        for band, (low, high) in bands.items():
            if low <= value < high:
                middle = (lower + upper) / 2
                errors[band].append(max(0.0, float(abs(arb(middle) - exact).mid()) - 4 * math.ulp(value)))
                gaps[band].append(upper - lower)
    names = dict(zip(bands, ("delta >= 1e-30", "1e-300 <= delta < 1e-30", "below"), strict=True))
    for band, name in names.items():
        if errors[band]:
            yield name, 1, errors[band]
            yield name, 3, gaps[band]


def gamma(rng, trials):
    """Yield the rows of _gamma.pyx, compared with python-flint for parameters up to 300, and with _beta.pyx for larger ones."""
    yield "a 1e-10..300, x 1e-5..600, both functions", 1, list(measure_gamma.gamma_errors(rng, trials))
    yield "a 84..1e15, x to 40 sigma, against _beta at b 2**330", 1, list(measure_gamma.wide_errors(rng, trials))


def beta(rng, trials):
    """Yield the row of _beta.pyx."""
    yield "a, b 1e-10..200, any x, both functions", 1, list(measure_gamma.beta_errors(rng, trials))


def gaussian(rng, trials):
    """Yield absolute errors of log delta of Gaussian noise, less those of log phi(x), then fractions of the returned bound."""
    flint.ctx.prec = 500

    def exact(sigma, sensitivity, eps):
        mu = arb(sensitivity) / arb(sigma)
        x = arb(eps) / mu - mu / 2
        # e^eps Phi(-y) = phi(x) M(y), M Mills' ratio: e^eps itself may have 1e11 digits.
        above = (-x * x / 2).exp() * ((x + mu) ** 2 / 2).hypgeom_u(arb(1) / 2, arb(1) / 2) / (4 * arb.pi()).sqrt()
        return ((x / arb(2).sqrt()).erfc() / 2 - above).log()

    rows, shares = {"shallow": [], "deep": []}, []
    for _ in range(trials):
        mu = log_uniform(rng, 1.1e-12, 9e5) if rng.random() < 0.5 else log_uniform(rng, 1e-2, 30)
        sensitivity = log_uniform(rng, 1e-3, 1e3)
        sigma = sensitivity / mu
        x = rng.choice((rng.uniform(-2, 2), rng.uniform(0, 36)))
        eps = max(0.0, mu * (x + mu / 2))
        truth = exact(sigma, sensitivity, eps)
        value, bound = _gaussian.gaussian_log_delta(sigma, sensitivity, eps)
        error = abs(float((arb(float(value)) - truth).mid()))
        if not float(truth.mid()) > -700:
            continue
        shares.append(error / float(bound))
        part = 2.2e-16 * (abs(float(truth.mid())) + 0.625 * max(x, -x) ** 2)
        rows["shallow" if float(truth.mid()) >= -1 else "deep"].append(max(0.0, error - part))
    yield "mu in 1e-12..1e6, log delta >= -1", 1, rows["shallow"]
    yield "the same, -700 <= log delta < -1", 1, rows["deep"]
    yield "largest error over the returned bound: peak", "peak", shares


# For each kernel, the function that yields its rows, and the numbers of trials of a quick and of a full run. `outside` compiles a
# module that cimports kernels.
KERNELS = {
    "special": (special, 200, 20000),
    "outside": (outside, 0, 20000),
    "binomial": (binomial, 60, 20000),
    "gaussian": (gaussian, 300, 20000),
    "gamma": (gamma, 20, 300),
    "beta": (beta, 20, 300),
    "hypergeom": (measure_sums.hypergeom, 15, 200),
    "compound": (compound, 12, 1000),
    "contour": (measure_sums.contour, 8, 2000),
    "lattice": (measure_sums.lattice, 150, 15000),
    "blocks": (measure_sums.blocks, 150, 15000),
    "bits": (measure_sums.bits, 30, 2000),
    "worst_bits": (measure_sums.worst_bits, 8, 300),
    "tradeoff": (measure_sums.tradeoff, 400, 20000),
    "losses": (measure_sums.losses, 200, 2300),
    "tilted": (measure_sums.tilted, 100, 5000),
    "excess": (measure_sums.excess, 12, 500),
    "moments": (measure_sums.moments, 60, 2000),
    "matchings": (measure_sums.matchings, 20, 1000),
    "crossing": (measure_sums.crossing, 300, 20000),
}


def main():
    """Print the rows of the named kernels: trials, peak, rms."""
    words = sys.argv[1:]
    trials = next((int(word) for word in words if word.isdigit()), None)
    for kernel in [word for word in words if not word.isdigit()] or KERNELS:
        rows, _, whole = KERNELS[kernel]
        print(f"_{kernel}.pyx", flush=True)
        for name, _, errors in rows(random.Random(1), trials or whole):
            e = np.array(errors)
            print(f"    {name:60}{len(e):<10}{e.max():<10.2g}{math.sqrt((e * e).mean()):.2g}", flush=True)


if __name__ == "__main__":
    main()
