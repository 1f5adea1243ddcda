"""A short run of the campaigns with a fixed seed; ``python -m tests.fuzz`` runs them for hours."""

import math
import random

import pytest

from shufflebounds import mechanisms, profile, shuffle, tails
from tests.examples import EXAMPLES
from tests.fuzz import certify, compositions, datasets, enumeration, hostile, monotone, mutants, protocols, shared_objects

pytest.importorskip("flint")


@pytest.mark.parametrize("kind", [
    pytest.param(kind, marks=pytest.mark.slow) if kind == "shuffled batches" else kind
    for kind in enumeration.KINDS if kind != "densities"])
def test_sides_enclose_certified_digits(kind):
    # a case of the first seed takes seconds
    tried, found = enumeration.attack({"many bits": 2}.get(kind, 1), cases=8, only=kind)
    assert tried.total() == 8
    assert not found


@pytest.mark.slow
@pytest.mark.parametrize("only", [None, "densities"])
def test_sides_enclose_certified_digits_longer(only):
    tried, found = enumeration.attack(99, cases=80 if only is None else 6, only=only)
    print(dict(tried))
    assert not found


@pytest.mark.parametrize("cases", [2, pytest.param(12, marks=pytest.mark.slow)])
def test_compositions_enclose_the_best_strategy(cases):
    tried, found = compositions.attack(7, cases)
    assert tried.total() > 10 * cases
    assert not found


