"""Kernels of elementary functions against python-flint, including the ends of their ranges."""

import math
from fractions import Fraction

import numpy as np
import pytest

pytest.importorskip("flint")

import flint
from flint import arb

from shufflebounds._core import _special
from tests.errors import in_ulps

TRIALS = 3000


@pytest.fixture(autouse=True)
def precision():
    old, flint.ctx.prec = flint.ctx.prec, 2400
    yield
    flint.ctx.prec = old


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def digits(ball):
    return ball.str(34, radius=False)


def worst(function, exact, *arguments):
    """Return the largest error in ulp, and the arguments at which it occurs."""
    answers = function(*arguments)
    errors = [(in_ulps(y, digits(exact(*map(float, x)))), x) for y, x in zip(answers, zip(*arguments))]
    return max(errors)


def signed(rng, low, high, size):
    return np.exp(rng.uniform(math.log(low), math.log(high), size)) * rng.choice([-1.0, 1.0], size)


@pytest.mark.slow
def test_log1pmx(rng):
    x = np.concatenate(
        [
            signed(rng, 1e-150, 0.999, TRIALS),
            np.exp(rng.uniform(0, 690, TRIALS)),
            rng.uniform(-0.999, 2, TRIALS),
            np.nextafter([-0.5, -0.5, 0.8, 0.8], [-1, 1, 0, 1]),
            [-1 + 2.0**-53, 1e-170, -1e-170],
        ]
    )
    assert worst(_special.log1pmx, lambda v: arb(v).log1p() - arb(v), x)[0] < 4
    assert _special.log1pmx(0.0) == 0
    assert _special.log1pmx(-1.0) == -math.inf
    assert math.isnan(_special.log1pmx(-1.5))


def test_log1mexp(rng):
    x = -np.concatenate([np.exp(rng.uniform(-690, 6.5, TRIALS)), rng.uniform(0.5, 1, TRIALS), [math.log(2), 5e-324, 1e-310]])
    flint.ctx.prec = 1200
    assert worst(_special.log1mexp, lambda v: (-(arb(v).expm1())).log() if v > -1 else (-(arb(v).exp())).log1p(), x)[0] < 2.5
    assert _special.log1mexp(0.0) == -math.inf
    assert _special.log1mexp(-math.inf) == 0
    assert math.isnan(_special.log1mexp(1.0))


def test_stirling_error(rng):
    flint.ctx.prec = 300
    n = np.unique(np.concatenate([np.arange(1, 200), np.floor(np.exp(rng.uniform(0, 36.7, TRIALS))), [2.0**53]]))

    def exact(v):
        v = arb(v)
        return (v + 1).lgamma() - (v + 0.5) * v.log() + v - (2 * arb.pi()).log() / 2

    assert worst(_special.stirling_error, exact, n)[0] < 3
    for bad in (0.0, -1.0, 1.5, math.inf, math.nan):
        assert math.isnan(_special.stirling_error(bad))


@pytest.mark.slow
def test_mills_ratio(rng):
    flint.ctx.prec = 500
    # The ends of the polynomial pieces are at y = 4/(4 + x) = i/32.
    joints = np.array([4 * (32 - i) / i for i in range(1, 33)])
    x = np.concatenate(
        [
            np.exp(rng.uniform(-40, 40, TRIALS)),
            rng.uniform(0, 40, TRIALS),
            joints,
            np.nextafter(joints, 0),
            np.nextafter(joints, 1e9),
            [0.0, 5e-324],
        ]
    )
    # The reference value is e^(x^2/2) erfc(x/sqrt 2) sqrt(pi/2), by Kummer's function.
    assert (
        worst(
            _special.mills_ratio,
            lambda v: (arb(v) ** 2 / 2).hypgeom_u(arb(1) / 2, arb(1) / 2) / arb(2).sqrt() if v else (arb.pi() / 2).sqrt(),
            x,
        )[0]
        < 5
    )
    assert _special.mills_ratio(1e300) == pytest.approx(1e-300, rel=1e-15)
    assert _special.mills_ratio(math.inf) == 0
    assert math.isnan(_special.mills_ratio(-1.0))


@pytest.mark.slow
def test_deviance(rng):
    m = np.exp(rng.uniform(-7, 36.7, TRIALS))
    near = m * (1 + rng.normal(size=TRIALS) * 10 ** rng.uniform(-12, -0.5, TRIALS))
    x = np.concatenate([near, m * rng.uniform(0.3, 3, TRIALS), np.exp(rng.uniform(-7, 36.7, TRIALS))])
    m = np.tile(m, 3)
    # The ufunc computes x - m, so only pairs are kept for which this difference is exact.
    keep = [a > 0 and Fraction(a) - Fraction(b) == Fraction(a - b) for a, b in zip(x.tolist(), m.tolist())]
    assert sum(keep) > TRIALS
    exact = lambda a, b: arb(a) * (arb(a) / arb(b)).log() - arb(a) + arb(b)  # noqa: E731
    assert worst(_special.deviance, exact, x[keep], m[keep])[0] < 9
    assert _special.deviance(0.0, 3.0) == 3
    assert _special.deviance(3.0, 3.0) == 0
    for bad in ((-1.0, 1.0), (1.0, 0.0), (1.0, math.inf), (math.inf, 1.0), (math.nan, 1.0), (1.0, math.nan)):
        assert math.isnan(_special.deviance(*bad))


def test_log_add_and_sub(rng):
    flint.ctx.prec = 300
    a = rng.uniform(-700, 700, TRIALS)
    b = a - np.exp(rng.uniform(-5, 6, TRIALS))
    added, taken = _special.log_add_exp(a, b), _special.log_sub_exp(a, b)
    for x, y, s, d in zip(a.tolist(), b.tolist(), added, taken):
        gap = 1 - (arb(y) - arb(x)).exp()
        # The errors are absolute, because the result may be much smaller than the arguments.
        assert abs(arb(s) - (arb(x) + (arb(y) - arb(x)).exp().log1p())) < 4e-16 + 2 * math.ulp(x)
        assert abs(arb(d) - (arb(x) + gap.log())) < 4e-16 + 2 * math.ulp(x) + 2 * math.ulp(float(gap.log()))
    assert _special.log_add_exp(-math.inf, -math.inf) == -math.inf
    assert _special.log_add_exp(-math.inf, 2.0) == 2
    assert _special.log_sub_exp(2.0, -math.inf) == 2
    assert _special.log_sub_exp(2.0, 2.0) == -math.inf
    assert _special.log_sub_exp(-math.inf, -math.inf) == -math.inf
    assert math.isnan(_special.log_sub_exp(1.0, 2.0))


@pytest.mark.parametrize("name", ["log1pmx", "log1mexp", "stirling_error", "mills_ratio"])
def test_nan_passes_quietly(name):
    assert math.isnan(getattr(_special, name)(math.nan))
