"""Writes poisson-binomial.json: reference values of the Poisson-binomial distribution (about 3 s).

The values are computed in interval arithmetic at 512 bits (python-flint), by methods that the library does not use. For up to 8192
trials the method is a product tree of the polynomials q_i + p_i z. For sums of two binomial variables it is the convolution of
their probabilities over all values above 1e-60 of the result, where each probability follows from its neighbour. Every p is an
exact double. All of the 31 digits that are written are correct, because a wider interval stops the script.
"""

import json
import math
from pathlib import Path

from flint import arb, arb_poly, ctx

ctx.prec = 512
DIGITS = 31
HERE = Path(__file__).parent

FAMILIES = {
    "ramp": "p_i = (2i+1)/(2n)",
    "edge": "p_i = 1/1024 for even i, 1/4 for odd i",
    "tiny": "p_i = (2i+1)/2^40",
    "high": "p_i = 1 - (2i+1)/2^30",
    "split": "p_i = (2i+1)/2^70 for even i, 1 - (2i+1)/2^50 for odd i",
    "deep": "p_i = 2^-(60+i)",
    "two": "Bin(counts[0], p[0]) + Bin(counts[1], p[1]), p in hexadecimal",
}


def family(name, n):
    """Return the probabilities of a family as doubles, which are exact for the values of n used here."""
    rule = {
        "ramp": lambda i: (2 * i + 1) / (2 * n),
        "edge": lambda i: 2.0**-10 if i % 2 == 0 else 0.25,
        "tiny": lambda i: (2 * i + 1) * 2.0**-40,
        "high": lambda i: 1 - (2 * i + 1) * 2.0**-30,
        "split": lambda i: (2 * i + 1) * 2.0**-70 if i % 2 == 0 else 1 - (2 * i + 1) * 2.0**-50,
        "deep": lambda i: 2.0 ** -(60 + i),
    }[name]
    return [rule(i) for i in range(n)]


def digits(x):
    """Return a decimal string with correct digits."""
    text = x.str(DIGITS, radius=False)
    if x != 0 and x.rel_accuracy_bits() < 110:
        raise ArithmeticError(f"only {x.rel_accuracy_bits()} bits of {x}")
    return text


def log_of(mass, rest):
    """Return log(mass), computed from mass or from rest = 1 - mass, whichever is smaller."""
    if mass == 0:
        return "-inf"
    return digits(mass.log() if float(mass) < 0.5 else (-rest).log1p())


def entry(name, n, k, pmf, below, above, **more):
    return {
        "id": f"poisson-binomial/{name}-{n}-{k}",
        "family": name,
        "n": n,
        "k": k,
        **more,
        "logpmf": log_of(pmf, below + above),
        "logcdf": log_of(below + pmf, above),
        "logsf": log_of(above, below + pmf),
    }


def from_product_tree(name, n, chosen=None):
    polys = [arb_poly([1 - arb(p), arb(p)]) for p in family(name, n)]
    while len(polys) > 1:
        polys = [a * b for a, b in zip(polys[::2], polys[1::2])] + polys[len(polys) & ~1 :]
    pmf = [polys[0][i] for i in range(n + 1)]
    below = [arb(0)]
    for mass in pmf:
        below.append(below[-1] + mass)
    above = [arb(0)]
    for mass in reversed(pmf):
        above.append(above[-1] + mass)
    mean = sum(family(name, n))
    if chosen is None:
        sd = math.sqrt(sum(p * (1 - p) for p in family(name, n)))
        chosen = {0, 1, 2, n - 2, n - 1, n} | {round(mean + z * sd) for z in (-30, -12, -5, -2, -1, 0, 1, 2, 5, 12, 30)}
    for k in sorted(k for k in chosen if 0 <= k <= n):
        yield entry(name, n, k, pmf[k], below[k], above[n - k])


