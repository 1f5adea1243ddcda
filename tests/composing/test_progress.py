"""Long compositions are announced on a terminal, and evaluate their values in batches."""

import inspect
import io
import json
from pathlib import Path

import pytest

from shufflebounds import mechanisms, sampling, shuffle
from shufflebounds.composing import Composer, DominatingPairInfo
from shufflebounds.composing.progress import Cost, announced, elsewhere, tick
from shufflebounds.profile import PrivacyProfile
from shufflebounds.shuffle import BinomialNoise


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_only_long_work_on_a_terminal_is_announced(monkeypatch):
    for stream, cost, said in ((Terminal(), 60.0, True), (Terminal(), 1.0, False), (io.StringIO(), 60.0, False)):
        monkeypatch.setattr("sys.stderr", stream)
        with announced(Cost(cost, 2**27)), announced(Cost(cost, 2**20)):
            tick()
        line = "\r\033[Kcomposition: 0 s of about 60 s, at most 128 MiB; Ctrl-C stops\r\033[K"
        assert stream.getvalue() == (line if said else "")
    monkeypatch.setattr("sys.stderr", stream := Terminal())
    with elsewhere(), announced(Cost(60.0, 1)):
        tick()
    assert stream.getvalue() == ""


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
    # 32 values of .02 s, so that Ctrl-C takes effect within a second
    assert max(asked) <= 32
    assert own.eps.size > 10


def test_costs():
    cheap = BinomialNoise(10**4, 0.5).self_compose(10).cost()
    assert cheap.seconds < 5
    assert 2**20 < cheap.memory < 2**30
    expensive = Composer([(DominatingPairInfo(lambda eps: (-eps - 1, -eps - 1), pure=50.0, effort=0.1), 10)], [], 1e-3)
    assert expensive.cost.seconds > 5
    expensive.bounds(3.0)
    # the values are cached
    assert expensive.cost.seconds < 5


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
    kinds = {name: getattr(room, name) for room in (shuffle, mechanisms, sampling) for name in room.__all__}
    classes = {name for name, kind in kinds.items() if inspect.isclass(kind) and issubclass(kind, PrivacyProfile)}
    # a shuffled randomizer is written as it is made, and pairs are what their mechanisms compose of;
    # ReplaceOne stands for the composition inside it
    classes = classes - {"Shuffled", "AllocationPair", "SampledPair", "ReplaceOne"} | {".shuffled("}
    assert {name for name in classes if name not in rows} == set()
