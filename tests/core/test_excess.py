"""The kernel of E (X_1 + ... + X_n)_+ against exact powers of polynomials and against the kernel of the clone bound.

Sums over several groups of users that have the same distribution are compared with the sum over one group.
"""

import math
import random

import mpmath
import numpy as np
import pytest

pytest.importorskip("flint")

from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from shufflebounds import shuffle
from shufflebounds._core import _excess, _smoothed
from shufflebounds._engines.excess.evaluation import Effort, sums
from shufflebounds._engines.excess.excess_law import ExcessLaw
from shufflebounds.mechanisms import GaussianMechanism, KaryResponse
from tests.oracles import completed
from tests.reference.measure_excess import clones, exact, noise, random_law, sides
from tests.reference.sandwich import least_distance
from tests.strategies import slow, thinned


@pytest.mark.parametrize("seed", thinned(range(12), 2))
def test_bounds_contain_powers_of_polynomials(seed):
    rng = random.Random(seed)
    for n in (1, 2, 7, 40, 90):
        values, log_mass = random_law(rng)
        lower, upper = sides(values, log_mass, n)
        assert arb(lower) < exact(values, log_mass, n) < arb(upper)


@pytest.mark.parametrize("share", [0.3, 0.35, 0.41, 0.45, 0.7, 0.95])
def test_the_approximation_is_close_on_both_sides_of_a_mean_of_zero(share):
    values, log_mass = [3, -2], np.log([share, 1 - share])
    found = _excess.rough_excess(np.array(values, dtype=float), log_mass, np.array([0, 2]), np.array([80.0]))
    assert found == pytest.approx(float(exact(values, log_mass, 80)), abs=0.05)


@pytest.mark.parametrize(("n", "eps"), thinned([(105, 0.4), (180, 1.2), slow(300, 0.05)], 2))
def test_few_hundred_users_of_ten_ary_response_by_tables(n, eps):
    """The numbers of users of the two rarest kinds are enumerated; the contour leaves a gap of 2e-7."""
    law = KaryResponse(10, 2.0).excess_laws()[0].upper
    # Integer values near those of X, so that the exact value is a power of a polynomial.
    values = [*np.rint(4 * law.values(eps)).astype(int).tolist(), 0]
    log_mass = np.append(law.log_mass, math.log1p(-np.exp(law.log_mass).sum()))
    lower, upper = sides(values, log_mass, n)
    reference = exact(values, log_mass, n)
    assert arb(lower) < reference < arb(upper)
    assert upper - lower < 1e-10


@pytest.mark.parametrize(("values", "mass"), thinned([
    # The two most likely kinds are the first and the last value, the first and the mass at 0, and two values of one sign.
    ([-2, 5, 3], [0.6, 1e-3, 0.398]), ([-3, 7, 1], [0.5, 1e-5, 1e-3]), ([-4, -1, 60], [0.3, 0.69, 2e-4]),
    # The sum is positive only with a probability of about e^-300.
    ([-9, 1, 2], [0.55, 0.03, 0.01]),
], 2))
@pytest.mark.parametrize("n", [1, 2, 3, 60, 250])
def test_tables_of_two_kinds(values, mass, n):
    log_mass = np.log(mass)
    rest = 1 - sum((arb(float(w)).exp() for w in log_mass), arb(0))
    log_mass = np.append(log_mass, float(rest.log()))
    lower, upper = sides([*values, 0], log_mass, n)
    assert arb(lower) < exact([*values, 0], log_mass, n) < arb(upper)
    assert upper - lower < 1e-9


@pytest.mark.parametrize(("n", "values", "mass"), [
    (23, [-6, -1, 3, 4, 5], [0.00101202, 0.24387126, 0.11851282, 0.43357928, 0.20202463]),
    (19, [-4, -2, -1, 2, 3, 4], [0.20871545, 0.13393694, 0.00052514, 0.03229996, 0.12136609, 0.00315642]),
    (33, [-4, 1, 2, 5, 6, 7], [2.02146957e-05, 0.546564987, 1.18007774e-07, 5.47853897e-14, 0.352517435, 8.97245760e-04]),
    (600, [-3, 2], [0.625, 0.375]),
])
def test_rounding_errors_of_many_terms_are_bounded(n, values, mass):
    values, log_mass = completed(values, mass)
    lower, upper = sides(values, log_mass, n)
    assert arb(lower) < exact(values.astype(int).tolist(), log_mass, n) < arb(upper)
    assert upper - lower < 1e-9


