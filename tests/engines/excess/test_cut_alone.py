"""If Chernoff's bound shows that only outputs that identify the target ("cut" outputs) matter, they determine delta."""

import math

import numpy as np
import pytest

from shufflebounds import mechanisms
from tests.strategies import slow


@pytest.mark.parametrize(("source", "users", "eps"), [
    (mechanisms.GaussianMechanism(2.4), 10**4, 1.0), slow(mechanisms.GaussianMechanism(2.4), 2 * 10**6, 0.05),
    slow(mechanisms.GeometricMechanism(1.0, 8, bound=100), 1000, 1.0),
])
def test_cut_alone_is_the_contribution_of_the_cut_outputs(source, users, eps):
    law = source.excess_laws()[0].upper
    alone = law._cut_alone(eps, users)
    assert alone.upper <= alone.lower + 1e-9
    # The contribution of the atoms is below e^-40 of the total, so the cut outputs determine the value.
    cut = math.log(float(np.maximum(np.exp(law.log_cut) - math.exp(eps) * np.exp(law.log_cut_b), 0.0).sum()))
    assert alone.lower <= cut <= alone.upper
    assert law.log_phi([eps], users) == (alone.lower, alone.upper)
    assert law._cut_alone(0.0, users) is None
