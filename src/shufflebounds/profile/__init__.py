"""What every mechanism answers: delta(eps), eps(delta) and their logarithms, each with a named side of the truth."""

from shufflebounds._types import Bound, FloatArray
from shufflebounds.profile._pictures import compare
from shufflebounds.profile.composed import Composition
from shufflebounds.profile.pair import DominatingPair
from shufflebounds.profile.profile import PrivacyProfile

__all__ = ["Bound", "Composition", "DominatingPair", "FloatArray", "PrivacyProfile", "compare"]
