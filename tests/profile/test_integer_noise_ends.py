"""Integer noise whose last outcomes carry large probability: no outcome at an end of the enumeration may be lost."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from shufflebounds.profile.extend import IntegerNoise
from tests.strategies import thinned


@dataclass(frozen=True)
class Bit(IntegerNoise):
    prob: float

    def _log_pmf(self, k):
        return np.select([k == 0, k == 1], [math.log1p(-self.prob), math.log(self.prob)], -math.inf)

    def _log_cdf(self, k):
        return np.select([k >= 1, k >= 0], [0.0, math.log1p(-self.prob)], -math.inf)

    def _log_sf(self, k):
        return np.select([k < 0, k < 1], [0.0, math.log(self.prob)], -math.inf)


@pytest.mark.parametrize("prob", [0.1, 0.3, 0.7, 0.9])
@pytest.mark.parametrize("eps", thinned([0.0, 0.5, 1.0, 3.0], 2))
def test_noise_of_one_bit_against_its_three_outcomes(prob, eps):
    noise, factor = Bit(prob), math.exp(eps)
    # K is 0 or 1 and K + 1 is 1 or 2: the outcomes 0 and 2 have infinite loss, and the outcome 1 has a finite one.
    up = prob + max(0.0, (1 - prob) - factor * prob)
    down = (1 - prob) + max(0.0, prob - factor * (1 - prob))
    exact = max(up, down)
    lower, upper = noise.delta(eps, bound="lower"), noise.delta(eps)
    assert lower <= exact * (1 + 1e-14)
    assert exact * (1 - 1e-14) <= upper
    assert upper - lower < 1e-9
