r"""Two-level randomizers: a base distribution B, multiplied by e^eps0 on a set A_x of outputs that depends on the value x.

.. math:: R_x = \gamma\, B \cdot e^{\varepsilon_0 [y \in A_x]}, \qquad \gamma = \frac{1}{1 + s(e^{\varepsilon_0} - 1)}, \quad
    s = B(A_x)

So with probability gamma the message is drawn from B, independently of the value, and otherwise from B conditioned on A_x. The sets
A_x are called lifted sets. Let A_0 and A_1 be those of the target's two values. Privacy depends only on the masses under B of
:math:`A_0 \setminus A_1` (equal to that of :math:`A_1 \setminus A_0`), of the outputs in both sets, and of those in neither. These
masses are called shares.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import partial
from typing import NamedTuple

import numpy as np

from shufflebounds._base.limits import FIRST_TAIL
from shufflebounds._base.types import SLACK, FloatArray, IntervalArray
from shufflebounds._engines.datasets.cases import DatasetLaws, FiniteCases
from shufflebounds._engines.excess.excess_law import ExcessLaw, PairLaws
from shufflebounds._losses.atoms import InputRows, LossAtoms
from shufflebounds._losses.release import SINGLE, DominatingPairInfo, Losses
from shufflebounds.mechanisms._base import LocalRandomizer

__all__ = ["Others", "Shares", "TwoLevel"]


class Shares(NamedTuple):
    """Masses under the base distribution B for two lifted sets: in one of them only (the same for both), in both, in neither."""

    one: float
    both: float
    neither: float


class Others(NamedTuple):
    """A dataset in which all other users have the same value.

    `text` describes the dataset. Let A_0 and A_1 be the lifted sets of the target's two values, and A_x that of the other users'
    value. There are four classes of outputs: in A_0 only, in A_1 only, in both, in neither. For each class, `inside` has the mass
    under B of its part in A_x, and `outside` that of the rest.
    """

    text: str
    inside: tuple[float, float, float, float]
    outside: tuple[float, float, float, float]


def _log_delta(local_eps: float, error: float, top: float, eps: FloatArray) -> IntervalArray:
    """Return bounds of log delta, given the largest loss local_eps, its error, and the log mass `top` at this loss."""
    # The margin 4 SLACK (1 + |value|) covers the rounding errors of `top`: of the shares, of e^-local_eps and of the logarithms.
    sides = []
    for sign in (-1, 1):
        gap = local_eps + sign * error - eps
        value = top + np.log(-np.expm1(-np.where(gap > 0, gap, 1.0)))
        sides.append(np.where(gap > 0, np.minimum(value + sign * 4 * SLACK * (1 + np.abs(value)), 0.0), -np.inf))
    return IntervalArray(*sides)


def _atoms(local_eps: float, error: float, log_masses: tuple[float, float, float], log_tail: float) -> LossAtoms:
    log_p, loss = np.array(log_masses), np.array([-local_eps, 0.0, local_eps])
    seen = log_p > -np.inf
    return LossAtoms(log_p[seen], loss[seen], -math.inf, -math.inf, -math.inf, 4 * SLACK * (1 + local_eps), 2 * error)


class TwoLevel(LocalRandomizer):
    """A local randomizer whose output y has mass gamma B(y), for a base distribution B, times e^local_eps in the lifted set of the
    value.

    B is a distribution that does not depend on the value.
    """

    local_eps: float

    @abstractmethod
    def _shares(self) -> Shares:
        """Return the shares (see `Shares`) of two values x, y whose sets A_x and A_y overlap the least: the worst pair."""

    def _log_common(self) -> float:
        """Return the log of the share of the outputs in two lifted sets that are in the lifted sets of all values."""
        return -math.inf

    def _both(self) -> tuple[float, float]:
        """Return the masses, under B, of the outputs in all lifted sets, and of the other outputs in two given lifted sets."""
        both, log_common = self._shares().both, self._log_common()
        return both * math.exp(log_common), both * -math.expm1(log_common)

    def _others(self) -> tuple[Others, ...]:
        """Return datasets for lower bounds, other than those in which all other users have one of the target's two values."""
        return ()

    def _log_base(self) -> float:
        """Return log gamma, the log probability of a message that does not depend on the value."""
        return -self.local_eps + self._log_lifted()

    def _log_lifted(self) -> float:
        """Return log(gamma e^local_eps), computed without the cancellation of log gamma + local_eps for large budgets."""
        one, both, neither = self._shares()
        return -math.log((one + both) + (one + neither) * math.exp(-self.local_eps))

    def _log_masses(self) -> tuple[float, float, float]:
        """Return the log masses of the privacy losses -eps0, 0 and eps0."""
        # The shares are divided by `one`, because log(one) and the log of gamma e^local_eps may be large and cancel.
        one, both, neither = self._shares()
        fall = math.exp(-self.local_eps)
        same = both / one + neither / one * fall
        top = -math.log1p(same + fall)
        middle = math.log(same) + top if same else -math.inf
        return top - self.local_eps, middle, top

    def _rows_of_labels(self, labels: int) -> InputRows:
        """Return the probabilities of the reported labels; the user's own label is e^local_eps times as likely as any other."""
        # At most three labels are inputs; all other labels are merged into one output.
        inputs, eps = min(labels, 3), self.local_eps
        lifted = np.eye(inputs, inputs + (labels > 3))
        log_mass = np.zeros(lifted.shape[1])
        log_mass[inputs:] = math.log(max(labels - 3, 1))
        low = math.log(self._shares().one) + self._log_lifted() - eps
        return InputRows(low + log_mass + eps * lifted, eps * (lifted[None, :, :] - lifted[:, None, :]), 4 * SLACK * (1 + eps))

    def _loss_error(self) -> float:
        """Return a bound of the error of `local_eps`; it is 0 if `local_eps` is a parameter of the class."""
        return 0.0

    def describe(self) -> DominatingPairInfo:
        local_eps, error, log_masses = self.local_eps, self._loss_error(), self._log_masses()
        # The privacy losses are -eps0, 0 and eps0. If no output has loss 0, the spacing of the lattice is 2 eps0.
        spacing = local_eps if log_masses[1] > -math.inf else 2 * local_eps
        losses = Losses(partial(_atoms, local_eps, error, log_masses), (local_eps, spacing), on_lattice=True)
        return DominatingPairInfo(partial(_log_delta, local_eps, error, log_masses[2]), local_eps + error, losses=losses,
                                  attained=SINGLE)

    def excess_laws(self, cells: int = 800, log_cut: float = FIRST_TAIL) -> tuple[PairLaws, ...]:
        # The worst pair of values is one whose lifted sets overlap the least.
        datasets = (*self._targets(), *self._others())
        lower = tuple((other.text, self._law(other.inside, other.outside, -self._loss_error())) for other in datasets)
        return (PairLaws("two different values", self._blanket(), lower, symmetric=True),)

    def _blanket(self) -> ExcessLaw:
        """Return the distribution of X (`ExcessLaw`) for the privacy blanket: gamma B, times e^eps0 in the common outputs."""
        (one, _, neither), (common, two) = self._shares(), self._both()
        return self._law((0.0, 0.0, common, 0.0), (one, one, two, neither), self._loss_error(), self._log_rest())

    def dataset_laws(self) -> DatasetLaws | None:
        kinds = self._kinds()
        if kinds is None:
            return None
        (one, _, neither), (common, two) = self._shares(), self._both()
        size, loss_error = one + two, self._loss_error()
        lifted = math.exp(self._log_lifted())
        with np.errstate(divide="ignore"):
            log_mass = np.log([size, one + neither, common]) + self._log_base() + np.array([0.0, 0.0, self.local_eps])
        seen = log_mass > -np.inf
        ratios = np.zeros(int(seen.sum())), np.array([self.local_eps - loss_error, 0.0, 0.0])[seen]
        rest = math.log(size + one + neither) if common else 0.0
        log_minorant = float(np.logaddexp(self._log_base() + rest, log_mass[2]))
        # `distance` is the largest squared distance of R_x from a centre, in L^2(1/m). On the outputs in all lifted sets, of mass c
        # under B, the centre equals all R_x. Elsewhere the centre is B, and m = gamma B. The squared distance is gamma
        # (e^eps0 - 1)^2 times the sum of (s - c) (1 - s)^2 and (1 - s) s^2, with s = B(A_x).
        spread = (one + neither) * (size * (one + neither) + (size + common) ** 2)
        distance = lifted * math.expm1(self.local_eps) * -math.expm1(-self.local_eps) * spread
        # The error term of the bound grows with `distance`, which overflows for large budgets and small lifted sets.
        if distance == math.inf:
            return None
        # An output is more likely under one value than under another if it is in the lifted set of the first one only.
        return DatasetLaws(
            FiniteCases.of([self._blanket()]),
            FiniteCases.of([self._law(kind.inside, kind.outside, loss_error) for kind in kinds]),
            FiniteCases.of([ExcessLaw(log_mass[seen], *ratios, self._log_rest())]), log_minorant,
            distance * (1 + 8 * SLACK + 4 * loss_error), self._pure_epsilon(),
            lambda t: np.where(np.log(t) < self._pure_epsilon(), lifted * one * (1 + 4 * SLACK), 0.0),
        )

    def _kinds(self) -> tuple[Others, ...] | None:
        """Return the inputs of another user that the bound over all datasets uses, or None if they are not known.

        For any input of another user, the distribution of X (`ExcessLaw`) is a mixture of those for the returned inputs.
        """
        return None

    def _targets(self) -> tuple[Others, Others]:
        """Return the datasets in which all other users have the first or the second of the target's two values."""
        one, both, neither = self._shares()
        return (
            Others("every other user has the target's first value", (one, 0.0, both, 0.0), (0.0, one, 0.0, neither)),
            Others("every other user has the target's second value", (0.0, one, both, 0.0), (one, 0.0, 0.0, neither)),
        )

    def _log_rest(self) -> float:
        """Return an upper bound of the log of 1 minus the mass of the privacy blanket."""
        value = math.log(self._shares().one + self._both()[1]) + self._log_lifted() + math.log(-math.expm1(-self.local_eps))
        return min(0.0, value + self._loss_error() + 4 * SLACK * (1 + abs(value)))

    def _law(self, inside: tuple[float, ...], outside: tuple[float, ...], loss_error: float,
             log_rest: float = -math.inf) -> ExcessLaw:
        """Return the distribution of X (`ExcessLaw`) for a measure m that is e^eps0 gamma B on one set of outputs, else gamma B.

        For each of the four classes of outputs (`Others`), `inside` is the mass under B of its part in this set, and `outside` that
        of the rest. `loss_error` is added to the privacy loss at outputs in only one of A_0 and A_1, which rounds X up (or down, if
        negative). `log_rest` is the log of 1 minus the mass of m (-inf if m is the distribution of a user's message).
        """
        eps0 = self.local_eps
        # `log_a` and `log_b` are the logs of R_0 and R_1 relative to gamma B.
        log_a, log_b = np.array([eps0 + loss_error, 0.0, eps0, 0.0] * 2), np.array([0.0, eps0 - loss_error, eps0, 0.0] * 2)
        lift = np.repeat([eps0, 0.0], 4)
        with np.errstate(divide="ignore"):
            log_mass = np.log(np.array([*inside, *outside])) + self._log_lifted() + (lift - eps0)
        seen = log_mass > -np.inf
        return ExcessLaw(log_mass[seen], (log_a - lift)[seen], (log_b - lift)[seen], log_rest)
