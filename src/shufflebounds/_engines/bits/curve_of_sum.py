"""The trade-off curve and the outcomes of a sum of independent bits, where the target's bit has one of two distributions.

The bits other than the target's come from other users, or are noise.
"""

from __future__ import annotations

import math

import numpy as np

from shufflebounds._base.limits import TABLE_SIZE
from shufflebounds._base.types import ULP, FloatArray, IntervalArray
from shufflebounds._core._special import log_add_exp
from shufflebounds._losses.atoms import LossAtoms
from shufflebounds._losses.curves import curve_of_masses
from shufflebounds.tails._poisson_tables import WideWindowError, bits_window
from shufflebounds.tradeoff import Tradeoff

Bit = tuple[float, float]
"""Log probabilities of 0 and of 1. The caller passes both, because computing one from the other would lose accuracy by
cancellation."""

MOST_LISTED = 2**12
"""Largest number of values of a sum that are enumerated for compositions; for more values, delta is evaluated on a grid of eps.
Raised: longer run time, because for more values a composition on a grid is faster. Lowered: less tight compositions."""


def with_bit(log_masses: FloatArray, bit: Bit) -> FloatArray:
    """Return the log masses of S + B, where B is an independent bit, from those of S on a range of integers.

    The result has one more entry.
    """
    at_zero, at_one = bit
    return np.asarray(log_add_exp(at_zero + np.append(log_masses, -math.inf), at_one + np.append(-math.inf, log_masses)))


