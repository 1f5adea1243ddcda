"""The bound of an epoch of shuffled batches: each step of its proof, and the parts of its formula."""

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr, ndtri
from scipy.stats import binom

from shufflebounds._engines.batches import dominating_law, epoch, weights
from shufflebounds.mechanisms import GaussianMechanism
from shufflebounds.sampling import ShuffledBatches
from tests.fuzz import batches as batched
from tests.strategies import slow, thinned


def normal(y, mean):
    return np.exp(-0.5 * np.sum((y - mean) ** 2, axis=-1))


def hockey_stick(mu, level):
    """Return the divergence of N(mu, 1) and N(0, 1), for any level > 0."""
    if mu == 0:
        return max(1 - level, 0.0)
    at = mu / 2 - math.log(level) / mu
    return float(ndtr(at) - level * ndtr(at - mu))


# ---------------------------------------------------------------------------------------------------- the identity of the proof


def drawn_rule(rng, records, dimension):
    """Return a rule for vectors of at most unit length that depend on the record and on all earlier outputs."""
    vectors = rng.normal(size=(records, 2, dimension))
    vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
    normals = rng.normal(size=(records, 4, dimension))

    def rule(record, past):
        second = sum(float(normals[record, i] @ y) for i, y in enumerate(past)) > 0
        return vectors[record, int(second)] * math.exp(-0.1 * len(past))

    return rule


def density(rule, order, target, outputs):
    """Return the density of the outputs up to a constant if batch t has the records order[t]; target = 0: the record is zeroed."""
    found = 1.0
    for step, batch in enumerate(order):
        total = sum(rule(record, outputs[:step]) * (target if record == 0 else 1.0) for record in batch)
        found *= normal(outputs[step], total)
    return found


