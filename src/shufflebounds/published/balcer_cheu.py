"""Published formulas of Balcer and Cheu, "Separating local and shuffled differential privacy via histograms", 2020.

The formulas are about the protocols zsum (`ZeroSum`) and histogram. A noise bit of a user is 0 with probability gamma, and Y ~
Bin(n, gamma) is the number of zeros.
"""

from __future__ import annotations

import math

from shufflebounds.published._glossary import integer, real
from shufflebounds.published._printed import At, printed
from shufflebounds.shuffle import BinomialNoise, ShuffledHistogram, ZeroSum
from shufflebounds.tails import binom_logcdf, binom_logsf

__all__ = [
    "balcer_cheu_delta",
    "balcer_cheu_error",
    "balcer_cheu_gamma",
    "balcer_cheu_histogram_delta",
    "balcer_cheu_histogram_error",
    "balcer_cheu_smooth",
]

_PAPER = "Balcer and Cheu 2020"


TO_ONE = real("Target privacy loss in nats", 0, 1, ends="(]")


def _level(delta: float) -> float:
    """Return ln(2/delta), which occurs in most formulas of this module."""
    return math.log(2) - math.log(delta)


@printed(
    "proven", f"{_PAPER}, Theorem 3.1 i",
    reason="proven for eps <= 1, where tanh(eps/2) >= eps/sqrt(5), but not tight: the comparison shows the ratio",
    comparison=At("n = 10^6, eps = 1, delta = 10^-6", (10**6, 1.0, 1e-6),
                  lambda n, eps, delta: ZeroSum.calibrate(users=n, eps=eps, delta=delta).gamma, "gamma"),
    returns="The published gamma; above 1/2 there are too few users for the theorem.",
    where={"eps": TO_ONE},
)
def balcer_cheu_gamma(users: int, eps: float, delta: float) -> float:
    r"""Published probability of a zero noise bit, :math:`\gamma = 50 \ln(2/\delta)/(\varepsilon^2 n)`.

    In the protocol zsum (:class:`~shufflebounds.shuffle.ZeroSum`) each of n users sends their bit and a noise bit.

    >>> round(published.balcer_cheu_gamma(10**4, 0.5, 1e-6), 10)
    0.2901731548
    """
    return 50 * _level(delta) / (eps * eps * users)


@printed(
    "proven", f"{_PAPER}, Corollary A.4",
    reason="two tail bounds and a union bound; it needs eps <= 1",
    comparison=At("n = 10^4, gamma = 0.1, eps = 1", (10**4, 0.1, 1.0),
                  lambda n, gamma, eps: BinomialNoise(n, gamma).delta(eps), "delta"),
    returns="Upper bound of delta, as published; may exceed 1.",
    where={
        "users": integer("Number n of noise bits", 1),
        "gamma": real("Probability gamma of the noise Bin(n, gamma)", 0, 0.5, ends="(]"),
        "eps": real("Privacy loss in nats", 0, 1, ends="(]"),
    },
)
def balcer_cheu_delta(users: int, gamma: float, eps: float) -> float:
    r"""Published delta of a count with noise Bin(n, gamma), :math:`\delta = 2 e^{-\gamma\varepsilon^2 n/50}`.

    >>> print(f"{published.balcer_cheu_delta(10**4, 0.1, 1.0):.9e}")
    4.122307245e-09
    """
    return 2 * math.exp(-gamma * eps * eps * users / 50)


@printed(
    "proven", f"{_PAPER}, Theorem 3.2 i with Corollary A.4",
    reason="two bins change, and their guarantees are added; the loss of this step is small relative to that of Corollary A.4",
    comparison=At("n = 10^4, d = 100, gamma = 0.3, eps = 1", (10**4, 0.3, 1.0),
                  lambda n, gamma, eps: ShuffledHistogram(n, 100, gamma).delta(eps), "delta"),
    returns="Upper bound of delta, as published, for every number of bins; may exceed 1.",
    where={"eps": real("Privacy loss in nats", 0, 2, ends="(]")},
)
def balcer_cheu_histogram_delta(users: int, gamma: float, eps: float) -> float:
    r"""Published delta of the histogram, :math:`4 e^{-\gamma\varepsilon^2 n/200}`: twice :func:`balcer_cheu_delta` at half the eps.

    The histogram (:class:`~shufflebounds.shuffle.ShuffledHistogram`) is zsum for each bin; one user affects two bins.

    >>> print(f"{published.balcer_cheu_histogram_delta(10**5, 0.1, 1.0):.9e}")
    7.714999392e-22
    """
    return float(2 * balcer_cheu_delta(users, gamma, eps / 2))


def _ratio_above(users: int, gamma: float, eps: float) -> float:
    """Return the probability of a large likelihood ratio at Y ~ Bin(n, gamma), for the worse of the shifts k = 1 and -1.

    A value y has a large likelihood ratio if Pr[Y = y] >= e^eps Pr[Y = y + k].
    """
    big = math.exp(eps)
    # The ratio Pr[Y = y] / Pr[Y = y - 1] is (n - y + 1) gamma / (y (1 - gamma)), infinite at y = 0. The ratio decreases in y. So
    # the values y with Pr[Y = y] >= e^eps Pr[Y = y + k] are 0, ..., `low` for k = -1, and `high`, ..., n for k = 1.
    low = math.floor((users + 1) * gamma / (gamma + big * (1 - gamma)) * (1 + 1e-15))
    high = math.ceil((big * gamma * users - (1 - gamma)) / (1 - gamma + big * gamma) * (1 - 1e-15))
    above = binom_logsf(high - 1, users, gamma) if high > 0 else 0.0
    return math.exp(max(float(binom_logcdf(low, users, gamma)), float(above)))


