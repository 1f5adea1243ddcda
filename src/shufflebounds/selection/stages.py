"""Bounds of eps for sparse vector that is run in several stages, after Zhu and Wang (2020).

The module also computes upper bounds of the moments of the number of queries until the run halts, for Gaussian noise and
non-negative queries. Such a bound is the argument `log_moment` of `sparse_vector.svt_rdp`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from shufflebounds._base import validate as _validate
from shufflebounds._base.docs import with_passages
from shufflebounds._base.limits import MOST_ROWS
from shufflebounds._base.quadrature import gauss_legendre
from shufflebounds._base.scipy_functions import log_ndtr, logsumexp
from shufflebounds.composition.conversions import rdp_to_dp
from shufflebounds.composition.rules import compose_dp

__all__ = ["svt_log_moment", "svt_stages_epsilon"]

_NODES, _WEIGHTS = gauss_legendre(20)

_STEPS = 8
"""Number of steps of Newton's method for the mode of an integrand; every number gives a valid bound of the mode. Lowered: the
integral extends farther."""


@with_passages
def svt_stages_epsilon(rdp_stage: Callable[[float], float], stages: int, delta: float) -> float:
    r"""Upper bound of eps of sparse vector in stages: each stage is a run with independent noise that halts after some answers.

    The result is the smaller of two bounds of eps at `delta`. The first bound converts the sum :math:`s\,\rho(a)` of the Renyi
    divergences of all s stages to eps, at the best order a. The second bound converts the divergence of each stage to
    :math:`(\varepsilon', \delta')`-privacy and composes the s stages exactly, for the best :math:`\delta'`.

    Parameters
    ----------
    rdp_stage : callable
        Upper bound :math:`\rho(a)` of the Renyi divergence of one stage, as :func:`svt_rdp` returns it. The last stage may have
        fewer answers.
    stages : int
        Number s of stages, 1 to 10**6: the number of answers above the threshold in all stages, divided by the number in one stage,
        rounded up.
    delta : float
        Total failure probability, in (0, 1).

    Returns
    -------
    float
        Upper bound of eps of all stages together, in nats.

    {raises: If an argument lies outside its range, or `rdp_stage` is infinite at every order tried.}

    Notes
    -----
    The published theorems state only a rate of growth, under conditions on the noise and on the number of outputs of a stage. The
    bounds of this function need no conditions.

    References
    ----------
    .. [1] Y. Zhu, Y.-X. Wang, "Improving sparse vector technique with Renyi differential privacy", NeurIPS 2020, Theorems 5 and 6
       of its stage-wise algorithm.
    .. [2] S. Das, "Differential privacy: ideas, concepts and advances", 2022, Theorems 9.13 and 9.14.

    Examples
    --------
    A hundred answers above the threshold, five in each of twenty stages of at most 50 queries. The Gaussian noise has the standard
    deviation 100 for the threshold and 200 for the queries:

    >>> from shufflebounds.selection import svt_rdp, svt_stages_epsilon
    >>> threshold, query = (lambda a: a / (2 * 100**2)), (lambda a: a * 2**2 / (2 * 200**2))
    >>> stage = lambda a: svt_rdp(a, threshold, query, cutoff=5, max_queries=50)
    >>> round(svt_stages_epsilon(stage, 20, 1e-6), 3)
    2.694
    """
    s = _validate.integer("stages", stages, 1, 10**6)
    delta = _validate.real("delta", delta, 0, 1, open_low=True, open_high=True)
    # Every Renyi order, and every fraction of delta that is used for the conversions of the stages, gives a valid bound. With more
    # values the smallest bound is slightly tighter.
    orders = 1 + np.geomspace(1e-2, 1e4, 121)
    rdp = np.array([_validate.real(f"rdp_stage({a:g})", value, 0) if (value := rdp_stage(float(a))) < math.inf else math.inf
                    for a in orders])
    if not np.isfinite(rdp).any():
        raise ValueError("rdp_stage must be finite at some order in (1, 1e4]: it is inf at all that were tried")
    bounds = [rdp_to_dp(orders, s * rdp * (1 + 1e-15), delta=delta)[0]]
    for share in (0.5, 0.1, 0.01, 1e-3):
        each = rdp_to_dp(orders, rdp, delta=share * delta / s)[0]
        if s > 1 and each < 30:
            # The total delta is 1 - (1 - share delta/s)^s (1 - slack), at most delta for slack = (1 - share) delta.
            bounds.append(compose_dp(each, share * delta / s, (1 - share) * delta * (1 - 1e-12), k=s).eps)
    return float(min(bounds))


def svt_log_moment(threshold: float, sigma_threshold: float, sigma_query: float, moment: float = 2.0) -> float:
    r"""Upper bound of the log of a moment of the number of queries of Gaussian sparse vector, with cutoff 1 and answers >= 0.

    K is the number of queries until the run halts, and z the noise of the threshold in standard deviations. The moment is that of
    order g of :math:`\mathbb{E}[K \mid z]`:

    .. math:: \ln \mathbb{E}_z\bigl[\mathbb{E}[K \mid z]^g\bigr] \le \ln \int \varphi(z)\,
        \Phi\Bigl(-\frac{T + \sigma_1 z}{\sigma_2}\Bigr)^{-g} dz

    Parameters
    ----------
    threshold : float
        The threshold T.
    sigma_threshold, sigma_query : float
        Standard deviations :math:`\sigma_1, \sigma_2` of the noise, > 0.
    moment : float
        The moment g >= 1, below :math:`(\sigma_2/\sigma_1)^2`, where the integral becomes infinite.

    Returns
    -------
    float
        Upper bound for all queries with non-negative answers and every dataset; the `log_moment` of :func:`svt_rdp`.

    Raises
    ------
    ValueError
        If an argument is outside its range, or the range of z in the integral would be longer than 5e4.

    Notes
    -----
    Given z, every query is found above the threshold with probability at least :math:`\Phi(-(T+\sigma_1 z)/\sigma_2)`. The integral
    uses Gauss-Legendre rules on panels of half a standard deviation, from z = -12 to a bound of the mode of the integrand plus
    :math:`12 (1 - g \sigma_1^2/\sigma_2^2)^{-1/2}`. The omitted part is below 1e-30 of the integral, because the second derivative
    of the log of the integrand is between -1 and :math:`-(1 - g \sigma_1^2/\sigma_2^2)`: the hazard rate of a normal variable
    increases by less than 1 per unit (Sampford 1953). 1e-9 is added for rounding. The published closed form is false for small
    thresholds: ``published.das2022_sparse_moment``.

    Examples
    --------
    >>> from shufflebounds.selection import svt_log_moment, svt_rdp
    >>> log_moment = svt_log_moment(0.0, 10.0, 10.0 * 3**0.5)
    >>> round(log_moment, 6)
    2.562204
    >>> threshold, query = (lambda a: a / (2 * 10.0**2)), (lambda a: a * 2**2 / (2 * 300.0))
    >>> round(svt_rdp(8, threshold, query, log_moment=log_moment, moment=2.0), 6)
    0.311348
    """
    t = _validate.real("threshold", threshold)
    one = _validate.real("sigma_threshold", sigma_threshold, 0, 1e150, open_low=True)
    two = _validate.real("sigma_query", sigma_query, 0, 1e150, open_low=True)
    most = (two / one) * (two / one)
    g = _validate.real("moment", moment, 1)
    if not g < most:
        raise ValueError(f"moment={g:g} must be < (sigma_query/sigma_threshold)**2 = {most:g}, where the moment is infinite")
    shift, ratio = t / two, one / two
    # The second derivative of the log of the integrand is at most -1/width^2.
    width, place, end = 1 / math.sqrt(1 - g / most), 0.0, 0.0
    for _ in range(_STEPS):
        x = shift + ratio * place
        # The hazard rate phi(x)/Phi(-x) is below x + 1/x, which is used where the difference of logarithms would lose digits.
        hazard = x + 1 / x if x > 50 else math.exp(-x * x / 2 - math.log(2 * math.pi) / 2 - float(log_ndtr(-x)))
        slope = g * ratio * hazard - place
        # The mode of the integrand is at most slope width^2 above any place.
        end = place + max(slope, 0.0) * width**2
        place = min(place + slope / (1 - g / most * min(hazard * (hazard - x), 1.0)), end)
    low, high = -12.0, end + 12 * width
    if not (high - low) * 2 <= MOST_ROWS:
        raise ValueError(f"moment={g:g} is so close to {most:g}, or threshold={t:g} so large, that the integral cannot be bounded: "
                         "pass a smaller moment or threshold")
    panels = math.ceil((high - low) * 2)
    edges = low + 0.5 * np.arange(panels)
    z = (edges[:, None] + 0.5 * _NODES).ravel()
    log_terms = -z * z / 2 - math.log(2 * math.pi) / 2 - g * log_ndtr(-(shift + ratio * z)) + np.tile(np.log(_WEIGHTS / 2), panels)
    return max(0.0, float(logsumexp(log_terms))) * (1 + 1e-12) + 1e-9
