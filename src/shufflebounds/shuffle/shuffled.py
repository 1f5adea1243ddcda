"""The privacy profile of any local randomizer after a shuffle.

The upper bound is valid for every dataset; it is the privacy blanket of Balle, Bell, Gascon and Nissim (2019) or the bound of
docs/theorems/worst-dataset. The lower bound is attained by the worst dataset that is found.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from shufflebounds._base import validate as _validate
from shufflebounds._base.caches import Kept, cached_property
from shufflebounds._base.calls import class_given
from shufflebounds._base.crossing import Curve
from shufflebounds._base.docs import with_passages
from shufflebounds._base.limits import CACHED_ANSWERS, CACHED_BYTES, COMPARED, FEW, LARGEST_EXPONENT, MANY, SAME_LOG, SEARCH_GAP
from shufflebounds._base.progress import tick
from shufflebounds._base.search import bracket
from shufflebounds._base.types import ULP, FloatArray, Interval, IntervalArray, consistent
from shufflebounds._core._deployments import Laws
from shufflebounds._engines.allocation.moments import LARGEST_ORDER, allocation_renyi
from shufflebounds._engines.bits.given_bits import flip_probability
from shufflebounds._engines.datasets.enumerated import MixedData, merged_outputs
from shufflebounds._engines.datasets.every import enumerated, most_enumerated
from shufflebounds._engines.datasets.largest_message import LargestMessage
from shufflebounds._engines.datasets.largest_sum import single_bounds
from shufflebounds._engines.datasets.laws import DatasetLaws
from shufflebounds._engines.datasets.worst import FEWEST_USERS, WorstDataset
from shufflebounds._engines.excess.blanket_moments import BlanketRenyi
from shufflebounds._engines.excess.evaluation import Effort, largest_of
from shufflebounds._engines.excess.heavy_tails import few_enough
from shufflebounds._engines.excess.laws import BLUR, ExcessLaw, PairLaws, Randomizer, packed
from shufflebounds._engines.excess.packed import epsilons
from shufflebounds._losses.release import SINGLE, CurveBounds, DominatingPairInfo, Losses, Reverse, Sampling
from shufflebounds._losses.renyi import Tail
from shufflebounds.profile import PrivacyProfile
from shufflebounds.profile.between import BetweenProfiles
from shufflebounds.profile.calibration import one_of_releases
from shufflebounds.profile.sizing import fewest_users, largest_budget
from shufflebounds.shuffle.bits import ShuffledBits

__all__ = ["Shuffled"]

_CLEARLY = 0.2
"""If the bound over all datasets is below an approximation of that by the blanket by more than this in log delta, the latter is not
computed. If it cannot be below the latter by more than this, it is not computed itself. Raised: the former takes longer, and less
time is spent where the two are about equal. Lowered: the larger of the two bounds might be returned."""

_MARGIN = 35.0
"""See `Shuffled._shallow`. Raised: longer run time at deltas that are large enough. Lowered: less tight bounds at small delta."""

_DEEP_CELLS, _TEST_CELLS = 4 * MANY, 32 * MANY
"""Numbers of cells of a density for the upper bound at very small delta, and for the tests of the lower bound. Raised: longer run
time. Lowered: less tight bounds."""

_CLOSE = 0.02
"""Relative gap of the bounds of a Renyi divergence by one large message at which both are returned. Raised: less tight bounds.
Lowered: longer run time."""

_BLANKET, _BITS, _DATASETS, _EVERY = "privacy blanket", "shuffled bits", "worst dataset", "every dataset"
_STRONGER = "every dataset of a stronger protocol"


@with_passages
@dataclass(frozen=True, repr=False)
class Shuffled(BetweenProfiles):
    r"""The shuffled messages of users who each run the same local randomizer, with an upper and a lower bound.

    .. math:: \delta(\varepsilon) = \frac{1}{n}\, \mathbb{E}(X_1 + \cdots + X_n)_+, \qquad
        X = \frac{R_0 - e^\varepsilon R_1}{m} \text{ with mass } m, \quad 0 \text{ with the rest of the probability,}

    where :math:`R_x` is the output distribution of input x and 0, 1 are the target's two inputs. With :math:`m = R_{x^*}` the
    formula is the exact value if all other users have the input x*. With :math:`m = \inf_x R_x`, the privacy blanket, it is an
    upper bound for every dataset. A second upper bound for every dataset is this sum for n - 2s users (s is chosen) whose inputs
    are the worst possible ones, plus an error term of order :math:`n^{-5/2}`.

    Parameters
    ----------
    randomizer : Randomizer
        A mechanism of :mod:`shufflebounds.mechanisms`, or any object with a method ``excess_laws`` for its distributions of X.
    users : int
        Number n of users, 1 to 2**53, including the target.
    participation : float
        Probability s in [1e-12, 1] with which each user, including the target, sends a message. The number of messages is public:
        "no message" is an output like any other.
    inputs : sequence of float, optional
        For Laplace and Gaussian noise: the values that users may have, at least two and all in an interval of length
        `sensitivity`. None stands for every value of the interval.

    Notes
    -----
    Neighbours: one user's input is replaced. The upper bound holds for every dataset of the other users: it is the smaller of the
    privacy blanket and of the bound of docs/theorems/worst-dataset, which is offered for matrices without zeros, local hashing,
    subset selection, unary encoding, RAPPOR of up to 26 hashes, Hadamard response, wide caps of PrivUnit, Laplace and Gaussian
    noise, Gaussian noise on vectors, geometric noise of sensitivity 2 or more, and discrete Gaussian noise. For noise it holds for
    every pair of the target's inputs and every input of the other users. :meth:`argument` returns which one is used.
    For Gaussian and discrete Gaussian noise and a delta below 1e-11 the upper bound is a privacy blanket with outputs truncated at
    a probability of e^-700, and the lower bound is that of the largest message, if all other users have an end of the interval: for
    sigma = 1 and 1e4 users, eps of the two differs by 0.4 % at delta = 1e-30 and 0.1 % at 1e-100.
    The lower bound is attained by the dataset that :meth:`data` returns: all other users have the same input, or i.i.d. inputs from
    a mixture that the randomizer lists. For a matrix and few users (1023 of
    two outputs; with two inputs, 100 of three and 40 of four outputs) every dataset is enumerated, and both bounds equal the
    largest delta, up to rounding. This delta is also an upper bound for more users. For up to 2047 users of two outputs the lower
    bound searches datasets with several inputs.

    A message of a randomizer with two inputs and pure budget eps0 is a post-processing of one bit of randomized response:
    R_0 = e^eps0 a + b and R_1 = a + e^eps0 b for measures a and b (Kairouz, Oh, Viswanath). So :class:`ShuffledBits` is an upper
    bound, too; it is exact over all datasets for k-ary response of two values and geometric noise of sensitivity 1. The smaller
    upper bound is used.

    Both bounds are maxima over the pairs of inputs that the randomizer lists: all of them up to symmetry, or a pair that is
    proven to be the worst, as the two ends are for Laplace, Gaussian and geometric noise on an interval
    (docs/theorems/interval-inputs). For discrete Gaussian noise of sensitivity 2 or more, all pairs are compared with the ends
    numerically for the given parameters, which is not a proof; the comparison is omitted if inputs times outputs exceed 2**20, and
    the description of the pair states this. The two bounds of the sum itself have a gap of about 2e-7 in log delta, 1e-12 for few
    users; densities are discretized into cells, which adds about 1e-5. The run time does not depend on the number of users: below a
    millisecond for one delta of the blanket of a randomizer of a few atoms, about 10 ms for densities. One eps of the bound over
    all datasets takes 5 to 20 ms for a randomizer of few outputs, .1 to 1 s for noise, and up to 3 s for Gaussian noise of a small
    sigma or with few users, where rare messages dominate (on vectors up to 20 s).

    {balle2019}

    Kairouz, P., Oh, S., Viswanath, P. The composition theorem for differential privacy. ICML 2015 (two inputs).

    Examples
    --------
    >>> from shufflebounds import mechanisms, shuffle
    >>> tenary = shuffle.Shuffled(mechanisms.KaryResponse(10, 1.0), users=10**4)
    >>> print(f"{tenary.epsilon(1e-6):.6f} {tenary.epsilon(1e-6, bound='lower'):.6f}")
    0.023253 0.023253
    >>> tenary.data(0.02)
    'every other user has a third value'
    """

    randomizer: Randomizer
    users: int
    participation: float = 1.0
    inputs: tuple[float, ...] | None = None

    _prepares: ClassVar[bool] = True
    theorem: ClassVar[str] = (
        "upper bound, proven for every dataset of the other users: the smallest of the privacy blanket (Balle, Bell, Gascon, "
        "Nissim 2019), the bound of the worst dataset (proved in docs/theorems/worst-dataset) and, for two inputs, shuffled bits; "
        "lower bound attained by a dataset that is named"
    )
    neighbours: ClassVar[str] = "replace one user's input; the analyst sees the shuffled messages"

    def __post_init__(self) -> None:
        _validate.integer_field(self, "users", 1)
        # With a smaller participation, masses could underflow for large budgets.
        _validate.real_field(self, "participation", 1e-12, 1)
        if not isinstance(self.randomizer, Randomizer) or isinstance(self.randomizer, type):
            advice = class_given(self.randomizer) or ": pass one first, such as KaryResponse(10, 2.0), then users"
            raise TypeError(f"randomizer={self.randomizer!r} must be a local randomizer of shufflebounds.mechanisms{advice}")
        if self.inputs is not None:
            listed = getattr(self.randomizer, "with_inputs", None)
            if listed is None:
                raise TypeError(f"inputs={self.inputs!r} is for Laplace and Gaussian noise: leave it out for {self.randomizer!r}")
            values = np.unique(_validate.real_array("inputs", self.inputs))
            if values.size < 2:
                raise ValueError(f"inputs={self.inputs!r} must hold at least two different values")
            object.__setattr__(self, "inputs", tuple(values.tolist()))
            object.__setattr__(self, "_listed_inputs", listed(self.inputs))

    def __repr__(self) -> str:
        listed = "" if self.inputs is None else f", inputs={self.inputs!r}"
        return f"Shuffled(randomizer={self.randomizer!r}, users={self.users}, participation={self.participation}{listed})"

    def __getattr__(self, name: str) -> Any:
        # Called for names that this class does not have. During unpickling the fields are not set yet.
        if not name.startswith("_") and hasattr(self.__dict__.get("randomizer"), name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}; its randomizer has it: "
                                 f".randomizer.{name}", name=name, obj=self)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    @property
    def _source(self) -> Randomizer:
        """The randomizer, or, if `inputs` is given, the finite randomizers that bound it for these inputs."""
        source: Randomizer = self.randomizer if self.inputs is None else vars(self)["_listed_inputs"]
        return source

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        # Cached distributions are not pickled.
        return type(self), (self.randomizer, self.users, self.participation, self.inputs)

    @cached_property
    def _pairs(self) -> tuple[PairLaws, ...]:
        """The distributions of X for the ordered pairs of inputs, with participation taken into account."""
        return tuple(pair.thinned(self.participation) for pair in _variables(self._source))

    @cached_property
    def _above(self) -> tuple[ExcessLaw, ...]:
        """The different distributions of X of the privacy blanket."""
        return tuple({id(pair.upper): pair.upper for pair in self._pairs}.values())

    @cached_property
    def _below(self) -> tuple[tuple[str, str, ExcessLaw], ...]:
        """All distributions of X for lower bounds, each with descriptions of the pair of inputs and of the dataset."""
        return tuple((pair.inputs, text, law) for pair in self._pairs for text, law in pair.lower)

    @cached_property
    def _matrix(self) -> FloatArray | None:
        """The matrix of the randomizer (inputs, outputs) with full participation; None if it has no matrix."""
        matrix = getattr(self._source, "_matrix", None)
        rows: FloatArray | None = matrix() if matrix is not None else None
        return rows

    @cached_property
    def _thinned_matrix(self) -> FloatArray | None:
        """The matrix with "no message" as one more output."""
        rows, share = self._matrix, self.participation
        return rows if rows is None or share == 1 else np.append(rows * share, np.full((len(rows), 1), 1 - share), axis=1)

    @cached_property
    def _mixed(self) -> MixedData | None:
        """Search over datasets whose users have different inputs, for few users of a small randomizer; otherwise None."""
        data = None if self._thinned_matrix is None else MixedData(self._thinned_matrix, self.users)
        return data if data is not None and data.listed else None

    @property
    def _every(self) -> bool:
        """Whether every dataset is enumerated."""
        return self._mixed is not None and self._mixed.every

    @cached_property
    def _stronger(self) -> tuple[MixedData, ...]:
        """Protocols of which this one is a post-processing, whose datasets are all enumerated.

        One more user, of any input x, adds a draw from R_x to the messages, which is post-processing. Partial participation s is
        post-processing of full participation: each message is removed with probability 1 - s. So for every dataset delta is at most
        the delta for fewer users, and at most the delta for full participation.
        """
        if self._matrix is None or self._thinned_matrix is None or self._every:
            return ()
        found = []
        for rows in (self._thinned_matrix, *([self._matrix] if self.participation < 1 else [])):
            merged = merged_outputs(rows)
            # The protocol with fewer users gives an upper bound. It is tried if at least 2/3 of the users can be enumerated: for
            # 3 random matrices with two outputs and 3 eps each, it was the smallest bound in one case, with 1.08 times as many
            # users as were enumerated, and never with more. The enumeration takes about 0.1 s.
            if enumerated(merged, -(-2 * self.users // 3)):
                found.append(MixedData(merged, min(most_enumerated(merged), self.users)))
        return tuple(found)

    @property
    def _has_search(self) -> bool:
        """Whether there is an upper bound that takes longer than the blanket and may be smaller."""
        return self._over_datasets is not None or bool(self._stronger)

    def _widest(self, eps: float) -> list[int]:
        """Return the indices of the distributions in `_below` with the largest second moments, at most COMPARED, largest first.

        The second moment ignores outputs that identify the target's message. Where these have mass, the distribution with the
        largest mass of them takes the last place.
        """
        if len(self._below) > COMPARED and eps > 0:
            # A matrix of many inputs has thousands of distributions. Their order is determined at powers of two only, because it
            # changes slowly with eps; every choice gives a valid lower bound.
            eps = 2.0 ** round(math.log2(eps))

        def ordered() -> list[int]:
            wide = np.array([law.spread(eps) for _, _, law in self._below])
            widest = [int(place) for place in np.argsort(-wide, kind="stable")[:COMPARED]]
            if len(self._below) > COMPARED and self._most_lost not in widest:
                widest[-1] = self._most_lost
            return widest

        return self._widest_known.of(eps, ordered)

    @cached_property
    def _most_lost(self) -> int:
        """The index in `_below` of the distribution with the largest mass of outputs that identify the target's message."""
        return int(np.argmax([law.lost for _, _, law in self._below]))

    @cached_property
    def _widest_known(self) -> Kept[float, list[int]]:
        """A cache of :meth:`_widest`."""
        return Kept(CACHED_ANSWERS)

    def _best_below(self, eps: float, effort: Effort = Effort.FINE) -> tuple[float, int]:
        """Return the largest lower bound at one eps over `_below`, and its index."""
        if not self._below:
            return -math.inf, 0
        tried = self._widest(eps)

        def value(place: int) -> float:
            law: ExcessLaw = self._below[tried[place]][2]
            return law.log_phi_side(eps, self.users, upper=False, effort=effort)

        if len(tried) > 1:
            found: dict[int, Interval] = {}

            def rough(place: int) -> float:
                found[place] = self._below[tried[place]][2].rough_log_phi(eps, self.users)
                return found[place].lower

            near = [self._below[i][2].approximate_log_phi(eps, self.users) for i in tried]
            # For heavy tails a rough value takes as long as a close one, or longer.
            heavy = any(self._below[i][2].heavy for i in tried)
            error = 2.0 if heavy or few_enough(self.users) else 0.3
            if effort is not Effort.FINE or heavy:
                place, largest = largest_of(near, value, error)
                return largest, tried[place]
            least = largest_of(near, rough, error)[1]
            tried = [tried[place] for place, bounds in sorted(found.items()) if bounds.upper >= least]
        values = [value(place) for place in range(len(tried))]
        best = int(np.argmax(values))
        return values[best], tried[best]

    def _lower(self, eps: float, effort: Effort) -> float:
        alike = self._best_below(eps, effort)[0]
        return alike if self._mixed is None else max(alike, self._mixed.best(eps)[0])

    def _upper(self, eps: float, effort: Effort) -> float:
        least = 0.0
        for _, value in self._upper_bounds(eps, effort=effort):
            least = min(least, value)
        return least

    def _upper_bounds(self, eps: float, *, search: bool = True, effort: Effort = Effort.FINE) -> list[tuple[str, float]]:
        """Return the upper bounds of log delta at one eps, as pairs of a name (see `argument`) and a bound, the slowest first."""
        if self._exact is not None:
            return [(_BITS, float(self._exact[1]._log_delta(np.array([eps])).upper[0]))]
        # delta does not increase with eps, so a bound at a smaller eps is valid. Beyond, e^eps is not a double.
        eps = min(eps, LARGEST_EXPONENT)
        found = []
        if self._mixed is not None and self._mixed.every:
            # The enumeration gives the exact maximum. Another bound can be smaller only by rounding, where tails underflow.
            found.append((_EVERY, self._mixed.upper(eps)))
        if not found:
            found = self._blanket_or_datasets(eps, search, effort)
        if self._bits is not None:
            found.append((_BITS, float(self._bits._coarse_sides(np.array([eps])).upper[0])))
        found += [(_STRONGER, protocols.upper(eps)) for protocols in self._stronger]
        return found

    @cached_property
    def _heavy(self) -> bool:
        """Whether the distribution of the blanket has heavy tails for some pair."""
        return any(law.heavy for law in self._above)

    def _blanket_or_datasets(self, eps: float, search: bool, effort: Effort) -> list[tuple[str, float]]:
        """Return the bound by the privacy blanket or that over all datasets, or both, as in `_upper_bounds`."""
        datasets, shared = self._over_datasets, effort is not Effort.FINE
        bounds = single_bounds(self._above, eps, self.users) if len(self._above) > 1 else [math.inf]
        order = np.argsort(np.negative(bounds), kind="stable").tolist()
        near = -math.inf if datasets is None else self._rough_blanket(eps, self._above[order[0]])

        def blanket() -> float:
            if not search:
                return self._rough_blanket(eps, self._above[order[0]])
            # A distribution whose bound by Lemma H is smaller than the largest bound so far is not evaluated.
            largest = -math.inf
            for place in order:
                if bounds[place] <= largest:
                    break
                largest = max(largest, self._above[place].log_phi_side(eps, self.users, upper=True, effort=effort))
            return largest

        known = math.inf
        if datasets is not None and self._heavy:
            # In the tails of delta both bounds are about equal, and that over all datasets takes longer.
            least = datasets.least_log_delta(eps, near)
            if least > near - 2 * _CLEARLY:
                known = blanket()
                datasets = None if least > known - _CLEARLY else datasets
        # Without the pairs and inputs that are rarely the worst, the bound over all datasets takes less time and is at most larger.
        rough = math.inf if datasets is None else datasets.log_delta(eps, every=False, shared=shared)
        if known == math.inf and rough > near - _CLEARLY:
            known = blanket()
        found = [(_BLANKET, known)] if known < math.inf else []
        if datasets is not None and rough < known:
            closest = rough if not (search and datasets.has_cells) else datasets.log_delta(eps, shared=shared)
            found.insert(0, (_DATASETS, closest))
        return found

    def _deep_log_delta(self, eps: FloatArray) -> IntervalArray:
        """Return the bounds of `_sampled_log_delta`, improved by `_deepened`."""
        sides = self._sampled_log_delta(eps)
        return consistent(IntervalArray(*(self._deepened(eps, sides[upper], upper=upper) for upper in (False, True))),
                          "log delta at eps={!r}", eps)

    def _deepened(self, eps: FloatArray, found: FloatArray, *, upper: bool) -> FloatArray:
        """Return the given bounds of log delta, improved below `_shallow`, where the truncation of outputs matters.

        There the upper bound is at most that of `_deep`, and the lower bound at least that of `_largest_messages`.
        """
        places = np.flatnonzero(found < self._shallow) if self._deep is not None else np.empty(0, np.intp)
        if not places.size:
            return found
        assert self._deep is not None
        found = found.copy()
        if upper:
            found[places] = np.minimum(found[places], self._deep._log_side(eps[places], upper=True, effort=self._deep_effort))
        else:
            tests = [max(test.log_delta(e) for test in self._largest_messages) for e in eps[places].tolist()]
            found[places] = np.maximum(found[places], tests)
        return found

    def _deep_meets(self, log_delta: float) -> Callable[[float], bool]:
        """Return a function that says whether the upper bound of `_deep` at one eps is at most `log_delta`."""
        def meets(eps: float) -> bool:
            assert self._deep is not None
            return bool(self._deep._log_side(np.array([eps]), upper=True, effort=self._deep_effort)[0] <= log_delta)

        return meets

    @property
    def _deep_effort(self) -> Effort:
        """The effort for `_deep`: few large values of X are bounded closely only with the full effort, which takes little time."""
        assert self._deep is not None
        return Effort.SAMPLED if self._deep._pairs[0].upper.log_mass.size > MANY else Effort.FINE

    @cached_property
    def _largest_messages(self) -> tuple[LargestMessage, ...]:
        """Tests of the largest message, for outputs truncated at a far smaller probability."""
        pairs = self._source.excess_laws(cells=_TEST_CELLS, log_cut=self._deepest_cut)
        return tuple(LargestMessage(law.thinned(self.participation), self.users) for pair in pairs for _, law in pair.lower)

    @property
    def _shallow(self) -> float:
        """The smallest log delta for which the truncation of outputs does not matter.

        An output matters if its likelihood ratio exceeds the number of users, so that its probability is e^_MARGIN smaller.
        """
        return max(float(np.max(pair.upper.log_cut, initial=-np.inf)) for pair in self._pairs) + _MARGIN

    @property
    def _deepest_cut(self) -> float:
        """The log of the probability at which outputs are truncated in `_deep`; -inf if this is not available."""
        return float(getattr(self._source, "_deepest_cut", -math.inf))

    @cached_property
    def _deep(self) -> Self | None:
        """The same protocol with outputs truncated at a far smaller probability, and more cells; None if this is not available.

        One value takes up to a second.
        """
        if not self._deepest_cut > -math.inf:
            return None
        other = replace(self)
        pairs = self._source.excess_laws(cells=_DEEP_CELLS, log_cut=self._deepest_cut)
        vars(other).update(_deep=None, _over_datasets=None, _pairs=tuple(pair.thinned(self.participation) for pair in pairs))
        return other

    def _rough_blanket(self, eps: float, widest: ExcessLaw) -> float:
        """Return an approximate log delta by the privacy blanket; `widest` is the distribution with likely the largest Phi."""
        if self._over_datasets is not None:
            # Both are approximations. The first one may be far too large for heavy tails, the second one for few users.
            return min(self._over_datasets.log_blanket(eps), widest.approximate_log_phi(eps, self.users))
        return max(pair.upper.rough_log_phi(eps, self.users).upper for pair in self._pairs)

    @cached_property
    def _dataset_laws(self) -> DatasetLaws | None:
        """What the bound of docs/theorems/worst-dataset needs, or None if it is not known for the randomizer."""
        laws = getattr(self._source, "dataset_laws", None)
        data = None if laws is None else laws()
        return None if data is None else data.thinned(self.participation)

    @cached_property
    def _over_datasets(self) -> WorstDataset | None:
        """The bound of docs/theorems/worst-dataset, or None if there is none for this number of users."""
        if self.users < FEWEST_USERS or self._every or self._dataset_laws is None:
            return None
        return WorstDataset(self._dataset_laws, self.users)

    def _of_users(self, users: int, *, blanket: bool = False) -> Self:
        """Return the protocol for another number of users; the distributions that do not depend on it are not computed again.

        With `blanket`, the bound of docs/theorems/worst-dataset is not used.
        """
        other = replace(self, users=users)
        for name in ("_pairs", "_dataset_laws", "_matrix", "_thinned_matrix", "_budget", "_far"):
            vars(other)[name] = None if blanket and name == "_dataset_laws" else getattr(self, name)
        return other

    @cached_property
    def _exact(self) -> tuple[ShuffledBits, ShuffledBits] | None:
        """Two protocols of shuffled bits whose deltas are a lower and an upper bound of delta of this protocol.

        They exist for randomized response of one bit, whose flip probability is known up to rounding; otherwise the result is None.
        """
        flip = getattr(self._source, "_flip", None)
        if flip is None or self.participation < 1 or not 0 < self._pure_epsilon() < LARGEST_EXPONENT:
            return None
        low, high = flip
        # With a larger rounding error of the flip probability, for budgets below 1e-4, the bounds by the blanket are narrower.
        if not high - low <= 1e-10 * (0.5 - high):
            return None
        # More flipping is post-processing, so the protocol with the larger flip probability has the smaller delta.
        above = ShuffledBits(self.users, low)
        return above if high == low else ShuffledBits(self.users, high), above

    @cached_property
    def _bits(self) -> ShuffledBits | None:
        """Shuffled randomized response of the same budget, for a randomizer with two inputs; otherwise None.

        Every message of such a randomizer is a post-processing of one bit of randomized response.
        """
        if self._exact is not None:
            return self._exact[1]
        budget = self._pure_epsilon()
        if getattr(self._source, "_inputs", math.inf) != 2 or self.participation < 1 or not 0 < budget < LARGEST_EXPONENT:
            return None
        # The flip probability is rounded down, which gives an upper bound of delta.
        return ShuffledBits(self.users, flip_probability(budget).lower)

    def _log_side(self, eps: FloatArray, *, upper: bool, effort: Effort = Effort.FINE) -> FloatArray:
        if self._exact is not None:
            return self._exact[upper]._log_delta(eps)[upper]
        value = self._upper if upper else self._lower
        values = []
        for e in eps.tolist():
            values.append(value(e, effort) if e < self._pure_epsilon() else -math.inf)
            tick()
        found = np.array(values)
        if effort is Effort.FINE:
            found = self._deepened(eps, found, upper=upper)
        if not upper or self._amplified(float(eps.max(initial=0.0)), float(found.max(initial=-np.inf))):
            return found
        return np.asarray(np.minimum(found, self._unshuffled(eps)))

    def _amplified(self, eps: float, log_delta: float) -> bool:
        """Return whether :meth:`_unshuffled` is known to be above `log_delta` at every eps up to `eps`."""
        return eps <= self._far[0] and log_delta <= self._far[1]

    @cached_property
    def _far(self) -> tuple[float, float]:
        """(eps, :meth:`_unshuffled` at eps minus 1). The second number is below :meth:`_unshuffled` at every smaller eps.

        The reason is that :meth:`_unshuffled` does not increase with eps.
        """
        eps = min(0.5 * self._pure_epsilon(), 1.0)
        return eps, float(self._unshuffled(np.array([eps]))[0]) - 1.0

    def _unshuffled(self, eps: FloatArray) -> FloatArray:
        """Return an upper bound of log delta if the analyst knows the target's message: participation times the local delta.

        For few users the blanket bound of a density may exceed this bound, because the density is discretized.
        """
        if not isinstance(self.randomizer, PrivacyProfile):
            return np.zeros_like(eps)
        local = np.nan_to_num(self.randomizer._log_side(eps, upper=True), nan=0.0, posinf=0.0, neginf=-np.inf)
        moved = local + math.log(self.participation)
        return np.asarray(np.where(moved > -np.inf, moved + 4 * ULP * (1 - moved), -np.inf))

    def _log_delta(self, eps: FloatArray) -> IntervalArray:
        return IntervalArray(self._log_side(eps, upper=False), self._log_side(eps, upper=True))

    def _sampled_log_delta(self, eps: FloatArray) -> IntervalArray:
        """Return bounds with a larger gap in less time, for results that take many values."""
        return IntervalArray(*(self._log_side(eps, upper=upper, effort=Effort.SAMPLED) for upper in (False, True)))

    @property
    def _enclosing(self) -> tuple[PrivacyProfile, PrivacyProfile] | None:
        return self._exact

    def _gdp_mu(self, upper: bool) -> float:
        limit: float | None = None if self.inputs is not None else getattr(self.randomizer, "_mu_in_tails", None)
        if limit is None or not isinstance(self.randomizer, PrivacyProfile):
            return super()._gdp_mu(upper)
        # mu of the randomizer is an upper bound by joint convexity. For the lower bound all other users have the target's first
        # value; consider the event that some message exceeds T. The normal quantiles of its probabilities under the target's two
        # inputs differ by Delta/sigma + O(log(n)/T), as those of one message do, and T may be arbitrarily large. The limit
        # is mu for normal noise, and slightly less for discrete noise.
        return self.randomizer._gdp_mu(True) if upper else limit

    def _rdp(self, orders: FloatArray, upper: bool) -> FloatArray:
        # Where every dataset is enumerated, the divergence of each is known. That of the pair with the largest delta at each eps
        # may be larger than all of them.
        if self._mixed is None or not self._mixed.every or self._exact is not None or self._pair_info().losses.unbounded:
            below = self._messages_rdp(orders)
            if self._blanket_rdp is None:
                found = super()._rdp(orders, upper)
                return found if upper else np.maximum(found, below)
            # Where one rare message dominates, both bounds are known without values of delta, which take up to a minute.
            found = self._blanket_rdp.divergences(orders) if upper else below.copy()
            rest = self._blanket_rdp.divergences(orders) > below * (1 + _CLOSE)
            if rest.any():
                values = super()._rdp(orders[rest], upper)
                found[rest] = values if upper else np.maximum(values, below[rest])
            return found
        value = np.full(orders.size, math.inf)
        value[orders < math.inf] = self._mixed.renyi(orders[orders < math.inf], upper=upper)
        largest = self._pure_epsilon() if upper or (orders < math.inf).all() else self._last_positive(self._pure_epsilon())
        return np.asarray(np.minimum(value, largest))

    def _messages_rdp(self, orders: FloatArray) -> FloatArray:
        """Return lower bounds of the Renyi divergences of Gaussian noise if all other users have one end; else -inf."""
        if self._deep is None or self.participation < 1 or self.inputs is not None:
            return np.full(orders.size, -np.inf)
        assert isinstance(self.randomizer, PrivacyProfile)
        # If all other users have the target's second value, the likelihood ratio is the mean of n independent ratios. Its moment of
        # this order is at least that of one ratio divided by n^(order - 1). The moments of whole orders are known.
        local = self.randomizer
        found = local._rdp(orders, False) - math.log(self.users) * (1 + 2 * ULP)
        for i, order in enumerate(np.floor(np.minimum(orders, LARGEST_ORDER)).astype(int).tolist()):
            if order > 1:
                one = local._rdp(np.arange(2.0, order + 1), False)
                found[i] = max(found[i], allocation_renyi(order, self.users, one, upper=False))
        return np.asarray(found)

    @cached_property
    def _blanket_rdp(self) -> BlanketRenyi | None:
        """Renyi divergences of the privacy blanket of Gaussian noise on an interval; None for other randomizers."""
        if self._deepest_cut == -math.inf or self.inputs is not None or len(self._pairs) > 1:
            return None
        return BlanketRenyi(self._pairs[0].upper, self.users, super()._mixture_rdp)

    def _mixture_rdp(self, orders: FloatArray) -> FloatArray:
        return super()._mixture_rdp(orders) if self._blanket_rdp is None else self._blanket_rdp.divergences(orders)

    def _mixture_tail(self) -> Tail | None:
        local, blanket = super()._mixture_tail(), self._blanket_rdp
        if local is None or blanket is None:
            return local
        return lambda power, start: min(local(power, start), blanket.tail(power, start))

    def _mixture(self) -> tuple[tuple[PrivacyProfile, ...], float]:
        # The shuffled messages are a post-processing of the target's message. If the target does not participate, no message is
        # sent for either input.
        if not isinstance(self.randomizer, PrivacyProfile):
            return (), 1.0
        sides = self.randomizer, self.randomizer.reverse()
        return tuple({id(side): side for side in sides}.values()), self.participation

    def data(self, eps: float) -> str:
        """Return a description of the dataset of the other users for the lower bound at one eps.

        Parameters
        ----------
        eps : float
            Privacy loss in nats, >= 0.

        Returns
        -------
        str
            The dataset, with the target's pair of inputs if there are several.

        {raises: If `eps` is negative or not finite.}
        """
        eps = _validate.real("eps", eps, 0)
        value, place = self._best_below(eps)
        if self._mixed is not None:
            mixed, shares, target = self._mixed.best(eps)
            if mixed > value + SAME_LOG:
                parts = (f"{count} {'has' if count == 1 else 'have'} input {x}" for x, count in enumerate(shares) if count)
                inputs = " and ".join(parts)
                return f"of the other users {inputs}; target between inputs {target[0]} and {target[1]}"
        if not self._below:
            return "none known"
        inputs, text, _ = self._below[place]
        return text if len(self._pairs) == 1 else f"{text}; target between {inputs}"

    def argument(self, eps: float) -> str:
        """Return the name of the bound that is the smallest upper bound at one eps.

        Parameters
        ----------
        eps : float
            Privacy loss in nats, >= 0.

        Returns
        -------
        str
            "worst dataset", "privacy blanket", "shuffled bits", "every dataset" (of few users, enumerated), or "every dataset of a
            stronger protocol" (with fewer users or full participation, which is less private: the messages of this protocol are a
            post-processing of those of that one).

        {raises: If `eps` is negative or not finite.}

        Examples
        --------
        >>> from shufflebounds import mechanisms, shuffle
        >>> shuffle.Shuffled(mechanisms.LocalHashing(100, 1.0), users=10**4).argument(0.025)
        'worst dataset'
        """
        eps = _validate.real("eps", eps, 0)
        bounds = self._upper_bounds(eps)
        least = min(value for _, value in bounds)
        # If two arguments give the same number, the simpler one is returned, which is later in the list.
        return [name for name, value in bounds if value <= least][-1]

    def _searched(self, upper: bool) -> list[ExcessLaw] | None:
        """Return the distributions of X whose largest Phi_n(X) (module `laws`) is the bound.

        The result is None if the bound has another form, or if the Phi of one of them takes long.
        """
        if self._exact is not None:
            return None
        if upper:
            if self._bits is not None or self._every:
                return None
            laws = [pair.upper for pair in self._pairs]
        elif self._mixed is not None or not 0 < len(self._below) <= COMPARED:
            return None
        else:
            laws = [law for _, _, law in self._below]
        return None if self._adds_few or any(law.expensive for law in laws) else laws

    @cached_property
    def _adds_few(self) -> bool:
        """Whether the kernel would take long, because a density has too many outcomes to be enumerated for its few users."""
        return any(pair.upper.adds_few(self.users) for pair in self._pairs)

    def _rough(self, upper: bool) -> Curve | None:
        laws = [pair.upper for pair in self._pairs] if upper else [law for _, _, law in self._below]
        # The bounds of one delta for few users, and for heavy tails, have a gap, and those of the blanket and of the datasets are
        # farther apart. So the search for eps ends before it reaches the precision of doubles. For few users a gap of 1e-3 in log
        # delta is common, and an evaluation takes up to 0.5 s; a relative 2e-5 of eps is about 1e-4 in log delta there.
        close = 2e-5 if self._adds_few else 1e-9
        expensive = self._adds_few or any(law.expensive for law in laws[:FEW])
        near = None
        if 0 < len(laws) <= FEW:
            near = Curve(lambda eps: min(0.0, max(law.approximate_log_phi(eps, self.users, self._adds_few) for law in laws)),
                         rtol=1e-2, settles=close if expensive else 0.0, jumps=False)
        if not upper or not self._has_search:
            return Curve(lambda eps: min(0.0, float(self._log_side(np.array([eps]), upper=upper, effort=Effort.SAMPLED)[0])), near,
                         rtol=close, settles=close) if self._adds_few else near
        if self._over_datasets is not None:
            datasets = self._over_datasets
            near = Curve(datasets.approximate_log_delta, rtol=1e-3, settles=close, jumps=False)
            if not datasets.has_cells:
                return near
            if self._heavy and 0 < len(self._below) <= FEW:
                # A normal sum has far too small a delta if rare messages dominate.
                near = replace(near, log_delta=lambda eps: min(0.0, max(datasets.approximate_log_delta(eps), *(
                    law.approximate_log_phi(eps, self.users, True) for _, _, law in self._below))))
            # Where the bound takes cells of pairs and inputs, it is smooth in eps up to about 1e-5 in log delta.
            close = max(close, 1e-5)
        # The rough curve omits pairs and inputs that are rarely the worst. The search for eps evaluates the exact curve only near
        # the crossing of the rough one, usually once.
        return Curve(lambda eps: min(0.0, *(value for _, value in self._upper_bounds(eps, search=False))), near, rtol=close,
                     settles=close)

    def _epsilons(self, deltas: FloatArray, upper: bool) -> FloatArray:
        laws = None if self._deepest_cut > -math.inf or (upper and self._has_search) else self._searched(upper)
        if laws is None:
            return super()._epsilons(deltas, upper)
        size, lost = deltas.size, max(law.lost for law in laws)
        found = epsilons(_packed(laws), np.zeros(size, np.intp), np.full(size, self.users), deltas, upper)
        for i, (delta, eps) in enumerate(zip(deltas.tolist(), found.tolist())):
            # The kernel's answer is final where neither outputs that identify the target nor the local guarantee matter.
            if delta == 0 or lost > 0 or (upper and eps > 0 and not self._amplified(eps, math.log(delta))):
                found[i] = self._epsilon(delta, upper)
        return found

    def _epsilon(self, delta: float, upper: bool) -> float:
        if delta == 0 and upper:
            return self._pure_epsilon()
        if self._exact is not None:
            return min(self._exact[upper]._epsilon(delta, upper), self._pure_epsilon())
        if self._deep is None or not 0 < delta < math.exp(self._shallow):
            return self._searched_epsilon(delta, upper)
        if not upper:
            return max(self._searched_epsilon(delta, False), *(test.epsilon(delta) for test in self._largest_messages))
        # The bound is not monotone in eps everywhere, so that the search begins at the lower bound. Every eps that meets delta is
        # valid.
        least, meets = self._epsilon(delta, False), self._deep_meets(math.log(delta))
        deep = least + bracket(lambda more: meets(least + more), 0.0, 2.0**-8 * max(least, 2.0**-8), rtol=1e-3)[1]
        deep = min(deep, self._local_epsilon(delta, deep))
        if math.log(delta) < self._shallow - _MARGIN:
            return deep
        other = replace(self)
        vars(other).update(vars(self), _deep=None)
        return min(deep, other._searched_epsilon(delta, True))

    def _searched_epsilon(self, delta: float, upper: bool) -> float:
        """Return the bound of eps that follows from `_log_side`."""
        known = [law for pair in self._pairs for law in ([pair.upper] if upper else [law for _, law in pair.lower])]
        laws = None if upper and self._has_search else self._searched(upper)
        if any(law.lost > delta for law in known):
            found = math.inf
        elif laws is None:
            found = super()._epsilon(delta, upper)
        else:
            found = float(epsilons(_packed(laws), [0], [self.users], [delta], upper)[0])
        if not upper or found == 0 or self._amplified(found, math.log(delta)):
            return found
        if (laws is not None or found == math.inf) and float(self._unshuffled(np.array([min(found, 1e5)]))[0]) < math.log(delta):
            # The local guarantee alone meets delta at a smaller eps.
            found = super()._epsilon(delta, True)
        return min(found, self._local_epsilon(delta, found))

    def _local_epsilon(self, delta: float, found: float) -> float:
        """Return the eps at which the local guarantee meets `delta`, if it may be below the eps `found` by the search; else inf.

        The search for eps ends at a distance at which the upper bound may be above that of the target's message alone.
        """
        if not isinstance(self.randomizer, PrivacyProfile) or self._amplified(found, math.log(delta)):
            return math.inf

        def excess(eps: float) -> float:
            return float(self._unshuffled(np.array([eps]))[0]) - math.log(delta)

        if excess(min(found, 1e5)) > SEARCH_GAP:
            return math.inf
        # `_unshuffled` increases the local delta by a few ulp, so the local eps is that of a slightly smaller delta.
        local = self.randomizer._epsilon(min(delta / self.participation, 1.0) * (1 - 64 * ULP), True)
        return local if math.isfinite(local) and excess(local) <= 0 else math.inf

    def _pure_epsilon(self) -> float:
        return self._budget

    @cached_property
    def _budget(self) -> float:
        blanket = max(0.0, *(pair.upper.pure_epsilon for pair in self._pairs))
        return min(blanket, self.randomizer._pure_epsilon()) if isinstance(self.randomizer, PrivacyProfile) else blanket

    @cached_property
    def _value_effort(self) -> float:
        """A bound of the run time of one value of delta, as in `ExcessLaw.effort`, which it extends to several distributions."""
        above = [pair.upper for pair in self._pairs]
        # Of the lower distributions, two are evaluated at each eps on average.
        below = [law for _, _, law in self._below]
        effort = sum(law.effort(self.users) for law in above + below[:2])
        if self._has_search:
            heavy = any(law.heavy for law in above + below)
            effort += ((0.1 if heavy else 0.05) if self.users <= MANY else 4e-3) + above[0].log_mass.size * 1e-5
        return effort + sum(law.log_mass.size for law in below) * 1e-7

    def _pair_info(self) -> DominatingPairInfo:
        return self._known_pair

    @cached_property
    def _known_pair(self) -> DominatingPairInfo:
        if self._exact is not None:
            below, above = self._exact
            known = above._pair_info()
            pairs = tuple(pair._pair_info() for pair in below._attained_pairs())
            return replace(
                known, hockey_stick=self._log_delta, attained=known.attained._replace(pairs=pairs),
                sampling=known.sampling._replace(curve=None, effort=2 * known.sampling.effort),
            )
        base = replace(super()._pair_info(), hockey_stick=self._sampled_log_delta)
        deep = self._deep_log_delta if self._deep is not None else None
        if len(self._pairs) == 1 and self._pairs[0].symmetric and self._pairs[0].attained:
            sampling = Sampling(1e-3, 0.2, curve=CurveBounds(self._log_delta), deep=deep)
            return replace(base, attained=base.attained._replace(single=True), sampling=sampling)
        # A value takes milliseconds and its bounds have a gap, so curves use a coarse grid of eps, which is coarser for densities,
        # whose X has more atoms.
        spacing = 0.25 if max(pair.upper.log_mass.size for pair in self._pairs) < COMPARED else 0.5
        # The loss is unbounded if some output can be sent only by the target, and only under one of its two inputs.
        unbounded_loss = any(law.lost > 0 for _, _, law in self._below)
        effort = max(2e-3, self._value_effort)
        if self._has_search:
            # Each value takes longer for distributions with many atoms, and about 0.1 s if inputs are bounded in cells.
            cells = self._over_datasets is not None and self._over_datasets.has_cells
            effort = max(0.1 if cells else 1e-2 if spacing < 0.5 else 5e-2, self._value_effort)
        known = replace(base, sampling=Sampling(effort, spacing, deep=deep), losses=Losses(unbounded=unbounded_loss))
        laws = [law for _, _, law in self._below]
        if not laws:
            return known
        # Two attained pairs are used for lower bounds: the one with the largest second moment of X (a symmetric pair if there is
        # one), and the one with the largest mass of outputs that identify the target.
        wide = max([law for law in laws if _mirrored(law)] or laws, key=lambda law: law.spread(0.0))
        plain = max(laws, key=lambda law: law.lost)
        used = [wide] if plain.lost == 0 or plain is wide else [wide, plain]
        error = float(getattr(self._source, "error", BLUR))
        orders = [one for law in used for one in ((law,) if _mirrored(law) else (law, _swapped(law, error)))]
        pairs = tuple(_one_dataset(law, self.users, spacing, error) for law in orders)
        return replace(known, attained=known.attained._replace(pairs=pairs))

    @classmethod
    def calibrate(cls, randomizer: Randomizer | Callable[[float], Randomizer], *, eps: float, delta: float,
                  users: int | None = None, participation: float = 1.0,
                  inputs: tuple[float, ...] | None = None, releases: int = 1) -> Self:
        """Return the protocol with the fewest users, or with the largest local budget, that is (eps, delta)-private.

        Parameters
        ----------
        randomizer : Randomizer, or callable
            For the smallest number of users: the randomizer that all users run. For the largest budget at given `users`: a function
            that returns a randomizer for a local budget, such as ``lambda eps0: KaryResponse(10, eps0)``; privacy must decrease as
            the budget grows.
        eps : float
            Target privacy loss in nats, > 0.
        delta : float
            Target failure probability in (0, 1).
        users : int, optional
            Number of users; None for the smallest number.
        participation : float
            As for the class.
        inputs : sequence of float, optional
            As for the class.
        {releases}

        Returns
        -------
        Shuffled
            Its upper delta at `eps` was evaluated and is at most `delta`.

        {raises}
        InfeasibleError
            If 2**53 users are too few.

        Examples
        --------
        >>> from shufflebounds import mechanisms, shuffle
        >>> shuffle.Shuffled.calibrate(mechanisms.KaryResponse(10, 2.0), eps=0.1, delta=1e-6).users
        6562
        """
        if releases != 1:
            return one_of_releases(partial(cls.calibrate,
                randomizer, users=users, participation=participation, inputs=inputs), releases, eps=eps, delta=delta)
        if users is None:
            if not isinstance(randomizer, Randomizer) or isinstance(randomizer, type):
                raise TypeError(f"randomizer={randomizer!r} must be a local randomizer such as KaryResponse(10, 2.0) if users is "
                                "None; for a function of the budget, pass users as well")
            one = randomizer
            return fewest_users(lambda n: cls(one, n, participation, inputs), eps, delta)
        count = _validate.integer("users", users, 1)
        if isinstance(randomizer, Randomizer) and not isinstance(randomizer, type):
            raise TypeError(f"randomizer={randomizer!r} must be a function that makes a randomizer of a local budget if "
                            f"users={users!r} is given, such as lambda eps0: KaryResponse(10, eps0)")
        family: Callable[[float], Any] = randomizer
        return largest_budget(lambda budget: cls(family(budget), count, participation, inputs), eps, delta)


