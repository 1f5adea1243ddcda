"""Computes the values of shuffled-bits.json: flipped bits, dummy reports, shifted binomials and closed forms of three papers.

    python tests/reference/make_shuffled_bits.py [part of an id] [--write]

Every exact value is a sum over the enumerated outcomes of both distributions, in intervals of 400 bits (see arbs.py); closed forms
are those of the papers. Numbers in the parameters are exact decimals. The script takes about two minutes.

In the docstrings E = e^eps, A = 1 - e^-eps, L2 = ln(2/delta), L4 = ln(4/delta), q is the flip probability, p = 1 - q, and, unless
defined otherwise, B is the sum of the noise bits.
"""

import functools
import itertools
import math
import sys
from fractions import Fraction
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from arbs import (
    arb,
    ball,
    between,
    binomial_run,
    bit_hockey_sticks,
    hockey_stick,
    knots,
    law_of_bits,
    main,
    middle,
    secant,
    shift_hockey_sticks,
    tail_sum,
)


def exp_of(params, name="eps"):
    """Return e^eps in interval arithmetic."""
    return ball(params[name]).exp()


def log_over(count, params):
    """Return ln(count/delta)."""
    return (count / ball(params["delta"])).log()


# Cases s000 of shuffled-bits.json: n users, each of whom replaces the bit by a fair coin with probability lambda/n


@functools.cache
def pairs(n, lam):
    """Return the distributions of the sum for the target's bits 0 and 1, for every number of ones among the other users."""
    q = ball(Fraction(lam, 2 * n))
    found = []
    for ones in range(n):
        w = [arb(0), *law_of_bits([(ones, 1 - q), (n - 1 - ones, q)]), arb(0)]
        found.append(tuple([(1 - c) * w[k + 1] + c * w[k] for k in range(n + 1)] for c in (q, 1 - q)))
    return found


def delta_exact(params):
    """Return the largest hockey-stick divergence over all datasets and both directions."""
    e, found = exp_of(params), pairs(params["n"], params["lam"])
    return max((hockey_stick(*pair, e) for pq in found for pair in (pq, pq[::-1])), key=middle)


def fair(n, lam):
    """Return the probabilities of Bin(n, lambda/(2n)), and its distribution function, preceded by its value 0 at -1."""
    law = law_of_bits([(n, ball(Fraction(lam, 2 * n)))])
    below = [arb(0)]
    for mass in law:
        below.append(below[-1] + mass)
    return law, below


def shifted(law):
    """Return the probabilities of B + 1 and of B on 0..n+1."""
    return [arb(0), *law], [*law, arb(0)]


def delta_thm2(params):
    """Return the larger divergence of B and B + 1 over both orders."""
    up, down = shifted(fair(params["n"], params["lam"])[0])
    e = exp_of(params)
    return max(hockey_stick(up, down, e), hockey_stick(down, up, e), key=middle)


def f_thm2(params):
    """Return 1 - F(k + 1), the published value at the breakpoint alpha = F(k)."""
    return 1 - fair(params["n"], params["lam"])[1][params["k"] + 2]


def f_step(params):
    """Return 1 - F(F^-1(alpha) + 1) with the generalized inverse of F."""
    below = fair(params["n"], params["lam"])[1]
    k = next(k for k in range(params["n"] + 1) if below[k + 1] >= ball(params["alpha"]))
    return 1 - below[k + 2]


def f_interp(params):
    """Return the trade-off function T(B+1, B) at alpha; the likelihood ratio of B to B+1 decreases with the count."""
    return between(knots(*shifted(fair(params["n"], params["lam"])[0])), ball(params["alpha"]))


def least_curve(params):
    """Return the smallest trade-off function over datasets and directions, at alpha or at F(k)."""
    n, lam = params["n"], params["lam"]
    alpha = fair(n, lam)[1][params["k"] + 1] if "k" in params else ball(params["alpha"])
    found = []
    for p0, p1 in pairs(n, lam):
        # Small counts are evidence that the target's bit is 0.
        found += [between(knots(p1, p0), alpha), between(knots(p0[::-1], p1[::-1]), alpha)]
    return min(found, key=middle)


