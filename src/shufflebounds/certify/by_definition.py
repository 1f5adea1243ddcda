"""delta of few users by its definition: every dataset of the other users, and every outcome.

The distribution of what the analyst sees is the convolution of the contributions of all reports. A report is a polynomial whose
exponents encode what it adds: numbers of reports of each kind, or of ones in each bin, are the digits of the exponent to a base
above the number of reports (Kronecker's substitution), so no carry occurs. Products of polynomials are then convolutions. delta is
the maximum, over the datasets and the ordered pairs of the target's inputs, of the sum over all exponents of (p - e^eps q)_+.

Sums of bits are such polynomials, too (:func:`sum_outcomes`). :func:`drawn` enumerates multisets of outcomes for other modules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, permutations, zip_longest
from typing import Any

from shufflebounds.certify.balls import Answer, Ball, Outcomes, arb, flint, hockey_stick

Reports = tuple[int, float, Callable[[], list[Any]]]
"""The number of inputs, the largest exponent of a report, and a function that returns the polynomial of each input."""


def multisets(kinds: int, times: int) -> float:
    """Return the number of multisets of `times` draws from `kinds` outcomes, at most 1e308; inf if min(kinds, times) >= 64."""
    return float(min(math.comb(times + kinds - 1, times), 10**308)) if min(kinds, times) < 64 else math.inf


def powers(p: Any, times: int) -> list[Any]:
    """Return p^c/c! for c = 0..times; a power of a ball that contains 0 is undefined, but its products are not."""
    return list(accumulate(range(1, times + 1), lambda before, c: before * (p * (arb(1) / c)), initial=arb(1)))


def drawn(tables: Sequence[Sequence[Any]], left: int, join: Callable[..., Any], before: Any, start: int = 0) -> Iterator[Any]:
    """Yield, for every multiset of `left` draws from several kinds, the join of `before` and an entry for each kind that occurs.

    The entry is tables[kind][c] for a kind that is drawn c times; for the last kind it is joined also if c = 0.
    """
    # The recursion is over the kinds that occur, at most one for each draw.
    yield join(before, tables[-1][left])
    for kind in range(start, len(tables) - 1 if left else start):
        for c in range(1, left + 1):
            after = join(before, tables[kind][c])
            if c < left and kind + 2 < len(tables):
                yield from drawn(tables, left - c, join, after, kind + 1)
            else:
                yield join(after, tables[-1][left - c])


def all_shares(others: int, inputs: int) -> list[tuple[int, ...]]:
    """Return all ways to distribute the other users over the inputs."""
    if inputs == 1:
        return [(others,)]
    return [(first, *rest) for first in range(others + 1) for rest in all_shares(others - first, inputs - 1)]


def kind_reports(inputs: int, outputs: int, rows: Callable[[], list[list[Ball]]], total: int) -> Reports:
    """Return reports of one of several kinds of outputs each; `total` is the number of reports."""

    def polynomials() -> list[Any]:
        shifts = [flint().arb_poly([0, 1]) ** shift for shift in (0, *((total + 1) ** y for y in range(outputs - 1)))]
        return [sum(p * shift for p, shift in zip(row, shifts, strict=True)) for row in rows()]

    # The largest exponent is 0 for one kind of outputs; numbers above e^700 are only compared with a limit.
    return inputs, math.exp(min((outputs - 2) * math.log(total + 1), 700.0)) if outputs > 1 else 0.0, polynomials


def bit_reports(inputs: int, columns: int, chances: Callable[[], list[list[Ball]]], total: int) -> Reports:
    """Return reports of independent bits, of which the sums are seen; `chances` returns the probabilities of ones of each input."""
    shifts = [(total + 1) ** j for j in range(columns)]

    def polynomials() -> list[Any]:
        return [math.prod((flint().arb_poly([1 - p, *[0] * (shift - 1), p]) for shift, p in zip(shifts, row, strict=True)),
                          start=flint().arb_poly([1])) for row in chances()]

    return inputs, float(sum(shifts)), polynomials


def of_datasets(reports: Reports, others: int, chosen: Sequence[tuple[Sequence[int], tuple[int, int] | None]] | None = None,
                dummies: int = 0, own: int = 1) -> Answer:
    """Return the maximum of delta over datasets.

    `chosen` lists counts of the other users' inputs, each with the target's pair of inputs, or None for all pairs. If `chosen` is
    None, the maximum is over all datasets. Each of the `dummies` has a random input. The target has `own` reports of one input.
    """
    inputs, largest, polynomials = reports
    # Measured: 12 operations for each exponent of a dataset, and up to 2.5 more for each pair.
    size = largest * (others + 1 + dummies) + 1
    number = 14.5 * len(chosen) if chosen is not None else multisets(inputs, others) * (12 + 2.5 * inputs**2)

    def value(factor: Ball) -> Ball:
        rows, best = polynomials(), arb(0)
        hidden = (sum(rows[1:], rows[0]) * (arb(1) / inputs)) ** dummies if dummies else flint().arb_poly([1])
        for shares, pair in chosen if chosen is not None else [(shares, None) for shares in all_shares(others, inputs)]:
            rest = math.prod((row**count for row, count in zip(rows, shares, strict=True)), start=hidden)
            wanted = rows if pair is None else [rows[i] for i in pair]
            laws = [[law[k] for k in range(law.degree() + 1)] for law in (rest * row**own for row in wanted)]
            for first, second in permutations(laws, 2) if pair is None else [laws]:
                best = best.max(hockey_stick(zip_longest(first, second, fillvalue=arb(0)), factor))
        return best

    return Answer(size * number, value)


Bits = tuple[Any, ...]
"""The probabilities of 0, of 1, and of larger numbers if a report may be one, and the number of such reports."""


def polynomial(factors: Sequence[Bits]) -> list[Ball]:
    """Return the distribution of a sum of numbers; each factor is (probabilities of 0, 1, ..., number of such numbers)."""
    out = flint().arb_poly([1])
    for *law, many in factors:
        out *= flint().arb_poly(law) ** many
    return [out[k] for k in range(1 + sum((len(one) - 2) * one[-1] for one in factors))]


def sum_outcomes(others: Sequence[Bits], zero: Bits, one: Bits) -> Outcomes:
    """Return the outcomes of the sum of all bits, of which `zero` are the target's under P, and `one` under Q."""
    rest = (*polynomial(others), 1)
    return list(zip(polynomial([rest, zero]), polynomial([rest, one]), strict=True))


def moved(noise: Sequence[Bits], shift: int = 1) -> Outcomes:
    """Return the outcomes of (B, B + shift) for a sum B."""
    return sum_outcomes(noise, (1, 0, shift), (0, 1, shift))
