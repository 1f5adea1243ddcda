r"""Bounds of E(X_1 + ... + X_n)_+ for distributions with heavy tails on both sides, whose sum is dominated by a few large values.

X is the privacy-amplification random variable (`ExcessLaw`) and n the number of users. Values above a threshold in absolute value
are called heavy, the others light. Where positive values are rare, all of them are heavy. Let K be the number of users with a heavy
value; K is binomial with parameters n and p. The sum S has n - K light and K heavy values:

    E S_+ = sum_k Pr[K = k] E g_k(Y_k),    g_k(y) = E(y + light values of n - k users)_+,    Y_k a sum of k heavy values.

Here p is the probability of a heavy value. The functions g_k are Fourier integrals along a tilted contour (kernel ``_smoothed``),
evaluated at many y at once, and are convex in y. The distribution of Y_1 is exact. The distributions of Y_2, Y_3, ... are replaced
by distributions on grid points that are larger in the convex order (masses spread to the two neighbours) for the upper bound, or
smaller (masses merged between neighbours) for the lower bound. More than k heavy values add at most n E X_+ Pr[Bin(n - 1, p) >= k];
k is chosen such that this is at most e^-20 of E S_+.

The gap in log E S_+ is about 1e-6 for Gaussian noise of sigma = 3/10 and 1/2 at n = 1e3 .. 1e6, and 1e-4 at n = 100.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from shufflebounds._base.convex_order import at_zero, merged_sum, rising, spread_sum
from shufflebounds._base.limits import COMPARED, LOG_TINY, SAFE_EXPONENT, SQUARABLE
from shufflebounds._base.quadrature import capped_exp
from shufflebounds._base.types import ULP, FloatArray, Interval, IntervalArray
from shufflebounds._engines.excess.tilted_inversion import LEFT, WIDE, Gains, Light

__all__ = ["LIGHT", "close_sum", "few_enough", "log_rest", "one_large_value", "sum_of_few", "sum_with_jumps"]

_MOST = 60
"""Largest number of heavy values in a sum. Raised: longer run time for tails that need more enumerated values. Lowered: fewer
distributions are in the range of this method."""

_FEWER = 0.1
"""Factor of the expected number of heavy values if positive values are rare. E S_+ is then small, so that the probability of more
than _MOST heavy values must be smaller, too. Raised: larger upper bounds below e^-300. Lowered: a sum of light values varies
more, and its contours become inaccurate."""

_DOUBLED = 2**20
"""Largest number of users whose values are added by :func:`sum_of_few`. Raised: such a sum takes more than 0.2 s at a step of 1,
longer than the other methods. Lowered: no close bounds of `Rappor` for larger numbers of users."""

LIGHT = 2**11
"""Largest number of users for which :func:`close_sum` is used for values that are not heavy. Raised: :func:`close_sum` is also
used where its gap is rarely smaller than that of the kernel, and takes up to 0.3 s for 1e5 users."""

_COARSEST, _FINEST = 2.0, 0.25
"""Largest and smallest step of :func:`close_sum`. A step of 0.25 takes up to .1 s for 1000 users, 10 to 15 times as long as a step
of 1. Lowered: a run time that grows with the inverse square of the step."""

_SIGNIFICANT = 1e-3
"""Absolute values below this multiple of their mean do not decide the unit of the nodes of :func:`sum_of_few`. Raised: fewer nodes
near 0. Lowered: more nodes, and a unit that changes with eps although only values near 0 do."""

_LEAST = -560.0
"""Smallest log of the unit of the computation, which is an estimate of E S_+. Raised: larger upper bounds if E S_+ is smaller.
Lowered: masses underflow."""

_TINY = float(np.finfo(float).tiny)
"""The smallest normal double."""

_NOTHING = Interval(-math.inf, math.inf)

_Heavy = tuple[FloatArray, FloatArray, float, float]
"""The heavy values in increasing order, their probabilities given that a value is heavy, the probability p of a heavy value, and
log(1 - p)."""


class _NoLight:
    """The interface of `Gains` if no value is light, so that g_k(y) = E(y + light values of n - k users)_+ is max(y, 0)."""

    scale = 0.0

    def __init__(self, unit: float) -> None:
        self.unit = unit

    def points(self, farthest: float) -> FloatArray:
        """Return the grid points of sums; 0 is one of them."""
        # A larger step, in asinh of the value, widens the gap; the run time grows with the inverse of the step.
        return rising(self.unit, farthest, 0.05)

    def at(self, y: FloatArray, column: NDArray[np.intp] | slice) -> IntervalArray:
        """Return max(y, 0) as lower and upper bound, with a row for each y and a column for each number k of heavy values."""
        width = len(range(*column.indices(_MOST + 1))) if isinstance(column, slice) else column.size
        value = np.repeat(np.maximum(y, 0.0)[:, None], width, axis=1)
        return IntervalArray(value, value)


def _guess(light: Light, place: FloatArray, log_prob: FloatArray) -> float:
    """Return an approximation of log E S_+, the largest of the terms in which no user or one user has a heavy value.

    `place` are the heavy values and `log_prob` their log probabilities.
    """
    lines = (light.lines(0)[:, None] + light.tilts[:, None] * place).min(axis=0) - 2
    above = place + light.mean * light.users
    logs = log_prob + np.where(above > 0, np.log(np.where(above > 0, above, 1.0)), lines)
    return float(logs[(place > 0) | (not light.never_positive)].max(initial=-math.inf))


def sum_with_jumps(values: FloatArray, log_mass: FloatArray, users: float, upper: bool = False, brief: bool = False) -> Interval:
    """Return bounds of log E S_+, where S is the sum of the independent values of `users` users with the same distribution.

    Parameters
    ----------
    values, log_mass : ndarray
        The atoms and their log masses, which sum to 1.
    users : float
        A whole number, at least 2.
    upper : bool
        Whether only the upper bound is needed. The lower one is then less tight, which saves more than half of the run time.
    brief : bool
        Whether to return (-inf, inf) if sums with more than _MOST heavy values, which are not enumerated, may matter.

    Returns
    -------
    Interval
        The bounds; (-inf, inf) if light values alone decide the sign of the sum, or if the distribution is outside the range of
        this method.
    """
    if not float(np.abs(values).max()) < SQUARABLE:
        return _NOTHING
    # `few` is the expected number of heavy values. With a smaller number fewer sums are enumerated; with a larger number the
    # integrand for the light values is narrower.
    few = min(0.25, max(0.02, 8 / math.sqrt(users)))
    # If positive values are rare, all of them count as heavy, so that a sum of light values is never positive. If some of them were
    # light, the upper bound would consist mostly of the error of the contour integral of the light values.
    positive = values > 0
    rare = users * math.fsum(np.exp(log_mass[positive])) < 0.1 * few
    if rare:
        few *= _FEWER
    order = np.lexsort((-np.abs(values), ~positive if rare else np.zeros_like(positive)))
    x, log_w = values[order], log_mass[order]
    count = np.cumsum(np.where(x != 0, np.exp(log_w), 0.0)) * users
    if count[-1] < 16:
        return _all_heavy(x, log_w, users, upper)
    heavy = int(np.searchsorted(count, few))
    if heavy in (0, x.size) or not np.abs(x[heavy:]).max() > 0:
        return _NOTHING
    light, jumps = _parted(x, log_w, heavy, users)
    jump, part, prob, log_none = jumps
    log_jump = np.log(part) + math.log(prob * users) + (users - 1) * log_none
    scale = max(_guess(light, np.append(jump, 0.0), np.append(log_jump, users * log_none)), _LEAST)
    if not scale < SAFE_EXPONENT:
        return _NOTHING
    kept, moved = _large(x[:heavy], log_w[:heavy], users, scale - LEFT)
    if not kept.any() or log_w[:heavy][kept].min() < LOG_TINY:
        return _NOTHING
    heavy = int(kept.sum())
    x, log_w = at_zero(x, log_w, np.append(kept, np.ones(x.size - kept.size, dtype=bool)))
    light, jumps = _parted(x, log_w, heavy, users)
    most, log_left = _enough(x, log_w, users, jumps[2], scale - LEFT)
    if brief and most == _MOST:
        return _NOTHING
    gains = Gains(light, most, scale, min(0.2, 0.02 / few))
    too_wide = gains.high - gains.low > 10 * WIDE * light.deviation
    if too_wide or (not gains.crude and any(contour.coarse for contour in gains.contours)):
        return _NOTHING
    return _summed(gains, users, jumps, most, np.logaddexp(moved, log_left) - scale, moved - scale, upper)


def one_large_value(values: FloatArray, log_mass: FloatArray, users: float) -> float:
    r"""Return a lower bound of log E S_+ from the event that exactly one user has a value above a threshold a.

    .. math:: \mathbb{E} S_+ \ge n \, P(X \le a)^{n-1} \, \mathbb{E}\bigl[(X + (n-1) m)_+ ; X > a\bigr],
        \qquad m = \mathbb{E}[X \mid X \le a]

    The n events, one for each user, are disjoint. Given the event, the other values are independent with the distribution of X
    given X <= a, and Jensen's inequality replaces their sum by its mean (n - 1) m. The bound is close to E S_+ where S > 0 is most
    likely due to one large value, which is where an inversion along a contour is inaccurate. The largest bound of several
    thresholds is returned; -inf if no single value can make the sum positive.
    """
    order = np.argsort(values, kind="stable")
    x, mass = values[order], np.exp(log_mass[order])
    first = int(np.searchsorted(x, 0.0, side="right"))
    # `error` bounds the relative rounding error of a sum over all atoms; its second term is for masses below e^-708, whose errors
    # are larger.
    error = (x.size + 8) * ULP + 64 * math.exp(min(0.0, -float(log_mass.min()) - 744.0))
    size, mean = math.fsum(mass * np.abs(x)), math.fsum(mass * x)
    above, gain = (np.cumsum(part[::-1])[::-1] for part in (mass, mass * x))
    best = -math.inf
    for place in np.unique(np.linspace(first, x.size - 1, COMPARED).astype(int)).tolist() if first < x.size else ():
        prob = float(above[place])
        if not prob <= 0.5:
            continue
        others = (users - 1) * (mean - float(gain[place]) - error * size) / (1 - prob)
        others -= 2 * error * abs(others)
        # `error` also covers the rounding of the values below.
        part = float(mass[place:] @ np.maximum(x[place:] + others, 0.0)) * (1 - error)
        if part > 0:
            log_alone = (users - 1) * math.log1p(-prob * (1 + error))
            lower = math.log(users) + log_alone + math.log(part)
            best = max(best, lower - 8 * ULP * (abs(log_alone) + abs(lower) + math.log(users)))
    return best


def _all_heavy(x: FloatArray, log_w: FloatArray, users: float, upper: bool) -> Interval:
    """Return bounds of log E S_+ if few users have a value other than 0: all values other than 0 count as heavy."""
    heavy = int(np.count_nonzero(x))
    if heavy == x.size:
        return _NOTHING
    # `lower` is the log of a lower bound: the contribution to E S_+ of the event that one user has a positive value and all others
    # have 0.
    lower = _log_gain(x, log_w, users) + (users - 1) * log_rest(log_w[:heavy], log_w[heavy:])
    if not -SAFE_EXPONENT < lower < SAFE_EXPONENT:
        return _NOTHING
    kept, moved = _large(x[:heavy], log_w[:heavy], users, lower - LEFT)
    heavy = int(kept.sum())
    x, log_w = at_zero(x, log_w, np.append(kept, np.ones(x.size - kept.size, dtype=bool)))
    if log_w.min() < LOG_TINY:
        return _NOTHING
    # `unit` is the median of |X|, given that X is not 0.
    total = np.cumsum(np.exp(log_w[:heavy]))
    unit = float(np.abs(x[np.searchsorted(total, total[-1] / 2)]))
    if not _MOST * float(np.abs(x).max()) / unit < math.inf:
        return _NOTHING
    jumps = _parted(x, log_w, heavy, users)[1]
    most, log_left = _enough(x, log_w, users, jumps[2], lower - LEFT)
    return _summed(_NoLight(unit), users, jumps, most, np.logaddexp(moved, log_left), moved, upper)


def few_enough(users: float) -> bool:
    """Return whether :func:`sum_of_few` is tried before other methods: for 2 to 40 users."""
    return 1 < users <= 40


def sum_of_few(values: FloatArray, log_mass: FloatArray, users: float, step: float = 0.06,
               selected: bool | None = None) -> Interval:
    """Return bounds of log E S_+ for up to 2**20 users, by adding their values one by one, or by doubling sums of them.

    After every addition the distribution of the sum is replaced by one on grid points that is larger in the convex order for the
    upper bound, and by a smaller one for the lower bound; this order is kept if independent variables are added. The gap is about
    1e-3 at a step of 0.06 for up to 40 users. At a step of 1 it is below 5e-3, mostly below 1e-4, for Rappor with 8 to 10 hashes
    and 3e3 to 4e4 users, and 1e-3 to 0.4 for Gaussian noise.

    The upper bound is the expectation of an increasing function of every value that depends on the grid alone. So with a fixed grid
    it does not rise if values decrease, as X does with eps. The unit of the grid is therefore rounded to powers of 2^(1/4).

    Parameters
    ----------
    step : float
        The distance of the grid points in asinh of the value is step/sqrt(users), or step/(1 + log2(users)) if sums are doubled.
        The gap is proportional to the square of `step`. The run time is proportional to 1/`step`, or to the square of 1/`step` if
        sums are doubled.
    selected : bool, optional
        Compute only the upper (True) or only the lower bound (False), in half of the time; the other bound is then infinite.

    Returns
    -------
    Interval
        The bounds; (-inf, inf) for one user, if the values are too large, if masses underflow, and for more than 2**20 users, whose
        sums would take longer than 0.2 s.
    """
    if not (1 < users <= _DOUBLED and log_mass.min() > LOG_TINY):
        return _NOTHING
    order = np.argsort(values, kind="stable")
    jump, part = values[order], np.exp(log_mass[order])
    size = np.abs(jump)
    farthest = (users + 1) * float(size.max())
    if not farthest < SQUARABLE:
        return _NOTHING
    rise = np.argsort(size)
    total = np.cumsum(np.where(size > _SIGNIFICANT * float(part @ size), part, 0.0)[rise])
    unit = _lower_power(0.25 * float(size[rise[np.searchsorted(total, total[-1] / 2)]]), 4)
    if not unit > 0:
        return _NOTHING
    # Each time a sum is moved to the nodes, its variance changes by a fraction of about the square of the step. If users are added
    # one at a time, the variance of the whole sum changes by about users/2 such fractions. If sums are doubled, it changes by
    # log2(users) fractions, so the step may be larger. But adding two sums takes more pairs of values than adding one user to a
    # sum. The method with fewer pairs in total is used.
    nodes, additions = rising(unit, farthest, step / math.sqrt(users)), "1" * (int(users) - 1)
    fewer = rising(unit, farthest, step / (1 + math.log2(users)))
    doublings = f"{int(users):b}"[1:].replace("1", "21").replace("0", "2")
    if fewer.size**2 * doublings.count("2") < nodes.size * jump.size * len(additions):
        nodes, additions = fewer, doublings
    larger = smaller = sums = lower_sums = jump, part
    if jump.size > nodes.size:
        # Moving the values themselves to the nodes changes the variance as much as one more doubling does.
        whole = np.zeros(1), np.ones(1)
        if selected is not False:
            larger = sums = nodes, spread_sum(jump, part, *whole, nodes)
        if selected is not True:
            smaller = lower_sums = merged_sum(jump, part, *whole, nodes)
    for addition in additions:
        if selected is not False:
            sums = nodes, spread_sum(*sums, *(larger if addition == "1" else sums), nodes)
        if selected is not True:
            lower_sums = merged_sum(*lower_sums, *(smaller if addition == "1" else lower_sums), nodes)
    (place, spread), (where, merged) = sums, lower_sums
    # Masses that underflow, or that move to a neighbouring node because a subnormal mass is rounded, change E S_+ by at most
    # `lost`. One addition has at most `most`^2 pairs of values. Its result may occur several times in the sum of all users, and its
    # errors occur as often: at most 2 * `users` times for all additions.
    most = max(jump.size, nodes.size)
    lost = 2 * _TINY * most**2 * users * farthest
    slack = 1e-11 + 8 * ULP * most * users
    lower = float(merged @ np.maximum(where, 0.0)) * (1 - slack) - lost
    upper = float(spread @ np.maximum(place, 0.0)) * (1 + slack) + lost
    # A subnormal sum may be far from exact.
    return Interval(math.log(lower) if lower > _TINY / ULP and selected is not True else -math.inf,
                    math.log(upper) if _TINY / ULP < upper < math.inf and selected is not False else math.inf)


def _lower_power(value: float, parts: int) -> float:
    """Return the largest power of 2^(1/`parts`) that is at most about `value`, or 0 for 0."""
    return 2.0 ** (math.floor(parts * math.log2(value)) / parts) if value else 0.0


def close_sum(values: FloatArray, log_mass: FloatArray, users: float, gap: float, most: float = _DOUBLED) -> Interval:
    """Return the bounds of :func:`sum_of_few` with a step for which their gap is at most `gap`, or with the smallest step.

    `values`, `log_mass` and `users` are as in :func:`sum_with_jumps`. For more than `most` users the result is (-inf, inf).
    """
    if users > most:
        return _NOTHING
    bounds = sum_of_few(values, log_mass, users, _COARSEST)
    seen = bounds.upper - bounds.lower
    if gap < seen < math.inf:
        # The gap is only about proportional to the square of the step. So the step is a fifth smaller than this rule gives.
        better = sum_of_few(values, log_mass, users, max(_lower_power(0.8 * _COARSEST * math.sqrt(gap / seen), 16), _FINEST))
        bounds = Interval(max(bounds.lower, better.lower), min(bounds.upper, better.upper))
    return bounds


def _parted(x: FloatArray, log_w: FloatArray, heavy: int, users: float) -> tuple[Light, _Heavy]:
    """Return the distribution of the light values, and that of the heavy values, which are the first `heavy` ones of `x`."""
    prob, log_none = math.fsum(np.exp(log_w[:heavy])), log_rest(log_w[:heavy], log_w[heavy:])
    rise = np.argsort(x[heavy:])
    light = Light(x[heavy:][rise], log_w[heavy:][rise] - log_none, users)
    rise = np.argsort(x[:heavy])
    return light, (x[:heavy][rise], np.exp(log_w[:heavy][rise]) / prob, prob, log_none)


def log_rest(log_w: FloatArray, log_other: FloatArray) -> float:
    """Return log(1 - p) within 16 ulp, where p is the total probability of the masses `log_w` and 1 - p that of `log_other`."""
    prob = math.fsum(np.exp(log_w))
    if prob < 0.5:
        return math.log1p(-prob)
    top = float(log_other.max(initial=-math.inf))
    return top + math.log(math.fsum(np.exp(log_other - top))) if top > -math.inf else top


def _log_gain(x: FloatArray, log_w: FloatArray, users: float) -> float:
    """Return log(n E X_+)."""
    return math.log(users) + float(np.logaddexp.reduce(log_w[x > 0] + np.log(x[x > 0])))


def _large(x: FloatArray, log_w: FloatArray, users: float, log_moved: float) -> tuple[NDArray[np.bool_], float]:
    """Return a mask of the values to keep, and the log of a bound of the change of E S_+ if the other values are replaced by 0.

    Values are replaced only as long as this bound is below e^log_moved.
    """
    with np.errstate(divide="ignore"):
        size = log_w + np.log(np.abs(x)) + math.log(users)
    order = np.argsort(size)
    total = np.logaddexp.accumulate(size[order])
    place = int(np.searchsorted(total, log_moved))
    kept = np.ones(x.size, dtype=bool)
    kept[order[:place]] = False
    return kept, float(total[place - 1]) + 1e-9 if place else -math.inf


def _enough(x: FloatArray, log_w: FloatArray, users: float, prob: float, log_least: float) -> tuple[int, float]:
    """Return the largest number k of heavy values to enumerate, and a bound for the terms with more than k heavy values.

    The second value is the log of this bound: n E X_+ Pr[Bin(n - 1, p) >= k] <= n E X_+ C(n - 1, k) p^k.
    """
    k, log_left = 0, _log_gain(x, log_w, users)
    while (log_left > log_least or k < 3) and k < min(_MOST, users - 1):
        k += 1
        log_left += math.log((users - k) / k) + math.log(prob) if k < users else -math.inf
    return k, log_left


def _summed(gains: Gains | _NoLight, users: float, jumps: _Heavy, most: int, log_more: float, log_less: float,
            only_upper: bool) -> Interval:
    """Return bounds of log E S_+ from the terms with up to `most` heavy values.

    `log_more` and `log_less` bound what these terms omit, in units of e^gains.scale. The terms with more heavy values, and values
    that were replaced by 0, add at most e^log_more to E S_+. The replaced values subtract at most e^log_less from E S_+. If
    `only_upper`, the lower bound evaluates g_k at the nodes alone, and uses lines between them.
    """
    jump, part, prob, log_none = jumps
    nodes = gains.points((most + 1) * float(np.abs(jump).max()))
    lower, upper = (float(side[0, 0]) * math.exp(users * log_none) for side in gains.at(np.zeros(1), slice(0, 1)))
    below, above = gains.at(nodes, slice(min(2, most), None))
    if not max(log_more, float(np.log(above.max(initial=1.0)))) < SAFE_EXPONENT:
        return _NOTHING
    # `lost` bounds the mass that underflows, or that moves to a neighbouring node because a subnormal mass is rounded.
    lost = _TINY * jump.size * nodes.size
    spread, merged, log_prob = part, part, users * log_none
    place, where = jump, jump
    for k in range(1, most + 1):
        log_prob += math.log((users - k + 1) / k) + math.log(prob) - log_none
        weight = math.exp(log_prob)
        if k > 1:
            spread, place = spread_sum(place, spread, jump, part, nodes), nodes
            where, merged = merged_sum(where, merged, jump, part, nodes)
            column = above[:, k - min(2, most)]
            # The product is formed in logarithms, because its factor e^log_prob may underflow.
            upper += capped_exp(log_prob + math.log(float(spread @ column) + k * lost * float(column.max()) + _TINY))
        if k > 1 and only_upper:
            low = _under(where, nodes, below[:, k - min(2, most)], column)
        else:
            low, high = (side[:, 0] for side in gains.at(where, slice(k, k + 1)))
        lower += weight * (float(merged @ low) - (k - 1) * lost * float(low.max()))
        if k == 1:
            upper += weight * float(part @ high)
    slack = 1e-11 + ULP * (8 * users * abs(log_none) + 4 * nodes.size)
    upper = upper * (1 + slack) + math.exp(log_more) + 1e-280
    lower = lower * (1 - slack) - math.exp(log_less)
    return Interval(math.log(lower) + gains.scale if lower > 0 else -math.inf, math.log(upper) + gains.scale)


def _under(y: FloatArray, nodes: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return lower bounds at `y` of a convex increasing function >= 0 with the given bounds at the nodes.

    Between two nodes the function is above the line through the two nodes to the left, and above the line through the two nodes to
    the right.
    """
    place = np.clip(np.searchsorted(nodes, y) - 1, 1, nodes.size - 3)
    left, right = (low[place] - high[place - 1]) / (nodes[place] - nodes[place - 1]), high[place + 2] - low[place + 1]
    right /= nodes[place + 2] - nodes[place + 1]
    inside = (y > nodes[1]) & (y < nodes[-2])
    lines = np.maximum(low[place] + left * (y - nodes[place]), low[place + 1] - right * (nodes[place + 1] - y))
    return np.where(inside, np.maximum(lines - 16 * ULP * high[place + 2], low[place]), 0.0)
