"""The protocols: each names its pair of output laws, and answers as a PrivacyProfile."""

from typing import TYPE_CHECKING, Any

from shufflebounds.shuffle import samples
from shufflebounds.shuffle.bits import ShuffledBits
from shufflebounds.shuffle.clear_reports import ClearReports
from shufflebounds.shuffle.clones import Clones, StrongerClones
from shufflebounds.shuffle.deployments import clones_epsilon, clones_log_delta
from shufflebounds.shuffle.flipped_reports import FlippedReports
from shufflebounds.shuffle.histogram import ShuffledHistogram
from shufflebounds.shuffle.noise import BinomialNoise
from shufflebounds.shuffle.personalized import PersonalizedClones
from shufflebounds.shuffle.personalized_bits import PersonalizedBits
from shufflebounds.shuffle.shuffled import Shuffled, VariationRatio
from shufflebounds.shuffle.sums import RealSum
from shufflebounds.shuffle.zero_sum import ZeroSum

if TYPE_CHECKING:
    from shufflebounds.comparison import compare_at

__all__ = [
    "BinomialNoise",
    "ClearReports",
    "Clones",
    "FlippedReports",
    "PersonalizedBits",
    "PersonalizedClones",
    "RealSum",
    "Shuffled",
    "ShuffledBits",
    "ShuffledHistogram",
    "StrongerClones",
    "VariationRatio",
    "ZeroSum",
    "clones_epsilon",
    "clones_log_delta",
    "compare_at",
    "samples",
]


def __getattr__(name: str) -> Any:
    # it runs the mechanisms, which themselves are shuffled by this package
    if name == "compare_at":
        from shufflebounds.comparison import compare_at

        return compare_at
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
