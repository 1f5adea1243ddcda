"""Profiles made from the privacy loss distributions of dp-accounting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from shufflebounds._types import FloatArray
from shufflebounds.profile import DominatingPair, PrivacyProfile
from shufflebounds.profile.pair import _ListedPair

__all__ = ["AccountingProfile", "from_dp_accounting"]

_FEW = 4
_MODEST = 300.0
"""Logarithms up to here: products of two such numbers are doubles of full precision."""


@dataclass(frozen=True, repr=False)
class _LossPair(_ListedPair):
    """One direction of a privacy loss distribution, whose masses are taken as they stand even where they do not sum to 1."""

    theorem: ClassVar[str] = "hockey stick of one direction of a privacy loss distribution of dp-accounting, as given"
    neighbours: ClassVar[str] = "those of the distribution given"

    def __repr__(self) -> str:
        return f"_LossPair(<{len(self.log_p)} losses>)"

    @classmethod
    def of(cls, pmf: Any) -> Self:
        """Return the pair of a PLDPmf: mass p of loss l stands for P = p and Q = p e^-l."""
        dense = pmf.to_dense_pmf()
        # dp-accounting has no public name for any of these
        mass = np.asarray(dense._probs, dtype=np.float64)
        loss = dense._discretization * (dense._lower_loss + np.arange(mass.size))
        # its convolutions leave masses of the size of rounding below 0; they count as 0
        held = mass > 0
        log_p = np.log(mass[held])
        log_q = log_p - loss[held]
        infinite, beyond = float(dense._infinity_mass), 1 - float(np.exp(log_q).sum())
        if infinite > 0:
            log_p, log_q = np.append(log_p, np.log(infinite)), np.append(log_q, -np.inf)
        if beyond > 0:
            # what Q has where P has nothing: no part of this direction, all of it in the other
            log_p, log_q = np.append(log_p, -np.inf), np.append(log_q, np.log(beyond))
        return cls(tuple(log_p.tolist()), tuple(log_q.tolist()))

    def _missing(self) -> float:
        return 0.0

    def _log_delta(self, eps: FloatArray) -> tuple[FloatArray, FloatArray]:
        log_p, loss = self._losses()
        finite = loss < np.inf
        log_p, loss = log_p[finite], loss[finite]
        if eps.size < _FEW or loss.size < _FEW or max(np.abs(loss).max(), -log_p.min()) > _MODEST:
            return super()._log_delta(eps)
        # One sweep down the losses, of positive terms only: from a loss to the one below it, delta grows by the difference of
        # the e^loss times the mass that Q has above.
        order = np.argsort(loss, kind="stable")
        loss, ratio = loss[order], np.exp(loss[order])
        above = np.cumsum(np.exp(log_p[order] - loss)[::-1])[::-1]
        steps = ratio[1:] * -np.expm1(loss[:-1] - loss[1:]) * above[1:]
        infinite = float(np.exp(np.array(self.log_p)[np.isneginf(self.log_q)]).sum())
        at_loss = infinite + np.append(np.cumsum(steps[::-1])[::-1], 0.0)

        def delta(e: FloatArray) -> FloatArray:
            next_above = np.searchsorted(loss, e, side="right")
            k = np.minimum(next_above, loss.size - 1)
            between = ratio[k] * -np.expm1(np.minimum(e - loss[k], 0)) * above[k]
            return np.where(next_above < loss.size, at_loss[k] + between, infinite)

        unit = float(np.finfo(float).eps)
        # a loss is the difference of two logarithms: known to this, which moves eps; the sums are known to an ulp a term
        moved = unit * (2 * float(np.abs(log_p).max()) + 2 * float(np.abs(loss).max()) + 4)
        slack = unit * (2 * loss.size + 16 + float(np.abs(log_p).max()))
        with np.errstate(divide="ignore"):
            return np.log(delta(eps + moved) * (1 - slack)), np.log(delta(eps - moved) * (1 + slack))


@dataclass(frozen=True)
class AccountingProfile(PrivacyProfile):
    r"""The profile of a privacy loss distribution of dp-accounting; made by :func:`from_dp_accounting`.

    .. math:: \delta(\varepsilon) = \max_{\text{directions}} \; p_\infty + \sum_{l > \varepsilon} (1 - e^{\varepsilon - l})\, p_l

    Parameters
    ----------
    directions : tuple of DominatingPair
        One for a symmetric distribution, otherwise that of removal and that of addition.

    Notes
    -----
    Exact for the distribution given: both sides enclose its own delta. Whether that bounds the mechanism behind it is for
    the distribution to say; one made with ``pessimistic_estimate=True`` is an upper bound.

    References
    ----------
    Google Differential Privacy Team. Privacy loss distributions (supplementary material of dp-accounting), 2020, Observation 1.
    """

    directions: tuple[DominatingPair, ...]

    theorem: ClassVar[str] = "exact for the privacy loss distribution of dp-accounting, as given"
    neighbours: ClassVar[str] = "those of the distribution given"

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return the directions of the distribution.

        Returns
        -------
        tuple of DominatingPair
            One for a symmetric distribution, otherwise that of removal and that of addition.
        """
        return self.directions

    def _log_delta(self, eps: FloatArray) -> tuple[FloatArray, FloatArray]:
        sides = [pair._log_delta(eps) for pair in self.directions]
        return np.max([low for low, _ in sides], axis=0), np.max([high for _, high in sides], axis=0)

    def _pure_epsilon(self) -> float:
        return max(pair._pure_epsilon() for pair in self.directions)


def from_dp_accounting(pld: Any) -> AccountingProfile:
    """Return the profile of a privacy loss distribution of dp-accounting.

    Parameters
    ----------
    pld : dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
        Any distribution, composed or not.

    Returns
    -------
    AccountingProfile
        Both sides of its delta, at any depth its masses have.

    Raises
    ------
    ValueError
        If `pld` is none, or holds no mass.

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
