"""Certificates for groups of records and for replaced records, against sums and integrals computed another way."""

import math

import mpmath
import numpy as np
import pytest

from shufflebounds import InfeasibleError, shuffle
from shufflebounds.mechanisms import (
    DiscreteGaussianMechanism,
    FiniteRandomizer,
    GaussianMechanism,
    GeometricMechanism,
    KaryResponse,
    LaplaceMechanism,
)
from shufflebounds.profile.chain import Chain
from shufflebounds.sampling import ReplaceOne
from tests.strategies import slow

pytest.importorskip("flint")


@pytest.mark.parametrize("group", [
    shuffle.ClearReports(200, 4).for_group(3), slow(shuffle.ShuffledHistogram(60, 3, 0.2).for_group(2)),
    shuffle.StrongerClones(300, 2.0).for_group(70), shuffle.StrongerClones(300, 2.0).for_group(270),
    KaryResponse(3, 0.5).for_group(2),
], ids=lambda group: repr(group)[:40])
def test_a_chain_is_certified_from_the_split_of_the_engine(group):
    for eps in (0.0, 0.4):
        upper = group.certify(eps, bound="upper")
        stated = group.log_delta(eps)
        assert group.delta(eps, bound="lower") * (1 - 1e-9) <= float(upper.upper())
        assert float(upper.upper().log()) == pytest.approx(stated, abs=1e-8)


@pytest.mark.parametrize("group", [
    KaryResponse(10, 2.0).shuffled(1000).for_group(3), shuffle.StrongerClones(300, 2.0).for_group(7),
    KaryResponse(3, 0.5).for_group(3),
], ids=lambda group: repr(group)[:40])
def test_delta_is_0_at_the_pure_budget_of_a_group(group):
    pure = group.epsilon(0.0)
    assert group.log_delta(pure) == -math.inf < group.log_delta(math.nextafter(pure, 0.0))
    assert group.certify(pure, bound="upper").contains(0)


def test_a_split_of_more_than_eps_is_refused(monkeypatch):
    best = Chain.best
    monkeypatch.setattr(Chain, "best", lambda chain, eps: (best(chain, eps)[0] * 1.001, best(chain, eps)[1]))
    with pytest.raises(InfeasibleError, match="too large"):
        shuffle.ClearReports(200, 4).for_group(3).certify(0.4, bound="upper")


def test_a_split_with_fewer_than_no_records_is_refused(monkeypatch):
    group = shuffle.ClearReports(200, 4).for_group(3)
    monkeypatch.setattr(group._closed, "counts", np.array([5, -2]))
    monkeypatch.setattr(Chain, "best", lambda chain, eps: (np.array([0.0, eps / 2]), 0.0))
    with pytest.raises(InfeasibleError, match="too large"):
        group.certify(0.4, bound="upper")


def test_a_group_of_flipped_bits_against_all_datasets():
    n, size, flip, eps = 6, 2, 0.3, 0.2

    def law(ones):
        out = [1.0]
        for p in [1 - flip] * ones + [flip] * (n - ones):
            out = [x * (1 - p) + y * p for x, y in zip([*out, 0.0], [0.0, *out])]
        return out

    exact = max(sum(max(p - math.exp(eps) * q, 0.0) for p, q in zip(law(ones + i), law(ones + j)))
                for ones in range(n - size + 1) for i in range(size + 1) for j in range(size + 1))
    group = shuffle.ShuffledBits(n, flip).for_group(size)
    assert float(group.certify(eps)) == pytest.approx(exact, rel=1e-13)


@pytest.mark.parametrize("noise", [GaussianMechanism(0.8), LaplaceMechanism(0.7, 1.5)], ids=repr)
@pytest.mark.parametrize(("rate", "eps"), [(0.2, 0.0), (0.2, 0.7), (1.0, 0.5)])
def test_a_replaced_record_of_sampled_noise_is_an_integral(noise, rate, eps):
    y, d = (np.arange(200_000) + 0.5) * 1e-4, noise.sensitivity

    def density(at):
        if isinstance(noise, GaussianMechanism):
            return np.exp(-0.5 * (at / noise.sigma) ** 2) / (noise.sigma * math.sqrt(2 * math.pi))
        return np.exp(-np.abs(at) / noise.scale) / (2 * noise.scale)

    first, second = ((1 - rate) * density(y) + rate * density(y - shift) for shift in (d, -d))
    exact = 1e-4 * np.maximum(first - math.exp(eps) * second, 0.0).sum()
    assert float(ReplaceOne(noise.subsampled(rate)).certify(eps)) == pytest.approx(exact, rel=1e-7)


@pytest.mark.parametrize("noise", [GeometricMechanism(1.3, 3), DiscreteGaussianMechanism(1.1, 2)], ids=repr)
def test_a_replaced_record_of_sampled_whole_noise_is_a_sum(noise):
    d = noise.sensitivity
    if isinstance(noise, GeometricMechanism):
        weight = [mpmath.exp(-noise.eps / d * abs(k)) for k in range(-300, 301)]
    else:
        weight = [mpmath.exp(-mpmath.mpf(k) ** 2 / (2 * noise.sigma**2)) for k in range(-300, 301)]
    total = sum(weight)
    for rate, eps in ((0.3, 0.0), (0.3, 0.4), (0.05, 2.5), (1.0, 1.0)):
        exact = mpmath.mpf(0)
        for k in range(-200, 201):
            none, more, less = (weight[300 + k + shift] / total for shift in (0, -d, d))
            exact += max((1 - rate) * none + rate * more - mpmath.exp(eps) * ((1 - rate) * none + rate * less), 0)
        ball = ReplaceOne(noise.subsampled(rate)).certify(eps)
        assert float(ball) == pytest.approx(float(exact), rel=1e-13, abs=1e-40)


def test_a_replaced_value_of_a_sampled_matrix_is_a_maximum_over_triples():
    rows, rate, eps = ((0.5, 0.3, 0.2), (0.25, 0.5, 0.25), (0.3, 0.2, 0.5)), 0.3, 0.1
    profile = ReplaceOne(FiniteRandomizer(rows).subsampled(rate))

    def mixed(absent, x):
        return [(1 - rate) * p + rate * q for p, q in zip(rows[absent], rows[x])]

    exact = max(sum(max(p - math.exp(eps) * q, 0.0) for p, q in zip(mixed(z, x), mixed(z, y)))
                for z in range(3) for x in range(3) for y in range(3))
    assert float(profile.certify(eps)) == pytest.approx(exact, rel=1e-13)
    with pytest.raises(TypeError, match="of one release"):
        ReplaceOne(GaussianMechanism(1.0).subsampled(0.1).self_compose(3)).certify(1.0)


@pytest.mark.parametrize("size", [2, 3])
def test_a_group_of_records_that_reveal_nothing(size):
    """Equal rows have the pure budget 0, so there is no table of eps below it."""
    group = FiniteRandomizer(((0.5, 0.5), (0.5, 0.5))).for_group(size)
    assert group.log_delta(0.0) == group.log_delta(0.0, bound="lower") == -math.inf
    assert all(group.certify(0.0, bound=bound) == 0 for bound in ("lower", "upper"))
