"""Compositions: both bounds against enumeration and closed forms, and properties that hold for every composition."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr

from shufflebounds import DominatingPair, PrivacyProfile
from shufflebounds.mechanisms import GeometricMechanism
from shufflebounds.profile import Composition
from shufflebounds.profile.extend import Attained, DominatingPairInfo
from shufflebounds.shuffle import BinomialNoise, Clones, ShuffledBits, StrongerClones
from tests.oracles import log_hockey_stick, logs
from tests.strategies import laws, slow

EPS = (0.0, 0.1, 0.7, 1.5, 4.0)
mp = mpmath.mp.clone()
mp.dps = 60


class Gaussian(PrivacyProfile):
    """The profile of mu-Gaussian noise by Mills' ratio, computed without the library's code."""

    theorem, neighbours = "exact", "any"

    def __init__(self, mu):
        self.mu = mu

    def describe(self):
        return DominatingPairInfo(self.bounds, attained=Attained(single=True))

    def bounds(self, eps):
        from scipy.special import erfcx

        x, y = eps / self.mu - self.mu / 2, eps / self.mu + self.mu / 2
        mills = lambda t: math.sqrt(math.pi / 2) * erfcx(t / math.sqrt(2))  # noqa: E731
        deep = np.maximum(x, -5)
        value = -deep * deep / 2 - math.log(2 * math.pi) / 2 + np.log(mills(deep) - mills(y))
        near = x < -5
        value[near] = np.log1p(-np.exp(log_ndtr(x[near])) - np.exp(eps[near] + log_ndtr(-y[near])))
        error = 1e-13 * (1 + np.abs(value))
        return value - error, np.minimum(value + error, 0.0)


class UnknownPairs(PrivacyProfile):
    """A profile whose pairs of distributions are not known."""

    theorem, neighbours = "bound", "any"

    def describe(self):
        return DominatingPairInfo(self.bounds)

    def bounds(self, eps):
        return Gaussian(0.5)._log_delta(eps)


def gaussian_delta(mu, eps):
    """Return the exact delta of mu-Gaussian noise at any real eps."""
    mu, eps = mp.mpf(mu), mp.mpf(eps)
    return mp.ncdf(mu / 2 - eps / mu) - mp.exp(eps) * mp.ncdf(-mu / 2 - eps / mu)


def product(*pairs):
    """Return the P and the Q of a product of pairs, by enumeration."""
    p, q = [], []
    for outcomes in itertools.product(*(list(zip(*pair)) for pair in pairs)):
        p.append(math.prod(a for a, _ in outcomes))
        q.append(math.prod(b for _, b in outcomes))
    return p, q


def listed(pq):
    return DominatingPair.from_pmfs(logs(pq[0]), logs(pq[1]))


def response(eps):
    """Return randomized response as the lists of its masses under P and Q."""
    low = -math.log1p(math.exp(eps))
    return DominatingPair.from_pmfs([eps + low, low], [low, eps + low])


SMALL = math.log(1e-12)
"""Log of the delta below which a lower bound is not compared: delta is a difference of masses, whose logarithms are rounded."""


@pytest.mark.slow
@settings(max_examples=20)
@given(st.lists(laws(), min_size=1, max_size=3), st.integers(1, 2), st.sampled_from(EPS))
def test_products_of_small_pairs(pairs, times, eps):
    exact = float(log_hockey_stick(*product(*(pairs * times)), eps))
    parts = [listed(pq).self_compose(times) for pq in pairs]
    both = parts[0].compose(*parts[1:])
    lower, upper = both.log_delta(eps, bound="lower"), both.log_delta(eps)
    assert lower <= exact or lower < SMALL
    assert exact <= upper
    if exact > math.log(1e-3) and lower > -math.inf:
        assert upper - lower < 0.05


@pytest.mark.slow
@settings(max_examples=20)
@given(st.floats(0.01, 3), st.integers(1, 60), st.floats(0, 1))
def test_randomized_response_is_exact(eps0, times, share):
    eps = eps0 * (times - 1e-3) * share
    many = response(eps0).self_compose(times)
    with mpmath.workdps(60):
        p = 1 / (1 + mpmath.exp(-mpmath.mpf(eps0)))
        losses = [(2 * j - times) * mpmath.mpf(eps0) for j in range(times + 1)]
        total = mpmath.fsum(
            mpmath.binomial(times, j) * p**j * (1 - p) ** (times - j) * -mpmath.expm1(mpmath.mpf(eps) - loss)
            for j, loss in enumerate(losses)
            if loss > eps
        )
        exact = float(mpmath.log(total)) if total > 0 else -math.inf
    lower, upper = many.log_delta(eps, bound="lower"), many.log_delta(eps)
    assert lower <= exact <= upper
    # Close to the largest loss, delta is proportional to the difference of this loss and eps.
    assert upper - lower <= 3e-11 * (times + abs(exact) + 1e3 / eps0)


@pytest.mark.slow
@pytest.mark.parametrize("delta", [1e-6, 1e-200])
def test_deep_randomized_response(delta):
    many = response(0.1).self_compose(1000)
    lower, upper = many.epsilon(delta, bound="lower"), many.epsilon(delta)
    with mpmath.workdps(250):
        e0 = mpmath.mpf("0.1")

        def exact(eps):
            p = 1 / (1 + mpmath.exp(-e0))
            j = max(0, math.floor((eps / 0.1 + 1000) / 2) - 1)
            return mpmath.fsum(
                mpmath.binomial(1000, i) * p**i * (1 - p) ** (1000 - i) * -mpmath.expm1(eps - (2 * i - 1000) * e0)
                for i in range(j, 1001)
                if (2 * i - 1000) * e0 > eps
            )

        assert exact(lower) >= delta * (1 - mpmath.mpf(10) ** -9)
        assert exact(lower - 1e-9) >= delta >= exact(upper + 1e-9)
        assert exact(upper) <= delta
    assert upper - lower <= 1e-10 * upper


@pytest.mark.parametrize(("mu", "times"), [(0.1, 100), slow(1.0, 5), slow(0.01, 10_000)])
def test_gaussians_by_the_closed_form(mu, times):
    many = Gaussian(mu).self_compose(times)
    total = mp.mpf(mu) * mp.sqrt(times)
    for z in (0.5, 5.0, 12.0, 30.0):
        eps = float(total**2 / 2 + z * total)
        exact = float(mp.log(gaussian_delta(total, eps)))
        lower, upper = many.log_delta(eps, bound="lower"), many.log_delta(eps)
        assert lower <= exact <= upper
        assert upper - lower <= 1e-4 * max(1.0, z / float(total) * max(eps, float(total)))


@pytest.mark.slow
@pytest.mark.parametrize(("times", "truth"), [(10, 0.243230479), (1000, 2.921602202)])
def test_binomial_noise_against_an_independent_value(times, truth):
    # The reference value has nine decimals.
    many = BinomialNoise(10**4, 0.5).self_compose(times)
    lower, upper = many.epsilon(1e-6, bound="lower"), many.epsilon(1e-6)
    assert truth - 1e-9 <= upper <= truth * (1 + 1e-7) + 1e-9
    assert lower <= truth + 1e-9
    assert upper - lower <= 1e-5 * truth
    for delta in (1e-50, 1e-130):
        assert many.epsilon(delta) - many.epsilon(delta, bound="lower") <= 1e-5 * many.epsilon(delta)


@pytest.mark.slow
@pytest.mark.parametrize(("prob", "pair"), [(0.5, 0), (0.25, 1)])
def test_small_binomial_noise_by_enumeration(prob, pair):
    trials = 6
    g = Fraction(prob)
    mass = [math.comb(trials, k) * g**k * (1 - g) ** (trials - k) for k in range(trials + 1)]
    p, q = [*mass, Fraction(0)], [Fraction(0), *mass]
    if pair:
        p, q = q, p
    one = BinomialNoise(trials, prob)
    for times in (2, 3):
        many = one.pairs()[pair].self_compose(times)
        both = one.self_compose(times)
        for eps in EPS:
            exact = float(log_hockey_stick(*product(*[(p, q)] * times), eps))
            assert many.log_delta(eps, bound="lower") <= exact <= many.log_delta(eps) + 1e-13
            assert exact <= both.log_delta(eps) + 1e-13
            assert many.log_delta(eps) - exact < 1e-3


@pytest.mark.slow
def test_a_mixed_composition():
    # For Gaussian noise composed with enumerated outcomes, delta is the mean of the Gaussian delta at eps minus the loss of the
    # outcome.
    noise, eps0, mu = BinomialNoise(20, 0.5), 0.3, 0.4
    both = Gaussian(mu).compose(response(eps0), noise)
    mass = [math.comb(20, k) for k in range(21)]
    low = 1 / (1 + mp.exp(mp.mpf(eps0)))
    for eps in (0.0, 0.5, 2.0, 4.0):
        exact = mp.mpf(mass[0]) / 2**20
        for sign, chance in ((1, 1 - low), (-1, low)):
            for k in range(1, 21):
                loss = sign * mp.mpf(eps0) + mp.log(mp.mpf(21 - k) / k)
                exact += chance * mass[k] / mp.mpf(2) ** 20 * gaussian_delta(mu, mp.mpf(eps) - loss)
        exact = float(mp.log(exact))
        assert both.log_delta(eps, bound="lower") <= exact <= both.log_delta(eps)
        assert both.log_delta(eps) - both.log_delta(eps, bound="lower") < 1e-3


@pytest.mark.slow
@given(st.lists(laws(), min_size=1, max_size=2), st.integers(1, 50), st.sampled_from(EPS), st.floats(0, 2))
@settings(max_examples=15)
def test_what_no_composition_may_break(pairs, times, eps, more):
    parts = [listed(pq).self_compose(times) for pq in pairs]
    both = parts[0].compose(*parts[1:])
    values = [(both.log_delta(e, bound="lower"), both.log_delta(e)) for e in (eps, eps + more)]
    for low, high in values:
        assert low <= high <= 0
    # Delta decreases in eps, whatever the error of the grid is.
    assert values[1][0] <= values[0][1]
    single = max(listed(pq).log_delta(eps, bound="lower") for pq in pairs)
    assert single <= values[0][1]
    assert single <= values[0][0] or values[0][0] < SMALL


@pytest.mark.slow
@pytest.mark.parametrize(
    "one", [BinomialNoise(400, 0.3), StrongerClones(1000, 1.0)], ids=str
)
def test_counts_add_and_order_is_no_matter(one):
    other = BinomialNoise(1000, 0.5)
    assert one.self_compose(2).compose(one.self_compose(3)) == one.self_compose(5)
    assert one.compose(one, one).factors == ((one, 3),)
    assert one.self_compose(2).self_compose(3).factors == ((one, 6),)
    first, second = one.self_compose(3).compose(other), other.compose(one.self_compose(3))
    for delta in (1e-3, 1e-9):
        a, b = first.epsilon(delta), second.epsilon(delta)
        assert abs(a - b) < 2e-4 * a
        assert first.epsilon(delta, bound="lower") <= b
        assert second.epsilon(delta, bound="lower") <= a


@pytest.mark.slow
@pytest.mark.parametrize(
    "one",
    [StrongerClones(10**5, 3.0), BinomialNoise(10**9, 0.5), ShuffledBits(101, 0.2, ones=50)],
    ids=str,
)
def test_symmetric_guarantees_meet(one):
    many = one.self_compose(20)
    for delta in (1e-4, 1e-12, 1e-40):
        lower, upper = many.epsilon(delta, bound="lower"), many.epsilon(delta)
        assert 0 < lower <= upper <= lower * (1 + 1e-4)
        # Epsilon of 20 releases is at least that of one release, and at most 20 times that of one release at delta / 20.
        assert one.epsilon(delta, bound="lower") <= upper <= 20 * one.epsilon(delta / 20)


@pytest.mark.slow
@pytest.mark.parametrize("one", [BinomialNoise(300, 0.2), ShuffledBits(60, 0.1, ones=6), ShuffledBits(60, 0.1)], ids=str)
def test_both_directions_are_covered(one):
    both = one.self_compose(5)
    pairs = one.pairs() if getattr(one, "ones", 0) != "worst" else (one.pair(0), one.pair(59).reverse())
    for delta in (1e-3, 1e-8):
        lower, upper = both.epsilon(delta, bound="lower"), both.epsilon(delta)
        assert lower <= upper <= 1.1 * lower
        for pair in pairs:
            assert pair.self_compose(5).epsilon(delta, bound="lower") <= upper


@pytest.mark.parametrize("times", [2, 10, 1000])
def test_a_profile_without_pairs_has_a_lower_side(times):
    """The lower bound, from one test repeated in every release, is at least delta of Gaussian noise with 0.6 times its mu."""
    one = UnknownPairs()
    many = one.self_compose(times)
    eps = 0.5 * times * 0.25 + math.sqrt(times)
    exact, less = (float(mp.log(gaussian_delta(share * 0.5 * math.sqrt(times), eps))) for share in (1.0, 0.6))
    assert max(less, one.log_delta(eps, bound="lower")) <= many.log_delta(eps, bound="lower") <= exact <= many.log_delta(eps)


@pytest.mark.slow
def test_answers_do_not_depend_on_the_order_of_questions():
    eps = [0.3, 2.0, 0.9, 0.0, 1.4]
    sides = [
        [(many.log_delta(e, bound="lower"), many.log_delta(e)) for e in order]
        for order in (eps, eps[::-1])
        for many in [StrongerClones(1000, 2.0).self_compose(20)]
    ]
    assert sides[0] == sides[1][::-1]


def test_a_composition_keeps_the_caveats_of_its_factors():
    noise, clones = BinomialNoise(100, 0.5), StrongerClones(100, 1.0)
    both = noise.compose(clones)
    for factor in (noise, clones):
        assert factor.theorem in both.theorem
        assert factor.neighbours in both.neighbours


def test_pure_budgets_add():
    many = response(0.5).self_compose(7).compose(StrongerClones(100, 1.0))
    assert 4.5 <= many.epsilon(0.0) <= 4.5 * (1 + 1e-14)
    assert many.log_delta(4.6) == -math.inf
    assert many.log_delta(4.4) > -math.inf
    assert BinomialNoise(10, 0.5).self_compose(2).epsilon(0.0) == math.inf


def test_laws_without_losses():
    same = DominatingPair.from_pmfs([0.0], [0.0])
    apart = DominatingPair.from_pmfs([0.0, -math.inf], [-math.inf, 0.0])
    assert same.self_compose(5).log_delta(0.0) < math.log(1e-12)
    assert apart.self_compose(5).delta(3.0) == 1.0
    assert same.compose(apart).delta(3.0, bound="lower") > 1 - 1e-12
    half = DominatingPair.from_pmfs(np.log([0.5, 0.5]), [-math.inf, 0.0])
    assert half.self_compose(10).delta(1.0) == pytest.approx(1 - 2**-10, rel=1e-12)
    assert half.self_compose(10).delta(1.0, bound="lower") == pytest.approx(1 - 2**-10, rel=1e-12)


def test_one_release_is_itself():
    one = Clones(1000, 1.0)
    assert one.compose().log_delta(0.1) == one.log_delta(0.1)
    assert repr(one.self_compose(3)) == "Composition(factors=((Clones(users=1000, local_eps=1.0), 3),), rtol=1e-05)"
    assert one.self_compose(3) == one.self_compose(3) != one.self_compose(4)
    assert hash(one.self_compose(3)) == hash(one.self_compose(3))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Clones(10, 1.0).self_compose(0), r"times=0 must be an integer in 1..2\*\*53"),
        (lambda: Clones(10, 1.0).self_compose(2, rtol=1.0), r"rtol=1 must be in \[1e-12, 0.1\]"),
        (lambda: Composition(()), "factors must not be empty"),
        (lambda: response(1.0).self_compose(2**53).self_compose(2), "times=.* must be an integer"),
    ],
)
def test_bad_input(make, text):
    with pytest.raises(ValueError, match=text):
        make()


def test_only_profiles_compose():
    with pytest.raises(TypeError, match="must be a PrivacyProfile"):
        Clones(10, 1.0).compose(3)


@pytest.mark.slow
@pytest.mark.parametrize(("trials", "prob", "times"), [(2, 0.7256558657658567, 2), (2, 0.11029901348918061, 3), (0, 0.4, 2)])
def test_an_upper_side_without_spread_between_losses(trials, prob, times):
    # The larger delta of both orders is constant up to a large eps, because infinite losses alone determine it, although each order
    # also has finite losses.
    noise = BinomialNoise(trials, prob)
    composed, g = noise.self_compose(times), Fraction(prob)
    law = [math.comb(trials, k) * g**k * (1 - g) ** (trials - k) for k in range(trials + 1)]
    here, there = [*law, Fraction(0)], [Fraction(0), *law]
    for p, q in ((here, there), (there, here)):
        exact = sum(max(Fraction(0), math.prod(a) - math.prod(b)) for a, b in
                    zip(itertools.product(p, repeat=times), itertools.product(q, repeat=times)))
        assert exact <= Fraction(composed.delta(0.0))
    assert Fraction(composed.delta(0.0, bound="lower")) <= exact
    assert composed.delta(1.0, bound="lower") <= composed.delta(1.0)


@pytest.mark.slow
def test_an_answer_is_kept():
    """The bound at one eps stays the same after other eps were evaluated on finer grids."""
    many = DominatingPair.from_pmfs(logs([0.3, 0.3, 0.4]), logs([0.1, 0.5, 0.4])).self_compose(3)
    many = many.compose(ShuffledBits(3, 0.25).pair(2), rtol=1e-9)
    for delta in (0.3, 0.1, 1e-3):
        eps, least = many.epsilon(delta), many.epsilon(delta, bound="lower")
        many.log_delta(np.linspace(0, 3, 7))
        assert many.delta(eps) <= delta <= many.delta(least, bound="lower") or least == 0


def test_a_larger_rtol_takes_a_coarser_grid_that_encloses_the_finer_one():
    # The losses of binomial noise have a preferred spacing.
    fine, coarse = (BinomialNoise(10**4, 0.5).self_compose(10, rtol=rtol) for rtol in (1e-5, 1e-2))
    assert coarse._product.composer.steps.first > 10 * fine._closed.composer.steps.first
    low, high = (coarse.epsilon(1e-6, bound=bound) for bound in ("lower", "upper"))
    assert low <= fine.epsilon(1e-6)
    assert fine.epsilon(1e-6, bound="lower") <= high
    assert high - low <= 1e-2 * high


@pytest.mark.slow
def test_lower_bound_of_a_release_with_few_samples():
    # The supporting line beyond the last sample gives an isolated loss, which would reduce the lower bound to a tenth if it were on
    # a grid of the permitted length.
    many = GeometricMechanism(0.54445, 3, bound=345).shuffled(2523544236).self_compose(30)
    assert many.epsilon(1e-6) < 1.3 * many.epsilon(1e-6, bound="lower")
