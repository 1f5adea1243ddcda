"""Examples of every public class of profiles. A test over all classes takes them from here, so that it includes a new class.

A class that is not in `EXAMPLES` fails tests/test_public_classes.py.
"""

import inspect
import math
import types
from collections.abc import Callable
from random import Random
from typing import NamedTuple

import numpy as np

import shufflebounds
from shufflebounds import interop, sampling, shuffle
from shufflebounds import mechanisms as m
from shufflebounds.profile import Composition, DominatingPair, PrivacyProfile
from tests.densities import tilted

__all__ = ["EXAMPLES", "Example", "class_of", "profile_classes"]


class Example(NamedTuple):
    """What a test needs to know of one class.

    Attributes
    ----------
    profiles : callable
        Returns new profiles with ordinary parameters. The values of the first one take little time.
    draw : callable
        Returns a profile with random parameters, small enough for many checks. The draws include zero probabilities, outcomes that
        one distribution alone produces, budgets near 0 and the default parameters.
    cheap : bool
        Whether a value of a drawn profile takes milliseconds. If not, fewer values are tested.
    calibrated : mapping
        The ways to calibrate a profile to (eps, delta), by name.
    also : tuple of str
        Questions that only this class answers, as in tests/regression/every_answer.py.
    recorded : bool
        Whether the answers of `profiles` are recorded there.
    """

    profiles: Callable[[], list[PrivacyProfile]]
    draw: Callable[[Random], PrivacyProfile]
    cheap: bool = True
    calibrated: dict[str, Callable[[float, float], PrivacyProfile]] = {}
    also: tuple[str, ...] = ()
    recorded: bool = True


def profile_classes():
    """Return {"module.Name": class} for every concrete subclass of PrivacyProfile that a public module names in ``__all__``.

    The module is the last part of its name: "shuffle.Clones", "profile.Composition".
    """
    found = {}
    waiting = [shufflebounds]
    while waiting:
        module = waiting.pop()
        for name in module.__all__:
            value = getattr(module, name)
            if isinstance(value, types.ModuleType):
                if hasattr(value, "__all__"):
                    waiting.append(value)
            elif inspect.isclass(value) and issubclass(value, PrivacyProfile) and not inspect.isabstract(value):
                found[f"{module.__name__.rpartition('.')[2]}.{name}"] = value
    del found["shufflebounds.PrivacyProfile"], found["profile.PrivacyProfile"]
    return found


def _budget(r):
    """Return a random local budget: of usual size, small, or large."""
    return r.choice([1.0, r.uniform(0.1, 3), 10.0 ** r.uniform(-6, -1), r.uniform(3, 12)])


def _rows(r, rows, columns):
    """Return a random stochastic matrix with entries that are multiples of a power of 2; some have zeros or nearly equal rows."""
    kind = r.random()
    out = []
    for _ in range(rows):
        if out and kind < 0.2:
            row = list(out[0])
            step = min(row[0], 2.0 ** -r.randint(8, 30))
            row[0], row[-1] = row[0] - step, row[-1] + step
        else:
            weight = [0 if r.random() < (0.3 if kind < 0.6 else 0.0) else r.randint(1, 2**10) for _ in range(columns)]
            weight[r.randrange(columns)] += 1
            row = [math.floor(x * 2**20 / sum(weight)) / 2**20 for x in weight[:-1]]
            row.append(1 - sum(row))
            if weight[-1] == 0:
                most = row.index(max(row[:-1]))
                row[most], row[-1] = row[most] + row[-1], 0.0
        out.append(row)
    return tuple(map(tuple, out))


def _matrix(r):
    return m.FiniteRandomizer(_rows(r, r.randint(2, 3), r.randint(2, 4)))


def _listed(r):
    first, second = _rows(r, 2, r.randint(2, 5))
    with np.errstate(divide="ignore"):
        return DominatingPair.from_pmfs(np.log(first), np.log(second))


