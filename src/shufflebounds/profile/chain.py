"""Bounds for a group of records, computed from those of one record: the records of the group change one after the other."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from shufflebounds._base.caches import Kept, cached_property
from shufflebounds._base.crossing import Curve
from shufflebounds._base.progress import tick
from shufflebounds._base.types import ULP, FloatArray, IntervalArray
from shufflebounds._losses.closed_forms import ClosedForms

__all__ = ["Chain", "GroupInfo"]

BLOCKS = 64
"""Largest number of different eps in a split (`Chain`). Raised: longer run time. Lowered: less tight bounds for large groups."""

POINTS, EXPENSIVE_POINTS = 65, 17
"""Numbers of values of log delta between which a split of eps is optimized; the second number applies if a value is expensive.
Raised: longer run time. Lowered: splits that are farther from the best one."""

EXPENSIVE = 1e-2
"""Effort of one value (`Sampling.effort`) from which only EXPENSIVE_POINTS values are used."""

ROUNDS = 12
"""Number of rounds in which the excess of parts above the pure budget of one change is divided among the other parts. Raised:
longer run time. Lowered: splits whose sum is below eps."""

NEGLIGIBLE_ROOT = 1e6
"""Value of sqrt(-log delta) that stands for delta = 0 when splits are proposed."""


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


class Chain(ClosedForms):
    r"""Bounds for `size` changes of one record each, made one after the other. Each change meets the bounds of `profile`.

    Let the eps of the k = `size` changes be :math:`\varepsilon_1, \ldots, \varepsilon_k`, with the sum :math:`\varepsilon`. Then
    delta of all changes is at most :math:`\sum_j e^{\varepsilon_1 + \cdots + \varepsilon_{j-1}} \delta(\varepsilon_j)`. A search
    over the numbers b and c tries the splits :math:`\varepsilon_j = \frac{\varepsilon}{k} (1 + c x_j + b y_j)_+`, where x is linear
    and y quadratic in j. The parts are rescaled to the sum :math:`\varepsilon`, and none exceeds the pure budget. For normal noise
    the best split is linear in j.
    """

    def __init__(self, profile: Any, size: int, pure: float, attained: Callable[[], tuple[Any, ...]]) -> None:
        # `attained` returns profiles of pairs that groups attain.
        self.profile, self.size, self.pure, self._attained = profile, size, pure, attained
        self.single: float = profile._pure_epsilon()
        blocks = min(size, BLOCKS)
        # The numbers of changes (links of the chain) that share an eps.
        self.counts = np.diff(np.round(np.linspace(0, size, blocks + 1)))
        self.points = EXPENSIVE_POINTS if profile._described.sampling.effort > EXPENSIVE else POINTS
        self._tables: Kept[float, tuple[FloatArray, FloatArray]] = Kept(16)

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
        splits = np.stack([self._within(split, eps) for split in (equal, self._proposed(eps)[0])])
        parts, places = np.unique(splits, return_inverse=True)
        totals = self._totals(splits, self.profile._known_side(parts, upper=True)[places].reshape(splits.shape))
        place = int(np.argmin(totals))
        return splits[place], float(totals[place])

    def _within(self, split: FloatArray, eps: float) -> FloatArray:
        """Return the split with its parts below the pure budget rescaled, such that the sum over all changes is at most eps."""
        margin = (4 * BLOCKS + 16) * ULP
        full = split >= self.single
        rest = eps * (1 - margin) - float(self.counts @ full) * (self.single if full.any() else 0.0)
        if rest < 0 or full.all():
            return split * (1 - margin)
        return np.where(full, self.single, split * (rest / max(float(self.counts[~full] @ split[~full]), 1e-300)) * (1 - margin))

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

    def _proposed(self, eps: float) -> tuple[FloatArray, float]:
        """Return a split of eps that is close to the best one, and an approximation of the log delta that follows from it."""
        blocks = self.counts.size
        if blocks == 1:
            return np.full(1, eps / self.size), float(self._roots(eps, np.full((1, 1), eps / self.size)).min())
        middle = np.cumsum(self.counts) - self.counts / 2
        line = 2 * middle / self.size - 1
        square = line**2 - float(self.counts @ line**2) / self.size
        width, center = 1.6, (0.0, 0.0)
        split, value = np.empty(0), math.inf
        # Each round refines c and b around the best values so far.
        for _ in range(3):
            c, b = (x.ravel()[:, None] for x in np.meshgrid(*(x + width * np.linspace(-1, 1, 17) for x in center)))
            shape = np.maximum(1 + c * line + b * square, 0.0)
            splits = shape
            # A part above the pure budget of one change does not reduce delta further, so the excess is divided among the other
            # parts.
            for _ in range(ROUNDS if self.single < math.inf else 1):
                splits = np.minimum(splits * (eps / np.maximum(splits @ self.counts, 1e-300))[:, None], self.single)
            values = self._roots(eps, splits)
            best = int(np.argmin(values))
            split, value = splits[best], float(values[best])
            width, center = width / 8, (float(c[best, 0]), float(b[best, 0]))
        return split, value

    def _roots(self, eps: float, splits: FloatArray) -> FloatArray:
        """Return approximations of the bounds of log delta for several splits of eps, by interpolation of sqrt(-log delta)."""
        reach = min(2.0 ** math.ceil(math.log2(max(4 * eps / self.size, 1e-300))), self.single)
        at, roots = self._tables.of(reach, lambda: self._table(reach))
        # Beyond the table, sqrt(-log delta) is extrapolated by a straight line. From the pure budget on, delta is 0.
        beyond = np.maximum(splits - at[-1], 0.0) * (roots[-1] - roots[-2]) / (at[-1] - at[-2])
        depth = np.where(splits < self.single, np.interp(splits, at, roots) + beyond, NEGLIGIBLE_ROOT)
        return self._totals(splits, -depth**2)

    def _table(self, reach: float) -> tuple[FloatArray, FloatArray]:
        """Return eps from 0 to `reach`, closely spaced near the pure budget, and sqrt(-log delta) at each eps."""
        at = np.linspace(0.0, reach, self.points)
        if reach == self.single:
            at = np.unique(np.append(at[:-1], reach * (1 - np.geomspace(0.5, 1e-12, self.points // 2))))
        return at, np.minimum(np.sqrt(-self.profile._known_side(at, upper=True)), NEGLIGIBLE_ROOT)

    def rough(self, upper: bool) -> Curve | None:
        return Curve(lambda eps: min(0.0, self._proposed(eps)[1]), rtol=1e-4, settles=1e-7) if upper else None

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
