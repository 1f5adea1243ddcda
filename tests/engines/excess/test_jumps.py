"""Sums of a few heavy and many light values, against enumeration and against Fourier inversion of all values."""

import functools
import math

import mpmath
import numpy as np
import pytest

from shufflebounds import InconsistentBoundsError
from shufflebounds._base.convex_order import gathered, merged_sum, spread_sum
from shufflebounds._core import _excess
from shufflebounds._engines.excess.chernoff import chernoff
from shufflebounds._engines.excess.evaluation import Effort, approximate_excess, largest_of, sums
from shufflebounds._engines.excess.heavy_tails import close_sum, one_large_value, sum_of_few, sum_with_jumps
from shufflebounds.mechanisms import DiscreteGaussianMechanism, FiniteRandomizer, GaussianMechanism, GaussianVector
from tests.oracles import completed
from tests.strategies import slow, thinned


def listed(values, log_mass, users):
    """Return log E S_+ by a sum over the numbers of users with each of a few values; the remaining users have the last one."""
    log_fact = np.array([math.lgamma(k + 1) for k in range(users + 1)])
    left, total, log_p = np.array([users]), np.zeros(1), np.array([log_fact[users]])
    for x, w in zip(values[:-1], log_mass[:-1]):
        k = np.concatenate([np.arange(n + 1) for n in left])
        index = np.repeat(np.arange(left.size), left + 1)
        left, total, log_p = left[index] - k, total[index] + k * x, log_p[index] + k * w - log_fact[k]
    total, log_p = total + left * values[-1], log_p + left * log_mass[-1] - log_fact[left]
    gained = total > 0
    return math.log(math.fsum(np.exp(log_p[gained]) * total[gained]))


@pytest.mark.parametrize(("users", "values", "mass"), thinned([
    (30, [-1.0, 1.4, -3e7, 4e7], [0.4, 0.35, 1e-3, 2e-3]),
    (40, [-2.0, 1.0, 7e6, -5e6], [0.3, 0.45, 4e-4, 1e-4]),
    # In these cases few users have a value other than 0.
    (40, [-1.0, 2.0, 7e6, -5e6], [0.2, 0.1, 4e-4, 1e-4]),
    (30, [-3.0, 40.0, -900.0, 1e8], [0.3, 0.05, 0.01, 1e-9]),
    # The light values are negligible.
    (30, [-1.0, 1.5, -2e6, 2.5e6], [0.9, 0.02, 4e-3, 1e-4]),
    # Positive values are far less likely than the event that all values are 0.
    (40, [-2.0, 1.0, 7e6], [0.6, 1e-25, 1e-30]),
    (40, [-2.0, -5e6, 1.0, 7e6], [0.5, 1e-4, 1e-40, 1e-60]),
    # Some heavy values cancel partly.
    (35, [-1.0, -37.0, 90.0, 1e7], [0.5, 2e-3, 3e-3, 1e-9]),
], 3))
def test_bounds_contain_the_enumerated_value(users, values, mass):
    values, log_mass = completed(values, mass)
    exact = listed(values, log_mass, users)
    lower, upper = sum_with_jumps(values, log_mass, users)
    assert lower <= exact + 1e-12
    assert upper >= exact - 1e-12
    assert upper - lower < 5e-3


@pytest.mark.parametrize(("users", "values", "mass"), thinned([
    (2, [-1.0, 1.4, -3e7, 4e7], [0.4, 0.35, 1e-3, 2e-3]),
    (9, [-1.0, 1.4, -3e3, 4e5], [0.4, 0.35, 1e-3, 2e-9]),
    # In these two cases the sum is positive only if some of the few users have the largest value.
    (12, [-5.0, 1.0, 9.0], [0.6, 0.3, 1e-4]),
    (12, [-5.0, 1.0, 9.0], [0.6, 0.3999, 1e-8]),
    (30, [-3.0, 40.0, -900.0, 1e8], [0.3, 0.05, 0.01, 1e-9]),
    (40, [-2.0, 1.0, 7e6], [0.3, 0.45, 4e-4]),
], 3))
def test_values_added_one_after_the_other(users, values, mass):
    values, log_mass = completed(values, mass)
    lower, upper = sum_of_few(values, log_mass, float(users))
    assert lower <= listed(values, log_mass, users) + 1e-12
    assert upper >= listed(values, log_mass, users) - 1e-12
    # The gap is largest if sums of 0 are likely.
    assert upper - lower < 0.05


