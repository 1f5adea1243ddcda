"""Bounds of (1/n) E (X_1 + ... + X_n)_+ for X = (R_0 - e^eps R_1)/m with a density, by splitting the mass of X over a lattice.

The mass of every cell of X is split between its two ends with the same mean, which is larger in the convex order. Splitting one
variable over a width h increases the expectation by at most h/4, and only if the sum is within h of 0. For all variables in turn,

    E(S')_+ - n (h/4) Pr[|S'| <= (n + 1) h, X_1 split]  <=  E(S)_+  <=  E(S')_+

where S' is the sum of the split variables; the two bounds differ by about 1e-6. Sums are direct convolutions of positive terms.
"""

import math

import numpy as np
from scipy.special import log_ndtr

__all__ = ["Gaussian", "Laplace", "allocated", "functional", "shuffled"]

POINTS = 4000


class Laplace:
    """The two distributions of Laplace noise with scale b at 0 and at 1, as functions of the log likelihood ratio."""

    def __init__(self, budget):
        self.low, self.high = -budget, budget
        self.budget = budget

    def cells(self, edges):
        """Return the masses of (edges[i], edges[i+1]) under both distributions, without the atoms at both ends."""
        left, right = edges[:-1], edges[1:]
        first = np.exp((right - self.budget) / 2) * -np.expm1((left - right) / 2) / 2
        second = np.exp(-(left + self.budget) / 2) * -np.expm1((left - right) / 2) / 2
        return first, second

    def atoms(self):
        return [(self.budget, 0.5, 0.5 * math.exp(-self.budget)), (-self.budget, 0.5 * math.exp(-self.budget), 0.5)]


class Gaussian:
    """Two normal distributions, whose log likelihood ratio is N(+-mu^2/2, mu^2)."""

    def __init__(self, mu, reach=5.2):
        self.mu = mu
        self.low, self.high = -mu * mu / 2 - reach * mu, mu * mu / 2 + reach * mu

    def tails(self, loss):
        """Return the probabilities of a log likelihood ratio above and below `loss`, first under P, then under Q."""
        z = loss / self.mu
        return [np.exp(log_ndtr(sign * z + shift)) for shift, sign in
                ((self.mu / 2, -1), (-self.mu / 2, 1), (-self.mu / 2, -1), (self.mu / 2, 1))]

    def cells(self, edges):
        above, below, above_q, below_q = self.tails(edges)
        p = np.where(below[1:] < above[:-1], below[1:] - below[:-1], above[:-1] - above[1:])
        q = np.where(below_q[1:] < above_q[:-1], below_q[1:] - below_q[:-1], above_q[:-1] - above_q[1:])
        return p, q

    def atoms(self):
        return []


