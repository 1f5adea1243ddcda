"""Every method of a profile against all others: inequalities between exact values must hold between their bounds.

A check computes two related quantities of one profile (delta and eps, the trade-off curve, the tail of the loss, Renyi divergences,
mu, compositions, certified values, the reversed pair, enumerated distributions) and compares the lower bound of the smaller
quantity with the upper bound of the larger one. No result is compared with a recorded one.
"""

import contextlib
import math
import random
import traceback
import warnings
from collections import Counter

import numpy as np
from scipy.special import log_ndtr, ndtri

from shufflebounds import InfeasibleError
from shufflebounds.composition import from_dict, to_dict
from shufflebounds.profile import DominatingPair
from tests.examples import EXAMPLES
from tests.fuzz.exact_ways import exact_ways

__all__ = ["CHECKS", "attack", "disagreements"]

ROUNDING = 1e-12
"""Relative tolerance of comparisons in which the test itself rounds, or of a curve that is documented as exact up to rounding.
Errors in the library that matter are much larger."""

CURVE = 1e-9
"""Relative tolerance of the delta of a curve, whose breakpoints are rounded. Next to a breakpoint the rounding error is divided by
a small difference."""

COMPOSED = 2e-5
"""Relative amount by which the lower delta of one release may exceed that of several. If a value of the release takes long, it is
not evaluated where the gap of the composition is below its tolerance, 1e-5 in log delta."""

CROSSING = 0.03
"""Relative tolerance of eps(delta) in comparison with an eps whose bound of delta is known: bounds of delta that rise a little with
eps (docs/trust.md) are another matter."""

DELTAS = (1e-300, 1e-30, 1e-12, 1e-6, 1e-3, 0.05, 0.4)


class TimeIsOver(BaseException):
    """The campaign has reached its time limit. No handler of exceptions catches this one."""


def stop(*_):
    """End the running check; this is a signal handler."""
    raise TimeIsOver


class Views:
    """One profile, the number of comparisons that were made of it, and the violations found."""

    def __init__(self, profile, r, cheap=True, late=lambda: False):
        self.profile, self.r, self.cheap, self.late = profile, r, cheap, late
        self.asked, self.found = 0, []

    def at_most(self, small, large, words, rtol=0.0, atol=0.0):
        """Record a violation unless small <= large; NaN in either argument is a violation."""
        small, large = (np.ravel(x).astype(float) for x in np.broadcast_arrays(small, large))
        self.asked += small.size
        with np.errstate(all="ignore"):
            slack = atol + rtol * np.maximum(np.abs(small), np.abs(large))
            right = (small <= large) | (small - large <= slack)
        if not right.all():
            i = int(np.argmin(right))
            self.found.append(f"{self.profile!r}: {words}: {small[i]!r} > {large[i]!r} (entry {i})")
        if self.late():
            raise TimeIsOver

    def enclosed(self, lower, value, upper, words, rtol=0.0, atol=0.0):
        """Record a violation unless lower <= value <= upper."""
        self.at_most(lower, value, f"lower bound, {words}", rtol, atol)
        self.at_most(value, upper, f"{words}, upper bound", rtol, atol)

    def meet(self, first, second, words, rtol=0.0, atol=0.0):
        """Record a violation unless two intervals (lower, upper) have a common point."""
        self.at_most(first[0], second[1], f"lower bound of {words[0]} and upper bound of {words[1]}", rtol, atol)
        self.at_most(second[0], first[1], f"lower bound of {words[1]} and upper bound of {words[0]}", rtol, atol)

    def scale(self):
        """Return the pure budget if it is finite, otherwise an eps at which delta is small, or 1."""
        for scale in (self.profile.epsilon(0.0), self.profile.epsilon(1e-6, bound="lower")):
            if 0 < scale < math.inf:
                return scale
        return 1.0

    def points(self, many):
        """Return increasing eps: 0, the scale and a value next to it, and values between them and beyond."""
        scale = self.scale()
        drawn = [self.r.choice([self.r.random(), 10.0 ** self.r.uniform(-6, 0)]) for _ in range(many)]
        beside = self.r.choice([1 - 2.0**-53, 1 - 10.0 ** self.r.uniform(-15, -2)])
        eps = scale * np.array([0.0, *drawn, beside, 1.0, 1.5])
        return np.unique(np.minimum(eps, 1e5))


