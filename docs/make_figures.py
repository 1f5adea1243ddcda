"""Draw the figures of docs/published.md, the papers' own plots with the exact curves in them, and those of other pages.

    python docs/make_figures.py            all figures, about two minutes
    python docs/make_figures.py bits noise     some of them

Needs matplotlib. Every curve is computed here; nothing is read from the papers' pictures.
"""

import argparse
import json
import math
from collections.abc import Callable
from contextlib import nullcontext
from functools import cache
from pathlib import Path

import figures_of_costs
import figures_of_ideas
import figures_of_randomizers
import figures_of_rates
import figures_of_rules
import figures_of_training
import matplotlib.pyplot as plt
import numpy as np
from figure_style import (
    BLUE,
    EXACT,
    GREEN,
    GREY,
    ORANGE,
    PRINTED,
    PURPLE,
    SKY,
    below,
    columns,
    drawn,
    is_narrow,
    narrow,
    panels,
    wrapped,
)
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr, ndtri

from shufflebounds import published
from shufflebounds.shuffle import (
    BinomialNoise,
    ClearReports,
    FlippedReports,
    PersonalizedClones,
    RealSum,
    ShuffledBits,
    ShuffledHistogram,
    StrongerClones,
    ZeroSum,
)
from shufflebounds.tails import binom_logcdf, binom_logpmf, binom_logsf, poisson_binom_logcdf, poisson_binom_logsf

FOLDER = Path(__file__).parent / "_static" / "figures"
RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"

CHEU = {"color": GREEN, "lw": 1.6, "ls": "-."}
PERFECT = {"color": GREY, "lw": 1.0, "ls": ":"}
OTHER = {"color": PURPLE, "lw": 1.6, "ls": (0, (5, 1, 1, 1, 1, 1))}

ALPHA = np.linspace(0, 1, 401)
BUDGET_USERS, COMPARED_USERS = (10**3, 10**4, 10**5, 10**6), (10**4, 10**6, 10**8)
"""Numbers of users in two of the figures; the tests draw fewer."""


def lines_below(eps: np.ndarray, delta: np.ndarray) -> np.ndarray:
    """Return the curve over ALPHA that (eps, delta(eps)) pairs enclose from below, both directions alike."""
    big = np.exp(eps)[:, None]
    rest = 1 - np.minimum(delta, 1)[:, None]
    return np.maximum(0, np.maximum(rest - big * ALPHA, (rest - ALPHA) / big).max(axis=0))


def two_panels(title: str) -> tuple[plt.Figure, plt.Axes, plt.Axes]:
    """Return a figure with panels for a trade-off curve on the left and delta(eps) on the right."""
    figure, (left, right) = panels(1, 2, figsize=(9.0, 5.6))
    figure.suptitle(title)
    left.set(xlabel=r"error of the first kind $\alpha$", ylabel=r"error of the second kind $\beta$", xlim=(0, 1), ylim=(0, 1))
    left.set_aspect("equal")
    right.set(xlabel=r"privacy loss $\varepsilon$ (nats)", ylabel=r"$\delta(\varepsilon)$", yscale="log")
    left.plot(ALPHA, 1 - ALPHA, label="perfect privacy", **PERFECT)
    return figure, left, right


def gaussian_delta(mu: float, eps: np.ndarray) -> np.ndarray:
    """Return delta of mu-Gaussian differential privacy."""
    return ndtr(mu / 2 - eps / mu) - np.exp(eps + log_ndtr(-mu / 2 - eps / mu))


def gain_of_few_flips(axis: plt.Axes) -> None:
    """Draw 1 - alpha - beta of five users with lambda = 1, where the published curve is not a bound."""
    users, lam = 5, 1.0
    alpha = np.linspace(0, 1, 2001)
    protocol = ShuffledBits.boolean_sum(users, lam)
    exact = np.min([protocol.pair(m).tradeoff().beta(alpha) for m in range(users)], axis=0)
    printed = np.array([published.chen_long_tradeoff(users, lam, a) for a in alpha])
    axis.plot(alpha, 1 - alpha - exact, label="exact, over all datasets", **EXACT)
    axis.plot(alpha, 1 - alpha - printed, label="published (Theorem 2)", **PRINTED)
    axis.fill_between(alpha, 1 - alpha - exact, 1 - alpha - printed, where=exact < printed, color=ORANGE, alpha=0.3, lw=0,
                      label="violated: a test does better")
    axis.set(xlabel=r"error of the first kind $\alpha$", ylabel=r"advantage of the test $1 - \alpha - \beta$",
             xlim=(0.35, 0.75), ylim=(0.2, 0.6), title=rf"$n = {users}$, $\lambda = {lam:g}$: false")


