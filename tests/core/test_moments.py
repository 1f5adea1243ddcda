"""The kernel of contour sums, against interval arithmetic, quadrature and its own parts."""

import math

import mpmath as mp
import numpy as np
import pytest

from shufflebounds._core import _moments
from tests.errors import reference


def packed(laws):
    """Return the arguments of the kernel for distributions given as pairs (values, masses)."""
    values, masses = (np.concatenate([law[i] for law in laws]) for i in (0, 1))
    return values, np.log(masses), np.concatenate([[0], np.cumsum([law[0].size for law in laws])])


def some_laws(rng, number, atoms=7):
    """Return random distributions whose masses add up to less than 1."""
    return [(rng.normal(size=atoms), rng.dirichlet(np.ones(atoms + 1))[:atoms]) for _ in range(number)]


def contour(count, variance=1.0):
    """Return the step and the smoothing that the library uses."""
    deviation = math.sqrt(count * variance)
    return 2 * math.pi / (6.5 * deviation), 5e-4 * deviation**2


def panels(low, high):
    """Return nodes and weights of Gauss-Legendre quadrature."""
    at, weights = np.polynomial.legendre.leggauss(20)
    edges = np.linspace(low, high, 61)
    half = np.diff(edges) / 2
    return ((edges[:-1] + half)[:, None] + half[:, None] * at).ravel(), (half[:, None] * weights).ravel()


@pytest.mark.parametrize("case", reference("hoelder"), ids=lambda case: f"{case['l']} {case['law']}")
def test_gaussian_noise_against_interval_arithmetic(case):
    # The integrals of the reference values are replaced by sums over quadrature nodes, which are the atoms here.
    l, k, theta, nodes = case["l"], case["users"], case["theta"], 197
    a, b, x = {"A x=l": (0, l, l), "A x=0": (0, l, 0), "A x=l/2": (0, l, l / 2), "B a=l/2": (l / 2, l, 0),
               "C b=l/2": (0, l / 2, l)}[case["law"]]
    y, weights = panels(-case["cut"], l + 9)
    density = lambda u: np.exp(-(y - u) ** 2 / 2) / math.sqrt(2 * math.pi)  # noqa: E731
    values = (density(a) - math.exp(case["eps"]) * density(b)) / density(x)
    law = packed([(values, density(x) * weights)])
    step, smoothing = contour(k, math.expm1(l * l))
    upper, lower = _moments.log_moments(*law, np.array([theta]), step, nodes)
    assert upper[0, 0, 0] == pytest.approx(case["log_phi"], rel=1e-9)
    assert (lower <= upper).all()
    found = _moments.largest(*law, np.array([float(k)]), np.array([theta]), step, smoothing, nodes)[0, 0]
    # The reference sum ends at the last node; the kernel adds a bound of the other terms.
    beyond = (nodes + 1) * step
    rest = k * upper[0, 0, 0] + smoothing * (theta**2 - beyond**2) / 2 + math.log(1 / (math.pi * step * nodes))
    assert found + math.log1p(-math.exp(rest - found)) - math.log(k) == pytest.approx(case["bound"], abs=1e-7)
    assert found - math.log(k) > case["phases"]


def test_moments_of_one_atom():
    # One atom x of mass w, beside the value 0, has phi(z) = 1 - w + w e^(z x).
    upper, lower = _moments.log_moments(np.array([2.0]), np.log([0.25]), np.array([0, 1]), np.array([0.5, 1.0]), 0.3, 40)
    z = np.array([0.5, 1.0])[:, None] + 0.3j * np.arange(41)
    exact = np.log(np.abs(1 + 0.25 * np.expm1(2 * z)))
    assert (upper[0] >= exact).all()
    assert (lower[0] <= exact).all()
    assert (upper[0] - lower[0]).max() < 1e-11


def test_rare_atoms_of_large_values():
    # e^(theta x + log w) has the rounding error of theta x + log w, which is larger than w (e^(theta x) - 1) suggests
    rng = np.random.default_rng(3)
    for log_w, theta in zip(-rng.uniform(20, 690, 300), rng.uniform(1, 1.6, 300)):
        upper, lower = _moments.log_moments(np.ones(1), np.array([log_w]), np.array([0, 1]), np.array([theta]), 0.1, 0)
        with mp.workdps(60):
            exact = mp.log1p(mp.exp(mp.mpf(log_w)) * mp.expm1(mp.mpf(theta)))
            assert mp.mpf(float(lower.item())) <= exact <= mp.mpf(float(upper.item())), (log_w, theta)


