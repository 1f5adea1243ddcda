"""Budgets whose exponential overflows: compositions of Laplace noise against sums over its two kinds of losses with 40 digits."""

import math

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from shufflebounds.mechanisms import FiniteRandomizer, GeometricMechanism, LaplaceMechanism, RandomizedResponse
from shufflebounds.shuffle import Clones, StrongerClones
from tests.strategies import slow

pytestmark = pytest.mark.filterwarnings("ignore:scale=")


@pytest.fixture(autouse=True)
def forty_digits():
    with mpmath.workdps(40):
        yield


class Exact:
    """`releases` of Laplace noise with a budget b of at least 200, up to a relative e^-100.

    The loss of a release is b with probability 1/2, and otherwise b - 2 X with X exponential.
    """

    def __init__(self, noise, releases):
        self.total, self.releases = releases / mpf(noise.scale), releases

    def of(self, eps):
        """Return (delta, probability of a loss above eps)."""
        room = (self.total - mpf(eps)) / 2
        if room <= 0:
            return mpf(0), mpf(0)
        delta, tail = -mpmath.expm1(-2 * room) / mpf(2) ** self.releases, mpf(1) / mpf(2) ** self.releases
        for j in range(1, self.releases + 1):
            # X has the sum of j exponentials; the integral of e^(2 X - 2 room) up to `room` has a finite sum by parts.
            weight = mpmath.binomial(self.releases, j) / mpf(2) ** self.releases
            below = mpmath.gammainc(j, 0, room, regularized=True)
            other = mpmath.exp(-2 * room) * (-1) ** j * (1 - mpmath.exp(room) * mpmath.fsum(
                (-room) ** i / mpmath.factorial(i) for i in range(j)))
            delta, tail = delta + weight * (below - other), tail + weight * below
        return delta, tail


CASES = [pytest.param(budget, releases, marks=() if budget * releases in (6e3, 1e7) else pytest.mark.slow)
         for budget in (700, 3e3, 1e6) for releases in (2, 10)]


def test_the_sum_by_parts_is_the_integral():
    exact, room = Exact(LaplaceMechanism(1e-3), 3), mpf(4)
    density = [mpmath.quad(lambda x, j=j: x ** (j - 1) * mpmath.exp(-x) / mpmath.factorial(j - 1) * -mpmath.expm1(2 * (x - room)),
                           [0, room]) for j in (1, 2, 3)]
    direct = (-mpmath.expm1(-2 * room) + 3 * density[0] + 3 * density[1] + density[2]) / 8
    assert abs(exact.of(exact.total - 2 * room)[0] - direct) < mpf(10) ** -20


@pytest.mark.parametrize(("budget", "releases"), CASES)
def test_delta_and_eps(budget, releases):
    noise = LaplaceMechanism(1 / budget)
    many, exact = noise.self_compose(releases), Exact(noise, releases)
    total = float(exact.total)
    for eps in (0.0, total / 2, total - 60, total - 0.5):
        delta = exact.of(eps)[0]
        low, high = (many.log_delta(eps, bound=bound) for bound in ("lower", "upper"))
        assert mpf(low) <= mpmath.log(delta) <= mpf(high)
        # The grid of budgets above 1e5 has steps above .1.
        assert high - low <= 1e-2 + budget / 3e5
    for delta in (1e-6, 0.3):
        low, high = (many.epsilon(delta, bound=bound) for bound in ("lower", "upper"))
        assert exact.of(high)[0] <= delta <= exact.of(low)[0]
        assert high - low <= 2e-7 * total + 1e-5


