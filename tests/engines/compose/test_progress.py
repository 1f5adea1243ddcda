"""Long computations show their elapsed time on a terminal, and evaluate delta in batches."""

import io
import json
from pathlib import Path

import pytest

from shufflebounds import shuffle
from shufflebounds.cli.output import interruptible
from shufflebounds.mechanisms import GaussianMechanism
from shufflebounds.profile.extend import DominatingPairInfo, Sampling, least_parameter
from tests.examples import EXAMPLES


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


def work(clock, seconds, step=0.1):
    """Search for a parameter; each profile that is tried takes `step` seconds, until `seconds` have passed."""
    end, (few, enough) = clock[0] + seconds, map(GaussianMechanism, (0.5, 2.0))

    def build(value):
        clock[0] += step * (clock[0] + step / 2 < end)
        return enough if value >= 0.3 else few

    assert least_parameter(build, 1e-300, 1.0, 1.0, 0.1) == pytest.approx(0.3, rel=1e-9)


def test_the_elapsed_time_is_shown_after_two_seconds(clock, monkeypatch):
    monkeypatch.setattr("sys.stderr", stream := Terminal())
    work(clock, 1.8)
    assert stream.getvalue() == ""
    work(clock, 2.4)
    assert set(stream.getvalue().split("\r\033[K")) == {"", "calibrate: 2 s so far; Ctrl-C stops"}
    assert stream.getvalue().endswith("\r\033[K")


def test_elsewhere_than_on_a_terminal_the_progress_is_logged(clock, monkeypatch, caplog):
    monkeypatch.setattr("sys.stderr", stream := io.StringIO())
    work(clock, 60, step=1)
    assert caplog.messages == []
    with caplog.at_level("INFO", "shufflebounds"):
        work(clock, 1.75, step=0.125)
        assert caplog.messages == []
        work(clock, 60, step=1)
    assert caplog.messages == [f"calibrate: {seconds} s so far; Ctrl-C stops" for seconds in (2, 4, 8, 16, 32)]
    assert stream.getvalue() == ""


def test_the_elapsed_time_is_shown_on_an_open_terminal_only(clock, monkeypatch):
    monkeypatch.setattr("sys.stderr", stream := io.StringIO())
    work(clock, 5)
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    # The command shows its own progress.
    interruptible.watched(lambda: work(clock, 5), "noise")
    assert stream.getvalue() == terminal.getvalue() == ""
    monkeypatch.setattr("sys.stderr", closed := io.StringIO())
    closed.close()
    work(clock, 5)


@pytest.mark.parametrize("question", [
    lambda p: p.epsilon([1e-6, 1e-7]), lambda p: p.delta(1.0), lambda p: p.loss_tail(1.0), lambda p: p.rdp(2.0),
    lambda p: p.gdp_mu(), lambda p: p.tradeoff().beta(0.1), lambda p: p.tradeoff().beta([i / 100 for i in range(1, 100)]),
])
def test_every_question_is_announced_when_it_takes_long(question, monkeypatch):
    clock = [0.0]

    def monotonic():
        # Every call of the clock advances it by one second.
        clock[0] += 1.0
        return clock[0]

    monkeypatch.setattr("time.monotonic", monotonic)
    monkeypatch.setattr("sys.stderr", stream := Terminal())
    question(shuffle.FlippedReports(20, 3, 3, 0.2, view="sums"))
    assert "Ctrl-C stops" in stream.getvalue()
    assert stream.getvalue().endswith("\r\033[K")


def counted():
    """Return a divergence function, and a list to which it appends the number of values of each call."""
    asked = []

    def hockey_stick(eps):
        asked.append(eps.size)
        value = -1 - 5 * eps
        return value, value

    return hockey_stick, asked


def test_dear_values_are_asked_in_pieces():
    hockey_stick, asked = counted()
    own, _ = DominatingPairInfo(hockey_stick, sampling=Sampling(0.02)).samples(-60.0)
    # 32 values of .02 s take less than a second, so that Ctrl-C takes effect within a second.
    assert max(asked) <= 32
    assert own.eps.size > 10


def test_table_of_costs_has_every_class():
    kept = sorted((Path(__file__).parents[3] / "benchmarks" / "results").glob("compositions-*.json"))
    if not kept:
        pytest.skip("the measurements are not installed")
    rows = " ".join(row[0] for row in json.loads(kept[-1].read_text(encoding="utf-8"))["tables"]["protocols"]["rows"])
    classes = {name for module, name in (key.split(".") for key in EXAMPLES) if module in ("shuffle", "mechanisms", "sampling")}
    # A Shuffled profile is written as a call of the method `shuffled`. The classes of pairs stand for their mechanisms,
    # ReplaceOne stands for the composition inside it, and ShuffledBatches is timed by benchmarks/compared/arrays.py.
    classes = classes - {"Shuffled", "AllocationPair", "SampledPair", "ReplaceOne", "ShuffledBatches"} | {".shuffled("}
    assert {name for name in classes if name not in rows} == set()