def probit(p, upper):
    """Return the normal quantile of p; `upper` = 1 - p is passed as well, so that nothing cancels."""
    small, sign = (p, 1) if middle(p) < Fraction(1, 2) else (upper, -1)
    guess = -(-2 * small.log()).sqrt()

    def log_gap(x):
        return ((-x / arb(2).sqrt()).erfc() / 2).log() - small.log()

    return sign * secant(log_gap, guess, guess * ball("0.9"))


def mu_of(p0, p1, places):
    """Return the largest mu of the pair (p0, p1) over the tests with the given thresholds."""
    found = []
    for k in places:
        values = []
        for law in (p0, p1):
            low, high = sum(law[: k + 1], arb(0)), sum(law[k + 1 :], arb(0))
            values.append(probit(low, high))
        found.append(values[0] - values[1])
    return max(found, key=middle)


def mu_exact(params):
    """Return the largest mu over datasets and interior thresholds; only thresholds where it was largest in tests are searched."""
    n = params["n"]
    found = pairs(n, params["lam"])
    data = range(n) if n <= 10 else range(3)
    return max((mu_of(*found[ones], range(n) if n <= 10 else range(8)) for ones in data), key=middle)


def mu_printed(params):
    """Return the published mu* over interior breakpoints: Phi^-1(1 - alpha) - Phi^-1(beta) at (F(k), 1 - F(k+1))."""
    law, _ = fair(params["n"], params["lam"])
    # B - 1 <= k holds if and only if B <= k + 1.
    return mu_of([law[0] + law[1], *law[2:]], law, range(12))


def ch_law():
    """Return the probabilities of the sum of 50 fair coins and its distribution function."""
    return fair(50, 50)


def ch_curve(params):
    """Return a breakpoint, an interpolated value or a divergence of the sum of 50 fair coins and that sum plus one."""
    law, below = ch_law()
    up, down = shifted(law)
    if "eps" in params:
        return hockey_stick(down, up, exp_of(params))
    if "k" in params:
        return 1 - below[params["k"] + 2]
    return between(knots(up, down), ball(params["alpha"]))


def cheu_eps(params):
    """Return sqrt(32 L4/s) (1 - s/n), s = lambda - sqrt(2 lambda L2)."""
    n, lam = params["n"], ball(params["lam"])
    s = lam - (2 * lam * log_over(2, params)).sqrt()
    return (32 * log_over(4, params) / s).sqrt() * (1 - s / n)


def claim_c1(params):
    """Return ln(1 + sqrt(32 L4/H)), the published eps of a sum with H fair coins."""
    return (1 + (32 * log_over(4, params) / params["H"]).sqrt()).log()


def real_sum(params):
    """Return delta of the sum of all n r bits for the target's number 0 against 1, in the worse order; all other users have 0."""
    n, r = params["n"], params["r"]
    q = ball(Fraction(params["lam"], 2 * n))
    p0 = law_of_bits([(n * r, q)])
    p1 = law_of_bits([((n - 1) * r, q), (r, 1 - q)])
    e = exp_of(params)
    return max(hockey_stick(p0, p1, e), hockey_stick(p1, p0, e), key=middle)


def variance(params):
    """Return (n/(r (n - lambda)))^2 n r q (1-q), with r = 1 for the boolean sum."""
    n, lam, r = params["n"], params["lam"], params.get("r", 1)
    q = Fraction(lam, 2 * n)
    return ball(Fraction(n, r * (n - lam)) ** 2 * n * r * q * (1 - q))


