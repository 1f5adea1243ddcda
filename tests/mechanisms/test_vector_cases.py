"""The distributions of X for Gaussian noise on vectors: every triple of vectors is below a cell, and the bound above its delta."""

import math

import numpy as np
import pytest
from scipy.integrate import dblquad, quad
from scipy.special import ndtr

from shufflebounds._engines.excess.excess_law import ExcessLaw
from shufflebounds._engines.inputs.interval_cases import GaussianNoise
from shufflebounds._engines.inputs.vector_cases import VectorCases, _Triangles
from shufflebounds.mechanisms import GaussianVector
from tests.strategies import slow, thinned

HERMITE, WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def gram(a, b, x):
    u, v = a - x, b - x
    return np.array([[u @ u, u @ v], [u @ v, v @ v]])


def triples(length, count, seed):
    """Return random triples of vectors of a ball: on its surface, inside, nearly opposite, equal, and on one line."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        points = rng.normal(size=(3, 3))
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        if number % 3 == 1:
            points[1] = -points[0] + 0.1 * rng.normal(size=3) * rng.random()
            points[2] = points[rng.integers(2)] + 0.3 * rng.normal(size=3) * rng.random()
        if number % 3 == 2:
            points *= rng.random((3, 1))
        if number % 7 == 0:
            points = np.outer(rng.uniform(-1, 1, 3), points[0])
        if number % 11 == 0:
            points[2] = points[rng.integers(2)]
        points /= max(1.0, np.linalg.norm(points, axis=1).max())
        yield 0.5 * length * points


@pytest.mark.parametrize("length", [0.05, 1.0, slow(3.0)])
def test_every_triple_of_the_ball_is_below_a_cell(length):
    above = np.array([cell._above[0] for cell in VectorCases(GaussianNoise(length)).cells()])
    for points in triples(length, 300, 5):
        least = np.linalg.eigvalsh(above - gram(*points))[:, 0]
        assert least.max() >= -1e-12 * length**2


@pytest.mark.parametrize("length", [0.05, 1.0, slow(3.0)])
def test_divided_cells_cover_the_triangles_and_have_some_inside(length):
    cells = VectorCases(GaussianNoise(length)).cells()
    # The triangles with an angle of pi/2 are the limit t + |s| = pi/2, where corners of cells lie.
    places = math.pi / 2 * np.append(np.random.default_rng(3).random(20), [0.0, 0.25, 0.5, 0.75, 1.0])
    for point in ((t, way * (math.pi / 2 - t)) for t in places for way in (-1, 0.3, 1)):
        found = [cell for cell in cells if all(abs(p - c) <= h * (1 + 1e-12) for p, c, h in zip(point, cell._center, cell._half))]
        for _ in range(4):
            assert found
            found = [part for cell in found for part in cell.parts
                     if all(abs(p - c) <= h * (1 + 1e-12) for p, c, h in zip(point, part._center, part._half))]
    for cell in cells:
        for part in (cell, *cell.parts):
            (t, s), (high, wide) = part._center, part._half
            assert t - high + max(abs(s) - wide, 0.0) < math.pi / 2 * (1 - 1e-15)
            assert cell.parts


def positive(matrix, factor, c):
    """Return E(e^u - factor e^v - c)_+, (u, v) normal with the given covariance and means -1/2 of the variances."""
    q = math.sqrt(matrix[1, 1])
    r = matrix[0, 1] / q
    t = math.sqrt(max(matrix[0, 0] - r * r, 1e-30))

    def given(z):
        a, k = math.exp(r * z - r * r / 2), factor * math.exp(q * z - q * q / 2) + c
        if k <= 0:
            return (a - k) * math.exp(-z * z / 2)
        d = math.log(a / k) / t + t / 2
        return (a * ndtr(d) - k * ndtr(d - t)) * math.exp(-z * z / 2)

    return quad(given, -9, 9 + q + abs(r), limit=400, epsabs=1e-14)[0] / math.sqrt(2 * math.pi)


@pytest.mark.parametrize(("length", "center", "half"), thinned([
    (0.3, (0.2, 0.5), (0.05, 0.1)), (1.0, (0.0, -math.pi / 2), (0.01, 0.01)), (1.0, (0.0, math.pi / 2), (0.01, 0.01)),
    (2.0, (0.05, 0.3), (0.005, 0.005)), (2.0, (math.pi / 2, 0.0), (0.02, 0.02)), (3.0, (0.5, -0.9), (0.003, 0.003)),
], 3))
@pytest.mark.parametrize("eps", [0.0, 0.1])
def test_the_distribution_of_a_cell_is_larger_than_that_of_every_triangle_of_it(length, center, half, eps):
    rng = np.random.default_rng(1)
    laws = _Triangles(VectorCases(GaussianNoise(length)), center, half).laws(eps, -40.0)
    assert abs(laws.mass.sum() - 1) < 1e-9
    assert -1e-12 < laws.mass @ laws.values + math.expm1(eps) < 1e-9
    for _ in range(5):
        t, s = center + np.array(half) * rng.uniform(-1, 1, 2)
        a, b, third = (length**2 * side for side in ((1 + math.sin(t - s)) / 2, (1 + math.sin(t + s)) / 2, math.cos(t) ** 2))
        matrix = np.array([[a, (a + b - third) / 2], [(a + b - third) / 2, b]])
        scale = math.sqrt(math.expm1(a) + math.expm1(b) + 1e-12)
        for c in (-2 * scale, -0.3 * scale, 0.0, 0.5 * scale, 3 * scale):
            upper = float(laws.mass @ np.maximum(laws.values - c, 0.0)) + math.exp(laws.log_cut)
            exact = positive(matrix, math.exp(eps), c)
            assert upper >= exact * (1 - 1e-9) - 1e-11
            if max(half) < 0.02:
                assert upper <= exact * 1.06 + 0.02 * scale


@pytest.mark.parametrize("center", [(0.02, -1.52), (0.3, -1.0), (0.8, 0.0)])
def test_large_values_of_a_cell_are_as_rare_as_those_of_opposite_vectors(center):
    """At values that occur less than once in 1e4 messages, E(X - c)_+ is at most that of e^u, u with the largest variance."""
    length = 1.5
    laws = _Triangles(VectorCases(GaussianNoise(length)), center, (0.02, 0.02)).laws(0.1, -60.0)
    for c in np.exp(length * np.array([4.0, 6.0, 8.0]) - length**2 / 2).tolist():
        d = length / 2 - math.log(c) / length
        upper = float(laws.mass @ np.maximum(laws.values - c, 0.0))
        assert upper <= 1.005 * (ndtr(d) - c * ndtr(d - length))


@pytest.mark.parametrize(("sigma", "dimension"), thinned([(1.0, 3), (2.0, 3), (3.0, 2)], 2))
def test_the_minorant_of_the_sphere_and_the_distance_of_its_inputs(sigma, dimension):
    area = 2 * math.pi ** ((dimension - 1) / 2) / math.gamma((dimension - 1) / 2)

    def integral(power):
        """Return the integral of m (R_e/m)^power."""
        def density(angle, r):
            log = power * ((r + 1) ** 2 - r * r - 1 + 2 * r * math.cos(angle)) / 2 / sigma**2 - ((r + 1) / sigma) ** 2 / 2
            return math.exp(log) * r ** (dimension - 1) * math.sin(angle) ** (dimension - 2)
        return area * dblquad(density, 0, 12 * sigma + 6, 0, math.pi, epsabs=1e-10)[0] / (2 * math.pi * sigma**2) ** (dimension / 2)

    data = GaussianVector(sigma, dimension, "sphere").dataset_laws()
    g = integral(0)
    assert math.exp(data.log_minorant) == pytest.approx(g, rel=1e-7)
    assert integral(2) - 1 / g <= data.distance * (1 + 1e-9) <= (integral(2) - 1 / g) * 1.01


@pytest.mark.slow
@pytest.mark.parametrize(("dimension", "domain", "sigma", "users", "most"), [
    # The eps of the privacy blanket are .03369, .00416 and .0492.
    (3, "sphere", 3.0, 10**4, 0.02485), (3, "sphere", 20.0, 10**4, 0.00275), (3, "cube", 2.0, 10**4, 0.0364),
])
def test_epsilon_of_vectors(dimension, domain, sigma, users, most):
    protocol = GaussianVector(sigma, dimension, domain).shuffled(users)
    assert protocol.delta(most) <= 1e-6
    assert protocol.argument(most) == "worst dataset"


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "users", "delta"), [
    (GaussianVector(0.31, 2), 10, 1e-200),
], ids=repr)
def test_vectors_that_are_far_apart(noise, users, delta):
    shuffled = noise.shuffled(users)
    assert shuffled.epsilon(delta, bound="lower") <= shuffled.epsilon(delta) <= noise.epsilon(delta) * (1 + 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [2 / 6.49])
def test_cells_of_vectors_that_are_far_apart_have_finite_values(sigma):
    cases = GaussianVector(sigma, 2, "sphere").dataset_laws().cases
    with np.errstate(all="raise", under="ignore"):
        for cell in (*cases.cells()[::1000], *cases._corners):
            for eps in (0.0, 3e-293, 290.0):
                for log_cut in (-1.0, -60.0, -700.0):
                    laws = cell.laws(eps, log_cut)
                    assert np.isfinite(laws.values).all()
                    assert laws.values.max() < 1e150


@pytest.mark.slow
def test_epsilon_where_rare_messages_dominate():
    protocol = GaussianVector(2.0, 3, "sphere").shuffled(10**4)
    assert protocol.epsilon(1e-6, bound="lower") <= protocol.epsilon(1e-6) <= 0.0464


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "users", "eps"), [(2.0, 10**4, 0.04)])
def test_datasets_of_a_coarse_sphere_are_below_the_bound(sigma, users, eps):
    upper = GaussianVector(sigma, 3, "sphere").shuffled(users).log_delta(eps)
    corners = [np.array([i, j, k], float) for i in (-1, 0, 1) for j in (-1, 0, 1) for k in (-1, 0, 1) if (i, j, k) != (0, 0, 0)]
    sphere = [point / np.linalg.norm(point) / sigma for point in corners]
    seen = set()
    for b in sphere:
        for x in sphere:
            matrix = gram(sphere[0], b, x)
            key = tuple(np.round(matrix.ravel(), 9))
            if key in seen or matrix[0, 1] == matrix[1, 1] == matrix[0, 0]:
                continue
            seen.add(key)
            size, axes = np.linalg.eigh(matrix)
            root = axes * np.sqrt(np.maximum(size, 0.0))
            u, v = (root[i, 0] * HERMITE[:, None] + root[i, 1] * HERMITE[None, :] - matrix[i, i] / 2 for i in (0, 1))
            mass = np.outer(WEIGHTS, WEIGHTS).ravel()
            law = ExcessLaw(np.log(mass), u.ravel(), v.ravel(), -np.inf)
            assert law.log_phi(eps, users).lower <= upper + 1e-6
    assert len(seen) > 30
