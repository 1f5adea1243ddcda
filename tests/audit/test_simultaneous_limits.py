"""Limits that hold together, against a recursion in fractions over binomial steps."""

import math
from fractions import Fraction

import numpy as np
import pytest

from shufflebounds.audit.simultaneous_limits import Together, log_miss
from shufflebounds.tails import clopper_pearson
from tests.strategies import thinned


def exact_miss(limits):
    """Return Pr[U_(i) < a_i for some i] for ordered uniform numbers: those below a_i are binomial, given those below a_(i-1)."""
    n, states, before = len(limits), {0: Fraction(1)}, Fraction(0)
    for i, limit in enumerate(limits, 1):
        share, moved = (limit - before) / (1 - before), {}
        for count, mass in states.items():
            for new in range(n - count + 1):
                if count + new < i:
                    step = math.comb(n - count, new) * share**new * (1 - share) ** (n - count - new)
                    moved[count + new] = moved.get(count + new, 0) + mass * step
        states, before = moved, limit
    return 1 - sum(states.values())


@pytest.mark.parametrize("size", [1, 2, 3, 7, 12])
@pytest.mark.parametrize("eta", thinned([0.2, 1e-2, 1e-9, 1e-21], 2))
def test_the_recursion_of_failures(size, eta):
    low = clopper_pearson(np.arange(1, size + 1), size, log_alpha=math.log(2 * eta))[0]
    exact = float(exact_miss([Fraction(one) for one in low.tolist()]))
    assert exact <= math.exp(log_miss(size, math.log(eta))) <= exact * (1 + 1e-7)


@pytest.mark.parametrize("log_eta", [-60.0, -700.0, -1e4])
def test_tiny_levels_stay_between_one_limit_and_all(log_eta):
    for size in (1, 10, 300):
        assert log_eta * (1 + 1e-12) <= log_miss(size, log_eta) <= log_eta + math.log(size)


LEVELS = [(50, 0.0006752955), (100, 0.0004970482), pytest.param(1000, 0.0002388669, marks=pytest.mark.slow),
          pytest.param(3000, 0.0001863809, marks=pytest.mark.slow)]


@pytest.mark.parametrize(("size", "eta"), LEVELS)
def test_local_levels(size, eta):
    """The values are those of the specification, from another program."""
    together = Together(4 * size, (size, size))
    found = together.log_eta(math.log(4 * 0.0125))
    assert abs(math.exp(found) - eta) < 1e-10
    assert together.log_total(found) <= math.log(0.05) < together.log_total(found + 1e-6)


def test_samples_of_one_score_and_declared_thresholds():
    assert math.isclose(math.exp(Together(4, (1, 1)).log_eta(math.log(0.05))), 0.0125, rel_tol=1e-8)
    assert math.isclose(Together(4000).log_eta(math.log(0.05)), math.log(0.05 / 4000), rel_tol=1e-15)
    assert Together(2, (5, 9)).log_total(-0.1) == 0.0
