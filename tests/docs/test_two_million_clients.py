"""The example with two million clients: parts in dask and in processes give one estimate, and its error keeps to the quantiles."""

import importlib.util
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

ROOT = Path(__file__).parents[2]
RUNS, BETA = 100, 0.05


@pytest.fixture(scope="module")
def example():
    pytest.importorskip("statsmodels")
    pytest.importorskip("dask.array")
    # Processes that are spawned import the module by its name.
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "examples"))
        spec = importlib.util.spec_from_file_location("two_million_clients", ROOT / "examples" / "two_million_clients.py")
        module = importlib.util.module_from_spec(spec)
        patch.setitem(sys.modules, "two_million_clients", module)
        spec.loader.exec_module(module)
        yield module


@pytest.fixture(scope="module")
def values(example):
    return example.clients()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kary-response", "flipped-reports", "histogram"])
def test_the_stated_quantile_holds_in_most_runs(example, values, name):
    protocol, truth = example.PROTOCOLS[name](), np.bincount(values, minlength=example.BINS)
    quantile = protocol.error_quantile(BETA, truth, users=example.USERS, of="any")
    whole = {"flipped-reports", "histogram"}
    misses = 0
    for run in range(RUNS):
        # Rows of 21 small numbers for each client take a second to draw, so these counts are simulated without rows.
        counts = protocol.simulate(values, rng=run) if name in whole else example.with_dask(protocol, values, run)
        misses += np.abs(protocol.estimate(counts=counts, users=example.USERS) - truth).max() > quantile
    # If an error exceeds the quantile with probability at most 5 %, more than the upper limit of the runs do so with probability at
    # most 1e-4. The quantile is close to the exact one of these data, up to a union bound, so some runs exceed it.
    assert 0 < misses <= stats.binom.isf(1e-4, RUNS, BETA)


# the parts of the histogram are counted as those of clear reports
@pytest.mark.slow
@pytest.mark.parametrize("name", ["kary-response"])
def test_a_pool_that_is_killed_once_gives_the_same_counts(example, values, name, tmp_path):
    protocol = example.PROTOCOLS[name]()
    expected = example.with_dask(protocol, values, 5)
    marker = tmp_path / "killed"
    counts = example.with_processes(protocol, values, 5, task=partial(example.killed_once, marker=str(marker)))
    assert marker.exists()
    np.testing.assert_array_equal(counts, expected)
    assert protocol.estimate(counts=counts, users=example.USERS).shape == (example.BINS,)


@pytest.mark.slow
def test_the_output_of_the_page(example, capsys):
    example.main(["--runs", "1"])
    printed = capsys.readouterr().out.splitlines()
    page = (ROOT / "docs" / "end_to_end.md").read_text(encoding="utf-8")
    assert "\n".join(printed[:2]) in page
    assert printed[2].startswith("run 0: largest error ")
