"""A ledger of releases with a privacy budget, which refuses releases beyond the budget and can be saved to a file."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from shufflebounds._base import validate as _validate
from shufflebounds._base.calls import explained
from shufflebounds.profile import Composition, PrivacyProfile
from shufflebounds.profile.saving import from_dict, to_dict

__all__ = ["BudgetExceededError", "Ledger", "LedgerError"]

FORM = 1
"""Version of the file format. Raised: older versions of this library refuse the ledger, and this one refuses older ledgers."""


class BudgetExceededError(ValueError):
    """A release would exceed the budget; the ledger is unchanged."""


class LedgerError(ValueError):
    """A file is not a ledger, or its content does not match its hash."""


@explained
class Ledger:
    r"""A record of the releases on one dataset, with a budget (eps, delta).

    Parameters
    ----------
    eps : float
        The budget in nats, > 0.
    delta : float
        The budget's delta, in (0, 1); a value above 1e-3 draws a warning.

    Notes
    -----
    The spent eps is the upper bound of the composition of all entries at the delta of the budget. The choice of mechanisms must not
    depend on the remaining budget (that would need a privacy filter). A saved ledger contains its version, its entries and
    their SHA-256.

    The hash detects a truncated or damaged file, and entries edited, removed or added by hand. It does **not** detect someone who
    computes the hash again (it has no key), a file replaced by an older copy, or releases that were never entered. If these matter,
    restrict write access to the file, or sign it.

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
        self._eps, self._delta = _validate.target(eps, delta, open_eps=True)
        self._entries: list[tuple[PrivacyProfile, int, str]] = []
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
    def profile(self) -> Composition | None:
        """The composition of all entries, or None if there are none."""
        return self._whole

    @property
    def spent(self) -> float:
        """The upper bound of eps of all entries at the delta of the budget."""
        return 0.0 if self._whole is None else self._whole.epsilon(self._delta)

    @property
    def left(self) -> float:
        """The eps of the budget minus the spent eps. One more release may add more or less than its own eps."""
        return self._eps - self.spent

    def _with(self, *more: tuple[PrivacyProfile, int]) -> Composition:
        return Composition((*((profile, times) for profile, times, _ in self._entries), *more))

    @_validate.quiet()
    def _holds(self, whole: Composition) -> bool:
        return whole.delta(self._eps) <= self._delta

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
            True if the upper bound of delta at the eps of the budget is at most the delta of the budget.
        """
        return self._holds(self._with((mechanism, times)))

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
        whole = self._with((mechanism, times))
        if not self._holds(whole):
            raise BudgetExceededError(
                f"{mechanism!r} {times} times would bring delta at eps={self._eps:g} above {self._delta:g}: "
                f"{self.left:.4g} of eps is left"
            )
        self._entries.append((mechanism, times, str(note)))
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
            A ledger with the saved budget and entries.

        Raises
        ------
        LedgerError
            If a field is missing, the version is unknown, or the content does not match its hash.
        """
        if not isinstance(data, Mapping):
            raise LedgerError(f"{_validate.short_repr(data)} is no ledger: it must be a mapping")
        try:
            body = {key: data[key] for key in ("form", "eps", "delta", "entries")}
            digest = data["sha256"]
        except (KeyError, TypeError) as problem:
            raise LedgerError(f"this is no ledger: {problem!r} is missing") from None
        if body["form"] != FORM:
            raise LedgerError(f"the ledger has form {body['form']!r}: this version reads form {FORM}")
        try:
            if digest != _digest(body):
                raise LedgerError("the ledger was changed after it was saved: its content does not match its hash")
            ledger = cls(body["eps"], body["delta"])
            for entry in body["entries"]:
                times = _validate.integer("times", entry["times"], 1)
                ledger._entries.append((from_dict(entry["profile"]), times, str(entry["note"])))
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
            A ledger with the saved budget and entries; later entries do not change the file until it is saved again.

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
