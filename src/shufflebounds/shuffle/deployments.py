"""Arrays of deployments: the numbers of a protocol for many parameters at once, in compiled code."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from shufflebounds import _validate
from shufflebounds._core import _clones
from shufflebounds._types import SIDES, Bound, FloatArray
from shufflebounds.shuffle.clones import MAX_LOCAL_EPS

__all__ = ["clones_epsilon", "clones_log_delta"]


def _deployments(
    users: ArrayLike, local_eps: ArrayLike, name: str, third: FloatArray, stronger: bool
) -> tuple[tuple[int, ...], list[FloatArray], FloatArray]:
    """Return the common shape, the flattened arguments users, local_eps and the third, and the rate of clones."""
    if not isinstance(stronger, bool | np.bool_):
        raise ValueError(f"stronger={stronger!r} must be True or False")
    counts = _validate.whole_array("users", users, 1, _validate.MAX_COUNT).astype(np.float64)
    local = _validate.real_array("local_eps", local_eps, 0, MAX_LOCAL_EPS, open_low=True)
    try:
        arrays = np.broadcast_arrays(counts, local, third)
    except ValueError:
        raise ValueError(
            f"users, local_eps and {name} have shapes {counts.shape}, {local.shape} and {third.shape}: they must broadcast"
        ) from None
    flat = [np.ascontiguousarray(array).ravel() for array in arrays]
    rates = np.empty(flat[0].size)
    _clones.rates(flat[1], bool(stronger), rates)
    return arrays[0].shape, flat, rates


def clones_epsilon(
    users: ArrayLike, local_eps: ArrayLike, delta: ArrayLike, *, stronger: bool = True, bound: Bound = "upper"
) -> float | FloatArray:
    r"""The epsilon of the clone bounds, for arrays of deployments.

    The least :math:`\varepsilon` with :math:`\delta(\varepsilon) \le \delta`, :math:`\delta(\varepsilon)` the bound of
    :class:`StrongerClones`, or of :class:`Clones`.

    Parameters
    ----------
    users : int or array_like
        Numbers of users, 1 to 2**53, the target included.
    local_eps : float or array_like
        Local budgets in nats, in (0, 700].
    delta : float or array_like
        Failure probabilities in [0, 1]. The three broadcast against each other.
    stronger : bool
        True for the bound of :class:`StrongerClones`, False for that of :class:`Clones`.
    bound : {"upper", "lower"}
        "upper": an eps at which the upper bound of delta was evaluated and is at most `delta`. "lower": an eps at which the
        lower bound of delta still reaches `delta`.

    Returns
    -------
    float or ndarray
        The chosen bound in nats, of the common shape: the very number that ``epsilon`` of the class returns.

    Raises
    ------
    ValueError
        If an argument lies outside its range or is empty, the shapes do not broadcast, or `bound` is neither word.

    Notes
    -----
    One deployment takes 15 to 40 microseconds. The interpreter's lock is given up meanwhile, so that threads share the work, and an
    interrupt is answered at once.

    References
    ----------
    Feldman, V., McMillan, A., Talwar, K. Hiding Among the Clones, 2021; Stronger Privacy Amplification by Shuffling, 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from shufflebounds import shuffle
    >>> eps = shuffle.clones_epsilon([[10**4], [10**6], [10**9]], [1.0, 4.0], 1e-9)
    >>> print(np.array2string(eps, precision=6, suppress_small=True))
    [[0.062163 0.561116]
     [0.005637 0.04972 ]
     [0.000148 0.001345]]
    >>> bool(eps[1, 1] == shuffle.StrongerClones(10**6, 4.0).epsilon(1e-9))
    True
    """
    upper = _validate.choice("bound", bound, SIDES) == "upper"
    target = _validate.real_array("delta", delta, 0, 1)
    shape, flat, rates = _deployments(users, local_eps, "delta", target, stronger)
    out = np.empty(rates.size)
    _clones.clones_epsilon(flat[0], rates, flat[1], flat[2], upper, out)
    return out.reshape(shape) if shape else float(out[0])


def clones_log_delta(
    users: ArrayLike, local_eps: ArrayLike, eps: ArrayLike, *, stronger: bool = True, bound: Bound = "upper"
) -> float | FloatArray:
    r"""The logarithm of delta of the clone bounds, for arrays of deployments.

    Parameters
    ----------
    users, local_eps, stronger
        As in :func:`clones_epsilon`, which says what is raised and where the bounds come from.
    eps : float or array_like
        Privacy losses in nats, finite and >= 0. It and the first two broadcast against each other.
    bound : {"upper", "lower"}
        The side of the exact value of the formula of the class on which the answer lies.

    Returns
    -------
    float or ndarray
        The chosen bound of log delta, of the common shape; -inf where delta is 0. The very number that ``log_delta`` of the class
        returns.

    Examples
    --------
    >>> from shufflebounds import shuffle
    >>> print(f"{shuffle.clones_log_delta(2**53, 1.0, 1e-8):.9f}")
    -20.173788672
    """
    side = SIDES.index(_validate.choice("bound", bound, SIDES))
    at = _validate.real_array("eps", eps, 0)
    shape, flat, rates = _deployments(users, local_eps, "eps", at, stronger)
    sides = np.empty(rates.size), np.empty(rates.size)
    _clones.clones_log_delta(flat[0], rates, flat[1], flat[2], *sides)
    out = np.minimum(sides[side], 0.0)
    return out.reshape(shape) if shape else float(out[0])
