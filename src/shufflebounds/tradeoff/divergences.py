"""Divergences of two distributions given as lists of log probabilities: hockey-stick, maximal and Renyi."""

from __future__ import annotations

import math
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from shufflebounds._base import validate as _validate
from shufflebounds._base.docs import with_passages
from shufflebounds._base.scipy_functions import logsumexp
from shufflebounds._base.types import FloatArray, plain, typed_as
from shufflebounds._core import _tradeoff
from shufflebounds.tradeoff.piecewise import Piecewise, ordered

__all__ = ["excess", "hockey_stick", "log_hockey_stick", "max_divergence", "renyi_divergence"]


@overload
def log_hockey_stick(log_p: ArrayLike, log_q: ArrayLike, eps: float) -> float: ...
@overload
def log_hockey_stick(log_p: ArrayLike, log_q: ArrayLike, eps: ArrayLike) -> float | FloatArray: ...
@with_passages
def log_hockey_stick(log_p: ArrayLike, log_q: ArrayLike, eps: ArrayLike) -> float | FloatArray:
    r"""Natural logarithm of the hockey-stick divergence, :math:`\log \sum_y \max(0, P(y) - e^\varepsilon Q(y))`.

    Parameters
    ----------
    log_p, log_q : array_like, shape (atoms,)
        Natural logarithms of the probabilities, -inf for an impossible outcome, in any order. The probabilities of each list sum to
        1 within 1e-9; missing mass of P is counted as an outcome that is impossible under Q.
    eps : float or array_like
        Privacy loss in nats, finite, of either sign.

    Returns
    -------
    float or ndarray
        The log divergence, exact up to rounding, of the shape of `eps`; -inf where the divergence is 0.

    {raises: If the shapes differ, an entry is NaN or positive, a list does not sum to 1, or `eps` is not finite.}

    Examples
    --------
    >>> import numpy as np
    >>> from shufflebounds.tradeoff import log_hockey_stick
    >>> log_hockey_stick([0.0, -1e5], [-1e5, 0.0], 1e5 - 2**-10)
    -6.931960047113024
    """
    p, q = _validate.log_pmfs(log_p, log_q)
    array = _validate.real_array("eps", eps)
    flat = array.ravel()
    (light, heavy), _, lost = ordered(q, p)
    order = np.argsort(-flat)
    value = np.empty_like(flat)
    value[order] = _tradeoff.log_hockey_stick(heavy, light, flat[order])
    return plain(np.minimum(np.logaddexp(value, lost), 0.0).reshape(array.shape))


@typed_as(log_hockey_stick)
def hockey_stick(log_p: ArrayLike, log_q: ArrayLike, eps: ArrayLike) -> float | FloatArray:
    r"""The hockey-stick divergence of two lists of log probabilities, :math:`\sum_y \max(0, P(y) - e^\varepsilon Q(y))`.

    Parameters
    ----------
    log_p, log_q, eps
        As in :func:`log_hockey_stick`; for eps = 0 the result is the total variation distance.

    Returns
    -------
    float or ndarray
        The divergence in [0, 1], exact up to rounding, of the shape of `eps`. For values below 1e-300 use :func:`log_hockey_stick`.

    Examples
    --------
    >>> import numpy as np
    >>> from shufflebounds.tradeoff import hockey_stick
    >>> p, q = np.log([0.75, 0.25]), np.log([0.25, 0.75])
    >>> hockey_stick(p, q, [0.0, np.log(2)]).round(12).tolist()
    [0.5, 0.25]
    """
    return plain(np.exp(np.asarray(log_hockey_stick(log_p, log_q, eps))))


