r"""A lower bound of the divergence of (P, Q): the divergence of a pair defined by all tests :math:`\{S \ge c\}` of a sum S.

Let S be a whole number that is computed from the outcome, such as a sum of one term for each step. Under P and under Q, S is a sum
of independent terms with known distributions. The test that rejects for S >= c has the level Q(S >= c) and the power P(S >= c). By
the lemma of Neyman and Pearson, this power is at most that of the best test of P against Q at this level. Take upper bounds of the
levels and lower bounds of the powers. The least concave function above the resulting points is the curve of the best tests of
another pair, which is dominated by (P, Q).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from shufflebounds._base.caches import cached_property, kept
from shufflebounds._base.limits import COMPARED, COMPUTED_ERROR, FIRST_TAIL, MANY, NEGLIGIBLE
from shufflebounds._base.types import ULP, FloatArray
from shufflebounds._losses.atoms import LossAtoms, TooLongError
from shufflebounds._losses.release import SINGLE, DominatingPairInfo, Losses
from shufflebounds._losses.tilted_sum import Summand, TiltedSum
from shufflebounds.tradeoff.piecewise import prune
from shufflebounds.tradeoff.representation import log1mexp

__all__ = ["RESOLUTION", "SumTest", "Terms", "attained_by", "certain", "moved", "pair_of_tests"]

RESOLUTION = 0.08
"""Spacing of the values of a term of the sum, in standard deviations of the term: rounding a term to these values adds a relative
RESOLUTION^2/12 = 5e-4 to its variance. Raised: less tight bounds. Lowered: longer transforms."""


class Terms(NamedTuple):
    """Independent terms of the sum with the same distribution.

    `place` has the increasing whole values, `lower` and `upper` bound the logarithms of their probabilities, and `times` is the
    number of terms.
    """

    place: FloatArray
    lower: FloatArray
    upper: FloatArray
    times: int


class SumTest:
    """Tests of two distributions P and Q by a sum S of independent whole numbers.

    Parameters
    ----------
    first, second : sequence of Terms
        The terms of S under P and under Q. If the probabilities of the terms sum to less than 1, the test accepts with the
        remaining probability.
    log_rest : float
        Lower bound of the log probability under P of outcomes that Q cannot produce; the test rejects them.
    log_lost : float
        Upper bound of the log probability under P of outcomes that are neither in the terms of S nor counted by `log_rest`.
    """

    def __init__(self, first: Sequence[Terms], second: Sequence[Terms], log_rest: float, log_lost: float) -> None:
        self._terms, self.log_rest, self._log_lost = (first, second), log_rest, log_lost

    def _sum(self, which: int, sign: int, *, upper: bool) -> TiltedSum:
        """Return the sum S (`sign` = 1) or -S (`sign` = -1) under P (`which` = 0) or under Q (`which` = 1)."""
        summands, origin = [], 0.0
        for place, lower, above, times in self._terms[which]:
            log_mass = (above if upper else lower)[::sign]
            held = np.flatnonzero(log_mass > -np.inf)
            at = sign * place[::sign][held]
            heaviest = float(at[np.argmax(log_mass[held])]) if held.size else 0.0
            summands.append(Summand(log_mass[held], at - heaviest, times))
            origin += times * heaviest
        slack = 16 * ULP * sum(terms.times for terms in self._terms[which])
        # A transform serves levels within `near` standard deviations of its tilted mean. Rounding errors grow as e^(near^2/2), to
        # about 1e-12 for near = 4. The number of transforms falls as 1/near.
        return TiltedSum(summands, origin, 1.0, discount=2 * NEGLIGIBLE, near=4.0, widest=3, upper=upper, slack=slack)

    @cached_property
    def _sums(self) -> tuple[TiltedSum, TiltedSum, TiltedSum, TiltedSum]:
        """S under P and under Q, for probabilities to reject; then -S under P and under Q, for probabilities to accept."""
        return (self._sum(0, 1, upper=False), self._sum(1, 1, upper=True), self._sum(0, -1, upper=True),
                self._sum(1, -1, upper=False))

    @kept(4)
    def points(self, log_tail: float) -> FloatArray:
        """Return bounds of level and power of the tests {S >= c}, for thresholds c with tails of at least about e^log_tail.

        The rows are the logarithms of alpha (the level), 1 - alpha, beta (the probability under P to accept), and 1 - beta.
        """
        power, level, accepted, spared = self._sums
        if not all(one.finite for one in self._sums):
            # P and Q have no common outcomes.
            return np.empty((4, 0))
        # The thresholds decrease, so that levels and powers increase.
        above, below = ([_thresholds(one, log_tail) for one in pair] for pair in ((power, level), (accepted, spared)))
        c = np.unique(np.concatenate([*above, *(1 - part for part in below)]))[::-1]
        # Of a probability and its complement, the smaller one is computed from S, and the larger one as 1 minus the smaller one.
        alpha, beta = np.empty((2, c.size)), np.empty((2, c.size))
        large, strong = c > level.moments(0.0)[1], c > power.moments(0.0)[1]
        alpha[:, large] = _both(_tails(level, c[large]) + 2 * COMPUTED_ERROR)
        alpha[::-1, ~large] = _both(_tails(spared, 1 - c[~large]) - 2 * COMPUTED_ERROR)
        beta[::-1, strong] = _both(np.logaddexp(_tails(power, c[strong]) - 2 * COMPUTED_ERROR, self.log_rest))
        beta[:, ~strong] = _both(np.logaddexp(_tails(accepted, 1 - c[~strong]) + 2 * COMPUTED_ERROR, self._log_lost))
        # An upper bound of the level holds for all larger thresholds, a lower bound of the power for all smaller thresholds.
        fall, rise = np.minimum.accumulate, np.maximum.accumulate
        return np.stack([fall(alpha[0][::-1])[::-1], rise(alpha[1][::-1])[::-1], fall(beta[0]), rise(beta[1])])


def pair_of_tests(tests: Sequence[SumTest], log_tail: float, *, reverse: bool) -> LossAtoms:
    """Return the outcomes of a pair dominated by (P, Q), or by (Q, P) if `reverse`, computed from tests of several sums.

    The thresholds are those of :meth:`SumTest.points`. A sum whose transform would be too long is skipped.
    """
    log_rest = max(test.log_rest for test in tests)
    # The first point is the test that rejects only the outcomes that Q cannot produce; the last point always rejects.
    ends = np.array([[-np.inf, 0.0, *_both(np.array([log_rest]))[::-1, 0]], [0.0, -np.inf, -np.inf, 0.0]]).T
    parts = [ends]
    for test in tests:
        with suppress(TooLongError):
            parts.append(test.points(log_tail))
    points = np.concatenate(parts, axis=1)
    hull = prune(points[:, np.lexsort((points[2], -points[1], points[0]))])
    assert hull.atoms is not None
    # The ends of the curve belong to outcomes that only P, or only Q, can produce; their masses may be 0.
    ends = np.array([[hull.points[3, 0], -np.inf], [-np.inf, hull.points[1, -1]]])
    masses = np.concatenate([hull.atoms[::-1], ends], axis=1)
    return LossAtoms.of(*(masses[::-1] if reverse else masses), error=COMPUTED_ERROR)


def attained_by(tests: Sequence[SumTest]) -> tuple[DominatingPairInfo, ...]:
    """Return pairs that (P, Q) and (Q, P) dominate, from tests of sums."""
    both = [pair_of_tests(tests, FIRST_TAIL, reverse=reverse) for reverse in (False, True)]
    return tuple(DominatingPairInfo(atoms.log_delta, losses=Losses(lambda log_tail, atoms=atoms: atoms),  # type: ignore[misc]
                                    attained=SINGLE) for atoms in both)


def moved(steps: float, others: Sequence[Terms]) -> SumTest:
    """Return the test by the sum S of the terms `others` and of one more: `steps` under P, -`steps` under Q."""
    first, second = (Terms(np.array([at]), np.zeros(1), np.zeros(1), 1) for at in (steps, -steps))
    return SumTest([first, *others], [second, *others], -math.inf, -math.inf)


def certain(place: Sequence[float], log_mass: Sequence[float], times: int) -> Terms:
    """Return terms with the given logarithms of probabilities, which have errors of a few ulp."""
    total = np.array(log_mass)
    error = ULP * (16 + 8 * np.abs(np.where(total > -np.inf, total, 0.0)))
    return Terms(np.array(place, dtype=np.float64), total - error, total + error, times)


def _both(log_prob: FloatArray) -> FloatArray:
    """Return two rows: the logarithms of probabilities, limited to at most 0, and those of their complements."""
    value = np.minimum(log_prob, 0.0)
    return np.stack([value, log1mexp(value)])


def _tails(one: TiltedSum, thresholds: FloatArray) -> FloatArray:
    """Return bounds of the log probabilities that the sum is at least each of the thresholds, which are whole numbers."""
    # S and the thresholds are whole numbers, so S >= c is S - (c - 1/2) >= 1/2. For x >= 1/2, phi(x) = (1 - e^(-c x))_+/c with the
    # discount c is 1/c up to a relative e^(-c/2) = e^-NEGLIGIBLE.
    value = one.log_values(thresholds - 0.5)[0] + math.log(2 * NEGLIGIBLE)
    return np.asarray(value + (ULP if one.upper else 0.0))


def _thresholds(one: TiltedSum, log_tail: float) -> FloatArray:
    """Return thresholds: whole numbers from the mean of the sum up to one that the sum exceeds with probability about e^log_tail.

    Let K be the cumulant generating function of the sum. By Chernoff's inequality, K(theta) - theta K'(theta) is an upper bound of
    the log probability that the sum exceeds K'(theta).
    """
    whole, mean, var = one.moments(0.0)
    theta, step = 0.0, 0.25 / math.sqrt(max(var, 0.25))
    # `distance` is a number of standard deviations: at this distance, a normal distribution has the tail of the Chernoff bound.
    distance, places, end = [0.0], [mean], math.sqrt(-2 * log_tail)
    while distance[-1] < end and places[-1] < one.last - 0.5:
        cumulant, place, _ = one.moments(theta + step)
        reached = math.sqrt(2 * max(whole - cumulant + (theta + step) * (place - one.origin), 0.0))
        if reached - distance[-1] > 0.5 and step > ULP * theta and len(places) < MANY:
            step /= 2
            continue
        theta, step = theta + step, 1.5 * step
        distance.append(max(reached, distance[-1]))
        places.append(place)
    levels = np.interp(np.arange(0.0, end, 1 / COMPARED), distance, places)
    return np.unique(np.append(np.ceil(levels), one.last if places[-1] >= one.last - 0.5 else []))
