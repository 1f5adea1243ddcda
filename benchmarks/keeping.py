"""Stores results as benchmarks/results/<kind>-<date>.json, with the machine and the versions."""

import json
import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import numpy
import scipy

import shufflebounds

RESULTS = Path(__file__).parent / "results"


def processor():
    """Return the name of the processor, as the system reports it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def commit():
    """Return the commit that is measured, or None outside of a checkout."""
    try:
        found = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True, cwd=Path(__file__).parent)
    except (OSError, subprocess.CalledProcessError):
        return None
    return found.stdout.strip()


def keep(kind, measured):
    """Write the measured values to results/, with date, commit, machine and versions."""
    now = datetime.now(UTC)
    kept = {
        "date": now.isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": {"processor": processor(), "cores": os.cpu_count(), "system": platform.platform(), "load": os.getloadavg()[0]},
        "versions": {"shufflebounds": shufflebounds.__version__, "python": platform.python_version(),
                     "numpy": numpy.__version__, "scipy": scipy.__version__},
        **measured,
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{kind}-{now:%Y-%m-%dT%H%M}.json").write_text(json.dumps(kept, indent=1) + "\n")
