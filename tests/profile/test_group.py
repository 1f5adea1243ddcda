"""Groups: a person who holds several messages, against enumerations of all datasets and of all values of the person."""

import itertools
import math
from functools import partial

import numpy as np
import pytest

from shufflebounds.composition import from_dict, group_privacy
from shufflebounds.mechanisms import (
    DiscreteGaussianMechanism,
    FiniteRandomizer,
    GaussianMechanism,
    GeometricMechanism,
    KaryResponse,
    LaplaceMechanism,
    RandomizedResponse,
    Rappor,
)
from shufflebounds.profile import Composition, DominatingPair, Group
from shufflebounds.profile.chain import Chain
from shufflebounds.sampling import ReplaceOne, WithoutReplacement
from shufflebounds.shuffle import (
    BinomialNoise,
    ClearReports,
    Clones,
    FlippedReports,
    GeometricDummies,
    PersonalizedBits,
    PersonalizedClones,
    RealSum,
    Shuffled,
    ShuffledBits,
    ShuffledHistogram,
    StrongerClones,
    ZeroSum,
)
from tests.oracles import messages
from tests.strategies import slow, thinned


def hockey_stick(first, second, eps):
    return sum(max(p - math.exp(eps) * second.get(key, 0.0), 0.0) for key, p in first.items())


def largest(matrix, users, size, eps):
    """Return delta over all values of the other users and all pairs of values of the person's `size` messages."""
    inputs, best = range(len(matrix)), 0.0
    for others in itertools.combinations_with_replacement(inputs, users - size):
        laws = [messages(*[matrix[x] for x in (*others, *own)]) for own in itertools.combinations_with_replacement(inputs, size)]
        best = max(best, max(hockey_stick(p, q, eps) for p, q in itertools.permutations(laws, 2)))
    return best


def encloses(profile, eps, exact, close=math.inf):
    lower, upper = profile.delta(eps, bound="lower"), profile.delta(eps)
    assert lower <= exact * (1 + 1e-9) + 1e-15, (profile, eps, lower, exact)
    assert exact * (1 - 1e-9) - 1e-15 <= upper <= close * exact + 1e-13, (profile, eps, exact, upper)


def kary(bins, budget):
    other = 1 / (math.exp(budget) + bins - 1)
    return np.full((bins, bins), other) + np.diag([other * math.expm1(budget)] * bins)


@pytest.mark.parametrize(("users", "size", "flip"), [(6, 2, 0.2), (7, 3, 0.3), (5, 5, 0.1), (6, 4, 0.45)])
def test_bits_are_exact_over_all_datasets_and_values(users, size, flip):
    matrix = [[1 - flip, flip], [flip, 1 - flip]]
    total = RealSum(users, 2 * users * flip, 1)
    for eps in (0.0, 0.4, 1.5, 3.0):
        exact = largest(matrix, users, size, eps)
        for one in (ShuffledBits(users, flip), total):
            encloses(one.for_group(size), eps, exact, 1 + 1e-8)


def test_dummy_zeros_and_numbers_of_several_bits():
    flip = 0.2
    zero, one = [1 - flip, flip], [flip, 1 - flip]
    for eps in (0.2, 1.0):
        best = max(hockey_stick(*(messages(*[zero] * (4 - ones) + [one] * ones + own) for own in pair), eps)
                   for ones in (0, 1, 2) for pair in itertools.permutations(([zero] * 2, [one] * 2, [zero, one]), 2))
        encloses(ShuffledBits(4, flip, fakes=2).for_group(2), eps, best)
        # Two users of a sum of two bits hold four bits of the total.
        encloses(RealSum(4, 8 * flip, 2).for_group(2), eps, largest([zero, one], 8, 4, eps), 1 + 1e-8)


@pytest.mark.parametrize(("bins", "budget", "users", "size"), [(3, 1.0, 5, 2), (3, 2.0, 4, 2), (3, 0.7, 4, 3), (4, 1.5, 4, 2)])
def test_shuffled_randomizers_bound_all_datasets_and_values(bins, budget, users, size):
    person = KaryResponse(bins, budget).shuffled(users).for_group(size)
    for eps in (0.1, 0.5, 1.8):
        encloses(person, eps, largest(kary(bins, budget), users, size, eps), 1.5)


