"""Methods of every randomizer and protocol that estimates from counts of its messages.

The methods randomize the values of all users or of a part of them, count the messages, add the counts of parts, and estimate.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shufflebounds._base import validate as _validate
from shufflebounds._base.calls import explained
from shufflebounds._base.docs import with_passages
from shufflebounds._base.limits import TABLE_SIZE
from shufflebounds._base.types import FloatArray

__all__ = ["Counted", "Counts", "CountsOfColumns", "CountsOfLabels", "Estimate", "SumOfBits", "bernoulli", "message_rows"]

Counts = TypeVar("Counts")
Estimate = TypeVar("Estimate")

def bernoulli(rng: np.random.Generator, shape: tuple[int, ...], probability: float) -> NDArray[np.bool_]:
    """Return independent events of the given probability, with an error of at most 2**-61.

    One random byte decides an event with probability 255/256; the remaining events take a random double.
    """
    scaled = 256 * probability
    first = math.floor(scaled)
    size = math.prod(shape)
    drawn = np.frombuffer(rng.bytes(size), dtype=np.uint8)
    out = drawn < first
    ties = np.flatnonzero(drawn == first)
    out[ties] = rng.random(ties.size) < scaled - first
    return out.reshape(shape)


def message_rows(messages: ArrayLike, width: int, kind: str) -> NDArray[Any]:
    """Return the messages as an array with one message of the given width per row, or raise ValueError; entries are unchecked."""
    rows = np.asarray(messages)
    if rows.ndim != 2 or rows.shape[1] != width:
        raise ValueError(f"messages has shape {rows.shape}: it must be (users, {width}), one {kind} per row; "
                         "counts go to estimate(counts=...)")
    return rows


@explained
@with_passages
class Counted(ABC, Generic[Counts, Estimate]):
    """A randomizer or protocol that estimates from counts of its messages; the counts of parts of the users add up.

    Arrays of values and of messages have one row for each user or message.
    """

    @abstractmethod
    def _checked_values(self, values: ArrayLike) -> NDArray[Any]:
        """Return the validated values of some users, possibly of none."""

    @abstractmethod
    def _messages(self, values: NDArray[Any], source: np.random.Generator) -> NDArray[Any]:
        """Return one message for each valid value."""

    @abstractmethod
    def _checked_messages(self, messages: ArrayLike) -> NDArray[Any]:
        """Return the validated messages, possibly none."""

    @abstractmethod
    def _added(self, messages: NDArray[Any]) -> Counts:
        """Return the counts of validated messages."""

    @abstractmethod
    def _estimated(self, counts: Counts, users: int) -> Estimate:
        """Return the estimate from validated counts of the messages of `users` users and of all dummies."""

    @property
    def _count_shape(self) -> tuple[int, ...] | None:
        """Shape of the counts, or None if every shape is valid."""
        return ()

    @property
    def _message_bytes(self) -> int:
        """Size of one message in an array."""
        return 8

    @property
    def _fixed_users(self) -> int | None:
        """Number of users whose messages an estimate needs; None if it is not a parameter."""
        return None

    @property
    def _dummies(self) -> int:
        """Number of dummy reports."""
        return 0

    def _dummy_messages(self, number: int, source: np.random.Generator) -> NDArray[Any]:
        """Return the messages of dummy reports."""
        return self._messages(self._checked_values([]), source)

    def _users_in(self, counts: NDArray[Any]) -> int | None:
        """Return the number of users whose messages were counted, or None if counts do not determine it."""
        return None

    def _largest_count(self, messages: int) -> int:
        """Return the largest value that an entry of the counts of `messages` messages can have."""
        return messages

    def randomize(self, values: ArrayLike, rng: Any = None) -> NDArray[Any]:
        """Return one message for each user, in the order of the users.

        The users may be divided among several calls.

        Parameters
        ----------
        values : array_like
            The users' values as described for the class, one entry or row for each user; empty for no user.
        {rng}
            Several calls need different seeds, because equal seeds give equal noise.

        Returns
        -------
        ndarray
            The messages as described for the class, one entry or row for each user. A shuffler must permute the messages of all
            users and dummies together before the analyst sees them.

        Raises
        ------
        ValueError
            If an entry of `values` is invalid, there are more than `users` values, or `rng` is no source of randomness.
        InfeasibleError
            If the messages would take more than a gigabyte (a ValueError).
        """
        checked, source = self._part(values), _validate.generator(rng)
        users = len(checked) if checked.ndim else 1
        advice = "randomize fewer users at a time and add up aggregate(messages), or call simulate"
        self._affordable(users, f"{users} users", advice)
        return self._messages(checked, source)

    def _affordable(self, number: int, whose: str, advice: str) -> None:
        """Raise InfeasibleError if the messages would take more than a gigabyte."""
        size, most = number * self._message_bytes, 8 * _validate.MOST_ENTRIES
        if size > most:
            raise _validate.InfeasibleError(f"the messages of {whose} would take {size / 1e9:.3g} GB: at most {most / 1e9:.3g} GB "
                                            f"are made; {advice}")

    def _part(self, values: ArrayLike) -> NDArray[Any]:
        """Return the validated values of a part of the users."""
        checked, most = self._checked_values(values), self._fixed_users
        if most is not None and len(checked) > most:
            raise ValueError(f"values has {len(checked)} entries: at most users={most}, one for each user")
        return checked

    def dummies(self, rng: Any = None, *, number: int | None = None) -> NDArray[Any]:
        """Return the messages of the dummy reports, which are added once to those of all users; none if the protocol has none.

        Parameters
        ----------
        {rng}
        number : int, optional
            Number of dummy reports; all of them by default. Several parties may each add a part of them.

        Returns
        -------
        ndarray
            Messages in the form of :meth:`randomize`.

        Raises
        ------
        ValueError
            If `number` is above the number of dummy reports of the protocol, or `rng` is no source of randomness.
        InfeasibleError
            If the messages would take more than a gigabyte (a ValueError).
        """
        number = self._dummies if number is None else _validate.integer("number", number, 0, self._dummies)
        self._affordable(number, f"{number} dummy reports", "make fewer at a time, by number=, and add up aggregate(messages)")
        return self._dummy_messages(number, _validate.generator(rng))

    def aggregate(self, messages: ArrayLike) -> Counts:
        """Return the counts of messages, from which :meth:`estimate` estimates.

        If the messages come in several batches, add the counts of the batches.

        Parameters
        ----------
        messages : array_like
            As :meth:`randomize` or :meth:`dummies` returns them, in any order; empty for none.

        Returns
        -------
        int or ndarray
            The counts as described for the class: a small array, or one number.

        {raises: If `messages` contains anything but messages.}
        """
        return self._tally(self._checked_messages(messages))

    def _tally(self, messages: NDArray[Any]) -> Counts:
        """Return the counts of validated messages, or raise InfeasibleError if they would take more than a gigabyte."""
        _validate.affordable("the counts", math.prod(self._count_shape or ()))
        return self._added(messages)

    def estimate(self, messages: ArrayLike | None = None, *, counts: ArrayLike | None = None, users: int | None = None) -> Estimate:
        """Return the unbiased estimate, by the formula in the description of the class, from all messages or from their counts.

        Parameters
        ----------
        messages : array_like, optional
            The messages of all users and dummies, in any order.
        counts : int or array_like, optional
            In place of messages: what :meth:`aggregate` returns, added over all batches.
        users : int, optional
            Number of users whose messages were counted, without dummies. It is needed with `counts` if neither the class nor the
            counts determine it.

        Returns
        -------
        float or ndarray
            One number, or one for each bin. It may lie outside the range of the exact value, because clipping would bias it.

        Raises
        ------
        ValueError
            If not exactly one of `messages` and `counts` is given; if the given array cannot occur, is not that of `users` users,
            or seems to hold counts in place of messages; or if the messages do not depend on the data.
        """
        return self._estimated(*self._read(messages, counts, users))

    def simulate(self, values: ArrayLike, rng: Any = None) -> Counts:
        """Run the protocol once for the values of all users, and return the counts, without holding all messages in memory.

        Parameters
        ----------
        values : array_like
            The values of all users, as for :meth:`randomize`.
        {rng}

        Returns
        -------
        int or ndarray
            The counts, distributed as :meth:`aggregate` of the messages of :meth:`randomize` and :meth:`dummies`.

        {raises: If `values` is no dataset of this class, or `rng` is no source of randomness.}
        """
        checked, needed = self._part(values), self._fixed_users
        if needed is not None and len(checked) != needed:
            raise ValueError(f"values has {len(checked)} entries: it must have users={needed}, one for each user; "
                             "for a part of the users, add up aggregate(randomize(part))")
        _validate.affordable("the counts", math.prod(self._count_shape or ()))
        return self._simulated(checked, _validate.generator(rng))

    def _simulated(self, values: NDArray[Any], source: np.random.Generator) -> Counts:
        """Return counts of the messages of all validated values and dummies, which are made a few at a time."""
        rows, values = max(1, 8 * TABLE_SIZE // self._message_bytes), np.atleast_1d(values)
        total: Any = self._added(self._dummy_messages(0, source))
        for start in range(0, self._dummies, rows):
            total = total + self._added(self._dummy_messages(min(rows, self._dummies - start), source))
        for start in range(0, len(values), rows):
            total = total + self._added(self._messages(values[start : start + rows], source))
        return total  # type: ignore[no-any-return]

    def _read(self, messages: ArrayLike | None, counts: ArrayLike | None, users: int | None) -> tuple[Counts, int]:
        """Return validated counts, and the number of users whose messages were counted; one of `messages` and `counts` is None."""
        if messages is None and counts is None:
            raise ValueError("messages=None: pass the messages, or counts=..., the sum of aggregate(messages) of all parts")
        if messages is not None and counts is not None:
            raise ValueError("messages and counts are both given: pass one of them")
        total = self._fixed_users
        if users is not None:
            users = _validate.integer("users", users, 1)
            if total is not None and not total - getattr(self, "missing", 0) <= users <= total:
                raise ValueError(f"users={users} must be {total}, as in the protocol: with fewer users the guarantee is weaker; "
                                 "pass missing= to the protocol if some may be missing, or "
                                 f"make a {type(self).__name__} of the number of users who took part, and look at its epsilon")
            total = users
        if counts is not None:
            return self._checked_counts(counts, total)
        assert messages is not None
        seen = self._checked_messages(messages)
        self._refuse_counts(seen, users)
        number = self._number(seen)
        if total is None and number - self._dummies < 1:
            raise ValueError("messages must not be empty" if not self._dummies else
                             f"messages has shape {seen.shape}: it must have more than fakes={self._dummies} entries, those of the "
                             "users and of the dummy reports; counts go to estimate(counts=...)")
        if total is not None and number != total + self._dummies:
            dummies = f" and the {self._dummies} dummy reports" if self._dummies else ""
            raise ValueError(f"messages has shape {seen.shape}: it must have {total + self._dummies} entries, those of all "
                             f"users={total}{dummies}; of a part, add up aggregate(messages) and pass counts=")
        return self._tally(seen), number - self._dummies

    def _number(self, messages: NDArray[Any]) -> int:
        """Return the number of validated messages."""
        return len(messages)

    def _refuse_counts(self, messages: NDArray[Any], users: int | None) -> None:
        """Raise ValueError if validated messages seem to be counts."""

    def _checked_counts(self, counts: ArrayLike, users: int | None) -> tuple[Any, int]:
        """Return validated counts and the number of users; `users` is None if the caller did not state it."""
        array = _validate.whole_array("counts", counts, 0)
        shape = self._count_shape
        if shape is not None and array.shape != shape:
            form = "one number" if shape == () else f"of shape {shape}"
            raise ValueError(f"counts has shape {array.shape}: it must be {form}, as aggregate(messages) returns")
        users = self._stated_users(self._users_in(array), users)
        high = self._largest_count(users + self._dummies)
        _validate.every_entry("counts", array, array <= high, f"at most {high}, with users={users}")
        return (int(array) if array.ndim == 0 else array), users

    @staticmethod
    def _stated_users(implied: int | None, users: int | None) -> int:
        """Return the number of users that counts imply or the caller stated; raise ValueError if neither exists or both differ."""
        if users is None and implied is None:
            raise ValueError("users=None must be the number of users whose messages are in counts: pass users=...")
        if users is not None and implied is not None and users != implied:
            raise ValueError(f"counts are those of {implied} users, not of users={users}: "
                             "add up the counts of all parts and of all dummy reports, each once")
        return users if users is not None else implied  # type: ignore[return-value]


class CountsOfBins(Counted[NDArray[np.int64], FloatArray]):
    """A class whose values are bins 0..bins - 1, unless it checks its values itself, and whose counts are arrays."""

    bins: int

    def _checked_values(self, values: ArrayLike) -> NDArray[np.int64]:
        return _validate.labels("values", values, self.bins)

    def _many(self) -> int:
        return self.bins


class CountsOfLabels(CountsOfBins):
    """A class whose message is one label of finitely many, and whose counts are how often each label was sent."""

    @property
    def _labels(self) -> int:
        """Number of labels, that of the bins by default."""
        return self.bins

    @property
    def _count_shape(self) -> tuple[int, ...]:
        return (self._labels,)

    def _checked_messages(self, messages: ArrayLike) -> NDArray[np.int64]:
        return _validate.labels("messages", messages, self._labels)

    def _added(self, messages: NDArray[Any]) -> NDArray[np.int64]:
        return np.bincount(messages, minlength=self._labels)

    def _users_in(self, counts: NDArray[Any]) -> int | None:
        return int(counts.sum()) - self._dummies

    def _refuse_counts(self, messages: NDArray[Any], users: int | None) -> None:
        size = messages.size
        if users is None and size == self._labels > 2:
            raise ValueError(f"messages has {size} entries, as many as there are different messages: pass counts to "
                             f"estimate(counts=...); if it holds {size} messages, pass users={size - self._dummies} as well")


class CountsOfColumns(CountsOfBins):
    """A class whose message is a row of small whole numbers, one for each bin, and whose counts are the sums of the columns."""

    _most: ClassVar[int] = 1
    """Largest number in a message."""

    @property
    def _count_shape(self) -> tuple[int, ...]:
        return (self.bins,)

    @property
    def _message_bytes(self) -> int:
        return self.bins

    def _checked_messages(self, messages: ArrayLike) -> NDArray[np.int8]:
        return _validate.bits("messages", message_rows(messages, self.bins, "message"), self._most)

    def _added(self, messages: NDArray[Any]) -> NDArray[np.int64]:
        return np.asarray(messages.sum(axis=0, dtype=np.int64))

    def _largest_count(self, messages: int) -> int:
        return self._most * messages


class SumOfBits(Counted[int, float]):
    """A class whose values are bits, whose messages are small whole numbers, and whose count is the sum of the messages."""

    _most: ClassVar[int] = 1
    """Largest message."""

    @property
    def _message_bytes(self) -> int:
        return 1

    def _checked_values(self, values: ArrayLike) -> NDArray[Any]:
        return self._one_each("values", _validate.bits("values", values))

    def _checked_messages(self, messages: ArrayLike) -> NDArray[np.int8]:
        if np.ndim(messages) == 0:
            given = _validate.short_repr(messages, 30)
            raise ValueError(f"messages={given} is one number: pass an array with one entry for each message, or their sum as "
                             f"estimate(counts={given})")
        return self._one_each("messages", _validate.bits("messages", messages, self._most))

    def _one_each(self, name: str, array: NDArray[np.int8]) -> NDArray[np.int8]:
        """Return the array, or raise ValueError if it has no entry for each user."""
        if array.ndim != 1:
            raise ValueError(f"{name} has shape {array.shape}: it must be one-dimensional, with one entry for each user")
        return array

    def _added(self, messages: NDArray[Any]) -> int:
        return int(messages.sum(dtype=np.int64))

    def _largest_count(self, messages: int) -> int:
        return self._most * messages
