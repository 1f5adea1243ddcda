"""Sums of independent Bernoulli variables, by Fourier inversion along an exponentially tilted contour.

    S = sum_j Bin(g_j, p_j):    Pr[S = k] = e^(K(theta) - k theta) 1/(2 pi) int phi_theta(t) e^(-i t k) dt,
    K(theta) = sum_j g_j log(q_j + p_j e^theta); for Pr[S >= k] the integrand has the factor 1/(1 - e^(-(theta + i t))).
    phi_theta is the characteristic function of S after exponential tilting by theta.

lattice.h has the passes over the data. _blocks.pyx makes single points and blocks of points available to Python.

Checked by the caller: 0 < p < 1 (subnormals too), counts integers >= 1 of total n <= 2**53, k an integer.
Ranges   k = 0, n; Pr[S >= 1], Pr[S < n]   closed forms, because the tilt would be infinite
         otherwise    the tilt theta solves K'(theta) = k within 0.02 sigma. The trapezoidal rule has 2J ~ 19 sigma + 30 nodes;
                      those with 2 sigma^2 sin^2(t/2) <= 43 are evaluated (about 28 in half a period if sigma is large)
         tails        the smaller tail is computed. A tail above e^-0.5 is 1 minus the other tail, a pmf above e^-0.2 is 1 minus the
                      tails below and above k: there the logarithm is small, and its relative error matters

Measured error of log p (pmf and both tails), in units of 1e-13 min(1, |log p|) + 2.2e-16 |log p|, against python-flint
(512 bits: products of polynomials, ratios of neighbours; 420 bits: the incomplete beta integral). The probabilities of the bits are
uniform, log-uniform down to 1e-320, up to 1 - 1e-16, mixtures of both, or equal; k = 0, 1, 2, n-2, n-1, n and between.

    domain                                          trials    peak    rms
    n <= 600, log p down to -4e5                    15000     1.7     0.12
    one group, n = 10..1e15                         864       0.8     0.17
    two groups, n = 1e6..1e12, to 440 sigma         24        0.5     0.16
    distinct bits, n = 16..8192                     446       0.6     0.11
    distinct bits, n = 9000, log p down to -11000   600       0.9     0.24    (113-bit direct convolution)
    distinct bits, n = 1e5, 1e6, to 430 sigma       682       0.7     0.13    (against the same distribution in groups)

Returned error: rel_error is the sum of the error terms of docs/theorems/contours.md. Its terms for roundings follow a model (ulp
counts times magnitudes), not interval arithmetic: 20 roundings for each node, those of log phi, and those of the tilted mean.
Sums over nodes are compensated. In all of the above trials the error was at most rel_error plus 4 ulp of the logarithm.

Cost     4.6 us for one group, 5.6 us for two (any n); 0.016 ms for 1000 p, 0.07 ms for 1e4, 0.7 ms for 1e5, 8 ms for 1e6 (AVX2)
         (within 10 sigma of the mean, the functions of tails/ use the faster series of _blocks.pyx)
Source   tilt and inversion: classical (Daniels 1954; Hong 2013 without the tilt); deviances: Loader 2000
"""

cdef extern from "poisson_binomial.h" nogil:
    ctypedef struct own_law "Law":
        pass
    ctypedef struct own_tilt "Tilt":
        pass
    ctypedef struct own_phi "Phi":
        pass
    ctypedef struct own_node "Node":
        pass
    ctypedef struct own_geometric "Geometric":
        pass
    double kernel_half_within(double var, double band)
    double kernel_half(double var)
    bint kernel_place(double half, double J, Py_ssize_t m, void *at)
    void kernel_fill(double log_abs, double phase, double effort, void *at)
    double kernel_nodes_make_within(const void *law, const void *tilt, double band, void *phi)
    double kernel_nodes_make(const void *law, const void *tilt, void *phi)
    bint kernel_node(const void *phi, const void *tilt, double half, double J, Py_ssize_t m, void *at)
    void kernel_geometric_make(double slope, double J, double toward, void *out)
    double kernel_geometric_below(const void *sum, const void *at, double *re, double *im)
    void kernel_geometric_times(const void *sum, Py_ssize_t m, void *at)
    void kernel_exponent(const void *law, double theta, double k, void *tilt)
    int kernel_orders(double var, double depth)
    void kernel_phi_make(const void *law, double theta, double var, double half, void *phi)
    void kernel_phi_at(const void *phi, double t, double s, double c, double *log_abs, double *phase, double *effort)
    double kernel_half_period_within(double var, double reach, double band)
    double kernel_half_period(double var, double reach)
    double kernel_left_out_within(double var, double half, double J, double band)
    double kernel_left_out(double var, double half, double J)
    double kernel_log_edge(const void *law, int all_ones)
    void kernel_lattice_law(void *law, const double *p, const double *q, const double *counts, Py_ssize_t groups)
    double kernel_lattice_tilted(const void *law, double theta, void *tilt)
    int kernel_lattice_tilt(const void *law, double k, double tolerance, void *tilt)
    double kernel_lattice_point(const void *law, double k, int upper, double *log_pmf, double *rel_error)
    double kernel_lattice_log_tail(const double *p, const double *q, const double *counts, Py_ssize_t groups, double k, int upper,
                                   double *log_pmf, double *rel_error)
    double kernel_checked_poisson_binom(const double *p, const double *counts, Py_ssize_t groups, double k, bint upper,
                                        double *work, double *rel_error)