def both(ask, *arguments):
    """Return the results of the method `ask` for bound="lower" and for bound="upper", as arrays."""
    return tuple(np.asarray(ask(*arguments, bound=bound), dtype=float) for bound in ("lower", "upper"))


def delta_and_epsilon(v):
    profile, eps = v.profile, v.points(4 if v.cheap else 1)
    delta, logs = both(profile.delta, eps), both(profile.log_delta, eps)
    v.at_most(delta[0], delta[1], "delta, lower and upper")
    v.at_most(delta[0][1:], delta[1][:-1], "delta grows with eps")
    v.at_most(logs[0], logs[1], "log_delta, lower and upper")
    with np.errstate(divide="ignore"):
        v.at_most(logs[0], np.log(np.maximum(delta[1], 5e-324)), "log_delta and the log of delta", 1e-15, 1e-15)
    i = v.r.randrange(eps.size)
    v.meet([x[i] for x in logs], both(profile.log_delta, float(eps[i])), (f"log_delta({eps[i]!r}) in an array", "the scalar"))
    for d in v.r.sample(DELTAS, 2 if v.cheap else 1):
        lower, upper = both(profile.epsilon, d)
        v.at_most(lower, upper, f"epsilon({d}), lower and upper")
        if upper < math.inf:
            v.at_most(profile.delta(float(upper)), d, f"delta at the upper epsilon({d})")
        if 0 < lower < math.inf:
            v.at_most(d, profile.delta(float(lower), bound="lower"), f"{d} and delta at the lower epsilon")
    # Bounds of delta may depend on the array in which eps is, and on the tolerance of a search: .2 % of delta is left for this.
    for side, bound in enumerate(("lower", "upper")):
        d = float(delta[side][i]) * (1.002 if side else 0.998)
        if 1e-300 < d < 0.99:
            crossing, asked = profile.epsilon(d, bound=bound), float(eps[i])
            small, large = (crossing, asked) if side else (asked, crossing)
            v.at_most(small, large, f"{bound} epsilon({d!r}) and an eps whose delta is at the right side of it", CROSSING)
    lower, upper = both(profile.epsilon, 0.0)
    v.at_most(lower, upper, "epsilon(0), lower and upper")
    if upper < math.inf:
        v.at_most(profile.delta(float(upper)), 0.0, "delta at the pure budget")


def very_large_eps(v):
    """Beyond the last interesting eps the bounds stay ordered and delta does not grow."""
    eps = np.array([720.0, 1e3, 6e7, 1e20, 1e300])
    lower, upper = both(v.profile.log_delta, eps if v.cheap else eps[::2])
    v.at_most(lower, upper, "log_delta at very large eps, lower and upper")
    v.at_most(lower[1:], upper[:-1], "log_delta grows at very large eps", 1e-12)


