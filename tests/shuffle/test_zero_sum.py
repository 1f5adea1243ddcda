"""The sum whose estimate is exactly 0 if all bits are 0, against enumeration and reference values."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shufflebounds import InfeasibleError
from shufflebounds.shuffle import BinomialNoise, ZeroSum
from tests.oracles import (
    assert_encloses,
    assert_error_tail,
    binomial,
    coin,
    power,
    rational,
    references,
    total,
    worse,
)
from tests.strategies import thinned


@pytest.mark.parametrize("eps", [0.0, 0.3, 1.0, 2.5])
@pytest.mark.parametrize("gamma", [0.0625, 0.3, 0.5])
def test_every_dataset_of_few_users(gamma, eps):
    for users in (1, 2, 4, 7):
        noise = power(coin(1 - Fraction(gamma)), users)
        worst = max(
            worse(total(noise, {ones: Fraction(1)}), total(noise, {ones + 1: Fraction(1)}), rational(eps)) for ones in range(users)
        )
        assert_encloses(ZeroSum(users, gamma), eps, worst, apart=1e-11)


def exact_errors(users, gamma, ones):
    """Return the distribution of the estimate's error, by enumeration of the protocol."""
    errors = {}
    for zeros, p in binomial(users, gamma).items():
        seen = ones + users - zeros
        error = (seen - users + Fraction(users * gamma) if seen > users else 0) - ones
        errors[error] = errors.get(error, 0) + p
    return errors


@pytest.mark.parametrize("gamma", [0.125, 0.3, 0.5])
def test_error_tails(gamma):
    users = 9
    points = [0, 0.25, 0.3, 1, 1.5, 2, 2.7, 4, 8, 8.9, 9, 20]
    protocol = ZeroSum(users, gamma)
    for ones in range(users + 1):
        assert_error_tail(protocol, exact_errors(users, gamma, ones), ones, points)
    for a in points:
        worst = max(
            sum((p for e, p in exact_errors(users, gamma, ones).items() if abs(e) > Fraction(a)), Fraction(0))
            for ones in range(users + 1)
        )
        assert Fraction(protocol.error_tail(a, bound="lower")) <= worst
        assert worst <= Fraction(protocol.error_tail(a)) + (Fraction(1, 10**15) if worst == 1 else 0)
        assert protocol.error_tail(a) == pytest.approx(float(worst), rel=1e-10)


@pytest.mark.parametrize("gamma", [1e-3, 0.125, 0.3, 0.5])
@pytest.mark.parametrize("users", thinned([1, 2, 9, 40], 2))
def test_mean_squared_error_of_every_sum(users, gamma):
    protocol, squares = ZeroSum(users, gamma), []
    for ones in range(users + 1):
        squares.append(float(sum(p * e * e for e, p in exact_errors(users, gamma, ones).items())))
        assert protocol.mean_squared_error(ones) == pytest.approx(squares[-1], rel=1e-12, abs=0)
    assert protocol.mean_squared_error() == pytest.approx(max(squares), rel=1e-12)


def test_mean_squared_error_of_many_users():
    # For gamma n = 30 the binomial noise is Poisson noise up to 1e-10, and only sums around 30 matter.
    protocol = ZeroSum(10**12, 30e-12)
    masses = [math.exp(-30) * float(Fraction(30**k, math.factorial(k))) for k in range(200)]
    squares = [sum(p * ((30 - y) ** 2 if y < ones else ones**2) for y, p in enumerate(masses)) for ones in range(120)]
    for ones in (1, 10, 29, 30, 31, 60):
        assert protocol.mean_squared_error(ones) == pytest.approx(squares[ones], rel=1e-9)
    assert protocol.mean_squared_error() == pytest.approx(max(squares), rel=1e-9)
    assert protocol.mean_squared_error(10**11) == pytest.approx(30.0, rel=1e-9)
    # For a normal distribution Y of mean mu, the largest value of E((mu - Y)^2; Y < S) + S^2 Pr[Y >= S] is close to mu^2.
    assert ZeroSum(2**53, 0.25).mean_squared_error() == pytest.approx(2.0**102, rel=1e-6)


@pytest.mark.parametrize("entry", references("s003.gamma_min"), ids=lambda e: e["id"])
def test_calibration_reproduces_the_table(entry):
    p, exact = entry["params"], float(entry["value"])
    protocol = ZeroSum.calibrate(users=p["n"], eps=float(p["eps"]), delta=float(p["delta"]))
    assert protocol.delta(float(p["eps"])) <= float(p["delta"])
    assert protocol.gamma == pytest.approx(exact, rel=1e-10)


