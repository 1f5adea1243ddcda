"""Shuffled randomized response on bits with personalized flip probabilities."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shufflebounds._base import validate as _validate
from shufflebounds._base.caches import cached_property, kept
from shufflebounds._base.docs import with_passages
from shufflebounds._base.evidence import Evidence
from shufflebounds._base.limits import ALL_OUTCOMES, DEEPEST, LARGEST_EXPONENT, MANY, NEGLIGIBLE, SAME_LOG, TABLE_SIZE, TINY
from shufflebounds._base.search import bracket
from shufflebounds._base.types import EqualByKey, FloatArray, IntervalArray, at_each, largest
from shufflebounds._engines.bits.curve_of_sum import MOST_LISTED, BitTable, atoms_of_sum, curve_of_sum
from shufflebounds._engines.bits.personal_sum import SMALLEST_BUDGET, BernoulliGroups, by_kind, distinct
from shufflebounds._engines.clones.clone_families import RandomizedResponseFamily
from shufflebounds._engines.clones.population import Population
from shufflebounds._engines.datasets.weighted_labels import WeightedLabels
from shufflebounds._losses.atoms import LossAtoms
from shufflebounds._losses.closed_forms import ClosedForms
from shufflebounds._losses.release import SINGLE, Attained, DominatingPairInfo, Losses, Sampling
from shufflebounds._losses.sampled_profile import DEPTH
from shufflebounds.mechanisms.randomized_response import RandomizedResponse
from shufflebounds.profile import DominatingPair, PrivacyProfile
from shufflebounds.profile.between import Between
from shufflebounds.profile.chain import GroupInfo
from shufflebounds.shuffle.guarantees import BetweenBudgets, CloneBound, users_of_each
from shufflebounds.shuffle.shuffled import Shuffled
from shufflebounds.tails._poisson_tables import WideWindowError, bits_window
from shufflebounds.tradeoff import Tradeoff

__all__ = ["PersonalizedBits"]


class _OneTarget(ClosedForms):
    """The sum of all bits if the target's bit is 0 (P) and if it is 1 (Q), with tables that are used for many eps."""

    def __init__(self, budget: float, law: BernoulliGroups) -> None:
        self.budget, self.law = budget, law
        log_keep = -math.log1p(math.exp(-budget))
        self._bit = log_keep, log_keep - budget

    def log_delta(self, eps: FloatArray) -> IntervalArray:
        return at_each(partial(self.law.sides, self.budget), eps)

    @kept(2)
    def table(self, log_tail: float) -> BitTable | None:
        """Return a table for many eps, or None if the sum of the bits has too many values."""
        if not self.budget > SMALLEST_BUDGET or not self.law.arrays[0].size:
            return None
        try:
            _, window, error = bits_window(*self.law.arrays, log_tail=log_tail, most=TABLE_SIZE // 8)
        except WideWindowError:
            return None
        return BitTable(self.budget, window, error, log_tail)

    def many_log_delta(self, eps: FloatArray) -> IntervalArray:
        """Return the same bounds as `log_delta`, from tables that serve all eps, with a gap of at most 1e-8 of log delta.

        Curves and divergences evaluate a few hundred eps; a call of the kernel for each of them would take 25 ns per user.
        """
        lower, upper = np.full(eps.size, -np.inf), np.full(eps.size, -np.inf)
        missing = np.flatnonzero(eps < self.budget)
        # Most curves end at delta = e^(-DEPTH^2/2), for which the first table suffices. The second one is longer.
        for log_tail in (-0.5 * DEPTH**2 - NEGLIGIBLE, DEEPEST):
            table = self.table(log_tail) if missing.size else None
            if table is None:
                break
            lower[missing], upper[missing] = table.log_delta(eps[missing])
            # The table gives no bound if the truncated mass is not negligible, or if the difference in the formula may lose digits.
            missing = missing[~(upper[missing] - lower[missing] < 10 * SAME_LOG * (1 - upper[missing]))]
        if missing.size:
            lower[missing], upper[missing] = self.log_delta(eps[missing])
        return IntervalArray(lower, upper)

    def tradeoff(self, upper: bool, log_tail: float = -100.0) -> Tradeoff | None:
        # The formula also holds for the reversed pair, which is this pair with 0 and 1 exchanged in all bits.
        return curve_of_sum(*self.law.arrays, *self._bit[::-1], log_tail, upper=upper)

    def atoms(self, log_tail: float) -> LossAtoms | None:
        """Return all outcomes, at any `log_tail`."""
        return atoms_of_sum(*self.law.arrays, self._bit, self._bit[::-1], ALL_OUTCOMES) if self.budget > 0 else None


@dataclass(frozen=True, eq=False)
class _PersonalPair(DominatingPair):
    """The distributions of the sum of all bits if the target's bit is 0 (P) and if it is 1 (Q).

    `law` is the distribution of the sum of the other users' bits.
    """

    budget: float
    law: BernoulliGroups = field(repr=False)

    @cached_property
    def _sum(self) -> _OneTarget:
        return _OneTarget(self.budget, self.law)

    @cached_property
    def _reversed(self) -> Self:
        pair = type(self)(self.budget, self.law.mirrored())
        pair.__dict__["_reversed"] = self
        return pair

    def reverse(self) -> Self:
        pair: Self = self._reversed
        return pair

    def describe(self) -> DominatingPairInfo:
        one, _, counts = self.law.arrays
        few = (one.size if counts is None else counts.sum()) <= MOST_LISTED and one.size
        return DominatingPairInfo(self._sum.many_log_delta, self.budget, sampling=Sampling(1e-5),
                                  losses=Losses(self._sum.atoms if few else None), attained=SINGLE)

    def closed_forms(self) -> _OneTarget:
        return self._sum


class _GivenPairs(ClosedForms):
    """Bounds for a given dataset: the largest delta of the pairs, which are those of the targets that may be the worst."""

    def __init__(self, pairs: tuple[DominatingPair, ...]) -> None:
        self.pairs = pairs

    def log_delta(self, eps: FloatArray) -> IntervalArray:
        return largest(pair._log_delta(eps) for pair in self.pairs)


class _EveryDataset(BetweenBudgets):
    """Bounds of the maximum over all datasets: the lower bound is that of the dataset of zeros or of the least budget, the upper
    bound is the clone bound or that by weighted labels.
    """

    def __init__(self, protocol: PersonalizedBits) -> None:
        # Clone bounds need positive budgets, so budgets of 0 are raised to TINY. A larger budget only weakens privacy, and the
        # result remains an upper bound.
        budgets = np.maximum(protocol.local_eps, TINY)
        self.users = protocol.users
        self.population = Population(RandomizedResponseFamily(2), *distinct(budgets.copy(), protocol.counts))
        self.place = int(np.searchsorted(self.population.budgets, budgets[protocol._worst[0]]))
        super().__init__(protocol._zeros, CloneBound(self.population, self.place), protocol._budget)
        if protocol.local_eps.min() < TINY:
            # With a raised budget, delta as if all users had the least budget would not be a lower bound.
            self.least = None

    @cached_property
    def labels(self) -> WeightedLabels | None:
        """The bound over all datasets by weighted labels, if it is used."""
        # A larger budget means less flipping, and by joint convexity a further flip of any bit, the target's included, does not
        # increase the largest delta over all datasets. So the bound for a target of the largest budget is valid for every target.
        if self.users == 1:
            return None
        bound = WeightedLabels.of_bits(self.pure, *self.population.without(self.place))
        return bound if bound.offered else None

    def further(self, eps: float, upper: bool) -> dict[str, float]:
        known = self.labels if upper else None
        return super().further(eps, upper) if known is None else {"weighted labels": known.log_delta(eps)}

    def side(self, eps: FloatArray, upper: bool) -> FloatArray:
        bound = super().side(eps, upper)
        return bound if self.labels is None or not upper else np.minimum(bound, [self.labels.log_delta(e) for e in eps.tolist()])

    def epsilon(self, delta: float, upper: bool) -> float | None:
        if self.users <= MANY:
            return None
        # The two bounds of eps are searched separately. The upper bound uses the clone bound of delta (or the bound by weighted
        # labels), the lower bound uses delta of the dataset in which all bits are equal.
        searched, labels = super().epsilon(delta, upper), self.labels
        if not upper or labels is None or searched is None or not 0 < delta < 1:
            return searched

        def meets(eps: float) -> bool:
            return labels.log_delta(eps) <= math.log(delta)

        return bracket(meets, 0.0, searched, rtol=1e-9)[1] if searched < math.inf and meets(searched) else searched


@with_passages
@dataclass(frozen=True, eq=False)
class PersonalizedBits(EqualByKey, PrivacyProfile):
    r"""Every user's bit is flipped with a probability of their own; the analyst sees the shuffled bits, that is their sum.

    User i has the budget :math:`\varepsilon_i` and the flip probability :math:`q_i = 1/(e^{\varepsilon_i}+1)`. Let W be the sum of
    the other users' flipped bits, which has a Poisson-binomial distribution, and q = 1 - p the target's flip probability. Then

    .. math:: \delta(\varepsilon) = \max_k\; (p - q e^\varepsilon) \Pr[W = k] - (e^\varepsilon - 1) \Pr[W < k]

    The formula is the divergence of (P, Q), the distributions of the sum for the target's bits 0 and 1; the best test is that the
    sum is at most k. For (Q, P) exchange 0 and 1 in all bits.

    Parameters
    ----------
    local_eps : array_like of float, shape (users,) or (groups,)
        Budget of each user in nats, in [0, 700].
    bits : array_like of 0 and 1, of the shape of local_eps, optional
        The users' bits. By default the guarantee is for all datasets. The target's own bit has no effect; with `counts`, the other
        users of the target's group have the bit of the group.
    target : int, optional
        Index of the target user in `local_eps`; None for the maximum over all users.
    counts : array_like of int, of the shape of local_eps, optional
        Number of users with each budget (and bit), at least 1; 1 each by default. The total is at most 2**53.

    Notes
    -----
    Neighbours: the target's bit is replaced. For a given dataset delta is exact for the protocol; the gap in log delta is about
    1e-12 (1 + \|log delta\|).

    With ``target=None`` the bounds are those of the maximum over users. Among users with the same bit, the one with the largest
    budget has the largest delta (docs/personalized), so for a given dataset at most two users are evaluated, and for all datasets
    one.

    For all datasets: if all budgets are equal, the bounds are those of :class:`Shuffled`. Otherwise the upper bound is the
    smallest of three:

    - the clone bound with :math:`r_i = q_i` (as in :class:`PersonalizedClones`);
    - for budgets up to 12, a bound by weighted labels (theorem w of docs/theorems/weighted-labels), for which budgets are
      rounded up to one of 200 values;
    - delta as if all users had the largest budget. It is an upper bound because a further flip of a bit does not increase the
      largest delta over all datasets, by joint convexity (docs/personalized).

    The lower bound is the larger of two: delta of the dataset in which all other users' bits are equal, and delta as if all users
    had the least budget. With budgets from 0.5 to 2 and delta = 1e-6, the two bounds of eps differ by 0.2 % for 1e4 users, and by
    18 % for 1000 users, where the clone bound is the smallest upper bound. The worst dataset depends on eps, and its bits are not
    always all equal: :meth:`ascend` searches for a dataset with a larger delta, which gives a larger lower bound.

    Messages do not reveal their senders, so there is no unbiased estimate of the number of ones if the flip probabilities differ.

    References
    ----------
    Y. Liu, S. Zhao, L. Xiong, Y. Liu, H. Chen. Echo of neighbors / personalised privacy amplification by shuffling. The rates of
    the clone bound there are replaced by proven ones.

    V. Feldman, A. McMillan, K. Talwar. Stronger Privacy Amplification by Shuffling. SODA 2023 (the clone bound).

    Examples
    --------
    >>> import numpy as np
    >>> from shufflebounds import shuffle
    >>> budgets = np.linspace(0.5, 2.0, 1000)
    >>> known = shuffle.PersonalizedBits(budgets, bits=np.zeros(1000), target=999)
    >>> print(f"{known.epsilon(1e-6):.6f}")
    0.234612
    """

    local_eps: FloatArray
    bits: FloatArray | None = field(default=None, kw_only=True)
    target: int | None = field(default=None, kw_only=True)
    counts: FloatArray | None = field(default=None, kw_only=True)

    _prepares: ClassVar[bool] = True

    @property
    def theorem(self) -> str:  # type: ignore[override]
        """What is proven for the upper bound, or for both bounds."""
        return ("the smallest of clones with r_i = 1/(e^eps_i + 1), weighted labels and the largest budget (docs/personalized)"
                if self.bits is None else "exact for the protocol and the given dataset")

    @property
    def lower_theorem(self) -> str:  # type: ignore[override]
        """What is proven for the lower bound; "" if `theorem` is about both bounds."""
        return "the larger delta of the dataset of zeros and of the least budget" if self.bits is None else ""

    @property
    def neighbours(self) -> str:  # type: ignore[override]
        """The neighbouring relation, with the target and the dataset if the guarantee is for one target or one dataset only."""
        who = "one user's" if self.target is None else "the target's"
        only = "" if self.bits is None else " where the other users have the given bits"
        return f"replace {who} bit{only}; the analyst sees the shuffled bits"

    def __post_init__(self) -> None:
        # Equality compares bytes: adding 0.0 replaces -0.0 by 0.0.
        budgets = _validate.local_budgets("local_eps", self.local_eps, 0, LARGEST_EXPONENT) + 0.0
        if budgets.ndim != 1:
            raise ValueError(f"local_eps has shape {budgets.shape}: it must be one-dimensional, one budget for each user")
        budgets.setflags(write=False)
        object.__setattr__(self, "local_eps", budgets)
        if self.bits is not None:
            bits = _validate.bits("bits", self.bits).astype(np.float64)
            if bits.shape != budgets.shape:
                raise ValueError(f"bits has shape {bits.shape}: it must be {budgets.shape}, that of local_eps")
            bits.setflags(write=False)
            object.__setattr__(self, "bits", bits)
        if self.target is not None:
            _validate.integer_field(self, "target", 0, budgets.size - 1)
        if self.counts is not None:
            counts = users_of_each("local_eps", budgets, self.counts, 1)
            counts.setflags(write=False)
            object.__setattr__(self, "counts", counts)

    def _key(self) -> tuple[Any, ...]:
        bits, counts = (None if array is None else array.tobytes() for array in (self.bits, self.counts))
        return self.local_eps.tobytes(), bits, self.target, counts

    def __repr__(self) -> str:
        data = "None" if self.bits is None else f"<{int(self.bits.sum() if self.counts is None else self.bits @ self.counts)} ones>"
        counts = "" if self.counts is None else f", counts=<{self.users} users>"
        return f"PersonalizedBits(<{self.local_eps.size} budgets>, bits={data}, target={self.target}{counts})"

    @property
    def users(self) -> int:
        """Number of users, the target included."""
        return self.local_eps.size if self.counts is None else int(self.counts.sum())

    @property
    def _limited_to(self) -> str:
        return "one dataset" if self.bits is not None else "one user" if self.target is not None else ""

    @kept(2)
    def pair(self, target: int | None = None) -> DominatingPair:
        """Return the pair (P, Q) of distributions of the sum for the target's bits 0 and 1, in the given dataset.

        Parameters
        ----------
        target : int, optional
            Index of the target in `local_eps`; that of the mechanism by default.

        Returns
        -------
        DominatingPair

        {raises: If `bits` or the target is None, or the target lies outside 0..users - 1 (with `counts`: 0..groups - 1).}
        """
        if self.bits is None:
            raise ValueError("bits=None must be a dataset: give one 0 or 1 for each user")
        chosen = self.target if target is None else target
        if chosen is None:
            raise ValueError("target=None must be the index of a user")
        chosen = _validate.integer("target", chosen, 0, self.local_eps.size - 1)
        if self.counts is None:
            others = np.arange(self.local_eps.size) != chosen
            kinds = by_kind(self.local_eps[others], self.bits[others])
        else:
            kinds = by_kind(self.local_eps, self.bits, self.counts - (np.arange(self.counts.size) == chosen))
        return _PersonalPair(float(self.local_eps[chosen]), BernoulliGroups.of(*kinds))

    def pairs(self) -> tuple[DominatingPair, ...]:
        if self.bits is None:
            return super().pairs()
        return tuple(order for pair in map(self.pair, self._worst) for order in (pair, pair.reverse()))

    @cached_property
    def _worst(self) -> tuple[int, ...]:
        """Indices of targets, one of which has the largest delta: for each bit in the dataset, the user with the largest budget.

        Over all datasets, the user with the largest budget has the largest delta. docs/personalized has the proof. The target with
        the largest budget comes first: compositions use its pair for their lower bounds.
        """
        if self.target is not None:
            return (self.target,)
        bits = np.zeros(self.local_eps.size) if self.bits is None else self.bits
        found = [int(np.argmax(np.where(bits == bit, self.local_eps, -1.0))) for bit in np.unique(bits)]
        return tuple(sorted(found, key=lambda target: -self.local_eps[target]))

    @property
    def _budget(self) -> float:
        return float(self.local_eps[list(self._worst)].max())

    @property
    def _zeros(self) -> Self:
        """The mechanism with the dataset in which all bits are 0."""
        return type(self)(self.local_eps, bits=np.zeros(self.local_eps.size), target=self._worst[0], counts=self.counts)

    def claims(self, eps: float, *, upper: bool) -> Iterable[Evidence]:
        return super().claims(eps, upper=upper) if self._shuffled is None else self._shuffled.claims(eps, upper=upper)

    @cached_property
    def _shuffled(self) -> Shuffled | None:
        """The same protocol as `Shuffled` randomized response, if all budgets are equal and no dataset is given; else None."""
        if self.bits is not None or not self.local_eps[0] > 0 or (self.local_eps != self.local_eps[0]).any():
            return None
        return Shuffled(RandomizedResponse(float(self.local_eps[0])), self.users)

    def describe(self) -> DominatingPairInfo:
        if self._shuffled is not None:
            return self._shuffled.describe()
        # delta of any target in any dataset is a lower bound. The dataset in which all bits are 0 is often close to the worst case.
        pairs = (self if self.bits is not None else self._zeros).pairs()
        if isinstance(forms := self._closed, _EveryDataset):
            return DominatingPairInfo(forms.log_delta, self._budget, sampling=Sampling(5e-2, 0.3),
                                      attained=Attained(profiles=lambda: pairs))
        sides = [pair._pair_info().hockey_stick for pair in pairs]
        return DominatingPairInfo(lambda eps: largest(side(eps) for side in sides), self._budget, sampling=Sampling(1e-4, 0.3),
                                  attained=Attained(all_pairs=True, profiles=lambda: pairs))

    def closed_forms(self) -> ClosedForms:
        if self._shuffled is not None:
            return Between(self._shuffled, self._shuffled, self._budget)
        return _EveryDataset(self) if self.bits is None else _GivenPairs(self.pairs())

    def describe_group(self, size: int) -> GroupInfo:
        return super().describe_group(size) if self._shuffled is None else self._shuffled.describe_group(size)

    def ascend(self, eps: float, *, steps: int = 100) -> Self:
        """Return the mechanism with a dataset of large delta at `eps`, found by greedy ascent.

        Parameters
        ----------
        eps : float
            Privacy loss in nats, finite and >= 0, at which delta is increased.
        steps : int
            Largest number of changed bits, 1 to 10**6.

        Returns
        -------
        PersonalizedBits
            With `bits` set. Its lower delta at `eps` is a lower bound over all datasets, and at least that of the first dataset.

        {raises: If the target is None, `counts` is given, or an argument lies outside its range.}

        Notes
        -----
        The search starts from the given dataset, or from all zeros. Each step changes the bit whose change increases delta the most
        (users of equal budget and bit are equivalent). It ends when no change increases delta; this need not be the maximum.

        Examples
        --------
        >>> import numpy as np
        >>> from shufflebounds import shuffle
        >>> bits = shuffle.PersonalizedBits(np.log([27 / 5, 27 / 10, 49 / 10, 12 / 5]), target=0)
        >>> worse = bits.ascend(0.0)
        >>> worse.delta(0.0) >= bits.delta(0.0, bound="lower")
        True
        """
        eps = _validate.real("eps", eps, 0)
        steps = _validate.integer("steps", steps, 1, 10**6)
        if self.target is None:
            raise ValueError("target=None must be the index of a user")
        if self.counts is not None:
            raise ValueError("counts must be None: give one budget for each user")
        bits = np.zeros(self.local_eps.size) if self.bits is None else self.bits.copy()

        def value(trial: FloatArray) -> float:
            return type(self)(self.local_eps, bits=trial, target=self.target)._log_side_at(eps, upper=False)

        best = value(bits)
        for _ in range(steps):
            others = np.arange(bits.size) != self.target
            _, alike = np.unique(np.stack([self.local_eps[others], bits[others]]), axis=1, return_index=True)
            trials = []
            for i in np.flatnonzero(others)[alike]:
                trial = bits.copy()
                trial[i] = 1 - trial[i]
                trials.append((value(trial), trial))
            if not trials or max(t[0] for t in trials) <= best:
                break
            best, bits = max(trials, key=lambda t: t[0])
        return type(self)(self.local_eps, bits=bits, target=self.target)

    def randomize(self, values: ArrayLike, rng: Any = None, *, part: ArrayLike | None = None) -> NDArray[np.int8]:
        """Return one flipped bit for each user, in the order of the users, for all users or for a part of them.

        Parameters
        ----------
        values : array_like of 0 and 1
            The users' bits, one for each user, or for each index in `part`.
        {rng}
            Several calls need different seeds, because equal seeds give equal noise.
        part : array_like of int, optional
            Indices of the users to whom the bits `values` belong; all users by default. With `counts`, the users of each group
            follow those of the group before.

        Returns
        -------
        ndarray of int8
            One bit for each user. A shuffler must permute the bits of all users together before the analyst sees them.

        {raises: If `values` has another shape or contains anything but 0 and 1, or `part` anything but users, or `rng` is bad.}
        """
        bits = _validate.bits("values", values)
        places = np.arange(bits.size) if part is None else _validate.labels("part", part, self.users)
        if part is None and bits.shape != (self.users,):
            raise ValueError(f"values has shape {bits.shape}: it must be ({self.users},), one bit for each user; "
                             "part=... selects a part of the users")
        groups = places if self.counts is None else np.searchsorted(np.cumsum(self.counts), places, side="right")
        budgets = self.local_eps[groups]
        if bits.shape != budgets.shape:
            raise ValueError(f"values has shape {bits.shape}: it must be {budgets.shape}, one bit for each user of the part")
        flips = _validate.generator(rng).random(bits.size) * (1 + np.exp(budgets)) < 1
        return np.asarray(bits ^ flips)

    def aggregate(self, messages: ArrayLike) -> int:
        """Return the number of ones, which is what the analyst sees.

        If the messages come in several batches, add the results of the batches.

        Parameters
        ----------
        messages : array_like of 0 and 1
            As :meth:`randomize` returns them, in any order; empty for none.

        Returns
        -------
        int

        {raises: If `messages` contains anything but 0 and 1.}
        """
        return int(_validate.bits("messages", messages).sum(dtype=np.int64))
