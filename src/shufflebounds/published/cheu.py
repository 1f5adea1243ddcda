"""The boolean sum of Cheu, Smith, Ullman, Zeber, Zhilyaev 2019 (Distributed differential privacy via shuffling) as published."""

from __future__ import annotations

import math

from shufflebounds.published._glossary import CLOSED, real
from shufflebounds.published._printed import At, printed
from shufflebounds.shuffle import BinomialNoise, ShuffledBits

__all__ = ["cheu2019_boolean_sum", "cheu2019_fixed_set"]


@printed(
    "proven", "Cheu et al. 2019, as Claim C.1 of Chen and Long",
    reason="a Chernoff bound on |H| fair coins; its failure probability is delta/2, not delta",
    comparison=At("|H| = 1000, delta = 10^-9", (1000, 1e-9),
                  lambda coins, delta: BinomialNoise(coins, 0.5).epsilon(delta / 2), "eps"),
    returns="Upper bound of epsilon at failure probability delta/2, as published.",
    where={"delta": real("Twice the failure probability: the guarantee is (eps, delta/2)", 0, 1, ends="(]")},
)
def cheu2019_fixed_set(coins: int, delta: float) -> float:
    r"""Published epsilon of a sum of bits to which \|H\| fair coins are added: the guarantee is (epsilon, delta/2).

    .. math:: \varepsilon = \ln\Bigl(1 + \sqrt{32 \ln(4/\delta) / |H|}\Bigr)

    >>> round(published.cheu2019_fixed_set(50, 0.01), 10)
    1.0845801182
    """
    level = math.log(4) - math.log(delta)
    if not coins > 8 * level:
        raise ValueError(f"coins={coins} must be > 8 ln(4/delta) = {8 * level:.6g}")
    return math.log1p(math.sqrt(32 * level / coins))


@printed(
    "unproven", "Cheu et al. 2019, privacy of the boolean sum",
    reason="the constants were not compared with the published text; no violation found on a grid",
    comparison=At("n = 10^5, lambda = 1000, delta = 10^-6", (10**5, 1000, 1e-6),
                  lambda n, lam, delta: ShuffledBits.boolean_sum(n, lam).epsilon(delta), "eps"),
    returns="Upper bound of epsilon, if the constants are those of the paper.",
    where={"lam": real("Expected number of random bits, from 14 ln(4/delta) to n", 0), "delta": CLOSED},
)
def cheu2019_boolean_sum(users: int, lam: float, delta: float) -> float:
    r"""Epsilon of the boolean-sum protocol by the theorem of Cheu et al. 2019.

    In this protocol each of n users flips their bit with probability :math:`\lambda/(2n)`.

    .. math:: \varepsilon = \sqrt{\frac{32\ln(4/\delta)}{s}}\Bigl(1 - \frac sn\Bigr),
        \quad s = \lambda - \sqrt{2\lambda\ln(2/\delta)}

    >>> round(published.cheu2019_boolean_sum(100, 58, 0.1), 10)
    1.0502016352
    """
    smallest = 14 * (math.log(4) - math.log(delta))
    if not smallest <= lam <= users:
        raise ValueError(f"lam={lam:g} must lie between 14 ln(4/delta) = {smallest:.6g} and users={users}")
    sure = lam - math.sqrt(2 * lam * (math.log(2) - math.log(delta)))
    return math.sqrt(32 * (math.log(4) - math.log(delta)) / sure) * (1 - sure / users)
