r"""Upper laws of the excess where a = R_0/m and b = R_1/m are independent given a few cases: products of one-dimensional laws.

A height e^l between two nodes is split to them with its mass and mean kept. Given all else, X is linear in a and in b, so that
the law of X only grows in the convex order.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from shufflebounds._types import FloatArray
from shufflebounds.shuffle.laws import ExcessLaw

__all__ = ["NODES", "chosen", "product_law", "shares", "split"]

NODES = 128
"""Nodes of either height: their square is the number of atoms."""


def chosen(levels: FloatArray, log_mass: FloatArray, count: int = NODES) -> FloatArray:
    """Return at most that many of the rising levels, both ends among them, dense where mass times squared height is high."""
    if levels.size <= count:
        return levels
    # cells as narrow as the third root of mass times squared slope is high, none above five times the mean
    log_weight = (log_mass + 2 * levels) / 3
    weight = np.exp(log_weight - log_weight.max())
    climb, even = np.cumsum(weight), levels - levels[0]
    share = 0.8 * (climb - climb[0]) / (climb[-1] - climb[0]) + 0.2 * even / even[-1]
    index = np.unique(np.searchsorted(share, np.linspace(0, 1, count)).clip(0, levels.size - 1))
    index[0], index[-1] = 0, levels.size - 1
    return np.asarray(levels[index])


def shares(level: FloatArray, low: FloatArray | float, high: FloatArray | float) -> FloatArray:
    """Return the share that a height e^level gives to the upper of two nodes."""
    return np.asarray(np.clip(np.exp(level - high) * np.expm1(low - level) / np.expm1(np.subtract(low, high)), 0.0, 1.0))


def split(levels: FloatArray, log_mass: FloatArray, nodes: FloatArray) -> FloatArray:
    """Return the log masses at the nodes of a law at levels between the first and the last of them."""
    cell = np.clip(np.searchsorted(nodes, levels, side="right") - 1, 0, nodes.size - 2)
    upper = shares(levels, nodes[cell], nodes[cell + 1])
    out = np.full(nodes.size, -np.inf)
    with np.errstate(divide="ignore"):
        np.logaddexp.at(out, cell, log_mass + np.log1p(-upper))
        np.logaddexp.at(out, cell + 1, log_mass + np.log(upper))
    return out


def product_law(cases: Iterable[tuple[FloatArray, FloatArray]], nodes: FloatArray, log_cut: float = -np.inf,
                loss_error: float = 0.0) -> ExcessLaw:
    """Return the law of a sum of cases, each with the log masses of independent a and b at the nodes."""
    total = np.full((nodes.size, nodes.size), -np.inf)
    for first, second in cases:
        total = np.logaddexp(total, first[:, None] + second[None, :])
    log_a, log_b = np.broadcast_arrays(nodes[:, None], nodes[None, :])
    seen = total > -np.inf
    return ExcessLaw(total[seen], log_a[seen] + loss_error, log_b[seen] + loss_error, log_cut)
