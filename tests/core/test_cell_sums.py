"""Sums of two variables in cells: the kernel for values of many orders of magnitude against the one that adds all pairs."""

import numpy as np
import pytest

from shufflebounds._base.convex_order import rising
from shufflebounds._core import _cell_sums


@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize(("farthest", "step", "count"), [(1e60, 0.3, 200), (1e12, 0.1, 300), (20.0, 0.02, 100)])
def test_both_kernels_agree_at_the_nodes(farthest, step, count, upper):
    rng = np.random.default_rng(count)
    nodes = rising(1.0, 2 * farthest, step)
    place = np.unique(np.append(rng.choice(nodes[np.abs(nodes) <= farthest], count), [0.0, farthest]))
    jump = np.unique(np.append(np.sinh(rng.uniform(-1, 1, count) * np.arcsinh(farthest)), -farthest))
    mass, chance = rng.dirichlet(np.ones(place.size)), rng.dirichlet(np.ones(jump.size))
    for first in ((place, mass, jump, chance), (jump, chance, place, mass), (place, mass, place, mass)):
        # E(X + Y - a)_+ at a node a, up to mass at a node, which may be in either of its cells
        tails = [np.cumsum((total * nodes[:-1] + moment)[::-1]) - nodes[:-1][::-1] * np.cumsum(total[::-1])
                 for total, moment in (kernel(*first, nodes, upper) for kernel in (_cell_sums.wide_sums, _cell_sums.cell_sums))]
        np.testing.assert_allclose(*tails, rtol=1e-12, atol=1e-13 * farthest)
        for kernel in (_cell_sums.wide_sums, _cell_sums.cell_sums):
            assert kernel(*first, nodes, upper)[0].sum() == pytest.approx(1, rel=1e-13)


def test_pairs_with_a_faint_mass_are_left_out():
    rng = np.random.default_rng(1)
    place, jump = np.sort(rng.uniform(-1, 1, 50)), np.sort(rng.uniform(-1, 1, 40))
    mass, chance = 10 ** rng.uniform(-20, 0, 50), 10 ** rng.uniform(-20, 0, 40)
    nodes = np.linspace(-2.1, 2.1, 2)
    got = _cell_sums.cell_sums(place, mass, jump, chance, nodes, True, cut=1e-18)[0]
    pairs = np.multiply.outer(mass, chance)
    np.testing.assert_allclose(got, pairs[pairs >= 1e-18].sum(), rtol=1e-12)
