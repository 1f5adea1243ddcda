"""The probabilities of symmetric noise, with and without its sensitivity added, for whole numbers or for cells of real numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from shufflebounds._base.limits import COMPUTED_ERROR, LOG_TINY, MANY, MOST_ENUMERATED, TABLE_SIZE, UNDERFLOW_EXPONENT
from shufflebounds._base.types import ULP, FloatArray
from shufflebounds._engines.allocation.ratios import gaussian_ratios

__all__ = ["NoiseOutputs", "geometric_outputs", "laplace_outputs", "normal_outputs", "whole_normal_outputs"]

_END = 36.0
"""Outputs beyond this number of standard deviations, with a probability of about e^-650, form one cell on either side."""

_CELLS = 8 * MANY
"""Number of cells, each about 0.01 standard deviations wide. Raised: longer run time. Lowered: a smaller lower bound."""


class NoiseOutputs(NamedTuple):
    """Outputs of noise in increasing order, which are symmetric about 0: whole numbers, or cells of real numbers.

    `log_none` and `log_more` are the log masses of noise alone and of noise plus its sensitivity Delta; those of noise minus Delta
    are `log_more` reversed. `ratio` is the log likelihood ratio of noise plus Delta to noise alone, at each whole number or each
    edge of a cell. `error` bounds the errors of log masses above `floor`, and `ratio_error` those of `ratio`. `log_lost` is the log
    of the mass beyond the outputs.
    """

    log_none: FloatArray
    log_more: FloatArray
    ratio: FloatArray
    error: FloatArray | float
    ratio_error: FloatArray | float
    floor: float = -math.inf
    log_lost: float = -math.inf

    @property
    def in_cells(self) -> bool:
        """Whether the outputs are cells of real numbers. There is one more edge than there are cells."""
        return self.ratio.size > self.log_none.size


def normal_outputs(mu: float) -> NoiseOutputs:
    """Return the cells of normal noise whose sensitivity is mu standard deviations."""
    half = np.linspace(0.0, _END + mu, _CELLS // 2 + 1)
    # The log of the ratio is an increasing function of z = y/sigma.
    z = np.concatenate([[-1e3], -half[:0:-1], half, [1e3]])
    ratio = mu * z - mu * mu / 2
    none, more, error = gaussian_ratios(mu).cells(ratio)
    # The rounding errors of the edges are about 1e-15. Relative to the width of a cell they are below the term 8 COMPUTED_ERROR.
    error = np.maximum(error, error[::-1]) + 8 * COMPUTED_ERROR
    ratio[[0, -1]] = -np.inf, np.inf
    with np.errstate(divide="ignore"):
        log_none, log_more = np.log(none), np.log(more)
    return NoiseOutputs(log_none, log_more, ratio, error, 4 * ULP * (mu * np.abs(z) + mu * mu), LOG_TINY)


def laplace_outputs(budget: float) -> NoiseOutputs:
    """Return the cells of Laplace noise with this pure budget."""
    half = np.linspace(0.0, budget, _CELLS // 2 + 1)
    y = np.append(-half[:0:-1], half)
    width = np.log(-np.expm1(-np.diff(y)))
    none = np.concatenate([[-budget], width - np.minimum(np.abs(y[:-1]), np.abs(y[1:])), [-budget]])
    more = np.concatenate([[-2 * budget], width + (y[1:] - budget), [0.0]])
    ratio = np.concatenate([[-budget], np.clip(2 * y - budget, -budget, budget), [budget]])
    return NoiseOutputs(none - math.log(2), more - math.log(2), ratio, ULP * (16 + 8 * budget), 4 * ULP * budget)


def geometric_outputs(eps: float, delta: int) -> NoiseOutputs | None:
    """Return the outputs of geometric noise: the whole numbers from -Delta to Delta, or None if there are too many.

    All numbers below -Delta are merged with -Delta, and all above Delta with Delta.
    """
    if 2 * delta + 1 > MOST_ENUMERATED:
        return None
    # The ratios are constant below -Delta and above Delta.
    k, rate = np.arange(-delta, delta + 1.0), eps / delta
    log_rest = np.full(k.size, math.log(-math.expm1(-rate)))
    log_rest[[0, -1]] = 0.0
    none, more = log_rest - rate * np.abs(k), log_rest - rate * np.abs(k - delta)
    total = math.log1p(math.exp(-rate))
    ratio = rate * np.clip(2 * k - delta, -delta, delta)
    return NoiseOutputs(none - total, more - total, ratio, ULP * (16 + 8 * eps), 4 * ULP * np.abs(ratio))


def whole_normal_outputs(sigma: float, delta: int, log_total: float, log_tail: Callable[[float], float]) -> NoiseOutputs | None:
    """Return the outputs of discrete normal noise, which are whole numbers; None if there are too many.

    `log_total` is the log of the sum of all e^(-(k/sigma)^2/2), and `log_tail` gives the log of the probability beyond a number.
    """
    last = math.ceil(sigma * math.sqrt(2 * UNDERFLOW_EXPONENT))
    if 2 * (last + delta) + 1 > TABLE_SIZE:
        return None
    k = np.arange(-last - delta, last + delta + 1.0)
    none, more = -0.5 * (k / sigma) ** 2 - log_total, -0.5 * ((k - delta) / sigma) ** 2 - log_total
    ratio, error = delta * (2 * k - delta) / (2 * sigma**2), ULP * (16 + 6 * float(np.abs(none).max()))
    # Noise plus or minus Delta is beyond the outputs with at most the probability that noise is beyond `last` on either side.
    return NoiseOutputs(none, more, ratio, error, 4 * ULP * np.abs(ratio), -math.inf, log_tail(float(last)))
