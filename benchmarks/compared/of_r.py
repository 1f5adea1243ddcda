"""Tails against R, if it is installed: R measures its own CPU time for the same arguments."""

import json
import shutil
import subprocess

import numpy as np
from measuring import row

from compared.tail_laws import binomial_points
from shufflebounds import tails

SCRIPT = """
x <- matrix(scan("stdin", quiet = TRUE), nrow = 3)
k <- x[1, ]; n <- x[2, ]; p <- x[3, ]
times <- sapply(1:7, function(i) system.time({JOB})[["user.self"]])
v <- {JOB}
cat(sprintf("[%.17g, [%s]]", median(times), paste(sprintf("%.17g", v), collapse = ",")))
"""
JOBS = {
    "binom_logpmf": "stats::dbinom(k, n, p, log = TRUE)",
    "binom_logcdf": "stats::pbinom(k, n, p, log.p = TRUE)",
    "binom_logsf": "stats::pbinom(k, n, p, lower.tail = FALSE, log.p = TRUE)",
}
ELEMENTS = 200_000  # The clock of R counts milliseconds, for which this number of elements suffices.


def answered(program, job, arguments):
    """Return R's median CPU seconds and its values."""
    text = " ".join(f"{x:.17g}" for x in np.stack(arguments, axis=1).ravel())
    command = [program, "-e", SCRIPT.replace("{JOB}", job).replace("stdin", "/dev/stdin")]
    found = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
    seconds, values = json.loads(found.replace("-Inf", "-Infinity").replace("NaN", "NaN"))
    return seconds, np.array(values)


def binomial():
    """Return rows for the tails against R's dbinom and pbinom, in seconds per element."""
    program = shutil.which("Rscript")
    if program is None:
        return []
    rows = []
    for spread, where in (("log-uniform", "n log-uniform 10..1e6"), ("any k", "n = 1e6, any k")):
        k, n, p = binomial_points(ELEMENTS, spread)
        for name, job in JOBS.items():
            ours = getattr(tails, name)
            seconds, values = answered(program, job, (k, n, p))
            mine = ours(k, n, p)
            finite = np.isfinite(mine) & np.isfinite(values)
            note = f"R, largest |difference| {np.abs(mine[finite] - values[finite]).max():.1e}"
            task, value, _, own, _, _ = row(f"{name}, {where}", lambda f=ours, k=k, n=n, p=p: f(k, n, p), show="", per=k.size)
            rows.append((task, value, "", own, seconds / k.size, note))
    return rows
