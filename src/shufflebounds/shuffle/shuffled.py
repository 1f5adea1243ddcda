"""The privacy profile of any local randomizer after a shuffle.

The upper bound is valid for every dataset; it is the privacy blanket of Balle, Bell, Gascon and Nissim (2019) or the bound of
docs/theorems/worst-dataset. The lower bound is delta of the worst dataset that is found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from shufflebounds._base import validate as _validate
from shufflebounds._base.caches import Kept, cached_property, immutable
from shufflebounds._base.calls import class_given
from shufflebounds._base.docs import with_passages
from shufflebounds._base.evidence import ROUNDING, Evidence, theorem
from shufflebounds._base.limits import LARGEST_EXPONENT
from shufflebounds._base.types import FloatArray, IntervalArray
from shufflebounds._engines.amplification.bounds import Bounds
from shufflebounds._engines.amplification.group_tests import test_of_people
from shufflebounds._engines.amplification.local import LocalGuarantee
from shufflebounds._engines.amplification.randomizer_laws import Distributions
from shufflebounds._engines.amplification.upper import MESSAGE
from shufflebounds._engines.bits.given_bits import flip_probability
from shufflebounds._engines.bits.largest_tail import largest_tails, tails_of_two_outputs
from shufflebounds._engines.datasets.largest_message import mean_renyi
from shufflebounds._engines.excess.blanket_moments import BlanketRenyi
from shufflebounds._engines.excess.excess_law import ExcessLaw, Randomizer, is_randomizer
from shufflebounds._losses.closed_forms import ClosedForms, mixture_limit
from shufflebounds._losses.loss_tail import loss_tail
from shufflebounds._losses.release import DominatingPairInfo
from shufflebounds._losses.renyi import Tail
from shufflebounds._losses.sum_test import attained_by
from shufflebounds.profile import PrivacyProfile
from shufflebounds.profile.between import Between
from shufflebounds.profile.calibration import one_of_releases
from shufflebounds.profile.chain import GroupInfo
from shufflebounds.profile.sizing import fewest_users, largest_budget
from shufflebounds.shuffle.absent import AbsentUsers
from shufflebounds.shuffle.bits import ShuffledBits

__all__ = ["Shuffled"]

_PAGES = {"privacy blanket": "docs/theorems/stronger-clones", "shuffled bits": "docs/protocols/shuffled-bits",
          "one message alone": "docs/concepts"}
"""Pages with the proofs of arguments that :meth:`Shuffled.argument` names; all others are in docs/theorems/worst-dataset."""

_CLOSE = 0.02
"""Largest relative gap of two bounds that are the result without a further computation: of a Renyi divergence that follow from one
large message, or of the tail of the loss that follow from a search over datasets. Raised: less tight bounds. Lowered: longer run
time."""

_LOCAL: Kept[Any, LocalGuarantee] = Kept(64)
"""Cached guarantees of one message, for the last randomizers and participations; they are the same for every number of users."""


def _with_delta(tails: IntervalArray, closed: ClosedForms, eps: FloatArray) -> IntervalArray:
    """Return the tighter bounds of the tail of the loss at each eps: `tails`, or those from values of delta.

    `tails` allows for a rounding error of the loss that grows with the number of users. From about 1e8 users on, or if the loss is
    close to 0, it may exceed the error of the bounds from delta.
    """
    if (tails.upper <= tails.lower * (1 + _CLOSE)).all():
        return tails
    below, above = (partial(closed.side, upper=upper) for upper in (False, True))
    other = loss_tail(below, above, eps, False)  # type: ignore[arg-type]
    return IntervalArray(np.maximum(tails.lower, other.lower), np.minimum(tails.upper, other.upper))


class _OfBits(Between):
    """Bounds for randomized response of one bit, by two protocols of shuffled bits."""

    def __init__(self, below: ShuffledBits, above: ShuffledBits, local: LocalGuarantee) -> None:
        super().__init__(below, above, local.pure)
        self.flip, self.users, self.local = above.flip, above.users, local
        self.rounding = (below.flip - above.flip) / above.flip

    def side(self, eps: FloatArray, upper: bool) -> FloatArray:
        # Next to the pure budget the rounding of the flip probability has a large effect, and one message has a smaller bound.
        return self.local.capped(eps, super().side(eps, True)) if upper else super().side(eps, False)

    def epsilon(self, delta: float, upper: bool) -> float:
        return self.pure if delta == 0 and upper else min(self.sides[upper]._epsilon(delta, upper), self.pure)

    def loss_tail(self, eps: FloatArray, upper: bool) -> IntervalArray | None:
        return _with_delta(largest_tails(self.users, 0, self.flip, eps, self.rounding), self, eps)


class _ByBounds(ClosedForms):
    """Results of the engine `bounds`, and of the randomizer `one` if it is a profile.

    `anywhere` states whether the users' values are unrestricted (`inputs` is None). `noise` is the randomizer if its outputs may be
    truncated at any probability, as for normal and discrete normal noise.
    """

    def __init__(self, bounds: Bounds, laws: Distributions, users: int, one: PrivacyProfile | None, anywhere: bool) -> None:
        self.bounds, self.laws, self.users, self.one = bounds, laws, users, one
        self.noise = one if anywhere and laws.deepest_cut > -math.inf else None
        self.limit_of_mu: float | None = one._closed.mu_in_tails if anywhere and one is not None else None

    def log_delta(self, eps: FloatArray) -> IntervalArray:
        return self.bounds.log_delta(eps)

    def method(self, eps: float) -> list[str]:
        return self.bounds.method(eps)

    def epsilon(self, delta: float, upper: bool) -> float:
        return self.bounds.epsilon(delta, upper)

    def epsilons(self, deltas: FloatArray, upper: bool) -> FloatArray:
        return self.bounds.epsilons(deltas, upper)

    def side(self, eps: FloatArray, upper: bool) -> FloatArray:
        return self.bounds.side(eps, upper=upper)

    def last_positive(self, pure: float) -> float | None:
        return pure if self.bounds.unbounded else None

    def mu(self, upper: bool) -> float | None:
        # mu of the randomizer is an upper bound by joint convexity. For the lower bound let all other users have the target's first
        # value, and consider the event that some message exceeds T. The normal quantiles of the probabilities of this event under
        # the target's two inputs differ by Delta/sigma + O(log(n)/T), as those of one message do. As T tends to infinity, the limit
        # is mu for normal noise, and slightly less for discrete noise.
        return self.one._gdp_mu(True) if upper and self.one and self.limit_of_mu is not None else self.limit_of_mu

    def loss_tail(self, eps: FloatArray, upper: bool) -> IntervalArray | None:
        rows = self.laws.thinned_matrix
        if rows is not None and rows.shape == (2, 2) and rows.all():
            tails: IntervalArray | None = _with_delta(tails_of_two_outputs(rows, self.users, eps), self, eps)
        else:
            tails = None if self.bounds.mixed is None else self.bounds.mixed.tails(eps)
        return tails and IntervalArray(tails.lower, np.where(eps < self.bounds.pair_info.pure, tails.upper, 0.0))

    def renyi(self, orders: FloatArray, upper: bool) -> FloatArray | None:
        mixed, value = self.bounds.mixed, np.full(orders.size, math.nan)
        if self.bounds.two_users is not None:
            finite = orders < math.inf
            value[finite] = self.bounds.two_users.renyi(orders[finite], upper)
        elif mixed is not None and not self.bounds.pair_info.losses.unbounded:
            # Every dataset is enumerated, so the divergence of each dataset is known. The dominating pair, whose delta is the
            # largest of all datasets at each eps, may have a larger divergence than every dataset.
            finite = orders < math.inf
            value[finite] = np.minimum(mixed.renyi(orders[finite], upper=upper), self.bounds.pair_info.pure)
        elif self.blanket is not None:
            # If one rare message dominates the divergence, both bounds are known without values of delta, which take up to a
            # minute.
            below = self.of_mean(orders)
            sides = below.lower, self.blanket.divergences(orders)
            # The exact divergence of the dataset of the lower bound is known, so values of delta do not improve it.
            close = sides[1] <= sides[0] * (1 + _CLOSE) if upper else below.upper <= below.lower * (1 + _CLOSE / 4)
            value = np.where(close, sides[upper], math.nan)
        return value

    @cached_property
    def blanket(self) -> BlanketRenyi | None:
        """Renyi divergences of the privacy blanket of Gaussian noise on an interval; None for other randomizers."""
        if self.noise is None or len(self.laws.pairs) > 1:
            return None
        return BlanketRenyi(self.laws.above[0], self.users, partial(mixture_limit, *self.mixture()))

    def renyi_limit(self, orders: FloatArray, upper: bool) -> FloatArray:
        if not upper and self.noise is not None and self.laws.participation == 1:
            return self.of_mean(orders).lower
        limit = super().renyi_limit(orders, upper) if not upper or self.blanket is None else self.blanket.divergences(orders)
        finite, two_users = orders < math.inf, self.bounds.upper.two_users
        if upper and two_users is not None:
            # The messages of more users are a post-processing of those of two users.
            limit[finite] = np.minimum(limit[finite], two_users.renyi(orders[finite], True))
        return limit

    def of_mean(self, orders: FloatArray) -> IntervalArray:
        """Return bounds of Renyi divergences if all other users have the target's second value; trivial bounds if not known."""
        if self.noise is None or self.laws.participation < 1:
            return IntervalArray(np.full(orders.size, -math.inf), np.full(orders.size, math.inf))
        return mean_renyi(self.noise._rdp, self.users, orders)

    def tail(self) -> Tail | None:
        local, blanket = super().tail(), self.blanket
        if local is None or blanket is None:
            return local
        return lambda power, start: min(local(power, start), blanket.tail(power, start))

    def known_upper(self) -> BlanketRenyi | None:
        law = self.laws.above[0]
        return None if law.heavy or law.adds_few(self.users) or not self.laws.pairs[0].symmetric else self.blanket

    def mixture(self) -> tuple[tuple[PrivacyProfile, ...], float]:
        # The shuffled messages are a post-processing of the target's message. If the target does not participate, no message is
        # sent for either input.
        if self.one is None:
            return (), 1.0
        return tuple({id(side): side for side in (self.one, self.one.reverse())}.values()), self.laws.participation


