"""Formulas of the survey of Das 2022 that differ from the truth: its example, tails, definitions, composition and local noise."""

from __future__ import annotations

import math

from shufflebounds.published._glossary import BUDGET, integer, real
from shufflebounds.published._printed import Comparison, Counterexample, printed
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


def _ages_counterexample() -> Counterexample:
    return Counterexample(das2022_census_ages(125), math.comb(128, 3), "three people of ages 0 to 125, in any order")


@printed(
    verdict="false",
    reason="ages may coincide, and 0 is one of 126: three of them are C(128, 3) multisets",
    reference=f"{_SURVEY}, section 1.3.1",
    side="both",
    counterexample=_ages_counterexample,
    returns="The printed number of possible ages.",
    where={"oldest": integer("The largest age; the least is 0", 1, 1000)},
)
def das2022_census_ages(oldest: int) -> float:
    r"""Printed number of ways in which three people may be 0 to `oldest` years old: :math:`\binom{\text{oldest}}{3}`.

    >>> published.das2022_census_ages(125)
    317750.0
    """
    return float(math.comb(oldest, 3))


def _left_counterexample() -> Counterexample:
    truth = sum(1 for low in range(31) if 30 <= 102 - low <= 125)
    return Counterexample(das2022_census_left(30), truth, "three people of ages 0 to 125, median 30 and mean 44")


@printed(
    verdict="false",
    reason="the youngest may be 0 too: 0 to 30 are 31 ages",
    reference=f"{_SURVEY}, section 1.3.1",
    side="both",
    counterexample=_left_counterexample,
    returns="The printed number of ages left.",
    where={"median": integer("Median of the three ages", 0, 1000)},
)
def das2022_census_left(median: int) -> float:
    """Printed number of ages that a median and a mean leave three people, the oldest no older than 125: the median.

    >>> published.das2022_census_left(30)
    30.0
    """
    return float(median)


def _chernoff_counterexample() -> Counterexample:
    truth = math.exp(binom_logsf(2, 100, 0.01))
    return Counterexample(das2022_chernoff(100, 0.01, 1.0), truth, "n = 100 bits of mean 0.01, their mean above 0.02")


@printed(
    verdict="false",
    reason="the exponent lacks the mean mu and has a 2 too many: e^(-n mu eps^2/3) holds, for eps <= 1",
    reference=f"{_SURVEY}, Theorem 2.2, with m for n",
    counterexample=_chernoff_counterexample,
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


def _close_counterexample() -> Counterexample:
    # Y always 1; Z is 1 with chance e^-eps. They are their own Y' and Z'
    case = "Y = 1 always, Z = 1 half the time, eps = ln 2: delta of Z against Y"
    return Counterexample(das2022_close_laws(math.log(2), 0.0), 0.5, case)


@printed(
    verdict="false",
    reason="one direction of Y' against Z' says nothing of Z against Y: both are needed, and then it holds with equality",
    reference=f"{_SURVEY}, Lemma 5.4, item 2",
    counterexample=_close_counterexample,
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


def _scale_counterexample() -> Counterexample:
    return Counterexample(das2022_exponential_scale(1.0), 2.0, "eps = 1, sensitivity 1: the density is e^(-|f - h|/2)/4")


@printed(
    verdict="false",
    reason="e^(-eps |f - h|/(2 Delta)) is Laplace noise of scale 2 Delta/eps, twice that of the Laplace mechanism",
    reference=f"{_SURVEY}, section 4.1.2, 'precisely what the Laplace mechanism does'",
    side="both",
    counterexample=_scale_counterexample,
    returns="The printed scale.",
    where={"eps": BUDGET},
)
def das2022_exponential_scale(eps: float) -> float:
    r"""Printed scale of the exponential mechanism with score :math:`-|f(x) - h|` of sensitivity 1: :math:`1/\varepsilon`.

    >>> published.das2022_exponential_scale(2.0)
    0.5
    """
    return 1 / eps


def _composition_counterexample() -> Counterexample:
    # a hundred randomized responses to one record, all answering 1
    log_least = -100 * math.log1p(math.e)
    claim = das2022_advanced_composition(1.0, 1, math.exp(log_least))
    return Counterexample(claim, math.exp(log_least + 100), "100 randomized responses of one record, eps = 1, all answering 1")


@printed(
    verdict="false",
    reason="n stands for the number k of mechanisms, with which it holds; it is not equivalent to Theorem 5.8, as is said",
    reference=f"{_SURVEY}, Theorem 8.7",
    counterexample=_composition_counterexample,
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


def _mean_counterexample() -> Counterexample:
    case = "n = 1000, eps = 1: what the error exceeds with 5 %"
    return Counterexample(das2022_mean_error(1000, 1.0), math.log(20) / 1000, case)


@printed(
    verdict="false",
    reason="that is the mean of the error, which Laplace noise exceeds with chance 1/e; the local sample size mixes both up too",
    reference=f"{_SURVEY}, section 7.2",
    counterexample=_mean_counterexample,
    returns="The printed bound.",
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


def _database_compared() -> Comparison:
    printed_error = das2022_small_db_error(1000, 100, 10**6, 1.0, 0.05, 0.05)
    exact = small_db_error(1000, 100, 10**6, 1.0, 0.05).error
    setting = "1000 cells, 100 queries, 10^6 records, eps = 1, alpha = 0.05; exact: the best size's bound"
    return Comparison(setting, "error", printed_error, exact)


@printed(
    verdict="unproven",
    reason="ln|Q|/alpha^2 records must be a whole number; rounded up, |X|^m grows beyond the print",
    reference=f"{_SURVEY}, Theorem 6.11",
    comparison=_database_compared,
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


def _cube_compared() -> Comparison:
    exact = small_db_error(1000, 100, 10**6, 1.0, 0.05).error
    setting = "1000 cells, 100 queries, 10^6 records, eps = 1; exact: the best size's bound"
    return Comparison(setting, "error", das2022_small_db_cube(1000, 100, 10**6, 1.0, 0.05), exact)


@printed(
    verdict="unproven",
    reason="solves for alpha as if alpha <= 1 and the size were whole; above 1 it says nothing, as queries lie in [0, 1]",
    reference=f"{_SURVEY}, Theorem 6.12",
    comparison=_cube_compared,
    returns="The printed error.",
    where=_DATABASE,
)
def das2022_small_db_cube(domain: int, queries: int, records: int, eps: float, beta: float) -> float:
    r"""Printed error of SmallDB run with alpha/2: :math:`\bigl((16\ln|X|\ln|Q| + 4\ln(1/\beta))/(\varepsilon\|x\|_1)\bigr)^{1/3}`.

    >>> round(published.das2022_small_db_cube(1000, 100, 10**6, 1.0, 0.05), 6)
    0.080464
    """
    return float(((16 * math.log(domain) * math.log(queries) + 4 * math.log(1 / beta)) / (eps * records)) ** (1 / 3))
