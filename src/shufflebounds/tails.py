"""Logarithms of discrete tails, relatively accurate however small the probability.

``binom_logpmf``, ``binom_logcdf`` and ``binom_logsf`` are NumPy ufuncs over compiled kernels: they broadcast, take ``out=``
and ``where=``, and follow scipy.special in that they answer NaN outside the domain.
"""

from shufflebounds._core._binomial import binom_logcdf, binom_logpmf, binom_logsf

__all__ = ["binom_logcdf", "binom_logpmf", "binom_logsf"]
