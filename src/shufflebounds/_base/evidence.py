"""What a bound rests on: claims with a status. A text may write "proved" only if the weakest claim permits it.

A bound is written as text by :func:`format_bound`, rounded conservatively.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple

__all__ = [
    "CERTIFIED", "ROUNDING", "Evidence", "Status", "bound_lines", "format_argument", "format_bound", "shown", "theorem", "verdict",
    "weakest_first",
]


class Status(Enum):
    """How a claim is known. The order is from weak to strong, and a number is as well known as the weakest of its claims."""

    OPEN = 0
    """Neither proved nor checked: an assumption, or numbers of another program."""

    MEASURED = 1
    """A bound that exceeds all measured errors by a stated margin."""

    CHECKED = 2
    """Checked for these parameters, in doubles or by enumeration."""

    THEOREM = 3
    """Proved for all parameters of the class, or shown by interval arithmetic for these parameters."""


_WORDS = {
    Status.OPEN: "not shown", Status.MEASURED: "measured, with a margin", Status.CHECKED: "checked for these parameters",
    Status.THEOREM: "theorem",
}


class Evidence(NamedTuple):
    """One claim on which a bound rests.

    Attributes
    ----------
    claim : str
        The claim, in one line.
    status : Status
        How it is known: OPEN, MEASURED, CHECKED or THEOREM.
    where : str
        A page of the documentation, a class or a file where the proof, the check or the measurement is described.
    arithmetic : bool
        Whether the claim is about rounding only. :meth:`PrivacyProfile.explain` then calls a bound whose other claims are theorems
        "proved, up to rounding".
    """

    claim: str
    status: Status
    where: str
    arithmetic: bool = False

    def __str__(self) -> str:
        return f"{self.claim}: {_WORDS[self.status]} ({self.where})"


ROUNDING = Evidence("the charge for rounding exceeds the rounding errors", Status.MEASURED, "docs/numerics", arithmetic=True)
"""The claim about rounding on which every computed bound rests."""

CERTIFIED = Evidence("the number was recomputed in interval arithmetic, by certify", Status.THEOREM, "docs/trust", arithmetic=True)
"""After a certificate of the stated number, this claim replaces those about rounding."""


def theorem(claim: str, where: str) -> Evidence:
    """Return a claim that is proved for all parameters."""
    return Evidence(claim, Status.THEOREM, where)


def weakest_first(claims: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """Return all claims, each once, the weakest first."""
    return tuple(sorted(dict.fromkeys(claims), key=lambda one: one.status.value))


def verdict(claims: Iterable[Evidence]) -> str:
    """Return the words for a bound that rests on these claims: "proved", with the limits of the proof, or "not proved"."""
    claims = tuple(claims)
    weakest = min((one for one in claims if not one.arithmetic), key=lambda one: one.status.value)
    if weakest.status is not Status.THEOREM:
        return f"not proved: {weakest}"
    rounded = any(one.arithmetic and one.status is not Status.THEOREM for one in claims)
    return "proved, up to rounding, which is charged with a measured margin" if rounded else "proved"


def format_bound(value: float, *, upper: bool, digits: int = 12) -> str:
    """Return an upper bound rounded up, or a lower bound rounded down, to this number of digits."""
    if not math.isfinite(value):
        return str(value)
    import decimal

    rounding = decimal.ROUND_CEILING if upper else decimal.ROUND_FLOOR
    return f"{float(decimal.Context(prec=digits, rounding=rounding).create_decimal_from_float(value)):.{digits}g}"


def format_argument(value: float) -> str:
    """Return the number at which a bound is stated, with as many digits as it has: the bound need not hold at a rounded number."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def bound_lines(bounds: Mapping[str, float], *, upper: bool, omitted: Mapping[str, str] = MappingProxyType({})) -> list[str]:
    """Return the lines of an explanation with bounds of log delta by name, the tightest first, and why others are not computed."""
    word, direction = ("at most", 1) if upper else ("at least", -1)
    ordered = sorted(bounds.items(), key=lambda one: direction * one[1])
    return [*(f"  {word} {format_bound(value, upper=upper, digits=9)} by {name}" for name, value in ordered),
            *(f"  not computed: {name}, {reason}" for name, reason in omitted.items())]


def shown(bound: str, claims: Iterable[Evidence]) -> list[str]:
    """Return the lines of an explanation about one bound, "upper" or "lower"."""
    claims = tuple(claims)
    return [f"{bound} bound: {verdict(claims)}", *(f"  {one}" for one in claims)]
