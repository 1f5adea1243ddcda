"""One measure of error for every test: total (NaN, infinities, zeros, subnormals get a number), in exact decimals.

``exact`` is a float, an int, a Fraction, a Decimal or a decimal string; ``actual`` is what the library returned.
"""

import decimal
import json
import math
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path

WIDE = decimal.Context(prec=60, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)
REFERENCE = Path(__file__).parent / "reference"


def to_decimal(x):
    """Return x to 60 digits."""
    if isinstance(x, Fraction):
        return WIDE.divide(Decimal(x.numerator), Decimal(x.denominator))
    # create_decimal takes strings of any exponent, those beyond 10**18 as 0 or inf
    return WIDE.create_decimal(x if isinstance(x, (str, int, Decimal)) else Decimal(float(x)))


def distance(actual, exact):
    """|actual - exact|: 0 for the same infinity or NaN on both sides, inf where only one of them is special."""
    a, e = to_decimal(actual), to_decimal(exact)
    if a.is_nan() or e.is_nan():
        return Decimal(0) if a.is_nan() and e.is_nan() else Decimal("inf")
    if a.is_infinite() or e.is_infinite():
        return Decimal(0) if a == e else Decimal("inf")
    return abs(WIDE.subtract(a, e))


def spacing(exact):
    """One ulp of double precision at exact: the least subnormal at and below the subnormals."""
    return Decimal(math.ulp(float(to_decimal(exact))))


def excess(actual, exact, ulps=4):
    """Distance from the exact value less the given number of its ulps, at least 0."""
    d = distance(actual, exact)
    if not d.is_finite() or d == 0:
        return float(d)
    return float(max(Decimal(0), WIDE.subtract(d, ulps * spacing(exact))))


def in_ulps(actual, exact):
    """Distance in ulps of the exact value."""
    d = distance(actual, exact)
    return float(WIDE.divide(d, spacing(exact))) if d.is_finite() and d else float(d)


def relative(actual, exact, ulps=0):
    """Distance over |exact|, after the given number of ulps is taken off; inf where only exact is 0."""
    d = distance(actual, exact)
    if not d.is_finite() or d == 0:
        return float(d)
    e = abs(to_decimal(exact))
    if e == 0:
        return math.inf
    return float(WIDE.divide(max(Decimal(0), WIDE.subtract(d, ulps * spacing(exact))), e))


def log_of(exact):
    """Natural logarithm of a positive decimal string, to 40 digits (the value may lie far below the doubles)."""
    return to_decimal(exact).ln(decimal.Context(prec=40, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX))


@cache
def reference(name):
    """Return the parsed file tests/reference/<name>.json."""
    return json.loads((REFERENCE / f"{name}.json").read_text())
