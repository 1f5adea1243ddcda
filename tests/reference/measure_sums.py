"""Errors of kernels that compute sums: lattice, blocks, bits, worst_bits, contour, tradeoff, losses, hypergeom, tilted, excess,
moments, matchings.

Each function yields rows for measure_errors.py: the row's name in the kernel's header, and the errors in the unit that the header
states.
"""

import math
from fractions import Fraction

import numpy as np
from flint import arb, ctx

from shufflebounds._core import (
    _bits,
    _blocks,
    _compound,
    _contour,
    _losses,
    _matchings,
    _moments,
    _smoothed,
    _tradeoff,
    _worst_bits,
)
from shufflebounds.tails import poisson_binom_window
from tests.core.test_matchings import exact as negative_part_of_fractions
from tests.oracles import binomial as binomial_law
from tests.oracles import hockey_stick, logarithm, rational, total
from tests.reference import measure_excess
from tests.reference.make_binomial import exact_logs

ROUND = 2.0**-52


def unit(log_p):
    """Return the unit of the errors of the lattice kernels for this log probability."""
    return 1e-13 * min(1.0, abs(log_p)) + ROUND * abs(log_p)


def distance(actual, exact):
    """Return |actual - exact| of a double and an interval."""
    return float(abs(arb(float(actual)) - exact).mid())


def chances(rng, n):
    """Return n random probabilities: uniform, log-uniform down to 1e-320, close to 1, mixtures of these, or equal."""
    kinds = rng.sample(range(4), rng.randint(1, 2))
    return [
        (rng.random(), 10 ** rng.uniform(-320, 0), 1 - 10 ** rng.uniform(-16, 0), 0.37)[rng.choice(kinds)] or 0.5 for _ in range(n)
    ]


def convolved(p):
    """Return the probabilities of the sum of bits as intervals."""
    law = [arb(1)]
    for x in p:
        chance, rest = arb(x), 1 - arb(x)
        law = [(law[i] * rest if i < len(law) else 0) + (law[i - 1] * chance if i else 0) for i in range(len(law) + 1)]
    return law