def bits() -> plt.Figure:
    """Chen and Long, Figure 1 a and b."""
    users, lam = 100, 58
    figure, (left, right) = panels(1, 2, figsize=(9.0, 5.2))
    figure.suptitle("The published curve of the boolean sum is false for few flips, and far from exact for many")
    gain_of_few_flips(left)
    right.set(xlabel=r"privacy loss $\varepsilon$ (nats)", ylabel=r"$\delta(\varepsilon)$", yscale="log",
              title=rf"$n = {users}$, $\lambda = {lam}$ (Chen and Long, Figure 1 b): valid")
    eps = np.linspace(0, 2, 201)
    protocol = ShuffledBits.boolean_sum(users, lam)
    level = np.geomspace(1, 1e-12, 4000)
    cheu = []
    for delta in level:
        try:
            cheu.append((published.cheu2019_boolean_sum(users, lam, delta), delta))
        except ValueError:
            break
    cheu_eps, cheu_delta = np.array(cheu).T
    right.plot(eps, protocol.delta(eps), label="exact, over all datasets", **EXACT)
    right.plot(eps, [published.chen_long_delta(users, lam, e) for e in eps], label="published pair (Theorem 2)", **PRINTED)
    mu = published.chen_long_mu_interior(users, lam)
    right.plot(eps, gaussian_delta(mu, eps), label=rf"published $\mu^* = {mu:.2f}$, interior breakpoints", **OTHER)
    right.plot(cheu_eps, cheu_delta, label="Cheu et al. 2019", **CHEU)
    local = math.log((1 - protocol.flip) / protocol.flip)
    right.axvline(local, **PERFECT)
    right.text(local + 0.04, 1e-12, r"exact $\delta = 0$ from here:" "\n" r"$\varepsilon = \ln(p/q) = 0.895$", fontsize=9)
    right.set(ylim=(1e-14, 1.5), xlim=(0, 2))
    below(figure, (left, right), -0.17, 9.4)
    return figure


def composed(users: int, flip: float, times: int, eps: np.ndarray, step: float = 2e-4) -> np.ndarray:
    """Return delta of r independent copies of the noise against its shift by one, losses rounded up to a grid."""
    deltas = []
    for pair in ("left", "right"):
        k = np.arange(users + 2)
        mass = np.exp(binom_logpmf(k[:-1], users, flip))
        p, q = np.append(mass, 0), np.insert(mass, 0, 0)
        if pair == "right":
            p, q = q, p
        both = (p > 0) & (q > 0)
        loss = np.ceil(np.log(p[both] / q[both]) / step).astype(int)
        low, size = int(loss.min()), 1 << math.ceil(math.log2(times * int(np.ptp(loss)) + 1))
        law = np.bincount(loss - low, weights=p[both], minlength=size)
        total = np.maximum(np.fft.irfft(np.fft.rfft(law) ** times, size), 0)
        at = (np.arange(size) + times * low) * step
        lost = 1 - p[both].sum()
        deltas.append([1 - (1 - lost) ** times + (total * np.maximum(0, -np.expm1(e - at))).sum() for e in eps])
    return np.max(deltas, axis=0)