def _bins(r, bits=53):
    """Return a random number of bins from 4 on, whose outcomes may be rarer than an ulp of 1."""
    return int(2 ** r.uniform(2, bits))


def _kary(r):
    return m.KaryResponse(r.choice([2, 3, 4, 50, _bins(r)]), _budget(r))


def _geometric(r):
    sensitivity = r.choice([1, 1, 2, 3])
    eps = r.choice([0.5, r.uniform(0.1, 3), 10.0 ** r.uniform(-3, -1)])
    return m.GeometricMechanism(eps, sensitivity, r.choice([None, 1, 2, 6, 20]))


def _thresholded(r):
    noise = _geometric(r)
    noise = noise if noise.bound is None or noise.sensitivity == 1 else m.GeometricMechanism(noise.eps, 1, noise.bound)
    return noise.thresholded(r.choice([4, 5, 9, 30, 10**6]))


def _priv_unit(r):
    return m.PrivUnit(r.choice([2, 3, 16]), _budget(r), r.choice([None, 10.0 ** r.uniform(-18, -0.4)]))


def _gaussian(r):
    return m.GaussianMechanism(r.choice([1.0, math.exp(r.uniform(-1, 3)), 10 ** r.uniform(1, 6)]))


def _laplace(r):
    return m.LaplaceMechanism(r.choice([1.0, math.exp(r.uniform(-1, 3)), 10 ** r.uniform(1, 6)]))


def _rappor(r):
    return r.choice([m.Rappor(0.5), m.Rappor(r.uniform(0.01, 0.9), 0.75, 0.25, r.choice([1, 2])),
                     m.Rappor(1 - 10.0 ** r.uniform(-6, -1))])


def _ratios(r):
    p = 1 + 10.0 ** r.uniform(-3, 1)
    beta = (p - 1) / (p + 1) * r.choice([1.0, r.uniform(0.05, 1)])
    return p, beta, r.choice([p, p + r.uniform(0.1, 5), r.uniform(1 + beta, p), 1 + beta])


def _vector(r):
    return m.GaussianVector(math.exp(r.uniform(0, 2)), r.choice([2, 3, 8]), r.choice(["sphere", "cube"]))


def _randomizer(r):
    bit, bounded = lambda r: m.RandomizedResponse(_budget(r)), lambda r: m.RatioBounded(*_ratios(r))
    return r.choice([*2 * [_kary, _matrix, _priv_unit, bit, bounded], _vector])(r)


def _one_pair(r):
    """Return a mechanism with a single pair, whose outcomes are enumerated or which has a density."""
    return r.choice([_geometric, _geometric, _kary, _listed, _laplace, _gaussian])(r)


def _bits(r):
    users = r.choice([1, 2, 3, 5, 40])
    return shuffle.ShuffledBits(users, r.choice([0.25, r.uniform(0.01, 0.499), 0.0, 0.5]), ones=r.choice(["worst", 0, users - 1]),
                                fakes=r.choice([0, 0, 3]))


def _dummies(r):
    shift, left = r.choice([0, 1, 5, 40]), r.choice([0.5, 0.0, r.uniform(0.01, 0.99), 1 - 10.0 ** r.uniform(-6, -1)])
    return shuffle.GeometricDummies(r.choice([2, 3, 10]), shift, left, r.uniform(0.01, 0.95), r.choice([1.0, r.uniform(0.01, 1)]))


def _flipped(r):
    view = r.choice(["sums", "sums", "records"])
    return shuffle.FlippedReports(r.randint(1, 3), r.randint(0, 2), r.choice([2, 3]), r.uniform(0.05, 0.45), view=view,
                                  fake=r.choice(["uniform", "uniform", "known"]))


def _personal_bits(r):
    users = r.randint(1, 6)
    return shuffle.PersonalizedBits([_budget(r) for _ in range(users)],
                                    bits=r.choice([None, [r.randint(0, 1) for _ in range(users)]]))


