"""Builds and imports a Cython module outside of the package that cimports the installed kernels."""

import importlib.util
import os
import sys

OUTSIDE = """
from shufflebounds._core._binomial cimport (
    c_binom_logcdf, c_binom_logpmf, c_binom_logsf, c_binom_tail_ratio, c_shift_log_delta)
from shufflebounds._core._bits cimport c_bits_log_delta
from shufflebounds._core._compound cimport c_compound_log, c_log_sign_excess, c_log_weighted_excess
from shufflebounds._core._lattice cimport c_lattice_log_tail
from shufflebounds._core._special cimport (
    c_deviance, c_deviance_dd, c_log1mexp, c_log1pmx, c_log_add_exp, c_log_ratio, c_log_sub_exp, c_mills_ratio,
    c_stirling_error)


def binom_logpmf(double k, double n, double p):
    return c_binom_logpmf(k, n, p)


def binom_logcdf(double k, double n, double p):
    return c_binom_logcdf(k, n, p)


def binom_logsf(double k, double n, double p):
    return c_binom_logsf(k, n, p)


def binom_tail_ratio(double j, double n, double p, double p_lo, double q, double q_lo):
    return c_binom_tail_ratio(j, n, p, p_lo, q, q_lo)


def shift_log_delta(double n, double p, double eps, bint reverse):
    cdef double error = 0
    value = c_shift_log_delta(n, p, eps, reverse, &error)
    return value, error


def log_sign_excess(double n, double rate, double u, double v):
    cdef double lower = 0, upper = 0
    with nogil:
        c_log_sign_excess(n, rate, u, v, &lower, &upper)
    return lower, upper


def log_weighted_excess(double first, const double[::1] log_weights, double u, double v):
    cdef double error = 0
    value = c_log_weighted_excess(first, &log_weights[0], log_weights.shape[0], u, v, &error)
    return value, error


def compound_log(int kind, double k, double first, const double[::1] log_weights, double p):
    return c_compound_log(kind, k, first, &log_weights[0], log_weights.shape[0], p)


def lattice_log_tail(const double[::1] p, const double[::1] counts, double k, bint upper):
    cdef double log_pmf = 0, error = 0
    with nogil:
        tail = c_lattice_log_tail(&p[0], NULL, &counts[0], p.shape[0], k, upper, &log_pmf, &error)
    return tail, log_pmf, error


def bits_log_delta(const double[::1] p, const double[::1] q, const double[::1] counts, double flip, double eps, double gap):
    cdef double lower = 0, upper = 0
    c_bits_log_delta(&p[0], &q[0], &counts[0], p.shape[0], flip, eps, gap, &lower, &upper)
    return lower, upper


def log1pmx(double x):
    return c_log1pmx(x)


def log1mexp(double x):
    return c_log1mexp(x)


def log_add_exp(double a, double b):
    return c_log_add_exp(a, b)


def log_sub_exp(double a, double b):
    return c_log_sub_exp(a, b)


def stirling_error(double n):
    return c_stirling_error(n)


def mills_ratio(double x):
    return c_mills_ratio(x)


def deviance(double x, double m):
    return c_deviance(x, m, x - m)


def log_ratio(double x, double m, double m_lo):
    cdef double lo = 0
    hi = c_log_ratio(x, m, m_lo, &lo)
    return hi, lo


def deviance_dd(double x, double m, double m_lo, double d, double d_lo):
    cdef double lo = 0
    hi = c_deviance_dd(x, m, m_lo, d, d_lo, &lo)
    return hi, lo
"""


def build(folder):
    """Write the source to folder, compile it there, and return the imported module."""
    from Cython.Build import cythonize
    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext

    source = folder / "outside.pyx"
    source.write_text(OUTSIDE)
    flags = [] if os.name == "nt" else ["-O1"]
    extension = Extension("outside", [str(source)], extra_compile_args=flags)
    modules = cythonize([extension], build_dir=str(folder / "c"), quiet=True, language_level=3)
    command = build_ext(Distribution({"ext_modules": modules}))
    command.build_lib, command.build_temp = str(folder / "lib"), str(folder / "temp")
    command.ensure_finalized()
    command.run()
    spec = importlib.util.spec_from_file_location("outside", command.get_ext_fullpath("outside"))
    module = importlib.util.module_from_spec(spec)
    sys.modules.pop("outside", None)
    spec.loader.exec_module(module)
    return module