def _packed(laws: list[ExcessLaw]) -> Laws:
    """Return distributions in the format of the kernel; that of a single one is kept."""
    return laws[0]._alone if len(laws) == 1 else packed([laws])


def _atoms(pairs: tuple[PairLaws, ...]) -> int:
    laws = (law for pair in pairs for law in (pair.upper, *(() if pair.deferred else (law for _, law in pair.lower))))
    return sum(law.log_mass.size for law in laws)


_KNOWN: Kept[Randomizer, tuple[PairLaws, ...]] = Kept(CACHED_BYTES // 64, _atoms)
"""The distributions of X of the last randomizers, which are the same for every number of users. An atom takes about 64 bytes."""


def _variables(source: Randomizer) -> tuple[PairLaws, ...]:
    """Return the distributions of X for the ordered pairs of inputs of a randomizer, from the cache if its class is immutable.

    Pairs with deferred distributions (matrices) are not kept: these are made later, when the cache no longer counts their size.
    """
    kind = type(source)
    if not getattr(getattr(kind, "__dataclass_params__", None), "frozen", False) or kind.__hash__ is None:
        return source.excess_laws()
    pairs = _KNOWN.of(source, source.excess_laws)
    if any(pair.deferred for pair in pairs):
        _KNOWN.pop(source, None)
    return pairs


def _one_dataset(law: ExcessLaw, users: int, step: float, error: float) -> DominatingPairInfo:
    """Return what is known about one attained pair, whose divergence is Phi of the given distribution of X."""
    effort = max(1e-3 if law.log_mass.size < COMPARED else 1e-2, law.effort(users))
    back = law if _mirrored(law) else _swapped(law, error)
    first, second = (Reverse(partial(_phi, one, users), max(0.0, one.pure_epsilon)) for one in (law, back))
    return DominatingPairInfo(*first, None if back is law else second, Sampling(effort, step), attained=SINGLE)


def _phi(law: ExcessLaw, users: int, eps: FloatArray) -> IntervalArray:
    lower, upper = law.log_phi(eps, users, Effort.SAMPLED)
    return IntervalArray(lower, np.minimum(upper, 0.0))


def _swapped(law: ExcessLaw, error: float) -> ExcessLaw:
    """Return the distribution of X for (Q, P) instead of (P, Q), for a lower bound.

    In distributions for lower bounds log a was decreased and log b increased by at most `error`. So twice as much is subtracted
    from the new log a and added to the new log b: once to undo the shift, and once to apply it after the exchange.
    """
    back = replace(law, log_a=law.log_b - 2 * error, log_b=law.log_a + 2 * error, log_cut=law.log_cut_b, log_cut_b=law.log_cut)
    return back.widened(upper=False).widened(upper=False)


def _mirrored(law: ExcessLaw) -> bool:
    """Return whether (P, Q) and (Q, P) have the same distribution of X."""
    one, other = (np.stack([law.log_mass, *pair]) for pair in ((law.log_a, law.log_b), (law.log_b, law.log_a)))
    one, other = (array[:, np.lexsort(array)] for array in (one, other))
    return bool(np.all(np.asarray(law.log_cut) == np.asarray(law.log_cut_b)) and np.array_equal(one, other))