def curve(v):
    profile, eps = v.profile, v.points(8 if v.cheap else 2)
    eps = eps[eps < 600]
    # The trade-off function T(P, Q) is that of tests which reject P, so its supporting lines of slope -e^eps are given by
    # delta(eps) of (Q, P), the reversed pair.
    backward, forward = both(profile.reverse().delta, eps), both(profile.delta, eps)
    curves = [profile.tradeoff(bound=bound) for bound in ("lower", "upper")]
    if profile._pair_info().sampling.convex:
        # The smallest of several bounds need not be convex in e^eps. The curve is then that of its convex hull, also a bound.
        v.enclosed(backward[0], np.asarray(curves[0].delta(eps)), 1.0, "delta of the lower curve", CURVE, 1e-15)
    v.at_most(np.asarray(curves[1].delta(eps)), backward[1], "delta of the upper curve and delta", CURVE, 1e-15)
    alpha = np.array([0.0, 1e-12, 1e-4, 0.05, 0.5, 1 - 1e-9, 1.0, *(v.r.random() ** 4 for _ in range(4))])
    lower, upper = (np.asarray(f.beta(alpha)) for f in curves)
    v.at_most(lower, upper, "beta of the lower and the upper curve", 4e-15)
    v.at_most(lower, 1 - alpha, "beta of the lower curve and 1 - alpha", 4e-15, 4e-16)
    factor = np.exp(eps)[:, None]
    size = 4e-16 * (1 + factor * alpha)
    v.at_most(1 - factor * alpha - upper - size, backward[1][:, None], "1 - alpha e^eps - beta and delta", ROUNDING)
    v.at_most(1 - alpha - factor * upper - size - 4e-16 * factor * upper, forward[1][:, None],
              "1 - alpha - e^eps beta and delta of the other order", ROUNDING)


def loss_tail(v):
    profile, eps = v.profile, v.points(4 if v.cheap else 1)[1:]
    tail, delta = both(profile.loss_tail, eps), both(profile.delta, eps)
    v.at_most(tail[0], tail[1], "loss_tail, lower and upper")
    v.at_most(tail[0][1:], tail[1][:-1], "loss_tail grows with eps")
    v.at_most(delta[0], tail[1], "delta and the tail of the loss", ROUNDING)
    # An outcome with a loss above eps + h adds at least 1 - e^-h times its probability to delta(eps).
    gain = -np.expm1(-np.diff(eps))
    v.at_most(tail[0][1:] * gain, delta[1][:-1], "part of the tail and delta", ROUNDING)
    # delta is convex in E = e^eps, and the tail of the loss is delta - E d(delta)/dE. So a line through two values of delta, whose
    # slope is at least the derivative at the first, gives a lower bound of the tail there.
    with np.errstate(over="ignore", invalid="ignore"):
        chord = delta[0][:-1] + (delta[0][:-1] - delta[1][1:]) / np.expm1(np.diff(eps))
    v.at_most(chord, tail[1][:-1], "delta minus its slope and the tail", ROUNDING, 1e-15)


def _divergence(profile, order, top, many):
    """Return bounds of the Renyi divergence of the pair with this profile, without the contribution of eps above `top`.

    With H the hockey-stick divergence at e^t, exp((a - 1) D) = 1 + a (a - 1) int e^((a-1)t) H(P || Q) + e^(-at) H(Q || P) dt for
    the divergence D of order a, and for a = 1 D = int H(P || Q) + e^-t H(Q || P) dt. H decreases in t, so its values at the ends of
    an interval bound it in the interval.
    """
    t = np.linspace(0.0, top, many)
    forward = both(profile.delta, t)
    backward = both(profile.reverse().delta, t)
    rising = np.diff(t) if order == 1 else np.diff(np.expm1((order - 1) * t)) / (order - 1)
    falling = -np.diff(np.expm1(-order * t)) / order
    lower = float(rising @ forward[0][1:] + falling @ backward[0][1:])
    upper = float(rising @ forward[1][:-1] + falling @ backward[1][:-1])
    if order == 1:
        return lower, upper
    return tuple(math.log1p(order * (order - 1) * x) / (order - 1) for x in (lower, upper))


