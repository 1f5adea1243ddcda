"""False or unproven formulas of the survey of Das 2022: tails, definitions, composition and local noise."""

from __future__ import annotations

import math

from shufflebounds.published._glossary import BUDGET, integer, real
from shufflebounds.published._printed import At, printed
from shufflebounds.published.survey.formulas import _SURVEY
from shufflebounds.selection import small_db_error
from shufflebounds.tails import binom_logsf

__all__ = [
    "das2022_advanced_composition",
    "das2022_chernoff",
    "das2022_close_distributions",
    "das2022_exponential_scale",
    "das2022_mean_error",
    "das2022_small_db_cube",
    "das2022_small_db_error",
]


@printed(
    "false", f"{_SURVEY}, Theorem 2.2, with m for n",
    fault="accuracy",
    reason="the exponent lacks the mean mu and has an extra factor 2: e^(-n mu eps^2/3) holds, for eps <= 1",
    counterexample=At("probability that the mean of n = 100 bits of expectation 0.01 is above 0.02", (100, 0.01, 1.0),
                      lambda n, mean, _: math.exp(binom_logsf(2, n, mean))),
    returns="The published bound. A valid one: ``tails.chernoff_logsf``.",
    where={
        "users": integer("Number n of variables in [0, 1]", 1),
        "mean": real("The expectation mu, which the published bound does not use", 0, 1, ends="(]"),
        "eps": real("Relative distance from mu", 0, 1, ends="(]"),
    },
)
def das2022_chernoff(users: int, mean: float, eps: float) -> float:
    r"""Published multiplicative tail :math:`\Pr[\bar X > \mu(1+\varepsilon)] \le e^{-2n\varepsilon^2/3}`.

    :math:`\bar X` is the mean of n independent variables in [0, 1], and :math:`\mu` its expectation.

    >>> print(f"{published.das2022_chernoff(100, 0.01, 1.0):.4e}")
    1.1144e-29
    """
    return math.exp(-2 * users * eps * eps / 3)


@printed(
    "false", f"{_SURVEY}, Lemma 5.4, item 2",
    fault="privacy",
    reason="the max divergence of Y' from Z' implies nothing for Z against Y; if it is small in both directions, the lemma holds",
    # The counterexample takes Y' = Y and Z' = Z.
    counterexample=At("Y = 1 always, Z = 1 half the time, eps = ln 2: delta of Z against Y", (math.log(2), 0.0), lambda *_: 0.5),
    returns="The published delta, in both directions.",
    where={
        "eps": real("Max divergence of Y' from Z' in nats", 0, 700),
        "distance": real("Statistical distance of Y from Y' and of Z from Z'", 0, 1),
    },
)
def das2022_close_distributions(eps: float, distance: float) -> float:
    r"""Published delta of two distributions Y and Z that are close to Y' and Z' with :math:`D_\infty(Y'\|Z') \le \varepsilon`.

    .. math:: d\,(e^\varepsilon+1), \qquad d \text{ the statistical distance of Y from Y' and of Z from Z'}

    >>> published.das2022_close_distributions(0.0, 0.25)
    0.5
    """
    return distance * (math.exp(eps) + 1)


@printed(
    "false", f"{_SURVEY}, section 4.1.2, 'precisely what the Laplace mechanism does'",
    fault="accuracy",
    reason="e^(-eps |f - h|/(2 Delta)) is Laplace noise of scale 2 Delta/eps, twice that of the Laplace mechanism",
    side="both",
    counterexample=At("scale for eps = 1, sensitivity Delta = 1", (1.0,), lambda eps: 2 / eps),
    where={"eps": BUDGET},
)
def das2022_exponential_scale(eps: float) -> float:
    r"""Published scale of the Laplace noise that is the exponential mechanism with a score of sensitivity 1: :math:`1/\varepsilon`.

    The score of an output h for the dataset x is :math:`-|f(x) - h|`.

    >>> published.das2022_exponential_scale(2.0)
    0.5
    """
    return 1 / eps


