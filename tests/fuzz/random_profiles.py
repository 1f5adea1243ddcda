"""Random parameters of every public class, small enough for many checks, and the enumerated distributions of some classes.

The draws include zero probabilities, outcomes that one distribution alone produces, budgets near 0 and the default parameters.
"""

import itertools
import math

import numpy as np

from shufflebounds import interop, sampling, shuffle
from shufflebounds import mechanisms as m
from shufflebounds.profile import Composition, DominatingPair

__all__ = ["DRAWS", "exact_ways"]


def _budget(r):
    """Return a random local budget: of usual size, small, or large."""
    return r.choice([1.0, r.uniform(0.1, 3), 10.0 ** r.uniform(-6, -1), r.uniform(3, 12)])


def _rows(r, rows, columns):
    """Return a random stochastic matrix with entries that are multiples of a power of 2; some have zeros or nearly equal rows."""
    kind = r.random()
    out = []
    for _ in range(rows):
        if out and kind < 0.2:
            row = list(out[0])
            step = min(row[0], 2.0 ** -r.randint(8, 30))
            row[0], row[-1] = row[0] - step, row[-1] + step
        else:
            weight = [0 if r.random() < (0.3 if kind < 0.6 else 0.0) else r.randint(1, 2**10) for _ in range(columns)]
            weight[r.randrange(columns)] += 1
            row = [math.floor(x * 2**20 / sum(weight)) / 2**20 for x in weight[:-1]]
            row.append(1 - sum(row))
            if weight[-1] == 0:
                most = row.index(max(row[:-1]))
                row[most], row[-1] = row[most] + row[-1], 0.0
        out.append(row)
    return tuple(map(tuple, out))


def _matrix(r):
    return m.FiniteRandomizer(_rows(r, r.randint(2, 3), r.randint(2, 4)))


def _listed(r):
    first, second = _rows(r, 2, r.randint(2, 5))
    with np.errstate(divide="ignore"):
        return DominatingPair.from_pmfs(np.log(first), np.log(second))


def _bins(r, bits=53):
    """Return a random number of bins from 4 on, whose outcomes may be rarer than an ulp of 1."""
    return int(2 ** r.uniform(2, bits))


def _kary(r):
    return m.KaryResponse(r.choice([2, 3, 4, 50, _bins(r)]), _budget(r))


def _geometric(r):
    sensitivity = r.choice([1, 1, 2, 3])
    eps = r.choice([0.5, r.uniform(0.1, 3), 10.0 ** r.uniform(-3, -1)])
    return m.GeometricMechanism(eps, sensitivity, r.choice([None, 1, 2, 6, 20]))


def _priv_unit(r):
    return m.PrivUnit(r.choice([2, 3, 16]), _budget(r), r.choice([None, 10.0 ** r.uniform(-18, -0.4)]))


def _gaussian(r):
    return m.GaussianMechanism(r.choice([1.0, math.exp(r.uniform(-1, 3))]))


def _laplace(r):
    return m.LaplaceMechanism(r.choice([1.0, math.exp(r.uniform(-1, 3))]))


def _rappor(r):
    return r.choice([m.Rappor(0.5), m.Rappor(r.uniform(0.01, 0.9), 0.75, 0.25, r.choice([1, 2])),
                     m.Rappor(1 - 10.0 ** r.uniform(-6, -1))])


def _ratios(r):
    p = 1 + 10.0 ** r.uniform(-3, 1)
    beta = (p - 1) / (p + 1) * r.choice([1.0, r.uniform(0.05, 1)])
    return p, beta, p + r.choice([0.0, r.uniform(0.1, 5)])


def _randomizer(r):
    bit, bounded = lambda r: m.RandomizedResponse(_budget(r)), lambda r: m.RatioBounded(*_ratios(r))
    return r.choice([_kary, _matrix, _priv_unit, bit, bounded])(r)


def _one_pair(r):
    """Return a mechanism with a single pair, whose outcomes are enumerated or which has a density."""
    return r.choice([_geometric, _geometric, _kary, _listed, _laplace, _gaussian])(r)


