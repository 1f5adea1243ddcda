"""Shuffled randomizers against enumeration over all datasets, high-precision values, and post-processing."""

import itertools
import json
import math
import random
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shufflebounds import mechanisms, shuffle
from shufflebounds.mechanisms import (
    FiniteRandomizer,
    GaussianMechanism,
    HadamardResponse,
    KaryResponse,
    LaplaceMechanism,
    LocalHashing,
)
from tests.oracles import hockey_stick, messages, rational
from tests.strategies import slow, thinned

REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "randomizers.json").read_text())


@dataclass(frozen=True)
class Matrix:
    """A randomizer that is given by its rows, of which the library knows no more than the distributions of each pair of inputs."""

    rows: tuple

    def excess_laws(self, cells=800, log_cut=-60.0):
        return FiniteRandomizer([[float(p) for p in row] for row in self.rows]).excess_laws(cells, log_cut)


def exact(rows, users, factor):
    """Return the largest delta over all datasets and ordered pairs, and that over datasets with equal inputs of the other users."""
    worst, same = Fraction(0), Fraction(0)
    for others in itertools.combinations_with_replacement(rows, users - 1):
        for first, second in itertools.permutations(rows, 2):
            p, q = messages(first, *others), messages(second, *others)
            value = sum((max(Fraction(0), x - factor * q.get(y, 0)) for y, x in p.items()), Fraction(0))
            worst = max(worst, value)
            if len({tuple(row) for row in others}) <= 1:
                same = max(same, value)
    return worst, same


def random_rows(rng, inputs, outputs):
    """Return random rational rows with positive entries."""
    rows = []
    for _ in range(inputs):
        parts = [rng.randint(1, 9) for _ in range(outputs)]
        rows.append(tuple(Fraction(p, sum(parts)) for p in parts))
    return tuple(rows)


def pure(rows):
    """Return e^eps0, the largest likelihood ratio of the rows."""
    return max(max(p / q for p, q in zip(a, b)) for a, b in itertools.permutations(rows, 2))


@pytest.mark.parametrize("seed", thinned(range(10), 2))
def test_lower_bound_exact_value_blanket_and_stronger_clones_are_in_order(seed):
    rng = random.Random(seed)
    inputs, outputs, users = rng.choice([(2, 3, 5), (3, 2, 5), (3, 3, 3), (4, 2, 4)])
    rows = random_rows(rng, inputs, outputs)
    most = pure(rows)
    if most == 1:
        return
    factor = 1 + (most - 1) * Fraction(rng.randint(0, 9), 12)
    truth, same = exact(rows, users, factor)
    profile, eps = shuffle.Shuffled(Matrix(rows), users), math.log(factor)
    clones = shuffle.StrongerClones(users, math.log(most) * (1 + 1e-15))
    assert profile.delta(eps, bound="lower") <= float(truth) * (1 + 1e-12) + 1e-15
    assert float(truth) <= profile.delta(eps) * (1 + 1e-12) + 1e-15
    assert profile.delta(eps) <= clones.delta(eps) * (1 + 1e-11) + 1e-15
    # For some matrices, other users with a random input are tried too.
    mean = [sum(column) / inputs for column in zip(*rows)]
    spread = max(hockey_stick(*(messages(target, *[mean] * (users - 1)) for target in pair), factor)
                 for pair in itertools.permutations(rows, 2))
    below = profile.delta(eps, bound="lower")
    assert float(same) * (1 - 1e-9) - 1e-14 <= below
    assert any(below == pytest.approx(float(known), rel=1e-9, abs=1e-14) for known in (same, max(same, spread)))


