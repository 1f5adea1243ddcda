"""Random allocation against quadrature, exact multinomial sums, and importance sampling."""

import itertools
import math
import pickle
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shufflebounds import InconsistentBoundsError, InfeasibleError
from shufflebounds._engines.allocation.grid_sums import GridLaw, StopLoss
from shufflebounds._engines.allocation.listed import ListedAllocation
from shufflebounds._engines.allocation.ratios import gaussian_ratios, laplace_ratios
from shufflebounds._engines.allocation.stop_loss import Allocation
from shufflebounds._engines.excess import evaluation
from shufflebounds.mechanisms import (
    DiscreteGaussianMechanism,
    GaussianMechanism,
    GeometricMechanism,
    KaryResponse,
    LaplaceMechanism,
    RandomizedResponse,
)
from shufflebounds.profile import DominatingPair
from shufflebounds.sampling import AllocationPair, RandomAllocation
from shufflebounds.shuffle import BinomialNoise, ShuffledBits
from tests.strategies import slow


def encloses(pair, eps, exact, rtol):
    low, high = pair.delta(eps, bound="lower"), pair.delta(eps)
    assert low <= exact <= high
    assert high - low <= rtol * exact


def gaussian_stop_loss(k, s):
    """Return E max(0, L - k) and E max(0, k - L) for the ratio L of N(1, s^2) to N(0, s^2)."""
    if k <= 0:
        return 1 - k, mp.mpf(0)
    z, half = s * mp.log(k), 1 / (2 * s)
    call = mp.ncdf(half - z) - k * mp.ncdf(-half - z)
    return call, k * mp.ncdf(z + half) - mp.ncdf(z - half)


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "eps"), [(2.0, 0.1), (0.7, 1.0)])
def test_two_steps_against_quadrature(sigma, eps):
    with mp.workdps(20):
        s, weight = mp.mpf(sigma), mp.e ** mp.mpf(eps)

        def density(loss):
            return mp.npdf(loss, -1 / (2 * s * s), 1 / s)

        knots = [-12 / s, -3, 0, mp.log(2 * weight), 3 + mp.log(2 * weight), 14 / s]
        remove = mp.quad(lambda x: density(x) * gaussian_stop_loss(2 * weight - mp.e**x, s)[0], knots) / 2
        knots = [-16 / s, -4, -1, mp.log(2 / weight)]
        add = mp.quad(lambda x: density(x) * gaussian_stop_loss(2 / weight - mp.e**x, s)[1], knots) * weight / 2
    first, second = RandomAllocation(GaussianMechanism(sigma), 2).pairs()
    encloses(first, eps, float(remove), 1e-2)
    encloses(second, eps, float(add), 1e-2)


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "depth"), [
    (8.0, 13), (12.0, 13), (12.0, 22), (40.0, 17), (1e4, 13), (1e4, 22),
])
def test_two_steps_at_a_tiny_delta(sigma, depth):
    """An earlier version counted ratios of a mass of e^-75 as infinite at every scale."""
    eps = depth / (sigma * math.sqrt(2))
    with mp.workdps(40):
        s, weight = mp.mpf(sigma), mp.e ** mp.mpf(eps)
        end = min(mp.log(2 * weight), eps + 26 / s)
        knots = [*mp.linspace(-12 / s, end, 25), end + 2 / s, end + 10 / s]
        exact = float(mp.log(mp.quad(lambda x: mp.npdf(x, -1 / (2 * s * s), 1 / s)
                                     * gaussian_stop_loss(2 * weight - mp.e**x, s)[0], knots) / 2))
    pair = AllocationPair(GaussianMechanism(sigma), 2)
    lower, upper = pair.log_delta(eps, bound="lower"), pair.log_delta(eps)
    assert lower <= exact <= upper
    assert upper - lower < -3e-4 * exact
    assert exact < -76