def _bits(r):
    users = r.choice([1, 2, 3, 5, 40])
    return shuffle.ShuffledBits(users, r.choice([0.25, r.uniform(0.01, 0.499), 0.0, 0.5]), ones=r.choice(["worst", 0, users - 1]),
                                fakes=r.choice([0, 0, 3]))


def _flipped(r):
    view = r.choice(["sums", "sums", "records"])
    return shuffle.FlippedReports(r.randint(1, 3), r.randint(0, 2), r.choice([2, 3]), r.uniform(0.05, 0.45), view=view,
                                  fake=r.choice(["uniform", "uniform", "known"]))


def _personal_bits(r):
    users = r.randint(1, 6)
    return shuffle.PersonalizedBits([_budget(r) for _ in range(users)],
                                    bits=r.choice([None, [r.randint(0, 1) for _ in range(users)]]))


def _personal_clones(r):
    budgets = [r.uniform(0.1, 3) for _ in range(r.randint(2, 3))]
    return r.choice([
        lambda: shuffle.PersonalizedClones.laplace(budgets),
        lambda: shuffle.PersonalizedClones.gaussian([max(b, 0.5) for b in budgets]),
        lambda: shuffle.PersonalizedClones.randomized_response(budgets, r.choice([3, _bins(r)])),
        lambda: shuffle.PersonalizedClones(0.2, [0.1, 0.2], counts=[3, 2]),
    ])()


def _without_replacement(r):
    records = r.choice([1, 10, 1000])
    return sampling.WithoutReplacement(r.choice([_kary, _laplace, _gaussian])(r), records, r.randint(1, records))


def _allocation(r):
    noise = m.GeometricMechanism(r.choice([0.5, 10.0 ** r.uniform(-3, 1)]), 1, r.choice([None, 1, 2, 6]))
    return r.choice([_kary(r), _priv_unit(r), noise]), r.choice([1, 2, 3])


def _composition(r):
    # Only mechanisms are composed, no single pairs (P, Q): the composition of such a pair does not cover the order (Q, P).
    parts = [r.choice([_kary, _matrix, _geometric, _rappor])(r) for _ in range(r.randint(2, 3))]
    return Composition(tuple((part, r.choice([1, 1, 2])) for part in parts))


def _accounting(r):
    pair = _listed(r)
    return interop.AccountingProfile((pair, pair.reverse()))


def _noise(r):
    return shuffle.BinomialNoise(r.choice([0, 1, 5, 30, 1000]), r.choice([0.5, r.uniform(0.05, 0.95)]))


def _log_whole(r, low, high):
    return round(math.exp(r.uniform(math.log(low), math.log(high))))


