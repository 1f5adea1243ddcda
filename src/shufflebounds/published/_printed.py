"""What a printed formula carries: its verdict, the reason, a comparison with the truth, and the case that refutes a false one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, NamedTuple, ParamSpec

__all__ = ["Comparison", "Counterexample", "PrintedBound", "Side", "Verdict", "bounds", "printed"]

Verdict = Literal["exact", "proven", "unproven", "false"]
Side = Literal["upper", "lower", "both"]
Parameters = ParamSpec("Parameters")


class Counterexample(NamedTuple):
    """A case where a printed number is on the wrong side of the truth."""

    printed: float
    truth: float
    case: str


class Comparison(NamedTuple):
    """A printed number beside the exact one, in a setting that somebody might use."""

    setting: str
    quantity: str
    printed: float
    exact: float

    @property
    def ratio(self) -> float:
        """Printed number over exact one: inf above an exact 0, and 1 where they are equal."""
        if self.printed == self.exact:
            return 1.0
        return self.printed / self.exact if self.exact else math.copysign(math.inf, self.printed)


@dataclass(frozen=True)
class PrintedBound(Generic[Parameters]):
    """A formula as printed, with what is known of it.

    Attributes
    ----------
    verdict : {"exact", "proven", "unproven", "false"}
        Whether the printed number is the quantity itself, a proven bound of it, an unproven one, or wrong.
    reason : str
        Why, in one line.
    reference : str
        Paper and equation.
    side : {"upper", "lower", "both"}
        The side of the truth that the number claims: nowhere below it, nowhere above it, or equal to it.
    """

    formula: Callable[Parameters, float] = field(repr=False)
    verdict: Verdict
    reason: str
    reference: str
    shown: Callable[[], Counterexample] | None = field(default=None, repr=False)
    side: Side = "upper"
    compared: Callable[[], Comparison] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "__doc__", self.formula.__doc__)

    @property
    def __name__(self) -> str:
        return self.formula.__name__

    def __call__(self, *args: Parameters.args, **kwargs: Parameters.kwargs) -> float:
        """Return the printed number."""
        return self.formula(*args, **kwargs)

    def counterexample(self) -> Counterexample:
        """Return a case in which the printed number is on the wrong side of the truth, with both numbers.

        Raises
        ------
        ValueError
            If none is known.
        """
        if self.shown is None:
            raise ValueError(f"no counterexample to {self.__name__} is known: its verdict is {self.verdict!r}")
        return self.shown()

    def comparison(self) -> Comparison:
        """Return the printed and the exact number in a representative setting: the counterexample where no other is set.

        Returns
        -------
        Comparison
            With the setting in words and the name of the quantity.

        Raises
        ------
        ValueError
            If neither a setting nor a counterexample is known.
        """
        if self.compared is not None:
            return self.compared()
        case = self.counterexample()
        return Comparison(case.case, "counterexample", case.printed, case.truth)


_ENTRIES: list[PrintedBound[Any]] = []


def bounds() -> tuple[PrintedBound[Any], ...]:
    """Return every printed bound of the package, in the order in which its files are imported.

    Returns
    -------
    tuple of PrintedBound

    Examples
    --------
    >>> from shufflebounds import published
    >>> [bound.__name__ for bound in published.bounds() if "2023" in bound.reference]
    ['stronger_clones_closed_form']
    """
    return tuple(_ENTRIES)


def printed(
    *,
    verdict: Verdict,
    reason: str,
    reference: str,
    counterexample: Callable[[], Counterexample] | None = None,
    side: Side = "upper",
    comparison: Callable[[], Comparison] | None = None,
) -> Callable[[Callable[Parameters, float]], PrintedBound[Parameters]]:
    """Wrap a formula with its verdict, and enter it among :func:`bounds`."""

    def enter(formula: Callable[Parameters, float]) -> PrintedBound[Parameters]:
        bound = PrintedBound(formula, verdict, reason, reference, counterexample, side, comparison)
        _ENTRIES.append(bound)
        return bound

    return enter
