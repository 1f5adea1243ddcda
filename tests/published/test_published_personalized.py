"""The formulas of Liu et al. as published, counterexamples to them, and this library's valid bounds."""

import math
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest

from shufflebounds import published
from shufflebounds.shuffle import PersonalizedClones
from tests.strategies import slow


def exact_delta(first, second, others, ratio):
    """Return the hockey-stick divergence of shuffled messages in exact fractions."""
    laws = [{}, {}]
    for law, target in zip(laws, (first, second)):
        for messages in product(range(len(first)), repeat=1 + len(others)):
            weight = math.prod((row[z] for row, z in zip([target, *others], messages)), start=Fraction(1))
            key = tuple(sorted(messages))
            law[key] = law.get(key, 0) + weight
    return sum(max(p - ratio * laws[1][key], 0) for key, p in laws[0].items())


@pytest.mark.parametrize(("users", "truth"), [(1, "1/8"), (2, "1/16"), (3, "1/32"), (4, "3/128"), (5, "1/64"), slow(6, "5/512")])
def test_the_published_laplace_weight_is_too_large(users, truth):
    r0 = [Fraction(a, 8) for a in (4, 2, 1, 1)]
    others = [[Fraction(a, 8) for a in (4, 2, 1, 1)]] * (users - 1)
    worst = max(
        exact_delta(r0, r0[::-1], [row[::-1] if flip else row for row, flip in zip(others, flips)], Fraction(3))
        for flips in product([0, 1], repeat=users - 1)
        if sorted(flips) == list(flips)
    )
    assert worst >= Fraction(truth)
    # A pair with w = 1/4 has a likelihood ratio of at most 3.
    weight = published.liu2024_weight_laplace(math.log(4))
    assert weight == pytest.approx(0.25)
    assert PersonalizedClones(weight, [0.25], counts=[max(users - 1, 1)]).delta(math.log(3) + 1e-9) == 0
    ours = PersonalizedClones.laplace([math.log(4)], counts=[users], target=0).delta(math.log(3))
    assert ours >= worst * (1 - Fraction(1, 10**12))


def test_the_published_rates_are_too_large():
    case = published.liu2024_laplace_rate.counterexample()
    assert case.printed == pytest.approx(0.426520, abs=2e-6)
    assert case.truth > case.printed
    edges = [0.22, 0.53, 0.69, 0.74, 1.42]

    def row(eps, x):
        cdf = [0.5 * math.exp(eps * (z - x)) if z < x else 1 - 0.5 * math.exp(-eps * (z - x)) for z in edges]
        cuts = [Fraction(0), *map(Fraction, cdf), Fraction(1)]
        return [b - a for a, b in pairwise(cuts)]

    truth = max(exact_delta(row(2, 0), row(2, 1), [row(1.9, x)] * 2, Fraction(math.exp(0.05))) for x in (0, 1))
    assert truth > case.printed
    assert float(truth) == pytest.approx(case.truth, abs=1e-12)
    assert PersonalizedClones.laplace([2.0, 1.9, 1.9], target=0).delta(0.05) >= truth


def test_theorem_2_treats_failure_as_privacy():
    case = published.liu2024_delta.counterexample()
    assert case.printed == pytest.approx(9.2e-9, rel=0.05)
    assert case.printed < case.truth == 1e-3
    # With probability 1/1000 a user sends a marked message with the true bit, and otherwise binary randomized response with ratio
    # 3.
    mark, keep = Fraction(1, 1000), Fraction(999, 1000)
    rows = [
        [keep * Fraction(3, 4), keep * Fraction(1, 4), mark, Fraction(0)],
        [keep * Fraction(1, 4), keep * Fraction(3, 4), Fraction(0), mark],
    ]
    truth = exact_delta(rows[0], rows[1], [rows[1]] * 2, Fraction(2))
    clones = Fraction(PersonalizedClones(0.25, [0.25], counts=[2]).delta(math.log(2)))
    assert mark < truth <= keep * clones + mark


@pytest.mark.parametrize("name", [name for name in published.__all__ if name.startswith("liu2024")])
def test_false_formulas_show_a_counterexample(name):
    bound = getattr(published, name)
    if bound.verdict == "false":
        case = bound.counterexample()
        assert (case.printed > case.truth) if bound.side == "lower" else (case.printed < case.truth)
        assert case.case
    else:
        with pytest.raises(ValueError, match="no counterexample"):
            bound.counterexample()


