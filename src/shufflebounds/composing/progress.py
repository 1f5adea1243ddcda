"""Announcement of long computations on a terminal: predicted time and memory, and elapsed time."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

__all__ = ["Cost", "announced", "elsewhere", "tick"]

LONG = 5.0
"""Predicted seconds from which on a computation is announced."""

TICK = 0.2
"""Seconds between two updates of the line."""


class Cost(NamedTuple):
    """Predicted CPU seconds, and largest memory in bytes."""

    seconds: float
    memory: int


class _Line(threading.local):
    """The announced computation of this thread, if there is one."""

    cost: Cost | None = None
    start = drawn = 0.0
    elsewhere = False


_line = _Line()


def _text(cost: Cost, spent: float) -> str:
    return f"composition: {spent:.0f} s of about {cost.seconds:.0f} s, at most {cost.memory / 2**20:.0f} MiB; Ctrl-C stops"


@contextmanager
def elsewhere() -> Iterator[None]:
    """Suppress the line in this thread, because the caller shows its own progress."""
    _line.elsewhere = True
    try:
        yield
    finally:
        _line.elsewhere = False


@contextmanager
def announced(cost: Cost) -> Iterator[None]:
    """Show on the terminal the predicted cost of the computation inside, if it is long. The line is erased at the end."""
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
    """Update the line. Computations call this several times per second."""
    if _line.cost is None:
        return
    spent = time.monotonic() - _line.start
    if spent - _line.drawn >= TICK:
        _line.drawn = spent
        sys.stderr.write("\r\033[K" + _text(_line.cost, spent))
        sys.stderr.flush()
