"""The largest E S_+ over all inputs: the lemmas of docs/theorems/worst-dataset, and the bounds against exact sums."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shufflebounds import mechanisms
from shufflebounds._engines.datasets.cases import Cases, FiniteCases, LawTable
from shufflebounds._engines.datasets.largest_sum import LargestSums
from shufflebounds._engines.excess.excess_law import ExcessLaw
from shufflebounds._engines.inputs import interval_cases as interval
from shufflebounds._engines.inputs.interval_cases import IntervalCases
from tests.strategies import slow, thinned

flint = pytest.importorskip("flint")

NOISES = {
    "Gaussian": lambda length: interval.GaussianNoise(length), "Laplace": lambda length: interval.LaplaceNoise(length),
    "geometric": lambda length: interval.GeometricNoise(length, length / 5),
}


def discrete_gaussian(length):
    unit = length / 5
    return interval.DiscreteGaussianNoise(length, unit, math.log(np.exp(-((np.arange(-400, 401) * unit) ** 2) / 2).sum()))


WITH_CELLS = {**NOISES, "discrete Gaussian": discrete_gaussian}


class Listed(Cases):
    """Distributions with given values and masses, which do not depend on eps."""

    blur = 1e-15

    def __init__(self, laws):
        self._laws = laws

    def laws(self, eps, log_cut):
        values, masses = (np.concatenate([law[i] for law in self._laws]) for i in (0, 1))
        starts = np.concatenate([[0], np.cumsum([law[0].size for law in self._laws])])
        return LawTable(values, masses, np.log(masses), starts)

    def thinned(self, share):
        raise NotImplementedError


def convolved(laws):
    """Return the exact distribution of a sum of independent variables, given as lists of (value, mass)."""
    out = {Fraction(0): Fraction(1)}
    for law in laws:
        new = {}
        for total, p in out.items():
            for x, q in law:
                new[total + x] = new.get(total + x, 0) + p * q
        out = new
    return out


def positive_part(law):
    return sum((max(x, Fraction(0)) * p for x, p in law.items()), Fraction(0))


def some_laws(rng, cases, heavy=False):
    """Return random distributions with rational values and masses, whose means are at most 0."""
    out = []
    for _ in range(cases):
        values = [Fraction(int(x), 8) for x in rng.integers(-12, 13, size=int(rng.integers(2, 4)))]
        weights = [Fraction(int(w)) for w in rng.integers(1, 9, size=len(values))]
        if heavy:
            values.append(Fraction(int(rng.integers(20, 90))))
            weights.append(Fraction(1, int(rng.integers(50, 500))))
        masses = [w / sum(weights) for w in weights]
        mean = sum(x * p for x, p in zip(values, masses))
        shift = max(mean, 0) + Fraction(int(rng.integers(0, 4)), 16)
        out.append([(x - shift, p) for x, p in zip(values, masses)])
    return out


def doubles(laws):
    return [(np.array([float(x) for x, _ in law]), np.array([float(p) for _, p in law])) for law in laws]


@pytest.mark.parametrize("seed", thinned(range(25), 3))
def test_lemma_h_in_interval_arithmetic(seed):
    """The contour sum of Lemma H is above the exact maximum over all compositions, for random theta, D and eta."""
    rng, arb = np.random.default_rng(seed), flint.arb
    laws, users = some_laws(rng, int(rng.integers(2, 4))), int(rng.integers(2, 6))
    most = max(positive_part(convolved(chosen)) for chosen in itertools.combinations_with_replacement(laws, users))
    deviation = math.sqrt(users * max(float(sum(x * x * p for x, p in law)) for law in laws)) or 1.0
    theta, smoothing = float(rng.uniform(0.3, 4)) / deviation, float(rng.choice([0.0, 1e-3, 0.1])) * deviation**2
    step, nodes = 2 * math.pi / (float(rng.uniform(1, 9)) * deviation), 30

    def contour(law):
        # The terms are nonnegative, so those with |m| <= nodes give a lower bound of the sum over all m.
        total = arb(0)
        for m in range(nodes + 1):
            t = m * arb(step)
            power = [arb(theta) * flint.fmpq(x.numerator, x.denominator) for x, _ in law]
            turn = [t * flint.fmpq(x.numerator, x.denominator) for x, _ in law]
            weights = [flint.fmpq(p.numerator, p.denominator) * up.exp() for (_, p), up in zip(law, power)]
            real, side = (sum((w * part for w, part in zip(weights, parts)), arb(0))
                          for parts in ([u.cos() for u in turn], [u.sin() for u in turn]))
            square = arb(theta) ** 2 + t * t
            total += (1 if m == 0 else 2) * ((real**2 + side**2) ** (arb(users) / 2)) * (
                arb(smoothing) * (arb(theta) ** 2 - t * t) / 2).exp() / square
        beyond = ((nodes + 1) * arb(step)) ** 2
        rest = sum(weights_at_zero(law, theta), arb(0)) ** users * (arb(smoothing) * (arb(theta) ** 2 - beyond) / 2).exp()
        return (total + rest * 2 / (arb(step) ** 2 * nodes)) * arb(step) / (2 * arb.pi())

    def weights_at_zero(law, theta):
        parts = [(flint.fmpq(x.numerator, x.denominator), flint.fmpq(p.numerator, p.denominator)) for x, p in law]
        return [p * (arb(theta) * x).exp() for x, p in parts]

    assert any(contour(law) > flint.fmpq(most.numerator, most.denominator) for law in laws)


@pytest.mark.parametrize("heavy", [False, slow(True)])
def test_the_largest_sum_is_above_every_composition(heavy):
    rng, gaps = np.random.default_rng(3), []
    for _ in range(20):
        laws, users = some_laws(rng, int(rng.integers(1, 4)), heavy), int(rng.integers(2, 6))
        exact = max(positive_part(convolved(chosen)) for chosen in itertools.combinations_with_replacement(laws, users))
        if exact > 0:
            gaps.append(LargestSums(Listed(doubles(laws)), 0.0, [users], -5.0).bound() - math.log(exact / users))
    assert min(gaps) > -1e-12
    assert np.median(gaps) < 1


def test_the_maximum_must_have_one_contour():
    """The largest of the bounds with different theta for each distribution is not a bound: a mixed composition is above it."""
    half = Fraction(1, 48)
    third, share = Fraction(1, 3), Fraction(6, 13)
    laws = [[(-25 * half, 2 * third), (23 * half, third)], [(Fraction(-13, 8), 2 * third), (Fraction(1), third)],
            [(Fraction(-3, 8), 1 - share), (Fraction(1, 4), share)]]
    exact = max(positive_part(convolved(chosen)) for chosen in itertools.combinations_with_replacement(laws, 6))
    alone = max(LargestSums(Listed(doubles([law])), 0.0, [6], -5.0).bound() for law in laws)
    together = LargestSums(Listed(doubles(laws)), 0.0, [6], -5.0).bound()
    assert alone + 0.25 < math.log(exact / 6) < together


def test_several_numbers_of_users_are_those_of_single_calls():
    rng = np.random.default_rng(5)
    for heavy in (False, True):
        cases = Listed(doubles(some_laws(rng, 3, heavy)))
        counts = [400, 396, 380]
        sums = LargestSums(cases, 0.0, counts, -5.0)
        for place, count in enumerate(counts):
            # D and eta are those of the largest number.
            assert sums.bound(place) == pytest.approx(LargestSums(cases, 0.0, [count], -5.0).bound(), abs=2e-2)
        ends = sums.approximations()
        assert ends[0] == pytest.approx(sums.bound(0), abs=1e-9)
        assert ends == pytest.approx([sums.bound(i) for i in range(3)], abs=2e-3)


@pytest.mark.parametrize("seed", range(10))
def test_splitting_large_values_is_larger_in_the_increasing_convex_order(seed):
    """E f(X) <= E f(Y + I (B + nu)) for f = (x - c)_+, in fractions, in the notation of the page ("Large values").

    nu, p and the tails of B are the largest of several distributions of X.
    """
    rng = np.random.default_rng(seed)
    laws, limit = some_laws(rng, 3, heavy=True), Fraction(3)
    split = []
    for law in laws:
        rare = sum((p for x, p in law if x > limit), Fraction(0))
        light = [(x, p / (1 - rare)) for x, p in law if x <= limit]
        split.append((rare, light, -sum(x * p for x, p in light), [(x, p) for x, p in law if x > limit]))
    most, shift = max(one[0] for one in split), max(one[2] for one in split)
    levels = sorted({x for one in split for x, _ in one[3]})
    tails = {t: max(sum((p for x, p in one[3] if x > t), Fraction(0)) for one in split) for t in [limit, *levels]}
    tails[limit] = most
    edges = [limit, *levels]
    jumps = [(b + shift, (tails[a] - tails[b]) / most) for a, b in itertools.pairwise(edges)]
    assert sum(p for _, p in jumps) == 1
    for law, (_, light, _, _) in zip(laws, split):
        both = [*((y, q * (1 - most)) for y, q in light), *((y + b, q * most * p) for y, q in light for b, p in jumps)]
        for c in {*(x for x, _ in law), *(x for x, _ in both)}:
            assert sum(max(x - c, 0) * p for x, p in law) <= sum(max(x - c, 0) * p for x, p in both)


@given(st.lists(st.tuples(st.floats(-5, 5), st.floats(0, 9)), min_size=2, max_size=4), st.integers(0, 10**6))
@settings(max_examples=25)
def test_bound_by_two_moments_is_largest_at_one_distribution(moments, seed):
    """(m + sqrt(m^2 + v))/2 of a mixture of (mean, variance) is at most the largest of the mixed ones."""
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(moments)))
    value = lambda m, v: 0.5 * (m + math.sqrt(m * m + v))  # noqa: E731
    mean, variance = (float(sum(w * one[i] for w, one in zip(weights, moments))) for i in (0, 1))
    assert value(mean, variance) <= max(value(*one) for one in moments) + 1e-12


def some_cell(noise, width):
    low, high = (0.6, 0.6 + 3 * width) if noise.unit else (0.7, 0.7 + width)
    high = min(high, noise.length)
    return tuple(round(x / noise.unit) * noise.unit for x in (low, high)) if noise.unit else (low, high)


@pytest.mark.parametrize("name", WITH_CELLS)
@pytest.mark.parametrize("width", [0.2, 1.0])
def test_cells_bound_every_input(name, width):
    """R_x of a cell is between two weighted means of functions whose means and ranges are known in every bin."""
    noise = WITH_CELLS[name](3.0)
    low, high = some_cell(noise, width)
    cases, bins = IntervalCases(noise), noise.bins(2)
    functions = [noise.between(bins, low, high, lambda x: cases._ratio(2, x, 0.0), upper=upper) for upper in (False, True)]
    normal = "aussian" in name
    first = np.exp(noise.log_masses(bins, 0.0))
    joined = functions[0][-1].joined
    for part in (0.1, 0.35, 0.5, 0.8):
        x = low + part * (high - low)
        if noise.unit:
            x = round(x / noise.unit) * noise.unit
        t = (x - low) / (high - low)
        if len(functions[0]) == 2:
            # No input lies between the ends.
            weights = np.array([1 - t, t])
        elif normal:
            weights = np.array([math.comb(3, k) * t**k * (1 - t) ** (3 - k) for k in range(4)])
        else:
            # Beyond the cell R_x is the combination of the two ends with these weights, whose sum is 1 minus the mass in the cell.
            ends = np.array([math.sinh(high - x), math.sinh(x - low)]) / math.sinh(high - low)
            inside = (1 - ends.sum()) / (1 - 1 / math.cosh((high - low) / 2))
            weights = np.outer([1 - inside, inside], ends / ends.sum()).ravel()
        below, above = (np.einsum("i,ijk->jk", weights, [f.values for f in one]) for one in functions)
        masses, single = np.exp(noise.log_masses(bins, x)), np.ones(first.size, dtype=bool)
        single[joined] = False
        assert (masses >= below[0] * first * (1 - 1e-12))[single].all()
        assert (masses <= above[0] * first * (1 + 1e-12))[single].all()
        if not normal:
            assert np.sum(masses[joined]) == pytest.approx(np.sum((below[0] * first)[joined]), rel=1e-12)
            assert first @ below[0] == pytest.approx(1, abs=1e-12)
        for y in (bins.left, bins.right):
            ratio = np.exp(noise.log_ratio(x, 0.0, y))
            assert (ratio >= below[1] * (1 - 1e-12)).all()
            assert (ratio <= above[2] * (1 + 1e-12)).all()
    if normal and width < 1.0 + (name == "Gaussian"):
        # The functions change the mass by order width^4.
        error = 0.05 * (high - low) ** 4 + 1e-6
        assert all(first @ row.values[0] == pytest.approx(1, abs=error) for one in functions for row in one)


@pytest.mark.parametrize("first", [(0.3, 1.5), (1.5, 1.5), (0.0, 0.6), (0.0, 1.5), (0.6, 0.61)])
@pytest.mark.parametrize("second", [(0.0, 0.6), (0.9, 1.5), (0.0, 0.0), (1.5, 1.5)])
@pytest.mark.parametrize("name", WITH_CELLS)
def test_distributions_of_cells_are_larger_than_those_of_their_pairs(name, first, second):
    """E (X - c)_+ of pairs (a, b) of a cell is at most the largest one of its distributions, for the other user's input 0."""
    noise, eps, rng = WITH_CELLS[name](1.5), 0.1, np.random.default_rng(3)
    if noise.unit:
        first, second = (tuple(round(z / noise.unit) * noise.unit for z in one) for one in (first, second))
    laws = IntervalCases(noise)._pairs(first, second).laws(eps, -30.0)
    rows = rows_of(laws)
    y = np.arange(-300, 400) * noise.unit if noise.unit else np.linspace(-14, 16, 6001)
    y = y[(y >= 0) & (y <= 1.5)] if name == "geometric" else y
    density = np.exp(-(y**2) / 2 if "aussian" in name else -np.abs(y))
    if name == "geometric":
        # Outputs beyond the inputs count as the nearest input.
        density[[0, -1]] /= -math.expm1(-noise.unit)
    density /= density.sum()
    for a, b in [(x, z) for x in np.linspace(*first, 4) for z in np.linspace(*second, 4)]:
        if noise.unit:
            a, b = (round(z / noise.unit) * noise.unit for z in (a, b))
        x = np.exp(noise.log_ratio(a, 0.0, y)) - math.exp(eps) * np.exp(noise.log_ratio(b, 0.0, y))
        for c in [*np.quantile(x, [0.02, 0.3, 0.6, 0.9]), *rng.normal(size=2)]:
            most = max(laws.mass[row] @ np.maximum(laws.values[row] - c, 0) for row in rows)
            assert density @ np.maximum(x - c, 0) <= most * (1 + 1e-9) + (1e-5 if name == "Laplace" else 1e-12)


