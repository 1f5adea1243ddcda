"""``pytest benchmarks`` runs the benchmarks; with ``--record`` it also writes their medians to results/, with machine and date."""

import pytest
from keeping import keep


def pytest_addoption(parser):
    """Add the option --record."""
    parser.addoption("--record", action="store_true", help="keep the medians in benchmarks/results/")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """Enable benchmarks, which the configuration of the project's tests disables."""
    config.option.benchmark_skip = False


def pytest_sessionfinish(session):
    """Write the times of every benchmark to results/, with --record."""
    measured = session.config._benchmarksession.benchmarks
    if session.config.getoption("--record") and measured:
        seconds = {b.fullname.rpartition("/")[2]: {"median": b.stats.median, "least": b.stats.min} for b in measured}
        keep("bench", {"seconds": seconds})
