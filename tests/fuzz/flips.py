"""Protocols whose bits are flipped with probabilities near 0 or 1/2, with their exact delta in interval arithmetic.

Where a flip probability is within 1e-9 of 1/2, all likelihood ratios are near 1. Where it is far below 1/users, delta changes
little up to just below the budget. Delta is the largest over all datasets, which are enumerated, or that of some datasets, which
must be at most the upper bound. For one group of up to 2**53 bits, tails are regularized incomplete beta functions.
"""

import itertools
import math
from functools import lru_cache

from shufflebounds import shuffle

__all__ = ["KINDS", "PROTOCOLS", "ascending", "delta", "enumerated", "loss"]

PROTOCOLS = shuffle.FlippedReports, shuffle.PersonalizedBits, shuffle.RealSum, shuffle.ShuffledBits

FEW, MANY = 6, 20
"""Largest number of other reports for which the sums of two bins, and of other bits for which their total, is enumerated for all
datasets."""


def ball(x):
    import flint

    numerator, denominator = float(x).as_integer_ratio()
    return flint.arb(numerator) / denominator


def flip(r):
    """Return a flip probability: most often within 1e-16 to 1e-8 of 1/2."""
    kind = r.random()
    q = 0.5 - 10 ** r.uniform(-16.2, -8) if kind < 0.7 else 10 ** r.uniform(-14, -1) if kind < 0.85 else r.uniform(0.01, 0.5)
    return min(q, math.nextafter(0.5, 0))


def sums(r):
    users, fakes = r.choice([(r.randint(1, FEW), 0), (r.randint(1, 3), r.randint(1, 3)), (r.randint(2, 60), 0)])
    fake = "known" if users + fakes > FEW else r.choice(["known", "uniform"])
    return shuffle.FlippedReports(users, fakes, 2, flip(r), view="sums", fake=fake)


def records(r):
    return shuffle.FlippedReports(r.randint(1, 3), r.randint(0, 2), 2, flip(r), view="records", fake=r.choice(["known", "uniform"]))


def numbers(r):
    users, bits = r.choice([(r.randint(1, 5), r.randint(1, 4)), (r.randint(5, 60), r.randint(2, 3))])
    return shuffle.RealSum(users, 2 * users * flip(r), bits)


def bits(r):
    return shuffle.ShuffledBits(r.randint(1, 15), flip(r), fakes=r.choice([0, 0, r.randint(1, 9)]))


def many_bits(r):
    users = MANY + int(2 ** r.uniform(0, 53) - MANY) if r.random() < 0.9 else 2**53
    rare = min(10 ** r.uniform(-3, 3) / users, 0.4)
    return shuffle.ShuffledBits(max(users, MANY + 1), r.choice([rare, flip(r)]), ones=r.choice([0, 0, "worst"]))


def personal(r):
    # The budgets are within a few powers of ten, so that the flip probabilities of all users are near 1/2.
    largest = 10 ** r.uniform(-15, -7)
    budgets = [largest * r.choice([1.0, r.random(), 10 ** r.uniform(-3, 0), 0.0]) for _ in range(r.randint(2, 5))]
    data = [r.randint(0, 1) for _ in budgets]
    return shuffle.PersonalizedBits([largest, *budgets], bits=data + [0], target=r.choice([None, 0]))


KINDS = {"flipped sums": sums, "flipped records": records, "real sums": numbers, "nearly fair bits": bits, "many bits": many_bits,
         "nearly fair personal bits": personal}


def enumerated(profile):
    """Return whether `delta` returns the exact value; that of the other protocols can be certified."""
    return isinstance(profile, shuffle.FlippedReports | shuffle.RealSum) or (
        isinstance(profile, shuffle.ShuffledBits) and profile.users > MANY)


def sum_of(factors):
    from shufflebounds.certify import by_definition

    return by_definition.polynomial(factors)


