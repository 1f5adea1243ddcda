"""The pair of distributions of a sum of randomized bits for one given dataset of the other users."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

from shufflebounds._engines.bits.curve_of_sum import MOST_LISTED, atoms_of_sum, curve_of_sum
from shufflebounds._engines.bits.given_bits import bit_sides, flipped_bits, middle_losses
from shufflebounds._losses.atoms import LossAtoms
from shufflebounds._losses.budget import log_odds
from shufflebounds._losses.release import SINGLE, DominatingPairInfo, Losses, Releases, Sampling
from shufflebounds.profile import DominatingPair
from shufflebounds.profile.pair import GivenCurve
from shufflebounds.tradeoff import Tradeoff

__all__ = ["BitPair", "repeated"]


@dataclass(frozen=True)
class BitPair(DominatingPair):
    """The distributions of the sum if the target's bit is 0 (P) and if it is 1 (Q); the two are exchanged if `reversed`.

    `ones` and `zeros` are the numbers of the other users' bits with these values.
    """

    ones: int
    zeros: int
    flip: float
    reversed: bool = False

    def reverse(self) -> Self:
        return type(self)(self.ones, self.zeros, self.flip, not self.reversed)

    @property
    def _data(self) -> tuple[int, int]:
        """(ones, zeros) of the other users' bits. The reversed pair (Q, P) is the pair with ones and zeros exchanged."""
        return (self.zeros, self.ones) if self.reversed else (self.ones, self.zeros)

    def describe(self) -> DominatingPairInfo:
        (ones, zeros), flip = self._data, self.flip

        def listed(log_tail: float) -> LossAtoms | None:
            # At the truncated mass e^-1e6, which is 0 in double precision, all outcomes are enumerated.
            bit = math.log1p(-flip), math.log(flip)
            return atoms_of_sum(*flipped_bits(ones, zeros, flip), bit, bit[::-1], -1e6)

        losses = Losses(listed if self.ones + self.zeros <= MOST_LISTED and 0 < flip < 0.5 else None,
                        partial(middle_losses, ones, zeros, flip), unbounded=flip == 0)
        return DominatingPairInfo(partial(bit_sides, float(ones), float(zeros), flip), log_odds(flip).above,
                                  sampling=Sampling(spacing=0.005), losses=losses, attained=SINGLE)

    def closed_forms(self) -> GivenCurve:
        return GivenCurve(partial(_curve, self.ones, self.zeros, self.flip, self.reversed))


def _curve(ones: int, zeros: int, flip: float, reverse: bool, upper: bool, log_tail: float) -> Tradeoff | None:
    log_flip = math.log(flip) if flip else -math.inf
    curve = curve_of_sum(*flipped_bits(ones, zeros, flip), log_flip, math.log1p(-flip), log_tail, upper=upper)
    return curve.inverse() if curve is not None and reverse else curve


def repeated(pair: DominatingPair, times: int) -> tuple[DominatingPairInfo, ...]:
    """Return the information on (P, Q) and on (Q, P) of `times` independent sums with the same target."""
    both = pair._pair_info(), pair.reverse()._pair_info()
    return tuple(replace(one, releases=Releases(parts=((one, times),))) for one in both)
