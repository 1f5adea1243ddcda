"""Distributed Gaussian differential privacy via shuffling (Chen and Long) as printed: Theorem 2 and its corollaries.

The proof of Theorem 2 treats the noise and the data that it covers as independent and multiplies probabilities of dependent events;
the curve it prints, of Bin(n, lam/(2n)) against its shift by one, is neither below nor above that of the protocol.
"""

from __future__ import annotations

import math
from bisect import bisect_left

import numpy as np
from numpy.typing import ArrayLike

from shufflebounds._scipy import ndtri_exp
from shufflebounds._types import FloatArray
from shufflebounds.published._glossary import integer, real
from shufflebounds.published._printed import Comparison, Counterexample, printed
from shufflebounds.shuffle import BinomialNoise, ShuffledBits
from shufflebounds.tails import binom_logcdf, binom_logsf, poisson_binom_logcdf, poisson_binom_logsf

__all__ = ["chen_long_delta", "chen_long_mu", "chen_long_mu_interior", "chen_long_mu_real_sum", "chen_long_tradeoff"]

_PAPER = "Chen and Long"
_FIGURE = "n = 100, lambda = 58 (the paper's Figure 1)"
MAX_KNOTS = 10**7
"""Most users for which the knots of a curve are listed."""


def _flip(users: int, lam: float) -> float:
    """Return lam/(2n), which must lie below 1/2; zero by underflow is no flip."""
    if not 0 < lam < users or lam / (2 * users) == 0:
        raise ValueError(f"lam={lam:g} must lie in (0, users) = (0, {users}), and lam/(2 users) must not underflow")
    return lam / (2 * users)


def _curve_of_the_protocol(users: int, flip: float, alpha: float) -> float:
    """Return the trade-off function of the flipped bits at alpha, over all data, by going through them."""
    bits = ShuffledBits(users, flip)
    # the other direction of m ones is this direction of users - 1 - m
    return min(float(bits.pair(ones).tradeoff().beta(alpha)) for ones in range(users))


def _tradeoff_counterexample() -> Counterexample:
    alpha = 1 - 0.9**5
    truth = float(ShuffledBits(5, 0.1).pair(0).tradeoff().beta(alpha))
    return Counterexample(chen_long_tradeoff(5, 1.0, alpha), truth, "f(1 - 0.9^5) of 5 users, lambda = 1, the others at 0")


def _tradeoff_compared() -> Comparison:
    truth = _curve_of_the_protocol(100, 0.29, 0.05)
    return Comparison(f"{_FIGURE}, alpha = 0.05", "beta", chen_long_tradeoff(100, 58, 0.05), truth)


@printed(
    verdict="false",
    reason="the proof multiplies probabilities of dependent events (B.6); it fails for lambda/n below about 0.4 and is loose above",
    reference=f"{_PAPER}, Theorem 2",
    side="lower",
    counterexample=_tradeoff_counterexample,
    comparison=_tradeoff_compared,
    returns="The printed error of the second kind.",
    where={"alpha": real("Error of the first kind, which within a relative 1e-12 of a knot F(k) counts as the knot", 0, 1)},
)
def chen_long_tradeoff(users: int, lam: float, alpha: float) -> float:
    r"""Printed trade-off function of the boolean-sum protocol, :math:`f(\alpha) = 1 - F(F^{-1}(\alpha) + 1)`.

    F is the distribution function of Bin(n, lam/(2n)), :math:`F^{-1}(\alpha)` the least k with :math:`F(k) \ge \alpha`: a step
    function, which is no trade-off function. At :math:`\alpha = F(k)` it is that of the noise against its shift by one.

    >>> round(published.chen_long_tradeoff(100, 58, 0.05), 10)
    0.8888884353
    """
    flip = _flip(users, lam)
    if alpha in (0, 1):
        return 0.0 if alpha else math.exp(binom_logsf(0, users, flip))
    target = math.log(alpha) - 1e-12
    knot = bisect_left(range(users), target, key=lambda k: float(binom_logcdf(k, users, flip)))
    return math.exp(binom_logsf(knot + 1, users, flip))


def _delta_counterexample() -> Counterexample:
    truth = ShuffledBits(8, 0.1, ones=4).delta(0.0, bound="lower")
    return Counterexample(chen_long_delta(8, 1.6, 0.0), truth, "delta(0) of 8 users, lambda = 1.6, 4 of the others at 1")


def _delta_compared() -> Comparison:
    truth = ShuffledBits.boolean_sum(100, 58).delta(0.3)
    return Comparison(f"{_FIGURE}, eps = 0.3", "delta", chen_long_delta(100, 58, 0.3), truth)


@printed(
    verdict="false",
    reason="the pair of Theorem 2 does not dominate the protocol, not even by the worse of its two directions",
    reference=f"{_PAPER}, Theorem 2, as (eps, delta)",
    counterexample=_delta_counterexample,
    comparison=_delta_compared,
    returns="What the theorem amounts to at `eps`.",
    where={"eps": real("Privacy loss in nats", 0)},
)
def chen_long_delta(users: int, lam: float, eps: float) -> float:
    r"""Delta of the pair behind Theorem 2, Bin(n, lam/(2n)) against its shift by one, in the worse direction.

    >>> f"{published.chen_long_delta(100, 58, 1.0):.9e}"
    '7.573409862e-06'
    """
    return BinomialNoise(users, _flip(users, lam)).delta(eps)