def renyi(v):
    profile = v.profile
    orders = np.array(sorted([1.0, 1.0 + 10.0 ** v.r.uniform(-9, -1), 2.0, 10.0 ** v.r.uniform(0, 2), math.inf]))
    lower, upper = both(profile.rdp, orders)
    v.at_most(lower, upper, "rdp, lower and upper", 4e-15)
    v.at_most(lower[:-1], upper[1:], f"rdp falls with the order {orders.tolist()}", 4e-15)
    least, pure = both(profile.epsilon, 0.0)
    v.at_most(least, upper[-1], "the lower pure budget and the upper rdp(inf)", 4e-15)
    v.at_most(lower[-1], pure, "the lower rdp(inf) and the upper pure budget", 4e-15)
    order = v.r.choice([1.0, float(orders[1]), 2.0])
    low, high = both(profile.rdp, order)
    # A pair may have a pure budget in one order and none in the other.
    top = max(float(pure), profile.reverse().epsilon(0.0))
    if 0 < top < 30:
        known = _divergence(profile, order, top, 200 if v.cheap else 12)
        v.at_most(low, known[1], f"the lower rdp({order!r}) and the integral of delta", 1e-9)
    eps = v.points(1)
    eps = eps[eps < 600]
    if order > 1.01 and high < math.inf:
        bound = (order - 1) * (high - eps) + (order - 1) * math.log1p(-1 / order) - math.log(order)
        v.at_most(profile.log_delta(eps, bound="lower"), bound, f"log delta and what rdp({order}) implies", 1e-12, 1e-12)
    if isinstance(profile, DominatingPair):
        known = _divergence(profile, order, min(top, 30.0 if order < 1.5 else 5.0), 200 if v.cheap else 12)
        v.at_most(known[0], high, f"the integral of delta and the upper rdp({order!r})", 1e-9)


def _log_gaussian(mu, eps):
    """Return log delta of N(0, 1) against N(mu, 1)."""
    first, second = log_ndtr(mu / 2 - eps / mu), eps + log_ndtr(-mu / 2 - eps / mu)
    return first + np.log(-np.expm1(np.minimum(second - first, 0.0)))


def gaussian(v):
    profile, eps = v.profile, v.points(3 if v.cheap else 1)
    eps = eps[eps < 600]
    lower, upper = both(profile.gdp_mu)
    v.at_most(lower, upper, "gdp_mu, lower and upper", 4e-15)
    pure = max(profile.epsilon(0.0), profile.reverse().epsilon(0.0))
    if pure < 30:
        # Among all pairs with this pure budget, randomized response has the smallest curve.
        most = -2 * ndtri(1 / (1 + math.exp(pure)))
        v.at_most(lower, most, "the lower gdp_mu and that of the pure budget", 1e-9, 1e-15)
    if 1e-6 < upper < 1e3:
        for one in (profile, profile.reverse()):
            low = np.asarray(one.log_delta(eps, bound="lower"))
            with np.errstate(all="ignore"):
                known = _log_gaussian(float(upper), eps)
            # The formula has large rounding errors if eps / mu is large.
            v.at_most(low, known, "log delta and that of the Gaussian pair", 1e-9, 1e-9)


def _same_views(v, other, words, rtol):
    """Compare the methods of two profiles of the same mechanism."""
    profile, eps = v.profile, v.points(2)
    v.meet(both(profile.delta, eps), both(other.delta, eps), ("delta", f"delta {words}"), rtol, 1e-323)
    d = v.r.choice(DELTAS)
    v.meet(both(profile.epsilon, d), both(other.epsilon, d), (f"epsilon({d})", f"epsilon({d}) {words}"), rtol)
    view = v.r.choice(["rdp", "mu", "beta", "tail"])
    if view == "rdp":
        order = v.r.choice([1.0, 2.0, math.inf])
        # The bounds may have a gap: a composition's upper bound is the sum of the divergences of its factors, each in the worse
        # order, and its lower bound is for a single order.
        v.meet(both(profile.rdp, order), both(other.rdp, order), (f"rdp({order})", f"rdp({order}) {words}"), rtol)
    elif view == "mu":
        v.meet(both(profile.gdp_mu), both(other.gdp_mu), ("gdp_mu", f"gdp_mu {words}"), rtol)
    elif view == "beta":
        alpha = v.r.random() ** 4
        first, second = ([f.tradeoff(bound=bound).beta(alpha) for bound in ("lower", "upper")] for f in (profile, other))
        v.meet(first, second, (f"beta({alpha})", f"beta({alpha}) {words}"), 4e-15)
    else:
        v.meet(both(profile.loss_tail, eps[1:]), both(other.loss_tail, eps[1:]), ("loss_tail", f"loss_tail {words}"), rtol, 1e-323)


