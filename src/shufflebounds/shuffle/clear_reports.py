"""Reports sent without randomization, among uniformly distributed dummy reports."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from shufflebounds._base import validate as _validate
from shufflebounds._base.docs import with_passages
from shufflebounds._base.types import ULP, FloatArray, Interval
from shufflebounds._engines.clones.clone_pair import ClonePair
from shufflebounds._engines.errors.accuracy import COUNTED, ErrorLaw, log_exceeded, shift_rounding
from shufflebounds._engines.errors.counted import CountsOfLabels
from shufflebounds._engines.errors.intervals import CountIntervals, CountLaw, tail_of_bits
from shufflebounds._losses.closed_forms import ClosedForms
from shufflebounds._losses.release import SINGLE, DominatingPairInfo, Losses, never
from shufflebounds._losses.sum_test import attained_by, certain, moved
from shufflebounds.profile.calibration import least_count, one_of_releases
from shufflebounds.profile.chain import GroupInfo
from shufflebounds.profile.profile import PrivacyProfile
from shufflebounds.shuffle.clones import CLONE_SAMPLING
from shufflebounds.shuffle.noise import BinomialNoise

__all__ = ["ClearReports"]


@with_passages
@dataclass(frozen=True)
class ClearReports(CountIntervals, CountsOfLabels, PrivacyProfile, ErrorLaw):
    r"""Every user reports the exact bin, among m dummy reports with uniformly random bins; the analyst sees the shuffled reports.

    The bin of one user, the target, is replaced by another. If these two bins contain N dummy reports, each of the N is in either
    bin with probability 1/2. So, with the hockey-stick divergence H,

    .. math::
        \delta(\varepsilon) = \sum_N \Pr[\mathrm{Bin}(m, 2/d) = N]\, D_N, \qquad
        D_N = H_{e^\varepsilon}(B_N + 1 \,\|\, B_N), \quad B_N \sim \mathrm{Bin}(N, 1/2).

    Parameters
    ----------
    fakes : int
        Number m of dummy reports, 0 to 2**53.
    bins : int
        Number d of bins, 1 to 2**53. With one bin delta is 0.

    Notes
    -----
    Neighbours: one user's bin is replaced. delta is exact for the protocol, for every dataset and number of users, and equal for
    (P, Q) and (Q, P). There is no pure differential privacy.

    The formula is that of :class:`Clones` for an infinite local budget, where each of m other users, here the m dummy reports,
    sends a clone with probability 2/d. It is computed in the same way. The upper and the lower bound of log delta differ by about
    1e-12 (1 + \|log delta\|), and by at most 1e-9 (1 + \|log delta\|). The run time does not grow with the number of dummy reports
    above about 10**7 d.

    The users' values are bins 0..d - 1, and so are the messages, int64: :meth:`randomize` returns the values themselves, and the
    messages of :meth:`dummies` hide them. The argument `counts` of :meth:`estimate` is the number of reports of each bin. The
    estimate of a bin is this number minus m/d. The error is :math:`\mathrm{Bin}(m, 1/d) - m/d` for every dataset, so `truth` has no
    effect in :meth:`error_tail`. With ``of="any"``, the bound there is the union bound: d times the probability of an error in one
    bin.

    References
    ----------
    Zhilyaev, M. Shuffled bits and fake records, section 5.1; the closed form (5.10) there requires several times as many dummy
    reports, and its derivation is not valid.

    Examples
    --------
    >>> from shufflebounds import shuffle
    >>> shuffle.ClearReports.calibrate(bins=100, eps=1.0, delta=1e-6)
    ClearReports(fakes=4261, bins=100)
    >>> print(f"{shuffle.ClearReports(4261, 100).delta(1.0):.10e}")
    9.9811713725e-07
    """

    fakes: int
    bins: int

    theorem: ClassVar[str] = "exact for the protocol, by direct calculation (docs/protocols/clear-reports)"
    neighbours: ClassVar[str] = "replace one user's bin; the analyst sees the shuffled reports, real and fake alike"

    def __post_init__(self) -> None:
        _validate.integer_field(self, "fakes")
        _validate.integer_field(self, "bins", 1)
        if 0 < self.fakes < self.bins:
            _validate.warn(f"fakes={self.fakes} is below bins={self.bins}: a bin without dummy reports shows that a user is in it, "
                           "and most bins have few or none. Are fakes and bins swapped?")

    def _clones(self) -> tuple[float, float]:
        """Return the number of users and the clone rate of the equivalent clone pair, whose local budget is infinite.

        A dummy report in one of the two bins is a clone. 2**53 dummies would need 2**53 + 1 users, which is not a double, so one
        dummy is omitted; this changes log delta by half an ulp, less than its error bound.
        """
        return float(min(self.fakes + 1, _validate.MAX_COUNT)), 2 / self.bins

    def describe(self) -> DominatingPairInfo:
        if self.bins == 1:
            return DominatingPairInfo(never, 0.0, None, CLONE_SAMPLING, attained=SINGLE)
        pair = ClonePair(*self._clones(), math.inf)
        # A bin without dummy reports reveals that the target's report is in it.
        return DominatingPairInfo(pair.log_delta, math.inf, None, CLONE_SAMPLING, Losses(unbounded=True), SINGLE)

    def closed_forms(self) -> ClosedForms:
        return ClosedForms() if self.bins == 1 else ClonePair(*self._clones(), math.inf)

    def describe_group(self, size: int) -> GroupInfo:
        # All reports of the group move from one bin to another. The test is the difference of the two counts.
        if self.bins == 1 or not self.fakes:
            return GroupInfo()
        share, rest = -math.log(self.bins), math.log1p(-2 / self.bins) if self.bins > 2 else -math.inf
        dummies = certain((-1, 0, 1), (share, rest, share), self.fakes)
        return GroupInfo(attained=lambda: attained_by([moved(float(size), [dummies])]))

    @classmethod
    def calibrate(cls, *, bins: int, eps: float, delta: float, releases: int = 1, devices: int = 1) -> Self:
        """Return the mechanism with the smallest number of dummy reports whose upper delta at `eps` is at most `delta`.

        Parameters
        ----------
        bins : int
            Number of bins, 1 to 2**53.
        {target}
        {releases}

        Returns
        -------
        ClearReports
            Its upper delta at `eps` is at most `delta`, and its epsilon(delta) at most `eps`; with one dummy report fewer, one of
            the two is not.

        {raises}
        InfeasibleError
            If 2**53 dummy reports are not enough; the message states delta and eps for this number (a ValueError).

        Notes
        -----
        One more dummy report is post-processing: delta does not increase with `fakes`, so bisection finds the smallest number.

        Examples
        --------
        >>> from shufflebounds import shuffle
        >>> shuffle.ClearReports.calibrate(bins=100, eps=0.1, delta=1e-9).fakes
        505157
        """
        if (releases, devices) != (1, 1):
            return one_of_releases(partial(cls.calibrate, bins=bins), releases, devices, eps=eps, delta=delta)
        bins = _validate.integer("bins", bins, 1)
        eps, delta = _validate.target(eps, delta)
        if bins == 1:
            return cls(0, bins)

        # The search starts where the mean number of dummy reports in the two bins is that of calibrated binomial noise.
        with _validate.quiet():
            hits = BinomialNoise.calibrate(eps=eps, delta=delta).trials
        fakes = least_count(lambda fakes: cls(fakes, bins), eps, delta, guess=hits * bins // 2)
        if fakes is None:
            most = cls(_validate.MAX_COUNT, bins)
            raise _validate.InfeasibleError(
                f"delta={delta:g} cannot be met at eps={eps:g} with bins={bins}: 2**53 fakes give delta={most.delta(eps):.3g}, "
                f"or eps={most.epsilon(delta):.3g}"
            )
        return cls(fakes, bins)

    @property
    def _dummies(self) -> int:
        return self.fakes

    def _messages(self, values: NDArray[Any], source: np.random.Generator) -> NDArray[np.int64]:
        return values

    def _dummy_messages(self, number: int, source: np.random.Generator) -> NDArray[np.int64]:
        return source.integers(0, self.bins, size=number)

    def _estimated(self, counts: NDArray[np.int64], users: int) -> FloatArray:
        return counts - np.float64(self.fakes / self.bins)

    @property
    def variance(self) -> float:
        """Variance (m/d)(1 - 1/d) of the estimate of one bin, for every dataset; m is `fakes` and d is `bins`."""
        return self.fakes / self.bins * (1 - 1 / self.bins)

    def messages_per_user(self, users: int) -> float:
        """Return the number of reports per user, including dummy reports.

        Parameters
        ----------
        {users}

        Returns
        -------
        float
            1 + fakes/users.

        {raises: If `users` lies outside its range.}
        """
        return 1 + self.fakes / _validate.integer("users", users, 1)

    def _checked_truth(self, truth: Any) -> None:
        # The error is the same for every dataset.
        if truth is not None and np.ndim(truth) == 0:
            _validate.integer("truth", truth, 0)
        elif truth is not None:
            _validate.counts("truth", truth, _validate.MAX_COUNT, self.bins)

    def _count_law(self, users: int) -> CountLaw:
        share = 1 / self.bins
        return CountLaw(tail_of_bits(users, (1.0, 0.0), (0.0, 1.0), (share, 1 - share, self.fakes), ULP), self._scale(), users)

    def _error(self, a: Fraction, truth: Any) -> Interval:
        share, counts = 1 / self.bins, np.array([float(self.fakes)])
        one, zero = np.array([share]), np.array([1 - share])
        return log_exceeded(one, zero, counts, Fraction(self.fakes / self.bins), a, rounding=ULP)

    def _rounding(self, a: Fraction, truth: Any) -> float:
        return shift_rounding(self.fakes / self.bins, self.fakes + COUNTED)

    def _scale(self) -> float:
        return math.sqrt(self.variance) + 1
