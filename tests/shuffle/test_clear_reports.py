"""Reports without randomization among dummy reports, against enumeration and the reference values."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shufflebounds import InfeasibleError
from shufflebounds.shuffle import BinomialNoise, ClearReports
from tests.oracles import assert_encloses, assert_error_tail, binomial, hockey_stick, rational, references
from tests.strategies import thinned


def shuffled(real, fakes, bins):
    """Return the distribution of the histogram of all reports."""
    out = {}
    for drawn in itertools.product(range(bins), repeat=fakes):
        histogram = tuple(np.bincount([*real, *drawn], minlength=bins).tolist())
        out[histogram] = out.get(histogram, 0) + Fraction(1, bins**fakes)
    return out


@pytest.mark.parametrize("eps", thinned([0.0, 0.4, 1.0, 3.0], 2))
@pytest.mark.parametrize(("fakes", "bins", "users"), [(0, 3, 2), (1, 2, 1), (4, 2, 2), (5, 3, 1), (4, 3, 2), (3, 4, 1), (4, 5, 1)])
def test_every_dataset_by_enumeration(fakes, bins, users, eps):
    worst = Fraction(0)
    for others in itertools.product(range(bins), repeat=users - 1):
        laws = [shuffled([target, *others], fakes, bins) for target in range(bins)]
        worst = max(worst, *(hockey_stick(a, b, rational(eps)) for a, b in itertools.permutations(laws, 2)))
    assert_encloses(ClearReports(fakes, bins), eps, worst, apart=1e-11)


@pytest.mark.parametrize("entry", references("s001.clear.delta"), ids=lambda e: e["id"])
def test_reference_delta(entry):
    p, exact = entry["params"], float(entry["value"])
    mechanism, eps = ClearReports(p["m"], p["d"]), float(p["eps"])
    assert mechanism.delta(eps, bound="lower") <= exact * (1 + 1e-14)
    assert exact * (1 - 1e-14) <= mechanism.delta(eps) <= exact * (1 + 1e-11)


@pytest.mark.parametrize(
    ("bins", "eps", "delta", "fakes"),
    [
        (2, 0.5, 1e-6, 268),
        (2, 1, 1e-9, 136),
        (10, 1, 1e-6, 422),
        (100, 0.1, 1e-6, 264109),
        (100, 0.1, 1e-9, 505157),
        (100, 0.5, 1e-6, 13605),
        (100, 0.5, 1e-9, 23865),
        (100, 1, 1e-6, 4261),
        (100, 1, 1e-9, 7198),
    ],
)
def test_calibration_reproduces_the_table(bins, eps, delta, fakes):
    found = ClearReports.calibrate(bins=bins, eps=eps, delta=delta)
    assert found == ClearReports(fakes, bins)
    assert found.delta(eps) <= delta < ClearReports(fakes - 1, bins).delta(eps)


def test_edges():
    assert ClearReports(0, 7).delta(2.0) == 1.0
    assert ClearReports(0, 1).delta(0.0) == 0.0
    assert ClearReports.calibrate(bins=1, eps=0.0, delta=1e-9).fakes == 0
    assert ClearReports(500, 2).log_delta(0.3) == pytest.approx(BinomialNoise(500, 0.5).log_delta(0.3), rel=1e-12)
    assert ClearReports(40, 3).epsilon(0.0) == math.inf
    with pytest.raises(InfeasibleError, match=r"bins=9007199254740992.*2\*\*53 fakes give delta="):
        ClearReports.calibrate(bins=2**53, eps=0.1, delta=1e-9)


@pytest.mark.slow
@given(fakes=st.integers(0, 2**53), bins=st.integers(1, 10**6), eps=st.floats(0, 10), more=st.integers(1, 100))
@settings(max_examples=25, deadline=None)
def test_symmetry_and_monotonicity(fakes, bins, eps, more):
    mechanism = ClearReports(fakes, bins)
    assert mechanism.log_delta(eps, bound="lower") <= mechanism.log_delta(eps) <= 0
    assert mechanism.log_delta(eps + 0.2, bound="lower") <= mechanism.log_delta(eps)
    if fakes + more <= 2**53:
        assert ClearReports(fakes + more, bins).log_delta(eps, bound="lower") <= mechanism.log_delta(eps)


@pytest.mark.parametrize(("fakes", "bins"), [(0, 4), (12, 4), (30, 7)])
def test_error_tails(fakes, bins):
    errors = {k - Fraction(fakes / bins): p for k, p in binomial(fakes, Fraction(1, bins)).items()}
    assert_error_tail(ClearReports(fakes, bins), errors, None, [0, 0.5, 1, 2, 2.2, 3, 5, 9])


@pytest.mark.parametrize("a", [0, 0.5, 1.5, 2.5, 3.5])
def test_the_error_of_any_bin_by_enumeration(a):
    fakes, bins, slack = 6, 3, Fraction(1, 10**12)
    mechanism, law = ClearReports(fakes, bins), shuffled([], fakes, bins).items()
    exact = sum(p for counts, p in law if max(abs(count - 2) for count in counts) > a)
    one = sum(p for counts, p in law if abs(counts[0] - 2) > a)
    assert exact * (1 - slack) <= mechanism.error_tail(a, of="any") <= min(1, bins * one) * (1 + slack)
    assert mechanism.error_tail(a, of="any", bound="lower") <= exact * (1 + slack)


def test_protocol_on_data():
    mechanism = ClearReports(600, 6)
    rng = np.random.default_rng(4)
    data = np.repeat(np.arange(6), [0, 10, 20, 30, 40, 100])
    errors = np.array([mechanism.estimate(counts=mechanism.simulate(data, rng)) for _ in range(2000)]) - np.bincount(data)
    assert (np.abs(errors.mean(axis=0)) < 5 * math.sqrt(mechanism.variance / 2000)).all()
    assert errors.var(axis=0) == pytest.approx(np.full(6, mechanism.variance), rel=0.15)
    tail = mechanism.error_tail(15)
    assert abs(np.mean(np.abs(errors) > 15) - tail) < 5 * math.sqrt(tail / 2000)
    assert np.r_[mechanism.randomize(data, rng=1), mechanism.dummies(rng=1)].shape == (800,)
    assert mechanism.messages_per_user(200) == 4.0


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: ClearReports(-1, 3), "fakes=-1"),
        (lambda: ClearReports(1, 0), "bins=0"),
        (lambda: ClearReports(1, 2.5), r"bins=2\.5"),
        (lambda: ClearReports(1, 3).randomize([0, 3]), "values holds 3"),
        (lambda: ClearReports(1, 3).randomize([-1]), "values holds -1"),
        (lambda: ClearReports(1, 3).estimate([2]), r"messages has shape \(1,\): it must have more than fakes=1 entries"),
        (lambda: ClearReports(1, 3).randomize([0.5]), r"values holds 0\.5"),
        (lambda: ClearReports(1, 3).estimate([[1]]), "messages has shape"),
        (lambda: ClearReports(1, 3).error_tail(1, [1, 2]), "truth has shape"),
        (lambda: ClearReports.calibrate(bins=3, eps=1.0, delta=0), "delta=0"),
    ],
)
def test_bad_input(call, named):
    with pytest.raises(ValueError, match=named):
        call()


@pytest.mark.parametrize(("fakes", "bins"), [(7, 2), (25, 3), (40, 10)])
@pytest.mark.parametrize("eps", thinned([0.0, 0.25, 1.0, 5.0, 900.0], 3))
def test_the_mixture_by_its_definition(fakes, bins, eps):
    # The exact value is the sum over N ~ Bin(m, 2/d) of the divergence of Bin(N, 1/2) and its shift, with fifty digits.
    with mpmath.workdps(50):
        e, r, total = mpmath.exp(mpmath.mpf(eps)), mpmath.mpf(2) / bins, mpmath.mpf(0)
        for hits in range(fakes + 1):
            weight = mpmath.binomial(fakes, hits) * r**hits * (1 - r) ** (fakes - hits) / mpmath.mpf(2) ** hits
            if weight:
                total += weight * sum(max(mpmath.mpf(0), mpmath.binomial(hits, i - 1) - e * mpmath.binomial(hits, i)) if i else 0
                                      for i in range(hits + 2))
        exact = mpmath.log(total)
        reports = ClearReports(fakes, bins)
        lower, upper = (mpmath.mpf(reports.log_delta(eps, bound=side)) for side in ("lower", "upper"))
        assert lower - mpmath.mpf("1e-30") <= exact <= upper + mpmath.mpf("1e-30")
        assert upper - lower < 3e-12 * (1 + abs(exact))


def test_the_largest_number_of_dummy_reports():
    reports = ClearReports(2**53, 100)
    upper, lower = reports.epsilon(1e-9), reports.epsilon(1e-9, bound="lower")
    assert reports.delta(upper) <= 1e-9 <= reports.delta(lower, bound="lower") * (1 + 1e-14)
    assert upper - lower < 1e-11 * upper
    # Delta is at least 2^-8 at every eps: with this probability all dummy reports are in the target's bin and the other is empty.
    assert ClearReports(8, 2).epsilon(1e-5) == ClearReports(8, 2).epsilon(1e-5, bound="lower") == math.inf