@overload
def max_divergence(log_p: ArrayLike, log_q: ArrayLike, delta: float = ...) -> float: ...
@overload
def max_divergence(log_p: ArrayLike, log_q: ArrayLike, delta: ArrayLike = ...) -> float | FloatArray: ...
@with_passages
def max_divergence(log_p: ArrayLike, log_q: ArrayLike, delta: ArrayLike = 0.0) -> float | FloatArray:
    r"""The delta-approximate max divergence, the smallest :math:`\varepsilon \ge 0` whose hockey-stick divergence is at most delta.

    .. math:: D_\infty^\delta(P \| Q) = \max\{0,\; \max_{S:\,P(S) > \delta} \log \frac{P(S) - \delta}{Q(S)}\}

    Parameters
    ----------
    log_p, log_q : array_like, shape (atoms,)
        As in :func:`log_hockey_stick`.
    delta : float or array_like
        Failure probability in [0, 1].

    Returns
    -------
    float or ndarray
        The divergence in nats, of the shape of `delta`. It is rounded up: an eps at which the hockey-stick divergence was evaluated
        and is at most delta. The result is inf if the outcomes that are impossible under Q have more mass than delta under P.

    {raises: As :func:`log_hockey_stick`, or if `delta` lies outside [0, 1].}

    Notes
    -----
    The maximum over sets S of outcomes is attained by a set of the outcomes with the largest likelihood ratios P/Q.

    References
    ----------
    Dwork, C., Roth, A. The algorithmic foundations of differential privacy, 2014, definition 3.6.

    Examples
    --------
    >>> import numpy as np
    >>> from shufflebounds.tradeoff import max_divergence
    >>> p, q = np.log([0.75, 0.25]), np.log([0.25, 0.75])
    >>> np.exp(max_divergence(p, q, [0.0, 0.25])).round(12).tolist()
    [3.0, 2.0]
    """
    p, q = _validate.log_pmfs(log_p, log_q)
    array = _validate.real_array("delta", delta, 0, 1)
    return plain(Piecewise.of(q, p).epsilon(array.ravel()).reshape(array.shape))


@overload
def renyi_divergence(log_p: ArrayLike, log_q: ArrayLike, order: float) -> float: ...
@overload
def renyi_divergence(log_p: ArrayLike, log_q: ArrayLike, order: ArrayLike) -> float | FloatArray: ...
@with_passages
def renyi_divergence(log_p: ArrayLike, log_q: ArrayLike, order: ArrayLike) -> float | FloatArray:
    r"""The Renyi divergence of two lists of log probabilities, of any order.

    .. math:: D_a(P \| Q) = \frac{1}{a - 1} \log \sum_y P(y)^a Q(y)^{1-a}

    Parameters
    ----------
    log_p, log_q : array_like, shape (atoms,)
        As in :func:`log_hockey_stick`, but each list is treated as if it had the sum 1.
    order : float or array_like
        The order a > 0; 1 is the Kullback-Leibler divergence, inf the largest privacy loss.

    Returns
    -------
    float or ndarray
        The divergence in nats, exact up to rounding, of the shape of `order`. It is inf if a >= 1 and some outcome of P is
        impossible under Q, or if no outcome is possible under both.

    {raises: As :func:`log_hockey_stick`, or if `order` is not positive.}

    Notes
    -----
    If the sum in the definition is near 1, its difference from 1 is computed as a sum of the terms
    :math:`P^a Q^{1-a} - a P - (1-a) Q`. They have the same sign, so small divergences have a small relative error.

    References
    ----------
    van Erven, T., Harremoes, P. Renyi divergence and Kullback-Leibler divergence, 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from shufflebounds.tradeoff import renyi_divergence
    >>> p, q = np.log([0.75, 0.25]), np.log([0.25, 0.75])
    >>> renyi_divergence(p, q, [1, 2, np.inf]).round(12).tolist()
    [0.549306144334, 0.847297860387, 1.098612288668]
    """
    p, q = _validate.log_pmfs(log_p, log_q)
    given = np.asarray(order)
    unbounded_loss = given == np.inf if given.dtype.kind == "f" else np.zeros(given.shape, bool)
    array = _validate.real_array("order", np.where(unbounded_loss, 1.0, given) if unbounded_loss.any() else order, 0, open_low=True)
    flat = np.where(unbounded_loss, np.inf, array).ravel()
    shared = (p > -np.inf) & (q > -np.inf)
    # If the positive mass of outcomes that are possible under only one distribution underflows, it is raised to the smallest
    # double, because at orders >= 1 any such mass makes the divergence infinite.
    sides = [float(max(np.exp(law[~shared]).sum(), 5e-324 * bool((law[~shared] > -np.inf).any()))) for law in (p, q)]
    p, q = p[shared], q[shared]
    value = np.array([_renyi(p, q, sides[0], sides[1], a, a - 1) for a in flat.tolist()])
    return plain(value.reshape(array.shape))