def one_release(v):
    _same_views(v, v.profile.self_compose(1), "of one release composed", 4e-15)


def saved(v):
    try:
        data = to_dict(v.profile)
    except TypeError:
        return
    again = from_dict(data)
    v.asked += 2
    if again != v.profile or to_dict(again) != data:
        v.found.append(f"{v.profile!r}: from_dict(to_dict()) is {again!r}")
        return
    eps = float(v.points(1)[1])
    v.meet(both(v.profile.log_delta, eps), both(again.log_delta, eps), ("log delta", "log delta of the saved profile"))


def certified(v):
    eps = float(v.r.choice(v.points(3)))
    if eps > 700:
        return
    try:
        ball = v.profile.certify(eps)
    except (TypeError, InfeasibleError, ImportError):
        return
    lower, upper = both(v.profile.delta, eps)
    v.asked += 2
    if not (float(lower) <= ball or ball.contains(float(lower))):
        v.found.append(f"{v.profile!r}: lower delta({eps!r}) {float(lower)!r} > certified {ball}")
    if not (float(upper) >= ball or ball.contains(float(upper))):
        v.found.append(f"{v.profile!r}: upper delta({eps!r}) {float(upper)!r} < certified {ball}")


def directions(v):
    """Check the reversed pair, and the enumerated pairs or the guarantees of a removed and of an added record."""
    profile = v.profile
    if isinstance(profile, DominatingPair):
        again = profile.reverse().reverse()
        eps = v.points(2)
        v.meet(both(profile.delta, eps), both(again.delta, eps), ("delta", "delta reversed twice"))
        # H(P||Q) at e^eps is e^eps H(Q||P) at e^-eps plus 1 - e^eps. So both orders have the same delta(0), up to the difference of
        # the two sums of masses, which are 1 up to rounding.
        v.meet(both(profile.delta, 0.0), both(profile.reverse().delta, 0.0), ("delta(0)", "delta(0) reversed"), 1e-15, 1e-15)
        return
    try:
        pairs = profile.pairs()
    except TypeError:
        pairs = profile._adjacencies()
        if not pairs:
            return
    # Delta of a pair is at most delta of the profile, which is the maximum over the pairs.
    eps, chosen = v.points(2), v.r.sample(pairs, min(2, len(pairs)))
    for pair in chosen:
        v.at_most(pair.delta(eps, bound="lower"), profile.delta(eps), "delta of a pair and delta", ROUNDING)
        v.at_most(pair.epsilon(1e-6, bound="lower"), profile.epsilon(1e-6), "epsilon of a pair and epsilon", ROUNDING)
    if len(pairs) <= 2:
        largest = np.max([pair.delta(eps) for pair in pairs], axis=0)
        v.at_most(profile.delta(eps, bound="lower"), largest, "delta and that of the pairs", ROUNDING)
    pair, order = chosen[0], v.r.choice([1.0, 2.0, math.inf])
    v.at_most(pair.rdp(order, bound="lower"), profile.rdp(order), f"rdp({order}) of a pair and rdp", ROUNDING)
    v.at_most(pair.gdp_mu(bound="lower"), profile.gdp_mu(), "gdp_mu of a pair and gdp_mu", ROUNDING)
    if len(pairs) <= 2:
        # The profile is at most as informative as its worst pair at every test, order or eps.
        worst = max(one.rdp(order) for one in pairs)
        v.at_most(both(profile.rdp, order)[0], worst, f"rdp({order}) and that of the pairs", ROUNDING)
        v.at_most(both(profile.gdp_mu)[0], max(one.gdp_mu() for one in pairs), "gdp_mu and that of the pairs", ROUNDING)
    alpha = v.r.random() ** 4
    v.at_most(profile.tradeoff().beta(alpha), pair.tradeoff(bound="upper").beta(alpha), f"beta({alpha}) and that of a pair", 4e-15)


