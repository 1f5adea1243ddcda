"""Arbitrary shuffled randomizers, against recorded results of two programs and against dp-accounting."""

import math

import numpy as np
import scipy.stats
from measuring import row

from compared.peers import privacy_loss_distribution, two_laws
from shufflebounds.mechanisms import (
    GaussianMechanism,
    HadamardResponse,
    KaryResponse,
    LaplaceMechanism,
    LocalHashing,
    PureLocal,
    RatioBounded,
    SubsetSelection,
    UnaryEncoding,
)
from shufflebounds.published import balle2019_bennett
from shufflebounds.shuffle import Clones, StrongerClones, shuffled_epsilons

RECORDED = [
    (10**3, 1.0, 1e-6, ".148671 in 0.8 s", ".148995 in 16 s, 300 MB"),
    (10**4, 1.0, 1e-6, ".0432072 in 1.8 s", "not in 90 s"),
    (10**5, 2.0, 1e-8, ".0438919 in 2.9 s", "over 8 GB"),
    (10**6, 4.0, 1e-8, ".0452957 in 4.5 s", ""),
    (10**9, 8.0, 1e-12, "8 (vacuous)", ""),
]
"""(users, local_eps, delta), and the results of two programs on one core of another machine: variation ratio (Wang et al., VLDB
2024, their code) and the optimal blanket by FFT (Su, Cheng, Wang, S&P 2026, reimplemented with NumPy). Not measured in this run."""


def third_laws(users, bins, local_eps, tail=60.0):
    """Return log masses of the counts of the target's two values in k-ary response; all other users have a third value."""
    base = 1 / (math.exp(local_eps) + bins - 1)
    reach = 2 * math.ceil(math.sqrt(tail * users * base)) + 40
    k = np.arange(max(0, int(users * base) - reach), int(users * base) + reach)
    laws = []
    count, first = np.meshgrid(np.arange(2 * k[0], 2 * k[-1]), k, indexing="ij")
    others = np.full((2, *count.shape), -np.inf)
    for i, shift in enumerate((1, 0)):
        # The target's message is added to the first count under P, and to the second under Q.
        c, a = count - 1, first - shift
        others[i] = scipy.stats.binom.logpmf(c, users - 1, 2 * base) + scipy.stats.binom.logpmf(a, c, 0.5)
    none = np.nan_to_num(scipy.stats.binom.logpmf(count, users - 1, 2 * base) + scipy.stats.binom.logpmf(first, count, 0.5),
                         nan=-np.inf, neginf=-np.inf)
    own, other, rest = math.log(base) + local_eps, math.log(base), math.log1p(-(math.exp(local_eps) + 1) * base)
    others = np.nan_to_num(others, nan=-np.inf, neginf=-np.inf)
    for one, two in ((own, other), (other, own)):
        laws.append(np.logaddexp(np.logaddexp(others[0] + one, others[1] + two), none + rest).ravel())
    kept = np.maximum(*laws) > -tail
    return laws[0][kept], laws[1][kept]


def recorded():
    """Return rows for binary response: the blanket, the stronger clones, recorded results of two programs, and dp-accounting."""
    rows = []
    for users, local_eps, delta, ratio, transform in RECORDED:
        note = f"recorded: VLDB 2024 {ratio}" + (f"; S&P 2026 {transform}" if transform else "")
        rows.append(row(f"blanket of binary response, n={users:.0e} eps0={local_eps:g} delta={delta:g}",
                        lambda n=users, e=local_eps, d=delta: PureLocal(e).shuffled(n).epsilon(d), note=note))

    def theirs():
        return two_laws(*third_laws(10**3, 3, 1.0), 1e-5).get_epsilon_for_delta(1e-6)

    lower = KaryResponse(3, 1.0).shuffled(10**3)
    rows.append(row("3-ary response, all others at the third value, n=1e3: eps(1e-6) from below",
                    lambda: KaryResponse(3, 1.0).shuffled(10**3).epsilon(1e-6, bound="lower"),
                    theirs if privacy_loss_distribution else None,
                    f"dp-accounting of both counts, grid 1e-5; our upper side {lower.epsilon(1e-6):.7g}"))
    return rows


