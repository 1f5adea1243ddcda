"""Cases in which fuzzing once found a violation, each as one test: lower <= exact <= upper without a tolerance."""

import numpy as np
import pytest

from shufflebounds import mechanisms, sampling, shuffle
from shufflebounds.profile import DominatingPair
from shufflebounds.profile.extend import LossAtoms
from tests.fuzz import enumeration
from tests.strategies import slow

pytest.importorskip("flint")

FAR = DominatingPair.from_pmfs((-6.157692927672637, -0.002119376310644381, -247.454973359538, -451.0114918302396),
                               (-586.934421454477, -0.5668596565053426, -691.0794525808885, -0.8377202788757226))

SPREAD = DominatingPair.from_pmfs((-1.30466946977605, -204.47330707062076, -0.880766157908992, -1.1574945956174358),
                                  (-0.178702691810334, -92.61753691467946, -3.4703608744451437, -2.020873212956144))


@pytest.mark.parametrize(
    ("profile", "eps"),
    [
        # The grids of these random allocations have points near e^500, so that levels close to 0 are rounded to 0.
        (sampling.AllocationPair(mechanisms.KaryResponse(2, 501.0848069702524), 5, removed=False), 133.21142576520703),
        (sampling.AllocationPair(mechanisms.KaryResponse(2, 23.659364925675288), 2, removed=False), 1.5451501423972979e-114),
        (sampling.AllocationPair(mechanisms.KaryResponse(189930, 29.999999999999993), 1), 29.999999999999982),
        (sampling.AllocationPair(mechanisms.KaryResponse(2, 1.137223045643702e-20), 3, removed=False), 9.787368366057651e-21),
        (sampling.AllocationPair(FAR, 5, removed=False), 205.3863278261279),
        # In these pairs the two orders have different budgets, or masses of 1 are computed from differences of logarithms near 30,
        # or there are gains but no losses.
        (sampling.AllocationPair(DominatingPair.from_pmfs(np.log([0.5, 0.5]), np.log([0.001, 0.999])), 2, removed=False), 5.0),
        (sampling.AllocationPair(DominatingPair.from_pmfs(np.log([0.001, 0.999]), np.log([0.5, 0.5])), 2, removed=False), 5.0),
        (sampling.AllocationPair(mechanisms.KaryResponse(940905, 29.99999999999999), 4), 29.99999999999998),
        (sampling.AllocationPair(SPREAD, 3, removed=False), 99.74693065462151),
        # The losses are below the smallest double.
        (sampling.SampledPair(mechanisms.KaryResponse(2, 2.010123554004125e-263), 1e-100, removed=False).self_compose(2), 0.0),
        # Probabilities close to 1 were once computed as 1 minus the others.
        (shuffle.ShuffledBits(3, 4.840207906979042e-147, ones=0).self_compose(2), 673.8061019886633),
        (shuffle.ShuffledBits(1, 3.2452979417282314e-51).self_compose(2), 116.25463258112242),
        slow(shuffle.PersonalizedBits([2.6e-35, 2.4e-183, 210.4, 307.5], bits=[0, 1, 0, 1]).self_compose(3), 700.0),
        # Outcomes with large masses follow one with mass e^-869, and all of them have loss 0 on the grid.
        (shuffle.PersonalizedBits([350.0, 517.7, 2.73, 9.8e-44, 1.4e-37], bits=[0, 0, 1, 1, 1], target=3).self_compose(2), 6.2e-44),
        # The losses are near 1e-240, and eps is larger by a relative 1e-11.
        (mechanisms.KaryResponse(881043, 5.825212670709336e-240).self_compose(3), 1.7475638012128022e-239),
    ],
)
def test_found_by_enumeration(profile, eps):
    assert enumeration.wrong(profile, eps) is None


@pytest.mark.parametrize(("log_rest", "times", "exact"), [(-1e-20, 2, 0.0), (-40.0, 3, np.log(3) - 40)])
def test_endless_losses_that_are_nearly_certain(log_rest, times, exact):
    # At least one of the releases has an infinite loss with probability 1 - (1 - e^log_rest)^times.
    one = LossAtoms.of(np.array([log_rest, np.log1p(-np.exp(log_rest))]) if log_rest < -1 else np.array([log_rest, np.log(1e-20)]),
                       np.array([-np.inf, 0.0]))
    assert LossAtoms.product([(one, times)]).log_rest == pytest.approx(exact, rel=1e-15, abs=1e-30)


def test_a_light_outcome_before_heavy_ones_on_one_point():
    atoms = LossAtoms.of(np.array([-869.0, -351.0, -0.0]), np.array([-869.0, -351.0, -0.0]))
    law = atoms.law(0.0, 1e-47, upper=False)
    assert law.log_p.tolist() == pytest.approx([0.0], abs=1e-12)


@pytest.mark.parametrize(("bins", "budget", "users"), [(34, 410.4639405427993, 11), (9, 55.646068449315976, 10)])
def test_almost_nobody_takes_part(bins, budget, users):
    # If the masses of the values other than 0 sum to 1 up to rounding, the log of the remaining mass is -inf.
    protocol = shuffle.Shuffled(mechanisms.KaryResponse(bins, budget), users, 1e-12)
    for eps in (0.1, budget / 2, budget * (1 - 1e-13)):
        assert protocol.log_delta(eps, bound="lower") <= protocol.log_delta(eps) < 0


@pytest.mark.parametrize(("users", "participation"), [(11, 0.9995995012101866), (9, 0.7116736444868098)])
def test_values_whose_ratio_is_no_double(users, participation):
    protocol = shuffle.Shuffled(mechanisms.KaryResponse(28, 699.9999999999999), users, participation)
    for eps in (349.9999999999998, 406.9472849721891):
        assert protocol.log_delta(eps, bound="lower") <= protocol.log_delta(eps) < 0