def gdp_delta(params):
    """Return Phi(-eps/mu + mu/2) - e^eps Phi(-eps/mu - mu/2)."""
    mu, eps = ball(params["mu"]), ball(params["eps"])

    def phi(x):
        return (-x / arb(2).sqrt()).erfc() / 2

    return phi(-eps / mu + mu / 2) - eps.exp() * phi(-eps / mu - mu / 2)


# Cases s001 of shuffled-bits.json: n bits with flip probability q


def window(n, p, sigmas=60):
    """Return the counts of Bin(n, p) within `sigmas` standard deviations, and a few more."""
    mean = n * float(middle(p))
    spread = sigmas * math.sqrt(max(mean, 1.0)) + 60
    return max(0, math.floor(mean - spread)), min(n, math.ceil(mean + spread))


def flipped(n, ones, q):
    """Return the distribution of the other users' sum, {count: mass}, without negligible tails."""
    first, last = window(n - 1 - ones, q)
    zeros = binomial_run(n - 1 - ones, q, first, last)
    if not ones:
        return dict(enumerate(zeros, first))
    low, high = (0, ones) if ones < 2000 else window(ones, 1 - q)
    other = binomial_run(ones, 1 - q, low, high)
    law = {}
    for i, x in enumerate(other, low):
        for j, y in enumerate(zeros, first):
            law[i + j] = law.get(i + j, arb(0)) + x * y
    return law


def flipped_hockey_stick(params, side):
    """Return H(P0 || P1) for side 0, and H(P1 || P0) for side 1."""
    return bit_hockey_sticks(flipped(params["n"], params.get("m", 0), ball(params["q"])), ball(params["q"]), exp_of(params))[side]


def crossing(delta_of, params, guess):
    """Return the argument at which log delta_of(argument) is the target, by the secant method."""
    target = ball(params["delta"]).log()
    guess = ball(guess)
    return secant(lambda x: delta_of(x).log() - target, guess, guess * ball("1.000001"))


def least_flip(params):
    """Return the flip probability with the given delta in the worse order, if all other users have value 0.

    The search starts from a double.
    """
    n, e = params["n"], exp_of(params)
    eps, delta = float(params["eps"]), float(params["delta"])

    def delta_of(q):
        return max(bit_hockey_sticks(flipped(n, 0, q), q, e), key=middle)

    return crossing(delta_of, params, bisect(lambda q: delta_of(ball(q)), delta, math.log(2 / delta) / (n * eps**2) / 60, 0.499))


def bisect(value_of, target, low, high):
    """Return the approximate argument at which a decreasing function equals the target."""
    for _ in range(34):
        half = math.sqrt(low * high)
        if value_of(half) > target:
            low = half
        else:
            high = half
    return high


def least_shift(params):
    """Return the probability of a noise bit for which B and B+1 have the given delta."""
    n, e = params["n"], exp_of(params)
    eps, delta = float(params["eps"]), float(params["delta"])

    def delta_of(g):
        return max(shift_hockey_sticks(n, g, e), key=middle)

    return crossing(delta_of, params, bisect(lambda g: delta_of(ball(g)), delta, math.log(2 / delta) / (n * eps**2) / 60, 0.5))


def a_of(params):
    """Return A = 1 - e^-eps."""
    return 1 - 1 / exp_of(params)


def q436(params):
    """Return the flip probability 3 L2/(n A^2) of (4.36)."""
    return 3 * log_over(2, params) / (params["n"] * a_of(params) ** 2)


def nq448(params):
    """Return the mean number of flips 3 L2/A^2 + 4/A of (4.48)."""
    return 3 * log_over(2, params) / a_of(params) ** 2 + 4 / a_of(params)


def nq448_refined(params):
    """Return the number of flips ((sqrt(3 L2) + sqrt(3 L2 + 8 A))/(2 A))^2."""
    three, a = 3 * log_over(2, params), a_of(params)
    return ((three.sqrt() + (three + 8 * a).sqrt()) / (2 * a)) ** 2


