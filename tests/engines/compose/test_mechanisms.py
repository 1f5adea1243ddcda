"""Compositions of mechanisms with atoms and a density, with enumerated outcomes, with closed forms, and of up to 1e9 releases."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shufflebounds.mechanisms import (
    DiscreteGaussianMechanism,
    GaussianMechanism,
    GeometricMechanism,
    LaplaceMechanism,
    RandomizedResponse,
    Rappor,
)
from shufflebounds.profile import Composition, PrivacyProfile
from tests.engines.compose.test_composer import gaussian_delta
from tests.strategies import slow, thinned

mp = mpmath.mp.clone()
mp.dps = 40


def laplace_delta(e0, times, eps):
    """Return the mean of (1 - e^(eps - L))_+, where L is the sum of the losses of `times` releases of Laplace noise.

    One loss is e0 with probability 1/2, -e0 with probability e^-e0/2, and otherwise has the density e^((l - e0)/2)/4 in between.
    The sum s of m losses with this density has the density e^((s - m e0)/2)/4^m times the convolution of m indicator functions of
    [-e0, e0].
    """
    e0, eps, total = mp.mpf(e0), mp.mpf(eps), mp.mpf(0)
    for high in range(times + 1):
        for low in range(times + 1 - high):
            m, center = times - high - low, (high - low) * e0
            weight = mp.mpf(math.factorial(times)) / (math.factorial(high) * math.factorial(low) * math.factorial(m))
            weight *= mp.mpf(2) ** -(high + low) * mp.exp(-low * e0)
            if m == 0:
                total += weight * max(mp.mpf(0), -mp.expm1(eps - center))
                continue

            def density(s, m=m, center=center):
                lengths = mp.fsum(
                    (-1) ** k * mp.binomial(m, k) * max(mp.mpf(0), s + m * e0 - 2 * e0 * k) ** (m - 1) for k in range(m + 1)
                )
                if m == 1:
                    lengths = mp.mpf(1)
                share = lengths / math.factorial(m - 1) * mp.exp((s - m * e0) / 2) / mp.mpf(4) ** m
                return share * -mp.expm1(eps - center - s)

            start = max(eps - center, -m * e0)
            knots = [start, *(k for j in range(m + 1) if (k := (2 * j - m) * e0) > start)]
            if len(knots) > 1:
                total += weight * mp.quad(density, knots)
    return total


def log(x):
    return float(mp.log(x)) if x > 0 else -math.inf


def sides(profile, eps):
    return profile.log_delta(eps, bound="lower"), profile.log_delta(eps)


@pytest.mark.parametrize("e0", thinned([0.1, 1.0, 5.0], 2))
def test_the_oracle_of_one_release(e0):
    for share in (-0.5, 0.0, 0.3, 0.99):
        eps = mp.mpf(e0) * mp.mpf(share)
        assert mp.almosteq(laplace_delta(e0, 1, eps), -mp.expm1((eps - mp.mpf(e0)) / 2), 1e-30)


@pytest.mark.slow
@pytest.mark.parametrize(("scale", "times"), [(10.0, 2), (1.0, 4), (0.25, 3)])
def test_laplace_by_quadrature(scale, times):
    many = LaplaceMechanism(scale).self_compose(times)
    e0 = 1 / scale
    for share in (0.0, 0.21, 0.5, 0.9, 0.999):
        eps = share * times * e0
        exact = log(laplace_delta(e0, times, eps))
        lower, upper = sides(many, eps)
        assert lower <= exact <= upper
        # The allowed gap of log delta grows towards the pure budget (share = 1), where log delta falls to -inf.
        assert upper - lower < 1e-5 * (1 + 1 / (1 - share))


@pytest.mark.slow
@pytest.mark.parametrize("other", [0.0789])
def test_laplace_after_randomized_response(other):
    both = LaplaceMechanism(8.0).self_compose(2).compose(RandomizedResponse(other))
    chance = 1 / (1 + mp.exp(-mp.mpf(other)))
    for eps in (0.0, 0.05, 0.2, 0.24 + other):
        exact = chance * laplace_delta(0.125, 2, eps - mp.mpf(other)) + (1 - chance) * laplace_delta(0.125, 2, eps + mp.mpf(other))
        lower, upper = sides(both, eps)
        assert lower <= log(exact) <= upper
        assert upper - lower < 2e-5


def test_hundred_laplace_releases_lie_in_the_bracket_of_another_library():
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    below, above = (
        pld.from_laplace_mechanism(10.0, pessimistic_estimate=side, value_discretization_interval=1e-4)
        .self_compose(100).get_epsilon_for_delta(1e-6) for side in (False, True)
    )
    many = LaplaceMechanism(10.0).self_compose(100)
    lower, upper = many.epsilon(1e-6, bound="lower"), many.epsilon(1e-6)
    assert lower <= above
    assert below <= upper
    assert upper - lower <= 1e-6 * upper


@pytest.mark.parametrize("delta", [1e-3, 1e-50, 1e-130])
def test_deep_laplace(delta):
    many = LaplaceMechanism(10.0).self_compose(1000)
    lower, upper = many.epsilon(delta, bound="lower"), many.epsilon(delta)
    assert lower <= upper <= lower * (1 + 1e-5)
    assert many.epsilon(delta * 1e-3, bound="lower") > upper


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.floats(0.3, 100), st.integers(1, 60), st.floats(0.01, 2), st.integers(0, 20), st.sampled_from([1e-2, 1e-6, 1e-15]))
@example(10.0, 50, 0.13, 50, 1e-6)
@example(7.0, 1, 0.29, 1, 1e-6)
@example(76.39047211345779, 42, 1.7560739171035091, 5, 1e-15)
def test_atoms_beside_densities_meet(scale, times, eps, more, delta):
    many = LaplaceMechanism(scale).self_compose(times)
    if more:
        many = many.compose(RandomizedResponse(eps).self_compose(more))
    lower, upper = many.epsilon(delta, bound="lower"), many.epsilon(delta)
    # The bounds must also be tight close to the pure budget, where delta decreases much faster than delta of Gaussian noise.
    assert lower <= upper <= lower * (1 + 1e-4) + 1e-9


def double_geometric(eps, sensitivity, bound, reach=None):
    q = mp.exp(-mp.mpf(eps) / sensitivity)
    last = bound or reach
    out = {k: (1 - q) / (1 + q) * q ** abs(k) for k in range(-last, last + 1)}
    if bound:
        out[bound] = out[-bound] = q**bound / (1 + q)
    return out


def discrete_gaussian(sigma, reach):
    weight = {k: mp.exp(-mp.mpf(k) ** 2 / (2 * mp.mpf(sigma) ** 2)) for k in range(-reach, reach + 1)}
    total = mp.fsum(weight.values())
    return {k: w / total for k, w in weight.items()}


def composed_delta(noise, shift, times, eps):
    """Return delta of several releases of noise against noise plus `shift`, from the distribution of the sum of losses."""
    outcomes = [(p, noise.get(k - shift, mp.mpf(0))) for k, p in noise.items()]
    factor, total = mp.exp(mp.mpf(eps)), mp.mpf(0)
    for chosen in itertools.product(outcomes, repeat=times):
        total += max(mp.mpf(0), mp.fprod(p for p, _ in chosen) - factor * mp.fprod(q for _, q in chosen))
    return total


@pytest.mark.slow
@pytest.mark.parametrize(
    ("one", "noise", "shift"),
    [
        (GeometricMechanism(0.5), double_geometric(0.5, 1, None, 80), 1),
        (GeometricMechanism(1.0, 1, 1), double_geometric(1.0, 1, 1), 1),
        (GeometricMechanism(0.5, 1, 12), double_geometric(0.5, 1, 12), 1),
        (DiscreteGaussianMechanism(2.0, 3), discrete_gaussian(2.0, 34), 3),
    ],
    ids=lambda x: str(x) if isinstance(x, PrivacyProfile) else "",
)
def test_whole_number_noise_by_enumeration(one, noise, shift):
    many = one.self_compose(2)
    for eps in (0.0, 0.2, 0.9, 1.7):
        exact = composed_delta(noise, shift, 2, eps)
        # `missing` bounds the truncation error of the reference value for unbounded noise.
        missing = mp.mpf(0 if getattr(one, "bound", None) else 10.0**-14)
        lower, upper = sides(many, eps)
        assert lower <= log(exact + missing)
        assert log(exact - missing) <= upper
        assert upper - lower < 1e-4 or exact < 1e-12


@pytest.mark.parametrize(("eps", "sensitivity", "bound"), thinned(
    [(0.7, 2, 3), (0.6, 2, 9), (1.5, 3, 8), (1.0, 5, 3), (1.0, 3, 3)], 2))
def test_truncated_noise_of_larger_sensitivity(eps, sensitivity, bound):
    many = GeometricMechanism(eps, sensitivity, bound).self_compose(2)
    noise = double_geometric(eps, sensitivity, bound)
    for total in (0.0, 0.4, 1.1):
        exact = [log(composed_delta(noise, shift, 2, total)) for shift in range(1, sensitivity + 1)]
        lower, upper = sides(many, total)
        assert max(exact) <= upper + 1e-14
        # If the shift is larger than the bound of the noise, a single release reveals the value with certainty.
        assert lower <= max(exact)
        if sensitivity < bound:
            assert lower >= exact[-1] - 1e-3


def test_rappor_by_enumeration():
    one = Rappor(0.25, hashes=2)
    head, other = (mp.mpf(x) for x in (one.p * (1 - one.f / 2) + one.q * one.f / 2, one.q * (1 - one.f / 2) + one.p * one.f / 2))
    unit = mp.log(head * (1 - other) / (other * (1 - head)))
    # The outcomes are four bits: two that the first value sets, and two that the second value sets.
    law = {}
    for bits in itertools.product((0, 1), repeat=4):
        p = mp.fprod((head if b else 1 - head) if i < 2 else (other if b else 1 - other) for i, b in enumerate(bits))
        place = sum(bits[:2]) - sum(bits[2:])
        law[place] = law.get(place, 0) + p
    many = one.self_compose(3)
    for eps in (0.0, 0.7, 2.0, 5.0):
        exact = mp.fsum(
            mp.fprod(law[z] for z in places) * max(mp.mpf(0), -mp.expm1(eps - sum(places) * unit))
            for places in itertools.product(law, repeat=3)
        )
        lower, upper = sides(many, eps)
        assert lower <= log(exact) <= upper
        assert upper - lower < 1e-9


@pytest.mark.parametrize(
    "one", [GeometricMechanism(0.1), GeometricMechanism(1.0, 10), Rappor(0.25), RandomizedResponse(0.3)], ids=str
)
def test_losses_on_a_lattice_are_exact(one):
    many = one.self_compose(100)
    for delta in (1e-6, 1e-20):
        lower, upper = many.epsilon(delta, bound="lower"), many.epsilon(delta)
        assert lower <= upper <= lower * (1 + 1e-9)


@pytest.mark.parametrize("sigma", [0.7, 10.0, 3000.0])
def test_discrete_gaussian_noise_meets(sigma):
    many = DiscreteGaussianMechanism(sigma).self_compose(100)
    for delta in (1e-6, 1e-60):
        lower, upper = many.epsilon(delta, bound="lower"), many.epsilon(delta)
        assert lower <= upper <= lower * (1 + 1e-5)


@pytest.mark.parametrize(("sigma", "times"), [(10.0, 100), (3.0, 7), (1e5, 10**9), (1e7, 2**53)])
def test_gaussian_releases_are_one(sigma, times):
    many = GaussianMechanism(sigma).self_compose(times)
    mu = mp.sqrt(times) / mp.mpf(sigma)
    for z in (0.5, 5.0, 25.0):
        eps = float(mu**2 / 2 + z * mu)
        exact = log(gaussian_delta(mu, eps))
        lower, upper = sides(many, eps)
        assert lower <= exact <= upper
        assert upper - lower < 1e-9


def test_atoms_at_the_upper_end_stay_on_the_grid():
    # Grid points are rounded: an atom of the mechanism with the smaller step must not be assigned to the grid point below.
    both = LaplaceMechanism(6.67514830863406).self_compose(57).compose(LaplaceMechanism(0.679382296551421).self_compose(24))
    lower, upper = both.epsilon(3.78e-5, bound="lower"), both.epsilon(3.78e-5)
    assert lower <= upper <= lower * (1 + 1e-6)


@pytest.mark.slow
def test_gaussian_among_others():
    both = GaussianMechanism(10.0).self_compose(50).compose(LaplaceMechanism(10.0).self_compose(50))
    lower, upper = both.epsilon(1e-6, bound="lower"), both.epsilon(1e-6)
    assert lower <= upper <= lower * (1 + 1e-6)
    # Delta is at least that of each factor alone. Pure releases add at most their budgets to eps.
    assert LaplaceMechanism(10.0).self_compose(50).epsilon(1e-6) < lower
    assert upper < 50 * 0.1 + GaussianMechanism(10.0).self_compose(50).epsilon(1e-6)


@pytest.mark.parametrize(("scale", "times"), [slow(10.0, 10**6), (10.0, 2**40), (1e6, 2**40), (1e-6, 3), (1e-4, 100)])
def test_very_many_or_very_wide(scale, times):
    one = LaplaceMechanism(scale)
    many = one.self_compose(times)
    lower, upper = many.epsilon(1e-6, bound="lower"), many.epsilon(1e-6)
    assert 0 <= lower <= upper <= times / scale * (1 + 1e-12)
    # Eps is about the mean loss; the second term allows for fluctuations of the loss, which can lower eps at this delta.
    assert upper >= times * one.rdp(1.0, bound="lower") * (1 - 1e-9) - 10 / scale * math.sqrt(times)
    if times <= 10**6:
        assert upper - lower <= 1e-3 * upper


def test_pickled_and_equal():
    many = LaplaceMechanism(10.0).self_compose(3)
    many.delta(0.1)
    assert many == Composition(((LaplaceMechanism(10.0), 3),))
    assert np.isfinite(many.log_delta(0.2))


def test_rappor_next_to_uniform_noise_twice():
    # An audit reported that this lower bound was 9e-5 too high. The definition, evaluated in fractions, shows that it is valid.
    one = Rappor(f=0.9999991609802101, p=0.9, q=5.030490237830794e-09, hashes=11)
    f, p, q = (Fraction(x) for x in (one.f, one.p, one.q))
    held, free = (1 - f / 2) * p + f / 2 * q, f / 2 * p + (1 - f / 2) * q
    # Each of the two releases has 11 bits that only the first value sets and 11 that only the second value sets, so 22 of each kind
    # in all.
    first, second = ([math.comb(22, k) * chance**k * (1 - chance) ** (22 - k) for k in range(23)] for chance in (held, free))
    ratio = free * (1 - held) / (held * (1 - free))
    both = one.self_compose(2)
    for eps in (0.0, 2.135686723735162e-05, 4.271373447470324e-05):
        factor = Fraction(math.exp(eps))
        exact = sum(a * b * max(0, 1 - factor * ratio ** (i - j)) for i, a in enumerate(first) for j, b in enumerate(second))
        # For a loss of 1e-5, the rounding of e^eps is below an ulp of the loss.
        assert both.delta(eps, bound="lower") <= float(exact) * (1 + 1e-10)
        assert float(exact) <= both.delta(eps) * (1 + 1e-10)