@pytest.mark.parametrize(("first", "second"), [((0.3, 1.5), (3.0, 3.0)), ((0.6, 1.8), (1.2, 3.0)), ((0.6, 1.2), (1.8, 3.0))])
@pytest.mark.parametrize("name", ["Laplace", "geometric"])
def test_outputs_in_a_cell_are_one_bin(name, first, second):
    """The mean of a function is known on the outputs of a cell together, and not on each bin."""
    noise = WITH_CELLS[name](3.0)
    if name == "geometric":
        noise = interval.GeometricNoise(3.0, 0.1)
    cases, bins = IntervalCases(noise), noise.bins(2)
    tables = cases._of_pairs(first, second, 2).tables
    inside = [noise._inside(bins, *one) for one in (first, second)]
    seen = {tuple(int(np.count_nonzero(row[one])) for one in inside) for row in tables[0]}
    most = tuple(int(one.sum()) for one in inside)
    # Each of the two functions is that of an end, or that of an end and the cell.
    apart = {most, (min(most[0], 1), most[1]), (most[0], min(most[1], 1)), (min(most[0], 1), min(most[1], 1))}
    if first[1] <= second[0] or not most[1]:
        assert seen == apart
    else:
        assert most in seen
        assert (1, 1) not in seen
        assert len(seen) == 4
    assert tables[0].sum(axis=1) == pytest.approx(1, abs=1e-12)
    assert (tables[0] * tables[1]).sum(axis=1) == pytest.approx(1, abs=1e-12)
    assert (tables[0] * tables[4]).sum(axis=1) == pytest.approx(1, abs=1e-12)


