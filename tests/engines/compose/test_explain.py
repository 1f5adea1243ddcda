"""`Composition.explain` names the method, the grid and the bounds."""

import math
import re

import pytest

from shufflebounds import mechanisms, shuffle


@pytest.mark.parametrize(("composition", "eps", "fragments"), [
    (shuffle.BinomialNoise(10**3, 0.5).self_compose(10), 0.8, ["10 x BinomialNoise", "on a grid", "every release is one pair"]),
    (mechanisms.KaryResponse(10, 1.0).self_compose(3), 1.0, ["all 10 outcomes of all releases"]),
    (mechanisms.KaryResponse(10, 1.0).self_compose(1000), 400.0, ["a lattice that holds all losses", "step 1 "]),
    (mechanisms.GaussianMechanism(2.0).subsampled(0.1).self_compose(10), 0.5, ["the larger of both, with the record removed"]),
    (mechanisms.GaussianMechanism(0.8).subsampled(1e-3).self_compose(10), 5.0, ["log delta(5)"]),
    (shuffle.ShuffledBits(1000, 0.25).self_compose(1), 0.5, ["a single release"]),
    (mechanisms.RandomizedResponse(0.1).self_compose(4), 10.0, ["pure budgets is 0.4"]),
    (mechanisms.FiniteRandomizer([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3]]).self_compose(2), 0.2, ["log delta(0.2)"]),
])
def test_names_what_formed_the_answer(composition, eps, fragments):
    text = composition.explain(eps)
    for fragment in fragments:
        assert fragment in text
    lower, upper = (composition.log_delta(eps, bound=bound) for bound in ("lower", "upper"))
    # The printed bounds are rounded outwards.
    printed = re.search(r"lies in \[(\S+), (\S+)\]", text)
    assert float(printed[1]) <= lower <= upper <= float(printed[2])
    assert [float(number) for number in printed.groups()] == pytest.approx([lower, upper], rel=1e-11)


def test_each_engine_is_listed_with_its_bounds_or_with_the_reason():
    ten = mechanisms.FiniteRandomizer([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3]]).self_compose(10)
    lines = ten.explain(0.2).splitlines()
    tried = [line.rpartition("[")[2].rstrip("]").split(", ") for line in lines if line.startswith("  tried: ")]
    lower, upper = (ten.log_delta(0.2, bound=bound) for bound in ("lower", "upper"))
    assert len(tried) == 2  # a grid, then adaptive choice, which lowers the upper bound
    assert max(float(low) for low, _ in tried) == pytest.approx(lower, rel=1e-8)
    assert min(float(high) for _, high in tried) == pytest.approx(upper, rel=1e-8)
    assert [line for line in lines if line.startswith("  not used: inversion")]


def test_the_explanation_changes_no_answer():
    many = shuffle.BinomialNoise(10**3, 0.5).self_compose(10)
    before = many.log_delta(0.9)
    many.explain(0.9)
    many.explain(0.4)
    fresh = shuffle.BinomialNoise(10**3, 0.5).self_compose(10)
    fresh.explain(0.9)
    assert before == many.log_delta(0.9) == fresh.log_delta(0.9)


@pytest.mark.parametrize("eps", [-1.0, math.nan, math.inf])
def test_bad_eps_is_refused(eps):
    with pytest.raises(ValueError, match="eps="):
        shuffle.BinomialNoise(100, 0.5).self_compose(2).explain(eps)
