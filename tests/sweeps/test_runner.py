"""Sweeps: every executor gives the same table, errors name the failing row, and an interrupt keeps all finished rows."""

import itertools
import math
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections import namedtuple
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shufflebounds import SweepError, SweepInterrupted, shuffle, sweep
from shufflebounds.sweeps import runner

Pair = namedtuple("Pair", "total product")


# These functions are at module level, so that other processes can import them.
def clone_eps(users, local_eps):
    return shuffle.Clones(users, local_eps).epsilon(1e-6)


def pair(a, b):
    return Pair(a + b, a * b)


def mapping(a):
    return {"half": a / 2, "even": a % 2 == 0}


def total(a, b):
    return a + b


def fails_at_seven(a):
    if a == 7:
        raise ZeroDivisionError("seven")
    return a


def quits_at_seven(a):
    if a == 7:
        raise KeyboardInterrupt
    return a


def kills_its_process(a):
    if a == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    return a


def refuses_pickling(a):
    class Local(Exception):
        pass

    raise Local("cannot travel")


@pytest.fixture(scope="module")
def processes():
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


def test_threads_and_processes_give_the_serial_table(processes):
    grid = {"users": [100, 10**4, 10**6], "local_eps": [0.5, 1.0, 3.0]}
    serial = sweep(clone_eps, grid)
    assert serial.dtype.names == ("users", "local_eps", "value")
    assert serial["users"].dtype.kind == "i"
    expected = [shuffle.Clones(n, e).epsilon(1e-6) for n, e in itertools.product(*grid.values())]
    assert serial["value"].tolist() == expected
    assert list(zip(serial["users"].tolist(), serial["local_eps"].tolist())) == list(itertools.product(*grid.values()))
    for options in ({"workers": 1}, {"workers": 3}, {"executor": processes}):
        assert sweep(clone_eps, grid, **options).tobytes() == serial.tobytes()


@pytest.mark.slow
def test_dask_cluster():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        executor = client.get_executor(pure=False)
        grid = {"a": range(30), "b": range(40)}
        table = sweep(total, grid, executor=executor)
        assert table["value"].tolist() == [a + b for a, b in itertools.product(range(30), range(40))]
        with pytest.raises(SweepError, match=r"row 7 \(a=7\): ZeroDivisionError: seven") as failure:
            sweep(fails_at_seven, {"a": range(20)}, executor=executor)
        # On a busy machine the other batches may not finish within the waiting time; their rows are then among the remaining ones.
        partial, remaining = (table["a"].tolist() for table in (failure.value.partial, failure.value.remaining))
        assert sorted(partial + remaining) == list(range(20))
        assert 7 in remaining
        assert failure.value.partial["value"].tolist() == partial


@pytest.mark.parametrize("options", [{}, {"workers": 2}])
def test_fields_of_the_result(options):
    assert sweep(pair, {"a": [1, 2], "b": [3, 4]}, **options).dtype.names == ("a", "b", "total", "product")
    table = sweep(mapping, {"a": [1, 2, 3]}, **options)
    assert table["half"].tolist() == [0.5, 1.0, 1.5]
    assert table["even"].tolist() == [False, True, False]
    assert table["even"].dtype == np.bool_
    assert sweep(lambda a: (a, -a), {"a": [1]}, **options).dtype.names == ("a", "value0", "value1")


def test_mappings_may_name_the_fields_in_any_sequence():
    # Row 0 is a batch of its own, so that the second batch starts with the other sequence.
    table = sweep(lambda a: {"half": a / 2, "more": a + 1} if a % 2 == 0 else {"more": a + 1, "half": a / 2}, {"a": range(9)})
    assert table.dtype.names == ("a", "half", "more")
    assert table["half"].tolist() == [a / 2 for a in range(9)]
    assert table["more"].tolist() == [a + 1 for a in range(9)]


def test_numbers_of_several_types_are_converted_to_one():
    table = sweep(lambda a: a if a < 5 else math.inf, {"a": range(3000)})
    assert table["value"].dtype == np.float64
    assert table["value"][4] == 4
    assert np.isinf(table["value"][5:]).all()
    assert sweep(lambda a: 2**70, {"a": [1]})["value"][0] == 2.0**70


