"""Meaning and range of the parameters of the published formulas.

Argument checks and docstrings are generated from these descriptions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from shufflebounds._base import validate as _validate

__all__ = ["BITS", "BUDGET", "CLOSED", "GLOSSARY", "LOSS", "POSITIVE", "Given", "integer", "real"]


@dataclass(frozen=True)
class Given:
    """One parameter: its type and meaning for the docstring, and a function that checks its value.

    Attributes
    ----------
    kind, says : str
        Type and meaning.
    check : callable
        A function of name and value that returns the checked value or raises ValueError.
    """

    kind: str
    says: str
    check: Callable[[str, Any], Any]


def real(says: str, low: float, high: float = math.inf, *, ends: str = "[]") -> Given:
    """Return the description of a real parameter in an interval; a round bracket in `ends` excludes that end."""
    open_low, open_high = ends[0] == "(", ends[1] == ")"
    where = f"in {ends[0]}{low:g}, {high:g}{ends[1]}" if high < math.inf else f"{'>' if open_low else '>='} {low:g}"
    check = partial(_validate.real, low=low, high=high, open_low=open_low, open_high=open_high)
    return Given("float", f"{says}, {where}", check)


def integer(says: str, low: int, high: int = _validate.MAX_COUNT) -> Given:
    """Return the description of an integer parameter in a range."""
    where = f"{low} to {'2**53' if high == _validate.MAX_COUNT else high}"
    return Given("int", f"{says}, {where}", partial(_validate.integer, low=low, high=high))


def _as_given(_: str, value: Any) -> Any:
    """Return the value unchecked: the code for the Poisson-binomial distribution checks it."""
    return value


_LARGE = 1e12
"""Largest value of the parameters rho and sigma. Raised: published formulas may overflow. Lowered: larger values raise
ValueError."""
BITS = integer("Number n of bits, including the target user's", 1)
BUDGET = real("Budget in nats", 0, _LARGE, ends="(]")
CLOSED = real("Target failure probability", 0, 1, ends="(]")
LOSS = real("Privacy loss in nats", 0, 700)
POSITIVE = real("Target privacy loss in nats", 0, ends="(]")
GLOSSARY: Mapping[str, Given] = {
    "alpha": real("Error of the first kind", 0, 1),
    "beta": real("Probability of a larger error", 0, 1, ends="()"),
    "bits": integer("Number r of bits that encode one value", 1),
    "bound": real("Bound of the loss", 0, 700),
    "categories": integer("Number k of categories", 2),
    "cells": integer("Number d of cells", 2),
    "coins": integer("Number \\|H\\| of fair coins, more than 8 ln(4/delta)", 1),
    "counts": Given("array_like of int, optional", "Number of users with each rate, 1 each by default", _as_given),
    "cutoff": integer("Number c of answers", 1),
    "d": integer("Number of variables", 1),
    "delta": real("Target failure probability", 0, 1, ends="()"),
    "delta_target": real("Failure probability delta_1 of the target user's randomizer", 0, 1, ends="[)"),
    "eps": real("Target privacy loss in nats", 0, 700, ends="(]"),
    "eps_other": real("Local budget of the other user in nats", 0, 700, ends="(]"),
    "eps_target": real("Local budget of the target user in nats", 0, 700, ends="(]"),
    "fakes": integer("Number m of dummy records", 1),
    "flip": real("Probability q of flipping", 0, 0.5, ends="(]"),
    "gamma": real("Probability of a zero noise bit", 0, 0.5, ends="(]"),
    "lam": real("Expected number of random bits, below n", 0, _validate.MAX_COUNT, ends="(]"),
    "local_eps": real("Local budget eps0 in nats", 0, 700, ends="(]"),
    "m": integer("Length of the range", 1),
    "max_queries": integer("Number k of queries", 1),
    "n_queries": integer("Number k of queries", 1),
    "ones": integer("Number of other users with value 1, below users", 0),
    "rates": Given("array_like", "Rates p_i of the other users, in [0, 1/2]", _as_given),
    "reports": integer("Number n + m of reports, including dummy reports", 1),
    "rho": real("The noise is discrete Gaussian with parameter 1/(2 rho)", 0, _LARGE, ends="(]"),
    "sigma": real("Standard deviation of the noise", 0, _LARGE, ends="(]"),
    "sigma_other": real("Standard deviation of the other user's noise, for values in [0, 1]", 0, 1e6, ends="(]"),
    "sigma_target": real("Standard deviation of the target user's noise, for values in [0, 1]", 0, 1e6, ends="(]"),
    "users": integer("Number n of users", 1),
    "weight": real("Weight w", 0, 0.5, ends="()"),
}
"""The meaning of each parameter name, for formulas that do not define the name themselves."""
