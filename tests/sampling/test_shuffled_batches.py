"""Shuffled batches: the pair of the lower bound by enumeration; both bounds against quadrature, random datasets, known values."""

import itertools
import math
import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import simpson
from scipy.special import ndtr

from shufflebounds.mechanisms import GaussianMechanism, LaplaceMechanism
from shufflebounds.sampling import RandomAllocation, ReplaceOne, ShuffledBatches, Subsampled, WithoutReplacement
from tests.fuzz import batches as batched
from tests.strategies import slow, thinned


def epoch(sigma, steps, batch=1):
    return ShuffledBatches(GaussianMechanism(sigma), steps, batch)


@pytest.mark.parametrize(("records", "batch"), [(2, 1), (4, 2), (6, 2), (6, 3)])
@pytest.mark.parametrize(("gradient", "shift"), [(1, 2), (0, 1)])
def test_the_pair_by_all_orders(records, batch, gradient, shift):
    """In every order of the records, one batch sum exceeds all others by `shift`; every batch has it in equally many orders."""
    gradients = [gradient] + [-1] * (records - 1)
    seen = Counter()
    for order in itertools.permutations(range(records)):
        sums = [sum(gradients[i] for i in order[at : at + batch]) + batch for at in range(0, records, batch)]
        seen[tuple(sums)] += 1
    steps = records // batch
    share = Fraction(math.factorial(records), steps)
    assert seen == {tuple(shift * (i == j) for i in range(steps)): share for j in range(steps)}


@pytest.mark.parametrize(("sigma", "eps"), [(0.3, 0.5), slow(0.5, 4.0), (1.0, 0.0), slow(20.0, 0.02)])
def test_two_batches_by_quadrature(sigma, eps):
    exact = batched.exact(eps, sigma, 2, 1)
    lower, upper = (epoch(sigma, 2).delta(eps, bound=bound) for bound in ("lower", "upper"))
    assert exact * (1 - 6e-3) <= lower <= exact * (1 + 1e-9)
    assert exact <= upper


@pytest.mark.parametrize(("sigma", "eps"), [(1.0, 0.0), (1.0, 1.0), (0.5, 2.0), (3.0, 0.2)])
def test_one_batch_is_the_gaussian_mechanism(sigma, eps):
    exact = GaussianMechanism(sigma).delta(eps)
    assert exact * (1 - 1e-3) <= epoch(sigma, 1).delta(eps, bound="lower") <= exact <= epoch(sigma, 1).delta(eps) * (1 + 1e-12)


def two_adaptive_steps(sigma, eps, first, second):
    """Return delta of two batches of one record, whose vectors on the line are `first` in step 1, and second(y)[i] in step 2.

    The target is the first of the two records. The integral over the outputs is a sum over a grid.
    """
    y = np.linspace(-8 * sigma, 8 * sigma, 641)

    def normal(mean):
        return np.exp(-((y - mean) ** 2) / (2 * sigma**2)) / (sigma * math.sqrt(2 * math.pi))

    later = np.array([second(at) for at in y]).T

    def density(target):
        one = normal(target * first[0])[:, None] * normal(later[1][:, None])
        other = normal(first[1])[:, None] * normal(target * later[0][:, None])
        return (one + other) / 2

    p, q = density(1.0), density(0.0)
    return max(np.maximum(a - math.exp(eps) * b, 0).sum() for a, b in ((p, q), (q, p))) * (y[1] - y[0]) ** 2


@pytest.mark.parametrize(("sigma", "eps"), [slow(8.0, 0.0), (8.0, 0.1), slow(30.0, 0.02)])
@pytest.mark.parametrize("second", thinned([
    lambda y: (1.0, -1.0), lambda y: (math.copysign(1.0, y), -math.copysign(1.0, y)), lambda y: (1.0, 1.0 if y > 0 else -1.0)], 2))
def test_adaptive_vectors_have_smaller_delta(sigma, eps, second):
    """The bound is below that of one step, and above delta of rules that look at the first output."""
    bound = epoch(sigma, 2).delta(eps)
    found = max(two_adaptive_steps(sigma, eps, (1.0, other), second) for other in (-1.0, 1.0))
    assert found <= bound * (1 + 1e-4)
    assert found > 0.3 * GaussianMechanism(sigma).delta(eps)


