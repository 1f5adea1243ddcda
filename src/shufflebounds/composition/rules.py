"""Composition of (eps, delta) guarantees, if nothing else is known of the mechanisms, and group privacy.

The optimal composition is that of Kairouz, Oh and Viswanath (2015) and of Murtagh and Vadhan (2016).
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shufflebounds._base import validate as _validate
from shufflebounds._base.crossing import Curve, crossing
from shufflebounds._base.docs import with_passages
from shufflebounds._base.limits import LARGEST_EXPONENT
from shufflebounds._base.types import SLACK, Bound, FloatArray, Interval, plain, probability, typed_as
from shufflebounds._core._special import log1mexp, log_add_exp
from shufflebounds.composition.budgets import BudgetSum
from shufflebounds.composition.conversions import above

__all__ = ["Guarantee", "compose_dp", "composition_delta", "composition_log_delta", "group_privacy"]


MOST_MECHANISMS = 2**36
"""Largest total number of mechanisms of one composition. Raised: the rounding errors of sums over all mechanisms may exceed the
margin SLACK. Lowered: more compositions are refused."""


class Guarantee(NamedTuple):
    """An (eps, delta) guarantee; both numbers are upper bounds."""

    eps: float
    delta: float


@overload
def composition_delta(
    eps: ArrayLike, delta: ArrayLike, eps_total: float, *, k: ArrayLike | None = None, bound: Bound = ...
) -> float: ...
@overload
def composition_delta(
    eps: ArrayLike, delta: ArrayLike, eps_total: ArrayLike, *, k: ArrayLike | None = None, bound: Bound = ...
) -> float | FloatArray: ...
@with_passages
def composition_delta(
    eps: ArrayLike, delta: ArrayLike, eps_total: ArrayLike, *, k: ArrayLike | None = None, bound: Bound = "upper"
) -> float | FloatArray:
    r"""The least delta for which a composition of (eps_i, delta_i)-private mechanisms is (eps_total, delta)-private.

    .. math:: \delta = 1 - (1-\delta^*) \prod_i (1-\delta_i), \qquad
        \delta^* = \mathbb{E} \max\bigl(0,\, 1 - e^{\varepsilon - L}\bigr),\quad L = \sum_i \pm\varepsilon_i

    Here :math:`\varepsilon` is `eps_total`. The signs in L are independent, and the i-th sign is plus with probability
    :math:`e^{\varepsilon_i}/(1 + e^{\varepsilon_i})`: L is the privacy loss of one randomized response with each budget.

    Parameters
    ----------
    eps : float or array_like, shape (groups,)
        Budgets in nats, each in [0, 700].
    delta : float or array_like, shape (groups,)
        Failure probabilities, each in [0, 1]; one number is used for all groups.
    eps_total : float or array_like, any shape
        Privacy loss of the composition in nats, finite and >= 0.
    k : int or array_like of int, shape (groups,), optional
        Number of mechanisms with each budget; 1 each by default. Their total is at most 2**36.
    bound : {"upper", "lower"}
        Whether the result is an upper or a lower bound of the exact value.

    Returns
    -------
    float or ndarray
        The chosen bound of delta in [0, 1], of the shape of `eps_total`. The upper bound of a positive delta is never 0; below
        1e-300 use :func:`composition_log_delta`.

    {raises: If an argument lies outside its range or the shapes do not agree.}

    Notes
    -----
    No smaller delta holds for all mechanisms with these guarantees: randomized response that in addition reveals the true value
    with probability delta_i attains it. For equal budgets this is the theorem of Kairouz, Oh and Viswanath, otherwise that of
    Murtagh and Vadhan. See :func:`composition_log_delta` for method and error.

    References
    ----------
    .. [1] P. Kairouz, S. Oh, P. Viswanath, "The composition theorem for differential privacy", ICML 2015, Theorem 3.3.
    .. [2] J. Murtagh, S. Vadhan, "The complexity of computing the optimal composition of differential privacy", TCC 2016,
       Theorem 1.5.

    Examples
    --------
    A hundred mechanisms with eps = 0.1, and a mixture of budgets:

    >>> from shufflebounds.composition import composition_delta
    >>> print(f"{composition_delta(0.1, 0.0, 4.7745675881, k=100):.6g}")
    1e-06
    >>> print(f"{composition_delta([0.1, 0.2, 0.3, 0.5, 0.8], 1e-7, 1.2):.10f}")
    0.0863569603
    """
    return probability(composition_log_delta(eps, delta, eps_total, k=k, bound=bound), bound == "upper", SLACK)


@with_passages
@typed_as(composition_delta)
def composition_log_delta(
    eps: ArrayLike, delta: ArrayLike, eps_total: ArrayLike, *, k: ArrayLike | None = None, bound: Bound = "upper"
) -> float | FloatArray:
    r"""Natural logarithm of :func:`composition_delta`, accurate also where delta itself underflows.

    Parameters
    ----------
    eps, delta, eps_total, k, bound
        As in :func:`composition_delta`.

    Returns
    -------
    float or ndarray
        The chosen bound of log delta, of the shape of `eps_total`; -inf where delta is 0.

    {raises: As :func:`composition_delta`.}

    Notes
    -----
    The gap between the upper and the lower bound of log delta depends on the number of distinct budgets:

    - The gap is about 1e-12, or a few ulp of log delta if that is larger, if the budgets can be divided into two halves, each with
      at most 2**20 values of the sum of its losses. Examples are up to 1e10 mechanisms with one or two distinct budgets, up to 40
      distinct budgets once each, or four distinct budgets ten thousand times each. For more than 1e10 mechanisms with one or two
      distinct budgets the gap is up to .02.
    - Otherwise the losses are composed on a grid, and the gap is 1e-9 to 1e-3 (measured for up to 1000 distinct budgets, and for
      three groups of a million mechanisms). It is larger for three or more groups of a billion mechanisms each if their budgets are
      not multiples of one number. One call takes up to 8 s.
    - If the grid would take more than 10 s (from about 1250 distinct budgets on, or 25 with more than 64 mechanisms each), the
      upper bound follows from the Renyi divergence of the best order, and for the lower bound every budget is rounded down to one
      of two values.

    Examples
    --------
    >>> from shufflebounds.composition import composition_log_delta
    >>> round(composition_log_delta(0.1, 0.0, 10_000.0, k=10**6), 6)
    -1263.089775
    """
    upper = _validate.upper_side(bound)
    budgets, failures, counts = _mechanisms(eps, delta, k)
    totals = _validate.real_array("eps_total", eps_total, 0)
    law, lost = BudgetSum(budgets, counts), _log_failures(failures, counts)[upper]
    out = np.array([_with_failures(lost, law.log_excess(e)[upper]) for e in totals.ravel().tolist()])
    return plain(out.reshape(totals.shape))


@with_passages
def compose_dp(
    eps: ArrayLike,
    delta: ArrayLike,
    slack: float,
    *,
    k: ArrayLike | None = None,
    method: Literal["optimal", "advanced", "basic"] = "optimal",
) -> Guarantee:
    r"""The guarantee of a composition of (eps_i, delta_i)-private mechanisms, at a chosen additional failure probability.

    .. math:: \text{optimal: the least } \varepsilon \text{ with } \delta^*(\varepsilon) \le s, \qquad
        \text{advanced: } \sum_i \varepsilon_i \tanh\frac{\varepsilon_i}{2}
        + \Bigl(2 \ln\frac1s \sum_i \varepsilon_i^2\Bigr)^{1/2}, \qquad \text{basic: } \sum_i \varepsilon_i

    Here s is `slack`, and :math:`\delta^*` is that of :func:`composition_delta`.

    Parameters
    ----------
    eps, delta, k
        As in :func:`composition_delta`.
    slack : float
        The additional failure probability s, in [0, 1); positive for "advanced", and not used for "basic".
    method : {"optimal", "advanced", "basic"}
        "optimal" is the smallest eps that holds for all mechanisms with these guarantees. "advanced" and "basic" are larger closed
        forms.

    Returns
    -------
    Guarantee
        ``(eps, delta)`` with :math:`\delta = 1 - (1-s)\prod_i(1-\delta_i)`, where s = 0 for "basic". The guarantee holds for
        adaptive compositions, too.

    {raises: If an argument lies outside its range or the shapes do not agree.}

    Notes
    -----
    "optimal": the upper bound of :math:`\delta^*` was evaluated at the returned eps and is at most `slack`. The result is at most
    the smaller eps of "advanced" and "basic". "advanced" is Hoeffding's inequality for the loss of randomized responses, whose mean
    is eps tanh(eps/2); the published mean, eps (e^eps - 1), is about twice as large. For few mechanisms "advanced" returns a larger
    eps than "basic".

    References
    ----------
    .. [1] P. Kairouz, S. Oh, P. Viswanath, "The composition theorem for differential privacy", ICML 2015, Theorems 3.3, 3.4.
    .. [2] J. Murtagh, S. Vadhan, "The complexity of computing the optimal composition of differential privacy", TCC 2016.
    .. [3] C. Dwork, G. Rothblum, S. Vadhan, "Boosting and differential privacy", FOCS 2010, Theorem III.3.

    Examples
    --------
    >>> from shufflebounds.composition import compose_dp
    >>> for method in ("optimal", "advanced", "basic"):
    ...     print(method, round(compose_dp(0.1, 0.0, 1e-6, k=100, method=method).eps, 4))
    optimal 4.7746
    advanced 5.7561
    basic 10.0
    """
    _validate.choice("method", method, ("optimal", "advanced", "basic"))
    slack = _validate.real("slack", slack, 0, 1, open_low=method == "advanced", open_high=True)
    budgets, failures, counts = _mechanisms(eps, delta, k)
    lost = _log_failures(failures, counts)[1]
    law = BudgetSum(budgets, counts)
    pure = law.pure * (1 + SLACK)
    if method == "basic" or (method == "optimal" and slack == 0) or law.pure == 0:
        return Guarantee(pure, _raised_delta(_with_failures(lost, -math.inf)))
    if method == "advanced":
        total = _advanced(budgets, counts, slack)
    else:
        curve = Curve(lambda e: law.log_excess(e)[1], pure=pure)
        total = crossing(curve, math.log(slack) * (1 + SLACK), upper=True)
        total = min(total, pure, _advanced(budgets, counts, slack))
    return Guarantee(total, _raised_delta(_with_failures(lost, math.log(slack) + SLACK)))


@with_passages
def group_privacy(eps: float, delta: float, size: int) -> Guarantee:
    r"""The guarantee of an (eps, delta)-private mechanism for groups of `size` people.

    .. math:: \Bigl(m\varepsilon,\; \delta\, \frac{e^{m\varepsilon} - 1}{e^{\varepsilon} - 1}\Bigr)

    Parameters
    ----------
    eps : float
        Budget in nats, in [0, 700].
    delta : float
        Failure probability, in [0, 1].
    size : int
        Number m of people; 1 to 2**53.

    Returns
    -------
    Guarantee
        Upper bounds; delta is at most 1. If it is at most 1/2, no smaller delta is valid for all mechanisms at this eps.

    {raises}

    References
    ----------
    .. [1] S. Vadhan, "The complexity of differential privacy", 2017, Lemma 2.2.

    Examples
    --------
    >>> from shufflebounds.composition import group_privacy
    >>> eps, delta = group_privacy(0.1, 1e-9, 5)
    >>> print(f"{eps:.3f} {delta:.4e}")
    0.500 6.1683e-09
    """
    eps = _validate.real("eps", eps, 0, LARGEST_EXPONENT)
    delta = _validate.real("delta", delta, 0, 1)
    m = _validate.integer("size", size, 1)
    if m == 1:
        return Guarantee(eps, delta)
    total = math.nextafter(m * eps, math.inf) if eps else 0.0
    if delta == 0:
        return Guarantee(total, 0.0)
    # (e^(m eps) - 1)/(e^eps - 1) = e^((m-1) eps) (1 - e^(-m eps))/(1 - e^(-eps))
    log_ratio = (m - 1) * eps + math.log(math.expm1(-m * eps) / math.expm1(-eps)) if eps else math.log(m)
    log_delta = math.log(delta) + log_ratio
    return Guarantee(total, above(log_delta, 1 + abs(math.log(delta)) + log_ratio))


def _advanced(budgets: FloatArray, counts: NDArray[np.int64], slack: float) -> float:
    """Return the eps that the total privacy loss exceeds with probability at most `slack`, by Hoeffding's inequality."""
    squares = math.fsum((counts * budgets * budgets).tolist())
    mean = math.fsum((counts * budgets * np.tanh(budgets / 2)).tolist())
    return (mean + math.sqrt(-2 * math.log(slack) * squares)) * (1 + SLACK)


