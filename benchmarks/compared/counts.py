"""Counts with noise and shuffled bits, against dp-accounting with distributions computed here."""

import math

import numpy as np
import scipy.stats
from measuring import row

from compared.peers import privacy_loss_distribution, two_laws
from shufflebounds.shuffle import BinomialNoise, PersonalizedBits, PersonalizedClones, ShuffledBits


def noise_laws(trials, width=40):
    """Return log P and log Q of Bin(trials, 1/2) and its shift by one, within `width` standard deviations of the mean."""
    reach = math.ceil(width * math.sqrt(trials) / 2)
    k = np.arange(max(0, trials // 2 - reach), min(trials + 1, trials // 2 + reach) + 1)
    with np.errstate(all="ignore"):
        return scipy.stats.binom.logpmf(k, trials, 0.5), scipy.stats.binom.logpmf(k - 1, trials, 0.5)


def peer_calibrate(eps, delta):
    """Return the smallest number of trials that meets the target by dp-accounting's delta, found by bisection."""

    def enough(trials):
        return two_laws(*noise_laws(trials), 1e-4).get_delta_for_epsilon(eps) <= delta

    low, high = 0, 1
    while not enough(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def noise():
    """Return rows for BinomialNoise.delta and calibrate, against dp-accounting with truncated probabilities."""
    rows = []
    peer = privacy_loss_distribution
    for trials in (10**2, 10**4, 10**6):

        def theirs(trials=trials):
            return two_laws(*noise_laws(trials), 1e-4).get_delta_for_epsilon(0.01)

        rows.append(
            row(
                f"noise delta(0.01), N={trials:.0e}",
                lambda t=trials: BinomialNoise(t, 0.5).delta(0.01),
                theirs if peer else None,
                "dp-accounting, grid 1e-4",
            )
        )
    rows.append(row("noise log delta(0.01), N=1e9", lambda: BinomialNoise(10**9, 0.5).log_delta(0.01)))
    for eps, delta in ((1.0, 1e-6), (0.1, 1e-8)):
        rows.append(
            row(
                f"noise calibrate(eps={eps:g}, delta={delta:g})",
                lambda e=eps, d=delta: BinomialNoise.calibrate(eps=e, delta=d).trials,
                (lambda e=eps, d=delta: peer_calibrate(e, d)) if peer else None,
                "dp-accounting, grid 1e-4, and bisection",
            )
        )
    return rows


def bits_pmfs(users, flip, width=40):
    """Return log P and log Q of the sum of flipped bits for the target's bits 0 and 1; all other users have value 0."""
    mean, sigma = users * flip, math.sqrt(users * flip * (1 - flip))
    k = np.arange(max(0, math.floor(mean - width * sigma)), min(users, math.ceil(mean + width * sigma)) + 1)
    with np.errstate(all="ignore"):
        here, below = scipy.stats.binom.logpmf(k, users - 1, flip), scipy.stats.binom.logpmf(k - 1, users - 1, flip)
    keep, turn = math.log1p(-flip), math.log(flip)
    return np.logaddexp(here + keep, below + turn), np.logaddexp(here + turn, below + keep)


def bits():
    """Return rows for ShuffledBits and personalized budgets, given datasets against dp-accounting with truncated probabilities."""
    rows = []
    for users, flip, delta in ((10**4, 1 / (math.e + 1), 1e-6), (10**6, 1 / (math.exp(4) + 1), 1e-8)):

        def theirs(users=users, flip=flip, delta=delta):
            return two_laws(*reversed(bits_pmfs(users, flip)), 1e-6).get_epsilon_for_delta(delta)

        rows.append(
            row(
                f"shuffled bits eps, n={users:.0e}, all zeros",
                lambda u=users, f=flip, d=delta: ShuffledBits(u, f, ones=0).epsilon(d),
                theirs if privacy_loss_distribution else None,
                "dp-accounting, grid 1e-6, windowed pmf",
            )
        )
    known, worst = ShuffledBits(10**9, 1e-7, ones=5), ShuffledBits(10**9, 1e-7)
    rows.append(row("shuffled bits delta(0.5), n=1e9, known data", lambda: known.delta(0.5)))
    rows.append(row("shuffled bits delta(0.5), n=1e9, worst data", lambda: worst.delta(0.5)))
    budgets = np.random.default_rng(12345).uniform(0.5, 2, 10**6)
    few, counts = np.linspace(0.5, 2, 100), np.full(100, 10**7)
    build = PersonalizedClones.laplace
    rows.append(row("laplace eps, 1e6 budgets, one user", lambda: build(budgets, target=5).epsilon(1e-8)))
    rows.append(row("laplace eps, 1e6 budgets, all users", lambda: build(budgets).epsilon(1e-8)))
    rows.append(row("laplace eps, 1e9 users in 100 budgets", lambda: build(few, counts=counts).epsilon(1e-8)))
    data = np.zeros(budgets.size)
    rows.append(row("personal bits eps, 1e6, known", lambda: PersonalizedBits(budgets, bits=data, target=5).epsilon(1e-8)))
    return rows
