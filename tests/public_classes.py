"""The public classes of profiles, collected from the public modules, so that a test over all classes includes new ones."""

import inspect
import types

import shufflebounds
from shufflebounds.profile import PrivacyProfile


def profile_classes():
    """Return {"module.Name": class} for every concrete PrivacyProfile that a public module names in ``__all__``.

    The module is the last part of its name: "shuffle.Clones", "profile.Composition".
    """
    found = {}
    waiting = [shufflebounds]
    while waiting:
        module = waiting.pop()
        for name in module.__all__:
            value = getattr(module, name)
            if isinstance(value, types.ModuleType):
                if hasattr(value, "__all__"):
                    waiting.append(value)
            elif inspect.isclass(value) and issubclass(value, PrivacyProfile) and not inspect.isabstract(value):
                found[f"{module.__name__.rpartition('.')[2]}.{name}"] = value
    return found
