"""Values of delta that are decided by the mass at X = 0, or by outcomes rarer than an ulp of 1, against exact enumeration."""

import math
from fractions import Fraction

import pytest

from shufflebounds import mechanisms, sampling, shuffle
from tests.fuzz import two_level

pytest.importorskip("flint")


def assert_encloses(profile, eps, exact, *, close=math.inf):
    """Assert that the bounds of log delta contain the exact value, and that the upper one is close to it."""
    lower, upper = (profile.log_delta(eps, bound=bound) for bound in ("lower", "upper"))
    value = float(exact.log().mid())
    assert lower <= value + 1e-12 * (1 + abs(value))
    assert value - 1e-12 * (1 + abs(value)) <= upper <= value + close


@pytest.mark.parametrize(("randomizer", "share", "users", "eps"), [
    # eps is so large that delta is decided by the event that no other user sends a message that is independent of the value.
    (mechanisms.KaryResponse(2**53, 1.0), 2.0**-53, 2, 0.9),
    (mechanisms.KaryResponse(10**9, 4.0), 1e-9, 3, 3.99),
    (mechanisms.PrivUnit(3, 2.0, cap=1e-16), 1e-16, 5, 1.99),
    (mechanisms.PrivUnit(3, 0.3, cap=1e-18), 1e-18, 30, 0.29),
    # Next to the budget.
    (mechanisms.KaryResponse(162860676664, 5.371978327000494), 1 / 162860676664, 2, 5.371978327000493),
])
def test_upper_bounds_of_rare_outcomes_are_those_of_the_blanket(randomizer, share, users, eps):
    exact = two_level.blanket(randomizer.local_eps, share, users, eps)
    assert_encloses(shuffle.Shuffled(randomizer, users), eps, exact, close=1e-9)


@pytest.mark.parametrize(("randomizer", "share", "steps", "removed", "eps"), [
    (mechanisms.PrivUnit(3, 0.9200445962509276, cap=1.40024348591195e-17), 1.40024348591195e-17, 3, True, 0.6962763786340271),
    (mechanisms.KaryResponse(2**53, 0.8865892692489028), 2.0**-53, 3, False, 0.21813164017026354),
    (mechanisms.PrivUnit(3, 3.1, cap=1e-14), 1e-14, 4, True, 1.840468331737106),
])
def test_allocations_at_kinks(randomizer, share, steps, removed, eps):
    for at in (eps, math.nextafter(eps, 0), math.nextafter(eps, 9)):
        exact = two_level.allocated(randomizer.local_eps, share, steps, at, removed)
        assert_encloses(sampling.AllocationPair(randomizer, steps, removed), at, exact)


def test_a_shuffle_at_a_kink():
    # The lower bound was once -105.9428.
    bins, budget, eps = 7841713223935410, 1.772653929288476, 1.236409241509326
    exact = two_level.alike(budget, 1 / bins, 4, eps)
    assert float(exact.log().mid()) == pytest.approx(-106.0884087, abs=1e-6)
    assert_encloses(shuffle.Shuffled(mechanisms.KaryResponse(bins, budget), 4), eps, exact)


@pytest.mark.parametrize(("budgets", "eps"), [([1.0] * 2, 0.9), ([1.0] * 3, 0.5), ([0.25] * 4, 0.2)])
def test_personalized_budgets_of_many_categories(budgets, eps):
    bound = shuffle.PersonalizedClones.randomized_response(budgets, 2**53)
    exact = two_level.blanket(budgets[0], 2.0**-53, len(budgets), eps)
    assert_encloses(bound, eps, exact, close=1e-9)


def test_a_participation_just_below_one():
    # "No message" is one more outcome, of probability 1e-9, with X < 0. The remaining mass at 0 is 1e-16.
    randomizer, eps = mechanisms.KaryResponse(2**53, 1.0), 0.9
    protocol = shuffle.Shuffled(randomizer, 2, participation=1 - 1e-9)
    exact = float(two_level.blanket(1.0, 2.0**-53, 2, eps).log().mid()) + 2 * math.log1p(-1e-9)
    assert protocol.log_delta(eps) == pytest.approx(exact, abs=1e-10)
    assert protocol.log_delta(eps, bound="lower") == pytest.approx(exact, abs=1e-10)


def test_rows_that_differ_by_little_leave_little_at_zero():
    # The two rows differ by 2**-50, which is all of the mass at X = 0.
    rows = [[0.5, 0.5], [0.5 + 2.0**-50, 0.5 - 2.0**-50]]
    (pair, _) = mechanisms.FiniteRandomizer(rows).excess_laws()
    assert pair.upper.log_rest == pytest.approx(-50 * math.log(2), abs=1e-14)
    assert {law.log_rest for _, law in pair.lower} == {-math.inf}


@pytest.mark.parametrize(("p", "beta", "q"), [
    (math.e, 0.25, math.e), (1 + 2.0**-40, 2.0**-42, 1 + 2.0**-40), (1e200, 1 - 1e-9, 1e200), (3.0, 0.5, 1.5),
    (3.0, 0.25, 1.25 + 2.0**-40),
])
def test_the_masses_of_three_parameters_are_exact(p, beta, q):
    law = mechanisms.RatioBounded(p, beta, q).excess_laws()[0].upper
    share = Fraction(beta) / (Fraction(p) - 1)
    exact = [Fraction(p) * share / Fraction(q)] * 2 + [(1 - (Fraction(p) + 1) * share) / Fraction(q)]
    exact.append((Fraction(q) - 1 - Fraction(beta)) / Fraction(q))
    for log_mass, mass in zip([*law.log_mass, law.log_rest], exact):
        assert math.exp(log_mass) == pytest.approx(float(mass), rel=1e-13, abs=0)


@pytest.mark.parametrize("randomizer", [
    mechanisms.KaryResponse(10, 1.0), mechanisms.KaryResponse(2**53, 1e-6), mechanisms.PrivUnit(3, 5.0, cap=1e-18),
    mechanisms.SubsetSelection(10**6, 3.0, 7), mechanisms.UnaryEncoding(5, p=0.7, q=1e-15), mechanisms.PureLocal(1e-9),
])
def test_the_mass_at_zero_of_two_level_randomizers(randomizer):
    one, both, _ = randomizer._shares()
    law, more = randomizer.excess_laws()[0].upper, math.expm1(randomizer.local_eps) * (one + both)
    assert math.exp(law.log_rest) == pytest.approx(more / (1 + more), rel=1e-12)
