"""Lower bounds for a person who holds several of the messages of a shuffled randomizer, by tests of a sum of scores."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from shufflebounds._base.limits import TABLE_SIZE
from shufflebounds._base.types import ULP, FloatArray
from shufflebounds._engines.excess.excess_law import ExcessLaw
from shufflebounds._losses.sum_test import RESOLUTION, SumTest, Terms

__all__ = ["test_of_people"]

_WIDTH = 40.0
"""Length of the Fourier transform, in standard deviations of the sum of scores, as in `bits.record_tests`."""

_LARGEST, _FARTHEST = 50.0, 64.0
"""Scores are clipped to _LARGEST, and to _FARTHEST standard deviations. Any score gives a valid test."""


def test_of_people(laws: Iterable[ExcessLaw], users: int, size: int, error: float) -> SumTest | None:
    r"""Return the test by the sum of scores of all messages, or None if the transform would be too long.

    The score of an output is the rounded :math:`\ln((n - k + k a)/(n - k + k b))`, where n = `users`, k = `size`, and a and b are
    the likelihood ratios of `ExcessLaw`.

    The person's `size` messages all have the target's first value under P, and the second under Q; the other users have the value
    for which the distribution of the privacy-amplification random variable X is stated. Among `laws`, the distribution of X with
    the largest second moment is used. Outputs that are not among its atoms have the score 0. Their mass, 1 minus the mass of the
    atoms, is added to upper bounds of probabilities only. `error` bounds the errors of log a and of log b.
    """
    law = max(laws, key=lambda law: law.spread(0.0), default=None)
    if law is None or not law.log_mass.size:
        return None
    # The score is the log of the ratio of the mean numbers of messages with this output under P and under Q.
    with np.errstate(divide="ignore", invalid="ignore"):
        base, more = np.log(users - size), math.log(size)
        score = np.logaddexp(base, more + law.log_a) - np.logaddexp(base, more + law.log_b)
    score = np.clip(np.nan_to_num(score), -_LARGEST, _LARGEST)
    mass = np.exp(law.log_mass)
    deviation = math.sqrt(float(mass @ (score - float(mass @ score)) ** 2))
    step = max(RESOLUTION, _WIDTH * math.sqrt(users) / TABLE_SIZE)
    if not 0 < deviation < math.inf or step > 1.5:
        return None
    rounded = np.round(np.clip(score / deviation, -_FARTHEST, _FARTHEST) / step)
    place, index = np.unique(np.append(rounded, 0.0), return_inverse=True)

    def terms(log_mass: FloatArray, times: int) -> Terms:
        sides: list[FloatArray] = []
        for sign in (-1, 1):
            seen = np.where(log_mass > -np.inf, np.abs(log_mass), 0.0)
            total = np.full(place.size, -np.inf)
            np.logaddexp.at(total, index[:-1], log_mass + sign * (ULP * (64 + 8 * log_mass.size + 8 * seen) + 4 * error))
            if sign > 0:
                # 1 minus the sum of lower bounds of all masses is an upper bound of the missing mass.
                missing = max(0.0, 1 - float(np.exp(sides[0]).sum())) + ULP * (64 + 8 * log_mass.size)
                total[index[-1]] = np.logaddexp(total[index[-1]], math.log(missing))
            sides.append(total)
        return Terms(place, sides[0], sides[1], times)

    first, second, other = terms(law.log_mass + law.log_a, size), terms(law.log_mass + law.log_b, size), users - size
    rest = [terms(law.log_mass, other)] if other else []
    return SumTest([first, *rest], [second, *rest], -math.inf, -math.inf)
