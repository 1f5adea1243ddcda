"""Profiles made from privacy loss distributions of dp-accounting."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from shufflebounds._base import validate as _validate
from shufflebounds._base.caches import cached_property
from shufflebounds._base.docs import with_passages
from shufflebounds._base.evidence import Evidence, Status
from shufflebounds._base.types import ULP, FloatArray
from shufflebounds._losses.atoms import LossAtoms
from shufflebounds._losses.closed_forms import ClosedForms
from shufflebounds._losses.complete_lists import CompleteLists
from shufflebounds._losses.curves import breakpoints
from shufflebounds._losses.release import DominatingPairInfo
from shufflebounds.profile import DominatingPair
from shufflebounds.profile.profile import PrivacyProfile, _ListedPair, largest_of

__all__ = ["AccountingProfile", "from_dp_accounting"]


_GIVEN = Evidence("the losses of dp-accounting, as given, are those of the mechanism", Status.OPEN, "docs/interop")


def _direction(log_p: Any, log_q: Any, forward: bool) -> _LossPair:
    """Return a saved direction, after a check of its log masses."""
    both = []
    for name, value in (("log_p", log_p), ("log_q", log_q)):
        array = _validate.floats(name, value, "a number below inf")
        if array.ndim != 1 or not (array < math.inf).all():
            raise ValueError(f"{name}={_validate.short_repr(value)} must be a list of numbers below inf")
        both.append(array)
    if both[0].shape != both[1].shape or (np.maximum(*both) == -math.inf).any() or not (both[0] > -math.inf).any():
        raise ValueError("log_p and log_q must have as many entries as each other, and log_p some mass; every outcome must be "
                         "possible under one of the two distributions")
    if not isinstance(forward, bool):
        raise ValueError(f"forward={_validate.short_repr(forward)} must be True or False")
    return _LossPair(tuple(both[0].tolist()), tuple(both[1].tolist()), forward)


@dataclass(frozen=True, repr=False)
class _LossPair(_ListedPair):
    """One direction of a privacy loss distribution.

    The given probabilities of the losses are not changed, even if they do not sum to 1. Their sum under Q may be far above 1. In
    the reversed pair they are divided by this sum if it is above 1, because no delta exceeds 1.
    """

    forward: bool = True

    _saved_as: ClassVar[tuple[str, Callable[..., DominatingPair]]] = "from_dp_accounting", _direction
    theorem: ClassVar[str] = "hockey-stick divergence of one direction of a privacy loss distribution of dp-accounting, as given"
    neighbours: ClassVar[str] = "those of the given distribution"

    def __repr__(self) -> str:
        return f"_LossPair(<{len(self.log_p)} losses>)"

    def reverse(self) -> Self:
        return type(self)(self.log_q, self.log_p, not self.forward)

    def claims(self, eps: float, *, upper: bool) -> Iterable[Evidence]:
        yield from super().claims(eps, upper=upper)
        yield _GIVEN

    @classmethod
    def of(cls, pmf: Any) -> Self:
        """Return the pair of a PLDPmf: mass p at loss l gives P = p and Q = p e^-l."""
        dense = pmf.to_dense_pmf()
        # dp-accounting has no public attributes for the masses and the losses.
        mass = np.asarray(dense._probs, dtype=np.float64)
        loss = dense._discretization * (dense._lower_loss + np.arange(mass.size))
        # Convolutions in dp-accounting can leave negative masses of the size of rounding errors, which count as 0.
        held = mass > 0
        log_p = np.log(mass[held])
        log_q = log_p - loss[held]
        q = np.exp(log_q)
        infinite, beyond = float(dense._infinity_mass), -math.fsum([*q.tolist(), -1.0])
        rounding = ULP * float(q @ (2 + np.abs(log_q)))
        if infinite > 0:
            log_p, log_q = np.append(log_p, np.log(infinite)), np.append(log_q, -np.inf)
        # A difference that the rounding of the logarithms explains counts as 0.
        if beyond > rounding:
            # Mass of Q at outcomes that P cannot produce has no effect in this direction, and counts as infinite loss in the
            # other direction.
            log_p, log_q = np.append(log_p, -np.inf), np.append(log_q, np.log(beyond))
        return cls(tuple(log_p.tolist()), tuple(log_q.tolist()))

    def describe(self) -> DominatingPairInfo:
        info = super().describe()
        return replace(info, losses=info.losses._replace(unmatched=partial(_breakpoints, self.log_p, self.log_q, self.forward)))

    @cached_property
    def _atoms(self) -> LossAtoms:
        # The losses are differences of two logarithms, of which `of` rounded the second one, except at a loss of 0.
        atoms = LossAtoms.of(self._complete.log_p, self._complete.log_q)
        rounding = np.where(atoms.loss == 0, 0.0, ULP * np.abs(atoms.log_p - atoms.loss))
        return replace(atoms, loss_error=atoms.loss_error + rounding)

    def closed_forms(self) -> _LossForms:
        return _LossForms(self._atoms)

    @cached_property
    def _complete(self) -> CompleteLists:
        log_p, log_q = np.array(self.log_p), np.array(self.log_q)
        return CompleteLists(log_p if self.forward else log_p - max(0.0, math.log(math.fsum(np.exp(log_p)))), log_q)


class _LossForms(ClosedForms):
    """Renyi divergences of a list of losses, log(sum of p e^((a - 1) loss))/(a - 1), also if its masses under Q exceed 1."""

    __slots__ = ("atoms",)

    def __init__(self, atoms: LossAtoms) -> None:
        self.atoms = atoms

    def renyi(self, orders: FloatArray, upper: bool) -> FloatArray | None:
        log_p, loss = self.atoms.log_p, self.atoms.moved(-1)
        if upper or self.atoms.log_rest > -math.inf or math.fsum(np.exp(log_p - loss)) <= 1:
            return None
        # `LossAtoms.renyi` assumes masses whose sums are at most 1, and is above the divergence here.
        values = []
        for b in (orders - 1).tolist():
            terms = log_p + b * loss if 0 < b < math.inf else log_p
            error = ULP * (64 + log_p.size + 4 * float(np.abs(terms).max())) + self.atoms.slack
            if b == math.inf:
                values.append(float(loss.max()))
            elif b == 0:
                values.append(math.fsum(np.exp(log_p) * loss) - error * math.fsum(np.exp(log_p) * np.abs(loss)))
            else:
                values.append((float(np.logaddexp.reduce(terms)) - error) / b)
        return np.maximum(np.minimum(values, self.atoms.renyi(orders, upper=False)), 0.0)


def _breakpoints(
    log_p: tuple[float, ...], log_q: tuple[float, ...], forward: bool
) -> tuple[FloatArray, FloatArray] | None:
    """Return the eps between which the divergences of a `_LossPair` and of its reverse are linear in e^eps."""
    pair = _LossPair(log_p, log_q, forward)
    own, reverse = (breakpoints([side._atoms]) for side in (pair, pair.reverse()))
    return None if own is None or reverse is None else (own, reverse)


@dataclass(frozen=True)
class AccountingProfile(PrivacyProfile):
    r"""The privacy profile of a privacy loss distribution of dp-accounting; made by :func:`from_dp_accounting`.

    .. math:: \delta(\varepsilon) = \max_{\text{directions}} \; p_\infty + \sum_{l > \varepsilon} (1 - e^{\varepsilon - l})\, p_l

    Here :math:`p_l` is the probability of the privacy loss l, and :math:`p_\infty` that of an infinite loss. The directions are
    those of the parameter `directions`.

    Parameters
    ----------
    directions : tuple of DominatingPair
        One pair for a symmetric distribution, otherwise one for removal and one for addition.

    Raises
    ------
    ValueError
        If `directions` is empty, or has more than two entries or one that is no pair.

    Notes
    -----
    Delta of the given distribution lies between the lower and the upper bound. If the distribution was made with
    ``pessimistic_estimate=True``, its delta is an upper bound for the mechanism.

    As in dp-accounting, a composition is computed once with the direction "remove" in all releases and once with the direction
    "add", and the larger delta is the result. For a symmetric distribution there is one computation, with its losses in all
    releases.

    dp-accounting rounds the losses of each direction to a grid. So the two directions are not the orders (P, Q) and (Q, P) of one
    pair of distributions. The trade-off function and mu, also those of compositions, follow by the formula of :meth:`tradeoff` from
    delta at eps >= 0, which holds for both orders. If the grid is coarse, delta near eps = 0 need not be that of any pair; the
    lower bound of the trade-off function may then have a larger delta than the import. The Renyi divergence is
    :math:`\max_{\text{directions}} \log(\sum_l p_l\, e^{(a-1) l})/(a-1)`, or 0 if this is negative.

    References
    ----------
    Google Differential Privacy Team. Privacy loss distributions (supplementary material of dp-accounting), 2020, Observation 1.
    """

    directions: tuple[DominatingPair, ...]

    theorem: ClassVar[str] = "exact for the given privacy loss distribution of dp-accounting"
    _covers_many: ClassVar[bool] = True
    neighbours: ClassVar[str] = "those of the given distribution"
    relation: ClassVar[str] = "either"

    def __post_init__(self) -> None:
        directions = tuple(self.directions) if isinstance(self.directions, tuple | list) else ()
        if not 1 <= len(directions) <= 2 or not all(isinstance(pair, DominatingPair) for pair in directions):
            raise ValueError(f"directions={_validate.short_repr(self.directions)} must have one or two DominatingPair objects: "
                             "call from_dp_accounting")
        object.__setattr__(self, "directions", directions)

    def claims(self, eps: float, *, upper: bool) -> Iterable[Evidence]:
        yield from super().claims(eps, upper=upper)
        yield _GIVEN

    def pairs(self) -> tuple[DominatingPair, ...]:
        return self.directions

    def describe(self) -> DominatingPairInfo:
        # As in dp-accounting, an adversary cannot choose the direction of each release: in all releases the same dataset of the two
        # contains the record. A symmetric distribution stands for both directions.
        return largest_of((self.directions * 2)[:2], directed=True)


@with_passages
def from_dp_accounting(pld: Any) -> AccountingProfile:
    """Return the privacy profile of a privacy loss distribution of dp-accounting.

    Parameters
    ----------
    pld : dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
        Any privacy loss distribution, composed or not.

    Returns
    -------
    AccountingProfile
        Upper and lower bounds of delta of `pld` at every eps, also for values as small as its smallest mass.

    {raises: If `pld` is not a privacy loss distribution, or has no mass.}

    Examples
    --------
    >>> from dp_accounting.pld import privacy_loss_distribution
    >>> from shufflebounds import interop
    >>> pld = privacy_loss_distribution.from_gaussian_mechanism(1.0)
    >>> profile = interop.from_dp_accounting(pld)
    >>> print(f"{profile.delta(1.0):.9f} {pld.get_delta_for_epsilon(1.0):.9f}")
    0.126936738 0.126936738
    """
    parts = ("_pmf_remove", "_pmf_add", "_symmetric")
    if not all(hasattr(pld, part) for part in parts):
        raise ValueError(f"pld={pld!r} must be a PrivacyLossDistribution of dp_accounting")
    pmfs = [pld._pmf_remove] if pld._symmetric else [pld._pmf_remove, pld._pmf_add]
    directions = tuple(_LossPair.of(pmf) for pmf in pmfs)
    if not all(np.any(np.array(pair.log_p) > -np.inf) for pair in directions):
        raise ValueError(f"pld={pld!r} must have some mass in each direction")
    return AccountingProfile(directions)