@pytest.mark.parametrize("seed", range(6))
def test_datasets_with_several_inputs_attain_the_exact_value_for_few_users(seed):
    rng = random.Random(seed)
    inputs, outputs, users = rng.choice([(2, 3, 5), (3, 2, 5), (3, 3, 4), (4, 2, 4)])
    rows = random_rows(rng, inputs, outputs)
    factor = 1 + (pure(rows) - 1) * Fraction(rng.randint(0, 9), 12)
    truth, same = exact(rows, users, factor)
    profile = shuffle.Shuffled(FiniteRandomizer([[float(p) for p in row] for row in rows]), users)
    lower = profile.delta(math.log(factor), bound="lower")
    assert float(same) * (1 - 1e-9) - 1e-14 <= lower <= float(truth) * (1 + 1e-12) + 1e-15
    assert lower == pytest.approx(float(truth), rel=1e-9, abs=1e-13)


def test_datasets_with_several_inputs_are_described():
    # The values are those of 3-ary response with e^eps0 = e and 8 users for the worst dataset, by enumeration.
    profile = shuffle.Shuffled(KaryResponse(3, 1.0), 8)
    for eps, value in ((0.1, 0.120568951), (0.4, 0.038209212), (0.7, 0.006719562)):
        assert profile.delta(eps, bound="lower") == pytest.approx(value, abs=5e-10)
    assert profile.data(0.1) == "every other user has a third value"
    # By symmetry, six datasets have the same divergence; the description is that of one of them.
    assert profile.data(0.4) == "of the other users 1 has input 0 and 6 have input 2; target between inputs 0 and 1"


@pytest.mark.parametrize("users", [40, 300])
def test_datasets_with_several_inputs_are_searched_for_more_users(users):
    rows = [[0.75, 0.25], [0.5, 0.5], [0.125, 0.875]]
    profile = shuffle.Shuffled(FiniteRandomizer(rows), users)
    for eps in (0.2, 0.9):
        held = profile._bounds.mixed.best(eps)[1]
        law = {0: np.ones(1), 1: np.ones(1)}
        first, second = profile._bounds.mixed.best(eps)[2]
        for key, target in ((0, first), (1, second)):
            for x, count in (*enumerate(held), (target, 1)):
                for _ in range(count):
                    law[key] = np.convolve(law[key], rows[x])
        value = np.maximum(law[0] - math.exp(eps) * law[1], 0).sum()
        assert profile.delta(eps, bound="lower") == pytest.approx(value, rel=1e-8)
        assert sum(held) == users - 1
        assert value <= profile.delta(eps)


@pytest.mark.slow
def test_reference_values():
    for entry in REFERENCE:
        p, value = entry["params"], float(entry["value"])
        if "matrix" in p:
            profile = shuffle.Shuffled(Matrix(tuple(tuple(Fraction(x) for x in row) for row in p["matrix"])), p["users"])
            eps = math.log(Fraction(p["e_eps"]))
        else:
            profile, eps = shuffle.Shuffled(KaryResponse(p["bins"], p["local_eps"]), p["users"]), p["eps"]
        upper, lower = profile.delta(eps), profile.delta(eps, bound="lower")
        if entry["id"].endswith("upper"):
            assert upper == pytest.approx(value, rel=1e-6, abs=1e-15), entry["id"]
        elif entry["id"].endswith("same"):
            assert lower == pytest.approx(value, rel=1e-6, abs=1e-15), entry["id"]
        else:
            assert lower <= value * (1 + 1e-12) + 1e-15
            assert value <= upper * (1 + 1e-12) + 1e-15


def test_an_output_of_a_mass_that_underflows_is_possible():
    profile = FiniteRandomizer([[0.5, 0.5], [1.0, 0.0]]).shuffled(1900)
    assert profile.log_delta(710.0, bound="lower") == pytest.approx(math.log(0.5), rel=1e-9)


