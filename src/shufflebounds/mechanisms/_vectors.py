"""Base class of local randomizers of vectors, such as PrivUnit and Gaussian noise, with an unbiased estimate of the mean vector."""

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
    """A local randomizer that sends a vector, whose expectation is the user's vector times the known factor `scale`."""

    dimension: int

    @property
    @abstractmethod
    def scale(self) -> float:
        """Expected component of a message in the direction of the user's vector; the estimate divides by it."""

    @abstractmethod
    def _checked_vectors(self, values: ArrayLike) -> FloatArray:
        """Return the validated vectors of the users."""

    @abstractmethod
    def _messages(self, vectors: FloatArray, source: np.random.Generator) -> FloatArray:
        """Return one message for each of the users' vectors."""

    def randomize(self, values: ArrayLike, rng: Any = None) -> FloatArray:
        """Return one message for each user, in the order of the users.

        Parameters
        ----------
        values : array_like, shape (users, dimension)
            The users' vectors; unit vectors must have length 1 within 1e-9.
        rng : None, int or numpy.random.Generator
            Source of randomness.

        Returns
        -------
        ndarray, shape (users, dimension)

        {raises: If `values` has another shape or leaves the domain, or `rng` is no generator.}
        """
        return self._messages(self._checked_vectors(values), _validate.generator(rng))

    def _checked_messages(self, messages: ArrayLike) -> FloatArray:
        """Return the validated messages."""
        return self._vectors("messages", messages)

    def estimate(self, messages: ArrayLike) -> FloatArray:
        """Return the unbiased estimate of the mean of the users' vectors: the mean of the messages divided by :attr:`scale`.

        Parameters
        ----------
        messages : array_like, shape (users, dimension)
            As :meth:`randomize` returns them, in any order.

        Returns
        -------
        ndarray, shape (dimension,)

        {raises: If `messages` has another shape or contains anything but messages.}
        """
        return np.asarray(self._checked_messages(messages).mean(axis=0) / self.scale)

    @property
    def message_bits(self) -> int:
        """Length of one message in bits: a double for each coordinate."""
        return 64 * self.dimension

    def _vectors(self, name: str, value: ArrayLike) -> FloatArray:
        """Return the array, or raise ValueError if its shape is not (users, dimension)."""
        vectors = _validate.real_array(name, value)
        if vectors.ndim != 2 or vectors.shape[1] != self.dimension:
            raise ValueError(f"{name} has shape {vectors.shape}: it must be (users, {self.dimension}), one vector per row")
        return vectors

    def _unit_vectors(self, name: str, value: ArrayLike) -> FloatArray:
        """Return the array, or raise ValueError if a row does not have length 1."""
        vectors = self._vectors(name, value)
        square = np.einsum("ij,ij->i", vectors, vectors)
        off = np.abs(square - 1) > 2e-9
        if off.any():
            raise ValueError(f"{name} holds a vector of length {math.sqrt(square[off][0]):.12g}: every row must have length 1")
        return vectors
