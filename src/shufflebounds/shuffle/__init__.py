"""Shuffle protocols and amplification bounds; each class is a PrivacyProfile."""

# This package imports only modules of its own row and of lower rows in the diagram of docs/architecture.md. Start with `noise` (an
# example); `shuffled` is for any local randomizer.

from typing import TYPE_CHECKING

from shufflebounds._base.lazy import lazily

if TYPE_CHECKING:
    # The repetition of each name after "as" tells type checkers that the name is public.
    from shufflebounds.comparison import compare_at as compare_at
    from shufflebounds.shuffle import samples as samples
    from shufflebounds.shuffle.bits import ShuffledBits as ShuffledBits
    from shufflebounds.shuffle.clear_reports import ClearReports as ClearReports
    from shufflebounds.shuffle.clones import Clones as Clones
    from shufflebounds.shuffle.clones import StrongerClones as StrongerClones
    from shufflebounds.shuffle.deployments import binomial_noise_epsilons as binomial_noise_epsilons
    from shufflebounds.shuffle.deployments import binomial_noise_log_deltas as binomial_noise_log_deltas
    from shufflebounds.shuffle.deployments import clones_epsilons as clones_epsilons
    from shufflebounds.shuffle.deployments import clones_log_deltas as clones_log_deltas
    from shufflebounds.shuffle.flipped_reports import FlippedReports as FlippedReports
    from shufflebounds.shuffle.geometric_dummies import GeometricDummies as GeometricDummies
    from shufflebounds.shuffle.histogram import ShuffledHistogram as ShuffledHistogram
    from shufflebounds.shuffle.noise import BinomialNoise as BinomialNoise
    from shufflebounds.shuffle.personalized import PersonalizedClones as PersonalizedClones
    from shufflebounds.shuffle.personalized_bits import PersonalizedBits as PersonalizedBits
    from shufflebounds.shuffle.real_sum import RealSum as RealSum
    from shufflebounds.shuffle.shuffled import Shuffled as Shuffled
    from shufflebounds.shuffle.shuffled_deployments import shuffled_epsilons as shuffled_epsilons
    from shufflebounds.shuffle.shuffled_deployments import shuffled_log_deltas as shuffled_log_deltas
    from shufflebounds.shuffle.zero_sum import ZeroSum as ZeroSum

_HOMES = {
    "BinomialNoise": "shufflebounds.shuffle.noise",
    "ClearReports": "shufflebounds.shuffle.clear_reports",
    "FlippedReports": "shufflebounds.shuffle.flipped_reports",
    "GeometricDummies": "shufflebounds.shuffle.geometric_dummies",
    "PersonalizedBits": "shufflebounds.shuffle.personalized_bits",
    "PersonalizedClones": "shufflebounds.shuffle.personalized",
    "RealSum": "shufflebounds.shuffle.real_sum",
    "Shuffled": "shufflebounds.shuffle.shuffled",
    "ShuffledBits": "shufflebounds.shuffle.bits",
    "ShuffledHistogram": "shufflebounds.shuffle.histogram",
    "ZeroSum": "shufflebounds.shuffle.zero_sum",
    "compare_at": "shufflebounds.comparison",
    "samples": "",
    **dict.fromkeys(("Clones", "StrongerClones"), "shufflebounds.shuffle.clones"),
    **dict.fromkeys(("clones_epsilons", "clones_log_deltas"), "shufflebounds.shuffle.deployments"),
    **dict.fromkeys(("binomial_noise_epsilons", "binomial_noise_log_deltas"), "shufflebounds.shuffle.deployments"),
    **dict.fromkeys(("shuffled_epsilons", "shuffled_log_deltas"), "shufflebounds.shuffle.shuffled_deployments"),
}
__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazily(__name__, _HOMES)
