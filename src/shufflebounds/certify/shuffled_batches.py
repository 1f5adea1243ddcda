r"""Bounds of delta of an epoch of shuffled batches, by the theorem of docs/theorems/shuffled-batches, whose notation is used here.

The unit of length is the standard deviation of the noise, so that R_w = N(w, 1) on a line. The target's vector has the length mu.

**Gamma.** For (P, Q), the positive values of X* are those of (R_mu - E R_0)/R_w for w = -mu, the negative ones those for w = mu.
For (Q, P), reflected at mu/2, w is 0 and 2 mu. Let R_mu = E R_0 at the output y_0. Above y_0, X* is the product of R_mu/R_w and
1 - E R_0/R_mu, which are nonnegative and do not decrease in y; below, -X* is the product of E R_0/R_w and 1 - R_mu/(E R_0), which
do not increase. So X* increases, and on a bin of outputs it is between its values at the two ends. Two atoms at these values with
the same mass and mean are larger in the convex order. Below all bins X* is raised to its value at their end. Outputs above all bins
are moved to X* = 0, which decreases the mean of a sum of N terms over N by at most R_mu{beyond}, as (s + x)_+ <= s_+ + x_+.

**Large values** make sums expensive. For g >= 0, X' = min(X, g) and the sums S and S'_N of N independent copies of X and X',

.. math:: N\, \mathbb{E}(X - g)_+ \Pr[S'_{N-1} \ge -g] \le \mathbb{E} S_+ - \mathbb{E} (S'_N)_+ \le N\, \mathbb{E}(X - g)_+.

The right part is (s + x)_+ <= (s + min(x, g))_+ + (x - g)_+. For the left one, S_+ - (S'_N)_+ is at least the sum of all
(X_i - g)_+ if S'_N >= 0. If X_i > g, this is the case if the other N - 1 values of X' add up to at least -g. By Cantelli's
inequality their sum is below -g with a probability of at most V/(V + a^2), V = N E X'^2, if a = g - N |E X'| is positive.

**D(c)** is the smallest of the three bounds of the page. The concave majorant on [0, Q] at q is bounded for each cell of p by
q g_x(p')/p'' with its largest p' and smallest p'', and for each cell of m at the largest q and Q and the smallest x. A cell is
divided if its bound is above those of the smallest cells so far.

**Lower bound**: delta of the dataset in which all other vectors are opposite to the target's, if the analyst sees cells of
outputs, or whether an output is above a number.

The witness is that of the engine: a smaller eps, the numbers N and k, the levels A. Each choice gives a valid bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from shufflebounds._engines.batches.epoch import Witness
from shufflebounds.certify._dispatch import Bounds, bounds_of, hockey_stick_of
from shufflebounds.certify.balls import Answer, Ball, arb, flint, largest, normal_tail, smaller
from shufflebounds.certify.blanket import contour, enumerated
from shufflebounds.certify.clones_window import log_pmf
from shufflebounds.certify.interval_noise import TOLERANCE, ratio, two_atoms
from shufflebounds.certify.noise import masses, normal_delta
from shufflebounds.certify.worst_dataset import Law

BINS, LOWEST, DEEPER = 120, -9.0, 9.0
"""The number of bins on either side of y_0, and of cells divided by 2; the output at which bins begin; outputs above all bins add
about e^-DEEPER of the bound. BINS raised: closer to the stated bound, and longer run time."""

DIGITS, CAPPED = 3, 3e-3
"""Digits of the smoothing term of a sum, and the estimated relative error by the choice of g. DIGITS raised by 1: three times more
nodes. CAPPED lowered: larger values and more nodes."""

FINEST = 1 / 64
"""Width of the smallest cells of m and of log p, as a fraction of their range. Raised: a larger D(c). Lowered: longer run time."""

BITS = 160
"""Bits of precision outside of sums."""

MOST_MU, MOST_RECORDS = 10.0, 2**24
"""The lower bound for this mu is valid for every larger mu, and the upper bound for batches of this size for larger batches."""


def capped(law: Law, terms: int, near: float) -> tuple[Law, Ball]:
    """Return the distribution of X', with g as its last value, and E(X - g)_+; `near` approximates log(E S_+/N)."""
    x, p = np.array([(float(x), float(p)) for x, p in law]).T
    # Without positive values g is 0, and E S_+ = 0.
    g = np.sort(np.maximum(x, 0.0))[:, None]
    with np.errstate(all="ignore"):
        low = np.minimum(x, g)
        gain, a = (x > g) * x @ p, g[:, 0] - terms * abs(low @ p)
        fits = (a > 0) & (gain * terms * (low**2 @ p) <= CAPPED * math.exp(near) * a**2)
    most = arb(g[fits.argmax() if fits.any() else -1, 0])
    above = [(x - most, p) for x, p in law if not x < most]
    return ([*((x, p) for x, p in law if x < most), (most, sum((p for _, p in above), arb(0)))],
            sum((p * gap.max(arb(0)) for gap, p in above), arb(0)))


