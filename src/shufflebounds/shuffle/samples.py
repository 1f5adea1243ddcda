"""Sample sizes of the shuffled histogram: numbers of users that are enough for support identification and pointer chasing."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from shufflebounds._base import validate as _validate
from shufflebounds._base.docs import with_passages
from shufflebounds._base.search import least_int
from shufflebounds._base.types import ULP, FloatArray, IntervalArray
from shufflebounds._core._binomial import binom_logcdf, binom_logpmf
from shufflebounds._engines.bits.mixed_sum import enclose_sum
from shufflebounds.shuffle.histogram import ShuffledHistogram

__all__ = ["SampleSize", "pointer_chasing", "pointer_jumping", "printed_support_samples", "support_identification"]


@dataclass(frozen=True)
class SampleSize:
    """A number of users for which :class:`~shufflebounds.shuffle.ShuffledHistogram` meets a privacy and an accuracy target.

    Parameters
    ----------
    users : int
        Number of users.
    bins : int
        Size of the domain: every user sends at most 1 + bins messages.
    gamma : float
        Calibrated probability of a zero noise bit.
    failure : float
        Upper bound of the probability that some bin of the support is estimated as 0. Bins outside the support are always
        estimated as 0.
    """

    users: int
    bins: int
    gamma: float
    failure: float

    def __repr__(self) -> str:
        # A huge number of bins is printed by its logarithm, because Python limits the number of digits of an int that it converts.
        bins = str(self.bins) if self.bins < 10**30 else f"<10**{math.log10(self.bins):.2f}>"
        return f"SampleSize(users={self.users}, bins={bins}, gamma={self.gamma!r}, failure={self.failure!r})"

    @property
    def protocol(self) -> ShuffledHistogram:
        """The calibrated histogram protocol, for at most 2**53 bins."""
        return ShuffledHistogram(self.users, self.bins, self.gamma)


def _log_missed(users: int, gamma: float, support: int) -> float:
    """Return an upper bound of log Pr[X <= Y], the probability that a bin of the support is estimated as 0.

    X ~ Bin(users, 1/support) is the number of users in the bin, and Y ~ Bin(users, gamma) the number of its zero noise bits.
    """
    share = 1 / support

    def value(zeros: FloatArray) -> IntervalArray:
        log_below = binom_logcdf(zeros, float(users), share)
        # The last term is the error from the rounding of 1/support.
        error = 1e-13 + 8 * ULP * np.abs(np.maximum(log_below, -1e300)) + 2 * ULP * users * share
        return IntervalArray(log_below - error, np.minimum(log_below + error, 0.0))

    top = float(users)
    return enclose_sum(lambda i: binom_logpmf(i, top, gamma), math.floor((users + 1) * gamma), 0.0, top, value)[1]


@with_passages
def support_identification(
    support: int, *, eps: float, delta: float, bins: int | None = None, failure: float = 0.01
) -> SampleSize:
    r"""Return a number of users that is enough to identify a support of size h, if the users' values are uniform on the support.

    The estimated support is the set of bins whose estimate by the shuffled histogram is not 0. For bins outside the support the
    estimate is always 0. A bin of the support is missed if its number of users :math:`X \sim \mathrm{Bin}(n, 1/h)` is at most its
    number of zero noise bits :math:`Y \sim \mathrm{Bin}(n, \gamma)`:

    .. math:: \Pr[\text{failure}] \le h \Pr[X \le Y].

    Parameters
    ----------
    support : int
        Size h of the support, 1 to 2**40.
    eps : float
        Privacy loss in nats, finite and > 0.
    delta : float
        Failure probability of privacy, in (0, 1).
    bins : int, optional
        Size d of the domain, at least max(h, 2), which is the default. The number of users does not depend on it.
    failure : float
        Largest probability of missing a value, in (0, 1).

    Returns
    -------
    SampleSize
        At its number of users, the guarantee and the bound of the failure probability were evaluated and meet the targets.

    {raises}

    Notes
    -----
    The number of users is found by bisection to a relative 1e-3; gamma is calibrated for every number that is tried.

    References
    ----------
    Balcer, V., Cheu, A. Separating local and shuffled differential privacy via histograms, 2020, Claim 3.4, whose constants
    require 40 to 90 times as many users: :func:`printed_support_samples`.

    Examples
    --------
    >>> from shufflebounds.shuffle import samples
    >>> size = samples.support_identification(10, eps=1.0, delta=1e-6)
    >>> size.failure <= 0.01, size.users < samples.printed_support_samples(10, eps=1.0, delta=1e-6) / 40
    (True, True)
    """
    support = _validate.integer("support", support, 1, 2**40)
    eps, delta = _validate.target(eps, delta, open_eps=True)
    failure = _validate.real("failure", failure, 0, 1, open_low=True, open_high=True)
    bins = max(support, 2) if bins is None else bins
    if isinstance(bins, bool) or not isinstance(bins, int):
        # A domain of more than 2**53 values must be given as an int; other types are checked as usual.
        bins = _validate.integer("bins", bins, max(support, 2))
    if bins < max(support, 2):
        raise ValueError(f"bins={bins} must be an integer of at least {max(support, 2)}")

    def solved(users: int) -> SampleSize | None:
        try:
            with _validate.quiet():
                gamma = ShuffledHistogram.calibrate(users=users, bins=2, eps=eps, delta=delta).gamma
        except _validate.InfeasibleError:
            return None
        missed = support * math.exp(_log_missed(users, gamma, support)) * (1 + 1e-12)
        return SampleSize(users, int(bins), gamma, missed) if missed <= failure else None

    doublings = least_int(lambda times: solved(support << times) is not None, 1, 52)
    assert doublings is not None
    low = support << (doublings - 1)
    # Each trial needs a calibration, so only numbers of users that are a relative 1/1024 apart are tried.
    step = max(1, low // 1024)
    index = bisect_left(range(low, 2 * low, step), True, key=lambda users: solved(users) is not None)
    size = solved(min(low + index * step, 2 * low))
    assert size is not None
    return size


@with_passages
def printed_support_samples(support: int, *, eps: float, delta: float) -> int:
    r"""Return the number of users that Claim 3.4 of Balcer and Cheu requires, with its constants made explicit.

    With :math:`e = \varepsilon/2`, :math:`L = \ln(4/\delta)`, :math:`t = \lceil 50 L/e^2 + \sqrt{200 L \ln(400 h)}/e \rceil` and
    :math:`k = 2t + 1`, the number is the smallest :math:`n \ge 100 L/e^2` with :math:`h \Pr[\mathrm{Bin}(n, 1/h) < k] \le 1/200`.

    Parameters
    ----------
    support : int
        Size h of the support, 1 to 2**40.
    eps : float
        Privacy loss in nats, in (0, 1].
    delta : float
        Failure probability of privacy, in (0, 1); the claim assumes that it is below :math:`(200 h)^{-1/25}`.

    Returns
    -------
    int

    {raises}

    {balcer2020: Claim 3.4}

    Examples
    --------
    >>> from shufflebounds.shuffle import samples
    >>> samples.printed_support_samples(10, eps=1.0, delta=1e-6)
    69760
    """
    support = _validate.integer("support", support, 1, 2**40)
    eps, delta = _validate.target(eps, delta, open_eps=True, most_eps=1)
    half = eps / 2
    log_term = math.log(4 / delta)
    often = 2 * math.ceil(50 * log_term / half**2 + math.sqrt(200 * log_term * math.log(400 * support)) / half) + 1
    floor = max(often, math.ceil(100 * log_term / half**2))

    def enough(users: int) -> bool:
        return float(binom_logcdf(often - 1, users, 1 / support)) <= -math.log(200 * support)

    smallest = least_int(enough, floor, max(floor, often * support) << 20, guess=often * support)
    assert smallest is not None
    return smallest


@with_passages
def pointer_chasing(length: int, *, eps: float, delta: float, failure: float = 0.01) -> SampleSize:
    r"""Return a number of users that is enough for pointer chasing.

    There are two permutations of `length` integers, with the labels 1 and 2. The value of each user is one of them, with its label.
    The task is to apply the two permutations alternately a given number of times. Identifying both permutations solves the task
    (:func:`support_identification` with support 2).

    Parameters
    ----------
    length : int
        Number l of integers, 1 to 10**4. The domain has :math:`2\, l!` values: a permutation and its label.
    eps, delta, failure : float
        As in :func:`support_identification`.

    Returns
    -------
    SampleSize
        The number of users depends neither on the length nor on how often the permutations are applied.

    {raises}

    References
    ----------
    Balcer, V., Cheu, A. Separating local and shuffled differential privacy via histograms, 2020, section 3.3; local protocols
    without interaction need users in proportion to the length.

    Examples
    --------
    >>> from shufflebounds.shuffle import samples
    >>> short, long = (samples.pointer_chasing(length, eps=1.0, delta=1e-6) for length in (3, 20))
    >>> short.users == long.users
    True
    """
    length = _validate.integer("length", length, 1, 10**4)
    return support_identification(2, eps=eps, delta=delta, bins=2 * math.factorial(length), failure=failure)


@with_passages
def pointer_jumping(branching: int, height: int, *, eps: float, delta: float, failure: float = 0.01) -> SampleSize:
    r"""Return a number of users that is enough for pointer jumping.

    Every node of a complete tree of h levels has a label, the number of one of its s children. The value of each user is the list
    of the labels of one level. The task is to follow the labels from the root; knowing the values of all levels solves the task.

    Parameters
    ----------
    branching : int
        Children s of every node, 1 to 100.
    height : int
        Number h of levels, 1 to 6. The domain has :math:`\sum_{i \le h} s^{s^{i-1}}` values, at most 10**4 digits long.
    eps, delta, failure : float
        As in :func:`support_identification`.

    Returns
    -------
    SampleSize
        The result of :func:`support_identification` for a support of h values.

    {raises}

    {balcer2020: section 3.3}

    Examples
    --------
    >>> from shufflebounds.shuffle import samples
    >>> samples.pointer_jumping(2, 3, eps=1.0, delta=1e-6).bins
    22
    """
    branching = _validate.integer("branching", branching, 1, 100)
    height = _validate.integer("height", height, 1, 6)
    if branching ** (height - 1) * math.log10(branching) > 10**4:
        raise ValueError(f"height={height} must be smaller for branching={branching}: the domain has more than 10**4 digits")
    bins = sum(branching ** (branching ** (level - 1)) for level in range(1, height + 1))
    return support_identification(height, eps=eps, delta=delta, bins=max(bins, 2, height), failure=failure)