def two_laplace_steps(scale, eps):
    """Return log delta of allocation to one of two steps with Laplace noise, if the record is removed, by integration."""
    b, level = mp.mpf(scale), 2 * mp.exp(mp.mpf(eps))
    least, most = mp.exp(-1 / b), mp.exp(1 / b)
    # The ratio of a step is `least` below the output 0, `most` above 1, and ratio(x) at x between them.
    below, above = mp.mpf(1) / 2, mp.exp(-1 / b) / 2

    def ratio(x):
        return mp.exp((2 * x - 1) / b)

    def excess(other):
        # The integral of (other + ratio(x) - level)_+ with the density e^(-x/b)/(2 b) of the outputs between 0 and 1.
        first = min(max((b * mp.log(level - other) + 1) / 2, mp.mpf(0)), mp.mpf(1))
        return ((other - level) * (mp.exp(-first / b) - mp.exp(-1 / b)) + 1 - mp.exp((first - 1) / b)) / 2

    single = above**2 * max(2 * most - level, 0) + 2 * below * above * max(least + most - level, 0)
    one = 2 * below * excess(least) + 2 * above * excess(most)
    return float(mp.log((single + one + mp.quad(lambda x: mp.exp(-x / b) / (2 * b) * excess(ratio(x)), [0, 0.5, 1])) / 2))


@pytest.mark.parametrize("scale", [3.0, slow(100.0), 16108.591803024483, slow(1e6), slow(1e8), 1e9, slow(1e12)])
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_two_steps_with_laplace_noise_of_any_scale(scale, share):
    eps = share / scale
    with mp.workdps(50):
        exact = two_laplace_steps(scale, eps)
    pair = AllocationPair(LaplaceMechanism(scale), 2, removed=True)
    lower, upper = pair.log_delta(eps, bound="lower"), pair.log_delta(eps)
    assert lower <= exact <= upper
    # Ratios that are all within 1e-8 of 1 have only the bound of one step.
    assert scale > 1e8 or upper - lower < 1e-4


@pytest.mark.parametrize("removed", [True, False])
@pytest.mark.parametrize("sigma", [5.0, 30.0, 100.0, 1e3, 1e6, 1e9, 1e12])
def test_many_steps_of_noise_of_any_scale(sigma, removed):
    # The mean of 400 likelihood ratios, each with the variance 1/sigma^2, is nearly normal with the deviation 1/(20 sigma). So the
    # total variation distance is 1/(20 sigma sqrt(2 pi)).
    limit = -math.log(20 * sigma * math.sqrt(2 * math.pi))
    pair = AllocationPair(GaussianMechanism(sigma), 400, removed)
    assert pair.log_delta(0.0, bound="lower") - 0.01 <= limit <= pair.log_delta(0.0) + 0.01
    if sigma < 1e7:
        assert pair.log_delta(0.0) - pair.log_delta(0.0, bound="lower") < 1e-3


@pytest.mark.parametrize("scale", [4e9, slow(1e12)])
@pytest.mark.parametrize("noise", [GaussianMechanism, LaplaceMechanism])
@pytest.mark.parametrize("chosen", [slow(1), 2])
def test_releases_of_noise_of_a_large_scale_leak_at_most_the_noise_as_often(noise, scale, chosen):
    """The allocation has only the bound of one step here. An earlier version took its losses from its lower bound, 0."""
    mechanism = noise(scale)
    epoch, whole = RandomAllocation(mechanism, 10, chosen), mechanism.self_compose(2 * chosen)
    # By the central limit theorem, the mean of ten likelihood ratios minus 1 is nearly normal. The variance of a ratio is at least
    # about that of normal noise of this scale, and each release contains an epoch with one chosen step.
    least = math.sqrt(2 / 10) / (scale * math.sqrt(2 * math.pi))
    assert 0.9 * least <= epoch.self_compose(2).delta(0.0) <= 1.05 * whole.delta(0.0)
    assert epoch.delta(0.0) <= 1.05 * mechanism.self_compose(chosen).delta(0.0)
    eps = 1 / scale
    assert epoch.self_compose(2).delta(eps) <= 1.05 * whole.delta(eps)