@pytest.mark.parametrize(("bins", "users", "eps0", "delta", "sides"), [
    (3, 10**4, 1.0, 1e-6, (0.0379981, 0.0380012)), slow(10, 10**4, 4.0, 1e-6, (0.3804875, 0.3804929)),
    slow(100, 10**4, 1.0, 1e-6, (0.00718331, 0.00718332)), (10, 10**6, 1.0, 1e-8, (0.00272920, 0.00272920)),
])
def test_epsilon_of_kary_response(bins, users, eps0, delta, sides):
    profile = shuffle.Shuffled(KaryResponse(bins, eps0), users)
    assert profile.epsilon(delta, bound="lower") == pytest.approx(sides[0], rel=2e-5)
    assert profile.epsilon(delta) == pytest.approx(sides[1], rel=2e-5)


@pytest.mark.parametrize(("randomizer", "users", "lower", "upper", "digits"), [
    (LocalHashing(1000, 1.0, 4), 10**4, 0.0267321, 0.0293364, 1e-5),
    (HadamardResponse(100, 1.0), 10**4, 0.0297290, 0.0297417, 4e-5),
    (LaplaceMechanism(1.0), 10**4, 0.0313029, 0.0378431, 1e-5), (LaplaceMechanism(0.25), 10**4, 0.2445045, 0.3280955, 1e-5),
    (LocalHashing(1000, 4.0, 56), 10**4, 0.2756, 0.2783031, 1e-4), (KaryResponse(100, 4.0), 10**6, 0.026449, 0.026449, 1e-4),
    (LocalHashing(1000, 1.0, 4), 10**6, 0.00313, 0.00343, 1e-3), (LaplaceMechanism(0.25), 10**6, 0.0259, 0.0365, 1e-3),
    (GaussianMechanism(1.0), 10**4, 0.0458112, 0.0601004, 3e-4), (GaussianMechanism(2.0), 10**6, 0.00201, 0.002395, 2e-3),
], ids=repr)
def test_table_of_epsilon(randomizer, users, lower, upper, digits):
    # The values come from a separate program. For Hadamard response, the lower bound is that of the dataset in which the parity of
    # every other user's value is the sum of the target's two.
    delta = 1e-6 if users == 10**4 else 1e-8
    for eps, bound in ((lower, "lower"), (upper, "upper")):
        above, below = (math.exp(shuffle.shuffled_log_deltas(randomizer, users, eps * (1 + side * digits), bound=bound,
                                                            method="blanket")) for side in (-1, 1))
        assert below <= delta <= above
    assert lower <= randomizer.shuffled(users).epsilon(delta) * (1 + digits) <= upper * (1 + 3 * digits)


EPSILONS = json.loads((Path(__file__).parents[1] / "reference" / "epsilons.json").read_text())
BUILT = {
    "kary": KaryResponse, "hashing": lambda g, eps0: LocalHashing(1000, eps0, g),
    "hadamard": lambda eps0: HadamardResponse(100, eps0), "laplace": LaplaceMechanism,
    "gaussian": GaussianMechanism,
}


@pytest.mark.parametrize("row", EPSILONS, ids=lambda row: f"{row['name']}-{row['parameters']}-{row['users']}")
def test_every_row_of_the_table_of_epsilon(row):
    # The values come from a separate program. For densities, that program evaluates fewer datasets, so the library's lower bound
    # may be larger.
    upper, users, delta = float(row["upper"]), row["users"], row["delta"]
    digits = 3e-4 if row["name"] in ("laplace", "gaussian") else 3e-6
    if row["name"] == "stronger-clones":
        clones = shuffle.StrongerClones(users, *row["parameters"])
        assert clones.delta(upper * (1 + digits)) <= delta <= clones.delta(upper * (1 - digits))
        return
    randomizer, lower = BUILT[row["name"]](*row["parameters"]), float(row["lower"])
    profile = randomizer.shuffled(users)
    assert profile.delta(lower * (1 - digits), bound="lower") >= delta
    if row["name"] in ("kary", "hashing", "hadamard"):
        assert profile.delta(lower * (1 + digits), bound="lower") <= delta
    # The bound over all datasets is between the blanket's bound and the lower bound.
    around = [upper * (1 - digits), upper * (1 + digits)]
    above, below = np.exp(shuffle.shuffled_log_deltas(randomizer, users, around, method="blanket"))
    # That program leaves the word 0 of Hadamard response out of the blanket, so its upper bound is larger by up to 1.2 % of delta.
    assert below <= delta <= above * (1.012 if row["name"] == "hadamard" else 1)
    assert profile.delta(upper * (1 + digits)) <= delta <= profile.delta(lower * (1 - digits))
    assert lower <= upper


