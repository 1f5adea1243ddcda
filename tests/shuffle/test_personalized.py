"""PersonalizedClones against high-precision references, and against exact deltas by enumeration, which are at most its bounds."""

import json
import math
from fractions import Fraction
from itertools import product
from pathlib import Path

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import laplace

from shufflebounds import shuffle
from shufflebounds._core import _compound
from shufflebounds._engines.clones import clone_families
from shufflebounds._engines.clones import population as population_module
from shufflebounds._engines.clones.bins import BinnedLaw, BudgetBins
from shufflebounds._engines.clones.blanket_table import _Table, blanket_shares, log_blanket_table
from shufflebounds._engines.clones.kary_blanket import log_blanket_delta, log_rounded_blanket
from shufflebounds._engines.clones.law import CloneLaw
from shufflebounds.mechanisms import GaussianMechanism, KaryResponse
from shufflebounds.shuffle import PersonalizedBits, PersonalizedClones, Shuffled
from shufflebounds.tails import poisson_binom_window
from tests.strategies import thinned

REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "clones-and-personalised.json").read_text())


def budgets(params):
    """Return the budgets of the other users and of the target for a reference entry."""
    n, text = params["n"], params["family"]
    i = np.arange(n - 1)
    for mark, others, top in (
        ("mod 11", 0.5 + 0.15 * (7 * i % 11), 2.0),
        ("0.5+1.5*i", 0.5 + 1.5 * i / (n - 1), 2.0),
        ("0.05+0.95*i", 0.05 + 0.95 * i / (n - 1), 1.0),
        ("1+3*i", 1 + 3 * i / (n - 1), 4.0),
    ):
        if mark in text:
            return others, top
    raise KeyError(text)


def bound(entry):
    """Return the bound of a reference entry from its weight, rates and scale."""
    quantity, params = entry["quantity"], entry["params"]
    others, top = budgets(params)
    big, k = math.exp(top), params.get("k")
    scale = 1.0
    if "laplace" in quantity:
        rates = others / top * np.exp(top - others) / (big + 1)
    elif "krr_S1" in quantity:
        rates = (big + k - 1) / ((np.exp(others) + k - 1) * (big + 1))
    elif "krr_S2" in quantity:
        rates, scale = 1 / (np.exp(others) + k - 1), (big + 1) / (big + k - 1)
    else:
        rates = 1 / (np.exp(others) + 1)
    return PersonalizedClones(1 / (big + 1), rates, scale)


WANTED = ("delta_clone_hetero", "delta_krr_S", "eps_clone_hetero")
ENTRIES = [entry for entry in REFERENCE if entry["quantity"].startswith(WANTED)]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["id"].partition("/")[2])
def test_reference_values(entry):
    profile, value = bound(entry), float(entry["value"])
    if entry["quantity"].startswith("eps"):
        low, high = (profile.epsilon(entry["params"]["delta"], bound=side) for side in ("lower", "upper"))
    else:
        low, high = (profile.delta(entry["params"]["eps"], bound=side) for side in ("lower", "upper"))
    assert low == pytest.approx(value, rel=1e-11)
    assert high == pytest.approx(value, rel=1e-11)
    assert low <= value <= high


def test_all_reference_values_are_there():
    assert len(ENTRIES) == 23 + 17 + 6 + 6 + 4


# ------------------------------------------------------------------------------------------------- enumeration

_GROUPS = {}


def multisets(bins, n):
    """Return, for each cell of a table of bins**n sequences of messages, the index of its multiset."""
    if (bins, n) not in _GROUPS:
        cells = np.sort(np.array(list(product(range(bins), repeat=n))), axis=1)
        _GROUPS[bins, n] = np.unique(cells @ bins ** np.arange(n), return_inverse=True)[1]
    return _GROUPS[bins, n]


def shuffled(rows):
    """Return the distribution of the multiset of independent messages, from one row of probabilities for each user."""
    table = rows[0]
    for row in rows[1:]:
        table = np.multiply.outer(table, row).ravel()
    return np.bincount(multisets(len(rows[0]), len(rows)), weights=table)


def true_delta(first, second, others, eps):
    """Return the larger divergence of both orders, if the target's message has the distribution `first` or `second`."""
    p, q = shuffled([first, *others]), shuffled([second, *others])
    return max(np.maximum(p - math.exp(eps) * q, 0).sum(), np.maximum(q - math.exp(eps) * p, 0).sum())


def largest_ratio(cases):
    """Assert that no bound is below the exact value, and return the largest ratio of the two."""
    ratios = [0.0]
    for truth, claim in cases:
        assert truth <= claim * (1 + 1e-12) + 1e-16
        ratios.append(truth / claim if claim else 0)
    return max(ratios)


def response(eps, k, x):
    row = np.full(k, 1 / (math.exp(eps) + k - 1))
    row[x] *= math.exp(eps)
    return row


def laplace_row(eps, x, edges):
    cdf = np.where(edges < x, 0.5 * np.exp(eps * np.minimum(edges - x, 0)), 1 - 0.5 * np.exp(-eps * np.maximum(edges - x, 0)))
    return np.diff(np.concatenate([[0.0], cdf, [1.0]]))


