"""Projection onto a simplex against active sets; the lower bound of errors against a scan and against known mechanisms."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

from shufflebounds.histograms import point_error_lower_bound, point_error_lower_bound_zcdp, project_simplex


def by_active_sets(r, total):
    """Return the projection by trying every support: the feasible solution that is nearest to r."""
    best, answer = math.inf, None
    for size in range(1, len(r) + 1):
        for support in itertools.combinations(range(len(r)), size):
            shift = (sum(r[i] for i in support) - total) / size
            t = np.zeros(len(r))
            t[list(support)] = [r[i] - shift for i in support]
            if (t >= -1e-12).all():
                distance = float(((t - r) ** 2).sum())
                if distance < best - 1e-13:
                    best, answer = distance, t
    return answer


@given(st.lists(st.floats(-20, 20), min_size=1, max_size=7), st.floats(0, 30))
def test_projection_against_active_sets(r, total):
    r = np.array(r)
    got = project_simplex(r, total)
    assert (got >= 0).all()
    assert got.sum() == pytest.approx(total, abs=1e-12)
    assert got == pytest.approx(by_active_sets(r, total), abs=1e-6)
    # At every positive entry r minus the projection is the same number, the shift; at all other entries r is at most the shift.
    held = got > 0
    if held.any():
        shift = (r - got)[held]
        assert np.ptp(shift) < 1e-12
        assert (r[~held] <= shift.max() + 1e-12).all()


def test_projection_edges():
    assert project_simplex([3.0, -2.0], 0.0).tolist() == [0.0, 0.0]
    assert project_simplex([5.0], 2.0).tolist() == [2.0]
    got = project_simplex(1e9 + np.array([0.25, 0.5, 0.0]), 1.0)
    assert got.sum() == pytest.approx(1.0, abs=1e-9)
    big = np.random.default_rng(0).laplace(size=10**5)
    assert project_simplex(big, 100.0).sum() == pytest.approx(100.0, rel=1e-10)


def scanned(d, eps, delta, rmse, last):
    best = mp.mpf(0)
    with mp.workdps(40):
        e = mp.mpf(eps)
        for t in range(1, last):
            gain = (d - 1) * (mp.exp(-2 * e * t) / 4 - mp.mpf(delta) * -mp.expm1(-2 * e * t) / mp.expm1(e))
            if gain > 0:
                best = max(best, (t * (gain - 1) - 2 * mp.mpf(rmse)) / (2 * (1 + gain)))
    return best


@pytest.mark.slow
@example(2693976, 1.875, 1e-3, 1.0)
@given(st.integers(2, 10**9), st.floats(0.02, 5), st.sampled_from([0.0, 1e-12, 1e-6, 1e-3, 0.3]), st.floats(0, 100))
@example(2693976, 1.875, 1e-3, 1.0)
def test_maximum_over_integers(d, eps, delta, rmse):
    exact = scanned(d, eps, delta, rmse, 3 + math.ceil(math.log(d) / (2 * eps)))
    got = point_error_lower_bound(d, eps, delta, rmse)
    assert got <= exact
    assert got == pytest.approx(float(exact), rel=1e-9, abs=1e-9)


def test_the_inequality_of_the_theorem():
    # The returned C is the smallest that satisfies the inequality at every integer t > 2 C.
    for d, eps, delta, rmse in ((10**6, 0.1, 0.0, 3.0), (500, 0.3, 1e-6, 0.0), (10**9, 1.0, 1e-9, 1.0)):
        c = point_error_lower_bound(d, eps, delta, rmse)
        assert c > 0

        def holds(c, t, d=d, eps=eps, delta=delta, rmse=rmse):
            k = t - 2 * c
            left = k * (d - 1) / (4 * c + 2 * rmse + k)
            slack = delta * -math.expm1(-2 * eps * t) / math.expm1(eps)
            return left * (math.exp(-2 * eps * t) / 4 - slack) <= 1

        integers = range(math.floor(2 * c) + 1, 400)
        assert all(holds(c * (1 + 1e-9), t) for t in integers)
        assert not all(holds(c * (1 - 1e-9), t) for t in integers)


def test_mechanisms_obey_it():
    # Each cell has Laplace noise of scale 2/eps (one record changes one cell and the sum), and is projected onto the noisy sum.
    rng = np.random.default_rng(1)
    d, eps = 2000, 1.0
    truth = np.zeros(d)
    truth[0] = math.ceil(math.log(d) / eps)
    errors = []
    for _ in range(200):
        total = max(0.0, truth.sum() + rng.laplace(scale=2 / eps))
        errors.append((project_simplex(truth + rng.laplace(scale=2 / eps, size=d), total) - truth) ** 2)
    worst = math.sqrt(np.mean(errors, axis=0).max())
    assert worst >= point_error_lower_bound(d, eps, 0.0, math.sqrt(8) / eps)


def test_what_is_known_about_its_size():
    # The bound increases with the number of cells, and decreases with the budget and with the error allowed for the sum.
    base = point_error_lower_bound(10**6, 0.1, 0.0, 0.0)
    assert point_error_lower_bound(10**8, 0.1, 0.0, 0.0) > base
    assert point_error_lower_bound(10**6, 0.2, 0.0, 0.0) < base
    assert point_error_lower_bound(10**6, 0.1, 0.0, 20.0) < base
    assert point_error_lower_bound(10**6, 0.1, 1e-3, 0.0) < base
    assert point_error_lower_bound(2, 1.0, 0.0, 0.0) == 0.0
    assert point_error_lower_bound(100, 0.1, 1.0, 0.0) == 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: project_simplex([], 1.0), "r must not be empty"),
        (lambda: project_simplex([[1.0]], 1.0), "one-dimensional"),
        (lambda: project_simplex([1.0], -1.0), "total=-1"),
        (lambda: point_error_lower_bound(1, 1.0, 0.0, 0.0), "d=1"),
        (lambda: point_error_lower_bound(5, 0.0, 0.0, 0.0), "eps=0"),
        (lambda: point_error_lower_bound(5, 1.0, -0.1, 0.0), r"delta=-0\.1"),
        (lambda: point_error_lower_bound(5, 1.0, 0.0, -1.0), "sum_rmse=-1"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_entries_near_the_largest_double():
    assert project_simplex([1e300, -1e300], 1e300).tolist() == [1e300, 0.0]
    with pytest.raises(ValueError, match=r"r holds 1e\+308"):
        project_simplex([1e308, -1e308], 1.0)


@pytest.mark.parametrize(("d", "rho", "rmse"), [(100, 0.01, 0.0), (10**6, 1e-4, 3.0), (10**9, 0.5, 0.0), (2, 1.0, 0.0)])
def test_the_bound_of_concentrated_privacy_is_the_best_of_every_t(d, rho, rmse):
    best = 0.0
    for t in range(1, 2000):
        gain = (d - 1) * math.exp(-((math.sqrt(math.log(4)) + 2 * t * math.sqrt(rho)) ** 2))
        best = max(best, (t * (gain - 1) - 2 * rmse) / (2 * (1 + gain)))
    assert point_error_lower_bound_zcdp(d, rho, rmse) == pytest.approx(best, rel=1e-9)
    # The right side is the error of Gaussian noise on every cell and on the sum.
    assert point_error_lower_bound_zcdp(d, rho, 1 / math.sqrt(rho)) <= 1 / math.sqrt(rho)


def test_no_event_of_a_quarter_is_rarer_next_door():
    # Two normal distributions whose means differ by mu satisfy zCDP with rho = mu^2/2. Of all events with probability 1/4 under one
    # of them, a half-line has the smallest probability under the other.
    for mu in (0.01, 0.3, 1.0, 4.0, 10.0):
        next_door = ndtr(ndtri(0.25) - mu)
        assert next_door >= math.exp(-((math.sqrt(math.log(4)) + mu / math.sqrt(2)) ** 2))