@pytest.mark.parametrize(("n", "eps0", "eps"), [
    (5, 2.0, 0.5), (1000, 1.0, 0.1), (10**4, 1.0, 0.0432), (10**6, 4.0, 0.045), (10**6, 4.0, 3.0), (10**9, 1.0, 1e-4),
    (10**9, 4.0, 0.1), (10**6, 8.0, 1.0),
])
def test_agrees_with_the_clone_sweep(n, eps0, eps):
    mass = -math.log1p(math.exp(eps0))
    law = ExcessLaw([mass, mass], [eps0, 0.0], [0.0, eps0], math.log(math.tanh(eps0 / 2)))
    lower, upper = law.log_phi([eps], n)
    clones = shuffle.StrongerClones(n, eps0)
    slack = 4e-16 * abs(clones.log_delta(eps))
    assert lower[0] <= clones.log_delta(eps) + slack
    assert upper[0] >= clones.log_delta(eps, bound="lower") - slack
    assert upper[0] - lower[0] < (1e-6 if n >= 10**4 else 1e-5)


def test_groups_without_users_are_left_out():
    values, log_mass = np.array([2.0, -1.0, 0.0, 5.0, -3.5, 0.0]), np.log([0.1, 0.3, 0.6, 0.4, 0.2, 0.4])
    starts = np.array([0, 3, 6])
    for counts in ([70.0, 0.0], [0.0, 70.0]):
        one = slice(0, 3) if counts[0] else slice(3, 6)
        alone = _excess.log_excess(values[one], log_mass[one], np.array([0, 3]), np.array([70.0]))
        assert _excess.log_excess(values, log_mass, starts, np.array(counts)) == alone


@pytest.mark.parametrize(("low", "high", "users"), [
    ((0, 0, 0), (50, 50, 50), 50), ((10, 0, 5), (40, 0, 45), 50), ((20, 30, 0), (20, 30, 0), 50),
    ((10**6, 0, 0), (2 * 10**6, 7, 0), 10**6 + 5),
])
@pytest.mark.parametrize("theta", [1e-4, 0.3, 5.0])
def test_bound_of_a_cell_is_its_formula(low, high, users, theta):
    moments = np.array([[-0.02, -0.1, 1.3, 2.2], [0.01, 0.05, 0.7, 0.9], [-0.4, -1.0, 2.9, 8.0]])
    free = users - sum(low)
    corners = [np.array(low) + free * np.eye(3, dtype=int)[j] for j in range(3) if high[j] > low[j]] or [np.array(low)]
    with mpmath.workdps(40):
        totals = [[sum(int(m) * mpmath.mpf(x) for m, x in zip(corner, column)) for column in moments.T] for corner in corners]
        theta = mpmath.mpf(theta)
        peak = max(mpmath.exp(k) / (theta**2 * mpmath.sqrt(2 * mpmath.pi * v)) for k, _, v, _ in totals)
        z = max(mu - theta * v for _, mu, v, _ in totals) / mpmath.sqrt(max(v for _, _, v, _ in totals))
        if abs(z) < 30:
            part = mpmath.sqrt(max(v for _, _, v, _ in totals)) * (mpmath.npdf(z) + z * mpmath.ncdf(z))
            peak = min(peak, part * max(mpmath.exp(k - theta * mu + theta**2 * v / 2) for k, mu, v, _ in totals))
        error = max(mpmath.exp(k) / v**1.5 for k, _, v, _ in totals) * max(rho for *_, rho in totals) * 1.12 / (mpmath.e * theta)
        exact = float(mpmath.log(peak + error))
    assert _excess.log_cell(moments, float(theta), low, high, users) == pytest.approx(exact, rel=1e-12, abs=1e-12)


def test_groups_with_one_distribution_equal_one_group():
    values, log_mass = completed([2.0, -1.0, -3.5], [0.1, 0.3, 0.2])
    one = _excess.log_excess(values, log_mass, np.array([0, 4]), np.array([5000.0]))
    three = _excess.log_excess(np.tile(values, 3), np.tile(log_mass, 3), np.array([0, 4, 8, 12]), np.array([1000.0, 1500, 2500]))
    assert one[0] < three[1]
    assert three[0] < one[1]
    assert three[1] - three[0] < 1e-4


