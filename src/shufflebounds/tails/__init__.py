"""Logarithms of probabilities and of tails of discrete distributions, with a small relative error even for tiny probabilities.

``binom_logpmf``, ``binom_logcdf``, ``binom_logsf``, the same functions with the prefixes ``poisson_``, ``nbinom_`` and
``hypergeom_``, and ``log_gammainc``, ``log_gammaincc``, ``log_betainc``, ``log_betaincc`` are compiled NumPy ufuncs: they
broadcast, accept ``out=`` and ``where=``, and return NaN outside the domain, as scipy.special does. The other functions validate
their arguments and raise ValueError. ``binom``, ``poisson_binom`` and ``compound_binom`` are frozen distributions with the methods
of scipy.stats. ``sf`` is Pr[X > k], but ``chernoff_logsf`` and ``bounded_difference_logsf`` are upper bounds of log Pr[S >= k].
"""

from shufflebounds._core._beta import log_betainc, log_betaincc, nbinom_logcdf, nbinom_logpmf, nbinom_logsf
from shufflebounds._core._binomial import binom_logcdf, binom_logpmf, binom_logsf
from shufflebounds._core._gamma import log_gammainc, log_gammaincc, poisson_logcdf, poisson_logpmf, poisson_logsf
from shufflebounds._core._hypergeom import hypergeom_logcdf, hypergeom_logpmf, hypergeom_logsf
from shufflebounds.tails.binomial_limits import clopper_pearson
from shufflebounds.tails.compound_binomial import compound_binom_logcdf, compound_binom_logpmf, compound_binom_logsf
from shufflebounds.tails.concentration import bounded_difference_logsf, chernoff_logsf
from shufflebounds.tails.frozen import FrozenLaw
from shufflebounds.tails.frozen_binomials import binom, compound_binom, poisson_binom
from shufflebounds.tails.poisson_binomial import (
    poisson_binom_logcdf,
    poisson_binom_logpmf,
    poisson_binom_logsf,
    poisson_binom_window,
)

__all__ = [
    "FrozenLaw",
    "binom",
    "binom_logcdf",
    "binom_logpmf",
    "binom_logsf",
    "bounded_difference_logsf",
    "chernoff_logsf",
    "clopper_pearson",
    "compound_binom",
    "compound_binom_logcdf",
    "compound_binom_logpmf",
    "compound_binom_logsf",
    "hypergeom_logcdf",
    "hypergeom_logpmf",
    "hypergeom_logsf",
    "log_betainc",
    "log_betaincc",
    "log_gammainc",
    "log_gammaincc",
    "nbinom_logcdf",
    "nbinom_logpmf",
    "nbinom_logsf",
    "poisson_binom",
    "poisson_binom_logcdf",
    "poisson_binom_logpmf",
    "poisson_binom_logsf",
    "poisson_binom_window",
    "poisson_logcdf",
    "poisson_logpmf",
    "poisson_logsf",
]
