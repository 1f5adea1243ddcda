"""How far apart the two bounds of eps are, for random parameters of the classes with a bound over all datasets or tests from below.

``python benchmarks/gaps.py`` prints the table of docs/gaps.md: median and largest ratio of the upper to the lower eps at delta =
1e-6. The parameters are drawn with a fixed seed, with 1e4 to 1e6 users, and such that the local budget is at most 3.
"""

import argparse
import math
import random
import statistics

import numpy as np

from shufflebounds import mechanisms, sampling, shuffle

DELTA = 1e-6


def users(r):
    return round(10 ** r.uniform(4, 6))


def rappor(r, hashes):
    budget = r.uniform(0.5, 3) / (2 * hashes)
    return mechanisms.Rappor(2 / (1 + math.exp(budget)), hashes=hashes).shuffled(users(r))


def records(r, fakes):
    count = users(r)
    return shuffle.FlippedReports(count, round(count * fakes), r.choice([5, 10, 30]), r.uniform(0.2, 0.4), view="records")


def vectors(r, domain):
    dimension = r.choice([2, 3, 10])
    length = 2 if domain == "sphere" else math.sqrt(dimension)
    return mechanisms.GaussianVector(length * r.uniform(1, 4), dimension, domain).shuffled(users(r))


def budgets(r):
    low, high = sorted((r.uniform(0.1, 3), r.uniform(0.1, 3)))
    count = round(10 ** r.uniform(4, 5))
    return shuffle.PersonalizedBits(np.linspace(low, high, count), target=count - 1)


def allocation(r):
    return sampling.RandomAllocation(mechanisms.GaussianMechanism(r.uniform(0.8, 2)), round(10 ** r.uniform(2.5, 3.5)),
                                     chosen=r.randint(2, 10))


CLASSES = {
    "`Rappor`, 1 hash": lambda r: rappor(r, 1),
    "`Rappor`, 2 hashes": lambda r: rappor(r, 2),
    "`Rappor`, 4 hashes": lambda r: rappor(r, 4),
    "`Rappor`, 8 hashes": lambda r: rappor(r, 8),
    "`FlippedReports`, records, no dummies": lambda r: records(r, 0),
    "`FlippedReports`, records, as many uniform dummies": lambda r: records(r, 1),
    "`PersonalizedBits`, all datasets": budgets,
    "`RandomAllocation` to 2 to 10 steps": allocation,
    "`KaryResponse`": lambda r: mechanisms.KaryResponse(r.choice([3, 10, 100]), r.uniform(0.5, 3)).shuffled(users(r)),
    "`UnaryEncoding`": lambda r: mechanisms.UnaryEncoding.optimized(r.choice([3, 10, 100]), r.uniform(0.5, 3)).shuffled(users(r)),
    "`LocalHashing`": lambda r: mechanisms.LocalHashing(r.choice([20, 100]), r.uniform(0.5, 3)).shuffled(users(r)),
    "`LaplaceMechanism`": lambda r: mechanisms.LaplaceMechanism(1 / r.uniform(0.5, 2.2)).shuffled(users(r)),
    "`GaussianMechanism`": lambda r: mechanisms.GaussianMechanism(r.uniform(1, 4)).shuffled(users(r)),
    "`GaussianVector`, sphere": lambda r: vectors(r, "sphere"),
    "`GaussianVector`, cube": lambda r: vectors(r, "cube"),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print("| class | median of upper/lower | largest |")
    print("|---|---|---|")
    for name, make in CLASSES.items():
        r, ratios = random.Random(f"{options.seed} {name}"), []
        for _ in range(options.cases):
            profile = make(r)
            ratios.append(profile.epsilon(DELTA) / profile.epsilon(DELTA, bound="lower"))
        print(f"| {name} | {statistics.median(ratios):.4f} | {max(ratios):.4f} |", flush=True)


if __name__ == "__main__":
    main()
