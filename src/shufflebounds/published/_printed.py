"""What a printed formula carries: its verdict, the reason, and two numbers that show it where it is false."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, Literal, NamedTuple, ParamSpec

__all__ = ["Counterexample", "PrintedBound", "Verdict", "printed"]

Verdict = Literal["exact", "proven", "unproven", "false"]
Parameters = ParamSpec("Parameters")


class Counterexample(NamedTuple):
    """A case where a printed upper bound lies below the truth."""

    printed: float
    truth: float
    case: str


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
    """

    formula: Callable[Parameters, float] = field(repr=False)
    verdict: Verdict
    reason: str
    reference: str
    shown: Callable[[], Counterexample] | None = field(default=None, repr=False)

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


def printed(
    *, verdict: Verdict, reason: str, reference: str, counterexample: Callable[[], Counterexample] | None = None
) -> Callable[[Callable[Parameters, float]], PrintedBound[Parameters]]:
    """Wrap a formula with its verdict."""
    return lambda formula: PrintedBound(formula, verdict, reason, reference, counterexample)
