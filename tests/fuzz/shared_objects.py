"""One object used by several threads at once, with Ctrl-C and forks: results are bit-identical to those of a single thread.

`attack` runs in this process. The methods of an object are called by one thread. Then four threads call those of an equal object,
each in another order, while a fifth thread is busy; the calls include pickling and invalid arguments. Then the calls on another
equal object are interrupted at random moments and repeated. `campaign` runs `attack` in child processes, so that it can report
crashes and deadlocks.
"""

import faulthandler
import importlib
import multiprocessing
import pickle
import pkgutil
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np

from shufflebounds import _core, mechanisms, sampling, shuffle, tails
from tests.fuzz import enumeration

__all__ = ["KINDS", "attack", "campaign"]

THREADS = 4
SIZES = (1, 499, 501, 5000)
"""Sizes of arrays. NumPy keeps the interpreter lock for arrays of up to 500 elements."""

TOO_LONG = 300.0
"""Number of seconds after which the test of one object counts as a deadlock."""

MOST_SECONDS = 0.5
"""Run time in seconds of the single-threaded calls of an object after which no further calls are added."""

SWITCHES = (1e-5, 1e-4, 5e-3)
"""Seconds between two switches of threads; the last one is Python's default."""


class Numbers:
    """A ufunc and the numbers with which it is called."""

    def __init__(self, function, seed):
        self.function, self.seed = function, seed

    def __repr__(self):
        return f"{self.function.__name__} at seed {self.seed}"

    def at(self, size):
        rng = np.random.default_rng(self.seed)
        given = [np.exp(rng.uniform(-8, 8, size)) if rng.random() < 0.5 else rng.random(size) for _ in range(self.function.nin)]
        given = [np.floor(x) if rng.random() < 0.3 else x for x in given]
        with np.errstate(all="ignore"):
            return np.array(self.function(*given)).tobytes()


def ufuncs(r):
    found = [value for module in (tails, *kernels()) for value in vars(module).values() if isinstance(value, np.ufunc)]
    return Numbers(r.choice(sorted(set(found), key=lambda one: one.__name__)), r.randrange(2**32))


def kernels():
    return [importlib.import_module(f"{_core.__name__}.{one.name}") for one in pkgutil.iter_modules(_core.__path__)]


def enumerated(r):
    return enumeration.KINDS[r.choice([kind for kind in enumeration.KINDS if kind not in ("densities", "shuffled batches")])](r)


def protocols(r):
    budgets = np.random.default_rng(r.randrange(99)).uniform(0.1, 3, r.choice([5, 300]))
    return r.choice([
        lambda: shuffle.PersonalizedClones.laplace(budgets),
        lambda: shuffle.PersonalizedClones.gaussian(budgets),
        lambda: shuffle.PersonalizedClones.randomized_response(budgets, r.choice([2, 5])),
        lambda: shuffle.PersonalizedBits(budgets),
        lambda: shuffle.RealSum(r.choice([100, 10**4]), 20.0, r.randint(2, 10), view=r.choice(["total", "columns"])),
        lambda: shuffle.FlippedReports(200, r.choice([0, 30]), r.choice([2, 5]), 0.2, view=r.choice(["sums", "records"])),
        lambda: shuffle.ShuffledHistogram(1000, 10, 0.05),
        lambda: shuffle.ClearReports(1000, 20),
        lambda: shuffle.GeometricDummies(20, 40, 0.6, 0.6, r.choice([1.0, 0.5])),
        lambda: mechanisms.FiniteRandomizer([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5], [0.25, 0.5, 0.25]]).shuffled(r.randint(3, 12)),
        lambda: mechanisms.LaplaceMechanism(1.0).shuffled(r.choice([10, 1000])),
        lambda: mechanisms.UnaryEncoding.optimized(10, 2.0).shuffled(1000),
    ])()


