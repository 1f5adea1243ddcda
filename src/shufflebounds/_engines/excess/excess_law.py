r"""Distribution of the privacy-amplification random variable :math:`X = (R_0 - e^\varepsilon R_1)/m` of a local randomizer.

:math:`R_x` is the output distribution of input x, :math:`R_0` and :math:`R_1` are those of the target user's two inputs, and m is a
measure on outputs that stands for another user. Define
:math:`\Phi_n(X) = \frac1n \mathbb{E}(X_1 + \cdots + X_n)_+` for independent copies of X under m. For any :math:`m \le \inf_x R_x`,
:math:`\Phi_n(X)` is an upper bound of the hockey-stick divergence of the shuffled messages. For :math:`m = R_{x^*}` it is the
hockey-stick divergence for the dataset in which all other users have the input x*.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shufflebounds._base.caches import cached_property, kept
from shufflebounds._base.limits import (
    COMPARED,
    FEW,
    FIRST_TAIL,
    LARGEST,
    LARGEST_EXPONENT,
    LOG_TINY,
    MANY,
    SAME_LOG,
    SEARCH_GAP,
    SQUARABLE,
    TINY,
)
from shufflebounds._base.types import ULP, FloatArray, Interval, IntervalArray, at_each, consistent
from shufflebounds._core import _deployments
from shufflebounds._engines.excess.chernoff import chernoff
from shufflebounds._engines.excess.evaluation import (
    BLUR,
    HEAVY,
    Effort,
    approximate_excess,
    excesses,
    log_gain,
    rounding,
    sums,
    without_negligible,
)
from shufflebounds._engines.excess.heavy_tails import few_enough
from shufflebounds._engines.excess.packed import log_deltas

__all__ = ["BLUR", "ExcessLaw", "LowerLaws", "PairLaws", "Randomizer", "is_randomizer", "log_phis", "packed", "quick"]

LowerLaws: TypeAlias = "tuple[tuple[str, ExcessLaw], ...]"


@dataclass(frozen=True, eq=False)
class ExcessLaw:
    r"""A discrete distribution of :math:`X = a - e^\varepsilon b`, the privacy-amplification random variable, for every eps.

    :math:`R_0` and :math:`R_1` are the output distributions of the target user's two inputs. m is a measure on outputs that stands
    for the other users: for a lower bound the output distribution of one input, for an upper bound a measure that is at most the
    output distribution of every input. An atom is a set of outputs with equal a and b:

    .. math:: a = R_0/m, \qquad b = R_1/m, \qquad X = b\,e^{\varepsilon}\,(e^{\ln a - \ln b - \varepsilon} - 1)

    Parameters
    ----------
    log_mass : array_like
        Logarithms of the masses under m, one for each atom.
    log_a, log_b : array_like
        Logarithms of a and b; -inf where :math:`R_0` or :math:`R_1` has no mass. At an atom where the privacy loss is the pure
        budget, log_a - log_b must be exactly the budget as a double: X is computed from this difference, without cancellation for
        eps close to the budget.
    log_rest : float
        Logarithm of the remaining probability, which is at X = 0; -inf if there is none. Its relative error must be as small as
        those of the masses: if the sum is positive only where nearly all other users have X = 0, delta is proportional to a power
        of this probability. It may be far below an ulp of 1, so never compute it as 1 minus the masses. If only bounds of it are
        known, pass the upper one for an upper bound and the lower one for a lower bound.
    log_cut, log_cut_b : float or array_like
        Logarithms of the masses A and B, under :math:`R_0` and under :math:`R_1`, of one or several sets of outputs that are not
        among the atoms: because m = 0 there, or because a tail is truncated. For each set, :math:`(A - e^\varepsilon B)_+` is added
        to the bound. For a lower bound pass only outputs that no other user can send (m = 0), which identify the target's message,
        and drop a truncated tail. Without `log_cut_b`, B = 0.

    Notes
    -----
    A density is discretized: its outputs are divided into intervals (cells). For a lower bound each cell becomes an atom with the
    means of a and b in the cell; a cell may be dropped only if X > 0 in it. For an upper bound the mass of each cell is split
    between the two ends of the cell, so that the mean stays the same.
    """

    log_mass: FloatArray = field(repr=False)
    log_a: FloatArray = field(repr=False)
    log_b: FloatArray = field(repr=False)
    log_rest: float
    log_cut: float | FloatArray = -np.inf
    log_cut_b: float | FloatArray = -np.inf

    def __post_init__(self) -> None:
        for name in ("log_mass", "log_a", "log_b", "log_cut", "log_cut_b"):
            array = np.array(getattr(self, name), dtype=np.float64, ndmin=1)
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        object.__setattr__(self, "log_rest", float(self.log_rest))
        if not self.log_mass.shape == self.log_a.shape == self.log_b.shape or self.log_mass.ndim != 1:
            raise ValueError(f"log_mass, log_a and log_b have shapes {self.log_mass.shape}, {self.log_a.shape} and "
                             f"{self.log_b.shape}: they must be 1-D and agree")
        total = float(np.exp(self.log_mass).sum()) + math.exp(self.log_rest)
        if not abs(total - 1) <= SAME_LOG:
            raise ValueError(f"log_rest={self.log_rest!r} and log_mass have the total mass {total:.17g}: it must be 1 within "
                             f"{SAME_LOG:g}; log_rest is the log of the mass at X = 0")

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        # Cached values are not pickled, because they follow from the fields.
        return type(self), (self.log_mass, self.log_a, self.log_b, self.log_rest, self.log_cut, self.log_cut_b)

    @classmethod
    def of(cls, r0: ArrayLike, r1: ArrayLike, base: ArrayLike, rest: float) -> ExcessLaw:
        """Return the distribution of X for outputs with masses r0 under R_0, r1 under R_1 and `base` under m.

        The logarithms are rounded; :meth:`widened` covers this rounding.

        Parameters
        ----------
        r0, r1 : array_like
            Masses of the outputs under the two inputs, 1-D.
        base : array_like
            Masses of m. Outputs with proportional masses need not be merged: they are merged when X is computed.
        rest : float
            1 minus the mass of m, computed without cancellation (see `log_rest` of the class).

        Returns
        -------
        ExcessLaw
            One atom for every output with m > 0; the outputs with m = 0 are in `log_cut` and `log_cut_b`.
        """
        both, under = np.array([r0, r1], dtype=np.float64), np.asarray(base, dtype=np.float64)
        kept = under > 0
        with np.errstate(divide="ignore"):
            log_m = np.log(under[kept])
            log_a, log_b = np.log(both[:, kept]) - log_m
            cuts = np.log(both[:, ~kept]) if not kept.all() else (-np.inf, -np.inf)
        return cls(log_m, log_a, log_b, math.log(rest) if rest > 0 else -math.inf, *cuts)

    def widened(self, *, upper: bool, error: float = 0.0) -> ExcessLaw:
        """Return the distribution with X increased or decreased by more than the rounding errors of a and b.

        Parameters
        ----------
        upper : bool
            Increase X, for an upper bound; otherwise decrease it.
        error : float
            Relative error of the probabilities of outputs, in addition to a few ulp.

        The distribution, valid if the given log a and log b have errors of at most ULP (2 + abs(log a) + abs(log b) + 2 abs(log
        mass)) + `error`.
        """
        logs = np.stack([self.log_a, self.log_b, self.log_mass])
        sizes = np.where(logs > -np.inf, np.abs(logs), 0.0)
        sign = 1 if upper else -1
        move = sign * (ULP * (2 + sizes[0] + sizes[1] + 2 * sizes[2]) + error)
        cut = sign * (ULP * (2 + np.abs(np.where(self.log_cut > -np.inf, self.log_cut, 0.0))) + error)
        rest = self.log_rest
        if upper and error and rest > -math.inf:
            # If the probabilities have relative errors of up to `error`, only the measure (1 - `error`) m is certainly below every
            # input's distribution. The mass `error` that this removes is added at X = 0.
            rest = float(np.logaddexp(rest, math.log(error)))
        return replace(self, log_a=self.log_a + move, log_b=self.log_b - move, log_rest=rest, log_cut=self.log_cut + cut,
                       log_cut_b=self.log_cut_b - cut)

    def revealing(self, log_mass: float) -> ExcessLaw:
        """Return the distribution with one more cut set: outputs of this log mass under R_0, and of none under R_1."""
        cuts = np.broadcast_arrays(self.log_cut, self.log_cut_b)
        return replace(self, log_cut=np.append(cuts[0], log_mass), log_cut_b=np.append(cuts[1], -np.inf))

    def thinned(self, share: float) -> ExcessLaw:
        """Return the distribution if every user participates with probability `share` and otherwise sends an empty message.

        The analyst sees the number of empty messages.

        Parameters
        ----------
        share : float
            In (0, 1].

        Returns
        -------
        ExcessLaw
            The masses times `share`, and an atom of mass 1 - share at X = 1 - e^eps: an empty message is equally likely for every
            input, so a = b = 1.
        """
        if share == 1:
            return self
        move = math.log(share)
        masses = np.append(self.log_mass + move, math.log1p(-share))
        return ExcessLaw(masses, np.append(self.log_a, 0.0), np.append(self.log_b, 0.0), self.log_rest + move,
                         self.log_cut + move, self.log_cut_b + move)

    def values(self, eps: float) -> FloatArray:
        """Return the values of X at one eps, with high relative accuracy even for eps close to a pure budget.

        Parameters
        ----------
        eps : float
            Privacy loss in nats.

        Returns
        -------
        ndarray
            One value for each atom, with a relative error of a few ulp in addition to the errors of the logarithms given.
        """
        return excesses(self.log_a, self.log_b, eps)

    @cached_property
    def _distinct(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The whole distribution as (log_mass, log_a, log_b), with atoms of equal a and b merged.

        The result includes the atom at X = 0, for which log_a = log_b = -inf.
        """
        masses = np.append(self.log_mass, self.log_rest)
        kept = masses > -np.inf
        masses, log_a, log_b = masses[kept], np.append(self.log_a, -np.inf)[kept], np.append(self.log_b, -np.inf)[kept]
        order = np.lexsort((log_b, log_a))
        log_a, log_b = log_a[order], log_b[order]
        first = np.append(True, (log_a[1:] != log_a[:-1]) | (log_b[1:] != log_b[:-1]))[: order.size]
        if first.all():
            return masses[order], log_a, log_b
        index = np.empty(order.size, dtype=np.intp)
        index[order] = np.cumsum(first) - 1
        log_mass = np.full(np.count_nonzero(first), -np.inf)
        np.logaddexp.at(log_mass, index, masses)
        return log_mass, log_a[first], log_b[first]

    @cached_property
    def _alone(self) -> _deployments.LawTable:
        """A set of this distribution alone, in the format of the kernel `_deployments`."""
        return packed([[self]])

    @cached_property
    def _slack(self) -> float:
        """A bound of the relative error of Phi_n(X) that comes from the rounding of the log masses, log a and log b."""
        return rounding(self.log_mass, self.log_a, self.log_b)

    @cached_property
    def pure_epsilon(self) -> float:
        """The largest privacy loss: X <= 0 for every eps at or above it. The value is inf if some output has no mass under R_1."""
        gains = (self.log_mass > -np.inf) & (self.log_a > -np.inf)
        cut = np.asarray(self.log_cut)
        lost = cut > -np.inf
        losses = np.append(self.log_a[gains] - self.log_b[gains], cut[lost] - np.broadcast_to(self.log_cut_b, cut.shape)[lost])
        return float(losses.max(initial=-np.inf))

    @cached_property
    def lost(self) -> float:
        """A lower bound of delta at every eps: the mass under R_0 of outputs that have no mass under R_1."""
        cut, other = np.broadcast_arrays(self.log_cut, self.log_cut_b)
        return float(np.exp(cut[other == -np.inf]).sum()) * (1 - 1e-9)

    def spread(self, eps: float) -> float:
        """Return the second moment of X, which ranks distributions before their Phi is evaluated.

        Of two distributions with equal means, the one with the larger second moment usually has the larger Phi.

        Parameters
        ----------
        eps : float
            As for :meth:`values`.

        Returns
        -------
        float
            The second moment; inf if it overflows.
        """
        seen = self.log_mass > -np.inf
        with np.errstate(over="ignore"):
            # Square sqrt(mass) * value, because tiny masses could underflow before they are multiplied by a squared value.
            return float(((np.exp(0.5 * self.log_mass[seen]) * self.values(eps)[seen]) ** 2).sum())

    def log_phi(self, eps: ArrayLike, users: float, effort: Effort = Effort.FINE, selected: bool | None = None) -> IntervalArray:
        r"""Return bounds of :math:`\log(\Phi_n(X) + \text{the contribution of the cut sets})` at each eps.

        Parameters
        ----------
        eps : array_like
            Privacy losses in nats, 1-D.
        users : float
            n, a whole number in 1..2**53.
        effort : Effort
            How close the bounds are.
        selected : bool, optional
            If True (upper) or False (lower), the other bound may be trivial, which saves time.

        Returns
        -------
        (ndarray, ndarray)
            Lower and upper bounds. Their gap is about the gap that `effort` requests, or 1e-12 if few outcomes are possible; see
            the kernel ``_excess``. More than 1024 atoms are first merged to at most 1024 values at each eps, which adds about
            1e-4 to the gap.
        """
        points = np.atleast_1d(np.asarray(eps, dtype=np.float64))
        if points.size == 1 and self._has_cut and (alone := self._cut_alone(float(points[0]), users)) is not None:
            return IntervalArray(np.array([alone.lower]), np.array([alone.upper]))
        if effort is Effort.SAMPLED and quick([self], users):
            return log_phis([self], self._alone, points, users, effort, lambda left: at_each(
                lambda e: self._evaluated(e, users, selected, effort), left))
        if self.expensive or effort is not Effort.FINE:
            return at_each(lambda e: self._evaluated(e, users, selected, effort), points)
        bounds = log_deltas(self._alone, np.zeros(points.size, dtype=np.intp), np.full(points.size, float(users)), points)
        for i in np.flatnonzero(bounds.upper > bounds.lower + 2 * SEARCH_GAP).tolist():
            # The gap of the kernel is large for few users, and if the sum depends on a few values. Other methods then have smaller
            # gaps.
            lower, upper = self._evaluated(float(points[i]), users, selected)
            bounds.lower[i], bounds.upper[i] = max(bounds.lower[i], lower), min(bounds.upper[i], upper)
        # The kernel computes with masses of cut sets, not with their logarithms. Where the masses underflow, their contribution is
        # added here.
        gains = np.array([self._log_gain(e) for e in points.tolist()]) if self._has_cut else np.full(points.size, -np.inf)
        lost = np.flatnonzero((gains > -np.inf) & (gains < -LARGEST_EXPONENT))
        for side in bounds:
            side[lost] = np.logaddexp(side[lost], gains[lost])
        return consistent(bounds, "log Phi at eps={!r}", points)

    def _cut_alone(self, eps: float, users: float) -> Interval | None:
        r"""Return both bounds if Phi of the atoms is below e^-40 times the contribution of the cut sets, otherwise None.

        Chernoff's bound :math:`E[S_+] \le E[e^{tS}]/(e t)`, with S the sum of n copies of X, decides whether this is so. This saves
        a kernel call, which may take half a second at such an eps.
        """
        gain = self._log_gain(eps)
        log_mass, log_a, log_b = self._distinct
        if not gain > -math.inf or not log_mass.size:
            return None
        values, mass = excesses(log_a, log_b, eps), np.exp(log_mass)
        largest = float(np.abs(values).max())
        # Larger values are not squared, because their squares could overflow.
        mean = float(mass @ values) if largest < 1e100 else 0.0
        if not mean < 0:
            return None
        # The candidates for the t of Chernoff's bound are multiples of the best t for a normal sum; smaller t are better if few
        # outcomes have large X. Every t gives a valid bound.
        exponents = -mean / float(mass @ values**2) * np.array([0.001, 0.004, 0.015, 0.06, 0.25, 0.5, 0.7, 1.0, 1.4, 2.0])
        moments = log_mass + exponents[:, None] * values
        top = moments.max(axis=1)
        moments = top + np.log(np.exp(moments - top[:, None]).sum(axis=1))
        moments += self._slack + 1e-13 * (1 + exponents * largest)
        if not float((users * moments - np.log(exponents)).min()) < gain - 40:
            return None
        slack = max(self._slack, 32 * ULP * abs(gain)) + 8 * ULP
        return Interval(gain - slack, gain + slack)

    def log_phi_side(self, eps: float, users: float, *, upper: bool, effort: Effort = Effort.FINE) -> float:
        """Return one bound of :meth:`log_phi` at one eps; the other bound is not computed if this saves time.

        Parameters
        ----------
        eps, users : float
            As for :meth:`log_phi`.
        upper : bool
            Return the upper bound; otherwise the lower bound.
        effort : Effort
            As for :meth:`log_phi`.

        Returns
        -------
        float
            The bound.
        """
        return float(self.log_phi([eps], users, effort, upper)[upper][0])

    def rough_log_phi(self, eps: float, users: float) -> Interval:
        """Return both bounds of :meth:`log_phi` at one eps with a larger gap in less time, to compare distributions.

        Parameters
        ----------
        eps, users : float
            As for :meth:`log_phi`.

        Returns
        -------
        Interval
            Bounds with a gap of about 1e-5.
        """
        return self._evaluated(eps, users, effort=Effort.SAMPLED if self.adds_few(users) else Effort.ROUGH)

    def most_log_phi(self, eps: float, users: float) -> float:
        """Return an upper bound of :meth:`log_phi` in less than a millisecond, to skip distributions without the largest Phi.

        Parameters
        ----------
        eps, users : float
            As for :meth:`log_phi`.

        Returns
        -------
        float
            The smallest of n E X_+, of Chernoff's bound, and of a bound by the theorem of Berry and Esseen; inf if values overflow.
            The bound exceeds log Phi by less than 0.3 for light tails and many users, otherwise by up to about 2, and by more for
            heavy tails.
        """
        if not self._has_light and max(self._largest[0], self._largest[1] + eps) < math.log(SQUARABLE):
            return self._alone.near(users, eps, True)
        log_mass, log_a, log_b = self._distinct
        values = excesses(log_a, log_b, eps)
        if not float(np.abs(values).max(initial=0.0)) < LARGEST:
            return math.inf
        bound = chernoff(values, log_mass, users)
        return self._with_cut(Interval(bound, bound), self._slack, eps, users).upper

    def approximate_log_phi(self, eps: float, users: float, parted: bool = False) -> float:
        """Return an approximation of :meth:`log_phi` in less than a millisecond, for searches for eps.

        Parameters
        ----------
        eps, users : float
            As for :meth:`log_phi`.
        parted : bool
            Whether to treat the largest values separately even if no value is above HEAVY.

        Returns
        -------
        float
            For 100 users or more, the error is below 0.1 for light tails, and most often below 1 for heavy tails. For fewer users
            the approximation of Phi may be too large by orders of magnitude, or, with `parted`, too small.
        """
        log_mass, log_a, log_b = self._distinct
        rough = -math.inf
        if not parted and not self.expensive and eps < self._moderate:
            return self._alone.near(users, eps)
        if log_mass.size:
            values = excesses(log_a, log_b, eps)
            rough = approximate_excess(values, log_mass, users, parted or float(np.abs(values).max()) > HEAVY)
        # Where values overflow, return inf, so that the distribution is evaluated as a candidate for the largest.
        if not rough < math.inf:
            return math.inf
        return self._with_cut(Interval(rough, rough), 0.0, eps, users).upper

    @kept(MANY)
    def _evaluated(self, eps: float, users: float, selected: bool | None = None, effort: Effort = Effort.FINE) -> Interval:
        """Return both bounds at one eps; if `selected` is True (upper) or False (lower), the other bound may be trivial.

        Results are cached, because searches evaluate the same eps again for the other bound, and (P, Q) and (Q, P) share samples.
        """
        log_mass, log_a, log_b = self._distinct
        lower = upper = -math.inf
        slack = self._slack
        if log_mass.size:
            values = excesses(log_a, log_b, eps)
            if not float(values.max()) < math.inf:
                # A value above e^709 has a mass below e^-709, which is a subnormal double, so that not even E X_+ is known.
                lower, upper = -math.inf, math.inf
            elif self._has_light or float(np.abs(values).max()) > HEAVY:
                lower, upper, kept = without_negligible(values, log_mass, users, selected, effort)
                slack = rounding(log_mass[kept], log_a[kept], log_b[kept])
            else:
                lower, upper = sums(values, log_mass, users, selected, effort)
        return self._with_cut(Interval(lower, upper), slack, eps, users)

    def _log_gain(self, eps: float) -> float:
        """Return the log of the contribution of the cut sets."""
        return log_gain(self.log_cut, self.log_cut_b, eps)

    def _with_cut(self, log_excess: Interval, slack: float, eps: float, users: float) -> Interval:
        """Return bounds of log Phi, where Phi is E S_+/n of the atoms plus the contribution of the cut sets.

        `slack` bounds the relative error of E S_+.
        """
        lower = log_excess.lower - math.log(users) * (1 + 4 * ULP)
        upper = log_excess.upper - math.log(users) * (1 - 4 * ULP)
        if self._has_cut:
            gain = self._log_gain(eps)
            if gain > -math.inf:
                lower, upper = (float(np.logaddexp(at, gain + way * 8 * ULP)) for at, way in ((lower, -1), (upper, 1)))
        for at in (lower, upper):
            if math.isfinite(at):
                slack = max(slack, 32 * ULP * abs(at))
        return Interval(lower - slack, upper + slack)

    @cached_property
    def expensive(self) -> bool:
        """Whether the atoms are simplified before the kernel call: more than 1024 atoms, subnormal masses or very large values.

        The gap may then depend on eps irregularly, so a search cannot assume smooth bounds.
        """
        return self.heavy or self._distinct[0].size > MANY or self._has_light

    def adds_few(self, users: float) -> bool:
        """Whether `sum_of_few` takes less time than the kernel: for few users, and too many atoms for the kernel to enumerate."""
        size = self._distinct[0].size
        if not few_enough(users) or size <= FEW:
            return False
        # The kernel enumerates up to 2e5 outcomes. If there are more atoms, the kernel integrates, which takes 20 to 200 ms for
        # 20 atoms or more.
        return size > COMPARED or (size > 2 * FEW and math.comb(size + int(users), int(users)) > 2e5)

    def one_decides(self, users: float) -> bool:
        """Whether one value of a density may dominate the sum, because it exceeds 8 standard deviations of the sum at eps = 0."""
        if self._distinct[0].size < COMPARED:
            return False
        # If one value may dominate the sum, a normal approximation is far from Phi, even if no value is above HEAVY.
        return 2 * max(self._largest) > math.log(64 * users * max(self.spread(0.0), TINY))

    def effort(self, users: float) -> float:
        """Return a bound of the run time of one value, in seconds.

        The number of samples of delta depends on this bound. To make results the same on every machine, the bound is computed from
        sizes by a formula that was fitted to the times of one machine.
        """
        size = self._distinct[0].size
        if self.lost > 0:
            # In most cases `_cut_alone` returns the bounds.
            return 2.5e-4
        if size > MANY:
            return 0.05
        if self.adds_few(users):
            return size * min(users, 10) * 6e-6
        if not self.heavy:
            return 4e-4 + size * 1e-5
        return (0.01 if users <= MANY and not few_enough(users) else 0.0) + 4e-3 + size * 2.5e-5

    @cached_property
    def _largest(self) -> tuple[float, float]:
        """The largest log a and the largest log b."""
        return float(self.log_a.max(initial=-np.inf)), float(self.log_b.max(initial=-np.inf))

    @cached_property
    def _moderate(self) -> float:
        """The eps up to which no value of X is below -HEAVY."""
        return math.log(HEAVY) - self._largest[1]

    @cached_property
    def heavy(self) -> bool:
        """Whether some a or b of the atoms exceeds HEAVY."""
        return max(self._largest) > math.log(HEAVY)

    @cached_property
    def _has_light(self) -> bool:
        """Whether some masses of atoms are below TINY."""
        return bool(self.log_mass.min(initial=0.0, where=self.log_mass > -np.inf) < LOG_TINY)

    @cached_property
    def _has_cut(self) -> bool:
        return bool(np.any(np.asarray(self.log_cut) > -np.inf))


