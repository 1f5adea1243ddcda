"""The gap of a composition falls with rtol: a smaller rtol never gives wider bounds, and the documented gap is reached."""

import pytest

from shufflebounds.mechanisms import GaussianMechanism, KaryResponse, LaplaceMechanism
from shufflebounds.sampling import RandomAllocation
from shufflebounds.shuffle import BinomialNoise, Shuffled, StrongerClones
from tests.strategies import slow

RTOLS = [1e-1, 1e-5, 1e-9, 1e-12]

SLOW = pytest.mark.slow


@pytest.mark.parametrize(("mechanism", "times", "least"), [
    slow(LaplaceMechanism(10.0), 1000, 1e-7), (LaplaceMechanism(3.0), 50, 1e-8), slow(LaplaceMechanism(0.1), 3, 1e-9),
    slow(LaplaceMechanism(2.0).subsampled(0.1), 300, 1e-7), pytest.param(StrongerClones(10**6, 4.0), 10, 1e-6, marks=SLOW),
    pytest.param(BinomialNoise(10**4, 0.5), 10, 1e-6, marks=SLOW),
    pytest.param(GaussianMechanism(1.0).subsampled(0.01), 1000, 1e-9, marks=SLOW),
    pytest.param(LaplaceMechanism(0.2).subsampled(1e-4), 30, 1e-8, marks=SLOW),
    pytest.param(Shuffled(KaryResponse(10, 1.0), 10**4), 10, 1e-4, marks=SLOW),
    pytest.param(RandomAllocation(GaussianMechanism(2.0), 100), 3, 2e-4, marks=SLOW),
], ids=repr)
def test_a_smaller_rtol_does_not_give_wider_bounds(mechanism, times, least):
    narrowest = 1.0
    for rtol in RTOLS:
        composed = mechanism.self_compose(times, rtol=rtol)
        lower, upper = (composed.epsilon(1e-6, bound=bound) for bound in ("lower", "upper"))
        gap = (upper - lower) / upper
        # Two gaps below the requested one may be in either order, because of rounding and of the positions of the grid points.
        assert gap <= max(1.05 * narrowest, 0.1 * rtol, 1e-11), rtol
        narrowest = min(gap, narrowest)
    assert narrowest <= least
