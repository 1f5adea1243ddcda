"""The trade-off function from values of delta, against the maximum of the lines in mpmath."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shufflebounds import Tradeoff
from shufflebounds.tradeoff.envelope import envelope as envelope_of
from tests.oracles import logs
from tests.strategies import laws

eps_values = st.one_of(st.floats(0, 3), st.sampled_from([0.0, 1e-8, 0.5, 1.0, 40.0]))
log_deltas = st.one_of(st.floats(-40, -1e-12), st.sampled_from([-math.inf, 0.0, -1e-12, -math.log(2)]))
lines = st.lists(st.tuples(eps_values, log_deltas, log_deltas), min_size=1, max_size=5)


def exp(x):
    return mpmath.exp(mpmath.mpf(x)) if x > -math.inf else mpmath.mpf(0)


def envelope(alpha, given):
    best = mpmath.mpf(0)
    for eps, delta, reverse in given:
        best = max(best, 1 - exp(delta) - exp(eps) * alpha, (1 - exp(reverse) - alpha) / exp(eps))
    return best


@pytest.mark.slow
@settings(max_examples=25)
@given(lines)
def test_nowhere_above_the_lines(raw):
    eps, delta, reverse = zip(*raw)
    f = Tradeoff.from_log_delta(eps, delta, reverse)
    with mpmath.workdps(60):
        # For alpha above 1/2 the complement of alpha is used.
        knots = [(exp(a) if a < -math.log(2) else 1 - exp(r), exp(b)) for a, r, b in zip(*f._form.points[:3])]
        assert knots[0][0] == 0 == knots[-1][1]
        for i, (a, b) in enumerate(knots):
            assert b <= envelope(a, raw)
            if i:
                a0, b0 = knots[i - 1]
                assert a0 <= a or a0 - a < 1e-16
                assert b0 >= b
                for t in (mpmath.mpf(1) / 2, mpmath.mpf(1) / 100, 1 - mpmath.mpf(1) / 100):
                    assert b0 + (b - b0) * t <= envelope(a0 + (a - a0) * t, raw)
        # At other levels the function agrees with the maximum of the lines, with a larger tolerance if two eps are close.
        gap = min((abs(x - y) for x in eps for y in eps if x != y), default=1.0)
        for x in np.linspace(0, 1, 33):
            exact = float(envelope(mpmath.mpf(x), raw))
            assert f.beta(x) == pytest.approx(exact, abs=1e-13 + 1e-14 / max(gap, 1e-9))


@pytest.mark.slow
@given(lines)
def test_upper_curve_is_nowhere_below_the_lines_and_close_to_them(raw):
    eps, delta, reverse = (np.array(column) for column in zip(*sorted(raw)))
    curve, _ = envelope_of(eps, delta, eps, reverse, upper=True)
    with mpmath.workdps(60):
        knots = [(exp(a) if a < -math.log(2) else 1 - exp(r), exp(b)) for a, r, b in zip(*curve.points[:3])]
        gap = min((abs(x - y) for x in eps for y in eps if x != y), default=1.0)
        for a, b in knots:
            assert b >= envelope(a, raw)
            # alpha is rounded up too, which moves a vertex along a line of slope at most e^eps.
            assert b <= envelope(a, raw) + 1e-12 * (1 + 1e-2 / max(gap, 1e-9))
        for x in np.linspace(0, 1, 33):
            exact = float(envelope(mpmath.mpf(x), raw))
            with np.errstate(divide="ignore"):
                found = math.exp(curve.log_beta(np.log([x]))[0])
            assert found == pytest.approx(exact, abs=1e-13 + 1e-14 / max(gap, 1e-9))


@given(laws())
def test_the_profile_of_a_list_gives_its_curve(pq):
    p, q = pq
    f = Tradeoff.from_pmfs(logs(p), logs(q))
    losses = [abs(math.log(b / a)) for a, b in zip(p, q) if a and b]
    eps = np.unique(np.round([0.0, *losses], 12))
    g = Tradeoff.from_log_delta(eps, f.log_delta(eps), f.inverse().log_delta(eps))
    alpha = np.linspace(0, 1, 65)
    np.testing.assert_allclose(g.beta(alpha), f.beta(alpha), atol=1e-8)
    assert (g.beta(alpha) <= f.beta(alpha) + 1e-13).all()
    np.testing.assert_allclose(g.delta(eps), f.delta(eps), atol=1e-8)


@pytest.mark.parametrize("mu", [0.1, 1.0, 5.0])
def test_lines_of_a_gaussian(mu):
    f = Tradeoff.gaussian(mu)
    eps = np.linspace(0, mu * mu / 2 + 35 * mu, 3000)
    g = Tradeoff.from_log_delta(eps, f.log_delta(eps))
    x = np.concatenate([-np.array([400.0, 100.0, 10.0, 1.0, 0.1]), -np.exp(-np.array([5.0, 20.0, 100.0]))])
    assert (g.log_beta(x) <= f.log_beta(x)).all()
    # The relative error is of second order in the step of the grid, in both tails.
    np.testing.assert_allclose(g.log_beta(x)[x < -0.01], f.log_beta(x)[x < -0.01], atol=2e-3)
    # The complement of beta is stored as a sum, up to the end of the grid.
    assert g.log_delta(eps[-2]) == pytest.approx(f.log_delta(eps[-2]), abs=2e-2)
    some = eps[::100]
    np.testing.assert_allclose(g.log_delta(some), f.log_delta(some), rtol=1e-6, atol=1e-9)
    assert g.gdp_mu() == math.inf


def test_few_lines():
    assert Tradeoff.from_log_delta([0.0], [-np.inf]).beta([0.0, 0.25, 1.0]).tolist() == pytest.approx([1.0, 0.75, 0.0])
    assert Tradeoff.from_log_delta([0.0], [-np.inf]).gdp_mu() == 0
    assert Tradeoff.from_log_delta([1.0], [0.0]).beta(0.0) == 0
    half = Tradeoff.from_log_delta([1.0, 2.0], np.log([0.5, 0.25]), [0.0, 0.0])
    assert half.beta([0.0, 0.05, 0.7]) == pytest.approx([0.75, 0.75 - 0.05 * math.exp(2), 0.0])
    other = Tradeoff.from_log_delta([1.0, 2.0], [0.0, 0.0], np.log([0.5, 0.25]))
    alpha = np.linspace(0, 0.74, 9)
    np.testing.assert_allclose(other.beta(alpha), half.inverse().beta(alpha), atol=1e-14)
    f, g = Tradeoff.from_log_delta([2.0], [math.log(1e-3)]), Tradeoff.approximate(2.0, 1e-3)
    np.testing.assert_allclose(f.beta(alpha), g.beta(alpha), rtol=1e-13)
    shuffled = Tradeoff.from_log_delta([2.0, 1.0], np.log([0.25, 0.5]), [0.0, 0.0])
    assert shuffled == half


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([-1.0], [-1.0]), "eps=-1|eps holds -1"),
        (([1.0], [0.5]), "log_delta holds 0.5"),
        (([1.0], [math.nan]), "log_delta holds nan"),
        (([1.0, 2.0], [-1.0]), "log_delta has shape"),
        (([1.0], [-1.0], [-1.0, -2.0]), "log_delta_reverse has shape"),
        ((1.0, -1.0), "must be 1-D"),
        (([], []), "eps must not be empty"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        Tradeoff.from_log_delta(*arguments)
