"""Personalized bits against enumeration over all datasets."""

import itertools
import math
import random
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from shufflebounds.mechanisms import KaryResponse
from shufflebounds.shuffle import PersonalizedBits, PersonalizedClones, ShuffledBits
from tests.oracles import logarithm, rational
from tests.shuffle.test_shuffled_bits import both_directions
from tests.strategies import thinned


def flips(budgets):
    """Return the flip probabilities with 60 digits, because log delta is sensitive to them at eps close to the budget."""
    with localcontext(prec=60):
        return [Fraction(1 / (1 + Decimal(b).exp())) for b in budgets]


def exact(qs, bits, target, factor):
    """Return the larger hockey-stick divergence of both orders for the target's bit, given the other users' bits."""
    chances = [1 - q if bit else q for i, (q, bit) in enumerate(zip(qs, bits)) if i != target]
    return max(both_directions(chances, qs[target], factor))


def cases(count, most):
    """Yield random budgets, bits, targets and eps from a fixed seed."""
    source = random.Random(20)
    for _ in range(count):
        users = source.randint(1, most)
        budgets = [source.uniform(0, 3) for _ in range(users)]
        if source.random() < 0.3:
            budgets = [source.choice(budgets) for _ in budgets]
        bits = [source.randint(0, 1) for _ in range(users)]
        yield budgets, bits, source.randrange(users), source.choice([0.0, 0.1, 0.5, 1.0, 2.0])


@pytest.mark.slow
def test_a_given_dataset_is_exact():
    for budgets, bits, target, eps in cases(150, 7):
        qs, factor = flips(budgets), rational(eps)
        true = logarithm(exact(qs, bits, target, factor))
        one = PersonalizedBits(budgets, bits=bits, target=target)
        assert one.log_delta(eps, bound="lower") <= true + 1e-13
        assert one.log_delta(eps) >= true - 1e-13
        assert true < -60 or one.log_delta(eps) - one.log_delta(eps, bound="lower") < 1e-10
        all_users = PersonalizedBits(budgets, bits=bits)
        most = logarithm(max(exact(qs, bits, j, factor) for j in range(len(qs))))
        assert all_users.log_delta(eps, bound="lower") <= most + 1e-13
        assert most - 1e-13 <= all_users.log_delta(eps)
        assert most < -60 or all_users.log_delta(eps) - all_users.log_delta(eps, bound="lower") < 1e-10
        # Of two users with the same bit, the one with the larger budget has the larger delta.
        for one in range(len(qs)):
            larger = [j for j in range(len(qs)) if bits[j] == bits[one] and qs[j] <= qs[one]]
            assert all(exact(qs, bits, one, factor) <= exact(qs, bits, j, factor) for j in larger)


@pytest.mark.slow
def test_bounds_over_all_datasets_contain_the_maximum():
    for budgets, _, target, eps in cases(60, 6):
        qs, factor = flips(budgets), rational(eps)
        worst = logarithm(max(exact(qs, data, target, factor) for data in itertools.product((0, 1), repeat=len(qs))))
        mechanism = PersonalizedBits(budgets, target=target)
        assert mechanism.log_delta(eps, bound="lower") <= worst + 1e-13
        assert worst - 1e-13 <= mechanism.log_delta(eps)
        ascended = mechanism.ascend(eps)
        assert mechanism.log_delta(eps, bound="lower") - 1e-13 <= ascended.log_delta(eps, bound="lower") <= worst + 1e-13


def test_the_bits_of_the_worst_dataset_need_not_be_equal():
    # With E1 = 27/5, the flip probabilities 10/37, 10/59, 5/17 and eps = 0, delta for the bits (0, 0, 1) is 1.24 times that for
    # equal bits.
    budgets = np.log([27 / 5, 2.7, 4.9, 2.4])
    equal = PersonalizedBits(budgets, bits=[0, 0, 0, 0], target=0).delta(0.0)
    worse = PersonalizedBits(budgets, bits=[0, 0, 0, 1], target=0).delta(0.0)
    assert worse > 1.2 * equal
    assert PersonalizedBits(budgets, target=0).ascend(0.0).delta(0.0) == pytest.approx(worse, rel=1e-12)


