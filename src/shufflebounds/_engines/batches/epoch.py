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

Every choice of N, k and A is valid. A choice is made with approximations of :math:`\Gamma`, and its bound is evaluated. The value
shows the error of the approximations. If another choice has a smaller bound by the corrected approximations, this choice is
evaluated, too, and so on. Choices are made at every fifth place of a fixed grid of eps. At each place the bounds of the two nearest
choices are evaluated, so that a choice that is wrong at one place is compared with that of another place. The bounds at smaller eps
are valid, too; that at the next place with a choice is always compared. Between the places the bound is interpolated: delta is
convex in E, and linear interpolation between upper bounds gives an upper bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shufflebounds._base.caches import Kept, cached_property, kept
from shufflebounds._base.limits import CACHED_ANSWERS, COMPARED, COMPUTED_ERROR, FEW, TINY
from shufflebounds._base.types import ULP, FloatArray
from shufflebounds._core._gaussian import gaussian_epsilon
from shufflebounds._engines.batches.dominating_law import Approximation, log_mean_excess
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

_RATIO = 1 / 1.01
"""Ratio of neighbouring eps of the grid on which the bound is evaluated; between them it is interpolated. Raised: longer run time.
Lowered: a less tight bound, by up to 1 - _RATIO of eps."""

_EVEN, _EVEN_PLACES = 0.5, 100
"""The eps of the grid are equally spaced below `_EVEN` times the bound of delta at eps = 0, with `_EVEN_PLACES` steps to eps = 0.
There log delta falls by less than 1 in all, and between eps that differ by 1 % it would fall by less than the errors of the bound.
`_EVEN` raised: a less tight bound. Lowered: a bound that may rise with eps. `_EVEN_PLACES` is a multiple of `_STEP`, and the first
step is about that of the grid above: 1 % of eps."""

_CHOSEN = 5
"""Choices are made at every fifth place of the grid. Raised: a less tight bound, which may rise with eps. Lowered: longer run
time."""

_STEP = 2 * _CHOSEN
"""Of the smaller eps of the grid that are tried for a given eps, every tenth. Raised: shorter run time. Lowered: closer to the
smallest bound. A multiple of `_CHOSEN` needs no further choices."""

_GAIN = 1e-3
"""Another choice is evaluated if its approximate bound is smaller by this fraction. The search for a smaller eps ends where the
relative fall of the bound is below this multiple of the relative fall of eps. Raised: a less tight bound, which may rise with eps.
Lowered: longer run time, 10 ms for each evaluation."""

_MOST_EVALUATED = 10
"""Largest number of choices with pivots, and of those without, that are evaluated at one eps, of 2 to 100 ms each; most often one
or two suffice. Raised: longer run time. Lowered: a less tight bound for few terms, heavy tails and more than 1e15 steps."""

_WRONG = 0.05
"""If the log of an evaluated term differs from its approximation by more than this, the next choice does not use approximations.
Raised: the bound is less tight for few terms and heavy tails. Lowered: longer run time."""

_FAR = math.exp(-2.0)
"""A mean excess is computed again, with fewer bounded outputs, if the bound is below this fraction of the approximation that gave
their number. Raised: longer run time. Lowered: a less tight bound where the approximation is too large."""

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


