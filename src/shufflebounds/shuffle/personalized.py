"""Privacy amplification by shuffling for users with personalized local budgets: clone bounds.

`PersonalizedClones` evaluates the clone bound for given rates, after Feldman, McMillan and Talwar (2023). Its constructors compute
rates for k-ary randomized response, Laplace noise and Gaussian noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from shufflebounds._base import validate as _validate
from shufflebounds._base.crossing import Curve
from shufflebounds._base.docs import with_passages
from shufflebounds._base.limits import COMPARED, FEW, LARGEST_EXPONENT, SAME_LOG, SEARCH_GAP
from shufflebounds._base.types import ULP, EqualByKey, FloatArray, Interval, IntervalArray, at_each
from shufflebounds._engines.clones.families import Family, GaussianFamily, LaplaceFamily, RandomizedResponseFamily
from shufflebounds._engines.clones.law import CloneLaw, log_clone_delta
from shufflebounds._engines.clones.population import Population, SearchBox
from shufflebounds._engines.excess.laws import Randomizer
from shufflebounds._losses.budget import Budget, log_odds
from shufflebounds._losses.closed_forms import ClosedForms
from shufflebounds._losses.curves import gdp_mu
from shufflebounds._losses.release import SINGLE, DominatingPairInfo, Sampling
from shufflebounds._losses.samples import FULL_DETAIL, SampledProfile
from shufflebounds.mechanisms import GaussianMechanism, KaryResponse, LaplaceMechanism
from shufflebounds.mechanisms.noise.gaussian import GaussianMechanism
from shufflebounds.profile import PrivacyProfile
from shufflebounds.shuffle.shuffled import Shuffled

__all__ = ["OfEveryUser", "OfOneUser", "PersonalizedClones"]

_TINY_WEIGHT = math.exp(-LARGEST_EXPONENT)
"""Smallest weight w that is accepted: 1/(e^eps1 + 1) for a local budget eps1 of about 700. e^eps1 overflows for larger budgets."""


def _log_delta(law: CloneLaw, budget: Budget, shift: float, eps: FloatArray) -> IntervalArray:
    """Return bounds of log delta: `shift`, the log of lambda, plus the log delta of the clone pair."""
    lower, upper = at_each(lambda e: log_clone_delta(law, budget, e), eps)
    slack = np.where(upper > -np.inf, 4e-16 * (1 + np.abs(upper) + abs(shift)), 0.0)
    return IntervalArray(lower + shift - slack, upper + shift + slack)


class _OneUser(ClosedForms):
    """The bounds of the user with this index."""

    def __init__(self, population: Population, index: int) -> None:
        self.population, self.index = population, index
        self.budget = float(population.budgets[index])
        self.pure = population.family.pure_epsilon(self.budget)

    @property
    def table_effort(self) -> float:
        """Effort of one table of the privacy blanket (see `Sampling`), in proportion to its number of cells."""
        return 3e-6 * self.population.blanket_cells

    @property
    def convex(self) -> bool:
        """Whether the bound is convex in e^eps.

        The minimum of several convex bounds need not be convex; between two values of eps it is only known to decrease.
        Compositions use the dominating pair of its convex hull. This pair is symmetric, so one of (P, Q) and (Q, P) suffices.
        """
        return len(self.population.family.kinds) == 1 and not self.population.family.windowed

    def log_delta(self, eps: FloatArray) -> IntervalArray:
        return at_each(lambda e: self.population.single(e, self.index), eps)

    def mixture(self) -> tuple[tuple[PrivacyProfile, ...], float]:
        # delta is at most that of the target's own message: all messages together are a post-processing of it.
        return ((GaussianMechanism(1.0, self.budget * (1 + 4 * ULP)),) if self.pure == math.inf else ()), 1.0

    def mu(self, upper: bool) -> float | None:
        if upper or self.pure < math.inf:
            return None
        # Every sample of delta gives a lower bound of mu. The largest bounds are those at small delta, where they change little.
        samples = self._samples()
        return gdp_mu(samples, samples, 0.0, 0).lower

    def _samples(self) -> SampledProfile:
        return SampledProfile(self.log_delta, math.inf, FULL_DETAIL / 2, convex=self.convex)

    def rough(self, upper: bool) -> Curve | None:
        return self.population.rough_single(self.index) if self.population.exact else None


class _EveryUser(_OneUser):
    """The bounds of the maximum over all users. Every search starts at the user with the largest budget, who is often the worst.

    This user does not depend on earlier calls, so that no answer depends on them.
    """

    def __init__(self, population: Population) -> None:
        super().__init__(population, population.budgets.size - 1)

    def log_delta(self, eps: FloatArray) -> IntervalArray:
        return self.largest(eps, coarse=False)

    def largest(self, eps: FloatArray, *, coarse: bool) -> IntervalArray:
        """Return bounds of the largest log delta over all users at each eps.

        If `coarse`, even single targets are evaluated with bins of budgets, which takes less time and leaves a larger gap.
        """
        out, best = np.empty((2, eps.size)), self.index
        # The search at the next larger eps starts from the decompositions that gave the bounds of all targets at the last eps.
        frontier: list[SearchBox] = []
        rough = coarse and self.population.exact > 0
        for i in np.argsort(eps):
            if len(frontier) > COMPARED:
                # The bounds of all boxes would take longer than a new search.
                frontier.clear()
            out[0, i], out[1, i], best = self.population.every(float(eps[i]), best, frontier=frontier, coarse=rough)
        return IntervalArray(out[0], out[1])

    def _samples(self) -> SampledProfile:
        if self.population.budgets.size <= FEW:
            return SampledProfile(partial(self.largest, coarse=True), math.inf, FULL_DETAIL / 2, convex=self.convex)
        # A lower bound needs no search over all users, because the delta of every user is a lower bound of the largest one.
        return SampledProfile(self._likely, math.inf, FULL_DETAIL / 2, convex=False)

    def _likely(self, eps: FloatArray) -> IntervalArray:
        """Return bounds of log delta at each eps for a user chosen by estimates; the upper bounds are valid for this user only."""
        def larger(at: float) -> Interval:
            # Estimates may be wrong at small delta, where the user with the largest budget is the worst.
            return max(self.population.single(at, i) for i in {self.population.likely(at), self.index})

        return at_each(larger, eps)

    def rough(self, upper: bool) -> Curve | None:
        start = best = self.index
        # With many budgets, the search over users leaves a gap of log delta of up to SEARCH_GAP. A tolerance of eps below a
        # ten-thousandth of this gap would take longer without a tighter answer.
        settles = 1e-4 * SEARCH_GAP if self.population.budgets.size > COMPARED else SAME_LOG
        one = replace(self.population.rough_single(start), settles=settles)
        if not self.population.exact:
            return one if self.population.budgets.size > FEW else None
        frontier: list[SearchBox] = []

        def log_delta(eps: float) -> float:
            nonlocal best
            # The rough curve may have a 50 times larger tolerance. Each search starts from the decompositions of the last eps.
            _, above, best = self.population.every(eps, best, 50 * SEARCH_GAP, frontier, coarse=True)
            return min(0.0, above)

        return Curve(log_delta, one, rtol=1e-4, settles=settles)


@dataclass(frozen=True, eq=False)
class _Guarantee(EqualByKey, PrivacyProfile):
    """Base class of the guarantees of one user and of all users: the fields, equality and repr that both classes share."""

    population: Population
    description: str
    parameters: dict[str, Any]
    target: int | None

    _covers_many: ClassVar[bool] = True
    neighbours: ClassVar[str] = (
        "replace one user's input, every user keeping budget and randomizer; the analyst sees the shuffled messages"
    )

    @property
    def users(self) -> int:
        """Number of users, the target included."""
        return int(self.population.counts.sum())

    def _key(self) -> tuple[Any, ...]:
        budgets, counts = self.population.budgets.tobytes(), self.population.counts.tobytes()
        return type(self), self.population.family, self.target, budgets, counts

    def __repr__(self) -> str:
        budgets = self.population.budgets
        shown = [f"<{self.users} users, {budgets.size} distinct>"]
        shown += [f"{name}={value!r}" for name, value in self.parameters.items()]
        return f"PersonalizedClones.{self.description}({', '.join(shown)}, target={self.target})"


@dataclass(frozen=True, eq=False, repr=False)
class OfOneUser(_Guarantee):
    """The guarantee of one user if every user has a personalized budget; `PersonalizedClones` has the definitions."""

    index: int = 0

    theorem: ClassVar[str] = (
        "upper bound of one user's loss, proven for the named family (noise: for the user's values 0 and 1): "
        "the smallest of the clone decompositions S1, S2 and window "
        "(after Feldman, McMillan, Talwar 2023, with personal rates) and, for k-ary randomized response, the privacy blanket "
        "(after Balle, Bell, Gascon, Nissim 2019)"
    )

    def describe(self) -> DominatingPairInfo:
        user = self.closed_forms()
        # A table of the blanket takes about a microsecond for each of its cells. With large tables, fewer eps are evaluated.
        effort = max(5e-3, user.table_effort)
        return DominatingPairInfo(user.log_delta, user.pure, attained=SINGLE,
                                  sampling=Sampling(effort, 0.1 if effort < 0.05 else 0.3, convex=user.convex))

    def closed_forms(self) -> _OneUser:
        return _OneUser(self.population, self.index)


@dataclass(frozen=True, eq=False, repr=False)
class OfEveryUser(_Guarantee):
    """The guarantee of every user if every user has a personalized budget; `PersonalizedClones` has the definitions."""

    theorem: ClassVar[str] = (
        "upper bound of every user's loss, proven for the named family (noise: for the user's values 0 and 1): "
        "the maximum over all users (none assumed to be the worst) "
        "of the smallest of the clone decompositions S1, S2 and window and, for k-ary randomized response, the privacy blanket"
    )

    def describe(self) -> DominatingPairInfo:
        users = self.closed_forms()
        # With few distinct budgets no bins are used (`population.exact` is 0). The search over targets then does not reuse results
        # of another eps, and takes about four times as long.
        searches = 1 if self.population.exact else 4
        # If the bound is convex in e^eps, interpolation meets the default tolerance with few values of eps, so a smaller tolerance
        # is affordable.
        gap = 2e-5 if users.convex else None
        # A curve or a composition evaluates many eps. With `coarse=True`, even a single target is evaluated with bins of budgets,
        # which takes less time.
        sampling = Sampling(max(searches * self.population.family.effort, 4 * users.table_effort), 0.3, gap, users.convex)
        return DominatingPairInfo(partial(users.largest, coarse=True), users.pure, sampling=sampling, attained=SINGLE)

    def closed_forms(self) -> _EveryUser:
        return _EveryUser(self.population)


@with_passages
@dataclass(frozen=True, eq=False, repr=False)
class PersonalizedClones(EqualByKey, PrivacyProfile):
    r"""Clone bound of one target user, where each other user sends a clone of the target's message at a personalized rate.

    .. math::
        \delta(\varepsilon) = \lambda \sum_c \Pr[C = c]\, H_{e^\varepsilon}(P_c \,\|\, Q_c), \qquad
        C \sim \sum_i \mathrm{Ber}(2 r_i),

    where :math:`P_c` is the distribution of :math:`A + \mathrm{Ber}(1-w)`, :math:`Q_c` that of :math:`A + \mathrm{Ber}(w)`,
    :math:`A \sim \mathrm{Bin}(c, 1/2)`, and the number c of clones is known.

    This formula is an upper bound for the target if :math:`\max(R_0/R_1, R_1/R_0) \le (1-w)/w` for the target's two output
    distributions and, with scale 1, :math:`(1-w)\,R_i(x) \ge r_i \max(R_0, R_1)` **pointwise** for every other user i and input x.
    The condition :math:`R_i(x) \ge r_i (R_0 + R_1)` suffices (docs/theorems/stronger-clones). The constructors
    :meth:`randomized_response`, :meth:`laplace` and :meth:`gaussian` compute such rates and return the smallest of several bounds.

    Parameters
    ----------
    weight : float
        w, in (0, 1/2): 1/(e^eps1 + 1) for a target of pure local budget eps1.
    rates : array_like, shape (groups,)
        Rates r_i of the other users, without the target, each in [0, 1/2].
    scale : float
        :math:`\lambda`, in (0, 1]: the mass of the target's distribution on the part of the output space that is decomposed.
    counts : array_like of int, shape (groups,), optional
        Number of users with each rate, 1 each by default; the total is at most 2**53.

    {raises: If an argument lies outside its range, or the shapes differ.}

    Notes
    -----
    There is no constructor for arbitrary eps_i-LDP randomizers, because no such bound exists: users with different randomizers may
    have disjoint sets of outputs, and then shuffling gives no amplification (a target with e^eps1 = 3 among users with other
    alphabets: delta(ln 2) = 1/4 at any number of users). For the same reason the rates 1/(e^eps_i + 1) are invalid, and so is
    replacing all budgets by the largest one, even for Laplace noise. A probability :math:`\Pr[R_i \in U]` of a set U of outputs is
    not a rate either, because the condition above is pointwise.

    The smallest of several bounds need not be convex in e^eps. delta of the protocol is convex, so the convex hull is a bound, too:
    `tradeoff`, `rdp` and `gdp_mu` of the constructors' results use the hull, whose delta may be below `delta`.

    The value of the formula, or of the hull, lies between the lower and the upper bound. So every lower bound, and a Renyi
    divergence of any order, is a statement on the formula: the protocol's delta and divergences are at most the upper bounds, and
    may be below the lower ones. Equal rates are grouped. The sum is truncated by
    exponential tilting; the gap is a relative 1e-12 to 3e-11, or a few ulp of the logarithm if that is larger.

    References
    ----------
    V. Feldman, A. McMillan, K. Talwar. Stronger Privacy Amplification by Shuffling. SODA 2023 (the pair and its sum).
    Y. Liu et al., Enhanced privacy bound for shuffle model with personalized privacy, 2024, section 3 (personalized rates; its own
    choice of w and r_i is not valid, see :mod:`shufflebounds.published`).

    Examples
    --------
    >>> import numpy as np
    >>> from shufflebounds.shuffle import PersonalizedClones
    >>> eps = np.linspace(0.5, 2.0, 10000)
    >>> target = PersonalizedClones(1 / (np.exp(2.0) + 1), 1 / (np.exp(eps[:-1]) + 1))
    >>> print(f"{target.epsilon(1e-5):.10f}")
    0.0664069886
    """

    weight: float
    rates: Any
    scale: float = 1.0
    counts: Any = None
    _law: CloneLaw = field(init=False)

    theorem: ClassVar[str] = (
        "clone bound of one user with personalized rates (after Feldman, McMillan, Talwar 2023): proven where "
        "(1 - w) R_i(x) >= r_i max(R_0, R_1) pointwise for every other user"
    )
    _covers_many: ClassVar[bool] = True
    neighbours: ClassVar[str] = "replace the target's input; the analyst sees the shuffled messages"

    def __post_init__(self) -> None:
        weight = _validate.real("weight", self.weight, _TINY_WEIGHT, 0.5, open_high=True)
        # Equality compares bytes: adding 0.0 replaces -0.0 by 0.0.
        rates = _validate.real_array("rates", self.rates, 0, 0.5) + 0.0
        scale = _validate.real("scale", self.scale, 0, 1, open_low=True)
        rates, counts = _grouped("rates", rates, self.counts)
        for name, value in {"weight": weight, "rates": rates, "scale": scale, "counts": counts}.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_law", CloneLaw(rates, counts))

    def __repr__(self) -> str:
        return (f"PersonalizedClones(weight={self.weight!r}, rates=<{int(self.counts.sum())} users, {self.rates.size} distinct>, "
                f"scale={self.scale!r})")

    def _key(self) -> tuple[Any, ...]:
        return self.weight, self.scale, self.rates.tobytes(), self.counts.tobytes()

    def describe(self) -> DominatingPairInfo:
        budget = log_odds(self.weight)
        # The formula is the divergence of a pair (P, Q) for which (Q, P) has the same divergence.
        hockey_stick = partial(_log_delta, self._law, budget, math.log(self.scale))
        return DominatingPairInfo(hockey_stick, budget.above, None, Sampling(1e-3, 0.05), attained=SINGLE)

    @classmethod
    def randomized_response(
        cls, eps: ArrayLike, categories: int, *, target: int | None = None, counts: ArrayLike | None = None
    ) -> PrivacyProfile:
        r"""Return the guarantee for users who run k-ary randomized response with personalized budgets.

        The bound is the smallest of the clone decompositions S1, :math:`r_i = \frac{E_1+k-1}{(E_i+k-1)(E_1+1)}`, and S2,
        :math:`r_i = \frac{1}{E_i+k-1}` with :math:`\lambda = \frac{E_1+1}{E_1+k-1}`, and for k >= 3 of the privacy blanket in which
        user i sends a uniform message with probability :math:`k/(E_i+k-1)`. Here :math:`E_i = e^{\varepsilon_i}`, and user 1 is the
        target.

        Parameters
        ----------
        eps : array_like, shape (users,) or (groups,)
            Local budgets in nats, each in (0, 700].
        categories : int
            k, 2 or more.
        target : int, optional
            Position in `eps` of the target user; by default the guarantee is for every user.
        counts : array_like of int, optional
            Number of users with each budget (positive), 1 each by default.

        Returns
        -------
        PrivacyProfile
            The upper bound is proven for every dataset, for the target or for every user (for :meth:`laplace` and :meth:`gaussian`:
            with the target's values 0 and 1, see there). The lower bound is a bound of the smallest value over these
            decompositions; the exact privacy loss may be below it. If the guarantee is for every user, the search over users leaves
            a gap of up to a relative 1e-3 in delta (for delta below 1e-20, 5e-5 of log delta). More than 2**20 distinct budgets are
            divided into 2**16 bins, which adds a relative gap of less than 1e-6 to log delta.

        {raises: If an argument lies outside its range, or the shapes differ.}

        Notes
        -----
        With more than eight distinct budgets the blanket is used only if its table has at most 2**20 cells, about ten thousand
        users, or 45,000 with 61 categories; otherwise the bound is the smaller one of S1 and S2. With more than 1024 distinct
        budgets, a decomposition is first bounded with budgets in bins; it is evaluated with all budgets only if it may be the
        smallest.

        Examples
        --------
        >>> import numpy as np
        >>> from shufflebounds.shuffle import PersonalizedClones
        >>> eps = np.linspace(0.5, 2.0, 10000)
        >>> all_users = PersonalizedClones.randomized_response(eps, categories=2)
        >>> print(f"{all_users.epsilon(1e-5):.5f}")
        0.06641
        """
        categories = _validate.integer("categories", categories, 2)
        return _guarantee(RandomizedResponseFamily(categories), partial(KaryResponse, categories), "randomized_response", "eps", eps,
                          target, counts, {"categories": categories})

    @classmethod
    def laplace(cls, eps: ArrayLike, *, target: int | None = None, counts: ArrayLike | None = None) -> PrivacyProfile:
        r"""Return the guarantee for users who add Laplace noise of scale 1/eps_i to a value in [0, 1].

        The bound is the smallest of three clone decompositions. S1 has

        .. math:: r_i = \frac{\varepsilon_i}{\varepsilon_1}\frac{e^{\varepsilon_1-\varepsilon_i}}{e^{\varepsilon_1}+1}

        for :math:`\varepsilon_i \le \varepsilon_1` and 0 otherwise. S2 has these rates times
        :math:`\lambda = (1+e^{-\varepsilon_1})/(1+e^{-\varepsilon_1/2})`. The window [-T, 1+T] has positive rates for users with
        larger budgets, too,

        .. math:: r_i = \kappa \frac{\varepsilon_i}{\varepsilon_1}
            \frac{e^{-\varepsilon_i-(\varepsilon_i-\varepsilon_1)_+T}}{1+e^{-\varepsilon_1}},

        and adds :math:`\tfrac12 e^{-\varepsilon_1 T}(1-e^{\varepsilon-\varepsilon_1})_+` to delta. User 1 is the target; kappa is
        the mass of the target's distribution on the window.

        Parameters
        ----------
        eps : array_like, shape (users,) or (groups,)
            Local budgets in nats, each in (0, 700]; outputs are not clipped.
        target, counts
            As in :meth:`randomized_response`, where exceptions are listed, too.

        Returns
        -------
        PrivacyProfile
            As in :meth:`randomized_response`.

        Notes
        -----
        S1 is proven for every two values of the target in [0, 1]: for every output z, :math:`R_i(z) \ge c_i \sup_x R_x(z)` with
        :math:`c_i = (\varepsilon_i/\varepsilon_1) e^{-\varepsilon_i}`, since :math:`|z - y| \le 1 + d(z)` with the distance d(z)
        of z from [0, 1], and :math:`e^{\varepsilon_1}` bounds the ratio of any two output distributions of the target. S2 and the
        window are proven only for the target's values 0 and 1; for two values between them no violation was found in 17,000
        cases, but there is no proof.

        The user with the largest budget is usually not the worst: users with narrow noise have few outputs in the tails, so they do
        not hide a user with a small budget. T is found by a search; every T gives a valid bound.

        Examples
        --------
        >>> import numpy as np
        >>> from shufflebounds.shuffle import PersonalizedClones
        >>> eps = np.linspace(0.5, 2.0, 10000)
        >>> last = PersonalizedClones.laplace(eps, target=9999)
        >>> print(f"{last.epsilon(1e-5):.8f}")
        0.08494562
        """
        return _guarantee(LaplaceFamily(), lambda budget: LaplaceMechanism(1 / budget), "laplace", "eps", eps, target, counts, {})

    @classmethod
    def gaussian(cls, sigma: ArrayLike, *, target: int | None = None, counts: ArrayLike | None = None) -> PrivacyProfile:
        r"""Return the guarantee for users who add Gaussian noise of standard deviation sigma_i to a value in [0, 1].

        .. math:: \delta(\varepsilon) \le \kappa\,\delta_{\mathrm{clone}}(\varepsilon; w, \mathrm{PB}(2r)) +
            \Bigl[\Phi\Bigl(\tfrac{1/2-T}{\sigma_1}\Bigr) - e^\varepsilon\Phi\Bigl(\tfrac{-1/2-T}{\sigma_1}\Bigr)\Bigr]_+

        for the target's values 0 and 1 (for two values between them no violation was found, but there is no proof).
        Here :math:`w = 1/(e^{T/\sigma_1^2}+1)`, kappa is the mass of the target's distribution on the window [1/2-T, 1/2+T], and
        :math:`r_i = \kappa\,(1-w) \min R_i/\max(R_0, R_1)` over the window. T is found by a search; every T gives a valid bound.

        Parameters
        ----------
        sigma : array_like, shape (users,) or (groups,)
            Standard deviations, each in [0.03, 1e6], in units of the values' range.
        target, counts
            As in :meth:`randomized_response`, where exceptions are listed, too.

        Returns
        -------
        PrivacyProfile
            As in :meth:`randomized_response`. The noise has no pure budget, so delta is positive at every eps.

        Examples
        --------
        >>> import numpy as np
        >>> from shufflebounds.shuffle import PersonalizedClones
        >>> profile = PersonalizedClones.gaussian(np.full(10000, 2.0), target=0)
        >>> profile.delta(0.1) < 1e-4
        True
        """
        return _guarantee(GaussianFamily(), lambda rate: GaussianMechanism(1 / rate), "gaussian", "sigma", sigma, target, counts, {})


def _grouped(name: str, values: FloatArray, counts: ArrayLike | None, low: int = 0) -> tuple[FloatArray, FloatArray]:
    """Return the distinct values in increasing order and the number of users with each; without counts, `values` are sorted."""
    if values.ndim != 1:
        raise ValueError(f"{name} has shape {values.shape}: it must be 1-D, one entry for each user or group")
    if counts is None:
        values.sort()
        if (values[1:] > values[:-1]).all():
            # np.unique would take twice the time and three times the memory of this case.
            return values, np.ones(values.size)
        distinct, sizes = np.unique(values, return_counts=True)
        return distinct, sizes.astype(np.float64)
    users = _validate.real_array("counts", counts, low, _validate.MAX_COUNT)
    if users.shape != values.shape:
        raise ValueError(f"counts has shape {users.shape}, {name} {values.shape}: they must agree")
    if (users != np.floor(users)).any():
        raise ValueError(f"counts holds {users[users != np.floor(users)][0]:.17g}: every entry must be a whole number")
    if users.sum() > _validate.MAX_COUNT:
        raise ValueError(f"counts sums to {users.sum():.17g}: there may be at most 2**53 users")
    distinct, place = np.unique(values, return_inverse=True)
    return distinct, np.bincount(place, weights=users, minlength=distinct.size).astype(np.float64)


def _guarantee(
    family: Family, alone: Callable[[float], Randomizer], description: str, name: str, values: ArrayLike, target: int | None, counts: ArrayLike | None,
    parameters: dict[str, Any],
) -> PrivacyProfile:
    """Return the guarantee of the user at position `target` of `values`, or of every user if `target` is None.

    `values` are the budgets eps, or the standard deviations of Gaussian noise, for which the family of randomizers uses 1/sigma.
    """
    pure = name == "eps"
    low, high = (0.0, LARGEST_EXPONENT) if pure else (0.03, 1e6)
    budgets = _validate.real_array(name, values, low, high, open_low=pure)
    index = None if target is None else _validate.integer("target", target, 0, max(budgets.size - 1, 0))
    budgets = budgets if pure else np.divide(1, budgets, out=budgets)
    own = budgets.flat[index or 0]  # before the budgets are sorted
    distinct, users = _grouped(name, budgets, counts, 1)
    if distinct.size == 1:
        # Users with one budget run one randomizer, for which the bounds are tighter, and both are bounds of the mechanism.
        return Shuffled(alone(float(distinct[0])), int(users[0]))
    population = Population(family, distinct, users)
    if index is None:
        return OfEveryUser(population, description, parameters, None)
    return OfOneUser(population, description, parameters, index, int(np.searchsorted(distinct, own)))
