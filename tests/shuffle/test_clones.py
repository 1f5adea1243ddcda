"""Clone bounds against enumeration, direct sums over both distributions, and reference values."""

import dataclasses
import math
from fractions import Fraction
from itertools import pairwise, product

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from shufflebounds.shuffle import Clones, PersonalizedClones, StrongerClones
from tests.errors import distance, log_of, reference, to_decimal
from tests.oracles import at, thresholds
from tests.strategies import slow, thinned

KINDS = {"clones": Clones, "stronger": StrongerClones}
CLASSES = {"fmt2021": Clones, "fmt2023": StrongerClones}


def enclosed(mechanism, eps, exact_log, relative):
    """Assert lower <= exact <= upper in decimal arithmetic, and a gap within `relative` plus a few ulp of the logarithm."""
    lower, upper = mechanism.log_delta(eps, bound="lower"), mechanism.log_delta(eps)
    exact = to_decimal(exact_log)
    assert to_decimal(lower) <= exact <= to_decimal(upper), (mechanism, eps, lower, exact_log, upper)
    allowed = relative + 64 * math.ulp(float(exact))
    assert distance(lower, exact) < allowed
    assert distance(upper, exact) < allowed


def enumerate_pair(n, eps0, eps, rate_of):
    """Return delta of (P, Q) and of (Q, P) by a sum over all (c, a), in mpmath."""
    e0, e = mpmath.exp(mpmath.mpf(eps0)), mpmath.exp(mpmath.mpf(eps))
    w, r = 1 / (e0 + 1), rate_of(e0)
    forward = backward = mpmath.mpf(0)
    for c in range(n):
        weight = mpmath.binomial(n - 1, c) * r**c * (1 - r) ** (n - 1 - c) / mpmath.mpf(2) ** c
        for a in range(c + 2):
            b0, b1 = mpmath.binomial(c, a), (mpmath.binomial(c, a - 1) if a else mpmath.mpf(0))
            p, q = w * b0 + (1 - w) * b1, (1 - w) * b0 + w * b1
            forward += weight * max(mpmath.mpf(0), p - e * q)
            backward += weight * max(mpmath.mpf(0), q - e * p)
    return forward, backward


@pytest.mark.parametrize("kind", [Clones, StrongerClones])
@pytest.mark.parametrize(("n", "odds"), [(1, 3), (2, 2), (6, 9)])
def test_curves_by_enumeration(kind, n, odds):
    # e^eps0 equals `odds` up to an ulp of eps0, because log(odds) is not a double.
    rate, low = (Fraction(1, odds) if kind is Clones else Fraction(2, odds + 1)), Fraction(1, odds + 1)
    laws = [], []
    for c in range(n):
        weight = math.comb(n - 1, c) * rate**c * (1 - rate) ** (n - 1 - c) / 2**c
        for a in range(c + 2):
            stay, step = math.comb(c, a), math.comb(c, a - 1) if a else 0
            laws[0].append(weight * (low * stay + (1 - low) * step))
            laws[1].append(weight * ((1 - low) * stay + low * step))
    boundary = thresholds(*laws)
    lower, upper = (kind(n, math.log(odds)).tradeoff(bound=bound) for bound in ("lower", "upper"))
    for alpha in [1e-6, 0.01, *(float(x) for x, _ in boundary[1:-1]), 0.3, 0.7, 0.99]:
        exact = float(at(boundary, Fraction(alpha)))
        assert lower.beta(alpha) - 1e-15 <= exact <= upper.beta(alpha) + 1e-15
        assert upper.beta(alpha) - lower.beta(alpha) <= 1e-11


RATES = {Clones: lambda e0: 1 / e0, StrongerClones: lambda e0: 2 / (e0 + 1)}


