"""Times of compositions: ``python benchmarks/composition_costs.py`` prints the tables of docs/composition.md.

``--record`` writes them to results/.

Upper and lower bound of eps at delta = 1e-6, in CPU seconds of one thread, without imports. The gap of the bounds is relative. The
page takes its tables from the newest results/compositions-*.json (docs/tables.py).
"""

import sys
import time

import numpy as np
from keeping import keep

from shufflebounds import mechanisms, sampling, shuffle

RELEASES = 30

BUDGETS = np.linspace(0.5, 2.0, 10**4)

ROWS = {
    "ShuffledBits(10**3, 0.25)": shuffle.ShuffledBits(10**3, 0.25),
    "ShuffledBits(10**3, 0.25, ones=0)": shuffle.ShuffledBits(10**3, 0.25, ones=0),
    "ShuffledBits(10**6, 0.25)": shuffle.ShuffledBits(10**6, 0.25),
    "BinomialNoise(10**4, 0.5)": shuffle.BinomialNoise(10**4, 0.5),
    "BinomialNoise(100, 0.3)": shuffle.BinomialNoise(100, 0.3),
    "ZeroSum(10**5, 4e-4)": shuffle.ZeroSum(10**5, 4e-4),
    "ShuffledHistogram(10**5, 500, 4e-4)": shuffle.ShuffledHistogram(10**5, 500, 4e-4),
    "ClearReports(10**4, 10)": shuffle.ClearReports(10**4, 10),
    "GeometricDummies(10, 60, 0.6, 0.6)": shuffle.GeometricDummies(10, 60, 0.6, 0.6),
    'FlippedReports(10**4, 0, 2, 0.03, view="sums")': shuffle.FlippedReports(10**4, 0, 2, 0.03, view="sums"),
    'FlippedReports(10**6, 0, 1000, 5e-5, view="sums")': shuffle.FlippedReports(10**6, 0, 1000, 5e-5, view="sums"),
    'FlippedReports(10**4, 0, 2, 0.3, view="records")': shuffle.FlippedReports(10**4, 0, 2, 0.3, view="records"),
    "RealSum(10**4, 100, 8)": shuffle.RealSum(10**4, 100, 8),
    'RealSum(10**4, 100, 8, view="columns")': shuffle.RealSum(10**4, 100, 8, view="columns"),
    "Clones(10**6, 4.0)": shuffle.Clones(10**6, 4.0),
    "StrongerClones(10**6, 4.0)": shuffle.StrongerClones(10**6, 4.0),
    "KaryResponse(10, 2.0).shuffled(10**5)": mechanisms.KaryResponse(10, 2.0).shuffled(10**5),
    "PersonalizedBits(linspace(.5, 2, 2000))": shuffle.PersonalizedBits(np.linspace(0.5, 2, 2000)),
    "PersonalizedBits(linspace(.5, 2, 2000), bits=zeros)": shuffle.PersonalizedBits(np.linspace(0.5, 2, 2000), bits=np.zeros(2000)),
    "PersonalizedBits(linspace(.5, 2, 2000), bits=zeros, target=1999)": shuffle.PersonalizedBits(
        np.linspace(0.5, 2, 2000), bits=np.zeros(2000), target=1999
    ),
    "PersonalizedClones(1/(e**2 + 1), 10**4 rates)": shuffle.PersonalizedClones(1 / (np.exp(2.0) + 1), 1 / (np.exp(BUDGETS) + 1)),
    "PersonalizedClones.randomized_response(10**4 budgets, 2)": shuffle.PersonalizedClones.randomized_response(BUDGETS, 2),
    "PersonalizedClones.laplace(10**4 budgets)": shuffle.PersonalizedClones.laplace(BUDGETS),
    "PersonalizedClones.laplace(10**4 budgets, target=9999)": shuffle.PersonalizedClones.laplace(BUDGETS, target=9999),
    "PersonalizedClones.gaussian(10**4 deviations, target=0)": shuffle.PersonalizedClones.gaussian(1 / BUDGETS, target=0),
    "PersonalizedClones.gaussian(10**4 deviations)": shuffle.PersonalizedClones.gaussian(1 / BUDGETS),
    "DensityRandomizer(1.5 - y, 0.5 + y)": mechanisms.DensityRandomizer(
        lambda y, x: y + (x - 0.5) * y * (y - 1), lambda y, x: 1 + (x - 0.5) * (2 * y - 1), (0, 1), (0, 1)
    ),
    "DiscreteGaussianMechanism(10)": mechanisms.DiscreteGaussianMechanism(10),
    "FiniteRandomizer(2 inputs, 3 outputs)": mechanisms.FiniteRandomizer([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]),
    "GaussianMechanism(10)": mechanisms.GaussianMechanism(10),
    "GaussianVector(4.0, 2)": mechanisms.GaussianVector(4.0, 2),
    "GeometricMechanism(0.1)": mechanisms.GeometricMechanism(0.1),
    "ThresholdedCount(GeometricMechanism(0.1), 300)": mechanisms.GeometricMechanism(0.1).thresholded(300),
    "HadamardResponse(10, 1.0)": mechanisms.HadamardResponse(10, 1.0),
    "KaryResponse(10, 1.0)": mechanisms.KaryResponse(10, 1.0),
    "LaplaceMechanism(10)": mechanisms.LaplaceMechanism(10),
    "LocalHashing(10, 1.0)": mechanisms.LocalHashing(10, 1.0),
    "PrivUnit(10, 1.0)": mechanisms.PrivUnit(10, 1.0),
    "PureLocal(1.0)": mechanisms.PureLocal(1.0),
    "RandomizedResponse(0.13)": mechanisms.RandomizedResponse(0.13),
    "RatioBounded(e, 0.2, e)": mechanisms.RatioBounded(np.e, 0.2, np.e),
    "Rappor(0.25)": mechanisms.Rappor(0.25),
    "SubsetSelection(10, 1.0)": mechanisms.SubsetSelection(10, 1.0),
    "UnaryEncoding.symmetric(10, 1.0)": mechanisms.UnaryEncoding.symmetric(10, 1.0),
    "Subsampled(GaussianMechanism(1), 0.01)": sampling.Subsampled(mechanisms.GaussianMechanism(1), 0.01),
    "ReplaceOne(Subsampled(GaussianMechanism(1), 0.01))": sampling.ReplaceOne(
        sampling.Subsampled(mechanisms.GaussianMechanism(1), 0.01)
    ),
    "WithoutReplacement(GaussianMechanism(1), 1000, 10)": sampling.WithoutReplacement(mechanisms.GaussianMechanism(1), 1000, 10),
    "RandomAllocation(GaussianMechanism(1), 10)": sampling.RandomAllocation(mechanisms.GaussianMechanism(1), 10),
}


