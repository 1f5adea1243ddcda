"""Writes binomial_corners.json: logs of binomial probabilities for extreme arguments and at the ends of the kernel's methods.

With ``--check`` the values of binomial.json, which are from another program for the same integral, are recomputed and compared.

For j >= (n+1) p the tail is Pr[X >= j] = Pr[X = j] j int_0^p (u/p)^(j-1) ((1-u)/(1-p))^(n-j) du/p. The integral is computed by
Gauss's rule on four panels with 40 nodes, and the difference from the rule with 32 nodes is the radius of the result. The
probability Pr[X = j] comes from lgamma, and the other tail from log1p(-exp). The integrand is log-concave, so it is truncated where
its exponent is below -100, and 2**-120 is added to the radius for the truncated part. The kernel uses neither quadrature nor
lgamma. All numbers are intervals of 400 bits (python-flint), and the values are written with 34 digits, which their radii must
allow. p is an exact double in hexadecimal; k and n are exact. Every case with n <= 400 is also compared with a sum of fractions.

Run the script as ``python tests/reference/make_binomial.py``; it takes about two seconds on one core.
"""

import functools
import json
import math
import random
import sys
from fractions import Fraction
from pathlib import Path

import flint
from flint import arb, fmpq

sys.path.insert(0, str(Path(__file__).parent))

from arbs import written

flint.ctx.prec = 400
CUT = 100
PANELS = 4
NODES = 32, 40


def arb_of(x):
    """Return a double or a fraction as an interval."""
    x = Fraction(x)
    return arb(fmpq(x.numerator, x.denominator))


def log_pmf(k, n, p, q):
    """Return log Pr[X = k], 0 <= k <= n, 0 < p < 1."""
    total = arb(0)
    if k:
        total += k * ((-q).log1p() if q < 0.5 else p.log())
    if n - k:
        total += (n - k) * ((-p).log1p() if p < 0.5 else q.log())
    if 0 < k < n:
        total += arb(n + 1).lgamma() - arb(k + 1).lgamma() - arb(n - k + 1).lgamma()
    return total


@functools.cache
def legendre(count):
    """Return nodes on [0, 1] and weights of the Gauss-Legendre rule."""
    pairs = [arb.legendre_p_root(count, i, weight=True) for i in range(count)]
    return [((1 + x) / 2, w / 2) for x, w in pairs]


def log_tail(j, n, p, q):
    """Return log Pr[X >= j] for 1 <= j <= n and j at least about (n + 1) p."""

    def exponent(s):
        return (j - 1) * (-s / p).log1p() + (n - j) * (s / q).log1p()

    # Bisection finds the point at which the concave exponent falls below -CUT.
    low, high = arb(0), p
    for _ in range(60):
        middle = ((low + high) / 2).mid()
        if j > 1 and exponent(middle) < -CUT:
            high = middle
        else:
            low = middle
    sums = []
    for count in NODES:
        rule = legendre(count)
        sums.append(sum(w * exponent((i + x) / PANELS * high).exp() for i in range(PANELS) for x, w in rule))
    value = sums[1] + arb(0, abs(sums[1] - sums[0]).upper())
    value += arb(0, abs(value.upper()) * arb(2) ** -120)
    return log_pmf(j, n, p, q) + (value * high / (PANELS * p) * j).log()


def exact_logs(k, n, p):
    """Return log Pr[X = k], log Pr[X <= k] and log Pr[X > k] as intervals; 0 <= k <= n, and p is a double in (0, 1)."""
    p_ball = arb_of(p)
    q_ball = arb_of(1 - Fraction(p))
    pmf = log_pmf(k, n, p_ball, q_ball)
    if k == n:
        return pmf, arb(0), arb("-inf")
    if k + 1 >= (n + 1) * Fraction(p):
        upper = log_tail(k + 1, n, p_ball, q_ball)
        return pmf, (-upper.exp()).log1p(), upper
    lower = log_tail(n - k, n, q_ball, p_ball)
    return pmf, lower, (-lower.exp()).log1p()


def rational_logs(k, n, p):
    """Return the same three logarithms by sums of fractions."""
    p = Fraction(p)
    terms = [math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(n + 1)]
    sums = terms[k], sum(terms[: k + 1]), sum(terms[k + 1 :])

    def log(x):
        if x == 0:
            return arb("-inf")
        return (-arb_of(1 - x)).log1p() if x > Fraction(1, 2) else arb_of(x).log()

    return [log(x) for x in sums]


def text(ball):
    """Return 34 digits of an interval; raise an error if the interval is too wide."""
    if not ball.is_finite():
        return "-inf"
    if ball == 0:
        return "0"
    assert ball.rel_accuracy_bits() > 110, ball
    return ball.str(34, radius=False)


def deviance(a, b):
    """Return a log(a/b) - a + b in double precision."""
    return a * math.log(a / b) - a + b


def at_distance(n, p, target, upper):
    """Return the count above (`upper`) or below n p whose deviance from n p is closest to `target`."""
    mean = n * p
    low, high = (math.floor(mean), n) if upper else (0, math.ceil(mean))
    for _ in range(70):
        k = (low + high) // 2
        value = (deviance(k, mean) if k else mean) + (deviance(n - k, n - mean) if n - k else n - mean)
        if (value < target) == upper:
            low = k
        else:
            high = k
    return k


