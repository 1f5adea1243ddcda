"""Laplace noise on a whole interval: the steps of docs/theorems/laplace-interval, and the bound that follows from it."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad

from shufflebounds.mechanisms import FiniteRandomizer, LaplaceMechanism
from shufflebounds.mechanisms._laplace_interval import interval_datasets
from tests.shuffle._boxes import Ranges
from tests.strategies import slow

WIDEST = math.log(10)
"""Largest length of the interval for which the theorem is stated."""

LEAST = 0.1
"""Length of the interval below which the inequality is proved without interval arithmetic."""


def density(x, y):
    return 0.5 * np.exp(-np.abs(y - x))


def stop_loss(first, second, other, ratio, c, length):
    """Return the integral of (R_first - ratio R_second - c R_other)_+ from its definition, by quadrature between kinks."""
    def integrand(y):
        return max(0.0, density(first, y) - ratio * density(second, y) - c * density(other, y))

    # Beyond the outermost inputs the three densities are multiples of one exponential function.
    ends = 2 * integrand(0.0) * 0.5 + 2 * integrand(length) * 0.5
    places = np.unique([0.0, first, second, other, length])
    return ends + sum(quad(integrand, a, b, limit=400)[0] for a, b in pairwise(places))


def closed(length, ratio, place, c):
    """Return three stop-loss transforms of the theorem: (a, L) with another user at 0, and (0, L) with another at 0 and at L."""
    top, a = math.exp(length), math.exp(place)
    s, base = ratio / top, 1 - ratio - c
    v = 1 / a - s
    if c >= a * a * v:
        inner = 0.0
    elif c >= v:
        inner = 1 - math.sqrt(c * v) - math.sqrt(s * (a - c))
    elif c >= a - ratio * top:
        inner = 1 - c - math.sqrt(s * (a - c))
    else:
        inner = base
    near = 0.0 if 1 - c <= s else base if 1 - c >= ratio * top else 1 - c - math.sqrt(s * (1 - c))
    far = 0.0 if ratio + c >= top else base if ratio + c <= 1 / top else 1 - math.sqrt((ratio + c) / top)
    return inner, near, far


def drawn(rng, longest=WIDEST):
    """Return random L, E, a and c for which the pair (a, L) has a positive divergence in both orders."""
    length = rng.uniform(0.02, longest)
    place = length * rng.uniform(0.01, 0.99)
    ratio = math.exp((length - place) * rng.uniform(-1, 1))
    return length, ratio, place, rng.uniform(1 - ratio * math.exp(length), math.exp(length) - ratio)


def test_closed_stop_loss_transforms():
    """The three formulas of the theorem agree with the definition, by quadrature."""
    rng = np.random.default_rng(11)
    for _ in range(60):
        length, ratio, place, c = drawn(rng)
        found = closed(length, ratio, place, c)
        exact = [stop_loss(*pair, ratio, c, length) for pair in ((place, length, 0.0), (0.0, length, 0.0), (0.0, length, length))]
        assert found == pytest.approx(exact, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("longest", [0.3, 1.0, WIDEST])
def test_mixture_of_ends_is_larger(longest):
    """The inequality of the theorem holds with the weight p = 2h/(1 + h), h = (A - 1)/(E Lambda), at random points."""
    rng = np.random.default_rng(5)
    for _ in range(20_000):
        length, ratio, place, c = drawn(rng, longest)
        h = math.expm1(place) / (ratio * math.exp(length))
        assert 0 < h < 1
        p = 2 * h / (1 + h)
        inner, near, far = closed(length, ratio, place, c)
        assert inner <= (1 - p) * near + p * far + 1e-12


def test_mixture_fails_on_a_long_interval():
    """At L = 4 no weight of the two ends satisfies the inequality, so the theorem needs a limit of the length."""
    length, ratio, place = 4.0, 1.3, 0.4
    least, most = 0.0, 1.0
    for c in np.linspace(1 - ratio * math.exp(length), math.exp(length) - ratio, 20_001).tolist():
        inner, near, far = closed(length, ratio, place, c)
        if far > near:
            least = max(least, (inner - near) / (far - near))
        elif far < near - 1e-9:
            most = min(most, (near - inner) / (near - far))
    assert least > 1.5 * most


def lower_bound(lows, highs, shortest, longest):
    """Return lower bounds of the theorem's F over boxes of (ln A, -ln s, tau), for all L between `shortest` and `longest`."""
    least, most = math.exp(shortest), math.exp(longest)

    def parts(lows, highs):
        log_a, minus_log_s, tau = Ranges.variables(lows, highs)
        a, s = log_a.exp(), (-minus_log_s).exp()
        v = a.inverse() - s
        t = tau * (a - 1.0) + 1.0
        c = v * t * t
        # `weight` is p/(A - 1), which decreases in Lambda; the factor by which it is multiplied increases in Lambda.
        weight, largest = ((s * top**2 + a - 1.0).inverse() * 2.0 for top in (most, least))
        far = 1.0 - (s + c * (1 / least)).sqrt()
        below, above = (s * (1.0 - c)).sqrt(), (s * (a - c)).sqrt()
        gain = far - (1.0 - c) + below
        first = s * (below + above).inverse() - v * t * tau
        rest = (1.0 - tau) * (1.0 - tau) * v * a.inverse() * (a - 1.0) * (1.0 - v * t + above).inverse()
        return first, gain, far, weight, largest, first + gain * weight, far * weight - rest

    radius = [0.5 * (high - low) for low, high in zip(lows, highs)]
    middle = [low + half for low, half in zip(lows, radius)]
    best = np.full(lows[0].size, -np.inf)
    with np.errstate(invalid="ignore", divide="ignore"):
        first, gain, far, _, largest, *formulas = parts(lows, highs)
        found = [first.low[0] + np.minimum(0.0, gain.low[0]) * largest.high[0]]
        for formula, centre, factor in zip(formulas, parts(middle, middle)[-2:], (gain, far)):
            change = sum(np.maximum(np.abs(formula.low[i + 1]), np.abs(formula.high[i + 1])) * radius[i] for i in range(3))
            value = np.maximum(centre.low[0] - change, formula.low[0])
            # The weight is smallest at the largest Lambda, which is the worst case for a nonnegative factor.
            found.append(np.where(factor.low[0] >= 0, value, -np.inf))
    for value in found:
        best = np.maximum(best, np.where(np.isfinite(value), value, -np.inf))
    return best


