"""Every upper bound is at least the gain of one simple test: an event with known probabilities under P and Q.

The gain P(event) - e^eps Q(event) is much smaller than delta for many users, but close to it for large budgets or rare flips, where
rounding can lose the relevant mass.
"""

import mpmath as mp
import numpy as np
import pytest

from shufflebounds import mechanisms, shuffle
from tests.strategies import slow, thinned

LOGS = [1e-300, 1e-12, 1e-3, 0.3, 1.0, 4.0, 12.0, 30.0, 36.7, 40.0, 60.0, 200.0, 699.0, 700.0]
FLIPS = [5e-324, 1e-300, 1e-20, 1e-9, 1e-3, 0.1, 0.4, 0.49999, 0.5 - 1e-16]
USERS = [1, 2, 3, 10, 1000, 10**6]
PARTS = [0.0, 1e-9, 0.1, 0.5, 0.9, 1 - 1e-9, 1 - 1e-15]


def gain(p, q, eps):
    """Return log(p - e^eps q), or -inf if this is not positive."""
    value = mp.mpf(p) - mp.exp(mp.mpf(float(eps))) * q
    return mp.log(value) if value > 0 else mp.ninf


@pytest.fixture(autouse=True)
def digits():
    # With 700 digits, adding 1e-304 to 1 is exact, and budgets may be as small as 1e-300.
    with mp.workdps(700):
        yield


def holds(profile, eps, event):
    """Assert that the upper bound is at least the gain of the event at every eps."""
    for e in eps:
        upper = float(profile.log_delta(float(e)))
        assert gain(*event, e) <= upper, (profile, e, upper)


def below(local):
    return [part * local for part in PARTS] if local < 1e6 else [0.0, 1.0, 30.0, 300.0, 2000.0]


def local_budget(flip):
    return float(mp.log((1 - mp.mpf(flip)) / flip))


@pytest.mark.parametrize("flip", FLIPS)
@pytest.mark.parametrize("users", thinned(USERS, 3))
def test_all_bits_zero(users, flip):
    q, n = mp.mpf(flip), users
    event = (1 - q) ** n, q * (1 - q) ** (n - 1)
    eps = below(local_budget(flip))
    holds(shuffle.ShuffledBits(users, flip, ones=0), eps, event)
    if users <= 10:
        holds(shuffle.FlippedReports(users, 0, 2, flip, view="sums"), eps, event)
    if users <= 1000:
        holds(shuffle.ShuffledBits(users, flip), eps[::3], event)


@pytest.mark.parametrize("flip", thinned(FLIPS[:-1], 3))
def test_one_user_whose_two_bits_are_not_flipped(flip):
    # The event for one user: the bit of the first bin is 1 and that of the second is 0.
    q = mp.mpf(flip)
    eps = below(2 * local_budget(flip))
    for view in ("sums", "records"):
        holds(shuffle.FlippedReports(1, 0, 3, flip, view=view), eps, ((1 - q) ** 2, q**2))


@pytest.mark.parametrize("flip", FLIPS[1:-1:3])
@pytest.mark.parametrize("view", ["total", "columns"])
def test_all_columns_zero(view, flip):
    q, users, bits = mp.mpf(flip), 3, 4
    protocol = shuffle.RealSum(users, 2 * users * flip, bits, view=view)
    q = mp.mpf(protocol.flip)
    event = (1 - q) ** (users * bits), q**bits * (1 - q) ** (2 * bits)
    holds(protocol, below(bits * local_budget(flip))[::2], event)


@pytest.mark.parametrize("budget", LOGS)
@pytest.mark.parametrize("users", thinned(USERS, 3))
def test_no_clone(users, budget):
    e0 = mp.mpf(budget)
    for profile, rate in ((shuffle.Clones, mp.exp(-e0)), (shuffle.StrongerClones, 2 / (mp.exp(e0) + 1))):
        nobody = (1 - rate) ** (users - 1)
        w = 1 / (mp.exp(e0) + 1)
        holds(profile(users, budget), below(budget), (nobody * (1 - w), nobody * w))


@pytest.mark.parametrize("weight", thinned([1e-300, 1e-20, 1e-3, 0.25, 0.4999, 0.5 - 1e-12], 3))
@pytest.mark.parametrize("scale", [1e-300, 1e-10, 0.3, 1.0])
def test_no_personal_clone(weight, scale):
    w = mp.mpf(weight)
    for rates in ([0.0], [1e-3] * 10, [0.5] * 3, list(np.linspace(0, 0.4, 50))):
        nobody = mp.mpf(scale) * mp.fprod(1 - 2 * mp.mpf(r) for r in rates)
        holds(shuffle.PersonalizedClones(weight, rates, scale), below(local_budget(weight)), (nobody * (1 - w), nobody * w))


def one_category(budget, categories, users):
    # All other users have the last category. The event: no message has the target's second category, and at least one has its
    # first.
    k, big = categories, mp.exp(mp.mpf(budget))
    total = big + k - 1
    if k == 2:
        # The event is that all messages are 0.
        p, q = (big / total) ** users, (big / total) ** (users - 1) / total
    else:
        without, neither = (1 - 1 / total) ** (users - 1), (1 - 2 / total) ** (users - 1)
        p = without * (1 - 1 / total) - neither * (1 - (big + 1) / total)
        q = (without - neither) * (1 - (big + 1) / total) + without * (1 / total)
    for target in (0, None):
        profile = shuffle.PersonalizedClones.randomized_response(np.full(users, budget), categories, target=target)
        holds(profile, below(budget), (p, q))


