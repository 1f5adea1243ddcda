"""The three generic functions of certified values of delta; each supported class registers an implementation of one of them.

In interval arithmetic, `outcomes_of` returns the outcomes of a pair, `hockey_stick_of` the function from e^eps to delta, and
`outputs_of` the outputs of a local randomizer.
"""

from __future__ import annotations

from collections.abc import Callable

from shufflebounds.certify._by_kind import by_kind
from shufflebounds.certify.balls import Answer, Ball, Outcomes, Outputs, certified, flint, hockey_stick

__all__ = ["certify", "hockey_stick_of", "outcomes_of", "outputs_of"]

OPERATIONS = 100.0
"""Estimated ball operations for one outcome of a pair, including its two probabilities. The total of an answer is compared with
`balls.MOST_OPERATIONS`. Raised: fewer calls are allowed. Lowered: calls may take longer than predicted."""


@by_kind
def outcomes_of(profile: object) -> tuple[float, Callable[[], Outcomes]]:
    """Return the number of outcomes of the single pair of a profile, and a function that returns their probabilities as balls.

    A ball is a number with an error bound (interval arithmetic).
    """
    raise TypeError(f"{type(profile).__name__} has no certified digits")


@by_kind
def hockey_stick_of(profile: object) -> Answer:
    """Return the number of ball operations of one delta, and the function from e^eps to delta."""
    size, outcomes = outcomes_of(profile)
    return OPERATIONS * size, lambda factor: hockey_stick(outcomes(), factor)


@by_kind
def outputs_of(randomizer: object) -> tuple[int, int, Callable[[], list[Outputs]]]:
    """Return the number of pairs of inputs, the largest number of kinds of outputs of a pair, and a function that lists outputs.

    The list has one entry of type `balls.Outputs` for each pair of inputs.
    """
    raise TypeError(f"what is shuffled of {type(randomizer).__name__} has no certified digits")


def certify(profile: object, eps: float, digits: int) -> Ball:
    """Return delta(eps) as a ball of `digits` digits; the caller has validated the arguments."""
    operations, value = hockey_stick_of(profile)
    return certified(lambda: value(flint().arb(eps).exp()), operations, digits)
