r"""The pair of a replaced record of sampled noise whose old and new contributions are opposite.

A record of a sum with noise contributes at most the sensitivity Delta in either direction. If it is sampled with probability q, its
replacement may move the output from :math:`(1-q) N_0 + q N_\Delta` to :math:`(1-q) N_0 + q N_{-\Delta}`, where :math:`N_a` is the
distribution of the noise plus a. Real outputs are rounded to cells, which is post-processing.

This pair dominates that of any old and new contributions a and b if the noise is symmetric and log-concave, as normal, Laplace,
discrete normal and geometric noise are: for a > 0 the ratio of the densities of :math:`N_a` and :math:`N_0` increases with the
output. Take a set S of outputs and the half-line {y > c} of the same probability without the record; for whole numbers, the
output c belongs to the half-line with a probability that makes both equal. By the lemma of Neyman and Pearson, the contribution
a gives S at most the probability that Delta gives the half-line, and b gives S at least the probability that -Delta gives it.
For normal noise the same holds for vectors, with half-spaces. It fails for noise with two modes.

References: the pair of a substituted record of sampled normal noise is that of Koskela, A., Jälkö, J., Honkela, A. (Computing tight
differential privacy guarantees using FFT, AISTATS 2020, arXiv 1906.03049). Dominating pairs under substitution: Lebeda, C. J.,
Regehr, M., Kamath, G., Steinke, T. (Avoiding pitfalls for privacy accounting of subsampled mechanisms under composition,
arXiv 2405.20769).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from shufflebounds._base.caches import cached_property
from shufflebounds._base.convex_order import log_shares, log_to_nodes
from shufflebounds._base.limits import COMPUTED_ERROR, LOG_TINY, MANY, MOST_ENUMERATED, TABLE_SIZE, UNDERFLOW_EXPONENT
from shufflebounds._base.types import ULP, FloatArray
from shufflebounds._engines.allocation.ratios import gaussian_ratios
from shufflebounds._losses.atoms import LossAtoms
from shufflebounds.mechanisms import DiscreteGaussianMechanism, GaussianMechanism, GeometricMechanism, LaplaceMechanism
from shufflebounds.profile import Composition, PrivacyProfile
from shufflebounds.profile.profile import OutcomePair
from shufflebounds.sampling._replaced import ReplacedValues, mixed_with_error
from shufflebounds.sampling.poisson import Subsampled

__all__ = ["OppositeContributions", "opposite"]

_END = 36.0
"""Outputs beyond this number of standard deviations, with a probability of about e^-650, form one cell on either side."""

_CELLS = 8 * MANY
"""Number of cells. Raised: longer run time. Lowered: a smaller lower bound; their width is about 0.01 standard deviations."""

Noise = GaussianMechanism | LaplaceMechanism | GeometricMechanism | DiscreteGaussianMechanism


class _Outputs(NamedTuple):
    """Outputs of noise in increasing order, which are symmetric about 0: whole numbers, or cells of real numbers.

    `log_none` and `log_more` are the log masses of noise alone and of noise plus Delta; those of noise minus Delta are `log_more`
    reversed. `ratio` is the logarithm of their ratio for each whole number, or at each edge of a cell. `error` and `ratio_error`
    bound the errors of the log masses, which are accurate above `floor`, and of the ratios. `log_lost` is the log mass beyond the
    outputs.
    """

    log_none: FloatArray
    log_more: FloatArray
    ratio: FloatArray
    error: FloatArray | float
    ratio_error: FloatArray | float
    floor: float = -math.inf
    log_lost: float = -math.inf


def _normal_cells(mu: float) -> _Outputs:
    half = np.linspace(0.0, _END + mu, _CELLS // 2 + 1)
    # The log of the ratio is an increasing function of z = y/sigma.
    z = np.concatenate([[-1e3], -half[:0:-1], half, [1e3]])
    ratio = mu * z - mu * mu / 2
    none, more, error = gaussian_ratios(mu).cells(ratio)
    # The second term covers the rounding of the edges, by 1e-15, relative to the width of a cell.
    error = np.maximum(error, error[::-1]) + 8 * COMPUTED_ERROR
    ratio[[0, -1]] = -np.inf, np.inf
    return _Outputs(np.log(none), np.log(more), ratio, error, 4 * ULP * (mu * np.abs(z) + mu * mu), LOG_TINY)


def _laplace_cells(budget: float) -> _Outputs:
    half = np.linspace(0.0, budget, _CELLS // 2 + 1)
    y = np.append(-half[:0:-1], half)
    width = np.log(-np.expm1(-np.diff(y)))
    none = np.concatenate([[-budget], width - np.minimum(np.abs(y[:-1]), np.abs(y[1:])), [-budget]])
    more = np.concatenate([[-2 * budget], width + (y[1:] - budget), [0.0]])
    ratio = np.concatenate([[-budget], np.clip(2 * y - budget, -budget, budget), [budget]])
    return _Outputs(none - math.log(2), more - math.log(2), ratio, ULP * (16 + 8 * budget), 4 * ULP * budget)


def _whole_numbers(noise: GeometricMechanism | DiscreteGaussianMechanism) -> _Outputs | None:
    """Return the outputs of whole-number noise. The result is None if the noise has a bound, or too many outputs."""
    delta = noise.sensitivity
    if isinstance(noise, GeometricMechanism):
        if noise.bound is not None or 2 * delta + 1 > MOST_ENUMERATED:
            return None
        # The ratios are constant below -Delta and above Delta.
        k, rate = np.arange(-delta, delta + 1.0), noise.eps / delta
        log_rest = np.full(k.size, math.log(-math.expm1(-rate)))
        log_rest[[0, -1]] = 0.0
        none, more = log_rest - rate * np.abs(k), log_rest - rate * np.abs(k - delta)
        total = math.log1p(math.exp(-rate))
        ratio = rate * np.clip(2 * k - delta, -delta, delta)
        return _Outputs(none - total, more - total, ratio, ULP * (16 + 8 * noise.eps), 4 * ULP * np.abs(ratio))
    sigma = noise.sigma
    last = math.ceil(sigma * math.sqrt(2 * UNDERFLOW_EXPONENT))
    if 2 * (last + delta) + 1 > TABLE_SIZE:
        return None
    k, total = np.arange(-last - delta, last + delta + 1.0), noise.closed_forms().log_total
    none, more = -0.5 * (k / sigma) ** 2 - total, -0.5 * ((k - delta) / sigma) ** 2 - total
    # Noise plus or minus Delta is beyond the outputs with at most the probability that noise is beyond `last` on either side.
    lost = noise._log_tail(float(last))
    ratio, error = delta * (2 * k - delta) / (2 * sigma**2), ULP * (16 + 6 * float(np.abs(none).max()))
    return _Outputs(none, more, ratio, error, 4 * ULP * np.abs(ratio), -math.inf, lost)


def _outputs(noise: Noise) -> _Outputs | None:
    if isinstance(noise, GaussianMechanism):
        return _normal_cells(noise.mu)
    return _laplace_cells(noise._budget()[0]) if isinstance(noise, LaplaceMechanism) else _whole_numbers(noise)


@dataclass(frozen=True)
class OppositeContributions(OutcomePair):
    """The pair of the module docstring. The reversed pair is its mirror image.

    If `spread` is true, the mass of each cell is split between its two ends; this gives a dominating pair, for upper bounds. For
    noise on whole numbers the outcomes are exact.
    """

    mechanism: Noise
    rate: float
    spread: bool = False

    theorem: ClassVar[str] = "exact for outputs in cells: a bound for the replacement of a record"

    def reverse(self) -> OppositeContributions:
        return self

    @cached_property
    def _atoms(self) -> LossAtoms:
        outputs, rate = _outputs(self.mechanism), self.rate
        assert outputs is not None
        with np.errstate(divide="ignore"):
            parts = np.log1p(-rate) + outputs.log_none, np.log(rate) + outputs.log_more
        first, second = np.logaddexp(*parts), np.logaddexp(parts[0], parts[1][::-1])
        risen, error = mixed_with_error(outputs.ratio, outputs.ratio_error, rate)
        loss, loss_error = risen - risen[::-1], error + error[::-1]
        if loss.size == first.size:
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
        # The loss of a cell lies between those of its ends.
        blur = np.minimum(2 * slack + ULP * (8 + np.abs(second[held])), high - low) + apart
        if not self.spread:
            order = np.argsort(level, kind="stable")
            return LossAtoms(first[held][order], level[order], -math.inf, -math.inf, -math.inf, slack, blur[order])
        # Cells without a stored mass count as outputs that identify the dataset. By symmetry both distributions give them the
        # same mass.
        lost = min(0.0, float(np.logaddexp.reduce(first[~held], initial=-np.inf)) + slack)
        nodes = np.append(low, high[-1])
        log_q = log_to_nodes(second[held], log_shares(np.minimum(level + blur, high), low, high))
        seen = log_q > -np.inf
        return LossAtoms((log_q + nodes)[seen], nodes[seen], lost, lost, -np.inf, slack + float(blur.max()), float(apart.max()))


def opposite(profile: PrivacyProfile, spread: bool = False) -> PrivacyProfile | None:
    """Return the profile of the worst replacement of a record of a sampled mechanism or of a composition. The result is None if
    it is not known. Use its upper bound if `spread`, otherwise its lower bound.
    """
    if isinstance(profile, Composition):
        factors = [(opposite(factor, spread), times) for factor, times in profile.factors]
        opposites = tuple((factor, times) for factor, times in factors if factor is not None)
        return Composition(opposites, profile.rtol) if len(opposites) == len(factors) else None
    if not isinstance(profile, Subsampled):
        return None
    mechanism, rate = profile.mechanism, profile.rate
    if isinstance(mechanism, GaussianMechanism | LaplaceMechanism):
        return OppositeContributions(mechanism, rate, spread)
    if isinstance(mechanism, GeometricMechanism | DiscreteGaussianMechanism):
        return OppositeContributions(mechanism, rate) if _whole_numbers(mechanism) else None
    return ReplacedValues.of(mechanism, rate)
