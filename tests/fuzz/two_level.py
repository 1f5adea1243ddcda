"""Exact values for two-level randomizers with rare outcomes, by enumeration of the counts of all outcomes in interval arithmetic.

A two-level randomizer has the density g B, or e^eps0 g B on the lifted set of the user's value, with a base distribution B (k-ary
response: B is uniform, and a lifted set is one bin; PrivUnit: a cap). Here the lifted sets of three values are disjoint and have
the mass `share` under B, so g = 1/(1 + share (e^eps0 - 1)). No probability is formed as 1 minus a sum of doubles.
"""

import itertools
import math

__all__ = ["alike", "allocated", "blanket", "kink"]

BITS = 1200


def _ball(x):
    import flint

    numerator, denominator = float(x).as_integer_ratio()
    return flint.arb(numerator) / denominator


def _outcomes(local_eps, share):
    """Return e^local_eps, and the probabilities under g B of the lifted sets of three values and of the other outcomes."""
    lift, one = _ball(local_eps).exp(), _ball(share)
    g = 1 / (1 + one * (lift - 1))
    return lift, [one * g] * 3 + [(1 - 3 * one) * g]


def _mean_gain(values, masses, users):
    """Return E (X_1 + ... + X_n)_+/n by a sum over the numbers of users with each value."""
    import flint

    total = flint.arb(0)
    for bars in itertools.combinations(range(users + len(values) - 1), len(values) - 1):
        counts = [b - a - 1 for a, b in itertools.pairwise((-1, *bars, users + len(values) - 1))]
        gain = sum((x * k for x, k in zip(values, counts)), flint.arb(0))
        if gain > 0:
            chance = flint.arb(math.factorial(users))
            for mass, k in zip(masses, counts):
                chance *= mass**k / math.factorial(k)
            total += chance * gain
    return total / users


def blanket(local_eps, share, users, eps):
    """Return delta of the privacy blanket: X = (R_0 - e^eps R_1)/m with mass m = g B, and 0 with the rest of the probability."""
    import flint

    with flint.ctx.workprec(BITS):
        (lift, (one, _, third, rest)), factor = _outcomes(local_eps, share), _ball(eps).exp()
        # The last mass is that of the lifted part of a user's distribution.
        return _mean_gain([lift - factor, 1 - factor * lift, 1 - factor, flint.arb(0)],
                          [one, one, third + rest, (lift - 1) * one], users)


def alike(local_eps, share, users, eps):
    """Return the largest delta over three datasets: all other users have the target's first value, its second, or a third."""
    import flint

    with flint.ctx.workprec(BITS):
        (lift, masses), factor, found = _outcomes(local_eps, share), _ball(eps).exp(), []
        for other in range(3):
            lifts = [[lift if place == value else flint.arb(1) for place in range(4)] for value in (0, 1, other)]
            values = [(p - factor * q) / m for p, q, m in zip(*lifts)]
            found.append(_mean_gain(values, [mass * m for mass, m in zip(masses, lifts[2])], users))
        return max(found, key=lambda ball: ball.mid())


def allocated(local_eps, share, steps, eps, removed):
    """Return delta of a random allocation: P in one of the steps and Q in the others, against Q in all steps, or reversed."""
    import flint

    with flint.ctx.workprec(BITS):
        (lift, (one, _, third, rest)), factor = _outcomes(local_eps, share), _ball(eps).exp()
        values = [x - factor if removed else 1 - factor * x for x in (lift, 1 / lift, flint.arb(1))]
        return _mean_gain(values, [one, lift * one, third + rest], steps)


def kink(r, local_eps, users):
    """Return an eps at which a sum of X over at most this number of users is exactly 0, up to the rounding of eps, or None."""
    i, j, k = (r.randint(0, users) for _ in range(3))
    if not 0 < i + j + k <= users:
        return None
    lift = math.exp(local_eps)
    eps = math.log((i * lift + j + k) / (i + j * lift + k))
    return eps if 0 < eps < local_eps else None
