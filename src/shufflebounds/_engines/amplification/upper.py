"""The upper bound of delta for every dataset of the other users: the smallest of several bounds, each with a name."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from shufflebounds._base.caches import cached_property
from shufflebounds._base.limits import LARGEST_EXPONENT, SEARCH_GAP, TINY
from shufflebounds._base.types import FloatArray
from shufflebounds._engines.amplification.lower import LowerBounds
from shufflebounds._engines.amplification.randomizer_laws import Distributions
from shufflebounds._engines.amplification.two_users import TwoUsers
from shufflebounds._engines.datasets.boxes import LITTLE_WORK, NUMBERS, BoxesOfDatasets, most_in_boxes, with_equal_values
from shufflebounds._engines.datasets.enumerated import MixedData, merged_outputs
from shufflebounds._engines.datasets.every import Shares, extreme_rows, most_enumerated
from shufflebounds._engines.datasets.largest_sum import single_bounds
from shufflebounds._engines.datasets.worst import FEWEST_USERS, WorstDataset
from shufflebounds._engines.excess.evaluation import Effort
from shufflebounds._engines.excess.excess_law import ExcessLaw

__all__ = ["EVERY", "MESSAGE", "UpperBounds"]

_HIDDEN = 4.0
"""The datasets of fewer users are searched for an upper bound only if n min_x R_x(y) < _HIDDEN u max_x R_x(y) for some output y,
where R_x(y) is its probability for the input x and u the largest number of users whose datasets are enumerated; otherwise the
bound by the privacy blanket is smaller.
Lowered: the bound may rise with the number of users. Raised: arrays of shuffled matrices take five times as long."""

_CLEARLY = 0.2
"""Difference in log delta that decides which of two bounds are computed: D over all datasets, or B by the privacy blanket. If D is
below an approximation of B by more than _CLEARLY, B is not computed. If D cannot be below B by more than _CLEARLY, D is not
computed. Raised: B is computed more often, and D less often. Lowered: B may be omitted although it is smaller than D,
by at most this difference if the approximation is close."""

_WORTHWHILE = 0.02
"""A search over datasets that cannot reduce the bound of log delta by more than _WORTHWHILE (SEARCH_GAP for at most three outputs)
is omitted, unless the bound could then rise with the number of users. Raised: less tight bounds of few users. Lowered: longer run
time, and bounds that take longer to certify."""

_FEW_OF_NOISE = 64
"""Largest number of users for which the bound for two users of normal noise is computed; for more users, other bounds are smaller.
Up to this expected number of messages the blanket is computed, too. Raised: longer run time. Lowered: less tight bounds of few
users."""

_BLANKET, _BITS, _DATASETS, EVERY = "privacy blanket", "shuffled bits", "worst dataset", "every dataset"
_STRONGER, MESSAGE = "every dataset of a stronger protocol", "one message alone"


class UpperBounds:
    """The upper bound at one eps, and the name of the argument that gives it.

    `mixed` gives the largest delta over all datasets, by enumeration; None if there are too many. `bits` returns an upper bound of
    log delta at one eps for a shuffled randomized response, of which the messages of this protocol are a post-processing.
    """

    def __init__(self, laws: Distributions, users: int, mixed: MixedData | None = None,
                 bits: Callable[[float], float] | None = None) -> None:
        self._laws, self._users, self._bits = laws, users, bits
        self._mixed = mixed

    @property
    def of_blanket(self) -> bool:
        """Whether the bound is that of the privacy blanket alone."""
        return self._mixed is None and self._bits is None and not self.has_search

    @property
    def has_search(self) -> bool:
        """Whether there is an upper bound that takes longer than the blanket and may be smaller."""
        return self.over_datasets is not None or bool(self._stronger_protocols) or self.two_users is not None

    @property
    def has_cells(self) -> bool:
        """Whether the bound over all datasets divides inputs into cells, so that one value may take a second."""
        return self.over_datasets is not None and self.over_datasets.has_cells

    @property
    def may_be_exact(self) -> bool:
        """Whether a search over datasets may find the largest delta of all."""
        return any(protocols.most == self._users for protocols in self._stronger_protocols)

    def log_delta(self, eps: float, effort: Effort) -> float:
        """Return the upper bound of log delta."""
        smallest = 0.0
        for _, value in self._named(eps, effort=effort):
            smallest = min(smallest, value)
        return smallest

    def without_search(self, eps: float) -> float:
        """Return the smallest of the bounds and approximations that take little time."""
        return min(0.0, *(value for _, value in self._named(eps, search=False)))

    def argument(self, eps: float, *, search: bool = True, alone: float = math.inf) -> str:
        """Return the name of the smallest bound at one eps, among those of :meth:`without_search` if `search` is false.

        `alone` is the bound by the target's message alone. This bound is named only if all other bounds are larger, or if there are
        none.
        """
        named = self._named(eps, search=search)
        return self.smallest([(MESSAGE, alone), *named]) if named else MESSAGE

    @staticmethod
    def smallest(bounds: list[tuple[str, float]]) -> str:
        """Return the name of the smallest bound. Of equal bounds, the last one of the list is named."""
        smallest = min(value for _, value in bounds)
        # If two theorems give the same number, the simpler one, which is later in the list, is named.
        return [name for name, value in bounds if value <= smallest][-1]

    def compared(self, eps: float) -> tuple[dict[str, float], dict[str, str]]:
        """Return the bounds that :meth:`log_delta` computes at one eps, and why every other bound is not computed."""
        computed: dict[str, float] = {}
        for name, value in self._named(eps):
            computed[name] = min(value, computed.get(name, 0.0))
        exact = "because the enumeration is exact" if self._mixed is not None else ""
        few = f"which needs {FEWEST_USERS} users" if self._users < FEWEST_USERS else ""
        reasons = {
            EVERY: "because there are too many",
            _DATASETS: exact or few or ("which cannot be clearly smaller" if self.over_datasets else
                                        "which this randomizer does not have, or does not need"),
            _BLANKET: exact or "which is clearly larger by an approximation",
            _BITS: "which needs two inputs and a finite budget",
            _STRONGER: exact or ("because one of its datasets has a larger delta" if self._stronger_protocols else
                                 "because none is both enumerable and close"),
        }
        return computed, {name: reason for name, reason in reasons.items() if name not in computed}

    def of_blanket_at(self, eps: float, *, search: bool = True) -> bool:
        """Return True if `eps` is infinite or the privacy blanket is the smallest bound at `eps`."""
        return eps == math.inf or self.argument(eps, search=search) == _BLANKET

    def _named(self, eps: float, *, search: bool = True, effort: Effort = Effort.FINE) -> list[tuple[str, float]]:
        """Return the upper bounds of log delta at one eps, as pairs of a name and a bound; a simpler theorem is later."""
        # Above LARGEST_EXPONENT, e^eps is not a double. As delta does not increase with eps, the bound at this smaller eps is
        # valid.
        eps = min(eps, LARGEST_EXPONENT)
        named = self._without_stronger(eps, search, effort)
        return named + [(_STRONGER, value) for _, _, value in self._searched(eps, named, effort)] if search else named

    def _searched(self, eps: float, named: list[tuple[str, float]], effort: Effort) -> Iterator[tuple[_Stronger, float, float]]:
        """Yield stronger protocols with the smallest bound of log delta that was known before, and with the bound of each."""
        smallest = min((value for _, value in named), default=0.0)
        for protocols in self._stronger_protocols:
            for users in protocols.numbers(effort):
                value, settled = protocols.log_delta(users, eps, smallest, effort)
                yield protocols.of(users), smallest, value
                smallest = min(smallest, value)
                if settled:
                    break

    def _without_stronger(self, eps: float, search: bool, effort: Effort) -> list[tuple[str, float]]:
        """Return the bounds of `_named` except those of a search over datasets."""
        # An enumeration gives the exact maximum, so the bounds by the blanket and over all datasets are not computed.
        named = [] if self._mixed is None else [(EVERY, self._mixed.upper(eps))]
        named = named or self._blanket_or_datasets(eps, search, effort)
        if self._bits is not None:
            named.append((_BITS, self._bits(eps)))
        if self.two_users is not None:
            named.append((_STRONGER, float(self.two_users.log_delta(np.array([eps]), True)[0])))
        return named

    def witnesses(self, eps: float) -> list[tuple[int, list[tuple[Shares, tuple[int, int]]]]]:
        """Return the number of users of the stronger protocol with the smallest bound, and datasets that prove this bound
        (`BoxesOfDatasets.witness`); or an empty list.
        """
        eps = min(eps, LARGEST_EXPONENT)
        searched = list(self._searched(eps, self._without_stronger(eps, True, Effort.FINE), Effort.FINE))
        # Larger bounds are not stated, so their datasets prove nothing.
        protocol, smallest, value = min(searched, key=lambda one: one[2], default=(None, 0.0, math.inf))
        return [(protocol.users, protocol.witness(eps, smallest))] if protocol is not None and value < math.inf else []

    @cached_property
    def heavy(self) -> bool:
        """Whether X (`ExcessLaw`) of the privacy blanket has heavy tails for some pair of inputs."""
        return any(law.heavy for law in self._laws.above)

    def _blanket_or_datasets(self, eps: float, search: bool, effort: Effort) -> list[tuple[str, float]]:
        """Return pairs of a name and a bound: the bound by the privacy blanket, the bound over all datasets, or both."""
        above, datasets, shared = self._laws.above, self.over_datasets, effort is not Effort.FINE
        # The distribution of X with the largest second moment most often gives the largest delta. A matrix may have thousands of
        # distributions.
        widest = max(above, key=lambda law: law.spread(eps)) if len(above) > 1 else above[0]
        near = -math.inf if datasets is None else self._rough_blanket(eps, widest)

        def blanket() -> float:
            if not search:
                return self._rough_blanket(eps, widest)
            # `bounds` are quick upper bounds by Lemma H (docs/theorems/worst-dataset). A distribution is not evaluated if its entry
            # of `bounds` is smaller than the largest value so far.
            bounds = single_bounds(above, eps, self._users) if len(above) > 1 else [math.inf]
            largest = -math.inf
            for place in np.argsort(np.negative(bounds), kind="stable").tolist():
                if bounds[place] <= largest:
                    break
                largest = max(largest, above[place].log_phi_side(eps, self._users, upper=True, effort=effort))
            return largest

        by_blanket = math.inf
        if datasets is not None and (self.heavy or datasets.has_cells):
            # The bound over all datasets takes longer than that by the blanket. The former is not needed at small delta, where the
            # two bounds are about equal, nor for few users, for whom its error term is large.
            lowest = datasets.least_log_delta(eps, near, near - 2 * _CLEARLY)
            if lowest > near - 2 * _CLEARLY:
                by_blanket = blanket()
                datasets = None if lowest > by_blanket - _CLEARLY else datasets
        # `rough` omits the pairs and inputs that are rarely the worst, so it takes less time than the bound over all datasets. The
        # bound over all datasets is not computed if `rough` is not below the bound by the blanket.
        by_datasets, rough = math.inf, math.inf if datasets is None else datasets.log_delta(eps, every=False, shared=shared)
        if by_blanket == math.inf and rough > near - _CLEARLY:
            by_blanket = blanket()
        if datasets is not None and rough < by_blanket:
            by_datasets = rough
            if search and datasets.has_cells:
                by_datasets = datasets.log_delta(eps, shared=shared, ceiling=min(by_blanket, datasets.log_blanket(eps)))
                # `near` is a poor approximation for few messages.
                few = self._laws.participation < 1 and self._users * self._laws.participation < _FEW_OF_NOISE
                if by_blanket == math.inf and (few or by_datasets > near - _CLEARLY):
                    by_blanket = blanket()
        return [(name, value) for name, value in ((_DATASETS, by_datasets), (_BLANKET, by_blanket)) if value < math.inf]

    def _rough_blanket(self, eps: float, widest: ExcessLaw) -> float:
        """Return an approximate log delta by the privacy blanket; the distribution `widest` of X likely gives the largest delta."""
        if self.over_datasets is not None:
            # `log_blanket` may be far too large for heavy tails, `approximate_log_phi` for few users.
            return min(self.over_datasets.log_blanket(eps), widest.approximate_log_phi(eps, self._users))
        return max(law.rough_log_phi(eps, self._users).upper for law in self._laws.above)

    @cached_property
    def over_datasets(self) -> WorstDataset | None:
        """The bound over all datasets (docs/theorems/worst-dataset), or None if there is none for this number of users."""
        if self._users < FEWEST_USERS or self._mixed is not None or self._laws.over_datasets is None:
            return None
        return WorstDataset(self._laws.over_datasets, self._users)

    @cached_property
    def two_users(self) -> TwoUsers | None:
        """The bound for two users of normal noise; the messages of more users are a post-processing of two users' messages."""
        return self._laws.two_users if 2 <= self._users <= _FEW_OF_NOISE else None

    @cached_property
    def _stronger_protocols(self) -> tuple[_StrongerProtocols, ...]:
        """Protocols of fewer users, of which this protocol is a post-processing, for each of one or two matrices.

        One more user, of any input x, adds a draw from R_x to the messages, which is post-processing. Partial participation s is
        post-processing of full participation: each message is removed with probability 1 - s. So for every dataset delta is at most
        the largest delta for fewer users, and at most the delta for full participation.
        """
        matrix, thinned = self._laws.matrix, self._laws.thinned_matrix
        if matrix is None or thinned is None or self._mixed is not None or all(pair.attained for pair in self._laws.pairs):
            return ()
        matrices = [extreme_rows(merged_outputs(rows)) for rows in (thinned, *([matrix] if self._laws.participation < 1 else []))]
        protocols = (_StrongerProtocols(self._laws, rows, self._users, i == 0) for i, rows in enumerate(matrices))
        return tuple(one for one in protocols if one.most > 1 and (one.most == self._users or (
            self._users * one.rows.min(axis=0) < _HIDDEN * one.fewest * one.rows.max(axis=0)).any()))


