"""What each bound rests on: every object has claims, every place exists, and the weakest claim decides the words."""

import importlib
from pathlib import Path

import pytest

from shufflebounds import interop, mechanisms, sampling, shuffle
from shufflebounds.mechanisms import DiscreteGaussianMechanism, GaussianMechanism, GaussianVector
from shufflebounds.profile import Evidence, PrivacyProfile, Status
from shufflebounds.profile.extend import ROUNDING
from shufflebounds.shuffle import PersonalizedClones
from tests.densities import tilted
from tests.examples import EXAMPLES

ROOT = Path(__file__).parents[2]


def exists(where):
    """Return whether a page, a file or an attribute of the package exists."""
    if where.startswith("shufflebounds."):
        parts = where.split(".")
        for i in range(len(parts), 0, -1):
            try:
                found = importlib.import_module(".".join(parts[:i]))
            except ImportError:
                continue
            for name in parts[i:]:
                found = getattr(found, name)
            return True
        return False
    return not (ROOT / "docs").is_dir() or (ROOT / f"{where}.md").exists() or (ROOT / where).is_file()


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_every_example_has_claims_whose_places_exist(name):
    # shuffled randomizers have 40 examples, whose claims are of a few kinds
    for profile in EXAMPLES[name].profiles()[:16]:
        for bound in ("upper", "lower"):
            claims = profile.evidence(0.3, bound=bound)
            strength = [one.status.value for one in claims]
            assert strength == sorted(strength)
            assert len(claims) == len(set(claims))
            assert any(not one.arithmetic for one in claims), claims
            assert [one.where for one in claims if not exists(one.where)] == []
            assert all(one.claim and one.claim != "not stated" for one in claims)
            # Neither bound prints the theorem of the other one.
            opposite = {"upper": "lower bound", "lower": "upper bound"}[bound]
            assert [one.claim for one in claims if opposite in one.claim] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_bounds_with_a_gap_rest_on_different_claims(name):
    eps = 0.4
    for profile in EXAMPLES[name].profiles()[:8]:
        lower, upper = (profile.log_delta(eps, bound=bound) for bound in ("lower", "upper"))
        above, below = ({one for one in profile.evidence(eps, bound=bound) if not one.arithmetic} for bound in ("upper", "lower"))
        # Gaps below 0.05 are those of searches and grids. Both bounds may rest on the same claims about the mechanism.
        if upper - max(lower, -700.0) > 0.05:
            assert below != above, profile
            assert not any(one.claim == profile.theorem for one in below), profile


def status(profile, eps=0.1, bound="upper"):
    """Return the status of the weakest claim that is not about rounding."""
    return min((one.status for one in profile.evidence(eps, bound=bound) if not one.arithmetic), key=lambda one: one.value)


def verdict(profile, eps=0.1):
    """Return the words that say whether the upper bound is proved."""
    return next(line.partition(": ")[2] for line in profile.explain(eps).splitlines() if line.startswith("upper bound: "))


@pytest.mark.slow
def test_what_is_not_proved_says_so_for_each_object():
    assert status(DiscreteGaussianMechanism(2.0, 3).shuffled(100)) is Status.THEOREM
    assert status(GaussianVector(2.0, 3, "sphere").shuffled(100)) is Status.THEOREM
    assert status(GaussianVector(2.0, 3).shuffled(100)) is Status.THEOREM
    assert status(GaussianVector(2.0, 3)) is Status.THEOREM
    assert status(tilted()) is status(tilted().shuffled(50)) is Status.OPEN
    noise, bits = PersonalizedClones.laplace([0.5, 1.0, 2.0]), PersonalizedClones.randomized_response([0.5, 1.0, 2.0], 3)
    assert [status(one) for one in (noise, noise.for_group(1), bits)] == [Status.OPEN, Status.OPEN, Status.THEOREM]
    assert status(noise, bound="lower") is Status.THEOREM
    assert status(interop.AccountingProfile((interop.distributions._LossPair((0.0,), (0.0,)),))) is Status.OPEN


@pytest.mark.slow
def test_the_method_is_that_of_the_bounds():
    # Two users of Gaussian noise have a bound of their own.
    two = GaussianMechanism(1.0).shuffled(2)
    assert f"above by {two.argument(0.3)};" in two.explain(0.3)


