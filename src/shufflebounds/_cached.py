"""Attributes computed when they are first asked for, and kept."""

from __future__ import annotations

import functools
from typing import Any, Self, TypeVar, overload

__all__ = ["cached_property", "uncached"]

T = TypeVar("T")


class cached_property(functools.cached_property[T]):
    """A :class:`functools.cached_property` without a lock, of which all threads get the same value.

    Up to Python 3.11 the standard one holds a lock for all objects of the class while it computes: two threads that ask for two
    properties in opposite orders wait for each other for ever, as does a process that was forked meanwhile. Threads that ask for
    the first value at once may compute it several times here; the first one done is what all of them keep.
    """

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> T: ...

    def __get__(self, instance: object | None, owner: type[Any] | None = None) -> Self | T:
        """Return the value, or the property itself where it is asked of the class."""
        if instance is None:
            return self
        assert self.attrname is not None
        kept: T = vars(instance).setdefault(self.attrname, self.func(instance))
        return kept


def uncached(instance: object) -> dict[str, Any]:
    """Return the attributes but for those that a :class:`cached_property` keeps: what a pickle holds.

    The copy is made in one step, so that a thread that adds an attribute meanwhile is in nobody's way.
    """
    kind = type(instance)
    return {
        name: value for name, value in vars(instance).copy().items() if not isinstance(getattr(kind, name, None), cached_property)
    }