class PairLaws:
    """The distributions of X for one ordered pair of inputs of the target user.

    Parameters
    ----------
    inputs : str
        The pair in words, such as "inputs 0 and 1".
    upper : ExcessLaw
        X for a measure m that is at most the output distribution of every input.
    lower : tuple of (str, ExcessLaw), or a function that returns it
        X for m the output distribution of one input x* (or of a mixture of inputs), each with a description of the other users'
        inputs, such as "every other user has input 2". Exchanging a and b gives the distributions of the reversed pair, except that
        log a and log b may differ by 2**-42 for rounding. A function is called when the attribute is first used.
    symmetric : bool
        Whether the reversed pair has the same distributions, and is therefore not listed.
    attained : bool
        Whether `upper`, up to rounding, is the first distribution of `lower`, so that one dataset is the worst at every eps.
    """

    def __init__(self, inputs: str, upper: ExcessLaw, lower: LowerLaws | Callable[[], LowerLaws] = (), symmetric: bool = False,
                 attained: bool = False) -> None:
        self.inputs, self.upper, self.symmetric, self.attained = inputs, upper, symmetric, attained
        self._lower = lower

    @property
    def deferred(self) -> bool:
        """Whether the distributions of X for lower bounds are made when they are first used."""
        return callable(self._lower)

    def thinned(self, share: float) -> PairLaws:
        """Return the distributions of X if every user participates with probability `share`; see :meth:`ExcessLaw.thinned`."""
        if share == 1:
            return self
        return PairLaws(self.inputs, self.upper.thinned(share),
                        lambda: tuple((text, law.thinned(share)) for text, law in self.lower), self.symmetric, self.attained)

    @cached_property
    def lower(self) -> LowerLaws:
        """The distributions of X for lower bounds, each with a description of the other users' inputs."""
        return self._lower() if callable(self._lower) else self._lower


