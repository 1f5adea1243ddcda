"""Independent parts of one call, computed in several threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TypeVar

from shufflebounds._base import validate as _validate

__all__ = ["checked", "each", "in_slices"]

Part = TypeVar("Part")

SLICE = 64
"""Number of rows that a thread computes at a time. Raised: longer waits for Ctrl-C and for the last thread. Lowered: the overhead
of a slice, some microseconds, exceeds the time of its rows, if a row takes a microsecond."""


def checked(threads: int, name: str = "threads") -> int:
    """Return a number of threads, or raise ValueError unless it is an integer in 1..2**15, more than any machine has cores."""
    return _validate.integer(name, threads, 1, 2**15)


def each(job: Callable[[Part], object], parts: Iterable[Part], threads: int) -> None:
    """Call `job` with every part, in this thread if `threads` is 1 and in a pool of `threads` threads otherwise.

    The result does not depend on the number of threads if the parts are independent. If a job fails, or at Ctrl-C, no further part
    is begun, and the error is raised once the running jobs have ended.
    """
    if threads == 1:
        for part in parts:
            job(part)
        return
    queue, lock, stop = iter(parts), threading.Lock(), threading.Event()

    def work() -> None:
        while not stop.is_set():
            with lock:
                try:
                    part = next(queue)
                except StopIteration:
                    return
            try:
                job(part)
            except BaseException:
                # The calling thread may be woken much later.
                stop.set()
                raise

    with ThreadPoolExecutor(threads) as pool:
        # Ctrl-C may arrive before all threads are started.
        try:
            running = [pool.submit(work) for _ in range(threads)]
            wait(running, return_when=FIRST_EXCEPTION)
        finally:
            stop.set()
    for future in running:
        future.result()


def in_slices(job: Callable[[slice], object], rows: int, threads: int) -> None:
    """Call `job` with slices that together cover the rows 0, ..., rows - 1; with a single slice if `threads` is 1."""
    size = max(rows, 1) if threads == 1 else SLICE
    each(job, (slice(first, min(first + size, rows)) for first in range(0, max(rows, 1), size)), threads)
