"""Certificates: intervals that contain the exact delta, or prove a stated bound of it, computed in interval arithmetic.

This package shares no numerics with the bounds of :mod:`shufflebounds.profile`. Of an engine it reads at most a witness: numbers
that a proof leaves free, such as the tilt of a sum, the weights of a mean of matrix rows, the number of users of a stronger
protocol and the datasets that cover its datasets, or the dataset of a lower bound. Sums over all outcomes follow the definition of
delta; the theorem of any other certificate is in the docstring of its module (`allocated_gaussian`, `blanket`, `clones_window`,
`compositions`, `personalized`, `sampled_gaussians`, `shuffled_batches`), or on the page that the docstring names. A class is
supported if an implementation for it is registered with :func:`bounds_of`, :func:`hockey_stick_of` or :func:`outcomes_of`.
"""

from shufflebounds.certify import _allocation, _mechanisms, _shuffle, compositions, personalized, shuffled_batches  # noqa: F401
from shufflebounds.certify._dispatch import bounds_of, certify, confirms, hockey_stick_of, outcomes_of

__all__ = ["bounds_of", "certify", "confirms", "hockey_stick_of", "outcomes_of"]
