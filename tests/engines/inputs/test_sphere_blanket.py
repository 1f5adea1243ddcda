"""The privacy blanket on the sphere: the proved error of its quadrature, its masses, and what is truncated."""

import math
import random
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import gammaln

from shufflebounds._engines.inputs.reduced_laws import chosen
from shufflebounds._engines.inputs.sphere_blanket import SphereBlanket
from tests.strategies import slow, thinned

BLUR = 2.0**-42
"""Relative rounding error of the masses that the bounds allow for."""

NODES = 14
"""Number of nodes of the rule of a panel."""

EXTREME = [(0.1, 2), (0.12, 8), (0.2, 100), (0.3, 256), (1.0, 10), (1.0, 11), (3.0, 30), (1e4, 256), (1e5, 200), (1e6, 2),
           (1e6, 255)]
"""Pairs of sigma and dimension."""


def blankets(count, r):
    """Yield random blankets; half of them are extreme, and a third truncate less."""
    while count:
        sigma, dimension = r.choice(EXTREME) if r.random() < 0.5 else (math.exp(r.uniform(-2.3, 13.8)), r.randint(2, 256))
        blanket = SphereBlanket(sigma, dimension, r.choice([-60.0, -60.0, -700.0]))
        if 2 * blanket.end / sigma < 600:
            count -= 1
            yield blanket


def relative_error(blanket, low, high, v, share):
    """Return the exact relative error of the rule of the panel [low, high] of U at V = v, as a ball.

    The integrand is the density of m times 1 (`share` 0), or times the share of the upper end (1) or the lower one (2).
    """
    import flint

    arb, acb = flint.arb, flint.acb
    low, high, v, tau = arb(low), arb(high), arb(v), 1 / arb(blanket.sigma)

    def density(u):
        length = (u * u + v * v) / 2
        part = (1, (u * u * tau).exp() - (low * low * tau).exp(), (high * high * tau).exp() - (u * u * tau).exp())[share]
        return u ** (blanket.dimension - 2) * length * (-((length + tau) ** 2) / 2).exp() * part

    center, width = (low + high) / 2, (high - low) / 2
    scale = density(center)
    exact = acb.integral(lambda u, _: density(u) / acb(scale), acb(low), acb(high), rel_tol=arb(2) ** -330).real
    places = [arb.legendre_p_root(NODES, k, weight=True) for k in range(NODES)]
    return width * sum((weight * density(center + width * x) / scale for x, weight in places), arb(0)) / exact - 1


@pytest.mark.parametrize("count", [8, slow(60)])
def test_the_error_of_a_rule_is_at_most_the_proved_one(count):
    flint = pytest.importorskip("flint")
    r = random.Random(3)
    with flint.ctx.workprec(400):
        for blanket in blankets(count, r):
            edges = blanket._panels(np.sqrt(blanket._nodes * blanket.sigma))
            errors, last = blanket._log_errors(edges), blanket._last(edges)
            assert errors.max() <= -56 * math.log(2)
            for i in {0, edges.size - 2, *r.sample(range(edges.size - 1), 5)}:
                j = r.choice([0, max(int(last[i]) - 1, 0), r.randrange(max(int(last[i]), 1))])
                v = edges[j] + r.choice([0.0, 1.0, r.random()]) * (edges[j + 1] - edges[j])
                error = relative_error(blanket, edges[i], edges[i + 1], v, r.randrange(3))
                assert abs(error) < flint.arb(errors[i]).exp(), (blanket, i, v)


@pytest.mark.parametrize(("sigma", "dimension"), thinned([(0.1, 2), (0.12, 8), slow(0.3, 256), (1.0, 11), (1e4, 256), (1e6, 2)], 3))
def test_the_masses_under_the_two_inputs_add_up_to_one(sigma, dimension):
    # The quadrature once had an error of 7e-12 for (.12, 8), and rounding one of 3e-13 for (1e4, 256), above BLUR.
    law = SphereBlanket(sigma, dimension, -60.0).law
    for height in (law.log_a, law.log_b):
        assert abs(math.fsum(np.exp(law.log_mass + height - BLUR)) - 1) < 0.15 * BLUR


