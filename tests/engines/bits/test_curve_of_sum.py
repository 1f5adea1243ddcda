"""The outcomes of a sum of independent bits: truncated windows against the complete distribution."""

import math

import numpy as np
import pytest

from shufflebounds._engines.bits.curve_of_sum import atoms_of_sum
from shufflebounds.shuffle import PersonalizedClones


@pytest.mark.parametrize(("rate", "users"), [(0.3, 2000), (1e-4, 2000), (0.9999, 2000), (0.5, 300)])
@pytest.mark.parametrize("log_tail", [-60.0, -200.0])
def test_bounds_from_a_truncated_window_contain_the_exact_value(rate, users, log_tail):
    # The privacy loss at an end of the window was computed as if the truncated mass were 0. It was near the largest loss of the
    # target's bit, and the lower bound of delta was about e^log_tail.
    sums, bits = (np.array([rate]), np.array([1 - rate]), np.array([float(users)])), (math.log(0.95), math.log(0.05))
    for order in ((bits, bits[::-1]), (bits[::-1], bits)):
        exact, truncated = (atoms_of_sum(*sums, *order, tail, most=10**5) for tail in (-1e5, log_tail))
        assert exact.log_lost == -math.inf
        eps = np.array([0.0, 0.5, 1.0, 2.0, 2.5, 2.9])
        (low, high), (least, most) = truncated.log_delta(eps), exact.log_delta(eps)
        assert (low <= most).all()
        assert (least <= high).all()
        assert low[0] == pytest.approx(least[0], rel=1e-9)


def test_lower_bounds_of_many_users_near_the_largest_loss():
    profile = PersonalizedClones.laplace([1.9442044568811523, 2.138529687594503], counts=[239050, 390798], target=1)
    assert profile.log_delta(1.09, bound="lower") <= profile.log_delta(1.09)
