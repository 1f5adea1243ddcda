"""Two users of Gaussian noise: against sums over a grid of both messages, quadrature, and moments in exact form."""

import math

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr

from shufflebounds.mechanisms import GaussianMechanism
from shufflebounds.shuffle import Shuffled
from tests.strategies import slow, thinned


def masses(place, sigma, edges):
    """Return the probabilities of the cells between the edges for a message of the value `place`."""
    return np.diff(ndtr((edges - place) / sigma))


def grid_delta(first, second, other, sigma, eps, cells):
    """Return delta if the analyst sees the cells of the two messages, without their order: a lower bound close to delta."""
    edges = np.linspace(-9 * sigma, 1 + 9 * sigma, cells + 1)
    a, b, z = (masses(place, sigma, edges) for place in (first, second, other))
    both = [np.outer(one, z) + np.outer(z, one) for one in (a, b)]
    return float(np.maximum(both[0] - math.exp(eps) * both[1], 0).sum()) / 2


@pytest.mark.parametrize(("sigma", "eps"), [(1.0, 0.7), (0.5, 2.0), slow(3.0, 0.1), slow(0.3, 8.0)])
def test_delta_is_that_of_the_grid(sigma, eps):
    protocol = Shuffled(GaussianMechanism(sigma), 2)
    assert protocol.argument(eps) == "every dataset"
    exact = max(grid_delta(0, 1, other, sigma, eps, 1500) for other in (0, 1))
    lower, upper = (protocol.delta(eps, bound=bound) for bound in ("lower", "upper"))
    assert lower <= upper <= lower * (1 + 1e-4)
    assert exact * (1 - 1e-9) <= upper
    assert lower <= exact * (1 + 1e-3)


def test_no_dataset_has_a_larger_delta():
    random = np.random.default_rng(2)
    for sigma, eps in ((1.0, 0.3), (0.6, 1.5)):
        upper = Shuffled(GaussianMechanism(sigma), 2).delta(eps)
        for a, b, z in random.random((25, 3)):
            assert grid_delta(a, b, z, sigma, eps, 150) <= upper


def log_moment(order, mu):
    """Return the log of the sum of Q^a P^(1-a) for P = N(0)^2 and Q = (N(mu) N(0) + N(0) N(mu))/2, a whole number a."""
    with mpmath.workdps(60):
        square = mpmath.mpf(mu) ** 2 / 2
        pairs = ((k, order - k) for k in range(order + 1))
        total = mpmath.fsum(mpmath.binomial(order, k) * mpmath.exp((k * (k - 1) + j * (j - 1)) * square) for k, j in pairs)
        return float(mpmath.log(total) - order * mpmath.log(2))


@pytest.mark.parametrize(("sigma", "order"), thinned(
    [(3.0, 32), (1.0, 2), (1.0, 9), (0.4, 3), (50.0, 4), (3.0, 400), (0.4, 900)], 3))
def test_whole_orders_are_the_sums_over_binomial_coefficients(sigma, order):
    protocol = Shuffled(GaussianMechanism(sigma), 2)
    lower, upper = (protocol.rdp(float(order), bound=bound) for bound in ("lower", "upper"))
    exact = log_moment(order, 1 / sigma) / (order - 1)
    assert exact * (1 - 1e-12) <= upper
    # In the other order the divergence may be larger, but not for these orders.
    assert lower <= exact * (1 + 1e-12)
    assert upper <= lower * (1 + 1e-3)


def test_divergences_between_whole_orders_grow_and_meet_the_divergence_of_order_one():
    protocol = Shuffled(GaussianMechanism(0.8), 2)
    orders = np.array([1.0, 1 + 1e-9, 1.001, 1.5, 2.0, 7.3, 40.0])
    lower, upper = (protocol.rdp(orders, bound=bound) for bound in ("lower", "upper"))
    assert (lower <= upper).all()
    assert (upper <= lower * (1 + 1e-4)).all()
    assert (np.diff(lower) > -1e-5 * lower[1:]).all()


def thinned_delta(other, share, eps):
    """Return delta of sigma = 1 for messages in cells that each user sends with probability `share`, without their names."""
    edges = np.linspace(-9, 10, 1500)
    a, b, z = (masses(place, 1.0, edges) for place in (0, 1, other))
    one = [share * (1 - share) * (target + z) for target in (a, b)]
    both = share**2 * grid_delta(0, 1, other, 1.0, eps, 1500)
    return both + float(np.maximum(one[0] - math.exp(eps) * one[1], 0).sum())


@pytest.mark.parametrize(("eps", "log_delta"), thinned([(0.5, -2.5605), (1.0, -3.5324), (2.0, -6.0651)], 2))
def test_one_message_of_two_users_does_not_tell_whose_it_is(eps, log_delta):
    exact = max(thinned_delta(other, 0.5, eps) for other in (0, 1))
    assert math.log(exact) == pytest.approx(log_delta, abs=1e-3)
    some = Shuffled(GaussianMechanism(1.0), 2, 0.5)
    lower, upper = (some.delta(eps, bound=bound) for bound in ("lower", "upper"))
    assert lower <= exact * (1 + 1e-3)
    assert exact <= upper <= lower * (1 + 1e-4)


