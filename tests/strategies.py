"""Strategies of hypothesis for distributions, losses and arguments of binomial probabilities, and parameters of slow tests."""

import functools
import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import strategies as st

slow = functools.partial(pytest.param, marks=pytest.mark.slow)
"""A set of parameters that runs with the slow tests only."""


def thinned(parameters, every):
    """Return the parameters such that one of every `every` runs by default, and the others run with the slow tests.

    A tuple is a set of several parameters. One that is slow already stays slow.
    """
    def later(one):
        return one if isinstance(one, type(slow())) else slow(*one) if isinstance(one, tuple) else slow(one)

    return [later(one) if i % every else one for i, one in enumerate(parameters)]


@st.composite
def laws(draw, size=None):
    """Draw two distributions on the same atoms; masses are multiples of a power of 2, and some are 0."""
    size = size or draw(st.integers(1, 8))
    out = []
    for _ in range(2):
        cuts = sorted(draw(st.lists(st.integers(0, 2**20), min_size=size - 1, max_size=size - 1)))
        edges = [0, *cuts, 2**20]
        out.append([Fraction(b - a, 2**20) for a, b in pairwise(edges)])
    return out


@st.composite
def outcomes(draw):
    """Draw masses that sum to 1 and increasing losses, some of them equal or multiples of 1/16."""
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
    """Draw n, p (a multiple of a power of 2) and k, which is often near the mean."""
    n, p = draw(COUNTS), draw(DYADIC)
    z = draw(st.floats(-30, 30))
    near = round(n * p + z * math.sqrt(n * p * (1 - p)))
    return draw(st.sampled_from([draw(st.integers(0, n)), min(max(near, 0), n)])), n, p