def _mechanisms(eps: ArrayLike, delta: ArrayLike, k: ArrayLike | None) -> tuple[FloatArray, FloatArray, NDArray[np.int64]]:
    """Return budgets, failure probabilities and counts as validated arrays of one shape."""
    budgets = np.atleast_1d(_validate.real_array("eps", eps, 0, LARGEST_EXPONENT))
    if budgets.ndim != 1:
        raise ValueError(f"eps has shape {budgets.shape}: it must be a number or one-dimensional")
    failures = _validate.real_array("delta", delta, 0, 1)
    counts = _validate.real_array("k", 1 if k is None else k, 0, MOST_MECHANISMS)
    for name, array in (("delta", failures), ("k", counts)):
        if array.ndim and array.shape != budgets.shape:
            raise ValueError(f"{name} has shape {array.shape}: it must be a number, or of the shape of eps, {budgets.shape}")
    _validate.every_entry("k", counts, counts % 1 == 0, "an integer")
    failures, counts = (np.broadcast_to(array, budgets.shape) for array in (failures, counts))
    if counts.sum() > MOST_MECHANISMS:
        raise ValueError(f"k sums to {counts.sum():.0f}: the total must not exceed 2**36")
    return budgets, failures, counts.astype(np.int64)


def _log_failures(failures: FloatArray, counts: NDArray[np.int64]) -> Interval:
    """Return lower and upper bounds of log(-sum_i log(1 - delta_i)); inf where some delta_i is 1."""
    used = (counts > 0) & (failures > 0)
    if not used.any():
        return Interval(-math.inf, -math.inf)
    if (failures[used] == 1).any():
        return Interval(math.inf, math.inf)
    total = math.log(math.fsum((-counts[used] * np.log1p(-failures[used])).tolist()))
    return Interval(total - SLACK * (1 + abs(total)), total + SLACK * (1 + abs(total)))


def _with_failures(lost: float, log_delta: float) -> float:
    """Return log(1 - e^(-e^lost) (1 - delta)), the log of the total failure probability, with `lost` of `_log_failures`.

    `lost` is log(-sum_i log(1 - delta_i)), and delta the failure probability of `log_delta`.
    """
    log_delta = min(0.0, log_delta)
    if log_delta == 0 or lost == math.inf:
        return 0.0
    # `own` is the log of -log(1 - delta). For delta below e^-36 this is log delta in double precision.
    own = math.log(-math.log1p(-math.exp(log_delta))) if log_delta > -36 else log_delta
    total = float(log_add_exp(lost, own))
    return float(log1mexp(-math.exp(total))) if total > -36 else total


def _raised_delta(log_delta: float) -> float:
    return above(log_delta, 1 + abs(log_delta)) if log_delta > -math.inf else 0.0
