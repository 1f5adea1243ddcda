"""Figures of curves given as arrays, drawn on matplotlib Axes. matplotlib is imported when the first figure is drawn.

The first seven colours are those of Okabe and Ito, which people with common kinds of colour blindness can distinguish; the other
three colours differ at least as much. Line styles change after the last colour.

delta is drawn as log10 delta, because values such as 1e-3000 are not doubles.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from shufflebounds._base.types import FloatArray

__all__ = [
    "COLORS", "alphas", "axes", "draw_gain", "draw_log_delta", "draw_tradeoff", "labels", "legend", "log_delta_frame", "number",
    "style", "tradeoff_frame",
]


COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#882255", "#332288", "#661100")
LONGEST_LABEL = 40
"""Largest number of characters of a label in a legend. Raised: legends cover curves. Lowered: fewer parameters are named."""
_STYLES = ("-", "--", ":", "-.")
_GREY = "#666666"


def style(place: int, besides: str = "") -> dict[str, Any]:
    """Return colour and line style of the curve with this index; the colour `besides` is not used."""
    colors = [color for color in COLORS if color != besides]
    return {"color": colors[place % len(colors)], "linestyle": _STYLES[place // len(colors) % len(_STYLES)]}


def axes(ax: Any = None, *, wide: bool = False) -> Any:
    """Return the given Axes, or those of a new figure; `wide` leaves space for a legend beside it."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as problem:
        raise ImportError("plots need matplotlib: pip install 'shufflebounds[plot]'") from problem
    return pyplot.subplots(figsize=(9.0 if wide else 6.0, 4.5), layout="constrained")[1]


def plain_axes(ax: Any) -> None:
    """Draw a light grid, and no frame at the top and on the right."""
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)


def tradeoff_frame(ax: Any, title: str) -> None:
    """Draw the unit square and the diagonal of perfect privacy."""
    ax.plot([0, 1], [1, 0], color=_GREY, linestyle=(0, (1, 1.5)), linewidth=1.2, label=r"perfect privacy, $1-\alpha$", zorder=1)
    ax.set(
        xlim=(0, 1), ylim=(0, 1), aspect="equal", title=title,
        xlabel=r"error of the first kind $\alpha$ (probability)",
        ylabel=r"error of the second kind $\beta = f(\alpha)$ (probability)",
    )
    plain_axes(ax)


def draw_tradeoff(
    ax: Any, alpha: FloatArray, beta: FloatArray, *, label: str, place: int = 0, advantage: float | None = None, shade: bool = False
) -> None:
    """Draw one trade-off function, and its advantage as the largest vertical distance from the diagonal."""
    if shade:
        # A single curve has its legend in the free corner, which is narrow.
        label = textwrap.fill(label, 34, break_long_words=False)
    if advantage is not None:
        label = f"{label}\nadvantage {advantage:.3g}"
    look = style(place)
    ax.plot(alpha, beta, label=label, linewidth=1.8, zorder=3, **look)
    if shade:
        ax.fill_between(alpha, beta, 1 - alpha, color=look["color"], alpha=0.12, linewidth=0, zorder=2)
    if advantage is not None:
        at = int(np.argmax(1 - alpha - beta))
        x, low, high = float(alpha[at]), float(beta[at]), 1 - float(alpha[at])
        ax.plot([x, x], [low, high], color=look["color"], linewidth=1.2, marker="_", markersize=7, zorder=2)


def draw_gain(ax: Any, alpha: FloatArray, gain: FloatArray, advantage: float) -> None:
    """Draw 1 - alpha - f(alpha), and its maximum, the advantage."""
    look = style(0)
    ax.plot(alpha, gain, label=rf"$1-\alpha-f(\alpha)$, at most {advantage:.3g}", linewidth=1.8, zorder=3, **look)
    ax.fill_between(alpha, 0, gain, color=look["color"], alpha=0.12, linewidth=0, zorder=2)
    ax.axhline(advantage, color=_GREY, linestyle=(0, (1, 1.5)), linewidth=1.2, zorder=1)
    ax.set(
        xlim=(0, 1), ylim=(0, 1.25 * advantage or 1), xlabel=r"error of the first kind $\alpha$ (probability)",
        ylabel=r"gain over guessing, $1-\alpha-\beta$ (probability)",
    )
    plain_axes(ax)
    legend(ax)


