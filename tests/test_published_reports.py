"""Printed bounds of clear reports and flipped records: reference values, a refutation by enumeration, grids without violation."""

import json
import math
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest

from shufflebounds import published
from shufflebounds.published import zhilyaev_reports
from shufflebounds.shuffle import ClearReports

REFERENCE = json.loads((Path(__file__).parent / "reference" / "shuffled-bits.json").read_text())


@pytest.mark.parametrize(
    ("eps", "delta", "value"), [(0.5, 1e-6, 760.278), (1, 1e-9, 310.597), (0.1, 1e-6, 18272.58), (0.1, 1e-9, 26575.70)]
)
def test_5_10_of_the_spec(eps, delta, value):
    claim = published.zhilyaev_fakes_per_bin(eps, delta)
    assert claim == pytest.approx(value, abs=0.5 * 10 ** -len(str(value).partition(".")[2]) * 1.01)
    big = math.exp(eps)
    assert claim == pytest.approx(3 * math.log(4 / delta) * ((big + 1) / (big - 1)) ** 2, rel=1e-12)
    assert 10**7 * published.zhilyaev_flip_fakes(10**7, eps, delta) == pytest.approx(claim, rel=1e-14)


@pytest.mark.parametrize("entry", [x for x in REFERENCE if "s001.b516" in x["id"]], ids=lambda x: x["id"])
def test_5_16(entry):
    p = entry["params"]
    reports = 10**6
    for bound in (published.zhilyaev_flip_sums, published.zhilyaev_flip_records):
        claim = reports * bound(reports, float(p["eps"]), float(p["delta"]))
        assert claim == pytest.approx(float(entry["value"]), rel=1e-10)


@pytest.mark.parametrize("bins", [2, 3, 10, 400])
@pytest.mark.parametrize("eps", [0.05, 0.3, 1.0, 2.0, 4.0])
def test_5_10_is_never_too_few(bins, eps):
    for delta in (0.9, 0.3, 0.05, 1e-4, 1e-9):
        fakes = math.ceil(bins * published.zhilyaev_fakes_per_bin(eps, delta))
        assert ClearReports(fakes, bins).delta(eps) <= delta


@pytest.mark.parametrize("reports", [5, 30, 300, 5000])
@pytest.mark.parametrize("eps", [0.5, 1.0, 2.0, 5.0])
def test_flips_of_sums_are_never_too_small(reports, eps):
    for delta in (0.9, 0.2, 1e-3, 1e-8):
        for flip, crowds in ((published.zhilyaev_flip_sums, (True, False)), (published.zhilyaev_flip_fakes, (False,))):
            q = flip(reports, eps, delta)
            if q < 0.5:
                assert all(zhilyaev_reports._two_bins(reports, q, eps, crowded) <= delta for crowded in crowds)


def outcomes(records, q):
    """Return the law of what is seen of flipped two-bit records: as sums of each bit, and as shuffled records."""
    sums, shuffled = {}, {}
    for seen in product(product((0, 1), repeat=2), repeat=len(records)):
        flips = sum(a != b for record, out in zip(records, seen) for a, b in zip(record, out))
        weight = q**flips * (1 - q) ** (2 * len(records) - flips)
        for law, key in ((sums, tuple(map(sum, zip(*seen)))), (shuffled, tuple(sorted(seen)))):
            law[key] = law.get(key, 0) + weight
    return sums, shuffled


@pytest.mark.parametrize(("n", "q", "ratio"), [(2, Fraction(1, 5), 2), (3, Fraction(1, 5), 2), (3, Fraction(1, 10), 3)])
def test_sums_and_records_by_enumeration(n, q, ratio):
    eps = math.log(ratio)
    first, second = (1, 0), (0, 1)
    for crowded, other in ((True, first), (False, (0, 0))):
        p, r = (outcomes([target] + [other] * (n - 1), q) for target in (first, second))
        sticks = [[sum(max(a.get(k, 0) - ratio * b.get(k, 0), 0) for k in a) for a, b in ((x, y), (y, x))] for x, y in zip(p, r)]
        assert zhilyaev_reports._two_bins(n, float(q), eps, crowded) == pytest.approx(float(max(sticks[0])), rel=1e-9)
        if crowded:
            # one direction of the records, exactly; the other is larger here
            assert zhilyaev_reports._records_delta(n, float(q), eps) == pytest.approx(float(sticks[1][0]), rel=1e-9)
            assert max(sticks[1]) >= sticks[1][0]
            if (n, q) == (3, Fraction(1, 5)):
                assert (max(sticks[1]), max(sticks[0])) == (Fraction(6839, 15625), Fraction(1024, 3125))


@pytest.mark.parametrize("entry", [x for x in REFERENCE if "s001.record_level" in x["id"]], ids=lambda x: x["id"])
def test_the_records_of_proposition_5_1(entry):
    p = entry["params"]
    value = zhilyaev_reports._records_delta(int(p["n"]), float(p["q"]), float(p["eps"]))
    assert value == pytest.approx(float(entry["value"]), rel=1e-8)


def test_proposition_5_1_is_false_for_records():
    shown = published.zhilyaev_flip_records.counterexample()
    assert shown.printed == 1e-6
    assert shown.truth == pytest.approx(1.84e-3, rel=0.01)


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: published.zhilyaev_fakes_per_bin(0, 0.1), "eps"),
        (lambda: published.zhilyaev_fakes_per_bin(1, 0), "delta"),
        (lambda: published.zhilyaev_flip_sums(0, 1, 0.1), "reports"),
        (lambda: published.zhilyaev_flip_records(10, 1, 2), "delta"),
        (lambda: published.zhilyaev_flip_fakes(0, 1, 0.1), "fakes"),
    ],
)
def test_bad_input(call, word):
    with pytest.raises(ValueError, match=rf"^{word}"):
        call()
