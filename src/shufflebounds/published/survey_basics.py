"""Formulas of the survey of Das 2022 that differ from the truth: its example, tails, definitions, composition and local noise."""

from __future__ import annotations

import math

from shufflebounds.published._glossary import BUDGET, integer, real
from shufflebounds.published._printed import At, printed
from shufflebounds.published.survey import _SURVEY
from shufflebounds.selection import small_db_error
from shufflebounds.tails import binom_logsf

__all__ = [
    "das2022_advanced_composition",
    "das2022_census_ages",
    "das2022_census_left",
    "das2022_chernoff",
    "das2022_close_laws",
    "das2022_exponential_scale",
    "das2022_mean_error",
    "das2022_small_db_cube",
    "das2022_small_db_error",
]


@printed(
    "false", f"{_SURVEY}, section 1.3.1",
    reason="ages may coincide, and 0 is one of 126: three of them are C(128, 3) multisets",
    side="both",
    counterexample=At("three people of ages 0 to 125, in any order", (125,), lambda oldest: math.comb(oldest + 3, 3)),
    returns="The printed number of possible ages.",
    where={"oldest": integer("The largest age; the least is 0", 1, 1000)},
)
def das2022_census_ages(oldest: int) -> float:
    r"""Printed number of ways in which three people may be 0 to `oldest` years old: :math:`\binom{\text{oldest}}{3}`.

    >>> published.das2022_census_ages(125)
    317750.0
    """
    return float(math.comb(oldest, 3))


@printed(
    "false", f"{_SURVEY}, section 1.3.1",
    reason="the youngest may be 0 too: 0 to 30 are 31 ages",
    side="both",
    counterexample=At("three people of ages 0 to 125, median 30 and mean 44", (30,),
                      lambda median: sum(median <= 3 * 44 - median - low <= 125 for low in range(median + 1))),
    where={"median": integer("Median of the three ages", 0, 1000)},
)
def das2022_census_left(median: int) -> float:
    """Printed number of ages that a median and a mean leave three people, the oldest no older than 125: the median.

    >>> published.das2022_census_left(30)
    30.0
    """
    return float(median)


@printed(
    "false", f"{_SURVEY}, Theorem 2.2, with m for n",
    reason="the exponent lacks the mean mu and has a 2 too many: e^(-n mu eps^2/3) holds, for eps <= 1",
    counterexample=At("n = 100 bits of mean 0.01, their mean above 0.02", (100, 0.01, 1.0),
                      lambda n, mean, _: math.exp(binom_logsf(2, n, mean))),
    returns="The printed bound. What holds: ``tails.chernoff_logsf``.",
    where={
        "users": integer("Number n of variables in [0, 1]", 1),
        "mean": real("Their mean mu, on which the printed bound does not depend", 0, 1, ends="(]"),
        "eps": real("Relative distance from the mean", 0, 1, ends="(]"),
    },
)
def das2022_chernoff(users: int, mean: float, eps: float) -> float:
    r"""Printed multiplicative tail :math:`\Pr[\bar X > \mu(1+\varepsilon)] \le e^{-2n\varepsilon^2/3}`.

    >>> print(f"{published.das2022_chernoff(100, 0.01, 1.0):.4e}")
    1.1144e-29
    """
    return math.exp(-2 * users * eps * eps / 3)


@printed(
    "false", f"{_SURVEY}, Lemma 5.4, item 2",
    reason="one direction of Y' against Z' says nothing of Z against Y: both are needed, and then it holds with equality",
    # Y and Z are their own Y' and Z'
    counterexample=At("Y = 1 always, Z = 1 half the time, eps = ln 2: delta of Z against Y", (math.log(2), 0.0), lambda *_: 0.5),
    returns="The printed delta, in both directions.",
    where={
        "eps": real("Max divergence of Y' from Z' in nats", 0, 700),
        "distance": real("Statistical distance of Y from Y' and of Z from Z'", 0, 1),
    },
)
def das2022_close_laws(eps: float, distance: float) -> float:
    r"""Printed delta of two laws near ones with :math:`D_\infty(Y'\|Z') \le \varepsilon`: distance times :math:`e^\varepsilon+1`.

    >>> published.das2022_close_laws(0.0, 0.25)
    0.5
    """
    return distance * (math.exp(eps) + 1)


