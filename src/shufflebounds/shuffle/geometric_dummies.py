"""Reports sent without randomization, among dummy reports whose number is drawn for each bin from a geometric distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shufflebounds._base import validate as _validate
from shufflebounds._base.caches import cached_property
from shufflebounds._base.docs import with_passages
from shufflebounds._base.limits import COMPUTED_ERROR, LARGEST_EXPONENT, NEGLIGIBLE, TABLE_SIZE
from shufflebounds._base.types import ULP, FloatArray, Interval
from shufflebounds._core._binomial import binom_logcdf, binom_logsf
from shufflebounds._engines.errors.accuracy import COUNTED, ErrorLaw, Histogram, shift_rounding
from shufflebounds._engines.errors.counted import CountsOfLabels
from shufflebounds._engines.errors.intervals import CountIntervals, CountLaw
from shufflebounds._losses.atoms import LossAtoms, union_probability
from shufflebounds._losses.release import SINGLE, DominatingPairInfo, Losses, never
from shufflebounds.profile.calibration import least_count, meets, one_of_releases
from shufflebounds.profile.profile import PrivacyProfile, outcome_info

__all__ = ["GeometricDummies"]


@with_passages
@dataclass(frozen=True)
class GeometricDummies(CountIntervals, CountsOfLabels, PrivacyProfile, ErrorLaw):
    r"""Every user reports the exact bin; each bin gets Z dummy reports, Z drawn from a two-sided geometric distribution.

    With s = `shift`, l = `left` and r = `right`, the numbers Z of the bins are independent and have the distribution

    .. math::
        \Pr[Z = j] = D(j) = \frac1K \begin{cases} l^{s-j} & 0 \le j < s \\ r^{j-s} & j \ge s \end{cases}, \qquad
        K = \sum_{i=1}^{s} l^i + \frac{1}{1 - r}

    The shuffler keeps each user's report with probability b = `keep`. If a user's bin is replaced, one report moves to another bin,
    and the numbers of reports in these two bins determine delta:

    .. math::
        \delta(\varepsilon) = \sum_{i,j} w_i w_j (u_i - e^\varepsilon u_j)_+, \qquad u = (1-b,\; 1-b+b\,l,\; 1-b+b/r)

    The likelihood ratio of a bin is the probability of its number of reports if the bin is the target's, divided by the probability
    if it is not. It has three values: :math:`u_1` if this number is 0, :math:`u_2` if it is 1 to s, and :math:`u_3` if it is above
    s. Under D these three events have the probabilities :math:`w_1, w_2, w_3`. For b = 1 and :math:`e^\varepsilon \ge 1/(l r)`,
    delta is D(0).

    Parameters
    ----------
    bins : int
        Number d of bins, 1 to 2**53. With one bin delta is 0.
    shift : int
        The most likely number s of dummy reports in a bin, 0 to 2**20.
    left : float
        Ratio l of the probability of j - 1 dummy reports to that of j, for j <= s; in [0, 1).
    right : float
        Ratio r of the probability of j + 1 dummy reports to that of j, for j >= s; in (0, 1).
    keep : float
        Probability b, in [1e-12, 1], with which the shuffler keeps each user's report, and otherwise discards it.

    Notes
    -----
    Neighbours: one user's bin is replaced. The formula is an upper bound for every dataset: all other users' reports are
    independent of the numbers of dummy reports in the target's two bins, so adding them is post-processing. The formula is exact
    for keep = 1, and for keep < 1 if no other user is in the two bins. delta is the same for (P, Q) and (Q, P). The computed
    delta has a relative error of about 1e-15 (1 + \|log D(0)\|).

    The users' values are bins 0..d - 1, and so are the messages, int64. :meth:`randomize` returns the values that are kept, and the
    messages of :meth:`dummies`, whose number is random, hide them. One party must add all dummy reports of a bin. The
    argument `counts` of :meth:`estimate` is the number of reports of each bin. The estimate of a bin is (count - E Z)/b. Its error
    for h users in the bin is :math:`(\mathrm{Bin}(h, b) + Z - \mathbb{E}Z)/b - h`. For keep = 1 this error does not depend on the
    dataset, and `truth` has no effect in :meth:`error_tail`. For keep < 1, pass as `truth` the number of users in the bin, or the
    numbers in all bins. The errors of the bins are independent, so :meth:`error_tail` is exact for ``of="any"``, too.

    References
    ----------
    Murakami, T., Sei, Y., Eriguchi, R. Augmented shuffle protocols for accurate and robust frequency estimation under differential
    privacy, 2025, whose asymmetric geometric distributions have this form. The formula for delta is that of
    docs/protocols/geometric-dummies.

    Examples
    --------
    >>> from shufflebounds import shuffle
    >>> dummies = shuffle.GeometricDummies.calibrate(bins=100, eps=1.0, delta=1e-6)
    >>> print(f"{dummies.dummies_per_bin:.4f} {dummies.variance**0.5:.6f}")
    25.0000 2.798988
    >>> print(f"{dummies.shift} {dummies.delta(1.0):.6e}")
    25 9.127282e-07
    >>> shuffle.ClearReports.calibrate(bins=100, eps=1.0, delta=1e-6).variance ** 0.5 > 6
    True
    """

    bins: int
    shift: int
    left: float
    right: float
    keep: float = 1.0

    theorem: ClassVar[str] = "exact for the protocol, by direct calculation (docs/protocols/geometric-dummies)"
    neighbours: ClassVar[str] = "replace one user's bin; the analyst sees the shuffled reports, real and dummy alike"
    _held: ClassVar[int] = 0

    def __post_init__(self) -> None:
        _validate.integer_field(self, "bins", 1)
        _validate.integer_field(self, "shift", 0, TABLE_SIZE)
        _validate.real_field(self, "left", 0, 1, open_high=True)
        _validate.real_field(self, "right", 0, 1, open_low=True, open_high=True)
        _validate.real_field(self, "keep", 1e-12, 1)
        if self.keep == 1 and self.bins > 1 and (empty := math.exp(self._log_masses[0])) > _validate.LARGE_DELTA:
            _validate.warn(f"shift={self.shift} leaves a bin without dummy reports with probability {empty:.2g}, and the bin then "
                           "shows whether a user is in it: choose a larger shift, or calibrate(...)")

    @property
    def _below(self) -> float:
        """Return K Pr[Z < s] (class docstring), the sum of left**i for i from 1 to s."""
        return self.left * self._geometric(self.left, self.shift)

    @cached_property
    def _log_norm(self) -> float:
        """The logarithm of K, the divisor in the probabilities of Z."""
        return math.log(self._below + 1 / (1 - self.right))

    @staticmethod
    def _geometric(ratio: float, terms: float) -> float:
        """Return the sum of ratio**i for i from 0 to terms - 1."""
        if ratio == 0 or terms == 0:
            return float(terms > 0)
        return -math.expm1(terms * math.log(ratio)) / (1 - ratio)

    @cached_property
    def _log_masses(self) -> tuple[float, float, float]:
        """The log probabilities of Z = 0, of 1 <= Z <= s and of Z > s."""
        middle = self._geometric(self.left, self.shift)
        first = (self.shift * math.log(self.left) if self.left else -math.inf) if self.shift else 0.0
        logs = first, math.log(middle) if middle else -math.inf, math.log(self.right) - math.log1p(-self.right)
        return tuple(log - self._log_norm for log in logs)  # type: ignore[return-value]

    @cached_property
    def _log_ratios(self) -> tuple[float, float, float]:
        """The logarithms of u, each with a relative error of a few ulp."""
        dropped = self.keep * (1 - self.left)
        near_zero = (1 - self.keep) + self.keep * self.left
        middle = math.log1p(-dropped) if dropped < 0.5 else math.log(near_zero) if near_zero else -math.inf
        added = self.keep * (1 - self.right)
        # The quotient of doubles overflows only where the 1 in 1 + b (1 - r)/r is negligible.
        last = math.log1p(added / self.right) if added < 1e300 * self.right else math.log(added) - math.log(self.right)
        return math.log1p(-self.keep) if self.keep < 1 else -math.inf, middle, last

    def _outcomes(self) -> LossAtoms:
        """Return the nine outcomes: the pairs of likelihood ratios that the numbers of reports in the two bins have."""
        mass, ratio = self._log_masses, self._log_ratios
        possible = [(i, j) for i in range(3) for j in range(3) if mass[i] > -math.inf < mass[j]]
        log_p, log_q = (np.array([mass[i] + mass[j] + ratio[(i, j)[k]] for i, j in possible]) for k in (0, 1))
        alone = [float(np.logaddexp.reduce(first[other == -np.inf], initial=-np.inf)) for first, other in
                 ((log_p, log_q), (log_q, log_p))]
        both = np.flatnonzero((log_p > -np.inf) & (log_q > -np.inf))
        # The difference of the logarithms of u_0 and u_1 may cancel, so it is computed by log1p.
        step = math.log1p(self.keep * self.left / (1 - self.keep)) if self.keep < 1 else math.inf
        loss = np.array([math.copysign(step, i - j) if {i, j} == {0, 1} else ratio[i] - ratio[j] if i != j else 0.0
                         for i, j in possible])
        order = both[np.argsort(loss[both], kind="stable")]
        size = float(np.abs([*log_p[both], *(log for log in alone if log > -math.inf)]).max())
        slack, loss = ULP * (32 + 8 * size), loss[order]
        return LossAtoms(log_p[order], loss, alone[0], alone[1], -math.inf, slack, 8 * ULP * np.abs(loss))

    def describe(self) -> DominatingPairInfo:
        if self.bins == 1:
            return DominatingPairInfo(never, 0.0, attained=SINGLE)
        info = outcome_info(self._outcomes())
        if self.keep < 1 or self.shift == 0 or self.left == 0:
            return info
        # The finite losses are 0 and the logarithms of l r and 1/(l r).
        lattice = self._log_ratios[2] - self._log_ratios[1]
        return replace(info, losses=Losses(info.losses.listed, (lattice, lattice), on_lattice=True, unbounded=True))

    @classmethod
    def calibrate(
        cls, *, bins: int, eps: float, delta: float, keep: float = 1.0, share: float = 0.5, releases: int = 1, devices: int = 1
    ) -> Self:
        r"""Return the mechanism with the smallest shift whose upper delta at `eps` is at most `delta`, at this `share`.

        The likelihood ratios of the class are chosen as :math:`u_3 = e^{(1-\text{share})\varepsilon}` and :math:`u_2 =
        e^{-\text{share}\,\varepsilon}`. With b = `keep`, this determines `right` and `left`: :math:`r =
        b/(e^{(1-\text{share})\varepsilon} - 1 + b)` and :math:`l = (e^{-\text{share}\,\varepsilon} - 1 + b)/b`. If this l is
        not positive, l = 0 and s = 0 are used, for which delta is 0 at eps.

        Parameters
        ----------
        bins : int
            Number of bins, 2 to 2**53; the result does not depend on it.
        eps : float
            Target privacy loss in nats, in (0, 700].
        delta : float
            Target failure probability, in (0, 1). Above 1e-3 a UserWarning says what such a delta means.
        keep : float
            Probability with which the shuffler keeps a report, in [1e-12, 1].
        share : float
            Fraction of eps that determines `left`, in (0, 1). A larger share needs fewer dummy reports; the variance is smallest
            near 1/2.
        {releases}

        Returns
        -------
        GeometricDummies
            Its upper delta at `eps` is at most `delta`, and its epsilon(delta) at most `eps`; with a smaller shift, one of the two
            is not.

        {raises}
        InfeasibleError
            If a shift of 2**20 does not meet the target (a ValueError).

        Notes
        -----
        With :math:`x = l^s`, delta at eps is proportional to :math:`x(\alpha - \beta x)/(\gamma - \theta x)^2` with positive
        constants, which first increases and then decreases with s. So bisection finds the smallest shift.

        Examples
        --------
        >>> from shufflebounds import shuffle
        >>> shuffle.GeometricDummies.calibrate(bins=10, eps=2.0, delta=1e-6).shift
        14
        """
        if (releases, devices) != (1, 1):
            return one_of_releases(partial(cls._one_of_several, bins=bins, keep=keep, share=share), releases, devices, eps=eps,
                                   delta=delta)
        bins = _validate.integer("bins", bins, 2)
        eps, delta = _validate.target(eps, delta, open_eps=True, most_eps=LARGEST_EXPONENT)
        keep = _validate.real("keep", keep, 1e-12, 1)
        share = _validate.real("share", share, 0, 1, open_low=True, open_high=True)

        # The margin covers the rounding of the two ratios l and r, so that their losses sum to at most eps.
        loss = max(eps * (1 - COMPUTED_ERROR) - 8 * ULP, eps / 2)
        right = keep / (math.expm1(loss - share * loss) + keep)
        left = (math.exp(-share * loss) - (1 - keep)) / keep

        def fields(shift: int) -> tuple[int, int, float, float, float]:
            return bins, shift, max(left, 0.0) if shift else 0.0, right, keep

        with _validate.quiet():
            if meets(cls(*fields(0)), eps, delta):
                return cls(*fields(0))
            # If l is 0, the target is met without a shift; here l is positive.
            guess = min(TABLE_SIZE, math.ceil(math.log(delta) / math.log(left))) if 0 < left < 1 else 1
            shift = least_count(lambda shift: cls(*fields(shift)), eps, delta, low=1, high=TABLE_SIZE, guess=max(guess, 1))
            if shift is None:
                most = cls(*fields(TABLE_SIZE))
                raise _validate.InfeasibleError(f"delta={delta:g} cannot be met at eps={eps:g}: shift=2**20 gives "
                                                f"delta={most.delta(eps):.3g}, or eps={most.epsilon(delta):.3g}")
            return cls(*fields(shift))

    @classmethod
    def _one_of_several(cls, *, eps: float, delta: float, **fixed: Any) -> Self:
        """Return one of several releases for `parts_of_releases`; the other arguments are those of :meth:`calibrate`."""
        # The probabilities of infinite losses (empty bins) add up over the releases. They get half of delta, and the sum of the
        # finite losses gets the rest. If infinite losses got all of delta, 365 releases would need a standard deviation that is a
        # quarter larger.
        return cls.calibrate(eps=eps, delta=delta / 2, **fixed)

    @cached_property
    def _moments(self) -> tuple[float, float]:
        """The mean and the variance of Z."""
        below = np.arange(1.0, self.shift + 1)
        weight = self.left**below
        rest, norm = 1 - self.right, math.exp(self._log_norm)
        offset = (self.right / rest**2 - float(below @ weight)) / norm
        square = (self.right * (1 + self.right) / rest**3 + float(below**2 @ weight)) / norm
        return self.shift + offset, square - offset**2

    @property
    def dummies_per_bin(self) -> float:
        """Mean number E Z of dummy reports in a bin."""
        return self._moments[0]

    @property
    def variance(self) -> float:
        """Variance Var(Z)/b^2 of the estimate of an empty bin; each user in the bin adds (1 - b)/b to the variance.

        Here Z is the number of dummy reports in the bin, and b is `keep`.
        """
        return self._moments[1] / self.keep**2

    def messages_per_user(self, users: int) -> float:
        """Return the mean number of reports per user, including dummy reports.

        Parameters
        ----------
        {users}

        Returns
        -------
        float
            1 + d E Z/users.

        {raises: If `users` lies outside its range.}
        """
        return 1 + self.bins * self.dummies_per_bin / _validate.integer("users", users, 1)

    def _messages(self, values: NDArray[Any], source: np.random.Generator) -> NDArray[np.int64]:
        return values if self.keep == 1 else values[source.random(values.size) < self.keep]

    def _drawn(self, source: np.random.Generator) -> NDArray[np.int64]:
        """Return the numbers of dummy reports in all bins."""
        _validate.affordable("the numbers of dummy reports", self.bins)
        more = self.shift + source.geometric(1 - self.right, size=self.bins) - 1
        if not self._below:
            return np.asarray(more)
        # A geometric number modulo s has the distribution of Z below s.
        fewer = self.shift - 1 - (source.geometric(1 - self.left, size=self.bins) - 1) % self.shift
        share = self._below / math.exp(self._log_norm)
        return np.where(source.random(self.bins) < share, fewer, more)

    def dummies(self, rng: Any = None, *, number: int | None = None) -> NDArray[Any]:
        """Return the messages of the dummy reports of all bins, which are added once to those of all users.

        Parameters
        ----------
        {rng}
        number : None
            The number of dummy reports is drawn and cannot be chosen.

        Returns
        -------
        ndarray
            Messages in the form of :meth:`randomize`, sorted by bin.

        Raises
        ------
        ValueError
            If a number is given, or `rng` is no source of randomness.
        InfeasibleError
            If the messages would take more than a gigabyte (a ValueError).
        """
        if number is not None:
            raise ValueError(f"number={_validate.short_repr(number)} must be left out: the number of dummy reports is drawn, and "
                             "one party adds all of them")
        self._affordable(math.ceil(self.bins * self.dummies_per_bin), "the dummy reports", "call simulate")
        return np.repeat(np.arange(self.bins), self._drawn(_validate.generator(rng)))

    def _simulated(self, values: NDArray[Any], source: np.random.Generator) -> NDArray[np.int64]:
        held = self._added(values)
        return np.asarray((held if self.keep == 1 else source.binomial(held, self.keep)) + self._drawn(source))

    def _users_in(self, counts: NDArray[Any]) -> None:
        # Counts and messages do not determine the number of users, and the estimate does not depend on it.
        return None

    def _largest_count(self, messages: int) -> int:
        return _validate.MAX_COUNT

    def _read(self, messages: ArrayLike | None, counts: ArrayLike | None, users: int | None) -> tuple[NDArray[np.int64], int]:
        users_or_most = _validate.MAX_COUNT if users is None else users
        if messages is None or counts is not None:
            return super()._read(messages, counts, users_or_most)
        seen = self._checked_messages(messages)
        self._refuse_counts(seen, users)
        return super()._read(None, self._tally(seen), users_or_most)

    def _estimated(self, counts: NDArray[np.int64], users: int) -> FloatArray:
        return np.asarray((counts - self.dummies_per_bin) / self.keep)

    def _checked_truth(self, truth: Any) -> int | Histogram | None:
        if truth is None:
            if self.keep < 1:
                raise ValueError(f"truth=None: with keep={self.keep:g} the error grows with the number of users in a bin: pass "
                                 "their number as truth, or the numbers of users in all bins")
            return None
        if np.ndim(truth) == 0:
            held = _validate.integer("truth", truth, 0)
            return None if self.keep == 1 else held
        counts = _validate.counts("truth", truth, _validate.MAX_COUNT, self.bins)
        if self.keep == 1:
            return None
        totals, bins = np.unique(counts.astype(np.int64), return_counts=True)
        return Histogram(tuple(totals.tolist()), tuple(bins.tolist()))

    def _mean_square(self, truth: int | Histogram | None) -> float:
        held = float(np.average(truth.totals, weights=truth.bins)) if isinstance(truth, Histogram) else float(truth or 0)
        return self.variance + held * (1 - self.keep) / self.keep

    def _error(self, a: Fraction, truth: int | Histogram | None) -> Interval:
        if isinstance(truth, Histogram):
            sides = [self._error(a, held) for held in truth.totals]
            return Interval(max(low for low, _ in sides), max(high for _, high in sides))
        held, keep = truth or 0, Fraction(self.keep)
        center, width = Fraction(self.dummies_per_bin) + keep * held, keep * a
        if width < 0:
            return Interval(0.0, 0.0)
        above, below = math.floor(center + width) + 1, math.ceil(center - width) - 1
        return Interval(*np.minimum(0.0, np.logaddexp(self._count_tail(above, held, True), self._count_tail(below, held, False))))

    def _any_error(self, a: Fraction, truth: int | Histogram | None) -> Interval:
        if isinstance(truth, int):
            raise ValueError(f"truth={truth} with of='any' and keep={self.keep:g} must be the numbers of users in all bins")
        parts = [(None, self.bins)] if truth is None else list(zip(*truth))
        sides = [(self._error(a, held), bins) for held, bins in parts]
        low, high = (union_probability([(side[i], bins) for side, bins in sides]) for i in (0, 1))
        return Interval(low - 1e-13, min(0.0, high + 1e-13))

    def _count_law(self, users: int) -> CountLaw:
        return CountLaw(lambda y, held, upper: self._count_tail(y, held, upper).upper, self._scale(), users)

    def _count_tail(self, k: int, held: int, upper: bool) -> Interval:
        """Return bounds of log Pr[count >= k] if `upper`, otherwise of log Pr[count <= k], for a bin with `held` users."""
        if self.keep == 1 or held == 0:
            return self._dummy_tail(k - held, upper)
        reach, n, p = k - self.shift, float(held), self.keep
        log_r, logs, errors = math.log(self.right), [], [0.0]
        if self.shift and self.left:
            # The terms for fewer than s dummy reports are added one by one.
            j = np.arange(float(self.shift if upper else max(0, min(k + 1, self.shift))))
            value = binom_logsf(k - j - 1, n, p) if upper else binom_logcdf(k - j, n, p)
            logs.append(value + (self.shift - j) * math.log(self.left))
            errors.append(self.shift * -math.log(self.left))
        if upper and reach > 0:
            # The next two terms add up to the sum of r^i Pr[X >= reach - i] over i >= 0, where X ~ Bin(n, p).
            logs.append(np.array([binom_logsf(reach - 1.0, n, p)]) - math.log1p(-self.right))
            lift, chance = self._log_ratios[2], p / (p + (1 - p) * self.right)
            logs.append(np.array([reach * log_r + n * lift + binom_logcdf(reach - 1.0, n, chance)]) - math.log1p(-self.right))
            errors.append(reach * -log_r + n * (lift + 2))
        elif upper:
            logs.append(np.array([-math.log1p(-self.right)]))
        rest = -math.inf
        if not upper and reach >= 0:
            # The terms r^i Pr[X <= reach - i] decrease faster than r^i; the sum of the omitted ones is at most `rest`.
            terms = min(reach + 1, TABLE_SIZE, math.ceil(NEGLIGIBLE / -log_r) + 1)
            i = np.arange(float(terms))
            logs.append(i * log_r + binom_logcdf(reach - i, n, p))
            if terms <= reach:
                rest = terms * log_r - math.log1p(-self.right) + float(binom_logcdf(float(reach - terms), n, p)) + 1e-12
        if not logs:
            return Interval(-math.inf, -math.inf)
        each = np.concatenate(logs)
        value = float(np.logaddexp.reduce(each)) if each.size else -math.inf
        error = 2e-13 + ULP * (16 * max(errors) + 2 * each.size + 8 * (abs(value) if value > -math.inf else 0.0))
        log_k = self._log_norm
        return Interval(value - error - log_k, min(0.0, float(np.logaddexp(value + error, rest)) - log_k))

    def _dummy_tail(self, k: int, upper: bool) -> Interval:
        """Return bounds of log Pr[Z >= k] if `upper`, otherwise of log Pr[Z <= k]; all sums have positive terms."""
        s = self.shift
        if (k <= 0) if upper else (k < 0):
            return Interval(0.0, 0.0) if upper else Interval(-math.inf, -math.inf)
        if upper and k >= s:
            value = (k - s) * math.log(self.right) - math.log1p(-self.right)
        elif upper:
            value = math.log(self.left * self._geometric(self.left, s - k) + 1 / (1 - self.right))
        elif k >= s:
            value = math.log(self._below + self._geometric(self.right, k - s + 1))
        elif self.left == 0:
            return Interval(-math.inf, -math.inf)
        else:
            value = (s - k) * math.log(self.left) + math.log(self._geometric(self.left, k + 1))
        error = ULP * (32 + 8 * abs(value) + 4 * self._log_norm)
        return Interval(value - error - self._log_norm, min(0.0, value + error - self._log_norm))

    def _rounding(self, a: Fraction, truth: Any) -> float:
        largest = math.ceil(self.dummies_per_bin) + COUNTED
        return shift_rounding(self.dummies_per_bin, largest) if self.keep == 1 else 2 * ULP * largest / self.keep

    def _scale(self) -> float:
        return math.sqrt(self.variance) + 1
