"""The search from delta to eps, for curves whose crossing with delta is known in closed form."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

from shufflebounds._base.crossing import Curve, crossing, eps_at_each
from shufflebounds._base.types import EXP_SLACK
from tests.strategies import thinned

KERNEL = Path(__file__).parents[2] / "src/_core/crossing.h"

TARGETS = (-1e-6, -0.7, -13.8, -92.0, -650.0)


def gaussian(scale=1.0, offset=0.0, seen=None):
    """Return -(eps/scale)^2/2 + offset, at most 0, whose crossing with a target t is scale * sqrt(2 (offset - t))."""

    def log_delta(eps):
        if seen is not None:
            seen.append(eps)
        return min(0.0, offset - 0.5 * (eps / scale) ** 2)

    return log_delta


@pytest.mark.parametrize("scale", [1e-5, 0.03, 7.0])
@pytest.mark.parametrize("rough", thinned([None, 0.98, 1.02, 0.01, 100.0], 3))
def test_the_crossing_is_found_on_the_chosen_side_wherever_the_rough_curve_lies(scale, rough):
    for upper in [True, False]:
        for target in TARGETS:
            curve = Curve(gaussian(scale), None if rough is None else Curve(gaussian(scale * rough)))
            eps = crossing(curve, target, upper=upper)
            value = curve.log_delta(eps)
            assert value <= target if upper else value >= target
            assert eps == pytest.approx(scale * math.sqrt(-2 * target), rel=4e-13)


@pytest.mark.parametrize("upper", [True, False])
def test_a_good_rough_curve_leaves_few_evaluations(upper):
    seen = []
    crossing(Curve(gaussian(2.0, seen=seen), Curve(gaussian(2.001))), -20.0, upper=upper)
    assert len(seen) <= 6
    seen.clear()
    crossing(Curve(gaussian(2.0, seen=seen), Curve(gaussian(2.0))), -20.0, upper=upper)
    assert len(seen) <= 2


@pytest.mark.parametrize("upper", [True, False])
def test_rough_curves_form_a_chain(upper):
    seen = []
    chain = Curve(gaussian(2.0), Curve(gaussian(2.0001, seen=seen), Curve(gaussian(40.0))))
    assert crossing(chain, -20.0, upper=upper) == pytest.approx(2 * math.sqrt(40), rel=4e-13)
    assert seen


@pytest.mark.parametrize("rough", [None, Curve(gaussian()), Curve(lambda eps: -math.inf), Curve(lambda eps: 0.0)])
def test_a_curve_that_starts_at_or_below_the_target_crosses_at_0(rough):
    for upper in (True, False):
        assert crossing(Curve(lambda eps: -3.0 - eps, rough), -3.0, upper=upper) == 0.0
        assert crossing(Curve(lambda eps: -5.0, rough), -3.0, upper=upper) == 0.0


@pytest.mark.parametrize("rough", [None, Curve(lambda eps: -0.5 * eps)])
def test_a_curve_above_the_target_ends_at_the_pure_budget_or_at_the_cap(rough):
    assert crossing(Curve(lambda eps: -1.0, rough, pure=2.5), -3.0, upper=True) == 2.5
    assert crossing(Curve(lambda eps: -1.0, rough, pure=2.5), -3.0, upper=False) == 2.5
    for upper in (True, False):
        assert crossing(Curve(lambda eps: -1.0, rough, cap=1e3), -3.0, upper=upper) == math.inf
    assert crossing(Curve(lambda eps: -1.0, rough, pure=1e9, cap=1e3), -3.0, upper=True) == 1e9
    assert 6.0 <= crossing(Curve(lambda eps: -1.0, rough, pure=1e9, cap=1e3), -3.0, upper=False) <= 1e3


@pytest.mark.parametrize("pure", thinned([3e-200, 1e-3, 2.0, 9.0, 700.0], 2))
@pytest.mark.parametrize("power", [1, 2, 5, 40])
def test_a_power_of_the_distance_from_the_pure_budget_takes_few_evaluations(pure, power):
    for upper in [True, False]:
        for target in [-0.7, -13.8, -27.6, -92.0, -650.0]:
            seen = []

            def log_delta(eps, seen=seen):
                seen.append(eps)
                return power * math.log1p(-eps / pure) if eps < pure else -math.inf

            eps = crossing(Curve(log_delta, pure=pure), target, upper=upper)
            # Bisection of eps would take up to 50 evaluations.
            assert len(seen) <= 26
            value = log_delta(eps) if eps < pure else -math.inf
            assert value <= target if upper else value >= target or eps == 0
            # Below the absolute tolerance of the search, 0 is a valid lower bound.
            if pure > 1e-100:
                assert eps == pytest.approx(-pure * math.expm1(target / power), rel=1e-12)


@pytest.mark.parametrize("upper", [True, False])
def test_a_steep_fall_close_to_the_pure_budget_is_located(upper):
    # With log(1 - eps/2), delta decreases linearly to 0 at eps = 2 and has the value d at eps = 2 (1 - d).
    curve = Curve(lambda eps: math.log1p(-eps / 2) if eps < 2 else -math.inf, Curve(gaussian()), pure=2.0)
    for delta in (0.5, 1e-3, 1e-12):
        eps = crossing(curve, math.log(delta), upper=upper)
        assert eps == pytest.approx(2 * (1 - delta), rel=1e-12)
        assert curve.log_delta(eps) <= math.log(delta) if upper else curve.log_delta(eps) >= math.log(delta)


@pytest.mark.parametrize("upper", [True, False])
def test_a_search_whose_curve_jumps_ends_near_the_jump_after_few_evaluations(upper):
    # The curve is like a bound from a search with a tolerance: log delta decreases by a jump of .02 at eps = 5, across the target.
    seen = []

    def log_delta(eps):
        seen.append(eps)
        return -0.5 * eps**2 - (0.01 if eps > 5 else -0.01)

    eps = crossing(Curve(log_delta, Curve(gaussian(), settles=1e-9)), -12.5, upper=upper)
    assert (5 < eps < 5.001) if upper else (4.999 < eps <= 5)
    assert len(seen) <= 12
    # If the rough curve states no tolerance, the search finds the jump itself.
    eps = crossing(Curve(log_delta, Curve(gaussian())), -12.5, upper=upper)
    assert eps == pytest.approx(5, rel=4e-13)


@pytest.mark.parametrize("rough", [None, Curve(lambda eps: 0.0 if eps == 0 else -math.inf)])
@pytest.mark.parametrize("upper", [True, False])
def test_a_curve_above_the_target_at_0_alone_ends_the_search(rough, upper):
    eps = crossing(Curve(lambda eps: -1.0 if eps == 0 else -9.0, rough), -3.0, upper=upper)
    assert 0 < eps < 1e-280 if upper else eps == 0


@pytest.mark.parametrize("upper", [True, False])
def test_valid_guess_with_a_tolerance_takes_two_evaluations(upper: bool) -> None:
    # The rough curve is above the exact one for an upper bound, and below it for a lower bound, so its crossing is a valid answer.
    offset, seen = 1e-3 if upper else -1e-3, []

    def exact(eps: float) -> float:
        seen.append(eps)
        return -(1 + 2 * eps) ** 2

    rough = Curve(lambda eps: exact_value(eps) + offset, rtol=1e-6, settles=1e-5)

    def exact_value(eps: float) -> float:
        return -(1 + 2 * eps) ** 2

    found = crossing(Curve(exact, rough), -25.0, upper=upper)
    assert len(seen) == 2
    assert 0 <= (found - 2 if upper else 2 - found) <= 2e-5


@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("settles", [0.0, 1e-6])
def test_an_array_takes_few_evaluations_of_the_curve_for_each_delta(upper, settles):
    seen, scale, deltas = [], 0.03, np.geomspace(1e-30, 1e-3, 100)

    def bounds(eps):
        seen.extend(eps.tolist())
        return 0.5 - 0.5 * (eps / scale) ** 2 - eps

    found = eps_at_each(bounds, deltas, upper=upper, rough=Curve(gaussian(scale), settles=settles), pure=math.inf)
    exact = scale * (np.sqrt(scale**2 + 1 - 2 * np.log(deltas)) - scale)
    assert np.all(np.abs(found / exact - 1) <= max(4e-13, settles))
    assert np.all(found >= exact * (1 - 1e-14)) if upper else np.all(found <= exact * (1 + 1e-14))
    assert set(found.tolist()) <= set(seen)
    assert len(seen) <= (1.5 if settles else 3) * deltas.size


@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("rough", [None, Curve(gaussian(0.9))])
def test_an_array_of_a_curve_with_steps_kinks_and_a_pure_budget_has_the_answers_of_bisection(upper, rough):
    # Steps at multiples of 0.25, a kink at 2, and no loss above 5.
    def bounds(eps):
        value = -np.floor(4 * eps) - np.where(eps > 2, 20 * (eps - 2), 0.0)
        return np.where(eps < 5, value, -np.inf)

    deltas = np.concatenate([[5e-324, 1e-300], np.geomspace(1e-40, 0.9, 60), [1.0]])
    found = eps_at_each(bounds, deltas, upper=upper, rough=rough, pure=5.0)
    low, high = np.zeros(deltas.size), np.full(deltas.size, 5.0)
    for _ in range(60):
        middle = (low + high) / 2
        enough = bounds(middle) <= np.log(deltas)
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    np.testing.assert_allclose(found, np.where(deltas < 1, high, 0.0), rtol=1e-12, atol=1e-280)


@pytest.mark.skipif(not KERNEL.exists(), reason="needs the source tree")
def test_the_kernel_makes_the_same_allowance_for_exp_and_log():
    assert float(re.search(r"#define CROSSING_SLACK (\S+)", KERNEL.read_text(encoding="utf-8"))[1]) == EXP_SLACK


@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("jumps", [True, False])
def test_the_slope_of_a_rough_curve_near_its_pure_budget_ends_no_search(upper, jumps):
    # The rough curve meets the target at 4 (1 - e^-28), with a slope of e^28; the curve itself meets it at 1.87.
    rough = Curve(lambda eps: math.log1p(-eps / 4) if eps < 4 else -math.inf, settles=1e-9, jumps=jumps)
    curve = Curve(gaussian(0.25), rough, pure=4.0)
    eps = crossing(curve, -28.0, upper=upper)
    assert eps == pytest.approx(0.25 * math.sqrt(56), rel=1e-8)


@pytest.mark.parametrize("upper", [True, False])
def test_a_rough_curve_that_is_nearly_flat_at_its_crossing(upper):
    # The rough curve meets the target at 100, and the step that follows from its slope there ends far beyond `cap`.
    flat = Curve(lambda eps: -20.0 + 1e-9 - 1e-11 * eps)
    eps = crossing(Curve(gaussian(20.0), flat), -20.0, upper=upper)
    assert eps == pytest.approx(20 * math.sqrt(40), rel=4e-13)