@pytest.mark.slow
def test_random_datasets_have_smaller_delta():
    r = random.Random(11)
    for sigma, steps, batch in ((6.0, 7, 1), (20.0, 8, 1), (40.0, 4, 2), (15.0, 5, 1)):
        one = epoch(sigma, steps, batch)
        assert one.delta(0.0) < GaussianMechanism(sigma).delta(0.0)
        for _ in range(3):
            eps = r.uniform(0, 1 / sigma)
            assert batched.Dataset(r, sigma, steps, batch).least_delta(eps) <= one.delta(eps)


def test_two_densities_of_a_dataset_by_enumeration():
    """The sum over subsets in `Dataset` is the mean over all orders of the records."""
    dataset = batched.Dataset(random.Random(4), 1.5, 3, 2)
    outputs = dataset.outputs(3, 1.0)
    logs = dataset.log_densities(outputs)
    for present, log_density in zip((1.0, 0.0), logs):
        densities = np.zeros(len(outputs))
        for order in itertools.permutations(range(6)):
            log_one = np.zeros(len(outputs))
            for step in range(3):
                vectors = np.broadcast_to(dataset._chosen(outputs[:, step - 1] if step else None), (3, 6, outputs.shape[2])).copy()
                vectors[:, 0] *= present
                total = vectors[:, order[2 * step : 2 * step + 2]].sum(axis=1)
                log_one += (-((outputs[:, step] - total) ** 2).sum(axis=1) + (outputs[:, step] ** 2).sum(axis=1)) / (2 * 1.5**2)
            densities += np.exp(log_one)
        # Each way to cut the records into batches has 2!^3 orders.
        assert np.log(densities / 8) == pytest.approx(log_density, rel=1e-9)


PRINTED = [
    (4, 10**3, 1e-5, 1, 0.0246, 0.0702), (4, 10**3, 1e-5, 10**4, 0.0246, 0.0292), (4, 10**4, 1e-5, 1000, 0.00668, 0.00874),
    (4, 10**6, 1e-5, 1, 0.00042, 0.00069), (4, 10**3, 1e-8, 1000, 0.0405, 0.0579), (4, 10**6, 1e-8, 1, 0.00106, 0.00174),
    (2, 10**3, 1e-5, 1, 0.0937, 1.993), (2, 10**3, 1e-5, 10**4, 0.0937, 0.120), (2, 10**4, 1e-5, 1000, 0.0232, 0.0384),
    (2, 10**6, 1e-5, 1, 0.00163, 0.0140), (2, 10**3, 1e-8, 1000, 0.263, 0.945), (2, 10**4, 1e-8, 1, 0.0405, 2.708),
    (2, 10**6, 1e-8, 1000, 0.00334, 0.0081), (1, 10**6, 1e-5, 1, 0.0253, 4.377), (1, 10**6, 1e-5, 10**4, 0.0253, 0.17),
]
"""Sigma, steps, delta, batch, and eps of the known pair and of the bound by Fourier transforms of other discretizations, by a
program that is not part of this library. Its eps of the pair is too large by up to 4 %."""


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [4, 2, 1])
def test_values_of_another_program(sigma):
    for _, steps, delta, batch, pair, bound in (row for row in PRINTED if row[0] == sigma):
        lower, upper = (epoch(sigma, steps, batch).epsilon(delta, bound=side) for side in ("lower", "upper"))
        digit = 10.0 ** -len(str(bound).partition(".")[2])
        assert 0.96 * pair <= lower <= 1.01 * pair
        assert lower <= upper <= 1.01 * bound + digit
        assert upper <= GaussianMechanism(sigma).epsilon(delta) * (1 + 1e-9)


@pytest.mark.slow
def test_ten_epochs():
    run = epoch(4.0, 10**4, 1000).self_compose(10)
    assert 0.024 < run.epsilon(1e-5, bound="lower") < run.epsilon(1e-5) < 0.0339