def functional(laws, factor, measure, users, points=POINTS):
    """Return bounds of (1/n) E(X_1 + ... + X_n)_+.

    `measure` names the measure m: min(P, Q), Q ("second"), P ("first") or (P + Q)/2 ("half").
    """
    # X is an increasing function of the loss; `value` is this function and `back` its inverse.
    value, back = {
        "min": (lambda loss: np.where(loss > 0, np.exp(loss) - factor, 1 - factor * np.exp(-loss)),
                lambda x: np.where(x > 1 - factor, np.log(np.maximum(x + factor, 1e-300)),
                                   -np.log(np.maximum((1 - x) / factor, 1e-300)))),
        "second": (lambda loss: np.exp(loss) - factor, lambda x: np.log(np.maximum(x + factor, 1e-300))),
        "first": (lambda loss: 1 - factor * np.exp(-loss), lambda x: -np.log(np.maximum((1 - x) / factor, 1e-300))),
        "half": (lambda loss: 2 * (np.exp(loss) - factor) / (np.exp(loss) + 1),
                 lambda x: np.log(np.maximum((x + 2 * factor) / np.maximum(2 - x, 1e-300), 1e-300))),
    }[measure]
    weight = {"min": np.minimum, "second": lambda p, q: q, "first": lambda p, q: p, "half": lambda p, q: (p + q) / 2}[measure]
    top = max(float(value(np.float64(laws.high))), 1e-12)
    # If one variable is below `bottom`, the sum is not positive.
    bottom = min(max(float(value(np.float64(laws.low))), -(users - 1) * top), -1e-3 * top)
    zero = math.ceil((points - 1) * -bottom / (top - bottom))
    step = top / (points - 1 - zero)
    # The lattice contains 0 and the largest value.
    grid = step * (np.arange(points) - zero)
    bottom = float(grid[0])
    edges = np.clip(np.maximum.accumulate(back(grid)), laws.low, laws.high)
    edges[-1] = laws.high
    # The minimum of the two densities changes from one to the other at loss 0, so this point is an edge, too.
    cuts = np.sort(np.append(edges, np.clip(0.0, edges[0], laws.high)))
    p, q = laws.cells(cuts)
    place = np.clip(np.searchsorted(edges, (cuts[1:] + cuts[:-1]) / 2) - 1, 0, points - 2)
    parts = [(place, weight(p, q), p - factor * q)]
    lost = float(np.sum(weight(*laws.cells(np.unique([laws.low, min(max(0.0, laws.low), edges[0]), edges[0]])))))
    for _, first, second in laws.atoms():
        m = float(weight(first, second))
        at = (first - factor * second) / m
        if at < bottom:
            lost += m
            continue
        parts.append((np.array([min(max(int((at - bottom) / step), 0), points - 2)]), np.array([m]), np.array([m * at])))
    law, held = np.zeros(points), 0.0
    for cell, mass, moment in parts:
        share = np.clip((moment - grid[cell] * mass) / step, 0.0, mass)
        np.add.at(law, cell, mass - share)
        np.add.at(law, cell + 1, share)
        held += float(np.sum(mass))
    above = below = extra = 0.0
    if isinstance(laws, Gaussian):
        p_above, _, q_above, _ = laws.tails(np.float64(laws.high))
        _, p_below, _, q_below = laws.tails(np.float64(laws.low))
        extra, above = float(p_above), float(weight(p_above, q_above))
        below = float(weight(p_below, q_below))
    rest = max(0.0, 1 - held - lost - above - below) if measure == "min" else 0.0
    still = np.zeros(points)
    still[zero] = rest
    low_law, high_law = law.copy(), law.copy()
    # The lower bound counts values above the largest lattice point as this point, and values below the smallest as 0.
    low_law[-1] += above
    high_law[0] += below  # The upper bound counts values below the smallest lattice point as this point.
    high_law[zero] += above  # The upper bound counts values above the largest as 0 and adds their contribution separately.
    slack = 1e-14 * (top - bottom) * users + 1e-13

    def excess(law):
        rest = np.ones(1)
        for _ in range(users - 1):
            rest = np.convolve(rest, law + still)
        split, total = np.convolve(rest, law), np.convolve(rest, law + still)
        at = step * (np.arange(total.size) - users * zero)
        near = float(split[np.abs(at) <= (users + 1) * step].sum())
        return float(total[at > 0] @ at[at > 0]), near

    high, near = excess(high_law)
    low, near = excess(low_law) if above or below else (high, near)
    low -= users * step / 4 * near
    return max(0.0, (low * (1 - 1e-11) - slack) / users), (high * (1 + 1e-11) + slack) / users + extra


def shuffled(laws, factor, users, data):
    """Return bounds for the privacy blanket, and for the dataset with the given description, or None."""
    known = {"every other user has the second end": "second", "every other user has the first end": "first",
             "half of the other users have either end": "half"}
    attained = functional(laws, factor, known[data], users) if data in known else None
    return functional(laws, factor, "min", users), attained


def allocated(laws, factor, steps, removed):
    """Return bounds of H(average || Q^t) if the record is removed, or of H(Q^t || average) if it is added."""
    # For a removed record X is the likelihood ratio minus e^eps, under Q. For an added record P and Q are exchanged, because the
    # two distributions are mirror images.
    return functional(laws, factor, "second" if removed else "first", steps)