def test_three_steps_against_the_grid():
    """The sum of three ratios is computed by a direct convolution on a fine grid of outcomes."""
    y = np.linspace(-9, 10, 401)
    weight = np.exp(-y * y / 2)
    weight /= weight.sum()
    ratio = np.exp(y - 0.5)
    ratio /= weight @ ratio
    two = np.add.outer(ratio, ratio)
    both = np.multiply.outer(weight, weight)
    exact = sum(w * float((both * np.maximum(two + r - 3 * math.exp(0.25), 0)).sum()) for w, r in zip(weight, ratio)) / 3
    pair = AllocationPair(GaussianMechanism(1.0), 3)
    # The reference value has the error of a trapezoidal rule for a function with kinks.
    assert pair.delta(0.25, bound="lower") * (1 - 2e-4) <= exact <= pair.delta(0.25) * (1 + 2e-4)


def multinomial(p, q, steps, eps, removed):
    """Return the exact divergence between (P in one random step, Q in all other steps) and Q^t, by the counts of outcomes."""
    weight = Fraction(math.exp(eps))
    total = Fraction(0)
    for counts in itertools.product(range(steps + 1), repeat=len(p)):
        if sum(counts) != steps:
            continue
        ways = math.factorial(steps)
        for c in counts:
            ways //= math.factorial(c)
        mass = ways * math.prod(b**c for b, c in zip(q, counts))
        mean = sum(c * a / b for a, b, c in zip(p, q, counts)) / steps
        total += mass * max((mean - weight) if removed else (1 - weight * mean), 0)
    return float(total)


@pytest.mark.parametrize(("steps", "eps"), [(1, 0.25), (4, 0.1), (9, 0.0)])
@pytest.mark.parametrize("removed", [True, False])
def test_discrete_mechanisms_by_counts(steps, eps, removed):
    keep = Fraction(math.exp(1.0)) / (1 + Fraction(math.exp(1.0)))
    exact = multinomial([keep, 1 - keep], [1 - keep, keep], steps, eps, removed)
    encloses(AllocationPair(RandomizedResponse(1.0), steps, removed), eps, exact, 1e-6)
    # The mechanism has three outcomes with the likelihood ratios e, 1 and 1/e.
    mechanism = GeometricMechanism(1.0, sensitivity=2)
    listed = mechanism._pair_info().atoms
    p = [Fraction(math.exp(x)) for x in listed.log_p]
    p = [x / sum(p) for x in p]
    exact = multinomial(p, p[::-1], steps, eps, removed)
    encloses(AllocationPair(mechanism, steps, removed), eps, exact, 1e-6)


def test_laplace_by_sampling():
    rng = np.random.default_rng(5)
    noise = rng.laplace(size=(200_000, 10))
    ratio = np.exp(np.abs(noise) - np.abs(noise - 1))
    gain = np.maximum(ratio.mean(axis=1) - math.exp(0.25), 0)
    pair = AllocationPair(LaplaceMechanism(1.0), 10)
    assert abs(gain.mean() - pair.delta(0.25)) < 5 * gain.std() / math.sqrt(gain.size)
    assert pair.delta(0.25) / pair.delta(0.25, bound="lower") < 1.005


@pytest.mark.slow
def test_a_thousand_steps_by_importance_sampling():
    """Outputs are drawn from Q^t with one step shifted by 5; the importance weight averages over which step is shifted."""
    rng = np.random.default_rng(7)
    values, shift = [], 5.0
    for _ in range(40):
        y = rng.standard_normal((2000, 1000))
        y[:, 0] += shift
        weight = 1 / np.exp(shift * y - shift**2 / 2).mean(axis=1)
        values.append(weight * np.maximum(np.exp(y - 0.5).mean(axis=1) - math.exp(0.2), 0))
    values = np.concatenate(values)
    error = values.std() / math.sqrt(values.size)
    pair = AllocationPair(GaussianMechanism(1.0), 1000)
    assert pair.delta(0.2, bound="lower") - 4 * error <= values.mean() <= pair.delta(0.2) + 4 * error
    assert 2.0326e-7 <= pair.delta(0.2, bound="lower") <= pair.delta(0.2) <= 2.0466e-7
    assert error < 0.1 * values.mean()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sigma", "steps", "eps"), [(1.0, 10**6, 0.005), (0.5, 10**6, 2.0), (0.5, 1000, 8.0)]
)
def test_gap_below_one_per_cent(sigma, steps, eps):
    for pair in RandomAllocation(GaussianMechanism(sigma), steps).pairs():
        low, high = pair.log_delta(eps, bound="lower"), pair.log_delta(eps)
        assert low <= high
        # The gap is limited for delta >= 1e-12.
        assert high - low < 0.01 or high < -27.7


