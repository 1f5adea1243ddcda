"""Figures that explain the ideas: parties of each protocol, hockey-stick divergence, trade-off function, bounds, clones, a year.

`make_figures.py` draws them.
"""

from functools import partial
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from figure_style import BLUE, EXACT, GREEN, GREY, ORANGE, PRINTED, SKY, WIDTH, below, is_narrow, panels, wrapped
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from scipy.stats import binom, norm

from shufflebounds import Tradeoff, audit
from shufflebounds.mechanisms import GaussianMechanism, KaryResponse
from shufflebounds.published import stronger_clones_closed_form
from shufflebounds.shuffle import BinomialNoise, Shuffled, ShuffledBits, ShuffledHistogram, StrongerClones, ZeroSum

TRUSTED, UNTRUSTED = "#e3f2e9", "#f3f3f3"

PROTOCOLS = {
    "shuffled-bits": ("user\nflips one bit", "1 bit", None, "analyst\nsum of bits"),
    "real-sum": ("user\nencodes a number\nin r bits, flips each", "r bits", None, "analyst\ntotal of all bits"),
    "clear-reports": ("user\nno noise", "own bin", "adds m random bins", "analyst\nhistogram of\nall reports"),
    "flipped-reports": ("user\nflips d bits", "d bits, or\n1 vector", None, "analyst\nd sums, or\nshuffled vectors"),
    "zero-sum": ("user\nbit and noise bit", "0 to 2 copies\nof 1 message", None, "analyst\nnumber of messages"),
    "histogram": ("user\nown bin, and noise\nfor every bin", "names of bins", None, "analyst\ncount of each name"),
    "binomial-noise": ("user\nno noise", "own bit", "adds N random bits", "analyst\nsum of bits"),
    "clones": ("user\nlocal randomizer", "1 message", None, "analyst\nmultiset of\nmessages"),
}
"""Texts: the user's box, the arrow to the shuffler, the party that adds reports (None if there is none), the analyst's box."""


def box(ax: plt.Axes, x: float, y: float, text: str, colour: str, width: float = 1.9, height: float = 1.05) -> None:
    """Draw a rounded box centred at (x, y)."""
    ax.add_patch(
        FancyBboxPatch(
            (x - width / 2, y - height / 2),
            width,
            height,
            boxstyle="round,pad=0.04,rounding_size=0.12",
            facecolor=colour,
            edgecolor="#333333",
            lw=1.1,
        )
    )
    ax.text(x, y, text, ha="center", va="center", fontsize=10)


def arrow(ax: plt.Axes, start: tuple[float, float], end: tuple[float, float], text: str = "") -> None:
    """Draw an arrow with a text above its middle."""
    ax.add_patch(FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=13, lw=1.2, color="#333333"))
    ax.text((start[0] + end[0]) / 2, (start[1] + end[1]) / 2 + 0.12, text, ha="center", va="bottom", fontsize=9, color=BLUE)


def blank(width: float, height: float, across: float, up: float) -> tuple[plt.Figure, plt.Axes]:
    """Return a figure without axes in which one unit is as long in both directions."""
    figure, ax = panels(figsize=(width, height))
    ax.set(xlim=(0, across), ylim=(0, up))
    ax.set_aspect("equal")
    ax.axis("off")
    return figure, ax


def protocol(name: str) -> plt.Figure:
    """Draw the parties of one protocol; green boxes are trusted."""
    user, message, extra, analyst = PROTOCOLS[name]
    if is_narrow():
        return upright(user, message, extra, analyst)
    figure, ax = blank(7.6, 2.2 if extra else 1.8, 10.2, 2.6 if extra else 2.2)
    y = 1.65 if extra else 1.25
    rows = (y + 0.16, y + 0.08, y)
    for step, row in enumerate(rows):  # three boxes behind each other stand for n users
        shift = 0.08 * (2 - step)
        box(ax, 1.25 + shift, row, user if step == 2 else "", TRUSTED if extra is None else UNTRUSTED, width=2.1)
    arrow(ax, (2.5, y), (4.15, y), message)
    box(ax, 5.15, y, "shuffler\nremoves senders\nand order", TRUSTED)
    arrow(ax, (6.2, y), (7.85, y), "shuffled")
    box(ax, 8.95, y, analyst, UNTRUSTED, width=2.1)
    if extra:
        box(ax, 5.15, 0.42, extra, TRUSTED, width=2.5, height=0.5)
        arrow(ax, (5.15, 0.72), (5.15, y - 0.58))
    ax.text(0.15, 0.3, "green: trusted", fontsize=9, color=GREY, va="center")
    return figure


