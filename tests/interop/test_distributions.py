"""Exports to dp-accounting, riskcal and OpenDP, and imports from dp-accounting, tested with these packages."""

import json
import math
import pickle

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shufflebounds import DominatingPair, Tradeoff, interop, mechanisms, sampling, shuffle
from shufflebounds.composition import from_dict, to_dict
from shufflebounds.profile import Status
from tests.strategies import slow

pld_module = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")

PROFILES = {
    "noise": shuffle.BinomialNoise(10**4, 0.5),
    "a part of infinite loss": shuffle.BinomialNoise(10, 0.5),
    "clones": shuffle.Clones(10**5, 3.0),
    "pure": shuffle.StrongerClones(10**3, 2.0),
    "worst data": shuffle.ShuffledBits(50, 0.1),
    "pair": shuffle.ShuffledBits(1000, 0.05).pair(0),
    "skewed pair": shuffle.BinomialNoise(500, 0.3).pairs()[0],
    "listed": DominatingPair.from_pmfs(np.log([0.5, 0.2, 0.29999, 1e-5]), [-math.inf, *np.log([0.4, 0.35, 0.25])]),
    "partial participation": mechanisms.RatioBounded(2.0, 0.2, 7.0).shuffled(4, participation=0.9),
    "nothing": shuffle.ShuffledBits(10, 0.5),
}


def both(profile, eps, bound):
    """Return the larger delta of both orders for a pair, whose export has two directions, and otherwise delta of the profile."""
    value = profile.delta(eps, bound=bound)
    return np.maximum(value, profile.reverse().delta(eps, bound=bound)) if isinstance(profile, DominatingPair) else value


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name == "worst data" else name for name in PROFILES]
)
def test_export_is_exact_on_the_grid_and_never_below_anywhere(name):
    profile, interval = PROFILES[name], 2e-3
    pld = profile.to_dp_accounting(interval=interval)
    rng = np.random.default_rng(5)
    grid = interval * np.arange(0, 1500, 7)
    eps = np.sort(np.concatenate([grid, rng.uniform(0, 3, 200), [5.0, 20.0]]))
    exported = np.array([pld.get_delta_for_epsilon(e) for e in eps.tolist()])
    assert (exported >= both(profile, eps, "lower")).all()
    on_grid = np.array([pld.get_delta_for_epsilon(e) for e in grid.tolist()])
    upper = both(profile, grid, "upper")
    assert (on_grid <= upper * (1 + 1e-12) + 2e-22).all()
    for direction in (pld._pmf_remove.to_dense_pmf(), pld._pmf_add.to_dense_pmf()):
        assert (direction._probs >= 0).all()
        assert direction._probs.sum() + direction._infinity_mass == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("name", ["noise", "clones", "pair", "listed"])
def test_masses_equal_those_of_connect_the_dots(name):
    pld_pmf = pytest.importorskip("dp_accounting.pld.pld_pmf")
    profile, interval = PROFILES[name], 1e-2
    opposite = profile.reverse() if isinstance(profile, DominatingPair) else profile
    ours = profile.to_dp_accounting(interval=interval)._pmf_remove.to_dense_pmf()
    points = np.arange(ours._lower_loss, ours._lower_loss + ours.size)
    eps = interval * points
    forward = profile.delta(np.maximum(eps, 0))
    mirrored = -np.expm1(np.minimum(eps, 0)) + np.exp(np.minimum(eps, 0)) * opposite.delta(np.maximum(-eps, 0))
    theirs = pld_pmf.create_pmf_pessimistic_connect_dots(interval, points, np.where(points < 0, mirrored, forward)).to_dense_pmf()
    # dp-accounting divides differences of numbers close to 1 by the grid step, so its probabilities have large rounding errors.
    np.testing.assert_allclose(ours._probs, theirs._probs, rtol=1e-9, atol=1e-12)
    assert ours._infinity_mass == pytest.approx(theirs._infinity_mass, rel=1e-12)


