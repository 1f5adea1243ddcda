"""Measured run times enter predictions only: when they change, no bound changes."""

from dataclasses import replace

import pytest

from shufflebounds import mechanisms, shuffle
from shufflebounds.composing.pair_info import DominatingPairInfo

PROFILES = {
    "bits": lambda: shuffle.ShuffledBits(300, 0.2),
    "clones": lambda: shuffle.StrongerClones(10**4, 2.0),
    "personal": lambda: shuffle.PersonalizedBits([0.5, 1.0, 2.0] * 5, bits=[0, 1, 1] * 5),
    "ratios": lambda: shuffle.VariationRatio(1000, 3.0, 0.3, 3.0),
    "shuffled": lambda: shuffle.Shuffled(mechanisms.KaryResponse(5, 1.0), 1000),
    "histogram": lambda: shuffle.ShuffledHistogram(500, 10, 0.1),
}


def scaled(known, factor):
    """Return the pair's information (DominatingPairInfo) with all measured run times multiplied by the factor."""
    return replace(
        known, seconds=factor * known.predicted, setup=factor * known.setup,
        attained=tuple(scaled(one, factor) for one in known.attained),
        parts=tuple((scaled(one, factor), count) for one, count in known.parts),
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("factor", [0.03, 30.0])
def test_measured_times_move_no_answer(name, factor, monkeypatch):
    plain = PROFILES[name]().self_compose(4)
    predicted = plain.cost().seconds
    before = [plain.log_delta(1.0, bound=bound) for bound in ("lower", "upper")]
    kind = type(PROFILES[name]())
    made = kind._pair_info
    monkeypatch.setattr(kind, "_pair_info", lambda self: scaled(made(self), factor))
    other = PROFILES[name]().self_compose(4)
    assert isinstance(other.factors[0][0]._pair_info(), DominatingPairInfo)
    # The predicted run time changes, except for "clones" and "personal", whose predictions do not use the measured times.
    assert other.cost().seconds != predicted or name in ("clones", "personal")
    assert [other.log_delta(1.0, bound=bound) for bound in ("lower", "upper")] == before