def test_equal_budgets_are_shuffled_bits():
    budget, users = 1.25, 500
    flip = math.exp(-budget) / (1 + math.exp(-budget))
    known = PersonalizedBits(np.full(users, budget), bits=np.r_[np.ones(100), np.zeros(400)], target=450)
    same = ShuffledBits(users, flip, ones=100)
    for eps in (0.0, 0.1, 0.4, 1.2):
        assert known.log_delta(eps) == pytest.approx(same.log_delta(eps), rel=1e-11, abs=1e-11)


def test_all_users_of_a_large_dataset():
    # Rounding all budgets up may decrease delta in a given dataset: an upper bound with rounded budgets was below delta here.
    budgets, bits = np.r_[np.linspace(0, 0.5, 16998), 2.0, 2 + 1e-9], np.zeros(17000)
    bits[-1] = 1
    all_users = PersonalizedBits(budgets, bits=bits)
    each = [PersonalizedBits(budgets, bits=bits, target=target) for target in (0, 16997, 16998, 16999)]
    for bound in ("lower", "upper"):
        assert all_users.log_delta(0.025, bound=bound) == max(one.log_delta(0.025, bound=bound) for one in each)


def test_flips():
    budgets = np.r_[np.zeros(3000), np.full(3000, 700.0)]
    messages = PersonalizedBits(budgets).randomize(np.ones(6000), 3)
    # Half of the first 3000 bits are flipped, and none of the others.
    assert messages[3000:].all()
    assert abs(messages[:3000].sum() - 1500) < 5 * math.sqrt(750)
    # A part of the users has their own budgets, and the sums of parts add up.
    bits = PersonalizedBits(budgets)
    parts = [bits.randomize(np.ones(3000), 4, part=np.arange(start, 6000, 2)) for start in (0, 1)]
    assert all(part[1500:].all() for part in parts)
    assert sum(bits.aggregate(part) for part in parts) == bits.aggregate(np.concatenate(parts)) > 4000
    assert bits.aggregate([]) == 0
    assert bits.randomize(np.ones(6000, dtype=bool), 3).tolist() == messages.tolist()


def test_equality_and_repr():
    first, again = (PersonalizedBits([0.5, 1.0], bits=[0, 1], target=1) for _ in range(2))
    assert first == again
    assert hash(first) == hash(again)
    assert first != PersonalizedBits([0.5, 1.0], bits=[0, 1], target=0)
    assert repr(first) == "PersonalizedBits(<2 budgets>, bits=<1 ones>, target=1)"
    pair = first.pair()
    assert pair.reverse().reverse() == pair


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (([], {}), "local_eps must not be empty"),
        (([[1.0]], {}), "local_eps has shape"),
        (([-1.0], {}), "local_eps holds -1"),
        (([math.nan], {}), "local_eps holds nan"),
        (([1.0, 2.0], {"bits": [1]}), "bits has shape"),
        (([1.0, 2.0], {"bits": [1, 2]}), "bits holds 2"),
        (([1.0, 2.0], {"bits": [1, 0.5]}), r"bits holds 0\.5"),
        (([1.0, 2.0], {"target": 2}), r"target=2 must be an integer in 0\.\.1"),
        (([1.0, 2.0], {"counts": [1]}), "counts has shape"),
        (([1.0, 2.0], {"counts": [1, 0]}), "counts holds 0"),
        (([1.0, 2.0], {"counts": [1, 1.5]}), r"counts holds 1\.5"),
        (([1.0, 2.0], {"counts": [2**53, 2**53]}), "counts sums to"),
    ],
)
def test_bad_input(arguments, named):
    budgets, options = arguments
    with pytest.raises(ValueError, match=named):
        PersonalizedBits(budgets, **options)


def test_mechanisms_without_a_single_pair():
    mechanism = PersonalizedBits([1.0, 2.0])
    with pytest.raises(TypeError, match="not given by a list"):
        mechanism.pairs()
    with pytest.raises(ValueError, match="bits=None"):
        mechanism.pair(0)
    with pytest.raises(ValueError, match="target=None"):
        mechanism.ascend(0.1)


