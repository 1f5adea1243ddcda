"""Every public class has an example, so that the tests over all classes include it."""

from tests.examples import EXAMPLES, profile_classes


def test_every_public_class_has_an_example():
    # DominatingPair is abstract; its examples are made by its constructor from_pmfs.
    classes = profile_classes() | {"profile.DominatingPair": None}
    missing = classes.keys() - EXAMPLES.keys()
    assert not missing, f"add examples of {sorted(missing)} to tests/examples.py and record them (tests/regression/every_answer.py)"
    assert not EXAMPLES.keys() - classes.keys(), f"{sorted(EXAMPLES.keys() - classes.keys())} are no public classes"


def test_the_examples_are_of_their_class():
    for name, example in EXAMPLES.items():
        kind = profile_classes().get(name)
        profiles = example.profiles()
        assert len(set(map(repr, profiles))) == len(profiles)
        # The constructors of personalized budgets return a guarantee of another, private class.
        assert kind is None or isinstance(profiles[0], kind), name


def test_every_class_that_calibrates_has_an_example_of_it():
    for name, kind in profile_classes().items():
        assert any(hasattr(kind, way) for way in ("calibrate", "from_dp", "from_eps")) == bool(EXAMPLES[name].calibrated), name
