"""Any local randomizer, shuffled: the privacy blanket above, the best data found below."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from shufflebounds import _validate
from shufflebounds._cached import cached_property
from shufflebounds._docs import said
from shufflebounds._types import ULP, FloatArray, Sides
from shufflebounds.composing import Knowledge
from shufflebounds.profile import PrivacyProfile
from shufflebounds.shuffle._compiled_laws import largest_epsilon
from shufflebounds.shuffle._mixed_data import MixedData
from shufflebounds.shuffle._sizing import fewest_users, largest_budget
from shufflebounds.shuffle.bits import ShuffledBits
from shufflebounds.shuffle.clones import MAX_LOCAL_EPS
from shufflebounds.shuffle.laws import BLUR, ExcessLaw, PairLaws, Randomizer

__all__ = ["Shuffled"]

_LEAST_SHARE = 1e-12
"""Fewer take part in no protocol; masses of budgets of hundreds would leave the doubles."""

_MOST_LOWER = 64
"""So many pairs and data, those with the widest laws of X, are tried for the lower side at each eps."""

_NO_BETTER = 1e-9
"""By no more than this are data better that are named for no other reason."""


@said
@dataclass(frozen=True)
class Shuffled(PrivacyProfile):
    r"""The shuffled messages of users who each run the same local randomizer, enclosed on both sides.

    .. math:: \delta(\varepsilon) = \frac{1}{n}\, \mathbb{E}(X_1 + \cdots + X_n)_+, \qquad
        X = \frac{R_0 - e^\varepsilon R_1}{m} \text{ with mass } m, \quad 0 \text{ with the rest}

    with :math:`m = \inf_x R_x` above, the privacy blanket, and :math:`m = R_{x^*}` below, which is the exact value where all
    others hold x*; the largest over the ordered pairs of the target's inputs, and over x*.

    Parameters
    ----------
    randomizer : Randomizer
        A mechanism of :mod:`shufflebounds.mechanisms`, or anything else that knows its laws of X (``excess_laws``).
    users : int
        Number n of users, 1 to 2**53, the target included.
    participation : float
        Chance s in [1e-12, 1] with which each user, the target too, sends a message at all; the number of messages is seen, and
        "no message" is an output like any other.

    Notes
    -----
    Neighbours: one user's input is replaced. The upper side is proven for any data of the others, the lower one is attained by
    the data that :meth:`data` names; where they part, the worst data are unknown. Below, all others hold one input, or i.i.d. ones
    of a mixture that the randomizer names; for a matrix and so few users that all multisets of messages can be listed (2000 users
    of two outputs, 44 of three, 11 of four) data with several inputs are searched too, all of them where they are few.

    A randomizer of two inputs and pure budget eps0 makes each message of one bit of randomized response, R_0 = e^eps0 a + b and
    R_1 = a + e^eps0 b for measures a and b (Kairouz, Oh, Viswanath): :class:`ShuffledBits` bounds it too, and is exact over all
    data for k-ary response of two values and geometric noise of sensitivity 1. The upper side is the smaller of the two.

    Both sides are maxima over the pairs of inputs that the randomizer lists: all of them up to symmetry, or a pair that is
    proven to be the worst, as the two ends are for Laplace, Gaussian and geometric noise on an interval
    (docs/theorems/interval-inputs). For discrete Gaussian noise of sensitivity 2 and more all pairs are compared with the ends
    for those parameters, in double precision: not proven, and not compared where inputs times outputs are above 2**20 (the
    words of its pair say so). Sides of the functional itself are about a relative 2e-7 apart in delta, 1e-12 for few users;
    densities are cut into cells, which adds about 1e-5. The time does not depend on the number of users: below a millisecond an
    eps for randomizers of a few atoms, some 10 ms for densities.

    {balle2019}

    Kairouz, P., Oh, S., Viswanath, P. The composition theorem for differential privacy. ICML 2015 (two inputs).

    Examples
    --------
    >>> from shufflebounds import mechanisms, shuffle
    >>> tenary = shuffle.Shuffled(mechanisms.KaryResponse(10, 1.0), users=10**4)
    >>> print(f"{tenary.epsilon(1e-6):.6f} {tenary.epsilon(1e-6, bound='lower'):.6f}")
    0.023253 0.023253
    >>> tenary.data(0.02)
    'all others hold a third value'
    """

    randomizer: Randomizer
    users: int
    participation: float = 1.0

    theorem: ClassVar[str] = (
        "privacy blanket (Balle, Bell, Gascon, Nissim 2019): upper bound, proven for any data of the others; "
        "shuffled bits where there are two inputs; lower bound attained by data that are named"
    )
    neighbours: ClassVar[str] = "replace one user's input; the analyst sees the shuffled messages"

    def __post_init__(self) -> None:
        _validate.integer_field(self, "users", 1)
        _validate.real_field(self, "participation", _LEAST_SHARE, 1)
        if not isinstance(self.randomizer, Randomizer):
            raise TypeError(f"{self.randomizer!r} must be a randomizer that knows its laws of X (excess_laws)")

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        # the laws are not pickled
        return type(self), (self.randomizer, self.users, self.participation)

    @cached_property
    def _pairs(self) -> tuple[PairLaws, ...]:
        share = self.participation
        return tuple(
            PairLaws(pair.inputs, pair.upper.thinned(share),
                     tuple((text, law.thinned(share)) for text, law in pair.lower), pair.symmetric)
            for pair in self.randomizer.excess_laws()
        )

    @cached_property
    def _below(self) -> tuple[tuple[str, str, ExcessLaw], ...]:
        return tuple((pair.inputs, text, law) for pair in self._pairs for text, law in pair.lower)

    @cached_property
    def _mixed(self) -> MixedData | None:
        """Data whose users hold different inputs, of few users of a small randomizer."""
        matrix = getattr(self.randomizer, "_matrix", None)
        rows = matrix() if matrix is not None else None
        if rows is None:
            return None
        if self.participation < 1:
            share = self.participation
            rows = np.append(rows * share, np.full((len(rows), 1), 1 - share), axis=1)
        data = MixedData(rows, self.users)
        return data if data.listed else None

    def _best_below(self, eps: float) -> tuple[float, int]:
        """Return the largest lower bound at one eps over data that are alike, and the number of its data."""
        if not self._below:
            return -math.inf, 0
        wide = np.array([law.spread(eps) for _, _, law in self._below])
        tried = np.argsort(-wide, kind="stable")[:_MOST_LOWER].tolist()
        if len(tried) > 1:
            rough = [self._below[i][2].rough_log_phi(eps, self.users) for i in tried]
            least = max(low for low, _ in rough)
            tried = [i for i, (_, high) in zip(tried, rough) if high >= least]
        values = [self._below[i][2].log_phi_side(eps, self.users, upper=False) for i in tried]
        best = int(np.argmax(values))
        return values[best], tried[best]

    def _lower(self, eps: float) -> float:
        alike = self._best_below(eps)[0]
        return alike if self._mixed is None else max(alike, self._mixed.best(eps)[0])

    def _upper(self, eps: float) -> float:
        blanket = max(pair.upper.log_phi_side(eps, self.users, upper=True) for pair in self._pairs)
        if self._bits is None:
            return min(0.0, blanket)
        return min(0.0, blanket, float(self._bits._rough_sides(np.array([eps])).upper[0]))

    @cached_property
    def _bits(self) -> ShuffledBits | None:
        """Of a randomizer of two inputs, randomized response of the same budget: every message is made from its bit alone."""
        budget = self._pure_epsilon()
        if getattr(self.randomizer, "_inputs", math.inf) != 2 or self.participation < 1 or not 0 < budget < MAX_LOCAL_EPS:
            return None
        # rounded towards fewer flips, which tell more
        less = math.exp(-budget)
        return ShuffledBits(self.users, less / (1 + less) * (1 - 8 * ULP * (1 + budget)))

    def _log_side(self, eps: FloatArray, *, upper: bool) -> FloatArray:
        value = self._upper if upper else self._lower
        return np.array([value(e) if e < self._pure_epsilon() else -math.inf for e in eps.tolist()])

    def _log_delta(self, eps: FloatArray) -> Sides:
        return Sides(self._log_side(eps, upper=False), self._log_side(eps, upper=True))

    def data(self, eps: float) -> str:
        """Return the data of the others behind the lower bound at one eps.

        Parameters
        ----------
        eps : float
            Privacy loss in nats, >= 0.

        Returns
        -------
        str
            In words, with the pair of the target's inputs where there are several.

        {raises: If `eps` is negative or not finite.}
        """
        eps = _validate.real("eps", eps, 0)
        value, place = self._best_below(eps)
        if self._mixed is not None:
            mixed, shares, target = self._mixed.best(eps)
            if mixed > value + _NO_BETTER:
                held = " and ".join(f"{count} hold{'s' * (count == 1)} {x}" for x, count in enumerate(shares) if count)
                return f"of the others {held}; target between inputs {target[0]} and {target[1]}"
        if not self._below:
            return "none known"
        inputs, text, _ = self._below[place]
        return text if len(self._pairs) == 1 else f"{text}; target between {inputs}"

    def _searched(self, upper: bool) -> list[ExcessLaw] | None:
        """Return the laws whose largest excess is a side, none where more than that is known of it."""
        if upper:
            if self._bits is not None:
                return None
            laws = [pair.upper for pair in self._pairs]
        elif self._mixed is not None or not 0 < len(self._below) <= _MOST_LOWER:
            return None
        else:
            laws = [law for _, _, law in self._below]
        return None if any(law.dear for law in laws) else laws

    def _epsilon(self, delta: float, upper: bool) -> float:
        known = [law for pair in self._pairs for law in ([pair.upper] if upper else [law for _, law in pair.lower])]
        if any(law.lost > delta for law in known):
            return math.inf
        laws = self._searched(upper)
        if laws is None:
            return super()._epsilon(delta, upper)
        return float(largest_epsilon([laws], [0], [self.users], [delta], upper)[0])

    def _pure_epsilon(self) -> float:
        return self._budget

    @cached_property
    def _budget(self) -> float:
        return max(0.0, *(pair.upper.pure_epsilon for pair in self._pairs))

    def _seconds(self) -> float:
        # its laws are formed first
        return 2e-3

    def _knowledge(self) -> Knowledge:
        # a value takes milliseconds, and the sides do not meet
        spacing = 0.25 if max(pair.upper.log_mass.size for pair in self._pairs) < 64 else 0.5
        known = replace(super()._knowledge(), spacing=spacing, seconds=2e-3, pace=4e-4 if spacing < 0.5 else None)
        laws = [law for _, _, law in self._below]
        if not laws:
            return known
        # pairs, from below: the widest law, if there is one of those that both orders have, and what gives most away
        wide = max([law for law in laws if _mirrored(law)] or laws, key=lambda law: law.spread(0.0))
        plain = max(laws, key=lambda law: law.lost)
        used = [wide] if plain.lost == 0 or plain is wide else [wide, plain]
        orders = [one for law in used for one in ((law,) if _mirrored(law) else (law, _swapped(law)))]
        return replace(known, realised=tuple(_OneData(law, self.users, spacing)._knowledge() for law in orders))

    @classmethod
    def calibrate(cls, randomizer: Randomizer | Callable[[float], Randomizer], *, eps: float, delta: float,
                  users: int | None = None, participation: float = 1.0) -> Self:
        """Return the protocol with the fewest users, or with the largest local budget, that is (eps, delta)-private.

        Parameters
        ----------
        randomizer : Randomizer, or callable
            The randomizer that all users run, for the fewest users; what makes one of a local budget (and loses privacy as the
            budget grows), such as ``lambda eps0: KaryResponse(10, eps0)``, for the largest budget at given `users`.
        eps : float
            Target privacy loss in nats, > 0.
        delta : float
            Target failure probability in (0, 1).
        users : int, optional
            Number of users; None asks for the fewest.
        participation : float
            As for the class.

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
        if users is None:
            if not isinstance(randomizer, Randomizer):
                raise TypeError("randomizer must be a randomizer where users is None; a family of them needs users")
            one = randomizer
            return fewest_users(lambda n: cls(one, n, participation), eps, delta)
        count = _validate.integer("users", users, 1)
        if isinstance(randomizer, Randomizer):
            raise TypeError("users are given: randomizer must be a callable that returns a randomizer of a local budget")
        family: Callable[[float], Any] = randomizer
        return largest_budget(lambda budget: cls(family(budget), count, participation), eps, delta)