@pytest.mark.parametrize(("target", "exact"), [(1, math.log(math.tanh(0.5) / 2)), (2, math.log(0.5)), (None, math.log(0.5))])
def test_a_fair_coin_among_certain_bits(target, exact):
    """At eps = 0, delta is (p - q) max W. The fair coin makes the characteristic function of W vanish at pi."""
    mechanism = PersonalizedBits([0.0, 1.0, 700.0], bits=[0, 1, 0], target=target)
    assert mechanism.log_delta(0.0, bound="lower") <= exact <= mechanism.log_delta(0.0)
    assert mechanism.log_delta(0.0) - mechanism.log_delta(0.0, bound="lower") < 1e-12


def test_budgets_of_zero_over_all_datasets():
    mechanism = PersonalizedBits([0.0, 1.0, 2.0])
    assert 0 < mechanism.delta(0.5, bound="lower") <= mechanism.delta(0.5) < 1
    assert mechanism.delta(0.5) <= PersonalizedBits([0.1, 1.0, 2.0]).delta(0.5) * (1 + 1e-2)
    hidden = PersonalizedBits([0.0, 1.0, 2.0], target=0)
    assert hidden.delta(0.0, bound="lower") == 0
    assert hidden.delta(0.0) < 1e-280


def test_the_guarantee_over_all_datasets_is_that_of_the_largest_budget():
    budgets = np.array([0.3, 1.0, 2.0, 0.7, 1.5] * 60)
    every, one = PersonalizedBits(budgets), PersonalizedBits(budgets, target=2)
    for bound in ("lower", "upper"):
        assert every.epsilon(1e-6, bound=bound) == one.epsilon(1e-6, bound=bound)
        assert every.gdp_mu(bound=bound) == one.gdp_mu(bound=bound)
    other = PersonalizedBits(budgets, target=4)
    assert other.delta(0.4) < every.delta(0.4, bound="lower")


@pytest.mark.parametrize("log_tail", [-40.0, -300.0, -1e5])
@pytest.mark.parametrize("users", thinned([2, 30, 1500], 2))
def test_bounds_from_a_table_overlap_those_of_the_kernel(users, log_tail):
    rng = np.random.default_rng(users)
    for _ in range(8):
        bits = (rng.random(users) < rng.random()).astype(float)
        protocol = PersonalizedBits(rng.uniform(0.001, 10 ** rng.uniform(-1, 1), users), bits=bits, target=int(rng.integers(users)))
        for pair in protocol.pairs():
            eps = np.append(0.0, rng.uniform(0, 1, 20) * 10 ** rng.uniform(-3, 0, 20)) * pair.budget
            exact, table = pair._log_delta(eps), pair.closed_forms().table(log_tail).log_delta(eps)
            assert (table.lower <= exact.upper).all()
            assert (exact.lower <= table.upper).all()
            clear = (exact.upper > log_tail + 40) & (table.upper < 0)
            # the gap that many_log_delta states
            assert (table.upper - table.lower < 1e-8 * (1 - table.upper))[clear].all()


def test_derived_answers_read_tables_instead_of_the_kernel(monkeypatch):
    budgets = np.random.default_rng(5).uniform(0.2, 2.0, 6000)
    protocol = PersonalizedBits(budgets, bits=np.zeros(6000), target=7)
    lower, upper = protocol.rdp(4.0, bound="lower"), protocol.rdp(4.0)
    assert lower <= upper <= lower * (1 + 1e-5)
    pair = protocol.pair()
    monkeypatch.setattr(type(pair.closed_forms()), "table", lambda self, log_tail: None)
    slow = PersonalizedBits(budgets, bits=np.zeros(6000), target=7)
    eps = np.array([0.0, 0.003, 0.02])
    for here, there in zip(protocol._pair_info().hockey_stick(eps), slow._pair_info().hockey_stick(eps)):
        assert here == pytest.approx(there, rel=1e-6)


def test_budgets_of_minus_zero_equal_those_of_zero():
    first, second = (PersonalizedBits([zero, 1.0], bits=[zero, 1.0]) for zero in (-0.0, 0.0))
    assert first == second
    assert hash(first) == hash(second)
    assert PersonalizedClones(0.2, [-0.0, 0.1]) == PersonalizedClones(0.2, [0.0, 0.1])


