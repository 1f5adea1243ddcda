"""The bound of Liu et al. for personalized budgets, as published: weights, rates and Theorem 2. Most of these formulas are false.

Y. Liu et al., Enhanced privacy bound for shuffle model with personalized privacy, 2024.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from shufflebounds._base import validate as _validate
from shufflebounds._base.scipy_functions import logsumexp, ndtr
from shufflebounds._base.types import FloatArray
from shufflebounds._core._binomial import binom_logcdf
from shufflebounds.published._glossary import LOSS, integer
from shufflebounds.published._printed import At, BoundComparison, Counterexample, printed
from shufflebounds.shuffle.personalized import PersonalizedClones
from shufflebounds.tails.poisson_binomial import poisson_binom_window

__all__ = [
    "liu2024_delta",
    "liu2024_gaussian_rate",
    "liu2024_laplace_rate",
    "liu2024_rr_rate",
    "liu2024_weight_gaussian",
    "liu2024_weight_laplace",
    "liu2024_weight_rr",
]

_PAPER = "Liu et al. 2024"


def _pair(weight: float, rate: float, others: int, eps: float) -> float:
    """Return the exact delta of the clone pair with the published weight, if all other users have the rate `rate`.

    Theorem 2 is a bound of this delta.
    """
    return PersonalizedClones(weight, [rate], counts=[others]).delta(eps, bound="upper")


def _delta_by_enumeration(first: list[float], second: list[float], other: list[float], others: int, eps: float) -> float:
    """Return the exact delta of shuffled messages with finitely many values, by enumeration.

    `first` and `second` are the distributions of the target's message for its two values, and `other` is the distribution of the
    message of every other user. If the values are bins of real messages, the result is a lower bound of delta, because
    discretization is post-processing.
    """
    laws = []
    for target in (first, second):
        table = np.array(target)
        for _ in range(others):
            table = np.multiply.outer(table, np.array(other))
        cells = np.sort(np.indices(table.shape).reshape(table.ndim, -1), axis=0)
        key = (len(first) ** np.arange(table.ndim)) @ cells
        laws.append(np.bincount(key, weights=table.ravel()))
    p, q = laws
    return float(max(np.maximum(p - math.exp(eps) * q, 0).sum(), np.maximum(q - math.exp(eps) * p, 0).sum()))


def _in_bins(
    edges: list[float], cdf: Callable[[float, float], float], target: float, other: float, others: int, eps: float
) -> float:
    """Return a lower bound of delta, computed from outputs discretized at `edges`.

    The value of the target changes from 0 to 1.

    ``cdf(z, width)`` is the distribution function of noise of scale `width`; `target` and `other` are the scales of the noise of
    the target and of each other user. Delta is computed for two datasets, in which all other users have the value 0 or all have the
    value 1; the result is the larger one.
    """
    def row(width: float, x: float) -> list[float]:
        return [b - a for a, b in pairwise([0.0, *(cdf(z - x, width) for z in edges), 1.0])]

    return max(_delta_by_enumeration(row(target, 0), row(target, 1), row(other, x), others, eps) for x in (0.0, 1.0))


def _laplace_weight_counterexample() -> Counterexample:
    # Both users have e^eps = 4. The edges 0, 1/2 and 1 define four bins. Their probabilities are (4, 2, 1, 1)/8 for the value 0,
    # and in reverse order for the value 1.
    weight = liu2024_weight_laplace(math.log(4))
    first = [0.5, 0.25, 0.125, 0.125]
    claim = _pair(weight, 0.25, 1, math.log(3) * (1 + 1e-12))
    truth = _delta_by_enumeration(first, first[::-1], first, 1, math.log(3))
    return Counterexample(claim, truth, "delta(ln 3) of two Laplace users, e^eps_1 = 4")


@printed(
    "false", f"{_PAPER}, section 3.2.1",
    fault="privacy",
    reason="the clone bound needs a weight w <= 1/(e^eps_1 + 1); the published w is larger, so the clone pair is more private than "
    "the target's randomizer",
    counterexample=_laplace_weight_counterexample,
    returns="The published weight. A valid one is at most 1/(e^eps_1 + 1).",
)
def liu2024_weight_laplace(eps_target: float) -> float:
    r"""Published weight w of a target user with Laplace noise, :math:`e^{-\varepsilon_1/2}/2`.

    In the proof the target's message is independent of the target's value with probability 2w.

    >>> round(published.liu2024_weight_laplace(2.0), 6)
    0.18394
    """
    return math.exp(-eps_target / 2) / 2


def _gaussian_weight_counterexample() -> Counterexample:
    weight = liu2024_weight_gaussian(1.0)
    eps = math.log((1 - weight) / weight) * (1 + 1e-12)
    claim = PersonalizedClones(weight, [0.0]).delta(eps)
    truth = float(ndtr(0.5 - eps) - math.exp(eps) * ndtr(-0.5 - eps))
    return Counterexample(claim, truth, "delta(0.807) of one Gaussian user, sigma = 1")


@printed(
    "false", f"{_PAPER}, section 3.2.1",
    fault="privacy",
    reason="Gaussian noise has unbounded likelihood ratios, the clone pair with weight w has none above (1-w)/w",
    counterexample=_gaussian_weight_counterexample,
    returns="The published weight, without the correction by delta_1/2, which changes the weight by at most delta_1/2.",
)
def liu2024_weight_gaussian(sigma_target: float) -> float:
    r"""Published weight w of a target user with Gaussian noise, :math:`\Phi(-1/(2\sigma_1))`.

    In the proof the target's message is independent of the target's value with probability 2w.

    >>> round(published.liu2024_weight_gaussian(1.0), 6)
    0.308538
    """
    return float(ndtr(-0.5 / sigma_target))


@printed(
    "proven", f"{_PAPER}, section 3.2.1",
    reason="valid, but not tight for three categories or more, where 1/(e^eps_1 + 1) is valid too",
    side="lower",
    comparison=At("eps_1 = 2, k = 10; exact: the largest valid weight", (2.0, 10), lambda eps, _: 1 / (math.exp(eps) + 1), "w"),
)
def liu2024_weight_rr(eps_target: float, categories: int) -> float:
    r"""Published weight w of a target user with k-ary randomized response, :math:`1/(e^{\varepsilon_1}+k-1)`.

    The target's message is independent of the target's value with probability 2w.

    >>> round(published.liu2024_weight_rr(2.0, 3), 6)
    0.106507
    """
    return 1 / (math.exp(eps_target) + categories - 1)


def _laplace_rate_counterexample() -> Counterexample:
    eps, target, other = 0.05, 2.0, 1.9
    claim = _pair(liu2024_weight_laplace(target), liu2024_laplace_rate(other, target), 2, eps)
    truth = _in_bins([0.22, 0.53, 0.69, 0.74, 1.42], lambda z, budget: 0.5 * math.exp(budget * z) if z < 0
                     else 1 - 0.5 * math.exp(-budget * z), target, other, 2, eps)
    return Counterexample(claim, truth, "delta(0.05) of three Laplace users, eps_1 = 2, the other users 1.9; outputs in six bins")


@printed(
    "false", f"{_PAPER}, section 3.2.2, equation (4)",
    fault="privacy",
    reason="the proof needs R_i >= p_i (R_0 + R_1) at every output, for the densities R_i of user i and R_0, R_1 of the target; "
    "the published p_i is a probability, which does not imply it",
    counterexample=_laplace_rate_counterexample,
    returns="The published rate, 0 at equal budgets (the limit from below is e^(-eps_1/2)/2). "
    "A valid one is that of :meth:`shufflebounds.shuffle.PersonalizedClones.laplace`.",
)
def liu2024_laplace_rate(eps_other: float, eps_target: float) -> float:
    r"""Published rate p_i of another user i with Laplace noise, who sends a clone of the target's message with probability 2 p_i.

    .. math:: p_i = \min_{b,\,x} \Pr[Z \in U_b], \qquad U_b = \{z : S(z) < R_b(z),\; R_{1-b}(z) < R_b(z)\}

    Z is the message of user i for the value x, S its density, and :math:`R_0` and :math:`R_1` are the densities of the target's
    message for the values 0 and 1. The minimum is over b = 0, 1 and x = 0, 1.

    >>> [round(published.liu2024_laplace_rate(e, 2.0), 8) for e in (1.9, 1.0, 0.5, 3.0)]
    [0.19337051, 0.26943151, 0.22768413, 0.11156508]
    """
    other, target = eps_other, eps_target
    if other == target:
        return 0.0
    log_ratio = math.log(target / other)
    near = log_ratio / (target - other)
    left = (target - log_ratio) / (target + other)
    if other < target:
        far = (target + log_ratio) / (target - other)
        one = (math.exp(-other * max(0.5, left)) - math.exp(-other * far)) / 2
        zero = (-math.expm1(-other * near) - math.expm1(-other * min(near, 0.5))) / 2
    else:
        if left > 1:
            left = max(1.0, -(target + log_ratio) / (other - target))
        one = math.exp(-other * max(0.5, left)) / 2
        zero = (math.exp(-other * near) + max(0.0, math.exp(-other * near) - math.exp(-other / 2))) / 2
    return max(0.0, min(one, zero))


def _gaussian_rate_counterexample() -> Counterexample:
    eps, target, other = 0.59, 1.35, 1.3
    claim = _pair(liu2024_weight_gaussian(target), liu2024_gaussian_rate(other, target), 1, eps)
    truth = _in_bins([-1.4, -0.25, 0.5, 1.25, 2.4], lambda z, sigma: float(ndtr(z / sigma)), target, other, 1, eps)
    return Counterexample(claim, truth, "delta(0.59) of two Gaussian users, sigma = 1.35 and 1.3; outputs in six bins")


@printed(
    "false", f"{_PAPER}, section 3.2.2, equation (4)",
    fault="privacy",
    reason="as for liu2024_laplace_rate",
    counterexample=_gaussian_rate_counterexample,
    returns="The published rate, 0 at equal standard deviations.",
)
def liu2024_gaussian_rate(sigma_other: float, sigma_target: float) -> float:
    r"""Published rate p_i of another user i with Gaussian noise, who sends a clone of the target's message with probability 2 p_i.

    .. math:: p_i = \min_{b,\,x} \Pr[Z \in U_b], \qquad U_b = \{z : S(z) < R_b(z),\; R_{1-b}(z) < R_b(z)\}

    Z is the message of user i for the value x, S its density, and :math:`R_0` and :math:`R_1` are the densities of the target's
    message for the values 0 and 1. The minimum is over b = 0, 1 and x = 0, 1.

    >>> 0 < published.liu2024_gaussian_rate(4.0, 2.0) < 0.5
    True
    """
    s, t = sigma_other, sigma_target
    if s == t:
        return 0.0
    a = 0.5 / s**2 - 0.5 / t**2
    areas = []
    for b in (0.0, 1.0):
        # For the value x_i = 0, R_i < R_b holds for the outputs z at which the polynomial a z^2 + c z + d is positive.
        c, d = b / t**2, -0.5 * b * b / t**2 + math.log(s / t)
        low, high = (-math.inf, 0.5) if b == 0 else (0.5, math.inf)
        root = c * c - 4 * a * d
        if root <= 0:
            pieces = [(low, high)] if a > 0 else []
        else:
            r1, r2 = sorted(((-c - math.sqrt(root)) / (2 * a), (-c + math.sqrt(root)) / (2 * a)))
            pieces = [(low, min(high, r1)), (max(low, r2), high)] if a > 0 else [(max(low, r1), min(high, r2))]
        areas.append(sum(max(0.0, float(ndtr(y / s) - ndtr(x / s))) for x, y in pieces if y > x))
    return min(areas)


def _compared_rate() -> BoundComparison:
    claim = PersonalizedClones(liu2024_weight_rr(2.0, 10), [liu2024_rr_rate(1.0, 2.0, 10)], counts=[9999])
    ours = PersonalizedClones.randomized_response([2.0, 1.0], 10, target=0, counts=[1, 9999])
    setting = "eps_1 = 2, 9999 other users with 1, k = 10, delta = 10^-6; exact: PersonalizedClones"
    return BoundComparison(setting, "eps", claim.epsilon(1e-6), ours.epsilon(1e-6))


@printed(
    "proven", f"{_PAPER}, section 3.2.2",
    reason="valid with liu2024_weight_rr, by the decompositions S1 and S2 of PersonalizedClones; 0 at equal budgets",
    comparison=_compared_rate,
)
def liu2024_rr_rate(eps_other: float, eps_target: float, categories: int) -> float:
    r"""Published rate p_i of another user i with k-ary response, who sends a clone of the target's message with probability 2 p_i.

    The rate is :math:`1/(e^{\varepsilon_i}+k-1)`, or 0 if the budget is equal to that of the target.

    >>> round(published.liu2024_rr_rate(1.0, 2.0, 3), 6)
    0.211942
    """
    other, target = eps_other, eps_target
    if other > target:
        raise ValueError(f"eps_other={other:g} must be <= eps_target={target:g}: the target has the largest budget there")
    return 0.0 if other == target else 1 / (math.exp(other) + categories - 1)


def clone_counts(rates: ArrayLike, counts: ArrayLike | None, first: int) -> tuple[FloatArray, FloatArray]:
    """Return the possible numbers of clones that are at least `first`, and the logarithms of their probabilities.

    A user with rate r sends a clone with probability 2 r. `rates` are the different rates, and `counts` are the numbers of users
    with each rate.
    """
    lowest, log_weights = poisson_binom_window(2 * _validate.real_array("rates", rates, 0, 0.5), counts, log_tail=-1500.0)
    i = lowest + np.arange(log_weights.size, dtype=np.float64)
    return i[i >= first], log_weights[i >= first]


def log_test(i: FloatArray, log_weights: FloatArray, y: FloatArray) -> tuple[float, float]:
    """Return the logs of the level alpha and of the power of a test of P against Q, the distributions of the clone pair.

    The number i of clones is random, with the log probabilities `log_weights`. A ~ Bin(i, 1/2) of the clones are equal to the
    target's message for its first value. If the target's own message is counted, too, the number of such messages is A + 1 under P
    and A under Q. The test rejects P if this number is at most i + 1 - y. So alpha is the probability of A <= i - y, and the power
    is the probability of A <= i + 1 - y.
    """
    alpha, power = (float(logsumexp(log_weights + binom_logcdf(k, i, 0.5))) for k in (i - y, np.minimum(i + 1 - y, i)))
    return alpha, power


@printed(
    "false", f"{_PAPER}, Theorem 2",
    fault="privacy",
    reason="a failure of the target's randomizer, of probability delta_1, counts as if it hid the message; "
    "sums from i = 1 omit the event that nobody sends a clone",
    counterexample=At("delta(ln 2) of 200 users, 1e-3 of whose messages are marked and show the user's bit",
                      (math.log(2), 0.25, [0.25]), lambda *_, delta_target, counts: delta_target,
                      keywords={"delta_target": 1e-3, "counts": [199]}),
    returns="The published number, at least 0.",
    where={
        "eps": LOSS,
        "first": integer(
            "Start of the sums: 1 as published; from 0, with `delta_target` 0 and valid rates, it is an upper bound", 0, 1
        ),
    },
)
def liu2024_delta(
    eps: float, weight: float, rates: ArrayLike, *, delta_target: float = 0.0, counts: ArrayLike | None = None, first: int = 1
) -> float:
    r"""Published delta of shuffled messages, by Theorem 2 of Liu et al.

    .. math::
        \delta = (-e^\varepsilon + (1-\delta_1)2w + \delta_1)\sum_{i\ge 1} w_i F_i\bigl(i - \tfrac{i+1}{t+1}\bigr)
        + (1-\delta_1)(1-2w)\sum_{i\ge 1} w_i F_i\bigl(i+1-\tfrac{i+1}{t+1}\bigr)

    Here :math:`w_i = \Pr[C = i]`, where C is the number of other users who send a clone of the target's message; each sends one
    with probability twice the user's rate. w, without an index, is `weight`, half the probability that the target's own message
    does not depend on the target's value. :math:`\delta_1` is `delta_target`, :math:`F_i` is the distribution function of
    Bin(i, 1/2), and :math:`t = (1-\delta_1)(1-2w)/(e^\varepsilon-(1-\delta_1)2w-\delta_1)` maximizes the expression. The paper
    defines t as the infimum of the numbers that satisfy an inequality for a quotient of sums of binomial probabilities. Their
    arguments are rounded down there (:func:`liu2024_delta_literal`); without the rounding, the infimum is the t above.

    If no other user ever sends a clone, for example a single other user of rate 0, shuffling does not help. But the published sums
    start at i = 1. They are then empty, so that the formula gives perfect privacy:

    >>> published.liu2024_delta(0.1, 0.2, [0.0])
    0.0
    """
    w, fail = weight, delta_target
    i, log_weights = clone_counts(rates, counts, first)
    if not i.size:
        return 0.0
    slope, loss = (1 - fail) * (1 - 2 * w), math.exp(eps) - (1 - fail) * 2 * w - fail
    alpha, power = log_test(i, log_weights, (i + 1) / (slope / loss + 1))
    if power == -math.inf:
        return 0.0
    return max(0.0, math.exp(power) * (slope - loss * math.exp(alpha - power)))