def test_eps_of_heavy_tails_is_the_smallest():
    # The bounds have a large gap at some eps, and a search that relied on one value ended at eps = 23.
    shuffled = GaussianMechanism(0.3).shuffled(10**6)
    assert shuffled._bounds.kernel_laws(True) is None
    assert shuffled.delta(9.9) < 1e-8 < shuffled.delta(9.87)


def test_eps_of_the_variation_ratio_is_the_smallest():
    bound = mechanisms.RatioBounded(1e12, 1e-6, 1e12).shuffled(1000)
    eps = bound.epsilon(1e-6)
    # Delta is also below 1e-6 at eps = 10.4, which is much larger than the smallest such eps.
    assert eps < 0.25 < math.log(1e12)
    assert bound.delta(eps) <= 1e-6


@pytest.mark.parametrize("make", [
    lambda: mechanisms.KaryResponse(2, 1.0), lambda: mechanisms.SubsetSelection(2, 1.0),
    lambda: mechanisms.GeometricMechanism(1.0, 1),
    lambda: mechanisms.FiniteRandomizer([[0.7, 0.3], [0.3, 0.7]]),
])
def test_two_inputs_are_one_flipped_bit_per_user(make):
    randomizer = make()
    for users in (20, 10**5):
        bits = shuffle.ShuffledBits(users, 1 / (math.exp(randomizer.epsilon(0.0)) + 1))
        shuffled = randomizer.shuffled(users)
        eps = bits.epsilon(1e-6)
        assert bits.log_delta(eps, bound="lower") - 1e-9 <= shuffled.log_delta(eps) <= bits.log_delta(eps) + 6e-3
        assert shuffled.log_delta(eps, bound="lower") <= bits.log_delta(eps)
        # The bounds by the blanket alone have a larger gap.
        assert shuffled.epsilon(1e-6) < 1.01 * shuffled.epsilon(1e-6, bound="lower")
        # A message that is sent with some probability only is a post-processing of one that is always sent.
        assert randomizer.shuffled(users, participation=0.999).log_delta(eps) <= shuffled.log_delta(eps) + 1e-9


def test_two_inputs_of_any_randomizer_are_bounded_over_all_datasets():
    shuffled = mechanisms.FiniteRandomizer([[0.6, 0.1, 0.3], [0.2, 0.2, 0.6]]).shuffled(8)
    for eps in (0.05, 0.4):
        # For this number of users every dataset is enumerated, so the lower bound is the exact value.
        assert shuffled.log_delta(eps, bound="lower") <= shuffled.log_delta(eps)
        assert shuffled.log_delta(eps) <= max(pair.upper.log_phi_side(eps, 8, upper=True) for pair in shuffled._laws.pairs)


@pytest.mark.parametrize("sensitivity", [1, 2, 3])
def test_geometric_noise_has_two_inputs_only_for_sensitivity_one(sensitivity):
    shuffled = mechanisms.GeometricMechanism(1.0, sensitivity).shuffled(500)
    bounds = dict(shuffled._bounds.upper._named(0.05))
    assert ("shuffled bits" in bounds) == (sensitivity == 1)
    if sensitivity == 1:
        assert bounds["shuffled bits"] < bounds["privacy blanket"]


