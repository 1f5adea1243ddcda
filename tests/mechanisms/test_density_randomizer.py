"""Randomizers given by densities, against closed forms, quadrature, the built-in noise, and exact values of few users."""

import itertools
import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import log_ndtr, ndtr

from shufflebounds import shuffle
from shufflebounds._base.types import ULP
from shufflebounds._engines.inputs.density_cells import RARER, Densities, _beyond
from shufflebounds.mechanisms import DensityRandomizer, FiniteRandomizer, GaussianMechanism, LaplaceMechanism
from tests.oracles import hockey_stick, rational
from tests.strategies import slow

INF = math.inf
TILTED = {"cdf": lambda y, x: y + (x - 0.5) * y * (y - 1), "pdf": lambda y, x: 1 + (x - 0.5) * (2 * y - 1), "inputs": (0, 1),
          "breakpoints": (0, 1), "sf": lambda y, x: (1 - y) * (1 + (x - 0.5) * y)}


def truncated(rate):
    """Return the functions of Laplace noise on [0, 1], conditioned on staying there, with the density at 0 of the lower part."""
    def pdf(y, x):
        return rate * np.exp(-rate * np.abs(y - x)) / (2 - np.exp(-rate * x) - np.exp(-rate * (1 - x)))

    def cdf(y, x):
        low = np.exp(-rate * x) * np.expm1(rate * np.minimum(y, x))
        return (low - np.expm1(-rate * np.maximum(y - x, 0.0))) / (2 - np.exp(-rate * x) - np.exp(-rate * (1 - x)))

    return {"cdf": cdf, "pdf": pdf, "sf": lambda y, x: cdf(1 - y, 1 - x)}


def normal(sf=True, **more):
    return DensityRandomizer(stats.norm.cdf, stats.norm.pdf, (0, 1), (-INF, INF), sf=stats.norm.sf if sf else None, **more)


def laplace(inputs=(0, 1)):
    # ln pdf(y, x) is y - x at the lower end and x - y at the upper one.
    places = np.array(inputs, dtype=float)
    return DensityRandomizer(lambda y, x: stats.laplace.cdf(y - x), lambda y, x: stats.laplace.pdf(y - x), inputs,
                             (-INF, *inputs, INF), sf=lambda y, x: stats.laplace.sf(y - x), limits=(-places, places))


CASES = {
    "tilted": DensityRandomizer(**TILTED),
    "three truncated": DensityRandomizer(**truncated(2.0), inputs=(0, 0.5, 1), breakpoints=(0, 0.5, 1)),
    "normal": normal(),
    "normal without sf": normal(sf=False),
    "four normal": DensityRandomizer(stats.norm.cdf, stats.norm.pdf, (0, 0.3, 0.6, 1), (-INF, INF), sf=stats.norm.sf),
    "laplace": laplace(),
    # The ratio is unbounded at both ends, where one of the densities vanishes.
    "beta": DensityRandomizer(lambda y, x: stats.beta.cdf(y, 1 + x, 2 - x), lambda y, x: stats.beta.pdf(y, 1 + x, 2 - x), (0, 1),
                              (0, 1), sf=lambda y, x: stats.beta.sf(y, 1 + x, 2 - x)),
    # The supports differ.
    "uniform": DensityRandomizer(lambda y, x: np.clip(y - x, 0, 1), lambda y, x: ((y >= x) & (y <= x + 1)) * 1.0, (0, 0.25),
                                 (0, 0.25, 1, 1.25), sf=lambda y, x: np.clip(1 + x - y, 0, 1)),
}
every = pytest.mark.parametrize("randomizer", CASES.values(), ids=CASES)


def integral(randomizer, function):
    """Return the integral of a function of the densities of all inputs, by quadrature between breakpoints."""
    ends = np.clip(randomizer.breakpoints, -40, 41)
    points = np.unique(np.concatenate([np.linspace(a, b, 400) for a, b in itertools.pairwise(ends)]))
    nodes, weights = np.polynomial.legendre.leggauss(8)
    half = np.diff(points)[:, None] / 2
    y = (points[:-1, None] + half * (1 + nodes)).ravel()
    return function(np.array([randomizer.pdf(y, x) for x in randomizer.inputs])) @ (half * weights).ravel()


