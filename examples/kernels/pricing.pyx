"""Every public kernel called from outside the package, without the GIL."""

from shufflebounds cimport cython_tails as kernels


def laws(double k):
    """Return logarithms of tails of six laws at k."""
    cdef double[6] out
    with nogil:
        out[0] = kernels.binom_logsf(k, 1000, 0.25)
        out[1] = kernels.poisson_logsf(k, 250)
        out[2] = kernels.nbinom_logsf(k, 250.5, 0.5)
        out[3] = kernels.hypergeom_logsf(k, 4000, 1000, 1000)
        out[4] = kernels.log_gammaincc(k, 250)
        out[5] = kernels.log_betainc(k, 750, 0.25)
    return list(out)


def poisson_binom_logsf(const double[::1] p, double k):
    """Return log Pr[X > k] and the bound of its relative error."""
    cdef double error = 0
    value = kernels.poisson_binom_log_tail(&p[0], NULL, p.shape[0], k + 1, 1, &error)
    return value, error


def compound_binom_logsf(const double[::1] log_weights, double k):
    """Return log Pr[X > k], X ~ Bin(S, 1/2), Pr[S = i] = exp(log_weights[i])."""
    return kernels.compound_binom_log(2, k, 0, &log_weights[0], log_weights.shape[0], 0.5)


def shift(double n, double p, double eps):
    """Return log delta of Bin(n, p) against its shift, and the bound of its error."""
    cdef double error = 0
    value = kernels.shift_log_delta(n, p, eps, 0, &error)
    return value, error


def clones(double users, double local_eps, double eps, double delta):
    """Return both sides of log delta at eps, and eps at delta, of the stronger clone bound."""
    cdef double lower = 0, upper = 0, found
    with nogil:
        kernels.clones_log_delta(users, local_eps, eps, 1, &lower, &upper)
        found = kernels.clones_epsilon(users, local_eps, delta, 1, 1)
    return lower, upper, found


def excess(const double[::1] x, const double[::1] log_w, double users):
    """Return both sides of log E[max(0, S)]."""
    cdef double lower = 0, upper = 0
    kernels.log_excess(&x[0], &log_w[0], x.shape[0], users, 1e-7, &lower, &upper)
    return lower, upper