def cuts(records, steps):
    """Return all ways to cut a list of records into ordered batches of equal size."""
    if steps == 0:
        yield []
        return
    for batch in itertools.combinations(records, len(records) // steps):
        rest = [record for record in records if record not in batch]
        yield from ([batch, *others] for others in cuts(rest, steps - 1))


@pytest.mark.parametrize(("steps", "batch", "pivots", "dimension"), [
    (2, 1, 1, 1), (3, 1, 1, 2), (4, 1, 1, 3), (3, 2, 1, 2), (4, 1, 2, 2), (4, 1, 3, 1), (3, 2, 2, 1),
])
def test_the_density_is_a_sum_of_weights_times_kinds(steps, batch, pivots, dimension):
    """P - E Q is the mean, over base partitions, of a reference density times (k X + sum of omega_j X_j)/T, for adaptive rules."""
    rng = np.random.default_rng(steps * 100 + batch * 10 + pivots)
    records, level = steps * batch, 1.3
    rule = drawn_rule(rng, records, dimension)
    outputs = rng.normal(size=(steps, dimension))
    orders = list(cuts(list(range(records)), steps))
    direct = np.mean([density(rule, order, 1, outputs) - level * density(rule, order, 0, outputs) for order in orders])

    def pivot(held, target):
        """Return the density of the pivots' outputs if they have these records in a random order."""
        return np.mean([density(rule, order, target, outputs[:pivots]) for order in cuts(sorted(held), pivots)])

    reduced = []
    for inside in itertools.combinations(range(1, records), pivots * batch - 1):
        outside = [record for record in range(1, records) if record not in inside]
        each = {record: pivot([*inside, record], 1) for record in outside}
        mean = np.mean(list(each.values()))
        first = (pivot([0, *inside], 1) - level * pivot([0, *inside], 0)) / mean
        for others in cuts(outside, steps - pivots):
            reference, total, whole = mean, pivots * first, 0.0
            for step, held in enumerate(others, pivots):
                past, y = outputs[:step], outputs[step]
                full = sum(rule(record, past) for record in held)
                reference *= normal(y, full)
                for record in held:
                    moved = full - rule(record, past)
                    kind = (normal(y, moved + rule(0, past)) - level * normal(y, moved)) / normal(y, full)
                    total += each[record] / mean / batch * kind
                    whole += each[record] / mean / batch
            assert whole == pytest.approx(steps - pivots, rel=1e-12)
            reduced.append(reference * total / steps)
    assert np.mean(reduced) == pytest.approx(direct, rel=1e-9, abs=1e-14)


# ------------------------------------------------------------------------------------------------------------------- the kinds


def stop_loss(mu, level, angle, s, swapped):
    """Return E(X - s)_+ for X = (R_a - E R_0)/R_w under R_w, or (R_0 - E R_a)/R_w, where a and w have the scalar product
    angle mu^2. Given the component of the output along w, the other one is integrated in closed form.
    """
    across = mu * math.sqrt(max(0.0, 1 - angle * angle))

    def part(z):
        # R_0/R_w = b, and R_a/R_w = a e^(across v - across^2/2) with a standard normal v.
        b = math.exp(-mu * z - mu * mu / 2)
        a = math.exp(mu * (angle - 1) * z - (mu * (angle - 1)) ** 2 / 2)
        # The expectation of (b - E a e^... - s)_+ is that of a put, and follows from the call.
        gain = call(level * a, b - s, across) - (level * a - (b - s)) if swapped else call(a, level * b + s, across)
        return gain * math.exp(-z * z / 2) / math.sqrt(2 * math.pi)

    ends = np.linspace(-12, 12, 25)
    return sum(quad(part, low, high, epsabs=1e-13, limit=200)[0] for low, high in itertools.pairwise(ends))


def call(forward, strike, deviation):
    """Return E(forward e^G - strike)_+ for normal G of the given deviation with E e^G = 1."""
    if strike <= 0 or deviation < 1e-9:
        return max(forward - strike, 0.0)
    at = math.log(forward / strike) / deviation
    return float(forward * ndtr(at + deviation / 2) - strike * ndtr(at - deviation / 2))


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(("mu", "eps"), thinned([(0.25, 0.0), (0.5, 0.1), (1.0, 0.5)], 2))
def test_every_kind_is_below_the_largest(mu, eps, swapped):
    value, log_mass = dominating_law.largest_kind(mu, eps, swapped, -40.0)
    level = math.exp(eps)
    assert np.exp(log_mass).sum() == pytest.approx(1, abs=1e-12)
    for s in np.array([-2.0, -0.5, -0.1, 0.0, 0.2, 1.0, 4.0]) * mu:
        most = float(np.exp(log_mass) @ np.maximum(value - s, 0))
        found = [stop_loss(mu, level, angle, s, swapped) for angle in (-1.0, -0.7, 0.0, 0.6, 1.0)]
        assert max(found) <= most <= max(found) * (1 + 3e-3) + 1e-9
        # The lemma: the expectation is monotone in the angle, and constant at s = 0.
        rises = np.diff(found) * (-1 if swapped else 1) * np.sign(s)
        assert (rises <= 1e-9).all()
        assert s != 0 or np.ptp(found) < 1e-9


def test_values_beyond_the_cut_are_paid_for():
    """A deeper cut moves fewer outputs to 0, and changes the bound by at most the probability of the outputs that are moved."""
    shallow, deep = (dominating_law.log_mean_excess(1.0, 0.3, 50, 0.0, cut) for cut in (-6.0, -30.0))
    assert deep - 1e-3 <= shallow <= math.log(math.exp(deep) + math.exp(-6.0)) + 1e-3


def test_a_sum_of_one_is_one_step():
    for mu, eps in ((0.3, 0.0), (1.0, 1.0), (3.0, 2.0)):
        exact = GaussianMechanism(1 / mu).log_delta(eps)
        assert exact <= dominating_law.log_mean_excess(mu, eps, 1, 0.0, exact - 20) <= exact + 1e-3


@pytest.mark.parametrize(("mu", "eps", "shift"), [(0.25, 0.05, 0.0), (0.5, 0.3, 0.4), (1.0, 1.0, 2.0)])
def test_a_sum_of_two_and_a_number(mu, eps, shift):
    exact = 0.0
    for swapped in (False, True):
        value, log_mass = dominating_law.largest_kind(mu, eps, swapped, -25.0)
        mass = np.exp(log_mass)
        exact = max(exact, float(mass @ np.maximum(value[:, None] + value + shift, 0) @ mass) / 2)
    assert exact * (1 - 1e-9) <= math.exp(dominating_law.log_mean_excess(mu, eps, 2, shift, -25.0)) <= exact * (1 + 2e-3)


@pytest.mark.parametrize("mu", [0.1, 1.0, 10.0])
def test_the_lower_law_moves_logarithms_by_less_than_its_orders_assume(mu):
    law = dominating_law.all_opposite(mu)
    error = 2.0**-42
    again = law.widened(upper=False, error=error)
    assert np.max(law.log_a - again.log_a) < 4 * error
    assert np.max(again.log_b - law.log_b) < 4 * error


def test_approximations_are_close():
    for mu, eps, terms, shift in ((0.25, 0.0087, 8000, 0.0), (0.5, 0.12, 1000, 3.0), (1.0, 0.6, 30_000, 0.0)):
        near = dominating_law.Approximation(mu, eps).log_mean(np.array([float(terms)]), np.array([shift]))[0]
        assert near == pytest.approx(dominating_law.log_mean_excess(mu, eps, terms, shift, near - 12), abs=0.3)


def test_variances_of_approximations_are_not_negative():
    """The approximation takes the log of a variance, which was rounded to -3e11 here."""
    assert (dominating_law.Approximation(2.6129922623877615, 3.2913202727558315)._curvatures >= 0).all()


# ----------------------------------------------------------------------------------------------------------------- the weights


def tail_of(family, shares, mu, c):
    """Return the mean excess over c of the weights R_w/M of a family of vectors in the plane, by a sum over a fine grid."""
    axis = np.linspace(-8, 8, 321)
    y = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1)
    densities = np.array([normal(y, mu * np.array(w)) for w in family]) / (2 * math.pi)
    mean = np.tensordot(shares, densities, 1)
    return float(np.tensordot(shares, np.maximum(densities - c * mean, 0).sum(axis=(1, 2)), 1)) * (axis[1] - axis[0]) ** 2


