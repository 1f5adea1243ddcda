"""A class states what it is, by `describe` and `closed_forms`; no class overrides a private method of the base class."""

import dataclasses
import importlib
import inspect
import pkgutil

import pytest

import shufflebounds
from shufflebounds import PrivacyProfile
from shufflebounds.mechanisms import LaplaceMechanism
from shufflebounds.profile import DominatingPair, extend
from tests.examples import EXAMPLES


def classes():
    """Return all subclasses of `PrivacyProfile` in the package."""
    for module in pkgutil.walk_packages(shufflebounds.__path__, "shufflebounds."):
        if not any(name in module.name for name in ("opacus", "dp_accountant", "__main__")):
            importlib.import_module(module.name)
    found, waiting = set(), [PrivacyProfile]
    while waiting:
        for kind in waiting.pop().__subclasses__():
            if kind not in found and kind.__module__.startswith("shufflebounds."):
                found.add(kind)
                waiting.append(kind)
    return found


def test_no_class_overrides_a_private_method_of_the_base_class():
    bases = {name for base in PrivacyProfile.__mro__ for name, value in vars(base).items() if inspect.isfunction(value)}
    private = {name for name in bases if name.startswith("_") and not name.startswith("__")}
    kinds = classes()
    assert len(kinds) > 50
    found = {kind.__name__: private & set(vars(kind)) for kind in kinds}
    assert {name: hooks for name, hooks in found.items() if hooks} == {}


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_a_description_keeps_no_reference_to_its_profile(name):
    # A profile keeps what it states, so that a function in it that refers to the profile would be a reference cycle.
    # Shuffled randomizers have 40 examples of a few kinds.
    for profile in EXAMPLES[name].profiles()[:16]:
        known, forms = profile.describe(), profile.closed_forms()
        functions = [known.hockey_stick, known.losses.listed, known.losses.density, known.attained.profiles, forms]
        for function in functions:
            cells = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
            held = [function, getattr(function, "__self__", None), *getattr(function, "args", ()), *cells]
            assert all(one is not profile for one in [*held, *getattr(forms, "__dict__", {}).values()])


def test_an_ordered_pair_without_bounds_says_what_to_define():
    class Empty(DominatingPair):
        def reverse(self):
            return self

    with pytest.raises(TypeError, match=r"Empty has no bounds of delta: define describe\(\)"):
        Empty().delta(0.1)


@pytest.mark.parametrize("bounded", [False, True])
def test_a_class_with_the_former_private_methods_still_answers(bounded):
    exact = LaplaceMechanism(2.0)

    class Former(PrivacyProfile):
        theorem, neighbours, relation = "a test", "any", "either"

        def _log_delta(self, eps):
            return exact._log_delta(eps)

    if bounded:
        Former._pure_epsilon = lambda self: 0.5
    former = Former()
    assert former.epsilon(1e-3) == pytest.approx(exact.epsilon(1e-3), rel=1e-9)
    assert former.rdp(2.0) >= exact.rdp(2.0, bound="lower")
    assert former.tradeoff().beta(0.1) <= exact.tradeoff(bound="upper").beta(0.1)
    several = former.self_compose(5)
    assert several.epsilon(1e-3, bound="lower") <= exact.self_compose(5).epsilon(1e-3) <= several.epsilon(1e-3) * (1 + 1e-4)


def test_records_have_at_most_eight_fields():
    records = [kind for _, kind in inspect.getmembers(extend, inspect.isclass)]
    widths = {kind.__name__: len(getattr(kind, "_fields", None) or dataclasses.fields(kind)) for kind in records
              if hasattr(kind, "_fields") or dataclasses.is_dataclass(kind)}
    assert len(widths) >= 8
    assert max(widths.values()) <= 8, widths