def test_cells_of_gaussian_noise_in_interval_arithmetic():
    """The factor of a cell of other users' inputs, and the cubic interpolation of a cell of pairs, in interval arithmetic."""
    rng, arb = np.random.default_rng(1), flint.arb
    for _ in range(300):
        h, y = arb(float(rng.uniform(0.01, 2))), arb(float(rng.normal() * 4))
        part = float(rng.uniform(0.01, 0.99))
        t = h * part
        mixed = (1 - t / h) * (-((y + t) ** 2) / 2).exp() + t / h * (-((y - (h - t)) ** 2) / 2).exp()
        ratio, u = (-(y**2) / 2).exp() / mixed, y + t - h / 2
        assert (-(h * u) ** 2 / 8).exp() < ratio < (h**2 / 8).exp()
        # f(x) = e^(-(y - x)^2/2) for 0 <= x <= h, in the unit h.
        ends = (-(y**2) / 2).exp(), (-((y - h) ** 2) / 2).exp()
        points = ends[0], ends[0] * (1 + h * y / 3), ends[1] * (1 - h * (y - h) / 3), ends[1]
        cubic = sum(math.comb(3, k) * arb(part) ** k * (1 - arb(part)) ** (3 - k) * one for k, one in enumerate(points))
        exact, pieces = (-((y - t) ** 2) / 2).exp(), 64
        highest = lowest = arb(0)
        for k in range(pieces):
            # The fourth derivative on a piece, as a ball.
            x = h * (arb(k, 0) / pieces + arb(0.5, 0.5) / pieces)
            fourth = ((y - x) ** 4 - 6 * (y - x) ** 2 + 3) * (-((y - x) ** 2) / 2).exp()
            highest, lowest = highest.max(fourth.upper()), lowest.min(fourth.lower())
        assert lowest * h**4 / 384 <= exact - cubic + 1e-15
        assert exact - cubic - 1e-15 <= highest * h**4 / 384