def test_outputs_that_identify_the_target_make_eps_infinite():
    bounded = mechanisms.GeometricMechanism(1.0, 10, bound=10).shuffled(100)
    assert bounded.epsilon(1e-6, bound="lower") == math.inf
    assert bounded.delta(50.0, bound="lower") > 1e-6


def test_participation_is_an_output_like_any_other():
    rng = random.Random(3)
    rows = random_rows(rng, 3, 2)
    share = Fraction(2, 5)
    thinned = tuple((*(p * share for p in row), 1 - share) for row in rows)
    truth, _ = exact(thinned, 4, Fraction(6, 5))
    profile = shuffle.Shuffled(Matrix(rows), 4, float(share))
    assert profile.delta(math.log(1.2), bound="lower") <= float(truth) * (1 + 1e-12)
    assert float(truth) <= profile.delta(math.log(1.2)) * (1 + 1e-12)
    explicit = shuffle.Shuffled(Matrix(thinned), 4)
    assert profile.delta(math.log(1.2)) == pytest.approx(explicit.delta(math.log(1.2)), rel=1e-9)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 30), st.floats(0.01, 0.9))
def test_post_processing_users_and_eps(seed, users, part):
    rng = random.Random(seed)
    rows = random_rows(rng, 2, 3)
    if pure(rows) == 1:
        return
    eps = part * math.log(pure(rows))
    slack = 1 + 1e-5
    profile = shuffle.Shuffled(Matrix(rows), users)
    lower, upper = profile.delta(eps, bound="lower"), profile.delta(eps)
    assert lower <= upper
    merged = shuffle.Shuffled(Matrix(tuple((row[0] + row[1], row[2]) for row in rows)), users)
    assert merged.delta(eps, bound="lower") <= lower * slack + 1e-15
    assert merged.delta(eps) <= upper * slack + 1e-15
    assert shuffle.Shuffled(Matrix(rows), users + 1).delta(eps) <= upper * slack
    assert profile.delta(eps * 1.01) <= upper * slack


def test_variation_ratio_is_valid_where_the_published_bound_fails():
    # For 3-ary response with e^eps0 = 3/2, two users and e^eps = 13/10, the exact value is 6/245, and the published bound 4/245.
    rows = tuple(tuple(Fraction(3 if x == y else 2, 7) for y in range(3)) for x in range(3))
    truth, _ = exact(rows, 2, Fraction(13, 10))
    assert truth == Fraction(6, 245)
    bound = mechanisms.RatioBounded(1.5, 1 / 7, 1.5).shuffled(2)
    assert float(truth) <= bound.delta(math.log(1.3)) == pytest.approx(0.02993, abs=5e-6)


@pytest.mark.parametrize("seed", thinned(range(6), 3))
def test_variation_ratio_is_above_the_blanket(seed):
    rng = random.Random(seed)
    rows = random_rows(rng, 3, 3)
    first, second = rows[:2]
    p = max(max(a / b, b / a) for a, b in zip(first, second))
    if p == 1:
        return
    distance = sum((max(Fraction(0), a - b) for a, b in zip(first, second)), Fraction(0))
    q = max(max(a, b) / row[y] for row in rows for y, (a, b) in enumerate(zip(first, second)))
    bound = mechanisms.RatioBounded(float(p) * (1 + 1e-15), float(distance), float(q) * (1 + 1e-15)).shuffled(4)
    for factor in (Fraction(1), (1 + p) / 2, (1 + 3 * p) / 4):
        worst = Fraction(0)
        for others in itertools.combinations_with_replacement(rows, 3):
            one, two = messages(first, *others), messages(second, *others)
            worst = max(worst, sum((max(Fraction(0), x - factor * two.get(y, 0)) for y, x in one.items()), Fraction(0)))
        assert float(worst) <= bound.delta(math.log(factor)) * (1 + 1e-11) + 1e-15