def b516(params):
    """Return 3 L4/B^2 + 4/B, B = 1 - e^(-eps/2)."""
    b = 1 - (-ball(params["eps"]) / 2).exp()
    return 3 * log_over(4, params) / b**2 + 4 / b


def b510(params):
    """Return 3 L4 ((E+1)/(E-1))^2."""
    e = exp_of(params)
    return 3 * log_over(4, params) * ((e + 1) / (e - 1)) ** 2


def b55fix(params):
    """Return ((sqrt(3 L4) (E+1) + sqrt(3 L4 (E+1)^2 + 4 (E-1)))/(2 (E-1)))^2."""
    e, three = exp_of(params), 3 * log_over(4, params)
    return ((three.sqrt() * (e + 1) + (three * (e + 1) ** 2 + 4 * (e - 1)).sqrt()) / (2 * (e - 1))) ** 2


def clear_delta(params):
    """Return delta of one exact report among dummy reports.

    N ~ Bin(m, 2/d) of the dummy reports are in the target's two bins, and Bin(N, 1/2) of these in the first.
    """
    m, d, e = params["m"], params["d"], exp_of(params)

    def given(total):
        """Return the sum of the positive parts of P - E Q over the counts of the first bin, for `total` dummies in both bins."""
        ks = range(total + 2)
        b = binomial_run(total, arb(1) / 2, 0, total + 1) if total <= 400 else None
        if b is not None:
            return hockey_stick([b[k - 1] if k else arb(0) for k in ks], [b[k] for k in ks], e)
        # b(k-1) > e b(k) holds for k from `cut` on.
        cut = math.floor(middle((total + 1) * e / (e + 1))) + 1
        last = min(total + 1, cut + 40 * math.isqrt(total))
        b = binomial_run(total, arb(1) / 2, cut - 1, last)
        return sum((b[i] - e * b[i + 1] for i in range(last - cut + 1)), arb(0))

    if d == 2:
        return given(m)
    first, last = window(m, ball(Fraction(2, d)), 24)
    weights = binomial_run(m, ball(Fraction(2, d)), first, last)
    return sum((w * given(total) for total, w in enumerate(weights, first)), arb(0))


def fake_flip(params):
    """Return delta of a user in bin 1 or 2 among uniform dummy reports, all bits flipped, by a sum over the counts of both bins."""
    q, d, e = Fraction(params["q"]), params["d"], Fraction(params["E"])
    p = 1 - q
    fake = {(1, 0): (p * p + q * q) / d + (1 - Fraction(2, d)) * p * q, (1, 1): 2 * p * q / d + (1 - Fraction(2, d)) * q * q}
    fake[0, 1] = fake[1, 0]
    fake[0, 0] = 1 - sum(fake.values())
    scale = math.lcm(*(x.denominator for x in fake.values()))
    steps = [(cell, int(x * scale)) for cell, x in fake.items()]
    law = {(0, 0): 1}
    for _ in range(params["m"]):
        after = {}
        for (i, j), mass in law.items():
            for (a, b), chance in steps:
                after[i + a, j + b] = after.get((i + a, j + b), 0) + mass * chance
        law = after
    first = {(1, 0): p * p, (0, 1): q * q, (1, 1): p * q, (0, 0): p * q}
    cells = {(i + a, j + b) for i, j in law for a, b in first}
    total = Fraction(0)
    for i, j in cells:
        mass = {cell: law.get((i - cell[0], j - cell[1]), 0) for cell in first}
        gain = sum(first[cell] * mass[cell] for cell in first) - e * sum(first[cell[::-1]] * mass[cell] for cell in first)
        total += max(gain, 0)
    return ball(total / Fraction(scale) ** params["m"])