def test_printed_values():
    rate = published.liu2024_laplace_rate
    for other, target, value in (
        (1.9, 2, 0.19337051),
        (1, 2, 0.26943151),
        (0.5, 2, 0.22768413),
        (1, 3, 0.23885320),
        (0.5, 3, 0.19764),
        (3, 2, 0.11156508),
    ):
        assert rate(other, target) == pytest.approx(value, abs=5e-6 if value == 0.19764 else 5e-9)
    assert rate(2, 2) == 0
    assert rate(2 - 1e-9, 2) == pytest.approx(math.exp(-1) / 2, rel=1e-6)


@pytest.mark.slow
def test_areas_against_quadrature():
    z = np.linspace(-40, 40, 1600001)

    def area(density, one, zero):
        return min(density[(density < a) & (b < a)].sum() * (z[1] - z[0]) for a, b in ((one, zero), (zero, one)))

    def normal(x, s):
        return np.exp(-((z - x) ** 2) / (2 * s * s)) / (s * math.sqrt(2 * math.pi))

    for s, t in ((4.0, 2.0), (1.0, 2.0), (0.31, 0.3), (3.0, 2.9)):
        assert published.liu2024_gaussian_rate(s, t) == pytest.approx(area(normal(0, s), normal(1, t), normal(0, t)), abs=2e-4)

    def laplace(x, e):
        return e / 2 * np.exp(-e * np.abs(z - x))

    for s, t in ((0.5, 2.0), (1.9, 2.0), (3.0, 2.0), (0.5, 0.3)):
        assert published.liu2024_laplace_rate(s, t) == pytest.approx(area(laplace(0, s), laplace(1, t), laplace(0, t)), abs=2e-4)


@pytest.mark.slow
def test_theorem_2_with_sums_from_zero_is_an_upper_bound():
    rng = np.random.default_rng(0)
    for _ in range(100):
        w, rates = rng.uniform(0.02, 0.4), rng.uniform(0, 0.5, int(rng.integers(1, 30)))
        eps = rng.uniform(0, math.log((1 - w) / w))
        pair = PersonalizedClones(w, rates).delta(eps, bound="lower")
        assert published.liu2024_delta(eps, w, rates, first=0) >= pair * (1 - 1e-10) - 1e-14
        assert published.liu2024_delta(eps, w, rates) <= published.liu2024_delta(eps, w, rates, first=0) + 1e-15
    weight, rate = published.liu2024_weight_laplace(4), published.liu2024_laplace_rate(3.9, 4)
    assert published.liu2024_delta(0.1, weight, [rate]) == pytest.approx(0.0608, abs=1e-3)


@pytest.mark.slow
def test_table_2_is_reproduced_by_the_printed_formula():
    # This is the Laplace row by Theorem 2 with the published rates; the row of the paper itself needs sigma = 2.03/eps.
    eps = 0.5 + 1.5 * (np.arange(9999) + 0.5) / 9999
    w = published.liu2024_weight_gaussian(2.03 / 2)
    rates = [published.liu2024_gaussian_rate(2.03 / e, 2.03 / 2) for e in eps]
    for at, value in ((0.01, 7.3e-4), (0.03, 2.7e-6), (0.05, 3.7e-10)):
        assert published.liu2024_delta(at, w, rates, first=0) == pytest.approx(value, rel=0.05)


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: published.liu2024_weight_laplace(0), "eps_target"),
        (lambda: published.liu2024_weight_gaussian(-1), "sigma_target"),
        (lambda: published.liu2024_weight_rr(1, 1), "categories"),
        (lambda: published.liu2024_rr_rate(2, 1, 3), "eps_other"),
        (lambda: published.liu2024_delta(0.1, 0.5, [0.1]), "weight"),
        (lambda: published.liu2024_delta(0.1, 0.2, [0.6]), "rates"),
        (lambda: published.liu2024_delta(0.1, 0.2, [0.1], first=2), "first"),
        (lambda: published.liu2024_delta(0.1, 0.2, [0.1], delta_target=1), "delta_target"),
    ],
)
def test_bad_input(call, word):
    with pytest.raises(ValueError, match=rf"^{word}"):
        call()
