"""Tails of the binomial, Poisson-binomial and other distributions against SciPy and fast-poibin."""

import math

import numpy as np
import scipy.stats
from measuring import row

from compared.peers import PoiBin
from shufflebounds import tails


def binomial_points(size, spread):
    """Return random k, n, p: n in 10..1e6 (uniform or log-uniform), p uniform, and k within 6 standard deviations of the mean.

    For the spread "any k", n is 1e6 and k is uniform in 0..n, where most tails are below the smallest double.
    """
    rng = np.random.default_rng(12345)
    if spread == "any k":
        return np.floor(rng.uniform(0, 10**6 + 1, size)), np.full(size, 1e6), rng.random(size)
    n = rng.integers(10, 10**6, size, endpoint=True) if spread == "uniform" else np.round(10 ** rng.uniform(1, 6, size))
    p = rng.random(size)
    k = np.clip(np.round(n * p + rng.uniform(-6, 6, size) * np.sqrt(n * p * (1 - p))), 0, n)
    return k, n.astype(float), p


def binomial():
    """Return rows for tails against scipy.stats.binom, in seconds per element."""
    rows = []
    for spread in ("uniform", "log-uniform", "any k"):
        k, n, p = binomial_points(20_000, spread)
        where = "n = 1e6, any k" if spread == "any k" else f"n {spread} 10..1e6"
        for name in ("logpmf", "logcdf", "logsf"):
            ours, theirs = getattr(tails, f"binom_{name}"), getattr(scipy.stats.binom, name)

            def quiet(f=theirs, k=k, n=n, p=p):
                with np.errstate(all="ignore"):
                    return f(k, n, p)

            mine, other = ours(k, n, p), quiet()
            finite = np.isfinite(mine) & np.isfinite(other)
            gap = np.abs(mine[finite] - other[finite]).max()
            lost = int((np.isfinite(mine) & ~np.isfinite(other)).sum())
            note = f"SciPy, largest |difference| {gap:.1e}; not finite at {lost} of 20000"
            rows.append(
                row(
                    f"binom_{name}, {where}",
                    lambda f=ours, k=k, n=n, p=p: f(k, n, p),
                    quiet,
                    note,
                    "",
                    len(k),
                )
            )
    return rows


def poisson_binomial():
    """Return rows for all probabilities except tails of mass e^-50, against fast-poibin, which has absolute accuracy only."""
    rows = []
    for users in (10**3, 10**4, 10**5, 10**6):
        p = np.random.default_rng(12345).random(users)
        rows.append(
            row(
                f"poisson_binom_window, {users:.0e} distinct p",
                lambda p=p: tails.poisson_binom_window(p),
                (lambda p=p: PoiBin(p)) if PoiBin else None,
                "fast-poibin, all probabilities",
                "",
            )
        )
    p = np.random.default_rng(12345).random(10**4)
    rows.append(
        row(
            "poisson_binom_logsf, 30 sigma, 1e4 distinct p",
            lambda: tails.poisson_binom_logsf(round(p.sum() + 30 * math.sqrt(p @ (1 - p))), p),
        )
    )
    return rows


def laws():
    """Return rows for Poisson, negative binomial and hypergeometric tails (seconds per element) and sums of bits, against SciPy."""
    rng = np.random.default_rng(1)
    rows, size = [], 20_000
    z = rng.normal(size=size)
    mu, r, p = np.exp(rng.uniform(0, 14, size)), np.exp(rng.uniform(0, 10, size)), rng.uniform(0.05, 0.95, size)
    total = np.floor(np.exp(rng.uniform(6, 14, size)))
    mean = total / 12
    cases = {
        "poisson": (np.floor(np.maximum(mu + np.sqrt(mu) * z, 0)), mu),
        "nbinom": (np.floor(np.maximum(r * (1 - p) / p + np.sqrt(r * (1 - p)) / p * z, 0)), r, p),
        "hypergeom": (np.floor(np.maximum(mean + np.sqrt(mean / 2) * z, 0)), total, np.floor(total / 3), np.floor(total / 4)),
    }
    for name, arguments in cases.items():
        # SciPy's hypergeometric tail is a sum in Python, so it is timed with fewer elements.
        few = tuple(a[:20] for a in arguments) if name == "hypergeom" else arguments
        ours, theirs = getattr(tails, f"{name}_logsf"), getattr(scipy.stats, name).logsf

        def quiet(f=theirs, few=few):
            with np.errstate(all="ignore"):
                return f(*few)

        task = f"{name}_logsf, {len(few[0])} near the mode"
        rows.append(row(task, lambda f=ours, few=few: f(*few), quiet, "SciPy", "", len(few[0])))
    chances = np.linspace(0.01, 0.99, 3000)
    law, peer = tails.poisson_binom(chances), getattr(scipy.stats, "poisson_binom", None)
    k = math.ceil(law.mean() + 6 * law.std())
    theirs = (lambda: float(peer(chances).sf(k))) if peer else None
    rows.append(row("poisson_binom(3000 p).sf, 6 sigma", lambda: float(law.sf(k)), theirs, "SciPy", "{:.6g}"))
    rows.append(row("poisson_binom(3000 p).isf(1e-30)", lambda: law.isf(1e-30), None, "", "{:.6g}"))
    return rows


def frozen():
    """Return rows for frozen distributions against SciPy's: quantiles, and tails of one distribution."""
    p = np.linspace(0.1, 0.9, 3000)
    levels = np.linspace(0.01, 0.99, 100)
    rows = [row("binom(1e6, .3).ppf of 100 levels", lambda: float(tails.binom(10**6, 0.3).ppf(levels).sum()),
                lambda: float(scipy.stats.binom(10**6, 0.3).ppf(levels).sum()), "SciPy"),
            row("binom(1e6, .3).logsf of 1e5 counts", lambda: tails.binom(10**6, 0.3).logsf(np.arange(2.5e5, 3.5e5)),
                lambda: scipy.stats.binom(10**6, 0.3).logsf(np.arange(2.5e5, 3.5e5)), "SciPy, each", show=None, per=10**5)]
    theirs = getattr(scipy.stats, "poisson_binom", None)
    twelve = int(p.sum() + 12 * np.sqrt((p * (1 - p)).sum()))
    rows.append(row("poisson_binom of 3000 p: logsf at 12 sigma", lambda: float(tails.poisson_binom(p).logsf(twelve)),
                    (lambda: float(theirs(p).logsf(twelve))) if theirs else None, "SciPy, wrong beyond 1e-16"))
    rows.append(row("poisson_binom of 3000 p: ppf of 100 levels", lambda: float(tails.poisson_binom(p).ppf(levels).sum()),
                    note="SciPy raises above 64 p"))
    return rows
