"""Bounds for a group of records, computed from those of one record: the records of the group change one after the other."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from shufflebounds._base.caches import Kept, cached_property
from shufflebounds._base.crossing import Curve
from shufflebounds._base.evidence import bound_lines
from shufflebounds._base.limits import SAFE_EXPONENT
from shufflebounds._base.progress import tick
from shufflebounds._base.types import ULP, FloatArray, IntervalArray
from shufflebounds._losses.closed_forms import ClosedForms
from shufflebounds.profile.splits import Splits, breakpoints

__all__ = ["Chain", "GroupInfo"]

BLOCKS = 64
"""Largest number of different eps in a split (`Chain`). Raised: longer run time. Lowered: less tight bounds for large groups."""

POINTS, EXPENSIVE_POINTS = 65, 17
"""Numbers of values of log delta from which splits of eps are computed; the second number applies if a value is expensive. Raised:
longer run time. Lowered: splits that are farther from the best one."""

SETTLES = 1e-12
"""Relative tolerance of the search for eps. Raised: eps may rise with delta by this fraction. Lowered: more values of the bound."""

EXPENSIVE = 1e-2
"""Effort of one value (`Sampling.effort`) from which only EXPENSIVE_POINTS values are used."""


class GroupInfo(NamedTuple):
    """Properties of a group of records that cannot be computed from those of one record.

    Attributes
    ----------
    below, above : PrivacyProfile, optional
        Profiles of the whole group, one for lower and one for upper bounds. Both are the same object if this profile is exact.
    attained : callable
        For lower bounds: returns descriptions of pairs that neighbours attain or dominate.
    """

    below: Any = None
    above: Any = None
    attained: Callable[[], tuple[Any, ...]] = tuple

    @classmethod
    def of(cls, exact: Any) -> GroupInfo:
        """Return the information that a group has exactly this profile."""
        return cls(exact, exact)


class _Samples(NamedTuple):
    """Increasing eps from 0 on, log delta at each, and the best splits for a smooth delta with these values."""

    eps: FloatArray
    log_delta: FloatArray
    splits: Splits


class Chain(ClosedForms):
    r"""Bounds for `size` changes of one record each, made one after the other. Each change meets the bounds of `profile`.

    Let the eps of the k = `size` changes be :math:`\varepsilon_1, \ldots, \varepsilon_k`, with the sum :math:`\varepsilon`. Then
    delta of all changes is at most :math:`\sum_j e^{\varepsilon_1 + \cdots + \varepsilon_{j-1}} \delta(\varepsilon_j)`. Every split
    gives a valid bound; `splits` computes splits whose bound is close to the smallest one.
    """

    def __init__(self, profile: Any, size: int, pure: float, attained: Callable[[], tuple[Any, ...]]) -> None:
        # `attained` returns profiles of pairs that groups attain.
        self.profile, self.size, self.pure, self._attained = profile, size, pure, attained
        self.single: float = profile._pure_epsilon()
        blocks = min(size, BLOCKS)
        # The numbers of changes (links of the chain) that share an eps.
        self.counts = np.diff(np.round(np.linspace(0, size, blocks + 1)))
        self.points = EXPENSIVE_POINTS if profile._described.sampling.effort > EXPENSIVE else POINTS
        self._tables: Kept[float, _Samples] = Kept(16)

    @cached_property
    def ways(self) -> tuple[Any, ...]:
        """Profiles whose lower bounds are valid for the group: that of one record, and those of pairs that groups attain."""
        return self.profile, *self._attained()

    def log_delta(self, eps: FloatArray) -> IntervalArray:
        return IntervalArray(self.side(eps, False), self.side(eps, True))

    def side(self, eps: FloatArray, upper: bool) -> FloatArray:
        if upper:
            return np.array([self._least(at) if at < self.pure else -math.inf for at in eps.tolist()])
        return np.asarray(np.max([way._known_side(eps, upper=False) for way in self.ways], axis=0))

    def method(self, eps: float) -> list[str]:
        if not eps < self.pure:
            return [f"method: delta is 0 from the pure budget {self.pure:.12g} of the group on"]
        split, (one, *tests) = self.best(eps)[0], [way._log_side_at(eps, upper=False) for way in self.ways]
        below = {"one record alone": one, **({"tests of groups whose records all change": max(tests)} if tests else {})}
        return [f"method: above by one record after the other, with eps from {split.min():.6g} to {split.max():.6g} for each; "
                f"below by {max(below, key=below.__getitem__)}", *bound_lines(below, upper=False)]

    def _least(self, eps: float) -> float:
        """Return the upper bound of log delta at one eps."""
        smallest = self.best(eps)[1]
        return min(0.0, smallest + (4 * BLOCKS + 64) * ULP * (1 + abs(smallest) + eps)) if smallest > -math.inf else smallest

    def best(self, eps: float) -> tuple[FloatArray, float]:
        """Return the better one of two splits of eps, and its bound of log delta.

        A split has the eps of one change in each block.
        """
        tick()
        if self.single == 0:
            return np.zeros(self.counts.size), -math.inf
        equal = np.full(self.counts.size, eps / self.size)
        splits = np.stack([self._within(split, eps) for split in (equal, self._proposed(eps))])
        parts, places = np.unique(splits, return_inverse=True)
        totals = self._totals(splits, self.profile._known_side(parts, upper=True)[places].reshape(splits.shape))
        place = int(np.argmin(totals))
        return splits[place], float(totals[place])

    def _within(self, split: FloatArray, eps: float) -> FloatArray:
        """Return the split with its parts below the pure budget rescaled, such that the sum over all changes is at most eps."""
        margin = (4 * self.counts.size + 16) * ULP
        full = split >= self.single
        rest = eps * (1 - margin) - float(self.counts @ full) * (self.single if full.any() else 0.0)
        if rest < 0 or full.all():
            return split * (1 - margin)
        factor = min(1.0, rest / max(float(self.counts[~full] @ split[~full]), 1e-300)) * (1 - margin)
        return np.where(full, self.single, split * factor)

    def _totals(self, splits: FloatArray, log_deltas: FloatArray) -> FloatArray:
        """Return the log of the sum over all changes that bounds delta.

        Changes with the same eps form a block. Each row has the eps, or the log delta, of one change in each block.
        """
        done = np.cumsum(self.counts * splits, axis=-1) - self.counts * splits
        # A block of m changes with the same eps contributes its delta times 1 + e^eps + ... + e^((m-1) eps).
        with np.errstate(divide="ignore", invalid="ignore"):
            links = (self.counts - 1) * splits + np.log(np.expm1(-self.counts * splits) / np.expm1(-splits))
        links = np.where(splits > 0, links, np.log(self.counts))
        return np.asarray(np.logaddexp.reduce(log_deltas + done + links, axis=-1))

    def _proposed(self, eps: float) -> FloatArray:
        """Return a split of eps that is close to the best one."""
        if self.counts.size == 1:
            return np.full(1, eps / self.size)
        below, above = (self._listed or self._sampled(eps).splits).at(eps)
        first, second = self.counts @ below, self.counts @ above
        if not first < eps < second:
            return below if eps <= first else above
        # The bound is a convex function of the exponentials of the cumulated eps.
        share = math.log(-math.expm1(first - eps)) - math.log(-math.expm1(first - second)) + eps - second
        if not share < 0:
            return above
        logs = math.log(-math.expm1(share)) + np.cumsum(self.counts * below), share + np.cumsum(self.counts * above)
        cumulated = np.logaddexp(*logs)
        return np.where(below == above, below, np.diff(cumulated, prepend=0.0) / self.counts)

    @cached_property
    def _listed(self) -> Splits | None:
        """The best splits if delta has few breakpoints, otherwise None."""
        eps = breakpoints(self.profile)
        if eps is None or self.size > BLOCKS or self.size * eps[-1] > SAFE_EXPONENT:
            return None
        return Splits.linear(eps, self.profile._known_side(eps, upper=True), self.size)

    def _sampled(self, eps: float) -> _Samples:
        """Return splits that are close to the best ones for a smooth delta."""
        reach = min(2.0 ** math.ceil(math.log2(max(4 * eps / self.size, 1e-300))), self.single)
        return self._tables.of(reach, lambda: self._samples(reach))

    def _samples(self, reach: float) -> _Samples:
        """Return eps from 0 to `reach`, closely spaced near the pure budget, with log delta, and the splits that follow."""
        at = np.linspace(0.0, reach, self.points)
        if reach == self.single:
            at = np.unique(np.append(at[:-1], reach * (1 - np.geomspace(0.5, 1e-12, self.points // 2))))
        sampling = self.profile._described.sampling
        if sampling.expensive and sampling.curve is not None:
            # Every split gives a valid bound, so rough values of delta are enough to propose one.
            log_delta = sampling.curve.hockey_stick(at).upper
        else:
            log_delta = self.profile._known_side(at, upper=True)
        seen = log_delta > -math.inf
        return _Samples(at[seen], log_delta[seen], Splits.smooth(at[seen], log_delta[seen], self.counts))

    def rough(self, upper: bool) -> Curve | None:
        # Between few breakpoints, delta of one change may fall by orders of magnitude, which an interpolation misses.
        return Curve(self._roughly, rtol=1e-4, settles=SETTLES) if upper and self._listed is None else None

    def _roughly(self, eps: float) -> float:
        """Return an approximation of the bound of log delta, by interpolation of sqrt(-log delta)."""
        split, samples = self._proposed(eps), self._sampled(eps)
        roots = np.interp(split, samples.eps, np.sqrt(-samples.log_delta))
        return min(0.0, float(self._totals(split, -roots**2)))

    def epsilon(self, delta: float, upper: bool) -> float | None:
        return None if upper else float(max(way._epsilon(delta, False) for way in self.ways))

    def mu(self, upper: bool) -> float | None:
        if not upper:
            return float(max(way._gdp_mu(False) for way in self.ways))
        return self.mu_limit() if self.pure == math.inf else None

    def mu_limit(self) -> float:
        # A chain of k mu-Gaussian private steps is k mu-Gaussian private (Dong, Roth, Su 2022, Theorem 2.14).
        return float(self.size * self.profile._gdp_mu(True) * (1 + 4 * ULP))

    def renyi(self, orders: FloatArray, upper: bool) -> FloatArray | None:
        if not upper:
            return np.asarray(np.max([way._rdp(orders, False) for way in self.ways], axis=0))
        return self.renyi_limit(orders, True) if self.pure == math.inf else None

    def renyi_limit(self, orders: FloatArray, upper: bool) -> FloatArray:
        return orders * (self.mu_limit() ** 2 / 2) * (1 + 8 * ULP) if upper else super().renyi_limit(orders, upper)

    @property
    def eps_scale(self) -> float:
        return float(self.size * self.profile._eps_scale())
