"""False or unproven formulas of the survey of Das 2022, with the exact numbers: composition, sparse vector, local models, tails.

The verdicts are about the formulas as published in the survey, not about the papers that it cites.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray

from shufflebounds._base import validate as _validate
from shufflebounds._base.quadrature import gauss_legendre
from shufflebounds._base.scipy_functions import log_ndtr
from shufflebounds.published._glossary import BUDGET, Given, real
from shufflebounds.published._printed import At, Counterexample, printed
from shufflebounds.selection import SVTScales, svt_accuracy, svt_scales

__all__ = [
    "das2022_above_threshold_eps",
    "das2022_gaussian_sigma",
    "das2022_hoeffding",
    "das2022_numeric_sparse_accuracy",
    "das2022_numeric_sparse_answer",
    "das2022_numeric_sparse_eps",
    "das2022_numeric_sparse_scale",
    "das2022_point_rounding",
    "das2022_triangle_delta",
]

_SURVEY = "Das 2022, Differential privacy: ideas, concepts and advances"


@printed(
    "false", f"{_SURVEY}, Theorem 2.3",
    fault="accuracy",
    reason="the variables must be independent, which the theorem does not require; its condition 0 < alpha < 1/2 is not needed",
    # In this example the sum M of the ten copies is 0 or 1, and alpha = 0.45 is in the range (0, 1/2) of the theorem.
    counterexample=At("Pr[|M - 1/2| > 0.45] for the sum M of ten copies of one fair bit, which is 0 or 0.1", (0.45, [0.1] * 10),
                      lambda *_: 1.0),
    returns="The published bound; for independent variables it holds.",
    where={
        "deviation": real("The deviation alpha", 0, 0.5, ends="()"),
        "widths": Given("array_like of float, shape (n,)", "Lengths of the variables' intervals, > 0",
                        partial(_validate.real_array, low=0, open_low=True)),
    },
)
def das2022_hoeffding(deviation: float, widths: list[float]) -> float:
    r"""Published bound of :math:`\Pr[|M - \mathbb{E}M| > \alpha]` for a sum M of bounded variables.

    The bound is :math:`2e^{-2\alpha^2/\sum w_i^2}`, where the :math:`w_i` are the lengths of the variables' intervals.

    >>> round(published.das2022_hoeffding(0.45, [0.1] * 10), 6)
    0.034845
    """
    return 2 * math.exp(-2 * deviation**2 / float((np.asarray(widths) ** 2).sum()))


@printed(
    "false", f"{_SURVEY}, section 3.4.3",
    fault="privacy",
    reason="P(S) <= e^eps_1 Q(S) + delta_1 and Q(S) <= e^eps_2 R(S) + delta_2 give delta_1 + e^eps_1 delta_2",
    counterexample=At("P(S), Q(S), R(S) = 3/100, 1/100, 0 with e^eps_1 = 2, e^eps_2 = 1, delta_1 = delta_2 = 1/100", (0.01, 0.01),
                      lambda *_: 0.03),
    where={"first": real("delta_1", 0, 1), "second": real("delta_2, which must be multiplied by e^eps_1", 0, 1)},
)
def das2022_triangle_delta(first: float, second: float) -> float:
    r"""Published delta of a triangle inequality, :math:`\delta_1 + \delta_2`.

    If :math:`P(S) \le e^{\varepsilon_1} Q(S) + \delta_1` and :math:`Q(S) \le e^{\varepsilon_2} R(S) + \delta_2` for all events S,
    this is the published delta of P against R at :math:`\varepsilon_1 + \varepsilon_2`.

    >>> round(published.das2022_triangle_delta(0.01, 0.01), 6)
    0.02
    """
    return first + second


def _gaussian_delta(eps: float, sigma: float) -> float:
    mu = 1 / sigma
    high, low = log_ndtr(mu / 2 - eps / mu), eps + log_ndtr(-mu / 2 - eps / mu)
    return math.exp(high) * -math.expm1(low - high)


def _gaussian_sigma_counterexample() -> Counterexample:
    eps, delta = 10.0, 1e-5
    return Counterexample(
        delta, _gaussian_delta(eps, das2022_gaussian_sigma(eps, delta)), "the target delta, and delta(10) of the published noise"
    )


@printed(
    "false", f"{_SURVEY}, Algorithm 3",
    fault="privacy",
    reason="proven for eps < 1 only, which the algorithm does not require; at delta = 1e-5 it is false for eps >= 8.42",
    counterexample=_gaussian_sigma_counterexample,
    where={"eps": BUDGET},
)
def das2022_gaussian_sigma(eps: float, delta: float) -> float:
    r"""Published standard deviation of Gaussian noise for sensitivity 1: :math:`\sqrt{2\ln(1.25/\delta)}/\varepsilon`.

    >>> round(published.das2022_gaussian_sigma(2.0, 1e-6), 6)
    2.649401
    """
    return math.sqrt(2 * math.log(1.25 / delta)) / eps


def _loss_of_ten_answers(_: float) -> float:
    """Return the privacy loss, at eps = 1, of an outcome of ten queries with five answers below and five above the threshold 0.

    For one dataset, five of the queries have the value 0 and five have the value 1. For its neighbour the values are exchanged.
    """
    nodes, weights = gauss_legendre(20)
    z = (np.arange(-300.0, 300.0)[:, None] + nodes).ravel()
    weight = np.tile(weights, 600) * np.exp(-np.abs(z) / 2) / 4

    def below(x: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.where(x < 0, np.exp(np.minimum(x, 0) / 4) / 2, 1 - np.exp(-np.maximum(x, 0) / 4) / 2))

    one = float((weight * below(z) ** 5 * below(1 - z) ** 5).sum())
    other = float((weight * below(z - 1) ** 5 * below(-z) ** 5).sum())
    return math.log(one / other)


@printed(
    "false", f"{_SURVEY}, Algorithm 5 and Theorem 6.1",
    fault="misprint",
    reason="as published, the algorithm does not halt after its first answer above the threshold; each further one costs eps again",
    counterexample=At("privacy loss of ten answers, five below and five above, eps = 1", (1.0,), _loss_of_ten_answers),
    returns="The published budget, which is valid for the algorithm that halts.",
    where={"eps": BUDGET},
)
def das2022_above_threshold_eps(eps: float) -> float:
    r"""Published privacy of AboveThreshold that answers every query: eps.

    The noise has the scale 2/eps for the threshold and 4/eps for the queries.

    >>> round(published.das2022_above_threshold_eps(1.0), 6)
    1.0
    """
    return eps


@printed(
    "false", f"{_SURVEY}, Algorithm 7, line 2",
    fault="extraction",
    reason="a misprint: eps_2 = 29 eps should be (2/9) eps",
    counterexample=At("sum of the budgets of the parts of NumericSparse, eps = 1, delta = 0", (1.0,),
                      lambda eps: 8 / 9 * eps + 29 * eps / 2),
    where={"eps": BUDGET},
)
def das2022_numeric_sparse_eps(eps: float) -> float:
    r"""Published privacy of NumericSparse at delta = 0: eps, with the budgets that the survey states.

    These budgets are :math:`\varepsilon_1 = \frac89\varepsilon` for the comparisons with the threshold and :math:`\varepsilon_2 =
    29\varepsilon` for the released answers.

    >>> round(published.das2022_numeric_sparse_eps(1.0), 6)
    1.0
    """
    return eps


def _numeric_answer_counterexample() -> Counterexample:
    eps, delta = 1e-3, 1e-6
    budget = 1 / das2022_numeric_sparse_answer(1, delta)
    case = "the target delta, and delta(1e-3) of the noise of one released answer"
    return Counterexample(delta, -math.expm1((eps - budget) / 2), case)


@printed(
    "false", f"{_SURVEY}, Algorithm 7, line 5",
    fault="extraction",
    reason="a misprint: eps_2 = 2/sqrt(512 + 1) should be 2 eps/(sqrt(512) + 1)",
    counterexample=_numeric_answer_counterexample,
    returns="The published scale, the same for every eps.",
)
def das2022_numeric_sparse_answer(cutoff: int, delta: float) -> float:
    r"""Published scale of the noise of the released answers for delta > 0: :math:`\sqrt{32c\ln(1/\delta)}/\varepsilon_2`.

    The survey sets :math:`\varepsilon_2 = 2/\sqrt{513}`.

    >>> round(published.das2022_numeric_sparse_answer(1, 1e-6), 6)
    238.115214
    """
    return float(das2022_numeric_sparse_scale(2 / math.sqrt(513), delta, cutoff))


@printed(
    "unproven", f"{_SURVEY}, Algorithm 7, line 6",
    reason="its parts are (eps_i, delta)-private, so the proof gives 2 delta: it should be ln(2/delta), as in Theorems 6.6 and 6.8",
    comparison=At("eps = 1, delta = 1e-6, 50 answers", (1.0, 1e-6, 50),
                  lambda *case: svt_scales(*case).threshold, "scale of the threshold's noise"),
    returns="The published scale. ``selection.svt_scales`` gives smaller ones, with a proof.",
    where={"eps": BUDGET},
)
def das2022_numeric_sparse_scale(eps: float, delta: float, cutoff: int) -> float:
    r"""Published scale of the threshold's noise of NumericSparse for delta > 0: :math:`\sqrt{32c\ln(1/\delta)}/\varepsilon`.

    >>> round(published.das2022_numeric_sparse_scale(1.0, 1e-6, 50), 6)
    148.676888
    """
    return math.sqrt(32 * cutoff * math.log(1 / delta)) / eps


def _numeric_sparse_error(n_queries: int, beta: float, cutoff: int, eps: float, delta: float) -> float:
    """Return the error that NumericSparse exceeds with probability at most beta, for noise scales that are proven private."""
    scales = svt_scales(eps, delta, cutoff, numeric=True, method="advanced")
    return svt_accuracy(SVTScales(*scales), n_queries, beta)


@printed(
    "false", f"{_SURVEY}, Theorem 6.8, delta > 0",
    fault="extraction",
    reason="the root should not cover sqrt(512) + 1, and a term sqrt(8) ln(2c/beta) for the released numbers is missing",
    counterexample=At("error exceeded with probability 0.05, eps = 1, delta = 1e-6, one answer, ten queries",
                      (10, 0.05, 1, 1.0, 1e-6), _numeric_sparse_error),
    returns="The published error, which is too small.",
    where={"eps": BUDGET},
)
def das2022_numeric_sparse_accuracy(n_queries: int, beta: float, cutoff: int, eps: float, delta: float) -> float:
    r"""Published error of NumericSparse: :math:`(\ln k + \ln(4c/\beta))\sqrt{c\ln(2/\delta)(\sqrt{512}+1)}/\varepsilon`.

    >>> round(published.das2022_numeric_sparse_accuracy(10, 0.05, 1, 1.0, 1e-6), 6)
    123.765023
    """
    k, c = n_queries, cutoff
    spread = math.sqrt(c * math.log(2 / delta) * (math.sqrt(512) + 1))
    return (math.log(k) + math.log(4 * c / beta)) * spread / eps


@printed(
    "false", f"{_SURVEY}, section 7.4.3 and Lemma 7.8",
    fault="misprint",
    reason="x becomes m if x + offset > m, else 0; the mean is x for a uniform offset in 1..m, but not in 1..m-1 as published",
    counterexample=At("mean of the rounded x = 5, m = 10", (5, 10),
                      lambda x, m: sum(m * (x + offset > m) for offset in range(1, m)) / (m - 1)),
    side="both",
    where={"x": real("The value, at most m", 0)},
)
def das2022_point_rounding(x: float, m: int) -> float:
    r"""Published mean of alpha-point rounding of x in [0, m], x itself.

    The survey rounds x to m if x + offset > m, and otherwise to 0. The offset is uniform in 1, ..., m - 1.

    >>> round(published.das2022_point_rounding(5, 10), 6)
    5.0
    """
    return _validate.real("x", x, 0, m)