@printed(
    "false", f"{_SURVEY}, Theorem 8.7",
    fault="misprint",
    reason="n should be the number k of mechanisms, for which it holds; it is not equivalent to Theorem 5.8 as claimed",
    counterexample=At("probability that 100 randomized responses of one record (n = 1) are all 1, eps = 1",
                      (1.0, 1, (1 + math.e) ** -100), lambda *_: (math.e / (1 + math.e)) ** 100),
    returns="The published bound of Pr[M(x) in S].",
    where={
        "eps": real("Budget of each mechanism in nats", 0, 700, ends="(]"),
        "n": integer("The value used for n: the number of records, as published, or of mechanisms, as it should be", 1),
        "chance": real("Pr[M(x') in S]", 0, 1, ends="(]"),
    },
)
def das2022_advanced_composition(eps: float, n: int, chance: float) -> float:
    r"""Published bound :math:`e^{2\varepsilon\sqrt{n \ln(1/Q)}}\, Q` of the probability of an event under a composition.

    Each mechanism of the composition has the budget :math:`\varepsilon`. Q is the probability of the same event for the
    neighbouring dataset.

    >>> round(published.das2022_advanced_composition(0.1, 100, 1e-6), 6)
    0.001692
    """
    return math.exp(2 * eps * math.sqrt(n * math.log(1 / chance)) + math.log(chance))


@printed(
    "false", f"{_SURVEY}, section 7.2",
    fault="accuracy",
    reason="1/(eps n) is the mean of the absolute error, which Laplace noise exceeds with probability 1/e",
    counterexample=At("95 % quantile of the error, n = 1000, eps = 1", (1000, 1.0), lambda n, eps: math.log(20) / (eps * n)),
    where={"eps": BUDGET},
)
def das2022_mean_error(users: int, eps: float) -> float:
    r"""Published bound of the error of a mean of n bits with Laplace noise: :math:`|\mu - \hat\mu| \le 1/(\varepsilon n)`.

    :math:`\mu` is the mean, and :math:`\hat\mu` is the mean plus noise of scale :math:`1/(\varepsilon n)`.

    >>> published.das2022_mean_error(1000, 1.0)
    0.001
    """
    return 1 / (eps * users)


_DATABASE = {
    "domain": integer("Number \\|X\\| of possible records", 2),
    "queries": integer("Number \\|Q\\| of queries", 3),
    "records": integer("Number of records", 1),
    "eps": BUDGET,
}


@printed(
    "unproven", f"{_SURVEY}, Theorem 6.11",
    reason="ln|Q|/alpha^2 records must be a whole number; rounded up, |X|^m is larger than published",
    comparison=At("1000 cells, 100 queries, 10^6 records, eps = 1, alpha = 0.05; exact: the bound for the best size",
                  (1000, 100, 10**6, 1.0, 0.05, 0.05), lambda *case: small_db_error(*case[:5]).error, "error"),
    returns="The published error. A valid one: ``selection.small_db_error``.",
    where={**_DATABASE, "alpha": real("Part alpha of the error, due to the size of the small database", 0, 1, ends="(]")},
)
def das2022_small_db_error(domain: int, queries: int, records: int, eps: float, beta: float, alpha: float) -> float:
    r"""Published error of SmallDB: :math:`\alpha + 2\bigl(\ln|X| \ln|Q|/\alpha^2 + \ln(1/\beta)\bigr)/(\varepsilon\|x\|_1)`.

    :math:`|X|` is `domain`, :math:`|Q|` is `queries`, and :math:`\|x\|_1` is `records`.

    >>> round(published.das2022_small_db_error(1000, 100, 10**6, 1.0, 0.05, 0.05), 6)
    0.075455
    """
    log_size = math.log(domain) * math.log(queries) / alpha**2
    return alpha + 2 * (log_size + math.log(1 / beta)) / (eps * records)


@printed(
    "unproven", f"{_SURVEY}, Theorem 6.12",
    reason="solves for alpha as if alpha <= 1 and the size were whole; above 1 it is trivial, as queries are in [0, 1]",
    comparison=At("1000 cells, 100 queries, 10^6 records, eps = 1; exact: the bound for the best size",
                  (1000, 100, 10**6, 1.0, 0.05), lambda *case: small_db_error(*case).error, "error"),
    where=_DATABASE,
)
def das2022_small_db_cube(domain: int, queries: int, records: int, eps: float, beta: float) -> float:
    r"""Published error of SmallDB, in closed form: :math:`\bigl((16\ln|X|\ln|Q| + 4\ln(1/\beta))/(\varepsilon\|x\|_1)\bigr)^{1/3}`.

    :math:`|X|` is `domain`, :math:`|Q|` is `queries`, and :math:`\|x\|_1` is `records`.

    >>> round(published.das2022_small_db_cube(1000, 100, 10**6, 1.0, 0.05), 6)
    0.080464
    """
    return float(((16 * math.log(domain) * math.log(queries) + 4 * math.log(1 / beta)) / (eps * records)) ** (1 / 3))