def upright(user: str, message: str, extra: str | None, analyst: str, seen: bool = False) -> plt.Figure:
    """Draw the parties below each other; with `seen`, also what each boundary guarantees."""
    figure, ax = blank(WIDTH, 4.3, 6.0, 6.2)
    for shift in (0.16, 0.08, 0.0):
        box(ax, 1.6 + shift, 5.4 + shift, user if shift == 0 else "", TRUSTED if extra is None or seen else UNTRUSTED, width=2.4)
    box(ax, 1.6, 3.1, "shuffler\nremoves senders\nand order", TRUSTED, width=2.4)
    box(ax, 1.6, 0.8, analyst, UNTRUSTED, width=2.4)
    for top, bottom, text in ((4.82, 3.72, message), (2.52, 1.42, "shuffled")):
        ax.add_patch(FancyArrowPatch((1.6, top), (1.6, bottom), arrowstyle="-|>", mutation_scale=13, lw=1.2, color="#333333"))
        ax.text(1.75, (top + bottom) / 2, text, ha="left", va="center", fontsize=9, color=BLUE)
    if extra:
        box(ax, 4.6, 3.1, extra.replace(" random", "\nrandom").replace(" (", "\n("), TRUSTED, width=2.0, height=0.8)
        arrow(ax, (3.5, 3.1), (2.9, 3.1))
    if seen:
        for y, text in ((4.05, SEEN[0]), (1.75, SEEN[1])):
            ax.plot([0.2, 5.8], [y, y], color=ORANGE, lw=1.2, ls="--")
            ax.text(5.8, y + 0.08, text, ha="right", va="bottom", fontsize=9, color=ORANGE)
    ax.text(0.2, 0.0, "green: trusted", fontsize=9, color=GREY)
    return figure


SEEN = ("seen here:\nonly the local guarantee, $\\varepsilon_0$", "seen here:\n$(\\varepsilon, \\delta)$, much stronger")
"""What an observer of the messages, and of the shuffled messages, learns."""


def pipeline() -> plt.Figure:
    """Draw the general shuffle model, with what each boundary guarantees."""
    if is_narrow():
        user = "user: value x\nrandomizer\non the device"
        return upright(user, "message", "dummy reports (some protocols)", "analyst\nestimate", seen=True)
    figure, ax = blank(9.4, 2.9, 13.4, 4.0)
    y = 1.9
    for shift in (0.16, 0.08, 0.0):
        box(ax, 1.1 + shift, y + shift, "user\nvalue x" if shift == 0 else "", TRUSTED, width=1.5)
        box(ax, 4.0 + shift, y + shift, "randomizer\non the device" if shift == 0 else "", TRUSTED, width=2.0)
    arrow(ax, (2.05, y), (2.92, y), "x")
    arrow(ax, (5.2, y), (6.95, y), "message     ")
    box(ax, 8.05, y, "shuffler\nremoves senders\nand order", TRUSTED, width=2.1)
    arrow(ax, (9.18, y), (11.0, y), "multiset     ")
    box(ax, 12.1, y, "analyst\nestimate", UNTRUSTED, width=2.0)
    box(ax, 8.05, 0.42, "dummy reports (some protocols)", TRUSTED, width=4.2, height=0.45)
    arrow(ax, (8.05, 0.68), (8.05, y - 0.6))
    for x, text in ((6.6, SEEN[0]), (10.65, SEEN[1])):
        ax.plot([x, x], [0.95, 3.05], color=ORANGE, lw=1.2, ls="--")
        ax.text(x, 3.15, text, ha="center", va="bottom", fontsize=10, color=ORANGE)
    ax.text(0.2, 0.3, "green: trusted", fontsize=9, color=GREY)
    return figure


