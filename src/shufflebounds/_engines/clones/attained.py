r"""Pairs that neighbouring datasets attain, for users with personalized budgets: lower bounds beside the clone bounds.

All other users have the same value, and the test uses only a number of messages, which is a post-processing. So the divergence of
every pair is at most the divergence of the protocol.

For k-ary response with k >= 3 the other users have a third value. The test uses the numbers of messages with the target's first and
second value. Their total is M = C + T. C is the number of other users who send one of these two values: with E_i = e^eps_i, user i
does so with probability 2/(E_i + k - 1), and sends either value with the same probability. T is 1 if the target sends one of them,
with probability lambda = (E_1 + 1)/(E_1 + k - 1), and otherwise 0. Let u = tanh(eps/2)/tanh(eps_1/2), and let D be the sum of M
independent signs, +1 or -1 with probability 1/2 each. Then

.. math:: \delta(\varepsilon) = \tanh\tfrac{\varepsilon_1}{2}\, (1 + e^\varepsilon) \sum_M \lambda \Pr[C = M - 1]\,
    \frac1M\, \mathbb{E}(D - u_M M)_+, \qquad u_M = u \Bigl(1 + \frac{(1-\lambda) \Pr[C = M]}{\lambda \Pr[C = M-1]}\Bigr).

If the analyst also knew T, u would replace u_M in this formula: that is the clone decomposition S2 (`clone_families`). The mean
over D is a hockey-stick divergence of binomial noise: :math:`\mathbb{E}(D - uM)_+/M = H_{e^s}(B \| B+1)/(1 + e^s)` with
:math:`B \sim \mathrm{Bin}(M-1, \tfrac12)` and tanh(s/2) = u.

For Laplace and Gaussian noise the other users have the value 0. The test uses the number of messages in an interval, which is a sum
of independent bits. The best interval depends on eps, so several are used. If all users have similar noise, intervals without an
upper end are as good as any. If other users have far more noise than the target, few of their messages are close to the target's
value 1, and an interval around 1 gives a far larger lower bound. For many users the best interval is that for which the target's
value changes the mean number by the largest multiple of the standard deviation. For large eps the test is that no or few messages
are in an interval, or that one is in an interval that few messages of other users are in.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from shufflebounds._base.limits import TABLE_SIZE, TINY
from shufflebounds._base.types import ULP, FloatArray, Interval, at_each
from shufflebounds._core._binomial import shift_log_delta
from shufflebounds._engines.bits.curve_of_sum import Bit, atoms_of_sum
from shufflebounds._engines.clones.clone_families import ROUNDING, Family, RandomizedResponseFamily
from shufflebounds._engines.clones.law import threshold_and_factor
from shufflebounds._engines.clones.population import Population
from shufflebounds._losses.atoms import LossAtoms
from shufflebounds._losses.budget import Budget
from shufflebounds._losses.release import SINGLE, DominatingPairInfo, Losses, Sampling
from shufflebounds.tails._poisson_tables import WideWindowError, bits_window

__all__ = ["attained_pairs", "intervals"]

TAILS = (-700.0, TABLE_SIZE // 8), (-60.0, TABLE_SIZE)
"""Pairs of the log of the truncated mass of a sum of bits and of the largest permitted number of its values: the first pair for
which the number is not exceeded is used."""

EXCEEDED = 10.0, 1.0, 1e-2, 1e-4, 1e-6, 1e-9, 1e-13
"""Expected numbers of other users above the thresholds that are tried, in addition to the threshold for many users. More entries:
a larger lower bound for few users, and a longer run time."""

TRIED = 128
"""Number of candidate thresholds from which the thresholds of EXCEEDED are chosen."""

FAR_APART = 2.0
"""Ratio of budgets above which intervals around the target's value 1 are tried, too. Raised: a smaller lower bound for the users
with the least noise; the median gain in eps is less than 1 % for smaller ratios. Lowered: 1.4 times the run time for more
populations."""

RARE = 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0
"""Values of -log(delta) for which the intervals around 1 with the largest approximate eps are used. More entries: a larger lower
bound for few users, and a longer run time."""

LARGER = 1.02
"""Smallest ratio of the approximate eps of a further interval to that of the intervals already chosen. Raised: a smaller lower
bound. Lowered: a longer run time."""

STARTS, ENDS, REACH = 24, 11, 32.0
"""Numbers of candidates for the start and for the end of an interval around 1, and the largest distance of both from the target's
values, in units of the scale of the target's noise. Larger numbers: a larger lower bound, and a longer run time."""


