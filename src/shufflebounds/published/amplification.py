"""Published amplification bounds that hold for every pure local randomizer.

The closed forms of the clone bounds are in `clones`.

The bounds follow from inequalities for the privacy blanket, from Renyi divergences, or from a sum over the outcomes of the clone
pair.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from shufflebounds import tails
from shufflebounds._base.limits import MOST_ITEMS
from shufflebounds._base.scipy_functions import gammaln, logsumexp
from shufflebounds._base.search import bracket
from shufflebounds._base.types import FloatArray
from shufflebounds.composition import rdp_to_dp
from shufflebounds.published._glossary import integer, real
from shufflebounds.published._printed import At, epsilon_of, printed
from shufflebounds.shuffle.clones import Clones, StrongerClones

__all__ = ["balle2019_bennett", "balle2019_hoeffding", "erlingsson2019", "girgis2021_eps", "girgis2021_rdp", "koskela2023_clones"]

_ORDERS = (*range(2, 33), *(math.ceil(32 * 1.1**step) for step in range(1, 52)))
"""The 82 integer Renyi orders, from 2 to 4130, at which the divergence is evaluated; all of them take 15 ms.

Raised: eps falls by less than 1 %. Lowered: larger eps.
"""


def _least_eps(delta_at: Callable[[float], float], local_eps: float, delta: float) -> float:
    """Return the smaller of local_eps and the smallest eps at which the published delta is at most `delta`.

    local_eps is valid even without a shuffle.

    The search returns the upper end of its last interval, where the published delta is at most `delta`.
    """

    def enough(eps: float) -> bool:
        return eps >= local_eps or delta_at(eps) <= delta

    return bracket(enough, 0.0, local_eps, rtol=1e-12)[1]


@printed(
    "proven",
    "Erlingsson, Feldman, Mironov, Raghunathan, Talwar, Thakurta 2019, Theorem 7",
    reason="at least the closed form of the clones, or at least eps0 where delta is too small for that form",
    comparison=epsilon_of(Clones, 10**6, 0.4, 1e-8),
    returns="Upper bound of epsilon, as published.",
    where={
        "users": integer("Number n of users", 1000),
        "local_eps": real("Local budget eps0 in nats", 0, 0.5, ends="()"),
        "delta": real("Target failure probability", 0, 0.01, ends="()"),
    },
)
def erlingsson2019(users: int, local_eps: float, delta: float) -> float:
    r"""Published epsilon of the first amplification bound, for the shuffled messages of any randomizer of local budget eps0.

    .. math:: 12\, \varepsilon_0 \sqrt{\ln(1/\delta)/n}

    >>> round(published.erlingsson2019(10**6, 0.4, 1e-8), 10)
    0.0206012739
    """
    return 12 * local_eps * math.sqrt(-math.log(delta) / users)


_BUDGET = real("Local budget eps0 in nats", 0, 100, ends="(]")
_blanket = partial(
    printed, "proven", comparison=epsilon_of(StrongerClones, 10**6, 1.0, 1e-8), where={"local_eps": _BUDGET},
    returns="Upper bound of epsilon; eps0 where the inequality gives nothing smaller.",
)


def _hoeffding(users: int, local_eps: float, eps: float) -> float:
    weight, shift = math.exp(-local_eps), math.expm1(eps)
    width = (math.exp(eps) + 1) * 2 * math.sinh(local_eps)
    drop = -math.expm1(-2 * (shift / width) ** 2)
    return math.exp(2 * math.log(width) - math.log(4 * shift) - math.log(weight * users) + users * math.log1p(-weight * drop))


@_blanket(
    "Balle, Bell, Gascon, Nissim 2019, section 5, with Hoeffding's inequality",
    reason="the privacy blanket of weight e^-eps0, and Hoeffding's inequality for the expected positive part of its sum",
)
def balle2019_hoeffding(users: int, local_eps: float, delta: float) -> float:
    r"""Return the least epsilon, at most eps0, at which the published delta is at most delta.

    The published delta holds for every randomizer of local budget eps0. Its proof uses that the distributions of a user's message
    have a common part of weight :math:`\gamma`, the privacy blanket, and Hoeffding's inequality.

    .. math:: \delta(\varepsilon) = \frac{b^2}{4 a \gamma n} \bigl(1 - \gamma (1 - e^{-2 a^2/b^2})\bigr)^n, \qquad
        \gamma = e^{-\varepsilon_0},\; a = e^\varepsilon - 1,\; b = (e^\varepsilon + 1)(e^{\varepsilon_0} - e^{-\varepsilon_0})

    >>> round(published.balle2019_hoeffding(10**6, 1.0, 1e-8), 9)
    0.018436789
    """
    return _least_eps(lambda eps: _hoeffding(users, local_eps, eps), local_eps, delta)


def _bennett(users: int, local_eps: float, eps: float) -> float:
    weight, shift = math.exp(-local_eps), math.expm1(eps)
    top = -math.exp(local_eps) * math.expm1(eps - 2 * local_eps)
    square = math.exp(local_eps) * (math.exp(2 * eps) + 1) - 2 * weight * math.exp(eps - 2 * local_eps)
    ratio = shift * top / square
    # phi(u) = (1 + u) log(1 + u) - u is computed as u log1p(u) - (u - log1p(u)), and for small u by its series.
    phi = ratio * math.log1p(ratio) - (ratio - math.log1p(ratio)) if ratio > 1e-4 else ratio**2 / 2 * (1 - ratio / 3)
    drop = -math.expm1(-square / top**2 * phi)
    some = users * math.log1p(-weight * drop)
    none = users * math.log1p(-weight) if weight < 1 else -math.inf
    return math.exp(math.log(top) - math.log(math.log1p(ratio)) - math.log(weight * users) + some) * -math.expm1(none - some)


@_blanket(
    "Balle, Bell, Gascon, Nissim 2019, section 5, with Bennett's inequality, as the authors' program evaluates it",
    reason="the privacy blanket of weight e^-eps0, and Bennett's inequality integrated over the positive part of its sum",
)
def balle2019_bennett(users: int, local_eps: float, delta: float) -> float:
    r"""Return the least epsilon, at most eps0, at which the published delta is at most delta.

    The published delta is that of :func:`balle2019_hoeffding` with Bennett's inequality in place of Hoeffding's.

    .. math:: \delta(\varepsilon) = \frac{1}{\gamma n} \sum_{m=1}^n \binom nm \gamma^m (1-\gamma)^{n-m}
        \frac{b}{\ln(1 + a b/c)}\, e^{-m (c/b^2)\, \phi(a b/c)}, \qquad \phi(u) = (1 + u)\ln(1 + u) - u

    Here :math:`\gamma = e^{-\varepsilon_0}`, :math:`a = e^\varepsilon - 1`,
    :math:`b = e^{\varepsilon_0}(1 - e^{\varepsilon - 2\varepsilon_0})` and
    :math:`c = e^{\varepsilon_0}(e^{2\varepsilon} + 1) - 2 \gamma e^{\varepsilon - 2\varepsilon_0}`. The sum over m is
    computed by the binomial theorem.

    >>> round(published.balle2019_bennett(10**6, 1.0, 1e-8), 9)
    0.018134596
    """
    return _least_eps(lambda eps: _bennett(users, local_eps, eps), local_eps, delta)


@printed(
    "unproven",
    "Girgis, Data, Diggavi, Suresh, Kairouz 2021, in the form of the subsampled shuffle model with every user sampled",
    reason="the paper's proof, for randomizers with finitely many outputs, was not checked here; no violation found",
    comparison=At("n = 10^6, eps0 = 1, order 8; exact: StrongerClones", (10**6, 1.0, 8),
                  lambda users, local_eps, order: StrongerClones(users, local_eps).rdp(order), "Renyi divergence"),
    returns="Upper bound of the Renyi divergence, as published.",
    where={"local_eps": _BUDGET, "order": integer("Renyi order", 2, 2**20)},
)
def girgis2021_rdp(users: int, local_eps: float, order: int) -> float:
    r"""Published Renyi divergence of shuffled messages at an integer order a, for any randomizer of local budget eps0.

    .. math:: \frac{1}{a-1} \ln\Bigl(1 + 4 \binom a2 \frac{(e^{\varepsilon_0}-1)^2}{\bar n e^{\varepsilon_0}}
        + \sum_{j=3}^a \binom aj j\, \Gamma(j/2) \Bigl(\frac{2 (e^{2\varepsilon_0}-1)^2}{\bar n e^{2\varepsilon_0}}\Bigr)^{j/2}
        + \bigl((1+s)^a - 1 - a s\bigr) e^{-(n-1)/(8 e^{\varepsilon_0})}\Bigr)

    Here :math:`\bar n = \lfloor (n-1)/(2e^{\varepsilon_0}) \rfloor + 1` and
    :math:`s = (e^{2\varepsilon_0}-1)/(2 e^{\varepsilon_0})`. The result is at most :math:`\varepsilon_0`.

    >>> round(published.girgis2021_rdp(10**6, 1.0, 8), 9)
    0.000104489
    """
    # The terms are computed in logarithms. `groups` is floor((n - 1)/(2 e^eps0)) + 1, and e^(2 eps0) - 1 = 2 e^eps0 sinh(eps0).
    groups = math.floor((users - 1) / 2 * math.exp(-local_eps)) + 1
    log_groups, log_up = math.log(groups), math.log(2 * math.sinh(local_eps))
    second = math.log(2 * order) + math.log(order - 1) + 2 * math.log(2 * math.sinh(local_eps / 2)) - log_groups
    j = np.arange(3, order + 1, dtype=np.float64)
    choose = gammaln(order + 1) - gammaln(j + 1) - gammaln(order - j + 1)
    rest = choose + np.log(j) + gammaln(j / 2) + j / 2 * (math.log(2) + 2 * log_up - log_groups)
    # With s = sinh(eps0), (1 + s)^a - 1 - a s is the sum of the binomial terms of order 2 and higher, which are all positive.
    i = np.arange(2, order + 1, dtype=np.float64)
    log_s = math.log(math.sinh(local_eps))
    residual = float(logsumexp(gammaln(order + 1) - gammaln(i + 1) - gammaln(order - i + 1) + i * log_s))
    parts = np.concatenate([[0.0, second], rest, [residual - (users - 1) / 8 * math.exp(-local_eps)]])
    return min(float(logsumexp(parts)) / (order - 1), local_eps)


@printed(
    "unproven",
    "Girgis, Data, Diggavi, Suresh, Kairouz 2021, the Renyi bound turned into eps as the authors do",
    reason="follows from girgis2021_rdp, whose proof was not checked here; no violation found",
    comparison=epsilon_of(StrongerClones, 10**6, 1.0, 1e-8),
    returns="Upper bound of epsilon at the best of 82 integer orders up to 4130; at most eps0.",
    where={"local_eps": _BUDGET},
)
def girgis2021_eps(users: int, local_eps: float, delta: float) -> float:
    r"""Return the smallest epsilon that follows from the published Renyi divergences at 82 integer orders a up to 4130.

    :func:`girgis2021_rdp` is the divergence :math:`\rho_a` of order a.

    .. math:: \min_a\; \rho_a + \ln(1 - 1/a) - \frac{\ln\delta + \ln a}{a-1}

    >>> round(published.girgis2021_eps(10**6, 1.0, 1e-8), 9)
    0.028397537
    """
    values = [girgis2021_rdp.formula(users, local_eps, order) for order in _ORDERS]
    return min(rdp_to_dp(_ORDERS, values, delta=delta)[0], local_eps)


def _clone_pair(users: int, local_eps: float, share: float) -> tuple[FloatArray, FloatArray]:
    """Return the probabilities of the outcomes of the clone pair of :func:`koskela2023_clones` under P and under Q.

    Outcomes with a total probability of at most `share` are omitted.
    """
    n, weight = users - 1, math.exp(-local_eps)
    half = math.sqrt(max(n, 1) * math.log(4 / share) / 2)
    first, last = max(0, math.floor(n * weight - half)), min(n, math.ceil(n * weight + half))
    widest = math.ceil(math.sqrt((last + 1) * math.log(4 / share) / 2)) + 1
    terms = (last - first + 1) * (2 * widest + 1)
    if terms > MOST_ITEMS:
        raise ValueError(f"users={users} needs {terms:.2g} terms, more than {MOST_ITEMS:.0g}: use shuffle.Clones")
    count = np.arange(first, last + 1, dtype=np.float64)[:, np.newaxis]
    # C is the number of clones. A ~ Bin(C, 1/2) of them have the distribution of the target's message for its first value. D is 1
    # with probability `own` under P and with probability `other` under Q. An outcome of the clone pair is (A + D, C - A + 1 - D).
    # For every C, the array `a` has the values of A + D at a distance of at most `widest` from the mean (C + 1)/2.
    a = np.floor((count + 1) / 2) + np.arange(-widest, widest + 1)
    own, other = 1 / (1 + weight), weight / (1 + weight)
    log_c = np.asarray(tails.binom_logpmf(count, n, weight))
    with_one, without = (np.exp(log_c + np.asarray(tails.binom_logpmf(k, count, 0.5))) for k in (a - 1, a))
    return (own * with_one + other * without).ravel(), (other * with_one + own * without).ravel()


@printed(
    "proven",
    "Koskela, Heikkilä, Honkela 2023 (arXiv 2106.00477), one release of the clone pair, truncated by Hoeffding's inequality",
    reason="the hockey-stick divergence of the clone pair, summed over most outcomes, plus the probability of the others",
    comparison=epsilon_of(Clones, 10**4, 1.0, 1e-6),
    returns="Upper bound of epsilon, at most eps0.",
    where={"local_eps": real("Local budget eps0 in nats", 0, 30, ends="(]"), "users": integer("Number n of users", 1, 10**6)},
)
def koskela2023_clones(users: int, local_eps: float, delta: float) -> float:
    r"""Return the epsilon of the clone pair, for the shuffled messages of any randomizer of local budget eps0.

    The first distribution of the pair is that of

    .. math:: (A + \Delta,\; C - A + 1 - \Delta), \qquad C \sim \mathrm{Bin}(n - 1, e^{-\varepsilon_0}),\;
        A \sim \mathrm{Bin}(C, 1/2),\; \Delta \sim \mathrm{Bernoulli}\Bigl(\frac{e^{\varepsilon_0}}{e^{\varepsilon_0}+1}\Bigr)

    The second distribution has :math:`1 - \Delta` in place of :math:`\Delta`. C is the number of clones. Outcomes that are omitted
    from the sum add at most a hundredth of delta. Koskela, Heikkilä and Honkela sum on a grid of losses by FFT, which allows
    composition; for one release no grid is needed.

    >>> round(published.koskela2023_clones(1000, 1.0, 1e-6), 9)
    0.182530935
    """
    # The truncation of the clone pair may take up this part of delta. With a smaller part more terms are needed; with a larger part
    # eps increases.
    share = 0.01 * delta
    p, q = _clone_pair(users, local_eps, share)

    def delta_at(eps: float) -> float:
        # The factor 1 + 1e-11 covers the errors of the logarithms of the probabilities, which are below 1e-13.
        return share + float(np.maximum(p - math.exp(eps) * q, 0.0).sum()) * (1 + 1e-11)

    return _least_eps(delta_at, local_eps, delta)
