"""Each result that differs from the recorded one (corrected.json) is verified by another method.

Two releases are summed over all pairs of outcomes, ten by inverting a Laplace transform at its saddle point, an adaptive
composition of ten releases by a backward recursion on a grid. Bounds of Gaussian users are computed by the formula in the
documentation, with its rates, on a grid of truncation ranges. mu is the maximum over all breakpoints of the curves of all targets.
The Renyi divergence of shuffled bits is the largest one over all datasets, each by convolution.
"""

import math
from functools import cache

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp, ndtr, ndtri
from scipy.stats import binom

from shufflebounds.shuffle import BinomialNoise
from shufflebounds.tails import binom_logpmf
from tests.regression.questions import answer, key, recorded
from tests.regression.test_recorded import CORRECTED

ROWS = [row for row in recorded() if key(row) in CORRECTED]


def asked(path, ask):
    """Return the corrected rows of a class and a method."""
    return [row for row in ROWS if row["build"][0].endswith(path) and row["ask"] == ask]


def of(row):
    """Return a short id of a row for pytest."""
    return f"{row['build'][0]} {str(row['build'][1])[:40]}"


def noise_laws(trials, prob):
    """Return log P and log Q of two noisy counts whose exact counts differ by one."""
    law = binom.logpmf(np.arange(trials + 1), trials, prob)
    return np.append(law, -np.inf), np.append(-np.inf, law)


@cache
def outcomes(users):
    """Return all numbers c < users of clones, with the log probabilities of k and of k - 1 ones among them, k = 0 .. c + 1."""
    clones = np.concatenate([np.full(c + 2, c) for c in range(users)])
    ones = np.concatenate([np.arange(c + 2) for c in range(users)])
    return clones, binom.logpmf(ones, clones, 0.5), binom.logpmf(ones - 1, clones, 0.5)


def clone_laws(weights, flip):
    """Return log P and log Q of (clones, ones), given the probabilities of 0, 1, ... clones and the target's flip probability."""
    clones, stay, step = outcomes(len(weights))
    log_weights, turn, keep = np.log(np.maximum(weights, 1e-300)), math.log(flip), math.log1p(-flip)
    return [log_weights[clones] + np.logaddexp(x + stay, y + step) for x, y in ((turn, keep), (keep, turn))]


def uniform_clone_laws(users, local_eps, rate):
    """Return log P and log Q of a clone bound in which every other user is a clone with probability `rate`."""
    return clone_laws(binom.pmf(np.arange(users), users - 1, rate), 1 / (math.exp(local_eps) + 1))


def hockey_stick(log_p, log_q, eps):
    """Return the hockey-stick divergence of two distributions."""
    return float(np.maximum(np.exp(log_p) - math.exp(eps) * np.exp(log_q), 0).sum())


def twice(log_p, log_q, eps):
    """Return the divergence of two releases: for each outcome of the first, the tail of the second, from sorted losses."""
    kept = log_p > -np.inf
    log_p, log_q = log_p[kept], log_q[kept]
    order = np.argsort(log_p - log_q)
    p, q, loss = np.exp(log_p[order]), np.exp(log_q[order]), (log_p - log_q)[order]
    above_p, above_q = (np.append(np.cumsum(x[::-1])[::-1], 0.0) for x in (p, q))
    first = np.searchsorted(loss, eps - loss, side="right")
    return float((p * above_p[first] - math.exp(eps) * q * above_q[first]).sum())


def many(laws, eps, reach):
    r"""Return log delta of a product: (2 pi i)^-1 \int \prod_j (E e^{z L_j})^{k_j} e^{-z eps}/(z (z + 1)) dz.

    ``laws`` are triples log P, log Q, k, without outcomes of infinite loss. The integration line runs through the saddle point. Its
    step is such that aliases are 16 standard deviations apart. The line ends at `reach`. If the losses are almost equidistant, the
    integrand has secondary maxima, which decrease.
    """
    laws = [(log_p, log_p - log_q, k) for log_p, log_q, k in laws]

    def exponent(c):
        return sum(k * logsumexp(log_p + c * loss) for log_p, loss, k in laws) - c * eps

    c = math.exp(minimize_scalar(lambda x: exponent(math.exp(x)) - x - math.log1p(math.exp(x)), bounds=(-1, 8), method="bounded").x)
    tilted = [(np.exp(log_p + c * loss - logsumexp(log_p + c * loss)), loss, k) for log_p, loss, k in laws]
    spread = math.sqrt(sum(k * (mass @ loss**2 - (mass @ loss) ** 2) for mass, loss, k in tilted))
    z = c + 1j * np.arange(0, reach, 2 * math.pi / (16 * spread))
    transform = np.exp(-1j * z.imag * eps)
    for mass, loss, k in tilted:
        held = mass > 1e-17
        transform *= np.concatenate([np.exp(1j * np.outer(part, loss[held])) @ mass[held]
                                     for part in np.array_split(z.imag, 100)]) ** k
    terms = (transform / (z * (z + 1))).real
    terms[0] /= 2
    return exponent(c) + math.log((z[1] - z[0]).imag / math.pi * terms.sum())


