r"""delta for users with personalized budgets: the bounds of k-ary response, Laplace and Gaussian noise.

R_0 and R_1 are the distributions of the target's message for its two values (0 and 1 for noise), b is the target's budget (1/sigma
for Gaussian noise), F = e^eps, and R_i is the distribution of the message of another user with budget c, for any value.

**Upper bounds.** Theorem (docs/theorems/stronger-clones, users of different budgets). If the ratio of R_0 and R_1 is at most p,
where p >= F, and R_i >= c_i max(R_0, R_1), then delta is at most that of `clones_window` where user i is a clone with probability
2 r_i, r_i = min(1/2, c_i p/(p + 1)). The condition R_i >= r_i (R_0 + R_1) suffices. Three decompositions are used:

- S1: r_i = inf R_i/(R_0 + R_1).
- S2: let T be the total variation distance of R_0 and R_1, D+ and D- the distributions with the densities (R_0 - R_1)_+/T and
  (R_1 - R_0)_+/T, and lambda = T (p + 1)/(p - 1). Then R_0 >= lambda (p D+ + D-)/(p + 1) and R_1 >= lambda (D+ + p D-)/(p + 1), and
  the two remainders are equal. So delta is at most lambda times that of a target with the messages D+ and D-, for which
  r_i = inf R_i/(D+ + D-) = T inf R_i/|R_0 - R_1|.
- Window: let a set G have mass kappa under both R_0 and R_1, and reveal whether the target's message is in G. So delta is at most
  kappa times the theorem's bound for R_0/kappa and R_1/kappa on G, plus the divergence outside of G.

Rates. *k-ary response*: R_i >= 1/(e^c + k - 1), R_0 + R_1 <= (p + 1)/(p + k - 1) and T = (p - 1)/(p + k - 1) for p = e^b.
*Laplace noise*: at the distance s from [0, 1], R_i >= (c/2) e^(-c (1 + s)), while R_0 + R_1 and |R_0 - R_1| are at most
(b/2) e^(-b s) (1 + e^-b) and (b/2) e^(-b s) (1 - e^-b); T = 1 - e^(-b/2). For c > b, the ratio is bounded in the window s <= reach
only. *Gaussian noise*: in the window [1/2 - reach, 1/2 + reach], p = e^(reach b^2). At the output 1/2 - t, t >= 0, R_i is smallest
for the value 1, and ln(R_i/R_0) = ln(c/b) + (b^2 (t - 1/2)^2 - c^2 (t + 1/2)^2)/2 is smallest at an end, or at its turning point
if b > c.

*Privacy blanket* of k-ary response: user i sends a uniform message with probability k/(e^c + k - 1), and which messages are uniform
is revealed. So delta is at most the mean of (X_1 + ... + X_m)_+/m, where m - 1 is the number of uniform messages and X =
k (R_0 - F R_1) of a uniform message, which is the target's first or second value, or another one.

*Equal budgets* of k-ary response: delta is between those of the protocols in which all users have the least and the largest budget
(docs/personalized); their certificates are those of shuffled k-ary response.

**Lower bounds**: delta of one dataset if the analyst sees one statistic. k-ary response: all other users have a third value, and
the numbers of messages with the target's two values are seen. Noise: all other users have the value 0, and the number of messages
in an interval is seen, a sum of independent bits.

The witness is the window's reach and the interval. Budgets are the stored doubles; the maximum over targets is over all users.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

from shufflebounds._engines.clones.attained import intervals
from shufflebounds.certify._dispatch import Bounds, bounds_of, hockey_stick_of, kinds_of, outcomes_of
from shufflebounds.certify.balls import Answer, Ball, Outcomes, arb, both_orders, hockey_stick, larger, normal_tail, smaller
from shufflebounds.certify.blanket import enumerated
from shufflebounds.certify.by_definition import polynomial, sum_outcomes
from shufflebounds.certify.clones_window import every_count
from shufflebounds.certify.noise import normal_delta

Users = list[tuple[Ball, int]]
"""The budgets of the other users, or their rates, each with the number of users."""


def counted(rates: Users) -> list[Ball]:
    """Return the distribution of the number of clones."""
    return polynomial([(1 - (2 * rate).min(arb(1)), (2 * rate).min(arb(1)), many) for rate, many in rates])


def clone_outcomes(law: Sequence[Ball], odds: Ball, share: Ball | int = 1) -> Outcomes:
    """Return the outcomes (M, number of first messages) if C has the distribution `law`.

    With probability `share` the target sends one of both messages, the first one with the odds `odds` or 1/`odds`, and M = C + 1;
    otherwise M = C. Each of the C other messages is the first one with probability 1/2.
    """
    out, seen = [], [arb(0), *law, arb(0)]
    for m in range(len(law) + 1):
        for k in range(m + 1):
            first, second = (share * seen[m] * math.comb(max(m - 1, 0), j) / 2 ** max(m - 1, 0) / (odds + 1) if j >= 0 else arb(0)
                             for j in (k - 1, k))
            rest = (1 - share) * seen[m + 1] * math.comb(m, k) / 2**m
            out.append((odds * first + second + rest, first + odds * second + rest))
    return out


def _kary(categories: int, b: Ball, users: Users, reach: float, factor: Ball) -> Iterator[Ball]:
    odds, k = b.exp(), categories
    low, own = [(1 / (c.exp() + k - 1), many) for c, many in users], (odds + 1) / (odds + k - 1)
    yield every_count(counted([(rate / own, many) for rate, many in low]), odds, factor)
    yield own * every_count(counted(low), odds, factor)
    law = [(k * x / (odds + k - 1), arb(n) / k) for x, n in ((odds - factor, 1), (1 - factor * odds, 1), (1 - factor, k - 2))]
    hidden = polynomial([(1 - k * rate, k * rate, many) for rate, many in low])
    yield sum((p * enumerated(law, m, arb(0)) for m, p in enumerate(hidden, 1)), arb(0))


def _laplace(b: Ball, users: Users, reach: float, factor: Ball) -> Iterator[Ball]:
    small, slow = (-b).exp(), [(c, many) for c, many in users if c <= b]

    def clones(scale: Ball, others: Users, far: float) -> Ball:
        rates = [(scale * c / b * (-c - (c - b).max(arb(0)) * far).exp() / (1 + small), many) for c, many in others]
        return scale * every_count(counted(rates), 1 / small, factor)

    yield clones(arb(1), slow, 0.0)
    yield clones((1 + small) / (1 + (-b / 2).exp()), slow, 0.0)
    if reach > 0:
        beyond = (-b * reach).exp() / 2
        yield clones(1 - beyond * (1 + small), users, reach) + beyond * (1 - factor * small).max(arb(0))


def _gaussian(b: Ball, users: Users, reach: float, factor: Ball) -> Iterator[Ball]:
    half, p = arb(0.5), (reach * b**2).exp()
    yield normal_delta(b, factor)
    if not (reach and p >= factor):
        return
    inner, outer = normal_tail(b * (reach - half)), normal_tail(b * (reach + half))
    kappa, rates = 1 - inner - outer, []
    for c, many in users:
        turns = [arb(0), arb(reach)] + ([((b * b + c * c) / (2 * (b * b - c * c))).min(arb(reach))] if b > c else [])
        least = -larger(*((c * (t + half)) ** 2 / 2 - (b * (t - half)) ** 2 / 2 for t in turns))
        rates.append((kappa * c / b * least.exp() * p / (p + 1), many))
    yield kappa * every_count(counted(rates), p, factor) + (inner - factor * outer).max(arb(0))


def _reach(population: Any, eps: float, target: int) -> float:
    """Return the reach of the window that the engine has chosen, or 0; every reach gives a valid bound."""
    masses = dict(population.candidates(eps, target))
    return float(population._terms("window", eps, target, target, masses["window"]).reach) if "window" in masses else 0.0


@bounds_of.of("_Guarantee", "CloneBound")
def _(guarantee: Any) -> Bounds:
    forms: Any = getattr(guarantee, "forms", None) or guarantee._closed.sides[True].forms
    population, kinds = forms.population, kinds_of(forms.population.family)
    k, normal, number = getattr(population.family, "categories", 0), "GaussianFamily" in kinds, int(population.counts.sum())
    budgets, counts = population.budgets.tolist(), population.counts.tolist()
    targets = range(len(budgets)) if forms.place is None else [forms.place]
    bounds: Callable[..., Iterator[Ball]] = partial(_kary, k) if k else _gaussian if normal else _laplace

    def others(target: int) -> Users:
        return [(arb(c), int(many) - (j == target)) for j, (c, many) in enumerate(zip(budgets, counts, strict=True))]

    def largest(factor: Ball, *, eps: float, most: int) -> Ball:
        ways = [bounds(arb(budgets[i]), others(i), _reach(population, eps, i), factor) for i in targets]
        return larger(*(smaller(*islice(way, most)) for way in ways))

    def third_value(factor: Ball, *, i: int) -> Ball:
        odds, rates = arb(budgets[i]).exp(), [(1 / (arb(c).exp() + k - 1), many) for c, many in others(i)]
        return hockey_stick(clone_outcomes(counted(rates), odds, (odds + 1) / (odds + k - 1)), factor)

    def inside(factor: Ball, *, i: int, ends: tuple[float, float]) -> Ball:
        def bit(budget: Ball, value: float, many: int = 1) -> tuple[Ball, Ball, int]:
            # An end at 1e308 instead of inf gives a valid bound, too; erfc(inf) is not computed.
            distances = [budget * (arb(min(end, 1e308)) - value) for end in ends]
            low, high = (normal_tail(y) if normal else (-y).exp() / 2 if y > 0 else 1 - y.exp() / 2 for y in distances)
            return 1 - low + high, low - high, many

        zeros = [bit(c, 0, many) for c, many in others(i)]
        return both_orders(sum_outcomes(zeros, *(bit(arb(budgets[i]), x) for x in (0, 1))), factor)

    def ways(eps: float, upper: bool) -> Iterator[Answer]:
        # The privacy blanket, the third bound of k-ary response, takes longer than the clone bounds.
        for most, blanket in [] if not upper else [(2, 0.0), (3, 1.5 * number**3)] if k else [(3, 0.0)]:
            yield Answer(len(targets) * (3.0 * number * (24 + len(budgets)) + blanket), partial(largest, eps=eps, most=most))
        for i in [] if upper else guarantee._below.places:
            seen = [partial(inside, i=i, ends=ends) for ends in intervals(population, budgets[i])] if not k else []
            yield from (Answer(20.0 * number**2, one) for one in seen or [partial(third_value, i=i)])
        for equal in forms.equal if upper else [forms.least] if k else []:
            yield from bounds_of(equal)(eps, upper)

    return ways


@hockey_stick_of.computed("PersonalizedClones", size=lambda one: (12 + 0.5 * one.rates.size) * one.counts.sum(), make=Answer)
def _(protocol: Any, factor: Ball) -> Ball:
    rates = [(arb(rate), int(many)) for rate, many in zip(protocol.rates.tolist(), protocol.counts.tolist())]
    weight = arb(protocol.weight)
    return protocol.scale * every_count(counted(rates), (1 - weight) / weight, factor)


@outcomes_of.computed("_UniformClones", size=lambda protocol: (protocol.users + 1) ** 2 / 2)
def _(protocol: Any) -> Outcomes:
    odds = arb(protocol.local_eps).exp()
    rate = 1 / (odds + 1) if protocol._is_stronger_clones else 1 / odds / 2
    return clone_outcomes(counted([(rate, protocol.users - 1)]), odds)
