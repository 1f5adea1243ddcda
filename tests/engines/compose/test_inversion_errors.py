"""Parts of the error bounds of the inversion of transforms, each against a value of higher precision."""

import math

import mpmath
import numpy as np
import pytest

from shufflebounds._engines.compose.gaussian_transform import SampledGaussian
from shufflebounds._engines.compose.inversion import _polar


def test_the_rounding_of_polar_coordinates_is_bounded():
    generator = np.random.default_rng(5)
    size = 10.0 ** generator.uniform(-12, 1, 400)
    differences = size * np.exp(2j * np.pi * generator.uniform(0, 1, 400))
    _, log_modulus, angle, blur = _polar(differences)
    with mpmath.workdps(40):
        for difference, log, phase, bound in zip(differences.tolist(), log_modulus, angle, blur):
            exact = mpmath.log(1 + mpmath.mpc(difference))
            assert abs(mpmath.re(exact) - float(log)) + abs(mpmath.im(exact) - float(phase)) <= bound * math.ulp(1.0)


@pytest.mark.parametrize("removed", [True, False])
@pytest.mark.parametrize(("mu", "rate", "theta"), [(1.0, 0.2, 3.0), (0.5, 0.02, 8.0), (2.0, 0.5, 1.5)])
def test_the_growth_of_the_integrand_off_the_real_line_is_bounded(mu, rate, theta, removed):
    """N(v)/A(a) of the module's docstring, by quadrature; a is positive if the record is removed, and negative if it is added."""
    tilted = SampledGaussian(mu, rate, removed).tilted(theta)
    order = tilted._order
    assert (order > 0) == removed

    def integral(height):
        # The trapezoidal rule is accurate to rounding for such integrands.
        z = np.linspace(-20, 40, 6001) + 1j * height
        return float(np.abs(np.exp(-z * z / 2) * (1 - rate + rate * np.exp(mu * z - mu**2 / 2)) ** order).sum())

    real = integral(0)
    for part in (0.3, 0.6, 0.9, 0.97):
        height = part * math.pi / mu
        assert math.log(integral(height) / real) <= tilted._log_growth(height) + 1e-12