@pytest.mark.slow
@pytest.mark.parametrize("mu", [0.25, 1.0])
def test_families_of_vectors_have_smaller_tails(mu):
    found = weights.Weights(mu).alone
    angles = 2 * np.pi * np.arange(5) / 5
    families = [([(1, 0), (-1, 0)], [0.5, 0.5]), ([(1, 0), (-1, 0)], [0.03, 0.97]), ([(1, 0), (0, 0)], [0.2, 0.8]),
                ([(1, 0), (0, 1), (-1, 0)], [0.1, 0.2, 0.7]), (list(zip(np.cos(angles), np.sin(angles))), [0.2] * 5)]
    for c in (1.2, 3.0):
        most = float(np.interp(c, weights.CUTS, found))
        tails = [tail_of(family, shares, mu, c) for family, shares in families]
        assert max(tails) <= most * (1 + 1e-6)
        assert most <= 20 * max(tails) + 1e-3


@pytest.mark.parametrize(("mu", "c"), [(0.25, 1.5), slow(1.0, 20.0)])
def test_suprema_are_enclosed(mu, c):
    """The bound is at least the smallest of the three numbers, with their suprema on fine grids, and at most 1.4 times it."""

    def majorant(level, end, at):
        # The concave majorant of a function that vanishes at 0, and is convex and then concave.
        part = np.linspace(at, end, 400)
        return at * max(hockey_stick(mu * math.sqrt(p), level) / p for p in part) if level >= 1 else 1.0

    pairs = majorant(c, 4, 2.0)
    centre = max(majorant(c * math.exp(-(1 - m * m) * mu * mu / 2), (1 + m) ** 2, 1 - m * m) for m in np.linspace(0, 0.98, 50))
    shares = np.concatenate([[1e-14], np.geomspace(1e-12, 1 / c, 4000)])
    at = ndtri(shares)
    lists = float(np.max(ndtr(at + mu) - ndtr(ndtri(np.minimum(c * shares, 1.0)) - mu)))
    least = min(pairs, centre, lists, 1.0)
    bound = float(np.interp(c, weights.CUTS, weights.Weights(mu).alone))
    assert least * (1 - 1e-4) <= bound <= 1.4 * least


