"""The bound of docs/theorems/worst-dataset in interval arithmetic, for randomizers whose outputs are finitely many classes.

Everything that follows from the witness is computed here from the definitions: the distributions of X, the constants of the
theorem, and that the weights are allowed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from shufflebounds._engines.datasets.largest_sum import SumChoices
from shufflebounds._engines.datasets.pair_weights import Weights
from shufflebounds._engines.datasets.worst import Choices
from shufflebounds.certify._by_kind import kinds_of
from shufflebounds.certify.balls import Answer, Ball, NoCertificateError, flint, hockey_stick, larger
from shufflebounds.certify.every_dataset import EveryDataset, negative_mass, square
from shufflebounds.certify.families import Family, family_of
from shufflebounds.certify.lemma_h import Law, largest_sum

__all__ = ["worst_dataset"]


class _Bound(EveryDataset):
    """The bound for one family and number of users."""

    def __init__(self, family: Family, users: int) -> None:
        if family.centre is None:
            raise NoCertificateError("the bound over every dataset is not certified for this randomizer")
        zero = flint().arb(0)
        distances = [sum((square(p - c) / m for p, c, m in zip(row, family.centre, family.blanket, strict=True)), zero)
                     for row in family.rows]
        super().__init__(users, sum(family.blanket, zero), larger(*distances))
        self._family = family

    def value(self, choices: Choices, factor: Ball) -> Ball:
        # The local delta is an upper bound, because shuffled messages are a post-processing of messages with their senders' names.
        rows = self._family.rows
        local = larger(*(hockey_stick(zip(rows[i], rows[j], strict=True), factor) for i, j in self._family.pairs))
        return super().value(choices, factor).min(local)

    def main(self, factor: Ball, sums: SumChoices) -> Ball:
        family = self._family
        laws = [[((a - factor * b) / r, r) for a, b, r in zip(family.rows[i], family.rows[j], row, strict=True)]
                for i, j in family.pairs for row in family.rows]
        return largest_sum(laws, sums)

    def signed(self, weights: Weights) -> Ball:
        ball, rows, pairs = flint().arb, self._family.rows, weights.pairs
        if pairs == 0:
            return ball(0)
        if weights.omegas is not None:
            ratios = [larger(*column) / -larger(*(-p for p in column)) for column in zip(*rows, strict=True)]
            most = larger(*ratios)
            if not ((most + 1 / most) / 2 - 1 <= weights.less and _nonnegative(weights.omegas, pairs, weights.less)):
                raise ArithmeticError("the weights of the worst-dataset bound are not allowed")
            return ball(0)

        def beyond(ratio: Ball) -> Ball:
            return larger(*(sum((p for p, q in zip(one, other, strict=True) if not p <= ratio * q), ball(0))
                            for one, other in itertools.permutations(rows, 2)))

        return negative_mass(beyond, pairs)

    def spread(self, factor: Ball) -> Ball:
        family, shift = self._family, (factor - 1) / self._mass
        return larger(*(sum((square(a - factor * b + shift * m) / m
                             for a, b, m in zip(family.rows[i], family.rows[j], family.blanket, strict=True)), flint().arb(0))
                        for i, j in family.pairs))

    def blanket(self, factor: Ball, sums: SumChoices) -> Ball:
        family = self._family
        laws = [[((a - factor * b) / m, m) for a, b, m in zip(family.rows[i], family.rows[j], family.blanket, strict=True)]
                for i, j in family.pairs]
        return largest_sum(laws, sums)

    def ratios(self) -> list[Law]:
        return [[(p / m, m) for p, m in zip(row, self._family.blanket, strict=True)] for row in self._family.rows]


def _nonnegative(omegas: Sequence[Fraction], pairs: int, less: float) -> bool:
    """Return whether W (docs/theorems/worst-dataset) is nonnegative at all corners of the t_i, for C = cosh eps0 = 1 + `less`.

    The elementary symmetric polynomials in W are computed in rational arithmetic.
    """
    library = flint()
    high = 2 * library.fmpq(*less.as_integer_ratio())
    low = -high / (1 + high / 2)
    for corner in range(pairs + 1):
        products = library.fmpq_poly([1, high]) ** corner * library.fmpq_poly([1, low]) ** (pairs - corner)
        total = library.fmpq(1)
        for k, omega in enumerate(omegas, 1):
            total += library.fmpq(*omega.as_integer_ratio()) * products[k] / math.comb(pairs, k) / (-2) ** k
        if total < 0:
            return False
    return True


def worst_dataset(protocol: Any) -> Answer:
    """Return the upper bound over all datasets; there is one if the engine has one."""
    datasets, (size, family) = protocol._bounds.upper.over_datasets, family_of(protocol.randomizer)
    # The engine has cells for integer noise; here all inputs are enumerated, and the weights of its bound are tried.
    if not datasets.listed and "GeometricMechanism" not in kinds_of(protocol.randomizer):
        raise NoCertificateError("the inputs of the bound over every dataset are not enumerated")

    def value(factor: Ball) -> Ball:
        choices = datasets.choices(float(factor.log().mid()))
        return _Bound(family().thinned(protocol.participation), protocol.users).value(choices, factor)

    # The estimate is 200 operations for each pair, input and output, because `LemmaH.value` bounds most terms by moments. Equal
    # distributions are not skipped.
    return Answer(200.0 * size, value)