def _personal_clones(r):
    budgets = [r.uniform(0.1, 3) for _ in range(r.randint(2, 3))]
    return r.choice([
        lambda: shuffle.PersonalizedClones.laplace(budgets),
        lambda: shuffle.PersonalizedClones.gaussian([max(b, 0.5) for b in budgets]),
        lambda: shuffle.PersonalizedClones.randomized_response(budgets, r.choice([3, _bins(r)])),
        lambda: shuffle.PersonalizedClones(0.2, [0.1, 0.2], counts=[3, 2]),
    ])()


def _without_replacement(r):
    records = r.choice([1, 10, 1000])
    return sampling.WithoutReplacement(r.choice([_kary, _laplace, _gaussian])(r), records, r.randint(1, records))


def _allocation(r):
    noise = m.GeometricMechanism(r.choice([0.5, 10.0 ** r.uniform(-3, 1)]), 1, r.choice([None, 1, 2, 6]))
    return r.choice([_kary(r), _priv_unit(r), noise]), r.choice([1, 2, 3])


def _composition(r):
    # Only mechanisms are composed, no single pairs (P, Q): the composition of such a pair does not cover the order (Q, P).
    parts = [r.choice([_kary, _matrix, _geometric, _rappor])(r) for _ in range(r.randint(2, 3))]
    return Composition(tuple((part, r.choice([1, 1, 2])) for part in parts))


def _accounting(r):
    pair = _listed(r)
    return interop.AccountingProfile((pair, pair.reverse()))


def _noise(r):
    return shuffle.BinomialNoise(r.choice([0, 1, 5, 30, 1000]), r.choice([0.5, r.uniform(0.05, 0.95)]))


def _log_whole(r, low, high):
    return round(math.exp(r.uniform(math.log(low), math.log(high))))


def _randomizers():
    """Return one randomizer of every class."""
    return [
        m.KaryResponse(10, 2.0), m.KaryResponse(3, 1.0), m.SubsetSelection(20, 1.5), m.LocalHashing(100, 2.0),
        m.HadamardResponse(30, 1.0), m.UnaryEncoding.optimized(8, 2.0), m.PrivUnit(16, 3.0), m.PureLocal(1.0),
        m.RatioBounded(*RATIOS), m.Rappor(0.5, 0.75, 0.25, 2), m.GaussianMechanism(1.0), m.LaplaceMechanism(1.0),
        m.GeometricMechanism(1.0, 3), m.DiscreteGaussianMechanism(2.0, 3), m.RandomizedResponse(1.0), m.FiniteRandomizer(MATRIX),
        m.GaussianVector(2.0, 3),
    ]


MATRIX = ((0.5, 0.3, 0.2), (0.2, 0.5, 0.3), (0.3, 0.2, 0.5))
WITH_ZEROS = ((0.5, 0.5, 0.0), (0.0, 0.25, 0.75))
RATIOS = (5.0, 0.3, 5.0)
GAUSSIAN, LAPLACE = m.GaussianMechanism(1.0), m.LaplaceMechanism(1.0)
"""Objects and parameters that several examples share."""

OF_COUNTS = ("error_quantile(0.05)", "error_quantile(0.05, of='any')", "error_tail(20.0)", "mean_squared_error()")
OF_ORACLES = ("error_quantile(0.05, users=1000)", "error_quantile(0.05, users=1000, of='any')", "error_tail(60.0, users=1000)",
              "mean_squared_error(users=1000)", "rmse(1000)")
OF_NOISE = ("error_quantile(0.05, 7)", "error_tail(3.0)", "error_tail(30.0, 20)", "rdp(2.5)", "tradeoff.epsilon(0.01)")
"""Questions about the error of an estimate: of a protocol, of local randomizers, and of noise (also in closed forms of its own)."""

