"""Computes the values of clones-and-personalised.json: clone bounds, personalized budgets, and exact lower bounds.

    python tests/reference/make_personalized.py [part of an id] [--write]

The divergence of the clone pair is summed over both distributions, given the number of clones (make_clones.inner). The distribution
of that number comes from factorials or, for personalized budgets, from a product tree of polynomials at 1200 bits. eps, eps0 and
delta are the doubles closest to the decimals; the families of budgets are exact rationals. The script takes about five
minutes, most of it for 10,000 budgets.
"""

import functools
import math
import sys
from fractions import Fraction
from pathlib import Path

import flint

sys.path.insert(0, str(Path(__file__).parent))

from arbs import arb, ball, binomial_run, hockey_stick, main, middle, product_tree, secant
from make_clones import inner, log_delta

FAMILIES = {
    "0.5+1.5*i/(n-1)": (2, lambda i, n: Fraction(1, 2) + Fraction(3 * i, 2 * (n - 1))),
    "0.05+0.95*i/(n-1)": (1, lambda i, n: Fraction(1, 20) + Fraction(19 * i, 20 * (n - 1))),
    "0.5+0.15*((7*i) mod 11)": (2, lambda i, n: Fraction(1, 2) + Fraction(3, 20) * (7 * i % 11)),
    "1+3*i/(n-1)": (4, lambda i, n: 1 + Fraction(3 * i, n - 1)),
}


def double(params, name):
    """Return the parameter as the closest double."""
    return ball(float(params[name]))


def budgets(params):
    """Return the numbers e^eps_1 of the target and e^eps_i of the other users."""
    formula = params["family"].split("eps_i=")[1].split(", i=0")[0]
    top, of = FAMILIES[formula]
    return arb(top), [ball(of(i, params["n"])) for i in range(params["n"] - 1)]


@functools.cache
def law_of(kind, family, n, k=None):
    """Return the distribution of the number of clones, or of the other users' flips, for a family of budgets."""
    params = {"family": family, "n": n}
    top, others = budgets(params)
    e1 = top.exp()
    rates = {
        "rr2": lambda e, _: 2 / (e.exp() + 1),
        "flips": lambda e, _: 1 / (e.exp() + 1),
        "laplace": lambda e, _: 2 * (e / top) * (top - e).exp() / (e1 + 1),
        "krr S1": lambda e, k: 2 * (e1 + k - 1) / ((e.exp() + k - 1) * (e1 + 1)),
        "krr": lambda e, k: 2 / (e.exp() + k - 1),
    }
    old, flint.ctx.prec = flint.ctx.prec, 1200
    try:
        return product_tree([rates[kind](e, k) for e in others])
    finally:
        flint.ctx.prec = old


def window(law):
    """Return the indices at which the masses are not negligible."""
    return [c for c, mass in enumerate(law) if middle(mass) > Fraction(1, 2**420)]


def clone_delta(law, w, e):
    """Return E_C of the hockey-stick divergence of A + Ber(1-w) from A + Ber(w), A ~ Bin(C, 1/2)."""
    gain, loss = (1 - w) - e * w, e * (1 - w) - w
    x = float((loss / (gain + loss)).mid())
    total = arb(0)
    places = sorted(window(law), key=lambda c: -float(law[c].mid().log() if law[c] > 0 else -1e9))
    small = 0
    for c in places:
        value = law[c] * inner(c, w, e, x)
        total += value
        small = small + 1 if value < total * arb(2) ** -160 else 0
        if small > 300:
            break
    return total


def homogeneous(params, stronger):
    """Return delta of the clone bound for equal budgets."""
    return log_delta(params["n"], float(params["eps0"]), float(params["eps"]), stronger).exp()


def eps_clone(params, stronger):
    """Return eps of the clone bound at delta."""
    target = double(params, "delta").log()

    def gap(eps):
        return log_delta(params["n"], float(params["eps0"]), eps, stronger) - target

    guess = closed(params, stronger) / 4
    return secant(gap, guess, guess * ball("1.02"), bits=140)


