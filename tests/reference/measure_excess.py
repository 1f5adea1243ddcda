"""Errors of the excess kernel: against powers of polynomials at 400 bits, and gaps of cases without an exact value.

    python tests/reference/measure_excess.py        a few minutes
"""

import math
import random

import numpy as np
from flint import arb, arb_poly, ctx

from shufflebounds import shuffle
from shufflebounds._core import _excess
from shufflebounds._engines.excess.excess_law import ExcessLaw
from shufflebounds.mechanisms import GaussianMechanism

ctx.prec = 400


def exact(values, log_mass, n):
    """Return log E(X_1 + ... + X_n)_+ for integer values."""
    mass = [arb(float(w)).exp() for w in log_mass]
    low = min(*values, 0)
    law = [arb(0)] * (max(*values, 0) - low + 1)
    for x, w in zip(values, mass):
        law[x - low] += w
    total = sum((c * (k + low * n) for k, c in enumerate((arb_poly(law) ** n).coeffs()) if k + low * n > 0), arb(0))
    return total.log()


def random_law(rng):
    """Return random integer values, at least one of them positive and the last one 0, and logarithms of masses that sum to 1."""
    size = rng.randint(1, 6)
    values = rng.sample([i for i in range(-7, 8) if i], size)
    values[0] = abs(values[0])
    values = sorted(set(values))
    mass = np.exp([-rng.random() * rng.choice([1, 10, 60]) for _ in values])
    log_mass = np.log(mass / mass.sum() * rng.choice([0.1, 0.5, 0.9, 0.999]))
    rest = 1 - sum((arb(float(w)).exp() for w in log_mass), arb(0))
    return [*values, 0], np.append(log_mass, float(rest.log()))


def sides(values, log_mass, n):
    """Return the lower and the upper bound of the kernel."""
    starts = np.array([0, len(values)], dtype=np.intp)
    return _excess.log_excess(np.array(values, dtype=float), np.asarray(log_mass), starts, np.array([float(n)]))


def powers(rng, trials, users=600):
    """Return two dictionaries of lists: 1 for each exact value outside of its bounds and 0 inside, and the gaps of the bounds.

    The keys are the methods of the kernel: "listed" (enumeration, with gaps below 1e-9) and "contour".
    """
    outside, gaps = {"listed": [], "contour": []}, {"listed": [], "contour": []}
    while len(gaps["listed"]) < trials:
        values, log_mass = random_law(rng)
        n = int(math.exp(rng.uniform(0, math.log(users))))
        lower, upper = sides(values, log_mass, n)
        kind = "listed" if upper - lower < 1e-9 else "contour"
        outside[kind].append(0.0 if arb(lower) < exact(values, log_mass, n) < arb(upper) else 1.0)
        gaps[kind].append(upper - lower)
    return outside, gaps


def clones(rng, trials):
    """Return two lists: 1 for each disjoint pair of bounds of binary randomized response and of the clone sum, and the gaps."""
    outside, gaps = [], []
    for _ in range(trials):
        n, eps0 = round(10 ** rng.uniform(4, 9)), rng.uniform(0.5, 8)
        eps = min(0.9 * eps0, math.exp(rng.uniform(0, 4)) * math.exp(eps0 / 2) / math.sqrt(n))
        mass = -math.log1p(math.exp(eps0))
        low, high = ExcessLaw([mass, mass], [eps0, 0.0], [0.0, eps0], math.log(math.tanh(eps0 / 2))).log_phi([eps], n)
        clone = shuffle.StrongerClones(n, eps0)
        slack = 4e-16 * abs(clone.log_delta(eps))
        meet = low[0] <= clone.log_delta(eps) + slack and high[0] >= clone.log_delta(eps, bound="lower") - slack
        outside.append(0.0 if meet else 1.0)
        gaps.append(float(high[0] - low[0]))
    return outside, gaps


def noise(rng, trials, sigmas):
    """Return gaps for Gaussian noise on [0, 1], for 1e3..1e6 users and for eps of 1 to 6 standard deviations.

    The deviation is that of the mean of X at eps = 0.
    """
    gaps = []
    for _ in range(trials):
        law, n = GaussianMechanism(rng.choice(sigmas)).excess_laws()[0].upper, round(10 ** rng.uniform(3, 6))
        light = law.log_mass + np.maximum(law.log_a, law.log_b) > -12
        spread = math.sqrt(float((np.exp(law.log_mass) * law.values(0.0) ** 2)[light].sum()))
        low, high = law.log_phi([rng.uniform(1, 6) * spread / math.sqrt(n)], n)
        gaps.append(float(high[0] - low[0]))
    return gaps


def show(name, outside, gaps):
    """Print a row of the header's table."""
    gaps = sorted(gaps)
    print(f"{name:45}{len(gaps):<8}{sum(outside) if outside else '-':<8}{gaps[len(gaps) // 2]:<10.1e}{gaps[-1]:.1e}", flush=True)


if __name__ == "__main__":
    missed, apart = powers(random.Random(7), 400)
    for kind in apart:
        show(kind, missed[kind], apart[kind])
    show("binary response", *clones(random.Random(7), 600))
    for group in ((1.0, 1.5, 2.0), (0.5,), (0.3,)):
        show(f"Gaussian noise on [0, 1], sigma {group}", [], noise(random.Random(7), 60, group))
