"""Both bounds of every view of every public class at extreme parameters.

The parameters are outcomes far rarer than an ulp of 1, budgets near 0 and very large, eps next to the pure budget and at kinks of
delta, few users, and several rare large values. An inversion of the bounds raises InconsistentBoundsError in the library; here the
bounds are compared once more, and delta must not increase with eps.
"""

import functools
import math
import warnings

import numpy as np
import pytest

from shufflebounds import interop, sampling, shuffle
from shufflebounds import mechanisms as m
from shufflebounds.profile import DominatingPair
from tests.densities import tilted
from tests.examples import profile_classes
from tests.strategies import slow

RARE = m.KaryResponse(2**53, 1.0)
CAP = m.PrivUnit(3, 2.0, cap=1e-18)
HEAVY = m.FiniteRandomizer([
    [0.9479355860349272, 0.01515470908202476, 0.00035602104977314506, 0.03655368383327491, 1e-70, 1.4126968793833064e-49],
    [0.996853047026663, 0.0007378368401871639, 0.0018879238301166292, 0.0005211923030332306, 1e-70, 4.708989597944355e-56],
    [0.9962592985127008, 0.0023805802261736963, 0.0005813467943421441, 0.0007787744667833625, 1e-70, 4.708989597944355e-56],
])
NEAR = m.FiniteRandomizer([[0.5, 0.5 - 2.0**-50, 2.0**-50], [0.5 + 2.0**-52, 0.5 - 2.0**-50, 2.0**-50 - 2.0**-52]])
PAIR = DominatingPair.from_pmfs(np.log([1 - 2.0**-50, 2.0**-50 - 2.0**-60, 2.0**-60]),
                                np.log([1 - 2.0**-52, 2.0**-60, 2.0**-52 - 2.0**-60]))

