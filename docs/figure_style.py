"""Colours, lines and settings that the figures of the documentation share."""

import matplotlib.pyplot as plt

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
