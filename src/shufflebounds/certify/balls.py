"""Hockey-stick divergences in interval arithmetic (Arb, through python-flint): every ball contains the exact number."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cache, reduce
from typing import Any, NamedTuple

from shufflebounds._base import validate as _validate

Ball = Any

Outputs = list[tuple[Ball, Ball, Ball]]
"""(a, b, m) for every kind of output: its probabilities under the target user's two inputs, and m of another user."""

Outcomes = list[tuple[Ball, Ball]]
"""(p, q) for every outcome: its probabilities under the two distributions of a pair."""


class Answer(NamedTuple):
    """How delta, or a bound of delta, is computed.

    Attributes
    ----------
    operations : float
        Estimated number of ball operations of one value.
    value : callable
        Returns the value for e^eps; both are balls.
    tolerance : float
        How far, in log delta, the ball may reach above a stated upper bound or below a stated lower bound.
    refined : bool
        Whether a higher precision makes the ball more accurate. If not, `value` sets the precision itself.
    """

    operations: float
    value: Callable[[Ball], Ball]
    tolerance: float = 1e-9
    refined: bool = True


class NoCertificateError(TypeError):
    """A part of a profile has no certificate; the message says which one, and why."""


BALL_SECONDS = 5e-7
"""Measured seconds of a ball operation, for the message that refuses a long call."""


@cache
def flint() -> Any:
    """Return python-flint, or raise ImportError naming the extra."""
    try:
        import flint
    except ImportError:
        raise ImportError("certify() needs python-flint: pip install 'shufflebounds[certify]'") from None
    return flint


def arb(*parts: Any) -> Ball:
    """Return a real number with an error bound."""
    return flint().arb(*parts)


def acb(*parts: Any) -> Ball:
    """Return a complex number with an error bound."""
    return flint().acb(*parts)


def pi() -> Ball:
    """Return the number pi."""
    return flint().arb.pi()


def certified(answer: Answer, eps: float, digits: int, seconds: float) -> Ball:
    """Return the value at one eps as a ball that is accurate to `digits` decimal digits, or is exactly 0.

    The precision is doubled until one of these two conditions holds, or until the computation would take too long. In the latter
    case the ball is wider, but still contains the exact value.
    """
    time = answer.operations * BALL_SECONDS
    if time > seconds:
        raise _validate.InfeasibleError(f"certify() would take about {answer.operations:.2g} ball operations, {time:.2g} s: "
                                        f"seconds={seconds:g} is the limit")
    wanted = math.ceil(digits * math.log2(10)) + 1
    before, precision = flint().ctx.prec, 64 + wanted
    try:
        while True:
            flint().ctx.prec = precision
            ball = answer.value(arb(eps).exp())
            settled = ball.rel_accuracy_bits() >= wanted or ball == 0
            if settled or not answer.refined or precision > 2**14 or time * precision > 512 * seconds:
                return ball
            precision *= 2
    finally:
        flint().ctx.prec = before


def normal_tail(x: Ball) -> Ball:
    """Return the probability that a standard normal number is above x."""
    return (x / arb(2).sqrt()).erfc() / 2


def hockey_stick(outcomes: Iterable[tuple[Ball, Ball]], factor: Ball) -> Ball:
    """Return the sum over all outcomes of max(0, p - factor q), the hockey-stick divergence at factor = e^eps."""
    zero = arb(0)
    return sum(((p - factor * q).max(zero) for p, q in outcomes), zero)


def both_orders(outcomes: Outcomes, factor: Ball) -> Ball:
    """Return the larger divergence, of (P, Q) and (Q, P)."""
    return larger(hockey_stick(outcomes, factor), hockey_stick([(q, p) for p, q in outcomes], factor))


def largest_answer(answers: Iterable[Answer]) -> Answer:
    """Return the answer whose delta is the maximum of several deltas; its ball operations are the sum of theirs."""
    parts = list(answers)
    return Answer(sum(part.operations for part in parts), lambda factor: larger(*(part.value(factor) for part in parts)),
                  max(part.tolerance for part in parts), all(part.refined for part in parts))


def larger(*values: Ball) -> Ball:
    """Return the largest of the balls."""
    return reduce(lambda one, other: one.max(other), values)


def smaller(*values: Ball) -> Ball:
    """Return the smallest of the balls."""
    return reduce(lambda one, other: one.min(other), values)


def largest(bound: Callable[[float, float, Ball], Ball], known: Ball, enough: Ball | float = math.inf, *, parts: int = 1,
            finest: float) -> Ball:
    """Return the largest of `known` and an upper bound of a function on [0, 1], or a number that is at least `enough`.

    `bound`(low, high, known) returns an upper bound for a cell, or `known` if it is larger. Of the cells, `parts` at first, those
    that exceed `known` are divided, until their width is at most `finest`.
    """
    cells = [(i / parts, (i + 1) / parts) for i in range(parts)]
    while cells and known < enough:
        low, high = cells.pop()
        value = bound(low, high, known).upper()
        if value > known and high - low > finest:
            cells += [(low, (low + high) / 2), ((low + high) / 2, high)]
        else:
            known = known.max(value)
    return known
