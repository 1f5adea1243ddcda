"""Hockey-stick divergences of DP-SGD on shuffled batches: P is the mean over i of N(2 e_i, sigma^2), Q that of N(e_i, sigma^2).

For one batch, k epochs are equivalent to one Gaussian mechanism with mean sqrt(k)/sigma. For two batches and one
epoch, with s = x + y and d = x - y,

    P/Q = e^(-3/(2 sigma^2) + s/(2 sigma^2)) cosh(d/sigma^2)/cosh(d/(2 sigma^2)),

and s is independent of d under both distributions. So the best test is a threshold on s for each d, and delta is one integral. For
more batches, delta is the mean of (1 - e^eps Q/P)_+ over random outputs drawn from P, with a margin of six standard errors, and for
the other order the same with P and Q exchanged.

`Dataset` is an epoch of few records whose vectors may depend on the earlier outputs. Its two densities at given outputs are sums
over all ways to cut the records into batches, and delta is estimated from outputs drawn at random.
"""

import itertools
import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, xlogy

__all__ = ["Dataset", "exact", "sampled"]

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


class Dataset:
    """An epoch of DP-SGD on T batches of B records in d dimensions; the first record is the target.

    Each record has two vectors, and uses the first or the second one according to the sign of a linear function of the last output.
    In the first step it uses the first one. No vector is longer than 1.

    Parameters
    ----------
    r : random.Random
        Draws the vectors. Half of the datasets are close to those in which all other vectors are opposite to the target's.
    sigma : float
        Standard deviation of the noise.
    steps, batch : int
        T and B.
    """

    def __init__(self, r, sigma, steps, batch):
        self.sigma, self.steps, self.batch, self.records = sigma, steps, batch, steps * batch
        rng = np.random.default_rng(r.randrange(2**32))
        dimension = int(rng.integers(1, 4))
        vectors = rng.normal(size=(2, self.records, dimension))
        vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
        if r.random() < 0.5:
            # Most of the other records are opposite to the target, some are equal to it, and the second vectors are turned.
            signs = np.where(rng.random(self.records) < r.choice([1.0, 0.9, 0.5]), -1.0, 1.0)
            signs[0] = 1.0
            vectors = signs[:, None] * vectors[:, :1] * np.where(r.random() < 0.5, 1.0, np.array([1.0, -1.0]))[:, None, None]
        elif r.random() < 0.5:
            vectors *= rng.random((2, self.records, 1))
        self.vectors, self.normals = vectors, rng.normal(size=(self.records, dimension))
        self.rng = rng

    def _chosen(self, last):
        """Return the vectors of all records after the given outputs: an array of outputs, records and coordinates."""
        if last is None:
            return self.vectors[0][None]
        second = last @ self.normals.T > 0
        return np.where(second[:, :, None], self.vectors[1], self.vectors[0])

    def outputs(self, draws, present):
        """Return random outputs of all steps: an array of draws, steps and coordinates."""
        order = self.rng.permuted(np.tile(np.arange(self.records), (draws, 1)), axis=1).reshape(draws, self.steps, self.batch)
        found = []
        for step in range(self.steps):
            vectors = np.broadcast_to(self._chosen(found[-1] if found else None), (draws, *self.vectors.shape[1:])).copy()
            vectors[:, 0] *= present
            total = np.take_along_axis(vectors, order[:, step, :, None], 1).sum(axis=1)
            found.append(total + self.sigma * self.rng.normal(size=total.shape))
        return np.stack(found, axis=1)

    def log_densities(self, outputs):
        """Return the log densities with and without the target, up to a common number for each row of outputs."""
        return [self._log_density(outputs, present) for present in (1.0, 0.0)]

    def _log_density(self, outputs, present):
        sums, scale = {0: np.ones(len(outputs))}, np.zeros(len(outputs))
        for step in range(self.steps):
            vectors = np.broadcast_to(self._chosen(outputs[:, step - 1] if step else None),
                                      (len(outputs), *self.vectors.shape[1:])).copy()
            vectors[:, 0] *= present
            powers = {}
            for chosen in itertools.combinations(range(self.records), self.batch):
                total = vectors[:, chosen].sum(axis=1)
                powers[chosen] = np.einsum("ij,ij->i", total, outputs[:, step] - total / 2) / self.sigma**2
            top = np.max(list(powers.values()), axis=0)
            terms = {sum(1 << one for one in chosen): np.exp(power - top) for chosen, power in powers.items()}
            new = {}
            for taken, value in sums.items():
                for more, term in terms.items():
                    if not taken & more:
                        new[taken | more] = new.get(taken | more, 0.0) + value * term
            sums, scale = new, scale + top
        return scale + np.log(sums[2**self.records - 1])

    def least_delta(self, eps, draws=2000):
        """Return a random number that is at most the larger hockey-stick divergence, except with probability about 1e-9."""
        bounds = []
        for present in (1.0, 0.0):
            first, second = self.log_densities(self.outputs(draws, present))
            bounds.append(_least_mean(np.maximum(-np.expm1(eps - (first - second if present else second - first)), 0.0)))
        return max(bounds)


def _least_mean(values):
    """Return a number that is at most the mean of values in [0, 1], except with probability 1e-9 (Hoeffding 1963, Theorem 1).

    Values below the others may be so rare that none is drawn, so the standard deviation of the values gives no bound.
    """
    mean = float(values.mean())

    def excess(q):
        return values.size * (xlogy(mean, mean / q) + xlogy(1 - mean, (1 - mean) / (1 - q))) - 9 * math.log(10)

    return brentq(excess, mean * 1e-12, min(mean, 1 - 1e-12)) if mean * values.size > 1 else 0.0