def _normal_quantile(log_cdf: ArrayLike, log_sf: ArrayLike) -> FloatArray:
    """Return the normal quantile of a probability that is known from both ends."""
    small = np.less(log_cdf, log_sf)
    return np.where(small, ndtri_exp(np.where(small, log_cdf, -1.0)), -ndtri_exp(np.where(small, -1.0, log_sf)))


def _mu_of_the_protocol(users: int, flip: float) -> float:
    """Return the least mu of the flipped bits, over all data: the curve is piecewise linear and G_mu convex, so knots suffice."""
    k = np.arange(users)
    best = 0.0
    for ones in range(users):
        laws = []
        for target in (0, 1):
            held = ones + target
            groups = [(p, count) for p, count in ((1 - flip, held), (flip, users - held)) if count]
            p, counts = np.array(groups).T
            laws.append(_normal_quantile(poisson_binom_logcdf(k, p, counts), poisson_binom_logsf(k, p, counts)))
        best = max(best, float((laws[0] - laws[1]).max()))
    return best


def _mu_compared() -> Comparison:
    return Comparison(_FIGURE, "mu", chen_long_mu(100, 58), _mu_of_the_protocol(100, 0.29))


@printed(
    verdict="proven",
    reason="says nothing: f(0) < 1, so mu* is infinite for every lambda",
    reference=f"{_PAPER}, Corollary 3.2",
    comparison=_mu_compared,
    returns="inf.",
)
def chen_long_mu(users: int, lam: float) -> float:
    r"""Printed parameter of Gaussian differential privacy of the boolean sum, taken literally.

    .. math:: \mu^* = \max_{0\le\alpha\le 1} \Phi^{-1}(1-\alpha) - \Phi^{-1}\bigl(1 - F(F^{-1}(\alpha)+1)\bigr) = \infty,

    since at :math:`\alpha = 0` the first term is infinite and the second, at :math:`1 - F(0) < 1`, finite.

    >>> published.chen_long_mu(100, 58)
    inf
    """
    _flip(users, lam)
    return math.inf


def _interior_counterexample() -> Counterexample:
    # one test on one data set gives a lower bound of the true mu: all others at 0, reject where any bit is set
    keep, flipped = 5 * math.log(0.9), math.log(0.1) + 4 * math.log(0.9)
    truth = float(ndtri_exp(keep) - ndtri_exp(flipped))
    return Counterexample(chen_long_mu_interior(5, 1.0), truth, "mu of 5 users, lambda = 1, the others at 0")


def _interior_compared() -> Comparison:
    return Comparison(_FIGURE, "mu", chen_long_mu_interior(100, 58), _mu_of_the_protocol(100, 0.29))


@printed(
    verdict="false",
    reason="rests on Theorem 2; the maximum over knots where both errors lie inside (0, 1) is set by the rarest outcomes",
    reference=f"{_PAPER}, Corollary 3.2, interior knots only",
    counterexample=_interior_counterexample,
    comparison=_interior_compared,
    returns="The number that the corollary may have meant.",
    where={"users": integer("Number n of users", 2, MAX_KNOTS)},
)
def chen_long_mu_interior(users: int, lam: float) -> float:
    r"""Parameter :math:`\mu^*` of the boolean sum with the maximum over the knots k = 0, ..., n - 2, which keeps it finite.

    .. math:: \max_{0\le k\le n-2} \Phi^{-1}(1-F(k)) - \Phi^{-1}(1-F(k+1))

    >>> round(published.chen_long_mu_interior(100, 58), 10)
    0.4791989308
    """
    flip = _flip(users, lam)
    k = np.arange(users)
    quantile = _normal_quantile(binom_logcdf(k, users, flip), binom_logsf(k, users, flip))
    return float(np.diff(quantile).max())


def _real_sum_counterexample() -> Counterexample:
    case = _interior_counterexample()
    claim = chen_long_mu_real_sum(5, 1.0, 1)
    return Counterexample(claim, case.truth, "mu of 5 users, lambda = 1, one bit each: the boolean sum")


def _real_sum_compared() -> Comparison:
    truth = math.sqrt(10) * _mu_of_the_protocol(100, 0.29)
    setting = f"{_FIGURE}, r = 10; exact: sqrt(r) times mu of one bit, a proven bound"
    return Comparison(setting, "mu", chen_long_mu_real_sum(100, 58, 10), truth)


@printed(
    verdict="false",
    reason="composition is sound, the curve of one bit is not; literally mu* is infinite here too",
    reference=f"{_PAPER}, Corollary 3.3, interior knots only",
    counterexample=_real_sum_counterexample,
    comparison=_real_sum_compared,
    returns="The square root of `bits` times :func:`chen_long_mu_interior`.",
    where={
        "users": integer("Number n of users", 2, MAX_KNOTS),
        "lam": real("Expected number of random bits in each of the r rounds, below n", 0, ends="(]"),
    },
)
def chen_long_mu_real_sum(users: int, lam: float, bits: int) -> float:
    r"""Printed parameter of Gaussian differential privacy of the real sum, :math:`\sqrt{r}\,\mu^*`, over interior knots.

    >>> round(published.chen_long_mu_real_sum(100, 58, 10), 6)
    1.51536
    """
    return math.sqrt(bits) * chen_long_mu_interior(users, lam)
