"""The exact bits of about 1900 answers of all public classes, which show the answers that a change of the code affects.

Record them before a change that is meant to keep answers, and compare after it::

    python -m tests.regression.every_answer record            # writes bits.json
    python -m tests.regression.every_answer compare           # lists the answers that changed, in about two CPU minutes
    python -m tests.regression.every_answer compare --slow    # slow.json as well, in about five more
    python -m tests.regression.every_answer record --slow --only shuffle.Shuffled    # all answers of one class
    SHUFFLEBOUNDS_BITS=1 pytest tests/regression/test_every_answer.py

The answers depend on the C library and the processor, so compare them on the machine that recorded them. A changed answer is not
necessarily wrong: the author of the change states why it changed, and checks that it is inside the old bounds if these were valid.
The profiles are those of tests/examples.py.
"""

import argparse
import copy
import inspect
import json
import re
import signal
import time
from operator import attrgetter
from pathlib import Path

import numpy as np

import shufflebounds
from shufflebounds import mechanisms
from tests.examples import EXAMPLES

RECORDED = Path(__file__).with_name("bits.json")
EXPENSIVE = Path(__file__).with_name("expensive.json")
SLOW = Path(__file__).with_name("slow.json")

LIMIT = 0.4
"""CPU time in seconds. An answer that took longer when it was first recorded is in slow.json. Raised: a comparison takes longer."""

SLOW_LIMIT = 3.0
"""CPU time in seconds. An answer that takes longer is not recorded. Raised: the comparison of the slow answers takes longer."""

QUICK = 0.025
"""CPU time in seconds. An answer that took longer when it was recorded is listed in expensive.json, and only slow tests compute it.
Raised: the default tests take longer. Lowered: they notice fewer changes."""

QUESTIONS = (
    "delta(0.3)", "log_delta(0)", "log_delta(1.7)", "log_delta([0.1, 0.5, 1.1])", "epsilon(1e-6)", "epsilon(1e-12)", "epsilon(0)",
    "rdp(1)", "rdp(2)", "rdp(16)", "rdp(inf)", "gdp_mu()", "loss_tail(0.4)", "tradeoff.beta(0.05)", "tradeoff.delta(0.3)",
    "5 releases epsilon(1e-6)", "3 releases log_delta(1)",
)
"""Calls of methods, each of a new object. For curves and compositions, the method of the curve or of the composition follows."""

SAME_PATH = {
    "delta(0.3)": "log_delta([0.1, 0.5, 1.1])", "rdp(2)": "rdp(16)", "tradeoff.delta(0.3)": "tradeoff.beta(0.05)",
    "3 releases log_delta(1)": "5 releases epsilon(1e-6)", "epsilon(1e-12)": "epsilon(1e-6)",
    "log_delta(0)": "log_delta([0.1, 0.5, 1.1])", "log_delta(1.7)": "log_delta([0.1, 0.5, 1.1])",
}
"""Questions that the tests of weaker bounds leave out if the other one, on the same path, is computed for the same object."""

CALLS = (
    "shuffle.clones_epsilons([100, 10**5], [1.0, 3.0], 1e-6)", "shuffle.clones_log_deltas([100, 10**5], 1.0, 0.2, bound='lower')",
    "shuffle.binomial_noise_epsilons([100, 10**4], 0.5, 1e-6)",
    "shuffle.binomial_noise_log_deltas(1000, [0.2, 0.5], 0.2, bound='lower')",
    "shuffle.shuffled_epsilons(mechanisms.KaryResponse(10, 2.0), [1000, 10**5], 1e-6)",
    "shuffle.shuffled_log_deltas(mechanisms.UnaryEncoding(4, 0.8, 0.1), [1000, 10**5], 0.1, bound='lower')",
    "shuffle.shuffled_epsilons(mechanisms.LaplaceMechanism(1.0), [1000, 10**5], 1e-6, bound='lower')",
)
"""Public functions that answer for many protocols at once. Their class is "functions"."""


MODULES = {"mechanisms": mechanisms}
"""Names that stand in the arguments of `CALLS`."""


def names():
    """Return the names under which answers are recorded: the public classes, and "functions"."""
    return [*(name for name, example in EXAMPLES.items() if example.recorded), "functions"]


