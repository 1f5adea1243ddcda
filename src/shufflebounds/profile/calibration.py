"""The smallest parameter at which a privacy profile meets a target (eps, delta), if delta decreases in the parameter.

The methods `calibrate` of all protocols use these searches. The returned parameter has been evaluated and meets the target.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache
from typing import NamedTuple, TypeVar

from shufflebounds._base import validate as _validate
from shufflebounds._base.limits import CACHED_ANSWERS, MOST_PEOPLE
from shufflebounds._base.progress import announced
from shufflebounds._base.search import least_int, least_real, narrowed
from shufflebounds._base.types import probability
from shufflebounds._base.validate import MAX_COUNT, InfeasibleError, quiet
from shufflebounds.profile.profile import PrivacyProfile

__all__ = [
    "OUT", "SHARE", "Goal", "goal_of", "least_count", "least_of_goal", "least_parameter", "meets", "one_of_releases",
    "parts_of_releases", "rough_parameter",
]

Protocol = TypeVar("Protocol", bound=PrivacyProfile)

SHARE = 1e-3
"""Relative tolerance of eps of one release, if several are calibrated together. Lowered tenfold: one or two more compositions."""

LONGEST = 80.0
"""Largest absolute log x of the search. Raised: distributions overflow. Lowered: targets that some x meets raise an error."""

OUT = 60.0
"""Absolute value of the function whose root is searched, where delta is 0 or 1 and the function has no usable slope."""

PROPORTIONAL = 1e-3
"""Largest relative excess of epsilon(delta) that is taken as proportional to a change of the parameter (`least_parameter`). Raised:
longer bisections after a step that is too large. Lowered: more steps."""

NEAR = 1.02
"""First step, as a ratio, of the search for eps/eps' (`parts_of_releases`) that starts at the value found for another protocol.
Steps double. Raised: longer searches if the two values are close. Lowered: longer searches if they are not."""


@quiet()
def meets(profile: PrivacyProfile, eps: float, delta: float) -> bool:
    """Return whether both delta(eps) <= delta and epsilon(delta) <= eps hold."""
    return profile.delta(eps) <= delta and profile.epsilon(delta) <= eps


def _log_excess(log_delta: float, delta: float) -> float:
    """Return a number that is positive if log delta misses the target.

    -log delta is approximately a power of the parameter, so log(-log delta) is nearly linear in the logarithm of the parameter.
    """
    if not -math.inf < log_delta < 0:
        return -OUT if log_delta < 0 else OUT
    return math.log(-math.log(delta)) - math.log(-log_delta)


def _searched(
    build: Callable[[float], PrivacyProfile], low: float, high: float, eps: float, delta: float, rtol: float
) -> tuple[float, Callable[[float], bool]]:
    """Return the parameter of :func:`least_parameter` as far as delta(eps) is concerned, and whether delta(eps) <= delta holds."""
    @lru_cache(CACHED_ANSWERS)
    def log_delta(value: float) -> float:
        return build(value).log_delta(eps)

    def excess(value: float) -> float:
        return _log_excess(log_delta(value), delta)

    def enough(value: float) -> bool:
        # `probability` gives the value that the method delta(eps) returns.
        return bool(probability(log_delta(value), True) <= delta)

    return least_real(excess, low, high, enough=enough, rtol=rtol), enough


@quiet()
@announced("calibrate")
def rough_parameter(
    build: Callable[[float], PrivacyProfile], low: float, high: float, eps: float, delta: float, rtol: float
) -> float:
    """Return a parameter close to that of :func:`least_parameter`, without evaluating epsilon(delta): a start for a search."""
    return _searched(build, low, high, eps, delta, rtol)[0]


@quiet()
@announced("calibrate")
def least_parameter(
    build: Callable[[float], PrivacyProfile], low: float, high: float, eps: float, delta: float, rtol: float = 1e-13
) -> float:
    """Return a parameter in (0, high] whose profile meets (eps, delta), close to the smallest one.

    0 < delta < 1. The search starts at `low` > 0, and continues below `low` if the profile of `low` meets the target. The profile
    of `high` must meet the target.
    """
    value, enough = _searched(build, low, high, eps, delta, rtol)
    # epsilon(delta) is itself found by a search. If `rtol` is as small as the rounding errors, the parameter is first increased by
    # `rtol`. Rounding then rarely makes epsilon(delta) exceed eps.
    value, step = min(value * (1 + rtol) if rtol < 1e-12 else value, high), rtol
    missed = value
    while value < high:
        reached = build(value).epsilon(delta)
        if reached <= eps and enough(value):
            break
        # epsilon(delta) may exceed eps by the tolerance of its search. If the excess is small, epsilon(delta) is about proportional
        # to 1/sqrt(parameter), and the parameter is increased by twice the relative excess. If delta is almost constant in eps,
        # as where delta is the probability that no bit is flipped, epsilon(delta) may be many times eps.
        above = 2.0 * (reached / eps - 1) if 0 < eps < reached else 0.0
        missed, value = value, min(value * (1 + (max(step, above) if above < PROPORTIONAL else step)), high)
        step *= 8
    while value > missed * (1 + max(1e-9, 8 * rtol)):
        middle = math.sqrt(missed) * math.sqrt(value)
        missed, value = (missed, middle) if meets(build(middle), eps, delta) else (middle, value)
    return value


@quiet()
@announced("calibrate")
def least_count(
    build: Callable[[int], PrivacyProfile],
    eps: float,
    delta: float,
    *,
    low: int = 0,
    high: int = MAX_COUNT,
    guess: int | None = None,
) -> int | None:
    """Return the smallest integer in low..high that satisfies `meets`, or None."""
    count = least_int(lambda value: build(value).delta(eps) <= delta, low, high, guess)
    if count is None:
        return None

    def serves(value: int) -> bool:
        return meets(build(value), eps, delta)

    # By rounding or by the gap of the bounds, the smallest integer that meets the condition on delta(eps) may not meet the
    # condition on epsilon(delta). Then the next eight integers are tried. If all fail, a search follows.
    last = min(high, count + 8)
    near = next((value for value in range(count, last + 1) if serves(value)), None)
    return near if near is not None or last == high else least_int(serves, last + 1, high)


def one_of_releases(calibrate: Callable[..., Protocol], releases: int, devices: int = 1, *, eps: float, delta: float) -> Protocol:
    """Return the protocol of one of several releases that together are (eps, delta)-private.

    A person may send up to `devices` messages in each release.

    The arguments are those of :func:`~shufflebounds.composition.calibrate_releases`, and are validated.
    """
    releases = _validate.integer("releases", releases, 1)
    devices = _validate.integer("devices", devices, 1, MOST_PEOPLE)
    eps, delta = _validate.target(eps, delta, open_eps=devices > 1)
    return parts_of_releases(calibrate, releases, eps, delta, devices=devices)[0]


@quiet()
@announced("calibrate")
def parts_of_releases(
    calibrate: Callable[..., Protocol], releases: int, eps: float, delta: float, near: float | None = None, devices: int = 1
) -> tuple[Protocol, float]:
    """Return the protocol of one release, and the number x whose targets it meets.

    One message of one release has the target eps' = eps/x, and a share of delta, if x >= 1, and the target eps and a larger delta'
    if x < 1, which is the case where eps is small in comparison with delta. The search starts at `near`, which is the second result
    of an earlier call for another protocol.
    """
    goal = math.sqrt(-math.log(delta))
    # `share` is the target delta of one message, and eps' its target eps. Let k = `devices` be the number of messages of one
    # person, with an equal split of eps. By group privacy, delta of this person in each release is at most k e^(k eps') times
    # `share`. So the target is met if e^(k eps') is at most 2.
    share = delta / releases if devices == 1 else delta / (2.0 * releases * devices)

    @cache
    def one(parts: float) -> Protocol:
        own = eps / max(parts, 1.0), min(share / min(parts, 1.0), delta)
        try:
            return calibrate(eps=own[0], delta=own[1])
        except InfeasibleError as error:
            if releases == devices == 1:
                raise
            raise InfeasibleError(f"(eps={eps:g}, delta={delta:g}) cannot be met by releases={releases} and devices={devices}: one "
                                  f"message would have to be ({own[0]:g}, {own[1]:g})-private, and {error}") from error

    @cache
    def build(parts: float) -> PrivacyProfile:
        several = one(parts) if releases == 1 else one(parts).self_compose(releases)
        return several if devices == 1 else several.for_group(devices)

    @lru_cache(CACHED_ANSWERS)
    def excess(log_parts: float) -> float:
        try:
            if not _has_room(one(math.exp(log_parts)), devices):
                return goal
        except InfeasibleError:
            # No noise meets this small eps'. A larger eps' may meet the target.
            return -goal
        log_delta = build(math.exp(log_parts)).log_delta(eps)
        return goal - math.sqrt(-log_delta) if log_delta > -math.inf else -goal

    # By basic composition, releases that are (eps/releases, delta/releases)-private each meet the target.
    most = math.log(releases if devices == 1 else max(releases * devices, 1.5 * eps * devices)) if eps > 0 else 0.0
    chosen, smallest = most, math.log(share / delta)
    if smallest < 0:
        # For Gaussian noise, eps/eps' is about sqrt(releases) if eps is small but large in comparison with delta.
        start = math.log(near) if near else math.log(devices) + math.log(releases) / 2
        at, step = min(start, most), math.log(NEAR) * (1 if near else 4)
        ends = [(at, excess(at))]
        rises = ends[0][1] > 0
        while (ends[-1][1] > 0) == rises and (ends[-1][0] < most if rises else ends[-1][0] > smallest):
            at, step = (min(at + step, most) if rises else max(at - step, smallest)), 2 * step
            # The target is met at `most`, so it is not evaluated there.
            ends.append((at, excess(at) if at < most else -goal))
        (low, at_low), (high, at_high) = sorted(ends[-2:]) if len(ends) > 1 else (ends[0], ends[0])
        if at_low > 0 > at_high:
            _, high, _, _ = narrowed(excess, low, high, at_low, at_high, rtol=0.0, xtol=SHARE / 2)
        chosen = high if at_low > 0 else low
        while chosen < most and not (_has_room(one(math.exp(chosen)), devices) and meets(build(math.exp(chosen)), eps, delta)):
            chosen = min(chosen + SHARE, most)
    if not _has_room(one(math.exp(chosen)), devices):
        raise ValueError(f"devices={devices} must be at most the number of messages of {one(math.exp(chosen))!r}")
    return one(math.exp(chosen)), math.exp(chosen)


def _has_room(protocol: PrivacyProfile, devices: int) -> bool:
    """Return whether the protocol has at least `devices` messages, so that one person may send this number of messages."""
    return devices <= getattr(protocol, "_hiding", getattr(protocol, "users", devices))


class Goal(NamedTuple):
    """A target of a calibration.

    `excess` is positive for a profile that misses the target, and about linear in the log of the noise. `met` decides whether a
    profile meets the target.
    """

    words: str
    excess: Callable[[PrivacyProfile], float]
    met: Callable[[PrivacyProfile], bool]


def goal_of(eps: float, delta: float) -> Goal:
    """Return the target (eps, delta), 0 < delta < 1."""
    def excess(profile: PrivacyProfile) -> float:
        return _log_excess(float(profile.log_delta(eps)), delta)

    return Goal(f"(eps={eps:g}, delta={delta:g})", excess, lambda profile: meets(profile, eps, delta))


@_validate.quiet()
@announced("least_noise")
def least_of_goal(release: Callable[[float], PrivacyProfile], goal: Goal, near: float, rtol: float) -> float:
    """Return the smallest x whose profile meets the target, to a relative `rtol`; the search starts at `near`.

    The function `release` of x > 0 returns a profile that is more private for larger x.
    """
    start = math.log(near)

    @cache
    def profile(log_x: float) -> PrivacyProfile:
        released = release(math.exp(log_x))
        if not isinstance(released, PrivacyProfile):
            raise TypeError(f"release({math.exp(log_x):g}) is {_validate.short_repr(released)}: it must return a profile, such as "
                            "GaussianMechanism(x).subsampled(0.01)")
        return released

    @cache
    def excess(log_x: float) -> float:
        try:
            return goal.excess(profile(log_x))
        except ValueError:
            # Noise below the smallest value that the class accepts meets no target.
            if log_x < start:
                return OUT
            raise

    missed_by_all = f"no x up to e^{LONGEST:g} meets {goal.words}: is release(x) more private for larger x?"
    low = high = start
    step, missed = math.log(1.5), excess(start) > 0
    while (excess(high) > 0) if missed else (excess(low) <= 0):
        low, high = (high, high + step) if missed else (low - step, low)
        step *= 2
        if low < -LONGEST:
            # Every x meets the target, up to the tolerance of the searches.
            low = high
            break
        if high > LONGEST:
            raise InfeasibleError(missed_by_all)
    if low < high:
        _, high, _, _ = narrowed(excess, low, high, excess(low), excess(high), rtol=0.0, xtol=rtol / 2)
    # The conditions on delta(eps) and on epsilon(delta) may disagree, because of rounding and the tolerance of the searches.
    step = rtol
    while not goal.met(profile(high)):
        high, step = high + step, 2 * step
        if high > LONGEST:
            raise InfeasibleError(missed_by_all)
    return math.exp(high)
