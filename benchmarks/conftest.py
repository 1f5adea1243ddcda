"""Collect bench_*.py here; run with ``pytest benchmarks --benchmark-only``."""

import pytest


def pytest_collect_file(file_path, parent):
    """Collect the benchmark files, which the suite's own patterns leave out."""
    if file_path.suffix == ".py" and file_path.name.startswith("bench_"):
        return pytest.Module.from_parent(parent, path=file_path)
    return None