def test_a_zero_of_phi_has_a_finite_upper_bound():
    # The mass w = 1/(1 + e) makes phi(1 + i pi) = 1 + w (e^(1 + i pi) - 1) equal to 0.
    upper, lower = _moments.log_moments(np.array([1.0]), np.log([1 / (1 + math.e)]), np.array([0, 1]), np.array([1.0]), math.pi, 1)
    assert lower[0, 0, 1] < upper[0, 0, 1] < -30


def test_the_largest_is_the_maximum_of_single_distributions():
    rng = np.random.default_rng(7)
    for _ in range(20):
        laws = some_laws(rng, 6)
        counts, thetas = np.array([50.0, 60.0]), rng.uniform(0.05, 0.6, 3)
        step, smoothing = contour(60)
        one = [_moments.largest(*packed([law]), counts, thetas, step, smoothing, 60) for law in laws]
        together = _moments.largest(*packed(laws), counts, thetas, step, smoothing, 60)
        assert np.array_equal(together, np.max(one, axis=0))
        known = together + 0.1
        assert np.array_equal(_moments.largest(*packed(laws), counts, thetas, step, smoothing, 60, 0.0, known), known)


def test_the_largest_is_the_contour_sum_of_the_moments():
    rng = np.random.default_rng(8)
    laws, counts, theta = some_laws(rng, 3), np.array([20.0, 33.0]), 0.4
    step, smoothing = contour(33)
    upper = _moments.log_moments(*packed(laws), np.array([theta]), step, 80)[0]
    rows = _moments.log_contour(upper[:, 0], counts, theta, step, smoothing)
    assert np.array_equal(rows.max(axis=0), _moments.largest(*packed(laws), counts, np.array([theta]), step, smoothing, 80)[0])
    # The caller may multiply the log moments by the count (count 1 is then passed). `weight` has the logs of factors of the terms.
    weight = np.full(81, 0.25)
    for i, count in enumerate(counts):
        assert _moments.log_contour(count * upper[:, 0], np.ones(1), theta, step, smoothing)[:, 0] == pytest.approx(rows[:, i])
    assert _moments.log_contour(upper[:, 0], counts, theta, step, smoothing, weight) == pytest.approx(rows + 0.25)


def test_larger_errors_of_probabilities_raise_the_bound():
    rng = np.random.default_rng(9)
    laws = packed(some_laws(rng, 1))
    step, smoothing = contour(10**6)
    exact, blurred = (_moments.largest(*laws, np.array([1e6]), np.array([4e-3]), step, smoothing, 60, blur)[0, 0]
                      for blur in (0.0, 1e-10))
    # The expected increase, k times 1e-10 E|e^(theta X) - 1|, is about 3e-7.
    assert 1e-8 < blurred - exact < 1e-5


def test_overflow_gives_no_bound():
    law = np.array([800.0, 1.0]), np.log([1e-300, 0.5]), np.array([0, 2])
    assert _moments.largest(*law, np.array([10.0]), np.array([1.0]), 0.1, 0.1, 20)[0, 0] == math.inf
    upper, lower = _moments.log_moments(*law, np.array([1.0, 0.1]), 0.1, 3)
    assert (upper == math.inf).all()
    assert (lower == -math.inf).all()


@pytest.mark.parametrize("count", [3.0, 1e3, 1e9, 2.0**53])
def test_the_tilt_minimizes_the_largest_objective(count):
    rng = np.random.default_rng(10)
    for _ in range(5):
        laws = some_laws(rng, 3)
        laws = [(x - 0.1 - x @ w, w) for x, w in laws]
        smoothing = 5e-4 * count

        def objective(theta, laws=laws, smoothing=smoothing):
            most = max(math.log1p(w @ np.expm1(theta * x)) for x, w in laws)
            variance = max(w @ x**2 - (w @ x) ** 2 for x, w in laws)
            x = theta * math.sqrt(count * variance + smoothing)
            return count * most - math.log(theta) - math.log(3 * x + math.sqrt(x * x + 8)) + smoothing * theta**2 / 2

        found, chosen = _moments.tilt(*packed(laws), count, smoothing, 4 / math.sqrt(count))
        assert 1 <= len(chosen) <= 3
        # Any start leads to the same theta.
        assert _moments.tilt(*packed(laws), count, smoothing, 1e-7)[0] == pytest.approx(found, rel=2e-4)
        assert objective(found) <= min(objective(found * factor) for factor in (0.99, 1.01)) + 1e-9
