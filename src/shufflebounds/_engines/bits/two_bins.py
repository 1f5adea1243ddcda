"""Hockey-stick divergences of a record that moves from one bin of a histogram to another.

Every record reports one bit for each bin, 1 in its own bin and 0 elsewhere, each bit flipped with a given probability. A move of
the target record changes its bits of two bins, from (1, 0) to (0, 1), and the sum of the bits in each bin is released.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from shufflebounds._base.caches import Kept
from shufflebounds._base.limits import CACHED_BYTES, LARGE_TABLE_SIZE, MOST_ENUMERATED, SAFE_EXPONENT, TABLE_SIZE, TINY
from shufflebounds._base.scipy_functions import toeplitz
from shufflebounds._base.types import ULP, FloatArray, Interval
from shufflebounds._core import _bits
from shufflebounds._core._binomial import binom_logpmf
from shufflebounds._engines.bits.given_bits import flipped_bits
from shufflebounds._losses.atoms import LossAtoms
from shufflebounds._losses.budget import log_odds
from shufflebounds._losses.release import SINGLE, DominatingPairInfo, Losses
from shufflebounds.tails._poisson_tables import bits_window
from shufflebounds.tails.concentration import binomial_range

LISTED_TAIL = -300.0
"""Logarithm of the mass truncated from the distribution of each enumerated sum. Raised: small masses have larger errors. Lowered:
longer lists."""

LEAST_LISTED = -260.0
"""Logarithm of the smallest listed mass. Truncation changes a listed mass by at most a relative e^-35. Lower bounds of log delta
below this value are not computed. If LEAST_LISTED is lowered, lower LISTED_TAIL, too."""

LISTED_ERROR = 4e-12
"""Bound of the relative error of a listed mass: each term is a product of at most five masses whose logarithms are above -300 and
have errors of at most 3e-14 plus 4 ulp, and at most 2**19 positive terms are added in two products of matrices."""


class BinLaw(NamedTuple):
    """The distribution of the sum of the other users' bits in a bin.

    Attributes
    ----------
    masses, ratios, below : ndarray
        The masses W_k, the ratios W_k/W_(k-1), and the sums of W_j over j < k, for k = 0, 1, ...
    error : float
        Bound of the relative error of a mass.
    """

    masses: FloatArray
    ratios: FloatArray
    below: FloatArray
    error: float


BinTables = Kept[tuple[int, int, float], BinLaw]
"""Cache of the distributions of the sum of a bin, limited in bytes. The key is (ones, zeros, log of the truncated mass)."""


Data = tuple[tuple[int, int], tuple[int, int]]
"""Numbers (ones, zeros) of the other users' bits in the first and in the second bin."""


class TwoBins:
    """Bounds, with a gap of 1e-9, of the divergence of the sums of two independent bins, by tables of the masses of each sum."""

    def __init__(self, flip: float, eps: float, log_tail: float, laws: BinTables | None = None) -> None:
        self.flip, self.eps, self.log_tail = flip, eps, max(log_tail, -SAFE_EXPONENT)
        # A cache passed by the caller is shared by several eps; eps with the same `log_tail` use the same tables.
        self.laws = Kept(math.inf) if laws is None else laws

    def _law(self, ones: int, zeros: int) -> BinLaw:
        """Return the distribution of the sum of a bin without the target."""
        def formed() -> BinLaw:
            _, logs, error = bits_window(*flipped_bits(ones, zeros, self.flip), log_tail=self.log_tail, most=TABLE_SIZE)
            masses = np.exp(logs)
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                ratios = np.append(masses, 0.0) / np.append(0.0, masses)
            return BinLaw(masses, ratios, np.append(0.0, np.cumsum(masses)), error + ULP * (2 - float(logs.min())))

        return self.laws.of((ones, zeros, self.log_tail), formed)

    def log_delta(self, first: tuple[int, int], second: tuple[int, int]) -> Interval:
        """Return bounds of the log hockey-stick divergence at `eps` if the target moves from the first bin to the second.

        `first` and `second` are the numbers (ones, zeros) of the other users' bits in each bin.
        """
        one, other, budget = self._law(*first), self._law(*second), log_odds(self.flip)
        error = one.error + other.error + ULP * (160 + other.masses.size + one.masses.size / 512)
        # Given the sum of the first bin, the best test compares the likelihood ratio of the sum of the second bin with a
        # threshold.
        low, high = _bits.two_sums(one.masses, other.masses, other.ratios, other.below, self.flip, self.eps,
                                   float(budget.less(self.eps)), float(budget.times(2).less(self.eps)), error)
        outside = 8 * math.exp(self.log_tail)
        low -= outside * math.exp(self.eps)
        return Interval(math.log(low) if low > 0 else -math.inf, min(0.0, math.log(high + outside)))