def test_two_groups_against_enumeration():
    # Three users have one distribution and one user has another: E(Y + X_1 + X_2 + X_3)_+ is enumerated.
    total = 0.0
    for y, q in ((5.0, 0.25), (0.0, 0.75)):
        for k in range(4):
            for m in range(4 - k):
                chance = math.factorial(3) / math.factorial(k) / math.factorial(m) / math.factorial(3 - k - m)
                total += q * chance * 0.2**k * 0.5**m * 0.3**(3 - k - m) * max(0.0, y + k - 2 * m)
    lower, upper = _excess.log_excess(np.array([5.0, 0, 1, -2, 0]), np.log([0.25, 0.75, 0.2, 0.5, 0.3]), np.array([0, 2, 5]),
                                      np.array([1.0, 3]))
    assert lower < math.log(total) < upper < lower + 1e-12


def test_a_heavy_tail_is_split_off():
    # One value has probability 1e-9 and is so large that it decides the sign of the sum.
    n = 10**4
    lower, upper = sides(*completed([1.0, -1.2, 1e7], [0.3, 0.4, 1e-9]), n)
    bulk = sides(*completed([1.0, -1.2], [0.3, 0.4]), n)
    jump = n * 1e-9 * (1e7 + n * (0.3 - 0.48))
    assert upper - lower < 1e-4
    assert math.exp(upper) == pytest.approx(math.exp(bulk[1]) + jump, rel=1e-4)


@pytest.mark.parametrize(("mass", "jump"), [(1e-19, 1e8), (1e-21, 3e7), (1e-15, 4e9)])
def test_values_of_mass_below_an_ulp_are_split_off(mass, jump):
    # All other values are negative, and one large value exceeds their sum: E S_+ is about n mass (jump - 1.4 (n - 1)).
    n = 10**6
    lower, upper = sides(*completed([-1.0, -2.0, -5.0, jump], [0.2, 0.1, 0.2, mass]), n)
    truth = math.log(n * mass) + math.log(jump - 1.4 * (n - 1))
    # The probability of two large values is smaller by a factor of n * mass.
    assert lower <= truth * (1 - 1e-12) + 2 * n * mass
    assert upper >= truth * (1 + 1e-12) - 2 * n * mass
    assert upper - lower < 1e-5


def test_few_of_many_heavy_values_agree_with_one_jump_at_a_time():
    law = GaussianMechanism(0.5).excess_laws()[0].upper
    log_mass, log_a, log_b = law._distinct
    values, mass = np.exp(log_a) - math.e * np.exp(log_b), np.exp(log_mass)
    lower, upper = _excess.log_excess(values, log_mass, np.array([0, values.size]), np.array([1e6]))
    light = np.abs(values) < 1e5
    mean, deviation = 1e6 * float(mass[light] @ values[light]), 1e3 * math.sqrt(float(mass[light] @ values[light] ** 2))
    steps = np.linspace(-8, 8, 801)
    weight = np.exp(-steps**2 / 2) / np.exp(-steps**2 / 2).sum()
    gains = np.maximum(values[values > 1e5, None] + mean + steps * deviation, 0) @ weight
    assert lower == pytest.approx(math.log(1e6 * float(mass[values > 1e5] @ gains)), abs=2e-3)
    assert upper - lower < 1e-6


@pytest.mark.parametrize("eps", thinned([0.03, 0.045, 0.06], 2))
def test_a_coarse_tolerance_is_met_where_values_are_far_larger_than_the_sum(eps):
    # Values of X up to 7e4 keep the tilt small, so that smoothing by a normal variable moves E S_+ by more than the tolerance.
    law = GaussianMechanism(1.0).excess_laws()[0].upper
    log_mass, log_a, log_b = law._distinct
    values, starts, users = np.exp(log_a) - math.exp(eps) * np.exp(log_b), np.array([0, log_mass.size]), np.array([1e4])
    lower, upper = _excess.log_excess(values, log_mass, starts, users, 1e-3)
    low, high = _excess.log_excess(values, log_mass, starts, users, 1e-8)
    assert lower <= low <= high <= upper
    assert high - low < 1e-3
    assert upper - lower < 3e-3


