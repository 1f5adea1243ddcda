"""Every public kernel called from outside the package, without the GIL."""

from shufflebounds cimport cython_tails as kernels


def laws(double k):
    """Return log Pr[X = k], log Pr[X <= k] and log Pr[X > k] of four laws."""
    cdef double[12] out
    with nogil:
        out[0:3] = [kernels.binom_logpmf(k, 1000, 0.25), kernels.binom_logcdf(k, 1000, 0.25),
                    kernels.binom_logsf(k, 1000, 0.25)]
        out[3:6] = [kernels.poisson_logpmf(k, 250), kernels.poisson_logcdf(k, 250),
                    kernels.poisson_logsf(k, 250)]
        out[6:9] = [kernels.nbinom_logpmf(k, 250.5, 0.5), kernels.nbinom_logcdf(k, 250.5, 0.5),
                    kernels.nbinom_logsf(k, 250.5, 0.5)]
        out[9:12] = [kernels.hypergeom_logpmf(k, 4000, 1000, 1000),
                     kernels.hypergeom_logcdf(k, 4000, 1000, 1000),
                     kernels.hypergeom_logsf(k, 4000, 1000, 1000)]
    return list(out)


def incomplete(double a, double b, double x):
    """Return log P(a, b), log Q(a, b), log I_x(a, b) and log(1 - I_x(a, b))."""
    return (kernels.log_gammainc(a, b), kernels.log_gammaincc(a, b),
            kernels.log_betainc(a, b, x), kernels.log_betaincc(a, b, x))


def mixed(double p, double k, double n):
    """Return Pr[X = k] and Pr[X > k] of Bin(n, p), as an integrator over p asks for them."""
    cdef double[3] x = [p, k, n]
    return kernels.quad_binom_pmf(3, x), kernels.quad_binom_sf(3, x)


def poisson_binom_logsf(const double[::1] p, double k):
    """Return log Pr[X > k] and the bound of its relative error."""
    cdef double error = 0
    value = kernels.poisson_binom_log_tail(&p[0], NULL, p.shape[0], k + 1, 1, &error)
    return value, error


def poisson_binom_tails(const double[::1] p, double k):
    """Return log Pr[X <= k] and log Pr[X > k], with the meaning of the Python functions."""
    return (kernels.poisson_binom_logcdf(&p[0], NULL, p.shape[0], k),
            kernels.poisson_binom_logsf(&p[0], NULL, p.shape[0], k))


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
