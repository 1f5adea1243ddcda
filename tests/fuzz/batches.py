"""Hockey-stick divergences of DP-SGD on shuffled batches: P is the mean over i of N(2 e_i, sigma^2), Q that of N(e_i, sigma^2).

For one batch, k epochs are equivalent to one Gaussian mechanism with mean sqrt(k)/sigma. For two batches and one
epoch, with s = x + y and d = x - y,

    P/Q = e^(-3/(2 sigma^2) + s/(2 sigma^2)) cosh(d/sigma^2)/cosh(d/(2 sigma^2)),

and s is independent of d under both distributions. So the best test is a threshold on s for each d, and delta is one integral. For
more batches, delta is the mean of (1 - e^eps Q/P)_+ over random outputs drawn from P, with a margin of six standard errors, and for
the other order the same with P and Q exchanged.
"""

import math

import numpy as np
from scipy.special import ndtr

__all__ = ["exact", "sampled"]

DRAWS, WIDTH = 20_000, 6.0
NODES, WEIGHTS = np.polynomial.legendre.leggauss(100)


def exact(eps, sigma, steps, epochs):
    """Return the larger hockey-stick divergence of (P, Q) and (Q, P), with an error of about 1e-12.

    There is one batch, or there are two batches and one epoch.
    """
    if steps == 1:
        mu = math.sqrt(epochs) / sigma
        return float(ndtr(mu / 2 - eps / mu) - math.exp(eps) * ndtr(-mu / 2 - eps / mu))
    return max(_of_two(eps, sigma, 1), _of_two(eps, sigma, -1))


def _of_two(eps, sigma, side):
    wide, var = sigma * math.sqrt(2), sigma**2
    # The integrand is even in d, and smooth on intervals of half a standard deviation.
    edges = np.arange(0, 2 + 10 * wide, wide / 2)
    d = (edges[:-1, None] + wide / 4 * (1 + NODES)).ravel()
    edge = 2 * var * (side * eps + 3 / (2 * var) - _log_cosh(d / var) + _log_cosh(d / (2 * var)))

    # Above the threshold, P/Q > e^eps. For the other order, Q/P > e^eps below the threshold.
    def mass(mean):
        density = sum(np.exp(-((d - m) ** 2) / (2 * wide**2)) for m in (mean, -mean)) / (2 * wide * math.sqrt(2 * math.pi))
        return density * ndtr(side * (mean - edge) / wide)

    first, second = (mass(mean) for mean in ((2.0, 1.0) if side > 0 else (1.0, 2.0)))
    gain = first - math.exp(eps) * second
    return float(2 * (np.tile(WEIGHTS, edges.size - 1) * wide / 4) @ gain)


def _log_cosh(x):
    return x + np.log1p(np.exp(-2 * x)) - math.log(2)


def sampled(rng, eps, sigma, steps, epochs):
    """Return a random number that is at least the larger hockey-stick divergence, except with probability about 1e-9."""
    totals = np.zeros((2, DRAWS))
    for side, (mean, _) in enumerate(((2.0, 1.0), (1.0, 2.0))):
        for _ in range(epochs):
            y = rng.normal(size=(DRAWS, steps)) * sigma
            y[:, 0] += mean
            logs = [np.logaddexp.reduce((m * y - m * m / 2) / sigma**2, axis=1) for m in (2.0, 1.0)]
            totals[side] += (logs[0] - logs[1]) * (1 if side == 0 else -1)
    gains = np.maximum(-np.expm1(eps - totals), 0.0)
    # The last term follows from Bernstein's inequality. It matters if the divergence is so small that no draw may have a positive
    # gain.
    return float((gains.mean(axis=1) + WIDTH * gains.std(axis=1) / math.sqrt(DRAWS)).max()) + 40 / DRAWS
