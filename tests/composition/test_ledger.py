"""Saved profiles, and ledgers, which record releases and their total guarantee."""

import json
import subprocess
import sys

import numpy as np
import pytest

from shufflebounds import DominatingPair, PrivacyProfile
from shufflebounds.composition import BudgetExceededError, Ledger, LedgerError, from_dict, to_dict
from shufflebounds.mechanisms import DiscreteGaussianMechanism, GaussianMechanism, KaryResponse, LaplaceMechanism
from shufflebounds.sampling import RandomAllocation, WithoutReplacement
from shufflebounds.shuffle import BinomialNoise, Clones, ShuffledBits, StrongerClones

PROFILES = [
    GaussianMechanism(1.5),
    LaplaceMechanism(0.1).subsampled(0.3),
    KaryResponse(5, 1.0),
    DiscreteGaussianMechanism(2.0, 3),
    WithoutReplacement(GaussianMechanism(1.0), 10, 3),
    RandomAllocation(GaussianMechanism(1.0), 10),
    ShuffledBits(100, 0.25, ones=3),
    BinomialNoise(100, 0.5),
    Clones(100, 1.0),
    StrongerClones(100, 1.0).self_compose(3).compose(GaussianMechanism(3.0)),
    DominatingPair.from_pmfs(np.log([0.5, 0.5]), [-np.inf, 0.0]),
]


@pytest.mark.parametrize("profile", PROFILES, ids=lambda p: type(p).__name__)
def test_plain_data_and_back(profile):
    text = json.dumps(to_dict(profile))
    again = from_dict(json.loads(text))
    assert again == profile
    assert repr(again) == repr(profile)


def test_the_same_by_methods():
    profile = LaplaceMechanism(0.1).subsampled(0.3).self_compose(3)
    assert profile.to_dict() == to_dict(profile)
    assert PrivacyProfile.from_dict(profile.to_dict()) == profile == type(profile).from_dict(profile.to_dict())
    with pytest.raises(ValueError, match="no LaplaceMechanism"):
        LaplaceMechanism.from_dict(profile.to_dict())


@pytest.mark.parametrize(
    "data",
    [{}, [], {"profile": "os"}, {"profile": "GaussianMechanism"}, {"profile": "GaussianMechanism", "sigma": 1, "x": 2},
     {"profile": "GaussianMechanism", "sigma": -1}],
)
def test_what_is_no_profile(data):
    with pytest.raises(ValueError, match=r"profile|made of|sigma"):
        from_dict(data)


def test_what_cannot_be_saved():
    with pytest.raises(TypeError, match="PrivacyProfile"):
        to_dict("gaussian")


@pytest.fixture(scope="module")
def account():
    out = Ledger(1.0, 1e-6)
    out.spend(GaussianMechanism(20.0), times=4, note="weekly counts")
    out.spend(GaussianMechanism(30.0))
    return out


@pytest.mark.slow
def test_spending(account):
    assert account.spent == account.profile.epsilon(1e-6)
    assert account.left == 1.0 - account.spent > 0
    before = account.entries
    with pytest.raises(BudgetExceededError, match="left"):
        account.spend(GaussianMechanism(2.0))
    assert account.entries == before
    assert account.affords(GaussianMechanism(100.0))
    assert Ledger(1.0, 1e-6).spent == 0


def test_a_saved_filter_is_kept(tmp_path):
    for keywords in ({"filter": "gdp"}, {"filter": "rdp"}, {"filter": "rdp", "order": 15.0}):
        ledger = Ledger(1.0, 1e-6, **keywords)
        ledger.spend(GaussianMechanism(20.0), times=4)
        ledger.save(tmp_path / "ledger.json")
        again = Ledger.load(tmp_path / "ledger.json")
        assert (again.filter, again.order, again.spent) == (ledger.filter, ledger.order, ledger.spent)
        assert again.affords(GaussianMechanism(20.0), 8) is ledger.affords(GaussianMechanism(20.0), 8) is True
        assert not again.affords(GaussianMechanism(20.0), 19)


@pytest.mark.parametrize("keywords", [{"filter": "pure"}, {"filter": "rdp", "order": 1.0}, {"filter": "gdp", "order": 2.0},
                                      {"order": 2.0}, {"filter": "rdp", "order": np.inf}, {"filter": "rdp", "order": 5.0}])
def test_filters_that_do_not_exist(keywords):
    with pytest.raises(ValueError, match=r"filter=|order="):
        Ledger(1.0, 1e-6, **keywords)


@pytest.mark.slow
def test_saved_and_loaded(tmp_path, account):
    path = tmp_path / "ledger.json"
    account.save(path)
    again = Ledger.load(path)
    assert (again.budget, again.entries, again.spent) == (account.budget, account.entries, account.spent)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("old", "new"),
    [('"times": 4', '"times": 1'), ('"delta": 1e-06', '"delta": 1e-05'), ('"form": 2', '"form": 3'),
     ('"filter": null', '"filter": "gdp"'), ('"sha256"', '"sha"'), ("{", ""), ("weekly", "daily")],
)
def test_a_changed_file_is_refused(tmp_path, account, old, new):
    path = tmp_path / "ledger.json"
    account.save(path)
    text = path.read_text().replace(old, new, 1)
    path.write_text(text)
    with pytest.raises(LedgerError):
        Ledger.load(path)
    assert path.read_text() == text


@pytest.mark.parametrize(("eps", "delta"), [(0, 0.5), (1, 0), (1, 1), (np.nan, 0.5)])
def test_bad_budgets(eps, delta):
    with pytest.raises(ValueError, match=r"eps=|delta="):
        Ledger(eps, delta)


@pytest.mark.slow
def test_read_before_anything_is_loaded():
    """A saved profile can be read before its subpackage was imported, although subpackages are imported on first use."""
    code = "from shufflebounds.composition import from_dict; print(from_dict({'profile': 'Clones', 'users': 10, 'local_eps': 1.0}))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out == "Clones(users=10, local_eps=1.0)\n"


def test_a_missing_file_is_named_with_what_to_do(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"path='.*absent\.json' is no existing file: pass the path .* Ledger\.save"):
        Ledger.load(tmp_path / "absent.json")


def test_a_ledger_of_another_form_is_named_as_such(account):
    # A later form may have other fields, so the form is read first.
    with pytest.raises(LedgerError, match="the ledger has form 3: this version reads form 2"):
        Ledger.from_dict({"form": 3, "budget": [1.0, 1e-6]})
    with pytest.raises(LedgerError, match="'form'\\) is missing"):
        Ledger.from_dict({key: value for key, value in account.to_dict().items() if key != "form"})
