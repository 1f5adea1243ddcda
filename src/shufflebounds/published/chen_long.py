"""Distributed Gaussian differential privacy via shuffling (Chen and Long) as published: Theorem 2 and its corollaries.

The proof of Theorem 2 multiplies probabilities of dependent events: it treats the noise as independent of the data bits that it
replaces. The published curve is the trade-off function of Bin(n, lam/(2n)) against its shift by one. This curve is neither an upper
nor a lower bound of the trade-off function of the protocol.
"""

from __future__ import annotations

import math
from bisect import bisect_left

import numpy as np
from numpy.typing import ArrayLike

from shufflebounds._base.limits import MOST_ITEMS
from shufflebounds._base.scipy_functions import ndtri_exp
from shufflebounds._base.types import FloatArray
from shufflebounds.published._glossary import integer, real
from shufflebounds.published._printed import At, printed
from shufflebounds.shuffle import BinomialNoise, ShuffledBits
from shufflebounds.tails import binom_logcdf, binom_logsf, poisson_binom_logcdf, poisson_binom_logsf

__all__ = ["chen_long_delta", "chen_long_mu", "chen_long_mu_interior", "chen_long_mu_real_sum", "chen_long_tradeoff"]

_PAPER = "Chen and Long"
_FIGURE = "n = 100, lambda = 58 (the paper's Figure 1)"


def _flip(users: int, lam: float) -> float:
    """Return the flip probability lam/(2n), or raise ValueError if it is not in (0, 1/2) or underflows."""
    if not 0 < lam < users or lam / (2 * users) == 0:
        raise ValueError(f"lam={lam:g} must lie in (0, users) = (0, {users}), and lam/(2 users) must not underflow")
    return lam / (2 * users)


def _curve_of_zeros(users: int, lam: float, alpha: float) -> float:
    """Return the trade-off function at alpha of the flipped bits of all users, where all other users have the value 0."""
    return float(ShuffledBits(users, _flip(users, lam)).pair(0).tradeoff().beta(alpha))


def _curve_of_the_protocol(users: int, lam: float, alpha: float) -> float:
    """Return the minimum over all datasets of the trade-off function at alpha of the flipped bits, by enumeration."""
    bits = ShuffledBits(users, _flip(users, lam))
    # Only the pairs (P, Q) are needed. The pair (Q, P) for m other users with value 1 has the same curve as the pair (P, Q) for
    # users - 1 - m such users.
    return min(float(bits.pair(ones).tradeoff().beta(alpha)) for ones in range(users))


@printed(
    "false", f"{_PAPER}, Theorem 2",
    fault="privacy",
    reason="the proof multiplies probabilities of dependent events (B.6); false for lambda/n below about 0.4, not tight above",
    side="lower",
    counterexample=At("f(1 - 0.9^5) of 5 users, lambda = 1, the other users at 0", (5, 1.0, 1 - 0.9**5), _curve_of_zeros),
    comparison=At(f"{_FIGURE}, alpha = 0.05", (100, 58, 0.05), _curve_of_the_protocol, "beta"),
    returns="The published type II error.",
    where={"alpha": real("Type I error; within relative 1e-12 of a breakpoint F(k) it counts as the breakpoint", 0, 1)},
)
def chen_long_tradeoff(users: int, lam: float, alpha: float) -> float:
    r"""Published trade-off function of the boolean-sum protocol, :math:`f(\alpha) = 1 - F(F^{-1}(\alpha) + 1)`.

    In this protocol (:class:`~shufflebounds.shuffle.ShuffledBits`) each of n users flips their bit with probability lam/(2n). F is
    the distribution function of Bin(n, lam/(2n)), :math:`F^{-1}(\alpha)` is the least k with :math:`F(k) \ge \alpha`, and
    :math:`F^{-1}(0) = -1`. The published f is a step function, and so not a trade-off function. At :math:`\alpha = F(k)` it equals
    the trade-off function of the noise Bin(n, lam/(2n)) against its shift by one.

    >>> round(published.chen_long_tradeoff(100, 58, 0.05), 10)
    0.8888884353
    """
    flip = _flip(users, lam)
    if alpha in (0, 1):
        return 0.0 if alpha else math.exp(binom_logsf(0, users, flip))
    target = math.log(alpha) - 1e-12
    place = bisect_left(range(users), target, key=lambda k: float(binom_logcdf(k, users, flip)))
    return math.exp(binom_logsf(place + 1, users, flip))


@printed(
    "false", f"{_PAPER}, Theorem 2, as (eps, delta)",
    fault="privacy",
    reason="the pair of Theorem 2 does not dominate the protocol, not even in the direction with the larger delta",
    counterexample=At("delta(0) of 8 users, lambda = 1.6, 4 of the other users at 1", (8, 1.6, 0.0),
                      lambda n, lam, eps: ShuffledBits(n, _flip(n, lam), ones=4).delta(eps, bound="lower")),
    comparison=At(f"{_FIGURE}, eps = 0.3", (100, 58, 0.3),
                  lambda n, lam, eps: ShuffledBits.boolean_sum(n, lam).delta(eps), "delta"),
    returns="The delta at `eps` that the theorem implies.",
    where={"eps": real("Privacy loss in nats", 0)},
)
def chen_long_delta(users: int, lam: float, eps: float) -> float:
    r"""Delta of the two distributions in Theorem 2 (:func:`chen_long_tradeoff`), in the order with the larger delta.

    The distributions are Bin(n, lam/(2n)) and its shift by one.

    >>> f"{published.chen_long_delta(100, 58, 1.0):.9e}"
    '7.573409862e-06'
    """
    return BinomialNoise(users, _flip(users, lam)).delta(eps)


