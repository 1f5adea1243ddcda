"""Output of the command: aligned tables, JSON without infinities, numbers with twelve digits rounded conservatively."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from typing import Any

from shufflebounds._base import __version__, evidence
from shufflebounds._base.evidence import Evidence, Status, shown, verdict
from shufflebounds._base.types import Bound
from shufflebounds.profile import PrivacyProfile

__all__ = [
    "SHORT", "SIDES", "as_json", "as_table", "both", "explain", "format_bound", "format_parameter", "print_report", "report",
    "rests",
]

SIDES: tuple[Bound, Bound] = ("upper", "lower")
SHORT = {"epsilon": "eps", "delta": "delta", "log_delta": "log delta", "advantage": "advantage", "fnr": "fnr"}


def both(method: Callable[..., float], value: float) -> dict[str, float]:
    """Return the upper and the lower bound of a number."""
    return {side: method(value, bound=side) for side in SIDES}


def report(
    name: str, profile: PrivacyProfile, parameters: dict[str, Any], answers: dict[str, dict[str, float]], *, explained: bool = True
) -> dict[str, Any]:
    """Return the result with its mechanism, parameters, claim, evidence and version, in the sequence in which they are printed.

    The evidence is given at the upper bound of eps if this is a result, otherwise at the eps of the parameters, or at 0.
    """
    eps = answers.get("epsilon", {}).get("upper", parameters.get("eps", 0.0))
    eps = eps if math.isfinite(eps) else 0.0
    told = {"mechanism": name, "parameters": parameters, **answers, "theorem": profile.theorem, "neighbours": profile.neighbours}
    if explained:
        told["evidence"] = {side: _evidence(profile, eps, side) for side in SIDES}
    return {**told, "version": __version__}


def _evidence(profile: PrivacyProfile, eps: float, side: Bound) -> dict[str, Any]:
    """Return the verdict on one bound, and the claims on which it rests."""
    claims = profile.evidence(eps, bound=side)
    return {"verdict": verdict(claims), "claims": [{**one._asdict(), "status": one.status.name} for one in claims]}


def as_json(value: Any) -> str:
    """Return JSON. Infinities become strings, because JSON has no number for them."""

    def plain(item: Any) -> Any:
        if isinstance(item, dict):
            return {key: plain(entry) for key, entry in item.items()}
        if isinstance(item, list | tuple):
            return [plain(entry) for entry in item]
        return str(item) if isinstance(item, float) and not math.isfinite(item) else item

    import json

    return json.dumps(plain(value), indent=2, allow_nan=False)


def as_table(rows: Sequence[Sequence[str]]) -> str:
    """Return the rows with their columns aligned."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def format_bound(value: float, side: Bound) -> str:
    """Return twelve digits of a bound: an upper bound rounded up, a lower bound rounded down."""
    return evidence.format_bound(value, upper=side == "upper")


def format_parameter(value: Any) -> str:
    """Return a parameter as text; an integer gets an underscore between groups of three digits."""
    return f"{value:,}".replace(",", "_") if isinstance(value, int) else str(value)


def print_report(told: dict[str, Any], arguments: argparse.Namespace) -> None:
    """Print one result as a table, or as JSON with --json."""
    if arguments.json:
        print(as_json(told))
        return
    for key, short in SHORT.items():
        if key in told:
            sides = told[key]
            print(f"{short} = {sides['upper']!r}  (upper bound; lower bound {sides['lower']!r})")
    rows = [("mechanism", told["mechanism"])]
    rows += [(name.replace("_", "-"), format_parameter(value)) for name, value in told["parameters"].items() if value is not None]
    rows += [(name.replace("_", "-"), f"{value:.6g}") for name, value in told.get("accuracy", {}).items()]
    print(as_table(rows))
    explain(told, arguments)


def explain(told: dict[str, Any], arguments: argparse.Namespace) -> None:
    """Print the relation of neighbours and, for each bound, the claims on which it rests, if --explain is given."""
    if arguments.explain:
        print(as_table([("claim", told["theorem"]), ("neighbours", told["neighbours"])]))
        print("\n".join(rests(told)))


def rests(told: dict[str, Any]) -> list[str]:
    """Return the lines of a report with the claims on which each bound rests."""
    return [line for side in SIDES for line in shown(side, [
        Evidence(**{**one, "status": Status[one["status"]]}) for one in told["evidence"][side]["claims"]])]