def test_rows_given_one_by_one():
    rows = [{"a": 1, "b": 2.0}, {"b": 5.0, "a": 3}]
    table = sweep(total, rows)
    assert table["a"].tolist() == [1, 3]
    assert table["value"].tolist() == [3.0, 8.0]
    array = np.array([(1, 2.0), (3, 5.0)], dtype=[("a", int), ("b", float)])
    assert sweep(total, array).tolist() == table.tolist()
    assert sweep(total, array.view(np.recarray)).tolist() == table.tolist()


def test_strings_and_numbers_in_one_column_keep_their_types():
    seen = []
    table = sweep(lambda ones: seen.append(ones) or 0.0, {"ones": ["worst", 0, 5]})
    assert seen == ["worst", 0, 5]
    assert table["ones"].tolist() == ["worst", 0, 5]
    sweep(lambda a: seen.append(type(a)) or 0, {"a": np.arange(1)})
    assert seen[-1] is int


@pytest.mark.parametrize("large", [2**53 + 1, np.int64(2**53 + 1), -(2**63), 2**64 + 1])
@pytest.mark.parametrize("other", [0.25, -1, math.inf])
def test_an_integer_is_not_rounded_beside_other_numbers(large, other):
    seen = []
    table = sweep(lambda a: seen.append(a) or 0.0, {"a": [large, other]})
    assert seen == [int(large), other]
    assert table["a"].tolist() == seen


@settings(max_examples=25)
@given(
    st.lists(st.integers(-(2**60), 2**60), min_size=1, max_size=30),
    st.lists(st.floats(allow_nan=False), min_size=1, max_size=30),
    st.sampled_from([None, 1, 3]),
)
def test_every_combination_once_in_order(first, second, workers):
    seen = []
    table = sweep(lambda a, b: (seen.append((a, b)), len(str(a)))[1], {"a": first, "b": second}, workers=workers)
    expected = list(itertools.product(first, second))
    assert sorted(seen) == sorted(expected)
    assert list(zip(table["a"].tolist(), table["b"].tolist())) == expected
    assert table["value"].tolist() == [len(str(a)) for a, _ in expected]


class Counting(Executor):
    """An executor that runs each batch immediately, and records its length and the number of batches not yet collected."""

    def __init__(self):
        self.batches = []

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        reply = fn(*args, **kwargs)
        self.batches.append((args[0][0].size, reply.seconds))
        future.set_result(reply)
        return future


@pytest.mark.slow
def test_batches_grow_to_a_tenth_of_a_second():
    def slow(a):
        end = time.perf_counter() + 0.002
        while time.perf_counter() < end:
            pass
        return a

    executor = Counting()
    table = sweep(slow, {"a": range(300)}, executor=executor)
    assert table["value"].tolist() == list(range(300))
    sizes = [size for size, _ in executor.batches]
    assert sizes[0] == 1
    # At most 100 rows of 2 ms take 0.2 s, and batches have more than one row.
    assert max(sizes) <= 100
    assert sum(sizes) == 300
    assert max(sizes) > 1


@pytest.mark.parametrize(("threads", "single"), [({"a": 1, "b": 2}, 3), ({}, 32)])
def test_batches_on_a_cluster_grow_after_one_row_per_thread(threads, single):
    class Client:
        def nthreads(self):
            return threads

    executor = Counting()
    # The attribute is that of the executor of a dask client.
    executor._client = Client()
    table = sweep(total, {"a": range(500), "b": [1]}, executor=executor)
    assert table["value"].tolist() == list(range(1, 501))
    sizes = [size for size, _ in executor.batches]
    assert sizes[:single] == [1] * single
    assert sizes[single] > 1


