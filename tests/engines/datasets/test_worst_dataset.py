"""The upper bound over all datasets against exact maxima over every dataset, and its monotonicity."""

import functools
import itertools
import json
import math
import pickle
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from shufflebounds import mechanisms, shuffle
from shufflebounds._engines.bits.two_counts import maximize_over_two_counts
from shufflebounds._engines.datasets import pair_weights as _pair_weights
from shufflebounds._engines.datasets.worst import WorstDataset
from shufflebounds.profile.extend import Interval
from tests.oracles import messages, rational
from tests.strategies import slow, thinned

WORST = json.loads((Path(__file__).parents[2] / "reference" / "worst-data.json").read_text())


def worst(rows, users, factor):
    """Return delta at e^eps = factor over all datasets and ordered pairs of inputs of the target."""
    found = Fraction(0)
    for others in itertools.combinations_with_replacement(range(len(rows)), users - 1):
        laws = [messages(*(rows[x] for x in others), row) for row in rows]
        for p, q in itertools.permutations(laws, 2):
            found = max(found, sum((max(Fraction(0), x - factor * q.get(y, 0)) for y, x in p.items()), Fraction(0)))
    return found


def bound(randomizer, users, eps):
    """Return log delta of the bound over all datasets, without the enumeration for few users."""
    return WorstDataset(randomizer.dataset_laws(), users).log_delta(eps)


def blanket(randomizer, users, eps):
    """Return log delta of the privacy blanket."""
    return shuffle.shuffled_log_deltas(randomizer, users, eps, method="blanket")


@pytest.mark.parametrize("row", thinned(WORST[::5], 2), ids=lambda row: f"{row['users']}-{row['eps']}")
def test_the_exact_maximum_is_between_the_bounds(row):
    protocol = shuffle.Shuffled(mechanisms.FiniteRandomizer(row["matrix"]), row["users"])
    lower, upper = (protocol.delta(row["eps"], bound=side) for side in ("lower", "upper"))
    assert lower * (1 - 1e-9) <= row["worst"] <= upper * (1 + 1e-9)
    assert row["worst"] <= math.exp(bound(protocol.randomizer, row["users"], row["eps"])) * (1 + 1e-9)


@pytest.mark.slow
def test_the_gap_to_the_exact_maximum():
    gaps = []
    for row in WORST:
        gaps.append(bound(mechanisms.FiniteRandomizer(row["matrix"]), row["users"], row["eps"]) - math.log(row["worst"]))
        assert gaps[-1] > -1e-9
    # The bound omits the phases of the contour sum. For few users of matrices with few outputs, whose sums lie on a lattice, this
    # matters most.
    assert np.median(gaps) < 0.15


@pytest.mark.parametrize(("rows", "users"), [
    # The matrices have nearly equal rows, a small entry, a zero, or equal rows.
    ([["1/2", "1/2"], ["500001/1000000", "499999/1000000"]], 11),
    ([["1/1000000", "999999/1000000"], ["1/3", "2/3"]], 10),
    ([["0", "1"], ["1/3", "2/3"]], 12),
    ([["2/5", "3/5"], ["2/5", "3/5"], ["1/2", "1/2"]], 7),
    ([["1/2", "1/4", "1/4"], ["1/4", "1/2", "1/4"]], 6),
    ([["2/5", "3/5"], ["3/5", "2/5"]], 1), ([["2/5", "3/5"], ["3/5", "2/5"]], 2),
])
def test_every_dataset_of_few_users(rows, users):
    exact = [[Fraction(p) for p in row] for row in rows]
    protocol = shuffle.Shuffled(mechanisms.FiniteRandomizer([[float(p) for p in row] for row in exact]), users)
    for eps in (0.0, 0.01, 0.5):
        truth = float(worst(exact, users, rational(eps)))
        assert protocol.delta(eps, bound="lower") * (1 - 1e-9) - 1e-13 <= truth <= protocol.delta(eps) * (1 + 1e-9) + 1e-15
        assert protocol.log_delta(eps) <= blanket(protocol.randomizer, users, eps) + 1e-12


ROWS = st.integers(2, 3).flatmap(lambda k: st.lists(st.lists(st.integers(1, 12), min_size=k, max_size=k), min_size=2, max_size=3))


