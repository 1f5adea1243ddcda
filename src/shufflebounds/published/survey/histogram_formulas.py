"""False or unproven formulas of the survey of Das 2022: histograms, and sparse vector with Renyi differential privacy."""

from __future__ import annotations

import math

import numpy as np

from shufflebounds._base import validate as _validate
from shufflebounds._base.quadrature import gauss_legendre
from shufflebounds._base.scipy_functions import log_ndtr
from shufflebounds.mechanisms import GaussianMechanism
from shufflebounds.published._glossary import BUDGET, real
from shufflebounds.published._printed import At, Counterexample, printed
from shufflebounds.published.survey.formulas import _SURVEY

__all__ = [
    "das2022_laplace_max_square",
    "das2022_point_sum_tradeoff",
    "das2022_sparse_gaussian_eps",
    "das2022_sparse_moment",
    "das2022_sum_error",
    "das2022_synthetic_rho",
]


def _tradeoff_counterexample() -> Counterexample:
    # The mechanism max(0, q_i + noise), for the count q_i of cell i and two-sided geometric noise of eps = 20, is 20-private. With
    # q = e^-eps, the mean squared error of a cell is at most that without the maximum, 2q/(1-q)^2. The bias of a cell is largest at
    # q_i = 0, where it is q/(1-q^2).
    eps, k = 20.0, 0.2
    cells, q = math.floor(math.exp(eps)), math.exp(-eps)
    point = math.sqrt(2 * q) / (1 - q)
    total = math.sqrt(cells * point**2 + (cells * q / (1 - q * q)) ** 2)
    return Counterexample(
        das2022_point_sum_tradeoff(cells, k, point, total), math.exp(2 * eps * (2 * point + k)),
        "e^(2 eps (2C + k)) for geometric noise, eps = 20, d = floor(e^20), k = 0.2; C is the root mean squared error of a cell",
    )


@printed(
    "false", f"{_SURVEY}, Theorem 9.3, item 1",
    fault="accuracy",
    reason="the proof changes 2C + k records, which must be a whole number; it is false for some k > 0",
    counterexample=_tradeoff_counterexample,
    side="lower",
    returns="The published lower bound. The corrected form is ``histograms.point_error_lower_bound``.",
    where={
        "k": real("Any positive number, as published", 0, 1e12, ends="(]"),
        "point_rmse": real("Root mean squared error C of a cell", 0),
        "sum_rmse": real("Root mean squared error D of the sum", 0),
    },
)
def das2022_point_sum_tradeoff(cells: int, k: float, point_rmse: float, sum_rmse: float) -> float:
    r"""Published lower bound of :math:`e^{2\varepsilon(2C+k)}` for all k > 0: :math:`k(d-1)/(16C+8D+4k)`.

    The bound is for every :math:`\varepsilon`-private release of a histogram of d cells. Its root mean squared error is C
    (`point_rmse`) for a cell and D (`sum_rmse`) for the sum of the cells.

    >>> round(published.das2022_point_sum_tradeoff(1000, 1.0, 2.0, 3.0), 6)
    16.65
    """
    return k * (cells - 1) / (16 * point_rmse + 8 * sum_rmse + 4 * k)


@printed(
    "false", f"{_SURVEY}, Lemma 9.4",
    fault="extraction",
    reason="a misprint: ln(d) + 2 ln(d) + 2 should be ln(d)^2 + 2 ln(d) + 2; false from d = 6 on",
    counterexample=At("d = 100, eps = 1", (100, 1.0),
                      lambda d, _: math.fsum(1 / i for i in range(1, d + 1)) ** 2 + math.fsum(1 / i**2 for i in range(1, d + 1))),
    where={"eps": real("Inverse of their scale", 0, 1e12, ends="(]")},
)
def das2022_laplace_max_square(d: int, eps: float) -> float:
    r"""Published bound of the mean of the largest of d squared Laplace variables: :math:`(\ln d + 2\ln d + 2)/\varepsilon^2`.

    >>> round(published.das2022_laplace_max_square(100, 1.0), 6)
    15.815511
    """
    return (3 * math.log(d) + 2) / eps**2


@printed(
    "false", f"{_SURVEY}, Theorem 9.6, proof of item 2",
    fault="misprint",
    reason="the answer q + max(0, noise) is never below the count q; max(0, q + noise) is meant",
    counterexample=At("divergence of the answers to the counts 1 and 0: the answer 0 has the probabilities 0 and more than 1/2",
                      (0.5,), lambda _: math.inf),
)
def das2022_synthetic_rho(rho: float) -> float:
    r"""Published zero-concentrated privacy rho of the answers :math:`q_i + \max(0, \text{noise})` to counts :math:`q_i`.

    >>> round(published.das2022_synthetic_rho(0.5), 6)
    0.5
    """
    return rho


