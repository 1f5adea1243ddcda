"""Reports sent in the clear among uniform fake ones."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shufflebounds import _validate
from shufflebounds._core import _clones
from shufflebounds._docs import with_passages
from shufflebounds._types import ULP, FloatArray, Interval, IntervalArray
from shufflebounds.composing import DominatingPairInfo
from shufflebounds.profile.calibration import least_count
from shufflebounds.shuffle._accuracy import log_exceeded
from shufflebounds.shuffle._protocol import ShuffleProtocol
from shufflebounds.shuffle.noise import BinomialNoise

__all__ = ["ClearReports"]


@with_passages
@dataclass(frozen=True)
class ClearReports(ShuffleProtocol):
    r"""Every user reports a bin in the clear, among m fake reports whose bins are uniform; the analyst sees the shuffled reports.

    Of the target's two possible bins the fake reports hit N, of these either one with the same chance:

    .. math::
        \delta(\varepsilon) = \sum_N \Pr[\mathrm{Bin}(m, 2/d) = N]\, D_N, \qquad
        D_N = H_{e^\varepsilon}(B_N + 1 \,\|\, B_N), \quad B_N \sim \mathrm{Bin}(N, 1/2).

    Parameters
    ----------
    fakes : int
        Number m of fake reports, 0 to 2**53.
    bins : int
        Number d of bins, 1 to 2**53. With one bin there is nothing to hide.

    Notes
    -----
    Neighbours: one user's bin is replaced. Exact for the protocol, whatever the data and the number of users, and the same in
    both directions; no pure differential privacy. It is the clone pair of :class:`Clones` with an infinite local budget and the
    chance 2/d of a clone, and is computed as that pair is: the sides are about a relative 1e-12 (1 + \|log delta\|) apart, at
    most 1e-9 times that, at a cost that does not grow with the number of fake reports beyond some ten million d.

    The users' values are bins 0..d - 1, and so are the messages: int64, users + fakes of them in random order. The estimate of
    a bin is its number of reports less m/d; its error is :math:`\mathrm{Bin}(m, 1/d) - m/d` whatever the data: `truth` stays
    None in :meth:`error_tail`. By the union bound some bin errs with at most d times the probability of one.

    References
    ----------
    Zhilyaev, M. Shuffled bits and fake records, section 5.1; its closed form (5.10) asks for several times as many fake reports
    and its derivation is unsound.

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

    def _clones(self) -> tuple[float, float]:
        """Return users and rate of the equal clone pair. Its local budget is infinite; a fake report in either bin is a clone.

        Of 2**53 fake reports one is left out, as n + 1 is no double: log delta moves by half an ulp, less than its slack.
        """
        return float(min(self.fakes + 1, _validate.MAX_COUNT)), 2 / self.bins

    def _log_delta(self, eps: FloatArray) -> IntervalArray:
        lower, upper = np.full(eps.shape, -math.inf), np.full(eps.shape, -math.inf)
        if self.bins > 1:
            users, rate, unbounded_loss = (np.full(eps.shape, x) for x in (*self._clones(), math.inf))
            _clones.clones_log_delta(users, rate, unbounded_loss, np.ascontiguousarray(eps), lower, upper)
        return IntervalArray(lower, upper)

    def _epsilon(self, delta: float, upper: bool) -> float:
        if self.bins == 1:
            return super()._epsilon(delta, upper)
        return _clones.clone_epsilon(*self._clones(), math.inf, delta, upper)

    def _pair_info(self) -> DominatingPairInfo:
        return replace(super()._pair_info(), single=True, effort=1e-5)

    def _pure_epsilon(self) -> float:
        return 0.0 if self.bins == 1 else math.inf

    @classmethod
    def calibrate(cls, bins: int, *, eps: float, delta: float) -> Self:
        """Return the mechanism with the fewest fake reports whose upper delta at `eps` is at most `delta`.

        Parameters
        ----------
        bins : int
            Number of bins, 1 to 2**53.
        {target}

        Returns
        -------
        ClearReports
            With the target checked at the returned number of fakes, and missed with one fewer.

        {raises}
        InfeasibleError
            If 2**53 fake reports do not suffice; the message names what they give (a ValueError).

        Notes
        -----
        One more fake report is post-processing: delta does not increase with `fakes`, so bisection finds the least number.

        Examples
        --------
        >>> from shufflebounds import shuffle
        >>> shuffle.ClearReports.calibrate(100, eps=0.1, delta=1e-9).fakes
        505157
        """
        bins = _validate.integer("bins", bins, 1)
        eps, delta = _validate.target(eps, delta)
        if bins == 1:
            return cls(0, bins)

        # a guess: so many fakes hit the two bins often enough on average
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

    def randomize(self, values: ArrayLike, rng: Any = None) -> NDArray[np.int64]:
        chosen = _validate.labels("values", values, self.bins)
        source = _validate.generator(rng)
        _validate.affordable(f"the messages of fakes={self.fakes}", self.fakes)
        messages = np.concatenate([chosen, source.integers(0, self.bins, size=self.fakes)])
        source.shuffle(messages)
        return messages

    def estimate(self, messages: ArrayLike) -> FloatArray:
        r"""Return the estimated number of users in each bin: the reports that name it, less the m/d dummy reports expected there.

        Parameters
        ----------
        messages : array_like of int, shape (users + fakes,)
            The shuffled reports themselves, one bin 0..d - 1 an entry. A histogram, one count a bin, is something else.

        Returns
        -------
        ndarray, shape (bins,)

        {raises: If an entry is no bin, or there are fewer reports than dummy reports.}
        """
        seen = _validate.labels("messages", messages, self.bins)
        advice = "pass the reports themselves, one bin an entry, not one count a bin"
        if seen.size < self.fakes:
            raise ValueError(f"messages has shape ({seen.size},): it must have at least fakes={self.fakes} entries; {advice}")
        if seen.size == self.bins > 2:
            _validate.warn(f"messages has as many entries as bins={self.bins}: {advice}. For a histogram of counts, "
                           f"np.repeat(np.arange({self.bins}), counts) makes the reports")
        counts: FloatArray = np.bincount(seen, minlength=self.bins) - np.float64(self.fakes / self.bins)
        return counts

    @property
    def variance(self) -> float:
        """Variance (m/d)(1 - 1/d) of the estimate of one bin, whatever the data."""
        return self.fakes / self.bins * (1 - 1 / self.bins)

    def messages_per_user(self, users: int) -> float:
        """Return how many reports there are for every user, the fake ones shared evenly.

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

    def _many(self) -> int:
        return self.bins

    def _error(self, a: Fraction, truth: Any) -> Interval:
        chance, counts = 1 / self.bins, np.array([float(self.fakes)])
        one, zero = np.array([chance]), np.array([1 - chance])
        return log_exceeded(one, zero, counts, Fraction(self.fakes / self.bins), a, rounding=ULP)

    def _scale(self) -> float:
        return math.sqrt(self.variance) + 1
