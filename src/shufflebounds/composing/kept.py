"""Answers that are kept for the next question, so many at most."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["Kept"]

Key = TypeVar("Key")
Value = TypeVar("Value")


class Kept(dict[Key, Value]):
    """Values by key, `most` of them: the oldest makes room before a new one is made."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def of(self, key: Key, make: Callable[[], Value]) -> Value:
        """Return the value of a key, made where it is not kept."""
        value = self.get(key)
        if value is None:
            # threads may do the same at once: no step fails where another has been
            for oldest in list(self)[: len(self) + 1 - self.most]:
                self.pop(oldest, None)
            value = self[key] = make()
        return value
