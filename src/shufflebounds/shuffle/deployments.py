"""Clone bounds and binomial noise for arrays of parameters (deployments), evaluated in compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shufflebounds._base import threads as _threads
from shufflebounds._base import validate as _validate
from shufflebounds._base.docs import with_passages
from shufflebounds._base.limits import LARGEST_EXPONENT
from shufflebounds._base.types import Bound, FloatArray, plain
from shufflebounds._core import _clones, _deployments

__all__ = ["binomial_noise_epsilons", "binomial_noise_log_deltas", "clones_epsilons", "clones_log_deltas", "flat"]


def flat(**arguments: NDArray[Any]) -> tuple[tuple[int, ...], list[NDArray[Any]]]:
    """Return the common shape of arrays that broadcast against each other, and each broadcast array, flattened."""
    try:
        arrays = np.broadcast_arrays(*arguments.values())
    except ValueError:
        *names, last = arguments
        *shapes, end = (str(array.shape) for array in arguments.values())
        raise ValueError(
            f"{', '.join(names)} and {last} have shapes {', '.join(shapes)} and {end}: they must broadcast"
        ) from None
    return arrays[0].shape, [np.ascontiguousarray(array).ravel() for array in arrays]


def _clone_deployments(
    users: ArrayLike, local_eps: ArrayLike, stronger: bool, threads: int, **third: FloatArray
) -> tuple[tuple[int, ...], list[FloatArray], FloatArray]:
    """Return the common shape, the flattened arrays of users, local budgets and the third argument, and the rates of clones."""
    _threads.checked(threads)
    if not isinstance(stronger, bool | np.bool_):
        raise ValueError(f"stronger={stronger!r} must be True or False")
    counts = _validate.whole_array("users", users, 1, _validate.MAX_COUNT).astype(np.float64)
    local = _validate.local_budgets("local_eps", local_eps, 0, LARGEST_EXPONENT, open_low=True)
    shape, rows = flat(users=counts, local_eps=local, **third)
    rates = np.empty(rows[0].size)
    _clones.rates(rows[1], bool(stronger), rates)
    return shape, rows, rates


@with_passages
def clones_epsilons(
    users: ArrayLike, local_eps: ArrayLike, delta: ArrayLike, *, stronger: bool = True, bound: Bound = "upper", threads: int = 1
) -> float | FloatArray:
    r"""Return epsilon of the clone bounds for arrays of parameters.

    Epsilon is the smallest :math:`\varepsilon` with :math:`\delta(\varepsilon) \le \delta`, where :math:`\delta(\varepsilon)` is
    the bound of :class:`StrongerClones` or of :class:`Clones`.

    Parameters
    ----------
    users : int or array_like
        Numbers of users, 1 to 2**53, including the target.
    local_eps : float or array_like
        Local budgets in nats, in (0, 700].
    {deltas}
    stronger : bool
        True for the bound of :class:`StrongerClones`, False for that of :class:`Clones`.
    {side_of_eps}
    {threads}

    Returns
    -------
    float or ndarray
        The chosen bound in nats, in the common shape of the arguments. Each number equals the one that the method ``epsilon``
        returns.

    {raises_of_arrays}

    Notes
    -----
    One deployment takes 15 to 40 microseconds. The global interpreter lock is released during the computation; a keyboard interrupt
    takes effect at once.

    References
    ----------
    Feldman, V., McMillan, A., Talwar, K. Hiding Among the Clones, 2021; Stronger Privacy Amplification by Shuffling, 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from shufflebounds import shuffle
    >>> eps = shuffle.clones_epsilons([[10**4], [10**6], [10**9]], [1.0, 4.0], 1e-9)
    >>> print(np.array2string(eps, precision=6, suppress_small=True))
    [[0.062163 0.561116]
     [0.005637 0.04972 ]
     [0.000148 0.001345]]
    >>> bool(eps[1, 1] == shuffle.StrongerClones(10**6, 4.0).epsilon(1e-9))
    True
    """
    upper = _validate.upper_side(bound)
    target = _validate.real_array("delta", delta, 0, 1)
    shape, rows, rates = _clone_deployments(users, local_eps, stronger, threads, delta=target)
    out = np.empty(rates.size)

    def fill(part: slice) -> None:
        _clones.clones_epsilon(rows[0][part], rates[part], rows[1][part], rows[2][part], upper, out[part])

    _threads.in_slices(fill, rates.size, threads)
    return plain(out.reshape(shape))


def clones_log_deltas(
    users: ArrayLike, local_eps: ArrayLike, eps: ArrayLike, *, stronger: bool = True, bound: Bound = "upper", threads: int = 1
) -> float | FloatArray:
    r"""Return the logarithm of delta of the clone bounds for arrays of parameters.

    Parameters
    ----------
    users, local_eps, stronger, threads
        As in :func:`clones_epsilons`, where exceptions and references are listed, too.
    eps : float or array_like
        Privacy losses in nats, finite and >= 0. `users`, `local_eps` and `eps` broadcast against each other.
    bound : {"upper", "lower"}
        Whether to return an upper or a lower bound of the formula of the class.

    Returns
    -------
    float or ndarray
        The chosen bound of log delta, in the common shape of the arguments; -inf where delta is 0. Each number equals the one that
        the method ``log_delta`` returns.

    Examples
    --------
    >>> from shufflebounds import shuffle
    >>> print(f"{shuffle.clones_log_deltas(2**53, 1.0, 1e-8):.9f}")
    -20.173788672
    """
    upper = _validate.upper_side(bound)
    at = _validate.real_array("eps", eps, 0)
    shape, rows, rates = _clone_deployments(users, local_eps, stronger, threads, eps=at)
    sides = np.empty((2, rates.size))

    def fill(part: slice) -> None:
        _clones.clones_log_delta(rows[0][part], rates[part], rows[1][part], rows[2][part], *sides[:, part])

    _threads.in_slices(fill, rates.size, threads)
    out = np.minimum(sides[int(upper)], 0.0)
    return plain(out.reshape(shape))


def _of_noises(
    kernel: Callable[..., None], trials: ArrayLike, prob: ArrayLike, bound: Bound, threads: int, **third: FloatArray
) -> float | FloatArray:
    """Return the kernel's results for arrays of trials, probabilities and a third argument (delta or eps)."""
    upper = _validate.upper_side(bound)
    _threads.checked(threads)
    counts = _validate.whole_array("trials", trials, 0, _validate.MAX_COUNT).astype(np.float64)
    probs = _validate.real_array("prob", prob, 0, 1, open_low=True, open_high=True)
    shape, rows = flat(trials=counts, prob=probs, **third)
    out = np.empty(rows[0].size)
    _threads.in_slices(lambda part: kernel(*(row[part] for row in rows), upper, out[part]), out.size, threads)
    return plain(out.reshape(shape))


