"""The runnable examples with their documented parameters."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from shufflebounds.shuffle import ShuffledHistogram

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def health():
    pytest.importorskip("statsmodels")
    spec = importlib.util.spec_from_file_location("health_survey", ROOT / "examples" / "health_survey.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def lines(health):
    return health.run(1.0, 1e-6, 0)


@pytest.mark.slow
def test_every_protocol_meets_the_target(health, lines):
    assert len(lines) == len(health.PROTOCOLS)
    for line in lines:
        assert line.protocol.delta(1.0) <= 1e-6


@pytest.mark.slow
def test_errors_keep_to_the_law_of_these_data(lines):
    for line in lines:
        # Each assertion fails by chance in one of a million runs, and the seed is fixed.
        assert 0 < abs(line.error) <= line.protocol.error_quantile(1e-6, line.known)


@pytest.mark.slow
def test_empty_bins_are_exactly_zero(lines):
    line = next(line for line in lines if isinstance(line.protocol, ShuffledHistogram))
    empty = line.truth == 0
    assert empty.sum() > 50
    assert not line.estimate[empty].any()
    assert (line.estimate[line.truth > 100] > 0).all()


@pytest.mark.slow
def test_any_data_is_no_better_than_these(lines):
    for line in lines:
        assert line.protocol.error_quantile(0.05) >= line.protocol.error_quantile(0.05, line.known, bound="lower")


@pytest.mark.slow
def test_the_table_of_the_page(health, capsys):
    """Output that does not depend on the random generator is equal to the output that the page shows."""
    assert health.main([]) == 0
    printed = capsys.readouterr().out.splitlines()
    page = (ROOT / "docs" / "end_to_end.md").read_text(encoding="utf-8").splitlines()
    shown = page[page.index("$ python examples/health_survey.py") + 1 :][: len(printed)]
    for ours, theirs in zip(printed, shown):
        ours, theirs = ours.split("  "), theirs.split("  ")
        ours, theirs = [cell.strip() for cell in ours if cell], [cell.strip() for cell in theirs if cell]
        assert ours[:4] == theirs[:4]
        assert ours[-2:] == theirs[-2:]


@pytest.mark.slow
def test_targets_out_of_reach_are_named(health, capsys):
    run = health.run(0.05, 1e-9, 0)
    out = capsys.readouterr().out
    assert len(run) == len(health.PROTOCOLS) - 2
    assert "zero_sum: delta=1e-09 cannot be met at eps=0.05" in out
    assert "users would do" in out


@pytest.mark.slow
def test_the_survey_is_the_one_described(health):
    data = health.survey()
    assert data.limited.size == 20190
    assert set(np.unique(data.health)) == {0, 1, 2, 3}
    assert data.visits.max() == 77
    assert data.diseases.min() >= 0
    assert data.diseases.max() == 1
