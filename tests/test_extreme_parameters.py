"""Both bounds of every view of every public class at extreme parameters.

The parameters are outcomes far rarer than an ulp of 1, budgets near 0 and very large, eps next to the pure budget and at kinks of
delta, few users, and several rare large values. An inversion of the bounds raises InconsistentBoundsError in the library; here the
bounds are compared once more, and delta must not increase with eps.
"""

import math
import warnings

import numpy as np
import pytest

from shufflebounds import interop, sampling, shuffle
from shufflebounds import mechanisms as m
from shufflebounds.profile import DominatingPair
from tests.public_classes import profile_classes
from tests.strategies import slow

RARE = m.KaryResponse(2**53, 1.0)
CAP = m.PrivUnit(3, 2.0, cap=1e-18)
HEAVY = m.FiniteRandomizer([
    [0.9479355860349272, 0.01515470908202476, 0.00035602104977314506, 0.03655368383327491, 1e-70, 1.4126968793833064e-49],
    [0.996853047026663, 0.0007378368401871639, 0.0018879238301166292, 0.0005211923030332306, 1e-70, 4.708989597944355e-56],
    [0.9962592985127008, 0.0023805802261736963, 0.0005813467943421441, 0.0007787744667833625, 1e-70, 4.708989597944355e-56],
])
NEAR = m.FiniteRandomizer([[0.5, 0.5 - 2.0**-50, 2.0**-50], [0.5 + 2.0**-52, 0.5 - 2.0**-50, 2.0**-50 - 2.0**-52]])
PAIR = DominatingPair.from_pmfs(np.log([1 - 2.0**-50, 2.0**-50 - 2.0**-60, 2.0**-60]), np.log([1 - 2.0**-52, 2.0**-60, 2.0**-52 - 2.0**-60]))

EXTREME = {
    "interop.AccountingProfile": interop.AccountingProfile((PAIR, PAIR.reverse())),
    "mechanisms.DiscreteGaussianMechanism": m.DiscreteGaussianMechanism(0.2, 2),
    "mechanisms.FiniteRandomizer": HEAVY,
    "mechanisms.GaussianMechanism": m.GaussianMechanism(0.05),
    "mechanisms.GaussianVector": m.GaussianVector(0.5, 30, "cube"),
    "mechanisms.GeometricMechanism": m.GeometricMechanism(20.0, 3, 30),
    "mechanisms.HadamardResponse": m.HadamardResponse(2**24, 1e-6),
    "mechanisms.KaryResponse": RARE,
    "mechanisms.LaplaceMechanism": m.LaplaceMechanism(1e-2),
    "mechanisms.LocalHashing": m.LocalHashing(2**30, 0.1, 2**30),
    "mechanisms.PrivUnit": CAP,
    "mechanisms.PureLocal": m.PureLocal(1e-9),
    "mechanisms.RandomizedResponse": m.RandomizedResponse(40.0),
    "mechanisms.RatioBounded": m.RatioBounded(1 + 2.0**-30, 2.0**-40, 1 + 2.0**-30),
    "mechanisms.Rappor": m.Rappor(1 - 1e-12, 0.75, 1e-12, 2),
    "mechanisms.SubsetSelection": m.SubsetSelection(2**20, 3.0, 7),
    "mechanisms.UnaryEncoding": m.UnaryEncoding(5, p=0.7, q=1e-15),
    "profile.Composition": RARE.compose(m.RandomizedResponse(1e-6)),
    "sampling.AllocationPair": sampling.AllocationPair(m.PrivUnit(3, 0.92, cap=1.4e-17), 3),
    "sampling.RandomAllocation": sampling.RandomAllocation(m.KaryResponse(2**53, 0.9), 4),
    "sampling.ReplaceOne": sampling.ReplaceOne(RARE.subsampled(1e-9)),
    "sampling.SampledPair": sampling.SampledPair(CAP, 1e-12),
    "sampling.Subsampled": RARE.subsampled(1e-12),
    "sampling.WithoutReplacement": sampling.WithoutReplacement(RARE, 2**53, 3),
    "shuffle.BinomialNoise": shuffle.BinomialNoise(2**53, 1e-12),
    "shuffle.ClearReports": shuffle.ClearReports(10**12, 2**30),
    "shuffle.Clones": shuffle.Clones(2, 30.0),
    "shuffle.FlippedReports": shuffle.FlippedReports(3, 2, 3, 1e-9, view="sums"),
    "shuffle.PersonalizedBits": shuffle.PersonalizedBits([1e-6, 5.0, 40.0]),
    "shuffle.PersonalizedClones": shuffle.PersonalizedClones.randomized_response([0.25, 1.0, 1.0], 2**53),
    "shuffle.RealSum": shuffle.RealSum(3, 2.999, 2),
    "shuffle.Shuffled": shuffle.Shuffled(RARE, 2),
    "shuffle.ShuffledBits": shuffle.ShuffledBits(30, 1e-12),
    "shuffle.ShuffledHistogram": shuffle.ShuffledHistogram(30, 5, 0.4999),
    "shuffle.StrongerClones": shuffle.StrongerClones(30, 1e-12),
    "shuffle.VariationRatio": shuffle.VariationRatio(5, 3.0, 0.5, 1.5),
    "shuffle.ZeroSum": shuffle.ZeroSum(2, 1e-9),
    # More protocols of the classes above.
    "caps": shuffle.Shuffled(m.PrivUnit(3, 0.3, cap=1e-18), 30),
    "caps that often stay away": shuffle.Shuffled(CAP, 5, participation=1e-6),
    "large budget": shuffle.Shuffled(m.KaryResponse(10**9, 40.0), 3),
    "subsets": shuffle.Shuffled(m.SubsetSelection(2**20, 1.0, 5), 4),
    "hashing": shuffle.Shuffled(m.LocalHashing(2**30, 0.104, 758281680), 2),
    "unary": shuffle.Shuffled(m.UnaryEncoding(5, p=0.7, q=1e-15), 6),
    "rappor": shuffle.Shuffled(m.Rappor(1 - 1e-12, 0.75, 1e-12, 2), 10),
    "heavy": shuffle.Shuffled(HEAVY, 118),
    "nearly equal rows": shuffle.Shuffled(NEAR, 12),
    "pure": shuffle.Shuffled(m.PureLocal(1e-9), 7),
    "geometric": shuffle.Shuffled(m.GeometricMechanism(5.0, 50), 3),
    "noise": shuffle.Shuffled(m.GaussianMechanism(0.3), 10),
    "allocated backwards": sampling.AllocationPair(m.KaryResponse(2**53, 0.8865892692489028), 3, removed=False),
}
"""A protocol for every public class, and more protocols by what is extreme about them."""