@pytest.mark.parametrize(("users", "values", "mass"), [
    (9, [-1.0, 1.4, -3e3, 4e5], [0.4, 0.35, 1e-3, 2e-9]),
    (120, [-3.0, 1e4, -1e12], [0.3, 1e-4, 1e-6]),
    (1000, [-1e9, 2e7], [1e-3, 5e-4]),
    # Two values alone, without 0.
    (10**5, [-1e3, 3e7], [1 - 2.0**-15, 2.0**-15]),
    slow(2**20, [-1e40, 1e45], [1 - 2.0**-20, 2.0**-20]),
])
def test_doubled_sums_of_many_users_are_close(users, values, mass):
    values, log_mass = (np.array(values), np.log(mass)) if math.fsum(mass) == 1 else completed(values, mass)
    lower, upper = close_sum(values, log_mass, float(users), 1e-3)
    exact = listed(values, log_mass, users)
    assert lower <= exact + 1e-9
    assert upper >= exact - 1e-9
    assert upper - lower < 2e-3


@pytest.mark.slow
@pytest.mark.parametrize(("users", "eps"), [slow(2, 6.0), (10, 4.0)])
def test_few_users_with_gaussian_noise(users, eps):
    """Fourier inversion has a gap of up to 8 in log delta here, because large values of X decide the sum."""
    law = GaussianMechanism(1.0).excess_laws()[0].upper
    bounds = law.log_phi([eps], users)
    assert bounds.lower[0] < bounds.upper[0] < bounds.lower[0] + 2e-3


@pytest.mark.parametrize("mass", thinned([[1e-6, 1e-7, 3e-7], [1e-11, 1e-16, 1e-15], [1e-20, 1e-22, 1e-22]], 2))
def test_less_than_one_user_in_a_thousand_has_a_value(mass):
    values = [-5e21, -3e40, 8e21]
    lower, upper = sum_with_jumps(*completed(values, mass), 30)
    with mpmath.workdps(50):
        a, b, c = map(mpmath.mpf, mass)
        # Only these numbers of users with each value give a positive sum.
        exact = mpmath.log(mpmath.fsum(
            mpmath.binomial(30, j) * mpmath.binomial(30 - j, k) * a**j * c**k * (1 - a - b - c)**(30 - j - k) * max(8*k - 5*j, 0)
            for k in range(31) for j in range(31 - k)
        ) * mpmath.mpf(10) ** 21)
    assert lower <= exact <= upper < lower + 1e-9


@pytest.mark.parametrize(("sigma", "users", "eps"), [slow(0.3, 10**4, 10.0), (0.3, 10**6, 2.0), (0.5, 10**5, 10.0)])
def test_bounds_agree_with_fourier_inversion_and_are_tighter(sigma, users, eps):
    law = GaussianMechanism(sigma).excess_laws()[0].upper
    log_mass, log_a, log_b = law._distinct
    values = np.exp(log_a) - np.exp(log_b + eps)
    lower, upper = sum_with_jumps(values, log_mass, users)
    alone = _excess.log_excess(values, log_mass, np.array([0, values.size]), np.array([float(users)]))
    assert max(lower, alone[0]) < min(upper, alone[1])
    assert upper - lower < 1e-5


@pytest.mark.parametrize(("sigma", "users", "eps"), [(0.5, 10**5, 10.0), (0.636, 10**6, 0.003), (1.0, 2000, 3.0)])
def test_the_upper_bound_alone(sigma, users, eps):
    law = GaussianMechanism(sigma).excess_laws()[0].upper
    log_mass, log_a, log_b = law._distinct
    values = np.exp(log_a) - np.exp(log_b + eps)
    both, alone = (sum_with_jumps(values, log_mass, users, upper) for upper in (False, True))
    assert alone.upper == both.upper
    assert both.lower - 1e-4 < alone.lower <= both.upper


