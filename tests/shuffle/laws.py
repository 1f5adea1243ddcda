"""Exact laws in fractions, shared by the tests of the protocols."""

import itertools
import json
import math
from collections import Counter, defaultdict
from fractions import Fraction
from pathlib import Path

import mpmath

REFERENCE = {
    entry["id"].removeprefix("shuffled-bits/"): entry
    for entry in json.loads((Path(__file__).parents[1] / "reference" / "shuffled-bits.json").read_text())
}


def references(prefix):
    """Return the reference entries whose id starts so."""
    found = [entry for name, entry in REFERENCE.items() if name.startswith(prefix)]
    assert found, prefix
    return found


def rational(eps):
    """Return the fraction nearest to e^eps; its error of 1e-40 is far below what is asserted."""
    with mpmath.workdps(60):
        return Fraction(int(mpmath.exp(mpmath.mpf(eps)) * 10**45), 10**45)


def total(law, other):
    """Return the law of the sum of two independent values, numbers or tuples."""
    out = defaultdict(Fraction)
    for (a, p), (b, q) in itertools.product(law.items(), other.items()):
        out[tuple(map(sum, zip(a, b))) if isinstance(a, tuple) else a + b] += p * q
    return out


def power(law, times, zero=0):
    """Return the law of the sum of so many independent values."""
    out = {zero: Fraction(1)}
    for _ in range(times):
        out = total(out, law)
    return out


def coin(p):
    """Return the law of one bit."""
    return {1: Fraction(p), 0: 1 - Fraction(p)}


def binomial(n, p):
    """Return the law of Bin(n, p)."""
    p = Fraction(p)
    return {k: math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)}


def stick(first, second, factor):
    """Return sum max(0, first - factor * second), exactly."""
    return sum((max(Fraction(0), p - factor * second.get(x, 0)) for x, p in first.items()), Fraction(0))


def worse(first, second, factor):
    """Return the larger hockey stick of the two directions."""
    return max(stick(first, second, factor), stick(second, first, factor))


def multiset(records):
    """Return a hashable form of records in no order."""
    return tuple(sorted(Counter(records).items()))


def logarithm(value):
    """Return log of a fraction to 40 digits."""
    with mpmath.workdps(40):
        return mpmath.log(mpmath.mpf(value.numerator) / value.denominator) if value else -mpmath.inf


def assert_encloses(profile, eps, exact, *, apart):
    """Assert that the sides of log delta hold the exact fraction, so far apart at most."""
    true = logarithm(exact)
    lower, upper = (profile.log_delta(eps, bound=side) for side in ("lower", "upper"))
    assert lower <= true + mpmath.mpf("1e-30"), (profile, eps, lower, true, upper)
    assert true <= upper + mpmath.mpf("1e-30"), (profile, eps, lower, true, upper)
    assert lower == upper == -math.inf or upper - lower <= apart, (profile, eps, lower, true, upper)


def assert_error_tail(profile, errors, truth, points, *, apart=1e-10):
    """Assert that error_tail at the points holds the exact law {error: probability}."""
    for a in points:
        exact = sum((p for e, p in errors.items() if abs(e) > Fraction(a)), Fraction(0))
        lower, upper = (profile.error_tail(a, truth, bound=side) for side in ("lower", "upper"))
        assert Fraction(lower) <= exact <= Fraction(upper) + (Fraction(1, 10**15) if exact == 1 else 0), (profile, a)
        assert upper - lower <= apart * float(exact) + 1e-300