@pytest.mark.parametrize(("noise", "users", "eps"), [
    # Sums of the discrete noise have no bound: its likelihood ratios are too large.
    (DiscreteGaussianMechanism(0.479, 21), 10, 100.0), (DiscreteGaussianMechanism(0.479, 21), 10**5, 100.0),
    (GaussianMechanism(0.1, 2.0), 10**5, 250.0),
])
def test_the_method_is_one_message_where_that_bound_is_the_smallest(noise, users, eps):
    shuffled = noise.shuffled(users)
    assert shuffled.log_delta(eps) == pytest.approx(noise.log_delta(eps), rel=1e-9)
    assert shuffled.argument(eps) == "one message alone"
    assert "method: above by one message alone;" in shuffled.explain(eps)
    assert any("one message alone" in one.claim for one in shuffled.evidence(eps))


def test_claims_of_equal_budgets_are_those_of_the_shuffle():
    bits = shuffle.PersonalizedBits([1.0] * 20)
    shuffled = mechanisms.RandomizedResponse(1.0).shuffled(20)
    for bound in ("upper", "lower"):
        assert bits.evidence(0.1, bound=bound) == shuffled.evidence(0.1, bound=bound)
    assert shuffle.PersonalizedBits([1.0, 2.0]).evidence(0.1) != shuffled.evidence(0.1)


def test_the_claims_of_a_lower_bound_are_no_upper_bounds():
    clones = shuffle.PersonalizedClones(0.25, [0.1, 0.2])
    assert "a randomizer may have a smaller delta" in clones.evidence(0.1, bound="lower")[-1].claim
    assert clones.evidence(0.1)[1].claim == clones.theorem
    twice = GaussianMechanism(1.0).self_compose(2)
    above, below = ({one.claim for one in twice.evidence(0.1, bound=bound) if "adaptive-composition" in one.where}
                    for bound in ("upper", "lower"))
    assert above
    assert below
    assert not above & below


def test_a_composition_has_the_claims_of_its_parts_at_every_eps():
    # A composition depends on delta of its parts at all eps; the argument that is the smallest changes with eps.
    part = mechanisms.LocalHashing(100, 1.0).shuffled(1000)
    arguments = {part.argument(eps) for eps in (0.0, 0.3)}
    assert len(arguments) == 2
    claims = {one.claim for one in part.self_compose(2).evidence(0.3)}
    assert {f"upper bound for every dataset: {name}" for name in arguments} <= claims


def test_a_composite_has_the_claims_of_its_parts():
    noise = PersonalizedClones.laplace([0.5, 1.0, 1.0])
    twice = noise.self_compose(2).compose(GaussianMechanism(1.0))
    assert set(noise.claims(0.1, upper=True)) | set(GaussianMechanism(1.0).claims(0.1, upper=True)) < set(twice.evidence(0.1))
    assert status(twice) is status(noise) is not Status.THEOREM
    batches = sampling.ShuffledBatches(GaussianMechanism(1.0), 100)
    noise_claims = set(batches.noise.claims(0.1, upper=True))
    assert noise_claims < set(batches.evidence(0.1))
    assert not {one for one in noise_claims if not one.arithmetic} & set(batches.evidence(0.1, bound="lower"))
    sampled = GaussianMechanism(1.0).subsampled(0.1)
    assert set(GaussianMechanism(1.0).claims(0.1, upper=True)) < set(sampled.evidence(0.1))


def test_a_class_without_a_theorem_is_not_proved():
    class Guess(PrivacyProfile):
        def describe(self):
            return mechanisms.GaussianMechanism(1.0).describe()

    assert verdict(Guess()).startswith("not proved: no proof is stated: not shown")


def test_the_weakest_claim_decides_the_words():
    class Own(mechanisms.GaussianMechanism):
        stated = ()

        def claims(self, eps, *, upper):
            return self.stated

    own = Own(1.0)
    proof, check = Evidence("a", Status.THEOREM, "b"), Evidence("c", Status.CHECKED, "d")
    for stated, words in (((proof,), "proved"),
                          ((proof, ROUNDING), "proved, up to rounding, which is charged with a measured margin"),
                          ((proof, check, proof, ROUNDING), "not proved: c: checked for these parameters (d)")):
        Own.stated = stated
        assert verdict(own) == words
    assert own.evidence(0.1) == (ROUNDING, check, proof)


