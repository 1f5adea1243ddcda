"""The guarantee for replacing one record that follows from a guarantee for adding or removing one record.

A replacement is a removal followed by an addition.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shufflebounds._base.caches import cached_property
from shufflebounds._base.evidence import Evidence, bound_lines
from shufflebounds._base.progress import tick
from shufflebounds._base.types import ULP, FloatArray, IntervalArray, consistent
from shufflebounds._losses.closed_forms import ClosedForms
from shufflebounds._losses.release import Attained, DominatingPairInfo, Losses, Sampling
from shufflebounds.profile import DominatingPair, PrivacyProfile
from shufflebounds.profile.between import Between
from shufflebounds.profile.profile import by_adjacency, of_one_record
from shufflebounds.sampling._opposite import opposite, without_sampling
from shufflebounds.sampling._replaced import ReplacedValues

__all__ = ["ReplaceOne"]


@dataclass(frozen=True)
class ReplaceOne(PrivacyProfile):
    r"""The guarantee for replacing a record (a removal followed by an addition), from one for adding or removing a record.

    .. math:: \delta(\varepsilon) \le \min_{0 \le t \le \varepsilon}
        \delta_{\text{remove}}(t) + e^t\, \delta_{\text{add}}(\varepsilon - t)

    The two functions on the right are delta of `profile` for a removed and for an added record.

    Parameters
    ----------
    profile : PrivacyProfile
        A guarantee for add/remove adjacency, such as a composition of subsampled mechanisms, or for a zeroed record. For a zeroed
        record, the replacement sets the old record to zero, and then puts the new record in its place.

    Notes
    -----
    Adjacency: **replace** one record. For Gaussian, Laplace, discrete Gaussian and unbounded geometric noise on Poisson samples,
    and compositions of them, the worst case is known: the record contributes +Delta before and -Delta after the replacement in
    every release, where Delta is the sensitivity (proof: ``sampling/_opposite.py``). Both bounds are those of this case. Their
    relative gap in eps is below 1e-3, and delta of one release of discrete Gaussian or geometric noise is exact.

    A local randomizer sends the message of a fixed value if the record is not sampled. For randomized response, k-ary response and
    randomizers given by a matrix of up to four inputs, on Poisson samples, all fixed values and all pairs of values of the record
    are enumerated. Delta of one release is exact. In a composition each release may have another pair of values.

    For noise without sampling, the guarantee is that of the noise at twice the sensitivity. For other profiles the upper bound is
    the formula above; for small delta no smaller bound holds for every mechanism. Its eps is often about twice eps of a removal,
    and less if delta is due to rare large losses. The lower bound is the larger one of removal and addition: the new or the old
    record may contribute nothing, such as 0 in a sum.

    References
    ----------
    Dwork, C., Roth, A. The algorithmic foundations of differential privacy, 2014, section 2.3 (group privacy).

    Mironov, I. Renyi differential privacy, 2017, Proposition 11 (Renyi divergences without pure privacy).

    Dong, J., Roth, A., Su, W. J. Gaussian differential privacy, 2022, section 2.5 (mu: the sum of both steps).

    Koskela, A., Jälkö, J., Honkela, A. Computing tight differential privacy guarantees using FFT. AISTATS 2020, arXiv 1906.03049
    (the pair of opposite contributions of sampled Gaussian noise).

    Lebeda, C. J., Regehr, M., Kamath, G., Steinke, T. Avoiding pitfalls for privacy accounting of subsampled mechanisms under
    composition. arXiv 2405.20769, 2024 (dominating pairs for a substituted record).

    Examples
    --------
    >>> from shufflebounds.mechanisms import GaussianMechanism
    >>> from shufflebounds.sampling import ReplaceOne
    >>> training = GaussianMechanism(1.0).subsampled(0.01).self_compose(100)
    >>> print(f"{training.epsilon(1e-5):.3f} {ReplaceOne(training).epsilon(1e-5):.3f}")
    0.718 0.895
    """

    profile: PrivacyProfile

    neighbours: ClassVar[str] = "replace one record"
    relation: ClassVar[str] = "replace-one"

    @property
    def theorem(self) -> str:  # type: ignore[override]
        """What is proven for the upper bound; if the worst pair of values of the record is known, its bound is used."""
        worst = "" if self._known is None else "the worst pair of values of the record, or "
        return f"{worst}a removal followed by an addition (group privacy of two steps)"

    @property
    def lower_theorem(self) -> str:  # type: ignore[override]
        """What is proven for the lower bound."""
        worst = "" if self._known is None else "of the worst pair of values of the record, or "
        return f"delta {worst}of a replacement by a record that contributes nothing"

    def __post_init__(self) -> None:
        of_one_record("profile", self.profile)
        if self.profile.relation == "replace-one":
            raise ValueError(f"profile={self.profile!r} already covers the replacement of a record: pass one whose relation is "
                             "'add-remove', 'zeroed' or 'either'")

    def _both(self) -> tuple[PrivacyProfile, PrivacyProfile]:
        """Return the guarantees for removal and for addition."""
        ways = by_adjacency(self.profile)
        return (ways[0], ways[1]) if ways else (self.profile, self.profile.reverse())

    @cached_property
    def _known(self) -> tuple[PrivacyProfile, PrivacyProfile] | None:
        """Profiles of the worst replacement for lower and for upper bounds, which may be the same; None if the worst replacement is
        not known.
        """
        below, above = opposite(self.profile), opposite(self.profile, spread=True)
        return None if below is None or above is None else (below, below if above == below else above)

    def claims(self, eps: float, *, upper: bool) -> Iterable[Evidence]:
        yield from super().claims(eps, upper=upper)
        yield from self.profile.claims(eps, upper=upper)

    def pairs(self) -> tuple[DominatingPair, ...]:
        if self._known is None or self._known[0] is not self._known[1]:
            raise TypeError(f"{self!r} is not given by a list of pairs: they are known for sampled whole-number noise and finite "
                            "randomizers")
        return self._known[0].pairs()

    def closed_forms(self) -> ClosedForms:
        below, above = self._known or (None, None)
        forms = _TwoSteps(*self._both(), below, above, 2 * self.profile._eps_scale())
        # Without a pure budget, and if delta is below the mass of the cells at both ends of the noise, the upper bounds for a
        # removal followed by an addition are smaller than those for the worst pair; `forms` uses the smaller ones.
        exact = isinstance(above, ReplacedValues) or (above is not None and without_sampling(above))
        closed = self._known and (forms.pure < math.inf or exact)
        return Between(*self._known, min(forms.pure, self._known[1]._pure_epsilon())) if self._known and closed else forms

    def describe(self) -> DominatingPairInfo:
        forms, (pair, worst) = self._closed, self._known or (None, None)
        if pair is worst and isinstance(forms, Between):
            return forms.sides[True]._pair_info()
        # A value of this delta takes about a hundred times as long as a value of delta of `profile`, because of a search over t or
        # a composition. So a composition evaluates it at a few hundred eps only.
        effort, spacing, *_ = self.profile._pair_info().sampling
        sampling = Sampling(max(2e-3, 100 * effort), max(0.1, spacing), convex=False)
        # In every release the record is replaced by a record that contributes nothing, or by one whose contribution is opposite.
        pairs = (*self.profile._attained, *((pair,) if isinstance(pair, DominatingPair) else ()))
        losses, attained = Losses(), Attained(profiles=lambda: pairs)
        if worst is not None and pair is not None:
            # Upper bounds of compositions use the outcomes of the pair `worst`, which need not be attained; lower bounds use the
            # attained pair. If `pair` is the maximum of several pairs, only these are attained.
            info = pair._pair_info()
            losses, attained = worst._pair_info().losses, attained._replace(pairs=(info,) if pair._of_one_pair else info.below)
            sampling = worst._pair_info().sampling if isinstance(forms, Between) else sampling
        assert isinstance(forms, _TwoSteps | Between)
        return DominatingPairInfo(forms.log_delta, forms.pure, sampling=sampling, losses=losses, attained=attained)


class _TwoSteps(ClosedForms):
    """Results for the removal of a record (`remove`) followed by the addition of another (`add`).

    Neighbours attain the pair `opposite`, so its lower bounds are used, too. The pair `worst` dominates all neighbours, so its
    upper bounds are used, too. Either pair is None if it is unknown.
    """

    def __init__(self, remove: PrivacyProfile, add: PrivacyProfile, opposite: PrivacyProfile | None, worst: PrivacyProfile | None,
                 scale: float) -> None:
        self.ways, self.opposite, self.worst, self.scale = (remove, add), opposite, worst, scale
        self.attained = self.ways if opposite is None else (*self.ways, opposite)
        self.pure = (remove._pure_epsilon() + add._pure_epsilon()) * (1 + 4 * ULP)

    @property
    def eps_scale(self) -> float:
        return self.scale

    def method(self, eps: float) -> list[str]:
        names = "a removal", "an addition", "the worst pair of values"
        below = {name: way._log_side_at(eps, upper=False) for name, way in zip(names, self.attained)}
        above = {} if self.worst is None else {names[2]: self.worst._log_side_at(eps, upper=True)}
        high = float(self.log_delta(np.array([eps])).upper[0])
        if not above or high < above[names[2]]:
            above["a removal followed by an addition"] = high
        return [f"method: above by {min(above, key=above.__getitem__)}; below by {max(below, key=below.__getitem__)}",
                *bound_lines(above, upper=True), *bound_lines(below, upper=False)]

    def epsilon(self, delta: float, upper: bool) -> float | None:
        if upper:
            bound = math.inf if self.worst is None else self.worst._epsilon(delta, True)
            return bound if bound < math.inf else None
        return None if self.opposite is None else max(way._epsilon(delta, False) for way in self.attained)

    def log_delta(self, eps: FloatArray) -> IntervalArray:
        remove, add = self.ways
        upper, total = np.zeros(eps.size), eps[:, None]
        if self.worst is not None:
            upper = self.worst._log_side(eps, upper=True)
        low, high = np.zeros(eps.size), eps.copy()
        rows = np.arange(eps.size)
        # Each round divides the interval around the best t so far.
        for _ in range(3):
            splits = np.repeat(low[:, None], 17, axis=1)
            wide = high > low
            splits[wide] = np.linspace(low[wide], high[wide], 17, axis=1)
            # eps - t, the argument of the addition, is rounded down, so that its sum with t is at most eps.
            rest = np.maximum(total - splits, 0.0) * (1 - 4 * ULP)
            first, second = (way._log_side(part.ravel(), upper=True).reshape(part.shape)
                             for way, part in ((remove, splits), (add, rest)))
            values = np.logaddexp(first, splits + second)
            best = np.argmin(values, axis=1)
            smallest = values[rows, best]
            finite = np.where(smallest > -np.inf, smallest, 0.0)
            upper = np.minimum(upper, smallest + 8 * ULP * (1 + np.abs(finite) + eps))
            low, high = splits[rows, np.maximum(best - 1, 0)], splits[rows, np.minimum(best + 1, 16)]
            tick()
        lower = np.max([way._log_side(eps, upper=False) for way in self.attained], axis=0)
        return consistent(IntervalArray(lower, upper), "log delta at eps={!r}", eps)

    def mu(self, upper: bool) -> float | None:
        if not upper:
            return max(way._gdp_mu(False) for way in self.ways)
        return self.mu_limit() if self.pure == math.inf else None

    def mu_limit(self) -> float:
        # Each dataset is compared with the dataset that has neither record. The two Gaussian trade-off functions, with mu1 and mu2,
        # combine to that with mu1 + mu2.
        return sum(way._gdp_mu(True) for way in self.ways) * (1 + 4 * ULP)

    def renyi(self, orders: FloatArray, upper: bool) -> FloatArray | None:
        if not upper:
            return np.asarray(np.max([way._rdp(orders, False) for way in self.attained], axis=0))
        if self.pure < math.inf:
            return None
        return np.array([_triangle(*self.ways, a) if a < math.inf else math.inf for a in orders.tolist()])


def _triangle(remove: PrivacyProfile, add: PrivacyProfile, order: float) -> float:
    r"""Return an upper bound of the Renyi divergence between two datasets, by way of the dataset that has neither record.

    .. math:: D_a(P \| Q) \le \frac{a - 1/p}{a - 1} D_{pa}(P \| R) + D_{q(a - 1/p)}(R \| Q), \qquad 1/p + 1/q = 1

    This is Proposition 11 of Mironov (2017). The result is the minimum over 49 values of p, where neighbouring p - 1 have the ratio
    1.17. For a Renyi order a below 1.1 the inequality is infinite or weak, so nine larger orders are evaluated, too. They give
    upper bounds, because the divergence increases with the order.
    """
    larger = 1 + np.geomspace(0.1, 10.0, 9)
    a = np.append(order, larger)[:, None] if order < larger[0] else np.array([[order]])
    a = a[a[:, 0] > 1]
    p = 1 + np.geomspace(0.02, 50.0, 49)[None, :]
    # The orders are increased slightly, to cover the rounding of 1/p and of the conjugate exponent.
    grown = 1 + 16 * ULP
    first, second, factor = p * a * grown, (p / (p - 1)) * (a - 1 / p) * grown, (a - 1 / p) / (a - 1)
    ahead, after, seen = np.zeros(first.shape), np.zeros(first.shape), np.zeros(first.shape, dtype=bool)
    fresh = seen.copy()
    fresh[:, ::6] = True
    while fresh.any():
        ahead[fresh] = factor[fresh] * remove._rdp(first[fresh], True)
        after[fresh] = add._rdp(second[fresh], True)
        seen |= fresh
        smallest = (ahead[seen] + after[seen]).min()
        # The first term increases with p, and the second one decreases. So between two values of p the sum is at least the first
        # term of the smaller one plus the second term of the larger one; most intervals cannot have the minimum.
        fresh = np.zeros(first.shape, dtype=bool)
        for row, known in enumerate(seen):
            places = np.flatnonzero(known)
            left, right = places[:-1], places[1:]
            open_ = (right - left > 1) & (ahead[row, left] + after[row, right] < smallest)
            fresh[row, (left + right)[open_] // 2] = True
    return float(smallest) * (1 + 64 * ULP)