@pytest.mark.slow
@pytest.mark.parametrize(("bits", "target"), [(None, None), (None, 1), ([0, 1, 0, 1], None), ([0, 1, 0, 1], 3)])
def test_counts_stand_for_users_with_the_same_budget_and_bit(bits, target):
    budgets, counts = [0.5, 0.5, 1.2, 2.0], [3, 1, 30, 2]
    several = PersonalizedBits(budgets, bits=bits, target=target, counts=counts)
    each = np.repeat(np.arange(4), counts)
    same = PersonalizedBits(np.array(budgets)[each], bits=None if bits is None else np.array(bits)[each],
                            target=None if target is None else int(np.searchsorted(each, target)))
    assert several.users == same.users == 36
    for eps in (0.0, 0.05, 0.4):
        for bound in ("lower", "upper"):
            assert several.log_delta(eps, bound=bound) == pytest.approx(same.log_delta(eps, bound=bound), rel=1e-11)
    assert several.epsilon(1e-6) == pytest.approx(same.epsilon(1e-6), rel=1e-6)
    assert several.self_compose(3).epsilon(1e-6) == pytest.approx(same.self_compose(3).epsilon(1e-6), rel=1e-4)
    if bits is not None:
        assert float(several.certify(0.05, digits=12)) == pytest.approx(float(same.certify(0.05, digits=12)), rel=1e-12)
    # The users of a group follow those of the group before.
    messages = several.randomize(np.ones(36), 5)
    assert messages.tolist() == same.randomize(np.ones(36), 5).tolist()
    assert several.randomize(np.ones(2), 6, part=[3, 35]).tolist() == same.randomize(np.ones(2), 6, part=[3, 35]).tolist()


@pytest.mark.slow
def test_counts_of_many_users():
    profile = PersonalizedBits([0.5, 1.0, 2.0], counts=[10**9, 10**6, 1])
    assert profile.users == 10**9 + 10**6 + 1
    assert 0.99 < profile.epsilon(1e-9, bound="lower") / profile.epsilon(1e-9) <= 1
    assert repr(profile) == "PersonalizedBits(<3 budgets>, bits=None, target=None, counts=<1001000001 users>)"
    assert profile != PersonalizedBits([0.5, 1.0, 2.0], counts=[10**9, 10**6, 2])
    given = PersonalizedBits([0.5, 1.0], bits=[0, 1], counts=[5, 2])
    assert repr(given) == "PersonalizedBits(<2 budgets>, bits=<2 ones>, target=None, counts=<7 users>)"
    with pytest.raises(ValueError, match="counts must be None"):
        PersonalizedBits([0.5, 1.0], counts=[5, 2], target=0).ascend(0.1)


@pytest.mark.slow
@pytest.mark.parametrize(("budgets", "counts", "bits", "eps"), [
    ([694.3401079441578, 0.94926059160092], [5, 117], [1, 1], 694.1102276156105),
    ([673.0, 0.0625, 1.25, 654.0], [1, 40, 132, 2], [0, 1, 0, 0], 672.5),
    ([691.9105014697232, 2.394230886529107, 52.803682752271264, 41.8618758746604], [1, 198, 65, 1], [1, 1, 0, 1],
         691.718060440016),
])
def test_budgets_whose_flips_are_rarer_than_the_least_of_the_others(budgets, counts, bits, eps):
    with localcontext(prec=700, Emin=-10**6):
        flip = [1 / (1 + Decimal(b).exp()) for b in budgets]
        law = [Decimal(1)]
        for j, (count, bit) in enumerate(zip(counts, bits)):
            one = 1 - flip[j] if bit else flip[j]
            for _ in range(count - (j == 0)):
                law = [a * (1 - one) + b * one for a, b in zip([*law, 0], [0, *law])]
        both = [[a * (1 - x) + b * x for a, b in zip([*law, 0], [0, *law])] for x in (flip[0], 1 - flip[0])]
        factor = Decimal(eps).exp()
        true = max(sum(max(Decimal(0), a - factor * b) for a, b in zip(*way)) for way in (both, both[::-1])).ln()
        one = PersonalizedBits(budgets, bits=bits, target=0, counts=counts)
        assert Decimal(one.log_delta(eps, bound="lower")) <= true <= Decimal(one.log_delta(eps))
        assert one.log_delta(eps) - one.log_delta(eps, bound="lower") < 1e-13 * (10 - true.__float__() * 10)


