"""Shuffled batches of fixed size: a lower bound of delta for DP-SGD."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from shufflebounds._base import validate as _validate
from shufflebounds._base.docs import with_passages
from shufflebounds._base.limits import LARGEST_EXPONENT
from shufflebounds._base.scipy_functions import log_ndtr
from shufflebounds._base.types import FloatArray
from shufflebounds._engines.allocation.ratios import smaller_tails
from shufflebounds.profile import DominatingPair

__all__ = ["shuffled_sgd_delta"]


@with_passages
def shuffled_sgd_delta(eps: float, sigma: float, steps: int, epochs: int = 1) -> float:
    r"""Lower bound of delta for DP-SGD on shuffled batches of fixed size, each record in one of t batches of an epoch.

    .. math:: \delta(\varepsilon) \ge \max\{H_E(M(P)^k \| M(Q)^k),\; H_E(M(Q)^k \| M(P)^k)\}, \qquad
        P = \frac1t \sum_{i=1}^t N(2 e_i, \sigma^2 I), \quad Q = \frac1t \sum_{i=1}^t N(e_i, \sigma^2 I)

    The real line is divided into about three thousand intervals, and M(y) is the interval that contains the largest entry of y. k
    is the number of epochs, and E = e^eps.

    Parameters
    ----------
    eps : float
        Privacy loss in nats, >= 0.
    sigma : float
        Noise multiplier, the standard deviation over the clipping norm, in [0.01, 1e6].
    steps : int
        Number t of batches in an epoch, 1 to 2**53.
    epochs : int
        Number k of epochs, each with an independent shuffle, 1 to 2**53.

    Returns
    -------
    float
        A lower bound of delta, in [0, 1]: for no smaller delta is the mechanism (eps, delta)-private.

    {raises}

    Notes
    -----
    Adjacency: the record is present, or **zeroed** (its gradient counts as 0, its place in a batch stays). *The pair.* All other
    records have gradient -1 in one direction, this record +1. In batches of b records, a batch without this record sums to -b. The
    batch with this record sums to -b + 2, or to -b + 1 if the record is zeroed, and is a uniformly random one of the t batches.
    After adding b to every sum, the outputs have the distributions P and Q above (Chua et al. 2024, section 4). P and Q are those
    of datasets with these gradients, for every b, so the divergence of every function of the outputs is a lower bound. Epochs are
    shuffled independently, so their intervals form a product of pairs.

    *Checked* by this library's tests: the pair by enumerating all orders of up to 6 records, with their sums; the bound by
    quadrature over the plane for t = 2 (nowhere above the exact hockey-stick divergence of P and Q, in either order) and against
    the Gaussian mechanism for t = 1; two epochs against the sum over all pairs of intervals. For small sigma the largest entry
    contains most of the information. For sigma >= 1 and many batches it contains little, and the bound is not tight.

    Not covered: batches that stay the same from epoch to epoch, and add/remove adjacency, under which the size of the last batch
    reveals the number of records.

    References
    ----------
    Chua, L., Ghazi, B., Kamath, P., Kumar, R., Manurangsi, P., Sinha, A., Zhang, C. How private are DP-SGD implementations?
    arXiv 2403.17673, ICML 2024, section 4.

    Chua, L. et al. Scalable DP-SGD: shuffling vs. Poisson subsampling. arXiv 2411.04205, NeurIPS 2024.

    Examples
    --------
    >>> from shufflebounds.sampling import shuffled_sgd_delta
    >>> for epochs in (1, 3):
    ...     print(f"{shuffled_sgd_delta(1.0, sigma=0.5, steps=1000, epochs=epochs):.3f}")
    0.371
    0.697
    """
    eps = _validate.real("eps", eps, 0, 1e6)
    sigma = _validate.real("sigma", sigma, 0.01, 1e6)
    steps = _validate.integer("steps", steps, 1)
    epochs = _validate.integer("epochs", epochs, 1)
    log_p, log_q = largest_entry(sigma, steps)
    pair = DominatingPair.from_pmfs(log_p, log_q)
    # Log tails at neighbouring edges differ by at least 1e-3 and are at least -700, with relative errors of 1e-15. So the mass of
    # an interval has a relative error below 1e-8. Over all epochs, these errors change the losses by at most twice their sum, and
    # delta by a relative error of the same size.
    loss_error = epochs * 1e-8
    at = eps + 2 * loss_error
    log_delta = max(way.self_compose(epochs, rtol=1e-3).log_delta(at, bound="lower") for way in (pair, pair.reverse()))
    return max(0.0, math.exp(log_delta) * (1 - 2 * loss_error) - 1e-300)


def largest_entry(sigma: float, steps: int) -> tuple[FloatArray, FloatArray]:
    """Return the log masses of the intervals of the largest entry under P and under Q."""
    # The edges are in units of sigma. Under both distributions, the mass below the first edge and the mass above the last edge are
    # below about 1e-18.
    reach = math.sqrt(2 * math.log(steps + 1)) + 9.0
    quiet = -9.0 if steps < 50 else max(-9.0, math.sqrt(max(0.0, 2 * math.log(steps) - 12)) - 3.0)
    # More intervals tighten the lower bound and take longer.
    edges = np.linspace(quiet, max(reach, 2 / sigma + 9.0), 2999)

    def tails(mean: float) -> tuple[FloatArray, FloatArray]:
        below = log_ndtr(edges - mean / sigma) + (steps - 1) * log_ndtr(edges)
        return below, np.asarray(np.log(-np.expm1(np.minimum(below, -1e-300))))

    laws = [tails(2.0), tails(1.0)]
    kept = _kept_edges(laws)
    return _masses(*(tail[kept] for tail in laws[0])), _masses(*(tail[kept] for tail in laws[1]))


def _kept_edges(laws: list[tuple[FloatArray, FloatArray]]) -> NDArray[np.intp]:
    """Return the indices of the edges to keep, such that the mass of each interval can be computed accurately.

    Each interval has at least 1/1000 of the mass of the smaller adjacent tail. With a smaller fraction there are more intervals,
    whose masses have larger errors.
    """
    kept: list[int] = []
    least = -math.log1p(-1e-3)
    for i in range(laws[0][0].size):
        if any(max(below[i], -1e300) < -LARGEST_EXPONENT or above[i] < -LARGEST_EXPONENT for below, above in laws):
            continue
        if not kept or all(
            (below[i] - below[kept[-1]] if below[i] < above[i] else above[kept[-1]] - above[i]) > least for below, above in laws
        ):
            kept.append(i)
    return np.array(kept, dtype=np.intp)


def _masses(below: FloatArray, above: FloatArray) -> FloatArray:
    """Return the log masses of the intervals between edges and of the two tails, from the log tails below and above the edges."""
    low, high = smaller_tails(below, above)
    return np.concatenate([below[:1], high + np.log(-np.expm1(low - high)), above[-1:]])
