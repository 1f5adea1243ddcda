"""Work that can be watched and stopped: a clock on the terminal from two seconds on, one line and code 130 after Ctrl-C."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

from shufflebounds.composing.progress import elsewhere

__all__ = ["watched"]

GRID_BUDGET_SECONDS, TICK = 2.0, 0.2
"""Seconds before the clock is shown, and between two looks at it."""


def _clock() -> Any:
    """Return a clock on the terminal, where there is one and tqdm is installed."""
    if not sys.stderr or not sys.stderr.isatty():
        return None
    try:
        from tqdm import tqdm  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        return None
    return tqdm(desc="working", bar_format="{desc} [{elapsed}] Ctrl-C stops", leave=False, file=sys.stderr)


def watched(work: Callable[[], None]) -> None:
    """Do the work in a thread of its own, so that this one hears Ctrl-C even while a kernel runs; what it raises is raised here."""
    raised: list[BaseException] = []

    def call() -> None:
        try:
            with elsewhere():
                work()
        except BaseException as problem:
            raised.append(problem)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(GRID_BUDGET_SECONDS)
    clock = _clock() if thread.is_alive() else None
    try:
        while thread.is_alive():
            thread.join(TICK)
            if clock is not None:
                clock.refresh()
    finally:
        if clock is not None:
            clock.close()
    if raised:
        raise raised[0]
