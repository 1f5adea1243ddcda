"""The generic functions of certificates; each supported class registers an implementation of one of them.

In interval arithmetic, `outcomes_of` returns the outcomes of a pair, `hockey_stick_of` the function from e^eps to delta of a class
with one exact value, and `bounds_of` the ways to compute a bound of delta of any class.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar

from shufflebounds._base import validate as _validate
from shufflebounds._base.validate import CertificateGap, InfeasibleError
from shufflebounds.certify.balls import Answer, Ball, NoCertificateError, Outcomes, arb, certified, flint, hockey_stick

_Result = TypeVar("_Result")

OPERATIONS = 100.0
"""Estimated ball operations for one outcome of a pair, including its two probabilities."""

REASONS = {**dict.fromkeys(("AccountingProfile", "_LossPair"), "the numbers of another program are not recomputed"),
           "DensityRandomizer": "no family of certificates integrates a density that is given as a function",
           **dict.fromkeys(("_Guarantee", "RealSum", "ShuffledBatches"), "it has two bounds")}
"""Classes without a certificate, with the reason."""

ZERO = 1e-20
"""Largest upper end of a ball around 0 that is accepted for a stated delta of 0. Raised: weaker certificates."""

Bounds: TypeAlias = Callable[[float, bool], Iterable[Answer]]
"""A function of eps and of whether the upper bound is computed. Each way to an upper bound gives at least delta of every dataset,
and each way to a lower bound at most the largest delta. The first result that reaches the stated bound is used."""


def kinds_of(subject: object) -> list[str]:
    """Return the names of the classes of an object of this library, the most special one first."""
    return [kind.__name__ for kind in type(subject).__mro__ if kind.__module__.startswith("shufflebounds.")]


class by_kind(Generic[_Result]):
    """A function of one object, with the implementation of the first of its kinds that has one, or else a default."""

    def __init__(self, default: Callable[[Any], _Result]) -> None:
        self.default, self._known, self.__doc__ = default, dict[str, Callable[[Any], _Result]](), default.__doc__

    def of(self, *kinds: str) -> Callable[[Callable[[Any], _Result]], Callable[[Any], _Result]]:
        """Return a decorator for the implementation of some kinds."""
        def register(function: Callable[[Any], _Result]) -> Callable[[Any], _Result]:
            self._known.update(dict.fromkeys(kinds, function))
            return function

        return register

    def computed(self, *kinds: str, size: Callable[[Any], float], make: Callable[[float, Any], Any] = lambda *both: both
                 ) -> Callable[[Callable[..., Any]], Callable[[Any], _Result]]:
        """Return a decorator for a function of the object and later arguments; `make` joins the size of the result to it."""
        return lambda function: self.of(*kinds)(lambda subject: make(size(subject), partial(function, subject)))

    def __call__(self, subject: Any) -> _Result:
        # Colluding and missing users are not counted.
        subject = getattr(subject, "_remaining", subject)
        return next((self._known[kind] for kind in kinds_of(subject) if kind in self._known), self.default)(subject)


@by_kind
def outcomes_of(profile: object) -> tuple[float, Callable[[], Outcomes]]:
    """Return the number of outcomes of the single pair of a profile, and a function that returns their probabilities as balls.

    A ball is a number with an error bound (interval arithmetic).
    """
    otherwise = f"the outcomes of {type(profile).__name__} are not enumerated"
    raise NoCertificateError(next((REASONS[kind] for kind in kinds_of(profile) if kind in REASONS), otherwise))


@by_kind
def pairs_of(profile: Any) -> list[tuple[float, Callable[[], Outcomes]]]:
    """Return the pairs of which one dominates each pair of neighbours."""
    single = profile._pair_info().attained.single
    pairs = profile._listed_pairs() or ([profile] if single else [])
    if not pairs:
        raise NoCertificateError(f"the datasets of {type(profile).__name__} are not enumerated")
    return [outcomes_of(pair) for pair in (pairs[:1] if single else pairs)]


@by_kind
def of_people(profile: object) -> Callable[[int], Answer] | None:
    """Return the function from the number of records that change to the exact delta, or None if there is no such function."""
    return None


@by_kind
def hockey_stick_of(profile: object) -> Answer:
    """Return how delta of a class with one exact value is computed."""
    together = of_people(profile)
    if together is not None:
        return together(1)
    size, outcomes = outcomes_of(profile)
    return Answer(OPERATIONS * size, lambda factor: hockey_stick(outcomes(), factor))


@by_kind
def bounds_of(profile: object) -> Bounds:
    """Return the ways to compute each bound; by default both bounds are the exact value."""
    answer = hockey_stick_of(profile)
    return lambda eps, upper: [answer]


def certify(profile: Any, eps: float, bound: str | None, digits: int, seconds: float) -> Ball:
    """Return delta(eps), or a bound of it, as a ball; the caller has validated the arguments."""
    try:
        if bound is None:
            return certified(hockey_stick_of(profile), eps, digits, seconds)
        return reached(profile, bounds_of(profile)(eps, bound == "upper"), eps, bound, digits, seconds)
    except NoCertificateError as reason:
        why = str(reason)
        try:
            why += ", so pass bound='upper' or bound='lower'" if bound is None and bounds_of(profile) is not None else ""
        except NoCertificateError as other:
            why = str(other)
        # For an object of a private class, the name of the function that makes it is printed.
        raise TypeError(f"{repr(profile).partition('(')[0]} has no certified digits: {why}") from None
    except ArithmeticError as reason:
        # A condition of a theorem does not hold, or numbers overflow.
        raise InfeasibleError(f"eps={eps!r}: no certificate was found for these parameters: {reason}") from reason


def reached(profile: Any, answers: Iterable[Answer], eps: float, bound: str, digits: int, seconds: float) -> Ball:
    """Return the first ball that proves the stated bound."""
    stated, ends = profile.log_delta(eps, bound=bound), []
    failure: Exception = NoCertificateError(f"no certificate of the {bound} bound is known for these parameters")
    for answer in answers:
        try:
            ball = certified(answer, eps, digits, seconds)
        except (InfeasibleError, ArithmeticError, NoCertificateError) as error:
            failure = error
            continue
        if confirms(ball, stated, bound, answer.tolerance):
            return ball
        ends.append(ball.upper() if bound == "upper" else ball.lower())
    if not ends:
        raise failure
    closest = min(ends) if bound == "upper" else max(ends)
    number = float(closest.log()) if closest > 0 else -math.inf
    other = f"; another certificate was not tried: {failure}" if isinstance(failure, InfeasibleError) else ""
    raise CertificateGap(f"eps={eps!r}: the {bound} bound of log delta is stated as {stated!r}, and the certificate reaches "
                         f"{number!r}{other}", number, stated)


def confirms(ball: Ball, stated: float, bound: str, tolerance: float = 0.0) -> bool:
    """Return whether a ball that bounds delta shows that `stated`, a bound of log delta, is valid up to the tolerance."""
    if not isinstance(ball, flint().arb):
        raise TypeError(f"ball={_validate.short_repr(ball)} must be an arb of python-flint")
    if not _validate.upper_side(bound):
        return bool(stated == -math.inf or (ball > 0 and ball.lower().log() >= arb(stated) - tolerance))
    if stated == -math.inf:
        # If eps is the pure budget, delta is a difference of equal numbers: a small ball around 0. A wide ball proves nothing.
        return bool(ball.contains(0) and ball.upper() < ZERO)
    return bool(ball.upper() <= 0 or ball.upper().log() <= arb(stated) + tolerance)