@pytest.mark.parametrize(("batch", "cut", "c"), [(1, 3.0, 1.5), (2, 1.7, 1.2), (7, 5.0, 2.0), (50, 1.1, 1.06), (1000, 4.0, 1.25)])
def test_excess_of_a_binomial_mean(batch, cut, c):
    k = np.arange(batch + 1)
    exact = float(binom.pmf(k, batch, 1 / cut) @ np.maximum(cut / batch * k - c, 0))
    bound = math.exp(float(weights.log_binomial_excess(batch, np.array(cut), np.array(c))))
    assert exact <= bound <= 1.5 * exact


def test_excess_of_a_binomial_mean_in_fractions():
    batch, cut, c = 12, Fraction(3), Fraction(2)
    exact = sum(Fraction(math.comb(batch, k)) * 2 ** (batch - k) / Fraction(3) ** batch * (cut * k / batch - c)
                for k in range(9, batch + 1))
    bound = math.exp(float(weights.log_binomial_excess(batch, np.array(3.0), np.array(2.0))))
    assert exact <= bound <= 1.3 * float(exact)


def test_tails_decrease():
    one = weights.Weights(0.5)
    assert (np.diff(one.alone) <= 0).all()
    for small, large in itertools.pairwise([1, 2, 10, 1000, 10**6, 2**53]):
        assert (one.batched(large) <= one.batched(small) * (1 + 1e-5)).all()


