"""The bound of docs/theorems/worst-dataset in interval arithmetic: against the kernels, the lower bound, and all datasets."""


import itertools
from fractions import Fraction

import numpy as np
import pytest

from shufflebounds import mechanisms
from shufflebounds._engines.datasets.pair_weights import bounded_choices
from shufflebounds._engines.datasets.worst import WorstDataset
from shufflebounds.certify import worst_dataset as certified
from shufflebounds.certify.balls import flint
from shufflebounds.certify.families import family_of
from tests.strategies import slow, thinned

pytest.importorskip("flint")

UNEVEN = [[0.55, 0.3, 0.1, 0.05], [0.2, 0.5, 0.2, 0.1], [0.25, 0.15, 0.4, 0.2]]
STEEP = [[0.5, 0.49, 0.01], [0.49, 0.5099, 0.0001], [0.3, 0.69, 0.01]]
RANDOMIZERS = [
    mechanisms.FiniteRandomizer(UNEVEN), mechanisms.FiniteRandomizer(STEEP), mechanisms.LocalHashing(100, 2.0),
    mechanisms.LocalHashing(2, 1.0, 3), mechanisms.SubsetSelection(12, 1.5), mechanisms.SubsetSelection(5, 1.0, 3),
    mechanisms.HadamardResponse(2, 1.0), mechanisms.HadamardResponse(3, 1.0), mechanisms.HadamardResponse(50, 3.0),
    mechanisms.UnaryEncoding.symmetric(8, 2.0), mechanisms.UnaryEncoding(2, 0.6, 0.2),
]


FEW, MANY = (300, 1.0, 1e-5), (10**6, 0.3, 1e-9)
"""Users, participation and delta at which the bound over all datasets is the smallest one, but for some of the randomizers."""

OTHERS = {FEW: [mechanisms.FiniteRandomizer(STEEP), mechanisms.HadamardResponse(3, 1.0)],
          MANY: [mechanisms.HadamardResponse(3, 1.0), mechanisms.HadamardResponse(50, 3.0)]}


@pytest.mark.parametrize(("randomizer", "users", "share", "delta"), [
    # One of each class by default.
    *((slow(one, *FEW) if type(one) is type(before) else (one, *FEW)) for before, one in itertools.pairwise([None, *RANDOMIZERS])
      if one not in OTHERS[FEW]),
    *((one, *MANY) for one in RANDOMIZERS if one not in OTHERS[MANY]), slow(RANDOMIZERS[0], 10**6, 0.3, 1e-3),
], ids=repr)
def test_the_ball_is_between_the_bounds(randomizer, users, share, delta):
    protocol = randomizer.shuffled(users, participation=share)
    eps = protocol.epsilon(delta)
    assert protocol.argument(eps) == "worst dataset"
    ball = protocol.certify(eps, bound="upper", digits=12)
    above = protocol.log_delta(eps) - float(ball.log())
    assert ball.rel_accuracy_bits() > 40
    # The kernel adds 1e-9 of the error term, and less than 1e-10 for its rounding errors.
    assert 0 <= above < 1e-8
    assert protocol.log_delta(eps, bound="lower") <= float(ball.log())


def test_the_ball_is_that_of_the_given_factor_and_not_of_the_choices():
    protocol = mechanisms.FiniteRandomizer(UNEVEN).shuffled(10**4)
    eps, ball = protocol.epsilon(1e-6), flint().arb
    choices = protocol._bounds.upper.over_datasets.choices(eps)
    bound = certified.EveryDataset(family_of(protocol.randomizer)[1]().thinned(1.0), 10**4)
    at = [float(bound.value(choices, ball(x).exp()).log()) for x in (0.9 * eps, eps, 1.1 * eps)]
    for x, value in zip((0.9 * eps, eps, 1.1 * eps), at, strict=True):
        # Numbers that were chosen for another eps give a slightly larger bound.
        assert -1e-8 < value - protocol.log_delta(x) < 0.1


@pytest.mark.slow
def test_the_ball_is_above_every_dataset():
    rng = np.random.default_rng(4)
    for _ in range(4):
        rows = rng.dirichlet(np.ones(3), size=3) * 0.9 + 1 / 30
        users = int(rng.integers(8, 14))
        randomizer = mechanisms.FiniteRandomizer(rows / rows.sum(axis=1, keepdims=True))
        bound = WorstDataset(randomizer.dataset_laws(), users)
        for eps in (0.0, 0.1, 0.5):
            value = certified.EveryDataset(family_of(randomizer)[1](), users).value(bound.choices(eps), flint().arb(eps).exp())
            assert value.rel_accuracy_bits() > 40
            # few users: the lower bound is the largest delta of all datasets
            assert value > randomizer.shuffled(users).delta(eps, bound="lower")
            # The engine states no delta above 1.
            assert min(float(value.log()), 0.0) <= bound.log_delta(eps)


