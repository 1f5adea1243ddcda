"""Confidence intervals of the true counts, from the counts that an analyst sees, by inversion of their tails.

If t of n users have a value, the count y of this value is stochastically increasing in t. A t is rejected if one of the two tails
at y, Pr[count >= y] or Pr[count <= y], is at most half of the permitted error probability. The remaining t are consecutive.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from shufflebounds._base import validate as _validate
from shufflebounds._base.docs import with_passages
from shufflebounds._base.search import narrowed
from shufflebounds._base.types import plain
from shufflebounds._engines.errors.accuracy import Of, log_tail
from shufflebounds._engines.errors.counted import Counted

__all__ = ["CountIntervals", "CountLaw", "CountTail", "Ends", "around", "tail_of_bits"]

CountTail = Callable[[int, int, bool], float]
"""``tail(y, held, upper)`` is an upper bound of log Pr[count >= y] if `upper`, otherwise of log Pr[count <= y], for a value that
`held` users have."""


class CountLaw(NamedTuple):
    """The distribution of a count, which is stochastically increasing in the truth.

    Attributes
    ----------
    tail : CountTail
        The tails of the distribution.
    scale : float
        The size of an error of the estimate. A wrong size only makes the search longer.
    most : int
        Largest possible truth.
    noise : int, optional
        Largest value of count - truth, if the truth may be negative; the smallest value is 0.
    """

    tail: CountTail
    scale: float
    most: int
    noise: int | None = None

    def inverted(self, y: int, near: float, level: float) -> tuple[int, int]:
        """Return the least and the largest truth at which both tails of the count y are above e^level; `near` is the estimate."""
        low, high = (0, self.most) if self.noise is None else (y - self.noise, y)
        reach = math.sqrt(-2 * level)

        def excess(held: int, upper: bool) -> float:
            # sqrt(-2 log tail) is about linear in the truth, which makes the search short. The result is never 0, because its sign
            # decides whether the truth is rejected.
            log = min(self.tail(y, held, upper), 0.0)
            distance = reach - math.sqrt(-2 * max(log, -1e18))
            return max(distance, 1e-300) if log > level else min(distance, -1e-300)

        start = 0.9 * reach * self.scale
        lower = _first(lambda held: excess(held, True), low, high, near - start, self.scale)
        upper = -_first(lambda held: excess(-held, False), -high, -low, -near - start, self.scale)
        return lower, upper


Ends = tuple[Any, Any]
"""The lower and the upper ends of intervals: two numbers or two arrays."""


@with_passages
class CountIntervals(Counted[Any, Any]):
    """A class with confidence intervals of the numbers that it estimates."""

    def interval(
        self, messages: ArrayLike | None = None, *, counts: ArrayLike | None = None, users: int | None = None,
        confidence: float = 0.95, of: Of = "bin",
    ) -> Ends:
        r"""Return confidence intervals of the exact numbers that :meth:`estimate` estimates, from messages or from their counts.

        Parameters
        ----------
        messages, counts, users
            As in :meth:`estimate`.
        confidence : float
            Probability with which an interval contains the exact number, in (0, 1).
        of : {"bin", "any"}
            "bin": each interval contains its exact number with probability at least `confidence`. "any": with this probability
            all intervals do. Both are equal if one number is estimated.

        Returns
        -------
        lower, upper : int, float or ndarray
            The ends of the intervals, in the form of the estimate: for counts whole numbers in [0, users].

        Raises
        ------
        ValueError
            As in :meth:`estimate`, or if `confidence` lies outside (0, 1) or `of` is unknown.

        Notes
        -----
        The coverage is at least `confidence` for every dataset. Let y be a count of messages, and :math:`\Pr_t` the distribution
        of this count Y if the exact number is t, in 0..n for n users. The interval consists of all t for which :math:`\Pr_t[Y \ge
        y]` and :math:`\Pr_t[Y \le y]` are both above (1 - confidence)/2, for ``of="any"`` divided by the number of bins (Neyman's
        construction; the tails are exact up to rounding, and rounded up). These t are consecutive, because Y is stochastically
        increasing in t. If y is too small or too large for every t, the interval is the nearest end of [0, n].

        The interval depends on the counts alone, so the estimate may be fractional, negative or clipped. Without `truth`,
        `error_quantile` returns the error for the worst t, which may be several times as large as half of an interval.
        :class:`~shufflebounds.shuffle.RealSum`, :class:`~shufflebounds.mechanisms.FiniteRandomizer` and
        :class:`~shufflebounds.mechanisms.RandomizedResponse` return the estimate plus or minus their error for every dataset,
        clipped to the range of the exact number. The run time is about a millisecond for each different count.

        Examples
        --------
        >>> from shufflebounds.mechanisms import KaryResponse
        >>> survey = KaryResponse(4, 2.0)
        >>> counts = survey.simulate([0] * 3000 + [2] * 1000, rng=1)
        >>> survey.estimate(counts=counts).round().astype(int).tolist()
        [2914, 41, 1039, 6]
        >>> [ends.tolist() for ends in survey.interval(counts=counts, of="any")]
        [[2808, 0, 951, 0], [3022, 117, 1128, 83]]
        """
        confidence = _validate.real("confidence", confidence, 0, 1, open_low=True, open_high=True)
        _validate.choice("of", of, ("bin", "any"))
        seen, total = self._read(messages, counts, users)
        return self._interval(seen, total, 1 - confidence, of)

    def _interval(self, seen: Any, users: int, beta: float, of: Of) -> Ends:
        near = np.asarray(self._estimated(seen, users), dtype=np.float64)
        level = math.log(beta / 2) - (math.log(near.size) if of == "any" else 0.0)
        law = self._count_law(users)
        each, place = np.unique(np.asarray(self._support(seen)), return_inverse=True)
        starts = np.zeros(each.size)
        starts[place.ravel()] = near.ravel()
        ends = [law.inverted(y, start, level) for y, start in zip(each.tolist(), starts.tolist())]
        lower, upper = np.array(ends, dtype=np.int64).T[:, place].reshape(2, *near.shape)
        return (lower, upper) if near.ndim else (int(lower), int(upper))

    def _support(self, seen: Any) -> Any:
        """Return the numbers of messages that support each value, from the counts."""
        return seen

    def _count_law(self, users: int) -> CountLaw:
        """Return the distribution of the count of a value among these users."""
        raise NotImplementedError


def tail_of_bits(
    users: int, own: tuple[float, float], other: tuple[float, float], extra: tuple[float, float, int] = (0.0, 1.0, 0),
    rounding: float = 0.0,
) -> CountTail:
    """Return the tails of the count Bin(held, own[0]) + Bin(users - held, other[0]) + Bin(extra[2], extra[0]).

    `own`, `other` and `extra` have a probability and its complement; the smaller of both has a relative error of at most
    `rounding`.
    """
    one, zero = (np.array([own[i], other[i], extra[i]]) for i in (0, 1))

    def tail(y: int, held: int, upper: bool) -> float:
        counts = np.array([held, users - held, extra[2]], dtype=np.float64)
        return log_tail(one, zero, counts, float(counts @ one), y, upper, rounding).upper

    return tail


def _first(value: Callable[[int], float], low: int, high: int, start: float, scale: float) -> int:
    """Return the least integer in low..high at which the nondecreasing function is positive, or `high` if there is none."""
    # The search is for the distance from `low`, which is at most 2**53: not every integer below -2**53 is a double.
    values: dict[int, float] = {}

    def at(t: float) -> float:
        whole = math.floor(t)
        if whole not in values:
            values[whole] = value(low + whole)
        return values[whole]

    last = high - low
    above = min(max(math.floor(start) - low, 0), last)
    below, step = above, max(1, math.ceil(scale / 4))
    while at(above) <= 0:
        if above == last:
            return high
        below, above, step = above, min(last, above + step), 2 * step
    while at(below) > 0:
        if below == 0:
            return low
        above, below, step = below, max(0, below - step), 2 * step
    _, crossing, _, _ = narrowed(at, below, above, at(below), at(above), rtol=0.0, xtol=0.25,
                                 enough=lambda a, b, *_: math.floor(b) - math.floor(a) <= 1)
    return low + math.floor(crossing)


def around(estimate: Any, reach: float, top: float) -> Ends:
    """Return the estimate minus and plus `reach`, clipped to [0, top]."""
    lower, upper = (np.clip(np.nextafter(np.asarray(estimate) + way * reach, way * math.inf), 0.0, top) for way in (-1, 1))
    return plain(lower), plain(upper)