def closed(params, stronger):
    """Return the published closed form of the clone bound of 2023 (stronger) or of 2021."""
    e0, n, big = double(params, "eps0").exp(), params["n"], (4 / double(params, "delta")).log()
    if stronger:
        return (1 + (e0 - 1) * (4 * (2 * big / ((e0 + 1) * n)).sqrt() + arb(4) / n)).log()
    return (1 + (e0 - 1) / (e0 + 1) * (8 * (e0 * big / n).sqrt() + 8 * e0 / n)).log()


def closed_in_code(params):
    """Return the closed form of the program published with the 2021 paper."""
    e0, n, big = double(params, "eps0").exp(), params["n"], (4 / double(params, "delta")).log()
    both = 8 * (e0 * big / n).sqrt() + 8 * e0 / n
    return (1 + (1 - 1 / e0) * both / (1 + 1 / (e0 * (1 + both)))).log()


def all_equal(n, q, e):
    """Return the larger divergence, over both orders, of a bit with flip probability q among n - 1 equal bits."""
    mean = float((n * q).mid())
    first, last = max(0, math.floor(mean - 45 * math.sqrt(mean)) - 50), min(n - 1, math.ceil(mean + 45 * math.sqrt(mean)) + 50)
    w = [arb(0), *binomial_run(n - 1, q, first, last), arb(0)]
    p = 1 - q
    p0 = [p * w[k + 1] + q * w[k] for k in range(len(w) - 1)]
    p1 = [q * w[k + 1] + p * w[k] for k in range(len(w) - 1)]
    return max(hockey_stick(p0, p1, e), hockey_stick(p1, p0, e), key=middle)


def rr2_delta(params):
    """Return delta of binary randomized response, with all other users at one value."""
    return all_equal(params["n"], 1 / (double(params, "eps0").exp() + 1), double(params, "eps").exp())


def rr2_eps(params):
    """Return eps at delta of binary randomized response, with all other users at one value."""
    target, q = double(params, "delta").log(), 1 / (double(params, "eps0").exp() + 1)
    guess = eps_clone_guess = closed(params, True) / 5
    return secant(lambda eps: all_equal(params["n"], q, eps.exp()).log() - target, guess, eps_clone_guess * ball("1.02"), bits=140)