def subjects(name):
    """Return (object, its questions) for all examples of a class; every call creates new objects."""
    if name == "functions":
        return [(None, CALLS)]
    example = EXAMPLES[name]
    return [(profile, (*QUESTIONS, *example.also)) for profile in example.profiles()]


def answer(profile, question):
    """Return the lower and the upper bound in hexadecimal, another answer as text, or the name of an exception.

    A question is the call of a method, "5 releases rdp(2)" for a composition, or "tradeoff.beta(0.05)" for a curve.
    """
    releases, curve, name, arguments = re.fullmatch(r"(?:(\d+) releases )?(tradeoff\.)?([\w.]+)\((.*)\)", question).groups()
    given, named = eval(f"take({arguments})", MODULES | {"inf": np.inf, "take": lambda *given, **named: (given, named)})

    def called(subject, bound):
        subject = subject.self_compose(int(releases)) if releases else subject
        method = getattr(subject.tradeoff(bound=bound) if curve else subject, name)
        sided = not curve and "bound" in inspect.signature(method).parameters
        return method(*given, **named, **({"bound": bound} if sided else {}))

    try:
        if profile is None:
            found = [attrgetter(name)(shufflebounds)(*given, **named)] * 2
        else:
            # The answer is that of a copy, so that caches filled by earlier calls have no effect.
            profile = copy.deepcopy(profile)
            found = [called(profile, bound) for bound in ("lower", "upper")]
    except (ArithmeticError, AttributeError, IndexError, TypeError, ValueError) as problem:
        return type(problem).__name__
    return found[0] if isinstance(found[0], str) else " ".join(float(value).hex() for side in found for value in np.ravel(side))


def recorded(path=RECORDED):
    """Return the recorded answers as {class: {profile: {question: answer}}}."""
    return json.loads(path.read_text(encoding="utf-8"))


def numbers(words):
    """Return the numbers of an answer, or () if it is text."""
    try:
        return [float.fromhex(word) for word in words.split()]
    except ValueError:
        return []


def is_weaker(before, now, logarithm=False):
    """Return whether a bound of an answer is wider than recorded, or disjoint from the recorded one.

    A gap may be a quarter larger, plus a relative 1e-9 for rounding, which differs between machines. A logarithm near 0 may differ
    by the rounding of what it is the logarithm of.
    """
    old, new = numbers(before), numbers(now)
    if not old or len(old) != len(new):
        # A text may differ in its last digits, the name of an exception may not.
        return (before.isidentifier() and before != now) or len(old) != len(new)
    half = len(old) // 2
    for first, second in zip(zip(old[:half], old[half:]), zip(new[:half], new[half:])):
        # The delta of the lower trade-off curve is the larger one.
        (old_low, old_high), (low, high) = sorted(first), sorted(second)
        size = 1e-9 * max((abs(x) for x in first if abs(x) < np.inf), default=0.0) + (1e-12 if logarithm else 0.0)
        wide = high - low > 1.25 * (old_high - old_low) + size if high > low else False
        if wide or not (low <= old_high + size and old_low <= high + size):
            return True
    return False


def weakened(name, expensive):
    """Return one line for each answer of a class that is weaker than recorded (`is_weaker`).

    With `expensive`, these are the answers listed in expensive.json, and otherwise the others of bits.json.
    """
    found = []
    rows, listed = (recorded(path).get(name, {}) for path in (RECORDED, EXPENSIVE))
    for profile, _ in subjects(name):
        before = rows.get(repr(profile), {})
        chosen = {question: old for question, old in before.items() if old is not None
                  and (question in listed.get(repr(profile), ())) == expensive and not before.get(SAME_PATH.get(question))}
        for question, old in chosen.items():
            if is_weaker(old, now := answer(profile, question), question.startswith(("log_delta", "3 releases log_delta"))):
                found.append(f"{profile!r} {question}: was {_decimal(old)}, is {_decimal(now)}")
    return found


