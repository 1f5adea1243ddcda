"""The claims that the results of an attack refute: one class for every kind of attack."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from shufflebounds._base import validate as _validate
from shufflebounds._base.calls import explained
from shufflebounds._base.docs import with_passages
from shufflebounds._base.limits import COMPUTED_ERROR
from shufflebounds._base.plotting import axes
from shufflebounds._base.progress import announced
from shufflebounds._base.search import bracket
from shufflebounds._base.types import SLACK, probability
from shufflebounds.profile.profile import PrivacyProfile, checked_profile
from shufflebounds.tradeoff import Tradeoff

__all__ = ["Claim", "Refuted", "largest_refuted", "level_of", "rounded_up"]

Claim = PrivacyProfile | Tradeoff


def level_of(confidence: float, log_alpha: float | None) -> float:
    """Return the log of the error probability, or raise ValueError."""
    if log_alpha is not None:
        return _validate.real("log_alpha", log_alpha, -1e5, 0, open_high=True)
    return math.log1p(-_validate.real("confidence", confidence, 0, 1, open_low=True, open_high=True))


def rounded_up(log_p: float) -> float:
    """Return the log of a p-value, at most 0, increased by the error of the tails."""
    return min(0.0, log_p + SLACK * abs(log_p) + COMPUTED_ERROR) if log_p > -math.inf else log_p


def largest_refuted(refutes: Callable[[float], bool], most: float) -> float:
    """Return the largest refuted number found up to `most`, or 0; `refutes` is true up to some number and false above."""
    if not refutes(0.0):
        return 0.0
    return most if refutes(most) else bracket(lambda at: not refutes(at), 0.0, min(1.0, most), rtol=1e-12)[0]


@explained
@with_passages
class Refuted(ABC):
    """Claims of differential privacy that the results of an attack refute, at one confidence.

    Made by :func:`decisions`, :func:`scores`, :func:`one_run` and :func:`program`. The probability that one object refutes any true
    claim is at most 1 - confidence. A claim that is not refuted may still be false: no guarantee follows from an attack.

    Attributes
    ----------
    log_alpha : float
        Natural logarithm of the error probability, 1 - confidence.
    relation : str or None
        How the datasets of the attack differ, "replace-one" or "add-remove"; None if not stated.
    method : str
        The method and the thresholds, in words.
    """

    log_alpha: float
    relation: str | None
    method: str

    @abstractmethod
    def _epsilon(self, delta: float) -> float:
        """Return the largest eps that is refuted at delta, rounded down; 0 if none."""

    @abstractmethod
    def _gdp_mu(self) -> float:
        """Return the largest mu that is refuted, rounded down; 0 if none."""

    @abstractmethod
    def _log_p(self, claim: Claim) -> float:
        """Return the log of the p-value of a checked claim, before rounding."""

    @abstractmethod
    def _draw(self, ax: Any, claim: Claim | None) -> None:
        """Draw the results of the attack, the refuted claims, and a claim if one is given."""

    def epsilon(self, delta: float = 0.0) -> float:
        r"""Return the largest :math:`\varepsilon` for which the data refute :math:`(\varepsilon, \delta)`-differential privacy.

        Parameters
        ----------
        delta : float
            Failure probability of the claim, in [0, 1].

        Returns
        -------
        float
            In nats, rounded down; 0 if no claim with this delta is refuted. Every smaller eps is refuted, too.

        {raises: If `delta` lies outside [0, 1].}
        """
        delta = _validate.real("delta", delta, 0, 1)
        with announced("audit"):
            return self._epsilon(delta)

    def gdp_mu(self) -> float:
        r"""Return the largest :math:`\mu` for which the data refute :math:`\mu`-Gaussian differential privacy.

        Returns
        -------
        float
            Rounded down; 0 if no such claim is refuted. Every smaller mu is refuted, too.
        """
        with announced("audit"):
            return self._gdp_mu()

    def log_p_value(self, claim: Claim) -> float:
        """Return the natural logarithm of :meth:`p_value`, for p-values below the least double.

        Parameters
        ----------
        claim : PrivacyProfile or Tradeoff
            As for :meth:`p_value`.

        Returns
        -------
        float
            At most 0; rounded up.

        {raises_of_claims}
        """
        if not isinstance(claim, Tradeoff):
            checked_profile("claim", claim)
            if self.relation and claim.relation not in ("either", self.relation):
                raise ValueError(f"claim={_validate.short_repr(claim)} is about {claim.relation!r} neighbours, and the datasets of "
                                 f"this attack differ as relation={self.relation!r}: pass a claim about these, or correct relation")
        with announced("audit"):
            return rounded_up(min(0.0, self._log_p(claim)))

    def p_value(self, claim: Claim) -> float:
        """Return the p-value of a claim: results at least this extreme have at most this probability if the claim is true.

        Parameters
        ----------
        claim : PrivacyProfile or Tradeoff
            A profile, whose upper bound of delta is tested; or a trade-off function that is claimed to be a lower bound for every
            pair of neighbours, such as ``Tradeoff.approximate(eps, delta)``. ``tradeoff(bound="upper")`` is not such a claim. If
            the claim is an ordered pair (P, Q), P is the output distribution for D (`inside` in :func:`scores`, `data` in
            :func:`program`), and Q that for D' (`outside`, `neighbour`); :func:`one_run` tests both (P, Q) and (Q, P).

        Returns
        -------
        float
            In [0, 1]; rounded up. The claim is refuted if this is at most 1 - confidence.

        {raises_of_claims}
        """
        log_p = self.log_p_value(claim)
        return float(probability(log_p, True))

    def plot(self, claim: Claim | None = None, ax: Any = None) -> Any:
        """Draw the results of the attack and the region of refuted claims.

        Parameters
        ----------
        claim : PrivacyProfile or Tradeoff, optional
            A claim to draw as well.
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default.

        {axes}

        Raises
        ------
        ImportError
            If matplotlib is not installed (extra ``plot``).
        """
        ax = axes(ax)
        self._draw(ax, claim)
        return ax

    @property
    def confidence(self) -> float:
        """One minus the error probability; it rounds to 1 for tiny error probabilities."""
        return -math.expm1(self.log_alpha)

    def __repr__(self) -> str:
        level = (f"confidence {self.confidence:.12g}" if self.log_alpha > -25 else
                 f"an error probability of e^{self.log_alpha:.6g}")
        eps = self.epsilon()
        claims = f"every eps below {math.floor(eps * 1e6) / 1e6:.6f} at delta = 0" if eps > 1e-6 else "no eps at delta = 0"
        return f"<At {level} the data refute {claims} and show no guarantee ({self.method}).>"

