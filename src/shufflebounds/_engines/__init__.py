"""The numerical methods, one folder for each. A method imports `_losses` and the modules below it, but no public class.

- `compose`: independent releases, on a grid of losses, by inversion of a transform, or by enumeration;
- `excess`: (1/n) E(X_1 + ... + X_n)_+, the privacy of a shuffled randomizer, for given distributions of X;
- `datasets`: the largest value of `excess` over every dataset of the other users;
- `amplification`: both bounds of a shuffled randomizer, by `excess` and `datasets`;
- `inputs`: the distributions of X for noise on numbers and vectors and for densities;
- `clones`: the clone bounds; `bits`: sums of flipped bits; `allocation`: random allocation to steps; `batches`: shuffled batches;
- `errors`: estimates from counts of messages, and the distributions of their errors.
"""