@printed(
    "proven", f"{_PAPER}, Lemma A.3",
    reason="proven for shifts k' other than 0, which Definition A.1 does not exclude, and for alpha < 1; eps is infinite at 1",
    comparison=At("n = 10^4, gamma = 0.1, eps = 1, shift by 1", (10**4, 0.1, math.tanh(0.5)),
                  lambda n, gamma, _: _ratio_above(n, gamma, 1.0), "Pr[ratio >= e^eps]"),
    returns="Upper bound of the probability, as published; may exceed 1.",
    where={
        "users": integer("Number n of noise bits", 1),
        "gamma": real("Probability gamma of the noise Bin(n, gamma)", 0, 0.5, ends="(]"),
        "alpha": real(r":math:`\alpha = \tanh(\varepsilon/2)`", 0, 1, ends="()"),
    },
)
def balcer_cheu_smooth(users: int, gamma: float, alpha: float) -> float:
    r"""Published probability that a shift by k divides a likelihood of Bin(n, gamma) by :math:`e^{|k|\varepsilon}` or more.

    Here :math:`\varepsilon = \ln\frac{1+\alpha}{1-\alpha}`, and Y and Y' are independent with the distribution Bin(n, gamma).
    Balcer and Cheu call the bound the delta of smoothness.

    .. math:: \Pr_Y\Bigl[\frac{\Pr[Y' = Y]}{\Pr[Y' = Y + k]} \ge e^{|k|\varepsilon}\Bigr]
        \le e^{-\alpha^2\gamma n/8} + e^{-\alpha^2\gamma n/(8 + 2\alpha)}, \quad 1 \le |k| \le \alpha\gamma n/2

    >>> print(f"{published.balcer_cheu_smooth(10**4, 0.1, 0.5):.9e}")
    8.903141140e-13
    """
    weight = alpha * alpha * gamma * users
    return math.exp(-weight / 8) + math.exp(-weight / (8 + 2 * alpha))


def _confidence(beta: float, smallest: float) -> float:
    if not beta >= smallest:
        raise ValueError(f"beta={beta:g} must be >= {smallest:.6g}, for the error bound to hold")
    return beta


@printed(
    "proven", f"{_PAPER}, Theorem 3.1 ii",
    reason="almost tight for its gamma; the published gamma is much larger than needed and dominates the error",
    comparison=At("n = 10^5, eps = 0.5, delta = 10^-6, beta = 0.05, published gamma", (10**5, 0.5, 1e-6, 0.05),
                  lambda n, *goal: ZeroSum(n, balcer_cheu_gamma(n, *goal[:2])).error_quantile(goal[2]) / n, "alpha"),
    returns="Upper bound of the error, as published; trivial if it is 1 or larger.",
    where={
        "users": integer("Number n of users, at least 100 ln(2/delta)/eps**2", 1),
        "eps": TO_ONE,
        "beta": real("Probability of a larger error, at least delta**25", 0, 1, ends="(]"),
    },
)
def balcer_cheu_error(users: int, eps: float, delta: float, beta: float) -> float:
    r"""Published error of the mean of bits by zsum at :func:`balcer_cheu_gamma`, exceeded with probability at most beta.

    .. math:: \alpha = \frac{50}{\varepsilon^2 n}\ln\frac2\delta + \frac1{\varepsilon n}\sqrt{200 \ln\frac2\delta \ln\frac2\beta}

    >>> round(published.balcer_cheu_error(2000, 1.0, 1e-6, 0.05), 10)
    0.4144468453
    """
    n, level = users, _level(delta)
    if not n >= 100 * level / (eps * eps):
        raise ValueError(f"users={n} must be >= 100 ln(2/delta)/eps**2 = {100 * level / (eps * eps):.6g}")
    beta = _confidence(beta, delta**25)
    return 50 * level / (eps * eps * n) + math.sqrt(200 * level * (math.log(2) - math.log(beta))) / (eps * n)


def _any_error(users: int, gamma: float, beta: float) -> float:
    """Return the error that the frequency of any of 1000 bins exceeds with probability at most beta, for the worst-case dataset."""
    return ShuffledHistogram(users, 1000, gamma).error_quantile(beta, of="any") / users


@printed(
    "proven", f"{_PAPER}, Theorem 3.2 iii, with the constants of Theorem 3.1 ii",
    reason="a union bound over n bins; the histogram itself is (2 eps, 2 delta)-private",
    comparison=At("n = 10^5, d = 1000, eps = 0.5, delta = 10^-6, beta = 0.05, published gamma, worst dataset",
                  (10**5, 0.5, 1e-6, 0.05),
                  lambda n, *goal: _any_error(n, balcer_cheu_gamma(n, *goal[:2]), goal[2]), "alpha"),
    returns="Upper bound of the largest error, for every number of bins.",
    where={
        "users": integer("Number n of users, at least 100 ln(2/delta)/eps**2", 1),
        "eps": real("Privacy loss of one bin in nats, half of that of the histogram", 0, 1, ends="(]"),
        "delta": real("Failure probability of one bin", 0, 1, ends="()"),
        "beta": real("Probability that any bin has a larger error, at least n delta**25", 0, 1, ends="(]"),
    },
)
def balcer_cheu_histogram_error(users: int, eps: float, delta: float, beta: float) -> float:
    r"""Published simultaneous error of the frequencies of all bins: :func:`balcer_cheu_error` with :math:`\beta/n` for beta.

    >>> round(published.balcer_cheu_histogram_error(10**5, 0.5, 1e-6, 0.05), 10)
    0.0332178658
    """
    return float(balcer_cheu_error(users, eps, delta, _confidence(beta, users * delta**25) / users))
