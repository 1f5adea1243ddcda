"""Run the work of the command so that Ctrl-C stops it, with a clock on the terminal after two seconds."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

from shufflebounds._base.limits import CALM_SECONDS, UPDATE_SECONDS
from shufflebounds._base.progress import elsewhere

__all__ = ["watched"]


def _clock() -> Any:
    """Return a clock on the terminal, or None if stderr is not a terminal or tqdm is not installed."""
    if not sys.stderr or not sys.stderr.isatty():
        return None
    try:
        from tqdm import tqdm  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        return None
    return tqdm(desc="working", bar_format="{desc} [{elapsed}] Ctrl-C stops", leave=False, file=sys.stderr)


def watched(work: Callable[[], None]) -> None:
    """Run the work in another thread and wait for it.

    The main thread can then react to Ctrl-C while a kernel runs. An exception that `work` raises is raised again by this function.
    """
    raised: list[BaseException] = []

    def call() -> None:
        try:
            with elsewhere():
                work()
        except BaseException as problem:
            raised.append(problem)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(CALM_SECONDS)
    clock = _clock() if thread.is_alive() else None
    try:
        while thread.is_alive():
            thread.join(UPDATE_SECONDS)
            if clock is not None:
                clock.refresh()
    finally:
        if clock is not None:
            clock.close()
    if raised:
        raise raised[0]
