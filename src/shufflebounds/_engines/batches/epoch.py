r"""The upper bound of delta of one epoch of shuffled batches, by the theorem of docs/theorems/shuffled-batches.

F_k(E) is the largest delta of an epoch of k steps at :math:`E = e^\varepsilon`; the epoch has T steps. Let h be delta of one step,
D(c, B) the tail of `weights`, and :math:`\Gamma_N(E; u) = \frac1N \mathbb{E}(X^*_1 + \cdots + X^*_N + u)_+` with the variables X*
of `dominating_law`. The theorem has two bounds, each valid for every number N of terms:

.. math:: F_T(E) \le \Gamma_N(E; 0) + (h + E - 1)\, D(T/N, B), \qquad
    F_T(E) \le (1 - \tfrac{k}{T})\, \Gamma_N(E; u) + \tfrac{k}{T} \zeta + (h + E - 1)(\eta + \beta)

The second bound has a number k < T of pivots and a level A > 1. Let f be an upper bound of F_k(A), by the first bound. Then
:math:`\eta = (1 + A) f`, :math:`u = \max(0, A(A - E))\, k N/(T - k)`, :math:`\zeta = \eta` for A > E and f otherwise. Either
:math:`N \le (T - k)/A^2` and :math:`\beta = 0`, or :math:`\beta` is the mean excess of
:math:`\frac{A^2}{B} \operatorname{Bin}(B, A^{-2})` over (T - k)/N.

Every choice of N, k and A is valid. The choice is made with approximations of :math:`\Gamma`, and the bound itself is evaluated
once. If it shows that the approximation is wrong, as for few terms or heavy tails, a search with values of :math:`\Gamma` finds
another N for the first bound, and the smaller bound is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from shufflebounds._base.caches import Kept, cached_property, kept
from shufflebounds._base.limits import CACHED_ANSWERS, COMPUTED_ERROR, FEW, TINY
from shufflebounds._base.types import ULP, FloatArray
from shufflebounds._core._gaussian import gaussian_epsilon
from shufflebounds._engines.batches.dominating_law import DEEPEST, Approximation, closer_mean, largest_kind, log_mean_excess
from shufflebounds._engines.batches.weights import CUTS, Weights, log_binomial_excess, log_divergence

__all__ = ["LARGEST_MU", "Epoch", "Witness"]

LARGEST_MU = 3.25
"""Largest mu for which the theorem is used; for a larger mu the bound is that of a single step. At this mu the second moment of X*
is e^42, 200 times the largest number of steps, 2**53: for a larger mu rare values dominate the sums, and no bound by the theorem is
below that of a step."""

_SMALLEST = -200.0
"""Smallest log delta of one step at which a bound is computed. At a larger eps, the bound at the last such eps, or that of one
step, is used. Lowered: masses underflow."""

_BELOW = 9.0
"""The outputs that are bounded instead of computed add e^-9 of the bound. Raised: heavier tails and longer run time."""

_LEVELS = 32
"""Number of levels A of the pivots. Raised: a tighter bound by up to 1 % of eps, and longer run time."""

_HIGHEST = 3.0
"""Largest log A. Pivots with a larger A give no smaller bound, because the number of terms is divided by A^2."""

_TERMS = np.geomspace(1.0, 2.0**53, 120)
"""Numbers of terms at which the sums of the pivots are approximated."""

_SHARES = np.geomspace(1e-4, 1.0, 500)
"""Values of (c - 1)/(A^2 - 1) that are tried for batches."""

_STEP = 0.9
"""Ratio of neighbouring values of the smaller eps that are tried for a given eps. Raised: closer to the smallest bound, and longer
run time."""

_FLAT = 1e-3
"""The search for a smaller eps ends where the relative fall of the bound is below this multiple of the relative fall of eps.
Raised: the search may end before a smaller bound. Lowered: more evaluations, of 10 ms each."""

_WRONG = 0.05
"""If the log of the bound differs from its approximation by more than this, N is chosen again by a search of about 10 ms. Raised:
the bound is less tight for few terms and heavy tails. Lowered: longer run time."""

_PART = 0.15
"""The mean excess of batches may add this fraction of the excess of single records. Any fraction is valid."""


class _Noise:
    """What all epochs with the same mu share: the tails of the weights, and approximations of Gamma_N(A; 0) at the levels A of
    pivots.
    """

    def __init__(self, mu: float) -> None:
        self.mu, self.weights = mu, Weights(mu)
        # `last` is the largest eps at which a bound is computed; `log_levels` has the logarithms of the levels A of pivots.
        self.last = float(gaussian_epsilon(1.0, mu, math.exp(_SMALLEST), False))
        self.log_levels: list[float] = np.geomspace(1e-4 * self.last, min(0.7 * self.last, _HIGHEST), _LEVELS).tolist()

    @cached_property
    def sums(self) -> FloatArray:
        """Approximations of the log of Gamma_N(A) at all levels and `_TERMS`."""
        return np.array([Approximation(self.mu, level).log_mean(_TERMS, np.zeros(_TERMS.size)) for level in self.log_levels])


_NOISE: Kept[float, _Noise] = Kept(FEW)


class _Pivots(NamedTuple):
    """The numbers k of pivots and levels A that are tried, with one entry of each array for each pair (k, A).

    `bound` approximates the bound f of F_k(A), which has `chosen` terms. The bound of F_T(E) has `terms` terms, and `excess` is
    beta in it (module docstring).
    """

    pivots: FloatArray
    level: FloatArray
    chosen: FloatArray
    bound: FloatArray
    terms: FloatArray
    excess: FloatArray


class _Choice(NamedTuple):
    """An approximation of the bound, the number N of terms, and the index in `_Pivots`, or -1 for the bound without pivots."""

    value: float
    terms: float
    place: int


class Witness(NamedTuple):
    """Numbers that the theorem leaves free; each choice gives a valid bound (module docstring).

    Attributes
    ----------
    eps : float
        The bound is that at this eps, which is at most the given one.
    terms : int
        The number N of terms.
    cut : float
        A of D(T/N, B) (`weights`). If there are pivots, it is not used.
    pivots : int
        The number k of pivots, or 0 for the bound without pivots.
    level, chosen, chosen_cut : float, int, float
        The level A of the pivots, and N and A of D(k/N, B) in the bound f of F_k(A).
    """

    eps: float
    terms: int
    cut: float
    pivots: int = 0
    level: float = 1.0
    chosen: int = 1
    chosen_cut: float = 1.0


class Epoch:
    """Upper bounds of log delta of an epoch, for all datasets, adaptive gradients, and both (P, Q) and (Q, P).

    Parameters
    ----------
    mu : float
        Largest length of a vector over the standard deviation of the noise.
    steps : int
        Number T of batches.
    batch : int
        Number B of records of a batch.
    """

    def __init__(self, mu: float, steps: int, batch: int) -> None:
        self.mu, self.steps, self.batch = mu, steps, batch

    @cached_property
    def _noise(self) -> _Noise:
        return _NOISE.of(self.mu, lambda: _Noise(self.mu))

    @kept(CACHED_ANSWERS)
    def log_delta(self, eps: float) -> float:
        """Return the bound at one eps >= 0."""
        alone = float(log_divergence(self.mu, eps))
        if self.steps == 1 or self.mu > LARGEST_MU:
            return alone
        at = self._best_below(eps)
        if at < eps:
            return min(alone, self.log_delta(at))
        near, one = self._choice(eps), self._step(eps)[0]
        found = self._by_choice(eps, near) if near.value < one else 0.0
        if not abs(found - math.log(near.value)) <= _WRONG:
            closer = self._closer_choice(eps, near.value)
            if closer.value < math.exp(found):
                found = min(found, self._by_choice(eps, closer))
        # The bound may rise with eps from its value at 0 on, by less than the error of the approximations.
        return min(alone, found, self.log_delta(0.0) if eps > 0 else 0.0)

    def _by_choice(self, eps: float, choice: _Choice) -> float:
        """Return the log of the bound with the given choice."""
        value, terms, place = choice
        if place < 0:
            return math.log(self._by_one(self.steps, eps, terms, value))
        count, level, chosen, near, _, excess = (float(part[place]) for part in self._pivots)
        f = self._pivot_bound(count, level, chosen, near)
        eta, factor = (1 + level) * f, math.exp(eps)
        shift = max(0.0, level * (level - factor)) * count * terms / (self.steps - count)
        main = (1 - count / self.steps) * math.exp(log_mean_excess(self.mu, eps, terms, shift, math.log(value) - _BELOW))
        more = count / self.steps * (eta if level > factor else f) + self._step(eps)[1] * (eta + excess)
        return math.log(main + more) + COMPUTED_ERROR

    def _closer_choice(self, eps: float, near: float) -> _Choice:
        """Return the choice with the smallest bound with one pivot, by values with a gap of 1e-3; `near` approximates the bound."""
        (one, weight), terms = self._step(eps), np.unique(self._terms(np.array([float(self.steps)])))
        law = largest_kind(self.mu, eps, False, max(math.log(min(near, one)) - 2 * _BELOW, DEEPEST))
        tails = weight * self._tail(self.steps / terms)
        # A tail above delta of one step is not used.
        number, tail = terms[tails < one].tolist(), tails[tails < one].tolist()
        if not number:
            return _Choice(one, 1.0, -1)
        value, place = _least_of(lambda i: closer_mean(*law, number[i]) + tail[i], len(number))
        return _Choice(max(value, TINY), number[place], -1)

    def witnesses(self, eps: float) -> Iterator[Witness]:
        """Yield the choices of which :meth:`log_delta` uses one, unless the bound is that of one step."""
        if self.steps > 1 and self.mu <= LARGEST_MU:
            for at in dict.fromkeys((self._best_below(eps), 0.0)):
                near = self._choice(at)
                for _, terms, place in (near, self._closer_choice(at, near.value)):
                    found = Witness(at, int(terms), self._cut(self.steps / terms))
                    if place >= 0:
                        count, level, chosen = (float(part[place]) for part in self._pivots[:3])
                        found = found._replace(pivots=int(count), level=level, chosen=int(chosen),
                                               chosen_cut=self._cut(count / chosen))
                    yield found

    def approximate(self, eps: float) -> float:
        """Return an approximation of the bound at one eps, in less time."""
        alone = float(log_divergence(self.mu, eps))
        if self.steps == 1 or self.mu > LARGEST_MU:
            return alone
        return min(alone, math.log(self._choice(self._best_below(eps)).value))

    def _best_below(self, eps: float) -> float:
        """Return an eps, at most the given one, at which the bound is small.

        The bound may rise with eps, because the factor h + E - 1 of the tails does (h is the divergence of one step). Beside eps
        itself, smaller eps of the grid _STEP^j `last` are tried, the largest first, until the bound is flat or rises. If the bound
        at eps = 0 is at most the smallest of these bounds, 0 is returned, so that all such eps share one bound.
        """
        last, at = self._noise.last, min(eps, self._noise.last)
        power = math.ceil(math.log(at / last) / math.log(_STEP)) if at > TINY else 0
        best = self._choice(at).value
        while at > TINY:
            lower = min(at, last * _STEP**power)
            value = self._choice(lower).value
            if value > best * (1 - _FLAT * (1 - lower / at)):
                break
            at, best, power = lower, value, power + 1
        return 0.0 if self._choice(0.0).value <= best else at

    def _by_one(self, steps: float, eps: float, terms: float, near: float) -> float:
        """Return the bound without pivots for a given number of terms; `near` is an approximation of the result."""
        main = math.exp(log_mean_excess(self.mu, eps, terms, 0.0, math.log(near) - _BELOW))
        return (main + self._step(eps)[1] * float(self._tail(np.array([steps / terms]))[0])) * (1 + COMPUTED_ERROR)

    @kept(CACHED_ANSWERS)
    def _pivot_bound(self, count: float, level: float, chosen: float, near: float) -> float:
        """Return an upper bound f of F_k(A)."""
        eps = _log_below(level)
        return min(self._step(eps)[0], self._by_one(count, eps, chosen, near))

    def _tail(self, c: FloatArray) -> FloatArray:
        """Return upper bounds of the tail D(c, B) of `weights`.

        D bounds a convex and decreasing function of c, the largest mean of E(omega - c)_+ for the weights omega. So linear
        interpolation between upper bounds at `CUTS` gives an upper bound. Beyond `CUTS` the last value is an upper bound.
        """
        return np.asarray(np.interp(c, CUTS, self._noise.weights.batched(self.batch)))

    def _cut(self, c: float) -> float:
        """Return A of the smallest known bound D(A) + beta of D(c, B)."""
        return self._noise.weights.cut(self.batch, c)

    def _terms(self, steps: FloatArray) -> FloatArray:
        """Return the numbers N of terms to try: a row for each number of steps, and in it the largest N with N c <= steps for each
        c in `CUTS`.
        """
        return np.asarray(np.maximum(np.floor(steps[:, None] / CUTS), 1.0))

    @cached_property
    def _pivots(self) -> _Pivots:
        count = np.unique(np.round(2 ** np.arange(2, math.log2(max(self.steps / 2, 1)), 0.5)))
        terms = self._terms(count)
        tail, columns = self._tail(count[:, None] / terms), [np.empty((6, 0))]
        for log_level, sums in zip(self._noise.log_levels, self._noise.sums) if count.size else ():
            level, (one, weight) = math.exp(log_level), self._step(log_level)
            total = np.exp(np.interp(np.log(terms), np.log(_TERMS), sums)) + weight * tail
            best = total.argmin(axis=1)[:, None]
            bound, chosen = (np.take_along_axis(part, best, 1)[:, 0] for part in (total, terms))
            bound = np.minimum(bound, one)
            # The number N of terms for T steps and k pivots is (T - k)/c, for the smallest c at which the mean excess beta is at
            # most the fraction _PART of eta. At c = A^2 (A: the level) beta is 0.
            fine = 1 + (level**2 - 1) * _SHARES
            excess = np.exp(log_binomial_excess(self.batch, np.array(level**2), fine))
            place = np.minimum(np.searchsorted(-excess, -_PART * (1 + level) * bound), fine.size - 1)
            most = np.floor((self.steps - count) / fine[place])
            excess = np.exp(log_binomial_excess(self.batch, np.array(level**2), (self.steps - count) / np.maximum(most, 1.0)))
            columns.append(np.stack([count, np.full(count.size, level), chosen, bound, most, excess]))
        table = np.concatenate(columns, axis=1)
        return _Pivots(*table[:, table[4] >= 1])

    @kept(CACHED_ANSWERS)
    def _choice(self, eps: float) -> _Choice:
        """Return the choice with the smallest approximation of the bound."""
        weight, factor = self._step(eps)[1], math.exp(eps)
        near = Approximation(self.mu, eps)
        terms = np.unique(self._terms(np.array([float(self.steps)])))
        total = np.exp(near.log_mean(terms, np.zeros(terms.size))) + weight * self._tail(self.steps / terms)
        best = _Choice(float(total.min()), float(terms[total.argmin()]), -1)
        count, level, _, bound, terms, excess = self._pivots
        eta, share = (1 + level) * bound, count / self.steps
        total = share * np.where(level > factor, eta, bound) + weight * (eta + excess)
        places = np.flatnonzero(total < best.value)
        if places.size:
            count, level, terms, share, total = (part[places] for part in (count, level, terms, share, total))
            shift = np.maximum(0.0, level * (level - factor)) * count * terms / (self.steps - count)
            total = total + (1 - share) * np.exp(near.log_mean(terms, shift))
            at = int(total.argmin())
            best = min(best, _Choice(float(total[at]), float(terms[at]), int(places[at])))
        return best

    def _step(self, eps: float) -> tuple[float, float]:
        """Return the divergence h of one step and the factor h + e^eps - 1 of the tails."""
        one = max(math.exp(float(log_divergence(self.mu, eps))), TINY)
        return one, one + math.expm1(eps)


def _log_below(level: float) -> float:
    """Return the log of a level A below `level`; the distance covers the rounding of the log and of the test N <= (T - k)/A^2.

    F_k(A), the largest delta of k steps, decreases with A, so its bound at the smaller A is valid at `level`. All other parts of
    the bound of delta grow with A, and use `level` itself.
    """
    return max(0.0, math.log(level) - 8 * ULP)


def _least_of(value: Callable[[int], float], count: int) -> tuple[float, int]:
    """Return the minimum of a sequence that falls and then rises, and its place, by a golden-section search."""
    values = dict[int, float]()

    def at(place: int) -> float:
        if place not in values:
            values[place] = value(place)
        return values[place]

    low, high = 0, count - 1
    while high - low > 2:
        step = min(math.ceil(0.382 * (high - low)), (high - low - 1) // 2)
        if at(high - step) < at(low + step):
            low += step
        else:
            high -= step
    return min((at(place), place) for place in range(low, high + 1))
