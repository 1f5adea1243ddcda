"""Parameters at the ends of their ranges: finite numbers where they exist, and no warnings of NumPy."""

import math
import warnings

import mpmath as mp
import numpy as np
import pytest

from shufflebounds.mechanisms import (
    DiscreteGaussianMechanism,
    FiniteRandomizer,
    GaussianMechanism,
    HadamardResponse,
    KaryResponse,
    LaplaceMechanism,
    LocalHashing,
    PrivUnit,
    RandomizedResponse,
    Rappor,
    SubsetSelection,
    UnaryEncoding,
)


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("noise", [
    RandomizedResponse(1e-300), RandomizedResponse(1.0, upper=1e300), LaplaceMechanism(1e300, 1e300),
    GaussianMechanism(1e300, 1e300),
])
def test_variances_beyond_the_largest_double(noise):
    assert noise.variance == math.inf


def test_variances_close_to_the_largest_double():
    assert RandomizedResponse(1e-150).variance == pytest.approx(1e300, rel=1e-14)
    assert RandomizedResponse(700.0, upper=1e300).variance == pytest.approx(math.exp(-700 + 600 * math.log(10)), rel=1e-12)


def test_a_divergence_beyond_the_largest_double():
    noise = GaussianMechanism(1e-6)
    assert noise.rdp(1e300) == math.inf
    assert noise.rdp(1e300, bound="lower") == np.finfo(float).max
    assert noise.rdp(math.inf, bound="lower") == math.inf


@pytest.mark.parametrize("sigma", [1e-3, 1.0, 1e5])
def test_discrete_gaussian_at_very_large_eps(sigma):
    noise = DiscreteGaussianMechanism(sigma)
    for eps in (1e9, 1e20, 1e300):
        assert noise.log_delta(eps, bound="lower") <= noise.log_delta(eps) < -1e5
    assert noise.error_tail(1e300) == 0
    # These eps equal the loss of an outcome in the extreme tail, whose log probability is known exactly.
    m = 1_500_000_000 if sigma > 1 else 1_000_000
    eps = (2 * m + 1) / (2 * sigma**2)
    near = -((m + 1) ** 2) / (2 * sigma**2) - 0.5 * math.log(2 * math.pi * sigma**2) * (sigma > 1)
    assert noise.log_delta(eps, bound="lower") == pytest.approx(near, rel=1e-6)
    assert noise.log_delta(eps) == pytest.approx(near, rel=1e-6)


CORNERS = {
    "RandomizedResponse": lambda budget: RandomizedResponse(budget),
    "KaryResponse, 2 bins": lambda budget: KaryResponse(2, budget),
    "KaryResponse, 2**53 bins": lambda budget: KaryResponse(2**53, budget),
    "HadamardResponse": lambda budget: HadamardResponse(2, budget),
    "LocalHashing, 2 buckets": lambda budget: LocalHashing(2, budget, 2),
    "LocalHashing": lambda budget: LocalHashing(2**30, budget),
    "SubsetSelection, one of 2 bins": lambda budget: SubsetSelection(2, budget, 1),
    "SubsetSelection, one bin": lambda budget: SubsetSelection(2**20, budget, 1),
    "SubsetSelection, all but one bin": lambda budget: SubsetSelection(2**20, budget, 2**20 - 1),
    "SubsetSelection": lambda budget: SubsetSelection(2**20, budget),
    "PrivUnit": lambda budget: PrivUnit(2, budget),
}


@pytest.mark.parametrize("budget", [5e-324, 1e-310, 1e-8, 700.0])
@pytest.mark.parametrize("build", CORNERS.values(), ids=CORNERS)
def test_randomizers_at_the_ends_of_their_ranges(build, budget):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        randomizer = build(budget)
    # One of these searches once did not end, because a step of a subnormal budget underflowed to 0.
    for ask in (lambda bound: randomizer.epsilon(0.0, bound=bound), lambda bound: randomizer.epsilon(1e-9, bound=bound)):
        assert 0 <= ask("lower") <= ask("upper") <= budget * (1 + 1e-9) + 5e-324
    for eps in (0.0, budget / 2):
        assert -math.inf <= randomizer.log_delta(eps, bound="lower") <= randomizer.log_delta(eps) <= 0