def gaussian_row(sigma, x, edges):
    return np.diff(np.concatenate([[0.0], ndtr((edges - x) / sigma), [1.0]]))


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 3, 6])
def test_randomized_response_is_never_below_the_exact_value(k):
    rng = np.random.default_rng(k)

    def cases():
        for _ in range(200):
            n = int(rng.integers(1, 5 if k < 6 else 4))
            eps = rng.uniform(0.1, 3, n)
            target = int(rng.integers(n))
            at = rng.uniform(0, eps[target])
            rows = [response(e, k, int(x)) for e, x in zip(np.delete(eps, target), rng.integers(0, k, n - 1))]
            truth = true_delta(response(eps[target], k, 0), response(eps[target], k, 1), rows, at)
            yield truth, PersonalizedClones.randomized_response(eps, k, target=target).delta(at)

    assert largest_ratio(cases()) > 0.99


@pytest.mark.slow
def test_blanket_alone_is_never_below_the_exact_value():
    rng = np.random.default_rng(11)
    for _ in range(300):
        k = int(rng.integers(2, 6))
        n = int(rng.integers(1, 5))
        eps = rng.uniform(0.1, 3, n)
        at = rng.uniform(0, eps[0])
        rows = [response(e, k, int(x)) for e, x in zip(eps[1:], rng.integers(0, k, n - 1))]
        truth = true_delta(response(eps[0], k, 0), response(eps[0], k, 1), rows, at)
        lower, upper = log_blanket_delta(eps[1:], np.ones(n - 1), k, eps[0], at, -5.0)
        assert truth <= math.exp(upper) * (1 + 1e-12) + 1e-16
        assert upper - lower < 1e-9


@pytest.mark.parametrize(("n", "k", "eps0", "eps"), [
    (10**4, 10, 1.0, 0.02), (10**4, 10, 4.0, 0.38), (10**6, 3, 4.0, 0.0446),
    # For few users with budgets of at least 20, the blanket is computed by the table.
    (1000, 10**6, 30.0, 5.0), (20, 3, 22.0, 10.0), (100, 2, 400.0, 399.0), (3, 1000, 690.0, 6.9),
])
def test_blanket_with_equal_budgets_is_that_of_shuffled(n, k, eps0, eps):
    lower, upper = log_blanket_delta(np.array([eps0]), np.array([n - 1.0]), k, eps0, eps, -10.0)
    shuffled = Shuffled(KaryResponse(k, eps0), n).log_delta(eps)
    assert lower < shuffled + 1e-6
    assert shuffled < upper + 1e-6
    assert upper - lower < 1e-5


@pytest.mark.parametrize("seed", range(8))
def test_blanket_is_below_its_chernoff_bound_and_near_it(seed):
    r = np.random.default_rng(seed)
    others, k, top = r.uniform(0.05, 4.0, r.integers(1, 400)), int(r.integers(3, 60)), r.uniform(0.5, 4.0)
    eps, counts = r.uniform(0.0, 0.9) * top, np.ones(others.size)
    table = _Table(*blanket_shares(others, k), counts, k, top, eps)
    lower, upper = log_blanket_table(others, counts, k, top, eps, 0.0)
    assert lower <= upper <= lower + 1e-6
    # Chernoff's bound exceeds the expected positive part by a factor of about the standard deviation of the sum and its number of
    # messages, by which the part is divided.
    assert upper <= table.log_bound <= lower + 3 * math.log(10 + others.size)
    # A known bound changes the truncated mass and not the value; a bound that is enough ends the refinement.
    assert log_blanket_table(others, counts, k, top, eps, upper) == pytest.approx((lower, upper), abs=1e-8)
    rough = log_blanket_table(others, counts, k, top, eps, 0.0, enough=upper + 1.0)
    assert upper <= rough.upper <= upper + 1.0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_the_blanket_with_rounded_budgets_is_near_that_with_all_budgets(seed):
    r = np.random.default_rng(seed)
    others, k, top = np.sort(r.uniform(0.05, 3.0, 800)), int(r.integers(3, 60)), r.uniform(0.5, 4.0)
    eps, counts = r.uniform(0.02, 0.3) * top, r.integers(1, 3, 800).astype(float)
    lower, _ = log_blanket_table(others, counts, k, top, eps, 0.0)
    assert lower <= log_rounded_blanket(others, counts, k, top, eps) <= lower + 0.1 * (1 - lower)
    # Sixteen budgets are not rounded.
    few, sizes = others[::50], np.full(16, 20.0)
    lower, upper = log_blanket_delta(few, sizes, k, top, eps, 0.0)
    assert lower <= log_rounded_blanket(few, sizes, k, top, eps) <= upper + 1e-4 * (1 - upper)


@pytest.mark.slow
@pytest.mark.parametrize("target", [None, 0, 99_999])
def test_the_blanket_with_rounded_budgets_is_used_for_many_users(target):
    """The clone bounds alone are 40 % above the lower bound."""
    profile = PersonalizedClones.randomized_response(np.linspace(0.5, 2.0, 10**5), 10, target=target)
    assert profile.epsilon(1e-8, bound="lower") <= profile.epsilon(1e-8) <= 1.02 * profile.epsilon(1e-8, bound="lower")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gaussian", "laplace"])
