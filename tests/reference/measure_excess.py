"""Errors of the excess kernel against powers of polynomials at 400 bits: lattice laws, n = 1..600, log masses to -60.

    python tests/reference/measure_excess.py        one minute
"""

import math
import random
import time

import numpy as np
from flint import arb, arb_poly, ctx

from shufflebounds._core import _excess

ctx.prec = 400


def exact(values, log_mass, n):
    """Return log E(X_1 + ... + X_n)_+ for whole values."""
    mass = [arb(float(w)).exp() for w in log_mass]
    low = min(*values, 0)
    law = [arb(0)] * (max(*values, 0) - low + 1)
    for x, w in zip(values, mass):
        law[x - low] += w
    law[-low] += 1 - sum(mass, arb(0))
    total = sum((c * (k + low * n) for k, c in enumerate((arb_poly(law) ** n).coeffs()) if k + low * n > 0), arb(0))
    return total.log()


def random_law(rng):
    """Return whole values, at least one positive, and logarithms of masses."""
    size = rng.randint(1, 6)
    values = rng.sample([i for i in range(-7, 8) if i], size)
    values[0] = abs(values[0])
    values = sorted(set(values))
    mass = np.exp([-rng.random() * rng.choice([1, 10, 60]) for _ in values])
    return values, np.log(mass / mass.sum() * rng.choice([0.1, 0.5, 0.9, 0.999]))


def sides(values, log_mass, n):
    """Return the sides of the kernel."""
    starts = np.array([0, len(values)], dtype=np.intp)
    return _excess.log_excess(np.array(values, dtype=float), np.asarray(log_mass), starts, np.array([float(n)]))


if __name__ == "__main__":
    rng, start, gaps, outside = random.Random(7), time.time(), {"listed": [], "contour": []}, 0
    while time.time() - start < 60:
        values, log_mass = random_law(rng)
        n = int(math.exp(rng.uniform(0, math.log(600))))
        lower, upper = sides(values, log_mass, n)
        outside += not arb(lower) < exact(values, log_mass, n) < arb(upper)
        gaps["listed" if upper - lower < 1e-9 else "contour"].append(upper - lower)
    for name, gap in gaps.items():
        print(f"{name}: {len(gap)} trials, median gap {sorted(gap)[len(gap) // 2]:.1e}, peak {max(gap):.1e}")
    print("outside:", outside)
