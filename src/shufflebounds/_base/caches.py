"""Values that objects keep: properties computed at the first access, and caches that forget the least recently used values."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, overload

__all__ = ["Kept", "cached_property", "immutable", "kept", "uncached"]

T = TypeVar("T")
Arguments = ParamSpec("Arguments")
Key = TypeVar("Key")
Value = TypeVar("Value")


class cached_property(functools.cached_property[T]):
    """A :class:`functools.cached_property` without a lock; all threads get the same value.

    Up to Python 3.11, `functools.cached_property` holds one lock for all instances of the class while it computes. Two threads that
    read two properties in opposite orders then deadlock, and so does a process that was forked during a computation. This property
    has no lock: threads that read it at the same time may each compute the value, and all return the first result.
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


def immutable(instance: object) -> bool:
    """Return whether an object may be the key of a cache: it is hashable and an instance of a frozen dataclass."""
    kind = type(instance)
    return getattr(getattr(kind, "__dataclass_params__", None), "frozen", False) and kind.__hash__ is not None


def uncached(instance: object) -> dict[str, Any]:
    """Return the attributes that belong in a pickle: all except the cached values of properties and of methods (`kept`).

    The dictionary is copied in one step, so that another thread may add an attribute while this function iterates.
    """
    kind = type(instance)
    return {
        name: value for name, value in vars(instance).copy().items()
        if not (name.startswith("_kept_") or isinstance(getattr(kind, name, None), cached_property))
    }


class Kept(dict[Key, Value]):
    """A least-recently-used cache whose values have a total size of at most `most`; the newest value is always kept.

    Several threads may use the cache: if two threads need the same value at once, it may be computed twice. The cache has no lock,
    because a fork could copy a lock in its locked state, and Ctrl-C could leave it locked.

    Parameters
    ----------
    most : int
        Largest total size.
    size : callable, optional
        Returns the size of a value; None if each has the size 1.
    """

    def __init__(self, most: float, size: Callable[[Value], int] | None = None) -> None:
        super().__init__()
        self.most, self._size, self._held = most, size, 0

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        # The cached values are not pickled.
        return type(self), (self.most, self._size)

    def of(self, key: Key, make: Callable[[], Value]) -> Value:
        """Return the value of a key, computed by `make` if it is not in the cache."""
        value = self.pop(key, None)
        if value is None:
            value = make()
            # If two threads update the size at the same time, an update may be lost; `_make_room` computes the total size anew.
            self._held += 1 if self._size is None else self._size(value)
        self[key] = value
        if self._held > self.most:
            self._make_room()
        return value

    def _make_room(self) -> None:
        """Remove the oldest values until an eighth of the capacity is free, so that not every new value requires removals."""
        # Other threads may change the cache during this loop. Each step below is atomic in the interpreter or works on a copy.
        sizes = [(key, 1 if self._size is None else self._size(value)) for key, value in list(self.items())]
        held = sum(size for _, size in sizes)
        for key, size in sizes[:-1]:
            if held <= self.most - self.most // 8:
                break
            self.pop(key, None)
            held -= size
        self._held = held


def kept(
    most: float, size: Callable[[Any], int] | None = None
) -> Callable[[Callable[Concatenate[Any, Arguments], Value]], Callable[Concatenate[Any, Arguments], Value]]:
    """Return a decorator for methods: each object keeps the results of the method, one for each list of arguments, in a `Kept`.

    The cache of a method m is the attribute ``_kept_m`` of the object. Values must not be None, and arguments must be hashable.
    """

    def decorated(method: Callable[Concatenate[Any, Arguments], Value]) -> Callable[Concatenate[Any, Arguments], Value]:
        name = f"_kept_{method.__name__}"

        @functools.wraps(method)
        def answer(self: Any, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Value:
            values = vars(self).get(name) or vars(self).setdefault(name, Kept(most, size))
            value: Value = values.of((*args, *kwargs.items()), lambda: method(self, *args, **kwargs))
            return value

        return answer

    return decorated
