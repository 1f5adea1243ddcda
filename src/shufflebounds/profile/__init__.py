"""What every mechanism answers: delta(eps), eps(delta) and their logarithms, each with a named side of the truth."""

from shufflebounds.profile._pictures import compare
from shufflebounds.profile.pair import DominatingPair
from shufflebounds.profile.profile import Bound, Composition, FloatArray, PrivacyProfile

__all__ = ["Bound", "Composition", "DominatingPair", "FloatArray", "PrivacyProfile", "compare"]