EXAMPLES = {
    "interop.AccountingProfile": Example(
        # The numbers are those of another library, whose versions differ.
        lambda: [interop.AccountingProfile((pair := DominatingPair.from_pmfs(*np.log([[0.6, 0.4], [0.2, 0.8]])), pair.reverse()))],
        _accounting, recorded=False,
    ),
    "mechanisms.DiscreteGaussianMechanism": Example(
        lambda: [m.DiscreteGaussianMechanism(2.0, 3), m.DiscreteGaussianMechanism(0.4)],
        lambda r: m.DiscreteGaussianMechanism(math.exp(r.uniform(-1, 2)), r.choice([1, 2])), also=OF_NOISE,
    ),
    "mechanisms.DensityRandomizer": Example(
        lambda: [tilted()], lambda r: tilted(r.choice([1.0, r.uniform(0.01, 1.99)])), cheap=False),
    "mechanisms.FiniteRandomizer": Example(
        lambda: [m.FiniteRandomizer(MATRIX), m.FiniteRandomizer(WITH_ZEROS)], _matrix, also=OF_ORACLES),
    "mechanisms.GaussianMechanism": Example(
        lambda: [GAUSSIAN, m.GaussianMechanism(0.3)], _gaussian,
        calibrated={"sigma": lambda e, d: m.GaussianMechanism.from_dp(eps=e, delta=d, sensitivity=0.7)}, also=OF_NOISE,
    ),
    "mechanisms.GaussianVector": Example(
        lambda: [m.GaussianVector(2.0, 3), m.GaussianVector(2.0, 3, "sphere")], _vector),
    "mechanisms.GeometricMechanism": Example(
        lambda: [m.GeometricMechanism(1.0, 3), m.GeometricMechanism(1.0, 2, 20), m.GeometricMechanism(1.0, 1, 1)], _geometric,
        calibrated={"budget": lambda e, d: m.GeometricMechanism.from_dp(eps=e, delta=d, sensitivity=2)}, also=OF_NOISE,
    ),
    "mechanisms.HadamardResponse": Example(
        lambda: [m.HadamardResponse(30, 1.0)], lambda r: m.HadamardResponse(r.choice([2, 30, _bins(r, 24)]), _budget(r)),
        also=OF_ORACLES),
    "mechanisms.KaryResponse": Example(lambda: [m.KaryResponse(10, 2.0)], _kary, also=OF_ORACLES),
    "mechanisms.LaplaceMechanism": Example(
        lambda: [LAPLACE], _laplace,
        calibrated={
            "scale": lambda e, d: m.LaplaceMechanism.from_eps(eps=e, sensitivity=0.7, delta=d),
            "scale, pure": lambda e, d: m.LaplaceMechanism.from_eps(eps=e, sensitivity=0.7),
        }, also=OF_NOISE,
    ),
    "mechanisms.LocalHashing": Example(
        lambda: [m.LocalHashing(100, 2.0), m.LocalHashing(100, 1.0, 2)],
        lambda r: m.LocalHashing(r.choice([2, 100, _bins(r, 30)]), _budget(r), r.choice([None, _bins(r, 30)])), also=OF_ORACLES),
    "mechanisms.PrivUnit": Example(
        lambda: [m.PrivUnit(16, 3.0)], _priv_unit, also=("error_quantile(0.05, users=1000)",)),
    "mechanisms.PureLocal": Example(lambda: [m.PureLocal(1.0)], lambda r: m.PureLocal(_budget(r))),
    "mechanisms.RandomizedResponse": Example(
        lambda: [m.RandomizedResponse(1.0), m.RandomizedResponse(0.5, upper=4.0)],
        lambda r: m.RandomizedResponse(_budget(r), r.choice([1.0, 4.0])), also=("error_bound(1000, 0.05)",)),
    "mechanisms.Rappor": Example(lambda: [m.Rappor(0.5, 0.75, 0.25, 2), m.Rappor(0.5, bits=8)], _rappor, also=OF_ORACLES),
    "mechanisms.RatioBounded": Example(
        lambda: [m.RatioBounded(*RATIOS), m.RatioBounded(3.0, 0.25, 1.5)], lambda r: m.RatioBounded(*_ratios(r))),
    "mechanisms.SubsetSelection": Example(
        lambda: [m.SubsetSelection(20, 1.5)], lambda r: m.SubsetSelection(r.choice([2, 3, 20]), _budget(r)), also=OF_ORACLES),
    "mechanisms.ThresholdedCount": Example(
        lambda: [m.GeometricMechanism(1.0).thresholded(20), m.GeometricMechanism(0.5, 1, 9).thresholded(7)],
        _thresholded,
    ),
    "mechanisms.UnaryEncoding": Example(
        lambda: [m.UnaryEncoding.optimized(8, 2.0), m.UnaryEncoding(4, 0.8, 0.1)],
        lambda r: m.UnaryEncoding(r.choice([2, 8]), r.uniform(0.5, 0.95),
                                  r.choice([r.uniform(0.05, 0.45), 10.0 ** r.uniform(-15, -1)])), also=OF_ORACLES),
    "profile.Composition": Example(
        lambda: [
            m.KaryResponse(3, 0.5).compose(m.Rappor(0.5)), shuffle.StrongerClones(10**4, 2.0).compose(m.GaussianMechanism(3.0)),
            shuffle.BinomialNoise(400, 0.5).compose(shuffle.ShuffledBits(200, 0.2), m.LaplaceMechanism(4.0)),
            shuffle.ShuffledBits(200, 0.2).compose(shuffle.ClearReports(2000, 10)), GAUSSIAN.subsampled(0.01).self_compose(100),
        ],
        _composition, cheap=False, also=("explain(0.5)",),
    ),
    "profile.DominatingPair": Example(
        lambda: [
            DominatingPair.from_pmfs(np.log([0.6, 0.3, 0.1]), np.log([0.1, 0.3, 0.6])), shuffle.ShuffledBits(50, 0.2).pair(3),
            sampling.RandomAllocation(m.KaryResponse(3, 1.0), 4).pairs()[0],
        ],
        _listed,
    ),
    "profile.Group": Example(
        lambda: [
            shuffle.ShuffledBits(1000, 0.25).for_group(5), m.KaryResponse(10, 2.0).shuffled(1000).for_group(3),
            shuffle.ClearReports(2000, 10).for_group(2), shuffle.ShuffledHistogram(10**4, 10, 0.01).for_group(2),
            shuffle.BinomialNoise(1000, 0.5).for_group(3), LAPLACE.for_group(2),
            GAUSSIAN.subsampled(0.01).self_compose(100).for_group(2), shuffle.StrongerClones(10**4, 2.0).for_group(100),
        ],
        lambda r: r.choice([_kary, _matrix, _geometric, _noise])(r).for_group(r.choice([1, 2, 3])), cheap=False,
    ),
    "sampling.AllocationPair": Example(
        lambda: [sampling.AllocationPair(m.KaryResponse(3, 1.0), 4),
                 sampling.AllocationPair(m.GaussianMechanism(0.5), 1000, False)],
        lambda r: sampling.AllocationPair(*_allocation(r), r.random() < 0.5), cheap=False,
    ),
    "sampling.RandomAllocation": Example(
        lambda: [sampling.RandomAllocation(m.KaryResponse(3, 1.0), 20), sampling.RandomAllocation(LAPLACE, 50),
                 sampling.RandomAllocation(GAUSSIAN, 100), sampling.RandomAllocation(GAUSSIAN, 20, chosen=3),
                 sampling.RandomAllocation(GAUSSIAN, 100, chosen=3), sampling.RandomAllocation(m.KaryResponse(3, 15.0), 20)],
        lambda r: sampling.RandomAllocation(*_allocation(r)), cheap=False,
    ),
    "sampling.ReplaceOne": Example(
        lambda: [sampling.ReplaceOne(m.KaryResponse(5, 1.0).subsampled(0.2)), sampling.ReplaceOne(GAUSSIAN.subsampled(0.01))],
        lambda r: sampling.ReplaceOne(_kary(r).subsampled(r.random())), cheap=False,
    ),
    "sampling.SampledPair": Example(
        lambda: [sampling.SampledPair(m.GaussianMechanism(2.0), 0.05, False), sampling.SampledPair(m.KaryResponse(5, 1.0), 0.2)],
        lambda r: sampling.SampledPair(_one_pair(r), 10.0 ** r.uniform(-4, 0), r.random() < 0.5), cheap=False,
    ),
    "sampling.ShuffledBatches": Example(
        lambda: [sampling.ShuffledBatches(GAUSSIAN, 100), sampling.ShuffledBatches(m.GaussianMechanism(4.0), 10**4, 1000)],
        lambda r: sampling.ShuffledBatches(m.GaussianMechanism(math.exp(r.uniform(-1, 2))), r.choice([1, 2, 100, 10**4, 10**6]),
                                           r.choice([1, 30, 10**4])),
        cheap=False,
    ),
    "sampling.Subsampled": Example(
        lambda: [GAUSSIAN.subsampled(0.01), LAPLACE.subsampled(0.1), m.KaryResponse(5, 1.0).subsampled(0.2),
                 m.FiniteRandomizer(MATRIX).subsampled(0.2)],
        lambda r: sampling.Subsampled(_one_pair(r), 10.0 ** r.uniform(-4, 0)),
    ),
    "sampling.WithoutReplacement": Example(
        lambda: [sampling.WithoutReplacement(m.KaryResponse(5, 1.0), 10, 3), sampling.WithoutReplacement(GAUSSIAN, 1000, 50)],
        _without_replacement, cheap=False,
    ),
    "shuffle.BinomialNoise": Example(
        lambda: [shuffle.BinomialNoise(1000, 0.5), shuffle.BinomialNoise(40, 0.3)], _noise,
        calibrated={
            "trials": lambda e, d: shuffle.BinomialNoise.calibrate(eps=e, delta=d),
            "trials, skewed": lambda e, d: shuffle.BinomialNoise.calibrate(eps=e, delta=d, prob=0.1),
        }, also=OF_COUNTS,
    ),
    "shuffle.ClearReports": Example(
        lambda: [shuffle.ClearReports(2000, 10), shuffle.ClearReports(30, 2)],
        lambda r: shuffle.ClearReports(r.choice([0, 1, 5, 100]), r.choice([2, 3, 10])),
        calibrated={"dummy reports": lambda e, d: shuffle.ClearReports.calibrate(bins=20, eps=e, delta=d)}, also=OF_COUNTS,
    ),
    "shuffle.Clones": Example(
        lambda: [shuffle.Clones(10**4, 1.5), shuffle.Clones(50, 0.3)],
        lambda r: shuffle.Clones(_log_whole(r, 1, 1000), _budget(r)),
        calibrated={"users": lambda e, d: shuffle.Clones.calibrate(eps=e, delta=d, local_eps=2.5)},
    ),
    "shuffle.FlippedReports": Example(
        lambda: [
            shuffle.FlippedReports(500, 40, 5, 0.1, view="records"), shuffle.FlippedReports(20, 3, 2, 0.2, view="records"),
            shuffle.FlippedReports(300, 0, 3, 0.1, view="sums"), shuffle.FlippedReports(40, 5, 3, 0.2, view="sums"),
            shuffle.FlippedReports(40, 5, 3, 0.2, view="sums", fake="known"),
            shuffle.FlippedReports(60, 10, 3, 0.2, view="records", fake="known"),
            shuffle.FlippedReports(2000, 300, 4, 0.1, view="sums"),
        ],
        _flipped, cheap=False,
        calibrated={
            "flip, records": lambda e, d: shuffle.FlippedReports.calibrate(users=1000, bins=2, eps=e, delta=d, view="records"),
            "flip, sums": lambda e, d: shuffle.FlippedReports.calibrate(users=16, bins=2, eps=e, delta=d, view="sums"),
        }, also=OF_COUNTS,
    ),
    "shuffle.GeometricDummies": Example(
        lambda: [shuffle.GeometricDummies(20, 25, 0.6, 0.6), shuffle.GeometricDummies(10, 12, 0.5, 0.625, 0.75)], _dummies,
        calibrated={
            "shift": lambda e, d: shuffle.GeometricDummies.calibrate(bins=20, eps=e, delta=d),
            "shift, some kept": lambda e, d: shuffle.GeometricDummies.calibrate(bins=20, eps=e, delta=d, keep=0.75, share=0.3),
        }, also=("error_quantile(0.05, 40)", "error_tail(9.0, 40)", "mean_squared_error(40)"),
    ),
    "shuffle.PersonalizedBits": Example(
        lambda: [
            shuffle.PersonalizedBits([0.5, 1, 2.0] * 9, bits=[0, 1, 1] * 9, target=3),
            shuffle.PersonalizedBits([0.5, 1, 2.0] * 9, bits=[0, 1, 1] * 9), shuffle.PersonalizedBits(np.linspace(0.2, 2, 30)),
            shuffle.PersonalizedBits(np.linspace(0.2, 2, 3000)),
        ],
        _personal_bits, cheap=False,
    ),
    "shuffle.PersonalizedClones": Example(
        lambda: [
            shuffle.PersonalizedClones(0.2, [0.1, 0.2, 0.3], counts=[30, 20, 10]),
            shuffle.PersonalizedClones.laplace([0.5, 1.0, 2.0] * 20),
            shuffle.PersonalizedClones.gaussian([1.0, 2.0], counts=[30, 30]),
            shuffle.PersonalizedClones.randomized_response([0.5, 1.0, 2.0] * 20, 4),
            shuffle.PersonalizedClones.laplace([0.5, 1.0, 2.0] * 20, target=1),
            shuffle.PersonalizedClones.randomized_response(np.linspace(0.2, 2, 3000), 4),
            shuffle.PersonalizedClones.gaussian(np.linspace(1, 4, 3000)),
        ],
        _personal_clones, cheap=False,
    ),
    "shuffle.RealSum": Example(
        lambda: [shuffle.RealSum(300, 20.0, 1), shuffle.RealSum(500, 60.0, 3), shuffle.RealSum(500, 60.0, 3, view="columns")],
        lambda r: shuffle.RealSum(users := r.randint(2, 6), r.uniform(0.3, 0.9) * users, r.randint(1, 2),
                                  view=r.choice(["total", "columns"])),
        cheap=False, calibrated={"lam": lambda e, d: shuffle.RealSum.calibrate(users=300, bits=2, eps=e, delta=d)}, also=OF_COUNTS,
    ),
    "shuffle.Shuffled": Example(
        lambda: [
            *(one.shuffled(1000) for one in _randomizers()), m.KaryResponse(10, 2.0).shuffled(5000, 0.3),
            m.RandomizedResponse(1.0).shuffled(1000, 0.5), m.PureLocal(1.0).shuffled(20), m.Rappor(0.5).shuffled(1000),
            m.FiniteRandomizer(WITH_ZEROS).shuffled(3), m.FiniteRandomizer(MATRIX).shuffled(30),
            *(m.FiniteRandomizer(((0.7, 0.3), (0.4, 0.6))).shuffled(n) for n in (200, 1500)),
            m.FiniteRandomizer(MATRIX[:2]).shuffled(300), m.LaplaceMechanism(0.3).shuffled(20),
            LAPLACE.shuffled(1000, inputs=(0.0, 0.4, 1.0)), GAUSSIAN.shuffled(1000, inputs=(0.0, 1.0)),
            GAUSSIAN.shuffled(1000, inputs=(0.0, 0.25, 1.0)), m.GaussianMechanism(0.7).shuffled(30),
            m.GaussianVector(2.0, 3, "sphere").shuffled(1000), m.GeometricMechanism(1.0, 2, 20).shuffled(1000),
            m.GeometricMechanism(1.0, 1).shuffled(1000), m.DiscreteGaussianMechanism(2.0).shuffled(1000),
        ],
        lambda r: shuffle.Shuffled(_randomizer(r), r.choice([1, 2, 3, 4, r.randint(5, 30)]),
                                   r.choice([1.0, r.uniform(0.1, 1)])),
        cheap=False,
        calibrated={
            "users": lambda e, d: shuffle.Shuffled.calibrate(m.KaryResponse(4, 2.5), eps=e, delta=d),
            "budget": lambda e, d: shuffle.Shuffled.calibrate(lambda b: m.KaryResponse(4, b), eps=e, delta=d, users=10**4),
        }, also=("data(0.1)", "argument(0.1)"),
    ),
    "shuffle.ShuffledBits": Example(
        lambda: [shuffle.ShuffledBits(100, 0.29), shuffle.ShuffledBits(5000, 0.05), shuffle.ShuffledBits(10**5, 0.3, ones=7),
                 shuffle.ShuffledBits(300, 0.2, fakes=50), shuffle.ShuffledBits(10, 0.0)],
        _bits, cheap=False,
        calibrated={"flip": lambda e, d: shuffle.ShuffledBits.calibrate(users=10**4, eps=e, delta=d)}, also=OF_COUNTS,
    ),
    "shuffle.ShuffledHistogram": Example(
        lambda: [shuffle.ShuffledHistogram(5, 2, 0.4), shuffle.ShuffledHistogram(2000, 10, 0.1)],
        lambda r: shuffle.ShuffledHistogram(r.choice([1, 3, 100]), r.choice([1, 2, 5]), r.uniform(0.05, 0.5)), cheap=False,
        calibrated={"gamma": lambda e, d: shuffle.ShuffledHistogram.calibrate(users=10**5, bins=50, eps=e, delta=d)},
        also=OF_COUNTS,
    ),
    "shuffle.StrongerClones": Example(
        lambda: [shuffle.StrongerClones(10**6, 4.0), shuffle.StrongerClones(200, 0.7)],
        lambda r: shuffle.StrongerClones(_log_whole(r, 1, 1000), _budget(r)),
        calibrated={"budget": lambda e, d: shuffle.StrongerClones.calibrate(eps=e, delta=d, users=10**4)},
    ),
    "shuffle.ZeroSum": Example(
        lambda: [shuffle.ZeroSum(5000, 0.05), shuffle.ZeroSum(20, 0.4)],
        lambda r: shuffle.ZeroSum(r.choice([1, 3, 100]), r.uniform(0.05, 0.5)), cheap=False,
        calibrated={"gamma": lambda e, d: shuffle.ZeroSum.calibrate(users=10**5, eps=e, delta=d)}, also=OF_COUNTS,
    ),
}
"""The public classes by the last part of their module and their name. DominatingPair is abstract; its examples are made by it."""


def class_of(profile):
    """Return the name in `EXAMPLES` of the public class of a profile, for a shuffled protocol with the class of its randomizer."""
    names = {getattr(getattr(shufflebounds, home), kind): name for name in EXAMPLES for home, kind in [name.split(".")]}
    # An object of a private class without a public base prints the public function that makes it.
    printed = repr(profile).partition(".")[0]
    name = next((names[kind] for kind in type(profile).__mro__ if kind in names), None) or next(
        name for name in EXAMPLES if name.endswith(f".{printed}"))
    randomizer = getattr(profile, "randomizer", None)
    return name if randomizer is None else f"{name} of {type(randomizer).__name__}"
