r"""Shuffled bits and dummy records (Zhilyaev, section 4) as published: flip probabilities and the resulting standard error.

In every formula q is the flip probability, p = 1 - q, n the number of users, :math:`A = 1 - e^{-\varepsilon}` and
:math:`L_c = \ln(c/\delta)`.
"""

from __future__ import annotations

import math
from functools import partial

from shufflebounds._base import validate as _validate
from shufflebounds._base.search import bracket
from shufflebounds.published._glossary import BITS, CLOSED, POSITIVE, integer
from shufflebounds.published._printed import At, Counterexample, printed
from shufflebounds.shuffle import ShuffledBits

__all__ = ["zhilyaev_deviation", "zhilyaev_flip", "zhilyaev_flip_right", "zhilyaev_flip_root", "zhilyaev_flip_zeros"]

_PAPER = "Zhilyaev"
CASE = (10**6, 1.0, 1e-6)
"""The users, eps and delta at which published and exact numbers are compared."""
_SETTING = "n = 10^6, eps = 1, delta = 10^-6"
_FLIP = {"users": BITS, "eps": POSITIVE, "delta": CLOSED}
_frequency = partial(printed, returns="The published flip probability; above 1/2: no flip probability is enough.", where=_FLIP)


def _target(eps: float, delta: float) -> tuple[float, float]:
    """Return A = 1 - e^-eps and 3 L_2 = 3 ln(2/delta), as defined in the module docstring."""
    return -math.expm1(-eps), 3 * (math.log(2) - math.log(delta))


def _least_flip(users: int, eps: float, delta: float) -> float:
    """Return the smallest flip probability with which delta(eps) is at most delta for every dataset."""
    return ShuffledBits.calibrate(users=users, eps=eps, delta=delta).flip


def _least_flip_of_zeros(users: int, eps: float, delta: float) -> float:
    """Return the smallest flip probability that meets (eps, delta) for the dataset in which all values are 0.

    Delta does not increase with the flip probability.
    """
    return bracket(lambda flip: ShuffledBits(users, flip, ones=0).delta(eps) <= delta, 0.0, 0.5, rtol=1e-13)[1]


def _least_flip_reversed(users: int, eps: float, delta: float) -> float:
    """Return the smallest flip probability that meets the target if all others have value 0 and the target changes from 1 to 0."""
    return bracket(lambda flip: ShuffledBits(users, flip).pair(0).reverse().delta(eps) <= delta, 0.0, 0.5, rtol=1e-13)[1]


@_frequency(
    "unproven", f"{_PAPER}, (4.36)",
    reason="the proof covers one of the two directions; no violation found; several times the necessary flip probability",
    comparison=At(f"{_SETTING}, all other users at 0", CASE, _least_flip_of_zeros, "flip"),
)
def zhilyaev_flip_zeros(users: int, eps: float, delta: float) -> float:
    r"""Published flip probability for (eps, delta)-privacy of the sum of n flipped bits, if all other users have value 0.

    .. math:: q = 3 \ln(2/\delta) / (n (1 - e^{-\varepsilon})^2)

    >>> round(published.zhilyaev_flip_zeros(1000, 0.5, 1e-6), 10)
    0.2811426255
    """
    n, (a, level) = users, _target(eps, delta)
    return level / (n * a * a)


def _right_counterexample() -> Counterexample:
    n, eps, delta = 1000, 3.0, 1e-6
    truth = ShuffledBits(n, zhilyaev_flip_right(n, eps, delta)).pair(0).reverse().delta(eps, bound="lower")
    return Counterexample(delta, truth, "the target delta, and the delta(3) of 1 against 0, n = 1000, all other users at 0")