@settings(max_examples=6)
@given(ROWS, st.integers(6, 8), st.floats(0, 0.6))
def test_random_matrices_of_few_users(parts, users, eps):
    rows = [[Fraction(p, sum(row)) for p in row] for row in parts]
    users = users if len(rows) == len(rows[0]) == 2 else 6
    protocol = shuffle.Shuffled(mechanisms.FiniteRandomizer([[float(p) for p in row] for row in rows]), users)
    truth = float(worst(rows, users, rational(eps)))
    assert truth <= protocol.delta(eps) * (1 + 1e-9) + 1e-14
    assert protocol._laws.over_datasets is None or truth <= math.exp(bound(protocol.randomizer, users, eps)) * (1 + 1e-9) + 1e-14


@pytest.mark.parametrize(("randomizer", "users", "delta", "most"), [
    # `most` is an upper limit of eps. By the blanket, eps is .1011, .02934, .3459, .03805 and .02973.
    (mechanisms.LocalHashing(100, 1.0, 4), 10**3, 1e-6, 0.09226),
    (mechanisms.LocalHashing(100, 1.0, 4), 10**4, 1e-6, 0.02676),
    pytest.param(mechanisms.LocalHashing(100, 4.0, 4), 10**4, 1e-6, 0.2975, marks=pytest.mark.slow),
    (mechanisms.LocalHashing(100, 4.0, 4), 10**6, 1e-8, 0.03284),
    (mechanisms.UnaryEncoding.optimized(100, 1.0), 10**4, 1e-6, 0.02691),
], ids=repr)
def test_epsilon_of_two_level_randomizers(randomizer, users, delta, most):
    protocol = randomizer.shuffled(users)
    eps = protocol.epsilon(delta)
    assert protocol.epsilon(delta, bound="lower") <= eps <= most
    assert protocol.delta(eps) <= delta
    assert protocol.argument(eps) == "worst dataset"


def test_fewer_users_less_budget_and_participation_are_in_order():
    values = [mechanisms.LocalHashing(50, 1.0, 4).shuffled(n).log_delta(0.03) for n in (3000, 6000, 12000)]
    assert values == sorted(values, reverse=True)
    values = [mechanisms.LocalHashing(50, e, 4).shuffled(5000).log_delta(0.03) for e in (0.5, 0.8, 1.1)]
    assert values == sorted(values)
    values = [mechanisms.LocalHashing(50, 1.0, 4).shuffled(5000, s).log_delta(0.02) for s in (0.25, 0.5, 1.0)]
    assert values == sorted(values)


def test_merging_outputs_does_not_raise_the_bound():
    rows = np.array([[0.4, 0.3, 0.2, 0.1], [0.3, 0.3, 0.1, 0.3], [0.25, 0.25, 0.25, 0.25]])
    merged = np.stack([rows[:, 0], rows[:, 1], rows[:, 2] + rows[:, 3]], axis=1)
    for users, eps in ((5000, 0.04), (20000, 0.02)):
        fine, coarse = (shuffle.Shuffled(mechanisms.FiniteRandomizer(m), users).log_delta(eps) for m in (rows, merged))
        # The bound of a sum of few values depends on the phases of its contour sum by about 1e-3.
        assert coarse <= fine + 3e-3


def in_order(smaller, larger, rounding=1e-6):
    """Assert that the first upper bound of log delta is at most the second one; each is a protocol and an eps.

    If every dataset is enumerated for the second protocol and not for the first, the bound of the first may be larger by its own
    gap: .049 in log delta for a matrix, 89 users and participation .9999.
    """
    (first, first_eps), (second, second_eps) = smaller, larger
    upper = second.log_delta(second_eps)
    if second.argument(second_eps) == "every dataset" != first.argument(first_eps):
        assert first.log_delta(first_eps, bound="lower") <= upper + rounding
        return
    assert first.log_delta(first_eps) <= upper + rounding


