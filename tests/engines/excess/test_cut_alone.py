"""If Chernoff's bound shows that only outputs that identify the target ("cut" outputs) matter, they determine delta."""

import math

import numpy as np
import pytest

from shufflebounds import mechanisms
from shufflebounds._engines.excess.packed import log_deltas


@pytest.mark.parametrize(("sigma", "users"), [(2.4, 10**4), (2.4, 2 * 10**6), pytest.param(0.7, 2 * 10**6, marks=pytest.mark.slow)])
def test_cut_alone_agrees_with_the_kernel(sigma, users):
    (pair, *_) = mechanisms.GaussianMechanism(sigma).excess_laws()
    law, skipped = pair.upper, 0
    for eps in (1e-3, 0.02, 0.05):
        alone = law._cut_alone(eps, users)
        low, high = (float(side[0]) for side in log_deltas(law._alone, np.zeros(1, dtype=np.intp), np.array([float(users)]), [eps]))
        if alone is not None:
            skipped += 1
            assert alone.lower <= high
            assert alone.upper >= low
            assert alone.upper - alone.lower <= 1e-9
            # The contribution of the atoms is below e^-40 of the total, so the cut outputs determine the value.
            cut = math.log(float(np.maximum(np.exp(law.log_cut) - math.exp(eps) * np.exp(law.log_cut_b), 0.0).sum()))
            assert alone.lower <= cut <= alone.upper
        elif high < -59:
            assert low > -60.1
    assert skipped == 0 or law._cut_alone(0.0, users) is None
    assert skipped > 0 or users == 10**4 or sigma < 1


@pytest.mark.parametrize("sigma", [2.4, pytest.param(3.1, marks=pytest.mark.slow)])
def test_cut_alone_agrees_with_the_kernel_for_deep_cuts(sigma, monkeypatch):
    source = mechanisms.GaussianMechanism(sigma)
    (pair, *_) = source.excess_laws(log_cut=source._deepest_cut)
    law, users, eps = pair.upper, 10**6, 3.0
    alone = law.log_phi_side(eps, users, upper=True)
    assert alone == law._cut_alone(eps, users).upper
    # A new object is made, because bounds are cached.
    (other, *_) = source.excess_laws(log_cut=source._deepest_cut)
    monkeypatch.setattr(type(law), "_cut_alone", lambda self, eps, users: None)
    by_kernel = other.upper.log_phi_side(eps, users, upper=True)
    assert alone == pytest.approx(by_kernel, abs=1e-9)
