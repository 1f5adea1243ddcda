"""The distribution of the numbers of all outcomes in random allocation, against sums over all outcomes of all steps."""

import math

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from shufflebounds.mechanisms import GeometricMechanism, KaryResponse, RandomizedResponse
from shufflebounds.profile import DominatingPair
from shufflebounds.sampling import AllocationPair, RandomAllocation
from tests.oracles import allocated
from tests.strategies import slow


@pytest.mark.parametrize(("p", "q"), [
    ([0.25, 0.75], [0.5, 0.5]), ([0.5, 0.25, 0.25], [0.25, 0.75, 0.0]), ([0.75, 0.25, 0.0], [0.5, 0.25, 0.25]),
    ([0.5, 0.5, 0.0], [0.0, 0.5, 0.5]), ([0.5 + 2.0**-40, 0.5 - 2.0**-40], [0.5, 0.5]),
    ([1 - 2.0**-50, 2.0**-50], [2.0**-40, 1 - 2.0**-40]), ([0.5, 0.5 - 2.0**-53, 2.0**-53], [0.25, 0.75 - 2.0**-30, 2.0**-30]),
])
@pytest.mark.parametrize(("steps", "chosen"), [(1, 1), (4, 1), (4, 2), (4, 3), slow(5, 5)])
def test_few_outcomes_are_enumerated(p, q, steps, chosen):
    with np.errstate(divide="ignore"):
        profile = RandomAllocation(DominatingPair.from_pmfs(np.log(p), np.log(q)), steps, chosen)
    with mpmath.workdps(40):
        # The logarithms are rounded, so the sums of the masses of the library differ from 1 by about 1e-16.
        pairs = list(zip(*allocated([mpf(x) for x in p], [mpf(x) for x in q], steps, chosen)))
        for pair, outcomes in zip(profile.pairs(), (pairs, [(b, a) for a, b in pairs])):
            for eps in (0.0, 2.0**-42, 0.1, 1.0, 20.0):
                exact = mpmath.fsum(max(a - mpmath.exp(mpf(eps)) * b, 0) for a, b in outcomes)
                low, high = pair.delta(eps, bound="lower"), pair.delta(eps)
                assert low <= exact <= high
                assert high - low <= 1e-13 + 1e-11 * exact
            for order in (1.0, 2.5, 30.0):
                low, high = pair.rdp(order, bound="lower"), pair.rdp(order)
                if any(a and not b for a, b in outcomes):
                    assert low == high == math.inf
                    continue
                terms = [(a, mpmath.log(a / b)) for a, b in outcomes if a]
                exact = (mpmath.fsum(a * x for a, x in terms) if order == 1 else
                         mpmath.log(mpmath.fsum(a * mpmath.exp((order - 1) * x) for a, x in terms)) / (order - 1))
                assert low - 1e-15 <= exact <= high + 1e-15
                assert high - low <= 1e-12 + 1e-11 * exact


def test_losses_far_below_an_ulp_keep_their_digits():
    budget = 1e-200
    pair = AllocationPair(RandomizedResponse(budget), 9)
    # All nine outputs agree: their probability is 2^-9, and their likelihood ratio 1 + budget.
    low, high = pair.log_delta(0.9 * budget, bound="lower"), pair.log_delta(0.9 * budget)
    assert low <= math.log(0.1 * budget) - 9 * math.log(2) <= high
    assert high - low < 1e-11


def test_every_view_of_several_steps_of_few_outcomes_is_exact():
    # Sums of tests and compositions of blocks, which serve for more outcomes, took minutes here, and left a gap.
    epoch = RandomAllocation(RandomizedResponse(19.835134045139263), 14, chosen=2)
    assert epoch.pairs() == epoch.pairs()
    for delta in (1e-2, 1e-12, 1e-100):
        low, high = epoch.epsilon(delta, bound="lower"), epoch.epsilon(delta)
        assert low <= high <= low * (1 + 1e-11)
    assert epoch.rdp(7.5) <= epoch.rdp(7.5, bound="lower") * (1 + 1e-11)
    assert epoch.gdp_mu() <= epoch.gdp_mu(bound="lower") * (1 + 1e-7)
    both = [epoch.tradeoff(bound=bound).beta(np.array([1e-6, 0.05, 0.5])) for bound in ("lower", "upper")]
    assert both[0] == pytest.approx(both[1], rel=1e-9)
    twice = epoch.self_compose(2)
    assert twice.epsilon(1e-9) <= twice.epsilon(1e-9, bound="lower") * (1 + 1e-4)


@pytest.mark.parametrize(("mechanism", "steps", "chosen"), [
    (RandomizedResponse(0.5), 2000, 1), (KaryResponse(5, 2.0), 100, 1), (GeometricMechanism(1.0, 2), 12, 1),
])
def test_enumeration_lies_between_the_bounds_by_sums(mechanism, steps, chosen):
    for pair in RandomAllocation(mechanism, steps, chosen).pairs():
        eps = np.array([0.0, 0.3, 0.9]) * mechanism.epsilon(0.0) / steps**0.5
        own, sums = pair._log_delta(eps), pair._forms.log_delta(eps)
        assert (own.lower <= sums.upper + 1e-12).all()
        assert (sums.lower <= own.upper + 1e-12).all()


@pytest.mark.parametrize(("local_eps", "distance"), [(8.863571913036541, 1e-13), (6.806944050436494, 1e-13), (8.0, 3e-12)])
def test_next_to_the_pure_budget_more_steps_have_no_larger_delta(local_eps, distance):
    """Delta is q^(t-1) (q - e^eps p), from equal outcomes of the largest loss; the bound of log delta rose by up to .003."""
    eps, above = local_eps * (1 - distance), []
    with mpmath.workdps(60):
        q = 1 / (1 + mpmath.exp(-mpf(local_eps)))
        for steps in (1, 2, 3, 7, 21):
            pair = AllocationPair(KaryResponse(2, local_eps), steps, removed=False)
            exact = float(mpmath.log(q ** (steps - 1) * (q - mpmath.exp(mpf(eps)) * (1 - q))))
            above.append(pair.log_delta(eps))
            assert pair.log_delta(eps, bound="lower") <= exact <= above[-1] <= exact + 0.02
    assert (np.diff(above) <= 0).all()
