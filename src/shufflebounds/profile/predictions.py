"""Predicted number of values of delta that an answer takes, from which :meth:`PrivacyProfile.cost` predicts its run time."""

from __future__ import annotations

import math

from shufflebounds._costs import VALUES
from shufflebounds._progress import Question
from shufflebounds.composing import DominatingPairInfo
from shufflebounds.composing.sampled_profile import DEPTH, FULL_DETAIL, STAGES
from shufflebounds.profile.curves import SKETCH

__all__ = ["curve_values", "predicted_values", "sketch_step", "spread_values"]


def spread_values(step: float, depth: float = DEPTH) -> int:
    """Return the number of samples down to delta = e^(-depth^2/2), where neighbouring samples differ by `step` in their quantile.

    A sample's quantile is sqrt(-2 log delta). Beyond the quantile FULL_DETAIL the distance of samples grows with the square of the
    quantile.
    """
    near = min(depth, FULL_DETAIL)
    return math.ceil((near + FULL_DETAIL**2 * (1 / near - 1 / max(depth, near))) / step)


def curve_values(sketch: float) -> int:
    """Return the number of samples for one level of a curve: those of the first stage, and those of the refinement."""
    return math.ceil(STAGES[0] / sketch) + VALUES["refined curve"]


def sketch_step(known: DominatingPairInfo) -> float:
    """Return the distance, in sqrt(-2 log delta), of the first samples of a curve that is refined at single levels."""
    # A lower bound that is not convex is only known to be monotone between samples, so its gap is proportional to their distance.
    return max(known.spacing, SKETCH) if known.convex else 0.5 * known.spacing


def predicted_values(question: Question, known: DominatingPairInfo, most: int) -> int:
    """Return the predicted number of values of delta; at most `most` refine mu or a Renyi divergence of an expensive profile."""
    both = 1 if known.reverse is None else 2
    if question == "delta":
        return 1
    if question == "epsilon":
        return VALUES["epsilon"]
    if question == "loss_tail":
        return VALUES["loss tail, expensive" if known.expensive else "loss tail"]
    if known.single and known.listed:
        # The outcomes are enumerated, so no value of delta is needed.
        return 0
    if question == "tradeoff":
        if not known.expensive:
            return both * spread_values(known.spacing)
        return both * curve_values(sketch_step(known))
    if known.unbounded_loss:
        return 0
    if known.spacing < 0.1:
        return both * spread_values(max(known.spacing, 0.05)) if question == "gdp_mu" else VALUES["renyi divergence"]
    # For curves that are not convex, single samples give the lower bound of mu, for which fewer of them suffice.
    return most if question == "gdp_mu" and known.convex else most // 2