def test_mu_of_every_user_is_at_least_that_of_single_users(name):
    scales = np.linspace(0.3, 1.2, 12)
    values = 1 / scales if name == "gaussian" else scales
    make = getattr(PersonalizedClones, name)
    lower, upper = make(values).gdp_mu(bound="lower"), make(values).gdp_mu()
    assert lower <= upper
    assert lower >= 0.995 * max(make(values, target=i).gdp_mu(bound="lower") for i in (0, 11))


def test_blanket_sum_against_exact_fractions():
    k, big, e, shares = 3, Fraction(5), Fraction(3, 2), [Fraction(3, 4), Fraction(3, 5), Fraction(1, 2)]
    budgets_ = np.log([float(k / g - k + 1) for g in shares])
    total = Fraction(0)
    for drawn in product([0, 1], repeat=3):
        weight = math.prod((g if d else 1 - g for g, d in zip(shares, drawn)), start=Fraction(1))
        m = 1 + sum(drawn)
        loss = [(big - e) * k, (1 - e * big) * k, (1 - e) * k]
        mean = sum((max(sum(loss[y] for y in ys), 0) for ys in product(range(3), repeat=m)), start=Fraction(0)) / k**m
        total += weight * mean / (m * (big + k - 1))
    lower, upper = log_blanket_delta(budgets_, np.ones(3), k, math.log(5), math.log(1.5), -3.0)
    assert math.exp(lower) * (1 - 1e-15) <= float(total) <= math.exp(upper) * (1 + 1e-15)
    assert upper - lower < 1e-9


def test_response_in_exact_fractions():
    # e^eps is a fraction, and so are all probabilities and delta.
    rng = np.random.default_rng(3)
    for _ in range(40):
        k, n = int(rng.integers(2, 4)), int(rng.integers(2, 4))
        ratios = [Fraction(int(a), 7) for a in rng.integers(8, 60, n)]
        data = [0, *rng.integers(0, k, n - 1).tolist()]
        at = Fraction(int(rng.integers(7, 1 + int(7 * ratios[0]))), 7)
        laws = [{}, {}]
        for swap in (0, 1):
            inputs = [swap, *data[1:]]
            for messages in product(range(k), repeat=n):
                weight = math.prod(
                    ((big if z == x else 1) / (big + k - 1) for big, x, z in zip(ratios, inputs, messages)), start=Fraction(1)
                )
                key = tuple(sorted(messages))
                laws[swap][key] = laws[swap].get(key, 0) + weight
        truth = sum(max(p - at * laws[1][key], 0) for key, p in laws[0].items())
        claim = PersonalizedClones.randomized_response([math.log(r) for r in ratios], k, target=0).delta(math.log(at))
        assert truth <= Fraction(claim) * (1 + Fraction(1, 10**12)) + Fraction(1, 10**15)


@pytest.mark.slow
def test_laplace_is_never_below_the_exact_value():
    rng = np.random.default_rng(1)
    edges = np.array([-2.0, -0.5, 0.0, 0.3, 0.5, 0.7, 1.0, 1.5, 3.0])

    def cases():
        for _ in range(400):
            n = int(rng.integers(1, 5))
            eps = rng.uniform(0.1, 3, n)
            cut = edges if n < 4 else edges[1:-1]
            target = int(rng.integers(n))
            at = rng.uniform(0, eps[target])
            rows = [laplace_row(e, x, cut) for e, x in zip(np.delete(eps, target), rng.integers(0, 2, n - 1))]
            truth = true_delta(laplace_row(eps[target], 0, cut), laplace_row(eps[target], 1, cut), rows, at)
            yield truth, PersonalizedClones.laplace(eps, target=target).delta(at)

    assert largest_ratio(cases()) > 0.9


@pytest.mark.slow
def test_gaussian_is_never_below_the_exact_value():
    rng = np.random.default_rng(2)
    for _ in range(200):
        n = int(rng.integers(1, 5))
        sigma = rng.uniform(0.5, 4, n)
        target = int(rng.integers(n))
        at = rng.uniform(0, 1.5)
        cut = 0.5 + sigma[target] * np.array([-3, -1.5, -0.7, 0, 0.7, 1.5, 3]) * rng.uniform(0.7, 1.3)
        rows = [gaussian_row(s, x, cut) for s, x in zip(np.delete(sigma, target), rng.integers(0, 2, n - 1))]
        truth = true_delta(gaussian_row(sigma[target], 0, cut), gaussian_row(sigma[target], 1, cut), rows, at)
        assert truth <= PersonalizedClones.gaussian(sigma, target=target).delta(at) * (1 + 1e-12) + 1e-16


@pytest.mark.parametrize("eps", thinned([1e3, 1e5, 6e7, 1e12, 1e20], 3))
def test_gaussian_noise_at_very_large_eps(eps):
    """Far beyond every window only the local guarantee is left. A rounding error made the search at 6e7 endless."""
    protocol = PersonalizedClones.gaussian(1 / np.linspace(0.5, 2.0, 2000))
    lower, upper = protocol.log_delta(eps, bound="lower"), protocol.log_delta(eps)
    with mpmath.workdps(120):
        first, second = (mpmath.ncdf(side - mpmath.mpf(eps) / 2) for side in (1, -1))
        exact = mpmath.log(first - mpmath.exp(eps) * second) if eps < 1e12 else -((mpmath.mpf(eps) / 2) ** 2) / 2
    assert lower <= upper
    assert upper == pytest.approx(float(exact), rel=1e-11)
    if eps < 1e12:
        assert lower <= exact <= upper


