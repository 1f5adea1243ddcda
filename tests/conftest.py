"""Shared settings: hypothesis without deadlines (a first call may import), the same examples in every run."""

from hypothesis import settings

settings.register_profile("suite", deadline=None, max_examples=200, derandomize=True)
settings.load_profile("suite")