def proved(shortest, longest, rounds=12):
    """Return whether F > 1e-7, far above rounding errors, for all L in the range.

    Boxes in which the bound is too small are divided. The answer is False if boxes are left after `rounds` divisions.
    """
    widths = np.array([longest, 2 * longest, 1.0]) / 16
    lows = np.stack(np.meshgrid(*(np.arange(16) * w for w in widths), indexing="ij")).reshape(3, -1)
    for _ in range(rounds):
        log_a, z = lows[0], lows[1]
        # s is between A/Lambda^2 and 1/A.
        lows = lows[:, (z + widths[1] >= log_a) & (z <= 2 * longest - log_a)]
        if not lows.size:
            return True
        if lows.shape[1] > 10**6:
            return False
        low = lows.copy()
        low[1] = np.maximum(low[1], low[0])
        high = lows + widths[:, None]
        high[1] = np.maximum(np.minimum(high[1], 2 * longest - lows[0]), low[1])
        lows = lows[:, ~(lower_bound(list(low), list(high), shortest, longest) > 1e-7)]
        widths = widths / 2
        lows = np.concatenate([lows + (np.array(corner) * widths)[:, None] for corner in np.ndindex(2, 2, 2)], axis=1)
    return False


LENGTHS = [LEAST, 0.2, 0.4, 0.7, 1.0, 1.2, 1.4, 1.6, 1.7, 1.8, 1.9, 2.0, 2.1, 2.2, math.log(10) + 1e-9]


@pytest.mark.parametrize(("shortest", "longest"), [pair if i % 4 == 0 else slow(*pair) for i, pair in enumerate(pairwise(LENGTHS))])
def test_inequality_by_interval_arithmetic(shortest, longest):
    """F > 0 on all boxes of the region, for every length from .1 to ln 10: the part of the proof by interval arithmetic."""
    assert proved(shortest, longest)


