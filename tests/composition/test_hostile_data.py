"""Saved data that no `to_dict` wrote: damaged or hostile files raise ValueError, and the command answers in one line."""

import copy
import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shufflebounds import DominatingPair, PrivacyProfile
from shufflebounds.cli import main
from shufflebounds.composition import Ledger, LedgerError, from_dict, ledger, to_dict
from shufflebounds.mechanisms import FiniteRandomizer, GaussianMechanism, KaryResponse, LaplaceMechanism, Rappor, RatioBounded
from shufflebounds.profile.saving import MOST_NESTED
from shufflebounds.sampling import RandomAllocation, ReplaceOne, WithoutReplacement
from shufflebounds.shuffle import (
    BinomialNoise,
    ClearReports,
    FlippedReports,
    PersonalizedBits,
    PersonalizedClones,
    RealSum,
    Shuffled,
    ShuffledBits,
    ShuffledHistogram,
    StrongerClones,
    ZeroSum,
)

SAVED = [
    to_dict(profile)
    for profile in (
        GaussianMechanism(1.5), LaplaceMechanism(0.1).subsampled(0.3), KaryResponse(5, 1.0), Rappor(0.5),
        FiniteRandomizer([[0.25, 0.75], [0.5, 0.5]]), WithoutReplacement(GaussianMechanism(1.0), 10, 3),
        RandomAllocation(GaussianMechanism(1.0), 10), ReplaceOne(GaussianMechanism(1.0).subsampled(0.1)),
        ShuffledBits(100, 0.25, ones=3), BinomialNoise(100, 0.5), ClearReports(100, 10),
        FlippedReports(100, 0, 4, 0.1, view="sums"), RealSum(100, 50.0, 4), ZeroSum(100, 0.1),
        ShuffledHistogram(1000, 4, 0.1), PersonalizedBits([1.0, 2.0]), PersonalizedClones(0.25, [0.3, 0.2]),
        Shuffled(KaryResponse(3, 1.0), 100, inputs=None), Shuffled(RatioBounded(3.0, 0.4, 3.0), 100),
        ClearReports(100, 10).for_group(3), StrongerClones(100, 1.0).self_compose(3).compose(GaussianMechanism(3.0)),
        DominatingPair.from_pmfs(np.log([0.5, 0.5]), [-np.inf, 0.0]),
    )
]

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.integers(-(10**320), 10**320), st.floats(), st.text(max_size=5),
    st.sampled_from(["inf", "uniform", "sums", "_UpperPair", "MassPair", "OfMechanism", *(data["profile"] for data in SAVED)]),
)
JSON = st.recursive(
    SCALARS,
    lambda part: st.one_of(
        st.lists(part, max_size=3),
        st.dictionaries(st.sampled_from(["profile", "profile_", "float", "users", "sigma", "factors", "é"]), part, max_size=3),
        st.builds(lambda value: {"float": value}, part),
    ),
    max_leaves=6,
)


def places(data):
    """Return every container in the data with the keys of its entries."""
    entries = list(data.items()) if isinstance(data, dict) else list(enumerate(data)) if isinstance(data, list) else []
    return [(data, key) for key, _ in entries] + [place for _, part in entries for place in places(part)]


@st.composite
def damaged(draw):
    data = copy.deepcopy(draw(st.sampled_from(SAVED)))
    for _ in range(draw(st.integers(1, 2))):
        found = places(data)
        if not found:
            break
        where, key = draw(st.sampled_from(found))
        kind = draw(st.sampled_from(["replaced", "replaced", "removed", "added"]))
        if kind == "removed":
            del where[key]
        elif kind == "added" and isinstance(where, dict):
            where[draw(st.text(max_size=8))] = draw(JSON)
        else:
            where[key] = draw(JSON)
    return data


@pytest.mark.filterwarnings("ignore::UserWarning")
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.one_of(JSON, damaged(), damaged(), damaged()))
def test_bad_data_raises_value_errors_alone(data):
    for read in (from_dict, PrivacyProfile.from_dict, Ledger.from_dict):
        try:
            made = read(data)
        except ValueError:
            continue
        assert to_dict(made)["profile"] in {*(data["profile"] for data in SAVED), "Composition", "Subsampled", "Clones"}


