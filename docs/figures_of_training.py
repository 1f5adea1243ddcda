"""Figures of training: whose neighbours, and eps over the epochs of DP-SGD. `make_figures.py` draws them."""

from functools import cache

import matplotlib.pyplot as plt
import numpy as np
from figure_style import BLUE, EXACT, GREEN, GREY, ORANGE, PRINTED, PURPLE, is_narrow, panels
from matplotlib.patches import FancyBboxPatch
from matplotlib.ticker import NullLocator

from shufflebounds.mechanisms import GaussianMechanism
from shufflebounds.sampling import RandomAllocation, ShuffledBatches

DELTA, SIGMA, STEPS = 1e-5, 1.0, 100
"""One epoch is STEPS batches, at rate 1/STEPS."""

EPOCHS = (1, 2, 4, 7, 10, 20, 40, 70, 100)

SIGMAS, BATCH, BATCHES = (1.0, 2.0, 4.0), 1000, np.round(np.geomspace(10**2, 10**6, 17))
"""Noise, records of a batch and numbers of batches of the figure of shuffled batches."""


def sides(profile):
    """Lower and upper eps."""
    return [profile.epsilon(DELTA, bound=bound) for bound in ("lower", "upper")]


def others(steps):
    """Eps by dp-accounting: the optimistic and the pessimistic distribution at its usual grid, and Renyi's."""
    # the other figures are drawn without it
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
    from dp_accounting.pld import privacy_loss_distribution
    from dp_accounting.rdp import RdpAccountant

    out = []
    for pessimistic in (False, True):
        one = privacy_loss_distribution.from_gaussian_mechanism(
            SIGMA, sampling_prob=1 / STEPS, value_discretization_interval=1e-4, pessimistic_estimate=pessimistic)
        out.append(one.self_compose(steps).get_epsilon_for_delta(DELTA))
    rdp = RdpAccountant().compose(PoissonSampledDpEvent(1 / STEPS, GaussianDpEvent(SIGMA)), steps)
    return [*out, rdp.get_epsilon(DELTA)]


@cache
def epsilons() -> tuple[np.ndarray, ...]:
    """Return both bounds for Poisson batches and for random allocation, and dp-accounting's three numbers, over the epochs."""
    noise = GaussianMechanism(SIGMA)
    poisson = np.array([sides(noise.subsampled(1 / STEPS).self_compose(STEPS * k)) for k in EPOCHS])
    allocated = np.array([sides(RandomAllocation(noise, STEPS).self_compose(k)) for k in EPOCHS])
    return poisson, allocated, np.array([others(STEPS * k) for k in EPOCHS]).T


def training() -> plt.Figure:
    """Eps over epochs, ours and dp-accounting's, and how far each is from the truth."""
    poisson, allocated, (optimistic, pessimistic, renyi) = epsilons()
    figure, (left, right) = panels(1, 2, figsize=(9.6, 4.2))
    more = 100 * (renyi / poisson.mean(axis=1) - 1)
    figure.suptitle(
        rf"Upper and lower bound are one line; eps by a Rényi accountant is {more.min():.0f} to {more.max():.0f} % larger" + "\n"
        rf"DP-SGD, $\sigma$ = {SIGMA:g}, {STEPS} batches per epoch, $\delta = 10^{{-5}}$")
    left.plot(EPOCHS, renyi, color=GREY, lw=1.2, ls=":", label="dp-accounting, Rényi")
    left.plot(EPOCHS, pessimistic, color=GREEN, lw=1.2, label="dp-accounting, pessimistic", marker="^", ms=4)
    left.plot(EPOCHS, optimistic, **PRINTED, label="dp-accounting, optimistic", marker="v", ms=4)
    left.plot(EPOCHS, poisson[:, 1], **EXACT, label="Poisson batches, both bounds")
    left.plot(EPOCHS, poisson[:, 0], **EXACT)
    left.plot(EPOCHS, allocated[:, 1], color=PURPLE, lw=1.8, ls="-.", label="random allocation, both bounds")
    left.plot(EPOCHS, allocated[:, 0], color=PURPLE, lw=1.8, ls="-.")
    left.set(xlabel="epochs", ylabel=r"$\varepsilon$ (nats)", xscale="log", yscale="log",
             title=r"$\varepsilon$ of the whole training")
    plainly(left.yaxis, (0.6, 1, 2, 3, 4, 6))
    left.legend(loc="upper left" if is_narrow() else "lower right", fontsize=8 if is_narrow() else 9)
    if is_narrow():
        figure.set_figheight(8.4)
    middle = poisson.mean(axis=1)
    for values, style, name in (
        (renyi, {"color": GREY, "ls": ":"}, "dp-accounting, Rényi"),
        (pessimistic, {"color": GREEN, "marker": "^", "ms": 4}, "dp-accounting, pessimistic"),
        (optimistic, {"color": ORANGE, "ls": "--", "marker": "v", "ms": 4}, "dp-accounting, optimistic"),
        (poisson[:, 1], EXACT, "this library, both bounds"),
        (poisson[:, 0], EXACT, None),
    ):
        right.plot(EPOCHS, 100 * (values / middle - 1), label=name, **style)
    right.axhline(0, color="black", lw=0.5)
    right.set(xlabel="epochs", ylabel=r"difference from the exact $\varepsilon$ (%)", xscale="log",
              title="Poisson batches (linear within 0.01 %, logarithmic beyond)")
    right.set_yscale("symlog", linthresh=0.01, linscale=0.6)
    right.set_yticks([-10, -1, -0.1, -0.01, 0, 0.01, 0.1, 1, 10, 100])
    right.set_yticklabels(["−10", "−1", "−0.1", "−0.01", "0", "0.01", "0.1", "1", "10", "100"])
    right.legend(loc="upper right", bbox_to_anchor=(1.0, 0.86), fontsize=9)
    for ax in (left, right):
        plainly(ax.xaxis, (1, 2, 5, 10, 20, 50, 100))
    return figure


