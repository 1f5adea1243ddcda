"""PrivacyProfile and DominatingPair: enumerated pairs against fractions, and the methods that every mechanism has."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shufflebounds
from shufflebounds import DominatingPair, PrivacyProfile
from shufflebounds.mechanisms import GaussianMechanism
from shufflebounds.shuffle import BinomialNoise, StrongerClones
from tests.errors import log_of, to_decimal
from tests.oracles import hockey_stick, logs, rational
from tests.strategies import laws, thinned

EPS = (0.0, 0.125, 0.5, 1.0, 3.0)


@given(laws(), st.sampled_from(EPS))
def test_listed_pairs_by_fractions(pq, eps):
    p, q = pq
    pair = DominatingPair.from_pmfs(logs(p), logs(q))
    exact = log_of(hockey_stick(p, q, rational(eps)))
    lower, upper = pair.log_delta(eps, bound="lower"), pair.log_delta(eps)
    # The logarithms of the masses are rounded by up to half an ulp, so a delta below about 1e-14 may be lost.
    assert to_decimal(lower) <= exact or (exact.is_infinite() and lower < math.log(1e-14))
    assert exact <= to_decimal(upper)
    if exact > to_decimal("-20"):
        assert upper - lower < 1e-4
    if exact > to_decimal("-5"):
        assert upper - lower < 1e-11


@given(laws())
def test_listed_pairs_reverse_and_compare(pq):
    pair = DominatingPair.from_pmfs(logs(pq[0]), logs(pq[1]))
    other = DominatingPair.from_pmfs(logs(pq[1]), logs(pq[0]))
    assert pair.reverse() == other
    assert pair.reverse().reverse() == pair
    assert pair.pairs() == (pair,)
    assert repr(pair) == f"DominatingPair.from_pmfs(<{len(pq[0])} atoms>)"


@pytest.mark.slow
@given(laws(), st.one_of(st.floats(0, 1), st.just(0.0), st.floats(1e-300, 1e-3)))
def test_epsilon_of_listed_pairs_is_on_its_side(pq, delta):
    pair = DominatingPair.from_pmfs(logs(pq[0]), logs(pq[1]))
    upper, lower = pair.epsilon(delta), pair.epsilon(delta, bound="lower")
    assert lower <= upper
    if math.isfinite(upper):
        assert pair.delta(upper) <= delta
    if delta > 0 and 0 < lower < math.inf:
        assert pair.delta(lower, bound="lower") >= delta


def test_randomized_response_exactly():
    p, q = [Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]
    pair = DominatingPair.from_pmfs(logs(p), logs(q))
    assert pair.epsilon(0.0) == pytest.approx(math.log(3), rel=1e-15)
    assert pair.epsilon(0.0) >= math.log(3)
    assert pair.delta(pair.epsilon(0.0)) == 0
    assert pair.delta(0.0) == pytest.approx(0.5, rel=1e-14)
    # The exact value is delta(eps) = 3/4 - e^eps/4.
    assert pair.epsilon(0.25) == pytest.approx(math.log(2), rel=1e-12)


def test_infinite_ratio_has_no_pure_epsilon():
    pair = DominatingPair.from_pmfs(logs([Fraction(1, 2), Fraction(1, 2)]), logs([Fraction(1), Fraction(0)]))
    assert pair.epsilon(0.0) == math.inf
    assert pair.epsilon(0.25) == math.inf
    assert pair.delta(500.0) == pytest.approx(0.5, rel=1e-14)
    assert pair.epsilon(0.75) == 0


def test_binomial_noise_as_a_listed_pair():
    n, g = 60, 0.25
    pmf = np.array([math.log(math.comb(n, k)) + k * math.log(g) + (n - k) * math.log1p(-g) for k in range(n + 1)])
    first, second = np.append(pmf, -np.inf), np.insert(pmf, 0, -np.inf)
    listed, noise = DominatingPair.from_pmfs(first, second), BinomialNoise(n, g).pairs()[0]
    for eps in EPS:
        assert listed.log_delta(eps) == pytest.approx(noise.log_delta(eps), rel=1e-11)


def test_deep_atoms_keep_their_relative_accuracy():
    # Under P only, there is an atom with mass e^-5000.
    log_p = np.array([0.0, -5000.0])
    log_q = np.array([0.0, -6000.0])
    pair = DominatingPair.from_pmfs(log_p, log_q)
    assert pair.log_delta(1.0) == pytest.approx(-5000, abs=1e-11)
    assert pair.log_delta(1.0, bound="lower") <= -5000 + 1e-300
    assert pair.epsilon(0.0) >= 1000


@pytest.mark.parametrize(
    ("log_p", "log_q", "name"),
    [
        ([], [0.0], "log_p"),
        ([0.0], [], "log_q"),
        ([[0.0]], [0.0], "log_p"),
        ([0.0], 0.0, "log_q"),
        ([math.nan], [0.0], "log_p"),
        ([0.0], [math.nan], "log_q"),
        ([0.1], [0.0], "log_p"),
        ([-0.1], [0.0], "log_p"),
        ([0.0], [-1.0, -1.0], "log_q"),
        ([0.0], [math.inf], "log_q"),
        (np.log([0.5, 0.5]), [0.0], "log_q"),
        ("a", [0.0], "log_p"),
        (None, [0.0], "log_p"),
    ],
)
def test_bad_laws(log_p, log_q, name):
    with pytest.raises(ValueError, match=rf"^{name}\b"):
        DominatingPair.from_pmfs(log_p, log_q)


PROFILES = [
    StrongerClones(100, 1.0),
    BinomialNoise(100, 0.5),
    BinomialNoise(100, 0.5).pairs()[0],
    DominatingPair.from_pmfs(np.log([0.75, 0.25]), np.log([0.25, 0.75])),
]


@pytest.mark.parametrize("profile", PROFILES, ids=lambda p: type(p).__name__)
def test_bad_eps(profile):
    for bad in [
        -1.0,
        -5e-324,
        math.nan,
        math.inf,
        -math.inf,
        "0.1",
        None,
        [],
        [[]],
        [0.1, -1],
        [math.nan, 1],
        True,
        [True],
        1j,
        {},
        [0.1, None],
    ]:
        for question in (profile.delta, profile.log_delta):
            with pytest.raises(ValueError, match=r"^eps\b.*(finite and >= 0|every entry)"):
                question(bad)


@pytest.mark.parametrize("profile", PROFILES, ids=lambda p: type(p).__name__)
def test_bad_delta(profile):
    for bad in [-1e-9, 1.0000001, math.nan, math.inf, "0.1", None, [], [0.5, 2], False, 1j]:
        with pytest.raises(ValueError, match=r"^delta\b.*(in \[0, 1\]|every entry)"):
            profile.epsilon(bad)


@pytest.mark.parametrize("profile", PROFILES, ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("bad", thinned(["Upper", "", None, 1, "both"], 3))
def test_bad_bound(profile, bad):
    for question in (profile.delta, profile.log_delta, profile.epsilon):
        with pytest.raises(ValueError, match=r"^bound=.*'lower', 'upper'"):
            question(0.5, bound=bad)


@pytest.mark.parametrize("profile", PROFILES, ids=lambda p: type(p).__name__)
def test_shapes_and_sides(profile):
    eps = np.array([[0.0, 0.25, 0.5]])
    lower, upper = profile.delta(eps, bound="lower"), profile.delta(eps)
    assert lower.shape == upper.shape == (1, 3)
    assert (lower <= upper).all()
    assert (np.diff(upper[0]) <= 0).all()
    assert profile.delta([0.25])[0] == profile.delta(0.25) == profile.delta(np.float32(0.25))
    assert isinstance(profile.delta(0.25), float)
    assert isinstance(profile.epsilon(0.25), float)
    assert profile.epsilon(np.full((2, 1), 0.25)).shape == (2, 1)
    np.testing.assert_allclose(np.log(profile.delta(0.25)), profile.log_delta(0.25), rtol=1e-13)
    assert profile.delta(1) == profile.delta(1.0)


@pytest.mark.parametrize("profile", PROFILES, ids=lambda p: type(p).__name__)
def test_every_class_says_what_it_proves(profile):
    assert isinstance(profile, PrivacyProfile)
    for text in (profile.theorem, profile.neighbours):
        assert len(text) > 10
        assert "\n" not in text


def test_profiles_without_pairs_say_so():
    with pytest.raises(TypeError, match="StrongerClones"):
        StrongerClones(10, 1.0).pairs()
    with pytest.raises(TypeError, match="PrivacyProfile has no bounds of delta"):
        PrivacyProfile().delta(1.0)


def test_public_face():
    assert sorted(shufflebounds.__all__) == shufflebounds.__all__
    assert {"profile", "shuffle", "tails"} <= set(shufflebounds.__all__)
    assert all(hasattr(shufflebounds, name) for name in shufflebounds.__all__)


@pytest.mark.parametrize("bound", ["upper", "lower"])
def test_an_array_of_delta_has_valid_answers_close_to_single_ones(bound):
    steps = GaussianMechanism(1.0).subsampled(0.01).self_compose(1000)
    # Not sorted, with equal ones and both ends.
    deltas = np.concatenate([np.geomspace(1e-9, 1e-4, 24)[::-1], [1e-5, 1e-5, 0.0, 1.0]])
    found = steps.epsilon(deltas, bound=bound)
    single = [steps.epsilon(delta, bound=bound) for delta in deltas.tolist()]
    np.testing.assert_allclose(found, single, rtol=1e-4 * steps.rtol)
    at, inside = steps.delta(found[:-2], bound=bound), deltas[:-2]
    assert np.all(at <= inside) if bound == "upper" else np.all(at >= inside)