# ------------------------------------------------------------------------------------------------------------------- the bound


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "steps", "eps"), [(11.0, 2, 0.0), (1.7, 2, 0.2), (5.0, 4, 0.02), (1.3, 5, 0.3)])
def test_the_first_bound_with_the_tail_of_a_dataset(sigma, steps, eps):
    """The bound with one pivot, with the tail of the weights of one dataset in place of D(c), is close to its delta from above."""
    r, mu, found = random.Random(steps), 1 / sigma, []
    one = math.exp(float(weights.log_divergence(mu, eps)))
    for _ in range(4):
        dataset = batched.Dataset(r, sigma, steps, 1)
        vectors = dataset.vectors[0][1:]
        outputs = vectors[dataset.rng.integers(0, steps - 1, 20_000)]
        outputs = outputs + sigma * dataset.rng.normal(size=outputs.shape)
        ratios = np.exp((outputs @ vectors.T - np.sum(vectors**2, axis=1) / 2) / sigma**2)
        ratios /= ratios.mean(axis=1, keepdims=True)
        delta = dataset.least_delta(eps, 20_000)
        for c in (1.0, 1.2, 2.0):
            bound = math.exp(dominating_law.log_mean_excess(mu, eps, steps // c, 0.0, -40.0))
            found.append(delta / (bound + (one + math.expm1(eps)) * np.maximum(ratios - c, 0).mean()))
    assert 0.6 < max(found) <= 1


def by_pivots(mu, steps, pivots, level, eps, f):
    """Return the second bound of the theorem for single records, with a given bound f of the pivots."""
    terms = math.floor((steps - pivots) / level**2)
    one, factor = hockey_stick(mu, math.exp(eps)), math.exp(eps)
    eta = (1 + level) * f
    shift = max(0.0, level * (level - factor)) * pivots * terms / (steps - pivots)
    main = (1 - pivots / steps) * math.exp(dominating_law.log_mean_excess(mu, eps, terms, shift, -40.0))
    return main + (pivots / steps + one + factor - 1) * eta


@pytest.mark.parametrize(("mu", "level"), thinned([(0.02, 1.02), (0.05, 1.1), (0.1, 1.3), (0.3, 1.6)], 2))
def test_the_bound_by_pivots_is_above_the_known_pair(mu, level):
    """With f = h, the divergence of a single step, which is at least that of the pivots."""
    f = hockey_stick(mu, level)
    for steps, pivots in ((12, 4), (100, 10), (1000, 30)):
        pair = ShuffledBatches(GaussianMechanism(1 / mu), steps)
        for eps in (0.0, 0.2 * mu / math.sqrt(steps), mu / math.sqrt(steps)):
            assert pair.delta(eps, bound="lower") <= by_pivots(mu, steps, pivots, level, eps, f)


@pytest.mark.slow
def test_the_bound_is_the_formula_at_its_own_choice():
    """Bounds with one pivot and with several pivots, evaluated again from the parts."""
    several = epoch.Epoch(0.25, 10**4, 1)
    eps = 0.015
    stated, terms, place = several._evaluated(eps)
    assert place >= 0
    pivots, level, chosen, near, most, excess = (float(part[place]) for part in several._pivots)
    assert (excess, terms, most) == (0, most, math.floor((10**4 - pivots) / level**2))
    f = math.exp(dominating_law.log_mean_excess(0.25, math.log(level), chosen, 0.0, -30.0))
    f += (hockey_stick(0.25, level) + level - 1) * float(np.interp(pivots / chosen, weights.CUTS, weights.Weights(0.25).alone))
    assert near == pytest.approx(f, rel=0.3)
    assert stated == pytest.approx(math.log(by_pivots(0.25, 10**4, pivots, level, eps, f)), abs=2e-3)
    assert several.log_delta(eps) == pytest.approx(stated, abs=0.02)
    one = epoch.Epoch(0.25, 10**4, 1000)
    stated, terms, place = one._evaluated(0.009)
    assert place < 0
    bound = math.exp(dominating_law.log_mean_excess(0.25, 0.009, terms, 0.0, -30.0))
    tail = float(np.interp(10**4 / terms, weights.CUTS, weights.Weights(0.25).batched(1000)))
    bound += (hockey_stick(0.25, math.exp(0.009)) + math.expm1(0.009)) * tail
    assert stated == pytest.approx(math.log(bound), abs=2e-3)
    assert one.log_delta(0.009) == pytest.approx(stated, abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "steps", "batch", "eps", "terms"), [
    (1.5877501997710575, 100, 10**4, 3.414, 16), (1.8284315688867978, 100, 1, 1.615, 2),
    (5.627516267175428, 100, 10**4, 0.2407, 73), (0.6680700904989998, 10**4, 10**4, 3.095, 681),
    (6.634083322604287, 10**4, 30, 0.1245, 304),
])
def test_another_number_of_terms_is_not_better(sigma, steps, batch, eps, terms):
    """The approximations alone chose numbers of terms whose log delta was larger than that of `terms`, by .04 to 6."""
    found = epoch.Epoch(1 / sigma, steps, batch)
    main = dominating_law.log_mean_excess(1 / sigma, eps, terms, 0.0, -210.0)
    tail = float(np.interp(steps / terms, weights.CUTS, weights.Weights(1 / sigma).batched(batch)))
    other = math.log(math.exp(main) + (hockey_stick(1 / sigma, math.exp(eps)) + math.expm1(eps)) * tail)
    assert found.log_delta(eps) <= other + 0.05


@pytest.mark.parametrize(("mu", "steps", "batch"), [slow(0.25, 10**4, 1000), slow(0.7, 100, 10**4)])
def test_between_places_of_the_grid_the_bound_is_interpolated(mu, steps, batch):
    """Linear in e^eps between two places, unless one step has a smaller delta."""
    found = epoch.Epoch(mu, steps, batch)
    for place in (100, 400):
        low, high = found._eps(place + 1), found._eps(place)
        assert found._place(low) == found._place(math.nextafter(high, 0.0)) == place + 1
        assert found._place(high) == place
        ends = [math.exp(value) for value in (found._lowest(place + 1)[0], found._at(place))]
        for share in (1e-3, 0.3, 0.999):
            eps = low + math.log1p(share * math.expm1(high - low))
            one = float(weights.log_divergence(mu, eps))
            assert found.log_delta(eps) == pytest.approx(min(one, math.log(ends[0] + share * (ends[1] - ends[0]))), abs=1e-9)
        assert found.log_delta(high) == found._lowest(place)[0] <= found._at(place)


@pytest.mark.slow
@pytest.mark.parametrize(("mu", "steps"), [(0.77, 100), (1e-8, 100), (0.25, 2**53)])
def test_the_grid_has_equal_steps_next_to_eps_0(mu, steps):
    found = epoch.Epoch(mu, steps, 1)
    last = found._even + 100
    grid = np.array([found._eps(place) for place in range(last + 1)])
    assert (np.diff(grid) < 0).all()
    assert grid[0] == found._noise.last
    assert grid[-1] == found._eps(last + 5) == 0 < grid[-2]
    assert np.diff(grid[found._even :]) == pytest.approx(-grid[found._even] / 100)
    assert grid[1 : found._even + 2] / grid[: found._even + 1] == pytest.approx(1 / 1.01, rel=1e-3)
    assert [found._place(eps) for eps in grid.tolist()] == list(range(last + 1))
    assert found.log_delta(0.0) == found.log_delta(5e-324) == found._evaluated(0.0)[0]


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "steps", "batch", "eps", "later"), [
    # The choice at eps was not tried later, where log delta was .135 larger.
    (3.578526432911768, 10**4, 30, 0.0621, 0.0651),
    # The bound with the choice at both eps has its minimum at .01266, and rises by .005 up to the second eps.
    (2.8712543954911065, 10**6, 1, 0.012724151692935632, 0.015069269235405108),
    # delta falls by less than the errors of the bound, so that log delta was 1.2e-7 larger.
    (1.3090243246934403, 100, 10**4, 1.0661958261834625e-05, 1.109487652171774e-05),
])
def test_the_bound_does_not_rise_with_eps(sigma, steps, batch, eps, later):
    found = ShuffledBatches(GaussianMechanism(sigma), steps, batch)
    assert found.log_delta(later, bound="lower") <= found.log_delta(later) <= found.log_delta(eps)


