"""The class `PrintedBound`: a published formula with a verdict on its correctness.

The verdict has a reason, a comparison with the exact value, and a counterexample if the formula is false. The decorator `printed`
makes an instance of the class from a function.
"""

from __future__ import annotations

import inspect
import math
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Generic, Literal, NamedTuple, ParamSpec

import numpy as np

from shufflebounds._base.caches import cached_property
from shufflebounds.published._glossary import GLOSSARY, Given

__all__ = ["At", "BoundComparison", "Counterexample", "Fault", "PrintedBound", "Side", "Verdict", "bounds", "epsilon_of", "printed"]

Verdict = Literal["proven", "unproven", "false"]
Fault = Literal["privacy", "accuracy", "misprint", "extraction"]
Side = Literal["upper", "lower", "both"]
Parameters = ParamSpec("Parameters")


class Counterexample(NamedTuple):
    """A case in which the published number `printed` is no bound of the exact number `truth`, although it claims to be one."""

    printed: float
    truth: float
    case: str


class BoundComparison(NamedTuple):
    """A published number `printed` of a `quantity`, and the exact number, in a realistic setting."""

    setting: str
    quantity: str
    printed: float
    exact: float

    @property
    def ratio(self) -> float:
        """The published number divided by the exact one: inf if only the exact one is 0, and 1 if both are equal."""
        if self.printed == self.exact:
            return 1.0
        return self.printed / self.exact if self.exact else math.copysign(math.inf, self.printed)


class At(NamedTuple):
    """A case of a formula: its description, its arguments, and a function `exact` of the arguments for the exact number."""

    case: str
    arguments: tuple[Any, ...]
    exact: Callable[..., float]
    quantity: str = "counterexample"
    keywords: Mapping[str, Any] = MappingProxyType({})

    def beside(self, formula: Callable[..., float]) -> BoundComparison:
        """Return the published number for this case, and the exact one."""
        printed_number, exact = (of(*self.arguments, **self.keywords) for of in (formula, self.exact))
        return BoundComparison(self.case, self.quantity, printed_number, exact)


def epsilon_of(bound: type[Any], users: int, local_eps: float, delta: float) -> At:
    """Return a case that compares a published epsilon with that of `bound`, a class of clone bounds.

    `users` and `delta` are powers of 10.
    """
    setting = f"n = 10^{math.log10(users):.0f}, eps0 = {local_eps:g}, delta = 10^{math.log10(delta):.0f}; exact: {bound.__name__}"
    return At(setting, (users, local_eps, delta), lambda users, local_eps, delta: bound(users, local_eps).epsilon(delta), "eps")


@dataclass(frozen=True)
class PrintedBound(Generic[Parameters]):
    """A formula as published, with its verdict.

    Attributes
    ----------
    verdict : {"proven", "unproven", "false"}
        Whether the published formula is a proven bound, an unproven bound, or false.
    reason : str
        Why, in one line.
    reference : str
        Paper and equation.
    side : {"upper", "lower", "both"}
        The kind of bound that the formula claims: an upper bound, a lower bound, or equality.
    fault : {"privacy", "accuracy", "misprint", "extraction"} or None
        What is false. "privacy": a guarantee of privacy. "accuracy": a bound of an error or of a tail. "misprint": a formula whose
        context shows what is meant. "extraction": a formula that may have lost a symbol (a root, an exponent, a fraction) when its
        text was extracted from a PDF file. None if the formula is not false.
    """

    formula: Callable[Parameters, float] = field(repr=False)
    verdict: Verdict
    reason: str
    reference: str
    shown: At | Callable[[], Counterexample] | None = field(default=None, repr=False)
    side: Side = "upper"
    compared: At | Callable[[], BoundComparison] | None = field(default=None, repr=False)
    returns: str = field(default="The published number.", repr=False)
    where: Mapping[str, Given] = field(default_factory=dict, repr=False)
    fault: Fault | None = field(default=None, repr=False)

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
        """Return the published number, or an array of numbers if parameters of the formula are passed as arrays.

        Arrays broadcast against each other. Raises ValueError if an argument, or an element of it, is outside its range.
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
        """Return the published number for one set of arguments."""
        checked = {name: self._given(name).check(name, value) for name, value in arguments.items()}
        try:
            with np.errstate(all="ignore"):
                value = self.formula(**checked)  # type: ignore[call-arg]
        except ArithmeticError:
            value = math.nan
        except ValueError as error:
            # The math module raises such an error for the logarithm of 0.
            if not str(error).startswith("math "):
                raise
            value = math.nan
        if math.isnan(value):
            shown = ", ".join(f"{name}={value!r}" for name, value in checked.items())
            raise ValueError(f"{shown}: a term of {self.__name__} is undefined or overflows; pass less extreme arguments")
        return value

    def __reduce__(self) -> str:
        # The single instance is pickled by its name in the module.
        return self.__name__

    def _given(self, name: str) -> Given:
        return self.where.get(name) or GLOSSARY[name]

    def _described(self) -> str:
        """Return the formula's docstring with parameters, returns, raises and example sections in numpydoc's form."""
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
        """Return a case in which the published number violates the claimed bound, with the published and the exact number.

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

    def comparison(self) -> BoundComparison:
        """Return the published and the exact number in a representative setting, or in the counterexample if no setting is defined.

        Returns
        -------
        BoundComparison
            The setting in words, the name of the quantity, and both numbers.

        Raises
        ------
        ValueError
            If neither a setting nor a counterexample is known.
        """
        if self.compared is not None:
            return self.compared.beside(self) if isinstance(self.compared, At) else self.compared()
        case = self.counterexample()
        return BoundComparison(case.case, "counterexample", case.printed, case.truth)


_ENTRIES: list[PrintedBound[Any]] = []


def bounds() -> tuple[PrintedBound[Any], ...]:
    """Return every published bound of the package, in the order in which its modules are imported.

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
    fault: Fault | None = None,
    counterexample: At | Callable[[], Counterexample] | None = None,
    side: Side = "upper",
    comparison: At | Callable[[], BoundComparison] | None = None,
    returns: str = "The published number.",
    where: Mapping[str, Given] | None = None,
) -> Callable[[Callable[Parameters, float]], PrintedBound[Parameters]]:
    """Wrap a formula with its verdict, and add it to :func:`bounds`."""

    def enter(formula: Callable[Parameters, float]) -> PrintedBound[Parameters]:
        bound = PrintedBound(formula, verdict, reason, reference, counterexample, side, comparison, returns, where or {}, fault)
        _ENTRIES.append(bound)
        return bound

    return enter
