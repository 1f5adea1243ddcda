"""Privacy amplification by shuffling for users with personalized local budgets: clone bounds.

`PersonalizedClones` evaluates the clone bound for given rates, after Feldman, McMillan and Talwar (2023). Its constructors compute
rates for k-ary randomized response, Laplace noise and Gaussian noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from shufflebounds._base import validate as _validate
from shufflebounds._base.caches import cached_property
from shufflebounds._base.docs import with_passages
from shufflebounds._base.limits import LARGEST_EXPONENT
from shufflebounds._base.types import EqualByKey, FloatArray, IntervalArray, at_each
from shufflebounds._engines.bits.personal_sum import distinct
from shufflebounds._engines.clones.clone_families import Family, GaussianFamily, LaplaceFamily, RandomizedResponseFamily
from shufflebounds._engines.clones.law import CloneLaw, log_clone_delta
from shufflebounds._engines.clones.population import Population
from shufflebounds._engines.excess.excess_law import Randomizer
from shufflebounds._losses.budget import Budget, log_odds
from shufflebounds._losses.release import SINGLE, DominatingPairInfo, Sampling
from shufflebounds.mechanisms import GaussianMechanism, KaryResponse, LaplaceMechanism
from shufflebounds.profile import PrivacyProfile
from shufflebounds.shuffle.absent import AbsentUsers
from shufflebounds.shuffle.guarantees import OfEveryUser, OfOneUser, users_of_each
from shufflebounds.shuffle.personalized_bits import PersonalizedBits
from shufflebounds.shuffle.shuffled import Shuffled

__all__ = ["PersonalizedClones"]

_TINY_WEIGHT = math.exp(-LARGEST_EXPONENT)
"""Smallest weight w that is accepted: 1/(e^eps1 + 1) for a local budget eps1 of about 700. e^eps1 overflows for larger budgets."""


def _log_delta(law: CloneLaw, budget: Budget, shift: float, eps: FloatArray) -> IntervalArray:
    """Return bounds of log delta: `shift`, the log of lambda, plus the log delta of the clone pair."""
    lower, upper = at_each(lambda e: log_clone_delta(law, budget, e), eps)
    slack = np.where(upper > -np.inf, 4e-16 * (1 + np.abs(upper) + abs(shift)), 0.0)
    return IntervalArray(lower + shift - slack, upper + shift + slack)


@with_passages
@dataclass(frozen=True, eq=False, repr=False)
class PersonalizedClones(EqualByKey, PrivacyProfile, AbsentUsers):
    r"""Clone bound of one target user, where each other user sends a clone of the target's message at a personalized rate.

    Every other user i sends a *clone*, a message drawn as the target's, with probability :math:`2 r_i`, for one of the target's two
    inputs at random. With the numbers w and :math:`\lambda` of the clone decomposition below,

    .. math::
        \delta(\varepsilon) = \lambda \sum_c \Pr[C = c]\, H_{e^\varepsilon}(P_c \,\|\, Q_c), \qquad
        C \sim \sum_i \mathrm{Ber}(2 r_i).

    Here H is the hockey-stick divergence, :math:`P_c` is the distribution of :math:`A + \mathrm{Ber}(1-w)` and :math:`Q_c` that of
    :math:`A + \mathrm{Ber}(w)`, with :math:`A \sim \mathrm{Bin}(c, 1/2)`; the analyst knows the number c of clones.

    Let the target's output distributions for the two inputs be :math:`R_0` and :math:`R_1`. A *clone decomposition* writes them as
    :math:`R_b = \lambda S_b + (1-\lambda) V`, where V is common to both; for :math:`\lambda = 1`, :math:`S_b = R_b`. Let
    :math:`R_i(x)` be the output distribution of another user i for the input x. The formula is an upper bound for the target if
    :math:`\max(S_0/S_1, S_1/S_0) \le (1-w)/w` and :math:`(1-w)\,R_i(x) \ge r_i \max(S_0, S_1)` **pointwise** for every i and x. The
    second condition follows from :math:`R_i(x) \ge r_i (S_0 + S_1)` (docs/theorems/stronger-clones). The constructors
    :meth:`randomized_response`, :meth:`laplace` and :meth:`gaussian` compute such rates and return the smallest of several bounds.

    Parameters
    ----------
    weight : float
        w, in (0, 1/2). For :math:`\lambda = 1` and a target with pure local budget eps1 it is 1/(e^eps1 + 1).
    rates : array_like, shape (groups,)
        Rates r_i of the other users, without the target, each in [0, 1/2].
    scale : float
        :math:`\lambda`, in (0, 1], of the clone decomposition.
    counts : array_like of int, shape (groups,), optional
        Number of users with each rate, 1 each by default; the total is at most 2**53.
    {absent}

    {raises: If an argument lies outside its range, or the shapes differ.}

    Notes
    -----
    There is no constructor for arbitrary eps_i-LDP randomizers, because no such bound exists: users with different randomizers may
    have disjoint sets of outputs, and then shuffling gives no amplification. For the same reason the rates 1/(e^eps_i + 1), which
    are valid for flipped bits, are not valid for all randomizers, and neither is the bound as if all users had the largest budget
    (:doc:`counterexamples </personalized>`).

    delta of the protocol is convex in e^eps, and the smallest of several bounds need not be. `tradeoff`, `rdp` and `gdp_mu` of the
    constructors' results use the convex hull of this smallest bound, which is a bound, too; `delta` does not use the hull.

    The lower and the upper bound are bounds of the formula for the given `weight`, `rates` and `scale`; delta of a protocol with
    these rates may be below both. The gap between the two bounds is a relative 1e-12 to 3e-11 of delta, or a few ulp of log delta
    if that is larger.

    References
    ----------
    V. Feldman, A. McMillan, K. Talwar. Stronger Privacy Amplification by Shuffling. SODA 2023 (the pair and its sum).

    Y. Liu et al., Enhanced privacy bound for shuffle model with personalized privacy, 2024, section 3 (personalized rates; the
    choice of w and r_i there is not valid, see :mod:`shufflebounds.published`).

    Examples
    --------
    Flipped bits, with the probability 1/(e^eps_i + 1) of a flip:

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
        "max(S_0/S_1, S_1/S_0) <= (1 - w)/w and (1 - w) R_i(x) >= r_i max(S_0, S_1) pointwise for every other user, "
        "where S_0 and S_1 are the target's two output distributions, or their parts of weight `scale`"
    )
    lower_theorem: ClassVar[str] = "the formula's value, from below: a randomizer may have a smaller delta"
    proof: ClassVar[str] = "docs/theorems/stronger-clones"
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
        self._check_absent(int(counts.sum()) + 1)
        object.__setattr__(self, "_law", CloneLaw(rates, counts))

    def __repr__(self) -> str:
        return (f"PersonalizedClones(weight={self.weight!r}, rates=<{int(self.counts.sum())} users, {self.rates.size} distinct>, "
                f"scale={self.scale!r}{self._absent()})")

    def _key(self) -> tuple[Any, ...]:
        return self.weight, self.scale, self.rates.tobytes(), self.counts.tobytes(), self._absent()

    @cached_property
    def _remaining(self) -> Self:
        if not self._absent():
            return self
        # delta does not increase in the number of clones, so in the worst case the absent users are those with the largest rates.
        order = np.argsort(-self.rates)
        left = np.clip(np.cumsum(self.counts[order]) - self.colluding - self.missing, 0, self.counts[order])
        rates = self.rates[order][left > 0] if left.any() else np.zeros(1)
        return type(self)(self.weight, rates, self.scale, left[left > 0] if left.any() else np.ones(1))

    @property
    def _limited_to(self) -> str:
        return "one user"

    def describe(self) -> DominatingPairInfo:
        budget = log_odds(self.weight)
        # The formula is the divergence of a pair (P, Q), and (Q, P) has the same divergence.
        hockey_stick = partial(_log_delta, self._law, budget, math.log(self.scale))
        return DominatingPairInfo(hockey_stick, budget.above, None, Sampling(1e-3, 0.05), attained=SINGLE)

    @classmethod
    def randomized_response(
        cls, eps: ArrayLike, categories: int, *, target: int | None = None, counts: ArrayLike | None = None
    ) -> PrivacyProfile:
        r"""Return the guarantee for users who run k-ary randomized response with personalized budgets.

        The bound is the smallest of four. User 1 is the target, and :math:`E_i = e^{\varepsilon_i}`. Two of the bounds are those of
        clone decompositions (description of the class) with :math:`w = 1/(E_1+1)`, named S1 and S2:

        - S1: :math:`\lambda = 1` and the rates :math:`r_i = \frac{E_1+k-1}{(E_i+k-1)(E_1+1)}`;
        - S2: :math:`\lambda = \frac{E_1+1}{E_1+k-1}` and the rates :math:`r_i = \frac{1}{E_i+k-1}`;
        - for k >= 3, the privacy blanket: user i sends a uniformly random category with probability :math:`k/(E_i+k-1)`, which does
          not depend on the user's value;
        - the bound of :class:`Shuffled` as if all users had the largest budget (docs/personalized).

        Parameters
        ----------
        eps : array_like, shape (users,) or (groups,)
            Local budgets in nats, each in [1e-300, 700].
        categories : int
            Number k of categories, 2 or more.
        target : int, optional
            Position in `eps` of the target user; by default the guarantee is for every user.
        counts : array_like of int, optional
            Number of users with each budget (positive), 1 each by default.

        Returns
        -------
        PrivacyProfile
            The upper bound is proven for every dataset of the other users. For :meth:`laplace` and :meth:`gaussian` the target's
            two values are 0 and 1. The result has these properties:

            - A guarantee for every user is the largest bound of one user. The search over users leaves a gap of up to a relative
              1e-3 in delta (for delta below 1e-20, 5e-5 of log delta).
            - The lower bound is that of a test in one dataset. For k-ary response all other users have a third value, and the
              test uses the numbers of messages with the target's two values. For noise all other users have the value 0, and
              the test uses the number of messages above a threshold.
            - If the guarantee is for every user, the lower bound is the larger of those for the targets with the largest and
              with the smallest budget. Every lower bound is 0 for more than about 1e9 users.
            - With two categories the result is :class:`PersonalizedBits`, and with equal budgets :class:`Shuffled`; their
              bounds are tighter.

        {raises: If an argument lies outside its range, or the shapes differ.}

        Notes
        -----
        From about 10,000 users on (with 61 categories from 45,000 on), and with more than eight distinct budgets, the budgets of
        the privacy blanket are rounded up to one of 16 values, because its table would be too large.

        One eps took up to 31 s for three distinct budgets, 30,000 users and 1000 categories, and 15 s for four users with Gaussian
        noise of standard deviation 1/30.

        Examples
        --------
        >>> import numpy as np
        >>> from shufflebounds.shuffle import PersonalizedClones
        >>> eps = np.linspace(0.5, 2.0, 10000)
        >>> all_users = PersonalizedClones.randomized_response(eps, categories=2)
        >>> print(f"{all_users.epsilon(1e-5):.5f}")
        0.05414
        """
        categories = _validate.integer("categories", categories, 2)
        if categories == 2:
            budgets = _validate.real_array("eps", eps, 0, LARGEST_EXPONENT, open_low=True)
            with _validate.quiet():
                return PersonalizedBits(budgets, target=target, counts=counts)  # type: ignore[arg-type]
        return _guarantee(RandomizedResponseFamily(categories), partial(KaryResponse, categories), "randomized_response", "eps",
                          eps, target, counts, {"categories": categories})

    @classmethod
    def laplace(cls, eps: ArrayLike, *, target: int | None = None, counts: ArrayLike | None = None) -> PrivacyProfile:
        r"""Return the guarantee for users who add Laplace noise of scale 1/eps_i to a value in [0, 1].

        The bound is the smallest of those of three clone decompositions (description of the class) with :math:`w =
        1/(e^{\varepsilon_1}+1)`, where user 1 is the target. The first one, S1, has :math:`\lambda = 1` and, for users with
        :math:`\varepsilon_i \le \varepsilon_1`, the rates

        .. math:: r_i = \frac{\varepsilon_i}{\varepsilon_1}\frac{e^{\varepsilon_1-\varepsilon_i}}{e^{\varepsilon_1}+1};

        all other rates are 0. The second one, S2, has :math:`\lambda = (1+e^{-\varepsilon_1})/(1+e^{-\varepsilon_1/2})` and the
        rates of S1 times :math:`\lambda`. The third one uses only outputs in a window [-T, 1+T], on which the target's distribution
        has the mass :math:`\kappa`. It has :math:`\lambda = \kappa`, and positive rates for users with larger budgets, too:

        .. math:: r_i = \kappa \frac{\varepsilon_i}{\varepsilon_1}
            \frac{e^{-\varepsilon_i-(\varepsilon_i-\varepsilon_1)_+T}}{1+e^{-\varepsilon_1}}.

        Outputs outside of the window add :math:`\tfrac12 e^{-\varepsilon_1 T}(1-e^{\varepsilon-\varepsilon_1})_+` to delta. The
        bound is valid for every T; a search chooses T.

        Parameters
        ----------
        eps : array_like, shape (users,) or (groups,)
            Local budgets in nats, each in [1e-300, 700]; outputs are not clipped.
        target, counts
            As in :meth:`randomized_response`, where exceptions are listed, too.

        Returns
        -------
        PrivacyProfile
            As in :meth:`randomized_response`.

        Notes
        -----
        S1 is proven for every two values of the target in [0, 1], S2 and the third decomposition only for the values 0 and 1. For
        two values between 0 and 1 no violation was found in 17,000 cases, but there is no proof.

        Proof of S1: let d(z) be the distance of an output z from [0, 1], and :math:`\varepsilon_i \le \varepsilon_1`. The density
        of user i at z is at least :math:`\tfrac12 \varepsilon_i e^{-\varepsilon_i (1 + d(z))}`, and that of the target at most
        :math:`\tfrac12 \varepsilon_1 e^{-\varepsilon_1 d(z)}`. So the ratio of the two is at least
        :math:`(\varepsilon_i/\varepsilon_1) e^{-\varepsilon_i}`, which is :math:`r_i/(1-w)`. The ratio of any two output
        distributions of the target is at most :math:`e^{\varepsilon_1} = (1-w)/w`.

        The user with the largest budget need not be the worst target: users with less noise have few outputs in the tails, so they
        do not hide a user with a small budget.

        Examples
        --------
        >>> import numpy as np
        >>> from shufflebounds.shuffle import PersonalizedClones
        >>> eps = np.linspace(0.5, 2.0, 10000)
        >>> last = PersonalizedClones.laplace(eps, target=9999)
        >>> print(f"{last.epsilon(1e-5):.8f}")
        0.08494562
        """
        def alone(budget: float) -> LaplaceMechanism | None:
            # A scale of 1/eps would be rounded, and values in [0, eps] with noise of scale 1 have the same distributions.
            return LaplaceMechanism(1.0, budget) if budget >= 1e-12 else None

        return _guarantee(LaplaceFamily(), alone, "laplace", "eps", eps, target, counts, {})

    @classmethod
    def gaussian(cls, sigma: ArrayLike, *, target: int | None = None, counts: ArrayLike | None = None) -> PrivacyProfile:
        r"""Return the guarantee for users who add Gaussian noise of standard deviation sigma_i to a value in [0, 1].

        User 1 is the target. Only outputs in the window [1/2-T, 1/2+T] are used, on which the target's distribution has the mass
        :math:`\kappa`:

        .. math:: \delta(\varepsilon) \le \delta_{\mathrm{clone}}(\varepsilon) +
            \Bigl[\Phi\Bigl(\tfrac{1/2-T}{\sigma_1}\Bigr) - e^\varepsilon\Phi\Bigl(\tfrac{-1/2-T}{\sigma_1}\Bigr)\Bigr]_+

        Here :math:`\delta_{\mathrm{clone}}` is the formula of the class with :math:`\lambda = \kappa`, :math:`w =
        1/(e^{T/\sigma_1^2}+1)` and :math:`r_i = \kappa\,(1-w) \min R_i/\max(R_0, R_1)`, where the minimum is over the outputs in
        the window and the inputs of user i. The second term is delta of the outputs outside of the window. The bound is valid for
        every T; a search chooses T. It is proven for the target's values 0 and 1 only (for two values between them no violation was
        found).

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
        return _guarantee(GaussianFamily(), GaussianMechanism, "gaussian", "sigma", sigma, target, counts, {})


def _grouped(name: str, values: FloatArray, counts: ArrayLike | None, low: int = 0) -> tuple[FloatArray, FloatArray]:
    """Return the distinct values in increasing order, and the number of users with each of them."""
    if values.ndim != 1:
        raise ValueError(f"{name} has shape {values.shape}: it must be 1-D, one entry for each user or group")
    return distinct(values, None if counts is None else users_of_each(name, values, counts, low))


def _guarantee(
    family: Family, alone: Callable[[float], Randomizer | None], description: str, name: str, values: ArrayLike, target: int | None,
    counts: ArrayLike | None, parameters: dict[str, Any],
) -> PrivacyProfile:
    """Return the guarantee of the user at position `target` of `values`, or of every user if `target` is None.

    `values` are the budgets eps, or the standard deviations sigma of Gaussian noise, whose budget in the family of randomizers is
    1/sigma. ``alone(value)`` returns the randomizer of one value.
    """
    pure = name == "eps"
    # The terms of the bounds underflow for smaller budgets.
    low, high = (1e-300, LARGEST_EXPONENT) if pure else (0.03, 1e6)
    budgets = _validate.real_array(name, values, low, high)
    index = None if target is None else _validate.integer("target", target, 0, max(budgets.size - 1, 0))
    own = float(budgets.flat[index or 0])
    if (budgets == own).all() and (randomizer := alone(own)) is not None:
        # Users with one budget run one randomizer, for which the bounds of `Shuffled` are tighter.
        _, users = _grouped(name, budgets, counts, 1)
        return Shuffled(randomizer, int(users[0]))
    budgets, own = (budgets, own) if pure else (np.divide(1, budgets, out=budgets), 1 / own)
    population = Population(family, *_grouped(name, budgets, counts, 1))
    if index is None:
        return OfEveryUser(population, description, parameters, None)
    return OfOneUser(population, description, parameters, index, int(np.searchsorted(population.budgets, own)))