def test_values_of_negligible_mass_cause_no_error():
    # One atom has a mass below the smallest double and a loss of several hundred.
    law = ExcessLaw([math.log(0.25), math.log(0.25), -900.0], [1.0, -np.inf, 300.0], [-np.inf, 1.0, 0.0], math.log(0.5))
    plain = ExcessLaw(law.log_mass[:2], law.log_a[:2], law.log_b[:2], math.log(0.5))
    for n in (50, 10**6):
        assert np.allclose(law.log_phi([0.01], n), plain.log_phi([0.01], n), rtol=1e-9)


@pytest.mark.parametrize("n", [200, 10**5])
def test_gathered_distributions_are_bounds(n):
    rng = np.random.default_rng(5)
    log_mass, log_a = -8.5 - rng.random(1500) * 3, rng.normal(size=1500)
    log_mass -= np.logaddexp.reduce(log_mass)
    law = ExcessLaw(log_mass, log_a - np.logaddexp.reduce(log_mass + log_a), np.zeros(1500), -math.inf)
    eps = 0.6 / math.sqrt(n)
    sides = law.log_phi([eps], n)
    values = np.exp(law.log_a) - math.exp(eps)
    whole = np.array(_excess.log_excess(values, log_mass, np.array([0, 1500]), np.array([float(n)]))) - math.log(n)
    assert sides[0][0] <= whole[1]
    assert sides[1][0] >= whole[0]
    assert sides[1][0] - sides[0][0] < 1e-3


def test_many_masses_close_to_the_smallest_double():
    # Every X_i is 0 except with probability 2e-301, so that E S_+ is n E X_+.
    values, log_mass = np.linspace(-1, 1, 2001), np.full(2001, -700.0)
    log_mass[1000] = 0.0
    lower, upper = sums(values, log_mass, 100.0, None, Effort.ROUGH)
    exact = math.log(100) - 700 + math.log(np.maximum(values, 0.0).sum())
    # Atoms that share a node of the coarse grid are counted at its larger value.
    assert exact - 0.2 < lower <= exact <= upper < exact + 0.2


def test_extremes():
    starts, one = np.array([0, 1], dtype=np.intp), np.array([1.0])
    assert _excess.log_excess(one, np.zeros(1), starts, np.array([7.0])) == pytest.approx((math.log(7),) * 2, abs=1e-12)
    assert _excess.log_excess(-one, np.zeros(1), starts, one) == (-math.inf, -math.inf)
    lower, upper = sides([1, 0], np.array([-800.0, 0.0]), 1)
    assert lower <= -800 <= upper
    lower, upper = sides(*completed([3, -2], [0.2, 0.7]), 2**53)
    assert -math.inf < lower <= upper < 0


def test_smoothing_error_is_between_the_polynomials():
    above, below, sizes = _smoothed.sandwich()
    assert 0 < least_distance(above, 1) < 1e-4
    assert 0 < least_distance(below, -1) < 1e-4
    assert all(size >= max(abs(a), abs(b)) for a, b, size in zip(above, below, sizes))


def test_gaps_stay_within_the_header():
    outside, gaps = clones(random.Random(3), 20)
    assert not any(outside)
    assert sorted(gaps)[10] < 2.5e-7
    assert max(gaps) < 1.2e-6
    assert min(noise(random.Random(5), 3, (1.0, 2.0))) < 5e-7


def test_a_second_contour_is_tried_where_the_gap_is_rounding():
    # log E S_+ is about -2.25 million. The first contour has a gap of 3.4e-7. The second one, with more nodes, has 2.1e-7.
    values = [0.16416067302413945, -0.0023887086152873287, 0.031118092411635774, -0.136432000616321]
    log_mass = np.array([-13.241481680539621, -10.501477059080129, -14.513838867364086, -0.1053935924583007])
    n = 998696
    values, log_mass = [*values, 0.0], np.append(log_mass, np.log1p(-np.exp(log_mass).sum()))
    lower, upper = sides(values, log_mass, n)
    assert 0 < upper - lower < 2.5e-7
    # The upper limit is Chernoff's bound E S_+ <= e^(K(t) - 1)/t at the best t > 0, with K(t) = log E e^(t S). The lower limit is
    # the term in which every user has the largest value.
    moments = ((t, float(np.exp(log_mass + t * np.array(values)).sum())) for t in np.linspace(10, 90, 800))
    least = min(n * math.log(moment) - 1 - math.log(t) for t, moment in moments)
    assert n * log_mass[0] < lower < least