KINKS = {"sampling.AllocationPair": 0.6962763786340271, "allocated backwards": 0.21813164017026354}
"""An eps at which a sum of likelihood ratios is exactly zero."""


def points(name, profile):
    """Return increasing eps: 0, fractions of the pure budget, values next to it, and a kink."""
    # The pure budget if there is one, otherwise an eps at which delta is small, or 1.
    scale = next((x for x in (profile.epsilon(0.0), profile.epsilon(1e-9, bound="lower")) if 0 < x < math.inf), 1.0)
    shares = [0.0, 1e-9, 0.1, 0.4, 0.6, 0.9, 1 - 1e-9, 1 - 2.0**-52, 1 - 2.0**-53, 1.0, 2.0]
    known = KINKS.get(name)
    beside = [] if known is None else [math.nextafter(known, 0), known, math.nextafter(known, 9)]
    return np.unique([min(scale * share, 1e5) for share in shares] + beside)


def both(method, *arguments):
    return tuple(np.asarray(method(*arguments, bound=bound), dtype=float) for bound in ("lower", "upper"))


def deltas(name, profile):
    eps = points(name, profile)
    lower, upper = both(profile.log_delta, eps)
    yield lower, upper
    # The lower bound at a larger eps is at most the upper bound at a smaller one.
    yield lower[1:], np.nextafter(upper[:-1], 0.0)
    yield both(profile.delta, eps)


def budgets(name, profile):
    yield both(profile.epsilon, [0.0, 1e-300, 1e-33, 1e-16, 1e-9, 1e-3, 0.3])


def tails(name, profile):
    yield both(profile.loss_tail, points(name, profile)[1:])


def curves(name, profile):
    levels = np.array([0.0, 1e-300, 1e-16, 1e-6, 0.05, 0.5, 1 - 2.0**-53, 1.0])
    yield tuple(np.asarray(profile.tradeoff(bound=bound).beta(levels)) for bound in ("lower", "upper"))


def divergences(name, profile):
    yield both(profile.rdp, [1.0, 1 + 1e-9, 2.0, 32.0, math.inf])


def gaussian(name, profile):
    yield both(profile.gdp_mu)


def compositions(name, profile):
    yield both(profile.self_compose(3).log_delta, points(name, profile)[1::4])


VIEWS = [deltas, budgets, tails, curves, divergences, gaussian, compositions]

LONG = set()
"""Questions that take more than half a second."""


QUESTIONS = [(slow if (name, view.__name__) in LONG else pytest.param)(name, view, id=f"{name}-{view.__name__}")
             for name in EXTREME for view in VIEWS]


def test_every_public_class_is_here():
    missing = profile_classes().keys() - EXTREME.keys()
    assert not missing, f"{sorted(missing)}: add a protocol with extreme parameters to EXTREME"


@pytest.mark.parametrize(("name", "view"), QUESTIONS)
def test_bounds_are_in_order(name, view):
    with warnings.catch_warnings():
        # Extreme parameters look like mistakes, about which the library warns.
        warnings.simplefilter("ignore", UserWarning)
        for lower, upper in view(name, EXTREME[name]):
            assert np.all(lower <= upper), (lower, upper)