@pytest.mark.parametrize("randomizer", RANDOMIZERS, ids=repr)
def test_families_are_distributions_above_the_measure(randomizer):
    family = family_of(randomizer)[1]()
    for row in family.rows:
        assert abs(float(sum(row)) - 1) < 1e-12
        assert all(not p < m for p, m in zip(row, family.blanket, strict=True))


def test_the_centre_gives_the_radius_of_the_kernel():
    randomizer = mechanisms.FiniteRandomizer(UNEVEN)
    # The outputs of the family have another order.
    family = family_of(randomizer)[1]()
    rows, centre = (np.array(part, dtype=float) for part in (family.rows, family.centre))
    assert np.sort(rows.ravel()) == pytest.approx(np.sort(np.ravel(UNEVEN)))
    gaps = ((rows - centre) ** 2 / rows.min(axis=0)).sum(axis=1)
    assert gaps.max() == pytest.approx(randomizer.dataset_laws().distance, rel=1e-8)


@pytest.mark.parametrize("local_eps", [1.5, 2.0, slow(4.0)])
def test_weights_are_verified(local_eps):
    for weights in bounded_choices(local_eps, 10**6):
        assert certified._nonnegative(weights.omegas, weights.pairs, weights.less)
        assert not certified._nonnegative([Fraction(101, 100) * omega for omega in weights.omegas], weights.pairs, weights.less)


def test_weights_for_smaller_ratios_are_refused():
    protocol = mechanisms.LocalHashing(100, 2.0).shuffled(1000)
    choices = protocol._bounds.upper.over_datasets.choices(0.2)
    smaller = choices._replace(weights=choices.weights._replace(less=choices.weights.less / 2))
    with pytest.raises(ArithmeticError, match="weights"):
        certified.EveryDataset(family_of(protocol.randomizer)[1](), 1000).value(smaller, flint().arb(0.2).exp())


@pytest.mark.parametrize("more", [{"users": 10**6}, {"users": 3}])
def test_the_number_of_users_is_not_that_of_the_engine(more):
    protocol = mechanisms.LocalHashing(100, 2.0).shuffled(1000)
    choices, bound = protocol._bounds.upper.over_datasets.choices(0.2), certified.EveryDataset(
        family_of(protocol.randomizer)[1](), 1000)
    other = choices._replace(sums=choices.sums._replace(**more), blanket=choices.blanket._replace(**more))
    one, two = (bound.value(given, flint().arb(0.2).exp()) for given in (choices, other))
    assert one.overlaps(two)


@pytest.mark.parametrize("pairs", [-5, 500])
def test_numbers_of_pairs_that_cannot_be_drawn_are_refused(pairs):
    protocol = mechanisms.LocalHashing(100, 2.0).shuffled(1000)
    choices = protocol._bounds.upper.over_datasets.choices(0.2)
    other = choices._replace(weights=choices.weights._replace(pairs=pairs, omegas=(), less=1e9))
    with pytest.raises(ArithmeticError, match="pairs of 1000 users"):
        certified.EveryDataset(family_of(protocol.randomizer)[1](), 1000).value(other, flint().arb(0.2).exp())


def test_every_order_of_the_given_weights_counts():
    bound, most = certified.EveryDataset(family_of(mechanisms.LocalHashing(100, 2.0))[1](), 1000), certified.ORDERS + 2
    weights = bounded_choices(2.0, 10**6)[0]._replace(pairs=40)
    few, many = (bound.error(weights._replace(omegas=(Fraction(1),) * number), flint().arb(2), None)
                 for number in (certified.ORDERS - 1, most))
    assert few > many > 0


def test_beyond_the_local_budget_there_is_no_delta():
    assert mechanisms.FiniteRandomizer(UNEVEN).shuffled(1000).certify(5.0, bound="upper") == 0


def test_other_randomizers_say_so():
    before = flint().ctx.prec
    with pytest.raises(TypeError, match="no certified digits"):
        mechanisms.LaplaceMechanism(1.0).shuffled(100).certify(0.5, bound="upper")
    assert flint().ctx.prec == before


@pytest.mark.parametrize("bins", thinned([2, 3, 4], 2))
@pytest.mark.parametrize("participation", [1.0, 0.4])
def test_sets_of_one_bin_are_certified_as_k_ary_response(bins, participation):
    """A list of fewer outputs than were counted, or of three inputs for more bins, once raised an error or missed the bound."""
    sets = mechanisms.SubsetSelection(bins, 2.0, 1).shuffled(3, participation)
    labels = mechanisms.KaryResponse(bins, 2.0).shuffled(3, participation)
    for eps, bound in itertools.product((0.1, 0.5), ("upper", "lower")):
        assert sets.certify(eps, bound=bound).overlaps(labels.certify(eps, bound=bound))


def test_the_only_user_has_a_certificate():
    """With one user every input of the others gives the same second moment."""
    rows = ((2.8252601623535156e-05, 0.9999717473983765), (0.015625, 0.984375), (3.451108932495117e-05, 0.999965488910675))
    lower, upper = (mechanisms.FiniteRandomizer(rows).shuffled(1).certify(2.06, bound=bound) for bound in ("lower", "upper"))
    assert lower.overlaps(upper)
