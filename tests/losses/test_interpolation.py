"""Distributions between values of a divergence: their slack covers the rounding of their own divergence."""

import math

import numpy as np
import pytest

from shufflebounds._core import _losses
from shufflebounds._losses.interpolation import connect_the_dots, optimistic_pld
from shufflebounds.mechanisms import GaussianMechanism
from shufflebounds.profile.extend import IntervalArray
from shufflebounds.tradeoff.convex import joined, masses


@pytest.mark.parametrize(("sigma", "points", "top"), [(1.0, 40, 2.0), (20.0, 100, 1.0), (20.0, 3000, 8.0)])
def test_the_slack_covers_the_rounding_of_the_divergence_of_the_masses(sigma, points, top):
    """With sigma = 20 the log divergences are so small that their rounding exceeds the fixed part of the slack."""
    eps = np.linspace(0.0, top, points)
    given = GaussianMechanism(sigma).log_delta(eps, bound="lower")
    loss, log_p, wanted = masses(*joined((eps, given), (eps, given), lower=True))
    held = wanted > -np.inf
    rounding = (_losses.law_hockey_stick(loss, log_p, -math.inf) - wanted)[held].max()
    fixed = math.ulp(1.0) * (32 + np.abs(wanted[held]).max())
    assert optimistic_pld((eps, given), (eps, given)).slack >= fixed + rounding


def test_the_lower_distribution_is_no_trivial_bound():
    noise, eps = GaussianMechanism(1.0), np.linspace(0.0, 4.0, 400)
    given = noise.log_delta(eps, bound="lower")
    atoms = optimistic_pld((eps, given), (eps, given))
    got = _losses.law_hockey_stick(atoms.loss, atoms.log_p, -math.inf) - atoms.slack
    inside = (atoms.loss >= 0) & (atoms.loss < 3)
    exact = noise.log_delta(atoms.loss[inside])
    assert np.all(got[inside] <= exact)
    assert np.all(got[inside] > exact - 0.05)


def test_a_divergence_lost_by_rounding_becomes_mass_of_infinite_loss():
    # Randomized response of budget 1e-100. No knot is at 0, so the divergence of about 5e-101 at the knot below 0 is that of a mass
    # of 2.5e-94 at the knot above 0, which is lost in 1 minus the mass of all other losses.
    def sides(eps):
        with np.errstate(divide="ignore"):
            value = np.log(np.maximum(0.5e-100 - eps / 2, 0.0))
        return IntervalArray(value, value)

    atoms = connect_the_dots(np.array([-2e-6, -1e-6, -1e-120, 1e-6, 2e-6]), sides, sides)
    assert np.isfinite(atoms.slack)
    assert atoms.log_delta(np.zeros(1)).upper[0] >= math.log(0.5e-100)
