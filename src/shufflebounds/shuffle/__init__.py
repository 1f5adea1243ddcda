"""Shuffle protocols and amplification bounds; each class is a PrivacyProfile."""

from typing import TYPE_CHECKING

from shufflebounds._lazy import lazily

if TYPE_CHECKING:
    from shufflebounds.comparison import compare_at
    from shufflebounds.shuffle import samples
    from shufflebounds.shuffle.bits import ShuffledBits
    from shufflebounds.shuffle.clear_reports import ClearReports
    from shufflebounds.shuffle.clones import Clones, StrongerClones
    from shufflebounds.shuffle.deployments import (
        clones_epsilon,
        clones_log_delta,
        noise_epsilon,
        noise_log_delta,
    )
    from shufflebounds.shuffle.flipped_reports import FlippedReports
    from shufflebounds.shuffle.histogram import ShuffledHistogram
    from shufflebounds.shuffle.noise import BinomialNoise
    from shufflebounds.shuffle.personalized import PersonalizedClones
    from shufflebounds.shuffle.personalized_bits import PersonalizedBits
    from shufflebounds.shuffle.shuffled import Shuffled
    from shufflebounds.shuffle.shuffled_deployments import shuffled_epsilon, shuffled_log_delta
    from shufflebounds.shuffle.sums import RealSum
    from shufflebounds.shuffle.variation_ratio import VariationRatio
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
    "compare_at",
    "noise_epsilon",
    "noise_log_delta",
    "samples",
    "shuffled_epsilon",
    "shuffled_log_delta",
]

_HOMES = {
    "BinomialNoise": "shufflebounds.shuffle.noise",
    "ClearReports": "shufflebounds.shuffle.clear_reports",
    "Clones": "shufflebounds.shuffle.clones",
    "FlippedReports": "shufflebounds.shuffle.flipped_reports",
    "PersonalizedBits": "shufflebounds.shuffle.personalized_bits",
    "PersonalizedClones": "shufflebounds.shuffle.personalized",
    "RealSum": "shufflebounds.shuffle.sums",
    "Shuffled": "shufflebounds.shuffle.shuffled",
    "ShuffledBits": "shufflebounds.shuffle.bits",
    "ShuffledHistogram": "shufflebounds.shuffle.histogram",
    "StrongerClones": "shufflebounds.shuffle.clones",
    "VariationRatio": "shufflebounds.shuffle.variation_ratio",
    "ZeroSum": "shufflebounds.shuffle.zero_sum",
    "clones_epsilon": "shufflebounds.shuffle.deployments",
    "clones_log_delta": "shufflebounds.shuffle.deployments",
    "compare_at": "shufflebounds.comparison",
    "noise_epsilon": "shufflebounds.shuffle.deployments",
    "noise_log_delta": "shufflebounds.shuffle.deployments",
    "samples": "",
    "shuffled_epsilon": "shufflebounds.shuffle.shuffled_deployments",
    "shuffled_log_delta": "shufflebounds.shuffle.shuffled_deployments",
}
__getattr__, __dir__ = lazily(__name__, _HOMES)