@_frequency(
    "false", f"{_PAPER}, (4.40)",
    fault="privacy",
    reason="Chernoff's bound is used at the relative distance (e^eps - 1) p/(p - q), but holds for distances up to 1 only",
    counterexample=_right_counterexample,
    comparison=At(f"{_SETTING}, all other users at 0, 1 against 0", CASE, _least_flip_reversed, "flip"),
)
def zhilyaev_flip_right(users: int, eps: float, delta: float) -> float:
    r"""Published flip probability for the delta of the target's value 1 against 0, if all other users have value 0.

    .. math:: q = 3 \ln(2/\delta) / (n (e^\varepsilon - 1)^2)

    The analyst sees the sum of n flipped bits. Zhilyaev uses this q only together with the larger :func:`zhilyaev_flip_zeros`.

    >>> round(published.zhilyaev_flip_right(1000, 0.5, 1e-6), 10)
    0.1034265919
    """
    n, (_, level) = users, _target(eps, delta)
    return level / (n * math.expm1(eps) ** 2)


@_frequency(
    "unproven", f"{_PAPER}, Proposition 4.5, (4.48)",
    reason="the proof confuses n with n - 1 bits and uses (4.47); no violation found",
    comparison=At(_SETTING, CASE, _least_flip, "flip"),
)
def zhilyaev_flip(users: int, eps: float, delta: float) -> float:
    r"""Published flip probability for (eps, delta)-privacy of the sum of n flipped bits, for every dataset.

    .. math:: q = 3 L_2 / (n A^2) + 4 / (n A)

    Here :math:`L_2 = \ln(2/\delta)` and :math:`A = 1 - e^{-\varepsilon}`.

    >>> round(published.zhilyaev_flip(1000, 0.5, 1e-6), 10)
    0.2913086018
    """
    n, (a, level) = users, _target(eps, delta)
    return level / (n * a * a) + 4 / (n * a)


@_frequency(
    "unproven", f"{_PAPER}, (4.55) solved exactly",
    reason="the root of (4.55), of which (4.56) drops a term; no better proven than (4.48), no violation found",
    comparison=At(_SETTING, CASE, _least_flip, "flip"),
    returns="The flip probability that the published derivation gives; above 1/2: none is enough.",
)
def zhilyaev_flip_root(users: int, eps: float, delta: float) -> float:
    r"""Flip probability for every dataset, as :func:`zhilyaev_flip`: the exact solution of Zhilyaev's inequality (4.55).

    .. math:: q = \frac1n \Bigl(\frac{\sqrt{3 L_2} + \sqrt{3 L_2 + 8 A}}{2 A}\Bigr)^2

    Here :math:`L_2 = \ln(2/\delta)` and :math:`A = 1 - e^{-\varepsilon}`.

    >>> round(10**6 * published.zhilyaev_flip_root(10**6, 1.0, 1e-6), 8)
    115.17127755
    """
    n, (a, level) = users, _target(eps, delta)
    return ((math.sqrt(level) + math.sqrt(level + 8 * a)) / (2 * a)) ** 2 / n


@printed(
    "false", f"{_PAPER}, (4.62)",
    fault="extraction",
    reason="lacks the square root over the bracket, which (4.60) still has",
    side="both",
    counterexample=At("standard error of the sum, n = 10^4, eps = 1, delta = 10^-6", (10**4, 1.0, 1e-6),
                      lambda n, *target: math.sqrt(ShuffledBits(n, zhilyaev_flip(n, *target)).variance)),
    returns="The published standard deviation, in users.",
    where={**_FLIP, "users": integer("Number of bits, dummy ones included", 1)},
)
def zhilyaev_deviation(users: int, eps: float, delta: float) -> float:
    r"""Published standard error of the estimated sum of bits at the flip probability q of :func:`zhilyaev_flip`.

    .. math:: \frac{\sqrt p}{p - q} \Bigl[\frac{3 L_2}{A^2} + \frac 4A\Bigr]

    Here :math:`p = 1 - q`, :math:`L_2 = \ln(2/\delta)` and :math:`A = 1 - e^{-\varepsilon}`.

    >>> round(published.zhilyaev_deviation(10**4, 1.0, 1e-6), 4)
    117.2959
    """
    flip = zhilyaev_flip(users, eps, delta)
    if not flip < 0.5:
        raise _validate.InfeasibleError(f"users={users} are too few for eps={eps:g}, delta={delta:g}: (4.48) gives flip={flip:.6g}")
    return float(math.sqrt(1 - flip) / (1 - 2 * flip) * users * flip)
