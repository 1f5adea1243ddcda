"""Answers that are kept for the next question, so many at most."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["Kept"]

Key = TypeVar("Key")
Value = TypeVar("Value")


def _one(value: object) -> int:
    return 1


class Kept(dict[Key, Value]):
    """Values by key whose sizes add up to `most`: those not asked for longest make room, and the newest always stays.

    Threads may ask at once: at worst a value is made twice. No lock is held that a fork could take along, and none is left behind
    by Ctrl-C.

    Parameters
    ----------
    most : int
        All sizes together.
    size : callable, optional
        The size of a value; each counts as 1 by default.
    """

    def __init__(self, most: int, size: Callable[[Value], int] = _one) -> None:
        super().__init__()
        self.most, self._size, self._held = most, size, 0

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        # kept values are not pickled
        return type(self), (self.most, self._size)

    def of(self, key: Key, make: Callable[[], Value]) -> Value:
        """Return the value of a key, made where it is not kept."""
        value = self.pop(key, None)
        if value is None:
            value = make()
            # where two threads add at once this misses one of them, until all are counted again
            self._held += self._size(value)
        self[key] = value
        if self._held > self.most:
            self._make_room()
        return value

    def _make_room(self) -> None:
        """Leave out the oldest until an eighth is free, so that the next values find room without counting all again."""
        # each step is one of the interpreter's, or fails on nothing that another thread has done
        sizes = [(key, self._size(value)) for key, value in list(self.items())]
        held = sum(size for _, size in sizes)
        for key, size in sizes[:-1]:
            if held <= self.most - self.most // 8:
                break
            self.pop(key, None)
            held -= size
        self._held = held