@pytest.mark.slow
@pytest.mark.parametrize("target", [0, None])
def test_divergences_of_gaussian_noise_are_at_most_those_of_one_message(target):
    orders = [1.0, 2.0, 8.0, 64.0]
    protocol = PersonalizedClones.gaussian(1 / np.linspace(2.0, 0.5, 30), target=target)
    lower, upper = protocol.rdp(orders, bound="lower"), protocol.rdp(orders)
    assert np.all(lower > 0)
    assert np.all(lower <= upper)
    assert np.all(upper <= 2 * np.array(orders) * (1 + 1e-12))
    assert upper[0] < 1
    # The best test that some message is above a threshold has mu = .5738.
    assert 0.57 < protocol.gdp_mu(bound="lower") <= protocol.gdp_mu() <= 2 * (1 + 1e-14)


@pytest.mark.parametrize("seed", range(4))
def test_eps_of_gaussian_noise_at_small_delta_is_at_most_that_of_one_message(seed):
    """The curve at which the search starts has the guarantee of one message, too: eps was once 24.6 in place of 14.3."""
    sigma = np.random.default_rng(seed).uniform(0.5, 3.0, 60)
    sigma[:2] = 0.5
    alone = GaussianMechanism(0.5)
    for profile in (PersonalizedClones.gaussian(sigma), PersonalizedClones.gaussian(sigma, target=0)):
        for delta in (1e-6, 1e-10, 1e-30):
            assert profile.epsilon(delta) <= alone.epsilon(delta) * (1 + 1e-6)


def test_one_gaussian_user_has_the_local_profile():
    for sigma, at in ((0.5, 0.3), (3.4112, 0.2341), (10.0, 0.0)):
        truth = ndtr(0.5 / sigma - at * sigma) - math.exp(at) * ndtr(-0.5 / sigma - at * sigma)
        claim = PersonalizedClones.gaussian([sigma], target=0).delta(at)
        assert truth * (1 - 1e-12) <= claim <= truth * (1 + 1e-9)


def clone_side(p, rates, factor):
    """Return the hockey-stick divergence at e^eps = factor of the clone pair of weight 1/(p + 1), by enumeration."""
    total = 0.0
    for clones in product((0, 1), repeat=len(rates)):
        chance = math.prod(2 * r if c else 1 - 2 * r for c, r in zip(clones, rates))
        c = sum(clones)
        laws = [[sum(math.comb(c, k - one) / 2**c * q for one, q in ((0, w), (1, 1 - w)) if 0 <= k - one <= c)
                 for k in range(c + 2)] for w in (1 / (p + 1), p / (p + 1))]
        total += chance * sum(max(0.0, x - factor * y) for x, y in zip(*laws))
    return total


@pytest.mark.parametrize("seed", range(12))
def test_rates_from_the_larger_of_two_densities_over_all_datasets(seed):
    # The users have different randomizers, each of which is at least c_i max(R_0, R_1) for every input.
    rng = np.random.default_rng(seed)
    first, second = rng.dirichlet(np.ones(3), 2) * 0.8 + 0.2 / 3
    p = float(max((first / second).max(), (second / first).max()))
    others = [rng.dirichlet(np.ones(3), 2) * 0.9 + 0.1 / 3 for _ in range(3)]
    rates = [min(0.5, float((rows / np.maximum(first, second)).min()) * p / (p + 1)) for rows in others]
    assert all(r >= min(0.5, float((rows / (first + second)).min())) * (1 - 1e-12) for r, rows in zip(rates, others))
    for factor in (1.0, 1 + 0.3 * (p - 1), 1 + 0.8 * (p - 1)):
        bound = PersonalizedClones(1 / (p + 1), rates).delta(math.log(factor))
        assert bound == pytest.approx(clone_side(p, rates, factor), rel=1e-9, abs=1e-14)
        for inputs in product((0, 1), repeat=3):
            rows = [other[x] for other, x in zip(others, inputs)]
            assert true_delta(first, second, rows, math.log(factor)) <= bound * (1 + 1e-11) + 1e-15


# --------------------------------------------------------------------------- guarantees for every user (target=None)

BUILDERS = {
    "rr2": PersonalizedBits,
    "rr4": lambda eps, **more: PersonalizedClones.randomized_response(eps, 4, **more),
    "laplace": PersonalizedClones.laplace,
    "gaussian": lambda eps, **more: PersonalizedClones.gaussian(2 / np.asarray(eps), **more),
}


def clone_bound(profile):
    """Return the profile of the clone bound alone, if the guarantee has other bounds, too."""
    return profile if isinstance(profile, Shuffled) else profile.closed_forms().sides[True]


@pytest.mark.slow
@pytest.mark.parametrize("name", BUILDERS)
@pytest.mark.parametrize("users", [2, 9])
def test_every_user_is_the_maximum_over_targets(name, users):
    def build(eps, **more):
        return clone_bound(BUILDERS[name](eps, **more))

    eps = np.random.default_rng(users).uniform(0.2, 2, users)
    all_users = build(eps)
    for at in (0.0, 0.3):
        most = max(build(eps, target=j).log_delta(at) for j in range(users))
        assert most - 1e-9 <= all_users.log_delta(at) <= most + 2e-3 * max(1, -most / 20)
        assert all_users.log_delta(at, bound="lower") <= most + 1e-9
    worst = max(build(eps, target=j).epsilon(1e-4) for j in range(users))
    assert all_users.epsilon(1e-4) >= worst * (1 - 1e-9)
    assert all_users.delta(all_users.epsilon(1e-4)) <= 1e-4
    assert all_users.epsilon(1e-4) <= worst * (1 + 1e-2)


