"""Random allocation of a mechanism with enumerated outcomes, by the formula for shuffled randomizers.

P is the distribution of the output of a step that uses the record, Q that of a step that does not; L = dP/dQ, E = e^eps, and t is
the number of steps. Let X = L - E if the record is removed, and X = 1 - E L if it is added. Under Q, X is the privacy-amplification
random variable of a randomizer shuffled with t - 1 users who all report from Q. Let the average be the distribution of all outputs,
averaged over the step that uses the record. The hockey-stick divergence between the average and Q^t is
(1/t) E (X_1 + ... + X_t)_+, plus the mass of outcomes that are impossible under Q.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shufflebounds._base.caches import kept
from shufflebounds._base.types import ULP, FloatArray, Interval, IntervalArray, consistent
from shufflebounds._engines.excess.chernoff import chernoff
from shufflebounds._engines.excess.evaluation import Effort, excesses
from shufflebounds._engines.excess.excess_law import ExcessLaw
from shufflebounds._losses.atoms import LossAtoms

__all__ = ["ListedAllocation"]


@dataclass(frozen=True, eq=False)
class ListedAllocation:
    """Hockey-stick divergences, in both directions, between Q^t (no step uses the record) and the average (a random step does).

    Parameters
    ----------
    outcomes : LossAtoms
        Outcomes of the pair (P, Q).
    log_lost : float
        Log mass under Q of outcomes that are not enumerated.
    steps : int
        Number of steps t.
    """

    outcomes: LossAtoms
    log_lost: float
    steps: int

    def remove(self, eps: FloatArray, effort: Effort = Effort.FINE) -> IntervalArray:
        """Return bounds, at each eps >= 0, of the log divergence of all outputs with the record from those without it."""
        return self._sides(eps, 1, effort)

    def add(self, eps: FloatArray, effort: Effort = Effort.FINE) -> IntervalArray:
        """Return bounds, at each eps >= 0, of the log divergence of all outputs without the record from those with it."""
        return self._sides(eps, -1, effort)

    def add_at_most(self, eps: FloatArray) -> FloatArray:
        """Return at each eps an upper bound by Chernoff's inequality, which takes less time than `add` and is less tight."""
        law, error, log_kept = self._law(-1, 1)
        log_mass, log_a, log_b = law._distinct
        above = [(at, Interval(-math.inf, chernoff(excesses(log_a, log_b, at), log_mass, self.steps))) for at in eps.tolist()]
        return np.array([law._with_cut(bounds, law._slack, at, self.steps).upper for at, bounds in above]) + log_kept + error

    def _sides(self, eps: FloatArray, direction: int, effort: Effort) -> IntervalArray:
        sides = []
        for side in (-1, 1):
            law, error, log_kept = self._law(direction, side)
            sides.append(law.log_phi(eps, self.steps, effort, selected=side > 0)[side > 0] + log_kept + side * error)
        return consistent(IntervalArray(*(np.minimum(side, 0.0) for side in sides)), "log delta at eps={!r}", eps)

    @kept(4)
    def _law(self, direction: int, side: int) -> tuple[ExcessLaw, float, float]:
        """Return (distribution of X, bound of the relative error of delta, log of delta divided by (1/t) E(X_1 + ... + X_t)_+).

        `direction` is 1 if the record is removed and -1 if it is added, `side` is 1 for the upper bound and -1 for the lower one.
        """
        base, t = self.outcomes, self.steps
        # The upper bound assumes that outcomes that are impossible under the second distribution, or not enumerated, reveal the
        # record.
        log_cut = np.array([base.log_rest, base.log_lost] if direction > 0 else [-np.inf, self.log_lost])
        loss = np.append(base.loss, -np.inf)
        log_mass = np.append(base.log_p - base.loss, base.log_other)
        held = log_mass > -np.inf
        loss, log_mass = loss[held], np.minimum(log_mass[held], 0.0)
        none = np.zeros_like(loss)
        ratio = np.append(base.moved(side * direction), -np.inf)[held]
        log_a, log_b = (ratio, none) if direction > 0 else (none, ratio)
        # The lower bound counts only the event that the outcomes of all steps are enumerated. For the upper bound X is 0 at the
        # outcomes that are not enumerated, and their largest contribution is added (`log_cut`). Masses are divided by their total,
        # and the result is multiplied by the total to the power t. The total is below 1 for the lower bound. For the upper bound it
        # may be above 1, because `log_lost` is only a bound.
        cuts, log_rest = (log_cut, self.log_lost) if side > 0 else (log_cut[:1], -math.inf)
        log_total = math.log(math.fsum([*np.exp(log_mass), math.exp(log_rest)]))
        law = ExcessLaw(np.minimum(log_mass - log_total, 0.0), log_a, log_b, log_rest - log_total, cuts)
        # The probability of t outcomes is a product of t masses, so the relative error of a mass counts t times.
        error = t * (base.slack + base.most_blur + ULP * (8 + float(np.abs(log_mass).max())))
        return law, error, t * log_total