@pytest.mark.slow
def test_calibrated_users_and_budgets_meet_the_target_next_to_the_limit():
    few = shuffle.Shuffled.calibrate(KaryResponse(10, 1.0), eps=0.1, delta=1e-6)
    assert few.delta(0.1) <= 1e-6 < shuffle.Shuffled(few.randomizer, few.users - 1).delta(0.1)
    wide = shuffle.Shuffled.calibrate(lambda eps0: KaryResponse(10, eps0), eps=0.1, delta=1e-6, users=10**5)
    assert wide.delta(0.1) <= 1e-6 < shuffle.Shuffled(KaryResponse(10, wide.randomizer.local_eps * 1.0001), 10**5).delta(0.1)


def test_bad_input():
    with pytest.raises(ValueError, match="users=0"):
        shuffle.Shuffled(KaryResponse(3, 1.0), 0)
    with pytest.raises(ValueError, match="participation=0"):
        shuffle.Shuffled(KaryResponse(3, 1.0), 5, 0)
    with pytest.raises(TypeError, match="local randomizer"):
        shuffle.Shuffled("3-ary", 5)
    with pytest.raises(ValueError, match="beta"):
        mechanisms.RatioBounded(2.0, 0.5, 2.0).shuffled(5)


CERTIFIED = [
    (shuffle.Shuffled(KaryResponse(5, 1.0), 12), 0.3),
    (shuffle.Shuffled(KaryResponse(4, 1.0), 20, participation=0.3), 0.2),
    (shuffle.Shuffled(FiniteRandomizer([[0.5, 0.25, 0.25, 0], [0.25, 0.5, 0.125, 0.125], [0.125, 0.125, 0.75, 0]]), 9), 0.1),
    # In the first case the mass at 0 is smaller than the rounding error of the sum of all masses. The second case has a budget of
    # 642.
    (shuffle.Shuffled(KaryResponse(3, 15.0), 8, participation=1e-12), 14.99),
    (shuffle.Shuffled(KaryResponse(45, 642.0), 7, participation=1e-12), 195.0),
    # In these cases eps is close to the budget, or likelihood ratios are close to 1.
    (shuffle.Shuffled(FiniteRandomizer([[0.625, 0.375], [0.375, 0.625]]), 5), math.nextafter(math.log(5 / 3), 0)),
    slow(mechanisms.RatioBounded(2.0, 0.3, 2.0).shuffled(100), 0.1),
    (mechanisms.RatioBounded(1.00002, 9.9e-6, 82.0).shuffled(11), 5.8e-6),
]


@pytest.mark.parametrize(("profile", "eps"), CERTIFIED)
def test_certified_values_are_within_the_bounds(profile, eps):
    flint = pytest.importorskip("flint")
    above, below = (profile.certify(eps, bound=bound, digits=30).log() for bound in ("upper", "lower"))
    # The upper end of the first ball is at least every delta, and the lower end of the second one at most the largest delta.
    assert flint.arb(profile.log_delta(eps, bound="lower")) <= above.upper()
    assert below.lower() <= flint.arb(profile.log_delta(eps))


def test_impossible_ratios_are_refused():
    # The maximum of the two distributions has total mass 1 + beta.
    with pytest.raises(ValueError, match=r"q=1\.2 must be in \[1\.3"):
        mechanisms.RatioBounded(3.0, 0.3, 1.2).shuffled(10)


def pair_of(rows, target, others):
    """Return the distributions of the messages for the target's two inputs, as lists over the same multisets."""
    one, two = (messages(rows[x], *(rows[y] for y in others)) for x in target)
    outcomes = sorted({*one, *two})
    return [one.get(y, Fraction(0)) for y in outcomes], [two.get(y, Fraction(0)) for y in outcomes]


def twice(first, second, factor):
    """Return the hockey-stick divergence of two independent releases of a pair."""
    return hockey_stick([x * y for x in first for y in first], [x * y for x in second for y in second], factor)