@pytest.mark.parametrize("cases", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_the_bound_over_all_datasets_is_above_each_of_them(cases):
    tried, found = datasets.attack(3, cases)
    assert tried.total() > 1000 * cases
    assert not found


@pytest.mark.slow
def test_hostile_values_are_refused_or_answered():
    counts, harm = hostile.campaign(5, cases=100, seconds=0, most=500)
    print(dict(counts))
    assert not {kind: words for kind, words in harm.items() if "longer" not in kind[1]}


@pytest.mark.parametrize(("only", "cases"), [("ufuncs", 4), ("enumerated", 2)])
def test_threads_that_share_objects(only, cases):
    tried, found = shared_objects.attack(3, cases, only=only)
    assert tried.total() > 8 * cases
    assert not found


@pytest.mark.slow
def test_threads_that_share_objects_longer():
    tried, found = shared_objects.attack(11, 2, only="compositions")
    print(dict(tried))
    assert not found


@pytest.mark.slow
def test_the_campaign_of_threads_starts_its_processes():
    tried, found = shared_objects.campaign(3, 0.01, each=1)
    assert tried["children"] == 1
    assert not found


def test_every_subpackage_is_attacked():
    # The campaign collects the public names itself, so that names added to a module are tested without a change here.
    names = hostile.subjects()
    for module in (shuffle, mechanisms):
        for name in module.__all__:
            assert name in hostile.LEFT_OUT or f"{module.__name__}.{name}" in names or not callable(getattr(module, name))


@pytest.mark.parametrize("seed", [9])
def test_hostile_values_in_a_second(seed):
    counts, harm = hostile.campaign(seed, cases=12, seconds=0, most=100)
    assert counts["calls"] > 12
    assert not harm


def test_nan_is_harm_but_outside_the_domain_of_a_ufunc():
    for name, given in (("nbinom_logcdf", (1, -1.0, 0.5)), ("binom_logsf", (1, 5, 1.5)), ("log_betainc", (1.0, 2.0, -0.5)),
                        ("poisson_logpmf", (1, math.nan)), ("hypergeom_logpmf", (1, 5, 9, 2))):
        assert hostile.outside(name, given)
        assert math.isnan(getattr(tails, name)(*given))
    for name, given in (("nbinom_logcdf", (1, 2.0, 0.5)), ("binom_logsf", (1, 5, 0.5)), ("log_gammaincc", (1.0, 2.0))):
        assert not hostile.outside(name, given)


@pytest.mark.parametrize("drawn", [enumeration.question, certify.points])
def test_drawn_eps_can_be_certified(drawn):
    # The losses of this protocol are as large as 744.
    protocol, r = shuffle.ShuffledBits(1, 5e-324), random.Random(1)
    assert max(drawn(r, protocol) for _ in range(60)) == 700
    assert enumeration.wrong(protocol, 700.0) is None


def test_certified_digits_know_what_they_cost():
    with pytest.raises(ValueError, match=r"ball operations, .* s: seconds=10 is"):
        shuffle.StrongerClones(10**15, 1.0).certify(0.1)
    with pytest.raises(TypeError, match=r"has no certified digits"):
        shuffle.PersonalizedBits([1.0] * 30).certify(0.1)
    assert shuffle.StrongerClones(3, 1.0).certify(1.0).contains(0)
    pair = profile.DominatingPair.from_pmfs([0.0], [0.0])
    assert pair.certify(0.5) == 0


def test_certified_digits_are_as_many_as_asked_for():
    for digits in (1, 15, 100, 1000):
        ball = shuffle.ShuffledBits(20, 0.1, ones=3).certify(0.7, digits=digits)
        assert ball.rel_accuracy_bits() >= digits * 3.32


@pytest.mark.slow
@pytest.mark.parametrize(("only", "cases"), [("mechanisms", 8), ("sampling", 8), ("many clones", 3), ("sampled Gaussian", 1)])
def test_stated_bounds_meet_their_certificates(only, cases):
    counts, found = certify.attack(5, cases=cases, only=only)
    assert sum(many for (_, kind), many in counts.items() if kind in ("upper", "lower")) >= 1
    assert not found


def test_mutants_change_one_token_each():
    text = 'import max\ndef f(*, upper=0.5): "max"\ny = max(a, -b) - c**2 * floor(1e-3)  # min\n'
    found = {(line, column, old, new) for line, column, old, new in mutants.changes(text) if not old.isdigit()}
    assert found == {
        (3, 4, "max", "min"), (3, 11, "-", "+"), (3, 15, "-", "+"), (3, 22, "*", "/"), (3, 24, "floor", "ceil"),
        (3, 30, "1e-3", "(1e-3 / 2)"),
    }


@pytest.mark.parametrize("cases", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_small_protocols_are_between_their_bounds(cases):
    tried, found = protocols.attack(5, cases)
    assert tried.total() > 100 * cases
    assert not found


def test_every_class_has_steps_to_mechanisms_that_reveal_less():
    assert set(monotone.STEPS) == set(EXAMPLES)


@pytest.mark.parametrize(("only", "cases"), [
    ("Clones", 60), ("ShuffledBits", 40), ("mechanisms.KaryResponse", 10), ("sampling.Subsampled", 20), ("matrices", 4),
    *(pytest.param(only, cases, marks=pytest.mark.slow) for only, cases in [
        ("Shuffled of mechanisms.LaplaceMechanism", 12), ("Shuffled of mechanisms.Rappor", 12), ("FlippedReports", 12)]),
])
def test_upper_bounds_do_not_rise(only, cases):
    counts, found = monotone.attack(2, cases, only=only)
    assert counts.total() >= cases
    assert not found, "\n".join(found)


def test_a_violation_is_reduced_to_simpler_parameters():
    def line_of(profile, eps):
        # As if the bounds were wrong for every protocol of more than 20 users and every eps above .1.
        return "wrong" if profile.users > 20 and eps > 0.1 else None

    profile = mechanisms.KaryResponse(7, 1.23456789).shuffled(123456, 0.98765)
    simple, eps = certify.shrunk(profile, 0.123456789, line_of, most=200)
    assert line_of(simple, eps)
    assert 20 < simple.users < 200
    assert eps == 0.12
    assert simple.participation == 1.0
    assert simple.randomizer.local_eps == 1.0
    assert simple.randomizer.bins <= 2
