"""``pytest benchmarks`` runs the benchmarks; with ``--record`` it also keeps their medians in results/, with machine and date."""

import pytest
from keeping import keep


def pytest_addoption(parser):
    """Add --record."""
    parser.addoption("--record", action="store_true", help="keep the medians in benchmarks/results/")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """Undo the default of the project's own tests, which skip benchmarks."""
    config.option.benchmark_skip = False


def pytest_sessionfinish(session):
    """Keep the seconds of every benchmark, where asked."""
    measured = session.config._benchmarksession.benchmarks
    if session.config.getoption("--record") and measured:
        seconds = {b.fullname.rpartition("/")[2]: {"median": b.stats.median, "least": b.stats.min} for b in measured}
        keep("bench", {"seconds": seconds})
