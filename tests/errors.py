"""One measure of error for all tests, in exact decimals; it is defined for NaN, infinities, zeros and subnormal numbers, too.

The exact value is a float, an int, a Fraction, a Decimal or a decimal string; ``actual`` is what the library returned.
"""

import decimal
import json
import math
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest

WIDE = decimal.Context(prec=60, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)
REFERENCE = Path(__file__).parent / "reference"


def to_decimal(x):
    """Return x to 60 digits."""
    if isinstance(x, Fraction):
        return WIDE.divide(Decimal(x.numerator), Decimal(x.denominator))
    # create_decimal accepts strings with any exponent; above 10**18 in absolute value, the exponent gives 0 or inf.
    return WIDE.create_decimal(x if isinstance(x, (str, int, Decimal)) else Decimal(float(x)))


def distance(actual, exact):
    """Return |actual - exact|: 0 if both are the same infinity or both NaN, and inf if only one of them is infinite or NaN."""
    a, e = to_decimal(actual), to_decimal(exact)
    if a.is_nan() or e.is_nan():
        return Decimal(0) if a.is_nan() and e.is_nan() else Decimal("inf")
    if a.is_infinite() or e.is_infinite():
        return Decimal(0) if a == e else Decimal("inf")
    return abs(WIDE.subtract(a, e))


def spacing(exact):
    """Return one ulp of double precision at the exact value; it is the smallest subnormal number at and below the subnormals."""
    return Decimal(math.ulp(float(to_decimal(exact))))


def excess(actual, exact, ulps=4):
    """Return by how much the error exceeds the given number of ulp of the exact value, at least 0."""
    d = distance(actual, exact)
    if not d.is_finite() or d == 0:
        return float(d)
    return float(max(Decimal(0), WIDE.subtract(d, ulps * spacing(exact))))


def in_ulps(actual, exact):
    """Return the error in ulp of the exact value."""
    d = distance(actual, exact)
    return float(WIDE.divide(d, spacing(exact))) if d.is_finite() and d else float(d)


def relative(actual, exact, ulps=0):
    """Return the relative error, after the given number of ulp is subtracted from the error; inf if only the exact value is 0."""
    d = distance(actual, exact)
    if not d.is_finite() or d == 0:
        return float(d)
    e = abs(to_decimal(exact))
    if e == 0:
        return math.inf
    return float(WIDE.divide(max(Decimal(0), WIDE.subtract(d, ulps * spacing(exact))), e))


def log_of(exact):
    """Return the natural logarithm of a positive decimal string to 40 digits; the number may be far below the smallest double."""
    return to_decimal(exact).ln(decimal.Context(prec=40, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX))


@cache
def reference(name):
    """Return the parsed file tests/reference/<name>.json."""
    return json.loads((REFERENCE / f"{name}.json").read_text())


def survey_cases(quantities):
    """Return parameters for tests: the entries of survey.json of the named quantities, each after the function that answers it."""
    found = []
    for case in reference("survey"):
        key = next((key for key in quantities if f"/{key}" in case["id"]), None)
        if key:
            found.append(pytest.param(quantities[key], case, id=case["id"]))
    return found
