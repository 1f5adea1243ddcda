"""Mistakes of new users: swapped arguments, wrong types and wrong units raise an error that explains them, or a warning."""

import inspect
import re
import warnings

import pytest

import shufflebounds
from shufflebounds import audit, composition, mechanisms, published, shuffle, tails
from shufflebounds.shuffle import samples
from tests.strategies import thinned

CALIBRATIONS = [
    *(getattr(kind, name) for module in (shuffle, mechanisms) for kind in map(vars(module).get, module.__all__)
      for name in ("calibrate", "from_dp", "from_eps") if inspect.isclass(kind) and hasattr(kind, name)),
    shuffle.compare_at, *(getattr(samples, name) for name in samples.__all__ if inspect.isfunction(getattr(samples, name))),
]


@pytest.mark.parametrize("method", thinned(CALIBRATIONS, 3), ids=lambda method: method.__qualname__)
def test_eps_and_delta_are_given_by_name(method):
    taken = inspect.signature(method).parameters
    assert taken["eps"].kind is taken["delta"].kind is inspect.Parameter.KEYWORD_ONLY
    assert [name for name in taken if name in ("eps", "delta")] == ["eps", "delta"] or method.__name__ == "from_eps"


SLOW = ("compare_at", "support_identification", "RealSum, columns", "FlippedReports", "RealSum")
CALIBRATED = {
    "BinomialNoise": lambda eps, delta: shuffle.BinomialNoise.calibrate(eps=eps, delta=delta),
    "ClearReports": lambda eps, delta: shuffle.ClearReports.calibrate(bins=200, eps=eps, delta=delta),
    "GeometricDummies": lambda eps, delta: shuffle.GeometricDummies.calibrate(bins=200, eps=eps, delta=delta),
    "ShuffledBits": lambda eps, delta: shuffle.ShuffledBits.calibrate(users=10**6, eps=eps, delta=delta),
    "RealSum": lambda eps, delta: shuffle.RealSum.calibrate(users=10**4, bits=8, eps=eps, delta=delta),
    "RealSum, columns": lambda eps, delta: shuffle.RealSum.calibrate(users=10, bits=2, eps=eps, delta=delta, view="columns"),
    "FlippedReports": lambda eps, delta: shuffle.FlippedReports.calibrate(users=100, bins=10, eps=eps, delta=delta, view="sums"),
    "ZeroSum": lambda eps, delta: shuffle.ZeroSum.calibrate(users=10**4, eps=eps, delta=delta),
    "ShuffledHistogram": lambda eps, delta: shuffle.ShuffledHistogram.calibrate(users=10**4, bins=10, eps=eps, delta=delta),
    "StrongerClones": lambda eps, delta: shuffle.StrongerClones.calibrate(eps=eps, delta=delta, local_eps=2.0),
    "Shuffled": lambda eps, delta: shuffle.Shuffled.calibrate(mechanisms.KaryResponse(4, 1.0), eps=eps, delta=delta),
    "GaussianMechanism": lambda eps, delta: mechanisms.GaussianMechanism.from_dp(eps=eps, delta=delta),
    "GeometricMechanism": lambda eps, delta: mechanisms.GeometricMechanism.from_dp(eps=eps, delta=delta),
    "LaplaceMechanism": lambda eps, delta: mechanisms.LaplaceMechanism.from_eps(eps=eps, delta=delta),
    "compare_at": lambda eps, delta: shuffle.compare_at(users=10, bins=2, eps=eps, delta=delta),
    "Ledger": lambda eps, delta: composition.Ledger(eps, delta),
    "support_identification": lambda eps, delta: samples.support_identification(2, eps=eps, delta=delta),
}


@pytest.mark.parametrize("sized", CALIBRATED.values(), ids=CALIBRATED)
def test_a_delta_of_one_or_more_is_refused(sized):
    for delta in (1.0, 2.0):
        with pytest.raises(ValueError, match=rf"^delta={delta:g} must be in \(0, 1\); pass the probability"):
            sized(1e-3, delta)


@pytest.mark.parametrize("sized", [pytest.param(sized, marks=pytest.mark.slow if name in SLOW else ())
                                   for name, sized in CALIBRATED.items()], ids=CALIBRATED)
