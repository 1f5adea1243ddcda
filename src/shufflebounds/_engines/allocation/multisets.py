r"""Random allocation to k of t steps of a mechanism with few outcomes, by enumeration of how often each outcome was seen.

P and Q are the distributions of the output of a step with and without the record, and :math:`l_i` is the loss log(P/Q) of outcome
i. The k steps that used the record are a random subset of all steps. Let outcome i be seen :math:`c_i` times in all steps, and
:math:`s_i` times in these k steps. The likelihood ratio of the counts c is

.. math:: \Lambda = \sum_s w_s e^{s \cdot l} = 1 + \sum_s w_s (e^{s \cdot l} - 1), \qquad
    w_s = \prod_i \binom{c_i}{s_i} \Big/ \binom tk.

All terms of the first sum are positive. The second sum is used for :math:`\Lambda` close to 1.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from shufflebounds._base.limits import MOST_ENUMERATED, TABLE_SIZE
from shufflebounds._base.quadrature import log_sums
from shufflebounds._base.types import ULP, FloatArray
from shufflebounds._core._binomial import binom_logpmf
from shufflebounds._losses.atoms import LossAtoms, multisets, number_of_multisets, union_probability

__all__ = ["counted_allocation"]


def counted_allocation(atoms: LossAtoms, steps: int, chosen: int) -> LossAtoms | None:
    """Return the outcomes of the pair of distributions of all steps with and without the record, or None if there are too many.

    With the record, a random subset of `chosen` of the `steps` steps has outputs from P, and the other steps have outputs from Q.
    Without it, all outputs are from Q. `atoms` are the outcomes of (P, Q).
    """
    loss, log_q = np.append(-np.inf, atoms.loss), np.append(atoms.log_other, atoms.log_p - atoms.loss)
    held = log_q > -np.inf
    loss, log_q, loss_error = loss[held], log_q[held], np.append(0.0, np.broadcast_to(atoms.loss_error, atoms.loss.shape))[held]
    rows = number_of_multisets(loss.size, steps)
    if not loss.size or rows > MOST_ENUMERATED:
        return None
    # The two sizes are those of the table of pairs (counts c, counts s) and of the table of binomial probabilities in
    # `_log_ratios`. The second table is the larger one for a single outcome.
    if max(rows * number_of_multisets(loss.size, chosen), (steps + 1) * (chosen + 1)) > TABLE_SIZE:
        return None
    counts, subsets = multisets(loss.size, steps), multisets(loss.size, chosen)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio, ratio_error = _log_ratios(counts, subsets, loss, loss_error, chosen / steps)
    # The multinomial coefficient is a product of binomial coefficients, and log C(n, c) = log Pr[Bin(n, 1/2) = c] + n log 2.
    left = steps - np.cumsum(counts, axis=1) + counts
    log_mass = (binom_logpmf(counts, left, 0.5) + left * math.log(2))[:, :-1].sum(axis=1) + counts @ log_q
    size = steps * (4 * loss.size + 2 * float(np.abs(log_q).max())) + 8
    slack = steps * (atoms.slack + atoms.most_blur) + ULP * size
    # Counts that are impossible with the record.
    never = ratio == -np.inf
    log_other = float(log_sums(np.append(log_mass[never], -np.inf)))
    ratio, ratio_error, log_mass = ratio[~never], ratio_error[~never], log_mass[~never]
    order = np.argsort(ratio, kind="stable")
    log_rest, log_lost = union_probability([(atoms.log_rest, chosen)]), union_probability([(atoms.log_lost, steps)])
    log_p = log_mass[order] + ratio[order]
    slack += float(np.max(ratio_error, initial=0.0))
    return LossAtoms(log_p, ratio[order], log_rest, log_other, log_lost, slack, ratio_error[order])


def _log_ratios(
    counts: NDArray[np.intp], subsets: NDArray[np.intp], loss: FloatArray, loss_error: FloatArray, rate: float
) -> tuple[FloatArray, FloatArray]:
    """Return log Lambda for every row of counts, and bounds of its error."""
    steps, chosen = int(counts[0].sum()), int(subsets[0].sum())
    # The weight w_s of the counts s (module docstring) is the product of Pr[Bin(c_i, r) = s_i] over i, divided by
    # Pr[Bin(t, r) = k], for any rate r. With r = k/t the logarithms of these probabilities are small.
    table = binom_logpmf(np.arange(chosen + 1.0), np.arange(steps + 1.0)[:, None], rate)
    log_w = -table[steps, chosen] + sum(table[counts[:, None, i], subsets[:, i]] for i in range(loss.size))
    finite = np.where(loss > -np.inf, loss, 0.0)
    each = np.where((subsets @ (loss == -np.inf)) > 0, -np.inf, subsets @ finite)
    each_error = subsets @ (loss_error + (loss.size + 2) * ULP * np.abs(finite))
    ratio = log_sums(log_w + each)
    away = np.abs(each)
    risen, fallen = (log_sums(np.where(side, log_w + np.log(-np.expm1(-away)) + np.maximum(each, 0.0), -np.inf))
                     for side in (each > 0, each < 0))
    excess = np.exp(risen) - np.exp(fallen)
    near = np.abs(excess) < 0.5
    moved = np.exp(log_sums(log_w + each + np.log(each_error)) - ratio) * 1.001
    ratio = np.where(near, np.log1p(np.where(near, excess, 0.0)), ratio)
    # The logs of `binom_logpmf` have errors of 3 ulp of max(1, |log|).
    largest = float(np.abs(log_w[log_w > -np.inf]).max()) + 2 * abs(table[steps, chosen])
    sizes = [np.where(side > -np.inf, np.abs(side), 0.0) for side in (risen, fallen)]
    relative = ULP * (16 + 4 * loss.size + len(subsets) + 4 * largest + 2 * np.maximum(*sizes))
    # The last term is for numbers below the smallest normal double.
    spread = np.where(near, (np.exp(risen) + np.exp(fallen)) * np.exp(-ratio), 1.0)
    error = moved + relative * spread
    # If all steps have the same outcome, the ratio is that of `chosen` steps. Next to the pure budget only these rows matter, and
    # delta is a small difference of their masses.
    only = np.flatnonzero((counts > 0).sum(axis=1) == 1)
    outcome = counts[only].argmax(axis=1)
    ratio[only], error[only] = chosen * loss[outcome], chosen * loss_error[outcome]
    return ratio, error + 4 * ULP * np.abs(np.where(ratio > -np.inf, ratio, 0.0)) + 1e-322