@pytest.mark.parametrize(("users", "eps"), [(50, 1.0), (1000, 0.5), (10**6, 0.02)])
def test_chernoff_is_above_and_near_the_approximation(users, eps):
    law = GaussianMechanism(1.5).excess_laws()[0].lower[0][1]
    log_mass, log_a, log_b = law._distinct
    values = np.exp(log_a) - np.exp(log_b + eps)
    law = values, log_mass, np.array([0, values.size]), np.array([float(users)])
    bound = chernoff(values, log_mass, users)
    assert _excess.log_excess(*law)[0] < bound
    # e^K/(e theta) exceeds the approximation by a factor sqrt(2 pi (2 + theta^2 v))/e, where v is the tilted variance of the sum.
    assert bound < _excess.rough_excess(*law) + 5


def test_chernoff_where_negative_values_are_far_larger():
    # The best theta is far above 1/|X|, where the terms of the largest values underflow.
    values, log_mass = completed([3.0, -2.0, -1e30], [0.1, 0.5, 1e-6])
    law = values, log_mass, np.array([0, 4]), np.array([1e7])
    assert -math.inf < _excess.rough_excess(*law) < -600
    assert chernoff(values, log_mass, 1e7) < _excess.rough_excess(*law) + 10
    assert chernoff(-np.abs(values), log_mass, 1e7) == -math.inf
    # e^eps times a likelihood ratio may overflow.
    one, half = np.array([1.0, -math.inf]), np.log([0.5, 0.5])
    assert chernoff(one, half, 1.0) == pytest.approx(chernoff(np.array([1.0, -1e9]), half, 1.0), abs=1e-9)


def test_candidates_with_a_smaller_upper_bound_are_not_evaluated():
    exact, asked = [-3.0, -1.0, -1.05, -9.0], []

    def value(place):
        asked.append(place)
        return exact[place]

    assert largest_of([-1.1, -0.9, -1.0, 2.0], value) == (1, -1.0)
    # The bound of the last candidate is far above its value, as for heavy tails.
    assert asked == [3, 1, 2]
    assert largest_of([-math.inf] * 2, lambda place: -math.inf) == (0, -math.inf)


@pytest.mark.parametrize("eps", [0.003, 0.02])
def test_values_of_a_million_are_split_off(eps):
    # Fourier inversion of all values, which was used for values up to 1e8, leaves a gap of 1e-4 at the first eps and of 1.6 at the
    # second one, and takes 20 times as long.
    law = GaussianMechanism(0.6363480159693592).excess_laws()[0].upper
    lower, upper = law.log_phi([eps], 9040311)
    assert 0 <= upper[0] - lower[0] < 1e-5


def test_sums_on_grid_points_keep_the_mean_and_the_convex_order():
    rng = np.random.default_rng(3)
    x, y = np.sort(rng.normal(size=40)) * 10, np.sort(rng.normal(size=30)) ** 3
    p, q = rng.dirichlet(np.ones(40)), rng.dirichlet(np.ones(30))
    nodes = np.linspace(-80, 80, 90)
    sums, chance = np.add.outer(x, y).ravel(), np.outer(p, q).ravel()
    spread = spread_sum(x, p, y, q, nodes)
    where, merged = merged_sum(x, p, y, q, nodes)
    assert np.all(np.diff(where) > 0)
    for place, mass in ((nodes, spread), (where, merged)):
        assert mass.sum() == pytest.approx(1, rel=1e-13)
        assert mass @ place == pytest.approx(chance @ sums, rel=1e-11, abs=1e-11)
    for at in (-20.0, -3.3, 0.0, 11.0):
        exact = chance @ np.maximum(sums - at, 0)
        assert merged @ np.maximum(where - at, 0) <= exact * (1 + 1e-13)
        assert spread @ np.maximum(nodes - at, 0) >= exact * (1 - 1e-13)


