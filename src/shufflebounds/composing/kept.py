"""Answers that are kept for the next question, so many at most."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["Kept"]

Key = TypeVar("Key")
Value = TypeVar("Value")


def _one(_: Any) -> int:
    return 1


class Kept(dict[Key, Value]):
    """Values by key, `most` of them, or of so large a total `size`: the oldest makes room before a new one is kept."""

    def __init__(self, most: int, size: Callable[[Value], int] = _one) -> None:
        super().__init__()
        self.most, self.size, self.held = most, size, 0

    def of(self, key: Key, make: Callable[[], Value]) -> Value:
        """Return the value of a key, made where it is not kept."""
        value = self.get(key)
        if value is None:
            value = make()
            self.held += self.size(value)
            # threads may do the same at once: no step fails where another has been
            for oldest in list(self):
                if self.held <= self.most:
                    break
                self.held -= self.size(gone) if (gone := self.pop(oldest, None)) is not None else 0
            self[key] = value
        return value