@pytest.mark.slow
def test_many_chosen_steps_are_bounded_from_above():
    one = RandomAllocation(GaussianMechanism(4.0), 20)
    two = RandomAllocation(GaussianMechanism(4.0), 40, chosen=2)
    # The lower bound is that of one step, which the record enters with probability 2/40.
    assert 0 < two.delta(0.1, bound="lower") <= two.delta(0.1)
    assert two.delta(0.1) == pytest.approx(one.self_compose(2).delta(0.1), rel=1e-2)
    with pytest.raises(TypeError, match="composition"):
        two.pairs()


def test_one_step_is_the_mechanism():
    mechanism = LaplaceMechanism(1.0)
    for pair in RandomAllocation(mechanism, 1).pairs():
        assert pair.delta(0.25, bound="lower") <= mechanism.delta(0.25) <= pair.delta(0.25) * (1 + 1e-12)


def test_relations_and_pickles():
    epoch = RandomAllocation(RandomizedResponse(1.0), 10)
    assert epoch.relation == "add-remove"
    with pytest.raises(ValueError, match="ReplaceOne"):
        epoch.compose(ShuffledBits(100, 0.25))
    assert pickle.loads(pickle.dumps(epoch)) == epoch
    assert epoch.pairs()[0].reverse() == epoch.pairs()[1]


def test_bad_arguments():
    with pytest.raises(ValueError, match="steps="):
        RandomAllocation(GaussianMechanism(1.0), 0)
    with pytest.raises(ValueError, match="chosen="):
        RandomAllocation(GaussianMechanism(1.0), 5, chosen=6)
    with pytest.raises(TypeError, match="PrivacyProfile"):
        RandomAllocation("x", 5)
    with pytest.raises(TypeError, match="outcomes"):
        RandomAllocation(BinomialNoise(100, 0.5), 5)


# The following tests are for the distributions of ratios on a grid (`GridLaw`), one for each bound, and for stop-loss values.


@pytest.mark.parametrize("noise", [
    GaussianMechanism(0.05), slow(GaussianMechanism(1e-5)), LaplaceMechanism.from_eps(eps=400.0),
    LaplaceMechanism.from_eps(eps=1e4),
])
def test_noise_whose_squared_ratios_overflow_is_refused(noise):
    with pytest.raises(InfeasibleError, match="noise must be larger"):
        RandomAllocation(noise, 10).epsilon(1e-6)


@pytest.mark.parametrize("ratios", [gaussian_ratios(1.0), gaussian_ratios(2.0), laplace_ratios(0.5)])
def test_grids_of_ratios_reach_their_top(ratios):
    # A ratio between the last grid point and the largest ratio would have no grid point above it, and the upper distribution would
    # not be larger.
    law = Allocation(ratios, 4)
    least = math.exp(law.loss_range[0])
    for top, step in itertools.product((least + 0.7, least + 2.3, least + 11.0), (0.1, 0.037, 0.25)):
        grid = law._laid(top, step)
        assert grid.top >= top * (1 - 1e-15)
        assert grid.top < top + step
        assert grid.anchor <= least


@pytest.mark.parametrize("times", [1, 2, 7])
def test_sums_against_direct_convolution(times):
    mass = np.array([0.5, 0.125, 0.0, 0.25, 0.0625, 0.0625])
    law = GridLaw(0.25, 0.5, mass)
    direct = np.ones(1)
    for _ in range(times):
        direct = np.convolve(direct, mass)
    values = 0.25 * times + 0.5 * np.arange(direct.size)
    levels = np.linspace(-1.0, values[-1] + 1, 77)
    exact = np.maximum(values[:, None] - levels, 0).T @ direct
    low, high = (np.exp(StopLoss(law, times, upper=upper).log_stop_loss(levels)) for upper in (False, True))
    assert (low <= exact * (1 + 1e-15)).all()
    assert (exact <= high * (1 + 1e-15)).all()
    np.testing.assert_allclose(low[exact > 0], high[exact > 0], rtol=1e-6)