def reals() -> plt.Figure:
    """Chen and Long, Figure 1 c and d."""
    users, lam, r = 100, 58, 10
    figure, left, right = two_panels(
        r"Ten bits in one sum hide each other: the exact total against composed bounds" "\n"
        r"$n = 100$, $\lambda = 58$, $r = 10$ (Chen and Long, Figure 1 c, d)"
    )
    eps = np.concatenate([np.linspace(0, 1, 51), np.linspace(1.05, 4, 40)])
    exact = RealSum(users, lam, r).delta(eps)
    printed = composed(users, lam / (2 * users), r, eps)
    mu = math.sqrt(r) * published.chen_long_mu.comparison().exact
    cheu = r * published.cheu2019_boolean_sum(users, lam, 1 / r)
    left.plot(ALPHA, lines_below(eps, exact), label="exact, the total over all datasets", **EXACT)
    left.plot(ALPHA, ndtr(ndtri(1 - ALPHA) - mu), label=rf"proven, $\sqrt{{r}}\,\mu$ of one bit = {mu:.3f}", **OTHER)
    left.plot(ALPHA, lines_below(eps, printed), label=r"published $f^{\otimes 10}$ (Theorem 3)", **PRINTED)
    printed_mu = published.chen_long_mu_real_sum(users, lam, r)
    left.plot(ALPHA, ndtr(ndtri(1 - ALPHA) - printed_mu), color=ORANGE, lw=1.2, ls=":",
              label=rf"published $\sqrt{{r}}\,\mu^* = {printed_mu:.3f}$, interior breakpoints")
    # every bit at its best delta; epsilons and deltas add up
    each = []
    for delta in np.geomspace(1 / r, 1e-12, 400):
        try:
            each.append((r * published.cheu2019_boolean_sum(users, lam, delta), r * delta))
        except ValueError:
            break
    left.plot(ALPHA, lines_below(*np.array(each).T), label="Cheu et al. 2019, composed (on the axes)", **CHEU)
    right.plot(eps, exact, label="exact, the total over all datasets", **EXACT)
    right.plot(eps, gaussian_delta(mu, eps), label=rf"proven, $\sqrt{{r}}\,\mu$ of one bit = {mu:.3f}", **OTHER)
    right.plot(eps, printed, label=r"published $f^{\otimes 10}$ (Theorem 3)", **PRINTED)
    right.plot(eps, gaussian_delta(printed_mu, eps), color=ORANGE, lw=1.2, ls=":",
               label=rf"published $\sqrt{{r}}\,\mu^* = {printed_mu:.3f}$, interior breakpoints")
    right.plot([], [], label=rf"Cheu et al. 2019, composed: off the plot, $\varepsilon > {cheu:.1f}$", **CHEU)
    right.set(ylim=(1e-14, 1.5), xlim=(0, 4))
    below(figure, (left, right), -0.17, 9.4)
    return figure


def noise() -> plt.Figure:
    """Chen and Long, Figure 2."""
    coins = 50
    figure, left, right = two_panels(
        r"Fifty fair coins: the exact $\delta$ is far below the published one" "\n" r"$|H| = 50$ (Chen and Long, Figure 2)"
    )
    eps = np.linspace(0, 2.5, 251)
    mechanism = BinomialNoise(coins, 0.5)
    level = np.geomspace(1, 4 / math.exp(coins / 8) * (1 + 1e-9), 400)
    claim = np.array([published.cheu2019_fixed_set(coins, delta) for delta in level])
    left.plot(ALPHA, mechanism.pairs()[0].tradeoff().beta(ALPHA), label="exact", **EXACT)
    knots = np.exp(binom_logcdf(np.arange(coins + 1), coins, 0.5))
    step = np.exp(binom_logsf(np.searchsorted(knots, ALPHA * (1 - 1e-12)) + 1, coins, 0.5))
    left.step(ALPHA, step, where="post", label="published step function (Claim B.4)", **PRINTED)
    left.plot(ALPHA, lines_below(claim, level / 2), label="Claim C.1", **CHEU)
    right.plot(eps, mechanism.delta(eps), label="exact", **EXACT)
    right.plot(claim, level / 2, label=r"Claim C.1: $\delta/2$, nothing beyond $\varepsilon = \ln 3$", **CHEU)
    right.set(ylim=(1e-12, 1.5), xlim=(0, 2.5))
    below(figure, (left, right), -0.17, 9.4)
    return figure