def test_merged_atoms_give_upper_and_lower_bounds():
    law = GaussianMechanism(0.3).excess_laws(cells=3200)[0].upper
    log_mass, log_a, log_b = law._distinct
    values = np.exp(log_a) - np.exp(log_b + 3.0)
    exact = sum_with_jumps(values, log_mass, 10**4)
    sides = [sum_with_jumps(*gathered(values, log_mass, upper=upper), 10**4)[upper] for upper in (False, True)]
    assert sides[0] <= exact.upper
    assert sides[1] >= exact.lower
    assert sides[1] - sides[0] < 1e-3


def test_distributions_without_heavy_tails_are_declined():
    assert sum_with_jumps(*completed([1.0, -1.0], [0.4, 0.5]), 100) == (-math.inf, math.inf)


def test_values_too_far_apart_are_declined():
    assert sum_with_jumps(*completed([-1.0, 1e200], [0.1, 1e-3]), 20) == (-math.inf, math.inf)


@pytest.mark.parametrize(("values", "log_mass"), [
    ([-1e-200, 1e149], [-2.3, -940.0]),
    ([1.52509451e115, -5.37663164e97], [-763.99529712, -1.47106889]),
    ([6.77583118e124, -4.88986526e91], [-735.65688295, -2.40770188]),
    ([2.04618407e143, -8.68524868e-2], [-660.0, -2.60153776]),
    ([1e100, 1e120, -1e100], [-400.0, -420.0, -1.5]),
])
def test_masses_that_underflow(values, log_mass):
    # Without these masses the sum would be too small: log E S_+ is about that of the single positive value.
    gain = max(w + math.log(x) for x, w in zip(values, log_mass) if x > 0) + math.log(20)
    rest = math.log1p(-math.fsum(np.exp(log_mass)))
    lower, upper = sum_with_jumps(np.array([*values, 0.0]), np.array([*log_mass, rest]), 20)
    assert lower <= gain + math.log(2)
    assert upper >= gain + 19 * rest


def test_merged_rare_values_give_upper_and_lower_bounds():
    rng = np.random.default_rng(5)
    values = np.append(rng.normal(size=40), rng.choice([-1, 1], 200) * np.exp(rng.uniform(0, 300, 200)))
    log_mass = np.append(np.full(40, math.log(0.02)), -rng.uniform(691, 900, 200))
    for upper in (False, True):
        at, log_left = gathered(values, log_mass, upper=upper)
        rare = log_left < -600
        # The two numbers are log E X_+ of the rare values.
        found, exact = (float(np.logaddexp.reduce(w[x > 0] + np.log(x[x > 0]))) for x, w in
                        ((at[rare], log_left[rare]), (values[40:], log_mass[40:])))
        assert 0 <= (found - exact) * (1 if upper else -1) <= 0.26
        assert np.logaddexp.reduce(log_left[rare]) == pytest.approx(np.logaddexp.reduce(log_mass[40:]), rel=1e-12)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e38])
@pytest.mark.parametrize(("users", "chance", "gain"), [(50, 2e-5, 75.0), (4408, 2e-6, 6612.0), (10**5, 1e-8, 1e7)])
def test_light_values_that_are_all_equal(users, chance, gain, size):
    """For densities at large eps, every value of X that is not positive rounds to -e^eps."""
    values = size * np.array([gain, -1.0, -1.0, -1.0])
    lower, upper = sum_with_jumps(values, np.log([chance, (1 - chance) / 2, (1 - chance) / 4, (1 - chance) / 4]), float(users))
    with mpmath.workdps(30):
        p, c, high = mpmath.mpf(chance), mpmath.mpf(size), mpmath.mpf(size * gain)
        exact = mpmath.log(mpmath.fsum(
            mpmath.binomial(users, k) * p**k * (1 - p) ** (users - k) * max(k * high - (users - k) * c, 0) for k in range(40)
        ))
    assert lower <= exact <= upper < lower + 1e-8


