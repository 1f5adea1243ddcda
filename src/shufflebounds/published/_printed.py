"""What a printed formula carries: its verdict, the reason, a comparison with the truth, and the case that refutes a false one."""

from __future__ import annotations

import inspect
import math
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Generic, Literal, NamedTuple, ParamSpec

import numpy as np

from shufflebounds._cached import cached_property
from shufflebounds.published._glossary import GLOSSARY, Given

__all__ = ["At", "Comparison", "Counterexample", "PrintedBound", "Side", "Verdict", "bounds", "printed"]

Verdict = Literal["proven", "unproven", "false"]
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


class At(NamedTuple):
    """A case of a formula: its arguments, and what returns the exact number from them."""

    case: str
    arguments: tuple[Any, ...]
    exact: Callable[..., float]
    quantity: str = "counterexample"
    keywords: Mapping[str, Any] = MappingProxyType({})

    def beside(self, formula: Callable[..., float]) -> Comparison:
        """Return the printed and the exact number."""
        printed_number, exact = (of(*self.arguments, **self.keywords) for of in (formula, self.exact))
        return Comparison(self.case, self.quantity, printed_number, exact)


@dataclass(frozen=True)
class PrintedBound(Generic[Parameters]):
    """A formula as printed, with what is known of it.

    Attributes
    ----------
    verdict : {"proven", "unproven", "false"}
        Whether the printed number is a proven bound of the quantity, an unproven one, or wrong.
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
    shown: At | Callable[[], Counterexample] | None = field(default=None, repr=False)
    side: Side = "upper"
    compared: At | Callable[[], Comparison] | None = field(default=None, repr=False)
    returns: str = field(default="The printed number.", repr=False)
    where: Mapping[str, Given] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "__doc__", self._described())
        object.__setattr__(self, "__module__", self.formula.__module__)

    @property
    def __name__(self) -> str:
        return self.formula.__name__

    @cached_property
    def _signature(self) -> inspect.Signature:
        return inspect.signature(self.formula)

    def __call__(self, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Any:
        """Return the printed number, or an array of them where numbers of the formula are given as arrays.

        Arrays broadcast against each other. ValueError where an argument, or an entry of it, lies outside its range.
        """
        given = self._signature.bind(*args, **kwargs)
        given.apply_defaults()
        arrays = {name: np.asarray(value) for name, value in given.arguments.items()
                  if self._given(name).kind in ("int", "float") and np.ndim(value)}
        if not arrays:
            return self._number(given.arguments)
        shape = np.broadcast_shapes(*(array.shape for array in arrays.values()))
        columns = {name: np.broadcast_to(array, shape).ravel().tolist() for name, array in arrays.items()}
        rows = (dict(zip(columns, row)) for row in zip(*columns.values()))
        return np.array([self._number({**given.arguments, **row}) for row in rows]).reshape(shape)

    def _number(self, arguments: Mapping[str, Any]) -> float:
        """Return the printed number of one set of arguments."""
        checked = {name: self._given(name).check(name, value) for name, value in arguments.items()}
        try:
            with np.errstate(all="ignore"):
                value = self.formula(**checked)  # type: ignore[call-arg]
        except ArithmeticError:
            value = math.nan
        except ValueError as error:
            # what the standard library says of a logarithm of 0
            if not str(error).startswith("math "):
                raise
            value = math.nan
        if math.isnan(value):
            shown = ", ".join(f"{name}={value!r}" for name, value in checked.items())
            raise ValueError(f"{shown} must leave the terms of {self.__name__} within the range of a double")
        return value

    def __reduce__(self) -> str:
        # a module-level name, by which pickle finds the one object there is
        return self.__name__

    def _given(self, name: str) -> Given:
        return self.where.get(name) or GLOSSARY[name]

    def _described(self) -> str:
        """Return the formula's docstring with its parameters, what it returns and raises, and its example in numpydoc's form."""
        words, prompt, example = inspect.cleandoc(self.formula.__doc__ or "").partition(">>> ")
        parts = [words.rstrip(), "", "Parameters", "----------"]
        for name in self._signature.parameters:
            given = self._given(name)
            parts += [f"{name} : {given.kind}", textwrap.indent(textwrap.fill(f"{given.says}.", 120), "    ")]
        parts += ["", "Returns", "-------", "float", f"    {self.returns}"]
        parts += ["", "Raises", "------", "ValueError"]
        parts += ["    If an argument lies outside its range, or a condition of the theorem does not hold."]
        parts += ["", "Examples", "--------", ">>> from shufflebounds import published", prompt + example]
        return "\n".join(parts)

    def counterexample(self) -> Counterexample:
        """Return a case in which the printed number is on the wrong side of the truth, with both numbers.

        Raises
        ------
        ValueError
            If none is known.
        """
        if self.shown is None:
            raise ValueError(f"no counterexample to {self.__name__} is known: its verdict is {self.verdict!r}")
        if isinstance(self.shown, At):
            case, _, printed, exact = self.shown.beside(self)
            return Counterexample(printed, exact, case)
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
            return self.compared.beside(self) if isinstance(self.compared, At) else self.compared()
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
    >>> [bound.__name__ for bound in published.bounds() if "2023, Theorem" in bound.reference]
    ['stronger_clones_closed_form']
    """
    return tuple(_ENTRIES)


def printed(
    verdict: Verdict,
    reference: str,
    *,
    reason: str,
    counterexample: At | Callable[[], Counterexample] | None = None,
    side: Side = "upper",
    comparison: At | Callable[[], Comparison] | None = None,
    returns: str = "The printed number.",
    where: Mapping[str, Given] | None = None,
) -> Callable[[Callable[Parameters, float]], PrintedBound[Parameters]]:
    """Wrap a formula with its verdict, and enter it among :func:`bounds`."""

    def enter(formula: Callable[Parameters, float]) -> PrintedBound[Parameters]:
        bound = PrintedBound(formula, verdict, reason, reference, counterexample, side, comparison, returns, where or {})
        _ENTRIES.append(bound)
        return bound

    return enter
