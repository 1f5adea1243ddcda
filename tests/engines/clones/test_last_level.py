"""The last level of the search over targets, if there are too many distinct budgets for a level on which each is separate."""

import numpy as np
import pytest

from shufflebounds._engines.clones import population
from shufflebounds.shuffle import PersonalizedBits, PersonalizedClones

KINDS = {
    "one of two": lambda target: PersonalizedBits(np.linspace(0.1, 2.0, 3001), target=target),
    "one of many": lambda target: PersonalizedClones.randomized_response(np.linspace(0.1, 2.0, 3001), 100, target=target),
    "laplace": lambda target: PersonalizedClones.laplace(np.linspace(0.1, 2.0, 3001), target=target),
    "gaussian": lambda target: PersonalizedClones.gaussian(np.linspace(0.5, 5.0, 3001), target=target),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", [0, 1500, 3000])
def test_bins_on_the_last_level_enclose_the_bounds_of_separate_budgets(kind, target, monkeypatch):
    eps = np.array([0.02, 0.06])
    sides = []
    for size in (3001, 3000):
        monkeypatch.setattr(population, "TABLE_SIZE", size)
        # The clone bound, without the lower bounds by datasets and other upper bounds.
        profile = KINDS[kind](target).closed_forms().sides[True]
        sides.append([profile.log_delta(eps, bound=bound) for bound in ("lower", "upper")])
    (lower, upper), (low, high) = sides
    assert (low < lower + 1e-12 * np.abs(lower)).all()
    assert (high > upper - 1e-12 * np.abs(upper)).all()
    assert ((high - low) < 1e-6 * (1 + np.abs(low))).all()