def check_orders(make, users, eps, more_users, more_eps, share):
    """Compare a protocol with protocols of more users, of larger eps and of less participation, and with the blanket."""
    protocol = make(users)
    in_order((make(users + more_users), eps), (protocol, eps))
    in_order((protocol, eps + more_eps), (protocol, eps))
    in_order((shuffle.Shuffled(protocol.randomizer, users, share), eps), (protocol, eps))
    # The smaller one of this bound and that of the blanket is returned, so only rounding can violate this order.
    assert protocol.log_delta(eps) <= blanket(protocol.randomizer, users, eps) + 1e-12


def check_merged(rows, users, eps):
    """Compare a matrix with the matrix in which its last two outputs are merged, which is a post-processing of the first."""
    merged = np.column_stack([rows[:, :-2], rows[:, -2] + rows[:, -1]])
    coarse, fine = (mechanisms.FiniteRandomizer(matrix).shuffled(users) for matrix in (merged, rows))
    in_order((coarse, eps), (fine, eps))
    # The blanket takes no search, so its bounds are in order up to rounding.
    assert blanket(coarse.randomizer, users, eps) <= blanket(fine.randomizer, users, eps) + 1e-6


def random_matrix(rng):
    rows = rng.integers(1, 13, size=(int(rng.integers(2, 4)), int(rng.integers(3, 5)))).astype(float)
    return rows / rows.sum(axis=1, keepdims=True)


TWO_LEVEL = [
    lambda e: mechanisms.LocalHashing(50, e, 4), lambda e: mechanisms.SubsetSelection(12, e, 3),
    lambda e: mechanisms.UnaryEncoding.optimized(50, e), lambda e: mechanisms.HadamardResponse(15, e),
]


def test_bounds_of_local_hashing_are_in_order():
    check_orders(TWO_LEVEL[0](1.0).shuffled, 4000, 0.04, 500, 0.01, 0.6)


@pytest.mark.slow
def test_bounds_of_one_matrix_are_in_order():
    rows = np.array([[0.5, 0.3, 0.2], [0.3, 0.3, 0.4]])
    check_orders(mechanisms.FiniteRandomizer(rows).shuffled, 2000, 0.03, 300, 0.01, 0.6)
    check_merged(rows, 2000, 0.03)


@pytest.mark.slow
@settings(max_examples=6)
@given(st.integers(0, 2**32), st.integers(30, 3000), st.floats(0.003, 0.4), st.integers(1, 2000), st.floats(0, 0.1),
       st.floats(0.2, 1))
def test_bounds_of_random_matrices_are_in_order(seed, users, eps, more_users, more_eps, share):
    rows = random_matrix(np.random.default_rng(seed))
    check_orders(mechanisms.FiniteRandomizer(rows).shuffled, users, eps, more_users, more_eps, share)
    check_merged(rows, users, eps)


@pytest.mark.slow
@settings(max_examples=25)
@given(st.sampled_from(TWO_LEVEL), st.floats(0.3, 3), st.integers(50, 20000), st.floats(0.003, 0.3), st.integers(1, 20000),
       st.floats(0, 0.1), st.floats(0.2, 1))
def test_bounds_of_two_level_randomizers_are_in_order(family, local_eps, users, eps, more_users, more_eps, share):
    randomizer = family(local_eps)
    check_orders(randomizer.shuffled, users, eps, more_users, more_eps, share)


def negative_mass(rows, pairs):
    """Return the mass of the negative part of W for gamma = 1/2, by a sum over all outputs of all pairs.

    W is the signed distribution of docs/theorems/worst-dataset for the messages of the drawn pairs, as a product.
    """
    first, second = rows
    plain = ((np.outer(first, second) + np.outer(second, first)) / 2).ravel()
    drop = -0.5 * np.outer(first - second, first - second).ravel()
    law = functools.reduce(lambda out, _: np.outer(out, plain + drop / pairs).ravel(), range(pairs), np.ones(1))
    return -np.minimum(law, 0).sum()


