"""Privacy amplification by shuffling for any local randomizer of a given pure budget: two clone bounds.

The bounds are those of Feldman, McMillan and Talwar (2021, 2023). For any number of users, each formula is computed with an upper
and a lower bound of its value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Self

import numpy as np

from shufflebounds._base import validate as _validate
from shufflebounds._base.docs import with_passages
from shufflebounds._base.evidence import Evidence, theorem
from shufflebounds._base.limits import LARGEST_EXPONENT, MANY
from shufflebounds._base.types import FloatArray
from shufflebounds._core import _binomial, _clones
from shufflebounds._engines.clones.clone_pair import ClonePair
from shufflebounds._losses.curves import curve_of_masses, mu_of_knots
from shufflebounds._losses.release import SINGLE, DominatingPairInfo, Releases, Sampling
from shufflebounds.mechanisms.ratio_bounded import PureLocal
from shufflebounds.profile.calibration import SHARE, least_count, one_of_releases
from shufflebounds.profile.chain import GroupInfo
from shufflebounds.profile.profile import PrivacyProfile
from shufflebounds.profile.sizing import fewest_users, largest_budget
from shufflebounds.shuffle.absent import AbsentUsers
from shufflebounds.tradeoff import Tradeoff
from shufflebounds.tradeoff.piecewise import Piecewise

__all__ = ["CLONE_SAMPLING", "Clones", "StrongerClones"]

CLONE_SAMPLING = Sampling(1e-5)
"""Run time of the delta of clone pairs: one value, a sum over the number of clones or an integral, takes about 1e-5 s."""


class _SharedBudget(ClonePair):
    """A clone pair with a finite budget, whose outcomes are enumerated for a trade-off function."""

    __slots__ = ()

    def tradeoff(self, upper: bool, log_tail: float = -100.0) -> Tradeoff | None:
        # All outcomes of the clone pair are enumerated for at most 512 users; their number grows with the square of the users.
        if self.users > MANY // 2:
            return None
        laws = self._listed_laws()
        error = 1e-13 - 64 * np.finfo(float).eps * np.where(laws > -np.inf, laws, 0.0)
        place = np.argsort(laws[0] - laws[1], kind="stable")
        low, high = ([law[place] for law in np.minimum(laws + sign * error, 0.0)] for sign in (-1, 1))
        return curve_of_masses(low, high, upper=upper)

    def mu(self, upper: bool) -> float | None:
        # For a large budget mu depends on values of 1 - delta that are below the rounding error of delta, so samples of delta give
        # a gap of 0.4 % at a budget of 30, and of 10 % at 50.
        curve = self.tradeoff(not upper) if self.local_eps > 10 else None
        return mu_of_knots(curve._form.points, upper=upper) if curve and isinstance(curve._form, Piecewise) else None

    def mu_limit(self) -> float:
        # delta does not increase with the number of users, so mu is at most that of the largest population that is enumerated.
        listed = _SharedBudget(min(self.users, float(MANY // 2)), self.rate, self.local_eps).mu(True)
        return math.inf if listed is None else listed

    def _listed_laws(self) -> FloatArray:
        """Return the log probabilities of all outcomes (number of clones, number of ones) under P and under Q, as two rows."""
        users = int(self.users)
        clones = np.arange(users, dtype=np.float64)
        outcomes = np.arange(2, users + 2)
        counts = np.repeat(clones, outcomes)
        ones = np.arange(counts.size) - np.repeat(np.cumsum(outcomes) - outcomes, outcomes)
        log_count = _binomial.binom_logpmf(clones, self.users - 1, self.rate)[counts.astype(np.int64)]
        stay, step = (_binomial.binom_logpmf(k, counts, 0.5) for k in (ones, ones - 1))
        keep = -math.log1p(math.exp(-self.local_eps))
        return np.array([log_count + np.logaddexp(zero + stay, one + step)
                         for zero, one in ((keep - self.local_eps, keep), (keep, keep - self.local_eps))])


@with_passages
@dataclass(frozen=True, repr=False)
class _UniformClones(PrivacyProfile, AbsentUsers):
    """Every user runs the same eps0-LDP randomizer; the number of clones is Bin(users - 1, rate)."""

    users: int
    local_eps: float

    lower_theorem: ClassVar[str] = "the formula's value, from below: a randomizer may have a smaller delta"
    _covers_many: ClassVar[bool] = True
    neighbours: ClassVar[str] = "replace one user's input; the analyst sees the shuffled messages"

    def __post_init__(self) -> None:
        _validate.integer_field(self, "users", 1)
        _validate.local_budget_field(self, "local_eps", LARGEST_EXPONENT)
        self._check_absent(self.users)

    _is_stronger_clones: ClassVar[bool]

    def describe(self) -> DominatingPairInfo:
        if self.users == 1:
            # Without other users there is no clone: the pair is that of the local guarantee, whose outcomes are listed.
            return PureLocal(self.local_eps).describe()
        # One more user adds one possible clone. A clone is a fair coin, and adding it is post-processing, so delta does not
        # increase with the number of users.
        ordered = (type(self), self.local_eps), float(self.users)
        return DominatingPairInfo(self.closed_forms().log_delta, self.local_eps, None, CLONE_SAMPLING, attained=SINGLE,
                                  releases=Releases(ordered=ordered))

    def describe_group(self, size: int) -> GroupInfo:
        # The lower bound is attained by randomized response of 2 or 3 values, which has this budget.
        return PureLocal(self.local_eps).shuffled(self.users).describe_group(size)

    def claims(self, eps: float, *, upper: bool) -> Iterable[Evidence]:
        yield from super().claims(eps, upper=upper)
        if self._is_stronger_clones and upper:
            yield theorem("Coq verifies this theorem for finitely many messages", "tests/proofs/StrongerClones.v")

    def closed_forms(self) -> _SharedBudget:
        return _SharedBudget(float(self.users), _clones.clone_rate(self.local_eps, self._is_stronger_clones), self.local_eps)

    @classmethod
    def calibrate(
        cls, *, eps: float, delta: float, users: int | None = None, local_eps: float | None = None, releases: int = 1,
        devices: int = 1, colluding: int = 0, missing: int = 0,
    ) -> Self:
        """Return the bound with the smallest number of users for a local budget, or with the largest budget for a number of users.

        Parameters
        ----------
        eps : float
            Target privacy loss in nats, > 0.
        delta : float
            Target failure probability in (0, 1).
        users : int, optional
            Number of users; the largest local budget for it is returned, to a relative 1e-9.
        local_eps : float, optional
            Local budget; the smallest number of users for it is returned. Give exactly one of the two.
        {releases}
        {absent}

        Returns
        -------
        Clones or StrongerClones
            Its upper delta at `eps` was evaluated and is at most `delta`.

        {raises: If an argument lies outside its range, or both or none of `users` and `local_eps` are given.}
        InfeasibleError
            If 2**53 users are too few.

        Examples
        --------
        >>> from shufflebounds import shuffle
        >>> shuffle.StrongerClones.calibrate(eps=0.1, delta=1e-6, local_eps=2.0).users
        12851
        >>> print(f"{shuffle.StrongerClones.calibrate(eps=0.1, delta=1e-6, users=10**5).local_eps:.6f}")
        3.707878
        """
        if (users is None) == (local_eps is None):
            raise ValueError(f"users={users!r} and local_eps={local_eps!r}: give exactly one of the two, users for the largest "
                             "local budget or local_eps for the fewest users")
        build = partial(cls, colluding=colluding, missing=missing)
        if users is None:
            budget, absent = float(local_eps or 0.0), build(_validate.MAX_COUNT, 1.0)
            one: Callable[..., Self] = partial(
                fewest_users, lambda n: build(n + absent.colluding + absent.missing, budget), least=devices)
        else:
            count = users
            one = partial(largest_budget, lambda budget: build(count, budget))
        if releases == devices == 1:
            return one(eps=eps, delta=delta)
        chosen = one_of_releases(one, releases, devices, eps=eps, delta=delta)
        if users is not None or devices > 1:
            return chosen
        # The eps of one release has a relative tolerance of SHARE, so fewer users may meet the target. For several devices, a value
        # of delta takes about a second.
        away, budget = chosen.colluding + chosen.missing, chosen.local_eps
        most = chosen.users - away
        fewest = least_count(lambda n: build(n + away, budget).self_compose(releases), eps, delta,
                             low=max(1, math.floor(most * (1 - 4 * SHARE))), high=most, guess=most)
        return chosen if fewest is None else build(fewest + away, budget)


@with_passages
@dataclass(frozen=True, repr=False)
class Clones(_UniformClones):
    r"""The clone bound of 2021 for every local randomizer (Feldman, McMillan, Talwar); :class:`StrongerClones` is never larger.

    Each other user sends, with probability :math:`e^{-\varepsilon_0}`, a *clone*: a message drawn as the target's, for one of the
    target's two inputs at random. The analyst knows the number c of clones:

    .. math::
        \delta(\varepsilon) = \sum_c \Pr[C = c]\, H_{e^\varepsilon}(P_c \,\|\, Q_c), \qquad
        C \sim \mathrm{Bin}(n-1, e^{-\varepsilon_0}).

    Here H is the hockey-stick divergence, :math:`P_c` is the distribution of :math:`A + \mathrm{Ber}(1-w)` and :math:`Q_c` that of
    :math:`A + \mathrm{Ber}(w)`, with :math:`A \sim \mathrm{Bin}(c, 1/2)` and :math:`w = 1/(e^{\varepsilon_0}+1)`.

    Parameters
    ----------
    {population}
    {absent}

    Notes
    -----
    Neighbours: one user's input is replaced; the analyst sees the multiset of messages. The formula is an upper bound of delta for
    any pure eps0-LDP randomizer that all users share. ``bound="upper"`` and ``bound="lower"`` are bounds of the formula's value.
    Use :class:`StrongerClones` instead: its formula is never larger, and proven for the same randomizers.

    Up to a few million users the sum over the number of clones is computed term by term. The upper and the lower bound of log
    delta then differ by about 1e-12, or a few ulp of log delta if that is larger. For more users the sum is a Fourier integral,
    and the gap in log delta is at most 1e-9 (1 + abs(log delta)). :meth:`epsilon` is within 1e-12 of the point where its bound of
    delta equals `delta`.

    Up to 512 users :meth:`tradeoff` has all vertices of the trade-off function that belongs to the formula, to 1e-12. For more
    users it is computed from delta, with a relative gap of 1e-3 at delta = 1e-6.

    A term of the sum takes 4 ns, the Fourier integral 5 microseconds for any number of users.

    See Also
    --------
    clones_epsilons, clones_log_deltas : the same numbers for arrays of parameters.

    References
    ----------
    Feldman, V., McMillan, A., Talwar, K. Hiding Among the Clones. FOCS 2021, Theorem 3.1.

    Examples
    --------
    >>> from shufflebounds import shuffle
    >>> clones = shuffle.Clones(users=10**6, local_eps=4.0)
    >>> print(f"{clones.epsilon(1e-8):.12f}")
    0.064196843265
    """

    theorem: ClassVar[str] = (
        "Feldman, McMillan, Talwar 2021, Theorem 3.1: upper bound, proven for every pure eps0-LDP randomizer shared by all users"
    )
    proof: ClassVar[str] = "docs/protocols/clones"

    _is_stronger_clones: ClassVar[bool] = False


@with_passages
@dataclass(frozen=True, repr=False)
class StrongerClones(_UniformClones):
    r"""The stronger clone bound (Feldman, McMillan and Talwar 2023), proven for every pure local randomizer.

    The formula is that of :class:`Clones` with :math:`C \sim \mathrm{Bin}(n-1, 2/(e^{\varepsilon_0}+1))`. Its value equals
    :math:`\tfrac1n \mathbb{E}(X_1 + \cdots + X_n)_+` for independent :math:`X_i` that are :math:`e^{\varepsilon_0} - e^\varepsilon`
    or :math:`1 - e^{\varepsilon + \varepsilon_0}` with probability :math:`1/(e^{\varepsilon_0}+1)` each, and 0 otherwise.

    Parameters
    ----------
    {population}
    {absent}

    Notes
    -----
    This library proves the bound for every eps0-LDP randomizer that all users share, for arbitrary inputs and adaptive protocols;
    if all other users have the same input, the statement is due to Shvets (arXiv 2603.21197). Proof in short: let :math:`R_0, R_1`
    be the target's two output distributions. The measure :math:`m = \max(R_0, R_1)/e^{\varepsilon_0}` is at most every output
    distribution, so it is a privacy blanket. The variable X of :class:`Shuffled` for this m is smaller in the convex order than
    :math:`X_i`. :doc:`/theorems/stronger-clones` has the whole proof and its
    limits. Lemma 3.5 of the published proof is false; the erratum of the paper claims the theorem for a restricted class of
    randomizers. Use this class if only the budget of the randomizer is known; otherwise the bound of :class:`Shuffled` is smaller.

    Neighbours, gap and run time are those of :class:`Clones`.

    References
    ----------
    Feldman, V., McMillan, A., Talwar, K. Stronger Privacy Amplification by Shuffling for Renyi and Approximate Differential
    Privacy. SODA 2023, Theorem 3.2, with the erratum of arXiv version 2.

    Examples
    --------
    >>> from shufflebounds import shuffle
    >>> clones = shuffle.StrongerClones(users=10**6, local_eps=4.0)
    >>> print(f"{clones.epsilon(1e-8):.12f}")
    0.045072962026
    >>> print(f"{clones.log_delta(3.0):.6f}")
    -15485.895977
    """

    theorem: ClassVar[str] = (
        "formula of Feldman, McMillan, Talwar 2023, Theorem 3.2, whose published proof has a gap; proved here "
        "(docs/theorems/stronger-clones): upper bound for every pure eps0-LDP randomizer shared by all users"
    )
    proof: ClassVar[str] = "docs/theorems/stronger-clones"

    _is_stronger_clones: ClassVar[bool] = True