def positive_difference(p: FloatArray, q: FloatArray, error: float) -> Interval:
    """Return bounds of the sum of max(p - q, 0) over all entries, each of which has a relative error of at most `error`."""
    low, high = (np.maximum(p * (1 - change) - q * (1 + change), 0).sum() for change in (error, -error))
    return Interval(float(low), float(high))


def both_bins(others: int, fakes: int, bins: int, flip: float) -> tuple[DominatingPairInfo, ...]:
    """Return (P, Q) and (Q, P) of the sums of two bins with uniform dummy records, if all other users are in the first bin.

    The target moves from the first bin to the second one. The divergences of the returned pairs are lower bounds. No pair is
    returned if the sums have too many values.
    """
    table = FakeTable(fakes, bins, flip, LISTED_TAIL, TABLE_SIZE // 2)
    laws = table.joint((others, 0), (0, others))
    return () if laws is None else tuple(_listed(p.ravel(), q.ravel()) for p, q in (laws, laws[::-1]))


def _listed(p: FloatArray, q: FloatArray) -> DominatingPairInfo:
    """Return the pair of two lists of probabilities, changed such that no mass is below e^LEAST_LISTED.

    Masses below e^LEAST_LISTED are truncated in P and raised to e^LEAST_LISTED in Q. Both changes decrease the hockey-stick
    divergence of the pair and of its compositions.
    """
    cut = math.exp(LEAST_LISTED)
    kept = p > cut
    atoms = LossAtoms.of(np.log(p[kept]), np.log(np.maximum(q[kept], cut)), error=LISTED_ERROR)
    return DominatingPairInfo(atoms.log_delta, losses=Losses(lambda log_tail: atoms), attained=SINGLE)


class FakeTable:
    """Joint distribution of the numbers of ones that uniform dummy records report in two bins, the first and the second."""

    def __init__(self, fakes: int, bins: int, flip: float, log_tail: float = -90.0, most: int = LARGE_TABLE_SIZE) -> None:
        p, q, d = 1 - flip, flip, float(bins)
        single = (p * p + q * q) / d + (1 - 2 / d) * p * q
        both = 2 * p * q / d + (1 - 2 / d) * q * q
        one = single + both
        rows = binomial_range(fakes, one, log_tail)
        cells = (rows[1] - rows[0] + 1) ** 2
        self.flip, self.log_tail, self.fits, self.table = flip, log_tail, cells <= most, np.zeros((0, 0))
        # `lost` bounds the mass that is truncated in the table and in the sums of the users' bits.
        self.lost = 8 * math.exp(log_tail)
        self._laws = Kept[Data, tuple[FloatArray, ...]](CACHED_BYTES, lambda laws: sum(law.nbytes for law in laws))
        if not self.fits:
            return
        f = np.arange(rows[0], rows[1] + 1, dtype=np.float64)
        weight = np.exp(binom_logpmf(f, fakes, one))
        table = np.zeros((f.size, f.size))
        for i, shown in enumerate(f):
            # The ones in the second bin come from records with a one in the first bin (range a) and from records with a zero there
            # (range b).
            a, b = binomial_range(shown, both / one, log_tail), binomial_range(fakes - shown, single / (1 - one), log_tail)
            law = np.convolve(
                np.exp(binom_logpmf(np.arange(a[0], a[1] + 1), shown, both / one)),
                np.exp(binom_logpmf(np.arange(b[0], b[1] + 1), fakes - shown, single / (1 - one))),
            )
            start = int(a[0] + b[0] - rows[0])
            inside = slice(max(start, 0), min(start + law.size, f.size))
            table[i, inside] = weight[i] * law[inside.start - start : inside.stop - start]
        self.table = table

    def log_delta(self, first: tuple[int, int], second: tuple[int, int], eps: float) -> Interval | None:
        """Return bounds of the log divergence if the target moves, given the other users' bits (ones, zeros) of each bin.

        Under P the target is in the first bin. None is returned if a table would be too large.
        """
        laws = self._laws.of((first, second), lambda: self._both(first, second))
        if not laws:
            return None
        here, there, *order = laws
        # `lost` also covers products of masses that underflow: fewer than 1e9 products, each with an error of at most TINY.
        lost, more = self.lost + 1e9 * TINY, math.exp(eps)
        low, high = (self._tested(here, there, order, more), 1.0) if order else positive_difference(here, there * more, 2.1e-12)
        low -= lost * more
        # A test (`order` is given) and merged outcomes (their tables have one dimension) give a lower bound only.
        high = 0.0 if order or here.ndim == 1 else min(0.0, math.log(high + lost))
        return Interval(math.log(low) if low > 0 else -math.inf, high)

    def _both(self, first: tuple[int, int], second: tuple[int, int]) -> tuple[FloatArray, ...]:
        """Return the tables that `log_delta` uses at every eps, or () if a table would be too large.

        The tables have the joint masses of the sums of both bins, under P and under Q. For too many outcomes they have the masses
        of merged outcomes, or the arguments of `_tested`.
        """
        sides = self._real(first, second)
        if sides is None:
            return ()
        (zero, one), (zero_after, one_after) = sides
        if one.size * one_after.size > LARGE_TABLE_SIZE:
            here, there = (self._spread(law) @ self.table for law in (one, zero))
            # `_tested` computes thresholds from the likelihood ratios p/q. These thresholds are optimal if the dummy bits of the
            # two bins are independent. Any thresholds give a valid lower bound.
            p, q = (np.convolve(law, self.table.sum(axis=0)) for law in (zero_after, one_after))
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                return here, there, -p / q, *(np.append(0.0, np.cumsum(law)) for law in (zero_after, one_after))
        here, there = self._joint(sides)
        return (here, there) if here.size <= TABLE_SIZE else _bits.merged_losses(here, there, MOST_ENUMERATED)

    def joint(self, first: tuple[int, int], second: tuple[int, int]) -> tuple[FloatArray, FloatArray] | None:
        """Return the joint masses of the sums of both bins under P and under Q (see `log_delta`), or None if there are too many."""
        sides = self._real(first, second)
        if sides is None or math.prod(real[0].size + self.table.shape[0] - 1 for real in sides) > TABLE_SIZE // 2:
            return None
        return self._joint(sides)

    def _real(self, first: tuple[int, int], second: tuple[int, int]) -> list[tuple[FloatArray, FloatArray]] | None:
        """Return, for each bin, the distributions of the sum of the users' bits if the target's bit is 0 and if it is 1.

        None is returned if a table would be too large.
        """
        if not self.fits:
            return None
        sides, flip, log_tail = [], self.flip, self.log_tail
        for ones, zeros in (first, second):
            width = 2 * math.sqrt(2 * -log_tail * (ones + zeros) * flip * (1 - flip)) + 2 * -log_tail
            if min(width, ones + zeros) * self.table.shape[0] > LARGE_TABLE_SIZE:
                return None
            window = bits_window(*flipped_bits(ones, zeros, flip), log_tail=log_tail, most=TABLE_SIZE)[1]
            law = np.exp(window)
            sides.append((np.convolve(law, [1 - flip, flip]), np.convolve(law, [flip, 1 - flip])))
        return sides

    def _joint(self, sides: list[tuple[FloatArray, FloatArray]]) -> tuple[FloatArray, FloatArray]:
        """Return the joint masses of the sums of both bins: the target's bits are (1, 0) under P and (0, 1) under Q."""
        (zero, one), (zero_after, one_after) = sides
        here = self._spread(one) @ self.table @ self._spread(zero_after).T
        return here, self._spread(zero) @ self.table @ self._spread(one_after).T

    @staticmethod
    def _tested(here: FloatArray, there: FloatArray, second: list[FloatArray], more: float) -> float:
        """Return a lower bound of the divergence at e^eps = `more` by one test: for each sum of the first bin, the sum of the
        second bin is compared with a threshold.

        `here` (under P) and `there` (under Q) are the joint masses of the sum of the first bin and of the number of dummy ones in
        the second bin. `second` has minus the likelihood ratios P/Q of the sum of the second bin, and the cumulative masses, under
        P and under Q, of the sum of the users' bits in the second bin.
        """
        order, p_below, q_below = second
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            last = np.searchsorted(order, -more * there.sum(axis=1) / here.sum(axis=1))
        inside = np.clip(last[:, None] - np.arange(here.shape[1]), 0, p_below.size - 1)
        gain = (here * p_below[inside]).sum(axis=1) * (1 - 2e-12) - (there * q_below[inside]).sum(axis=1) * more * (1 + 2e-12)
        return float(np.maximum(gain, 0).sum())

    def _spread(self, law: FloatArray) -> FloatArray:
        """Return the matrix whose product with a row of probabilities is the convolution of the row with this distribution."""
        rows = self.table.shape[0]
        spread: FloatArray = toeplitz(np.append(law, np.zeros(rows - 1)), np.append(law[0], np.zeros(rows - 1)))
        return spread
