"""Random compositions against exact enumeration: lower <= exact <= upper, without any tolerance.

A composition has two to four releases of finite randomizers, shuffled or not. Their probabilities are multiples of a power of two,
so that every row sums to 1 exactly, and they lie where a composition is most likely to fail: zeros, deterministic rows, equal and
nearly equal rows, masses of 2**-48. All arithmetic is in fractions; only e^eps is irrational, and is replaced by two fractions,
below and above it, with a relative difference of 1e-40.

The exact value is that of the best adaptive strategy: the pair of neighbouring datasets of every release is chosen after the
outcomes of the releases before it, in the best order of the mechanisms.
"""

import itertools
import math
import random
import warnings
from collections import Counter
from fractions import Fraction

from shufflebounds import mechanisms, shuffle

__all__ = ["attack", "neighbours", "wrong"]

FINE = 48
"""Probabilities are multiples of 2**-FINE, so that doubles represent them and 1 minus them exactly."""

MOST_PATHS = 10_000
"""Resource limit: largest number of products of pairs and outcomes along all paths of the recursion."""


def row(r, outputs, other):
    """Return one row of numerators over 2**FINE; `other` is a row before it, or None."""
    whole, kind = 2**FINE, r.random()
    if kind < 0.15:
        place = r.randrange(outputs)
        return [whole * (i == place) for i in range(outputs)]
    if other is not None and outputs > 1 and kind < 0.3:
        near = list(other)
        i, j = r.sample(range(outputs), 2)
        move = min(near[i], 2 ** r.choice([0, 1, 3, 10, 30]))
        near[i], near[j] = near[i] - move, near[j] + move
        return near
    step = 2 ** (FINE - r.choice([3, 3, 6, 20]))
    cuts = sorted(step * r.randrange(whole // step + 1) for _ in range(outputs - 1))
    out = [b - a for a, b in zip([0, *cuts], [*cuts, whole])]
    if r.random() < 0.2 and outputs > 1:
        i, j = r.sample(range(outputs), 2)
        out[i], out[j] = 0, out[i] + out[j]
    if r.random() < 0.15 and outputs > 1:
        # One outcome gets a tiny probability.
        i, j = r.sample(range(outputs), 2)
        total = out[i] + out[j]
        out[i] = min(r.choice([1, 2, 2**12]), total)
        out[j] = total - out[i]
    return out


def matrix(r, inputs, outputs):
    """Return the rows of a randomizer in fractions."""
    rows = []
    for _ in range(inputs):
        rows.append(row(r, outputs, r.choice(rows) if rows else None))
    return tuple(tuple(Fraction(x, 2**FINE) for x in one) for one in rows)


def datasets(rows, users, participation):
    """Return the distributions of the multiset of messages, as a list for each dataset of the other users.

    A list has one distribution for each input of the target.
    """
    taking = Fraction(participation)
    laws = [[taking * p for p in one] for one in rows]
    outputs = len(rows[0])

    def added(law, one):
        out = {}
        for seen, p in law.items():
            if taking < 1:
                out[seen] = out.get(seen, 0) + p * (1 - taking)
            for y, q in enumerate(one):
                if q:
                    key = (*seen[:y], seen[y] + 1, *seen[y + 1:])
                    out[key] = out.get(key, 0) + p * q
        return out

    found = []
    for held in itertools.combinations_with_replacement(range(len(rows)), users - 1):
        others = {(0,) * outputs: Fraction(1)}
        for x in held:
            others = added(others, laws[x])
        found.append([added(others, one) for one in laws])
    return found


def ordered_pairs(targets):
    """Return every ordered pair of distinct inputs of the target as a list of (P, Q); outcomes with equal ratios are merged."""
    found = []
    for first, second in itertools.permutations(targets, 2):
        merged = {}
        for seen in first.keys() | second.keys():
            p, q = first.get(seen, Fraction(0)), second.get(seen, Fraction(0))
            if p:
                ratio = q / p
                before = merged.get(ratio, (0, 0))
                merged[ratio] = before[0] + p, before[1] + q
        pair = sorted(merged.values())
        if pair not in found:
            found.append(pair)
    return found


def neighbours(rows, users=None, participation=1.0):
    """Return a randomizer, shuffled if users are given, and all its pairs of neighbours as lists of (P, Q)."""
    plain = mechanisms.FiniteRandomizer([[float(p) for p in one] for one in rows])
    exact_rows = [[Fraction(p) for p in one] for one in rows]
    if users is None:
        return plain, ordered_pairs([{(y,): p for y, p in enumerate(one) if p} for one in exact_rows])
    pairs = []
    for targets in datasets(exact_rows, users, participation):
        pairs += [pair for pair in ordered_pairs(targets) if pair not in pairs]
    return shuffle.Shuffled(plain, users, participation), pairs


SHUFFLED = 0.05
"""Share of the compositions with shuffled releases. One of their questions takes up to .8 s of CPU time, and one of other releases
takes .01 s."""

QUESTIONS = {True: 20, False: 4}
"""Number of values of eps for each composition without shuffled releases (True), and with them (False). All values share the grids
of the composition."""

INVERSE = 0.05
"""Share of the compositions whose epsilon(delta) is compared at one of the exact values, too. The search for it evaluates delta
many times."""


def mechanism(r, plain):
    """Return a random mechanism, never a shuffled one if `plain`, and all its pairs of neighbours."""
    rows = matrix(r, r.choice([2, 2, 3]), r.choice([1, 2, 2, 3, 3, 4]))
    if plain or r.random() < 0.4:
        return neighbours(rows)
    return neighbours(rows, r.choice([1, 1, 2, 2, 3]), r.choice([1.0, 1.0, 0.5, 0.25]))


def best(releases, factor):
    """Return the largest hockey-stick divergence of all adaptive strategies for these lists of pairs, released in this order.

    Probabilities are converted to integers with a common denominator: their sums and products are exact, and faster than those of
    fractions.
    """
    whole, size = [], 1
    for pairs in releases:
        common = math.lcm(*(x.denominator for pair in pairs for one in pair for x in one))
        whole.append([[(int(p * common), int(q * common)) for p, q in pair] for pair in pairs])
        size *= common
    gain = _largest(whole, factor.denominator, factor.numerator)
    return Fraction(gain, size * factor.denominator)


def _largest(releases, p, q):
    """Return the largest sum of max(0, p a - q b) over the outcomes (a, b), over all adaptive strategies for these releases."""
    if len(releases) == 1:
        return max(sum(max(0, p * a - q * b) for a, b in pair) for pair in releases[0])
    return max(sum(_largest(releases[1:], p * a, q * b) for a, b in pair) for pair in releases[0])


def exponential(eps):
    """Return rationals below and above e^eps."""
    import flint

    before, flint.ctx.prec = flint.ctx.prec, 200
    try:
        ball = flint.arb(eps).exp()
        middle, exponent = (int(x) for x in ball.mid().man_exp())
        value = Fraction(middle) * Fraction(2) ** exponent
    finally:
        flint.ctx.prec = before
    return value * (1 - Fraction(1, 10**40)), value * (1 + Fraction(1, 10**40))


def composition(r):
    """Return a random composition, its releases as lists of pairs, and the number of eps to test."""
    plain = r.random() >= SHUFFLED
    while True:
        kinds = [mechanism(r, plain) for _ in range(r.randint(1, 3))]
        chosen = [*kinds, *(r.choice(kinds) for _ in range(r.randint(0, 4 - len(kinds))))]
        if len(chosen) < 2:
            chosen.append(chosen[0])
        orders = len(set(itertools.permutations([id(pairs) for _, pairs in chosen])))
        paths = orders * math.prod(sum(len(pair) for pair in pairs) for _, pairs in chosen)
        if paths <= MOST_PATHS:
            head, *rest = [one for one, _ in chosen]
            return head.compose(*rest), [pairs for _, pairs in chosen], QUESTIONS[plain]


def exact(releases, eps):
    """Return a lower and an upper bound of the exact delta at eps: the best strategy, in the best order of the releases."""
    orders = {tuple(id(pairs) for pairs in order): order for order in itertools.permutations(releases)}.values()
    low, high = exponential(eps)
    return max(best(order, high) for order in orders), max(best(order, low) for order in orders)


def _log(value):
    """Return the logarithm of a fraction in interval arithmetic."""
    import flint

    return (flint.arb(value.numerator) / flint.arb(value.denominator)).log()


def wrong(low, high, least, most):
    """Return None, or a description of what is wrong with the bounds of log delta if the exact delta is between least and most."""
    import flint

    before, flint.ctx.prec = flint.ctx.prec, 200
    try:
        if math.isnan(low) or math.isnan(high) or low > high:
            return f"lower {low}, upper {high}"
        if low > -math.inf and (most == 0 or flint.arb(low) > _log(most)):
            return f"lower {low} > exact {_log(most) if most else -math.inf}"
        if least > 0 and (high == -math.inf or flint.arb(high) < _log(least)) and high < 0:
            return f"upper {high} < exact {_log(least)}"
    finally:
        flint.ctx.prec = before
    return None


def wrong_inverse(profile, eps, least, most):
    """Return None, or a description of what is wrong with epsilon(delta) at the doubles next to the exact delta of eps.

    The exact delta is between `least` and `most`.
    """
    above, below = math.nextafter(float(most), 1.0), math.nextafter(float(least), 0.0)
    with warnings.catch_warnings():
        # A large delta with a small eps looks like exchanged arguments, about which the library warns.
        warnings.simplefilter("ignore", UserWarning)
        if most < above < 1 and (found := profile.epsilon(above, bound="lower")) > eps:
            return f"lower eps {found} at delta={above!r}, where the exact delta is already smaller"
        if 0 < below < least and (found := profile.epsilon(below)) < eps:
            return f"upper eps {found} at delta={below!r}, where the exact delta is still larger"
    return None


def path(r, releases):
    """Return the privacy loss of a random joint outcome, which may be infinite; delta(eps) has a kink at every finite loss."""
    loss = 0.0
    for pairs in releases:
        p, q = r.choice(r.choice(pairs))
        loss += math.log(p / q) if p and q else math.inf
    return loss


def question(r, pure, releases):
    """Return a random eps: 0, between 0 and the pure budget, next to the budget, or next to the loss of a joint outcome."""
    kind = r.random()
    if kind < 0.1:
        return 0.0
    if kind < 0.5:
        loss = path(r, releases)
        if 0 <= loss <= 700:
            return max(0.0, loss + r.choice([-2, -1, 0, 1, 2]) * r.choice([math.ulp(loss), 1e-9]))
    if not math.isfinite(pure):
        return min(700.0, r.choice([r.uniform(0, 5), r.uniform(0, 40), 10 ** r.uniform(-12, 0)]))
    if kind < 0.6:
        return min(max(0.0, pure * (1 - r.choice([1e-15, 1e-12, 1e-6]))), 700.0)
    return min(r.random() * pure, 700.0)


def attack(seed, cases=None, until=None):
    """Return counts of questions by the number of releases, and one line for every violation or exception.

    A question is one eps of one composition: both bounds of log delta, from one call with all eps of the composition.
    """
    tried, found, number = Counter(), [], 0
    while (cases is None or number < cases) and not (until and until()):
        r = random.Random(f"{seed} {number}")
        profile, releases, many = composition(r)

        def report(said, eps=math.nan, number=number, profile=profile):
            found.append(f"seed {seed!r} case {number} eps={eps!r}: {said}   {profile!r}")

        try:
            pure = profile.epsilon(0.0)
            asked = [question(r, pure, releases) for _ in range(many)]
            lower, upper = (profile.log_delta(asked, bound=bound).tolist() for bound in ("lower", "upper"))
            inverse = asked[-1] if r.random() < INVERSE else None
            for eps, low, high in zip(asked, lower, upper, strict=True):
                tried[f"questions of {len(releases)} releases"] += 1
                least, most = exact(releases, eps)
                said = wrong(low, high, least, most)
                if said is None and eps is inverse:
                    tried[f"questions of {len(releases)} releases"] += 1
                    said = wrong_inverse(profile, eps, least, most)
                if said:
                    report(said, eps)
        except Exception as harm:
            report(f"{type(harm).__name__}: {harm}")
        number += 1
    return tried, found
