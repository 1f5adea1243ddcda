"""The figures of docs/composition.md, docs/randomizers.md and docs/api/tails.md; make_figures.py draws them."""

import math

import matplotlib.pyplot as plt
import numpy as np
from figure_style import BLUE, EXACT, GREEN, GREY, ORANGE, PURPLE, SKY, below, columns, is_narrow, panels
from scipy.optimize import brentq

from shufflebounds.composition import compose_dp, rdp_to_dp, zcdp_to_dp
from shufflebounds.mechanisms import (
    DiscreteGaussianMechanism,
    GaussianMechanism,
    GeometricMechanism,
    LaplaceMechanism,
    RandomizedResponse,
)
from shufflebounds.tails import binom_logsf, chernoff_logsf

ORDERS = 1 + np.geomspace(1e-3, 1e5, 3000)


def rules() -> plt.Figure:
    """Rules of composition, eps in all against the number of releases."""
    eps, delta = 0.1, 1e-6
    times = np.unique(np.round(np.geomspace(1, 10**4, 81)).astype(int))
    response, laplace = RandomizedResponse(eps), LaplaceMechanism.from_eps(eps=eps)
    curves: dict[str, list[float]] = {
        name: [] for name in ("basic", "advanced", "zcdp", "rdp", "optimal", "above", "below", "laplace rdp", "upper", "lower")
    }
    of_response, of_laplace = response.rdp(ORDERS), laplace.rdp(ORDERS)
    for k in map(int, times):
        for method in ("basic", "advanced", "optimal"):
            curves[method].append(compose_dp(eps, 0.0, delta, k=k, method=method).eps)
        curves["zcdp"].append(zcdp_to_dp(k * eps**2 / 2, delta=delta)[0])
        curves["rdp"].append(rdp_to_dp(ORDERS, k * of_response, delta=delta)[0])
        curves["laplace rdp"].append(rdp_to_dp(ORDERS, k * of_laplace, delta=delta)[0])
        for mechanism, over, under in ((response, "above", "below"), (laplace, "upper", "lower")):
            composed = mechanism.self_compose(k)
            curves[over].append(composed.epsilon(delta))
            curves[under].append(composed.epsilon(delta, bound="lower"))
    arrays = {name: np.array(values) for name, values in curves.items()}
    figure, (left, right) = panels(1, 2, figsize=(9.0, 5.6), gridspec_kw={"wspace": 0.12})
    if is_narrow():
        figure.set_figheight(8.4)
    # the title of the figure
    assert all((arrays[name] >= arrays["optimal"] * (1 - 1e-9)).all() for name in ("basic", "advanced", "zcdp", "rdp"))
    assert (arrays["upper"] <= arrays["optimal"] * (1 + 1e-9)).all()
    figure.suptitle(
        "The optimal rule is below every rule that knows only the budgets; knowing the mechanism is better still\n"
        r"$k$ releases of $\varepsilon = 0.1$ each, $\delta = 10^{-6}$"
    )
    for name, label, look in (
        ("basic", "basic", {"color": GREY, "lw": 1.4, "ls": ":"}),
        ("advanced", "advanced", {"color": ORANGE, "lw": 1.6, "ls": "--"}),
        ("zcdp", r"zero-concentrated, $\rho = k\varepsilon^2/2$", {"color": PURPLE, "lw": 1.6, "ls": (0, (5, 1, 1, 1, 1, 1))}),
        ("rdp", "Renyi curve of randomized response", {"color": GREEN, "lw": 1.6, "ls": "-."}),
        ("optimal", "optimal", EXACT),
        ("laplace rdp", "Renyi curve of Laplace noise", {"color": SKY, "lw": 1.6, "ls": (0, (3, 1))}),
        ("upper", "Laplace noise itself, both bounds", {"color": "black", "lw": 1.2}),
    ):
        right.plot(times, arrays[name] / arrays["optimal"], label=label, **look)
        if name in ("basic", "advanced", "optimal"):        # the others would cover each other on this scale
            left.plot(times, arrays[name], **look)
    low, high = (arrays[side] / arrays["optimal"] for side in ("lower", "upper"))
    right.fill_between(times, low, high, color="black", alpha=0.25, lw=0)
    dots = {"ls": "", "marker": "o", "ms": 4.5, "mfc": "none", "color": BLUE, "markevery": 8}
    label = "randomized response itself, both bounds"
    right.plot(times, arrays["above"] / arrays["optimal"], label=label, **dots)
    right.plot(times, arrays["below"] / arrays["optimal"], **dots)
    for axis in (left, right):
        axis.set(xscale="log", xlabel="releases $k$")
    left.set(yscale="log", ylabel=r"$\varepsilon$ of all releases (nats)", ylim=(0.08, 300), title="basic, advanced, optimal")
    right.set(ylabel=r"ratio of $\varepsilon$ to that of the optimal rule", ylim=(0.93, 1.5),
              title="cut at 1.5; teeth: small numbers of releases")
    figure.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=columns(3))
    return figure


