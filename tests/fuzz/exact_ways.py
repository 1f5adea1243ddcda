"""The enumerated distributions of all neighbours, for small parameters of some classes: the exact values of other checks."""

import itertools
import math

import numpy as np

from shufflebounds import mechanisms as m
from shufflebounds import sampling, shuffle

__all__ = ["exact_ways"]


def _as_arrays(rows):
    return [np.array(row, dtype=float) for row in rows]


def _all_pairs(laws):
    """Return every ordered pair of different entries as a flat list."""
    return [(a.ravel(), b.ravel()) for a, b in itertools.permutations(laws, 2)]


def _sum_of_bits(chances):
    """Return the distribution of a sum of independent bits from the probabilities of 0 and of 1 of each bit.

    Both are given because 1 - (1 - q) has a rounding error of 6e-17, which e^eps multiplies in P - e^eps Q.
    """
    law = np.ones(1)
    for bit in chances:
        law = np.convolve(law, bit)
    return law


def _flipped(q):
    """Return the probabilities of 0 and of 1 of a flipped bit with value 0, and of one with value 1."""
    return (1 - q, q), (q, 1 - q)


def _bits_ways(profile):
    others = profile.users - 1
    held = range(others + 1) if profile.ones == "worst" else [profile.ones]
    unset, set_ = _flipped(profile.flip)
    pairs = []
    for ones in held:
        rest = [set_] * ones + [unset] * (others - ones + profile.fakes)
        zero, one = (_sum_of_bits([bit, *rest]) for bit in (unset, set_))
        pairs += [(zero, one), (one, zero)]
    return [pairs]


def _sums_of_bins(held, profile):
    """Return the distribution of the sums of all bins, over all possible sums, if the users' values are in the bins `held`."""
    unset, set_ = _flipped(profile.flip)
    out = np.ones(1)
    for one in range(profile.bins):
        out = np.multiply.outer(out, _sum_of_bits([set_ if bin == one else unset for bin in held]))
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
        law = _sum_of_bits([(1 - profile.prob, profile.prob)] * profile.trials)
        return [_all_pairs([np.pad(law, (0, 1)), np.pad(law, (1, 0))])]
    return known[type(profile)]() if type(profile) in known else None
