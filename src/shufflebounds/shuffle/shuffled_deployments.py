"""Shuffled randomizers for arrays of parameters (deployments), evaluated in compiled code where possible."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shufflebounds._base import threads as _threads
from shufflebounds._base import validate as _validate
from shufflebounds._base.calls import class_given
from shufflebounds._base.docs import with_passages
from shufflebounds._base.limits import MANY
from shufflebounds._base.types import Bound, FloatArray, plain
from shufflebounds._engines.excess.excess_law import ExcessLaw, Randomizer, is_randomizer, packed
from shufflebounds._engines.excess.packed import epsilons, log_deltas
from shufflebounds.shuffle.deployments import flat
from shufflebounds.shuffle.shuffled import Shuffled

__all__ = ["shuffled_epsilons", "shuffled_log_deltas"]

Method: TypeAlias = Literal["tightest", "blanket"]
"""Which upper bound is computed: the smallest one, or the privacy blanket."""


class _DeploymentArray:
    """An array of deployments: each has a randomizer, a number of users and a third argument (eps or delta)."""

    def __init__(self, randomizer: Any, users: ArrayLike, participation: float, method: str, threads: int,
                 **third: FloatArray) -> None:
        self.threads = _threads.checked(threads)
        self.blanket = _validate.choice("method", method, ("tightest", "blanket")) == "blanket"
        counts = _validate.whole_array("users", users, 1, _validate.MAX_COUNT).astype(np.float64)
        self.share = participation
        self.kinds, places = _numbered(randomizer)
        self.shape, (self.places, self.users, self.third) = flat(randomizer=places, users=counts, **third)
        # The constructor of `Shuffled` checks the randomizers and the participation.
        most = _validate.MAX_COUNT
        self.protocols = [Shuffled(kind, most, participation)._of_users(most, blanket=self.blanket) for kind in self.kinds]

    def protocol(self, place: int) -> Shuffled:
        """Return the `Shuffled` protocol of one deployment."""
        kind: Shuffled = self.protocols[self.places[place]]
        return kind._of_users(int(self.users[place]))

    def laws(self, upper: bool) -> list[list[ExcessLaw]]:
        """Return the distributions of X (`ExcessLaw`) for each randomizer; the bound is the largest E(X_1 + ... + X_n)_+/n.

        The list is empty if the bound is not of this form.
        """
        return [protocol._kernel_laws(upper) for protocol in self.protocols]

    def left(self, upper: bool, laws: list[list[ExcessLaw]]) -> NDArray[np.bool_]:
        """Return a mask of the deployments that `Shuffled` evaluates, because the compiled code does not compute their bound."""
        alone: NDArray[np.bool_] = np.array([not law for law in laws])[self.places]
        # For few users `Shuffled` may enumerate every dataset, which the compiled code cannot do.
        for place in np.flatnonzero(~alone & (self.users < 2 * MANY)).tolist():
            alone[place] = not self.protocol(place)._kernel_laws(upper)
        return alone

    def answers(
        self, upper: bool, compiled: Callable[..., FloatArray], single: Callable[[Shuffled, float], float | FloatArray]
    ) -> FloatArray:
        """Return the result for each deployment, by the compiled code, or by `single` if `left` selects the deployment."""
        laws = self.laws(upper)
        alone = self.left(upper, laws)
        out = np.empty(alone.size)
        together, sets = np.flatnonzero(~alone), packed(laws)

        def fill(part: slice) -> None:
            rows = together[part]
            out[rows] = compiled(sets, self.places[rows], self.users[rows], self.third[rows])

        _threads.in_slices(fill, together.size, self.threads)

        def fill_alone(place: int) -> None:
            with _validate.quiet():
                out[place] = single(self.protocol(place), self.third[place])

        _threads.each(fill_alone, np.flatnonzero(alone).tolist(), self.threads)
        return out


def _numbered(randomizer: Any) -> tuple[list[Randomizer], NDArray[np.intp]]:
    """Return the distinct randomizers of a randomizer, a sequence or an array, and the index of each entry among them."""
    entries: NDArray[Any]
    if is_randomizer(randomizer) or isinstance(randomizer, type):
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
        if not is_randomizer(kind):
            raise TypeError(f"randomizer={kind!r} must be a local randomizer of shufflebounds.mechanisms{class_given(kind)}: pass "
                            "one, or a sequence of them, such as KaryResponse(10, 2.0)")
        try:
            number = numbers.setdefault(kind, len(kinds))
        except TypeError:
            number = numbers.setdefault(id(kind), len(kinds))
        if number == len(kinds):
            kinds.append(kind)
        places[index] = number
    return kinds, places


@with_passages
def shuffled_epsilons(
    randomizer: Any, users: ArrayLike, delta: ArrayLike, *, participation: float = 1.0, bound: Bound = "upper",
    method: Method = "tightest", threads: int = 1
) -> float | FloatArray:
    r"""Return epsilon of shuffled randomizers for arrays of parameters.

    Epsilon is the smallest :math:`\varepsilon` with :math:`\delta(\varepsilon) \le \delta`, where :math:`\delta(\varepsilon)` is
    that of :class:`Shuffled`.

    Parameters
    ----------
    {randomizers}
    {deltas}
    {participation}
    {side_of_eps}
    {method}
    {threads}

    Returns
    -------
    float or ndarray
        The chosen bound in nats, in the common shape of the arguments. By default it is that of :class:`Shuffled`, up to the
        tolerance of the search for eps; with ``method="blanket"`` the upper bound is up to 40 % larger.

    {raises_of_randomizers}

    Notes
    -----
    The eps of a lower bound or of the privacy blanket is within a relative 1e-8 of the point where the bound of delta equals
    `delta`.

    The distributions of X (see :class:`Shuffled`) of a randomizer are computed once. An upper bound with ``method="tightest"``
    takes 1 to 3 ms for a randomizer with few outputs, and 0.2 to 1 ms for randomized response of one bit and 1e4 users or more.
    Lower bounds and the privacy blanket take 0.015 to 0.06 ms for 1e6 users or more, 0.06 to 0.3 ms for 1e4 and 0.3 to 20 ms for
    1e2 to 1e3. During their computation the global interpreter lock is released, and a keyboard interrupt takes effect after one
    deployment. In two cases :class:`Shuffled` computes them: for few users of a small randomizer, whose datasets are searched, and
    for heavy tails (outputs that are 1e8 times more likely under one input than under the privacy blanket, such as those of
    Gaussian noise with sigma up to 0.6 for inputs between 0 and 1).

    {balle2019}

    Examples
    --------
    >>> from shufflebounds import mechanisms, shuffle
    >>> kinds = [mechanisms.KaryResponse(10, 1.0), mechanisms.KaryResponse(100, 1.0)]
    >>> eps = shuffle.shuffled_epsilons(kinds, [[10**4], [10**6]], 1e-6)
    >>> eps.round(6).tolist()
    [[0.023253, 0.007183], [0.001854, 0.000544]]
    >>> bool(eps[1, 0] == shuffle.Shuffled(kinds[0], 10**6).epsilon(1e-6))
    True
    """
    upper = _validate.upper_side(bound)
    deltas = _validate.real_array("delta", delta, 0, 1)
    population = _DeploymentArray(randomizer, users, participation, method, threads, delta=deltas)
    out = population.answers(upper, partial(epsilons, upper=upper), lambda one, delta: one.epsilon(delta, bound=bound))
    return plain(out.reshape(population.shape))


@with_passages
def shuffled_log_deltas(
    randomizer: Any, users: ArrayLike, eps: ArrayLike, *, participation: float = 1.0, bound: Bound = "upper",
    method: Method = "tightest", threads: int = 1
) -> float | FloatArray:
    r"""Return the logarithm of delta of shuffled randomizers for arrays of parameters.

    Parameters
    ----------
    {randomizers}
    {losses}
    {participation}
    {side}
    {method}
    {threads}

    Returns
    -------
    float or ndarray
        The chosen bound of log delta, in the common shape of the arguments; -inf where delta is 0. It is that of
        :class:`Shuffled`, or, with ``method="blanket"``, a larger upper bound.

    {raises_of_randomizers}

    Examples
    --------
    >>> from shufflebounds import mechanisms, shuffle
    >>> print(f"{shuffle.shuffled_log_deltas(mechanisms.KaryResponse(10, 1.0), 10**6, 0.002):.5f}")
    -14.48884
    """
    upper = _validate.upper_side(bound)
    population = _DeploymentArray(randomizer, users, participation, method, threads, eps=_validate.real_array("eps", eps, 0))
    out = population.answers(upper, lambda *rows: log_deltas(*rows)[upper], lambda one, eps: one.log_delta(eps, bound=bound))
    # delta is 0 if eps is at or above the pure budget.
    pure = np.array([protocol._pure_epsilon() for protocol in population.protocols])[population.places]
    out[population.third >= pure] = -np.inf
    return plain(np.minimum(out, 0.0).reshape(population.shape))