def test_negative_part_of_the_signed_distribution():
    rng, compared = np.random.default_rng(3), 0
    for _ in range(40):
        pairs, outputs = int(rng.integers(1, 4)), int(rng.integers(2, 5))
        # Some outputs have a small probability and a large likelihood ratio, as in the tails of noise.
        rows = np.exp(rng.uniform(0, 1, (2, outputs)))
        rows[rng.integers(2), rng.integers(outputs)] *= np.exp(rng.uniform(-7, -1))
        rows /= rows.sum(axis=1, keepdims=True)
        exact = negative_mass(rows, pairs)
        assert exact <= _pair_weights.negative_mass(mechanisms.FiniteRandomizer(rows).dataset_laws().ratio_tail, pairs) + 1e-15
        compared += exact > 1e-9
    assert compared > 5


def test_negative_part_of_gaussian_noise():
    data = mechanisms.GaussianMechanism(1.0).dataset_laws()
    # The negative part of one pair is computed by a sum over a grid of outputs.
    y = np.linspace(-8, 9, 681)
    rows = np.exp(-0.5 * (y - np.array([[0.0], [1.0]])) ** 2)
    rows /= rows.sum(axis=1, keepdims=True)
    for pairs in (5, 20):
        plain = (np.outer(rows[0], rows[1]) + np.outer(rows[1], rows[0])) / 2
        one = -np.minimum(plain - 0.5 / pairs * np.outer(rows[0] - rows[1], rows[0] - rows[1]), 0).sum()
        exact = 0.5 * math.expm1(pairs * math.log1p(2 * one))
        assert exact * (1 - 1e-2) < _pair_weights.negative_mass(data.ratio_tail, pairs) < 3 * exact


def test_weights_of_a_product_and_their_later_orders():
    for pairs in (1, 2, 5, 40, 300):
        weights = [Fraction(math.comb(pairs, k), pairs**k) for k in range(pairs + 1)]
        steps = [one - other for one, other in itertools.pairwise([*weights, Fraction(0)])]
        found = _pair_weights.signed_product(pairs, 0.0)
        for step, log_step in zip(steps, found.log_steps):
            assert step == 0 if log_step == -math.inf else 0 <= log_step - math.log(step) < 1e-11
        # The factors of l_(2k+1) grow at most by (2k + 3) r^2/(n - 2k - 2) from one order to the next.
        for k in range(_pair_weights.ORDERS, pairs):
            assert steps[k] * (2 * k + 3) <= Fraction(found.later) * steps[k - 1]