def hockey_stick() -> plt.Figure:
    """Draw two distributions of the analyst's view and the area of delta(eps)."""
    noise, eps = BinomialNoise(trials=40, prob=0.5), 0.5
    k = np.arange(0, 42)
    q, p = binom.pmf(k, 40, 0.5), binom.pmf(k - 1, 40, 0.5)
    figure, ax = panels(figsize=(7.4, 3.4))
    scaled = np.exp(eps) * q
    ax.bar(k, p, width=0.8, color=SKY, alpha=0.5, label="P: the user holds 1")
    ax.bar(
        k,
        np.maximum(p - scaled, 0),
        bottom=np.minimum(p, scaled),
        width=0.8,
        color=ORANGE,
        label=rf"$\delta$ = {max(np.maximum(p - scaled, 0).sum(), 0):.3f}: what is above",
    )
    ax.step(k + 0.5, np.append(scaled[1:], 0), where="pre", color=BLUE, lw=1.6, label=r"$e^\varepsilon$Q, Q: the user holds 0")
    ax.set(
        xlim=(8.5, 33.5),
        xlabel="sum that the analyst sees",
        ylabel="probability",
        title=rf"$\delta$ is the part of P above $e^\varepsilon$Q ($\varepsilon$ = {eps}, 40 fair noise bits)",
    )
    if is_narrow():
        below(figure, (ax,), -0.2, 4.2)
    else:
        ax.legend(loc="upper left", fontsize=9)
    assert abs(np.maximum(p - scaled, 0).sum() - noise.delta(eps)) < 1e-12
    return figure


def tradeoff() -> plt.Figure:
    """Draw a trade-off function with two questions read off it."""
    profile = GaussianMechanism(1.0)
    curve = profile.tradeoff()
    alpha = np.linspace(0, 1, 301)
    figure, ax = panels(figsize=(4.8, 4.4))
    ax.plot(alpha, [curve.beta(a) for a in alpha], **EXACT, label=r"Gaussian noise, $\sigma$ = 1")
    ax.plot(alpha, 1 - alpha, color=GREY, lw=1.0, ls=":", label="guessing")
    beta = float(curve.beta(0.05))
    ax.plot([0.05, 0.05, 0], [0, beta, beta], color=ORANGE, lw=1.2)
    ax.annotate(
        f"accuses 5 % wrongly:\nmisses at least {100 * beta:.0f} %",
        (0.05, beta),
        (0.22, 0.86),
        fontsize=10,
        color=ORANGE,
        arrowprops={"arrowstyle": "->", "color": ORANGE},
    )
    eps = 1.0
    delta = float(profile.delta(eps))
    ax.plot(alpha, 1 - delta - np.exp(eps) * alpha, color=GREEN, lw=1.2, ls="--")
    ax.annotate(
        r"line of $\varepsilon$ = 1: height 1 - $\delta$ at 0," + "\n" + rf"slope $-e^\varepsilon$; $\delta$ = {delta:.3f}",
        (0.2, 1 - delta - np.exp(eps) * 0.2),
        (0.36, 0.52),
        fontsize=10,
        color=GREEN,
        arrowprops={"arrowstyle": "->", "color": GREEN},
    )
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel=r"error of the first kind $\alpha$", ylabel=r"error of the second kind $\beta$")
    ax.set_aspect("equal")
    ax.legend(loc=(0.44, 0.64), fontsize=9)
    return figure


def audited() -> plt.Figure:
    """Draw what the scores of examples/attack_scores.csv refute, and the claim eps = 1."""
    table = np.loadtxt(Path(__file__).parents[1] / "examples" / "attack_scores.csv", delimiter=",", skiprows=2)
    figure, ax = panels(figsize=(5.4, 4.8))
    found = audit.scores(table[table[:, 1] == 1, 0], table[table[:, 1] == 0, 0])
    found.plot(Tradeoff.approximate(1.0, 1e-5), ax)
    ax.set_title("The claim lies above the limits of the error rates: refuted")
    return figure


def bounds() -> plt.Figure:
    """Draw lower bound, exact value, upper bound and closed form on one line, for a bound whose gap is visible."""
    users, flip, delta = 1000, 1 / (np.e + 1), 1e-6
    exact = ShuffledBits(users, flip).epsilon(delta)
    noise = GaussianMechanism(2.0).shuffled(users)
    low, high = noise.epsilon(delta, bound="lower"), noise.epsilon(delta)
    clones, closed = StrongerClones(users, 1.0).epsilon(delta), stronger_clones_closed_form(users, 1.0, delta)
    figure, axes = panels(2, 1, figsize=(7.6, 4.2))
    rows = (
        (
            axes[0],
            "Gaussian noise, $\\sigma$ = 2, 1000 users: the exact value is in between",
            [(low, "lower bound", GREEN, 1), (high, "upper bound", BLUE, 1)],
            (low, high),
        ),
        (
            axes[1],
            "Local budget $\\varepsilon_0$ = 1, 1000 users",
            [
                (exact, "binary response,\nboth bounds", GREEN, 1),
                (clones, "every randomizer,\nboth bounds", BLUE, -1),
                (closed, "closed form", ORANGE, 1),
            ],
            None,
        ),
    )
    for ax, title, marks, span in rows:
        values = [value for value, *_ in marks]
        wide = max(values) - min(values)
        ax.axhline(0, color="#999999", lw=1)
        if span:
            ax.plot(span, (0, 0), color=SKY, lw=7, solid_capstyle="butt", alpha=0.6)
        for value, text, colour, up in marks:
            ax.plot([value], [0], marker="|", ms=18, mew=2, color=colour)
            ax.text(
                value, 0.7 * up, f"{text}\n{value:.4f}", ha="center", va="bottom" if up > 0 else "top", color=colour, fontsize=9
            )
        ax.set(
            xlim=(min(values) - 0.3 * wide, max(values) + 0.3 * wide),
            ylim=(-3.4, 3.4),
            yticks=[],
            xlabel=r"$\varepsilon$ at $\delta = 10^{-6}$",
        )
        ax.set_title(title, loc="left", fontsize=10, pad=10)
        ax.grid(visible=False)
        ax.spines["left"].set_visible(False)
    return figure


