"""Counts of keys that are not known beforehand: a noisy count is released only if it is at least a threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shufflebounds._base import validate as _validate
from shufflebounds._base.caches import cached_property
from shufflebounds._base.docs import with_passages
from shufflebounds._base.types import ULP
from shufflebounds._losses.atoms import LossAtoms
from shufflebounds._losses.closed_forms import ClosedForms
from shufflebounds._losses.release import DominatingPairInfo
from shufflebounds.mechanisms._base import AdditiveNoise
from shufflebounds.profile.profile import DominatingPair, OutcomePair, PrivacyProfile

__all__ = ["ThresholdedCount"]


@dataclass(frozen=True)
class _NoisePair(DominatingPair):
    """The pair of the noise alone; (P, Q) and (Q, P) have the same divergences."""

    noise: AdditiveNoise

    def reverse(self) -> _NoisePair:
        return self

    def describe(self) -> DominatingPairInfo:
        return self.noise.describe()

    def closed_forms(self) -> ClosedForms:
        return self.noise.closed_forms()


@dataclass(frozen=True)
class _NewKey(OutcomePair):
    """The pair for a key that is only in one dataset, the first or the second; it is released with probability e^log_released."""

    log_released: float
    first: bool

    def reverse(self) -> _NewKey:
        return _NewKey(self.log_released, not self.first)

    @cached_property
    def _atoms(self) -> LossAtoms:
        released = math.exp(self.log_released)
        silent = np.array([math.log1p(-released)])
        slack = ULP * (16 + 8 * (abs(self.log_released) if released else 0.0))
        atoms = LossAtoms(silent, silent, self.log_released, -math.inf, -math.inf, slack, slack * np.abs(silent))
        return atoms if self.first else atoms.reversed()


@with_passages
@dataclass(frozen=True)
class ThresholdedCount(PrivacyProfile):
    r"""A count plus double geometric noise N, released only if the count is positive and the noisy count is at least t.

    .. math:: \delta(\varepsilon) = \max\{\delta_N(\varepsilon),\; \tau\}, \qquad \tau = \Pr[N \ge t - \Delta]

    Here :math:`\delta_N` is delta of the noise and :math:`\Delta` its sensitivity. Use this class if the keys of a histogram, such
    as words or addresses, are not public: no list of keys is needed, and a key that no user has is never released. Made by
    :meth:`GeometricMechanism.thresholded`.

    Parameters
    ----------
    noise : GeometricMechanism
        The noise; with a bound its sensitivity must be 1.
    threshold : int
        Threshold t, above the sensitivity, up to 2**50.

    Notes
    -----
    Neighbours: the count of one key, which has no upper limit, differs by at most the sensitivity. A user who moves from one
    key to another changes two counts: compose two of these releases.

    delta is exact, by two cases:

    - If both counts are positive, the release is a post-processing of the noisy count, and its delta approaches that of the
      noisy count for counts far above t.
    - If one of the counts is 0, a release of the key identifies the other dataset, whose count k is at most the sensitivity.
      The key is then released with probability :math:`\Pr[k + N \ge t]`, which is largest at :math:`k = \Delta`, where it is
      :math:`\tau`. The divergences of this pair in the two directions are :math:`\tau` and :math:`(1 - e^\varepsilon (1 -
      \tau))_+ \le \tau`.

    :math:`\tau` is half of ``noise.error_tail(t - sensitivity - 1)``, so the smallest t with :math:`\tau \le \delta` is
    ``sensitivity + 1 + noise.error_quantile(2 * delta)``.

    References
    ----------
    Korolova, A., Kenthapadi, K., Mishra, N., Ntoulas, A. Releasing search queries and clicks privately, 2009, for Laplace noise.

    Examples
    --------
    >>> from shufflebounds.mechanisms import GeometricMechanism
    >>> noise = GeometricMechanism(1.0)
    >>> words = noise.thresholded(2 + int(noise.error_quantile(2e-6)))
    >>> print(words.threshold, f"{words.delta(1.0):.3e}")
    15 6.079e-07
    >>> words.randomize([0, 1, 2, 40], rng=1).tolist()
    [0, 0, 0, 42]
    """

    noise: AdditiveNoise
    threshold: int

    theorem: ClassVar[str] = "exact: the larger divergence of the noise and of a count that only one of the datasets has"
    neighbours: ClassVar[str] = "the count of one key differs by at most `sensitivity`; a count of 0 is never released"
    relation: ClassVar[str] = "either"

    def __post_init__(self) -> None:
        if not hasattr(self.noise, "thresholded"):
            raise TypeError(f"noise={_validate.short_repr(self.noise)} must be a GeometricMechanism")
        if getattr(self.noise, "bound", None) is not None and self._step > 1:
            raise ValueError(f"{self.noise!r} has a bound: its sensitivity must be 1 for a threshold; leave out the bound")
        _validate.integer_field(self, "threshold", self._step + 1, 2**50)

    @property
    def _step(self) -> int:
        """The sensitivity of the noise."""
        return self.noise.sensitivity  # type: ignore[attr-defined, no-any-return]

    @property
    def _log_released(self) -> float:
        """The log probability that a count as large as the sensitivity is released."""
        return self.noise._log_tail(self.threshold - self._step - 1) - math.log(2)

    def pairs(self) -> tuple[DominatingPair, ...]:
        new = _NewKey(self._log_released, True)
        return _NoisePair(self.noise), new, new.reverse()

    def randomize(self, values: ArrayLike, rng: Any = None) -> NDArray[np.int64]:
        """Return the noisy counts that are at least the threshold, and 0 in place of all other counts.

        Parameters
        ----------
        values : array_like of int
            The count of each key, any shape; keys without users may be omitted or counted as 0.
        {rng}

        Returns
        -------
        ndarray of int64
            Of the shape of `values`. Entries of 0 and their keys must not be published.

        {raises: If `values` is empty or holds anything but counts, or `rng` is no generator.}
        """
        counts = _validate.whole_array("values", values, 0)
        noisy = counts + self.noise._noise(_validate.generator(rng), counts.shape)
        return np.where((counts > 0) & (noisy >= self.threshold), noisy, 0)