def test_epochs_of_one_batch_are_gaussian():
    run = epoch(2.0, 1).self_compose(4)
    exact = GaussianMechanism(1.0).epsilon(1e-4)
    assert 0.98 * exact <= run.epsilon(1e-4, bound="lower") <= exact <= run.epsilon(1e-4) <= 1.02 * exact


@pytest.mark.slow
@pytest.mark.parametrize(("larger", "smaller"), thinned([
    ((4.0, 1000, 100), (4.0, 1500, 100)), ((4.0, 1000, 1), (4.0, 1000, 30)), ((4.0, 10**4, 1), (4.0, 2**53, 1)),
    ((4.0, 1000, 100), (4.5, 1000, 100)), ((0.5, 100, 1), (1.0, 100, 1)),
], 2))
def test_monotone(larger, smaller):
    """Both bounds decrease in the number of batches, their size and sigma, and in eps."""
    eps = np.array([0.0, 0.1])
    for bound in ("lower", "upper"):
        one, other = (epoch(*parameters).log_delta(eps, bound=bound) for parameters in (larger, smaller))
        # The choice of pivots and cuts is close to the best one only.
        assert (other <= one + 0.02).all()
        assert (np.diff(one) < 0).all()


def test_the_largest_output():
    """The lower bound is at least delta of the event that the largest output exceeds a threshold."""
    sigma, steps, eps = 0.4, 100, 4.0
    at = np.linspace(0, 10, 2001)
    first, second = (1 - ndtr(at - mean / sigma) * ndtr(at) ** (steps - 1) for mean in (2.0, 1.0))
    assert epoch(sigma, steps).delta(eps, bound="lower") >= (first - math.exp(eps) * second).max() * (1 - 1e-3)


@pytest.mark.slow
def test_shuffled_batches_have_larger_delta_than_sampled_ones():
    """With little noise, delta of shuffled batches is much larger than that of Poisson sampling (Chua et al. 2024)."""
    poisson = GaussianMechanism(0.4).subsampled(1 / 100).self_compose(100)
    assert epoch(0.4, 100).delta(4.0, bound="lower") > 10 * poisson.delta(4.0)


@pytest.mark.slow
def test_extreme_noise():
    for sigma, largest in ((1e-3, 1e6), (0.05, 1e6), (1e11, 1e-12)):
        for steps, batch in ((2, 1), (2**53, 2**53)):
            one = epoch(sigma, steps, batch)
            for eps in (0.0, largest):
                assert 0 <= one.delta(eps, bound="lower") <= one.delta(eps) <= 1
    # Adding noise to outputs shows that the lower bound of a larger sigma is valid.
    assert epoch(0.01, 10).delta(50.0, bound="lower") == epoch(0.1, 10).delta(50.0, bound="lower") > 0


def test_the_sensitivity_scales_the_noise():
    scaled = ShuffledBatches(GaussianMechanism(8.0, 2.0), 1000, 10)
    assert scaled.delta(0.02) == epoch(4.0, 1000, 10).delta(0.02)


@pytest.mark.parametrize("bad", [(1.0, 0), (1.0, 1.5), (1.0, 10, 0), (1.0, 10, -1), (0.0, 1)])
def test_bad_arguments(bad):
    with pytest.raises(ValueError, match="must be"):
        epoch(*bad)


def test_other_noise_is_refused():
    with pytest.raises(TypeError, match=r"must be Gaussian noise: pass GaussianMechanism\(sigma\)"):
        ShuffledBatches(LaplaceMechanism(1.0), 10)


