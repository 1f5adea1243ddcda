"""(1/n) E(X_1 + ... + X_n)_+ for given distributions of the privacy-amplification random variable X.

Start with `laws` (a distribution of X, and the pairs of a randomizer), then `evaluation`, which chooses the method: enumeration
(`mixed_sum`), `tilted_inversion`, `heavy_tails` for rare large values, `chernoff` for a bound in little time.
"""