@with_passages
@dataclass(frozen=True, repr=False)
class Shuffled(PrivacyProfile, AbsentUsers):
    r"""The shuffled messages of users who each run the same local randomizer, with an upper and a lower bound.

    Let :math:`R_x` be the output distribution for the input x, let 0 and 1 be the target user's two inputs, and let m be a measure
    on the outputs with a total mass g of at most 1. Draw an output Y from m with probability g, and set X = 0 otherwise:

    .. math:: \frac{1}{n}\, \mathbb{E}(X_1 + \cdots + X_n)_+, \qquad
        X = \frac{R_0(Y) - e^\varepsilon R_1(Y)}{m(Y)} \text{ with probability } g, \quad 0 \text{ with probability } 1 - g.

    The :math:`X_i` are independent copies of X. The bounds of :math:`\delta(\varepsilon)` use this formula in three ways:

    - With :math:`m = R_{x^*}` the formula is delta if all other users have the input x*.
    - With :math:`m = \inf_x R_x`, the *privacy blanket*, it is an upper bound for every dataset.
    - The bound of docs/theorems/worst-dataset, for every dataset, is a main term plus an error term. The main term is the
      largest value of the formula for n - 2s users if each :math:`X_i` has m = R_x for an input x of its own; the library chooses
      the integer s. The error term is :math:`O(n^{-5/2})` if eps is proportional to :math:`n^{-1/2}`.

    Parameters
    ----------
    randomizer : Randomizer
        A mechanism of :mod:`shufflebounds.mechanisms`, or any object whose method ``excess_laws`` returns the distributions of X.
    users : int
        Number n of users, 1 to 2**53, including the target.
    participation : float
        Probability in [1e-12, 1] with which each user, including the target, sends a message. The number of messages is public:
        "no message" is an output like any other.
    inputs : sequence of float, optional
        For Laplace and Gaussian noise: the values that users may have, at least two and all in an interval of length
        `sensitivity`. None means every value of the interval.

    Notes
    -----
    Neighbours: one user's input is replaced. The upper bound holds for every dataset of the other users: it is the smaller of
    the privacy blanket and the bound of docs/theorems/worst-dataset. The latter is computed for local hashing, subset selection,
    unary encoding, RAPPOR of up to 26 hashes, Hadamard response, PrivUnit with a cap of measure above 1/3, Laplace, Gaussian and
    discrete Gaussian noise, Gaussian noise on vectors, geometric noise of sensitivity 2 or more, and a
    :class:`~shufflebounds.mechanisms.FiniteRandomizer` whose probabilities are all positive. For noise the bound holds for every
    pair of the target's inputs and every input of the other users. :meth:`argument` returns which upper bound is used.

    The lower bound is delta of the dataset that :meth:`data` describes: all other users have the same input, or i.i.d. inputs
    from a mixture that the randomizer lists.

    With few users, all datasets are enumerated for a matrix, a frequency oracle of up to 8 bins and clipped geometric noise: for
    two outputs up to 1023 users; for two inputs, up to 100 users with three outputs and 40 with four; for subset selection with
    sets of 3 of 4 bins up to 13 users. The upper and the lower bound are then the largest delta, up to rounding. For somewhat more
    users, a search by branch and bound finds this maximum, or an upper bound of it. For two users of Gaussian noise on an interval
    the gap is about a relative 1e-5 of delta (docs/theorems/worst-dataset). The largest delta of few users is also an upper bound
    for more users, because adding messages is post-processing.

    For Gaussian and discrete Gaussian noise and a delta below 1e-11, the upper bound is computed from the privacy blanket: outputs
    in the tails beyond a probability of e^-700 count as revealing the target's input, which adds this probability to delta. The
    lower bound is then that of a test of the largest message, if all other users have the value at one end of the interval. For
    sigma = 1 and 1e4 users, the two bounds of eps differ by 0.4 % at delta = 1e-30 and 0.1 % at 1e-100.

    A message of a randomizer with two inputs and pure budget eps0 is a post-processing of one bit of randomized response: R_0 =
    e^eps0 a + b and R_1 = a + e^eps0 b for measures a and b (Kairouz, Oh, Viswanath). So delta of :class:`ShuffledBits` with this
    budget is an upper bound, too. It is exact over all datasets for k-ary response of two values and geometric noise of sensitivity
    1.

    The upper and the lower bound are maxima over the pairs of the target's inputs that the randomizer lists: all pairs up to
    symmetry, or one pair that is proven to be the worst. For Laplace, Gaussian, discrete Gaussian and geometric noise on an
    interval the worst pair is the two ends (docs/theorems/interval-inputs).

    For a given m, the formula is computed with a gap of about 2e-7 in log delta, 1e-12 for few users; densities are discretized
    into cells, which adds about 1e-5.

    The run time does not depend on the number of users. One delta of the privacy blanket takes less than a millisecond for a
    randomizer of few outputs, and about 10 ms for densities. One eps of the bound of docs/theorems/worst-dataset takes 5 to 20 ms
    for a randomizer of few outputs, 0.1 to 1 s for noise, and up to 3 s for few users (on vectors 20 s).

    {balle2019}

    Kairouz, P., Oh, S., Viswanath, P. The composition theorem for differential privacy. ICML 2015 (two inputs).

    Examples
    --------
    >>> from shufflebounds import mechanisms, shuffle
    >>> ten_ary = shuffle.Shuffled(mechanisms.KaryResponse(10, 1.0), users=10**4)
    >>> print(f"{ten_ary.epsilon(1e-6):.6f} {ten_ary.epsilon(1e-6, bound='lower'):.6f}")
    0.023253 0.023253
    >>> ten_ary.data(0.02)
    'every other user has a third value'
    """

    randomizer: Randomizer
    users: int
    participation: float = 1.0
    inputs: tuple[float, ...] | None = None

    _prepares: ClassVar[bool] = True
    theorem: ClassVar[str] = (
        "upper bound for every dataset of the other users: the smallest of the privacy blanket (Balle, Bell, Gascon, Nissim 2019), "
        "the bound of the worst dataset (docs/theorems/worst-dataset) and, for two inputs, shuffled bits"
    )
    lower_theorem: ClassVar[str] = "delta of one dataset, which the method `data` names"
    neighbours: ClassVar[str] = "replace one user's input; the analyst sees the shuffled messages"

    def __post_init__(self) -> None:
        _validate.integer_field(self, "users", 1)
        self._check_absent(self.users)
        # With a smaller participation, masses could underflow for large budgets.
        _validate.real_field(self, "participation", 1e-12, 1)
        if not is_randomizer(self.randomizer):
            advice = class_given(self.randomizer) or ": pass one first, such as KaryResponse(10, 2.0), then users"
            raise TypeError(f"randomizer={self.randomizer!r} must be a local randomizer of shufflebounds.mechanisms{advice}")
        if self.inputs is not None:
            listed = getattr(self.randomizer, "with_inputs", None)
            if listed is None:
                raise TypeError(f"inputs={self.inputs!r} is for Laplace and Gaussian noise: leave it out for {self.randomizer!r}")
            laws = listed(self.inputs)
            object.__setattr__(self, "inputs", laws.inputs)
            object.__setattr__(self, "_listed_inputs", laws)

    def __repr__(self) -> str:
        listed = "" if self.inputs is None else f", inputs={self.inputs!r}"
        return (f"Shuffled(randomizer={self.randomizer!r}, users={self.users}, participation={self.participation}{listed}"
                f"{self._absent()})")

    def claims(self, eps: float, *, upper: bool) -> Iterable[Evidence]:
        if upper:
            how = self.argument(eps)
            yield theorem(f"upper bound for every dataset: {how}", _PAGES.get(how, "docs/theorems/worst-dataset"))
        else:
            yield theorem(f"delta of one dataset: {self.data(eps)}", "shufflebounds.shuffle.Shuffled.data")
        yield from getattr(self.randomizer, "_assumed", ())
        yield ROUNDING

    def __getattr__(self, name: str) -> Any:
        # This method is called for names that the class does not have. During unpickling the fields are not set yet.
        if not name.startswith("_") and hasattr(self.__dict__.get("randomizer"), name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}; its randomizer has it: "
                                 f".randomizer.{name}", name=name, obj=self)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        # Cached distributions are not pickled.
        made = partial(type(self), colluding=self.colluding, missing=self.missing) if self._absent() else type(self)
        return made, (self.randomizer, self.users, self.participation, self.inputs)

    @cached_property
    def _remaining(self) -> Self:
        return self._of_users(self._hiding) if self._absent() else self

    @cached_property
    def _laws(self) -> Distributions:
        # If `inputs` is given, the distributions of X are those for these inputs.
        source = self.randomizer if self.inputs is None else vars(self)["_listed_inputs"]
        return Distributions(source, self.participation)

    @cached_property
    def _local(self) -> LocalGuarantee:
        if self.inputs is None and immutable(self.randomizer) and not any(pair.deferred for pair in self._laws.pairs):
            return _LOCAL.of((self.randomizer, self.participation), self._local_guarantee)
        return self._local_guarantee()

    def _local_guarantee(self) -> LocalGuarantee:
        local = self.randomizer
        if not isinstance(local, PrivacyProfile):
            return LocalGuarantee(self.participation, self._laws.pure)
        pure = min(self._laws.pure, local._pure_epsilon())
        return LocalGuarantee(self.participation, pure, partial(local._log_side, upper=True), partial(local._epsilon, upper=True),
                              pure == math.inf and local._epsilon(0.0, False) == math.inf)

    @cached_property
    def _message(self) -> PrivacyProfile | None:
        """The guarantee of the only message, if there is one user, who always participates; otherwise None."""
        local = self.randomizer
        alone = self.users == 1 and self.participation == 1 and self.inputs is None
        return local if alone and isinstance(local, PrivacyProfile) else None

    @cached_property
    def _bounds(self) -> Bounds:
        """The engine that computes the bounds, unless `_message` or `_exact` has them."""
        bits = self._bits

        def of_bits(eps: float) -> float:
            assert bits is not None
            return float(bits._sides(0.0, np.array([eps])).upper[0])

        return Bounds(self._laws, self.users, self._local, None if bits is None else of_bits)

    def _kernel_laws(self, upper: bool) -> list[ExcessLaw]:
        """Return the distributions of X if the bound is the largest E(X_1 + ... + X_n)_+/n of them; otherwise an empty list."""
        return (self._bounds.kernel_laws(upper) or []) if self._exact is None and self._message is None else []

    def _of_users(self, users: int, *, blanket: bool = False) -> Self:
        """Return the protocol for another number of users, with the distributions of X that are already computed.

        With `blanket`, the bound of docs/theorems/worst-dataset is not used.
        """
        other = replace(self, users=users, colluding=0, missing=0)
        vars(other).update(_laws=self._laws.blanket_only if blanket else self._laws, _local=self._local)
        return other

    @cached_property
    def _exact(self) -> tuple[ShuffledBits, ShuffledBits] | None:
        """Two protocols of shuffled bits whose deltas are a lower and an upper bound of delta of this protocol.

        The two protocols exist for randomized response of one bit, whose flip probability is known up to rounding. For other
        randomizers the result is None.
        """
        flip = self._laws.flip
        if flip is None or not 0 < self._local.pure < LARGEST_EXPONENT:
            return None
        low, high = flip
        # For budgets below 1e-4 the rounding of the flip probability has a large effect, and the bounds by the blanket are tighter.
        if not high - low <= 1e-10 * (0.5 - high):
            return None
        # More flipping is post-processing, so the protocol with the larger flip probability has the smaller delta.
        above = ShuffledBits(self.users, low)
        return above if high == low else ShuffledBits(self.users, high), above

    @cached_property
    def _bits(self) -> ShuffledBits | None:
        """Shuffled randomized response of the same budget, for a randomizer with two inputs; otherwise None.

        Every message of such a randomizer is a post-processing of one bit of randomized response, also if it is sent only with some
        probability.
        """
        if self._exact is not None:
            return self._exact[1]
        budget = self._local.pure
        if not self._laws.two_inputs or not 0 < budget < LARGEST_EXPONENT:
            return None
        # The flip probability is rounded down, which gives an upper bound of delta.
        return ShuffledBits(self.users, flip_probability(budget).lower)

    def describe(self) -> DominatingPairInfo:
        if self._message is not None:
            return self._message._pair_info()
        if self._exact is None:
            return self._bounds.pair_info
        below, above = self._exact
        info = above.describe()
        return replace(info, hockey_stick=_OfBits(below, above, self._local).log_delta, pure=self._local.pure,
                       attained=info.attained._replace(pairs=below.describe().below, profiles=None),
                       sampling=info.sampling._replace(curve=None, effort=2 * info.sampling.effort))

    def closed_forms(self) -> ClosedForms:
        if self._message is not None:
            return Between(self._message, self._message, self._message._pure_epsilon())
        if self._exact is not None:
            return _OfBits(*self._exact, self._local)
        one = self.randomizer if isinstance(self.randomizer, PrivacyProfile) else None
        return _ByBounds(self._bounds, self._laws, self.users, one, self.inputs is None)

    def describe_group(self, size: int) -> GroupInfo:
        if self._exact is not None:
            below, above = (one.describe_group(size) for one in self._exact)
            return GroupInfo(below.below, above.above if self._exact[0] is not self._exact[1] else below.below)

        def attained() -> tuple[DominatingPairInfo, ...]:
            test = test_of_people((law for _, _, law in self._laws.below), self.users, size, self._laws.error)
            return () if test is None else attained_by([test])

        return GroupInfo(attained=attained)

    @np.errstate(all="ignore")
    def data(self, eps: float) -> str:
        """Return a description of the dataset of the other users whose delta is the lower bound at one eps.

        Parameters
        ----------
        eps : float
            Privacy loss in nats, >= 0.

        Returns
        -------
        str
            The dataset, and the target's two inputs if the randomizer lists several pairs of them.

        {raises: If `eps` is negative or not finite.}
        """
        return self._bounds.lower.dataset(_validate.real("eps", eps, 0))

    @np.errstate(all="ignore")
    def argument(self, eps: float) -> str:
        """Return the name of the bound that is the smallest upper bound at one eps.

        Parameters
        ----------
        eps : float
            Privacy loss in nats, >= 0.

        Returns
        -------
        str
            "worst dataset", "privacy blanket", "shuffled bits", "every dataset" (of few users), "every dataset of a stronger
            protocol" or "one message alone". The stronger protocol has fewer users or full participation. Its delta is at least as
            large, because adding or withholding messages is post-processing. A search over sets of datasets has the same name: its
            bound for a set is delta of a smaller dataset, with fewer users, that every dataset of the set contains. "one message
            alone" is delta of the target's message, which is the smallest bound if likelihood ratios are very large.

        {raises: If `eps` is negative or not finite.}

        Examples
        --------
        >>> from shufflebounds import mechanisms, shuffle
        >>> shuffle.Shuffled(mechanisms.LocalHashing(100, 1.0), users=10**4).argument(0.025)
        'worst dataset'
        """
        eps = _validate.real("eps", eps, 0)
        if self._message is not None:
            return MESSAGE
        return "shuffled bits" if self._exact is not None else self._bounds.argument(eps)

    @classmethod
    def calibrate(cls, randomizer: Randomizer | Callable[[float], Randomizer], *, eps: float, delta: float,
                  users: int | None = None, participation: float = 1.0,
                  inputs: tuple[float, ...] | None = None, releases: int = 1, devices: int = 1, colluding: int = 0,
                  missing: int = 0) -> Self:
        """Return the protocol with the fewest users, or with the largest local budget, that is (eps, delta)-private.

        Parameters
        ----------
        randomizer : Randomizer, or callable
            For the smallest number of users: the randomizer that all users run. For the largest budget with given `users`: a
            function that returns a randomizer for a local budget, such as ``lambda eps0: KaryResponse(10, eps0)``. A randomizer
            with a larger budget must not be more private.
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
        {absent}

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
        build = partial(cls, participation=participation, inputs=inputs, colluding=colluding, missing=missing)
        if users is None:
            if not is_randomizer(randomizer):
                raise TypeError(f"randomizer={randomizer!r} must be a local randomizer such as KaryResponse(10, 2.0) if users is "
                                "None; for a function of the budget, pass users as well")
            given = randomizer
            absent = build(given, _validate.MAX_COUNT)
            one: Callable[..., Self] = partial(
                fewest_users, lambda n: build(given, n + absent.colluding + absent.missing), least=devices)
        else:
            count = _validate.integer("users", users, 1)
            if is_randomizer(randomizer):
                raise TypeError(f"randomizer={randomizer!r} must be a function that makes a randomizer of a local budget if "
                                f"users={users!r} is given, such as lambda eps0: KaryResponse(10, eps0)")
            family: Any = randomizer
            one = partial(largest_budget, lambda budget: build(family(budget), count))
        if releases == devices == 1:
            return one(eps=eps, delta=delta)
        return one_of_releases(one, releases, devices, eps=eps, delta=delta)