@pytest.mark.parametrize("step", [0.125, 4.0])
def test_the_bound_below_the_floor_is_an_upper_bound(step):
    mass = np.array([0.5, 0.25, 0.125, 0.125])
    law = GridLaw(0.0, step, mass)
    direct = np.ones(1)
    for _ in range(20):
        direct = np.convolve(direct, mass)
    levels = step * np.linspace(5, 59, 40)
    exact = np.maximum(step * np.arange(direct.size)[:, None] - levels, 0).T @ direct
    bound = StopLoss(law, 20, upper=True).log_stop_loss(levels, floor=math.inf)
    assert (bound >= np.log(exact)).all()
    # A Chernoff bound exceeds the value by a factor of about the tilted standard deviation.
    assert (bound <= np.log(exact) + 6).all()


# The following tests show that answers do not depend on earlier questions.

QUESTIONS = {
    "delta(0.1)": lambda one: one._log_delta(np.array([0.1])),
    "delta(0.9)": lambda one: one._log_delta(np.array([0.9])),
    "a few": lambda one: one._log_delta(np.array([2.0, 0.0, 0.35])),
    "eps": lambda one: one.epsilon(1e-6),
}
# The sums of the ratios of seven outcomes are not enumerated.
NOISES = [GaussianMechanism(2.0), LaplaceMechanism(1.0), GeometricMechanism(1.0, sensitivity=6)]


def same_after(make, before, question):
    """Assert that a question has the same answer, bit by bit, after other questions as for a new object."""
    used = make()
    for one in before:
        QUESTIONS[one](used)
    np.testing.assert_array_equal(QUESTIONS[question](used), QUESTIONS[question](make()))


@pytest.mark.parametrize("mechanism", NOISES)
def test_answers_do_not_depend_on_earlier_ones(mechanism):
    same_after(lambda: AllocationPair(mechanism, 20), ["delta(0.9)", "a few"], "delta(0.1)")


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(
    mechanism=st.sampled_from([*NOISES, GaussianMechanism(0.6)]), steps=st.sampled_from([3, 40, 2000]), removed=st.booleans(),
    before=st.lists(st.sampled_from(list(QUESTIONS)), max_size=3), question=st.sampled_from(list(QUESTIONS)),
)
def test_answers_do_not_depend_on_any_earlier_ones(mechanism, steps, removed, before, question):
    same_after(lambda: AllocationPair(mechanism, steps, removed), before, question)
    # Both directions use the same transforms.
    same_after(lambda: RandomAllocation(mechanism, steps), before, question)


@pytest.mark.parametrize("mechanism", [pytest.param(NOISES[0], marks=pytest.mark.slow), *NOISES[1:]])
def test_a_value_does_not_depend_on_the_others_of_its_array(mechanism):
    eps = np.array([1.5, 0.05, 0.3, 0.75])
    for removed in (True, False):
        pair = AllocationPair(mechanism, 30, removed)
        together = pair._log_delta(eps)
        for i, one in enumerate(eps):
            alone = AllocationPair(mechanism, 30, removed)._log_delta(np.array([one]))
            assert (alone.lower[0], alone.upper[0]) == (together.lower[i], together.upper[i])


# The following tests are for the larger delta of both directions, and for sums that share a transform.


