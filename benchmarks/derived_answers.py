"""CPU time of curves, Renyi divergences, mu and compositions: ``python benchmarks/derived_answers.py [--record] [seconds]``.

The parameters are drawn with a fixed seed: those of tests/examples.py for every public class, which are small, and
those of LARGE, with up to 1e9 users. One row is printed for every kind of value: the number of computations, the quantiles of the
CPU time, the number of computations that exceeded the limit (their time counts as infinite), and the quantiles of the relative gap
between the bounds of those that did not. The slowest computations are printed below the table. The script ends after about
`seconds` of CPU time (240 by default); classes alternate, so that each has about as many computations.
"""

import math
import random
import signal
import sys
import time
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from keeping import keep

from shufflebounds import mechanisms, sampling, shuffle

sys.path.append(str(Path(__file__).parents[1]))

from tests.examples import EXAMPLES

SEED = 23
"""Seed of the parameters: the same parameters at every commit."""

LIMIT = 5.0
"""Limit of the CPU seconds of one computation: the goal for the slowest curve."""

TOTAL = 240.0
"""CPU time in seconds of all computations together."""

QUESTIONS = {
    "epsilon": lambda p, upper: p.epsilon(1e-6, bound=upper),
    "log_delta": lambda p, upper: p.log_delta(0.5, bound=upper),
    "curve at .05": lambda p, upper: p.tradeoff(bound="lower" if upper == "upper" else "upper").beta(0.05),
    "rdp of order 8": lambda p, upper: p.rdp(8.0, bound=upper),
    "gdp_mu": lambda p, upper: p.gdp_mu(bound=upper),
    "loss_tail": lambda p, upper: p.loss_tail(0.5, bound=upper),
    "30 releases": lambda p, upper: p.epsilon(1e-6, bound=upper),
}
"""The values to compute. Both bounds of a value are computed with one new object, as a user would, and no other value with it."""


def _users(r):
    """Return a number of users, log-uniform between 100 and 1e9."""
    return round(10.0 ** r.uniform(2, 9))


def _training(r):
    """Return a step of DP-SGD with its sampling rate."""
    return mechanisms.GaussianMechanism(r.uniform(0.6, 4)).subsampled(10.0 ** r.uniform(-4, -0.5))


LARGE = {
    "k-ary response": lambda r: mechanisms.KaryResponse(r.randint(3, 100), r.uniform(0.3, 6)).shuffled(_users(r)),
    "Laplace noise, shuffled": lambda r: mechanisms.LaplaceMechanism(r.uniform(0.3, 4)).shuffled(_users(r)),
    "Gaussian noise, shuffled": lambda r: mechanisms.GaussianMechanism(r.uniform(0.5, 5)).shuffled(_users(r)),
    "discrete Gaussian noise, shuffled": lambda r: mechanisms.DiscreteGaussianMechanism(r.uniform(0.8, 9)).shuffled(_users(r)),
    "local hashing": lambda r: mechanisms.LocalHashing(r.randint(3, 100), r.uniform(0.3, 5)).shuffled(_users(r)),
    "shuffled bits": lambda r: shuffle.ShuffledBits(_users(r), r.uniform(0.01, 0.45)),
    "flipped reports": lambda r: shuffle.FlippedReports(_users(r), 0, r.randint(2, 40), 10.0 ** r.uniform(-3, -0.5), view="sums"),
    "histogram": lambda r: shuffle.ShuffledHistogram(_users(r), r.randint(3, 1000), r.uniform(0.05, 0.5)),
    "sampled training": _training,
    "random allocation": lambda r: sampling.RandomAllocation(mechanisms.GaussianMechanism(r.uniform(0.6, 3)), r.randint(2, 2000)),
}
"""Parameters of realistic sizes, for classes whose computations take long."""


def drawn(name, seed):
    """Return an object of the named class with random parameters."""
    draw = LARGE[name] if name in LARGE else EXAMPLES[name].draw
    return draw(random.Random(seed))


class TooLong(BaseException):
    """Raised when one computation reaches its limit; it is not an Exception, so that no handler in the library catches it."""


