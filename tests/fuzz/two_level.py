"""Exact values for two-level randomizers with rare outcomes, by enumeration of the counts of all outcomes in interval arithmetic.

A two-level randomizer has the density g B, or e^eps0 g B on the lifted set of the user's value, with a base distribution B (k-ary
response: B is uniform, and a lifted set is one bin; PrivUnit: a cap). Here the lifted sets of two values are disjoint and have the
mass `share` under B, so g = 1/(1 + share (e^eps0 - 1)). Nothing is formed as 1 minus a sum of doubles.
"""

import itertools
import math

import flint

__all__ = ["allocated", "blanket", "kink", "outcomes"]

BITS = 1200


def _ball(x):
    numerator, denominator = x.as_integer_ratio()
    return flint.arb(numerator) / denominator


def outcomes(local_eps, share):
    """Return the probabilities of the outcomes under two values, and under g B: the first value's set, the second's, neither."""
    lift, one = _ball(local_eps).exp(), _ball(share)
    g = 1 / (1 + one * (lift - 1))
    return [(lift * one * g, one * g, one * g), (one * g, lift * one * g, one * g), ((1 - 2 * one) * g,) * 3]


def _expected_gain(values, masses, users):
    """Return E (X_1 + ... + X_n)_+ by a sum over the numbers of users with each value."""
    total = flint.arb(0)
    for bars in itertools.combinations(range(users + len(values) - 1), len(values) - 1):
        counts = [b - a - 1 for a, b in itertools.pairwise((-1, *bars, users + len(values) - 1))]
        gain = sum((x * k for x, k in zip(values, counts)), flint.arb(0))
        if gain > 0:
            chance = flint.arb(math.factorial(users))
            for mass, k in zip(masses, counts):
                chance *= mass**k / math.factorial(k)
            total += chance * gain
    return total


def blanket(local_eps, share, users, eps):
    """Return log delta of the privacy blanket, (1/n) E (X_1 + ... + X_n)_+ with X = (R_0 - e^eps R_1)/m under m = g B, else 0."""
    with flint.ctx.workprec(BITS):
        listed, factor = outcomes(local_eps, share), _ball(eps).exp()
        values = [(p - factor * q) / m for p, q, m in listed] + [flint.arb(0)]
        masses = [m for _, _, m in listed]
        # Without the lifted part of one value, its outcomes have the masses under g B.
        masses.append(listed[0][0] - listed[0][2])
        return (_expected_gain(values, masses, users) / users).log()


def allocated(local_eps, share, steps, eps, removed):
    """Return log delta of a random allocation: P in one of the steps and Q in the others, against Q in all steps, or reversed."""
    with flint.ctx.workprec(BITS):
        listed, factor = outcomes(local_eps, share), _ball(eps).exp()
        values = [p / q - factor if removed else 1 - factor * p / q for p, q, _ in listed]
        return (_expected_gain(values, [q for _, q, _ in listed], steps) / steps).log()


def kink(r, local_eps, users):
    """Return an eps at which a sum of X over at most this number of users is exactly 0, up to the rounding of eps, or None."""
    i, j, k = (r.randint(0, users) for _ in range(3))
    if not 0 < i + j + k <= users:
        return None
    lift = math.exp(local_eps)
    eps = math.log((i * lift + j + k) / (i + j * lift + k))
    return eps if eps > 0 else None