def cases():
    """Return the (k, n, p) of all cases in the file."""
    rng = random.Random(20260101)
    out = set()
    big = 2**53
    below_one = math.nextafter(1.0, 0.0)
    # These are the ends of the support and the ends of the range of p.
    for n in (1, 2, 3, 17, 1000, 10**6, 10**12, big - 1, big):
        for p in (
            5e-324,
            1e-310,
            2.0**-1022,
            2.0**-830,
            math.nextafter(2.0**-830, 0),
            1e-200,
            1e-20,
            2.0**-53,
            0.5,
            1 - 2.0**-30,
            below_one,
        ):
            for k in {0, 1, n // 2, n - 1, n}:
                if rng.random() < 0.45:
                    out.add((k, n, p))
    # These are the mode and its neighbours, where the upper tail becomes the smaller one.
    for n in (10, 999, 10**5, 10**9, 10**14, big):
        for p in (0.5, 0.1, 0.999, 3.0 / n, 100.0 / n, rng.random()):
            mode = math.floor((n + 1) * Fraction(p))
            for k in range(mode - 2, mode + 3):
                if 0 <= k <= n and rng.random() < 0.6:
                    out.add((k, n, p))
    # These points are near s = 0.27 sigma, the end of the uniform expansion, and near s = 0.049 sigma, the end of its version of
    # low order.
    for n in (2000, 10**5, 10**8, 10**12, 2**51):
        for p in (0.5, 0.03, 0.9):
            sigma = math.sqrt(n * p * (1 - p))
            for slope in (0.048, 0.0498, 0.26, 0.2729, 0.274, 0.29):
                for sign in (-1, 1):
                    k = round(n * p + sign * slope * sigma**2)
                    if 0 <= k <= n:
                        out.add((k, n, p))
    # These points have a variance near 84, above which the continued fraction replaces the positive series.
    for n in (340, 400, 5000, 10**7, 10**13, big):
        for variance in (80, 83.5, 84.5, 90):
            root = 1 - 4 * variance / n
            if root < 0:
                continue
            p = (1 - math.sqrt(root)) / 2 if n < 10**6 else variance / n
            for p_side in (p, 1 - p):
                for z in (-7, -1, 0, 2, 9):
                    k = round(n * p_side + z * math.sqrt(variance))
                    if 0 <= k <= n and rng.random() < 0.5:
                        out.add((k, n, p_side))
    # These points are in the extreme tails.
    for n in (10**4, 10**7, 10**10, 10**13, big):
        for p in (0.5, 0.003, 0.8, 1e-6):
            for depth in (1e2, 700, 1e4, 1e6, 1e8, 1e12):
                for upper in (False, True):
                    largest = n * -math.log(p) if upper else n * -math.log1p(-p)
                    if depth < largest:
                        out.add((at_distance(n, p, depth, upper), n, p))
    # These are random points from the whole domain.
    for _ in range(250):
        n = round(math.exp(rng.uniform(0, math.log(big))))
        p = rng.choice((rng.random(), math.exp(rng.uniform(-40, 0)), 1 - math.exp(rng.uniform(-30, 0))))
        if not 0 < p < 1:
            continue
        k = round(n * p + rng.gauss(0, 6) * math.sqrt(n * p * (1 - p)) + rng.randint(-2, 2))
        out.add((min(max(k, 0), n), n, p))
    return sorted(out, key=lambda c: (c[1], c[2], c[0]))


def agrees(case):
    """Return whether the three values of a case of binomial.json agree with those computed here, to 30 digits."""
    logs = exact_logs(case["k"], case["n"], float.fromhex(case["p"]))
    stored = [case[name] for name in ("logpmf", "logcdf", "logsf")]
    # In the file, -0E-1000032 means a value below the smallest number of the other program.
    return all(
        (not made.is_finite() or made == 0) if text == "-inf" else abs(made.mid()) < arb(10) ** -1000000
        if text.startswith("-0E") or text == "0" else abs(made.mid() - arb(text)) <= abs(arb(text)) * arb(10) ** -30
        for made, text in zip(logs, stored, strict=True)
    )


def check():
    """Compare the values of binomial.json with recomputed ones."""
    cases_there = json.loads(Path(__file__).with_name("binomial.json").read_text())["values"]
    wrong = [case["id"] for case in cases_there if not agrees(case)]
    print(f"binomial.json: {len(cases_there)} cases, {len(wrong)} differ", *wrong)


def main():
    """Write the file of reference values."""
    values = []
    for k, n, p in cases():
        logs = exact_logs(k, n, p)
        if n <= 400 and 1e-20 < p < 1 - 1e-15:
            assert all(
                x.overlaps(y) or (not x.is_finite() and not y.is_finite()) or abs(x - y) <= abs(y) * arb(2) ** -130
                for x, y in zip(logs, rational_logs(k, n, p), strict=True)
            ), (k, n, p)
        values.append({"n": n, "p": p.hex(), "k": k, **dict(zip(("logpmf", "logcdf", "logsf"), map(text, logs), strict=True))})
    about = (
        "Binomial log pmf, log Pr[X<=k], log Pr[X>k] at the corners: written by make_binomial.py (python-flint, "
        "400 bits, Gauss quadrature of the incomplete beta integral). p is an exact double."
    )
    written("binomial_corners.json", about, values)


if __name__ == "__main__":
    check() if "--check" in sys.argv else main()
