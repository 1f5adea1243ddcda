"""The clone sum where only the case without clones counts, against a correctly rounded sum over the users."""

import math

import mpmath as mp
import numpy as np

from shufflebounds.shuffle import PersonalizedClones


def test_next_to_a_large_budget_delta_is_at_least_that_without_clones():
    rates, weight = np.random.default_rng(1).uniform(0, 0.025, 2000), mp.mpf(1e-295)
    profile = PersonalizedClones(1e-295, rates)
    none, half = (mp.mpf(math.fsum(math.log1p(-part * rate) for rate in rates.tolist())) for part in (2, 1))
    eps = math.nextafter(profile.epsilon(0.0), 0)
    with mp.workdps(330):
        alone = mp.log(1 - weight - mp.exp(mp.mpf(eps)) * weight)
        lower, upper = (profile.log_delta(eps, bound=bound) for bound in ("lower", "upper"))
        # All messages must be those of the first input. Of c clones, all are with probability 2^-c.
        assert lower <= alone + half <= upper
        assert abs(lower - alone - none) < 1e-14 * abs(alone + none)
