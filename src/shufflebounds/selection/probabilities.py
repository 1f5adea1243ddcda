"""Selection by noisy scores: the probability of each candidate, and a bound of the best score minus the chosen one."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from shufflebounds._base import validate as _validate
from shufflebounds._base.docs import with_passages
from shufflebounds._base.limits import LARGEST_EXPONENT
from shufflebounds._base.types import ULP, FloatArray
from shufflebounds.selection.noisy_max import log_flip_and_permute, log_noisy_max

__all__ = ["selection_error", "selection_log_probs", "selection_probs"]

Noise = Literal["gumbel", "laplace", "exponential"]

_NOISES = ("gumbel", "laplace", "exponential")


@with_passages
def selection_probs(
    scores: ArrayLike, eps: float, *, sensitivity: float = 1.0, monotone: bool = False, noise: Noise = "gumbel"
) -> FloatArray:
    r"""Probability of each candidate to be the arg-max of the noisy scores, in an eps-private selection.

    .. math:: \Pr[\arg\max_j (c_j + Z_j) = i], \qquad Z_j \text{ independent noise of scale } b = 2\Delta/\varepsilon
        \quad (\Delta/\varepsilon \text{ if monotone})

    Parameters
    ----------
    scores : array_like of float, shape (k,)
        Score c_i of each candidate, larger is better. The run time is about linear in the number of candidates.
    eps : float
        Privacy budget of the selection in nats, in (0, 700].
    sensitivity : float
        Largest change :math:`\Delta` of any score by one person, > 0.
    monotone : bool
        Whether one person can only change all scores in the same direction, as for counts under add/remove adjacency. Then half the
        noise is enough. If `monotone` is set for scores that are not monotone, the selection is only 2 eps-private.
    noise : {"gumbel", "laplace", "exponential"}
        "gumbel" is the exponential mechanism, "laplace" is report noisy max, and "exponential" (one-sided noise) is
        permute-and-flip, whose expected error is at most that of the exponential mechanism.

    Returns
    -------
    ndarray, shape (k,)
        The probabilities. They are approximations with a small relative error, not bounds; their sum is 1 up to that error.

    {raises: If an argument lies outside its range, or the scores are further apart than 1e8 times b.}

    Notes
    -----
    Each kind of noise has its own formula:

    - "gumbel": the probability is a softmax of the scores divided by b.
    - "exponential": it is the integral of :math:`s_i \prod_{j \ne i} (1 - s_j t)` over t in [0, 1], with :math:`s_j = e^{-(\max c
      - c_j)/b}`.
    - "laplace": it is the integral of the density of one noisy score times the distribution functions of the others. The part of
      this integral above the largest score has the same form as the integral for "exponential"; below, the integrand is piecewise
      analytic.

    The integrals for "exponential" and "laplace" use Gauss-Legendre quadrature on panels, and all terms are positive. Above the
    largest of k scores the number of panels grows with log k; between two neighbouring scores it grows at most in proportion to
    the number of candidates above both. The relative error of a probability is below 1e-13 (measured against 70-digit quadrature
    and the enumeration of all permutations), plus the roundoff of its logarithm for small probabilities.

    References
    ----------
    .. [1] F. McSherry, K. Talwar, "Mechanism design via differential privacy", FOCS 2007.
    .. [2] C. Dwork, A. Roth, "The algorithmic foundations of differential privacy", 2014, Claim 3.9: Laplace noise of scale
       1/eps for counts, that is, for monotone scores only.
    .. [3] R. McKenna, D. Sheldon, "Permute-and-flip: a new mechanism for differentially private selection", NeurIPS 2020.
    .. [4] Z. Ding et al., "The permute-and-flip mechanism is identical to report-noisy-max with exponential noise", 2021.

    Examples
    --------
    >>> from shufflebounds.selection import selection_probs
    >>> for noise in ("gumbel", "laplace", "exponential"):
    ...     print(selection_probs([0, 1, 5], 2.0, noise=noise).round(6).tolist())
    [0.006573, 0.017868, 0.975559]
    [0.009063, 0.025897, 0.965039]
    [0.003348, 0.009137, 0.987514]
    """
    return np.exp(selection_log_probs(scores, eps, sensitivity=sensitivity, monotone=monotone, noise=noise))


@with_passages
def selection_log_probs(
    scores: ArrayLike, eps: float, *, sensitivity: float = 1.0, monotone: bool = False, noise: Noise = "gumbel"
) -> FloatArray:
    """Natural logarithms of :func:`selection_probs`, also where a probability underflows.

    Parameters
    ----------
    scores, eps, sensitivity, monotone, noise
        As in :func:`selection_probs`.

    Returns
    -------
    ndarray, shape (k,)
        Natural logarithms of the probabilities.

    {raises: As :func:`selection_probs`.}

    Examples
    --------
    Two scores differ by t = 1000 noise scales. Laplace noise chooses the lower score with probability e^-t (1 + t/2)/2:

    >>> from shufflebounds.selection import selection_log_probs
    >>> selection_log_probs([0, 1000], 2.0, noise="laplace").round(9).tolist()
    [-994.476541079, 0.0]
    """
    eps = _validate.real("eps", eps, 0, LARGEST_EXPONENT, open_low=True)
    sensitivity = _validate.real("sensitivity", sensitivity, 0, open_low=True)
    _validate.choice("noise", noise, _NOISES)
    if not isinstance(monotone, bool | np.bool_):
        raise ValueError(f"monotone={monotone!r} must be True or False")
    array = _validate.real_array("scores", scores)
    if array.ndim != 1:
        raise ValueError(f"scores has shape {array.shape}: it must be one-dimensional")
    rate = eps / (sensitivity * (1 if monotone else 2))
    # Scores are taken in units of the noise scale, descending from 0. Scores that are equal after rounding count as equal.
    with np.errstate(over="ignore", invalid="ignore"):
        gaps = array.max() - array
        gaps = np.where(gaps > 0, gaps * rate, 0.0)
    levels, where, counts = np.unique(gaps, return_inverse=True, return_counts=True)
    y = 0.0 - levels
    # The logs of the probabilities are about as large as the gaps in units of the noise scale. At gaps of 1e8 their rounding error
    # is 1e-8, which is the relative error of the probabilities.
    most = 1e8
    if not y[-1] >= -most:
        raise ValueError(f"scores are {-y[-1]:g} times the noise scale apart: they must be within {most:g}")
    weights = counts.astype(np.float64)
    if noise == "gumbel":
        log_probs = y - math.log(math.fsum((weights * np.exp(y)).tolist()))
    elif noise == "laplace":
        log_probs = _one_level(weights) if y.size == 1 else log_noisy_max(y, weights)
    else:
        log_probs = _one_level(weights) if y.size == 1 else y + log_flip_and_permute(y, weights)
    return np.asarray(np.minimum(log_probs, 0.0)[where])


def _one_level(counts: FloatArray) -> FloatArray:
    """Return the log probability of each candidate if all scores are equal."""
    return -np.log(counts)


@with_passages
def selection_error(candidates: float, eps: float, beta: float, *, optimal: float = 1, sensitivity: float = 1.0) -> float:
    r"""Upper bound, with probability 1 - beta, of the best score minus the score that the exponential mechanism chooses.

    .. math:: \Pr\Bigl[\max_j c_j - c_I \ge \frac{2\Delta}{\varepsilon}\Bigl(\ln\frac{k}{k^*} + \ln\frac1\beta\Bigr)\Bigr] \le \beta

    Here :math:`c_j` are the scores, I is the chosen candidate, and :math:`\Delta` is `sensitivity`.

    Parameters
    ----------
    candidates : int or float
        Number k of candidates, >= 1; a float may be as large as 1e300 (SmallDB has numbers of databases like \|X\|**m).
    eps : float
        Privacy budget of the selection in nats, in (0, 700].
    beta : float
        Probability that the error exceeds the bound, in (0, 1).
    optimal : int or float
        Number k* of candidates that share the best score, in 1..`candidates`.
    sensitivity : float
        As in :func:`selection_probs`, > 0.

    Returns
    -------
    float
        Upper bound of the (1 - beta)-quantile of the best score minus the chosen score. For monotone scores half of this bound is
        valid, because eps may be doubled. The bound also holds for permute-and-flip.

    {raises}

    References
    ----------
    .. [1] C. Dwork, A. Roth, "The algorithmic foundations of differential privacy", 2014, Theorem 3.11.
    .. [2] R. McKenna, D. Sheldon, "Permute-and-flip", NeurIPS 2020, Theorem 2: never more errors than the exponential mechanism.

    Examples
    --------
    >>> from shufflebounds.selection import selection_error
    >>> round(selection_error(1000, 1.0, 0.05), 6)
    19.806975
    """
    k = _validate.real("candidates", candidates, 1)
    eps = _validate.real("eps", eps, 0, LARGEST_EXPONENT, open_low=True)
    beta = _validate.failure(beta)
    best = _validate.real("optimal", optimal, 1, k)
    sensitivity = _validate.real("sensitivity", sensitivity, 0, open_low=True)
    # log(k/best) is computed as log1p((k - best)/best), without cancellation if k is close to `best`. The relative rounding errors
    # of all operations sum to at most 4 ulp.
    return 2 * sensitivity / eps * (math.log1p((k - best) / best) - math.log(beta)) * (1 + 4 * ULP)