def test_a_matrix_with_zeros():
    matrix = [[0.5, 0.5, 0.0], [0.0, 0.25, 0.75], [0.25, 0.5, 0.25]]
    person = FiniteRandomizer(matrix).shuffled(4).for_group(2)
    for eps in (0.0, 0.7, 2.0):
        encloses(person, eps, largest(matrix, 4, 2, eps))


@pytest.mark.parametrize(("fakes", "bins", "size"), [(5, 2, 2), (5, 3, 2), (4, 3, 3)])
def test_clear_reports(fakes, bins, size):
    dummies = [np.full(bins, 1 / bins)] * fakes
    laws = [messages(*[*dummies, *(np.eye(bins)[x] for x in own)])
            for own in itertools.combinations_with_replacement(range(bins), size)]
    for eps in (0.0, 0.5, 1.5):
        encloses(ClearReports(fakes, max(bins, 2)).for_group(size), eps,
                 max(hockey_stick(p, q, eps) for p, q in itertools.permutations(laws, 2)))


def test_a_histogram_whose_users_all_move():
    users, gamma, size = 5, 0.3, 2
    noise = [math.comb(users, k) * (1 - gamma)**k * gamma**(users - k) for k in range(users + 1)]
    first, second = ({(i + a, j + b): p * q for i, p in enumerate(noise) for j, q in enumerate(noise)}
                     for a, b in ((size, 0), (0, size)))
    for eps in (0.0, 0.5, 1.5):
        encloses(ShuffledHistogram(users, 2, gamma).for_group(size), eps, hockey_stick(first, second, eps))


@pytest.mark.parametrize(("trials", "prob", "size"), [(9, 0.5, 2), (12, 0.3, 3), (4, 0.3, 6)])
def test_binomial_noise_is_exact(trials, prob, size):
    masses = [math.comb(trials, k) * prob**k * (1 - prob)**(trials - k) for k in range(trials + 1)]
    laws = [{k + shift: p for k, p in enumerate(masses)} for shift in range(size + 1)]
    for eps in (0.0, 0.3, 2.0):
        exact = max(max(hockey_stick(laws[0], law, eps), hockey_stick(law, laws[0], eps)) for law in laws)
        encloses(BinomialNoise(trials, prob).for_group(size), eps, exact, 1 + 1e-9)
        if prob <= 0.5 and size <= trials:
            encloses(ZeroSum(trials, prob).for_group(size), eps, exact, 1 + 1e-9)


@pytest.mark.parametrize(("one", "larger"), [
    (GaussianMechanism(5.0, 0.5), GaussianMechanism(5.0, 1.5)), (LaplaceMechanism(2.0), LaplaceMechanism(2.0, 3.0)),
    (GeometricMechanism(0.25, 2), GeometricMechanism(0.75, 6)), (GeometricMechanism(0.25, 2, 20), GeometricMechanism(0.75, 6, 20)),
    (DiscreteGaussianMechanism(3.0, 2), DiscreteGaussianMechanism(3.0, 6))])
def test_noise_has_a_multiple_of_the_sensitivity(one, larger):
    person = one.for_group(3)
    for bound in ("lower", "upper"):
        assert person.epsilon(1e-6, bound=bound) == larger.epsilon(1e-6, bound=bound)
        assert person.gdp_mu(bound=bound) == larger.gdp_mu(bound=bound)
    # 3 * 0.1 is no double: the bounds are those of the two doubles next to it.
    tenth = GaussianMechanism(1.0, 0.1).for_group(3)
    assert tenth.delta(1.0, bound="lower") <= GaussianMechanism(1.0, 0.3).delta(1.0) * (1 + 1e-12) <= tenth.delta(1.0) * (1 + 1e-11)


def smallest(profile, size, eps, breakpoints):
    """Return the smallest bound over all splits if delta is linear in e^eps between breakpoints: all parts except one are among
    these."""
    best = 1.0
    for parts in itertools.product(breakpoints, repeat=size - 1):
        if (rest := eps - sum(parts)) >= 0:
            for place in range(size):
                split = np.array([*parts[:place], rest, *parts[place:]])
                best = min(best, float(np.exp(np.cumsum(split) - split) @ profile.delta(split)))
    return best


