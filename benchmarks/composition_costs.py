"""What thirty releases of every protocol cost: python benchmarks/composition_costs.py prints the table of docs/composition.md.

Both sides of eps at delta = 1e-6, CPU seconds of one thread, imports left out. The distance of the sides is relative.
"""

import time

import numpy as np

from shufflebounds import mechanisms, shuffle

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
}


def main():
    """Print the table."""
    shuffle.BinomialNoise(100, 0.5).self_compose(2).epsilon(1e-6)
    print("| 30 releases of | eps at 1e-6, upper | distance of the sides | of one release | seconds |\n|---|---|---|---|---|")
    for name, profile in ROWS.items():
        single = profile.epsilon(1e-6) / profile.epsilon(1e-6, bound="lower") - 1
        start = time.process_time()
        many = profile.self_compose(RELEASES)
        upper, lower = many.epsilon(1e-6), many.epsilon(1e-6, bound="lower")
        seconds = time.process_time() - start
        print(f"| `{name}` | {upper:.6g} | {upper / lower - 1:.0e} | {max(single, 0):.0e} | {seconds:.2g} |", flush=True)


if __name__ == "__main__":
    main()
