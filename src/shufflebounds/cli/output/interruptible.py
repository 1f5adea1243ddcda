"""Run the work of the command so that Ctrl-C stops it, with a clock on the terminal after two seconds.

If the standard error stream is not a terminal, the elapsed time is logged with level INFO by the logger "shufflebounds", after ten
seconds and whenever the time has doubled. The command writes these messages to the standard error stream.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from shufflebounds._base.limits import CALM_SECONDS, UPDATE_SECONDS
from shufflebounds._base.progress import elsewhere

__all__ = ["log_to_stderr", "watched"]

LOGGER = logging.getLogger("shufflebounds")

FIRST_MESSAGE = 10.0
"""Seconds after which the elapsed time is logged. Lowered: messages for commands that end soon."""


def log_to_stderr() -> None:
    """Write the messages of the logger to the standard error stream, if the logger has no other handler."""
    if not LOGGER.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("shufflebounds: %(message)s"))
        LOGGER.addHandler(handler)
        LOGGER.setLevel(logging.INFO)


def _clock() -> Any:
    """Return a clock on the terminal, or None if stderr is not a terminal or tqdm is not installed."""
    if not sys.stderr or not sys.stderr.isatty():
        return None
    try:
        from tqdm import tqdm  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        return None
    return tqdm(desc="working", bar_format="{desc} [{elapsed}] Ctrl-C stops", leave=False, file=sys.stderr)


def watched(work: Callable[[], None], name: str) -> None:
    """Run the work in another thread and wait for it.

    The main thread can then react to Ctrl-C while a kernel runs. Messages begin with `name`. An exception that
    `work` raises is raised again by this function.
    """
    raised: list[BaseException] = []

    def call() -> None:
        try:
            with elsewhere():
                work()
        except BaseException as problem:
            raised.append(problem)

    thread = threading.Thread(target=call, daemon=True)
    start, due = time.monotonic(), FIRST_MESSAGE
    thread.start()
    thread.join(CALM_SECONDS)
    clock = _clock() if thread.is_alive() else None
    silent = clock is not None or (sys.stderr is not None and sys.stderr.isatty())
    try:
        while thread.is_alive():
            thread.join(UPDATE_SECONDS)
            if clock is not None:
                clock.refresh()
            spent = time.monotonic() - start
            if not silent and thread.is_alive() and spent >= due:
                due = 2 * spent
                LOGGER.info("%s: %.0f s so far; Ctrl-C stops", name, spent)
    finally:
        if clock is not None:
            clock.close()
    if raised:
        raise raised[0]
