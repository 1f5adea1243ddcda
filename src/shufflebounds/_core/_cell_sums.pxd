# The distribution of X + Y, reduced to the cells between points. Method and errors: the header of _cell_sums.pyx.

# Adds to total[c] the mass of X + Y in the cell from nodes[c] to nodes[c + 1], c < cells, and to moment[c] the sum of mass times
# distance from nodes[c]. X has the values `place` with probabilities `mass`, Y the values `jump` with probabilities `chance`. If
# `factor` is not NULL, X is multiplied by factor[j] for the value j of Y; if `used` is not NULL, only its used[j] smallest values
# count. Pairs with a mass below `cut` are omitted. Sums are rounded up if `upper`, otherwise down. Checked by the caller:
# `place` and `nodes` increase, cells >= 1, the nodes enclose all sums, factors > 0, masses >= 0; products of masses may underflow.
cdef void c_cell_sums(const double *place, const double *mass, Py_ssize_t places, const double *jump, const double *chance,
                      Py_ssize_t jumps, const double *nodes, Py_ssize_t cells, bint upper, const double *factor,
                      const Py_ssize_t *used, double cut, double *total, double *moment) noexcept nogil