@pytest.mark.slow
@pytest.mark.parametrize("name", BUILDERS)
def test_bounds_with_bins_are_upper_bounds(name):
    # For more than 1024 distinct budgets, the search over targets rounds rates down; the guarantee of a single user does not.
    build = BUILDERS[name]
    eps = np.random.default_rng(0).uniform(0.5, 2, 3000)
    all_users = build(eps)
    high = all_users.log_delta(0.1)
    assert all_users.log_delta(0.1, bound="lower") <= high
    for j in np.random.default_rng(1).integers(0, 3000, 8):
        assert build(eps, target=int(j)).log_delta(0.1, bound="lower") <= high


@pytest.mark.parametrize("name", BUILDERS)
@pytest.mark.parametrize("bins", [8, 64])
def test_bounds_with_bins_and_without_overlap(name, bins, monkeypatch):
    monkeypatch.setattr(population_module, "BINS", (bins,))
    rng = np.random.default_rng(bins)
    for eps in (rng.uniform(0.2, 2, 400), np.append(rng.exponential(1.0, 400) + 1e-3, 20.0)):
        population = clone_bound(BUILDERS[name](eps, counts=rng.integers(1, 9, eps.size))).forms.population
        assert population.exact == 1
        for at in (0.02, 0.3):
            for i in [0, eps.size - 1, *rng.integers(0, eps.size, 3).tolist()]:
                kinds = [(kind, 0.0) for kind in population.family.kinds]
                kinds += [("window", mass) for mass in (-5.0, -20.0) if population.family.windowed]
                for kind, mass in kinds:
                    exact, binned = population.value(kind, at, 1, i, i, mass), population.value(kind, at, 0, i, i, mass)
                    assert binned[0] <= exact[1]
                    assert binned[1] >= exact[0]
                    # The error of the bins is proportional to the square of their width.
                    if bins == 64 and kind != "window" and eps.max() < 3 and exact[1] > -math.inf:
                        assert binned[1] - exact[1] <= 0.2 * max(1, -exact[1] / 20)


