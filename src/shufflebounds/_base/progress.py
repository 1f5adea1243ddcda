"""The elapsed time of a long computation.

On a terminal the time is shown in a line that is erased at the end. Elsewhere it is logged in messages of level INFO to the logger
"shufflebounds", if this level is enabled: after CALM_SECONDS, and whenever the time has doubled.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ContextDecorator, contextmanager
from types import TracebackType
from typing import Self

from shufflebounds._base.limits import CALM_SECONDS, UPDATE_SECONDS

__all__ = ["announced", "elsewhere", "tick"]

LOGGER = logging.getLogger("shufflebounds")


class _Line(threading.local):
    """The computation whose elapsed time this thread shows, or will show after CALM_SECONDS.

    `name` is empty if there is no such computation. The line is written again when the elapsed seconds reach `due`.
    """

    name = ""
    start = due = 0.0
    shown = logged = elsewhere = False


_line = _Line()


def _on_terminal() -> bool:
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except ValueError:
        # The standard error stream is closed.
        return False


@contextmanager
def elsewhere() -> Iterator[None]:
    """Suppress the line in this thread, because the caller shows its own progress."""
    _line.elsewhere = True
    try:
        yield
    finally:
        _line.elsewhere = False


class announced(ContextDecorator):
    """Show a line on the terminal, or log messages elsewhere, while a long computation runs inside the context.

    The line appears at the first tick after CALM_SECONDS. A computation inside another one that shows a line has no line of its
    own. An instance is a context manager or the decorator of a function.

    Parameters
    ----------
    name : str
        Name of the computation, the first word of the line.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._shows = False

    def _recreate_cm(self) -> Self:
        # Each call of a decorated function gets a new instance, because calls may overlap.
        return type(self)(self._name)

    def __enter__(self) -> None:
        if _line.elsewhere or _line.name:
            return
        terminal = _on_terminal()
        if not terminal and not LOGGER.isEnabledFor(logging.INFO):
            return
        self._shows, _line.logged, _line.shown = True, not terminal, False
        _line.name, _line.start, _line.due = self._name, time.monotonic(), CALM_SECONDS

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        if not self._shows:
            return
        if _line.shown and not _line.logged:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
        _line.name, self._shows = "", False


def tick() -> None:
    """Update the line. Computations call this several times per second."""
    if not _line.name:
        return
    spent = time.monotonic() - _line.start
    if spent < _line.due:
        return
    _line.shown = True
    text = f"{_line.name}: {spent:.0f} s so far; Ctrl-C stops"
    if _line.logged:
        _line.due = 2 * spent
        LOGGER.info(text)
    else:
        _line.due = spent + UPDATE_SECONDS
        sys.stderr.write(f"\r\033[K{text}")
        sys.stderr.flush()
