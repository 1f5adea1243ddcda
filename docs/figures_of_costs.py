"""How the time of one answer grows: the newest benchmarks/results/growth-*.json, which benchmarks/growth.py measures."""

import json
from pathlib import Path

import matplotlib.pyplot as plt
from figure_style import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, is_narrow, panels

RESULTS = Path(__file__).resolve().parents[1] / "benchmarks" / "results"
STYLES = [(BLUE, "o", "-"), (ORANGE, "s", "--"), (GREEN, "^", "-."), (PURPLE, "D", ":"), (SKY, "v", "-"), (GREY, "x", "--")]


def newest() -> dict:
    """Return the last record of growth."""
    return json.loads(max(RESULTS.glob("growth-*.json")).read_text())


def growth() -> plt.Figure:
    """Time over users, releases, different probabilities and digits of 1/delta."""
    record = newest()
    figure, axes = panels(2, 2, figsize=(10.0, 9.0), sharey=True)
    exponents = [row["exponent"] for families in record["growth"].values() for row in families.values()]
    figure.suptitle(f"Over the upper half of each range the run time grows with a power of at most {max(exponents):.2f}\n"
                    f"(CPU seconds on one core, {record['date'][:10]}; in brackets the power)")
    for axis, (label, families) in zip(axes.flat, record["growth"].items(), strict=True):
        for (name, row), (color, marker, line) in zip(families.items(), STYLES):
            axis.plot(row["sizes"], row["seconds"], color=color, marker=marker, ls=line, lw=1.6, ms=5,
                      label=f"{name} ({row['exponent']:.2f})".replace("-0.00", "0.00"))
        axis.set(xscale="log", yscale="log", xlabel=label, ylim=(1e-6, 1e6 if is_narrow() else 1e4))
        axis.legend(loc="upper left")
    for axis in axes[:, 0]:
        axis.set_ylabel("seconds")
    return figure