def test_inequality_by_hand_for_short_intervals():
    """The inequality 1/(2 Lambda) > 1 - Lambda^-2 + Lambda - 1/Lambda holds for Lambda = e^L and lengths L <= LEAST.

    Larger lengths are covered by interval arithmetic.
    """
    top = math.exp(LEAST)
    assert 1 / (2 * top) > 1 - top**-2 + top - 1 / top
    assert interval_datasets(WIDEST * (1 + 1e-12)) is None
    assert interval_datasets(WIDEST * (1 - 1e-12)) is not None


@pytest.mark.parametrize("longest", [slow(0.5), WIDEST, slow(3.5)])
def test_boxes_compute_the_gap(longest):
    """For a box that is a point, F is the difference of two stop-loss transforms divided by A - 1; it may be negative at L = 3.5.

    The two are that of the mixture of the ends and that of the pair (a, L).
    """
    rng = np.random.default_rng(8)
    gaps = []
    for _ in range(400):
        length = longest * rng.uniform(0.8, 1)
        place = length * rng.uniform(0.05, 0.95)
        ratio, tau = math.exp((length - place) * rng.uniform(-1, 1)), rng.uniform(0, 1)
        a, s = math.exp(place), ratio * math.exp(-length)
        c = (1 / a - s) * (1 + tau * (a - 1)) ** 2
        h = (a - 1) / (ratio * math.exp(length))
        p = 2 * h / (1 + h)
        inner, near, far = closed(length, ratio, place, c)
        gaps.append(((1 - p) * near + p * far - inner) / (a - 1))
        box = [np.array([value]) for value in (place, -math.log(s), tau)]
        found = float(lower_bound(box, box, length, length)[0])
        assert found == pytest.approx(gaps[-1], rel=1e-9, abs=1e-11)
    assert (min(gaps) < 0) == (longest > 3)


def test_inner_inputs_are_combinations_and_a_positive_rest():
    """R_x minus the combination for two grid points is the Green's function inside of the cell, and 0 outside.

    The test compares its mass with the stated one.
    """
    rng = np.random.default_rng(3)
    for _ in range(50):
        width = rng.uniform(0.01, 0.5)
        t = width * rng.uniform(0, 1)
        left, right = math.sinh(width - t) / math.sinh(width), math.sinh(t) / math.sinh(width)
        y = np.concatenate([rng.uniform(-2, 0, 20), rng.uniform(width, 2, 20)])
        combination = left * density(0, y) + right * density(width, y)
        assert combination == pytest.approx(density(t, y), rel=1e-12)
        y = np.linspace(0, width, 201)
        rest = density(t, y) - left * density(0, y) - right * density(width, y)
        green = np.sinh(np.minimum(y, t)) * np.sinh(width - np.maximum(y, t)) / math.sinh(width)
        assert rest == pytest.approx(green, abs=1e-14)
        mass = 1 - math.cosh(width / 2 - t) / math.cosh(width / 2)
        assert np.trapezoid(rest, y) == pytest.approx(mass, rel=2e-3, abs=1e-7)
        assert left + right == pytest.approx(1 - mass, rel=1e-13)


@pytest.mark.parametrize("length", [0.2, 1.0, 2.3])
def test_radius_holds_for_inputs_between_the_points(length):
    """The distance in the bound is at least that of random mixtures of inputs of the interval, computed on a fine grid."""
    data = interval_datasets(length)
    y = np.linspace(0, length, 4001)
    rng = np.random.default_rng(1)
    # Beyond the ends all ratios are constant, which gives two further atoms.
    def row(x):
        inner = density(x, 0.5 * (y[1:] + y[:-1])) * (y[1] - y[0])
        return np.concatenate([[0.5 * math.exp(-x)], inner, [0.5 * math.exp(x - length)]])

    base = np.minimum(row(0.0), row(length))
    largest = 0.0
    for _ in range(200):
        inputs = length * rng.choice([0.0, 1.0, rng.uniform(), rng.uniform()], size=4)
        rows, shares = np.array([row(x) for x in inputs]), rng.dirichlet(np.ones(4))
        largest = max(largest, float(shares @ ((rows - shares @ rows) ** 2 / base).sum(axis=1)))
    assert 0.5 * data.distance < largest <= data.distance