def of_batches(sigma, batches):
    """Eps of one epoch over the number of batches: both bounds of shuffled batches of BATCH records, Poisson batches, one step."""
    noise = GaussianMechanism(sigma)
    shuffled = np.array([sides(ShuffledBatches(noise, int(t), BATCH)) for t in batches])
    poisson = np.array([noise.subsampled(1 / t).self_compose(int(t)).epsilon(DELTA) for t in batches])
    return shuffled, poisson, noise.epsilon(DELTA)


def shuffled_batches() -> plt.Figure:
    """Eps over the number of batches of an epoch: no shuffle, both bounds of shuffled batches, and Poisson batches."""
    figure, axes = panels(1, 3, figsize=(11.0, 4.4), sharey=not is_narrow())
    gains = []
    for ax, sigma in zip(axes, SIGMAS):
        shuffled, poisson, alone = of_batches(sigma, BATCHES)
        gains.append(alone / shuffled[-1, 1])
        ax.axhline(alone, color=GREY, lw=1.2, ls=":", label="one step, which holds without a shuffle")
        ax.plot(BATCHES, shuffled[:, 1], **EXACT, label="shuffled batches, upper bound")
        ax.plot(BATCHES, shuffled[:, 0], color=BLUE, lw=1.2, ls="-.", label="shuffled batches, lower bound (the known pair)")
        ax.plot(BATCHES, poisson, **PRINTED, label="Poisson batches: not valid for shuffled batches")
        ax.set(xscale="log", yscale="log", xlabel="batches of an epoch $T$", title=rf"$\sigma$ = {sigma:g}")
    for ax in axes if is_narrow() else axes[:1]:
        ax.set_ylabel(r"$\varepsilon$ of one epoch (nats)")
    figure.suptitle(
        rf"A shuffle divides $\varepsilon$ by at least {min(gains):.0f} to {max(gains):.0f} at $10^{{6}}$ batches" + "\n"
        rf"One epoch, batches of {BATCH} records, $\delta = 10^{{-5}}$, a record is zeroed")
    if is_narrow():
        axes[-1].legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), fontsize=8)
        figure.set_figheight(11.5)
    else:
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def plainly(axis, ticks):
    """Ticks of a logarithmic axis as plain numbers."""
    axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set_minor_locator(NullLocator())


def neighbours() -> plt.Figure:
    """Add or remove a record against replace it: rows of records, the one that differs in its colour."""
    figure, (left, right) = panels(1, 2, figsize=(9.0, 2.8))

    def row(ax, height, names, odd, colour):
        for place, name in enumerate(names):
            missing = name == ""
            face = "none" if missing else colour if place == odd else "#e4e8ee"
            ax.add_patch(FancyBboxPatch((place + 0.08, height), 0.84, 0.7, boxstyle="round,pad=0,rounding_size=0.1", fc=face,
                                        ec=colour if place == odd else "#9aa3af", lw=1.4, ls="--" if missing else "-"))
            ax.text(place + 0.5, height + 0.35, name or "none", ha="center", va="center", fontsize=11,
                    color=colour if missing else "white" if place == odd else "black", style="italic" if missing else "normal")

    pictures = (
        (left, "add or remove one record", "", BLUE, "DP-SGD: Poisson batches, random allocation\n"
         "relation = “add-remove”"),
        (right, "replace one record", "x′", ORANGE, "shuffled protocols, batches of fixed size\n"
         "relation = “replace-one”"),
    )
    for ax, title, other, colour, where in pictures:
        row(ax, 1.25, ["a", "b", "x", "c", "d"], 2, colour)
        row(ax, 0.0, ["a", "b", other, "c", "d"], 2, colour)
        ax.annotate("", (2.5, 0.76), (2.5, 1.2), arrowprops={"arrowstyle": "<->", "color": colour, "lw": 1.4})
        ax.text(2.5, -0.25, where, ha="center", va="top", fontsize=11)
        ax.set(xlim=(-0.1, 5.1), ylim=(-1.05, 2.1), title=title)
        ax.set_axis_off()
    return figure