@pytest.mark.parametrize("eps", [0.0, 0.3, 0.9, 1.0986])
def test_a_closed_form(eps):
    ratio = math.exp(eps)
    cross = (1.5 - 0.5 * ratio) / (1 + ratio)
    exact = cross**2 * (1 + ratio) / 2
    lower, upper = (CASES["tilted"].delta(eps, bound=side) for side in ("lower", "upper"))
    assert lower <= exact * (1 + 1e-12) + 1e-16
    assert upper >= exact * (1 - 1e-12)
    assert upper - lower <= 1e-12
    assert CASES["tilted"].epsilon(0.0) == pytest.approx(math.log(3), rel=1e-13)
    assert CASES["tilted"].epsilon(0.0) >= math.log(3)
    assert CASES["tilted"].local_eps == CASES["tilted"].epsilon(0.0)


@every
@pytest.mark.parametrize("eps", [0.0, 0.2, 1.0, 3.0])
def test_local_delta_by_quadrature(randomizer, eps):
    exact = np.max(integral(randomizer, lambda p: np.maximum(p[:, None] - math.exp(eps) * p, 0.0)))
    lower, upper = (randomizer.delta(eps, bound=side) for side in ("lower", "upper"))
    assert lower <= exact + 3e-5
    assert upper >= exact - 3e-5
    assert upper - lower <= 1e-11


@pytest.mark.slow
@pytest.mark.parametrize(("mine", "built_in"), [("normal", GaussianMechanism(1.0)), ("laplace", LaplaceMechanism(1.0))])
def test_against_the_built_in_noise(mine, built_in):
    randomizer = CASES[mine]
    for eps in (0.0, 0.5, 0.999, 5.0, 25.0):
        lower, upper = (randomizer.log_delta(eps, bound=side) for side in ("lower", "upper"))
        assert lower <= built_in.log_delta(eps)
        assert upper >= built_in.log_delta(eps, bound="lower")
        assert upper == lower or upper - lower < 1e-10 * (1 - lower)
    assert randomizer.epsilon(0.0) == pytest.approx(built_in.epsilon(0.0), rel=1e-13)
    week = randomizer.self_compose(7)
    exact = built_in.self_compose(7).epsilon(1e-6)
    assert week.epsilon(1e-6, bound="lower") <= exact <= week.epsilon(1e-6) * (1 + 1e-9)
    assert week.epsilon(1e-6) < exact * 1.001


@pytest.mark.slow
@pytest.mark.parametrize(("mine", "built_in"), [("normal", GaussianMechanism(1.0)), ("laplace", LaplaceMechanism(1.0))])
def test_shuffled_against_the_built_in_noise(mine, built_in):
    mine, theirs = CASES[mine].shuffled(10**4), built_in.shuffled(10**4, inputs=(0, 1))
    low, high = (theirs.epsilon(1e-6, bound=side) for side in ("lower", "upper"))
    assert mine.epsilon(1e-6, bound="lower") <= high
    assert low <= mine.epsilon(1e-6)
    assert mine.epsilon(1e-6) <= high * 1.003
    assert mine.epsilon(1e-6, bound="lower") >= low * 0.998
    assert mine.argument(0.01) == "worst dataset"