def test_riskcal_computes_the_exact_advantage():
    analysis = pytest.importorskip("riskcal.analysis")
    for name, profile in PROFILES.items():
        pld = profile.to_dp_accounting(interval=1e-2)
        assert analysis.get_advantage_from_pld(pld) == pytest.approx(profile.delta(0.0), rel=1e-12, abs=1e-300), name
    # For B ~ Bin(2, 1/2), the total variation distance of B and B + 1 is 1/2.
    pld = shuffle.BinomialNoise(2, 0.5).to_dp_accounting()
    assert analysis.get_advantage_from_pld(pld) == pytest.approx(0.5, rel=1e-12)


def test_composition_with_a_gaussian():
    profile, interval = PROFILES["noise"], 1e-3
    gaussian = pld_module.from_gaussian_mechanism(50.0, value_discretization_interval=interval)
    composed = profile.to_dp_accounting(interval=interval).compose(gaussian)
    # The binomial noise differs by less than 1 % from Gaussian noise with sigma 50, so both releases are equivalent to one with
    # sigma 50/sqrt(2).
    near = pld_module.from_gaussian_mechanism(50 / math.sqrt(2), value_discretization_interval=interval)
    for eps in (0.0, 0.02, 0.05, 0.1):
        assert composed.get_delta_for_epsilon(eps) == pytest.approx(near.get_delta_for_epsilon(eps), rel=0.02)
        # Delta of the composition is at least that of one release.
        assert composed.get_delta_for_epsilon(eps) >= profile.delta(eps, bound="lower")
    with pytest.raises(ValueError, match="intervals are different"):
        profile.to_dp_accounting(interval=1e-2).compose(gaussian)


def test_composition_stays_above_brute_force():
    pair = DominatingPair.from_pmfs(np.log([0.6, 0.3, 0.1]), np.log([0.2, 0.3, 0.5]))
    p, q = np.exp(pair.log_p), np.exp(pair.log_q)
    pld = pair.to_dp_accounting(interval=1e-3).self_compose(4)
    p4, q4 = p, q
    for _ in range(3):
        p4, q4 = np.outer(p4, p).ravel(), np.outer(q4, q).ravel()
    for eps in np.linspace(0, 4, 33).tolist():
        exact = max(np.maximum(0, p4 - math.exp(eps) * q4).sum(), np.maximum(0, q4 - math.exp(eps) * p4).sum())
        got = pld.get_delta_for_epsilon(eps)
        assert exact * (1 - 1e-12) <= got <= exact + 1e-5


def test_bad_exports():
    noise = PROFILES["noise"]
    for interval in (0, -1, 11, math.nan):
        with pytest.raises(ValueError, match="interval"):
            noise.to_dp_accounting(interval=interval)
    with pytest.raises(ValueError, match="log_tail"):
        noise.to_dp_accounting(log_tail=0)
    with pytest.raises(ValueError, match=r"interval=1e-08 must be >= .* losses reach"):
        noise.to_dp_accounting(interval=1e-8)


def plds():
    gaussian = pld_module.from_gaussian_mechanism(1.5, value_discretization_interval=1e-2)
    return {
        "gaussian": gaussian,
        "subsampled, two directions": pld_module.from_gaussian_mechanism(
            1.0, sampling_prob=0.1, value_discretization_interval=1e-2
        ),
        "laplace": pld_module.from_laplace_mechanism(1.0, value_discretization_interval=1e-2),
        "composed": gaussian.self_compose(20),
        "ours": PROFILES["a part of infinite loss"].to_dp_accounting(interval=1e-2),
        "randomized response": pld_module.from_randomized_response(0.3, 4, value_discretization_interval=1e-2),
    }