DRAWS = {
    "interop.AccountingProfile": (_accounting, True),
    "mechanisms.DiscreteGaussianMechanism": (
        lambda r: m.DiscreteGaussianMechanism(math.exp(r.uniform(-1, 2)), r.choice([1, 2])), True),
    "mechanisms.FiniteRandomizer": (_matrix, True),
    "mechanisms.GaussianMechanism": (_gaussian, True),
    "mechanisms.GaussianVector": (lambda r: m.GaussianVector(math.exp(r.uniform(-0.5, 2)), 3, r.choice(["sphere", "cube"])), True),
    "mechanisms.GeometricMechanism": (_geometric, True),
    "mechanisms.HadamardResponse": (lambda r: m.HadamardResponse(r.choice([2, 30, _bins(r, 24)]), _budget(r)), True),
    "mechanisms.KaryResponse": (_kary, True),
    "mechanisms.LaplaceMechanism": (_laplace, True),
    "mechanisms.LocalHashing": (
        lambda r: m.LocalHashing(r.choice([2, 100, _bins(r, 30)]), _budget(r), r.choice([None, _bins(r, 30)])), True),
    "mechanisms.PrivUnit": (_priv_unit, True),
    "mechanisms.PureLocal": (lambda r: m.PureLocal(_budget(r)), True),
    "mechanisms.RandomizedResponse": (lambda r: m.RandomizedResponse(_budget(r), r.choice([1.0, 4.0])), True),
    "mechanisms.Rappor": (_rappor, True),
    "mechanisms.SubsetSelection": (lambda r: m.SubsetSelection(r.choice([2, 3, 20]), _budget(r)), True),
    "mechanisms.UnaryEncoding": (
        lambda r: m.UnaryEncoding(r.choice([2, 8]), r.uniform(0.5, 0.95),
                                  r.choice([r.uniform(0.05, 0.45), 10.0 ** r.uniform(-15, -1)])),
        True),
    "mechanisms.RatioBounded": (lambda r: m.RatioBounded(*_ratios(r)), True),
    "profile.Composition": (_composition, False),
    "profile.DominatingPair": (_listed, True),
    "sampling.AllocationPair": (lambda r: sampling.AllocationPair(*_allocation(r), r.random() < 0.5), False),
    "sampling.RandomAllocation": (lambda r: sampling.RandomAllocation(*_allocation(r)), False),
    "sampling.ReplaceOne": (lambda r: sampling.ReplaceOne(_kary(r).subsampled(r.random())), False),
    "sampling.SampledPair": (lambda r: sampling.SampledPair(_one_pair(r), 10.0 ** r.uniform(-4, 0), r.random() < 0.5), False),
    "sampling.Subsampled": (lambda r: sampling.Subsampled(_one_pair(r), 10.0 ** r.uniform(-4, 0)), True),
    "sampling.WithoutReplacement": (_without_replacement, False),
    "shuffle.BinomialNoise": (_noise, True),
    "shuffle.ClearReports": (lambda r: shuffle.ClearReports(r.choice([0, 1, 5, 100]), r.choice([2, 3, 10])), True),
    "shuffle.Clones": (lambda r: shuffle.Clones(_log_whole(r, 1, 1000), _budget(r)), True),
    "shuffle.FlippedReports": (_flipped, False),
    "shuffle.PersonalizedBits": (_personal_bits, False),
    "shuffle.PersonalizedClones": (_personal_clones, False),
    "shuffle.RealSum": (
        lambda r: shuffle.RealSum(users := r.randint(2, 6), r.uniform(0.3, 0.9) * users, r.randint(1, 2),
                                 view=r.choice(["total", "columns"])),
        False),
    "shuffle.Shuffled": (
        lambda r: shuffle.Shuffled(_randomizer(r), r.choice([1, 2, 3, 4, r.randint(5, 30)]), r.choice([1.0, r.uniform(0.1, 1)])),
        False),
    "shuffle.ShuffledBits": (_bits, False),
    "shuffle.ShuffledHistogram": (
        lambda r: shuffle.ShuffledHistogram(r.choice([1, 3, 100]), r.choice([1, 2, 5]), r.uniform(0.05, 0.5)), False),
    "shuffle.StrongerClones": (lambda r: shuffle.StrongerClones(_log_whole(r, 1, 1000), _budget(r)), True),
    "shuffle.VariationRatio": (lambda r: shuffle.VariationRatio(r.choice([1, 2, 5]), *_ratios(r)), False),
    "shuffle.ZeroSum": (lambda r: shuffle.ZeroSum(r.choice([1, 3, 100]), r.uniform(0.05, 0.5)), False),
}
"""For every public class, a function that draws its parameters, and whether a value takes milliseconds; if not, fewer values are
tested."""


def _as_arrays(rows):
    return [np.array(row, dtype=float) for row in rows]


def _all_pairs(laws):
    """Return every ordered pair of different entries as a flat list."""
    return [(a.ravel(), b.ravel()) for a, b in itertools.permutations(laws, 2)]


def _poisson_binomial(chances):
    law = np.ones(1)
    for p in chances:
        law = np.convolve(law, [1 - p, p])
    return law


def _bits_ways(profile):
    others = profile.users - 1
    held = range(others + 1) if profile.ones == "worst" else [profile.ones]
    q, pairs = profile.flip, []
    for ones in held:
        rest = [1 - q] * ones + [q] * (others - ones + profile.fakes)
        zero, one = (_poisson_binomial([p, *rest]) for p in (q, 1 - q))
        pairs += [(zero, one), (one, zero)]
    return [pairs]


def _sums_of_bins(held, profile):
    """Return the distribution of the sums of all bins, over all possible sums, if the users' values are in the bins `held`."""
    q = profile.flip
    out = np.ones(1)
    for one in range(profile.bins):
        out = np.multiply.outer(out, _poisson_binomial([1 - q if bin == one else q for bin in held]))
    return out.ravel()