def draw_log_delta(
    ax: Any, eps: FloatArray, lower: FloatArray, upper: FloatArray, *, label: str, place: int = 0
) -> None:
    """Draw both bounds of log delta over eps and shade the area between them. The line ends where delta is 0."""
    look = style(place)
    low, high = (np.where(side > -np.inf, side, np.nan) / math.log(10) for side in (lower, upper))
    ax.plot(eps, high, label=label, linewidth=1.8, zorder=3, **look)
    ax.plot(eps, low, linewidth=0.9, zorder=3, **{**look, "linestyle": "--"})
    # If the lower bound is trivial, shade everything below the upper bound.
    floor = np.nanmin(np.concatenate([low, high, [0.0]]))
    ax.fill_between(eps, np.where(np.isnan(low), floor, low), high, color=look["color"], alpha=0.25, linewidth=0, zorder=2)


def log_delta_frame(ax: Any, title: str, floor: float | None = None) -> None:
    """Set the axes of a figure of log10 delta, with ticks labelled as delta, down to the smallest delta shown."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    ax.yaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: "1" if y == 0 else f"$10^{{{y:.0f}}}$"))
    ax.set(
        title=title, xlabel=r"privacy loss $\varepsilon$ (nats)", ylabel=r"$\delta(\varepsilon)$ (probability)",
    )
    ax.margins(x=0)
    low, high = ax.get_ylim()
    # With the default margin, a long axis of log delta would extend far above delta = 1.
    ax.set_ylim(max(low, math.log10(floor)) if floor is not None else low, min(high, 0.03 * -max(low, -15 if floor else low)))
    plain_axes(ax)


def legend(ax: Any, *, outside: bool = False) -> None:
    """Add the legend, beside the figure if it has many entries."""
    if outside:
        ax.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.01, 0.5))
    else:
        ax.legend(frameon=False, fontsize="small", loc="best")


def alphas(knots: FloatArray | None = None) -> FloatArray:
    """Return values of alpha to draw: an even grid, a grid of small values, and the breakpoints of the curve if they are few."""
    grid = [np.linspace(0, 1, 401), np.geomspace(1e-6, 1e-2, 41)]
    if knots is not None and knots.size <= 4010:
        grid.append(np.exp(knots))
    return np.unique(np.clip(np.concatenate(grid), 0, 1))


def labels(parameters: Sequence[dict[str, Any]], names: Sequence[str]) -> list[str]:
    """Return, for each set of parameters, a label with the parameters that differ between the sets.

    A label has at most `LONGEST_LABEL` characters.

    A label that is too long loses its last parameters. Equal labels are numbered.
    """
    keys = [key for key in dict.fromkeys(key for entry in parameters for key in entry)
            if len({repr(entry.get(key)) for entry in parameters}) > 1]
    several = len(set(names)) > 1
    out = []
    for name, entry in zip(names, parameters):
        told = [f"{key} = {text}" for key in keys if key in entry and (text := number(entry[key])) != "…"]
        head = f"{name}: " if several else ""
        while len(told) > 1 and len(head + ", ".join(told)) > LONGEST_LABEL:
            told.pop()
        out.append((head + ", ".join(told) if told else name)[:LONGEST_LABEL])
    return out if len(set(out)) == len(out) else [f"{place}: {text}"[:LONGEST_LABEL] for place, text in enumerate(out, 1)]


def shared(parameters: Sequence[dict[str, Any]]) -> str:
    """Return the parameters that have the same value in all sets; long values are omitted."""
    first = parameters[0]
    equal = {key: number(value) for key, value in first.items() if len({repr(entry.get(key)) for entry in parameters}) == 1}
    return ", ".join(f"{key} = {text}" for key, text in equal.items() if text != "…")


def number(value: Any) -> str:
    """Return a short text of a parameter."""
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}".replace(",", "\u2009")
    if isinstance(value, float):
        return f"{value:.6g}"
    # The repr of a million numbers would take seconds.
    text = "…" if isinstance(value, tuple | list) and len(value) > 12 else repr(value)
    return text if len(text) <= 24 else "…"
