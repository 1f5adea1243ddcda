"""Random protocols at random eps: lower <= exact <= upper, where :meth:`certify` gives the exact value in interval arithmetic.

For protocols without certified values, the exact value is computed or bounded here. Adaptive compositions: all choices of pairs are
enumerated. Densities: they are discretized to lattices. Shuffled batches: `batches` integrates the best test, or draws outputs.

Parameters are drawn from the middle of their ranges, at their ends, and at the last doubles before their ends. Values of eps are
drawn from all numbers below the budget, and from the last doubles below it. The certified interval contains the exact value. So an
upper bound below the whole interval, or a lower bound above it, is a violation, without any tolerance.
"""

import math
import random
from collections import Counter

import numpy as np

from shufflebounds import mechanisms, sampling, shuffle
from shufflebounds._base.caches import uncached
from shufflebounds.profile import DominatingPair
from tests.fuzz import batches as batched
from tests.fuzz import density_pairs, flips, two_level

__all__ = ["KINDS", "attack"]


def near(r, low, high):
    """Return a number in [low, high]: uniform, log-uniform from one of the ends, or a few ulp from an end."""
    kind = r.random()
    if kind < 0.3:
        return r.uniform(low, high)
    if kind < 0.4:
        return max(low, high * (1 - 10 ** r.uniform(-16, 0)))
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
        law = np.array([max(near(r, 0, 1), 1e-300) for _ in range(4)])
        if r.random() < 0.3:
            law[r.randrange(4)] = 0.0
        law /= max(law.sum(), 1e-300)
        if r.random() < 0.3:
            # Sums of 1 within 1e-9 are accepted. A larger sum is divided out, missing mass is an outcome of the upper bound only.
            law *= 1 + r.choice([1, -1]) * 10.0 ** -r.uniform(9.01, 18)
        laws.append(law)
    with np.errstate(divide="ignore"):
        return DominatingPair.from_pmfs(*map(np.log, laws))


