"""Properties that are computed at the first access and cached on the instance."""

from __future__ import annotations

import functools
from typing import Any, Self, TypeVar, overload

__all__ = ["cached_property", "uncached"]

T = TypeVar("T")


class cached_property(functools.cached_property[T]):
    """A :class:`functools.cached_property` without a lock; all threads get the same value.

    Up to Python 3.11 the property of the standard library holds one lock for all instances of the class while it computes. Two
    threads that read two properties in opposite orders then deadlock, and so does a process that was forked during a computation.
    This property has no lock: threads that read it at the same time may each compute the value, and all return the first result.
    """

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> T: ...

    def __get__(self, instance: object | None, owner: type[Any] | None = None) -> Self | T:
        """Return the value, or the property itself if it is read from the class."""
        if instance is None:
            return self
        assert self.attrname is not None
        kept: T = vars(instance).setdefault(self.attrname, self.func(instance))
        return kept


def uncached(instance: object) -> dict[str, Any]:
    """Return the attributes that belong in a pickle: all except cached values, of properties and of methods (_base/kept.py).

    The dictionary is copied in one step, so that another thread may add an attribute while this function iterates.
    """
    kind = type(instance)
    return {
        name: value for name, value in vars(instance).copy().items()
        if not (name.startswith("_kept_") or isinstance(getattr(kind, name, None), cached_property))
    }