@pytest.mark.parametrize("rows", [1, 100, 5000])
def test_last_batches_are_shared_between_workers(rows):
    left, sizes, batch = rows, [], runner._BatchSize(1000, 20, measured=True)
    while left:
        sizes.append(min(batch.rows(left, 4), left))
        left -= sizes[-1]
    assert sum(sizes) == rows
    assert sizes == sorted(sizes, reverse=True)
    # The last batches are short, and only the very last may have a few rows.
    assert sizes[-1] <= 20
    assert all(size >= 20 for size in sizes[:-1])


class Late(Executor):
    """An executor that runs batches immediately, except for the third one, which starts when `running` is called.

    Like dask, it reports False for a batch that is not running.
    """

    _max_workers = 3

    def __init__(self):
        self.begun, self.threads = 0, []

    def submit(self, fn, /, *args, **kwargs):
        self.begun += 1
        future, asked = Future(), threading.Event()

        def run():
            asked.wait()
            if not future.cancelled():
                future.set_result(fn(*args, **kwargs))

        if self.begun == 3:
            future.running = lambda: asked.set() or False
            self.threads.append(threading.Thread(target=run))
            self.threads[0].start()
        else:
            asked.set()
            run()
        return future


def test_pending_batches_are_kept_if_the_executor_reports_none_running():
    def row(a):
        return 1 / a

    executor = Late()
    with pytest.raises(SweepError, match="row 0") as failure:
        sweep(row, {"a": [0, 1, 2]}, executor=executor)
    executor.threads[0].join()
    assert failure.value.partial["a"].tolist() == [1, 2]
    assert failure.value.remaining["a"].tolist() == [0]


def test_a_failing_row_is_named_and_the_others_are_kept(processes):
    for options in ({}, {"workers": 2}, {"executor": processes}):
        with pytest.raises(SweepError, match=r"^row 7 \(a=7\): ZeroDivisionError: seven$") as failure:
            sweep(fails_at_seven, {"a": range(5000)}, **options)
        error = failure.value
        assert isinstance(error.__cause__, ZeroDivisionError)
        assert error.row == 7
        assert not error.done[7]
        assert error.partial["value"].tolist() == np.flatnonzero(error.done).tolist()
        assert error.partial["value"].tolist()[:7] == list(range(7))
        assert error.remaining["a"].tolist() == np.flatnonzero(~error.done).tolist()
    assert any("fails_at_seven" in note for note in error.__cause__.__notes__)
    with pytest.raises(SweepError, match="cannot travel"):
        sweep(refuses_pickling, {"a": [1, 2]}, executor=processes)


@pytest.mark.parametrize("options", [{}, {"workers": 2}])
def test_an_interrupt_in_a_row_keeps_results_and_can_be_continued(options):
    with pytest.raises(KeyboardInterrupt) as stop:
        sweep(quits_at_seven, {"a": range(1000)}, **options)
    error = stop.value
    assert isinstance(error, SweepInterrupted)
    assert error.done[:7].all()
    assert not error.done[7]
    assert error.partial.dtype.names == ("a", "value")
    rest = sweep(lambda a: a, error.remaining)
    both = np.concatenate([error.partial, rest])
    assert sorted(both["value"].tolist()) == list(range(1000))


def test_an_interrupt_before_the_first_answer_keeps_the_parameters():
    def quit_now(a):
        raise KeyboardInterrupt

    with pytest.raises(SweepInterrupted) as stop:
        sweep(quit_now, {"a": [1, 2]})
    assert stop.value.partial.dtype.names == ("a",)
    assert stop.value.partial.size == 0
    assert stop.value.remaining["a"].tolist() == [1, 2]


