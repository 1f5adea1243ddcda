"""Runs one batch of a sweep: calls the function on its rows and returns columns of results."""

from __future__ import annotations

import os
import pickle
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Columns", "Reply", "run_batch"]

Array = NDArray[Any]
Columns = dict[str, Array]


@dataclass(frozen=True)
class Reply:
    """The results of a batch as columns, its duration, and the failure or interrupt that ended it early."""

    rows: int
    columns: Columns
    seconds: float
    interrupted: bool = False
    failure: Exception | None = None


def run_batch(
    function: Callable[..., Any],
    names: tuple[str, ...],
    columns: list[Array],
    home: int,
    stop: threading.Event | None,
    arrays: bool = False,
) -> Reply:
    """Call the function on every row, or, if `arrays`, once on all rows.

    Results before a failure or an interrupt are kept. With `arrays`, a failure leaves no results, because the function is called
    only once.
    """
    started = time.perf_counter()
    answers: list[Any] = []
    answered: Columns = {}
    rows = 0
    failure: Exception | None = None
    interrupted = False
    try:
        for values in [columns] if arrays else zip(*(column.tolist() for column in columns)):
            if stop is not None and stop.is_set():
                interrupted = True
                break
            answers.append(function(**dict(zip(names, values))))
        if arrays and answers:
            answered, rows = _parallel_columns(answers[0], columns[0].size), columns[0].size
    except KeyboardInterrupt:
        interrupted = True
    except Exception as problem:
        failure = _portable(problem, home)
    if not arrays:
        answered, rows = _as_columns(answers)
        if rows < len(answers) and failure is None:
            failure = TypeError(
                f"function returned {answers[rows]!r}: it must return a number, or a tuple or mapping of numbers, "
                "the same fields in every row"
            )
    return Reply(rows, answered, time.perf_counter() - started, interrupted, failure)


def _parallel_columns(answer: Any, rows: int) -> Columns:
    """Return the fields of the result for whole columns, each with one number per row."""
    names = _fields(answer)
    values = _values(answer, names) if isinstance(answer, Mapping | tuple) else (answer,)
    columns: Columns = {}
    for name, value in zip(names, values or ()):
        column = np.asarray(value)
        if not isinstance(name, str) or column.dtype.kind not in "biuf" or column.shape != (rows,):
            raise TypeError(
                f"function returned {value!r} for {name!r}: with arrays=True it must return a number for each of {rows} rows"
            )
        columns[name] = column
    if not columns:
        raise TypeError(f"function returned {answer!r}: with arrays=True it must return an array, or a tuple or mapping of arrays")
    return columns


def _portable(problem: Exception, home: int) -> Exception:
    """Return the exception itself in the process `home`.

    In any other process, return one that can be pickled, with the traceback.
    """
    if os.getpid() == home:
        return problem
    problem.add_note("".join(traceback.format_exception(problem)))
    try:
        pickle.loads(pickle.dumps(problem))
    except Exception:
        return RuntimeError("".join(traceback.format_exception(problem)))
    return problem


def _fields(answer: Any) -> tuple[str, ...]:
    """Return the names of a result's fields."""
    if isinstance(answer, Mapping):
        return tuple(answer)
    if isinstance(answer, tuple):
        return tuple(getattr(answer, "_fields", (f"value{i}" for i in range(len(answer)))))
    return ("value",)


def _values(answer: Any, names: tuple[str, ...]) -> tuple[Any, ...] | None:
    """Return a result's values in the order of the names, or None if its fields have other names."""
    fields = _fields(answer)
    if isinstance(answer, Mapping):
        return tuple(answer[name] for name in names) if set(fields) == set(names) else None
    if fields != names:
        return None
    return answer if isinstance(answer, tuple) else (answer,)


def _numbers(values: Sequence[Any]) -> Array | None:
    """Return the values as an array of numbers, or None if one of them is not a number."""
    try:
        array = np.array(values)
        if array.dtype.kind == "O" and all(isinstance(value, int | float) for value in values):
            # Integers beyond 64 bits become floats.
            array = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    return array if array.ndim == 1 and array.dtype.kind in "biuf" else None


def _as_columns(answers: list[Any]) -> tuple[Columns, int]:
    """Return the number of leading results that all are numbers with the same fields, and the columns of these results."""
    if not answers:
        return {}, 0
    names = _fields(answers[0])
    if not isinstance(answers[0], Mapping | tuple):
        whole = _numbers(answers)
        if whole is not None:
            return {"value": whole}, len(answers)
    rows = [_values(answer, names) for answer in answers]
    good = next((i for i, row in enumerate(rows) if row is None), len(rows))
    columns = [_numbers(column) for column in zip(*rows[:good])]
    if any(column is None for column in columns):
        good = next((i for i, row in enumerate(rows[:good]) if any(_numbers([value]) is None for value in row or ())), 0)
        columns = [_numbers(column) for column in zip(*rows[:good])]
    complete = {name: column for name, column in zip(names, columns) if isinstance(name, str) and column is not None}
    return (complete, good) if complete and len(complete) == len(names) else ({}, 0)
