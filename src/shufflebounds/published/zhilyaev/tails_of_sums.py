"""Shuffled bits and dummy records (Zhilyaev, sections 2 and 4) as published: Lemma 4.2, pointwise privacy, tails of the sum."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from shufflebounds._base import validate as _validate
from shufflebounds._base.types import FloatArray
from shufflebounds.published._glossary import BITS, LOSS, integer, real
from shufflebounds.published._printed import At, printed
from shufflebounds.shuffle import ShuffledBits
from shufflebounds.tails import poisson_binom_logcdf, poisson_binom_logpmf, poisson_binom_logsf

__all__ = ["zhilyaev_lemma", "zhilyaev_pointwise", "zhilyaev_tail", "zhilyaev_tail_relative"]

_PAPER = "Zhilyaev"


def _flip_groups(users: int, flip: float, ones: int) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return the probabilities 1 - flip and flip that a user's bit is set, and the number of users with each probability."""
    chances = np.array([1 - flip, flip])
    counts = np.array([ones, users - ones])
    return chances[counts > 0], counts[counts > 0]


def _delta_of_zeros(users: int, flip: float, eps: float) -> float:
    """Return the exact delta where all other users have value 0."""
    return ShuffledBits(users, flip).pair(0).delta(eps)


@printed(
    "false", f"{_PAPER}, Lemma 4.2, (4.10)",
    fault="misprint",
    reason="the coefficient 2 p e^eps - 1 is a misprint of p e^eps - q: too large by p (e^eps - 1) P(k)",
    side="both",
    counterexample=At("delta(ln 1.5) of 5 users, q = 1/5, the other users at 0", (5, 0.2, math.log(1.5)), _delta_of_zeros),
    comparison=At("n = 1000, q = 0.1, the other users at 0, eps = 0.5", (1000, 0.1, 0.5), _delta_of_zeros, "delta"),
    returns="The published delta, which the lemma states to be exact.",
    where={
        # At most 10**6 users, because the probabilities for 10**7 would take a gigabyte.
        "users": integer("Number of bits, including the target user's (the paper's n + 1)", 1, 10**6),
        "eps": LOSS,
    },
)
def zhilyaev_lemma(users: int, flip: float, eps: float, ones: int = 0) -> float:
    r"""Published delta of the target's value 0 against 1, from the sum of all users' flipped bits in a given dataset.

    .. math:: \max_k\; (2 p e^\varepsilon - 1) P(k) - (e^\varepsilon - 1) \sum_{i \le k} P(i)

    P is the distribution of the sum of the other users' flipped bits, and p = 1 - q for the flip probability q.

    >>> import math
    >>> round(published.zhilyaev_lemma(5, 0.2, math.log(1.5)), 10)
    0.36864
    """
    _validate.integer("ones", ones, 0, users - 1)
    gain = math.expm1(eps)
    if users == 1:
        return (2 * (1 - flip) * (gain + 1) - 1) - gain
    k = np.arange(users)
    law = _flip_groups(users - 1, flip, ones)
    mass, below = np.exp(poisson_binom_logpmf(k, *law)), np.exp(poisson_binom_logcdf(k, *law))
    return float(((2 * (1 - flip) * (gain + 1) - 1) * mass - gain * below).max())


def _losses_above(users: int, flip: float, eps: float) -> float:
    """Return the probability that the privacy loss exceeds eps, for the worse one of the target's values 0 and 1.

    All other users have the value 0.
    """
    k = np.arange(users + 1)
    zero, one = (np.asarray(poisson_binom_logpmf(k, *_flip_groups(users, flip, ones))) for ones in (0, 1))
    return float(max(np.exp(zero[zero - one > eps]).sum(), np.exp(one[one - zero > eps]).sum()))


