"""Base class of local randomizers of vectors, such as PrivUnit and Gaussian noise, with an unbiased estimate of the mean vector."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shufflebounds._base import validate as _validate
from shufflebounds._base.docs import with_passages
from shufflebounds._base.types import FloatArray
from shufflebounds._engines.errors.counted import Counted


@with_passages
class VectorRandomizer(Counted[FloatArray, FloatArray]):
    """A local randomizer that sends a vector; its expectation is the user's vector times the known factor `scale`.

    The counts are the sum of the messages, one number for each coordinate. The estimate of the mean of the users' vectors is the
    mean of the messages divided by `scale`.
    """

    dimension: int

    @property
    @abstractmethod
    def scale(self) -> float:
        """Expected component of a message in the direction of the user's vector; the estimate divides by it."""

    @property
    def _count_shape(self) -> tuple[int, ...]:
        return (self.dimension,)

    @property
    def _message_bytes(self) -> int:
        return 8 * self.dimension

    def _checked_messages(self, messages: ArrayLike) -> FloatArray:
        return self._vectors("messages", messages)

    def _added(self, messages: NDArray[Any]) -> FloatArray:
        return np.asarray(messages.sum(axis=0))

    def _checked_counts(self, counts: ArrayLike, users: int | None) -> tuple[FloatArray, int]:
        sums = _validate.real_array("counts", counts)
        if sums.shape != self._count_shape:
            raise ValueError(f"counts has shape {sums.shape}: it must be {self._count_shape}, the sum of the messages")
        return sums, self._stated_users(None, users)

    def _estimated(self, counts: FloatArray, users: int) -> FloatArray:
        return np.asarray(counts / users / self.scale)

    @property
    def message_bits(self) -> int:
        """Length of one message in bits: a double for each coordinate."""
        return 64 * self.dimension

    def _vectors(self, name: str, value: ArrayLike) -> FloatArray:
        """Return the array, or raise ValueError if its shape is not (users, dimension); an empty array has no users."""
        if np.size(value) == 0:
            return np.empty((0, self.dimension))
        vectors = _validate.real_array(name, value)
        if vectors.ndim != 2 or vectors.shape[1] != self.dimension:
            raise ValueError(f"{name} has shape {vectors.shape}: it must be (users, {self.dimension}), one vector per row"
                             + ("; sums of messages go to estimate(counts=..., users=...)" if name == "messages" else ""))
        return vectors

    def _unit_vectors(self, name: str, value: ArrayLike) -> FloatArray:
        """Return the array, or raise ValueError if a row does not have length 1."""
        vectors = self._vectors(name, value)
        square = np.einsum("ij,ij->i", vectors, vectors)
        off = np.abs(square - 1) > 2e-9
        if off.any():
            raise ValueError(f"{name} holds a vector of length {math.sqrt(square[off][0]):.12g}: every row must have length 1")
        return vectors
