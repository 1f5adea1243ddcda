"""Amplification by shuffling if every user sends a clone of the target's message with the same probability."""

from __future__ import annotations

import numpy as np

from shufflebounds._base.types import FloatArray, IntervalArray
from shufflebounds._core import _clones
from shufflebounds._losses.closed_forms import ClosedForms

__all__ = ["ClonePair"]


class ClonePair(ClosedForms):
    """The clone pair for `users` users with a local budget; the number of clones is Bin(users - 1, rate)."""

    __slots__ = ("local_eps", "rate", "users")

    def __init__(self, users: float, rate: float, local_eps: float) -> None:
        self.users, self.rate, self.local_eps = users, rate, local_eps

    def log_delta(self, eps: FloatArray) -> IntervalArray:
        size = eps.shape
        lower, upper = np.empty(size), np.empty(size)
        _clones.clones_log_delta(np.full(size, self.users), np.full(size, self.rate), np.full(size, self.local_eps),
                                 np.ascontiguousarray(eps), lower, upper)
        return IntervalArray(lower, upper)

    def epsilon(self, delta: float, upper: bool) -> float:
        return _clones.clone_epsilon(self.users, self.rate, self.local_eps, delta, upper)
