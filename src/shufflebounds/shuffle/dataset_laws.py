"""The distributions of a randomizer that the upper bound over all datasets needs, for all inputs of the other users.

The bound is that of docs/theorems/worst-dataset, which `_worst_dataset` evaluates. The method `dataset_laws` of a randomizer
returns them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from shufflebounds._types import FloatArray
from shufflebounds.shuffle.laws import ExcessLaw

__all__ = ["DatasetLaws"]


@dataclass(frozen=True, eq=False)
class DatasetLaws:
    r"""Distributions that bound every dataset from above, for one ordered pair of inputs of the target user.

    R_x is the distribution of the message of a user with input x, (R_0, R_1) are those of the target's two inputs, and m is a
    measure with :math:`m \le R_x` for every input x. X is the privacy-amplification random variable of a pair, see
    :class:`ExcessLaw`.

    Parameters
    ----------
    blanket : ExcessLaw
        The distribution of :math:`(R_0/m, R_1/m)` under m, or one that is larger in the convex order.
    others : tuple of (str, ExcessLaw)
        For each kind of input j of another user, its name and the distribution of :math:`(R_0/R_j, R_1/R_j)` under :math:`R_j`, or
        one that is larger in the convex order. For every input, the distribution of X must be a mixture of these, or `share` says
        what takes the place of this condition.
    heights : tuple of ExcessLaw
        For each kind of input x the distribution of :math:`(1, R_x/m)` under m, or one that is larger in the convex order.
    log_minorant : float
        Logarithm of the mass g of m.
    distance : float
        At least :math:`\max_\pi \sum_{a < j} \pi_a \pi_j \int (R_a - R_j)^2/m` over distributions :math:`\pi` of inputs.
    local_eps : float
        At least the largest :math:`|\ln(R_a/R_j)|` over all inputs a, j and outputs; inf where there is no bound.
    ratio_tail : callable
        Given an array of t > 1, at least the largest :math:`R_a\{y : R_a(y) > t\, R_j(y)\}` over all inputs a and j, for each t.
    lost : float
        Upper bound of the total variation distance between the message of any input and one drawn from the distributions given
        here.
    share : float
        In (0, 1]. For every input x of another user there is a mixture M of the distributions :math:`R_j` of the kinds with
        :math:`R_x \ge s M`, where s is `share`. It is 1 if every input is of one of the kinds.
    rivals : tuple of DatasetLaws
        Data of further pairs of inputs of the target. If the pair is the worst one of the privacy blanket, but not known to be the
        worst one of the bound over all datasets, the largest bound of it and of these pairs holds for every pair.
    """

    blanket: ExcessLaw
    others: tuple[tuple[str, ExcessLaw], ...]
    heights: tuple[ExcessLaw, ...]
    log_minorant: float
    distance: float
    local_eps: float
    ratio_tail: Callable[[FloatArray], FloatArray]
    lost: float = 0.0
    share: float = 1.0
    rivals: tuple[DatasetLaws, ...] = ()

    def thinned(self, share: float) -> DatasetLaws:
        r"""Return the distributions if each user sends a message with probability `share` only: "no message" is one more output.

        Parameters
        ----------
        share : float
            In (0, 1].

        Returns
        -------
        DatasetLaws
            The data of the randomizer :math:`s R_x + (1 - s) [\text{no message}]`, with s = `share`.
        """
        if share == 1:
            return self
        tail = self.ratio_tail
        return DatasetLaws(
            self.blanket.thinned(share),
            tuple((text, law.thinned(share)) for text, law in self.others),
            tuple(law.thinned(share) for law in self.heights),
            math.log1p(share * math.expm1(self.log_minorant)),
            share * self.distance,
            self.local_eps,
            lambda t: share * tail(t),
            share * self.lost,
            self.share,
            tuple(rival.thinned(share) for rival in self.rivals),
        )