class _StrongerProtocols:
    """The protocols with the matrix `rows` and at most `users` users, as far as their datasets can be searched.

    `own` states whether the one with `users` users is the protocol whose bound is needed, and not one of full participation.
    """

    def __init__(self, laws: Distributions, rows: FloatArray, users: int, own: bool) -> None:
        self._laws, self._own_users, self.rows = laws, users if own else 0, with_equal_values(rows)
        self.gain = _WORTHWHILE if rows.shape[1] > 3 else SEARCH_GAP
        self.fewest = min(most_enumerated(rows), users)
        self.most = max(min(most_in_boxes(self.rows), users), self.fewest)
        self._made: dict[int, _Stronger] = {}

    def of(self, users: int) -> _Stronger:
        """Return the protocol with this number of users."""
        if users not in self._made:
            self._made[users] = _Stronger(self.rows, users, LowerBounds(self._laws, users, None))
        return self._made[users]

    def log_delta(self, users: int, eps: float, smallest: float, effort: Effort) -> tuple[float, bool]:
        """Return an upper bound of log delta for `users` users, and whether no search for fewer users can reduce the known bounds.

        This is so if the bound is the maximum for this number of users, or if delta of a known dataset is at least the known bound
        `smallest`. In the latter case the search, of about 0.1 s, is not worth its time, and the bound is inf. The search is also
        omitted if it can reduce `smallest` by at most `gain`, and `smallest` is at most delta of a known dataset of one user less.
        Then the bound does not rise with the number of users.
        """
        protocol, fine = self.of(users), effort is Effort.FINE
        attained, useful = protocol.largest_known(eps), smallest if fine else smallest - self.gain
        if attained >= useful or (attained >= smallest - self.gain and 2 < users == self._own_users
                                  and self.of(users - 1).largest_known(eps) >= smallest):
            return math.inf, True
        return protocol.boxes.upper(eps, attained, useful, math.inf if fine else LITTLE_WORK)

    def numbers(self, effort: Effort) -> list[int]:
        """Return the numbers of users whose bounds are to be used, in decreasing order, until one of them is settled.

        A search that ends before the maximum is known divides fewer boxes for more users, so its bound may be larger than that of a
        search for fewer users. The number of boxes changes only after the numbers of a list. All of these are used, so that the
        bound does not rise with the number of users.
        """
        between = [users for users in NUMBERS if self.fewest < users < self.most] if effort is Effort.FINE else []
        return sorted({self.fewest, *between, self.most}, reverse=True)