def atoms_of_sum(
    one: FloatArray, zero: FloatArray, counts: FloatArray | None, first: Bit, second: Bit, log_tail: float,
    *, most: int = MOST_LISTED, merge: bool = False,
) -> LossAtoms | None:
    """Return the privacy-loss atoms of S + Ber(first) against S + Ber(second), or None if S has more than `most` values.

    S is a sum of independent bits, in groups with the probabilities `one` of 1 and `zero` of 0. If `merge` is true, more than
    MOST_LISTED values are merged into at most MOST_LISTED atoms of equally many neighbouring values. Merging is a post-processing,
    so the divergences are lower bounds.
    """
    try:
        start, window, error = bits_window(one, zero, counts, log_tail=log_tail, most=most)
    except WideWindowError:
        return None
    laws = [with_bit(window, bit) for bit in (first, second)]
    size = float(np.abs(window).max())
    # At an end of the window, up to e^log_tail of the mass of S + B is that of a truncated value of S. It is added under the second
    # distribution only, so that the outcome does not make a lower bound of a divergence too large.
    sizes = np.ones(one.size) if counts is None else counts
    ends = [end for end, cut in ((0, start > sizes[zero == 0].sum()), (-1, start + window.size <= sizes[one > 0].sum())) if cut]
    laws[1][ends] = np.logaddexp(laws[1][ends], log_tail)
    lost = float(np.logaddexp.reduce([math.log(2) + log_tail, *laws[0][ends]])) if ends else -math.inf
    if merge and laws[0].size > MOST_LISTED + 1:
        cell = -(-laws[0].size // MOST_LISTED)
        laws = [np.logaddexp.reduceat(law, np.arange(0, law.size, cell)) for law in laws]
        # An atom is a sum of `cell` masses. Each addition has an error of at most an ulp of the largest absolute logarithm, which
        # is that of the smallest mass.
        error += cell * ULP * (2 + max(float(np.abs(law).max()) for law in laws))
    return LossAtoms.of(laws[0], laws[1], log_lost=lost, error=error + 16 * ULP * (1 + size))


class BitTable:
    r"""Bounds of log delta of S + B against S + B' at many eps, where B is 1 with probability q < 1/2, and B' with 1 - q.

    S is a sum of independent bits. Let W(k) = Pr[S = k], C(k) = Pr[S < k] and E = e^eps. Then

    .. math:: \delta = \max_k\, (1 - q - E q)\, W(k) - (E - 1)\, C(k)

    The maximum is at the last k whose privacy loss is at least eps. The gap of log delta is about z^2 times the relative error of
    the masses W, with z = sqrt(-2 log delta).

    Parameters
    ----------
    budget : float
        log((1 - q)/q) > 0.
    window : ndarray
        The logs of consecutive masses W; the total mass on each side of this range is at most e^log_tail.
    error : float
        Bound of the error of these logs.
    log_tail : float
        Log of the truncated mass.
    """

    def __init__(self, budget: float, window: FloatArray, error: float, log_tail: float) -> None:
        self._budget, self._log_tail, self._error = budget, log_tail, error
        self._mass = np.append(window, -np.inf)
        sums = np.logaddexp.accumulate(window)
        # The log of each partial sum has a rounding error of an ulp. In the log of a later, larger sum this error is multiplied by
        # the ratio of the earlier to the later sum.
        rounding = np.logaddexp.accumulate(sums + np.log1p(np.abs(sums))) - sums
        self._below, self._below_error = np.append(-np.inf, sums), np.append(0.0, error + 4 * ULP * np.exp(rounding))
        log_keep = -math.log1p(math.exp(-budget))
        bit = log_keep, log_keep - budget
        log_p, log_q = with_bit(window, bit), with_bit(window, bit[::-1])
        loss = log_p - log_q
        self._blur = 2 * error + 8 * ULP * (8 + float(np.abs(log_p).max()) + budget)
        # The exact losses decrease in k, but the computed losses may not. A binary search is possible with monotone upper and lower
        # bounds of the losses.
        self._still_above = -np.maximum.accumulate(loss[::-1])[::-1]
        self._not_below = -np.minimum.accumulate(loss)

    def log_delta(self, eps: FloatArray) -> IntervalArray:
        """Return bounds of log delta at each eps in [0, budget); -inf and 0 if the last k with loss >= eps is uncertain."""
        place = np.searchsorted(self._still_above, -eps - self._blur) - 1
        certain = (place >= 0) & (place == np.searchsorted(self._not_below, -eps + self._blur, side="right") - 1)
        place = np.maximum(place, 0)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            gain = np.log(-np.expm1(eps - self._budget)) - math.log1p(math.exp(-self._budget)) + self._mass[place]
            less = np.log(np.expm1(eps)) - gain
            rounding = 4 * ULP * (8 + np.abs(gain) + np.abs(self._mass[place]))
            error, other = self._error + rounding, self._below_error[place] + self._error + 2 * rounding
            most, below = np.logaddexp(self._below[place], self._log_tail), self._below[place]
            low = gain + np.log1p(-np.minimum(np.exp(less + most + other), 1.0)) - error
            high = gain + np.log1p(-np.minimum(np.exp(less + below - other), 1.0)) + error
        # The last value k of the sum with a loss of at least eps may be beyond the table; the values beyond the table add at most
        # their mass to delta.
        high = np.minimum(np.logaddexp(high, self._log_tail + math.log(2)) + 8 * ULP, 0.0)
        return IntervalArray(np.where(certain, low, -np.inf), np.where(certain, high, 0.0))


def curve_of_sum(
    one: FloatArray, zero: FloatArray, counts: FloatArray | None, log_flip: float, log_keep: float, log_tail: float,
    *, upper: bool = False,
) -> Tradeoff | None:
    """Return a lower or an upper bound of the trade-off curve T(S + Ber(flip), S + Ber(keep)), keep = 1 - flip.

    S is a sum of independent bits, in groups as for `atoms_of_sum`; None is returned if S has too many values. With flip = 0 the
    curve is T(S, S + 1).

    The truncated values of S have a total mass of at most 2 e^log_tail.
    """
    try:
        _, window, error = bits_window(one, zero, counts, log_tail=log_tail, most=TABLE_SIZE // 8)
    except WideWindowError:
        return None
    # A larger sum is likelier under Q, so the outcomes are in the order of decreasing sums.
    laws = [with_bit(window, bit)[::-1].copy() for bit in ((log_keep, log_flip), (log_flip, log_keep))]
    rounding = [error + 32 * ULP * (1 - np.where(law > -math.inf, law, 0.0)) for law in laws]
    low, high = ([np.minimum(law + sign * moved, 0.0) for law, moved in zip(laws, rounding)] for sign in (-1, 1))
    whole = window.size == (one.size if counts is None else counts.sum()) + 1
    return curve_of_masses(low, high, -math.inf if whole else math.log(2) + log_tail + 8 * ULP * (1 + abs(log_tail)), upper=upper)
