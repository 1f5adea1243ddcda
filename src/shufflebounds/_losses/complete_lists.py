"""Two distributions that are given as lists of log masses whose sums are 1 only approximately."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from shufflebounds._base.types import ULP, FloatArray

__all__ = ["CompleteLists", "complete_lists"]


class CompleteLists(NamedTuple):
    """Log masses of the same outcomes under P and under Q, with bounds of their errors and of the mass that the lists lack.

    Attributes
    ----------
    log_p, log_q : ndarray
        Logarithms of the masses.
    log_lost : float
        Upper bound of the log of the larger one of the two missing masses, that of P and that of Q.
    mass_error, loss_error : float
        Bounds of the errors of the log masses, and of the privacy losses, their differences.
    """

    log_p: FloatArray
    log_q: FloatArray
    log_lost: float = -math.inf
    mass_error: float = 0.0
    loss_error: float = 0.0

    def with_sum_one(self, masses: list[Any]) -> list[Any]:
        """Return the masses of one of the lists, which may be intervals, with the sum 1. Masses without an error remain as given.

        A list that lacks mass gets one outcome more. Any other completion has at least the delta of this one, because all further
        outcomes may be merged into one. Other lists, whose sums differ from 1 by rounding errors, are divided by their sums.
        """
        total = sum(masses)
        if self.log_lost > -math.inf and total < 1:
            return [*masses, 1 - total]
        return [mass / total for mass in masses] if self.mass_error else masses


def complete_lists(log_p: FloatArray, log_q: FloatArray) -> CompleteLists:
    """Return two lists whose sums are at most 1, up to their errors, given lists whose sums may differ from 1.

    A list with a sum above 1 is divided by its sum; if the sum is below 1, the missing mass counts as truncated. The difference of
    the sum from 1 also counts as a relative error of all masses. So the sums of max(0, P - Q) and of max(0, Q - P), which are equal
    for exact lists, agree within the errors.
    """
    laws, rising = (log_p, log_q), (np.sort(log_p), np.sort(log_q))
    # The sum of the masses minus 1 is computed as e^x - 1 plus the other masses, where e^x is the largest mass: rounding e^x may
    # cause an error above all other masses.
    rest = [np.exp(law[:-1]) for law in rising]
    totals = [math.log1p(math.fsum([*small, math.expm1(law[-1])])) for small, law in zip(rest, rising)]
    errors = [2 * ULP * math.fsum(small) for small in rest]
    mass_error = max(abs(total) + error for total, error in zip(totals, errors))
    # If one list is a permutation of the other one, the errors of their sums are the same.
    loss_error = 0.0 if np.array_equal(*rising) else abs(totals[0] - totals[1]) + sum(errors)
    # A difference below the rounding errors of a list counts as 0.
    allowed = 1e-15 * log_p.size
    missing = [math.log(error - math.expm1(total)) if total < -allowed else -math.inf for total, error in zip(totals, errors)]
    if max(totals) > allowed:
        rounding = ULP * float(np.abs(np.stack(laws)[np.isfinite(laws)]).max())
        mass_error, loss_error = mass_error + rounding, loss_error + 2 * rounding
        log_p, log_q = (law - total if total > allowed else law for law, total in zip(laws, totals))
    return CompleteLists(log_p, log_q, max(missing), mass_error, loss_error)