@pytest.mark.parametrize(("users", "values", "mass", "gap"), [
    # Only a rare large value makes the sum positive.
    (30, [-1.0, 0.05, 50.0], [0.9, 0.05, 1e-9], 0.01),
    (30, [-1.0, 40.0, 45.0, 60.0], [0.9, 1e-7, 1e-9, 1e-12], 0.5),
    # Several moderate values can make the sum positive, too; the bound is valid, but far below the exact value.
    (30, [-1.0, 1.1, 9.0], [0.4, 0.35, 0.01], 20.0),
    (2, [-1.0, 1e-3, 7.0], [0.4, 0.5, 1e-5], 7.0),
    (1, [-1.0, 2.0], [0.5, 0.25], 1e-12),
])
def test_one_large_value_gives_a_lower_bound(users, values, mass, gap):
    values, log_mass = completed(values, mass)
    exact = listed(values, log_mass, users)
    assert exact - gap <= one_large_value(values, log_mass, float(users)) <= exact + 1e-14 * abs(exact)


def test_one_large_value_that_is_too_small():
    assert one_large_value(*completed([-1.0, 20.0], [0.9, 1e-3]), 30.0) == -math.inf
    assert one_large_value(*completed([-1.0, -2.0], [0.9, 0.1]), 30.0) == -math.inf


@pytest.mark.slow
def test_lower_bound_of_shuffled_noise_where_inversion_has_none():
    # An earlier version had the same upper bound of log delta, but the lower bound -86 (and -840 to -4142 for 1000 users).
    lower, upper = (GaussianMechanism(1.0).shuffled(10**5).log_delta(0.05, bound=bound) for bound in ("lower", "upper"))
    assert -37.7 < lower < upper < -36.6


@pytest.mark.slow
def test_lower_bounds_of_shuffled_noise_at_large_eps():
    shuffled = GaussianMechanism(1.0).shuffled(1000)
    for eps in (1.7, 3.5):
        lower, upper = (shuffled.log_delta(eps, bound=bound) for bound in ("lower", "upper"))
        assert lower > -63
        assert lower < upper
    assert shuffled.data(2.5) == "every other user has the second end"


def test_lower_bound_of_a_matrix_with_many_outputs():
    # For more than 1024 atoms and one requested bound, the lower bound was once -inf.
    rows = 1.0 + np.sin(np.outer([1.0, 2.0], np.arange(1100)))**2
    shuffled = FiniteRandomizer(rows / rows.sum(axis=1, keepdims=True)).shuffled(5000)
    lower, upper = (shuffled.log_delta(0.01, bound=bound) for bound in ("lower", "upper"))
    assert -20 < upper - 0.1 < lower < upper


def test_the_lower_bound_of_a_sum_that_several_heavy_values_make_positive():
    """The aliasing error of the contour was bounded for n users and used for n - k users, which is too little where K decreases."""
    rows = [[0.9479355860349272, 0.01515470908202476, 0.00035602104977314506, 0.03655368383327491, 1e-70, 1.4126968793833064e-49],
            [0.996853047026663, 0.0007378368401871639, 0.0018879238301166292, 0.0005211923030332306, 1e-70, 4.708989597944355e-56],
            [0.9962592985127008, 0.0023805802261736963, 0.0005813467943421441, 0.0007787744667833625, 1e-70, 4.708989597944355e-56]]
    log_mass, log_a, log_b = FiniteRandomizer(rows).excess_laws()[0].lower[1][1]._distinct
    values = np.exp(log_a) - np.exp(log_b + 2.4134361264653976)
    # The two rare outputs change E S_+ by less than e^-20 of it.
    rare = log_mass < -100
    exact = listed(values[~rare], log_mass[~rare], 118)
    lower, upper = sum_with_jumps(values, log_mass, 118.0)
    assert lower <= exact + 1e-9
    assert upper >= exact - 1e-9


@pytest.mark.parametrize("users", [2, 7, 30])
def test_one_bound_of_a_sum_of_few_users_is_that_of_both(users: int) -> None:
    values, log_mass = np.array([-1e7, -3.0, -0.5, 0.25, 4.0, 300.0]), np.log([1e-9, 0.2, 0.5, 0.2, 0.09, 0.01])
    both = sum_of_few(values, log_mass, float(users))
    assert sum_of_few(values, log_mass, float(users), selected=True) == (-math.inf, both.upper)
    assert sum_of_few(values, log_mass, float(users), selected=False) == (both.lower, math.inf)


