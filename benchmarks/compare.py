"""Time shufflebounds against what a user would install instead: ``python benchmarks/compare.py [section ...]``.

Every row is measured in this run: medians of the CPU time of alternating calls, ours and theirs, so that a busy machine troubles
both alike, and little; ``--record`` keeps the rows in results/, with date and machine. A section is a function that returns rows
(task, ours, theirs, seconds, seconds of the peer, note); a peer that is not installed leaves its column empty. Sections are listed
in SECTIONS; add a function there to add rows.
"""

import math
import sys

import numpy as np
import scipy.stats
from compare_deployments import alone, arrays
from keeping import keep
from measuring import row, table

from shufflebounds import Tradeoff, tails
from shufflebounds.mechanisms import (
    GaussianMechanism,
    HadamardResponse,
    KaryResponse,
    LaplaceMechanism,
    LocalHashing,
    PureLocal,
    SubsetSelection,
    UnaryEncoding,
)
from shufflebounds.sampling import RandomAllocation
from shufflebounds.shuffle import BinomialNoise, PersonalizedBits, PersonalizedClones, ShuffledBits, StrongerClones, clones_epsilon
from shufflebounds.tradeoff import hockey_stick

try:
    from dp_accounting.pld import privacy_loss_distribution
except ImportError:
    privacy_loss_distribution = None
try:
    from fast_poibin import PoiBin
except ImportError:
    PoiBin = None
try:
    from PLD_accounting import gaussian_allocation_epsilon_range
except ImportError:
    gaussian_allocation_epsilon_range = None
try:
    from riskcal.analysis import get_beta_from_gdp, get_beta_from_pld
except ImportError:
    get_beta_from_gdp = get_beta_from_pld = None

CLONE_GRID = [
    (10**3, 1.0, 1e-6),
    (10**4, 1.0, 1e-6),
    (10**4, 4.0, 1e-6),
    (10**5, 2.0, 1e-8),
    (10**6, 4.0, 1e-8),
    (10**7, 4.0, 1e-10),
    (10**8, 6.0, 1e-10),
    (10**9, 8.0, 1e-12),
]
"""(users, local_eps, delta)"""


def binomial_points(size, spread):
    """Return k, n, p: n in 10..1e6 (uniform or log-uniform), p uniform, k within 6 sigmas of the mean."""
    rng = np.random.default_rng(12345)
    n = rng.integers(10, 10**6, size, endpoint=True) if spread == "uniform" else np.round(10 ** rng.uniform(1, 6, size))
    p = rng.random(size)
    k = np.clip(np.round(n * p + rng.uniform(-6, 6, size) * np.sqrt(n * p * (1 - p))), 0, n)
    return k, n.astype(float), p


def binomial():
    """Tails against scipy.stats.binom: seconds an element."""
    rows = []
    for spread in ("uniform", "log-uniform"):
        k, n, p = binomial_points(20_000, spread)
        for name in ("logpmf", "logcdf", "logsf"):
            ours, theirs = getattr(tails, f"binom_{name}"), getattr(scipy.stats.binom, name)

            def quiet(f=theirs, k=k, n=n, p=p):
                with np.errstate(all="ignore"):
                    return f(k, n, p)

            mine, other = ours(k, n, p), quiet()
            finite = np.isfinite(mine) & np.isfinite(other)
            gap = np.abs(mine[finite] - other[finite]).max()
            lost = int((np.isfinite(mine) & ~np.isfinite(other)).sum())
            note = f"largest |difference| {gap:.1e}; scipy not finite at {lost}"
            rows.append(
                row(
                    f"binom_{name}, n {spread} 10..1e6",
                    lambda f=ours, k=k, n=n, p=p: f(k, n, p),
                    quiet,
                    note,
                    "",
                    len(k),
                )
            )
    return rows


