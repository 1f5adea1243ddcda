"""Measured errors of the kernels of _gamma and _beta: the tables in their headers, and quick runs for the tests.

Run the script as ``python -m tests.reference.measure_gamma [trials]``; 300 trials take about a minute. For parameters up to 300 the
reference is the incomplete gamma or beta function of python-flint (arb), at a precision that grows with the parameters. For larger
parameters _beta is compared with Gauss quadrature (make_binomial.py), and _gamma with _beta, which uses another continued fraction.
Inputs are random doubles, exactly representable.

The unit of errors is 1e-13 of the probability plus 4 ulp of the logarithm of the smaller tail.
"""

import math
import random
import sys

import flint
from flint import arb

from shufflebounds._core import _beta, _gamma
from tests.reference import make_binomial


def unit(value, other):
    """Return the allowed error of log p = value if log(1 - p) = other."""
    if value > -0.69:
        return abs(value) * (1e-13 + 4 * math.ulp(other)) + 4 * math.ulp(value)
    return 1e-13 + 4 * math.ulp(value)


def log_uniform(rng, low, high):
    """Return a random double between low and high, whose logarithm is uniform."""
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def pair(lower, upper):
    """Return the logarithms of two complementary probabilities, each from the smaller one, or None if arb has no digits."""
    if not (lower > 0 and upper > 0):
        return None
    small, swap = (lower, False) if float(lower.mid()) < 0.5 else (upper, True)
    logs = [small.log(), (-small).log1p()]
    return logs[::-1] if swap else logs


def errors(functions, arguments, exact):
    """Return the errors of both functions as multiples of the allowed error."""
    values = [float(e.mid()) for e in exact]
    out = []
    for i, f in enumerate(functions):
        got = float(f(*arguments))
        out.append(float((abs(arb(got) - exact[i]).mid() / arb(unit(values[i], values[1 - i]))).mid()) if got == got else math.inf)
    return out


def gamma_errors(rng, trials, most=300.0):
    """Yield errors of log P and log Q: a from 1e-10 to `most`, x close to a, far from it or arbitrary."""
    for _ in range(trials):
        a = rng.choice([log_uniform(rng, 1e-10, 1), log_uniform(rng, 1, 100), log_uniform(rng, 1, most),
                        float(rng.randint(1, 200))])
        x = rng.choice([log_uniform(rng, 1e-5, most), a * rng.uniform(0.3, 3), max(1e-300, a + math.sqrt(a) * rng.gauss(0, 3)),
                        min(a * log_uniform(rng, 1e-3, 1e3), 2 * most)])
        flint.ctx.prec = int(300 + 6 * (x + a))
        exact = pair(arb(x).gamma_lower(arb(a), 1), arb(x).gamma_upper(arb(a), 1))
        if exact:
            yield from errors((_gamma.log_gammainc, _gamma.log_gammaincc), (a, x), exact)


def beta_errors(rng, trials, most=200.0):
    """Yield errors of log I and log(1 - I): a, b from 1e-10 to `most`, x close to the mean, to 0, to 1 or arbitrary."""
    done = 0
    while done < trials:
        a, b = (rng.choice([log_uniform(rng, 1e-10, 1), log_uniform(rng, 1, 50), log_uniform(rng, 3, 12), log_uniform(rng, 1, most),
                            float(rng.randint(1, 100))]) for _ in range(2))
        mean = a / (a + b)
        width = math.sqrt(mean * (1 - mean) / (a + b + 1))
        x = rng.choice([rng.random(), log_uniform(rng, 1e-12, 1), 1 - log_uniform(rng, 1e-12, 1), mean + width * rng.gauss(0, 2),
                        mean + width * rng.gauss(0, 20)])
        if not 0 < x < 1:
            continue
        done += 1
        flint.ctx.prec = int(300 + 4 * (a + b))
        exact = pair(arb(x).beta_lower(arb(a), arb(b), 1), (1 - arb(x)).beta_lower(arb(b), arb(a), 1))
        if exact:
            yield from errors((_beta.log_betainc, _beta.log_betaincc), (a, b, x), exact)


def wide_errors(rng, trials):
    """Yield errors at large parameters: beta against quadrature, gamma against beta at b = 2**330, where a**2/b vanishes."""
    for _ in range(trials):
        n = round(log_uniform(rng, 1e3, 2**53))
        p = rng.choice([rng.random(), log_uniform(rng, 1e-15, 1)])
        sigma = math.sqrt(n * p * (1 - p))
        j = min(max(round(n * p + sigma * rng.gauss(0, 1) * rng.choice([1, 6, 40])), 1), n)
        flint.ctx.prec = 400
        exact = make_binomial.exact_logs(j - 1, n, p)[:0:-1]
        if all(float(e.mid()) < 0 for e in exact) and float(exact[0].mid()) > -1e300:
            yield from errors((_beta.log_betainc, _beta.log_betaincc), (float(j), float(n - j + 1), p), exact)
        a = log_uniform(rng, 84, 1e15)
        x = a + math.sqrt(a) * rng.gauss(0, 1) * rng.choice([1, 6, 40])
        if x > 0:
            b = 2.0**330
            exact = [arb(float(f(a, b, x / b))) for f in (_beta.log_betainc, _beta.log_betaincc)]
            if all(float(e.mid()) < 0 for e in exact):
                yield from errors((_gamma.log_gammainc, _gamma.log_gammaincc), (a, x), exact)


FAMILIES = {"gamma": gamma_errors, "beta": beta_errors, "wide": wide_errors}


def main():
    """Print one row per family: trials, peak, rms."""
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    for name, family in FAMILIES.items():
        found = list(family(random.Random(1), trials))
        rms = math.sqrt(sum(e * e for e in found) / len(found))
        print(f"    {name:10}{len(found):<10}{max(found):<10.2g}{rms:.2g}", flush=True)


if __name__ == "__main__":
    main()