@pytest.mark.parametrize(("users", "p", "beta", "q"), [(3, 3, Fraction(1, 4), 3), (2, 4, Fraction(3, 5), 2)])
def test_the_variation_ratio_is_attained_and_composes_as_a_pair(users, p, beta, q):
    a = beta / (p - 1)
    rest = 1 - (p + 1) * a
    rows = [(p * a, a, rest, Fraction(0)), (a, p * a, rest, Fraction(0)),
            (p * a / q, p * a / q, rest / q, (q - 1 - beta) / q)]
    pair = pair_of(rows, (0, 1), [2] * (users - 1))
    ratios = float(p), float(beta), float(q)
    bound = mechanisms.RatioBounded(*ratios).shuffled(users)
    for eps in (0.2, 0.7):
        assert bound.delta(eps) == pytest.approx(float(hockey_stick(*pair, rational(eps))), rel=1e-12)
        exact = float(twice(*pair, rational(eps)))
        lower, upper = (bound.self_compose(2).delta(eps, bound=side) for side in ("lower", "upper"))
        assert lower <= exact <= upper <= lower * (1 + 2e-5)
    known = mechanisms.RatioBounded(3.0, 0.25, 3.0).shuffled(100)
    assert known.epsilon(1e-4) == pytest.approx(known.epsilon(1e-4, bound="lower"), rel=1e-6)


@pytest.mark.parametrize("rows", [
    ((Fraction(5, 8), Fraction(3, 8)), (Fraction(1, 4), Fraction(3, 4))),
    # One output is impossible for one of the inputs.
    slow(((Fraction(7, 8), Fraction(1, 8)), (Fraction(1), Fraction(0)))),
])
def test_lower_bound_of_two_releases_of_a_shuffled_matrix(rows):
    both = shuffle.Shuffled(FiniteRandomizer([[float(x) for x in row] for row in rows]), 2).self_compose(2)
    pairs = [pair_of(rows, target, [x]) for target in ((0, 1), (1, 0)) for x in (0, 1)]
    for eps in (0.1, 0.9):
        # Both releases have the same dataset, a choice that an adaptive adversary has, too.
        exact = float(max(twice(*pair, rational(eps)) for pair in pairs))
        assert 0.4 * exact <= both.delta(eps, bound="lower") <= exact * (1 + 1e-12)
        assert exact * (1 - 1e-12) <= both.delta(eps)


def test_probabilities_that_underflow_are_subtracted_from_the_lower_bound():
    rare = shuffle.Shuffled(KaryResponse(2, 672.0416786149665), 7, participation=1e-12)
    # The reference value is the sum over all outcomes with 40 digits.
    assert rare.log_delta(670.4498411568516, bound="lower") <= -109.2114635754302 <= rare.log_delta(670.4498411568516)


@pytest.mark.parametrize("eps", thinned([690.0, 700.5, 710.0, 1e4, 1e308], 3))
@pytest.mark.parametrize("matrix", [((0.5, 0.5), (1.0, 0.0)), ((0.5, 0.25, 0.25), (1.0, 0.0, 0.0), (0.25, 0.75, 0.0))])
def test_delta_where_the_exponential_of_eps_overflows(matrix, eps):
    """Only counts that are impossible for the other input contribute; all datasets of three users are enumerated."""
    best = Fraction(0)
    for others in itertools.product(range(len(matrix)), repeat=2):
        laws = []
        for own in range(len(matrix)):
            law = {}
            for shown in itertools.product(range(len(matrix[0])), repeat=3):
                mass = math.prod(Fraction(matrix[x][y]) for x, y in zip((own, *others), shown))
                law[tuple(sorted(shown))] = law.get(tuple(sorted(shown)), 0) + mass
            laws.append(law)
        for first, second in itertools.permutations(laws, 2):
            best = max(best, sum(mass for count, mass in first.items() if not second[count]))
    protocol = shuffle.Shuffled(mechanisms.FiniteRandomizer(matrix), 3)
    assert protocol.delta(eps, bound="lower") <= best <= protocol.delta(eps)
    assert protocol.delta(eps, bound="lower") >= best * (1 - Fraction(1, 10**8))
    assert "other user" in protocol.data(eps)


