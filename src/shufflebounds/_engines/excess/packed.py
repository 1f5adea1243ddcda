"""Interface to the kernel `_deployments`: the largest Phi_n(X) of a set of distributions of X, for arrays of deployments.

X is the privacy-amplification random variable (`ExcessLaw`), and Phi_n(X) = E(X_1 + ... + X_n)_+/n is the bound of delta for n
users. A deployment is a set of distributions, a number n of users, and an eps or a delta. `excess_law.packed` makes the format
that the kernel reads.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from shufflebounds._base.types import FloatArray, IntervalArray, consistent
from shufflebounds._core import _deployments

__all__ = ["epsilons", "log_deltas"]


def epsilons(laws: _deployments.LawTable, places: ArrayLike, users: ArrayLike, delta: ArrayLike, upper: bool) -> FloatArray:
    """Return the upper or the lower bound of eps for the largest Phi_n(X) of a set, for arrays of deployments.

    For each deployment, `places` has the index of its set in `laws`, `users` its number of users and `delta` its delta.
    """
    count, target = np.array([users, delta], dtype=np.float64)
    out: FloatArray = np.empty((1, count.size))
    laws.run(np.asarray(places, dtype=np.intp), count, target, True, upper, out)
    return out.ravel()


def log_deltas(laws: _deployments.LawTable, places: ArrayLike, users: ArrayLike, eps: ArrayLike, rtol: float = 2e-7,
               work: float = 6e7) -> IntervalArray:
    """Return bounds of the largest log Phi_n(X) of a set, for arrays of deployments described as in `epsilons`."""
    count, points = np.array([users, eps], dtype=np.float64)
    out = np.empty((2, count.size))
    laws.run(np.asarray(places, dtype=np.intp), count, points, False, False, out, rtol, work)
    return consistent(IntervalArray(out[0], out[1]), "log delta at eps={!r}", points)
