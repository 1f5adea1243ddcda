"""Bounds of delta of shuffled records of flipped bits, from the two bits of each record that the target's value can change.

A record has one bit for each of d bins: 1 in the bin of its value, 0 in all others, each bit flipped with probability q = 1 - p.
Every user sends one record, and dummy records (parameter `fakes`) are added. The target's value moves from a first bin to a second
one. A record is called 10, 01, 00 or 11 by its bits of these two bins.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from shufflebounds._base.limits import TABLE_SIZE
from shufflebounds._base.types import ULP, FloatArray, Interval
from shufflebounds._engines.bits.curve_of_sum import Bit, atoms_of_sum
from shufflebounds._engines.bits.two_bins import positive_difference
from shufflebounds._engines.clones.law import CloneLaw, log_clone_delta
from shufflebounds._engines.errors.accuracy import _tail
from shufflebounds._losses.budget import log_odds
from shufflebounds._losses.release import SINGLE, DominatingPairInfo, Losses

ENUMERATED = 24
"""Largest number of records of two bins for which the distributions for all datasets are enumerated. Raised: longer run time.
Lowered: less tight bounds for few records."""


def local(flip: float, eps: float) -> float:
    """Return the log of the local delta of one record, p^2 - e^eps q^2 with q = 1 - p = `flip`.

    Only record 10 (1 in the target's first bin, 0 in its second) contributes: 00 and 11 have the same probability for both values
    of the target, and 01 is less probable for the first value than for the second.
    """
    gap = log_odds(flip).times(2).less(eps)
    return 2 * math.log1p(-flip) + math.log(-math.expm1(-gap)) + 1e-14 if gap > 0 else -math.inf


def blanket(others: int, fakes: int, bins: int, flip: float) -> CloneLaw:
    """Return the distribution of the number of clones of the target's record, for the privacy blanket of every dataset.

    The target's record is 10 or 01 with probability c = p^2 + q^2 (q = 1 - p = `flip`), for either value; given this, it is the
    record of its own bin with probability p^2/c. With probability q^2, any other user's record is a clone 10, and with probability
    q^2 a clone 01: the further bits of a clone have the distribution of those of the target's record. For a uniform dummy each of
    these probabilities is (p^2 + q^2)/d + (1 - 2/d) q^2. The bound assumes that the analyst knows which records are clones.
    """
    p, q = 1 - flip, flip
    shown = (p * p + q * q) / bins + (1 - 2 / bins) * q * q
    return CloneLaw(np.array([q * q, shown]) * (1 - 8 * ULP), np.array([others, fakes], dtype=np.float64))


def blanket_bound(clones: CloneLaw, flip: float, eps: float) -> float:
    """Return an upper bound of log delta of shuffled records, valid for every dataset, from the result of :func:`blanket`."""
    return log_clone_delta(clones, log_odds(flip).times(2), eps)[1] + math.log((1 - flip) ** 2 + flip * flip) + 1e-14


def projected(others: int, fakes: int, bins: int, flip: float, eps: float) -> float:
    """Return a lower bound of log delta from the number of records 01 (the bits of the target's two bins) alone, if all other users
    are in the target's first bin.
    """
    p, q = 1 - flip, flip
    shown = (p * p + q * q) / bins + (1 - 2 / bins) * p * q
    return _one_count(np.array([q * q, shown]), np.array([others, fakes], dtype=np.float64), q * q, (p * p, q * (1 + p)), eps)


def projected_pair(others: int, fakes: int, bins: int, flip: float) -> DominatingPairInfo | None:
    """Return the pair of distributions of the number that `projected` uses, under its two neighbouring datasets.

    None is returned if they have too many outcomes.
    """
    p, q = 1 - flip, flip
    bits = (math.log1p(-q * q), 2 * math.log(q)), (math.log(q) + math.log1p(p), 2 * math.log1p(-q))
    return _attained((q * q, (p * p + q * q) / bins + (1 - 2 / bins) * p * q), (others, fakes), bits)


def one_bin_pairs(others: int, fakes: int, bins: int, flip: float) -> tuple[DominatingPairInfo, ...]:
    """Return (P, Q) and (Q, P) of the distributions that :func:`one_bin` compares, or no pair if they have too many outcomes."""
    bit = math.log1p(-flip), math.log(flip)
    probabilities = flip, (1 - flip) / bins + (1 - 1 / bins) * flip
    both = (_attained(probabilities, (others, fakes), bits) for bits in ((bit, bit[::-1]), (bit[::-1], bit)))
    return tuple(pair for pair in both if pair)


def _attained(probabilities: tuple[float, float], counts: tuple[int, int], bits: tuple[Bit, Bit]) -> DominatingPairInfo | None:
    """Return the pair of the distributions of S + B and S + B', or None if it has more than TABLE_SIZE outcomes.

    Neighbouring outcomes of long lists are merged, so that the divergences of the pair are lower bounds. B and B' are the two
    `bits`, and S is a sum of independent bits: `counts` bits are 1 with these `probabilities`.
    """
    one, sizes = np.array(probabilities), np.array(counts, dtype=np.float64)
    used = sizes > 0
    if not used.any() or not one[0] > 0:
        return None
    # The truncated mass of S is at most e^-200 on each side.
    atoms = atoms_of_sum(one[used], 1 - one[used], sizes[used], *bits, -200.0, most=TABLE_SIZE, merge=True)
    if not atoms:
        return None
    return DominatingPairInfo(atoms.log_delta, losses=Losses(lambda log_tail: atoms), attained=SINGLE)


def one_bin(others: int, fakes: int, bins: int, flip: float, eps: float) -> float:
    """Return a lower bound of log delta if the sum of each bin is released: only the sum of a bin without other users is used."""
    shown = (1 - flip) / bins + (1 - 1 / bins) * flip
    return _one_count(np.array([flip, shown]), np.array([others, fakes], dtype=np.float64), flip, (1 - flip, flip), eps)


def _one_count(probs: FloatArray, counts: FloatArray, rare: float, other: tuple[float, float], eps: float) -> float:
    """Return a lower bound of log max over k of Pr[S + Ber(rare) <= k] - e^eps Pr[S + Ber(common) <= k].

    S is a sum of independent bits. `other` is the pair (common, 1 - common), because 1 - common cannot be computed if common rounds
    to 1. The difference at any k is a valid lower bound of delta. The best k is within one or two of a saddle-point approximation.
    """
    trials, (common, spared) = int(counts.sum()), other
    if trials == 0:
        less = math.exp(eps) * spared
        alone = (1 - rare) - less - 4 * ULP * (1 + less)
        return math.log(alone) - 1e-14 if alone > 0 else -math.inf

    # The likelihood ratio of S + Ber(rare) to S + Ber(common) decreases with the sum, so the best k is the last one at which it is
    # at least e^eps. With the masses f of S this condition is f(k - 1)/f(k) <= r, where (1 - rare) + rare r = e^eps ((1 - common) +
    # common r).
    excess = (1 - rare) - math.exp(eps) * spared
    if not excess > 0:
        return -math.inf
    ratio = excess / (math.exp(eps) * common - rare)
    # f(k - 1)/f(k) is about r near the mean of S tilted by log r. The start adds 0.5 - k_3/(2 k_2) to this mean, with the second
    # and third cumulants k_2 and k_3 of the tilted S.
    tilted = probs * ratio / (1 - probs + probs * ratio)
    variance = tilted * (1 - tilted)
    spread, skew = float(variance @ counts), float((variance * (1 - 2 * tilted)) @ counts)
    start = math.floor(float(tilted @ counts) + 0.5 - (0.5 * skew / spread if spread > 0 else 0.0))

    @cache
    def below(k: int) -> Interval:
        value, error = _tail(probs, 1 - probs, counts, k, False)
        return Interval(math.exp(value - 2 * error), math.exp(value + 2 * error))

    @cache
    def gain(k: int) -> float:
        # The probabilities `here` (c = rare) and `there` (c = common) are
        # Pr[S + Ber(c) <= k] = (1 - c) Pr[S <= k] + c Pr[S <= k - 1].
        here = (1 - rare) * below(k).lower + rare * below(k - 1).lower
        there = spared * below(k).upper + common * below(k - 1).upper
        return here * (1 - 1e-14) - math.exp(eps) * there * (1 + 1e-14)

    place, visited = min(max(start, 0), trials), None
    while place != visited:
        visited = place
        place = max((k for k in (visited, visited - 1, visited + 1) if 0 <= k <= trials), key=gain)
    return math.log(gain(place)) if gain(place) > 0 else -math.inf


def enumerated(others: int, fakes: int, flip: float, eps: float) -> Interval:
    """Return bounds of log delta of records of two bins, by enumeration of every dataset of the `others` other users.

    A record with equal bits is 00 or 11 with probabilities that do not depend on its value. So the numbers of records 10 and 01
    determine the divergence.
    """
    p, q = 1 - flip, flip
    c = p * p + q * q
    one_hot = np.array([[2 * p * q, q * q], [p * p, 0.0]]), np.array([[2 * p * q, p * p], [q * q, 0.0]])
    even = np.array([[2 * p * q, c / 2], [c / 2, 0.0]])
    rest = np.ones((1, 1))
    for _ in range(fakes):
        rest = _with_record(rest, even)
    # In seconds[j], j of the other users are in the second bin. The loop below adds the remaining users, who are in the first bin.
    seconds = [rest]
    for _ in range(others):
        seconds.append(_with_record(seconds[-1], one_hot[1]))
    low = high = 0.0
    for ones in range(others + 1):
        law = seconds[others - ones]
        for _ in range(ones):
            law = _with_record(law, one_hot[0])
        here, there = _with_record(law, one_hot[0]), _with_record(law, one_hot[1])
        for first, second in ((here, there), (there, here)):
            difference = positive_difference(first, math.exp(eps) * second, 1e-14 * (others + fakes + 5))
            low, high = max(low, difference.lower), max(high, difference.upper)
    return Interval(math.log(low) - 1e-14 if low > 0 else -math.inf, math.log(high) + 1e-14 if high > 0 else -math.inf)


def _with_record(law: FloatArray, record: FloatArray) -> FloatArray:
    """Return the joint distribution of the numbers of records 10 and 01 after one more record is added."""
    size = law.shape[0]
    out = np.zeros((size + 1, size + 1))
    out[:size, :size] = record[0, 0] * law
    out[1:, :size] += record[1, 0] * law
    out[:size, 1:] += record[0, 1] * law
    return out
