"""Random protocols asked at random eps: lower <= exact <= upper, the exact value a ball from :meth:`certify` (python-flint).

Parameters lie in the middle of their ranges, at their ends, and at the last doubles before them; eps anywhere in the budget, and
at the last doubles below it. The ball contains the exact value, so a side on the wrong side of all of it is a violation, without
any tolerance.
"""

import math
import random
from collections import Counter

import numpy as np

from shufflebounds import mechanisms, shuffle
from shufflebounds.profile import DominatingPair

__all__ = ["KINDS", "attack"]


def near(r, low, high):
    """Return a number in [low, high]: uniform, log-uniform, or a few ulp from an end."""
    kind = r.random()
    if kind < 0.4:
        return r.uniform(low, high)
    if kind < 0.8:
        least = max(low, high * 1e-20 if high < 1e-280 else 1e-300, 5e-324)
        return min(high, math.exp(r.uniform(math.log(least), math.log(max(high, 5e-324)))))
    x = r.choice([low, high, high / 2])
    for _ in range(r.randrange(4)):
        x = math.nextafter(x, high if x == low else low)
    return min(max(x, low), high)


def clones(r):
    return r.choice([shuffle.Clones, shuffle.StrongerClones])(r.randint(1, 24), max(near(r, 0, r.choice([3, 30, 700])), 1e-290))


def weighted(r):
    rates = [near(r, 0, 0.5) for _ in range(r.randint(1, 8))]
    return shuffle.PersonalizedClones(min(max(near(r, 0, 0.5), 1e-300), 0.5 - 2e-16), rates, max(near(r, 0, 1), 1e-290))


def bits(r):
    users = r.randint(1, 20)
    return shuffle.ShuffledBits(users, near(r, 0, 0.5), ones=r.choice(["worst", r.randrange(users)]))


def personal(r):
    users = r.randint(1, 8)
    return shuffle.PersonalizedBits([near(r, 0, r.choice([2, 20, 700])) for _ in range(users)],
                                    bits=[r.randint(0, 1) for _ in range(users)], target=r.choice([None, r.randrange(users)]))


def noise(r):
    return shuffle.BinomialNoise(r.randint(0, 60), min(max(near(r, 0, 1), 1e-300), 1 - 2.0**-53))


def listed(r):
    laws = []
    for _ in range(2):
        law = np.array([max(near(r, 0, 1), 1e-300) for _ in range(r.randint(4, 4))])
        laws.append(np.log(law / law.sum()))
    return DominatingPair.from_pmfs(*laws)


def shuffled(r):
    # the blanket bound, which the upper side encloses; the lower side, of given data, lies below it
    if r.random() < 0.5:
        randomizer = mechanisms.KaryResponse(r.randint(2, 50), min(max(near(r, 0, r.choice([3, 30, 700])), 1e-290), 700.0))
        return shuffle.Shuffled(randomizer, r.randint(1, 12), min(max(near(r, 0, 1), 1e-12), 1.0))
    rows = [[r.randrange(1, 2**20) if r.random() < 0.9 else 0 for _ in range(r.randint(2, 4))] for _ in range(r.randint(2, 3))]
    width = min(map(len, rows))
    # dyadic chances that sum to 1 exactly
    rows = [[x / 2**24 for x in row[: width - 1]] for row in rows]
    return shuffle.Shuffled(mechanisms.FiniteRandomizer([[*row, 1 - sum(row)] for row in rows]), r.randint(1, 8))


def variation(r):
    p = 1 + math.exp(r.uniform(-20, 40))
    beta = max(near(r, 0, (p - 1) / (p + 1)), 1e-290)
    return shuffle.VariationRatio(r.randint(1, 12), p, beta, 1 + beta + near(r, 0, 100))


KINDS = {
    "shuffled": shuffled, "variation ratio": variation, "clones": clones, "weighted clones": weighted, "bits": bits,
    "personal bits": personal, "binomial noise": noise,
}  # fmt: skip


def question(r, profile):
    """Return an eps: below the pure budget, or in [0, 30] where there is none."""
    pure = profile.epsilon(0.0)
    if not math.isfinite(pure):
        return near(r, 0, 30)
    if r.random() < 0.3:
        eps = pure
        for _ in range(r.randrange(5)):
            eps = math.nextafter(eps, 0)
        return min(eps, 700.0)
    return min(near(r, 0, max(pure, 1e-300)), 700.0)


def wrong(profile, eps):
    """Return None, or what is wrong: the sides are compared as logarithms, where they are finest."""
    import flint

    low, high = (float(profile.log_delta(eps, bound=side)) for side in ("lower", "upper"))
    ball = profile.certify(eps)
    if low > high:
        return f"lower {low} > upper {high}"
    before, flint.ctx.prec = flint.ctx.prec, 400
    try:
        if ball > 0:
            exact = ball.log()
            if low > -math.inf and flint.arb(low) > exact:
                return f"lower {low} > exact {exact}"
            if high == -math.inf or flint.arb(high) < exact:
                return f"upper {high} < exact {exact}"
        elif ball == 0 and low > -math.inf:
            return f"lower {low} where delta is 0"
    finally:
        flint.ctx.prec = before
    return None


def attack(seed, cases=None, until=None):
    """Return how many cases of each kind were tried, and the violations as lines, after so many cases or when until() says."""
    r = random.Random(seed)
    tried, found = Counter(), []
    while (cases is None or tried.total() < cases) and not (until and until()):
        kind = r.choice(list(KINDS))
        profile = KINDS[kind](r)
        for _ in range(4):
            eps = question(r, profile)
            tried[kind] += 1
            said = wrong(profile, eps)
            if said:
                parameters = getattr(profile, "__dict__", {})
                found.append(f"{profile!r} {parameters if 'Personal' in repr(profile) else ''} at eps={eps!r}: {said}")
    return tried, found