def _normal_quantile(log_cdf: ArrayLike, log_sf: ArrayLike) -> FloatArray:
    """Return the normal quantile of a probability, given the logarithms of the probability and of its complement."""
    small = np.less(log_cdf, log_sf)
    return np.where(small, ndtri_exp(np.where(small, log_cdf, -1.0)), -ndtri_exp(np.where(small, -1.0, log_sf)))


def _mu_of_the_protocol(users: int, lam: float) -> float:
    """Return the smallest mu such that the trade-off function of the protocol is nowhere below G_mu, for every dataset.

    G_mu is the curve of mu-Gaussian differential privacy. G_mu is convex and the curve of a dataset is piecewise linear, so both
    are compared at the breakpoints k only.
    """
    k, flip = np.arange(users), _flip(users, lam)
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


@printed(
    "proven", f"{_PAPER}, Corollary 3.2",
    reason="a trivial bound: f(0) < 1, so mu* is infinite for every lambda",
    comparison=At(_FIGURE, (100, 58), _mu_of_the_protocol, "mu"),
    returns="inf.",
)
def chen_long_mu(users: int, lam: float) -> float:
    r"""Published parameter of Gaussian differential privacy of the boolean sum, taken literally.

    .. math:: \mu^* = \max_{0\le\alpha\le 1} \Phi^{-1}(1-\alpha) - \Phi^{-1}\bigl(1 - F(F^{-1}(\alpha)+1)\bigr) = \infty

    F is the distribution function of Bin(n, lam/(2n)), and :math:`F^{-1}(0) = -1`. The maximum is infinite: at :math:`\alpha = 0`
    the first term is infinite and the second term is finite, since :math:`1 - F(0) < 1`.

    >>> published.chen_long_mu(100, 58)
    inf
    """
    _flip(users, lam)
    return math.inf


def _mu_of_any_bit(users: int, lam: float, *_: int) -> float:
    """Return a lower bound of mu from the test that rejects if any message is 1.

    In the dataset, all other users have the value 0.
    """
    flip = _flip(users, lam)
    keep, rest = math.log1p(-flip), (users - 1) * math.log1p(-flip)
    return float(ndtri_exp(keep + rest) - ndtri_exp(math.log(flip) + rest))


@printed(
    "false", f"{_PAPER}, Corollary 3.2, interior breakpoints only",
    fault="privacy",
    reason="depends on Theorem 2, which is false",
    counterexample=At("mu of 5 users, lambda = 1, the other users at 0", (5, 1.0), _mu_of_any_bit),
    comparison=At(_FIGURE, (100, 58), _mu_of_the_protocol, "mu"),
    returns="The maximum over these breakpoints, which the corollary may have meant.",
    where={"users": integer("Number n of users", 2, MOST_ITEMS)},
)
def chen_long_mu_interior(users: int, lam: float) -> float:
    r"""Finite variant of the published :math:`\mu^*` of the boolean sum: type I errors F(k), k = 0, ..., n - 2, only.

    The maximum over all type I errors, as published, is infinite (:func:`chen_long_mu`). Here F is the distribution function of
    Bin(n, lam/(2n)).

    .. math:: \max_{0\le k\le n-2} \Phi^{-1}(1-F(k)) - \Phi^{-1}(1-F(k+1))

    >>> round(published.chen_long_mu_interior(100, 58), 10)
    0.4791989308
    """
    flip = _flip(users, lam)
    k = np.arange(users)
    quantile = _normal_quantile(binom_logcdf(k, users, flip), binom_logsf(k, users, flip))
    return float(np.diff(quantile).max())


@printed(
    "false", f"{_PAPER}, Corollary 3.3, interior breakpoints only",
    fault="privacy",
    reason="the composition is correct, but the trade-off function of one bit, Theorem 2, is false",
    counterexample=At("mu of 5 users, lambda = 1, r = 1 (the boolean sum), the other users at 0", (5, 1.0, 1), _mu_of_any_bit),
    comparison=At(f"{_FIGURE}, r = 10; exact: sqrt(r) times mu of one bit, a proven bound", (100, 58, 10),
                  lambda n, lam, bits: math.sqrt(bits) * _mu_of_the_protocol(n, lam), "mu"),
    returns="The square root of `bits` times :func:`chen_long_mu_interior`.",
    where={
        "users": integer("Number n of users", 2, MOST_ITEMS),
        "lam": real("Expected number of random bits in each of the r rounds, below n", 0, ends="(]"),
    },
)
def chen_long_mu_real_sum(users: int, lam: float, bits: int) -> float:
    r"""Published parameter of Gaussian differential privacy of the real sum, :math:`\sqrt{r}\,\mu^*`.

    The real sum (:class:`~shufflebounds.shuffle.RealSum`) consists of r boolean sums, one for each bit of the users' values.
    :math:`\mu^*` is the parameter of one boolean sum. The paper defines it as a maximum over type I errors that is infinite
    (:func:`chen_long_mu`), so the finite variant :func:`chen_long_mu_interior` takes its place here.

    >>> round(published.chen_long_mu_real_sum(100, 58, 10), 6)
    1.51536
    """
    return float(math.sqrt(bits) * chen_long_mu_interior(users, lam))