@pytest.mark.parametrize("kind", [Clones, StrongerClones])
@pytest.mark.parametrize("eps0", thinned([2.0**-10, 0.5, 1.0, 3.0, 8.0], 3))
@pytest.mark.parametrize("n", [1, 2, 4, slow(8)])
def test_small_n_by_enumeration(kind, eps0, n):
    with mpmath.workdps(50):
        for share in (0.0, 2.0**-20, 0.25, 0.5, 0.875, 1 - 2.0**-10):
            eps = eps0 * share
            forward, backward = enumerate_pair(n, eps0, eps, RATES[kind])
            assert abs(forward - backward) < mpmath.mpf(10) ** -45
            enclosed(kind(n, eps0), eps, mpmath.nstr(mpmath.log(forward), 40), 2e-12)


def test_rational_rates_by_fractions():
    # With e^eps0 = 3 and e^eps = 2, all masses are fractions. Rounding the logarithms changes delta by a few ulp.
    n, e0, e = 6, Fraction(3), Fraction(2)
    w = 1 / (e0 + 1)
    for kind, r in ((Clones, 1 / e0), (StrongerClones, 2 / (e0 + 1))):
        delta = Fraction(0)
        for c in range(n):
            for a in range(c + 2):
                b0, b1 = math.comb(c, a), math.comb(c, a - 1) if a else 0
                mass = max(Fraction(0), (w * b0 + (1 - w) * b1) - e * ((1 - w) * b0 + w * b1)) / 2**c
                delta += math.comb(n - 1, c) * r**c * (1 - r) ** (n - 1 - c) * mass
        assert kind(n, math.log(3)).delta(math.log(2)) == pytest.approx(float(delta), rel=1e-12)


@pytest.mark.parametrize(
    "case", thinned(reference("clones_direct")["values"], 3), ids=lambda c: "{bound}-{users}-{local_eps}-{eps}".format(**c)
)
def test_direct_sums_over_both_distributions(case):
    enclosed(KINDS[case["bound"]](case["users"], case["local_eps"]), case["eps"], case["log_delta"], 3e-12)


def test_the_smallest_delta_of_the_cases_is_tiny():
    assert min(float(c["log_delta"]) for c in reference("clones_direct")["values"]) < -100_000 * math.log(10)


def sensitivity(mechanism, eps):
    """Return the change of log delta if eps and eps0 change by an ulp, the rounding error of the decimals in the file."""
    step = 1e-6 * max(eps, 1e-3)
    slope = abs(mechanism.log_delta(eps + step) - mechanism.log_delta(max(eps - step, 0.0))) / step
    return slope * math.ulp(max(eps, 2.0**-10)) + mechanism.users * math.ulp(mechanism.local_eps) * 1e-6


@pytest.mark.parametrize(
    "case",
    thinned([v for v in reference("clones-and-personalised") if v["quantity"].startswith("delta_clone_fmt")], 2),
    ids=lambda v: v["id"],
)
def test_reference_delta(case):
    given_ = case["params"]
    mechanism = CLASSES[case["quantity"][-7:]](given_["n"], given_["eps0"])
    exact = log_of(case["value"])
    lower, upper = mechanism.log_delta(given_["eps"], bound="lower"), mechanism.log_delta(given_["eps"])
    rounding = sensitivity(mechanism, given_["eps"])
    allowed = (1e-12 if exact > log_of("1e-30") else 1e-11) + rounding
    assert distance((lower + upper) / 2, exact) < allowed
    assert upper - lower < 10 * allowed
    assert float(to_decimal(lower) - exact) <= rounding
    assert float(exact - to_decimal(upper)) <= rounding


@pytest.mark.parametrize(
    "case",
    [v for v in reference("clones-and-personalised") if v["quantity"].startswith("eps_clone_fmt")],
    ids=lambda v: v["id"],
)
def test_reference_epsilon(case):
    given_ = case["params"]
    mechanism = CLASSES[case["quantity"][-7:]](given_["n"], given_["eps0"])
    lower, upper = mechanism.epsilon(given_["delta"], bound="lower"), mechanism.epsilon(given_["delta"])
    exact = float(case["value"])
    assert lower <= exact * (1 + 1e-14)
    assert upper >= exact * (1 - 1e-14)
    assert upper - lower < 2e-11 * exact


