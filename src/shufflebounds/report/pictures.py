"""Figures and tables of profiles. This module computes the values, and shufflebounds._base.plotting draws them."""

from __future__ import annotations

import html
import math
import textwrap
import time
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shufflebounds._base import plotting
from shufflebounds._base import validate as _validate
from shufflebounds._base.docs import with_passages
from shufflebounds._base.evidence import format_bound
from shufflebounds._base.types import FloatArray
from shufflebounds.answers.bounded_profile import BoundedProfile

__all__ = ["compare", "losses_shown", "name_of", "parameters", "plot_profile", "table"]


_LEAST_DELTA = 1e-15
"""Lower end of the axis of delta. Raised: smaller delta is not shown. Lowered: the curve at usual delta becomes flatter."""


def parameters(profile: Any) -> dict[str, Any]:
    """Return the parameters of a profile by name; empty if it is not a dataclass."""
    if not is_dataclass(profile):
        return {}
    return {f.name: getattr(profile, f.name) for f in fields(profile) if f.init and f.repr}


def _fits(text: str) -> bool:
    """Return whether a text fits into the title of a figure, which has a width of about 64 characters."""
    return len(text) <= 64


def name_of(profile: Any) -> str:
    """Return the name of a profile in a figure: its repr if that is short, the mechanisms it composes, or its class."""
    factors = getattr(profile, "factors", None)
    if factors is not None:
        return _name_of_releases(factors)
    text = repr(profile)
    return text if _fits(text) else type(profile).__name__.lstrip("_")


def _name_of_releases(factors: tuple[tuple[Any, int], ...]) -> str:
    """Return the composed mechanisms with their numbers of releases, so that they fit into a title."""
    for names in ([name_of(one) for one, _ in factors], [type(one).__name__.lstrip("_") for one, _ in factors]):
        text = " + ".join(f"{plotting.number(times)} × {name}" for name, (_, times) in zip(names, factors))
        if _fits(text):
            return text
    return f"{len(factors)} mechanisms, {plotting.number(sum(times for _, times in factors))} releases"


def losses_shown(profiles: tuple[Any, ...], eps: ArrayLike | None = None, points: int = 241) -> FloatArray:
    """Return the values of eps to draw for all profiles: `eps` if given, otherwise a grid from 0 that is long enough for every
    profile.
    """
    return _losses_of_each(profiles, eps, points)[-1]


@_validate.quiet()
def _losses_of_each(profiles: tuple[Any, ...], eps: ArrayLike | None, points: int = 241) -> list[FloatArray]:
    """Return the values of eps to draw for each profile, and at the end the values for all profiles together.

    The values are `eps` if given. Otherwise all profiles use one grid. The points of a profile end at the first one at which its
    delta is negligible or constant, because a smaller delta takes longer.
    """
    if eps is not None:
        return [np.unique(_validate.real_array("eps", eps, 0))] * (len(profiles) + 1)
    ends = []
    for profile in profiles:
        top = profile.epsilon(_LEAST_DELTA)
        if top == math.inf:
            top = 1.25 * profile.epsilon(min(1.0, 1.01 * profile.delta(700.0)))
        ends.append(top)
    grid = np.linspace(0, max(*ends, 1e-6), points)
    return [*(grid[:np.searchsorted(grid, end) + 1] for end in ends), grid]


def _draw(ax: Any, profile: Any, eps: FloatArray, label: str, place: int = 0) -> None:
    lower, upper = (np.asarray(profile.log_delta(eps, bound=side), dtype=np.float64) for side in ("lower", "upper"))
    plotting.draw_log_delta(ax, eps, lower, upper, label=label, place=place)


def plot_profile(profile: BoundedProfile, ax: Any, eps: ArrayLike | None, label: str | None) -> Any:
    """Draw delta(eps) of one profile and return the Axes."""
    losses = losses_shown((profile,), eps)
    ax = plotting.axes(ax)
    # A name may be too long for the legend.
    _draw(ax, profile, losses, textwrap.fill(name_of(profile), plotting.LONGEST_LABEL) if label is None else label)
    plotting.log_delta_frame(ax, "Privacy profile, upper and lower bound", _LEAST_DELTA if eps is None else None)
    plotting.legend(ax)
    return ax