def binomial_run(n, p, first, last):
    """Return the binomial probabilities of first..last."""
    p = arb(p)
    mass = (
        arb(n + 1).lgamma() - arb(first + 1).lgamma() - arb(n - first + 1).lgamma() + first * p.log() + (n - first) * (1 - p).log()
    ).exp()
    run = [mass]
    ratio = p / (1 - p)
    for k in range(first, last):
        mass = mass * ratio * (n - k) / (k + 1)
        run.append(mass)
    return run


def two_groups(counts, p, z):
    """Return the probability at k = mean + z sd, as a sum over the values of the smaller group.

    The values are those within 20 standard deviations of its tilted mean.
    """
    (m, n), (a, b) = counts, p
    mean, sd = m * a + n * b, math.sqrt(m * a * (1 - a) + n * b * (1 - b))
    k = round(mean + z * sd)
    low, high = -50.0, 50.0
    for _ in range(200):
        theta = 0.5 * (low + high)
        tilted = [x * math.exp(theta) / (1 - x + x * math.exp(theta)) for x in p]
        if m * tilted[0] + n * tilted[1] < k:
            low = theta
        else:
            high = theta
    spread = 20 * math.sqrt(m * tilted[0] * (1 - tilted[0])) + 40
    first, last = max(0, k - n, math.floor(m * tilted[0] - spread)), min(m, k, math.ceil(m * tilted[0] + spread))
    left, right = binomial_run(m, a, first, last), binomial_run(n, b, k - last, k - first)
    pmf = sum((x * y for x, y in zip(left, reversed(right))), arb(0))
    return {
        "id": f"poisson-binomial/two-{m}-{n}-{k}",
        "family": "two",
        "n": m + n,
        "k": k,
        "counts": [m, n],
        "p": [a.hex(), b.hex()],
        "logpmf": digits(pmf.log()),
    }


def main():
    values = []
    chosen = {
        ("ramp", 1024): [
            0,
            3,
            137,
            241,
            319,
            362,
            392,
            429,
            455,
            480,
            511,
            512,
            543,
            568,
            594,
            631,
            661,
            704,
            782,
            886,
            1020,
            1023,
        ],
        ("edge", 1024): [0, 9, 30, 46, 70, 87, 105, 128, 152, 172, 193, 224, 249, 287, 358, 453, 583, 790],
        ("ramp", 8192): [
            1666,
            2468,
            2987,
            3313,
            3545,
            3670,
            3754,
            3861,
            3934,
            4005,
            4095,
            4096,
            4186,
            4257,
            4330,
            4437,
            4521,
            4646,
            4878,
            5204,
            5723,
            6525,
        ],
        ("edge", 8192): [
            0,
            42,
            288,
            482,
            634,
            719,
            778,
            855,
            908,
            960,
            1027,
            1028,
            1096,
            1150,
            1207,
            1291,
            1358,
            1458,
            1649,
            1925,
            2379,
            3106,
        ],
    }
    for name, n in (("ramp", 16), ("edge", 16), ("tiny", 64), ("high", 64), ("split", 64), ("deep", 60)):
        values += from_product_tree(name, n, range(n + 1) if n == 16 else None)
    for (name, n), k in chosen.items():
        values += from_product_tree(name, n, k)
    for name, n in (("tiny", 1024), ("high", 1024), ("split", 1024), ("deep", 500)):
        values += from_product_tree(name, n)
    for counts, p in (
        ((1000, 10**6), (0.3, 2.0**-9)),
        ((20000, 10**9), (0.125, 2.0**-20)),
        ((5000, 10**12), (0.75, 1e-6)),
    ):
        values += [two_groups(counts, p, z) for z in (-25.0, -6.0, -1.0, 0.0, 2.0, 9.0, 40.0, 440.0)]
    about = "log pmf, log Pr[X<=k], log Pr[X>k]; i = 0..n-1; by make_poisson_binomial.py; all p are exact doubles"
    text = json.dumps({"about": about, "families": FAMILIES, "values": values}, indent=0)
    (HERE / "poisson-binomial.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
