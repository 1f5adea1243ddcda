"""Writes clones_direct.json: log delta of the clone pair, summed directly from the distributions P and Q.

With C ~ Bin(n-1, r), A ~ Bin(c, 1/2) and w = 1/(e^eps0 + 1), the pair (P_c, Q_c) given C = c is A + Ber(1-w) against
A + Ber(w), and log delta = log sum_c Pr[C = c] sum_a max(0, P_c(a) - e^eps Q_c(a)). Each probability is computed from
factorials. The inner sum runs upward from its first positive term, and the outer sum from its largest term in both directions. Each
sum ends when its terms are below 2**-170 of the sum, from where they fall geometrically. The library uses another sum, that of
E max(0, D - u m)/m, where D is the sum of m = c + 1 fair signs and u = tanh(eps/2)/tanh(eps0/2). The numbers are intervals of 500
bits (python-flint), eps0 and eps are exact doubles, and r is e^-eps0 (2021) or 2/(e^eps0 + 1) (2023).

Run the script as ``python tests/reference/make_clones.py``; it takes about a minute on one core.
"""

import functools
import math
import sys
from pathlib import Path

import flint
from flint import arb

sys.path.insert(0, str(Path(__file__).parent))

from arbs import written

SMALL = 170


@functools.lru_cache(200000)
def log_factorial(n):
    """Return log n!."""
    return arb(n + 1).lgamma()


def log_choose(n, k):
    """Return log C(n, k)."""
    return log_factorial(n) - log_factorial(k) - log_factorial(n - k)


def inner(c, w, e, x):
    """Return sum_a max(0, P_c(a) - e Q_c(a)); x is the smallest a/(c+1) with a positive term, to double precision."""
    start = max(0, math.floor(x * (c + 1)) - 2)
    # `b` is b_c(a - 1), and `b_next` is b_c(a).
    b = (log_choose(c, start - 1) - c * arb.const_log2()).exp() if 0 < start <= c + 1 else arb(0)
    b_next = (log_choose(c, start) - c * arb.const_log2()).exp() if start <= c else arb(0)
    total, a = arb(0), start
    while a <= c + 1:
        term = ((1 - w) * b + w * b_next) - e * (w * b + (1 - w) * b_next)
        if term > 0:
            total += term
            if term < total * arb(2) ** -SMALL:
                break
        a += 1
        b, b_next = b_next, (b_next * (c - a + 1) / a if a <= c else arb(0))
    return total


def log_delta(n, eps0, eps, stronger):
    """Return log delta as an interval; eps < eps0."""
    old, flint.ctx.prec = flint.ctx.prec, 500
    try:
        e0, e = arb(eps0).exp(), arb(eps).exp()
        w = 1 / (e0 + 1)
        r = 2 / (e0 + 1) if stronger else 1 / e0
        if not eps < eps0:
            return arb("-inf")
        # The first positive term has (1-w) a/(c+1-a) + w > e (w a/(c+1-a) + 1-w).
        gain, loss = (1 - w) - e * w, e * (1 - w) - w
        x = float((loss / (gain + loss)).mid())

        def term(c):
            weight = (log_choose(n - 1, c) + c * r.log() + (n - 1 - c) * (-r).log1p()).exp()
            return weight * inner(c, w, e, x)

        # The largest term is found by a search on a coarse and then on a finer grid.
        best, step = 0, max(1, (n - 1) // 16)
        grid = range(0, n, step)
        values = {c: term(c) for c in grid}
        best = max(values, key=lambda c: values[c].mid())
        while step > 1:
            step = max(1, step // 3)
            for c in (best - 2 * step, best - step, best + step, best + 2 * step):
                if 0 <= c < n and c not in values:
                    values[c] = term(c)
            best = max(values, key=lambda c: values[c].mid())
        total = values[best]
        for direction in (1, -1):
            c = best + direction
            while 0 <= c < n:
                value = values[c] if c in values else term(c)
                total += value
                if value < total * arb(2) ** -SMALL:
                    break
                c += direction
        return total.log()
    finally:
        flint.ctx.prec = old


CASES = [
    # The entries are users, eps0 and eps.
    (1, 1.0, 0.0),
    (1, 1.0, 0.5),
    (1, 8.0, 7.5),
    (2, 1.0, 0.25),
    (2, 3.0, 2.9375),
    (3, 0.5, 0.125),
    (5, 2.0, 1.0),
    (17, 0.125, 0.0625),
    (50, 1.0, 0.0),
    (50, 1.0, 0.99),
    (50, 5.0, 3.0),
    (200, 0.01, 0.005),
    (200, 10.0, 1.0),
    (200, 30.0, 20.0),
    (500, 0.5, 0.1),
    (500, 0.5, 0.49),
    (1000, 1.0, 0.0),
    (1000, 1.0, 1e-9),
    (1000, 1.0, 0.15),
    (1000, 1.0, 0.5),
    (1000, 1.0, 0.95),
    (1000, 1.0, 0.9999999),
    (1000, 4.0, 2.0),
    (1000, 4.0, 3.999),
    (3000, 6.0, 1.0),
    (10000, 1.0, 0.04320),
    (10000, 1.0, 0.7),
    (10000, 4.0, 0.4),
    (10000, 4.0, 3.5),
    (10000, 12.0, 11.0),
    (30000, 2.0, 0.0),
    (30000, 2.0, 0.1),
    (30000, 2.0, 1.5),
    (100000, 2.0, 0.04),
    (100000, 1e-3, 1e-4),
    (100000, 2.0, 1.9),
    (1000000, 1.0, 0.885),
    (1000000, 4.0, 3.0),
]


def main():
    """Write the file of reference values."""
    values = []
    for users, eps0, eps in CASES:
        for stronger in (False, True):
            exact = log_delta(users, eps0, eps, stronger)
            assert exact.rel_accuracy_bits() > 110, (users, eps0, eps, exact)
            values.append(
                {
                    "users": users,
                    "local_eps": eps0,
                    "eps": eps,
                    "bound": "stronger" if stronger else "clones",
                    "log_delta": exact.str(34, radius=False),
                }
            )
    about = (
        "log delta of the clone pair from its two laws: written by make_clones.py (python-flint, 500 bits). "
        "eps0, eps: exact doubles."
    )
    written("clones_direct.json", about, values)


if __name__ == "__main__":
    main()
