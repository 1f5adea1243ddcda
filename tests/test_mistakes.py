"""Mistakes of new users: swapped arguments, wrong types and wrong units are refused in words, or draw a warning."""

import inspect
import warnings

import pytest

from shufflebounds import mechanisms, shuffle
from shufflebounds.shuffle import samples

SIZING = [
    *(getattr(kind, name) for module in (shuffle, mechanisms) for kind in map(vars(module).get, module.__all__)
      for name in ("calibrate", "from_dp", "from_eps") if inspect.isclass(kind) and hasattr(kind, name)),
    shuffle.compare_at, *(getattr(samples, name) for name in samples.__all__ if inspect.isfunction(getattr(samples, name))),
]


@pytest.mark.parametrize("method", SIZING, ids=lambda method: method.__qualname__)
def test_eps_and_delta_are_given_by_name(method):
    taken = inspect.signature(method).parameters
    assert taken["eps"].kind is taken["delta"].kind is inspect.Parameter.KEYWORD_ONLY
    assert [name for name in taken if name in ("eps", "delta")] == ["eps", "delta"] or method.__name__ == "from_eps"


SLOW = ("compare_at", "support_identification", "RealSum, columns", "FlippedReports", "RealSum")
SIZED = {
    "BinomialNoise": lambda eps, delta: shuffle.BinomialNoise.calibrate(eps=eps, delta=delta),
    "ClearReports": lambda eps, delta: shuffle.ClearReports.calibrate(200, eps=eps, delta=delta),
    "ShuffledBits": lambda eps, delta: shuffle.ShuffledBits.calibrate(10**6, eps=eps, delta=delta),
    "RealSum": lambda eps, delta: shuffle.RealSum.calibrate(10**4, 8, eps=eps, delta=delta),
    "RealSum, columns": lambda eps, delta: shuffle.RealSum.calibrate(10, 2, eps=eps, delta=delta, view="columns"),
    "FlippedReports": lambda eps, delta: shuffle.FlippedReports.calibrate(100, 10, eps=eps, delta=delta, view="sums"),
    "ZeroSum": lambda eps, delta: shuffle.ZeroSum.calibrate(10**4, eps=eps, delta=delta),
    "ShuffledHistogram": lambda eps, delta: shuffle.ShuffledHistogram.calibrate(10**4, 10, eps=eps, delta=delta),
    "StrongerClones": lambda eps, delta: shuffle.StrongerClones.calibrate(eps=eps, delta=delta, local_eps=2.0),
    "Shuffled": lambda eps, delta: shuffle.Shuffled.calibrate(mechanisms.KaryResponse(4, 1.0), eps=eps, delta=delta),
    "GaussianMechanism": lambda eps, delta: mechanisms.GaussianMechanism.from_dp(eps=eps, delta=delta),
    "GeometricMechanism": lambda eps, delta: mechanisms.GeometricMechanism.from_dp(eps=eps, delta=delta),
    "LaplaceMechanism": lambda eps, delta: mechanisms.LaplaceMechanism.from_eps(eps=eps, delta=delta),
    "compare_at": lambda eps, delta: shuffle.compare_at(10, 2, eps=eps, delta=delta),
    "support_identification": lambda eps, delta: samples.support_identification(2, eps=eps, delta=delta),
}


@pytest.mark.parametrize("sized", SIZED.values(), ids=SIZED)
def test_a_delta_of_one_or_more_is_refused(sized):
    for delta in (1.0, 2.0):
        with pytest.raises(ValueError, match=rf"^delta={delta:g} must be in \(0, 1\); delta is the probability"):
            sized(1e-3, delta)


@pytest.mark.parametrize("sized", [pytest.param(sized, marks=pytest.mark.slow if name in SLOW else ())
                                   for name, sized in SIZED.items()], ids=SIZED)
def test_a_large_delta_draws_one_warning_at_the_line_of_the_caller(sized):
    with pytest.warns(UserWarning, match=r"delta=0\.3 is above 0\.001: with a probability.*Are eps and delta swapped\?") as caught:
        sized(0.5, 0.3)
    assert [warning.filename for warning in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sized(1.0, 1e-3)
