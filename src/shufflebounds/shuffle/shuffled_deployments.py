"""Arrays of deployments of shuffled randomizers: eps and delta for many of them at once, in compiled code."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shufflebounds import _validate
from shufflebounds._docs import with_passages
from shufflebounds._types import Bound, FloatArray, plain
from shufflebounds.shuffle._compiled_laws import largest_epsilon, largest_log_delta
from shufflebounds.shuffle._mixed_data import FEW
from shufflebounds.shuffle.deployments import flat
from shufflebounds.shuffle.laws import ExcessLaw, Randomizer
from shufflebounds.shuffle.shuffled import Shuffled

__all__ = ["shuffled_epsilon", "shuffled_log_delta"]


class _DeploymentArray:
    """Deployments of shuffled randomizers: their shape, and of each deployment its randomizer, users and the third argument."""

    def __init__(self, randomizer: Any, users: ArrayLike, participation: float, **third: FloatArray) -> None:
        counts = _validate.whole_array("users", users, 1, _validate.MAX_COUNT).astype(np.float64)
        self.share = participation
        self.kinds, places = _distinct(randomizer)
        self.shape, (self.places, self.users, self.third) = flat(randomizer=places, users=counts, **third)
        # the class refuses a share or a randomizer that is none
        self.protocols = [Shuffled(kind, _validate.MAX_COUNT, participation) for kind in self.kinds]

    def protocol(self, place: int) -> Shuffled:
        """Return the class of one deployment."""
        return Shuffled(self.kinds[self.places[place]], int(self.users[place]), self.share)

    def laws(self, upper: bool) -> list[list[ExcessLaw]]:
        """Return the laws of each randomizer, none where the class does more than take the largest."""
        return [protocol._searched(upper) or [] for protocol in self.protocols]

    def left(self, upper: bool, laws: list[list[ExcessLaw]]) -> NDArray[np.bool_]:
        """Return which deployments are left to the class: those of which it knows more than their laws."""
        alone: NDArray[np.bool_] = np.array([not law for law in laws])[self.places]
        # of few users every dataset may be enumerated
        for place in np.flatnonzero(~alone & (self.users <= FEW)).tolist():
            alone[place] = self.protocol(place)._searched(upper) is None
        return alone

    def answers(
        self, upper: bool, compiled: Callable[..., FloatArray], single: Callable[[Shuffled, float], float | FloatArray]
    ) -> FloatArray:
        """Return one answer each: in compiled code from the laws, and of the class where these are not all that is known."""
        laws = self.laws(upper)
        alone = self.left(upper, laws)
        out = np.empty(alone.size)
        out[~alone] = compiled(laws, self.places[~alone], self.users[~alone], self.third[~alone])
        with _validate.quiet():
            for place in np.flatnonzero(alone).tolist():
                out[place] = single(self.protocol(place), self.third[place])
        return out


def _distinct(randomizer: Any) -> tuple[list[Randomizer], NDArray[np.intp]]:
    """Return the different randomizers of one, of a sequence or of an array of them, and the place of each entry in that list."""
    entries: NDArray[Any]
    if isinstance(randomizer, Randomizer):
        entries = np.empty((), dtype=object)
        entries[()] = randomizer
    elif isinstance(randomizer, np.ndarray):
        entries = randomizer
    else:
        listed = list(randomizer) if hasattr(randomizer, "__iter__") else [randomizer]
        entries = np.empty(len(listed), dtype=object)
        entries[:] = listed
    if not entries.size:
        raise ValueError("randomizer must not be empty: give at least one")
    numbers: dict[Any, int] = {}
    kinds: list[Randomizer] = []
    places = np.empty(entries.shape, dtype=np.intp)
    for index, kind in np.ndenumerate(entries):
        if not isinstance(kind, Randomizer):
            raise TypeError(f"randomizer={kind!r} must be a local randomizer of shufflebounds.mechanisms: pass one, or a sequence "
                            "of them, such as KaryResponse(10, 2.0)")
        try:
            number = numbers.setdefault(kind, len(kinds))
        except TypeError:
            number = numbers.setdefault(id(kind), len(kinds))
        if number == len(kinds):
            kinds.append(kind)
        places[index] = number
    return kinds, places


@with_passages
def shuffled_epsilon(
    randomizer: Any, users: ArrayLike, delta: ArrayLike, *, participation: float = 1.0, bound: Bound = "upper"
) -> float | FloatArray:
    r"""The epsilon of shuffled randomizers, for arrays of deployments.

    The least :math:`\varepsilon` with :math:`\delta(\varepsilon) \le \delta`, :math:`\delta(\varepsilon)` that of
    :class:`Shuffled`.

    Parameters
    ----------
    {randomizers}
    {deltas}
    {participation}
    {side_of_eps}

    Returns
    -------
    float or ndarray
        The chosen bound in nats, of the common shape. The upper bound is that of the privacy blanket; ``epsilon`` of the class
        may return a smaller number, from the bound over all datasets. The lower bound is that of the class.

    {raises_of_randomizers}

    Notes
    -----
    The laws of a randomizer are formed once. For a randomizer of few atoms an eps takes 0.03 to 0.08 ms from 1e6 users on, 0.1
    to 0.4 ms at 1e4 and 1 to 20 ms at 1e2 to 1e3; it lies within a relative 1e-8 of the crossing of its side with `delta`. The
    interpreter's lock is given up meanwhile, and an interrupt is answered after one deployment. The class itself answers for
    the lower side for few users of a small randomizer, a search of the data, and heavy tails: outputs a hundred million times
    as likely under one input as under the blanket, such as those of Gaussian noise of sigma up to 0.6 for inputs in [0, 1].

    {balle2019}

    Examples
    --------
    >>> from shufflebounds import mechanisms, shuffle
    >>> kinds = [mechanisms.KaryResponse(10, 1.0), mechanisms.KaryResponse(100, 1.0)]
    >>> eps = shuffle.shuffled_epsilon(kinds, [[10**4], [10**6]], 1e-6)
    >>> eps.round(6).tolist()
    [[0.023253, 0.007183], [0.001854, 0.000544]]
    >>> bool(eps[1, 0] == shuffle.Shuffled(kinds[0], 10**6).epsilon(1e-6))
    True
    """
    upper = _validate.upper_side(bound)
    population = _DeploymentArray(randomizer, users, participation, delta=_validate.real_array("delta", delta, 0, 1))
    out = population.answers(upper, partial(largest_epsilon, upper=upper), lambda one, delta: one.epsilon(delta, bound=bound))
    return plain(out.reshape(population.shape))


@with_passages
def shuffled_log_delta(
    randomizer: Any, users: ArrayLike, eps: ArrayLike, *, participation: float = 1.0, bound: Bound = "upper"
) -> float | FloatArray:
    r"""The logarithm of delta of shuffled randomizers, for arrays of deployments.

    Parameters
    ----------
    {randomizers}
    {losses}
    {participation}
    {side}

    Returns
    -------
    float or ndarray
        The chosen bound of log delta, of the common shape; -inf where delta is 0. The upper bound is that of the privacy
        blanket; ``log_delta`` of :class:`Shuffled` may return a smaller number, from the bound over all datasets.

    {raises_of_randomizers}

    {balle2019}

    Examples
    --------
    >>> from shufflebounds import mechanisms, shuffle
    >>> print(f"{shuffle.shuffled_log_delta(mechanisms.KaryResponse(10, 1.0), 10**6, 0.002):.5f}")
    -14.48884
    """
    upper = _validate.upper_side(bound)
    population = _DeploymentArray(randomizer, users, participation, eps=_validate.real_array("eps", eps, 0))
    out = population.answers(upper, lambda *law: largest_log_delta(*law)[upper], lambda one, eps: one.log_delta(eps, bound=bound))
    # from the pure budget on, delta is 0
    pure = np.array([protocol._pure_epsilon() for protocol in population.protocols])[population.places]
    out[population.third >= pure] = -np.inf
    return plain(np.minimum(out, 0.0).reshape(population.shape))