def test_ratio_tail_is_that_of_the_ends():
    """The largest probability of a likelihood ratio above t is at least that of random pairs of inputs, by quadrature."""
    length = 1.7
    tail = interval_datasets(length).ratio_tail
    rng = np.random.default_rng(2)
    for t in (1.01, 1.5, 3.0, 5.4, 5.5):
        exact = 0.5 * math.exp(-0.5 * (length - math.log(t)))
        expected = 1 - exact if math.log(t) < length else 0.0
        assert float(tail(np.array([t]))[0]) == pytest.approx(expected, rel=1e-12)
        y = np.linspace(-20, 20, 200_001)
        for a, j in length * rng.uniform(0, 1, (5, 2)):
            some = density(a, y) > t * density(j, y)
            assert density(a, y)[some].sum() * (y[1] - y[0]) <= expected + 1e-3


def cells(inputs, edges):
    """Return the probabilities of the cells between `edges` under Laplace noise of scale 1, for each input.

    Discretization is a post-processing of the noise.
    """
    def below(z):
        return np.where(z < 0, 0.5 * np.exp(np.minimum(z, 0.0)), 1 - 0.5 * np.exp(-np.maximum(z, 0.0)))

    points = np.concatenate([[0.0], edges, [0.0]])
    rows = below(points[None, :] - np.asarray(inputs)[:, None])
    rows[:, 0], rows[:, -1] = 0.0, 1.0
    return np.diff(rows, axis=1)


@pytest.mark.slow
@pytest.mark.parametrize(("length", "users"), [(0.7, 12), (1.0, 60), (1.0, 1000), (2.0, 300), (2.3, 700)])
def test_above_every_dataset_of_two_cells(length, users):
    """If the analyst learns only one bit of each message, the exact maximum over every dataset is at most the bound."""
    bound = LaplaceMechanism(1.0, length).shuffled(users)
    inputs = length * np.array([0.0, 0.31, 0.55, 0.93, 1.0])
    for edge in (0.0, 0.4 * length, 0.5 * length, length):
        exact = FiniteRandomizer(cells(inputs, [edge])).shuffled(users)
        top = exact.epsilon(1e-9)
        for eps in (0.2 * top, 0.6 * top, 0.95 * top):
            assert exact.log_delta(eps, bound="lower") <= bound.log_delta(eps) + 1e-9


@pytest.mark.parametrize("users", [slow(10), slow(25)])
def test_above_every_dataset_of_three_cells(users):
    """The same holds for three cells and inputs between the grid points, with all datasets enumerated."""
    bound = LaplaceMechanism(1.0).shuffled(users)
    for inputs in ((0.0, 1.0), (0.03, 0.97), (0.0, 0.46)):
        exact = FiniteRandomizer(cells(inputs, [0.2, 0.8])).shuffled(users)
        for eps in (0.02, 0.2, 0.5):
            assert exact.log_delta(eps, bound="lower") <= bound.log_delta(eps) + 1e-9


def test_between_lower_bound_and_blanket():
    """From 1000 users on, the bound is smaller than that of the privacy blanket and close to the lower bound."""
    for users, gap in ((10**3, 0.03), (10**4, 0.011), (10**6, 0.004), (10**12, 0.002)):
        noise = LaplaceMechanism(1.0).shuffled(users)
        lower, upper = (noise.epsilon(1e-6 if users < 10**9 else 1e-14, bound=bound) for bound in ("lower", "upper"))
        assert lower <= upper <= lower * (1 + gap)
    assert LaplaceMechanism(1.0).shuffled(10**4).argument(0.0316) == "worst dataset"
    assert LaplaceMechanism(0.25).shuffled(10**4).argument(0.2) == "privacy blanket"


def test_participation():
    """With fewer messages the bound is smaller, and still at least the lower bound."""
    bounds = [LaplaceMechanism(1.0).shuffled(10**4, participation=share) for share in (1.0, 0.9, 0.3)]
    lower, upper = ([one.log_delta(0.03, bound=bound) for one in bounds] for bound in ("lower", "upper"))
    assert all(a <= b for a, b in zip(lower, upper))
    assert upper[2] < upper[1] < upper[0]
    assert all(one.argument(0.05) in ("worst dataset", "privacy blanket") for one in bounds)