def moved(name, path=RECORDED):
    """Return one line for each answer of a class that differs from the recorded one."""
    found = []
    rows = recorded(path).get(name, {})
    for profile, _ in subjects(name):
        for question, before in rows.get(repr(profile), {}).items():
            if before is not None and (now := answer(profile, question)) != before:
                found.append(f"{profile!r} {question}: was {_decimal(before)}, is {_decimal(now)}")
    return found


def _decimal(words):
    return " ".join(map(repr, numbers(words))) or words


class TooSlow(Exception):
    """Raised if an answer takes longer than the limit."""


def timed(profile, question, limit):
    """Return the answer and its CPU seconds, or None and the seconds if it takes longer than the limit."""
    start = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, limit)
    try:
        found = answer(profile, question)
    except TooSlow:
        found = None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return found, time.process_time() - start


def record(only, slow):
    """Record the answers of the classes whose names contain `only`; the others keep theirs. Without `slow`, slow.json stays.

    An answer stays in the file in which it is, unless it takes four times the limit of that file, so that a slower machine does not
    move it. A question without an answer within SLOW_LIMIT is recorded as null and not asked again; delete the null to ask it. In
    slow.json other questions are null where one that takes the same path is recorded: of Renyi orders 16, of curves beta, of two
    compositions the first one, and eps at 1e-6 rather than several values of log delta. Of an object of Shuffled it has at most one
    answer about eps or a composition, and one divergence, mu or curve. Loss tails, which are searches for a delta, are null where
    they take more than two seconds, and objects that take the same path share their questions.
    """
    def late(*_):
        raise TooSlow

    signal.signal(signal.SIGPROF, late)
    tables = {path: recorded(path) if path.exists() else {} for path in (RECORDED, EXPENSIVE, SLOW)}
    for name in names():
        if only not in name:
            continue
        start = time.process_time()
        before = {path: table.pop(name, {}) for path, table in tables.items()}
        for profile, questions in subjects(name):
            known = {path: table.get(repr(profile), {}) for path, table in before.items()}
            rows = {path: table.setdefault(name, {}).setdefault(repr(profile), {}) for path, table in tables.items()}
            for question in questions:
                if question in known[SLOW] and (not slow or known[SLOW][question] is None):
                    rows[SLOW][question] = known[SLOW][question]
                    continue
                fast = question in known[RECORDED]
                limit = 4 * LIMIT if fast else 2 * SLOW_LIMIT if question in known[SLOW] else SLOW_LIMIT if slow else LIMIT
                found, seconds = timed(profile, question, limit)
                if found is None:
                    if slow:
                        rows[SLOW][question] = None
                elif question in known[SLOW] or (seconds > LIMIT and not fast):
                    rows[SLOW][question] = found
                else:
                    rows[RECORDED][question] = found
                    # a question may be quick only because one before it has filled a cache of the module
                    if seconds > QUICK or question in known[EXPENSIVE]:
                        rows[EXPENSIVE][question] = None
        print(f"{name}: {time.process_time() - start:.0f} s", flush=True)
    for path, table in tables.items():
        table = {name: {profile: row for profile, row in table[name].items() if row} for name in names() if name in table}
        if path == EXPENSIVE:
            table = {name: {profile: list(row) for profile, row in rows.items()} for name, rows in table.items() if rows}
        path.write_text(json.dumps(table, indent=0, separators=(",", ":")) + "\n", encoding="utf-8")
        rows = [row for rows in table.values() for row in rows.values()]
        entries = [entry for row in rows for entry in (row if path == EXPENSIVE else row.values())]
        print(f"{path.name}: {len(entries) - entries.count(None)} answers")


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.regression.every_answer", description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["record", "compare"])
    parser.add_argument("--only", default="", metavar="NAME", help="classes whose name contains this, such as shuffle.Clones")
    parser.add_argument("--slow", action="store_true", help=f"also the answers that take {LIMIT} to {SLOW_LIMIT:.0f} s")
    options = parser.parse_args()
    start = time.process_time()
    if options.what == "record":
        record(options.only, options.slow)
    else:
        for name in names():
            if options.only in name:
                found = [line for path in (RECORDED, *([SLOW] if options.slow else [])) for line in moved(name, path)]
                print("\n".join(found) or f"{name}: nothing moved")
    print(f"{time.process_time() - start:.0f} CPU s")


if __name__ == "__main__":
    main()
