r"""Bounds of delta for shuffled Laplace and discrete Gaussian noise, every user's input in an interval of length d.

R_x is the distribution of a message of input x, E = e^eps. The outputs are divided into cells: single numbers of discrete Gaussian
noise; for Laplace noise both outer half-lines, on which the likelihood ratios are constant, and short intervals between them.

Upper bound: the privacy blanket m = min(R_0, R_d), whose worst pair of inputs is (0, d) (docs/theorems/interval-inputs). On a cell
X = (R_0 - E R_d)/m is between two numbers; two atoms at these with the same mass and mean are larger in the convex order. Numbers
beyond the last cells of discrete Gaussian noise add at most their probability under R_0.

Lower bound: delta if all other users have one input x, or half of them each end, and the analyst sees only the cell.

Both are Phi_n of :mod:`.blanket`. The engine gives the stated value, from which the number of cells follows, and the dataset.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

from shufflebounds.certify.balls import Answer, Ball, NoCertificateError, Outputs, flint
from shufflebounds.certify.blanket import contour, enumerated, enumeration_operations, values_of
from shufflebounds.certify.interval_gaussian import DATASETS, OPERATIONS, TOLERANCE
from shufflebounds.certify.opposite import NOISES

__all__ = ["interval_outputs"]

CELLS = 120
"""Number of short intervals for Laplace noise. Raised: closer to the stated bound, and longer run time."""


class _Cell(NamedTuple):
    """The probabilities of a cell for inputs 0, d and those of the dataset, and R_0/R_d at both ends of the cell."""

    first: Ball
    last: Ball
    other: Ball
    ratios: tuple[Ball, Ball]


def _whole(mechanism: Any, depth: float, others: Sequence[tuple[float, float]]) -> tuple[list[_Cell], Ball]:
    """Return the cells of discrete Gaussian noise, and the probability under R_0 of numbers beyond them."""
    noise, d, cut = NOISES["DiscreteGaussianMechanism"](mechanism), mechanism.sensitivity, math.ceil(mechanism.sigma * depth) + 1
    ball = flint().arb
    tails = [noise.tail(ball(k)) for k in range(cut + d + 3)]
    masses = [tails[k] - tails[k + 1] for k in range(cut + d + 1)]

    cells = []
    for y in range(-cut, d + cut + 1):
        other = sum((q * masses[abs(y - round(x * d))] for x, q in others), ball(0))
        ratio = noise.log_ratio(ball(d - y)).exp()
        cells.append(_Cell(masses[abs(y)], masses[abs(y - d)], other, (ratio, ratio)))
    return cells, tails[cut + 1] + tails[cut + d + 1]


def _real(mechanism: Any, others: Sequence[tuple[float, float]]) -> tuple[list[_Cell], Ball]:
    """Return the cells of Laplace noise."""
    noise, ball = NOISES["LaplaceMechanism"](mechanism), flint().arb
    d = noise.sensitivity
    edges = [d * i / CELLS for i in range(CELLS + 1)]

    def masses(x: Ball) -> list[Ball]:
        beyond = [1 + 0 * x, *(noise.tail(y - x) for y in edges), 0 * x]
        return [one - two for one, two in pairwise(beyond)]

    other = [sum(column, ball(0)) for column in zip(*([q * p for p in masses(d * x)] for x, q in others), strict=True)]
    # R_0/R_d is the reciprocal of R_d/R_0 and constant outside of [0, d].
    ratios = [(-noise.log_ratio(y)).exp() for y in (edges[0], *edges, edges[-1])]
    return [_Cell(*cell) for cell in zip(masses(ball(0)), masses(d), other, pairwise(ratios), strict=True)], ball(0)


def _spread(cell: _Cell, factor: Ball, left: bool) -> Outputs:
    """Return the atoms of a cell to the left or to the right of the middle, as outputs (x, 0, 1) m, for the privacy blanket."""
    mass = cell.last if left else cell.first
    low, high = ((r - factor if left else 1 - factor / r) for r in cell.ratios[::-1])
    if not high > low:
        return [(mass * low.union(high), 0 * mass, mass)]
    up = (cell.first - factor * cell.last - low * mass) / (high - low)
    return [(high * up, 0 * mass, up), (low * (mass - up), 0 * mass, mass - up)]


def interval_outputs(protocol: Any, eps: float, upper: bool) -> Iterator[Answer]:
    """Yield the certificates of the privacy blanket, or of the dataset that the library names."""
    noise, users, share = protocol.randomizer, protocol.users, protocol.participation
    stated = protocol.log_delta(eps, bound="upper" if upper else "lower")
    if upper and protocol.argument(eps) != "privacy blanket":
        raise NoCertificateError(f"the bound over every dataset is not certified for {type(noise).__name__}")
    others = DATASETS.get("every other user has the first end" if upper else protocol.data(eps))
    if others is None:
        raise NoCertificateError("the dataset of its lower bound is not known")
    depth = math.sqrt(2 * (12 - max(stated, -1e4)))

    def value(factor: Ball, digits: int) -> Ball:
        ball = flint().arb
        whole = hasattr(noise, "sigma")
        cells, beyond = _whole(noise, depth, others) if whole else _real(noise, others)
        if upper:
            outputs = [one for i, cell in enumerate(cells) for one in _spread(cell, factor, 2 * i + 1 < len(cells))]
        else:
            outputs, beyond = [(cell.first - factor * cell.last, 0 * cell.other, cell.other) for cell in cells], ball(0)
        outputs = [(share * a, b, share * m) for a, b, m in outputs]
        if share < 1:
            none = 1 - ball(share)
            outputs.append((none * (1 - factor), ball(0), none))
        _, law = values_of(outputs, ball(0))
        rest = (1 - sum((m for _, m in law), ball(0))).max(ball(0))
        return (contour(law, users, rest, digits=digits) if digits else enumerated(law, users, rest)) + share * beyond

    kinds = 2 * CELLS + 6 if not hasattr(noise, "sigma") else 2 * math.ceil(noise.sigma * depth) + noise.sensitivity + 4
    yield Answer(enumeration_operations(kinds, users), partial(value, digits=0), TOLERANCE)
    for digits, operations in OPERATIONS.items():
        yield Answer(operations * kinds / 120, partial(value, digits=digits), TOLERANCE, refined=False)