@pytest.mark.parametrize(("mechanism", "eps"), [
    (DiscreteGaussianMechanism(1.3), 0.01), (DiscreteGaussianMechanism(1.3), 0.3), slow(DiscreteGaussianMechanism(1.3), 1.5),
    slow(DiscreteGaussianMechanism(5.0), 0.3),
], ids=repr)
def test_either_direction_of_enumerated_outcomes_counts(mechanism, eps):
    # Chernoff's bound decides whether the direction with an added record is evaluated.
    whole = RandomAllocation(mechanism, 6)
    low, high = whole.log_delta(eps, bound="lower"), whole.log_delta(eps)
    for pair in whole.pairs():
        own = pair.log_delta(eps, bound="lower"), pair.log_delta(eps)
        assert own[0] <= high
        assert own[1] <= high + 1e-9
    assert low == max(pair.log_delta(eps, bound="lower") for pair in whole.pairs())
    engine = whole.pairs()[1]._engine
    assert engine.add_at_most(np.array([eps]))[0] >= whole.pairs()[1].log_delta(eps, bound="lower")


@pytest.mark.slow
def test_curve_of_enumerated_outcomes_is_between_those_of_its_lines():
    whole = RandomAllocation(DiscreteGaussianMechanism(5.0), 100)
    below, above = (whole.tradeoff(bound=bound).beta(0.05) for bound in ("lower", "upper"))
    lines = [1 - whole.delta(eps, bound="lower") - math.exp(eps) * 0.05 for eps in np.linspace(0, 0.1, 6)]
    assert max(lines) - 1e-4 <= below <= above <= below + 1e-4


@pytest.mark.slow
def test_sums_that_share_a_transform_bound_those_that_do_not(monkeypatch):
    # At most 12 of the 10**6 ratios are large. For each number `large` of them, the sum of the other 10**6 - large ratios is
    # needed; sums of nearly equal length share one transform.
    pair, eps = AllocationPair(GaussianMechanism(0.5), 10**6), 0.5632
    shared = [float(pair.log_delta(eps, bound=bound)) for bound in ("lower", "upper")]
    monkeypatch.setattr(Allocation, "_shared", lambda self, large, *, upper: self.steps - large)
    alone = AllocationPair(GaussianMechanism(0.5), 10**6)
    apart = [float(alone.log_delta(eps, bound=bound)) for bound in ("lower", "upper")]
    assert shared[0] <= apart[0] <= apart[1] <= shared[1]
    assert apart[0] - shared[0] < 1e-5
    assert shared[1] - apart[1] < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize(("mechanism", "delta"), [
    (GaussianMechanism(1.1165), 1e-33), (GaussianMechanism(1.1165), 1e-278),
    (GaussianMechanism(0.4), 1e-100),
])
def test_no_delta_is_larger_than_that_of_one_step(mechanism, delta):
    epoch = RandomAllocation(mechanism, 41)
    assert 0 < epoch.epsilon(delta, bound="lower") <= epoch.epsilon(delta) <= mechanism.epsilon(delta) * (1 + 1e-8)
    eps = mechanism.epsilon(1e-290)
    assert epoch.log_delta(eps, bound="lower") <= epoch.log_delta(eps) <= mechanism.log_delta(eps)


def test_one_level_of_a_curve_needs_few_values_of_delta(monkeypatch):
    values, original = [], ListedAllocation._sides

    def counted(engine, eps, *rest):
        values.extend(eps.tolist())
        return original(engine, eps, *rest)

    monkeypatch.setattr(ListedAllocation, "_sides", counted)
    epoch = RandomAllocation(KaryResponse(94, 0.219), 1676)
    # Both whole curves take about 500 values, and enclose f(0.05) by 0.949913640 and 0.949914555.
    assert 0.94991364 < epoch.tradeoff().beta(0.05) <= epoch.tradeoff(bound="upper").beta(0.05) < 0.949914555
    assert len(values) < 120


def test_no_sum_is_evaluated_where_masses_that_are_too_small_decide(monkeypatch):
    evaluated, original = [], evaluation.sums
    monkeypatch.setattr(evaluation, "sums", lambda *rest: evaluated.append(rest) or original(*rest))
    epoch = RandomAllocation(DiscreteGaussianMechanism(6.847), 717_214)
    # log E S_+ of the other outcomes is about -3.5e6, and every value took three evaluations of up to a second.
    assert 0 == epoch.loss_tail(1.0, bound="lower") <= epoch.loss_tail(1.0) < 1e-300
    assert len(evaluated) < 12