def attained_pairs(population: Population, place: int) -> list[tuple[DominatingPairInfo, DominatingPairInfo]]:
    """Return (P, Q) and (Q, P) of each attained pair for a target with the distinct budget of index `place`; none for too many
    users.
    """
    others, budget = population.without(place), float(population.budgets[place])
    if isinstance(population.family, RandomizedResponseFamily):
        pair = _ThirdValue.of(population.family.categories, budget, *others)
        info = pair and DominatingPairInfo(partial(at_each, pair.log_delta), budget, sampling=Sampling(1e-4, 0.1), attained=SINGLE)
        return [(info, info)] if info else []
    orders = (_inside(population.family, budget, *others, *at) for at in intervals(population, budget))
    return [pair for pair in orders if pair]


@dataclass
class _ThirdValue:
    """The target's two values among users of a third value.

    log Pr[C = first + i] is window[i], up to `error`; the log of the mass outside of the window is at most `log_lost`. `log_in` and
    `log_out` are the logs of lambda and 1 - lambda (module docstring).
    """

    budget: Budget
    log_in: float
    log_out: float
    first: int
    window: FloatArray
    error: float
    log_lost: float

    @classmethod
    def of(cls, categories: int, budget: float, budgets: FloatArray, counts: FloatArray) -> _ThirdValue | None:
        """Return the pair, or None if C (module docstring) has too many values."""
        x, y = np.exp(-budgets), math.exp(-budget)
        total = 1 + (categories - 1) * x
        own = 1 + (categories - 1) * y
        logs = math.log1p(y) - math.log(own), math.log(max(categories - 2, 0) * y) - math.log(own) if y else -math.inf
        for log_tail, most in TAILS:
            try:
                first, window, error = bits_window(2 * x / total, (1 + (categories - 3) * x) / total, counts, log_tail=log_tail,
                                                   most=most)
            except WideWindowError:
                continue
            # A relative error r of the probabilities changes log Pr[C = k] by at most about r |k - E C|; r is a few ulp.
            lost = math.log(2) + log_tail if window.size < counts.sum() + 1 else -math.inf
            return cls(Budget(budget), *logs, first, window, error + 8 * ULP * (8 + window.size), lost)
        return None

    def log_delta(self, eps: float) -> Interval:
        """Return bounds of log delta."""
        if not self.budget.less(eps) > 0:
            return Interval(-math.inf, -math.inf)
        u, v, factor = threshold_and_factor(self.budget, eps)
        if not v > 0:
            return Interval(-math.inf, -math.inf)
        # `before` has the masses of C = M - 1 for M = first + 1 + i, and `at` those of C = M. delta decreases if the mass of C = M
        # increases. Outside the window this mass is only known to be between 0 and the truncated mass.
        before = self.window
        trials = self.first + np.arange(before.size, dtype=np.float64)
        sides = []
        for way in (-1, 1):
            at = np.append(before[1:], self.log_lost if way < 0 else -np.inf)
            more = u * np.exp(np.minimum(at - before + self.log_out - self.log_in - way * 2 * self.error, 700.0))
            left = v - more + way * 8 * ULP * (v + more)
            seen = left > 0
            with np.errstate(divide="ignore", invalid="ignore"):
                moved = np.maximum((np.log1p(np.minimum(u + more, 1.0)) - np.log(left)) * (1 - way * 8 * ULP), 0.0)
            value, error = shift_log_delta(trials[seen], 0.5, moved[seen], 0.0)
            terms = before[seen] + value - np.logaddexp(0.0, moved[seen])
            slack = 1e-12 + self.error + (float(error.max()) + 8 * ULP * (8 + float(np.abs(terms).max())) if seen.any() else 0.0)
            total = float(np.logaddexp.reduce(terms, initial=-np.inf)) + self.log_in + factor
            sides.append(total + way * slack if total > -math.inf else total)
        return Interval(min(sides[0], 0.0), min(float(np.logaddexp(sides[1], self.log_lost)), 0.0))


