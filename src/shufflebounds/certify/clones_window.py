r"""delta of the clone bounds, for any number of users whose window of clone counts can be summed up.

The number C of clones is random, A ~ Bin(C, 1/2) of them send the first of two messages, and the target sends the first message
with probability w = odds/(odds + 1) or 1 - w. With E = e^eps, u = w - E(1 - w) and v = E w - (1 - w),

.. math:: \delta = \sum_c \Pr[C = c]\, H(c), \qquad H(c) = \max_k\; u \Pr[A \ge k - 1] - v \Pr[A \ge k].

Theorem.

1. The ratio of the two probabilities of k first messages is increasing in k, so the best k of H(c) is the first integer above
   share (c + 1), share = v/(u + v) >= 1/2. Every k gives a lower bound of H(c). Where a ball does not decide between two integers,
   the maximum of both is used.
2. From c to c + 1 clones, P(A' >= k) = P(A >= k) + P(A = k - 1)/2, so each c takes a few operations.
3. H(c + 1) <= H(c) <= H(0) = u, because another clone is a post-processing. So the c below a window contribute at most
   P(C < low) u, and those above it at most P(C > high) H(high). If C is binomial, both probabilities are below geometric series.

The witness is the window of c; every window gives valid bounds. P(A >= k) decreases along the window by many orders of magnitude,
so the precision of the balls is raised accordingly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from shufflebounds._base.validate import InfeasibleError
from shufflebounds._engines.witnesses import clone_window
from shufflebounds.certify.balls import Answer, Ball, arb, flint

MOST_COUNTS = 5e6
"""Resource limit: largest number of clone counts of a window. Raised: longer calls."""


def log_pmf(n: int, k: int, p: Ball) -> Ball:
    """Return log P(Bin(n, p) = k)."""
    return arb(n + 1).lgamma() - arb(k + 1).lgamma() - arb(n - k + 1).lgamma() + k * p.log() + (n - k) * (1 - p).log()


def _later(term: Ball, ratio: Ball) -> Ball:
    """Return the range of a sum of probabilities, each at most `ratio` times the one before it, the first one after `term`."""
    return arb(0).union(term * ratio / (1 - ratio) if ratio < 1 else arb(1))


def _divergences(u: Ball, v: Ball, low: int, high: int) -> Iterator[Ball]:
    """Yield H(c) for c = low..high."""
    share = v / (u + v)
    # The lower end of the ball is rounded down to an integer exactly, since a later start would not be the first integer.
    k = max(1, int((share * (low + 1)).lower().floor().unique_fmpz()))
    before = log_pmf(low, k - 1, arb(1) / 2).exp() if k - 1 <= low else arb(0)
    # P(A >= k) for A ~ Bin(low, 1/2), from term = P(A = j - 1).
    tail, term, j = arb(0), before, k
    while j <= low and not term < tail * arb(2) ** -flint().ctx.prec:
        term, j = term * (low - j + 1) / j, j + 1
        tail += term
    tail += _later(term, arb(low - j + 1) / j)
    for c in range(low, high + 1):
        edge = share * (c + 1)
        while arb(k) <= edge:
            before, k = before * (c - k + 1) / k, k + 1
            tail -= before
        best = u * (tail + before) - v * tail
        if not arb(k) > edge:
            at = before * (c - k + 1) / k
            best = best.max(u * tail - v * (tail - at))
        yield best
        tail, before = tail + before / 2, before * (c + 1) / (2 * (c + 2 - k))


Pair = Callable[[Ball], tuple[Ball, Ball, Ball]]
"""The function from e^eps to the probability of a clone, u and v, at the precision of the call."""


def divergence_weights(odds: Ball, factor: Ball) -> tuple[Ball, Ball]:
    """Return (u, v)."""
    return (odds - factor) / (odds + 1), (factor * odds - 1) / (odds + 1)


def every_count(law: Sequence[Ball], odds: Ball, factor: Ball) -> Ball:
    """Return delta if the number of clones is c with probability law[c]."""
    u, v = divergence_weights(odds, factor)
    if not u > 0:
        return u.max(arb(0))
    return sum((weight * here for weight, here in zip(law, _divergences(u, v, 0, len(law) - 1), strict=True)), arb(0))


def of_window(n: int, pair: Pair) -> Answer:
    """Return delta if each of n other users is a clone with the probability of `pair`."""
    # The estimate is that at eps = 0, where delta is largest.
    _, low, high = clone_window(n, float(pair(arb(1))[0]), 0.5, 115)
    return Answer(12.0 * (high - low) + 4.0 * math.sqrt(100.0 * n) + 12, partial(binomial_window, n, pair))


def binomial_window(n: int, pair: Pair, factor: Ball) -> Ball:
    """Return delta if the number of clones is Bin(n, p)."""
    bits = flint().ctx.prec
    p, u, v = pair(factor)
    if not u > 0:
        return u.max(arb(0))
    depth, low, high = clone_window(n, float(p), float(v / (u + v)), bits)
    if high - low > MOST_COUNTS:
        raise InfeasibleError(f"the window has {high - low} clone counts: at most {MOST_COUNTS:g} are tried")
    # As eps approaches the budget, 1 - share = 1/(1 + v/u) approaches 0, which costs precision.
    flint().ctx.prec = bits + 64 + math.ceil(1.5 * depth + float((1 + v / u).log()))
    try:
        p, u, v = pair(factor)
        weight = log_pmf(n, low, p).exp() if p < 1 else arb(low == n)
        total, below = arb(0), _later(weight, low * (1 - p) / ((n - low + 1) * p))
        for c, best in enumerate(_divergences(u, v, low, high), low):
            total += weight * best
            if c < high:
                weight = weight * (n - c) * p / ((c + 1) * (1 - p))
        above = _later(weight, (n - high) * p / ((high + 1) * (1 - p))) if high < n else arb(0)
        return total + below * u + above * best
    finally:
        flint().ctx.prec = bits
