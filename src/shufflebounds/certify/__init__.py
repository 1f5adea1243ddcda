"""Certified values of delta: the exact value enclosed by interval arithmetic, for every class that can be summed directly.

This package shares no numerics with the bounds of :mod:`shufflebounds.profile`. A class joins by registering a function of it
with :func:`hockey_stick_of`, :func:`outcomes_of` or :func:`outputs_of`.
"""

from shufflebounds.certify import _mechanisms, _profiles, _sampling, _shuffle  # noqa: F401  (they register the classes)
from shufflebounds.certify._dispatch import certify, hockey_stick_of, outcomes_of, outputs_of

__all__ = ["certify", "hockey_stick_of", "outcomes_of", "outputs_of"]