def triple(weights, first, pa, al, e):
    """Return delta of three-ary response if the other users have the third category.

    Given that m of the other users' reports are in the first two categories, the number of them in the first one is Bin(m, 1/2).
    """
    g = 1 - pa - al
    total = arb(0)
    masses = dict(enumerate(weights, first))
    for m in range(first, first + len(weights) + 1):
        before, here = masses.get(m - 1, arb(0)), masses.get(m, arb(0))
        if not middle(before) and not middle(here):
            continue
        rest = None
        # The sum runs downward, because P - E Q decreases with the count of the second category.
        low = max(-1, m // 2 - 45 * math.isqrt(m + 1) - 2)
        halves = binomial_run(m - 1, arb(1) / 2, low, m) if m else []
        now = binomial_run(m, arb(1) / 2, low, m)
        for a in range(m, low, -1):
            x = halves[a - 1 - low] * before if m and a else arb(0)
            y = halves[a - low] * before if m and a < m else arb(0)
            t = now[a - low] * here
            gain = pa * x + al * y + g * t - e * (al * x + pa * y + g * t)
            if gain <= 0:
                break
            total += gain
            rest = gain
        del rest
    return total


def rr3_delta(params):
    """Return delta of three-ary response for equal budgets."""
    e0, n = double(params, "eps0").exp(), params["n"]
    away = 2 / (e0 + 2)
    mean = float((n * away).mid())
    first, last = max(0, math.floor(mean - 32 * math.sqrt(mean)) - 30), min(n - 1, math.ceil(mean + 32 * math.sqrt(mean)) + 30)
    return triple(binomial_run(n - 1, away, first, last), first, e0 / (e0 + 2), 1 / (e0 + 2), double(params, "eps").exp())


def rr3_own(params):
    """Return delta of three-ary response for personalized budgets."""
    top, _ = budgets(params)
    e1 = top.exp()
    law = law_of("krr", params["family"], params["n"], 3)
    kept = window(law)
    return triple(law[kept[0] : kept[-1] + 1], kept[0], e1 / (e1 + 2), 1 / (e1 + 2), double(params, "eps").exp())


def own_delta(kind):
    """Return a function that computes delta of the clone bound with the rates of a family of budgets."""
    def delta(params):
        w = 1 / (budgets(params)[0].exp() + 1)
        e = double(params, "eps").exp()
        k = params.get("k")
        scale = arb(1)
        if kind == "krr":
            # w = 1/(E1 + 1), and `scale` is the factor of the decomposition S2 for the third category.
            e1 = budgets(params)[0].exp()
            scale = (e1 + 1) / (e1 + k - 1)
        return scale * clone_delta(law_of(kind, params["family"], params["n"], k), w, e)
    return delta


def own_eps(params):
    """Return eps at delta of the clone bound for binary randomized response with personalized budgets."""
    target, w = double(params, "delta").log(), 1 / (budgets(params)[0].exp() + 1)
    law = law_of("rr2", params["family"], params["n"])
    guess = ball("0.35") / ball(Fraction(params["n"], 1000)).sqrt() * ball("0.7")
    return secant(lambda eps: clone_delta(law, w, eps.exp()).log() - target, guess, guess * ball("1.1"), bits=140)


def all_zero(params, order):
    """Return delta of binary randomized response with personalized budgets, for one order of the target's bits.

    All other users have value 0.
    """
    w = [arb(0), *law_of("flips", params["family"], params["n"]), arb(0)]
    q = 1 / (budgets(params)[0].exp() + 1)
    p = 1 - q
    p0 = [p * w[k + 1] + q * w[k] for k in range(len(w) - 1)]
    p1 = [q * w[k + 1] + p * w[k] for k in range(len(w) - 1)]
    return hockey_stick(*((p0, p1) if order == "P" else (p1, p0)), double(params, "eps").exp())


def vertex(params, errors):
    """Return Pr[a/(a+b) > theta] under Q, or its complement under P, for the clone pair of binary randomized response."""
    w, e = 1 / (budgets(params)[0].exp() + 1), double(params, "eps").exp()
    theta = ((1 - w) * e - w) / ((1 - 2 * w) * (1 + e))
    law = law_of("rr2", params["family"], params["n"])
    one = 1 - w if errors == "beta" else w
    total = arb(0)
    for c in window(law):
        cut = math.floor(middle(theta * (c + 1)))
        tail = sum(binomial_run(c, arb(1) / 2, cut + 1, c), arb(0))
        total += law[c] * (tail + one * (binomial_run(c, arb(1) / 2, cut, cut)[0] if 0 <= cut <= c else 0))
    return 1 - total if errors == "beta" else total


MADE = {
    "eps_closed_fmt2021": lambda c: closed(c, False),
    "eps_closed_fmt2023": lambda c: closed(c, True),
    "eps_closed_apple_code": closed_in_code,
    "eps_clone_fmt2021": lambda c: eps_clone(c, False),
    "eps_clone_fmt2023": lambda c: eps_clone(c, True),
    "delta_clone_fmt2021": lambda c: homogeneous(c, False),
    "delta_clone_fmt2023": lambda c: homogeneous(c, True),
    "eps_rr2_exact_all_equal": rr2_eps,
    "delta_rr2_exact_all_equal": rr2_delta,
    "delta_rr3_exact_others_third": rr3_delta,
    "delta_rr3_exact_others_third_hetero": rr3_own,
    "tradeoff_vertex_alpha": lambda c: vertex(c, "alpha"),
    "tradeoff_vertex_beta": lambda c: vertex(c, "beta"),
    "delta_clone_hetero_laplace_S1": own_delta("laplace"),
    "delta_krr_S1": own_delta("krr S1"),
    "delta_krr_S2": own_delta("krr"),
    "delta_clone_hetero_rr2": own_delta("rr2"),
    "eps_clone_hetero_rr2": own_eps,
    "delta_rr2_exact_all_zero_Q||P": lambda c: all_zero(c, "Q"),
    "delta_rr2_exact_all_zero_P||Q": lambda c: all_zero(c, "P"),
}


def value(case):
    """Return the recomputed value of a case."""
    return MADE[max((part for part in MADE if case["quantity"].startswith(part)), key=len)](case["params"])


if __name__ == "__main__":
    main("clones-and-personalised", value)