@contextmanager
def limited(seconds):
    """Raise TooLong once the body has used `seconds` of CPU time; a single call of a kernel is not interrupted."""
    def stop(number, frame):
        raise TooLong

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def gap(low, high):
    """Return the relative gap of two bounds; for log delta, the relative gap of delta."""
    if low == high:
        return 0.0
    return math.expm1(min(high - low, 700.0)) if high <= 0 else (high - low) / low if low > 0 else math.inf


def asked(name, seed, question):
    """Return the CPU seconds and the gap of one computation, or None if the class does not support it."""
    try:
        profile = drawn(name, seed)
    except ValueError:
        return None
    # While a timer of CPU time is armed, process_time moves in ticks of 4 ms on Linux.
    start, low, high = time.thread_time(), math.nan, math.nan
    try:
        with limited(LIMIT):
            if question == "30 releases":
                profile = profile.self_compose(30)
            high, low = (float(QUESTIONS[question](profile, bound)) for bound in ("upper", "lower"))
    except TooLong:
        return math.inf, math.nan
    except (TypeError, ValueError, NotImplementedError):
        return None
    if question == "curve at .05":
        low, high = high, low
    return time.thread_time() - start, gap(low, high)


def measured(total):
    """Return rows of (question, class, seed, CPU seconds, gap)."""
    rows, start, turn = [], time.process_time(), 0
    names = [*EXAMPLES, *LARGE]
    # The order is random, so that a run that ends in the first round includes fast and slow classes.
    random.Random(SEED).shuffle(names)
    while time.process_time() - start < total:
        for name in names:
            for question in QUESTIONS:
                seed = SEED * 10**6 + turn
                found = asked(name, seed, question)
                if found is not None:
                    rows.append((question, name, seed, *found))
            if time.process_time() - start >= total:
                break
        turn += 1
    return rows


def quantiles(values):
    """Return the median, the 90th percentile and the largest value; a quantile between two values is the larger one."""
    return [float(x) for x in np.quantile(values, [0.5, 0.9, 1.0], method="higher")] if values.size else [math.nan] * 3


def page_table(table):
    """Return the table of docs/numerics.md: quantiles of the seconds and of the gap, and the number of interrupted questions."""
    def shown(value):
        return f"above {LIMIT:g}" if value == math.inf else f"{value:.2g}"

    def gap_shown(value):
        return "infinite" if value == math.inf else f"{value:.1g}"

    header = ["method", "objects", "median, s", "90 %, s", "largest, s", f"above {LIMIT:g} s", "relative gap: median", "90 %"]
    rows = [[name, str(row["asked"]), *map(shown, row["seconds"]), str(row["out of time"]), *map(gap_shown, row["gaps"][:2])]
            for name, row in table.items()]
    return {"header": header, "rows": rows}


def main(arguments):
    """Print the table, and store it with --record."""
    # Random parameters are often outside of the ranges for which the library recommends a method.
    warnings.simplefilter("ignore", UserWarning)
    numbers = [float(word) for word in arguments if not word.startswith("-")]
    rows = measured(numbers[0] if numbers else TOTAL)
    table = {}
    print(f"{'question':<16} {'asked':>5}   CPU s: median, 90 %, largest   > {LIMIT:g} s   gap: median, 90 %, largest")
    for question in QUESTIONS:
        seconds, gaps = (np.array([row[i] for row in rows if row[0] == question]) for i in (3, 4))
        if not seconds.size:
            continue
        out = int((seconds == math.inf).sum())
        table[question] = {"asked": seconds.size, "seconds": quantiles(seconds), "gaps": quantiles(gaps[~np.isnan(gaps)]),
                           "out of time": out}
        times, apart = (" ".join(f"{x:9.2g}" for x in table[question][key]) for key in ("seconds", "gaps"))
        print(f"{question:<16} {seconds.size:>5} {times} {out:>7}   {apart}", flush=True)
    slowest = sorted(rows, key=lambda row: row[3], reverse=True)[:10]
    for question, name, seed, taken, _ in slowest:
        print(f"{taken:8.2g} s  {question}  {drawn(name, seed)!r:.120}")
    if "--record" in arguments:
        keep("derived_answers", {"derived answers": table, "tables": {"derived": page_table(table)}, "limit": LIMIT, "seed": SEED})


if __name__ == "__main__":
    main(sys.argv[1:])
