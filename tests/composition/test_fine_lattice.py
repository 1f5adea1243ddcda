"""Compositions of so many releases with tiny losses that no transform holds the lattice of their losses."""

import math

import pytest

from shufflebounds.mechanisms import GaussianMechanism, RandomizedResponse
from tests.strategies import slow


@pytest.mark.parametrize("releases", [slow(2**53)])
def test_bounds_of_many_tiny_releases(releases):
    local = 1e-5
    composed = RandomizedResponse(local).self_compose(releases)
    # The total loss is that of a binomial count, which is normal to a relative 1e-6 of its standard deviation.
    normal = GaussianMechanism(1 / (local * math.sqrt(releases))).epsilon(1e-6)
    lower, upper = composed.epsilon(1e-6, bound="lower"), composed.epsilon(1e-6)
    assert 40 < lower <= normal < upper < 1.05 * normal
    assert 0 < composed.gdp_mu(bound="lower") <= composed.gdp_mu() < 1.26 * local * math.sqrt(releases)


@pytest.mark.slow
def test_bounds_do_not_jump_where_the_lattice_no_longer_fits():
    counts = [4 * 10**11, 43 * 10**10, 6 * 10**11]
    eps = [RandomizedResponse(1e-5).self_compose(count).epsilon(1e-6) for count in counts]
    assert eps == sorted(eps)
    assert eps[-1] < 1.5 * eps[0]


def test_mu_of_a_huge_pure_budget_is_that_of_the_gaussian_rule():
    # The upper bounds of delta end at a positive delta, and no finer grid can reduce mu of the line from there to the pure budget.
    composed = RandomizedResponse(1e-5).self_compose(4 * 10**11)
    calls = []
    composed._product.samples.__dict__["_mu"] = property(calls.append)
    assert composed.gdp_mu() == composed._product._gaussian_rule
    assert not calls


@pytest.mark.parametrize(("releases", "named"), [(10**6, False), (10**13, True)])
def test_evidence_names_the_rule_of_many_tiny_releases(releases, named):
    claims = RandomizedResponse(1e-5).self_compose(releases).evidence(0.5)
    assert any("log_levels" in one.where for one in claims) == named
