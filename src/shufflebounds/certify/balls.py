"""Hockey-stick divergences in interval arithmetic (Arb, through python-flint): every ball contains the exact number."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any

from shufflebounds._base import validate as _validate

__all__ = [
    "Answer", "Ball", "Outcomes", "Outputs", "blanket_delta", "blanket_operations", "certified", "clones_delta", "flint",
    "hockey_stick", "larger", "largest_answer", "multiset_probabilities", "multisets", "polynomial",
]

Ball = Any

Outputs = list[tuple[Ball, Ball, Ball]]
"""(a, b, m) for every kind of output: its probabilities under the target user's two inputs, and its least one over all inputs."""

Outcomes = list[tuple[Ball, Ball]]
"""(p, q) for every outcome: its probabilities under the two distributions of a pair."""

Answer = tuple[float, Callable[[Ball], Ball]]
"""The number of ball operations that one delta takes, and the function that returns delta for e^eps, both of which are balls."""

BALL_SECONDS = 5e-7
"""Measured seconds of a ball operation, for the message that refuses a long call."""

MOST_OPERATIONS = 2e7
"""Resource limit: largest number of ball operations of one result, about 10 s if a ball has two machine words. Raised: longer
calls."""


def flint() -> Any:
    """Return python-flint, or raise ImportError naming the extra."""
    try:
        import flint
    except ImportError:
        raise ImportError("certify() needs python-flint: pip install 'shufflebounds[certify]'") from None
    return flint


def certified(value: Callable[[], Ball], operations: float, digits: int) -> Ball:
    """Return the value as a ball that is accurate to `digits` decimal digits, or is exactly 0.

    The precision is doubled until one of the two holds, or until the computation would take too long; then the ball is less
    accurate, but still contains the exact value.
    """
    if operations > MOST_OPERATIONS:
        seconds = operations * BALL_SECONDS
        raise _validate.InfeasibleError(
            f"certify() would take about {operations:.2g} ball operations, {seconds:.2g} s: "
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


def hockey_stick(outcomes: Iterable[tuple[Ball, Ball]], factor: Ball) -> Ball:
    """Return the sum over all outcomes of max(0, p - factor q), the hockey-stick divergence at factor = e^eps."""
    zero = flint().arb(0)
    return sum(((p - factor * q).max(zero) for p, q in outcomes), zero)


def multisets(kinds: int, times: int) -> float:
    """Return the number of multisets of `times` draws from `kinds` outcomes; inf if min(kinds, times) >= 64."""
    return float(math.comb(times + kinds - 1, times)) if min(kinds, times) < 64 else math.inf


def multiset_probabilities(outcomes: Outcomes, times: int) -> Outcomes:
    """Return the probabilities of every multiset of `times` independent outcomes."""
    one = flint().arb(1)
    rows = [(one, one, times)]
    for p, q in outcomes[:-1]:
        rows = [
            (a * p**c * math.comb(left, c), b * q**c * math.comb(left, c), left - c) for a, b, left in rows for c in range(left + 1)
        ]
    p, q = outcomes[-1]
    return [(a * p**left, b * q**left) for a, b, left in rows]


def polynomial(factors: Sequence[tuple[Ball, Ball, int]]) -> list[Ball]:
    """Return the distribution of a sum of bits; each factor is (probability of 0, probability of 1, number of such bits)."""
    library = flint()
    out = library.arb_poly([1])
    for zero, one, many in factors:
        out *= library.arb_poly([zero, one]) ** many
    return [out[k] for k in range(1 + sum(many for *_, many in factors))]


def clones_delta(law: Sequence[Ball], odds: Ball, factor: Ball) -> Ball:
    """Return delta of the clone bound, sum_c law[c] H(A + Ber(1 - w) || A + Ber(w)).

    law[c] is the probability of c clones, A ~ Bin(c, 1/2), w = 1/(odds + 1), and H the hockey-stick divergence at factor = e^eps.
    """
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
    """Return the number of ball operations of :func:`blanket_delta`, or inf if min(kinds, users) >= 64.

    It is twice the number of multisets of the outputs of all users, each of one of `kinds` kinds or of the kind with X = 0.
    """
    return 2.0 * math.comb(users + kinds, kinds) if min(kinds, users) < 64 else math.inf


def blanket_delta(outputs: Outputs, users: int, factor: Ball, *, rest: bool = True) -> Ball:
    """Return (1/n) E(X_1 + ... + X_n)_+ for n = `users` independent copies of X, the bound of the privacy blanket.

    For every output (a, b, m), X has the value (a - factor b)/m with probability m. With `rest`, X is 0 with the remaining
    probability. An output with m = 0 reveals the target's message, so it contributes (a - factor b)_+ as without other users.
    """
    library = flint()
    zero = library.arb(0)
    alone = sum(((a - factor * b).max(zero) for a, b, m in outputs if m == 0), zero)
    shared = [((a - factor * b) / m, m) for a, b, m in outputs if m != 0]
    masses = [m for _, m in shared]
    still = 1 - sum(masses, zero) if rest else zero
    # `tables` has mass^c/c!, c = 0, 1, ..., for each kind of output and for X = 0.
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
    """Return the answer whose delta is the maximum of several deltas; its ball operations are the sum of theirs."""
    parts = list(answers)
    return sum(operations for operations, _ in parts), lambda factor: larger(*(value(factor) for _, value in parts))


def larger(*values: Ball) -> Ball:
    """Return the largest of the balls."""
    return reduce(lambda one, other: one.max(other), values)