WORST = [
    (lambda: GaussianMechanism(1.0), 10**3, 1e-6), (lambda: GaussianMechanism(1.0), 10**4, 1e-6),
    (lambda: GaussianMechanism(1.0), 10**6, 1e-8), (lambda: UnaryEncoding.optimized(100, 1.0), 10**4, 1e-6),
    (lambda: GaussianMechanism(2.0), 10**4, 1e-6), (lambda: LaplaceMechanism(1.0), 10**3, 1e-6),
    (lambda: LaplaceMechanism(1.0), 10**4, 1e-6), (lambda: LaplaceMechanism(1.0), 10**6, 1e-8),
    (lambda: LaplaceMechanism(0.25), 10**4, 1e-6), (lambda: LocalHashing(100, 1.0, 4), 10**3, 1e-6),
    (lambda: LocalHashing(100, 1.0, 4), 10**4, 1e-6), (lambda: LocalHashing(100, 4.0, 4), 10**4, 1e-6),
    (lambda: LocalHashing(100, 4.0, 4), 10**6, 1e-8),
]
"""The randomizers, users and deltas. Users with noise have the values 0 or 1; without this list of inputs `Shuffled` returns the
blanket."""


def published_bounds(randomizer, users, delta):
    """Return the results of published upper bounds for a randomizer as text; this library evaluates and tests their formulas.

    All but the variation ratio depend on the local budget alone, so that none of them applies to noise without a budget.
    """
    local_eps = randomizer.epsilon(0.0)
    if not math.isfinite(local_eps):
        return "published: none without a local budget but the privacy blanket"
    ratio = math.exp(local_eps)
    total_variation = min(randomizer.delta(0.0), (ratio - 1) / (ratio + 1))
    found = {
        "variation ratio (VLDB 2024, corrected)": RatioBounded(ratio, total_variation, ratio).shuffled(users).epsilon(delta),
        "stronger clones (2023)": StrongerClones(users, local_eps).epsilon(delta),
        "clones (2021)": Clones(users, local_eps).epsilon(delta),
        "blanket by Bennett (2019)": balle2019_bennett(users, local_eps, delta),
    }
    return "published: " + ", ".join(f"{name} {value:.6g}" for name, value in found.items())


def worst():
    """Return rows for the bound over all datasets, the blanket alone and the lower bound, each with its time, at one delta.

    The values of the programs of VLDB 2024 and S&P 2026 follow from decompositions of the randomizer, and no decomposition is below
    the privacy blanket (Su, Cheng, Wang), so that the row of the blanket is the least of them. `RECORDED` has the results of both
    for binary response. Published bounds of other kinds are in the note of the first row.
    """
    rows = []
    for build, users, delta in WORST:
        randomizer = build()
        inputs = (0, 1) if isinstance(randomizer, GaussianMechanism | LaplaceMechanism) else None
        jobs = {
            "worst dataset": lambda b=build, n=users, d=delta, i=inputs: b().shuffled(n, inputs=i).epsilon(d),
            "privacy blanket": lambda b=build, n=users, d=delta: shuffled_epsilons(b(), n, d, method="blanket"),
            "lower bound": lambda b=build, n=users, d=delta, i=inputs: b().shuffled(n, inputs=i).epsilon(d, bound="lower"),
        }
        for name, job in jobs.items():
            note = published_bounds(randomizer, users, delta) if name == "worst dataset" else ""
            rows.append(row(f"{randomizer!r}, n = {users:.0e}: eps({delta:g}), {name}", job, note=note))
    return rows


def randomizers():
    """Return rows for various shuffled randomizers: both bounds of eps, and the bound for every randomizer of the same budget."""
    rows = recorded()
    for users, delta in ((10**4, 1e-6), (10**6, 1e-8)):
        for build in (lambda: KaryResponse(10, 1.0), lambda: KaryResponse(100, 4.0), lambda: LocalHashing(100, 4.0, 56),
                      lambda: HadamardResponse(100, 1.0), lambda: LaplaceMechanism(1.0), lambda: GaussianMechanism(1.0)):
            mechanism = build()
            pure = mechanism.epsilon(0.0)
            clones = f"{StrongerClones(users, pure).epsilon(delta):.6g}" if pure < 700 else "none"
            lower = build().shuffled(users).epsilon(delta, bound="lower")
            task = f"{mechanism!r}, n = {users:.0e}: eps({delta:g})"
            rows.append(row(task, lambda b=build, n=users, d=delta: b().shuffled(n).epsilon(d),
                            note=f"lower side {lower:.7g}; stronger clones {clones}"))
    values = np.random.default_rng(1).integers(0, 100, 10**6)
    for mechanism in (KaryResponse(100, 1.0), SubsetSelection(100, 1.0), LocalHashing(100, 1.0), HadamardResponse(100, 1.0),
                      UnaryEncoding.optimized(100, 1.0)):
        rows.append(row(f"{mechanism!r}: randomize 1e6 users", lambda m=mechanism: m.randomize(values, rng=1), show=None,
                        note=f"{mechanism.message_bits:.1f} bits a message"))
    return rows