def record_level(params):
    """Return delta of shuffled records if all other users are in bin 1.

    For a user in bin 1 the records 10 and 01 have probabilities p^2 and q^2; for a target in bin 2 they have q^2 and p^2.
    """
    n, q, e = params["n"], ball(params["q"]), exp_of(params)
    p = 1 - q
    low, high = window(n - 1, q * q, 40)
    few = binomial_run(n - 1, q * q, low - 1, high)
    given = p * p / (1 - q * q)
    total = {1: arb(0), -1: arb(0)}
    centre = {b: (n - 1 - b) * float(middle(given)) for b in range(low, high + 1)}
    for b, weight in enumerate(few, low - 1):
        if b < max(low - 1, 0):
            continue
        mean = centre.get(b, (n - 1 - b) * float(middle(given)))
        spread = 26 * math.sqrt(n * 2 * float(middle(q))) + 30
        first, last = max(0, math.floor(mean - spread)), min(n - 1 - b, math.ceil(mean + spread))
        # T(a, b) is the probability of the other users' records; T(a-1, b) and T(a, b-1) include the target's record.
        run = binomial_run(n - 1 - b, given, first, last)
        for a, mass in enumerate(run, first):
            t = weight * mass
            left = n - 1 - a - b
            # These are ratios of multinomial probabilities with and without the target's record.
            before_a = t * a * (2 * p * q) / ((left + 1) * p * p) if a else arb(0)
            before_b = t * b * (2 * p * q) / ((left + 1) * q * q) if b else arb(0)
            one = p * p * before_a + q * q * before_b + 2 * p * q * t
            two = q * q * before_a + p * p * before_b + 2 * p * q * t
            for sign, gain in ((1, one - e * two), (-1, two - e * one)):
                if gain > 0:
                    total[sign] += gain
    return max(total.values(), key=middle)


# Cases s003 of shuffled-bits.json: sums with noise bits, histograms


def gamma_printed(params):
    """Return 50 ln(2/delta)/(n eps^2)."""
    return 50 * log_over(2, params) / (params["n"] * ball(params["eps"]) ** 2)


def alpha_printed(params):
    """Return the published error with probability 1 - beta."""
    eps, n = ball(params["eps"]), params["n"]
    return gamma_printed(params) + (200 * log_over(2, params) * (2 / ball(params["beta"])).log()).sqrt() / (eps * n)


def fail_exact(params):
    """Return the probability that the error exceeds a: Pr[Y < S, |Y - n g| > n a] + [S > n a] Pr[Y >= S] for Y ~ Bin(n, g)."""
    n, g, s = params["n"], gamma_printed(params), params["S"]
    na, ng = n * alpha_printed(params), n * gamma_printed(params)
    first, last = window(n, g)
    run = binomial_run(n, g, first, last)
    return sum((mass for y, mass in enumerate(run, first) if (abs(y - ng) > na if y < s else s > na)), arb(0))


def two_bins(params):
    """Return delta of the counts (B + 1, B') against (B, B' + 1) of two bins, where B and B' are independent with Bin(n, gamma)."""
    n, g = params["n"], ball(params["gamma"])
    times, eps = params["eps_total"].split("*")
    e = (ball(times) * ball(eps)).exp()
    up, down = shifted(law_of_bits([(n, g)]))
    return sum((d for i in range(n + 2) for j in range(n + 2) if (d := up[i] * down[j] - e * down[i] * up[j]) > 0), arb(0))


def gap_eps(params):
    """Return the log of the largest ratio of two distributions of four bits: uniform on all words, and without exactly two ones."""
    n = params["n"]
    words = [Fraction(math.comb(4, k), 16) for k in range(5)], [Fraction(math.comb(4, k) * (k != 2), 10) for k in range(5)]
    laws = []
    for ones in range(n + 1):
        law = [Fraction(1)]
        for user in range(n):
            word = words[user < ones]
            law = [sum(law[i - k] * word[k] for k in range(5) if 0 <= i - k < len(law)) for i in range(len(law) + 4)]
        laws.append(law)
    pairs_of_laws = [pair for one, other in itertools.pairwise(laws) for pair in ((one, other), (other, one))]
    return ball(max(x / y for a, b in pairs_of_laws for x, y in zip(a, b, strict=True))).log()


