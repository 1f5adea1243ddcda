"""The output distributions of local randomizers on finitely many classes of outputs, in interval arithmetic."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from shufflebounds._base.limits import FEW
from shufflebounds._engines.datasets.matrix import MatrixDatasets
from shufflebounds.certify._dispatch import by_kind
from shufflebounds.certify.balls import Ball, NoCertificateError, arb, flint, smaller


class Family(NamedTuple):
    """The output distributions of a randomizer on its classes of outputs.

    The attributes are what the bound over every dataset needs:

    - `rows`: the distributions of those inputs of another user among which a maximum over all inputs is attained.
    - `pairs`: the target's pairs of inputs, as indices of `rows`.
    - `blanket`: a measure that is at most the distribution of every input, for each output.
    - `centre`: a measure whose distance from the distribution of every input is at most its largest distance from one of `rows`;
      None if there is no bound of docs/theorems/worst-dataset for the family.
    - `others`: the rows of inputs that other users may have; None for all rows.
    """

    rows: list[list[Ball]]
    pairs: list[tuple[int, int]]
    blanket: list[Ball]
    centre: list[Ball] | None = None
    others: tuple[int, ...] | None = None

    def thinned(self, share: float) -> Family:
        """Return the family with the output "no message" of probability 1 - share."""
        centre = self.centre and sent(self.centre, share)
        return self._replace(rows=[sent(row, share) for row in self.rows], blanket=sent(self.blanket, share), centre=centre)


def sent(row: list[Ball], share: float) -> list[Ball]:
    """Return a distribution with the output "no message" of probability 1 - share, if it is positive."""
    return [*(share * p for p in row), *([1 - arb(share)] if share < 1 else [])]


@by_kind
def family_of(randomizer: object) -> tuple[int, Callable[[], Family]]:
    """Return the product of the numbers of pairs, inputs and outputs, and a function that makes the family."""
    raise NoCertificateError(f"the messages of {type(randomizer).__name__} are not a family of finitely many outputs")


def few(randomizer: object) -> int:
    """Return the largest product of a family of up to four inputs and nine classes of outputs with one pair."""
    return 36


@by_kind
def matrix_of(randomizer: object) -> tuple[int, int, Callable[[], list[list[Ball]]]]:
    """Return the numbers of inputs and of outputs, and a function that returns the distribution for every input."""
    raise NoCertificateError(f"{type(randomizer).__name__} has no matrix")


@by_kind
def _two_level_of(randomizer: object) -> tuple[int, Callable[[], Family]]:
    """Return `family_of` of an oracle for up to three inputs, or kinds of inputs, which stand for those of any number of bins."""
    raise NoCertificateError(f"the lifted sets of {type(randomizer).__name__} are not known")


@family_of.of("FiniteRandomizer", "Rappor", "FrequencyOracle")
def _(randomizer: Any) -> tuple[int, Callable[[], Family]]:
    twin = getattr(randomizer, "_twin", randomizer)
    if hasattr(twin, "_rows"):
        return _matrix_family(randomizer, lambda: MatrixDatasets(twin._rows).centre.tolist())
    return _two_level_of(randomizer) if twin is randomizer else family_of(twin)


def _matrix_family(randomizer: Any, centre: Callable[[], list[float]]) -> tuple[int, Callable[[], Family]]:
    """Return the family of a matrix; `centre` returns the weights of the rows in a measure that is close to all of them."""
    inputs, outputs, matrix = matrix_of(randomizer)
    pairs = list(itertools.permutations(range(inputs), 2))

    def family() -> Family:
        rows = matrix()
        blanket = [smaller(*column) for column in zip(*rows, strict=True)]
        if not all(p > 0 for p in blanket):
            return Family(rows, pairs, blanket)
        weights = [arb(w) for w in centre()]
        return Family(rows, pairs, blanket, [sum((w * row[y] for w, row in zip(weights, rows, strict=True)), arb(0))
                                             for y in range(len(blanket))])

    return len(pairs) * inputs * outputs, family


@family_of.of("GeometricMechanism")
def _(mechanism: Any) -> tuple[int, Callable[[], Family]]:
    # The two ends are the farthest inputs (Lemma R of docs/theorems/worst-dataset).
    return _matrix_family(mechanism, lambda: [0.5, *[0.0] * (mechanism.sensitivity - 1), 0.5])


@matrix_of.of("GeometricMechanism")
def _(mechanism: Any) -> tuple[int, int, Callable[[], list[list[Ball]]]]:
    inputs = mechanism.sensitivity + 1
    return inputs, inputs + 2 * (mechanism.bound or 0), lambda: [geometric_row(mechanism, x) for x in range(inputs)]


def geometric_row(mechanism: Any, x: int) -> list[Ball]:
    """Return the output distribution for the input x.

    Noise without a bound is listed as finitely many outputs: all outputs up to 0 have the same likelihood ratios and are one
    output of the list, and so are all outputs from the sensitivity on.
    """
    d, bound, law = mechanism.sensitivity, mechanism.bound, []
    q = (-arb(mechanism.eps) / d).exp()
    for y in range(-(bound or 0), d + (bound or 0) + 1):
        k = abs(y - x)
        ends = y in (0, d) if bound is None else k == bound
        law.append(0 * q if bound is not None and k > bound else q**k * (1 if ends else 1 - q) / (1 + q))
    return law


def _lifted(shares: Sequence[tuple[Ball, tuple[bool, ...]]], ratio: Ball, common: Ball | None = None) -> Family:
    """Return the family of a two-level randomizer.

    A class of outputs has its probability under B, and for each input whether its probability is multiplied by `ratio`. `common` is
    the probability under B of one more class, which is multiplied by `ratio` for all inputs of the randomizer.
    """
    more = [] if common is None else [common]
    lifted = sum((share for share, inside in shares if inside[0]), sum(more, arb(0)))
    base = 1 / (1 + lifted * (ratio - 1))
    same = [base * share * ratio for share in more]
    rows = [[*(base * share * (ratio if inside[x] else 1) for share, inside in shares), *same] for x in range(len(shares[0][1]))]
    return Family(rows, [(0, 1)], [*(base * share for share, _ in shares), *same], [*(arb(share) for share, _ in shares), *same])


def _patterns(inputs: int) -> Iterable[tuple[bool, ...]]:
    return itertools.product([True, False], repeat=inputs)


def _odds(randomizer: Any) -> Ball:
    """Return the factor of probabilities in the lifted sets."""
    if not hasattr(randomizer, "q"):
        return arb(randomizer.local_eps).exp()
    return arb(randomizer.p) / (1 - arb(randomizer.p)) * (1 - arb(randomizer.q)) / arb(randomizer.q)


@_two_level_of.computed("LocalHashing", "UnaryEncoding", size=few)
def _(randomizer: Any) -> Family:
    # The lifted sets of any three bins are independent.
    bins, unary = randomizer.bins, hasattr(randomizer, "q")
    hit = arb(randomizer.q) if unary else 1 / arb(randomizer._g)
    # Only the hash function 0, with the bucket 0, agrees with all bins.
    common = hit ** (bins if unary else randomizer._length + 1)
    shares = [(math.prod([hit if one else 1 - hit for one in inside], start=arb(1)) - (common if all(inside) else 0), inside)
              for inside in _patterns(min(bins, 3)) if bins > 3 or not all(inside)]
    return _lifted(shares, _odds(randomizer), common)


@_two_level_of.computed("SubsetSelection", size=few)
def _(randomizer: Any) -> Family:
    inputs, bins, size, shares = min(randomizer.bins, 3), randomizer.bins, randomizer._d, []
    for inside in _patterns(inputs):
        # The number of sets with these bins, relative to all: a quotient of binomial coefficients.
        drawn = [size - i for i in range(sum(inside))] + [bins - size - i for i in range(inputs - sum(inside))]
        if min(drawn) > 0:
            shares.append((arb(flint().fmpq(math.prod(drawn), math.prod(bins - i for i in range(inputs)))), inside))
    return _lifted(shares, arb(randomizer.local_eps).exp())


@_two_level_of.computed("HadamardResponse", size=few)
def _(randomizer: Any) -> Family:
    # The codes of the bins are 1, 2, 3, ...; 3 is the exclusive or of 1 and 2. Parities with 1, 2 and 4 are independent.
    inputs, fraction = min(randomizer.bins, 4), flint().fmpq
    # The word 0 has even parity for all bins.
    free, common = 3 if inputs == 4 else 2, fraction(1, randomizer._labels)
    shares = [(arb(share), (*inside[:2], inside[0] == inside[1], *inside[2:])[:inputs]) for inside in _patterns(free)
              if (share := fraction(1, 2**free) - (common if all(inside) else 0)) > 0]
    return _lifted(shares, arb(randomizer.local_eps).exp(), arb(common))


def bit_rows(sets: Sequence[Iterable[int]], bits: int, one: Ball, other: Ball) -> list[list[Ball]]:
    """Return the distributions of reports of independent bits for values that set the bits of one of `sets`."""
    chances = [[one if j in inside else other for j in range(bits)] for inside in map(set, sets)]
    return [[math.prod((p if bit else 1 - p for p, bit in zip(row, report, strict=True)), start=arb(1))
             for report in itertools.product((False, True), repeat=bits)] for row in chances]


def kary_family(bins: int, local_eps: float) -> Family:
    """Return the family of k-ary response; its outputs are up to three values, and all others."""
    inputs, odds = min(bins, 3), arb(local_eps).exp()
    sizes, small = [1] * inputs + ([bins - 3] if bins > 3 else []), 1 / (odds + bins - 1)
    rows = [[size * small * (odds if y == x else 1) for y, size in enumerate(sizes)] for x in range(inputs)]
    return Family(rows, [(0, 1)], [size * small for size in sizes])


# The bit of randomized response for a value inside of the range is a mixture of those of the two ends. The blanket of every
# randomizer of a pure budget is that of the bit.
@family_of.computed("RandomizedResponse", "KaryResponse", "PureLocal", size=few)
def _(randomizer: Any) -> Family:
    return kary_family(getattr(randomizer, "bins", 2), randomizer.local_eps)


@matrix_of.of("RandomizedResponse", "KaryResponse")
def _(randomizer: Any) -> tuple[int, int, Callable[[], list[list[Ball]]]]:
    bins = getattr(randomizer, "bins", 2)
    return bins, bins, lambda: _lifted([(1 / arb(bins), tuple(x == y for x in range(bins))) for y in range(bins)],
                                       arb(randomizer.local_eps).exp()).rows


@matrix_of.of("FiniteRandomizer")
def _(randomizer: Any) -> tuple[int, int, Callable[[], list[list[Ball]]]]:
    columns, counts = np.unique(randomizer._rows[:, randomizer._rows.any(axis=0)], axis=1, return_counts=True)
    times = counts.tolist()
    return *columns.shape, lambda: [[n * arb(p) for p, n in zip(row, times, strict=True)] for row in columns.tolist()]


@matrix_of.of("FrequencyOracle")
def _(randomizer: Any) -> tuple[int, int, Callable[[], list[list[Ball]]]]:
    classes = randomizer._patterns() if randomizer.bins <= FEW else {}
    if not classes:
        return matrix_of.default(randomizer)
    return randomizer.bins, len(classes), lambda: _lifted(
        [(arb(flint().fmpq(*mass.as_integer_ratio())), inside) for inside, mass in classes.items()], _odds(randomizer)).rows


@family_of.computed("RatioBounded", size=few)
def _(randomizer: Any) -> Family:
    p, beta, q = (arb(x) for x in (randomizer.p, randomizer.beta, randomizer.q))
    alpha = beta / (p - 1)
    rest = (1 - (p + 1) * alpha).max(arb(0))
    others = [p * alpha / q, p * alpha / q, rest / q, (1 - (1 + beta) / q).max(arb(0))]
    rows = [[p * alpha, alpha, rest, 0 * p], [alpha, p * alpha, rest, 0 * p], others]
    # Other users need not be permitted to have the target's inputs.
    return Family(rows, [(0, 1)], [*others[:3], 0 * p], others=(2,))


@family_of.computed("PrivUnit", size=few)
def _(randomizer: Any) -> Family:
    cap, half = arb(randomizer.cap), arb(0.5)
    # The caps of two opposite vectors are disjoint. So is that of an orthogonal vector, the third input, if it is smaller than a
    # cap of 45 degrees, whose measure is half of a regularized incomplete beta function.
    inputs = 2 + int(2 * cap < half.beta_lower((arb(randomizer.dimension) - 1) / 2, half, True))
    shares = [(cap, tuple(x == y for x in range(inputs))) for y in range(inputs)]
    shares.append(((1 - inputs * cap).max(0 * cap), (False,) * inputs))
    return _lifted(shares, arb(randomizer.local_eps).exp())._replace(centre=None)


def chances_of(randomizer: Any) -> tuple[Ball, Ball]:
    """Return the probabilities that a bit of RAPPOR is 1: for the bits that a value sets, and for others."""
    f, p, q = (arb(x) for x in (randomizer.f, randomizer.p, randomizer.q))
    return p - f * (p - q) / 2, q + f * (p - q) / 2


@_two_level_of.of("Rappor")
def _(randomizer: Any) -> tuple[int, Callable[[], Family]]:
    # Three disjoint blocks of d bits: those that the target's two values set, and others; fewer bits if the filter is small.
    d = randomizer._differ
    bits = min(3 * d, randomizer.bits or 3 * d)
    if d > 3:
        raise NoCertificateError("only reports of RAPPOR of at most three hashes are enumerated")
    kinds = [(d, 0), (0, d), *((a, b) for a in range(d) for b in range(min(d, d - a + 1)) if 3 * d - a - b <= bits)]
    sets = [(*range(a), *range(d, d + b), *range(2 * d, 3 * d - a - b)) for a, b in kinds]

    def family() -> Family:
        first, second = chances_of(randomizer)
        # If d is not the number of hashes, zeros and ones are exchanged: all values leave d bits unset.
        one, other = (first, second) if d == randomizer.hashes else (1 - second, 1 - first)
        *rows, none = bit_rows([*sets, ()], bits, one, other)
        # A bit that a value sets multiplies the probability of a report by (1 - one)/(1 - other) at least.
        return Family(rows, [(0, 1)], [((1 - one) / (1 - other)) ** d * p for p in none], none)

    return len(sets) * 2**bits, family


@matrix_of.of("Rappor")
def _(randomizer: Any) -> tuple[int, int, Callable[[], list[list[Ball]]]]:
    # Only a small filter of a given number of bits has a matrix.
    sets = list(itertools.combinations(range(randomizer.bits), randomizer.hashes))
    return len(sets), 2**randomizer.bits, lambda: bit_rows(sets, randomizer.bits, *chances_of(randomizer))