def shuffled(r):
    # The upper bound is the value of the blanket, so it is at least the exact value. The lower bound is the delta of one of a few
    # datasets, so it is at most the exact value.
    if r.random() < 0.5:
        bins = r.choice([r.randint(2, 50), int(2 ** r.uniform(2, 53))])
        randomizer = mechanisms.KaryResponse(bins, min(max(near(r, 0, r.choice([3, 30, 700])), 1e-290), 700.0))
        return shuffle.Shuffled(randomizer, r.randint(1, 12), min(max(near(r, 0, 1), 1e-12), 1.0))
    rows = [[r.randrange(1, 2**20) if r.random() < 0.9 else 0 for _ in range(r.randint(2, 4))] for _ in range(r.randint(2, 3))]
    width = min(map(len, rows))
    # The probabilities are multiples of a power of 2 and sum to 1 exactly. In one of three matrices all outputs but one are rare.
    scale = 2 ** r.choice([24, 24, r.randint(24, 53)])
    rows = [[min(x, scale // 64) / scale for x in row[: width - 1]] for row in rows]
    return shuffle.Shuffled(mechanisms.FiniteRandomizer([[*row, 1 - sum(row)] for row in rows]), r.randint(1, 8))


def variation(r):
    p = 1 + math.exp(r.uniform(-20, 40))
    beta = max(near(r, 0, (p - 1) / (p + 1)), 1e-290)
    return mechanisms.RatioBounded(p, beta, 1 + beta + near(r, 0, 100)).shuffled(r.randint(1, 12))


def kary(r):
    budget = min(max(near(r, 0, r.choice([3, 30, 700])), 1e-290), 700.0)
    return mechanisms.KaryResponse(r.choice([2, 3, r.randint(2, 10**6), int(2 ** r.uniform(2, 53))]), budget)


def small(r):
    return r.choice([listed, kary])(r)


def matrix(r):
    rows = [[r.randrange(2**20) / 2**24 for _ in range(3)] for _ in range(r.randint(2, 3))]
    return mechanisms.FiniteRandomizer([[*row, 1 - sum(row)] for row in rows])


def geometric(r):
    return mechanisms.GeometricMechanism(min(max(near(r, 0, r.choice([3, 30, 700])), 1e-11), 700.0), r.randint(1, 6))


def release(r):
    laplace = mechanisms.LaplaceMechanism(1 / min(max(near(r, 0, r.choice([3, 30, 700])), 1e-12), 1e6))
    gaussian = mechanisms.GaussianMechanism(math.exp(r.uniform(-3, 14)), r.choice([1.0, r.uniform(0.5, 2)]))
    return r.choice([laplace, gaussian, geometric(r), kary(r), matrix(r)])


def rate(r):
    return min(max(near(r, 0, 1), 1e-100), 1.0)


def sampled(r):
    pair = sampling.SampledPair(r.choice([release, listed])(r), rate(r), r.random() < 0.5)
    return pair if r.random() < 0.5 else release(r).subsampled(rate(r))


def batch(r):
    records = r.choice([r.randint(1, 10), r.randint(1, 10**6), r.randint(1, 2**53)])
    mechanism = r.choice([matrix, kary])(r)
    return sampling.WithoutReplacement(mechanism, records, r.choice([1, records, r.randint(1, records)]))


def allocated(r):
    if r.random() < 0.3:
        steps = r.randint(2, 5)
        return sampling.RandomAllocation(small(r), steps, r.randint(1, steps))
    return sampling.AllocationPair(small(r), r.randint(1, 6), r.random() < 0.5)


def composed(r):
    factors = [(r.choice([listed, kary, geometric])(r), r.randint(1, 3)) for _ in range(r.randint(1, 3))]
    if r.random() < 0.4:
        removed = r.random() < 0.5
        factors = [(sampling.SampledPair(one, rate(r), removed), times) for one, times in factors]
    head, *rest = [one.self_compose(times) for one, times in factors]
    return head.compose(*rest) if rest else head


def released(r):
    # All choices after all results can be enumerated for these mechanisms.
    while True:
        one, times = r.choice([bits, noise, personal])(r), r.randint(2, 3)
        if 0 < sum(2 * len(pair) for pair in orders(one)) ** times <= 2000 and one.epsilon(0.0) > 0:
            return one.self_compose(times)


def dense(r):
    if r.random() < 0.6:
        noise = mechanisms.LaplaceMechanism(1 / r.choice([r.uniform(0.05, 3), r.uniform(0.01, 0.3)]))
    else:
        noise = mechanisms.GaussianMechanism(r.uniform(1.0, 8.0))
    if r.random() < 0.25:
        return shuffle.Shuffled(noise, r.choice([1, 2, 2, 3, 4]))
    return sampling.AllocationPair(noise, r.choice([2, 2, 3, 4]), r.random() < 0.5)


def rare(r):
    # The caps of vectors at right angles are disjoint.
    randomizer = mechanisms.PrivUnit(3, r.choice([r.uniform(0.05, 6), 10 ** r.uniform(-3, 1)]), 10 ** r.uniform(-18, -1))
    if r.random() < 0.5:
        return sampling.AllocationPair(randomizer, r.randint(2, 5), r.random() < 0.5)
    return shuffle.Shuffled(randomizer, r.randint(2, 8))


class Batches:
    """Epochs of shuffled batches: the lower bound against delta of its pair, the upper bound against a dataset of few records."""

    def __init__(self, sigma, steps, batch, epochs, seed):
        self.sigma, self.steps, self.batch, self.epochs, self.seed = sigma, steps, batch, epochs, seed

    def __repr__(self):
        return f"Batches(sigma={self.sigma!r}, steps={self.steps}, batch={self.batch}, epochs={self.epochs}, seed={self.seed})"

    def wrong(self, eps):
        one = sampling.ShuffledBatches(mechanisms.GaussianMechanism(self.sigma), self.steps, self.batch)
        profile = one if self.epochs == 1 else one.self_compose(self.epochs)
        low, high = (profile.delta(eps, bound=side) for side in ("lower", "upper"))
        least, r = 0.0, random.Random(self.seed)
        if self.steps == 1 or (self.steps, self.epochs) == (2, 1):
            least = batched.exact(eps, self.sigma, self.steps, self.epochs)
            most = least + 1e-12
            least -= 1e-12
        else:
            most = batched.sampled(np.random.default_rng(self.seed), eps, self.sigma, self.steps, self.epochs)
        if self.epochs == 1 and 1 < self.steps * self.batch <= 8:
            least = max(least, batched.Dataset(r, self.sigma, self.steps, self.batch).least_delta(eps))
        return None if low <= most and least <= high else f"lower {low} > {most}, or upper {high} < {least}"


def sgd(r):
    steps = r.choice([1, 2, 2, 3, 4, 5, 6, 7, 8, r.randint(3, 12)])
    batch = r.choice([1, 1, r.randint(1, max(1, 8 // steps)), 10 ** r.randint(1, 6)])
    epochs = r.randint(2, 3) if r.random() < 0.03 else 1
    return Batches(math.exp(r.uniform(-2, 4)), steps, batch, epochs, r.randrange(2**32))


KINDS = {
    "shuffled batches": sgd,
    "shuffled": shuffled, "variation ratio": variation, "clones": clones, "weighted clones": weighted, "bits": bits,
    "personal bits": personal, "binomial noise": noise, "one release": release, "sampled": sampled, "batches": batch,
    "allocated": allocated, "composed": composed, "several releases": released, "rare outcomes": rare, "densities": dense,
    **flips.KINDS,
}  # fmt: skip


def orders(profile):
    """Return the distributions of a sum of bits, or of binomial noise, for both values of the target, as a list of pairs.

    The masses are intervals.
    """
    import flint

    from shufflebounds.certify import by_definition

    if isinstance(profile, shuffle.BinomialNoise):
        prob = flint.arb(profile.prob)
        law = by_definition.polynomial([(1 - prob, prob, profile.trials)])
        return [[(a, b) for a, b in zip([*law, flint.arb(0)], [flint.arb(0), *law])]]
    if isinstance(profile, shuffle.ShuffledBits):
        flip, ones = flint.arb(profile.flip), 0 if profile.ones == "worst" else profile.ones
        if profile.ones == "worst" and profile.users > 1:
            return [[]]
        others = [(1 - flip, flip, profile.users - 1 - ones), (flip, 1 - flip, ones)]
        zero, one = (by_definition.polynomial([*others, target]) for target in ((1 - flip, flip, 1), (flip, 1 - flip, 1)))
        return [list(zip(zero, one))]
    found = []
    keep = [(odds / (odds + 1), 1 / (odds + 1)) for odds in (flint.arb(e).exp() for e in profile.local_eps.tolist())]
    users = range(len(keep)) if profile.target is None else [profile.target]
    for target in users:
        others = [(*(side if not bit else side[::-1]), 1) for i, (side, bit) in enumerate(zip(keep, profile.bits)) if i != target]
        zero, one = (by_definition.polynomial([*others, (*side, 1)]) for side in (keep[target], keep[target][::-1]))
        found.append(list(zip(zero, one)))
    return found


def chosen(pairs, times, factor, p, q):
    """Return the largest hockey-stick divergence of `times` releases, whose ordered pairs are chosen after the earlier results.

    p and q are the probabilities of the results so far.
    """
    from shufflebounds.certify import balls

    if times == 1:
        return balls.larger(*(balls.hockey_stick([(p * a, q * b) for a, b in pair], factor) for pair in pairs))
    return balls.larger(*(sum(chosen(pairs, times - 1, factor, p * a, q * b) for a, b in pair) for pair in pairs))


def all_choices(profile, eps):
    """Return delta of several releases of one mechanism, for the best adaptive choice of a pair and its order in each release."""
    import flint

    (one, times), = profile.factors
    pairs = [turned for pair in orders(one) for turned in (pair, [(b, a) for a, b in pair])]
    return chosen(pairs, times, flint.arb(eps).exp(), flint.arb(1), flint.arb(1))


def enclosed(profile, eps):
    """Return two intervals for a mechanism with densities.

    The library's upper bound must be at least the lower end of the first interval. Its lower bound, which is that of one dataset,
    must be at most the upper end of the second interval.
    """
    import flint

    factor = math.exp(eps)
    noise = profile.mechanism if isinstance(profile, sampling.AllocationPair) else profile.randomizer
    if isinstance(noise, mechanisms.LaplaceMechanism):
        laws = density_pairs.Laplace(1 / noise.scale)
    else:
        laws = density_pairs.Gaussian(1 / noise.sigma)
    if isinstance(profile, sampling.AllocationPair):
        both = density_pairs.allocated(laws, factor, profile.steps, profile.removed)
        below = both
    else:
        both, below = density_pairs.shuffled(laws, factor, profile.users, profile.data(eps))
        if profile.users == 2 and isinstance(noise, mechanisms.GaussianMechanism):
            # The reference is the privacy blanket; of two users the worst dataset is known, whose delta is smaller.
            both, below = (0.0, both[1]), below or both
    # In double precision e^eps has an error of a few ulp.
    return flint.arb(both[0] * (1 - 1e-12)), flint.arb((below or both)[1] * (1 + 1e-12))


def enumerated(profile, eps):
    """Return delta of random allocation, or the largest over datasets of equal other users, for two-level randomizers."""
    if isinstance(profile, sampling.AllocationPair):
        return two_level.allocated(profile.mechanism.local_eps, profile.mechanism.cap, profile.steps, eps, profile.removed)
    return two_level.alike(profile.randomizer.local_eps, profile.randomizer.cap, profile.users, eps)


def question(r, profile):
    """Return a random eps: below the pure budget, or in [0, 30] if there is none, and at most 700, the largest eps of `certify`.

    For two-level randomizers it may lie next to a kink of delta, where a sum of likelihood ratios is exactly zero; for sums of
    bits, next to the loss of an outcome.
    """
    return min(_question(r, profile), 700.0)


def _question(r, profile):
    if isinstance(profile, Batches):
        return near(r, 0, 12) if r.random() < 0.2 else r.uniform(0, 2 / profile.sigma)
    if isinstance(profile, flips.PROTOCOLS) and r.random() < 0.6:
        return flips.loss(r, profile)
    inner = getattr(profile, "mechanism", getattr(profile, "randomizer", None))
    if isinstance(inner, mechanisms.PrivUnit | mechanisms.KaryResponse) and r.random() < 0.5:
        users = profile.users if isinstance(profile, shuffle.Shuffled) else getattr(profile, "steps", 1)
        eps = two_level.kink(r, min(inner.local_eps, 600.0), users)
        if eps is not None:
            return math.nextafter(eps, r.choice([0, eps, 700]))
    pure = profile.epsilon(0.0)
    if not math.isfinite(pure):
        return near(r, 0, 30)
    if r.random() < 0.3:
        eps = pure
        for _ in range(r.randrange(5)):
            eps = math.nextafter(eps, 0)
        return eps
    return near(r, 0, max(pure, 1e-300))


def wrong(profile, eps):
    """Return None, or a description of the violation.

    Logarithms of the bounds are compared, because they have smaller relative errors.
    """
    import flint

    if isinstance(profile, Batches):
        return profile.wrong(eps)
    low, high = (float(profile.log_delta(eps, bound=side)) for side in ("lower", "upper"))
    if isinstance(profile, sampling.AllocationPair):
        # The sums of likelihood ratios, which serve where there are too many outcomes to enumerate.
        sums = profile._forms.log_delta(np.array([float(eps)]))
        low, high = max(low, float(sums.lower[0])), min(high, float(sums.upper[0]))
    if low > high:
        return f"lower {low} > upper {high}"
    before, flint.ctx.prec = flint.ctx.prec, 400
    try:
        kind = type(getattr(profile, "mechanism", getattr(profile, "randomizer", None)))
        if kind in (mechanisms.LaplaceMechanism, mechanisms.GaussianMechanism) and isinstance(
                profile, sampling.AllocationPair | shuffle.Shuffled):
            least, most = enclosed(profile, eps)
        elif getattr(profile, "factors", None) and isinstance(
                profile.factors[0][0], shuffle.ShuffledBits | shuffle.BinomialNoise | shuffle.PersonalizedBits):
            flint.ctx.prec = 3300
            least = most = all_choices(profile, eps)
        elif kind is mechanisms.PrivUnit:
            least = most = enumerated(profile, eps)
        elif isinstance(profile, flips.PROTOCOLS) and flips.enumerated(profile):
            least, most = flips.delta(profile, eps)
        elif isinstance(profile, shuffle.Shuffled):
            # A dataset is certified for the lower bound, and all datasets for the upper one.
            least, most = (profile.certify(eps, bound=bound) for bound in ("lower", "upper"))
        else:
            least = most = profile.certify(eps)
        if most > 0 and low > -math.inf and flint.arb(low) > most.log():
            return f"lower {low} > exact {most.log()}"
        # Lists of doubles may sum to slightly more than 1.
        if least > 0 and high < 0 and (high == -math.inf or flint.arb(high) < least.log()):
            return f"upper {high} < exact {least.log()}"
        if most == 0 and low > -math.inf:
            return f"lower {low} where delta is 0"
    finally:
        flint.ctx.prec = before
    return None


def attack(seed, cases=None, until=None, only=None):
    """Return the number of cases of each kind, and one line for each violation.

    The campaign ends after `cases` cases or when until() is true.
    """
    r = random.Random(seed)
    kinds = [kind for kind in KINDS if only in (None, kind)]
    tried, found = Counter(), []
    while (cases is None or tried.total() < cases) and not (until and until()):
        kind = r.choice(kinds)
        profile = KINDS[kind](r)
        for _ in range(4):
            tried[kind] += 1
            eps = math.nan
            try:
                eps = question(r, profile)
                said = wrong(profile, eps)
            except Exception as harm:
                said = f"{type(harm).__name__}: {harm}"
            if said:
                parameters = uncached(profile)
                found.append(f"{profile!r} {parameters if 'Personal' in repr(profile) else ''} at eps={eps!r}: {said}")
    return tried, found
