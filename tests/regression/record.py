"""Answers to random questions, with their run times: python -m tests.regression.record record, or compare.

recorded.json has each question with both bounds and the CPU seconds they took. Questions that take longer than the limit, or that
raise an error, are not included. Recording takes about ten minutes, and ``--only shuffle.Clones`` records one class anew. Record
before a change that is meant to keep every answer, never to make a failing test pass.
"""

import argparse
import json
import signal
import time
from collections import Counter

from tests.regression.questions import RECORDED, answer, key, problem, questions, recorded


class TooSlow(Exception):
    """Raised if a question takes longer than the time limit."""


def _late(*_):
    raise TooSlow


def record(only, limit):
    """Compute the questions about classes whose name contains `only`, and write them with the other results to recorded.json."""
    signal.signal(signal.SIGPROF, _late)
    before = {key(row): row for row in recorded()}
    kept, dropped = [], Counter()
    for question in questions():
        path = question["build"][0]
        if only not in path:
            kept += [before[key(question)]] if key(question) in before else []
            continue
        start = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, limit)
        try:
            lower, upper = answer(question)
        except (TooSlow, ValueError) as problem:
            dropped[path, question["ask"], type(problem).__name__] += 1
            continue
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        kept.append(question | {"lower": lower, "upper": upper, "seconds": round(time.process_time() - start, 4)})
    RECORDED.write_text("[\n" + ",\n".join(json.dumps(row) for row in kept) + "\n]\n")
    print(f"{len(kept)} kept, {sum(row['seconds'] for row in kept):.0f} s")
    for name, count in sorted(dropped.items()):
        print(*name, count)


def compare(only):
    """Print the results that contradict the recorded ones, and the change of the CPU time by class and method."""
    times = {}
    for row in recorded():
        if only not in row["build"][0]:
            continue
        start = time.process_time()
        now = answer(row)
        spent = time.process_time() - start
        if what := problem(row, now):
            print(f"{key(row)}: {what}")
        before, after = times.get((row["build"][0], row["ask"]), (0.0, 0.0))
        times[row["build"][0], row["ask"]] = before + row["seconds"], after + spent
        if spent > 1.5 * row["seconds"] + 0.02:
            print(f"slower: {row['seconds']:.3f} -> {spent:.3f} s {key(row)}")
    for (path, ask), (before, after) in sorted(times.items()):
        print(f"{path} {ask}: {before:.2f} -> {after:.2f} s")
    print(f"total {sum(b for b, _ in times.values()):.1f} -> {sum(a for _, a in times.values()):.1f} s")


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.regression.record", description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["record", "compare"])
    parser.add_argument("--only", default="", metavar="NAME", help="classes whose name contains this, such as shuffle.Clones")
    parser.add_argument("--limit", type=float, default=1.5, help="largest CPU time in seconds of a recorded answer")
    options = parser.parse_args()
    if options.what == "record":
        record(options.only, options.limit)
    else:
        compare(options.only)


if __name__ == "__main__":
    main()
