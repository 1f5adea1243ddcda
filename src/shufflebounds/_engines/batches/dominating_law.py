r"""The distribution of a variable X* whose sums bound delta of shuffled batches, and approximations of these sums.

The unit of length is the standard deviation of the noise. Let R_w = N(w, I), which is N(w, 1) in one dimension, and
:math:`E = e^\varepsilon`. The target's vector has the length mu. Let a and w be vectors of length at most mu. By the lemma of
docs/theorems/shuffled-batches, the expectation of every convex function of :math:`(R_a - E R_0)/R_w` under :math:`R_w` is at most
that of the same function of X*. In one dimension the distribution of X* is:

- the positive values of X* are those of :math:`(R_\mu - E R_0)/R_w` under R_w for w = -mu, or w = 0 for the pair (Q, P);
- the negative values are those for w = mu, or w = 2 mu for the pair (Q, P); with the remaining probability X* = 0.
"""

from __future__ import annotations

import math

import numpy as np

from shufflebounds._base.convex_order import shares, to_nodes
from shufflebounds._base.limits import SAME_LOG, TINY
from shufflebounds._base.quadrature import STEEPEST, log_normal_masses
from shufflebounds._base.scipy_functions import log_ndtr, ndtri_exp
from shufflebounds._base.types import ULP, FloatArray
from shufflebounds._engines.batches.weights import log_divergence
from shufflebounds._engines.excess.evaluation import BLUR, Effort, rounding, without_negligible
from shufflebounds._engines.excess.excess_law import ExcessLaw

__all__ = ["Approximation", "all_opposite", "largest_kind", "log_mean_excess"]

_BINS = 160
"""Number of bins of outputs for the positive and for the negative values. Raised: longer run time. Lowered: a looser bound; 160
bins raise log delta by about 1e-4."""

_ROUGH_BINS = 40
"""Number of bins for approximations, whose error is about 0.05 in log delta."""

_LOWEST = -40.0
"""Log of the probability under R_0 of the outputs below the last bin. Their values X < 0 are raised to the value at the end of the
bin. Raised: a looser bound for more than 1e15 steps. Lowered: wider bins."""

_DEEPEST = -250.0
"""Smallest log of the probability of outputs that are bounded instead of computed. Lowered to -280 or less: masses underflow."""

_LEVELS = (-2.0, -4.0, -6.0, -8.0, -10.0, -13.0, -16.0, -20.0)
"""Logs of tail probabilities that define levels; an approximation treats the values above a level one at a time."""

_FEW_LARGE = 0.03
"""Expected number of large values in a sum that an approximation treats one at a time. Raised: sums of two large values are
ignored although they matter. Lowered: the saddle point has a larger error."""

_TILTS = np.geomspace(1e-9, 10.0, 128)
"""Tilts of the saddle points, in units of the inverse standard deviation of X*. More entries: smaller errors."""

_HERMITE = np.polynomial.hermite_e.hermegauss(9)
"""If one value is large, the sum of the others is taken as normal: nodes and weights of a quadrature over this sum."""


_Half = tuple[FloatArray, FloatArray, float]
"""The positive or the negative values of X*, their masses, and the terms that they add to the mass at 0."""


