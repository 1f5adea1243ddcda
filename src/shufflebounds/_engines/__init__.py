"""The numerical methods, one folder for each. A method imports `_losses` and the modules below it, but no public class.

- `compose`: independent releases, on a grid of losses, by inversion of a transform, or by enumeration;
- `excess`: delta of a shuffled randomizer, (1/n) E(X_1 + ... + X_n)_+, for given distributions of the random variables X;
- `datasets`: the largest such delta over all datasets of the other users;
- `amplification`: lower and upper bounds of delta and of eps of a shuffled randomizer, by `excess` and `datasets`;
- `inputs`: the distributions of X for noise on numbers, for noise on vectors, and for densities;
- `clones`: the clone bounds; `bits`: sums of flipped bits; `allocation`: random allocation to steps; `batches`: shuffled batches;
- `errors`: estimates from counts of messages, and the distributions of their errors;
- `witnesses`: numbers that a proof leaves free, for the certificates.
"""
