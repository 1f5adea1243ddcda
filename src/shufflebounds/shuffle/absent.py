"""Users whose messages do not hide those of other users: colluding users reveal them, and missing messages do not arrive."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import wraps
from typing import Any, Self

from shufflebounds._base import validate as _validate
from shufflebounds._base.caches import cached_property

__all__ = ["AbsentUsers"]

_OF_PRIVACY = ("describe", "closed_forms", "describe_group", "pairs", "data", "argument")
"""Methods whose results are those of the remaining users."""


def _of_remaining(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method, called on the protocol of the remaining users instead."""
    @wraps(method)
    def call(self: AbsentUsers, *arguments: Any, **named: Any) -> Any:
        rest = self._remaining
        return method(self, *arguments, **named) if rest is self else getattr(rest, method.__name__)(*arguments, **named)

    return call


@dataclass(frozen=True, kw_only=True)
class AbsentUsers:
    """The fields `colluding` and `missing` of a protocol. The guarantee is that of the remaining users.

    Proofs: docs/protocols/index, "Which protocol survives what". Estimates and errors are for all `users`.
    """

    colluding: int = field(default=0, repr=False)
    missing: int = field(default=0, repr=False)

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        for name in _OF_PRIVACY:
            if name in vars(cls):
                setattr(cls, name, _of_remaining(vars(cls)[name]))

    def _check_absent(self, users: int) -> None:
        """Raise ValueError if the fields are not whole numbers, or if nobody remains."""
        for name in ("colluding", "missing"):
            _validate.integer_field(self, name)
        if self.colluding + self.missing >= users:
            raise ValueError(f"colluding={self.colluding} and missing={self.missing} leave nobody of users={users}: their sum must "
                             f"be at most {users - 1}")

    @property
    def _hiding(self) -> int:
        """Number of users whose messages hide each other."""
        return self.users - self.colluding - self.missing  # type: ignore[attr-defined, no-any-return]

    @cached_property
    def _remaining(self) -> Self:
        """The protocol of the remaining users, each with the same noise as before."""
        return replace(self, **{"users": self._hiding, "colluding": 0, "missing": 0}) if self.colluding + self.missing else self

    def _absent(self) -> str:
        """Return those of `colluding` and `missing` that are not 0, in the form of keyword arguments of a call."""
        return "".join(f", {name}={getattr(self, name)}" for name in ("colluding", "missing") if getattr(self, name))

    def __repr__(self) -> str:
        shown = ", ".join(f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
        return f"{type(self).__name__}({shown}{self._absent()})"
