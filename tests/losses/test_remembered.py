"""Upper bounds of a hockey-stick divergence that follow from values in its cache."""

import numpy as np
import pytest

from shufflebounds.mechanisms import GaussianMechanism, LaplaceMechanism
from shufflebounds.profile.extend import DominatingPairInfo, IntervalArray


def test_known_values_bound_those_at_larger_eps():
    known, _ = DominatingPairInfo(lambda eps: IntervalArray(-2 * eps - 1, -2 * eps)).hockey_sticks
    eps = np.array([0.5, 1.0, 1.5, 2.0, 700.0])
    assert known.above(eps).tolist() == [0.0] * 5
    known(np.array([2.0, 1.0]))
    assert known.above(eps).tolist() == [0.0, -2.0, -2.0, -4.0, -4.0]


@pytest.mark.slow
def test_a_composition_is_not_below_one_of_its_releases():
    # One value of delta takes long here, and is omitted where a known upper bound is below the bound of the composition.
    one = LaplaceMechanism(1.0).shuffled(1000)
    both = one.compose(GaussianMechanism(20.0))
    for eps in (0.2, 0.6):
        assert both.log_delta(eps, bound="lower") >= one.log_delta(eps, bound="lower") - 1e-9
