"""Reference profiles of the mechanisms from their definitions, by sums over all outcomes or by erfc, with 300 digits."""

import functools

import mpmath as mp

from tests import oracles

DIGITS = 300


def long(function):
    """Decorate a function such that it is evaluated with 300 digits."""

    @functools.wraps(function)
    def run(*args):
        with mp.workdps(DIGITS):
            return function(*args)

    return run


@long
def exponential(x):
    return mp.exp(mp.mpf(x))


@long
def log(x):
    """Return the logarithm of x, or None for 0."""
    return mp.log(x) if x else None


hockey_stick = long(oracles.hockey_stick)


@long
def renyi(p, q, order):
    """Return the Renyi divergence of two dictionaries on the same outcomes, as a float."""
    if order == 1:
        return float(mp.fsum(v * mp.log(v / q[y]) for y, v in p.items()))
    if order == float("inf"):
        return float(max(mp.log(v / q[y]) for y, v in p.items()))
    return float(mp.log(mp.fsum(q[y] * (v / q[y]) ** mp.mpf(order) for y, v in p.items())) / (mp.mpf(order) - 1))


def shifted(law, by):
    """Return the distribution of an integer with distribution `law`, plus `by`."""
    return {y + by: v for y, v in law.items()}


@functools.cache
@long
def geometric(eps, sensitivity, bound):
    """Return the double geometric distribution, clipped to [-bound, bound]."""
    q = mp.exp(-mp.mpf(eps) / sensitivity)
    law = {k: (1 - q) / (1 + q) * q ** abs(k) for k in range(-bound + 1, bound)}
    return law | {bound: q**bound / (1 + q), -bound: q**bound / (1 + q)}


@long
def gaussian_log_delta(sigma, sensitivity, eps):
    """Return log delta of Gaussian noise."""
    mu = mp.mpf(sensitivity) / mp.mpf(sigma)
    x = mp.mpf(eps) / mu - mu / 2
    tail = [mp.erfc(t / mp.sqrt(2)) / 2 for t in (x, x + mu)]
    return mp.log(tail[0] - mp.exp(mp.mpf(eps)) * tail[1])


@functools.cache
@long
def discrete_gaussian(sigma, reach):
    """Return the discrete Gaussian distribution on -reach..reach; the mass outside must be negligible."""
    s = mp.mpf(sigma)
    mass = {k: mp.exp(-((k / s) ** 2) / 2) for k in range(-reach, reach + 1)}
    total = mp.fsum(mass.values())
    return {k: v / total for k, v in mass.items()}
