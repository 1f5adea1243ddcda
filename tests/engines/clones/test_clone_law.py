"""Sums over the users of a law of the number of clones, against correctly rounded ones."""

import math

import numpy as np

from shufflebounds._engines.clones.law import CloneLaw


def test_sums_of_a_million_terms_are_as_accurate_as_charged():
    rates = np.random.default_rng(1).uniform(0, 0.025, 10**6)
    law = CloneLaw(rates, np.ones(rates.size))
    exact = math.fsum(math.log1p(-2 * rate) for rate in rates.tolist())
    assert abs(law.log_alone - exact) <= 4 * math.ulp(1.0) * abs(exact)
