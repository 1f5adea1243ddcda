"""One function over a grid of parameters: in threads, or on any executor, interruptible, into a structured array."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shufflebounds import _validate
from shufflebounds.sweeps.batch import Array, Reply, run_batch
from shufflebounds.sweeps.grid import Grid, Results, checked_grid, spelled

__all__ = ["SweepError", "SweepInterrupted", "sweep"]

_BATCH_SECONDS = 0.2
"""Aim for one batch: at least 0.1 s, so that the 11 ms which a round trip costs on a cluster do not count."""
_GROWTH = 16
"""A batch is at most this much longer than the one measured before it, whose first rows may have paid for an import."""
_MAX_ROWS = 2**18
_LEAST_SECONDS = 0.02
"""Of a batch near the end, where the rest is shared out so that no worker is left alone with a long one."""
_UNKNOWN_WORKERS = 32
_GRACE_SECONDS = 2.0
"""How long batches that already run are waited for after an interrupt; each was sized to a tenth of it."""


class _Stopped:
    """What a sweep that ended early leaves behind."""

    partial: Array
    done: NDArray[np.bool_]
    remaining: Array

    def _keep(self, partial: Array, done: NDArray[np.bool_], remaining: Array) -> None:
        self.partial, self.done, self.remaining = partial, done, remaining


class SweepInterrupted(_Stopped, KeyboardInterrupt):
    """A sweep that was interrupted, with every answer that was finished.

    Attributes
    ----------
    partial : ndarray, structured, shape (finished rows,)
        The finished rows, in the order of the grid; the result's fields are absent where no row was finished.
    done : ndarray of bool, shape (rows,)
        Which rows of the grid these are.
    remaining : ndarray, structured, shape (unfinished rows,)
        The parameters of the others: a grid with which :func:`sweep` goes on.
    """


class SweepError(_Stopped, RuntimeError):
    """A sweep that failed in one row, in the progress callback or in the executor; ``__cause__`` is the first failure.

    Attributes
    ----------
    row : int or None
        The row of the grid that failed, None where it was no row.
    partial : ndarray, structured, shape (finished rows,)
        The finished rows, in the order of the grid.
    done : ndarray of bool, shape (rows,)
        Which rows of the grid these are.
    remaining : ndarray, structured, shape (unfinished rows,)
        The parameters of the others.
    """

    row: int | None = None


class _Here(Executor):
    """Run a batch where it is submitted: the sweep without workers."""

    _max_workers = 1

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


@contextmanager
def _shown(progress: Any, total: int) -> Iterator[Callable[[int, int], Any]]:
    """Give a callback of done and total."""
    if progress is None or progress is False:
        yield lambda done, total: None
    elif progress is True:
        try:
            from tqdm.auto import tqdm
        except ImportError as problem:
            raise ImportError("progress=True needs tqdm: pip install 'shufflebounds[progress]'") from problem
        with tqdm(total=total, unit="row") as bar:
            yield lambda done, total: bar.update(done - bar.n)
    elif callable(progress):
        yield progress
    else:
        raise ValueError(f"progress={progress!r} must be None, True, or a function of done and total")


def sweep(
    function: Callable[..., Any],
    grid: Mapping[str, Any] | Sequence[Mapping[str, Any]] | Array | Any,
    *,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: bool | Callable[[int, int], Any] | None = None,
    arrays: bool = False,
) -> Array:
    r"""Call a function on every row of a grid of parameters and return one structured array.

    Parameters
    ----------
    function : callable
        Called as ``function(**row)`` with plain Python values. It returns a number, a tuple or named tuple of numbers, or a
        mapping of names to numbers, the same fields in every row. For an executor in other processes it must be picklable:
        a function of a module, or ``functools.partial`` of one.
    grid : mapping, structured array, DataFrame or sequence of mappings
        A mapping of names to 1-D sequences stands for all their combinations, the last name running fastest (the result
        can be reshaped to the sequences' lengths). A structured (or record) array, a pandas DataFrame, or a sequence of
        mappings with the same names, gives the rows themselves.
    workers : int, optional
        Run in this many threads of the process, 1 or more. The kernels release the interpreter lock; Python code does not.
    executor : concurrent.futures.Executor, optional
        Run there instead: ``ProcessPoolExecutor``, ``loky``, ``client.get_executor(pure=False)`` of dask.distributed,
        ``MPIPoolExecutor``. It is left open. Without `workers` and `executor` the rows run one after the other, here.
    progress : None, True or callable
        True shows a bar (tqdm, extra ``progress``); a callable is given the number of finished rows and of all rows, in the
        calling thread, after each batch.
    arrays : bool
        True for a function of arrays, such as :func:`shufflebounds.shuffle.clones_epsilon`: it is called on a whole batch, as
        ``function(**columns)`` with 1-D arrays, and returns an array of that length, or a tuple or mapping of such arrays. A
        failure is then that of a batch, named by its first row.

    Returns
    -------
    ndarray, structured, shape (rows,)
        In the order of the grid: a field for every parameter, then those of the result, ``value`` for a number, ``value0``,
        ``value1``, ... for a tuple, the names of a named tuple or mapping otherwise.

    Raises
    ------
    ValueError
        If the grid is empty or no grid, both `workers` and `executor` are given, either is none, or a field of the result
        bears the name of a parameter.
    SweepError
        If a row failed (the message names the row and its parameters), the result of a row is no number, `progress` raised,
        or the executor lost a batch. What was finished stands in its ``partial``, the rest in its ``remaining``.
    SweepInterrupted
        On a keyboard interrupt, or one raised by `function` or `progress`: a ``KeyboardInterrupt`` with the same attributes.

    Notes
    -----
    Rows travel in batches that are measured and grown until one lasts 0.2 s, at most 2\ :sup:`18` rows, and only a few a worker are
    under way at a time, so the memory taken is little more than the result's. After an interrupt or a failure, batches
    that have not begun are cancelled and those that run are given two seconds to end; threads stop at their next row and
    keep the rows before it.

    Examples
    --------
    >>> from shufflebounds import shuffle, sweep
    >>> def budget(users, local_eps):
    ...     return {"eps": shuffle.Clones(users, local_eps).epsilon(1e-8)}
    >>> table = sweep(budget, {"users": [10**4, 10**6], "local_eps": [1.0, 4.0]}, workers=2)
    >>> table.dtype.names
    ('users', 'local_eps', 'eps')
    >>> table["eps"].reshape(2, 2).round(4).tolist()
    [[0.0689, 0.7546], [0.0061, 0.0642]]

    The same numbers by the array function, some 30,000 rows a second and thread:

    >>> from functools import partial
    >>> budgets = partial(shuffle.clones_epsilon, delta=1e-8, stronger=False)
    >>> grid = {"users": [10**4, 10**6], "local_eps": [1.0, 4.0]}
    >>> table = sweep(budgets, grid, workers=2, arrays=True)
    >>> table["value"].reshape(2, 2).round(4).tolist()
    [[0.0689, 0.7546], [0.0061, 0.0642]]
    """
    if not isinstance(arrays, bool):
        raise ValueError(f"arrays={arrays!r} must be True or False")
    if not callable(function):
        raise ValueError(f"function={function!r} must be callable")
    if workers is not None and executor is not None:
        raise ValueError(f"workers={workers!r} and executor={executor!r} exclude each other: give one of them")
    checked = checked_grid(grid)
    if executor is not None:
        if not isinstance(executor, Executor):
            raise ValueError(f"executor={executor!r} must be a concurrent.futures.Executor")
        with _shown(progress, checked.rows) as show:
            return _Sweep(function, arrays, checked, executor, show).run()
    if workers is None:
        with _shown(progress, checked.rows) as show:
            return _Sweep(function, arrays, checked, _Here(), show).run()
    pool = ThreadPoolExecutor(_validate.integer("workers", workers, 1, 2**15))
    try:
        with _shown(progress, checked.rows) as show:
            return _Sweep(function, arrays, checked, pool, show, threading.Event()).run()
    finally:
        # after an interrupt a thread may sit in a long row, which cannot be ended from outside
        pool.shutdown(wait=False, cancel_futures=True)


@dataclass
class _Sweep:
    """A sweep under way: what is asked of whom, the batches that are out, and how long the next ones shall be."""

    function: Callable[..., Any]
    arrays: bool
    grid: Grid
    executor: Executor
    show: Callable[[int, int], Any]
    stop: threading.Event | None = None
    begun: int = 0
    finished: int = 0
    size: int = 1
    least: int = 1
    measured: bool = False

    def __post_init__(self) -> None:
        self.results = Results(self.grid)
        self.pending: dict[Future[Reply], int] = {}

    def run(self) -> Array:
        """Keep the executor busy until all rows are in, or one fails."""
        error: SweepError | SweepInterrupted | None = None
        results = self.results
        try:
            error = self._keep_busy()
        except KeyboardInterrupt as problem:
            error = SweepInterrupted("the sweep was interrupted")
            error.__cause__ = problem
        except ValueError:
            for future in self.pending:
                future.cancel()
            raise
        if error is None:
            return results.rows(results.done)
        if self.stop is not None:
            self.stop.set()
        try:
            _drain(self.pending, results)
        except KeyboardInterrupt as problem:
            # asked twice: what is in is kept, the rest is not waited for
            error.__cause__ = error.__cause__ or problem
        error._keep(results.rows(results.done), results.done, results.rows(~results.done, answers=False))
        raise error

    def _keep_busy(self) -> SweepError | SweepInterrupted | None:
        """Return what ended the sweep, None where all rows are in."""
        while self.begun < self.grid.rows or self.pending:
            if (error := self._submit()) is not None:
                return error
            for future in wait(self.pending, return_when=FIRST_COMPLETED).done:
                if (ended := self._take(future)) is not None:
                    return ended
            try:
                self.show(self.finished, self.grid.rows)
            except Exception as problem:
                return _failed(f"progress raised {type(problem).__name__}: {problem}", problem)
        return None

    def _submit(self) -> SweepError | None:
        """Give every worker something to do."""
        workers = getattr(self.executor, "_max_workers", None) or _UNKNOWN_WORKERS
        # two batches a worker, so that none waits for us; one while their size is still unknown
        limit = workers if not self.measured or isinstance(self.executor, _Here) else 2 * workers
        names, total = tuple(self.grid.columns), self.grid.rows
        while self.begun < total and len(self.pending) < limit:
            rows = _batch_rows(self.size, self.least, total - self.begun, limit) if self.measured else self.size
            columns = self.grid.take(np.arange(self.begun, min(self.begun + rows, total)))
            try:
                future = self.executor.submit(run_batch, self.function, names, columns, os.getpid(), self.stop, self.arrays)
            except RuntimeError as problem:
                return _failed(f"the executor takes no work: {problem}", problem)
            self.pending[future] = self.begun
            self.begun += columns[0].size
        return None

    def _take(self, future: Future[Reply]) -> SweepError | SweepInterrupted | None:
        """Keep the answers of a batch, and size the next ones by the time it took."""
        start = self.pending[future]
        try:
            reply = future.result()
        except (Exception, CancelledError) as problem:
            text = f"the executor lost the batch from row {start} on: {type(problem).__name__}: {problem}"
            return _failed(text + " (functions for other processes must be picklable)", problem)
        try:
            self.results.add(start, reply)
        except TypeError as problem:
            return _failed(f"rows {start} to {start + reply.rows - 1}: {problem}", problem)
        del self.pending[future]
        self.finished += reply.rows
        if reply.failure is not None:
            row = start + reply.rows
            return _failed(f"row {row} ({spelled(self.grid, row)}): {type(reply.failure).__name__}: {reply.failure}",
                           reply.failure, row)
        if reply.interrupted:
            return SweepInterrupted("the sweep was interrupted in a row")
        self.measured = self.measured or reply.seconds > _BATCH_SECONDS / 4
        wanted = reply.rows * _BATCH_SECONDS / max(reply.seconds, 1e-6)
        self.size = int(max(1, min(wanted, self.size * _GROWTH, _MAX_ROWS)))
        self.least = int(max(1, wanted * _LEAST_SECONDS / _BATCH_SECONDS))
        return None


def _batch_rows(size: int, least: int, left: int, places: int) -> int:
    """Return the rows of the next batch: `size` of them, near the end an equal share of what is left, not below `least`."""
    return min(size, max(least, -(-left // places)))


def _failed(text: str, cause: BaseException, row: int | None = None) -> SweepError:
    error = SweepError(text)
    error.row, error.__cause__ = row, cause
    return error


def _drain(pending: dict[Future[Reply], int], results: Results) -> None:
    """Cancel what has not begun, and wait a little for what has."""
    # some executors (dask) never call a batch running, only done: there, all of the few that are under way are waited for
    if any(future.running() for future in pending):
        for future in pending:
            future.cancel()
    for future in wait(pending, timeout=_GRACE_SECONDS).done:
        # what ends badly now is beside the point: the sweep has failed already
        with suppress(Exception, CancelledError):
            results.add(pending[future], future.result())
    for future in pending:
        future.cancel()
