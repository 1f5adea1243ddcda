"""A budget kept over many releases: what is spent, what is left, refused beyond, saved and checked when loaded."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from shufflebounds import _validate
from shufflebounds._types import Bound
from shufflebounds.profile import Composition, PrivacyProfile
from shufflebounds.profile._saving import from_dict, to_dict

__all__ = ["BudgetExceededError", "Ledger", "LedgerError"]

FORM = 1
"""Version of the file."""


class BudgetExceededError(ValueError):
    """A release would spend more than the budget; nothing was entered."""


class LedgerError(ValueError):
    """A file is no ledger, or not the one that was saved; nothing was loaded."""


class Ledger:
    r"""An account of releases on one data set against a budget (eps, delta).

    Parameters
    ----------
    eps : float
        The budget in nats, > 0.
    delta : float
        The budget's delta, in (0, 1).

    Notes
    -----
    What is spent is the upper eps of the composition of all entries, at the budget's delta. The mechanisms must not depend on how
    much is left (that would need a filter). A saved ledger holds its version, its entries and their SHA-256.

    **What the hash protects against**: a file cut short or damaged, an entry edited, removed or added by hand. **What it does
    not**: anybody who computes the hash anew, since it has no key; a file replaced by an older copy of itself, which forgets what
    was spent since; releases that were never entered. Where these matter, keep the file where only the spender can write, or sign
    it.

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
    """

    def __init__(self, eps: float, delta: float) -> None:
        self._eps = _validate.real("eps", eps, 0, open_low=True)
        self._delta = _validate.real("delta", delta, 0, 1, open_low=True, open_high=True)
        self._entries: list[tuple[PrivacyProfile, int, str]] = []
        self._whole: Composition | None = None

    @property
    def budget(self) -> tuple[float, float]:
        """The budget, (eps, delta)."""
        return self._eps, self._delta

    @property
    def entries(self) -> tuple[tuple[PrivacyProfile, int, str], ...]:
        """What was released: mechanism, times, note."""
        return tuple(self._entries)

    @property
    def profile(self) -> Composition | None:
        """The composition of all entries, None while there are none."""
        return self._whole

    @property
    def spent(self) -> float:
        """The upper eps of all entries at the budget's delta."""
        return self._cost(self.profile)

    @property
    def left(self) -> float:
        """The budget's eps less what is spent: what a look at the entries leaves, not what one more release may cost."""
        return self._eps - self.spent

    def _with(self, *more: tuple[PrivacyProfile, int]) -> Composition:
        return Composition((*((profile, times) for profile, times, _ in self._entries), *more))

    @_validate.quiet()
    def _holds(self, whole: Composition) -> bool:
        return whole.delta(self._eps) <= self._delta

    def _cost(self, profile: PrivacyProfile | None, bound: Bound = "upper") -> float:
        return 0.0 if profile is None else profile.epsilon(self._delta, bound=bound)

    def affords(self, mechanism: PrivacyProfile, times: int = 1) -> bool:
        """Return whether the budget holds after that many more releases.

        Parameters
        ----------
        mechanism : PrivacyProfile
            What would be released.
        times : int
            How often, 1 to 2**53.

        Returns
        -------
        bool
            Judged by the upper side of delta at the budget's eps.
        """
        return self._holds(self._with((mechanism, times)))

    def spend(self, mechanism: PrivacyProfile, times: int = 1, *, note: str = "") -> float:
        """Enter releases, or refuse them.

        Parameters
        ----------
        mechanism : PrivacyProfile
            What is released.
        times : int
            How often, 1 to 2**53.
        note : str
            Words for the reader.

        Returns
        -------
        float
            What is spent after it.

        Raises
        ------
        BudgetExceededError
            If the budget would not hold; nothing is entered then.
        TypeError
            If the mechanism cannot be saved.
        """
        to_dict(mechanism)
        times = _validate.integer("times", times, 1)
        whole = self._with((mechanism, times))
        if not self._holds(whole):
            raise BudgetExceededError(
                f"{mechanism!r} {times} times would bring delta at eps={self._eps:g} above {self._delta:g}: "
                f"{self.left:.4g} of eps is left"
            )
        self._entries.append((mechanism, times, str(note)))
        # the composition that was judged answers from here on: its law is known
        self._whole = whole
        return self.spent

    def to_dict(self) -> dict[str, Any]:
        """Return the ledger as plain data, with the hash of its content.

        Returns
        -------
        dict
            What :meth:`from_dict` takes; JSON holds it.
        """
        entries = [{"profile": to_dict(profile), "times": times, "note": note} for profile, times, note in self._entries]
        body = {"form": FORM, "eps": self._eps, "delta": self._delta, "entries": entries}
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
            With the same entries, hence the same answers.

        Raises
        ------
        LedgerError
            If a field is missing, the form is another one, or the content does not match its hash.
        """
        if not isinstance(data, Mapping):
            raise LedgerError(f"{_validate._said(data)} is no ledger: it must be a mapping")
        try:
            body = {key: data[key] for key in ("form", "eps", "delta", "entries")}
            digest = data["sha256"]
        except (KeyError, TypeError) as problem:
            raise LedgerError(f"this is no ledger: {problem!r} is missing") from None
        if body["form"] != FORM:
            raise LedgerError(f"the ledger has form {body['form']!r}: this version reads form {FORM}")
        if digest != _digest(body):
            raise LedgerError("the ledger was changed after it was saved: its content does not match its hash")
        try:
            ledger = cls(body["eps"], body["delta"])
            for entry in body["entries"]:
                times = _validate.integer("times", entry["times"], 1)
                ledger._entries.append((from_dict(entry["profile"]), times, entry["note"]))
            ledger._whole = ledger._with() if ledger._entries else None
        except (KeyError, TypeError, ValueError) as problem:
            raise LedgerError(f"the ledger cannot be read: {problem}") from problem
        return ledger

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the ledger to a file; an older one is replaced only when the new one is whole.

        Parameters
        ----------
        path : path-like
            Where to; a JSON file.
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
            What :meth:`save` wrote.

        Returns
        -------
        Ledger
            The file stays as it is.

        Raises
        ------
        LedgerError
            If it is damaged, or was changed.
        """
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
        except ValueError as problem:
            raise LedgerError(f"{path} holds no JSON: {problem}") from None
        return cls.from_dict(data)


def _digest(body: Mapping[str, Any]) -> str:
    """Return the hash of the content, however it is laid out."""
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