def densities(name, y):
    power = 2 if name == "Gaussian" else 1
    def density(x):
        weight = np.exp(-np.abs(y - x) ** power / power)
        return weight / (math.sqrt(2 * math.pi) if power == 2 else 2)
    return density


@pytest.mark.parametrize("name", ["Gaussian", "Laplace"])
def test_families_are_larger_in_the_convex_order(name):
    """Lemma G: every (a, b, x) has a smaller stop-loss transform than its image in one of the three families."""
    rng, y = np.random.default_rng(7), np.linspace(-14, 18, 32001)
    density = densities(name, y)
    for _ in range(100):
        length, factor, c = rng.uniform(0.2, 3), math.exp(rng.uniform(0, 1)), rng.normal() * 2
        a, b, x = rng.uniform(0, length, 3)
        if a > b:
            a, b, x = length - a, length - b, length - x
        if x < a:
            image = ((a - x) / (b - x) * length, length, 0.0)
        elif x > b:
            # The reflection of (0, b', L).
            image = (length, length - (b - a) / (x - a) * length, 0.0)
        else:
            image = (0.0, length, (x - a) / (b - a) * length)
        before, after = (np.maximum(density(p) - factor * density(q) - c * density(r), 0).sum() * 1e-3
                         for p, q, r in ((a, b, x), image))
        assert before <= after + 2e-6


