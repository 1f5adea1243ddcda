"""(1/n) E(X_1 + ... + X_n)_+ for given distributions of the privacy-amplification random variable X.

Start with `excess_law` (a distribution of X, and the pairs of a randomizer), then `evaluation`, which merges atoms and calls the
kernel `_excess`. `heavy_tails` serves distributions with rare large values, with `tilted_inversion` for their other values.
`chernoff` has a bound that takes little time, `packed` evaluates arrays of deployments, and `blanket_moments` has Renyi divergences
of the privacy blanket.
"""