class Randomizer(Protocol):
    """A local randomizer that provides the distributions of X, the privacy-amplification random variable."""

    def excess_laws(self, cells: int = 800, log_cut: float = FIRST_TAIL) -> tuple[PairLaws, ...]:
        """Return the distributions of X for the ordered pairs of inputs, up to symmetry; see ``excess_laws`` of the mechanisms."""
        ...


def is_randomizer(value: Any) -> TypeGuard[Randomizer]:
    """Return whether the value is a randomizer. A class of randomizers is not itself a randomizer.

    `isinstance` with a protocol would take 15 us, a tenth of the run time of one answer for few outputs.
    """
    return callable(getattr(value, "excess_laws", None)) and not isinstance(value, type)


def quick(laws: Sequence[ExcessLaw], users: float) -> bool:
    """Return whether the kernel `_deployments` alone usually gives close bounds of Phi for these distributions."""
    return not any(law.expensive or law._has_cut or law.adds_few(users) or law.one_decides(users) for law in laws)


def log_phis(laws: Sequence[ExcessLaw], together: _deployments.LawTable, eps: FloatArray, users: float, effort: Effort,
             otherwise: Callable[[FloatArray], IntervalArray]) -> IntervalArray:
    """Return bounds of the largest log Phi_n(X) at each eps by one kernel call, or by `otherwise` where the gap is large.

    `together` are the distributions in the format of the kernel.
    """
    (rtol, work), few = effort.value, few_enough(users) and effort is Effort.SAMPLED
    # For few users the kernel either reaches rtol with little work, or takes longer than `close_sum`, whose gap is smaller.
    bounds = log_deltas(together, np.zeros(eps.size, np.intp), np.full(eps.size, float(users)), eps, rtol,
                        work / 1024 if few else work)
    left = bounds.upper > bounds.lower + (10 * rtol if few else 2 * SEARCH_GAP)
    left |= eps >= min(law._moderate for law in laws)
    if left.any():
        bounds.lower[left], bounds.upper[left] = otherwise(eps[left])
    return bounds


