"""Several (eps, delta) guarantees of one mechanism: the tensor power of their trade-off function is the exact composition."""

import itertools
import math
from functools import reduce

import numpy as np
import pytest

from shufflebounds import DominatingPair, Tradeoff

CONSTRAINTS = [((1.0, 0.5), (1e-3, 0.02)), ((2.0, 0.25), (0.0, 0.125)), ((0.75, 0.5, 0.125), (0.01, 0.0625, 0.2))]


def power(f, times):
    return reduce(Tradeoff.tensor, [f] * times)


def worst_pair(eps, delta):
    """Return masses (p, q) of the segments of the largest convex function below 1 - alpha that the definition permits.

    The definition: 1 - beta <= e^eps alpha + delta for every test, and for the complement of every test. So beta is at least the
    largest of these lines, and the segments between their intersections are the outputs of a mechanism that attains it.
    """
    lines = [(-math.exp(e), 1 - d) for e, d in zip(eps, delta)]
    lines += [(-math.exp(-e), math.exp(-e) * (1 - d)) for e, d in zip(eps, delta)]
    lines.append((0.0, 0.0))
    cuts = sorted({0.0, 1.0, *(
        (b - d) / (c - a) for (a, b), (c, d) in itertools.combinations(lines, 2) if a != c and 0 < (b - d) / (c - a) < 1)})
    beta = [max(a * x + b for a, b in lines) for x in cuts]
    masses = [(below - above, right - left) for left, right, below, above in zip(cuts, cuts[1:], beta, beta[1:])]
    return [(1 - beta[0], 0.0), *masses]


def divergence(pairs, eps):
    """Return the hockey-stick divergence of the product of listed pairs."""
    total = 0.0
    for chosen in itertools.product(*pairs):
        total += max(0.0, math.prod(p for p, _ in chosen) - math.exp(eps) * math.prod(q for _, q in chosen))
    return total


@pytest.mark.parametrize(("eps", "delta"), CONSTRAINTS)
def test_composition_is_that_of_the_mechanism_that_attains_all_constraints(eps, delta):
    with np.errstate(divide="ignore"):
        f = Tradeoff.from_log_delta(eps, np.log(delta))
    pair = worst_pair(eps, delta)
    assert sum(p for p, _ in pair) == pytest.approx(1.0, abs=1e-14)
    assert sum(q for _, q in pair) == pytest.approx(1.0, abs=1e-14)
    for e, d in zip(eps, delta):
        # Each guarantee holds, and is not implied by the others.
        assert divergence([pair], e) == pytest.approx(d, rel=1e-12, abs=1e-15)
        assert f.delta(e) == pytest.approx(d, rel=1e-9, abs=1e-12)
    for times in (2, 3):
        for at in (0.0, 0.4, 1.0, 2.3):
            exact = divergence([pair] * times, at)
            found = power(f, times).delta(at)
            assert exact * (1 - 1e-12) <= found == pytest.approx(exact, rel=1e-9, abs=1e-12)
            # One guarantee alone gives a larger delta.
            for e, d in zip(eps, delta):
                if d:
                    assert found <= power(Tradeoff.from_log_delta([e], [math.log(d)]), times).delta(at) * (1 + 1e-9)


def test_no_mechanism_with_these_guarantees_exceeds_the_composition():
    rng = np.random.default_rng(3)
    for _ in range(40):
        p, q = rng.dirichlet(np.full(4, 0.7), 2)
        eps = np.sort(rng.uniform(0.1, 2.0, 2))
        pairs = list(zip(p, q))
        delta = [max(divergence([pairs], e), divergence([list(zip(q, p))], e)) for e in eps.tolist()]
        f = power(Tradeoff.from_log_delta(eps, np.log(np.maximum(delta, 1e-300))), 3)
        for at in (0.0, 0.7, 1.9):
            assert divergence([pairs] * 3, at) <= f.delta(at) * (1 + 1e-9) + 1e-15
    pair = DominatingPair.from_pmfs(np.log(p), np.log(q))
    assert pair.self_compose(3).delta(0.7) <= f.delta(0.7) * (1 + 1e-9)