def adaptive_strategy(log_p, log_q, times, eps, step):
    """Return delta if (P, Q) or (Q, P) is chosen for each release after the earlier outcomes.

    Delta is interpolated linearly in e^eps.
    """
    grid = np.arange(eps - 12, eps + 12, step)
    value = np.maximum(0.0, -np.expm1(grid))
    factor = np.exp(grid)
    for _ in range(times):
        ways = []
        for first, second in ((log_p, log_q), (log_q, log_p)):
            mass, way = np.exp(first), np.zeros_like(grid)
            for m, loss in zip(mass[mass > 1e-17], (first - second)[mass > 1e-17]):
                way += m * (np.interp(factor * math.exp(-loss), factor, value) if loss < math.inf else 1.0)
            ways.append(way)
        value = np.maximum(*ways)
    return float(np.interp(math.exp(eps), factor, value))


def gaussian_rates(target, others, reach):
    """Return the target's mass in the window, and for every other user i the smallest R_i/max(R_0, R_1) in the window.

    The window contains the outputs at a distance of at most `reach` from 1/2. R_0 and R_1 are the densities of the target's output
    for the values 0 and 1, and R_i that of user i, for the worse of the values 0 and 1. The minimum is at one of the extrema, or at
    an end or the middle of the window, which are among 51 evenly spaced points.
    """
    a, b = 1 / target**2, (1 / others**2)[:, None]
    logs = []
    for x in (0.0, 1.0):
        with np.errstate(divide="ignore", invalid="ignore"):
            stations = [np.nan_to_num((center * a - x * b) / (a - b), nan=0.5) for center in (0.0, 1.0)]
        y = np.hstack([np.clip(np.hstack(stations), 0.5 - reach, 0.5 + reach),
                       np.broadcast_to(np.linspace(0.5 - reach, 0.5 + reach, 51), (others.size, 51))])
        larger = np.maximum(-a * y * y, -a * (1 - y) ** 2) / 2
        logs.append((-b * (y - x) ** 2 / 2 - larger).min(axis=1) + 0.5 * np.log(b[:, 0] / a))
    return ndtr((reach - 0.5) / target) - ndtr(-(reach + 0.5) / target), np.exp(np.minimum(*logs))


def gaussian_bound(target, others, eps, reach):
    """Return the bound of delta for one window: the clone bound for the outputs in it, plus the local delta of those outside."""
    mass, least = gaussian_rates(target, others, reach)
    ratio = math.exp(reach / target**2)
    weights = np.ones(1)
    for rate in np.minimum(2 * mass * least * ratio / (ratio + 1), 1.0):
        weights = np.convolve(weights, [1 - rate, rate])
    log_p, log_q = clone_laws(weights, 1 / (ratio + 1))
    outside = ndtr((0.5 - reach) / target) - math.exp(eps) * ndtr((-0.5 - reach) / target)
    return mass * hockey_stick(log_q, log_p, eps) + max(0.0, outside)


def gaussian_delta(sigma, eps):
    """Return the maximum over targets of the smallest bound over windows, or the bound without shuffling if that is smaller."""
    def bound(i, reach):
        return gaussian_bound(sigma[i], np.delete(sigma, i), eps, reach)

    def alone(target):
        return ndtr(0.5 / target - eps * target) - math.exp(eps) * ndtr(-0.5 / target - eps * target)

    # From this reach on, the likelihood ratio in the window can exceed e^eps.
    least = eps * sigma**2 * (1 + 1e-9)
    once = [min(bound(i, least[i] + part * sigma[i]) for part in (0.0, 1.0, 2.0)) for i in range(len(sigma))]
    worst = 0.0
    for i in np.argsort(once)[::-1]:
        best = min(once[i], alone(sigma[i]))
        grid = iter(least[i] + sigma[i] * np.linspace(0.0, 8.0, 33))
        at = least[i]
        while best > worst and (reach := next(grid, None)) is not None:
            if (value := bound(i, reach)) <= best:
                best, at = value, reach
        if best > worst:
            ends = max(least[i], at - sigma[i] / 3), at + sigma[i] / 3
            worst = max(worst, min(best, minimize_scalar(lambda x, i=i: bound(i, x), bounds=ends, method="bounded").fun))
    return worst