def two_laws(log_p, log_q, grid, symmetric=True):
    """Return dp-accounting's privacy loss distribution of two listed laws, pessimistic; symmetric: of this order alone."""
    return privacy_loss_distribution.from_two_probability_mass_functions(
        dict(enumerate(log_p.tolist())),
        dict(enumerate(log_q.tolist())),
        value_discretization_interval=grid,
        symmetric=symmetric,
    )


def clone_laws(users, local_eps, tail=40.0):
    """Return log P and log Q of the clone pair on the (c, a) that matter: masses above e^-tail."""
    rate = 2 / (math.exp(local_eps) + 1)
    w = 1 / (math.exp(local_eps) + 1)
    c = np.arange(users)
    weight = scipy.stats.binom.logpmf(c, users - 1, rate)
    c, weight = c[weight > -tail], weight[weight > -tail]
    half = np.ceil(np.sqrt(c * tail / 2)).astype(int) + 2
    low, high = np.maximum(0, c // 2 - half), np.minimum(c + 1, c // 2 + half)
    cc = np.repeat(c, high - low + 1)
    a = np.concatenate([np.arange(x, y + 1) for x, y in zip(low, high)])
    ww = np.repeat(weight, high - low + 1)
    with np.errstate(all="ignore"):
        b1, b0 = scipy.stats.binom.logpmf(a - 1, cc, 0.5), scipy.stats.binom.logpmf(a, cc, 0.5)
    log_p = ww + np.logaddexp(math.log1p(-w) + b1, math.log(w) + b0)
    log_q = ww + np.logaddexp(math.log(w) + b1, math.log1p(-w) + b0)
    keep = np.maximum(log_p, log_q) > -tail
    return log_p[keep], log_q[keep]


def clones():
    """StrongerClones.epsilon, against dp-accounting on the hand-written (c, a) laws where those fit (users <= 1e4)."""
    rows = []
    for users, local_eps, delta in CLONE_GRID:
        theirs, note = None, ""
        if privacy_loss_distribution and users <= 10**4:
            grid = 1e-4
            note = f"dp-accounting, grid {grid:g}, windowed pmf"

            def theirs(users=users, local_eps=local_eps, delta=delta, grid=grid):
                return two_laws(*clone_laws(users, local_eps), grid).get_epsilon_for_delta(delta)

        rows.append(
            row(
                f"clones eps, n={users:.0e} eps0={local_eps:g} delta={delta:g}",
                lambda u=users, e=local_eps, d=delta: StrongerClones(u, e).epsilon(d),
                theirs,
                note,
            )
        )
    rows.append(row("clones eps, n=1e12 eps0=14 delta=1e-12", lambda: StrongerClones(10**12, 14.0).epsilon(1e-12)))
    rows.append(row("clones eps, n=2**53 eps0=1 delta=1e-9", lambda: StrongerClones(2**53, 1.0).epsilon(1e-9)))
    rows.append(row("clones log delta(3), n=1e6 eps0=4", lambda: StrongerClones(10**6, 4.0).log_delta(3.0)))
    return rows + deployments()


def clone_deployments(top, count=2000):
    """Return users up to 10**top, local budgets and deltas as deployments have them, the same at every call."""
    rng = np.random.default_rng(7)
    return np.floor(10 ** rng.uniform(1, top, count)), rng.uniform(0.1, 6, count), 10 ** -rng.uniform(5, 12, count)


def deployments():
    """Arrays of clone deployments, an answer; and how the time of one grows with the number of users."""
    rows = []
    for top in (4, 6, 8, 15):
        users, local_eps, delta = clone_deployments(top)
        rows.append(row(f"clones_epsilon of 2000 deployments, n to 1e{top}, each",
                        lambda a=(users, local_eps, delta): clones_epsilon(*a), show=None, per=users.size))
    seconds, sizes = [], (10**8, 10**10, 10**12, 10**14)
    for users in sizes:
        *_, taken, _, _ = row("", lambda u=users: StrongerClones(u, 1.0).epsilon(1e-9), show=None)
        seconds.append(taken)
    growth = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
    rows.append(("clones eps, growth exponent in n, 1e8 .. 1e14", f"{growth:.2f}", "", seconds[-1], None, "0.5 by a sweep"))
    return rows


def noise_laws(trials, width=40):
    """Return log P and log Q of Bin(trials, 1/2) and its shift by one on a window of +-width sigmas."""
    reach = math.ceil(width * math.sqrt(trials) / 2)
    k = np.arange(max(0, trials // 2 - reach), min(trials + 1, trials // 2 + reach) + 1)
    with np.errstate(all="ignore"):
        return scipy.stats.binom.logpmf(k, trials, 0.5), scipy.stats.binom.logpmf(k - 1, trials, 0.5)


def peer_calibrate(eps, delta):
    """Return the fewest trials by dp-accounting's delta and bisection."""

    def enough(trials):
        return two_laws(*noise_laws(trials), 1e-4).get_delta_for_epsilon(eps) <= delta

    low, high = 0, 1
    while not enough(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def noise():
    """BinomialNoise.delta and calibrate, against dp-accounting on a hand-written, windowed pmf."""
    rows = []
    peer = privacy_loss_distribution
    for trials in (10**2, 10**4, 10**6):

        def theirs(trials=trials):
            return two_laws(*noise_laws(trials), 1e-4).get_delta_for_epsilon(0.01)

        rows.append(
            row(
                f"noise delta(0.01), N={trials:.0e}",
                lambda t=trials: BinomialNoise(t, 0.5).delta(0.01),
                theirs if peer else None,
                "dp-accounting, grid 1e-4",
            )
        )
    rows.append(row("noise log delta(0.01), N=1e9", lambda: BinomialNoise(10**9, 0.5).log_delta(0.01)))
    for eps, delta in ((1.0, 1e-6), (0.1, 1e-8)):
        rows.append(
            row(
                f"noise calibrate(eps={eps:g}, delta={delta:g})",
                lambda e=eps, d=delta: BinomialNoise.calibrate(e, d).trials,
                (lambda e=eps, d=delta: peer_calibrate(e, d)) if peer else None,
                "dp-accounting, grid 1e-4, and bisection",
            )
        )
    return rows


def poisson_binomial():
    """Windows that leave e^-50 outside, against every probability of fast-poibin (absolute accuracy only)."""
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


def bits_pmfs(users, flip, width=40):
    """Return log P and log Q of the sum of flipped bits with the target at 0 and at 1, the others all 0."""
    mean, sigma = users * flip, math.sqrt(users * flip * (1 - flip))
    k = np.arange(max(0, math.floor(mean - width * sigma)), min(users, math.ceil(mean + width * sigma)) + 1)
    with np.errstate(all="ignore"):
        here, below = scipy.stats.binom.logpmf(k, users - 1, flip), scipy.stats.binom.logpmf(k - 1, users - 1, flip)
    keep, turn = math.log1p(-flip), math.log(flip)
    return np.logaddexp(here + keep, below + turn), np.logaddexp(here + turn, below + keep)


def bits():
    """ShuffledBits and the personalised bounds; known data against dp-accounting on a hand-written, windowed pmf."""
    rows = []
    for users, flip, delta in ((10**4, 1 / (math.e + 1), 1e-6), (10**6, 1 / (math.exp(4) + 1), 1e-8)):

        def theirs(users=users, flip=flip, delta=delta):
            return two_laws(*reversed(bits_pmfs(users, flip)), 1e-6).get_epsilon_for_delta(delta)

        rows.append(
            row(
                f"shuffled bits eps, n={users:.0e}, all zeros",
                lambda u=users, f=flip, d=delta: ShuffledBits(u, f, ones=0).epsilon(d),
                theirs if privacy_loss_distribution else None,
                "dp-accounting, grid 1e-6, windowed pmf",
            )
        )
    known, worst = ShuffledBits(10**9, 1e-7, ones=5), ShuffledBits(10**9, 1e-7)
    rows.append(row("shuffled bits delta(0.5), n=1e9, known data", lambda: known.delta(0.5)))
    rows.append(row("shuffled bits delta(0.5), n=1e9, worst data", lambda: worst.delta(0.5)))
    budgets = np.random.default_rng(12345).uniform(0.5, 2, 10**6)
    few, counts = np.linspace(0.5, 2, 100), np.full(100, 10**7)
    everyone = PersonalizedClones.laplace
    rows.append(row("laplace eps, 1e6 budgets, one user", lambda: everyone(budgets, target=5).epsilon(1e-8)))
    rows.append(row("laplace eps, 1e6 budgets, everyone", lambda: everyone(budgets).epsilon(1e-8)))
    rows.append(row("laplace eps, 1e9 users in 100 budgets", lambda: everyone(few, counts=counts).epsilon(1e-8)))
    data = np.zeros(budgets.size)
    rows.append(row("personal bits eps, 1e6, known", lambda: PersonalizedBits(budgets, bits=data, target=5).epsilon(1e-8)))
    return rows


def laws():
    """Poisson, negative binomial and hypergeometric tails (seconds an element), frozen sums of bits, against scipy.stats."""
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
        # scipy's hypergeometric tail is a sum in Python: fewer of them
        few = tuple(a[:20] for a in arguments) if name == "hypergeom" else arguments
        ours, theirs = getattr(tails, f"{name}_logsf"), getattr(scipy.stats, name).logsf

        def quiet(f=theirs, few=few):
            with np.errstate(all="ignore"):
                return f(*few)

        rows.append(row(f"{name}_logsf, {len(few[0])} near the mode", lambda f=ours, few=few: f(*few), quiet, "", "", len(few[0])))
    chances = np.linspace(0.01, 0.99, 3000)
    law, peer = tails.poisson_binom(chances), getattr(scipy.stats, "poisson_binom", None)
    k = math.ceil(law.mean() + 6 * law.std())
    theirs = (lambda: float(peer(chances).sf(k))) if peer else None
    rows.append(row("poisson_binom(3000 p).sf, 6 sigma", lambda: float(law.sf(k)), theirs, "", "{:.6g}"))
    rows.append(row("poisson_binom(3000 p).isf(1e-30)", lambda: law.isf(1e-30), None, "", "{:.6g}"))
    return rows


def random_laws(atoms):
    """Return log P and log Q of two laws in no order of their ratio."""
    laws = np.random.default_rng(12345).random((2, atoms))
    return np.log(laws / laws.sum(axis=1, keepdims=True))


def tradeoff():
    """Curves at 1001 levels: against riskcal, and against the lines of dp-accounting's delta; a million atoms."""
    rows = []
    alpha = np.linspace(0, 1, 1001)

    def peer_row(task, ours, theirs, note):
        # the largest error of the peer's curve, and how far it rises above the exact one
        error = theirs() - ours() if theirs else 0
        far = f": off by {np.abs(error).max():.1e}, above by {max(error.max(), 0):.1e}" if theirs else ""
        rows.append(row(task, ours, theirs, note + far, ""))

    users, flip = 1000, 0.25
    pmfs = bits_pmfs(users, flip)

    def exact():
        return Tradeoff.from_pmfs(*pmfs).symmetrized().beta(alpha)

    riskcal = get_beta_from_pld and privacy_loss_distribution
    for grid in (1e-4, 1e-5):
        theirs = (lambda g=grid: get_beta_from_pld(two_laws(*pmfs, g, symmetric=False), alpha)) if riskcal else None
        peer_row("curve of shuffled bits, n=1e3, all zeros", exact, theirs, f"riskcal on a dp-accounting PLD, grid {grid:g}")

    def lines():
        eps = np.linspace(0, 1, 1001)
        delta = np.maximum(two_laws(*pmfs, 1e-4, symmetric=False).get_delta_for_epsilon(eps), 0)
        return np.maximum(0, np.maximum(1 - delta[:, None] - np.exp(eps)[:, None] * alpha,
                                        np.exp(-eps)[:, None] * (1 - delta[:, None] - alpha)).max(axis=0))

    peer_row("the same", exact, lines if privacy_loss_distribution else None, "1001 lines of dp-accounting's delta")
    theirs = (lambda: get_beta_from_gdp(1.0, alpha)) if get_beta_from_gdp else None
    peer_row("Gaussian curve, mu=1", lambda: Tradeoff.gaussian(1.0).beta(alpha), theirs, "riskcal")
    log_p, log_q = random_laws(10**6)
    curve, eps = Tradeoff.from_pmfs(log_p, log_q), np.linspace(0, 3, 1000)
    rows.append(row("from_pmfs, 1e6 atoms", lambda: Tradeoff.from_pmfs(log_p, log_q), show=""))
    rows.append(row("beta at 1001 levels, 1e6 knots", lambda: curve.beta(alpha), show=""))
    rows.append(row("hull of 1e6 knots", lambda: Tradeoff.from_knots(*curve.knots).convex_hull(), show=""))
    rows.append(row("hockey stick, 1e6 atoms, 1000 eps", lambda: hockey_stick(log_p, log_q, eps), show=""))
    rows.append(row("gdp_mu, 1e6 knots", curve.gdp_mu))
    return rows


def compose():
    """Many releases of binomial noise: eps and both sides, against dp-accounting's composed grid."""
    rows = []
    for times in (10, 100, 1000):
        for delta, grid in ((1e-6, 1e-4), (1e-6, 1e-6), (1e-50, 1e-4)):

            def theirs(times=times, delta=delta, grid=grid):
                return two_laws(*noise_laws(10**4), grid).self_compose(times).get_epsilon_for_delta(delta)

            many = BinomialNoise(10**4, 0.5).self_compose(times)
            gap = 1 - many.epsilon(delta, bound="lower") / many.epsilon(delta)
            rows.append(
                row(
                    f"{times} x noise eps, N=1e4, delta={delta:g}",
                    # a new object, so that nothing is kept between calls
                    lambda t=times, d=delta: BinomialNoise(10**4, 0.5).self_compose(t).epsilon(d),
                    theirs if privacy_loss_distribution else None,
                    f"dp-accounting, grid {grid:g}; our lower side is {gap:.1e} below",
                )
            )
    for grid in (1e-4, 1e-5):

        def laplace(grid=grid):
            one = privacy_loss_distribution.from_laplace_mechanism(10.0, value_discretization_interval=grid)
            return one.self_compose(100).get_epsilon_for_delta(1e-6)

        many = LaplaceMechanism(10.0).self_compose(100)
        gap = 1 - many.epsilon(1e-6, bound="lower") / many.epsilon(1e-6)
        rows.append(
            row(
                "100 x Laplace eps, scale 10, delta=1e-6",
                lambda: LaplaceMechanism(10.0).self_compose(100).epsilon(1e-6),
                laplace if privacy_loss_distribution else None,
                f"dp-accounting, grid {grid:g}; our lower side is {gap:.1e} below",
            )
        )
    rows.append(row("100 x noise eps, N=1e9, delta=1e-6", lambda: BinomialNoise(10**9, 0.5).self_compose(100).epsilon(1e-6)))
    rows.append(row("100 x stronger clones, n=1e6 eps0=4", lambda: StrongerClones(10**6, 4.0).self_compose(100).epsilon(1e-6)))
    return rows


RECORDED = [
    (10**3, 1.0, 1e-6, ".148671 in 0.8 s", ".148995 in 16 s, 300 MB"),
    (10**4, 1.0, 1e-6, ".0432072 in 1.8 s", "not in 90 s"),
    (10**5, 2.0, 1e-8, ".0438919 in 2.9 s", "over 8 GB"),
    (10**6, 4.0, 1e-8, ".0452957 in 4.5 s", ""),
    (10**9, 8.0, 1e-12, "8 (vacuous)", ""),
]
"""(users, local_eps, delta), and what two programs gave on one core of another machine: variation ratio (Wang et al., VLDB
2024, their code) and the optimal blanket by FFT (Su, Cheng, Wang, S&P 2026, typed again with NumPy). Not measured in the run."""


def third_laws(users, bins, local_eps, tail=60.0):
    """Return log masses of the counts of the target's two values in k-ary response, all others at a third value."""
    base = 1 / (math.exp(local_eps) + bins - 1)
    reach = 2 * math.ceil(math.sqrt(tail * users * base)) + 40
    k = np.arange(max(0, int(users * base) - reach), int(users * base) + reach)
    laws = []
    count, first = np.meshgrid(np.arange(2 * k[0], 2 * k[-1]), k, indexing="ij")
    others = np.full((2, *count.shape), -np.inf)
    for i, shift in enumerate((1, 0)):
        # the target adds to the first count, or to the second
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
    """The blanket of binary response, the stronger clones' value, beside what two programs gave elsewhere, and dp-accounting."""
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


def randomizers():
    """Any randomizer shuffled: eps, the lower side and the bound for every randomizer of its budget; and a million messages."""
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


def sampled():
    """Subsampled and randomly allocated noise, as a training run uses them: eps, against dp-accounting and PLD_accounting."""
    rows = []
    for rate, steps in ((0.01, 1000), (0.004, 5000)):

        def theirs(rate=rate, steps=steps):
            one = privacy_loss_distribution.from_gaussian_mechanism(1.0, value_discretization_interval=1e-4, sampling_prob=rate)
            return one.self_compose(steps).get_epsilon_for_delta(1e-6)

        lower = GaussianMechanism(1.0).subsampled(rate).self_compose(steps).epsilon(1e-6, bound="lower")
        rows.append(row(f"Gaussian, sigma 1, Poisson batches of {rate:g}, {steps} steps: eps(1e-6)",
                        lambda q=rate, t=steps: GaussianMechanism(1.0).subsampled(q).self_compose(t).epsilon(1e-6),
                        theirs if privacy_loss_distribution else None, f"dp-accounting, grid 1e-4; our lower side {lower:.8g}"))
    for steps in (100, 10**4):
        theirs, note = None, ""
        # at 1000 steps it takes twenty times as long
        if gaussian_allocation_epsilon_range and steps == 100:

            def theirs(steps=steps):
                return gaussian_allocation_epsilon_range(delta=1e-6, sigma=1.0, num_steps=steps)[0]

            below = gaussian_allocation_epsilon_range(delta=1e-6, sigma=1.0, num_steps=steps)[1]
            note = f"PLD_accounting, both sides at its own accuracy, the lower one {below:.8g}; "
        lower = RandomAllocation(GaussianMechanism(1.0), steps).epsilon(1e-6, bound="lower")
        rows.append(row(f"Gaussian, sigma 1, one of {steps} steps allocated at random: eps(1e-6)",
                        lambda t=steps: RandomAllocation(GaussianMechanism(1.0), t).epsilon(1e-6),
                        theirs, f"{note}our lower side {lower:.8g}"))
    return rows


def frozen():
    """Frozen distributions against SciPy's: quantiles and tails of one law."""
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


SECTIONS = {
    "binomial": binomial,
    "clones": clones,
    "sampled": sampled,
    "frozen": frozen,
    "noise": noise,
    "laws": laws,
    "poisson-binomial": poisson_binomial,
    "bits": bits,
    "tradeoff": tradeoff,
    "compose": compose,
    "randomizers": randomizers,
    "arrays": arrays,
    "alone": alone,
}


def main(names):
    """Print the table of the named sections, or of all; with --record it is kept in results/ as well."""
    record = "--record" in names
    names = [n for n in names if n != "--record"]
    unknown = [n for n in names if n not in SECTIONS]
    if unknown:
        sys.exit(f"no section {unknown[0]!r}: choose from {', '.join(SECTIONS)}")
    rows = {name: SECTIONS[name]() for name in names or SECTIONS}
    print(table([r for section in rows.values() for r in section]))
    if record:
        keep("compare", {"rows": rows})


if __name__ == "__main__":
    main(sys.argv[1:])
