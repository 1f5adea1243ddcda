"""The figures of docs/randomizers.md: bounds after the shuffle, against those that know the budget only, and against each other."""

import math
from functools import cache

import matplotlib.pyplot as plt
import numpy as np
from figure_style import BLUE, EXACT, GREEN, ORANGE, PRINTED, PURPLE, SKY, columns, is_narrow, panels
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter

from shufflebounds import published
from shufflebounds.mechanisms import GaussianMechanism, HadamardResponse, KaryResponse, LaplaceMechanism, LocalHashing
from shufflebounds.shuffle import StrongerClones, shuffled_epsilons

Mechanism = GaussianMechanism | LaplaceMechanism | LocalHashing


def randomizers() -> plt.Figure:
    """Show eps over the number of users, for randomizers of one local budget, in units of the stronger clones' eps."""
    local, delta = 1.0, 1e-8
    users = np.unique(np.round(np.geomspace(10**3, 10**8, 11)).astype(np.int64))
    clones = np.array([StrongerClones(int(n), local).epsilon(delta) for n in users])
    closed = []
    for n in users:
        try:
            closed.append(published.stronger_clones_closed_form(int(n), local, delta))
        except ValueError:
            closed.append(math.nan)
    # with the height of the label, so that none covers another
    shown = [
        ("Laplace noise on [0, 1]", LaplaceMechanism.from_eps(eps=local), PURPLE, 0.9),
        ("Hadamard response", HadamardResponse(100, local), GREEN, 0.755),
        ("local hashing", LocalHashing(100, local), SKY, 0.64),
        ("10-ary response", KaryResponse(10, local), BLUE, 0.535),
        ("100-ary response", KaryResponse(100, local), "black", 0.168),
    ]
    figure, axis = panels(figsize=(9.0, 5.2))
    axis.plot(users, closed / clones, **PRINTED)
    axis.axhline(1.0, color=ORANGE, lw=1.6)
    labels = [("closed form,\nany randomizer", float(closed[-1] / clones[-1]), ORANGE),
              ("StrongerClones, any randomizer", 1.1, ORANGE)]
    below = []
    for name, mechanism, color, height in shown:
        profiles = [mechanism.shuffled(int(n)) for n in users]
        upper, lower = (np.array([p.epsilon(delta, bound=bound) for p in profiles]) / clones for bound in ("upper", "lower"))
        gap = float((upper / lower).max()) - 1
        below.append(closed / clones / upper)
        axis.fill_between(users, lower, upper, color=color, alpha=0.35, lw=0)
        axis.plot(users, upper, **{**EXACT, "color": color, "lw": 1.6})
        text = "both bounds, one line" if gap < 0.01 else f"bounds {100 * gap:.0f} % apart"
        labels.append((f"{name}: {text}", height, color))
    if is_narrow():
        lines = [Line2D([], [], color=color, lw=1.6, ls="--" if text.startswith("closed") else "-") for text, _, color in labels]
        figure.legend(lines, [text.replace("\n", " ") for text, _, _ in labels], loc="outside lower center")
    else:
        for text, height, color in labels:
            axis.annotate(text, (users[-1], height), (8, 0), textcoords="offset points", color=color, va="center", fontsize=10)
    axis.set(xscale="log", yscale="log", xlabel="users $n$", ylabel=r"ratio of $\varepsilon$ to that of StrongerClones",
             yticks=[0.2, 0.5, 1, 2, 5], yticklabels=["0.2", "0.5", "1", "2", "5"],
             title=f"For a known randomizer eps is {np.nanmin(below):.0f} to {np.nanmax(below):.0f} times below the closed form\n"
                   r"$\varepsilon$ at $\delta = 10^{-8}$, local budget $\varepsilon_0 = 1$")
    # a scale of its own sets a formatter of its own
    axis.yaxis.set_minor_formatter(NullFormatter())
    return figure


@cache
def sides(mechanism: Mechanism, users: tuple[int, ...], delta: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return eps by the privacy blanket, by the bound over all datasets, and from below."""
    profiles = [mechanism.shuffled(n) for n in users]
    upper, lower = (np.array([p.epsilon(delta, bound=bound) for p in profiles]) for bound in ("upper", "lower"))
    return shuffled_epsilons(mechanism, users, delta, method="blanket"), upper, lower


def worst_dataset() -> plt.Figure:
    """Show eps of the privacy blanket and of the bound over all datasets, in units of the lower bound."""
    delta = 1e-6
    users = np.unique(np.round(np.geomspace(10**3, 10**7, 9)).astype(np.int64))
    shown = [
        (r"Gaussian noise, $\sigma = 1$, inputs in $[0, 1]$", GaussianMechanism(1.0)),
        (r"Laplace noise, scale 1/4, inputs in $[0, 1]$", LaplaceMechanism(0.25)),
        (r"local hashing, 4 buckets, $\varepsilon_0 = 1$", LocalHashing(100, 1.0, 4)),
    ]
    figure, axes = panels(1, 3, figsize=(11.0, 3.9), sharey=True)
    furthest = 0.0
    for axis, (name, mechanism) in zip(axes, shown):
        blanket, upper, lower = sides(mechanism, tuple(users.tolist()), delta)
        axis.plot(users, blanket / lower, color=ORANGE, lw=1.6, label="privacy blanket")
        axis.plot(users, upper / lower, color=BLUE, lw=1.8, label="upper bound over all datasets")
        axis.axhline(1.0, color=GREEN, lw=1.2, ls="--", label="lower bound: the other users hold one value")
        axis.set(xscale="log", xlabel="users $n$", title=name, ylim=(0.93, 1.5))
        furthest = max(furthest, float((upper / lower)[users >= 10**4].max()) - 1)
    axes[0].set_ylabel(r"ratio of $\varepsilon$ to its lower bound")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=columns(3))
    percent = math.ceil(1000 * furthest) / 10
    figure.suptitle(f"From $10^4$ users on the upper bound is within {percent:g} % of the worst known dataset, "
                    r"at $\delta = 10^{-6}$")
    return figure
