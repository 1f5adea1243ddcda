"""Conversions of Renyi and zero-concentrated differential privacy to (eps, delta).

The formulas are those of Canonne, Kamath and Steinke (2020) and of Mironov (2017), at the best of several Renyi orders.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from shufflebounds._base import validate as _validate
from shufflebounds._base.docs import with_passages
from shufflebounds._base.limits import LARGEST
from shufflebounds._base.types import SLACK, ULP, FloatArray

__all__ = ["above", "rdp_to_dp", "zcdp_to_dp"]


@with_passages
def rdp_to_dp(
    orders: ArrayLike,
    rdp: ArrayLike,
    *,
    delta: float | None = None,
    eps: float | None = None,
    method: Literal["cks", "mironov"] = "cks",
) -> tuple[float, float]:
    r"""The (eps, delta) guarantee that a Renyi guarantee implies, at the best of the given Renyi orders.

    .. math:: \varepsilon = \rho_a + \ln\Bigl(1 - \frac1a\Bigr) - \frac{\ln\delta + \ln a}{a-1} \quad\text{(cks)}, \qquad
        \varepsilon = \rho_a + \frac{\ln(1/\delta)}{a-1} \quad\text{(mironov)}

    Parameters
    ----------
    orders : float or array_like, shape (m,)
        Renyi orders a, each finite and > 1.
    rdp : float or array_like, shape (m,)
        Renyi divergence :math:`\rho_a` at each order, an upper bound in nats, >= 0; inf is allowed at some of the orders.
    delta : float, optional
        The delta, in (0, 1), for which eps is returned.
    eps : float, optional
        The eps, finite and >= 0, for which delta is returned. Exactly one of `delta` and `eps` must be given.
    method : {"cks", "mironov"}
        The formula; the result of "cks" is never larger than that of "mironov".

    Returns
    -------
    value : float
        Upper bound of eps (at least 0) or of delta (at most 1).
    order : float
        The Renyi order at which the value was attained.

    {raises: If an argument lies outside its range, the shapes disagree, or not exactly one of `delta` and `eps` is given.}

    References
    ----------
    .. [1] C. Canonne, G. Kamath, T. Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020, Proposition 12.
    .. [2] B. Balle et al., "Hypothesis testing interpretations and Renyi differential privacy", AISTATS 2020, Theorem 21.
    .. [3] I. Mironov, "Renyi differential privacy", CSF 2017, Proposition 3.

    Examples
    --------
    >>> from shufflebounds.composition import rdp_to_dp
    >>> for method in ("cks", "mironov"):
    ...     print(f"{rdp_to_dp(4, 0.7, delta=1e-5, method=method)[0]:.6f}")
    3.787862
    4.537642
    """
    _validate.choice("method", method, ("cks", "mironov"))
    a = np.atleast_1d(_validate.real_array("orders", orders, 1, open_low=True))
    rho = np.atleast_1d(_validate.floats("rdp", rdp, "a number >= 0"))
    if a.ndim != 1 or rho.shape != a.shape:
        raise ValueError(f"rdp has shape {rho.shape}: it must be that of orders, {a.shape}, one-dimensional")
    # A Renyi order with an infinite divergence implies nothing.
    finite = rho != math.inf
    if not finite.any():
        raise ValueError("rdp is inf at every order: pass a finite divergence for at least one order")
    a, rho = a[finite], _validate.real_array("rdp", rho[finite], 0)
    goal = _goal(delta, eps)
    if goal[0] == "eps":
        log_delta = goal[1]
        parts = [rho, -log_delta / (a - 1)]
        if method == "cks":
            parts += [_log_rest(a), -np.log(a) / (a - 1)]
        values = _sum_above(parts)
        best = int(np.argmin(values))
        return max(0.0, float(values[best])), float(a[best])
    with np.errstate(over="ignore"):
        excess = np.clip((a - 1) * (rho - goal[1] + (rho + goal[1]) * SLACK), -LARGEST, LARGEST)
    logs = _sum_above([excess] + ([(a - 1) * _log_rest(a), -np.log(a)] if method == "cks" else []))
    best = int(np.argmin(logs))
    return above(float(logs[best]), 1 + abs(float(logs[best]))), float(a[best])


@with_passages
def zcdp_to_dp(rho: float, *, delta: float | None = None, eps: float | None = None, xi: float = 0.0) -> tuple[float, float]:
    r"""The (eps, delta) guarantee that (xi, rho)-zero-concentrated privacy implies, at the best order.

    .. math:: \varepsilon = \min_{a > 1}\; \xi + \rho a + \ln\Bigl(1 - \frac1a\Bigr) - \frac{\ln\delta + \ln a}{a-1}

    Such privacy means that the Renyi divergence of every order a > 1 is at most :math:`\xi + \rho a`.

    Parameters
    ----------
    rho : float
        Slope of the Renyi divergence in the order, in [0, 1e6].
    delta : float, optional
        The delta, in (0, 1), for which eps is returned.
    eps : float, optional
        The eps, finite and >= 0, for which delta is returned. Exactly one of `delta` and `eps` must be given.
    xi : float
        Intercept, in [0, 1e6].

    Returns
    -------
    value : float
        Upper bound of eps (at least 0) or of delta (at most 1).
    order : float
        The best Renyi order; inf if delta is 0 because rho is 0 and eps is at least xi.

    {raises: If an argument lies outside its range, or not exactly one of `delta` and `eps` is given.}

    Notes
    -----
    The order is found by bisection, and :func:`rdp_to_dp` is evaluated there, so the result is valid even if the order is
    inaccurate. The privacy profile of the mechanism itself gives a smaller eps: for Gaussian noise by 4 to 12 % (sigma from 0.3 to
    100, delta from 1e-9 to 1e-5).

    References
    ----------
    .. [1] M. Bun, T. Steinke, "Concentrated differential privacy", TCC 2016, Definition 1.1.
    .. [2] C. Canonne, G. Kamath, T. Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020, Proposition 12.

    Examples
    --------
    >>> from shufflebounds.composition import zcdp_to_dp
    >>> round(zcdp_to_dp(0.01, delta=1e-6)[0], 9)
    0.621692655
    """
    rho = _validate.real("rho", rho, 0, 1e6)
    xi = _validate.real("xi", xi, 0, 1e6)
    kind, value = _goal(delta, eps)

    if kind == "eps":
        def slope(x: float) -> float:
            return rho * x * x + math.log1p(x) + value
    else:
        if rho == 0 and value >= xi:
            return 0.0, math.inf

        def slope(x: float) -> float:
            return (2 * x + 1) * rho + xi - value - math.log1p(1 / x)

    low, high = 1e-17, 1.0
    while slope(high) < 0 and high < 1e300:
        low, high = high, 4 * high
    for _ in range(100):
        middle = math.sqrt(low) * math.sqrt(high)
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    # The sum 1 + high is rounded; the divergence must be evaluated at the rounded order.
    order = max(1 + high, 1 + ULP)
    divergence = (xi + rho * order) * (1 + SLACK)
    return rdp_to_dp(order, divergence, delta=delta, eps=eps)


def _goal(delta: float | None, eps: float | None) -> tuple[str, float]:
    """Return ("eps", log delta) or ("delta", eps): the number to compute, and the given one."""
    if (delta is None) == (eps is None):
        raise ValueError(f"delta={delta!r} and eps={eps!r}: exactly one of the two must be given")
    if delta is not None:
        return "eps", math.log(_validate.real("delta", delta, 0, 1, open_low=True, open_high=True))
    return "delta", _validate.real("eps", eps, 0)


def above(log_value: float, size: float) -> float:
    """Return e^log_value in (0, 1], rounded up; `log_value` has an error of at most SLACK * size."""
    raised = log_value + SLACK * size
    return 1.0 if raised >= 0 else min(1.0, math.nextafter(math.exp(raised) * (1 + SLACK), math.inf))


def _log_rest(a: FloatArray) -> FloatArray:
    """Return log(1 - 1/a) with a relative error of a few ulp. Near a = 1 the difference a - 1 is exact, but 1/a is rounded."""
    return np.where(a < 2, np.log((a - 1) / a), np.log1p(-1 / a))


def _sum_above(parts: list[FloatArray]) -> FloatArray:
    """Return the sum of arrays, each accurate to a few ulp, rounded up."""
    return np.sum(parts, axis=0) + SLACK * np.sum(np.abs(parts), axis=0)  # type: ignore[no-any-return]
