"""The lower bound for shuffled batches: its pair of distributions against enumeration, and its value against quadrature."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr

from shufflebounds.mechanisms import GaussianMechanism
from shufflebounds.sampling import shuffled_sgd_delta
from shufflebounds.sampling.shuffled_batches import largest_entry


@pytest.mark.parametrize(("records", "batch"), [(2, 1), (4, 2), (6, 2), (6, 3)])
@pytest.mark.parametrize(("gradient", "shift"), [(1, 2), (0, 1)])
def test_the_pair_by_all_orders(records, batch, gradient, shift):
    """In every order of the records, one batch sum exceeds all others by `shift`; every batch has it in equally many orders."""
    gradients = [gradient] + [-1] * (records - 1)
    seen = Counter()
    for order in itertools.permutations(range(records)):
        sums = [sum(gradients[i] for i in order[at : at + batch]) + batch for at in range(0, records, batch)]
        seen[tuple(sums)] += 1
    steps = records // batch
    share = Fraction(math.factorial(records), steps)
    assert seen == {tuple(shift * (i == j) for i in range(steps)): share for j in range(steps)}


def hockey_stick(eps, sigma, first, second):
    """Return the exact divergence of the mixtures over two batches with means `first` and `second`, by quadrature."""
    # Because of the kink, the error is proportional to the square of the step, so two step sizes are extrapolated.
    fine, coarse = (trapezoid(eps, sigma, first, second, points) for points in (1601, 801))
    return (4 * fine - coarse) / 3


def trapezoid(eps, sigma, first, second, points):
    y = np.linspace(-8 * sigma, 2 + 8 * sigma, points)

    def law(mean):
        one, other = (np.exp(-((y - m) ** 2) / (2 * sigma**2)) / (sigma * math.sqrt(2 * math.pi)) for m in (mean, 0.0))
        return 0.5 * (np.multiply.outer(one, other) + np.multiply.outer(other, one))

    return float(np.maximum(law(first) - math.exp(eps) * law(second), 0).sum()) * (y[1] - y[0]) ** 2


@pytest.mark.parametrize(("sigma", "eps"), [(0.3, 0.5), (0.5, 1.0), (0.5, 4.0), (1.0, 0.0), (2.0, 0.3)])
def test_two_batches_by_quadrature(sigma, eps):
    exact = max(hockey_stick(eps, sigma, 2.0, 1.0), hockey_stick(eps, sigma, 1.0, 2.0))
    lower = shuffled_sgd_delta(eps, sigma, 2)
    assert 0.4 * exact <= lower <= exact * (1 + 3e-5)
    if sigma <= 0.5:
        # The largest entry contains most of the information.
        assert lower >= 0.9 * exact


@pytest.mark.parametrize(("sigma", "eps"), [(1.0, 0.0), (1.0, 1.0), (0.5, 2.0), (3.0, 0.2)])
def test_one_batch_is_the_gaussian_mechanism(sigma, eps):
    exact = GaussianMechanism(sigma).delta(eps)
    assert exact * (1 - 1e-4) <= shuffled_sgd_delta(eps, sigma, 1) <= exact


@pytest.mark.slow
def test_epochs_are_a_product():
    """Two epochs are compared with the sum over all pairs of intervals, in both orders."""
    sigma, steps, eps = 0.5, 20, 2.0
    p, q = (np.exp(law) for law in largest_entry(sigma, steps))
    two_p, two_q = np.multiply.outer(p, p), np.multiply.outer(q, q)
    exact = max(np.maximum(a - math.exp(eps) * b, 0).sum() for a, b in ((two_p, two_q), (two_q, two_p)))
    assert exact * (1 - 2e-3) <= shuffled_sgd_delta(eps, sigma, steps, 2) <= exact


@pytest.mark.parametrize(("sigma", "steps"), [(0.05, 3), (0.5, 1000), (1.0, 10**6), (1e4, 7), (0.3, 2**53)])
def test_intervals_have_all_the_mass(sigma, steps):
    for law in largest_entry(sigma, steps):
        assert (law < 0).all()
        assert math.fsum(np.exp(law)) == pytest.approx(1.0, abs=1e-9)


def test_the_largest_entry_by_its_own_formula():
    """The bound is at least that of the event that the largest entry exceeds a threshold, computed from its own formula."""
    sigma, steps, eps = 0.4, 100, 4.0
    at = np.linspace(0, 10, 2001)
    first, second = (1 - ndtr(at - mean / sigma) * ndtr(at) ** (steps - 1) for mean in (2.0, 1.0))
    assert shuffled_sgd_delta(eps, sigma, steps) >= (first - math.exp(eps) * second).max() * (1 - 1e-4)


@pytest.mark.slow
def test_shuffled_batches_have_larger_delta_than_sampled_ones():
    """With little noise, delta of shuffled batches is much larger than that of Poisson sampling (Chua et al. 2024)."""
    poisson = GaussianMechanism(0.4).subsampled(1 / 100).self_compose(100)
    assert shuffled_sgd_delta(4.0, 0.4, 100) > 10 * poisson.delta(4.0)


@pytest.mark.parametrize("bad", [(-1, 1, 1), (1, 0, 1), (1, 1, 0), (1, 1, 1, 0), (1, 1, 1, 1.5)])
def test_bad_arguments(bad):
    with pytest.raises(ValueError, match="must be"):
        shuffled_sgd_delta(*bad)


@pytest.mark.parametrize(("sigma", "steps"), [(0.01, 2), (1.0, 100), (3.0, 10**5)])
def test_intervals_have_a_minimum_share_of_the_smaller_tail(sigma, steps):
    # A mass is the difference of two tails. If the mass is a thousandth of the tails, its relative error is a thousand times larger
    # than theirs. At sigma = 0.01 neighbouring tails can be equal doubles, and the interval between them would have mass 0.
    for log_mass in largest_entry(sigma, steps):
        mass = np.exp(log_mass)
        smaller = np.minimum(np.cumsum(mass)[1:-1], np.cumsum(mass[::-1])[::-1][1:-1])
        assert (mass[1:-1] >= 0.999e-3 * smaller).all()
        assert math.fsum(mass) == pytest.approx(1, abs=1e-12)