def several_releases(v):
    """Check that delta of a composition is at least that of one release, and at most the bounds of the composition rules."""
    profile = v.profile
    times = v.r.choice([2, 2, 3])
    many = profile.self_compose(times)
    eps = v.points(2)
    one, composed = both(profile.delta, eps), both(many.delta, eps)
    v.at_most(composed[0], composed[1], "delta composed, lower and upper")
    v.at_most(one[0], composed[1], f"delta and that of {times} releases")
    v.at_most(one[0], composed[0], f"the lower delta and the lower one of {times} releases", COMPOSED)
    # Each release is (eps/times, part)-private. By basic composition both numbers add up over the releases.
    part = profile.delta(eps / times)
    v.at_most(composed[0], times * part, f"delta of {times} releases and the sum of theirs", ROUNDING)
    pure = profile.epsilon(0.0)
    if pure < math.inf:
        v.at_most(many.epsilon(0.0, bound="lower"), times * pure, "the pure budget composed and the sum", ROUNDING)
    view = v.r.choice(["rdp", "mu", "curve"])
    if view == "rdp":
        order = v.r.choice([1.0, 2.0, math.inf])
        single, composed = both(profile.rdp, order), both(many.rdp, order)
        v.at_most(composed[0], times * single[1], f"rdp({order}) composed and the sum", ROUNDING)
        v.at_most(single[0], composed[1], f"rdp({order}) and that of {times} releases", ROUNDING)
    elif view == "mu":
        lower, upper = both(many.gdp_mu)
        v.at_most(lower, upper, "gdp_mu composed", ROUNDING)
        v.at_most(lower, math.sqrt(times) * profile.gdp_mu(), "gdp_mu composed and the root of the sum of squares", ROUNDING)
        v.at_most(both(profile.gdp_mu)[0], upper, f"gdp_mu and that of {times} releases", ROUNDING)
    else:
        f = [many.tradeoff(bound=bound) for bound in ("lower", "upper")]
        below = eps[eps < 600]
        if not isinstance(profile, DominatingPair):
            v.at_most(both(many.delta, below)[0], f[0].delta(below), "delta composed and that of the lower curve", CURVE, 1e-15)
        alpha = v.r.random() ** 4
        v.at_most(f[0].beta(alpha), f[1].beta(alpha), f"beta({alpha}) composed, lower and upper", 4e-15)
        single = profile.tradeoff(bound="upper").beta(alpha)
        v.at_most(f[0].beta(alpha), single, f"beta({alpha}) of {times} releases and of one", 4e-15)


def _hockey_stick(p, q, factor):
    """Return the hockey-stick divergence of two lists at each factor."""
    return np.maximum(p[:, None] - q[:, None] * np.atleast_1d(factor), 0.0).sum(axis=0)


def _twice(pairs, factor):
    """Return delta of two releases at one e^eps, if the pair of the second one is chosen after the outcome of the first."""
    best = 0.0
    for p, q in pairs:
        seen = p > 0
        ratio = factor * q[seen] / p[seen]
        second = np.max([_hockey_stick(a, b, ratio) for a, b in pairs], axis=0)
        best = max(best, float(p[seen] @ second))
    return best