@with_passages
def binomial_noise_epsilons(
    trials: ArrayLike, prob: ArrayLike, delta: ArrayLike, *, bound: Bound = "upper", threads: int = 1
) -> float | FloatArray:
    r"""Return epsilon of binomial noise on a count for arrays of parameters.

    Epsilon is the smallest :math:`\varepsilon` with :math:`\delta(\varepsilon) \le \delta`, where :math:`\delta(\varepsilon)` is
    that of :class:`BinomialNoise`.

    Parameters
    ----------
    {noises}
    {deltas}
    {side_of_eps}
    {threads}

    Returns
    -------
    float or ndarray
        The chosen bound in nats, in the common shape of the arguments; inf where no eps meets delta. Each number equals the one
        that the method ``epsilon`` returns.

    {raises_of_arrays}

    Notes
    -----
    The global interpreter lock is released; a keyboard interrupt takes effect at once.

    {chen_long: section 3 (the mechanism C_H)}

    Examples
    --------
    >>> from shufflebounds import shuffle
    >>> shuffle.binomial_noise_epsilons([10**2, 10**4, 10**6], 0.5, 1e-6).round(6).tolist()
    [0.874476, 0.070982, 0.005848]
    >>> noise = shuffle.BinomialNoise(10**4, 0.5)
    >>> bool(shuffle.binomial_noise_epsilons(10**4, 0.5, 1e-6) == noise.epsilon(1e-6))
    True
    """
    return _of_noises(_deployments.noise_epsilon, trials, prob, bound, threads, delta=_validate.real_array("delta", delta, 0, 1))


@with_passages
def binomial_noise_log_deltas(
    trials: ArrayLike, prob: ArrayLike, eps: ArrayLike, *, bound: Bound = "upper", threads: int = 1
) -> float | FloatArray:
    r"""Return the logarithm of delta of binomial noise on a count for arrays of parameters.

    Parameters
    ----------
    {noises}
    {losses}
    {side}
    {threads}

    Returns
    -------
    float or ndarray
        The chosen bound of log delta, in the common shape of the arguments. Each number equals the one that ``log_delta`` of
        :class:`BinomialNoise` returns.

    {raises_of_arrays}

    Examples
    --------
    >>> from shufflebounds import shuffle
    >>> print(f"{shuffle.binomial_noise_log_deltas(10**9, 0.5, 0.001):.9f}")
    -141.120205661
    """
    return _of_noises(_deployments.noise_log_delta, trials, prob, bound, threads, eps=_validate.real_array("eps", eps, 0))
