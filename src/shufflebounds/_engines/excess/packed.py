"""Interface to the kernel `_deployments`: the largest Phi_n(X) of a set of distributions of X, for arrays of deployments.

X is the privacy-amplification random variable (`ExcessLaw`), and Phi_n(X) = E(X_1 + ... + X_n)_+/n is the bound of delta for n
users. A deployment is a set of distributions, a number n of users, and an eps or a delta.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shufflebounds._base.types import FloatArray, IntervalArray, consistent
from shufflebounds._core import _deployments

if TYPE_CHECKING:
    from shufflebounds._engines.excess.laws import ExcessLaw

__all__ = ["epsilons", "log_deltas", "packed"]


def packed(sets: Sequence[Sequence[ExcessLaw]]) -> _deployments.Laws:
    """Return sets of distributions in the format that the kernel reads."""
    # The distribution with the largest second moment comes first: it likely has the largest Phi, so that the kernel skips others.
    ordered = [law for laws in sets for law in (sorted(laws, key=lambda law: -law.spread(0.0)) if len(laws) > 1 else laws)]
    atoms = [law._distinct for law in ordered]
    cuts = [np.broadcast_arrays(law.log_cut, law.log_cut_b) for law in ordered]

    def joined(parts: Sequence[FloatArray]) -> FloatArray:
        # One more element is appended, so that an empty array has a valid address.
        return np.concatenate([*parts, [0.0]])

    def ends(sizes: list[int]) -> NDArray[np.intp]:
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)

    log_mass, log_a, log_b = (joined([law[i] for law in atoms]) for i in range(3))
    log_cut, log_cut_b = (joined([law[i] for law in cuts]) for i in range(2))
    slack, pure = np.array([law._slack for law in ordered]), np.array([law.pure_epsilon for law in ordered])
    return _deployments.Laws(log_mass, log_a, log_b, ends([law[0].size for law in atoms]),
                             log_cut, log_cut_b, ends([law[0].size for law in cuts]),
                             slack, pure, ends([len(laws) for laws in sets]))


def epsilons(laws: _deployments.Laws, places: ArrayLike, users: ArrayLike, delta: ArrayLike, upper: bool) -> FloatArray:
    """Return the upper or the lower bound of eps for the largest Phi of a set, for arrays of deployments.

    For each deployment, `places` has the index of its set in `laws`, `users` its number of users and `delta` its delta.
    """
    count, target = np.array([users, delta], dtype=np.float64)
    out: FloatArray = np.empty((1, count.size))
    laws.run(np.asarray(places, dtype=np.intp), count, target, True, upper, out)
    return out.ravel()


def log_deltas(laws: _deployments.Laws, places: ArrayLike, users: ArrayLike, eps: ArrayLike) -> IntervalArray:
    """Return bounds of the largest log Phi of a set, for arrays of deployments described as in `epsilons`."""
    count, points = np.array([users, eps], dtype=np.float64)
    out = np.empty((2, count.size))
    laws.run(np.asarray(places, dtype=np.intp), count, points, False, False, out)
    return consistent(IntervalArray(out[0], out[1]), "log delta at eps={!r}", points)
