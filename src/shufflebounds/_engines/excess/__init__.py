"""(1/n) E(X_1 + ... + X_n)_+ for given distributions of the privacy-amplification random variable X.

Start with `laws` (a distribution of X, and the pairs of a randomizer), then `evaluation`, which merges values and calls the kernel
`_excess`. `heavy_tails` serves distributions with rare large values, by means of `tilted_inversion`; `chernoff` has a bound in
little time, and `packed` evaluates arrays of deployments.
"""
