"""Pictures of curves that are given as arrays, on matplotlib Axes; matplotlib is imported when the first one is drawn.

Colours are those of Okabe and Ito, which people with any common colour blindness can tell apart; line styles change where the
colours run out. Values of delta are drawn as their logarithms, so that 1e-3000 has its place as 0.1 has.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from shufflebounds._types import FloatArray

__all__ = [
    "COLORS", "alphas", "axes", "draw_gain", "draw_log_delta", "draw_tradeoff", "labels", "legend", "log_delta_frame", "number",
    "style", "tradeoff_frame",
]


COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_STYLES = ("-", "--", ":", "-.")
_GREY = "#666666"
_LN10 = math.log(10)


def style(place: int) -> dict[str, Any]:
    """Return colour and line style of the curve at this place among several."""
    return {"color": COLORS[place % len(COLORS)], "linestyle": _STYLES[place // len(COLORS) % len(_STYLES)]}


def axes(ax: Any = None, *, wide: bool = False) -> Any:
    """Return the Axes to draw on: the one given, or that of a new figure, with room for a legend beside it where wide is set."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as problem:
        raise ImportError("plots need matplotlib: pip install 'shufflebounds[plot]'") from problem
    return pyplot.subplots(figsize=(9.0 if wide else 6.0, 4.5), layout="constrained")[1]


def tradeoff_frame(ax: Any, title: str) -> None:
    """Draw what every picture of trade-off functions has: the square and the diagonal of perfect privacy."""
    ax.plot([0, 1], [1, 0], color=_GREY, linestyle=(0, (1, 1.5)), linewidth=1.2, label=r"perfect privacy, $1-\alpha$", zorder=1)
    ax.set(
        xlim=(0, 1), ylim=(0, 1), aspect="equal", title=title,
        xlabel=r"error of the first kind $\alpha$ (probability)",
        ylabel=r"error of the second kind $\beta = f(\alpha)$ (probability)",
    )
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)


def draw_tradeoff(
    ax: Any, alpha: FloatArray, beta: FloatArray, *, label: str, place: int = 0, advantage: float | None = None, shade: bool = False
) -> None:
    """Draw one trade-off function, and its advantage as the longest way down from the diagonal."""
    if shade:
        # alone in its picture, with its legend in the corner that the curve leaves free, which is narrow
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
    """Draw how far a trade-off function lies below perfect privacy, with its advantage, the most of it."""
    look = style(0)
    ax.plot(alpha, gain, label=rf"$1-\alpha-f(\alpha)$, at most {advantage:.3g}", linewidth=1.8, zorder=3, **look)
    ax.fill_between(alpha, 0, gain, color=look["color"], alpha=0.12, linewidth=0, zorder=2)
    ax.axhline(advantage, color=_GREY, linestyle=(0, (1, 1.5)), linewidth=1.2, zorder=1)
    ax.set(
        xlim=(0, 1), ylim=(0, 1.25 * advantage or 1), xlabel=r"error of the first kind $\alpha$ (probability)",
        ylabel=r"gain over guessing, $1-\alpha-\beta$ (probability)",
    )
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)
    legend(ax)


def draw_log_delta(
    ax: Any, eps: FloatArray, lower: FloatArray, upper: FloatArray, *, label: str, place: int = 0
) -> None:
    """Draw both sides of log delta over eps with what lies between them; where delta is 0 the line ends."""
    look = style(place)
    low, high = (np.where(side > -np.inf, side, np.nan) / _LN10 for side in (lower, upper))
    ax.plot(eps, high, label=label, linewidth=1.8, zorder=3, **look)
    ax.plot(eps, low, linewidth=0.9, zorder=3, **{**look, "linestyle": "--"})
    # where nothing is known from below, everything under the upper side is open
    floor = np.nanmin(np.concatenate([low, high, [0.0]]))
    ax.fill_between(eps, np.where(np.isnan(low), floor, low), high, color=look["color"], alpha=0.25, linewidth=0, zorder=2)


def log_delta_frame(ax: Any, title: str, least: float | None = None) -> None:
    """Give the picture of log delta its axes, down to the least delta shown: the values are log10, the ticks read as delta."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    ax.yaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: "1" if y == 0 else f"$10^{{{y:.0f}}}$"))
    ax.set(
        title=title, xlabel=r"privacy loss $\varepsilon$ (nats)", ylabel=r"$\delta(\varepsilon)$ (probability)",
    )
    ax.margins(x=0)
    low, high = ax.get_ylim()
    # nothing lies above delta = 1; the margins of a deep axis would reach far beyond it
    ax.set_ylim(max(low, math.log10(least)) if least is not None else low, min(high, 0.03 * -max(low, -15 if least else low)))
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)


def legend(ax: Any, *, outside: bool = False) -> None:
    """Give the picture its legend; many entries stand beside it."""
    if outside:
        ax.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.01, 0.5))
    else:
        ax.legend(frameon=False, fontsize="small", loc="best")


def alphas(knots: FloatArray | None = None, points: int = 401) -> FloatArray:
    """Return levels that show a trade-off function: even ones, small ones, and its own corners where they are few."""
    grid = [np.linspace(0, 1, points), np.geomspace(1e-6, 1e-2, 41)]
    if knots is not None and knots.size <= 10 * points:
        grid.append(np.exp(knots))
    return np.unique(np.clip(np.concatenate(grid), 0, 1))


def labels(parameters: Sequence[dict[str, Any]], names: Sequence[str]) -> list[str]:
    """Return for each set of parameters what tells it from the others."""
    keys = [key for key in dict.fromkeys(key for entry in parameters for key in entry)
            if len({repr(entry.get(key)) for entry in parameters}) > 1]
    several = len(set(names)) > 1
    out = []
    for name, entry in zip(names, parameters):
        told = ", ".join(f"{key} = {number(entry[key])}" for key in keys if key in entry)
        out.append((f"{name}: {told}" if told else name) if several or not told else told)
    return out


def number(value: Any) -> str:
    """Return a parameter in few characters."""
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}".replace(",", "\u2009")
    if isinstance(value, float):
        return f"{value:.6g}"
    # the repr of a million numbers takes seconds
    text = "…" if isinstance(value, tuple | list) and len(value) > 12 else repr(value)
    return text if len(text) <= 24 else "…"
