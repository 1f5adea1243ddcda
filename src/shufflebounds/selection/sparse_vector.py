"""The sparse vector technique: noise scales for a privacy target, accuracy, and Renyi differential privacy.

The technique is that of Dwork and Roth (2014, section 3.6); the Renyi bounds follow Zhu and Wang (2020). The module `stream` runs
the technique.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Literal, NamedTuple

import numpy as np

from shufflebounds._base import search as _search
from shufflebounds._base import validate as _validate
from shufflebounds._base.docs import with_passages
from shufflebounds._base.limits import LARGEST_EXPONENT, TINY, UNDERFLOW_EXPONENT
from shufflebounds._base.quadrature import gauss_legendre
from shufflebounds._core._special import log1mexp
from shufflebounds.composition.budgets import BudgetSum

__all__ = ["SVTScales", "svt_accuracy", "svt_rdp", "svt_scales"]


class SVTScales(NamedTuple):
    """Scales of the noise of sparse vector, for queries of sensitivity 1.

    ``threshold`` is the scale of the threshold's noise, ``query`` that of the noise of each query, and ``answer`` that of the noise
    of each released number (None if no numbers are released). A run must halt after ``cutoff`` answers above the threshold.
    """

    threshold: float
    query: float
    answer: float | None
    cutoff: int


@with_passages
def svt_scales(
    eps: float,
    delta: float = 0.0,
    cutoff: int = 1,
    *,
    numeric: bool = False,
    method: Literal["optimal", "advanced"] = "optimal",
) -> SVTScales:
    r"""Noise scales for (eps, delta)-private sparse vector, which finds up to `cutoff` queries above a threshold and halts.

    A run has `cutoff` parts, each of which ends at an answer above the threshold. The noise of the threshold is drawn for each
    part. A part is :math:`\varepsilon'`-private with Laplace noise of scale :math:`2/\varepsilon'` for the threshold and
    :math:`4/\varepsilon'` for the queries. The run is the composition of its parts and, if `numeric`, of `cutoff` released numbers
    of budget :math:`\varepsilon'/8` each.

    Parameters
    ----------
    eps : float
        Total budget in nats, in [1e-290, 700].
    delta : float
        Failure probability, in [0, 1).
    cutoff : int
        Number c of answers above the threshold after which the run halts, 1 to 10**6.
    numeric : bool
        Whether the values of the queries above the threshold are released too.
    method : {"optimal", "advanced"}
        "optimal": the largest :math:`\varepsilon'` that exact composition allows. "advanced": the closed form of the literature for
        delta > 0, :math:`\sqrt{32 c \ln(1/\delta)}/\varepsilon` for the threshold; an error is raised if these scales do not meet
        the target by exact composition.

    Returns
    -------
    SVTScales
        ``(threshold, query, answer, cutoff)``: the scales of the noise of the threshold, of each query and of each released
        number (None without `numeric`), for sensitivity 1, and `cutoff`. For another sensitivity multiply the scales by it. The
        run is then (eps, delta)-private.

    {raises: If an argument is outside its range, or method="advanced" and its closed form does not meet the target.}

    Notes
    -----
    A run that does not halt is not private: every further answer above the threshold needs the same budget again. With
    delta = 0 and c = `cutoff`, both methods return the scales 2c/eps and 4c/eps, or, with `numeric`, 9c/(4 eps), 9c/(2 eps) and
    9c/eps.

    References
    ----------
    .. [1] C. Dwork, A. Roth, "The algorithmic foundations of differential privacy", 2014, Algorithms 1 to 3 and Theorem 3.25.
    .. [2] M. Lyu, D. Su, N. Li, "Understanding the sparse vector technique for differential privacy", VLDB 2017: variants that
       are not private.

    Examples
    --------
    >>> from shufflebounds.selection import svt_scales
    >>> svt_scales(1.0)
    SVTScales(threshold=2.0, query=4.0, answer=None, cutoff=1)
    >>> [round(svt_scales(1.0, 1e-6, 50, method=m).threshold, 2) for m in ("optimal", "advanced")]
    [58.2, 148.68]
    """
    # The noise scale overflows if eps is below 1e-290.
    eps = _validate.real("eps", eps, TINY, LARGEST_EXPONENT)
    delta = _validate.real("delta", delta, 0, 1, open_high=True)
    # The run time of the calibration grows with `cutoff`, hence the limit.
    c = _validate.integer("cutoff", cutoff, 1, 10**6)
    _validate.choice("method", method, ("optimal", "advanced"))
    if delta == 0:
        numerator = 2 * c * (9 / 8 if numeric else 1.0)
        threshold = numerator / eps
        while Fraction(threshold) * Fraction(eps) < Fraction(numerator):
            threshold = math.nextafter(threshold, math.inf)
        return SVTScales(threshold, 2 * threshold, 4 * threshold if numeric else None, c)
    if method == "optimal":
        threshold = 2 / _largest_run(eps, delta, c, numeric)
        return SVTScales(threshold, 2 * threshold, 4 * threshold if numeric else None, c)
    if numeric:
        spread = math.sqrt(32 * c * math.log(2 / delta))
        root = math.sqrt(512)
        threshold, answer = spread * (root + 1) / (root * eps), spread * (root + 1) / (2 * eps)
    else:
        threshold, answer = math.sqrt(32 * c * math.log(1 / delta)) / eps, None
    budgets = [2 / threshold] + ([1 / answer] if answer is not None else [])
    if max(budgets) > LARGEST_EXPONENT or not _log_delta(budgets, c, eps) <= math.log(delta):
        raise ValueError(
            f"eps={eps:g} with cutoff={c} and delta={delta:g}: composition does not confirm the closed form there; "
            'use method="optimal"'
        )
    return SVTScales(threshold, 2 * threshold, answer, c)


def _log_delta(budgets: list[float], cutoff: int, eps: float) -> float:
    """Return an upper bound of log delta of the composition of `cutoff` mechanisms for each of the budgets."""
    return BudgetSum(np.array(budgets), np.full(len(budgets), cutoff)).log_excess(eps)[1]


def _largest_run(eps: float, delta: float, cutoff: int, numeric: bool) -> float:
    """Return the largest budget of one run whose upper bound of delta is at most the target `delta`."""
    def private(run: float) -> bool:
        # The scales that are computed from the budget `run` are rounded, so delta is evaluated at a slightly larger budget.
        run *= 1 + 1e-15
        budgets = [run, run / 8] if numeric else [run]
        return run <= LARGEST_EXPONENT and _log_delta(budgets, cutoff, eps) <= math.log(delta) * (1 + 1e-15)

    low = eps / (cutoff * (9 / 8 if numeric else 1.0)) * (1 - 1e-15)
    return _search.bracket(lambda run: not private(run), low, 2 * low, rtol=1e-15)[0]


@with_passages
def svt_accuracy(scales: SVTScales, n_queries: int, beta: float, *, method: Literal["exact", "union"] = "exact") -> float:
    r"""Upper bound of the error of all answers of sparse vector together, with probability 1 - beta.

    The bound is the smallest :math:`\alpha` with

    .. math:: \Pr\Bigl[\max_{s \le c} |T_s| + \max_{i \le k} |V_i| > \alpha\Bigr] \le \beta.

    Here :math:`V_i` is the noise of query i of k. A run has c parts, each of which ends at an answer above the threshold, and
    :math:`T_s` is the noise of the threshold in part s. If numbers are released with noise :math:`A_s`, the event also includes
    :math:`|A_s| > \alpha` for any s. If the event does not occur, the exact answer of every query reported below the threshold t is
    at most t + alpha, and that of every query reported above is at least t - alpha, however the queries are chosen.

    Parameters
    ----------
    scales : SVTScales
        As :func:`svt_scales` returns them, or user-defined.
    n_queries : int
        Number k of queries, 1 to 2**53.
    beta : float
        Probability of a larger error, in [1e-300, 1).
    method : {"exact", "union"}
        "exact": the smallest alpha, as defined above. "union": the union bound of the literature, about twice as large.

    Returns
    -------
    float
        Upper bound of the error alpha, in units of the queries.

    {raises}

    Notes
    -----
    "exact": the probability is the integral of the density of :math:`\max_s |T_s|` times the tail of :math:`\max_i |V_i|`, by
    Gauss-Legendre rules on panels of the length of one noise scale; all terms are positive (relative error below 1e-13, measured).
    alpha is then increased until the evaluated probability is at most beta. With cutoff 1 the probability is exact if all k queries
    are reported below the threshold. With larger cutoffs it is an upper bound that assumes that every part contains all k queries.

    "union": :math:`2\max\{\sigma_T \ln(2c/\beta), \sigma_V(\ln k + \ln(2c/\beta))\}`, where :math:`\sigma_T` and :math:`\sigma_V`
    are the scales of the noise of the threshold and of the queries. If numbers are released with noise of scale
    :math:`\sigma_A`, beta is replaced by beta/2, and the bound is at least :math:`\sigma_A \ln(2c/\beta)`.

    References
    ----------
    .. [1] C. Dwork, A. Roth, "The algorithmic foundations of differential privacy", 2014, Theorems 3.24, 3.26, 3.28. The last
       as published is false for delta > 0: ``published.das2022_numeric_sparse_accuracy``.

    Examples
    --------
    >>> from shufflebounds.selection import svt_accuracy, svt_scales
    >>> scales = svt_scales(1.0)
    >>> [round(svt_accuracy(scales, 10, 0.05, method=m), 3) for m in ("exact", "union")]
    [23.734, 47.932]
    """
    if not isinstance(scales, SVTScales):
        raise ValueError(f"scales={scales!r} must be SVTScales, as svt_scales returns")
    wide, narrow = (_validate.real(f"scales.{name}", getattr(scales, name), 1e-300, 1e300) for name in ("threshold", "query"))
    answer = None if scales.answer is None else _validate.real("scales.answer", scales.answer, 1e-300, 1e300)
    c = _validate.integer("scales.cutoff", scales.cutoff, 1)
    scales = SVTScales(wide, narrow, answer, c)
    k = _validate.integer("n_queries", n_queries, 1)
    beta = _validate.real("beta", beta, 1e-300, 1, open_high=True)
    _validate.choice("method", method, ("exact", "union"))
    union = _union(scales, k, c, beta)
    if method == "union":
        return union
    goal = math.log(beta)

    def excess(alpha: float) -> float:
        return math.log(max(_error_probability(scales, k, c, alpha), 5e-324)) + 1e-12 - goal

    def enough(alpha: float) -> bool:
        return excess(alpha) <= 0

    high = _search.expand_bracket(union, enough, union, math.inf)
    return _search.least_real(excess, union / 2, high, enough=enough, rtol=1e-14)


def _union(scales: SVTScales, k: int, c: int, beta: float) -> float:
    parts = 2 if scales.answer is None else 4
    each = math.log(parts * c) - math.log(beta)
    alpha = 2 * max(scales.threshold * each, scales.query * (math.log(k) + each))
    if scales.answer is not None:
        alpha = max(alpha, scales.answer * (math.log(2 * c) - math.log(beta)))
    return alpha * (1 + 1e-15)


def _error_probability(scales: SVTScales, k: int, c: int, alpha: float) -> float:
    """Return an upper bound of the probability that an error exceeds alpha > 0, as a sum of positive terms.

    `k` is the number of queries and `c` the number of answers above the threshold.
    """
    wide, narrow = scales.threshold, scales.query

    def beyond(x: float, scale: float, count: int) -> float:
        return -math.expm1(count * float(log1mexp(-x / scale)))

    # The panels end where the exponential tail of either scale underflows.
    first, last = (np.arange(0.0, min(alpha, UNDERFLOW_EXPONENT * scale), scale) for scale in (wide, narrow))
    edges = np.unique(np.clip(np.concatenate([first, alpha - last, [0.0, alpha]]), 0.0, alpha))
    nodes, weights = gauss_legendre(20)
    u = (edges[:-1, None] + np.diff(edges)[:, None] * nodes).ravel()
    weights = (np.diff(edges)[:, None] * weights).ravel()
    with np.errstate(divide="ignore", under="ignore"):
        density = c / wide * np.exp(-u / wide + (c - 1) * log1mexp(-u / wide) if c > 1 else -u / wide)
        tail = -np.expm1(k * log1mexp(-(alpha - u) / narrow))
    total = beyond(alpha, wide, c) + float((weights * density * tail).sum())
    if scales.answer is not None:
        total += (1 - total) * beyond(alpha, scales.answer, c)
    return total


@with_passages
def svt_rdp(
    order: float,
    rdp_threshold: Callable[[float], float],
    rdp_query: Callable[[float], float],
    *,
    cutoff: int = 1,
    max_queries: int | None = None,
    log_moment: float | None = None,
    moment: float = math.inf,
    resample: bool = False,
) -> float:
    r"""Upper bound of the Renyi divergence of sparse vector with any additive noise.

    Let D be the sensitivity, z the threshold's noise and v that of a query. Let :math:`\varepsilon_\rho(a)` be the Renyi divergence
    of order a of z from z - D, and :math:`\varepsilon_\nu(a)` that of v from v - 2D; for symmetric noise the sign of the shift has
    no effect. There are three forms of the bound. In these c is `cutoff`, k is `max_queries` and g is `moment`. K is the number
    of queries until the run halts. s is c if `resample`, else 1.

    .. math:: s\,\varepsilon_\rho(a) + c\,\varepsilon_\nu(a) + \frac{\ln N}{a - 1}, \quad N = \sum_{j \le c} \binom{k}{j}
        \qquad\text{(at most k queries)}

    .. math:: \varepsilon_\rho\Bigl(1 + \frac{(a-1) g}{g-1}\Bigr) + \varepsilon_\nu(a)
        + \frac{\ln \mathbb{E}_z\bigl[\mathbb{E}[K \mid z]^g\bigr]}{g (a-1)} \qquad\text{(a known moment, c = 1)}

    .. math:: s\,\varepsilon_\rho(a) + c\,\varepsilon_\nu(\infty) \qquad\text{(query noise with pure privacy)}

    The result is the smaller of the first form, if `max_queries` is given, and the second form, if `log_moment` is given. If
    neither is given, the result is the third form.

    Parameters
    ----------
    order : float
        Renyi order a > 1, finite.
    rdp_threshold, rdp_query : callable
        Upper bounds of :math:`\varepsilon_\rho` and :math:`\varepsilon_\nu` as functions of the order, such as the ``rdp`` method
        of a mechanism. For the queries pass the bound for **twice** the sensitivity. For :math:`\varepsilon_\nu(\infty)`,
        ``rdp_query(math.inf)`` is called.
    cutoff : int
        Number c of answers above the threshold after which the run halts, 1 to 2**53.
    max_queries : int, optional
        Number k of queries after which the run halts in any case.
    log_moment : float, optional
        For cutoff 1: upper bound of :math:`\ln \mathbb{E}_z[\mathbb{E}[K \mid z]^g]`, as :func:`svt_log_moment` returns it, or,
        if `moment` is inf, of :math:`\ln \sup_z \mathbb{E}[K \mid z]`. It must hold for all datasets and query sequences that may
        occur.
    moment : float
        The g of `log_moment`, > 1.
    resample : bool
        Whether the threshold's noise is drawn again after each answer above it.

    Returns
    -------
    float
        Upper bound of the Renyi divergence of order a between the outputs for neighbouring datasets, in nats.

    {raises: If an argument lies outside its range, or no form applies.}

    Notes
    -----
    Proof.

    1. *One query.* Pair the threshold noise z of one dataset with z + D of the other. Given these noises, let F and F' be the
       probabilities that a query is reported below on the first and on the second dataset, and S and S' those of being reported
       above. Then F' >= F, so that :math:`F^a F'^{1-a} \le F`. For a report above, the query's noise is shifted by at most 2D, so
       that :math:`S^a S'^{1-a} \le e^{(a-1)\varepsilon_\nu(a)}`, and :math:`\le S e^{(a-1)\varepsilon_\nu(\infty)}` in the form
       for pure privacy.
    2. *All outputs.* Let p be the density of the threshold's noise. By step 1 and the joint convexity of :math:`x^a y^{1-a}`, the
       sum of this function over the outputs is at most the integral over z of :math:`p(z)^a p(z + D)^{1-a}`, times
       :math:`e^{(a-1) c\,\varepsilon_\nu}` and a factor. If the noise is drawn again, there are c such integrals.
    3. *The factor* is a sum over the outputs. In the first form it is at most their number N. In the second form the output is K,
       and the factor is :math:`\sum_j \Pr[K \ge j \mid z] = \mathbb{E}[K \mid z]`; then Hoelder's inequality applies. In the third
       form the outputs' probabilities add up to 1.

    The form with a moment is smaller than the published one, which has the order a g/(g-1) and a factor above 1.

    References
    ----------
    .. [1] Y. Zhu, Y.-X. Wang, "Improving sparse vector technique with Renyi differential privacy", NeurIPS 2020.
    .. [2] S. Das, "Differential privacy: ideas, concepts and advances", 2022, Theorems 9.9 and 9.12, after [1]_.

    Examples
    --------
    Gaussian noise of standard deviation 10 for the threshold and 20 for the queries, which have sensitivity 1:

    >>> from shufflebounds.selection import svt_rdp
    >>> threshold, query = (lambda a: a / (2 * 10**2)), (lambda a: a * 2**2 / (2 * 20**2))
    >>> round(svt_rdp(8, threshold, query, cutoff=5, max_queries=100), 9)
    2.838528609
    """
    a = _validate.real("order", order, 1, open_low=True)
    c = _validate.integer("cutoff", cutoff, 1)
    runs = c if resample else 1
    threshold, query = _checked_divergence("rdp_threshold", rdp_threshold), _checked_divergence("rdp_query", rdp_query)
    bounds = []
    if max_queries is not None:
        k = _validate.integer("max_queries", max_queries, 1)
        bounds.append(runs * threshold(a) + c * query(a) + _log_outputs(k, c) / (a - 1))
    if log_moment is not None:
        log_moment = _validate.real("log_moment", log_moment, 0)
        if moment != math.inf:
            moment = _validate.real("moment", moment, 1, open_low=True)
        if c != 1:
            raise ValueError(f"cutoff={c} must be 1 where log_moment is given")
        if moment == math.inf:
            bounds.append(threshold(a) + query(a) + log_moment / (a - 1))
        else:
            higher = 1 + (a - 1) * moment / (moment - 1)
            bounds.append(threshold(higher * (1 + 1e-15)) + query(a) + log_moment / (moment * (a - 1)))
    if not bounds:
        pure = query(math.inf)
        if not math.isfinite(pure):
            raise ValueError("rdp_query(inf) is not finite: pass max_queries, or log_moment if cutoff is 1")
        bounds.append(runs * threshold(a) + c * pure)
    return float(min(bounds)) * (1 + 1e-14)


def _checked_divergence(name: str, given: Callable[[float], float]) -> Callable[[float], float]:
    """Return the function `given` with a check that its results are numbers >= 0 or inf; `name` is used in the message."""
    if not callable(given):
        raise ValueError(f"{name}={given!r} must be a function of the order")

    def asked(order: float) -> float:
        value = given(order)
        try:
            return math.inf if float(value) == math.inf else _validate.real(name, value, 0)
        except (TypeError, ValueError):
            raise ValueError(f"{name}({order:g})={value!r} must be a number >= 0, or inf") from None

    return asked


def _log_outputs(k: int, c: int) -> float:
    """Return an upper bound of log sum_(j <= c) C(k, j): exact integers for c <= 2000, otherwise the entropy bound."""
    if c >= k:
        return k * math.log(2)
    if c <= 2000:
        total = term = 1
        for j in range(1, c + 1):
            term = term * (k - j + 1) // j
            total += term
        return math.log(total)
    # By Chernoff's bound, sum_(j <= c) C(k, j) <= e^(k h(c/k)) for c <= k/2, where h is the binary entropy in nats.
    x = c / k
    return k * math.log(2) if x >= 0.5 else -k * (x * math.log(x) + (1 - x) * math.log1p(-x)) * (1 + 1e-12)
