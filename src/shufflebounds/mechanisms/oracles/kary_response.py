"""k-ary randomized response: a frequency oracle whose message is the user's bin or a uniformly random one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shufflebounds._base.docs import with_passages
from shufflebounds._base.limits import FEW
from shufflebounds._base.types import FloatArray, Interval
from shufflebounds._engines.bits.given_bits import flip_probability
from shufflebounds._engines.errors.counted import CountsOfLabels
from shufflebounds._losses.atoms import InputRows
from shufflebounds.mechanisms.oracles._counts import FrequencyOracle
from shufflebounds.mechanisms.oracles._two_level import Others, Shares

__all__ = ["KaryResponse"]


@with_passages
@dataclass(frozen=True)
class KaryResponse(CountsOfLabels, FrequencyOracle):
    r"""The user's bin, or a uniformly random bin with probability :math:`k/(e^{\varepsilon_0}+k-1)`.

    .. math:: \Pr[Y = y \mid x] = \frac{e^{\varepsilon_0 [y = x]}}{e^{\varepsilon_0} + k - 1}

    Parameters
    ----------
    {oracle: 2**53}

    Notes
    -----
    The users' values are bins 0..k - 1. A message is a bin, int64, and supports itself. The argument `counts` of
    :meth:`estimate` is how often each bin was sent.

    Neighbours: the bin is replaced. For a bin without users and :math:`k < 3 e^{\varepsilon_0} + 2`, the variance is smaller than
    that of local hashing, unary encoding and Hadamard response. That of :class:`SubsetSelection`, of which k-ary response is the
    case of sets of one bin, is at most as large. No frequency oracle of this package has shorter messages.

    References
    ----------
    Kairouz, P., Bonawitz, K., Ramage, D. Discrete distribution estimation under local privacy, 2016, section 3.

    Examples
    --------
    >>> from shufflebounds.mechanisms import KaryResponse
    >>> response = KaryResponse(bins=4, local_eps=1.0)
    >>> messages = response.randomize([0] * 3000 + [2] * 1000, rng=1)
    >>> response.estimate(messages).round().astype(int).tolist()
    [2830, 2, 1106, 62]
    >>> round(response.variance(held=0, users=4000), 3)
    6392.269
    """

    bins: int
    local_eps: float

    theorem: ClassVar[str] = "exact for k-ary randomized response"
    neighbours: ClassVar[str] = "replace the user's bin; the analyst sees the message"

    def __post_init__(self) -> None:
        self._check()

    def _shares(self) -> Shares:
        return Shares(1 / self.bins, 0.0, (self.bins - 2) / self.bins)

    @property
    def _input_rows(self) -> InputRows:
        return self._rows_of_labels(self.bins)

    def _others(self) -> tuple[Others, ...]:
        k = self.bins
        if k == 2:
            return ()
        return (Others("every other user has a third value", (0.0, 0.0, 0.0, 1 / k), (1 / k, 1 / k, 0.0, (k - 3) / k)),)

    def _kinds(self) -> tuple[Others, ...] | None:
        # For more bins the bound over all datasets is not computed: for 3 to 100 bins and 200 to 1e6 users it is not below that of
        # the privacy blanket, and takes ten times as long.
        return self._targets() if self.bins == 2 else None

    @property
    def _flip(self) -> Interval | None:
        """Bounds of the flip probability if there are two bins; None if there are more."""
        return flip_probability(self.local_eps) if self.bins == 2 else None

    def _matrix(self) -> FloatArray | None:
        """Return the probabilities of the outputs, for the enumeration of all datasets of few users; None for more than 8 bins."""
        if self.bins > FEW:
            return None
        same = np.eye(self.bins) * -math.expm1(-self.local_eps) + math.exp(-self.local_eps)
        return np.asarray(same / (1 + (self.bins - 1) * math.exp(-self.local_eps)))

    @property
    def message_bits(self) -> float:
        """Length of one message in bits, log2(bins)."""
        return math.log2(self.bins)

    def _messages(self, chosen: NDArray[np.int64], source: np.random.Generator) -> NDArray[np.int64]:
        is_uniform = source.random(chosen.size) < math.exp(self._log_base())
        return np.where(is_uniform, source.integers(0, self.bins, size=chosen.size), chosen)