def test_explain_states_bounds_method_and_claims():
    text = shuffle.Shuffled(mechanisms.KaryResponse(10, 1.0), 1000).explain(0.1).splitlines()
    assert text[0].startswith("mechanism: Shuffled(randomizer=KaryResponse")
    assert text[1].startswith("log delta(0.1) lies in [")
    assert text[2] == "method: above by privacy blanket; below by one dataset: every other user has a third value"
    assert [line.partition(":")[0] for line in text if not line.startswith(" ")][3:] == ["upper bound", "lower bound"]
    assert mechanisms.KaryResponse(3, 1.0).explain(0.1).splitlines()[2] == "method: the sum over all 3 outcomes of the pair"
    for wrong in (-1.0, float("inf"), float("nan")):
        with pytest.raises(ValueError, match="eps"):
            mechanisms.KaryResponse(3, 1.0).explain(wrong)


@pytest.mark.parametrize(("randomizer", "users", "eps"), [
    (mechanisms.KaryResponse(10, 1.0), 1000, 0.1), (mechanisms.LocalHashing(100, 1.0), 10**4, 0.025),
    (mechanisms.FiniteRandomizer([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3]]), 30, 0.05),
    pytest.param(mechanisms.GaussianMechanism(1.0), 100, 1.0, marks=pytest.mark.slow),
])
def test_explain_lists_the_bounds_that_lost_and_those_that_were_not_computed(randomizer, users, eps):
    protocol = shuffle.Shuffled(randomizer, users)
    lines = protocol.explain(eps).splitlines()
    above, below = ([line for line in lines if line.startswith(f"  at {side} ")] for side in ("most", "least"))
    lower, upper = (protocol.log_delta(eps, bound=bound) for bound in ("lower", "upper"))
    assert float(above[0].split()[2]) == pytest.approx(upper, rel=1e-8)
    assert float(below[0].split()[2]) == pytest.approx(lower, rel=1e-8)
    assert protocol.argument(eps) in above[0]
    assert protocol.data(eps) in below[0]
    omitted = [line.removeprefix("  not computed: ").partition(",")[0] for line in lines if line.startswith("  not computed: ")]
    computed = [line.partition(" by ")[2].partition(",")[0] for line in above]
    every = {"every dataset", "worst dataset", "privacy blanket", "shuffled bits", "every dataset of a stronger protocol"}
    assert set(omitted) == every - set(computed)


@pytest.mark.parametrize("guarantee", [
    shuffle.PersonalizedClones.randomized_response([0.5, 1.0, 2.0], 4, counts=[50, 100, 50]),
    shuffle.PersonalizedClones.gaussian([1.0, 2.0, 3.0], counts=[40, 40, 40]),
    shuffle.PersonalizedClones.laplace([0.5, 1.0, 2.0], target=1, counts=[50, 100, 50]),
    shuffle.PersonalizedBits([0.5, 1.0, 2.0], counts=[50, 100, 50]),
])
def test_explain_of_personal_budgets_lists_the_bounds_that_lost(guarantee):
    lines = guarantee.explain(0.3).splitlines()
    above = [float(line.split()[2]) for line in lines if line.startswith("  at most ")]
    assert len(above) > 1
    assert min(above) == pytest.approx(guarantee.log_delta(0.3), rel=1e-6)