def _inside(
    family: Family, budget: float, budgets: FloatArray, counts: FloatArray, start: float, end: float
) -> tuple[DominatingPairInfo, DominatingPairInfo] | None:
    """Return the pair of distributions of the number of messages in (start, end], or None if this number has too many values."""
    outside, inside = family.between(budgets, start, end)
    bits: list[Bit] = []
    for value in (0.0, 1.0):
        with np.errstate(divide="ignore"):
            lower, upper = np.log(np.concatenate(family.between(np.array([budget]), start - value, end - value)))
        bits.append((float(lower), float(upper)))

    # The log odds of a bit have an error of ROUNDING, which changes log Pr[S = k] for the sum S of the bits by at most ROUNDING |k
    # - E S|. Probabilities below 1e-65 may have an error of 3 ROUNDING. For the target's bit this is less than `rounding`; for the
    # other bits `atoms_of_sum` adds 16 ulp of log Pr[S = k], which is more.
    rounding = ROUNDING * (2 + min(float(counts.sum()), TABLE_SIZE))

    def listed(order: tuple[Bit, Bit]) -> LossAtoms | None:
        for log_tail, most in TAILS:
            atoms = atoms_of_sum(inside, outside, counts, *order, log_tail, most=most, merge=True)
            if atoms is not None:
                return replace(atoms, slack=atoms.slack + rounding, loss_error=atoms.loss_error + 2 * rounding)
        return None

    forward, backward = listed((bits[0], bits[1])), listed((bits[1], bits[0]))
    if forward is None or backward is None:
        return None
    return _known(forward, family.pure_epsilon(budget)), _known(backward, family.pure_epsilon(budget))


def _known(atoms: LossAtoms, pure: float) -> DominatingPairInfo:
    return DominatingPairInfo(atoms.log_delta, pure, losses=Losses(lambda log_tail: atoms), attained=SINGLE)


def intervals(population: Population, budget: float) -> list[tuple[float, float]]:
    """Return the intervals (start, end] whose messages are counted for a target; the first one is the best for many users.

    There is one half-line for each expected number in EXCEEDED of users above it. If the noise of some users has a far larger scale
    than the target's, there are intervals around 1 for the entries of RARE, too.
    """
    widest = max(float(population.sketch.middle.min()), TINY)
    start = np.concatenate([np.linspace(-2 / widest, 1 + 2 / widest, TRIED), 1 + np.geomspace(2, 1000, TRIED) / widest])
    end, around = np.full(start.size, math.inf), budget > FAR_APART * widest
    if around:
        before = np.array([0.5, 1.0, *(1 - np.geomspace(0.1, REACH + budget, STARTS) / budget)])
        after = np.array([*(1 + np.geomspace(1, REACH, ENDS) / budget), math.inf])
        start, end = np.append(start, np.repeat(before, after.size)), np.append(end, np.tile(after, before.size))

    target = np.array([budget])
    bits = np.array([population.family.between(target, start - value, end - value) for value in (0.0, 1.0)])
    # Intervals for which a probability of the target's bit would underflow are omitted, because its privacy loss would be infinite.
    kept = bits.min(axis=(0, 1)) > TINY
    if not kept.any():
        return []
    lines, start, end, bits = np.count_nonzero(kept[: 2 * TRIED]), start[kept], end[kept], bits[:, :, kept]
    outside, inside = population.family.between(population.sketch.middle, start[:, None], end[:, None])
    expected, variance = inside @ population.sketch.counts, (inside * outside) @ population.sketch.counts
    score = (bits[1, 1] - bits[0, 1]) ** 2 / (variance + bits[1, 1] * bits[1, 0] + 1e-300)
    # eps is about proportional to the square root of the score.
    score[:lines] *= LARGER**2
    places = [np.argmax(score[:size]) for size in (score.size, lines) if size]
    for rarity in RARE if around else ():
        eps = _approximate_eps(rarity, expected, bits)
        if eps.max() > LARGER * eps[places].max():
            places.append(np.argmax(eps))
    # The expected number of users above a threshold decreases with the threshold.
    above = expected[:lines]
    places += [np.argmax(above <= number) for number in EXCEEDED if lines and above[-1] <= number]
    return [(float(start[place]), float(end[place])) for place in dict.fromkeys(map(int, places))]


def _approximate_eps(rarity: float, expected: FloatArray, bits: FloatArray) -> FloatArray:
    """Return for each interval approximately the eps at delta = e^-rarity of the test that few messages are in it.

    Let C be a Poisson number with mean m. Pr[C <= x m] is about e^(-m (x log x - x + 1)) for x < 1, and Pr[C = x m - 1] is about x
    times Pr[C = x m]. So, if the target's message is in the interval with probability q_0 or q_1, the likelihood ratio of the
    number x m of messages is about (1 - q_0 + x q_0)/(1 - q_1 + x q_1). The smallest x with a probability of at least e^-rarity is
    found by bisection of its root.
    """
    (miss, hit), (miss_one, hit_one) = bits
    root = np.ones(expected.size)
    for step in 0.5 ** np.arange(1, 20):
        x = (root - step) ** 2
        root = np.where(expected * (x * np.log(x) - x + 1) - np.log(miss + x * hit) <= rarity, root - step, root)
    x = np.where(expected - np.log(miss) <= rarity, 0.0, root**2)
    return np.asarray(np.log((miss + x * hit) / (miss_one + x * hit_one)))