@pytest.mark.parametrize(("sigma", "users", "eps"), [(0.5, 200, 3.0), (0.5, 4000, 2.0), slow(1.0, 10, 2.0), (0.45, 34, 5.0)])
def test_parted_approximation_is_close_for_heavy_tails(sigma: float, users: int, eps: float) -> None:
    law = GaussianMechanism(sigma).shuffled(users)._laws.below[0][2]
    lower, upper = law.log_phi([eps], users, Effort.SAMPLED)
    assert lower[0] - 1.5 < law.approximate_log_phi(eps, users, parted=True) < upper[0] + 1.5
    # E S_+ is at most n E X_+.
    values, log_mass = completed([-2.0, 3.0], [0.5, 1e-30])
    assert approximate_excess(values, log_mass, 10.0, True) <= math.log(10 * 3e-30) + 1e-12
    assert approximate_excess(-np.abs(values), log_mass, 10.0, True) == -math.inf


@functools.cache
def cube():
    return GaussianVector(2.067, 3).excess_laws()[0].upper


@pytest.mark.slow
@pytest.mark.parametrize(("users", "eps", "upper"), [(2, 2.6, False), (2, 0.3, True)])
def test_a_sum_of_few_values_out_of_fifteen_thousand(users, eps, upper):
    # Merging the atoms to 1024 raises the bound of two users by 5e-3, and that of 16 users by 4.
    law = cube()
    log_mass, log_a, log_b = law._distinct
    assert log_mass.size > 15_000
    values = np.exp(log_a) - np.exp(log_b + eps)
    order = np.argsort(values)
    values, mass = values[order], np.exp(log_mass[order])
    # For each value of the first user, the values of the second one that make the sum positive.
    above, gain = (np.append(np.cumsum(part[::-1])[::-1], 0.0) for part in (mass, mass * values))
    place = np.searchsorted(values, -values, side="right")
    exact = math.log(mass @ (gain[place] + values * above[place]))
    found = sums(values, np.log(mass), users, upper, Effort.FINE)[upper]
    assert (exact - 1e-9 <= found <= exact + 1e-4) if upper else (exact - 1e-4 <= found <= exact + 1e-9)


@pytest.mark.slow
def test_delta_of_few_users_of_a_cube_has_a_small_gap():
    law = cube()
    log_mass, log_a, log_b = law._distinct
    lower = sum_of_few(np.exp(log_a) - np.exp(log_b + 2.6), log_mass, 16, selected=False).lower - math.log(16)
    assert 0 <= law.log_phi_side(2.6, 16, upper=True) - lower < 1e-2


@pytest.mark.parametrize("eps", thinned([0.8, 0.99771, 1.3], 2))
def test_bounds_are_close_where_a_value_that_is_not_large_enough_for_heavy_tails_decides(eps):
    # The other values alone are positive in sum with a probability far below e^-48, the lower bound, which is delta of a dataset.
    protocol = DiscreteGaussianMechanism(0.9389452198014735, 1).shuffled(21561)
    lower, upper = (protocol.log_delta(eps, bound=bound) for bound in ("lower", "upper"))
    assert lower <= upper <= lower + 1e-6
    # One message alone would have to be this large: the sum of the other messages is near its mean, which is negative.
    law = protocol._closed.laws.above[0]
    values, mass = law.values(eps), np.exp(law.log_mass)
    mean, deviation = 21560 * float(mass @ values), math.sqrt(21560 * float(mass @ values**2))
    above = max(math.log(float(mass @ np.maximum(values + mean + way * deviation, 0))) for way in (-6, 6))
    below = min(math.log(float(mass @ np.maximum(values + mean + way * deviation, 0))) for way in (-6, 6))
    assert below - 1 <= upper <= above + 1


def test_two_methods_for_one_sum_are_compared(monkeypatch):
    monkeypatch.setattr(_excess, "log_excess", lambda *_: (50.0, math.inf))
    values, log_mass = np.array([-1e7, -3.0, 0.25, 3e7]), np.log([1e-9, 0.7 - 1e-9, 0.29, 0.01])
    with pytest.raises(InconsistentBoundsError, match=r"log E S_\+ of 120\.0 users"):
        sums(values, log_mass, 120.0, None, Effort.FINE)
