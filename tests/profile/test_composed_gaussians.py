"""Releases of Gaussian noise compose to one release, also of different sigma and beside other mechanisms."""

import math

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shufflebounds.mechanisms import GaussianMechanism, LaplaceMechanism

NOISE = st.lists(st.tuples(st.floats(0.2, 50.0), st.floats(0.1, 5.0), st.integers(1, 40)), min_size=1, max_size=5)


def exact_log_delta(mu, eps):
    """Return the log of delta of a mu-GDP Gaussian mechanism at eps, in fifty digits."""
    with mpmath.workdps(50):
        mu, eps = mpmath.mpf(mu), mpmath.mpf(eps)
        return mpmath.log(mpmath.ncdf(-eps / mu + mu / 2) - mpmath.exp(eps) * mpmath.ncdf(-eps / mu - mu / 2))


@given(NOISE, st.floats(0.0, 3.0))
def test_the_delta_of_different_noises_is_that_of_one(noise, relative):
    with mpmath.workdps(50):
        mu = mpmath.sqrt(sum(times * (mpmath.mpf(shift) / sigma) ** 2 for sigma, shift, times in noise))
    first, *others = (GaussianMechanism(sigma, shift).self_compose(times) for sigma, shift, times in noise)
    for other in others:
        first = first.compose(other)
    eps = relative * float(mu)
    exact = float(exact_log_delta(mu, eps))
    lower, upper = (float(first.log_delta(eps, bound=side)) for side in ("lower", "upper"))
    assert lower <= exact + 1e-15 * abs(exact)
    assert exact <= upper + 1e-15 * abs(exact)
    assert upper - lower <= 1e-11 * (1 + abs(exact) + eps * float(mu))
    assert first.gdp_mu(bound="lower") <= mu <= first.gdp_mu()
    assert first.gdp_mu() - first.gdp_mu(bound="lower") <= 1e-13 * float(mu)


@given(NOISE, st.floats(-650.0, -1.0))
def test_the_eps_of_different_noises_is_that_of_one(noise, log_delta):
    with mpmath.workdps(50):
        mu = mpmath.sqrt(sum(times * (mpmath.mpf(shift) / sigma) ** 2 for sigma, shift, times in noise))
    first, *others = (GaussianMechanism(sigma, shift).self_compose(times) for sigma, shift, times in noise)
    whole = first.compose(*others)
    lower, upper = (whole.epsilon(math.exp(log_delta), bound=side) for side in ("lower", "upper"))
    rounding = 1e-15 * (1 - log_delta)
    assert exact_log_delta(mu, upper) <= log_delta + rounding
    assert lower == 0 or exact_log_delta(mu, lower) >= log_delta - rounding
    assert upper - lower <= 1e-11 * (upper + mu)


@pytest.mark.slow
def test_beside_another_mechanism_they_are_one_release():
    noise = GaussianMechanism(5.0).compose(LaplaceMechanism(3.0)).compose(GaussianMechanism(6.0, 2.0))
    alone = GaussianMechanism(1 / math.sqrt(1 / 25 + 4 / 36)).compose(LaplaceMechanism(3.0))
    for bound in ("lower", "upper"):
        assert noise.epsilon(1e-6, bound=bound) == pytest.approx(alone.epsilon(1e-6, bound=bound), rel=1e-9)
