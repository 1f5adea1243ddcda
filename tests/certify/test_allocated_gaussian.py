"""Random allocation of Gaussian noise in interval arithmetic, against closed forms and a quadrature in mpmath."""

import mpmath as mp
import pytest

from shufflebounds import InfeasibleError, mechanisms, sampling
from shufflebounds.certify import allocated_gaussian
from shufflebounds.certify.balls import flint

pytest.importorskip("flint")


def put(c, mu):
    """Return E (c - L)_+ for L = e^(mu g - mu^2/2)."""
    if c <= 0:
        return mp.mpf(0)
    d = mp.log(c) / mu
    return c * mp.ncdf(d + mu / 2) - mp.ncdf(d - mu / 2)


def exact(steps, mu, eps, removed):
    """Return delta for one or two steps; the second step is integrated by its closed form."""
    e = mp.exp(mp.mpf(eps))
    c = steps * e if removed else steps / e
    if steps == 1:
        value = put(c, mu)
    else:
        end = (mp.log(c) + mu * mu / 2) / mu
        value = mp.quad(lambda x: mp.npdf(x) * put(c - mp.exp(mu * x - mu * mu / 2), mu), [-12, -6, -3, 0, min(end, 3), end])
    return value / steps + 1 - e if removed else e / steps * value


@pytest.fixture(autouse=True)
def precision():
    before = flint().ctx.prec
    with mp.workdps(40):
        yield
    flint().ctx.prec = before


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "eps"), [(30.0, 0.05), (1e4, 1e-4)])
def test_much_noise(sigma, eps):
    flint().ctx.prec = 200
    for steps, removed in ((1, True), (2, False)):
        value = exact(steps, 1 / mp.mpf(sigma), eps, removed)
        ball = allocated_gaussian.delta(sigma, 1.0, steps, flint().arb(eps).exp(), removed, float(mp.log(value)))
        middle, radius = (mp.mpf(x.str(60, radius=False)) for x in (ball.mid(), ball.rad()))
        assert abs(middle - value) <= radius + value * 1e-15
        assert radius < value * 1e-8


@pytest.mark.slow
def test_too_many_terms_are_refused_at_once():
    with pytest.raises(InfeasibleError, match="more than 8192 terms"):
        sampling.AllocationPair(mechanisms.GaussianMechanism(0.5), 10).certify(7.7, bound="upper")


@pytest.mark.slow
@pytest.mark.parametrize(("steps", "removed"), [(1, False), (2, True), (2, False)])
def test_one_and_two_steps_at_any_witness(steps, removed):
    flint().ctx.prec = 200
    factor, value = flint().arb(0.5).exp(), exact(steps, mp.mpf(1) / 2, 0.5, removed)
    for known in (None, (6.0, 12.0), (12.0, 9.0), (4.0, 5.0), (6.0, 0.8)):
        ball = allocated_gaussian.delta(2.0, 1.0, steps, factor, removed, -5.0, known)
        middle, radius = (mp.mpf(x.str(60, radius=False)) for x in (ball.mid(), ball.rad()))
        assert abs(middle - value) <= radius + mp.mpf(10) ** -20
        assert known is not None or radius < value * 1e-8
    for known in ((-1.0, 12.0), (6.0, -0.5)):
        with pytest.raises(ArithmeticError, match="witness"):
            allocated_gaussian.delta(2.0, 1.0, steps, factor, removed, -5.0, known)


@pytest.mark.slow
def test_stated_bounds():
    noise = mechanisms.GaussianMechanism
    for profile in (sampling.RandomAllocation(noise(1.0), 100), sampling.AllocationPair(noise(2.0, 2.0), 30, False),
                    sampling.AllocationPair(noise(100.0), 1000)):
        eps = profile.epsilon(1e-5)
        above, below = (float(profile.certify(eps, bound=bound).log()) for bound in ("upper", "lower"))
        assert profile.log_delta(eps, bound="lower") - 1e-8 < above < profile.log_delta(eps) + 1e-8
        assert below == pytest.approx(above, abs=1e-7)