def chernoff() -> plt.Figure:
    """Closed tail bounds against the exact tail."""
    figure, axes = panels(1, 2, figsize=(8.4, 4.2))
    excess = []
    for axis, n, mean, top in zip(axes, (1000, 10**6), (0.1, 1e-5), (300, 100)):
        k = np.arange(round(n * mean), top + 1)
        for method, label, look in (
            ("hoeffding", "Hoeffding", {"color": GREY, "lw": 1.4, "ls": ":"}),
            ("multiplicative", "multiplicative", {"color": ORANGE, "lw": 1.6, "ls": "--"}),
            ("kl", "Kullback-Leibler", {"color": GREEN, "lw": 1.6, "ls": "-."}),
        ):
            bound = chernoff_logsf(k, n, mean, method=method) / math.log(10)
            excess.append(bound[-1] - binom_logsf(top - 1, n, mean) / math.log(10))
            axis.plot(k, bound, label=label, **look)
        axis.plot(k, binom_logsf(k - 1, n, mean) / math.log(10), label="exact", **EXACT)
        power = r"10^6$, $p = 10^{-5}" if n > 1000 else "1000$, $p = 0.1"
        axis.set(xlabel="$k$", title=f"$n = {power}$")
    axes[0].set_ylabel(r"$\log_{10}$ of the probability")
    figure.suptitle(f"At the largest k closed-form bounds are "
                    rf"$10^{{{min(excess):.1f}}}$ to $10^{{{max(excess):.0f}}}$ times the exact tail" "\n"
                    r"$\Pr[S \geq k]$, $S$ a sum of $n$ independent trials with probability $p$")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2 if is_narrow() else 4)
    return figure


def laplace_error(k: int, eps: float, delta: float) -> float:
    """Return the error that k values with Laplace noise keep with chance 95 %, noise by exact composition."""
    def miss(scale: float) -> float:
        return LaplaceMechanism(scale).self_compose(k).epsilon(delta) - eps
    alone = k / eps
    scale = alone if miss(alone * 0.999) > 0 else float(brentq(miss, 0.5 * math.sqrt(k) / eps, alone, rtol=1e-3))
    return LaplaceMechanism(scale).error_quantile(0.05, k)


def mechanisms() -> plt.Figure:
    """Error at equal privacy: of one value, and of many that one person changes all."""
    delta = 1e-6
    figure, (left, right) = panels(1, 2, figsize=(8.8, 4.8))
    eps = np.geomspace(0.1, 4, 25)
    gaussian = [GaussianMechanism.from_dp(eps=float(e), delta=delta) for e in eps]
    left.plot(eps, [m.error_quantile(0.05) for m in gaussian], label="Gaussian", color=BLUE, lw=2.0)
    laplace = [LaplaceMechanism.from_eps(eps=e).error_quantile(0.05) for e in eps.tolist()]
    left.plot(eps, laplace, label="Laplace", color=ORANGE, lw=1.6)
    some = eps[::2]
    whole = []
    for e in map(float, some):
        sigma = brentq(lambda s, e=e: DiscreteGaussianMechanism(s).epsilon(delta) - e, 0.5, 60, rtol=1e-6)
        whole.append(DiscreteGaussianMechanism(sigma).error_quantile(0.05))
    left.plot(some, whole, label="discrete Gaussian", ls="", marker="o", mfc="none", color=BLUE)
    geometric = [GeometricMechanism(float(e)).error_quantile(0.05) for e in some]
    left.plot(some, geometric, label="geometric", ls="", marker="s", mfc="none", color=ORANGE)
    left.set(xscale="log", yscale="log", xlabel=r"$\varepsilon$ (nats)", ylabel="error of the value", title="one value")
    counts = np.unique(np.round(np.geomspace(1, 300, 13)).astype(int))
    of_gaussian, of_laplace = (
        lambda k: GaussianMechanism.from_dp(eps=1.0, delta=delta, sensitivity=math.sqrt(k)).error_quantile(0.05, k),
        lambda k: LaplaceMechanism(float(k)).error_quantile(0.05, k),
    )
    for label, look, error in (
        (r"Gaussian, sensitivity $\sqrt{k}$", {"color": BLUE, "lw": 2.0}, of_gaussian),
        (r"Laplace, $\varepsilon/k$ each", {"color": ORANGE, "lw": 1.6}, of_laplace),
        ("Laplace, composed exactly", {"color": GREEN, "lw": 1.6, "ls": "-."}, lambda k: laplace_error(k, 1.0, delta)),
    ):
        right.plot(counts, [error(int(k)) for k in counts], label=label, **look)
    gaussian_wins = next(k for k in range(2, 301) if of_gaussian(k) < of_laplace(k))
    figure.suptitle(f"One value: Laplace noise has the smallest error; from {gaussian_wins} values on Gaussian noise has\n"
                    r"Error exceeded with probability 0.05, $\delta = 10^{-6}$; one person changes every value by at most 1")
    right.set(xscale="log", yscale="log", xlabel="values $k$", ylabel="largest error of any value")
    right.set_title(r"$k$ values, $\varepsilon = 1$ in all")
    below(figure, (left,), -0.16, 9.0, ncols=2, fontsize=9)
    below(figure, (right,), -0.16, 9.0, fontsize=9)
    for axis, ticks in ((left, (0.1, 0.3, 1, 3)), (right, (1, 3, 10, 30, 100, 300))):
        axis.set_xticks(ticks, map(str, ticks))
        axis.tick_params(which="minor", labelbottom=False)
    return figure
