"""The clock of benchmarks/derived_answers.py, which measures while a timer of CPU time is armed."""

import importlib
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"

pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="needs the source tree")


def test_short_computations_have_times_above_zero(monkeypatch):
    """While the timer is armed, `time.process_time` moves in ticks of 4 ms on Linux: short computations would take 0 s."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    derived = importlib.import_module("derived_answers")
    times = [derived.asked("mechanisms.GaussianMechanism", seed, "log_delta")[0] for seed in range(50)]
    assert min(times) > 0