def clone_mu(log_p, log_q):
    """Return the smallest mu of Gaussian differential privacy of a pair, from all breakpoints of its trade-off function."""
    order = np.argsort(log_q - log_p)
    alpha = np.cumsum(np.exp(log_p[order]))[:-1]
    above, power = np.cumsum(np.exp(log_p[order])[::-1])[::-1][1:], np.cumsum(np.exp(log_q[order]))[:-1]
    inside = (alpha > 1e-13) & (above > 1e-13) & (power > 0)
    return float((ndtri(alpha) - ndtri(power))[inside].max())


@pytest.mark.slow
@pytest.mark.parametrize(("trials", "eps"), [(139, 2.37), (525, 1.65)])
def test_ten_counts_of_rare_noise_by_adaptive_composition(trials, eps):
    lower, upper = (BinomialNoise(trials, 0.125).self_compose(10).delta(eps, bound=side) for side in ("lower", "upper"))
    coarse, fine = (adaptive_strategy(*noise_laws(trials, 0.125), 10, eps, step) for step in (4e-3, 2e-3))
    # The error of linear interpolation is proportional to the square of the step, so two steps are extrapolated.
    exact = fine - (coarse - fine) / 3
    assert lower <= exact <= upper * (1 + 1e-5)
    assert upper - lower <= 2e-3 * exact


@pytest.mark.slow
@pytest.mark.parametrize("row", asked("BinomialNoise", "self_compose.delta"), ids=of)
def test_ten_counts_of_fair_noise(row):
    # The losses are almost equidistant. Outcomes with infinite loss have probability e^-16600.
    times, eps = row["arguments"]
    trials = row["build"][1]["trials"]
    k = np.arange(1, trials + 1)
    log_p, log_q = binom_logpmf(k, trials, 0.5), binom_logpmf(k - 1, trials, 0.5)
    exact = many([(log_p, log_q, times)], eps, 1e5)
    many_releases = BinomialNoise(trials, 0.5).self_compose(times)
    lower, upper = (many_releases.log_delta(eps, bound=side) for side in ("lower", "upper"))
    assert lower <= exact <= upper
    assert math.log(row["lower"]) - 1e-6 <= exact <= math.log(row["upper"]) + 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("row", asked("Clones", "self_compose.delta"), ids=of)
def test_ten_clone_bounds(row):
    times, eps = row["arguments"]
    users, local_eps = row["build"][1].values()
    exact = math.exp(many([(*uniform_clone_laws(users, local_eps, math.exp(-local_eps)), times)], eps, 60.0))
    lower, upper = answer(row)
    assert lower <= exact <= upper
    assert row["lower"] <= exact <= row["upper"]


@pytest.mark.parametrize("row", asked("Clones", "self_compose.epsilon"), ids=of)
def test_two_clone_bounds(row):
    users, local_eps = row["build"][1].values()
    rate = 2 / (math.exp(local_eps) + 1) if "Stronger" in row["build"][0] else math.exp(-local_eps)
    laws = uniform_clone_laws(users, local_eps, rate)
    # Delta decreases in eps: at the lower bound of eps it is at least the target, and at the upper bound at most.
    for lower, upper in (answer(row), (row["lower"], row["upper"])):
        assert twice(*laws, lower) >= row["arguments"][1] >= twice(*laws, upper)


@pytest.mark.slow
@pytest.mark.parametrize("row", [row for ask in ("delta", "log_delta", "epsilon") for row in asked("gaussian", ask)], ids=of)
def test_gaussian_users(row):
    sigma, (asked_for,), (lower, upper) = np.array(row["build"][1]["sigma"]), row["arguments"], answer(row)
    if row["ask"] == "epsilon":
        log_exact, log_upper = math.log(gaussian_delta(sigma, upper)), math.log(asked_for)
    else:
        log_exact, log_upper = math.log(gaussian_delta(sigma, asked_for)), upper if row["ask"] == "log_delta" else math.log(upper)
    # Windows are chosen on a grid of masses, so the bound may be slightly above the smallest one.
    assert log_exact - 1e-9 <= log_upper <= log_exact + 2e-5
    assert lower <= upper


