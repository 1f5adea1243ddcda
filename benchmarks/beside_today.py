"""The first tables of docs/numerics.md: ``python benchmarks/beside_today.py`` measures and stores, docs/tables.py writes them.

The results of one other program (results/peer-wang2024.json) were measured once, on another machine.

Times are medians of CPU time with alternating programs (compare.py). Errors are those of both tails at three counts, against Gauss
quadrature in python-flint (tests/reference/make_binomial.py).
"""

import json
import math
import sys
from pathlib import Path

import numpy as np
import scipy.stats
from keeping import RESULTS, keep
from measuring import medians

from shufflebounds import published, tails
from shufflebounds.shuffle import StrongerClones

ROOT = Path(__file__).parents[1]
ELEMENTS = 10**5
CASES = (
    (1e3, 1.0, 1e-6), (1e4, 1.0, 1e-6), (1e4, 4.0, 1e-6), (1e5, 2.0, 1e-8), (1e6, 4.0, 1e-8), (1e7, 4.0, 1e-10),
    (1e8, 6.0, 1e-10), (1e9, 8.0, 1e-12),
)


def clones():
    """Return a row for each case: users, budget, delta, eps, the gap, the ratio of the published bound to eps, seconds."""
    rows = []
    for users, local, delta in CASES:
        bound = StrongerClones(users, local)
        ((upper, taken),) = medians(lambda b=bound, d=delta: b.epsilon(d))
        lower = bound.epsilon(delta, bound="lower")
        printed = published.stronger_clones_closed_form(users, local, delta)
        rows.append([users, local, delta, upper, upper / lower - 1, printed / upper, taken])
    return rows


def largest_error(function, n):
    """Return the largest relative error of both tails at three counts."""
    sys.path.insert(0, str(ROOT))
    from tests.reference.make_binomial import exact_logs

    worst = 0.0
    for sigmas in (-6, 1, 6):
        k = round(0.3 * n + sigmas * math.sqrt(0.21 * n))
        _, below, above = exact_logs(k, n, 0.3)
        for exact, got in ((below, function("logcdf", k, n)), (above, function("logsf", k, n))):
            worst = max(worst, abs(math.expm1(float((exact - got).mid()))))
    return worst


def binomial():
    """Return a row for each n: seconds per element here and in SciPy, and the largest errors of six tails."""
    rows = []
    for n in (10**3, 10**6, 10**9):
        k = np.clip(np.floor(0.3 * n + math.sqrt(0.21 * n) * np.random.default_rng(3).uniform(-8, 8, ELEMENTS)), 0, n)
        (_, ours), (_, theirs) = medians(lambda k=k, n=n: tails.binom_logsf(k, float(n), 0.3),
                                         lambda k=k, n=n: scipy.stats.binom.logsf(k, n, 0.3))
        errors = [largest_error(f, n) for f in (lambda name, k, n: float(getattr(tails, f"binom_{name}")(k, n, 0.3)),
                                                lambda name, k, n: float(getattr(scipy.stats.binom, name)(k, n, 0.3)))]
        rows.append([n, ours / ELEMENTS, theirs / ELEMENTS, *errors])
    return rows


def poisson_binomial():
    """Return a row for each n: seconds here and in fast-poibin."""
    from fast_poibin import PoiBin

    rows = []
    for n in (10**4, 10**5, 10**6):
        p = np.random.default_rng(12345).random(n)
        (_, ours), (_, theirs) = medians(lambda p=p: tails.poisson_binom_window(p), lambda p=p: PoiBin(p))
        rows.append([n, ours, theirs])
    return rows


def power(x):
    """Return a power of ten as the tables write it."""
    return f"1e{round(math.log10(x))}"


def short(x, unit, scale):
    """Return a number with two digits and a unit."""
    return f"{float(f'{x / scale:.2g}'):g} {unit}"


def excess(eps, exact):
    """Return by how many percent a bound exceeds the exact eps, with one digit."""
    return f"{float(f'{100 * (eps / exact - 1):.1g}'):.10f}".rstrip("0").rstrip(".") + " %"


def tables(found, peer):
    """Return the three tables as text, by their names in the page."""
    theirs = {tuple(row[:3]): row[3:] for row in peer["rows"]}
    lines = []
    for users, local, delta, eps, gap, closed, taken in found["clones"]:
        other, seconds = theirs[users, local, delta]
        said = f"{excess(other, eps)}, {seconds:g} s" if other < local else f"returns eps0 = {local:g}, a trivial bound"
        digit = f"{gap:.0e}".replace("e-0", "e-")
        case = f"{power(users)}, {local:g}, {power(delta)}"
        lines.append(f"| {case} | {eps:.10f} | {digit} | {closed:.1f} | {short(taken, 'ms', 1e-3)} | {said} |")
    header = ("| users, eps0, delta | eps | gap | closed form / eps | time "
              "| tightest other program for an unknown randomizer: its excess, its time |")
    first = "\n".join([header, "|---|---|---|---|---|---|", *lines])
    lines = [
        f"| {power(n)} | {ours * 1e9:.0f} ns | {other * 1e9:.0f} ns | {float(f'{other / ours:.2g}'):g} "
        f"| {mine:.0e}, {error:.0e} |".replace("e-0", "e-")
        for n, ours, other, mine, error in found["binomial"]
    ]
    second = "\n".join(["| n | shufflebounds | SciPy | ratio | largest relative error of six tails: shufflebounds, SciPy |",
                        "|---|---|---|---|---|", *lines])
    lines = [f"| {power(n)} | {short(ours, 'ms', 1e-3)} | {short(other, 'ms', 1e-3)} | {float(f'{other / ours:.2g}'):g} |"
             for n, ours, other in found["poisson_binomial"]]
    third = "\n".join(["| n | shufflebounds | fast-poibin | ratio |", "|---|---|---|---|", *lines])
    return {"beside-clones": first, "beside-binomial": second, "beside-poisson-binomial": third}


def newest():
    """Return the tables of the newest stored measurement."""
    found = json.loads(max(RESULTS.glob("readme-*.json")).read_text(encoding="utf-8"))
    return tables(found["tables"], json.loads((RESULTS / "peer-wang2024.json").read_text(encoding="utf-8")))


def main():
    """Measure and store."""
    keep("readme", {"tables": {f.__name__: f() for f in (clones, binomial, poisson_binomial)}})
    print(*newest().values(), sep="\n\n")


if __name__ == "__main__":
    main()
