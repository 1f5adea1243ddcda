"""Bounds of the expected positive part E S_+ of S = X_1 + ... + X_n, for independent X_i with the same discrete distribution.

A distribution is passed as an array of values and an array of their log masses, which sum to 1 and include the mass at X = 0. X is
the privacy-amplification random variable (`ExcessLaw`), n the number of users; delta of a shuffled randomizer is E S_+ / n. Atoms
with negligible mass are dropped, distributions with more than 1024 atoms are merged to fewer atoms, and distributions with large
values are passed to `heavy_tails`. The kernel `_core/_excess` evaluates all others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shufflebounds._base.convex_order import at_zero, gathered
from shufflebounds._base.limits import LARGEST, LOG_TINY, MANY, NEGLIGIBLE, NEGLIGIBLE_ROUGHLY, SEARCH_GAP, TINY
from shufflebounds._base.types import ULP, FloatArray, Interval, IntervalArray, consistent
from shufflebounds._core import _excess
from shufflebounds._engines.excess.chernoff import chernoff
from shufflebounds._engines.excess.heavy_tails import (
    LIGHT,
    close_sum,
    few_enough,
    log_rest,
    one_large_value,
    sum_of_few,
    sum_with_jumps,
)

__all__ = [
    "BLUR", "HEAVY", "Effort", "approximate_excess", "excesses", "largest_of", "log_gain", "rounding", "sums", "without_negligible",
]

HEAVY = 1e6
"""A distribution with an absolute value above this has heavy tails: a normal approximation does not describe its sums. Raised:
sums that are not close to normal are approximated by normal ones, and searches take longer. Lowered: large values are split off
although a normal approximation would do."""

BLUR = 2.0**-42
"""Shift of log a and log b (`ExcessLaw`) that covers relative rounding errors of the masses, which are about 1e-14.

