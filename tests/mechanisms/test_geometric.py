"""Double geometric noise, with and without a bound, against sums over all outcomes."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shufflebounds.mechanisms import GeometricMechanism, LaplaceMechanism
from shufflebounds.shuffle import Clones, ShuffledBits
from tests.errors import reference, relative
from tests.mechanisms import exact
from tests.oracles import assert_sides_and_monotone
from tests.strategies import slow, thinned


def brute(eps, sensitivity, bound, asked):
    """Return the log of the largest hockey-stick divergence over all shifts and both orders."""
    law = exact.geometric(eps, sensitivity, bound)
    e = exact.exponential(asked)
    shifts = [exact.shifted(law, by) for by in range(1, sensitivity + 1)]
    return exact.log(max(max(exact.hockey_stick(law, other, e), exact.hockey_stick(other, law, e)) for other in shifts))


@pytest.mark.parametrize("bound", [1, 3, 7])
@pytest.mark.parametrize("sensitivity", [1, 2, 3, 5])
@pytest.mark.parametrize("eps", [0.01, 0.3, 1.0, 3.0, 20.0])
def test_truncated_by_enumeration(eps, sensitivity, bound):
    noise = GeometricMechanism(eps, sensitivity, bound)
    for asked in (0.0, 0.1, eps / 2, eps / sensitivity, eps * 0.999, eps, 2 * eps, 2.5, 30.0):
        value = brute(eps, sensitivity, bound, asked)
        lower, upper = noise.log_delta(asked, bound="lower"), noise.log_delta(asked)
        # For disjoint distributions log delta is 0, up to rounding at 300 digits.
        assert lower <= value + mp.mpf(10) ** -290
        assert value <= upper
        assert upper - lower < 1e-13 + 32 * math.ulp(lower)


@pytest.mark.parametrize("eps", [3.0, 8.355797052759366, 38.972824449714885])
@pytest.mark.parametrize(("sensitivity", "bound"), [(1, 1), (2, 2), (4, 2), (5, 3)])
def test_next_to_the_losses_of_the_ends(eps, sensitivity, bound):
    """The ends of clipped noise have the losses rate * whole number +- log(1 - q), of which log(1 - q) may be far below an ulp."""
    rate = eps / sensitivity
    noise = GeometricMechanism(eps, sensitivity, bound)
    for steps in range(sensitivity + 1):
        for loss in (steps * rate, steps * rate + math.log1p(-math.exp(-rate)), steps * rate - math.log1p(-math.exp(-rate))):
            for asked in (math.nextafter(loss, 0), loss, math.nextafter(loss, 99)):
                if asked >= 0:
                    value = brute(eps, sensitivity, bound, asked)
                    assert noise.log_delta(asked, bound="lower") <= value + mp.mpf(10) ** -290
                    assert value <= noise.log_delta(asked)


@pytest.mark.parametrize(("eps", "sensitivity"), thinned(
    [slow(0.5, 1), slow(1.0, 1), slow(1.0, 2), (2.0, 3), slow(1.5, 4), (8.0, 7)], 3))
def test_noise_without_a_bound_by_enumeration(eps, sensitivity):
    # The sum is truncated where the rest is below the precision of the comparison.
    bound = int(300 * sensitivity / eps)
    law = exact.geometric(eps, sensitivity, bound)
    rest = float(law[bound])
    other = exact.shifted(law, sensitivity)
    noise = GeometricMechanism(eps, sensitivity)
    for asked in (0.0, eps / 7, eps / max(sensitivity, 2), eps / 1.5, eps * (1 - 2.0**-30), math.nextafter(eps, 0)):
        value = exact.log(exact.hockey_stick(law, other, exact.exponential(asked)))
        lower, upper = noise.log_delta(asked, bound="lower"), noise.log_delta(asked)
        blur = 4 * rest / mp.exp(value)
        assert lower - blur <= value <= upper + blur
        assert upper - lower < 1e-13 + 32 * math.ulp(lower)
    assert noise.log_delta(eps) == -math.inf
    assert noise.epsilon(0.0) == eps
    for order in (1, 1.5, 2, 7, math.inf):
        both = {y: law[y] for y in law if y in other}, {y: other[y] for y in law if y in other}
        value = exact.renyi(*both, order) if order < math.inf else eps
        assert noise.rdp(order, bound="lower") * (1 - 1e-14) <= value <= noise.rdp(order) * (1 + 1e-14)
        assert noise.rdp(order) == pytest.approx(value, rel=1e-12)


def test_the_closed_form_at_sensitivity_one():
    for rate in (0.2, 0.5, 1.0, 3.0):
        for bound in (2, 5, 20):
            with mp.workdps(60):
                q = mp.exp(-mp.mpf(rate))
                value = (q**bound + max(mp.mpf(0), q**bound + q ** (bound - 1) - q ** (bound - 2))) / (1 + q)
                noise = GeometricMechanism(rate, bound=bound)
                assert noise.log_delta(rate, bound="lower") <= mp.log(value) <= noise.log_delta(rate)
                assert value <= q ** (bound - 1)


def test_reference():
    values = {v["id"].split("/")[1]: v for v in reference("survey")}
    delta = values["s4_tdgeo_delta"]
    assert relative(GeometricMechanism(0.5, bound=20).delta(0.5), delta["value"]) < 1e-13
    assert GeometricMechanism.from_dp(eps=0.5, delta=5e-7).bound == int(values["s4_tdgeo_minB"]["value"])
    for name in ("s4_dgeo_var_.1", "s4_dgeo_var_3"):
        assert relative(GeometricMechanism(float(values[name]["params"]["eps"])).variance, values[name]["value"]) < 1e-14


@pytest.mark.filterwarnings("ignore:delta=")
@pytest.mark.parametrize(("eps", "delta", "sensitivity"), [(0.5, 5e-7, 1), (1.0, 1e-12, 3), (0.01, 1e-3, 2), (3.0, 0.9, 1)])
def test_from_dp_is_the_smallest_bound(eps, delta, sensitivity):
    noise = GeometricMechanism.from_dp(eps=eps, delta=delta, sensitivity=sensitivity)
    assert noise.delta(eps) <= delta
    assert noise.bound == 1 or GeometricMechanism(eps, sensitivity, noise.bound - 1).delta(eps, bound="lower") > delta


@pytest.mark.parametrize(("eps", "bound"), [(0.7, None), (0.7, 3), (0.7, 1), (2.0, 5), (1e-3, 40)])
def test_variance_and_tail(eps, bound):
    law = exact.geometric(eps, 1, bound or 200)
    noise = GeometricMechanism(eps, bound=bound)
    assert noise.variance == pytest.approx(float(sum(k * k * v for k, v in law.items())), rel=1e-13)
    for t in (0, 1, 2.5, 7):
        value = sum(v for k, v in law.items() if abs(k) > t)
        assert noise.error_tail(t) == pytest.approx(float(value), rel=1e-13)
        assert noise.error_tail(t, 9) == pytest.approx(float(1 - (1 - value) ** 9), rel=1e-12)
    for beta in (0.9, 0.3, 0.01, 1e-9):
        t = noise.error_quantile(beta, 2)
        assert t == math.floor(t)
        assert noise.error_tail(t, 2) <= beta
        assert t == 0 or noise.error_tail(t - 1, 2) > beta


@pytest.mark.parametrize("bound", [10**6 + 1, 10**7])
def test_variance_for_a_large_bound(bound):
    rate = 3.0 / bound
    with mp.workdps(60):
        q = mp.exp(-mp.mpf(rate))
        # The closed form of the sum of (2k - 1) q^k is used.
        first = q * (1 - (bound + 1) * q**bound + bound * q ** (bound + 1)) / (1 - q) ** 2
        value = 2 / (1 + q) * (2 * first - q * (1 - q**bound) / (1 - q))
    assert GeometricMechanism(rate, bound=bound).variance == pytest.approx(float(value), rel=1e-11)


def test_large_sensitivity_is_laplace_in_the_limit():
    fine = GeometricMechanism(1.0, sensitivity=2**20)
    coarse = LaplaceMechanism(1.0)
    for asked in (0.0, 0.25, 0.9):
        assert fine.log_delta(asked) == pytest.approx(coarse.log_delta(asked), rel=1e-5)
    assert fine.variance / 2.0**40 == pytest.approx(coarse.variance, rel=1e-9)


@pytest.mark.parametrize("bound", [None, 4])
def test_randomize(bound):
    noise = GeometricMechanism(0.6, bound=bound)
    out = noise.randomize(np.full((3, 50000), 7), rng=11)
    assert out.dtype == np.int64
    assert out.shape == (3, 50000)
    assert abs(noise.estimate(out).mean() - 7) < 4.5 * math.sqrt(noise.variance / out.size)
    law = exact.geometric(0.6, 1, bound or 60)
    for k in (-4, -1, 0, 2, 4):
        chance = float(law[k])
        assert abs((out - 7 == k).mean() - chance) < 4.5 * math.sqrt(chance / out.size)
    assert bound is None or np.abs(out - 7).max() == bound


def test_curve():
    noise = GeometricMechanism(1.2, 2)
    below, above = noise.tradeoff(), noise.tradeoff(bound="upper")
    law = exact.geometric(1.2, 2, 200)
    # The best tests reject if k is at least a threshold.
    for threshold in range(-5, 8):
        alpha = float(sum(v for k, v in law.items() if k >= threshold))
        beta = float(sum(v for k, v in law.items() if k + 2 < threshold))
        assert below.beta(alpha) * (1 - 1e-13) <= beta <= above.beta(alpha) * (1 + 1e-13)
        assert below.beta(alpha) == pytest.approx(beta, rel=1e-12)
    truncated = GeometricMechanism(1.2, 2, 6)
    assert truncated.tradeoff().beta(0.3) <= truncated.tradeoff(bound="upper").beta(0.3)
    assert truncated.rdp(2.0) == math.inf


@pytest.mark.slow
def test_shuffled():
    free = GeometricMechanism(2.0).shuffled(1000)
    assert free.epsilon(1e-6, bound="lower") <= free.epsilon(1e-6) < Clones(1000, 2.0).epsilon(1e-6)
    # If the noise has a bound, only one of the two inputs can produce the outermost value, so that delta is at least the
    # probability of that value, for any number of users.
    truncated = GeometricMechanism(2.0, bound=5)
    assert truncated.shuffled(1000).delta(1.9) >= math.exp(-10) / (1 + math.exp(-2)) * (1 - 1e-9)


@given(
    eps=st.floats(1e-3, 50), sensitivity=st.integers(1, 40), bound=st.one_of(st.none(), st.integers(1, 10**6)),
    asked=st.floats(0, 60), more=st.floats(0, 3),
)
def test_sides_and_monotone(eps, sensitivity, bound, asked, more):
    noise = GeometricMechanism(eps, sensitivity, bound)
    _, upper = assert_sides_and_monotone(noise, asked, more)
    if bound is not None:
        # Noise without a bound has a smaller delta.
        assert GeometricMechanism(eps, sensitivity).log_delta(asked, bound="lower") <= upper + 1e-12 * abs(upper)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: GeometricMechanism(0.0), "eps=0"),
        (lambda: GeometricMechanism(1.0, 0), "sensitivity=0"),
        (lambda: GeometricMechanism(1.0, 1.5), "sensitivity=1.5"),
        (lambda: GeometricMechanism(1.0, 1, 0), "bound=0"),
        (lambda: GeometricMechanism(1e-13), "eps=1e-13 must be at least 1e-12 times"),
        (lambda: GeometricMechanism.from_dp(eps=1.0, delta=0.0), "delta=0"),
        (lambda: GeometricMechanism.from_dp(eps=1.0, delta=1e-6, sensitivity=0.0), "sensitivity=0.0 must be an integer"),
        (lambda: GeometricMechanism(1.0).randomize([0.5]), "values holds 0.5: every entry must be a whole number"),
    ],
)
def test_bad_input(call, text):
    with pytest.raises(ValueError, match=text):
        call()




@pytest.mark.parametrize("sensitivity", thinned([1, 2, 5, 50], 2))
@pytest.mark.parametrize("eps", [1e-10, 1e-6, 1e-3, 0.7, 90.0])
def test_renyi_divergence_at_any_budget(eps, sensitivity):
    with mp.workdps(exact.DIGITS):
        q = mp.exp(-mp.mpf(eps) / sensitivity)
        inner = {k: (1 - q) / (1 + q) * q**k for k in range(1, sensitivity)}
        law = {0: 1 / (1 + q), **inner, sensitivity: q**sensitivity / (1 + q)}
        mirror = {k: law[sensitivity - k] for k in law}
        noise = GeometricMechanism(eps, sensitivity)
        for order in (1.0, 1 + 2.0**-40, 1.5, 40.0, 1e6, math.inf):
            if order == math.inf:
                value = mp.mpf(eps)
            elif order == 1:
                value = mp.fsum(v * mp.log(v / mirror[k]) for k, v in law.items())
            else:
                power = mp.mpf(order)
                value = mp.log(mp.fsum(mirror[k] * (v / mirror[k]) ** power for k, v in law.items())) / (power - 1)
            lower, upper = noise.rdp(order, bound="lower"), noise.rdp(order)
            assert lower <= value <= upper
            assert upper - lower < 3e-12 * upper


@pytest.mark.parametrize(("budget", "users", "eps"), [(1.0, 20, 0.1), (2.0, 100, 0.5)])
def test_noise_on_a_bit_is_a_post_processing_of_randomized_response(budget, users, eps):
    bits = ShuffledBits(users, 1 / (1 + math.exp(budget)))
    shuffled = GeometricMechanism(budget).shuffled(users)
    # The privacy blanket alone is at least 20 % above.
    assert shuffled.delta(eps) <= bits.delta(eps) * (1 + 1e-9)
    assert shuffled.delta(eps, bound="lower") > 0.99 * bits.delta(eps)
