# Sums of independent Bernoulli variables in groups. Methods, ranges and errors: the headers in _lattice.pyx.
#
# p[j], q[j] = 1 - p[j], counts[j]: probability, complement and multiplicity of group j. q and counts may be NULL (q is
# then formed as 1 - p, and every multiplicity is 1). The smaller of p and q is exact, the other its rounded complement.
# Checked by the caller: 0 < p[j] < 1 (p[j] may round to 1 where q[j] > 0 is given), counts[j] a positive integer, their
# total at most 2**53, k an integer.

# A pass over millions of groups calls this function at intervals and stops if it returns true. The results are then not valid.
ctypedef int (*Interrupted)() noexcept nogil

cdef struct Law:
    const double *p
    const double *q
    const double *counts
    Py_ssize_t groups
    double trials          # sum of counts
    double mean            # sum of counts * p, with mean_lo a double-double
    double mean_lo
    double var
    Interrupted interrupted    # NULL if a pass cannot be interrupted

# The distribution tilted by e^(theta s); its mean is k + shift.
cdef struct Tilt:
    double theta
    double shift
    double blur            # bound on the error of shift, in units of roundoff
    double var
    double exponent        # K(theta) - k theta
    double exponent_error  # bound on its absolute error

# log of the centred characteristic function of the tilted distribution, in the form that takes the least time (c_phi_make). A group
# has the tilted probabilities x of 1 and y = 1 - x of 0, and the multiplicity g.
cdef struct Phi:
    int orders                  # > 0: the series in 4xy and x - y is used, with this number of orders
    int small                   # > 0: power sums of the small x and of the small y are used, up to this power
    Py_ssize_t middle           # number of groups that are evaluated one by one
    double *x                   # x, y, g of these groups, in `near`
    double *y
    double *g
    double[64] even             # the sums of the series
    double[64] odd
    double[28] low              # the power sums of x and of y
    double[28] high
    double[1848] near           # 3 LATTICE_ROOM

# A node t = pi m/J of the trapezoidal rule, for the distribution tilted to mean k: s, c = sin, cos of t/2; re + i im is the weight
# (2, or 1 at the ends) times phi e^(i t shift). size = |re + i im|; size * rounding * 2**-53 bounds the error of re + i im.
cdef struct Node:
    double t
    double s
    double c
    double weight
    double re
    double im
    double size
    double rounding

# Returns half = |sin(t/2)| beyond which nodes are negligible: |phi| <= e^-band there. `band` is 21 to BAND, and the errors are
# about e^-band. Functions without `_within` in their names use band = BAND.
cdef double c_half_within(double var, double band) noexcept nogil
cdef double c_half(double var) noexcept nogil
# Sets t, s, c and weight of node m of 0..J; returns False if the node is beyond `half`.
cdef bint c_place(double half, double J, Py_ssize_t m, Node *at) noexcept nogil
# Sets the other fields of the node from log |phi| and the phase; effort is the sum of the magnitudes of the terms of both.
cdef void c_fill(double log_abs, double phase, double effort, Node *at) noexcept nogil
# c_nodes_make prepares phi and returns `half`, the upper end of the nodes' range of |sin(t/2)|. c_node evaluates node m, and
# returns False if the node lies beyond `half`.
cdef double c_nodes_make_within(const Law *law, const Tilt *tilt, double band, Phi *phi) noexcept nogil
cdef double c_nodes_make(const Law *law, const Tilt *tilt, Phi *phi) noexcept nogil
cdef bint c_node(const Phi *phi, const Tilt *tilt, double half, double J, Py_ssize_t m, Node *at) noexcept nogil

# The geometric sum over J neighbours, sum_(0 <= i < J) e^(-slope i) z^(toward i) with z = e^(i t) and toward = +-1: at the
# m-th node it is (1 - (-1)^m cut)/(1 - keep z^toward). A node of a pmf times this sum is a node of the tail.
cdef struct Geometric:
    double J
    double keep            # e^(-slope)
    double decay           # e^(-slope) - 1
    double cut             # e^(-slope J)
    double whole           # 1 - cut
    double toward

cdef void c_geometric_make(double slope, double J, double toward, Geometric *out) noexcept nogil
# re + i im = 1 - keep z^toward; returns re^2 + im^2
cdef double c_geometric_below(const Geometric *sum, const Node *at, double *re, double *im) noexcept nogil
cdef void c_geometric_times(const Geometric *sum, Py_ssize_t m, Node *at) noexcept nogil

cdef void c_exponent(const Law *law, double theta, double k, Tilt *tilt) noexcept nogil
cdef int c_orders(double var, double depth) noexcept nogil
cdef void c_phi_make(const Law *law, double theta, double var, double half, Phi *phi) noexcept nogil
cdef void c_phi_at(const Phi *phi, double t, double s, double c, double *log_abs, double *phase,
                   double *effort) noexcept nogil
cdef double c_half_period_within(double var, double reach, double band) noexcept nogil
cdef double c_half_period(double var, double reach) noexcept nogil
cdef double c_left_out_within(double var, double half, double J, double band) noexcept nogil
cdef double c_left_out(double var, double half, double J) noexcept nogil
cdef double c_log_edge(const Law *law, int all_ones) noexcept nogil
cdef void c_lattice_law(Law *law, const double *p, const double *q, const double *counts,
                        Py_ssize_t groups) noexcept nogil
cdef double c_lattice_tilted(const Law *law, double theta, Tilt *tilt) noexcept nogil
cdef int c_lattice_tilt(const Law *law, double k, double tolerance, Tilt *tilt) noexcept nogil
cdef double c_lattice_point(const Law *law, double k, int upper, double *log_pmf, double *rel_error) noexcept nogil
cdef double c_lattice_log_tail(const double *p, const double *q, const double *counts, Py_ssize_t groups, double k,
                               int upper, double *log_pmf, double *rel_error) noexcept nogil

# log Pr[X > k] (upper) or log Pr[X <= k] at any real k; any doubles, NaN outside of 0 <= p[j] <= 1, integers counts[j] >= 0 of at
# most 2**53 in total. work has space for 2 groups doubles; rel_error may be NULL.
cdef double checked_poisson_binom(const double *p, const double *counts, Py_ssize_t groups, double k, bint upper, double *work,
                                  double *rel_error) noexcept nogil
