"""Certificates of shuffled batches: their parts against sums and integrals, and both stated bounds."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr

from shufflebounds import CertificateGap, InfeasibleError
from shufflebounds.certify import shuffled_batches as certified
from shufflebounds.certify.balls import flint
from shufflebounds.mechanisms import GaussianMechanism
from shufflebounds.sampling import ShuffledBatches
from tests.fuzz import batches
from tests.strategies import slow, thinned

pytest.importorskip("flint")


@pytest.fixture(autouse=True)
def precision():
    before, flint().ctx.prec = flint().ctx.prec, certified.BITS
    yield
    flint().ctx.prec = before


def arb(x):
    return flint().arb(x)


@pytest.mark.parametrize(("records", "cut", "c"), [
    (1, 4.0, 1.25), (7, 1.5, 1.25), (7, 4.0, 1.0), (12, 3.0, 1.25), (40, 2.0, 1.5), (5, 1.25, 1.5), (4, 100.0, 30.0),
])
def test_the_mean_excess_of_a_binomial_number(records, cut, c):
    a, c = Fraction(cut), Fraction(c)
    exact = float(sum(math.comb(records, k) * (1 / a)**k * (1 - 1 / a)**(records - k) * max(0, a * k / records - c)
                      for k in range(records + 1)))
    found = float(certified.beta(records, arb(cut), arb(float(c))).upper())
    # The bound of Cauchy and Schwarz, the larger one of the two that are used, is within a factor of 2 here.
    assert exact <= found <= 2 * exact


def density(y):
    return math.exp(-y * y / 2) / math.sqrt(2 * math.pi)


def stick(distance, c):
    """Return the divergence of N(distance, 1) and N(0, 1)."""
    at = np.log(c) / distance
    return ndtr(distance / 2 - at) - c * ndtr(-distance / 2 - at)


def concave(mu, x, q, end):
    """Return the concave majorant of the divergence in the squared distance on [0, end], at q."""
    p = np.linspace(q, end, 2001)
    return float((q * stick(mu * np.sqrt(p), x) / p).max())


@pytest.mark.parametrize(("mu", "c"), thinned([slow(0.25, 1.25), (0.5, 1.01), (0.5, 4.0), (1.0, 30.0), (2.0, 2000.0)], 3))
def test_the_tail_of_the_weights_by_a_search_over_the_page_of_bounds(mu, c):
    cut = c ** np.linspace(0.001, 0.999, 400)
    pairs, lists = concave(mu, c, 2, 4), float((stick(mu, cut) + cut / c * stick(mu, c / cut)).min())
    centre = max(concave(mu, x, 1 - m * m, (1 + m) ** 2) if (x := c * math.exp(-(1 - m * m) * mu * mu / 2)) >= 1 else 1.0
                 for m in np.linspace(0, 0.999, 60))
    exact, found = min(pairs, lists, centre), float(certified.mean_excess(arb(mu), arb(c)))
    assert exact * (1 - 1e-3) <= found <= exact * 1.1
    # All records are equally often one of two opposite vectors: M is their mean.
    family = quad(lambda y: max(0.0, density(y - mu) - c * (density(y - mu) + density(y + mu)) / 2), 0, 30, limit=200)[0]
    assert family <= found


@pytest.mark.parametrize("swapped", [0, 1])
@pytest.mark.parametrize(("mu", "eps"), [(0.25, 0.0), (1.0, 0.5)])
def test_the_largest_kind_against_integrals(mu, eps, swapped):
    e, top = math.exp(eps), 9.0
    law = [(float(x), float(p)) for x, p in certified.kind(arb(mu), arb(eps).exp(), swapped, arb(top))]
    assert math.fsum(p for _, p in law) == pytest.approx(1, abs=1e-12)
    assert min(p for _, p in law) >= 0
    for s in (-0.5, -0.1, 0.0, 0.3, 2.0):
        largest = math.fsum(p * max(x - s, 0) for x, p in law)

        def gain(y, w, s=s):
            own, first, second = (density(y - x) for x in (w, mu, 0))
            return max(0.0, (first - e * second if not swapped else second - e * first) - s * own)

        # A kind of the vectors a = mu and w = t mu, |t| <= 1, on a line: t = 1 or -1.
        kinds = [sum(quad(gain, a, a + 1, (w,))[0] for a in range(-14, 14)) for w in (-mu, mu)]
        assert max(kinds) - 1e-9 <= largest <= max(kinds) * 1.01 + 1e-4


@pytest.mark.parametrize("terms", [2, 3])
def test_capped_values_bound_the_sum_from_both_sides(monkeypatch, terms):
    law = [(-1.0, 0.5), (-0.25, 0.25), (1.0, 0.125), (4.0, 0.0625), (60.0, 0.0625)]
    exact = sum(math.prod(p for _, p in word) * max(0.0, sum(x for x, _ in word)) for word in itertools.product(law, repeat=terms))
    for size in (1e-3, 0.3, 1e3):
        monkeypatch.setattr(certified, "CAPPED", size)
        found, excess = certified.capped([(arb(x), arb(p)) for x, p in law], terms, math.log(exact / terms))
        pairs = [(float(x), float(p)) for x, p in found]
        below = sum(math.prod(p for _, p in word) * max(0.0, sum(x for x, _ in word))
                    for word in itertools.product(pairs, repeat=terms))
        g, excess = pairs[-1][0], float(excess)
        assert max(x for x, _ in pairs) == g
        less = sum(math.prod(p for _, p in word) for word in itertools.product(pairs, repeat=terms - 1)
                   if sum(x for x, _ in word) >= -g)
        assert below + terms * excess * less - 1e-12 <= exact <= below + terms * excess + 1e-12
        a, square = g - terms * abs(sum(x * p for x, p in pairs)), terms * sum(x * x * p for x, p in pairs)
        assert a <= 0 or a * a / (square + a * a) <= less


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "eps"), [(0.7, 2.0), (1.0, 0.5), (3.0, 0.1)])
def test_two_batches_against_one_integral(sigma, eps):
    exact, profile = batches.exact(eps, sigma, 2, 1), ShuffledBatches(GaussianMechanism(sigma), 2)
    lower, upper = (profile.certify(eps, bound=bound) for bound in ("lower", "upper"))
    assert exact * math.exp(-2 * certified.TOLERANCE) <= float(lower.lower()) <= exact <= float(upper.upper())
    for way in (certified.highest, lambda *given: certified.opposite(*given, near=math.log(exact), swapped=True)):
        assert float(way(1 / arb(sigma), 2, arb(eps).exp()).lower()) <= exact * (1 + 1e-9)


CASES = [slow(4.0, 1.0, 100, 1, 1e-3), slow(4.0, 1.0, 10**4, 1000, 1e-5), slow(1.0, 1.0, 10**6, 10**4, 1e-5),
         slow(0.9, 1.0, 50, 1000, 0.03), slow(4.0, 2.0, 10**4, 1, 1e-5), slow(0.5, 1.0, 10**6, 10**6, 0.1),
         slow(0.6, 1.0, 3, 1, 0.1), (2.0, 1.0, 1, 100, 1e-5)]


@pytest.mark.parametrize(("sigma", "sensitivity", "steps", "records", "delta"), CASES)
def test_stated_bounds_are_certified(sigma, sensitivity, steps, records, delta):
    profile = ShuffledBatches(GaussianMechanism(sigma, sensitivity), steps, records)
    eps = profile.epsilon(delta)
    stated = [profile.log_delta(eps, bound=bound) for bound in ("lower", "upper")]
    lower, upper = (profile.certify(eps, bound=bound) for bound in ("lower", "upper"))
    assert stated[0] - certified.TOLERANCE <= float(lower.lower().log()) <= stated[1]
    assert stated[0] <= float(upper.upper().log()) <= stated[1] + certified.TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize("steps", [100, 10**4])
def test_other_witnesses_give_valid_bounds_or_are_refused(steps):
    profile = ShuffledBatches(GaussianMechanism(4.0), steps)
    eps = profile.epsilon(1e-4)
    found, near, lower = next(profile._closed.epoch.witnesses(eps)), profile.log_delta(eps), profile.log_delta(eps, bound="lower")
    assert (found.pivots > 0) == (steps > 100)

    def value(**changes):
        given = (arb(0.25), steps, arb(eps).exp())
        return certified.every_rule(*given, records=1, given=found._replace(**changes), near=near)

    stated = float(value())
    for changes in ({"terms": found.terms // 2}, {"eps": 0.7 * eps}, {"eps": 1.5 * eps},
                    {"level": 1.1, "chosen": 10, "chosen_cut": 20.0} if found.pivots else {"cut": found.cut + 3}):
        assert lower <= float(value(**changes).log())
    # A later eps is replaced by the given one.
    assert float(value(eps=1.5 * eps)) == pytest.approx(stated, rel=1e-9)
    for changes in ({"terms": 0}, {"terms": steps + 1}, {"pivots": steps}, *([{"level": 1.0}, {"chosen": 0}, {"chosen_cut": 0.5}]
                                                                            if found.pivots else [{"cut": 0.5}])):
        with pytest.raises(ArithmeticError):
            value(**changes)


@pytest.mark.slow
def test_wrong_numbers_are_not_confirmed(monkeypatch):
    profile, stated = ShuffledBatches(GaussianMechanism(4.0), 100), ShuffledBatches.log_delta
    for bound, wrong in (("upper", -0.1), ("lower", 0.1)):
        def moved(self, eps, bound, wrong=wrong):
            return stated(self, eps, bound=bound) + wrong

        monkeypatch.setattr(ShuffledBatches, "log_delta", moved)
        with pytest.raises(CertificateGap, match=f"the {bound} bound of log delta is stated"):
            profile.certify(0.08, bound=bound)


@pytest.mark.slow
def test_long_certificates_are_refused():
    profile = ShuffledBatches(GaussianMechanism(4.0), 100)
    for bound in ("upper", "lower"):
        with pytest.raises((InfeasibleError, CertificateGap), match="is the limit"):
            profile.certify(0.08, bound=bound, seconds=0.1)
