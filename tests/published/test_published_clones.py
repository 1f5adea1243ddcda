"""Closed forms of the clone bounds against reference values, their domains, and comparison with the smaller numerical bounds."""

import doctest
import inspect
import json
import math
import pickle
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shufflebounds import published, shuffle

REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "clones-and-personalised.json").read_text())
FORMS = {
    "eps_closed_fmt2021": published.clones_closed_form,
    "eps_closed_apple_code": published.clones_apple,
    "eps_closed_fmt2023": published.stronger_clones_closed_form,
}


@pytest.mark.parametrize("entry", [x for x in REFERENCE if x["quantity"] in FORMS], ids=lambda x: x["id"])
def test_reference(entry):
    p = entry["params"]
    try:
        value = FORMS[entry["quantity"]](p["n"], p["eps0"], p["delta"])
    except ValueError:
        # The reference table also has values outside of the domain of the theorem.
        assert p["eps0"] > math.log(p["n"] / (16 * math.log(4 / p["delta"])))
        return
    assert value == pytest.approx(float(entry["value"]), rel=1e-14)


@given(users=st.integers(100, 10**9), local_eps=st.floats(0.01, 8), log_delta=st.floats(-60, -2))
@settings(max_examples=25, deadline=None)
def test_closed_forms_are_above_the_numerical_bound(users, local_eps, log_delta):
    delta = math.exp(log_delta)
    for form, bound in (
        (published.clones_closed_form, shuffle.Clones),
        (published.clones_apple, shuffle.Clones),
        (published.stronger_clones_closed_form, shuffle.StrongerClones),
    ):
        try:
            value = form(users, local_eps, delta)
        except ValueError:
            continue
        assert value >= bound(users, local_eps).epsilon(delta, bound="lower")


def test_domains():
    with pytest.raises(ValueError, match=r"local_eps=4 must be <= 3\.76301"):
        published.clones_closed_form(10**4, 4.0, 1e-6)
    with pytest.raises(ValueError, match="no positive value"):
        published.stronger_clones_closed_form(10, 1.0, 1e-6)
    with pytest.raises(ValueError, match="delta=0"):
        published.clones_closed_form(10**4, 1.0, 0.0)


def test_every_form_has_a_verdict():
    for name in published.__all__:
        form = getattr(published, name)
        if isinstance(form, published.PrintedBound):
            assert form.verdict in ("proven", "unproven", "false")
            assert form.reason
            assert form.reference
            assert form.__name__ == name
            assert "Parameters" in form.__doc__


def test_every_example_runs_and_every_parameter_is_described():
    finder, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for bound in published.bounds():
        test = finder.get_doctest(bound.__doc__, {}, bound.__name__, None, None)
        assert len(test.examples) >= 2, bound
        runner.run(test, clear_globs=False)
        for name in inspect.signature(bound.formula).parameters:
            assert f"\n{name} : " in bound.__doc__
    assert runner.failures == 0


def test_bounds_pickle_to_themselves():
    for bound in published.bounds():
        assert pickle.loads(pickle.dumps(bound)) is bound