def overshoot() -> plt.Figure:
    """The flips of Zhilyaev, section 4, over the exact ones."""
    figure, axes = panels(1, 2, figsize=(8.4, 3.6), sharey=True)
    users, every = np.unique(np.round(np.geomspace(100, 10**9, 29)).astype(np.int64)), []
    for panel, delta in zip(axes, (1e-6, 1e-9)):
        looks = ((PURPLE, "--", "^"), (BLUE, "-", "o"), (ORANGE, "-.", "s"), (GREEN, ":", "D"))
        for eps, (color, style, mark) in zip((0.1, 0.5, 1.0, 2.0), looks):
            ratios = []
            for n in users:
                claim = published.zhilyaev_flip(int(n), eps, delta)
                exact = ShuffledBits.calibrate(users=int(n), eps=eps, delta=delta).flip if claim < 0.5 else math.nan
                ratios.append(claim / exact)
            look = {"color": color, "ls": style, "marker": mark, "markevery": 4, "ms": 4, "lw": 1.6}
            panel.plot(users, ratios, label=rf"$\varepsilon = {eps:g}$", **look)
            every += ratios
        panel.set(xscale="log", xlabel="users $n$", title=rf"$\delta = 10^{{{round(math.log10(delta))}}}$", ylim=(2, None))
    axes[0].set_ylabel(r"published $q$ / exact $q$")
    figure.suptitle(f"The published flip probability is {np.nanmin(every):.1f} to {np.nanmax(every):.1f} times too large\n"
                    "(4.48) divided by the exact one; omitted if (4.48) is above 1/2")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def histogram() -> plt.Figure:
    """Balcer and Cheu, Table 1, with the constants that it leaves out."""
    users, eps, delta, beta = 10**5, 1.0, 1e-6, 0.05
    bins = np.unique(np.round(np.geomspace(2, 10**5, 16)).astype(int))
    printed = users * published.balcer_cheu_histogram_error(users, eps / 2, delta / 2, beta)
    zsum, clear, flipped, central, local = [], [], [], [], []
    for d in map(int, bins):
        zsum.append(ShuffledHistogram.calibrate(users=users, bins=d, eps=eps, delta=delta).error_quantile(beta, of="any"))
        # two bins change: half the budget each; then the union bound over the bins
        flipped.append(ShuffledBits.calibrate(users=users, eps=eps / 2, delta=delta / 2).error_quantile(beta / d))
        clear.append(ClearReports.calibrate(bins=d, eps=eps, delta=delta).error_quantile(beta, of="any"))
        central.append(-2 / eps * math.log(-math.expm1(math.log1p(-beta) / d)))
        # optimised unary encoding, by the normal law; the bit of the user's bin is 1 with probability 1/2, others 1/(e^eps + 1)
        apart = math.tanh(eps / 2) / 2
        local.append(-ndtri(beta / d / 2) * math.sqrt(users / 4) / apart)
    figure, axis = panels(figsize=(8.4, 5.0))
    ratios = [np.array(zsum) / central, np.array(clear) / central]
    ranges = [f"{ratio.min():.1f} to {ratio.max():.1f}" for ratio in ratios]
    for values, label, look in (
        (local, "local: optimised unary encoding, $d$ bits", {"color": GREY, "lw": 1.4, "marker": "x", "ms": 5}),
        ([printed] * len(bins), "shuffled, zero sum as published, $1 + d$ messages", PRINTED),
        (flipped, "shuffled, one flipped bit per bin, $d$ messages",
         {"color": GREEN, "lw": 1.6, "ls": "-.", "marker": "s", "ms": 4}),
        (zsum, "shuffled, zero sum calibrated exactly, $1 + d$ messages", {**EXACT, "marker": "o", "ms": 4}),
        (clear, "shuffled, clear reports, 1 message and $m/n$ dummy reports",
         {"color": SKY, "ls": (0, (3, 1)), "marker": "D", "ms": 4}),
        (central, "central: Laplace noise", {"color": "black", "lw": 1.2, "ls": ":", "marker": "v", "ms": 4}),
    ):
        axis.plot(bins, values, label=label, markevery=3, **look)
    axis.set(xscale="log", yscale="log", xlabel="bins $d$",
             ylabel=wrapped("largest error of any bin, exceeded with 5 % (users)", 40),
             title=f"Error relative to central noise: zero sum {ranges[0]} times, clear reports {ranges[1]} times\n"
             r"$n = 10^5$, $\varepsilon = 1$, $\delta = 10^{-6}$, worst-case dataset (Balcer and Cheu, Table 1)")
    figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=columns(2))
    return figure