@pytest.mark.parametrize("categories", [2, 3, slow(10**6)])
@pytest.mark.parametrize("budget", LOGS)
def test_all_others_in_one_category(budget, categories):
    for users in (2, 3):
        one_category(budget, categories, users)


@pytest.mark.parametrize("categories", [2, 100, slow(10**6)])
@pytest.mark.parametrize("budget", thinned([budget for budget in LOGS if budget >= 30], 3))
def test_a_thousand_others_in_one_category(budget, categories):
    one_category(budget, categories, 1000)


@pytest.mark.slow
def test_large_budgets_of_three_categories():
    profile = shuffle.PersonalizedClones.randomized_response(np.full(2, 60.0), 3)
    assert profile.log_delta(54.0) >= -0.0024818294
    assert shuffle.PersonalizedClones.randomized_response(np.full(100, 700.0), 3).epsilon(1e-3) > 699


@pytest.mark.parametrize("budget", thinned(LOGS[1:], 2))
def test_one_laplace_message(budget):
    # The event for one user: the message is at most 0.
    eps = np.array([budget])
    event = mp.mpf(1) / 2, mp.exp(-mp.mpf(budget)) / 2
    holds(shuffle.PersonalizedClones.laplace(eps), below(budget), event)
    holds(mechanisms.LaplaceMechanism(1 / budget), [part / 2 * budget for part in PARTS], event)


@pytest.mark.parametrize("sigma", [0.05, 0.3, 1.0, 30.0])
def test_one_gaussian_message(sigma):
    for t in (0.5, 0.0, -2.0):
        with mp.workdps(60):
            event = mp.ncdf(mp.mpf(t) / sigma), mp.ncdf((mp.mpf(t) - 1) / sigma)
        holds(shuffle.PersonalizedClones.gaussian([sigma]), [0.0, 0.1, 1.0, 10.0], event)


@pytest.mark.parametrize("prob", [1e-307, 1e-20, 1e-3, 0.5, 0.999])
@pytest.mark.parametrize("trials", thinned([0, 1, 2, 7, 1001, 10**6], 3))
def test_no_noise(trials, prob):
    # The event is the smallest value of the noise, which is impossible for the other count.
    q = 1 - mp.mpf(prob)
    holds(shuffle.BinomialNoise(trials, prob), [0.0, 1.0, 50.0, 700.0, 1e5], (q**trials, 0))


@pytest.mark.parametrize("bins", [2, 3, 1000, 10**12])
@pytest.mark.parametrize("fakes", thinned([0, 1, 10, 10**4], 2))
def test_no_dummy_in_a_bin(fakes, bins):
    # The event is that the second bin is empty, which is impossible if the target is in it.
    empty = (1 - mp.mpf(1) / bins) ** fakes
    holds(shuffle.ClearReports(fakes, bins), [0.0, 1.0, 50.0, 700.0], (empty, 0))
    holds(shuffle.FlippedReports(5, fakes, bins, 0.0, view="sums"), [0.0, 1.0, 50.0, 700.0], (empty, 0))


@pytest.mark.filterwarnings("ignore:shift=")
@pytest.mark.parametrize("shift", [0, 1, 30, 10**4])
@pytest.mark.parametrize(("left", "right"), [(0.5, 0.5), (1e-9, 0.999), (1 - 2.0**-40, 1e-12)])
def test_no_geometric_dummy_in_a_bin(shift, left, right):
    l, r = mp.mpf(left), mp.mpf(right)
    empty = l**shift / (l * (1 - l**shift) / (1 - l) + 1 / (1 - r))
    holds(shuffle.GeometricDummies(3, shift, left, right), [0.0, 1.0, 50.0, 700.0], (empty, 0))
    # A report that is kept with probability 1/4 leaves the bin empty otherwise.
    holds(shuffle.GeometricDummies(3, shift, left, right, 0.25), [0.0, 0.1], (empty, 3 * empty / 4))


@pytest.mark.parametrize("gamma", [1e-306, 1e-9, 0.01, 0.3, 0.5])
def test_no_zero_sum_noise(gamma):
    # The event is that all noise bits are 1.
    for users in (1, 5, 1000):
        holds(shuffle.ZeroSum(users, gamma), [0.0, 1.0, 50.0], (mp.mpf(gamma) ** users, 0))


@pytest.mark.parametrize("budget", [*LOGS, 0.0])
def test_all_personal_bits_zero(budget):
    for others in ([budget] * 2, [0.0, 1e-17], list(np.linspace(0, 700, 30))):
        budgets = np.array([budget, *others])
        keep = [1 / (1 + mp.exp(-mp.mpf(float(b)))) for b in budgets]
        event = mp.fprod(keep), mp.fprod(keep[1:]) / (1 + mp.exp(mp.mpf(budget)))
        for bits in (np.zeros(budgets.size), None):
            holds(shuffle.PersonalizedBits(budgets, bits=bits, target=0), below(budget), event)
