"""Block kernels return the same bits on every instruction set, in every block, and alone."""

import numpy as np
import pytest

from shufflebounds._core import _binomial

BLOCK = 256


def binomial_arguments(seed):
    """Return 256 triples (k, n, p) over all methods of the block kernels, some of them outside of the domain."""
    rng = np.random.default_rng(seed)
    n = np.floor(2 ** rng.uniform(0, 53, BLOCK))
    p = np.where(rng.random(BLOCK) < 0.5, rng.random(BLOCK), np.exp(-rng.uniform(0, 740, BLOCK)))
    p = np.where(rng.random(BLOCK) < 0.2, 1 - p, p)
    distance = rng.choice([1, 6, 40, 1e4], BLOCK) * rng.normal(size=BLOCK)
    k = np.clip(np.round(n * p + distance * np.sqrt(n * p * (1 - p))), 0, n)
    k = np.where(rng.random(BLOCK) < 0.3, np.floor(n * rng.random(BLOCK)), k)
    k[::17], n[::29], p[::31], p[::37], p[::41] = np.nan, 2.5, 2, 0, 1
    return k, n, p


BLOCK_KERNELS = {
    "binom_logpmf": (_binomial, binomial_arguments),
    "binom_logcdf": (_binomial, binomial_arguments),
    "binom_logsf": (_binomial, binomial_arguments),
}


@pytest.mark.parametrize("name", BLOCK_KERNELS)
def test_every_instruction_set_gives_the_same_bits(name):
    module, arguments = BLOCK_KERNELS[name]
    for seed in range(20):
        values = arguments(seed)
        known = getattr(module, name)(*values)
        for level in range(3):
            assert np.array_equal(module.on_level(level, name, *values).view(np.int64), known.view(np.int64)), (seed, level)


@pytest.mark.parametrize("name", BLOCK_KERNELS)
def test_an_element_has_the_same_bits_alone_and_in_any_block(name):
    module, arguments = BLOCK_KERNELS[name]
    function = getattr(module, name)
    values = [np.concatenate(parts) for parts in zip(*map(arguments, range(3)), strict=True)]
    alone = np.array([function(*each) for each in zip(*values, strict=True)])
    order = np.random.default_rng(1).permutation(alone.size)
    for index in (slice(None), order, slice(None, None, -3)):
        assert np.array_equal(function(*(x[index] for x in values)).view(np.int64), alone[index].view(np.int64))