LAWS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "Uniform1, $U(0.05, 1)$": lambda u: 0.05 + 0.95 * u,
    "Gauss1, $N(0.8, 0.5)$ on $[0.05, 1]$": lambda u: np.clip(0.8 + 0.5 * ndtri(u), 0.05, 1),
    "Uniform2, $U(0.5, 2)$": lambda u: 0.5 + 1.5 * u,
    "Gauss2, $N(1.5, 0.5)$ on $[0.5, 2]$": lambda u: np.clip(1.5 + 0.5 * ndtri(u), 0.5, 2),
}


def epsilon_of_theorem_2(delta: float, weight: float, rates: list[float], counts: np.ndarray) -> float:
    """Return where the printed delta of Liu et al. reaches delta."""
    return float(brentq(lambda eps: published.liu2024_delta(eps, weight, rates, counts=counts) - delta, 1e-5, 2))


@cache
def epsilons_of_budgets(name: str, n: int, delta: float) -> dict[str, float]:
    """Return eps for n users whose budgets have the distribution of that name, proven and published."""
    eps = LAWS[name]((np.arange(100) + 0.5) / 100)
    counts = np.full(100, n // 100)
    counts[: n % 100] += 1
    top = float(eps.max())
    rates = [published.liu2024_laplace_rate(float(e), top) for e in eps]
    noisy = [published.liu2024_gaussian_rate(6.82 / float(e), 6.82 / top) for e in eps]
    return {
        "laplace": PersonalizedClones.laplace(eps, counts=counts).epsilon(delta),
        "gaussian": PersonalizedClones.gaussian(6.82 / eps, counts=counts).epsilon(delta),
        "bits": PersonalizedClones.randomized_response(eps, 2, counts=counts).epsilon(delta),
        "printed": epsilon_of_theorem_2(delta, published.liu2024_weight_laplace(top), rates, counts),
        "printed gaussian": epsilon_of_theorem_2(delta, published.liu2024_weight_gaussian(6.82 / top), noisy, counts),
        "largest": StrongerClones(n, top).epsilon(delta),
    }


def budgets() -> plt.Figure:
    """Liu et al., the settings of Figure 4."""
    delta = 1e-5
    users = np.array(BUDGET_USERS)
    figure, axes = panels(2, 2, figsize=(8.4, 6.2), sharex=True, sharey="row")
    figure.suptitle(
        "The published bound is below the proven one for every distribution of budgets\n"
        r"$\varepsilon\,\sqrt{n}$ of the worst user at $\delta = 10^{-5}$ (settings of Liu et al., Figure 4)"
    )
    for axis, name in zip(axes.flat, LAWS):
        points = [epsilons_of_budgets(name, int(n), delta) for n in users]
        rows = {row: [point[row] for point in points] for row in points[0]}
        for row, label, look in (
            ("laplace", "proven: Laplace noise", {**EXACT, "marker": "o", "ms": 4}),
            ("gaussian", r"proven: Gaussian noise, $\sigma_i = 6.82/\varepsilon_i$", {"color": SKY, "marker": "D", "ms": 4}),
            ("bits", "proven: flipped bits", {"color": GREEN, "lw": 1.6, "ls": "-.", "marker": "s", "ms": 4}),
            ("largest", "largest budget for all users: not a bound", {"color": GREY, "ls": ":", "marker": "x", "ms": 5}),
            ("printed", "published: Laplace noise, Theorem 2, false", {**PRINTED, "marker": "^", "ms": 4}),
            ("printed gaussian", "published: Gaussian noise, Theorem 2, false",
             {**PRINTED, "color": PURPLE, "marker": "v", "ms": 4}),
        ):
            axis.plot(users, np.sqrt(users) * rows[row], label=label, **look)
        # the title of the figure
        assert all(np.array(rows["printed"]) < rows["laplace"])
        assert all(np.array(rows["printed gaussian"]) < rows["gaussian"])
        axis.set(xscale="log", title=name)
    for axis in axes[:, 0]:
        axis.set_ylim(bottom=0)
    for axis in axes[1]:
        axis.set_xlabel("users $n$")
    for axis in axes[:, 0]:
        axis.set_ylabel(r"$\varepsilon\,\sqrt{n}$ (nats)")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=columns(2))
    return figure