@pytest.mark.parametrize("local_eps", thinned([0.3, 1.0, 2.0, 3.0, slow(4.0), slow(7.1)], 2))
def test_weights_of_the_linear_program_are_nonnegative_at_every_corner(local_eps):
    """W >= 0 at the corners in fractions, by another formula: coefficients of a product of (1 + t x)."""
    half = Fraction(math.sinh(0.5 * local_eps))
    less = 2 * half * half * (1 + Fraction(1, 10**12))
    choices = _pair_weights.bounded_choices(local_eps, 10**6)
    assert len(choices) > 0
    for choice in choices:
        s, rounded = choice.pairs, 2.0 ** (math.frexp(float(less))[1] - 12)
        rounded = math.ceil(float(less) / rounded) * rounded
        assert choice.less == rounded
        omega = [Fraction(1), *choice.omegas]
        high, low = 2 * less, -2 * less / (1 + less)
        for j in {*range(0, s + 1, max(1, s // (12 if s < 200 else 1))), s}:
            sums = [Fraction(1)]
            for t in [high] * j + [low] * (s - j):
                sums = [a + t * b for a, b in zip([*sums, 0], [0, *sums])][: len(omega)]
            assert sum(w * Fraction(-1, 2) ** k * e / math.comb(s, k) for k, (w, e) in enumerate(zip(omega, sums))) > 0
        steps = [abs(float(a - b)) for a, b in itertools.pairwise([*omega, Fraction(0)])]
        assert np.exp(choice.log_steps)[: len(steps)] == pytest.approx(steps, rel=1e-12, abs=1e-300)
        assert choice.signed == 0
    # More pairs reduce the error term, up to the order of seven messages.
    first, last = choices[0], choices[-1]
    assert last.log_steps[0] < -15
    assert first.pairs < math.cosh(local_eps) + 1


@pytest.mark.parametrize(("pairs", "less"), thinned([
    (1, 0.3), (2, 0.97), (3, 2.7), (11, 9.1), (36, 26.3), slow(272, 201.0), slow(1796, 898.0),
], 3))
def test_weights_minimize_the_linear_program(pairs, less):
    """The sum of the weighted differences is that of SciPy's solution, which violates constraints by rounding."""
    most = min(pairs, _pair_weights._MOST)
    corners = np.array([[float(one) for one in _pair_weights._exact_corner(pairs, most, less, j)] for j in range(pairs + 1)])
    size = np.abs(corners).max(axis=1)
    steps = np.eye(most + 1, most, -1) - np.eye(most + 1, most)
    start, costs = np.append(1.0, np.zeros(most)), 0.05 ** np.arange(most + 1.0)
    rows = np.block([[-corners[:, 1:] / size[:, None], np.zeros((pairs + 1, most + 1))], [steps, -np.eye(most + 1)],
                     [-steps, -np.eye(most + 1)]])
    found = linprog(np.concatenate([np.zeros(most), costs]), rows, np.concatenate([1 / size, -start, start]),
                    bounds=[(None, None)] * most + [(0, None)] * (most + 1))
    weights = _pair_weights._optimal(pairs, less)
    total = sum(cost * abs(float(a - b)) for cost, a, b in zip(costs, (1, *weights), (*weights, 0)))
    # 1e-9 of the weights is taken off, which changes the first difference most.
    assert total == pytest.approx(found.fun, rel=1e-5)


def test_a_simplex_method_without_a_solution():
    # Nothing limits the first unknown.
    assert _pair_weights._basis(np.array([[-1.0, 1.0], [-2.0, 1.0]])) is None
    assert _pair_weights._solved([[Fraction(1), Fraction(2)], [Fraction(2), Fraction(4)]], [Fraction(1), Fraction(2)]) is None


def test_weights_that_are_too_large_have_a_negative_corner():
    assert _pair_weights._least(3, 2.0, (Fraction(1), Fraction(1, 4), Fraction(0))) >= 0
    assert _pair_weights._least(3, 2.0, (Fraction(1),) * 3) < 0
    assert _pair_weights._least(2, 2.5, (Fraction(1),)) < 0


def test_participation_is_one_more_output():
    rows, share = np.array([[0.5, 0.3, 0.2], [0.3, 0.3, 0.4]]), 0.375
    sent = shuffle.Shuffled(mechanisms.FiniteRandomizer(rows), 2000, share)
    silent = np.append(rows * share, np.full((2, 1), 1 - share), axis=1)
    listed = shuffle.Shuffled(mechanisms.FiniteRandomizer(silent), 2000)
    for eps in (0.01, 0.03):
        assert sent.log_delta(eps) == pytest.approx(listed.log_delta(eps), abs=1e-6)


@pytest.mark.slow
def test_a_matrix_of_many_inputs():
    rows = np.random.default_rng(3).dirichlet(5 * np.ones(10), 10)
    protocol = mechanisms.FiniteRandomizer(rows).shuffled(10**4)
    lower, upper = (protocol.log_delta(0.032, bound=side) for side in ("lower", "upper"))
    # The bound of the blanket is 1.04 above the lower bound in log delta.
    assert lower <= upper < lower + 0.7 < blanket(protocol.randomizer, 10**4, 0.032)


@pytest.mark.parametrize("noise", [
    mechanisms.LaplaceMechanism(1.0), mechanisms.LaplaceMechanism(0.2), mechanisms.GaussianMechanism(1.0),
    slow(mechanisms.GaussianMechanism(0.5, 2.0)),
], ids=repr)
def test_one_user_with_listed_inputs_has_the_delta_of_the_noise(noise):
    protocol = noise.shuffled(1, inputs=(3.0, 3.0 + noise.sensitivity))
    for eps in (0.1, 0.7, 2.0):
        lower, upper = (protocol.log_delta(eps, bound=side) for side in ("lower", "upper"))
        truth = noise.log_delta(eps)
        assert lower <= truth + 1e-11
        assert truth <= upper + 1e-11
        assert lower == upper or upper - lower < 0.02


@pytest.mark.parametrize(("noise", "users", "delta", "most"), [
    # The eps of the blanket are .03785, .004401, .3281, .3281, .2123, .06013, .006932, .02039 and .0975.
    (mechanisms.LaplaceMechanism(1.0), 10**4, 1e-6, 0.03133), (mechanisms.LaplaceMechanism(1.0), 10**6, 1e-8, 0.003623),
    (mechanisms.LaplaceMechanism(1 / 3), 10**4, 1e-6, 0.13556), (mechanisms.LaplaceMechanism(0.25), 10**4, 1e-6, 0.2458),
    slow(mechanisms.GaussianMechanism(1.0), 10**4, 1e-6, 0.04601),
    slow(mechanisms.GaussianMechanism(1.0), 10**6, 1e-8, 0.0052394), (mechanisms.GaussianMechanism(2.0), 10**4, 1e-6, 0.017087),
    slow(mechanisms.GaussianMechanism(0.8), 10**4, 1e-6, 0.0783),
], ids=repr)
def test_epsilon_of_noise_on_an_interval(noise, users, delta, most):
    whole = noise.shuffled(users)
    eps = whole.epsilon(delta)
    assert whole.epsilon(delta, bound="lower") <= eps <= most
    assert whole.delta(eps) <= delta
    assert whole.argument(eps) == "worst dataset"
    two = noise.shuffled(users, inputs=(0.0, 1.0))
    # Cells of pairs and inputs are divided until the bound of each is at most 1e-3 in log delta above the largest value.
    assert two.epsilon(delta, bound="lower") <= two.epsilon(delta) <= eps * (1 + 1e-4)


@pytest.mark.parametrize(("noise", "users", "eps"), [
    (mechanisms.LaplaceMechanism(1.0), 20, 0.3), (mechanisms.LaplaceMechanism(1.0), 5000, 0.05),
    pytest.param(mechanisms.GaussianMechanism(1.0), 10, 0.1, marks=pytest.mark.slow),
    pytest.param(mechanisms.GaussianMechanism(1.0), 10**5, 0.05, marks=pytest.mark.slow),
], ids=repr)
def test_two_values_have_no_larger_bound_than_the_interval(noise, users, eps):
    # Cells of pairs and inputs are divided until the bound of each is at most 1e-3 above the largest value. Where delta is small,
    # the blocks of four users, which only the interval of Gaussian noise has, give a smaller bound than pairs of users.
    slack = 0.1 if isinstance(noise, mechanisms.GaussianMechanism) else 2e-3
    assert noise.shuffled(users, inputs=(0.0, 1.0)).log_delta(eps) <= noise.shuffled(users).log_delta(eps) + slack


@pytest.mark.slow
@pytest.mark.parametrize("noise", [mechanisms.LaplaceMechanism(1.0), mechanisms.GaussianMechanism(1.0)], ids=repr)
def test_noise_with_more_than_two_input_values(noise):
    two, three = (noise.shuffled(10**4, inputs=values) for values in ((0, 1), (1, 0.5, 0)))
    assert three.inputs == (0.0, 0.5, 1.0)
    # Three inputs have more datasets than two, and fewer than the whole interval.
    assert two.epsilon(1e-6, bound="lower") * (1 - 1e-4) <= three.epsilon(1e-6, bound="lower")
    whole = noise.shuffled(10**4)
    assert three.epsilon(1e-6, bound="lower") <= three.epsilon(1e-6) <= whole.epsilon(1e-6)
    assert three.epsilon(1e-6) < 1.01 * two.epsilon(1e-6)
    nearer = noise.shuffled(10**4, inputs=(0.25, 0.75))
    assert nearer.epsilon(1e-6) < two.epsilon(1e-6)


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda: mechanisms.LaplaceMechanism(1.0).shuffled(10, inputs=(0, 2)), ValueError, "at most sensitivity=1"),
    (lambda: mechanisms.LaplaceMechanism(1.0).shuffled(10, inputs=(1, 1)), ValueError, "at least two different values"),
    (lambda: mechanisms.KaryResponse(3, 1.0).shuffled(10, inputs=(0, 1)), TypeError, "leave it out"),
    (lambda: mechanisms.LaplaceMechanism(1.0).with_inputs([]), ValueError, "must not be empty"),
    (lambda: mechanisms.GaussianMechanism(1.0).with_inputs(math.nan), ValueError, "must be finite"),
])
def test_invalid_input_values_are_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_listed_inputs_are_kept_by_copies():
    protocol = mechanisms.LaplaceMechanism(1.0).shuffled(10, inputs=(0, 1))
    again = pickle.loads(pickle.dumps(protocol))
    assert again == protocol
    assert again.log_delta(0.3) == protocol.log_delta(0.3)
    assert protocol != mechanisms.LaplaceMechanism(1.0).shuffled(100)


