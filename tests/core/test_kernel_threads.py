"""Kernels give the same bits when several threads call them as in serial calls; also locks, forks and subinterpreters."""

import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Event, Thread

import numpy as np
import pytest

import shufflebounds
from shufflebounds import tails
from shufflebounds._core import _binomial, _compound, _special
from shufflebounds.mechanisms import FiniteRandomizer, KaryResponse
from shufflebounds.sampling import RandomAllocation
from shufflebounds.shuffle import (
    BinomialNoise,
    Clones,
    FlippedReports,
    PersonalizedBits,
    PersonalizedClones,
    RealSum,
    StrongerClones,
)
from tests.strategies import slow

THREADS = 4


def points():
    rng = np.random.default_rng(9)
    n = np.floor(np.exp(rng.uniform(0, 36, 8_000)))
    p = rng.random(n.size)
    k = np.clip(np.round(n * p + 5 * rng.normal(size=n.size) * np.sqrt(n * p * (1 - p))), 0, n)
    return k, n, p


K, N, P = points()
JOBS = {
    "logpmf": lambda: tails.binom_logpmf(K, N, P),
    "logcdf": lambda: tails.binom_logcdf(K, N, P),
    "logsf": lambda: tails.binom_logsf(K, N, P),
    "shift": lambda: np.array(_binomial.shift_log_delta(N, P, 0.1, 0.0)),
    "mills": lambda: _special.mills_ratio(K),
    "sweep": lambda: np.array(_compound.log_sign_excess(np.arange(1.0, 300.0), 0.5, 0.25, 0.75)),
    "weighted": lambda: np.array(_compound.log_weighted_excess(0.0, -np.abs(np.sin(np.arange(3000.0))), 0.25, 0.75)),
    "clones": lambda: np.array([kind(10**5, 3.0).log_delta(np.linspace(0, 3, 30)) for kind in (Clones, StrongerClones)]),
    "epsilon": lambda: np.array(StrongerClones(10**5, 3.0).epsilon([1e-3, 1e-6, 1e-9])),
    "calibrate": lambda: np.array(BinomialNoise.calibrate(eps=0.3, delta=1e-7).trials),
}


@pytest.mark.parametrize("job", JOBS)
def test_same_bits(job):
    serial = np.asarray(JOBS[job]()).tobytes()
    start = Barrier(THREADS)

    def run(_):
        start.wait()
        return [np.asarray(JOBS[job]()).tobytes() for _ in range(3)]

    with ThreadPoolExecutor(THREADS) as pool:
        for answers in pool.map(run, range(THREADS)):
            assert answers == [serial] * 3


def test_different_jobs_at_once():
    serial = {name: np.asarray(job()).tobytes() for name, job in JOBS.items()}
    with ThreadPoolExecutor(THREADS) as pool:
        futures = [(name, pool.submit(JOBS[name])) for _ in range(2) for name in JOBS]
        for name, future in futures:
            assert np.asarray(future.result()).tobytes() == serial[name], name


@pytest.mark.slow
def test_a_long_call_does_not_release_the_lock_of_another_thread():
    # Above 500 elements NumPy has released the interpreter lock, and another thread has taken it. A second release by the kernel
    # would end the process.
    code = """
import threading
import numpy as np
from shufflebounds._core import _binomial
n, p, done = np.full(600, 1e12), np.linspace(1e-9, 0.5, 600), threading.Event()
def busy():
    while not done.is_set():
        pass
def calls():
    for _ in range(50):
        _binomial.shift_log_delta(n, p, 0.1, 0.0)
callers = [threading.Thread(target=calls) for _ in range(3)]
other = threading.Thread(target=busy)
for thread in (other, *callers):
    thread.start()
for thread in callers:
    thread.join()
done.set()
"""
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_a_short_call_of_a_slow_kernel_releases_the_lock():
    # Below 500 elements NumPy keeps the interpreter lock. Each element takes milliseconds, so the other thread runs only if the
    # kernel releases the lock.
    ticks, done = [], Event()

    def tick():
        while not done.wait(1e-3):
            ticks.append(None)

    thread = Thread(target=tick)
    thread.start()
    def during():
        before = len(ticks)
        _compound.log_sign_sweep(np.full(40, 1e8), 0.5, 0.25, 0.75)
        return len(ticks) - before

    # On a busy machine the other thread may not run during the first call, so up to 20 calls are made.
    left = any(during() >= 3 for _ in range(20))
    done.set()
    thread.join()
    assert left


