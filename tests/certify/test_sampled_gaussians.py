"""Compositions of sampled Gaussian mechanisms in interval arithmetic, against quadrature in mpmath and the stated bounds."""

import math

import mpmath as mp
import pytest

from shufflebounds import mechanisms, sampling
from shufflebounds.certify import sampled_gaussians
from shufflebounds.certify.balls import flint
from shufflebounds.certify.sampled_gaussians import Part
from tests.strategies import slow

pytest.importorskip("flint")

ONE = [Part(1.0, 1.0, 0.2, 1)]


def one_release(eps, removed):
    """Return delta of one release, sigma = 1 and rate .2, in closed form: the loss passes eps at one output."""
    q, e = mp.mpf(0.2), mp.exp(eps)

    def above(x, mean):
        return mp.erfc((x - mean) / mp.sqrt(2)) / 2

    if removed:
        x = mp.log((e - 1 + q) / q) + mp.mpf(1) / 2
        return q * above(x, 1) + (1 - q) * above(x, 0) - e * above(x, 0)
    x = mp.log((1 / e - 1 + q) / q) + mp.mpf(1) / 2
    return 1 - above(x, 0) - e * (1 - q * above(x, 1) - (1 - q) * above(x, 0))


def contains(ball, value):
    middle, radius = (mp.mpf(x.str(60, radius=False)) for x in (ball.mid(), ball.rad()))
    return abs(middle - value) <= radius + mp.mpf(10) ** -50


@pytest.fixture(autouse=True)
def precision():
    before = flint().ctx.prec
    with mp.workdps(60):
        yield
    flint().ctx.prec = before


def factor(eps):
    flint().ctx.prec = 200
    return flint().arb(eps).exp()


@pytest.mark.slow
@pytest.mark.parametrize(("eps", "removed"), [(0.5, True), (0.1, False)])
def test_one_release_at_any_witness(eps, removed):
    exact = one_release(eps, removed)
    theta, size, more = sampled_gaussians.sampled_tilt(ONE, eps, removed, 25.0)
    for known in ((theta, size, more), (1.3 * theta, size, 1.4 * more), (0.7 * theta, size, more)):
        assert contains(sampled_gaussians.delta(ONE, factor(eps), removed, known), exact)
    for known in ((-theta, size, more), (theta, size, 0.9 * theta)):
        with pytest.raises((ArithmeticError, ValueError)):
            sampled_gaussians.delta(ONE, factor(eps), removed, known)


@pytest.mark.parametrize(("rate", "a", "bits"), [
    slow(1e-4, 100, 300), (0.5, 20, 150), slow(0.5, 0.5, 150), (0.3, -4, 150), (1.0, -4, 150),
])
def test_the_size_and_the_terms_beyond_the_nodes_are_bounded(rate, a, bits):
    """All terms are added in mpmath. Bounds exceed them by a factor of 2^a, as v is a sum of two numbers; if a < 0, far more."""
    flint().ctx.prec, sigma = 200, 5
    release = sampled_gaussians._Sampled(Part(5.0, 1.0, rate, 1), flint().arb(a), bits)
    step, last = mp.mpf(release.step.str(60, radius=False)), len(release.nodes)

    def term(j):
        x = j * step
        return step * mp.npdf(x, 0, sigma) * (1 - rate + rate * mp.exp((x - mp.mpf(1) / 2) / sigma**2)) ** a

    inside = mp.fsum(term(j) for j in release.nodes)
    outside = mp.fsum(term(release.nodes[-1] + j) + term(release.nodes[0] - j) for j in range(1, last))
    for stated, exact in ((release.tails, outside), (release.absolute, inside)):
        bound, more = mp.mpf(stated.str(60, radius=False)), 8 * mp.mpf(2) ** a if a > 0 else 1e7
        assert exact * (1 - mp.mpf(10) ** -12) <= bound <= more * exact


def test_the_loss_of_addition_is_bounded():
    assert sampled_gaussians.delta(ONE, factor(-math.log1p(-0.2) + 1e-9), False) == 0


def test_releases_on_all_records_are_one_release():
    # Three releases with sigma = 3 and one with sensitivity 2 and sigma 6 are one of mu = sqrt(4/9).
    for removed in (True, False):
        ball = sampled_gaussians.delta([Part(3.0, 1.0, 1.0, 3), Part(6.0, 2.0, 1.0, 1)], factor(0.75), removed)
        mu = mp.mpf(2) / 3
        exact = mp.ncdf(mu / 2 - 0.75 / mu) - mp.exp(0.75) * mp.ncdf(-mu / 2 - 0.75 / mu)
        assert contains(ball, exact)
        assert ball.rel_accuracy_bits() > 28


@pytest.mark.slow
def test_stated_bounds_of_compositions():
    noise = mechanisms.GaussianMechanism
    for composed in (noise(1.0).subsampled(0.01).self_compose(1000), noise(2.0, 2.0).subsampled(0.05).compose(noise(4.0)),
                     sampling.SampledPair(noise(2.0), 0.05, False).self_compose(100)):
        eps = composed.epsilon(1e-6)
        for bound in ("upper", "lower"):
            ball = composed.certify(eps, bound=bound)
            assert ball.rel_accuracy_bits() > 25
            assert abs(float(ball.log()) - composed.log_delta(eps, bound=bound)) < 1e-5
