"""Clone bounds against dp-accounting with distributions computed here, and growth of the run time with the users."""

import math

import numpy as np
import scipy.stats
from measuring import row

from compared.peers import privacy_loss_distribution, two_laws
from shufflebounds.shuffle import StrongerClones, clones_epsilons

CLONE_GRID = [
    (10**3, 1.0, 1e-6),
    (10**4, 1.0, 1e-6),
    (10**4, 4.0, 1e-6),
    (10**5, 2.0, 1e-8),
    (10**6, 4.0, 1e-8),
    (10**7, 4.0, 1e-10),
    (10**8, 6.0, 1e-10),
    (10**9, 8.0, 1e-12),
]
"""The values of (users, local_eps, delta)."""


def clone_laws(users, local_eps, tail=40.0):
    """Return log P and log Q of the clone pair at the outcomes (c, a) with masses above e^-tail."""
    rate = 2 / (math.exp(local_eps) + 1)
    w = 1 / (math.exp(local_eps) + 1)
    c = np.arange(users)
    weight = scipy.stats.binom.logpmf(c, users - 1, rate)
    c, weight = c[weight > -tail], weight[weight > -tail]
    half = np.ceil(np.sqrt(c * tail / 2)).astype(int) + 2
    low, high = np.maximum(0, c // 2 - half), np.minimum(c + 1, c // 2 + half)
    cc = np.repeat(c, high - low + 1)
    a = np.concatenate([np.arange(x, y + 1) for x, y in zip(low, high)])
    ww = np.repeat(weight, high - low + 1)
    with np.errstate(all="ignore"):
        b1, b0 = scipy.stats.binom.logpmf(a - 1, cc, 0.5), scipy.stats.binom.logpmf(a, cc, 0.5)
    log_p = ww + np.logaddexp(math.log1p(-w) + b1, math.log(w) + b0)
    log_q = ww + np.logaddexp(math.log(w) + b1, math.log1p(-w) + b0)
    keep = np.maximum(log_p, log_q) > -tail
    return log_p[keep], log_q[keep]


def clones():
    """Return rows for StrongerClones.epsilon, against dp-accounting with the distributions of (c, a).

    For more than 1e4 users the distributions do not fit into memory.
    """
    rows = []
    for users, local_eps, delta in CLONE_GRID:
        theirs, note = None, ""
        if privacy_loss_distribution and users <= 10**4:
            grid = 1e-4
            note = f"dp-accounting, grid {grid:g}, windowed pmf"

            def theirs(users=users, local_eps=local_eps, delta=delta, grid=grid):
                return two_laws(*clone_laws(users, local_eps), grid).get_epsilon_for_delta(delta)

        rows.append(
            row(
                f"clones eps, n={users:.0e} eps0={local_eps:g} delta={delta:g}",
                lambda u=users, e=local_eps, d=delta: StrongerClones(u, e).epsilon(d),
                theirs,
                note,
            )
        )
    rows.append(row("clones eps, n=1e12 eps0=14 delta=1e-12", lambda: StrongerClones(10**12, 14.0).epsilon(1e-12)))
    rows.append(row("clones eps, n=2**53 eps0=1 delta=1e-9", lambda: StrongerClones(2**53, 1.0).epsilon(1e-9)))
    rows.append(row("clones log delta(3), n=1e6 eps0=4", lambda: StrongerClones(10**6, 4.0).log_delta(3.0)))
    return rows + deployments()


def clone_deployments(top, count=2000):
    """Return random numbers of users up to 10**top, local budgets and deltas, the same at every call."""
    rng = np.random.default_rng(7)
    return np.floor(10 ** rng.uniform(1, top, count)), rng.uniform(0.1, 6, count), 10 ** -rng.uniform(5, 12, count)


def deployments():
    """Return rows for arrays of clone deployments: the time per result, and its growth with the number of users."""
    rows = []
    for top in (4, 6, 8, 15):
        users, local_eps, delta = clone_deployments(top)
        rows.append(row(f"clones_epsilons of 2000 deployments, n to 1e{top}, each",
                        lambda a=(users, local_eps, delta): clones_epsilons(*a), show=None, per=users.size))
    seconds, sizes = [], (10**8, 10**10, 10**12, 10**14)
    for users in sizes:
        *_, taken, _, _ = row("", lambda u=users: StrongerClones(u, 1.0).epsilon(1e-9), show=None)
        seconds.append(taken)
    growth = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
    rows.append(("clones eps, growth exponent in n, 1e8 .. 1e14", f"{growth:.2f}", "", seconds[-1], None, "0.5 by a sweep"))
    return rows