@every
def test_distributions_of_few_cells_bound_the_divergence_of_one_message(randomizer):
    # The upper distributions are those of a randomizer of which this one is a post-processing, the lower ones those of the cells.
    places = list(itertools.permutations(range(len(randomizer.inputs)), 2))
    for eps in (0.0, 0.2, 0.5):
        factor = math.exp(eps)
        exact = integral(randomizer, lambda p, e=factor: np.array([np.maximum(p[i] - e * p[j], 0.0) for i, j in places]))
        for pair, value in zip(randomizer.excess_laws(100 * len(randomizer.inputs), -40.0), exact, strict=True):
            upper = math.exp(pair.upper.log_phi([eps], 1).upper[0])
            lower = [math.exp(law.log_phi([eps], 1).lower[0]) for _, law in pair.lower]
            assert max(lower) - 3e-5 <= value <= upper + 3e-5
            assert upper - min(lower) < 0.02
    # The probabilities of the first input's outputs sum to 1.
    for pair in randomizer.excess_laws(100 * len(randomizer.inputs), -40.0):
        law = pair.upper
        assert np.exp(law.log_mass + law.log_a).sum() + np.exp(law.log_cut).sum() == pytest.approx(1, abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("users", [2, 3])
@pytest.mark.parametrize("eps", [0.0, 0.4])
def test_few_shuffled_users_exactly(users, eps):
    # `exact` is the largest delta over all inputs of the other users and both orders, by quadrature over each output.
    p = [lambda y: 1.5 - y, lambda y: 0.5 + y]
    ratio = math.exp(eps)
    nodes, weights = np.polynomial.legendre.leggauss(200 if users == 2 else 80)
    y, w = (1 + nodes) / 2, weights / 2
    p = np.array([one(y) for one in p])
    exact = 0.0
    for a, b in ((0, 1), (1, 0)):
        for ones in range(users):
            others = [0] * (users - 1 - ones) + [1] * ones
            # `total` is the difference of the densities of the messages, summed over the place of the target's message.
            total = np.zeros((y.size,) * users)
            for place in range(users):
                rest = iter(others)
                factors = [p[a] - ratio * p[b] if i == place else p[next(rest)] for i in range(users)]
                total = total + np.einsum(",".join("ijk"[:users]) + "->" + "ijk"[:users], *factors)
            # All orders of the other users' messages are equally likely.
            total = sum(np.transpose(total, order) for order in itertools.permutations(range(users))) / math.factorial(users)
            gain = np.maximum(total / users, 0.0)
            for _ in range(users):
                gain = gain @ w
            exact = max(exact, float(gain))
    central = CASES["tilted"].shuffled(users)
    assert central.delta(eps, bound="lower") <= exact + 2e-5
    assert central.delta(eps) >= exact - 2e-5
    assert central.delta(eps, bound="lower") >= exact - 2e-3


@pytest.mark.slow
def test_without_a_survival_function_bounds_are_wider_and_valid():
    best, other = CASES["normal"].shuffled(1000), CASES["normal without sf"].shuffled(1000)
    for delta in (1e-4, 1e-8):
        assert best.epsilon(delta, bound="lower") <= other.epsilon(delta)
        assert other.epsilon(delta, bound="lower") <= best.epsilon(delta)
        assert other.epsilon(delta) <= best.epsilon(delta) * 1.05


@pytest.mark.slow
def test_more_inputs_are_less_private():
    two, three = (laplace(inputs).shuffled(1000) for inputs in ((0, 1), (0, 0.5, 1)))
    assert three.epsilon(1e-6) >= two.epsilon(1e-6, bound="lower")
    assert three.epsilon(1e-6) <= two.epsilon(1e-6) * 1.01
    built_in = LaplaceMechanism(1.0).shuffled(1000, inputs=(0, 0.5, 1))
    assert three.epsilon(1e-6, bound="lower") <= built_in.epsilon(1e-6)
    assert built_in.epsilon(1e-6, bound="lower") <= three.epsilon(1e-6)


def test_cells_made_by_hand_give_a_lower_bound():
    edges = np.linspace(0, 1, 9)
    tilted = CASES["tilted"]
    by_hand = FiniteRandomizer(np.array([np.diff(tilted.cdf(edges, x)) for x in tilted.inputs]))
    assert by_hand.epsilon(0.0) < 0.94 < math.log(3)
    assert by_hand.shuffled(1000).epsilon(1e-6) < tilted.shuffled(1000).epsilon(1e-6, bound="lower")


@every
def test_outputs_have_the_distribution(randomizer):
    values = np.repeat(randomizer.inputs, 4000)
    drawn = randomizer.randomize(values, rng=5)
    for x in randomizer.inputs:
        assert stats.kstest(drawn[values == x], lambda y, x=x: randomizer.cdf(y, x)).pvalue > 1e-4
    assert randomizer.randomize([], 1).size == 0


@pytest.mark.slow
def test_composed_sampled_compared():
    tilted = CASES["tilted"]
    assert tilted.self_compose(3).epsilon(1e-6) <= 3 * tilted.local_eps
    assert tilted.rdp(2.0) == pytest.approx(
        math.log(float(mp.quad(lambda y: (mp.mpf(3) / 2 - y) ** 2 / (mp.mpf(1) / 2 + y), [0, 1]))), rel=1e-3)
    assert tilted.tradeoff().delta(0.0) == pytest.approx(0.25, rel=1e-3)
    central = tilted.shuffled(10**6)
    assert isinstance(central, shuffle.Shuffled)
    assert central.epsilon(1e-8) < shuffle.StrongerClones(10**6, tilted.local_eps).epsilon(1e-8)


@pytest.mark.parametrize(("change", "error", "text"), [
    ({"cdf": 3}, TypeError, "cdf=3 must be a function of an array y and one input x"),
    ({"inputs": (0,)}, ValueError, r"inputs=\(0,\) must hold 2 to 16 different numbers"),
    ({"inputs": (0, 0)}, ValueError, "must hold 2 to 16 different numbers"),
    ({"breakpoints": (1, 0)}, ValueError, "must hold at least two increasing numbers"),
    ({"breakpoints": (0,)}, ValueError, "must hold at least two increasing numbers"),
    ({"breakpoints": (0, math.nan)}, ValueError, "must hold at least two increasing numbers"),
    ({"breakpoints": (0, 0.5)}, ValueError, r"cdf\(0.5, 1\) is 0.625 at the last of breakpoints: all outputs must lie between"),
    ({"limits": (1, 2, 3)}, ValueError, r"limits=\(1, 2, 3\) must be a pair"),
    ({"limits": (None, (1.0,))}, ValueError, r"limits has an entry of shape \(1,\): it must be \(2,\)"),
    ({"accuracy": 0.1}, ValueError, r"accuracy=0.1 must be in \[1e-16, 1e-06\]"),
    ({"pdf": lambda y, x: 1.0}, ValueError, r"pdf\(y, x\) has shape \(\) .* it must be vectorized"),
    ({"pdf": lambda y, x: y - 0.5}, ValueError, r"pdf\(.*, 0\) is -0.5: it must be >= 0"),
    ({"cdf": lambda y, x: 2 * y}, ValueError, r"cdf\(.*, 0\) is 2: it must be in \[0, 1\]"),
    ({"cdf": lambda y, x: y**2}, ValueError, "cdf and pdf disagree for x=.*: is cdf the integral of pdf"),
    ({"pdf": lambda y, x: 1 + (x - 0.5) * np.sin(2 * np.pi * y)}, ValueError, r"is not monotone for y from .*: add to breakpoints"),
])
def test_mistakes(change, error, text):
    given = {**TILTED, "sf": None, **change}
    with pytest.raises(error, match=text):
        DensityRandomizer(**given)


def test_a_value_that_is_no_input():
    with pytest.raises(ValueError, match=r"values holds 2: every entry must be one of inputs=\(0.0, 1.0\)"):
        CASES["tilted"].randomize([0, 2])


def test_equality_and_repr():
    assert repr(CASES["tilted"]) == "DensityRandomizer(<2 inputs, 2 breakpoints>)"
    assert DensityRandomizer(**TILTED) == CASES["tilted"]


def test_quadrature_agrees_with_scipy():
    found = integral(CASES["tilted"], lambda p: np.maximum(p[0] - 1.2 * p[1], 0.0))
    assert found == pytest.approx(integrate.quad(lambda y: max(1.5 - y - 1.2 * (0.5 + y), 0.0), 0, 1, points=[0.4])[0], abs=1e-5)


def mixture(weights, sigma):
    """Return a normal variable (input 0) and a mixture of normal variables around 0, 1, ... (input 1)."""
    places = np.arange(len(weights))

    def mixed(function):
        return lambda y, x: function(y / sigma) if x == 0 else function((y[..., None] - places) / sigma) @ np.array(weights)

    return DensityRandomizer(mixed(stats.norm.cdf), mixed(lambda z: stats.norm.pdf(z) / sigma), (0, 1), (-INF, INF),
                             sf=mixed(stats.norm.sf), limits=((0.0, math.log(weights[0])), None))


@pytest.mark.slow
@pytest.mark.parametrize("eps", [0.3, 0.41, 0.43, 0.45, 0.46])
def test_a_crossing_far_out_in_a_cell_in_which_both_densities_underflow(eps):
    # ln(p_0/p_1) falls from ln(1/0.63) = 0.462 at -inf. It crosses eps at -65 for eps = 0.3 and at -395 for eps = 0.46; below -306
    # both densities are 0 in doubles.
    weights, sigma = (0.63, 0.25, 0.12), 8.0
    with mp.workdps(40):
        def excess(y):
            terms = (mp.mpf(w) * mp.exp((k * y - mp.mpf(k * k) / 2) / sigma**2) for k, w in enumerate(weights))
            return -mp.log(mp.fsum(terms)) - mp.mpf(eps)

        low, at = mp.mpf(-2000), mp.mpf(0)
        for _ in range(150):
            middle = (low + at) / 2
            low, at = (middle, at) if excess(middle) > 0 else (low, middle)
        mass = mp.fsum(mp.mpf(w) * mp.ncdf((at - k) / sigma) for k, w in enumerate(weights))
        exact = mp.log(mp.ncdf(at / sigma) - mp.exp(mp.mpf(eps)) * mass)
    pair = mixture(weights, sigma).pairs()[0]
    assert (pair.randomizer.inputs[pair.first], pair.randomizer.inputs[pair.second]) == (0, 1)
    assert pair.log_delta(eps, bound="lower") <= exact <= pair.log_delta(eps)
    assert exact < -600 or pair.log_delta(eps) - pair.log_delta(eps, bound="lower") < 1e-6


@pytest.mark.parametrize("sigma", [slow(0.34414), slow(0.4861), 0.49318])
def test_densities_that_underflow_gradually_are_no_turn_of_a_ratio(sigma):
    # The density of input 0 is a subnormal number, with few digits, at outputs whose probability under input 1 exceeds e^-600.
    randomizer = mixture((0.33, 0.49, 0.18), sigma)
    distance = 2 / sigma
    assert randomizer.delta(0.0) <= 2 * stats.norm.cdf(distance / 2) - 1


@pytest.mark.parametrize(("first", "second"), [("27/37", "15/40"), ("18/38", "16/35"), ("3/5", "12/23"), ("7/11", "15/27")])
def test_eps_a_few_ulp_below_a_constant_ratio(first, second):
    # Output 0 has these probabilities for the inputs 0 and 1, and output 1 the others; each is spread evenly over length 1.
    exact = [[Fraction(p), 1 - Fraction(p)] for p in (first, second)]
    rows = np.array(exact, dtype=float)
    randomizer = DensityRandomizer(
        lambda y, x: np.where(y < 1, y * rows[int(x), 0], rows[int(x), 0] + (y - 1) * rows[int(x), 1]),
        lambda y, x: rows[int(x)][(y >= 1) * 1], (0, 1), (0, 1, 2),
        sf=lambda y, x: np.where(y < 1, (1 - y) * rows[int(x), 0] + rows[int(x), 1], (2 - y) * rows[int(x), 1]))
    for p, q in itertools.permutations(exact):
        eps = math.log(max(a / b for a, b in zip(p, q)))
        for _ in range(8):
            known = max(hockey_stick(one, other, rational(eps)) for one, other in ((p, q), (q, p)))
            assert Fraction(randomizer.delta(eps, bound="lower")) <= known <= Fraction(randomizer.delta(eps))
            eps = math.nextafter(eps, 0)


@pytest.mark.parametrize("unit", [1e-30, 1e-6, 1.0, 1e4, 1e30])
@pytest.mark.parametrize(("left", "right"), [(-INF, -3.0), (0.0, INF), (2.0, INF), (30.0, INF)])
def test_an_unbounded_cell_is_divided_in_few_steps_in_every_unit(unit, left, right):
    calls = []

    def cdf(y, x):
        calls.append(x)
        return ndtr(y / unit - x)

    densities = Densities(cdf, lambda y, x: np.exp(-((y / unit - x) ** 2) / 2) / unit, lambda y, x: ndtr(x - y / unit), (0, 1), ULP)
    at = _beyond(densities, left * unit, right * unit) / unit
    assert left < at < right
    rest = max(log_ndtr(at) - log_ndtr(right), log_ndtr(at - 1) - log_ndtr(right - 1)) if left == -INF else (
        log_ndtr(1 - at) - log_ndtr(1 - left))
    assert -2 * RARER <= rest <= -0.4 * RARER
    assert len(calls) < 500