In an upper bound the shift is added to both logs, as if the measure m were smaller by a relative 2**-42. Raised: less tight bounds.
Lowered: rounding errors may exceed the shift.
"""

_CLOSE = 0.1
"""Gap of log E S_+ that suffices for one of many samples of delta if tails are heavy. Lowered: longer run time."""

_NEAR = 2 * SEARCH_GAP
"""Gap of log E S_+ above which another method is tried, and which is requested from `close_sum`. An upper bound is then too large
by about half of this gap. Lowered: a longer run time; that of `close_sum` grows in inverse proportion. Raised: looser bounds."""

_LOSSY = 720.0
"""Masses below e^-720 are subnormal doubles with a relative error above 1e-9, up to 1 (`rounding`). They are moved to X = 0, which
widens the bounds by n times mass times abs(X). Raised: a larger relative error of the whole sum. Lowered: more masses are moved."""


class Effort(Enum):
    """The effort of the kernel that bounds log E S_+: (largest relative gap, largest number of evaluations of atoms).

    FINE is for single results. SAMPLED is for many values of delta that are interpolated; the error of the interpolation is larger
    than this gap. ROUGH is for the choice of one of several distributions. If no method reaches the gap, the bounds are valid but
    have a larger gap. For heavy tails SAMPLED stops at a gap of _CLOSE, and ROUGH at larger gaps. For noise of sigma = .2 and 10 to
    40 users, gaps up to 0.5 in log delta were seen, and no lower bound for E S_+ below 1e-207.
    """

    FINE = (2e-7, 6e7)
    SAMPLED = (1e-5, 1.5e7)
    ROUGH = (1e-5, 1e7)


def rounding(log_mass: FloatArray, log_a: FloatArray, log_b: FloatArray) -> float:
    """Return a bound of the relative error of E S_+ that comes from the rounding of the given logarithms.

    `log_mass` are the log masses of the atoms; `log_a` and `log_b` are the logs of the two terms of each value a - e^eps b.
    """
    all_logs = np.stack([log_mass, log_a, log_b])
    sizes: list[float] = np.abs(np.where(all_logs > -np.inf, all_logs, 0.0)).max(axis=1, initial=0.0).tolist()
    # The second term is for subnormal masses, with a log below -708, whose relative errors are larger.
    return 4 * ULP * (1 + 2 * sum(sizes)) + 64 * math.exp(min(0.0, sizes[0] - 744.0))


def largest_of(most: Sequence[float], value: Callable[[int], float]) -> tuple[int, float]:
    """Return the candidate with the largest value, and this value, without evaluating candidates that cannot have it.

    `most` has upper bounds of the values, and ``value(index)`` returns the value of a candidate.
    """
    best, largest = 0, -math.inf
    for place in np.argsort(np.negative(most), kind="stable").tolist():
        if most[place] < largest:
            break
        measured = value(place)
        if measured > largest:
            best, largest = place, measured
    return best, largest


def approximate_excess(values: FloatArray, log_mass: FloatArray, users: float, parted: bool) -> float:
    """Return an approximation of log E S_+ for `users` users by the saddle point.

    For heavy tails the saddle point alone may be too large by orders of magnitude. With `parted`, the atoms with the largest
    absolute values are split off; a sum has 1/4 of them on average. The result is then about the larger of the saddle point of the
    other values and of :func:`one_large_value`. The result is at most n E X_+, an upper bound that is close to E S_+ if only one
    user at a time has a positive value.
    """
    gains = values > 0
    if not gains.any():
        return -math.inf
    most = math.log(users) + float(np.logaddexp.reduce(log_mass[gains] + np.log(values[gains])))
    size = np.abs(values)
    if not float(size.max()) < LARGEST:
        return most
    light = values.copy()
    alone = -math.inf
    if parted:
        order = np.argsort(-size, kind="stable")
        light[order[: int(np.searchsorted(users * np.cumsum(np.exp(log_mass[order])), 0.25))]] = 0.0
        alone = one_large_value(values, log_mass, users)
    if not light.max() > 0:
        return min(alone, most)
    rough = float(_excess.rough_excess(light, log_mass, np.array([0, light.size]), np.array([float(users)])))
    return min(float(np.logaddexp(rough, alone)), most) if rough < math.inf else most


def log_gain(log_cut: ArrayLike, log_cut_b: ArrayLike, eps: float) -> float:
    """Return the log of the sum of (A - e^eps B)_+ over several cut sets; the arguments are logs, because A and B may underflow."""
    cut, other = np.broadcast_arrays(log_cut, log_cut_b)
    seen = cut > -np.inf
    loss = cut[seen] - other[seen] - eps
    gains = loss > 0
    return float(np.logaddexp.reduce(cut[seen][gains] + np.log(-np.expm1(-loss[gains])), initial=-np.inf))


def sums(values: FloatArray, log_mass: FloatArray, users: float, upper: bool | None,
         effort: Effort) -> Interval:
    """Return bounds of log E S_+ for `users` users, by the kernel.

    If `upper` is True or False, only that bound is needed, and the other may be trivial, which saves time.
    """
    if float(values.max()) <= 0:
        return Interval(-math.inf, -math.inf)
    count = np.array([float(users)])
    heavy = float(np.abs(values).max()) > HEAVY
    # The run time of the kernel grows with the number of atoms. Merging atoms widens the bounds more for heavy tails than for
    # other distributions, so heavy tails keep more atoms.
    if log_mass.size > (8 * MANY if heavy else MANY):
        def one(side: bool) -> float:
            at, log_moved = gathered(values, log_mass, upper=side)
            if heavy:
                return sums(at, log_moved, users, side, effort)[side]
            return float(_excess.log_excess(at, log_moved, np.array([0, at.size]), count, *effort.value)[side])

        tightest = Interval(-math.inf if upper else one(False), math.inf if upper is False else one(True))
        if not heavy and effort is not Effort.ROUGH:
            # With few users and a small E S_+ that is due to large values, merging atoms widens the bounds too much. So the sum is
            # also computed on a grid that is fine enough for these values.
            parted = sum_of_few(values, log_mass, users, selected=upper) if few_enough(users) else (
                close_sum(values, log_mass, users, _NEAR, LIGHT))
            tightest = _both(tightest, parted, users, log_mass)
        near = approximate_excess(values, log_mass, users, True)
        close = (upper is True or tightest.lower > near - 1) and (upper is False or tightest.upper < near + 1)
        if heavy or close:
            return tightest
        # A tiny E S_+ may be due to a few values far above the others, although none is above HEAVY; merged atoms would widen its
        # bounds too much.
        return _both(tightest, sum_with_jumps(values, log_mass, users, upper is True), users, log_mass)
    # A value below -(n - 1) max X makes the sum negative, so E S_+ = Pr[no user has such a value] E[S_+ | no user has one].
    fatal = values < -(1 + 8 * ULP) * users * float(values.max())
    if fatal.any():
        log_none = log_rest(log_mass[fatal], log_mass[~fatal])
        tightest = sums(values[~fatal], log_mass[~fatal] - log_none, users, upper, effort)
        # An error of one ulp of log w is a relative error of |log w| ULP of the mass w. The values in `fatal` are at most 8 MANY
        # atoms; let f be their total mass. The sum of their w |log w| is below f (|log f| + 10), and |log_none| is at least f; 38
        # ulp cover the roundings of sums and products.
        error = ULP * users * abs(log_none) * (48 + abs(math.log(max(abs(log_none), TINY))))
        return Interval(tightest.lower + users * log_none - error, tightest.upper + users * log_none + error)
    tightest, enough = Interval(-math.inf, math.inf), _CLOSE if heavy and effort is not Effort.FINE else _NEAR
    for way in _ways(values, log_mass, users, upper, effort, heavy):
        tightest = _both(tightest, way(), users, log_mass)
        if tightest.upper - tightest.lower <= enough:
            break
    return tightest


def _ways(values: FloatArray, log_mass: FloatArray, users: float, upper: bool | None, effort: Effort,
          heavy: bool) -> Iterator[Callable[[], tuple[float, float]]]:
    """Yield the methods in the order in which they are tried until the gap is small enough."""
    rtol, work = effort.value
    few, sampled = few_enough(users), effort is Effort.SAMPLED
    kernel = partial(_excess.log_excess, values, log_mass, np.array([0, log_mass.size]), np.array([float(users)]), rtol)
    jumps = partial(sum_with_jumps, values, log_mass, users, upper is True)
    one_by_one = partial(close_sum, values, log_mass, users, _NEAR, *(() if heavy else (LIGHT,)))
    if few and effort is not Effort.ROUGH:
        # For few users the kernel either reaches a small gap with little work, or takes longer than adding the users one by one.
        # With thousands of atoms even little work takes longer than the coarser sum that suffices for samples.
        probe = partial(kernel, work / 1024)
        yield from (one_by_one, probe) if sampled else (probe, partial(sum_of_few, values, log_mass, users))
    elif heavy:
        # For heavy tails the kernel either reaches the requested gap with little work, or does not reach it.
        yield partial(kernel, 1e5)
        if effort is not Effort.ROUGH:
            yield partial(jumps, brief=sampled)
            yield one_by_one
    yield partial(kernel, min(work, Effort.ROUGH.value[1]) if heavy else work)
    if not heavy and not few and effort is not Effort.ROUGH:
        yield one_by_one
        yield jumps
    yield lambda: (one_large_value(values, log_mass, users), math.inf)


def _both(one: tuple[float, float], other: tuple[float, float], users: float, log_mass: FloatArray) -> Interval:
    """Combine two pairs of bounds of log E S_+ for `users` users: the larger lower and the smaller upper bound.

    Raises InconsistentBoundsError if the two pairs contradict each other, unless masses underflow. The rounding errors of such
    masses are not in these bounds; the caller adds them (`rounding`).
    """
    both = Interval(max(one[0], other[0]), min(one[1], other[1]))
    if both.lower > both.upper and not float(log_mass.min()) < LOG_TINY:
        # The masses may add up to more than 1 for an upper bound, and to less than 1 for a lower bound, by their rounding errors.
        # `lower` may be from the mean of S and `upper` from its distribution, and for such masses they do not agree. So `lower` is
        # reduced by n times the distance of the sum from 1 before the comparison.
        lower = both.lower - users * abs(math.fsum([*np.exp(log_mass).tolist(), -1.0]))
        both = consistent(IntervalArray(*np.array([[lower], [both.upper]])), "log E S_+ of {!r} users", np.array([users])).alone()
    return both


def without_negligible(values: FloatArray, log_mass: FloatArray, users: float, selected: bool | None,
                       effort: Effort) -> tuple[float, float, NDArray[np.bool_]]:
    """Return bounds of log E S_+ without negligible atoms, and a mask of the atoms that were evaluated.

    Moving an atom x of mass w to 0 changes E S_+ by at most n w |x|. The total of these changes is subtracted from the lower and
    added to the upper bound. If the total is not below e^-30 of E S_+, fewer atoms are moved. Atoms with masses below e^-_LOSSY,
    which are subnormal doubles and have lost digits, are always moved.
    """
    with np.errstate(divide="ignore"):
        size = log_mass + np.log(np.abs(values))
    lossy = (log_mass < -_LOSSY) | (values == 0)
    order = np.argsort(np.where(lossy, -np.inf, size), kind="stable")
    total = np.logaddexp.accumulate(size[order])
    # Start from an estimate of E S_+ that is at most n E X_+, an upper bound. If E S_+ turns out to be far below this estimate,
    # more atoms must be kept.
    floor = approximate_excess(values, log_mass, users, True) - math.log(users) - NEGLIGIBLE
    kept, fewest = np.ones(size.size, dtype=bool), int(lossy.sum())
    for more in (NEGLIGIBLE, math.inf, 0.0):
        place = max(int(np.searchsorted(total, floor)), fewest)
        kept[:] = True
        kept[order[:place]] = False
        moved = math.log(users) + float(total[place - 1]) if place else -math.inf
        parts = at_zero(values, log_mass, kept)
        # Moving the atoms in `lossy`, those with subnormal masses, may change E S_+ by far more than the other atoms contribute.
        # Then Chernoff's bound suffices for the other atoms.
        omitted = place == fewest and floor + math.log(users) < moved
        lower, upper = -math.inf, chernoff(*parts, users) if omitted else math.inf
        if not upper < moved - NEGLIGIBLE:
            lower, upper = sums(*parts, users, selected, effort)
        answer = upper if selected else lower
        if place == fewest or moved < answer - NEGLIGIBLE_ROUGHLY:
            break
        floor = min(floor, answer - math.log(users)) - more
    if moved > -math.inf:
        lower = lower + math.log1p(-math.exp(moved - lower)) if moved < lower else -math.inf
        upper = float(np.logaddexp(upper, moved))
    return lower, upper, kept


def excesses(log_a: FloatArray, log_b: FloatArray, eps: float) -> FloatArray:
    """Return a - e^eps b from log a and log b; its relative error is that of the difference log a - log b - eps."""
    with np.errstate(invalid="ignore", over="ignore"):
        loss = np.where(log_a == log_b, 0.0, log_a - log_b) - eps
        # The larger term is factored out, so that no exponential overflows unless the result overflows.
        value = np.where(loss > 0, np.exp(log_a) * -np.expm1(-loss), np.exp(log_b + eps) * np.expm1(loss))
    return np.asarray(np.where((log_a == -np.inf) & (log_b == -np.inf), 0.0, value))
