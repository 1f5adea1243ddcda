"""The trade-off function of a product of two pairs, against the enumerated product."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from shufflebounds.profile import DominatingPair
from shufflebounds.tradeoff import Tradeoff
from tests.oracles import at, logs, thresholds

ALPHA = np.linspace(0, 1, 23)


def law(rng, size, zeros):
    p = rng.random(size)
    p[:zeros] = 0
    rng.shuffle(p)
    with np.errstate(divide="ignore"):
        return np.log(p / p.sum())


@pytest.mark.parametrize("seed", range(6))
def test_listed_laws(seed):
    rng = np.random.default_rng(seed)
    one, two = [(law(rng, 5, zeros), law(rng, 5, zeros)) for zeros in (seed % 3, seed % 2)]
    product = Tradeoff.from_pmfs(*(np.add.outer(a, b).ravel() for a, b in zip(one, two)))
    tensor = Tradeoff.from_pmfs(*one).tensor(Tradeoff.from_pmfs(*two))
    assert tensor.beta(ALPHA) == pytest.approx(product.beta(ALPHA), abs=1e-12)
    assert tensor.delta([0.0, 0.7, 2.0]) == pytest.approx(product.delta([0.0, 0.7, 2.0]), abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("listed", [False, True])
def test_a_product_of_bounds_is_a_bound(seed, listed):
    rng = np.random.default_rng(seed)

    def dyadic():
        # Such masses are exact as doubles.
        return [Fraction(int(m), 2**20) for m in np.diff([0, *np.sort(rng.integers(1, 2**20, 3)), 2**20])]

    one, two = (dyadic(), dyadic()), (dyadic(), dyadic())
    exact = thresholds(*([a * b for a, b in product(first, second)] for first, second in zip(one, two)))
    pairs = [DominatingPair.from_pmfs(*map(logs, law)) for law in (one, two)]
    # A curve of probabilities is exact up to rounding, so its product with a bound is a bound.
    below, above = (pairs[0].tradeoff(bound=bound).tensor(
        Tradeoff.from_pmfs(*map(logs, two)) if listed else pairs[1].tradeoff(bound=bound)) for bound in ("lower", "upper"))
    small = 10.0 ** rng.uniform(-12, 0, 8)
    for alpha in [*(float(x) for x, _ in exact), *rng.random(8), *small, *(1 - small)]:
        beta = at(exact, Fraction(alpha))
        assert Fraction(below.beta(alpha)) <= beta <= Fraction(above.beta(alpha))
        assert above.beta(alpha) - below.beta(alpha) <= 1e-13


def test_a_curve_that_is_not_convex_counts_as_its_hull():
    bent = Tradeoff.from_knots(np.log([1e-300, 0.2, 0.4, 1.0]), np.append(np.log([1.0, 0.7, 0.2]), -np.inf))
    flat = Tradeoff.approximate(0.0, 0.0)
    assert bent.tensor(flat).beta(ALPHA) == pytest.approx(bent.convex_hull().beta(ALPHA), abs=1e-12)


def test_normal_curves_add_their_squares():
    assert Tradeoff.gaussian(3.0).tensor(Tradeoff.gaussian(4.0)) == Tradeoff.gaussian(5.0)


def test_what_has_no_product_is_named():
    response = Tradeoff.randomized_response(1.0)
    with pytest.raises(ValueError, match="both be Gaussian or both piecewise"):
        response.tensor(Tradeoff.gaussian(1.0))
    with pytest.raises(ValueError, match="must be a Tradeoff"):
        response.tensor(3)
    many = Tradeoff.from_pmfs(np.full(3000, -np.log(3000)), np.log(np.arange(1, 3001) / (1500 * 3001)))
    with pytest.raises(ValueError, match="products of segments"):
        many.tensor(many)
