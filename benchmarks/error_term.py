"""From how many users on the error term of the bound over all datasets adds less than 1 % to eps, with the users it leaves out.

    python benchmarks/error_term.py

prints the table of docs/theorems/worst-dataset: for each randomizer the smallest n of the form 10^(i/20) for which eps of the whole
bound is at most 1.01 times that of its main term for all n users, Gamma_n, and both eps there. The main term alone is no bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.optimize import brentq

from shufflebounds import mechanisms
from shufflebounds._engines.datasets.largest_sum import LargestSums
from shufflebounds.shuffle import Shuffled

DELTA = 1e-6

RANDOMIZERS = {
    "Gaussian noise, sigma 2": mechanisms.GaussianMechanism(2.0), "Gaussian noise, sigma 1": mechanisms.GaussianMechanism(1.0),
    "Gaussian noise, sigma .8": mechanisms.GaussianMechanism(0.8), "Laplace noise, scale 1": mechanisms.LaplaceMechanism(1.0),
    "Laplace noise, scale 1/3": mechanisms.LaplaceMechanism(1 / 3), "local hashing, budget 1": mechanisms.LocalHashing(100, 1.0, 4),
    "local hashing, budget 3": mechanisms.LocalHashing(100, 3.0, 4),
}


def crossing(log_delta: Callable[[float], float]) -> float:
    """Return the eps at which a bound of log delta is log DELTA."""

    def excess(eps: float) -> float:
        return log_delta(eps) - math.log(DELTA)

    most = 1e-3
    while excess(most) > 0 and most < 20:
        most *= 2
    return float(brentq(excess, 1e-6, most, rtol=1e-5)) if most < 20 else math.inf


def both(randomizer: mechanisms.LocalRandomizer, users: int) -> tuple[float, float]:
    """Return eps of the whole bound, also where the privacy blanket is smaller, and of Gamma_n for all users, which is no bound."""
    datasets = Shuffled(randomizer, users)._bounds.upper.over_datasets
    assert datasets is not None
    cases, near = datasets._data.cases, math.log(DELTA)
    return (crossing(lambda eps: datasets.log_delta(eps, every=False)),
            crossing(lambda eps: LargestSums(cases, eps, [users], near).bound(every=False)))


def row(randomizer: mechanisms.LocalRandomizer) -> tuple[int, float, float]:
    """Return the smallest n, and eps of the whole bound and of the main term."""
    low, high = 24, 120
    while high - low > 1:
        middle = (low + high) // 2
        whole, alone = both(randomizer, round(10 ** (middle / 20)))
        low, high = (low, middle) if whole <= 1.01 * alone else (middle, high)
    users = round(10 ** (high / 20))
    return users, *both(randomizer, users)


def main() -> None:
    print("| randomizer | $n$ | $\\varepsilon$ | $\\varepsilon$ of $\\Gamma_n$ |\n|---|---|---|---|")
    for name, randomizer in RANDOMIZERS.items():
        users, whole, alone = row(randomizer)
        print(f"| {name} | {users} | {whole:.4f} | {alone:.4f} |", flush=True)


if __name__ == "__main__":
    main()
