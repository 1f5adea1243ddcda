"""``pytest benchmarks`` runs the benchmarks; with ``--record`` it also keeps their medians in results/, with machine and date."""

import json
import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import numpy
import pytest
import scipy

import shufflebounds

RESULTS = Path(__file__).parent / "results"


def pytest_addoption(parser):
    """Add --record."""
    parser.addoption("--record", action="store_true", help="keep the medians in benchmarks/results/")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """Undo the default of the project's own tests, which skip benchmarks."""
    config.option.benchmark_skip = False


def processor():
    """Return the name of the processor, as the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def commit():
    """Return the commit that is measured, or None outside a checkout."""
    try:
        found = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True, cwd=Path(__file__).parent)
    except (OSError, subprocess.CalledProcessError):
        return None
    return found.stdout.strip()


def pytest_sessionfinish(session):
    """Write one file a run: seconds of every benchmark, and what they were measured on."""
    measured = session.config._benchmarksession.benchmarks
    if not session.config.getoption("--record") or not measured:
        return
    now = datetime.now(UTC)
    kept = {
        "date": now.isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": {"processor": processor(), "cores": os.cpu_count(), "system": platform.platform(), "load": os.getloadavg()[0]},
        "versions": {"shufflebounds": shufflebounds.__version__, "python": platform.python_version(),
                     "numpy": numpy.__version__, "scipy": scipy.__version__},
        "seconds": {b.fullname.rpartition("/")[2]: {"median": b.stats.median, "least": b.stats.min} for b in measured},
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{now:%Y-%m-%dT%H%M}.json").write_text(json.dumps(kept, indent=1) + "\n")