@pytest.mark.parametrize("ulps", [1, 2, 3, 5, 101])
def test_subnormal_budgets(ulps):
    """The kernel halves the budget, which is not exact for subnormal numbers: of 5e-324 the half was 0, and so was the bound."""
    budget = ulps * 5e-324
    for budgets, bits, share in (([budget], [0.0], 0.5), ([budget, math.log(3)], [0.0, 1.0], 0.5 * 0.75)):
        bits_of_two = PersonalizedBits(np.array(budgets), bits=np.array(bits), target=0)
        # A small budget b has the delta b/2 times the probability of the likeliest value of the other users' sum.
        exact = math.log(budget) + math.log(share)
        assert bits_of_two.log_delta(0.0, bound="lower") <= exact <= bits_of_two.log_delta(0.0)


def test_sums_of_subnormal_values():
    protocol = KaryResponse(44, 1.697578392754824e-288).shuffled(8, 1e-12)
    bounds = [(protocol.log_delta(eps, bound="lower"), protocol.log_delta(eps)) for eps in (0.0, 8.487891963774117e-289)]
    assert all(lower <= upper < 0 for lower, upper in bounds)
    assert bounds[1][1] < bounds[0][0]


@pytest.mark.parametrize("spread", thinned([1e-12, 1e-3, 0.3], 2))
@pytest.mark.parametrize(("users", "budget"), [(5, 1.9), (10, 0.5), (1000, 2.0)])
def test_budgets_that_are_nearly_equal_are_between_equal_ones(users, budget, spread):
    budgets = np.linspace(budget * (1 - spread), budget, users)
    groups = [np.quantile(budgets, part, method="higher") for part in (0.0, 0.5, 1.0)]
    protocol = PersonalizedBits(groups, counts=[1, users - 2, 1])
    least, most = (KaryResponse(2, groups[place]).shuffled(users) for place in (0, -1))
    for eps in (0.0, 0.1 * budget, 0.5 * budget):
        assert least.log_delta(eps, bound="lower") <= protocol.log_delta(eps, bound="lower")
        assert protocol.log_delta(eps) <= most.log_delta(eps)
    if spread < 1e-9:
        for bound in ("lower", "upper"):
            assert protocol.epsilon(1e-3, bound=bound) == pytest.approx(most.epsilon(1e-3, bound=bound), rel=1e-6)


@pytest.mark.parametrize("seed", thinned(range(12), 2))
def test_bounds_of_the_largest_budget_contain_every_dataset(seed):
    r = random.Random(seed)
    users, base = r.choice([3, 5]), r.uniform(0.1, 3)
    budgets = [base * (1 - r.choice([0.01, 0.3, 0.9]) * r.random()) for _ in range(users)]
    target = r.choice([None, r.randrange(users)])
    protocol, qs = PersonalizedBits(budgets, target=target), flips(budgets)
    for eps in (0.0, 0.3 * base, 0.8 * base):
        factor = Fraction(math.exp(eps))
        largest = max(exact(qs, bits, one, factor) for bits in itertools.product((0, 1), repeat=users)
                      for one in (range(users) if target is None else [target]))
        assert protocol.delta(eps, bound="lower") * (1 - 1e-12) <= largest <= protocol.delta(eps) * (1 + 1e-12)


@pytest.mark.parametrize(("budgets", "largest"), [([0.0], 0.0), ([0.0, 0.0], 0.0), ([1e-300, 2e-300], 2e-300)])
def test_budgets_near_zero_have_no_larger_lower_bound(budgets, largest):
    # The largest loss of randomized response is at most the largest budget; it is attained if all bits are equal.
    bits = PersonalizedBits(budgets)
    below, above = (bits.rdp(math.inf, bound=bound) for bound in ("lower", "upper"))
    assert below <= largest <= above <= largest * (1 + 1e-12)
    assert bits.self_compose(3).rdp(math.inf, bound="lower") <= 3 * largest * (1 + 1e-12)
    assert bits.delta(0.0, bound="lower") <= largest