@pytest.mark.parametrize(("one", "breakpoints"), [
    (KaryResponse(10**9, 4.0), [0.0, 4.0]), (KaryResponse(4, 1.0), [0.0, 1.0]),
    (FiniteRandomizer([[0.5, 0.25, 0.125, 0.125], [0.125, 0.25, 0.25, 0.375]]), [0.0, *np.log([2.0, 3.0, 4.0])]),
    # The largest delta of six pairs of rows has breakpoints where two of them are equal.
    (FiniteRandomizer([[0.7, 0.3], [0.55, 0.45], [0.1, 0.9]]), np.log([1.0, 3.0, 7.0])),
])
@pytest.mark.parametrize("size", thinned([2, 3, slow(4)], 2))
def test_the_split_of_few_outputs_is_the_best_one(one, breakpoints, size):
    person = one.for_group(size)
    found = np.linspace(1e-3, 0.99, 12) * person.epsilon(0.0)
    deltas = np.array([smallest(one, size, eps, breakpoints) for eps in found.tolist()])
    assert person.delta(found) == pytest.approx(deltas, rel=1e-9, abs=1e-13)


@pytest.mark.parametrize(("one", "size", "low", "high"), [
    (KaryResponse(122445985054, 4.4427405980960515), 3, 0.6, 1.2), (KaryResponse(50, 2.41576239977395), 3, 9e-5, 1.4e-4),
    (FiniteRandomizer([[0.9, 0.05, 0.03, 0.02], [0.2, 0.4, 0.1, 0.3]]), 3, 1.0, 1.1),
    slow(KaryResponse(10, 2.0).shuffled(1000), 3, 0.5, 0.6), (StrongerClones(10**4, 2.0), 100, 17.0, 19.0),
    slow(ShuffledBits(100, 0.25).compose(LaplaceMechanism(2.0)), 2, 1.9, 2.1),
])
def test_the_upper_bound_does_not_rise_with_eps_or_delta(one, size, low, high):
    person = one.for_group(size)
    logs = person.log_delta(np.geomspace(low, high, 12 if size > 50 else 40))
    assert (np.diff(logs) <= 1e-9 * np.maximum(1, 1e-3 * -logs[1:])).all()
    eps = np.array([person.epsilon(delta) for delta in np.exp(np.linspace(logs[-1], logs[0], 7)).tolist()])
    assert (np.diff(eps) <= 1e-9 * eps[:-1]).all()


def test_the_chain_is_close_to_the_exact_group_of_normal_noise():
    for sigma, size, losses, gap in ((5.0, 2, (1.0, 3.0), 1e-8), (5.0, 10, (8.0, 20.0), 1e-8), (30.0, 200, (50.0, 100.0), 2e-3)):
        chain, exact = Chain(GaussianMechanism(sigma), size, math.inf, tuple), GaussianMechanism(sigma, float(size))
        for eps in losses:
            upper, true = float(chain.side(np.array([eps]), True)[0]), float(exact.log_delta(eps))
            assert true <= upper <= true + gap * (1 + abs(true))


@pytest.mark.parametrize(("one", "size", "below", "above"), [
    slow(ShuffledBits(10**4, 0.25), 2, 0.0840378243, 0.0840410659), slow(ShuffledBits(10**4, 0.25), 10, 0.4706160683, 0.4706241584),
    (GaussianMechanism(5.0), 10, 10.9971512142, 10.9971512142),
    # Attained by the dataset in which all others have a third value; the group's upper bound by a trade-off curve.
    (KaryResponse(10, 2.0).shuffled(1000), 5, 1.52494, 1.5400635618),
    slow(KaryResponse(10, 4.0).shuffled(10**4), 10, 4.68943, 4.7117193171)])
def test_known_values(one, size, below, above):
    person = one.for_group(size)
    assert person.epsilon(1e-6, bound="lower") <= below * (1 + 1e-9) + 1e-10
    assert below - 1e-5 <= person.epsilon(1e-6) <= 1.001 * above
    # One pair of eps and delta for one message gives a weaker guarantee.
    pairs = [group_privacy(one.epsilon(delta), delta, size) for delta in np.geomspace(1e-15, 1e-7, 5)]
    assert person.epsilon(1e-6) <= min(pair.eps for pair in pairs if pair.delta <= 1e-6) * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("users", "budget", "size"), [(10**4, 2.0, 10), (10**6, 4.0, 3), (10**6, 1.0, 1000)])
