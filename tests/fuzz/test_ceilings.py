"""Calls that once took too much memory or time now return, or raise an error that states the limit, within 1 GB and 10 or 25 s."""

import subprocess
import sys

import pytest

if not sys.platform.startswith("linux"):
    pytest.skip("limits of memory are those of Linux", allow_module_level=True)

from tests.fuzz import ceilings


def limited(names, seconds):
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.ceilings", "1", str(seconds), *names], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    return dict(line.split(": ", 1) for line in done.stdout.splitlines())


@pytest.mark.slow
def test_quick_ones_together():
    said = limited([], 10)
    assert list(said) == list(ceilings.QUICK)
    refused = {name for name, text in said.items() if text.startswith("refused")}
    assert refused == {
        "scales of a subnormal budget", "a window of 2**53 bits", "messages of 2**53 bins", "messages of 2**53 fakes",
        "2**53 releases",
    }
    for name in refused - {"scales of a subnormal budget"}:
        # The message states how much memory the call would need.
        assert any(unit in said[name] for unit in ("GB", "MiB"))


@pytest.mark.slow
@pytest.mark.parametrize("name", list(ceilings.LONGER))
def test_longer_ones(name):
    # The errors for every dataset of nine oracles at delta = 1e-300 take longer than the other calls.
    assert limited([name], 25)[name].startswith("answered")
