"""A class states what it is, by `describe`, or overrides private hooks of the base class; only random allocation does both."""

import dataclasses
import importlib
import inspect
import pkgutil

import numpy as np
import pytest

import shufflebounds
from shufflebounds import PrivacyProfile
from shufflebounds._losses import release
from shufflebounds.profile.pair import Described, DominatingPair
from tests.examples import EXAMPLES

HOOKS = {
    "_pair_info", "_log_delta", "_pure_epsilon", "_gdp_mu", "_tradeoff", "_rdp", "_rough", "_epsilon", "_epsilons", "_eps_scale",
    "_mixture", "_attained_pairs", "_last_positive", "_adjacencies", "_log_side", "_loss_tail", "_mixture_rdp",
    "_mixture_tail",
}

WITH_HOOKS = {
    "mechanisms": ["GaussianVector"],
    "profile": ["BetweenProfiles", "KnownPair"],
    "sampling": ["AllocationPair", "RandomAllocation", "ReplaceOne", "_SeveralPair"],
    "shuffle": ["FlippedProtocol", "FlippedReports", "PersonalizedBits", "RealSum", "Shuffled", "ShuffledBits"],
}
"""The classes that still have hooks, by subpackage. A class that is described leaves the list, and none is added."""


BOTH = {"AllocationPair", "RandomAllocation", "_SeveralPair"}
"""The classes that still override hooks of their described base class. None is added."""


def classes(base=PrivacyProfile):
    """Return all subclasses of `base` in the package."""
    for module in pkgutil.walk_packages(shufflebounds.__path__, "shufflebounds."):
        if not any(name in module.name for name in ("opacus", "dp_accountant", "__main__")):
            importlib.import_module(module.name)
    found, waiting = set(), [base]
    while waiting:
        for kind in waiting.pop().__subclasses__():
            if kind not in found and kind.__module__.startswith("shufflebounds."):
                found.add(kind)
                waiting.append(kind)
    return found


def test_the_hooks_are_those_of_the_base_class():
    assert all(hasattr(PrivacyProfile, hook) for hook in HOOKS)
    overridden = {name for kind in classes() for name in vars(kind) if name.startswith("_") and not name.startswith("__")}
    bases = {name for base in PrivacyProfile.__mro__ for name, value in vars(base).items() if inspect.isfunction(value)}
    assert overridden & bases <= HOOKS


def test_a_described_class_has_no_hook_above_or_beside():
    kinds = classes(Described)
    assert kinds
    for kind in kinds:
        if kind.__name__ in BOTH:
            continue
        above = [base for base in kind.__mro__ if base not in Described.__mro__]
        assert {base.__name__: hook for base in above for hook in HOOKS & set(vars(base))} == {}, kind


def test_classes_with_hooks_become_fewer():
    found = {}
    for kind in classes() - {Described}:
        if HOOKS & set(vars(kind)):
            found.setdefault(kind.__module__.split(".")[1], []).append(kind.__name__)
    assert {folder: sorted(names) for folder, names in found.items()} == WITH_HOOKS


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_a_description_keeps_no_reference_to_its_profile(name):
    # A profile keeps what it states, so that a function in it that refers to the profile would be a reference cycle.
    for profile in EXAMPLES[name].profiles():
        if isinstance(profile, Described) and type(profile).__name__ not in BOTH:
            known = profile.describe()
            functions = [known.hockey_stick, known.losses.listed, known.losses.density, profile.closed_forms()]
            for function in functions:
                held = [function, getattr(function, "__self__", None), *getattr(function, "args", ())]
                assert all(one is not profile for one in held)


class Bounded(DominatingPair):
    """A pair of three outcomes, of which the library knows bounds of delta and the pure budget."""

    def __init__(self, pair):
        self.pair = pair

    def reverse(self):
        return Bounded(self.pair.reverse())

    def _log_delta(self, eps):
        return self.pair._log_delta(eps)

    def _pure_epsilon(self):
        return self.pair._pure_epsilon()


def test_an_ordered_pair_may_define_bounds_in_place_of_a_description():
    pair = DominatingPair.from_pmfs(np.log([0.5, 0.3, 0.2]), np.log([0.1, 0.3, 0.6]))
    bounded = Bounded(pair)
    assert (bounded.epsilon(1e-3), bounded.epsilon(0)) == (pair.epsilon(1e-3), pair.epsilon(0))
    known, exact = bounded._pair_info(), pair._pair_info()
    assert (known.pure, known.back.pure) == (exact.pure, exact.back.pure)
    assert known.pure != known.back.pure
    eps = np.linspace(0, 2, 9)
    assert np.array_equal(known.back.hockey_stick(eps), exact.back.hockey_stick(eps))
    assert bounded.self_compose(3).epsilon(0.01) == pytest.approx(pair.self_compose(3).epsilon(0.01), rel=1e-4)


def test_an_ordered_pair_without_bounds_says_what_to_define():
    class Empty(DominatingPair):
        def reverse(self):
            return self

    with pytest.raises(TypeError, match=r"Empty has no bounds of delta: define describe\(\), or _log_delta"):
        Empty().delta(0.1)


def test_records_have_at_most_eight_fields():
    records = [kind for _, kind in inspect.getmembers(release, inspect.isclass) if kind.__module__ == release.__name__]
    widths = {kind.__name__: len(getattr(kind, "_fields", None) or dataclasses.fields(kind)) for kind in records
              if hasattr(kind, "_fields") or dataclasses.is_dataclass(kind)}
    assert len(widths) >= 8
    assert max(widths.values()) <= 8, widths