def test_clones_have_the_lower_bound_of_randomized_response(users, budget, size):
    """It is attained: some randomizer of this budget has at least the delta of randomized response, whose group is exact."""
    clones, bits = StrongerClones(users, budget), ShuffledBits(users, 1 / (1 + math.exp(budget)))
    person, exact = clones.for_group(size), bits.for_group(size)
    eps = exact.epsilon(1e-6)
    assert clones.delta(eps) < 0.5 * exact.delta(eps) <= person.delta(eps, bound="lower") * (1 + 1e-9)
    assert person.delta(eps, bound="lower") <= person.delta(eps)
    assert person.epsilon(1e-6, bound="lower") >= 0.85 * person.epsilon(1e-6)


@pytest.mark.slow
def test_several_releases_are_composed_before_they_are_grouped():
    bits, size = ShuffledBits(100, 0.25), 4
    several = bits.self_compose(3).for_group(size)
    lower, upper = several.epsilon(1e-6, bound="lower"), several.epsilon(1e-6)
    assert lower <= upper <= 1.01 * lower
    assert upper <= 1.001 * bits.for_group(size).self_compose(3).epsilon(1e-6)
    noise = GaussianMechanism(5.0)
    assert noise.self_compose(4).for_group(3).epsilon(1e-6) == pytest.approx(GaussianMechanism(5.0, 6.0).epsilon(1e-6), rel=1e-9)
    mixed = ShuffledBits(20, 0.25).compose(KaryResponse(3, 0.5)).for_group(2)
    assert mixed.delta(1.0, bound="lower") <= mixed.delta(1.0)


SAMPLES = GaussianMechanism(1.0).subsampled(0.05), 10


@pytest.mark.slow
def test_groups_may_be_composed_in_either_order():
    """delta was .0515 if the groups were composed, and .0406 if the releases were."""
    (one, times), size = SAMPLES, 2
    each, whole = one.for_group(size).self_compose(times), one.self_compose(times).for_group(size)
    assert each.delta(0.5, bound="lower") <= each.delta(0.5) <= whole.delta(0.5)
    assert "order: the releases are composed" in each.explain(0.5)


@pytest.mark.slow
def test_groups_of_groups_may_be_composed_in_either_order():
    """The group of a composition of groups was twice as large as needed, and two ways to form a group could not be composed."""
    one = KaryResponse(4, 0.3)
    pairs, six = one.for_group(2).self_compose(2).for_group(3), one.for_group(6)
    assert pairs.delta(0.5) <= one.self_compose(2).for_group(6).delta(0.5) * (1 + 1e-6)
    mixed = pairs.compose(six)
    assert mixed.delta(5.0, bound="lower") <= mixed.delta(5.0) < 1


@pytest.mark.slow
def test_lower_bounds_of_groups_in_either_order():
    """One record alone has a positive delta at every eps below the sum of the budgets; the answer was 2e-16."""
    one, size, times = KaryResponse(4, 0.3), 2, 3
    each, whole = one.for_group(size).self_compose(times), one.self_compose(times).for_group(size)
    assert each.epsilon(0.0, bound="lower") == pytest.approx(0.9)
    assert each.delta(0.5, bound="lower") >= whole.delta(0.5, bound="lower") * (1 - 1e-12)


@pytest.mark.slow
def test_every_bound_of_groups_in_either_order():
    parts = [(KaryResponse(4, 0.1), 2), (GaussianMechanism(3.0), 1)]
    each, whole = Composition([(one.for_group(2), times) for one, times in parts]), Composition(parts).for_group(2)
    for ask in (lambda one, **side: one.log_delta(1.0, **side), lambda one, **side: one.gdp_mu(**side),
                lambda one, **side: one.rdp(3.0, **side), lambda one, **side: one.loss_tail(1.0, **side)):
        assert ask(each, bound="lower") <= ask(each) <= ask(whole)
    assert whole.tradeoff().beta(0.05) <= each.tradeoff().beta(0.05) <= each.tradeoff(bound="upper").beta(0.05)


