"""Randomizers of vectors, from whose messages the mean vector is estimated."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shufflebounds import _validate
from shufflebounds._docs import with_passages
from shufflebounds._types import FloatArray


@with_passages
class VectorRandomizer:
    """A vector for a vector; the mean of the messages is that of the users' vectors, shrunk by a known factor."""

    dimension: int

    @property
    @abstractmethod
    def scale(self) -> float:
        """Mean height of a message over the user's vector, by which the estimate divides."""

    @abstractmethod
    def _held(self, values: ArrayLike) -> FloatArray:
        """Return the users' vectors, checked."""

    @abstractmethod
    def _messages(self, held: FloatArray, source: np.random.Generator) -> FloatArray:
        """Return one message for each of these vectors."""

    def randomize(self, values: ArrayLike, rng: Any = None) -> FloatArray:
        """Return one message for each user, in the order of the users.

        Parameters
        ----------
        values : array_like, shape (users, dimension)
            The users' vectors; unit vectors have length 1 to 1e-9.
        rng : None, int or numpy.random.Generator
            Source of randomness.

        Returns
        -------
        ndarray, shape (users, dimension)

        {raises: If `values` has another shape or leaves the domain, or `rng` is no generator.}
        """
        return self._messages(self._held(values), _validate.generator(rng))

    def _said(self, messages: ArrayLike) -> FloatArray:
        """Return the messages, checked."""
        return self._vectors("messages", messages)

    def estimate(self, messages: ArrayLike) -> FloatArray:
        """Return the unbiased estimate of the mean of the users' vectors: that of the messages over :attr:`scale`.

        Parameters
        ----------
        messages : array_like, shape (users, dimension)
            As :meth:`randomize` returns them, in any order.

        Returns
        -------
        ndarray, shape (dimension,)

        {raises: If `messages` has another shape or holds what is no message.}
        """
        return np.asarray(self._said(messages).mean(axis=0) / self.scale)

    @property
    def message_bits(self) -> int:
        """Length of one message in bits, a double each coordinate."""
        return 64 * self.dimension

    def _vectors(self, name: str, value: ArrayLike) -> FloatArray:
        vectors = _validate.real_array(name, value)
        if vectors.ndim != 2 or vectors.shape[1] != self.dimension:
            raise ValueError(f"{name} has shape {vectors.shape}: it must be (users, {self.dimension}), one vector a row")
        return vectors

    def _unit_vectors(self, name: str, value: ArrayLike) -> FloatArray:
        vectors = self._vectors(name, value)
        square = np.einsum("ij,ij->i", vectors, vectors)
        off = np.abs(square - 1) > 2e-9
        if off.any():
            raise ValueError(f"{name} holds a vector of length {math.sqrt(square[off][0]):.12g}: every row must have length 1")
        return vectors