def enumerated(v):
    """Compare the methods with distributions that are enumerated here, from the definition of the protocol."""
    ways = exact_ways(v.profile)
    if ways is None:
        return
    eps = v.points(3)
    eps = eps[eps < 600]
    pairs = [pair for way in ways for pair in way]
    factor = np.exp(eps)
    exact = np.max([_hockey_stick(p, q, factor) for p, q in pairs], axis=0)
    slack = 1e-15 * (1 + 0.1 * len(pairs[0][0]))
    lower, upper = both(v.profile.delta, eps)
    v.enclosed(lower, exact, upper, "delta, enumerated", 1e-13, slack)
    order = v.r.choice([1.0, 2.0])
    if all((p[q == 0] == 0).all() for p, q in pairs):
        with np.errstate(all="ignore"):
            known = [np.nansum(p * np.log(p / q)) if order == 1 else np.log(np.nansum(p * p / q)) for p, q in pairs]
        low, high = both(v.profile.rdp, order)
        v.at_most(max(known), high, f"rdp({order}), enumerated, and its upper bound", 1e-12, slack)
        try:
            listed = bool(v.profile.pairs())
        except TypeError:
            # The bound is for a hypothetical pair with the profile's delta, whose divergence may exceed that of every pair of
            # neighbours.
            listed = False
        if listed:
            v.at_most(low, max(known), f"rdp({order}), lower bound and enumerated", 1e-12, slack)
    at = float(v.r.choice(eps))
    lower, upper = both(v.profile.self_compose(2).delta, at)
    exact = max(_twice(way, math.exp(at)) for way in ways)
    v.at_most(lower, exact, f"delta({at!r}) of two releases, lower bound and enumerated", 1e-12, 4 * slack)
    v.at_most(exact, upper, f"delta({at!r}) of two releases, enumerated and upper bound", 1e-12, 4 * slack)


CHECKS = [delta_and_epsilon, very_large_eps, curve, loss_tail, renyi, gaussian, one_release, saved, certified, directions,
          several_releases, enumerated]


def disagreements(profile, r, check, cheap=True, late=lambda: False):
    """Return the number of comparisons that one check made of a profile, and a line for each failure; exceptions are failures.

    The check ends after the first comparison at which `late()` is true.
    """
    views = Views(profile, r, cheap, late)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            # Random arguments may look like a user's mistake, such as an eps below delta, about which the library warns.
            warnings.simplefilter("ignore", UserWarning)
            check(views)
    except (InfeasibleError, TimeIsOver):
        pass
    except Exception:
        views.found.append(f"{profile!r}: {traceback.format_exc(limit=-3)}")
    return views.asked, [f"{check.__name__}: {line}" for line in views.found]


def attack(seed, questions, late=lambda: False, only=None):
    """Return the number of comparisons of each class, and a line for each violation with the seeds of its profile and check.

    The classes are visited in a random order that changes from round to round, so that a time limit affects all classes alike.

    Parameters
    ----------
    seed : int
    questions : int or None
        Ends after the check that reaches this number of comparisons; None goes on until `late`.
    late : callable
        Tells whether the time is over; evaluated after every comparison.
    only : str, optional
        Classes or checks whose name contains this.
    """
    r = random.Random(seed)
    names = [name for name in EXAMPLES if not only or only in name or any(only in check.__name__ for check in CHECKS)]
    checks = [check for check in CHECKS if not only or only in check.__name__] or CHECKS
    counts, found = Counter(), []
    with contextlib.suppress(TimeIsOver):
        _rounds(r, names, checks, late, questions, counts, found)
    return counts, found


def _rounds(r, names, checks, late, questions, counts, found):
    """Check random profiles of all classes, round after round, until a limit is reached; add to the counts and violations."""
    while True:
        for name in r.sample(names, len(names)):
            example = EXAMPLES[name]
            drawn = r.getrandbits(32)
            profile = example.draw(random.Random(drawn))
            for check in checks if example.cheap else r.sample(checks, 1):
                if late() or (questions is not None and counts.total() >= questions):
                    return
                state = r.getrandbits(32)
                asked, lines = disagreements(profile, random.Random(state), check, example.cheap, late)
                counts[name] += asked
                found += [f"{name}, seeds {drawn} and {state}: {line}" for line in lines]