@pytest.mark.slow
def test_questions_beyond_delta():
    clones = StrongerClones(10**4, 2.0)
    person = clones.for_group(100)
    assert person.epsilon(0.0) == pytest.approx(200.0)
    assert person.delta(200.1) == 0
    assert person.gdp_mu() <= 100 * clones.gdp_mu() * (1 + 1e-12)
    assert clones.for_group(1).epsilon(1e-6) == clones.epsilon(1e-6)
    assert (clones.for_group(5).for_group(20)) == person
    assert from_dict(person.to_dict()) == person
    sampled = GaussianMechanism(2.0).subsampled(0.1).self_compose(10)
    assert sampled.for_group(2).rdp(3.0) >= sampled.for_group(2).rdp(3.0, bound="lower") >= sampled.rdp(3.0, bound="lower")
    curve = KaryResponse(3, 1.0).shuffled(50).for_group(3)
    assert curve.tradeoff().beta(0.05) <= curve.tradeoff(bound="upper").beta(0.05)
    text = str(ShuffledBits(100, 0.25).self_compose(2).for_group(3).statement(delta=1e-6))
    assert "up to 3 times to each release" in text
    assert "2 releases of ShuffledBits" in text
    assert "the shuffled bits" in text


@pytest.mark.parametrize(("calibrate", "less"), [
    (lambda **target: ShuffledBits.calibrate(users=10**5, **target), lambda p: ShuffledBits(p.users, 0.98 * p.flip)),
    (BinomialNoise.calibrate, lambda p: BinomialNoise(int(0.98 * p.trials), 0.5)),
    (lambda **target: ZeroSum.calibrate(users=10**4, **target), lambda p: ZeroSum(p.users, 0.98 * p.gamma)),
    (lambda **target: ClearReports.calibrate(bins=20, **target), lambda p: ClearReports(int(0.98 * p.fakes), 20)),
    (lambda **target: StrongerClones.calibrate(local_eps=2.0, **target), lambda p: StrongerClones(int(0.98 * p.users), 2.0)),
    pytest.param(lambda **target: Shuffled.calibrate(KaryResponse(10, 2.0), **target),
                 lambda p: KaryResponse(10, 2.0).shuffled(int(0.98 * p.users)), marks=pytest.mark.slow),
    pytest.param(lambda **target: ShuffledHistogram.calibrate(users=10**5, bins=20, **target),
                 lambda p: ShuffledHistogram(p.users, 20, 0.98 * p.gamma), marks=pytest.mark.slow),
    pytest.param(lambda **target: RealSum.calibrate(users=1000, bits=2, **target),
                 lambda p: RealSum(p.users, 0.98 * p.lam, 2), marks=pytest.mark.slow)])
def test_calibrations_for_a_person_with_several_devices(calibrate, less):
    protocol = calibrate(eps=1.0, delta=1e-6, devices=3)
    assert protocol.for_group(3).delta(1.0) <= 1e-6
    assert protocol.for_group(3).epsilon(1e-6) <= 1.0
    assert less(protocol).for_group(3).delta(1.0) > 1e-6


@pytest.mark.slow
def test_several_releases_and_several_devices():
    protocol = ShuffledBits.calibrate(users=200, eps=1.0, delta=1e-6, devices=2, releases=3)
    assert 0.97 <= protocol.self_compose(3).for_group(2).epsilon(1e-6) <= 1.0
    with pytest.raises(ValueError, match="devices=10 must be at most"):
        ShuffledBits.calibrate(users=5, eps=1.0, delta=1e-6, devices=10)


@pytest.mark.parametrize("calibrate", [
    partial(Clones.calibrate, local_eps=0.005), partial(StrongerClones.calibrate, local_eps=0.005),
    partial(Shuffled.calibrate, KaryResponse(4, 0.005)),
])
def test_the_fewest_users_of_a_small_budget_send_the_messages_of_a_person(calibrate):
    for absent in ({}, {"colluding": 2, "missing": 1}):
        protocol = calibrate(eps=1.0, delta=1e-6, devices=3, **absent)
        assert protocol.users == 3 + sum(absent.values())
        assert protocol.for_group(3).delta(1.0) <= 1e-6


@pytest.mark.parametrize(("size", "message"), [(0, "1"), (2**20 + 1, "1048576"), (1.5, "integer"), (101, "at most users=100")])
def test_sizes(size, message):
    with pytest.raises((ValueError, TypeError), match=message):
        ShuffledBits(100, 0.25).for_group(size)