@pytest.mark.parametrize(("sigma", "dimension"), thinned([(0.15, 5), (0.5, 3), (2.0, 12), (40.0, 256)], 2))
def test_masses_against_integrals_over_the_two_ratios(sigma, dimension):
    blanket = SphereBlanket(sigma, dimension, -60.0)
    nodes, logs = blanket._nodes, blanket._log_masses(blanket._nodes)
    x, weight = np.polynomial.legendre.leggauss(120)

    def hats(place):
        """Return log ratios on both sides of a node, and weights times the shares of their mass that move to the node."""
        for (low, high), own in zip(pairwise(nodes[place - 1:place + 2].tolist()), (1, 0)):
            levels = low + (high - low) * (1 + x) / 2
            share = (np.exp(levels - high) - math.exp(low - high)) / -math.expm1(low - high)
            yield levels, weight * (high - low) / 2 * (share if own else 1 - share)

    area = math.log(2) + (dimension - 1) / 2 * math.log(math.pi) - gammaln((dimension - 1) / 2)
    inner = np.argwhere(logs[1:-1, 1:-1] > logs.max() - 20) + 1
    for i, j in np.random.default_rng(4).permutation(inner)[:12].tolist():
        total = 0.0
        for log_a, moved in hats(i):
            for log_b, other in hats(j):
                # <y, e> and |y| are half of the difference and of the sum of log a and log b, in units of 1/sigma^2.
                along, length = (sigma**2 * (log_a[:, None] + sign * log_b) / 2 for sign in (-1, 1))
                across = np.sqrt(length**2 - along**2)
                log_m = area + (dimension - 2) * np.log(across) - dimension / 2 * math.log(2 * math.pi * sigma**2)
                density = np.exp(log_m - ((length + 1) / sigma) ** 2 / 2 - logs[i, j]) * length / across * sigma**4 / 2
                total += float(moved @ density @ other)
        assert total == pytest.approx(1, rel=3e-13, abs=0)


@pytest.mark.parametrize(("sigma", "dimension"), [(0.1, 2), slow(1.0, 5), slow(30.0, 256), slow(1e6, 50)])
def test_the_mass_of_the_blanket(sigma, dimension):
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(25):
        tau, middle, half = 1 / mpmath.mpf(sigma), mpmath.sqrt(dimension), mpmath.mpf(dimension) / 2
        ends = [max(middle - 12, 0), max(middle - 2, 0), middle, middle + 2, middle + 14]
        integral = mpmath.quad(lambda s: s ** (dimension - 1) * mpmath.exp(-s * s / 2) * -mpmath.expm1(-tau * s - tau**2 / 2), ends)
        exact = float(integral * 2 ** (1 - half) / mpmath.gamma(half))
    assert SphereBlanket(sigma, dimension, -60.0)._rest == pytest.approx(exact, rel=1e-13, abs=0)


@pytest.mark.parametrize(("sigma", "dimension"), [(3.0, 20), (1.0, 12), (20.0, 200)])
def test_what_is_truncated(sigma, dimension):
    blanket, r, tau = SphereBlanket(sigma, dimension, -1.5), np.random.default_rng(2), 1 / sigma

    def parts(mean):
        """Return for outputs around the vector `mean` times e whether they are truncated, and V^2."""
        y = r.normal(size=(10_000, dimension))
        y[:, 0] += mean
        length = np.sqrt((y * y).sum(axis=1))
        u, v = length + y[:, 0], length - y[:, 0]
        return (length > blanket.end) | (np.minimum(u, v) < blanket._start**2), u, v

    cut, *_ = parts(tau)
    assert 0 < cut.mean() <= (blanket._beyond + blanket._before) * (1 + 5 / math.sqrt(cut.sum()))
    # R_e^2/m is e^(4 tau^2 + tau V^2) times the density of N(3 e, I), and R_-e^2/m is its mirror image.
    cut, _, v = parts(3 * tau)
    norm = 2 * math.exp(4 * tau**2) * (cut * np.exp(tau * v)).mean()
    assert 0 < norm <= blanket.cut_norm * (1 + 5 / math.sqrt(cut.sum()))


def test_nodes_are_dense_where_the_mass_is():
    # Mass times squared height falls by e^30, and its cube root by e^10.
    levels = np.linspace(0.0, 5.0, 300)
    nodes = chosen(levels, -8 * levels, 40)
    assert nodes.size == 40
    assert nodes[[0, -1]].tolist() == [0.0, 5.0]
    assert np.searchsorted(nodes, 1.0) > 28
