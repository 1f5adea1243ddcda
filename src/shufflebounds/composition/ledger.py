"""A ledger of releases with a privacy budget, which refuses releases beyond the budget and can be saved to a file."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from shufflebounds._base import validate as _validate
from shufflebounds._base.calls import explained
from shufflebounds._base.types import ULP, probability
from shufflebounds.composition.conversions import rdp_to_dp, zcdp_to_dp
from shufflebounds.profile import Composition, PrivacyProfile
from shufflebounds.profile.saving import from_dict, to_dict
from shufflebounds.tradeoff.closed_curves import GaussianCurve

__all__ = ["BudgetExceededError", "Ledger", "LedgerError"]

FORM = 2
"""Version of the file format. Raised: older versions of this library refuse the ledger, and this one refuses older ledgers."""


class BudgetExceededError(ValueError):
    """A release would exceed the budget; the ledger is unchanged."""


class LedgerError(ValueError):
    """A file is not a ledger, or its content does not match its hash."""


class GaussianFilter(NamedTuple):
    """A privacy filter that charges mu**2 for a mechanism with the Gaussian parameter mu."""

    order: None = None

    def cost(self, mechanism: PrivacyProfile) -> float:
        """Return the cost of one release."""
        return mechanism.gdp_mu() ** 2 * (1 + 2 * ULP)

    def delta(self, total: float, eps: float) -> float:
        """Return an upper bound of delta at eps for mechanisms of this total cost."""
        return float(probability(self._curve(total).log_delta(np.array([eps]))[0], True))

    def epsilon(self, total: float, delta: float) -> float:
        """Return an upper bound of eps at delta for mechanisms of this total cost."""
        return float(self._curve(total).epsilon(np.array([delta]))[0])

    def _curve(self, total: float) -> GaussianCurve:
        # The rounded curve lies below the trade-off function, so its delta is an upper bound.
        return GaussianCurve(math.sqrt(total) * (1 + 2 * ULP), -1)


class RenyiFilter(NamedTuple):
    """A privacy filter that charges the Renyi divergence of one order; the methods are those of :class:`GaussianFilter`."""

    order: float

    def cost(self, mechanism: PrivacyProfile) -> float:
        """Return the cost of one release."""
        return float(mechanism.rdp(self.order))

    def delta(self, total: float, eps: float) -> float:
        """Return an upper bound of delta at eps for mechanisms of this total cost."""
        return rdp_to_dp(self.order, total, eps=eps)[0]

    def epsilon(self, total: float, delta: float) -> float:
        """Return an upper bound of eps at delta for mechanisms of this total cost."""
        return rdp_to_dp(self.order, total, delta=delta)[0]


def best_order(eps: float, delta: float) -> float:
    """Return the Renyi order a that admits the largest number of Gaussian releases with the budget (eps, delta).

    The Renyi divergence of order a of Gaussian noise is rho a. For the largest rho for which rho-zero-concentrated privacy implies
    (eps, delta), the result is the order that gives this eps.
    """
    low, high = 0.0, min(eps, 1e6)
    for _ in range(60):
        rho = (low + high) / 2
        low, high = (rho, high) if zcdp_to_dp(rho, delta=delta)[0] <= eps else (low, rho)
    return zcdp_to_dp(high, delta=delta)[1]


@explained
class Ledger:
    r"""A record of the releases on one dataset, with a budget (eps, delta).

    Parameters
    ----------
    eps : float
        The budget in nats, > 0.
    delta : float
        The budget's delta, in (0, 1); a value above 1e-3 draws a warning.
    filter : {None, "gdp", "rdp"}
        None: the mechanisms are fixed before the first result, and their composition must meet the budget. "gdp" and "rdp": the
        mechanisms may be chosen after seeing results. Each release has a cost, and the (eps, delta) that follows from the sum of
        the costs must meet the budget. The cost for "gdp" is the square of the Gaussian parameter mu
        (:meth:`~shufflebounds.profile.PrivacyProfile.gdp_mu`), that for "rdp" the Renyi divergence of one Renyi order
        (:meth:`~shufflebounds.profile.PrivacyProfile.rdp`).
    order : float, optional
        For "rdp", the Renyi order, finite and > 1; one so small that the budget admits no release raises ValueError. The default
        None selects the order that admits the largest number of Gaussian releases; another order may admit more releases of other
        mechanisms.

    Notes
    -----
    Without a filter, fix a list of mechanisms before the first result, with the number of releases of each. The budget is
    guaranteed if the composition of the whole list meets the budget, and only releases of this list are made. Earlier results may
    determine the sequence of the releases and an early end. The budget is **not** guaranteed if results select one of several
    mechanisms, each of which meets the budget while all of them together do not (:ref:`an example <chosen-by-results>`).

    With a filter the budget is guaranteed even if the mechanisms, the data and the end of the releases depend on earlier results.
    "gdp" admits as many Gaussian releases as a ledger without a filter. It charges noise on a sample of the records as much as
    noise on all records, because mu is the same, and refuses mechanisms without a finite mu. "rdp" refuses mechanisms whose Renyi
    divergence of this order is infinite.

    A saved ledger contains its version, its entries and their SHA-256. The hash detects a truncated or damaged file, and entries
    edited, removed or added by hand. It does **not** detect someone who computes the hash again (it has no key), a file replaced by
    an older copy, or releases that were never entered. If these matter, restrict write access to the file, or sign it.

    Examples
    --------
    >>> from shufflebounds.composition import Ledger
    >>> from shufflebounds.mechanisms import GaussianMechanism
    >>> ledger = Ledger(eps=1.0, delta=1e-6)
    >>> spent = ledger.spend(GaussianMechanism(20.0), times=4, note="weekly counts")
    >>> print(f"{spent:.4f} {ledger.left:.4f}")
    0.3969 0.6031
    >>> ledger.affords(GaussianMechanism(2.0))
    False

    If results decide what is released next:

    >>> chosen = Ledger(eps=1.0, delta=1e-6, filter="gdp")
    >>> chosen.affords(GaussianMechanism(5.0)), chosen.affords(GaussianMechanism(4.0))
    (True, False)
    """

    def __init__(self, eps: float, delta: float, *, filter: Literal["gdp", "rdp"] | None = None,
                 order: float | None = None) -> None:
        self._eps, self._delta = _validate.target(eps, delta, open_eps=True)
        self._filter: GaussianFilter | RenyiFilter | None = None
        if filter is not None and _validate.choice("filter", filter, ("gdp", "rdp")) == "gdp":
            self._filter = GaussianFilter()
        elif filter is not None:
            best = best_order(self._eps, self._delta)
            self._filter = RenyiFilter(best if order is None else _validate.real("order", order, 1, open_low=True))
            if self._filter.delta(0.0, self._eps) > self._delta:
                raise ValueError(f"order={order!r} is too small for eps={self._eps:g}, delta={self._delta:g}: no release would "
                                 f"fit; pass a larger order, such as {best:.3g}, or leave it out")
        if order is not None and filter != "rdp":
            raise ValueError(f'order={order!r} is for filter="rdp": leave it out')
        self._entries: list[tuple[PrivacyProfile, int, str]] = []
        self._costs: list[float] = []
        self._whole: Composition | None = None

    @property
    def budget(self) -> tuple[float, float]:
        """The budget, (eps, delta)."""
        return self._eps, self._delta

    @property
    def entries(self) -> tuple[tuple[PrivacyProfile, int, str], ...]:
        """The entries: mechanism, number of releases, note."""
        return tuple(self._entries)

    @property
    def filter(self) -> str | None:
        """The rule by which releases may depend on results: "gdp", "rdp" or None."""
        return None if self._filter is None else "gdp" if self._filter.order is None else "rdp"

    @property
    def order(self) -> float | None:
        """The Renyi order of the filter "rdp", otherwise None."""
        return None if self._filter is None else self._filter.order

    @property
    def profile(self) -> Composition | None:
        """The composition of all entries, or None if there are none: a guarantee for mechanisms that were fixed in advance."""
        return self._whole

    @property
    def spent(self) -> float:
        """The upper bound of eps of all entries at the delta of the budget: a guarantee for mechanisms that were fixed in advance.

        With a filter, this upper bound follows from the sum of the costs. If results decide which mechanisms are released, or when
        the releases end, only the whole budget is a guarantee (see the notes of the class).
        """
        if self._whole is None:
            return 0.0
        return self._whole.epsilon(self._delta) if self._filter is None else self._filter.epsilon(self._total(), self._delta)

    @property
    def left(self) -> float:
        """The eps of the budget minus the spent eps. A release may increase the spent eps by more or less than its own eps."""
        return self._eps - self.spent

    def _with(self, *more: tuple[PrivacyProfile, int]) -> Composition:
        return Composition((*((profile, times) for profile, times, _ in self._entries), *more))

    def _total(self, *more: float) -> float:
        """Return the sum, rounded up, of further costs and of the costs of all entries."""
        return math.fsum((*self._costs, *more)) * (1 + 4 * ULP)

    def _cost(self, mechanism: PrivacyProfile, times: int) -> float:
        """Return the cost of releases, 0 without a filter."""
        return 0.0 if self._filter is None else times * self._filter.cost(mechanism)

    @_validate.quiet()
    def _holds(self, whole: Composition, cost: float) -> bool:
        """Return whether the budget is met by all entries together with releases of this cost; `whole` is their composition."""
        if self._filter is None:
            return whole.delta(self._eps) <= self._delta
        total = self._total(cost)
        return total < math.inf and self._filter.delta(total, self._eps) <= self._delta

    def affords(self, mechanism: PrivacyProfile, times: int = 1) -> bool:
        """Return whether all entries together with further releases stay within the budget.

        Parameters
        ----------
        mechanism : PrivacyProfile
            The mechanism to be released.
        times : int
            Number of releases, 1 to 2**53.

        Returns
        -------
        bool
            True if the upper bound of delta at the eps of the budget is at most the delta of the budget. This bound is that of the
            composition or, with a filter, follows from the sum of the costs.
        """
        return self._holds(self._with((mechanism, times)), self._cost(mechanism, times))

    def spend(self, mechanism: PrivacyProfile, times: int = 1, *, note: str = "") -> float:
        """Add releases to the ledger if the budget allows them.

        Parameters
        ----------
        mechanism : PrivacyProfile
            The released mechanism.
        times : int
            Number of releases, 1 to 2**53.
        note : str
            A comment.

        Returns
        -------
        float
            The spent eps afterwards.

        Raises
        ------
        BudgetExceededError
            If the budget would be exceeded; the ledger is unchanged then.
        TypeError
            If the mechanism cannot be saved.
        """
        to_dict(mechanism)
        times = _validate.integer("times", times, 1)
        whole, cost = self._with((mechanism, times)), self._cost(mechanism, times)
        if not self._holds(whole, cost):
            raise BudgetExceededError(
                f"{mechanism!r} {times} times would bring delta at eps={self._eps:g} above {self._delta:g}: "
                f"{self.left:.4g} of eps is left"
            )
        self._entries.append((mechanism, times, str(note)))
        self._costs.append(cost)
        # Keep the composition that was just evaluated, because its distribution is cached.
        self._whole = whole
        return self.spent

    def to_dict(self) -> dict[str, Any]:
        """Return the ledger as plain data, with the hash of its content.

        Returns
        -------
        dict
            Plain data for JSON, which :meth:`from_dict` accepts.
        """
        entries = [{"profile": to_dict(profile), "times": times, "note": note} for profile, times, note in self._entries]
        budget = {"eps": self._eps, "delta": self._delta, "filter": self.filter, "order": self.order}
        body = {"form": FORM, **budget, "entries": entries}
        return {**body, "sha256": _digest(body)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the ledger that was saved.

        Parameters
        ----------
        data : mapping
            From :meth:`to_dict`.

        Returns
        -------
        Ledger
            A ledger with the saved budget and entries.

        Raises
        ------
        LedgerError
            If a field is missing, the version is unknown, or the content does not match its hash.
        """
        if not isinstance(data, Mapping):
            raise LedgerError(f"{_validate.short_repr(data)} is no ledger: it must be a mapping")
        form = data.get("form", FORM)
        if form != FORM:
            raise LedgerError(f"the ledger has form {form!r}: this version reads form {FORM}")
        try:
            body = {key: data[key] for key in ("form", "eps", "delta", "filter", "order", "entries")}
            digest = data["sha256"]
        except (KeyError, TypeError) as problem:
            raise LedgerError(f"this is no ledger: {problem!r} is missing") from None
        try:
            if digest != _digest(body):
                raise LedgerError("the ledger was changed after it was saved: its content does not match its hash")
            ledger = cls(body["eps"], body["delta"], filter=body["filter"], order=body["order"])
            for entry in body["entries"]:
                profile, times = from_dict(entry["profile"]), _validate.integer("times", entry["times"], 1)
                ledger._entries.append((profile, times, str(entry["note"])))
                ledger._costs.append(ledger._cost(profile, times))
            ledger._whole = ledger._with() if ledger._entries else None
        except LedgerError:
            raise
        except (KeyError, TypeError, ValueError, RecursionError) as problem:
            raise LedgerError(f"the ledger cannot be read: {problem}") from problem
        return ledger

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the ledger to a file. An existing file is replaced only after the new one is complete.

        Parameters
        ----------
        path : path-like
            The file, in JSON format.
        """
        target = Path(path)
        fresh = target.with_name(target.name + ".new")
        fresh.write_text(json.dumps(self.to_dict(), indent=1) + "\n", encoding="utf-8")
        os.replace(fresh, target)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the ledger of a file.

        Parameters
        ----------
        path : path-like
            A file written by :meth:`save`.

        Returns
        -------
        Ledger
            A ledger with the saved budget and entries; later entries do not change the file until the ledger is saved again.

        Raises
        ------
        LedgerError
            If the file cannot be read, is damaged, or was changed.
        FileNotFoundError
            If there is no file at this path.
        """
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
        except FileNotFoundError:
            advice = "pass the path that was given to Ledger.save, or create a ledger with Ledger(eps=..., delta=...)"
            raise FileNotFoundError(f"path={str(path)!r} is no existing file: {advice}") from None
        except (ValueError, RecursionError) as problem:
            raise LedgerError(f"{path} holds no JSON: {problem}") from None
        return cls.from_dict(data)


def _digest(body: Mapping[str, Any]) -> str:
    """Return the hash of the content, which does not depend on the formatting of the file."""
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
