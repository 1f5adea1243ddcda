"""Distributions of X, the privacy-amplification random variable, for noise on an interval, matrices and classes of randomizers."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shufflebounds.mechanisms import (
    DiscreteGaussianMechanism,
    FiniteRandomizer,
    GaussianMechanism,
    GeometricMechanism,
    KaryResponse,
    LaplaceMechanism,
    PrivUnit,
    PureLocal,
    RandomizedResponse,
    RatioBounded,
)
from tests.mechanisms import listing
from tests.strategies import thinned

NOISES = [
    LaplaceMechanism(1.0), LaplaceMechanism(0.25, 2.0), LaplaceMechanism(1.0, 1e-3), LaplaceMechanism(1.0, 699.0),
    GaussianMechanism(1.0), GaussianMechanism(0.3), GaussianMechanism(50.0, 2.0),
    GeometricMechanism(1.0), GeometricMechanism(2.0, 5), GeometricMechanism(3.0, 8), GeometricMechanism(1.0, 5000),
    DiscreteGaussianMechanism(2.0), DiscreteGaussianMechanism(0.7, 2), DiscreteGaussianMechanism(30.0, 7),
]


def phi(law, eps, n):
    """Return the bound E(X_1 + ... + X_n)_+ / n, by summation over all n-tuples of atoms, plus the divergence of the cut sets.

    The cut sets are the outcomes without an atom of X; their masses under R_0 and R_1 are `log_cut` and `log_cut_b`.
    """
    x = np.append(law.values(eps), 0.0)
    mass = np.exp(law.log_mass)
    mass = np.append(mass, max(0.0, 1 - mass.sum()))
    total, weight = np.zeros(1), np.ones(1)
    for _ in range(n):
        total, weight = (total[:, None] + x).ravel(), (weight[:, None] * mass).ravel()
    return float((np.maximum(total, 0) * weight).sum()) / n + float(
        np.maximum(np.exp(law.log_cut) - math.exp(eps) * np.exp(law.log_cut_b), 0).sum())


@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_masses(noise):
    (laws,) = noise.excess_laws(cells=100)
    upper = np.exp(laws.upper.log_mass)
    assert upper.sum() <= 1 + 1e-12
    # R_0 and R_1 have total mass 1 if the cut sets are included.
    cut = float(np.exp(laws.upper.log_cut).sum())
    for height in (laws.upper.log_a, laws.upper.log_b):
        assert np.exp(laws.upper.log_mass + height).sum() + cut == pytest.approx(1, rel=1e-11, abs=1e-12)
    for _, law in laws.lower:
        assert (law.log_cut == -math.inf).all()
        assert np.exp(law.log_mass).sum() == pytest.approx(1, rel=1e-11)
        for height in (law.log_a, law.log_b):
            assert np.exp(law.log_mass + height).sum() == pytest.approx(1, rel=1e-11)
    # For one user, the bound `phi` is the local delta.
    for eps in (noise.epsilon(0.2), noise.epsilon(0.02)):
        exact = noise.delta(eps)
        # With 100 cells, the discretization is coarse for losses up to 699.
        apart = 5e-2 if noise.epsilon(0.02) < 100 else 1.0
        assert phi(laws.upper, eps, 1) == pytest.approx(exact, rel=apart, abs=1e-12)
        assert phi(laws.upper, eps, 1) >= exact * (1 - 1e-12)
        for _, law in laws.lower:
            assert phi(law, eps, 1) <= exact * (1 + 1e-12)
            assert phi(law, eps, 1) == pytest.approx(exact, rel=apart, abs=1e-12)


@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_finer_cells_reduce_the_gap(noise):
    coarse, fine = (noise.excess_laws(cells=cells)[0] for cells in (6, 12))
    finest = noise.excess_laws(cells=60)[0]
    for eps in (noise.epsilon(0.2), noise.epsilon(0.02)):
        values = [phi(laws.upper, eps, 2) for laws in (finest, fine, coarse)]
        assert values[0] <= values[2] * (1 + 1e-11)
        assert values[1] <= values[2] * (1 + 1e-2)
        for i, (text, law) in enumerate(finest.lower):
            assert text == coarse.lower[i][0]
            assert phi(coarse.lower[i][1], eps, 2) <= phi(law, eps, 2) * (1 + 1e-2)
            assert phi(law, eps, 2) <= values[0] * (1 + 1e-11)


@pytest.mark.slow
@pytest.mark.parametrize(("density", "noise"), [
    (lambda t: mp.exp(-abs(t) * 2) , LaplaceMechanism(0.5)),
    (lambda t: mp.npdf(t, 0, mp.mpf("0.6")), GaussianMechanism(0.6)),
])
def test_cells_against_quadrature(density, noise):
    # For two users, E max(0, X_1 + X_2)/2 is computed on a fine grid of the density.
    y = np.linspace(-8, 9, 3401)
    y = 0.5 * (y[1:] + y[:-1])
    rows = np.array([[float(density(t - x)) for t in y] for x in (0, 1)])
    rows /= rows.sum(axis=1, keepdims=True)
    base = rows.min(axis=0)
    for eps in (0.1, 0.6):
        x = np.append((rows[0] - math.exp(eps) * rows[1]) / base, 0.0)
        mass = np.append(base, 1 - base.sum())
        order = np.argsort(x)
        x, mass = x[order], mass[order]
        # The sum over all pairs is computed by cumulated sums of the sorted values.
        below = np.cumsum(mass[::-1])[::-1]
        partial = np.cumsum((mass * x)[::-1])[::-1]
        first = np.searchsorted(x, -x)
        kept = first < x.size
        value = 0.5 * float((mass[kept] * (partial[first[kept]] + x[kept] * below[first[kept]])).sum())
        assert phi(noise.excess_laws(cells=800)[0].upper, eps, 2) == pytest.approx(value, rel=1e-3)


def test_pure_budgets_are_exact():
    for mechanism in (LaplaceMechanism(0.1, 0.03), GeometricMechanism(0.3, 7), KaryResponse(5, 0.7), RandomizedResponse(1.3)):
        (laws,) = mechanism.excess_laws()
        assert (laws.upper.log_a - laws.upper.log_b).max() == mechanism.epsilon(0.0)


def test_truncated_geometric_noise_has_outputs_that_identify_the_input():
    (laws,) = (pair for pair in GeometricMechanism(1.0, 2, 4).excess_laws() if pair.inputs == "inputs 0 and 2")
    # Input 2 cannot produce the two lowest outcomes of input 0.
    assert np.exp(laws.upper.log_cut).sum() == pytest.approx(GeometricMechanism(1.0, 2, 4).delta(50.0), rel=1e-12)


@pytest.mark.parametrize("mechanism", [m for m in listing.SMALL if m.bins == 4], ids=repr)
def test_matrix_of_an_oracle_has_the_same_bounds(mechanism):
    matrix = FiniteRandomizer(listing.matrix(mechanism))
    for eps in (0.0, 0.2, 0.5):
        assert matrix.delta(eps) == pytest.approx(mechanism.delta(eps), rel=1e-9)
    (short,) = mechanism.excess_laws()
    long = matrix.excess_laws()
    assert len(long) == 12
    for eps in (0.1, 0.5):
        least = min(phi(laws.upper, eps, 1) for laws in long)
        assert phi(short.upper, eps, 1) >= least * (1 - 1e-9)


@pytest.mark.slow
@given(st.integers(2, 4), st.integers(1, 4), st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_any_matrix(inputs, outputs, seed):
    rng = np.random.default_rng(seed)
    rows = rng.random((inputs, outputs)) * (rng.random((inputs, outputs)) < 0.8) + 1e-3
    rows /= rows.sum(axis=1, keepdims=True)
    randomizer = FiniteRandomizer(rows)
    e = math.exp(0.3)
    worst = max(np.maximum(rows[i] - e * rows[j], 0).sum() for i, j in itertools.permutations(range(inputs), 2))
    assert randomizer.delta(0.3) == pytest.approx(worst, rel=1e-9, abs=1e-14)
    for laws in randomizer.excess_laws():
        high = phi(laws.upper, 0.3, 2)
        for _, law in laws.lower:
            assert phi(law, 0.3, 2) <= high * (1 + 1e-9) + 1e-15
    # The bound for all randomizers with this budget is valid for every matrix.
    eps0 = randomizer.epsilon(0.0)
    if eps0 > 0:
        general = phi(PureLocal(eps0).excess_laws()[0].upper, 0.3, 2)
        assert max(phi(laws.upper, 0.3, 2) for laws in randomizer.excess_laws()) <= general * (1 + 1e-9) + 1e-15


@pytest.mark.slow
@given(st.integers(3, 5), st.integers(2, 5), st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_variation_ratio_covers_every_matrix(inputs, outputs, seed):
    rng = np.random.default_rng(seed)
    rows = rng.random((inputs, outputs)) + 0.05
    rows /= rows.sum(axis=1, keepdims=True)
    r0, r1 = rows[:2]
    p = max((r0 / r1).max(), (r1 / r0).max())
    beta = np.maximum(r0 - r1, 0).sum()
    q = (np.maximum(r0, r1) / rows.min(axis=0)).max()
    if p < 1 + 1e-6:
        return
    bound = RatioBounded(p, min(beta, (p - 1) / (p + 1)), max(q, p)).excess_laws()[0].upper
    own = FiniteRandomizer(rows).excess_laws()[0].upper
    for eps in (0.0, 0.1, 0.9 * math.log(p)):
        for n in (1, 2, 3):
            assert phi(own, eps, n) <= phi(bound, eps, n) * (1 + 1e-9) + 1e-15


def test_estimate_of_a_matrix():
    rows = np.array([[0.5, 0.25, 0.25, 0.0], [0.125, 0.5, 0.125, 0.25], [0.25, 0.25, 0.5, 0.0]])
    survey = FiniteRandomizer(rows)
    each = np.array([survey.estimate([y]) for y in range(4)])
    assert rows @ each == pytest.approx(np.eye(3), abs=1e-12)
    held = np.array([5.0, 0.0, 2.0])
    variance = held @ (rows @ each**2 - (rows @ each) ** 2)
    assert survey.variance(held) == pytest.approx(variance, rel=1e-10)
    drawn = survey.randomize(np.repeat([0, 1, 2], [50_000, 30_000, 20_000]), rng=5)
    error = survey.estimate(drawn) - [50_000, 30_000, 20_000]
    assert (np.abs(error) < 5 * np.sqrt(survey.variance([50_000, 30_000, 20_000]))).all()
    counts = np.bincount(survey.randomize([1] * 100_000, rng=1), minlength=4)
    assert (np.abs(counts - 1e5 * rows[1]) < 5 * np.sqrt(1e5 * rows[1] * (1 - rows[1]))).all()


@pytest.mark.slow
def test_error_quantile_of_a_matrix_is_close_above_the_exact_one():
    matrix, oracle = FiniteRandomizer(listing.matrix(KaryResponse(4, 1.0))), KaryResponse(4, 1.0)
    for users in (1, 10, 200):
        exact = oracle.error_quantile(0.05, users=users, bound="lower")
        # For a normal tail, the exact quantile is 1.96 and Chernoff's bound is sqrt(2 ln 40) = 2.72.
        assert exact * (1 - 1e-9) <= matrix.error_quantile(0.05, users=users) <= 1.5 * exact + 3
        least = oracle.error_quantile(0.05, users, users=users, of="any", bound="lower")
        assert least <= matrix.error_quantile(0.05, users=users, of="any")
    with pytest.raises(ValueError, match="dependent"):
        FiniteRandomizer([[0.5, 0.5], [0.5, 0.5]]).error_quantile(0.1, users=5)
    with pytest.raises(ValueError, match="beta"):
        matrix.error_quantile(0.0, users=5)


@pytest.mark.parametrize(("dimension", "eps0", "users"), thinned([(2, 1.0, 5), (3, 4.0, 1000), (20, 6.0, 200)], 2))
def test_error_quantile_of_priv_unit(dimension, eps0, users):
    unit, rng = PrivUnit(dimension, eps0), np.random.default_rng(users)
    values = rng.normal(size=(users, dimension))
    values /= np.linalg.norm(values, axis=1)[:, None]
    bound = unit.error_quantile(0.1, users=users)
    error = [float(np.linalg.norm(unit.estimate(unit.randomize(values, rng)) - values.mean(axis=0))) for _ in range(60)]
    assert sum(e > bound for e in error) <= 10
    assert bound <= 5 * math.sqrt(unit.variance / users) + 4 * (1 / unit.scale + 1) / users
    # The variances along orthogonal directions add up to the total variance.
    assert unit.variance / dimension <= unit._along <= unit.variance


@pytest.mark.slow
@pytest.mark.parametrize(("dimension", "eps0", "cap"), [
    (2, 1.0, None), (10, 2.0, 0.5), (50, 8.0, None),
])
def test_priv_unit(dimension, eps0, cap):
    unit = PrivUnit(dimension, eps0, cap)
    rng = np.random.default_rng(dimension)
    x = rng.normal(size=dimension)
    x /= np.linalg.norm(x)
    n = 40_000
    messages = unit.randomize(np.tile(x, (n, 1)), rng)
    height = messages @ x
    assert np.linalg.norm(messages, axis=1) == pytest.approx(np.ones(n), rel=1e-12)
    inside = math.exp(eps0) * unit.cap / (1 + unit.cap * math.expm1(eps0))
    assert abs((height >= unit.height).mean() - inside) < 5 * math.sqrt(inside * (1 - inside) / n)
    # The mean height, by which the estimate is divided, is computed by quadrature of the density.
    with mp.workdps(30):
        m = mp.mpf(dimension - 3) / 2
        whole = mp.beta(m + 1, mp.mpf(1) / 2)
        tau = mp.mpf(unit.height)
        angle = mp.acos(tau)
        cap_mass = mp.quad(lambda a: mp.sin(a) ** (2 * m + 1), [0, angle]) / whole
        moment = mp.quad(lambda a: mp.cos(a) * mp.sin(a) ** (2 * m + 1), [0, angle]) / whole
        assert float(cap_mass) == pytest.approx(unit.cap, rel=1e-9)
        scale = mp.expm1(eps0) * moment / (1 + cap_mass * mp.expm1(eps0))
    assert unit.scale == pytest.approx(float(scale), rel=1e-9)
    error = unit.estimate(messages) - x
    assert np.linalg.norm(error) ** 2 < 3 * unit.variance / n
    if cap is None:
        for other in (unit.cap * 0.9, min(0.5, unit.cap * 1.1)):
            assert unit.variance <= PrivUnit(dimension, eps0, other).variance * (1 + 1e-12)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: FiniteRandomizer([[0.5, 0.5]]), "matrix has shape"),
        (lambda: FiniteRandomizer([[0.5, 0.5], [0.5, 0.25]]), "row 1"),
        (lambda: FiniteRandomizer([[0.5, 0.5], [1.5, -0.5]]), "matrix holds"),
        (lambda: FiniteRandomizer([[0.5, 0.5], [0.5, 0.5]]).estimate([0]), "dependent rows"),
        (lambda: PrivUnit(1, 1.0), "dimension=1"),
        (lambda: PrivUnit(3, 1.0, 0.6), "cap=0.6"),
        (lambda: PrivUnit(3, 1.0).randomize([[1.0, 1.0, 0.0]]), "length 1"),
        (lambda: RatioBounded(2.0, 0.5, 2.0), "beta=0.5"),
        (lambda: RatioBounded(2.0, 0.25, 1.2), "q=1.2"),
        (lambda: RatioBounded(2.0, 0.0, 2.0), "beta=0"),
        (lambda: RatioBounded(1.0, 0.25, 2.0), "p=1"),
        (lambda: PureLocal(0.0), "local_eps=0"),
        (lambda: GeometricMechanism(1.0, 8, 2**20).excess_laws(), "bound=1048576"),
        (lambda: LaplaceMechanism(1.0, 701.0).excess_laws(), "local budget"),
    ],
)
def test_bad_input(call, text):
    with pytest.raises(ValueError, match=text):
        call()