def _renyi(p: FloatArray, q: FloatArray, lost_p: float, lost_q: float, order: float, b: float) -> float:
    """Return the Renyi divergence, given the log masses of the outcomes that are possible under both P and Q.

    `lost_p` and `lost_q` are the masses under P and under Q of all other outcomes. b is order - 1, without rounding for orders near
    1.
    """
    if p.size == 0 or (b >= 0 and lost_p > 0):
        return math.inf
    if b >= 0:
        return renyi_of_losses(p, p - q, lost_q, order)
    log_sum = (_log_power_sum(q, p, lost_q, lost_p, -b, -order) if order < 0.5 else
               _log_power_sum(p, q, lost_p, lost_q, order, b))
    return max(0.0, log_sum / b)


def _log_power_sum(p: FloatArray, q: FloatArray, lost_p: float, lost_q: float, order: float, b: float) -> float:
    """Return the log of the sum of P^order Q^(1 - order) for an order in [1/2, 1]; b is order - 1 < 0 without rounding."""
    far = float(logsumexp(p + b * (p - q)))
    if abs(far) > 0.5:
        return far
    return math.log1p(b * (float(excess(p, p - q, b).sum()) + lost_q) - order * lost_p)


def renyi_of_losses(p: FloatArray, loss: FloatArray, lost_q: float, order: float, raised: FloatArray | None = None) -> float:
    """Return the Renyi divergence of order >= 1, given the log masses under P of the outcomes and their losses.

    `lost_q` is the mass under Q of the outcomes that are impossible under P.

    If the losses have errors, an upper bound needs two versions of them. `loss` has the losses moved away from 0 by their errors,
    because the function `excess` increases with |loss|. `raised` has the losses increased by their errors, because the sum of P
    e^((order - 1) loss) increases with every loss. For a lower bound, pass losses moved towards 0 as `loss` and decreased losses as
    `raised`.
    """
    raised = loss if raised is None else raised
    if order == math.inf:
        return max(0.0, float(raised.max()))
    b = order - 1
    with np.errstate(over="ignore"):
        powers = p + b * raised
    if powers.max() == math.inf:
        # For such a large order, all terms except the largest are negligible.
        return float((p / b + raised).max())
    far = float(logsumexp(powers))
    if abs(far) > 0.5:
        return max(0.0, far / b)
    rise = float(excess(p, loss, b).sum()) + lost_q
    # If x = b * rise is below 1e-17, log1p(x)/b equals `rise` up to half an ulp, and x may underflow.
    return max(0.0, math.log1p(b * rise) / b if b * rise > 1e-17 else rise)


def excess(p: FloatArray, loss: FloatArray, b: float) -> FloatArray:
    """Return (P e^(b loss) - (1+b) P + b P e^-loss)/b >= 0 for each outcome of mass P = e^p; for b = 0, its limit at b = 0."""
    out = np.empty_like(p)
    small = np.abs(loss) * max(1.0, abs(b)) < 0.25
    x = loss[small]
    # If x = loss has |x| and |b x| below 1/4, the result is P times the sum of x^k/k! (b^(k-1) + (-1)^k) over k >= 2.
    term, lifted, total = x, x, np.zeros_like(x)
    for k in range(2, 18):
        term, lifted = term * x / k, lifted * (b * x) / k
        total += lifted + (-1) ** k * term
    out[small] = np.exp(p[small]) * total
    p, loss = p[~small], loss[~small]
    rise = (np.exp(p + b * loss) - np.exp(p)) / b if b else np.exp(p) * loss
    near = np.abs(b * loss) < 1
    if b:
        rise[near] = np.exp(p[near]) * np.expm1(b * loss[near]) / b
    fall = np.where(np.abs(loss) < 1, np.exp(p) * np.expm1(-np.clip(loss, -1.0, 1.0)), np.exp(p - loss) - np.exp(p))
    out[~small] = rise + fall
    return out
