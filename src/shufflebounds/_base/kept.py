"""A cache that forgets the least recently used values when their total size exceeds a limit, and methods with such a cache."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

__all__ = ["Kept", "kept"]

Arguments = ParamSpec("Arguments")
Key = TypeVar("Key")
Value = TypeVar("Value")


def _one(value: object) -> int:
    return 1


class Kept(dict[Key, Value]):
    """A least-recently-used cache whose values have a total size of at most `most`; the newest value is always kept.

    It may be used by several threads: at worst a value is computed twice. It has no lock, which a fork could copy in a locked state
    or Ctrl-C could leave locked.

    Parameters
    ----------
    most : int
        Largest total size.
    size : callable, optional
        Returns the size of a value; 1 by default.
    """

    def __init__(self, most: float, size: Callable[[Value], int] = _one) -> None:
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
            # Two threads may lose one of two updates here; `_make_room` computes the total size anew.
            self._held += self._size(value)
        self[key] = value
        if self._held > self.most:
            self._make_room()
        return value

    def _make_room(self) -> None:
        """Remove the oldest values until an eighth of the cache is free, so that this is not repeated for every new value."""
        # Other threads may change the cache meanwhile: each step below is atomic in the interpreter or works on a copy.
        sizes = [(key, self._size(value)) for key, value in list(self.items())]
        held = sum(size for _, size in sizes)
        for key, size in sizes[:-1]:
            if held <= self.most - self.most // 8:
                break
            self.pop(key, None)
            held -= size
        self._held = held


def kept(
    most: float, size: Callable[[Any], int] = _one
) -> Callable[[Callable[Concatenate[Any, Arguments], Value]], Callable[Concatenate[Any, Arguments], Value]]:
    """Return a decorator for methods: each object keeps the values of the method by its arguments, in a `Kept` with this limit.

    The cache of a method m is the attribute ``_kept_m`` of the object. Values must not be None, and arguments must be hashable.
    """

    def decorated(method: Callable[Concatenate[Any, Arguments], Value]) -> Callable[Concatenate[Any, Arguments], Value]:
        name = f"_kept_{method.__name__}"

        @wraps(method)
        def answer(self: Any, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Value:
            known = vars(self).get(name) or vars(self).setdefault(name, Kept(most, size))
            found: Value = known.of((*args, *kwargs.items()), lambda: method(self, *args, **kwargs))
            return found

        return answer

    return decorated