# The values are those of section 3 of the survey of accountants, from independent code, to the published digits.
GRID = [
    (10**3, 1, 1e-6, 0.1486706),
    (10**4, 1, 1e-6, 0.04320616),
    (10**4, 4, 1e-6, 0.4108123),
    (10**5, 2, 1e-8, 0.04367607),
    (10**6, 4, 1e-8, 0.04507296),
    (10**7, 4, 1e-10, 0.01640038),
    (10**8, 6, 1e-10, 0.014371),
    (10**9, 8, 1e-12, 0.01426893),
]


@pytest.mark.parametrize(("users", "eps0", "delta", "exact"), GRID)
def test_grid_of_typical_parameters(users, eps0, delta, exact):
    assert StrongerClones(users, eps0).epsilon(delta) == pytest.approx(exact, rel=5e-7)


mechanisms = st.builds(
    lambda kind, n, e: kind(n, e),
    st.sampled_from([Clones, StrongerClones]),
    st.one_of(st.integers(1, 50), st.integers(1, 2000), st.integers(1, 10**6)),
    st.floats(0.01, 20.0),
)


@given(mechanisms, st.floats(0, 1), st.floats(0, 1))
def test_delta_falls_with_eps(mechanism, first, second):
    low, high = sorted((first * mechanism.local_eps, second * mechanism.local_eps))
    assert mechanism.log_delta(high, bound="lower") <= mechanism.log_delta(low)
    assert mechanism.log_delta(low, bound="lower") <= mechanism.log_delta(low) <= 0


@given(mechanisms, st.floats(0, 1.2), st.integers(1, 1000))
def test_delta_falls_with_users(mechanism, share, more):
    eps = share * mechanism.local_eps
    larger = dataclasses.replace(mechanism, users=min(mechanism.users + more, 2**53))
    assert larger.log_delta(eps, bound="lower") <= mechanism.log_delta(eps)


@given(st.integers(1, 10**8), st.floats(0.01, 20.0), st.floats(0, 1))
def test_stronger_clones_are_never_larger(users, eps0, share):
    assert StrongerClones(users, eps0).log_delta(share * eps0, bound="lower") <= Clones(users, eps0).log_delta(share * eps0)


@given(mechanisms, st.one_of(st.floats(-323, 0), st.floats(-1, 0)))
def test_epsilon_is_an_upper_or_a_lower_bound(mechanism, log10_delta):
    delta = 10.0**log10_delta
    upper, lower = mechanism.epsilon(delta), mechanism.epsilon(delta, bound="lower")
    assert lower <= upper <= mechanism.local_eps
    assert mechanism.delta(upper) <= delta
    assert mechanism.log_delta(upper) <= math.log(delta)
    assert lower == 0 or mechanism.delta(lower, bound="lower") >= delta


@given(mechanisms)
def test_pure_epsilon(mechanism):
    eps0 = mechanism.local_eps
    assert mechanism.epsilon(0.0) == eps0
    assert mechanism.delta(eps0) == 0
    assert mechanism.delta(2 * eps0) == 0
    assert mechanism.log_delta(eps0) == -math.inf
    assert 0.99 * eps0 < mechanism.epsilon(0.0, bound="lower") <= eps0
    assert mechanism.log_delta(mechanism.epsilon(0.0, bound="lower"), bound="lower") > -math.inf


@pytest.mark.parametrize(("users", "eps0"), [(10**12, 14.0), (2**53, 30.0)])
def test_very_many_users(users, eps0):
    mechanism = StrongerClones(users, eps0)
    upper, lower = mechanism.epsilon(1e-12), mechanism.epsilon(1e-12, bound="lower")
    assert lower <= upper <= lower * (1 + 1e-10)
    assert mechanism.delta(upper) <= 1e-12
    # The upper limit is the closed form of Theorem 3.2, ln(1 + (E-1)(4 sqrt(2 ln(4/delta)/((E+1) n)) + 4/n)).
    e0 = math.exp(eps0)
    assert 0 < upper < math.log1p((e0 - 1) * (4 * math.sqrt(2 * math.log(4e12) / ((e0 + 1) * users)) + 4 / users))


