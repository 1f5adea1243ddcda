r"""The pair of a replaced record of sampled Gaussian noise whose old and new contributions are opposite.

A record of a sum with noise of standard deviation sigma contributes at most the sensitivity Delta in either direction. If it is
sampled with probability q, its replacement may move the output from :math:`(1-q) N(0, \sigma^2) + q N(\Delta, \sigma^2)` to
:math:`(1-q) N(0, \sigma^2) + q N(-\Delta, \sigma^2)`. The output is rounded to cells, which is post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shufflebounds._base.caches import cached_property
from shufflebounds._base.limits import COMPUTED_ERROR, MANY
from shufflebounds._engines.allocation.ratios import gaussian_ratios
from shufflebounds._losses.atoms import LossAtoms
from shufflebounds.mechanisms import GaussianMechanism
from shufflebounds.profile import Composition, PrivacyProfile
from shufflebounds.profile.pair import OutcomePair
from shufflebounds.sampling.poisson import Subsampled

__all__ = ["OppositeContributions", "opposite"]

_END = 36.0
"""Outputs beyond this number of standard deviations, with a probability of about e^-650, form one cell on either side."""

_CELLS = 8 * MANY
"""Number of cells. Raised: longer run time. Lowered: a smaller lower bound; their width is about 0.01 standard deviations."""


@dataclass(frozen=True)
class OppositeContributions(OutcomePair):
    """The pair of the module docstring, in cells. The reversed pair is its mirror image."""

    mechanism: GaussianMechanism
    rate: float

    theorem: ClassVar[str] = "exact for outputs rounded to cells: a lower bound for the replacement of a record"

    def reverse(self) -> OppositeContributions:
        return self

    @cached_property
    def _atoms(self) -> LossAtoms:
        mu = self.mechanism.mu
        half = np.linspace(0.0, _END + mu, _CELLS // 2 + 1)
        z = np.concatenate([[-1e3], -half[:0:-1], half, [1e3]])
        # The loss of one message of the mechanism, with and without the record, is an increasing function of z = y/sigma.
        none, with_record, error = gaussian_ratios(mu).cells(mu * z - mu * mu / 2)
        first, second = ((1 - self.rate) * none + self.rate * side for side in (with_record, with_record[::-1]))
        held = np.minimum(first, second) > 0
        # The last term covers the rounding of the edges, 1e-15, relative to the width of a cell.
        slack = float(np.maximum(error, error[::-1])[held].max()) + 8 * COMPUTED_ERROR
        return LossAtoms.of(np.log(first[held]), np.log(second[held]), error=slack)


def opposite(profile: PrivacyProfile) -> PrivacyProfile | None:
    """Return the profile for opposite contributions in every release of sampled Gaussian noise; None for other profiles."""
    if isinstance(profile, Composition):
        factors = [(opposite(factor), times) for factor, times in profile.factors]
        known = tuple((factor, times) for factor, times in factors if factor is not None)
        return Composition(known, profile.rtol) if len(known) == len(factors) else None
    if isinstance(profile, Subsampled) and isinstance(profile.mechanism, GaussianMechanism):
        return OppositeContributions(profile.mechanism, profile.rate)
    return None
