"""The trade-off curve of a sum of independent bits between the two values of one of them."""

from __future__ import annotations

import math

import numpy as np

from shufflebounds._core import _tradeoff
from shufflebounds._core._special import log_add_exp
from shufflebounds._types import FloatArray
from shufflebounds.composing import LossAtoms
from shufflebounds.profile.curves import rounded
from shufflebounds.tails._poisson_tables import WideWindowError, bits_window
from shufflebounds.tradeoff import Tradeoff

Bit = tuple[float, float]
"""Log chances of 0 and of 1: neither is formed from the other, which may be next to 1."""

MOST_ATOMS = 2**17
"""Wider windows are not listed."""

MOST_LISTED = 2**12
"""Longer lists of outcomes take longer than values of delta on a grid."""

_ROUNDING = 16 * np.finfo(float).eps


def atoms_of_sum(
    one: FloatArray, zero: FloatArray, counts: FloatArray | None, first: Bit, second: Bit, log_tail: float
) -> LossAtoms | None:
    """Return the outcomes of S + one bit against S + another, S the sum of the grouped bits; None if they are too many."""
    try:
        _, window, error = bits_window(one, zero, counts, log_tail=log_tail, most=MOST_LISTED)
    except WideWindowError:
        return None
    stay, step = np.append(window, -math.inf), np.append(-math.inf, window)
    laws = [log_add_exp(at_zero + stay, at_one + step) for at_zero, at_one in (first, second)]
    size = float(np.abs(window).max())
    trials = one.size if counts is None else counts.sum()
    lost = -math.inf if window.size == trials + 1 else math.log(2) + log_tail
    return LossAtoms.of(laws[0], laws[1], log_lost=lost, error=error + _ROUNDING * (1 + size))


def curve_of_sum(
    one: FloatArray, zero: FloatArray, counts: FloatArray | None, log_flip: float, log_keep: float, log_tail: float,
    *, upper: bool = False,
) -> Tradeoff | None:
    """Return a curve beside T(S + Ber(flip), S + Ber(keep)), keep = 1 - flip, S the sum of the grouped bits; None if too wide.

    With flip = 0 it is that of S against S + 1.

    Every mass is lowered by its error bound and what the window of S leaves out is dropped, under both laws. With P' <= P
    and Q' <= Q atom by atom a test of level alpha under P has at most that level under P', and misses at most as much of Q'
    as of Q: the curve of (P', Q') lies nowhere above that of (P, Q). For the upper side masses are raised, and what is left out
    counts as an error of both kinds.
    """
    try:
        _, window, error = bits_window(one, zero, counts, log_tail=log_tail, most=MOST_ATOMS)
    except WideWindowError:
        return None
    window = np.minimum(window + error, 0.0) if upper else window - error
    stay, step = np.append(window, -math.inf), np.append(-math.inf, window)
    laws = []
    for at_zero, at_one in ((log_keep, log_flip), (log_flip, log_keep)):
        law = log_add_exp(at_zero + stay, at_one + step)
        law += (_ROUNDING if upper else -_ROUNDING) * (1 - np.where(law > -math.inf, law, 0.0))
        laws.append(law)
    if not upper:
        return Tradeoff._of(laws[0], laws[1])
    log_alpha, _, log_beta, _ = _tradeoff.tradeoff_knots(laws[0][::-1].copy(), laws[1][::-1].copy(), -math.inf, -math.inf)
    outside = math.log(2) + log_tail
    log_alpha, log_beta = (np.logaddexp(knots, outside) + _ROUNDING for knots in (log_alpha, log_beta))
    # the tests that reject everything, and nothing
    return rounded(np.r_[-np.inf, log_alpha, 0.0], np.r_[0.0, log_beta, -np.inf], upper=True)
