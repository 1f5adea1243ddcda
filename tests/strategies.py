"""Strategies of hypothesis: distributions, losses, arguments of binomial probabilities; and parameters of the slow tests."""

import functools
import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import strategies as st

slow = functools.partial(pytest.param, marks=pytest.mark.slow)
"""A set of parameters that is left out by default."""


def thinned(parameters, every):
    """One in so many by default, the others in the slow run."""
    return [one if i % every == 0 else slow(one) for i, one in enumerate(parameters)]


@st.composite
def laws(draw, size=None):
    """Two laws on the same atoms: dyadic masses, zeros among them."""
    size = size or draw(st.integers(1, 8))
    out = []
    for _ in range(2):
        cuts = sorted(draw(st.lists(st.integers(0, 2**20), min_size=size - 1, max_size=size - 1)))
        edges = [0, *cuts, 2**20]
        out.append([Fraction(b - a, 2**20) for a, b in pairwise(edges)])
    return out


@st.composite
def outcomes(draw):
    """Masses that sum to 1 and rising losses, some of them equal or on the grid of 1/16."""
    size = draw(st.integers(1, 12))
    loss = draw(st.lists(st.one_of(st.floats(-2, 2), st.integers(-32, 32).map(lambda k: k / 16)), min_size=size, max_size=size))
    depth = draw(st.lists(st.floats(0, 40), min_size=size, max_size=size))
    log_p = -np.array(depth)
    return log_p - np.logaddexp.reduce(log_p), np.sort(np.array(loss))


COUNTS = st.one_of(st.integers(0, 60), st.integers(0, 10**6), st.integers(0, 2**53))
DYADIC = st.one_of(
    st.integers(1, 2**20 - 1).map(lambda i: i / 2**20),
    st.integers(1, 2**10).map(lambda i: i * 2.0**-40),
    st.integers(1, 2**53 - 1).map(lambda i: i / 2**53),
)


@st.composite
def binomial_points(draw):
    """n, dyadic p and k, the last often near the mean."""
    n, p = draw(COUNTS), draw(DYADIC)
    z = draw(st.floats(-30, 30))
    near = round(n * p + z * math.sqrt(n * p * (1 - p)))
    return draw(st.sampled_from([draw(st.integers(0, n)), min(max(near, 0), n)])), n, p
