"""Related quantities of every public class are compared with each other; ``python -m tests.fuzz consistency`` runs longer."""

import random

import pytest

from shufflebounds import mechanisms, sampling, shuffle
from shufflebounds.composition import from_dict, to_dict
from tests.examples import EXAMPLES
from tests.fuzz import consistency
from tests.strategies import slow

LONG = (
    "mechanisms.DensityRandomizer", "mechanisms.DiscreteGaussianMechanism", "mechanisms.GeometricMechanism",
    "shuffle.StrongerClones",
)


@pytest.mark.parametrize("name", [slow(name) if name in LONG else name for name in EXAMPLES])
def test_views_agree(name):
    example, r = EXAMPLES[name], random.Random(name)
    profile, found = example.draw(r), []
    for check in consistency.CHECKS if example.cheap else r.sample(consistency.CHECKS, 1):
        found += consistency.disagreements(profile, r, check, example.cheap)[1]
    assert not found, "\n".join(found)


@pytest.mark.slow
def test_views_agree_at_random_parameters():
    counts, found = consistency.attack(20, 2_000)
    assert counts.total() >= 2_000
    assert not found, "\n".join(found)


def test_a_check_ends_at_its_time_limit():
    profile = EXAMPLES["mechanisms.LaplaceMechanism"].draw(random.Random(3))
    asked, found = consistency.disagreements(profile, random.Random(1), consistency.curve, True, lambda: True)
    counts, none = consistency.attack(1, None, lambda: True)
    # The budget ends after the first comparison of the curve, which has one entry for each eps.
    assert 0 < asked < 20
    assert not found
    assert not none
    assert not counts.total()


@pytest.mark.parametrize("name", ["curve", "composition", "divergence", "bit", "releases"])
def test_known_faults(name):
    """These seeds once showed faults: infinite losses missing in a curve, a lower bound that no neighbours attain, and others.

    The last two were faults of the campaign: e^eps times a rounding error of the enumeration, and a lower bound of two releases
    that was within the tolerance of the composition.
    """
    matrix = ((0.3099240565480875, 0.17633207302331744, 0.317974580386828, 0.19576929004176702),
              (0.33800401259656754, 0.14924976937941747, 0.3807666003012664, 0.13197961772274858))
    profile, check = {
        "curve": (mechanisms.GeometricMechanism(0.5, 1, 1), consistency.curve),
        "composition": (shuffle.FlippedReports(3, 1, 3, 0.21845940502656397, view="sums"), consistency.enumerated),
        "divergence": (
            sampling.SampledPair(mechanisms.FiniteRandomizer(matrix), 0.00010431573854442376, False), consistency.enumerated),
        "bit": (shuffle.ShuffledBits(1, 0.01416855379196117, ones=0), consistency.enumerated),
        "releases": (shuffle.ShuffledBits(1, 0.25), consistency.several_releases),
    }[name]
    found = [line for seed in range(3) for line in consistency.disagreements(profile, random.Random(seed), check)[1]]
    assert not found, "\n".join(found)


def test_squares_of_mu_add_up_for_normal_noise_only():
    # For two releases of Laplace noise, the lower bound of mu was once sqrt(2) times mu of one release, which exceeds the upper
    # bound.
    twice = mechanisms.LaplaceMechanism(1.0).self_compose(2)
    assert twice.gdp_mu(bound="lower") <= twice.gdp_mu()


def test_a_parameter_called_profile_is_saved():
    replaced = sampling.ReplaceOne(mechanisms.GaussianMechanism(1.0).subsampled(0.25))
    assert from_dict(to_dict(replaced)) == replaced