@with_passages
def compare(*profiles: Any, kind: str = "tradeoff", eps: ArrayLike | None = None, labels: list[str] | None = None,
            ax: Any = None) -> Any:
    r"""Draw several profiles on one Axes, as trade-off functions or as :math:`\delta(\varepsilon)`.

    Parameters
    ----------
    *profiles : PrivacyProfile
        One or more.
    kind : {"tradeoff", "profile"}
        "tradeoff": the guaranteed trade-off functions (``tradeoff()``, nowhere above those of the mechanism) with the diagonal of
        perfect privacy and the advantage of each profile, which is its largest vertical distance from the diagonal. "profile":
        delta on a logarithmic axis, with the area between the upper and the lower bound shaded.
    eps : array_like, optional
        Privacy losses in nats to draw for ``kind="profile"``, finite and >= 0; by default up to where the largest delta falls
        below 1e-15.
    labels : list of str, optional
        One for each profile; by default the parameters in which they differ.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    {axes}

    {raises: If there is no profile, `kind` is neither word, `labels` has another length, or `eps` lies outside its range.}
    ImportError
        If matplotlib is not installed (extra ``plot``).

    Examples
    --------
    >>> from shufflebounds import compare, shuffle
    >>> profiles = [shuffle.StrongerClones(n, 4.0) for n in (10**4, 10**5, 10**6)]
    >>> ax = compare(*profiles, kind="profile")
    >>> [text.get_text().replace("\u2009", " ") for text in ax.get_legend().get_texts()]
    ['users = 10 000', 'users = 100 000', 'users = 1 000 000']
    """
    if not profiles:
        raise ValueError("profiles=() must hold at least one profile")
    _validate.choice("kind", kind, ("tradeoff", "profile"))
    for profile in profiles:
        if not hasattr(profile, "tradeoff"):
            advice = "pass StrongerClones(10**6, 4.0) or another"
            if isinstance(profile, list | tuple):
                advice = "pass several profiles as arguments, compare(p, q)"
            raise TypeError(f"{_validate.short_repr(profile)} must be a PrivacyProfile to be drawn: {advice}")
    names = [type(profile).__name__.lstrip("_") for profile in profiles]
    if labels is None:
        labels = plotting.labels([parameters(profile) for profile in profiles], names)
    if len(labels) != len(profiles):
        raise ValueError(f"labels={labels!r} must hold {len(profiles)} words, one for each profile")
    losses = _losses_of_each(profiles, eps) if kind == "profile" else None
    wide = len(profiles) > 4 or (kind == "tradeoff" and max(map(len, labels)) > 24)
    ax = plotting.axes(ax, wide=wide)
    title = names[0] if len(set(names)) == 1 else "comparison"
    if len(profiles) > 1 and len(set(names)) == 1:
        shared = plotting.shared([parameters(profile) for profile in profiles])
        title = f"{title}, {shared}" if shared and _fits(f"Trade-off functions: {title}, {shared}") else title
    if losses is None:
        plotting.tradeoff_frame(ax, f"Trade-off functions: {title}")
        for place, (profile, label) in enumerate(zip(profiles, labels)):
            profile.tradeoff()._draw(ax, label, place)
    else:
        for place, (profile, label) in enumerate(zip(profiles, labels)):
            _draw(ax, profile, losses[place], label, place)
        plotting.log_delta_frame(ax, f"Privacy profiles: {title}", _LEAST_DELTA if eps is None else None)
    plotting.legend(ax, outside=wide)
    return ax


def effort(profile: BoundedProfile) -> float:
    """Return about how many seconds a value of delta takes; a page or a table shows fewer values if this is long."""
    # The effort stated for a composition is that of one more value; the first value also needs a grid or a transform.
    return 0.05 if hasattr(profile, "factors") else profile._pair_info().sampling.effort


def table(profile: BoundedProfile) -> str:
    """Return a small HTML table: the parameters, the theorem, and eps at a few delta if that is fast."""
    rows = [(name, html.escape(plotting.number(value))) for name, value in parameters(profile).items()]
    rows += [("claim", html.escape(profile.theorem)), ("neighbours", html.escape(profile.neighbours))]
    # A notebook shows the table of every profile that a cell returns, so its values may take 20 ms at most.
    start, longest = time.perf_counter(), 0.02
    # Both bounds of an eps take about 40 values of delta.
    quick = not profile._prepares and 40 * profile._pair_info().sampling.effort < longest
    for delta in (1e-6, 1e-9, 1e-12):
        shown = f"takes longer: <code>.epsilon({delta:g})</code>"
        if quick and time.perf_counter() - start < longest:
            low = profile.epsilon(delta, bound="lower")
            if time.perf_counter() - start < longest:
                high = format_bound(profile.epsilon(delta), upper=True, digits=6)
                shown = f"{format_bound(low, upper=False, digits=6)} &le; &epsilon; &le; {high}"
        rows.append((f"&epsilon; at &delta; = {delta:g}", shown))
    head = f'<tr><th colspan="2" style="text-align:left">{html.escape(type(profile).__name__.lstrip("_"))}</th></tr>'
    body = "".join(
        f'<tr><td style="text-align:left">{name}</td><td style="text-align:left">{value}</td></tr>' for name, value in rows
    )
    return f"<table>{head}{body}</table>"