@printed(
    "false", f"{_PAPER}, Proposition 2.3, converse",
    fault="privacy",
    reason="Pr[loss > eps] <= delta implies (eps, delta)-privacy, but not conversely",
    counterexample=At("Pr[loss > ln 2] of one bit, q = 1/4", (1, 0.25, math.log(2)), _losses_above),
    comparison=At("n = 1000, q = 0.1, the other users at 0, eps = 0.5", (1000, 0.1, 0.5), _losses_above, "Pr[loss > eps]"),
    returns="Delta of the dataset, which the proposition states to bound the probability of a larger loss.",
    where={"users": BITS, "eps": real("Privacy loss in nats", 0)},
)
def zhilyaev_pointwise(users: int, flip: float, eps: float, ones: int = 0) -> float:
    r"""Published bound of the probability that the privacy loss exceeds eps: :math:`\delta(\varepsilon)` itself.

    The loss L is that of the sum of n flipped bits in a given dataset. A valid bound is :math:`\Pr[L > \varepsilon'] \le
    \delta(\varepsilon)/(1 - e^{\varepsilon-\varepsilon'})` for :math:`\varepsilon' > \varepsilon`.

    >>> import math
    >>> round(published.zhilyaev_pointwise(1, 0.25, math.log(2)), 10)
    0.25
    """
    return ShuffledBits(users, flip, ones).delta(eps)


def _two_sided_tail(users: int, flip: float, ones: int, distance: float) -> float:
    """Return the probability that the sum is further than `distance` from its mean."""
    mean = ones * (1 - flip) + (users - ones) * flip
    law = _flip_groups(users, flip, ones)
    left = math.ceil(mean - distance) - 1
    below = math.exp(poisson_binom_logcdf(left, *law)) if left >= 0 else 0.0
    right = math.floor(mean + distance)
    return below + (math.exp(poisson_binom_logsf(right, *law)) if right < users else 0.0)


@printed(
    "false", f"{_PAPER}, Proposition 4.4, (4.46)",
    fault="accuracy",
    reason="Chernoff's bound with mean mu_m >= n q holds for t <= 1; the paper states no range of t",
    counterexample=At("Pr[sum > 120], n = 1000, q = 0.03, no ones, t = 3", (1000, 0.03, 3.0),
                      lambda n, q, _: _two_sided_tail(n, q, 0, 90)),
    comparison=At("n = 1000, q = 0.1, 100 ones, t = 0.5", (1000, 0.1, 0.5),
                  lambda n, q, t: _two_sided_tail(n, q, 100, t * (90 + 90)), "tail"),
    returns="The published bound for any number m of ones.",
    where={"users": BITS, "distance": real("Relative distance t; proven up to 1", 0, 100, ends="(]")},
)
def zhilyaev_tail_relative(users: int, flip: float, distance: float) -> float:
    r"""Published tail of a sum s of flipped bits: :math:`\Pr[|s-\mu_m| > t\mu_m] \le 2 e^{-t^2 n q/3}` for a distance t.

    Each of n bits, of which m are 1, is flipped with probability q; s is the sum of the flipped bits, and :math:`\mu_m` its mean.

    >>> round(published.zhilyaev_tail_relative(1000, 0.1, 0.5), 10)
    0.000480739
    """
    return 2 * math.exp(-distance * distance * users * flip / 3)


@printed(
    "proven", f"{_PAPER}, (4.47)",
    reason="it does not follow from (4.46) as stated, but from Bernstein's inequality with variance n p q, for t <= 3/2",
    comparison=At("n = 1000, q = 0.1, 100 ones, t = 0.5", (1000, 0.1, 0.5), lambda n, q, t: _two_sided_tail(n, q, 100, 50), "tail"),
    returns="Upper bound for any number m of ones.",
    where={"users": BITS, "distance": real("Distance t, in units of n q", 0, 1.5, ends="(]")},
)
def zhilyaev_tail(users: int, flip: float, distance: float) -> float:
    r"""Published tail of a sum s of flipped bits: :math:`\Pr[|s-\mu_m| > t n q] \le 2 e^{-t^2 n q/3}` for a distance t.

    Each of n bits, of which m are 1, is flipped with probability q; s is the sum of the flipped bits, and :math:`\mu_m` its mean.

    >>> print(f"{published.zhilyaev_tail(1000, 0.1, 1.0):.9e}")
    6.676475591e-15
    """
    return zhilyaev_tail_relative.formula(users, flip, distance)