def compositions(r):
    one = r.choice([
        shuffle.BinomialNoise(10**4, 0.5), mechanisms.KaryResponse(5, 0.3), mechanisms.LaplaceMechanism(3.0),
        mechanisms.FiniteRandomizer([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]), mechanisms.GaussianMechanism(8.0).subsampled(0.1),
        mechanisms.LaplaceMechanism(3.0).subsampled(0.2), shuffle.StrongerClones(1000, 1.0),
        shuffle.ShuffledBits(30, 0.2, ones=7), sampling.RandomAllocation(mechanisms.KaryResponse(3, 1.0), 4),
    ])
    first = one.self_compose(r.choice([2, 10, 100]))
    if r.random() < 0.3 and one.relation != "add-remove":
        return first.compose(mechanisms.GeometricMechanism(0.2, 1))
    return first


KINDS = {"ufuncs": ufuncs, "enumerated": enumerated, "protocols": protocols, "compositions": compositions}


def refused(one):
    try:
        one.log_delta(-1.0)
    except ValueError as said:
        return str(said)
    raise AssertionError("eps = -1 was taken")


def pickled(one):
    return pickle.loads(pickle.dumps(one)).log_delta(0.3)


def questions(r, one, cheap):
    """Return {description: call} for all calls of an object."""
    if isinstance(one, Numbers):
        # The number of elements is chosen such that a slow kernel takes a fraction of a second.
        start = time.perf_counter()
        one.at(20)
        most = 0.2 * 20 / max(time.perf_counter() - start, 1e-9)
        return {f"{size}": partial(Numbers.at, size=size) for size in SIZES if size <= max(most, 1)}
    eps = sorted(r.choice([0.0, 0.1, 0.5, 1.0, 3.0]) * r.random() for _ in range(3))
    asked = {f"{side} at {e}": lambda one, e=e, side=side: one.log_delta(e, bound=side) for e in eps for side in ("lower", "upper")}
    asked["all"] = lambda one: one.log_delta(eps).tobytes()
    asked["refusal"] = refused
    asked["pickle"] = pickled
    asked["words"] = repr
    for side in ("lower", "upper"):
        asked[f"{side} eps"] = lambda one, side=side: one.epsilon(1e-5, bound=side)
    if r.random() < 0.2 and cheap:
        asked["curve"] = lambda one: one.tradeoff().log_beta([-3.0, -1.0, -0.1]).tobytes()
    if r.random() < 0.2 and cheap:
        asked["order"] = lambda one: one.rdp(3.0)
    return asked


def answer(question, one):
    """Return the result of a call, or the error that it raised; KeyboardInterrupt is not caught."""
    try:
        return question(one)
    except (ValueError, TypeError) as said:
        return f"{type(said).__name__}: {said}"


def together(r, shared, asked, alone):
    """Return a description of every wrong result of several threads; each thread makes the calls in another order."""
    wrong, start, done = [], threading.Barrier(THREADS), threading.Event()

    def busy():
        while not done.is_set():
            sum(range(100))

    def run(order):
        start.wait()
        for words in order:
            try:
                said = answer(asked[words], shared)
            except BaseException as harm:
                said = f"{type(harm).__name__}: {harm}"
            if said != alone[words]:
                wrong.append(f"{words}: {said!r} for {alone[words]!r} alone"[:300])

    orders = [r.sample(sorted(asked), len(asked)) for _ in range(THREADS)]
    threads = [threading.Thread(target=run, args=(order,)) for order in orders]
    beside = threading.Thread(target=busy)
    for thread in (beside, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    beside.join()
    return wrong


def interrupted(r, one, asked, alone, seconds):
    """Return a description of every wrong result after calls were interrupted at random moments.

    The second value is the number of interrupted calls.
    """
    wrong, broken, rung = [], 0, []

    def ring(*_):
        rung.append(time.perf_counter())
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, ring)
    try:
        for _ in range(6):
            words, count = r.choice(sorted(asked)), len(rung)
            try:
                signal.setitimer(signal.ITIMER_REAL, max(1e-5, r.random() * seconds / len(asked)))
                answer(asked[words], one)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                broken += 1
                late = time.perf_counter() - rung[-1]
                if late > 2:
                    wrong.append(f"{words}: broken off after {late:.1f} s")
                continue
            if len(rung) > count:
                wrong.append(f"{words}: the interrupt was lost")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    wrong += [f"{words}: another answer after an interrupt" for words in asked if answer(asked[words], one) != alone[words]]
    return wrong, broken