def _flipped_ways(profile):
    if profile.view != "sums" or profile.users + profile.fakes > 4:
        return None
    uniform = profile.fake == "uniform"
    bins, pairs = range(profile.bins), []
    known = 0 if uniform else profile.fakes
    for others in itertools.combinations_with_replacement(bins, profile.users - 1 + known):
        laws = []
        for own in (0, 1):
            drawn = itertools.product(bins, repeat=profile.fakes - known)
            laws.append(np.mean([_sums_of_bins((own, *others, *fakes), profile) for fakes in drawn], axis=0))
        pairs += _all_pairs(laws)
    return [pairs]


def _rappor_ways(profile):
    if profile.bits is not None or profile.hashes > 2:
        return None
    set_, unset = (x * (1 - profile.f / 2) + y * profile.f / 2 for x, y in ((profile.p, profile.q), (profile.q, profile.p)))
    pairs = []
    for differ in range(1, profile.hashes + 1):
        laws = []
        for chances in ([set_] * differ + [unset] * differ, [unset] * differ + [set_] * differ):
            law = np.ones(1)
            for p in chances:
                law = np.multiply.outer(law, np.array([1 - p, p])).ravel()
            laws.append(law)
        pairs += _all_pairs(laws)
    return [pairs]


def _sampled_ways(profile):
    """Return the pairs of a sample at rate g: the mechanism's output with the record, and the output without it."""
    inner = exact_ways(profile.mechanism)
    if inner is None or len(inner) > 1:
        return None
    g = profile.rate
    removed = [((1 - g) * q + g * p, q) for p, q in inner[0]]
    ways = [removed, [(q, p) for p, q in removed]]
    if isinstance(profile, sampling.SampledPair):
        return ways[:1] if profile.removed else ways[1:]
    return ways


def _geometric_ways(profile):
    if profile.bound is None or profile.sensitivity > 2 or profile.bound > 6:
        return None
    s, bound = profile.sensitivity, profile.bound
    decay = math.exp(-profile.eps / s)
    noise = [decay ** abs(k) * -math.expm1(-profile.eps / s) / (1 + decay) for k in range(1 - bound, bound)]
    end = decay**bound / (1 + decay)
    law = np.array([end, *noise, end])
    shifted = [np.pad(law, (k, s - k)) for k in range(s + 1)]
    return [[(shifted[i], shifted[j]) for i in range(s + 1) for j in range(s + 1) if (i == 0) != (j == 0)]]


def exact_ways(profile):
    """Return the enumerated distributions of every ordered pair of neighbours, or None if they are not enumerated here.

    The result has one list for each direction that all releases of a composition share (a record removed, or added). A list
    contains pairs (P, Q) of arrays, and each release may take another pair of the list.
    """
    if type(profile).__name__ == "_ListedPair":
        return [[tuple(_as_arrays(np.exp([profile.log_p, profile.log_q])))]]
    known = {
        m.FiniteRandomizer: lambda: [_all_pairs(_as_arrays(profile.matrix))],
        m.Rappor: lambda: _rappor_ways(profile), m.GeometricMechanism: lambda: _geometric_ways(profile),
        sampling.Subsampled: lambda: _sampled_ways(profile), sampling.SampledPair: lambda: _sampled_ways(profile),
        shuffle.FlippedReports: lambda: _flipped_ways(profile),
    }
    if isinstance(profile, m.KaryResponse) and profile.bins <= 4:
        e = math.exp(profile.local_eps)
        matrix = (np.ones((profile.bins, profile.bins)) + (e - 1) * np.eye(profile.bins)) / (e + profile.bins - 1)
        return [_all_pairs(list(matrix))]
    if isinstance(profile, shuffle.ShuffledBits) and profile.users <= 5:
        return _bits_ways(profile)
    if isinstance(profile, shuffle.BinomialNoise) and profile.trials <= 30:
        law = _poisson_binomial([profile.prob] * profile.trials)
        return [_all_pairs([np.pad(law, (0, 1)), np.pad(law, (1, 0))])]
    return known[type(profile)]() if type(profile) in known else None