@pytest.mark.slow
@pytest.mark.parametrize(("budget", "releases"), [(1e3, 3), *CASES[::2]])
def test_tail_of_the_loss_curve_and_divergences(budget, releases):
    noise = LaplaceMechanism(1 / budget)
    many, exact = noise.self_compose(releases), Exact(noise, releases)
    total = float(exact.total)
    below, above = (many.tradeoff(bound=bound) for bound in ("lower", "upper"))
    for eps in (total - 20, total - 3):
        delta, tail = exact.of(eps)
        low, high = (many.loss_tail(eps, bound=bound) for bound in ("lower", "upper"))
        assert low <= tail <= high <= (2 + budget / 1e5) * low
        # The test that rejects at losses above eps has the errors e^-eps (tail - delta) and 1 - tail.
        log_alpha = float(mpmath.log(tail - delta) - mpf(eps))
        log_beta = mpmath.log(1 - tail)
        assert below.log_beta(log_alpha * (1 + 1e-14)) - 1e-9 <= log_beta + total * 1e-13
        assert log_beta - total * 1e-13 <= above.log_beta(log_alpha) + 1e-9
    orders = np.array([1.0, 2.0, 16.0])
    assert (many.rdp(orders, bound="lower") <= many.rdp(orders)).all()
    # The Gaussian curve of the larger mu is below each test of a single release repeated.
    assert noise.gdp_mu(bound="lower") <= many.gdp_mu(bound="lower") <= many.gdp_mu()
    assert many.gdp_mu() <= math.sqrt(releases) * noise.gdp_mu() * (1 + 1e-12)


@pytest.mark.parametrize(("one", "releases"), [
    (RandomizedResponse(700.0), 5), (GeometricMechanism(700.0), 2), (GeometricMechanism(150.0, 6), 5),
    slow(LaplaceMechanism(1e-3).subsampled(0.3), 5), (GeometricMechanism(150.0, 6).subsampled(0.3), 5),
    slow(FiniteRandomizer([[1 - 1e-300, 1e-300], [0.25, 0.75]]), 2),
], ids=repr)
def test_bounds_are_in_order(one, releases):
    many = one.self_compose(releases)
    top = many.epsilon(0.0)
    eps = np.array([0.0, 1.0, 0.3 * top, 0.5 * top, top - 20, top - 1])
    for ask in (
        lambda bound: many.log_delta(eps, bound=bound), lambda bound: many.loss_tail(eps[1:], bound=bound),
        lambda bound: many.tradeoff(bound=bound).log_beta(np.array([-1e3, -50.0, -5.0, -0.5])),
        lambda bound: many.gdp_mu(bound=bound), lambda bound: many.rdp(np.array([1.0, 2.0, 16.0]), bound=bound),
        lambda bound: np.array([many.epsilon(delta, bound=bound) for delta in (1e-9, 1e-3, 0.5)]),
    ):
        low, high = ask("lower"), ask("upper")
        assert np.all(low <= high)


@pytest.mark.slow
def test_sums_over_pairs_leave_out_what_overflows():
    noise = LaplaceMechanism(1e-3)
    many = noise.self_compose(3)
    for eps in (0.0, 500.0, 1500.0, 2900.0):
        low, high = (many.log_delta(eps, bound=bound) for bound in ("lower", "upper"))
        assert mpf(low) <= mpmath.log(Exact(noise, 3).of(eps)[0]) <= mpf(high)


@pytest.mark.parametrize("budget", [1e3, 2e4, 1e5, 1e6])
def test_the_largest_loss_is_found(budget):
    pair = LaplaceMechanism(1 / budget)._pair_info()
    scale = pair.scale(-60.0)
    # The loss is b - 2 X with probability 1/2, so that its mean is b - 1 and its variance 3.
    assert scale.mean == pytest.approx(budget - 1, abs=0.3)
    assert scale.var == pytest.approx(3, abs=0.5)


@pytest.mark.parametrize("users", [2, 6, 100])
@pytest.mark.parametrize("budget", [34.0, 36.0, 37.0, 45.0, 300.0])
def test_mu_is_at_most_that_of_the_pure_budget(users, budget):
    for kind in (Clones, StrongerClones):
        lower, upper = (kind(users, budget).gdp_mu(bound=bound) for bound in ("lower", "upper"))
        assert 0 < lower <= upper <= RandomizedResponse(budget).gdp_mu() * (1 + 1e-14)


@pytest.mark.parametrize(("users", "budget"), [(4, 1.0), (20, 0.5), slow(1000, 1.0), (3, 1e-6), (5, 30.0)])
def test_a_huge_order_has_nearly_the_pure_budget(users, budget):
    clones = StrongerClones(users, budget)
    orders = np.array([2.0, *np.array([1e6, 1e9, 1e12, 1e15, 1e300]) / budget])
    lower, upper = (clones.rdp(orders, bound=bound) for bound in ("lower", "upper"))
    assert (np.diff(lower) >= 0).all()
    assert (lower <= upper).all()
    assert lower[-1] > budget * (1 - 1e-6)