@pytest.mark.parametrize("entry", references("s003.fail_exact"), ids=lambda e: e["id"])
def test_reference_error_at_the_published_alpha(entry):
    p = entry["params"]
    eps, delta, beta, n = float(p["eps"]), float(p["delta"]), float(p["beta"]), p["n"]
    gamma = 50 * math.log(2 / delta) / (eps * eps * n)
    alpha = n * gamma + math.sqrt(200 * math.log(2 / delta) * math.log(2 / beta)) / eps
    protocol = ZeroSum(n, gamma)
    assert protocol.error_tail(alpha, p["S"]) == pytest.approx(float(entry["value"]), rel=1e-9)
    assert protocol.error_tail(alpha) == pytest.approx(float(entry["value"]), rel=1e-9)
    assert protocol.error_quantile(beta) < alpha


def test_delta_is_not_monotone_in_gamma_and_infeasible_targets_are_explained():
    assert ZeroSum(2, 0.35).delta(math.log(1.1)) < ZeroSum(2, 0.4).delta(math.log(1.1), bound="lower")
    with pytest.raises(InfeasibleError, match=r"eps=0\.1 with users=10000.*gamma=0\.5 gives delta=.*10097 users would do"):
        ZeroSum.calibrate(users=10**4, eps=0.1, delta=1e-9)
    assert BinomialNoise.calibrate(eps=0.1, delta=1e-9).trials == 10097


@pytest.mark.filterwarnings("ignore:delta=")
@given(users=st.integers(1, 10**9), eps=st.floats(0.05, 3), delta=st.floats(1e-12, 0.5))
@settings(max_examples=25, deadline=None)
def test_calibration_meets_the_target(users, eps, delta):
    try:
        protocol = ZeroSum.calibrate(users=users, eps=eps, delta=delta)
    except InfeasibleError:
        assert ZeroSum(users, 0.5).delta(eps) > delta
    else:
        assert protocol.delta(eps) <= delta
        assert protocol.delta(0.999 * eps) > delta * 0.5


@pytest.mark.slow
def test_protocol_on_data():
    protocol = ZeroSum(500, 0.04)
    rng = np.random.default_rng(3)
    assert {protocol.estimate(protocol.randomize(np.zeros(500), rng)) for _ in range(2000)} == {0.0}
    data = np.r_[np.ones(60), np.zeros(440)]
    raw = np.array([protocol.estimate(protocol.randomize(data, rng), raw=True) for _ in range(4000)]) - 60
    assert abs(raw.mean()) < 5 * math.sqrt(protocol.variance / 4000)
    assert raw.var() == pytest.approx(protocol.variance, rel=0.12)
    few = np.r_[np.ones(20), np.zeros(480)]
    kept = np.array([protocol.estimate(protocol.randomize(few, rng)) for _ in range(4000)]) - 20
    tail = protocol.error_tail(8, 20)
    assert abs(np.mean(np.abs(kept) > 8) - tail) < 5 * math.sqrt(tail / 4000)
    assert protocol.messages_per_user() == 1.96


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: ZeroSum(0, 0.1), "users=0"),
        (lambda: ZeroSum(5, 0.0), "gamma=0"),
        (lambda: ZeroSum(5, 0.6), r"gamma=0\.6"),
        (lambda: ZeroSum(5, math.nan), "gamma=nan"),
        (lambda: ZeroSum(5, 0.1).simulate([0, 1]), "values has 2 entries"),
        (lambda: ZeroSum(5, 0.1).estimate(counts=11), "counts=11|counts holds 11"),
        (lambda: ZeroSum(5, 0.1).error_tail(-1), "a=-1"),
        (lambda: ZeroSum(5, 0.1).error_tail(1, 6), "truth=6"),
        (lambda: ZeroSum(5, 0.1).error_quantile(0), "beta=0"),
        (lambda: ZeroSum.calibrate(users=5, eps=1.0, delta=0.0), "delta=0"),
        (lambda: ZeroSum.calibrate(users=5, eps=-1.0, delta=0.1), "eps=-1"),
    ],
)
def test_bad_input(call, named):
    with pytest.raises(ValueError, match=named):
        call()