def packed(sets: Sequence[Sequence[ExcessLaw]]) -> _deployments.LawTable:
    """Return sets of distributions in the format that the kernel reads."""
    # The distribution with the largest second moment comes first. It is likely to have the largest Phi_n(X), so that the kernel can
    # skip the others.
    ordered = [law for laws in sets for law in (sorted(laws, key=lambda law: -law.spread(0.0)) if len(laws) > 1 else laws)]
    atoms = [law._distinct for law in ordered]
    cuts = [np.broadcast_arrays(law.log_cut, law.log_cut_b) for law in ordered]

    def joined(parts: Sequence[FloatArray]) -> FloatArray:
        # One unused element is appended, so that an array without entries has a valid address.
        return np.concatenate([*parts, [0.0]])

    def ends(sizes: list[int]) -> NDArray[np.intp]:
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)

    log_mass, log_a, log_b = (joined([law[i] for law in atoms]) for i in range(3))
    log_cut, log_cut_b = (joined([law[i] for law in cuts]) for i in range(2))
    slack, pure = np.array([law._slack for law in ordered]), np.array([law.pure_epsilon for law in ordered])
    return _deployments.LawTable(log_mass, log_a, log_b, ends([law[0].size for law in atoms]),
                             log_cut, log_cut_b, ends([law[0].size for law in cuts]),
                             slack, pure, ends([len(laws) for laws in sets]))