def amplified(users: int, eps: float, delta: float) -> float:
    """Return the largest local budget that the stronger clones bound brings down to the target."""
    return float(brentq(lambda local: StrongerClones(users, local).epsilon(delta) - eps, eps, 40, xtol=1e-6))


def quantile_of_response(users: int, in_bin: int, bins: int, local: float, beta: float) -> float:
    """Return the error of a bin with `in_bin` users that k-ary randomized response exceeds with probability beta."""
    other = 1 / (math.exp(local) + bins - 1)
    chances, counts = [math.exp(local) * other, other], [in_bin, users - in_bin]
    mean = float(np.dot(chances, counts))
    low, high = 0.0, users * 1.0
    while high - low > 1e-6 * high:
        width = 0.5 * (low + high)
        above, below = math.floor(mean + width), math.ceil(mean - width) - 1
        off = math.exp(poisson_binom_logsf(above, chances, counts)) + math.exp(poisson_binom_logcdf(below, chances, counts))
        low, high = (width, high) if off > beta else (low, width)
    return high / (chances[0] - other)


Points = list[tuple[float, float, float]]
"""Messages a user, error on the data of the figure, error on any data; one for every number of users."""


@cache
def points_of_counts(users: tuple[int, ...], eps: float, delta: float) -> dict[str, Points]:
    """Return what a count costs and how far it is off, a tenth of the users holding 1."""
    out: dict[str, Points] = {name: [] for name in ("local", "records", "clones", "bits", "noise", "sums", "zero")}
    noise = BinomialNoise.calibrate(eps=eps, delta=delta)
    for n in users:
        truth = n // 10
        sums = FlippedReports.calibrate(users=n, bins=2, eps=eps, delta=delta, view="sums")
        records = FlippedReports.calibrate(users=n, bins=2, eps=eps, delta=delta, view="records")
        for name, law, messages in (
            ("local", ShuffledBits(n, 1 / (math.exp(eps) + 1)), 1.0),
            ("records", records, 1.0),
            ("clones", ShuffledBits(n, 1 / (math.exp(amplified(n, eps, delta)) + 1)), 1.0),
            ("bits", ShuffledBits.calibrate(users=n, eps=eps, delta=delta), 1.0),
            ("sums", sums, 2.0),
            ("zero", ZeroSum.calibrate(users=n, eps=eps, delta=delta), 2.0),
        ):
            out[name].append((messages, law.error_quantile(0.05, truth), law.error_quantile(0.05)))
        out["noise"].append((1 + noise.trials / n, *[noise.error_quantile(0.05)] * 2))
    return out


@cache
def points_of_histograms(users: tuple[int, ...], bins: int, eps: float, delta: float) -> dict[str, Points]:
    """Return the same of a histogram, equally many users in all bins; the error is the largest of any bin."""
    out: dict[str, Points] = {name: [] for name in ("local", "records", "clones", "noise", "sums", "zero")}
    beta = 0.05 / bins
    clear = ClearReports.calibrate(bins=bins, eps=eps, delta=delta)
    for n in users:
        truth = n // bins
        for view in ("sums", "records"):
            law = FlippedReports.calibrate(users=n, bins=bins, eps=eps, delta=delta, view=view)
            out[view].append((law.messages_per_user(), law.error_quantile(beta, truth), law.error_quantile(beta)))
        zero = ShuffledHistogram.calibrate(users=n, bins=bins, eps=eps, delta=delta)
        known = zero.error_quantile(0.05, np.full(bins, truth), of="any")
        out["zero"].append((zero.messages_per_user(), known, zero.error_quantile(0.05, of="any")))
        out["noise"].append((clear.messages_per_user(n), *[clear.error_quantile(beta)] * 2))
        for name, local in (("local", eps), ("clones", amplified(n, eps, delta))):
            error = quantile_of_response(n, truth, bins, local, beta)
            out[name].append((1.0, error, error))
    return out


