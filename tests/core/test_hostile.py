"""The ufuncs accept all combinations of doubles without a warning, and give the same results for arrays and for single numbers."""

import warnings

import numpy as np
import pytest

from shufflebounds import tails
from shufflebounds._core import _binomial, _special
from tests.strategies import thinned

EDGES = [
    np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 0.25, 5e-324, 1e-308, 1e308, 2.0**53, 2.0**53 + 2, 2.0**52 + 0.5,
    1 - 2.0**-53, 10.0, 1e-300, 700.0, -700.0,
]
UFUNCS = [f for f in (*vars(tails).values(), *vars(_special).values()) if isinstance(f, np.ufunc)]


def adversarial(rng, size):
    kinds = [
        rng.choice(EDGES, size), 10 ** rng.uniform(-307, 308, size) * rng.choice([-1, 1], size),
        np.floor(10 ** rng.uniform(0, 16, size)), rng.random(size),
    ]
    return np.choose(rng.integers(0, 4, size), kinds)


@pytest.mark.parametrize("ufunc", thinned([*UFUNCS, _binomial.shift_log_delta], 2), ids=lambda f: f.__name__)
def test_no_argument_raises_a_warning(ufunc):
    rng = np.random.default_rng(3)
    points = [adversarial(rng, 300) for _ in range(ufunc.nin)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        together = np.array(ufunc(*points))
        alone = np.array([ufunc(*point) for point in zip(*points, strict=True)]).T
    assert np.array_equal(together, alone, equal_nan=True)