def beta(records: int, cut: Ball, c: Ball) -> Ball:
    """Return an upper bound of beta_B(A, c), A = `cut`.

    From the first number of successes above cB/A on, the quotients of neighbouring probabilities decrease, so that a geometric
    series is larger. The inequality of Cauchy and Schwarz gives (sqrt(v + (c - 1)^2) - (c - 1))/2 with the variance v = (A - 1)/B.
    """
    level, less = c * records / cut, c - 1
    first = int(level.lower().floor().unique_fmpz()) + 1
    if first > records:
        return 0 * c
    plain = (((cut - 1) / records + less * less).sqrt() - less) / 2
    quotient = (records - first) / ((first + 1) * (cut - 1))
    if not quotient < 1:
        return plain
    series = ((first - level).max(arb(0)) + quotient / (1 - quotient)) / (1 - quotient)
    return plain.min(cut / records * log_pmf(records, first, 1 / cut).exp() * series)


def mean_excess(mu: Ball, c: Ball) -> Ball:
    """Return the smallest of the three bounds D(c)."""

    def majorant(q: Ball, end: Ball, x: Ball, known: Ball) -> Ball:
        """Return an upper bound of the concave majorant of g_x on [0, end] at q."""
        def cell(low: float, high: float, _: Ball) -> Ball:
            return normal_delta(mu * (q * (end / q) ** arb(high)).sqrt(), x) / (end / q) ** arb(low)

        return largest(cell, known, best, finest=FINEST) if x >= 1 else arb(1)

    def centre(low: float, high: float, known: Ball) -> Ball:
        q = 1 - arb(low) * low
        return majorant(q, (1 + arb(high)) * (1 + arb(high)), c * (-q * mu * mu / 2).exp(), known)

    splits = ((c**share, c ** (1 - share)) for share in (arb(i) / 64 for i in range(65)))
    best = smaller(arb(1), *((normal_delta(mu, x) + normal_delta(mu, y) / y).upper() for x, y in splits))
    best = best.min(majorant(arb(2), arb(4), c, arb(0)))
    return best.min(largest(centre, arb(0), best, finest=FINEST))


def kind(mu: Ball, factor: Ball, swapped: int, top: Ball) -> Law:
    """Return atoms of X*, for (Q, P) if `swapped` is 1; outputs above `top` are moved to 0."""
    start, law = factor.log() / mu + mu / 2, list[tuple[Ball, Ball]]()
    for sign, end in ((1, top), (-1, (start - 1).min(arb(LOWEST)))):
        w, edges = mu * (swapped - sign), [start + (end - start) * i / BINS for i in range(BINS + 1)][::sign]
        first, second, own = (masses(normal_tail, edges, x) for x in (mu, arb(0), w))
        values = [ratio(mu, w, y) - factor * ratio(arb(0), w, y) for y in edges]
        law += [(values[0], own[0])] if sign < 0 else []
        for low, high, p, q, mass in zip(values, values[1:], first[1:], second[1:], own[1:], strict=False):
            law += two_atoms(low, high, mass, p - factor * q)
    return [*law, (arb(0), 1 - sum((p for _, p in law), arb(0)))]


def gamma(mu: Ball, factor: Ball, terms: int, shift: Ball, near: float) -> Ball:
    """Return an upper bound of Gamma_N(E; u), N = `terms`, u = `shift`; `near` approximates its logarithm."""
    top, best = (mu + math.sqrt(2 * (DEEPER - near))).max(factor.log() / mu + mu / 2 + 1), arb(0)
    for swapped in (0, 1):
        law, excess = capped([(x + shift / terms, p) for x, p in kind(mu, factor, swapped, top)], terms, near)
        main = contour(law, terms, arb(0), digits=DIGITS, size=near + math.log(terms))
        best = best.max(main.upper() + excess + normal_tail(top - mu))
        flint().ctx.prec = BITS
    return best


def one_pivot(mu: Ball, steps: int, factor: Ball, *, records: int, terms: int, cut: float, near: float) -> Ball:
    """Return the bound of F_T(E) with one pivot; `cut` is A of D(T/N, B), and `near` approximates the logarithm of the bound."""
    if not (1 <= terms <= steps and cut >= 1):
        raise ArithmeticError(f"{terms} terms and A={cut!r} are not a witness for {steps} batches")
    tail = mean_excess(mu, arb(cut)) + beta(records, arb(cut), arb(steps) / terms)
    return gamma(mu, factor, terms, arb(0), near) + (normal_delta(mu, factor) + factor - 1) * tail