def lattice(rng, trials):
    """Yield the rows of _lattice.pyx: errors at single points of the whole support."""
    ctx.prec = 512
    errors = []
    while len(errors) < trials:
        p = chances(rng, rng.randint(2, 60))
        law, n = convolved(p), len(p)
        kernel = _blocks.PoissonBinomialPMF(np.array(p))
        for k in {0, 1, 2, n // 2, n - 2, n - 1, n, rng.randint(0, n)} & set(range(n + 1)):
            for upper in (True, False):
                tail, pmf, _ = kernel.point(float(k), upper)
                exact = sum(law[k:], arb(0)) if upper else sum(law[: k + 1], arb(0))
                below, above = sum(law[:k], arb(0)), sum(law[k + 1 :], arb(0))
                for got, ball, rest in ((tail, exact, below if upper else above), (pmf, law[k], below + above)):
                    # The log of a probability close to 1 is computed from its complement.
                    log = (-rest).log1p() if rest < 0.5 else ball.log()
                    value = float(log.mid())
                    if -4e5 < value < -1e-290:
                        errors.append(distance(got, log) / unit(value))
    yield "n <= 600, log p down to -4e5", 1, errors[:trials]
    errors = []
    while len(errors) < trials:
        n, p = round(math.exp(rng.uniform(math.log(10), math.log(1e15)))), rng.choice((rng.random(), 10 ** rng.uniform(-8, 0)))
        k = round(n * p + rng.gauss(0, 1) * rng.choice((1, 6)) * math.sqrt(n * p * (1 - p)))
        if not 1 <= k < n:
            continue
        kernel = _blocks.PoissonBinomialPMF(np.array([p]), np.array([float(n)]))
        pmf, low, high = exact_logs(k, n, p)
        for got, exact in ((kernel.point(float(k), False)[0], low), (kernel.point(float(k), True)[1], pmf),
                           (kernel.tail(float(k + 1), True)[0], high)):
            value = float(exact.mid())
            if value != 0 and math.isfinite(value):
                errors.append(distance(got, exact) / unit(value))
    yield "one group, n = 10..1e15", 1, errors[:trials]


def blocks(rng, trials):
    """Yield the row of _blocks.pyx: all probabilities of sums of 2 to 120 bits, and of several hundred equal bits."""
    ctx.prec = 512
    errors = []
    while len(errors) < trials:
        p = chances(rng, rng.randint(2, 120))
        law = convolved(p)
        first, window = poisson_binom_window(p)
        for k, got in enumerate(window, first):
            value = float(law[k].log().mid())
            errors.append(distance(got, law[k].log()) / unit(value) if value else 0.0)
    yield "n <= 600, by blocks of sigma < 13", 1, errors[:trials]


def error_beyond(actual, exact, spare=4):
    """Return |actual - exact| of logarithms minus `spare` ulp, at least 0."""
    return max(0.0, float(abs(Fraction(actual) - Fraction(exact))) - spare * math.ulp(exact))


def bits(rng, trials):
    """Yield the rows of _bits.pyx: all datasets of up to 12 users, in fractions."""
    errors, tails = [], []
    while len(errors) < trials:
        others, flip = rng.randint(0, 11), rng.uniform(0.01, 0.45)
        ones = rng.randint(0, others)
        budget = math.log((1 - flip) / flip)
        eps = budget * rng.random()
        rest = total(binomial_law(ones, 1 - Fraction(flip)), binomial_law(others - ones, Fraction(flip)))
        laws = [total(rest, binomial_law(1, c)) for c in (Fraction(flip), 1 - Fraction(flip))]
        exact = float(logarithm(hockey_stick(*laws, rational(eps))))
        low, high = map(float, _bits.shuffled_bits_log_delta(float(ones), float(others - ones), flip, eps, gap_of(flip, eps)))
        if math.isfinite(exact):
            errors.append(error_beyond((low + high) / 2, exact))
            assert errors[-1] <= (high - low) / 2
            exact = float(logarithm(sum(p for x, p in laws[0].items() if p > rational(eps) * laws[1][x])))
            bits = (flip, 1 - flip), (1 - flip, flip), eps, gap_of(flip, eps)
            sides = _bits.bits_log_tails(np.array([float(ones)]), np.array([float(others - ones)]), *bits)[:2]
            low, high = (float(side[0]) for side in sides)
            tails.append(error_beyond((low + high) / 2, exact))
            assert tails[-1] <= (high - low) / 2
    yield "every dataset of 1..12 users, exact fractions", "peak", errors
    yield "the same, tail of the loss, relative to the tail", "peak", tails


def gap_of(flip, eps):
    """Return ln((1 - flip)/flip) - eps with an error of an ulp, even if the two terms are close."""
    old, ctx.prec = ctx.prec, 200
    q = arb(flip)
    value = float((((1 - q) / q).log() - arb(eps)).mid())
    ctx.prec = old
    return value


def worst_bits(rng, trials):
    """Yield the row of _worst_bits.pyx: sums of 2 to 4 bits per user, in fractions; errors of the middle of the bounds."""
    errors = []
    while len(errors) < trials:
        others, width, flip = rng.randint(1, 12), rng.randint(2, 4), rng.uniform(0.01, 0.45)
        eps = np.array([width * gap_of(flip, 0.0) * rng.uniform(0, 0.98)])
        q, factor = Fraction(flip), rational(float(eps[0]))
        exact = Fraction(0)
        for ones in range(others + 1):
            rest = total(binomial_law(ones, 1 - q), binomial_law(others - ones, q))
            zero, one = (total(rest, binomial_law(width, c)) for c in (q, 1 - q))
            exact = max(exact, hockey_stick(zero, one, factor), hockey_stick(one, zero, factor))
        low, high = (float(x[0]) for x in _worst_bits.worst_log_delta(others, 0, width, flip, eps, gap_of(flip, 0.0) - eps))
        if exact:
            value = float(logarithm(exact))
            assert low - 4 * math.ulp(value) <= value <= high + 4 * math.ulp(value)
            errors.append(error_beyond((low + high) / 2, value))
    yield "up to 12 other bits, less 4 ulp(log delta):", "peak", errors


CONTOUR = {
    ("1e4..1e5", "1..6"): (1e4, 1e5, 1, 6), ("1e5..1e6", "1..6"): (1e5, 1e6, 1, 6), ("1e6..1e7", "1..6"): (1e6, 1e7, 1, 6),
    ("1e6..1e7", "below 1"): (1e6, 1e7, 0.05, 1),
}


def contour(rng, trials):
    """Yield the rows of _contour.pyx: the middle of its bounds against that of _compound.pyx, and the gap."""
    for (span, steep), (least, most, low, high) in CONTOUR.items():
        middles, gaps = [], []
        while len(middles) < trials:
            mean = math.exp(rng.uniform(math.log(least), math.log(most)))
            rate = min(max(rng.choice((rng.random(), 10 ** rng.uniform(-3, 0))), 1e-3), 0.99)
            n, u = round(mean / rate), rng.uniform(low, high) / math.sqrt(mean)
            if not 1e5 <= n <= 1e9:
                continue
            sides = _contour.log_sign_contour(n, rate, u, 1 - u, 0)
            swept = _compound.log_sign_sweep(n, rate, u, 1 - u)
            if math.isnan(sides[0]):
                continue
            assert sides[0] <= swept[1]
            assert swept[0] <= sides[1]
            middles.append(abs(float(sides[0]) + float(sides[1]) - float(swept[0]) - float(swept[1])) / 2)
            gaps.append(float(sides[1] - sides[0]))
        yield f"{span} {steep}", 0, middles
        yield f"{span} {steep}", 1, gaps


def random_atoms(rng, most):
    """Return random atoms of two distributions as logarithms of masses, in the order of their ratio."""
    n = rng.randint(2, 40)
    laws = [np.array([-rng.uniform(0, most) for _ in range(n)]) for _ in range(2)]
    log_p, log_q = (law - np.logaddexp.reduce(law) for law in laws)
    order = np.argsort(log_p - log_q, kind="stable")
    return log_p[order], log_q[order]


def relative_unit(value):
    """Return the unit of errors of _tradeoff.pyx and _losses.pyx."""
    return ROUND * max(1.0, abs(value))


def tradeoff(rng, trials):
    """Yield rows of _tradeoff.pyx: breakpoints and hockey-stick divergences of random atoms."""
    ctx.prec = 200
    knots, hockey_sticks = [], []
    while len(knots) < trials:
        log_p, log_q = random_atoms(rng, rng.uniform(10, 50))
        table = _tradeoff.tradeoff_knots(log_p, log_q)
        p, q = ([arb(float(x)).exp() for x in law] for law in (log_p, log_q))
        for i in range(1, len(p)):
            for got, part in ((table[0][i], p[:i]), (table[2][i], q[i:])):
                exact = sum(part, arb(0)).log()
                knots.append(distance(got, exact) / relative_unit(float(exact.mid())))
        eps = np.array(sorted((rng.uniform(-3, 3) for _ in range(4)), reverse=True))
        # The atoms are in decreasing order of p/q.
        fallen = [np.ascontiguousarray(law[::-1]) for law in (log_p, log_q)]
        for e, got in zip(eps, _tradeoff.log_hockey_stick(*fallen, eps), strict=True):
            exact = sum((d for d in (x - arb(float(e)).exp() * y for x, y in zip(p, q, strict=True)) if d > 0), arb(0))
            if exact > 0:
                hockey_sticks.append(distance(got, exact.log()) / relative_unit(float(exact.log().mid())))
    yield "breakpoints, random atoms, e^-50 .. e^-10", "peak", knots
    yield "H, random atoms, e^-50 .. e^-10", "peak", hockey_sticks


def losses(rng, trials):
    """Yield the row of _losses.pyx: the hockey-stick divergence of a distribution at its own losses."""
    ctx.prec = 200
    errors = []
    while len(errors) < trials:
        n = rng.randint(2, 60)
        loss = np.unique([rng.uniform(-4, 4) for _ in range(n)])
        log_p = np.array([-rng.uniform(1, 60) for _ in loss])
        rest = -rng.uniform(1, 60)
        for e, got in zip(loss, _losses.law_hockey_stick(loss, log_p, rest), strict=True):
            above = [(arb(float(w)).exp(), arb(float(e)) - arb(float(x))) for w, x in zip(log_p, loss, strict=True) if x > e]
            parts = [mass * (1 - lost.exp()) for mass, lost in above]
            exact = (sum(parts, arb(0)) + arb(rest).exp()).log()
            errors.append(distance(got, exact) / relative_unit(float(exact.mid())))
    yield "masses e^-60 .. 1: 2.3e3 losses, peak", "peak", errors


def hypergeom(rng, trials):
    """Yield the rows of _hypergeom.pyx: pmf and smaller tail, by ratios of neighbours."""
    from tests.core.test_hypergeom import LOGCDF, LOGPMF, LOGSF, allowed, exact_logs, points

    masses, tails = [], []
    for k, population, marked, draws in points(rng.randint(0, 2**30), trials, 2500):
        pmf, tail, upper = exact_logs(k, population, marked, draws)
        for got, exact, found in ((LOGPMF, pmf, masses), (LOGSF if upper else LOGCDF, tail, tails)):
            found.append(distance(got(k, population, marked, draws), exact) / allowed(float(exact.mid())))
    yield "total to 2**53, sigma to 2500, to 40 sigma: pmf", 1, masses
    yield "the same, smaller tail", 1, tails


def tilted(rng, trials):
    """Yield the rows of _tilted.pyx: errors of the cumulant function K(theta), divided by the bound of them that kernels use."""
    ctx.prec = 400
    draws = np.random.default_rng(rng.randint(0, 2**30))
    for name, least, most in (("1 to 8 atoms, masses to e^-40, n to 1e6", 0, 6), ("the same, n from 1e6 to 2**53", 6, 15.9)):
        errors = []
        for _ in range(trials):
            atoms, count = draws.integers(1, 9), math.floor(10 ** draws.uniform(least, most))
            values = draws.normal(size=atoms) * np.exp(draws.normal(size=atoms) * draws.choice([0.3, 1, 3]))
            masses = np.log(draws.dirichlet(np.ones(atoms + 1))[:atoms]) - draws.choice([0, 5, 40]) * draws.random(atoms)
            theta = draws.choice([1e-8, 1e-3, 0.1, 1, 5]) / np.abs(values).max()
            values, masses = np.append(values, 0.0), np.append(masses, np.log1p(-np.exp(masses).sum()))
            _, _, value, blur = _smoothed.tilted_nodes(values, masses, float(count), theta, 1.0, 0.5, 1)
            gains = (arb(float(w)).exp() * (arb(theta) * arb(float(x))).expm1() for x, w in zip(values, masses, strict=True))
            exact = count * sum(gains, arb(0)).log1p()
            errors.append(distance(value, exact) / (theta * blur + 2 * ROUND * (2 + abs(value))))
        yield name, 1, errors


def excess(rng, trials):
    """Yield the rows of _excess.pyx: whether the exact value is outside of the bounds, and the gap."""
    outside, gaps = measure_excess.powers(rng, trials, 300)
    yield "enumerated", 1, outside["listed"]
    yield "enumerated", 3, gaps["listed"]
    yield "contour, atom at S = 0", 1, outside["contour"] or [0.0]
    outside, gaps = measure_excess.clones(rng, trials)
    yield "binary response, n = 1e4..1e9, eps0 to 8", 1, outside
    yield "binary response, n = 1e4..1e9, eps0 to 8", 3, gaps
    yield "Gaussian noise on [0, 1], sigma 1..2", 2, measure_excess.noise(rng, max(1, trials // 10), (1.0, 1.5, 2.0))


def _contour_sum(values, masses, count, theta, step, smoothing, nodes):
    """Return the exact log|phi(theta + i m step)| for each m, and the log of the bound of `_moments.largest`, as intervals.

    The bound is the sum over |m| <= nodes plus the bound of the other terms that the header of _moments.pyx states.
    """
    masses = [arb(float(w)).exp() for w in masses]
    theta, step, smoothing = arb(theta), arb(step), arb(smoothing)
    logs, total = [], arb(0)
    for m in range(nodes + 2):
        t = m * step
        if m <= nodes:
            real = sum((w * ((theta * x).exp() * (t * x).cos() - 1) for w, x in zip(masses, values, strict=True)), arb(1))
            turned = sum((w * (theta * x).exp() * (t * x).sin() for w, x in zip(masses, values, strict=True)), arb(0))
            logs.append((real * real + turned * turned).log() / 2)
            part = 1 / (theta * theta + t * t)
        else:
            part = 1 / (step * step * nodes)
        at = logs[m if m <= nodes else 0]
        total += (1 if m == 0 else 2) * (count * (at - logs[0]) + smoothing * (theta * theta - t * t) / 2).exp() * part
    return logs, (total * step / (2 * arb.pi())).log() + count * logs[0]


def moments(rng, trials):
    """Yield the rows of _moments.pyx: the excess of the upper bounds; inf if a bound is below the exact value."""
    ctx.prec = 300
    draws = np.random.default_rng(rng.randint(0, 2**30))
    points, sums = [], {"1e6": [], "2**53": []}
    for _ in range(trials):
        atoms = draws.integers(1, 41)
        values = draws.normal(size=atoms) * np.exp(draws.normal(size=atoms) * draws.choice([0.0, 0.5, 1.0]))
        values[0] = abs(values[0])
        masses = np.log(draws.dirichlet(np.ones(atoms + 1))[:atoms]) - draws.choice([0, 5, 40]) * draws.random(atoms)
        most = draws.choice(["1e6", "2**53"])
        count = math.floor(10 ** draws.uniform(0.5, 6 if most == "1e6" else 15.9))
        deviation = math.sqrt(count * float(np.exp(masses) @ values**2))
        theta = min(float(draws.uniform(0.3, 6)) / deviation, 5 / float(np.abs(values).max()))
        step, smoothing, nodes = 2 * math.pi / (6.5 * deviation), 5e-4 * deviation**2, 40
        exact, log_sum = _contour_sum(values, masses, count, theta, step, smoothing, nodes)
        starts = np.array([0, atoms])
        upper, lower = _moments.log_moments(values, masses, starts, np.array([theta]), step, nodes)
        tilted = np.exp(masses + theta * values)
        for m in (0, 1, 5, nodes):
            above, below = arb(float(upper[0, 0, m])) - exact[m], exact[m] - arb(float(lower[0, 0, m]))
            size = np.exp(masses) @ np.abs(np.expm1(theta * values)) + m * step * (tilted @ np.abs(values))
            size += 1e-3 * abs(float(exact[m].mid()))
            points.append(float(above.mid()) / (ROUND / 2 * size) if above > 0 and below > 0 else math.inf)
        found = _moments.largest(values, masses, starts, np.array([float(count)]), np.array([theta]), step, smoothing, nodes)
        excess = arb(float(found[0, 0])) - log_sum
        sums[most].append(float(excess.mid()) if excess > 0 else math.inf)
    yield "log|phi|, 1 to 40 atoms, masses to e^-40", 1, points
    yield "log B, the same, k to 1e6", 1, sums["1e6"]
    yield "log B, the same, k to 2**53", 1, sums["2**53"]


def matchings(rng, trials):
    """Yield the rows of _matchings.pyx: the relative excess of the upper bound; inf if it is below the exact value."""
    draws = np.random.default_rng(rng.randint(0, 2**30))
    for name, deepest in (("1 to 3 outputs, masses to 1e-3", 3), ("1 to 3 outputs, masses to 1e-20", 20)):
        errors = []
        while len(errors) < trials // 2:
            outputs = int(draws.integers(1, 4))
            tables = draws.random((outputs, outputs, 6, 4)) * 10.0 ** draws.uniform(-3, 0, (6, 4))
            tables = tables + tables.transpose(1, 0, 2, 3)
            mass = 10.0 ** draws.uniform(-deepest, 0, outputs)
            truth = negative_part_of_fractions(mass, tables)
            if truth > 0:
                found = Fraction(_matchings.negative_part(mass, tables))
                errors.append(float(found / truth - 1) if found >= truth else math.inf)
        yield name, 1, errors


def crossing(rng, trials):
    """Yield the rows of _crossing.pyx: the relative gap of the bounds of eps, over random deployments."""
    from shufflebounds.shuffle import binomial_noise_epsilons, clones_epsilons

    draws = np.random.default_rng(rng.randint(0, 2**30))
    users, delta = np.floor(10 ** draws.uniform(1, 12, trials)), 10 ** -draws.uniform(1, 40, trials)
    jobs = {
        "clones": (clones_epsilons, draws.uniform(0.05, 10, trials)),
        "binomial noise": (binomial_noise_epsilons, draws.uniform(0.01, 0.99, trials)),
    }
    for name, (epsilon, third) in jobs.items():
        low, high = (epsilon(users, third, delta, bound=bound) for bound in ("lower", "upper"))
        known = (low > 0) & (high < np.inf)
        yield name, 2, ((high[known] - low[known]) / high[known]).tolist()