def test_deep_bounds_follow_from_whole_orders():
    pair = AllocationPair(GaussianMechanism(1.8), 4116)
    # The stop-loss transform counts a mass of e^-75 as infinite ratios. A loss of 5 needs a ratio of 4116 e^5 in the record's step,
    # which has a log probability of about -280.
    assert -300 < pair.log_delta(5.0) < -260


@pytest.mark.parametrize("mechanism", [LaplaceMechanism(1.0), GaussianMechanism(1.8)])
@pytest.mark.parametrize("order", [1.3, slow(255.5)])
def test_orders_between_whole_ones(mechanism, order):
    pair = AllocationPair(mechanism, 12)
    between, (lower, upper) = pair._forms._between(order), pair._samples._divergences(np.array([order]), False)[0]
    assert between.lower <= upper
    assert lower <= between.upper
    assert 0 <= between.lower <= between.upper


@pytest.mark.parametrize("sigma", [1.0, slow(2.0), slow(30.0), 100.0])
@pytest.mark.parametrize("order", [slow(257), slow(300), 1000])
def test_orders_above_the_largest_whole_one_that_is_computed(sigma, order):
    # The moments of a mean of two likelihood ratios are binomial sums of those of one: E L^k = e^(k (k - 1)/(2 sigma^2)).
    with mp.workdps(50):
        def moment(k):
            return mp.exp(mp.mpf(k) * (k - 1) / (2 * mp.mpf(sigma) ** 2))

        exact = float(mp.log(mp.fsum(mp.binomial(order, k) * moment(k) * moment(order - k) for k in range(order + 1))
                             / mp.mpf(2) ** order) / (order - 1))
    pair = AllocationPair(GaussianMechanism(sigma), 2)
    lower = pair.rdp(order, bound="lower")
    assert pair.rdp(256, bound="lower") <= lower <= exact <= pair.rdp(order)
    assert order > 300 or lower > 0.9 * exact


@pytest.mark.parametrize(("p", "q"), [
    ([0.5, 0.5 + 8e-10], [0.3, 0.7]), ([0.5, 0.5], [0.3, 0.7 + 8e-10]), ([0.5, 0.5 - 8e-10], [0.3, 0.7]),
    ([0.5, 0.5 - 9.9e-10], [0.3, 0.7 - 1e-14]), ([1 - 1e-6, 1e-6 + 8e-10], [1.0, 0.0]), ([1 - 1e-6, 1e-6 - 8e-10], [1.0, 0.0]),
])
@pytest.mark.parametrize("removed", [True, False])
def test_sums_of_lists_whose_masses_do_not_sum_to_one(p, q, removed):
    # Many steps are not enumerated: their engine takes the same outcomes.
    with np.errstate(divide="ignore"):
        pair = DominatingPair.from_pmfs(np.log(p), np.log(q))
    listed = AllocationPair(pair, 4)._listed()
    engine = ListedAllocation(*listed, 4)
    first, second = ([Fraction(x) / max(sum(map(Fraction, law)), 1) for x in law] for law in (p, q))
    for eps in (0.0, 0.1):
        lower, upper = (engine.remove if removed else engine.add)(np.array([eps]))
        if second[1]:
            exact = math.log(multinomial(first, second, 4, eps, removed))
        else:
            # The second outcome identifies the record's step.
            exact = first[1] if removed else max(1 - Fraction(math.exp(eps)) * first[0], 0)
            exact = math.log(exact) if exact else -math.inf
        assert lower[0] <= exact <= upper[0]


@pytest.mark.parametrize("removed", [True, False])
def test_a_lower_bound_above_the_upper_one_is_an_error(removed, monkeypatch):
    # It was replaced by the upper bound, so a wrong lower bound was not noticed.
    name = "remove" if removed else "add"
    right = getattr(Allocation, name)

    def wrong(engine, *args, **kwargs):
        lower, upper = right(engine, *args, **kwargs)
        return lower + 1.0, upper

    monkeypatch.setattr(Allocation, name, wrong)
    with pytest.raises(InconsistentBoundsError):
        AllocationPair(GaussianMechanism(1.7), 7, removed=removed).log_delta(0.3)