# For eps close to eps0, u = tanh(eps/2)/tanh(eps0/2) is within a few ulp of 1, and all terms are proportional to 1 - u.
@pytest.mark.parametrize("kind", [Clones, StrongerClones])
@pytest.mark.parametrize(("users", "eps0"), thinned([(2, 1.0), (3, 0.3), (8, 5.0), (8, 0.01)], 2))
@pytest.mark.parametrize("below", [1, 2, 5, 1000])
def test_last_places_below_the_local_budget(kind, users, eps0, below):
    eps = eps0
    for _ in range(below):
        eps = math.nextafter(eps, 0)
    with mpmath.workdps(60):
        forward, _ = enumerate_pair(users, eps0, eps, RATES[kind])
        enclosed(kind(users, eps0), eps, mpmath.nstr(mpmath.log(forward), 40), 1e-11)


def test_one_user_is_the_local_randomizer():
    # For randomized response, delta(eps) = (e^eps0 - e^eps)/(1 + e^eps0).
    for eps0 in (0.25, 1.0, 5.0):
        for eps in (0.0, 0.125, 0.2):
            with mpmath.workdps(40):
                e0 = mpmath.exp(mpmath.mpf(eps0))
                exact = mpmath.nstr(mpmath.log((e0 - mpmath.exp(mpmath.mpf(eps))) / (1 + e0)), 34)
            for kind in (Clones, StrongerClones):
                enclosed(kind(1, eps0), eps, exact, 1e-12)


def test_arrays_match_scalars():
    mechanism = StrongerClones(1000, 1.0)
    eps = np.array([[0.0, 0.1], [0.5, 1.5]])
    for bound in ("upper", "lower"):
        table = mechanism.log_delta(eps, bound=bound)
        assert table.shape == eps.shape
        assert table.tolist() == [[mechanism.log_delta(float(e), bound=bound) for e in row] for row in eps]
        assert isinstance(mechanism.log_delta(0.1, bound=bound), float)
    assert mechanism.epsilon(np.array([1e-3, 1e-6])).tolist() == [mechanism.epsilon(1e-3), mechanism.epsilon(1e-6)]


def test_underflowing_delta_is_not_zero():
    mechanism = StrongerClones(10**6, 1.0)
    assert mechanism.delta(0.885) == 5e-324
    assert mechanism.delta(0.885, bound="lower") == 0
    assert mechanism.log_delta(0.885) < -230_000


def test_equality_and_repr():
    assert Clones(10, 1.0) == Clones(10, 1)
    assert Clones(10, 1.0) != StrongerClones(10, 1.0)
    assert repr(StrongerClones(10, 1)) == "StrongerClones(users=10, local_eps=1.0)"
    assert hash(Clones(10, 1.0)) == hash(Clones(10, 1.0))
    with pytest.raises(dataclasses.FrozenInstanceError):
        Clones(10, 1.0).users = 11


@pytest.mark.parametrize("kind", [Clones, StrongerClones])
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("users", 0),
        ("users", -3),
        ("users", 2.5),
        ("users", math.nan),
        ("users", "10"),
        ("users", None),
        ("users", True),
        ("users", 2**53 + 1),
        ("users", [1, 2]),
        ("local_eps", 0),
        ("local_eps", -1.0),
        ("local_eps", math.nan),
        ("local_eps", math.inf),
        ("local_eps", 701),
        ("local_eps", "1"),
        ("local_eps", None),
        ("local_eps", [1.0]),
        ("local_eps", True),
    ],
)
def test_bad_parameters(kind, field, value):
    good = {"users": 10, "local_eps": 1.0}
    with pytest.raises(ValueError, match=rf"^{field}\b.*(integer|number|in \(0, 700\])"):
        kind(**(good | {field: value}))


