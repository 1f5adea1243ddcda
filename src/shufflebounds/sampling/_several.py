r"""Random allocation to k of t steps: a lower bound by tests, and an upper bound if the record is removed.

P and Q are the distributions of the output of a step with and without the record, and L = dP/dQ is the likelihood ratio. The lower
bound is that of the tests :math:`\{S \ge c\}` (`_losses.sum_test`) for a sum S close to :math:`\sum_i \log(1 + \lambda (L_i -
1))`, :math:`\lambda \in (0, 1)`. For the upper bound, the likelihood ratio of all steps is at most e^U for a sum U over the steps
if :math:`v = \sum_i p_i (1 - p_i)`, with :math:`p_i = z L_i/(1 + z L_i)`, is in an interval; Chernoff's inequality bounds the rest.
The proofs are in docs/theorems/random-allocation.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from shufflebounds._base.caches import cached_property, kept
from shufflebounds._base.limits import CACHED_TABLES, COMPARED, COMPUTED_ERROR, FIRST_TAIL, MANY, TABLE_SIZE, TINY
from shufflebounds._base.quadrature import log_sum
from shufflebounds._base.scipy_functions import ive
from shufflebounds._base.types import ULP, FloatArray, Interval
from shufflebounds._engines.allocation.listed import ListedAllocation
from shufflebounds._engines.allocation.stop_loss import CUT, Allocation
from shufflebounds._engines.compose.grid_product import Product
from shufflebounds._losses.atoms import LossAtoms, TooLongError, union_probability
from shufflebounds._losses.interpolation import connect_the_dots
from shufflebounds._losses.release import DominatingPairInfo
from shufflebounds._losses.sum_test import RESOLUTION, SumTest, Terms, pair_of_tests
from shufflebounds.profile.profile import OutcomePair

__all__ = ["AdditiveBound", "PairOfTests", "StepTests"]

RATES = 0.4, 0.65, 0.85
"""The parameters lambda of the test statistics, in units of k/t. Smaller values give tighter bounds at smaller delta and for fewer
chosen steps. More values: the lower bound of eps rises by up to 0.1 %, and the run time grows in proportion."""


class _Outcomes(NamedTuple):
    """The outcomes of one step: their privacy losses, and bounds of the logarithms of their probabilities under P and Q.

    `log_rest` is the log probability under P of outcomes that Q cannot produce; `lost` has the log probabilities, under P and under
    Q, of outcomes that are not enumerated.
    """

    loss: FloatArray
    p: tuple[FloatArray, FloatArray]
    q: tuple[FloatArray, FloatArray]
    log_rest: float
    lost: tuple[float, float]


def _outcomes(engine: Allocation | ListedAllocation) -> _Outcomes:
    if isinstance(engine, Allocation):
        q, p, error = engine.law.cells(np.concatenate([[-1e3], np.linspace(*engine.loss_range, 4 * MANY + 1), [1e3]]))
        held = q > 0
        with np.errstate(divide="ignore"):
            # The test accepts outputs whose probability under Q underflows.
            log_p, log_q, log_lost = np.log(p[held]), np.log(q[held]), float(np.log(p[~held].sum()))
            sides = np.log1p(-error[held]), np.log1p(error[held])
        return _Outcomes(log_p - log_q, (log_p + sides[0], log_p + sides[1]), (log_q + sides[0], log_q + sides[1]), -math.inf,
                         (log_lost, -math.inf))
    base = engine.outcomes
    loss = np.append(-np.inf, base.loss)
    log_p, log_q = np.append(-np.inf, base.log_p), np.append(base.log_other, base.log_p - base.loss)
    slack = base.slack + base.most_blur + ULP * (8 + float(np.abs(base.log_p).max(initial=0.0)))
    return _Outcomes(loss, (log_p - slack, log_p + slack), (log_q - slack, log_q + slack), base.log_rest,
                     (base.log_lost, engine.log_lost))


class StepTests:
    """Tests between Q^t and the average, over all sets of k of t steps, of products with P in the steps of the set and Q elsewhere.

    Parameters
    ----------
    engine : Allocation or ListedAllocation
        The distribution of one step.
    steps, chosen : int
        Numbers t and k of steps.
    """

    def __init__(self, engine: Allocation | ListedAllocation, steps: int, chosen: int) -> None:
        self._one, self.steps, self.chosen = _outcomes(engine), steps, chosen

    @cached_property
    def tests(self) -> list[SumTest]:
        """Tests of both distributions by sums over the steps."""
        rates = [rate * self.chosen / self.steps for rate in RATES]
        return [self._test(rate, fine) for fine in (True, False) for rate in rates if fine or rate < rates[-1]]

    def _test(self, rate: float, fine: bool) -> SumTest:
        one, t, k = self._one, self.steps, self.chosen
        values = np.logaddexp(math.log1p(-rate), np.log(rate) + one.loss)
        mass = np.exp(one.q[0])
        deviation = math.sqrt(float(mass @ (values - mass @ values / mass.sum()) ** 2)) or 1.0
        # A single term s(L_i) above the normal quantile of e^(2 FIRST_TAIL) makes the test S >= c reject, so larger terms are
        # reduced to this quantile. On the coarser grid (`fine` is False) they are not reduced, because the result may depend on a
        # few large terms. A transform has about six times as many points as the largest term has grid steps.
        most = math.sqrt(-4 * FIRST_TAIL * t) * deviation
        step = max(RESOLUTION * deviation, 6 * most / TABLE_SIZE)
        if not fine:
            most = float(values.max())
            step = max(step, most / (8 * MANY))
        place, index = np.unique(np.round(np.minimum(values, most) / step), return_inverse=True)

        def terms(masses: tuple[FloatArray, FloatArray], times: int) -> Terms:
            sides = np.full((2, place.size), -np.inf)
            for side, log_mass in zip(sides, masses):
                np.logaddexp.at(side, index, log_mass)
            return Terms(place, sides[0], sides[1] + 8 * ULP * one.loss.size, times)

        first = [terms(one.p, k), terms(one.q, t - k)] if k < t else [terms(one.p, k)]
        lost = union_probability([(one.lost[0], k), (one.lost[1], t - k)])
        return SumTest(first, [terms(one.q, t)], union_probability([(one.log_rest, k)]), lost)


class AdditiveBound:
    """An upper bound of the divergence of the average over sets of k of t steps from Q^t, by a sum over the steps.

    Parameters
    ----------
    known : DominatingPairInfo
        The pair (P, Q) of one step.
    steps, chosen : int
        Numbers t and k of steps.
    """

    def __init__(self, info: DominatingPairInfo, steps: int, chosen: int) -> None:
        self._known, self.steps, self.chosen = info, steps, chosen
        self._log_choices = math.lgamma(steps + 1) - math.lgamma(chosen + 1) - math.lgamma(steps - chosen + 1)
        # Bound of the rounding error of a sum of logarithms over all steps.
        self._error = COMPUTED_ERROR + 16 * ULP * (math.lgamma(steps + 1) + steps)

    @cached_property
    def _atoms(self) -> LossAtoms:
        """Outcomes of a pair that dominates that of one step."""
        info = self._known
        if info.atoms is not None:
            return info.atoms
        scale = info.scale(CUT)
        return connect_the_dots(np.linspace(scale.low, scale.high, 4 * MANY + 1), info.hockey_stick, info.back.hockey_stick)

    @cached_property
    def _step(self) -> tuple[FloatArray, FloatArray]:
        """The losses of one step, rounded up, and their log masses under Q, with the outcomes that P cannot produce."""
        atoms = self._atoms
        return np.append(-np.inf, atoms.moved(1)), np.append(atoms.log_other, atoms.log_p - atoms.moved(1))

    @cached_property
    def _rates(self) -> tuple[FloatArray, FloatArray]:
        """Increasing eps, and for each eps nearly the best value of log z.

        For the outcomes on which delta at eps depends, the p_i = z L_i/(1 + z L_i) should sum to about k. These outcomes have
        masses of about q (1 + z L)^r, where q is the mass under Q and r is such that the mean of U is eps.
        """
        loss, log_q = self._step
        # The odds z of a Bernoulli variable are near k/(t - k).
        log_z = math.log(self.chosen / (self.steps - self.chosen + 0.5)) + np.linspace(0.0, -1.6, COMPARED)
        eps = np.empty(COMPARED)
        power = 1.0
        for i, at in enumerate(log_z.tolist()):
            rise = np.logaddexp(0.0, at + loss)
            prob = np.exp(at + loss - rise)
            for _ in range(20):
                weight = np.exp(log_q + power * rise - (log_q + power * rise).max())
                weight /= weight.sum()
                mean, mean_rise = float(weight @ prob), float(weight @ rise)
                slope = float(weight @ (prob * rise)) - mean * mean_rise
                power += min(max((self.chosen / self.steps - mean) / max(slope, TINY), -0.5), 0.5)
            eps[i] = self.steps * mean_rise - self.chosen * at - self._log_choices - 0.5 * math.log(2 * math.pi * self.chosen)
        return np.maximum.accumulate(eps), log_z

    def parameters(self, eps: float, log_known: float) -> tuple[float, float]:
        """Return log z and the log of the mass of Lambda that may be neglected; `log_known` is another bound of log delta."""
        # Both are rounded, so that neighbouring eps share a transform.
        unit = 0.05 / math.sqrt(self.chosen)
        return unit * round(float(np.interp(eps, *self._rates)) / unit), math.floor(log_known) - 6.0

    def interval(self, log_z: float, log_outside: float) -> Interval:
        """Return an interval of v. On either side of it, the mean of Lambda under Q^t is at most e^log_outside."""
        loss, log_q = self._step
        rise = np.logaddexp(0.0, log_z + loss)
        part = np.exp(log_z + loss - 2 * rise)
        base = -self.chosen * log_z - self._log_choices
        # By Chernoff's inequality, the part of the mean of prod(1 + z L) z^-k/binom(t, k) with v <= first is at most e^log_outside,
        # and the part with v >= last is also at most e^log_outside.
        exponents = np.geomspace(0.05, 50.0, COMPARED)
        moments = [np.logaddexp.reduce(log_q + rise + way * exponents[:, None] * part, axis=1) for way in (-1, 1)]
        below, above = (base - log_outside + self.steps * (moment + COMPUTED_ERROR) for moment in moments)
        first, last = max(0.0, float((-below / exponents).max())), float((above / exponents).min())
        # The bound of Lambda also has the factor e^-v I_0(v), which decreases in v, and whose logarithm has a slope of at least -1.
        # With this factor a smaller interval of v is enough.
        first = max(first, float((-(below + math.log(ive(0, first))) / exponents)[exponents >= 1].max())) * (1 - COMPUTED_ERROR)
        last = max(0.8 * last, float(((above + math.log(ive(0, 0.8 * last))) / exponents).min())) * (1 + COMPUTED_ERROR)
        return Interval(first, last)

    @kept(CACHED_TABLES)
    def _sum(self, log_z: float, log_outside: float) -> tuple[Product, float]:
        """Return the distribution of the sum U with the density e^U relative to Q^t, and the log of its total mass.

        The part of the mean of Lambda, under Q^t, with v outside of the interval is at most 2 e^log_outside.
        """
        (loss, log_q), (first, last) = self._step, self.interval(log_z, log_outside)
        t, atoms = self.steps, self._atoms
        rise = np.logaddexp(0.0, log_z + loss)
        part = np.exp(log_z + loss - 2 * rise)
        base = -self.chosen * log_z - self._log_choices
        heights = np.log(ive(0, [first, last]))
        fall = float(heights[0] - heights[1]) / (last - first)
        rise = rise - fall * part
        # Any constant would do in place of `log_total`: it is subtracted from U and from log Lambda alike.
        log_total = log_sum(log_q + rise)
        order = np.argsort(rise)
        rise = rise[order] - log_total
        # The terms of U round by an ulp of the largest number that is added. As the losses are rounded up and the masses under P
        # are kept, a mass under Q may be too small by twice the error of the loss.
        added = (np.where(np.isinf(loss), 0.0, np.abs(loss)) + np.abs(log_z) + abs(log_total))[order]
        log_q = log_q[order]
        size = float((np.abs(log_q) + added)[log_q > -np.inf].max())
        slack = atoms.slack + 2 * atoms.most_blur + ULP * (32 + 4 * size)
        releases = LossAtoms(log_q + rise, rise, -math.inf, -math.inf, -math.inf, slack, ULP * (32 + 4 * added))
        mass = np.exp(releases.log_p)
        deviation = math.sqrt(t * float(mass @ (rise - mass @ rise) ** 2)) or 1.0
        # The grid step is half of that of the tests.
        step = deviation * max(RESOLUTION / (2 * math.sqrt(t)), 40 / TABLE_SIZE)
        log_mass = base + float(heights[0]) + fall * first + t * log_total
        error = self._error + ULP * t * abs(log_total)
        return Product([releases.law(0.0, step, upper=True)], [t], upper=True), log_mass + error

    def log_delta(self, eps: float, log_known: float) -> float:
        """Return the bound of log delta at eps; `log_known`, another upper bound, determines how much mass is neglected."""
        log_z, log_outside = self.parameters(eps, log_known)
        infinite = union_probability([(self._atoms.log_rest, self.chosen), (self._atoms.log_lost, self.steps)])
        # The sum has no grid if its terms are far larger than their differences, as for noise of a scale above 1e6.
        with suppress(TooLongError):
            total, log_mass = self._sum(log_z, log_outside)
            if eps > log_mass:
                parts = [log_mass + total.log_delta(eps - log_mass)[0], log_outside + math.log(2), infinite]
                return float(np.logaddexp.reduce(parts)) + self._error
        return 0.0


@dataclass(frozen=True, eq=False)
class PairOfTests(OutcomePair):
    """The pair of distributions that the tests of :class:`StepTests` attain, for a removed or an added record."""

    several: StepTests
    removed: bool

    theorem: ClassVar[str] = "exact for the tests of sums over the steps: a lower bound of random allocation to several steps"

    def reverse(self) -> PairOfTests:
        return PairOfTests(self.several, not self.removed)

    @cached_property
    def _atoms(self) -> LossAtoms:
        return pair_of_tests(self.several.tests, FIRST_TAIL, reverse=not self.removed)
