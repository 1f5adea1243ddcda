"""Vectorized kernels return the same bits on every instruction set, for every length of the array, and for single numbers."""

import numpy as np
import pytest

from shufflebounds._core import _beta, _binomial, _gamma, _hypergeom, _ufunc

BLOCK = 256


def binomial_arguments(seed):
    """Return 256 triples (k, n, p) that use all methods of the vectorized kernels, some of them outside of the domain."""
    rng = np.random.default_rng(seed)
    n = np.floor(2 ** rng.uniform(0, 53, BLOCK))
    p = np.where(rng.random(BLOCK) < 0.5, rng.random(BLOCK), np.exp(-rng.uniform(0, 740, BLOCK)))
    p = np.where(rng.random(BLOCK) < 0.2, 1 - p, p)
    distance = rng.choice([1, 6, 40, 1e4], BLOCK) * rng.normal(size=BLOCK)
    k = np.clip(np.round(n * p + distance * np.sqrt(n * p * (1 - p))), 0, n)
    k = np.where(rng.random(BLOCK) < 0.3, np.floor(n * rng.random(BLOCK)), k)
    k[::17], n[::29], p[::31], p[::37], p[::41] = np.nan, 2.5, 2, 0, 1
    return k, n, p


def negative_binomial_arguments(seed):
    """Return 256 triples (k, r, p) of the negative binomial distribution: k failures before the r-th success."""
    successes, n, p = binomial_arguments(seed)
    rng = np.random.default_rng(seed + 1000)
    r = np.where(rng.random(BLOCK) < 0.1, successes + 0.5, successes)
    return n - successes, r, p


def beta_arguments(seed):
    """Return 256 triples (a, b, x); in nine of ten, a and b are integers."""
    failures, r, x = negative_binomial_arguments(seed)
    return r, failures + 1, x


def gamma_arguments(seed):
    """Return 256 pairs (a, x); in two of three, the shape a is an integer."""
    rng = np.random.default_rng(seed)
    a = np.floor(2 ** rng.uniform(0, 53, BLOCK)) + rng.choice([0, 0, 0.25], BLOCK)
    distance = rng.choice([1, 6, 40, 1e4], BLOCK) * rng.normal(size=BLOCK)
    x = np.maximum(a + distance * np.sqrt(a), 0.1 * rng.random(BLOCK))
    x = np.where(rng.random(BLOCK) < 0.3, np.exp(rng.uniform(-70, 70, BLOCK)), x)
    a[::17], x[::29], x[::31], a[::37], x[::41] = np.nan, -1, 0, -3, np.inf
    return a, x


def poisson_arguments(seed):
    """Return 256 pairs (k, mu) of the Poisson distribution."""
    a, x = gamma_arguments(seed)
    return np.where(a % 1 == 0, a - 1, a), x


def hypergeom_arguments(seed):
    """Return 256 tuples (k, total, marked, draws) of the hypergeometric distribution."""
    rng = np.random.default_rng(seed)
    total = np.floor(2 ** rng.uniform(0, 53, BLOCK))
    marked, draws = (np.floor(total * rng.random(BLOCK) ** rng.choice([1, 4], BLOCK)) for _ in range(2))
    mean = marked * (draws / total)
    deviation = np.sqrt(mean * (1 - marked / total) * (1 - draws / total))
    k = np.round(mean + rng.choice([1, 6, 40], BLOCK) * rng.normal(size=BLOCK) * deviation)
    k = np.where(rng.random(BLOCK) < 0.2, np.floor(np.minimum(marked, draws) * rng.random(BLOCK)), k)
    k[::17], total[::29], marked[::31], draws[::37] = np.nan, 2.5, -1, 2.0**54
    return k, total, marked, draws


BLOCK_KERNELS = {
    "binom_logpmf": (_binomial, binomial_arguments),
    "binom_logcdf": (_binomial, binomial_arguments),
    "binom_logsf": (_binomial, binomial_arguments),
    "poisson_logpmf": (_gamma, poisson_arguments),
    "poisson_logcdf": (_gamma, poisson_arguments),
    "poisson_logsf": (_gamma, poisson_arguments),
    "log_gammainc": (_gamma, gamma_arguments),
    "log_gammaincc": (_gamma, gamma_arguments),
    "nbinom_logpmf": (_beta, negative_binomial_arguments),
    "nbinom_logcdf": (_beta, negative_binomial_arguments),
    "nbinom_logsf": (_beta, negative_binomial_arguments),
    "log_betainc": (_beta, beta_arguments),
    "log_betaincc": (_beta, beta_arguments),
    "hypergeom_logpmf": (_hypergeom, hypergeom_arguments),
    "hypergeom_logcdf": (_hypergeom, hypergeom_arguments),
    "hypergeom_logsf": (_hypergeom, hypergeom_arguments),
}


def bits(values):
    """Return the bits of the values as integers; every NaN gives the same integer."""
    return np.where(np.isnan(values), -1, np.asarray(values).view(np.int64))


@pytest.mark.parametrize("name", BLOCK_KERNELS)
def test_every_instruction_set_gives_the_same_bits(name):
    module, arguments = BLOCK_KERNELS[name]
    function = getattr(module, name)
    for seed in range(10):
        values = arguments(seed)
        known = bits(function(*values))
        for level in range(3):
            assert np.array_equal(bits(_ufunc.on_level(function, level, *values)), known), (seed, level)


@pytest.mark.parametrize("name", BLOCK_KERNELS)
def test_an_element_has_the_same_bits_alone_and_in_any_block(name):
    module, arguments = BLOCK_KERNELS[name]
    function = getattr(module, name)
    values = [np.concatenate(parts) for parts in zip(*map(arguments, range(3)), strict=True)]
    alone = np.array([function(*each) for each in zip(*values, strict=True)])
    order = np.random.default_rng(1).permutation(alone.size)
    for index in (slice(None), order, slice(None, None, -3)):
        assert np.array_equal(bits(function(*(x[index] for x in values))), bits(alone[index]))


def test_on_level_refuses_what_it_cannot_compute():
    one = np.ones(1)
    with pytest.raises(TypeError, match="no block kernel"):
        _ufunc.on_level(_binomial.shift_log_delta, 0, one, one, one, one)
    with pytest.raises(ValueError, match="binom_logsf takes 3 arrays of one length"):
        _ufunc.on_level(_binomial.binom_logsf, 0, one, one, np.ones(2))
