"""Every message of a small randomizer with its probability for every value, from the published definition only."""

import itertools
import math

import numpy as np

from shufflebounds.mechanisms import HadamardResponse, KaryResponse, LocalHashing, SubsetSelection, UnaryEncoding

SMALL = [
    KaryResponse(2, 0.7), KaryResponse(4, 1.0), KaryResponse(3, 5.0),
    SubsetSelection(4, 1.0, 2), SubsetSelection(5, 0.5), SubsetSelection(5, 2.0, 4), SubsetSelection(6, 1.5, 3),
    LocalHashing(5, 1.0, 3), LocalHashing(4, 2.0, 2), LocalHashing(3, 0.5, 6), LocalHashing(2, 1.0, 4),
    HadamardResponse(2, 1.0), HadamardResponse(3, 2.0), HadamardResponse(5, 1.0), HadamardResponse(7, 0.3),
    UnaryEncoding(4, 0.75, 0.25), UnaryEncoding(2, 0.5, 0.125), UnaryEncoding.optimized(5, 1.0), UnaryEncoding.symmetric(3, 2.0),
]


def weight(mechanism, message, x):
    """Return the probability of a message up to a common factor, which is 1 for unary encoding."""
    lift = math.exp(mechanism.local_eps)
    if isinstance(mechanism, KaryResponse):
        return lift if message == (x,) else 1.0
    if isinstance(mechanism, SubsetSelection):
        return lift if x in message else 1.0
    if isinstance(mechanism, LocalHashing):
        reported, *coefficients = message
        hashed = sum(a * (x >> i & 1) for i, a in enumerate(coefficients)) % mechanism.buckets
        return lift if reported == hashed else 1.0
    if isinstance(mechanism, HadamardResponse):
        return lift if bin(message[0] & (x + 1)).count("1") % 2 == 0 else 1.0
    return math.prod((p if bit else 1 - p) for p, bit in
                     zip([mechanism.p if i == x else mechanism.q for i in range(mechanism.bins)], message))


def messages(mechanism):
    """Return all messages of a mechanism as tuples."""
    k = mechanism.bins
    if isinstance(mechanism, KaryResponse):
        return [(x,) for x in range(k)]
    if isinstance(mechanism, SubsetSelection):
        return list(itertools.combinations(range(k), mechanism.size))
    if isinstance(mechanism, LocalHashing):
        return list(itertools.product(range(mechanism.buckets), repeat=1 + math.ceil(math.log2(k))))
    if isinstance(mechanism, HadamardResponse):
        return [(y,) for y in range(2 ** math.ceil(math.log2(k + 1)))]
    return list(itertools.product((0, 1), repeat=k))


def matrix(mechanism):
    """Return the matrix of probabilities, with a row for each value and a column for each message."""
    listed = messages(mechanism)
    rows = np.array([[weight(mechanism, y, x) for y in listed] for x in range(mechanism.bins)])
    return rows / rows.sum(axis=1, keepdims=True)


def sent(mechanism, chosen):
    """Return the chosen messages in the form that `randomize` returns."""
    array = np.array(chosen)
    return array[:, 0] if isinstance(mechanism, KaryResponse | HadamardResponse) else array