def rows_of(laws):
    return [slice(a, b) for a, b in itertools.pairwise(laws.starts)]


@pytest.mark.parametrize("name", NOISES)
def test_atoms_of_bins_are_larger_than_the_noise(name):
    """The atoms for the pair (0, L), with an end as other input, have the mean of the noise and larger stop-loss transforms."""
    noise, eps = NOISES[name](1.5), 0.2
    laws = IntervalCases(noise, (0.0, 1.5)).laws(eps, -30.0)
    for x, row in zip((0.0, 1.5), rows_of(laws)):
        values, mass = laws.values[row], laws.mass[row]
        assert mass.sum() == pytest.approx(1, abs=1e-9)
        assert mass @ values == pytest.approx(-math.expm1(eps), abs=1e-9)
        if name == "geometric":
            continue
        y = np.linspace(-12, 14, 26001)
        density = densities(name, y)
        for c in np.quantile(values, [0.1, 0.5, 0.9, 0.99]):
            exact = np.maximum(density(0.0) - math.exp(eps) * density(1.5) - c * density(x), 0).sum() * 1e-3
            assert exact - 1e-6 <= mass @ np.maximum(values - c, 0) <= exact + 2e-3 * (1 + abs(c))


@pytest.mark.parametrize("sigma", [slow(0.8), 2.0])
def test_pairs_and_inputs_of_gaussian_noise_are_below_the_bound(sigma):
    """B of random pairs and inputs, at the theta of the bound, is at most the bound."""
    length, eps, users, rng = 1 / sigma, 0.05, 3000, np.random.default_rng(2)
    cases = IntervalCases(interval.GaussianNoise(length))
    sums = LargestSums(cases, eps, [users], -14.0)
    bound = sums.bound()
    fine = IntervalCases(interval.GaussianNoise(length))
    for _ in range(12):
        a, b, x = rng.uniform(0, length, 3)
        if a > b:
            a, b, x = length - a, length - b, length - x
        one = fine._atoms(fine._bounds(2, a, b, x), eps)
        # Any composition of one kind is one of the compositions.
        found = LargestSums(Listed([(one.values, one.mass)]), eps, [users], -14.0).bound()
        assert found <= bound + 2e-3