def test_delta_of_shuffled_gaussian_noise_where_all_negative_values_are_equal():
    protocol = mechanisms.GaussianMechanism(0.493).shuffled(4408)
    eps = 87.57877807617189
    assert protocol.log_delta(eps, bound="lower") < protocol.log_delta(eps) < -50


@pytest.mark.slow
def test_curve_mu_and_divergence_of_shuffled_gaussian_noise():
    protocol = mechanisms.GaussianMechanism(0.493).shuffled(4408)
    with np.errstate(divide="raise"):
        below, above = protocol.tradeoff(), protocol.tradeoff(bound="upper")
    assert 0.9 < below.beta(0.05) <= above.beta(0.05) < 0.95
    assert 0.01 < protocol.rdp(2.0, bound="lower") < 1
    assert 0 < protocol.gdp_mu(bound="lower") < math.inf


@pytest.mark.parametrize("central", [
    mechanisms.DiscreteGaussianMechanism(2.0).shuffled(10**4),
    mechanisms.GaussianMechanism(2.0).shuffled(10**4, inputs=(0, 1)),
    mechanisms.GaussianVector(2.0, 2).shuffled(100),
], ids=lambda central: type(central.randomizer).__name__)
@pytest.mark.parametrize("eps", [720.0, 1e3, 1e9])
def test_eps_beyond_the_largest_exponent(central, eps):
    """e^eps is not a double, and the bound is the local one."""
    assert central.log_delta(eps, bound="lower") <= central.log_delta(eps) <= central.randomizer.log_delta(eps) * (1 - 1e-12)
    assert isinstance(central.argument(eps), str)


@pytest.mark.parametrize("participation", [1.0, 0.5])
@pytest.mark.parametrize(("rows", "users"), [
    ([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.125, 0.125, 0.75]], 4),
    ([[0.5, 0.5, 0.0, 0.0], [0.0, 0.25, 0.5, 0.25]], 5), ([[0.9375, 0.03125, 0.03125], [0.03125, 0.03125, 0.9375]], 2),
])
def test_tails_of_few_users_are_those_of_the_worst_dataset(rows, users, participation):
    """The upper bound was up to three times as large."""
    share = Fraction(participation)
    exact_rows = [[*(share * Fraction(p) for p in row), 1 - share] for row in rows]
    protocol, eps = FiniteRandomizer(rows).shuffled(users, participation), [0.01, 0.2, 0.33, 0.7, 1.5, 5.0]
    best = dict.fromkeys(eps, Fraction(0))
    for others in itertools.combinations_with_replacement(range(len(rows)), users - 1):
        laws = [messages(*(exact_rows[y] for y in (*others, x))) for x in range(len(rows))]
        for (p, q), at in itertools.product(itertools.permutations(laws, 2), eps):
            best[at] = max(best[at], sum(mass for y, mass in p.items() if mass > Fraction(math.exp(at)) * q.get(y, 0)))
    for at, exact in best.items():
        lower, upper = (protocol.loss_tail(at, bound=bound) for bound in ("lower", "upper"))
        assert lower <= exact <= upper
        assert (lower, upper) == pytest.approx((float(exact), float(exact)), rel=1e-9, abs=1e-290)


@pytest.mark.parametrize("short", [1e-13, 1e-12, 1e-9])
def test_two_users_hide_one_message_of_randomized_response_next_to_the_budget(short):
    alone = mechanisms.RandomizedResponse(6.790323696926295)
    eps = alone.eps * (1 - short)
    values = [alone.shuffled(users).log_delta(eps) for users in (1, 2, 3)]
    assert max(np.diff(values)) <= 1e-12