@dataclass(frozen=True)
class _OneData(PrivacyProfile):
    """The hockey stick of one pair of neighbours."""

    law: ExcessLaw
    users: int
    step: float

    theorem: ClassVar[str] = "exact for the data named"
    neighbours: ClassVar[str] = Shuffled.neighbours

    def _log_delta(self, eps: FloatArray) -> Sides:
        lower, upper = self.law.log_phi(eps, self.users)
        return Sides(lower, np.minimum(upper, 0.0))

    def _pure_epsilon(self) -> float:
        return max(0.0, self.law.pure_epsilon)

    def _knowledge(self) -> Knowledge:
        known = replace(super()._knowledge(), single=True, spacing=self.step, seconds=1e-3 if self.law.log_mass.size < 64 else 1e-2)
        if _mirrored(self.law):
            return known
        reverse = _OneData(_swapped(self.law), self.users, self.step)
        return replace(known, reverse=reverse._log_delta, reverse_pure=reverse._pure_epsilon())


def _swapped(law: ExcessLaw) -> ExcessLaw:
    """Return the law of the pair in the other order, at or below it: what moved a down and b up is taken back twice."""
    back = ExcessLaw(law.log_mass, law.log_b - 2 * BLUR, law.log_a + 2 * BLUR, law.log_cut_b, law.log_cut)
    return back.widened(upper=False).widened(upper=False)


def _mirrored(law: ExcessLaw) -> bool:
    """Tell whether exchanging the two laws of the target changes nothing."""
    one, other = (np.stack([law.log_mass, *pair]) for pair in ((law.log_a, law.log_b), (law.log_b, law.log_a)))
    one, other = (array[:, np.lexsort(array)] for array in (one, other))
    return bool(np.all(np.asarray(law.log_cut) == np.asarray(law.log_cut_b)) and np.array_equal(one, other))
