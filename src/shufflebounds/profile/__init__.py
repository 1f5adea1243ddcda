"""What every mechanism answers: delta(eps), eps(delta) and their logarithms, each with a named side of the truth."""

from shufflebounds.profile._base import Bound, Composition, FloatArray, PrivacyProfile
from shufflebounds.profile._pair import DominatingPair
from shufflebounds.profile._pictures import compare

__all__ = ["Bound", "Composition", "DominatingPair", "FloatArray", "PrivacyProfile", "compare"]
