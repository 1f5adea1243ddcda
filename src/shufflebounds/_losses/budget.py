r"""The difference between a pure budget and eps without cancellation, and the loss of a sampled record.

For eps just below the budget, delta is about proportional to budget - eps. A budget that is rounded to a double could make the
relative error of this difference arbitrarily large, and so the error of log delta. The budget is therefore stored as an unevaluated
sum of two doubles, and the difference has an error of one ulp.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import lru_cache
from typing import Any

import numpy as np

from shufflebounds._base.limits import LARGEST_EXPONENT
from shufflebounds._base.types import FloatArray

__all__ = ["Budget", "log_odds", "mixed_losses"]

_WIDE = Context(prec=80)  # Two doubles have 32 digits, and ln of a number near 1 loses up to 16 digits.


@dataclass(frozen=True)
class Budget:
    """A pure budget as the sum head + rest of two doubles, with a relative error of about 1e-32; inf if no budget exists."""

    head: float
    rest: float = 0.0

    @property
    def above(self) -> float:
        """The smallest double at or above the budget."""
        return math.nextafter(self.head, math.inf) if self.rest > 0 else self.head

    @property
    def below(self) -> float:
        """The largest double at or below the budget."""
        return math.nextafter(self.head, -math.inf) if self.rest < 0 else self.head

    def less(self, eps: Any) -> Any:
        """Return budget - eps for eps >= 0.

        A positive result is accurate to an ulp; if eps exceeds the budget, the result is at most 0.
        """
        if self.head == math.inf:
            return np.full_like(eps, math.inf, dtype=np.float64) if isinstance(eps, np.ndarray) else math.inf
        # `head - eps` is exact for head/2 <= eps <= 2 head.
        return (self.head - eps) + self.rest

    def times(self, many: int) -> Budget:
        """Return the budget of `many` releases."""
        return _split(_WIDE.multiply(_WIDE.add(Decimal(self.head), Decimal(self.rest)), Decimal(many)))


def _split(value: Decimal) -> Budget:
    head = float(value)
    return Budget(head, float(_WIDE.subtract(value, Decimal(head))) if head < math.inf else 0.0)


@lru_cache(maxsize=4096)
def log_odds(flip: float) -> Budget:
    """Return ln((1 - flip)/flip) for a flip probability in [0, 1/2]."""
    if flip == 0:
        return Budget(math.inf)
    if flip == 0.5:
        return Budget(0.0)
    small = Decimal(flip)
    return _split(_WIDE.ln(_WIDE.divide(_WIDE.subtract(Decimal(1), small), small)))


def mixed_losses(loss: FloatArray, rate: float) -> FloatArray:
    """Return the losses log(1 - rate + rate e^loss) of a sampled record, with a relative error of at most 8 ulp."""
    if rate == 1:
        return loss
    gain = rate * np.expm1(np.minimum(loss, LARGEST_EXPONENT))
    # For a negative loss, the argument of the log is a sum of positive terms, without cancellation.
    low = np.log((1 - rate) + rate * np.exp(np.minimum(loss, 0.0)))
    # For losses above 700, e^loss overflows; the result is loss + log(rate), plus a term of at most (1 - rate)/rate e^-700.
    far = loss + np.log(rate + (1 - rate) * np.exp(-np.maximum(loss, LARGEST_EXPONENT)))
    return np.asarray(np.where(loss >= LARGEST_EXPONENT, far, np.where(gain < -0.5, low, np.log1p(np.maximum(gain, -0.5)))))
