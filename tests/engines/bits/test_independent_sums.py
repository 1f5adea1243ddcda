"""Renyi divergences and mu of protocols that release independent sums, against an enumeration of all datasets."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import scipy.stats

from shufflebounds import mechanisms, shuffle
from shufflebounds._core import _bits
from shufflebounds._engines.bits.curve_of_sum import BitTable
from tests.oracles import hockey_stick, logarithm, rational, with_bit
from tests.strategies import slow


def sum_law(ones, zeros, flip):
    """Return the distribution of the sum of flipped bits, with 50 digits."""
    law = [mpmath.mpf(1)]
    for chance in [1 - flip] * ones + [flip] * zeros:
        law = [(law[i] if i < len(law) else 0) * (1 - chance) + (law[i - 1] if i else 0) * chance for i in range(len(law) + 1)]
    return law


def product(laws):
    out = [mpmath.mpf(1)]
    for law in laws:
        out = [a * b for a in out for b in law]
    return out


def divergence(p, q, order):
    if order == 1:
        return mpmath.fsum(a * mpmath.log(a / b) for a, b in zip(p, q))
    return mpmath.log(mpmath.fsum(a**order * b ** (1 - order) for a, b in zip(p, q))) / (order - 1)


def flipped_pairs(users, flip):
    """Yield the outputs of both datasets for every dataset of the other users, whose bins the analyst knows."""
    flip, others = mpmath.mpf(flip), users - 1
    for first, second in itertools.product(range(others + 1), repeat=2):
        if first + second <= others:
            p = product([sum_law(first + 1, others - first, flip), sum_law(second, others - second + 1, flip)])
            q = product([sum_law(first, others - first + 1, flip), sum_law(second + 1, others - second, flip)])
            yield p, q


def column_pairs(users, flip, columns):
    """Yield both distributions of the column sums, for all numbers of other ones; all bits of the target change."""
    flip, others = mpmath.mpf(flip), users - 1
    for ones in itertools.combinations_with_replacement(range(others + 1), columns):
        yield tuple(product([sum_law(a + bit, others - a + 1 - bit, flip) for a in ones]) for bit in (0, 1))


CASES = [
    (shuffle.FlippedReports(4, 0, 3, 0.15, view="sums"), flipped_pairs, (4, 0.15)),
    (shuffle.FlippedReports(2, 3, 4, 0.02, view="sums", fake="known"), flipped_pairs, (5, 0.02)),
    (shuffle.RealSum(4, 0.8, 2, view="columns"), column_pairs, (4, 0.1, 2)),
]


@pytest.mark.parametrize(("protocol", "pairs", "parameters"), CASES)
def test_bounds_enclose_the_largest_divergence_of_all_datasets(protocol, pairs, parameters):
    orders = [1.0, 1.5, 2.0, 8.0, 40.0]
    with mpmath.workdps(50):
        known = [(p, q) for pair in pairs(*parameters) for p, q in (pair, pair[::-1])]
        exact = [float(max(divergence(p, q, mpmath.mpf(order)) for p, q in known)) for order in orders]
        losses = [float(max(mpmath.log(a / b) for a, b in zip(p, q))) for p, q in known]
    lower, upper = (protocol.rdp(orders, bound=bound) for bound in ("lower", "upper"))
    for low, value, high in zip(lower, exact, upper):
        assert low <= value * (1 + 1e-13)
        assert high >= value * (1 - 1e-13)
        assert high - low <= 1e-8 * value
    assert protocol.rdp(math.inf) >= max(losses) * (1 - 1e-15)


@pytest.mark.parametrize("protocol", [case[0] for case in CASES] + [
    slow(shuffle.FlippedReports(2000, 30, 8, 0.05, view="sums")),
    slow(shuffle.RealSum(500, 60.0, 3, view="columns")),
], ids=repr)
def test_mu_is_between_that_of_delta_and_that_of_the_sums(protocol):
    lower, upper = (protocol.gdp_mu(bound=bound) for bound in ("lower", "upper"))
    bins = 2 if isinstance(protocol, shuffle.FlippedReports) else protocol.bits
    fakes = getattr(protocol, "fakes", 0)
    one = shuffle.ShuffledBits(protocol.users + fakes, protocol.flip)
    assert lower <= upper <= math.sqrt(bins) * one.gdp_mu() * (1 + 1e-14)
    # A Gaussian mechanism with the upper mu has a delta of at least that of the protocol.
    gaussian = mechanisms.GaussianMechanism(1 / upper * (1 - 1e-15))
    for eps in np.linspace(0, 0.9, 4) * protocol.epsilon(1e-12):
        assert protocol.log_delta(eps, bound="lower") <= gaussian.log_delta(eps) + 1e-12


def test_uniform_dummies_have_smaller_divergences_than_known_ones():
    uniform, known = (shuffle.FlippedReports(12, 6, 3, 0.1, view="sums", fake=fake) for fake in ("uniform", "known"))
    orders = [1.0, 2.0, 16.0]
    assert (uniform.rdp(orders) <= known.rdp(orders) * (1 + 1e-12)).all()
    assert (uniform.rdp(orders, bound="lower") <= uniform.rdp(orders)).all()
    assert (uniform.rdp(orders, bound="lower") > 0.1 * uniform.rdp(orders)).all()


def test_merged_losses_bound_the_divergence_from_below():
    # The joint distribution of two sums, each of 1000 flipped bits.
    laws = [scipy.stats.binom.pmf(np.arange(1001), 1000, chance) for chance in (0.3, 0.301)]
    p, q = np.multiply.outer(laws[1], laws[0]), np.multiply.outer(laws[0], laws[1])
    for cells, most in ((2**14, 1e-5), (2**6, 1.0)):
        merged = _bits.merged_losses(p, q, cells)
        for eps in (0.0, 0.05, 0.3):
            exact, less = (np.maximum(a - math.exp(eps) * b, 0).sum() for a, b in ((p, q), merged))
            assert exact * (1 - most) <= less <= exact * (1 + 1e-11)


@pytest.mark.parametrize("flip", [Fraction(1, 4), Fraction(3, 7), Fraction(1, 100)])
def test_a_table_of_masses_at_eps_within_rounding_of_a_loss(flip):
    """It is then uncertain which outcome is the last one with a loss of at least eps."""
    masses = [Fraction(1)]
    for chance in (Fraction(1, 4), Fraction(1, 10), Fraction(3, 5), Fraction(1, 3), Fraction(1, 50)):
        masses = with_bit(masses, chance)
    p, q = with_bit(masses, flip), with_bit(masses, 1 - flip)
    logs, budget = np.array([float(logarithm(mass)) for mass in masses]), float(logarithm((1 - flip) / flip))
    table = BitTable(budget, logs, 2e-16 * (1 + float(np.abs(logs).max())), -2000.0)
    losses = [loss for loss in (float(logarithm(a / b)) for a, b in zip(p, q)) if 0 < loss < budget * (1 - 1e-9)]
    for eps in (loss + part * table._blur for loss in losses for part in (-0.9, -0.5, 0.0, 0.5, 0.9)):
        lower, upper = (float(side[0]) for side in table.log_delta(np.array([eps])))
        assert lower <= logarithm(hockey_stick(p, q, rational(eps))) <= upper
    assert float(table.log_delta(np.array([0.9 * losses[0]])).lower[0]) > -math.inf
