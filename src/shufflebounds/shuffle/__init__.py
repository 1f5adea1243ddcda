"""The protocols: each names its pair of output laws, and answers as a PrivacyProfile."""

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
    "samples",
]
