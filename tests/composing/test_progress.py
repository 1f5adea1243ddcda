"""Long compositions announce their run time on a terminal, and evaluate delta in batches."""

import io
import json
from pathlib import Path

import pytest

from shufflebounds import shuffle
from shufflebounds._progress import Cost, announced, elsewhere, tick
from shufflebounds.composing import DominatingPairInfo
from shufflebounds.composing.composer import Composer
from shufflebounds.shuffle import BinomialNoise
from tests.examples import EXAMPLES


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_only_long_work_on_a_terminal_is_announced(monkeypatch):
    for stream, cost, said in ((Terminal(), 60.0, True), (Terminal(), 1.0, False), (io.StringIO(), 60.0, False)):
        monkeypatch.setattr("sys.stderr", stream)
        with announced("curve", lambda cost=cost: Cost(cost, 2**27)), announced("value", lambda cost=cost: Cost(cost, 2**20)):
            tick()
        line = "\r\033[Kcurve: 0 s of about 60 s, at most 128 MiB; Ctrl-C stops\r\033[K"
        assert stream.getvalue() == (line if said else "")
    monkeypatch.setattr("sys.stderr", stream := Terminal())
    with elsewhere(), announced("curve", lambda: Cost(60.0, 1)):
        tick()
    assert stream.getvalue() == ""
    monkeypatch.setattr("sys.stderr", closed := io.StringIO())
    closed.close()
    with announced("curve", lambda: Cost(60.0, 1)):
        tick()


def test_work_of_unknown_length_is_announced_after_two_seconds(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("shufflebounds._progress.time.monotonic", lambda: now[0])
    monkeypatch.setattr("sys.stderr", stream := Terminal())

    @announced("curve")
    def work(seconds, cost):
        for _ in range(round(10 * seconds)):
            now[0] += 0.1
            tick()
        with announced("part", lambda: Cost(cost, 2**20)):
            tick()

    work(1.8, 1.0)
    assert stream.getvalue() == ""
    work(2.4, 1.0)
    assert set(stream.getvalue().split("\r\033[K")) == {"", "curve: 2 s so far; Ctrl-C stops"}
    assert stream.getvalue().endswith("\r\033[K")
    # A part whose run time is known is announced before it starts, under the name of the whole composition.
    monkeypatch.setattr("sys.stderr", stream := Terminal())
    work(0.0, 60.0)
    assert stream.getvalue() == "\r\033[Kcurve: 0 s of about 60 s, at most 1 MiB; Ctrl-C stops\r\033[K"


def test_a_failed_prediction_leaves_no_line(monkeypatch):
    monkeypatch.setattr("sys.stderr", stream := Terminal())

    def fails():
        raise RuntimeError("no prediction")

    with pytest.raises(RuntimeError, match="no prediction"), announced("curve", fails):
        pass
    with announced("curve", lambda: Cost(60.0, 1)):
        pass
    assert stream.getvalue().count("curve") == 1


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

    monkeypatch.setattr("shufflebounds._progress.time.monotonic", monotonic)
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
    own, _ = DominatingPairInfo(hockey_stick, effort=0.02).samples(-60.0)
    # 32 values of .02 s take less than a second, so that Ctrl-C takes effect within a second.
    assert max(asked) <= 32
    assert own.eps.size > 10


def test_costs():
    cheap = BinomialNoise(10**4, 0.5).self_compose(10).cost()
    assert cheap.seconds < 5
    assert 2**20 < cheap.memory < 2**30
    expensive = Composer([(DominatingPairInfo(lambda eps: (-eps - 1, -eps - 1), pure=50.0, effort=0.1), 10)], [], 1e-3)
    assert expensive.cost(-14.0, 1).seconds > 5
    expensive.bounds(3.0)
    # The values of the first call are cached.
    assert expensive.cost(-14.0, 1).seconds < 5


def test_predicted_values_are_those_asked_for():
    hockey_stick, asked = counted()
    known = DominatingPairInfo(hockey_stick, pure=5.0, effort=2e-3, single=True)
    predicted = known.expected / known.predicted
    Composer([(known, 10)], [[(known, 10)]], 1e-5).bounds(8.0)
    assert sum(asked) / 3 <= predicted <= 6 * sum(asked)


def test_table_of_costs_has_every_class():
    kept = sorted((Path(__file__).parents[2] / "benchmarks" / "results").glob("compositions-*.json"))
    if not kept:
        pytest.skip("the measurements are not installed")
    rows = " ".join(row[0] for row in json.loads(kept[-1].read_text(encoding="utf-8"))["tables"]["protocols"]["rows"])
    classes = {name for module, name in (key.split(".") for key in EXAMPLES) if module in ("shuffle", "mechanisms", "sampling")}
    # A Shuffled profile is written as a call of the method `shuffled`. The classes of pairs stand for their mechanisms, and
    # ReplaceOne stands for the composition inside it.
    classes = classes - {"Shuffled", "AllocationPair", "SampledPair", "ReplaceOne"} | {".shuffled("}
    assert {name for name in classes if name not in rows} == set()