@printed(
    "false", f"{_SURVEY}, section 4.1.2, 'precisely what the Laplace mechanism does'",
    reason="e^(-eps |f - h|/(2 Delta)) is Laplace noise of scale 2 Delta/eps, twice that of the Laplace mechanism",
    side="both",
    counterexample=At("eps = 1, sensitivity 1: the density is e^(-|f - h|/2)/4", (1.0,), lambda eps: 2 / eps),
    where={"eps": BUDGET},
)
def das2022_exponential_scale(eps: float) -> float:
    r"""Printed scale of the exponential mechanism with score :math:`-|f(x) - h|` of sensitivity 1: :math:`1/\varepsilon`.

    >>> published.das2022_exponential_scale(2.0)
    0.5
    """
    return 1 / eps


_LEAST = -100 * math.log1p(math.e)
"""Log of the least chance of a hundred answers of randomized response at eps = 1."""


@printed(
    "false", f"{_SURVEY}, Theorem 8.7",
    reason="n stands for the number k of mechanisms, with which it holds; it is not equivalent to Theorem 5.8, as is said",
    counterexample=At("100 randomized responses of one record, eps = 1, all answering 1",
                      (1.0, 1, math.exp(_LEAST)), lambda *_: math.exp(_LEAST + 100)),
    returns="The printed bound of Pr[M(x) in S].",
    where={
        "eps": real("Budget of each mechanism in nats", 0, 700, ends="(]"),
        "n": integer("What stands for n: the records, as printed, or the mechanisms, as it should be", 1),
        "chance": real("Pr[M(x') in S]", 0, 1, ends="(]"),
    },
)
def das2022_advanced_composition(eps: float, n: int, chance: float) -> float:
    r"""Printed bound :math:`e^{2\varepsilon\sqrt{n \ln(1/Q)}}\, Q` of a composition, with :math:`Q = \Pr[\mathcal{M}(x') \in S]`.

    >>> round(published.das2022_advanced_composition(0.1, 100, 1e-6), 6)
    0.001692
    """
    return math.exp(2 * eps * math.sqrt(n * math.log(1 / chance)) + math.log(chance))


@printed(
    "false", f"{_SURVEY}, section 7.2",
    reason="that is the mean of the error, which Laplace noise exceeds with chance 1/e; the local sample size mixes both up too",
    counterexample=At("n = 1000, eps = 1: what the error exceeds with 5 %", (1000, 1.0), lambda n, eps: math.log(20) / (eps * n)),
    where={"eps": BUDGET},
)
def das2022_mean_error(users: int, eps: float) -> float:
    r"""Printed bound of the error of a mean of n bits with Laplace noise: :math:`|\mu - \hat\mu| \le 1/(\varepsilon n)`.

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
    reason="ln|Q|/alpha^2 records must be a whole number; rounded up, |X|^m grows beyond the print",
    comparison=At("1000 cells, 100 queries, 10^6 records, eps = 1, alpha = 0.05; exact: the best size's bound",
                  (1000, 100, 10**6, 1.0, 0.05, 0.05), lambda *case: small_db_error(*case[:5]).error, "error"),
    returns="The printed error. What holds: ``selection.small_db_error``.",
    where={**_DATABASE, "alpha": real("Error alpha that the size leaves", 0, 1, ends="(]")},
)
def das2022_small_db_error(domain: int, queries: int, records: int, eps: float, beta: float, alpha: float) -> float:
    r"""Printed error of SmallDB: :math:`\alpha + 2\bigl(\ln|X| \ln|Q|/\alpha^2 + \ln(1/\beta)\bigr)/(\varepsilon\|x\|_1)`.

    >>> round(published.das2022_small_db_error(1000, 100, 10**6, 1.0, 0.05, 0.05), 6)
    0.075455
    """
    log_size = math.log(domain) * math.log(queries) / alpha**2
    return alpha + 2 * (log_size + math.log(1 / beta)) / (eps * records)


@printed(
    "unproven", f"{_SURVEY}, Theorem 6.12",
    reason="solves for alpha as if alpha <= 1 and the size were whole; above 1 it says nothing, as queries lie in [0, 1]",
    comparison=At("1000 cells, 100 queries, 10^6 records, eps = 1; exact: the best size's bound",
                  (1000, 100, 10**6, 1.0, 0.05), lambda *case: small_db_error(*case).error, "error"),
    where=_DATABASE,
)
def das2022_small_db_cube(domain: int, queries: int, records: int, eps: float, beta: float) -> float:
    r"""Printed error of SmallDB run with alpha/2: :math:`\bigl((16\ln|X|\ln|Q| + 4\ln(1/\beta))/(\varepsilon\|x\|_1)\bigr)^{1/3}`.

    >>> round(published.das2022_small_db_cube(1000, 100, 10**6, 1.0, 0.05), 6)
    0.080464
    """
    return float(((16 * math.log(domain) * math.log(queries) + 4 * math.log(1 / beta)) / (eps * records)) ** (1 / 3))