@printed(
    "false", f"{_SURVEY}, Theorem 9.6, proof of item 3",
    fault="accuracy",
    reason="Laplace noise of scale 2/eps has variance 8/eps^2; even at q = 0, where half of it is cut off, 4/eps^2 remains",
    counterexample=At("E max(0, noise)^2, eps = 1, sum q = 0", (1.0,), lambda eps: 4 / eps**2),
    where={"eps": BUDGET},
)
def das2022_sum_error(eps: float) -> float:
    r"""Published mean squared error of the sum :math:`\max(0, q_* + \mathrm{Lap}(2/\varepsilon))`: :math:`2/\varepsilon^2`.

    :math:`q_*` is the exact sum of the counts of a histogram.

    >>> round(published.das2022_sum_error(1.0), 6)
    2.0
    """
    return 2 / eps**2


def _second_moment(*_: float) -> float:
    """Return E Pr[N(0, 3) >= z]^-2 over z ~ N(0, 1), by quadrature."""
    edges = np.arange(-12.0, 60.0)
    nodes, weights = gauss_legendre(40)
    z = (edges[:, None] + nodes).ravel()
    density = -z * z / 2 - math.log(2 * math.pi) / 2
    return float((np.tile(weights, edges.size) * np.exp(density - 2 * log_ndtr(-z / math.sqrt(3)))).sum())


@printed(
    "false", f"{_SURVEY}, Theorem 9.11, with c_gamma = sqrt(2 pi)",
    fault="accuracy",
    reason="too small for small thresholds, at sigma_2 = sqrt(3) sigma_1 and gamma = 2 for all T < 0.5856 sigma_1",
    counterexample=At("threshold T = 0 with noise sigma_1 = 1, query noise sigma_2 = sqrt(3), moment gamma = 2", (0.0, 1.0, 2.0),
                      _second_moment),
    where={
        "threshold": real("Threshold T, at most 30 standard deviations of its noise", 0),
        "sigma": real("Standard deviation sigma_1, below that of the queries over sqrt(1 + gamma)", 0, 1e12, ends="(]"),
        "moment": real("The moment gamma", 1, 100, ends="(]"),
    },
)
def das2022_sparse_moment(threshold: float, sigma: float, moment: float) -> float:
    r"""Published bound of :math:`\mathbb{E}[\mathbb{E}[K \mid \rho]^\gamma]` for Gaussian sparse vector.

    K is the number of queries until the first answer above the threshold T, and :math:`\rho` is the noise of the threshold, with
    standard deviation :math:`\sigma_1`.

    .. math:: 1 + 2\pi \max\left\{\frac{T(1+\gamma)}{\sigma_1}, 1\right\}^{\gamma} \sqrt{1+\gamma}\; e^{\gamma T^2/(2\sigma_1^2)}

    >>> round(published.das2022_sparse_moment(0.0, 1.0, 2.0), 6)
    11.882796
    """
    t, g = _validate.real("threshold / sigma", threshold / sigma, 0, 30), moment
    return float(1 + 2 * math.pi * max(t * (1 + g), 1.0) ** g * math.sqrt(1 + g) * math.exp(g * t * t / 2))


@printed(
    "unproven", f"{_SURVEY}, the display after Theorem 9.12",
    reason="Theorems 9.12 and 8.8 give A + 2 sqrt(A (ln(1/delta) + ln N)), N the number of outputs, which is larger",
    comparison=At("sigma 20 and 40, one query, delta = 1e-6", (20.0, 40.0, 1, 1, 1e-6),
                  # A single query is above or below the threshold. The optimal test is that of the Gaussian mechanism with the sum
                  # of the noise of the threshold and of the query.
                  lambda one, two, *_: GaussianMechanism(math.hypot(one, two)).epsilon(1e-6), "epsilon"),
    returns="The published epsilon. A proven one: ``selection.svt_rdp`` with ``composition.rdp_to_dp``.",
    where={
        "sigma_threshold": real("Standard deviation of the threshold's noise", 0, 1e12, ends="(]"),
        "sigma_query": real("Standard deviation of the queries' noise", 0, 1e12, ends="(]"),
    },
)
def das2022_sparse_gaussian_eps(sigma_threshold: float, sigma_query: float, cutoff: int, max_queries: int, delta: float) -> float:
    r"""Published epsilon of Gaussian sparse vector of sensitivity 1.

    The noise has the standard deviation :math:`\sigma_1` for the threshold and :math:`\sigma_2` for each of k queries, of which c
    are found above.

    .. math:: A + \sqrt{2A\left(\ln\frac1\delta + \ln c\binom{k}{c}\right)}, \qquad
        A = \frac{1}{2\sigma_1^2} + \frac{2c}{\sigma_2^2}

    >>> round(published.das2022_sparse_gaussian_eps(20.0, 40.0, 1, 100, 1e-6), 6)
    0.305985
    """
    c, k = cutoff, _validate.integer("max_queries", max_queries, cutoff)
    a = 1 / (2 * sigma_threshold**2) + 2 * c / sigma_query**2
    log_choices = math.log(c) + math.lgamma(k + 1) - math.lgamma(c + 1) - math.lgamma(k - c + 1)
    return a + math.sqrt(2 * a * (math.log(1 / delta) + log_choices))