EXTREME = {
    "interop.AccountingProfile": lambda: interop.AccountingProfile((PAIR, PAIR.reverse())),
    "mechanisms.DensityRandomizer": lambda: tilted(2.0 - 2.0**-40),
    "mechanisms.DiscreteGaussianMechanism": lambda: m.DiscreteGaussianMechanism(0.2, 2),
    "mechanisms.FiniteRandomizer": lambda: HEAVY,
    "mechanisms.GaussianMechanism": lambda: m.GaussianMechanism(0.05),
    "mechanisms.GaussianVector": lambda: m.GaussianVector(0.5, 30, "cube"),
    "mechanisms.GeometricMechanism": lambda: m.GeometricMechanism(20.0, 3, 30),
    "mechanisms.HadamardResponse": lambda: m.HadamardResponse(2**24, 1e-6),
    "mechanisms.KaryResponse": lambda: RARE,
    "mechanisms.LaplaceMechanism": lambda: m.LaplaceMechanism(1e-2),
    "mechanisms.LocalHashing": lambda: m.LocalHashing(2**30, 0.1, 2**30),
    "mechanisms.PrivUnit": lambda: CAP,
    "mechanisms.PureLocal": lambda: m.PureLocal(1e-9),
    "mechanisms.RandomizedResponse": lambda: m.RandomizedResponse(40.0),
    "mechanisms.RatioBounded": lambda: m.RatioBounded(1 + 2.0**-30, 2.0**-40, 1 + 2.0**-30),
    "mechanisms.Rappor": lambda: m.Rappor(1 - 1e-12, 0.75, 1e-12, 2),
    "mechanisms.SubsetSelection": lambda: m.SubsetSelection(2**20, 3.0, 7),
    "mechanisms.ThresholdedCount": lambda: m.GeometricMechanism(1e-6, 3).thresholded(2**50),
    "mechanisms.UnaryEncoding": lambda: m.UnaryEncoding(5, p=0.7, q=1e-15),
    "profile.Composition": lambda: RARE.compose(m.RandomizedResponse(1e-6)),
    "profile.Group": lambda: RARE.for_group(7),
    "sampling.AllocationPair": lambda: sampling.AllocationPair(m.PrivUnit(3, 0.92, cap=1.4e-17), 3),
    "sampling.RandomAllocation": lambda: sampling.RandomAllocation(m.KaryResponse(2**53, 0.9), 4),
    "sampling.ReplaceOne": lambda: sampling.ReplaceOne(RARE.subsampled(1e-9)),
    "sampling.ShuffledBatches": lambda: sampling.ShuffledBatches(m.GaussianMechanism(4.0), 2**53, 2**53),
    "sampling.SampledPair": lambda: sampling.SampledPair(CAP, 1e-12),
    "sampling.Subsampled": lambda: RARE.subsampled(1e-12),
    "sampling.WithoutReplacement": lambda: sampling.WithoutReplacement(RARE, 2**53, 3),
    "shuffle.BinomialNoise": lambda: shuffle.BinomialNoise(2**53, 1e-12),
    "shuffle.ClearReports": lambda: shuffle.ClearReports(10**12, 2**30),
    "shuffle.Clones": lambda: shuffle.Clones(2, 30.0),
    "shuffle.FlippedReports": lambda: shuffle.FlippedReports(3, 2, 3, 1e-3, view="sums"),
    "shuffle.GeometricDummies": lambda: shuffle.GeometricDummies(2**53, 2**20, 1 - 1e-9, 1 - 1e-15, 1e-6),
    "shuffle.PersonalizedBits": lambda: shuffle.PersonalizedBits([1e-6, 5.0, 40.0]),
    "shuffle.PersonalizedClones": lambda: shuffle.PersonalizedClones.randomized_response([0.25, 1.0, 1.0], 2**53),
    "shuffle.RealSum": lambda: shuffle.RealSum(3, 2.999, 2),
    "shuffle.Shuffled": lambda: shuffle.Shuffled(RARE, 2),
    "shuffle.ShuffledBits": lambda: shuffle.ShuffledBits(30, 1e-12),
    "shuffle.ShuffledHistogram": lambda: shuffle.ShuffledHistogram(30, 5, 0.4999),
    "shuffle.StrongerClones": lambda: shuffle.StrongerClones(30, 1e-12),
    "shuffle.ZeroSum": lambda: shuffle.ZeroSum(2, 1e-9),
    # More protocols of the classes above.
    "caps": lambda: shuffle.Shuffled(m.PrivUnit(3, 0.3, cap=1e-18), 30),
    "caps that often stay away": lambda: shuffle.Shuffled(CAP, 5, participation=1e-6),
    "large budget": lambda: shuffle.Shuffled(m.KaryResponse(10**9, 40.0), 3),
    "subsets": lambda: shuffle.Shuffled(m.SubsetSelection(2**20, 1.0, 5), 4),
    "hashing": lambda: shuffle.Shuffled(m.LocalHashing(2**30, 0.104, 758281680), 2),
    "unary": lambda: shuffle.Shuffled(m.UnaryEncoding(5, p=0.7, q=1e-15), 6),
    "rappor": lambda: shuffle.Shuffled(m.Rappor(1 - 1e-12, 0.75, 1e-12, 2), 10),
    "heavy": lambda: shuffle.Shuffled(HEAVY, 118),
    "nearly equal rows": lambda: shuffle.Shuffled(NEAR, 12),
    "pure": lambda: shuffle.Shuffled(m.PureLocal(1e-9), 7),
    "geometric": lambda: shuffle.Shuffled(m.GeometricMechanism(5.0, 50), 3),
    "noise": lambda: shuffle.Shuffled(m.GaussianMechanism(0.3), 10),
    "rare numbers of dummies": lambda: shuffle.GeometricDummies(2, 2**20, 1e-300, 5e-324),
    "all but certain dummies": lambda: shuffle.GeometricDummies(2, 3, 1e-17, 1e-17, 1 - 2.0**-53),
    "allocated backwards": lambda: sampling.AllocationPair(m.KaryResponse(2**53, 0.8865892692489028), 3, removed=False),
}
"""For every public class a function that makes a protocol, and more protocols by what is extreme about them."""

KINKS = {"sampling.AllocationPair": 0.6962763786340271, "allocated backwards": 0.21813164017026354}
"""An eps at which a sum of likelihood ratios is exactly zero."""