@pytest.mark.slow
def test_compositions_and_divergences_use_the_bound_over_all_datasets():
    protocol = mechanisms.LocalHashing(100, 1.0, 4).shuffled(10**4)
    three = protocol.self_compose(3)
    lower, upper = (three.epsilon(1e-6, bound=side) for side in ("lower", "upper"))
    # The composition of the privacy blanket has the larger eps .05301.
    assert 0.0483 < lower <= upper < 0.0485
    assert protocol.rdp(4.0, bound="lower") <= protocol.rdp(4.0) < 1.05 * protocol.rdp(4.0, bound="lower")


def test_calibration_uses_the_bound_over_all_datasets():
    fewest = shuffle.Shuffled.calibrate(mechanisms.LocalHashing(100, 1.0, 4), eps=0.03, delta=1e-6)
    # The blanket alone needs 9595 users.
    assert 8000 < fewest.users < 8200
    assert fewest.delta(0.03) <= 1e-6


def test_both_bounds_of_a_small_delta_are_close():
    # For a small delta the error term decides, and more drawn pairs than for an ordinary delta are the best choice.
    survey = mechanisms.FiniteRandomizer([np.roll([0.5, 0.3, 0.15, 0.05], shift) for shift in range(4)]).shuffled(1000)
    rappor = mechanisms.Rappor(0.5, 0.75, 0.25, 2).shuffled(1000)
    for protocol, delta in ((survey, 1e-8), (survey, 1e-11), (rappor, 1e-14)):
        assert protocol.epsilon(delta) < 1.02 * protocol.epsilon(delta, bound="lower")


