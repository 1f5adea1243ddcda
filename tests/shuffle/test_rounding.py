"""Each test fails if a rounding allowance, a term of a bound or a search range is changed so that a bound is no longer valid."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from shufflebounds._core import _excess
from shufflebounds._engines.bits import records as _record_pair
from shufflebounds._engines.clones.clone_families import GaussianFamily
from shufflebounds.mechanisms import FiniteRandomizer, LaplaceMechanism, Rappor
from shufflebounds.shuffle import FlippedReports, Shuffled
from tests.strategies import slow, thinned


@pytest.mark.parametrize("eps", thinned([0.0, 0.3, 1.0, 2.5], 2))
@pytest.mark.parametrize(("others", "fakes", "bins", "flip"), [(0, 0, 2, 0.2), (30, 0, 2, 0.1), (12, 25, 5, 0.03), (0, 9, 3, 0.3)])
def test_the_bound_of_one_bin_is_the_largest_difference_of_its_tails(others, fakes, bins, flip, eps):
    """S is the sum of the other reports in the bin; the target's bit is 1 with probability q or 1 - q."""
    q, factor = Fraction(flip), Fraction(math.exp(eps))
    masses = [Fraction(1)]
    for one in [q] * others + [(1 - q) / bins + (1 - Fraction(1, bins)) * q] * fakes:
        masses = [(1 - one) * a + one * b for a, b in zip([*masses, 0], [0, *masses])]
    best, below, before = Fraction(0), Fraction(0), Fraction(0)
    for mass in masses:
        before, below = below, below + mass
        best = max(best, (1 - q) * below + q * before - factor * (q * below + (1 - q) * before))
    found = _record_pair.one_bin(others, fakes, bins, flip, eps)
    if best > Fraction(1, 10**9):
        assert math.log(best) - 1e-9 <= found <= math.log(best)
    else:
        assert found <= (math.log(best) if best > 0 else -700)


def test_rappor_raises_the_gains_of_the_common_bits_for_the_upper_bound():
    ratios = Rappor(f=0.5, p=0.75, q=0.25, hashes=2, bits=16).dataset_laws().ratios
    # A bit that the value sets is 1 with probability 5/8, another one with 3/8. With k ones of the value's bits, a = 1 and
    # b = ((5/8) (5/8)/((3/8) (3/8)))^k.
    assert np.all(ratios.log_a > 0)
    assert np.all(ratios.log_b < 2 * math.log(5 / 3) * np.arange(3) + 1e-18)
    assert ratios.log_b == pytest.approx(2 * math.log(5 / 3) * np.arange(3), abs=1e-12)


def test_the_error_of_a_long_sum_of_the_contour_is_charged():
    """At this precision the rule has more than 1e5 nodes. A sum of that many terms in doubles has an error bound above 1e-11."""
    generator = np.random.default_rng(3)
    for _ in range(3):
        p, q = generator.dirichlet(np.ones(5)), generator.dirichlet(np.full(5, 30.0))
        generator.dirichlet(np.ones(40)), generator.dirichlet(np.full(40, 30.0))
    q = 0.6 * q + 0.4 * p
    r = 0.5 * (p + q)
    low, high = _excess.log_excess((p - 1.02 * q) / r, np.log(r), np.array([0, 5]), np.array([300.0]), 1e-12, 6e8)
    assert 1e-11 < high - low < 1e-9


@pytest.mark.parametrize(("low", "high"), [(0.4, 0.5), (1.0, 1.3), (2.0, 2.0), (0.9, 2.5)])
@pytest.mark.parametrize("eps", [0.05, 1.0])
def test_the_terms_of_a_window_of_gaussian_noise_hold_for_every_budget_between_its_ends(low, high, eps):
    terms = GaussianFamily().window(np.array([-1.5, -8.0, -40.0]), low, high, eps)
    with mpmath.workdps(40):
        for budget in (low, (low + high) / 2, high):
            for reach, scale, tail in zip(terms.reach, terms.log_scale, terms.log_tail):
                near, far = (mpmath.ncdf(-(mpmath.mpf(float(reach)) + side) * budget) for side in (-0.5, 0.5))
                beyond = near - mpmath.exp(eps) * far
                assert beyond <= 0 or mpmath.log(beyond) <= tail
                assert 1 - near - far <= mpmath.exp(float(scale)) * (1 + mpmath.mpf(2) ** -50)
                if budget == low == high:
                    assert mpmath.log(beyond) > tail - 1e-11
        # The terms hold in between, and each is attained at an end of the interval.
        assert np.all(np.diff(terms.log_tail) < 0)


@pytest.mark.parametrize(("users", "fakes", "bins", "flip", "eps"),
                         [(4, 1, 2, 0.05, 1.64), (4, 1, 5, 0.1, 1.25), (2, 2, 2, 0.1, 1.0)])
def test_the_search_over_datasets_among_dummy_reports_includes_the_last_counts(users, fakes, bins, flip, eps):
    """In the first two cases, the worst dataset is that with all other users outside of the first bin."""
    protocol = FlippedReports(users, fakes, bins, flip, view="sums")
    others = users - 1
    largest = max(protocol._closed.fake_table.log_delta((others - i, i), (j, others - j), eps).lower
                  for i in range(others + 1) for j in ([i] if bins == 2 else range(i + 1)))
    found = protocol._closed._searched_sums(eps)
    assert found.lower <= largest + 1e-9
    assert largest <= found.upper


@pytest.mark.parametrize("users", [3, slow(8)])
def test_bounds_of_enumerated_bits_contain_the_exact_value_where_terms_cancel(users):
    """Just below the pure budget the difference of the two probabilities is as small as their rounding errors."""
    generator = np.random.default_rng(users)
    for _ in range(40):
        p, q = (Fraction(int(n), 1024) for n in generator.integers(1, 1024, 2))
        if p == q:
            continue
        randomizer = FiniteRandomizer([[float(1 - p), float(p)], [float(1 - q), float(q)]])
        budget = randomizer.epsilon(0.0, bound="lower")
        eps = budget * (1 - 2.0 ** -float(generator.integers(30, 50)))
        factor = Fraction(math.exp(eps))
        exact = Fraction(0)
        for ones in range(users):
            masses = [Fraction(1)]
            for one in [p] * ones + [q] * (users - 1 - ones):
                masses = [(1 - one) * a + one * b for a, b in zip([*masses, 0], [0, *masses])]
            laws = [[(1 - one) * a + one * b for a, b in zip([*masses, 0], [0, *masses])] for one in (p, q)]
            for first, second in (laws, laws[::-1]):
                exact = max(exact, sum((max(a - factor * b, Fraction(0)) for a, b in zip(first, second)), Fraction(0)))
        shuffled = Shuffled(randomizer, users)
        assert shuffled.delta(eps, bound="lower") <= exact <= shuffled.delta(eps)


def test_the_truncated_mass_of_a_density_has_a_negative_logarithm():
    with pytest.raises(ValueError, match=r"log_cut=0\.5 must be in \[-700, 0\]"):
        LaplaceMechanism(1.0).excess_laws(log_cut=0.5)