@pytest.mark.slow
@pytest.mark.parametrize("mu", [0.02, 5.0])
def test_no_bound_is_above_one_step(mu):
    for steps, eps in ((1, 0.3), (2, 0.0), (2, 40.0), (10**4, 40.0)):
        exact = GaussianMechanism(1 / mu).log_delta(eps)
        assert epoch.Epoch(mu, steps, 100).log_delta(eps) <= min(exact + 1e-9, 0.0)


@pytest.mark.parametrize("steps", [slow(2**53), 1000])
def test_the_number_of_terms_is_at_most_that_of_the_theorem(steps):
    pivots, _, _, _, terms, excess = table = epoch.Epoch(0.25, steps, 1)._pivots
    level = np.array([math.exp(2 * epoch._log_below(one)) for one in table.level.tolist()])
    few = np.flatnonzero(excess == 0)
    assert few.size
    for i in few.tolist():
        # A square that is rounded up by a relative 2^-52 or less.
        square = Fraction(level[i]) * (1 + Fraction(1, 2**52))
        assert Fraction(terms[i]) * square <= steps - Fraction(pivots[i])


@pytest.mark.slow
@pytest.mark.parametrize(("eps", "most"), [(2.5e-8, -51.3), (5e-8, -120.0)])
def test_of_very_many_steps_choices_without_pivots_are_tried_to_the_end(eps, most):
    """The approximations are wrong by factors of 1e9, and choices with pivots, which are worse, used up the number of trials."""
    assert epoch.Epoch(0.25, 2**53, 2**53).log_delta(eps) < most
