"""Records the results of the installed version: python -m tests.regression.record [limit in seconds].
Compares them with the recorded ones: python -m tests.regression.record compare.

recorded.json has each question with both bounds and the CPU seconds they took. Questions that take longer than the limit, or that
raise an error, are not included. Recording takes about ten minutes. Record before a change that is meant to keep every result,
never to make a failing test pass.
"""

import json
import signal
import sys
import time

from tests.regression.questions import RECORDED, answer, key, problem, questions, recorded


class TooSlow(Exception):
    """Raised if a question takes longer than the time limit."""


def _late(*_):
    raise TooSlow


def main(seconds=1.5):
    """Compute all questions and write the results to recorded.json."""
    signal.signal(signal.SIGPROF, _late)
    kept, dropped = [], {}
    for question in questions():
        start = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            lower, upper = answer(question)
        except (TooSlow, ValueError) as problem:
            signal.setitimer(signal.ITIMER_PROF, 0)
            key = question["build"][0], question["ask"], type(problem).__name__
            dropped[key] = dropped.get(key, 0) + 1
            continue
        signal.setitimer(signal.ITIMER_PROF, 0)
        kept.append(question | {"lower": lower, "upper": upper, "seconds": round(time.process_time() - start, 4)})
    RECORDED.write_text("[\n" + ",\n".join(json.dumps(row) for row in kept) + "\n]\n")
    print(f"{len(kept)} kept, {sum(row['seconds'] for row in kept):.0f} s")
    for key, count in sorted(dropped.items()):
        print(*key, count)


def compare():
    """Print the results that contradict the recorded ones, and the change of the CPU time by class and method."""
    times = {}
    for row in recorded():
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


if __name__ == "__main__":
    if sys.argv[1:] == ["compare"]:
        compare()
    else:
        main(*map(float, sys.argv[1:]))
