"""Pairs (P, Q) of output distributions of neighbouring datasets of a shuffled randomizer."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from shufflebounds._base.limits import COMPARED
from shufflebounds._base.types import FloatArray, IntervalArray
from shufflebounds._engines.amplification.randomizer_laws import Distributions
from shufflebounds._engines.excess.evaluation import Effort
from shufflebounds._engines.excess.excess_law import ExcessLaw
from shufflebounds._losses.release import SINGLE, DominatingPairInfo, Remembered, Reverse, Sampling

__all__ = ["attained_pairs", "both_orders"]


def attained_pairs(laws: Distributions, users: int, spacing: float) -> tuple[DominatingPairInfo, ...]:
    """Return (P, Q) and (Q, P) of at most two attained pairs; `spacing` is the distance of samples of delta (see `Sampling`).

    Datasets attain these pairs, so the pairs give lower bounds of compositions and of divergences. One is the pair whose
    privacy-amplification random variable X has the largest second moment (a symmetric pair if there is one), the other the pair
    with the largest mass of outputs that identify the target.
    """
    below = [law for _, _, law in laws.below]
    if not below:
        return ()
    wide = max([law for law in below if _mirrored(law)] or below, key=lambda law: law.spread(0.0))
    plain = max(below, key=lambda law: law.lost)
    used = [wide] if plain.lost == 0 or plain is wide else [wide, plain]
    return tuple(one for law in used for one in both_orders(law, users, spacing, laws.error))


def both_orders(law: ExcessLaw, users: int, spacing: float, error: float) -> list[DominatingPairInfo]:
    """Return the pairs (P, Q) and (Q, P) of a distribution of X, or one pair if both are equal.

    The hockey-stick divergence of (P, Q) is (1/n) E(X_1 + ... + X_n)_+ (`excess_law`). That of (Q, P) is the reverse divergence of
    (P, Q), so the two pairs share the values that were computed.
    """
    orders = [law] if _mirrored(law) else [law, _swapped(law, error)]
    efforts = [max(1e-3 if one.log_mass.size < COMPARED else 1e-2, one.effort(users)) for one in orders]
    sides = [Reverse(Remembered(partial(_log_phi, one, users), effort), max(0.0, one.pure_epsilon))
             for one, effort in zip(orders, efforts)]
    return [DominatingPairInfo(side.hockey_stick, side.pure, None if other is side else other, Sampling(effort, spacing),
                               attained=SINGLE)
            for side, other, effort in zip(sides, sides[::-1], efforts)]


def _log_phi(law: ExcessLaw, users: int, eps: FloatArray) -> IntervalArray:
    lower, upper = law.log_phi(eps, users, Effort.SAMPLED)
    return IntervalArray(lower, np.minimum(upper, 0.0))


def _swapped(law: ExcessLaw, error: float) -> ExcessLaw:
    """Return the distribution of X (`ExcessLaw`) for (Q, P) instead of (P, Q), for a lower bound.

    `law` has the likelihood ratios a = P/m and b = Q/m, where m is the distribution of another user. For the lower bound log a was
    decreased and log b increased by at most `error`. Exchanging P and Q exchanges a and b. So 2 `error` is subtracted from the new
    log a and added to the new log b: `error` to undo the old change, and `error` to change the new values in the right direction.
    """
    back = replace(law, log_a=law.log_b - 2 * error, log_b=law.log_a + 2 * error, log_cut=law.log_cut_b, log_cut_b=law.log_cut)
    return back.widened(upper=False).widened(upper=False)


def _mirrored(law: ExcessLaw) -> bool:
    """Return whether (P, Q) and (Q, P) have the same distribution of X (`ExcessLaw`)."""
    one, other = (np.stack([law.log_mass, *pair]) for pair in ((law.log_a, law.log_b), (law.log_b, law.log_a)))
    one, other = (array[:, np.lexsort(array)] for array in (one, other))
    return bool(np.all(np.asarray(law.log_cut) == np.asarray(law.log_cut_b)) and np.array_equal(one, other))
