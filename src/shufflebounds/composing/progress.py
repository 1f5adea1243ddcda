"""Long work says on a terminal how long it will take, and then how far it is."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

__all__ = ["Cost", "announced", "elsewhere", "tick"]

LONG = 5.0
"""Seconds from which on work is announced."""

TICK = 0.2
"""Seconds between two changes of the line."""


class Cost(NamedTuple):
    """Predicted CPU seconds, and the most memory in bytes."""

    seconds: float
    memory: int


class _Line(threading.local):
    """The announced work of this thread, if there is any."""

    cost: Cost | None = None
    start = drawn = 0.0
    elsewhere = False


_line = _Line()


def _text(cost: Cost, spent: float) -> str:
    return f"composition: {spent:.0f} s of about {cost.seconds:.0f} s, at most {cost.memory / 2**20:.0f} MiB; Ctrl-C stops"


@contextmanager
def elsewhere() -> Iterator[None]:
    """Draw nothing in this thread: another line shows that something is done."""
    _line.elsewhere = True
    try:
        yield
    finally:
        _line.elsewhere = False


@contextmanager
def announced(cost: Cost) -> Iterator[None]:
    """Say on the terminal what the work inside will cost, where that is much; the line disappears at the end."""
    shown = cost.seconds >= LONG and _line.cost is None and not _line.elsewhere and sys.stderr is not None and sys.stderr.isatty()
    if not shown:
        yield
        return
    _line.cost, _line.start, _line.drawn = cost, time.monotonic(), -TICK
    tick()
    try:
        yield
    finally:
        _line.cost = None
        sys.stderr.write("\r\033[K")
        sys.stderr.flush()


def tick() -> None:
    """Bring the line up to date; called between pieces of work that take a fraction of a second each."""
    if _line.cost is None:
        return
    spent = time.monotonic() - _line.start
    if spent - _line.drawn >= TICK:
        _line.drawn = spent
        sys.stderr.write("\r\033[K" + _text(_line.cost, spent))
        sys.stderr.flush()
