"""Runs one function over a grid of parameters, in threads or on any executor, and returns a structured array.

A run can be interrupted without losing its finished rows.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shufflebounds._base import threads as _threads
from shufflebounds.sweeps.batch import Array, Reply, run_batch
from shufflebounds.sweeps.parameter_grid import Grid, Results, checked_grid, spelled

__all__ = ["SweepError", "SweepInterrupted", "sweep"]

_BATCH_SECONDS = 0.2
"""Target duration of a batch in seconds. Raised: interrupts take longer. Lowered below 0.1: the 11 ms of a round trip on a cluster
are a large part of the run time."""


class _Stopped:
    """The rows of a sweep that ended early: finished and remaining ones."""

    partial: Array
    done: NDArray[np.bool_]
    remaining: Array


class SweepInterrupted(_Stopped, KeyboardInterrupt):
    """A sweep that was interrupted, with all results that were finished.

    Attributes
    ----------
    partial : ndarray, structured, shape (finished rows,)
        The finished rows, in the order of the grid. If no row was finished, the fields of the result are missing.
    done : ndarray of bool, shape (rows,)
        Mask of the finished rows in the grid.
    remaining : ndarray, structured, shape (unfinished rows,)
        The parameters of the unfinished rows: a grid with which :func:`sweep` can continue.
    """


class SweepError(_Stopped, RuntimeError):
    """A sweep that failed in one row, in the progress callback or in the executor; ``__cause__`` is the first failure.

    Attributes
    ----------
    row : int or None
        The row of the grid that failed, None if the failure was not in a row.
    partial, done, remaining : ndarray
        As for :class:`SweepInterrupted`.
    """

    row: int | None = None


class _Here(Executor):
    """An executor that runs a batch when it is submitted, for a sweep without workers."""

    _max_workers = 1

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


@contextmanager
def _shown(progress: Any, total: int) -> Iterator[Callable[[int, int], Any]]:
    """Yield a callback that is called with the numbers of finished rows and of all rows."""
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
        raise ValueError(f"progress={progress!r} must be None, True, or a function of (finished, total)")


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
        mapping of names to numbers, with the same fields in every row. For an executor in other processes the function must be
        picklable: a function of a module, or ``functools.partial`` of one.
    grid : mapping, structured array, DataFrame or sequence of mappings
        A mapping of names to 1-D sequences stands for all combinations of their values. The last name varies fastest, so the result
        can be reshaped to the lengths of the sequences. A structured (or record) array, a pandas DataFrame, or a sequence of
        mappings with the same names has the rows themselves.
    workers : int, optional
        Number of threads in this process, 1 or more. The kernels release the interpreter lock, so they run in parallel; Python code
        does not.
    executor : concurrent.futures.Executor, optional
        Executor to use instead of threads: ``ProcessPoolExecutor``, ``loky``, ``client.get_executor(pure=False)`` of
        dask.distributed, ``MPIPoolExecutor``. It is not shut down. Without `workers` and `executor` the rows run one by one in this
        thread.
    progress : None, True or callable
        True shows a progress bar (tqdm, extra ``progress``). A callable is called with the number of finished rows and of all rows,
        in the calling thread, after each batch.
    arrays : bool
        True for a function of arrays, such as :func:`shufflebounds.shuffle.clones_epsilons`. It is called on a whole batch, as
        ``function(**columns)`` with 1-D arrays, and returns an array of that length, or a tuple or mapping of such arrays. A
        failure then concerns a whole batch; SweepError names the first row of the batch.

    Returns
    -------
    ndarray, structured, shape (rows,)
        Rows in the order of the grid. They have a field for every parameter, then the fields of the result: ``value`` for a number,
        ``value0``, ``value1``, ... for a tuple, otherwise the names of the named tuple or mapping.

    Raises
    ------
    ValueError
        If the grid is empty or malformed, both `workers` and `executor` are given, either is invalid, or a field of the result
        has the name of a parameter.
    SweepError
        If a row failed (the message states the row and its parameters), the result of a row is not a number, `progress` raised,
        or the executor lost a batch. The finished rows are in the attribute ``partial``, the parameters of the other rows in
        ``remaining``.
    SweepInterrupted
        On a keyboard interrupt, also if `function` or `progress` raises it. SweepInterrupted is a ``KeyboardInterrupt`` with the
        attributes of SweepError.

    Notes
    -----
    Rows are sent in batches, which grow until one lasts 0.2 s or has 2\ :sup:`18` rows. After an interrupt or a failure, batches
    that have not started are cancelled, and running batches have two seconds to end. Threads stop before their next row; the rows
    that they have finished are kept.

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

    The array function :func:`~shufflebounds.shuffle.clones_epsilons` returns the same numbers, at about 100,000 rows per second and
    thread:

    >>> from functools import partial
    >>> budgets = partial(shuffle.clones_epsilons, delta=1e-8, stronger=False)
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
        raise ValueError(f"workers={workers!r} and executor={executor!r} exclude each other: pass one of them")
    checked = checked_grid(grid)
    if executor is not None and not isinstance(executor, Executor):
        raise ValueError(f"executor={executor!r} must be a concurrent.futures.Executor")
    pool = None if workers is None else ThreadPoolExecutor(_threads.checked(workers, "workers"))
    if executor is None:
        executor = _Here() if pool is None else pool
    try:
        with _shown(progress, checked.rows) as show:
            stop = None if pool is None else threading.Event()
            job = partial(run_batch, function, tuple(checked.columns), home=os.getpid(), stop=stop, arrays=arrays)
            return _Sweep(job, checked, executor, show, stop).run()
    finally:
        if pool is not None:
            # After an interrupt, a thread may still run a row that takes long, and cannot be ended from outside. So the pool is not
            # awaited.
            pool.shutdown(wait=False, cancel_futures=True)


@dataclass
class _BatchSize:
    """The numbers of rows of the next batches, which are chosen by the durations of finished batches."""

    size: int = 1
    fewest: int = 1
    measured: bool = False

    def rows(self, left: int, places: int) -> int:
        """Return the number of rows of the next batch.

        Near the end the number is an equal share of the `left` remaining rows, but at least `fewest`.
        """
        return min(self.size, max(self.fewest, -(-left // places))) if self.measured else self.size

    def learn(self, reply: Reply) -> None:
        """Choose the size of the next batches, given the duration of a finished batch."""
        self.measured = self.measured or reply.seconds > _BATCH_SECONDS / 4
        wanted = reply.rows * _BATCH_SECONDS / max(reply.seconds, 1e-6)
        # The size grows at most 16-fold at a time, because the duration of the first rows varies and may include an import. 2**18
        # rows limit the memory that a worker needs.
        self.size = int(max(1, min(wanted, self.size * 16, 2**18)))
        # Near the end the remaining rows are divided evenly among the workers, into batches of at least a tenth of the target
        # duration, so that no worker is left alone with a long batch.
        self.fewest = int(max(1, wanted / 10))


class _Sweep:
    """A running sweep: the function that runs a batch, the executor, the pending batches, and the size of the next batches."""

    def __init__(self, job: Callable[..., Reply], grid: Grid, executor: Executor, show: Callable[[int, int], Any],
                 stop: threading.Event | None) -> None:
        self.job, self.grid, self.executor, self.show, self.stop = job, grid, executor, show, stop
        self.begun = self.finished = 0
        self.batch, self.results = _BatchSize(), Results(grid)
        self.pending: dict[Future[Reply], int] = {}
        self.ended = threading.Event()

    def run(self) -> Array:
        """Run all rows and return the result; raise the error that ended the sweep early."""
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
            self._drain()
        except KeyboardInterrupt as problem:
            # If the user interrupts a second time, the results so far are kept and the remaining batches are not awaited.
            error.__cause__ = error.__cause__ or problem
        error.partial, error.done = results.rows(results.done), results.done
        error.remaining = results.rows(~results.done, answers=False)
        raise error

    def _keep_busy(self) -> SweepError | SweepInterrupted | None:
        """Submit batches and store their results; return the error that ended the sweep, or None if all rows are finished."""
        while self.begun < self.grid.rows or self.pending:
            if (error := self._submit()) is not None:
                return error
            for future in self._done(math.inf):
                if (ended := self._take(future)) is not None:
                    return ended
            try:
                self.show(self.finished, self.grid.rows)
            except Exception as problem:
                return _failed(f"progress raised {type(problem).__name__}: {problem}", problem)
        return None

    def _submit(self) -> SweepError | None:
        """Submit batches until every worker has enough of them; return an error if the executor refuses a batch."""
        workers = _workers(self.executor)
        # Two batches per worker are pending, so that no worker waits for this thread. As long as the batch size has not been
        # measured, one batch per worker is pending.
        limit = workers if not self.batch.measured or isinstance(self.executor, _Here) else 2 * workers
        total = self.grid.rows
        while self.begun < total and len(self.pending) < limit:
            rows = self.batch.rows(total - self.begun, limit)
            columns = self.grid.take(np.arange(self.begun, min(self.begun + rows, total)))
            try:
                future = self.executor.submit(self.job, columns)
            except Exception as problem:
                return _failed(f"the executor accepts no work: {type(problem).__name__}: {problem}", problem)
            self.pending[future] = self.begun
            future.add_done_callback(lambda _: self.ended.set())
            self.begun += columns[0].size
        return None

    def _done(self, deadline: float) -> list[Future[Reply]]:
        """Wait until a pending batch is done, at most until `deadline` (a time.monotonic); return the batches that are done.

        `concurrent.futures.wait` does not return for a batch that an executor cancels when it is shut down: the pools of Python
        cancel such a batch without notifying those who wait.
        """
        while True:
            self.ended.clear()
            done = [future for future in self.pending if future.done()]
            left = deadline - time.monotonic()
            if done or left <= 0:
                return done
            self.ended.wait(None if left == math.inf else left)

    def _drain(self) -> None:
        """Cancel batches that have not started. Wait for running batches up to ten times the target duration of a batch."""
        # Some executors, such as dask, report a batch as done but never as running. All of their few pending batches are awaited.
        if any(future.running() for future in self.pending):
            for future in self.pending:
                future.cancel()
        deadline = time.monotonic() + 10 * _BATCH_SECONDS
        while self.pending and (done := self._done(deadline)):
            for future in done:
                start = self.pending.pop(future)
                # The sweep has failed already, so further failures are ignored.
                with suppress(Exception, CancelledError):
                    self.results.add(start, future.result())
        for future in self.pending:
            future.cancel()

    def _take(self, future: Future[Reply]) -> SweepError | SweepInterrupted | None:
        """Store the results of a batch, and choose the size of the next batches from its duration."""
        start = self.pending.pop(future)
        try:
            reply = future.result()
        except (Exception, CancelledError) as problem:
            text = f"the executor lost the batch from row {start} on: {type(problem).__name__}: {problem}"
            return _failed(text + " (functions for other processes must be picklable)", problem)
        try:
            self.results.add(start, reply)
        except TypeError as problem:
            return _failed(f"rows {start} to {start + reply.rows - 1}: {problem}", problem)
        self.finished += reply.rows
        if reply.failure is not None:
            row = start + reply.rows
            return _failed(f"row {row} ({spelled(self.grid, row)}): {type(reply.failure).__name__}: {reply.failure}",
                           reply.failure, row)
        if reply.interrupted:
            return SweepInterrupted("the sweep was interrupted in a row")
        self.batch.learn(reply)
        return None


def _workers(executor: Executor) -> int:
    """Return the number of batches that the executor runs at the same time, or 32 if it does not give a number.

    The executor of a dask client states the number of threads of each worker, which may change. The result is also the number of
    batches of a single row that are sent first. With a default above 32, batches would grow later; with a smaller one, workers
    would be idle.
    """
    workers = getattr(executor, "_max_workers", None)
    threads = getattr(getattr(executor, "_client", None), "nthreads", None)
    if workers is None and callable(threads):
        workers = sum(threads().values())
    return workers or 32


def _failed(text: str, cause: BaseException, row: int | None = None) -> SweepError:
    error = SweepError(text)
    error.row, error.__cause__ = row, cause
    return error