@pytest.mark.parametrize(("length", "eps", "users"), [slow(0.4, 0.002, 10**8), (1.0, 0.4, 100), (1.0, 0.1, 10**4)])
def test_sums_of_cells_below_the_other_terms(length, eps, users):
    """Beside e^rest the bound may be larger, by at most the permitted increase."""
    exact = LargestSums(IntervalCases(interval.GaussianNoise(length)), eps, [users], -14.0).bound()
    for rest in (exact - 1, exact + 3, exact + 40):
        cases = IntervalCases(interval.GaussianNoise(length))
        found = LargestSums(cases, eps, [users], -14.0).bound(rest=rest)
        assert exact - 3e-3 <= found
        assert np.logaddexp(found, rest) <= np.logaddexp(exact, rest) + 3e-3


@pytest.mark.parametrize("noise", [interval.GaussianNoise(1.0), interval.LaplaceNoise(1.0), interval.GeometricNoise(1.0, 0.1)])
def test_the_search_over_cells_ends_above_a_known_bound(noise):
    exact = LargestSums(IntervalCases(noise), 0.05, [10**4], -14.0).bound()
    assert LargestSums(IntervalCases(noise), 0.05, [10**4], -14.0).bound(most=exact + 1e-6) == exact
    # Distributions of the ends alone exceed the first limit, and the permitted increase the second one.
    for less in (1.0, 1e-6):
        assert LargestSums(IntervalCases(noise), 0.05, [10**4], -14.0).bound(most=exact - less) == math.inf


