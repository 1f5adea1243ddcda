"""Arrays of deployments against loops over the classes, and computations that no other program supports."""

import numpy as np
from measuring import row

from shufflebounds.mechanisms import FiniteRandomizer, GaussianMechanism, KaryResponse, LaplaceMechanism
from shufflebounds.sampling import ShuffledBatches
from shufflebounds.shuffle import (
    BinomialNoise,
    PersonalizedClones,
    Shuffled,
    StrongerClones,
    binomial_noise_epsilons,
    clones_epsilons,
    shuffled_epsilons,
)


def arrays():
    """Return rows that compare each function for arrays with a loop over its class for the first hundredth of the elements."""
    rng, rows, count = np.random.default_rng(7), [], 4000
    users, delta = np.floor(10 ** rng.uniform(3, 8, count)), 10 ** -rng.uniform(5, 12, count)
    local, prob = rng.uniform(0.1, 6, count), rng.uniform(0.05, 0.95, count)

    def loop(kind, *arguments):
        few = [argument[:40] for argument in arguments]
        return lambda: [kind(int(n), x).epsilon(d) for n, x, d in zip(*few)]

    def pair(task, whole, single, per):
        ours, theirs = row(task, whole, show=None, per=per), row(task, single, show=None, per=min(per, 40))
        return task, "", "", ours[3], theirs[3], "the class in a loop"

    rows.append(pair("clones_epsilons, n 1e3..1e8, each", lambda: clones_epsilons(users, local, delta),
                     loop(StrongerClones, users, local, delta), count))
    rows.append(pair("binomial_noise_epsilons, trials 1e3..1e8, each", lambda: binomial_noise_epsilons(users, prob, delta),
                     loop(BinomialNoise, users, prob, delta), count))
    kinds = [KaryResponse(k, e) for k, e in ((3, 0.5), (10, 1.0), (100, 4.0), (1000, 2.0))]
    for low in (10**4, 10**6, 10**8):
        several = np.floor(low * 10 ** rng.uniform(0, 2, 25))
        grid = [(kind, int(n)) for kind in kinds for n in several]

        def single(grid=grid):
            return [Shuffled(kind, n).epsilon(1e-8) for kind, n in grid[::5]]

        def whole(several=several):
            return shuffled_epsilons(kinds, several[:, None], 1e-8)

        ours, theirs = row("", whole, show=None, per=100), row("", single, show=None, per=20)
        rows.append((f"shuffled_epsilons, k-ary response, n from {low:.0e} to {100 * low:.0e}, each", "", "", ours[3], theirs[3],
                     "the class in a loop"))
    return rows


def alone():
    """Return one row for each computation that no other program supports."""
    budgets = np.random.default_rng(1).uniform(0.1, 4, 10**6)
    matrix = FiniteRandomizer([[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]])
    return [
        row("shuffled batches, sigma 4, 1e4 of 1000: eps(1e-5)",
            lambda: ShuffledBatches(GaussianMechanism(4.0), 10**4, 1000).epsilon(1e-5)),
        row("Laplace noise shuffled, n=1e6: eps(1e-8)", lambda: Shuffled(LaplaceMechanism(1.0), 10**6).epsilon(1e-8)),
        row("3x3 randomizer, 8 users, mixed data below: eps(1e-3)", lambda: Shuffled(matrix, 8).epsilon(1e-3, bound="lower")),
        row("certified digits, noise of 1000 trials: delta(0.1)", lambda: BinomialNoise(1000, 0.5).certify(0.1), show=None),
        row("1e6 personal budgets, flipped bits: eps(1e-8)",
            lambda: PersonalizedClones.randomized_response(budgets, 2).epsilon(1e-8)),
        row("1e6 personal budgets, 10-ary response: eps(1e-8)",
            lambda: PersonalizedClones.randomized_response(budgets, 10).epsilon(1e-8)),
        row("1e6 personal budgets, Laplace noise: eps(1e-8)", lambda: PersonalizedClones.laplace(budgets).epsilon(1e-8)),
        row("1e6 personal budgets, Gaussian noise: eps(1e-8)", lambda: PersonalizedClones.gaussian(1 / budgets).epsilon(1e-8)),
    ]
