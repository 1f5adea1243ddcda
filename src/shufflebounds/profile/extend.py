"""Names for users who define their own protocols: bounds, validation, calibration, base classes, composition.

Import these names from this module, because the modules that define them may change. docs/extending.md has a complete example.
"""

from __future__ import annotations

from shufflebounds._base.docs import with_passages as with_passages
from shufflebounds._base.evidence import ROUNDING, Evidence, Status
from shufflebounds._base.types import FloatArray, Interval, IntervalArray
from shufflebounds._base.validate import InfeasibleError, choice, integer, integer_field, real, real_array, real_field, target
from shufflebounds._losses.atoms import LossAtoms
from shufflebounds._losses.closed_forms import ClosedForms
from shufflebounds._losses.release import Attained, DominatingPairInfo, Losses, Releases, Reverse, Sampling
from shufflebounds.profile.calibration import least_count, least_parameter
from shufflebounds.profile.integer_noise import IntegerNoise
from shufflebounds.profile.profile import DominatingPair, PrivacyProfile

__all__ = [
    "ROUNDING", "Attained", "ClosedForms", "DominatingPair", "DominatingPairInfo", "Evidence", "FloatArray",
    "InfeasibleError", "IntegerNoise", "Interval", "IntervalArray", "LossAtoms", "Losses", "PrivacyProfile", "Releases",
    "Reverse", "Sampling", "Status", "choice", "integer", "integer_field", "least_count", "least_parameter", "real",
    "real_array", "real_field", "target", "with_passages",
]
