"""Closed forms of the clone bounds, as published."""

from __future__ import annotations

import math
from functools import partial

from shufflebounds.published._printed import epsilon_of, printed
from shufflebounds.shuffle.clones import Clones, StrongerClones

__all__ = ["clones_apple", "clones_closed_form", "stronger_clones_closed_form"]


_above = partial(printed, "proven", returns="Upper bound of epsilon, as published.")


def _within(local_eps: float, limit: float, condition: str) -> None:
    if not local_eps <= limit:
        shown = f"{limit:.6g}, here" if limit > 0 else "no positive value, here"
        raise ValueError(f"local_eps={local_eps:g} must be <= {shown}, for the closed form to hold: {condition}")


@_above(
    "Feldman, McMillan, Talwar 2021, Theorem 3.1",
    reason="a closed form above the numerical clone bound, for every pure eps0-LDP randomizer",
    comparison=epsilon_of(Clones, 10**6, 4.0, 1e-8),
)
def clones_closed_form(users: int, local_eps: float, delta: float) -> float:
    r"""Published closed form of the clone bound: epsilon of the shuffled messages of any randomizer of local budget eps0.

    .. math:: \ln\Bigl(1 + \frac{E_0-1}{E_0+1}\Bigl(8\sqrt{E_0 \ln(4/\delta)/n} + 8E_0/n\Bigr)\Bigr), \quad E_0 = e^{\varepsilon_0}

    >>> round(published.clones_closed_form(10**6, 4.0, 1e-8), 10)
    0.2263683962
    """
    n, eps0 = users, local_eps
    _within(eps0, math.log(n / (16 * math.log(2 / delta))), "eps0 <= ln(n/(16 ln(2/delta)))")
    big = math.exp(eps0)
    return math.log1p(math.tanh(eps0 / 2) * (8 * math.sqrt(big * math.log(4 / delta) / n) + 8 * big / n))


@_above(
    "the program that accompanies Feldman, McMillan, Talwar 2021, closedformanalysis",
    reason="larger than clones_closed_form, which is proven; as the authors' program evaluates the bound",
    comparison=epsilon_of(Clones, 10**6, 4.0, 1e-8),
    returns="Upper bound of epsilon, as the program prints it.",
)
def clones_apple(users: int, local_eps: float, delta: float) -> float:
    r"""Closed form of the clone bound in the program that Feldman, McMillan and Talwar published.

    .. math:: \ln\Bigl(1 + \frac{(1 - 1/E_0)(a + c)}{1 + 1/(E_0(1 + a + c))}\Bigr),
        \quad a = 8\sqrt{E_0\ln(4/\delta)/n},\; c = 8E_0/n

    >>> round(published.clones_apple(10**6, 4.0, 1e-8), 10)
    0.2271308633
    """
    n, eps0 = users, local_eps
    _within(eps0, math.log(n / (16 * math.log(4 / delta))), "eps0 <= ln(n/(16 ln(4/delta)))")
    big = math.exp(eps0)
    total = 8 * math.sqrt(big * math.log(4 / delta) / n) + 8 * big / n
    return math.log1p(-math.expm1(-eps0) * total / (1 + 1 / (big * (1 + total))))


@_above(
    "Feldman, McMillan, Talwar 2023, Theorem 3.2, with the erratum of arXiv version 2",
    reason="at least the numerical bound of StrongerClones, which is proven here for every pure randomizer; the paper's erratum "
    "restricts its own proof to R_x >= (R_0 + R_1)/(e^eps0 + 1)",
    comparison=epsilon_of(StrongerClones, 10**6, 4.0, 1e-8),
)
def stronger_clones_closed_form(users: int, local_eps: float, delta: float) -> float:
    r"""Published closed form of the stronger clone bound: epsilon of the shuffled messages of any randomizer of local budget eps0.

    .. math:: \ln\Bigl(1 + (E_0-1)\Bigl(4\sqrt{\frac{2\ln(4/\delta)}{(E_0+1)n}} + 4/n\Bigr)\Bigr), \quad E_0 = e^{\varepsilon_0}

    >>> round(published.stronger_clones_closed_form(10**6, 4.0, 1e-8), 10)
    0.1665166381
    """
    n, eps0 = users, local_eps
    inner = n / (8 * math.log(2 / delta)) - 1
    _within(eps0, math.log(inner) if inner > 0 else -math.inf, "eps0 <= ln(n/(8 ln(2/delta)) - 1)")
    big = math.exp(eps0)
    return math.log1p(math.expm1(eps0) * (4 * math.sqrt(2 * math.log(4 / delta) / ((big + 1) * n)) + 4 / n))