def test_the_farthest_input_is_an_end():
    """Lemma R for log-concave noise: the squared distance from the mean of the ends is largest at the ends."""
    y = np.linspace(-25, 28, 53001)
    for name in ("Gaussian", "Laplace"):
        density = densities(name, y)
        for length in (0.3, 1.0, 3.0):
            low = np.minimum(density(0.0), density(length))
            middle = 0.5 * (density(0.0) + density(length))
            sizes = [((density(a) - middle) ** 2 / low).sum() for a in np.linspace(0, length, 25)]
            assert max(sizes) <= sizes[0] * (1 + 1e-6)
            assert sizes[0] == pytest.approx(sizes[-1])
    # Noise on the integers, in fractions: q^|k| on the integers, with the outputs beyond the inputs at the two ends.
    q, last = Fraction(3, 5), 6
    share = [1 if k in (0, last) else 1 - q for k in range(last + 1)]
    rows = [[q ** abs(k - x) * share[k] / (1 + q) for k in range(last + 1)] for x in range(last + 1)]
    low = [min(p, r) for p, r in zip(rows[0], rows[-1])]
    for row in rows:
        assert sum((p - a) * (p - b) / m for p, a, b, m in zip(row, rows[0], rows[-1], low)) <= 0


@pytest.mark.parametrize(("noise", "inputs"), [
    slow(mechanisms.GaussianMechanism(1.0), (0.0, 0.4, 1.0)), (mechanisms.LaplaceMechanism(0.4), (0.0, 0.1, 0.2, 0.6, 1.0)),
    slow(mechanisms.GaussianMechanism(0.8), (0.0, 1.0)),
])
def test_listed_inputs_have_no_larger_bound_than_the_interval(noise, inputs):
    whole, listed = (LargestSums(data.cases, 0.05, [5000], -14.0).bound() for data in (
        noise.dataset_laws(), noise.with_inputs(inputs).dataset_laws()))
    # Cells of pairs and inputs are divided until the bound of each is at most 1e-3 above the largest value.
    assert listed <= whole + 2e-3


def test_participation_is_one_more_output():
    rows = np.array([[0.5, 0.3, 0.2], [0.3, 0.3, 0.4]])
    data, share = mechanisms.FiniteRandomizer(rows).dataset_laws(), 0.375
    silent = np.append(rows * share, np.full((2, 1), 1 - share), axis=1)
    other = mechanisms.FiniteRandomizer(silent).dataset_laws()
    for eps in (0.0, 0.03):
        assert LargestSums(data.thinned(share).cases, eps, [500], -9.0).bound() == pytest.approx(
            LargestSums(other.cases, eps, [500], -9.0).bound(), abs=1e-9)
    noise = mechanisms.GaussianMechanism(1.0).with_inputs((0.0, 1.0)).dataset_laws()
    laws = noise.thinned(share).cases.laws(0.1, -60.0)
    for row in rows_of(laws)[:2]:
        assert laws.mass[row].sum() == pytest.approx(1, abs=1e-8)
        assert laws.mass[row] @ laws.values[row] == pytest.approx(-math.expm1(0.1), abs=1e-8)


def test_no_positive_value_gives_no_delta():
    cases = FiniteCases.of([ExcessLaw(np.log([0.5, 0.5]), np.zeros(2), np.array([0.1, -0.1]), -math.inf)])
    assert LargestSums(cases, 0.2, [100], -5.0).bound() == -math.inf
    assert math.isfinite(LargestSums(cases, 0.05, [100], -5.0).bound())


def test_large_values_are_split_off_where_they_are_rare():
    """With one value that is rare and large, the bound is near its own contribution, far below that of one contour sum."""
    values, masses = np.array([-1.0, 1.0, 3000.0]), np.array([0.5005, 0.4995, 1e-9])
    cases, count = Listed([(values, masses)]), 10**4
    sums = LargestSums(cases, 0.0, [count], -12.0)
    # The sum of the other values is nearly normal with the mean -10 and the deviation 100, and E(Z - z)_+ = pdf(z) - z cdf(-z).
    normal = 0.01 * (math.exp(-0.005) / math.sqrt(2 * math.pi) - 0.1 * 0.5 * math.erfc(0.1 / math.sqrt(2)))
    exact = math.log(normal + 1e-9 * 2990)
    assert exact - 1e-3 <= sums.bound() <= exact + 0.05
    assert sums._split is not None
