"""Shared code of the generators of reference values: distributions and sums in interval arithmetic, and writing of files.

The code does not use the library. Probabilities come from factorials and ratios, tails are sums of positive terms, distributions of
sums are products of polynomials, and roots are found by the secant method. Intervals (the type `arb` of python-flint) contain the
exact value; text() raises an error for an interval that is too wide.
"""

import itertools
import json
import math
import sys
import time
from fractions import Fraction
from pathlib import Path

import flint
from flint import arb, arb_poly, fmpq

flint.ctx.prec = 400
HERE = Path(__file__).parent
SMALL = arb(2) ** -150


def ball(x):
    """Return a decimal or rational string, an int, a Fraction or a double (with its exact value) as an interval."""
    x = Fraction(x)
    return arb(fmpq(x.numerator, x.denominator))


def middle(x):
    """Return the midpoint of an interval as a Fraction."""
    mantissa, exponent = x.mid().man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def binomial_run(n, p, first, last):
    """Return the probabilities of Bin(n, p) at first..last, 0 outside of the support, for an integer n of any size."""
    run = []
    q = 1 - p
    start = min(max(first, 0), n)
    choose = arb(n + 1).lgamma() - arb(start + 1).lgamma() - arb(n - start + 1).lgamma()
    mass = (choose + start * p.log() + (n - start) * q.log()).exp()
    for k in range(first, last + 1):
        if not 0 <= k <= n:
            run.append(arb(0))
            continue
        run.append(mass)
        mass = mass * (n - k) * p / (q * (k + 1))
    return run


def law_of_bits(groups):
    """Return the probabilities of a sum of independent bits, given as pairs (count, probability), by products of polynomials."""
    law = arb_poly([1])
    for count, p in groups:
        law *= arb_poly([1 - p, p]) ** count
    return coefficients(law, sum(count for count, _ in groups))


def product_tree(chances):
    """Return the probabilities of a sum of bits with different probabilities, by a product tree of polynomials."""
    polys = [arb_poly([1 - p, p]) for p in chances]
    while len(polys) > 1:
        polys = [polys[i] * polys[i + 1] if i + 1 < len(polys) else polys[i] for i in range(0, len(polys), 2)]
    return coefficients(polys[0] if polys else arb_poly([1]), len(chances))


def coefficients(poly, degree):
    """Return the coefficients 0..degree of a polynomial."""
    return [poly[i] for i in range(degree + 1)]


def hockey_stick(p, q, e):
    """Return sum max(0, p - e q) of two enumerated distributions."""
    return sum((d for d in (x - e * y for x, y in zip(p, q, strict=True)) if d > 0), arb(0))


def tail_sum(term, start, step):
    """Return term(start) + term(start + step) + ... until terms are negligible; beyond some index the terms must decrease."""
    total, last, k = arb(0), None, start
    while True:
        value = term(k)
        total += value
        if last is not None and value <= last and value <= total * SMALL:
            return total
        last, k = value, k + step


def knots(p, q):
    """Return the breakpoints (alpha, beta) of the trade-off function of p and q, in decreasing order of q/p."""
    found, alpha, power = [(arb(0), arb(1))], arb(0), arb(0)
    for x, y in zip(p, q, strict=True):
        alpha, power = alpha + x, power + y
        found.append((alpha, 1 - power))
    return found


def between(found, alpha):
    """Return the value at alpha of the piecewise linear function through the breakpoints."""
    best = None
    for (a0, b0), (a1, b1) in itertools.pairwise(found):
        if middle(a0) <= middle(alpha) <= middle(a1) and middle(a1) > middle(a0):
            value = b0 + (b1 - b0) * (alpha - a0) / (a1 - a0)
            best = value if best is None or middle(value) < middle(best) else best
    return best


