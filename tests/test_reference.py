"""Every file of reference values has a generator, which reproduces a sample of its values; no generator uses the library."""

import importlib
import random
import re
import sys

import pytest

from tests.errors import REFERENCE, reference

pytest.importorskip("flint")
pytest.importorskip("mpmath")

# Frozen interfaces are written by tests/core/test_cython_abi.py, test_cython_tails.py and test_library.py.
INTERFACES = {"cython_abi", "cython_tails", "library_abi"}
REPRODUCED = {
    "survey": (60, 1000, r"^(?!.*(svt_|at_alpha_tight|gauss_|rnm_|compopt|mv_))"),
    "shuffled-bits": (60, 1000, r"(thm2|f_step|cheu|gdp|q4|b5|clear\.b|pub|CH50|left|right|rgap|var_)"),
    "randomizers": (12, 1000, r"matrix"),
    "clones-and-personalised": (12, 100, r""),
}
"""For each file, which cases are reproduced: (largest number of cases, largest number of users, pattern of the ids). Whole files
would take minutes."""


@pytest.fixture
def generator(monkeypatch):
    """Return the module of a generator, which may import modules of its folder."""
    monkeypatch.syspath_prepend(str(REFERENCE))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if name.startswith(("make_", "arbs")):
            del sys.modules[name]


def test_every_file_has_a_generator_that_names_it():
    texts = {path.name: path.read_text() for path in REFERENCE.glob("make_*.py")}
    for path in REFERENCE.glob("*.json"):
        if path.stem not in INTERFACES:
            assert [name for name, text in texts.items() if path.name in text.split('"""')[1]], path.name


def test_no_generator_uses_the_library():
    for path in [*REFERENCE.glob("make_*.py"), REFERENCE / "arbs.py"]:
        assert not re.search(r"^\s*(from|import) shufflebounds", path.read_text(), re.M), path.name


MADE_BY = {"survey": "make_survey", "shuffled-bits": "make_shuffled_bits", "randomizers": "make_randomizers",
           "clones-and-personalised": "make_personalized"}


def cheap(name):
    """Return a random sample of the fast cases."""
    most, users, pattern = REPRODUCED[name]
    cases = [case for case in reference(name) if re.search(pattern, case["id"]) and case["params"].get("n", 1) <= users]
    return random.Random(3).sample(cases, min(most, len(cases)))


@pytest.mark.slow
@pytest.mark.parametrize("name", MADE_BY)
def test_a_sample_is_made_anew(name, generator):
    module, arbs = generator(MADE_BY[name]), generator("arbs")
    cases = cheap(name)
    assert len(cases) >= 8
    assert [case["id"] for case in cases if not arbs.agrees(module.value(case), case["value"])] == []


@pytest.mark.slow
def test_a_sample_of_the_binomials_is_made_anew(generator):
    module = generator("make_binomial")
    cases = random.Random(3).sample(reference("binomial")["values"], 40)
    assert [case["id"] for case in cases if not module.agrees(case)] == []