CHOSEN = {"heavy": [2.4375704877300515], "noise": [0.5, 6.0], "caps": [0.1, 0.29]}
"""All eps of a protocol whose bounds take about a second at each eps."""


@functools.cache
def protocol(name):
    """Return the protocol of that name, the same one for all views, which need the same enumerations and tables."""
    return EXTREME[name]()


def points(name, profile):
    """Return increasing eps: 0, fractions of the pure budget, values next to it, and a kink."""
    if name in CHOSEN:
        return np.array(CHOSEN[name])
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
    if name not in CHOSEN:
        yield both(profile.delta, eps)


def budgets(name, profile):
    yield both(profile.epsilon, [0.0, 1e-300, 1e-16, 1e-9, 0.3])


def tails(name, profile):
    yield both(profile.loss_tail, points(name, profile)[-4:])


def curves(name, profile):
    levels = np.array([0.0, 1e-300, 1e-16, 0.05, 1 - 2.0**-53, 1.0])
    lower, upper = (np.asarray(profile.tradeoff(bound=bound).beta(levels)) for bound in ("lower", "upper"))
    # The breakpoints of both curves are rounded.
    yield lower * (1 - 4e-15), upper


def divergences(name, profile):
    yield both(profile.rdp, [1.0, 1 + 1e-9, 2.0, 32.0, math.inf])


def gaussian(name, profile):
    yield both(profile.gdp_mu)


def compositions(name, profile):
    yield both(profile.self_compose(3).log_delta, points(name, profile)[-1::-6])


VIEWS = [deltas, budgets, tails, curves, divergences, gaussian, compositions]

LONG = {
    *(("mechanisms.DensityRandomizer", view) for view in ("divergences", "budgets", "gaussian", "curves")),
    *(("sampling.ShuffledBatches", view) for view in ("deltas", "divergences")),
    ("mechanisms.LaplaceMechanism", "compositions"), ("shuffle.FlippedReports", "curves"),
    ("shuffle.PersonalizedClones", "compositions"), ("shuffle.ShuffledBits", "compositions"), ("caps", "tails"),
    ("caps", "divergences"), ("caps", "gaussian"), ("caps", "compositions"), ("large budget", "compositions"),
    ("hashing", "compositions"), ("shuffle.PersonalizedClones", "gaussian"), ("shuffle.PersonalizedClones", "curves"),
    ("shuffle.StrongerClones", "gaussian"), ("mechanisms.GeometricMechanism", "compositions"), ("rappor", "gaussian"),
    ("geometric", "curves"), ("geometric", "compositions"), ("geometric", "divergences"), ("shuffle.BinomialNoise", "compositions"),
    ("shuffle.PersonalizedClones", "divergences"),
}
"""Questions that take more than .3 CPU s."""

LEFT_OUT = {
    *(("sampling.ShuffledBatches", view) for view in ("budgets", "tails", "curves", "compositions")),
    ("mechanisms.DensityRandomizer", "compositions"), ("caps", "curves"),
}
"""Questions that take more than about four seconds, and whose code is that of the other classes."""

ALONE = {"heavy", "noise"}
"""Protocols whose other views would take minutes."""

QUESTIONS = [(slow if (name, view.__name__) in LONG else pytest.param)(name, view, id=f"{name}-{view.__name__}")
             for name in EXTREME for view in (VIEWS[:1] if name in ALONE else VIEWS) if (name, view.__name__) not in LEFT_OUT]


def test_every_public_class_is_here():
    missing = profile_classes().keys() - EXTREME.keys()
    assert not missing, f"{sorted(missing)}: add a protocol with extreme parameters to EXTREME"


@pytest.mark.parametrize(("name", "view"), QUESTIONS)
def test_bounds_are_in_order(name, view):
    with warnings.catch_warnings():
        # Extreme parameters look like mistakes, about which the library warns.
        warnings.simplefilter("ignore", UserWarning)
        for lower, upper in view(name, protocol(name)):
            assert np.all(lower <= upper), (lower, upper)