@pytest.mark.parametrize(("profile", "eps"), [
    (sampling.RandomAllocation(GaussianMechanism(1.0), 100), 0.5),
    pytest.param(sampling.RandomAllocation(GaussianMechanism(1.0), 20, chosen=3), 0.5, marks=pytest.mark.slow),
    pytest.param(sampling.ShuffledBatches(GaussianMechanism(4.0), 10**4, 1000), 0.01, marks=pytest.mark.slow),
    pytest.param(sampling.ShuffledBatches(GaussianMechanism(1.0), 100), 0.5, marks=pytest.mark.slow),
    (sampling.ReplaceOne(GaussianMechanism(1.0).subsampled(0.01)), 0.1),
    (sampling.ReplaceOne(mechanisms.RandomizedResponse(1.0).subsampled(0.1).compose(shuffle.BinomialNoise(100, 0.5))), 0.3),
    (shuffle.FlippedReports(500, 40, 5, 0.1, view="records"), 0.1), (shuffle.FlippedReports(20, 3, 2, 0.2, view="records"), 0.1),
    (shuffle.FlippedReports(40, 5, 3, 0.2, view="sums"), 0.1),
    (shuffle.FlippedReports(40, 5, 3, 0.2, view="sums", fake="known"), 0.1),
    (shuffle.PersonalizedBits([0.5, 1.0, 2.0] * 9), 0.1),
])
def test_explain_lists_the_stated_bounds_before_those_that_lost(profile, eps):
    # For random allocation the bounds are listed for each direction, and the larger delta is stated.
    parts = [[[], []]]
    for line in profile.explain(eps).splitlines():
        if line.startswith("record added"):
            parts.append([[], []])
        for listed, word in zip(parts[-1], ("  at most ", "  at least ")):
            listed += [float(line.split()[2])] if line.startswith(word) else []
    parts = [part for part in parts if part[0]]
    assert max(min(above) for above, _ in parts) == pytest.approx(profile.log_delta(eps), rel=1e-8)
    assert max(max(below) for _, below in parts) == pytest.approx(profile.log_delta(eps, bound="lower"), rel=1e-8)


def test_explain_of_a_group_states_the_split_and_the_lower_bounds():
    group = mechanisms.KaryResponse(10, 2.0).shuffled(1000).for_group(3)
    lines = group.explain(0.1).splitlines()
    assert lines[2].startswith("method: above by one record after the other, with eps from 0.0")
    assert max(float(line.split()[2]) for line in lines if line.startswith("  at least ")) == pytest.approx(
        group.log_delta(0.1, bound="lower"), rel=1e-8)


def test_explain_of_a_removed_record_says_why_a_bound_was_not_computed():
    text = sampling.RandomAllocation(GaussianMechanism(1.0), 100).explain(0.5)
    assert "not computed: the Renyi divergences of whole orders, because the gap of log delta is below 1" in text
    assert "not computed: the Renyi divergences of whole orders, because the record is added" in text
    few = shuffle.FlippedReports(3, 30, 2000, 0.01, view="records").explain(0.1)
    assert "not computed: weighted labels, which need at most 1024 bins" in few


def certified(claim):
    return claim.claim.endswith("by certify")


def test_a_certificate_leaves_no_claim_about_rounding():
    pytest.importorskip("flint")
    clones, eps = shuffle.StrongerClones(10**6, 4.0), 0.045
    assert verdict(clones, eps).startswith("proved, up to rounding")
    clones.certify(eps, bound="upper")
    assert verdict(clones, eps) == "proved"
    assert any(map(certified, clones.evidence(eps)))
    # The other bound, another eps and an equal object were not certified.
    assert all(ROUNDING in one for one in (clones.evidence(eps, bound="lower"), clones.evidence(0.05),
                                           shuffle.StrongerClones(10**6, 4.0).evidence(eps)))


def test_a_certificate_beside_the_stated_number_shows_nothing(monkeypatch):
    pytest.importorskip("flint")
    noise = shuffle.BinomialNoise(100, 0.5)
    noise.certify(0.5, bound="lower")
    assert any(map(certified, noise.evidence(0.5, bound="lower")))
    # A ball within the tolerance of a certificate, but above the stated upper bound.
    ball = noise.certify(0.25, bound="upper") * 1.001
    monkeypatch.setattr("shufflebounds.certify.certify", lambda *_: ball)
    other = shuffle.BinomialNoise(100, 0.5)
    other.certify(0.25, bound="upper")
    assert not any(map(certified, other.evidence(0.25)))


def test_the_claims_about_the_headline_name_the_theorem_its_proof_and_the_rounding():
    text = shuffle.StrongerClones(10**6, 4.0).explain(0.0450729)
    assert all(words in text for words in ("docs/theorems/stronger-clones", "tests/proofs/StrongerClones.v", "docs/numerics"))
