"""The bounds of the error of the Fourier integrals for sums of light values."""

import functools
import itertools

import numpy as np
import pytest

from shufflebounds._engines.excess.tilted_inversion import Gains, Light


@pytest.mark.parametrize(("seed", "users"), [(0, 1000), (1, 1000), (2, 1000), (3, 20)])
def test_the_aliasing_error_is_bounded_on_the_whole_interval(seed, users):
    """The error is relative to e^(m K + theta y) for m users, and its bound must hold at every y and for every m.

    Two earlier bounds failed: that for one end of the interval was e^15 too small at the other end, and that with the cumulants of
    all n users was too small for m < n users.
    """
    r = np.random.default_rng(seed)
    x = np.sort(r.normal(size=40)) * r.choice([0.1, 1.0])
    light = Light(np.append(x, 0.0), np.log(np.append(0.9 * r.dirichlet(np.ones(40)), 0.1)), float(users))
    for contour in Gains(light, 15, 0.0, 0.1).contours:
        *_, step, charged = contour.nodes
        cumulants, theta = light.cumulants[contour.way], contour.theta
        far = np.abs(light.tilts - theta) * 2 * np.pi / step
        for y, m in itertools.product(contour.sign * np.linspace(*contour.ends, 9), contour.counts):
            own = cumulants * m / light.users
            with np.errstate(over="ignore", divide="ignore"):
                images = own - np.log(light.tilts) - 1 + light.tilts * y - far - np.log(-np.expm1(-np.maximum(far, 1e-3)))
            images[far < 1e-3] = np.inf
            larger = light.tilts > theta
            both = np.logaddexp(images[larger].min(), images[~larger].min()) + np.log(2)
            assert both - own[contour.place] - theta * y <= np.log(charged[contour.counts == m][0]) + 1e-9


@pytest.mark.parametrize("scale", [0.0, 30.0])
def test_gains_enclose_exact_sums_on_and_beyond_the_interval(scale):
    """Beyond the interval the bounds are those of Chernoff; at the larger scale the interval is short, and they are close."""
    values, mass, users = np.array([-1.0, 0.0, 1.0]), np.array([0.3, 0.3, 0.4]), 40
    gains = Gains(Light(values, np.log(mass), float(users)), 2, scale, 0.1)
    for y in (gains.low - 3, gains.low - 0.5, gains.low, gains.low + 2, 0.5, gains.high, gains.high + 0.1, gains.high + 1):
        found = gains.at(np.array([y]), slice(None))
        for k, (lower, upper) in enumerate(zip(found.lower[0], found.upper[0])):
            law = functools.reduce(np.convolve, [mass] * (users - k))
            exact = float(np.maximum(y + np.arange(law.size) - (users - k), 0) @ law) * np.exp(-scale)
            assert lower <= exact * (1 + 1e-13)
            assert upper >= exact * (1 - 1e-13)