cdef double c_half_within(double var, double band) noexcept nogil: return kernel_half_within(var, band)
cdef double c_half(double var) noexcept nogil: return kernel_half(var)
cdef bint c_place(double half, double J, Py_ssize_t m, Node *at) noexcept nogil: return kernel_place(half, J, m, <void *> at)
cdef void c_fill(double log_abs, double phase, double effort, Node *at) noexcept nogil:
    kernel_fill(log_abs, phase, effort, <void *> at)
cdef double c_nodes_make_within(const Law *law, const Tilt *tilt, double band, Phi *phi) noexcept nogil:
    return kernel_nodes_make_within(<const void *> law, <const void *> tilt, band, <void *> phi)
cdef double c_nodes_make(const Law *law, const Tilt *tilt, Phi *phi) noexcept nogil:
    return kernel_nodes_make(<const void *> law, <const void *> tilt, <void *> phi)
cdef bint c_node(const Phi *phi, const Tilt *tilt, double half, double J, Py_ssize_t m, Node *at) noexcept nogil:
    return kernel_node(<const void *> phi, <const void *> tilt, half, J, m, <void *> at)
cdef void c_geometric_make(double slope, double J, double toward, Geometric *out) noexcept nogil:
    kernel_geometric_make(slope, J, toward, <void *> out)
cdef double c_geometric_below(const Geometric *sum, const Node *at, double *re, double *im) noexcept nogil:
    return kernel_geometric_below(<const void *> sum, <const void *> at, re, im)
cdef void c_geometric_times(const Geometric *sum, Py_ssize_t m, Node *at) noexcept nogil:
    kernel_geometric_times(<const void *> sum, m, <void *> at)
cdef void c_exponent(const Law *law, double theta, double k, Tilt *tilt) noexcept nogil:
    kernel_exponent(<const void *> law, theta, k, <void *> tilt)
cdef int c_orders(double var, double depth) noexcept nogil: return kernel_orders(var, depth)
cdef void c_phi_make(const Law *law, double theta, double var, double half, Phi *phi) noexcept nogil:
    kernel_phi_make(<const void *> law, theta, var, half, <void *> phi)
cdef void c_phi_at(const Phi *phi, double t, double s, double c, double *log_abs, double *phase, double *effort) noexcept nogil:
    kernel_phi_at(<const void *> phi, t, s, c, log_abs, phase, effort)
cdef double c_half_period_within(double var, double reach, double band) noexcept nogil:
    return kernel_half_period_within(var, reach, band)
cdef double c_half_period(double var, double reach) noexcept nogil: return kernel_half_period(var, reach)
cdef double c_left_out_within(double var, double half, double J, double band) noexcept nogil:
    return kernel_left_out_within(var, half, J, band)
cdef double c_left_out(double var, double half, double J) noexcept nogil: return kernel_left_out(var, half, J)
cdef double c_log_edge(const Law *law, int all_ones) noexcept nogil: return kernel_log_edge(<const void *> law, all_ones)
cdef void c_lattice_law(Law *law, const double *p, const double *q, const double *counts, Py_ssize_t groups) noexcept nogil:
    kernel_lattice_law(<void *> law, p, q, counts, groups)
cdef double c_lattice_tilted(const Law *law, double theta, Tilt *tilt) noexcept nogil:
    return kernel_lattice_tilted(<const void *> law, theta, <void *> tilt)
cdef int c_lattice_tilt(const Law *law, double k, double tolerance, Tilt *tilt) noexcept nogil:
    return kernel_lattice_tilt(<const void *> law, k, tolerance, <void *> tilt)
cdef double c_lattice_point(const Law *law, double k, int upper, double *log_pmf, double *rel_error) noexcept nogil:
    return kernel_lattice_point(<const void *> law, k, upper, log_pmf, rel_error)
cdef double c_lattice_log_tail(const double *p, const double *q, const double *counts, Py_ssize_t groups, double k, int upper,
                               double *log_pmf, double *rel_error) noexcept nogil:
    return kernel_lattice_log_tail(p, q, counts, groups, k, upper, log_pmf, rel_error)
cdef double checked_poisson_binom(const double *p, const double *counts, Py_ssize_t groups, double k, bint upper, double *work,
                                  double *rel_error) noexcept nogil:
    return kernel_checked_poisson_binom(p, counts, groups, k, upper, work, rel_error)

# the structs of poisson_binomial.h have the fields of those of _lattice.pxd
assert sizeof(own_law) == sizeof(Law) and sizeof(own_tilt) == sizeof(Tilt) and sizeof(own_phi) == sizeof(Phi)
assert sizeof(own_node) == sizeof(Node) and sizeof(own_geometric) == sizeof(Geometric)
