"""Shared settings: hypothesis without deadlines (a first call may import), the same examples in every run.

The everyday run, which leaves out what is slow, draws 25 examples a property; a run that names its tests by -m draws 200.
"""

from hypothesis import settings

settings.register_profile("everyday", deadline=None, max_examples=25, derandomize=True)
settings.register_profile("whole", deadline=None, max_examples=200, derandomize=True)


def pytest_configure(config):
    settings.load_profile("everyday" if config.option.markexpr == "not slow" else "whole")