def every_rule(mu: Ball, steps: int, factor: Ball, *, records: int, given: Witness, near: float) -> Ball:
    """Return the bound of F_T(E) with the witness `given`."""
    # The bound at every smaller eps is an upper bound.
    factor, k, terms, level = factor.min(arb(given.eps).exp()), given.pivots, given.terms, arb(given.level)
    if k == 0:
        return one_pivot(mu, steps, factor, records=records, terms=terms, cut=given.cut, near=near)
    if not (1 <= k < steps and 1 <= terms <= steps - k and level > 1):
        raise ArithmeticError(f"{given} is not a witness for {steps} batches")
    share, weight = arb(k) / steps, normal_delta(mu, factor) + factor - 1
    most = min(near - math.log(weight + share), 0.0)
    f = normal_delta(mu, level).min(one_pivot(mu, k, level, records=records, terms=given.chosen, cut=given.chosen_cut, near=most))
    eta, shift = (1 + level) * f, (level * (level - factor)).max(arb(0)) * k * terms / (steps - k)
    excess = beta(records, level * level, (arb(steps - k) / terms).min(level * level))
    return (1 - share) * gamma(mu, factor, terms, shift, near) + share * eta + weight * (eta + excess)


def highest(mu: Ball, steps: int, factor: Ball) -> Ball:
    """Return a lower bound of delta of this dataset, if the analyst sees whether one of the outputs is above t, for several t."""
    mu = mu.min(arb(MOST_MU))
    best, start = arb(0), factor.log() / mu + mu / 2
    for t in (start + arb(i) / 20 for i in range(-20, 60)):
        # The other steps are below t with the probability `none`.
        none = (1 - normal_tail(t + mu)) ** (steps - 1)
        best = best.max((1 - factor) * (1 - none) + none * (normal_tail(t - mu) - factor * normal_tail(t)))
    return best


def opposite(mu: Ball, steps: int, factor: Ball, *, near: float, swapped: bool) -> Ball:
    """Return a ball whose lower end is at most delta of this dataset for (P, Q) or (Q, P); `near` approximates its logarithm."""
    mu = mu.min(arb(MOST_MU))
    low, high = -mu - 5, mu + math.sqrt(2 * (DEEPER - near))
    first, second, own = (masses(normal_tail, [low + (high - low) * i / (2 * BINS) for i in range(2 * BINS + 1)], x)
                          for x in (mu, arb(0), -mu))
    both = (second, first) if swapped else (first, second)
    law = [((p - factor * q) / m, m) for p, q, m in zip(*both, own, strict=True)]
    if steps == 2:
        return enumerated(law, steps, arb(0))
    law, excess = capped(law, steps, near)
    a = law[-1][0] - steps * abs(sum((x * p for x, p in law), arb(0)))
    square = steps * sum((x * x * p for x, p in law), arb(0))
    ball = contour(law, steps, arb(0), digits=DIGITS, size=near + math.log(steps))
    return ball + excess * a * a / (square + a * a) if a > 0 else ball


@bounds_of.of("ShuffledBatches")
def epoch_bounds(epoch: Any) -> Bounds:
    """Return the ways to compute each bound of delta of `ShuffledBatches`."""
    one, steps, noise, records = hockey_stick_of(epoch.noise), epoch.batches, epoch.noise, min(epoch.batch_size, MOST_RECORDS)

    def bound(factor: Ball, *, way: Callable[..., Ball]) -> Ball:
        flint().ctx.prec = BITS
        return way(arb(noise.sensitivity) / noise.sigma, steps, factor)

    def bounds(eps: float, upper: bool) -> Iterator[Answer]:
        near, ways = epoch.log_delta(eps, bound="upper" if upper else "lower"), list[tuple[float, Callable[..., Ball]]]()
        if upper or steps == 1:
            yield one
        if upper and steps > 1:
            ways = [(6e6 if given.pivots else 3e6, partial(every_rule, records=records, given=given, near=near))
                    for given in epoch._closed.epoch.witnesses(eps)]
        elif steps > 1:
            ways = [(1e5, highest), *((2e6, partial(opposite, near=near, swapped=swapped)) for swapped in (False, True))]
        for operations, way in ways:
            yield Answer(operations, partial(bound, way=way), TOLERANCE, refined=False)

    return bounds