def largest_kind(
    mu: float, eps: float, swapped: bool, log_cut: float, bins: int = _BINS, below: _Half | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return values and log masses of a variable that is larger than X* in the increasing convex order, apart from large values.

    Outputs for which X* is large, of total probability e^log_cut under R_mu, are moved to X* = 0. As (s + x)_+ <= s_+ + x_+, this
    decreases the mean positive part of a sum of X* by at most e^log_cut for each term. The negative values do not depend on
    log_cut; `below` are those of `negative_values`, which are computed by default.

    In each bin of outputs X* is monotone, and is replaced by its values at the two ends with the same mean. Rounding is covered as
    in `ExcessLaw.widened`: the masses of bins are lowered by a relative BLUR, and the values of X* and their means are raised by
    several BLUR times the size of their terms.
    """
    end = max(mu - float(ndtri_exp(log_cut)), eps / mu + mu / 2 + 0.5)
    above, below = _half(mu, eps, swapped, 1, end, bins), below or negative_values(mu, eps, swapped, bins)
    value, mass = np.concatenate([above[0], below[0]]), np.concatenate([above[1], below[1]])
    return np.append(value[mass > 0], 0.0), np.log(np.append(mass[mass > 0], max(BLUR + above[2] + below[2], TINY)))


def negative_values(mu: float, eps: float, swapped: bool, bins: int) -> _Half:
    """Return the negative values of X*."""
    return _half(mu, eps, swapped, -1, float(ndtri_exp(_LOWEST)), bins)


def _half(mu: float, eps: float, swapped: bool, sign: int, end: float, bins: int) -> _Half:
    """Return the values of X* of one sign, for bins between the output at which X* = 0 and `end`."""
    root, w = eps / mu + mu / 2, mu * (swapped - sign)
    fine = np.linspace(root, end, 513)
    # 80 % of the bins are placed with a density proportional to the cube root of mass * slope^2, where slope is the derivative of
    # X* with respect to the output.
    power = -((fine - (mu * (1 + sign) - w)) ** 2) / 6
    weight = np.exp(power - power.max())
    climb = np.append(0.0, np.cumsum(weight[1:] + weight[:-1]))
    share = 0.8 * climb / climb[-1] + np.linspace(0.0, 0.2, fine.size)
    # No log density changes by more than STEEPEST over a bin.
    width = abs(end - root)
    number = max(bins, math.ceil(5 * width * (width + 2 * mu) / STEEPEST))
    edges = np.interp(np.linspace(0.0, 1.0, number + 1), share, fine)[::sign]
    own, first, second = (log_normal_masses(edges, mean, 1.0) for mean in (w, mu, 0.0))
    # log(E R_0/R_w), from which X and the sum of its two terms follow.
    log_b = eps - w * edges + w * w / 2
    loss = mu * (edges - root)
    size = np.exp(log_b) * (1 + np.exp(loss))
    value = np.exp(log_b) * np.expm1(loss) + 2 * BLUR * size
    mean = np.exp(first - own) - np.exp(eps + second - own) + 4 * BLUR * np.maximum(size[1:], size[:-1])
    mass = np.exp(own) * (1 - BLUR)
    mass = to_nodes(mass, mass * shares(mean, value[:-1], value[1:]))
    beyond, rest = math.exp(float(log_ndtr(sign * (w - end)))), -sign * math.exp(float(log_ndtr(w - root)))
    # Beyond the last bin, positive values of X* are moved to 0, and negative values to that at the end of the bin.
    if sign > 0:
        return value, mass, rest + beyond
    mass[0] += beyond
    return value, mass, rest


def log_mean_excess(mu: float, eps: float, terms: float, shift: float, log_cut: float) -> float:
    """Return an upper bound of the log of E(X*_1 + ... + X*_N + shift)_+ / N for (P, Q) and for (Q, P), N = `terms`.

    Outputs of a total probability of at most e^log_cut are bounded instead of computed, which adds at most e^log_cut to the mean.
    """
    largest, log_cut = -math.inf, max(log_cut, _DEEPEST)
    for swapped in (False, True):
        value, log_mass = largest_kind(mu, eps, swapped, log_cut)
        moved = value + shift / terms * (1 + BLUR)
        upper = without_negligible(moved, log_mass, terms, True, Effort.SAMPLED)[1]
        slack = rounding(log_mass, 0 * log_mass, 0 * log_mass) + 32 * ULP * abs(upper)
        largest = max(largest, upper + slack - math.log(terms) * (1 - 4 * ULP))
    return float(np.logaddexp(largest, log_cut + SAME_LOG)) + 8 * ULP


class Approximation:
    """Approximations of the log of E(X*_1 + ... + X*_N + u)_+ / N for many N and u at one eps, for the pair (P, Q).

    For a given level, the sum of the values of X* below the level is approximated at a saddle point. It is assumed that at most one
    value of a sum is above the level; the sum of the other values is then taken as normal.
    """

    def __init__(self, mu: float, eps: float) -> None:
        self.mu, self.factor, self.log_one = mu, math.exp(eps), float(log_divergence(mu, eps))
        tilts, logs, curvatures, large, deviations = [], [], [], [], []
        below = negative_values(mu, eps, False, _ROUGH_BINS)
        for level in _LEVELS:
            value, log_mass = largest_kind(mu, eps, False, level, _ROUGH_BINS, below)
            deviation = math.sqrt(float(np.exp(log_mass) @ value**2))
            tilt = _TILTS / deviation
            exponent = tilt[:, None] * value + log_mass
            top = exponent.max(axis=1)
            mass = np.exp(exponent - top[:, None])
            total = mass.sum(axis=1)
            tilts.append(tilt)
            logs.append(top + np.log(total))
            # The variance, which may be rounded below 0.
            curvatures.append(np.maximum((mass @ value**2) / total - ((mass @ value) / total) ** 2, 0.0))
            large.append(float(value.max()))
            deviations.append(deviation)
        self._tilts, self._logs, self._curvatures, self._large, self._deviations = map(
            np.array, (tilts, logs, curvatures, large, deviations))
        self._chance = np.exp(self._tail(self._large)[0])

    def _tail(self, s: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log Pr[X* > s] and E(X* - s)_+ for s >= 0."""
        half = self.factor * math.exp(self.mu**2 / 2)
        y = np.log(0.5 * (half + np.sqrt(half * half + 4 * s))) / self.mu
        logs = [log_ndtr(mean - y) for mean in (-self.mu, 0.0, self.mu)]
        own, other, first = map(np.exp, logs)
        return logs[0], np.maximum(first - self.factor * other - s * own, TINY)

    def log_mean(self, terms: FloatArray, shift: FloatArray) -> FloatArray:
        """Return approximations of log E(X*_1 + ... + X*_N + u)_+ / N for arrays of N and u."""
        smallest = np.logaddexp(self.log_one, np.log(np.maximum(shift / terms, TINY)))
        need = terms * (self.factor - 1) - shift
        for i, (tilts, curvatures) in enumerate(zip(self._tilts, self._curvatures)):
            # Every level that few terms of the sum exceed gives an approximation. The smallest of them is most often the most
            # accurate. For N = 1 none is needed: the mean positive part of a single X* is known exactly (`log_one`).
            used = (terms > 1) & ((self._chance[i] <= _FEW_LARGE / terms) | (i == len(_LEVELS) - 1))
            number, most = terms[used], self._large[i]
            power = number[:, None] * self._logs[i] + shift[used, None] * tilts - 2 * np.log(tilts)
            best = power.argmin(axis=1)
            light = power.min(axis=1) - 0.5 * np.log(2 * math.pi * (number * curvatures[best] + 2 / tilts[best] ** 2))
            level = need[used, None] - np.sqrt(number)[:, None] * self._deviations[i] * _HERMITE[0]
            gain = self._tail(np.maximum(level, most))[1] @ _HERMITE[1] / math.sqrt(2 * math.pi)
            smallest[used] = np.minimum(smallest[used], np.logaddexp(light - np.log(number), np.log(np.maximum(gain, TINY))))
        return np.asarray(smallest)


def all_opposite(mu: float, bins: int = 500) -> ExcessLaw:
    """Return the distribution of (R_mu - E R_0)/R_-mu under R_-mu, with R_w = N(w, 1) and E = e^eps, for a lower bound.

    All other vectors are opposite to the target's vector, and each output is rounded to a bin. The ends of the outermost bins are
    infinite, so that no output is truncated.
    """
    edges = np.linspace(-mu - 12.0, mu + 12.0, bins - 1)
    own, first, second = (np.concatenate([[log_ndtr(edges[0] - mean)], log_normal_masses(edges, mean, 1.0),
                                          [log_ndtr(mean - edges[-1])]]) for mean in (-mu, mu, 0.0))
    return ExcessLaw(own, first - own, second - own, -math.inf).widened(upper=False, error=BLUR)