@pytest.fixture
def interruptible():
    """Restore the default handler of SIGINT, which a process started in the background does not have."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_a_signal_stops_threads_at_their_next_row():
    reached = threading.Event()

    def row(a):
        if a == 50:
            reached.set()
            # The main thread receives Ctrl-C while it waits for batches.
            os.kill(os.getpid(), signal.SIGINT)
        return a

    with pytest.raises(SweepInterrupted) as stop:
        sweep(row, {"a": range(10**6)}, workers=2)
    error = stop.value
    assert reached.is_set()
    assert error.partial["value"].tolist() == np.flatnonzero(error.done).tolist()
    assert 0 < error.partial.size < 10**6
    assert error.partial.size + error.remaining.size == 10**6


def test_progress():
    calls = []
    sweep(total, {"a": range(20), "b": range(20)}, progress=lambda done, of: calls.append((done, of)))
    assert calls == sorted(calls)
    assert calls[-1] == (400, 400)

    def stops(done, of):
        if done >= 10:
            raise KeyboardInterrupt

    with pytest.raises(SweepInterrupted) as stop:
        sweep(total, {"a": range(2000), "b": range(20)}, progress=stops)
    assert 10 <= stop.value.partial.size < 40000

    def breaks(done, of):
        raise LookupError("no such bar")

    with pytest.raises(SweepError, match="progress raised LookupError: no such bar") as failure:
        sweep(total, {"a": range(20), "b": range(20)}, progress=breaks)
    assert failure.value.row is None
    assert failure.value.partial.size >= 1


def test_bar(capsys):
    sweep(total, {"a": range(20), "b": range(20)}, progress=True)
    assert "400/400" in capsys.readouterr().err


@pytest.mark.slow
def test_a_dead_worker_loses_its_batch_only():
    with (
        ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool,
        pytest.raises(SweepError, match="lost the batch from row") as failure,
    ):
        sweep(kills_its_process, {"a": range(100)}, executor=pool)
    assert failure.value.partial["a"].tolist() == failure.value.partial["value"].tolist()


def test_a_closed_executor_is_reported():
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(SweepError, match="accepts no work"):
        sweep(total, {"a": [1], "b": [2]}, executor=pool)


class Ends(Executor):
    """An executor that runs two batches immediately; then it cancels the next batch or raises an error."""

    _max_workers = 1

    def __init__(self, error=None):
        self.error, self.begun = error, 0

    def submit(self, fn, /, *args, **kwargs):
        self.begun += 1
        future = Future()
        if self.begun <= 2:
            future.set_result(fn(*args, **kwargs))
        elif self.error is not None:
            raise self.error
        else:
            # As in ``shutdown(cancel_futures=True)``: those who wait for the future by `concurrent.futures.wait` are not notified.
            future.cancel()
        return future


@pytest.mark.parametrize(("error", "word"), [(None, "CancelledError"),
                                             (OSError("no fork"), "accepts no work: OSError: no fork"),
                                             (ValueError("closed"), "accepts no work: ValueError: closed")])
def test_an_executor_that_ends_keeps_the_finished_rows(error, word):
    caught = []

    def run():
        try:
            sweep(lambda a: a, {"a": range(100)}, executor=Ends(error))
        except Exception as problem:
            caught.append(problem)

    # In a thread of its own, so that a sweep that never ends fails the test.
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(5)
    assert isinstance(caught[0], SweepError)
    assert word in str(caught[0])
    rows = caught[0].done.sum()
    assert rows >= 2
    assert caught[0].partial["a"].tolist() == list(range(rows))
    assert caught[0].remaining["a"].tolist() == list(range(rows, 100))
    assert caught[0].__cause__ is error or error is None


def test_results_that_are_not_numbers_are_named():
    for bad in (None, "1", [1, 2], (1, "a"), {"x": None}, {}, (), 1j, {1: 2.0}):
        with pytest.raises(SweepError, match=r"row 0 .*must return a number"):
            sweep(lambda a, bad=bad: bad, {"a": [1, 2]})
    with pytest.raises(SweepError, match=r"row 1 \(a=2\)") as failure:
        sweep(lambda a: 1.0 if a == 1 else "two", np.array([(1,), (2,)], dtype=[("a", int)]))
    assert failure.value.partial["value"].tolist() == [1.0]
    with pytest.raises(SweepError, match="fields"):
        sweep(lambda a: {"x": 1.0} if a < 40 else {"y": 1.0}, {"a": range(100)})


@pytest.mark.parametrize(
    ("grid", "word"),
    [
        ({}, "at least one parameter"),
        ({"a": []}, r"grid\['a'\] must not be empty"),
        ({"a": 3}, r"grid\['a'\]=3 must be a sequence"),
        ({"a": "abc"}, "must be a sequence"),
        ({"a": np.ones((2, 2))}, r"shape \(2, 2\)"),
        ({1: [2]}, "the name 1"),
        ([], "must be a mapping"),
        ([1, 2], "must be a mapping"),
        ([{"a": 1}, {"b": 1}], r"grid\[1\]"),
        ([{}], "at least one parameter"),
        (np.zeros(3), "must be a mapping"),
        (np.zeros((2, 2), dtype=[("a", float)]), r"shape \(2, 2\)"),
        (np.zeros(0, dtype=[("a", float)]), r"shape \(0,\)"),
        ("ab", "must be a mapping"),
    ],
)
def test_bad_grids(grid, word):
    with pytest.raises(ValueError, match=word):
        sweep(total, grid)


def test_bad_arguments():
    good = {"a": [1], "b": [2]}
    with pytest.raises(ValueError, match="exclude each other"), ThreadPoolExecutor(1) as pool:
        sweep(total, good, workers=1, executor=pool)
    for workers in (0, -1, 1.5, "two"):
        with pytest.raises(ValueError, match="workers"):
            sweep(total, good, workers=workers)
    with pytest.raises(ValueError, match="executor"):
        sweep(total, good, executor=2)
    with pytest.raises(ValueError, match="progress"):
        sweep(total, good, progress=3)
    with pytest.raises(ValueError, match="function"):
        sweep(3, good)
    with pytest.raises(ValueError, match="'a', which is a parameter"):
        sweep(lambda a, b: {"a": 1.0}, good)


@pytest.mark.parametrize("options", [{}, {"workers": 2}])
def test_arrays_give_the_results_of_rows(options):
    grid = {"users": [10, 10**4, 10**8], "local_eps": [0.5, 4.0], "delta": [1e-9, 1e-5]}
    rows = sweep(lambda users, local_eps, delta: shuffle.StrongerClones(users, local_eps).epsilon(delta), grid)
    assert np.array_equal(sweep(shuffle.clones_epsilons, grid, arrays=True, **options), rows)


def test_arrays_of_several_fields():
    grid = {"a": list(range(1000)), "b": [1.0, 2.0]}
    table = sweep(lambda a, b: {"sum": a + b, "product": a * b}, grid, arrays=True)
    assert table.dtype.names == ("a", "b", "sum", "product")
    assert np.array_equal(table["sum"], table["a"] + table["b"])
    assert sweep(lambda a, b: Pair(a + b, a * b), grid, arrays=True).dtype.names == ("a", "b", "total", "product")


@pytest.mark.parametrize("answer", [1.0, np.zeros(3), {"x": "words"}, (), {}, {"a": None}])
def test_arrays_of_another_length_are_refused(answer):
    with pytest.raises(SweepError, match="arrays=True") as caught:
        sweep(lambda a: answer, {"a": [1, 2]}, arrays=True)
    assert caught.value.row == 0
    with pytest.raises(ValueError, match="arrays=1"):
        sweep(len, {"a": [1]}, arrays=1)


@pytest.mark.slow
def test_the_example_of_a_million(tmp_path):
    example = Path(__file__).parents[2] / "examples" / "size_a_million.py"
    for options in (["--workers", "2"], []):
        file = tmp_path / "sizes.npz"
        command = [sys.executable, str(example), "--side", "4", "--largest", "1e5", "--save", str(file), *options]
        out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert out.startswith("64 deployments")
        table = np.load(file)["table"]
        assert table.size == 64
        row = table[37]
        assert row["value"] == shuffle.StrongerClones(int(row["users"]), float(row["local_eps"])).epsilon(float(row["delta"]))


@pytest.mark.slow
def test_a_data_frame_gives_the_rows():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1, 2, 3], "b": [10, 20, 40]}, index=[7, 8, 9])
    table = sweep(total, frame)
    assert table["value"].tolist() == [11, 22, 43]
    assert table["a"].dtype.kind == "i"
    with pytest.raises(ValueError, match="without rows"):
        sweep(total, frame[:0])
