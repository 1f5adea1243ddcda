# The clone bounds of deployments: upper and lower bounds of delta and epsilon. Definitions and errors: the header of _clones.pyx.
# The caller has checked: users an integer in 1..2**53, 0 < rate <= 1, 0 < local <= inf, 0 <= eps < inf, 0 <= delta <= 1.

# The probability that another user's message is a clone: e^-local, or 2/(e^local + 1) for the stronger bound.
cdef double c_clone_rate(double local, bint stronger) noexcept nogil

# log delta of the clone pair of a target with pure budget local, the number of clones Bin(users - 1, rate).
cdef void c_clone_log_delta(double users, double rate, double local, double eps, double *lower, double *upper) noexcept nogil

# Returns an eps close to the crossing. For upper = 1 the upper bound of delta(eps) was evaluated at this eps and is at most the
# argument `delta`; for upper = 0 the lower bound was evaluated and is at least `delta`. The result is inf where local = inf
# and delta(eps) exceeds `delta` for every eps.
cdef double c_clone_epsilon(double users, double rate, double local, double delta, bint upper) noexcept nogil

# The functions behind cython_tails: any doubles, NaN outside the domain.
cdef void checked_clones_log_delta(double users, double local, double eps, bint stronger, double *lower,
                                   double *upper) noexcept nogil
cdef double checked_clones_epsilon(double users, double local, double delta, bint stronger, bint upper) noexcept nogil