COMPARED = {
    "local": ("no shuffler: randomized response", {"color": GREY, "marker": "x"}),
    "records": ("flipped pairs of bits, records; FlippedReports, records", {"color": ORANGE, "marker": "^"}),
    "clones": ("randomized response, by StrongerClones", {"color": PURPLE, "marker": "P"}),
    "bits": ("ShuffledBits", {"color": GREEN, "marker": "s"}),
    "noise": ("BinomialNoise; ClearReports", {"color": SKY, "marker": "D"}),
    "sums": ("flipped pairs of bits, sums; FlippedReports, sums", {"color": "black", "marker": "v"}),
    "zero": ("ZeroSum; ShuffledHistogram", {"color": BLUE, "marker": "o"}),
}
"""Name of the row, and its marks. Of two names the first is that of the count, the second that of the histogram."""


def comparison() -> plt.Figure:
    """Error at equal (eps, delta): a labelled row for every protocol, a mark for every number of users."""
    users, bins, eps, delta = COMPARED_USERS, 1000, 1.0, 1e-6
    shown = (points_of_counts(users, eps, delta), points_of_histograms(users, bins, eps, delta))
    rows = [[name for name in COMPARED if name in points] for points in shown]
    figure, axes = panels(
        2, 1, figsize=(8.4, 8.0), sharex=True, height_ratios=[len(names) for names in rows]
    )
    bounded = max(worst for points in shown for name in points if name not in ("local", "records") for _, _, worst in points[name])
    figure.suptitle(f"With a shuffler the error is at most {math.ceil(bounded)} users for every n, "
                    "except for flipped records\n"
                    r"$\varepsilon = 1$, $\delta = 10^{-6}$; $n = 10^4$ (small) to $10^8$ (large marks)")
    for panel, (axis, points, names) in enumerate(zip(axes, shown, rows)):
        names.sort(key=lambda name, points=points: -points[name][-1][1])
        for row, name in enumerate(names):
            messages, error, worst = np.array(points[name]).T
            color = COMPARED[name][1]["color"]
            axis.hlines(row + 0.18, error.min(), worst.max(), color=color, lw=0.8, alpha=0.5)
            axis.scatter(error, np.full(error.size, row), s=np.linspace(14, 80, error.size), zorder=3, **COMPARED[name][1])
            low, high = messages.min(), messages.max()
            text = f"{low:.0f}" if high - low < 0.05 * high else f"{low:.0f} to {high:.1f}"
            axis.text(1.01, row, text, transform=axis.get_yaxis_transform(), va="center", fontsize=10)
        axis.text(1.01, len(names) - 0.35, "messages\nper user", transform=axis.get_yaxis_transform(), fontsize=9, color=GREY)
        labels = [COMPARED[name][0].split("; ")[-1 if panel else 0] for name in names]
        if is_narrow():             # the names stand above the marks
            axis.set_yticks([])
            for row, label in enumerate(labels):
                axis.text(0.01, row + 0.34, label, transform=axis.get_yaxis_transform(), va="center", fontsize=9)
        else:
            axis.set_yticks(range(len(names)), labels)
        axis.set(xscale="log", ylim=(-0.6, len(names) - 0.4))
        axis.yaxis.grid(False)
    axes[0].set_title("count, a tenth of the users hold 1", loc="left")
    axes[0].tick_params(labelbottom=True)
    axes[1].set_title("histogram of 1000 bins, error of the worst bin", loc="left")
    axes[1].set_xlabel(wrapped("error in users, exceeded with probability 0.05; thin line: up to the worst dataset", 52))
    return figure


