"""Colours, lines and settings that the figures of the documentation share, and their narrow form for phones."""

import re
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

# Okabe and Ito's colours: told apart without red and green
BLUE, ORANGE, GREEN, PURPLE, SKY, GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#666666"
EXACT = {"color": BLUE, "lw": 2.2}
PRINTED = {"color": ORANGE, "lw": 1.6, "ls": "--"}

plt.switch_backend("agg")
plt.rcParams.update({
    "font.size": 11, "axes.titlesize": 11, "figure.titlesize": 12, "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "grid.color": "#dddddd",
    "grid.linewidth": 0.5, "legend.frameon": False, "legend.fontsize": 10, "figure.facecolor": "white",
    "svg.hashsalt": "shufflebounds", "savefig.bbox": "tight", "figure.dpi": 110, "svg.fonttype": "path",
})

_form = {"narrow": False}
WIDTH = 4.2
"""Width of a narrow figure in inches: about 390 pixels with text of 10 points."""


def is_narrow() -> bool:
    """Whether the figure is drawn for a phone."""
    return _form["narrow"]


def columns(number: int) -> int:
    """Return the number of columns of a legend: one in the narrow form."""
    return 1 if is_narrow() else number


def wrapped(text: str, columns: int) -> str:
    """Break the text of a narrow figure into lines; a formula, which is shorter than its source, is not broken."""
    if not is_narrow():
        return text
    formulas: list[str] = []

    def word(found: re.Match[str]) -> str:
        formulas.append(found[0])
        return chr(0xE000 + len(formulas) - 1) * max(1, len(re.sub(r"\\\w+|[{}$^_]", "x", found[0]).replace("x", "")) + 1)

    flat = re.sub(r"\$[^$]*\$", word, text)
    lines = [line for part in flat.split("\n") for line in textwrap.wrap(part, columns)]
    return re.sub("([\ue000-\uf8ff])\\1*", lambda found: formulas[ord(found[1]) - 0xE000], "\n".join(lines))


@contextmanager
def narrow() -> Iterator[None]:
    """Draw figures for a phone: no wider than WIDTH, with smaller type, and panels below each other."""
    _form["narrow"] = True
    try:
        with plt.rc_context({"font.size": 10, "axes.titlesize": 10, "figure.titlesize": 10.5, "legend.fontsize": 9}):
            yield
    finally:
        _form["narrow"] = False


def panels(rows: int = 1, cols: int = 1, *, figsize: tuple[float, float], **given: Any) -> tuple[Figure, Any]:
    """Return a figure and its axes as `plt.subplots` does; in the narrow form all panels are in one column."""
    if not is_narrow():
        return plt.subplots(rows, cols, figsize=figsize, layout="constrained", **given)
    if cols == 1:
        return plt.subplots(rows, 1, figsize=(WIDTH, figsize[1]), layout="constrained", **given)
    figure, axes = plt.subplots(rows * cols, 1, figsize=(WIDTH, 3.1 * rows * cols), layout="constrained")
    return figure, np.reshape(axes, (rows, cols)).squeeze()


def below(figure: Figure, axes: Any, offset: float, height: float, **given: Any) -> None:
    """Put the legend of each of the axes below it, off the curves; `height` in inches is that of the narrow figure."""
    if is_narrow():
        figure.set_figheight(height)
    for axis in axes:
        axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.25 if is_narrow() else offset), **given)


def drawn(figure: Callable[[], Figure]) -> Figure:
    """Return the figure; the lines of its titles are broken if it is narrow."""
    made = figure()
    if made.get_suptitle():
        made.suptitle(wrapped(made.get_suptitle(), 52))
    for axis in made.axes:
        for place in ("left", "center"):
            axis.set_title(wrapped(axis.get_title(place), 50), loc=place)
    return made
