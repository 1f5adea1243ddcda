r"""Upper bounds with fewer values for X = a - e^eps b, if X is a mixture of a few cases in each of which a and b are independent.

a = R_0/m, b = R_1/m and X, the privacy-amplification random variable, are those of `ExcessLaw`, for a randomizer with many outputs,
such as noise on a vector. To limit the number of values of X, the values of a and of b are reduced to a few nodes. A value e^l of a
or b is called a height, and its logarithm l a level. The mass at a level between two neighbouring nodes is divided between the two
nodes, so that the mean height stays the same. X is linear in a and in b, so X can only increase in the convex order.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from shufflebounds._base.convex_order import nodes_at
from shufflebounds._base.types import FloatArray
from shufflebounds._engines.excess.excess_law import ExcessLaw

__all__ = ["chosen", "law_at_nodes", "product_law"]


def chosen(levels: FloatArray, log_mass: FloatArray, count: int = 128) -> FloatArray:
    """Return at most `count` of the increasing levels, with both ends, denser where mass times squared height is large."""
    if levels.size <= count:
        return levels
    # 80 % of the nodes have a density proportional to the cube root of mass * height^2 (height = e^level); 20 % are at equal
    # distances of the level.
    log_weight = (log_mass + 2 * levels) / 3
    weight = np.exp(log_weight - log_weight.max())
    climb, even = np.cumsum(weight), levels - levels[0]
    share = 0.8 * (climb - climb[0]) / (climb[-1] - climb[0]) + 0.2 * even / even[-1]
    return np.asarray(levels[nodes_at(share, count)])


def product_law(cases: Iterable[tuple[FloatArray, FloatArray]], nodes: FloatArray, log_rest: float, log_cut: float = -np.inf,
                loss_error: float = 0.0) -> ExcessLaw:
    """Return the distribution of X for a mixture of cases; each case has the log masses of independent a and b at the nodes.

    The other arguments are as in `law_at_nodes`.
    """
    total = np.full((nodes.size, nodes.size), -np.inf)
    for first, second in cases:
        total = np.logaddexp(total, first[:, None] + second[None, :])
    return law_at_nodes(total, nodes, log_rest, log_cut, loss_error)


def law_at_nodes(log_mass: FloatArray, nodes: FloatArray, log_rest: float, log_cut: float, loss_error: float) -> ExcessLaw:
    """Return the distribution of X from the log masses of the pairs (level of a, level of b) of nodes: rows for a, columns for b.

    All levels are increased by `loss_error`. `log_rest` is the log of the mass at X = 0, `log_cut` that of the truncated mass.
    """
    log_a, log_b = np.broadcast_arrays(nodes[:, None], nodes[None, :])
    seen = log_mass > -np.inf
    return ExcessLaw(log_mass[seen], log_a[seen] + loss_error, log_b[seen] + loss_error, log_rest, log_cut)