def one_sum(profile):
    """Return the laws of the total of all bits for the target's two values, for every number of ones of the other users."""
    total = isinstance(profile, shuffle.RealSum)
    width = profile.bits if total else 1
    others, fakes = (profile.users - 1) * width, 0 if total else profile.fakes
    q = ball(profile.flip)
    found = []
    for ones in range(others + 1) if others <= MANY else {0, 1, others // 2, others - 1, others}:
        rest = [(q, 1 - q, ones), (1 - q, q, others - ones + fakes)]
        found.append([list(zip(*(sum_of([*rest, (*target, width)]) for target in ((1 - q, q), (q, 1 - q)))))])
    return found, others <= MANY


def one_bin(ones, zeros, q):
    """Return the pairs of probabilities of the sum of a bin, the target's bit being 1 or 0."""
    rest = [(q, 1 - q, ones), (1 - q, q, zeros)]
    return list(zip(sum_of([*rest, (q, 1 - q, 1)]), sum_of([*rest, (1 - q, q, 1)])))


def two_sums(profile):
    """Return the pairs of the sums of two bins, with known dummies; a dataset is the number of other users in the first bin."""
    others, q = profile.users - 1 + profile.fakes, ball(profile.flip)
    few = others <= FEW
    found = []
    for first in range(others + 1) if few else {0, others, others // 2}:
        here, there = one_bin(first, others - first, q), one_bin(others - first, first, q)
        found.append((here, [(b, a) for a, b in there]))
    return found, few


def reports(profile):
    """Return the laws of the sums or records of two bins, by adding one report after the other."""
    import flint

    q = ball(profile.flip)
    shown = list(itertools.product((0, 1), repeat=2))
    rows = [[(1 - q if y[value] else q) * (q if y[1 - value] else 1 - q) for y in shown] for value in range(2)]
    fair = [(a + b) / 2 for a, b in zip(*rows)]
    keys = shown if profile.view == "sums" else [tuple(int(i == j) for j in range(4)) for i in range(4)]

    def added(law, row):
        out = {}
        for seen, p in law.items():
            for key, chance in zip(keys, row):
                at = tuple(map(sum, zip(seen, key)))
                out[at] = out.get(at, 0) + p * chance
        return out

    found = []
    known = profile.fakes if profile.fake == "known" else 0
    for data in itertools.combinations_with_replacement(range(2), profile.users - 1 + known):
        law = {(0,) * len(keys[0]): flint.arb(1)}
        for row in [rows[value] for value in data] + [fair] * (profile.fakes - known):
            law = added(law, row)
        here, there = added(law, rows[0]), added(law, rows[1])
        found.append([[(p, there[key]) for key, p in here.items()]])
    return found, True


def personal_sums(profile):
    flips = [1 / (ball(budget).exp() + 1) for budget in profile.local_eps.tolist()]
    data, found = profile.bits.tolist(), []
    for target in range(len(flips)) if profile.target is None else [profile.target]:
        rest = [(q, 1 - q, 1) if bit else (1 - q, q, 1) for i, (q, bit) in enumerate(zip(flips, data)) if i != target]
        q = flips[target]
        found.append([list(zip(sum_of([*rest, (1 - q, q, 1)]), sum_of([*rest, (q, 1 - q, 1)])))])
    return found, True


@lru_cache(maxsize=2)
def datasets(profile):
    """Return for every dataset the independent sums, each a list of pairs of probabilities, and whether these are all datasets."""
    import flint

    with flint.ctx.workprec(600):
        if isinstance(profile, shuffle.PersonalizedBits):
            return personal_sums(profile)
        if isinstance(profile, shuffle.FlippedReports):
            known = profile.fake == "known" or not profile.fakes
            return two_sums(profile) if profile.view == "sums" and known else reports(profile)
        return one_sum(profile)


def divergence(factors, more):
    """Return the larger hockey-stick divergence of both orders of a product of at most two pairs of laws.

    For each outcome of the first pair, the best outcomes of the second one are the first ones by decreasing likelihood ratio.
    """
    from shufflebounds.certify import balls

    found = []
    for turned in (False, True):
        first, *rest = [[(b, a) for a, b in pair] if turned else pair for pair in factors]
        if not rest:
            found.append(balls.hockey_stick(first, more))
            continue
        (second,) = rest
        found.append(balls.hockey_stick([(p * a, q * b) for p, q in first for a, b in second], more))
    return balls.larger(*found)


def below(bits, one, k):
    """Return Pr[S < k]/Pr[S = k] for S ~ Bin(bits, one), or None if it takes a function of the distribution's width."""
    import flint

    if float(one.mid()) * float((1 - one).mid()) * bits > 1e6:
        return None
    odds, term, total = one / (1 - one), flint.arb(1), flint.arb(0)
    for j in range(k - 1, -1, -1):
        ratio = (j + 1) / (odds * (bits - j))
        term *= ratio
        total += term
        if ratio < 0.9 and term < total * 2.0**-250:
            # the ratios decrease, so that the remaining terms are below a geometric series
            return total + flint.arb(0, float((term * ratio / (1 - ratio)).upper()))
    return total


def ascending(bits, one, gain, loss):
    """Return max_k gain W(k) - loss Pr[S < k] for S ~ Bin(bits, one); the terms increase while W(k)/W(k-1) > 1 + loss/gain."""
    import flint

    zero, odds = 1 - one, one / (1 - one)
    k = ((bits + 1) * odds / (odds + 1 + loss / gain)).floor().unique_fmpz()
    if k is None:
        return None
    k = int(k)
    size = (flint.arb(bits + 1).lgamma() - flint.arb(k + 1).lgamma() - flint.arb(bits - k + 1).lgamma()
            + k * one.log() + (bits - k) * zero.log()).exp()
    ratio = below(bits, one, k)
    if ratio is None:
        return gain * size - loss * zero.beta_lower(flint.arb(bits - k + 1), flint.arb(k), regularized=True)
    return (gain - loss * ratio) * size


def delta(profile, eps):
    """Return two balls: the upper bound must be at least the first one, and the lower bound at most the second one."""
    import flint

    from shufflebounds.certify import balls

    more = ball(eps).exp()
    if isinstance(profile, shuffle.ShuffledBits) and profile.users > MANY:
        q = ball(profile.flip)
        found = [ascending(profile.users - 1, one, 1 - q - q * more, more - 1) for one in (q, 1 - q)]
        if None in found:
            # two thresholds are equally good to 400 bits
            return flint.arb(0), flint.arb(1)
        found = balls.larger(*found)
        return found, found if profile.ones == 0 else flint.arb(1)
    pairs, complete = datasets(profile)
    found = balls.larger(*(divergence(factors, more) for factors in pairs))
    return found, found if complete else flint.arb(1)


def loss(r, profile):
    """Return the privacy loss of a random outcome, rounded or a few doubles away, or a fraction of the budget."""
    pure = profile.epsilon(0.0)
    if isinstance(profile, shuffle.ShuffledBits) and profile.users > MANY:
        deviation = math.sqrt(profile.users * profile.flip * (1 - profile.flip)) + 0.5
        eps = r.choice([pure * r.random(), (1 - 2 * profile.flip) / deviation * r.uniform(0, 15)])
        return min(eps, math.nextafter(pure, 0))
    eps = 0.0
    for pair in r.choice(datasets(profile)[0]):
        p, q = r.choice(pair)
        eps += float((p / q).log().mid())
    eps = abs(eps) * r.choice([1.0, 1.0, 1 + 10 ** r.uniform(-16, -1), r.random()])
    if not math.isfinite(eps):
        # Without flips some outcomes are impossible for one of the two values.
        return r.uniform(0, 12)
    for _ in range(r.randrange(3)):
        eps = math.nextafter(eps, r.choice([0.0, math.inf]))
    return min(eps, math.nextafter(pure, 0))