@pytest.mark.parametrize("one", [
    ShuffledBits(100, 0.25, ones=3), PersonalizedBits([1.0, 2.0], target=0), PersonalizedBits([1.0, 2.0], bits=[0, 1]),
    PersonalizedClones(0.25, [0.3, 0.2]), PersonalizedClones.laplace([0.5, 1.0], target=1),
    DominatingPair.from_pmfs(np.log([0.5, 0.5]), np.log([0.25, 0.75])), ShuffledBits(10, 0.2, ones=3).self_compose(2)])
def test_guarantees_for_one_dataset_or_one_person_have_no_groups(one):
    with pytest.raises(ValueError, match="is a guarantee for"):
        one.for_group(2)


def test_groups_are_not_mixed_with_single_records():
    person = RandomizedResponse(1.0).shuffled(100).for_group(2)
    with pytest.raises(ValueError, match="for_group"):
        person.compose(KaryResponse(3, 1.0))
    for make in (lambda one: WithoutReplacement(one, 10, 3), ReplaceOne):
        with pytest.raises(ValueError, match="for_group"):
            make(GaussianMechanism(1.0).for_group(2))
    assert isinstance(person, Group)
    assert person.neighbours.startswith("replace one user's input, up to 2 times")


def sums_of(rows):
    """The distribution of the sums of independent bits, given the probability of a 1 for each message and column."""
    laws = []
    for rates in np.transpose(rows):
        law = np.ones(1)
        for rate in rates:
            law = np.convolve(law, [1 - rate, rate])
        laws.append(law)
    return {key: math.prod(law[i] for law, i in zip(laws, key)) for key in itertools.product(*(range(len(law)) for law in laws))}


def largest_of_sums(values, users, size, eps):
    """Return delta of the sums over all datasets; `values` has a row of probabilities for each value."""
    best = 0.0
    for others in itertools.combinations_with_replacement(values, users - size):
        laws = [sums_of([*others, *own]) for own in itertools.combinations_with_replacement(values, size)]
        best = max(best, max(hockey_stick(p, q, eps) for p, q in itertools.permutations(laws, 2)))
    return best


@pytest.mark.slow
@pytest.mark.parametrize(("users", "size", "bins", "flip"), [
    (4, 2, 2, 0.2), (4, 2, 3, 0.3), (5, 3, 2, 0.1), (3, 3, 3, 0.25),
])
def test_sums_of_bins_and_columns_of_numbers(users, size, bins, flip):
    """The lower bounds are attained by messages that all move alike; those of one record were three times smaller in eps."""
    def rates(bits):
        return flip + (1 - 2 * flip) * np.array(bits, dtype=float)

    for eps in (0.1, 2.0):
        exact = largest_of_sums([rates(row) for row in np.eye(bins)], users, size, eps)
        encloses(FlippedReports(users, 0, bins, flip, view="sums").for_group(size), eps, exact)
        exact = largest_of_sums([rates(np.arange(bins) < ones) for ones in range(bins + 1)], users, size, eps)
        encloses(RealSum(users, 2 * users * flip, bins, view="columns").for_group(size), eps, exact)


@pytest.mark.parametrize("make", [
    lambda: (ShuffledBits(228, 0.12), PersonalizedBits([math.log(0.88 / 0.12)], counts=[228])),
    lambda: (FiniteRandomizer(kary(2, 1.0)).shuffled(50), RandomizedResponse(1.0).shuffled(50)),
    slow(lambda: (FlippedReports(10**4, 0, 8, 0.1, view="records"), Rappor(0.2, bits=8).shuffled(10**4))),
    slow(lambda: (FlippedReports(100, 0, 8, 0.1, view="sums"), RealSum(100, 20.0, 2, view="columns"))),
])
def test_a_group_has_one_answer_whatever_the_name(make):
    lower, upper = ([one.for_group(3).epsilon(1e-6, bound=bound) for one in make()] for bound in ("lower", "upper"))
    assert max(lower) <= min(lower) * 1.001
    assert max(upper) <= min(upper) * 1.001


def test_eps_of_a_group_is_the_inverse_of_its_delta():
    # Delta of one message is a staircase. The search for eps ended up to .5 % above the smallest eps.
    for profile, delta in ((GeometricDummies(5, 40, 0.8, 0.8), 1e-4), (GeometricDummies(5, 400, 0.97, 0.95, 0.7), 1e-5)):
        group = profile.for_group(3)
        eps = group.epsilon(delta)
        assert group.delta(eps) <= delta < group.delta(eps * (1 - 1e-9))