HUNDRED = {
    "`LaplaceMechanism(10)`": [(mechanisms.LaplaceMechanism(10), 100)],
    "1000 of `LaplaceMechanism(1000)`": [(mechanisms.LaplaceMechanism(1000), 1000)],
    "50 of `LaplaceMechanism(10)`, 50 of `RandomizedResponse(0.13)`": [
        (mechanisms.LaplaceMechanism(10), 50), (mechanisms.RandomizedResponse(0.13), 50)],
    "50 of `LaplaceMechanism(10)`, 50 of `GaussianMechanism(10)`": [
        (mechanisms.LaplaceMechanism(10), 50), (mechanisms.GaussianMechanism(10), 50)],
    "`GeometricMechanism(0.1)`": [(mechanisms.GeometricMechanism(0.1), 100)],
    "`GeometricMechanism(0.1, bound=200)`": [(mechanisms.GeometricMechanism(0.1, bound=200), 100)],
    "`DiscreteGaussianMechanism(10)`": [(mechanisms.DiscreteGaussianMechanism(10), 100)],
    "`DiscreteGaussianMechanism(5000)`": [(mechanisms.DiscreteGaussianMechanism(5000), 100)],
    "`Rappor(0.25)`": [(mechanisms.Rappor(0.25), 100)],
    "`GaussianMechanism(10)`": [(mechanisms.GaussianMechanism(10), 100)],
}


def answered(factors):
    """Return the upper bound of eps, the relative gap, and the CPU seconds of both bounds."""
    start = time.process_time()
    first, *others = (profile.self_compose(times) for profile, times in factors)
    many = first.compose(*others) if others else first
    upper, lower = many.epsilon(1e-6), many.epsilon(1e-6, bound="lower")
    return upper, relative_gap(upper, lower), time.process_time() - start


def relative_gap(upper, lower):
    """Return the relative gap of two bounds, or inf if the lower bound is 0."""
    return upper / lower - 1 if lower > 0 else float("inf")


def one_digit(x):
    """Return a small number as text with one digit."""
    return f"{max(x, 0):.0e}".replace("e-0", "e-").replace("e+00", "")


def releases():
    """Return rows for increasing numbers of releases of one mechanism."""
    rows = []
    for times in (10, 100, 1000):
        upper, gap, taken = answered([(shuffle.BinomialNoise(10**4, 0.5), times)])
        rows.append([str(times), f"{upper:.9g}", one_digit(gap), f"{taken:.2g} s"])
    return ["releases of `BinomialNoise(10**4, 0.5)`", "eps at 1e-6, upper", "gap", "time"], rows


def noise():
    """Return rows for a hundred releases of each mechanism."""
    rows = []
    for name, factors in HUNDRED.items():
        upper, gap, taken = answered(factors)
        rows.append([name, f"{upper:.9g}", one_digit(gap), f"{taken:.2g} s"])
    return ["releases", "eps at 1e-6, upper", "gap", "time"], rows


def protocols():
    """Return rows for thirty releases of every protocol."""
    rows = []
    for name, profile in ROWS.items():
        single = relative_gap(profile.epsilon(1e-6), profile.epsilon(1e-6, bound="lower"))
        upper, gap, taken = answered([(profile, RELEASES)])
        rows.append([f"`{name}`", f"{upper:.6g}", one_digit(gap), one_digit(single), f"{taken:.2g} s"])
    return ["30 releases of", "eps at 1e-6, upper", "gap", "of one release", "time"], rows


def main():
    """Print the tables, and store them with --record."""
    shuffle.BinomialNoise(100, 0.5).self_compose(2).epsilon(1e-6)
    tables = {}
    for section in (releases, noise, protocols):
        header, rows = section()
        tables[section.__name__] = {"header": header, "rows": rows}
        print(*(" | ".join(row) for row in [header, *rows]), "", sep="\n", flush=True)
    if "--record" in sys.argv:
        keep("compositions", {"tables": tables})


if __name__ == "__main__":
    main()
