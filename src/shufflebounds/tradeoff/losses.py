"""The privacy losses of two distributions given as lists, and the tail probability of the loss."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from shufflebounds._base import validate as _validate
from shufflebounds._base.docs import with_passages
from shufflebounds._base.types import FloatArray, plain

__all__ = ["loss_tail", "privacy_losses"]


@with_passages
def privacy_losses(log_p: ArrayLike, log_q: ArrayLike) -> tuple[FloatArray, FloatArray]:
    r"""Return the distinct privacy losses of P against Q, and the mass under P at each of them.

    .. math:: \mathcal{L}(y) = \ln\frac{P(y)}{Q(y)}

    Parameters
    ----------
    log_p, log_q : array_like, shape (atoms,)
        As for :func:`log_hockey_stick`.

    Returns
    -------
    losses : ndarray, shape (losses,)
        The distinct losses of the outcomes with positive probability under P, increasing; inf for outcomes impossible under Q.
    log_mass : ndarray, shape (losses,)
        Natural logarithms of the mass of P at each loss. Missing mass of P is not included.

    {raises: As from :func:`log_hockey_stick`.}

    References
    ----------
    .. [1] S. Das, "Differential privacy: ideas, concepts and advances", 2022, Definition 3.6.

    Examples
    --------
    >>> import numpy as np
    >>> from shufflebounds.tradeoff import privacy_losses
    >>> losses, log_mass = privacy_losses(np.log([0.5, 0.25, 0.25]), np.log([0.125, 0.375, 0.5]))
    >>> losses.round(6).tolist(), np.exp(log_mass).round(6).tolist()
    ([-0.693147, -0.405465, 1.386294], [0.25, 0.25, 0.5])
    """
    p, q = _validate.log_pmfs(log_p, log_q)
    held = p > -np.inf
    losses, place = np.unique(p[held] - q[held], return_inverse=True)
    log_mass = np.full(losses.size, -np.inf)
    np.logaddexp.at(log_mass, place, p[held])
    return losses, log_mass


@with_passages
def loss_tail(log_p: ArrayLike, log_q: ArrayLike, eps: ArrayLike) -> float | FloatArray:
    r"""The probability under P of a privacy loss above eps, :math:`\Pr_{y \sim P}[\ln(P(y)/Q(y)) > \varepsilon]`.

    This probability is at least delta(eps). An upper bound of this probability is called probabilistic or pointwise differential
    privacy; see also :meth:`~shufflebounds.profile.PrivacyProfile.loss_tail`.

    Parameters
    ----------
    log_p, log_q : array_like, shape (atoms,)
        As for :func:`log_hockey_stick`.
    eps : float or array_like
        Privacy loss in nats, finite, of either sign.

    Returns
    -------
    float or ndarray
        The probability, exact up to rounding, of the shape of `eps`. Missing mass of P is omitted.

    {raises: As from :func:`log_hockey_stick`.}

    Notes
    -----
    Losses that equal `eps` after rounding do not count as above it.

    References
    ----------
    .. [1] Zhilyaev, M. "Shuffled bits and fake records", (2.2).

    Examples
    --------
    >>> import numpy as np
    >>> from shufflebounds.tradeoff import hockey_stick, loss_tail
    >>> p, q = np.log([0.75, 0.25]), np.log([0.25, 0.75])
    >>> round(loss_tail(p, q, np.log(2)), 12), round(hockey_stick(p, q, np.log(2)), 12)
    (0.75, 0.25)
    """
    losses, log_mass = privacy_losses(log_p, log_q)
    array = _validate.real_array("eps", eps)
    # Cumulative sums of positive terms from the largest loss downwards.
    above = np.append(np.cumsum(np.exp(log_mass[::-1]))[::-1], 0.0)
    return plain(np.minimum(above[np.searchsorted(losses, array, side="right")], 1.0))