def law_of_closer_values(d_eps0, eps0, eps):
    """Return the exact distribution {value: probability} of one summand of the bound for two values at distance d."""
    v, tau = mpmath.exp(-mpmath.mpf(d_eps0)), mpmath.tanh(mpmath.mpf(eps) / 2)
    chance = mpmath.exp(-mpmath.mpf(eps0)) / (1 + v)
    return [((1 - v) - tau * (1 + v), chance), (-(1 - v) - tau * (1 + v), chance), (mpmath.mpf(0), 1 - 2 * chance)]


@pytest.mark.parametrize("eps0", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("share", [0.01, 0.3, 0.9])
def test_summands_for_closer_values_are_smaller_in_the_convex_order(eps0, share):
    """The summands have equal means, and E(Y - c)_+ does not decrease with the distance of the two values."""
    eps = share * eps0
    grid = [law_of_closer_values(d * eps0, eps0, eps) for d in (0.05, 0.3, 0.6, 0.95, 1.0) if d > share]
    means = [sum(y * chance for y, chance in law) for law in grid]
    assert max(means) - min(means) < mpmath.mpf(10) ** -13
    for c in (-2, -1, -0.4, -0.1, -0.01, 0, 0.01, 0.1, 0.4, 1):
        values = [sum(max(y - c, mpmath.mpf(0)) * chance for y, chance in law) for law in grid]
        assert all(near <= far + mpmath.mpf(10) ** -13 for near, far in pairwise(values))


@pytest.mark.parametrize("users", thinned([1, 2, 3, 7, 50, 1000], 3))
@pytest.mark.parametrize("eps0", [0.5, 2.0])
def test_laplace_values_closer_than_the_range(users, eps0):
    """Two values at a distance d < 1 have fewer clones but more similar distributions; the bound for d = 1 covers them."""
    for share in (0.02, 0.3, 0.7, 0.95):
        eps = share * eps0
        whole = StrongerClones(users, eps0).log_delta(eps)
        for d in (0.1, 0.5, 0.9, 0.999):
            rate = math.exp(-eps0) / (1 + math.exp(-d * eps0))
            closer = PersonalizedClones(1 / (math.exp(d * eps0) + 1), [rate], counts=[users - 1])
            assert closer.log_delta(eps, bound="lower") <= whole


@pytest.mark.parametrize("users", [1, 2, 4])
@pytest.mark.parametrize(("d", "eps0", "eps"), [(0.5, 1.0, 0.25), (1.0, 2.0, 0.5), (0.25, 2.0, 0.25)])
def test_sum_of_steps_is_the_bound(users, d, eps0, eps):
    law = law_of_closer_values(d * eps0, eps0, eps)
    mean = mpmath.mpf(0)
    for steps in product(law, repeat=users):
        total = sum(y for y, _ in steps)
        mean += max(total, mpmath.mpf(0)) * mpmath.fprod(chance for _, chance in steps)
    exact = (1 + mpmath.exp(eps)) * mpmath.exp(eps0) / (2 * users) * mean
    rate = math.exp(-eps0) / (1 + math.exp(-d * eps0))
    bound = PersonalizedClones(1 / (math.exp(d * eps0) + 1), [rate] if users > 1 else [0.0], counts=[max(users - 1, 1)])
    assert abs(bound.log_delta(eps) - mpmath.log(exact)) < 1e-11


@pytest.mark.filterwarnings("ignore:local_eps=")
@pytest.mark.filterwarnings("error")
def test_extreme_budget_without_a_warning_of_numpy():
    assert 0 < Clones(10, 700.0).epsilon(0.0, bound="lower") <= 700.0


def outcomes(users, local_eps):
    """Return the probabilities of all outcomes of the stronger clone pair, under P and under Q."""
    rate, w = 2 / (math.exp(local_eps) + 1), 1 / (math.exp(local_eps) + 1)
    rows = []
    for c in range(users):
        ones = np.arange(c + 2)
        coins = np.exp(stats.binom.logpmf(c, users - 1, rate) + stats.binom.logpmf(ones, c, 0.5))
        more = np.append(0.0, coins[:-1])
        rows.append([w * coins + (1 - w) * more, (1 - w) * coins + w * more])
    return np.concatenate(rows, axis=1)


def test_alike_releases_share_a_transform():
    first, second = (StrongerClones(users, 1.0) for users in (150, 151))
    both = first.compose(second, rtol=0.1)
    assert len(both._product.above) == 1
    (p, q), (s, t) = outcomes(150, 1.0), outcomes(151, 1.0)
    loss, other = np.log(p / q), np.log(s / t)
    order = np.argsort(other)
    above = [np.append(np.cumsum(mass[order][::-1])[::-1], 0.0) for mass in (s, t)]
    for eps in (0.1, 0.4, 0.8):
        place = np.searchsorted(other[order], eps - loss, side="right")
        exact = float((p * above[0][place] - math.exp(eps) * q * above[1][place]).sum())
        assert both.delta(eps, bound="lower") <= exact * (1 + 1e-9)
        assert exact <= both.delta(eps) * (1 + 1e-9)
        assert both.delta(eps) < 2 * both.delta(eps, bound="lower")
    # With the default rtol the numbers of users differ too much.
    assert len(first.compose(second)._product.above) == 2


@pytest.mark.slow
@pytest.mark.parametrize(("eps", "local_eps", "releases"), [(2.0, 1.0, 1000), (1.0, 3.0, 100)])
def test_the_fewest_users_of_several_releases(eps, local_eps, releases):
    """The tolerance of the eps of one release left 9 of 11,187 users too many, and 2 of 89,890."""
    found = StrongerClones.calibrate(eps=eps, delta=1e-8, local_eps=local_eps, releases=releases)

    def delta(users):
        return StrongerClones(users, local_eps).self_compose(releases).delta(eps)

    assert delta(found.users) <= 1e-8 < delta(found.users - 1)


@pytest.mark.parametrize("mechanism", [Clones, StrongerClones])
@pytest.mark.parametrize("budget", [slow(15.0), 40.0, slow(80.0)])
def test_mu_of_large_budgets_by_enumeration(mechanism, budget):
    """For large budgets mu depends on values of 1 - delta far below the rounding error of delta."""
    users, exact = 3, 0.0

    def quantile(chance):
        low, high = mpmath.mpf(-40), mpmath.mpf(0)
        with mpmath.workdps(20):
            for _ in range(56):
                middle = (low + high) / 2
                low, high = (middle, high) if mpmath.ncdf(middle) < chance else (low, middle)
        return low

    with mpmath.workdps(200):
        odds = mpmath.exp(mpmath.mpf(budget))
        rate = 2 / (odds + 1) if mechanism is StrongerClones else 1 / odds
        stay, atoms = odds / (odds + 1), {}
        for c in range(users):
            for a in range(c + 1):
                weight = mpmath.binomial(users - 1, c) * rate**c * (1 - rate) ** (users - 1 - c)
                weight *= mpmath.binomial(c, a) / mpmath.mpf(2) ** c
                for one in (0, 1):
                    p, q = atoms.get((c, a + one), (0, 0))
                    atoms[c, a + one] = p + weight * (stay if one else 1 - stay), q + weight * (1 - stay if one else stay)
        alpha = power = mpmath.mpf(0)
        for p, q in sorted(atoms.values(), key=lambda atom: atom[0] / atom[1])[:-1]:
            alpha, power = alpha + p, power + q
            z = [quantile(x) if x < 0.5 else -quantile(1 - x) for x in (alpha, 1 - power)]
            exact = max(exact, float(-z[0] - z[1]))
    found = mechanism(users, budget)
    lower, upper = found.gdp_mu(bound="lower"), found.gdp_mu()
    assert lower <= exact * (1 + 1e-13)
    assert exact * (1 - 1e-13) <= upper
    assert upper - lower < 1e-11 * upper
    # More users than are enumerated have at most the mu of 512.
    assert mechanism(600, budget).gdp_mu() <= mechanism(512, budget).gdp_mu() * (1 + 1e-12)
    assert mechanism(600, budget).gdp_mu(bound="lower") <= upper
