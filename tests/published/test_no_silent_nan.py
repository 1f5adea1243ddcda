"""Published formulas at the ends of their ranges return a number, or raise an error that names the arguments; never NaN."""

import re

import numpy as np
import pytest

from shufflebounds import published


@pytest.mark.parametrize("call", [lambda: published.chen_long_mu_interior(10**4, 5e-324),
                                  lambda: published.chen_long_mu_real_sum(10**4, 5e-324, 3)])
def test_vanishing_flips_are_named(call):
    with pytest.raises(ValueError, match=r"lam=4.9"):
        call()


@pytest.mark.parametrize("bound", published.bounds(), ids=lambda bound: bound.__name__)
def test_tiny_numbers_for_every_real_argument(bound):
    case = {}
    for name in bound._signature.parameters:
        for value in (1e-300, 1, 2, 3, 10, 0.5, 1000):
            try:
                bound._given(name).check(name, value)
            except ValueError:
                continue
            case[name] = value
            break
    with np.errstate(all="raise"):
        try:
            said = str(bound(**case))
        except ValueError as error:
            said = f"refused: {error}"
    assert "nan" not in said
    if "refused" in said:
        assert re.search(r"refused: \w+ ?[=\[ ]", said), said
