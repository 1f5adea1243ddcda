"""Announcement of long computations on a terminal: the predicted time and memory, and a line with the elapsed time."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ContextDecorator, contextmanager
from types import TracebackType
from typing import Literal, NamedTuple, Self, get_args

from shufflebounds._limits import CALM_SECONDS, UPDATE_SECONDS

__all__ = ["QUESTIONS", "USUAL_DELTA", "Cost", "Question", "announced", "elsewhere", "several", "tick"]

LONG = 5.0
"""Smallest predicted run time, in seconds, of a computation that is announced before it begins. Raised: users wait without
information. Lowered: short computations are announced."""


Question = Literal["delta", "epsilon", "loss_tail", "tradeoff", "gdp_mu", "rdp"]
"""A method of a profile; "tradeoff" stands for its value at one level."""

QUESTIONS = get_args(Question)

USUAL_DELTA = -14.0
"""Log of the delta, about 1e-6, for which the run time of curves, mu and divergences is predicted. The delta that determines their
run time is known only after the computation."""

class Cost(NamedTuple):
    """Predicted CPU seconds, largest memory in bytes, and number of values of delta."""

    seconds: float
    memory: int
    values: int = 1


def several(number: int, cost: Cost) -> Cost:
    """Return the cost of that number of computations, one after the other."""
    return Cost(number * cost.seconds, cost.memory, number * cost.values)


class _Line(threading.local):
    """The computation of this thread whose line is shown, or will be shown after CALM_SECONDS.

    `name` is empty if there is no such computation.
    """

    name = ""
    cost: Cost | None = None
    start = drawn = 0.0
    elsewhere = False


_line = _Line()


def _text(name: str, cost: Cost | None, spent: float) -> str:
    if cost is None:
        return f"{name}: {spent:.0f} s so far; Ctrl-C stops"
    return f"{name}: {spent:.0f} s of about {cost.seconds:.0f} s, at most {cost.memory / 2**20:.0f} MiB; Ctrl-C stops"


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
    """Show a line on the terminal while a long computation runs inside the context; it is erased at the end.

    The line appears at the beginning if the predicted time is at least LONG, otherwise at the first tick after CALM_SECONDS. A
    computation inside an announced one shows no line of its own; its predicted time is stated if the outer one has none. An
    instance is a context manager or the decorator of a function.

    Parameters
    ----------
    name : str
        Name of the computation, the first word of the line.
    predict : callable, optional
        Returns the predicted cost. It is called on a terminal only, so it may take a millisecond.
    """

    def __init__(self, name: str, predict: Callable[[], Cost] | None = None) -> None:
        self._name, self._predict = name, predict
        self._shows = False

    def _recreate_cm(self) -> Self:
        # Each call of a decorated function gets a new instance, because calls may overlap.
        return type(self)(self._name, self._predict)

    def __enter__(self) -> None:
        if _line.elsewhere or (_line.name and _line.cost is not None) or not _on_terminal():
            return
        if not _line.name:
            self._shows = True
            _line.name, _line.start, _line.drawn = self._name, time.monotonic(), CALM_SECONDS - UPDATE_SECONDS
        if self._predict is None:
            return
        try:
            cost = self._predict()
        except BaseException:
            self._erase()
            raise
        if cost.seconds >= LONG:
            _line.cost, _line.drawn = cost, -math.inf
            tick()

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        self._erase()

    def _erase(self) -> None:
        if not self._shows:
            return
        if _line.cost is not None or _line.drawn >= CALM_SECONDS:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
        _line.name, _line.cost, self._shows = "", None, False


def tick() -> None:
    """Update the line. Computations call this several times per second."""
    if not _line.name:
        return
    spent = time.monotonic() - _line.start
    if spent - _line.drawn >= UPDATE_SECONDS:
        _line.drawn = spent
        sys.stderr.write("\r\033[K" + _text(_line.name, _line.cost, spent))
        sys.stderr.flush()