def headline() -> plt.Figure:
    """Show the first picture: eps over the number of users."""
    local, delta = 4.0, 1e-8
    users = np.unique(np.round(np.geomspace(10**3, 10**9, 49)).astype(np.int64))
    upper = [StrongerClones(int(n), local).epsilon(delta) for n in users]
    lower = [StrongerClones(int(n), local).epsilon(delta, bound="lower") for n in users]
    closed = []
    for n in users:
        try:
            closed.append(published.stronger_clones_closed_form(int(n), local, delta))
        except ValueError:
            closed.append(math.nan)
    ratio = np.array(closed)[np.isfinite(closed)] / np.array(upper)[np.isfinite(closed)]
    figure, axis = panels(figsize=(8.4, 4.6))
    axis.axhline(local, color=GREY, lw=1.4, ls=":")
    axis.text(users[-1], local * 0.93, r"local budget $\varepsilon_0 = 4$", ha="right", va="top", color=GREY)
    axis.plot(users, closed, **PRINTED)
    axis.plot(users, upper, **EXACT)
    axis.fill_between(users, lower, upper, color=BLUE, alpha=0.3, lw=0)
    place = users.size * 2 // 3
    axis.annotate("closed form of 2023\n(valid from $10^4$ users on)", (users[place], closed[place]),
                  (-8, 14) if is_narrow() else (8, 8), textcoords="offset points", color=ORANGE)
    if is_narrow():
        axis.text(users[0], 2.2e-3, "this library: upper and\nlower bound, one line", color=BLUE, va="center")
    else:
        axis.annotate("this library: upper and\nlower bound, one line", (users[place], upper[place]), (-12, -14),
                      textcoords="offset points", color=BLUE, ha="right", va="top")
    # the tightest other program was run at one setting of this figure; its values are kept in benchmarks/results
    rows = json.loads((RESULTS / "peer-wang2024.json").read_text(encoding="utf-8"))["rows"]
    (count, other), = [(n, eps) for n, budget, d, eps, _ in rows if (budget, d) == (local, delta)]
    excess = 100 * (other / StrongerClones(int(count), local).epsilon(delta) - 1)
    axis.plot([count], [other], marker="D", ms=7, mfc="none", mew=1.6, color=GREEN)
    place = {"xytext": (users[0], 1e-2), "ha": "left"} if is_narrow() else {
        "xytext": (-150, -62), "textcoords": "offset points", "ha": "center"}
    text = f"tightest other program,\n{excess:.1f} % above (run at one point)"
    axis.annotate(text.replace(" (", "\n(") if is_narrow() else text, (count, other), color=GREEN, va="center",
                  arrowprops={"arrowstyle": "-", "color": GREEN, "lw": 0.8}, **place)
    axis.set(xscale="log", yscale="log", xlabel="users $n$", ylabel=r"$\varepsilon$ after the shuffle (nats)")
    axis.set_title(f"The same messages are {ratio.min():.0f} to {ratio.max():.0f} times more private than the formula says\n"
                   r"$\varepsilon$ at $\delta = 10^{-8}$, stronger clones", loc="left")
    return figure


FIGURES: dict[str, Callable[[], plt.Figure]] = {
    "headline": headline, "bits": bits, "reals": reals, "noise": noise, "overshoot": overshoot, "histogram": histogram,
    "budgets": budgets, "areas": figures_of_rates.rates, "comparison": comparison,
    "rules": figures_of_rules.rules, "chernoff": figures_of_rules.chernoff, "mechanisms": figures_of_rules.mechanisms,
    "randomizers": figures_of_randomizers.randomizers, "worst_dataset": figures_of_randomizers.worst_dataset,
    "growth": figures_of_costs.growth,
    "training": figures_of_training.training, "neighbours": figures_of_training.neighbours,
    "shuffled-batches": figures_of_training.shuffled_batches,
    **figures_of_ideas.IDEAS,
}


def main() -> None:
    """Draw what is asked for."""
    parser = argparse.ArgumentParser(description="Draw the figures of the documentation.")
    parser.add_argument("figure", nargs="*", help=f"some of {', '.join(FIGURES)}; all by default")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--format", choices=["svg", "png"], default="svg")
    arguments = parser.parse_args()
    if not FIGURES.keys() >= set(arguments.figure):
        parser.error(f"figure must be some of {', '.join(FIGURES)}")
    arguments.folder.mkdir(parents=True, exist_ok=True)
    metadata = {"Date": None} if arguments.format == "svg" else None
    (arguments.folder / "narrow").mkdir(exist_ok=True)
    for name in arguments.figure or FIGURES:
        for form, folder in ((nullcontext, arguments.folder), (narrow, arguments.folder / "narrow")):
            with form():
                figure = drawn(FIGURES[name])
                figure.savefig(folder / f"{name}.{arguments.format}", metadata=metadata)
            plt.close(figure)


if __name__ == "__main__":
    main()