class _Choices(NamedTuple):
    """Choices of the numbers that the theorem leaves free, with approximations of the two parts of their bounds.

    The bound is e^`log_mean`, the part with Gamma_N, plus `rest`. `place` is the index in `_Pivots`, or -1 without pivots.
    """

    log_mean: FloatArray
    rest: FloatArray
    terms: FloatArray
    place: NDArray[np.intp]


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

    def log_delta(self, eps: float) -> float:
        """Return the bound at one eps >= 0.

        The bound is the linear interpolation in e^eps between its values at the two nearest eps of the grid. Where the values rise
        with eps, the smallest one before the rise is used.
        """
        alone = float(log_divergence(self.mu, eps))
        if self.steps == 1 or self.mu > LARGEST_MU:
            return alone
        if not eps < self._noise.last:
            return min(alone, self._lowest(0)[0])
        place = self._place(eps)
        low, high = self._eps(place), self._eps(place - 1)
        at_low, at_high = self._lowest(place)[0], self._at(place - 1)
        if not (low < eps and at_high < at_low):
            return min(alone, at_low)
        share = math.log(math.expm1(eps - low) / math.expm1(high - low))
        rest = math.log(math.expm1(eps - high) / math.expm1(low - high))
        value = float(np.logaddexp(at_low + rest, at_high + share))
        return min(alone, at_low, value + 16 * ULP * (1 + abs(value)))

    def approximate(self, eps: float) -> float:
        """Return an approximation of the bound at one eps, in less time: log delta is interpolated on every tenth of the grid."""
        alone = float(log_divergence(self.mu, eps))
        if self.steps == 1 or self.mu > LARGEST_MU or not eps < self._noise.last:
            return min(alone, self.log_delta(eps))
        place = (self._place(eps) - 1) // _STEP * _STEP
        low, high = self._eps(place + _STEP), self._eps(place)
        at_low, at_high = (math.log(self._nearly(self._best_below(one))) for one in (place + _STEP, place))
        return min(alone, at_low + (eps - low) / (high - low) * (at_high - at_low))

    @cached_property
    def _even(self) -> int:
        """The first place from which on the eps of the grid are equally spaced, a multiple of `_STEP`."""
        start = min(_EVEN * math.exp(self._evaluated(0.0)[0]), self._noise.last)
        return math.ceil(math.log(start / self._noise.last) / math.log(_RATIO) / _STEP) * _STEP

    def _eps(self, place: int) -> float:
        """Return the eps at a place of the grid, which decreases with the place and is at least 0."""
        beyond = max(0, place - self._even)
        return self._noise.last * _RATIO ** (place - beyond) * max(0.0, 1 - beyond / _EVEN_PLACES)

    def _place(self, eps: float) -> int:
        """Return the first place of the grid whose eps is at most the given one, which is at most `last`."""
        even = self._eps(self._even)
        place = self._even + (1 - eps / even) * _EVEN_PLACES if eps < even else math.log(eps / self._noise.last) / math.log(_RATIO)
        whole = max(0, math.ceil(place))
        return whole + (self._eps(whole) > eps) - (whole > 0 and self._eps(whole - 1) <= eps)

    def _at(self, place: int) -> float:
        """Return the bound at a place of the grid; that at eps = 0 is valid, and may be smaller."""
        return min(self._best(place)[0], self._evaluated(0.0)[0])

    def alone(self, eps: float) -> float:
        """Return the bound at one eps >= 0 without bounds at smaller eps, which may be smaller; only that at eps = 0 is used."""
        one = float(log_divergence(self.mu, eps))
        if self.steps == 1 or self.mu > LARGEST_MU or not eps <= self._noise.last:
            return one
        return min(one, self._evaluated(eps)[0], self._evaluated(0.0)[0])

    @kept(CACHED_ANSWERS)
    def _best(self, place: int) -> tuple[float, float, int]:
        """Return the smallest bound at a place of the grid, of one step and of the two nearest choices, as `_evaluated` does.

        A choice whose bound is not below that of one step is not evaluated again.
        """
        at, first = self._eps(place), place // _CHOSEN * _CHOSEN
        found = [(float(log_divergence(self.mu, at)), 1.0, -1)]
        for near in (self._eps(first), self._eps(first + _CHOSEN)):
            value, terms, index = chosen = self._evaluated(near)
            if near == at:
                found.append(chosen)
            elif (terms, index) not in {one[1:] for one in found} and value < log_divergence(self.mu, near):
                found.append((math.log(sum(self._parts(at, terms, index, math.exp(value)))), terms, index))
        return min(found)

    def _lowest(self, place: int) -> tuple[float, float, int, float]:
        """Return the smallest bound at a place of the grid or at a smaller eps, as `_evaluated` does, and this eps."""
        # Every place up to the next one with a choice, `chosen`, has the bound there as an upper bound, whatever the bounds between
        # them are. Farther down the grid `_best_below` decides, by approximations: values, of 2 to 100 ms each, may fall over
        # hundreds of places.
        chosen, place = (place // _CHOSEN + 1) * _CHOSEN, self._minimum(place)
        values = [(*self._best(at), self._eps(at)) for at in (place, chosen)]
        return min(*values, *((*self._evaluated(at), at) for at in (self._best_below(-(-place // _STEP) * _STEP), 0.0)))

    def _minimum(self, place: int) -> int:
        """Return the place of the first local minimum of the bound, from a place of the grid to smaller eps.

        For one choice the bound is convex in E: at larger eps it rises slowly. There all places have the same minimum, which is
        found from each of them.
        """
        step = 1
        while self._at(place + step) < self._at(place):
            place, step = place + step, 2 * step
        if step == 1:
            return place
        low, high = place - step // 2, place + step
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._at(middle + 1) < self._at(middle) else (low, middle)
        # Near the minimum, rounding may exchange neighbours.
        return min(place, high - 1, high, high + 1, key=self._at)

    @kept(CACHED_ANSWERS)
    def _evaluated(self, eps: float) -> tuple[float, float, int]:
        """Return the log of the bound at eps, and N and the index in `_Pivots` of the choice that gives it.

        The errors of the approximations at evaluated choices are interpolated in log N, and for `rest` in log k, and correct the
        approximations at other choices. If two choices without pivots have been evaluated, the log of the first part is taken as
        linear between and beyond them, because the approximations may jump from one N to the next.
        """
        log_mean, rest, terms, place = self._choices(eps)
        one, number, pivoted, tried = self._step(eps)[0], np.log(terms), place >= 0, set[int]()
        count, alone = np.log(self._pivots.pivots[place[pivoted]]), number[~pivoted]
        found, values, mean_errors, rest_errors = (math.inf, 1.0, -1), *(dict[float, float]() for _ in range(3))
        total = np.exp(log_mean) + rest
        at = int(total.argmin())
        if not total[at] < one:
            # By the approximations no bound is below that of one step. The largest N whose tail leaves half of it is evaluated.
            at = int(np.where(rest < 0.5 * one, terms, 0.0).argmax())
        while at not in tried:
            tried.add(at)
            main, more = self._parts(eps, float(terms[at]), int(place[at]), max(min(float(total[at]), one), TINY))
            found, x = min(found, (math.log(main + more), float(terms[at]), int(place[at]))), float(number[at])
            mean_errors[x] = error = math.log(main) - float(log_mean[at])
            if pivoted[at]:
                rest_errors[math.log(self._pivots.pivots[place[at]])] = math.log(max(more, TINY) / max(float(rest[at]), TINY))
            else:
                values[x] = math.log(main)
            if len(values) == 1 and not pivoted[at] and abs(error) > _WRONG:
                # The sum of a decreasing and a steeply increasing function is small where both are equal.
                at = int(np.abs(np.log(np.maximum(rest[: alone.size], TINY)) - math.log(main)).argmin())
                at = at if at not in tried else max(0, min(at + (1 if main > more else -1), alone.size - 1))
                continue
            logs, corrected = log_mean + _interpolated(number, mean_errors), rest.copy()
            if len(values) > 1:
                logs[: alone.size] = _interpolated(alone, values, beyond=True)
            if rest_errors:
                corrected[pivoted] *= np.exp(_interpolated(count, rest_errors))
            if max(map(abs, mean_errors.values())) > _WRONG:
                # Where the errors are large, they differ between numbers of pivots.
                other = np.flatnonzero(pivoted)[~np.isin(count, list(rest_errors))]
                logs[other], corrected[other] = np.minimum(logs, log_mean)[other], np.minimum(corrected, rest)[other]
            total = np.exp(np.minimum(logs, 0.0)) + corrected
            for kind in (pivoted, ~pivoted):
                if kind[list(tried)].sum() >= _MOST_EVALUATED:
                    total[kind] = math.inf
            at = int(total.argmin())
            if not total[at] < min(one, math.exp(found[0])) * (1 - _GAIN):
                break
        return found

    def _parts(self, eps: float, terms: float, place: int, near: float) -> tuple[float, float]:
        """Return upper bounds of the part of the bound with Gamma_N and of the rest; `near` approximates their sum."""
        if place < 0:
            count, shift, more = 0.0, 0.0, self._step(eps)[1] * float(self._tail(np.array([self.steps / terms]))[0])
        else:
            pivots = _Pivots(*(part[place : place + 1] for part in self._pivots))
            count, level, chosen, bound = (float(part[0]) for part in pivots[:4])
            f = self._pivot_bound(count, level, chosen, bound)
            shift, more = (float(part[0]) for part in self._with_pivots(eps, pivots._replace(bound=np.full(1, f))))
        main = (1 - count / self.steps) * self._main(eps, terms, shift, more, near)
        return main * (1 + COMPUTED_ERROR), more * (1 + COMPUTED_ERROR)

    def _with_pivots(self, eps: float, pivots: _Pivots) -> tuple[FloatArray, FloatArray]:
        """Return the numbers u in the bounds with pivots, and their parts without Gamma_N."""
        count, level, _, bound, terms, excess = pivots
        eta, factor = (1 + level) * bound, math.exp(eps)
        shift = np.maximum(0.0, level * (level - factor)) * count * terms / (self.steps - count)
        return shift, count / self.steps * np.where(level > factor, eta, bound) + self._step(eps)[1] * (eta + excess)

    def _main(self, eps: float, terms: float, shift: float, rest: float, near: float) -> float:
        """Return an upper bound of Gamma_N(E; shift); `near` approximates its sum with `rest`."""
        while True:
            main = math.exp(log_mean_excess(self.mu, eps, terms, shift, math.log(near) - _BELOW))
            if not main + rest < _FAR * near:
                return main
            near = main + rest

    def witnesses(self, eps: float) -> Iterator[Witness]:
        """Yield choices that show the bound of :meth:`log_delta`, unless the bound is that of one step.

        The first two are those of the two nearest eps of the grid. Each of them gives a bound at eps itself, which is most often
        below the interpolated one.
        """
        if self.steps == 1 or self.mu > LARGEST_MU:
            return
        top = min(eps, self._noise.last)
        place = self._place(top)
        near = [(*self._best(one), top) for one in (max(place - 1, 0), place)]
        for _, terms, index, at in (*near, self._lowest(place), (*self._evaluated(0.0), 0.0)):
            found = Witness(at, int(terms), self._cut(self.steps / terms))
            if index >= 0:
                count, level, chosen = (float(part[index]) for part in self._pivots[:3])
                found = found._replace(pivots=int(count), level=level, chosen=int(chosen), chosen_cut=self._cut(count / chosen))
            yield found

    @kept(CACHED_ANSWERS)
    def _best_below(self, place: int) -> float:
        """Return an eps, at most that of a place of the grid, at which the bound is small.

        The bound may rise with eps, because the factor h + E - 1 of the tails does (h is the divergence of one step). The place and
        those _STEP, 2 _STEP, ... later are tried, until the approximate bound is flat or rises. If that at eps = 0 is at most the
        smallest of these bounds, 0 is returned, so that all such eps share one bound.
        """
        at = self._eps(place)
        best = self._nearly(at)
        while at > 0:
            place += _STEP
            lower = self._eps(place)
            value = self._nearly(lower)
            if value > best * (1 - _GAIN * (1 - lower / at)):
                break
            at, best = lower, value
        return 0.0 if self._nearly(0.0) <= best else at

    @kept(CACHED_ANSWERS)
    def _nearly(self, eps: float) -> float:
        """Return the smallest approximation of the bound."""
        choices = self._choices(eps)
        return float((np.exp(choices.log_mean) + choices.rest).min())

    @kept(CACHED_ANSWERS)
    def _pivot_bound(self, count: float, level: float, chosen: float, near: float) -> float:
        """Return an upper bound f of F_k(A)."""
        eps = _log_below(level)
        one, weight = self._step(eps)
        rest = weight * float(self._tail(np.array([count / chosen]))[0])
        return min(one, (self._main(eps, chosen, 0.0, rest, near) + rest) * (1 + COMPUTED_ERROR))

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

    @kept(COMPARED)
    def _choices(self, eps: float) -> _Choices:
        """Return the choices without pivots, and those with pivots that may have a smaller bound."""
        weight, near = self._step(eps)[1], Approximation(self.mu, eps)
        terms = np.unique(self._terms(np.array([float(self.steps)])))
        alone = _Choices(near.log_mean(terms, np.zeros(terms.size)), weight * self._tail(self.steps / terms), terms,
                         np.full(terms.size, -1))
        shift, rest = self._with_pivots(eps, self._pivots)
        place = np.flatnonzero(rest < (np.exp(alone.log_mean) + alone.rest).min())
        if not place.size:
            return alone
        terms, share = self._pivots.terms[place], self._pivots.pivots[place] / self.steps
        pivoted = _Choices(np.log1p(-share) + near.log_mean(terms, shift[place]), rest[place], terms, place)
        log_mean, rest, terms, place = (np.concatenate(both) for both in zip(alone, pivoted))
        return _Choices(log_mean, rest, terms, place)

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


def _interpolated(at: FloatArray, values: dict[float, float], *, beyond: bool = False) -> FloatArray:
    """Return the values of the piecewise linear function through the given points; outside of them it is linear or constant."""
    x, y = (np.array(part) for part in zip(*sorted(values.items())))
    if x.size == 1:
        return np.full(at.size, y[0])
    place = np.clip(np.searchsorted(x, at), 1, x.size - 1)
    share = (at - x[place - 1]) / (x[place] - x[place - 1])
    share = share if beyond else np.clip(share, 0.0, 1.0)
    return np.asarray(y[place - 1] + share * (y[place] - y[place - 1]))