def clones() -> plt.Figure:
    """Draw the messages of other users as clones of either message of the target user, or neither."""
    figure, ax = blank(WIDTH, 3.3, 5.9, 4.8) if is_narrow() else blank(7.6, 2.6, 10.2, 3.4)
    kinds = [0, 1, None, 1, 0, None, 0, 1, None, 0, 1, None]
    colours = {0: SKY, 1: ORANGE, None: "#dddddd"}
    row = 6 if is_narrow() else 12
    ax.text(0.2, 2.95 + 0.78 * (12 // row - 1), "messages of the other users, in random order", fontsize=10, va="center")
    for place, kind in enumerate(kinds):
        x, y = 0.6 + 0.78 * (place % row), 2.25 + 0.78 * (12 // row - 1 - place // row)
        box(ax, x, y, {0: "0", 1: "1", None: ""}[kind], colours[kind], width=0.5, height=0.5)
    ax.text(0.2, 1.45, "and the target user's:", fontsize=10, va="center")
    box(ax, 3.4, 1.45, "0", SKY, width=0.5, height=0.5)
    ax.text(3.85, 1.45, "or", fontsize=10, va="center", ha="center")
    box(ax, 4.3, 1.45, "1", ORANGE, width=0.5, height=0.5)
    blue, coloured = kinds.count(0), len(kinds) - kinds.count(None) + 1
    shown_text = (
        "coloured: clones, which look like the target's message if the value were 0 (blue) or 1 (orange), each a fair coin toss\n"
        f"grey: messages that say nothing about the target. The analyst must tell {blue} + 1 blue of {coloured} from {blue} "
        f"of {coloured}."
    )
    ax.text(0.2, 0.98, wrapped(shown_text, 60), fontsize=9, va="top", linespacing=1.5)
    return figure


def year() -> plt.Figure:
    """Draw eps after each month for noise calibrated for one release and for a year, as on the page that calibrates a histogram."""
    users, bins, target = 200_000, 20, {"eps": 1.0, "delta": 1e-9}
    single = partial(Shuffled.calibrate, partial(KaryResponse, bins), users=users)
    figure, ax = panels(figsize=(7.2, 3.4))
    months, ratios = np.arange(1, 13), []
    for once, line, text in (
        (single(**target), PRINTED, "calibrated for one release"),
        (single(releases=12, **target), EXACT, "calibrated for twelve"),
    ):
        eps = [once.self_compose(int(k)).epsilon(target["delta"]) for k in months]
        ax.plot(months, eps, marker="o", ms=4, **line)
        ratios.append(eps[-1] / eps[0])
        shown_text = f"{text},\nlocal budget {once.randomizer.local_eps:.2f}"
        if is_narrow():
            ax.text(12, 0.68 * eps[-1], shown_text, ha="right", va="top", fontsize=9, color=line["color"])
        else:
            ax.text(12.3, eps[-1], shown_text, va="center", fontsize=9, color=line["color"])
    ax.plot([0.7, 12], [1, 1], color=GREY, lw=1, ls=":")
    ax.text(4.2 if is_narrow() else 5, 1.08, r"target $\varepsilon$ = 1", fontsize=9, color=GREY)
    ax.set(
        xlabel="releases (months)",
        ylabel=r"$\varepsilon$ at $\delta = 10^{-9}$, upper bound",
        xticks=months,
        xlim=(0.7, 12.3 if is_narrow() else 15.9),
        ylim=(0, None),
        title=f"After twelve releases eps is {min(ratios):.1f} to {max(ratios):.1f} times that of one",
    )
    ax.spines["bottom"].set_bounds(0.7, 12.3)
    return figure


def dead_zone() -> plt.Figure:
    """Draw the estimate of ShuffledHistogram over the count of a bin: small counts are reported as 0."""
    protocol = ShuffledHistogram.calibrate(users=10**5, bins=50, eps=1.0, delta=1e-6)
    one = ZeroSum(protocol.users, protocol.gamma)
    count = np.arange(0, 121)
    mean = protocol.users * protocol.gamma
    spread = norm.ppf(0.975) * one.variance**0.5
    shown = binom.cdf(count - 1, protocol.users, protocol.gamma)  # probability that the estimate is not 0
    figure, ax = panels(figsize=(6.6, 3.6))
    ax.plot(count, count, color=GREY, lw=1.0, ls=":", label="count")
    seen = count >= mean + spread
    ax.fill_between(
        count[seen], count[seen] - spread, count[seen] + spread, color=SKY, alpha=0.5, lw=0, label="estimate, 95 % of the runs"
    )
    ax.plot(
        count[shown < 0.025],
        0 * count[shown < 0.025],
        color=ORANGE,
        lw=4,
        solid_capstyle="butt",
        label="estimate 0, at least 97.5 % of the runs",
    )
    between = (shown >= 0.025) & ~seen
    ax.axvspan(count[between][0], count[between][-1], color="#eeeeee", lw=0, label="either")
    ax.set(
        xlabel="users in a bin",
        ylabel="estimate",
        xlim=(0, 120),
        ylim=(-4, 140),
        title=f"Bins of fewer than about {count[between][0]} users are reported as 0\n"
        + r"($10^5$ users, $\varepsilon$ = 1, $\delta = 10^{-6}$)",
    )
    ax.legend(loc="upper left", fontsize=9)
    return figure


def decision() -> plt.Figure:
    """Draw the choice of a protocol as a tree of questions; in the narrow form as a list of them."""
    if is_narrow():
        figure, ax = blank(WIDTH, 5.2, 6.0, 7.5)
    else:
        figure, ax = blank(9.7, 4.2, 14.9, 6.2)
        box(ax, 1.2, 3.1, "What do you\nrelease?", UNTRUSTED, width=1.9, height=0.85)
    branches = (
        (
            5.4,
            "a count:\nwho adds the noise?",
            (("a trusted party", "BinomialNoise"), ("each user", "ShuffledBits; ZeroSum if empty data must give 0")),
        ),
        (
            3.9,
            "a histogram:\nwho adds the noise?",
            (("a trusted party", "ClearReports"), ("each user", "k-ary response (Shuffled); FlippedReports; ShuffledHistogram")),
        ),
        (2.3, "one local message:\nrandomizer known?", (("yes", "Shuffled"), ("no", "StrongerClones"))),
        (0.8, "a sum of numbers\nin [0, 1]", (("", "RealSum"),)),
    )
    for y, question, answers in branches if is_narrow() else ():
        top = 7.1 - 2.0 * (5.4 - y) / 1.53
        ax.text(0.1, top, question.replace("\n", " "), fontsize=10, va="center")
        for place, (answer, protocol_name) in enumerate(answers):
            text = wrapped(f"{answer}: {protocol_name}" if answer else protocol_name, 46)
            box(ax, 3.1, top - 0.5 - 0.62 * place, text, TRUSTED, width=5.6, height=0.46)
    for y, question, answers in () if is_narrow() else branches:
        box(ax, 4.2, y, question, UNTRUSTED, width=2.5, height=0.85)
        ax.add_patch(FancyArrowPatch((2.2, 3.1), (2.88, y), arrowstyle="-|>", mutation_scale=11, lw=1.0, color="#333333"))
        for up, (answer, protocol_name) in zip((0.32, -0.32) if len(answers) > 1 else (0.0,), answers):
            ax.add_patch(FancyArrowPatch((5.5, y), (6.0, y + up), arrowstyle="-|>", mutation_scale=11, lw=1.0, color="#333333"))
            box(ax, 10.4, y + up, f"{answer}: {protocol_name}" if answer else protocol_name, TRUSTED, width=8.6, height=0.44)
    return figure


IDEAS = {
    "pipeline": pipeline,
    "hockey-stick": hockey_stick,
    "tradeoff": tradeoff,
    "bounds": bounds,
    "audit": audited,
    "clones": clones,
    "year": year,
    "dead-zone": dead_zone,
    "decision": decision,
    **{f"protocol-{name}": partial(protocol, name) for name in PROTOCOLS},
}
"""The figures of this file by their names."""