def child(code, seconds=60):
    """Run code in a new process, which prints a trace of every thread if it hangs."""
    watched = f"import faulthandler\nfaulthandler.dump_traceback_later({seconds}, exit=True)\n{code}"
    done = subprocess.run([sys.executable, "-c", watched], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


SUBINTERPRETER = """
import sys
if sys.version_info >= (3, 13):
    import _interpreters as interpreters
    kind = {"config": "legacy"}
else:
    import _xxsubinterpreters as interpreters
    kind = {"isolated": False}
def run(code):
    # from Python 3.12 on an isolated interpreter has a lock of its own, and NumPy refuses to load there; these share the lock
    here = interpreters.create(**kind)
    failure = interpreters.run_string(here, f"import sys; sys.path[:0] = {sys.path!r}\\n{code}")
    # Python 3.13 returns the exception that earlier versions raise
    if failure is not None:
        raise RuntimeError(failure.formatted)
"""
"""Code that defines run(code), which runs code in a second interpreter of the same process."""


@pytest.mark.slow
def test_a_slow_kernel_in_a_subinterpreter():
    # PyGILState supports the main interpreter only. In a second one, a check for signals once never returned.
    pytest.importorskip("_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters")
    assert child(SUBINTERPRETER + """
run('''
import warnings
warnings.simplefilter("ignore")
import numpy as np
from shufflebounds._core import _compound
print(np.isfinite(_compound.log_sign_sweep(np.full(40, 1e8), 0.5, 0.25, 0.75)[0]).all(), flush=True)
''')
""").split() == ["True"]


@pytest.mark.slow
def test_a_second_interpreter_is_refused():
    pytest.importorskip("_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters")
    assert "ImportError" in child(SUBINTERPRETER + """
from shufflebounds import tails
tails.binom
try:
    run("from shufflebounds import tails\\ntails.binom")
except Exception as refusal:
    print(refusal)
""")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks")
def test_a_fork_during_a_composition():
    # The child process has neither the computing thread nor the lock that this thread holds.
    assert child("""
import os, threading
from shufflebounds.shuffle import BinomialNoise
year = BinomialNoise(100, 0.5).self_compose(3)
year.log_delta(0.5)
composer = year._closed.composer
inside, done = threading.Event(), threading.Event()
def ask():
    with composer._lock:
        inside.set()
        done.wait()
thread = threading.Thread(target=ask)
thread.start()
inside.wait()
pid = os.fork()
if not pid:
    os._exit(not year.log_delta(0.5) < 0)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
done.set()
thread.join()
""", 20) == ""


def test_cached_attributes_that_use_each_other():
    # functools.cached_property may lock a whole class. Two threads that compute two properties in opposite orders would then wait
    # for each other forever.
    child("""
import threading
from shufflebounds._base.caches import cached_property
class Here:
    other = None
    @cached_property
    def value(self):
        if self.other is not None:
            both.wait()
        return 1 if self.other is None else self.other.value + 1
class There(Here):
    @cached_property
    def value(self):
        if self.other is not None:
            both.wait()
        return 1 if self.other is None else self.other.value + 1
both = threading.Barrier(2)
here, there = Here(), There()
here.other, there.other = There(), Here()
threads = [threading.Thread(target=lambda one=one: one.value) for one in (here, there)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert here.value == there.value == 2
""", 20)


@pytest.mark.slow
def test_names_imported_by_several_threads():
    names = ["shuffle.StrongerClones", "sampling.RandomAllocation", "mechanisms.PrivUnit", "composition.Ledger",
             "selection.SparseVector", "published", "sweep", "compare", "histograms", "interop", "tails.binom", "Tradeoff"]
    child(f"""
import operator, sys, threading
import shufflebounds
sys.setswitchinterval(1e-5)
wrong, start = [], threading.Barrier(12)
def ask(name):
    start.wait()
    try:
        operator.attrgetter(name)(shufflebounds)
    except BaseException as harm:
        wrong.append(harm)
threads = [threading.Thread(target=ask, args=(name,)) for name in {names}]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not wrong, wrong
""")


@pytest.mark.parametrize("make", [
    lambda: FiniteRandomizer([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]),
    lambda: PersonalizedBits(np.linspace(0.1, 2, 20)),
    lambda: PersonalizedClones.laplace(np.linspace(0.1, 2, 20)),
    lambda: RealSum(8, 2.0, 2, view="columns"),
    lambda: FlippedReports(20, 2, 3, 0.2, view="sums"),
    lambda: RandomAllocation(KaryResponse(3, 1.0), 3),
    lambda: FiniteRandomizer([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]).shuffled(5),
])
def test_cached_values_are_not_pickled(make):
    # Another thread may change cached values while they are pickled, and some of them cannot be pickled.
    used, before = make(), make()
    value = used.log_delta(0.1)
    assert len(pickle.dumps(used)) == len(pickle.dumps(before))
    again = pickle.loads(pickle.dumps(used))
    assert again.log_delta(0.1) == value


@pytest.mark.parametrize("make", [
    lambda: PersonalizedBits(np.linspace(0.1, 2, 20) ** 2),
    lambda: PersonalizedClones.laplace(np.linspace(0.1, 2, 5)),
    slow(lambda: PersonalizedClones.gaussian(np.linspace(0.5, 2, 5))),
    slow(lambda: PersonalizedClones.randomized_response(np.linspace(0.1, 2, 20), 5)),
])
def test_results_do_not_depend_on_earlier_calls(make):
    first = make()
    values = [first.log_delta(eps, bound=side) for eps in (0.0, 0.1, 0.3) for side in ("lower", "upper")]
    second = make()
    second.epsilon(1e-3)
    assert values == [second.log_delta(eps, bound=side) for eps in (0.3, 0.1, 0.0) for side in ("upper", "lower")][::-1]


@pytest.mark.slow
def test_validation_while_another_thread_imports_masked_arrays():
    # During an import the module exists before its classes do.
    child("""
import sys, types
from shufflebounds.shuffle import PersonalizedBits
sys.modules["numpy.ma"] = types.ModuleType("numpy.ma")
PersonalizedBits([0.5, 0.5])
""")


def test_no_cached_property_uses_a_lock():
    package = Path(shufflebounds.__file__).parent
    held = [path.name for path in package.rglob("*.py") if "from functools import cached_property" in path.read_text("utf-8")]
    assert not held, "shufflebounds._base.caches has one without a lock"