@pytest.mark.parametrize(("users", "width"), [(30, 0.3), (400, 0.1), (5000, 0.02)])
def test_the_error_of_a_common_rate_is_bounded(users, width):
    rng = np.random.default_rng(users)
    for _ in range(4):
        bins = 5
        least = rng.uniform(0, 0.5 - width / 2, bins)
        own = [np.clip(low + width / 2 * rng.beta(0.3, 0.3, users // bins), 0, 0.5) for low in least]
        held = np.full(bins, users // bins, dtype=float)
        law = BinnedLaw.of(np.array([r.mean() for r in own]), least, least + width / 2, held)
        exact = CloneLaw(np.concatenate(own), np.ones(users // bins * bins))
        for eps in (0.05, 0.4):
            u = math.tanh(eps / 2) / math.tanh(1.0)
            (low, high), (lower, upper) = exact.log_sum(u, 1 - u), law.log_sum(u, 1 - u)
            assert lower <= low
            assert high <= upper
            plain, middle = law._simple_error, CloneLaw(law.rates, law.counts).log_sum(u, 1 - u)
            errors = [plain, law._tilted_error(*law._decay(u, 1 - u), middle[0])]
            assert max(abs(middle[0] - high), abs(middle[1] - low)) <= min(errors) + 1e-11
            assert upper - lower <= 2 * plain + 1e-9
        assert law.log_alone <= exact.log_alone


def test_the_error_of_a_common_rate_is_small_for_many_users():
    # With many expected clones, the second differences of the terms of the clone sum are small (module docstring of
    # clones/bins.py). So the error of replacing all rates of a bin by their mean is far below the first bound given there, which
    # is proportional to the sum of squared distances of the probabilities from their mean.
    least, held = np.linspace(0.2, 0.44, 5), np.full(5, 1000.0)
    law = BinnedLaw.of(least + 0.005, least, least + 0.01, held)
    u = math.tanh(0.05 / 2) / math.tanh(1.0)
    (lower, upper), (low, high) = law.log_sum(u, 1 - u), CloneLaw(law.rates, law.counts).log_sum(u, 1 - u)
    assert law._simple_error > 2
    assert 0 < max(low - lower, upper - high) < 0.01


@pytest.mark.slow
@pytest.mark.parametrize("name", BUILDERS)
def test_interval_bounds_are_above_every_target_in_them(name, monkeypatch):
    # With few bins, the rounding of rates, the removal of the target and blocks of targets all have large effects.
    monkeypatch.setattr(population_module, "BINS", (4, 9))
    monkeypatch.setattr(population_module, "COMPARED", 3)
    rng = np.random.default_rng(8)
    for _ in range(12):
        users = int(rng.integers(13, 40))
        eps, counts = np.sort(rng.uniform(0.2, 2, users)), rng.integers(1, 5, users)
        population = clone_bound(BUILDERS[name](eps, counts=counts)).forms.population
        at = rng.uniform(0, 0.6)
        truth = [population.single(at, i)[1] for i in range(users)]
        for _ in range(6):
            i, j = sorted(rng.integers(0, users, 2).tolist())
            for level in range(population.exact + 1):
                # The window of a single target differs from that of a block, so only the other decompositions can be compared
                # directly.
                bound, _ = population._bound(at, level, i, j, -8.0, -math.inf)
                for k in population.family.kinds:
                    most = max(population.value(k, at, population.exact, t, t)[0] for t in range(i, j + 1))
                    assert population.value(k, at, level, i, j)[1] >= most
                if population.family.windowed:
                    for mass in (-3.0, -8.0, -20.0):
                        reach = population._terms("window", at, i, j, mass).reach
                        some = population.budgets[i : j + 1]
                        least = [population.family.window_rates(reach, b, b, population.budgets) for b in some]
                        rates = population.family.window_rates(reach, float(some[0]), float(some[-1]), population.budgets)
                        assert (rates <= np.min(least, axis=0) * (1 + 1e-12)).all()
                assert bound <= 0
        lower, upper, best = population.every(at, users - 1)
        # The search may find better windows for blocks than an estimate with three bins finds for a single target.
        assert upper >= max(truth) - (0.11 if name == "laplace" else 1e-9) * max(1, -max(truth) / 20)
        assert lower <= max(truth) + 1e-9
        assert upper <= max(truth) + 5e-3 * max(1, -max(truth) / 20)
        assert 0 <= best < users


@pytest.mark.parametrize(("low", "high", "reach"), [(0.4, 0.4, 0.3), (0.5, 0.9, 2.0), (1.5, 1.5, 8.0)])
def test_rates_of_laplace_noise_in_a_window(low, high, reach):
    """The rate of a user in the window [-T, 1 + T] is at most kappa c p/(p + 1), for target budgets in [low, high].

    kappa is the mass of the window under the target's noise. c is the smallest value in the window of R_i/max(R_0, R_1), where R_i
    is the density of the user, whose value is 1, and R_0, R_1 are those of the target's values 0 and 1. p = e^(target's budget).
    """
    budgets = np.array([0.2, 0.4, 0.5, 0.9, 1.4, 2.0])
    # The smallest ratio is at an end of the window or at an input value.
    z = np.array([-reach, 0.0, 1.0, 1 + reach])
    exact = []
    for target in np.linspace(low, high, 5):
        noise = laplace(scale=1 / target)
        kappa = noise.cdf(1 + reach) - noise.cdf(-reach)
        larger = np.maximum(noise.pdf(z), noise.pdf(z - 1))
        ratio = np.array([(laplace(loc=1, scale=1 / b).pdf(z) / larger).min() for b in budgets])
        exact.append(kappa * ratio / (1 + math.exp(-target)))
    rates = clone_families.LaplaceFamily().window_rates(reach, low, high, budgets)
    assert (rates <= np.min(exact, axis=0)).all()
    if low == high:
        assert rates == pytest.approx(np.min(exact, axis=0), rel=1e-9)


@pytest.mark.parametrize(("low", "high", "reach"), [(0.05, 0.05, 2.0), (0.1, 0.1, 20.0), (0.6, 0.8, 5.0), (3.0, 3.0, 4.0)])
def test_rates_of_gaussian_noise_in_a_window(low, high, reach):
    """The same bound as for Laplace noise, with p = e^(T/sigma^2) for the target's sigma, in 50 digits.

    The budgets are 1/sigma. The smallest rates are about e^-600.
    """
    budgets = np.linspace(0.01, 35.0 / (reach + 0.5), 50)
    with mpmath.workdps(50):
        exact = []
        for target in map(mpmath.mpf, sorted({low, (low + high) / 2, high})):
            kappa = mpmath.ncdf((reach + 0.5) * target) - mpmath.ncdf(-(reach - 0.5) * target)
            odds = 1 / (1 + mpmath.exp(-reach * target**2))
            row = []
            for b in map(mpmath.mpf, budgets):
                # The logarithm of the ratio of the densities at the output 1/2 - t is smallest at an end or where its slope is 0.
                inside = (target**2 + b**2) / (2 * (target**2 - b**2)) if target > b else -1
                places = [0, mpmath.mpf(reach)] + ([inside] if 0 < inside < reach else [])
                least = min((target * (t - 0.5)) ** 2 / 2 - (b * (t + 0.5)) ** 2 / 2 for t in places)
                row.append(kappa * odds * b / target * mpmath.exp(least))
            exact.append(row)
        exact = [min(column) for column in zip(*exact)]
        rates = clone_families.GaussianFamily().window_rates(reach, low, high, budgets)
        assert all(rate <= value for rate, value in zip(rates, exact))
        if low == high:
            assert all(abs(rate / value - 1) < 1e-9 for rate, value in zip(rates, exact))


@pytest.mark.parametrize("seed", range(6))
def test_clone_sum_is_that_over_the_table_of_the_number_of_clones(seed):
    rng = np.random.default_rng(seed)
    rates = np.minimum(0.5, 10 ** rng.uniform(-4, -0.2, 60)) if seed % 2 else rng.uniform(0, 0.5, 400)
    counts = np.floor(10 ** rng.uniform(0, 2, rates.size))
    first, log_weights = poisson_binom_window(2 * rates, counts.astype(int), log_tail=-700.0)
    for v in (1.0, 0.9, 0.5, 0.1, 1e-3, 1e-12, 1e-100):
        exact, error = _compound.log_weighted_excess(float(first), log_weights, 1 - v, v)
        lower, upper = CloneLaw(rates, counts).log_sum(1 - v, v)
        assert lower <= exact + error + 1e-12 * abs(exact)
        assert upper >= exact - error - 1e-12 * abs(exact)
        assert upper - lower < 2e-12 * (10 + abs(exact))


def test_largest_budget_is_not_the_worst_with_laplace_noise():
    eps = np.linspace(0.5, 2, 10000)
    assert PersonalizedClones.laplace(eps, target=0).delta(0.1) > 5 * PersonalizedClones.laplace(eps, target=9999).delta(0.1)


# ---------------------------------------------------------------------------------------------- other properties


def test_monotone_in_rates():
    rng = np.random.default_rng(6)
    rates = rng.uniform(0, 0.5, 30)
    before = 0.0
    for shrink in (1.0, 0.9, 0.5, 0.1, 0.0):
        value = PersonalizedClones(0.1, shrink * rates).delta(0.2)
        assert value >= before * (1 - 1e-12)
        before = value
    assert before == pytest.approx(0.9 - 0.1 * math.exp(0.2), rel=1e-12)


def test_equal_rates_are_the_stronger_clones():
    ours = PersonalizedClones(1 / (math.exp(1.5) + 1), [1 / (math.exp(1.5) + 1)], counts=[9999])
    for eps in (0.0, 0.05, 0.5, 1.4):
        assert ours.log_delta(eps) == pytest.approx(shuffle.StrongerClones(10000, 1.5).log_delta(eps), rel=1e-11, abs=1e-11)


def test_scale_counts_and_equality():
    one = PersonalizedClones(0.2, [0.1, 0.3, 0.1], 0.5)
    assert one == PersonalizedClones(0.2, [0.3, 0.1], 0.5, [1, 2])
    assert hash(one) == hash(PersonalizedClones(0.2, [0.3, 0.1], 0.5, [1, 2]))
    assert one.delta(0.1) == pytest.approx(0.5 * PersonalizedClones(0.2, [0.1, 0.3, 0.1]).delta(0.1), rel=1e-12)
    assert "3 users" in repr(one)
    assert PersonalizedClones.laplace([1, 2, 2]) == PersonalizedClones.laplace([2, 1], counts=[2, 1])
    assert PersonalizedClones.laplace([1, 2, 2]) != PersonalizedClones.laplace([1, 2, 2], target=0)
    assert PersonalizedClones.laplace([1, 2, 2], target=1).users == 3


def test_pure_epsilon():
    assert PersonalizedClones.laplace([1.0, 2.0], target=0).epsilon(0) == 1.0
    assert PersonalizedClones.laplace([1.0, 2.0]).epsilon(0) == 2.0
    assert PersonalizedClones.gaussian([1.0]).epsilon(0) == math.inf
    assert PersonalizedClones(0.25, [0.1]).epsilon(0) == pytest.approx(math.log(3))
    assert PersonalizedClones.randomized_response([1.0, 2.0], 5).delta(2.0) == 0


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: PersonalizedClones(0.5, [0.1]), "weight"),
        (lambda: PersonalizedClones(0.0, [0.1]), "weight"),
        (lambda: PersonalizedClones(math.nan, [0.1]), "weight"),
        (lambda: PersonalizedClones(0.1, [0.6]), "rates"),
        (lambda: PersonalizedClones(0.1, []), "rates"),
        (lambda: PersonalizedClones(0.1, [[0.1]]), "rates"),
        (lambda: PersonalizedClones(0.1, [0.1], 1.1), "scale"),
        (lambda: PersonalizedClones(0.1, [0.1], counts=[1, 2]), "counts"),
        (lambda: PersonalizedClones(0.1, [0.1], counts=[1.5]), "counts"),
        (lambda: PersonalizedClones(0.1, [0.1, 0.2], counts=[2**53, 2**53]), "counts"),
        (lambda: PersonalizedClones.laplace([1, -1]), "eps"),
        (lambda: PersonalizedClones.laplace([1, math.nan]), "eps"),
        (lambda: PersonalizedClones.laplace(1.0), "eps"),
        (lambda: PersonalizedClones.laplace([]), "eps"),
        (lambda: PersonalizedClones.laplace([1, 2], target=2), "target"),
        (lambda: PersonalizedClones.laplace([1, 2], counts=[0, 1]), "counts"),
        (lambda: PersonalizedClones.gaussian([0.001]), "sigma"),
        (lambda: PersonalizedClones.randomized_response([1, 2], 1), "categories"),
    ],
)
def test_bad_input(call, word):
    with pytest.raises(ValueError, match=rf"^{word}"):
        call()


def test_no_bound_for_arbitrary_families():
    assert not hasattr(PersonalizedClones, "generic")


def test_delta_is_zero_for_eps_above_every_budget():
    assert PersonalizedClones.laplace([1.0, 2.0, 3.0]).delta(1e5) == 0.0


@pytest.mark.slow
def test_compositions_do_not_depend_on_earlier_calls(monkeypatch):
    # With bins, results at one eps are reused at other eps.
    monkeypatch.setattr(population_module, "BINS", (16,))

    def twice():
        return PersonalizedClones.randomized_response(np.linspace(0.5, 3, 60), 2).self_compose(2)

    asked = twice()
    assert asked.log_delta(2.0) < asked.log_delta(0.5)
    assert asked.log_delta(0.7) == twice().log_delta(0.7)


@pytest.mark.slow
def test_window_of_the_smallest_budget_among_many_users():
    # Only users with similar budgets send clones of this target's message. For bins of equal width, the error of the bins once
    # decided which windows were chosen.
    sigmas = 1 / np.random.default_rng(1).uniform(0.1, 4, 10**5)
    one = PersonalizedClones.gaussian(sigmas, target=int(np.argmax(sigmas)))
    eps = one.epsilon(1e-8)
    population = one.population
    tails = np.arange(16, 24, 0.5).tolist()
    masses = [population.value("window", eps, population.exact, 0, 0, -mass, both=False)[1] for mass in tails]
    assert min(masses) > math.log(1e-8) - 0.05


@pytest.mark.slow
def test_every_user_of_widely_spread_budgets():
    # The search once took minutes, because blocks within one bin were divided.
    every = PersonalizedClones.gaussian(1 / np.random.default_rng(1).uniform(0.1, 4, 6000))
    eps = every.epsilon(1e-8)
    low, high = clone_bound(every).epsilon(1e-8, bound="lower"), every.log_delta(eps)
    assert low <= eps <= 1.001 * low
    assert every.epsilon(1e-8, bound="lower") < eps
    assert math.log(1e-8) - 0.01 <= high <= math.log(1e-8)


def test_bins_of_tiny_and_huge_budgets():
    budgets = np.array([5e-324, 1e-300, 1.0, 1e300])
    for windowed in (False, True):
        with np.errstate(all="raise", under="ignore", over="ignore"):
            (bins,) = BudgetBins.of(budgets, np.ones(4), [8], windowed=windowed)
        assert bins.starts[0] == 0
        assert bins.counts.sum() == 4


@pytest.mark.slow
def test_the_guarantee_of_one_user_is_at_most_that_of_all():
    # The table of the privacy blanket is too large for the target's own budget, but not for the largest budget.
    rng = np.random.default_rng(0)
    budgets, counts = np.sort(rng.uniform(0.1, 2, 1500)), np.ones(1500, dtype=int)
    np.add.at(counts, rng.integers(0, 1500, 2294), 1)
    all_users = PersonalizedClones.randomized_response(budgets, 5, counts=counts).log_delta(0.2563)
    for target in (1225, 1275):
        one = PersonalizedClones.randomized_response(budgets, 5, counts=counts, target=target).log_delta(0.2563)
        # The bounds over all users have a gap of 1e-3 times log delta / 20.
        assert one < all_users + 1e-3 * -all_users / 20


@pytest.mark.parametrize("users", [30, 5000, 10**7])
@pytest.mark.parametrize("rate", [1e-9, 0.01, 0.3, 0.5])
def test_one_rate_by_the_kernel_and_by_a_table(users, rate):
    # Two groups of different rates are summed from a table, one group by a kernel.
    rates, halves = [rate, math.nextafter(rate, 0)], [users // 2, users - users // 2]
    one, two = PersonalizedClones(0.11, [rate], counts=[users]), PersonalizedClones(0.11, rates, counts=halves)
    for eps in (0.0, 1e-3, 0.05, 0.7, 2.0, math.log(0.89 / 0.11) * (1 - 1e-6)):
        (low, high), (least, most) = ([each.log_delta(eps, bound=side) for side in ("lower", "upper")] for each in (one, two))
        assert low <= most
        assert least <= high
        assert high - low <= 1e-9 * (1 - high)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_eps_is_close_to_the_point_where_the_upper_bound_meets_delta(seed):
    """For 231 budgets up to 4 and 50 categories eps at 5e-13 was once the largest budget, 3.98, in place of 1.92."""
    rng = np.random.default_rng(seed)
    budgets = rng.uniform(0.01, 4, 231)
    for profile, delta in ((PersonalizedClones.randomized_response(budgets, 50), 5e-13),
                           (PersonalizedClones.randomized_response(2.5 * budgets, 5), 1.7e-27),
                           (PersonalizedClones.laplace(budgets, target=3), 1e-9), (PersonalizedBits(budgets), 1e-20),
                           (PersonalizedClones.gaussian(np.clip(1 / budgets, 0.5, 20)), 1e-20)):
        eps = profile.epsilon(delta)
        assert profile.delta(eps) <= delta
        assert profile.log_delta(0.995 * eps) > math.log(delta)


def test_users_with_far_more_noise_do_not_hide_the_test_of_a_target():
    # The other message is rarely close to the inputs. So an interval around one input is nearly as good a test as without the other
    # user. The number of messages above a threshold has half of this delta, because the other message is above it with probability
    # about 1/2.
    profile, alone = PersonalizedClones.laplace([1e-3, 5.0]), 1 - math.exp(-2.5)
    assert 0.998 * alone < profile.delta(0.0, bound="lower") <= alone
    with pytest.raises(ValueError, match="eps holds"):
        PersonalizedClones.laplace([5e-324, 5.0])
