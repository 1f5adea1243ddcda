r"""The pair for sampled noise if a record is replaced, and its old and new contributions are opposite.

A record of a sum with noise contributes at most the sensitivity Delta in either direction. If it is sampled with probability q, its
replacement may move the output from :math:`(1-q) N_0 + q N_\Delta` to :math:`(1-q) N_0 + q N_{-\Delta}`, where :math:`N_a` is the
distribution of the noise plus a. Real outputs are rounded to cells, which is post-processing.

Let the noise be symmetric and log-concave, as normal, Laplace, discrete normal and geometric noise are. Then this pair dominates
that of any old and new contributions a and b. Proof: for a > 0 the ratio of the densities of :math:`N_a` and :math:`N_0` increases
with the output. Let S be a set of outputs, and {y > c} the half-line of the same probability under :math:`N_0`; for whole numbers
the output c belongs to the half-line with a probability that makes it as probable as S. By the lemma of Neyman and Pearson,
:math:`N_a(S) \le N_\Delta(y > c)` and :math:`N_b(S) \ge N_{-\Delta}(y > c)`. For normal noise the same holds for vectors, with
half-spaces. For noise with two modes the statement fails.

For sampled normal noise the pair is that of Koskela et al. (arXiv 1906.03049); Lebeda et al. (arXiv 2405.20769) study dominating
pairs under substitution. :class:`ReplaceOne` has the full references.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shufflebounds._base.caches import cached_property
from shufflebounds._base.convex_order import log_shares, log_to_nodes
from shufflebounds._base.types import ULP
from shufflebounds._losses.atoms import LossAtoms
from shufflebounds.mechanisms._base import AdditiveNoise
from shufflebounds.profile import Composition, PrivacyProfile
from shufflebounds.profile.chain import GroupInfo
from shufflebounds.profile.profile import OutcomePair
from shufflebounds.sampling._replaced import ReplacedValues, mixed_with_error
from shufflebounds.sampling.poisson import Subsampled

__all__ = ["OppositeContributions", "opposite", "without_sampling"]


@dataclass(frozen=True)
class OppositeContributions(OutcomePair):
    """The pair of the module docstring. The reversed pair is its mirror image.

    If `spread` is true, the probability of each cell is divided between the losses at its two ends; this gives a dominating pair,
    for upper bounds. For noise on whole numbers the outcomes are exact.
    """

    mechanism: PrivacyProfile
    rate: float
    spread: bool = False

    theorem: ClassVar[str] = "exact for outputs in cells: a bound for the replacement of a record"

    def reverse(self) -> OppositeContributions:
        return self

    @cached_property
    def _atoms(self) -> LossAtoms:
        outputs, rate = self.mechanism._noise_outputs, self.rate
        assert outputs is not None
        with np.errstate(divide="ignore"):
            parts = np.log1p(-rate) + outputs.log_none, np.log(rate) + outputs.log_more
        first, second = np.logaddexp(*parts), np.logaddexp(parts[0], parts[1][::-1])
        risen, error = mixed_with_error(outputs.ratio, outputs.ratio_error, rate)
        loss, loss_error = risen - risen[::-1], error + error[::-1]
        if not outputs.in_cells:
            slack = float(outputs.error) + 8 * ULP * float(np.abs(first).max())
            return LossAtoms(first, loss, -math.inf, -math.inf, outputs.log_lost, slack, loss_error)
        held = np.minimum(first, second) > (outputs.floor if self.spread else -math.inf)
        held &= np.isfinite(loss[:-1]) & np.isfinite(loss[1:]) if self.spread else True
        if not held.any():
            # The two distributions are too far apart. The trivial bounds remain: every output may identify the dataset, or none.
            rest = 0.0 if self.spread else -math.inf
            return LossAtoms(np.empty(0), np.empty(0), rest, rest, -math.inf, 0.0, 0.0)
        slack = float(np.max(np.broadcast_to(outputs.error, held.shape)[held]) + 8 * ULP * (2 + np.abs(first[held]).max()))
        low, high, apart = loss[:-1][held], loss[1:][held], np.maximum(loss_error[:-1], loss_error[1:])[held]
        level = np.clip(first[held] - second[held], low, high)
        # The privacy loss of a cell lies between those at its two ends.
        blur = np.minimum(2 * slack + ULP * (8 + np.abs(second[held])), high - low) + apart
        if not self.spread:
            order = np.argsort(level, kind="stable")
            return LossAtoms(first[held][order], level[order], -math.inf, -math.inf, -math.inf, slack, blur[order])
        # Cells that are not stored count as outputs that identify the dataset. By symmetry both distributions give these cells the
        # same probability.
        lost = min(0.0, float(np.logaddexp.reduce(first[~held], initial=-np.inf)) + slack)
        nodes = np.append(low, high[-1])
        log_q = log_to_nodes(second[held], log_shares(np.minimum(level + blur, high), low, high))
        seen = log_q > -np.inf
        return LossAtoms((log_q + nodes)[seen], nodes[seen], lost, lost, -np.inf, slack + float(blur.max()), float(apart.max()))


def opposite(profile: PrivacyProfile, spread: bool = False) -> PrivacyProfile | None:
    """Return the profile of the worst replacement of a record of a sampled mechanism, of noise or of a composition, or None if this
    replacement is not known. If `spread`, only the upper bound of the profile is valid, otherwise only the lower bound.
    """
    if isinstance(profile, Composition):
        factors = [(opposite(factor, spread), times) for factor, times in profile.factors]
        opposites = tuple((factor, times) for factor, times in factors if factor is not None)
        return Composition(opposites, profile.rtol) if len(opposites) == len(factors) else None
    if isinstance(profile, Subsampled) and profile.rate < 1:
        return _of_sampled(profile.mechanism, profile.rate, spread)
    mechanism = profile.mechanism if isinstance(profile, Subsampled) else profile
    if isinstance(mechanism, AdditiveNoise):
        # Without sampling, the replacement moves the sum by twice the sensitivity.
        moved: GroupInfo = mechanism.describe_group(2)
        known: PrivacyProfile | None = moved.above if spread else moved.below
        return known
    return _of_sampled(mechanism, 1.0, spread) if mechanism is not profile else None


def without_sampling(profile: PrivacyProfile) -> bool:
    """Return whether a profile that `opposite` returned is of noise without sampling, whose outputs are not in cells."""
    parts = profile.factors if isinstance(profile, Composition) else ((profile, 1),)
    return all(isinstance(part, AdditiveNoise) for part, _ in parts)


def _of_sampled(mechanism: PrivacyProfile, rate: float, spread: bool) -> PrivacyProfile | None:
    outputs = mechanism._noise_outputs
    if outputs is None:
        return ReplacedValues.of(mechanism, rate)
    return OppositeContributions(mechanism, rate, spread and outputs.in_cells)
