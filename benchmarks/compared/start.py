"""The time that a command takes until its first result, in new processes, against the import of NumPy alone."""

import resource
import statistics
import subprocess
import sys

COMMAND = ["-m", "shufflebounds", "epsilon", "stronger-clones", "--users", "1e6", "--local-eps", "4", "--delta", "1e-6"]


def seconds(words):
    """Return the CPU seconds of all threads of one interpreter process, and the first line that it prints."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout.partition("\n")[0]


def start():
    """Return rows for one result of the command and for a plain import, against the import of NumPy."""
    asked = {"shufflebounds epsilon": COMMAND, "import shufflebounds": ["-c", "import shufflebounds"], "": ["-c", "import numpy"]}
    taken = {name: [] for name in asked}
    said = {}
    for _ in range(12):  # The first run of each is not counted, because it may write byte code.
        for name, words in asked.items():
            spent, said[name] = seconds(words)
            taken[name].append(spent)
    median = {name: statistics.median(times[1:]) for name, times in taken.items()}
    note = "a whole process; peer: python -c 'import numpy'"
    return [(name, said[name], "", median[name], median[""], note) for name in asked if name]