@pytest.mark.parametrize("name", plds())
def test_bounds_of_an_import_contain_the_exact_delta(name):
    pld = plds()[name]
    profile = interop.from_dp_accounting(pld)
    assert len(profile.pairs()) == (1 if pld._symmetric else 2)
    for eps in (0.0, 0.013, 0.5, 0.99, 2.0, 5.0):
        theirs = pld.get_delta_for_epsilon(eps)
        # The value of dp-accounting has rounding errors, up to which both bounds agree with it.
        assert profile.delta(eps, bound="lower") <= theirs * (1 + 1e-13) + 1e-16
        assert profile.delta(eps) >= theirs * (1 - 1e-13) - 1e-16
        assert profile.delta(eps) - profile.delta(eps, bound="lower") <= 1e-9 * profile.delta(eps) + 1e-15
    theirs = pld.get_epsilon_for_delta(1e-2)
    assert profile.epsilon(1e-2) == pytest.approx(theirs, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", [*plds(), "parameters", "sampled"])
def test_bounds_of_composed_imports_contain_the_composition_of_dp_accounting(name):
    # The masses of the two directions are rounded to the grid one by one, so that neither direction is the reverse of the other.
    parameters = pytest.importorskip("dp_accounting.pld.common").DifferentialPrivacyParameters(0.123, 1e-3)
    more = {
        "parameters": pld_module.from_privacy_parameters(parameters, value_discretization_interval=1e-2),
        "sampled": pld_module.from_gaussian_mechanism(1.0, sampling_prob=0.1, value_discretization_interval=1e-2),
    }
    pld = {**plds(), **more}[name]
    profile = interop.from_dp_accounting(pld)
    for times in (2, 5):
        ours, theirs = profile.self_compose(times), pld.self_compose(times, tail_mass_truncation=0)
        for eps in (0.0, 0.313, 1.0, 2.5):
            delta, lower, upper = theirs.get_delta_for_epsilon(eps), ours.delta(eps, bound="lower"), ours.delta(eps)
            assert lower <= delta * (1 + 1e-9) + 1e-13
            assert upper >= delta * (1 - 1e-9) - 1e-13
            assert upper - lower <= 1e-4 * upper + 1e-13


@pytest.mark.slow
def test_an_import_is_composed_and_replaced_like_the_mechanism_with_its_neighbours():
    # The distribution does not state its neighbouring relation; here a record is added or removed.
    step = mechanisms.GaussianMechanism(1.0).subsampled(0.1)
    profile = interop.from_dp_accounting(pld_module.from_gaussian_mechanism(1.0, sampling_prob=0.1))
    assert profile.compose(step).delta(0.3) == pytest.approx(step.self_compose(2).delta(0.3), rel=1e-5)
    # Of the import only its delta is known, so the replacement of a record is bounded in two steps.
    assert sampling.ReplaceOne(profile).delta(0.3) >= sampling.ReplaceOne(step).delta(0.3)
    for ours, exact in zip(sampling.Subsampled(profile, 0.3).pairs(), sampling.Subsampled(step, 0.3).pairs()):
        assert ours.delta(0.01) == pytest.approx(exact.delta(0.01), rel=1e-5)


def test_a_composed_import_adds_the_renyi_divergences_of_its_losses():
    pld = pld_module.from_randomized_response(0.3, 4, value_discretization_interval=1e-1)
    profile = interop.from_dp_accounting(pld).self_compose(3)
    for order in (1.5, 2.0, 8.0):
        sums = [sum(p * math.exp((order - 1) * 0.1 * place) for place, p in side._loss_probs.items())
                for side in (pld._pmf_remove, pld._pmf_add)]
        exact = 3 * math.log(max(sums)) / (order - 1)
        assert profile.rdp(order, bound="lower") <= exact * (1 + 1e-9)
        assert exact * (1 - 1e-9) <= profile.rdp(order) <= exact * (1 + 1e-6)


@pytest.mark.parametrize("name", plds())
def test_many_eps_at_once_give_the_sum_at_each(name):
    eps = np.sort(np.concatenate([np.linspace(0, 6, 50), 1e-2 * np.arange(0, 300, 9)]))
    for pair in interop.from_dp_accounting(plds()[name]).pairs():
        for each in (pair, pair.reverse()):
            lower, upper = each.log_delta(eps, bound="lower"), each.log_delta(eps)
            for e, low, high in zip(eps.tolist(), lower, upper):
                # The same sum is evaluated for one eps at a time.
                assert low <= each.log_delta(e)
                assert high >= each.log_delta(e, bound="lower")
            held = lower > -40
            assert (upper[held] - lower[held] <= 1e-9).all()


@pytest.mark.slow
def test_reverse_of_an_import_whose_second_masses_exceed_one():
    # Pessimistic rounding of losses of both signs: the masses of the second distribution sum to more than 1.
    (pair,) = interop.from_dp_accounting(pld_module.from_gaussian_mechanism(1.0)).pairs()
    p, q = np.exp(pair.log_p), np.exp(pair.log_q)
    assert q.sum() > 1 + 1e-5
    for eps in (0.0, 1.0, 5.0):
        scaled = float(np.maximum(0, q / q.sum() - math.exp(eps) * p).sum())
        assert pair.reverse().delta(eps, bound="lower") <= scaled <= pair.reverse().delta(eps)


@pytest.mark.slow
def test_a_large_import_can_be_exported():
    pld = pld_module.from_gaussian_mechanism(1.0)
    back = interop.from_dp_accounting(pld).to_dp_accounting(interval=1e-3)
    for eps in (0.0, 0.5, 1.0, 4.0):
        assert back.get_delta_for_epsilon(eps) == pytest.approx(pld.get_delta_for_epsilon(eps), rel=1e-9)


def test_import_of_infinite_loss_and_of_nothing():
    parameters = pytest.importorskip("dp_accounting.pld.common").DifferentialPrivacyParameters(1.0, 0.25)
    profile = interop.from_dp_accounting(pld_module.from_privacy_parameters(parameters))
    # Up to eps = 1, delta = 1/4 + 3/4 (e - e^eps)/(1 + e).
    assert profile.epsilon(0.3) == pytest.approx(math.log(math.e - (1 + math.e) / 15), rel=1e-9)
    assert profile.epsilon(0.2) == math.inf
    assert profile.delta(50.0) == pytest.approx(0.25, rel=1e-12)
    (pair,) = profile.pairs()
    # The pair of an (eps, delta) guarantee is symmetric.
    assert pair.reverse().delta(0.5) == pytest.approx(pair.delta(0.5), rel=1e-9)
    assert interop.from_dp_accounting(pld_module.identity()).delta(0.0) == 0.0
    with pytest.raises(ValueError, match="pld=3"):
        interop.from_dp_accounting(3)


@pytest.mark.slow
@settings(max_examples=25)
@given(st.lists(st.tuples(st.floats(1e-3, 1), st.floats(1e-3, 1)), min_size=2, max_size=8))
def test_export_and_import(weights):
    p, q = np.array(weights).T / np.array(weights).sum(axis=0)[:, None]
    pair = DominatingPair.from_pmfs(np.log(p), np.log(q))
    back = interop.from_dp_accounting(pair.to_dp_accounting(interval=5e-2))
    for eps in (0.0, 0.05, 0.1, 0.33, 1.0, 2.5):
        exact = [np.maximum(0, a - math.exp(eps) * b).sum() for a, b in ((p, q), (q, p))]
        assert back.delta(eps) >= max(exact) * (1 - 1e-14)
    # At every grid point, such as 0, the imported delta is equal to the original. Rounding errors are relative to the total mass,
    # not to delta.
    assert back.delta(0.0) == pytest.approx(np.abs(p - q).sum() / 2, rel=1e-11, abs=1e-13)


@pytest.mark.slow
def test_opendp():
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib", "honest-but-curious")
    for name in ("noise", "clones", "pure", "a part of infinite loss"):
        profile = PROFILES[name]
        theirs = profile.to_opendp()
        for eps in (0.0, 0.01, 0.3):
            assert theirs.delta(epsilon=eps) == profile.delta(eps)
        if profile.epsilon(1e-2) < math.inf:
            assert theirs.epsilon(delta=1e-2) == pytest.approx(profile.epsilon(1e-2), rel=1e-6)
    assert PROFILES["pure"].to_opendp().delta(epsilon=2.0) == 0.0
    # If e^eps overflows, delta is bounded by its value at eps = 700.
    assert 0 < PROFILES["noise"].to_opendp().delta(epsilon=1e4) <= 1e-300


def test_a_missing_package_names_the_extra(monkeypatch):
    import sys

    for module, call in (
        ("dp_accounting.pld", PROFILES["noise"].to_dp_accounting),
        ("opendp.measures", PROFILES["noise"].to_opendp),
    ):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(ImportError, match=r"shufflebounds\[interop\]"):
            call()


def imports():
    """Return imports whose directions do not belong to one pair: their losses are rounded one by one, to a coarse grid."""
    rounded = {"value_discretization_interval": 0.1, "use_connect_dots": False}
    return {
        "gaussian": pld_module.from_gaussian_mechanism(1.0, **rounded),
        "gaussian, rounded down": pld_module.from_gaussian_mechanism(1.0, pessimistic_estimate=False, **rounded),
        "sampled": pld_module.from_gaussian_mechanism(1.0, sampling_prob=0.1, **rounded),
        "sampled, rounded down": pld_module.from_gaussian_mechanism(1.0, sampling_prob=0.1, pessimistic_estimate=False, **rounded),
        "laplace": pld_module.from_laplace_mechanism(1.0, **rounded),
        "randomized response, rounded down": pld_module.from_randomized_response(
            0.3, 4, pessimistic_estimate=False, value_discretization_interval=0.1),
        "composed": pld_module.from_laplace_mechanism(2.0, **rounded).self_compose(5),
    }  # fmt: skip


@pytest.mark.parametrize(("name", "times"), [
    pytest.param(name, times, marks=[pytest.mark.slow] if times > 2 or (times == 2 and name != "sampled") else [])
    for name in imports() for times in (1, 2, 20)
])  # fmt: skip
def test_curves_of_an_import_have_the_delta_of_dp_accounting(name, times):
    pld, eps = imports()[name], np.array([0.0, 1e-9, 0.05, 0.313, 1.0, 2.5, 5.0])
    profile = interop.from_dp_accounting(pld)
    profile = profile if times == 1 else profile.self_compose(times)
    composed = pld if times == 1 else pld.self_compose(times, tail_mass_truncation=0)
    theirs = np.array([composed.get_delta_for_epsilon(at) for at in eps.tolist()])
    alpha = np.concatenate([np.geomspace(1e-9, 0.5, 30), np.linspace(0.5, 1, 15)])
    below, above = profile.tradeoff(), profile.tradeoff(bound="upper")
    beta = above.beta(alpha)
    # Tests of either dataset against the other one.
    for first, second in ((alpha, beta), (beta, alpha)):
        assert (1 - first[:, None] - np.exp(eps) * second[:, None] <= theirs + 1e-12).all()
    assert (below.delta(eps) >= theirs * (1 - 1e-9) - 1e-13).all()
    assert (above.delta(eps) <= theirs * (1 + 1e-9) + 1e-13).all()
    assert (below.beta(alpha) <= beta * (1 + 1e-15)).all()
    if (mu := profile.gdp_mu()) < math.inf:
        assert profile.gdp_mu(bound="lower") <= mu
        assert (Tradeoff.gaussian(mu).beta(alpha) <= beta + 1e-12).all()


@pytest.mark.parametrize("name", ["gaussian", slow("sampled"), slow("sampled, rounded down"), "randomized response, rounded down"])
def test_curves_of_a_direction_have_the_deltas_of_both_orders(name):
    eps, alpha = np.array([0.0, 0.1, 0.313, 1.0, 2.5]), np.linspace(0, 1, 41)
    for pair in interop.from_dp_accounting(imports()[name]).pairs():
        for one in (pair, pair.reverse(), pair.self_compose(3)):
            own, reverse = one.delta(eps), one.reverse().delta(eps)
            beta = one.tradeoff(bound="upper").beta(alpha)
            assert (1 - beta[:, None] - np.exp(eps) * alpha[:, None] <= reverse + 1e-12).all()
            assert (1 - alpha[:, None] - np.exp(eps) * beta[:, None] <= own + 1e-12).all()
            curve = one.tradeoff()
            assert (curve.delta(eps) >= one.reverse().delta(eps, bound="lower") - 1e-12).all()
            assert (curve.inverse().delta(eps) >= one.delta(eps, bound="lower") - 1e-12).all()


@pytest.mark.slow
def test_a_sampled_import_has_one_curve_for_both_directions():
    eps, alpha = np.array([0.0, 0.01, 0.1, 0.5]), np.linspace(0, 1, 41)
    for name in ("gaussian", "sampled, rounded down"):
        for profile in (step := sampling.Subsampled(interop.from_dp_accounting(imports()[name]), 0.3), step.self_compose(2)):
            beta, delta = profile.tradeoff(bound="upper").beta(alpha), profile.delta(eps)
            for first, second in ((alpha, beta), (beta, alpha)):
                assert (1 - first[:, None] - np.exp(eps) * second[:, None] <= delta + 1e-12).all()
            assert (profile.tradeoff().delta(eps) >= profile.delta(eps, bound="lower") - 1e-12).all()


def test_releases_whose_losses_are_rounded_down_may_lower_delta():
    # The masses under the second distribution sum to 1.06, so that delta of 20 releases with an added record is below that of one.
    pld = imports()["sampled, rounded down"]
    profile = interop.from_dp_accounting(pld)
    many, theirs = profile.self_compose(20), pld.self_compose(20, tail_mass_truncation=0)
    assert theirs._pmf_add.get_delta_for_epsilon(0.0) < 0.05 * pld._pmf_add.get_delta_for_epsilon(0.0)
    for eps in (0.0, 0.1, 0.5):
        delta = theirs.get_delta_for_epsilon(eps)
        assert many.delta(eps, bound="lower") <= delta * (1 + 1e-9) <= many.delta(eps) * (1 + 2e-9)
        assert many.delta(eps) <= delta * (1 + 1e-4)


@pytest.mark.parametrize("name", ["gaussian, rounded down", "sampled, rounded down"])
def test_divergences_of_losses_that_are_rounded_down(name):
    # The exact value is below the divergence of the mechanism, and may be negative; the lower bound is then 0.
    pld = imports()[name]
    profile = interop.from_dp_accounting(pld)
    sides = [[(0.1 * place, p) for place, p in enumerate(dense._probs.tolist(), dense._lower_loss)]
             for dense in (pld._pmf_remove.to_dense_pmf(), pld._pmf_add.to_dense_pmf())]
    exact = {order: max(math.log(math.fsum(p * math.exp((order - 1) * loss) for loss, p in side)) / (order - 1) for side in sides)
             for order in (1.001, 1.5, 3.0)}
    exact[1.0] = max(math.fsum(p * loss for loss, p in side) for side in sides)
    for order, value in exact.items():
        assert max(value, 0.0) * (1 - 1e-9) <= profile.rdp(order, bound="lower") <= max(value, 0.0) * (1 + 1e-12)
        assert profile.rdp(order) >= value


def test_imports_are_saved():
    profile = interop.from_dp_accounting(imports()["sampled"])
    pair = profile.pairs()[0]
    for one in (profile, pair, pair.reverse(), profile.self_compose(3), sampling.Subsampled(profile, 0.5)):
        again = from_dict(json.loads(json.dumps(to_dict(one))))
        assert again == one
        assert again.delta(0.3) == one.delta(0.3)
        assert pickle.loads(pickle.dumps(one)) == one


@pytest.mark.parametrize("change", [
    {"log_p": [-1.0, 0.5, float("nan")]}, {"log_q": [-1.0]}, {"log_p": [{"float": "inf"}, -1.0]}, {"forward": 1}, {"log_p": "a"},
    {"log_p": [{"float": "-inf"}] * 2, "log_q": [0.0, -1.0]},
    {"log_p": [-1.0, {"float": "-inf"}], "log_q": [-1.0, {"float": "-inf"}]},
])  # fmt: skip
def test_damaged_imports_are_not_read(change):
    direction = {"profile": "from_dp_accounting", "log_p": [-0.1, -2.4], "log_q": [-0.7, -0.7], "forward": True}
    assert from_dict(direction).delta(0.0) > 0
    with pytest.raises(ValueError, match=r"log_p|log_q|forward"):
        from_dict({**direction, **change})
    for directions in ([], [direction] * 3, [from_dict({"profile": "KaryResponse", "bins": 3, "local_eps": 1.0}).to_dict()], 1):
        with pytest.raises(ValueError, match="directions"):
            from_dict({"profile": "AccountingProfile", "directions": directions})


@pytest.mark.parametrize(("interval", "first"), [(1e-4, -32), (0.01, -13), (0.1, -21), (1.0, -7)])
def test_the_losses_of_an_import_include_the_rounding_of_their_logarithms(interval, first):
    pld_pmf = pytest.importorskip("dp_accounting.pld.pld_pmf")
    rng = np.random.default_rng(1)
    for tiny in (0, 200):
        masses = rng.dirichlet(np.ones(40)) * 10 ** rng.uniform(-tiny, 0, 40)
        profile = interop.from_dp_accounting(pld_module.PrivacyLossDistribution(
            pld_pmf.DensePLDPmf(interval, first, masses, 0.0, True)))
        losses = interval * (first + np.arange(40))
        for eps in losses[losses >= 0].tolist():
            with mp.workdps(40):
                exact = mp.fsum(mp.mpf(p) * -mp.expm1(mp.mpf(eps) - mp.mpf(loss))
                                for p, loss in zip(masses.tolist(), losses.tolist()) if loss > eps)
                assert profile.delta(eps, bound="lower") <= exact <= profile.delta(eps)


def test_a_direction_may_have_a_delta_in_one_order_alone():
    # All losses of P against Q are at most 0, although P and Q differ: the masses under Q sum to more than 1.
    coarse = {"value_discretization_interval": 2.0, "use_connect_dots": False}
    pld = pld_module.from_laplace_mechanism(1.0, pessimistic_estimate=False, **coarse)
    (pair,) = interop.from_dp_accounting(pld).pairs()
    for one in (pair, pair.self_compose(2)):
        delta = one.reverse().delta(0.0, bound="lower")
        assert one.delta(0.0) == 0.0 < delta
        assert one.tradeoff().delta(0.0) >= delta
        assert one.reverse().tradeoff().inverse().delta(0.0) >= delta


@pytest.mark.parametrize("name", ["gaussian", "randomized response, rounded down", "sampled"])
def test_an_exported_import_has_at_least_its_delta(name):
    profile, eps = interop.from_dp_accounting(imports()[name]), [0.0, 0.05, 0.1, 0.313, 1.0, 2.0]
    for one in (profile, profile.self_compose(2), profile.pairs()[0]):
        exported = one.to_dp_accounting(interval=0.1)
        for at in eps:
            delta = max(one.delta(at, bound="lower"), one.reverse().delta(at, bound="lower"))
            assert exported.get_delta_for_epsilon(at) >= delta * (1 - 1e-12)


def test_what_contains_an_import_rests_on_the_claim_about_its_losses():
    given_losses = interop.from_dp_accounting(imports()["sampled"])
    direction = given_losses.directions[0]
    for profile in (given_losses, direction, direction.reverse(), direction.self_compose(3),
                    given_losses.compose(mechanisms.LaplaceMechanism(1.0)), given_losses.for_group(2)):
        for bound in ("upper", "lower"):
            claims = profile.evidence(0.5, bound=bound)
            assert [one.claim for one in claims if one.status is Status.OPEN] == [
                "the losses of dp-accounting, as given, are those of the mechanism"]


def test_an_export_searches_for_eps_without_advice_to_the_caller(recwarn):
    # The search for the end of the grid calls epsilon() with the mass of infinite losses, which is larger than the eps found.
    pair = DominatingPair.from_pmfs(np.log([0.5, 0.26, 0.24]), [-math.inf, *np.log([0.49, 0.51])])
    pld = pair.to_dp_accounting(interval=1e-2)
    assert pld.get_delta_for_epsilon(1.0) == pytest.approx(0.5, rel=1e-6)
    assert not [str(one.message) for one in recwarn if "epsilon(" in str(one.message)]