def support_size(params):
    """Return the smallest n with h Pr[Bin(n, 1/h) <= k-1] <= 1/200 and n >= 100 L/e^2, k = 2t + 1."""
    h, e, big = params["h"], ball(params["eps"]) / 2, log_over(4, params)
    t = math.ceil(middle(50 * big / e**2 + (200 * big * arb(400 * h).log()).sqrt() / e))
    k = 2 * t + 1
    assert (t, k) == (params["t"], params["k"])

    def enough(n):
        if n < middle(100 * big / e**2) or n < k:
            return False
        if h == 1:
            return True
        p = ball(Fraction(1, h))
        mass = binomial_run(n, p, k - 1, k - 1)[0]

        def term(j):
            # The probabilities are computed downward from k - 1, each from the one before.
            nonlocal mass
            now, mass = mass, mass * (j * (1 - p)) / ((n - j + 1) * p)
            return now

        return middle(h * tail_sum(term, k - 1, -1)) <= Fraction(1, 200)

    low, high = 0, k * h * 3
    while high - low > 1:
        half = (low + high) // 2
        low, high = (low, half) if enough(half) else (half, high)
    return arb(high)


# For each prefix of an id, the function that computes its value; the longest matching prefix is used.
MADE = {
    "s000.delta_exact": delta_exact,
    "s000.delta_thm2": delta_thm2,
    "s000.f_thm2": f_thm2,
    "s000.f_step": f_step,
    "s000.f_interp": f_interp,
    "s000.T_exact": least_curve,
    "s000.mu_pub": mu_printed,
    "s000.mu_exact": mu_exact,
    "s000.CH50": ch_curve,
    "s000.cheu.eps": cheu_eps,
    "s000.C1.eps": claim_c1,
    "s000.realsum.total": real_sum,
    "s000.var_bool": variance,
    "s000.var_real_noise": variance,
    "s000.gdp_delta": gdp_delta,
    "s001.qmin0": least_flip,
    "s001.q436": q436,
    "s001.q448": lambda params: nq448(params) / params["n"],
    "s001.nq448.": nq448,
    "s001.nq448_refined": nq448_refined,
    "s001.clear.b55fix": b55fix,
    "s001.clear.b510": b510,
    "s001.b516": b516,
    "s001.clear.delta": clear_delta,
    "s001.delta0.left": lambda params: flipped_hockey_stick(params, 0),
    "s001.delta0.right": lambda params: flipped_hockey_stick(params, 1),
    "s001.delta_m.left": lambda params: flipped_hockey_stick(params, 0),
    "s001.delta_m.right": lambda params: flipped_hockey_stick(params, 1),
    "s001.fakeflip.sums": fake_flip,
    "s001.record_level": record_level,
    "s003.gamma_min": least_shift,
    "s003.gamma_pub": gamma_printed,
    "s003.alpha_pub": alpha_printed,
    "s003.fail_exact": fail_exact,
    "s003.shift.delta": lambda params: shift_hockey_sticks(params["n"], gamma_printed(params), exp_of(params))[0],
    "s003.shift.left": lambda params: shift_hockey_sticks(params["n"], ball(params["gamma"]), exp_of(params))[0],
    "s003.shift.right": lambda params: shift_hockey_sticks(params["n"], ball(params["gamma"]), exp_of(params))[1],
    "s003.hist.pair": two_bins,
    "s003.rgap.eps": gap_eps,
    "s003.supp.n": support_size,
}


def value(case):
    """Return the recomputed value of a case."""
    name = case["id"].removeprefix("shuffled-bits/")
    return MADE[max((part for part in MADE if name.startswith(part)), key=len)](case["params"])


if __name__ == "__main__":
    main("shuffled-bits", value)