@pytest.mark.parametrize("diagonal", [False, True])
def test_the_search_over_two_counts_finds_the_largest_value(diagonal):
    def log_value(i, j):
        return -((i - 9) ** 2) / 300 - ((j - 4) ** 2) / 200

    def enclose(i, j, more_i, more_j):
        values = [log_value(i + s, j + t) for s in range(more_i + 1) for t in range(more_j + 1)]
        return Interval(log_value(i, j) - 1e-9, max(values) + 1e-9)

    lower, upper = maximize_over_two_counts(enclose, 24, diagonal, 10**4)
    exact = max(log_value(i, j) for i in range(24) for j in range(i + 1) if i == j or not diagonal)
    assert lower <= exact <= upper
    assert upper - lower < 0.02


@pytest.mark.parametrize("power", [1, 2])
def test_inner_pairs_around_another_input_are_smaller_in_the_convex_order(power):
    """The lemma on interval inputs for Laplace and Gaussian noise on a grid, and an exception where its condition is not met."""
    y = np.linspace(-9, 10, 3801)

    def law(x):
        weight = np.exp(-np.abs(2 * (y - x)) ** power / power)
        return weight / weight.sum()

    def stop_loss(a, b, x, factor, levels):
        return np.maximum(law(a) - factor * law(b) - levels[:, None] * law(x), 0).sum(axis=1)

    levels = np.linspace(-8, 3, 45)
    for a, x, b in ((0.2, 0.5, 0.7), (0, 0.3, 0.3), (0.6, 0.6, 1), (0.1, 0.8, 0.9)):
        for factor in (1.0, 1.3):
            inner, ends = (stop_loss(*pair, x, factor, levels) for pair in ((a, b), (0, 1)))
            assert (inner <= ends + 1e-9).all()
            assert (inner < ends - 1e-3).any()
    if power == 1:
        # Here x is not between the two inputs of the target.
        one = np.array([1.0])
        assert stop_loss(0.5, 1, 0, 1.0, one) > stop_loss(0, 1, 0, 1.0, one) + 1e-3


