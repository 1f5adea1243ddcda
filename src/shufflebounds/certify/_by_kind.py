"""Functions with an implementation for each kind of profile, named by its class: certificates import no class of a profile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

__all__ = ["by_kind", "kinds_of"]

_Result = TypeVar("_Result")


def kinds_of(subject: object) -> list[str]:
    """Return the names of the classes of an object of this library, the most special one first."""
    return [kind.__name__ for kind in type(subject).__mro__ if kind.__module__.startswith("shufflebounds.")]


class by_kind(Generic[_Result]):
    """A function of one object, with the implementation of the first of its kinds that has one, or else a default."""

    def __init__(self, default: Callable[[Any], _Result]) -> None:
        self.default, self._known, self.__doc__ = default, dict[str, Callable[[Any], _Result]](), default.__doc__

    def of(self, kind: str) -> Callable[[Callable[[Any], _Result]], Callable[[Any], _Result]]:
        """Return a decorator for the implementation of a kind."""
        return lambda function: self._known.setdefault(kind, function)

    def __call__(self, subject: Any) -> _Result:
        # Colluding and missing users are not counted.
        subject = getattr(subject, "_remaining", subject)
        return next((self._known[kind] for kind in kinds_of(subject) if kind in self._known), self.default)(subject)
