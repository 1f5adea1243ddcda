"""Rows of a comparison: medians of the CPU time of alternating calls of two programs, and their layout as text."""

import statistics
import time

BUDGET = 0.4
"""CPU time in seconds that one program in a row may take, after its first three calls."""


def medians(*jobs):
    """Return the result of each job and the median CPU time of its calls; calls of the jobs alternate."""
    answers = [job() for job in jobs]
    taken = [[] for _ in jobs]
    while any(len(t) < 3 or (sum(t) < BUDGET and len(t) < 200) for t in taken):
        for job, times in zip(jobs, taken):
            if len(times) < 3 or sum(times) < BUDGET:
                start = time.process_time()
                job()
                times.append(time.process_time() - start)
    return [(a, statistics.median(t)) for a, t in zip(answers, taken)]


def row(task, ours, theirs=None, note="", show="{:.10g}", per=1):
    """Time the jobs, of which one may be None, and return the row; `per` is the number of elements in a call."""
    timed = medians(*(job for job in (ours, theirs) if job))
    value, seconds = timed[0]
    peer_value, peer_seconds = timed[1] if theirs else (None, None)
    text = [show.format(v) if v is not None and not callable(show) else "" for v in (value, peer_value)] if show else ["", ""]
    return task, *text, seconds / per, peer_seconds / per if peer_seconds else None, note


def duration(seconds):
    """Return seconds as text with a unit."""
    if seconds is None:
        return ""
    for scale, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def table(rows):
    """Return the rows as aligned text."""
    head = ("task", "ours", "peer", "our time", "peer time", "peer/ours", "note")
    body = [
        (task, ours, theirs, duration(t), duration(s), f"{s / t:.1f}" if s else "", note) for task, ours, theirs, t, s, note in rows
    ]
    widths = [max(len(r[i]) for r in [head, *body]) for i in range(len(head))]
    align = ["<", "<", "<", ">", ">", ">", "<"]
    return "\n".join("  ".join(f"{c:{a}{w}}" for c, a, w in zip(r, align, widths)).rstrip() for r in [head, *body])
