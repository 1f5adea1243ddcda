"""Hockey sticks in ball arithmetic: every number an interval that contains the exact one, whatever was rounded (Arb)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from shufflebounds import _validate

__all__ = [
    "Answer", "Outcomes", "blanket", "blanket_operations", "certified", "clones", "flint", "larger", "largest_answer", "polynomial",
    "repeated", "stick", "ways",
]

Ball = Any

Outputs = list[tuple[Ball, Ball, Ball]]
"""(a, b, m) of every kind of output: its chance under the target's two inputs, and the least under any."""

Outcomes = list[tuple[Ball, Ball]]
"""The chances of every outcome under both laws of a pair."""

Answer = tuple[float, Callable[[Ball], Ball]]
"""How many ball operations delta takes, and delta from e^eps."""

MOST_OPERATIONS = 2e7
"""About 10 s at two words a number."""

SECONDS = 5e-7
"""A ball operation at 128 bits, about."""


def flint() -> Any:
    """Return python-flint, or raise ImportError naming the extra."""
    try:
        import flint
    except ImportError:
        raise ImportError("certify() needs python-flint: pip install 'shufflebounds[certify]'") from None
    return flint


def certified(value: Callable[[], Ball], operations: float, digits: int) -> Ball:
    """Return a ball with so many digits; more precision until it has them, or holds 0 after all."""
    if operations > MOST_OPERATIONS:
        raise _validate.InfeasibleError(
            f"certify() would take about {operations:.2g} ball operations, {operations * SECONDS:.2g} s: "
            f"at most {MOST_OPERATIONS:.0e} are tried"
        )
    library = flint()
    wanted = math.ceil(digits * math.log2(10)) + 1
    before, precision = library.ctx.prec, 64 + wanted
    try:
        while True:
            library.ctx.prec = precision
            ball = value()
            settled = ball.rel_accuracy_bits() >= wanted or ball == 0
            if settled or precision > 2**14 or operations * precision > 512 * MOST_OPERATIONS:
                return ball
            precision *= 2
    finally:
        library.ctx.prec = before


def stick(outcomes: Iterable[tuple[Ball, Ball]], factor: Ball) -> Ball:
    """Return sum max(0, p - factor q)."""
    zero = flint().arb(0)
    return sum(((p - factor * q).max(zero) for p, q in outcomes), zero)


def ways(kinds: int, times: int) -> float:
    """Return in how many ways so many draws fall on so many kinds, inf where they are too many to count."""
    return float(math.comb(times + kinds - 1, times)) if min(kinds, times) < 64 else math.inf


def repeated(outcomes: Outcomes, times: int) -> Outcomes:
    """Return the chances of how often each outcome occurs in so many independent draws."""
    one = flint().arb(1)
    rows = [(one, one, times)]
    for p, q in outcomes[:-1]:
        rows = [
            (a * p**c * math.comb(left, c), b * q**c * math.comb(left, c), left - c) for a, b, left in rows for c in range(left + 1)
        ]
    p, q = outcomes[-1]
    return [(a * p**left, b * q**left) for a, b, left in rows]


def polynomial(factors: Sequence[tuple[Ball, Ball, int]]) -> list[Ball]:
    """Return the law of a sum of bits: (chance of 0, chance of 1, how many)."""
    library = flint()
    out = library.arb_poly([1])
    for zero, one, many in factors:
        out *= library.arb_poly([zero, one]) ** many
    return [out[k] for k in range(1 + sum(many for *_, many in factors))]


def clones(law: Sequence[Ball], odds: Ball, factor: Ball) -> Ball:
    """Return sum_c law[c] H(A + Ber(1 - w) || A + Ber(w)), A ~ Bin(c, 1/2), w = 1/(odds + 1)."""
    library = flint()
    zero = library.arb(0)
    w, keep = 1 / (odds + 1), odds / (odds + 1)
    up, down = keep - factor * w, w - factor * keep
    row, total = [library.arb(1)], zero
    for weight in law:
        here = sum(((up * (row[k - 1] if k else zero) + down * (row[k] if k < len(row) else zero)).max(zero)
                    for k in range(len(row) // 2, len(row) + 1)), zero)
        total += weight * here
        row = [((row[k - 1] if k else zero) + (row[k] if k < len(row) else zero)) / 2 for k in range(len(row) + 1)]
    return total


def blanket_operations(kinds: int, users: int) -> float:
    """Return how many ball operations :func:`blanket` takes for so many kinds of outputs: the ways to deal users to them."""
    return 2.0 * math.comb(users + kinds, kinds) if min(kinds, users) < 64 else math.inf


def blanket(outputs: Outputs, users: int, factor: Ball, *, rest: bool = True) -> Ball:
    """Return (1/n) E(X_1 + ... + X_n)_+ for X = (a - factor b)/m of mass m, outputs (a, b, m), and 0 with the rest, if any.

    An output with m = 0 gives the target away: it counts as it does without the others.
    """
    library = flint()
    zero = library.arb(0)
    alone = sum(((a - factor * b).max(zero) for a, b, m in outputs if m == 0), zero)
    shared = [((a - factor * b) / m, m) for a, b, m in outputs if m != 0]
    masses = [m for _, m in shared]
    still = 1 - sum(masses, zero) if rest else zero
    # the chances of c equal draws over c!, for each kind and for X = 0
    tables = [[library.arb(1)] for _ in range(len(masses) + 1)]
    for table, mass in zip(tables, [*masses, still], strict=True):
        for c in range(1, users + 1):
            table.append(table[-1] * mass / c)

    def over(kind: int, left: int, total: Ball, weight: Ball) -> Ball:
        if kind == len(shared):
            return weight * tables[kind][left] * total.max(zero)
        value, table = shared[kind][0], tables[kind]
        return sum((over(kind + 1, left - c, total + c * value, weight * table[c]) for c in range(left + 1)), zero)

    return alone + over(0, users, zero, library.arb(math.factorial(users))) / users


def largest_answer(answers: Iterable[Answer]) -> Answer:
    """Return the larger of several answers, as one."""
    parts = list(answers)
    return sum(operations for operations, _ in parts), lambda factor: larger(*(value(factor) for _, value in parts))


def larger(*values: Ball) -> Ball:
    """Return the largest of the balls."""
    out = values[0]
    for value in values[1:]:
        out = out.max(value)
    return out