def test_a_large_delta_draws_one_warning_at_the_line_of_the_caller(sized):
    with pytest.warns(UserWarning, match=r"delta=0\.3 is above 0\.001: with a probability.*Are eps and delta swapped\?") as caught:
        sized(0.5, 0.3)
    assert [warning.filename for warning in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sized(1.0, 1e-3)


@pytest.mark.parametrize(("call", "words"), [
    (lambda: shuffle.StrongerClones(4.0, 100), r"users=4\.0 must be an integer in 1\.\.2\*\*53, got a float: pass 4, without"),
    (lambda: mechanisms.KaryResponse(2.0, 200), r"bins=2\.0 must be an integer in 2\.\.2\*\*53, got a float: pass 2, without"),
    (lambda: shuffle.StrongerClones(1e6, 4.0), r"users=1000000\.0 must be .* pass 1000000, without a decimal point or an exponent"),
    (lambda: shuffle.StrongerClones("1e6", 4.0), r"users='1e6' must be an integer .* got a str: pass a number, such as 10\*\*6"),
    (lambda: shuffle.StrongerClones(0.5, 4), r"users=0\.5 must be an integer .* got a float: pass a whole number, or check"),
    (lambda: shuffle.StrongerClones([10, 20], 4), r"users=\[10, 20\] must be an integer .* got an array: pass one number"),
    (lambda: shuffle.StrongerClones(10, 4.0).epsilon(2.0), r"delta=2 must be in \[0, 1\]; .*; epsilon\(\) takes the failure"),
])
def test_counts_are_integers_and_messages_say_what_to_do(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize(("call", "words"), [
    (lambda: shuffle.StrongerClones(4, 100), "local_eps=100 is above 20 nats.*swapped"),
    (lambda: shuffle.Clones(10, 21), "local_eps=21 is above 20 nats"),
    (lambda: mechanisms.KaryResponse(2, 200), "local_eps=200 is above 20 nats"),
    (lambda: shuffle.PersonalizedBits([1.0, 30.0]), "local_eps=30 is above 20 nats"),
    (lambda: shuffle.clones_epsilons(4, 100, 1e-6), "local_eps=100 is above 20 nats"),
    (lambda: shuffle.ClearReports(100, 200), r"fakes=100 is below bins=200.*swapped"),
    (lambda: shuffle.ShuffledHistogram(10**4, 10, 0.2).error_quantile(0.95), r"beta=0\.95 is above 0\.5.* probability 0\.05"),
    (lambda: shuffle.ShuffledBits.calibrate(eps=100, delta=1e-6, users=1000), "eps=100 is above 20 nats"),
    (lambda: shuffle.StrongerClones(10**6, 4.0).epsilon(1.0), r"epsilon\(delta=1\) = 0 is below.*you mean delta\(eps=1\)\?"),
    (lambda: shuffle.ShuffledBits(100, 0.2).epsilon(0.5), r"epsilon\(delta=0\.5\) = 0 is below delta"),
    (lambda: shuffle.StrongerClones(10**6, 4.0).delta(1e-8), r"delta\(eps=1e-08\) = .* exceeds eps.*epsilon\(delta=1e-08\)\?"),
])
def test_plausibly_swapped_arguments_draw_a_warning(call, words):
    with pytest.warns(UserWarning, match=words) as caught:
        call()
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.filterwarnings("error")
def test_nothing_else_warns():
    # None of these calls is a mistake: arrays are for curves, delta = 0 is pure privacy, and delta at eps = 0 is the total
    # variation distance.
    clones = shuffle.StrongerClones(10**6, 20.0)
    clones.epsilon([0.5, 1.0])
    clones.delta([1e-8, 1e-5])
    clones.delta(0.0)
    clones.epsilon(0.0)
    shuffle.BinomialNoise(10**6, 0.5).epsilon(1e-3)
    # The search evaluates budgets far above 20, and a large result is no mistake of the caller.
    assert shuffle.StrongerClones.calibrate(eps=5.0, delta=1e-3, users=10**12).local_eps > 20


@pytest.mark.parametrize(("call", "words"), [
    (lambda: shufflebounds.compare(1), r"1 must be a PrivacyProfile to be drawn: pass StrongerClones"),
    (lambda: shufflebounds.compare([shuffle.StrongerClones(10, 1.0)] * 2), r"pass several profiles as arguments, compare\(p, q\)"),
    (lambda: published.compare({"f": lambda users: 1.0}, users=10, local_eps=1.0, delta=1e-6),
     r"mine\['f'\] takes \(users\): it must be a function of \(users, local_eps, delta\)"),
    (lambda: shuffle.Shuffled(mechanisms.KaryResponse, 10),
     r"got the class KaryResponse: pass an instance, KaryResponse\(bins, local_eps\)$"),
])
def test_arguments_of_another_kind_are_refused_before_any_work(call, words):
    with pytest.raises(TypeError, match=words):
        call()


@pytest.mark.parametrize(("call", "message"), [
    (lambda: mechanisms.SubsetSelection(5, 1.0, 9), "size=9 must be an integer in 1..4; pass the number of bins of a message, "),
    (lambda: mechanisms.Rappor(0.5, bits=0), "bits=0 must be an integer in 2..2**53; pass the length of the Bloom filter, "),
    (lambda: mechanisms.GeometricMechanism(1.0, 1, 0), "; pass the largest noise, such as 100, or None for noise without a limit"),
    (lambda: mechanisms.RatioBounded(2.0, 2.0, 2.0), "; pass a total variation distance of two inputs, "),
    (lambda: mechanisms.GaussianMechanism(-1.0), "; pass a standard deviation, such as 1.0; from_dp(...) finds it"),
    (lambda: mechanisms.KaryResponse(3, 1.0).shuffled(10).for_group(0), "; pass a number of people, such as 5"),
    # No advice where none is right for this argument.
    (lambda: mechanisms.DiscreteGaussianMechanism(-1.0), "must be in [0.001, 100000]; pass a standard deviation, such as 1.0$"),
    (lambda: audit.decisions(1, 0, 1, 5), "trials=0 must be an integer in 1..2**53$"),
    (lambda: composition.compose_dp(0.1, 0.0, 0.1, k=-1), "k=-1 must be in [0, 6.87195e+10]$"),
])
def test_advice_is_that_for_the_class_of_the_argument(call, message):
    text, end = re.escape(message.removesuffix("$")), "$" if message.endswith("$") else ""
    with pytest.raises(ValueError, match=text + end):
        call()


def test_an_attribute_of_the_randomizer_is_pointed_at():
    shuffled = mechanisms.KaryResponse(10, 2.0).shuffled(1000)
    with pytest.raises(AttributeError, match=r"has no attribute 'estimate'; its randomizer has it: \.randomizer\.estimate"):
        shuffled.estimate([1, 2])
    with pytest.raises(AttributeError, match=r"'Shuffled' object has no attribute 'epsilo'\Z"):
        shuffled.epsilo(1e-6)


def test_a_protocol_in_place_of_its_calibration_is_refused():
    with pytest.raises(TypeError, match=r"calibrate=ShuffledBits\(users=100.* must be a function of eps and delta"):
        composition.calibrate_releases(shuffle.ShuffledBits(100, 0.2), releases=5, eps=1, delta=1e-6)


def test_counts_of_bins_are_not_taken_for_reports():
    for counts in ([30, 40, 50, 60], [1, 2, 3]):
        with pytest.raises(ValueError, match=r"messages has shape \(\d,\): .* more than fakes=100 entries, .*; counts go to"):
            shuffle.ClearReports(100, 200).estimate(counts)
    with pytest.raises(ValueError, match=r"messages holds 40: every entry must be a bin in 0\.\.3; pass one bin an entry"):
        mechanisms.KaryResponse(4, 1.0).estimate([30, 40, 2, 1])
    with pytest.raises(ValueError, match="messages has 200 entries, as many as there are different messages: pass counts to"):
        shuffle.ClearReports(100, 200).estimate([15] * 200)


def test_a_budget_in_place_of_a_scale_draws_a_warning():
    with pytest.warns(UserWarning, match=r"scale=0.1 with sensitivity=1 has the local budget 10: .*from_eps\(eps=0.1\)"):
        mechanisms.LaplaceMechanism(0.1)
    # A calibration tries scales that the caller did not choose.
    assert mechanisms.LaplaceMechanism.from_eps(eps=10.0).epsilon(0.0) <= 10.0


def test_the_signature_of_a_class_is_that_of_its_constructor():
    assert str(inspect.signature(mechanisms.GaussianMechanism)).startswith("(sigma: 'float', sensitivity: 'float' = 1.0)")
    assert [*inspect.signature(tails.binom).parameters] == ["n", "p"]
    # An error inside of a constructor keeps its own message.
    with pytest.raises(TypeError, match="Can't instantiate abstract class"):
        shufflebounds.DominatingPair()
