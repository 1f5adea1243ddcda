"""Certified values of delta: intervals that contain the exact value, for every class whose delta is a finite sum or a closed form.

This package shares no numerics with the bounds of :mod:`shufflebounds.profile`. A class is supported if an implementation for it is
registered with :func:`hockey_stick_of`, :func:`outcomes_of` or :func:`outputs_of`.
"""

from shufflebounds.certify import _mechanisms, _profiles, _sampling, _shuffle  # noqa: F401  (they register the classes)
from shufflebounds.certify._dispatch import certify, hockey_stick_of, outcomes_of, outputs_of

__all__ = ["certify", "hockey_stick_of", "outcomes_of", "outputs_of"]
