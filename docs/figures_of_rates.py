"""Figures 2 and 3 of Liu et al.: the areas that the paper takes for rates, and what they are worth."""

import math

import matplotlib.pyplot as plt
import numpy as np
from figure_style import BLUE, EXACT, GREEN, GREY, ORANGE, PRINTED, PURPLE, below, panels

from shufflebounds import published


def distribution(budget: float, center: float, z: np.ndarray) -> np.ndarray:
    """Return the distribution function of Laplace noise of scale 1/budget around a value."""
    return np.where(z < center, np.exp(budget * np.minimum(z - center, 0)) / 2, 1 - np.exp(-budget * np.maximum(z - center, 0)) / 2)


def density(budget: float, center: float, z: np.ndarray) -> np.ndarray:
    """Return its density."""
    return budget / 2 * np.exp(-budget * np.abs(z - center))


def areas(value: float, other: float, target: float) -> tuple[float, float]:
    """Return the mass of a user's output where the target's density at 0, or at 1, is the larger, and above the user's own."""
    edges = np.linspace(-40, 41, 162001)
    middle = (edges[1:] + edges[:-1]) / 2
    mass = np.diff(distribution(other, value, edges))
    zero, one, own = density(target, 0, middle), density(target, 1, middle), density(other, value, middle)
    return float(mass[(own < zero) & (one < zero)].sum()), float(mass[(own < one) & (zero < one)].sum())


def rates() -> plt.Figure:
    """Liu et al., Figures 2 and 3."""
    target, other = 3.0, 1.0
    figure, (seen, over_value, over_budget) = panels(1, 3, figsize=(11.0, 4.8))
    figure.suptitle(
        "The published rate is an area; the valid rate is the smallest ratio over all outputs\n"
        r"Laplace noise, target $\varepsilon_1 = 3$ (Liu et al., Figures 2 and 3)"
    )
    z = np.linspace(-1.6, 2.6, 1001)
    own, zero, one = density(other, 0.5, z), density(target, 0, z), density(target, 1, z)
    seen.plot(z, own, color=GREY, lw=2, label=r"$R_i$, $\varepsilon_i = 1$, $x_i = 0.5$")
    seen.plot(z, zero, color=GREEN, lw=1.4, ls="-.", label="$R_1$ at 0")
    seen.plot(z, one, color=ORANGE, lw=1.4, ls="--", label="$R_1$ at 1")
    seen.fill_between(z, own, where=(own < zero) & (one < zero), color=GREEN, alpha=0.35, lw=0, label="$U_0$: taken for 0")
    seen.fill_between(z, own, where=(own < one) & (zero < one), color=ORANGE, alpha=0.35, lw=0, label="$U_1$: taken for 1")
    seen.set(xlabel="output $z$", ylabel="density", title="Figure 2: areas $U_0$, $U_1$", ylim=(0, None))
    values = np.linspace(0, 1, 201)
    for budget, color, style in ((1.0, BLUE, "-"), (2.5, PURPLE, "--")):
        zeros, ones = np.array([areas(float(x), budget, target) for x in values]).T
        over_value.plot(values, zeros, color=color, ls=style, lw=1.8, label=rf"$p_i^0$, $\varepsilon_i = {budget:g}$")
        over_value.plot(values, ones, color=color, ls=style, lw=1.8, marker="o", markevery=40, ms=4,
                        label=rf"$p_i^1$, $\varepsilon_i = {budget:g}$")
    over_value.set(xlabel="value $x_i$", ylabel="mass of the area", title="Figure 3: areas over the value", ylim=(0, None))
    budgets = np.linspace(0.05, 6, 240)
    printed = [published.liu2024_laplace_rate(float(e), target) for e in budgets]
    # the least of R_i/(R_0 + R_1) over all outputs; beyond the target's budget its tails leave nothing
    sound = np.where(budgets <= target, budgets / target * np.exp(target - budgets) / (math.exp(target) + 1), 0)
    over_budget.plot(budgets, printed, label="published: the smaller area", **PRINTED)
    over_budget.plot(budgets, sound, label=r"valid: $\min_z R_i/(R_0+R_1)$", **EXACT)
    over_budget.set(xlabel=r"budget $\varepsilon_i$", ylabel="rate $p_i$", title="Figure 3: rates over the budget", ylim=(0, None))
    below(figure, (seen, over_value, over_budget), -0.2, 12.4)
    return figure