@pytest.mark.parametrize("noise", [
    slow(mechanisms.GaussianMechanism(1.0)), mechanisms.LaplaceMechanism(0.5), mechanisms.GeometricMechanism(2.0, 6),
    mechanisms.DiscreteGaussianMechanism(2.0, 3),
], ids=repr)
@pytest.mark.parametrize("users", [30, slow(3000)])
def test_random_datasets_of_an_interval_are_below_the_bound(noise, users):
    """The analyst learns whether each message is above a threshold: delta of a random dataset is a lower bound of the exact one."""
    rng, protocol = np.random.default_rng(users), noise.shuffled(users)
    top, k = noise.sensitivity, np.arange(-200.0, 201.0)

    def above(x, level):
        if isinstance(noise, mechanisms.GaussianMechanism):
            return 0.5 * math.erfc((level - x) / math.sqrt(2))
        if isinstance(noise, mechanisms.LaplaceMechanism):
            tail = 0.5 * math.exp(-abs(level - x) / noise.scale)
            return tail if level >= x else 1 - tail
        mass = (np.exp(-noise.eps / top * abs(k - x)) if isinstance(noise, mechanisms.GeometricMechanism)
                else np.exp(-0.5 * ((k - x) / noise.sigma) ** 2))
        return mass[k > level].sum() / mass.sum()

    budgets, compared = (0.02, 0.4), 0
    bounds = protocol.log_delta(budgets)
    for _ in range(12):
        ends = rng.random() < 0.5
        inputs = rng.choice([0, top], users + 1) if ends else rng.uniform(0, top, users + 1)
        inputs = inputs if isinstance(noise, mechanisms.GaussianMechanism | mechanisms.LaplaceMechanism) else np.round(inputs)
        if ends:
            inputs[:2] = 0, top
        level = rng.uniform(-0.5, 1.5) * top
        p, q, *others = (above(x, level) for x in inputs)
        law = np.ones(1)
        for share in others:
            law = np.convolve(law, [1 - share, share])
        first, second = (np.convolve(law, [1 - share, share]) for share in (p, q))
        for eps, bound in zip(budgets, bounds):
            for one, other in ((first, second), (second, first)):
                delta = float(np.maximum(one - math.exp(eps) * other, 0).sum())
                if delta > 1e-12:
                    compared += 1
                    assert math.log(delta) <= bound + 1e-9
    assert compared > 5


NOISE = [slow(mechanisms.GaussianMechanism(1.0), 1000), slow(mechanisms.GaussianMechanism(0.5), 3000),
         (mechanisms.LaplaceMechanism(0.3), 300), (mechanisms.DiscreteGaussianMechanism(2.0, 3), 1000)]


@pytest.mark.parametrize(("noise", "users"), NOISE, ids=repr)
def test_rare_messages_bound_the_largest_sum_from_below(noise, users):
    # The main term of the bound is at least Gamma of all users.
    data = noise.dataset_laws()
    found = WorstDataset(data, users)
    for eps in (0.0, 0.3):
        blanket_value = blanket(noise, users, eps)
        value = found.log_delta(eps, every=False)
        assert found._least_gamma(eps, blanket_value) <= min(blanket_value, value) + 1e-9
        # With the error term it is about the smallest bound over all datasets, whichever of the choices are tried.
        for enough in (-np.inf, np.inf):
            assert found.least_log_delta(eps, blanket_value, enough) <= value + 1e-9


@pytest.mark.parametrize(("noise", "users"), NOISE, ids=repr)
def test_shared_values_are_bounds_and_hardly_larger(noise, users):
    protocol = noise.shuffled(users)
    found = WorstDataset(noise.dataset_laws(), users)
    for eps in (0.02, 0.2):
        fine, shared = found.log_delta(eps), found.log_delta(eps, shared=True)
        assert protocol.log_delta(eps, bound="lower") <= shared <= fine + 0.02
        assert abs(fine - shared) < 0.1


@pytest.mark.slow
def test_rdp_of_noise_is_near_that_of_its_dataset():
    protocol = mechanisms.GaussianMechanism(1.0).shuffled(1000)
    lower, upper = (protocol.rdp(6.0, bound=side) for side in ("lower", "upper"))
    assert lower <= upper <= 1.07 * lower
