"""Truncation ranges by Chernoff's bound, against the tails of a binomial distribution and the best rate."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from shufflebounds._losses.window import Tails


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("limit", [-3.0, -40.0])
def test_the_distance_from_the_mean_is_near_the_smallest_one_of_any_rate(sign, limit):
    n, p = 400, 0.25
    tails = Tails([(np.array([1 - p, p]), np.array([0.0, 1.0]), n)], n * p, math.sqrt(n * p * (1 - p)))
    reach = tails.reach(sign, limit)
    beyond = binom.logsf(math.ceil(n * p + reach) - 1, n, p) if sign > 0 else binom.logcdf(math.floor(n * p - reach), n, p)
    assert beyond <= limit
    rates = sign * np.geomspace(1e-3, 10, 10_000)
    best = ((n * np.log1p(p * np.expm1(rates)) - n * p * rates - limit) / np.abs(rates)).min()
    assert best * (1 - 1e-6) <= reach <= 1.03 * best