def thinned_moment(order, mu, share):
    """Return the mean of (Q/P)^a under P with 30 digits, for the target's values mu and 0, and the other user's value 0."""
    with mpmath.workdps(30):
        a, mu, share = mpmath.mpf(order), mpmath.mpf(mu), mpmath.mpf(share)
        m, normal = mu / mpmath.sqrt(2), mpmath.npdf

        # The density of F_p at t is 2 exp(-p^2/2) cosh(p t) times the normal density.
        one = mpmath.quad(lambda t: ((1 + mpmath.exp(mu * t - mu**2 / 2)) / 2) ** a * normal(t),
                          mpmath.linspace(-15, a * mu + 15, 12))
        two = 2 * mpmath.quad(lambda t: (mpmath.exp(-m**2 / 2) * mpmath.cosh(m * t)) ** a * normal(t),
                              mpmath.linspace(0, a * m + 15, 9))
        two *= mpmath.exp(a * (a - 1) * m**2 / 2)
        return (1 - share) ** 2 + 2 * share * (1 - share) * one + share**2 * two


@pytest.mark.parametrize(("mu", "share", "order", "gap"), [
    (1.0, 0.5, 2.0, 0.04), slow(2.5, 0.9, 1.01, 0.02), slow(0.01, 1e-6, 40.0, 0.04), slow(1.0, 0.5, 32.0, 1e-4),
])
def test_divergences_of_two_users_who_may_not_participate(mu, share, order, gap):
    # This is the divergence of one dataset, for one order of the target's values.
    exact = float(mpmath.log(thinned_moment(order, mu, share)) / (order - 1))
    protocol = Shuffled(GaussianMechanism(1 / mu), 2, share)
    lower, upper = (protocol.rdp(order, bound=bound) for bound in ("lower", "upper"))
    assert lower <= exact * (1 + 1e-12)
    assert exact * (1 - 1e-12) <= upper <= lower * (1 + gap)
    assert exact <= lower * (1 + 1e-4)


@pytest.mark.slow
def test_no_dataset_of_two_users_who_may_not_participate_has_larger_divergences():
    edges, random, share = np.append(np.append(-np.inf, np.linspace(-6, 7, 300)), np.inf), np.random.default_rng(3), 0.4
    protocol = Shuffled(GaussianMechanism(1.0), 2, share)
    orders, eps = np.array([1.2, 2.0, 5.0]), np.array([0.0, 0.4, 1.1])
    above, most = protocol.rdp(orders), protocol.delta(eps)
    for values in [(0, 1, 0), (1, 0, 0), (1, 0, 0.5), *random.random((8, 3))]:
        a, b, z = (masses(place, 1.0, edges) for place in values)
        p, q = (np.append(share * (1 - share) * (x + z), share**2 * (np.outer(x, z) + np.outer(z, x)) / 2) for x in (a, b))
        for order, divergence in zip(orders, above):
            moment = (p**order * q ** (1 - order)).sum() + (1 - share) ** 2
            assert math.log(moment) / (order - 1) <= divergence * (1 + 1e-9)
        for e, delta in zip(eps, most):
            assert np.maximum(p - math.exp(e) * q, 0).sum() <= delta * (1 + 1e-9)


@pytest.mark.slow
def test_divergences_with_participation_are_finite_at_all_orders_and_grow():
    orders = np.array([1.0, 1 + 1e-12, 1.7, 8.0, 300.0, 1e4, 1e9])
    for share in (1e-12, 0.5, 1 - 1e-16):
        protocol = Shuffled(GaussianMechanism(1.0), 2, share)
        lower, upper = (protocol.rdp(orders, bound=bound) for bound in ("lower", "upper"))
        assert (lower > 0).all()
        assert (lower <= upper).all()
        assert (np.diff(upper) >= -1e-6 * upper[1:]).all()
        assert protocol.rdp(math.inf) == math.inf


@pytest.mark.slow
def test_two_participating_users_bound_more_users_and_a_smaller_participation():
    both, orders = Shuffled(GaussianMechanism(1.0), 2), np.array([2.0, 9.0])
    for other in (Shuffled(GaussianMechanism(1.0), 2, 0.99), Shuffled(GaussianMechanism(1.0), 3)):
        assert other.delta(1.0) <= both.delta(1.0)
        assert (other._closed.renyi_limit(orders, True) <= both.rdp(orders)).all()
    assert Shuffled(GaussianMechanism(0.4), 3, 0.99).argument(1.0) == "every dataset of a stronger protocol"
    assert both._of_users(2, blanket=True).argument(1.0) == "privacy blanket"


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "delta"), [(0.4, 1e-6), (0.4, 1e-2), (1.0, 1e-6)])
def test_eps_does_not_rise_from_two_users_to_more(sigma, delta):
    values = [Shuffled(GaussianMechanism(sigma), users).epsilon(delta) for users in (2, 3, 4)]
    assert values[0] >= values[1] >= values[2]


def test_eps_of_three_users_is_at_most_that_of_two():
    # Of little noise the bound for two users is the smaller one, and its own search for eps has the smaller tolerance.
    noise = GaussianMechanism(0.4)
    assert Shuffled(noise, 2).delta(Shuffled(noise, 3).epsilon(1e-2)) >= 1e-2 * (1 - 1e-9)


def test_listed_values_have_the_same_worst_pair():
    mechanism = GaussianMechanism(0.7)
    assert mechanism.shuffled(2, inputs=(0.0, 0.3, 1.0)).delta(1.0) == mechanism.shuffled(2).delta(1.0)
    nearer = GaussianMechanism(1.4).shuffled(2).delta(1.0)
    assert mechanism.shuffled(2, inputs=(0.0, 0.5)).delta(1.0) == pytest.approx(nearer, rel=1e-9)


@pytest.mark.slow
def test_noise_that_hides_nothing_or_everything_is_left_to_the_general_bounds():
    for sigma in (0.1, 1e6):
        lower, upper = (Shuffled(GaussianMechanism(sigma), 2).delta(0.0, bound=bound) for bound in ("lower", "upper"))
        assert 0 < lower <= upper <= 1
