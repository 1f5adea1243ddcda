"""Theorems 1 and 2 of Liu et al. (see `personalized`), literally as published.

Theorem 1 states the trade-off function of the shuffled messages. Theorem 2 states delta, at a parameter t that the paper defines as
an infimum.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shufflebounds._base import validate as _validate
from shufflebounds._base.types import FloatArray
from shufflebounds._core._binomial import binom_logpmf
from shufflebounds.published._glossary import LOSS, Given
from shufflebounds.published._printed import At, printed
from shufflebounds.published.liu import clone_counts, log_test
from shufflebounds.shuffle.personalized import PersonalizedClones

__all__ = ["liu2024_delta_literal", "liu2024_tradeoff"]

_PAPER = "Liu et al. 2024"


def _checked_threshold(name: str, value: Any) -> float:
    return math.inf if value == math.inf else _validate.real(name, value, 0)


_THRESHOLD = Given("float", "Likelihood ratio threshold of the test, >= 0; inf is alpha = 1", _checked_threshold)


@printed(
    "false", f"{_PAPER}, Theorem 1",
    fault="privacy",
    reason="the sum with the factor 1 - 2w is the power of the test, not its error; a failure of the randomizer counts as privacy",
    side="lower",
    counterexample=At("f(1), that is beta of a test that always rejects, w = 0.2", (math.inf, 0.2, [0.2]), lambda *_, counts: 0.0,
                      keywords={"counts": [9]}),
    returns="The published type II error at alpha(t).",
    where={"t": _THRESHOLD},
)
def liu2024_tradeoff(
    t: float, weight: float, rates: ArrayLike, *, delta_target: float = 0.0, counts: ArrayLike | None = None
) -> float:
    r"""Published trade-off function :math:`f_s` of shuffled messages, at :math:`\alpha(t)`.

    .. math::
        \alpha(t) = \sum_{i\ge 0} w_i F_i\bigl(i - \tfrac{i+1}{t+1}\bigr)

    .. math::
        f_s(\alpha(t)) = (1-\delta_1)\Bigl(2w(1-\alpha) + (1-2w)\sum_{i\ge 0} w_i F_i\bigl(i+1-\tfrac{i+1}{t+1}\bigr)\Bigr)
        + \delta_1 (1-\alpha)

    Here w = `weight`, :math:`\delta_1` = `delta_target`, :math:`w_i` is the probability of i clones, and :math:`F_i` is the
    distribution function of Bin(i, 1/2). The sum in :math:`f_s` is the power of a test; its type II error, 1 minus the sum, should
    replace it. Even the corrected function is a valid lower bound only at its points with t <= 1; at larger t it can be above the
    trade-off function of :class:`~shufflebounds.shuffle.PersonalizedClones` with the same weight and rates.

    >>> slopes = (0.5, 1.0, float("inf"))
    >>> curve = [published.liu2024_tradeoff(t, 0.2, [0.2], counts=[9]) for t in slopes]
    >>> [round(beta, 6) for beta in curve]
    [0.636739, 0.713925, 0.6]
    """
    w, fail = weight, delta_target
    i, log_weights = clone_counts(rates, counts, 0)
    # At t = inf the argument (i + 1)/(t + 1) is 0: the test then rejects every outcome, and alpha and the power are 1.
    alpha, power = map(math.exp, log_test(i, log_weights, (i + 1) / (t + 1)))
    return (1 - fail) * (2 * w * (1 - alpha) + (1 - 2 * w) * power) + fail * (1 - alpha)


@printed(
    "false", f"{_PAPER}, Theorem 2, t as the published infimum",
    fault="misprint",
    reason="rounding moves the threshold t away from that of the best test, so the value is below delta",
    counterexample=At("40 users, w = 0.1, rates 1/20, delta(0.5) of the pair (P, Q) that the theorem bounds", (0.5, 0.1, [0.05]),
                      lambda eps, w, rates, counts: PersonalizedClones(w, rates, counts=counts).delta(eps, bound="lower"),
                      keywords={"counts": [39]}),
    returns="The published number, at least 0.",
    where={"eps": LOSS},
)
def liu2024_delta_literal(
    eps: float, weight: float, rates: ArrayLike, *, delta_target: float = 0.0, counts: ArrayLike | None = None
) -> float:
    r"""Published delta of Theorem 2 of Liu et al., with t as published: an infimum whose condition has rounded arguments.

    .. math::
        t = \inf\{t : (1-\delta_1)(-2w + (1-2w)\, l(t)) - \delta_1 \ge -e^\varepsilon\}, \qquad
        l(t) = -\frac{\sum_{i\ge 1} w_i f_i(\lfloor i+1-\frac{i+1}{t+1}\rfloor)}
        {\sum_{i\ge 1} w_i f_i(\lfloor i-\frac{i+1}{t+1}\rfloor)}

    :math:`f_i` are the probabilities of Bin(i, 1/2); the paper rounds their arguments down. The other symbols are those of
    :func:`liu2024_delta`. Without rounding, :math:`l(t) = -1/t`, which gives the t of that function. The paper has :math:`w_1` in
    place of :math:`w_i`, which would cancel.

    >>> case = dict(rates=[0.25], counts=[39])
    >>> print(f"{published.liu2024_delta_literal(0.8, 0.1, **case):.6f}")
    0.005064
    >>> print(f"{published.liu2024_delta(0.8, 0.1, **case):.6f}")
    0.006186
    """
    w, fail = weight, delta_target
    slope, loss = (1 - fail) * (1 - 2 * w), math.exp(eps) - (1 - fail) * 2 * w - fail
    i, log_weights = clone_counts(rates, counts, 1)
    if not i.size:
        return 0.0
    alpha, power = log_test(i, log_weights, _ceilings(i, log_weights, slope, loss))
    return max(0.0, slope * math.exp(power) - loss * math.exp(alpha))


def _ceilings(i: FloatArray, log_weights: FloatArray, slope: float, loss: float) -> FloatArray:
    """Return j = ceil((i + 1)/(t + 1)) for each number i of clones, at the smallest t for which -l(t) is at most loss/slope.

    l(t) is the ratio of two sums in the docstring of :func:`liu2024_delta_literal`. Without rounding -l(t) is 1/t. Rounding only
    increases -l(t), so t is at least slope/loss. As t grows from slope/loss, the j of a number i falls by one at t = (i + 1)/j - 1,
    where the terms of this i in both sums change.
    """
    start = slope / loss * (1 - 1e-12)
    j = np.ceil((i + 1) / (start + 1))
    top = float((log_weights + binom_logpmf(np.minimum(i - j + 1, i), i, 0.5)).max())
    # An i whose terms are below e^-60 of the largest term is dropped: these terms do not change -l(t) in double precision.
    kept = np.flatnonzero(log_weights + binom_logpmf(np.floor(i / 2), i, 0.5) > top - 60)

    def terms(which: FloatArray, ceiling: FloatArray) -> FloatArray:
        k = which - ceiling
        base = np.interp(which, i, log_weights) - top
        with np.errstate(divide="ignore"):
            values = [np.where(at >= 0, base + binom_logpmf(np.maximum(at, 0), which, 0.5), -np.inf) for at in (k + 1, k)]
        return np.exp(values)

    sums = terms(i[kept], j[kept]).sum(axis=1)
    if slope * sums[0] <= loss * sums[1] > 0:
        return j
    width = 4.0 / float(i[kept][0])
    while True:
        last = np.maximum(1.0, np.ceil((i + 1) / (start + width + 1)))
        steps = (j - last)[kept].astype(np.int64)
        which = np.repeat(i[kept], steps)
        # As t grows, j = ceil((i + 1)/(t + 1)) falls to j - 1, j - 2, ... for each number i of clones. These values are in
        # `fallen`, and `times` has the t + 1 at which each of them begins.
        fallen = np.repeat(j[kept], steps) - 1.0 - (np.arange(which.size) - np.repeat(np.cumsum(steps) - steps, steps))
        times = (which + 1) / fallen
        order = np.argsort(times, kind="stable")
        change = (terms(which, fallen) - terms(which, fallen + 1))[:, order]
        above, below = sums[:, None] + np.cumsum(change, axis=1)
        # If j falls at the same t for several i, the two sums are compared only after all these changes.
        ends = np.append(np.flatnonzero(np.diff(times[order]) > 0), which.size - 1) if which.size else np.array([], dtype=int)
        held = ends[slope * above[ends] <= loss * below[ends]]
        if held.size:
            return np.ceil((i + 1) / float(times[order][held[0]]) * (1 - 1e-15))
        if width > 1e6:
            return last
        width *= 2
