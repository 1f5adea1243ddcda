r"""A lower bound for shuffled records of flipped bits among uniform dummies, by tests of a sum of one score for each record.

All other users are in one bin: a third one, or the target's first bin if there are only two. The score of a record y is
:math:`(R_0(y) - E R_1(y))/\bar R(y)` with E = e^eps, rounded to a multiple of a step. Here R_0 and R_1 are the distributions of the
target's record for its two bins, and :math:`\bar R` is the average distribution of the other records. The score depends on the
record's bits in the target's two bins and in the bin of the other users, and on the number T of ones among its further bits. Any
score gives a valid test.
"""

from __future__ import annotations

import math

import numpy as np

from shufflebounds._base.limits import FIRST_TAIL, LARGEST_EXPONENT, MANY, TABLE_SIZE
from shufflebounds._base.types import ULP, FloatArray
from shufflebounds._core._binomial import binom_logpmf
from shufflebounds._losses.atoms import LossAtoms
from shufflebounds._losses.budget import log_odds
from shufflebounds._losses.sum_test import RESOLUTION, SumTest, Terms, pair_of_tests
from shufflebounds.tails.concentration import binomial_range

__all__ = ["log_of_ones", "scored_pair"]

_LARGEST_STEP = 1.5
"""Largest grid step of a score, in units of its standard deviation. If the number of records requires a larger step, no tests are
constructed."""

_WIDTH = 40.0
"""Length of the Fourier transform (grid step times number of points), in standard deviations of the sum of scores."""

_SHARES = 0.0, 1 / 8, 1 / 3
"""Values of ln E for which a score is defined, as fractions of the pure budget. For more than MANY records only 0 is used."""


def scored_pair(others: int, fakes: int, bins: int, flip: float) -> LossAtoms | None:
    """Return a pair that gives lower bounds, from threshold tests of the sum of the records' scores. The result is None if there
    are too many records.
    """
    records, budget = others + fakes, log_odds(flip).times(2).above
    step = max(RESOLUTION, _WIDTH * math.sqrt(records) / TABLE_SIZE)
    if step > _LARGEST_STEP:
        return None
    laws = _laws(bins, flip)
    shares = _SHARES if records <= MANY else _SHARES[:1]
    tests = [_test(laws, others, fakes, math.exp(min(share * budget, LARGEST_EXPONENT / 8)), step) for share in shares]
    return pair_of_tests(tests, FIRST_TAIL, reverse=False)


def _laws(bins: int, flip: float) -> tuple[FloatArray, ...]:
    """Return the log probabilities of the classes of records under four distributions: the target with its first value, the target
    with its second value, a user whose value is the other users' bin, and a dummy report.
    """
    q, p, log_ratio = flip, 1 - flip, log_odds(flip).above
    left = max(bins - 3, 0)
    # If there are more than MANY further bits, the number T of ones among them is omitted, because it distinguishes dummies from
    # records too little.
    few = left <= MANY
    first, last = binomial_range(left, q, 2 * FIRST_TAIL) if few else (0, 0)
    more = np.arange(first, last + 1.0)
    bits = np.array([0.0, 1.0])
    a, b, c, t = (x.ravel() for x in np.meshgrid(bits, bits, bits if bins > 2 else bits[:1], more, indexing="ij"))
    ones, size = a + b + c + t, min(bins, 3)
    log_none = log_of_ones(a + b + c, size, q) + (binom_logpmf(t, left, q) if few else 0.0)
    of_users = [log_none + (2 * x - 1) * log_ratio for x in (a, b, c if bins > 2 else a)]
    # A dummy is in each of the d bins with probability 1/d. For the omitted bins, the mean likelihood ratio 1 is used.
    seen = bins if few else size
    likelihood = (ones * (p / q) + (seen - ones) * (q / p) + (bins - seen)) / bins
    return (*of_users, log_none + np.log(likelihood))


def log_of_ones(ones: FloatArray, size: int, flip: float) -> FloatArray:
    """Return the log probability of one sequence of `size` bits with `ones` ones; each bit is 1 with probability `flip`."""
    return np.asarray(ones * math.log(flip) + (size - ones) * math.log1p(-flip))


def _test(laws: tuple[FloatArray, ...], others: int, fakes: int, factor: float, step: float) -> SumTest:
    first, second, user, dummy = (np.exp(law) for law in laws)
    average = (others * user + fakes * dummy) / (others + fakes)
    score = (first - factor * second) / average
    mean = float(average @ score)
    unit = step * math.sqrt(float(average @ (score - mean) ** 2))
    place, index = np.unique(np.round(score / unit), return_inverse=True)

    def terms(log_mass: FloatArray, times: int) -> Terms:
        total = np.full(place.size, -np.inf)
        np.logaddexp.at(total, index, log_mass)
        error = ULP * (64 + 8 * log_mass.size + 8 * float(np.abs(log_mass).max()))
        return Terms(place, total - error, total + error, times)

    rest = [terms(law, times) for law, times in ((laws[2], others), (laws[3], fakes)) if times]
    return SumTest([terms(laws[0], 1), *rest], [terms(laws[1], 1), *rest], -math.inf, -math.inf)