def nested(levels):
    data = {"profile": "GaussianMechanism", "sigma": 1.0}
    for _ in range(levels):
        data = {"profile": "Subsampled", "mechanism": data, "rate": 0.5}
    return data


HOSTILE = [
    [], {"profile": []}, {"profile": {}},
    {"profile": "_UpperPair", "mechanism": {"profile": "GaussianMechanism", "sigma": 1.0}, "steps": 4},
    {"profile": "MassPair", "p": [0.5, 0.5], "q": [1.0, 0.0]}, {"profile": "_ListedPair", "log_p": [0.0], "log_q": [0.0]},
    {"profile": "DominatingPair"}, {"profile": "DominatingPair", "log_p": [0.0, 0.0], "log_q": [0.0]},
    *({"profile": "GaussianMechanism", "sigma": {"float": value}} for value in (None, [1], 10**400, "1.5", {}, True)),
    {"profile": "GaussianMechanism", "sigma": 10**400}, {"profile": "GaussianMechanism", "sigma": 1.0, 3: 1}, nested(600),
    {"profile": "GaussianMechanism", "sigma": {"profile": "GaussianMechanism", "sigma": 1.0}},
]


@pytest.mark.parametrize("data", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_data(data, tmp_path, capsys):
    with pytest.raises(ValueError, match=r"profile|DominatingPair|sigma|float|log_p"):
        from_dict(data)
    if isinstance(data, dict) and all(isinstance(key, str) for key in data):
        answer_to(json.dumps(data), tmp_path, capsys)


def answer_to(text, tmp_path, capsys):
    """Assert that the command answers a file with one line and the exit code 2."""
    file = tmp_path / "hostile.json"
    file.write_text(text)
    with pytest.raises(SystemExit) as ended:
        main(["epsilon", "--compose", str(file), "--delta", "1e-6"])
    assert ended.value.code == 2
    told = capsys.readouterr().err.strip().splitlines()
    assert "hostile.json" in told[-1]
    assert "Traceback" not in "".join(told)


TEXTS = [
    "[" * 100_000, '{"a":' * 100_000, "[" * 600 + "]" * 600, "[3]", "[[]]", "{}", '{"entries": []}',
    '{"entries": 3, "form": 1, "eps": 1, "delta": 1e-6, "sha256": "x"}',
    '{"profile": {"profile": "Clones", "users": 9, "local_eps": 1}, "times": [2]}',
]


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_the_command_answers_in_one_line(text, tmp_path, capsys):
    answer_to(text, tmp_path, capsys)


def test_the_deepest_profile_is_read():
    inner = GaussianMechanism(1.0).subsampled(0.1).self_compose(2).compose(LaplaceMechanism(1.0).subsampled(0.5))
    profile = ReplaceOne(inner).self_compose(3)
    data = to_dict(profile)
    assert from_dict(data) == profile


@pytest.mark.parametrize("levels", [MOST_NESTED, MOST_NESTED + 1, 100])
def test_deep_lists(levels):
    matrix = 0.5
    for _ in range(levels):
        matrix = [matrix]
    with pytest.raises(ValueError, match="levels deep" if levels > MOST_NESTED else "matrix"):
        from_dict({"profile": "FiniteRandomizer", "matrix": matrix})


def entry(profile, times):
    return [{"profile": profile, "times": times, "note": ""}]


@pytest.mark.parametrize("entries", [3, [3], [{}], entry(SAVED[0], 1.5), entry(nested(100), 1), entry({"profile": []}, 1)])
def test_entries_of_a_ledger(entries):
    body = {"form": ledger.FORM, "eps": 1.0, "delta": 1e-6, "entries": entries}
    with pytest.raises(LedgerError):
        Ledger.from_dict({**body, "sha256": ledger._digest(body)})