@pytest.mark.slow
@pytest.mark.parametrize("row", asked("randomized_response", "gdp_mu"), ids=of)
def test_mu_of_users_who_flip_bits(row):
    eps = np.array(row["build"][1]["eps"])
    rate, best = 2 / (np.exp(eps) + 1), 0.0
    for i, own in enumerate(eps):
        weights = np.ones(1)
        for chance in np.delete(rate, i):
            weights = np.convolve(weights, [1 - chance, chance])
        best = max(best, clone_mu(*clone_laws(weights, 1 / (math.exp(own) + 1))))
    lower, upper = answer(row)
    assert lower <= best <= upper * (1 + 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("row", asked("ShuffledBits", "rdp"), ids=of)
def test_divergence_of_shuffled_bits_over_all_datasets(row):
    users, flip, (order,) = row["build"][1]["users"], row["build"][1]["flip"], row["arguments"]
    worst, k = 0.0, np.arange(users + 1)
    for ones in range(users):
        others = np.convolve(binom.pmf(np.arange(ones + 1), ones, 1 - flip),
                             binom.pmf(np.arange(users - ones), users - 1 - ones, flip))
        zero, one = (np.convolve(others, [1 - p, p])[k] for p in (flip, 1 - flip))
        held = (zero > 1e-250) & (one > 1e-250)
        powers = [float((p[held] ** order * q[held] ** (1 - order)).sum()) for p, q in ((zero, one), (one, zero))]
        worst = max(worst, *(math.log(power) / (order - 1) for power in powers))
    lower, upper = answer(row)
    assert lower <= worst * (1 + 1e-9)
    assert worst <= upper * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("row", asked("ShuffledBits.calibrate", "calibrated"), ids=of)
def test_calibrated_bits_meet_delta_for_every_dataset_and_not_by_far(row):
    users, eps, delta = (row["build"][1][name] for name in ("users", "eps", "delta"))
    flip, worst, flips = answer(row)[0], 0.0, np.arange(80)
    for ones in range(users):
        # The sum of the other bits is `ones` minus the flipped ones plus the flipped zeros. More than 79 flips of either kind
        # have a probability below 1e-40.
        others = np.convolve(binom.pmf(flips, ones, flip)[::-1], binom.pmf(flips, users - 1 - ones, flip))
        zero, one = (np.convolve(others, [1 - p, p]) for p in (flip, 1 - flip))
        worst = max(worst, np.maximum(zero - math.exp(eps) * one, 0).sum())
    assert (1 - 1e-3) * delta <= worst <= delta


@pytest.mark.slow
@pytest.mark.parametrize("row", asked("gaussian", "rdp"), ids=of)
def test_renyi_divergence_of_gaussian_users_is_that_of_a_count(row):
    """The lower bound is at most the divergence of the best count: of the messages in any interval, for the least noisy target."""
    sigma, order = np.sort(row["build"][1]["sigma"]), row["arguments"][0]
    target, others = sigma[0], sigma[1:]
    ends = np.append(np.linspace(-2.0, 3.0, 101), np.inf)
    first, last = (ends[places] for places in np.triu_indices(ends.size, 1))
    counts = np.ones((1, first.size))
    for one in others:
        inside = ndtr(last / one) - ndtr(first / one)
        counts = np.vstack([counts * (1 - inside), np.zeros_like(inside)]) + np.vstack([np.zeros_like(inside), counts * inside])
    laws = []
    for value in (0.0, 1.0):
        inside = ndtr((last - value) / target) - ndtr((first - value) / target)
        laws.append(np.vstack([counts * (1 - inside), np.zeros_like(inside)])
                    + np.vstack([np.zeros_like(inside), counts * inside]))
    with np.errstate(divide="ignore", invalid="ignore"):
        log_p, log_q = np.log(laws)
        terms = [np.where(p > -np.inf, order * p + (1 - order) * q, -np.inf) for p, q in ((log_p, log_q), (log_q, log_p))]
    best = max(float(logsumexp(one, axis=0).max()) for one in terms) / (order - 1)
    lower, upper = answer(row)
    assert lower <= best <= upper
    assert lower > 0.9 * best


def test_every_corrected_result_is_verified():
    kinds = {(row["build"][0].rsplit(".", 1)[-1], row["ask"]) for row in ROWS}
    assert kinds == {
        ("BinomialNoise", "self_compose.delta"), ("Clones", "self_compose.delta"), ("Clones", "self_compose.epsilon"),
        ("StrongerClones", "self_compose.epsilon"), ("gaussian", "delta"), ("gaussian", "log_delta"), ("gaussian", "epsilon"),
        ("gaussian", "rdp"), ("randomized_response", "gdp_mu"), ("ShuffledBits", "rdp"), ("calibrate", "calibrated"),
    }