def test_the_relation_is_a_zeroed_record():
    one = epoch(4.0, 10)
    assert one.relation == one.self_compose(2).relation == one.compose(GaussianMechanism(1.0)).relation == "zeroed"
    for other in (Subsampled(GaussianMechanism(1.0), 0.1), WithoutReplacement(GaussianMechanism(1.0), 10, 1)):
        with pytest.raises(ValueError, match=r"that counts as zero.* no composition holds for both.*by two such changes"):
            one.compose(other)
    assert ReplaceOne(one).relation == "replace-one"
    for wrong in (lambda: Subsampled(one, 0.1), lambda: RandomAllocation(one, 3)):
        with pytest.raises(ValueError, match="for a record that counts as zero, but not under its removal") as caught:
            wrong()
        assert "WithoutReplacement" not in str(caught.value)
    with pytest.raises(ValueError, match=r"for a record that counts as zero: .* private under the replacement") as caught:
        WithoutReplacement(one, 10, 2)
    assert "subsampled" not in str(caught.value)
    with pytest.raises(ValueError, match="'add-remove', 'zeroed' or 'either'"):
        ReplaceOne(ReplaceOne(one))


def test_the_statement_names_the_neighbours_and_the_proof():
    text = str(epoch(4.0, 10**4, 1000).statement(delta=1e-5))
    assert "counts as zero" in text
    assert "adaptive gradients" in text
    assert "on its own record" in text


@pytest.mark.slow
def test_one_term_is_not_approximated():
    """An approximation of one term was .6 too small in log delta; two batches then used it, and the bound rose by .12 with eps."""
    sigma = 7.266418077903609
    profile = epoch(sigma, 2)
    bounds = [profile.log_delta(eps) for eps in np.linspace(0.0, 0.5 / sigma, 12)]
    assert bounds == sorted(bounds, reverse=True)


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "batches", "size", "start", "end"), [
    (0.8508215201430903, 10_000, 1, 0.311, 0.416), (3.473609202662697, 100, 30, 0.051, 0.069),
    (2.348504059161079, 10_000, 1, 0.0024, 0.0033),
])
def test_wrong_approximations_are_noticed(sigma, batches, size, start, end):
    """Approximations chose a number of terms whose bound rose with eps, by .04 to .39 in log delta."""
    profile = epoch(sigma, batches, size)
    bounds = [profile.log_delta(eps) for eps in np.geomspace(start, end, 4).tolist()]
    assert bounds == sorted(bounds, reverse=True)


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "batches", "size", "start", "end"), [
    (1.5877501997710575, 100, 10_000, 3.38, 3.42), (7.126612817398434, 10_000, 30, 0.024, 0.0253),
    (6.348651841051801, 10_000, 30, 0.022881, 0.02363),
    (3.8161053122847854, 1_000_000, 10_000, 1.316, 1.34), (1.1279851178018994, 1_000_000, 30, 1.807, 1.826),
    (0.6680700904989998, 10_000, 10_000, 3.064, 3.095),
])
def test_the_bound_does_not_rise_where_another_choice_is_made(sigma, batches, size, start, end):
    """It rose by .03 to 2.7 in log delta."""
    profile = epoch(sigma, batches, size)
    bounds = [profile.log_delta(eps) for eps in np.linspace(start, end, 7).tolist()]
    assert bounds == sorted(bounds, reverse=True)


@pytest.mark.slow
def test_eps_does_not_rise_with_delta():
    """It rose by a relative 4e-4 between these two."""
    profile = epoch(0.9606901812716797, 10_000, 30)
    assert profile.epsilon(0.001443) <= profile.epsilon(0.001279)


@pytest.mark.slow
def test_upper_renyi_divergences_need_no_lower_bound(monkeypatch):
    monkeypatch.setattr("shufflebounds._engines.excess.excess_law.ExcessLaw.log_phi", None)
    epoch = ShuffledBatches(GaussianMechanism(8.0), batches=5, batch_size=2)
    orders = np.array([2.0, 8.0])
    # The integral of shufflebounds._losses.renyi over the bounds of `log_delta` themselves, by Simpson's rule.
    eps = np.linspace(0.0, 1.5, 41)
    delta = np.exp(epoch._closed.side(eps, True))
    for order, value in zip(orders.tolist(), epoch.rdp(orders).tolist()):
        total = simpson(delta * (np.exp((order - 1) * eps) + np.exp(-order * eps)), x=eps)
        exact = math.log1p(order * (order - 1) * total) / (order - 1)
        assert 0.999 * exact < value < 1.02 * exact