_inherited = []


def _in_child(words):
    one, asked = _inherited[-1]
    return answer(asked[words], one)


def forked(shared, asked, alone):
    """Return a description of every wrong result in a child process that was forked while threads were computing."""
    _inherited.append((shared, asked))
    done = threading.Event()

    def ask():
        while not done.is_set():
            for question in asked.values():
                answer(question, shared)

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as pool:
            said = list(pool.map(_in_child, asked))
    finally:
        done.set()
        for thread in threads:
            thread.join()
        _inherited.pop()
    return [f"{words}: {one!r} in a fork" for words, one in zip(asked, said) if one != alone[words]]


def attack(seed, cases=None, until=None, only=None):
    """Return the counts of calls, and one line for each failure, after `cases` objects or when until() is true."""
    r = random.Random(seed)
    tried, found, switch = Counter(), [], sys.getswitchinterval()
    lost = []
    hook, sys.unraisablehook = sys.unraisablehook, lost.append
    kinds = [kind for kind in KINDS if only in (None, kind)]
    made = 0
    try:
        while (cases is None or made < cases) and not (until and until()):
            kind, state = r.choice(kinds), r.getstate()
            alone, first, second = (_again(r, state, KINDS[kind]) for _ in range(3))
            made += 1
            asked = questions(r, alone, kind != "protocols")
            answers, seconds = {}, 0.0
            faulthandler.dump_traceback_later(TOO_LONG, exit=True)
            for words, question in asked.items():
                start = time.perf_counter()
                said = answer(question, alone)
                took = time.perf_counter() - start
                if took > MOST_SECONDS:
                    # Several threads would take minutes.
                    continue
                answers[words] = said
                seconds += took
                if seconds > MOST_SECONDS:
                    break
            asked = {words: asked[words] for words in answers}
            sys.setswitchinterval(r.choice(SWITCHES))
            faulthandler.dump_traceback_later(TOO_LONG, exit=True)
            said = together(r, first, asked, answers)
            tried[f"answers of {kind} in threads"] += THREADS * len(asked)
            if hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread():
                wrong, broken = interrupted(r, second, asked, answers, seconds)
                said += wrong
                tried["interrupts"] += broken
            if r.random() < 0.05 and hasattr(signal, "setitimer") and seconds < MOST_SECONDS:
                said += forked(_again(r, state, KINDS[kind], keep=True), asked, answers)
                tried["forks"] += 1
            said += [f"ignored: {one.exc_value!r}" for one in lost]
            lost.clear()
            found += [f"{kind} {alone!r}: {line}" for line in said]
    finally:
        faulthandler.cancel_dump_traceback_later()
        sys.setswitchinterval(switch)
        sys.unraisablehook = hook
    return tried, found


def _again(r, state, make, keep=False):
    """Return what `make` creates from this state of the random generator: an equal object in each call."""
    now = r.getstate()
    r.setstate(state)
    made = make(r)
    if keep:
        r.setstate(now)
    return made


def campaign(seed, seconds, only=None, each=10):
    """Return the counts and failures of child processes, which test `each` objects each and use one seed after the other."""
    tried, found, end = Counter(), [], time.monotonic() + seconds
    while time.monotonic() < end:
        code = (f"import time\nfrom tests.fuzz import shared_objects\nend = time.monotonic() + {end - time.monotonic()}\n"
                f"print(shared_objects.attack({seed}, {each}, lambda: time.monotonic() > end, {only!r}))")
        child = subprocess.run([sys.executable, "-X", "faulthandler", "-c", code], capture_output=True, text=True)
        if child.returncode:
            found.append(f"seed {seed}: ended by {child.returncode}: {child.stderr[-3000:]}")
        else:
            counts, lines = eval(child.stdout.strip().splitlines()[-1], {"Counter": Counter})
            tried += counts
            found += [f"seed {seed}: {line}" for line in lines]
        tried["children"] += 1
        seed += 1
    return tried, found
