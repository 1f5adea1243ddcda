r"""Laws of the excess :math:`X = (R_0 - e^\varepsilon R_1)/m`: what a randomizer hands over to be shuffled.

:math:`R_0, R_1` are the output laws of the two inputs between which the target is hidden, m a measure on outputs. Under any
:math:`m \le \inf_x R_x` the functional :math:`\Phi_n(X) = \frac1n \mathbb{E}(X_1 + \cdots + X_n)_+` bounds the hockey stick of the
shuffled messages from above; under :math:`m = R_{x^*}` it is the hockey stick where all others hold x*.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from shufflebounds._cached import cached_property
from shufflebounds._core import _deployments
from shufflebounds._types import ULP, FloatArray, Interval, IntervalArray
from shufflebounds.composing.kept import Kept
from shufflebounds.shuffle._compiled_laws import log_deltas, packed
from shufflebounds.shuffle._excess import HEAVY, MANY, NORMAL, excesses, rounding, sums, without_negligible

__all__ = ["ExcessLaw", "PairLaws", "Randomizer"]

_KEPT = 256

_HEAVIEST = math.log(1e8)


BLUR = 2.0**-42
"""Shift of the heights a and b that makes up for the rounding of masses, 1e-14: m may be taken so much smaller."""


@dataclass(frozen=True, eq=False)
class ExcessLaw:
    r"""The law of :math:`X = a - e^\varepsilon b` in atoms, for every eps at once.

    .. math:: a = R_0/m, \qquad b = R_1/m, \qquad X = b\,e^{\varepsilon}\,(e^{\ln a - \ln b - \varepsilon} - 1)

    Parameters
    ----------
    log_mass : array_like
        Logarithms of the masses under m, one an atom; their total is at most 1 and the rest of the mass sits at X = 0.
    log_a, log_b : array_like
        Logarithms of a and b; -inf where :math:`R_0` or :math:`R_1` has no mass. At an atom that attains a pure budget the
        difference log_a - log_b must be that budget, as a double: X is formed from it, and does not cancel next to the budget.
    log_cut, log_cut_b : float or array_like
        Logarithms of :math:`\int R_0` and :math:`\int R_1` over what the atoms leave out, m = 0 or a tail cut on purpose, one or
        several parts: :math:`\int (R_0 - e^\varepsilon R_1)_+` over each is added. In a lower law only outputs that no other user
        can send (m = 0), which give the target away; a tail cut on purpose is left out there. Without `log_cut_b` all of
        :math:`R_0` counts.

    Notes
    -----
    A density is cut into cells. A lower law has the means of a and b over each cell, and leaves a cell out only where X may be
    positive in it. An upper law spreads each cell to its two ends, with the same mass and mean: :meth:`cells`.
    """

    log_mass: FloatArray = field(repr=False)
    log_a: FloatArray = field(repr=False)
    log_b: FloatArray = field(repr=False)
    log_cut: float | FloatArray = -np.inf
    log_cut_b: float | FloatArray = -np.inf

    def __post_init__(self) -> None:
        for name in ("log_mass", "log_a", "log_b", "log_cut", "log_cut_b"):
            array = np.array(getattr(self, name), dtype=np.float64, ndmin=1)
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        if not self.log_mass.shape == self.log_a.shape == self.log_b.shape or self.log_mass.ndim != 1:
            raise ValueError(f"log_mass, log_a and log_b have shapes {self.log_mass.shape}, {self.log_a.shape} and "
                             f"{self.log_b.shape}: they must be 1-D and agree")

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        # what is computed from the fields is not pickled
        return type(self), (self.log_mass, self.log_a, self.log_b, self.log_cut, self.log_cut_b)

    @classmethod
    def of(cls, r0: ArrayLike, r1: ArrayLike, base: ArrayLike) -> ExcessLaw:
        """Return the law of two columns of masses under a third; outputs where the base is 0 are cut.

        The logarithms are those of the numbers given, to rounding: :meth:`widened` takes that outward.

        Parameters
        ----------
        r0, r1 : array_like
            Masses of the outputs under the two inputs, 1-D.
        base : array_like
            Masses of m. Proportional outputs may stay apart: they are merged where X is formed.

        Returns
        -------
        ExcessLaw
            With one atom for every output where m is positive.
        """
        first, second, under = (np.asarray(x, dtype=np.float64) for x in (r0, r1, base))
        kept = under > 0
        with np.errstate(divide="ignore"):
            log_m = np.log(under[kept])
            laws = [np.log(r[kept]) - log_m for r in (first, second)]
            cuts = [np.log(r[~kept]) if not kept.all() else -np.inf for r in (first, second)]
        return cls(log_m, *laws, *cuts)

    @classmethod
    def cells(cls, mass: ArrayLike, mean: ArrayLike, low: ArrayLike, high: ArrayLike, log_cut: float = -np.inf) -> ExcessLaw:
        """Return an upper law of a density: the mass of every cell spread to its two ends, its mean kept.

        Parameters
        ----------
        mass : array_like
            Masses of the cells under m, 1-D.
        mean, low, high : array_like
            (a, b) over the cells, of shape (2, cells): the mean under m, and the two ends. Within a cell (a, b) must run on the
            straight line between the ends, as where a or b is constant.
        log_cut : float
            As for the class.

        Returns
        -------
        ExcessLaw
            With two atoms a cell, larger in the convex order than the density, at every eps.
        """
        m, middle, start, end = (np.asarray(x, dtype=np.float64) for x in (mass, mean, low, high))
        along = end - start
        coordinate = np.argmax(np.abs(along), axis=0)[None, :]
        length = np.take_along_axis(along, coordinate, 0)[0]
        part = np.take_along_axis(middle - start, coordinate, 0)[0]
        share = np.clip(np.divide(part, length, out=np.full(m.shape, 0.5), where=length != 0), 0, 1)
        with np.errstate(divide="ignore"):
            log_mass = np.log(np.concatenate([m * (1 - share), m * share]))
            log_a, log_b = np.log(np.concatenate([start, end], axis=1))
        kept = log_mass > -np.inf
        return cls(log_mass[kept], log_a[kept], log_b[kept], log_cut)

    def filled(self, rest: float) -> ExcessLaw:
        """Return the law with the mass at X = 0 as an atom, for where it is known better than as 1 minus the other masses.

        Parameters
        ----------
        rest : float
            That mass, in [0, 1].

        Returns
        -------
        ExcessLaw
            The same law.
        """
        if not rest > 0:
            return self
        log_a, log_b = np.append(self.log_a, -np.inf), np.append(self.log_b, -np.inf)
        return ExcessLaw(np.append(self.log_mass, math.log(rest)), log_a, log_b, self.log_cut, self.log_cut_b)

    def widened(self, *, upper: bool) -> ExcessLaw:
        """Return a law with X moved up or down by more than the rounding of a and b.

        Parameters
        ----------
        upper : bool
            Up, for an upper law.

        Returns
        -------
        ExcessLaw
            With a and b in error by some units in the last place of their logarithms and of that of their mass.
        """
        sizes = [np.where(x > -np.inf, np.abs(x), 0.0) for x in (self.log_a, self.log_b, self.log_mass)]
        sign = 1 if upper else -1
        move = sign * ULP * (2 + sizes[0] + sizes[1] + 2 * sizes[2])
        cut = sign * ULP * (2 + np.abs(np.where(self.log_cut > -np.inf, self.log_cut, 0.0)))
        return ExcessLaw(self.log_mass, self.log_a + move, self.log_b - move, self.log_cut + cut, self.log_cut_b - cut)

    def thinned(self, share: float) -> ExcessLaw:
        """Return the law where every user takes part with chance `share` and otherwise sends nothing, which is seen.

        Parameters
        ----------
        share : float
            In (0, 1].

        Returns
        -------
        ExcessLaw
            The masses times `share`, and the rest of the mass at 1 - e^eps: no message has the same chance under every input.
        """
        if share == 1:
            return self
        move = np.log(share)
        rest = 1.0 - math.fsum(np.exp(self.log_mass))
        cuts = (self.log_cut + move, self.log_cut_b + move)
        masses = np.append(self.log_mass + move, np.log1p(-share))
        law = ExcessLaw(masses, np.append(self.log_a, 0.0), np.append(self.log_b, 0.0), *cuts)
        # where few take part, the mass at X = 0 may be less than the rounding of the total
        return law.filled(share * rest if rest > 8 * ULP else 0.0)

    def values(self, eps: float) -> FloatArray:
        """Return X at one eps, relatively accurate next to a pure budget too.

        Parameters
        ----------
        eps : float
            Privacy loss in nats.

        Returns
        -------
        ndarray
            One value an atom; a few ulp less accurate than the logarithms given.
        """
        return excesses(self.log_a, self.log_b, eps)

    @cached_property
    def _distinct(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The atoms with those of equal a and b as one, their masses added."""
        kept = self.log_mass > -np.inf
        places, index = np.unique(np.stack([self.log_a[kept], self.log_b[kept]]), axis=1, return_inverse=True)
        log_mass = np.full(places.shape[1], -np.inf)
        np.logaddexp.at(log_mass, index.ravel(), self.log_mass[kept])
        return log_mass, places[0], places[1]

    @cached_property
    def _alone(self) -> _deployments.Laws:
        """The law as the kernel takes it."""
        return packed([[self]])

    @cached_property
    def _slack(self) -> float:
        """Return the relative error of the kernel that comes from masses and values known by their logarithms, far from 1."""
        return rounding(self.log_mass, self.log_a, self.log_b)

    @cached_property
    def pure_epsilon(self) -> float:
        """The least eps from which on nothing can be gained, inf where some output has no mass under the second law."""
        gains = (self.log_mass > -np.inf) & (self.log_a > -np.inf)
        cut = np.asarray(self.log_cut)
        lost = cut > -np.inf
        losses = np.append(self.log_a[gains] - self.log_b[gains], cut[lost] - np.broadcast_to(self.log_cut_b, cut.shape)[lost])
        return float(losses.max(initial=-np.inf))

    @cached_property
    def lost(self) -> float:
        """A bound below what is gained at any eps: the mass of cuts that cannot come from the second law."""
        cut, other = np.broadcast_arrays(self.log_cut, self.log_cut_b)
        return float(np.exp(cut[other == -np.inf]).sum()) * (1 - 1e-9)

    def spread(self, eps: float) -> float:
        """Return the second moment of X. Of two laws of equal mean the one with the larger moment mostly has the larger excess.

        Parameters
        ----------
        eps : float
            As for :meth:`values`.

        Returns
        -------
        float
            inf where it leaves the doubles.
        """
        with np.errstate(over="ignore"):
            return float((np.exp(self.log_mass) * self.values(eps) ** 2).sum())

    def log_phi(self, eps: ArrayLike, users: float) -> IntervalArray:
        r"""Bounds of :math:`\log \Phi_n(X)` at each eps, the cut added.

        Parameters
        ----------
        eps : array_like
            Privacy losses in nats, 1-D.
        users : float
            n, a whole number in 1..2**53.

        Returns
        -------
        (ndarray, ndarray)
            Lower and upper bounds, some 2e-7 apart, 1e-12 where few outcomes are possible; see the kernel ``_excess``. Laws of more
            than a thousand atoms are gathered to at most 1024 values at each eps, which adds some 1e-4.
        """
        points = np.atleast_1d(np.asarray(eps, dtype=np.float64))
        if self.expensive:
            sides = [self._log_phi(e, users) for e in points.tolist()]
            return IntervalArray(np.array([low for low, _ in sides]), np.array([high for _, high in sides]))
        return log_deltas(self._alone, np.zeros(points.size, dtype=np.intp), np.full(points.size, float(users)), points)

    def log_phi_side(self, eps: float, users: float, *, upper: bool) -> float:
        """Return one of the two bounds at one eps, without the work that the other takes alone.

        Parameters
        ----------
        eps, users : float
            As for :meth:`log_phi`.
        upper : bool
            Which one.

        Returns
        -------
        float
            What :meth:`log_phi` has on this side.
        """
        if self.expensive:
            return self._log_phi(eps, users, upper)[upper]
        return float(self.log_phi([eps], users)[upper][0])

    def rough_log_phi(self, eps: float, users: float) -> Interval:
        """Return both bounds at one eps, farther apart and in less time, to choose among laws.

        Parameters
        ----------
        eps, users : float
            As for :meth:`log_phi`.

        Returns
        -------
        Between
            Some 1e-5 apart.
        """
        return self._log_phi(eps, users, rough=True)

    def _log_phi(self, eps: float, users: float, asked: bool | None = None, *, rough: bool = False) -> Interval:
        """Return both bounds; where one is asked for, the other may be anything."""
        if self._heavy and not rough:
            # searches ask for the same eps again, for both sides
            side = asked if self._distinct[0].size > MANY else None
            return self._known.of((eps, users, side), lambda: self._formed(eps, users, side))
        return self._formed(eps, users, asked, rough=rough)

    def _formed(self, eps: float, users: float, asked: bool | None = None, *, rough: bool = False) -> Interval:
        effort = (1e-5, 2e6) if rough else (2e-7, 6e7)
        log_mass, log_a, log_b = self._distinct
        lower = upper = -math.inf
        slack = self._slack
        if log_mass.size:
            values = excesses(log_a, log_b, eps)
            if self._has_light or float(np.abs(values).max()) > HEAVY:
                lower, upper, kept = without_negligible(values, log_mass, users, asked, effort)
                slack = rounding(log_mass[kept], log_a[kept], log_b[kept])
            else:
                lower, upper = sums(values, log_mass, users, asked, effort)
        lower -= math.log(users) * (1 + 4 * ULP)
        upper -= math.log(users) * (1 - 4 * ULP)
        if self._has_cut:
            gain = float(np.maximum(excesses(np.asarray(self.log_cut), np.asarray(self.log_cut_b), eps), 0.0).sum())
            if gain > 0:
                log_gain = math.log(gain)
                lower, upper = (float(np.logaddexp(at, log_gain + way * 8 * ULP)) for at, way in ((lower, -1), (upper, 1)))
        size = max((abs(at) for at in (lower, upper) if at > -math.inf), default=0.0)
        slack = max(slack, 32 * ULP * size)
        return Interval(lower - slack, upper + slack)

    @cached_property
    def expensive(self) -> bool:
        """Whether the kernel is not given the law as it is: very many atoms, masses that are no doubles, or very large values.

        Sides of large values may be far apart at some eps and close at others: no search may stride there.
        """
        return self._heavy or self._distinct[0].size > MANY or self._has_light

    @cached_property
    def _heavy(self) -> bool:
        return bool(max(self.log_a.max(initial=-np.inf), self.log_b.max(initial=-np.inf)) > _HEAVIEST)

    @cached_property
    def _known(self) -> Kept[tuple[float, float, bool | None], Interval]:
        """What was formed of a heavy law."""
        return Kept(_KEPT)

    @cached_property
    def _has_light(self) -> bool:
        """Whether there are masses that are no doubles of full precision."""
        return bool(self._distinct[0].min(initial=0.0) < NORMAL)

    @cached_property
    def _has_cut(self) -> bool:
        return bool(np.any(np.asarray(self.log_cut) > -np.inf))


@dataclass(frozen=True, eq=False)
class PairLaws:
    """The laws of X for one ordered pair of inputs of the target.

    Parameters
    ----------
    inputs : str
        The pair in words, such as "inputs 0 and 1".
    upper : ExcessLaw
        Under some m that is nowhere above the output law of any input.
    lower : tuple of (str, ExcessLaw)
        Laws under the output law of one input x* (or a mixture), each with the data of the others in words, such as
        "all others hold 2". Beside rounding they are those of the reversed pair, a and b exchanged: log a and log b are moved
        by 2**-42 at most.
    symmetric : bool
        Whether the reversed pair has the same laws, and is not listed.
    """

    inputs: str
    upper: ExcessLaw
    lower: tuple[tuple[str, ExcessLaw], ...] = ()
    symmetric: bool = False


@runtime_checkable
class Randomizer(Protocol):
    """What one user runs: it knows its laws of X."""

    def excess_laws(self, cells: int = 800, log_cut: float = -60.0) -> tuple[PairLaws, ...]:
        """Return the laws of X of the ordered pairs of inputs, up to symmetry, as ``excess_laws`` of the mechanisms does."""
        ...