@pytest.mark.parametrize("randomizer", [
    UnaryEncoding(2, 1e-299, 1e-300), UnaryEncoding(2**20, 1 - 2.0**-53, 0.5), UnaryEncoding(2, 0.5, 0.5 * (1 - 2.0**-53)),
    Rappor(1e-304), Rappor(1 - 2.0**-53, hashes=2), FiniteRandomizer([[1.0], [1.0]]),
    FiniteRandomizer([[1.0, 0.0], [0.0, 1.0]]), FiniteRandomizer([[1.0, 0.0], [1.0, 0.0]]),
    FiniteRandomizer([[5e-324, 1.0], [0.0, 1.0]]),
], ids=repr)
def test_degenerate_randomizers(randomizer):
    for ask in (randomizer.epsilon, randomizer.log_delta):
        for at in (0.0, 1e-9):
            assert ask(at, bound="lower") <= ask(at)


def test_a_pair_that_is_the_largest_beyond_the_largest_exponential():
    # At e^700 the first two rows have the largest divergence, and beyond the first and each of the last eight.
    rows = [[0.79, 0.2, 0.01], [1e-305, 1e-10, 1 - 1e-10], *[[0.5, 0.0, 0.5]] * 8]
    assert FiniteRandomizer(rows).delta(705.0) == pytest.approx(0.2, rel=1e-9)


@pytest.mark.slow
def test_likelihood_ratios_whose_squares_overflow():
    rows = np.full((4, 6), 1 / 6)
    rows[0], rows[1], rows[2] = [0.9, 0, 0, 0, 0, 0.1], [1e-305, 0.5, 0.5, 0, 0, 0], [0.1, 0, 0, 0.2, 0.7, 0]
    shuffled = FiniteRandomizer(rows).shuffled(10**12)
    for eps in (0.1, 30.0, 300.0):
        assert 0.1 <= shuffled.delta(eps, bound="lower") <= shuffled.delta(eps) <= 1


def test_distributions_with_values_whose_squares_overflow():
    # The last output shows that the target has the third input: a likelihood ratio of 1e200.
    shuffled = FiniteRandomizer([[0.3, 0.7, 1e-210], [0.5, 0.5, 1e-210], [0.4, 0.6 - 1e-10, 1e-10]]).shuffled(100)
    for bound in ("lower", "upper"):
        assert shuffled.delta(0.28, bound=bound) == pytest.approx(1e-10, rel=1e-9)


def two_level(eps0, share, eps):
    """Return log delta of a two-level randomizer with disjoint lifted sets of the mass `share` under its base distribution."""
    return mp.log(share * (mp.exp(eps0) - mp.exp(eps)) / (1 + share * mp.expm1(eps0)))


@pytest.mark.parametrize(
    ("eps0", "cap"), [(467.4451177798794, 9.798616388929574e-203), (690.0, 1e-300), (700.0, 1e-300), (30.0, 1e-14)])
def test_caps_far_smaller_than_their_probability(eps0, cap):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        unit = PrivUnit(3, eps0, cap)
    with mp.workdps(60):
        for eps in (0.0, 0.3 * eps0, eps0 * (1 - 1e-3), math.nextafter(eps0, 0)):
            exact = two_level(mp.mpf(eps0), mp.mpf(cap), mp.mpf(eps))
            assert unit.log_delta(eps, bound="lower") <= exact <= unit.log_delta(eps)


@pytest.mark.parametrize("p", [0.5, 0.8700101551766398, 0.9, 1 - 1e-12, 0.9999999999422643])
@pytest.mark.parametrize("q", [6.870514432074421e-284, 2.218352208641937e-123, 1e-100, 1e-20])
def test_unary_encoding_whose_other_bits_are_almost_never_ones(p, q):
    encoding = UnaryEncoding(2, p, q)
    with mp.workdps(60):
        one, other = mp.mpf(p) * (1 - mp.mpf(q)), mp.mpf(q) * (1 - mp.mpf(p))
        for eps in (0.0, 2e-7, 0.3 * encoding.local_eps, 0.99 * encoding.local_eps):
            exact = mp.log(one - mp.exp(mp.mpf(eps)) * other)
            assert encoding.log_delta(eps, bound="lower") <= exact <= encoding.log_delta(eps)