class _Stronger:
    """An upper bound of delta over all datasets of a protocol of few users, and so for every post-processing of this protocol."""

    def __init__(self, rows: FloatArray, users: int, lower: LowerBounds) -> None:
        self.boxes, self.users, self._lower = BoxesOfDatasets(rows, users), users, lower

    def witness(self, eps: float, smallest: float) -> list[tuple[Shares, tuple[int, int]]]:
        """Return the datasets that prove the bound of `_StrongerProtocols.log_delta`, at the same `smallest`."""
        return self.boxes.witness(eps, self.largest_known(eps), smallest)

    def largest_known(self, eps: float) -> float:
        """Return a lower bound of the largest log delta for this number of users."""
        alone = self._lower.log_delta(eps, Effort.SAMPLED)
        return max(alone, self._wide.log_phi_side(eps, self.users, upper=False, effort=Effort.SAMPLED))

    @cached_property
    def _wide(self) -> ExcessLaw:
        """The distribution of X (`ExcessLaw`) with the largest second moment at eps = 0, if all other users have one input."""
        rows = self.boxes.rows
        with np.errstate(divide="ignore"):
            scaled = [rows / np.sqrt(np.maximum(row, TINY)) for row in rows]
        gaps = np.array([((rows[:, None] - rows[None]) ** 2).sum(axis=2) for rows in scaled])
        other, first, second = np.unravel_index(int(gaps.argmax()), gaps.shape)
        return ExcessLaw.of(rows[first], rows[second], rows[other], 0.0).widened(upper=False)