def shift_hockey_sticks(n, g, e):
    """Return H(B || B+1) and H(B+1 || B), B ~ Bin(n, g), each as a sum of positive terms."""
    q = 1 - g

    def mass(k):
        return binomial_run(n, g, k, k)[0]

    def run(start, step, term):
        total, last, k, b = arb(0), None, start, mass(start)
        while 0 <= k <= n:
            value = term(k, b)
            total += value
            if last is not None and value <= last and value <= total * SMALL:
                break
            last = value
            b = b * (k * q / (g * (n - k + 1))) if step < 0 else b * ((n - k) * g / (q * (k + 1)))
            k += step
        return total

    # b(k) is the probability of k under Bin(n, g), and q = 1 - g. H(B || B+1) is the sum of b(k) - e b(k-1) over k with (n-k+1) g >
    # e k q.
    cut = math.ceil(middle((n + 1) * g / (g + e * q))) - 1
    left = run(cut, -1, lambda k, b: b - e * b * (k * q / (g * (n - k + 1)))) if cut >= 0 else arb(0)
    # H(B+1 || B) is the sum of b(j) - e b(j+1), whose terms are positive for j from `cut` on.
    cut = math.floor(middle((n + 1) * g * e / (g * e + q)))
    right = run(cut, 1, lambda j, b: b - e * b * ((n - j) * g / (q * (j + 1)))) if cut <= n else arb(0)
    return left, right


def bit_hockey_sticks(others, q, e):
    """Return H(P0 || P1) and H(P1 || P0) of a sum with one bit of flip probability q.

    `others` is the distribution {count: mass} of the sum of the other users' bits.
    """
    p = 1 - q
    ks = range(min(others), max(others) + 2)
    p0 = [p * others.get(k, arb(0)) + q * others.get(k - 1, arb(0)) for k in ks]
    p1 = [q * others.get(k, arb(0)) + p * others.get(k - 1, arb(0)) for k in ks]
    return hockey_stick(p0, p1, e), hockey_stick(p1, p0, e)


def secant(f, x0, x1, bits=220):
    """Return a root of a smooth, almost linear function f by the secant method; x0, x1 are intervals."""
    x0, x1 = x0.mid(), x1.mid()
    f0 = f(x0).mid()
    for _ in range(60):
        f1 = f(x1).mid()
        if f1 == f0:
            break
        x0, x1, f0 = x1, (x1 - f1 * (x1 - x0) / (f1 - f0)).mid(), f1
        if abs(x1 - x0) < abs(x1) * arb(2) ** -bits:
            return x1
    return x1


def text(value, digits=30):
    """Return an interval as a decimal string; raise an error if it is too wide for the digits."""
    if not isinstance(value, arb):
        value = arb(value)
    assert value == 0 or value.rel_accuracy_bits() > 3.33 * digits, value
    return value.str(digits, radius=False)


def agrees(made, stored, digits=24):
    """Return whether a new value agrees with the stored one to the given number of digits; stored values have 20 to 35 digits."""
    stored_ball = ball(stored)
    held = len(stored.replace("-", "").split("e")[0].replace(".", "").lstrip("0"))
    made = made if isinstance(made, arb) else arb(made)
    if stored_ball == 0:
        return bool(abs(made) < arb(10) ** -60)
    return bool(abs(made.mid() - stored_ball) < abs(stored_ball) * arb(10) ** -(min(digits, held - 2)))


def written(name, about, values):
    """Write a file of values, one per line, next to the generators."""
    rows = ",\n".join(json.dumps(v) for v in values)
    Path(__file__).with_name(name).write_text(f'{{"about": {json.dumps(about)},\n"values": [\n{rows}\n]}}\n')
    print(len(values), "cases")


def main(name, value_of):
    """Recompute every value of the file and print those that differ from the stored ones; with --write, store the new values."""
    path = HERE / f"{name}.json"
    cases = json.loads(path.read_text())
    chosen = [word for word in sys.argv[1:] if word != "--write"]
    wrong = []
    for case in cases:
        if chosen and chosen[0] not in case["id"]:
            continue
        start = time.process_time()
        made = value_of(case)
        if not agrees(made, case["value"]):
            wrong.append(case["id"])
            print(case["id"], case["value"], made, flush=True)
            case["value"] = text(made)
        if (spent := time.process_time() - start) > 5:
            print(f"{case['id']}: {spent:.0f} s", flush=True)
    print(f"{name}: {len(cases)} values, {len(wrong)} differ")
    if "--write" in sys.argv:
        path.write_text(json.dumps(cases, indent=1) + "\n")