@pytest.mark.parametrize("atoms", thinned([2, 3, slow(5), slow(12)], 2))
def test_no_node_above_the_band_is_left_out(atoms):
    """Of all multiples of the step, those where |phi| is above e^-40: on lattices and elsewhere, with equal and unequal masses."""
    rng = np.random.default_rng(atoms)
    for case in range(6):
        values = np.arange(atoms) - 1.0 if case % 3 == 0 else rng.normal(size=atoms)
        mass = rng.dirichlet(np.full(atoms, rng.choice([0.3, 3.0])))
        count, step = float(10 ** rng.integers(2, 7)), 10 ** rng.uniform(-3, -1.5)
        t = step * np.arange(15_000)
        log_abs = count * np.log(np.abs(np.exp(1j * np.outer(t, values)) @ mass))
        nodes, end, _, _ = _smoothed.tilted_nodes(values, np.log(mass), count, 0.0, step, t[-1], t.size + 1)
        assert end == t[-1]
        missing = np.setdiff1d(np.round(t[log_abs > -40 + 1e-6] / step), np.round(nodes[:, 0] / step))
        assert missing.size == 0


@pytest.mark.parametrize("main", [-(2.0**-14), 2.0**-14])
def test_rare_values_of_many_users(main):
    # Nearly all users have one value, so that the table of the two frequent values has 500 of 3001 weights.
    users, x = 3000, np.array([1.0, -1.5, 0.0, main])
    w = np.array([2.0**-13, 2.0**-12, 2.0**-9, 1 - 2.0**-13 - 2.0**-12 - 2.0**-9])
    lower, upper = _excess.log_excess(x, np.log(w), np.array([0, 4]), np.array([float(users)]))

    def chances(count, p):
        """Return the probabilities of 0, 1, ... successes, by their ratios; those of 60 and more are below 1e-30."""
        k = np.arange(60.0)
        return np.exp(count * math.log1p(-p)) * np.cumprod(np.append(1.0, (count - k) / (k + 1) * (p / (1 - p))))

    total, k = 0.0, np.arange(61)
    for i, first in enumerate(chances(users, w[0])[:20]):
        for j, second in enumerate(chances(users - i, w[1] / (1 - w[0]))[:20]):
            third = chances(users - i - j, w[2] / (1 - w[0] - w[1]))
            total += first * second * float((third * np.maximum(i * x[0] + j * x[1] + (users - i - j - k) * main, 0)).sum())
    assert lower - 1e-12 <= math.log(total) <= upper + 1e-12
    assert upper - lower < 1e-10


@given(st.integers(0, 700), st.floats(-6, 9), st.integers(0, 2**32 - 1))
def test_turned_sums(size, log_reach, seed):
    draws = np.random.default_rng(seed)
    t, y = draws.uniform(0, 10**log_reach, size), np.array([0.0, 1.0, -3.25, 1e-9, 777.0])
    weights = draws.normal(size=(2, 3, size))
    found = _smoothed.turned_sums(y, t, weights)
    for row, place in zip(found, y):
        # the product is exact in extended precision, up to which both reductions agree
        angle = t.astype(np.longdouble) * np.longdouble(place)
        exact = np.cos(angle) @ weights[0].T.astype(np.longdouble) - np.sin(angle) @ weights[1].T.astype(np.longdouble)
        error = 2.3e-16 * ((np.abs(weights).sum(axis=0) * (16 + size + np.abs(t * place))).sum(axis=1))
        assert (np.abs(row - exact) <= error).all()


def test_turned_sums_of_the_wrong_shape():
    with pytest.raises(ValueError, match=r"\(2, rows, 3\), got \(2, 1, 4\)"):
        _smoothed.turned_sums(np.ones(1), np.ones(3), np.ones((2, 1, 4)))


def test_a_distribution_without_its_mass_at_zero_is_refused():
    log_mass, height = np.log([0.25, 0.25]), np.array([1.0, 0.0])
    with pytest.raises(TypeError, match="log_rest"):
        ExcessLaw(log_mass, height, height[::-1])
    with pytest.raises(ValueError, match=r"log_rest=-inf .* total mass 0\.5: it must be 1"):
        ExcessLaw(log_mass, height, height[::-1], -math.inf)
    with pytest.raises(ValueError, match="with the mass of the value 0"):
        sums(height, log_mass, 5.0, None, Effort.FINE)
    assert math.isfinite(ExcessLaw(log_mass, height, height[::-1], math.log(0.5)).log_phi([0.1], 5).upper[0])
